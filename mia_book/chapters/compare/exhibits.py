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
DRAWN = [name for name, entry in ATTACKS.items() if entry.attack.comparison == "figure"][::-1]
KNOWS = {
    "none": "–",
    "out only": "without",
    "in and out": "both",
}  # references with the record, and without it
BESIDE = ("MALT", "RMIA", "LiRA", "BaVarIA")  # that a reader can choose between


def of_banks(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows about attacks on banks, and on networks that know their members by heart, with as few
    queries as each needs."""
    return frame[frame["study"].isin(["bank", "by heart"]) & frame["attack"].isin(ATTACKS)]


def main_table(frame: pd.DataFrame, count: int, metric: str = study.METRICS[1]) -> pd.DataFrame:
    """Table of every attack with `count` references or without any: one metric on each data set, in
    percent."""
    rows = of_banks(frame)
    rows = rows[rows["references"].isin([0, count])].astype({"queries": int, "references": int})
    made = results.percent_table(
        rows,
        ["attack", "references", "queries"],
        ("data", "metric"),
        {(data, metric): data for data in rows["data"].unique()},
    )
    knows = [KNOWS[ATTACKS[name].kind] for name in made.index.get_level_values("attack")]
    return made.set_index(pd.Index(knows, name="trained"), append=True).reorder_levels([0, 3, 1, 2])


def references_figure(frame: pd.DataFrame) -> Figure:
    """TPR at 1 % FPR against the number of references, a panel for each data set; attacks without
    references are drawn across."""
    rows = metrics.summary(
        of_banks(frame).query("metric == 'tpr_at_fpr=0.01'"),
        ["data", "references", "attack", "metric"],
    )
    alone = rows[rows["references"] == 0]
    across = [alone.assign(references=n) for n in set(rows["references"]) - {0}]
    shown = pd.concat([rows[rows["references"] > 0], *across])
    orders = {"data": list(rows["data"].unique()), "attack": DRAWN}
    shown = shown[shown["attack"].isin(DRAWN)].sort_values(
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
    "labels": "predicted labels",
    "losses": "losses of the true label",
    "outputs": "all outputs",
    "one": "the recipe, and one model of your own without the record",
    "apart": "{} models of your own without the record",
    "few": "{} models, half of them with the record",
    "many": "{} models, half of them with the record",
}


def guide_table(frame: pd.DataFrame, count: int) -> pd.DataFrame:
    """Table that guides the choice of an attack by what an attacker has: the attack that finds most
    members at 1 % FPR on every second target, and its TPR on the other targets, in percent, on each
    data set."""
    means, chosen, rows = study.means_of(frame, count), study.guide(frame, count), {}
    for have, name in chosen.items():
        references = means[have][2]
        rows[HAVE[have].format(references)] = {
            "attack": name,
            **{
                data: results.format_percent(study.reported(frame, name, references, data))
                for data in of_banks(frame)["data"].unique()
            },
        }
    return pd.DataFrame(rows.values(), index=pd.Index(rows, name="you have"))


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
        recipe, of_case = case.study == "recipe", frame[frame["data"] == case.name]
        augmentation, length = case.name.split(", ") if recipe else NETWORKS[case.name]
        most, right = (
            of_case["references"].max(),
            map(results.format_percent, case.accuracy.mean(0)),
        )
        alike = {
            "whose": "ours",
            "network": f"small, 1,000 members, {length}" if recipe else length,
            "augmentation": augmentation,
            "references": str(most),
            **dict(zip(made.columns[6:8], right, strict=True)),
        }
        for name in ("LiRA", "LiRA, 18 queries") if recipe else ("LiRA", "RMIA"):
            found = {
                one: metrics.estimate(of_case, name, one, references=most).interval((0.0, 1.0))
                for one in study.METRICS
            }
            rates = {
                TITLE_OF[metric]: results.format_percent(interval)
                for metric, interval in found.items()
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


def tail_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Table of LiRA's TPR with the most references, and of two rates that need fewer: what the loss
    alone tells of it, and RMIA with one reference, in percent."""
    most = frame.groupby("data")["references"].transform("max")
    rows = frame[
        frame["attack"].eq("loss tail")
        | frame["attack"].eq("LiRA") & frame["references"].eq(most)
        | frame["attack"].eq("RMIA, offline") & frame["references"].eq(1)
    ]
    return results.percent_table(
        rows,
        "data",
        ("attack", "metric"),
        {
            (name, metric): f"{name}: {TITLE_OF[metric]}"
            for metric in study.METRICS[1:]
            for name in ("LiRA", "loss tail", "RMIA, offline")
        },
    )


def ranking_figure(frame: pd.DataFrame, count: int, rival: str = "RMIA") -> Figure:
    """Lead of each attack over one of them (`rival`) in points of TPR at 1 % FPR, paired, with as
    many references, a panel for each data set."""
    rows = of_banks(frame)
    rows = rows[rows["references"].isin([0, count]) & (rows["metric"] == study.METRICS[1])]
    leads: dict[str, dict] = {}
    for data, part in rows.groupby("data", sort=False):
        first = metrics.estimate(part, rival, study.METRICS[1])
        leads[data] = {
            name: 100 * (metrics.estimate(part, name, study.METRICS[1]) - first).interval()
            for name in part["attack"].unique()
            if name != rival
        }
    first = next(iter(leads.values()))
    names = sorted(first, key=lambda name: first[name].value)
    figure, axes = drawing.panels(list(leads), 0.28 * len(names) + 1.2)
    for axis, of_panel in zip(axes, leads.values(), strict=True):
        for place, name in enumerate(names):
            if name in of_panel:
                look, lead = drawing.style_of(name, place), of_panel[name]
                ends = [[lead.value - lead.low], [lead.high - lead.value]]
                axis.errorbar(lead.value, place, xerr=ends, fmt=look["marker"], color=look["color"])
        axis.axvline(0, **drawing.CHANCE)
        axis.set(
            yticks=range(len(names)),
            yticklabels=names if axis is axes[0] else [""] * len(names),
            xlabel=f"points from {rival}",
        )
        axis.grid(axis="y", visible=False)
    return figure


def by_references_table(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """Table of the study `what`, "tables" or "public": a row for each data set, attack and number
    of references."""
    rows = frame[frame["study"] == what]
    columns = {(metric,): TITLE_OF[metric] for metric in TITLE_OF if metric in set(rows["metric"])}
    return results.percent_table(rows, ["data", "references", "attack"], ("metric",), columns)


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
    made = threat_model({name: registry.ATTACKS[name].needs for name in shown})
    sources = [registry.ATTACKS[name].source for name in shown]
    return made.assign(
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
