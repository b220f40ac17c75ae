"""Tables and figures of the chapter on language models."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mia_book.chapters.text import study
from mia_book.evidence import results
from mia_lib import drawing, metrics
from mia_lib.metrics.estimates import Estimate
from mia_lib.published import Bank

TITLE_OF = {"auc": "AUC", "tpr_at_fpr=0.01": "TPR at 1 % FPR"}
DRAWN = ("LiRA", "one other model", "Min-K%++", "Min-K%", "Loss", "zlib")
SHOWN = 40  # letters of a verse


def passes_figure(frame: pd.DataFrame) -> Figure:
    """AUC and TPR at 1 % FPR against the passes over the training set; hollow, LiRA's AUC as Hayes et al. (2025) print it."""
    rows = frame[(frame["study"] == "attacks") & frame["attack"].isin(DRAWN)]
    rows = metrics.summary(rows, ["metric", "passes", "attack"])
    theirs = reported().query("attack == 'LiRA'").rename(columns={"value": "printed"})
    keys = ["attack", "metric", "passes"]
    rows = rows.merge(theirs[[*keys, "printed"]], how="left", on=keys)
    rows = rows.sort_values("attack", key=lambda names: names.map(DRAWN.index), kind="stable")
    return drawing.lineplot(
        rows.assign(panel=rows["metric"].map(TITLE_OF)),
        "passes",
        "value",
        by="attack",
        paper="printed",
        panel="panel",
        log=True,
        percent=True,
        sharey=False,
        xlabel="passes over the training set",
        ylabel=" ",
    )


def references_figure(frame: pd.DataFrame) -> Figure:
    """AUC against the number of references, a panel for the first and for the last number of passes; without the midpoint,
    which would lie on BASE."""
    rows = frame[(frame["study"] == "references") & (frame["metric"] == "auc")]
    rows = rows[rows["attack"] != "MAST (midpoint)"]
    rows = rows[rows["passes"].isin([rows["passes"].min(), rows["passes"].max()])]
    rows = metrics.summary(rows, ["passes", "references", "attack", "metric"])
    return drawing.lineplot(
        rows.assign(panel=rows["passes"].map(in_words)),
        "references",
        "value",
        by="attack",
        panel="panel",
        log=True,
        percent=True,
        sharey=False,
        xlabel="references",
        ylabel="AUC",
    )


def idea(bank: Bank, verses: pd.DataFrame, target: int = 0, count: int = 8) -> Figure:
    """Losses at the end of a few verses, from easy to hard, under every model: those that were trained on the verse and the
    others; the target is ringed."""
    import seaborn as sns

    loss = bank.loss[:, -1]
    once = np.flatnonzero(verses["copies"] == 1)
    ranks = np.linspace(0.05, 0.95, count) * (len(once) - 1)
    rows = once[np.argsort(loss[:, once].mean(0))[ranks.astype(int)]]
    frame = pd.DataFrame(
        {
            "verse": np.tile([_short(text) for text in verses["text"].iloc[rows]], len(loss)),
            "loss": loss[:, rows].ravel(),
            "trained on it": np.where(bank.members[:, rows].ravel(), "members", "non-members"),
        }
    )
    figure, (axis,) = drawing.panels(1, 0.5 + 0.45 * count, width=6.6)
    for kind in ("members", "non-members"):
        look = drawing.STYLE[kind]
        sns.stripplot(
            frame[frame["trained on it"] == kind],
            x="loss",
            y="verse",
            color=look["color"],
            marker=look["marker"],
            size=5,
            alpha=0.7,
            jitter=0.25,
            ax=axis,
            label=kind,
            legend=False,
        )
    axis.plot(
        loss[target, rows], range(count), ls="none", marker="o", ms=11, mfc="none", mec=drawing.INK,
        label="under the target",
    )  # fmt: skip
    axis.set(xlabel="loss (nats a token)", ylabel="")
    drawing.legend(figure)
    return figure


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: text.rfind(" ", 0, SHOWN)] + " …"


def attacks_table(frame: pd.DataFrame, passes: int) -> pd.DataFrame:
    """Every attack after so many passes, in percent."""
    rows = frame[(frame["study"] == "attacks") & (frame["passes"] == passes)]
    return results.percent_table(
        rows, "attack", ("metric",), {(metric,): title for metric, title in TITLE_OF.items()}
    )


def by_columns(frame: pd.DataFrame, name: str, index, column: str) -> pd.DataFrame:
    """AUC of a study in percent: rows by `index`, a column for each value of `column`."""
    rows = frame[(frame["study"] == name) & (frame["metric"] == "auc")]
    words = {"passes": in_words, "share": "{:.0%}".format}.get(column, str)
    values = rows[column].unique()
    values = sorted(values) if column == "share" else values
    return results.percent_table(
        rows, index, (column,), {(value,): words(value) for value in values}
    )


def in_words(passes: float) -> str:
    """A number of passes in words."""
    passes = int(passes)
    return f"{passes} pass" if passes == 1 else f"{passes} passes"


def exposed_figure(frame: pd.DataFrame, passes: int) -> Figure:
    """AUC after so many passes by fifths of length and rarity and by copies, a panel each."""
    rows = frame[(frame["study"] == "exposed") & (frame["passes"] == passes)]
    rows = metrics.summary(rows, ["of", "part", "attack", "metric"])
    titles = {
        "length": "fifth by length",
        "rarity": "fifth by rarity",
        "copies": "copies",
    }
    places = {name: str(k + 1) for k, name in enumerate(study.FIFTHS)}
    return drawing.lineplot(
        rows.assign(panel=rows["of"].map(titles), part=rows["part"].replace(places)),
        "part",
        "value",
        by="attack",
        panel="panel",
        percent=True,
        sharey=True,
        xlabel=" ",
        ylabel="AUC",
    )


def collections_table(frame: pd.DataFrame) -> pd.DataFrame:
    """How many records decide, the least and the most over targets, the error of the estimated share, and how many collections
    of one book are accused falsely, a row for each collection and attack."""
    rows = frame[frame["study"] == "collections"]
    order = rows[["data", "attack"]].drop_duplicates().itertuples(index=False, name=None)
    table = rows.pivot(index=["data", "attack"], columns="metric", values="estimate")
    table = table.loc[list(order)]
    if "accused" not in table:
        table["accused"] = None
    return pd.DataFrame(
        {
            "records that decide": [_records_in_words(each) for each in table["evidence"]],
            "error of the share": [f"{each.value:.3f}" for each in table["share"]],
            "error of counting calls": [f"{each.value:.3f}" for each in table["calls"]],
            "one book accused, %": [
                results.format_percent(each.interval((0.0, 1.0)))
                if isinstance(each, Estimate)
                else results.DASH
                for each in table["accused"]
            ],
        },
        index=table.index,
    )


def _records_in_words(evidence: Estimate) -> str:
    """How many records decide by the mean evidence of one, and from the least to the most of a target."""
    number, fewest, most = (
        f"{max(1, np.ceil(1 / each)):,.0f}" if each > 1e-6 else "none"
        for each in (evidence.value, evidence.values.max(), evidence.values.min())
    )
    return number if fewest == most else f"{number} ({fewest} to {most})"


def reported() -> pd.DataFrame:
    """AUCs that were printed elsewhere, see `results.paper`, with the column passes."""
    frame = results.paper("text", "reported")
    return frame.assign(passes=frame["setting"].str.split().str[0].astype(int))


def reported_table(frame: pd.DataFrame) -> pd.DataFrame:
    """AUCs that were printed elsewhere, and ours after as many passes where we have them, in percent."""
    ours = frame[(frame["study"] == "attacks") & (frame["metric"] == "auc")]
    keys = ["attack", "passes", "metric"]
    rows = reported().merge(metrics.summary(ours, keys)[[*keys, "interval"]], how="left", on=keys)
    ours = [
        results.DASH if pd.isna(number) else results.format_percent(number)
        for number in rows["interval"]
    ]
    table = rows.assign(AUC=rows["value"].map(results.format_percent))
    index = {"paper": "whose", "dataset": "data", "model": "model", "attack": "attack"}
    named = table.assign(**{"AUC, ours": ours}).rename(columns=index)
    return named.set_index([*index.values(), "passes"])[["AUC", "AUC, ours"]]
