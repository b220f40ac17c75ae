"""Tables and figures of the chapter on the inverse Hessian attack, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mia_book.chapters.iha import study, theory
from mia_book.chapters.iha.study import (
    ALONE,
    BOTH,
    CG,
    FLAGS,
    IHA,
    LEARNED,
    LIRA,
    LOSS,
    NOTHING,
    PAPER,
    RMIA,
    SELF,
    SIF,
    TITLE_OF,
)
from mia_book.evidence import results
from mia_lib import attacks, drawing, metrics
from mia_lib.attacks import Needs, baselines, iha
from mia_lib.data import Dataset

METRIC_OF = {
    "auc": "auc",
    "tpr_at_fpr_1pct": "tpr_at_fpr=0.01",
    "tpr_at_fpr_0.1pct": "tpr_at_fpr=0.001",
}
EVERYTHING = "all other records and their membership, and how the model was trained"


def printed(table: str) -> pd.DataFrame:
    """Numbers of one of the paper's tables in our terms, in percent: columns attack, data, setting, metric, value."""
    rows = results.paper("iha", table)
    rows = rows[rows["metric"].isin(METRIC_OF)]
    return rows.assign(
        attack=rows["attack"].str.replace(" (Exact)", ""),
        data=rows["dataset"],
        metric=rows["metric"].map(METRIC_OF),
        value=rows["value"].astype(float) * np.where(rows["unit"] == "fraction", 100, 1),
    )


# ------------------------------------------------------------------------------------------------------------- tables


def access_table() -> pd.DataFrame:
    """Table 1: each attack's threat model, as the functions declare it and in the paper."""
    needs = attacks.threat_model(
        {
            LOSS: Needs("loss", "none", "nothing"),
            SIF: baselines.self_influence.needs,
            LIRA: baselines.lira_online,
            "L-attack": replace(baselines.attack_r.needs, knows=EVERYTHING),
            "LiRA-L": replace(baselines.lira_offline.needs, knows=EVERYTHING),
            IHA: iha.combine,
            ALONE: iha.stationarity,
        }
    )
    theirs = results.paper("iha", "table1").set_index(["attack", "metric"])["value"]
    for word, metric in (
        ("white-box", "white_box_access"),
        ("references", "uses_reference_models"),
        ("leave-one-out", "leave_one_out_knowledge"),
    ):
        marks = [theirs.get((name, metric)) for name in needs["attack"]]
        needs[f"paper: {word}"] = [
            results.DASH if mark is None else "yes" if mark else "no" for mark in marks
        ]
    return needs


def table_2(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 2: the paper's attacks, then ours, a row for each data set and attack."""
    rows = frame[frame["study"] == "attacks"]
    rows = pd.concat(
        [
            rows[(rows["data"] == data) & (rows["attack"] == name)]
            for data in rows["data"].unique()
            for name in (*PAPER, RMIA, SELF, BOTH)
        ]
    )
    columns = {(metric,): title for metric, title in TITLE_OF.items()}
    return results.percent_table(rows, ["data", "attack"], ("metric",), columns, printed("table2"))


def table_3(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 3: the exact inverse and conjugate gradients, with the iterations that they took."""
    rows = frame[frame["study"] == "solver"]
    auc = rows[rows["metric"] == "auc"]
    table = results.percent_table(
        auc, ["data", "attack"], ("metric",), {("auc",): "AUC"}, printed("table3")
    )
    taken = rows[rows["metric"] == "iterations"].groupby("data")["value"].mean()
    return table.assign(
        iterations=[
            results.cell(taken[data], ".1f") if name == CG else results.DASH
            for data, name in table.index
        ]
    )


def table_4(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 4: parts of the score on each data set, then scores that are no part of it, and the
    paper's on Purchase-100(S)."""
    rows, strict = (frame[frame["study"] == study] for study in ("terms", "parts"))
    metric_of = {title: metric for metric, title in TITLE_OF.items()}
    strict = strict.assign(metric=strict["by"].map(metric_of))
    rows = pd.concat([rows, strict[strict["metric"] == study.METRICS[2]]])
    theirs = printed("table4")
    theirs = theirs.assign(
        attack=theirs["setting"].str.removeprefix("terms used: ").replace("All", "all")
    )
    columns = {
        (data, metric): f"{data}: {title}"
        for data in rows["data"].unique()
        for metric, title in TITLE_OF.items()
    }
    table = results.percent_table(rows, "attack", ("data", "metric"), columns).rename_axis("terms")
    for metric, title in TITLE_OF.items():
        values = theirs[theirs["metric"] == metric].set_index("attack")["value"]
        table[f"Purchase-100(S): {title}, paper"] = results.paper_cells(values, table.index)
    return table


def section_4_4(frame: pd.DataFrame) -> pd.DataFrame:
    """AUC of attacks on the same records, of which most know all others; and the paper's on Purchase-100(S)."""
    rows = frame[frame["study"] == "left out"]
    rows = rows[rows["metric"] == "auc"] if len(rows) else rows
    theirs = printed("text")
    theirs = theirs[theirs["setting"].str.startswith("Sec. 4.4") & (theirs["metric"] == "auc")]
    values = theirs.set_index("attack")["value"]
    names = [*rows["attack"].unique(), *values.index] if len(rows) else values.index
    table = pd.DataFrame(index=pd.Index(dict.fromkeys(names), name="attack"))
    if len(rows):
        columns = {(name,): name for name in rows["data"].unique()}
        table = table.join(results.percent_table(rows, "attack", ("data",), columns))
    return table.assign(**{"Purchase-100(S), paper": results.paper_cells(values, table.index)})


def table_5(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 5: by the rate of false alarms, on which share of the members two attacks make the same call beyond chance; on
    Purchase-100(S) chance follows from the true positive rates that the paper prints."""
    rows = frame[(frame["study"] == "agreement") & (frame["metric"] == "beyond chance")]
    columns = {
        (rate, data): f"{100 * rate:g} %: {data}"
        for rate in study.RATES
        for data in rows["data"].unique()
    }
    table = results.percent_table(rows, "attack", ("rate", "data"), columns)
    theirs = results.paper("iha", "table5").query("metric == 'agreement_members'")
    rates = theirs["setting"].str.extract(r"FPR ~ ([\d.]+)")[0].astype(float)
    for rate, part in theirs.groupby(rates):
        printed_of = part.set_index("attack")["value"].astype(float)
        same, beyond = {}, {}
        for pair, value in printed_of.items():
            one, other = pair.split(" vs ")[:: -1 if pair.endswith(IHA) else 1]
            if other != "GT":
                a, b = printed_of[f"{one} vs GT"], printed_of[f"{other} vs GT"]
                same[f"{one} and {other}"] = value
                beyond[f"{one} and {other}"] = value - a * b - (1 - a) * (1 - b)
        table = table.reindex([*table.index, *(pair for pair in same if pair not in table.index)])
        for words, values in (("same call", same), ("beyond chance", beyond)):
            table[f"{100 * rate:g} %: Purchase-100(S), {words}, paper"] = [
                results.cell(100 * values[pair], ".1f", "%") if pair in values else np.nan
                for pair in table.index
            ]
    return table.astype(object).where(table.notna(), results.DASH)


def table_6(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 6, counted: operations in units of 10^12, once and for each record, with 128 models for LiRA; and the paper's
    seconds and megabytes."""
    rows = frame[(frame["study"] == "costs") & frame["metric"].isin(["once", "each"])]
    table = rows.pivot_table(
        index="attack", columns=["data", "metric"], values="value", sort=False
    ).map(lambda value: results.cell(1e-12 * value, ".3g"))
    words = {"once": "once", "each": "each record"}
    table.columns = [f"{data}: {words[metric]}" for data, metric in table.columns]
    theirs = results.paper("iha", "table6").replace({"attack": {"IHA (Approx)": CG}})
    theirs = theirs.set_index(["attack", "metric"])["value"].astype(float)
    for metric, word in (
        ("time_precompute", "seconds once"),
        ("time_per_sample", "seconds each record"),
        ("memory_max", "MB"),
    ):
        table[f"Purchase-100: {word}, paper"] = [
            results.cell(theirs[name, metric], ",g") for name in table.index
        ]
    return table


def table_7(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 7: attacks by the number of members a network has, and the paper's on two sizes of Purchase-100."""
    rows = frame[frame["study"] == "sizes"].sort_values("metric", kind="stable")
    columns = {(size,): f"{size:,.0f} members" for size in rows["size"].unique()}
    table = results.percent_table(rows, ["metric", "attack"], ("size",), columns)
    theirs = printed("table7").query("model == 'MLP-2 (32 hidden)'")
    theirs = theirs.set_index(["data", "metric", "attack"])["value"]
    for data, size in (("Purchase-100(S)", 25_000), ("Purchase-100", 80_000)):
        table[f"{data}, {size:,} members, paper"] = results.paper_cells(theirs[data], table.index)
    return table.rename(index=TITLE_OF, level="metric")


def learned_table(frame: pd.DataFrame) -> pd.DataFrame:
    """The audit as released and as learned, with the weight decay, and without a Hessian, with the constants that most
    targets have."""
    rows = frame[frame["study"] == "learned"]
    titles = list(TITLE_OF.values())[:2]
    table = results.percent_table(
        rows, ["data", "attack"], ("by",), {(title,): title for title in titles}
    )
    chosen = rows.drop_duplicates(["data", "by"]).set_index(["data", "by"])["choice"]
    for title in titles:
        table[f"learned for {title}"] = [
            chosen[data, title] if name == LEARNED else results.DASH for data, name in table.index
        ]
    return table


def table_8(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 8: AUC by conditioning, and that of the score without the loss."""
    rows = frame[frame["study"] == "conditioning"]
    theirs = printed("table8").assign(loss="added")
    how = theirs["setting"].str.extract(r"(low-rank|damping); eps = ([\d.]+)")
    theirs = theirs.assign(way=how[0].replace("low-rank", "low rank"), epsilon=how[1].astype(float))
    columns = {
        (data, loss): f"{data}, loss {loss}"
        for data in rows["data"].unique()
        for loss in rows["loss"].unique()
    }
    return results.percent_table(rows, ["way", "epsilon"], ("data", "loss"), columns, theirs)


def table_9(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 9: AUC by the known fraction of the training set, and the paper's on Purchase-100(S)."""
    rows = frame[frame["study"] == "partial"].sort_values("fraction", kind="stable")
    theirs = printed("table9").query("metric == 'auc'")
    known = theirs["setting"].str.extract(r"L0 = ([\d.]+)")[0].astype(float)
    values = theirs.set_index(known)["value"]
    columns = {
        (data, rule): f"{data}: {rule}"
        for data in rows["data"].unique()
        for rule in rows["rule"].unique()
    }
    table = results.percent_table(rows, "fraction", ("data", "rule"), columns)
    table["Purchase-100(S): as released, paper"] = results.paper_cells(values, table.index)
    return table.rename(index=lambda part: f"{100 * part:g} %")


# ------------------------------------------------------------------------------------------------------------ figures


def renamed(rows: pd.DataFrame, columns: list[str], names: Mapping[tuple, str]) -> pd.DataFrame:
    """Rows whose values of the columns are in `names`, with these names as their attacks."""
    return rows.assign(
        attack=[names.get(pair) for pair in rows[columns].itertuples(index=False, name=None)]
    ).dropna(subset="attack")


def self_figure(frame: pd.DataFrame) -> Figure:
    """AUC of LiRA against the number of references, without the target among them and with it; the
    paper's, from 127 models with the target, as hollow marks where there are 126 others."""
    rows = metrics.summary(
        frame[frame["study"] == "self"], ["data", "attack", "metric", "references"]
    )
    theirs = (
        printed("table2")
        .query("attack == @LIRA")
        .assign(paper=lambda table: table["value"] / 100, attack=SELF, references=126)
    )
    rows = rows.merge(theirs[["data", "attack", "metric", "references", "paper"]], "left")
    return drawing.lineplot(
        renamed(rows, ["attack"], {(LIRA,): LIRA, (SELF,): "with the target"}),
        "references",
        "value",
        "attack",
        panel="data",
        log=True,
        paper="paper",
        xlabel="references",
        ylabel="AUC",
        chance=0.5,
    )


def dots(rows: pd.DataFrame) -> Figure:
    """AUC of attacks with intervals, a panel for each data set and a row for each attack; the paper's as hollow marks."""
    shown = metrics.summary(rows[rows["metric"] == "auc"], ["data", "attack", "metric"])
    theirs = printed("table2").assign(paper=lambda rows: rows["value"] / 100)
    shown = shown.merge(theirs[["data", "attack", "metric", "paper"]], "left")
    names = list(shown["attack"].unique())[::-1]
    sets = list(shown["data"].unique())
    figure, axes = drawing.panels(sets, 1.3 + 0.34 * len(names), sharey=True)
    for axis, data in zip(axes, sets, strict=True):
        for row in shown[shown["data"] == data].itertuples():
            place = names.index(row.attack)
            look = drawing.style_of(row.attack, place)
            axis.plot([row.low, row.high], [place, place], color=look["color"], lw=1.6)
            axis.plot(row.value, place, **look | {"linestyle": "none", "ms": 7})
            axis.plot(row.paper, place - 0.3, marker="o", mec=look["color"], **drawing.HOLLOW)
        axis.axvline(0.5, **drawing.CHANCE)
        axis.set(xlabel="AUC", ylim=(-0.6, len(names) - 0.6))
        drawing.ticks(axis.yaxis, range(len(names)), names)
    return figure


def lead_figure(frame: pd.DataFrame) -> Figure:
    """AUC of the loss, of LiRA, and of the audit as released and as learned."""
    rows = frame[frame["study"].isin(["attacks"]) & frame["attack"].isin([LOSS, LIRA, IHA])]
    learned = frame[(frame["study"] == "learned") & (frame["attack"] == LEARNED)]
    learned = learned[learned["by"] == TITLE_OF["auc"]].assign(metric="auc")
    return dots(pd.concat([rows, learned]))


def told_figure(frame: pd.DataFrame) -> Figure:
    """AUC of IHA by the membership that it is told."""
    rows = frame[(frame["study"] == "told") & (frame["attack"] == IHA)]
    words = {
        ("membership", "membership"): IHA,
        ("random flags", "flags"): FLAGS,
        ("nothing", "membership"): NOTHING,
    }
    return dots(renamed(rows, ["told", "judged"], words))


def roc(sets: Mapping[str, tuple[Mapping[str, np.ndarray], np.ndarray]]) -> Figure:
    """Figure 1: ROC on logarithmic axes, the mean TPR over targets, a panel a data set; what Table 2 of the paper prints as
    hollow marks. Axes begin where one record counts.

    Args:
        sets: data -> scores by attack [T, N], and members bool [T, N].
    """
    figure, axes = drawing.panels(list(sets), 3.6, "true positive rate (logarithmic)")
    theirs = printed("table2")
    theirs["rate"] = theirs["metric"].str.partition("=")[2].replace("", "0").astype(float)
    for axis, (data, (scores, members)) in zip(axes, sets.items(), strict=True):
        low = 1 / (~members).sum(1).min()
        grid = np.geomspace(low, 1, 300)
        for place, name in enumerate((*PAPER, RMIA)):
            tpr = drawing.rates_at(grid, scores[name], members).mean(0)
            axis.plot(
                grid,
                np.maximum(tpr, low / 10),
                label=name,
                **drawing.style_of(name),
                **drawing.sparse_markers(place, len(grid)),
            )
        axis.plot([low, 1], [low, 1], label="chance", **drawing.CHANCE)
        for row in theirs[(theirs["data"] == data) & theirs["rate"].gt(0)].itertuples():
            look = drawing.style_of(row.attack)
            axis.plot(row.rate, row.value / 100, marker="o", mec=look["color"], **drawing.HOLLOW)
        axis.set(
            xscale="log",
            yscale="log",
            xlim=(low, 1),
            ylim=(low, 1),
            box_aspect=1,
            xlabel="false positive rate",
        )
    drawing.legend(figure, 3, marks={drawing.PRINTED: drawing.hollow()})
    return figure


def epochs_figure(frame: pd.DataFrame) -> Figure:
    """AUC against the number of epochs, each along a whole cosine, a panel for each data set with several."""
    rows = frame[frame.groupby("data")["epochs"].transform("nunique") > 1]
    return drawing.lineplot(
        metrics.summary(rows, ["data", "epochs", "attack", "metric"]).astype({"epochs": int}),
        "epochs",
        "value",
        "attack",
        panel="data",
        log=True,
        xlabel="epochs of training",
        ylabel="AUC",
        chance=0.5,
    )


# ------------------------------------------------------------------------------------------------- two parameters to look at


class Idea(NamedTuple):
    """Ends of SGD on a regression with two parameters, with and without one record. `others` is the
    world without it; `minima` [2, 2] and `ends` [2, chains, 2] have those with the record first;
    `nearer` [2] is the share of the ends that is nearer to its own minimum than to the other."""

    others: theory.LinearWorld
    minima: np.ndarray
    ends: np.ndarray
    nearer: np.ndarray


def idea(records: Dataset, columns: Sequence[int], chains: int = 300, seed: int = 0) -> Idea:
    """A linear regression of the class on two columns of the first 24 records of a table with two classes, and the ends of so
    many runs of SGD, `chains`, with and without the most influential record."""
    x, y = records.x[:24, list(columns)].astype(float), 2.0 * records.y[:24] - 1
    world = theory.LinearWorld((x - x.mean(0)) / x.std(0), y)
    without = [theory.LinearWorld(np.delete(world.x, k, 0), np.delete(y, k)) for k in range(len(y))]
    others = max(without, key=lambda rest: np.linalg.norm(rest.optimum() - world.optimum()))
    ends = np.stack(
        [of.ends(8, 0.02, 0.5, chains, 1000, seed + k) for k, of in enumerate((world, others))]
    )
    minima = np.stack([world.optimum(), others.optimum()])
    far = np.linalg.norm(ends[:, :, None] - minima, axis=-1)  # [2, chains, 2]
    return Idea(
        others,
        minima,
        ends,
        np.array([(own < other).mean() for own, other in (far[0].T, far[1].T[::-1])]),
    )


def idea_figure(picture: Idea) -> Figure:
    """Two parameters, a quadratic loss: from where SGD ended, to which minimum is it nearer?"""
    points = np.concatenate(
        [picture.minima, *(np.quantile(ends, [0.01, 0.99], axis=0) for ends in picture.ends)]
    )
    middle, reach = (points.max(0) + points.min(0)) / 2, 0.6 * np.ptp(points, axis=0).max()
    grid = np.stack(np.meshgrid(*(np.linspace(m - reach, m + reach, 120) for m in middle)), -1)
    heights = picture.others.losses(grid).mean(-1)
    figure, axes = drawing.panels(
        ["trained with the record", "trained without it"], 4.7, "second parameter", sharey=True
    )
    for axis, ends, kind in zip(axes, picture.ends, ("members", "non-members"), strict=True):
        axis.contour(grid[..., 0], grid[..., 1], heights, 9, colors=drawing.FAINT, linewidths=0.7)
        axis.plot(*ends.T, ".", color=drawing.STYLE[kind]["color"], ms=4, mew=0, alpha=0.5)
        for place, (word, minimum, side) in enumerate(
            zip(("with", "without"), picture.minima, ("members", "non-members"), strict=True)
        ):
            look = drawing.STYLE[side]
            axis.annotate(
                "",
                minimum,
                ends[0],
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": drawing.INK,
                    "lw": 1.6,
                    "ls": look["linestyle"],
                    "shrinkA": 0,
                    "shrinkB": 0,
                },
            )
            axis.plot(
                *minimum,
                look["marker"],
                color=look["color"],
                ms=10,
                mec=drawing.INK,
                zorder=4,
                label=f"minimum {word} the record $w_{1 - place}^*$",
            )
        axis.plot(*ends[0], "*", color=drawing.INK, ms=12, label="one end of SGD")
        axis.set(
            xlabel="first parameter",
            box_aspect=1,
            xlim=(middle[0] - reach, middle[0] + reach),
            ylim=(middle[1] - reach, middle[1] + reach),
        )
        axis.grid(False)
    drawing.legend(figure, 3)
    return figure
