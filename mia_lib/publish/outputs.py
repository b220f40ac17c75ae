"""What the outputs of an executed notebook are called, and how they are read."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field

from mia_lib.errors import MiaError

OURS = "application/vnd.mia."  # outputs of these types speak to the book, not to the reader
TABLE, CLAIMS, RESULTS = OURS + "table+json", OURS + "claims+json", OURS + "results+json"
AUDIT, GAME = OURS + "audit+json", OURS + "game+json"  # whole reports; the deal of a membership game
VEGA_LITE = "application/vnd.vegalite.v5+json"  # of explorable figures


@dataclass(frozen=True)
class Displayed:
    """What an executed notebook shows under a name, as data.

    Attributes:
        tables: name -> what `tables.plain_table` makes. figures: name -> {"name", "caption", "alt"}. pictures: name -> PNG.
        charts: name of a figure -> its chart, in Vega-Lite. claims: records of verdicts. results: name -> of `results.name`.
        reports: of audits, each with a name, a title and files. deals: of membership games.
    """

    tables: dict[str, dict] = field(default_factory=dict)
    figures: dict[str, dict] = field(default_factory=dict)
    pictures: dict[str, bytes] = field(default_factory=dict)
    charts: dict[str, dict] = field(default_factory=dict)
    claims: list[dict] = field(default_factory=list)
    results: dict[str, dict] = field(default_factory=dict)
    reports: list[dict] = field(default_factory=list)
    deals: list[dict] = field(default_factory=list)

    def report_files(self) -> dict[str, str]:
        """The reports, each in a folder of its own as `audit.Report.save` writes it: a page that needs nothing else, and its
        numbers. Path -> content."""
        return {f"{report['name']}/{file}": text for report in self.reports for file, text in report["files"].items()}


def displayed(notebook: dict) -> Displayed:
    """What an executed notebook shows.

    Raises:
        MiaError: two results have one name.
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
    return shown


def for_readers(outputs: list[dict]) -> list[dict]:
    """The outputs of a cell without what they carry for the book."""
    shown = []
    for output in outputs:
        if "data" in output:
            if RESULTS in output["data"]:  # its plain text is for a notebook that is read outside the book
                continue
            output = {**output, "data": {k: v for k, v in output["data"].items() if not k.startswith(OURS)}}
            if not output["data"]:
                continue
        shown.append(output)
    return shown


def plain(text: str) -> str:
    """`text` without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
