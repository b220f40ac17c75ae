"""Tidy results: a row for each attack, metric and setting, with an `Estimate` over repetitions in it.

A repetition is a target model, a split or a game. Chapters keep their results in one such frame; tables, figures and claims
are drawn from it, so that all of them have the same numbers and the same intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mia_lib.checks import check_flag, check_numbers
from mia_lib.errors import MiaError, brief, check_choice, check_count, check_type, check_whole
from mia_lib.metrics import ranking, resampling
from mia_lib.metrics.interval import UNRESOLVED, Interval, t_interval

if TYPE_CHECKING:
    import pandas as pd

# those named here are shares
RANGES = ranking.RANGES | dict.fromkeys(
    ("accuracy", "agreement", "alarms", "fpr", "tpr"), (0.0, 1.0)
)
OWN_COLUMNS = {"attack", "metric", "value", "estimate"}  # that a frame has


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number in each of T repetitions. Sums, differences and products are taken repetition by repetition, so that the
    interval of a difference is that of the paired difference.

    Estimates over different numbers of repetitions of their own, as of two data sets, are combined group by group.

    Attributes:
        values: [T].
        resampled: [T, B], the same with the records drawn again, the same draws for all repetitions and attacks; None where
            each repetition has records of its own.
        unit: int [T]; repetitions of one unit stand and fall together, as complementary targets do.
        trials: records that a rate is a share of, in one repetition; 0 for what is no rate.
    """

    values: np.ndarray
    resampled: np.ndarray | None
    unit: np.ndarray
    trials: int = 0

    def _with(self, other: Estimate | float, operation: Callable) -> Estimate:
        if not isinstance(other, Estimate):
            resampled = None if self.resampled is None else operation(self.resampled, other)
            return Estimate(operation(self.values, other), resampled, self.unit)
        if len(self.values) != len(other.values):
            return self._in_groups(len(other.values))._with(
                other._in_groups(len(self.values)), operation
            )
        both = None
        if self.resampled is not None and other.resampled is not None:
            draws = min(self.resampled.shape[1], other.resampled.shape[1])
            both = operation(self.resampled[:, :draws], other.resampled[:, :draws])
        elif self.resampled is not None or other.resampled is not None:
            raise MiaError(
                "an estimate over shared records and one over records of each repetition's own cannot be paired."
            )
        return Estimate(operation(self.values, other.values), both, self.unit)

    def of(self, repetitions: slice) -> Estimate:
        """The estimate over some of the repetitions alone."""
        drawn = None if self.resampled is None else self.resampled[repetitions]
        unit = np.unique(self.unit[repetitions], return_inverse=True)[1]
        return Estimate(self.values[repetitions], drawn, unit, self.trials)

    def _in_groups(self, count: int) -> Estimate:
        """Estimate over `count` values, or as many as there are if fewer, each the mean over a
        group of the repetitions. It serves repetitions that are not paired anyway, as of two data
        sets of which one was played more often."""
        if self.resampled is not None or len(np.unique(self.unit)) < len(self.values):
            raise MiaError(
                f"estimates over {len(self.values)} and over {count} repetitions that share records or models "
                "cannot be paired."
            )
        groups = np.array_split(self.values, min(count, len(self.values)))
        return Estimate(np.array([group.mean() for group in groups]), None, np.arange(len(groups)))

    def __add__(self, other):
        return self._with(other, np.add)

    def __sub__(self, other):
        return self._with(other, np.subtract)

    def __mul__(self, other):
        return self._with(other, np.multiply)

    def __truediv__(self, other):
        return self._with(other, np.divide)

    def __neg__(self):
        return self * -1.0

    def __abs__(self):
        """The distance of the mean from zero: signed by the mean, for the mean of distances is above zero by chance alone."""
        return self * float(np.sign(self.values.mean()) or 1.0)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other):
        return -self + other

    @property
    def value(self) -> float:
        """Mean over the repetitions."""
        return float(self.values.mean())

    def interval(
        self, bounds: tuple[float, float] = (-np.inf, np.inf), level: float = 0.95
    ) -> Interval:
        """The mean with an interval that covers the chance in which repetitions and which records
        were drawn; rules as of `bootstrap`. A rate that is 0 or 1 throughout has its exact binomial
        interval."""
        if np.isnan(self.values).any():
            return Interval(np.nan, np.nan, np.nan, level, UNRESOLVED, bounds=bounds)
        count = np.bincount(self.unit)
        units = np.bincount(self.unit, self.values) / count
        if self.trials and len(np.unique(self.values)) == 1 and self.value in (0.0, 1.0):
            from scipy import stats

            ends = stats.binomtest(round(self.value * self.trials), self.trials).proportion_ci(
                level, "exact"
            )
            return Interval(
                self.value,
                float(ends.low),
                float(ends.high),
                level,
                f"{self.trials} records, exact",
            )
        if self.resampled is None and len(units) == 1:
            return Interval(
                self.value,
                np.nan,
                np.nan,
                level,
                "1 repetitions: too few for an interval",
                bounds=bounds,
            )
        if self.resampled is None:
            return t_interval(units, level, f"{len(units)} repetitions", bounds)
        drawn = np.stack([self.resampled[self.unit == unit].mean(0) for unit in range(len(count))])
        covers = f"{len(self.values)} targets and their records"
        if len(units) == 1:
            return Interval(
                self.value, np.nan, np.nan, level, "records only", draws=drawn[0], bounds=bounds
            ).at(level)
        return resampling.interval_over_units(units, drawn, level, covers, bounds, False)


def mean(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of estimates over equally many repetitions, repetition by repetition."""
    return sum(estimates[1:], estimates[0]) * (1 / len(estimates))


def by_target(
    scores: Mapping[str, np.ndarray],
    members: np.ndarray,
    metrics: Sequence[str],
    *,
    draws: int = 100,
    seed: int = 0,
    shared: bool = True,
    records: np.ndarray | None = None,
    **columns,
) -> pd.DataFrame:
    """Metrics of attacks on T targets as a tidy frame.

    Args:
        scores: attack -> [T, N], higher for members. members: bool [T, N].
        metrics: such as "auc", "balanced_accuracy", "tpr_at_fpr=0.01".
        draws, seed: of the resamples of records.
        shared: whether all targets are judged on the same records in the same order; else they are repetitions of their own.
        records: int [T, N], which record stands in each place, where targets share some of them.
        columns: further columns with the same value in all rows, such as `study="table 2"`.

    Returns:
        DataFrame: `columns`, then attack, metric, value and the `Estimate` whose mean that is. A rate at an FPR that the
        non-members do not resolve is not a number.
    """
    ranking.check_attacks(scores)
    _check_columns(columns)
    full = ranking.check_metrics(metrics)
    metrics = [
        given if isinstance(given, str) else name for given, name in zip(metrics, full, strict=True)
    ]
    draws, seed = check_count("draws", draws), check_whole("seed", seed, 0)
    shapes = {attack: np.shape(of_attack) for attack, of_attack in scores.items()}
    if len(set(shapes.values())) > 1:
        raise MiaError(
            f"scores have the shapes {shapes}: all attacks need those of the same targets, [T, N]."
        )
    checked = {
        attack: ranking.check_scores(of_attack, members) for attack, of_attack in scores.items()
    }
    checked_members = next(iter(checked.values()))[1]
    targets = np.arange(len(checked_members))
    unit = (
        resampling.units_of_chance(None, checked_members)[0]
        if check_flag("shared", shared)
        else targets
    )
    positions = resampling.record_positions(
        records, checked_members, np.zeros(len(checked_members), int)
    )
    cores = [ranking.look_up_metric(metric)[1] for metric in metrics]
    drawn = (
        resampling.draw_unit_means(
            cores,
            [one for one, _, _ in checked.values()],
            checked_members,
            positions,
            targets,
            draws,
            seed,
        )
        if shared
        else None
    )  # [S, K, T, B]
    resolved = [
        ranking.resolves(checked_members, float(metric.partition("_at_fpr=")[2] or 0.5))
        for metric in metrics
    ]
    rows = []
    for s, (attack, (score, _, _)) in enumerate(checked.items()):
        values = ranking.per_target(
            lambda tp, fp: [core(tp, fp) for core in cores], score, checked_members
        ).T
        for k, metric in enumerate(metrics):
            of_metric = values[k] if resolved[k] else np.full(len(targets), np.nan)
            trials = int(checked_members[0].sum()) if "tpr_at" in metric else 0
            number = Estimate(of_metric, None if drawn is None else drawn[s, k], unit, trials)
            rows.append(columns | {"attack": attack, "metric": metric, "estimate": number})
    return _with_values(rows)


def by_repetition(values: Mapping[str, Mapping[str, np.ndarray]], **columns) -> pd.DataFrame:
    """A tidy frame like that of `by_target`, from `values`: attack -> metric -> [S], a number for
    each repetition, which has records of its own, or a single number that has no chance in it. Text, masked values and other
    shapes raise `MiaError`."""
    _check_columns(columns)
    rows = []
    for attack, of_attack in check_type("values", values, Mapping).items():
        for metric, numbers in check_type(f"values[{attack!r}]", of_attack, Mapping).items():
            what = f"values[{attack!r}][{metric!r}]"
            numbers = np.atleast_1d(check_numbers(what, numbers)).astype(float)
            if numbers.ndim > 1 or not len(numbers):
                raise MiaError(
                    f"{what} has shape {numbers.shape}: numbers [S] are needed, one a repetition, or a single one."
                )
            number = Estimate(numbers, None, np.arange(len(numbers)))
            rows.append(columns | {"attack": attack, "metric": metric, "estimate": number})
    return _with_values(rows)


def _with_values(rows: list[dict]) -> pd.DataFrame:
    """The frame of these rows, with the value of each estimate before it."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    if rows:
        frame.insert(frame.shape[1] - 1, "value", [row["estimate"].value for row in rows])
    return frame


def _check_columns(columns: Mapping) -> None:
    if taken := OWN_COLUMNS & columns.keys():
        raise MiaError(
            f"{', '.join(sorted(taken))}: every frame has a column of this name. Give yours another."
        )


def estimate(frame: pd.DataFrame, attack: str, metric: str, **where) -> Estimate:
    """The estimate of an attack and a metric in a frame of `by_target` or `by_repetition`; `where`
    gives values of further columns.

    Raises:
        MiaError: no row of the frame matches, or several do.
    """
    rows = np.ones(len(frame), bool)
    for column, value in {"attack": attack, "metric": metric, **where}.items():
        check_choice("column", column, frame.columns)
        matching = rows & (frame[column] == value).to_numpy(bool)
        if not matching.any():
            check_choice(column, value, list(frame[column][rows].unique()))
        rows = matching
    frame = frame[rows]
    if len(frame) > 1:
        settings = frame.drop(columns=["value", "estimate"])
        varying = [column for column in settings if settings[column].nunique() > 1]
        raise MiaError(
            f"{attack}, {metric} has several results, apart by {', '.join(varying) or 'no column'}: name one value of each"
            f"{' and, of frames put together, give each a column that tells it apart' * (not varying)}."
        )
    return check_type(
        "frame['estimate']",
        frame["estimate"].iloc[0],
        Estimate,
        "A file keeps no estimates: make the frame anew.",
    )


def summary(frame: pd.DataFrame, by: Sequence[str] = ("attack", "metric")) -> pd.DataFrame:
    """A table with a row for each setting of a frame of `by_target` or `by_repetition`, and the
    columns `by`, then value, low, high and interval, an `Interval`. Settings are told apart by
    `by`, attack and metric among them. A peak accuracy has no interval, so its ends are NaN."""
    import pandas as pd

    for column in by:
        check_choice("by", column, frame.columns)
    if lacking := {"attack", "metric"} - {*by}:
        raise MiaError(f"by = {brief(by)}: {min(lacking)} is needed, too.")
    rows = []
    for key, part in frame.groupby(list(by), sort=False):
        where = dict(zip(by, key, strict=True))
        metric = str(where["metric"])
        interval = estimate(part, where["attack"], metric).interval(
            RANGES.get(metric.partition("=")[0], (-np.inf, np.inf))
        )
        if metric == "balanced_accuracy":
            interval = interval.without("a peak, which has no interval")
        rows.append(
            {
                **where,
                "value": interval.value,
                "low": interval.low,
                "high": interval.high,
                "interval": interval,
            }
        )
    return pd.DataFrame(rows, columns=[*by, "value", "low", "high", "interval"])
