"""Difficulty calibration (Watson et al. 2022): any score, less what models without the record give it."""

from __future__ import annotations

import numpy as np

from mia_lib.attacks import Needs, check_present, check_references, needs
from mia_lib.checks import check_numbers

SIGNALS = {  # what attacks have whose score is a signal of the target as it is, and forgetting
    "gradient norm": Needs("parameters", "none", "nothing"),
    "confidence": Needs("output vector", "none", "nothing, not even the true label"),
    "label-only": Needs("label", "none", "answers to a few thousand queries for each record"),
    "any score, by forgetting": Needs(
        "parameters",
        "none",
        "the training recipe, and public records that the target was not trained on",
    ),
}


@needs("loss", "out only", "the training recipe and the distribution of records")
def calibrate(
    score: np.ndarray,
    reference_scores: np.ndarray,
    reference_members: np.ndarray | None = None,
    *,
    own: str = "refuse",
) -> np.ndarray:
    """Calibrated score: s(target, z) - mean of s(reference, z) (Eq. 5).

    The references are trained on other records of the distribution. A record that is easy for every model has a high score
    whether it is a member or not; the difference takes that away. For the loss it is MAST with the mean over OUT
    references, an upper bound of the optimal score (Eq. 14 of Sablayrolles et al. 2019); for other scores, such as gradient
    norms or confidences, it is a heuristic. What the attack must see of the target is what the score is made of: the loss
    at least for most.

    Args:
        score: of each record under the target, higher for members, [N].
        reference_scores: the same under R references, [R, N].
        reference_members: bool [R, N]; references trained on a record are left aside. By default none was trained on any.
        own: "refuse" a target that is among its own references, or "keep" it: a copy of the target that is trained further, to
            forget, is the target itself before it has begun.

    Returns:
        score [N].

    Raises:
        MiaError: shapes that do not fit, a score that is not a number, a record that no reference left out, or the target
            among its references.
    """
    if reference_members is None:
        reference_members = np.zeros_like(
            np.atleast_2d(check_numbers("reference_scores", reference_scores)), bool
        )
    score, reference_scores, reference_members = check_references(
        score, reference_scores, reference_members, names=("score", "reference_scores"), own=own
    )
    check_present(reference_members, "calibration")
    return score - reference_scores.mean(0, dtype=np.float64, where=~reference_members)
