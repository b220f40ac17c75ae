"""Results of the chapter that audits: tidy frames. A row is an attack, a metric and a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mia_lib import audit, metrics, signals
from mia_lib.attacks import bayes, registry
from mia_lib.audit import inputs
from mia_lib.game import Game
from mia_lib.metrics import by_repetition, by_target
from mia_lib.published import Bank

METRICS = ("auc", "tpr_at_fpr=0.01")
NOISE = ("without", "private")  # of `measure.twins`
# of models trained with canaries; the last leaves next to no noise
EPSILONS = (1.0, 2.0, 4.0, 8.0, 1e9)
CONFIDENCE = 0.95


def forests(held: Bank) -> pd.DataFrame:
    """Study "forests": the loss and the accuracy on non-members by least records of a `leaf`; "no model" is the control."""
    leaves = held.parameters["leaves"] or [1, 5, 20]
    control = by_target(
        {"no model": held.blind}, held.members, METRICS, study="forests", leaf=leaves[0]
    )
    return pd.concat([control, _by_kind(held, "forests", "leaf", leaves)], ignore_index=True)


def twins(held: Bank) -> pd.DataFrame:
    """Study "twins": the loss and the accuracy on non-members by `noise`, one of `NOISE`."""
    return _by_kind(held, "twins", "noise", NOISE)


def _by_kind(held: Bank, study: str, column: str, kinds: Sequence) -> pd.DataFrame:
    """A study of models of several kinds with the same members; `column` holds the kind."""
    frames = []
    for place, kind in enumerate(kinds):
        where = {"study": study, column: kind}
        frames += [
            by_target({"loss": bayes.malt(held.loss[:, place])}, held.members, METRICS, **where),
            by_repetition({"model": {"accuracy": held.right[:, place]}}, **where),
        ]
    return pd.concat(frames, ignore_index=True)


def tested(held: Bank, kind: str) -> pd.DataFrame:
    """Study "tested": the share of audits that raise an alarm, by `data`, the kind of model, and `leak`, none or planted."""
    return pd.concat(
        [
            by_repetition(
                {"audit": {"alarms": held.alarms[:, place]}}, study="tested", data=kind, leak=leak
            )
            for place, leak in enumerate(("none", "planted"))
        ],
        ignore_index=True,
    )


def references(report: audit.Report) -> pd.DataFrame:
    """Study "references": attacks on each of an audit's own references by the other references,
    without its complement."""
    models, pool = inputs.references(report.inputs, report.plan.references), report.inputs.pool
    loss, odds = (
        signal(models, pool).astype(float)
        for signal in (signals.loss, signals.logit_scaled_confidence)
    )
    game = Game(
        models.members,
        {registry.LOG_ODDS: odds, "loss": loss},
        {},
        range(len(models)),
        len(models) - 2,
    )
    return game.frame(["MALT", "calibrated loss", "LiRA"], METRICS, study="references")


# ---------------------------------------------------------------------------------------------- epsilon from one training run


def canary_scores(held: Bank) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Scores and coins for each kind of canaries, both [M, canaries of that kind]. Scores are how
    far training moved the parameters of Dirac canaries, and by how much it lowered the losses of
    canaries that are records."""
    natural, records = held.parameters["natural"], held.gain.shape[1]
    return {
        "gradients": (held.moved, held.coins[:, records:]),
        "mislabelled": (held.gain[:, natural:], held.coins[:, natural:records]),
        "natural": (held.gain[:, :natural], held.coins[:, :natural]),
    }


def one_run(held: Bank) -> pd.DataFrame:
    """Study "one run": the bound on epsilon and the AUC for each kind of canaries, a row for each
    training run, by what was `promised`; attack "model" has its accuracy and "accountant" the
    epsilon that it spent."""
    delta, rows = held.parameters["delta"], {}
    for kind, (score, coins) in canary_scores(held).items():
        bounds = [
            metrics.epsilon_one_run(of_run, inside, None, delta, CONFIDENCE)
            for of_run, inside in zip(score, coins, strict=True)
        ]
        rows[kind] = {"epsilon": np.array(bounds, float), "auc": metrics.auc(score, coins)}
    rows |= {"model": {"accuracy": held.right}, "accountant": {"epsilon": held.spent}}
    return by_repetition(
        rows,
        promised=(promised := held.parameters["epsilon"]),
        study="no noise" if promised == EPSILONS[-1] else "one run",
    )


def many_runs(held: Bank) -> pd.DataFrame:
    """Rows of the study "one run" for the attacks "gradients, many runs" and "mislabelled, many
    runs": the classic bound on epsilon from all runs, half of which choose the threshold, a value
    for each canary."""
    delta, promised, rows = held.parameters["delta"], held.parameters["epsilon"], {}
    for kind, (score, coins) in canary_scores(held).items():
        bounds = [
            metrics.epsilon_lower_bound(of_canary, inside, delta, CONFIDENCE, splits=1)
            for of_canary, inside in zip(score.T, coins.T, strict=True)
        ]
        rows |= {f"{kind}, many runs": {"epsilon": np.array(bounds, float)}} if bounds else {}
    return by_repetition(
        rows, promised=promised, study="no noise" if promised == EPSILONS[-1] else "one run"
    )


def gaussian_noise(epsilon: float, delta: float) -> float:
    """The least noise that makes the Gaussian mechanism of sensitivity 1 private (Balle and Wang 2018, Theorem 8): sigma with
    Phi(1 / (2 sigma) - epsilon sigma) - e^epsilon Phi(-1 / (2 sigma) - epsilon sigma) = delta."""
    from scipy import optimize, stats

    def excess(sigma: float) -> float:
        at = 1 / (2 * sigma)
        return (
            stats.norm.cdf(at - epsilon * sigma)
            - np.exp(epsilon + stats.norm.logcdf(-at - epsilon * sigma))
            - delta
        )

    return float(optimize.brentq(excess, 1e-3, 1e3))


def simulate_gaussian(
    delta: float, canaries: int = 1000, repetitions: int = 8, seed: int = 0
) -> pd.DataFrame:
    """Study "in theory": the same bounds where only noise stands between a canary and its score.
    The score is its coin, 0 or 1, plus the Gaussian noise of the `promised` epsilon. "one run" has
    so many canaries; "many runs" has one canary in each of so many runs, half of which choose the
    threshold."""
    frames, rng = [], np.random.default_rng([65, seed])
    for promised in EPSILONS[:-1]:
        bounds = np.empty((2, repetitions))
        for repetition in range(repetitions):
            coins = rng.random(canaries) < 0.5
            score = coins + gaussian_noise(promised, delta) * rng.normal(size=canaries)
            bounds[:, repetition] = (
                metrics.epsilon_one_run(score, coins, None, delta, CONFIDENCE),
                metrics.epsilon_lower_bound(score, coins, delta, CONFIDENCE, splits=1),
            )
        frames.append(
            by_repetition(
                {"one run": {"epsilon": bounds[0]}, "many runs": {"epsilon": bounds[1]}},
                study="in theory",
                promised=promised,
            )
        )
    return pd.concat(frames, ignore_index=True)


def bounds_without_errors(runs: int) -> dict[str, float]:
    """The largest bounds on epsilon, of an attack without an error: in one run with `runs`
    canaries, and in `runs` runs with one canary each."""
    coins = np.arange(runs) % 2 == 0
    return {
        "one run": float(
            metrics.epsilon_one_run(coins, coins, (runs // 2, runs // 2), 0.0, CONFIDENCE)
        ),
        "many runs": float(metrics.epsilon_lower_bound(coins, coins, 0.0, CONFIDENCE, splits=1)),
    }
