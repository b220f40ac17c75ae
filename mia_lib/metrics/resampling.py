"""How sure the metrics of rankings are: means over targets, with intervals that cover targets and records.

The bootstrap calls the functions that a metric is made of on counts of resampled records.

Shapes: N records, T target models, U units of chance, B bootstrap draws, K metrics.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mia_lib.checks import check_mask
from mia_lib.errors import MiaError, check_range
from mia_lib.hints import Indices, Members, Metric, MetricNames, Scores, Terms
from mia_lib.metrics.interval import LEAST, UNITS, Interval
from mia_lib.metrics.ranking import CORES, check_scores, look_up_metric, per_target, resolves, tally

if TYPE_CHECKING:
    import pandas as pd

CELLS = 500_000  # weights drawn at once; with their sums and a metric's steps about 40 MB


def _weights(rng, draws: int, count: int) -> np.ndarray:
    """How often each of `count` things is drawn in `draws` resamples with replacement, [draws, count]."""
    drawn = rng.integers(0, count, (draws, count)) + count * np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=draws * count).reshape(draws, count)


@dataclass(frozen=True, eq=False)
class Term:
    """One of the terms of a contrast: scores and members [T, N], times a weight, and the record in each place, int [T, N]."""

    weight: float
    scores: np.ndarray
    members: np.ndarray
    records: np.ndarray


def draw_unit_means(cores, terms: list[Term], unit: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """Bootstrap draws [K, U, B] of the mean of K metrics over each unit: records are resampled, the same ones for all targets
    and terms. The same seed and number of records give the same resamples."""
    rng, count = np.random.default_rng(seed), np.bincount(unit)
    pool, single = 1 + max(term.records.max() for term in terms), len(unit) == 1
    chunks = []
    for start in range(0, draws, step := max(1, CELLS // pool)):
        size = min(step, draws - start)
        if single:  # members and non-members apart
            weights = np.zeros((size, pool), int)
            for side in (True, False):
                drawn = np.unique(np.concatenate([term.records[0][term.members[0] == side] for term in terms]))
                weights[:, drawn] = _weights(rng, size, len(drawn))
        else:
            weights = _weights(rng, size, pool)
        weights = weights.astype(np.int32)
        found = np.zeros((len(cores), len(count), size))
        with np.errstate(invalid="ignore", divide="ignore"):
            for term in terms:
                for t, u in enumerate(unit):
                    tp, fp, _ = tally(term.scores[t], term.members[t], weights[:, term.records[t]])
                    found[:, u] += term.weight * np.array([core(tp, fp) for core in cores]) / count[u]
        chunks.append(found)
    drawn = np.concatenate(chunks, axis=2)
    return drawn[..., np.isfinite(drawn).all((0, 1))]  # a tiny resample may hold no member at all


def units_of_chance(groups, members: np.ndarray) -> tuple[np.ndarray, str]:
    """Unit of chance of each target as 0 ... U - 1, and what they are called, "" where each target is its own.

    Banks where there are several. Of one bank complementary pairs, found by their members, where there are `UNITS` of them:
    what the halves of the records differ in helps one of a pair as much as it hinders the other."""
    targets = len(members)
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (targets,):
            raise MiaError(f"groups of shape {groups.shape} for {targets} targets: give the bank of each target.")
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
    records = np.asarray(records)
    if records.shape != members.shape or records.dtype.kind not in "iu" or records.min() < 0:
        raise MiaError(f"records of shape {records.shape} and type {records.dtype} for scores of {members.shape}: give the "
                       "number of the record in each place, whole and from 0.")
    return records


def _between(values: np.ndarray, drawn: np.ndarray) -> tuple[float, float]:
    """Variance of a mean over units, and its degrees of freedom.

    Args:
        values: [U]. drawn: [U, B], the same when records are drawn again.
    """
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


def interval_over_units(values: np.ndarray, drawn: np.ndarray, level: float, covers: str, bounds, exact: bool) -> Interval:
    """Of the mean over units, with arguments as for `_between` and `Interval`."""
    variance, dof = _between(values, drawn)
    found = Interval(float(values.mean()), np.inf, np.inf, level, covers, dof=dof, se=float(np.sqrt(variance)), bounds=bounds,
                     exact=exact)
    return found.without(f"{covers}: too few for an interval") if len(values) < LEAST and not exact else found.at(level)


def _intervals(cores, ranges, terms, groups, level, draws, seed) -> list[Interval]:
    """Intervals of a contrast in K metrics.

    Args:
        ranges: of each metric, None where none is wanted. terms: (weight, scores, members, records or None).
    """
    if check_range("level", level, 0, 1) < 0.5:
        warnings.warn(f"level = {level:g} is the confidence of an interval, less than a half: for 95 % give 0.95.",
                      UserWarning, stacklevel=3)
    check_range("draws", draws, 10)
    checked = [(weight, *check_scores(scores, members)[:2], records) for weight, scores, members, records in terms]
    first = checked[0][2]
    if len({len(members) for _, _, members, _ in checked}) > 1 or (
            all(records is None for *_, records in checked) and len({members.shape for _, _, members, _ in checked}) > 1):
        raise MiaError(f"scores of {', '.join(str(members.shape) for _, _, members, _ in checked)} differ in shape: a paired "
                       "difference needs the same targets and records.")
    unit, kind = units_of_chance(groups, first)
    targets, count = len(unit), np.bincount(unit)
    bank = unit if kind == "banks" else np.zeros(targets, int)
    terms = [Term(weight, scores, members,
                  record_positions(None if records is None else np.atleast_2d(records), members, bank))
             for weight, scores, members, records in checked]
    each = sum(term.weight * np.array([per_target(core, term.scores, term.members) for core in cores]) for term in terms)
    bounds = [tuple(sum(term.weight * (low if (term.weight > 0) == lower else high) for term in terms)
                    for lower in (True, False)) for low, high in ranges]
    drawn = draw_unit_means(cores, terms, unit, draws, seed)
    if targets == 1:
        return [Interval(float(v), float(v), float(v), level, "records only", draws=d[0], bounds=ends).at(level)
                for v, d, ends in zip(each[:, 0], drawn, bounds, strict=True)]
    judged = len(np.unique(terms[0].records))
    # Attacks with the same scores differ by nothing, and that is no matter of chance.
    same = len(terms) == 2 and terms[0].weight == -terms[1].weight and all(
        np.array_equal(getattr(terms[0], name), getattr(terms[1], name)) for name in ("scores", "members", "records"))
    covers = f"{len(count)} banks" if kind == "banks" else f"{targets} targets and {judged} records"
    intervals = []
    for values, d, ends in zip(each, drawn, bounds, strict=True):
        intervals.append(interval_over_units(np.bincount(unit, values) / count, d, level, covers, ends, same))
    return intervals


def _without_peaks(names, found: list[Interval]) -> list[Interval]:
    """No ends for peak accuracies: their bias is larger than their spread."""
    return [one.without("a peak, which has no interval") if name == "balanced_accuracy" else one
            for name, one in zip(names, found, strict=True)]


def _warn_unresolved(name: str, members) -> None:
    """Warn of a rate in a metric's full name that the non-members do not resolve."""
    _, _, rate = name.partition("_at_fpr=")
    if rate and not resolves(members, float(rate)):
        count = int((~np.atleast_2d(check_mask("members", members))).sum(1).min())
        warnings.warn(f"{name} is below the resolution: {count} non-members make no rate between 0 and 1 / {count} = "
                      f"{1 / count:.3g}, so this is the rate at which none of them is called, and says nothing about {rate}. "
                      "Use more non-members, or a higher fpr.", UserWarning, stacklevel=3)


def bootstrap(metric: Metric, scores: Scores, members: Members, fpr: float | None = None, groups: Indices = None,
              level: float = 0.95, draws: int = 1000, seed: int = 0, records: Indices = None) -> Interval:
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

    Args:
        metric: a metric of `mia_lib.metrics` or its name; "tpr_at_fpr=0.01" carries its rate.
        scores: [N] or [T, N], higher = more likely a member.
        members: bool [N] or [T, N].
        fpr: for the rates at an FPR and `precision_at_fpr`.
        groups: [T], the bank of each target; all in one bank by default.
        level: confidence.
        draws: number of resamples.
        seed: of the resamples.
        records: int [T, N], which record of a pool stands in each place, from 0; by default the targets of a bank are judged
            on the same ones in the same order, and banks share none.

    Raises:
        MiaError: as `roc_curve`; unknown metric, `fpr` missing or outside [0, 1), `groups` of another length.

    Warns:
        UserWarning: a rate that the non-members do not resolve, see `resolves`.
    """
    return contrast(metric, [(1.0, scores, members, records)], fpr, groups, level, draws, seed)


def resampled(statistics: Callable[[np.ndarray], np.ndarray], records: int, units: str = "targets", level: float = 0.95,
              draws: int = 200, seed: int = 0, bounds: tuple[float, float] = (-np.inf, np.inf)) -> list[Interval]:
    """Means over units of chance of any statistics of records that all units share, with intervals that cover units and
    records; rules as in `bootstrap`.

    Args:
        statistics: of weights [B, N], how often each record is drawn, gives values [K, B, U]; not a number where a resample is
            too small for one.
        records: N. units: what they are called, in the plural.
        level, draws, seed: as for `bootstrap`. bounds: range of the statistics.

    Returns:
        an interval for each of the K.
    """
    check_range("draws", draws, 10)
    weights = np.concatenate([np.ones((1, records)), _weights(np.random.default_rng(seed), draws, records)])
    out = []
    for found in np.asarray(statistics(weights), float):
        values, drawn = found[0], found[1:].T
        covers = f"{len(values)} {units} and {records} records"
        if len(values) == 1:
            out.append(Interval(float(values[0]), np.inf, np.inf, level, covers, bounds=bounds).without(
                f"{covers}: too few for an interval"))
        else:
            out.append(interval_over_units(values, drawn[:, np.isfinite(drawn).all(0)], level, covers, bounds, False))
    return out


def compare(metric: Metric, scores_a: Scores, scores_b: Scores, members: Members, fpr: float | None = None,
            groups: Indices = None, level: float = 0.95, draws: int = 1000, seed: int = 0,
            records: Indices = None) -> Interval:
    """Paired difference metric(a) - metric(b), both attacks judged on the same resamples; rules as in
    `bootstrap`."""
    terms = [(1.0, scores_a, members, records), (-1.0, scores_b, members, records)]
    return contrast(metric, terms, fpr, groups, level, draws, seed)


def contrast(metric: Metric, terms: Terms, fpr: float | None = None, groups: Indices = None, level: float = 0.95,
             draws: int = 1000, seed: int = 0) -> Interval:
    """A weighted sum of a metric of several attacks against the same targets, such as the difference of two gains; rules as
    in `bootstrap`, records resampled the same in all terms.

    Args:
        metric: as for `bootstrap`.
        terms: (weight, scores [T, N], members [T, N], records [T, N] or None) of each; N may differ between terms whose
            records are given, as where one looks at a part of the records.
        fpr, groups, level, draws, seed: as for `bootstrap`.
    """
    name, core, bounds = look_up_metric(metric, fpr)
    interval = _without_peaks([name], _intervals([core], [bounds], list(terms), groups, level, draws, seed))[0]
    _warn_unresolved(name, terms[0][2])
    return interval


def intervals(names, scores, members, minus=None, groups=None, level: float = 0.95, draws: int = 1000,
              seed: int = 0, records=None) -> dict[str, Interval]:
    """Several metrics at once, from the same resamples: `bootstrap` of each, or `compare` of each where `minus` is given.

    Args:
        names: metrics, those at a false positive rate written as "tpr_at_fpr=0.01".
        scores, members, groups, level, draws, seed, records: as in `bootstrap`.
        minus: scores of another attack, of the same shape, whose metrics are subtracted.

    Returns:
        name -> interval.
    """
    full, cores, ranges = zip(*(look_up_metric(name) for name in names), strict=True)
    terms = [(1.0, scores, members, records)] + ([] if minus is None else [(-1.0, minus, members, records)])
    found = _without_peaks(full, _intervals(cores, ranges, terms, groups, level, draws, seed))
    return dict(zip(names, found, strict=True))


def evaluate(scores: Mapping[str, np.ndarray], members: Members, groups: Indices = None, level: float = 0.95,
             draws: int = 1000, seed: int = 0,
             metrics: MetricNames = ("auc", "balanced_accuracy", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001"),
             ) -> pd.DataFrame:
    """Tidy table of attacks and metrics with intervals as in `bootstrap`.

    Args:
        scores: attack name -> [N] or [T, N].
        members: bool [N] or [T, N].
        groups, level, draws, seed: as in `bootstrap`.
        metrics: names, those at a false positive rate written as "tpr_at_fpr=0.01".

    Returns:
        DataFrame with columns attack, metric, value, low, high (not a number for a peak accuracy), level, covers, targets,
        records, resolution (1 / #non-members; a TPR at a lower FPR means nothing, and `results` prints "below
        resolution") and resolved (False for such a TPR).
    """
    import pandas as pd

    if not len(metrics):
        raise MiaError(f"metrics = {metrics!r}: name at least one of {', '.join(CORES)}.")
    names, _, _ = zip(*(look_up_metric(metric) for metric in metrics), strict=True)
    rows = []
    for attack, of_attack in scores.items():
        checked, held, _ = check_scores(of_attack, members)
        resolution = 1 / (~held).sum(1).min()
        for name, i in intervals(names, of_attack, members, None, groups, level, draws, seed).items():
            rows.append({"attack": attack, "metric": name, "value": i.value, "low": i.low, "high": i.high,
                         "level": i.level, "covers": i.covers, "targets": len(checked),
                         "records": checked.shape[1], "resolution": resolution,
                         "resolved": float(name.partition("_at_fpr=")[2] or 1) >= resolution})
    return pd.DataFrame(rows)
