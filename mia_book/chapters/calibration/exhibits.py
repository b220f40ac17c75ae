"""Tables and figures of the chapter on difficulty calibration, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import rankdata

from mia_book.chapters.calibration import study
from mia_book.evidence import explore, results
from mia_book.evidence.figures import altair as alt
from mia_lib import drawing, metrics
from mia_lib.published import Bank

ATTACKS = ("Orig", "Cal.", "Cal.-F")
SCORES = {
    "Gap": "gap",
    "Loss": "loss",
    "GN": "gradient norm",
    "Confidence": "confidence",
    "HopSkipJump": "distance",
}
# the paper's
TITLES = {
    "german_credit": "German Credit",
    "hepatitis": "Hepatitis",
    "adult": "Adult",
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
}
TITLE_OF = {"auc": "AUC", "tpr_at_fpr=0.01": "TPR at 1 % FPR"}
RECALLS = np.linspace(0.005, 1, 200)  # at which precision is drawn
LOW_RECALLS = np.geomspace(0.001, 1, 120)  # on a logarithmic axis
PRINTED_METRICS = {
    "auc": "auc",
    "attack_accuracy": "accuracy",
    "train_accuracy": "train_accuracy",
    "test_accuracy": "test_accuracy",
}


def printed(table: str) -> pd.DataFrame:
    """A table of the paper in our terms: data, score, attack, metric, value in percent."""
    frame = results.paper("calibration", table)
    parts = (
        frame["attack"]
        .replace("none", "none model")
        .str.split(" ", n=1, expand=True)
        .reindex(columns=[0, 1])
    )
    augmented = frame["setting"].str.contains("with augmentation").map({True: " (aug.)", False: ""})
    return frame.assign(
        data=frame["dataset"] + augmented,
        score=parts[0].map(SCORES).fillna("none"),
        attack=parts[1].fillna("Orig"),
        metric=frame["metric"].map(PRINTED_METRICS),
        value=100 * frame["value"],
    )


def table_1(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 1: accuracies of the targets, a row for each data set; the paper's augmented ones have a row of their own."""
    columns = {("model", "train_accuracy"): "on members", ("model", "test_accuracy"): "on others"}
    paper = printed("table1").replace({"data": {"CIFAR-10": "CIFAR-10 (aug.)"}})
    frame = frame[frame["attack"] == "model"]
    table = results.percent_table(frame, "data", ("attack", "metric"), columns, paper)
    for (_, metric), title in columns.items():
        theirs = paper[(paper["data"] == "CIFAR-10 (aug.)") & (paper["metric"] == metric)]
        table.loc["CIFAR-10 (aug.)", [title, f"{title}, paper"]] = [
            results.DASH,
            results.cell(theirs["value"].item(), ".1f", "%"),
        ]
    return table.fillna(results.DASH)


def table_2(frame: pd.DataFrame, metric: str = "auc") -> pd.DataFrame:
    """Table 2, or with metric "accuracy" Table 3: a row for each data set and score."""
    frame = frame[frame["score"].isin(SCORES.values())].assign(
        attack=lambda rows: rows["attack"].replace("Gap", "Orig")
    )
    # of calls, whose AUC is their accuracy
    gap = (frame["score"] == "gap") & (frame["metric"] == "auc")
    frame = frame[((frame["metric"] == metric) | gap) & frame["attack"].isin(ATTACKS)].assign(
        metric=metric
    )
    return results.percent_table(
        frame,
        ["data", "score"],
        ("attack",),
        {(attack,): attack for attack in ATTACKS},
        printed("table2" if metric == "auc" else "table3"),
    )


def today(frame: pd.DataFrame) -> pd.DataFrame:
    """The calibrated loss and gradient norm, LiRA and RMIA, offline, with the same references: a row for each, columns by how
    many references, of `study.in_plays`."""
    frame = frame[(frame["score"] == "loss") | (frame["score"] == "gradient norm")]
    names = frame["score"] + ", calibrated"
    names = names.where(frame["attack"] == "Cal.", frame["attack"])
    counts = frame["references"].unique()
    return results.percent_table(
        frame.assign(attack=names),
        "attack",
        ("references", "metric"),
        {
            (count, metric): f"{title}, {count:g} reference" + ("s" if count > 1 else "")
            for metric, title in TITLE_OF.items()
            for count in counts
        },
    )


def table_4(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 4: the label-only attack, a row for each data set and attack, where distances of
    wrongly classified records are negative. What the paper printed for a set stands beside a bank
    of that set, too."""
    frame = frame[frame["reading"].isin(["", "negative"])].sort_values("data", kind="stable")
    paper = printed("table4")
    paper = pd.concat([paper, paper.assign(data=paper["data"] + ", bank")], ignore_index=True)
    columns = {("auc",): "AUC", ("accuracy",): "accuracy"}
    return results.percent_table(frame, ["data", "attack"], ("metric",), columns, paper)


def by_stop(frame: pd.DataFrame) -> Figure:
    """AUC with a reference that is stopped after so many epochs, before and after calibration, a panel a score, the paper's on
    the right; what the chapter's law predicts for the loss; and the spread of difficulty and the noise of training of such
    references."""
    rows = frame[(frame["study"] == "stopped") & (frame["attack"] != "model")]
    rows = metrics.summary(rows, ["score", "attack", "stopped", "metric"])
    rows["panel"] = "AUC, " + rows["score"]
    law = rows["attack"] == "law"
    rows.loc[law | (rows["attack"] == study.BY_LAW), ["low", "high"]] = np.nan
    rows.loc[law, "attack"], rows.loc[law, "panel"] = rows["metric"], "spread (nats)"
    theirs = printed("table2").query(
        "metric == 'auc' and data == 'CIFAR-10' and attack != 'Cal.-F'"
    )
    theirs = theirs.assign(
        panel="AUC, " + theirs["score"], stopped="paper", paper=theirs["value"] / 100
    )
    theirs = theirs[theirs["panel"].isin(rows["panel"])].drop(columns="value")
    rows = pd.concat([rows[rows["metric"] == "auc"], theirs, rows[law]])
    last = {"at its best": "best", "paper": "\npaper"}  # after numbers of epochs
    rows = rows.sort_values("stopped", key=lambda stops: stops.isin(last), kind="stable")
    return drawing.lineplot(
        rows.replace({"stopped": last}),
        "stopped",
        "value",
        by="attack",
        paper="paper",
        panel="panel",
        xlabel="epochs of the reference",
        ylabel=" ",
        sharey=False,
    )


def never_stopped(frame: pd.DataFrame) -> pd.DataFrame:
    """Spread of difficulty and noise of training in nats, and AUC of the loss with one reference, a
    row for each data set."""
    frame = frame[frame["study"] == "stopping"]
    law = frame[frame["attack"] == "law"].pivot(index="data", columns="metric", values="value")
    table = results.percent_table(
        frame,
        "data",
        ("attack",),
        {("Orig",): "AUC, Orig", ("Cal.",): "stopped", ("Cal., never stopped",): "never stopped"},
    )
    return pd.concat(
        [law.loc[table.index].set_axis(["difficulty σ_D", "noise σ_ε"], axis=1), table], axis=1
    )


# --------------------------------------------------------------------------------------------------------------------- figures


def _of_play(plays: Bank) -> pd.DataFrame:
    """Table of the records of the first play: ranks in percent of their losses under target and reference,
    and of their calibrated losses; both losses; and whether each is a member."""
    target = -study.score("loss", plays.target_margin[0])
    reference = -study.score("loss", plays.scratch_margin[0, 0])
    rank = {
        name: 100 * (rankdata(values, "ordinal") - 0.5) / len(values)
        for name, values in (
            ("target rank", target),
            ("reference rank", reference),
            ("calibrated rank", target - reference),
        )
    }
    return pd.DataFrame(
        {**rank, "target": target, "reference": reference, "member": plays.members[0]}
    )


def idea(plays: Bank, share: float = 10) -> Figure:
    """The first 2,000 records of the first play, by how hard each is for the target and for a reference, in ranks; each of two
    thresholds calls `share` percent of them members."""
    frame = _of_play(plays).iloc[:2000]
    figure, (axis,) = drawing.panels(1, 5.4, width=5.8)
    for name, kind in (("non-members", False), ("members", True)):
        rows, look = frame[frame["member"] == kind], drawing.STYLE[name]
        axis.scatter(
            rows["reference rank"],
            rows["target rank"],
            s=9,
            alpha=0.55,
            lw=0,
            color=look["color"],
            marker=look["marker"],
            label=name,
            rasterized=True,
        )
    called = frame[frame["calibrated rank"] < share]
    axis.scatter(
        called["reference rank"],
        called["target rank"],
        s=34,
        facecolors="none",
        edgecolors=drawing.INK,
        linewidths=0.7,
        label=f"lowest {share:g} % by the calibrated loss",
        rasterized=True,
    )
    axis.axhline(share, color=drawing.INK, lw=1.6, label=f"lowest {share:g} % by the loss")
    axis.set(
        xlim=(0, 100),
        ylim=(0, 100),
        box_aspect=1,
        xlabel="loss under the reference, rank from easy to hard (%)",
        ylabel="loss under the target, rank from easy to hard (%)",
    )
    drawing.legend(figure)
    return figure


def called_in_idea(plays: Bank, share: float = 10) -> dict[str, float]:
    """Share of members among the records that the loss, and the calibrated loss, call first in the first play."""
    frame = _of_play(plays)
    return {
        name: float(frame.loc[frame[f"{by} rank"] < share, "member"].mean())
        for name, by in (("loss", "target"), ("calibrated", "calibrated"))
    }


def idea_chart(plays: Bank):
    """The picture of `idea` for readers to move, with 800 records: the number of records that are called, on a
    slider, and the members among them by either rule."""
    frame = _of_play(plays).iloc[:800]
    rows = [
        {
            "t": round(row["target rank"], 1),
            "r": round(row["reference rank"], 1),
            "c": round(row["calibrated rank"], 1),
            "loss": float(f"{row['target']:.2g}"),
            "usual": float(f"{row['reference']:.2g}"),
            "who": "member" if row["member"] else "non-member",
        }
        for _, row in frame.iterrows()
    ]
    share = explore.slider("share", 10, 1, 50, 1, "Records called members (%)")
    rules = ["by both", "by the loss alone", "by the calibrated loss alone", "by neither"]
    dots = alt.Chart(alt.NamedData("records")).transform_calculate(
        called=f"datum.t < share ? (datum.c < share ? '{rules[0]}' : '{rules[1]}') : (datum.c < share ? '{rules[2]}' : "
        f"'{rules[3]}')"
    )
    scale = alt.Scale(domain=[0, 100], nice=False)
    cloud = dots.mark_point(filled=True, size=26, opacity=0.75).encode(
        x=alt.X("r:Q", title="loss under the reference, rank from easy to hard (%)", scale=scale),
        y=alt.Y("t:Q", title="loss under the target, rank from easy to hard (%)", scale=scale),
        shape=alt.Shape("who:N", title=None, legend=alt.Legend(orient="top")),
        color=alt.Color(
            "called:N",
            title="called a member",
            legend=alt.Legend(orient="top", columns=2),
            scale=alt.Scale(
                domain=rules,
                range=[
                    drawing.INK,
                    drawing.STYLE["Orig"]["color"],
                    drawing.STYLE["Cal."]["color"],
                    "#777777",
                ],
            ),
        ),
        tooltip=[
            alt.Tooltip("who:N", title="it is a"),
            alt.Tooltip("loss:Q", title="loss under the target"),
            alt.Tooltip("usual:Q", title="loss under the reference"),
        ],
    )
    line = (
        alt.Chart(alt.Data(values=[{}]))
        .transform_calculate(at="share")
        .mark_rule(color=drawing.INK, aria=False)
        .encode(y=alt.Y("at:Q", scale=scale))
    )
    counted = dots.transform_calculate(
        lt="datum.t < share ? 1 : 0",
        lc="datum.c < share ? 1 : 0",
        mt="datum.t < share && datum.who == 'member' ? 1 : 0",
        mc="datum.c < share && datum.who == 'member' ? 1 : 0",
    ).transform_aggregate(lt="sum(lt)", lc="sum(lc)", mt="sum(mt)", mc="sum(mc)")
    lines = [
        "'Members among those with the lowest loss: ' + datum.mt + ' of ' + datum.lt",
        "'and among those with the lowest calibrated loss: ' + datum.mc + ' of ' + datum.lc",
    ]
    return alt.vconcat(
        explore.words(counted, lines, width=420),
        alt.layer(cloud, line).properties(width=420, height=400),
        spacing=8,
        datasets={"records": rows},
    ).add_params(share)


def figure_1(plays: Bank) -> Figure:
    """Figure 1: the loss of members and non-members of all plays as a score, before and after calibration."""
    scores, panel = study.scores(plays), {}
    for attack, title in (
        ("Orig", "before: minus the loss"),
        ("Cal.", "after: less the reference's"),
    ):
        values = scores["loss", attack].ravel()
        panel[title] = np.clip(values, *np.quantile(values, [0.01, 0.99])), plays.members.ravel()
    figure = drawing.histograms(panel, xlabel="score in nats, ends clipped")
    for axis in figure.axes:
        axis.set_yscale("log")  # nearly all scores are near zero
    return figure


def figure_2(plays: Bank) -> Figure:
    """Figure 2: precision against recall of the loss, before and after calibration, means over plays."""
    scores, members = study.scores(plays), plays.members
    figure, (axis,) = drawing.panels(1, 4.0, width=5.8)
    for attack in ATTACKS:
        score, look = scores["loss", attack], drawing.style_of(attack)
        axis.plot(
            RECALLS,
            study.precision_at_recall(score, members, 1, RECALLS).mean(0),
            color=look["color"],
            ls=look["linestyle"],
            label=attack,
        )
        [(fpr, tpr)] = study.best_points({attack: score}, members)[attack]
        axis.plot(
            tpr,
            metrics.precision(tpr, fpr, 0.5),
            "o",
            ms=9,
            mfc="none",
            mew=2,
            color=look["color"],
        )
    axis.axhline(0.5, **drawing.CHANCE)
    axis.set(
        xlim=(0, 1),
        ylim=(0.4, 1.02),
        xlabel="recall: share of the members that are called",
        ylabel="precision: members among those called",
    )
    drawing.legend(figure, 3)
    return figure


def figure_3(frame: pd.DataFrame) -> Figure:
    """Figure 3: AUC and accuracy of the loss against the size of the training set, a row of panels for what is equal."""
    rows = metrics.summary(frame, ["equal", "attack", "metric", "n"])
    known = rows["metric"] == "train_accuracy"
    rows.loc[known, ["attack", "metric"]] = "target on its members", "auc"
    title = (
        "equal " + rows["equal"] + ": " + rows["metric"].map({"auc": "AUC", "accuracy": "accuracy"})
    )
    return drawing.lineplot(
        rows.assign(panel=title)[title.notna()],
        "n",
        "value",
        by="attack",
        panel="panel",
        log=True,
        percent=True,
        chance=0.5,
        xlabel="training records",
        ylabel="rate",
        rows=frame["equal"].nunique(),
    )


def figure_4(plays: Bank, ratios: Sequence[int]) -> Figure:
    """Figure 4: accuracy of the loss against the number of non-members to a member, with the best threshold at each ratio and,
    dotted, with the one for one to one; and precision against recall at some `ratios`, by the formulas."""
    scores = study.scores(plays)
    titles = ["accuracy", *(f"precision, 1 member : {ratio}" for ratio in ratios)]
    figure, (first, *axes) = drawing.panels(titles, 6.4, rows=2)
    share = 1 / (1 + np.geomspace(1, max(ratios), 25))
    for attack in ATTACKS[:2]:
        look = {**drawing.style_of(attack), "marker": "none"}
        rates = [
            metrics.roc_curve(*play)[:2]
            for play in zip(scores["loss", attack], plays.members, strict=True)
        ]
        right = [np.stack([pi * tpr + (1 - pi) * (1 - fpr) for pi in share]) for fpr, tpr in rates]
        first.plot(1 / share - 1, np.mean([each.max(1) for each in right], 0), label=attack, **look)
        kept = np.mean([each[:, each[0].argmax()] for each in right], 0)
        first.plot(1 / share - 1, kept, color=look["color"], ls=":", lw=1.4)
        for axis, ratio in zip(axes, ratios, strict=False):
            precision = study.precision_at_recall(
                scores["loss", attack], plays.members, ratio, LOW_RECALLS
            )
            axis.plot(LOW_RECALLS, precision.mean(0), label=attack, **look)
    first.plot(1 / share - 1, 1 - share, label="calling nobody", **drawing.CHANCE)
    first.set(xscale="log", xlabel="non-members to a member")
    for axis, ratio in zip(axes, ratios, strict=False):
        axis.axhline(1 / (1 + ratio), **drawing.CHANCE)
        axis.set(xscale="log", ylim=(0, 1.02), xlabel="recall")
    drawing.legend(figure, 3)
    return figure


def figure_5(frame: pd.DataFrame) -> Figure:
    """AUC and TPR at 1 % FPR of the calibrated loss and of today's attacks against the number of references, a row of
    panels for each bank of study "settings"."""
    rows = metrics.summary(frame, ["data", "metric", "attack", "references"])
    title = rows["metric"].map(TITLE_OF)
    return drawing.lineplot(
        rows.assign(panel=rows["data"] + ": " + title),
        "references",
        "value",
        by="attack",
        panel="panel",
        log=True,
        percent=True,
        xlabel="reference models",
        ylabel="rate",
        sharey=False,
        rows=rows["data"].nunique(),
    )
