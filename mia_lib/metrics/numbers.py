"""What several chapters share: numbers of scores kept as ranks, each computed once; log odds of losses; names of data sets."""

from __future__ import annotations

import numpy as np

from mia_lib import store
from mia_lib.metrics import ranking
from mia_lib.metrics.interval import Interval

MEASURES = ("auc", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001", "conformal_tpr_at_fpr=0.01", "conformal_tpr_at_fpr=0.001")
TITLES = {"fashion_mnist_20k": "FashionMNIST", "fashion_mnist": "FashionMNIST", "mnist": "MNIST", "cifar10": "CIFAR-10",
          "cifar100": "CIFAR-100", "cinic10": "CINIC-10", "german_credit": "German credit", "adult": "Adult",
          "hepatitis": "Hepatitis", "location30": "Location-30", "purchase100": "Purchase-100", "texas100": "Texas-100",
          "imagenet": "ImageNet"}  # what tables call data sets
_known: dict[tuple, dict[str, Interval]] = {}  # tables and verdicts ask for the same numbers


def number(scores: np.ndarray, members: np.ndarray, metric: str = "auc", minus: np.ndarray | None = None,
           draws: int = 200, measures: tuple[str, ...] = MEASURES, records: np.ndarray | None = None) -> Interval:
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
        _known[key] = ranking.intervals(measures, scores, members, minus, draws=draws, records=records)
    return _known[key][metric]


def packed_ranks(score: np.ndarray) -> np.ndarray:
    """Twice the ranks of scores [n] within a target, whole numbers even where records tie: all that a metric here depends on,
    in two bytes each where they fit."""
    from scipy import stats

    return (2 * stats.rankdata(score)).astype(np.uint16 if len(score) < 2**15 else np.float32)


def log_odds(loss: np.ndarray) -> np.ndarray:
    """log(p / (1 - p)) of p = exp(-loss), float64; a loss that float32 rounded to zero counts as its smallest number."""
    loss = np.maximum(np.asarray(loss, np.float64), np.finfo(np.float32).smallest_subnormal)
    return -(loss + np.log(-np.expm1(-loss)))
