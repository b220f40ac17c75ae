"""Statistics of scores: rates with intervals, tests corrected for their number, bounds, groups,
records.

The attack that speaks for the audit is chosen on one random half of the records and judged on the other, so that the best of
many is not taken for more than it is. Whether anything was found at all is asked of all attacks together, by Holm's method.

Shapes: N records, members first; A attacks.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field
from scipy import optimize, stats
from scipy.special import betaincinv, ndtr, ndtri

from mia_lib import metrics
from mia_lib.audit.attacks import ATTACKS
from mia_lib.audit.numbers import EpsilonBound, Interval, Number, Rows, Scores, result

if TYPE_CHECKING:
    from mia_lib.audit.inputs import AuditInputs, ScoreTable

DRAWS = 300  # of bootstraps
POINTS = 24  # of a curve
SHOWN = 25  # exposed records
# records of which a report says what an audit of so many finds
SIZES = (100, 300, 1000, 3000, 10_000)
COUNTED = 2e7  # sums of ranks that an exact test adds up, at most
MIN_GROUP = 10  # members, and non-members, of a group that is judged
ALONE = 0.01  # p-value from which on members are told from non-members without the model, and a model from a guess
# from which AUC on, or rates over chance
SEVERITIES = {"slight": (0.0, 0.0), "marked": (0.6, 3.0), "severe": (0.75, 10.0)}


@result
class Rate:
    """True positive rate at a false positive rate, `metrics.conformal_tpr_at_fpr`: its chance level is that rate itself,
    however few non-members there are, and records that tie are called by lot."""

    fpr: Number
    """The false positive rate that was asked for."""
    tpr: Interval
    resolved: bool
    """Whether there are non-members enough for this rate."""


@result
class AttackResult:
    """Results of one attack."""

    name: str
    audit_tool: bool
    """Whether the attack is told who is a member."""
    source: str
    """The paper that it is from; empty of scores that were made elsewhere."""
    scores: Scores
    """The score of each record, members first, higher for members."""
    auc: Interval
    rates: tuple[Rate, ...]
    """Its rates at each false positive rate that was looked at."""
    curve: tuple[Rate, ...]
    """The ROC with a pointwise band."""
    p: Number | None
    """p-value of no leak, by this attack's two tests, corrected for all attacks and tests; null of an audit tool."""
    epsilon: EpsilonBound | None
    """A bound at a confidence at which those of all attacks hold together; null of an audit tool."""


@result
class BestAttack:
    """The attack that was chosen on one half of the records, with its results on the other; a
    single attack, with its results on all records."""

    attack: str
    chosen: bool
    """Whether there was a choice."""
    judged_on: Rows
    """Numbers of the records that judge, members first."""
    auc: Interval
    rates: tuple[Rate, ...]
    p: Number
    """p-value of no leak in these records, by the rank test alone."""

    @property
    def severity(self) -> str:
        """Severity of the leak, a name of `SEVERITIES`: the highest that the AUC, or a resolved
        rate above chance, reaches."""
        over = max(
            [
                0.0,
                *(
                    rate.tpr.value / rate.fpr
                    for rate in self.rates
                    if rate.resolved and rate.tpr.low > rate.fpr
                ),
            ]
        )
        return [
            name
            for name, (auc, times) in SEVERITIES.items()
            if self.auc.value >= auc or over >= times
        ][-1]


@result
class GroupResult:
    """Records of one group or class, on the half that judges. The level of `auc` is that at which the intervals of all groups
    of this kind would hold together, were each exact, which the bootstrap of few records is not."""

    kind: Literal["class", "group"]
    name: str
    members: int
    non_members: int
    auc: Interval | None
    """The AUC in this group; null where there are too few records."""
    p: Number | None
    """p-value of no leak in it, by a rank test, corrected for all groups of this kind that are judged."""


@result
class ExposedRecord:
    """A member that the best attack finds easily."""

    index: int
    """Number of the record in the members, or the table, as they were given."""
    id: str | None
    """Its own name, where names were given."""
    label: Annotated[str | None, Field(serialization_alias="class")]
    """Name of its class; null of scores alone."""
    score: Number
    """Its score by the best attack."""
    rate: Number
    """The share of the non-members that score as high, counting one more: a p-value."""


@result
class ExposedRecords:
    """Members by how exposed they are to the best attack, the most exposed first."""

    level: Number
    """The rate at which records are counted."""
    called: int
    """How many members have at most that rate."""
    expected: Number
    """How many that would be without a leak."""
    tied: int
    """Members with the score of the last record, where not all of them are here."""
    records: tuple[ExposedRecord, ...]


@result
class InputOnlyCheck:
    """The control: members told from non-members by the records alone, without the model."""

    auc: Interval
    p: Number
    """p-value of no difference."""
    differ: bool
    """Whether members and non-members differ by themselves."""
    beyond: Interval | None
    """AUC of the best attack less this one, on the same records; null where they do not differ."""


@result
class LabelCheck:
    """Check that the model is right about its own members more often than a guess is."""

    count: int
    """Members about which it is right."""
    by_a_guess: Number
    """The count that labels drawn at random from those of all records would give on average."""
    p: Number
    """p-value of as many by such a draw."""
    guessed: bool
    """Whether they are no more than that."""


@dataclass(frozen=True, eq=False)
class AuditResult:
    """All results of an audit's scores."""

    attacks: tuple[AttackResult, ...]
    best: BestAttack
    control: InputOnlyCheck | None  # None, like the next, where scores alone are there
    label_check: LabelCheck | None
    groups: tuple[GroupResult, ...]  # and classes
    exposed: ExposedRecords
    # None where the control differs: the model or the records may have been found
    leak: bool | None
    level: float  # of intervals and tests
    below: bool  # whether members score below non-members, by the rank test of the loss, and the control is quiet

    @property
    def loss(self) -> AttackResult:
        """Result of the attack by the loss alone; of the first attack if only scores were given."""
        return next((attack for attack in self.attacks if attack.name == "MALT"), self.attacks[0])

    @property
    def differ(self) -> bool:
        """True if members and non-members differ without the model; False also if that was not
        tested."""
        return self.control is not None and self.control.differ

    @property
    def guessed(self) -> bool:
        """True if the model knows its members no better than a guess; False also if that was not
        tested."""
        return self.label_check is not None and self.label_check.guessed


def judge(
    inputs: AuditInputs | ScoreTable,
    scores: Mapping[str, np.ndarray],
    tools: Collection[str] = (),
    control: tuple[np.ndarray, ...] | None = None,
    predicted: np.ndarray | None = None,
) -> AuditResult:
    """Judge the scores of all attacks.

    Args:
        scores: attack -> [N]. tools: attacks that are told who is a member.
        control: rows of the pool, their scores without the model and their halves, see `inputs.score_inputs`.
        predicted: class that the model gives each record of the pool, int [N].
    """
    is_member, options = inputs.is_member, inputs.options
    how = {"level": options.confidence, "seed": options.seed, "draws": DRAWS}
    plain = {name: score for name, score in scores.items() if name not in tools}
    corrected = (
        metrics.holm(tests(plain.values(), is_member, options.rates[0])).reshape(-1, 2).min(1)
    )
    p = dict(zip(plain, corrected.tolist(), strict=True))
    attacks = tuple(
        _judge_attack(inputs, name, score, p.get(name), len(plain))
        for name, score in scores.items()
    )
    best = choose_best(plain, is_member, options.rates, options.seed, options.confidence)
    check, labels = None, None
    if control is not None:
        rows, alone, second = control
        p_alone = halves_p(alone, is_member[rows], second)
        check = InputOnlyCheck(
            metrics.bootstrap("auc", alone, is_member[rows], **how),
            p_alone,
            bool(p_alone < ALONE),
            metrics.compare("auc", plain[best.attack][rows], alone, is_member[rows], **how)
            if p_alone < ALONE
            else None,
        )
    if predicted is not None:
        labels = compare_with_guessing(predicted[is_member], inputs.members.y, inputs.pool.y)
    differ, loss = check is not None and check.differ, plain.get("MALT", next(iter(plain.values())))
    return AuditResult(
        attacks,
        best,
        check,
        labels,
        _judge_groups(inputs, plain[best.attack], best.judged_on),
        _find_exposed(inputs, plain[best.attack]),
        leak=None if differ else bool(min(p.values()) < 1 - options.confidence),
        level=options.confidence,
        below=not differ and auc_p(-loss, is_member) < (1 - options.confidence) / 2,
    )


def tests(scores: Iterable[np.ndarray], is_member: np.ndarray, fpr: float) -> np.ndarray:
    """p-values of both tests of each attack, [2 A], uncorrected."""
    return np.array(
        [p for score in scores for p in (auc_p(score, is_member), low_p(score, is_member, fpr))]
    )


def auc_p(score: np.ndarray, is_member: np.ndarray) -> float:
    """p-value of no leak against a higher AUC: the rank test of Mann and Whitney by its Gaussian limit, ties counted."""
    if np.ptp(score) == 0:
        return 1.0
    return float(
        stats.mannwhitneyu(
            score[is_member], score[~is_member], alternative="greater", method="asymptotic"
        ).pvalue
    )


def halves_p(score: np.ndarray, is_member: np.ndarray, second: np.ndarray) -> float:
    """p-value of no leak for scores that each half got from a classifier fitted to the other, so
    that no test of all together holds: twice the lower p-value of both halves (`second`, bool [n])
    holds however they depend on each other."""
    return min(1.0, 2 * min(auc_p(score[half], is_member[half]) for half in (second, ~second)))


def rank_p(score: np.ndarray, is_member: np.ndarray) -> float:
    """p-value of no leak against a higher AUC, as `auc_p`, of scores [n], is_member bool [n]; exact for few records, whose
    ties and tails no Gaussian has.

    It is the share of all ways to deal out membership whose sum of ranks is as high. These are counted for the rarer side,
    one record after the other, by how many are dealt and what their ranks add up to.
    """
    rarer, value = (
        (is_member, score) if 2 * is_member.sum() <= len(is_member) else (~is_member, -score)
    )
    ranks = np.rint(2 * stats.rankdata(value)).astype(int)  # twice, for ties have halves
    dealt, most = int(rarer.sum()), int(np.sort(ranks)[-rarer.sum() :].sum())
    if len(ranks) * dealt * most > COUNTED:
        return auc_p(score, is_member)
    ways = np.zeros((dealt + 1, most + 1))
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, : most + 1 - rank]
    return float(ways[-1, ranks[rarer].sum() :].sum() / ways[-1].sum())


def low_p(score: np.ndarray, is_member: np.ndarray, fpr: float) -> float:
    """p-value of no leak against a higher rate of members at few false positives; exact.

    With k = floor(fpr n) of n non-members allowed, X members lie above the one too many. Without a leak all orders of the
    records are equally likely, and X >= x just when the first x + k records hold at most k non-members: hypergeometric. Ties
    count against the attack.
    """
    outside, members = int((~is_member).sum()), int(is_member.sum())
    allowed = math.floor(fpr * outside + 1e-9)
    bar = np.sort(score[~is_member])[::-1][min(allowed, outside - 1)]
    above = int((score[is_member] > bar).sum())
    return float(stats.hypergeom.cdf(allowed, members + outside, outside, above + allowed))


def detectable_auc(members: int, others: int, attacks: int, level: float = 0.95) -> float:
    """The AUC that an attack needs so that its rank test finds it four times in five, where it is one of so many attacks with
    two tests each: 0.5 + (z_a + z_b) s, with s^2 = (m + n + 1) / 12 m n of the Gaussian limit, as far as few records change
    it."""
    spread = math.sqrt((members + others + 1) / (12 * members * others))
    return 0.5 + float(ndtri(1 - (1 - level) / (2 * attacks)) + ndtri(0.8)) * spread


@cache
def detectable_tpr(
    members: int, others: int, attacks: int, fpr: float, level: float = 0.95
) -> float:
    """The true positive rate at `fpr` that an attack with Gaussian scores needs so that `low_p` finds it four times in five,
    one of so many attacks with two tests each; NaN where the non-members do not resolve the rate, or none is found so often.

    The threshold is the score of one non-member more than `fpr` allows, so its own false positive rate is one of a Beta
    distribution, and as many members as make p small enough have to lie above it.
    """
    allowed = math.floor(fpr * others + 1e-9)

    def small(above: int) -> bool:  # from some number of members above the threshold on
        p = stats.hypergeom.cdf(allowed, members + others, others, above + allowed)
        return bool(p <= (1 - level) / (2 * attacks))

    enough = bisect_left(range(members + 1), True, key=small)
    if not allowed or enough > members:
        return math.nan
    thresholds = ndtri(stats.beta.ppf((np.arange(200) + 0.5) / 200, allowed + 1, others - allowed))

    def found(lead: float) -> float:
        return stats.binom.sf(enough - 1, members, ndtr(thresholds + lead)).mean() - 0.8

    return float(ndtr(ndtri(fpr) + optimize.brentq(found, 0, 20)))


@result
class Detectable:
    """What an audit of so many records finds four times in five, by one of as many attacks as ran."""

    records: int
    """Members, and as many non-members."""
    auc: Number
    """The smallest AUC."""
    fpr: Number
    """A false positive rate."""
    tpr: Number
    """The smallest true positive rate at it; null where so few non-members do not resolve it."""


def detectable(
    sizes: Iterable[int], attacks: int, fpr: float, level: float = 0.95
) -> tuple[Detectable, ...]:
    """What audits of so many members, and as many non-members, find four times in five."""
    return tuple(
        Detectable(
            size,
            detectable_auc(size, size, attacks, level),
            fpr,
            detectable_tpr(size, size, attacks, fpr, level),
        )
        for size in sizes
    )


def compare_with_guessing(
    predicted: np.ndarray, labels: np.ndarray, pool: np.ndarray
) -> LabelCheck:
    """Compare how often a model is right about records with a guess: labels drawn at random from
    those of the pool.

    Of a_k records that are taken for class k, which is a share q_k of the pool, such labels make it right about
    E = sum a_k q_k on average, with a variance of sum a_k q_k (1 - q_k); the p-value is that of the Gaussian limit. So a model
    that knows nothing but which class is frequent is as often right as a guess, whatever its accuracy.

    Args:
        predicted, labels: int [n]. pool: labels int [N].
    """
    classes = int(max(predicted.max(), pool.max())) + 1
    taken = np.bincount(predicted, minlength=classes)
    share = np.bincount(pool, minlength=classes) / len(pool)
    count = int((predicted == labels).sum())
    guess = float(taken @ share)
    variance = float(taken @ (share * (1 - share)))
    p = float(ndtr((guess - count + 0.5) / np.sqrt(variance))) if variance > 0 else 1.0
    return LabelCheck(count, guess, p, bool(p >= ALONE))


def choose_best(
    scores: Mapping[str, np.ndarray],
    is_member: np.ndarray,
    rates: tuple[float, ...],
    seed: int,
    level: float = 0.95,
) -> BestAttack:
    """The attack with the highest AUC on one random half of the records, judged on the other; a single one on all."""
    chance = np.random.default_rng([41, seed])
    first = np.zeros(len(is_member), bool)
    best = next(iter(scores))
    if len(scores) > 1:
        for side in map(np.flatnonzero, (is_member, ~is_member)):
            first[chance.permutation(side)[: len(side) // 2]] = True
        best = max(scores, key=lambda name: metrics.auc(scores[name][first], is_member[first]))
    score, holdout_members = scores[best][~first], is_member[~first]
    auc = metrics.bootstrap("auc", score, holdout_members, level=level, draws=DRAWS, seed=seed)
    return BestAttack(
        best,
        len(scores) > 1,
        np.flatnonzero(~first),
        auc,
        judge_rates(score, holdout_members, rates, seed, level),
        auc_p(score, holdout_members),
    )


def judge_rates(
    score: np.ndarray, is_member: np.ndarray, rates: Sequence[float], seed: int, level: float = 0.95
) -> tuple[Rate, ...]:
    """True positive rates at false positive rates, each with the hull of two intervals: of resampled records, which covers
    where the threshold lies, and the exact binomial one of Clopper and Pearson, which has a width also where no member was
    found, or all, and resamples have no spread.
    """
    members, tail, results = int(is_member.sum()), (1 - level) / 2, []
    names = [f"conformal_tpr_at_fpr={float(rate)!r}" for rate in rates]
    resampled = metrics.intervals(names, score, is_member, level=level, draws=DRAWS, seed=seed)
    for rate, drawn in zip(rates, map(resampled.get, names), strict=True):
        count = drawn.value * members
        low = betaincinv(count, members - count + 1, tail) if count > 0 else 0.0
        high = betaincinv(count + 1, members - count, 1 - tail) if count < members else 1.0
        tpr = metrics.Interval(
            drawn.value,
            min(float(low), drawn.low),
            max(float(high), drawn.high),
            level,
            drawn.covers,
        )
        results.append(Rate(float(rate), tpr, metrics.resolves(is_member, rate)))
    return tuple(results)


def _judge_attack(
    inputs, name: str, score: np.ndarray, p: float | None, attacks: int
) -> AttackResult:
    is_member, options, epsilon = inputs.is_member, inputs.options, None
    if p is not None:
        together = 1 - (1 - options.confidence) / attacks
        epsilon = metrics.epsilon_lower_bound(
            score, is_member, options.delta, together, options.seed
        )
    grid = np.geomspace(1 / (~is_member).sum(), 0.999, POINTS)
    rates = judge_rates(score, is_member, (*options.rates, *grid), options.seed, options.confidence)
    auc = metrics.bootstrap(
        "auc", score, is_member, draws=DRAWS, level=options.confidence, seed=options.seed
    )
    source = ATTACKS[name].citation if name in ATTACKS else ""
    curve = rates[-POINTS:]
    return AttackResult(name, p is None, source, score, auc, rates[:-POINTS], curve, p, epsilon)


def _judge_groups(inputs, score: np.ndarray, judged_on: np.ndarray) -> tuple[GroupResult, ...]:
    results, is_member, options = [], inputs.is_member, inputs.options
    for kind, names in (("class", inputs.class_names), ("group", inputs.groups)):
        parts = (
            {}
            if names is None
            else {name: judged_on[names[judged_on] == name] for name in np.unique(names)}
        )
        counts = {
            name: (int(is_member[rows].sum()), int((~is_member[rows]).sum()))
            for name, rows in parts.items()
        }
        able = {name: rows for name, rows in parts.items() if min(counts[name]) >= MIN_GROUP}
        p = dict(zip(able, groups_p(score, is_member, able.values()), strict=True))
        for name, rows in parts.items():
            auc = (
                None
                if name not in able
                else metrics.bootstrap(
                    "auc",
                    score[rows],
                    is_member[rows],
                    draws=DRAWS,
                    seed=options.seed,
                    level=1 - (1 - options.confidence) / len(able),
                )
            )
            results.append(GroupResult(kind, str(name), *counts[name], auc, p.get(name)))
    return tuple(results)


def groups_p(score: np.ndarray, is_member: np.ndarray, groups: Iterable[np.ndarray]) -> list[float]:
    """p-values of no leak in each group of records, of which the rows are given, by `rank_p` (score [N], is_member bool [N]),
    corrected by Holm's method for all."""
    alone = [rank_p(score[rows], is_member[rows]) for rows in groups]
    return metrics.holm(alone).tolist() if alone else []


def p_values(score: np.ndarray, is_member: np.ndarray) -> np.ndarray:
    """p-value of each record, [N]: the share of the non-members that score as high, counting one
    more. Without a leak, that of a member is at most alpha with a probability of at most alpha."""
    outside = np.sort(score[~is_member])
    return (len(outside) - np.searchsorted(outside, score, side="left") + 1) / (len(outside) + 1)


def _find_exposed(inputs, score: np.ndarray) -> ExposedRecords:
    members, others = int(inputs.is_member.sum()), int((~inputs.is_member).sum())
    # the lowest rate of those looked at that ten non-members make, or one in ten
    level = next(
        (rate for rate in (*reversed(inputs.options.rates), 0.05) if rate * others >= 10), 0.1
    )
    rate = p_values(score, inputs.is_member)[:members]
    order = np.argsort(-score[:members], kind="stable")[:SHOWN]
    chance = math.floor(level * (others + 1) + 1e-9) / (others + 1)
    last = score[:members] == score[order[-1]]
    tied = int(last.sum()) if last.sum() > last[order].sum() else 0
    classes = inputs.class_names
    return ExposedRecords(
        level,
        int((rate <= level + 1e-12).sum()),
        chance * members,
        tied,
        tuple(
            ExposedRecord(
                int(inputs.rows[i]),
                None if inputs.ids is None else str(inputs.ids[i]),
                None if classes is None else str(classes[i]),
                score[i],
                rate[i],
            )
            for i in order
        ),
    )
