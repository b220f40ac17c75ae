"""Tables and figures of the chapter on input loss curvature, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
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


ROWS = {
    "Yeom": "loss",
    "MAST": "MAST",
    study.RATIO: "curvature",
    study.LIRA: "LiRA",
    study.BOTH: "LiRA + curvature",
}


def name_of(data: str) -> str:
    """Name of a set as it is written in tables and in settings."""
    return "by heart" if data == study.MEMORISED else sets.title(data)


def printed(*tables: str) -> pd.DataFrame:
    """Numbers of the paper's tables in our terms: columns attack, data, metric, views, value; those of CIFAR-100 once more
    beside each set of networks that know images of it by heart."""
    rows = pd.concat([results.paper("curvature", table) for table in tables], ignore_index=True)
    renamed = {
        "auroc": "auc",
        "tpr_at_fpr_0.1pct": "tpr_at_fpr=0.001",
        "tpr_at_fpr_0.01pct": "tpr_at_fpr=0.0001",
    }
    single = rows["setting"].str.startswith("1 augmentation")
    rows = rows.assign(
        attack=rows["attack"].map(OURS),
        data=rows["dataset"].map(SETS).map(name_of),
        metric=rows["metric"].replace(renamed),
        views=np.where(single, "1 view", "2 views"),
    )
    theirs = rows[rows["data"] == "CIFAR-100"]
    by_heart = [theirs.assign(data=data) for data in (name_of(study.MEMORISED), study.WIDE)]
    return pd.concat([rows, *by_heart], ignore_index=True)


def of_most(frame: pd.DataFrame, **where) -> pd.DataFrame:
    """The rows of study "attacks" with the most references of each set, and with these values of columns."""
    rows = frame[frame["study"] == "attacks"]
    rows = rows[rows["references"] == rows.groupby("data")["references"].transform("last")]
    for column, values in where.items():
        rows = rows[rows[column].isin(values)]
    return rows


def by_data(frame: pd.DataFrame, measures: Sequence[str]) -> dict[tuple[str, str], str]:
    """Titles of columns: (data, metric) -> title."""
    return {
        (data, metric): f"{data}: {TITLE_OF[metric]}"
        for data in frame["data"].dropna().unique()
        for metric in measures
    }


def five_methods(frame: pd.DataFrame) -> pd.DataFrame:
    """AUC and TPR at 1 % of the methods of `ROWS` from the image alone, a row for each set and method, with the queries that
    it takes."""
    rows = of_most(frame, views=["1 view"], attack=list(ROWS))
    asked = {
        attack: 4 * study.ITERATIONS * ("curvature" in name) + ("curvature" != name)
        for attack, name in ROWS.items()
    }
    rows = rows.assign(queries=rows["attack"].map(asked))
    columns = {(metric,): TITLE_OF[metric] for metric in ("auc", "tpr_at_fpr=0.01")}
    table = results.percent_table(rows, ["data", "attack", "queries"], ("metric",), columns)
    order = [(data, *one) for data in rows["data"].unique() for one in asked.items()]
    return table.loc[order].rename(index=ROWS, level="attack")


def figure_4(scores: Mapping[str, np.ndarray], members: np.ndarray) -> Figure:
    """Figure 4: ROC of six of the paper's methods as released and of LiRA, with the points of Table 5."""
    names = [study.LR, study.NLL, study.RELEASED, "MAST", "Yeom", study.LIRA]
    theirs = printed("table5").query(
        "views == '2 views' and metric == 'tpr_at_fpr=0.001' and data == 'CIFAR-100'"
    )
    points = {
        row.attack: [(0.001, row.value / 100)] for row in theirs.itertuples() if row.attack in names
    }
    return drawing.roc(
        {name: scores[name] for name in names}, members, points, "paper, TPR at 0.1 %", band=False
    )


def table_one(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 1: the paper's eight methods, AUC and balanced accuracy at the best threshold, a row for each data set and attack.
    A bank without mirror images stands beside the paper's numbers from one view, as far as there are such."""
    rows = of_most(frame, attack=list(study.PAPER))
    most = rows.groupby("data")["views"].transform("max")
    rows = rows[rows["views"] == most]
    columns = {(metric,): TITLE_OF[metric] for metric in ("auc", "balanced_accuracy")}
    theirs = printed("table1", "table3", "table4")
    once = theirs["attack"].isin([study.NLL, study.LR, study.RELEASED])
    theirs = pd.concat([theirs, theirs[~once].assign(views="1 view")]).drop_duplicates(
        ["data", "attack", "views", "metric"]
    )
    table = results.percent_table(rows, ["data", "views", "attack"], ("metric",), columns, theirs)
    return table.droplevel("views")


def views_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Tables 3 and 4: AUC and peak balanced accuracy with one view and with two, a row for each data set and attack."""
    rows = of_most(
        frame, attack=[study.NLL, study.LR, study.RELEASED, study.LIRA], views=["1 view", "2 views"]
    )
    titles = {
        (views, metric): f"{TITLE_OF[metric]}, {views}"
        for metric in ("auc", "balanced_accuracy")
        for views in ("1 view", "2 views")
    }
    return results.percent_table(
        rows, ["data", "attack"], ("views", "metric"), titles, printed("table3", "table4")
    )


def imagenet() -> pd.DataFrame:
    """What the paper prints of ImageNet in Tables 1 and 2, which was not run: a row an attack."""
    one, two = (
        results.paper("curvature", table).query("dataset == 'ImageNet'")
        for table in ("table1", "table2")
    )
    single = two[two["setting"].str.startswith("1 augmentation")].assign(seen=", one view")
    rows = pd.concat([one.assign(seen=""), single])
    title = rows["metric"].map({"auroc": "AUC", "balanced_accuracy": "accuracy"}) + rows["seen"]
    rows = rows.assign(title=title)
    made = rows.pivot(index="attack", columns="title", values="value")
    made = made.loc[rows["attack"].unique(), rows["title"].unique()].rename_axis(columns=None)
    return made.map(lambda value: results.DASH if np.isnan(value) else f"{value:.2f}").reset_index()


def table_five(frame: pd.DataFrame, data: str) -> pd.DataFrame:
    """Table 5 on one data set: TPR at low FPR, with one view and with two."""
    rows = of_most(frame, data=[data], attack=[*study.PAPER, study.LIRA])
    columns = {
        (views, metric): f"{TITLE_OF[metric]}, {views}"
        for metric in ("tpr_at_fpr=0.001", "tpr_at_fpr=0.0001")
        for views in ("1 view", "2 views")
    }
    return results.percent_table(rows, "attack", ("views", "metric"), columns, printed("table5"))


def queries_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Table of attacks by the number of queries about a record, from few queries to many."""
    rows = of_most(frame, attack=["Yeom", "MAST", study.LIRA, study.RATIO, study.LR])
    views = rows["views"].str.extract(r"(\d+)")[0].astype(int)
    bent = rows["attack"].isin([study.RATIO, study.LR])
    rows = rows.assign(queries=np.where(bent, 4 * study.ITERATIONS * views, views))
    rows = rows[(views == 1) | ~rows["attack"].isin(["Yeom", "MAST"])]
    rows = rows.sort_values("queries", kind="stable")
    return results.percent_table(
        rows, ["queries", "attack"], ("data", "metric"), by_data(rows, list(study.JUDGES)[1:])
    ).rename(index=ROWS | {study.LR: study.LR}, level="attack")


def signals_table(frame: pd.DataFrame) -> pd.DataFrame:
    """AUC of one likelihood ratio on several signals, and what each needs of the target."""
    rows = frame[frame["study"] == "signals"]
    table = results.percent_table(
        rows, "attack", ("data", "metric"), by_data(rows, ("auc",))
    ).rename_axis("signal")
    return table.set_index(
        pd.Index([study.SIGNALS[name][1] for name in table.index], name="needs"), append=True
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


def figure_6(frame: pd.DataFrame, networks: str, epochs: Mapping[int, int]) -> Figure:
    """Figure 6: AUC of attacks against the size of random training sets; beside it the numbers in the authors' notebooks. The
    `epochs` of each size stand below it, and where the paper has NLL and LR get ahead is marked."""
    rows = _by_size(frame, networks)
    rows = rows[(rows["kind"] == "random") & (rows["metric"] == "auc")]
    theirs = rows.assign(value=rows["paper"], low=np.nan, high=np.nan)
    sides = {"these networks": rows, "the authors' notebooks": theirs}
    rows = pd.concat([side.assign(panel=title) for title, side in sides.items()])
    shown = [study.NLL, study.LR, study.RELEASED, "Yeom"]
    rows = rows[rows["attack"].isin(shown) & rows["value"].notna()]
    rows = rows.sort_values("attack", key=lambda each: each.map(shown.index), kind="stable")
    drawn = drawing.lineplot(
        rows, "size", "value", "attack", panel="panel", ylabel="AUC", **_ALONG_SIZES
    )
    _mark_sizes(drawn.axes[:1], epochs)
    _mark_sizes(drawn.axes[1:], dict.fromkeys(epochs, PAPERS_EPOCHS))
    for axis in drawn.axes:
        for size in study.CROSSINGS.values():
            axis.axvline(size, color=drawing.FAINT, lw=1)
    return drawn


def figure_7(frame: pd.DataFrame, networks: str, epochs: Mapping[int, int]) -> Figure:
    """Figure 7: NLL on random sets and on coresets, with `epochs` below each size. Hollow marks are numbers in the authors'
    notebooks; for sizes that we did not train they stand alone."""
    rows = _by_size(frame, networks)
    rows = rows[(rows["attack"] == study.NLL) & rows["metric"].isin(["auc", "balanced_accuracy"])]
    rows = rows.assign(panel=rows["metric"].map(TITLE_OF))
    how = {"paper": "paper", "panel": "panel", "ylabel": "NLL"}
    drawn = drawing.lineplot(rows, "size", "value", "kind", **how, **_ALONG_SIZES)
    _mark_sizes(drawn.axes, epochs)
    for text in [
        text
        for legend in drawn.legends
        for text in legend.get_texts()
        if text.get_text() == drawing.PRINTED
    ]:
        text.set_text("the authors' notebooks")
    return drawn


PAPERS_EPOCHS = 300  # of its networks on CIFAR-100, at every size
_ALONG_SIZES = {"log": True, "xlabel": "training records, epochs", "chance": 0.5}


def _by_size(frame: pd.DataFrame, networks: str) -> pd.DataFrame:
    """Study "sizes" of some networks, with what the authors' notebooks hold, from small to large."""
    key = ["kind", "size", "attack", "metric"]
    ours = frame[(frame["study"] == "sizes") & (frame["networks"] == networks)]
    ours = metrics.summary(ours, key).astype({"size": int})
    return ours.merge(notebooks(), "outer", key).sort_values("size", kind="stable")


def _mark_sizes(axes: Iterable[Axes], epochs: Mapping[int, int]) -> None:
    for axis in axes:
        names = [f"{n // 1000}k\n{count}" for n, count in epochs.items()]
        drawing.ticks(axis.xaxis, list(epochs), names)


# --------------------------------------------------------------------------------------------------------- single records


def extremes(records: Dataset, curvature: np.ndarray) -> Figure:
    """The eight images of lowest and of highest curvature [N] (Figure 1)."""
    ranked = np.argsort(curvature, kind="stable")
    return drawing.pictures(
        records, {"lowest\ncurvature": ranked[:8], "highest\ncurvature": ranked[:-9:-1]}
    )


def figure_2(curved: Mapping[str, Bank]) -> Figure:
    """Log curvature of members and of non-members, all models and images together, a panel a data set (Figure 2).

    Args:
        curved: name of a data set -> bank of `study.measured`.
    """
    return drawing.histograms(
        {
            name: (
                (log := bank.precise if bank.precise.size else bank.released)[:, :, 0]
                .astype(float)
                .ravel(),
                bank.members[:, : log.shape[1]].ravel(),
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


POINTS = ("x", "x + hv + hu", "x - hv + hu", "x + hv - hu", "x - hv - hu")


def four_losses(points: np.ndarray, losses: np.ndarray) -> Figure:
    """The image and the four points around it, [5, H, W], each with its loss."""
    figure, axes = drawing.panels(list(POINTS), 2.1)
    for axis, image, loss in zip(axes, points, losses, strict=True):
        axis.imshow(image, cmap="gray", vmin=-1, vmax=1)
        axis.set_title(axis.get_title(), fontsize=9)
        axis.set(xticks=[], yticks=[], xlabel=f"loss {loss:.3f}")
        axis.grid(False)
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
        ls="--",
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
