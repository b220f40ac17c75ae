"""Difficulty calibration (Watson et al. 2022): any score, less what models without the record give it."""

from __future__ import annotations

import numpy as np

from mia_lib.attacks import check_references, needs


@needs("loss", "out only", "the training recipe and the distribution of records")
def calibrate(score: np.ndarray, reference_scores: np.ndarray) -> np.ndarray:
    """Calibrated score: s(target, z) - mean of s(reference, z) (Eq. 5).

    The references are trained on other records of the distribution. A record that is easy for every model has a high score
    whether it is a member or not; the difference takes that away. For the loss it is MAST with the mean over OUT
    references, an upper bound of the optimal score (Eq. 14 of Sablayrolles et al. 2019); for other scores, such as gradient
    norms or confidences, it is a heuristic. What the attack must see of the target is what the score is made of: the loss
    at least for most.

    Args:
        score: of each record under the target, higher for members, [N].
        reference_scores: the same under R references, none trained on these records, [R, N].

    Returns:
        score [N].

    Raises:
        MiaError: shapes that do not fit, a score that is not a number, or the target among its references.
    """
    score, reference_scores = check_references(score, reference_scores, names=("score", "reference_scores"))
    return score - reference_scores.mean(0, dtype=np.float64)
