"""Check a notebook from the command line: `python -m checks lira.ipynb`."""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import re
import sys
from pathlib import Path

import checks

RUN = re.compile(r"^(?:\w+\s*=\s*|[^\S\n]*)checks\.run\(\s*[\"'](\w+)[\"']", re.MULTILINE)


class Refused(Exception):
    """A notebook that cannot be checked, and why, as a sentence to its author."""


def cells(path: Path) -> list[tuple[str, list[str]]]:
    """Code and tags of each code cell of an .ipynb, or of a .py with cells that begin with `# %%`.

    Raises:
        Refused: there is no such file, or it is no notebook.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Refused(f"There is no file {path}. Is the name right, and are you in the right folder?") from None
    except (OSError, UnicodeDecodeError):
        if path.is_dir():
            raise Refused(f"{path} is a folder: name the notebooks in it, as {path}/*.ipynb.") from None
        raise Refused(f"{path} cannot be read as text: hand in the notebook itself (.ipynb or .py).") from None
    if not text.strip():
        raise Refused(f"{path} is empty. Save it in Jupyter, and hand it in again.")
    if path.suffix == ".py":
        parts = re.split(r"^(# %%.*)$", text, flags=re.MULTILINE)
        first = [(parts[0], [])] if re.search(r"^[^#\s]", parts[0], re.MULTILINE) else []  # code above the first cell
        return first + [(code, re.findall(r'"(\w+)"', head)) for head, code in zip(parts[1::2], parts[2::2], strict=True)
                        if "[markdown]" not in head]
    try:
        found = json.loads(text)["cells"]
        return [("".join(one["source"]), one["metadata"].get("tags", [])) for one in found if one["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Refused(f"{path} is no Jupyter notebook. Save it in Jupyter (.ipynb), or hand in the .py beside "
                      f"it.") from None


def exercise_of(path: Path, found: list[tuple[str, list[str]]]) -> str:
    """The exercise that a notebook answers, by the cell that runs its checks.

    Raises:
        Refused: no such cell, several, or checks that do not exist.
    """
    named = {name for code, _ in found for name in RUN.findall(code)}
    if len(named) != 1:
        raise Refused(f"{path} has {'no cell' if not named else 'cells for several exercises'} with "
                      "`checks.run(\"...\", globals())`. That cell says which exercise this is: take it over from the "
                      "notebook that you were given.")
    name = named.pop()
    if not (Path(__file__).parent / f"{name}.py").is_file():
        raise Refused(f"{path} asks for the checks of {name!r}, which do not exist. Take that cell over from the "
                      "notebook that you were given.")
    return name


def runnable(code: str) -> ast.Module:
    """A cell without what only Jupyter understands, and without the calls that check.

    Raises:
        SyntaxError: it is no Python.
    """
    try:
        tree = ast.parse(code)
    except SyntaxError:
        tree = ast.parse(re.sub(r"^[%!].*$", "", code, flags=re.MULTILINE))
    tree.body = [one for one in tree.body if not (isinstance(one, ast.Expr | ast.Assign) and RUN.search(ast.unparse(one)))]
    return tree


def check(path: Path, seed: int = 0) -> dict:
    """Run the cells of a notebook, but those on real signals, and the checks of its exercise.

    Returns:
        exercise, titles, said ("right" or what is wrong, a sentence a check) and failed (cells that stopped, with the error).

    Raises:
        Refused: a notebook that cannot be checked.
    """
    found = cells(path)
    name = exercise_of(path, found)
    titles, one = checks.titles(name), checks.one  # before a notebook can put others in their place
    work: dict = {"__name__": "__main__"}
    failed = []
    for number, (code, tags) in enumerate(found, 1):
        if "signals" in tags:
            continue
        try:
            with open(os.devnull, "w", encoding="utf-8", errors="replace") as out, contextlib.redirect_stdout(out):
                exec(compile(runnable(code), f"{path.name}, cell {number}", "exec"), work)
        except Exception as error:  # a student's cell may fail in any way; what it should have defined is then missing
            failed.append(f"cell {number} stopped with {type(error).__name__}: {str(error)[:200]}")
    said = [one(name, number, work, seed) for number in range(len(titles))]
    return {"exercise": name, "titles": titles, "said": said, "failed": failed}


def main() -> None:
    """Print what was found; with --json for programs."""
    parser = argparse.ArgumentParser(prog="python -m checks", description="Check a notebook of an exercise.")
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="of the data of the checks")
    parser.add_argument("--json", action="store_true", help="print what was found for programs")
    given = parser.parse_args()
    try:
        found = check(given.notebook, given.seed)
    except Refused as refused:
        print(json.dumps({"refused": str(refused)}) if given.json else refused)
        sys.exit(2)
    if given.json:
        print(json.dumps(found))
    else:
        for one in found["failed"]:
            print(f"        {one}")
        checks.show(found["titles"], found["said"])
        print(f"{found['said'].count('right')} of {len(found['said'])} checks of {found['exercise']} pass.")


if __name__ == "__main__":
    main()
