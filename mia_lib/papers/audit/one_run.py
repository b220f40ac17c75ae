"""Epsilon from one training run: results and exhibits of the models that were trained with canaries."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mia_lib import metrics
from mia_lib.evidence import tables
from mia_lib.published import Bank

EPSILONS = (1.0, 2.0, 4.0, 8.0, 1e9)  # the last leaves next to no noise
CONFIDENCE = 0.95
TITLES = {"gradients": "white-box: Dirac canaries", "mislabelled": "black-box: mislabelled",
          "natural": "black-box: as they come", "one run": "in theory: one run", "many runs": "in theory: 1,000 runs"}


def scores(held: Bank) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Of each kind of canaries the scores and the coins, both [M, canaries of that kind]: how far the parameters of Dirac
    canaries moved, and by how much training lowered the losses of those that are records."""
    natural, records = held.parameters["natural"], held.gain.shape[1]
    return {"gradients": (held.moved, held.coins[:, records:]),
            "mislabelled": (held.gain[:, natural:], held.coins[:, natural:records]),
            "natural": (held.gain[:, :natural], held.coins[:, :natural])}


def results(held: Bank) -> pd.DataFrame:
    """Study "one run": of each kind of canaries the bound on epsilon and the AUC, a row a training run, by what was
    `promised`; of the model its accuracy and, as "accountant", what it spent."""
    delta, rows = held.parameters["delta"], {}
    for kind, (score, coins) in scores(held).items():
        bounds = [metrics.epsilon_one_run(of_run, inside, None, delta, CONFIDENCE)
                  for of_run, inside in zip(score, coins, strict=True)]
        rows[kind] = {"epsilon": np.array(bounds, float), "auc": metrics.auc(score, coins)}
    rows |= {"model": {"accuracy": held.right}, "accountant": {"epsilon": held.spent}}
    return metrics.by_repetition(rows, promised=(promised := held.parameters["epsilon"]),
                                 study="no noise" if promised == EPSILONS[-1] else "one run")


def gaussian_noise(epsilon: float, delta: float) -> float:
    """The least noise that makes the Gaussian mechanism of sensitivity 1 private (Balle and Wang 2018, Theorem 8): sigma with
    Phi(1 / (2 sigma) - epsilon sigma) - e^epsilon Phi(-1 / (2 sigma) - epsilon sigma) = delta."""
    from scipy import optimize, stats

    def excess(sigma: float) -> float:
        at = 1 / (2 * sigma)
        return stats.norm.cdf(at - epsilon * sigma) - np.exp(epsilon + stats.norm.logcdf(-at - epsilon * sigma)) - delta

    return float(optimize.brentq(excess, 1e-3, 1e3))


def simulate_gaussian(delta: float, canaries: int = 1000, repetitions: int = 8, seed: int = 0) -> pd.DataFrame:
    """Study "in theory": the same bounds where nothing but noise is between a canary and its score, its coin, 0 or 1, plus the
    Gaussian noise of the `promised` epsilon. "one run" has so many canaries; of "many runs" each has one, and half of them
    choose the threshold."""
    frames, rng = [], np.random.default_rng([65, seed])
    for promised in EPSILONS[:-1]:
        bounds = np.empty((2, repetitions))
        for repetition in range(repetitions):
            coins = rng.random(canaries) < 0.5
            score = coins + gaussian_noise(promised, delta) * rng.normal(size=canaries)
            bounds[:, repetition] = (metrics.epsilon_one_run(score, coins, None, delta, CONFIDENCE),
                                     metrics.epsilon_lower_bound(score, coins, delta, CONFIDENCE, splits=1))
        frames.append(metrics.by_repetition({"one run": {"epsilon": bounds[0]}, "many runs": {"epsilon": bounds[1]}},
                                            study="in theory", promised=promised))
    return pd.concat(frames, ignore_index=True)


def bounds_without_errors(runs: int, delta: float = 0.0) -> dict[str, float]:
    """The most that an attack without an error can show: in one run with so many canaries, in so many runs with one each."""
    coins = np.arange(runs) % 2 == 0
    return {"one run": float(metrics.epsilon_one_run(coins, coins, (runs // 2, runs // 2), delta, CONFIDENCE)),
            "many runs": float(metrics.epsilon_lower_bound(coins, coins, delta, CONFIDENCE, splits=1))}


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """What was promised, what the accountant says was spent, and the means of the bounds, with intervals over runs."""
    there = set(zip(frame["promised"], frame["attack"], strict=True))

    def cell(promised: float, attack: str, metric: str = "epsilon", spec: str = ".2f"):
        if (promised, attack) not in there or attack == "accountant" and promised == EPSILONS[-1]:
            return tables.DASH
        number = metrics.estimate(frame, attack, metric, promised=promised)
        return tables.cell(number.interval((0.0, np.inf)) if attack in TITLES else number.value, spec)

    return pd.DataFrame([{
        "promised": "no noise" if promised == EPSILONS[-1] else f"{promised:g}", "accountant": cell(promised, "accountant"),
        **{title: cell(promised, kind) for kind, title in TITLES.items()},
        "accuracy": cell(promised, "model", "accuracy", ".0%")} for promised in sorted(frame["promised"].unique())])
