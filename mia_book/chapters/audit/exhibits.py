"""Tables and figures of the chapter that audits, and reports whole."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mia_book.chapters.audit import study
from mia_book.evidence import results
from mia_book.evidence.results import Cell
from mia_lib import drawing, metrics
from mia_lib.audit import report as reporting
from mia_lib.audit import statistics
from mia_lib.audit.attacks import ATTACKS
from mia_lib.audit.options import NUMBERS, PAGE
from mia_lib.audit.plans import CONTROL
from mia_lib.audit.report import Report

roc_figure = reporting.roc_figure  # of a report
MIME = "application/vnd.mia.audit+json"  # of a whole report
CANARIES = {
    "gradients": "one run, white-box: Dirac canaries",
    "gradients, many runs": "1,000 runs, white-box: a Dirac canary",
    "mislabelled": "one run, black-box: mislabelled",
    "mislabelled, many runs": "1,000 runs, black-box: a mislabelled one",
    "natural": "one run, black-box: as they come",
    "in theory": "either, in theory",
}
LABELS = {
    "MALT": "loss",
    "calibrated loss": "calibrated loss",
    "BASE": "BASE",
    "LiRA": "online LiRA",
}


def show_report(report: Report, name: str) -> None:
    """Display a whole report: in JupyterLab in a frame, in the book as a page behind a link."""
    results.check_name(name)
    page, title = report.html(), report.inputs.options.name
    numbers = json.dumps(report.data(), allow_nan=False)
    frame = (
        f'<details><summary>The whole report on {html.escape(title)}</summary><iframe title="{html.escape(title)}" '
        f'srcdoc="{html.escape(page)}" style="width:100%;height:80vh;border:1px solid #888"></iframe></details>'
    )
    text = f"*The whole report on {title} is a page of its own, in the book and in JupyterLab.*"
    results.display_bundle(
        {
            "text/html": frame,
            "text/markdown": text,
            "text/plain": str(report),
            MIME: {"name": name, "title": title, "files": {PAGE: page, NUMBERS: numbers}},
        }
    )


def plan_table(reports: Mapping[str, Report]) -> pd.DataFrame:
    """Table of the audit's attacks: whether each report could run them, or why not."""
    cells = {
        title: {
            step.name: "**ran**" if step.name in report.scores else step.why or step.state
            for step in report.plan.steps
        }
        for title, report in reports.items()
    }
    return pd.DataFrame(cells).loc[list(ATTACKS)].rename_axis("attack").reset_index()


def rates_table(reports: Mapping[str, Report]) -> pd.DataFrame:
    """Table of each attack's results on all records, first the attack that the report names first,
    and of the control without the model."""
    rows = []
    for title, report in reports.items():
        result, of = report.result, {"model": title} if len(reports) > 1 else {}
        for attack in sorted(
            (attack for attack in result.attacks if not attack.audit_tool),
            key=lambda attack: (attack.name != result.best.attack, -attack.auc.value),
        ):
            rates = {
                f"TPR at {reporting.percent(rate.fpr)} FPR": reporting.tpr(
                    rate, int(report.members.sum())
                )
                for rate in attack.rates
            }
            rows.append(
                {
                    **of,
                    "attack": attack.name,
                    "AUC": _span(attack.auc),
                    **rates,
                    "p, corrected": f"{attack.p:.2g}",
                }
            )
        if result.control:
            rows.append(
                {
                    **of,
                    "attack": f"*{CONTROL}*",
                    "AUC": _span(result.control.auc),
                    "p, corrected": f"{result.control.p:.2g}, alone",
                }
            )
    return pd.DataFrame(rows).fillna(results.DASH)


def _span(interval: metrics.Interval) -> Cell:
    return Cell(reporting.span(interval), interval.value, interval.low, interval.high)


def severity_table() -> pd.DataFrame:
    """Table of the scale by which reports name a leak."""
    return pd.DataFrame(
        [
            {
                "a report says": name,
                "from an AUC of": results.cell(auc, ".2f") if auc else "any leak",
                "or, at 1 % FPR, from": f"{10 * times:g} of 1,000 members" if times else "any leak",
            }
            for name, (auc, times) in statistics.SEVERITIES.items()
        ]
    )


def detectable_table(report: Report) -> pd.DataFrame:
    """Table of what audits of other sizes find four times in five, by as many attacks as ran in a report."""
    return pd.DataFrame(
        [
            {
                "members, and as many non-members": f"{one.records:,}",
                "smallest AUC": results.cell(one.auc, ".3f"),
                "smallest TPR at 1 % FPR, percent": results.format_percent(one.tpr),
            }
            for one in report.detectable
        ]
    )


def networks_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Table of networks of each recipe: accuracy, AUC and TPR at 1 % FPR of each attack, in percent."""
    rows = frame[frame["study"] == "networks"]
    titles = {("model", "accuracy"): "accuracy on non-members"}
    for metric in study.METRICS:
        titles |= {
            (name, metric): f"{study.TITLE_OF[metric]}, {LABELS[name]}" for name in study.ATTACKS
        }
    return results.percent_table(rows, "recipe", ("attack", "metric"), titles)


def one_by_one(frame: pd.DataFrame, recipes: Sequence[str]) -> Figure:
    """Figure of the AUC of the loss and of the calibrated loss on every network of some recipes, a dot each."""
    names = ("MALT", "calibrated loss")
    figure, axes = drawing.panels([LABELS[name] for name in names], 3.2, sharey=True)
    for axis, name in zip(axes, names, strict=True):
        look = drawing.style_of(name)
        for place, recipe in enumerate(recipes):
            values = metrics.estimate(frame, name, "auc", study="networks", recipe=recipe).values
            across = place + np.linspace(-0.25, 0.25, len(values))
            axis.plot(
                across, np.sort(values), ls="none", marker=look["marker"], color=look["color"]
            )
        axis.axhline(0.5, **drawing.CHANCE)
        drawing.ticks(axis.xaxis, range(len(recipes)), recipes)
    axes[0].set_ylabel("AUC of a single network")
    return figure


def tested_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Table of the share of audits with an alarm, without a leak and with one, in percent."""
    rows = frame[frame["study"] == "tested"].rename(columns={"data": "models"})
    titles = {("none",): "alarms without a leak", ("planted",): "alarms with one"}
    return results.percent_table(rows, "models", ("leak",), titles)


def one_run_table(frame: pd.DataFrame, bound: str) -> pd.DataFrame:
    """Table of lower bounds on epsilon by one `bound`, a row for each kind of canaries and a column for each promised epsilon,
    after what the accountant says; means with intervals over runs, or over canaries."""
    there = set(zip(frame["promised"], frame["attack"], strict=True))
    last = study.EPSILONS[-1]

    def cell(promised: float, attack: str, metric: str = "epsilon", spec: str = ".2f"):
        if (promised, attack) not in there or attack == "accountant" and promised == last:
            return results.DASH
        where = {"bound": bound} if attack in CANARIES else {}
        number = metrics.estimate(frame, attack, metric, promised=promised, **where)
        return results.cell(number.interval((0.0, np.inf)) if where else number.value, spec)

    return pd.DataFrame(
        {
            "no noise" if promised == last else f"{promised:g}": {
                "spent, says the accountant": cell(promised, "accountant"),
                **{title: cell(promised, kind) for kind, title in CANARIES.items()},
                "one run: accuracy": cell(promised, "model", "accuracy", ".0%"),
            }
            for promised in sorted(frame["promised"].unique())
        }
    ).rename_axis("epsilon that was promised")
