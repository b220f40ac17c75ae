"""When calibration by reference models pays: a model in which difficulty and noise are normal."""

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
