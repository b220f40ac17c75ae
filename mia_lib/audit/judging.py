"""What scores say: rates with intervals, tests corrected for their number, bounds, groups, records.

The attack that speaks for the audit is chosen on one random half of the records and judged on the other, so that the best of
many is not taken for more than it is. Whether anything was found at all is asked of all attacks together, by Holm's method.

Shapes: N records of the pool, members first; A attacks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import ndtr

from mia_lib import metrics
from mia_lib.audit.attacks import ATTACKS, family
from mia_lib.audit.given import Given
from mia_lib.metrics import EpsilonBound, Interval, ranking

DRAWS = 300  # of bootstraps
POINTS = 60  # of a curve
CELLS = 500_000  # weights drawn at once
SHOWN = 25  # exposed records
DISTINCT = 20  # values of a score that can call few records
COUNTED = 2e7  # sums of ranks that an exact test adds up, at most
LEAST = 10  # members, and non-members, of a group that is judged
ALONE = 0.01  # p-value from which on members are told from non-members without the model, and a model from a guess


@dataclass(frozen=True)
class Rate:
    """True positive rate at a false positive rate.

    Attributes:
        fpr: asked for. found: with its interval. chance: what scores that know nothing give. resolved: whether there are
            non-members enough. tied: whether so many of them tie at the top that no threshold has so low a rate.
    """

    fpr: float
    found: Interval
    chance: float
    resolved: bool
    tied: bool


@dataclass(frozen=True, eq=False)
class Curve:
    """An ROC curve with a pointwise band, [G] each; from one non-member on."""

    fpr: np.ndarray
    tpr: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, eq=False)
class Judged:
    """What an attack found.

    Attributes:
        name: of the attack. family: what it goes by. audits: whether it is told who is a member.
        auc: with its interval. rates: at each false positive rate. curve: of it all.
        p: of no leak, by this attack's two tests, corrected for all attacks and tests; None of an audit tool.
        epsilon: lower bound, at a confidence at which those of all attacks hold together; None of an audit tool.
        constant: whether all records have one score.
    """

    name: str
    family: str
    audits: bool
    auc: Interval
    rates: tuple[Rate, ...]
    curve: Curve
    p: float | None
    epsilon: EpsilonBound | None
    constant: bool


@dataclass(frozen=True, eq=False)
class Headline:
    """The attack that was chosen on one half of the records, on the other.

    Attributes:
        name: of the attack. second: the best of another family, or "". judged: rows of the other half.
        auc, rates: there.
    """

    name: str
    second: str
    judged: np.ndarray
    auc: Interval
    rates: tuple[Rate, ...]


@dataclass(frozen=True)
class Group:
    """Records of one group or class, on the half that judges.

    Attributes:
        kind: "class" or "group". name: of it. members, others: how many.
        auc: with an interval at the level at which those of all groups of this kind would hold together, were each exact,
            which the bootstrap of few records is not; None where there are too few.
        p: of no leak in it, by a rank test, corrected for all groups of this kind that are judged; None where it is not.
    """

    kind: str
    name: str
    members: int
    others: int
    auc: Interval | None
    p: float | None = None


@dataclass(frozen=True, eq=False)
class Exposed:
    """Members by how exposed they are to the headline attack, the most exposed first.

    Attributes:
        index: into the members given, [E]. label: class of each. score: of the headline attack. rate: share of the non-members
            that score as high, counting one more: a p-value. second: the same of the second attack, or NaN.
        level: rate at which records are counted. called: members at most there. expected: how many that would be
            without a leak.
    """

    index: np.ndarray
    label: np.ndarray
    score: np.ndarray
    rate: np.ndarray
    second: np.ndarray
    level: float
    called: int
    expected: float


@dataclass(frozen=True, eq=False)
class Agreement:
    """What two attacks of different families agree on.

    Attributes:
        first, second: their names. level: false positive rate of each. index: members that both call, into those given.
        expected: how many that would be, were calls independent. p: of so many by chance alone.
        others: non-members that both call. others_expected, others_p: the same of them.
    """

    first: str
    second: str
    level: float
    index: np.ndarray
    expected: float
    p: float
    others: int
    others_expected: float
    others_p: float


@dataclass(frozen=True, eq=False)
class Blind:
    """The control without the model.

    Attributes:
        auc: of telling members from non-members by the records alone. p: of no difference. apart: whether they differ.
        beyond: AUC of the headline attack less this one, on the same records; None where they do not differ.
    """

    auc: Interval
    p: float
    apart: bool
    beyond: Interval | None


@dataclass(frozen=True)
class Right:
    """How often the model is right about its own members.

    Attributes:
        members: that it is right about. guess: how many that would be on average, were their labels drawn at random from
            those of the pool. p: of as many by such a draw. guessed: whether they are no more than that.
    """

    members: int
    guess: float
    p: float
    guessed: bool


@dataclass(frozen=True, eq=False)
class Judgement:
    """All that scores say.

    Attributes:
        attacks: judged. headline: of them. blind: the control. right: about its own members. groups: classes and groups.
        exposed: records. agreement: of two attacks, or None.
        leak: whether any attack found anything; None where the control tells members from non-members, so that it cannot be
            said whether the model or the records were found.
        level: of intervals and tests.
    """

    attacks: tuple[Judged, ...]
    headline: Headline
    blind: Blind
    right: Right
    groups: tuple[Group, ...]
    exposed: Exposed
    agreement: Agreement | None
    leak: bool | None
    level: float

    @property
    def loss(self) -> Judged:
        """What the loss alone found."""
        return next(one for one in self.attacks if one.name == "MALT")

    @property
    def below(self) -> bool:
        """Whether members score below non-members, by the interval of the loss, and the control is quiet."""
        return self.loss.auc.high < 0.5 and not self.blind.apart


def judge(given: Given, scores: Mapping[str, np.ndarray], control: tuple[np.ndarray, np.ndarray],
          predicted: np.ndarray) -> Judgement:
    """What scores say.

    Args:
        scores: attack -> [N]. control: rows of the pool and their scores without the model, see `blind.scores`. predicted:
            class that the model gives each record of the pool, int [N].
    """
    inside, level = given.inside, given.confidence
    own = {name: one for name, one in scores.items() if not ATTACKS[name].audits}
    found = metrics.holm(tests(own.values(), inside, given.rates[0]))
    p = dict(zip(own, found.reshape(-1, 2).min(1).tolist(), strict=True))
    judged = tuple(_judged(given, name, one, p.get(name), len(own)) for name, one in scores.items())
    headline = chosen(own, inside, given.rates, given.seed, level)
    alone = _blind(given, control, own[headline.name])
    leak = None if alone.apart else bool(min(p.values()) < 1 - level)
    right = by_guess(predicted[inside], given.members.y, given.pool.y)
    return Judgement(judged, headline, alone, right, _groups(given, own[headline.name], headline.judged),
                     _exposed(given, own, headline), _agreement(given, own, headline), leak, level)


def tests(scores: Iterable[np.ndarray], inside: np.ndarray, fpr: float) -> np.ndarray:
    """p-values of both tests of each attack, [2 A], uncorrected."""
    return np.array([p for one in scores for p in (auc_p(one, inside), low_p(one, inside, fpr))])


def auc_p(score: np.ndarray, inside: np.ndarray) -> float:
    """p-value of no leak against a higher AUC: the rank test of Mann and Whitney by its Gaussian limit, ties counted."""
    ranks, (_, ties) = stats.rankdata(score), np.unique(score, return_counts=True)
    members, others = int(inside.sum()), int((~inside).sum())
    records = members + others
    variance = members * others / 12 * (records + 1 - (ties**3.0 - ties).sum() / (records * (records - 1)))
    if variance <= 0:  # all scores are equal
        return 1.0
    above = ranks[inside].sum() - members * (members + 1) / 2 - members * others / 2
    return float(ndtr(-(above - 0.5) / np.sqrt(variance)))


def rank_p(score: np.ndarray, inside: np.ndarray) -> float:
    """p-value of no leak against a higher AUC, as `auc_p`; exact for few records, whose ties and tails no Gaussian has.

    It is the share of all ways to deal out membership whose sum of ranks is as high. These are counted for the rarer side,
    one record after the other, by how many are dealt and what their ranks add up to.

    Args:
        score: [n]. inside: bool [n].
    """
    rarer, value = (inside, score) if 2 * inside.sum() <= len(inside) else (~inside, -score)
    ranks = np.rint(2 * stats.rankdata(value)).astype(int)  # twice, for ties have halves
    dealt, most = int(rarer.sum()), int(np.sort(ranks)[-rarer.sum():].sum())
    if len(ranks) * dealt * most > COUNTED:
        return auc_p(score, inside)
    ways = np.zeros((dealt + 1, most + 1))
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, :most + 1 - rank]
    return float(ways[-1, ranks[rarer].sum():].sum() / ways[-1].sum())


def low_p(score: np.ndarray, inside: np.ndarray, fpr: float) -> float:
    """p-value of no leak against a higher rate of members at few false positives; exact.

    With k = floor(fpr n) of n non-members allowed, X members lie above the one too many. Without a leak all orders of the
    records are equally likely, and X >= x just when the first x + k records hold at most k non-members: hypergeometric. Ties
    count against the attack.
    """
    outside, members = int((~inside).sum()), int(inside.sum())
    allowed = math.floor(fpr * outside + 1e-9)
    bar = np.sort(score[~inside])[::-1][min(allowed, outside - 1)]
    above = int((score[inside] > bar).sum())
    return float(stats.hypergeom.cdf(allowed, members + outside, outside, above + allowed))


def by_guess(predicted: np.ndarray, labels: np.ndarray, pool: np.ndarray) -> Right:
    """Whether a model is right about records more often than if their labels were drawn at random from those of the pool.

    Of a_k records that are taken for class k, which is a share q_k of the pool, such labels make it right about
    E = sum a_k q_k on average, with a variance of sum a_k q_k (1 - q_k); the p-value is that of the Gaussian limit. So a model
    that knows nothing but which class is frequent is as often right as a guess, whatever its accuracy.

    Args:
        predicted, labels: int [n]. pool: labels int [N].
    """
    classes = int(max(predicted.max(), pool.max())) + 1
    taken, share = np.bincount(predicted, minlength=classes), np.bincount(pool, minlength=classes) / len(pool)
    count, guess, variance = int((predicted == labels).sum()), float(taken @ share), float(taken @ (share * (1 - share)))
    p = float(ndtr((guess - count + 0.5) / np.sqrt(variance))) if variance > 0 else 1.0
    return Right(count, guess, p, bool(p >= ALONE))


def chosen(scores: Mapping[str, np.ndarray], inside: np.ndarray, rates: tuple[float, ...], seed: int,
           level: float = 0.95) -> Headline:
    """The attack with the highest AUC on one random half of the records, judged on the other."""
    chance, first = np.random.default_rng([41, seed]), np.zeros(len(inside), bool)
    for side in map(np.flatnonzero, (inside, ~inside)):
        first[chance.permutation(side)[:len(side) // 2]] = True
    ranked = sorted(scores, key=lambda name: -metrics.auc(scores[name][first], inside[first]))
    best = ranked[0]
    second = next((name for name in ranked if family(ATTACKS[name]) != family(ATTACKS[best])
                   and len(np.unique(scores[name])) >= DISTINCT), "")
    auc, found = _numbers(scores[best][~first], inside[~first], rates, seed, level)
    return Headline(best, second, np.flatnonzero(~first), auc, found)


def _numbers(score, inside, rates, seed, level) -> tuple[Interval, tuple[Rate, ...]]:
    names = ["auc", *(f"tpr_at_fpr={float(rate)!r}" for rate in rates)]
    found = metrics.intervals(names, score, inside, level=level, draws=DRAWS, seed=seed)
    auc, *tprs = found.values()
    tprs = [_exact(tpr, int(inside.sum()), level) for tpr in tprs]
    outside = np.sort(score[~inside])[::-1]
    together = int((outside == outside[0]).sum())
    return auc, tuple(
        Rate(rate, tpr, float(metrics.chance_tpr(inside, rate)), metrics.resolves(inside, rate),
             bool(together > max(1, rate * len(outside)))) for rate, tpr in zip(rates, tprs, strict=True))


def _exact(tpr: Interval, members: int, level: float) -> Interval:
    """A rate of none or of all members with its exact binomial interval, for resamples of it have no spread."""
    if tpr.value not in (0.0, 1.0):
        return tpr
    ends = stats.binomtest(round(tpr.value * members), members).proportion_ci(level, "exact")
    return Interval(tpr.value, float(ends.low), float(ends.high), level, f"{members} members, exact")


def curve(score: np.ndarray, inside: np.ndarray, seed: int, level: float = 0.95) -> Curve:
    """ROC from one false positive on, with a pointwise band from resampled records.

    Args:
        score: [N]. inside: bool [N]. seed: of the resamples.
    """
    members, outside = int(inside.sum()), int((~inside).sum())
    allowed = np.unique(np.geomspace(1, outside, POINTS).astype(int))

    def at(tp, fp):
        return tp[np.searchsorted(fp, allowed, side="right") - 1] / members

    chance, drawn = np.random.default_rng([43, seed]), []
    block = max(1, CELLS // len(inside))
    for start in range(0, DRAWS, block):
        weights = np.zeros((min(block, DRAWS - start), len(inside)), np.int32)
        for side in (inside, ~inside):
            weights[:, side] = chance.multinomial(side.sum(), np.full(side.sum(), 1 / side.sum()), len(weights))
        tp, fp, _ = ranking.tally(score, inside, weights)
        drawn += [at(*both) for both in zip(tp, fp, strict=True)]
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    tpr = at(*ranking.tally(score, inside)[:2])
    return Curve(allowed / outside, tpr, np.minimum(low, tpr), np.maximum(high, tpr))


def _judged(given: Given, name: str, score: np.ndarray, p: float | None, attacks: int) -> Judged:
    auc, rates = _numbers(score, given.inside, given.rates, given.seed, given.confidence)
    audits, epsilon = ATTACKS[name].audits, None
    if not audits:
        together = 1 - (1 - given.confidence) / attacks
        epsilon = metrics.epsilon_lower_bound(score, given.inside, given.delta, together, given.seed)
    return Judged(name, family(ATTACKS[name]), audits, auc, rates, curve(score, given.inside, given.seed, given.confidence), p,
                  epsilon, bool(np.ptp(score) == 0))


def _blind(given: Given, control: tuple[np.ndarray, np.ndarray], score: np.ndarray) -> Blind:
    rows, found = control
    inside = given.inside[rows]
    auc = metrics.bootstrap("auc", found, inside, level=given.confidence, draws=DRAWS, seed=given.seed)
    p = auc_p(found, inside)
    beyond = None
    if p < ALONE:
        beyond = metrics.compare("auc", score[rows], found, inside, level=given.confidence, draws=DRAWS, seed=given.seed)
    return Blind(auc, p, bool(p < ALONE), beyond)


def _groups(given: Given, score: np.ndarray, judged: np.ndarray) -> tuple[Group, ...]:
    classes = np.array(given.pool.classes)[given.pool.y]
    kinds = {"class": classes} | ({} if given.groups is None else {"group": given.groups})
    found = []
    for kind, names in kinds.items():
        parts = [(name, judged[names[judged] == name]) for name in np.unique(names)]
        counts = {name: (int(given.inside[rows].sum()), int((~given.inside[rows]).sum())) for name, rows in parts}
        able = {name: rows for name, rows in parts if min(counts[name]) >= LEAST}
        p = dict(zip(able, groups_p(score, given.inside, able.values()), strict=True))
        for name, rows in parts:
            auc = None
            if name in able:
                auc = metrics.bootstrap("auc", score[rows], given.inside[rows], draws=DRAWS, seed=given.seed,
                                        level=1 - (1 - given.confidence) / len(able))
            found.append(Group(kind, str(name), *counts[name], auc, p.get(name)))
    return tuple(found)


def groups_p(score: np.ndarray, inside: np.ndarray, groups: Iterable[np.ndarray]) -> list[float]:
    """p-values of no leak in each group, by `rank_p`, corrected by Holm's method for all of them.

    Args:
        score: [N]. inside: bool [N]. groups: rows of each.
    """
    alone = [rank_p(score[rows], inside[rows]) for rows in groups]
    return metrics.holm(alone).tolist() if alone else []


def p_values(score: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Share of the non-members that score as high as each record, counting one more: without a leak, of a member, it is at
    most alpha with a probability of at most alpha. [N]."""
    outside = np.sort(score[~inside])
    return (len(outside) - np.searchsorted(outside, score, side="left") + 1) / (len(outside) + 1)


def _counted(given: Given) -> float:
    """The lowest rate of those looked at that ten non-members make, or one in ten."""
    outside = len(given.non_members)
    return next((rate for rate in (*reversed(given.rates), 0.05) if rate * outside >= 10), 0.1)


def _exposed(given: Given, scores: Mapping[str, np.ndarray], headline: Headline) -> Exposed:
    members, level = len(given.members), _counted(given)
    score = scores[headline.name]
    rate = p_values(score, given.inside)[:members]
    second = p_values(scores[headline.second], given.inside)[:members] if headline.second else np.full(members, np.nan)
    order = np.argsort(-score[:members], kind="stable")[:SHOWN]
    chance = math.floor(level * (len(given.non_members) + 1) + 1e-9) / (len(given.non_members) + 1)
    return Exposed(order, given.members.y[order], score[order], rate[order], second[order], level,
                   int((rate <= level + 1e-12).sum()), float(chance * members))


def _agreement(given: Given, scores: Mapping[str, np.ndarray], headline: Headline) -> Agreement | None:
    if not headline.second:
        return None
    level, inside = _counted(given), given.inside
    calls = [p_values(scores[name], inside) <= level + 1e-12 for name in (headline.name, headline.second)]
    both = calls[0] & calls[1]
    a, b, n = *(int(call[inside].sum()) for call in calls), int(inside.sum())
    c, d, m = *(int(call[~inside].sum()) for call in calls), int((~inside).sum())
    index = np.flatnonzero(both[inside])
    order = np.argsort(-scores[headline.name][index], kind="stable")
    others = int(both[~inside].sum())
    p, others_p = (float(stats.hypergeom.sf(*of)) for of in ((len(index) - 1, n, a, b), (others - 1, m, c, d)))
    return Agreement(headline.name, headline.second, level, index[order], a * b / n, p, others, c * d / m, others_p)
