"""A threshold for each class, from models of the attacker's own (Ye et al. 2022)."""

from __future__ import annotations

import numpy as np

from mia_lib.attacks import check_direction, check_loss, check_references, needs
from mia_lib.checks import check_labels, check_order
from mia_lib.errors import MiaError


@needs("loss", "out only", "the training recipe and the distribution of records")
def attack_s(
    loss: np.ndarray, labels: np.ndarray, reference_loss: np.ndarray, reference_members: np.ndarray
) -> np.ndarray:
    """Attack S: how rarely a stranger of the record's class has so low a loss under some reference (Ye et al. 2022).

    A test at level alpha calls a record of class y a member when its loss is at most c(y), the alpha-quantile of the losses
    of all pairs of a reference and a record of class y that it was not trained on. The score is one minus the smallest such
    alpha, the p-value: the share of those pairs whose loss is greater. Where Attack R has a threshold for each record, this
    has one for each class, a group of the authors' Privacy Meter, from as many more losses.

    Args:
        loss: of each record under the target, [N].
        labels: true classes, int [N].
        reference_loss: the same under R references, [R, N].
        reference_members: bool [R, N]; references trained on a record are left aside.

    Returns:
        score [N] in [0, 1].

    Raises:
        MiaError: labels that are none; a class whose records every reference was trained on; the target among its references;
            values that are not finite.

    Warns:
        UserWarning: a loss that is nowhere above 0, or that is higher under references trained on a record.
    """
    check_order(-1, loss=loss, labels=labels)
    loss, reference_loss, reference_members = check_references(
        loss, reference_loss, reference_members, names=("loss", "reference_loss")
    )
    labels = check_labels("labels", labels, records=len(loss))
    check_loss("loss", loss)
    check_direction(reference_loss, reference_members, "reference_loss", higher=False)
    score = np.empty(len(loss))
    for label in np.unique(labels):
        of_class = labels == label
        strangers = np.sort(reference_loss[:, of_class][~reference_members[:, of_class]])
        if not len(strangers):
            raise MiaError(
                f"class {label}: every reference was trained on all of its {of_class.sum()} records. Attack S "
                "needs one that was not: use membership.balanced_halves, or more references."
            )
        score[of_class] = 1 - np.searchsorted(strangers, loss[of_class], side="right") / len(
            strangers
        )
    return score
