"""Tables and figures of the chapter on quantile regression, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mia_book.chapters.quantile import study
from mia_book.chapters.quantile.study import (
    CALIBRATED,
    DIFFERENCE,
    HARDEST,
    LIRA,
    MARGINAL,
    ONE,
    POSITION,
    RATE_NAMES,
    XY,
    X,
)
from mia_book.evidence import results
from mia_lib import drawing, metrics

# of the paper, by what stands for them here
SETS = {
    "CIFAR-10": ("CIFAR-10", "ResNet-9", "CIFAR-10, second bank"),
    "CIFAR-100": ("CIFAR-100",),
    "CINIC-10": ("CINIC-10",),
    "ImageNet-1k": ("ImageNet",),
}
RATES = {"1pct": 0.01, "0.1pct": 0.001, "0.5pct": 0.005}
BY_LOSS = "Gaussian, by the loss"
SAME, MOVED = "as fitted", "moved"


def tpr_of(printed: np.ndarray, rate: float) -> np.ndarray:
    """``FPR Prec / (1 - Prec)``: the TPR behind a precision in percent, by Definition 2 with TPR in the numerator (the paper
    prints FPR)."""
    share = np.asarray(printed, float) / 100
    return rate * share / (1 - share)


def printed(*names: str) -> pd.DataFrame:
    """The paper's tables in our terms: columns data, model, attack, n, metric ("tpr" or "pinball"), rate, value; TPRs, in
    percent, for precisions."""
    frame = pd.concat([results.paper("quantile", name) for name in names], ignore_index=True)
    frame = frame[frame["metric"].str.contains("pct")]
    count = frame["attack"].str.extract(r"LiRA \((\d+) shadow")[0].astype(float)
    ours = (
        frame["attack"]
        .replace({"Marginal": MARGINAL, "Quantile regression": XY})
        .where(count.isna(), LIRA)
    )
    rate = frame["metric"].str.extract(r"([\d.]+pct)")[0].map(RATES)
    loss = frame["metric"].str.startswith("pinball")
    value = np.where(loss, frame["value"], 100 * tpr_of(frame["value"].where(~loss, 0), rate))
    own = count.fillna((ours == XY).astype(float)).astype(int)
    frame = frame.assign(attack=ours, n=own, metric=np.where(loss, "pinball", "tpr"), value=value)
    frame["rate"] = rate.map(lambda one: f"{100 * one:g} %")
    return frame.join(pd.Series(SETS, name="data").explode(), on="dataset")


def in_order(frame: pd.DataFrame, data: Sequence[str]) -> pd.DataFrame:
    """Rows of the cases in `data`, in their order, and in each by what an attacker trains: nothing,
    a regression, references on public records, references."""
    attacks = [MARGINAL, study.FEWER, X, XY, study.PRETRAINED, ONE, LIRA]
    rows = frame[frame["data"].isin(data)].astype({"n": int})
    return rows.sort_values(
        ["data", "n", "attack"],
        kind="stable",
        key=lambda column: (
            column.map({"data": list(data), "attack": attacks}[column.name].index)
            if column.name != "n"
            else column
        ),
    )


def found(frame: pd.DataFrame) -> pd.DataFrame:
    """The true positive rates of all attacks, of the frame to which `study.by_rate` was added."""
    return frame[(frame["study"] == "attacks") & (frame["metric"] == "tpr")]


def table_1(frame: pd.DataFrame, data: Sequence[str], counts: Sequence[int]) -> pd.DataFrame:
    """Table 1 as true positive rates, a row for each case and attack; n counts the models that the
    attacker trains."""
    rows = found(frame)
    rows = in_order(rows[rows["score"] == POSITION], data)
    rows = rows[(rows["attack"] != LIRA) | rows["n"].isin(counts)]
    columns = {(rate,): f"TPR at {rate}" for rate in RATE_NAMES}
    index = ["data", "attack", "n"]
    return results.percent_table(rows, index, ("rate",), columns, printed("table1"), digits=2)


def scores_table(
    frame: pd.DataFrame, data: Sequence[str], few: int, rate: str, scores: Sequence[str]
) -> pd.DataFrame:
    """Members found at a rate, a row for each case and score, by the regression, one reference on public records and `few`
    references."""
    rows = found(frame)
    rows = rows[(rows["rate"] == rate) & rows["data"].isin(data)]
    columns = {
        (XY, 1): "one regression",
        (ONE, 1): "one reference",
        (LIRA, few): f"{few} references",
    }
    table = results.percent_table(rows, ["data", "score"], ("attack", "n"), columns, digits=2)
    table = table.reindex([place for place in product(data, scores) if place in table.index])
    return table.loc[:, (table != results.DASH).any()]


def cost_figure(frame: pd.DataFrame, data: Sequence[str]) -> Figure:
    """TPR at 1 % FPR against the number of models the attacker trains, a panel for each case; one reference is on public
    records."""
    rows = found(frame)
    rows = rows[rows["rate"] == "1 %"]
    rows = in_order(
        rows[rows["attack"].isin([XY, LIRA]) | (rows["attack"] == ONE) & (rows["n"] == 1)], data
    )
    named = {(XY, POSITION): XY, (XY, CALIBRATED): BY_LOSS}
    named |= {(attack, POSITION): LIRA for attack in (ONE, LIRA)}
    named |= {(attack, CALIBRATED): "calibrated loss" for attack in (ONE, LIRA)}
    pairs = zip(rows["attack"], rows["score"], strict=True)
    rows = rows.assign(attack=[named.get(pair) for pair in pairs]).dropna(subset="attack")
    shown = metrics.summary(rows, ["data", "n", "attack", "metric"])
    theirs = printed("table1").query("rate == '1 %'")
    theirs = theirs.assign(paper=theirs["value"] / 100)[["data", "n", "attack", "metric", "paper"]]
    shown = shown.merge(theirs, "left", ["data", "n", "attack", "metric"])
    figure = drawing.lineplot(
        shown,
        "n",
        "value",
        "attack",
        panel="data",
        log=True,
        percent=True,
        paper="paper",
        xlabel="models that are trained",
        ylabel="TPR at 1 % FPR",
        chance=0.01,
        sharey=False,
        rows=1 + (len(data) > 2),
    )
    for axis in figure.axes:
        drawing.ticks(axis.xaxis, [1, 2, 4, 8, 16, 32, 64])
    return figure


def pinball_table(
    frame: pd.DataFrame, data: Sequence[str], counts: Sequence[int], models: Sequence[str]
) -> pd.DataFrame:
    """Tables 6 and 7: pinball loss on non-members, as fitted, and members found in percent, "0.2163 / 0.94"; a row for each
    rate and case, the paper's `models` after the cases of their data."""
    theirs = printed("table6", "table7").query("data == dataset")
    network = theirs["model"].str.split().str[0]
    theirs = theirs.assign(data=theirs["dataset"] + ", " + network + " (paper)")[
        network.isin(models)
    ]
    losses = frame[(frame["study"] == "pinball") & (frame["protocol"] == SAME)]
    rates = found(frame)[found(frame)["score"] == POSITION]
    ours = pd.concat([losses, rates.assign(value=100 * rates["value"])])
    both = pd.concat([ours[ours["data"].isin(data)], theirs])
    wide = both.pivot_table("value", ["rate", "data"], ["metric", "attack", "n"], "first")
    wide = wide.reindex([*product(RATE_NAMES, [*data, *theirs["data"].unique()])])
    columns = {(MARGINAL, 0): "one threshold", (X, 1): "q(x)", (XY, 1): "q(x, y)"}
    columns |= {(LIRA, n): f"LiRA, {n}" for n in counts}
    table = {
        title: [
            results.DASH if np.isnan(loss) else results.Cell(f"{loss:.4f} / {rate:.2f}", loss)
            for loss, rate in zip(wide["pinball", *key], wide["tpr", *key], strict=True)
        ]
        for key, title in columns.items()
        if ("tpr", *key) in wide
    }
    return pd.DataFrame(table, wide.index).rename_axis(["at", "data"])


def printed_pairs() -> dict[str, tuple[int, int, int]]:
    """Agreement in the paper's Tables 6 and 7: rate -> number of comparisons of the regression with LiRA in which the lower
    pinball loss goes with the higher precision, number of comparisons, and of those that are left out, since the regression's
    loss is printed as that of the one threshold."""
    frame, counted = printed("table6", "table7"), {}
    frame = frame[frame["data"] == frame["dataset"]]
    for rate in RATE_NAMES:
        agree, copied = [], 0
        for _, block in frame[frame["rate"] == rate].groupby(["data", "model"]):
            value = block.set_index(["attack", "n", "metric"])["value"]
            if value[XY, 1, "pinball"] == value[MARGINAL, 0, "pinball"]:
                copied += 4
                continue
            for n in (2, 4, 6, 8):
                lower, more = (value[XY, 1, of] - value[LIRA, n, of] for of in ("pinball", "tpr"))
                agree.append(lower * more < 0)
        counted[rate] = sum(agree), len(agree), copied
    return counted


def pairs_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Table of the share of comparisons of the regression with LiRA in which the lower pinball loss
    goes with more members found, in percent; a row for each case, the paper's last."""
    columns = {
        (protocol, rate): f"at {rate}, {protocol}"
        for rate in RATE_NAMES
        for protocol in (SAME, MOVED)
    }
    rows = frame[frame["study"] == "pairs"]
    table = results.percent_table(rows, "data", ("protocol", "rate"), columns, digits=0)
    theirs = {
        f"at {rate}, {SAME}": 100 * agree / of for rate, (agree, of, _) in printed_pairs().items()
    }
    table.loc["the paper's Tables 6 and 7"] = results.paper_cells(theirs, table.columns, digits=0)
    return table


def quarters_figure(frame: pd.DataFrame) -> Figure:
    """Members (filled) and others (hollow) that two scores of the regression call in each quarter of the records, the
    hardest for references first, a panel for each case."""
    rows = frame[(frame["study"] == "quarters") & (frame["attack"] == XY)]
    shown = metrics.summary(
        rows[rows["sorted"] == "references"].astype({"quarter": int}),
        ["data", "score", "quarter", "attack", "metric"],
    )
    titles = list(shown["data"].unique())
    rows = 1 + (len(titles) > 2)
    figure, axes = drawing.panels(titles, 3.4 * rows, "called", rows, sharex=True)
    looks = {POSITION: drawing.style_of(XY), CALIBRATED: drawing.style_of(BY_LOSS)}
    for axis, (_, of_case) in zip(axes, shown.groupby("data", sort=False), strict=False):
        for (score, metric), line in of_case.groupby(["score", "metric"], sort=False):
            look, at = looks[score], line["quarter"] + (0.06 if score == CALIBRATED else -0.06)
            bars = np.maximum([line["value"] - line["low"], line["high"] - line["value"]], 0)
            others = {"mfc": "white", "linestyle": ":"} if metric == "fpr" else {}
            named = f"by the {score}: {'others' if others else 'members'}"
            axis.errorbar(at, line["value"], bars, capsize=3, **{**look, **others}, label=named)
        axis.axhline(0.01, **drawing.CHANCE)
        axis.yaxis.set_major_formatter(lambda rate, _: f"{100 * rate:g} %")
        drawing.ticks(axis.xaxis, [1, 2, 3, 4], ["hardest", "2nd", "3rd", "easiest"])
    for axis in axes[-(len(titles) // rows) :]:
        axis.set_xlabel("quarter of the records, for references")
    drawing.legend(figure, 2)
    return figure


def roc_figure(scores: Mapping[tuple, np.ndarray], members: np.ndarray, data: str) -> Figure:
    """ROC of one case with the TPRs that the paper's precisions imply as hollow marks (Figures 3 and 5)."""
    counts = sorted(n for name, n, _ in scores if name == LIRA)
    keys = {
        MARGINAL: (MARGINAL, 0, POSITION),
        X: (X, 1, POSITION),
        XY: (XY, 1, POSITION),
        BY_LOSS: (XY, 1, CALIBRATED),
        ONE: (ONE, 1, POSITION),
        LIRA: (LIRA, counts[-1], POSITION),
    }
    named = {name: scores[key] for name, key in keys.items() if key in scores}
    points: dict[str, list] = {}
    paper = printed("table1")
    for row in paper[paper["data"] == data].itertuples():
        wanted = (row.attack, row.n, POSITION)
        name = next((name for name, key in keys.items() if key == wanted), None)
        if name in named:
            rate = float(row.rate.split()[0]) / 100
            points.setdefault(name, []).append((rate, row.value / 100))
    return drawing.roc(named, members, points, "paper" if points else "", band=False)


def rates_table(frame: pd.DataFrame) -> pd.DataFrame:
    """False positive rates of thresholds as fitted and moved, in percent, a row for each case and
    attack."""
    rows = frame[frame["study"] == "rates"]
    rows = in_order(rows, rows["data"].unique())
    columns = {
        (protocol, rate): f"{rate}, {protocol}" for rate in RATE_NAMES for protocol in (SAME, MOVED)
    }
    return results.percent_table(
        rows, ["data", "attack", "n"], ("protocol", "rate"), columns, digits=2
    )


def table_2(frame: pd.DataFrame, data: Sequence[str]) -> pd.DataFrame:
    """Table 2: TPRs in percent on our tables at 1 %, and those that the paper's precisions imply at its rates."""
    theirs = printed("table2").assign(data=lambda rows: rows["dataset"] + " (paper)")
    columns = {(LIRA, n): f"LiRA, {n}" for n in (16, 32, 64)} | {(XY, 1): "one regression"}
    rows = found(frame)
    rows = in_order(rows[(rows["rate"] == "1 %") & (rows["score"] == POSITION)], data)
    table = results.percent_table(rows, ["data", "rate"], ("attack", "n"), columns)
    keys = [key for key, title in columns.items() if title in table]
    for place, paper in theirs.groupby(["data", "rate"], sort=False):
        values = paper.set_index(["attack", "n"])["value"]
        table.loc[place, :] = results.paper_cells(values, keys)
    return table


def table_3(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 3: accuracy of the targets in percent, the paper's ResNets beside."""
    titles = {("members",): "on members", ("others",): "on others"}
    table = results.percent_table(frame[frame["study"] == "model"], "data", ("metric",), titles)
    paper = results.paper("quantile", "table3")
    of_set = {
        name: paper[paper["dataset"] == theirs]["value"]
        for theirs, names in SETS.items()
        for name in names
    }
    table["paper, on others"] = [
        f"{of_set[name].min():.1f} to {of_set[name].max():.1f}" if name in of_set else results.DASH
        for name in table.index
    ]
    return table


def searched(table: str, ours: Mapping[str, object]) -> pd.DataFrame:
    """Table 4 or 5: the range of the paper's search for each setting, and our value."""
    frame = results.paper("quantile", table)
    names = frame["metric"].str.removeprefix("search_space_")
    values = [str(ours.get(name, results.DASH)) for name in names]
    index = pd.Index(names.str.replace("_", " "), name="setting")
    return pd.DataFrame({"paper": frame["value"].to_numpy(), "this run": values}, index)


def mismatch_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Figure 4 as a table: TPR in percent of references of the target's architecture and of another one, by each score."""
    rows = frame[(frame["study"] == "mismatch") & (frame["metric"] == "tpr")].astype({"n": int})
    columns = {
        (which, rate): f"{which}: TPR at {rate}"
        for rate in RATE_NAMES
        for which in ("own", "other")
    }
    return results.percent_table(rows, ["target", "score", "n"], ("references", "rate"), columns)


def numbers(
    frame: pd.DataFrame, first: str, large: str, table: str, few: int
) -> list[tuple[dict, str]]:
    """Numbers that sentences of the page look up by name, each dictionary with the format of its
    numbers; of what a run does not have they say that it is unknown.

    Args:
        frame: all results. first: the case that the page is about.
        large: the case of larger networks, whose numbers a sentence may ask for in every run.
        table: the case in the page's sentences on tables.
        few: number of references that is compared most.
    """

    def find(data: str, attack: str, metric: str, **where):
        rows = frame
        for column, value in {"data": data, "attack": attack, "metric": metric, **where}.items():
            rows = rows[rows[column] == value] if column in rows else rows.iloc[:0]
        if rows.empty:
            return "an unknown share"
        return metrics.estimate(rows, attack, metric).interval()

    def found_by(data: str, score: str):
        where = {"n": few, "rate": "1 %", "data": data, "score": score}
        return metrics.estimate(frame, LIRA, "tpr", study="attacks", **where)

    cases = {"": first, "large-": large, "table-": table}
    keys = {
        "marginal": (MARGINAL, 0, POSITION),
        "xy": (XY, 1, POSITION),
        "xy-odds": (XY, 1, DIFFERENCE),
        "xy-calibrated": (XY, 1, CALIBRATED),
        "hardest": (XY, 1, HARDEST),
        "one": (ONE, 1, POSITION),
        "one-calibrated": (ONE, 1, CALIBRATED),
        "four": (LIRA, 4, POSITION),
        "few": (LIRA, few, POSITION),
        "few-calibrated": (LIRA, few, CALIBRATED),
    }
    one = {"rate": "1 %"}
    rates = {
        f"{case}{name}-tpr": find(data, attack, "tpr", n=n, score=score, **one)
        for case, data in cases.items()
        for name, (attack, n, score) in keys.items()
    }
    rates |= {
        f"fpr-{name.replace(' ', '-')}": find(first, XY, "fpr", protocol=name, study="rates", **one)
        for name in (SAME, MOVED)
    }
    rates |= {
        f"{case}{word}-{metric}-{place}": find(
            data, attack, metric, study="quarters", sorted=by, score=score, quarter=q
        )
        for case, data in cases.items()
        for word, attack, score, by in (
            ("position", XY, POSITION, "references"),
            ("loss", XY, CALIBRATED, "references"),
            ("lira", LIRA, POSITION, "references"),
            ("predicted", XY, POSITION, "prediction"),
        )
        for metric in ("tpr", "fpr")
        for place, q in (("hard", 1), ("easy", 4))
    }
    known = {
        f"{case}{word}-correlation": find(data, attack, "correlation", study="difficulty")
        for case, data in cases.items()
        for word, attack in (("xy", XY), ("references", LIRA))
    }
    rates |= {f"{case}fit": find(data, "model", "others") for case, data in cases.items()}
    shares = {
        f"{case}agree{name}": find(data, "pairs", "agreement", rate=rate, protocol=SAME)
        for case, data in cases.items()
        for name, rate in (("", "1 %"), ("-low", "0.1 %"))
    }
    gains = {
        f"{case}loss-less-position": 100
        * (found_by(data, CALIBRATED) - found_by(data, POSITION)).interval()
        for case, data in cases.items()
        if not isinstance(rates[f"{case}few-tpr"], str)
    }
    aucs = {
        f"table-{name}-auc": find(table, attack, "auc", n=1, score=POSITION)
        for name, attack in (("xy", XY), ("x", X))
    }
    loss = {
        f"{name}-loss-as-fitted": find(table, attack, "pinball", n=n, protocol=SAME, **one)
        for name, attack, n in (("xy", XY, 1), ("lira", LIRA, 4))
    }
    paper = printed("table1").query("rate == '1 %'").set_index(["data", "attack", "n"])["value"]
    theirs = {
        f"paper-{name}": paper.get((first, *keys[name][:2]), "an unknown share")
        for name in ("marginal", "xy", "few")
    }
    cost = frame[frame["study"] == "costs"].set_index(["attack", "metric"])["value"]
    costs = {
        "passes": cost.get((XY, "passes")),
        "reference-passes": cost.get((LIRA, "passes")),
        "worth": cost.get((XY, "references")),
    }
    best = [
        np.argmax([metrics.estimate(rows, XY, "tpr", score=one).values for one in study.SCORES], 0)
        for _, rows in found(frame)
        .query("rate == '1 %' and attack == @XY and n == 1")
        .groupby("data")
    ]
    best = np.concatenate(best) if best else np.zeros(0, int)
    high, low = printed_pairs().values()
    words = {
        "set": first,
        "table-set": table,
        "chosen-loss": int((best == study.SCORES.index(CALIBRATED)).sum()),
        "chosen-of": len(best),
        **dict(zip(("paper-agree", "paper-pairs"), high, strict=False)),
        **dict(zip(("paper-agree-low", "paper-pairs-low", "paper-copied"), low, strict=True)),
    }
    made = [
        (rates, ".1%"),
        (shares, ".0%"),
        (known, ".2f"),
        (gains, ".1f"),
        (aucs, ".3f"),
        (loss, ".4f"),
        (theirs, ".1f"),
        (costs, ".2f"),
        (words, ""),
    ]
    return [
        ({name: value for name, value in values.items() if value is not None}, spec)
        for values, spec in made
    ]
