"""Lower bounds on epsilon: what scores refute of differential privacy.

`epsilon_lower_bound` is of many training runs with a record each, `epsilon_one_run` of one with many canaries (Steinke, Nasr
and Jagielski 2023). There a fair coin decides of each of m canaries whether it is trained on. The auditor ranks them by a
score, says "in" of the k+ highest and "out" of the k- lowest, and abstains from the others. If training is (epsilon,
delta)-private, v or more of the r = k+ + k- guesses are right with at most the chance (Theorem 3.1)::

    P[W >= v] + 2 m delta max_{i = 1..v} P[v - i <= W < v] / i,    W ~ Binomial(r, e^epsilon / (1 + e^epsilon)).

So guesses that are right too often refute an epsilon, and the largest that is refuted is the bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from mia_lib.checks import Members, Scores
from mia_lib.errors import MiaError, check_count, check_range, check_whole
from mia_lib.metrics.ranking import check_scores, tally

COIN_TEST_LEVEL = 1e-6  # coins fall so rarely as one-sided as that
# of the canaries, to either side, where no numbers of guesses are given
SHARES = (1 / 20, 1 / 10, 1 / 4, 1 / 2)


class _Bound(float):
    """A float, equal to the first of its fields; the other fields say how it was found."""

    def __new__(cls, bound: float, *_, **__):
        return super().__new__(cls, bound)


@dataclass(frozen=True, eq=False)
class OneRunBound(_Bound):
    """A lower confidence bound on epsilon from one training run; it is a number, the bound, wherever one is wanted.

    Attributes:
        bound: on epsilon, never below 0.
        guessed_in, guessed_out: k+ and k-, the numbers of guesses that gave the bound.
        right: how many of these guesses were right.
        canaries: m, with those about which nothing was guessed.
        delta, confidence: as given.
    """

    bound: float
    guessed_in: int
    guessed_out: int
    right: int
    canaries: int
    delta: float
    confidence: float


def one_run_p_value(
    right: int, guesses: int, canaries: int, epsilon: float, delta: float = 0.0
) -> float:
    """The most chance that (epsilon, delta)-differential privacy leaves so many right guesses or more: Theorem 3.1 of Steinke,
    Nasr and Jagielski 2023.

    Args:
        right: v, guesses that were right. guesses: r, all that were made.
        canaries: m, with those about which nothing was guessed; it matters with `delta` > 0 alone.
        epsilon: at least 0. delta: in [0, 1]; with 0 this is the tail of a binomial distribution.

    Raises:
        MiaError: more right guesses than guesses, more guesses than canaries, numbers out of range.
    """
    check_whole("canaries", canaries, 1)
    check_whole("guesses", guesses, 0, canaries)
    check_whole("right", right, 0, guesses)
    check_range("epsilon", epsilon, 0)
    check_range("delta", delta, 0, 1)
    from scipy import special

    if not right:
        return 1.0
    correct = special.expit(epsilon)  # the chance that one guess is
    tail = special.betainc(right, guesses - right + 1, correct)  # P[W >= v]
    if not delta:
        return float(tail)
    fewer = np.arange(right - 1, 0, -1)  # v - i
    tails = np.append(special.betainc(fewer, guesses - fewer + 1, correct), 1.0)
    just_below = np.max((tails - tail) / np.arange(1, right + 1))
    return float(min(1.0, tail + 2 * canaries * delta * just_below))


def epsilon_one_run(
    scores: Scores,
    members: Members,
    guesses: tuple[int, int] | Sequence[tuple[int, int]] | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    seed: int = 0,
) -> OneRunBound:
    """Lower confidence bound on the epsilon of (epsilon, delta)-differential privacy, from one training run: Steinke, Nasr and
    Jagielski 2023, Algorithm 1 and Theorem 3.1.

    It holds on these conditions, and the numbers cannot show whether they were kept:

    - *Coins.* Of each canary a fair coin of its own decided whether it was in. Exactly half of them drawn without replacement,
      members that were chosen, and a canary that is there twice are no such coins.
    - *Canaries first.* Which records are canaries, and how they are scored, was settled before anyone looked at who is in.
    - *Guesses first.* So were their numbers. Who looks which numbers give the largest bound gives them all, and each is then
      judged at (1 - confidence) divided by how many there are (Bonferroni).
    - *The neighbours of the proof.* Privacy is about a record more or less, and about each canary by itself: nothing else in
      the training, such as the rate at which records are drawn, follows from how many are in.

    A bound of 0 says nothing of privacy: the attack may have been weak. With `delta` > 0 the bound falls with the number of
    canaries, guessed or not.

    Args:
        scores: [m], higher = more likely in; a score for each canary, made without knowledge of the coins. Equal scores are
            put into a random order, for in the order of a table members may come first.
        members: bool [m], the coins.
        guesses: (k+, k-): how many of the highest scores are said to be in, how many of the lowest to be out; or several such
            pairs; when None four, a twentieth, a tenth, a quarter and half of the canaries to either side.
        delta: in [0, 1].
        confidence: chance, at least, that the bound is not above the true epsilon; between 0 and 1.
        seed: of the order of equal scores.

    Returns:
        `OneRunBound`: the bound, and the guesses that gave it.

    Raises:
        MiaError: as `roc_curve`; several runs, more guesses than canaries, numbers out of range; so many or so few canaries in
            that fair coins do not fall like that once in a million runs.
    """
    check_range("delta", delta, 0, 1)
    if not 0 < _check_confidence(confidence) < 1:
        raise MiaError(
            f"confidence = {confidence!r}: a number between 0 and 1 is needed, such as 0.95."
        )
    scores, members, single = check_scores(scores, members)
    if not single:
        raise MiaError(
            f"scores of shape {scores.shape}: give the canaries of one run, [m]. Each run has a bound of its own."
        )
    scores, members, count = scores[0], members[0], scores.shape[1]
    pairs = _pairs(guesses, count)
    _check_coins(int(members.sum()), count)
    shuffled = np.random.default_rng(check_whole("seed", seed, 0)).permutation(count)
    ranked = members[shuffled[np.argsort(scores[shuffled], kind="stable")[::-1]]]
    bounds = []
    for guessed_in, guessed_out in pairs:
        right = int(ranked[:guessed_in].sum() + (~ranked[count - guessed_out :]).sum())
        bound = _bound_in_one_run(
            right, guessed_in + guessed_out, count, delta, (1 - confidence) / len(pairs)
        )
        bounds.append(OneRunBound(bound, guessed_in, guessed_out, right, count, delta, confidence))
    return max(bounds)


def _check_confidence(confidence: float) -> float:
    if 0 < check_range("confidence", confidence, 0, 1) < 0.5:
        warnings.warn(
            f"confidence = {confidence:g} is that of a bound, less than a half: for 95 % give 0.95.",
            UserWarning,
            stacklevel=3,
        )
    return confidence


def _pairs(guesses, canaries: int) -> list[tuple[int, int]]:
    """`guesses` as a list of pairs (k+, k-), or for None a pair for each of `SHARES`. More guesses
    than canaries, and what are no pairs of whole numbers, raise `MiaError`."""
    if guesses is None:
        return [(max(1, int(share * canaries)),) * 2 for share in SHARES]
    given: np.ndarray = np.empty(0)
    with suppress(ValueError):  # pairs of another length
        given = np.array(guesses, ndmin=2)
    if given.ndim != 2 or given.shape[1:] != (2,) or given.dtype.kind not in "iu":
        raise MiaError(
            f"guesses = {guesses!r}: a pair (k+, k-) of whole numbers is needed, such as (100, 100), or several: "
            "of the canaries with the highest scores so many are said to be in, of the lowest so many out."
        )
    pairs = [(guessed_in, guessed_out) for guessed_in, guessed_out in given.tolist()]
    for pair in pairs:
        if min(pair) < 0 or not 1 <= sum(pair) <= canaries:
            raise MiaError(
                f"guesses = {pair}: allowed are from 1 to {canaries} in all, of so many canaries."
            )
    return pairs


def _check_coins(inside: int, canaries: int) -> None:
    from scipy import stats

    chance = stats.binomtest(inside, canaries).pvalue
    if chance < COIN_TEST_LEVEL:
        raise MiaError(
            f"{inside} of {canaries} canaries are in: fair coins fall so one-sidedly in {chance:.0e} of all runs. "
            "The bound holds where a fair coin of its own decided of each canary, so give all of them, those that "
            "were left out as well. Of members chosen otherwise metrics.epsilon_lower_bound judges scores."
        )


def _bound_in_one_run(right: int, guesses: int, canaries: int, delta: float, level: float) -> float:
    """An epsilon up to which so many right guesses have less than the chance `level`. Any such
    epsilon may be returned, the largest or not: where the true one is below it, the guesses were as
    rare as it says."""
    from scipy import special

    if one_run_p_value(right, guesses, canaries, 0.0, delta) >= level:
        return 0.0
    # exact without delta
    low, high = 0.0, float(special.logit(special.betaincinv(right, guesses - right + 1, level)))
    while delta and high - low > 1e-6:
        middle = (low + high) / 2
        rare = one_run_p_value(right, guesses, canaries, middle, delta) <= level
        low, high = (middle, high) if rare else (low, middle)
    return low if delta else high


@dataclass(frozen=True, eq=False)
class EpsilonBound(_Bound):
    """A lower confidence bound on epsilon and the test that gave it; it is a number, the bound, wherever one is wanted.

    Attributes:
        bound: on epsilon, never below 0.
        threshold: scores that reach it are called members.
        direction: "members" where epsilon shows in those who are called members, so in (tpr - delta) / fpr; "non-members"
            where it shows in the others, (tnr - delta) / fnr.
        tpr, fpr: of that threshold, on the half of the records that did not choose it.
        delta, confidence: as given.
        splits: bound of each split in halves, [S], ascending.
    """

    bound: float
    threshold: float
    direction: str
    tpr: float
    fpr: float
    delta: float
    confidence: float
    splits: np.ndarray = field(repr=False)


def epsilon_lower_bound(
    scores: Scores,
    members: Members,
    delta: float = 0.0,
    confidence: float = 0.95,
    seed: int = 0,
    splits: int = 11,
) -> EpsilonBound:
    """Lower confidence bound on the epsilon of (epsilon, delta)-differential privacy that these scores
    refute.

    Differential privacy asks TPR <= e^epsilon FPR + delta of every attack, and the same of TNR and FNR.
    Threshold and direction are chosen on one random half of the records; on the other half the two rates get
    one-sided Clopper-Pearson bounds at (1 - confidence) / 2 each (Bonferroni). The bound holds where records are
    independent trials, one record a training run. Records of a single run are not: with delta > 0 that run may be the rare
    one that gives everything away, and what is returned is then no confidence bound.

    One split in halves is a matter of luck, so the bound is the median over `splits` of them, each at the confidence
    1 - (1 - confidence) / 2: should the median be too high, half of the splits are, and by Markov's inequality that has at
    most twice the chance of one. (A mean has no such rule.) With an even number it is the lower of the middle two.

    Args:
        scores: [N], higher = more likely a member. members: bool [N].
        delta: in [0, 1]. confidence: chance that the bound is below the true epsilon.
        seed, splits: of the splits in halves; S, how many, 1 for a single one, at the confidence itself.

    Returns:
        `EpsilonBound`: the bound, and threshold, direction and rates of the split that it is from.

    Raises:
        MiaError: as `roc_curve`; several targets, fewer than two members or non-members, numbers out of range.
    """
    check_range("delta", delta, 0, 1)
    _check_confidence(confidence)
    splits, seed = check_count("splits", splits), check_whole("seed", seed, 0)
    scores, members, single = check_scores(scores, members)
    if not single or min(members.sum(), (~members).sum()) < 2:
        raise MiaError(
            f"scores of shape {scores.shape}: give one target with at least 2 members and 2 "
            "non-members; the threshold is chosen on one half and judged on the other."
        )
    scores, members = scores[0], members[0]
    rng, alpha = np.random.default_rng(seed), (1 - confidence) / (2 if splits == 1 else 4)
    bounds = []
    for _ in range(splits):
        first = np.zeros(len(scores), bool)
        for side in map(np.flatnonzero, (members, ~members)):
            first[rng.permutation(side)[: len(side) // 2]] = True
        bounds.append(_bound_of_split(scores, members, first, delta, alpha))
    bounds.sort(key=lambda bound: bound[0])
    return EpsilonBound(
        *bounds[(splits - 1) // 2], delta, confidence, np.array([bound[0] for bound in bounds])
    )


def _bound_of_split(
    scores, members, first, delta: float, alpha: float
) -> tuple[float, float, str, float, float]:
    """Bound, threshold, direction, TPR and FPR. Threshold and direction are chosen on the records
    `first`, and judged on the others; the confidence bound of each rate is at `alpha`."""
    from scipy import stats

    def bounds(hits, hit_total, misses, miss_total):
        low = np.where(
            hits > 0, stats.beta.ppf(alpha, np.maximum(hits, 1), hit_total - hits + 1), 0
        )
        high = np.where(
            misses < miss_total,
            stats.beta.isf(alpha, misses + 1, np.maximum(miss_total - misses, 1)),
            1,
        )
        return np.log(np.maximum(low - delta, 1e-300) / high)

    def both(tp, fp, total, other):  # calling members, and calling non-members
        return np.array(
            [bounds(tp, total, fp, other), bounds(other - fp, other, total - tp, total)]
        )

    tp, fp, thresholds = tally(scores[first], members[first])
    some = np.unique(np.linspace(0, len(tp) - 1, 1000).astype(int))  # enough, and quick on any size
    direction, best = divmod(int(np.argmax(both(tp[some], fp[some], tp[-1], fp[-1]))), len(some))
    threshold, holdout_members = thresholds[some[best]], members[~first]
    called = scores[~first] >= threshold
    hit = (called & holdout_members).sum()
    miss = (called & ~holdout_members).sum()
    total = holdout_members.sum()
    other = (~holdout_members).sum()
    bound = float(both(hit, miss, total, other)[direction])
    return (
        max(0.0, bound),
        float(threshold),
        ("members", "non-members")[direction],
        float(hit / total),
        float(miss / other),
    )
