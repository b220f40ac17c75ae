"""Sweeps: one notebook over a grid of parameters, and one page that lays the results over each other.

Each cell of the grid is a run of its own in `runs/NAME-KEY`, so what has finished is found again. What the runs displayed
as tables and claims becomes one tidy table, `results.csv`, and the page is drawn from that table alone.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from mia_lib.errors import MiaError, choose
from mia_lib.evidence import claims
from mia_lib.evidence import tables as results
from mia_lib.progress import Bars
from mia_lib.publish import prose, run_page, runner
from mia_lib.publish.parameters import find_root, parameters, plain, validate

LIMIT = 200  # cells of a grid
COLUMNS = ["exhibit", "row", "column", "value", "low", "high", "text", "verdict"]
CLAIMS = "claims"  # stands as the exhibit of a claim's numbers


@dataclass(frozen=True)
class Cell:
    """One run of a sweep.

    Args:
        given: swept parameter -> value.
        page: of the run, in HTML.
        record: of the run; None when it failed.
        tables, claims: what the run displayed, as plain data.
        error: why it failed.
    """

    given: Mapping
    page: Path | None = None
    record: Mapping | None = None
    tables: Sequence[Mapping] = ()
    claims: Sequence[Mapping] = ()
    error: str = ""

    @property
    def at(self) -> tuple:
        """Its place in the grid: a number or a word for each swept parameter."""
        return tuple(map(plain, self.given.values()))

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in zip(self.given, self.at, strict=True))


def grid(name: str, axes: Mapping[str, str | Iterable], preset: str | None = None, root: Path | None = None) -> list[dict]:
    """The cells of a grid, the last parameter running fastest, each {parameter: value} and checked.

    Args:
        name: of the notebook.
        axes: parameter -> its values, or text with `|` between them; commas will do for what is not a list.
        preset: name of the preset, None for "published".
        root: folder of the book.

    Raises:
        MiaError: nothing to sweep, unknown name, wrong type, not allowed, a value twice, more than `LIMIT` cells.
    """
    known = {p.name: p for p in parameters(name, preset, root)}
    if not axes:
        raise MiaError(f"There is nothing to sweep: give a parameter and its values, -p NAME a,b,c; "
                       f"`mia params {name}` lists them.")
    values = {}
    for axis, given in axes.items():
        choose("parameter", axis, known)
        if isinstance(given, str):
            between = "|" if "|" in given or known[axis].type.startswith(("list", "tuple")) else ","
            given = [part.strip() for part in given.split(between) if part.strip()]
        values[axis] = list(given)
        if not values[axis]:
            raise MiaError(f"{axis} has no values. Give them as -p {axis} a,b,c.")
    sizes = [len(given) for given in values.values()]
    if math.prod(sizes) > LIMIT:
        product = f"{' x '.join(map(str, sizes))} = " if len(sizes) > 1 else ""
        raise MiaError(f"The grid has {product}{math.prod(sizes)} cells. Allowed: up to {LIMIT}.")
    for axis, given in values.items():
        values[axis] = [validate(name, {axis: value}, preset, root)[axis] for value in given]
        for place, value in enumerate(values[axis]):  # as read: "1e3" and "1000" are the same
            if value in values[axis][:place]:
                raise MiaError(f"{axis} = {plain(value)} is given twice. Give each value once.")
    return [dict(zip(values, at, strict=True)) for at in itertools.product(*values.values())]


def run(name: str, axes: Mapping[str, str | Iterable], preset: str | None = None, output: Path | None = None, *,
        root: Path | None = None, bars: Bars | None = None) -> tuple[list[Cell], Path]:
    """Run a notebook in each cell of a grid, except where that has been done.

    Args:
        name, axes, preset, root: as in `grid`.
        output: folder of the result, None for `runs/NAME-sweep-HASH`.
        bars: where progress is drawn.

    Returns:
        The cells, for `page.write` to draw, and the folder. There lies results.csv, which grows with every cell.

    Raises:
        MiaError: bad input, before anything runs.
    """
    root, bars = find_root(root), bars or Bars()
    wanted = grid(name, axes, preset, root)
    # The key of one cell stands for source, library and data.
    spec = [runner.key(name, validate(name, wanted[0], preset, root), root), wanted]
    code = hashlib.sha256(json.dumps(spec).encode()).hexdigest()[:12]
    folder = Path(output).resolve() if output else root / "runs" / f"{name}-sweep-{code}"
    runner.check_output(folder)
    cells = []
    for given in wanted:
        bars.say(f"cell {len(cells) + 1} of {len(wanted)}: {Cell(given)}")
        try:
            notebook = runner.run(name, given, preset, root=root, bars=bars)
            cells.append(read(given, run_page.write(notebook, root, bars), root))
        except RuntimeError as error:  # a notebook that failed, or a kernel that would not start
            cells.append(Cell(given, error=str(error)))
            bars.say(str(error))
        runner.write_whole(folder / "results.csv", tidy(cells).to_csv(index=False))
    return cells, folder


def read(given: Mapping, page: Path, root: Path) -> Cell:
    """What the notebook beside `page` displayed when it was run with `given`, its captions as its numbers have them."""
    notebook = json.loads(page.with_suffix(".ipynb").read_text(encoding="utf-8"))
    notebook = prose.told(notebook, prose.run_of(notebook, root))
    shown = [output["data"] for cell in notebook["cells"] for output in cell.get("outputs", []) if "data" in output]
    return Cell(given, page, notebook["metadata"]["mia"], [data[results.MIME] for data in shown if results.MIME in data],
                [claim for data in shown for claim in data.get(claims.MIME, [])])


def tidy(cells: Sequence[Cell]) -> pd.DataFrame:
    """The results of all cells, one row a number or text.

    Returns:
        DataFrame with a column for each swept parameter, then `COLUMNS`: exhibit, the name of a table; row, what its
        leading columns say; column; value, low, high; or text, where a cell of the table is no number. The numbers of
        claims have the exhibit "claims", the claim as column, its part as row, and the verdict.
    """
    depths: dict[str, int] = {}
    for table in (table for cell in cells for table in cell.tables):
        depths[table["name"]] = max(depths.get(table["name"], 0), _depth(table))
    frame = pd.DataFrame([(*cell.at, *row) for cell in cells for row in _rows(cell, depths)],
                         columns=[*cells[0].given, *COLUMNS])
    return frame.astype(dict.fromkeys(("value", "low", "high"), float))


def _filled(table: Mapping) -> list[list]:
    """The rows of a table, an empty cell of its first column standing for the one above it."""
    rows = [list(row) for row in table["rows"]]
    for above, row in itertools.pairwise(rows):
        row[0] = row[0] if row[0] != "" else above[0]
    return rows


def bare(text: str) -> str:
    """A name in a table without its *emphasis*."""
    return re.sub(r"(\*+)(\S|\S.*?\S)\1", r"\2", text)


def _depth(table: Mapping) -> int:
    """How many of the columns that say what a row is about name it: as few as tell most rows apart."""
    rows = _filled(table)
    apart = [len({str(row[:depth]) for row in rows}) for depth in range(1, table["labels"] + 1)]
    return 1 + apart.index(max(apart))


def _numbers(cell) -> tuple | None:
    """Value, low and high of a cell of `plain_table`, or of a claim's part; None of text."""
    if isinstance(cell, Mapping):
        return tuple(cell.get(name) for name in ("value", "low", "high"))
    return None if isinstance(cell, str) else (cell, None, None)


def _label(column: str, cell) -> str:
    if isinstance(cell, Mapping):
        cell = cell.get("text", cell["value"])
    elif isinstance(cell, str):
        return bare(cell)
    return f"{column} = {cell}"


def _rows(cell: Cell, depths: Mapping[str, int]):
    """Yield what a cell's run displayed, as `COLUMNS` says."""
    for table in cell.tables:
        depth, seen = depths[table["name"]], set()
        columns = [bare(column) for column in table["columns"]]
        for number, row in enumerate(_filled(table), 1):
            label = ", ".join(map(_label, columns[:depth], row))
            if not label or label in seen:
                label = f"{label} (row {number})".strip()
            seen.add(label)
            for column, value in list(zip(columns, row, strict=True))[depth:]:
                numbers = _numbers(value)
                yield table["name"], label, column, *(numbers or (None,) * 3), None if numbers else value, None
    for claim in cell.claims:
        for part in [{**one, "part": one["part"] or "estimate"} for one in claim["numbers"]] or [{"part": ""}]:
            yield CLAIMS, part["part"], claim["claim"], *_numbers(part), None, claim["verdict"]
