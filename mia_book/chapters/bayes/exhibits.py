"""Tables and figures of the Bayes-optimal chapter, beside the paper's numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mia_book.chapters.bayes import theory
from mia_book.chapters.bayes.study import ATTACKS
from mia_book.evidence import explore, results
from mia_book.evidence.figures import altair as alt
from mia_lib import drawing, signals
from mia_lib.published import Bank

IDEA_FLOOR = 1e-4  # nats; lower losses are drawn there
# the paper's networks of Table 3, which stand beside our first and second
NETWORKS = {"ResNet-101": 0, "VGG-16": 1}
AUGMENTATIONS = {
    "augmentation: None": "none",
    "augmentation: Flip, Crop +-5": "shift",
    "augmentation: Flip, Crop": "crop",
}


def is_separated(mean_losses: pd.DataFrame, threshold: float) -> pd.Series:
    """True for each record whose mean loss lies below one threshold with training on it and above
    it without, bool [N]."""
    return (mean_losses["inside"] < threshold) & (mean_losses["outside"] > threshold)


def idea(mean_losses: pd.DataFrame, threshold: float) -> Figure:
    """The chapter's picture, from real records: the mean loss of each under models that were
    trained on it against that under models that were not, and how one threshold for all divides
    them.

    Args:
        mean_losses: of `study.mean_losses`.
        threshold: the loss that splits members from non-members best, one for all records.
    """
    figure, (axis,) = drawing.panels(1, 5.4, width=5.8)
    drawn = mean_losses.clip(lower=IDEA_FLOOR)
    ends = (
        drawn[["inside", "outside"]].min().min() / 2,
        2 * drawn[["inside", "outside"]].max().max(),
    )
    separated = is_separated(mean_losses, threshold)
    for which, style, label in (
        (~separated, "non-members", "not told apart"),
        (separated, "members", "told apart by it"),
    ):
        axis.plot(
            drawn["outside"][which],
            drawn["inside"][which],
            drawing.STYLE[style]["marker"],
            ms=2,
            mew=0,
            alpha=0.5,
            rasterized=True,
            color=drawing.STYLE[style]["color"],
            label=label,
        )
    axis.plot(ends, ends, label="training on it changes nothing", **drawing.CHANCE)
    axis.axvline(threshold, color="black", lw=1.4)
    axis.axhline(threshold, color="black", lw=1.4, label="one threshold for all")
    axis.set(
        xscale="log",
        yscale="log",
        xlim=ends,
        ylim=ends,
        box_aspect=1,
        xlabel="mean loss without training on the record (nats)",
        ylabel="mean loss with training on it (nats)",
    )
    drawing.legend(figure, markerscale=3)
    return figure


def idea_chart(bank: Bank, mean_losses: pd.DataFrame, threshold: float):
    """The picture of `idea` for readers to move: the one threshold on a slider, which starts at `threshold`, and the losses
    behind each dot, of 800 records at most of a bank and its `mean_losses`."""
    shares = mean_losses.clip(lower=IDEA_FLOOR)
    drawn = np.unique(np.linspace(0, len(shares) - 1, 800).astype(int))
    loss = signals.loss_of(bank.margin[:, bank.trained][:, drawn])
    members = bank.members[:, bank.trained][:, drawn]
    rows = [
        {
            "out": float(row.outside),
            "in": float(row.inside),
            "own": float(row.own),
            **{
                side: ", ".join(f"{value:.2g}" for value in np.sort(loss[side_members, i])[:8])
                for side, side_members in (("with", members[:, i]), ("without", ~members[:, i]))
            },
        }
        for i, row in enumerate(shares.iloc[drawn].itertuples())
    ]
    shown = [row[side] for row in rows for side in ("out", "in")]
    ends = [min(shown) / 2, 2 * max(shown)]
    power = explore.slider(
        "power",
        round(float(np.log10(np.clip(threshold, *ends))), 2),
        round(np.log10(ends[0]), 2),
        round(np.log10(ends[1]), 2),
        0.02,
        "Threshold for all, power of ten (nats)",
    )
    hover = alt.selection_point("record", on="pointerover", empty=False)
    sides = [
        "told apart by it",
        "always called a member",
        "never called one",
        "the wrong way round",
    ]
    dots = (
        alt.Chart(alt.NamedData("records"))
        .transform_calculate(t="pow(10, power)")
        .transform_calculate(
            side=f"datum['in'] < datum.t ? (datum.out >= datum.t ? '{sides[0]}' : '{sides[1]}') : "
            f"(datum.out >= datum.t ? '{sides[2]}' : '{sides[3]}')"
        )
    )
    axis, scale = alt.Axis(format="~g", tickCount=6), alt.Scale(type="log", domain=ends, nice=False)
    place = {
        "x": alt.X(
            "out:Q", title="mean loss without training on the record (nats)", scale=scale, axis=axis
        ),
        "y": alt.Y("in:Q", title="mean loss with training on it (nats)", scale=scale, axis=axis),
    }
    colours = [
        drawing.STYLE["members"]["color"],
        drawing.STYLE["non-members"]["color"],
        "#777777",
        drawing.INK,
    ]
    cloud = (
        dots.mark_circle(size=22, opacity=0.75)
        .encode(
            **place,
            color=alt.Color(
                "side:N",
                title=None,
                legend=alt.Legend(orient="top", columns=2),
                scale=alt.Scale(domain=sides, range=colours),
            ),
            tooltip=[
                alt.Tooltip("with:N", title="losses with it, lowest eight"),
                alt.Tooltip("without:N", title="losses without it, lowest eight"),
                alt.Tooltip("own:Q", title="its own threshold", format=".2g"),
            ],
        )
        .add_params(hover)
    )
    line = (
        alt.Chart(alt.Data(values=[{}]))
        .transform_calculate(at="pow(10, power)")
        .mark_rule(color=drawing.INK, aria=False)
    )
    own = dots.transform_filter(hover).mark_rule(color=drawing.INK, strokeDash=[4, 3], aria=False)
    same = (
        alt.Chart(alt.Data(values=[{"out": end, "in": end} for end in ends]))
        .mark_line(color=drawing.FAINT, strokeDash=[5, 4], aria=False)
        .encode(**place)
    )
    picture = alt.layer(
        same,
        cloud,
        line.encode(x=alt.X("at:Q", scale=scale)),
        line.encode(y=alt.Y("at:Q", scale=scale)),
        own.encode(x=alt.X("own:Q", scale=scale)),
        own.encode(y=alt.Y("own:Q", scale=scale)),
    ).properties(width=440, height=400)
    flags = {f"n{k}": f"datum.side == '{side}' ? 1 : 0" for k, side in enumerate(sides)}
    lines = [
        "'One threshold of ' + format(pow(10, power), '.2~g') + ' nats for all:'",
        f"datum.s0 + ' of {len(rows)} records told apart, ' + datum.s1 + ' always called, ' + datum.s2 + ' never'",
    ]
    counted = dots.transform_calculate(**flags).transform_aggregate(
        **{f"s{k}": f"sum(n{k})" for k in range(3)}
    )
    return alt.vconcat(
        explore.words(counted, lines, width=440), picture, spacing=8, datasets={"records": rows}
    ).add_params(power)


def figure_one(played: theory.Games) -> Figure:
    """Figure 1: scores of the first game, MALT's centred, on one axis."""
    centred = {"MALT": played.malt[0] - played.malt[0].mean(), "MAST": played.mast[0]}
    figure = drawing.histograms(
        {name: (score, played.members[0]) for name, score in centred.items()},
        thresholds=dict.fromkeys(centred, 0.0),
    )
    ends = min(map(np.min, centred.values())), max(map(np.max, centred.values()))
    for axis in figure.axes:
        axis.set_xlim(ends[0] - 0.05 * (ends[1] - ends[0]), ends[1] + 0.05 * (ends[1] - ends[0]))
    return figure


# our metric -> the paper's
TABLE_1 = {
    "balanced_accuracy": "attack_accuracy",
    "average_precision": "map_train",
    "average_precision_non_members": "map_test",
    "train_accuracy": "train_accuracy",
    "validation_accuracy": "validation_accuracy",
}


def table_one(frame: pd.DataFrame, columns: dict[tuple[str, str], str]) -> pd.DataFrame:
    """Table 1, or a part of it, a row for each n.

    Args:
        frame: of `study.table_1`. columns: (attack, metric) -> title, in order.
    """
    printed = results.paper("bayes", "table1")
    printed = printed.assign(
        n=printed["setting"].str.extract(r"n = (\d+)")[0].astype(int),
        attack=printed["attack"].replace("none", "model"),
        metric=printed["metric"].map({theirs: ours for ours, theirs in TABLE_1.items()}),
    )
    # a score of 0 and 1 has no threshold to choose
    printed.loc[printed["attack"] == "0-1", "metric"] = "auc"
    return results.percent_table(
        frame[frame["study"] == "table 1"], "n", ("attack", "metric"), columns, printed
    )


def table_two(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 2 with metrics beyond its accuracy, a row for each attack."""
    printed = results.paper("bayes", "table2").assign(metric="accuracy")
    order = ["0-1", "Shadow models", *ATTACKS]
    shadow = (frame["study"] == "shadow models") & (frame["attack"] == "Shadow models")
    rows = frame[(frame["study"] == "table 2") & frame["attack"].isin(order) | shadow]
    rows = rows.sort_values("attack", key=lambda names: names.map(order.index), kind="stable")
    columns = {
        ("accuracy",): "accuracy",
        ("auc",): "AUC",
        ("tpr_at_fpr=0.01",): "TPR at 1 % FPR",
        ("tpr_at_fpr=0.001",): "TPR at 0.1 % FPR",
    }
    return results.percent_table(rows, "attack", ("metric",), columns, printed)


def temperature(frame: pd.DataFrame, chosen: pd.DataFrame) -> Figure:
    """Accuracy and TPR of the soft minimum against its temperature, a line for each bank, with MALT dotted.

    Args:
        frame: `study.by_temperature`. chosen: the constants of `settings.attack_banks`; the one chosen most often is marked.
    """
    titles = {
        "balanced_accuracy": ("Accuracy", "accuracy"),
        "tpr_at_fpr=0.01": ("TPR at 1 % FPR", "tpr_at_fpr=0.01"),
    }
    figure, axes = drawing.panels([title for title, _ in titles.values()], height=4.0)
    for axis, (metric, (_, judged)) in zip(axes, titles.items(), strict=True):
        for place, (bank, rows) in enumerate(
            frame[frame["metric"] == metric].groupby("data", sort=False)
        ):
            value, look = rows.set_index("attack")["value"], drawing.style_of(bank, place)
            line = value.drop(["MALT", "MAST"])
            axis.plot(line.index.astype(float), line, label=bank, **look)
            axis.axhline(value["MALT"], color=look["color"], ls=":", lw=1.3)
            picked = chosen[(chosen["data"] == bank) & (chosen["metric"] == judged)]
            picked = picked[picked["references"] == picked["references"].max()]["value"]
            if len(picked):
                best = f"{picked.mode()[0]:g}"
                axis.plot(
                    float(best),
                    line[best],
                    **{**drawing.HOLLOW, "marker": "o", "mec": look["color"], "ms": 12},
                )
        axis.set(xscale="log", xlabel="Temperature T")
    drawing.legend(figure, 3)
    return figure


def table_three(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 3, a row for each network and augmentation; the paper's networks stand beside ours in their order, and in rows of
    their own where we have none."""
    frame = frame[frame["study"] == "table 3"]
    ours = list(frame["network"].unique())
    printed = results.paper("bayes", "table3")
    beside = {theirs: ours[place] for theirs, place in NETWORKS.items() if place < len(ours)}
    printed = printed.assign(
        network=printed["model"].map(beside),
        augmentation=printed["setting"].map(AUGMENTATIONS),
        metric="accuracy",
    )
    table = results.percent_table(
        frame,
        ["network", "augmentation"],
        ("attack", "metric"),
        {("MALT", "accuracy"): "MALT", ("0-1", "accuracy"): "0-1"},
        printed,
    )
    alone = printed[printed["network"].isna()]
    for place, theirs in alone.groupby(["model", "augmentation"], sort=False):
        values = theirs.set_index("attack")["value"]
        malt, gap = results.paper_cells(values, ("MALT", "0-1"))
        table.loc[place, :] = [results.DASH, malt, results.DASH, gap]
    return table
