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
    CG,
    DECAY,
    FIXED,
    FLAGS,
    IHA,
    LIRA,
    LOSS,
    NOTHING,
    PAIR,
    PAPER,
    RMIA,
    SELF,
    SIF,
)
from mia_book.evidence import results
from mia_lib import attacks, drawing, metrics
from mia_lib.attacks import Needs, baselines, iha
from mia_lib.data import Dataset

TITLE_OF = {"auc": "AUC", "tpr_at_fpr=0.01": "TPR at 1 %", "tpr_at_fpr=0.001": "TPR at 0.1 %"}
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
            for name in (*PAPER, RMIA, FIXED, SELF)
        ]
    )
    columns = {(metric,): title for metric, title in TITLE_OF.items()}
    return results.percent_table(rows, ["data", "attack"], ("metric",), columns, printed("table2"))


def table_3(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 3: the exact inverse and conjugate gradients, with the iterations that they took."""
    rows = frame[frame["study"] == "solver"]
    auc = rows[rows["metric"] == "auc"]
    made = results.percent_table(
        auc, ["data", "attack"], ("metric",), {("auc",): "AUC"}, printed("table3")
    )
    taken = rows[rows["metric"] == "iterations"].groupby("data")["value"].mean()
    return made.assign(
        iterations=[
            results.cell(taken[data], ".1f") if name == CG else results.DASH
            for data, name in made.index
        ]
    )


def table_4(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 4: parts of the score on each data set, then scores that are no part of it, and the
    paper's on Purchase-100(S)."""
    rows = frame[frame["study"] == "terms"]
    theirs = printed("table4")
    theirs = theirs.assign(
        attack=theirs["setting"].str.removeprefix("terms used: ").replace("All", "all")
    )
    columns = {
        (data, metric): f"{data}: {TITLE_OF[metric]}"
        for data in rows["data"].unique()
        for metric in study.METRICS[:2]
    }
    made = results.percent_table(rows, "attack", ("data", "metric"), columns).rename_axis("terms")
    for metric in study.METRICS[:2]:
        values = theirs[theirs["metric"] == metric].set_index("attack")["value"]
        made[f"Purchase-100(S): {TITLE_OF[metric]}, paper"] = [
            results.cell(values[name], ".1f", "%") if name in values else results.DASH
            for name in made.index
        ]
    return made


def table_6(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 6, counted: operations in units of 10^12 of attacks on 1,000 records of one target; LiRA with 128 models."""
    rows = frame[
        (frame["study"] == "costs") & frame["metric"].isin(["once", "each", "1,000 records"])
    ]
    made = rows.pivot_table(index=["data", "attack"], columns="metric", values="value", sort=False)
    return made.map(lambda value: results.cell(1e-12 * value, ".3g")).rename(
        columns={"each": "each record"}
    )


def table_7(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 7: attacks by the number of members a network has, a row for each number and attack."""
    rows = frame[frame["study"] == "sizes"]
    titles = {(metric,): TITLE_OF[metric] for metric in study.METRICS[:2]}
    rows = rows.assign(members=rows["size"].map("{:,.0f}".format))
    return results.percent_table(rows, ["members", "attack"], ("metric",), titles)


def table_8(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 8: AUC by conditioning, and that of the score without the loss."""
    rows = frame[frame["study"] == "conditioning"]
    theirs = printed("table8")
    how = theirs["setting"].str.extract(r"(low-rank|damping); eps = ([\d.]+)")
    theirs = theirs.assign(way=how[0].replace("low-rank", "low rank"), epsilon=how[1].astype(float))
    columns = {
        (data, attack): f"{data}: {attack}"
        for data in rows["data"].unique()
        for attack in rows["attack"].unique()
    }
    return results.percent_table(rows, ["way", "epsilon"], ("data", "attack"), columns, theirs)


def table_9(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 9: AUC by the known fraction of the training set, and the paper's on Purchase-100(S)."""
    rows = frame[frame["study"] == "partial"].sort_values("fraction", kind="stable")
    theirs = printed("table9").query("metric == 'auc'")
    values = dict(
        zip(
            theirs["setting"].str.extract(r"L0 = ([\d.]+)")[0].astype(float),
            theirs["value"],
            strict=True,
        )
    )
    columns = {
        (data, rule): f"{data}: {rule}"
        for data in rows["data"].unique()
        for rule in rows["rule"].unique()
    }
    made = results.percent_table(rows, "fraction", ("data", "rule"), columns)
    made["Purchase-100(S): as released, paper"] = [
        results.cell(values[part], ".1f", "%") if part in values else results.DASH
        for part in made.index
    ]
    return made.rename(index=lambda part: f"{100 * part:g} %")


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


def told_figure(frame: pd.DataFrame) -> Figure:
    """AUC of IHA by the membership that it is told, and of LiRA, on each data set; the paper's as
    hollow marks."""
    rows = frame[(frame["study"] == "told") & (frame["attack"] == IHA)]
    rows = renamed(
        rows,
        ["told", "judged"],
        {
            ("membership", "membership"): IHA,
            ("random flags", "flags"): FLAGS,
            ("nothing", "membership"): NOTHING,
        },
    )
    rows = pd.concat([rows, frame[(frame["study"] == "attacks") & (frame["attack"] == LIRA)]])
    shown = metrics.summary(rows[rows["metric"] == "auc"], ["data", "attack", "metric"])
    theirs = printed("table2").assign(paper=lambda rows: rows["value"] / 100)[
        ["data", "attack", "metric", "paper"]
    ]
    shown = shown.merge(theirs, "left", ["data", "attack", "metric"])
    figure = drawing.lineplot(
        shown, "data", "value", "attack", paper="paper", xlabel="", ylabel="AUC", chance=0.5
    )
    figure.axes[0].set_xlabel("")
    for line in figure.axes[0].lines:
        if line.get_marker() not in ("", "None", None):  # data sets are no sequence
            line.set_linestyle("none")
    return figure


def roc(sets: Mapping[str, tuple[Mapping[str, np.ndarray], np.ndarray]]) -> Figure:
    """Figure 1: ROC on logarithmic axes, the mean TPR over targets, a panel a data set. Axes begin where one record counts.

    Args:
        sets: data -> scores by attack [T, N], and members bool [T, N].
    """
    figure, axes = drawing.panels(list(sets), 3.6, "true positive rate (logarithmic)")
    for axis, (scores, members) in zip(axes, sets.values(), strict=True):
        low = 1 / (~members).sum(1).min()
        grid = np.geomspace(low, 1, 300)
        for place, name in enumerate((*PAPER, RMIA)):
            each = []
            for score, inside in zip(scores[name], members, strict=True):
                fpr, tpr, _ = metrics.roc_curve(score, inside)
                each.append(tpr[np.searchsorted(fpr, grid * (1 + 1e-12), side="right") - 1])
            axis.plot(
                grid,
                np.maximum(np.mean(each, 0), low / 10),
                label=name,
                **drawing.style_of(name),
                **drawing.sparse_markers(place, len(grid)),
            )
        axis.plot([low, 1], [low, 1], label="chance", **drawing.CHANCE)
        axis.set(
            xscale="log",
            yscale="log",
            xlim=(low, 1),
            ylim=(low, 1),
            box_aspect=1,
            xlabel="false positive rate",
        )
    drawing.legend(figure, 3)
    return figure


def epochs_figure(frame: pd.DataFrame) -> Figure:
    """AUC against the number of epochs, each along a whole cosine, a panel for each data set."""
    rows = frame[(frame["study"] == "epochs") & (frame["metric"] == "auc")]
    rows = renamed(
        rows,
        ["attack", "told"],
        {
            (IHA, "membership"): IHA,
            (PAIR, "random flags"): FLAGS,
            (ALONE, "membership"): ALONE,
            (DECAY, "membership"): DECAY,
            (LOSS, "membership"): LOSS,
        },
    )
    shown = metrics.summary(rows, ["data", "epochs", "attack", "metric"]).sort_values(
        "epochs", kind="stable"
    )
    return drawing.lineplot(
        shown.astype({"epochs": int}),
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
