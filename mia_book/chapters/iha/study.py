"""Results of the chapter on the inverse Hessian attack (Suri, Zhang and Evans 2024, section 4): tidy frames of what was
measured.

A row is an attack, a metric and a target. Target t is model 2t of its bank; neither it nor its partner, which was trained on
the other half of the records, is among its references. The audit is told for each record whether its own gradient is in that
of the training set, by flags [J]: membership in the paper's game.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

from mia_book.chapters.iha import theory
from mia_book.chapters.iha.measure import ODD, rates_of, square
from mia_book.publishing.banks import config_of, where_measured
from mia_lib import signals
from mia_lib.attacks import baselines, calibration, iha, registry
from mia_lib.data import sets
from mia_lib.errors import MiaError
from mia_lib.game import Game, View, best_trial
from mia_lib.metrics import auc, by_repetition, by_target, tpr_at_fpr
from mia_lib.published import Bank

LOSS, SIF, LIRA, IHA = PAPER = "LOSS", "SIF", "LiRA", "IHA"
SELF = "LiRA, the target among its references"
RMIA = "RMIA"
ALONE = "gradient alone"
FLAGS = "IHA, random flags"
NOTHING = "IHA, told nothing"
CG = "IHA (CG)"
PAIR = "I1, I2"
DECAY = "IHA with weight decay in I2"
BARE = f"{DECAY}, loss left out"
LEARNED = "IHA, learned"
BOTH = "IHA and LiRA"
# with references that know all other records
L_ATTACK, LIRA_L = "L-attack", "LiRA-L"
CALIBRATED_L, BOTH_SIDES = "L-attack, calibrated", "LiRA-L, both sides"
HALF, QUARTER = (f"{BOTH_SIDES}, {part} of references" for part in ("half", "a quarter"))
# rows of Table 4
TERMS = {
    "I1": ("I1",),
    "I2": ("I2",),
    PAIR: ("I1", "I2"),
    "I1, I2, I3, I4": ("I1", "I2", "I3", "I4"),
    "loss, I1": ("loss", "I1"),
    "loss, I2": ("loss", "I2"),
    "loss, I1, I2": ("loss", "I1", "I2"),
    "all": ("loss", "I1", "I2", "I3", "I4"),
}
METRICS = ("auc", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001")
TITLE_OF = dict(zip(METRICS, ("AUC", "TPR at 1 %", "TPR at 0.1 %"), strict=True))
RATES = (0.05, 0.3)  # false positive rates of Table 5
# arrays with a column a record
RECORDS = (
    "loss",
    "newton",
    "newton_mean",
    "influence",
    "newton_theta",
    "inverse",
    "inverse_mean",
    "squares",
    "along",
    "members",
    "correct",
)
POPULATION = 1000  # records with which RMIA compares


@dataclass(frozen=True, eq=False)
class Case:
    """Measurements on one data set.

    Attributes:
        name: used in tables. audit: of `measure.audits`, T targets.
        bank: of `measure.answers`, M models; None if nothing is compared with LiRA.
    """

    name: str
    audit: Bank
    bank: Bank | None = None

    @property
    def n(self) -> int:
        """Number of records in the training set."""
        return self.audit.parameters["records"] // 2

    @property
    def regime(self) -> dict[str, str | int]:
        """Members, data set, architecture and epochs, from which a claim's regime is judged."""
        known = self.audit.parameters
        return {
            "members": self.n,
            **{name: known[name] for name in ("dataset", "architecture", "epochs")},
        }

    @property
    def rates(self) -> dict[str, float]:
        """Learning rate, momentum and weight decay of the recipe, which Eq. 8 needs."""
        return rates_of(self.audit.parameters)


def kind_of(dataset: str, architecture: str) -> str:
    """Kind of a measurement, by which it is named: "odd", "fashion" or "location"."""
    if architecture == "sigmoid_regression":
        return "odd"
    if dataset == "location30":
        return "location"
    return "fashion"


def name_of(dataset: str, architecture: str) -> str:
    """Name of a data set as it is written in tables, which is the paper's."""
    return sets.title(dataset) + "-Odd" * (kind_of(dataset, architecture) == "odd")


def with_own_names(cases: Sequence[Case]) -> list[Case]:
    """The cases, those of one name with the parameters in which they differ.

    Raises:
        MiaError: two cases that differ in nothing.
    """
    named = []
    for case in cases:
        others = [one for one in cases if one.name == case.name and one is not case]
        differ = [
            f"{name} {value:,}" if isinstance(value, int) else str(value)
            for name in ("architecture", "records", "epochs", "batch_size")
            for value in [case.audit.parameters[name]]
            if any(one.audit.parameters[name] != value for one in others)
        ]
        named.append(replace(case, name=", ".join([case.name, *differ])))
        if named[-1].name in {one.name for one in named[:-1]}:
            raise MiaError(f"datasets: {named[-1].name} stands twice. Give each once.")
    return named


def measured(
    targets: int, models: int = 0, few: bool = False, make: bool = True, **recipe
) -> Case | None:
    """The audits of a data set and, with `models`, its bank; published, cached or measured now.

    Args:
        targets: T. models: M.
        few: whether to take the audits of fewer records, on which other epochs and sizes are
            judged.
        make: whether to measure what is not there; None is returned otherwise.
        recipe: as for `measure.game`, and damping.
    """
    kind = kind_of(recipe["dataset"], recipe["architecture"])
    of_bank = {name: value for name, value in recipe.items() if name != "damping"}
    bank = where_measured(f"iha/{kind}-bank", models, make, **of_bank) if models else None
    audit = where_measured(f"iha/{kind}-epochs" if few else f"iha/{kind}", targets, make, **recipe)
    lacks = audit is None or (models and bank is None)
    return None if lacks else Case(name_of(recipe["dataset"], recipe["architecture"]), audit, bank)


# ------------------------------------------------------------------------------------------------------------- scores


def forms(audit: Bank, t: int, few: bool = False) -> iha.Forms:
    """Forms that the scores of target t need: for all J records, with zeros for those that only the
    first records have; or if `few`, for the first records."""
    names = ("newton", "newton_mean", "inverse", "inverse_mean", "influence", "newton_theta")
    count = audit.inverse.shape[1] if few else audit.newton.shape[1]
    arrays = [square(getattr(audit, name)[t][:count]) for name in names]
    # of what is of second order in the weight decay, and of what only the first records have
    zero = np.zeros(count)
    return iha.Forms(*(array if few or len(array) == count else zero for array in arrays), zero)


def scores(
    case: Case,
    told: np.ndarray | float,
    terms: str | Sequence[str] = "all",
    few: bool = False,
    stationary: bool = False,
) -> np.ndarray:
    """Scores of Eq. 8 for all targets, [T, J]. `told` is the membership that the audit is told, [T,
    J], or 0 for none; `stationary` as for `attacks.iha.split`. Without `few` the terms I3 and I4
    are left out."""
    of_targets, sgd = [], iha.Sgd(**case.rates)
    for t, loss in enumerate(square(case.audit.loss)):
        of_target = forms(case.audit, t, few)
        count = len(of_target.newton)
        flags = told[t][:count] if isinstance(told, np.ndarray) else told
        parts = iha.split(of_target, flags / case.n, case.n, sgd, stationary=stationary)
        of_targets.append(iha.combine(loss[:count], parts, sgd, terms))
    return np.stack(of_targets)


def gradient_alone(case: Case) -> np.ndarray:
    """Scores by the gradient alone, without a Hessian, [T, few]: with which training set is the
    gradient, with that of the weight decay, smaller? See `attacks.iha.stationarity`."""
    squares = square(case.audit.squares)
    return iha.stationarity(
        square(case.audit.along),
        squares,
        case.audit.members[:, : squares.shape[1]] / case.n,
        case.n,
    )


def random_flags(members: np.ndarray) -> np.ndarray:
    """Membership shuffled over the records of each target, bool [T, J]: flags that do not tell who
    was trained on."""
    return np.stack(
        [np.random.default_rng([45, t]).permutation(row) for t, row in enumerate(members)]
    )


def lira_scores(case: Case) -> dict[str, np.ndarray]:
    """Scores [T, J] of attacks that compare the target with other models of the bank."""
    return game_of(case).scores(
        {
            LIRA: "LiRA, own spreads",
            SELF: with_target_among_references,
            RMIA: lambda view: registry.score("RMIA", view, gamma=1.0, population=POPULATION),
        }
    )


def game_of(case: Case) -> Game:
    """The game whose targets are the first models of the bank's pairs, each against all models of
    other pairs; RMIA compares with the judged records."""
    rows = np.arange(case.bank.members.shape[1])
    return Game.on(case.bank, rows, rows, range(0, 2 * len(case.audit.loss), 2), len(case.bank) - 2)


def with_target_among_references(view: View) -> np.ndarray:
    """LiRA's score with the target among its own references, which tells the membership."""
    log_odds, members = (
        array[[view.target, *view.models]]
        for array in (view.game.values[registry.LOG_ODDS], view.game.members)
    )
    return baselines.lira_online(log_odds[0], log_odds, members, own="keep")


def self_references(case: Case, draws: int = 60) -> pd.DataFrame:
    """Study "self": AUC of LiRA without the target among its references and with it, by the number
    of other `references`: of all pairs of the bank, of half of them, a quarter and an eighth."""
    game = game_of(case)
    counts = [
        count
        for count in ((len(case.bank) >> halvings) - 2 for halvings in (3, 2, 1, 0))
        if count >= 4
    ]
    attacks = {LIRA: "LiRA, own spreads", SELF: with_target_among_references}
    return concat_rows(
        replace(game, references=count).frame(
            attacks, METRICS[:1], draws, study="self", data=case.name, references=count
        )
        for count in counts
    )


# ------------------------------------------------------------------------------------------------------------- studies


def concat_rows(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The frames that have rows, one under another; else an empty frame with the columns."""
    kept = [frame for frame in frames if len(frame)]
    return pd.concat(
        kept or [pd.DataFrame(columns=["study", "data", "attack", "metric", "value"])],
        ignore_index=True,
    )


def by_metric(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its metric as one more column, `by`, so that it can be a setting of a claim."""
    return frame.assign(by=frame["metric"].map(TITLE_OF), metric="value").dropna(subset="by")


def table_2(case: Case, draws: int = 60) -> tuple[pd.DataFrame, dict[str, np.ndarray], np.ndarray]:
    """Study "attacks": Table 2, on all J records; study "against LiRA": IHA and LiRA, by the metric and by whether the target
    is among LiRA's references, `lira`; study "alike": rank correlation of SIF and LOSS in each target; study "agreement", see
    `agreement`. With the scores and the members."""
    members = case.audit.members
    kind = "table" if case.audit.parameters["dataset"] == "location30" else "images"
    attacks = {
        LOSS: -square(case.audit.loss),
        SIF: -square(case.audit.influence),
        **lira_scores(case),
        IHA: scores(case, members),
    }
    attacks[BOTH] = joined_scores(attacks, members)
    alike = np.array(
        [stats.spearmanr(*pair).statistic for pair in zip(attacks[SIF], attacks[LOSS], strict=True)]
    )
    where = {"data": case.name, "kind": kind}
    frame = by_target(attacks, members, METRICS, draws=draws, study="attacks", **where)
    rows, against = by_metric(frame), []
    for words, name in (("by the text", LIRA), ("as released", SELF)):
        both = rows[rows["attack"].isin([IHA, name])].replace({"attack": {name: LIRA}})
        against.append(both.assign(study="against LiRA", lira=words))
    correlation = by_repetition({SIF: {"rank correlation": alike}}, study="alike", data=case.name)
    agreed = agreement(attacks, members, LIRA, (RMIA, LOSS), data=case.name)
    return concat_rows([frame, *against, correlation, agreed]), attacks, members


def joined_scores(attacks: Mapping[str, np.ndarray], members: np.ndarray) -> np.ndarray:
    """Scores [T, J] of IHA and LiRA together, each by its normal quantile within a target, with the weights of a logistic
    regression on all other targets: the auditor's own models."""
    from sklearn.linear_model import LogisticRegression

    ranks = [stats.rankdata(attacks[name], axis=1) - 0.5 for name in (IHA, LIRA)]
    both = stats.norm.ppf(np.stack(ranks, -1) / members.shape[1])  # [T, J, 2]
    scores = []
    for t in range(len(members)):
        others = np.delete(np.arange(len(members)), t)
        fit = LogisticRegression().fit(both[others].reshape(-1, 2), members[others].ravel())
        scores.append(fit.decision_function(both[t]))
    return np.stack(scores)


def agreement(
    attacks: Mapping[str, np.ndarray],
    members: np.ndarray,
    lira: str,
    others: Sequence[str],
    rates: Sequence[float] = RATES,
    **where,
) -> pd.DataFrame:
    """Study "agreement", by `rate`: on which share of the members, beyond that of calls that are independent, two attacks make
    the same call with so many false alarms (Table 5).

    Study "kappa", the same as a share of what it can be at most, by `beside`, one of the `others`: of `lira` and this one, and
    the mean of those of IHA with both.
    """
    frames = []
    for rate in rates:
        called = {
            name: np.stack(
                [
                    row > np.sort(row[~is_member])[::-1][int(rate * (~is_member).sum() + 1e-9)]
                    for row, is_member in zip(attacks[name], members, strict=True)
                ]
            )
            for name in (lira, *others, IHA)
        }
        tpr = {name: np.average(calls, 1, members) for name, calls in called.items()}
        pairs = {}
        for pair in [(lira, name) for name in others] + [(IHA, name) for name in (lira, *others)]:
            one, other = (tpr[name] for name in pair)
            same = np.average(called[pair[0]] == called[pair[1]], 1, members)
            chance = one * other + (1 - one) * (1 - other)
            kappa = (same - chance) / np.where(chance < 1, 1 - chance, np.nan)
            pairs[pair] = {"beyond chance": same - chance, "kappa": kappa}
        named = {f"{one} and {other}": found for (one, other), found in pairs.items()}
        frames.append(by_repetition(named, study="agreement", rate=rate, **where))
        for name in others:
            kappas = {
                "losses": {"kappa": pairs[lira, name]["kappa"]},
                "IHA and losses": {
                    "kappa": (pairs[IHA, lira]["kappa"] + pairs[IHA, name]["kappa"]) / 2
                },
                IHA: {"excess": tpr[IHA] - rate},
            }
            frames.append(by_repetition(kappas, study="kappa", rate=rate, beside=name, **where))
    return concat_rows(frames)


def control(case: Case, draws: int = 60) -> pd.DataFrame:
    """Study "told": AUC, `judged` by membership, of the audit that is told membership, random
    flags, or nothing; and of the audit that is told random flags, judged by these."""
    members = case.audit.members
    flags, frames = random_flags(members), []
    where = {"draws": draws, "study": "told", "data": case.name}
    for told, given, judged in (
        ("membership", members, "membership"),
        ("random flags", flags, "flags"),
        ("nothing", 0, "membership"),
    ):
        both = {IHA: scores(case, given), PAIR: scores(case, given, TERMS[PAIR])}
        truth = flags if judged == "flags" else members
        frames.append(by_target(both, truth, METRICS[:1], **where, told=told, judged=judged))
    return concat_rows(frames)


def table_4(case: Case, draws: int = 60) -> pd.DataFrame:
    """Study "terms": parts of the score, Table 4, and beside them the audit with the weight decay where it belongs, with
    nothing taken out, and without a Hessian, on the first records. Study "parts": those without I3 and I4 on all records, by
    the metric, `strict` where that is a rate at few false alarms."""
    members = case.audit.members[:, : case.audit.inverse.shape[1]]
    parts = {name: scores(case, members, terms, few=True) for name, terms in TERMS.items()}
    parts |= {
        DECAY: scores(case, members, few=True, stationary=True),
        NOTHING: scores(case, 0, few=True),
        ALONE: gradient_alone(case),
    }
    where = {"draws": draws, "data": case.name}
    whole = {
        name: scores(case, case.audit.members, terms)
        for name, terms in TERMS.items()
        if "I3" not in terms
    }
    strict = by_metric(by_target(whole, case.audit.members, METRICS, **where, study="parts"))
    strict = strict.assign(strict=strict["by"] != TITLE_OF["auc"])
    return concat_rows([by_target(parts, members, METRICS[:2], **where, study="terms"), strict])


def _joined(
    loss: np.ndarray | int,
    shift: np.ndarray,
    alignment: np.ndarray,
    taken_out: np.ndarray,
    case: Case,
) -> np.ndarray:
    """Eq. 8 from the two numbers of `attacks.iha.shift_and_alignment`; without the loss if that is 0."""
    terms = shift / case.n + 2 * alignment - 2 * taken_out * shift
    return loss / (1 + case.rates["momentum"]) - terms / case.rates["learning_rate"]


def conditioned(case: Case) -> dict[tuple[str, float, str], np.ndarray]:
    """Scores [T, swept] of the first records by conditioning, "damping" or "low rank", by epsilon, and by whether the loss is
    added, without those that leave a Hessian indefinite."""
    ways = [
        (way, epsilon)
        for way, name in (("damping", "dampings"), ("low rank", "thresholds"))
        for epsilon in case.audit.parameters[name]
    ]
    shift, alignment = square(case.audit.swept_shift), square(case.audit.swept_alignment)
    count = shift.shape[2]
    loss, taken_out = square(case.audit.loss)[:, :count], case.audit.members[:, :count] / case.n
    return {
        (*way, words): _joined(added, shift[:, k], alignment[:, k], taken_out, case)
        for k, way in enumerate(ways)
        if np.isfinite(shift[:, k]).all()
        for words, added in (("added", loss), ("left out", 0))
    }


def conditioning(case: Case, draws: int = 60) -> pd.DataFrame:
    """Study "conditioning": AUC by `way`, `epsilon` and `loss`, see `conditioned`: Table 8.

    Study "learned", by the metric: the audit as released, and with what has the highest metric against all other targets, the
    auditor's own models, the `choice` that most targets have; beside it, on the same records, the audit with the weight decay
    in I2, with the loss and without, and the gradient alone.
    """
    by_way, frames = conditioned(case), []
    members = case.audit.members[:, : case.audit.swept_shift.shape[2]]
    where = {"draws": draws, "data": case.name}
    for (way, epsilon, loss), score in by_way.items():
        columns = {"study": "conditioning", "way": way, "epsilon": epsilon, "loss": loss}
        frames.append(by_target({IHA: score}, members, METRICS[:1], **where, **columns))
    first = first_records(case, members.shape[1])
    released = scores(first, members)
    beside = {
        DECAY: scores(first, members, few=True, stationary=True),
        BARE: scores(first, members, TERMS["I1, I2, I3, I4"], few=True, stationary=True),
        ALONE: gradient_alone(first),
    }
    ways = ["as released", *(f"{way} {epsilon:g}, loss {loss}" for way, epsilon, loss in by_way)]
    stacked = np.stack([released, *by_way.values()])
    for metric, judge in zip(METRICS, (auc, lambda *pair: tpr_at_fpr(*pair, 0.01)), strict=False):
        metrics_of_ways = np.stack([judge(score, members) for score in stacked])  # [ways, T]
        chosen = []
        for t in range(len(members)):
            trials = [({"way": k}, [(one, t)]) for k, one in enumerate(metrics_of_ways)]
            chosen.append(best_trial(trials, lambda one, t: np.delete(one, t).mean())["way"])
        learned = {IHA: released, LEARNED: stacked[chosen, np.arange(len(members))], **beside}
        rows = by_metric(by_target(learned, members, [metric], **where, study="learned"))
        frames.append(rows.assign(choice=ways[np.bincount(chosen).argmax()]))
    return concat_rows(frames)


def first_records(case: Case, count: int) -> Case:
    """The case with the arrays of its first `count` records alone."""
    arrays = {
        name: array[:, :count] if name in RECORDS else array
        for name, array in case.audit.arrays.items()
    }
    bank = case.bank and replace(
        case.bank, arrays={name: array[:, :count] for name, array in case.bank.arrays.items()}
    )
    return Case(case.name, replace(case.audit, arrays=arrays), bank)


def convergence(
    case: Case, counts: Sequence[int], make: bool = True, draws: int = 60, /, **recipe
) -> pd.DataFrame:
    """Study "epochs", by `epochs`: the audit after more and less training, on the first records.

    Args:
        counts: other epochs. make: whether to measure what is not there, which is left out otherwise.
        recipe: of the case, as for `measure.game`, and damping.
    """
    others = [
        measured(len(case.audit.loss), 0, True, make, **recipe | {"epochs": count})
        for count in counts
    ]
    cases = [*filter(None, others), Case(case.name, first_records(case, 1000).audit)]
    frames = []
    for each in sorted(cases, key=lambda one: one.audit.parameters["epochs"]):
        members = each.audit.members[:, : each.audit.squares.shape[1]]
        flags, count = random_flags(members), members.shape[1]
        where = {"study": "epochs", "data": case.name, "epochs": each.audit.parameters["epochs"]}
        found = {
            LOSS: -square(each.audit.loss)[:, :count],
            IHA: scores(each, members, few=True),
            ALONE: gradient_alone(each),
            DECAY: scores(each, members, few=True, stationary=True),
        }
        told = {FLAGS: scores(each, flags, TERMS[PAIR], few=True)}
        for truth, of_truth in ((members, found), (flags, told)):
            frames.append(by_target(of_truth, truth, METRICS[:1], draws=draws, **where))
    return concat_rows(frames)


def sizes(
    case: Case, counts: Sequence[int], targets: int, make: bool = True, draws: int = 60, /, **recipe
) -> pd.DataFrame:
    """Study "sizes": LOSS, LiRA and IHA by `size` of the training set, Table 7, and IHA with the weight decay in I2; study
    "leak": the paper's three by each two sizes that follow one another, `members`, the metric and the attack `of` which they
    are; study "decayed leak": the fourth. Games of fewer records, whose models are trained for as many steps, and the case
    itself, each with so many targets and twice as many models, judged on its first 1,000 records, the fourth on as many of
    these as have what it needs; without a row where no other size is measured.

    Args:
        counts: records of the other games. make, recipe: as for `convergence`.
    """
    batch, first = recipe["batch_size"], first_records(case, 1000)
    steps = recipe["epochs"] * math.ceil(case.n / batch)
    games = []
    for count in counts:
        own = {"records": count, "epochs": steps // math.ceil(count // 2 / batch), "judged": 1000}
        games.append(measured(targets, 2 * targets, True, make, **recipe | own))
    own = (
        replace(bank, arrays={name: array[:count] for name, array in bank.arrays.items()})
        for bank, count in ((first.audit, targets), (first.bank, 2 * targets))
    )
    games = [*filter(None, games), Case(case.name, *own)]
    frames = []
    for game in games if len(games) > 1 else []:
        each = {
            LOSS: -square(game.audit.loss),
            LIRA: lira_scores(game)[LIRA],
            IHA: scores(game, game.audit.members),
        }
        few = first_records(game, game.audit.inverse.shape[1])
        decayed = {DECAY: scores(few, few.audit.members, few=True, stationary=True)}
        where = {"draws": draws, "study": "sizes", "data": case.name, "size": game.n}
        both = (each, game.audit.members), (decayed, few.audit.members)
        frames.append(concat_rows(by_target(*pair, METRICS[:2], **where) for pair in both))
    for fewer, more in pairwise(frames):
        rows = by_metric(concat_rows([fewer, more])).rename(columns={"attack": "of"})
        rows["study"] = np.where(rows["of"] == DECAY, "decayed leak", "leak")
        ends = "{:,} to {:,}".format(*rows["size"].unique())
        frames = [*frames, rows.assign(attack="leak", members=ends)]
    return concat_rows(frames)


def partial_knowledge(
    case: Case, fractions: Sequence[float], make: bool = True, draws: int = 60, /, **recipe
) -> pd.DataFrame:
    """Study "partial": the audit by somebody who knows a `fraction` of the training set, Table 9;
    without a row where that is not measured. Arguments as for `convergence`.

    By the `rule` "honest" a record's gradient is taken out if the record is known, with weight one
    over the number of known records; by "as released" that of every member, with weight 1 / n.
    """
    kind = kind_of(recipe["dataset"], recipe["architecture"])
    part = fractions and where_measured(
        f"iha/{kind}-partial", len(case.audit.loss), make, fractions=list(fractions), **recipe
    )
    if not part:
        return concat_rows([])
    loss, shift, alignment = square(part.loss), square(part.shift), square(part.alignment)
    few, rows = first_records(case, loss.shape[1]), []
    for k, fraction in enumerate(fractions):
        weights = {
            "honest": part.known[:, k] / max(1, round(fraction * case.n)),
            "as released": part.members / case.n,
        }
        rows += [
            (fraction, rule, part.members, _joined(loss, shift[:, k], alignment[:, k], taken, case))
            for rule, taken in weights.items()
        ]
    if 1.0 not in fractions:
        rows += [
            (1.0, rule, few.audit.members, scores(few, few.audit.members))
            for rule in ("honest", "as released")
        ]
    where = {"draws": draws, "study": "partial", "data": case.name}
    return concat_rows(
        by_target({IHA: score}, members, METRICS[:1], **where, fraction=fraction, rule=rule)
        for fraction, rule, members, score in rows
    )


def conjugate(case: Case, draws: int = 60) -> pd.DataFrame:
    """Study "solver": I1 and I2 by the exact inverse and by conjugate gradients, Table 3; their largest "distance" in standard
    deviations of the score, and "iterations", means of each target; without a row where nothing was solved."""
    if not case.audit.parameters["solved"]:
        return concat_rows([])
    count = case.audit.cg_newton.shape[1]
    few, none, sgd = first_records(case, count), np.zeros(count), iha.Sgd(**case.rates)
    exact, solved = scores(few, few.audit.members), []
    for t, members in enumerate(few.audit.members):
        own = iha.Forms(
            square(case.audit.cg_newton[t]), square(case.audit.cg_newton_mean[t]), none, none, none
        )
        solved.append(
            iha.combine(
                square(few.audit.loss[t]), iha.split(own, members / case.n, case.n, sgd), sgd
            )
        )
    distance = np.abs(np.stack(solved) - exact).max(1) / exact.std(1)
    where = {"study": "solver", "data": case.name}
    both = {IHA: exact, CG: np.stack(solved)}
    solver = {CG: {"distance": distance, "iterations": case.audit.cg_iterations.mean(1)}}
    judged = by_target(both, few.audit.members, METRICS[:1], draws=draws, **where)
    return concat_rows([judged, by_repetition(solver, **where)])


def neighbours(case: Case, targets: int, make: bool = True) -> Bank | None:
    """References that know all other records, of so many targets of a case, at most: `measure.left_out`. Arguments as for
    `measured`; None for no targets."""
    known = case.audit.parameters
    name = f"iha/{kind_of(known['dataset'], known['architecture'])}-left-out"
    recipe = {name: known[name] for name in ODD}
    targets = min(targets, len(case.audit.loss))
    return where_measured(name, targets, make, **recipe) if targets else None


def left_out(case: Case, references: Bank | None, draws: int = 60) -> pd.DataFrame:
    """Study "left out": attacks that know all other records, on the same records (section 4.4), and by how much they agree,
    see `agreement`. LiRA has the models of the bank; "LiRA-L, both sides" also references that were trained on the record,
    all of them, half and a quarter. Attack "log odds" has by how much a record shifts its own, and their spread over seeds,
    medians over records."""
    if references is None:
        return pd.DataFrame({"study": []})
    flags, game, played = case.audit.members, game_of(case), []
    few = first_records(case, case.audit.inverse.shape[1])
    audits = {
        LOSS: -square(case.audit.loss),
        IHA: scores(case, flags),
        DECAY: scores(few, flags, few=True, stationary=True),
        ALONE: gradient_alone(few),
    }
    for t, place in enumerate(references.place):
        own, without, within = (
            array[t].astype(float)
            for array in (references.margin, references.out_margin, references.in_margin)
        )
        nobody = np.zeros(without.shape, bool)
        loss, losses = signals.loss_of(own), signals.loss_of(without)
        played.append(
            {name: score[t, place] for name, score in audits.items()}
            | {
                LIRA: registry.score("LiRA, own spreads", game.view(2 * t).on(place)),
                L_ATTACK: baselines.attack_r(loss, losses, nobody),
                CALIBRATED_L: calibration.calibrate(-loss, -losses),
                LIRA_L: baselines.lira_offline(own, without, nobody),
                BOTH_SIDES: scores_of_both_sides(own, without, within),
                HALF: scores_of_both_sides(own, without, within, 2),
                QUARTER: scores_of_both_sides(own, without, within, 4),
            }
        )
    each = {name: np.stack([one[name] for one in played]) for name in played[0]}
    members, where = references.members, {"data": case.name}
    by = {"draws": draws, "records": references.place, "study": "left out"}
    areas = by_target(each, members, METRICS[:1], **by, **where)
    without, within = (
        array.astype(float) for array in (references.out_margin, references.in_margin)
    )
    moved = {
        "shift": np.median(within.mean(1) - without.mean(1), axis=1),
        "spread": np.median(without.std(1, ddof=1), axis=1),
    }
    noise = by_repetition({"log odds": moved}, study="left out", **where)
    agreed = agreement(each, members, LIRA, (L_ATTACK, LIRA_L), RATES[1:], **where)
    # of these two `agreement` on all records tells more
    return concat_rows([areas, noise, agreed[agreed["attack"] != f"{IHA} and {LIRA}"]])


def scores_of_both_sides(
    own: np.ndarray, without: np.ndarray, within: np.ndarray, part: int = 1
) -> np.ndarray:
    """LiRA-L of both sides, by the first 1 / `part` of the references [R, K] of a side, at least two."""
    count = max(2, len(without) // part)
    nobody = np.zeros((count, len(own)), bool)
    both = np.vstack([without[:count], within[:count]])
    return baselines.lira_online(own, both, np.vstack([nobody, ~nobody]))


def costs(case: Case, iterations: float) -> pd.DataFrame:
    """Study "costs": counted operations (module `costs`) of attacks on 1,000 records of one target,
    "once" and for "each" record, and those with the exact inverse as a share of LiRA's and of
    conjugate gradients'. The latter take so many iterations for each system; rows without a number
    are left out."""
    from mia_book.chapters.iha import costs
    from mia_lib import models

    how, odd = case.audit.parameters, case.audit.parameters["architecture"] == "sigmoid_regression"
    shape, classes = ((446,), 30) if how["dataset"] == "location30" else ((784,), 2 if odd else 10)
    config = config_of(how, optimizer="sgd", loss="brier" if odd else "cross_entropy")
    network = models.build(config.architecture, shape, classes, seed=0)
    parameters = sum(w.numel() for w in network.parameters())
    game = (network, shape, case.n, config.loss)
    spent = {
        IHA: (costs.hessian_itself(*game) + costs.decomposition(parameters), 4.0 * parameters**2),
        CG: (0.0, 2 * iterations * costs.hessian_product(*game)),
        LIRA: (128 * costs.training(config, shape, classes, case.n), 0.0),
    }
    whole = {name: once + 1000 * each for name, (once, each) in spent.items()}
    made = {
        name: {"once": once, "each": each, "1,000 records": whole[name]}
        for name, (once, each) in spent.items()
    }
    made[IHA] |= {"share of LiRA": whole[IHA] / whole[LIRA], "share of CG": whole[IHA] / whole[CG]}
    return by_repetition(made, study="costs", data=case.name).dropna(subset="value")


def theorems(seed: int = 0) -> pd.DataFrame:
    """Study "theory": largest distance of Eq. 7 from the log ratio of two laws, and the slope of
    log variance on log curvature where SGD rests, in each of 20 groups of chains."""
    rest = theory.spectrum(
        theory.linear_regression(500, 6, noise=0.5, seed=seed), 32, 0.1, 0.9, seed=seed
    )
    slopes = [
        np.polyfit(np.log(group["eigenvalue"]), np.log(group["simulated"]), 1)[0]
        for _, group in rest.groupby("group")
    ]
    return by_repetition(
        {"Theorem 3.2": {"distance": theory.worlds(200, seed)}, "SGD": {"slope": np.array(slopes)}},
        study="theory",
    )
