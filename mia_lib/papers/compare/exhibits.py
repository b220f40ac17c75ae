"""Tables and figures of the chapter that compares attacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mia_lib import metrics
from mia_lib.attacks import Needs, registry, threat_model
from mia_lib.evidence import plotting
from mia_lib.evidence import tables as results
from mia_lib.papers.compare import study
from mia_lib.papers.compare.study import ATTACKS, Case, Scores

TITLE_OF = {"auc": "AUC", "tpr_at_fpr=0.01": "TPR at 1 %", "tpr_at_fpr=0.001": "TPR at 0.1 %"}
DRAWN = ("RMIA", "RMIA, offline", "MAST (softmin)", "calibrated loss", "LiRA", "LiRA, offline", "Curv, log ratio", "MALT")
KNOWS = {"none": "–", "out only": "without", "in and out": "both"}  # references with the record, and without it
BESIDE = ("MALT", "RMIA", "LiRA", "MAST (softmin)", "Curv, log ratio")  # that a reader can choose between


def table(frame: pd.DataFrame, index: str | list[str], by: tuple[str, ...], columns: Mapping[tuple, str]) -> pd.DataFrame:
    """Results in percent, a row each value of `index`, a column each of `columns`, values of `by` -> title."""
    columns_of_index = [index] if isinstance(index, str) else index
    rows = metrics.summary(frame, list(dict.fromkeys([*columns_of_index, *by, "attack", "metric"])))
    return results.beside_paper(rows, rows.iloc[:0], index, columns, by)


def by_data(rows: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(data, metric) -> title of a column."""
    return {(data, metric): f"{data}: {TITLE_OF[metric]}" for data in rows["data"].unique() for metric in study.METRICS}


def of_banks(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows on attacks on banks, and on networks that know their members by heart."""
    return frame[frame["study"].isin(["bank", "by heart"])]


def main_table(frame: pd.DataFrame, count: int, metric: str = study.METRICS[1]) -> pd.DataFrame:
    """Every attack with so many references or none: one metric on each set, in percent."""
    rows = of_banks(frame)
    rows = rows[rows["references"].isin([0, count])]
    rows = rows.astype({"queries": int, "references": int})
    made = table(rows, ["attack", "references", "queries"], ("data", "metric"), {
        (data, metric): data for data in rows["data"].unique()})
    knows = [KNOWS[ATTACKS[name].kind] for name in made.index.get_level_values("attack")]
    return made.set_index(pd.Index(knows, name="trained"), append=True).reorder_levels([0, 3, 1, 2])


def references_figure(frame: pd.DataFrame) -> Figure:
    """TPR at 1 % FPR against the number of references, a panel each set; what has none is drawn across."""
    rows = metrics.summary(of_banks(frame).query("metric == 'tpr_at_fpr=0.01'"), ["data", "references", "attack", "metric"])
    counts = sorted(set(rows["references"]) - {0})
    alone = rows[rows["references"] == 0]
    across = [alone.assign(references=n) for n in counts]
    shown = pd.concat([rows[rows["references"] > 0], *across])
    shown = pd.concat([shown[shown["attack"] == name] for name in DRAWN]).sort_values("references", kind="stable")
    order = {data: place for place, data in enumerate(rows["data"].unique())}
    shown = shown.sort_values("data", key=lambda data: data.map(order), kind="stable")
    return plotting.lineplot(shown, "references", "value", "attack", panel="data", log=True, percent=True, sharey=False,
                             xlabel="references of a record", ylabel="TPR at 1 % FPR")


def ranking_figure(frame: pd.DataFrame, count: int, rival: str = "RMIA") -> Figure:
    """How many points of TPR at 1 % FPR each attack is from one of them, paired, with as many references, a panel each set."""
    rows = of_banks(frame)
    rows = rows[rows["references"].isin([0, count]) & (rows["metric"] == study.METRICS[1])]
    leads: dict[str, dict] = {}
    for data, part in rows.groupby("data", sort=False):
        first = metrics.estimate(part, rival, study.METRICS[1])
        leads[data] = {name: 100 * (metrics.estimate(part, name, study.METRICS[1]) - first).interval()
                       for name in part["attack"].unique() if name != rival}
    first = next(iter(leads.values()))
    names = sorted(first, key=lambda name: first[name].value)
    figure, axes = plotting.panels(list(leads), 0.28 * len(names) + 1.2)
    for axis, of_panel in zip(axes, leads.values(), strict=True):
        for place, name in enumerate(names):
            if name in of_panel:
                look = plotting.style_of(name, place)
                value, low, high = of_panel[name].value, of_panel[name].low, of_panel[name].high
                axis.errorbar(value, place, xerr=[[value - low], [high - value]], fmt=look["marker"], color=look["color"])
        axis.axvline(0, **plotting.CHANCE)
        axis.set(yticks=range(len(names)), yticklabels=names if axis is axes[0] else [""] * len(names),
                 xlabel=f"points from {rival}")
        axis.grid(axis="y", visible=False)
    return figure


def by_references_table(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """Studies "tables" and "public": a row a set, an attack and a number of references."""
    rows = frame[frame["study"] == what]
    columns = {(metric,): TITLE_OF[metric] for metric in TITLE_OF if metric in set(rows["metric"])}
    return table(rows, ["data", "references", "attack"], ("metric",), columns)


def sharing_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One reference that shares half of the target's members, and one that shares none."""
    rows = frame[frame["study"] == "sharing"]
    columns = {(metric, overlap): f"{TITLE_OF[metric]}: shares {overlap}"
               for metric in study.SHARP[1:] for overlap in ("half", "nothing")}
    return table(rows, ["data", "attack"], ("metric", "overlap"), columns)


def parameters_table(frame: pd.DataFrame) -> pd.DataFrame:
    """The norm of the gradient beside the loss."""
    rows = frame[frame["study"] == "parameters"]
    return table(rows, "attack", ("data", "metric"), by_data(rows))


def again_table(frame: pd.DataFrame) -> pd.DataFrame:
    """How much more often than others a record is called again that was called under another target, in points."""
    rows = frame[frame["study"] == "again"]
    columns = {(side,): f"{side} called, again" for side in ("members", "others")}
    return table(rows, ["data", "attack"], ("side",), columns)


def regimes_table(cases: Iterable[Case]) -> pd.DataFrame:
    """What the targets are: how many records trained each, and how often they are right."""
    return pd.DataFrame([{
        "models of": case.name, "how many": len(case.members),
        "members each": "25,000" if case.study == "bank" else "2,000",
        **{f"right on {side} (%)": results.format_percent(value) for side, value in zip(
            ("members", "others"), case.accuracy.mean(0), strict=True)}} for case in cases])


def access_table() -> pd.DataFrame:
    """The threat models, as declared where the attacks are computed, and whose attacks they are."""
    known: dict[str, Needs] = {name: entry.attack.needs for name, entry in ATTACKS.items() if entry.reads is None}
    made = threat_model({**known, "quantile regression": registry.REGRESSION,
                          "gradient norm": registry.ATTACKS["gradient norm"].needs})
    sources = {name: entry.attack.source for name, entry in ATTACKS.items()} | {
        "quantile regression": registry.BERTRAN, "gradient norm": registry.WATSON}
    return made.assign(source=[f"{{cite}}`{sources[name]}`" for name in made["attack"]])


def beside(cases: Iterable[Case], scores: Iterable[Scores], count: int) -> dict[str, tuple[dict, np.ndarray]]:
    """Scores of `BESIDE` and who is a member, by set, for the picture of two attacks."""
    pairs = {}
    for case, of_case in zip(cases, scores, strict=True):
        by_name = {**of_case[0], **of_case[count]}
        targets = len(next(iter(by_name.values())))
        pairs[case.name] = ({name: by_name[name] for name in BESIDE if name in by_name}, case.members[:2 * targets:2])
    return pairs
