"""Prose that follows its numbers: what text says of a run is looked up in that run when the page is made.

Text (cells, captions, alternative texts, prose pages) names a number, and the page shows it:

- ``{ours}`lead` `` a result that the notebook named with `results.name`; ``{ours}`lead:value` `` without its interval,
  ``{ours}`lead:.2f` `` in another format; ``{ours}`bayes-table-1 | 400 | MALT` `` a cell of a table, by row and column;
- ``{param}`seeds` `` a parameter; ``{param}`dataset:title` `` the name of a data set in words, or of several;
- ``{printed}`table1 | n = 400 | MATT | attack_accuracy` `` a number of the paper, by its table and what tells its row from the
  others;
- ``{says}`C7` `` the claim with its verdict and its number;
- ``{answer}`bayes` `` the chapter's answer, the bold text under its title, and ``{tally}`bayes` `` how many of each verdict it
  came to; on pages of prose.

On another page the notebook's name goes first: ``{ours}`bayes lead` ``. ``:::{shown} bayes-idea`` puts a chapter's figure
there, with the words that the chapter has for those who cannot see it, over a caption of the page's own. ``:::{quiz} bayes``
puts the questions of `mia_book/chapters/bayes/quiz.yaml` there, see `quiz_questions`.

``:::{finding}`` holds what was found, in plain sentences about the published run. Its first line names the claims that it
rests on and the verdicts that it was written for, ``:claims: C7 reproduced, C9 no difference``. The build fails when a verdict
is another. A run with other parameters shows in its place what became of these claims there. A name that does not exist
stops the build and is named, with the nearest one.
"""

from __future__ import annotations

import copy
import csv
import difflib
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field, field_validator

from mia_book import folders
from mia_book.pages.outputs import TABLE, VEGA_LITE, displayed, render
from mia_book.pages.parameters import PUBLISHED, find_root, validate
from mia_lib import documents
from mia_lib.data import sets
from mia_lib.errors import MiaError, check_choice, validated

ROLE = re.compile(r"\{(ours|param|printed|says|answer|tally)\}`([^`]+)`")
COUNT = re.compile(ROLE.pattern + r"(?P<unit> %)?(?P<noun>\s[a-z]+\b)?")
# of which there are as many as a result says
ONE = {
    "batches": "batch",
    "classes": "class",
    "copies": "copy",
    "queries": "query",
    **{
        noun: noun[:-1]
        for noun in (
            "banks epochs epsilons games images members models networks pairs probes records "
            "references repeats seeds splits steps strangers targets times trials views".split()
        )
    },
}
BELOW = "below resolution"  # as tables have it
# with a path here, and the line there
WARNED = re.compile(r"^\S+\.py:\d+: (\w*Warning: .*\n?)(?:  .*\n?)?", re.MULTILINE)
ANSWER = re.compile(r"\A# [^\n]*\n+\*\*(.+?)\*\*$", re.MULTILINE | re.DOTALL)
COUNTED = re.compile(
    r"\d+ (reproduced|contradicted|depends|no difference|inconclusive|checked|not run)(?: \(\d+ in part\))?"
)
# what a summary cannot hold: it is one button
NOT_PLAIN = re.compile(r"\$|\{(?!ours|param|printed)\w+\}`|\]\(|[<>]")
LETTERS = "ABCDE"
Line = Annotated[
    str, BeforeValidator(lambda text: " ".join(str(text or "").split())), Field(min_length=1)
]
FIGURES = "book/_figures/"  # in the staging folder: the notebooks' figures by name, for prose pages to show


class Fence(NamedTuple):
    """`:::{KIND} NAME`, lines of `:option: value`, which may go on in indented lines, a body, and the
    colons again."""

    colons: str
    kind: str
    name: str
    options: dict[str, str]
    body: str


def replace_fences(text: str, replacements: Mapping[str, Callable[[Fence], str]]) -> str:
    """MyST Markdown with each fence of some kinds replaced by what the function of its kind makes of it."""
    fences = re.compile(
        rf"^(:{{3,}})\{{({'|'.join(replacements)})\}} *([^\n]*?) *\n((?::[a-z]+:[^\n]*\n(?: +\S[^\n]*\n)*)*)(.*?)^\1 *$",
        re.MULTILINE | re.DOTALL,
    )

    def replaced(match: re.Match) -> str:
        colons, kind, name, options, body = match.groups()
        return replacements[kind](
            Fence(
                colons,
                kind,
                name,
                {
                    option: " ".join(value.split())
                    for option, value in re.findall(
                        r"^:(\w+):(.*(?:\n +.*)*)$", options, re.MULTILINE
                    )
                },
                body,
            )
        )

    return fences.sub(replaced, text)


@dataclass(frozen=True)
class Run:
    """Parameters and results of a run, as text asks for them."""

    notebook: str
    preset: str
    unchanged: bool  # whether the preset ran as it is
    parameters: Mapping = field(default_factory=dict)
    # name -> {"value", "low", "high", "spec"} or {"text"}
    results: Mapping[str, Mapping] = field(default_factory=dict)
    tables: Mapping[str, Mapping] = field(default_factory=dict)  # name -> {"columns", "rows"}
    claims: Mapping[str, Mapping] = field(default_factory=dict)  # id -> the verdict's record
    figures: Mapping[str, str] = field(default_factory=dict)  # name -> its alternative text
    answer: str = ""  # the bold text under its title


def run_of(notebook: dict, root: Path) -> Run:
    """The `Run` of an executed notebook; without a record of it, only what the notebook shows by
    name."""
    record, shown = notebook["metadata"].get("mia", {}), displayed(notebook)
    name = record.get("notebook", "")
    preset = record.get("preset", PUBLISHED)
    values = record.get("parameters", {})
    try:
        unchanged = values == validate(name, {}, preset, root)
    except MiaError:  # a preset or notebook that is no more
        unchanged = False
    first = next(
        ("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"),
        "",
    )
    answer = ANSWER.search(first)
    return Run(
        name,
        preset,
        unchanged,
        values,
        shown.results,
        shown.tables,
        {claim.get("claim", ""): claim for claim in shown.claims},
        {figure: of_figure.get("alt", "") for figure, of_figure in shown.figures.items()},
        " ".join(answer[1].split()) if answer else "",
    )


def resolve_roles(notebook: dict, run: Run) -> dict:
    """An executed notebook, as JSON, with its text, captions and alternative texts as the numbers of its run have them.

    Raises:
        MiaError: a name that does not exist, with the cell.
    """
    notebook = copy.deepcopy(notebook)
    for place, cell in enumerate(notebook["cells"], 1):

        def tell(text, where: str = f"notebooks/{run.notebook}.py, cell {place}") -> str:
            return prose("".join(text), where, run)

        if cell["cell_type"] == "markdown":
            cell["source"] = tell(cell["source"])
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                output["text"] = WARNED.sub(r"\1", "".join(output["text"]))
            data, figure = output.get("data", {}), output.get("metadata", {}).get("mia", {})
            for kind in data.keys() & {"text/markdown", "text/html", "text/plain"}:
                data[kind] = tell(data[kind])
            if TABLE in data:
                data[TABLE]["caption"] = tell(data[TABLE]["caption"])
            if VEGA_LITE in data and figure:
                chart = data[VEGA_LITE]
                chart |= {"description": tell(chart["description"])}
                chart["usermeta"]["instructions"] = tell(chart["usermeta"]["instructions"])
            for part in figure.keys() & {"caption", "alt"}:
                figure[part] = tell(figure[part])
    return notebook


def prose(
    text: str, where: str, run: Run | None = None, runs: Mapping[str, Run] | None = None
) -> str:
    """MyST Markdown with each role answered.

    Args:
        where: page and cell, for errors.
        run: whose page it is; None for a page of prose.
        runs: notebook -> its run, for text that names the notebook.

    Raises:
        MiaError: a name that does not exist, or a role on a page that has no run, with the nearest name.
    """
    if "{" not in text:
        return text
    text = replace_fences(
        text,
        {
            "finding": lambda fence: _finding(fence, where, run),
            "shown": lambda fence: _figure(fence, where, runs or {}),
            "quiz": lambda fence: quiz_page(quiz_questions(fence.name, where=f"{where}: ")),
        },
    )
    return COUNT.sub(
        lambda role: _fitted(
            _answer(role[1], role[2], where, run, runs or {}),
            role["unit"] or "",
            role["noun"] or "",
        ),
        text,
    )


def _fitted(answer: str, unit: str, noun: str) -> str:
    """An answer and what stands behind it: "1 target", not "1 targets"; a rate that is below resolution has no "%"."""
    if answer.strip("()") == BELOW:
        unit = ""
    if answer == "1" and not unit:
        noun = noun[:1] + ONE.get(noun[1:], noun[1:])
    return answer + unit + noun


def _finding(fence: Fence, where: str, run: Run | None) -> str:
    """A finding as it was written where the published run is shown, else what became of its claims."""
    if run is None:
        raise MiaError(f"{where}: a finding stands on a page that no run belongs to.")
    if "claims" not in fence.options:
        raise MiaError(
            f"{where}: a finding begins with the claims that it rests on, as `:claims: C7 reproduced`."
        )
    written_for = dict(part.strip().split(" ", 1) for part in fence.options["claims"].split(","))
    for claim in written_for:
        known(claim, run.claims, "claim", where)
    verdicts = [{**run.claims[claim], "claim": claim} for claim in written_for]
    is_published = run.preset == PUBLISHED and run.unchanged
    for now in verdicts if is_published else ():
        if now["verdict"] != written_for[now["claim"]]:
            raise MiaError(
                f"{where}: a finding was written for {now['claim']} {written_for[now['claim']]}, and it is "
                f"{now['verdict']} now ({now['brief'] or now['reason']}). Write it anew."
            )
    return render(
        "finding.md",
        fence=fence.colons,
        body=fence.body.strip() if is_published else "",
        verdicts=verdicts,
    ).strip()


def _figure(fence: Fence, where: str, runs: Mapping[str, Run]) -> str:
    """A chapter's figure on another page; its alternative text may name that chapter's results."""
    run = run_with_figure(fence.name, where, runs)
    alt = prose(run.figures[fence.name], where, run)
    return f":::{{figure}} /{FIGURES}{fence.name}.png\n:alt: {alt}\n:width: 100%\n\n{fence.body}:::"


def run_with_figure(name: str, where: str, runs: Mapping[str, Run]) -> Run:
    """The run of the chapter that shows a figure, or a `MiaError` with the nearest name."""
    by_figure = {figure: run for run in runs.values() for figure in run.figures}
    known(name, by_figure, "figure", where)
    return by_figure[name]


def _answer(role: str, asked: str, where: str, run: Run | None, runs: Mapping[str, Run]) -> str:
    first, _, rest = asked.partition(" ")
    if role in OF_CHAPTERS:
        known(asked, runs, "chapter", where)
        return OF_CHAPTERS[role](runs[asked], where)
    if first in runs and rest:
        run, asked = runs[first], rest.strip()
    elif run is None and role == "printed":
        return _printed(first, rest.strip(), where)
    if run is None:
        raise MiaError(
            f"{where}: {{{role}}}`{asked}` does not say of which chapter. Begin with one of {', '.join(runs)}."
        )
    if role == "printed":
        return _printed(run.notebook, asked, where)
    return {"ours": _ours, "param": _param, "says": _says}[role](run, asked, where)


def known(name: str, allowed, what: str, where: str) -> None:
    """Refuse a name that does not exist, with the nearest one."""
    if name not in allowed:
        near = difflib.get_close_matches(name, list(allowed), 1, 0)
        raise MiaError(
            f"{where}: there is no {what} {name!r}"
            + (f"; the nearest is {near[0]!r}." if near else ".")
        )


def _ours(run: Run, asked: str, where: str) -> str:
    if "|" in asked:
        table, row, column = (part.strip() for part in asked.split("|"))
        known(table, run.tables, "table", where)
        columns = run.tables[table]["columns"]
        rows = {cell_text(cells[0]): cells for cells in run.tables[table]["rows"]}
        known(row, rows, f"row of {table}", where)
        known(column, columns, f"column of {table}", where)
        return cell_text(rows[row][columns.index(column)])
    name, _, how = asked.partition(":")
    known(name, run.results, "result", where)
    result = run.results[name]
    if "text" in result:
        return result["text"]
    return number(
        {"value": result["value"]} if how == "value" else result,
        result["spec"] if how in ("", "value") else how,
    )


def cell_text(cell) -> str:
    """A cell of `results.plain_table` as text."""
    if isinstance(cell, float):
        cell = {"value": cell}
    return (cell.get("text") or number(cell, ".3f")) if isinstance(cell, Mapping) else str(cell)


def number(result: Mapping, spec: str) -> str:
    """A result as text: its value and, where it has one, its interval."""
    value, percent = result["value"], spec.endswith("%")
    factor, spec = (100, spec[:-1] + "f") if percent else (1, spec)
    if result.get("low") is None or result.get("high") is None:
        return f"{factor * value:{spec}}" + (" %" if percent else "")
    from mia_lib.metrics.interval import Interval

    ends = (factor * result[end] for end in ("value", "low", "high"))
    text = format(Interval(*ends, exact=result.get("exact", False)), spec)
    return text.replace(" ", " % ", 1) if percent else text


def _param(run: Run, asked: str, where: str) -> str:
    name, _, how = asked.partition(":")
    known(name, run.parameters, "parameter", where)
    value = run.parameters[name]
    if how == "title":
        return ", ".join(
            sets.title(item) for item in (value if isinstance(value, list) else [value])
        )
    if isinstance(value, list):
        return ", ".join(f"{item:,}" if isinstance(item, int) else str(item) for item in value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _says(run: Run, asked: str, where: str) -> str:
    from mia_book.evidence import claims

    known(asked, run.claims, "claim", where)
    return claims.sentence(run.claims[asked])


def _answered(run: Run, where: str) -> str:
    if not run.answer:
        raise MiaError(
            f"{where}: notebooks/{run.notebook}.py has no answer: bold text right under its title."
        )
    return prose(run.answer, where, run)


def _tally(run: Run, where: str) -> str:
    """Groups of verdicts that do not add up to one another, each count in the look of its verdict."""
    from mia_book.evidence import claims

    text = claims.tally(run.claims.values()).removesuffix(".")
    groups = [
        COUNTED.sub(
            lambda count: f"[{count[0]}]{{.verdict .verdict-{count[1].replace(' ', '-')}}}", part
        )
        for part in text.split(". ")
    ]
    return "\\\n".join(groups).replace("}, [", "} [") or "no claim judged"


OF_CHAPTERS = {"answer": _answered, "tally": _tally}


def _printed(paper: str, asked: str, where: str) -> str:
    from mia_book.evidence import results

    table, *words = (part.strip() for part in asked.split("|"))
    try:
        frame = results.paper(paper, table)
    except MiaError as error:
        raise MiaError(f"{where}: {error}") from None
    identifying = ["dataset", "model", "setting", "attack", "metric"]
    for word in words:

        def meant(cell, word=word) -> bool:
            return word in [str(cell), *(part.strip() for part in str(cell).split(";"))]

        hit = frame[identifying].map(meant).any(axis=1)
        if not hit.any():
            known(
                word,
                sorted(
                    {
                        part.strip()
                        for column in identifying
                        for cell in frame[column]
                        for part in str(cell).split(";")
                    }
                ),
                f"row of {paper}'s {table} with",
                where,
            )
        frame = frame[hit]
    if len(frame) != 1:
        raise MiaError(
            f"{where}: {{printed}}`{asked}` means {len(frame)} numbers of {paper}'s {table}. Name more of the "
            f"row, for example {' | '.join(str(cell) for cell in frame.iloc[0][identifying] if cell)}."
        )
    with open(
        folders.of() / paper / "printed" / f"{table}.csv", encoding="utf-8", newline=""
    ) as file:
        # with the digits that the paper has
        return list(csv.DictReader(file))[frame.index[0]]["value"]


# Quizzes: questions with their options and the reasons for and against each, for pages, slides and a sheet to print


class Option(BaseModel, extra="forbid"):
    """An answer to choose: its text, the reason for or against it, and whether it is the right one."""

    says: Line
    why: Line
    right: bool = False

    @field_validator("says")
    @classmethod
    def _plain(cls, text: str) -> str:
        if markup := NOT_PLAIN.search(text):
            raise ValueError(
                f"{markup[0]!r} in {text!r}: what is chosen is plain text, since it is a button. Write "
                "mathematics in words or with letters such as λ, and leave links to `why`."
            )
        return text


class Question(BaseModel, extra="forbid"):
    """A question and its options, one of them right."""

    asks: Line
    options: list[Option] = Field(min_length=2, max_length=len(LETTERS))

    @field_validator("options")
    @classmethod
    def _one_is_right(cls, options: list[Option]) -> list[Option]:
        if (rights := sum(option.right for option in options)) != 1:
            raise ValueError(f"{rights} right options: exactly one needs `right: true`.")
        return options

    @property
    def answer(self) -> int:
        """Place of the right option."""
        return [option.right for option in self.options].index(True)


def quiz_questions(name: str, root: Path | None = None, where: str = "") -> list[Question]:
    """The questions of a page, from `mia_book/chapters/NAME/quiz.yaml`, a list of them.

    `says` and `asks` are plain text, `why` is MyST:

        - asks: What was asked?
          options:
            - says: A misconception.
              why: What is wrong with it.
            - says: The answer.
              right: true
              why: What makes it right.

    Raises:
        MiaError: no such file; a question without text, without two to five options, or without exactly one right one; an
            option without a reason, or with mathematics, links or roles in its text, which is a button.
    """
    known = folders.find("quiz.yaml", find_root(root))
    path = known[check_choice(f"{where}quiz", name, known)]
    questions = [
        validated(Question, question, f"{where}quiz {name}, question {number}: ")
        for number, question in enumerate(
            documents.load(path, list, "Write a list of questions."), 1
        )
    ]
    return _spread(questions, name)


def _spread(questions: list[Question], name: str) -> list[Question]:
    """The questions with their right options in places drawn by the quiz's name, each place as often as the others; wrong
    options keep their order."""
    draws, moved = random.Random(name), []
    used: Counter[int] = Counter()
    for question in questions:
        place = min(range(len(question.options)), key=lambda place: (used[place], draws.random()))
        used[place] += 1
        options = [option for option in question.options if not option.right]
        options.insert(place, question.options[question.answer])
        moved.append(question.model_copy(update={"options": options}))
    return moved


def quiz_page(questions: list[Question]) -> str:
    """Questions in MyST Markdown, each option a fold of its own, so that whoever chooses one reads the reason for that one; it
    needs no script."""
    return render("quiz.md", questions=questions, letters=LETTERS).strip()
