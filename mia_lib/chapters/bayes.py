"""Experiments of the Bayes-optimal chapter (Sablayrolles et al. 2019, section 6)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from mia_lib import membership, metrics, progress, store
from mia_lib.attacks import bayes
from mia_lib.errors import MiaError

C_GRID = tuple(10.0**k for k in range(-2, 5))
VALIDATION_SEEDS = 5  # splits, apart from the judged ones, on which C is chosen


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


def logistic_games(features: np.ndarray, labels: np.ndarray, n: int, seeds: int) -> dict[str, np.ndarray]:
    """Play the game of Table 1 `seeds` times at size n.

    Args:
        features: frozen features [N, F]. labels: 0 or 1, [N].
        n: n / 2 members, n / 2 non-members, n / 2 further records for the reference model.

    Returns:
        scores of MALT, MATT, the 0-1 attack, the calibrated loss and Eq. 39, each [seeds, n]; `members` [seeds, n];
        `train_accuracy`, `validation_accuracy` [seeds]; spread and mean of the two terms of Eq. 39; and `C`.
    """
    spec = {"kind": "study", "study": "bayes.logistic_games", "features": store.fingerprint(features),
            "labels": store.fingerprint(labels), "n": n, "seeds": seeds, "grid": list(C_GRID), "version": 1}

    def play() -> dict[str, np.ndarray]:
        x, y = design(features), np.asarray(labels)
        c = choose_c(x, y, n)
        out: dict[str, list] = {}
        for seed in progress.track(range(seeds), f"Table 1, n = {n}"):
            inside, outside, apart, left = three_way_split(len(y), n, seed)
            judged = np.concatenate([inside, outside])
            theta, theta0 = logistic(x[inside], y[inside], c), logistic(x[apart], y[apart], c)
            loss, loss0 = (logistic_loss(t, x[judged], y[judged]) for t in (theta, theta0))
            right = (x[judged] @ theta > 0) == y[judged]
            gradients = logistic_gradients(theta0, x[judged], y[judged])
            matt = bayes.matt(theta, theta0, gradients)
            second = bayes.matt_second_term(gradients, logistic_hessian(theta0, x[apart], c))
            held_out = left if len(left) else outside
            row = {"malt": -loss, "matt": matt, "gap": right, "calibrated": loss0 - loss, "eq39": matt + second,
                   "members": np.arange(n) < n // 2, "train_accuracy": right[: n // 2].mean(),
                   "validation_accuracy": ((x[held_out] @ theta > 0) == y[held_out]).mean(),
                   "first_term_std": matt.std(), "second_term_mean": second.mean()}
            for name, value in row.items():
                out.setdefault(name, []).append(value)
        arrays = {name: np.array(values) for name, values in out.items()}
        small = {name: a.astype(np.float32) if a.dtype == np.float64 and a.ndim == 2 else a for name, a in arrays.items()}
        return {**small, "C": np.array(c)}

    return store.fetch(spec, play).arrays


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


def mast_score(bank: Bank, target: int, estimator: str, without: tuple[int, ...] = ()) -> np.ndarray:
    """MAST against model `target` with the other pairs of its bank as references.

    Args:
        without: further models whose pairs must not serve as references.
    """
    references = set(membership.references_of(target, len(bank.loss)))
    for other in without:
        references &= set(membership.references_of(other, len(bank.loss)))
    r = sorted(references)
    return bayes.mast(bank.loss[target], bank.loss[r], bank.members[r], estimator)


def simulated_targets(bank: Bank, target: int, count: int) -> list[int]:
    """`count` of the attacker's own models, one a pair, whose membership the attacker knows."""
    return [int(r) for r in membership.references_of(target, len(bank.loss)) if r % 2 == 0][:count]


def transferred_accuracy(bank: Bank, target: int, attack: str, simulations: int) -> float:
    """Balanced accuracy with the threshold that is best against the attacker's own models.

    Args:
        attack: "MALT" or an estimator of `bayes.ESTIMATORS`.
    """
    def score(model: int, without: tuple[int, ...]) -> np.ndarray:
        return bayes.malt(bank.loss[model]) if attack == "MALT" else mast_score(bank, model, attack, without)

    rehearsal = simulated_targets(bank, target, simulations)
    threshold = metrics.best_threshold(np.concatenate([score(r, (target,)) for r in rehearsal]),
                                       np.concatenate([bank.members[r] for r in rehearsal]))
    return metrics.accuracy_at_threshold(score(target, ()), bank.members[target], threshold)


def shadow_score(bank: Bank, target: int, shadows: int, seed: int = 0) -> np.ndarray:
    """Shokri et al.'s attack on model `target` with the first `shadows` models of the other pairs; kept in the store."""
    from mia_lib.attacks import baselines

    r = membership.references_of(target, len(bank.loss))[:shadows]
    spec = {"kind": "study", "study": "bayes.shadow_score", "probabilities": store.fingerprint(bank.probabilities),
            "members": store.fingerprint(bank.members), "labels": store.fingerprint(bank.labels), "target": target,
            "shadows": len(r), "seed": seed, "version": 1}
    return store.fetch(spec, lambda: {"score": baselines.shadow_models(
        bank.probabilities[target], bank.labels, bank.probabilities[r], bank.members[r], seed=seed)}).arrays["score"]
