"""Metrics averaged over targets, with intervals that cover which targets and records were drawn.

The bootstrap calls the functions that a metric is made of on counts of resampled records.

Shapes: N records, T target models, U units of chance, B bootstrap draws, K metrics.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mia_lib.checks import (
    Indices,
    Members,
    Metric,
    MetricNames,
    Scores,
    check_mask,
    check_numbers,
    check_order,
)
from mia_lib.errors import MiaError, check_count, check_range, check_whole
from mia_lib.metrics.interval import MIN_UNITS, UNITS, UNRESOLVED, Interval
from mia_lib.metrics.ranking import (
    check_attacks,
    check_metrics,
    check_scores,
    look_up_metric,
    per_target,
    rank,
    resolves,
)
from mia_lib.progress import track

if TYPE_CHECKING:
    import pandas as pd

CELLS = 500_000  # weights drawn at once; with their sums and a metric's steps about 40 MB
# scores in all resamples of a call from which on it takes more than seconds, and has a bar
LONG = 10**8


def _weights(rng, draws: int, count: int) -> np.ndarray:
    """Number of times that each of `count` things is drawn in each of `draws` resamples with
    replacement, int [count, draws]."""
    drawn = rng.integers(0, count, (draws, count)) * draws + np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=count * draws).reshape(count, draws)


def rank_records(scores: np.ndarray, members: np.ndarray, records: np.ndarray) -> tuple:
    """A target's ranking by falling score: the record in each place, int [N]; whether it is a
    member, bool [N]; and how many places each threshold calls members, int [U + 1], or None where
    no scores tie."""
    order, ranked_members, last = rank(scores, members)
    ends = np.append(0, last + 1).astype(np.int32) if len(last) < len(order) else None
    return records[order].astype(np.int32), ranked_members, ends


def tally_resamples(ranking: tuple, weights: np.ndarray, work: dict) -> np.ndarray:
    """Members and non-members in B resamples at or above each distinct score, int [2, B, U + 1], as `tally` counts them.

    Args:
        ranking: of `rank_records`.
        weights: whole numbers [records, B], how often each record counts. Fastest in one byte each.
        work: keeps the arrays of one call for the next, which writes over them: fresh memory costs more than the sums in it.
    """
    (places, ranked_members, ends), draws = ranking, weights.shape[1]
    layout = (draws, len(places)), weights.dtype
    if work.get("layout") != layout:
        work |= {
            "layout": layout,
            "by_record": np.empty(layout[0][::-1], weights.dtype),
            "by_score": np.empty(*layout),
            "counts": np.zeros((2, draws, len(places) + 1), np.int32),
        }
    by_record, by_score, counts = work["by_record"], work["by_score"], work["counts"]
    # all weights of a record at once, which lie together
    weights.take(places, axis=0, out=by_record, mode="clip")
    by_score[:] = by_record.T
    by_score.cumsum(axis=1, dtype=np.int32, out=counts[1, :, 1:])
    by_score *= ranked_members
    by_score.cumsum(axis=1, dtype=np.int32, out=counts[0, :, 1:])
    counts[1] -= counts[0]
    return counts if ends is None else counts.take(ends, axis=2)


def draw_unit_means(
    cores,
    scores: Sequence[np.ndarray],
    members: np.ndarray,
    records: np.ndarray,
    unit: np.ndarray,
    draws: int,
    seed: int,
) -> np.ndarray:
    """Bootstrap draws [S, K, U, B] of the mean of K metrics of S attacks over each unit: records are resampled, the same ones
    for all targets and attacks. The same seed and number of records give the same resamples.

    Args:
        cores: functions of (tp, fp), K of them. scores: S times [T, N]. records: the record in each place, int [T, N].
        unit: int [T].
    """
    rng, count, pool = np.random.default_rng(seed), np.bincount(unit), 1 + records.max()
    sides = [np.flatnonzero(np.bincount(records[0][members[0] == side])) for side in (True, False)]
    rankings = [
        [rank_records(*of_target) for of_target in zip(score, members, records, strict=True)]
        for score in scores
    ]
    chunks: list = []
    work: dict = {}
    starts = range(0, draws, step := max(1, CELLS // pool))
    for start in (
        track(starts, "resampling records")
        if draws * len(scores) * members.size >= LONG
        else starts
    ):
        size = min(step, draws - start)
        if len(unit) == 1:  # members and non-members apart
            weights = np.zeros((pool, size), int)
            for drawn in sides:
                weights[drawn] = _weights(rng, size, len(drawn))
        else:
            weights = _weights(rng, size, pool)
        weights = weights.astype(np.int8 if weights.max() < 128 else np.int32)
        means = np.zeros((len(scores), len(cores), len(count), size))
        with np.errstate(invalid="ignore", divide="ignore"):
            for attack, of_attack in zip(means, rankings, strict=True):
                for u, ranking in zip(unit, of_attack, strict=True):
                    tp, fp = tally_resamples(ranking, weights, work)
                    attack[:, u] += np.array([core(tp, fp) for core in cores]) / count[u]
        chunks.append(means)
    drawn = np.concatenate(chunks, axis=3)
    # a tiny resample may hold no member at all
    return drawn[..., np.isfinite(drawn).all((0, 1, 2))]


def units_of_chance(groups, members: np.ndarray) -> tuple[np.ndarray, str]:
    """Unit of chance of each target as 0 ... U - 1, and what they are called, "" where each target is its own.

    Banks where there are several. Of one bank complementary pairs, found by their members, where there are `UNITS` of them:
    what the halves of the records differ in helps one of a pair as much as it hinders the other."""
    targets = len(members)
    if groups is not None:
        groups = check_numbers("groups", groups, "biufSU")
        if groups.shape != (targets,):
            raise MiaError(
                f"groups of shape {groups.shape} for {targets} targets: give the bank of each target."
            )
        index = np.unique(groups, return_inverse=True)[1]
        if index.max() > 0:
            return index, "banks"
    if targets >= 2 * UNITS and targets % 2 == 0 and np.array_equal(members[::2], ~members[1::2]):
        return np.arange(targets) // 2, "pairs"
    return np.arange(targets), ""


def record_positions(records, members: np.ndarray, banks: np.ndarray) -> np.ndarray:
    """The record in each place, int [T, N]: as given, or the same ones in the same order for all targets of a bank."""
    if records is None:
        return banks[:, None] * members.shape[1] + np.arange(members.shape[1])
    records = np.atleast_2d(check_numbers("records", records))
    if records.shape != members.shape or records.dtype.kind not in "iu" or records.min() < 0:
        raise MiaError(
            f"records of shape {records.shape} and type {records.dtype} for scores of {members.shape}: give the "
            "number of the record in each place, whole and from 0."
        )
    return records.astype(np.int64)


def _between(values: np.ndarray, drawn: np.ndarray) -> tuple[float, float]:
    """Variance of the mean over units of `values` [U], and its degrees of freedom; `drawn` [U, B]
    are the values under resampling of the records."""
    units = len(values)
    of_units, of_records = values.var(ddof=1) / units, drawn.mean(0).var()
    if units < UNITS:
        return of_units + of_records, units - 1
    # What records do to single units is in the first variance as well, and counted once.
    excess = of_units - drawn.var(1).sum() / units**2
    if excess <= 0:
        return of_records, np.inf
    # Where errors of units cancel, as complementary targets' do, the sum is less than what the units' own spread says, and
    # known far worse than from so many units: then that spread stands.
    total = max(of_records + excess, of_units)
    return total, total**2 * (units - 1) / of_units**2


def interval_over_units(
    values: np.ndarray, drawn: np.ndarray, level: float, covers: str, bounds, exact: bool
) -> Interval:
    """Interval of the mean over units, with arguments as for `_between` and `Interval`. Fewer units
    than `MIN_UNITS` have none, unless the number is `exact`."""
    variance, dof = _between(values, drawn)
    interval = Interval(
        float(values.mean()),
        np.inf,
        np.inf,
        level,
        covers,
        dof=dof,
        se=float(np.sqrt(variance)),
        bounds=bounds,
        exact=exact,
    )
    if len(values) < MIN_UNITS and not exact:
        return interval.without(f"{covers}: too few for an interval")
    return interval.at(level)


def intervals(
    names,
    scores,
    members,
    minus=None,
    groups=None,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    records=None,
) -> dict[str, Interval]:
    """Several metrics at once, from the same resamples: `bootstrap` of each, or `compare` of each where `minus` is given.

    Args:
        names: metrics, those at a false positive rate written as "tpr_at_fpr=0.01".
        minus: scores of another attack, of the same shape, whose metrics are subtracted. Others
            are as in `bootstrap`.

    Returns:
        name -> interval.
    """
    if check_range("level", level, 0, 1) < 0.5:
        warnings.warn(
            f"level = {level:g} is the confidence of an interval, less than a half: for 95 % give 0.95.",
            UserWarning,
            stacklevel=3,
        )
    draws, seed = check_count("draws", draws, 10), check_whole("seed", seed, 0)
    full, cores, ranges = zip(*(look_up_metric(name) for name in names), strict=True)
    attacks, masks = zip(
        *(
            check_scores(score, members)[:2]
            for score in ((scores,) if minus is None else (scores, minus))
        ),
        strict=True,
    )
    if len({score.shape for score in attacks}) > 1:
        raise MiaError(
            f"scores of {' and '.join(str(score.shape) for score in attacks)} differ in shape: a paired difference "
            "needs the same targets and records."
        )
    unit, kind = units_of_chance(groups, masks[0])
    targets, count = len(unit), np.bincount(unit)
    places = record_positions(
        records, masks[0], unit if kind == "banks" else np.zeros(targets, int)
    )
    drawn = draw_unit_means(cores, attacks, masks[0], places, unit, draws, seed)
    values = np.array(
        [
            per_target(lambda tp, fp: [core(tp, fp) for core in cores], score, masks[0]).T
            for score in attacks
        ]
    )
    # what differs by nothing does so by no matter of chance
    same = minus is not None and np.array_equal(*attacks)
    if minus is not None:
        values, drawn = values[:1] - values[1:], drawn[:1] - drawn[1:]
        ranges = [(low - high, high - low) for low, high in ranges]
    different = np.count_nonzero(np.bincount(places.ravel()))
    covers = (
        f"{len(count)} banks" if kind == "banks" else f"{targets} targets and {different} records"
    )
    made = []
    for name, of_targets, of_units, bounds in zip(full, values[0], drawn[0], ranges, strict=True):
        if targets == 1:
            value = float(of_targets[0])
            interval = Interval(
                value, value, value, level, "records only", draws=of_units[0], bounds=bounds
            ).at(level)
        else:
            interval = interval_over_units(
                np.bincount(unit, of_targets) / count, of_units, level, covers, bounds, same
            )
        # the bias of a peak is larger than its spread
        made.append(
            interval.without("a peak, which has no interval")
            if name == "balanced_accuracy"
            else interval
        )
    return dict(zip(names, made, strict=True))


def bootstrap(
    metric: Metric,
    scores: Scores,
    members: Members,
    fpr: float | None = None,
    groups: Indices = None,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    records: Indices = None,
) -> Interval:
    """A metric, averaged over targets, with an interval that covers all the chance that the data can show.

    Two things vary from one experiment to the next: the unit of chance, which is the bank where there are two or more, else a
    complementary pair of targets where there are four pairs, else the target; and the records, which units may share. The
    variance between units and that under resampling of the records, the same for all targets, make the interval:

    1. Three units: their sum, Student's t with two degrees of freedom. What is special to one unit and one record is counted
       twice, so the interval errs on the wide side. Two units have no interval: how far they differ says too little of how
       far others would.
    2. Four units or more: the variance under resampling, and that between units as far as it exceeds what resampling does to
       single units. So nothing is counted twice, whether units share all records, some or none. If there is such an excess,
       the sum is not less than the variance between units says, with one degree of freedom less than there are units.
    3. One target: its records alone, members and non-members apart. Another training run might differ more, and the
       interval says so: it covers "records only".

    The value is the mean of unit means: the mean over targets where units are equally large. Draws are recentred on the
    estimate, intervals clipped to the range of the metric. A metric at the end of its range (a perfect attack) has no spread
    to resample: its interval has no width and counts as `degenerate`. A peak accuracy has no interval at all.

    Scores are sorted once, and time grows as records and draws do: seconds for a million records and 100 draws. Memory holds,
    beside the scores, up to 9 bytes for each of them, and 40 MB of resamples, or 70 bytes a record where one takes more.

    Args:
        metric: a metric of `mia_lib.metrics` or its name; "tpr_at_fpr=0.01" carries its rate.
        scores, members: [N] or [T, N], scores higher = more likely a member.
        fpr: for the rates at an FPR and `precision_at_fpr`.
        groups: [T], the bank of each target; all in one bank by default.
        level: confidence. draws, seed: of the resamples.
        records: int [T, N], which record of a pool stands in each place, from 0; by default the targets of a bank are judged
            on the same ones in the same order, and banks share none.

    Raises:
        MiaError: as `roc_curve`; unknown metric, `fpr` missing or outside [0, 1), `groups` of another length.

    Warns:
        UserWarning: a rate that the non-members do not resolve, see `resolves`.
    """
    return _one_interval(metric, fpr, scores, members, None, groups, level, draws, seed, records)


def compare(
    metric: Metric,
    scores_a: Scores,
    scores_b: Scores,
    members: Members,
    fpr: float | None = None,
    groups: Indices = None,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    records: Indices = None,
) -> Interval:
    """Paired difference metric(a) - metric(b), both attacks judged on the same resamples; rules as in `bootstrap`."""
    check_order(-1, scores_a=scores_a, scores_b=scores_b, members=members)
    scores_b = check_numbers("scores_b", scores_b)
    return _one_interval(
        metric, fpr, scores_a, members, scores_b, groups, level, draws, seed, records
    )


def _one_interval(metric, fpr, scores, members, *others) -> Interval:
    name = look_up_metric(metric, fpr)[0]
    [interval] = intervals([name], scores, members, *others).values()
    _, _, rate = name.partition("_at_fpr=")
    if rate and not resolves(members, float(rate)):
        count = int((~np.atleast_2d(check_mask("members", members))).sum(1).min())
        warnings.warn(
            f"{name} is below the resolution: {count} non-members make no rate between 0 and 1 / {count} = "
            f"{1 / count:.3g}, so this is the rate at which none of them is called, and says nothing about {rate}. "
            "Use more non-members, or a higher fpr.",
            UserWarning,
            stacklevel=3,
        )
    return interval


def evaluate(
    scores: Mapping[str, np.ndarray],
    members: Members,
    groups: Indices = None,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    metrics: MetricNames = ("auc", "balanced_accuracy", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001"),
) -> pd.DataFrame:
    """Tidy table of attacks and metrics with intervals as in `bootstrap`.

    Args:
        scores: attack name -> [N] or [T, N]. members, groups, level, draws, seed: as in `bootstrap`.
        metrics: names, those at a false positive rate written as "tpr_at_fpr=0.01".

    Returns:
        DataFrame with columns attack, metric, value, low, high (not a number for a peak accuracy), level, covers, targets,
        records, resolution (1 / #non-members) and resolved. A TPR at an FPR below the resolution is not a number.
    """
    import pandas as pd

    check_attacks(scores)
    names = check_metrics(metrics)
    rows = []
    for attack, of_attack in scores.items():
        checked, checked_members, _ = check_scores(of_attack, members)
        resolution = 1 / (~checked_members).sum(1).min()
        for name, i in intervals(
            names, of_attack, members, None, groups, level, draws, seed
        ).items():
            resolved = float(name.partition("_at_fpr=")[2] or 1) >= resolution
            if not resolved:
                i = Interval(np.nan, np.nan, np.nan, i.level, UNRESOLVED)
            rows.append(
                {
                    "attack": attack,
                    "metric": name,
                    "value": i.value,
                    "low": i.low,
                    "high": i.high,
                    "level": i.level,
                    "covers": i.covers,
                    "targets": len(checked),
                    "records": checked.shape[1],
                    "resolution": resolution,
                    "resolved": resolved,
                }
            )
    return pd.DataFrame(rows)
