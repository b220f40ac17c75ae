"""Attacks that the papers compare with."""

from __future__ import annotations

import warnings

import numpy as np

from mia_lib.attacks import check_references, needs
from mia_lib.errors import MiaError


@needs("label", "none", "nothing")
def gap(correct: np.ndarray) -> np.ndarray:
    """The 0-1 or gap attack: a record that is classified right is called a member (Yeom et al. 2018).

    Args:
        correct: bool [..., N].

    Returns:
        score [..., N], 1 or 0.
    """
    return np.asarray(correct, np.float64)


@needs("output vector", "in and out", "the training recipe, and records of its own from the same distribution")
def shadow_models(probabilities: np.ndarray, labels: np.ndarray, shadow_probabilities: np.ndarray,
                  shadow_labels: np.ndarray, shadow_members: np.ndarray, hidden: int = 64, seed: int = 0) -> np.ndarray:
    """Shadow-model attack (Shokri et al. 2017): a classifier that learns what the outputs of members look like.

    For each class a network with one hidden layer is trained to tell the output vectors of shadow models on their
    members from those on their non-members; it is then asked about the target's output vectors. It stops when it no
    longer improves on a tenth of its training rows.

    Args:
        probabilities: of the target, [N, K].
        labels: true classes, int [N].
        shadow_probabilities: of S shadow models on records of the attacker's, [S, J, K].
        shadow_labels: true classes of those, int [J].
        shadow_members: bool [S, J].
        hidden: width of the attack networks.
        seed: of their weights and batches.

    Returns:
        score [N]: probability of membership; 1/2 is the attack's own threshold.

    Raises:
        MiaError: shapes that do not fit, or a class that no shadow model saw both inside and outside.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    probabilities, labels = np.asarray(probabilities), np.asarray(labels)
    shadow_probabilities, shadow_members = np.asarray(shadow_probabilities), np.asarray(shadow_members, bool)
    shadow_labels = np.asarray(shadow_labels)
    if shadow_probabilities.ndim != 3 or shadow_probabilities.shape[2] != probabilities.shape[-1]:
        raise MiaError(f"shadow_probabilities has shape {shadow_probabilities.shape}, the target's "
                       f"{probabilities.shape}: [S, J, K] and [N, K] are needed.")
    check_references(shadow_labels, shadow_probabilities[..., 0], shadow_members)
    score = np.empty(len(labels))
    for label in np.unique(labels):
        of_class = labels == label
        rows = shadow_probabilities[:, shadow_labels == label].reshape(-1, probabilities.shape[1])
        inside = shadow_members[:, shadow_labels == label].ravel()
        if min(inside.sum(), (~inside).sum()) < 10:
            raise MiaError(f"class {label}: the shadow models saw {inside.sum()} of its records inside and "
                           f"{(~inside).sum()} outside; the attack model needs 10 of each. Use more shadow models.")
        network = MLPClassifier((hidden,), learning_rate_init=0.01, early_stopping=True, n_iter_no_change=5,
                                max_iter=60, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(rows, inside)
        score[of_class] = network.predict_proba(probabilities[of_class])[:, 1]
    return score
