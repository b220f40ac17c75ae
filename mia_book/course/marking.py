"""Notebooks that were handed in, marked with the book's own checks."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mia_book.course import child
from mia_lib.errors import MiaError, is_full

COLUMNS = ("file", "student", "exercise", "points", "of", "complaint")
SECONDS = 300  # for one notebook; the slowest exercise takes a few
# what Moodle calls the folder of a student, or the file where there are none: "Anna Li_12345_assignsubmission_file_"
MOODLE = re.compile(r"(?P<student>.+)_(?P<number>\d+)_assignsubmission_file_?(?P<rest>.*)")


@dataclass(frozen=True)
class Mark:
    """Result of marking a notebook."""

    path: Path
    exercise: str = ""  # that it answers; "" where it was refused
    right: int = 0  # checks that pass
    of: int = 0  # checks that there are
    remarks: tuple[str, ...] = ()  # what is wrong, or why it was refused

    @property
    def refused(self) -> bool:
        """True if the notebook could not be checked at all."""
        return not self.exercise


def notebooks(paths: Iterable[Path]) -> list[Path]:
    """The files among `paths`, and for each folder all notebooks (.ipynb) that are in it, at any depth.

    Raises:
        MiaError: a folder without any.
    """
    found = []
    for path in paths:
        inside = sorted(
            one
            for one in path.rglob("*.ipynb")
            if one.is_file()
            and not any(part.startswith(".") for part in one.relative_to(path).parts)
        )
        if path.is_dir() and not inside:
            raise MiaError(f"{path} is a folder without a notebook (.ipynb): name the files.")
        found += inside if path.is_dir() else [path]
    return found


def mark(path: Path, root: Path, seed: int = 0, seconds: float = SECONDS) -> Mark:
    """Run a student's notebook in a process of its own, in its folder, with the checks of the book in the place of the
    student's.

    Its code runs with the rights of whoever marks it, in the process that counts: code that was written to forge a mark can.

    Args:
        path: .ipynb or .py. root: of the book. seed: of the checks' data.
        seconds: that the notebook may take.
    """
    command = [sys.executable, "-P", "-m", "checks", "--json", str(path.absolute())]
    command += ["--seed", str(seed)]
    try:
        # a folder, and a file that is not there, the child refuses in its own words
        if path.exists() and not path.is_dir() and not _is_small_file(path):
            return _refusal(
                path,
                f"{path} is no file that can be read: a device, a pipe, a link to one, or too large.",
            )
        folder = path.parent if path.parent.is_dir() else Path.cwd()
        done = child.run(command, folder, seconds, _environment(root))
    except subprocess.TimeoutExpired:
        return _refusal(
            path,
            f"{path} ran for more than {seconds:g} s. Is there a loop that never ends, or work outside the "
            "functions?",
        )
    except OSError as error:
        return _refusal(path, f"{path} cannot be run: {error}.")
    try:
        report = json.loads(done.printed)
        if "refused" in report:
            reason = str(report["refused"]).replace(str(path.absolute()), str(path))
            return _refusal(path, reason)
        exercise = report["exercise"]
        failed = [*map(str, report["failed"])]
        results = [*map(str, report["said"])]
        if len(results) != _count_checks(root, exercise):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        return _refusal(
            path,
            f"{path} ended Python while it ran, or printed at its end what no check prints: "
            f"{done.complaint or 'nothing was said'}",
        )
    wrong = [result for result in results if result != "right"]
    remarks = dict.fromkeys(child.printable(remark) for remark in (*failed, *wrong))
    return Mark(path, exercise, len(results) - len(wrong), len(results), tuple(remarks))


def _is_small_file(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= child.LARGEST


def _refusal(path: Path, reason: str) -> Mark:
    return Mark(path, remarks=(child.printable(reason),))


def row(mark: Mark, root: Path) -> tuple:
    """Values of `COLUMNS` for a mark. The student's name is that of a folder or a file that Moodle named; else what follows
    the exercise in the name of the file, in capitals or with hyphens as well; or else the name of its folder. A refused
    notebook has no points of as many as its exercise gives."""
    path = mark.path.absolute()
    names = (MOODLE.fullmatch(name) for name in (path.stem, *(one.name for one in path.parents)))
    moodle = next(filter(None, names), None)
    of_file = MOODLE.fullmatch(path.stem)
    stem = of_file["rest"] if of_file else path.stem
    written = re.sub("[- ]", "_", stem.lower())
    named = max(filter(written.startswith, _exercises(root)), key=len, default="")
    exercise = mark.exercise or named
    rest = stem[len(exercise) :] if written.startswith(exercise) else stem
    student = rest.strip("_-+=@ ") or path.parent.name
    if moodle:  # of anonymous ones the number alone tells them apart
        student = moodle["student"]
        student = student if " " in student else f"{student} {moodle['number']}"
    shown, student = child.printable(str(mark.path)), child.printable(student)
    of = _count_checks(root, exercise) if exercise else mark.of
    return shown, student, exercise, mark.right, of, (*mark.remarks, "")[0]


def record(to: Path, cells: Iterable, mode: str = "a") -> None:
    """Write a line of a .csv at once; mode "x" writes the first one. A file that cannot be written
    raises `MiaError`. What a spreadsheet would take for a formula gets an apostrophe before it."""
    cells = [f"'{cell}" if str(cell).startswith(("=", "+", "-", "@")) else cell for cell in cells]
    try:
        with to.open(mode, newline="", encoding="utf-8") as out:
            csv.writer(out).writerow(cells)
    except OSError as error:
        if mode == "x" and is_full(error):
            to.unlink(missing_ok=True)
        raise MiaError(
            f"--to {to} cannot be written ({error.strerror}). Give a new name, in a folder that there is; marks "
            "that were printed stand."
        ) from error


def _environment(root: Path) -> dict[str, str]:
    """Environment variables for a process that is to find the book's checks."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [str(root / "course"), os.environ.get("PYTHONPATH", "")]
        ).rstrip(os.pathsep),
    }


def _exercises(root: Path) -> list[str]:
    return [path.stem for path in (root / "course" / "exercises").glob("*.py")]


@lru_cache
def _count_checks(root: Path, exercise: str) -> int:
    """Number of checks that an exercise has, counted in a process in which no notebook ran.

    Raises:
        ValueError: there is no such exercise.
    """
    if exercise not in _exercises(root):
        raise ValueError
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            "import checks, sys; print(len(checks.titles(sys.argv[1])))",
            exercise,
        ],
        env=_environment(root),
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)
