"""Slides: decks from `mia_book/chapters/NAME/slides.md` and `slides-MORE.md`, with the figures, tables, numbers and quizzes
of the executed chapters.

A deck is Markdown between lines of `---`, under a head that says which lesson it belongs to. What follows `Notes:` in a slide
is the speaker's. Three fences show what a chapter has:

    :::{picture} bayes-idea         a figure, with the words that the chapter has for those who cannot see it
    :::

    :::{rows} bayes-table-1         a table, or some of it
    :rows: 400; 1000
    :columns: n; MALT; MATT
    :::

    :::{rows} iha-table-8           a table that comes with the next step
    :step: next
    :::

    :::{ask} bayes 2                the second question of a quiz; its answer comes with the next step, and the speaker
    :::                             has the reasons against the other options

Roles are those of pages of prose (`{ours}`, `{printed}`, `{param}`, `{says}`), with the chapter's name first.
Decks are drawn by reveal.js, which lies beside them, and ask the network for nothing.
"""

# sphinx-revealjs 3.2.1 was tried on the deck of `bayes`. It reads offline, looks the same and would spare the copy of
# reveal.js, but is no less code: 4 kB of directives and settings for 5 kB that go, before staging, checks and the link to
# the book. Its notes are plain text, and those of 98 of the 134 slides are formatted or list reasons, so a directive of
# ours stays. Decks lie beside 30 MB, or 8 MB with one bundle of MathJax, where ours lie beside 2 MB. Sphinx takes 1 s of
# processor time for a deck, as for one slide in a test; ours takes 0.05 s.

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from mia_book import folders
from mia_book.chapters.primer import charts as primer
from mia_book.pages import build as book
from mia_book.pages import outputs, prose
from mia_book.pages.parameters import PUBLISHED, find_root
from mia_lib import documents
from mia_lib.errors import MiaError

FOLDER, OUT = "book/slides", "slides"
HEAD = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
KEYS = {"title", "lesson", "chapter", "minutes"}
FENCE = re.compile(r"^:::\{(\w+)\} *(.*?) *\n((?::\w+:[^\n]*\n)*):::$", re.MULTILINE)
NOTES = re.compile(r"^Notes:\s*$", re.MULTILINE)
ROLE = re.compile(r"\{([\w:]+)\}`(?:([^`<]*?) *<[^`>]*>|([^`]*))`")
# what a slide cannot link to
READERS = {"term": "", "numref": "the chapter's figure", "eq": "the chapter's equation"}
MATHEMATICS = "tex-svg.js"


class Slide(NamedTuple):
    """A slide: what is shown and what the speaker sees, both HTML."""

    shown: str
    notes: str


def build(preset: str = PUBLISHED, *, root: Path | None = None, folder: Path | None = None) -> Path:
    """Make all decks, their index and the quizzes to print, of the chapters as they were last run at a preset.

    They go to `slides` in the folder where the book was built, None for `_build` in `root`; returns the path of the index.

    Raises:
        MiaError: a chapter was not run at this preset, or a deck names what no chapter has.
    """
    root = find_root(root)
    folder = Path(folder).resolve() if folder else root / "_build"
    notebooks, out = book.executed_notebooks(preset, root, folder), folder / OUT
    source = _Source({**notebooks, primer.NAME: primer.notebook()}, root)
    decks = [deck(path, source) for path in _decks(root)]
    shutil.rmtree(out, ignore_errors=True)
    (out / "figures").mkdir(parents=True)
    shutil.copytree(root / FOLDER / "reveal", out / "reveal")
    quizzes(root=root, folder=folder)
    for name in source.shown:
        (out / "figures" / f"{name}.png").write_bytes(source.pictures[name])
    pages = {lesson["name"]: outputs.render("deck.html", **lesson) for lesson in decks}
    pages["index"] = outputs.render("decks.html", title="Slides", decks=decks)
    for name, text in pages.items():
        (out / f"{name}.html").write_text(text, encoding="utf-8")
    return out / "index.html"


def quizzes(*, root: Path | None = None, folder: Path | None = None) -> Path:
    """Make the quizzes to print and their answers, which need no built book, where `build` has them; returns the path of the
    quizzes."""
    root = find_root(root)
    out = (Path(folder).resolve() if folder else root / "_build") / OUT
    titles = {_name(path): _head(path)[0]["title"] for path in _decks(root)}
    sheets = _sheets(_Source({}, root), titles)
    (out / "reveal").mkdir(parents=True, exist_ok=True)
    mathjax = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
    shutil.copy(mathjax / MATHEMATICS, out / "reveal")
    shutil.copy(root / FOLDER / "slides.css", out)
    for name, title in (("quiz", "Quizzes"), ("answers", "Answers")):
        text = outputs.render("sheets.html", title=title, sheets=sheets, answers=name == "answers")
        (out / f"{name}.html").write_text(text, encoding="utf-8")
    return out / "quiz.html"


def _decks(root: Path) -> list[Path]:
    return sorted(folders.of(root).glob("*/slides*.md"))


def _name(path: Path) -> str:
    """Name of the page of a deck."""
    return path.parent.name + path.stem.removeprefix("slides")


class _Source:
    """Executed notebooks as slides ask for them; `shown` are the names of the pictures that they took."""

    def __init__(self, notebooks: Mapping[str, dict], root: Path):
        self.root, self.shown = root, set()
        self.runs = {name: prose.run_of(notebook, root) for name, notebook in notebooks.items()}
        self.pictures = {
            name: png
            for notebook in notebooks.values()
            for name, png in outputs.displayed(notebook).pictures.items()
        }

    def html(self, text: str, where: str) -> str:
        """Markdown with roles as HTML."""
        return _markdown().render(
            _without_references(prose.prose(text, where, runs=self.runs), where)
        )


def _markdown():
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    parser = MarkdownIt("commonmark").enable("table")
    dollarmath_plugin(
        parser,
        allow_space=False,
        renderer=lambda text, options: escape(
            rf"\[{text}\]" if options["display_mode"] else rf"\({text}\)", quote=False
        ),
    )
    return parser


def _without_references(text: str, where: str) -> str:
    """Text without references to other places of the book, which a slide has not."""

    def words(role: re.Match) -> str:
        kind = role[1].partition(":")[0]
        if kind == "cite":
            return ""
        if role[2]:
            return role[2]
        if kind not in READERS:
            raise MiaError(f"{where}: {role[0]} leads nowhere from a slide. Say it in words.")
        return READERS[kind] or role[3]

    return ROLE.sub(words, text)


def deck(path: Path, source: _Source) -> dict:
    """A deck: the name of its file, what its head says, and its slides.

    Raises:
        MiaError: no head or not what it needs, a fence that is none of the three, or a name that no chapter has; with the file
            and the slide.
    """
    head, text = _head(path)
    slides = []
    for number, part in enumerate(re.split(r"^---$", text, flags=re.MULTILINE), 1):
        shown, *notes = NOTES.split(part.strip(), maxsplit=1)
        slides.append(
            _slide(
                shown,
                notes[0] if notes else "",
                f"{path.parent.name}/{path.name}, slide {number}",
                source,
            )
        )
    return {"name": _name(path), **head, "slides": slides}


def _head(path: Path) -> tuple[dict, str]:
    """What the head of a deck says, and the text below it."""
    text = path.read_text(encoding="utf-8")
    match = HEAD.match(text)
    needed = f"it needs {', '.join(sorted(KEYS))}, between two lines of ---."
    head = (
        documents.parse(match[1], f"{path.name}: the head", remedy=needed.capitalize())
        if match
        else {}
    )
    if head.keys() != KEYS:
        raise MiaError(
            f"{path.name}: the head has {', '.join(map(str, head)) or 'nothing'}; {needed}"
        )
    return head, text[match.end() :]


def _slide(text: str, notes: str, where: str, source: _Source) -> Slide:
    parts, last = [], 0
    for fence in FENCE.finditer(text):
        parts.append(source.html(text[last : fence.start()], where))
        last = fence.end()
        options = dict(re.findall(r"^:(\w+): *(.*)$", fence[3], re.MULTILINE))
        later = " fragment" if options.get("step") == "next" else ""
        if fence[1] == "picture":
            parts.append(_picture(fence[2], where, source))
        elif fence[1] == "rows":
            parts.append(
                f'<div class="rows{later}">{_rows(fence[2], options, where, source)}</div>'
            )
        elif fence[1] == "ask":
            shown, reasons = _asked(fence[2], where, source)
            parts.append(shown)
            notes = f"{notes}\n\n{reasons}"
        else:
            raise MiaError(
                f"{where}: :::{{{fence[1]}}} is unknown here; there are picture, rows and ask."
            )
    rest = text[last:]
    if ":::" in rest:
        raise MiaError(
            f"{where}: a fence is not closed, or has text where options belong: {rest[rest.index(':::') :][:60]!r}"
        )
    return Slide("".join([*parts, source.html(rest, where)]), source.html(notes, where))


def _picture(name: str, where: str, source: _Source) -> str:
    run = prose.run_with_figure(name, where, source.runs)
    source.shown.add(name)
    alt = _without_references(prose.prose(run.figures[name], where, run), where)
    return f'<img class="r-stretch" src="figures/{name}.png" alt="{escape(alt)}">'


def _rows(name: str, options: Mapping[str, str], where: str, source: _Source) -> str:
    tables = {table: of for run in source.runs.values() for table, of in run.tables.items()}
    prose.known(name, tables, "table", where)
    table = tables[name]
    names = [_cell(row[0]) for row in table["rows"]]
    wanted, columns = (
        [item.strip() for item in options.get(option, "").split(";") if item.strip()] or everything
        for option, everything in (("rows", names), ("columns", table["columns"]))
    )
    for column in columns:
        prose.known(column, table["columns"], f"column of {name}", where)
    for row in wanted:
        prose.known(row, names, f"row of {name}", where)
    places = [table["columns"].index(column) for column in columns]
    kept = [row for row, first in zip(table["rows"], names, strict=True) if first in wanted]
    lines = [
        columns,
        ["---"] * len(columns),
        *([_cell(row[place]) for place in places] for row in kept),
    ]
    return source.html("\n".join(f"| {' | '.join(line)} |" for line in lines), where)


def _cell(value) -> str:
    return prose.cell_text(value).replace("|", "\\|")


def _asked(asked: str, where: str, source: _Source) -> tuple[str, str]:
    """A question with its options, the right one marked by the next step; and what the speaker has against the others."""
    name, _, number = asked.partition(" ")
    questions = prose.quiz_questions(name, source.root, f"{where}: ")
    if not number.isdigit() or not 1 <= int(number) <= len(questions):
        raise MiaError(
            f"{where}: the quiz {name!r} has questions 1 to {len(questions)}, and no {number!r}."
        )
    question = questions[int(number) - 1]
    reasons = "\n".join(
        f"- **{letter}** {'(right)' if option.right else '(no)'}: {option.why}"
        for letter, option in zip(prose.LETTERS, question.options, strict=False)
    )
    answer = source.html(question.options[question.answer].why, where)
    return outputs.render(
        "ask.html", question=_in_html(question, where, source), answer=answer
    ), reasons


def _in_html(question: prose.Question, where: str, source: _Source) -> dict:
    """A question with its texts as HTML, and with reasons for and against its options."""
    return {
        "asks": source.html(question.asks, where),
        "options": [
            {
                "says": source.html(option.says, where),
                "right": option.right,
                "reason": source.html(
                    f"**{letter}** {'is right' if option.right else 'is wrong'}. {option.why}",
                    where,
                ),
            }
            for letter, option in zip(prose.LETTERS, question.options, strict=False)
        ],
    }


def _sheets(source: _Source, titles: Mapping[str, str]) -> dict[str, list[dict]]:
    """All quizzes to print, in the order of the course, by their title, which is that of a deck where there is one."""
    chapters = folders.in_order(source.root)

    def place(name: str) -> tuple[int, str]:
        """What is no chapter, the prerequisites and the primer, comes first."""
        return (chapters.index(name) if name in chapters else -1), name

    return {
        titles.get(name, name.capitalize()): [
            _in_html(question, f"quiz {name}", source)
            for question in prose.quiz_questions(name, source.root)
        ]
        for name in sorted(folders.find("quiz.yaml", source.root), key=place)
    }
