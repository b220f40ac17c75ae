"""What several chapters share: numbers of scores kept as ranks, each computed once."""

from __future__ import annotations

import numpy as np

from mia_lib import metrics, store

MEASURES = ("auc", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001", "conformal_tpr_at_fpr=0.01", "conformal_tpr_at_fpr=0.001")
_known: dict[tuple, dict[str, metrics.Interval]] = {}  # tables and verdicts ask for the same numbers


def number(scores: np.ndarray, members: np.ndarray, metric: str = "auc", minus: np.ndarray | None = None,
           draws: int = 200, measures: tuple[str, ...] = MEASURES, records: np.ndarray | None = None) -> metrics.Interval:
    """A metric of scores over targets, or its paired difference from that of other scores.

    Args:
        scores: [T, n], or their ranks. members: bool [T, n]. minus: the other scores [T, n].
        metric: one of `measures`.
        measures: metrics computed together, from the same resamples.
        records: int [T, n], which record stands in each place; by default targets share them all.
    """
    key = (*(store.fingerprint(one) for one in (scores, members, minus) if one is not None), draws, tuple(measures),
           None if records is None else store.fingerprint(records))
    if key not in _known:
        _known[key] = metrics.intervals(measures, scores, members, minus, draws=draws, records=records)
    return _known[key][metric]


def packed_ranks(score: np.ndarray) -> np.ndarray:
    """Twice the ranks of scores [n] within a target, whole numbers even where records tie: all that a metric here depends on,
    in two bytes each where they fit."""
    from scipy import stats

    return (2 * stats.rankdata(score)).astype(np.uint16 if len(score) < 2**15 else np.float32)
