"""Tables and figures of the chapter on input loss curvature, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from mia_book.chapters.curvature import study
from mia_book.evidence import explore, results
from mia_book.evidence.figures import altair as alt
from mia_lib import drawing, metrics
from mia_lib.data import Dataset, sets
from mia_lib.published import Bank

# of the paper's tables
SETS = {"CIFAR100": "cifar100", "CIFAR10": "cifar10", "ImageNet": "imagenet"}
OURS = {name: ours for ours, name in study.PAPER.items()}  # of attacks, by the paper's names
TITLE_OF = {
    "auc": "AUC",
    "balanced_accuracy": "accuracy",
    "tpr_at_fpr=0.01": "TPR at 1 %",
    "tpr_at_fpr=0.001": "TPR at 0.1 %",
    "tpr_at_fpr=0.0001": "TPR at 0.01 %",
}


def name_of(data: str) -> str:
    """Name of a data set as it is written in tables."""
    return "4,000 images of CIFAR-100" if data == study.MEMORISED else sets.title(data)


def printed(*tables: str) -> pd.DataFrame:
    """Numbers of the paper's tables in our terms: columns attack, data, metric, protocol, value."""
    rows = pd.concat([results.paper("curvature", table) for table in tables], ignore_index=True)
    renamed = {
        "auroc": "auc",
        "tpr_at_fpr_0.1pct": "tpr_at_fpr=0.001",
        "tpr_at_fpr_0.01pct": "tpr_at_fpr=0.0001",
    }
    single = rows["setting"].str.startswith("1 augmentation")
    return rows.assign(
        attack=rows["attack"].map(OURS),
        data=rows["dataset"].map(SETS),
        metric=rows["metric"].replace(renamed),
        protocol=np.where(single, "one view", "as released"),
    )


def stand_in(paper: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The paper's numbers, in which those of CIFAR-100 are renamed to stand beside the networks
    that know 2,000 of its images by heart, if `rows` have no others on it."""
    names = set(rows["data"])
    if study.MEMORISED not in names or "cifar100" in names:
        return paper
    return paper.replace({"data": {"cifar100": study.MEMORISED}})


def by_data(frame: pd.DataFrame, measures: Sequence[str]) -> dict[tuple[str, str], str]:
    """Titles of columns: (data, metric) -> title."""
    return {
        (data, metric): f"{name_of(data)}: {TITLE_OF[metric]}"
        for data in frame["data"].dropna().unique()
        for metric in measures
    }


def figure_4(scores: Mapping[str, np.ndarray], members: np.ndarray) -> Figure:
    """Figure 4: ROC of all eight methods as released and of LiRA as in its own paper, with the points of Table 5."""
    theirs = printed("table5").query("protocol == 'as released' and metric == 'tpr_at_fpr=0.001'")
    points = {
        row.attack: [(0.001, row.value / 100)]
        for row in theirs.itertuples()
        if row.attack in drawing.STYLE
    }
    return drawing.roc(
        {name: scores[name] for name in (*study.PAPER, study.FIXED)},
        members,
        points,
        "paper, TPR at 0.1 %",
        band=False,
    )


def table_one(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 1: the paper's eight methods, then ours, AUC and balanced accuracy at the best
    threshold, a row for each data set and attack."""
    rows = frame[(frame["study"] == "methods") & (frame["protocol"] == "as released")]
    columns = {(metric,): TITLE_OF[metric] for metric in ("auc", "balanced_accuracy")}
    rows = rows[rows["attack"] != study.CURVATURE]
    made = results.percent_table(
        rows, ["data", "attack"], ("metric",), columns, stand_in(printed("table1"), rows)
    )
    return made.rename(index=name_of, level="data")


def views_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Tables 2 to 4: AUC with one view and with two, a row for each data set and attack."""
    rows = frame[(frame["study"] == "methods") & (frame["metric"] == "auc")]
    rows = rows[rows["attack"].isin([study.NLL, study.LR, study.RELEASED, study.RATIO, study.TRUE])]
    titles = {("one view",): "one view", ("as released",): "two views"}
    theirs = stand_in(printed("table2", "table3", "table4"), rows)
    made = results.percent_table(
        rows, ["data", "attack"], ("protocol",), titles, theirs[theirs["metric"] == "auc"]
    )
    return made.rename(index=name_of, level="data")


def table_five(frame: pd.DataFrame, data: str) -> pd.DataFrame:
    """Table 5 on one data set: TPR at low FPR, as released; the paper's with two views."""
    rows = frame[
        (frame["study"] == "methods")
        & (frame["data"] == data)
        & (frame["protocol"] == "as released")
    ]
    theirs = printed("table5").query("protocol == 'as released'")
    columns = {(metric,): TITLE_OF[metric] for metric in study.METRICS if metric.startswith("tpr")}
    return results.percent_table(
        rows[rows["attack"] != study.CURVATURE], "attack", ("metric",), columns, theirs
    )


def queries_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Table of attacks by the number of queries about a record, from few queries to many."""
    rows = (
        frame[frame["study"] == "queries"]
        .sort_values("queries", kind="stable")
        .astype({"queries": int})
    )
    return results.percent_table(
        rows, ["queries", "attack"], ("data", "metric"), by_data(rows, study.FEW)
    )


def signals_table(frame: pd.DataFrame) -> pd.DataFrame:
    """AUC of one likelihood ratio on several signals, and what each needs of the target."""
    rows = frame[frame["study"] == "signals"]
    made = results.percent_table(
        rows, "attack", ("data", "metric"), by_data(rows, ("auc",))
    ).rename_axis("signal")
    return made.set_index(
        pd.Index([study.SIGNALS[name][1] for name in made.index], name="needs"), append=True
    )


def notebooks() -> pd.DataFrame:
    """Numbers in the authors' notebooks behind Figures 6 and 7: columns kind, size, attack, metric
    and paper, a fraction."""
    printed = pd.concat(
        [
            results.paper("curvature", f"{figure}_authors_code").assign(kind=kind)
            for figure, kind in (("fig6", "random"), ("fig7", "coreset"))
        ],
        ignore_index=True,
    )
    size = printed["setting"].str.extract(r"m = (\d+)")[0].astype(int)
    printed = printed.assign(
        attack=printed["attack"].map(OURS),
        metric=printed["metric"].replace({"auroc": "auc"}),
        size=size,
        paper=printed["value"] / 100,
    )
    return printed[["kind", "size", "attack", "metric", "paper"]]


def sizes_figure(frame: pd.DataFrame, figure: int) -> Figure:
    """Figure 6, AUC of attacks against the size of random training sets, or Figure 7, NLL on random
    sets and on coresets. Numbers in the authors' notebooks are hollow marks; for sizes that we did
    not train they stand alone."""
    key = ["kind", "size", "attack", "metric"]
    ours = metrics.summary(frame[frame["study"] == "sizes"], key).astype({"size": int})
    rows = ours.merge(notebooks(), "outer", key).sort_values("size", kind="stable")
    how = {
        "x": "size",
        "y": "value",
        "paper": "paper",
        "log": True,
        "xlabel": "training records",
        "chance": 0.5,
    }
    if figure == 6:
        rows = rows[
            (rows["kind"] == "random")
            & (rows["metric"] == "auc")
            & rows["attack"].isin([study.NLL, study.LR, study.RELEASED, "Yeom"])
        ]
        drawn = drawing.lineplot(rows, by="attack", ylabel="AUC", **how)
    else:
        rows = rows[
            (rows["attack"] == study.NLL) & rows["metric"].isin(["auc", "balanced_accuracy"])
        ]
        rows = rows.assign(panel=rows["metric"].map(TITLE_OF))
        drawn = drawing.lineplot(rows, by="kind", panel="panel", ylabel="NLL", **how)
    for axis in drawn.axes:
        drawing.ticks(axis.xaxis, [500, 2000, 10_000, 45_000], ["500", "2k", "10k", "45k"])
    for text in [
        text
        for legend in drawn.legends
        for text in legend.get_texts()
        if text.get_text() == drawing.PRINTED
    ]:
        text.set_text("the authors' notebooks")
    return drawn


# --------------------------------------------------------------------------------------------------------- single records


def extremes(records: Dataset, curvature: np.ndarray) -> Figure:
    """The eight images of lowest and of highest curvature [N] (Figure 1)."""
    ranked = np.argsort(curvature, kind="stable")
    return drawing.pictures(
        records, {"lowest\ncurvature": ranked[:8], "highest\ncurvature": ranked[:-9:-1]}
    )


def figure_2(curved: Mapping[str, Bank], targets: Sequence[int]) -> Figure:
    """Log curvature of members and of non-members, all targets and images together, a panel a data set (Figure 2).

    Args:
        curved: name of a data set -> bank of `study.measured`.
    """
    return drawing.histograms(
        {
            name_of(name): (
                bank.precise[targets, :, 0].astype(float).ravel(),
                bank.members[targets, : bank.precise.shape[1]].ravel(),
            )
            for name, bank in curved.items()
        },
        xlabel="log curvature",
    )


def figure_3(curved: Bank) -> Figure:
    """Log curvature of single records over all models of `study.measured`, a tick a model, with the two Gaussians (Figure 3).
    Records stand at percentiles of how far their two means lie apart, in standard deviations."""
    percentiles = 10, 50, 90
    log = curved.precise[..., 0].astype(float)
    members = curved.members[:, : log.shape[1]]
    mean, spread = (
        [function(np.where(side, log, np.nan), axis=0) for side in (members, ~members)]
        for function in (np.nanmean, np.nanstd)
    )
    ranked = np.argsort((mean[1] - mean[0]) / np.hypot(*spread))
    figure, axes = drawing.panels(
        [f"{percentile}th percentile" for percentile in percentiles], 3.2, "density"
    )
    for axis, percentile in zip(axes, percentiles, strict=True):
        record = ranked[round(percentile / 100 * (len(ranked) - 1))]
        at = np.linspace(log[:, record].min() - 1, log[:, record].max() + 1, 200)
        for place, (look, side) in enumerate((("members", members), ("non-members", ~members))):
            own, style = log[side[:, record], record], drawing.STYLE[look]
            axis.plot(
                at,
                stats.norm.pdf(at, own.mean(), own.std(ddof=1)),
                color=style["color"],
                ls=style["linestyle"],
                label="models trained on it" if look == "members" else "models not trained on it",
            )
            axis.plot(
                own,
                np.full(len(own), 0.03 + 0.06 * place),
                "|",
                color=style["color"],
                ms=9,
                transform=axis.get_xaxis_transform(),
            )
        axis.set_xlabel("log curvature")
        axis.grid(False)
    drawing.legend(figure, 2)
    return figure


TINY = 1e-12  # of what a logarithmic axis shows


def probe_figure(probed: pd.DataFrame, h: float) -> Figure:
    """The size of the estimate against the step.

    Args:
        probed: of `study.probe_of_stranger`. h: the step that is marked.
    """
    figure, (axis,) = drawing.panels(1, 4.0, width=5.8)
    for style, (name, rows) in zip(("-", ":"), probed.groupby("label", sort=False), strict=False):
        axis.plot(
            rows["h"],
            rows["q"].abs().clip(lower=TINY),
            color=drawing.INK,
            ls=style,
            label=f"|q|, {name}",
        )
    axis.axhline(
        max(abs(probed["product"].iloc[0]), TINY),
        color=drawing.GREEN,
        lw=1.2,
        label="Hessian of the piece",
    )
    axis.axvline(h, color=drawing.INK, lw=1, ls=":")
    axis.set(xscale="log", yscale="log", xlabel="step h", ylabel="|q|")
    drawing.legend(figure, 2)
    return figure


def probe_chart(probed: pd.DataFrame, h: float):
    """The figure of `probe_figure` for readers to move: the step and the label."""
    rows = [
        {
            "label": name,
            "k": k,
            "h": row.h,
            "q": row.q,
            "product": row.product,
            "size": max(abs(row.q), TINY),
        }
        for name, part in probed.groupby("label", sort=False)
        for k, row in enumerate(part.itertuples())
    ]
    labels = list(probed["label"].unique())
    steps = sorted({row["h"] for row in rows})
    start = float(np.log10(min(steps, key=lambda step: abs(np.log(step / h)))))
    power = explore.slider(
        "power",
        round(start, 1),
        round(np.log10(steps[0]), 1),
        round(np.log10(steps[-1]), 1),
        0.1,
        "Step h, power of ten",
    )
    label = explore.choice("given", labels[0], labels, "Loss for")
    asked = alt.Chart(alt.NamedData("rows")).transform_filter("datum.label == given")
    chosen = asked.transform_filter(f"datum.k == round((power - {np.log10(steps[0]):.1f}) * 10)")
    lines = [
        "'Step ' + format(datum.h, '.2~g') + ', four losses: q = ' + format(datum.q, '.3~g')",
        "'Hessian of the piece: ' + format(datum.product, '.3~g')",
    ]
    scale = alt.Scale(type="log", nice=False)
    x = alt.X(
        "h:Q", title="step h", scale=scale, axis=alt.Axis(format=".0e", tickCount=5, grid=False)
    )
    y = alt.Y(
        "size:Q",
        title="|q|",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(format=".0e", tickCount=5, grid=False),
    )
    curve = asked.mark_line(color=drawing.INK, strokeWidth=2, aria=False).encode(x, y)
    point = chosen.mark_point(filled=True, size=130, color=drawing.RED, opacity=1).encode(x, y)
    level = (
        chosen.transform_calculate(level=f"max(abs(datum.product), {TINY})")
        .mark_rule(color=drawing.GREEN, strokeDash=[5, 4], strokeWidth=1.5, aria=False)
        .encode(y=alt.Y("level:Q", scale=alt.Scale(type="log")))
    )
    picture = alt.layer(level, curve, point).properties(width=440, height=280)
    return alt.vconcat(
        explore.words(chosen, lines, width=440), picture, spacing=8, datasets={"rows": rows}
    ).add_params(power, label)
