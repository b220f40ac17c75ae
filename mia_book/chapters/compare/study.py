"""Results of the chapter that compares attacks: tidy frames, from published arrays alone.

A row is an attack and a metric, with its `Estimate` over targets. Column `references` counts the models that a score compares
a record with: of an attack without models that were trained on the record all of them left it out, of one with such models
half of them did.
Column `queries` counts what a score asks the target about one record. The target's partner, which was trained on the other
half of the records, is never among the references of a bank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from mia_lib import metrics, signals
from mia_lib.attacks import REFERENCES, registry
from mia_lib.attacks.registry import LOG_ODDS, Attack
from mia_lib.game import Game, View
from mia_lib.metrics import by_repetition, by_target
from mia_lib.published import Bank, load

METRICS = ("auc", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001")
RATES = {"tpr_at_fpr=0.01": "1 %", "tpr_at_fpr=0.001": "0.1 %"}
POPULATION = 2000  # records that no model was trained on, with which RMIA compares
FLOOR = 1e-22  # that is added to a curvature before its logarithm is kept
GENERALISES, BY_HEART = "generalises", "by heart"
KNOWN = 0.998  # of the members that a model is right on, from which on it knows them by heart
CURVED = 4000  # records of which costly signals were measured
TRIED = 2000  # records, at least, on which constants are chosen
MEMORISED = "curvature/memorised"
BANKS = {  # name -> the piece, and the title of its models
    "cifar10": ("bank/cifar10-small", "CIFAR-10"),
    "cifar100": ("bank/cifar100-small", "CIFAR-100"),
    "resnet9": ("bank/cifar10", "CIFAR-10, ResNet-9"),
    "cifar10_by_heart": ("bayes/table2", "CIFAR-10, by heart"),
    "cifar100_by_heart": (MEMORISED, "CIFAR-100, by heart"),
    "fashion_by_heart": ("bank/fashion-mlp", "Fashion, by heart"),
}
CURVATURES = {  # piece -> that of its curvatures and further queries
    "bank/cifar10-small": "curvature/cifar10-small",
    "bank/cifar100-small": "curvature/cifar100-small",
    MEMORISED: MEMORISED,
}
Scores = dict[int, dict[str, np.ndarray]]


@dataclass(frozen=True)
class Entry:
    """An attack of the comparison, and the signals that it reads.

    Attributes:
        attack: of the registry. queries: number of queries about a record.
        reads: (measured signal, signal of the attack in whose place it stands); None for the usual
            one.
    """

    attack: Attack
    queries: int = 1
    reads: tuple[str, str] | None = None

    @property
    def kind(self) -> str:
        """Kind of references that the attack needs, one of `attacks.REFERENCES`."""
        return self.attack.needs.references


# What the published banks have of every record, without its label.
SIGNALS = {"correctness", "loss", LOG_ODDS, "least_loss", "probabilities", "curvature"}
ATTACKS = {
    name: Entry(attack, 40 if "curvature" in attack.signals else 1)
    for name, attack in registry.ATTACKS.items()
    if attack.comparison and SIGNALS.issuperset(attack.signals)
}
ATTACKS["modified entropy"] = Entry(
    replace(  # which is measured, in the place of the probabilities that it follows from
        registry.ATTACKS["modified entropy"], scorer=lambda view: -view.own("probabilities")
    )
)
MANY_QUERY_ATTACKS = ("LiRA", "RMIA", "BaVarIA")  # attacks that are given more queries
LIRA_BY_VIEW = "LiRA, a Gaussian each"  # joins its queries as its paper does, and not by their mean
MANY_QUERY_ENTRIES = (
    {
        f"{name}, {count} queries": Entry(
            registry.ATTACKS[name], count, (f"{count} queries", LOG_ODDS)
        )
        for name in MANY_QUERY_ATTACKS
        for count in (2, 18, 80)
    }
    | {
        f"{LIRA_BY_VIEW}, {count} queries": Entry(
            replace(registry.ATTACKS["LiRA"], name=LIRA_BY_VIEW),
            count,
            (f"{count} views", LOG_ODDS),
        )
        for count in (2, 18)
    }
    | {
        "Curv, 80 queries": Entry(
            registry.ATTACKS["Curv, log ratio"], 80, ("two curvatures", "curvature")
        )
    }
)
ENTRIES = ATTACKS | MANY_QUERY_ENTRIES
LOSS_ATTACKS = [  # that every bank has the signals of, with every number of references
    name for name, entry in ATTACKS.items() if entry.attack.comparison == "figure"
]


@dataclass(frozen=True, eq=False)
class Case:
    """Models of one regime, and their signals for the records that are judged.

    Attributes:
        name: used in tables.
        game: with signals of all models, costly ones of the first models alone; public records are those that no model was
            trained on, and the judged ones where there are no such.
        trained: how many records each model was trained on.
        accuracy: of each model on its members and on the others, [M, 2].
        share: RMIA's constant a where it cannot be learned, as its authors set it for this data set.
    """

    name: str
    game: Game
    trained: int
    accuracy: np.ndarray
    share: float = registry.OFFLINE_A

    @property
    def fit(self) -> str:
        """`BY_HEART` where models are right on all their members but a few in a thousand, else `GENERALISES`. An attacker who
        trains references sees it on these."""
        return BY_HEART if self.accuracy[:, 0].mean() >= KNOWN else GENERALISES


def of_bank(name: str, records: int | None = None, models: int | None = None) -> Case:
    """The case of a published bank, by its name in `BANKS`, on its first records, or on all that models were trained on.

    With at most `CURVED` records it has the signals that were measured of so many alone, too: curvature, all outputs, and the
    answers to further queries.
    """
    piece, title = BANKS[name]
    bank, curved = load(piece, models), CURVATURES.get(piece)
    seen, tested = bank.trained, bank.untrained
    if piece == MEMORISED:
        right, odds = (bank.true == bank.top)[..., 0], bank.true[..., 0]
    else:
        right, odds = bank.correct, bank.margin
    rows = seen[:records]
    others = tested if len(tested) else seen
    accuracy = [
        (row[members].mean(), row[others][~members[others]].mean())
        for row, members in zip(right, bank.members, strict=True)
    ]
    values = _one_query(odds[:, rows])
    if records is not None and records <= CURVED:
        values["correctness"] = right[:, rows]
        if curved:
            values |= _curved(load(curved, models and min(models, 32)), records)
    public = signals.loss_of(odds[:, tested[:POPULATION]]) if len(tested) else values["loss"]
    members, trained = bank.members[:, rows], int(bank.members[0].sum())
    share = registry.AUTHORS_A.get(bank.parameters["dataset"], registry.OFFLINE_A)
    return _case(title, members, values, public, trained, accuracy, share)


def _case(
    name: str,
    members: np.ndarray,
    values: Mapping[str, np.ndarray],
    public_loss: np.ndarray,
    trained: int,
    accuracy: Sequence,
    share: float = registry.OFFLINE_A,
) -> Case:
    fewest = min(map(len, values.values()))
    game = Game(members, values, {"loss": public_loss}, range(0, fewest, 2), len(members) - 2)
    return Case(name, game, trained, np.array(accuracy), share)


def _one_query(odds: np.ndarray) -> dict[str, np.ndarray]:
    return {LOG_ODDS: odds.astype(float), "loss": signals.loss_of(odds)}


def _curved(curved: Bank, records: int) -> dict[str, np.ndarray]:
    bent = np.maximum(np.exp(curved.released[:, :records].astype(float)) - FLOOR, 0)
    values = {
        "curvature": bent[..., 0],
        "least_loss": signals.loss_of(curved.top[:, :records, 0]),
        "probabilities": curved.entropy[:, :records].astype(float),
    }
    if "shifted" in curved.arrays:
        views = curved.shifted[:, :records].astype(float)
        values |= {
            "two curvatures": bent,
            "2 queries": curved.true[:, :records].astype(float).mean(-1),
            "18 queries": views[..., 0],
            "80 queries": views[..., 1],
        }
    return values


def right_not_sure() -> Case:
    """The case of perceptrons that are right on nearly all members, with losses that are not near zero: those of 1,000 images
    in Table 7 of the chapter on the inverse Hessian. No bank of the comparison."""
    bank = load("iha/fashion-bank", records=2000)
    right = bank.margin > 0  # that is, with more than half of the probability
    accuracy = [
        (row[own].mean(), row[~own].mean()) for row, own in zip(right, bank.members, strict=True)
    ]
    values = _one_query(bank.margin)
    return _case("Fashion, perceptrons", bank.members, values, values["loss"], 1000, accuracy)


def member_loss(case: Case) -> float:
    """Mean loss of the models on their own members among the records."""
    loss = case.game.values["loss"]
    return float(loss[case.game.members[: len(loss)]].mean())


RECIPES = {
    ("none", 5): {"augmentation": "none", "epochs": 5},
    ("none", 20): {"augmentation": "none", "epochs": 20},
    ("flips and crops", 20): {"augmentation": "flip_crop:4", "epochs": 20},
}


def of_recipe(augmentation: str, epochs: int) -> Case:
    """The case of networks on 1,000 of 2,000 images of CIFAR-10, trained by one of `RECIPES`, asked
    18 times about half of the images."""
    bank = load("compare/recipes", **RECIPES[augmentation, epochs])
    records = bank.members.shape[1]
    right = [
        (row[:records][own].mean(), row[records:].mean())
        for row, own in zip(bank.correct, bank.members, strict=True)
    ]
    seen = bank.queries.astype(float)
    by_count = {
        f"{count} {what}": value
        for count in (2, 18)
        for what, value in (("views", seen[..., :count]), ("queries", seen[..., :count].mean(-1)))
    }
    return _case(
        f"{augmentation}, {epochs} epochs",
        bank.members,
        {**_one_query(seen[..., 0]), **by_count},
        signals.loss_of(bank.outside),
        bank.parameters["records"] // 2,
        right,
    )


def recipes(draws: int = 100) -> tuple[pd.DataFrame, list[Case]]:
    """Study "recipe": the same small network, trained with and without augmentation, long and not, each model attacked with
    all references that there are; columns `augmentation` and `epochs`."""
    cases = {recipe: of_recipe(*recipe) for recipe in RECIPES}
    many = (
        f"{name}, {count} queries" for name in ("LiRA", LIRA_BY_VIEW, "RMIA") for count in (2, 18)
    )
    names = ("MALT", "LiRA", "RMIA", *many)
    frames = [
        attack_case(case, len(case.game.members) // 2, [case.game.references], names, draws, 1)[
            0
        ].assign(study="recipe", recipe=case.name, augmentation=augmentation, epochs=epochs)
        for (augmentation, epochs), case in cases.items()
    ]
    return pd.concat(frames, ignore_index=True), list(cases.values())


def by_queries(frame: pd.DataFrame) -> pd.DataFrame:
    """Study "queries": attacks that were asked once and 18 times in the place of attacks, from the frame of `recipes`; columns
    `asks`, which attack it is, and `measure`, which metric."""
    names = {1: "one query", 18: "18 queries"}
    rows = frame[frame["queries"].isin(names) & frame["asks"].isin(["LiRA", "RMIA"])]
    return rows.assign(
        study="queries",
        attack=rows["queries"].map(names),
        measure=rows["metric"].replace({"tpr_at_fpr=0.01": "TPR at 1 %", "auc": "AUC"}),
        metric="value",
    ).query("measure in ('AUC', 'TPR at 1 %')")


def pairs_for(entry: Entry, count: int) -> int:
    """Number of pairs of models that give each record `count` references: `count` pairs if only
    models without the record serve, half as many if models with it serve, too."""
    return {"none": 0, "out only": count, "in and out": count // 2}[entry.kind]


def fits(entry: Entry, case: Case, count: int) -> bool:
    """True if a case has the signal and the models for an attack with `count` references (0 for one
    without any), and the attack can take so many."""
    kind, signal = entry.kind, (entry.reads or entry.attack.signals)[0]
    least = entry.attack.least_references or REFERENCES.index(kind)
    known = case.game.values.get(signal)
    return (
        known is not None
        and (kind == "none") == (count == 0)
        and least <= count
        and (kind != "in and out" or count % 2 == 0)
        and 2 * pairs_for(entry, count) <= len(known) - 2
    )


def score(entry: Entry, case: Case, view: View) -> np.ndarray:
    """Scores of an attack on the target of a view, higher for members, [N].

    Its constants are chosen by attacking one of the references, for the TPR at 1 % FPR; with a single reference RMIA's is its
    authors'."""
    if entry.reads:
        measured, signal = entry.reads
        view = replace(view, replaced={signal: measured})
    options = {}
    if entry.attack.constants:
        step = max(1, case.game.members.shape[1] // TRIED)
        options = view.rehearse(
            entry.attack.name, step=step, metric=partial(metrics.tpr_at_fpr, fpr=0.01)
        )
        if not options and entry.attack.name == "RMIA, offline":
            options = {"a": case.share}
    return entry.attack.score(view, **options)


def scores_of(
    case: Case, names: Sequence[str], targets: Sequence[int], count: int
) -> dict[str, np.ndarray]:
    """Scores [T, N] of each attack that `fits`, with `count` references. Attacks with the same references share a view of each
    target, which reads these once."""
    pairs = {name: pairs_for(ENTRIES[name], count) for name in names}
    scores: dict[str, list] = {name: [] for name in names if fits(ENTRIES[name], case, count)}
    for target in targets:
        views = {
            each: case.game.view(target, 2 * each) for each in {pairs[name] for name in scores}
        }
        for name, of_attack in scores.items():
            of_attack.append(score(ENTRIES[name], case, views[pairs[name]]))
    return {name: np.stack(of_attack) for name, of_attack in scores.items()}


def attack_case(
    case: Case,
    targets: int,
    counts: Sequence[int],
    names: Sequence[str] = tuple(LOSS_ATTACKS),
    draws: int = 20,
    step: int = 2,
) -> tuple[pd.DataFrame, Scores]:
    """Attacks on one model of each of the first pairs, or with step 1 on both.

    Args:
        counts: numbers of references; an attack that has none, or a case not so many, is left out. names: of `ENTRIES`.

    Returns:
        columns `data`, `fit`, `references`, 0 of attacks that have none, `queries`, and `asks`, the attack that has so many;
        and scores [T, N] by number of references and name.

    Raises:
        MiaError: more targets than pairs.
    """
    game = replace(case.game, targets=range(0, 2 * targets, step))
    scores = {count: scores_of(case, names, game.targets, count) for count in sorted({0, *counts})}
    where = {"study": "attacks", "data": case.name, "fit": case.fit}
    frame = pd.concat(
        [
            by_target(by_name, game.target_members, METRICS, draws=draws, **where, references=count)
            for count, by_name in scores.items()
            if by_name
        ],
        ignore_index=True,
    )
    played = [ENTRIES[name] for name in frame["attack"]]
    return frame.assign(
        queries=[entry.queries for entry in played], asks=[entry.attack.name for entry in played]
    ), scores


ONE_SPREAD = "LiRA, one spread for members and others"


def one_spread(view: View) -> np.ndarray:
    """LiRA's score, up to a factor, with one spread for members and others, [N]: it cannot see
    that the answers of members vary less."""
    odds, (of_references, knows) = view.own(LOG_ODDS), view.references(LOG_ODDS)
    with_it, without_it = (of_references.mean(0, where=kind) for kind in (knows, ~knows))
    return (with_it - without_it) * (odds - (with_it + without_it) / 2)


def with_one_spread(
    cases: Sequence[Case], targets: int, count: int, draws: int = 20
) -> pd.DataFrame:
    """Study "one spread": TPR at 1 % FPR of `ONE_SPREAD` on each case, with `count` references,
    half of them with the record."""
    games = {
        case.name: replace(case.game, targets=range(0, 2 * targets, 2), references=count)
        for case in cases
    }
    frames = [
        game.frame({ONE_SPREAD: one_spread}, [METRICS[1]], draws, study="one spread", data=name)
        for name, game in games.items()
    ]
    return pd.concat(frames, ignore_index=True)


def lead(frame: pd.DataFrame, attack: str, other: str, data: str, count: int) -> metrics.Interval:
    """By how much an attack's TPR at 1 % FPR is above another's, with `count` references, from the
    frame of `attack_case`."""
    ahead, behind = (
        metrics.estimate(frame, name, METRICS[1], data=data, references=count)
        for name in (attack, other)
    )
    return (ahead - behind).interval()


def at_rates(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows about the TPR, with the FPR in a column `rate`, so that a claim can be asked at each."""
    rows = frame[frame["metric"].isin(RATES)]
    return rows.assign(rate=rows["metric"].map(RATES), metric="tpr")


def with_most(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with the most references of both kinds that a case has, as study "most"."""
    rows = frame[frame["attack"] == "LiRA"]
    most = rows.groupby("data")["references"].max()
    return frame[frame["references"] == frame["data"].map(most)].assign(study="most")


def ranks_as_rmia(case: Case, count: int = 8) -> pd.DataFrame:
    """Study "identity": by how much RMIA's score falls at most where that of the soft minimum (RMIA
    offline with the constant one) or of BASE (RMIA online) rises, on the first target."""
    falls = {}
    for name, a in (("MAST (softmin)", 1.0), ("BASE", None)):
        view = case.game.view(0, 2 * pairs_for(ATTACKS[name], count))
        rmia = registry.score("RMIA", view, a=a)[
            np.argsort(registry.score(name, view), kind="stable")
        ]
        falls[name] = {"falls": float(np.maximum(rmia[:-1] - rmia[1:], 0).max())}
    return by_repetition(falls, study="identity", data=case.name)


# ------------------------------------------------------------------------------------ references that know no judged record

WITHOUT = ("calibrated loss", "LiRA, offline", "RMIA, offline")


def sharing(names: Sequence[str], targets: int, draws: int = 20) -> pd.DataFrame:
    """Study "sharing": one reference that was trained on half of the target's members, and one that
    was trained on none of them, by the column `overlap`. Judged are the members that neither was
    trained on, and all records that no model was; RMIA has its authors' constant.

    Args:
        names: of `BANKS`; of those with no record that no model was trained on there are no rows. targets: of each, as far as
            pairs follow them.
    """
    banks = {BANKS[name][1]: load(BANKS[name][0]) for name in names}
    frames = [_sharing(*one, targets, draws) for one in banks.items() if len(one[1].untrained)]
    return pd.concat(frames, ignore_index=True)


def _sharing(title: str, bank: Bank, targets: int, draws: int) -> pd.DataFrame:
    targets = min(targets, len(bank) // 2 - 1)
    tested, rows, scores = bank.untrained, [], {"half": [], "nothing": []}
    size = min((bank.members[t] & ~bank.members[t + 2]).sum() for t in range(0, 2 * targets, 2))
    share = registry.AUTHORS_A.get(bank.parameters["dataset"], registry.OFFLINE_A)
    for target in range(0, 2 * targets, 2):
        kept = np.flatnonzero(bank.members[target] & ~bank.members[target + 2])[:size]
        rows.append(np.r_[kept, tested])
        for overlap, reference in (("half", target + 2), ("nothing", target + 1)):
            odds = bank.margin[[target, reference]][:, rows[-1]].astype(float)
            # RMIA compares with the judged records: which these are changes no rank
            view = registry.ArraySignals(
                {LOG_ODDS: odds}, np.zeros((1, odds.shape[1]), bool), {LOG_ODDS: odds}
            )
            options = {"RMIA, offline": {"a": share}}
            scores[overlap].append(
                {one: registry.score(one, view, **options.get(one, {})) for one in WITHOUT}
            )
    members = np.tile(np.arange(len(rows[0])) < size, (targets, 1))
    return pd.concat(
        [
            by_target(
                {one: np.stack([scored[one] for scored in each]) for one in WITHOUT},
                members,
                METRICS,
                draws=draws,
                records=np.stack(rows),
                study="sharing",
                data=title,
                references=1,
                overlap=overlap,
            )
            for overlap, each in scores.items()
        ],
        ignore_index=True,
    )


# ------------------------------------------------------------------------------------------------------------------ the guide

MOST, FEW = "as many as each bank has", "a few"
MEANS = {  # what an attacker has -> kind of references, and how many of a record
    "alone": ("none", 0),
    "one": ("out only", 1),
    "two": ("in and out", 2),
    "apart": ("out only", FEW),
    "few": ("in and out", FEW),
    "many": ("in and out", MOST),
}


def guide(frame: pd.DataFrame, few: int) -> pd.DataFrame:
    """For each of the `MEANS` and each fit of the target, the attack that is best in most settings.

    A setting is a bank and a false positive rate. An attack is as good as the best of its setting where the paired interval of
    their difference at 95 % has zero in it. It is chosen on every second target; where it is as good is counted on the others.

    Args:
        frame: of `attack_case`, of all cases. few: how many references a few are.

    Returns:
        of what was run, columns means, fit (or "either"), attack, good, settings; and rates: data -> its TPR at 1 % FPR on the
        other targets.
    """
    rows, choices = at_rates(frame), []
    most = rows[rows["attack"] == "LiRA"].groupby("data")["references"].max()
    kinds = rows["attack"].map({name: entry.kind for name, entry in ATTACKS.items()})
    for means, (kind, count) in MEANS.items():
        count = {MOST: rows["data"].map(most), FEW: few}.get(count, count)
        able = rows[(kinds == kind) & (rows["references"] == count) & rows["value"].notna()]
        for fit, of_fit in [*able.groupby("fit", sort=False), ("either", able)]:
            if of_fit.empty:
                continue
            settings = [
                dict(zip(each["attack"], each["estimate"], strict=True))
                for _, each in of_fit.groupby(["data", "rate"], sort=False)
            ]
            everywhere = [name for name in settings[0] if all(name in one for one in settings)]
            chosen = max(everywhere, key=lambda name: _good(settings, name, slice(0, None, 2)))
            good, _ = _good(settings, chosen, OTHERS)
            rates = of_fit[(of_fit["attack"] == chosen) & (of_fit["rate"] == "1 %")]
            choices.append(
                {
                    "means": means,
                    "fit": fit,
                    "attack": chosen,
                    "good": good,
                    "settings": len(settings),
                    "rates": {
                        data: number.of(OTHERS).interval((0.0, 1.0))
                        for data, number in zip(rates["data"], rates["estimate"], strict=True)
                    },
                }
            )
    return pd.DataFrame(choices)


OTHERS = slice(1, None, 2)  # targets that do not choose an attack


def _good(
    settings: Sequence[Mapping[str, metrics.Estimate]], name: str, targets: slice
) -> tuple[int, float]:
    """In how many settings an attack is as good as the best, on these targets, and its mean share of the best rate."""
    good, share = 0, []
    for of_setting in settings:
        numbers = {attack: number.of(targets) for attack, number in of_setting.items()}
        best = max(numbers, key=lambda attack: numbers[attack].value)
        behind = (numbers[best] - numbers[name]).interval()
        good += best == name or behind.low <= 0
        share.append(numbers[name].value / max(numbers[best].value, 1e-9))
    return good, float(np.mean(share))
