"""Tables and figures of the chapter that compares attacks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mia_book.chapters.compare import study
from mia_book.chapters.compare.study import ATTACKS, ENTRIES, Case, Scores
from mia_book.evidence import results
from mia_lib import drawing, metrics
from mia_lib.attacks import registry, threat_model

TITLE_OF = {"auc": "AUC", "tpr_at_fpr=0.01": "TPR at 1 %", "tpr_at_fpr=0.001": "TPR at 0.1 %"}
DRAWN = study.LOSS_ATTACKS[::-1]
KNOWS = {
    "none": "–",
    "out only": "without",
    "in and out": "both",
}  # references with the record, and without it
BESIDE = ("MALT", "RMIA", "LiRA", "BaVarIA")  # that a reader can choose between


def main_table(frame: pd.DataFrame, count: int, metric: str = study.METRICS[1]) -> pd.DataFrame:
    """Table of every attack with `count` references or without any: one metric on each data set, in
    percent."""
    rows = frame[frame["attack"].isin(ATTACKS) & frame["references"].isin([0, count])]
    rows = rows.astype({"queries": int, "references": int})
    table = results.percent_table(
        rows,
        ["attack", "references", "queries"],
        ("data", "metric"),
        {(data, metric): data for data in rows["data"].unique()},
    )
    knows = [KNOWS[ATTACKS[name].kind] for name in table.index.get_level_values("attack")]
    return table.set_index(pd.Index(knows, name="trained"), append=True).reorder_levels(
        [0, 3, 1, 2]
    )


def references_figure(frame: pd.DataFrame) -> Figure:
    """TPR at 1 % FPR against the number of references, a panel for each data set; attacks without
    references are drawn across."""
    rows = metrics.summary(
        frame.query("metric == 'tpr_at_fpr=0.01'"),
        ["data", "references", "attack", "metric"],
    )
    alone = rows[rows["references"] == 0]
    others = rows[["data", "references"]].drop_duplicates().query("references > 0")
    across = alone.drop(columns="references").merge(others, on="data")
    shown = pd.concat([rows[rows["references"] > 0], across])
    orders = {"data": list(rows["data"].unique()), "attack": DRAWN}
    shown = shown.sort_values(
        ["data", "references", "attack"],
        key=lambda column: (
            column.map(orders[column.name].index) if column.name in orders else column
        ),
    )
    return _rates_against("references", shown, "references of a record")


def _rates_against(column: str, shown: pd.DataFrame, xlabel: str) -> Figure:
    return drawing.lineplot(
        shown,
        column,
        "value",
        "attack",
        panel="data",
        log=True,
        percent=True,
        sharey=False,
        xlabel=xlabel,
        ylabel="TPR at 1 % FPR",
        rows=1 + (shown["data"].nunique() > 3),
    )


def queries_figure(frame: pd.DataFrame, count: int) -> Figure:
    """TPR at 1 % FPR against the number of queries about a record, a panel for each data set that
    was asked more than once: with so many references from a bank, and with all that there are for
    the recipes that train long."""
    asked = frame["asks"].isin([*study.MANY_QUERY_ATTACKS, study.LIRA_BY_VIEW, "Curv, log ratio"])
    rows = frame[
        asked
        & frame["metric"].eq(study.METRICS[1])
        & (frame["references"].eq(count) | frame["data"].str.contains(", 20 epochs"))
    ]
    rows = rows.assign(attack=rows["asks"])
    rows = rows[rows.groupby(["data", "attack"])["queries"].transform("nunique") > 1]
    shown = metrics.summary(rows, ["data", "queries", "attack", "metric"])
    shown = pd.concat(
        [part.sort_values("queries") for _, part in shown.groupby("data", sort=False)]
    )
    return _rates_against("queries", shown, "queries about a record")


HAVE = {
    "alone": "the loss of each record",
    "one": "one model of your own without the record",
    "two": "two models, one of them with the record",
    "apart": "a few models without the record",
    "few": "as few, half of them with the record",
    "many": "as many as there are, half of them with the record",
}
FITS = {
    study.GENERALISES: "it errs on some of its members",
    study.BY_HEART: "it is right on all its members",
    "either": "you cannot tell",
}


def guide_table(choices: pd.DataFrame) -> pd.DataFrame:
    """Table that guides the choice of an attack, from `study.guide`: by what an attacker has, and by how well models of this
    kind know their members."""
    cells = choices["attack"] + choices.agg(" ({0[good]} of {0[settings]})".format, axis=1)
    table = choices.assign(cell=cells).pivot(index="means", columns="fit", values="cell")
    table = table.loc[
        [means for means in HAVE if means in table.index], [fit for fit in FITS if fit in table]
    ]
    return table.rename(index=HAVE, columns=FITS).rename_axis("you have").rename_axis(None, axis=1)


def rates_table(choices: pd.DataFrame) -> pd.DataFrame:
    """Table of the rates at 1 % FPR of the chosen attacks, in percent, on each data set that they were chosen for."""
    rows = choices[choices["fit"] != "either"]
    rates = [
        {data: results.format_percent(number) for data, number in of_row.items()}
        for of_row in rows["rates"]
    ]
    index = [rows["means"].map(HAVE).rename("you have"), rows["attack"]]
    table = pd.DataFrame(rates, index=pd.MultiIndex.from_arrays(index))
    return table.groupby(level=[0, 1], sort=False).first().fillna(results.DASH)


NETWORKS = {
    "CIFAR-10": ("none", "small, 25,000 members"),
    "CIFAR-10, ResNet-9": ("flips and crops", "ResNet-9, 25,000 members"),
}


def reported_table(frame: pd.DataFrame, cases: Iterable[Case]) -> pd.DataFrame:
    """The numbers that papers and their readers report on CIFAR-10, then ours, with the differences
    in set-up, in percent."""
    made = pd.read_csv(
        Path(__file__).parent / "printed" / "reported.csv", dtype=str, keep_default_na=False
    ).replace("", results.DASH)
    rows = []
    for case in cases:
        recipe, of_case = case.name not in NETWORKS, frame[frame["data"] == case.name]
        augmentation, length = case.name.split(", ") if recipe else NETWORKS[case.name]
        most = of_case["references"].max()
        right = map(results.format_percent, case.accuracy.mean(0))
        alike = {
            "whose": "ours",
            "network": f"small, 1,000 members, {length}" if recipe else length,
            "augmentation": augmentation,
            "references": str(most),
            **dict(zip(made.columns[6:8], right, strict=True)),
        }
        for name in ("LiRA", "LiRA, 18 queries") if recipe else ("LiRA", "RMIA"):
            intervals = {
                one: metrics.estimate(of_case, name, one, references=most).interval((0.0, 1.0))
                for one in study.METRICS
            }
            rates = {
                TITLE_OF[metric]: results.format_percent(interval)
                for metric, interval in intervals.items()
            }
            rows.append(
                alike
                | {"attack": name.partition(",")[0], "queries": str(ENTRIES[name].queries)}
                | rates
            )
    table = pd.concat([made, pd.DataFrame(rows, columns=made.columns)]).replace(
        results.BELOW_RESOLUTION, results.DASH
    )
    table["network"] += table.pop("augmentation").map(
        lambda how: "" if how in ("none", results.DASH) else f", {how}"
    )
    table["attack"] += table.pop("queries").map(
        lambda count: "" if count in ("1", results.DASH) else f", {count} queries"
    )
    right = zip(table.pop("right on members"), table.pop("right on others"), strict=True)
    table["right on members, others"] = [
        results.DASH if results.DASH in map(str, pair) else " / ".join(map(str, pair))
        for pair in right
    ]
    return table.set_index(["network", "whose", "attack", "references", "right on members, others"])


def sharing_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Table of attacks with one reference that shares half of the target's members, and with one
    that shares none."""
    rows = frame[frame["study"] == "sharing"]
    columns = {
        (metric, overlap): f"{TITLE_OF[metric]}: shares {overlap}"
        for metric in study.METRICS[1:]
        for overlap in ("half", "nothing")
    }
    return results.percent_table(rows, ["data", "attack"], ("metric", "overlap"), columns)


def regimes_table(cases: Iterable[Case]) -> pd.DataFrame:
    """Table of the targets: number of records that trained each, and how often they are right."""
    return pd.DataFrame(
        [
            {
                "models of": case.name,
                "fit": case.fit,
                "how many": len(case.game.members),
                "members each": f"{case.trained:,}",
                **{
                    f"right on {side} (%)": results.format_percent(value)
                    for side, value in zip(
                        ("members", "others"), case.accuracy.mean(0), strict=True
                    )
                },
            }
            for case in cases
        ]
    )


def access_table() -> pd.DataFrame:
    """Table of the threat models, as declared where the attacks are computed, and of the attacks'
    sources."""
    shown = [*ATTACKS, "quantile regression"]
    table = threat_model({name: registry.ATTACKS[name].needs for name in shown})
    sources = [registry.ATTACKS[name].source for name in shown]
    return table.assign(
        source=[f"{{cite}}`{source}`" if source else "this book" for source in sources]
    )


def beside(
    cases: Iterable[Case], scores: Iterable[Scores], count: int
) -> dict[str, tuple[dict, np.ndarray]]:
    """Scores of `BESIDE` and members, by data set, for the picture of two attacks."""
    pairs = {}
    for case, of_case in zip(cases, scores, strict=True):
        by_name = {**of_case[0], **of_case[count]}
        targets = len(next(iter(by_name.values())))
        pairs[case.name] = (
            {name: by_name[name] for name in BESIDE if name in by_name},
            case.game.members[: 2 * targets : 2],
        )
    return pairs
