"""Captions of figures and tables, which stand as Markdown beside the cell that shows them.

``:::{caption} bayes-roc`` holds what is drawn; its lines ``:alt:`` say the same to those who cannot see it, and
``:instructions:``, of a chart that readers can move, what can be moved. Lines that go on are indented. Roles work in all
three. No result is computed anew for a word: text is attached to what an executed notebook shows whenever it is read.
"""

from __future__ import annotations

import re

from mia_book.pages.outputs import TABLE, VEGA_LITE
from mia_book.pages.prose import Fence, replace_fences
from mia_lib.errors import MiaError

IN_HTML = re.compile(r"(<table[^>]*>)(\s*<caption>.*?</caption>)?", re.DOTALL)
IN_MYST = re.compile(r"(?<=^:::\{table\})[^\n]*")


def attach(notebook: dict) -> dict:
    """An executed notebook, as JSON, with the words of its ``:::{caption}`` in the outputs that they name, and no longer
    in its text; it is changed in place. What code alone can say of a figure follows its caption."""
    fences: dict[str, Fence] = {}

    def take(fence: Fence) -> str:
        fences[fence.name] = fence
        return ""

    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = replace_fences("".join(cell["source"]), {"caption": take}).strip("\n")
    for output in (output for cell in notebook["cells"] for output in cell.get("outputs", [])):
        data, figure = output.get("data", {}), output.get("metadata", {}).get("mia")
        if figure and figure["name"] in fences:
            _describe(data, figure, fences[figure["name"]])
        if TABLE in data and data[TABLE]["name"] in fences:
            _head(data, _line(fences[data[TABLE]["name"]].body))
    return notebook


def _describe(data: dict, figure: dict, fence: Fence) -> None:
    """Give a figure, and the chart beside it, the words of its fence."""
    of_code = figure.setdefault("of_code", figure["caption"])
    figure["caption"] = f"{_line(fence.body)} {of_code}".strip()
    figure["alt"] = fence.options.get("alt", figure["alt"])
    data["text/plain"] = figure["alt"]
    if VEGA_LITE in data:
        chart = data[VEGA_LITE]
        chart["description"] = figure["alt"]
        told = chart["usermeta"]["instructions"]
        chart["usermeta"]["instructions"] = fence.options.get("instructions", told)


def _head(data: dict, caption: str) -> None:
    """Give each form of a table its caption."""
    from mia_book.evidence.results import in_html

    before = data[TABLE]["caption"]
    data[TABLE]["caption"] = caption
    data["text/html"] = IN_HTML.sub(
        lambda table: f"{table[1]}\n  <caption>{in_html(caption)}</caption>",
        _text(data, "text/html"),
        1,
    )
    data["text/markdown"] = IN_MYST.sub(lambda _: f" {caption}", _text(data, "text/markdown"))
    data["text/plain"] = caption + _text(data, "text/plain").removeprefix(before)


def _text(data: dict, kind: str) -> str:
    return "".join(data[kind])


def _line(text: str) -> str:
    return " ".join(text.split())


def check(notebook: dict) -> None:
    """Refuse an executed notebook that shows something without a word.

    Raises:
        MiaError: a figure or a table has no caption, a figure no text for those who cannot see it, a chart no instructions.
    """
    for output in (output for cell in notebook["cells"] for output in cell.get("outputs", [])):
        data, figure = output.get("data", {}), output.get("metadata", {}).get("mia")
        words = {}
        if figure:
            words |= {part: figure[part] for part in ("caption", "alt")}
        if figure and VEGA_LITE in data:
            words["instructions"] = data[VEGA_LITE]["usermeta"]["instructions"]
        if TABLE in data:
            words["caption"] = data[TABLE]["caption"]
        for part, text in words.items():
            if not text.strip():
                name = (figure or data[TABLE])["name"]
                raise MiaError(
                    f"{name} has no {part}: write `:::{{caption}} {name}` in Markdown beside its cell, see CONTRIBUTING.md."
                )
