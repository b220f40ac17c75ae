"""When calibration by reference models pays: the normal model of Section 4; and what a second softmax does to a loss."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from mia_lib.errors import check_range


def calibration_auc(difficulty: float, noise: float, gain: float, references: int) -> dict[str, float | np.ndarray]:
    """AUC of a score and of its calibrated form when difficulty, noise of training and nothing else is normal.

    In the model s(target, z) = -D + gain * member + e and s(reference, z) = -D + e', D and the e of standard deviations
    `difficulty` and `noise`: Phi(gain / sqrt(2 (difficulty^2 + noise^2))) before, and with the mean over R references
    Phi(gain / sqrt(2 noise^2 (1 + 1 / R))) after. So calibration gains exactly when difficulty^2 > noise^2 / R.

    Args:
        references: the largest R.

    Returns:
        "original", and "calibrated" [references] for R = 1, 2, ...
    """
    check_range("references", references, 1)
    for name, value in (("difficulty", difficulty), ("noise", noise)):
        check_range(name, value, 0.0)
    r = np.arange(1, references + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {"original": float(norm.cdf(gain / np.sqrt(2 * (difficulty**2 + noise**2)))),
                "calibrated": norm.cdf(gain / np.sqrt(2 * noise**2 * (1 + 1 / r)))}


def losses_of_two_classes(margin: np.ndarray) -> dict[str, np.ndarray]:
    """The loss of a record of two classes with one softmax, and with the two of the released code.

    With margin m, the logit of the true class less the other's, the first is log(1 + e^-m). The second takes probabilities
    for logits: their difference is tanh(m / 2), so it lies between log(1 + 1/e) and log(1 + e), and flattens at either end.

    Args:
        margin: [n].

    Returns:
        "once" and "twice", [n] in nats.
    """
    once, twice = (np.logaddexp(0.0, -of) for of in (np.asarray(margin, float), np.tanh(np.asarray(margin, float) / 2)))
    return {"once": once, "twice": twice}
