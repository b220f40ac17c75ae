"""Tables, figures and verdicts of the chapter that audits, and reports whole."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mia_lib import metrics
from mia_lib.audit import Report, words
from mia_lib.audit.attacks import ATTACKS
from mia_lib.audit.judging import Rate
from mia_lib.audit.planning import BLIND, RUNS
from mia_lib.audit.report import NUMBERS, PAGE
from mia_lib.evidence import claims, panels, plotting, tables
from mia_lib.evidence.tables import Cell
from mia_lib.metrics.interval import Interval, over_pairs, share_over
from mia_lib.papers.audit.study import CALL, LEVEL, Many, Trials
from mia_lib.papers.numbers import number

MIME = "application/vnd.mia.audit+json"  # of a whole report
CURVES = 4  # at most, of one report
LOOK = {name: plotting.style_of(like) for name, like in (  # one for each attack, in whichever figure it is
    ("MALT", "MALT"), ("modified entropy", "RMIA"), ("confidence", "Marginal"), ("0-1", "0-1"), ("LiRA", "LiRA"),
    ("LiRA, offline", "LiRA, as released"), ("RMIA", "Curv ZO LR"), ("calibrated loss", "Calibrated loss"),
    ("quantile regression", "Quantile regression"), ("gradient norm", "gradient alone"), ("curvature", "Curv, log ratio"))}
MEASURES = ("auc", f"tpr_at_fpr={CALL}")


def show_report(report: Report, name: str) -> None:
    """Display a report whole: in JupyterLab in a frame, in the book as a page of its own behind a link.

    Args:
        report: of an audit. name: of its page, lower-case letters, digits and hyphens.
    """
    tables.check_name(name)
    page, title = report.html(), report.given.name
    numbers = json.dumps(report.data(), allow_nan=False)
    frame = (f'<details><summary>The whole report on {html.escape(title)}</summary><iframe title="{html.escape(title)}" '
             f'srcdoc="{html.escape(page)}" style="width:100%;height:80vh;border:1px solid #888"></iframe></details>')
    text = f"*The whole report on {title} is a page of its own, in the book and in JupyterLab.*"
    tables.display_bundle({"text/html": frame, "text/markdown": text, "text/plain": str(report),
                           MIME: {"name": name, "title": title, "files": {PAGE: page, NUMBERS: numbers}}})


# ------------------------------------------------------------------------------------------------------- what permits what


def plan_table(reports: Mapping[str, Report]) -> pd.DataFrame:
    """Each attack with what it needs, and whether each audit could run it, or why not."""
    rows = []
    for attack in ATTACKS.values():
        row = {"attack": attack.name, "access": attack.needs.access, "reference models": attack.needs.references}
        for title, report in reports.items():
            step = next(one for one in report.plan.steps if one.name == attack.name)
            row[title] = "**ran**" if attack.name in report.scores else step.why or step.state
        rows.append(row)
    return pd.DataFrame(rows)


def given_table(reports: Mapping[str, Report]) -> pd.DataFrame:
    """What each audit was given."""
    return pd.DataFrame([{
        "audit": title, "the model, as": report.given.target.kind, "members": tables.cell(len(report.given.members), ","),
        "non-members": tables.cell(len(report.given.non_members), ","),
        "public records": tables.cell(len(report.given.public), ",") if report.given.public else "none",
        "recipe": "yes" if report.given.recipe else "no", "references": report.plan.references or "none",
        "parts that ran": sum(step.state == RUNS for step in report.plan.steps)} for title, report in reports.items()])


# ----------------------------------------------------------------------------------------------------------- what was found


def _plain(report: Report) -> list:
    """The attacks that are told nothing, the one that speaks first, then by AUC."""
    speaks = report.judged.headline.name
    return sorted((one for one in report.judged.attacks if not one.audits),
                  key=lambda one: (one.name != speaks, -one.auc.value))


def roc_figure(reports: Mapping[str, Report]) -> Figure:
    """ROC of each report on logarithmic axes, the attack that speaks with its pointwise band; below one record is shaded."""
    figure, axes = panels.grid(list(reports), height=4.7 if len(reports) > 1 else 5.4,
                               width=panels.WIDTH if len(reports) > 1 else 5.4, ylabel="True positive rate (logarithmic)")
    for axis, report in zip(axes, reports.values(), strict=False):
        _roc(axis, report)
    panels.legend(figure, 2)
    return figure


def _roc(axis: Axes, report: Report) -> None:
    members, others = 1 / len(report.given.members), 1 / len(report.given.non_members)
    low = min(members, others) / 1.6
    axis.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1), box_aspect=1,
             xlabel="False positive rate (logarithmic)")
    shown = [one for one in _plain(report) if len(np.unique(report.scores[one.name])) > 2][:CURVES]  # others have no curve
    for one in shown:
        speaks = one.name == report.judged.headline.name
        look = {**LOOK[one.name], "marker": "none"}
        tpr, floor, ceiling = (np.maximum(part, low / 2) for part in (one.curve.tpr, one.curve.low, one.curve.high))
        axis.plot(one.curve.fpr, tpr, drawstyle="steps-post", label=one.name, lw=2.4 if speaks else 1.4, **look)
        if speaks:
            axis.fill_between(one.curve.fpr, floor, ceiling, step="post", color=look["color"], alpha=0.18, lw=0)
    axis.plot([low, 1], [low, 1], **panels.CHANCE)
    axis.axvspan(low, others, color="#E2E2E2", lw=0, zorder=3)
    axis.axhspan(low, members, color="#E2E2E2", lw=0, zorder=3)


def rates_table(reports: Mapping[str, Report]) -> pd.DataFrame:
    """What each attack found on all records, and the control without the model."""
    rows = []
    for title, report in reports.items():
        of = {"model": title} if len(reports) > 1 else {}
        for one in _plain(report):
            found = {f"TPR at {words.percent(each.fpr)} FPR": _rate(each) for each in one.rates}
            rows.append({**of, "attack": one.name, "AUC": _span(one.auc), **found, "p, corrected": _p(one.p),
                         "epsilon, at least": tables.cell(one.epsilon.bound, ".2f")})
        chance = {f"TPR at {words.percent(each.fpr)} FPR": Cell(words.chance(each), 100 * each.chance, unit="%")
                  if each.resolved else tables.NOTHING for each in report.judged.attacks[0].rates}
        rows.append({**of, "attack": "*scores that know nothing*", "AUC": tables.cell(0.5, "g"), **chance,
                     "p, corrected": tables.NOTHING, "epsilon, at least": tables.NOTHING})
        alone = report.judged.blind
        empty = {f"TPR at {words.percent(each.fpr)} FPR": tables.NOTHING for each in report.judged.attacks[0].rates}
        rows.append({**of, "attack": f"*{BLIND}*", "AUC": _span(alone.auc), **empty,
                     "p, corrected": f"{_p(alone.p)}, alone", "epsilon, at least": tables.NOTHING})
    return pd.DataFrame(rows)


def _span(found: Interval) -> Cell:
    return Cell(words.span(found), found.value, found.low, found.high)


def _rate(one: Rate) -> Cell | str:
    text, found = words.rate(one), 100 * one.found
    wordy = not one.resolved or one.tied and not found.value
    return text if wordy else Cell(text, found.value, found.low, found.high, unit="%")


def _p(value: float) -> Cell | str:
    return "< 0.0001" if value < 1e-4 else tables.cell(value, ".2g")


def prices_table(report: Report) -> pd.DataFrame:
    """What changes of the recipe brought, in the words of the report."""
    return pd.DataFrame([{
        "recipe": one.name, "AUC of the loss": "–" if one.auc is None else _span(one.auc),
        "accuracy on non-members": "–" if one.accuracy is None else _span(one.accuracy),
        "which": words.remedy(one)} for one in report.prices])


def not_run(why: str) -> pd.DataFrame:
    """A table in the place of one that there is not."""
    return pd.DataFrame([{tables.NOT_RUN: f"{why}."}])


def shows_list(report: Report) -> str:
    """What an audit shows and does not show, as a list in Markdown."""
    return "\n".join(f"- {one}" for one in words.shows(report.given, report.plan, report.judged))


# ----------------------------------------------------------------------------------------------------- more than one model


def beyond(found: Many, name: str, minus: str, metric: str = "auc") -> Interval:
    """A metric of one score less that of another, over models and records."""
    return number(found.scores[name], found.members, metric, found.scores[minus], measures=_measures(found))


def alone(found: Many, name: str, metric: str = "auc") -> Interval:
    """A metric of one score, over models and records."""
    return number(found.scores[name], found.members, metric, measures=_measures(found))


def _measures(found: Many) -> tuple[str, ...]:
    return MEASURES if metrics.resolves(found.members, CALL) else MEASURES[:1]


def many_table(found: Mapping[str, Many], titles: Mapping[str, str]) -> pd.DataFrame:
    """The loss or another score of every model, mean with interval, and accuracy on non-members.

    Args:
        found: subject -> its models. titles: name of a score -> what the table calls it.
    """
    rows = []
    for subject, one in found.items():
        for name in one.scores:
            resolved = len(_measures(one)) > 1
            rows.append({
                "models": subject, "score": titles.get(name, name), "how many": len(one.members),
                "AUC": tables.cell(alone(one, name)),
                "TPR (%) at 1 % FPR": tables.format_percent(alone(one, name, MEASURES[1])) if resolved else tables.BELOW,
                "accuracy on non-members": (tables.cell(over_pairs(one.accuracy[name], (0.0, 1.0), "models"))
                                            if name in one.accuracy else tables.NOTHING)})
    return pd.DataFrame(rows)


def leaves_figure(found: Many, leaves: Sequence[int]) -> Figure:
    """What larger leaves take from the attack, and from the model."""
    figure, axes = panels.grid(["what the loss gives away", "what the forest is good for"], height=3.4)
    for axis, label, values in ((axes[0], "AUC", [alone(found, f"leaf {leaf}") for leaf in leaves]),
                                (axes[1], "accuracy on non-members",
                                 [over_pairs(found.accuracy[f"leaf {leaf}"], (0.0, 1.0), "models") for leaf in leaves])):
        panels.bars(axis, leaves, values, **{**plotting.style_of("MALT"), "linestyle": "-"})
        axis.set(xscale="log", xlabel="least records of a leaf", ylabel=label)
        panels.ticks(axis.xaxis, leaves)
    axes[0].axhline(0.5, **panels.CHANCE)
    return figure


def tested_figure(tests: Mapping[str, Trials]) -> Figure:
    """AUC of audits of models that never saw the "members", and of the same with a planted leak."""
    figure, axes = panels.grid(1, height=1.4 + 0.9 * len(tests))
    axis = axes[0]
    for place, one in enumerate(tests.values()):
        for values, up, label, look in ((one.strange, 0.16, "never saw them", {"marker": "o", "color": plotting.BLUE}),
                                        (one.planted, -0.16, "the same, with a leak", {"marker": "s", "color": plotting.RED})):
            axis.plot(values, np.full(len(values), place + up), ls="none", ms=6, alpha=0.75, label=label, **look)
    axis.axvline(0.5, **panels.CHANCE)
    axis.set(yticks=range(len(tests)), yticklabels=list(tests), ylim=(-0.6, len(tests) - 0.4),
             xlabel="AUC of the attack that was chosen on one half of the records, on the other")
    panels.legend(figure, 2)
    return figure


def tested_table(tests: Mapping[str, Trials]) -> pd.DataFrame:
    """The same in numbers, with the alarms."""
    return pd.DataFrame([{
        "models": title, "how many": len(one.strange),
        "AUC without a leak": tables.cell(over_pairs(one.strange, (0.0, 1.0), "models")),
        "AUC with a planted one": tables.cell(over_pairs(one.planted, (0.0, 1.0), "models")),
        "audits of each kind": one.games * len(one.alarms),
        "alarms without a leak (%)": tables.format_percent(_alarms(one.alarms, one)),
        "alarms with one (%)": tables.format_percent(_alarms(one.found, one))}
        for title, one in tests.items()])


def _alarms(share: np.ndarray, of: Trials) -> Interval:
    """A share of audits, of models and of the games played with each; all of them say no more than all but one."""
    if np.mean(share) > 0.5:
        return -1 * _alarms(1 - share, of) + 1
    return share_over(share, of.games * len(share), what="models")


# ------------------------------------------------------------------------------------------------------------------ verdicts


def judge(tests: Mapping[str, Trials], forests: Many, leaves: Sequence[int], private: Many | None, lacking: str,
          references: Many | None) -> list[claims.Verdict]:
    """Every claim of the chapter.

    Args:
        tests: of the audit itself, by kind of model. forests: with each size of leaves. leaves: these sizes, ascending.
        private: twins and private models, or None. lacking: why there are none, or "".
        references: of the network's audit, or None where it had none.
    """
    least, most, found = f"leaf {leaves[0]}", f"leaf {leaves[-1]}", claims.margin("audit", "A1", "least")
    parts: dict[str, dict[str, Interval] | Interval | None] = {
        "A1": {f"{title}, less {found:g}": _alarms(one.found, one) - found for title, one in tests.items()},
        "A2": {f"{1 - LEVEL:g} less alarms, {title}": -1 * _alarms(one.alarms, one) + (1 - LEVEL)
               for title, one in tests.items()},
        "A3": beyond(forests, least, "blind"), "A4": None, "A5": None, "A6": None, "A7": None}
    reasons = {"A4": lacking, "A5": lacking, "A6": "the audit of the network had no references",
               "A7": "one size of leaves in this run"}
    if private is not None:
        parts["A4"] = beyond(private, "twin", "private")
        parts["A5"] = over_pairs(private.accuracy["twin"] - private.accuracy["private"], what="models")
    if references is not None:
        parts["A6"] = {name: beyond(references, name, "MALT") for name in references.scores if name != "MALT"}
    if len(leaves) > 1:
        parts["A7"] = beyond(forests, least, most)
    return [claims.judge("audit", claim, found, None if found is not None else reasons[claim])
            for claim, found in parts.items()]
