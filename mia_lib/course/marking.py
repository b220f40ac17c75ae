"""Notebooks that were handed in, marked with the book's own checks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

SECONDS = 300  # for one notebook; the slowest exercise takes a few


@dataclass(frozen=True)
class Mark:
    """What became of a notebook."""

    path: Path
    exercise: str = ""  # that it answers; "" where it was refused
    right: int = 0  # checks that pass
    of: int = 0  # checks that there are
    remarks: tuple[str, ...] = ()  # what is wrong, or why it was refused

    @property
    def refused(self) -> bool:
        """Whether it could not be checked at all."""
        return not self.exercise


def mark(path: Path, root: Path, seed: int | None = None, seconds: float = SECONDS) -> Mark:
    """Run a student's notebook in a process of its own, in its folder, with the checks of the book in the place of the
    student's.

    Its code runs with the rights of whoever marks it, in the process that counts: code that was written to forge a mark can.

    Args:
        path: .ipynb or .py. root: of the book. seed: of the checks' data. seconds: that it may take.
    """
    command = [sys.executable, "-P", "-m", "checks", "--json", str(path.resolve())]
    command += [] if seed is None else ["--seed", str(seed)]
    folder = path.parent if path.parent.is_dir() else Path.cwd()
    try:
        done = subprocess.run(command, cwd=folder, env=_environment(root), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return Mark(path, remarks=(f"{path} ran for more than {seconds:g} s. Is there a loop that never ends, or work "
                                   f"outside the functions?",))
    try:
        report = json.loads(done.stdout.splitlines()[-1])
        if "refused" in report:
            return Mark(path, remarks=(str(report["refused"]),))
        exercise, failed, results = report["exercise"], [*map(str, report["failed"])], [*map(str, report["said"])]
        if len(results) != _count_checks(root, str(exercise)):
            raise ValueError
    except (ValueError, IndexError, KeyError, TypeError, subprocess.CalledProcessError):
        last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        return Mark(path, remarks=(f"{path} ended Python while it ran, or printed at its end what no check prints: {last}",))
    wrong = [result for result in results if result != "right"]
    return Mark(path, exercise, len(results) - len(wrong), len(results), (*failed, *wrong))


def _environment(root: Path) -> dict[str, str]:
    """The environment of a process that finds the book's checks."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "course"), os.environ.get("PYTHONPATH", "")]).rstrip(
        os.pathsep)}


@lru_cache
def _count_checks(root: Path, exercise: str) -> int:
    """How many checks an exercise has, as a process says that no notebook ran in."""
    done = subprocess.run([sys.executable, "-P", "-c", "import checks, sys; print(len(checks.titles(sys.argv[1])))", exercise],
                          env=_environment(root), capture_output=True, text=True, check=True)
    return int(done.stdout)
