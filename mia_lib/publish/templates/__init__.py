"""What the book generates, written by Jinja: Markdown in `NAME.md`, HTML in `NAME.html`, where what is put in is escaped."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from mia_lib.progress import duration


@cache
def _environment():
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), trim_blocks=True, lstrip_blocks=True,
                              undefined=StrictUndefined, autoescape=lambda name: name.endswith(".html"))
    environment.filters |= {"cell": _cell, "code": _code, "duration": duration, "repr": repr}
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "sort_keys": True, "ensure_ascii": False}
    return environment


def _cell(text: str) -> str:
    """Markdown as a cell of a table."""
    return re.sub(r"(?<!\\)\|", r"\\|", text).replace("\n", "<br>")


def _code(value) -> str:
    """A value as code in Markdown, whatever it holds."""
    text = " ".join(str(value).split()) or " "
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if len(fence) > 1 else ""
    return f"{fence}{space}{text}{space}{fence}"


def render(name: str, **values) -> str:
    """A template of this folder with values in it; what it names and is not given is an error."""
    return _environment().get_template(name).render(values)
