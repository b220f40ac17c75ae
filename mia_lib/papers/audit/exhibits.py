"""Tables and figures of the chapter that audits, and reports whole."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from mia_lib import metrics
from mia_lib.audit import Report, figures, words
from mia_lib.audit.attacks import ATTACKS
from mia_lib.audit.planning import BLIND
from mia_lib.audit.report import NUMBERS, PAGE
from mia_lib.evidence import plotting, tables
from mia_lib.evidence.tables import Cell

MIME = "application/vnd.mia.audit+json"  # of a whole report
TITLE_OF = {"auc": "AUC", "tpr_at_fpr=0.01": "TPR at 1 %", "accuracy": "accuracy on non-members"}


def show_report(report: Report, name: str) -> None:
    """Display a report whole: in JupyterLab in a frame, in the book as a page of its own behind a link."""
    tables.check_name(name)
    page, title = report.html(), report.given.name
    numbers = json.dumps(report.data(), allow_nan=False)
    frame = (f'<details><summary>The whole report on {html.escape(title)}</summary><iframe title="{html.escape(title)}" '
             f'srcdoc="{html.escape(page)}" style="width:100%;height:80vh;border:1px solid #888"></iframe></details>')
    text = f"*The whole report on {title} is a page of its own, in the book and in JupyterLab.*"
    tables.display_bundle({"text/html": frame, "text/markdown": text, "text/plain": str(report),
                           MIME: {"name": name, "title": title, "files": {PAGE: page, NUMBERS: numbers}}})


def roc_figure(report: Report) -> Figure:
    """The report's own ROC."""
    one = report.judged
    return figures.roc(one.attacks, one.headline.name, len(report.given.members), len(report.given.non_members))


def plan_table(reports: Mapping[str, Report]) -> pd.DataFrame:
    """Each attack of the audit, and whether each report could run it, or why not."""
    steps = {title: {step.name: step for step in report.plan.steps} for title, report in reports.items()}
    said = {title: {name: "**ran**" if name in reports[title].scores else one.why or one.state for name, one in of.items()}
            for title, of in steps.items()}
    return pd.DataFrame([{"attack": name, **{title: of[name] for title, of in said.items()}} for name in ATTACKS])


def rates_table(reports: Mapping[str, Report]) -> pd.DataFrame:
    """What each attack found on all records, the one that speaks first, and the control without the model."""
    rows = []
    for title, report in reports.items():
        judged, of = report.judged, {"model": title} if len(reports) > 1 else {}
        for one in sorted((one for one in judged.attacks if not one.audits),
                          key=lambda one: (one.name != judged.headline.name, -one.auc.value)):
            found = {f"TPR at {words.percent(each.fpr)} FPR": words.rate(each) for each in one.rates}
            rows.append({**of, "attack": one.name, "AUC": _span(one.auc), **found, "p, corrected": f"{one.p:.2g}",
                         "epsilon, at least": tables.cell(one.epsilon.bound, ".2f")})
        alone = judged.blind
        rows.append({**of, "attack": f"*{BLIND}*", "AUC": _span(alone.auc), "p, corrected": f"{alone.p:.2g}, alone"})
    return pd.DataFrame(rows).fillna(tables.DASH)


def _span(found: metrics.Interval) -> Cell:
    return Cell(words.span(found), found.value, found.low, found.high)


def prices_table(report: Report) -> pd.DataFrame:
    """What changes of the recipe brought, in the words of the report, and the model that was audited."""
    rows = [{"recipe": "the model that is audited", "AUC of the loss": _span(report.judged.loss.auc),
             "accuracy on non-members": f"{report.accuracy[1]:.3f}", "which": "was trained once, too"}]
    rows += [{"recipe": one.name, "AUC of the loss": tables.DASH if one.auc is None else _span(one.auc),
              "accuracy on non-members": tables.DASH if one.accuracy is None else _span(one.accuracy),
              "which": words.remedy(one)} for one in report.prices]
    return pd.DataFrame(rows)


def many_table(frame: pd.DataFrame) -> pd.DataFrame:
    """The same question about several models: AUC, TPR at 1 % FPR and accuracy, in percent."""
    frame = frame[frame["study"].isin(["forests", "twins", "references"])].copy()
    leaf, noise = frame["leaf"].map(lambda n: "" if pd.isna(n) else f"leaves of {n:g}"), frame["noise"].fillna("")
    frame["models"] = (frame["study"] + " " + leaf + noise).str.strip()
    frame["score"] = frame["attack"].replace({"model": "loss"})
    rows = metrics.summary(frame, ["models", "score", "attack", "metric"])
    return tables.beside_paper(rows, rows.iloc[:0], ["models", "score"], {(m,): t for m, t in TITLE_OF.items()}, ("metric",))


def leaves_figure(frame: pd.DataFrame) -> Figure:
    """What larger leaves take from the attack, and from the forest."""
    rows = frame[(frame["study"] == "forests") & frame["leaf"].notna() & frame["metric"].isin(["auc", "accuracy"])]
    shown = metrics.summary(rows, ["leaf", "attack", "metric"])
    shown = shown.assign(panel=shown["metric"].map({"auc": "AUC of the loss", "accuracy": TITLE_OF["accuracy"]}), by="forest")
    return plotting.lineplot(shown, "leaf", "value", "by", panel="panel", log=True, sharey=False,
                             xlabel="least records of a leaf", ylabel="")


def tested_table(frame: pd.DataFrame) -> pd.DataFrame:
    """How many audits raise an alarm, without a leak and with a planted one, in percent."""
    rows = frame[frame["study"] == "tested"].rename(columns={"data": "models"})
    summary = metrics.summary(rows, ["models", "leak", "attack", "metric"])
    titles = {("none",): "alarms without a leak", ("planted",): "alarms with one"}
    return tables.beside_paper(summary, summary.iloc[:0], "models", titles, ("leak",))
