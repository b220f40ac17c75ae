"""The folder that a student gets, and the lecturer's: notebooks, checks, signals, and what a grader reads."""

from __future__ import annotations

import importlib
import pprint
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import jupytext

from mia_book import folders
from mia_book.course import bank
from mia_book.course.exercises import Exercise, importable, load_exercises
from mia_lib import documents, store
from mia_lib.errors import MiaError, check_choice
from mia_lib.published.pieces import pieces
from mia_lib.published.reading import DEFINITIONS

EDITIONS = ("student", "lecturer")
SIGNALS, WRITING = "signals.npz", ".writing-"
FIRST = "attack_a_bank"  # notebook of the first week, which attacks `BANK` by the library
BANK = "bank/cifar10-small"
FIRST_WEEK = (
    f" In the first week the twenty lines of\n[{FIRST}.ipynb]({FIRST}.ipynb) do, which need NumPy, "
    "SciPy, pandas and seaborn alone."
)


def class_runs(root: Path) -> dict[str, str]:
    """A run of each chapter with something to predict, in the order of the book: the `CLASS_RUN` of its folder."""
    runs = {
        name: getattr(importlib.import_module(f"mia_book.chapters.{name}"), "CLASS_RUN", "")
        for name in folders.in_order(root)
    }
    return {name: command for name, command in runs.items() if command}


def write(to: Path, root: Path, edition: str = "student", only: Sequence[str] = ()) -> Path:
    """Write an edition of all exercises, or of some.

    Args:
        to: a folder that does not exist or is empty. root: of the book. edition: one of `EDITIONS`.
        only: names of exercises, and `FIRST` for the notebook of the first week; all when empty.

    Raises:
        MiaError: a folder that is not empty, an unknown edition or exercise, a book without exercises.
    """
    check_choice("edition", edition, EDITIONS)
    names = [FIRST, *(exercise.name for exercise in load_exercises(root))]
    for name in only:
        check_choice("only", name, names)
    empty_folder(to)
    # where the disk is full, no half of it is left
    with tempfile.TemporaryDirectory(prefix=WRITING, dir=to) as whole:
        _write(Path(whole), root, edition, only or names)
        for path in Path(whole).iterdir():
            path.rename(to / path.name)
    return to


def _write(to: Path, root: Path, edition: str, names: Sequence[str]) -> None:
    exercises = [exercise for exercise in load_exercises(root) if exercise.name in names]
    checks = root / "course" / "checks"
    for stem in ("__init__", "__main__", *(exercise.name for exercise in exercises)):
        store.write(to / "checks" / f"{stem}.py", (checks / f"{stem}.py").read_bytes())
    for exercise in exercises:
        notebook = exercise.student() if edition == "student" else exercise.lecturer()
        notebook.metadata.pop("jupytext", None)
        for ending, form in (("ipynb", "ipynb"), ("py", "py:percent")):
            store.write(
                to / f"{exercise.name}.{ending}", jupytext.writes(notebook, fmt=form).encode()
            )
        store.write(to / "tests" / f"{exercise.name}.py", otter(exercise).encode())
    bank.write(to / SIGNALS)
    if FIRST in names:
        shutil.copy(root / "course" / f"{FIRST}.ipynb", to)
        _write_library(to / "book", root)
    store.write(to / "README.md", readme(exercises, root, edition, FIRST in names).encode())


def _write_library(to: Path, root: Path) -> None:
    """Write what the notebook of the first week needs: the modules of `mia_lib`, and one published bank."""
    published = root / "data" / "published"
    files = [*(root / "mia_lib").rglob("*.py"), published / DEFINITIONS]
    for piece in pieces(BANK, published):
        files += [piece.path, piece.path.with_name(piece.manifest["file"])]
    for path in files:
        store.write(to / path.relative_to(root), path.read_bytes())


def empty_folder(to: Path) -> None:
    """Make a folder, or take one that is empty. What a call that was killed was writing there is
    removed.

    Raises:
        MiaError: it holds something, is a file, or cannot be written.
    """
    there = [*to.iterdir()] if to.is_dir() else []
    if any(not path.name.startswith(WRITING) for path in there):
        raise MiaError(
            f"--to {to}: the folder is not empty, and nothing is overwritten, for somebody's work may be in "
            "it. Give a new name, or empty it first."
        )
    try:
        to.mkdir(parents=True, exist_ok=True)
        for path in there:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError as error:
        raise MiaError(f"--to {to}: no folder can be made there ({error.strerror}).") from error


def readme(exercises: list[Exercise], root: Path, edition: str, first: bool = True) -> str:
    """Text of the folder's first page, from `course/STUDENT.md`; the lecturer's has
    `course/LECTURER.md` below it.

    Args:
        exercises: that are in the folder; runs of other chapters are left out.
        first: whether the notebook of the first week is there.
    """
    table = "\n".join(
        f"| [{exercise.title}]({exercise.name}.ipynb) | {exercise.about['chapter']} | "
        f"{exercise.about['minutes']} | {', '.join(f'`{name}`' for name in exercise.about['functions'])} |"
        for exercise in exercises
    )
    chapters = {exercise.about["chapter"] for exercise in exercises}
    runs = [command for name, command in class_runs(root).items() if name in chapters]
    config = documents.load(root / "_config.yml")
    repository = config["repository"]["url"]
    text = (
        (root / "course" / "STUDENT.md")
        .read_text(encoding="utf-8")
        .format(
            count=len(exercises),
            minutes=sum(exercise.about["minutes"] for exercise in exercises),
            table=table,
            runs="\n".join(f"    {command}" for command in runs or class_runs(root).values()),
            example=exercises[0].name if exercises else FIRST,
            first=FIRST_WEEK if first else "",
            repository=repository,
            book=config["html"]["baseurl"] or repository,
        )
    )
    return text + (
        (root / "course" / "LECTURER.md").read_text(encoding="utf-8")
        if edition == "lecturer"
        else ""
    )


def otter(exercise: Exercise) -> str:
    """The checks as Otter-Grader reads them from `tests/NAME.py`: a plain dictionary, a case for each check."""
    with importable(exercise.path.parents[1]) as checks:
        cases = [
            {
                "code": f">>> import checks\n>>> print(checks.one({exercise.name!r}, {number}, globals()))\nright",
                "hidden": False,
                "locked": False,
                "points": 1,
                "success_message": title,
            }
            for number, title in enumerate(checks.titles(exercise.name))
        ]
    test = {
        "name": exercise.name,
        "points": None,
        "suites": [
            {"type": "doctest", "scored": True, "setup": "", "teardown": "", "cases": cases}
        ],
    }
    return f"OK_FORMAT = True\n\ntest = {pprint.pformat(test, width=120, sort_dicts=False)}\n"
