"""Experiments of the Bayes-optimal chapter (Sablayrolles et al. 2019, section 6)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit

from mia_lib import membership, metrics, progress, store
from mia_lib.attacks import bayes
from mia_lib.data import Dataset
from mia_lib.errors import MiaError
from mia_lib.intervals import Interval
from mia_lib.training import TrainConfig, train

C_GRID = tuple(10.0**k for k in range(-2, 5))
VALIDATION_SEEDS = 40  # other splits of the same pool, on which C is chosen


def plan(records: Dataset, sweep: Dataset, *, classes: list[int], banks: int, bank_records: int, references: int,
         feature_epochs: int, sweep_games: int, sweep_records: int, config: TrainConfig,
         recipes: list[TrainConfig]) -> pd.DataFrame:
    """What a run will train, checked against the data before anything is trained.

    Args:
        records: of Tables 1 and 2. sweep: of Table 3, without what Table 2 uses.
        classes: the two classes of Table 1. feature_epochs: of its feature extractor.
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
        {"exhibit": "Table 1, features", "models": 1, "members of each": "all of the feature data",
         "epochs": str(feature_epochs)},
        {"exhibit": "Table 2", "models": banks * (references + 2), "members of each": f"{bank_records // 2} of {bank_records}",
         "epochs": str(config.epochs)},
        {"exhibit": "Table 3", "models": len(recipes) * sweep_games,
         "members of each": f"{sweep_records // 2} of {sweep_records}", "epochs": str(recipes[0].epochs)}])


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


def choose_c(x: np.ndarray, y: np.ndarray, n: int) -> float:
    """The C of `C_GRID` with the best accuracy on records left out, over splits of their own.

    It serves the model's accuracy; the attacks have no say.
    """
    accuracy = np.zeros(len(C_GRID))
    for seed in range(VALIDATION_SEEDS):
        inside, outside, _, _ = three_way_split(len(y), n, 1_000_000 + seed)
        for k, c in enumerate(C_GRID):
            accuracy[k] += np.mean((x[outside] @ logistic(x[inside], y[inside], c) > 0) == y[outside])
    return C_GRID[int(np.argmax(accuracy))]


def logistic_games(features: np.ndarray, labels: np.ndarray, n: int, seeds: int,
                   c: float | None = None) -> dict[str, np.ndarray]:
    """Play the game of Table 1 `seeds` times at size n.

    Args:
        features: frozen features [N, F]. labels: 0 or 1, [N].
        n: n / 2 members, n / 2 non-members, n / 2 further records for the reference model.
        c: inverse strength of the penalty; chosen on splits of its own when None.

    Returns:
        scores of MALT, MATT, the 0-1 attack, the calibrated loss and Eq. 39, each [seeds, n]; `members` [seeds, n];
        `train_accuracy`, `validation_accuracy` [seeds]; and `C`.
    """
    spec = {"kind": "study", "study": "bayes.logistic_games", "features": store.fingerprint(features),
            "labels": store.fingerprint(labels), "n": n, "seeds": seeds, "grid": list(C_GRID), "C": c, "version": 3}

    def play() -> dict[str, np.ndarray]:
        x, y = design(features), np.asarray(labels)
        strength = choose_c(x, y, n) if c is None else c
        out: dict[str, list] = {}
        for seed in progress.track(range(seeds), f"Table 1, n = {n}"):
            inside, outside, apart, left = three_way_split(len(y), n, seed)
            judged = np.concatenate([inside, outside])
            theta, theta0 = logistic(x[inside], y[inside], strength), logistic(x[apart], y[apart], strength)
            loss, loss0 = (logistic_loss(t, x[judged], y[judged]) for t in (theta, theta0))
            right = (x[judged] @ theta > 0) == y[judged]
            gradients = logistic_gradients(theta0, x[judged], y[judged])
            matt = bayes.matt(theta, theta0, gradients)
            second = bayes.matt_second_term(gradients, logistic_hessian(theta0, x[apart], strength))
            held_out = left if len(left) else outside
            row = {"malt": -loss, "matt": matt, "gap": right, "calibrated": loss0 - loss, "eq39": matt + second,
                   "members": np.arange(n) < n // 2, "train_accuracy": right[: n // 2].mean(),
                   "validation_accuracy": ((x[held_out] @ theta > 0) == y[held_out]).mean()}
            for name, value in row.items():
                out.setdefault(name, []).append(value)
        arrays = {name: np.array(values) for name, values in out.items()}
        small = {name: a.astype(np.float32) if a.dtype == np.float64 and a.ndim == 2 else a for name, a in arrays.items()}
        return {**small, "C": np.array(strength)}

    return store.fetch(spec, play).arrays


def rehearsed_accuracy(scores: np.ndarray, members: np.ndarray, rehearsals: int = 20) -> np.ndarray:
    """Balanced accuracy in each game with a threshold that is best in *other* games.

    The attacker plays the game with splits and models of their own and carries the threshold over; the membership that is
    judged has no say in it.

    Args:
        scores: [T, N], comparable between games. members: bool [T, N].
        rehearsals: how many of the other games the threshold is taken from, the next ones in order.

    Returns:
        [T].

    Raises:
        MiaError: a single game, which leaves none to rehearse in.
    """
    games = len(scores)
    if games < 2:
        raise MiaError(f"{games} game leaves none to rehearse in: at least 2 are needed.")
    accuracy = np.empty(games)
    for t in range(games):
        others = (t + 1 + np.arange(min(rehearsals, games - 1))) % games
        threshold = metrics.best_threshold(scores[others].ravel(), members[others].ravel())
        accuracy[t] = metrics.accuracy_at_threshold(scores[t], members[t], threshold)
    return accuracy


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


def peak_of_noise(n: int, seeds: int) -> np.ndarray:
    """Peak accuracy [seeds] of scores that know nothing, n / 2 members and n / 2 non-members: what choosing the threshold
    on the records judged is worth by itself."""
    scores = np.random.default_rng([n, 7]).normal(size=(seeds, n))
    return metrics.balanced_accuracy(scores, np.arange(n) < n // 2)


TABLE_1 = {"attack_accuracy": metrics.balanced_accuracy, "rehearsed_accuracy": rehearsed_accuracy,
           "cross_validated_accuracy": cross_validated_accuracy,
           "map_test": metrics.average_precision_non_members, "map_train": metrics.average_precision, "auc": metrics.auc}


def per_split(games: dict[str, np.ndarray], attack: str, metric: str) -> np.ndarray:
    """A number of Table 1 in every split, [seeds].

    Args:
        games: what `logistic_games` returned.
        attack: "gap", "malt", "matt", "calibrated" or "eq39".
        metric: "attack_accuracy" with the best threshold on the records judged, as in the paper; "rehearsed_accuracy" with a
            threshold from other splits; "cross_validated_accuracy"; "map_test", "map_train" or "auc". The 0-1 attack has no
            threshold to choose: all its accuracies are its AUC.
    """
    function = metrics.auc if attack == "gap" and metric.endswith("accuracy") else TABLE_1[metric]
    return function(games[attack], games["members"])


def over_splits(values: np.ndarray) -> Interval:
    """Mean and Student t interval over splits of the same pool of records."""
    return metrics.t_interval(values, covers=f"{len(values)} splits of one pool")


NAMES = {"gap": "0-1", "malt": "MALT", "matt": "MATT"}  # key of `logistic_games` -> the paper's name


def table_one(games: dict[int, dict[str, np.ndarray]]):
    """Table 1 as tidy rows: n, attack, metric, interval.

    Args:
        games: n -> what `logistic_games` returned.
    """
    rows = []
    for n, played in games.items():
        for side in ("train_accuracy", "validation_accuracy"):
            rows.append({"n": n, "attack": "none", "metric": side, "interval": over_splits(played[side])})
        for attack, name in NAMES.items():
            for metric in ("attack_accuracy",) if attack == "gap" else ("attack_accuracy", "map_test", "map_train"):
                rows.append({"n": n, "attack": name, "metric": metric,
                             "interval": over_splits(per_split(played, attack, metric))})
    return pd.DataFrame(rows)


# --------------------------------------------------------------------------------------- Table 2: the bank of models


@dataclass(frozen=True)
class Bank:
    """What one bank of models says about its own N records; several banks are independent repetitions.

    Attributes:
        members: bool [M, N], complementary halves.
        loss: [M, N]. correct: bool [M, N]. probabilities: [M, N, K]. labels: int [N].
    """

    members: np.ndarray
    loss: np.ndarray
    correct: np.ndarray
    probabilities: np.ndarray
    labels: np.ndarray


MAST = {"MAST (best split)": "best_split", "MAST (mean out)": "mean_out", "MAST (softmin)": "softmin"}


def references_without(bank: Bank, *models: int) -> np.ndarray:
    """Models of the bank that share no pair with any of `models`."""
    kept = set(range(len(bank.loss)))
    for model in models:
        kept &= set(membership.references_of(model, len(bank.loss)).tolist())
    return np.array(sorted(kept))


def score(bank: Bank, target: int, attack: str, without: tuple[int, ...] = ()) -> np.ndarray:
    """Score [N] of "MALT" or a name of `MAST` against model `target`, with the other pairs of its bank as references.

    Args:
        without: further models whose pairs must not serve as references.
    """
    if attack == "MALT":
        return bayes.malt(bank.loss[target])
    r = references_without(bank, target, *without)
    return bayes.mast(bank.loss[target], bank.loss[r], bank.members[r], MAST[attack])


def decide(bank: Bank, target: int, attack: str, rehearsals: int) -> np.ndarray:
    """Who is called a member, bool [N], with the threshold that is best against the attacker's own models.

    The attacker trained the references and so knows who is in them: `rehearsals` of them, one a pair, are attacked
    with the rest as references, and the threshold found there is applied to the target.

    Raises:
        MiaError: no pair is left to rehearse on.
    """
    own = [int(r) for r in references_without(bank, target) if r % 2 == 0][:rehearsals]
    if len(references_without(bank, target, *own[:1])) < 2 or not own:
        raise MiaError(f"a bank of {len(bank.loss)} models leaves no references to rehearse with: at least 6 are needed.")
    threshold = metrics.best_threshold(np.concatenate([score(bank, r, attack, (target,)) for r in own]),
                                       np.concatenate([bank.members[r] for r in own]))
    return score(bank, target, attack) >= threshold


def class_thresholds(bank: Bank, target: int, rehearsals: int) -> np.ndarray:
    """MALT with a threshold for each class, from rehearsals: score [N] whose threshold is zero."""
    own = [int(r) for r in references_without(bank, target) if r % 2 == 0][:rehearsals]
    out = np.empty(len(bank.labels))
    for label in np.unique(bank.labels):
        of_class = bank.labels == label
        threshold = metrics.best_threshold(-bank.loss[own][:, of_class].ravel(), bank.members[own][:, of_class].ravel())
        out[of_class] = -bank.loss[target, of_class] - threshold
    return out


def shadow_score(bank: Bank, target: int, shadows: int, apart: Bank | None = None, seed: int = 0) -> np.ndarray:
    """Shokri et al.'s attack on model `target`; kept in the store.

    Args:
        shadows: how many shadow models.
        apart: the bank they come from, whose records are others than the target's, as in that paper; when None they are
            models of the other pairs of the target's own bank, which know the records under attack.
    """
    from mia_lib.attacks import baselines

    source, r = (bank, references_without(bank, target)[:shadows]) if apart is None else (apart, np.arange(shadows))
    outputs = {"probabilities": bank.probabilities[target], "labels": bank.labels,
               "shadow_probabilities": source.probabilities[r], "shadow_labels": source.labels,
               "shadow_members": source.members[r]}
    spec = {"kind": "study", "study": "bayes.shadow_score", "seed": seed, "version": 2,
            **{name: store.fingerprint(array) for name, array in outputs.items()}}
    return store.fetch(spec, lambda: {"score": baselines.shadow_models(**outputs, seed=seed)}).arrays["score"]


@dataclass(frozen=True)
class Judged:
    """All attacks on all targets of all banks, rows ordered by bank.

    Attributes:
        scores, decisions: attack -> [T, N].
        members: bool [T, N]. groups: int [T], the bank of each target.
    """

    scores: dict[str, np.ndarray]
    decisions: dict[str, np.ndarray]
    members: np.ndarray
    groups: np.ndarray


def judge_banks(banks: list[Bank], targets: int, shadows: int, rehearsals: int = 2) -> Judged:
    """Run every attack of Table 2.

    Args:
        banks: independent repetitions.
        targets: models attacked in each bank, one a pair.
        shadows: shadow models of Shokri et al.'s attack, from the next bank; also the models from which MALT's thresholds
            for each class come.
        rehearsals: of the attacker's own models on which thresholds are chosen.
    """
    scores: dict[str, list] = {}
    decisions: dict[str, list] = {}
    rows = [(g, 2 * t) for g in range(len(banks)) for t in range(min(targets, len(banks[0].loss) // 2))]
    for g, target in progress.track(rows, "attacks of Table 2"):
        bank = banks[g]
        apart = banks[(g + 1) % len(banks)] if len(banks) > 1 else None
        correct, shadow = bank.correct[target], shadow_score(bank, target, shadows, apart)
        by_class = class_thresholds(bank, target, shadows)
        found = {"0-1": (correct.astype(float), correct), "Shadow models": (shadow, shadow >= 0.5),
                 "MALT (per class)": (by_class, by_class >= 0)}
        for attack in ("MALT", *MAST):
            found[attack] = score(bank, target, attack), decide(bank, target, attack, rehearsals)
        for attack, (value, decision) in found.items():
            scores.setdefault(attack, []).append(value)
            decisions.setdefault(attack, []).append(decision)
    return Judged({a: np.array(v) for a, v in scores.items()}, {a: np.array(v) for a, v in decisions.items()},
                  np.array([banks[g].members[t] for g, t in rows]), np.array([g for g, _ in rows]))


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


def own_block(values: np.ndarray) -> np.ndarray:
    """What each model says about the records of its own block: [B, B * size] -> [B, size]."""
    blocks = len(values)
    return values.reshape(blocks, blocks, -1)[np.arange(blocks), np.arange(blocks)]
