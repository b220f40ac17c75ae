"""How a report writes numbers, and its sentences, which are blocks of `report.html`."""

from __future__ import annotations

import html
from pathlib import Path

from mia_lib import standalone
from mia_lib.audit.statistics import Rate
from mia_lib.metrics import Interval
from mia_lib.progress import duration

TEMPLATE = Path(__file__).with_name("report.html")


def percent(value: float, digits: int = 1) -> str:
    """Of a fraction: "1 %", "0.05 %"."""
    return f"{100 * value:.{digits}f} %".replace(".0 %", " %") if 100 * value >= 10**-digits or not value else (
        f"{100 * value:.2g} %")


def span(interval: Interval, digits: int = 3) -> str:
    """An estimate with its interval: "0.612 [0.580, 0.644]"."""
    return f"{interval.value:.{digits}f} [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"


def tpr(rate: Rate) -> str:
    """A true positive rate for a table."""
    if not rate.resolved:
        return "below resolution"
    if rate.tied and not rate.tpr.value:
        return "ties: no such threshold"
    return f"{percent(rate.tpr.value)} [{percent(rate.tpr.low)}, {percent(rate.tpr.high)}]"


def minutes(value: float | None) -> str:
    """For a table."""
    return "" if value is None else "< 0.01" if value < 0.01 else f"{value:.2g}"


def p_value(value: float | None) -> str:
    """For a table."""
    return "" if value is None else "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def sentences(text: str) -> list[str]:
    """The paragraphs of a block, which blank lines part, each on one line; markup stays such."""
    return [type(text)(" ".join(part.split())) for part in text.split("\n\n") if part.strip()]


FILTERS = {"percent": percent, "span": span, "tpr": tpr, "minutes": minutes, "p": p_value, "duration": duration,
           "sentences": sentences}


def render(block: str, **values) -> list[str]:
    """The sentences of a block of the template, as plain text.

    Args:
        block: its name. values: what it names.
    """
    template = standalone.environment(TEMPLATE, FILTERS).get_template(TEMPLATE.name)
    return sentences(html.unescape("".join(template.blocks[block](template.new_context(values)))))
