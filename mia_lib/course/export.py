"""The folder that a student gets, and the lecturer's: notebooks, checks, signals, and what a grader reads."""

from __future__ import annotations

import pprint
import shutil
from pathlib import Path

import jupytext

from mia_lib import store
from mia_lib.course import bank
from mia_lib.course.exercises import Exercise, importable, load_exercises
from mia_lib.errors import MiaError, check_choice

EDITIONS = ("student", "lecturer")
SIGNALS = "signals.npz"
CLASS_RUNS = {  # chapter -> a run with something to predict
    "bayes": "mia run bayes -p classes 0,6", "calibration": "mia run calibration -p forgetting_epochs 5",
    "curvature": "mia run curvature -p references 8", "iha": "mia run iha -p models 20",
    "quantile": "mia run quantile -p targets 4", "compare": "mia run compare -p targets 8",
    "audit": "mia run audit -p share 0.05",
}

README = """\
# Exercises on membership inference

{count} exercises, {minutes} minutes of writing in all. Each is a notebook; `checks` tells you what is wrong with an
answer, and `signals.npz` holds real signals to try it on (what is in it: `signals.json`). All you need is Python, NumPy and
Jupyter:

    python -m pip install numpy jupyterlab
    jupyter lab malt_mast.ipynb

The .py file beside each notebook is the same one as a script, for those who like an editor better. Work in one of the two.

| exercise | chapter | minutes | you write |
| --- | --- | ---: | --- |
{table}

How it goes: read, write where it says `raise NotImplementedError`, run the cell with `checks.run(...)`, or in a terminal
`python -m checks malt_mast.ipynb`. It prints a line for each check, and what is wrong. The data of the checks are new each
time. Then run the last cell, on real signals; before you do, write down what you expect. The cell tagged `parameters` has what
you may change: everything runs in seconds on a laptop.

Keep notebooks and `checks` in one folder, and the name of the notebook and of your functions as they are: they are how your
work is recognised when you hand it in.

## A run of a chapter in class

Whoever has the whole book can go on in its chapters. Each of these runs one with a parameter changed. Run the chapter as it is
once before the lesson (`mia run NAME`): then what did not change is read from the store. Before you run it with the parameter
changed, write down what you expect; then change the parameter again.

{runs}
"""
LECTURER = """
## For the lecturer

This edition has the solutions. At the end of each notebook stand other answers: right ones, which the checks accept, and usual
wrong ones, each with what a student is told. `mia course check NOTEBOOK...` marks notebooks that were handed in, with the
checks of the book and not with those beside the notebook. `tests/` has the same checks for Otter-Grader.
"""


def write(to: Path, root: Path, edition: str = "student", size: bank.Size | None = None) -> Path:
    """Write an edition of all exercises.

    Args:
        to: a folder that does not exist or is empty. root: of the book. edition: one of `EDITIONS`. size: of the bank whose
            signals lie beside them.

    Raises:
        MiaError: a folder that is not empty, an unknown edition, a book without exercises.
    """
    check_choice("edition", edition, EDITIONS)
    empty_folder(to)
    exercises = load_exercises(root)
    shutil.copytree(root / "course" / "checks", to / "checks", ignore=shutil.ignore_patterns("__pycache__"))
    for exercise in exercises:
        notebook = exercise.student() if edition == "student" else exercise.lecturer()
        notebook.metadata.pop("jupytext", None)
        for ending, form in (("ipynb", "ipynb"), ("py", "py:percent")):
            store.write(to / f"{exercise.name}.{ending}", jupytext.writes(notebook, fmt=form).encode())
        store.write(to / "tests" / f"{exercise.name}.py", otter(exercise).encode())
    bank.write(to / SIGNALS, size)
    store.write(to / "README.md", readme(exercises, edition).encode())
    return to


def empty_folder(to: Path) -> None:
    """Make a folder, or take one that is empty.

    Raises:
        MiaError: it holds something, is a file, or cannot be written.
    """
    if to.is_dir() and any(to.iterdir()):
        raise MiaError(f"--to {to}: the folder is not empty, and nothing is overwritten, for somebody's work may be in "
                       "it. Give a new name, or empty it first.")
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MiaError(f"--to {to}: no folder can be made there ({error.strerror}).") from error


def readme(exercises: list[Exercise], edition: str) -> str:
    """What stands on the folder's first page."""
    table = "\n".join(f"| [{exercise.title}]({exercise.name}.ipynb) | {exercise.about['chapter']} | "
                      f"{exercise.about['minutes']} | {', '.join(f'`{name}`' for name in exercise.about['functions'])} |"
                      for exercise in exercises)
    runs = "\n".join(f"    {command}" for command in CLASS_RUNS.values())
    minutes = sum(exercise.about["minutes"] for exercise in exercises)
    text = README.format(count=len(exercises), minutes=minutes, table=table, runs=runs)
    return text + (LECTURER if edition == "lecturer" else "")


def otter(exercise: Exercise) -> str:
    """The checks as Otter-Grader reads them from `tests/NAME.py`: a plain dictionary, a case for each check."""
    with importable(exercise.path.parents[1]) as checks:
        cases = [{"code": f">>> import checks\n>>> print(checks.one({exercise.name!r}, {number}, globals()))\nright",
                  "hidden": False, "locked": False, "points": 1, "success_message": title}
                 for number, title in enumerate(checks.titles(exercise.name))]
    test = {"name": exercise.name, "points": None,
            "suites": [{"type": "doctest", "scored": True, "setup": "", "teardown": "", "cases": cases}]}
    return f"OK_FORMAT = True\n\ntest = {pprint.pformat(test, width=120, sort_dicts=False)}\n"
