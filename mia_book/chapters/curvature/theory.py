"""Bounds by differential privacy on what any score of a model can reveal, and those that Ravikumar
et al. (2024) prove for input curvature.

A score is a function of the trained model, so what privacy says of the models trained with and without a record, it says of
their scores: loss, confidence and curvature alike. `CurvatureWorld` has the paper's own bounds.
Divergences are in nats; epsilon is that of pure differential privacy, between training sets with and without one record.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
from scipy.special import rel_entr

from mia_lib.errors import MiaError, check_range

# ------------------------------------------------------------------------------------------------- any score of a model


def randomised_response(epsilon: float, classes: int) -> np.ndarray:
    """Say the true label with odds e^epsilon against each other label; epsilon-differentially private, and no better.

    Args:
        epsilon: at least 0. classes: K >= 2.

    Returns:
        float64 [K, K], row = true label, column = label said; rows sum to 1.
    """
    check_range("epsilon", epsilon, 0.0)
    check_range("classes", classes, 2)
    odds = np.exp(-epsilon) + (1 - np.exp(-epsilon)) * np.eye(classes)
    return odds / odds.sum(1, keepdims=True)


def mechanisms(count: int, seed: int = 0) -> pd.DataFrame:
    """Divergences of random finite epsilon-private mechanisms and of randomised response.

    A random mechanism draws a law and another whose ratio to it lies in [e^-epsilon, e^epsilon].

    Returns:
        DataFrame: epsilon, kl, kind.
    """
    rng, rows = np.random.default_rng(seed), []
    for _ in range(count):
        epsilon, outcomes = float(np.exp(rng.uniform(-3, 2))), int(rng.integers(2, 6))
        p = rng.dirichlet(np.full(outcomes, 0.5))
        move = p * (np.exp(rng.uniform(-epsilon, epsilon, outcomes)) - 1)
        # both laws sum to one: each part shrinks to the smaller
        up, down = move[move > 0].sum(), -move[move <= 0].sum()
        move *= min(up, down) / np.where(move > 0, up or 1, down or 1)
        rows.append(
            {
                "epsilon": epsilon,
                "kl": float(rel_entr(p, p + move).sum()),
                "kind": "random mechanism",
            }
        )
    for epsilon in np.geomspace(0.05, 7, 40):
        say_yes, say_no = randomised_response(float(epsilon), 2)
        rows.append(
            {
                "epsilon": float(epsilon),
                "kl": float(rel_entr(say_yes, say_no).sum()),
                "kind": "randomised response",
            }
        )
    return pd.DataFrame(rows)


# -------------------------------------------------------------------------------------------------- bounds on curvature


@dataclass(frozen=True)
class CurvatureWorld:
    """The constants in the bounds of Ravikumar et al. (2024), sections 4 and A, and the bounds.

    Methods take m, the number of training records, at least 1, and epsilon, at least 0, as numbers or arrays that broadcast.
    The paper's probability 1 - delta of all this has no symbol here.

    Attributes:
        loss_bound: L above 0; losses lie in [0, L].
        gamma: what the empirical risk may be off (in Eq. 9, never defined; Eq. 3 has gamma', a function of m).
        bias: Delta, what the risk may exceed that of the best predictor by (Eq. 4).
        hessian_lipschitz: rho (Eq. 5).
        alpha_cubed: ``E ||alpha||^3`` of the step between adjacent records. The trace comes out only if
            ``E[alpha alpha^T] = I``, which makes it n^1.5 or more for n inputs.

    Raises:
        MiaError: a constant below 0, not finite, or 0 where it must be above.
    """

    loss_bound: float
    gamma: float
    bias: float
    hessian_lipschitz: float
    alpha_cubed: float

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            check_range(field.name, value, 0.0)
            if not np.isfinite(value) or (not value and field.name == "loss_bound"):
                raise MiaError(f"{field.name} = {value!r} must be finite, and loss_bound above 0.")

    def c(self, m) -> np.ndarray:
        """``(4m - 1) gamma + 2 (m - 1) Delta + rho/6 E||alpha||^3 + L`` (Eq. 9): m is in it."""
        m = _at_least("m", m, 1)
        return (
            (4 * m - 1) * self.gamma
            + 2 * (m - 1) * self.bias
            + self.hessian_lipschitz / 6 * self.alpha_cubed
            + self.loss_bound
        )

    def mean_bound(self, m, epsilon) -> np.ndarray:
        """``L (m (1 - e^-epsilon) + 1) + c_1 = L m (1 - e^-epsilon) + c`` on the expected trace (Lemma A.1, Eq. 15).

        As printed it can fail, for Eq. 17 lacks the 1/2 before the Hessian; twice the bound is right. Let every model have the
        loss ``x^2 (1 - |x|)`` on [-1, 1], and records be -1, 0 and 1. Then epsilon = gamma = Delta = 0, rho = 6, L = 4/27,
        and Eq. 15 allows 1 + 4/27 at 0, where the curvature is 2.
        """
        m, epsilon = _at_least("m", m, 1), _at_least("epsilon", epsilon, 0.0)
        return -self.loss_bound * m * np.expm1(-epsilon) + self.c(m)


def _at_least(name: str, value, low: float) -> np.ndarray:
    value = np.asarray(value, float)
    if value.size:
        check_range(name, float(value.min()), low)
    return value
