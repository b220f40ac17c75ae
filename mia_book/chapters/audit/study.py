"""Results of the chapter that audits: tidy frames. A row is an attack, a metric and a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mia_lib import metrics
from mia_lib.attacks import registry
from mia_lib.audit import statistics
from mia_lib.game import Game
from mia_lib.metrics import by_repetition
from mia_lib.published import Bank

TITLE_OF = {"auc": "AUC", "tpr_at_fpr=0.01": "TPR at 1 %"}
METRICS = tuple(TITLE_OF)
# on each network, with all others as references
ATTACKS = ("MALT", "calibrated loss", "BASE", "LiRA")
# of models trained with canaries; the last leaves next to no noise
EPSILONS = (1.0, 2.0, 4.0, 8.0, 1e9)
CONFIDENCE = 0.95


def networks(bank: Bank, recipes: Sequence[str]) -> pd.DataFrame:
    """Study "networks": `ATTACKS` on each network of each recipe, with all others of that recipe but its partner as
    references, and the accuracy on non-members.

    Args:
        bank: of `measure.changes` or `measure.twins`. recipes: names of its kinds.
    """
    frames = []
    for place, recipe in enumerate(recipes):
        where = {"study": "networks", "recipe": recipe}
        game = _game(bank, place)
        right = {"model": {"accuracy": bank.right[:, place]}}
        frames += [game.frame(ATTACKS, METRICS, **where), by_repetition(right, **where)]
    return pd.concat(frames, ignore_index=True)


def _game(bank: Bank, place: int) -> Game:
    """The game on every network of a kind, with all others of the kind but its partner as references."""
    odds = bank.margin[:, place].astype(float)
    values = {registry.LOG_ODDS: odds, "loss": np.logaddexp(0, -odds)}
    return Game(bank.members, values, {}, range(len(bank)), len(bank) - 2)


def twin_names(bank: Bank) -> list[str]:
    """Names of the kinds of networks that `measure.twins` has."""
    return ["twin", *(f"epsilon {one:g}" for one in bank.parameters["epsilons"])]


def privacy(frame: pd.DataFrame, stopped: Sequence[str]) -> pd.DataFrame:
    """Study "privacy": of each private recipe of the study "networks" and of a twin, by `noise`, the "value" of each attack
    (`by`) by each `measure`, and the accuracy, of "network".

    Args:
        frame: of `networks`. stopped: recipe of the `twin` "as accurate" for each private recipe, in their order; the one
            "to the end" is the same for all.
    """
    recipe, frames = frame["recipe"], []
    names = recipe[recipe.str.startswith("epsilon", na=False)].unique()
    for promised, early in zip(names, stopped, strict=True):
        for twin, plain in (("to the end", "twin"), ("as accurate", early)):
            for noise, name in (("without", plain), ("private", promised)):
                rows = frame[recipe == name]
                columns = {"study": "privacy", "promised": promised, "twin": twin, "noise": noise}
                columns |= {"by": rows["attack"], "measure": rows["metric"].map(TITLE_OF)}
                metric = rows["metric"].replace(dict.fromkeys(METRICS, "value"))
                frames.append(rows.assign(**columns, attack="network", metric=metric))
    return pd.concat(frames, ignore_index=True) if frames else frame.iloc[:0]


def with_references(frame: pd.DataFrame) -> pd.DataFrame:
    """Study "references": of each recipe of the study "networks" the loss beside "with references", which is an attack of its
    own in each setting (`by`)."""
    frames = []
    for name in ATTACKS[1:]:
        rows = frame[frame["attack"].isin(["MALT", name])]
        attacks = rows["attack"].replace(name, "with references")
        frames.append(rows.assign(study="references", by=name, attack=attacks))
    return pd.concat(frames, ignore_index=True)


def alarms(bank: Bank, place: int, attack: str = "MALT", tests: int = 1) -> int:
    """How many networks of a kind an audit finds by the AUC of an attack, with all others of the kind but a network's partner
    as references, at a level of 5 % for so many tests together."""
    game = _game(bank, place)
    pairs = zip(game.scores([attack])[attack], game.target_members, strict=True)
    level = (1 - CONFIDENCE) / tests
    return sum(statistics.auc_p(score, members) < level for score, members in pairs)


def tested(bank: Bank, kind: str) -> pd.DataFrame:
    """Study "tested": the share of audits that raise an alarm, by `data`, the kind of model, and `leak`, none or planted."""
    return pd.concat(
        [
            by_repetition(
                {"audit": {"alarms": bank.alarms[:, place]}}, study="tested", data=kind, leak=leak
            )
            for place, leak in enumerate(("none", "planted"))
        ],
        ignore_index=True,
    )


# ---------------------------------------------------------------------------------------------- epsilon from one training run


def canary_scores(bank: Bank) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Scores and coins for each kind of canaries, both [M, canaries of that kind]. Scores are how
    far training moved the parameters of Dirac canaries, and by how much it lowered the losses of
    canaries that are records."""
    natural, records = bank.parameters["natural"], bank.gain.shape[1]
    return {
        "gradients": (bank.moved, bank.coins[:, records:]),
        "mislabelled": (bank.gain[:, natural:], bank.coins[:, natural:records]),
        "natural": (bank.gain[:, :natural], bank.coins[:, :natural]),
    }


def bound_epsilon(score: np.ndarray, coins: np.ndarray, delta: float) -> dict[str, float]:
    """Two lower bounds on epsilon from scores and fair coins, both [n], whether of the canaries of one run or of one canary
    in many runs: "right guesses" for any mechanism (Steinke, Nasr and Jagielski 2023), and "Gaussian" if Gaussian noise
    of a canary's own hides each coin (`gaussian_bound`). What they judge by is settled beforehand."""
    return {
        "right guesses": float(metrics.epsilon_one_run(score, coins, None, delta, CONFIDENCE)),
        "Gaussian": gaussian_bound(score, coins, delta),
    }


def gaussian_bound(score: np.ndarray, coins: np.ndarray, delta: float) -> float:
    """Lower bound on epsilon where scores are Gaussian with one spread: at their median both rates have one-sided bounds of
    Clopper and Pearson, and the distance of the means, in spreads, is at least mu = Phi^-1(TPR) - Phi^-1(FPR) of these. It is
    that of a Gaussian mechanism with noise 1 / mu, of which epsilon is known."""
    from scipy import optimize, stats

    called, tail = score > np.median(score), (1 - CONFIDENCE) / 2
    hits, misses = (called & coins).sum(), (called & ~coins).sum()
    low = stats.beta.ppf(tail, max(hits, 1), coins.sum() - hits + 1)
    high = stats.beta.isf(tail, misses + 1, max((~coins).sum() - misses, 1))
    mu = float(stats.norm.ppf(low) - stats.norm.ppf(high))
    if mu <= 0 or _excess(0.0, 1 / mu, delta) <= 0:
        return 0.0
    return float(optimize.brentq(_excess, 0, 1e3, args=(1 / mu, delta)))


def canary_bounds(bank: Bank, many: bool = False) -> pd.DataFrame:
    """Study "canaries", or "no noise": both bounds on epsilon for each kind of canaries, by `bound` and what was `promised`.

    Of "one run" a row for each run, from all of its canaries; with `many` a row for each canary, from all runs: "gradients,
    many runs". Attack "model" has the accuracy of each run and "accountant" the epsilon that it spent.
    """
    delta, promised = bank.parameters["delta"], bank.parameters["epsilon"]
    study = "no noise" if promised == EPSILONS[-1] else "canaries"
    where = {"study": study, "promised": promised}
    frames = []
    for kind, (scores, coins) in canary_scores(bank).items():
        pairs = zip(scores.T, coins.T, strict=True) if many else zip(scores, coins, strict=True)
        bounds = pd.DataFrame([bound_epsilon(*one, delta) for one in pairs if len(one[0])])
        name = f"{kind}, many runs" if many else kind
        frames += [
            by_repetition({name: {"epsilon": bounds[bound].to_numpy()}}, bound=bound, **where)
            for bound in bounds
        ]
    if not many:
        of_runs = {"model": {"accuracy": bank.right}, "accountant": {"epsilon": bank.spent}}
        frames.append(by_repetition(of_runs, **where))
    return pd.concat(frames, ignore_index=True)


def gaussian_noise(epsilon: float, delta: float) -> float:
    """The least noise that makes the Gaussian mechanism of sensitivity 1 private (Balle and Wang 2018, Theorem 8): sigma with
    Phi(1 / (2 sigma) - epsilon sigma) - e^epsilon Phi(-1 / (2 sigma) - epsilon sigma) = delta."""
    from scipy import optimize

    return float(optimize.brentq(lambda sigma: _excess(epsilon, sigma, delta), 1e-3, 1e3))


def _excess(epsilon: float, sigma: float, delta: float) -> float:
    from scipy import stats

    at = 1 / (2 * sigma)
    above = epsilon + stats.norm.logcdf(-at - epsilon * sigma)
    return stats.norm.cdf(at - epsilon * sigma) - np.exp(above) - delta


def simulate_gaussian(
    delta: float, canaries: int = 1000, repetitions: int = 8, seed: int = 0
) -> pd.DataFrame:
    """Study "canaries", attack "in theory": both bounds where only noise stands between a canary and its score, which is its
    coin, 0 or 1, plus the Gaussian noise of the `promised` epsilon. Of one run and of many it is the same."""
    frames, rng = [], np.random.default_rng([65, seed])
    for promised in EPSILONS[:-1]:
        coins = rng.random((repetitions, canaries)) < 0.5
        score = coins + gaussian_noise(promised, delta) * rng.normal(size=coins.shape)
        bounds = pd.DataFrame(
            [bound_epsilon(*one, delta) for one in zip(score, coins, strict=True)]
        )
        where = {"study": "canaries", "promised": promised}
        frames += [
            by_repetition(
                {"in theory": {"epsilon": bounds[bound].to_numpy()}}, bound=bound, **where
            )
            for bound in bounds
        ]
    return pd.concat(frames, ignore_index=True)
