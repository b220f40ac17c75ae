"""A number with its confidence interval.

An interval knows how it was made, by Student's t or from bootstrap draws, so it can be had at another level:
a claim of many parts widens each of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import numpy as np

from mia_lib.checks import check_numbers
from mia_lib.errors import MiaError, check_range

MIN_UNITS = 3  # units from which on there is an interval
UNITS = 4  # units from which on the variance between them is known well enough to take another's from it
UNRESOLVED = "below the resolution"  # what the interval of a rate covers that the non-members do not resolve: no number


@dataclass(frozen=True)
class Interval:
    """A number with its confidence interval, and what chance the interval covers.

    Args:
        value: the estimate.
        low, high: ends of the interval.
        level: confidence, for example 0.95.
        covers: the chance that is in it, for example "4 banks", "6 targets and 2000 records", "records only".
        dof: degrees of freedom of Student's t; infinite where none applies.
        se: standard error, where the interval is Student's.
        draws: [B] bootstrap draws, where it is a bootstrap one.
        bounds: smallest and largest value that the quantity can take.
        exact: whether the number has no chance in it, such as a distance checked against rounding. Only then is an interval
            without width a certainty.
    """

    value: float
    low: float
    high: float
    level: float = 0.95
    covers: str = ""
    dof: float = field(default=np.inf, repr=False, compare=False)
    se: float | None = field(default=None, repr=False, compare=False)
    draws: np.ndarray | None = field(default=None, repr=False, compare=False)
    bounds: tuple[float, float] = field(default=(-np.inf, np.inf), repr=False, compare=False)
    exact: bool = field(default=False, repr=False, compare=False)

    def at(self, level: float) -> Interval:
        """The same estimate with an interval at another confidence level (needs `se` or `draws`).

        Raises:
            MiaError: neither was kept, or `level` is not between 0 and 1.
        """
        check_range("level", level, 0, 1)
        if np.isnan(self.low):  # a number that has no interval has none at any level
            return replace(self, level=float(level))
        tail = (1 - level) / 2
        if self.draws is not None:
            # Recentred on the estimate: a peak over thresholds is biased up once more on every resample.
            spread = self.draws - self.draws.mean()
            if tail * len(spread) >= 5:
                low, high = np.quantile(spread, [tail, 1 - tail])
            else:  # too few draws lie that far out to be counted
                from scipy import stats  # takes a second to import, and most intervals need it not

                high = stats.norm.isf(tail) * spread.std()
                low = -high
        elif self.se is not None:
            from scipy import stats

            high = stats.t.isf(tail, self.dof) * self.se if self.se else 0.0
            low = -high
        else:
            raise MiaError(
                "this interval keeps neither draws nor a standard error: make it with "
                "metrics.bootstrap, compare or t_interval to have it at another level."
            )
        low, high = np.clip([self.value + low, self.value + high], *self.bounds)
        return replace(self, low=float(low), high=float(high), level=float(level))

    def without(self, why: str) -> Interval:
        """The estimate without an interval at any level; `covers` then holds the reason `why`."""
        return replace(self, low=np.nan, high=np.nan, covers=why)

    def __mul__(self, factor: float) -> Interval:
        """The interval times `factor`, as for another unit such as percentage points."""
        (low, high), (least, most) = (
            sorted(factor * end for end in ends) for ends in ((self.low, self.high), self.bounds)
        )
        return replace(
            self,
            value=factor * self.value,
            low=low,
            high=high,
            bounds=(least, most),
            se=None if self.se is None else abs(factor) * self.se,
            draws=None if self.draws is None else factor * self.draws,
        )

    __rmul__ = __mul__

    @property
    def degenerate(self) -> bool:
        """True if a random quantity came out the same in all repetitions and resamples. Such an
        interval has no width, which says that its spread was not seen and not that there is none:
        four targets in which no member was found do not make it certain that none ever is."""
        return bool(self.low == self.high) and not self.exact

    @property
    def sign(self) -> int:
        """1 when the whole interval is above zero, -1 when it is below; 0 when zero is in it, and where there is no interval
        or one without width, unless the number is exact."""
        return 0 if self.degenerate else int(self.low > 0) - int(self.high < 0)

    def __format__(self, spec: str) -> str:
        spec = re.sub(r"^([+\- ]?)(?=[.\d])", r"\1z", spec or ".3f")  # z: a zero has no sign
        if np.isnan(self.low):
            return f"{self.value:{spec}}"
        if self.degenerate:
            return f"{self.value:{spec}} [no spread]"
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"

    def __str__(self) -> str:
        return format(self)


def t_interval(
    values, level: float = 0.95, covers: str | None = None, bounds=(-np.inf, np.inf)
) -> Interval:
    """Student t interval of a mean over independent repetitions: mean +- t_{G-1} s / sqrt(G). Two give no interval.

    Args:
        values: [G], one finite number a repetition (bank, seed), two at least, or else refused. level: confidence.
        covers: what varied between repetitions; "G repetitions" by default.
        bounds: range of the quantity; the interval is clipped to it.
    """
    values = check_numbers("values", values).astype(float)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise MiaError(
            f"values of shape {values.shape} give no interval: at least two finite numbers are "
            "needed, one for each independent repetition."
        )
    count, mean = len(values), float(values.mean())
    # Equal values differ from their rounded mean by an ulp: that is no spread.
    se = 0.0 if np.ptp(values) == 0 else float(values.std(ddof=1) / np.sqrt(count))
    covers = f"{count} repetitions" if covers is None else covers
    interval = Interval(mean, mean, mean, level, covers, dof=count - 1, se=se, bounds=bounds)
    if count < MIN_UNITS:
        return interval.without(f"{covers}: too few for an interval")
    return interval.at(level)


def holm(p) -> np.ndarray:
    """p-values [n] corrected by Holm's method, in the order given: the k-th smallest times n - k +
    1, made not to fall, at most 1. If those below 0.05 are called significant, at most one study in
    twenty makes a wrong call."""
    p = check_numbers("p", p).astype(float)
    if p.ndim != 1:
        raise MiaError(f"p has shape {p.shape}: p-values [n] are needed, one a test.")
    if (wrong := p[~((p >= 0) & (p < 1 + 1e-9))]).size:  # a sum of probabilities may be rounded up
        raise MiaError(
            f"p holds {wrong[0]:g}, which is no p-value: numbers from 0 to 1 are needed."
        )
    order = np.argsort(p, kind="stable")
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return corrected
