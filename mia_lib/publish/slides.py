"""Slides: a deck a lesson from `book/slides/NAME.md`, with the figures, tables, numbers and quizzes of the executed chapters.

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

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path

from mia_lib.errors import MiaError
from mia_lib.publish import build as book
from mia_lib.publish import outputs, primer_page, prose
from mia_lib.publish.parameters import PUBLISHED, find_root

FOLDER, OUT = "book/slides", "slides"
HEAD = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
KEYS = {"title", "lesson", "chapter", "minutes"}
FENCE = re.compile(r"^:::\{(\w+)\} *(.*?) *\n((?::\w+:[^\n]*\n)*):::$", re.MULTILINE)
NOTES = re.compile(r"^Notes:\s*$", re.MULTILINE)
ROLE = re.compile(r"\{([\w:]+)\}`(?:([^`<]*?) *<[^`>]*>|([^`]*))`")
READERS = {"term": "", "numref": "the chapter's figure", "eq": "the chapter's equation"}  # what a slide cannot link to
MATHEMATICS = "tex-svg.js"


@dataclass(frozen=True)
class Slide:
    """What is shown and what the speaker sees, both HTML."""

    shown: str
    notes: str


@dataclass(frozen=True)
class Deck:
    """A lesson's slides.

    Attributes:
        name: of its file. title, lesson, chapter, minutes: from its head; the chapter is a page of the book.
        slides: in order. figures: names of the pictures that it shows.
    """

    name: str
    title: str
    lesson: str
    chapter: str
    minutes: int
    slides: tuple[Slide, ...]
    figures: tuple[str, ...]


def build(preset: str = PUBLISHED, *, root: Path | None = None, folder: Path | None = None) -> Path:
    """Make all decks, their index and the quizzes to print, of the chapters as they were last run at a preset.

    Args:
        preset: of the run that numbers and figures come from.
        root: folder of the book.
        folder: where the book was built, None for `_build` in `root`; the slides go to `slides` in it.

    Returns:
        Path of the index.

    Raises:
        MiaError: a chapter was not run at this preset, or a deck names what no chapter has.
    """
    root = find_root(root)
    folder = Path(folder).resolve() if folder else root / "_build"
    return write(book.executed_notebooks(preset, root, folder), root, folder / OUT)


def write(notebooks: Mapping[str, dict], root: Path, out: Path) -> Path:
    """Make all decks of executed notebooks in a folder, which holds nothing else afterwards; returns its index.

    Args:
        notebooks: name -> as JSON.
        root: folder of the book.
        out: the folder.
    """
    source = _Source({**notebooks, primer_page.NAME: primer_page.notebook()}, root)
    decks = [deck(path, source) for path in sorted((root / FOLDER).glob("*.md"))]
    shutil.rmtree(out, ignore_errors=True)
    (out / "figures").mkdir(parents=True)
    shutil.copytree(root / FOLDER / "reveal", out / "reveal")
    shutil.copy(root / FOLDER / "slides.css", out)
    shutil.copy(Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax" / MATHEMATICS, out / "reveal")
    for name in {name for lesson in decks for name in lesson.figures}:
        (out / "figures" / f"{name}.png").write_bytes(source.pictures[name])
    for lesson in decks:
        page = outputs.render("deck.html", title=lesson.title, chapter=lesson.chapter, slides=lesson.slides)
        (out / f"{lesson.name}.html").write_text(page, encoding="utf-8")
    asked, answered = sheets(source, {lesson.name: lesson.title for lesson in decks})
    (out / "quiz.html").write_text(asked, encoding="utf-8")
    (out / "answers.html").write_text(answered, encoding="utf-8")
    index = out / "index.html"
    index.write_text(outputs.render("decks.html", title="Slides", decks=decks), encoding="utf-8")
    return index


class _Source:
    """Executed notebooks as slides ask for them."""

    def __init__(self, notebooks: Mapping[str, dict], root: Path):
        self.root = root
        self.runs = {name: prose.run_of(notebook, root) for name, notebook in notebooks.items()}
        self.pictures = {}
        for notebook in notebooks.values():
            self.pictures |= outputs.displayed(notebook).pictures

    def html(self, text: str, where: str) -> str:
        """Markdown with roles as HTML."""
        return _markdown().render(_plain(prose.prose(text, where, runs=self.runs), where))


def _markdown():
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    parser = MarkdownIt("commonmark").enable("table")
    dollarmath_plugin(parser, allow_space=False, renderer=lambda text, options: escape(
        rf"\[{text}\]" if options["display_mode"] else rf"\({text}\)", quote=False))
    return parser


def _plain(text: str, where: str) -> str:
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


def deck(path: Path, source: _Source) -> Deck:
    """A deck as its file has it.

    Raises:
        MiaError: no head or not what it needs, a fence that is none of the three, or a name that no chapter has; with the file
            and the slide.
    """
    import yaml

    text = path.read_text(encoding="utf-8")
    match = HEAD.match(text)
    head = yaml.safe_load(match[1]) if match else {}
    if not isinstance(head, dict) or head.keys() != KEYS:
        raise MiaError(f"{path.name}: the head has {sorted(head) if isinstance(head, dict) else head!r}; it needs "
                       f"{', '.join(sorted(KEYS))}, between two lines of ---.")
    slides, figures = [], []
    for number, part in enumerate(re.split(r"^---$", text[match.end():], flags=re.MULTILINE), 1):
        shown, *notes = NOTES.split(part.strip(), maxsplit=1)
        slides.append(_slide(shown, notes[0] if notes else "", f"{FOLDER}/{path.name}, slide {number}", source, figures))
    return Deck(path.stem, head["title"], head["lesson"], head["chapter"], int(head["minutes"]), tuple(slides),
                tuple(figures))


def _slide(text: str, notes: str, where: str, source: _Source, figures: list[str]) -> Slide:
    parts, last = [], 0
    for fence in FENCE.finditer(text):
        parts.append(source.html(text[last:fence.start()], where))
        last = fence.end()
        options = dict(re.findall(r"^:(\w+): *(.*)$", fence[3], re.MULTILINE))
        later = " fragment" if options.get("step") == "next" else ""
        if fence[1] == "picture":
            parts.append(_picture(fence[2], where, source))
            figures.append(fence[2])
        elif fence[1] == "rows":
            parts.append(f'<div class="rows{later}">{_rows(fence[2], options, where, source)}</div>')
        elif fence[1] == "ask":
            shown, reasons = _asked(fence[2], where, source)
            parts.append(shown)
            notes = f"{notes}\n\n{reasons}"
        else:
            raise MiaError(f"{where}: :::{{{fence[1]}}} is unknown here; there are picture, rows and ask.")
    rest = text[last:]
    if ":::" in rest:
        raise MiaError(f"{where}: a fence is not closed, or has text where options belong: {rest[rest.index(':::'):][:60]!r}")
    return Slide("".join([*parts, source.html(rest, where)]), source.html(notes, where))


def _picture(name: str, where: str, source: _Source) -> str:
    whose = {figure: run for run in source.runs.values() for figure in run.figures}
    prose.known(name, whose, "figure", where)
    alt = _plain(prose.prose(whose[name].figures[name], where, whose[name]), where)
    return f'<img class="r-stretch" src="figures/{name}.png" alt="{escape(alt)}">'


def _rows(name: str, options: Mapping[str, str], where: str, source: _Source) -> str:
    tables = {table: (run, of) for run in source.runs.values() for table, of in run.tables.items()}
    prose.known(name, tables, "table", where)
    run, table = tables[name]
    columns = [item.strip() for item in options.get("columns", "").split(";") if item.strip()] or table["columns"]
    names = [_cell(row[0]) for row in table["rows"]]
    wanted = [item.strip() for item in options.get("rows", "").split(";") if item.strip()] or names
    for column in columns:
        prose.known(column, table["columns"], f"column of {name}", where)
    for row in wanted:
        prose.known(row, names, f"row of {name}", where)
    places = [table["columns"].index(column) for column in columns]
    kept = [row for row, first in zip(table["rows"], names, strict=True) if first in wanted]
    lines = [columns, ["---"] * len(columns), *([_cell(row[place]) for place in places] for row in kept)]
    return source.html("\n".join(f"| {' | '.join(line)} |" for line in lines), where)


def _cell(value) -> str:
    return prose.cell_text(value).replace("|", "\\|")


def _asked(asked: str, where: str, source: _Source) -> tuple[str, str]:
    """A question with its options, the right one marked by the next step; and what the speaker has against the others."""
    name, _, number = asked.partition(" ")
    questions = prose.quiz_questions(name, source.root)
    if not number.isdigit() or not 1 <= int(number) <= len(questions):
        raise MiaError(f"{where}: the quiz {name!r} has questions 1 to {len(questions)}, and no {number!r}.")
    question = questions[int(number) - 1]
    reasons = "\n".join(f"- **{letter}** {'(right)' if option.right else '(no)'}: {option.why}"
                        for letter, option in zip(prose.LETTERS, question.options, strict=False))
    answer = source.html(question.options[question.answer].why, where)
    return outputs.render("ask.html", question=_in_html(question, where, source), answer=answer), reasons


def _in_html(question: prose.Question, where: str, source: _Source) -> dict:
    """A question with its texts as HTML, and with reasons for and against its options."""
    return {"asks": source.html(question.asks, where), "options": [
        {"says": source.html(option.says, where), "right": option.right, "reason": source.html(
            f"**{letter}** {'is right' if option.right else 'is wrong'}. {option.why}", where)}
        for letter, option in zip(prose.LETTERS, question.options, strict=False)]}


def sheets(source: _Source, titles: Mapping[str, str]) -> tuple[str, str]:
    """All quizzes to print, each on a page of its own, and the answers with the reasons for and against every option.

    Args:
        source: of roles in them.
        titles: name of a quiz -> its title, where it has another than its name.
    """
    of_all = {}
    for path in sorted((source.root / prose.QUIZZES).glob("*.yaml")):
        of_all[titles.get(path.stem, path.stem.capitalize())] = [
            _in_html(question, f"{prose.QUIZZES}/{path.name}", source)
            for question in prose.quiz_questions(path.stem, source.root)]
    return tuple(outputs.render("sheets.html", title=title, sheets=of_all, answers=title == "Answers")
                 for title in ("Quizzes", "Answers"))
