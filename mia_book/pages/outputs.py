"""Outputs of an executed notebook: what they are called, how they are read, and what is written of
them.

What the book generates is written by Jinja: Markdown in `templates/NAME.md`, HTML in `templates/NAME.html`, where what is put
in is escaped.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from pathlib import Path

from mia_lib import templates
from mia_lib.errors import MiaError
from mia_lib.progress import duration

OURS = "application/vnd.mia."  # outputs of these types speak to the book, not to the reader
TABLE, CLAIMS, RESULTS = OURS + "table+json", OURS + "claims+json", OURS + "results+json"
# whole reports; the deal of a membership game
AUDIT, GAME = OURS + "audit+json", OURS + "game+json"
VEGA_LITE = "application/vnd.vegalite.v5+json"  # of explorable figures


@dataclass(frozen=True)
class Displayed:
    """All that an executed notebook shows under a name, as data."""

    tables: dict[str, dict] = field(default_factory=dict)  # what `tables.plain_table` makes
    figures: dict[str, dict] = field(default_factory=dict)  # {"name", "caption", "alt"}
    pictures: dict[str, bytes] = field(default_factory=dict)  # PNG
    # name of a figure -> its chart, in Vega-Lite
    charts: dict[str, dict] = field(default_factory=dict)
    claims: list[dict] = field(default_factory=list)  # records of verdicts
    results: dict[str, dict] = field(default_factory=dict)  # of `results.name`
    # of audits, each with a name, a title and files
    reports: list[dict] = field(default_factory=list)
    deals: list[dict] = field(default_factory=list)  # of membership games

    def report_files(self) -> dict[str, str]:
        """The reports, each in a folder of its own as `audit.Report.save` writes it: a page that needs nothing else, and its
        numbers. Path -> content."""
        return {
            f"{report['name']}/{file}": text
            for report in self.reports
            for file, text in report["files"].items()
        }


def displayed(notebook: dict) -> Displayed:
    """Read all that an executed notebook shows.

    Raises:
        MiaError: two results have one name; a figure or a report has one that leads out of its folder.
    """
    shown = Displayed()
    for output in (output for cell in notebook["cells"] for output in cell.get("outputs", [])):
        data, figure = output.get("data", {}), output.get("metadata", {}).get("mia")
        if figure and "image/png" in data:
            shown.figures[figure["name"]] = figure
            shown.pictures[figure["name"]] = base64.b64decode("".join(data["image/png"]))
        if figure and VEGA_LITE in data:
            shown.charts[figure["name"]] = data[VEGA_LITE]
        if TABLE in data:
            shown.tables[data[TABLE]["name"]] = data[TABLE]
        for name in data.get(RESULTS, {}).keys() & shown.results.keys():
            raise MiaError(f"two results are named {name!r}: results.name gives each name once.")
        shown.results.update(data.get(RESULTS, {}))
        shown.claims.extend(data.get(CLAIMS, []))
        shown.reports.extend([data[AUDIT]] if AUDIT in data else [])
        shown.deals.extend([data[GAME]] if GAME in data else [])
    # files are called so, and the notebook may be a stranger's
    for name in (*shown.pictures, *shown.report_files()):
        if not re.fullmatch(r"[\w-]+(/audit\.(html|json))?", name):
            raise MiaError(
                f"a figure or a report is called {name!r:.80}, which is no name for a file: run it again."
            )
    return shown


def for_readers(outputs: list[dict]) -> list[dict]:
    """The outputs of a cell without what they carry for the book."""
    shown = []
    for output in outputs:
        if "data" in output:
            # its plain text is for a notebook that is read outside the book
            if RESULTS in output["data"]:
                continue
            output = {
                **output,
                "data": {k: v for k, v in output["data"].items() if not k.startswith(OURS)},
            }
            if not output["data"]:
                continue
        shown.append(output)
    return shown


def without_colours(text: str) -> str:
    """Text of a terminal without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _cell(text: str) -> str:
    """Markdown as a cell of a table."""
    return re.sub(r"(?<!\\)\|", r"\\|", text).replace("\n", "<br>")


def _code(value) -> str:
    """A value as code in Markdown, whatever it holds."""
    text = " ".join(str(value).split()) or " "
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if len(fence) > 1 else ""
    return f"{fence}{space}{text}{space}{fence}"


def render(template: str, /, **values) -> str:
    """A template of `templates` with values in it; what it names and is not given is an error."""
    filters = {"cell": _cell, "code": _code, "duration": duration, "repr": repr}
    return templates.template(Path(__file__).with_name("templates") / template, filters).render(
        values
    )
