"""Tables and figures of the chapter that audits, and reports whole."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mia_book.chapters.audit import study
from mia_book.evidence import results
from mia_book.evidence.results import Cell
from mia_lib import drawing, metrics
from mia_lib.audit import report as reporting
from mia_lib.audit.attacks import ATTACKS
from mia_lib.audit.options import NUMBERS, PAGE
from mia_lib.audit.plans import CONTROL
from mia_lib.audit.report import Report

roc_figure = reporting.roc_figure  # of a report
MIME = "application/vnd.mia.audit+json"  # of a whole report
TITLE_OF = {"auc": "AUC", "tpr_at_fpr=0.01": "TPR at 1 %", "accuracy": "accuracy on non-members"}
BOUNDS = {
    "gradients": "one run, white-box: Dirac canaries",
    "mislabelled": "one run, black-box: mislabelled",
    "natural": "one run, black-box: as they come",
    "gradients, many runs": "1,000 runs, white-box: a Dirac canary",
    "mislabelled, many runs": "1,000 runs, black-box: a mislabelled one",
    "one run": "one run, in theory",
    "many runs": "1,000 runs, in theory",
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
                f"TPR at {reporting.percent(rate.fpr)} FPR": reporting.tpr(rate)
                for rate in attack.rates
            }
            rows.append(
                {
                    **of,
                    "attack": attack.name,
                    "AUC": _span(attack.auc),
                    **rates,
                    "p, corrected": f"{attack.p:.2g}",
                    "epsilon, at least": results.cell(attack.epsilon.bound, ".2f"),
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


def prices_table(report: Report) -> pd.DataFrame:
    """Table of the audited model and of changes to its recipe, with what each change brought in the
    words of the report."""
    rows = [
        {
            "recipe": "the model that is audited",
            "AUC of the loss": _span(report.result.loss.auc),
            "accuracy on non-members": f"{report.accuracy[1]:.3f}",
            "which": "was trained once, too",
        }
    ]
    rows += [
        {
            "recipe": price.name,
            "AUC of the loss": results.DASH if price.auc is None else _span(price.auc),
            "accuracy on non-members": results.DASH
            if price.accuracy is None
            else _span(price.accuracy),
            "which": price.effect,
        }
        for price in report.prices
    ]
    return pd.DataFrame(rows)


def many_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Table of one question about several models: AUC, TPR at 1 % FPR and accuracy, in percent."""
    frame = frame[frame["study"].isin(["forests", "twins", "references"])].copy()
    leaf = frame["leaf"].map(lambda n: "" if pd.isna(n) else f"leaves of {n:g}")
    noise = frame["noise"].fillna("")
    frame["models"] = (frame["study"] + ", " + leaf + noise).str.strip(", ")
    frame["score"] = frame["attack"].replace({"model": "loss"})
    return results.percent_table(
        frame, ["models", "score"], ("metric",), {(m,): t for m, t in TITLE_OF.items()}
    )


def leaves_figure(frame: pd.DataFrame) -> Figure:
    """Figure of what larger leaves take from the attack, and from the accuracy of the forest."""
    rows = frame[
        (frame["study"] == "forests")
        & frame["leaf"].notna()
        & frame["metric"].isin(["auc", "accuracy"])
    ]
    shown = metrics.summary(rows[rows["attack"] != "no model"], ["leaf", "attack", "metric"])
    shown = shown.assign(
        panel=shown["metric"].map({"auc": "AUC of the loss", "accuracy": TITLE_OF["accuracy"]}),
        by="forest",
    )
    return drawing.lineplot(
        shown,
        "leaf",
        "value",
        "by",
        panel="panel",
        log=True,
        sharey=False,
        xlabel="least records of a leaf",
        ylabel="",
    )


def tested_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Table of the share of audits with an alarm, without a leak and with one, in percent."""
    rows = frame[frame["study"] == "tested"].rename(columns={"data": "models"})
    titles = {("none",): "alarms without a leak", ("planted",): "alarms with one"}
    return results.percent_table(rows, "models", ("leak",), titles)


def one_run_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Table of bounds on epsilon, a row for each kind and a column for each promised epsilon: the
    accountant's, then means of lower bounds with intervals over runs, or over canaries."""
    there = set(zip(frame["promised"], frame["attack"], strict=True))

    def cell(promised: float, attack: str, metric: str = "epsilon", spec: str = ".2f"):
        if (
            (promised, attack) not in there
            or attack == "accountant"
            and promised == study.EPSILONS[-1]
        ):
            return results.DASH
        number = metrics.estimate(frame, attack, metric, promised=promised)
        return results.cell(
            number.interval((0.0, np.inf)) if attack in BOUNDS else number.value, spec
        )

    return pd.DataFrame(
        {
            "no noise" if promised == study.EPSILONS[-1] else f"{promised:g}": {
                "spent, says the accountant": cell(promised, "accountant"),
                **{title: cell(promised, kind) for kind, title in BOUNDS.items()},
                "one run: accuracy": cell(promised, "model", "accuracy", ".0%"),
            }
            for promised in sorted(frame["promised"].unique())
        }
    ).rename_axis("epsilon that was promised")
