"""Experiments of the chapter that compares: every attack on every target of a case, and what follows from their rankings.

T targets, N records, A attacks. Of scores ranks within a target are kept, from which all metrics follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from mia_lib import metrics, signals, store
from mia_lib.attacks import registry
from mia_lib.attacks.registry import Attack
from mia_lib.errors import MiaError, check_range
from mia_lib.evidence import tables
from mia_lib.metrics import interval as intervals
from mia_lib.metrics.interval import Interval
from mia_lib.metrics.resampling import resampled
from mia_lib.papers import costs
from mia_lib.papers.compare.attacks import ATTACKS, SWEPT, by_regression, lacks
from mia_lib.papers.compare.case import Case, Seen
from mia_lib.papers.numbers import number, packed_ranks

CALL = 0.01  # false positive rate at which records are called members
GROWN = ("malt", "calibrated", "lira_offline", "lira", "rmia")  # against the number of members, and of epochs


@dataclass(frozen=True)
class Cost:
    """What an attack costs against one target, the records being there.

    Attributes:
        models: it trains. queries: to the target for each record it judges. public: further queries, of public records.
        operations: of training and computing before the first record is judged. seconds: of that, on one core, as the clock
            had it. held: bytes of networks and matrices that it holds.
    """

    models: int
    queries: int
    public: int
    operations: float
    seconds: float
    held: int

    @staticmethod
    def of(case: Case, asked) -> Cost:
        """From what an attack asked for."""
        queries = 0
        for where in ("pool", "mirrored"):
            names = {name for whose, name, place in asked.signals if whose == "target" and place == where}
            queries += registry.queries(names, case.limits.probes)
        config, size = case.models.config, int(case.bank.members[0].sum())
        each = costs.training(config, case.pool.shape, len(case.pool.classes), size)
        seconds = sum(map(case.seconds, asked.references))
        return Cost(len(asked.references) + sum(one.models for one in asked.made.values()), queries,
                    asked.public,
                    len(asked.references) * each + sum(one.operations for one in asked.made.values()),
                    seconds + sum(one.seconds for one in asked.made.values()),
                    4 * case.parameters * (1 + len(asked.references)) + sum(one.held for one in asked.made.values()))


@dataclass(frozen=True, eq=False)
class Play:
    """All attacks that a case is for, against all of its targets.

    Attributes:
        case: what was attacked.
        members: bool [T, N].
        ranks: attack -> [T, N], higher for members.
        costs: attack -> its cost.
    """

    case: Case
    members: np.ndarray
    ranks: dict[str, np.ndarray]
    costs: dict[str, Cost]


def play(case: Case, attacks: Iterable[str] | None = None, references: int | None = None) -> Play:
    """Run attacks on a case, each kept in the store by itself.

    Args:
        attacks: names of `ATTACKS`, those that the case is for by default.
        references: how many they have; the most by default.

    Raises:
        MiaError: an attack that the case is not for.
    """
    chosen = [name for name in ATTACKS if not lacks(name, case)] if attacks is None else list(attacks)
    for name in chosen:
        if reason := lacks(name, case):
            raise MiaError(f"attack = {name!r} is not for {case.name}: {reason}.")
    count = case.counts[-1] if references is None else references
    found = {name: _attacked(case, name, ATTACKS[name], count) for name in chosen}
    return Play(case, case.members, {name: arrays["ranks"] for name, arrays in found.items()},
                {name: _cost(arrays) for name, arrays in found.items()})


def _attacked(case: Case, name: str, attack: Attack, references: int) -> dict[str, np.ndarray]:
    def compute() -> dict[str, np.ndarray]:
        seen = [Seen(case, target, references) for target in case.bank.attacked]
        ranks = np.stack([packed_ranks(attack.score(one)) for one in seen])
        each = [Cost.of(case, one.asked) for one in seen]
        return {"ranks": ranks, **{name: np.mean([getattr(one, name) for one in each]) for name in Cost.__annotations__}}

    spec = {**case.spec, "attack": name, "options": dict(attack.options), "references": references}
    return store.study("compare.attack", spec, compute)


def _cost(arrays: Mapping[str, np.ndarray]) -> Cost:
    whole = ("models", "queries", "public", "held")
    return Cost(**{name: int(arrays[name]) if name in whole else float(arrays[name]) for name in Cost.__annotations__})


@dataclass(frozen=True, eq=False)
class Records:
    """What is known of a case's records and targets.

    Attributes:
        hardness: mean loss under the models that were not trained on a record, [N].
        train, test: accuracy of the targets on members and on others, [T].
    """

    hardness: np.ndarray
    train: np.ndarray
    test: np.ndarray


def records(case: Case) -> Records:
    """Of a case, kept in the store."""
    def compute() -> dict[str, np.ndarray]:
        loss = signals.loss(case.models, case.pool)
        right = signals.correctness(case.models, case.pool)[list(case.bank.attacked)]
        return {"hardness": np.average(loss, 0, ~case.bank.members).astype(np.float32),
                "train": np.array([row[inside].mean() for row, inside in zip(right, case.members, strict=True)]),
                "test": np.array([row[~inside].mean() for row, inside in zip(right, case.members, strict=True)])}

    return Records(**store.study("compare.records", case.spec, compute))


# ------------------------------------------------------------------------------------------- with more of everything


@dataclass(frozen=True, eq=False)
class Swept:
    """Attacks with more and more of something, by name.

    Attributes:
        what: of the axis. values: on it, [S].
        auc: [S, T]. tpr: `metrics.conformal_tpr_at_fpr` at `CALL`, [S, T].
        leads: AUC beyond MALT's at each value, with intervals over targets and records.
        plays: where the targets change, what was played at each value.
    """

    what: str
    values: np.ndarray
    auc: dict[str, np.ndarray]
    tpr: dict[str, np.ndarray]
    leads: dict[str, list[Interval]]
    plays: tuple[Play, ...] = ()

    def beyond(self, name: str) -> list[Interval]:
        """AUC beyond MALT's at each value, with intervals over targets and records."""
        return self.leads[name]

    def first(self, name: str) -> float | None:
        """The least value from which on an attack is ahead of MALT at all larger ones, too; None where there is none."""
        ahead = np.array([one.sign > 0 for one in self.beyond(name)])
        kept = np.logical_and.accumulate(ahead[::-1])[::-1]
        return float(self.values[kept.argmax()]) if kept.any() else None


def by_references(case: Case) -> Swept:
    """Attacks with few and with many references."""
    found = {name: _with_references(case, name, ATTACKS[name]) for name in SWEPT}
    return _swept("references", np.array(case.counts), found)


def _with_references(case: Case, name: str, attack: Attack) -> dict[str, np.ndarray]:
    def compute() -> dict[str, np.ndarray]:
        return _measured(case, [np.stack([attack.score(Seen(case, target, count)) for target in case.bank.attacked])
                                for count in case.counts])

    return store.study("compare.references", {**case.spec, "attack": name, "options": dict(attack.options)}, compute)


def _measured(case: Case, scores: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Of the scores [T, N] of an attack with more and more of something: "auc", "tpr", [S, T], and "lead", [S, 3], the AUC
    beyond MALT's with the ends of its interval."""
    malt = play(case, ["malt"]).ranks["malt"]
    leads = [number(np.stack([packed_ranks(row) for row in one]), case.members, "auc", malt) for one in scores]
    return {"auc": np.array([metrics.auc(one, case.members) for one in scores]),
            "tpr": np.array([metrics.conformal_tpr_at_fpr(one, case.members, CALL) for one in scores]),
            "lead": np.array([[one.value, one.low, one.high] for one in leads])}


def _swept(what: str, values: np.ndarray, found: Mapping[str, dict[str, np.ndarray]]) -> Swept:
    """From what `_measured` gave for each attack."""
    leads = {name: [Interval(*map(float, row), covers="targets and records") for row in one["lead"]]
             for name, one in found.items()}
    return Swept(what, values, {name: one["auc"] for name, one in found.items()},
                 {name: one["tpr"] for name, one in found.items()}, leads)


def by_public(case: Case, sizes: Sequence[int]) -> Swept:
    """The Gaussian quantile regression with few and with many public records to learn from.

    Args:
        sizes: ascending; those not well below what there is are left out, and all there is comes last.
    """
    most = len(case.splits["fit"])
    values = [*(size for size in sizes if size < 0.8 * most), most]
    for size in values:
        check_range("sizes", size, 20)

    def compute() -> dict[str, np.ndarray]:
        return _measured(case, [np.stack([by_regression(Seen(case, target), "gauss", None if size == most else size)
                                          for target in case.bank.attacked]) for size in values])

    return _swept("public records", np.array(values), {
        "quantile": store.study("compare.public", {**case.spec, "sizes": values}, compute)})


def over_cases(what: str, cases: Mapping[int, Case]) -> Swept:
    """`GROWN` on cases that differ in one number.

    Args:
        what: of the axis. cases: number -> case.
    """
    played = [play(one, GROWN) for one in cases.values()]
    auc = {name: np.array([metrics.auc(one.ranks[name], one.members) for one in played]) for name in GROWN}
    tpr = {name: np.array([metrics.conformal_tpr_at_fpr(one.ranks[name], one.members, CALL) for one in played])
           for name in GROWN}
    leads = {name: [number(one.ranks[name], one.members, "auc", one.ranks["malt"]) for one in played] for name in GROWN}
    return Swept(what, np.array(list(cases)), auc, tpr, leads, tuple(played))


VIEWED = ("lira", "curvature")


@dataclass(frozen=True, eq=False)
class Views:
    """Attacks with one view of each image and with two, its mirror image beside it: attack -> ranks [T, N]."""

    members: np.ndarray
    one: dict[str, np.ndarray]
    two: dict[str, np.ndarray]


def views(case: Case) -> Views:
    """LiRA and curvature as their papers have them, with the image and its mirror image."""
    def compute() -> dict[str, np.ndarray]:
        both: dict[str, list] = {name: [] for name in VIEWED}
        for target in case.bank.attacked:
            seen = Seen(case, target)
            for name in VIEWED:
                [signal] = ATTACKS[name].signals
                values = np.stack([np.concatenate([seen.own(signal, where)[None], seen.references(signal, where)[0]])
                                   for where in ("pool", "mirrored")], -1)
                two_views = registry.ArraySignals({signal: values}, seen.references(signal)[1])
                both[name].append(packed_ranks(ATTACKS[name].score(two_views)))
        return {name: np.stack(rows) for name, rows in both.items()}

    found = play(case, VIEWED)
    return Views(case.members, {name: found.ranks[name] for name in VIEWED}, store.study("compare.views", case.spec, compute))


# ------------------------------------------------------------------------------------------------ which records, by whom


def called(ranks: np.ndarray, members: np.ndarray, rate: float = CALL) -> np.ndarray:
    """Which records are called members at a false positive rate of at most `rate`, bool [T, N]."""
    out = np.zeros(members.shape, bool)
    for row, score, inside in zip(out, ranks, members, strict=True):
        strangers = np.sort(score[~inside])[::-1]
        row[:] = score > strangers[int(rate * len(strangers) + 1e-9)]
    return out


def agreement(played: Play, attacks: Sequence[str]) -> np.ndarray:
    """Of the members that either of two attacks calls, the share that both call; mean over targets, [A, A]."""
    found = {name: called(played.ranks[name], played.members) & played.members for name in attacks}
    out = np.eye(len(attacks))
    for i, one in enumerate(attacks):
        for j, other in enumerate(attacks):
            if i != j:
                both, either = (found[one] & found[other]).sum(1), (found[one] | found[other]).sum(1)
                out[i, j] = np.mean(both / np.maximum(either, 1))
    return out


@dataclass(frozen=True, eq=False)
class Combined:
    """Attacks together: name -> ranks [T, N].

    Attributes:
        best: metric, "auc" or "tpr" at `CALL` -> of the attacks, for each target the one that is best by it on other targets.
        vote: mean of normal scores of ranks. logistic: a logistic regression on them, learned on the other targets.
        chosen: metric -> name of the best, for each target. weights: of the regression, mean over targets.
    """

    members: np.ndarray
    best: dict[str, np.ndarray]
    vote: np.ndarray
    logistic: np.ndarray
    chosen: dict[str, tuple[str, ...]]
    weights: dict[str, float]


def combined(played: Play, attacks: Sequence[str]) -> Combined:
    """What attacks give together. What is chosen or learned is so on other targets, of which the complement is none: it is
    trained on all the records that the target is not.

    Args:
        attacks: whose ranks are put together.
    """
    def compute() -> dict[str, np.ndarray]:
        from sklearn.linear_model import LogisticRegression

        normal = np.stack([[stats.norm.ppf(stats.rankdata(row) / (len(row) + 1)) for row in played.ranks[name]]
                           for name in attacks], -1)
        logistic, weights = [], []
        for t, target in enumerate(played.case.bank.attacked):
            others = [u for u, one in enumerate(played.case.bank.attacked) if one // 2 != target // 2]
            model = LogisticRegression(C=1.0, max_iter=1000).fit(normal[others].reshape(-1, len(attacks)),
                                                                 played.members[others].ravel())
            logistic.append(packed_ranks(model.decision_function(normal[t])))
            weights.append(model.coef_[0])
        return {"vote": np.stack([packed_ranks(row) for row in normal.mean(-1)]), "logistic": np.stack(logistic),
                "weights": np.mean(weights, 0)}

    if len({target // 2 for target in played.case.bank.attacked}) < 2:
        raise MiaError("combining attacks takes targets of two pairs at least: one to learn from, one to judge.")
    spec = {**played.case.spec, "attacks": list(attacks),
            "ranks": [store.fingerprint(played.ranks[name]) for name in attacks]}
    found = store.study("compare.combined", spec, compute)
    chosen = {metric: _chosen(played, attacks, metric) for metric in ("auc", "tpr")}
    best = {metric: np.stack([packed_ranks(played.ranks[name][t]) for t, name in enumerate(names)])
            for metric, names in chosen.items()}
    return Combined(played.members, best, found["vote"], found["logistic"], chosen,
                    dict(zip(attacks, map(float, found["weights"]), strict=True)))


def _chosen(played: Play, attacks: Sequence[str], metric: str) -> tuple[str, ...]:
    """For each target the attack that has the highest mean of a metric over the targets of other pairs."""
    values = np.stack([metrics.auc(played.ranks[name], played.members) if metric == "auc" else
                       metrics.tpr_at_fpr(played.ranks[name], played.members, CALL) for name in attacks])
    pair = np.array(played.case.bank.attacked) // 2
    return tuple(attacks[int(values[:, pair != own].mean(1).argmax())] for own in pair)


@dataclass(frozen=True, eq=False)
class Again:
    """Whether the records that an attack calls under one target are called under another, by attack, with intervals over pairs
    of targets and over records.

    Attributes:
        members: of the members called under a target, the share called again under other targets that were trained on them,
            less the share of all its members that are called there.
        strangers: the same of false alarms, under other targets that were not trained on them.
        beyond: the first less the second.
    """

    members: dict[str, Interval]
    strangers: dict[str, Interval]
    beyond: dict[str, Interval]


def again(played: Play, attacks: Sequence[str]) -> Again:
    """Repeatability: whether the same records are found under other targets.

    Of two targets that are compared neither serves as a reference against the other, and no complement of theirs: a member
    that was called under one would raise what is typical of members in the eyes of the other, and be called again where
    nothing leaks.
    """
    pair = np.array(played.case.bank.attacked) // 2
    found = {}
    for name in attacks:
        calls = (np.broadcast_to(called(played.ranks[name], played.members)[:, None], (len(pair), *played.members.shape))
                 if ATTACKS[name].needs.references == "none" else _without_each_other(played.case, name, ATTACKS[name]))
        found[name] = repeated(calls, played.members, pair)
    return Again(*({name: three[k] for name, three in found.items()} for k in range(3)))


def repeated(calls: np.ndarray, members: np.ndarray, pair: np.ndarray) -> tuple[Interval, Interval, Interval]:
    """The three parts of `Again` of one attack.

    Every comparison is of two targets, so the units of chance are not its rows: intervals are those of the jackknife that
    leaves a pair of targets out in both roles, records being drawn again for all. It errs on the wide side where what two
    targets share is theirs alone; where hardly a record is called twice, none is narrower than counting allows.

    Args:
        calls: bool [T, T, N], under the first target where it is compared with the second. members: bool [T, N].
        pair: int [T], of which pair of complements each target is; those of one pair are not compared.
    """
    apart = pair[:, None] != pair

    def parts(weights: np.ndarray) -> np.ndarray:
        of_members, of_strangers = (_called_again(calls, side, apart, weights) for side in (members, ~members))
        return np.stack([_without_a_pair(one, pair) for one in (of_members, of_strangers, of_members - of_strangers)])

    least = [_least_error(calls, side, apart) for side in (members, ~members)]
    found = resampled(parts, members.shape[1], "pairs of targets", bounds=(-2, 2))
    return tuple(map(_no_surer, found, [*least, np.hypot(*least)]))


def _least_error(calls: np.ndarray, side: np.ndarray, apart: np.ndarray) -> float:
    """Standard error that counting gives the share called twice: a record that is, counts in both roles, and none found says
    less than one would."""
    once = twice = 0
    for t, u in zip(*np.nonzero(apart), strict=True):
        first = side[t] & side[u] & calls[t, u]
        once, twice = once + first.sum(), twice + (first & calls[u, t]).sum()
    return float(np.sqrt(2 * max(twice, 2)) / max(once, 1))


def _no_surer(interval: Interval, least: float) -> Interval:
    """The same with a standard error of `least` at least."""
    if np.isnan(interval.low) or interval.se >= least:
        return interval
    return intervals.combined(interval.value, [least**2], [np.inf], interval.level, interval.covers, interval.bounds)


def _called_again(calls: np.ndarray, side: np.ndarray, apart: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of the records of one side that are called under a target the share called under the other, less the share of all that
    are called there, [B, T, T]; 0 where none is called, not a number where two targets are not compared.

    Args:
        side: bool [T, N]. apart: bool [T, T]. weights: [B, N].
    """
    out = np.full((len(weights), *apart.shape), np.nan)
    for t, u in zip(*np.nonzero(apart), strict=True):
        shared, first, second = side[t] & side[u], calls[t, u], calls[u, t]
        twice, once, there, all_shared = (weights[:, rows].sum(1) for rows in (
            shared & first & second, shared & first, shared & second, shared))
        out[:, t, u] = np.where(once > 0, twice / np.maximum(once, 1) - there / np.maximum(all_shared, 1), 0)
    return out


def _without_a_pair(excess: np.ndarray, pair: np.ndarray) -> np.ndarray:
    """Pseudo-values [B, G] of the mean of a statistic of two targets, [B, T, T], when each of G pairs is left out; of fewer
    than three pairs the means of its rows."""
    groups = np.unique(pair)
    rows = np.nanmean(excess, 2)
    if len(groups) < 3:
        return np.stack([rows[:, pair == g].mean(1) for g in groups], 1)
    whole, count = rows.mean(1), len(groups)
    without = np.stack([np.nanmean(excess[:, pair != g][:, :, pair != g], 2).mean(1) for g in groups], 1)
    return count * whole[:, None] - (count - 1) * without


def _without_each_other(case: Case, name: str, attack: Attack) -> np.ndarray:
    """What an attack calls under each target without each other one among the references, bool [T, T, N]; nothing where the
    other is of the same pair."""
    targets = case.bank.attacked
    count = min(case.counts[-1], len(case.bank.members) - 4)

    def compute() -> dict[str, np.ndarray]:
        calls = np.zeros((len(targets), *case.members.shape), bool)
        for t, target in enumerate(targets):
            for u, other in enumerate(targets):
                if target // 2 != other // 2:
                    calls[t, u] = called(attack.score(Seen(case, target, count, (other,)))[None], case.members[t][None])[0]
        return {"calls": np.packbits(calls, -1)}

    spec = {**case.spec, "attack": name, "options": dict(attack.options), "references": count}
    return np.unpackbits(store.study("compare.again", spec, compute)["calls"], -1, len(case.pool)).astype(bool)


def by_group(played: Play, name: str, groups: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares of the members and of the strangers of each group that an attack calls at one threshold for all: the group's TPR
    and FPR, [T, G] each. It finds members of a group only as far as the first is above the second.

    Args:
        groups: int [N]. count: G.
    """
    return tuple(one[0] for one in _rates(played, name, groups, count, np.ones((1, len(groups)))))


def _rates(played: Play, name: str, groups: np.ndarray, count: int, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`by_group` of records drawn as often as `weights` [B, N] says, thresholds anew: [B, T, G] each; not a number for a group
    without such records."""
    of_group = np.eye(count)[groups]
    rates = np.empty((2, len(weights), len(played.members), count))
    for t, (score, inside) in enumerate(zip(played.ranks[name], played.members, strict=True)):
        strangers = np.flatnonzero(~inside)
        falling = strangers[np.argsort(-score[strangers].astype(np.float64), kind="stable")]
        drawn = np.cumsum(weights[:, falling], 1)
        level = [score[falling[min(np.searchsorted(row, CALL * row[-1] + 1e-9, "right"), len(falling) - 1)]] for row in drawn]
        found = score > np.array(level)[:, None]
        for place, side in enumerate((inside, ~inside)):
            with np.errstate(invalid="ignore"):
                rates[place, :, t] = (weights * found * side) @ of_group / ((weights * side) @ of_group)
    return rates[0], rates[1]


def over_groups(played: Play, name: str, groups: np.ndarray, contrasts: np.ndarray) -> list[Interval]:
    """Weighted sums over groups of the TPR less the FPR of `by_group`, with intervals over pairs of targets (over targets
    where there are fewer than four pairs) and records.

    Args:
        contrasts: [K, G], the weights of each.
    """
    paired = len(played.members) >= 8 and len(played.members) % 2 == 0

    def sums(weights: np.ndarray) -> np.ndarray:
        found, alarms = _rates(played, name, groups, contrasts.shape[1], weights)
        beyond = [(found - alarms)[..., row != 0] @ row[row != 0] for row in contrasts]  # other groups may have no value
        return np.stack([one.reshape(len(one), -1, 2).mean(2) if paired else one for one in beyond])

    return resampled(sums, len(groups), "pairs of targets" if paired else "targets", bounds=(-2, 2))


def quarters(hardness: np.ndarray) -> np.ndarray:
    """Four equal parts of the records by hardness, 0 the easiest, int [N]."""
    return (stats.rankdata(hardness, method="ordinal") - 1).astype(int) * 4 // len(hardness)


def exposure(played: Play, attacks: Sequence[str]) -> pd.DataFrame:
    """How exposed each record is: under how many of the targets that were trained on it attacks call it, beyond the others.

    Returns:
        DataFrame, a row a record that was in at least two targets and out of two, most exposed first: "record", "targets" that
        were trained on it, and for each attack the share of these under which it is called less that of the others; "mean" of
        them.
    """
    inside, outside = played.members.sum(0), (~played.members).sum(0)
    rows = np.flatnonzero((inside >= 2) & (outside >= 2))
    shares = {}
    for name in attacks:
        calls = called(played.ranks[name], played.members)
        shares[name] = ((calls & played.members).sum(0)[rows] / inside[rows]
                        - (calls & ~played.members).sum(0)[rows] / outside[rows])
    frame = pd.DataFrame({"record": rows, "targets": inside[rows], **shares})
    frame["mean"] = frame[list(attacks)].mean(axis=1)
    return frame.sort_values(["mean", "targets", "record"], ascending=[False, False, True], ignore_index=True)


def plan(cases: Mapping[str, Case], more: Mapping[str, Mapping[int, Case]]) -> pd.DataFrame:
    """What a run trains, before anything is trained.

    Args:
        more: what grows -> number -> case.
    """
    rows = [_planned(name, one) for name, one in cases.items()]
    rows += [_planned(f"{what}: {number:,}", one) for what, several in more.items() for number, one in several.items()]
    return pd.DataFrame(rows)


def _planned(name: str, one: Case) -> dict:
    return {"case": name, "models": len(one.models), "targets": len(one.bank.attacked),
            "members of each": tables.cell(int(one.bank.members[0].sum()), ","),
            "public records": tables.cell(len(one.public), ","), "parameters": tables.cell(one.parameters, ","),
            "epochs": one.models.config.epochs, "optimizer": one.models.config.optimizer}
