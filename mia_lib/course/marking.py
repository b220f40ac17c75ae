"""Notebooks that were handed in, marked with the book's own checks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mia_lib.errors import MiaError

SECONDS = 300  # for one notebook; the slowest exercise takes a few


@dataclass(frozen=True)
class Mark:
    """What became of a notebook.

    Attributes:
        path: of the notebook.
        exercise: it answers; "" where it was refused.
        right, of: checks that pass, and how many there are.
        said: what is wrong, or why it was refused.
    """

    path: Path
    exercise: str = ""
    right: int = 0
    of: int = 0
    said: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether it could not be checked at all."""
        return not self.exercise


def mark(path: Path, root: Path, seed: int | None = None, seconds: float = SECONDS) -> Mark:
    """Run a student's notebook in a process of its own, in its folder, with the checks of the book in the place of the "
      "student's.

    Its code runs with the rights of whoever marks it.

    Args:
        path: .ipynb or .py. root: of the book. seed: of the checks' data. seconds: that it may take.
    """
    search = os.pathsep.join([str(root / "course"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    command = [sys.executable, "-P", "-m", "checks", "--json", str(path.resolve())]
    command += [] if seed is None else ["--seed", str(seed)]
    folder = path.parent if path.parent.is_dir() else Path.cwd()
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": search}, capture_output=True, text=True,
                              timeout=seconds)
    except subprocess.TimeoutExpired:
        return Mark(path, said=(f"{path} ran for more than {seconds:g} s. Is there a loop that never ends, or work "
                                f"outside the functions?",))
    try:
        found = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        return Mark(path, said=(f"{path} ended Python while it ran: {last}",))
    if "refused" in found:
        return Mark(path, said=(found["refused"],))
    wrong = [one for one in found["said"] if one != "right"]
    return Mark(path, found["exercise"], len(found["said"]) - len(wrong), len(found["said"]), (*found["failed"], *wrong))


def check(paths: list[Path], root: Path, seed: int | None = None) -> list[Mark]:
    """Marks of several notebooks.

    Raises:
        MiaError: none was given.
    """
    if not paths:
        raise MiaError("Say which notebooks to check: `mia course check handed_in/*.ipynb`.")
    return [mark(path, root, seed) for path in paths]
