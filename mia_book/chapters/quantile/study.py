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

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import expit, ndtri

from mia_book.chapters.quantile import theory
from mia_book.chapters.quantile.measure import Split, split
from mia_book.publishing import catalogue
from mia_book.publishing.banks import BANKS, where_measured
from mia_lib import metrics
from mia_lib.attacks import baselines, calibration
from mia_lib.attacks.registry import LOG_ODDS
from mia_lib.data import sets
from mia_lib.errors import MiaError
from mia_lib.game import Game
from mia_lib.metrics import by_repetition, by_target
from mia_lib.published import Bank

MARGINAL, XY, X = "Marginal", "Gaussian, q(x, y)", "Gaussian, q(x)"
LIRA = "LiRA, offline"
RMIA = "RMIA, offline"
ONE = "LiRA, public records"
CALIBRATED = "calibrated loss"
METRICS = ("auc", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001")
RATES = (0.01, 0.001)  # nominal ones, of thresholds
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
        judged, held, seed: as for `measure.split`.
    """

    data: str
    kind: str
    bank: Bank
    count: int
    pool: int
    regressions: Mapping[str, Bank]
    public: np.ndarray | None
    judged: int
    held: int
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
            self.bank.members[target], self.pool, target, self.judged, self.held, self.seed
        )

    @cached_property
    def game(self) -> Game:
        """The game of the targets, with the first models of other pairs as references."""
        return Game(
            self.dealt, {LOG_ODDS: self.margin}, {}, self.targets, len(self.margin) - 2, "first"
        )

    def predicted(
        self, name: str, target: int, held: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and spread that the regression `name` gives the judged records, or the held ones."""
        rows = slice(-self.held, None) if held else slice(None, -self.held)
        of_target = self.regressions[name]
        return of_target.mean[target // 2, rows], np.exp(of_target.log_spread[target // 2, rows])


def image_case(
    data: str,
    models: int,
    targets: int,
    judged: int,
    held: int,
    regression: Mapping,
    recipe: Mapping,
) -> Case:
    """A case of networks on images: a published bank, or any set of images, measured now.

    Args:
        data: of `BANKS`, or a data set. models: M. targets: T, one of each complementary pair. judged, held: as for
            `measure.split`. regression: further parameters of `measure.regressions`.
        recipe: of the models, as for `papers.banks.models_of`.
    """
    _check(models, targets)
    piece, dataset, network = BANKS.get(data, ("cifar10-small", data, ""))
    title = (
        f"{sets.title(dataset)}, {network or 'small CNNs'}" if data in BANKS else sets.title(data)
    )
    measurement = catalogue()[f"bank/{piece}"]
    recipe = {} if data == "resnet9" else {"dataset": data, **recipe}
    recipe = {name: value for name, value in recipe.items() if measurement.usual()[name] != value}
    bank = measurement(models, **recipe)
    how = {"recipe": recipe or None, "judged": judged, "held": held}
    usual = catalogue()[f"quantile/{piece}"].usual()
    own = {name: value for name, value in {**how, **regression}.items() if usual[name] != value}
    asked = {XY: {}, X: {"label": False}} | ({} if own else {PRETRAINED: BACKBONE})
    if data == "cifar10" and not own:
        asked[FEWER] = {"public": 5000}
    found = {
        name: where_measured(f"quantile/{piece}", targets, bool(own), **how, **regression | one)
        for name, one in asked.items()
    }
    rivals = where_measured(
        "quantile/public-references", targets, bool(own), **how, bank=f"bank/{piece}", count=1
    )
    return Case(
        title,
        "images",
        bank,
        targets,
        _pool(bank),
        {name: one for name, one in found.items() if one is not None},
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
    found = {
        name: known["quantile/tables"](targets, label=label, **how)
        for name, label in ((XY, True), (X, False))
    }
    return Case(sets.title(data), "tables", bank, targets, _pool(bank), found, None, judged, held)


def _check(models: int, targets: int) -> None:
    if 2 * targets > models or models < 4:
        raise MiaError(
            f"models = {models} and targets = {targets}: one of each pair of models can be attacked, and two "
            "others at least are its references."
        )


# ----------------------------------------------------------------------------------------------------------------- attacks


def scores_of(case: Case, target: int, counts: Sequence[int]) -> dict[tuple, np.ndarray]:
    """Scores [n] of the judged records by (attack, number of models that the attacker trains).
    Calibration and RMIA, with the held records as population, have the largest number of references
    up to eight."""
    part = case.split(target)
    own, rows = case.margin[target], part.judged
    score = own[rows]
    found = {(MARGINAL, 0): score}
    for name in case.regressions:
        mean, spread = case.predicted(name, target)
        found[name, 1] = (score - mean) / spread
    public = [
        case.margin[target + 1, rows],
        *([] if case.public is None else case.public[target // 2]),
    ]
    for n in range(1, len(public) + 1):
        found[ONE, n] = baselines.lira_offline(
            score, np.array(public[:n]), np.zeros((n, len(rows)), bool), True
        )
    for n in counts:
        others = case.game.references_of(target, n)
        margin, inside = case.margin[others][:, rows], case.dealt[others][:, rows]
        found[LIRA, n] = baselines.lira_offline(score, margin, inside, n < OWN_SPREADS)
        if n == max([one for one in counts if one <= 8] or counts[:1]):
            found[CALIBRATED, n] = calibration.calibrate(
                -np.logaddexp(0, -score), -np.logaddexp(0, -margin), inside
            )
            found[RMIA, n] = baselines.rmia(
                expit(score),
                expit(margin),
                inside,
                expit(own[part.held]),
                expit(case.margin[others][:, part.held]),
                a=0.3,
            )
    return found


def attacks(
    case: Case, counts: Sequence[int], draws: int = 60
) -> tuple[pd.DataFrame, dict[tuple, np.ndarray], np.ndarray]:
    """Study "attacks", by data and n, and "model", the targets' accuracy; with the scores [T, n]
    and the members.

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
    rows = [scores_of(case, target, counts) for target in case.targets]
    scores = {key: np.stack([row[key] for row in rows]) for key in rows[0]}
    parts = [case.split(target) for target in case.targets]
    inside = np.stack([part.inside for part in parts])
    records = np.stack([part.judged for part in parts])
    by_count: dict[int, dict] = {}
    for (name, n), score in scores.items():
        by_count.setdefault(n, {})[name] = score
    frames = [
        by_target(
            some,
            inside,
            METRICS,
            draws=draws,
            records=records,
            study="attacks",
            data=case.data,
            kind=case.kind,
            n=n,
        )
        for n, some in by_count.items()
    ]
    right = case.bank.correct if "correct" in case.bank.arrays else case.margin > 0
    right = np.take_along_axis(right[list(case.targets)], records, 1)
    accuracy = {"members": right.mean(1, where=inside), "others": right.mean(1, where=~inside)}
    frames.append(by_repetition({"model": accuracy}, study="model", data=case.data))
    return pd.concat(frames, ignore_index=True), scores, inside


def mismatched(
    name: str, own: Case, other: Case, counts: Sequence[int], draws: int = 60
) -> pd.DataFrame:
    """Study "mismatch" (Figure 4): offline LiRA with references of the target's architecture and of another one, trained on
    the same halves; columns target, references ("own" or "other") and n.

    Args:
        name: of the target's architecture. own: its case. other: a case of the same records and halves.

    Raises:
        MiaError: other halves.
    """
    models = min(len(own.margin), len(other.margin))
    if not np.array_equal(own.bank.members[:models], other.bank.members[:models]):
        raise MiaError(f"{own.data} and {other.data} have models of other halves of the records.")
    frames = []
    for which, case in (("own", own), ("other", other)):
        for n in counts:
            scores, parts = [], [own.split(target) for target in own.targets]
            for target, part in zip(own.targets, parts, strict=True):
                others = own.game.references_of(target, n)
                scores.append(
                    baselines.lira_offline(
                        own.margin[target, part.judged],
                        case.margin[others][:, part.judged],
                        own.dealt[others][:, part.judged],
                        n < OWN_SPREADS,
                    )
                )
            frames.append(
                by_target(
                    {LIRA: np.stack(scores)},
                    np.stack([part.inside for part in parts]),
                    METRICS,
                    draws=draws,
                    records=np.stack([part.judged for part in parts]),
                    study="mismatch",
                    target=name,
                    references=which,
                    n=n,
                )
            )
    return pd.concat(frames, ignore_index=True)


# ------------------------------------------------------------------------------------------------------- what lies behind it


def expected(
    case: Case, target: int, counts: Sequence[int], held: bool = False
) -> dict[tuple, tuple[np.ndarray, np.ndarray]]:
    """Mean and spread that each attack supposes for a non-member's score, [n] each, for the judged
    or the held records."""
    part = case.split(target)
    rows = part.held if held else part.judged
    fitted = case.margin[target, part.fitted].astype(float)
    found = {(MARGINAL, 0): (np.full(len(rows), fitted.mean()), np.full(len(rows), fitted.std()))}
    for name in case.regressions:
        found[name, 1] = case.predicted(name, target, held)
    for n in counts:
        others = case.game.references_of(target, n)
        margin = case.margin[others][:, rows]
        inside = (case.bank.members if held else case.dealt)[others][:, rows]
        middle, above = baselines.lira_threshold(margin, inside, [0.5, 0.99], n < OWN_SPREADS)
        found[LIRA, n] = middle, (above - middle) / ndtri(0.99)
    return found


def thresholds(case: Case, counts: Sequence[int], draws: int = 60) -> pd.DataFrame:
    """Performance on the records after the pool of the thresholds mean + spread x Phi^-1(1 - rate),
    as fitted, and moved by a constant so that the held records have the rate.

    Studies "rates", the false positive rate, and "pinball", the loss (column protocol for both), and "explained", the share of
    the variance of non-members' scores that each attack's mean explains.
    """
    loss: dict[tuple, list] = {}
    called: dict[tuple, list] = {}
    explained: dict[tuple, list] = {}
    for target in case.targets:
        part = case.split(target)
        own = case.margin[target].astype(float)
        fresh = own[part.judged[~part.inside]]
        judged, held = expected(case, target, counts), expected(case, target, counts, held=True)
        for key, (mean, spread) in judged.items():
            explained.setdefault(key, []).append(
                1 - np.var(fresh - mean[~part.inside]) / np.var(fresh)
            )
            for rate in RATES:
                level = ndtri(1 - rate)
                fitted = (mean + level * spread)[~part.inside]
                if key[0] == MARGINAL:  # the quantile itself
                    fitted = np.full(len(fresh), np.quantile(own[part.fitted], 1 - rate))
                at_held = fitted[:1] if key[0] == MARGINAL else held[key][0] + level * held[key][1]
                moved = fitted + np.quantile(own[part.held] - at_held, 1 - rate)
                for protocol, bar in (("as fitted", fitted), ("moved", moved)):
                    loss.setdefault((*key, protocol, rate), []).append(
                        metrics.pinball_loss(bar, fresh, 1 - rate)
                    )
                    called.setdefault((*key, protocol, rate), []).append(fresh >= bar)
    frames = [
        by_repetition(
            {name: {"explained": np.array(values)}},
            study="explained",
            data=case.data,
            kind=case.kind,
            n=n,
        )
        for (name, n), values in explained.items()
    ]
    for (name, n, protocol, rate), values in loss.items():
        where = {"data": case.data, "kind": case.kind, "n": n, "protocol": protocol}
        frames.append(
            by_repetition({name: {f"pinball={rate:g}": np.array(values)}}, study="pinball", **where)
        )
        share = np.array(called[name, n, protocol, rate])
        frames.append(by_share(name, f"fpr={rate:g}", share, draws, study="rates", **where))
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
    pinball loss goes with more members found; column protocol.

    Args:
        frame: of `attacks` and `thresholds`, of one case or several.
    """
    found, some = [], frame[frame["attack"].isin([XY, LIRA])]
    for (data, kind, protocol), losses in some[some["study"] == "pinball"].groupby(
        ["data", "kind", "protocol"], sort=False
    ):
        if XY not in set(losses["attack"]):  # not measured
            continue
        ranked = some[(some["study"] == "attacks") & (some["data"] == data)]
        for rate in RATES:
            known = sorted(set(counts) & set(losses["n"]) & set(ranked["n"]))
            agree = []
            for n in known:
                lead = [
                    metrics.estimate(part, XY, metric, n=1).values
                    - metrics.estimate(part, LIRA, metric, n=n).values
                    for part, metric in (
                        (losses, f"pinball={rate:g}"),
                        (ranked, f"tpr_at_fpr={rate:g}"),
                    )
                ]
                if not np.isnan(lead).any():  # a rate that is resolved
                    agree.append(lead[0] * lead[1] < 0)
            if agree:
                found.append(
                    by_repetition(
                        {"pairs": {f"agreement={rate:g}": np.mean(agree, 0)}},
                        study="pairs",
                        data=data,
                        kind=kind,
                        protocol=protocol,
                    )
                )
    return pd.concat(found, ignore_index=True) if found else some.iloc[:0]


def quarters(case: Case) -> pd.DataFrame:
    """Study "quarters": rates "tpr" and "fpr" of each attack in each `quarter` of the records, at
    the one threshold that gives 1 % FPR over all. Records are sorted by their mean score under
    models that count as left out, the hardest first. References that no attack uses here sort them:
    those after the first eight, at most half of all."""
    rows: dict[tuple, dict] = {}
    n = min(8, (len(case.margin) - 2) // 4 * 2)
    for target in case.targets:
        part = case.split(target)
        found = scores_of(case, target, [n])
        others = case.game.references_of(target)[n:]
        hardness = np.average(
            case.margin[others][:, part.judged], 0, ~case.dealt[others][:, part.judged]
        )
        quarter = np.digitize(hardness, np.quantile(hardness[~part.inside], [0.25, 0.5, 0.75]))
        for key in ((MARGINAL, 0), (XY, 1), (X, 1), (ONE, 1), (LIRA, n)):
            if key not in found:
                continue
            score = found[key]
            bar = np.quantile(score[~part.inside], 0.99, method="higher")
            for q in range(4):
                for metric, side in (("tpr", part.inside), ("fpr", ~part.inside)):
                    called = score[side & (quarter == q)] > bar
                    rows.setdefault((*key, q + 1), {}).setdefault(metric, []).append(called.mean())
    return pd.concat(
        [
            by_repetition(
                {name: {metric: np.array(values) for metric, values in one.items()}},
                study="quarters",
                data=case.data,
                n=count,
                quarter=q,
            )
            for (name, count, q), one in rows.items()
        ],
        ignore_index=True,
    )


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
