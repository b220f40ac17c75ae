"""Metrics of how well scores separate members from non-members.

Every number starts from one sort. `tally` counts, for each distinct score value taken as threshold, the members (tp) and
non-members (fp) that reach it; each metric is a function of these two counts. Thresholds are *distinct* values: records that
tie are called members together. Were they taken one by one, listing the members first would turn a constant score into a
perfect attack.

Shapes: N records, T target models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mia_lib.checks import (
    ALL_KINDS,
    Members,
    Numbers,
    PerTarget,
    Scores,
    as_float64,
    check_mask,
    check_numbers,
    check_order,
)
from mia_lib.errors import MiaError, brief, check_choice, check_once, check_range

REHEARSALS = 20  # games, at most, that a threshold is taken from


def check_attacks(scores) -> None:
    """Refuse scores that are no dictionary by the names of attacks, an empty one, one name twice, as 1 and "1" are, and
    records in one order under one name and in another under another."""
    if not isinstance(scores, Mapping) or not scores:
        raise MiaError(
            f"scores = {brief(scores)}: at least one attack is needed, {{name: scores}}; the members come second."
        )
    check_once("scores", scores)
    check_order(-1, **{f"scores[{attack!r}]": given for attack, given in scores.items()})


def check_metrics(metrics) -> list[str]:
    """Full names of metrics in a list; other things than a list, an empty one and what is no metric raise `MiaError`."""
    if isinstance(metrics, str) or not np.iterable(metrics) or not len(metrics):  # type: ignore[arg-type]
        raise MiaError(
            f"metrics = {brief(metrics)}: a list is needed, of at least one of {', '.join(CORES)}."
        )
    return [look_up_metric(metric)[0] for metric in metrics]


def check_scores(scores, members) -> tuple[np.ndarray, np.ndarray, bool]:
    """Scores and members as [T, N], and whether they came as a single [N]."""
    check_order(-1, scores=scores, members=members)
    scores, given = check_numbers("scores", scores), check_numbers("members", members, ALL_KINDS)
    if scores.dtype == bool != given.dtype and given.dtype.kind == "f":
        raise MiaError(
            "scores are True and False, and members are numbers: the scores come first, then the members."
        )
    members = check_mask("members", given)
    scores = scores if scores.dtype in (np.float32, np.float64) else as_float64("scores", scores)
    if scores.ndim not in (1, 2) or not scores.size:
        raise MiaError(f"scores of shape {scores.shape}: allowed are [N] and [T, N], not empty.")
    if members.shape not in (scores.shape, scores.shape[-1:]):
        raise MiaError(
            f"members of shape {members.shape} do not fit scores of {scores.shape}: give one "
            "for each record, [N] or [T, N] like the scores."
        )
    if np.isnan(scores).any():
        raise MiaError(
            f"scores hold {int(np.isnan(scores).sum())} NaN: a score orders every record. Find "
            "the model whose loss is not finite, or leave those records out."
        )
    single = scores.ndim == 1
    scores = np.atleast_2d(scores)
    count = np.atleast_2d(members).sum(1)
    if count.min() == 0 or count.max() == scores.shape[1]:
        raise MiaError(
            "members hold no member, or no non-member, for some target: both are needed."
        )
    return scores, np.broadcast_to(members, scores.shape), single


def rank(scores: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Records from the highest score to the lowest.

    Returns:
        order: int [N], the records. ranked_members: bool [N], which of them are members, in this order. last: int [U], where
            each tie ends.
    """
    order = np.argsort(scores)[::-1]
    ranked = scores[order]
    return (
        order,
        members[order].astype(bool),
        np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)),
    )


def tally(scores, members) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count members and non-members at or above each distinct score.

    Args:
        scores: float [N], higher = more likely a member. members: bool [N].

    Returns:
        tp, fp: [U + 1], from nobody called a member to everybody, for U distinct scores; and the thresholds [U + 1], falling
        from infinity. A record is called a member when score >= threshold.
    """
    order, ranked_members, last = rank(scores, members)
    tp = np.append(0, np.cumsum(ranked_members)[last])
    return tp, np.append(0, last + 1) - tp, np.append(np.inf, scores[order[last]])


def _auc(tp, fp):
    # Twice the trapezoids are the sum of (fp_u - fp_v) (tp_u + tp_v), v before u, where all but the last fp_u tp_u cancel.
    before, after = (
        np.einsum("...u,...u", a, b, dtype=np.int64)
        for a, b in ((fp[..., :-1], tp[..., 1:]), (fp[..., 1:], tp[..., :-1]))
    )
    pairs = tp[..., -1].astype(np.int64) * fp[..., -1]
    return (pairs + after - before) / (2.0 * pairs)


def _balanced_accuracy(tp, fp):
    return 0.5 + 0.5 * (tp / tp[..., -1:] - fp / fp[..., -1:]).max(-1)


def _at_fpr(tp, fp, fpr):
    """tp and fp at the lowest threshold whose FPR does not exceed `fpr`."""
    count = fp[..., -1:]
    most = np.floor(float(fpr) * count)
    # the product may be rounded past a whole number
    most += ((most + 1) / count <= fpr).astype(float) - (most / count > fpr)
    rows = zip(fp.reshape(-1, fp.shape[-1]), most.astype(fp.dtype).ravel(), strict=True)
    at = np.array([row.searchsorted(limit, "right") - 1 for row, limit in rows]).reshape(most.shape)
    return np.take_along_axis(tp, at, -1)[..., 0], np.take_along_axis(fp, at, -1)[..., 0]


def _tpr_at_fpr(tp, fp, fpr):
    return _at_fpr(tp, fp, fpr)[0] / tp[..., -1]


def _conformal_tpr_at_fpr(tp, fp, fpr):
    # of members that score at each threshold
    reach = (fpr * (fp[..., -1:] + 1) - fp[..., :-1]) / (np.diff(fp) + 1)
    return (np.diff(tp) * np.clip(reach, 0, 1)).sum(-1) / tp[..., -1]


def _precision_at_fpr(tp, fp, fpr):
    hit, miss = _at_fpr(tp, fp, fpr)
    return hit / np.maximum(hit + miss, 1)


def _average_precision(tp, fp):
    precision = tp[..., 1:] / np.maximum(tp[..., 1:] + fp[..., 1:], 1)
    return (np.diff(tp) * precision).sum(-1) / tp[..., -1]


def _average_precision_non_members(tp, fp):
    return _average_precision(*((c[..., -1:] - c)[..., ::-1] for c in (fp, tp)))


CORES = {
    "auc": _auc,
    "balanced_accuracy": _balanced_accuracy,
    "tpr_at_fpr": _tpr_at_fpr,
    "conformal_tpr_at_fpr": _conformal_tpr_at_fpr,
    "precision_at_fpr": _precision_at_fpr,
    "average_precision": _average_precision,
    "average_precision_non_members": _average_precision_non_members,
}
RANGES = {name: (0.5, 1.0) if name == "balanced_accuracy" else (0.0, 1.0) for name in CORES}


def per_target(core: Callable, scores, members):
    """A function of (tp, fp) of scores: float for scores [N], array [T] for scores [T, N]."""
    scores, members, single = check_scores(scores, members)
    values = np.array([core(*tally(s, m)[:2]) for s, m in zip(scores, members, strict=True)])
    return float(values[0]) if single else values


def roc_curve(scores: Scores, members: Members) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Receiver operating characteristic: the rates at every distinct threshold.

    Args:
        scores: [N], higher = more likely a member.
        members: bool [N].

    Returns:
        fpr, tpr, thresholds, each [U + 1] for U distinct scores, from (0, 0) at threshold infinity to (1, 1);
        as scikit-learn's `roc_curve` with `drop_intermediate=False`.

    Raises:
        MiaError: lengths differ, a score is NaN, or there are no members or no non-members.
    """
    scores, members, single = check_scores(scores, members)
    if not single:
        raise MiaError(
            f"scores of shape {scores.shape}: a curve is of one target. Give one row at a time."
        )
    tp, fp, thresholds = tally(scores[0], members[0])
    return fp / fp[-1], tp / tp[-1], thresholds


def auc(scores: Scores, members: Members) -> PerTarget:
    """Area under the ROC: the chance that a random member scores above a random non-member, ties counting one
    half.

    Args:
        scores: [N] or [T, N], higher = more likely a member.
        members: bool [N] or [T, N].

    Returns:
        float, or one value a target [T]. All metrics below share these arguments and this rule.
    """
    return per_target(_auc, scores, members)


def _check_fpr(fpr) -> float:
    """A false positive rate, from 0 (no non-member at all) to below 1."""
    check_range("fpr", fpr, 0, 100)
    if fpr >= 1:
        raise MiaError(
            f"fpr = {fpr!r} is out of range: a rate from 0 to below 1 is needed, such as 0.01 for 1 %."
        )
    return fpr


def resolves(members: Members, fpr: float) -> bool:
    """True if each target has enough non-members to tell the rate `fpr` from zero: fpr >= 1 /
    #non-members, for members [N] or [T, N]."""
    _check_fpr(fpr)
    return bool(fpr >= 1 / max(_count_non_members(check_mask("members", members)).min(), 1))


def _count_non_members(members: np.ndarray) -> np.ndarray:
    """Number of non-members of each target, int [T], from members [N] or [T, N]."""
    if members.ndim not in (1, 2) or not len(members):
        raise MiaError(f"members have shape {members.shape}: [N] or [T, N] is needed.")
    return (~np.atleast_2d(members)).sum(1)


def tpr_at_fpr(scores: Scores, members: Members, fpr: float) -> PerTarget:
    """True positive rate at a false positive rate: the largest TPR of a threshold whose FPR is at most `fpr`.

    No interpolation between thresholds: an attacker who must stay below `fpr` cannot stand between two of
    them. Below the resolution 1 / #non-members this is the TPR of thresholds that no non-member reaches,
    which says nothing about `fpr`; `resolves` tells, `bootstrap` warns, and `evaluate` has no number.

    Args:
        fpr: from 0 to below 1; 0.01 for 1 %.
    """
    _check_fpr(fpr)
    return per_target(lambda tp, fp: _tpr_at_fpr(tp, fp, fpr), scores, members)


def conformal_tpr_at_fpr(scores: Scores, members: Members, fpr: float) -> PerTarget:
    """True positive rate at a false positive rate whose chance level is that rate, however few non-members there are.

    A record is called a member when its conformal p-value among the n non-members is at most `fpr`: with g of them above it
    and e tied, of which a random number counts as above, (g + e' + 1) / (n + 1) <= fpr. Between two whole numbers of false
    alarms the threshold is drawn, and what is returned is the mean over these draws, in closed form: the mean over members of
    fpr (n + 1) - g in units of e + 1, cut off at 0 and 1.

    A score that knows nothing has a mean of exactly `fpr`. `tpr_at_fpr`, the field's definition, gives it `chance_tpr`, which
    is more, and nothing where non-members tie at the top. So verdicts that compare a rate with chance, or with a level, take
    this one. Below the resolution it says no more than that, see `resolves`. `fpr` is from 0 to below 1.
    """
    _check_fpr(fpr)
    return per_target(lambda tp, fp: _conformal_tpr_at_fpr(tp, fp, fpr), scores, members)


def chance_tpr(members: Members, fpr: float) -> PerTarget:
    """Mean `tpr_at_fpr` of scores that know nothing and do not tie: (floor(n fpr) + 1) / (n + 1)
    for n non-members.

    The threshold stands just above the first non-member too many, and a member has one chance in n + 1 for each of the places
    above it. A float for members [N], one value a target for [T, N].
    """
    _check_fpr(fpr)
    members = check_mask("members", members)
    rates = np.array(
        [(np.arange(n + 1) / max(n, 1) <= fpr).sum() / (n + 1) for n in _count_non_members(members)]
    )
    return float(rates[0]) if members.ndim == 1 else rates


def balanced_accuracy(scores: Scores, members: Members) -> PerTarget:
    """Peak balanced accuracy, max over thresholds of (TPR + TNR) / 2: the papers' "peak" or "best threshold"
    accuracy.

    The threshold is chosen on the very records that are judged, so few records bias it up (100 records of
    pure noise give about 0.56). Choose it elsewhere with `best_threshold` and apply `accuracy_at_threshold`
    to avoid that. `bootstrap` and its kin give it no interval: none of ours covers a number that is biased by more than its
    spread.
    """
    return per_target(_balanced_accuracy, scores, members)


def precision_at_fpr(scores: Scores, members: Members, fpr: float) -> PerTarget:
    """Share of members among the records called members, at the threshold of `tpr_at_fpr`; 0 where none is
    called."""
    _check_fpr(fpr)
    return per_target(lambda tp, fp: _precision_at_fpr(tp, fp, fpr), scores, members)


def precision(tpr, fpr, share):
    """Share of members among those called members, when `share` of all records are members; 0 where nobody is called.

    Args:
        tpr, fpr, share: numbers or arrays in [0, 1]; percentages are refused.
    """
    tpr, fpr, share = (
        check_numbers(*each).astype(float)
        for each in (("tpr", tpr), ("fpr", fpr), ("share", share))
    )
    for name, values in (("tpr", tpr), ("fpr", fpr), ("share", share)):
        for value in (values.min(), values.max()) if values.size else ():
            check_range(name, float(value), 0, 1)
    hit, miss = share * tpr, (1 - share) * fpr
    return hit / np.maximum(hit + miss, np.finfo(float).tiny)


def average_precision(scores: Scores, members: Members) -> PerTarget:
    """Average precision, sum over thresholds of (recall step) x precision, as scikit-learn's.

    With members as positives it is mAP_train of Sablayrolles et al. 2019, Table 1; mAP_test is
    `average_precision_non_members`. Chance is the share of positives.
    """
    return per_target(_average_precision, scores, members)


def average_precision_non_members(scores: Scores, members: Members) -> PerTarget:
    """Average precision of finding the non-members by low scores: `average_precision(-scores, ~members)`."""
    return per_target(_average_precision_non_members, scores, members)


def best_threshold(scores: Scores, members: Members) -> float:
    """Threshold of peak balanced accuracy, to be applied to other records.

    Args:
        scores: [N]; records that score at or above the threshold are called members. members: bool [N].

    Returns:
        float, halfway to the next lower score (it then wrongs neither side on unseen records); infinity where
        calling nobody a member is best.
    """
    fpr, tpr, thresholds = roc_curve(scores, members)
    best = int(np.argmax(tpr - fpr))
    if best in (0, len(thresholds) - 1):
        return float(thresholds[best])
    high, low = float(thresholds[best]), float(thresholds[best + 1])
    kind = check_scores(scores, members)[0].dtype
    middle = float(kind.type(low + (high - low) / 2))  # to which scores of this type are compared
    return middle if low < middle <= high else high


def accuracy_at_threshold(scores: Scores, members: Members, threshold: float) -> PerTarget:
    """Balanced accuracy of calling a record a member when its score reaches a threshold chosen beforehand.

    It equals the AUC of the 0/1 score `scores >= threshold`, which is how to bootstrap it. Scores or a threshold that are not
    a number, and shapes that do not fit, are refused.
    """
    check_range("threshold", threshold)
    scores, members, single = check_scores(scores, members)
    values = auc(scores >= threshold, members)
    return float(values[0]) if single else values


def rehearsed_accuracy(scores: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Balanced accuracy in each game [T] with a threshold that is best in `REHEARSALS` *other* games, the next ones in order.

    The attacker plays the game with splits and models of their own and carries the threshold over; the membership that is
    judged has no say in it. Scores, and members, are [T, N], comparable between games; a single game is refused.
    """
    scores, members, _ = check_scores(scores, members)
    games = len(scores)
    if games < 2:
        raise MiaError(f"{games} game leaves none to rehearse in: at least 2 are needed.")
    accuracy = np.empty(games)
    for t in range(games):
        others = (t + 1 + np.arange(min(REHEARSALS, games - 1))) % games
        threshold = best_threshold(scores[others].ravel(), members[others].ravel())
        accuracy[t] = accuracy_at_threshold(scores[t], members[t], threshold)
    return accuracy


def pinball_loss(predicted: Numbers, observed: Numbers, level: float) -> float:
    """Mean pinball loss of a predicted quantile: level * (y - q) above it, (1 - level) * (q - y) below.

    Args:
        predicted, observed: [N]. level: quantile level in [0, 1].
    """
    check_range("level", level, 0, 1)
    check_order(-1, predicted=predicted, observed=observed)
    predicted, observed = (
        check_numbers(name, values).astype(float)
        for name, values in (("predicted", predicted), ("observed", observed))
    )
    if predicted.shape != observed.shape:
        raise MiaError(
            f"predicted {predicted.shape} and observed {observed.shape} differ: give one each."
        )
    short = observed - predicted
    return float(np.maximum(level * short, (level - 1) * short).mean())


def look_up_metric(metric, fpr: float | None = None) -> tuple[str, Callable, tuple[float, float]]:
    """Full name, function of (tp, fp) and range of a metric given as function, "auc" or "tpr_at_fpr=0.01"."""
    text = getattr(metric, "__name__", metric)
    if not isinstance(text, str):
        raise MiaError(
            f"metric is of type {type(metric).__name__}: the metric comes first, such as 'auc', then the scores, "
            "then the members."
        )
    name, _, rate = text.partition("=")
    if name not in CORES:
        known = [f"{core}=0.01" if core.endswith("_at_fpr") else core for core in CORES]
        check_choice("metric", text, known)
    if metric is not text and getattr(metric, "__module__", None) != __name__:
        raise MiaError(
            f"metric = {brief(metric)} is called {name}, as one of metrics is, and another: it would not be asked. "
            "Metrics are taken by name; numbers of your own have their place in metrics.by_repetition."
        )
    core, low_high = CORES[name], RANGES[name]
    if not name.endswith("_at_fpr"):
        return name, core, low_high  # type: ignore[return-value]
    try:
        fpr = float(rate) if rate else fpr
    except ValueError:
        fpr = None
    if fpr is None:
        raise MiaError(
            f"metric = {text!r} needs a rate: write it as '{name}=0.01' or give fpr=0.01."
        )
    _check_fpr(fpr)
    short = f"{fpr:g}"
    written = short if float(short) == fpr else repr(float(fpr))  # 1 / 300 has no short name
    return f"{name}={written}", lambda tp, fp: core(tp, fp, fpr), low_high  # type: ignore[operator]
