"""Rates at which a threshold function is exceeded: the theorems and Lemma 3 of Bertran et al.
(2023), each with a trial.

A record with the score s(x, y) is called a member where ``s >= q(x)``, and q is fitted to scores of non-members by the pinball
loss (Eq. 1). alpha is the nominal false positive rate, ``1 - alpha`` the level of the quantile.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import integrate, stats

from mia_lib.errors import check_range
from mia_lib.metrics import pinball_loss

# of threshold functions, by what they add
CLASSES = {"constant": (), "linear": ("x",), "linear + 1[x > 1]": ("x", "x > 1")}
GROUPS = {"all": lambda x: x > -np.inf, "x > 1": lambda x: x > 1, "x < -1": lambda x: x < -1}


def world(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """x and score ``1 + x / 2 + e^(x / 2) eps`` of n non-members, x and eps standard normal: the spread grows with x."""
    x, noise = np.random.default_rng(seed).standard_normal((2, n))
    return x, 1 + x / 2 + np.exp(x / 2) * noise


def columns(name: str, x: np.ndarray) -> np.ndarray:
    """Columns [n, p] of which a class of `CLASSES` may add multiples to a constant."""
    known = {"x": x, "x > 1": (x > 1).astype(float)}
    return np.stack([known[column] for column in CLASSES[name]] or [np.zeros_like(x)], 1)


def groups(seed: int = 0, n: int = 4000, fresh: int = 200_000) -> pd.DataFrame:
    """Theorems 1 and 2 in `world`: false positive rates of quantile regressions, in groups, where alpha = 0.05 is asked for.

    A regression with p coefficients passes through p records. Where the indicator of a group of n_g records is in its class,
    moving the group's threshold must not help, so the group's rate in the sample misses alpha by at most p / n_g.

    Args:
        n: records to fit. fresh: others, on which rates are counted, too.

    Returns:
        a row for each class and group: columns class, group, closed (whether the class has the group's indicator), sample and
        fresh, the rates; excess, by how much that of the sample misses alpha beyond p / n_g; pinball, of all fresh records.
    """
    from sklearn.linear_model import QuantileRegressor

    (x, score), (other, theirs), rows = world(n, seed), world(fresh, seed + 1), []
    alpha = 0.05
    for name in CLASSES:
        fit = QuantileRegressor(quantile=1 - alpha, alpha=0, solver="highs-ds").fit(
            columns(name, x), score
        )
        above, bar = score > fit.predict(columns(name, x)) + 1e-9, fit.predict(columns(name, other))
        for group, inside in GROUPS.items():
            here, there = inside(x), inside(other)
            missed = abs(above[here].mean() - alpha) - (1 + len(CLASSES[name])) / here.sum()
            rows.append(
                {
                    "class": name,
                    "group": group,
                    "closed": group == "all" or group in CLASSES[name],
                    "sample": above[here].mean(),
                    "fresh": (theirs > bar)[there].mean(),
                    "excess": max(missed, 0.0),
                    "pinball": pinball_loss(bar, theirs, 1 - alpha),
                }
            )
    return pd.DataFrame(rows)


def gap_of_shift(alpha: float, alpha_prime: float, law=stats.uniform) -> float:
    """Pinball loss that is saved by moving a threshold from the rate alpha' to alpha, for a law of
    the residual.

    With F its distribution function, ``int (1 - alpha - F(u)) du`` from ``F^-1(1 - alpha')`` to ``F^-1(1 - alpha)``. F climbs
    no faster than the largest density rho, so this is at least ``(alpha - alpha')^2 / (2 rho)`` (Lemma 3), which a uniform
    residual attains. (Symbols of the paper's formula are lost in the text that we have.)
    """
    for name, value in (("alpha", alpha), ("alpha_prime", alpha_prime)):
        check_range(name, value, 0, 1)
    return integrate.quad(
        lambda u: 1 - alpha - law.cdf(u), law.ppf(1 - alpha_prime), law.ppf(1 - alpha), epsabs=1e-13
    )[0]


def conformal_law(n: int, alpha: float) -> tuple[float, float]:
    """Ends of the central 95 % of the false positive rate of a threshold taken from n scores, over draws of these.

    The threshold is the k-th smallest score, ``k = ceil((n + 1) (1 - alpha))``; for continuous scores its false positive rate
    is ``Beta(n + 1 - k, k)``, whatever their law.
    """
    order = int(np.ceil((n + 1) * (1 - check_range("alpha", alpha, 1 / (n + 1), 1)) - 1e-9))
    low, high = stats.beta(n + 1 - order, order).interval(0.95)
    return float(low), float(high)
