"""Copies of executed notebooks that read like the page in any Jupyter, on Colab and on Binder, where nothing draws MyST.

Text has its numbers; a directive is a quotation under its title, a solution a fold; roles are words; and a figure has its
caption below it. The cells are those of the notebook, so a copy runs, too, and its first cell installs what is missing.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from pathlib import Path

from pybtex.database import Entry, parse_file

from mia_book import folders
from mia_book.pages import outputs
from mia_book.pages.sphinx_ext import FOLDER
from mia_lib import documents

SHOWN = ("text/html", "text/markdown", "text/plain", "image/png", "image/svg+xml")
INSTALL = """# Fetches the book and what it needs, where they are not here, as on Colab.
import importlib.util

if importlib.util.find_spec("mia_book") is None:
    !git init -q && git pull -q --depth 1 {repository} && pip install -q -e ".[train,tabular,dp]" "altair<6\""""
OPENING = re.compile(r"^(`{3,}|:{3,})\{([\w:-]+)\} *(.*)$")
CODE = re.compile(r"^(`{3,}|~{3,})(?!\{)")
ROLE = re.compile(r"\{([a-z:]+)\}`([^`]+)`")
LABEL = re.compile(r"^\(([\w-]+)\)=\n", re.MULTILINE)
EQUATION = re.compile(r"\$\$ *\(([\w-]+)\)")
LINK = re.compile(r"\]\((?:\.\./)?([\w./-]+\.(?:md|ipynb))(#[\w-]+)?\)")
# what the first cell of a copy does
COLAB = re.compile(r"(?:To run this page on|On) Colab, add a cell before .*?`[^`]*`\.?", re.DOTALL)
CAPTION = re.compile(r"(<caption[^>]*>)(.*?)(</caption>)", re.DOTALL)
TITLES = {"finding": "What we found", "solution": "Solution", "exercise": "Exercise"}


def readable(notebook: Mapping, root: Path) -> dict:
    """A copy of an executed notebook, as JSON, that any Jupyter shows as the page reads.

    Args:
        notebook: of `prose.resolve_roles`, with the record of its run. root: of the book.
    """
    name = notebook["metadata"]["mia"]["notebook"]
    made = copy.deepcopy(dict(notebook))
    order = folders.in_order(root)
    words = _Words(made, order.index(name) + 1 if name in order else 1, root)
    cells = [_cell("code", INSTALL.format(repository=words.repository), "install", hidden=True)]
    for cell in made["cells"]:
        cells += _shown(cell, words)
    return {**made, "cells": cells}


class _Words:
    """What roles and references of one notebook read as, without Sphinx."""

    def __init__(self, notebook: Mapping, chapter: int, root: Path):
        self.labels: dict[str, str] = {}
        self.repository = _repository(root)
        counts: dict[str, int] = {}

        def count(label: str, kind: str) -> None:
            counts[kind] = counts.get(kind, 0) + 1
            number = f"{chapter}.{counts[kind]}"
            self.labels[label] = f"({number})" if kind == "equation" else f"{kind} {number}"

        for cell in notebook["cells"]:
            text = "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""
            for label in EQUATION.findall(text):
                count(label, "equation")
            for kind, label in re.findall(r"\{prf:(\w+)\}[^\n]*\n:label: ([\w-]+)", text):
                count(label, kind.capitalize())
            for output in cell.get("outputs", []):
                if figure := output.get("metadata", {}).get("mia"):
                    count(figure["name"], "Figure")
                if table := output.get("data", {}).get(outputs.TABLE):
                    count(table["name"], "Table")
        self.cited = {}
        for path in sorted(root.glob("book/*.bib")):
            for key, entry in parse_file(path).entries.items():
                self.cited[key] = _author_and_year(entry)

    def role(self, kind: str, text: str) -> str:
        """A role as words."""
        words, target = re.fullmatch(
            r"(.*?)(?: *(?:<|&lt;)([^<>&]*)(?:>|&gt;))?", text, re.DOTALL
        ).groups()
        if kind.startswith("cite"):
            cited = [self.cited.get(key.strip(), (key.strip(), "")) for key in text.split(",")]
            if kind == "cite:t":
                return "; ".join(f"{author} ({year})" for author, year in cited)
            return f"({'; '.join(f'{author}, {year}' for author, year in cited)})"
        if kind == "math":
            return f"${text}$"
        if target is None and kind in ("numref", "eq", "ref", "prf:ref", "doc"):
            return self.labels.get(text, "another page of the book")
        return words

    def plain(self, text: str) -> str:
        """MyST Markdown as Markdown that any Jupyter draws."""
        text = COLAB.sub("", LABEL.sub("", text))
        text = EQUATION.sub(lambda found: rf"\tag{{{self.labels[found[1]][1:-1]}}} $$", text)
        lines: list[str] = []
        open_: list[tuple[str, str]] = []  # fences of directives around a line, and what ends each
        code, options = "", False
        for line in text.split("\n"):
            quoted = "> " * sum(end == "" for _, end in open_)
            if code:
                code = "" if line.strip() == code else code
                lines.append(quoted + line)
            elif found := OPENING.match(line):
                fence, kind, title = found.groups()
                end, begin = _ends(kind, title)
                quoted += "> " * (end == "")
                lines += [begin and quoted + begin, quoted.rstrip()]
                open_.append((fence, end))
                options = True
            elif open_ and line.strip() == open_[-1][0]:
                lines += [open_.pop()[1], ""]
            elif options and (re.match(r"^:[\w-]+:", line) or not line.strip()):
                options = bool(line.strip())
            else:
                options = False
                if found := CODE.match(line):
                    code = found[1]
                    lines.append(quoted + line)
                else:
                    lines.append(quoted + self.words(line))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()

    def words(self, text: str) -> str:
        """Text outside of code with its roles as words, and links to pages as links into the repository."""
        text = ROLE.sub(lambda found: self.role(*found.groups()), text)
        return LINK.sub(lambda found: f"]({self._page(found[1])})", text)

    def _page(self, path: str) -> str:
        folder = "notebooks" if path.endswith(".ipynb") else "book"
        place = path if "/" in path else f"{folder}/{path}"
        return f"{self.repository}/blob/main/{place}"


def _repository(root: Path) -> str:
    """Address of the public copy of a book, "" where it has none."""
    return documents.load(root / "_config.yml").get("repository", {}).get("url", "")


def _author_and_year(entry: Entry) -> tuple[str, str]:
    """Who wrote an entry of a bibliography, in the short form of the book, and when."""
    names = [" ".join(map(str, one.rich_last_names)) for one in entry.persons.get("author", [])]
    first = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
    return first or entry.fields.get("title", ""), entry.fields.get("year", "")


def _ends(kind: str, title: str) -> tuple[str, str]:
    """What ends a directive, "" for a quotation, and how it begins."""
    if kind == "solution":
        return "\n</details>", "<details><summary>Solution</summary>\n"
    kind = kind.rpartition(":")[2]
    named = TITLES.get(kind, kind.capitalize())
    return "", f"**{title}**" if kind == "admonition" else f"**{named}{title and f'. {title}'}**"


def _shown(cell: dict, words: _Words) -> list[dict]:
    """A cell, and below it the captions of its figures."""
    if cell["cell_type"] == "markdown":
        return [{**cell, "source": words.plain("".join(cell["source"]))}]
    if cell["cell_type"] != "code":
        return [cell]
    captions, kept = [], []
    for output in cell["outputs"]:
        figure, data = output.get("metadata", {}).pop("mia", None), output.get("data")
        if data is not None:
            table = data.get(outputs.TABLE)
            output["data"] = _translated(data, words, words.labels[table["name"]] if table else "")
        if data is None or output["data"] and outputs.RESULTS not in data:
            kept.append(output)
        if figure:
            caption = f"**{words.labels[figure['name']]}.** {words.plain(figure['caption'])}"
            captions.append(_cell("markdown", caption, f"{figure['name']}-caption"))
    cell["outputs"] = kept
    if {"hide-input", "remove-input"} & {*cell["metadata"].get("tags", [])}:
        cell["metadata"]["jupyter"] = {"source_hidden": True}
    return [cell, *captions]


def _translated(data: Mapping, words: _Words, label: str) -> dict:
    """What any Jupyter shows of an output, with words in the place of roles, and a table's number before its caption."""
    shown = {kind: data[kind] for kind in SHOWN if kind in data}
    if "text/html" in shown:
        shown.pop("text/markdown", None)
        number = f"<b>{label}.</b> " if label else ""
        text = words.words("".join(shown["text/html"]))
        shown["text/html"] = CAPTION.sub(rf"\1{number}\2\3", text)
    if "text/markdown" in shown:
        shown["text/markdown"] = words.plain("".join(shown["text/markdown"]))
    return shown


def _cell(kind: str, source: str, name: str, hidden: bool = False) -> dict:
    cell = {"cell_type": kind, "id": name[:64], "metadata": {}, "source": source}
    if kind == "code":
        cell |= {"outputs": [], "execution_count": None}
        cell["metadata"] = {"jupyter": {"source_hidden": hidden}}
    return cell


def files(resolved: Mapping[str, Mapping], root: Path) -> dict[str, bytes]:
    """Copies of notebooks, by the path at which the book stages them."""
    return {
        f"book/_extra/{FOLDER}/{name}.ipynb": json.dumps(readable(one, root), indent=1).encode()
        for name, one in resolved.items()
    }
