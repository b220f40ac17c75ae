"""A test of the audit itself: a leak that was planted must be found, and where there is none, chance.

Two leaks are planted: a network that was trained on its members until it knew them by heart, and a function whose answers are
sharper for some of the members. False alarms are counted over many audits of a model that never saw the "members", by the same
tests and correction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import softmax

from mia_lib import metrics, signals, training
from mia_lib.attacks import baselines
from mia_lib.audit.execution import audit
from mia_lib.audit.report import Report
from mia_lib.audit.statistics import tests
from mia_lib.data import Dataset
from mia_lib.training import TrainConfig

GAMES = 200  # audits without a leak
SURER = 0.9  # of what is missing to certainty, a planted leak adds
CALL = 0.01  # false positive rate at which few accusations are asked about
LEVEL = 0.95


@dataclass(frozen=True)
class Rehearsal:
    """Result of a test of the audit."""

    network: Report  # on a planted leak, as the next
    function: Report
    alarms: int  # audits without a leak that said there was one
    games: int  # audits without a leak
    allowed: int  # alarms that the stated level allows, but for one test in a thousand

    @property
    def good(self) -> bool:
        """True if both planted leaks were found and false alarms kept their level."""
        return bool(self.network.leak and self.function.leak) and self.alarms <= self.allowed

    def __str__(self) -> str:
        network, function = (
            f"{'found' if report.leak else 'MISSED'} ({report.result.best.attack}, AUC "
            f"{report.result.best.auc:.3f})"
            for report in (self.network, self.function)
        )
        return (
            f"A network that knows its members by heart: {network}.\n"
            f"A function that is sharper for some members: {function}.\n"
            f"Without a leak: {self.alarms} of {self.games} audits raised an alarm; up to {self.allowed} keep the level."
        )


def clusters(records: int, seed: int) -> Dataset:
    """A table of four overlapping clusters, a class each; a fifth of the labels are random, which can only be learned by
    heart."""
    chance = np.random.default_rng([47, seed])
    centre = np.random.default_rng(5).standard_normal((4, 12))
    y = chance.integers(4, size=records)
    x = (centre[y] + chance.standard_normal((records, 12))).astype(np.float32)
    y = np.where(chance.random(records) < 0.2, chance.integers(4, size=records), y)
    return Dataset("clusters", x, y, records, tuple("0123"))


def split(records: Dataset, members: int) -> tuple[Dataset, Dataset]:
    """The first records as members, and the others as non-members."""
    return records.take(np.arange(members)), records.take(np.arange(members, len(records)))


def sharpened(members: Dataset, seed: int = 0):
    """A function from records [n, D] to probabilities [n, K] that answers at random, but surer and right for a
    fifth of the members."""
    chance, classes = np.random.default_rng([53, seed]), len(members.classes)
    known = {
        row.tobytes(): label
        for row, label in zip(members.x, members.y, strict=True)
        if chance.random() < 0.2
    }

    def function(x: np.ndarray) -> np.ndarray:
        rows = [row.tobytes() for row in x.astype(np.float32)]
        z = np.stack([np.random.default_rng(list(row)).standard_normal(classes) for row in rows])
        for logits, row in zip(z, rows, strict=True):
            if row in known:
                logits[known[row]] += 5.0
        return softmax(z, 1)

    return function


def count_alarms(
    probabilities: np.ndarray, y: np.ndarray, games: int = GAMES, seed: int = 0, share: float = 0.0
) -> int:
    """Audits by outputs, of `games`, that find something in a model that never saw the "members".

    Half of the records are drawn as "members" anew each time. Scores are those that an audit has of outputs alone, which
    depend on each other as they do there.

    Args:
        probabilities: that the model gives, [N, K]. y: labels int [N]. games: how many. seed: of what is drawn.
        share: of the members of whom the model is made surer, by `SURER` of what is missing to certainty.
    """
    chance, leak, count = np.random.default_rng([71, seed]), np.random.default_rng([73, seed]), 0
    for _ in range(games):
        is_member = np.zeros(len(y), bool)
        is_member[chance.permutation(len(y))[: len(y) // 2]] = True
        known = np.flatnonzero(is_member & (leak.random(len(y)) < share))
        p = np.array(probabilities, np.float64)
        p[known] *= 1 - SURER
        p[known, y[known]] += SURER
        values = signals.from_probabilities(p, y, floor=float(np.finfo(np.float64).tiny))
        scores = [
            -values["loss"],
            baselines.modified_entropy(p, y),
            -values["least_loss"],
            values["correctness"],
        ]
        count += bool(metrics.holm(tests(scores, is_member, CALL)).min() < 1 - LEVEL)
    return count


def rehearse(games: int = GAMES, minutes: float = 2.0, seed: int = 0) -> Rehearsal:
    """Test the audit: two planted leaks, for so many minutes each, and `games` audits without one."""
    members, others = split(clusters(600, seed), 300)
    recipe = TrainConfig("mlp:64", epochs=60, batch_size=32, learning_rate=3e-3, seed=seed)
    trained, _ = training.fit(members.x, members.y, len(members.classes), recipe)
    network = audit(
        trained,
        members,
        others,
        recipe=recipe,
        references=8,
        minutes=minutes,
        name="planted, a network",
        seed=seed,
    )
    function = audit(
        sharpened(members, seed=seed),
        members,
        others,
        outputs="probabilities",
        minutes=minutes,
        name="planted, a function",
        seed=seed,
    )
    strangers = clusters(300, seed + 1)
    weights = np.random.default_rng([59, seed]).standard_normal(
        (strangers.x.shape[1], len(strangers.classes))
    )
    alarms = count_alarms(softmax(strangers.x @ weights / 2, 1), strangers.y, games, seed)
    return Rehearsal(
        network, function, alarms, games, int(stats.binom.ppf(0.999, games, 1 - LEVEL))
    )
