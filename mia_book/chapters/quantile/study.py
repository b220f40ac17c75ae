"""Results of the chapter on quantile regression (Bertran et al. 2023, section 4): tidy frames of what was measured.

A row is an attack, a metric and a target; column `n` counts the models that the attacker trains, `data` names the case. Of
each target some members are judged against the records after the pool, which no model was trained on (`measure.split`). To a
reference such a record is as good as left out; so that no attack can tell, one of each complementary pair is left out of its
references for it, by a coin, as one of each pair is for a member.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import ndtri

from mia_book.chapters.quantile import theory
from mia_book.chapters.quantile.measure import Split, split
from mia_book.publishing import catalogue
from mia_book.publishing.banks import BANKS, where_measured
from mia_lib import metrics
from mia_lib.attacks import baselines
from mia_lib.attacks.registry import LOG_ODDS
from mia_lib.data import sets
from mia_lib.errors import MiaError
from mia_lib.game import Game
from mia_lib.metrics import by_repetition, by_target
from mia_lib.published import Bank
from mia_lib.signals import loss_of

MARGINAL, XY, X = "Marginal", "Gaussian, q(x, y)", "Gaussian, q(x)"
LIRA = "LiRA, offline"
ONE = "LiRA, public records"
# what is made of an attack's answers
SCORES = POSITION, DIFFERENCE, CALIBRATED = "position", "log odds", "loss"
HARDEST, AS_IT_IS = "position, hardest quarter", "score as it is, hardest quarter"
CHOSEN = "chosen on another model"
FAR = 1e6  # behind all scores
FEW = 8  # references with which the paper compares most
METRICS = ("auc", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001")
RATES = (0.01, 0.001)  # nominal ones, of thresholds
RATE_NAMES = ("1 %", "0.1 %")
OWN_SPREADS = 64  # models from which on LiRA has a spread for each record; with fewer one for all (Carlini et al., section VI)
FEWER, PRETRAINED = "Gaussian, 5,000 records", "Gaussian, pretrained"
# of that, which a card measures
BACKBONE = {"backbone": "efficientnet_lite0", "image_size": 128, "learning_rate": 3e-4}


@dataclass(frozen=True, eq=False)
class Case:
    """A bank of models on one data set, its targets, and the measurements against each.

    Attributes:
        data, kind: name of the case, and "images" or "tables". bank: margin and members [M, N], and for networks `correct`.
        count: T, targets. pool: records that models are trained on, the first ones.
        regressions: name -> mean and log_spread [T, n + h] of the judged and the held records of each target; those that are
            measured.
        public: margins [T, C, n] of references on the regression's records besides the target's complement, or None.
        judged, holdout_size, seed: `judged`, `held` and `seed` of `measure.split`.
    """

    data: str
    kind: str
    bank: Bank
    count: int
    pool: int
    regressions: Mapping[str, Bank]
    public: np.ndarray | None
    judged: int
    holdout_size: int
    seed: int = 0

    @cached_property
    def margin(self) -> np.ndarray:
        """Log odds of the true class, float32 [M, N]."""
        return self.bank.margin

    @property
    def targets(self) -> range:
        """Numbers of the models that are attacked, one of each complementary pair."""
        return range(0, 2 * self.count, 2)

    @cached_property
    def dealt(self) -> np.ndarray:
        """Membership as references have it for an attack, bool [M, N]: for records after the pool a
        coin makes one model of each pair count as trained on the record."""
        members = np.array(self.bank.members)
        coins = (
            np.random.default_rng([31, self.seed]).random(
                (len(members) // 2, members.shape[1] - self.pool)
            )
            < 0.5
        )
        members[0::2, self.pool :], members[1::2, self.pool :] = coins, ~coins
        return members

    def split(self, target: int) -> Split:
        """The `Split` of the target's records, by how they are used."""
        return split(
            self.bank.members[target], self.pool, target, self.judged, self.holdout_size, self.seed
        )

    @cached_property
    def game(self) -> Game:
        """The game of the targets, each with the models of the pairs after its own as references."""
        return Game(self.dealt, {LOG_ODDS: self.margin}, {}, self.targets, len(self.margin) - 2)

    def predicted(
        self, name: str, target: int, holdout: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and spread that the regression `name` gives the judged records, or the held ones."""
        rows = slice(-self.holdout_size, None) if holdout else slice(None, -self.holdout_size)
        of_target = self.regressions[name]
        mean, log_spread = (
            array[target // 2, rows].astype(float)
            for array in (of_target.mean, of_target.log_spread)
        )
        return mean, np.exp(log_spread)


def image_case(
    data: str,
    models: int,
    targets: int,
    judged: int,
    held: int,
    regression: Mapping,
    recipe: Mapping,
    again: bool = False,
) -> Case | None:
    """A case of networks on images: a published bank, or any set of images, measured now.

    Args:
        data: of `BANKS`, or a data set. models: M. targets: T, one of each complementary pair. judged, held: as for
            `measure.split`. regression: further parameters of `measure.regressions`.
        recipe: of the models, as for `papers.banks.models_of`.
        again: it is a second bank on the same data, with another seed; None where that is not published.
    """
    _check(models, targets)
    piece, dataset, network = BANKS.get(data, ("cifar10-small", data, ""))
    title = network or sets.title(dataset)
    measurement = catalogue()[f"bank/{piece}"]
    recipe = {} if data == "resnet9" else {"dataset": data, **recipe}
    recipe = {name: value for name, value in recipe.items() if measurement.usual()[name] != value}
    bank = where_measured(f"bank/{piece}", models, not again, **recipe)
    how = {"recipe": recipe or None, "judged": judged, "held": held}
    usual = catalogue()[f"quantile/{piece}"].usual()
    own = {name: value for name, value in {**how, **regression}.items() if usual[name] != value}
    made = bool(own) and not again
    asked = {XY: {}, X: {"label": False}} | ({} if own else {PRETRAINED: BACKBONE})
    if data == "cifar10" and not own:
        asked[FEWER] = {"public": 5000}
    regressions = {
        name: where_measured(f"quantile/{piece}", targets, made, **how, **regression | one)
        for name, one in asked.items()
    }
    rivals = where_measured(
        "quantile/public-references", targets, made, **how, bank=f"bank/{piece}", count=1
    )
    if again and (bank is None or regressions[XY] is None):
        return None
    return Case(
        title + ", second bank" * again,
        "images",
        bank,
        targets,
        _pool(bank),
        {name: one for name, one in regressions.items() if one is not None},
        None if rivals is None else rivals.margin,
        judged,
        held,
    )


def _pool(bank: Bank) -> int:
    return int(bank.trained[-1]) + 1


def table_case(
    data: str, models: int, targets: int, judged: int, held: int, recipe: Mapping
) -> Case:
    """A case of boosted trees on a table.

    Args:
        models, targets, judged, held: as for `image_case`. recipe: of the trees, as for `measure.trees`.
    """
    _check(models, targets)
    known = catalogue()
    bank = known["quantile/trees"](models, dataset=data, **recipe)
    judged = min(judged, _pool(bank) // 2)
    how = {"dataset": data, "judged": judged, "held": held, **recipe}
    regressions = {
        name: known["quantile/tables"](targets, label=label, **how)
        for name, label in ((XY, True), (X, False))
    }
    return Case(
        sets.title(data), "tables", bank, targets, _pool(bank), regressions, None, judged, held
    )


def _check(models: int, targets: int) -> None:
    if 2 * targets > models or models < 4:
        raise MiaError(
            f"models = {models} and targets = {targets}: one of each pair of models can be attacked, and two "
            "others at least are its references."
        )


# ----------------------------------------------------------------------------------------------------------------- attacks


class Usual(NamedTuple):
    """What an attack supposes of the scores of non-members: mean and spread of the log odds, and the loss, [n] each."""

    mean: np.ndarray
    spread: np.ndarray
    loss: np.ndarray


def expected(
    case: Case, target: int, counts: Sequence[int], holdout: bool = False
) -> dict[tuple[str, int], Usual]:
    """(attack, number of models that the attacker trains) -> what it supposes of the judged records, or of the held ones.

    A regression supposes the loss of its mean, references the mean of their losses. References on public records were trained
    on the held ones, of which they are not asked.
    """
    part = case.split(target)
    rows = part.holdout if holdout else part.judged
    fitted, same = case.margin[target, part.fitted].astype(float), np.ones(len(rows))
    usual = {(MARGINAL, 0): Usual(fitted.mean() * same, fitted.std() * same, same)}
    for name in case.regressions:
        mean, spread = case.predicted(name, target, holdout)
        usual[name, 1] = Usual(mean, spread, loss_of(mean))
    public = [] if holdout else [case.margin[target + 1, rows]]
    if case.public is not None and not holdout:
        public += list(case.public[target // 2])
    for n in range(1, len(public) + 1):
        usual[ONE, n] = Usual(np.mean(public[:n], 0), same, loss_of(np.array(public[:n])).mean(0))
    for n in counts:
        others = case.game.references_of(target, n)
        margin = case.margin[others][:, rows]
        members = (case.bank.members if holdout else case.dealt)[others][:, rows]
        middle, above = baselines.lira_threshold(margin, members, [0.5, 0.99], n < OWN_SPREADS)
        loss = np.average(loss_of(margin), 0, ~members)
        usual[LIRA, n] = Usual(middle, (above - middle) / ndtri(0.99), loss)
    return usual


def scores_of(
    case: Case, target: int, usual: Mapping[tuple[str, int], Usual]
) -> dict[tuple[str, int, str], np.ndarray]:
    """Scores [n] of the judged records by (attack, number of models, score), made of what each attack supposes.

    `POSITION` is that among the Gaussians, `DIFFERENCE` has one spread for all records, `CALIBRATED` compares losses. The
    regression's are made once more of the quarter alone that it predicts to be hardest; all other records lie behind.
    """
    own = case.margin[target, case.split(target).judged].astype(float)
    scores = {}
    for key, (mean, spread, loss) in usual.items():
        scores[*key, POSITION] = (own - mean) / spread
        if key[0] != MARGINAL:
            scores[*key, DIFFERENCE] = own - mean
            scores[*key, CALIBRATED] = loss - loss_of(own)
        if key[0] == XY:
            easy = mean >= np.quantile(case.predicted(XY, target, holdout=True)[0], 0.25)
            scores[*key, HARDEST] = scores[*key, POSITION] - FAR * easy
            scores[*key, AS_IT_IS] = own - FAR * easy
    return scores


def chosen(scores: Mapping[str, np.ndarray], members: np.ndarray, rate: float) -> np.ndarray:
    """Scores [T, N] in the way, of several, that finds most members of another model: that of the next target, which stands
    for one that the attacker trained and fitted a regression to."""
    rates = [metrics.tpr_at_fpr(each, members, rate) for each in scores.values()]
    best = np.argmax(np.roll(rates, -1, axis=1), 0)
    return np.stack([list(scores.values())[k][t] for t, k in enumerate(best)])


def attacks(
    case: Case, counts: Sequence[int], draws: int = 60
) -> tuple[pd.DataFrame, dict[tuple, np.ndarray], np.ndarray]:
    """Study "attacks", by data, n and score, and "model", the targets' accuracy; with the scores [T, n] and the members.

    Args:
        counts: of references, even.

    Raises:
        MiaError: no counts, as where all asked for are more than the bank has.
    """
    if not counts:
        raise MiaError(
            f"{case.data}: no number of references is left. Give one from 2 to {len(case.bank) - 2}, the models "
            "but the target and its partner."
        )
    parts = [case.split(target) for target in case.targets]
    rows = [scores_of(case, target, expected(case, target, counts)) for target in case.targets]
    scores = {key: np.stack([row[key] for row in rows]) for key in rows[0]}
    members = np.stack([part.is_member for part in parts])
    records = np.stack([part.judged for part in parts])
    where = {"data": case.data, "kind": case.kind}
    groups: dict[tuple, dict] = {}
    for (name, n, score), each in scores.items():
        groups.setdefault((n, score, METRICS), {})[name] = each
    of_regression = {score: scores.get((XY, 1, score)) for score in SCORES}
    for metric, rate in zip(METRICS[1:], RATES, strict=True) if XY in case.regressions else ():
        groups[1, CHOSEN, (metric,)] = {XY: chosen(of_regression, members, rate)}
    frames = [
        by_target(
            some,
            members,
            names,
            draws=draws,
            records=records,
            study="attacks",
            n=n,
            score=score,
            **where,
        )
        for (n, score, names), some in groups.items()
    ]
    right = case.bank.correct if "correct" in case.bank.arrays else case.margin > 0
    right = np.take_along_axis(right[list(case.targets)], records, 1)
    accuracy = {"members": right.mean(1, where=members), "others": right.mean(1, where=~members)}
    frames.append(by_repetition({"model": accuracy}, study="model", data=case.data))
    return pd.concat(frames, ignore_index=True), scores, members


def by_rate(frame: pd.DataFrame) -> pd.DataFrame:
    """The true positive rates of a frame once more, as metric "tpr" with the rate in a column: for claims that are asked at
    each rate."""
    rate = frame["metric"].map(dict(zip(METRICS[1:], RATE_NAMES, strict=True)))
    return frame[rate.notna()].assign(metric="tpr", rate=rate)


def mismatched(
    name: str, own: Case, other: Case, counts: Sequence[int], draws: int = 60
) -> pd.DataFrame:
    """Study "mismatch" (Figure 4): offline LiRA with references of the target's architecture and of another one, trained on
    the same halves, by the position, and the same references by the loss; columns target, references ("own" or "other"), n
    and score.

    Args:
        name: of the target's architecture. own: its case. other: a case of the same records and halves.

    Raises:
        MiaError: other halves.
    """
    models = min(len(own.margin), len(other.margin))
    if not np.array_equal(own.bank.members[:models], other.bank.members[:models]):
        raise MiaError(f"{own.data} and {other.data} have models of other halves of the records.")
    parts = [own.split(target) for target in own.targets]
    records, members = (
        np.stack([getattr(part, of) for part in parts]) for of in ("judged", "is_member")
    )
    frames = []
    for which, case, n in (
        (which, case, n) for which, case in (("own", own), ("other", other)) for n in counts
    ):
        scores = {POSITION: [], CALIBRATED: []}
        for target, judged in zip(own.targets, records, strict=True):
            others = own.game.references_of(target, n)
            answers = own.margin[target, judged].astype(float)
            margin, dealt = case.margin[others][:, judged], own.dealt[others][:, judged]
            scores[POSITION].append(baselines.lira_offline(answers, margin, dealt, n < OWN_SPREADS))
            scores[CALIBRATED].append(np.average(loss_of(margin), 0, ~dealt) - loss_of(answers))
        frames += [
            by_target(
                {LIRA: np.stack(each)},
                members,
                METRICS,
                draws=draws,
                records=records,
                study="mismatch",
                target=name,
                references=which,
                n=n,
                score=score,
            )
            for score, each in scores.items()
        ]
    return pd.concat(frames, ignore_index=True)


# ------------------------------------------------------------------------------------------------------- what lies behind it


def thresholds(case: Case, counts: Sequence[int], draws: int = 60) -> pd.DataFrame:
    """Performance on the records after the pool of the thresholds mean + spread x Phi^-1(1 - rate),
    as fitted, and moved by a constant so that the held records have the rate.

    Studies "rates", the false positive rate, and "pinball", the loss; columns protocol and rate.
    """
    loss: dict[tuple, list] = {}
    called: dict[tuple, list] = {}
    for target in case.targets:
        part = case.split(target)
        own = case.margin[target].astype(float)
        fresh = own[part.judged[~part.is_member]]
        judged, on_holdout = (
            expected(case, target, counts),
            expected(case, target, counts, holdout=True),
        )
        for key, rate in product(on_holdout, RATES):
            bars, at_holdout = (
                of.mean + ndtri(1 - rate) * of.spread for of in (judged[key], on_holdout[key])
            )
            fitted = bars[~part.is_member]
            if key[0] == MARGINAL:  # the quantile itself
                fitted, at_holdout = (
                    np.full(len(of), np.quantile(own[part.fitted], 1 - rate))
                    for of in (fresh, at_holdout)
                )
            moved = fitted + np.quantile(own[part.holdout] - at_holdout, 1 - rate)
            for protocol, bar in (("as fitted", fitted), ("moved", moved)):
                of_loss = metrics.pinball_loss(bar, fresh, 1 - rate)
                loss.setdefault((*key, protocol, rate), []).append(of_loss)
                called.setdefault((*key, protocol, rate), []).append(fresh >= bar)
    frames = []
    for (name, n, protocol, rate), values in loss.items():
        where = {"data": case.data, "kind": case.kind, "n": n, "protocol": protocol}
        where["rate"] = dict(zip(RATES, RATE_NAMES, strict=True))[rate]
        frames.append(
            by_repetition({name: {"pinball": np.array(values)}}, study="pinball", **where)
        )
        share = np.array(called[name, n, protocol, rate])
        frames.append(by_share(name, "fpr", share, draws, study="rates", **where))
    return pd.concat(frames, ignore_index=True)


def by_share(attack: str, metric: str, called: np.ndarray, draws: int, **columns) -> pd.DataFrame:
    """Share of the records that is `called`, bool [T, Z], as a tidy frame like that of
    `metrics.by_target`. All targets are judged on the same records."""
    count = called.shape[1]
    weights = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), draws)
    drawn = called @ weights.T / count
    number = metrics.Estimate(called.mean(1), drawn, np.arange(len(called)), count)
    return pd.DataFrame(
        [{**columns, "attack": attack, "metric": metric, "value": number.value, "estimate": number}]
    )


def pairs(frame: pd.DataFrame, counts: Sequence[int]) -> pd.DataFrame:
    """Study "pairs": over LiRA's numbers of references, the share of comparisons with the regression in which the lower
    pinball loss goes with more members found; columns protocol and rate.

    Args:
        frame: of `attacks` and `thresholds`, of one case or several.
    """
    some = frame[frame["attack"].isin([XY, LIRA])]
    ranked = by_rate(some[(some["study"] == "attacks") & (some["score"] == POSITION)])
    some = some[some["study"] == "pinball"]
    frames = [some.iloc[:0]]
    for where, losses in some.groupby(["data", "kind", "protocol", "rate"], sort=False):
        names = dict(zip(("data", "kind", "protocol", "rate"), where, strict=True))
        of_rate = ranked[(ranked["data"] == names["data"]) & (ranked["rate"] == names["rate"])]
        agree = []
        for n in sorted(set(counts) & set(losses["n"])) if XY in set(losses["attack"]) else ():
            lower, more = (
                metrics.estimate(part, XY, metric, n=1).values
                - metrics.estimate(part, LIRA, metric, n=n).values
                for part, metric in ((losses, "pinball"), (of_rate, "tpr"))
            )
            agree.append(lower * more < 0)
            if np.isnan(more).any():  # a rate that is not resolved
                agree.pop()
        if agree:
            values = {"pairs": {"agreement": np.mean(agree, 0)}}
            frames.append(by_repetition(values, study="pairs", **names))
    return pd.concat(frames, ignore_index=True)


def difficulty(case: Case, target: int, few: int) -> np.ndarray:
    """Mean log odds [n] of the judged records under references that left them out; the lower, the harder. The first `few`
    references are put aside for attacks, unless there are no more."""
    records = case.split(target).judged
    references = case.game.references_of(target)
    others = references[few:] if few < len(references) else references
    margin, dealt = case.margin[others][:, records], case.dealt[others][:, records]
    return np.average(margin.astype(float), 0, ~dealt)


def quarters(case: Case, scores: Mapping[tuple, np.ndarray], members: np.ndarray) -> pd.DataFrame:
    """Study "quarters": rates "tpr" and "fpr" of the regression's scores, and of LiRA's with at most `FEW` references, in
    each `quarter` of the records, the hardest first, at the one threshold that gives 1 % FPR over all. Column `sorted` says
    by what: "prediction", the regression's own mean, or "references", the `difficulty` by other references than LiRA's.

    Study "difficulty": over non-members, "correlation" of their scores with the mean that the regression predicts, and, as
    attack LiRA, with the `difficulty`.

    Args:
        scores, members: of `attacks`.
    """
    counts = sorted(n for name, n, _ in scores if name == LIRA)
    few = max((n for n in counts if n <= FEW), default=counts[0])
    rows: dict[tuple, dict] = {}
    known: dict[str, list] = {XY: [], LIRA: []}
    attacks = [(XY, 1), (LIRA, few)]
    for t, target in enumerate(case.targets if XY in case.regressions else ()):
        is_member, own = members[t], case.margin[target, case.split(target).judged]
        means = {"prediction": case.predicted(XY, target)[0]}
        means["references"] = difficulty(case, target, few)
        for name, mean in zip(known, means.values(), strict=True):
            known[name].append(np.corrcoef(mean[~is_member], own[~is_member])[0, 1])
        for (by, mean), attack, score in product(means.items(), attacks, (POSITION, CALIBRATED)):
            quarter = np.digitize(mean, np.quantile(mean[~is_member], [0.25, 0.5, 0.75]))
            each = scores[*attack, score][t]
            called = each > np.quantile(each[~is_member], 0.99, method="higher")
            for q, (metric, side) in product(range(4), (("tpr", is_member), ("fpr", ~is_member))):
                share = called[side & (quarter == q)].mean()
                key = (by, *attack, score, q + 1)
                rows.setdefault(key, {}).setdefault(metric, []).append(share)
    where = {"data": case.data, "kind": case.kind}
    frames = [
        by_repetition(
            {name: {metric: np.array(values) for metric, values in one.items()}},
            study="quarters",
            sorted=by,
            n=n,
            score=score,
            quarter=q,
            **where,
        )
        for (by, name, n, score, q), one in rows.items()
    ]
    if frames:
        values = {name: {"correlation": np.array(each)} for name, each in known.items()}
        frames.append(by_repetition(values, study="difficulty", **where))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def costs(case: Case, recipe: Mapping, regression: Mapping) -> pd.DataFrame:
    """Study "costs" of a case of networks: "passes", millions of images that are passed forwards
    and backwards to train one regression, image and mirror image, and one reference; and
    "references", the regression's cost in references."""
    usual = [
        catalogue()[f"{room}/cifar10-small"].usual()["epochs"] for room in ("quantile", "bank")
    ]
    fitted, own = 2 * len(case.split(0).fitted), int(case.bank.members[0].sum())
    passes = fitted * regression.get("epochs", usual[0]), own * recipe.get("epochs", usual[1])
    return by_repetition(
        {
            XY: {"passes": passes[0] / 1e6, "references": passes[0] / passes[1]},
            LIRA: {"passes": passes[1] / 1e6},
        },
        study="costs",
        data=case.data,
        kind=case.kind,
    )


def theorems(seed: int = 0) -> pd.DataFrame:
    """Study "theory": by how much false positive rates in the sample miss the nominal one beyond
    what Theorems 1 and 2 allow, and by how much the saving of Lemma 3 falls short of its bound."""
    rates = theory.groups(seed)
    closed = rates[rates["closed"]]
    law = stats.uniform
    gap = theory.gap_of_shift(0.05, 0.2, law)
    return by_repetition(
        {
            "Theorem 1": {"excess": closed.loc[closed["group"] == "all", "excess"].max()},
            "Theorem 2": {"excess": closed["excess"].max()},
            "Lemma 3": {"excess": max((0.05 - 0.2) ** 2 / 2 - gap, 0.0)},
        },
        study="theory",
    )
