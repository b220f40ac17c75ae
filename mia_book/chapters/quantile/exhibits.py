"""Tables and figures of the chapter on quantile regression, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mia_book.chapters.quantile import study
from mia_book.chapters.quantile.study import LIRA, MARGINAL, ONE, RMIA, XY, X
from mia_book.evidence import results, rules
from mia_lib import drawing, metrics

# of the paper, by what stands for them here
SETS = {
    "CIFAR-10": ("CIFAR-10, small CNNs", "CIFAR-10, ResNet-9"),
    "CIFAR-100": ("CIFAR-100, small CNNs",),
    "CINIC-10": ("CINIC-10",),
    "ImageNet-1k": ("ImageNet",),
}
RATES = {"1pct": 0.01, "0.1pct": 0.001, "0.5pct": 0.005}
TITLE_OF = {
    "auc": "AUC",
    "tpr_at_fpr=0.01": "TPR at 1 %",
    "tpr_at_fpr=0.001": "TPR at 0.1 %",
    "explained": "explained",
    "pinball=0.01": "loss at 1 %",
    "pinball=0.001": "loss at 0.1 %",
}
TWO = "LiRA, two models"


def tpr_of(printed: np.ndarray, rate: float) -> np.ndarray:
    """``FPR Prec / (1 - Prec)``: the TPR behind a precision in percent, by Definition 2 with TPR in the numerator (the paper
    prints FPR)."""
    share = np.asarray(printed, float) / 100
    return rate * share / (1 - share)


def printed(*names: str) -> pd.DataFrame:
    """The paper's tables in our terms: columns data, model, attack, n, metric, value; TPRs, in percent, for precisions."""
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
    metric = [
        f"{'pinball' if one else 'tpr_at_fpr'}={of:g}" for one, of in zip(loss, rate, strict=True)
    ]
    own = count.fillna((ours == XY).astype(float)).astype(int)
    frame = frame.assign(attack=ours, n=own, metric=metric, value=value)
    return frame.join(pd.Series(SETS, name="data").explode(), on="dataset")


def in_order(frame: pd.DataFrame, data: Sequence[str]) -> pd.DataFrame:
    """Rows of the cases in `data`, in their order, and in each by what an attacker trains: nothing,
    a regression, references on public records, references."""
    attacks = [MARGINAL, study.FEWER, X, XY, study.PRETRAINED, ONE, LIRA, study.CALIBRATED, RMIA]
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


def table_1(
    frame: pd.DataFrame, data: Sequence[str], counts: Sequence[int], with_paper: bool = True
) -> pd.DataFrame:
    """Table 1 as true positive rates, a row for each case and attack; n counts the models that the
    attacker trains."""
    rows = in_order(frame[frame["study"] == "attacks"], data)
    rows = rows[~rows["attack"].isin([LIRA, RMIA, study.CALIBRATED]) | rows["n"].isin(counts)]
    columns = {(metric,): TITLE_OF[metric] for metric in study.METRICS}
    return results.percent_table(
        rows,
        ["data", "attack", "n"],
        ("metric",),
        columns,
        printed("table1") if with_paper else None,
    )


def cost_figure(frame: pd.DataFrame, data: Sequence[str]) -> Figure:
    """TPR at 1 % FPR against the number of models the attacker trains, a panel for each case."""
    rows = in_order(
        frame[(frame["study"] == "attacks") & (frame["metric"] == "tpr_at_fpr=0.01")], data
    )
    shown = metrics.summary(
        rows[rows["attack"].isin([XY, X, LIRA, ONE])], ["data", "n", "attack", "metric"]
    )
    theirs = (
        printed("table1").assign(paper=lambda table: table["value"] / 100).drop(columns="value")
    )
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


def pinball_table(frame: pd.DataFrame, data: Sequence[str], counts: Sequence[int]) -> pd.DataFrame:
    """Tables 6 and 7: pinball loss on non-members at two rates, as fitted and with moved
    thresholds, beside the members found; and the share of the variance of non-members' scores that
    each attack explains."""
    frame = frame[frame["data"].isin(data)]
    rows = []
    for name in data:
        of_case = frame[frame["data"] == name]
        for attack, n in [(MARGINAL, 0), (X, 1), (XY, 1), *((LIRA, n) for n in counts)]:
            own = of_case[(of_case["attack"] == attack) & (of_case["n"] == n)]
            if own[own["study"] == "pinball"].empty:
                continue
            row = {
                "data": name,
                "attack": attack,
                "n": n,
                "explained": results.format_percent(
                    metrics.estimate(own, attack, "explained", study="explained").interval(), 0
                ),
            }
            for rate in study.RATES:
                for protocol in ("as fitted", "moved"):
                    loss = metrics.estimate(
                        own, attack, f"pinball={rate:g}", study="pinball", protocol=protocol
                    )
                    row[f"loss at {100 * rate:g} %, {protocol}"] = results.cell(loss.value, ".4f")
                found = metrics.estimate(own, attack, f"tpr_at_fpr={rate:g}", study="attacks")
                row[f"TPR at {100 * rate:g} %"] = results.cell(100 * found.value, ".1f")
            rows.append(row)
    return pd.DataFrame(rows).set_index(["data", "attack", "n"])


def printed_pairs() -> dict[float, tuple[int, int]]:
    """Agreement in the paper's Tables 6 and 7: rate -> number of comparisons of the regression with
    LiRA in which the lower pinball loss goes with the higher precision, and number of all
    comparisons."""
    frame, counted = printed("table6", "table7"), {}
    frame = frame[~frame["data"].str.endswith("ResNet-9")]
    for rate in study.RATES:
        agree = []
        for _, block in frame.groupby(["data", "model"]):
            value = block.set_index(["attack", "n", "metric"])["value"]
            for n in (2, 4, 6, 8):
                loss, found = (
                    value[XY, 1, metric] - value[LIRA, n, metric]
                    for metric in (f"pinball={rate:g}", f"tpr_at_fpr={rate:g}")
                )
                agree.append(loss * found < 0)
        counted[rate] = sum(agree), len(agree)
    return counted


def pairs_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Table of the share of comparisons of the regression with LiRA in which the lower pinball loss
    goes with more members found, in percent; a row for each case, the paper's last."""
    columns = {
        (protocol, f"agreement={rate:g}"): f"at {100 * rate:g} %, {protocol}"
        for rate in study.RATES
        for protocol in ("as fitted", "moved")
    }
    made = results.percent_table(
        frame[frame["study"] == "pairs"], "data", ("protocol", "metric"), columns, digits=0
    )
    theirs = {
        f"at {100 * rate:g} %, as fitted": results.cell(100 * one / of, ".0f", "%")
        for rate, (one, of) in printed_pairs().items()
    }
    made.loc["the paper's Tables 6 and 7"] = [
        theirs.get(title, results.DASH) for title in made.columns
    ]
    return made


def quarters_figure(frame: pd.DataFrame) -> Figure:
    """Members found in each quarter of the records by hardness, a panel for each case."""
    rows = frame[(frame["study"] == "quarters") & (frame["metric"] == "tpr")].astype(
        {"quarter": int}
    )
    shown = metrics.summary(rows, ["data", "quarter", "attack", "metric"])
    shown["quarter"] = shown["quarter"].map({1: "hardest", 2: "2nd", 3: "3rd", 4: "easiest"})
    return drawing.lineplot(
        shown,
        "quarter",
        "value",
        "attack",
        panel="data",
        percent=True,
        sharey=False,
        chance=0.01,
        xlabel="quarter of the records",
        ylabel="members found",
        rows=1 + (shown["data"].nunique() > 2),
    )


def roc_figure(scores: dict[tuple, np.ndarray], members: np.ndarray, data: str) -> Figure:
    """ROC of one case with the TPRs that the paper's precisions imply as hollow marks (Figures 3 and 5)."""
    counts = sorted(n for name, n in scores if name == LIRA)
    keys = {
        MARGINAL: (MARGINAL, 0),
        X: (X, 1),
        XY: (XY, 1),
        ONE: (ONE, 1),
        TWO: (LIRA, counts[0]),
        LIRA: (LIRA, counts[-1]),
    }
    named = {name: scores[key] for name, key in keys.items() if key in scores}
    points: dict[str, list] = {}
    paper = printed("table1")
    for row in paper[paper["data"] == data].itertuples():
        name = next((name for name, key in keys.items() if key == (row.attack, row.n)), None)
        if name in named:
            points.setdefault(name, []).append((float(row.metric.split("=")[1]), row.value / 100))
    return drawing.roc(named, members, points, "paper" if points else "", band=False)


def rates_table(frame: pd.DataFrame) -> pd.DataFrame:
    """False positive rates of thresholds as fitted and moved, in percent, a row for each case and
    attack."""
    rows = frame[frame["study"] == "rates"]
    rows = in_order(rows, rows["data"].unique())
    columns = {
        (protocol, f"fpr={rate:g}"): f"{100 * rate:g} %, {protocol}"
        for rate in study.RATES
        for protocol in ("as fitted", "moved")
    }
    return results.percent_table(
        rows, ["data", "attack", "n"], ("protocol", "metric"), columns, digits=2
    )


def table_2() -> pd.DataFrame:
    """Table 2 of the paper as it is printed, precision in percent: for whoever can load its tasks."""
    frame = results.paper("quantile", "table2")
    return (
        frame.pivot(index="dataset", columns="attack", values="value")
        .loc[frame["dataset"].unique()]
        .rename_axis(columns=None)
        .rename_axis("task")
    )


def table_3(frame: pd.DataFrame) -> pd.DataFrame:
    """Table 3: accuracy of the targets in percent, the paper's ResNets beside."""
    titles = {("members",): "on members", ("others",): "on others"}
    made = results.percent_table(frame[frame["study"] == "model"], "data", ("metric",), titles)
    paper = results.paper("quantile", "table3")
    of_set = {
        name: paper[paper["dataset"] == theirs]["value"]
        for theirs, names in SETS.items()
        for name in names
    }
    made["paper, on others"] = [
        f"{of_set[name].min():.1f} to {of_set[name].max():.1f}" if name in of_set else results.DASH
        for name in made.index
    ]
    return made


def mismatch_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Figure 4 as a table: TPR in percent of LiRA with references of the target's architecture and of another one."""
    rows = frame[frame["study"] == "mismatch"].astype({"n": int})
    columns = {
        (which, metric): f"{which}: {TITLE_OF[metric]}"
        for metric in study.METRICS[1:]
        for which in ("own", "other")
    }
    return results.percent_table(rows, ["target", "n"], ("references", "metric"), columns)


def numbers(
    frame: pd.DataFrame, first: str, large: str, table: str, few: int
) -> list[tuple[dict, str]]:
    """Numbers that sentences of the page look up by name, each dictionary with the format of its
    numbers; results that a run does not have are left out.

    Args:
        frame: all results. first: the case that the page is about.
        large: the case of larger networks, whose numbers a sentence may ask for in every run.
        table: the case in the page's sentences on tables.
        few: number of references that is compared most.
    """

    def find(data: str, attack: str, metric: str, **where):
        found = frame
        for column, value in {"data": data, "attack": attack, "metric": metric, **where}.items():
            found = found[found[column] == value] if column in found else found.iloc[:0]
        return metrics.estimate(found, attack, metric).interval() if len(found) else None

    of_first = frame[(frame["study"] == "attacks") & (frame["data"] == first)]
    most = int(of_first["n"].max())
    keys = {
        "marginal": (MARGINAL, 0),
        "xy": (XY, 1),
        "one": (ONE, 1),
        "few": (LIRA, few),
        "lira": (LIRA, most),
    }
    low, tpr, auc = "pinball=0.01", "tpr_at_fpr=0.01", "auc"
    rates = {
        f"{name}-tpr": find(first, attack, tpr, n=n, study="attacks")
        for name, (attack, n) in keys.items()
    }
    rates |= {
        f"table-{name}": find(table, attack, tpr, n=n, study="attacks")
        for name, attack, n in (("xy", XY, 1), ("lira", LIRA, 4))
    }
    rates |= {
        f"fpr-{name}": find(first, XY, "fpr=0.01", protocol=name) for name in ("as fitted", "moved")
    }
    rates |= {
        f"hard-{name}": find(first, keys[name][0], "tpr", quarter=1)
        for name in ("xy", "one", "lira")
    }
    rates |= {
        "hard-alarms": find(first, XY, "fpr", quarter=1),
        "easy-alarms": find(first, XY, "fpr", quarter=4),
        "easy-xy": find(first, XY, "tpr", quarter=4),
        "fit": find(first, "model", "others"),
    }
    of_large = {
        f"large-{name}-tpr": find(large, attack, tpr, n=n, study="attacks")
        for name, (attack, n) in keys.items()
    }
    of_large |= {"large-fit": find(large, "model", "others")}
    rates |= {
        name: "an unknown share" if value is None else value for name, value in of_large.items()
    }
    explained = {
        name: find(data, XY, "explained")
        for name, data in (("explained", first), ("large-explained", large))
    }
    aucs = {
        f"{name}-auc": find(first, attack, auc, n=n, study="attacks")
        for name, (attack, n) in keys.items()
    }
    aucs |= {
        f"table-{name}-auc": find(table, attack, auc, n=1, study="attacks")
        for name, attack in (("xy", XY), ("x", X))
    }
    loss = {
        f"{name}-loss-{protocol}": find(table, attack, low, n=n, protocol=protocol)
        for name, attack, n in (("xy", XY, 1), ("lira", LIRA, 4))
        for protocol in ("as fitted", "moved")
    }
    agree = {
        name: 100 * (0.5 + value)
        for name, claim in (("agree", "C6"), ("agree-moved", "C6m"), ("agree-tables", "C6t"))
        if not isinstance(value := rules.number_of("quantile", claim, frame), str)
    }
    for name, data in ("first", first), ("large", large):
        both = [
            find(data, "pairs", f"agreement={rate:g}", protocol="as fitted") for rate in study.RATES
        ]
        agree |= {} if None in both else {f"agree-{name}": 50 * sum(one.value for one in both)}
    paper = printed("table1").query("metric == @tpr").set_index(["data", "attack", "n"])["value"]
    theirs = {
        f"paper-{name}": paper[first, *key] for name, key in keys.items() if (first, *key) in paper
    }
    cost = frame[frame["study"] == "costs"].set_index(["attack", "metric"])["value"]
    costs = {
        "passes": cost.get((XY, "passes")),
        "reference-passes": cost.get((LIRA, "passes")),
        "worth": cost.get((XY, "references")),
    }
    made = [
        (rates, ".1%"),
        (aucs, ".3f"),
        (loss, ".4f"),
        (explained, ".0%"),
        (agree, ".0f"),
        (theirs, ".1f"),
        (costs, ".2f"),
    ]
    named = [
        (
            {name.replace(" ", "-"): value for name, value in values.items() if value is not None},
            spec,
        )
        for values, spec in made
    ]
    (high, of), (low_rate, _) = printed_pairs().values()
    return [
        *named,
        (
            {
                "set": first,
                "most": most,
                "table-set": table,
                "paper-agree": high,
                "paper-agree-low": low_rate,
                "paper-pairs": of,
            },
            "",
        ),
    ]
