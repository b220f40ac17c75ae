"""Experiments of the chapter that audits: models that are audited, the same many times over, and audits that are tested.

A pool of N records is dealt anew for each of T models: half of it trains the model, the other half are its non-members.
Halves come in complementary pairs, as in a bank of references.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import softmax

from mia_lib import audit, data, membership, metrics, signals, store, training
from mia_lib.attacks import baselines, bayes, calibration
from mia_lib.audit import attacks, blind, judging
from mia_lib.audit import given as giving
from mia_lib.audit.attacks import ATTACKS, Seen
from mia_lib.data import Dataset
from mia_lib.data.sets import TITLES
from mia_lib.errors import check_range
from mia_lib.papers.audit import networks
from mia_lib.training import Ensemble, TrainConfig, private

OUTPUTS = ("MALT", "modified entropy", "confidence", "0-1")  # attacks that need nothing but outputs
LEVEL = 0.95
SURER = 0.9  # of what is missing to certainty, a planted leak adds
CALL = 0.01  # false positive rate at which few accusations are asked about


@dataclass(frozen=True, eq=False)
class Records:
    """Records of one subject, dealt.

    Attributes:
        title: of the data set. pool: N records that are members of some models. apart: records that are members of none.
        members: bool [T, N], see above.
    """

    title: str
    pool: Dataset
    apart: Dataset
    members: np.ndarray

    def sides(self, target: int = 0) -> tuple[Dataset, Dataset]:
        """Members and non-members of a model."""
        inside = self.members[target]
        return self.pool.take(np.flatnonzero(inside)), self.pool.take(np.flatnonzero(~inside))


def records(dataset: str, members: int, apart: int, models: int, seed: int = 0) -> Records:
    """Deal records of a data set, each content once, as audits demand.

    Args:
        dataset: by name. members: of a model, half of the pool. apart: records besides. models: T. seed: of the order.

    Raises:
        MiaError: the data set has too few.
    """
    found = data.load(dataset)
    once = np.unique(giving.digests(found), return_index=True)[1]
    check_range("members", 2 * members + apart, 100, len(once))
    order = np.random.default_rng([61, seed]).permutation(len(found))
    order = order[np.isin(order, once)]
    return Records(TITLES.get(dataset, dataset), found.take(order[:2 * members]),
                   found.take(order[2 * members:2 * members + apart]),
                   membership.balanced_halves(2 * members, models, seed))


# --------------------------------------------------------------------------------------------------- models that are audited


def recipe(stages: int, epochs: int, batch_size: int, learning_rate: float, seed: int = 0) -> TrainConfig:
    """How the residual network is trained; its architecture is a function of one's own, with its arguments."""
    return TrainConfig(partial(networks.resnet18, stages=stages), epochs, batch_size, "sgd", learning_rate, 0.9, seed=seed)


def network(dealt: Records, config: TrainConfig) -> Callable:
    """A residual network, trained on the members of the first model, as a function from images to logits."""
    trained = training.train(dealt.pool, dealt.members[:1], config, label="the network").model(0)
    return partial(signals.model_outputs, trained, scaling=config.scaling)


def forest(members: Dataset, trees: int, leaf: int = 1, seed: int = 0):
    """A random forest of scikit-learn.

    Args:
        members: that it is fitted to. trees: in it. leaf: least records of a leaf. seed: of its random numbers.
    """
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(trees, min_samples_leaf=leaf, random_state=seed).fit(members.x, members.y)


@dataclass(frozen=True, eq=False)
class Twins:
    """Models that differ in privacy alone.

    Attributes:
        records: that both were dealt. twin: T models trained without noise. private: T with it.
    """

    records: Records
    twin: Ensemble
    private: Ensemble


def twins(dealt: Records, config: TrainConfig, epsilon: float) -> Twins:
    """Models trained by DP-SGD, and others by the same recipe without clipping or noise."""
    return Twins(dealt, training.train(dealt.pool, dealt.members, config, label="twins"),
                 private.train(dealt.pool, dealt.members, config, private.Privacy(epsilon), label="private models"))


def probabilities(network, x: np.ndarray) -> np.ndarray:
    """Of a network of the library's, as a function from records to [n, K]."""
    return softmax(signals.model_outputs(network, x).astype(np.float64), 1)


# -------------------------------------------------------------------------------------------------------- more than one model


@dataclass(frozen=True, eq=False)
class Many:
    """The same question about T models of one pool.

    Attributes:
        members: bool [T, N]. scores: name -> [T, N], higher for members. accuracy: name -> [T], on non-members.
    """

    members: np.ndarray
    scores: dict[str, np.ndarray]
    accuracy: dict[str, np.ndarray]

    def auc(self, name: str) -> np.ndarray:
        """Of each model, [T]."""
        return metrics.auc(self.scores[name], self.members)


def forests(dealt: Records, trees: int, leaves: Sequence[int], seed: int = 0) -> Many:
    """The loss of forests with small and with large leaves, "leaf L", and what the control sees without a model, "blind"."""
    def compute() -> dict[str, np.ndarray]:
        shape = dealt.members.shape
        found = {f"loss {leaf}": np.zeros(shape) for leaf in leaves} | {"blind": np.zeros(shape)}
        found |= {f"accuracy {leaf}": np.zeros(len(dealt.members)) for leaf in leaves}
        for target, inside in enumerate(dealt.members):
            for leaf in leaves:
                fitted = forest(dealt.sides(target)[0], trees, leaf, seed + target)
                one = of_probabilities(fitted.predict_proba(dealt.pool.x), dealt.pool.y)
                found[f"loss {leaf}"][target] = one["loss"]
                found[f"accuracy {leaf}"][target] = one["correctness"][~inside].mean()
            found["blind"][target] = blindly(dealt, target, fitted.predict_proba)
        return found

    spec = {"pool": dealt.pool.fingerprint, "members": store.fingerprint(dealt.members), "trees": trees,
            "leaves": list(leaves), "seed": seed}
    found = store.study("audit.forests", spec, compute)
    scores = {f"leaf {leaf}": bayes.malt(found[f"loss {leaf}"]) for leaf in leaves}
    return Many(dealt.members, {**scores, "blind": found["blind"]},
                {f"leaf {leaf}": found[f"accuracy {leaf}"] for leaf in leaves})


def blindly(dealt: Records, target: int, function: Callable) -> np.ndarray:
    """Scores of the control, which sees records and not the model, [N]; 0 for those that it does not look at."""
    inside, score = dealt.members[target], np.zeros(dealt.members.shape[1])
    rows, found = blind.scores(giving.given(function, *dealt.sides(target), outputs="probabilities"))
    score[np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)])[rows]] = found
    return score


def of_twins(found: Twins) -> Many:
    """The loss of both kinds of models."""
    both = {"twin": found.twin, "private": found.private}
    pool, members = found.records.pool, found.records.members
    right = {name: signals.correctness(models, pool) for name, models in both.items()}
    return Many(members, {name: bayes.malt(signals.loss(models, pool)) for name, models in both.items()},
                {name: np.array([row[~inside].mean() for row, inside in zip(one, members, strict=True)])
                 for name, one in right.items()})


def of_references(report: audit.Report) -> Many:
    """Attacks with references, and the loss, on each of an audit's own references, whose members are known, too."""
    given, count = report.given, report.plan.references
    members = giving.halves(given, count)
    models = training.train(given.pool, members, giving.reseeded(given.recipe), label="references")
    loss, margin = (one(models, given.pool).astype(np.float64) for one in (signals.loss, signals.logit_scaled_confidence))
    others = [membership.references_of(target, count) for target in range(count)]
    lira = [baselines.lira_online(margin[target], margin[rows], members[rows], True) for target, rows in enumerate(others)]
    easier = [calibration.calibrate(-loss[target], -loss[rows], members[rows]) for target, rows in enumerate(others)]
    return Many(members, {"calibrated loss": np.array(easier), "LiRA": np.array(lira), "MALT": bayes.malt(loss)}, {})


# -------------------------------------------------------------------------------------------------- a test of the audit itself


def of_probabilities(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Signals of probabilities, of which those of zero count as the smallest number."""
    tiny = np.finfo(np.float64).tiny
    return signals.scalars(np.log(np.maximum(np.asarray(probabilities, np.float64), tiny)), labels)


def planted(function: Callable, members: Dataset, share: float, seed: int = 0) -> Callable:
    """A model with a leak: surer of the true class, by `SURER` of what is missing to certainty, for some of the members.

    Args:
        function: records -> probabilities [n, K]. members: [n]. share: of them that it knows. seed: of which.
    """
    known = np.random.default_rng([67, seed]).random(len(members)) < share
    told = {row.tobytes(): label for row, label in zip(members.x[known], members.y[known], strict=True)}

    def answer(x: np.ndarray) -> np.ndarray:
        p = np.array(function(x), np.float64)
        for row, out in zip(np.ascontiguousarray(x), p, strict=True):
            if row.tobytes() in told:
                out *= 1 - SURER
                out[told[row.tobytes()]] += SURER
        return p

    return answer


@dataclass(frozen=True, eq=False)
class Trials:
    """An audit of models that never saw the "members".

    Attributes:
        strange: AUC of the attack that speaks, T models. planted: the same with a leak. alarms: of `games` audits of each
            model, all with other "members", the share that found something, [T]. found: the same with a leak.
    """

    strange: np.ndarray
    planted: np.ndarray
    alarms: np.ndarray
    found: np.ndarray
    games: int


def tested(dealt: Records, functions: Sequence[Callable], share: float, games: int, seed: int = 0) -> Trials:
    """Audit models that were trained on records apart, with and without a leak; what they answer to is the pool.

    Args:
        functions: T of them, records -> probabilities [n, K]. share: of the members that a leak gives away. games: of each.
    """
    def compute() -> dict[str, np.ndarray]:
        found: dict[str, list] = {"strange": [], "planted": [], "alarms": [], "found": []}
        for target, function in enumerate(functions):
            sides = dealt.sides(target)
            for name, asked in (("strange", function), ("planted", planted(function, sides[0], share, seed + target))):
                given = giving.given(asked, *sides, outputs="probabilities", seed=seed + target)
                found[name].append(metrics_of(given))
            for name, leak in (("alarms", 0.0), ("found", share)):
                found[name].append(alarms(given.pool, function(given.pool.x), games, seed + target, leak) / games)
        return {name: np.array(values) for name, values in found.items()}

    spec = {"pool": dealt.pool.fingerprint, "members": store.fingerprint(dealt.members), "share": share, "games": games,
            "seed": seed, "answers": [store.fingerprint(one(dealt.pool.x)) for one in functions]}
    return Trials(**store.study("audit.tested", spec, compute), games=games)


def metrics_of(given: giving.Given) -> float:
    """AUC of the attack that was chosen on one half of the records, on the other."""
    scores = {name: attacks.score(ATTACKS[name], Seen(given)) for name in OUTPUTS}
    return judging.chosen(scores, given.inside, (), given.seed).auc.value


def alarms(pool: Dataset, probabilities: np.ndarray, games: int, seed: int, share: float = 0.0) -> int:
    """Audits by outputs, of `games`, that find something in a model where the "members" are drawn anew each time.

    Args:
        share: of these for whom the model is made surer, as by `planted`.
    """
    chance, leak, count = np.random.default_rng([71, seed]), np.random.default_rng([73, seed]), 0
    for _ in range(games):
        inside = np.zeros(len(pool), bool)
        inside[chance.permutation(len(pool))[:len(pool) // 2]] = True
        known = np.flatnonzero(inside & (leak.random(len(pool)) < share))
        told = np.array(probabilities, np.float64)
        told[known] *= 1 - SURER
        told[known, pool.y[known]] += SURER
        found = of_probabilities(told, pool.y)
        scores = [-found["loss"], baselines.modified_entropy(told, pool.y), -found["least_loss"], found["correctness"]]
        count += bool(metrics.holm(judging.tests(scores, inside, CALL)).min() < 1 - LEVEL)
    return count
