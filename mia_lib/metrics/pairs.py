"""Every attack against every other: paired differences, corrected for how many there are, and the ranks they leave open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mia_lib.errors import MiaError
from mia_lib.metrics.interval import Interval
from mia_lib.metrics.ranking import check_scores, look_up_metric, per_target
from mia_lib.metrics.resampling import Term, draw_unit_means, interval_over_units, record_positions, units_of_chance


@dataclass(frozen=True, eq=False)
class Pairs:
    """Paired differences of A attacks.

    Attributes:
        names: of the attacks.
        value: of the metric, mean over targets, [A].
        differences: (a, b) -> metric(a) - metric(b), for each two in the order of `names`, uncorrected.
        p: [A, A], symmetric: p-values of no difference by Holm's method over all pairs; 1 on the diagonal.
        level: at which two attacks are told apart.
    """

    names: tuple[str, ...]
    value: np.ndarray
    differences: dict[tuple[str, str], Interval]
    p: np.ndarray
    level: float

    @property
    def ahead(self) -> np.ndarray:
        """bool [A, A]: whether the attack of the row is ahead of that of the column, all pairs together at `level`."""
        return (self.p < 1 - self.level) & (self.value[:, None] > self.value)

    def ranks(self) -> dict[str, tuple[int, int]]:
        """The best and the worst rank of each attack, 1 the best, that no difference speaks against.

        With the confidence `level` all of these hold at once: an attack stands below those that are ahead of it and above
        those that it is ahead of.
        """
        better, worse = self.ahead.sum(0), self.ahead.sum(1)
        return {name: (1 + int(b), len(self.names) - int(w)) for name, b, w in zip(self.names, better, worse, strict=True)}


def pairwise(metric, scores: Mapping[str, np.ndarray], members, fpr: float | None = None, groups=None, level: float = 0.95,
             draws: int = 1000, seed: int = 0) -> Pairs:
    """Paired differences of all attacks, each as `metrics.compare` has it, but resampled once and not once a pair.

    Args:
        metric, fpr, groups, level, draws, seed: as for `metrics.bootstrap`.
        scores: attack -> [T, N], at least two attacks and two targets.
        members: bool [T, N].

    Raises:
        MiaError: one attack, one target, a peak accuracy, or scores that differ in shape.
    """
    full, core, (low, high) = look_up_metric(metric, fpr)
    if len(scores) < 2 or full == "balanced_accuracy":
        raise MiaError(f"pairwise compares at least two attacks by a metric that has intervals; given were {len(scores)} and "
                       f"{full!r}.")
    checked = {name: check_scores(one, members)[:2] for name, one in scores.items()}
    held = next(iter(checked.values()))[1]
    if len({one.shape for one, _ in checked.values()}) > 1 or len(held) < 2:
        raise MiaError(f"scores of {', '.join(str(one.shape) for one, _ in checked.values())}: paired differences need the "
                       "same records and targets, two of these at least.")
    unit, kind = units_of_chance(groups, held)
    count = np.bincount(unit)
    places = record_positions(None, held, unit if kind == "banks" else np.zeros(len(held), int))
    units, drawn = {}, {}
    for name, (one, _) in checked.items():
        units[name] = np.bincount(unit, per_target(core, one, held)) / count
        drawn[name] = draw_unit_means([core], [Term(1.0, one, held, places)], unit, draws, seed)[0]
    covers = f"{len(count)} banks" if kind == "banks" else f"{len(held)} targets and {held.shape[1]} records"
    differences = {}
    names = tuple(scores)
    for k, a in enumerate(names):
        for b in names[k + 1:]:
            differences[a, b] = interval_over_units(units[a] - units[b], drawn[a] - drawn[b], level, covers,
                                                    (low - high, high - low),
                                                    np.array_equal(checked[a][0], checked[b][0]))
    p = np.ones((len(names), len(names)))
    upper = np.triu_indices(len(names), 1)
    p[upper] = holm([_p(one) for one in differences.values()])
    return Pairs(names, np.array([units[name].mean() for name in names]), differences, np.minimum(p, p.T), level)


def _p(difference: Interval) -> float:
    """Of no difference; 1 where there is no spread, or no interval, to judge by."""
    from scipy import stats

    if not difference.se or np.isnan(difference.low):
        return 1.0
    return float(2 * stats.t.sf(abs(difference.value) / difference.se, difference.dof))


def holm(p) -> np.ndarray:
    """p-values corrected by Holm's method: those below 0.05 are wrong about any of them in one of twenty studies at most.

    Args:
        p: [n], of the single tests.

    Returns:
        [n], in the same order: the k-th smallest times n - k + 1, made not to fall, at most 1.
    """
    p = np.asarray(p, float)
    order = np.argsort(p, kind="stable")
    out = np.empty(len(p))
    out[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return out
