"""Experiments of the Bayes-optimal chapter (Sablayrolles et al. 2019, section 6)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial, reduce

import numpy as np
import pandas as pd
from scipy.special import expit

from mia_lib import membership, metrics, progress, signals, store
from mia_lib.attacks import baselines, bayes, calibration
from mia_lib.data import Dataset
from mia_lib.errors import MiaError
from mia_lib.metrics.interval import Interval
from mia_lib.metrics.numbers import log_odds, packed_ranks
from mia_lib.training import Ensemble, TrainConfig, train

C_GRID = tuple(10.0**k for k in range(-2, 5))
VALIDATION_SEEDS = 40  # other splits of the same pool, on which C is chosen


def plan(records: Dataset, sweep: Dataset, *, classes: list[int], class_pairs: int, banks: int, bank_records: int,
         references: int, extractors: int, feature_epochs: int, sweep_games: int, sweep_records: int, config: TrainConfig,
         recipes: list[TrainConfig]) -> pd.DataFrame:
    """What a run will train, checked against the data before anything is trained.

    Args:
        records: of Tables 1 and 2. sweep: of Table 3, without what Table 2 uses.
        classes: the two classes of Table 1. class_pairs: how many pairs. extractors: of its features, feature_epochs of each.
        banks, bank_records, references: of Table 2. sweep_games, sweep_records: of Table 3.
        config: of the models of Table 2. recipes: of those of Table 3.

    Returns:
        DataFrame, a row a kind of model: exhibit, models, members of each, epochs.

    Raises:
        MiaError: more records asked for than there are, classes that are not two different ones of the set, an odd number
            of references, an architecture that cannot take the records.
    """
    known = range(len(records.classes))
    if len(classes) != 2 or len(set(classes)) != 2 or not set(classes) <= set(known):
        raise MiaError(f"classes = {classes}: two different numbers from 0 to {len(known) - 1} are needed, of "
                       f"{', '.join(f'{k} {name}' for k, name in enumerate(records.classes))}.")
    pairs_of_classes(classes, len(known), class_pairs)
    if references % 2:
        raise MiaError(f"references = {references}: an even number is needed, since models come in complementary pairs.")
    for argument, count, size, available in (("banks x bank_records", banks, bank_records, records),
                                             ("sweep_games x sweep_records", sweep_games, sweep_records, sweep)):
        if count * size > len(available):
            raise MiaError(f"{argument} = {count} x {size} = {count * size} records, but {available.name} has "
                           f"{len(available)} left for them. Ask for fewer.")
    for set_, recipe in [(records, config), *((sweep, recipe) for recipe in recipes)]:
        train(set_, np.ones((1, len(set_)), bool), recipe)
    return pd.DataFrame([
        {"exhibit": "Table 1, features", "models": extractors, "members of each": "all of the feature data",
         "epochs": feature_epochs},
        {"exhibit": "Table 2", "models": banks * (references + 2), "members of each": f"{bank_records // 2} of {bank_records}",
         "epochs": config.epochs},
        {"exhibit": "Table 3", "models": len(recipes) * sweep_games,
         "members of each": f"{sweep_records // 2} of {sweep_records}", "epochs": recipes[0].epochs}])


# ---------------------------------------------------------------------------------- Table 1: logistic regression


def design(features: np.ndarray) -> np.ndarray:
    """Rows scaled to length one, with a constant column: [N, F] -> float64 [N, F + 1]."""
    features = np.asarray(features, np.float64)
    length = np.linalg.norm(features, axis=1, keepdims=True)
    return np.hstack([features / np.maximum(length, 1e-12), np.ones((len(features), 1))])


def logistic(x: np.ndarray, y: np.ndarray, c: float) -> np.ndarray:
    """Parameters [P] that minimise C sum(loss) + ||theta||^2 / 2, to a tight tolerance.

    Args:
        x: [n, P], with a constant column. y: 0 or 1, [n]. c: inverse strength of the penalty.
    """
    from sklearn.linear_model import LogisticRegression

    solver = LogisticRegression(C=c, fit_intercept=False, tol=1e-8, max_iter=5000, solver="newton-cholesky")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a solution that did not converge must not pass for one
        return solver.fit(x, y).coef_[0]


def logistic_loss(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Cross-entropy of each record in nats, [N]."""
    return np.logaddexp(0.0, -(2 * y - 1) * (x @ theta))


def logistic_gradients(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Gradient of each record's loss, [N, P]."""
    return (expit(x @ theta) - y)[:, None] * x


def logistic_hessian(theta: np.ndarray, x: np.ndarray, c: float) -> np.ndarray:
    """Hessian [P, P] of the summed loss and the penalty ||theta||^2 / (2 C)."""
    p = expit(x @ theta)
    return (x * (p * (1 - p))[:, None]).T @ x + np.eye(x.shape[1]) / c


def three_way_split(records: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Indices of members, non-members, records of the reference model (n / 2 each), and all that are left.

    Raises:
        MiaError: fewer than 1.5 n records.
    """
    if n % 2 or 3 * n // 2 > records:
        raise MiaError(f"n = {n}: it must be even, and members, non-members and the reference model take 1.5 n = "
                       f"{3 * n // 2} records of the {records} there are.")
    order = np.random.default_rng([n, seed]).permutation(records)
    half = n // 2
    return order[:half], order[half:n], order[n:n + half], order[n + half:]


def check_sizes(sizes: Sequence[int], records: int) -> None:
    """Refuse sizes of games of which none fits: those that do not are shown as not run, beside one at least that is.

    Raises:
        MiaError: with the largest that fits.
    """
    if min(sizes) * 3 // 2 >= records:
        raise MiaError(f"sizes = {list(sizes)}: a game takes 1.5 n records, and two classes have {records}. One at least must "
                       f"be at most {2 * (records - 1) // 3}.")


def choose_c(x: np.ndarray, y: np.ndarray, n: int) -> float:
    """The C of `C_GRID` with the best accuracy on records left out, over splits of their own.

    It serves the model's accuracy; the attacks have no say.
    """
    accuracy = np.zeros(len(C_GRID))
    for seed in range(VALIDATION_SEEDS):
        inside, outside, _, _ = three_way_split(len(y), n, 10_000_000 + seed)
        for k, c in enumerate(C_GRID):
            accuracy[k] += np.mean((x[outside] @ logistic(x[inside], y[inside], c) > 0) == y[outside])
    return C_GRID[int(np.argmax(accuracy))]


@dataclass(frozen=True)
class Features:
    """Frozen features of records: the last activations of a model, computed when first needed.

    Attributes:
        models: an ensemble whose first model extracts them.
        records: whose features they are.
    """

    models: Ensemble
    records: Dataset

    @property
    def spec(self) -> dict:
        """What determines them."""
        return {"model": store.address(self.models.spec(0)), "records": self.records.fingerprint}

    @property
    def width(self) -> int:
        """Number F of features."""
        return int(self.models.untrained().head.in_features)

    @cached_property
    def values(self) -> np.ndarray:
        """[N, F]."""
        return signals.features(self.models.model(0), self.records.x)


@dataclass(frozen=True, eq=False)
class Logistic:
    """The game of Table 1, played with S splits of one pool, n / 2 members and n / 2 others each.

    Attributes:
        scores: of "malt", "matt", the 0-1 attack "gap", the "calibrated" loss and Eq. 39, "eq39", [S, n].
        members: bool [S, n].
        train_accuracy, validation_accuracy: of the models, [S].
        c: inverse strength of the penalty.
    """

    scores: dict[str, np.ndarray]
    members: np.ndarray
    train_accuracy: np.ndarray
    validation_accuracy: np.ndarray
    c: float


def play_logistic(features: np.ndarray, labels: np.ndarray, n: int, seeds: int, c: float | None = None,
                  seed: int = 0) -> Logistic:
    """Play the game of Table 1 `seeds` times at size n.

    Args:
        features: [N, F]. labels: 0 or 1, [N].
        n: n / 2 members, n / 2 non-members, n / 2 further records for the reference model.
        c: inverse strength of the penalty; chosen on splits of its own when None.
        seed: of the first split; the others' follow it.
    """
    x, y = design(features), np.asarray(labels)
    strength = choose_c(x, y, n) if c is None else c
    rows, train_accuracy, validation_accuracy = [], [], []
    for split in progress.track(range(seed, seed + seeds), f"Table 1, n = {n}"):
        inside, outside, apart, left = three_way_split(len(y), n, split)
        judged = np.concatenate([inside, outside])
        theta, theta0 = logistic(x[inside], y[inside], strength), logistic(x[apart], y[apart], strength)
        loss, loss0 = (logistic_loss(t, x[judged], y[judged]) for t in (theta, theta0))
        right = (x[judged] @ theta > 0) == y[judged]
        gradients = logistic_gradients(theta0, x[judged], y[judged])
        matt = bayes.matt(theta, theta0, gradients)
        second = bayes.matt_second_term(gradients, logistic_hessian(theta0, x[apart], strength))
        held_out = left if len(left) else outside
        rows.append({"malt": bayes.malt(loss), "matt": matt, "gap": baselines.gap(right),
                     "calibrated": calibration.calibrate(-loss, -loss0), "eq39": matt + second})
        train_accuracy.append(right[: n // 2].mean())
        validation_accuracy.append(((x[held_out] @ theta > 0) == y[held_out]).mean())
    scores, members = {name: np.array([row[name] for row in rows]) for name in rows[0]}, np.arange(n) < n // 2
    return Logistic(scores, np.tile(members, (seeds, 1)), np.array(train_accuracy), np.array(validation_accuracy), strength)


def measured(played: Logistic) -> dict[str, np.ndarray]:
    """What is kept of the games: see `numbers_of`."""
    scores, members, numbers = played.scores, played.members, {}
    for attack, metric in MEASURED:
        function = metrics.auc if attack == "gap" and metric in ACCURACIES else TABLE_1[metric]
        numbers[f"{attack}.{metric}"] = function(scores[attack], members)
    return {**numbers, "train_accuracy": played.train_accuracy, "validation_accuracy": played.validation_accuracy,
            "C": np.array(played.c), "spread.first": scores["matt"].std(1),
            "spread.second": (scores["eq39"] - scores["matt"]).std(1)}


@dataclass(frozen=True, eq=False)
class Numbers:
    """What Table 1 needs of the games at one size, a number a split.

    Attributes:
        numbers: [S] for each (attack, metric) of `MEASURED`. Metrics are "attack_accuracy" with the best threshold on the
            records judged, as in the paper; "rehearsed_accuracy" with a threshold from other splits;
            "cross_validated_accuracy"; "map_test", "map_train" and "auc". The 0-1 attack has no threshold to choose: all its
            accuracies are its AUC.
        train_accuracy, validation_accuracy: of the models, [S].
        c: inverse strength of the penalty.
        first_spread, second_spread: standard deviation over records of the two terms of Eq. 39, [S].
    """

    numbers: dict[tuple[str, str], np.ndarray]
    train_accuracy: np.ndarray
    validation_accuracy: np.ndarray
    c: float
    first_spread: np.ndarray
    second_spread: np.ndarray


def numbers_of(kept: dict[str, np.ndarray]) -> Numbers:
    """From kept arrays: "ATTACK.METRIC", accuracies of the models, "C", "spread.first" and "spread.second"."""
    return Numbers({pair: kept[".".join(pair)] for pair in MEASURED}, kept["train_accuracy"], kept["validation_accuracy"],
                   float(kept["C"]), kept["spread.first"], kept["spread.second"])


def logistic_games(features: Features, labels: np.ndarray, n: int, seeds: int, c: float | None = None,
                   seed: int = 0) -> Numbers:
    """The numbers of Table 1 at size n, kept in the store.

    Args:
        features: frozen features of N records. labels, n, seeds, c, seed: as for `play_logistic`.
    """
    spec = {"features": features.spec, "labels": store.fingerprint(labels), "n": n, "seeds": seeds, "grid": list(C_GRID),
            "C": c, "seed": seed}
    return numbers_of(store.study("bayes.logistic_games", spec,
                                  lambda: measured(play_logistic(features.values, labels, n, seeds, c, seed))))


def cross_validated_accuracy(scores: np.ndarray, members: np.ndarray, folds: int = 10, seed: int = 0) -> np.ndarray:
    """Balanced accuracy within each game with the threshold chosen on the other folds of its records.

    Args:
        scores: [T, N]. members: bool [T, N].
        folds: each holds its share of members and of non-members.

    Returns:
        [T].
    """
    rng, accuracy = np.random.default_rng(seed), np.empty(len(scores))
    for t, (score, member) in enumerate(zip(scores, members, strict=True)):
        fold, called = np.empty(len(score), int), np.empty(len(score), bool)
        for side in (member, ~member):
            fold[side] = rng.permutation(np.arange(side.sum()) % folds)
        for k in range(folds):
            called[fold == k] = score[fold == k] >= metrics.best_threshold(score[fold != k], member[fold != k])
        accuracy[t] = metrics.auc(called, member)
    return accuracy


@cache
def peak_of_noise(n: int, seeds: int = 10_000) -> float:
    """Mean peak accuracy of scores that know nothing, n / 2 members and n / 2 non-members: what choosing the threshold on the
    records judged is worth by itself. With so many seeds it is known to a few hundredths of a point."""
    rng, members = np.random.default_rng([n, 7]), np.arange(n) < n // 2
    return float(np.mean([metrics.balanced_accuracy(rng.normal(size=(100, n)), members) for _ in range(seeds // 100)]))


TABLE_1 = {"attack_accuracy": metrics.balanced_accuracy, "rehearsed_accuracy": metrics.rehearsed_accuracy,
           "cross_validated_accuracy": cross_validated_accuracy,
           "map_test": metrics.average_precision_non_members, "map_train": metrics.average_precision, "auc": metrics.auc}
ACCURACIES = ("attack_accuracy", "rehearsed_accuracy", "cross_validated_accuracy")
MEASURED = (*((attack, metric) for attack in ("gap", "malt", "matt") for metric in TABLE_1),
            ("calibrated", "auc"), ("eq39", "auc"))


ENOUGH_PAIRS = 3  # of classes, for an interval over them


def pairs_of_classes(first: list[int], classes: int, count: int) -> list[list[int]]:
    """Pairs of classes that share none: the first, then the others in order.

    Raises:
        MiaError: there are not that many.
    """
    others = [k for k in range(classes) if k not in first]
    if count > 1 + len(others) // 2:
        raise MiaError(f"class_pairs = {count}: {classes} classes make {1 + len(others) // 2} pairs that share none.")
    return [list(first), *([others[2 * k], others[2 * k + 1]] for k in range(count - 1))]


def over_splits(values: np.ndarray) -> Interval:
    """Mean and Student t interval over splits of the same pool of records."""
    return metrics.t_interval(values, covers=f"{len(values)} splits of one pool")


def over(games: Sequence[Numbers], number: Callable[[Numbers], np.ndarray]) -> Interval:
    """Mean of a number with its interval: over pairs of classes, which share no record, or over splits where pairs are few.

    Args:
        games: of each pair of classes, at one n.
        number: of the games of one pair, [S].
    """
    if len(games) >= ENOUGH_PAIRS:
        return metrics.t_interval([number(one).mean() for one in games], covers=f"{len(games)} pairs of classes")
    return over_splits(number(games[0]))


NAMES = {"gap": "0-1", "malt": "MALT", "matt": "MATT"}  # key of `Numbers` -> the paper's name


# --------------------------------------------------------------------------------------- Table 2: the bank of models


@dataclass(frozen=True)
class Bank:
    """What one bank of models says about its own N records; several banks are independent repetitions.

    Attributes:
        models: in complementary pairs; they are trained when a number of theirs is first needed.
    """

    models: Ensemble

    @property
    def game(self) -> membership.Bank:
        """Who is trained on what; one model of each pair may be attacked."""
        return membership.Bank(self.models.members, tuple(range(0, len(self.models), 2)))

    @property
    def labels(self) -> np.ndarray:
        """int [N]."""
        return self.models.records.y

    @cached_property
    def loss(self) -> np.ndarray:
        """[M, N]."""
        return signals.loss(self.models, self.models.records)

    @cached_property
    def correct(self) -> np.ndarray:
        """bool [M, N]."""
        return signals.correctness(self.models, self.models.records)

    @cached_property
    def probabilities(self) -> np.ndarray:
        """[M, N, K]."""
        return signals.probabilities(self.models, self.models.records)


@dataclass(frozen=True, eq=False)
class Summary:
    """How well a bank's models fit, and how much membership moves a loss.

    Attributes:
        right_inside, right_outside: shares of members and others that are classified correctly, [].
        threshold: the loss that best splits models with a record from those without, [N].
        inside, outside: mean loss of a record under models with it and under those without, [N].
    """

    right_inside: np.ndarray
    right_outside: np.ndarray
    threshold: np.ndarray
    inside: np.ndarray
    outside: np.ndarray


def summary(bank: Bank) -> Summary:
    """How well a bank's models fit; kept in the store."""
    def compute() -> dict[str, np.ndarray]:
        inside = bank.game.members
        return {"right_inside": bank.correct[inside].mean(), "right_outside": bank.correct[~inside].mean(),
                "threshold": bayes.best_split(bank.loss, inside).astype(np.float32),
                "inside": np.average(bank.loss, 0, inside).astype(np.float32),
                "outside": np.average(bank.loss, 0, ~inside).astype(np.float32)}

    return Summary(**store.study("bayes.summary", {"models": bank.models.key}, compute))


MAST = {"MAST (best split)": "best_split", "MAST (mean out)": "mean_out", "MAST (softmin)": "softmin"}
ATTACKS = ("0-1", "Shadow models", "MALT (per class)", "MALT", *MAST)  # of Table 2


def references_without(bank: Bank, *models: int) -> np.ndarray:
    """Models of the bank that share no pair with any of `models`."""
    return reduce(np.intersect1d, map(bank.game.references, models))


def score(bank: Bank, target: int, attack: str, without: tuple[int, ...] = ()) -> np.ndarray:
    """Score [N] of "MALT" or a name of `MAST` against model `target`, with the other pairs of its bank as references.

    Args:
        without: further models whose pairs must not serve as references.
    """
    if attack == "MALT":
        return bayes.malt(bank.loss[target])
    r = references_without(bank, target, *without)
    return bayes.mast(bank.loss[target], bank.loss[r], bank.game.members[r], MAST[attack])


def decide(bank: Bank, target: int, attack: str, rehearsals: int) -> np.ndarray:
    """Who is called a member, bool [N], with the threshold that is best against the attacker's own models.

    The attacker trained the references and so knows who is in them: `rehearsals` of them, one a pair, are attacked
    with the rest as references, and the threshold found there is applied to the target.

    Raises:
        MiaError: no pair is left to rehearse on.
    """
    own = [int(r) for r in references_without(bank, target) if r % 2 == 0][:rehearsals]
    if len(references_without(bank, target, *own[:1])) < 2 or not own:
        raise MiaError(f"a bank of {len(bank.models)} models leaves no references to rehearse with: at least 6 are needed.")
    threshold = metrics.best_threshold(np.concatenate([score(bank, r, attack, (target,)) for r in own]),
                                       np.concatenate([bank.game.members[r] for r in own]))
    return score(bank, target, attack) >= threshold


def class_thresholds(bank: Bank, target: int, rehearsals: int) -> np.ndarray:
    """MALT with a threshold for each class, from rehearsals: score [N] whose threshold is zero."""
    own = [int(r) for r in references_without(bank, target) if r % 2 == 0][:rehearsals]
    out = np.empty(len(bank.labels))
    for label in np.unique(bank.labels):
        of_class = bank.labels == label
        scores, members = bayes.malt(bank.loss[own][:, of_class]), bank.game.members[own][:, of_class]
        out[of_class] = bayes.malt(bank.loss[target, of_class]) - metrics.best_threshold(scores.ravel(), members.ravel())
    return out


def shadow_score(bank: Bank, target: int, shadows: int, apart: Bank | None = None, seed: int = 0) -> np.ndarray:
    """Shokri et al.'s attack on model `target`.

    Args:
        shadows: how many shadow models.
        apart: the bank they come from, whose records are others than the target's, as in that paper; when None they are
            models of the other pairs of the target's own bank, which know the records under attack.
    """
    if apart is not None:
        return _from_apart(bank, shadows, apart, seed)[target]
    r = references_without(bank, target)[:shadows]
    return baselines.shadow_models(bank.probabilities[target], bank.labels, bank.probabilities[r], bank.labels,
                                   bank.game.members[r], seed=seed)


@lru_cache(maxsize=1)  # targets are asked about in turn, and the attack's networks are the same for all
def _from_apart(bank: Bank, shadows: int, apart: Bank, seed: int) -> np.ndarray:
    """The attack on every model of a bank with shadow models of another, [M, N]."""
    return baselines.shadow_models(bank.probabilities, bank.labels, apart.probabilities[:shadows], apart.labels,
                                   apart.game.members[:shadows], seed=seed)


COUNTING = "counting"


@dataclass(frozen=True, eq=False)
class Complement:
    """Attacks on the targets of a bank, whose complements are put aside, and kept among the references.

    Attributes:
        members: bool [T, N]. aside, kept: attack -> ranks [T, N]. `COUNTING` looks at no loss; its score is minus the number
            of references that hold a record.
        held: how many references hold a member, and how many another record, [2, 2]: of the first target's, aside and kept.
    """

    members: np.ndarray
    aside: dict[str, np.ndarray]
    kept: dict[str, np.ndarray]
    held: np.ndarray


def complement(bank: Bank) -> Complement:
    """What a target's complement among the references gives away; kept in the store."""
    names = (COUNTING, *MAST, "LiRA")

    def compute() -> dict[str, np.ndarray]:
        members, signal = bank.game.members, log_odds(bank.loss)
        ranks: dict[str, list[np.ndarray]] = {}
        held = []
        for t in bank.game.attacked:
            for way, r in (("aside", bank.game.references(t)), ("kept", np.delete(np.arange(len(members)), t))):
                count = members[r].sum(0)
                lira = baselines.lira_online(signal[t], signal[r], members[r], fixed_variance=True)
                scores = {COUNTING: -count, "LiRA": lira,
                          **{name: bayes.mast(bank.loss[t], bank.loss[r], members[r], how) for name, how in MAST.items()}}
                for name in names:
                    ranks.setdefault(f"{way}.{name}", []).append(packed_ranks(scores[name]))
                held.append([count[members[t]].mean(), count[~members[t]].mean()])
        return {"members": bank.game.judged, "held": np.array(held[:2]),
                **{name: np.stack(one) for name, one in ranks.items()}}

    arrays = store.study("bayes.complement", {"models": bank.models.key}, compute)
    return Complement(arrays["members"], *({name: arrays[f"{way}.{name}"] for name in names} for way in ("aside", "kept")),
                      arrays["held"])


@dataclass(frozen=True)
class Judged:
    """All attacks on all targets of all banks, rows ordered by bank.

    Attributes:
        scores: of `ATTACKS`, as ranks within a target, [T, N]. decisions: bool [T, N].
        members: bool [T, N]. groups: int [T], the bank of each target.
    """

    scores: dict[str, np.ndarray]
    decisions: dict[str, np.ndarray]
    members: np.ndarray
    groups: np.ndarray


def judge_banks(banks: list[Bank], targets: int, shadows: int, rehearsals: int = 2) -> Judged:
    """Run every attack of Table 2; scores and decisions are kept in the store, target by target.

    Args:
        banks: independent repetitions.
        targets: models attacked in each bank, one a pair.
        shadows: shadow models of Shokri et al.'s attack, from the next bank; also the models from which MALT's thresholds
            for each class come.
        rehearsals: of the attacker's own models on which thresholds are chosen.
    """
    rows = [(g, target) for g, bank in enumerate(banks) for target in bank.game.attacked[:targets]]
    found = []
    for g, target in progress.track(rows, "attacks of Table 2"):
        apart = banks[(g + 1) % len(banks)] if len(banks) > 1 else None
        spec = {"models": banks[g].models.key, "target": target, "apart": apart and apart.models.key, "shadows": shadows,
                "rehearsals": rehearsals}
        found.append(store.study("bayes.judge_banks", spec, partial(_judge, banks[g], target, apart, shadows, rehearsals)))
    return Judged({a: np.array([f[f"score.{a}"] for f in found]) for a in ATTACKS},
                  {a: np.array([f[f"decision.{a}"] for f in found]) for a in ATTACKS},
                  np.array([banks[g].game.members[t] for g, t in rows]), np.array([g for g, _ in rows]))


def _judge(bank: Bank, target: int, apart: Bank | None, shadows: int, rehearsals: int) -> dict[str, np.ndarray]:
    correct, shadow = bank.correct[target], shadow_score(bank, target, shadows, apart)
    by_class = class_thresholds(bank, target, shadows)
    found = {"0-1": (baselines.gap(correct).astype(np.float32), correct), "Shadow models": (shadow, shadow >= 0.5),
             "MALT (per class)": (by_class, by_class >= 0)}
    for attack in ("MALT", *MAST):
        found[attack] = score(bank, target, attack), decide(bank, target, attack, rehearsals)
    return {**{f"score.{attack}": packed_ranks(value) for attack, (value, _) in found.items()},
            **{f"decision.{attack}": value for attack, (_, value) in found.items()}}


# ------------------------------------------------------------------------------- Table 3: models under augmentation


def block_halves(size: int, blocks: int, seed: int = 0) -> np.ndarray:
    """Independent games side by side: model b is trained on a random half of block b and sees nothing of the others.

    Returns:
        bool [blocks, blocks * size].
    """
    members = np.zeros((blocks, blocks * size), bool)
    for b, row in enumerate(membership.random_halves(size, blocks, seed)):
        members[b, b * size:(b + 1) * size] = row
    return members


@dataclass(frozen=True, eq=False)
class Blocks:
    """What each model of `block_halves` says about the records of its own block: loss [B, size], and whether it is right,
    bool [B, size]."""

    loss: np.ndarray
    correct: np.ndarray


def play_blocks(models: Ensemble) -> Blocks:
    """What the models of `block_halves` say about their own blocks, kept in the store."""
    def compute() -> dict[str, np.ndarray]:
        return {"loss": own_block(signals.loss(models, models.records)),
                "correct": own_block(signals.correctness(models, models.records))}

    return Blocks(**store.study("bayes.play_blocks", {"models": models.key}, compute))


def own_block(values: np.ndarray) -> np.ndarray:
    """What each model says about the records of its own block: [B, B * size] -> [B, size]."""
    blocks = len(values)
    return values.reshape(blocks, blocks, -1)[np.arange(blocks), np.arange(blocks)]
