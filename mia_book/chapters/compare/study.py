"""Results of the chapter that compares attacks: tidy frames, from published arrays alone.

A row is an attack, a metric and a target. Column `references` counts the models that a score compares a record with: of an
attack without models that were trained on the record all of them left it out, of one with such models half of them did.
Column `queries` counts what a score asks the target about one record. The target's partner, which was trained on the other
half of the records, is never among the references of a bank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mia_book.publishing.banks import BANKS
from mia_lib import metrics, signals
from mia_lib.attacks import ACCESS, REFERENCES, bayes, registry
from mia_lib.attacks.registry import LOG_ODDS, Attack
from mia_lib.data import sets
from mia_lib.errors import MiaError
from mia_lib.game import Game
from mia_lib.metrics import by_repetition, by_target
from mia_lib.published import Bank, load

METRICS = ("auc", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001")
POPULATION = 2000  # records that no model was trained on, with which RMIA compares
FLOOR = 1e-22  # that is added to a curvature before its logarithm is kept
BY_HEART = "by heart"  # networks that know 2,000 images of CIFAR-100 by heart
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
CURVES = {  # known with every number of references
    name for name, entry in ATTACKS.items() if entry.attack.comparison in ("counts", "figure")
}


@dataclass(frozen=True, eq=False)
class Case:
    """Models of one regime, and their signals for the records that are judged.

    Attributes:
        name: used in tables. study: "bank", or "by heart".
        game: with signals of all models, costly ones of the first models alone; public records are those that no model was
            trained on, and the judged ones where there are no such.
        trained: how many records each model was trained on.
        accuracy: of each model on its members and on the others, [M, 2].
    """

    name: str
    study: str
    game: Game
    trained: int
    accuracy: np.ndarray


def _case(
    name: str,
    study: str,
    members: np.ndarray,
    values: Mapping[str, np.ndarray],
    public_loss: np.ndarray,
    trained: int,
    accuracy: Sequence,
) -> Case:
    fewest = min(map(len, values.values()))
    game = Game(members, values, {"loss": public_loss}, range(0, fewest, 2), len(members) - 2)
    return Case(name, study, game, trained, np.array(accuracy))


def of_bank(name: str, records: int, models: int | None = None) -> Case:
    """The case of a published bank, by its name in `banks.BANKS`, on its first records."""
    piece, dataset, network = BANKS[name]
    bank, values = load(f"bank/{piece}", models), {}
    if not network:  # curvatures were measured of small networks alone
        values = _curved(load(f"curvature/{piece}", models and min(models, 32)), records)
    rows, tested = np.arange(records), bank.untrained
    right = [
        (row[inside].mean(), row[tested].mean())
        for row, inside in zip(bank.correct, bank.members, strict=True)
    ]
    values |= {**_one_query(bank.margin[:, rows]), "correctness": bank.correct[:, rows]}
    return _case(
        ", ".join(filter(None, (sets.title(dataset), network))),
        "bank",
        bank.members[:, rows],
        values,
        signals.loss_of(bank.margin[:, tested[:POPULATION]]),
        int(bank.members[0].sum()),
        right,
    )


def by_heart(records: int, models: int | None = None) -> Case:
    """The case of networks that know their 2,000 members by heart. No record is left over, so RMIA
    compares with the judged ones."""
    curved = load("curvature/memorised", models)
    once, right = (
        _one_query(curved.true[:, :records, 0]),
        (curved.true == curved.top)[:, :records, 0],
    )
    members = curved.members[:, :records]
    fit = [
        (row[inside].mean(), row[~inside].mean())
        for row, inside in zip(right, members, strict=True)
    ]
    values = {**once, "correctness": right, **_curved(curved, records)}
    trained = int(curved.members[0].sum())
    return _case(BY_HEART, "by heart", members, values, once["loss"], trained, fit)


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
        "recipe",
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
        attack_case(
            case, len(case.game.members) // 2, [case.game.references], draws, names, step=1
        )[0].assign(augmentation=augmentation, epochs=epochs)
        for (augmentation, epochs), case in cases.items()
    ]
    return pd.concat(frames, ignore_index=True), list(cases.values())


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


def score(entry: Entry, case: Case, target: int, count: int) -> np.ndarray:
    """Scores of an attack on one target with `count` references, higher for members, [N]."""
    view = case.game.view(target, 2 * pairs_for(entry, count))
    if entry.reads:
        measured, signal = entry.reads
        view = replace(view, replaced={signal: measured})
    return entry.attack.score(
        view, **(view.rehearse(entry.attack.name) if entry.attack.constants else {})
    )


def attack_case(
    case: Case,
    targets: int,
    counts: Sequence[int],
    draws: int = 100,
    names: Sequence[str] | None = None,
    whole: Sequence[int] | None = None,
    step: int = 2,
) -> tuple[pd.DataFrame, Scores]:
    """Attacks on one model of each of the first pairs, or with step 1 on both.

    Args:
        names: of `ENTRIES`; all of them when None.
        whole: numbers of references, `counts` or further ones, with which they are all run, the first that
            `MANY_QUERY_ENTRIES` are; with other numbers only the `CURVES`. All numbers when None.

    Returns:
        columns `references`, 0 of attacks that have none, `queries`, and `asks`, the attack that has so many; and scores
        [T, N] by number of references and name.

    Raises:
        MiaError: more targets than pairs.
    """
    game = replace(case.game, targets=range(0, 2 * targets, step))
    scores = {}
    for count in (0, *sorted({*counts, *(whole or ())})):
        run = names or [
            name
            for name in ENTRIES
            if whole is None
            or (name in CURVES or count in (0, *whole) and (name in ATTACKS or count == whole[0]))
        ]
        scores[count] = {
            name: np.stack([score(ENTRIES[name], case, target, count) for target in game.targets])
            for name in run
            if fits(ENTRIES[name], case, count)
        }
    where = {"study": case.study, "data": case.name}
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


def all_with(cases: Sequence[Case], counts: Sequence[int], compared: int) -> list[int]:
    """Numbers of references with which all attacks run: `compared`, one, and the most that every case has."""
    fewest = min(case.game.references for case in cases)
    return [compared, 1, max((count for count in counts if count <= fewest), default=1)]


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


def tail(case: Case, targets: int, draws: int = 100) -> pd.DataFrame:
    """Rates of the attack "loss tail" (Dodd et al. 2025), which tell what a strong attack would
    find without running one: the share of the non-members whose loss is above that of all but one
    in a hundred, or a thousand, of the members. One threshold on the loss tells *non-members* at
    this rate, at so few mistakes about members."""
    game = replace(case.game, targets=range(0, 2 * targets, 2))
    return by_target(
        {"loss tail": -game.scores(["MALT"])["MALT"]},
        ~game.target_members,
        METRICS[1:],
        draws=draws,
        study=case.study,
        data=case.name,
        references=0,
    )


# ------------------------------------------------------------------------------------ references that know no judged record

WITHOUT = ("calibrated loss", "MAST (softmin)", "LiRA, offline", "RMIA, offline")


def out_only(odds: np.ndarray, names: Sequence[str] = WITHOUT) -> dict[str, np.ndarray]:
    """Scores [N] by attack from log odds [1 + R, N] of a target and of references that were trained
    on no judged record. RMIA has its authors' constant and compares with the judged records: which
    these are changes no rank."""
    view = registry.ArraySignals(
        {LOG_ODDS: odds}, np.zeros((len(odds) - 1, odds.shape[1]), bool), {LOG_ODDS: odds}
    )
    return {name: registry.score(name, view) for name in names}


def sharing(dataset: str, targets: int, draws: int = 100) -> pd.DataFrame:
    """Study "sharing": one reference that was trained on half of the target's members, and one that
    was trained on none of them, by the column `overlap`. Judged are the members that neither was
    trained on, and all records that no model was."""
    bank = load(f"bank/{dataset}-small", 2 * targets + 2)
    tested, rows, scores = bank.untrained, [], {"half": [], "nothing": []}
    size = min((bank.members[t] & ~bank.members[t + 2]).sum() for t in range(0, 2 * targets, 2))
    for target in range(0, 2 * targets, 2):
        kept = np.flatnonzero(bank.members[target] & ~bank.members[target + 2])[:size]
        rows.append(np.r_[kept, tested])
        for overlap, reference in (("half", target + 2), ("nothing", target + 1)):
            scores[overlap].append(
                out_only(bank.margin[[target, reference]][:, rows[-1]].astype(float))
            )
    members = np.tile(np.arange(len(rows[0])) < size, (targets, 1))
    return pd.concat(
        [
            by_target(
                {name: np.stack([one[name] for one in each]) for name in WITHOUT},
                members,
                METRICS,
                draws=draws,
                records=np.stack(rows),
                study="sharing",
                data=sets.title(dataset),
                references=1,
                overlap=overlap,
            )
            for overlap, each in scores.items()
        ],
        ignore_index=True,
    )


def find(name: str, **parameters) -> Bank | None:
    """The published arrays of a measurement, or None if there are none."""
    try:
        return load(name, **parameters)
    except MiaError:
        return None


def public_records(
    dataset: str,
    targets: int,
    regression: Bank | None,
    further: Bank | None,
    judged: int = 10_000,
    draws: int = 100,
) -> pd.DataFrame:
    """Study "public": attackers who own records like the target's members, and no record that is judged. They train one model
    on them, several models, or a regression of the target's log odds.

    These records are the other half of the bank's, so the target's partner is the one model. Judged are the first members, and
    the records that no model was trained on.

    Args:
        regression: quantile/DATASET-small, of targets 0, 2, 4, ... of the bank. further: quantile/public-references, more
            models against each target. Both are None if not there.
    """
    targets = min([targets, *(len(one) for one in (regression, further) if one is not None)])
    bank = load(f"bank/{dataset}-small", 2 * targets)
    tested, rows, scores = bank.untrained, [], {0: [], 1: []}
    for k, target in enumerate(range(0, 2 * targets, 2)):
        rows.append(np.r_[np.flatnonzero(bank.members[target])[:judged], tested])
        odds = bank.margin[[target, target + 1]][:, rows[-1]].astype(float)
        scores[1].append(out_only(odds))
        alone = {"MALT": bayes.malt(signals.loss_of(odds[0]))}
        if regression is not None:
            spread = np.exp(regression.log_spread[k, : odds.shape[1]].astype(float))
            alone["quantile regression"] = (odds[0] - regression.mean[k, : odds.shape[1]]) / spread
        scores[0].append(alone)
        if further is not None:
            scores.setdefault(1 + further.margin.shape[1], []).append(
                out_only(np.r_[odds, further.margin[k].astype(float)])
            )
    members = np.tile(np.arange(len(rows[0])) < judged, (targets, 1))
    return pd.concat(
        [
            by_target(
                {name: np.stack([one[name] for one in each]) for name in each[0]},
                members,
                METRICS,
                draws=draws,
                records=np.stack(rows),
                study="public",
                data=sets.title(dataset),
                references=count,
            )
            for count, each in scores.items()
            if each
        ],
        ignore_index=True,
    )


# ------------------------------------------------------------------------------------------------------------------ the guide


def guide(frame: pd.DataFrame, count: int) -> dict[str, str]:
    """Name of the attack that finds most members at 1 % FPR with given means, by these, on average
    over the banks and every second target. The other targets are for reporting its rate, see
    `reported`.

    Args:
        frame: of `attack_case`, of all cases. count: of a few references.
    """
    rows = frame[(frame["study"] == "bank") & (frame["metric"] == METRICS[1])]
    rows = rows.assign(
        value=rows["estimate"].map(lambda number: number.of(slice(0, None, 2)).value)
    )
    groups, best = rows.groupby(["references", "attack"]), {}
    mean = groups["value"].mean()[
        groups["data"].nunique() == rows["data"].nunique()
    ]  # of what can be run on all banks
    for means, (access, kinds, references) in means_of(frame, count).items():
        able = [
            name
            for name, one in ATTACKS.items()
            if one.kind in kinds
            and (references, name) in mean.index
            and ACCESS.index(one.attack.needs.access) <= ACCESS.index(access)
        ]
        best[means] = max(able, key=lambda name: mean[references, name])
    return best


def means_of(frame: pd.DataFrame, count: int) -> dict[str, tuple[str, tuple[str, ...], int]]:
    """Means that an attacker may have, by their names: access to the target, kinds of references,
    and their number; the most may be `count`."""
    most = int(frame.groupby("data", sort=False)["references"].max().min())
    return {
        "labels": ("label", ("none",), 0),
        "losses": ("loss", ("none",), 0),
        "outputs": ("output vector", ("none",), 0),
        "one": ("output vector", ("out only",), 1),
        "apart": ("output vector", ("out only",), count),
        "few": ("output vector", ("in and out",), count),
        "many": ("output vector", ("in and out",), most),
    }


def reported(
    frame: pd.DataFrame, attack: str, references: int, data: str, metric: str = METRICS[1]
) -> metrics.Interval:
    """A metric of an attack with its interval, on the targets that did not choose the attack."""
    rows = frame[frame["study"].isin(("bank", "by heart"))]
    number = metrics.estimate(rows, attack, metric, references=references, data=data)
    return number.of(slice(1, None, 2)).interval((0.0, 1.0))
