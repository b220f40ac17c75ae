"""Exercises: one source each, from which the student's and the lecturer's notebooks are made.

`course/exercises/NAME.py` holds the text, the solution and other answers, right and wrong ones. The student's copy is derived:
what stands between BEGIN SOLUTION and END SOLUTION becomes a line to be written, cells of other answers are left out. The
checks are `course/checks/NAME.py`; they need NumPy alone and travel with the notebooks.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

import jupytext
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from mia_book import folders
from mia_lib.errors import MiaError, check_choice

ANSWERS = ("right", "wrong")
SOLUTION = re.compile(
    r"^( *)### BEGIN SOLUTION\n.*?^ *### END SOLUTION\n?", re.DOTALL | re.MULTILINE
)
STUB = r'\1raise NotImplementedError("Write this.")' + "\n"
CHECK = re.compile(r"^checks\.run\(", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """An answer other than the solution."""

    right: bool  # whether the checks have to accept it
    title: str
    code: str  # defines one or more of the exercise's functions; the others are the solution's


@dataclass(frozen=True)
class Exercise:
    """An exercise."""

    name: str  # of its source and its checks
    path: Path  # of its source

    @cached_property
    def notebook(self) -> NotebookNode:
        """The exercise's source as a notebook, solution and other answers included."""
        return jupytext.read(self.path)

    @property
    def about(self) -> dict:
        """Chapter of the exercise, minutes that it takes, and the functions to be written."""
        return self.notebook.metadata["mia"]

    @property
    def title(self) -> str:
        """Heading of the exercise."""
        return self.notebook.cells[0].source.splitlines()[0].lstrip("# ")

    @property
    def answers(self) -> list[Answer]:
        """The other answers, in the order of the source."""
        parts = [
            (kind, *cell.source.partition("\n"))
            for cell in self.notebook.cells
            for kind in ANSWERS
            if kind in _tags(cell)
        ]
        return [Answer(kind == "right", title.lstrip("# "), code) for kind, title, _, code in parts]

    @property
    def solution(self) -> str:
        """Code that defines all functions of the exercise, without checks and without signals."""
        cells = [
            cell
            for cell in self.notebook.cells
            if cell.cell_type == "code" and not CHECK.search(cell.source)
        ]
        return "\n\n".join(
            cell.source for cell in cells if not set(_tags(cell)) & {*ANSWERS, "signals"}
        )

    def student(self) -> NotebookNode:
        """The notebook with the solution taken out."""
        made = self._without_answers()
        for cell in made.cells:
            if cell.cell_type == "code":
                cell.source = SOLUTION.sub(STUB, cell.source).rstrip()
        return _identified(made, self.name, "student")

    def lecturer(self) -> NotebookNode:
        """The notebook with its solution, other right answers, and wrong ones with what a student is told."""
        made = self._without_answers()
        made.cells.append(
            new_markdown_cell(
                "## Other answers\n\nThe checks accept the right ones; under each wrong one "
                "stands what a student is told."
            )
        )
        for answer in self.answers:
            remarks = "\n".join(f"- {remark}" for remark in self.failures(answer))
            made.cells.append(
                new_markdown_cell(
                    f"**{'Right' if answer.right else 'Wrong'}: {answer.title}**\n\n```python\n{answer.code.strip()}\n```\n\n"
                    f"{remarks or 'Accepted.'}"
                )
            )
        return _identified(made, self.name, "lecturer")

    def _without_answers(self) -> NotebookNode:
        made = copy.deepcopy(self.notebook)
        made.cells = [cell for cell in made.cells if not set(_tags(cell)) & set(ANSWERS)]
        return made

    def work(self, answer: Answer | None = None) -> dict:
        """Names that the solved notebook defines, with their values, where `answer` stands in the
        place of the solution; its code may import `checks`."""
        work: dict = {}
        with importable(self.path.parents[1]):
            exec(compile(self.solution, f"{self.name}.py", "exec"), work)
            if answer is not None:
                exec(compile(answer.code, f"{self.name}.py: {answer.title}", "exec"), work)
        return work

    def failures(self, answer: Answer | None) -> list[str]:
        """Complaints of the checks about the solution, or an answer in its place: a sentence for each check that fails."""
        with importable(self.path.parents[1]) as checks:
            work = self.work(answer)
            results = [
                checks.one(self.name, number, work, 0)
                for number in range(len(checks.titles(self.name)))
            ]
        return [result for result in results if result != "right"]


def _tags(cell) -> list[str]:
    return cell.metadata.get("tags", [])


def _identified(notebook: NotebookNode, name: str, edition: str) -> NotebookNode:
    """The notebook, with ids of its cells that are the same in every export, and with the
    exercise's name, by which it is known when it comes back."""
    notebook.metadata["mia"] = {**notebook.metadata["mia"], "exercise": name, "edition": edition}
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"{name}-{number}".replace("_", "-")
    return notebook


def load_exercises(root: Path) -> list[Exercise]:
    """All exercises of a book, chapter by chapter, in each the quickest first.

    Raises:
        MiaError: `root` has none.
    """
    exercises = [
        Exercise(path.stem, path) for path in sorted((root / "course" / "exercises").glob("*.py"))
    ]
    if not exercises:
        raise MiaError(
            f"There are no exercises in {root / 'course' / 'exercises'}. Run `mia course` inside a clone of "
            f"the repository."
        )
    chapters = folders.in_order(root)

    def place(exercise: Exercise) -> tuple[int, int]:
        chapter = check_choice(f"chapter of {exercise.path}", exercise.about["chapter"], chapters)
        return chapters.index(chapter), exercise.about["minutes"]

    return sorted(exercises, key=place)


@contextlib.contextmanager
def importable(folder: Path) -> Iterator[ModuleType]:
    """Make `checks` of a folder importable while the context lasts, as they are beside a notebook,
    and yield the module."""
    before = {
        name: module for name, module in sys.modules.items() if name.partition(".")[0] == "checks"
    }
    for name in before:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("checks")
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == "checks"]:
            del sys.modules[name]
        sys.modules.update(before)
