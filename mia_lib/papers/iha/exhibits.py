"""Tables, figures and verdicts of the inverse-Hessian chapter, from what `study` computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

from mia_lib import metrics
from mia_lib.attacks import Needs, baselines, iha
from mia_lib.data import Dataset
from mia_lib.evidence import claims, explore, panels, plotting, tables
from mia_lib.evidence.tables import Cell
from mia_lib.metrics.interval import Interval, beyond_chance, combined, difference, over
from mia_lib.papers.iha import study, theory
from mia_lib.papers.numbers import number

DATA = ("Purchase-100", "MNIST-Odd", "FashionMNIST")  # the paper's, of Tables 2 and 3
EPSILONS = (0.01, 0.1, 0.2)  # of Table 8
PRINTED = dict(zip(study.KEPT, ("auc", "tpr_at_fpr_1pct", "tpr_at_fpr_0.1pct"), strict=True))
MEASURED = "AUC, TPR (%) at 1 % and 0.1 %"
INDEFINITE = "indefinite"
LOW = study.KEPT[1]
FEW = "fewer than 100 non-members, too few for a TPR at 1 %"
CONTROL = "an attack above chance"  # the part of a verdict without which a margin would be met where nothing leaks
COMPARED = {"lira": "LiRA", "l_attack": "L-attack", "lira_l": "LiRA-L", "iha": "IHA"}  # rows of Table 5


def label(method: str) -> str:
    """What tables call an attack: the paper's name; ours in italics."""
    return study.NAMES[method] if method in study.PAPER else f"*{study.NAMES[method]}*"


def terms(name: str) -> str:
    """A row of Table 4, as it is written."""
    return name.replace("loss", "ℓ").translate(str.maketrans("1234", "₁₂₃₄"))


def cell(interval: Interval, metric: str = "auc") -> Cell:
    """An AUC as a fraction, a rate in percent."""
    return tables.cell(interval) if metric == "auc" else tables.format_percent(interval)


def over_targets(values: np.ndarray, metric: str = "auc") -> Cell | str:
    """Mean of a metric over targets alone, [T], with its interval; some may have no value."""
    return cell(over(values, bounds=(0, 1)), metric) if np.isfinite(values).all() else INDEFINITE


def of_attack(play: study.Play, method: str, metric: str = "auc", minus: str | None = None) -> Interval:
    """A metric of an attack over targets, or its paired difference from another's."""
    return number(play.ranks[method], play.members, metric, None if minus is None else play.ranks[minus])


def stack(play: study.Play, method: str, kept: Sequence[str] = study.KEPT) -> Cell | str:
    """Metrics of an attack, one under the other."""
    return tables.stacked([_too_fine(play, metric) or cell(of_attack(play, method, metric), metric) for metric in kept])


def stack_targets(play: study.Play, values: np.ndarray, kept: Sequence[str] = study.KEPT) -> Cell | str:
    """The same from values [T, 3] of the targets of a play."""
    return tables.stacked([_too_fine(play, metric) or over_targets(one, metric)
                           for metric, one in zip(kept, values.T[:len(kept)], strict=True)])


def _too_fine(play: study.Play, metric: str) -> str:
    """What stands for a rate that fewer than one non-member would make; nothing for others."""
    rate = dict(zip(study.KEPT, (None, *study.RATES), strict=True))[metric]
    return "" if rate is None or metrics.resolves(play.members, rate) else tables.BELOW


def printed(table: str) -> dict[tuple[str, str, str, str], dict[str, Cell]]:
    """(data, model, attack, setting) -> metric -> the paper's number; rates in percent, as it prints them."""
    out: dict[tuple, dict[str, Cell]] = {}
    for _, row in tables.paper("iha", table).iterrows():
        key = row["dataset"], row["model"].partition(" (")[0], row["attack"], row["setting"]
        out.setdefault(key, {})[row["metric"]] = tables.cell(row["value"], ".3f" if row["unit"] == "fraction" else ".2f")
    return out


def stack_printed(numbers: Mapping[str, Cell], kept: Sequence[str] = study.KEPT) -> Cell | str:
    """The paper's numbers, one under the other."""
    return tables.stacked([numbers[PRINTED[metric]] for metric in kept])


# -------------------------------------------------------------------------------------------------------------- the tables


def access_table() -> pd.DataFrame:
    """Table 1: what each attack has, as the functions declare it, and as the paper has it."""
    everything = "all other records, and the training recipe"
    declared = {"LOSS": Needs("loss", "none", "nothing"), "SIF": iha.self_influence.needs,
                "LiRA": baselines.lira_online.needs, "L-attack": replace(baselines.attack_r.needs, knows=everything),
                "LiRA-L": replace(baselines.lira_offline.needs, knows=everything), "IHA": iha.combine.needs,
                "*gradient alone*": iha.stationarity.needs}
    theirs, rows = tables.printed("iha", "table1", "attack", "metric"), []
    for name, own in declared.items():
        said = {word: theirs.get((name, metric)) for word, metric in (
            ("white-box", "white_box_access"), ("references", "uses_reference_models"),
            ("leave-one-out", "leave_one_out_knowledge"))}
        rows.append({"attack": name, "access": own.access, "references": own.references, "also knows": own.knows} |
                    {f"paper: {word}": tables.NOTHING if value is None else "yes" if value else "no"
                     for word, value in said.items()})
    return pd.DataFrame(rows)


def targets_table(plays: Mapping[str, study.Play]) -> pd.DataFrame:
    """What the targets are like, and how near to a minimum."""
    return pd.DataFrame([{
        "case": name, "accuracy, members": tables.cell(found.train.mean()),
        "accuracy, non-members": tables.cell(found.test.mean()), "loss, members": tables.cell(found.loss_in.mean(), ".3g"),
        "loss, non-members": tables.cell(found.loss_out.mean(), ".3g"),
        "norm of the gradient": tables.cell(found.size[:, 0].mean(), ".2g"),
        "with weight decay": tables.cell(found.size[:, 1].mean(), ".2g"),
        "lowest eigenvalue": tables.cell(found.smallest.min(), ".2g")}
        for name, found in plays.items()])


def main_table(plays: Mapping[str, study.Play]) -> pd.DataFrame:
    """Table 2: the paper's attacks, and scores that know nothing; AUC as a fraction, TPR at low FPR in percent."""
    theirs = {(data, attack.removesuffix(" (Exact)")): stack_printed(numbers)
              for (data, _, attack, _), numbers in printed("table2").items()}
    rows = [{"attack": name} | {f"{case}: {MEASURED}": stack(found, method) for case, found in plays.items()} |
            {f"paper, {data}": theirs[data, name] for data in DATA} for method, name in study.PAPER.items()]
    nothing = {f"{case}: {MEASURED}": tables.stacked(
        ["0.500", *(tables.chance(found.members, rate) for rate in study.RATES)]) for case, found in plays.items()}
    return pd.DataFrame([*rows, {"attack": "*scores that know nothing*"} | nothing]).fillna(tables.NOTHING)


INGREDIENTS = ("iha", "whole", "stationary", "gradient", "gradient_plain", "gradient_whole")  # of one decomposition or of none
LIRA = ("lira", "lira_fixed", "lira_self")


def against_iha(plays: Mapping[str, study.Play], methods: Sequence[str]) -> pd.DataFrame:
    """AUC of some attacks, by how much it is above IHA's, paired, and TPR at 1 %, for each case."""
    rows = []
    for method in methods:
        row = {"score": label(method)}
        for case, found in plays.items():
            row |= {f"{case}: AUC": cell(of_attack(found, method)),
                    f"{case}: less IHA's": tables.NOTHING if method == "iha" else cell(of_attack(found, method, minus="iha")),
                    f"{case}: TPR (%) at 1 %": stack(found, method, study.KEPT[1:2])}
        rows.append(row)
    return pd.DataFrame(rows)


def lira_table(plays: Mapping[str, study.Play]) -> pd.DataFrame:
    """LiRA in three forms, beside the paper's: which of them are its numbers?"""
    theirs = {data: numbers["auc"] for (data, _, attack, _), numbers in printed("table2").items() if attack == "LiRA"}
    table = against_iha(plays, LIRA)
    return table.assign(**{f"paper, {data}: AUC": [value, *[tables.NOTHING] * 2] for data, value in theirs.items()})


def lira_figure(plays: Mapping[str, study.Play]) -> plt.Figure:
    """AUC of LiRA in three forms by case, and what the paper prints for its data."""
    theirs = {data: numbers["auc"].value for (data, _, attack, _), numbers in printed("table2").items() if attack == "LiRA"}
    figure, (axis,) = panels.grid(1, 3.6, "AUC")
    forms = {"lira": plotting.style_of("LiRA"), "lira_fixed": plotting.style_of("LiRA, true class"),
             "lira_self": {"color": plotting.RED, "marker": "X"}}
    for place, (method, look) in enumerate(forms.items()):
        panels.bars(axis, np.arange(len(plays)) + 0.2 * (place - 1), [of_attack(found, method) for found in plays.values()],
                    label=study.NAMES[method], **{**look, "linestyle": "none"})
    axis.plot(len(plays) + np.arange(len(theirs)), list(theirs.values()), marker="o", mec=plotting.INK, label="printed",
              **plotting.HOLLOW)
    axis.axhline(0.5, **panels.CHANCE)
    panels.ticks(axis.xaxis, np.arange(len(plays) + len(theirs)),
                 [name.replace(" ", "\n", 1) for name in plays] + [f"the paper,\n{data}" for data in theirs])
    axis.set(xlim=(-0.5, len(plays) + len(theirs) - 0.5))
    panels.legend(figure)
    return figure


def others_table(found_by_case: Mapping[str, study.Others]) -> pd.DataFrame:
    """The audit with the Hessian of the whole training set, what leaving the record out of it changes, and what more damping
    does with either, on the same records."""
    rows = []
    for name, found in found_by_case.items():
        fine = metrics.resolves(found.members, 0.01)
        change = change_of_others(found, found.others[0], found.whole[0])
        rows.append({"case": name, "members judged": int(found.members.sum(1)[0]),
                     "AUC": cell(metrics.contrast("auc", [(1.0, found.whole[0], found.members, found.records)])),
                     "change in AUC": cell(change),
                     "change in TPR (points) at 1 %": tables.format_percent(
                         change_of_others(found, found.others[0], found.whole[0], LOW)) if fine else tables.BELOW,
                     f"{study.MORE_DAMPING:g} times the damping": cell(change_of_others(found, *found.whole[::-1])),
                     "the same without its part": cell(change_of_others(found, *found.others[::-1]))})
    return pd.DataFrame(rows)


def change_of_others(found: study.Others, scores: np.ndarray, minus: np.ndarray, metric: str = "auc") -> Interval:
    """A metric of some scores [T, J] of `found` less that of others, on the same records."""
    return metrics.contrast(metric, [(1.0, scores, found.members, found.records), (-1.0, minus, found.members, found.records)])


def cg_table(found_by_case: Mapping[str, study.Conjugated]) -> pd.DataFrame:
    """Table 3: conjugate gradients beside the exact inverse, ours and then the paper's."""
    rows = []
    for name, found in found_by_case.items():
        exact, cg, members, steps = found.exact, found.cg, found.members, found.iterations
        rows.append({"case": name, "records": tables.cell(len(members), ","),
                     "AUC, exact": cell(metrics.bootstrap("auc", exact, members)),
                     "AUC, CG": cell(metrics.bootstrap("auc", cg, members)),
                     "largest difference of scores (s.d.)": tables.cell(np.abs(exact - cg).max() / exact.std(), ".1e"),
                     "rank correlation": tables.cell(stats.spearmanr(exact, cg).statistic, ".6f"),
                     "iterations: mean, most (bound)": f"{steps.mean():.1f}, {steps.max()} ({float(found.bound):.0f})",
                     "seconds": tables.cell(float(found.seconds), ".1f")})
    theirs = {(data, attack): numbers["auc"] for (data, _, attack, _), numbers in printed("table3").items()}
    for data in DATA:
        rows.append({"case": f"paper: {data}", "records": tables.cell(10_000, ","), "AUC, exact": theirs[data, "IHA (Exact)"],
                     "AUC, CG": theirs[data, "IHA (CG)"]})
    return pd.DataFrame(rows).fillna(tables.NOTHING)


def ablation_table(plays: Mapping[str, study.Play]) -> pd.DataFrame:
    """Table 4: terms of Eq. 8, alone and together."""
    theirs = {setting.removeprefix("terms used: ").lower(): stack_printed(numbers)
              for (*_, setting), numbers in printed("table4").items()}
    return pd.DataFrame([
        {"terms": terms(name)} |
        {f"{case}: {MEASURED}": stack_targets(found, found.terms[name]) for case, found in plays.items()} |
        {"paper, Purchase-100(S)": theirs[name.lower()]} for name in study.ABLATION])


def left_out_table(found: study.LeftOut, records: np.ndarray) -> pd.DataFrame:
    """Section 4.4: AUC of attacks that know the other records, mean over targets, and the lead of IHA on the same records.

    Args:
        records: of `study.left_out_records`.
    """
    theirs = {attack: numbers["auc"] for (*_, attack, setting), numbers in printed("text").items()
              if setting.startswith("Sec. 4.4") and "auc" in numbers}
    rows = []
    for key, name in study.LEFT_OUT.items():
        lead = tables.NOTHING if key == "iha" else cell(left_out_auc(found, records, "iha", key))
        values = metrics.auc(_left_out_score(found, key), found.members)
        rows.append({"attack": f"*{name}*" if key in ("gradient", "lira_l_released") else name,
                     "AUC": cell(left_out_auc(found, records, key)),
                     "by target": ", ".join(f"{value:.2f}" for value in values), "lead of IHA": lead,
                     "paper, Purchase-100(S)": theirs.get(name, tables.NOTHING)})
    return pd.DataFrame(rows)


def _left_out_score(found: study.LeftOut, attack: str) -> np.ndarray:
    return study.strongest_l_attack(found) if attack == "l_attack" else found.scores[attack]


def left_out_auc(found: study.LeftOut, records: np.ndarray, attack: str, minus: str | None = None) -> Interval:
    """AUC of an attack that knows the other records, or its lead over another, over targets and records."""
    given = [(1.0, attack)] if minus is None else [(1.0, attack), (-1.0, minus)]
    return metrics.contrast("auc", [(weight, _left_out_score(found, name), found.members, records) for weight, name in given])


def _matrix(names: Mapping[str, str], rates: Mapping[tuple[str, str, bool], float]) -> pd.DataFrame:
    keys = list(names)
    return pd.DataFrame([{"attack": names[a]} | {names[b]: tables.NOTHING if a == b else
                                                 tables.cell(rates[a, b, keys.index(a) < keys.index(b)]) for b in keys}
                         for a in keys])


def agreement_table(found: study.LeftOut, rate: float) -> pd.DataFrame:
    """Table 5: how often two attacks decide alike at one of the rates `AGREED`; members above the diagonal, others below."""
    return _matrix({**COMPARED, "gradient": "*gradient alone*", "truth": "truth"}, study.agreement(found, rate))


def attained(found: study.LeftOut, rate: float) -> float:
    """The largest false positive rate up to one of `AGREED` that the others of a target can make."""
    others = (~found.members).sum(1)
    return float(np.mean((rate * others + 1e-9).astype(int) / others))


def printed_agreement(rate: float) -> pd.DataFrame:
    """The same from the paper."""
    keys, rates = {v: k for k, v in COMPARED.items()} | {"GT": "truth"}, {}
    for (setting, pair, metric), value in tables.printed("iha", "table5", "setting", "attack", "metric").items():
        if f"FPR ~ {rate:g};" in setting:
            a, b = (keys[name] for name in pair.split(" vs "))
            rates[a, b, metric == "agreement_members"] = rates[b, a, metric == "agreement_members"] = value
    return _matrix({**COMPARED, "truth": "truth"}, rates)


def both_table(found: study.LeftOut, rate: float) -> pd.DataFrame:
    """Section 4.5: what is left where two attacks must agree, beside the better of the two alone at as many false alarms."""
    return pd.DataFrame([
        {"IHA and": (COMPARED | CONTROLS)[key], "FPR of both (%)": tables.format_percent(fpr.mean()),
         "TPR of both (%)": tables.format_percent(tpr.mean()),
         "TPR of the better alone (%) at that FPR": tables.format_percent(alone.mean())}
        for key, (tpr, fpr, alone) in agreed(found, rate).items()])


def agreed(found: study.LeftOut, rate: float) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Attack -> what it and IHA both call, each at `rate`: TPR [T], FPR [T], and the TPR [T] of the better one of the two
    alone, by its mean over targets, at each target's FPR."""
    decided, members, out = study.called(found, rate), found.members, {}
    for key in ("lira", "l_attack", "lira_l", "gradient"):
        both = decided["iha"] & decided[key]
        tpr, fpr = (np.average(both, 1, kind) for kind in (members, ~members))
        alone = [_at(found.l_attack_at[rate] if name == "l_attack" else found.scores[name], members, fpr)
                 for name in ("iha", key)]
        out[key] = tpr, fpr, max(alone, key=np.mean)
    return out


def _at(scores: np.ndarray, members: np.ndarray, fpr: np.ndarray) -> np.ndarray:
    """TPR [T] where as many of each target's others are called as its rate [T] allows, linear between counts."""
    found = []
    for score, inside, rate in zip(scores, members, fpr, strict=True):
        levels = np.r_[np.inf, np.sort(score[~inside])[::-1]]
        tpr = [np.mean(score[inside] > level) for level in levels[1:]] + [1.0]
        found.append(np.interp(rate * (~inside).sum(), np.arange(len(levels)), tpr))
    return np.array(found)


COSTS = {"iha": "IHA", "cg": "IHA (CG)", "lira": "LiRA", "loss": "LOSS"}


def cost_table(found: Mapping[str, study.Cost], parameters: int, name: str) -> pd.DataFrame:
    """Table 6: what attacks on single records cost, ours and the paper's in turn.

    Args:
        found: attack -> its cost. parameters, name: of the case.
    """
    theirs, rows = tables.printed("iha", "table6", "attack", "metric"), []
    columns = ("time_precompute", "time_per_sample", "memory_precompute", "memory_runtime")
    for key, attack in COSTS.items():
        pair = {f"{name}, {parameters:,} parameters": found[key],
                "paper: Purchase-100, MLP-2, 22,532 parameters": study.Cost(*(
                    theirs[attack.replace("CG", "Approx"), column] for column in columns))}
        for model, one in pair.items():
            rows.append({"attack": attack, "model": model, "once (s)": _short(one.once), "a record (s)": _short(one.each),
                         "memory, once (MB)": _short(one.held), "memory, a record (MB)": _short(one.most),
                         "1,000 records (s)": _short(np.nan_to_num(one.once) + 1000 * one.each)})
    return pd.DataFrame(rows)


def _short(value: float) -> Cell | str:
    """Two digits; nothing where nothing was done."""
    return tables.NOTHING if np.isnan(value) else tables.cell(value, ",.0f" if value >= 99.5 or value == 0 else ".2g")


def break_even(found: Mapping[str, study.Cost]) -> float:
    """From how many records on the exact inverse takes less time than conjugate gradients; infinite if it never does."""
    exact, cg = found["iha"], found["cg"]
    return float(max(1, np.floor((exact.once - cg.once) / (cg.each - exact.each)) + 1)) if cg.each > exact.each else np.inf


def sizes_table(plays: Mapping[str, study.Play], conditionings: Mapping[str, study.Swept],
                percentiles: Sequence[float]) -> pd.DataFrame:
    """Table 7: the AUC, and under it the TPR at 1 %, for architectures and sizes of training sets.

    Args:
        plays, conditionings: by the label of the case.
        percentiles: of the sweep; the damping that each gives is averaged over targets.
    """
    pair, rows = study.KEPT[:2], []
    dampings = [f"IHA, damping at percentile {one:g}" for one in percentiles]
    for name, found in plays.items():
        row = {"case": name} | {label(method): stack(found, method, pair) for method in ("loss", "lira", "iha")}
        swept = conditionings[name]
        for k, heading in enumerate(dampings):
            values = swept.kept["percentiles", "full"][:, k]
            first = INDEFINITE if np.isnan(values).any() else stack_targets(found, values, pair)
            row[heading] = tables.stacked([first, f"ε = {swept.epsilon[:, k].mean():.2g}"])
        row[label("gradient")] = stack(found, "gradient", pair)
        rows.append(row)
    theirs = {(data, model, attack): numbers for (data, model, attack, _), numbers in printed("table7").items()}
    for data, model in (("Purchase-100", "MLP-2"), ("Purchase-100(S)", "MLP-2"), ("Purchase-100(S)", "MLP-4")):
        ours = "IHA (Exact)" if (data, model, "IHA (Exact)") in theirs else "IHA (CG)"
        rows.append({"case": f"paper: {data}, {model}"} | {
            label(method): stack_printed(theirs[data, model, attack], pair)
            for method, attack in (("loss", "LOSS"), ("lira", "LiRA"), ("iha", ours))})
    again = next(numbers for (*_, setting), numbers in printed("text").items() if setting.startswith("App. D.1"))
    rows[-1]["IHA, damping by hand"] = f"{stack_printed(again, pair)}\nε = 0.5"
    return pd.DataFrame(rows).fillna(tables.NOTHING)


WAYS = {"dampings": "damping", "thresholds": "low rank"}
FORMS = {"full": "IHA", "pair": "I₁ + I₂ alone"}


def conditioning_table(conditionings: Mapping[str, study.Swept], sweep: study.Sweep) -> pd.DataFrame:
    """Table 8: AUC with the paper's dampings and thresholds, so far as they were run.

    Args:
        conditionings: by case. sweep: of all of them.
    """
    theirs = {(data, setting): numbers["auc"] for (data, *_, setting), numbers in printed("table8").items()}
    rows = []
    for way, word in WAYS.items():
        given = list(getattr(sweep, way))
        for epsilon in EPSILONS:
            row = {"conditioning": word, "ε": tables.cell(epsilon, "g")}
            for case, found in conditionings.items():
                row[f"{case}: {' / '.join(FORMS.values())}"] = tables.NOT_RUN if epsilon not in given else tables.stacked(
                    [over_targets(found.kept[way, form][:, given.index(epsilon), 0]) for form in FORMS])
            rows.append(row | {f"paper, {data}": theirs[data, f"{word.replace(' ', '-')}; eps = {epsilon:g}"]
                               for data in DATA[1:]})
    rows.append({"conditioning": "*gradient alone, no Hessian, without weight decay*"} | {
        f"{case}: {' / '.join(FORMS.values())}": over_targets(found.gradient[:, 0])
        for case, found in conditionings.items()})
    return pd.DataFrame(rows).fillna(tables.NOTHING).set_index(["conditioning", "ε"])


PARTIAL = {"released": "IHA, as released", "honest": "IHA, honest", "gradient": "gradient alone"}


def partial_table(found: study.Partial, fractions: Sequence[float], play: study.Play) -> pd.DataFrame:
    """Table 9: what is left to those who know a part of the training set.

    Args:
        found: of these fractions. play: of the same case.
    """
    theirs = {setting.partition(" = ")[2].partition(";")[0]: stack_printed(numbers)
              for (*_, setting), numbers in printed("table9").items()}
    return pd.DataFrame([
        {"known": tables.Cell(f"{100 * fraction:g} %", 100 * fraction, unit="%")} |
        {f"{name}: {MEASURED}": stack_targets(play, getattr(found, key)[:, k]) for key, name in PARTIAL.items()} |
        {"paper": theirs.get(f"{fraction:.1f}", tables.NOTHING)} for k, fraction in enumerate(fractions)])


def schedule_table(plays: Mapping[str, study.Play]) -> pd.DataFrame:
    """Attacks where the learning rate stays and where it falls, with IHA's lead over the gradient alone."""
    rows = []
    for name, found in plays.items():
        for method in ("iha", "stationary", "gradient"):
            lead = tables.NOTHING if method == "gradient" else cell(of_attack(found, method, minus="gradient"))
            rows.append({"schedule": name, "attack": label(method), "AUC": cell(of_attack(found, method)),
                         "TPR (%) at 1 %": stack(found, method, study.KEPT[1:2]), "AUC less that of gradient alone": lead})
    return pd.DataFrame(rows)


CONTROLS = {"iha": "IHA", "pair": FORMS["pair"], "gradient": "*gradient alone*"}


def control_table(play: study.Play, flags: study.Control, pretended: study.Control) -> pd.DataFrame:
    """AUC of the audit where the others' gradient is taken by membership, by random flags, and by flags on records that no
    target saw; each judged by what it was told.

    Args:
        play: of the case. flags, pretended: of `study.random_flags` and `study.placebo`.
    """
    kept = {"told membership": lambda key: told(play, key), "told random flags": lambda key: getattr(flags, key)[:, 0],
            "records never seen, half of them flagged": lambda key: getattr(pretended, key)[:, 0]}
    return pd.DataFrame([{"score": name} | {word: over_targets(of(key)) for word, of in kept.items()}
                         for key, name in CONTROLS.items()])


def told(play: study.Play, key: str) -> np.ndarray:
    """AUC of each target for a score of `CONTROLS`, [T]."""
    return play.terms["I1, I2"][:, 0] if key == "pair" else metrics.auc(play.ranks[key], play.members)


EIGENVALUES = (f"below −{study.EDGES[2]:g}", f"within ±{study.EDGES[2]:g}",  # those between `study.EDGES`
               *(f"{low:g} to {high:g}" for low, high in pairwise(study.EDGES[2:-1])), f"above {study.EDGES[-2]:g}")


def residuals_table(found_by_schedule: Mapping[str, study.Residuals]) -> pd.DataFrame:
    """What is left of the gradient by eigenvalue, beside a record's own share, means over targets."""
    rows = []
    for schedule, found in found_by_schedule.items():
        for k, name in enumerate(EIGENVALUES):
            if not np.isfinite(found.left[:, k]).any():
                continue
            left, own = np.nanmean(found.left[:, k]), np.nanmean(found.own[:, k])
            rows.append({"schedule": schedule, "eigenvalues": name,
                         "directions": tables.cell(found.directions[:, k].mean(), ".0f"),
                         "left of the gradient": tables.cell(left, ".1e"), "a record's share": tables.cell(own, ".1e"),
                         "ratio": tables.cell(left / own, ".2g"),
                         "noise of gradient alone (%)": tables.format_percent(found.noise[:, k].mean(), 0),
                         "noise of I₁ + I₂ (%)": tables.format_percent(found.noise_iha[:, k].mean(), 0)})
    return pd.DataFrame(rows)


# ------------------------------------------------------------------------------------------------------------- the figures


def residuals_figure(found_by_schedule: Mapping[str, study.Residuals]) -> plt.Figure:
    """What training left of the gradient beside a record's own share of it, and where the noise of both tests comes from."""
    figure, axes = panels.grid([*(f"{name}" for name in found_by_schedule)] * 2, 6.0, rows=2, sharey="row")
    present = np.any([found.directions.any(0) for found in found_by_schedule.values()], 0)
    at = np.cumsum(present) - 1  # groups that no target has take no room
    names = ["below\n0", "about\n0", *(f"to\n{edge:g}" for edge in study.EDGES[3:-1]), f"above\n{study.EDGES[-2]:g}"]
    for place, found in enumerate(found_by_schedule.values()):
        above, below = axes[place], axes[place + len(found_by_schedule)]
        for key, name, color, line, marker in (("left", "left of the gradient", plotting.BLUE, "-", "o"),
                                               ("own", "a record's share of it", plotting.ORANGE, "--", "s")):
            values = getattr(found, key)
            there = np.isfinite(values).any(0)
            above.plot(at[there], np.nanmean(values[:, there], 0), color=color, ls=line, marker=marker, label=name)
        for key, name, color, hatch, side in (("noise", "gradient alone", plotting.PINK, "", -0.2),
                                              ("noise_iha", "I₁ + I₂, with the weight decay", plotting.BLACK, "//", 0.2)):
            below.bar(at[present] + side, 100 * getattr(found, key).mean(0)[present], 0.38, color=color, alpha=0.75,
                      hatch=hatch, ec="white", label=f"noise of {name}")
        above.set(yscale="log", title=list(found_by_schedule)[place])
        below.set(xlabel=f"eigenvalue of the Hessian\n(about 0: within ±{study.EDGES[2]:g})", title="")
        panels.ticks(above.xaxis, at[present], [""] * present.sum())
        panels.ticks(below.xaxis, at[present], [name for name, here in zip(names, present, strict=True) if here])
        above.set_xlim(below.get_xlim())
    axes[0].set_ylabel("size along a direction\n(root mean square)")
    axes[len(found_by_schedule)].set_ylabel("share of the noise (%)")
    panels.legend(figure, 2)
    return figure


SCORES = ("as printed", "with the weight decay")  # of the explorable figure


def slide_figure(found: Mapping[str, study.Slide]) -> plt.Figure:
    """AUC of I1 + I2 against the damping, by whose gradient is taken out: what the explorable figure moves through."""
    figure, axes = panels.grid(list(found), 4.2, "AUC", sharey=True)
    looks = ((plotting.BLUE, "o"), (plotting.ORANGE, "s"), (plotting.FAINT, "^"))
    for axis, one in zip(axes, found.values(), strict=True):
        for t, (taken, (color, marker)) in enumerate(zip(study.TAKEN, looks, strict=True)):
            for form, line in enumerate(("--", "-")):
                axis.plot(one.dampings, [metrics.auc(score, _judged(one, t)) for score in one.scores[form, t]], color=color,
                          ls=line, marker=marker, ms=4, label=f"{taken}, {SCORES[form]}")
        axis.axhline(0.5, **panels.CHANCE)
        axis.set(xscale="log", xlabel="damping ε (logarithmic)")
    panels.legend(figure, 2)
    return figure


def _judged(found: study.Slide, taken: int) -> np.ndarray:
    """What a score is judged by: the flags where these were taken out, else membership."""
    return found.flags if taken == 1 else found.members


def slide_chart(found: Mapping[str, study.Slide], damping: float, bins: int = 18):
    """The same for readers to move: damping, schedule, score, and whose gradient is taken out.

    Args:
        found: schedule -> slide. damping: where the slider starts.
    """
    alt, names = plotting.altair(), list(found)
    shared = sorted(set.intersection(*(set(one.dampings.tolist()) for one in found.values())))
    start = int(np.abs(np.log(np.array(shared) / damping)).argmin())
    groups, bars, points, told = [], [], [], []
    for s, one in enumerate(found.values()):
        for k, epsilon in enumerate(shared):
            e = int(np.flatnonzero(one.dampings == epsilon)[0])
            weight, signal = one.weight[e], one.signal[e]
            for f in range(len(SCORES)):
                noise = one.noise[f, e]
                groups += [{"s": s, "k": k, "f": f, "x": float(x), "w": float(w), "n": float(n), "g": float(g)}
                           for x, w, n, g in zip(one.eigenvalue, weight / weight.max(), noise / noise.sum(),
                                                 signal / signal.sum(), strict=True)]
                for t in range(len(study.TAKEN)):
                    here = {"s": s, "k": k, "f": f, "t": t}
                    score, judged = one.scores[f, t, e].astype(float), _judged(one, t)
                    low, high = np.quantile(score, [0.01, 0.99])
                    edges = np.linspace(low, high if high > low else low + 1, bins + 1)
                    shares = [np.histogram(np.clip(score[side], edges[0], edges[-1]), edges)[0] / side.sum()
                              for side in (judged, ~judged)]
                    bars += [here | {"b": b, "m": float(m), "o": float(o)}
                             for b, (m, o) in enumerate(zip(*shares, strict=True))]
                    fpr, tpr, _ = metrics.roc_curve(score, judged)
                    grid = np.geomspace(1 / (~judged).sum(), 1, 10)
                    points += [here | {"p": float(p), "q": float(max(q, 1 / judged.sum()))} for p, q in zip(
                        grid, tpr[np.searchsorted(fpr, grid * (1 + 1e-12), side="right") - 1], strict=True)]
                    told.append(here | {"e": epsilon, "auc": float(metrics.auc(score, judged))})
    names_of = {"schedule": ("Learning rate ", names), "score": ("Score I1 + I2 ", list(SCORES)),
                "taken": ("Own gradient taken out of ", list(study.TAKEN))}
    begin = {"score": SCORES[1]}
    lists = [alt.param(name, value=begin.get(name, options[0]), bind=alt.binding_select(options=options, name=word))
             for name, (word, options) in names_of.items()]
    step = alt.param("step", value=start, bind=alt.binding_range(
        min=0, max=len(shared) - 1, step=1, name=f"Damping (0 least, {len(shared) - 1} most) "))

    def place(name: str) -> str:
        return f"indexof({names_of[name][1]!r}, {name})"

    of_group = f"datum.s == {place('schedule')} && datum.k == step && datum.f == {place('score')}"
    chosen = f"{of_group} && datum.t == {place('taken')}"
    lines = ["'Damping ' + format(datum.e, '.2~g') + ', ' + schedule",
             "'AUC ' + format(datum.auc, '.3f') + (datum.t == 1 ? ' for finding the random records' : ' for finding members')"]
    said = alt.Chart(alt.NamedData("told")).transform_filter(chosen).transform_calculate(
        lines=f"[{', '.join(lines)}]").mark_text(align="left", baseline="top", lineHeight=17).encode(
        x=alt.value(-42), y=alt.value(0), text="lines:N").properties(name="said", width=SIDE, height=17 * len(lines))
    parts = {"w": "weight (highest is one)", "g": "share of the signal", "n": "share of the noise"}
    directions = alt.Chart(alt.NamedData("groups")).transform_filter(of_group).transform_fold(
        list(parts), as_=["kind", "value"]).transform_calculate(name=f"({parts!r})[datum.kind]").mark_line(
        point=True, aria=False).encode(
        alt.X("x:Q", title="eigenvalue of the Hessian", scale=alt.Scale(type="log", nice=False),
              axis=alt.Axis(format="~e", tickCount=5)),
        alt.Y("value:Q", title="by direction", scale=alt.Scale(domain=[0, 1])),
        alt.Color("name:N", title=None, legend=alt.Legend(orient="top", columns=1, labelLimit=260), scale=alt.Scale(
            domain=list(parts.values()), range=[plotting.INK, plotting.BLUE, plotting.RED])),
        alt.StrokeDash("name:N", legend=None, scale=alt.Scale(domain=list(parts.values()), range=[[1, 0], [6, 3], [2, 2]]))
        ).properties(width=SIDE, height=170)
    kinds = {"m": "members, or flagged", "o": "others"}
    shares = alt.Chart(alt.NamedData("bars")).transform_filter(chosen).transform_fold(
        list(kinds), as_=["kind", "share"]).transform_calculate(
        name=f"({kinds!r})[datum.kind]", next="datum.b + 1").mark_bar(**explore.BARS).encode(
        alt.X("b:Q", bin="binned", title="score, low to high, ends gathered", axis=alt.Axis(labels=False, ticks=False)),
        x2="next:Q", y=alt.Y("share:Q", title="share of records", stack=None, axis=alt.Axis(tickCount=4)),
        **explore.two_kinds("name:N", list(kinds.values()))).properties(width=SIDE, height=150)
    low = min(row["p"] for row in points)
    scale, axis = alt.Scale(type="log", domain=[low, 1], nice=False), alt.Axis(format="~g", tickCount=4)
    curve = alt.Chart(alt.NamedData("points")).transform_filter(chosen).mark_line(
        color=plotting.INK, strokeWidth=2.5, aria=False)
    chance = alt.Chart(alt.Data(values=[{"p": low, "q": low}, {"p": 1, "q": 1}])).mark_line(
        color=plotting.FAINT, strokeDash=[5, 4], strokeWidth=1.2, aria=False)
    where = {"x": alt.X("p:Q", title="false positive rate", scale=scale, axis=axis),
             "y": alt.Y("q:Q", title="true positive rate", scale=scale, axis=axis)}
    rates = alt.layer(chance.encode(**where), curve.encode(**where)).properties(width=SIDE, height=SIDE - 40)
    left, right = alt.vconcat(said, directions, spacing=8), alt.vconcat(shares, rates, spacing=8)
    left = left.resolve_scale(color="independent", strokeDash="independent")
    return alt.concat(left, right, columns=2, spacing=24, datasets={
        "groups": groups, "bars": bars, "points": points, "told": told}).resolve_scale(
        color="independent", strokeDash="independent").add_params(*lists, step)


SIDE = 280  # pixels of a panel


def roc(plays: Mapping[str, study.Play]) -> plt.Figure:
    """Figure 1, with the gradient alone: ROC on logarithmic axes, the mean TPR over targets, a panel a case. Axes begin where
    one record counts."""
    rows = -(-len(plays) // 2)
    figure, axes = panels.grid(list(plays), 0.6 + 3.8 * rows, "true positive rate (logarithmic)", rows=rows)
    for axis, found in zip(axes, plays.values(), strict=False):
        low = 1 / min((~found.members).sum(1).min(), found.members.sum(1).min())
        grid = np.geomspace(low, 1, 300)
        for place, method in enumerate((*study.PAPER, "gradient")):
            each = []
            for scores, members in zip(found.ranks[method], found.members, strict=True):
                fpr, tpr, _ = metrics.roc_curve(scores, members)
                each.append(tpr[np.searchsorted(fpr, grid * (1 + 1e-12), side="right") - 1])
            name = study.NAMES[method]
            axis.plot(grid, np.maximum(np.mean(each, 0), low / 10), drawstyle="steps-post", label=name,
                      **plotting.style_of(name), **panels.now_and_then(place, len(grid)))
        axis.plot([low, 1], [low, 1], label="chance", **panels.CHANCE)
        axis.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1), box_aspect=1,
                 xlabel="false positive rate (logarithmic)")
    panels.legend(figure, 3)
    return figure


def _over_targets(axis: plt.Axes, x: Sequence[float], values: np.ndarray, **look) -> np.ndarray:
    """A line through the means over targets of values [T, E] with a band; returns which of the E have a value."""
    there = np.isfinite(values).all(0)
    found = [over(one, bounds=(0, 1)) for one in values.T[there]]
    at = np.asarray(x, float)[there]
    axis.plot(at, [one.value for one in found], **look)
    axis.fill_between(at, [one.low for one in found], [one.high for one in found], color=look["color"], alpha=0.13, lw=0)
    return there


CURVES = {("dampings", "full"): plotting.style_of("IHA"),
          ("dampings", "pair"): {"color": plotting.BLUE, "linestyle": "--", "marker": "o"},
          ("thresholds", "full"): {"color": plotting.RED, "linestyle": "-", "marker": "v"},
          ("thresholds", "pair"): {"color": plotting.ORANGE, "linestyle": "--", "marker": "^"}}


def conditioning_figure(conditionings: Mapping[str, study.Swept], sweep: study.Sweep) -> plt.Figure:
    """AUC against epsilon, however the Hessian is made invertible, beside the gradient alone.

    Args:
        conditionings: by case. sweep: of all of them.
    """
    figure, axes = panels.grid(list(conditionings), 4.4, "AUC", sharey=True)
    for axis, found in zip(axes, conditionings.values(), strict=True):
        alone = over(found.gradient[:, 0], bounds=(0, 1))
        axis.axhline(alone.value, color=plotting.PINK, ls="-.", label="gradient alone, without weight decay")
        axis.axhspan(alone.low, alone.high, color=plotting.PINK, alpha=0.13, lw=0)
        for (way, form), look in CURVES.items():
            there = _over_targets(axis, getattr(sweep, way), found.kept[way, form][..., 0], ms=5, **look,
                                  label=f"{FORMS[form]}, {WAYS[way]}")
            if way == "dampings" and form == "full":
                lost = np.asarray(sweep.dampings)[~there]
        epsilon, percentiles = found.epsilon.mean(0), found.kept["percentiles", "full"][..., 0]
        there = np.isfinite(percentiles).all(0)
        axis.plot(epsilon[there], percentiles[:, there].mean(0), marker="D", mec=plotting.INK,
                  label="IHA, damping by percentile", **plotting.HOLLOW)
        axis.axvline(0.2, color=plotting.FAINT, ls=":", lw=1.2, label="the paper's ε")
        axis.axhline(0.5, **panels.CHANCE)
        axis.plot(lost, np.full(len(lost), 0.02), "x", color=plotting.INK, ms=6, transform=axis.get_xaxis_transform(),
                  label="indefinite with this damping")
        axis.set(xscale="log", xlabel="ε (logarithmic)")
    panels.legend(figure, 3, handlelength=2)
    return figure


def spectrum_figure(conditionings: Mapping[str, study.Swept], dampings: Sequence[float] = EPSILONS) -> plt.Figure:
    """Eigenvalues of the Hessians by rank, a line a target, negative ones by their size."""
    figure, axes = panels.grid(list(conditionings), 4.0, "eigenvalue", sharey=True)
    for axis, found in zip(axes, conditionings.values(), strict=True):
        noise = 1e-6 * found.values.max()  # below it nothing but rounding is left
        for name, sign, color, line in (("positive", 1, plotting.BLUE, "-"),
                                        ("negative, without their sign", -1, plotting.RED, "--")):
            for k, values in enumerate(found.values):
                side = np.sort(sign * values[sign * values > noise])[::-1]
                axis.plot(np.arange(1, len(side) + 1), side, color=color, ls=line, lw=1.3, alpha=0.7,
                          label=None if k else name)
        for epsilon in dampings:
            axis.axhline(epsilon, color=plotting.FAINT, ls=":", lw=1.4)
            axis.text(1, epsilon, f"ε = {epsilon:g} ", transform=axis.get_yaxis_transform(), ha="right", fontsize=8.5,
                      va="bottom" if epsilon == max(dampings) else "top")
        axis.set(xscale="log", yscale="log", xlabel="rank (logarithmic)")
    panels.legend(figure)
    return figure


def partial_figure(found: study.Partial, fractions: Sequence[float]) -> plt.Figure:
    """AUC and TPR at 1 % of those who know a part of the training set."""
    figure, axes = panels.grid(2, 3.9)
    frame = tables.paper("iha", "table9")
    for k, (axis, name, unit, level) in enumerate(zip(axes, ("AUC", "TPR at 1 % FPR (%)"), (1, 100), (0.5, 1), strict=True)):
        printed = frame[frame["metric"] == PRINTED[study.KEPT[k]]]
        axis.plot([float(text.partition(" = ")[2].partition(";")[0]) for text in printed["setting"]], printed["value"],
                  marker="o", mec=plotting.FAINT, label=f"as released, {plotting.PRINTED}", **plotting.HOLLOW)
        looks = (plotting.style_of("IHA"), {"color": plotting.BLUE, "linestyle": "--", "marker": "s"},
                 {"color": plotting.PINK, "linestyle": "-.", "marker": "D"})
        for (key, word), look in zip(PARTIAL.items(), looks, strict=True):
            values = {fraction: over(one, bounds=(0, 1)) for fraction, one in
                      zip(fractions, getattr(found, key)[:, :, k].T, strict=True) if np.isfinite(one).all()}
            panels.bars(axis, list(values), values.values(), unit, label=word, **look)
        axis.axhline(level, **panels.CHANCE)
        axis.set(xlabel="known fraction of the training set", ylabel=name)
    panels.legend(figure)
    return figure


def _both_signs(axis: plt.Axes, values: np.ndarray) -> None:
    """Make the x axis linear at zero and logarithmic far from it."""
    unit = 10 ** np.round(np.log10(np.median(np.abs(values))))
    most = np.floor(np.log10(np.abs(values).max() / unit))  # the last decade within the values
    decades = unit * 10.0 ** (np.arange(1, most + 1)[::2] if most > 0 else np.zeros(1))  # at least one mark on either side
    axis.set_xscale("asinh", linear_width=unit)
    names = [f"10^{{{np.log10(one):.0f}}}$" for one in decades]
    axis.set_xticks([*-decades[::-1], 0, *decades], [*(f"$-{one}" for one in names[::-1]), "0", *(f"${one}" for one in names)])
    axis.minorticks_off()


def signal_figure(play: study.Play) -> plt.Figure:
    """The first target's records: what both kinds share; and by their scores, which take the record's own gradient out of I2,
    how much likelier a score is among members, with intervals of the counts."""
    figure, (left, right) = panels.grid(["with the record left in", "with its own gradient taken out"], 4.2)
    (along, shift, _), members = play.scatter.astype(float), play.members[0]
    scores = np.where(members, shift, -shift) - along
    groups = np.array_split(np.argsort(scores), min(20, max(2, len(scores) // 10)))  # of equally many records
    middles = np.array([np.median(scores[group]) for group in groups])
    _both_signs(left, along)
    _both_signs(right, middles)
    for name, side in (("non-members", ~members), ("members", members)):
        look = plotting.STYLE[name]
        left.plot(along[side], shift[side], look["marker"], color=look["color"], ms=3.5, mew=0, alpha=0.5, label=name)
    inside, others = (np.array([side[group].sum() for group in groups]) for side in (members, ~members))
    ratio = np.log((inside + 0.5) / members.sum()) - np.log((others + 0.5) / (~members).sum())
    spread = 1.96 * np.sqrt(1 / (inside + 0.5) + 1 / (others + 0.5))
    panels.whiskers(right, middles, ratio, ratio - spread, ratio + spread, color=plotting.INK, marker="o", ms=4)
    right.axhline(0, **panels.CHANCE)
    edge = np.geomspace(*np.quantile(shift, (0.02, 1)), 100)
    for sign in (-1, 1):
        left.plot(sign * edge, edge, color=plotting.INK, lw=1.4, ls=":",
                  label="above: the shift decides the sign" if sign > 0 else None)
    left.set(yscale="log", ylim=(edge[0], 2 * edge[-1]), xlabel=r"alignment $2\,x_D^\top x$",
             ylabel=r"shift $\Vert x\Vert^2/n$")
    right.set(xlabel=r"$-(I_1+I_2)$", ylabel="log ratio of shares, members over others")
    panels.legend(figure, 3)
    return figure


def stationary_figure(found: dict) -> plt.Figure:
    """How far SGD wanders along each eigenvector of the Hessian, and how far it is said to (Eqs. 4 and 5).

    Args:
        found: of `stationary.spectrum`.
    """
    figure, (axis,) = panels.grid(1, 4.0)
    x = found["eigenvalue"]
    panels.whiskers(axis, x, found["simulated"], *np.quantile(found["repetitions"], (0.05, 0.95), axis=0), ls="none",
                    marker="o", color=plotting.BLUE, label="simulated SGD, 5th to 95th percentile of groups")
    for key, name, color, line in (("measured_noise", "Theorem 2.2, noise of the gradients", plotting.GREEN, "-"),
                                   ("equation_4", "Eq. 4", plotting.INK, "--"),
                                   ("boltzmann", "Boltzmann law (Eq. 5), best temperature", plotting.RED, ":")):
        axis.plot(x, found[key], color=color, ls=line, label=name)
    axis.set(xscale="log", yscale="log", xlabel="eigenvalue of the Hessian (logarithmic)",
             ylabel="variance of the parameters (logarithmic)")
    panels.legend(figure)
    return figure


@dataclass(frozen=True, eq=False)
class Idea:
    """Ends of SGD on a regression with two parameters, with and without one record.

    Attributes:
        others: the world of the other records. minima: [2, 2], with the record and without it.
        ends: [2, chains, 2], where SGD ended, trained with it and without it.
    """

    others: theory.LinearWorld
    minima: np.ndarray
    ends: np.ndarray

    @property
    def nearer(self) -> np.ndarray:
        """[2], share of the ends that are nearer to their own minimum than to the other."""
        far = np.linalg.norm(self.ends[:, :, None] - self.minima, axis=-1)  # [2, chains, 2]
        return np.array([(far[0, :, 0] < far[0, :, 1]).mean(), (far[1, :, 1] < far[1, :, 0]).mean()])


def idea(records: Dataset, columns: Sequence[int], count: int = 24, chains: int = 300, seed: int = 0) -> Idea:
    """A linear regression of the class on two columns, and where many runs of SGD end, with and without one record.

    Args:
        records: a table with two classes. columns: two. count: how many records, the first of them. chains: runs of SGD.
    """
    x = records.x[:count, list(columns)].astype(float)
    world = theory.LinearWorld((x - x.mean(0)) / x.std(0), 2.0 * records.y[:count] - 1)
    record = int(np.argsort(theory.leave_one_out(world)["distance"])[-1])
    others = theory.LinearWorld(np.delete(world.x, record, 0), np.delete(world.y, record))
    ends = [one.optimum() + theory.simulate_sgd(one, 8, 0.02, 0.5, chains=chains, seed=seed + k)
            for k, one in enumerate((world, others))]
    return Idea(others, np.stack([world.optimum(), others.optimum()]), np.stack(ends))


def idea_figure(found: Idea) -> plt.Figure:
    """Two parameters, a quadratic loss: from where SGD ended, to which minimum is it nearer?"""
    points = np.concatenate([found.minima, *(np.quantile(one, [0.01, 0.99], axis=0) for one in found.ends)])
    middle, reach = (points.max(0) + points.min(0)) / 2, 0.6 * np.ptp(points, axis=0).max()
    grid = np.stack(np.meshgrid(*(np.linspace(m - reach, m + reach, 120) for m in middle)), -1)
    heights = found.others.losses(grid).mean(-1)
    figure, axes = panels.grid(["trained with the record", "trained without it"], 4.7, "second parameter", sharey=True)
    for axis, ends, kind in zip(axes, found.ends, ("members", "non-members"), strict=True):
        axis.contour(grid[..., 0], grid[..., 1], heights, 9, colors=plotting.FAINT, linewidths=0.7)
        axis.plot(*ends.T, ".", color=plotting.STYLE[kind]["color"], ms=4, mew=0, alpha=0.5)
        end = ends[0]
        for place, (word, minimum, one) in enumerate(zip(("with", "without"), found.minima, ("members", "non-members"),
                                                         strict=True)):
            look = plotting.STYLE[one]
            axis.annotate("", minimum, end, arrowprops={"arrowstyle": "-|>", "color": plotting.INK, "lw": 1.6,
                                                        "ls": look["linestyle"], "shrinkA": 0, "shrinkB": 0})
            axis.plot(*minimum, look["marker"], color=look["color"], ms=10, mec=plotting.INK, zorder=4,
                      label=f"minimum {word} the record $w_{1 - place}^*$")
        axis.plot(*end, "*", color=plotting.INK, ms=12, label="one end of SGD")
        axis.set(xlabel="first parameter", box_aspect=1, xlim=(middle[0] - reach, middle[0] + reach),
                 ylim=(middle[1] - reach, middle[1] + reach))
        axis.grid(False)
    panels.legend(figure, 3)
    return figure


# ---------------------------------------------------------------------------------------------------------- the verdicts


def quadratic_worlds(count: int, seed: int) -> float:
    """Largest distance between the log odds of Eq. 7 and the log ratio of two Gaussians, over random quadratics, relative to
    the larger of the log odds and one."""
    rng, worst = np.random.default_rng(seed), 0.0
    for _ in range(count):
        d = int(rng.integers(1, 6))
        basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
        h, n = (basis * rng.uniform(0.1, 3, d)) @ basis.T, int(rng.integers(10, 1000))
        rates = {"batch_size": int(rng.integers(1, 100)), "learning_rate": rng.uniform(0.01, 0.1),
                 "momentum": rng.uniform(0, 0.9), "weight_decay": rng.uniform(0, 0.01)}
        theta, with_it, without = rng.normal(size=(3, d))
        least = rng.uniform(0.1, 1)

        def law(optimum, theta=theta, h=h, least=least, rates=rates):
            return float(theory.log_density(theta, optimum, h, least, **rates))

        def loss(optimum, theta=theta, h=h, least=least):
            return least + (theta - optimum) @ h @ (theta - optimum) / 2

        gradient = n * (h @ (theta - with_it) - h @ (theta - without))
        odds = theory.log_odds(n * (loss(with_it) - loss(without)), gradient, h @ (theta - without), h, n, least, **rates)
        direct = law(with_it) - law(without)
        worst = max(worst, abs(float(odds.log_odds) - direct) / max(1.0, abs(direct)))
    return worst


def judge_theory(worst: float, spread: Mapping) -> list[claims.Verdict]:
    """C1 and C2.

    Args:
        worst: of `quadratic_worlds`. spread: of `stationary.spectrum`.
    """
    halfway = claims.margin("iha", "C2", "halfway")
    return [claims.judge_identity("iha", "C1", worst, 1e-8, "largest distance, relative"),
            claims.judge("iha", "C2", {f"slope plus {halfway:g}": spread["slope"] + halfway})]


def judge_attacks(plays: Mapping[str, study.Play], images: Mapping[str, bool], data: Mapping[str, str],
                  constant: study.Play, tables_of: Mapping[str, study.Play], flags: Mapping[str, study.Control],
                  references: Mapping[str, int], decayed: bool = True) -> list[claims.Verdict]:
    """C3 to C5, C7 to C9, C7w, A1 to A6.

    Args:
        plays: by case, trained with a schedule that anneals. images: case -> whether its records are images.
        data: case -> name of its data set, those of `tables_of` as well. constant: trained at a constant rate.
        tables_of: further cases, with tables, on which C3 is judged, too. flags: case -> `study.random_flags`.
        references: case -> how many LiRA has. decayed: whether models are trained with weight decay.
    """
    margin = partial(claims.margin, "iha")
    allowed, within, small = margin("C4", "allowed"), margin("C5", "within"), margin("C7", "allowed")
    kind = {"C3": [*(case for case in plays if not images[case]), *tables_of], "C4": [case for case in plays if images[case]]}
    kind = {claim: [case for case in among if references[case] >= margin(claim, "references")]
            for claim, among in kind.items()}
    on = {claim: claims.on_own_data("iha", claim, {case: data[case] for case in kind.get(claim, plays)})
          for claim in ("C3", "C4", "C5", "C7", "C7w", "C8", "C9")}
    parts: dict[str, dict[str, Interval | None]] = {claim: {} for claim in (
        "C3", "C4", "C5", "C7", "C8", "C9", "A1", "A2", "A4", "A5", "A6")}

    def lead(found: study.Play, a: str, b: str, metric: str = "auc") -> Interval | None:
        return None if _too_fine(found, metric) else of_attack(found, a, metric, minus=b)

    def term(found: study.Play, a: str, b: str, at: int = 0) -> Interval | None:
        return None if _too_fine(found, study.KEPT[at]) else over(found.terms[a][:, at] - found.terms[b][:, at])

    for case in on["C3"]:
        found = {**plays, **tables_of}[case]
        for rival in ("lira", "lira_fixed"):
            name = f"{case}, less {study.NAMES[rival]}"
            parts["C3"] |= {f"{name}, AUC": lead(found, "iha", rival), f"{name}, TPR at 1 %": lead(found, "iha", rival, LOW)}
    for case, found in plays.items():
        of_case: dict[str, dict[str, Interval | None]] = {claim: {} for claim in on}
        for rival in ("lira", "lira_fixed"):
            of_case["C4"][f"{case}, less {study.NAMES[rival]}"] = lead(found, "iha", rival) + allowed
        for claim, compared in (("C4", ("iha", "lira", "lira_fixed")), ("C5", ("sif", "loss")), ("C7", ("iha",))):
            of_case[claim][f"{case}, {CONTROL}"] = beyond_chance(of_attack(found, attack) for attack in compared)
        same = lead(found, "sif", "loss")
        of_case["C5"] |= {f"{case}, {within:g} + difference": same + within,
                          f"{case}, {within:g} - difference": -same + within}
        of_case["C7"][f"{case}, I1 and I2 less all, + {small:g}"] = term(found, "I1, I2", "all") + small
        of_case["C8"] = {f"{case}, AUC, I2 less I1": term(found, "I2", "I1"),
                         f"{case}, TPR, sum less I1": term(found, "I1, I2", "I1", 1),
                         f"{case}, TPR, sum less I2": term(found, "I1, I2", "I2", 1)}
        of_case["C9"] = {f"{case}, AUC": term(found, "loss, I1, I2", "I1, I2"),
                         f"{case}, TPR at 1 %": term(found, "loss, I1, I2", "I1, I2", 1)}
        for claim in ("C4", "C5", "C7", "C8", "C9"):
            parts[claim] |= of_case[claim] if case in on[claim] else {}
        parts["A1"] |= {f"{case}, LOSS less nothing taken out": lead(found, "loss", "whole") + margin("A1", "allowed"),
                        f"{case}, IHA less nothing taken out": lead(found, "iha", "whole")}
        for mine, theirs, word in (("gradient_plain", "iha", "neither with weight decay"),
                                   ("gradient", "stationary", "both with weight decay")):
            parts["A2"] |= {f"{case}, {word}, AUC": lead(found, mine, theirs),
                            f"{case}, {word}, TPR at 1 %": lead(found, mine, theirs, LOW)}
        parts["A4"] |= {case: lead(found, "stationary", "iha")} if decayed else {}
        parts["A5"][case] = lead(found, "lira_self", "lira")
        of_flags, more = flags[case].pair[:, 0], margin("A6", "allowed")
        parts["A6"] |= {f"{case}, flags above one half": over(of_flags) - 0.5,
                        f"{case}, flags less members, + {more:g}": over(of_flags - told(found, "pair")) + more}
    lacking = {claim: f"no case with {kind} and {margin(claim, 'references'):g} or more references of LiRA in this run"
               for claim, kind in (("C3", "tables"), ("C4", "images"))}
    lacking["A4"] = "models are trained without weight decay"
    verdicts = [claims.judge("iha", claim, of_claim or None, FEW if None in of_claim.values() else
                             None if of_claim else lacking[claim]) for claim, of_claim in parts.items()]
    moved = max(abs(float(np.mean(plays[case].terms["I1, I2, I3, I4"][:, 0] - plays[case].terms["I1, I2"][:, 0])))
                for case in on["C7w"])
    ahead = {word: None if _too_fine(constant, metric) else of_attack(constant, "iha", metric, minus="gradient")
             for word, metric in (("AUC", "auc"), ("TPR at 1 %", LOW))}
    return [*verdicts, claims.judge_within("iha", "C7w", moved, "change", "largest change of mean AUC"),
            claims.judge("iha", "A3", ahead, FEW if None in ahead.values() else None)]


def judge_sweeps(conjugated: Mapping[str, study.Conjugated], left_out: study.LeftOut, left_out_rows: np.ndarray,
                 swept: Mapping[str, study.Swept], sweep: study.Sweep, partial: study.Partial, fractions: Sequence[float],
                 few: study.Play | None, many: study.Play, deep: study.Swept | None, shallow: study.Swept,
                 work: Mapping[str, study.Work], data: Mapping[str, str]) -> list[claims.Verdict]:
    """C6, C10 to C16 and C11r.

    Args:
        conjugated, swept: by case, all with `sweep`. left_out_rows: of `study.left_out_records`. partial: of these fractions.
        few, many: the same network with fewer and more members; None where one size alone was run. deep, shallow: two
            networks; None where there is one alone.
        work: by case, each of `conjugated` at least. data: case -> name of its data set.
    """
    def own(claim: str, found: Mapping) -> dict:
        return {case: found[case] for case in claims.on_own_data("iha", claim, {case: data[case] for case in found})}

    worst = max(float(np.abs(one.exact - one.cg).max() / one.exact.std()) for one in own("C6", conjugated).values())
    ten = {f"IHA less {study.LEFT_OUT[b]}": left_out_auc(left_out, left_out_rows, "iha", b) for b in ("l_attack", "lira_l")}
    others, of_target = study.found_beside(left_out, 0.3)
    enough = claims.margin("iha", "C11r", "members")
    eleven = None if len(others) < enough else _beyond_guess(left_out, others, of_target)
    twelve = {f"{case}, {study.REFERENCES} references to one Hessian": study.REFERENCES * one.reference / one.hessian
              for case, one in work.items()}
    for case, found in conjugated.items():
        one, systems = work[case], 2 * study.AUDITED + 1  # two for each record, one for the mean gradient
        twelve[f"{case}, {study.AUDITED:,} records, conjugate gradients to exact inverse"] = (
            systems * found.iterations.mean() * one.product / (one.hessian + study.AUDITED * one.rotation))
    thirteen: dict[str, Interval | None] = {}
    for case, found in own("C13", swept).items():
        best = _swept(found, sweep, "dampings", 0.2)
        for group, at in (*(("dampings", at) for at in EPSILONS[:2]), *(("thresholds", at) for at in EPSILONS)):
            other = _swept(found, sweep, group, at)
            usable = best is not None and other is not None and np.isfinite(best - other).all()
            thirteen[f"{case}, less {WAYS[group]} {at:g}"] = over(best - other) if usable else None
        if not any(thirteen[f"{case}, less {WAYS['dampings']} {at:g}"] for at in EPSILONS[:2]):  # half of the claim
            thirteen |= {part: None for part in thirteen if part.startswith(f"{case}, ")}
    reason = ("some were not asked for, or leave a Hessian indefinite" if None in thirteen.values() else None)
    gains = [one and _swept(one, sweep, "dampings", at) for one in (deep, shallow) for at in (0.5, 0.2)]
    if any(one is None or not np.isfinite(one).all() for one in gains):
        fourteen = None
    else:
        fourteen = difference(*(over(more - less) for more, less in (gains[:2], gains[2:])))
    known = dict(zip(fractions, partial.honest[..., 0].T, strict=True))
    if {0.2, 0.8, 1.0} <= set(known) and np.isfinite([known[0.2], known[0.8], known[1.0]]).all():
        fifteen = {"all less 80 %": over(known[1.0] - known[0.8]),
                   "80 % less 20 %": over(known[0.8] - known[0.2])}
    else:
        fifteen = None
    sixteen = few and {study.NAMES[a]: difference(of_attack(few, a), of_attack(many, a)) for a in ("loss", "lira", "iha")}
    no_part = "0.2, 0.8 or 1 is not in fractions, or leaves a Hessian indefinite"
    no_gain = ("0.2 or 0.5 is not in dampings, or leaves a Hessian indefinite" if deep else
               "size_architectures has one network alone")
    few_missed = None if eleven is not None else f"too few members that no attack on losses calls: {len(others)}"
    return [claims.judge_within("iha", "C6", worst, "deviations", "largest distance in standard deviations of the score"),
            claims.judge("iha", "C10", ten),
            claims.judge("iha", "C11", over(study.agreement_gap(left_out, 0.3), bounds=(-1, 1))),
            claims.judge("iha", "C11r", eleven, few_missed),
            claims.judge_work("iha", "C12", twelve),
            claims.judge("iha", "C13", thirteen, reason),
            claims.judge("iha", "C14", fourteen, None if fourteen is not None else no_gain),
            claims.judge("iha", "C15", fifteen, None if fifteen else no_part),
            claims.judge("iha", "C16", sixteen, None if sixteen else "size_pools has one size alone")]


def judge_further(apart: study.Others | None, left_out: study.LeftOut) -> list[claims.Verdict]:
    """A7 and A8.

    Args:
        apart: of the deepest network; None where there is one network alone.
    """
    seven = apart and change_of_others(apart, *apart.others[::-1])
    eight = {f"with {COMPARED[key]}": over(tpr - alone, bounds=(-1, 1))
             for key, (tpr, _, alone) in agreed(left_out, 0.3).items() if key in COMPARED}
    return [claims.judge("iha", "A7", seven, None if seven else "size_architectures has one network alone"),
            claims.judge("iha", "A8", eight)]


def _beyond_guess(found: study.LeftOut, hits: np.ndarray, of_target: np.ndarray) -> Interval:
    """Share of some members that IHA calls less that of guesses; covers the members and, of each target, the others that set
    the threshold.

    Args:
        hits, of_target: of `study.found_beside` at 30 %.
    """
    chance, spread = study.guess_above(found, 0.3)
    count, weights = len(hits), np.bincount(of_target) / len(hits)
    share = (hits.sum() + 1) / (count + 2)  # none of a few does not say that none ever is
    return combined(hits.mean() - chance, [share * (1 - share) / count, spread * (weights**2).sum()], [count - 1, np.inf],
                    covers=f"{count} members of {np.count_nonzero(weights)} targets, and the others", bounds=(-1, 1))


def _swept(found: study.Swept, sweep: study.Sweep, group: str, at: float) -> np.ndarray | None:
    """AUC of the full score of each target at one conditioning, [T]; None where it was not asked for."""
    asked = list(getattr(sweep, group))
    return found.kept[group, "full"][:, asked.index(at), 0] if at in asked else None


def assumption_table(found: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """What Assumption 3 drops beside what it keeps, over the records of a linear regression.

    Args:
        found: of `theory.leave_one_out`.
    """
    ratio = found["difference"] / found["lower"]
    parts = {"difference of the minima": ratio, "upper end, the loss at w0* / n": found["upper"] / found["lower"]}
    return pd.DataFrame([{"in units of the loss at w1* / n": name} | {f"{word}": float(np.quantile(one, q)) for word, q in (
        ("least", 0), ("median", 0.5), ("most", 1))} for name, one in parts.items()])


def closed_world_table(world: theory.NewtonWorld, damping: float) -> pd.DataFrame:
    """AUC of I1 and I2 alone, and of the gradient alone, in a world trained to its exact minimum."""
    n, members = int(world.members.sum()), world.members
    mean, size = world.gradients[members].mean(0), len(world.theta)
    found = iha.forms(world.gradients, np.linalg.inv(world.hessian + damping * np.eye(size)), mean, world.theta)
    kinds = {"as printed": (members / n, False), "with the weight decay": (members / n, True),
             "nothing taken out": (np.zeros(len(members)), False)}
    def gradient_alone(taken: np.ndarray, decay: bool) -> np.ndarray:
        along = world.gradients @ (mean + decay * world.weight_decay * world.theta)
        return iha.stationarity(along, (world.gradients**2).sum(1), taken, n)

    return pd.DataFrame([{"gradient of the others": name, "AUC of I1 + I2": float(metrics.auc(iha.combine(
        world.losses, iha.split(found, taken, n, 0.01, 0.9, world.weight_decay, stationary=decay), 0.01, 0.9, ("I1", "I2")),
        members)), "AUC of the gradient alone": float(metrics.auc(gradient_alone(taken, decay), members))}
        for name, (taken, decay) in kinds.items()])
