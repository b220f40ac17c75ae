"""Sweeps: one notebook over a grid of parameters, one tidy table of what its runs displayed, and one page that draws it.

Each cell of the grid is a run of its own in `runs/NAME-KEY`, so what has finished is found again.
"""

from __future__ import annotations

import base64
import hashlib
import io
import itertools
import json
import math
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mia_book.pages import outputs, prose, runner
from mia_book.pages.parameters import PUBLISHED, as_typed, find_root, parameters, validate
from mia_lib import documents, store
from mia_lib.errors import MiaError, attempt, check_choice, explain
from mia_lib.progress import Bars

if TYPE_CHECKING:
    import pandas as pd

LIMIT = 200  # cells of a grid
COLUMNS = ["exhibit", "row", "column", "value", "low", "high", "text", "verdict"]
MARK = "<title>Sweep of "  # of its page
CLAIMS = "claims"  # stands as the exhibit of a claim's numbers
LINES, PANELS = 8, 6  # at most, of a chart


@dataclass(frozen=True)
class Cell:
    """One run of a sweep: its settings, and its page, its record and what it displayed, or why it failed."""

    settings: Mapping
    page: Path | None = None
    record: Mapping | None = None
    tables: Sequence[Mapping] = ()
    claims: Sequence[Mapping] = ()
    error: str = ""

    @property
    def at(self) -> tuple:
        """Place of the cell in the grid: a number or a word for each swept parameter."""
        return tuple(map(as_typed, self.settings.values()))

    def __str__(self) -> str:
        return ", ".join(
            f"{name} = {value}" for name, value in zip(self.settings, self.at, strict=True)
        )


def grid(
    name: str, axes: Mapping[str, str], preset: str | None = None, root: Path | None = None
) -> list[dict]:
    """The cells of a grid, the last parameter running fastest, each {parameter: value} and checked.

    Args:
        axes: parameter -> its values, with `|` between them; commas will do for what is not a list.

    Raises:
        MiaError: nothing to sweep, unknown name, wrong type, not allowed, a value twice, more than `LIMIT` cells.
    """
    known = {p.name: p for p in parameters(name, preset, root)}
    if not axes:
        raise MiaError(
            f"There is nothing to sweep: give a parameter and its values, -p NAME a,b,c; "
            f"`mia params {name}` lists them."
        )
    values = {}
    for axis, text in axes.items():
        check_choice("parameter", axis, known)
        between = "|" if "|" in text or known[axis].is_list else ","
        values[axis] = [part.strip() for part in text.split(between) if part.strip()]
        if not values[axis]:
            raise MiaError(f"{axis} has no values. Give them as -p {axis} a,b,c.")
    sizes = [len(of_axis) for of_axis in values.values()]
    if math.prod(sizes) > LIMIT:
        product = f"{' x '.join(map(str, sizes))} = " if len(sizes) > 1 else ""
        raise MiaError(f"The grid has {product}{math.prod(sizes)} cells. Allowed: up to {LIMIT}.")
    for axis, of_axis in values.items():
        values[axis] = [validate(name, {axis: value}, preset, root)[axis] for value in of_axis]
        for place, value in enumerate(values[axis]):  # as read: "1e3" and "1000" are the same
            if value in values[axis][:place]:
                raise MiaError(f"{axis} = {as_typed(value)} is given twice. Give each value once.")
    return [dict(zip(values, at, strict=True)) for at in itertools.product(*values.values())]


def run(
    name: str,
    axes: Mapping[str, str],
    preset: str | None = None,
    output: Path | None = None,
    *,
    root: Path | None = None,
    bars: Bars | None = None,
) -> Path:
    """Run a notebook in each cell of a grid, except where that has been done, and draw all of them on one page.

    Args:
        axes: as in `grid`.
        output: folder of the result, None for `runs/NAME-sweep-HASH`; results.csv in it grows with every cell.

    Returns:
        Path of index.html, which needs no network.

    Raises:
        MiaError: bad input, or a folder with a page or a table of somebody else's, before anything runs.
        NotebookFailed: some cells failed; the page says why and shows the others.
    """
    root, bars = find_root(root), bars or Bars()
    wanted = grid(name, axes, preset, root)
    runner.prepare(name, [validate(name, settings, preset, root) for settings in wanted], root)
    # The key of one cell stands for source, library and data.
    spec = [runner.key(name, validate(name, wanted[0], preset, root), root), wanted]
    code = hashlib.sha256(json.dumps(spec).encode()).hexdigest()[:12]
    folder = Path(output).resolve() if output else root / "runs" / f"{name}-sweep-{code}"
    runner.check_output(folder)
    for path, mark in ((folder / "index.html", MARK), (folder / "results.csv", ",".join(COLUMNS))):
        ours = path.is_file() and mark in path.read_text(encoding="utf-8", errors="replace")[:1000]
        runner.check_ours(path, ours, "sweep")
    from mia_book.pages import run_page  # slow to load, and a wrong grid is refused before

    cells: list[Cell] = []
    one_bar = _OneBar(bars, f"{name}, runs", cells, len(wanted))
    for settings in wanted:
        bars.say(f"cell {len(cells) + 1} of {len(wanted)}: {Cell(settings)}")
        failed: list[Exception] = []
        with attempt(failed):
            notebook = runner.run(name, settings, preset, root=root, bars=one_bar)
            cells.append(read(settings, run_page.write(notebook, root, bars), root))
        for error in failed:
            cells.append(Cell(settings, error=explain(error)))
            bars.say(cells[-1].error)
        unsaved: list[Exception] = []
        with attempt(unsaved):
            store.write(folder / "results.csv", tidy(cells).to_csv(index=False).encode())
    index = folder / "index.html"
    figures, same = (
        charts(tidy(cells), list(axes)) if sum(not cell.error for cell in cells) > 1 else ([], [])
    )
    store.write(index, page(name, cells, preset or PUBLISHED, folder, root, figures, same).encode())
    lost = [str(cell) for cell in cells if cell.error]
    wrong = [f"{len(lost)} of {len(cells)} cells failed: {'; '.join(lost)}"] if lost else []
    wrong += [
        f"no chart of {figure['title']}: {figure['failed']}"
        for figure in figures
        if "failed" in figure
    ]
    wrong += [f"results.csv could not be written: {explain(error)}" for error in unsaved]
    if wrong:
        raise runner.NotebookFailed(f"{'; '.join(wrong)}. {index} says why and shows the others.")
    return index


class _OneBar:
    """The bars of all runs as one, with the time that the runs which are done let expect."""

    def __init__(self, bars: Bars, label: str, done: Sequence[Cell], total: int):
        self.bars, self.label, self.done, self.total = bars, label, done, total
        self.say, self.began = bars.say, time.monotonic()
        self.counted, self.spent = (
            0,
            0.0,
        )  # runs that were done when one last ended, and when that was

    def __enter__(self) -> _OneBar:
        self.bars.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self.bars.__exit__(*error)

    def update(self, label: str, done: int, total: int, left: float | None = None) -> None:
        """Draw how many runs are done, whatever a run says of itself."""
        passed = time.monotonic() - self.began
        if self.counted < len(self.done):
            self.counted, self.spent = len(self.done), passed
        left = math.nan
        if self.counted:
            left = max(0.0, self.spent / self.counted * self.total - passed)
        self.bars.update(self.label, self.counted, self.total, left)


def read(settings: Mapping, page: Path, root: Path) -> Cell:
    """Cell of a sweep from the notebook beside `page`, which was run with `settings`: what it
    displayed, its captions as its numbers have them."""
    notebook = documents.load(page.with_suffix(".ipynb"))
    shown = outputs.displayed(prose.resolve_roles(notebook, prose.run_of(notebook, root)))
    return Cell(
        settings, page, notebook["metadata"]["mia"], list(shown.tables.values()), shown.claims
    )


# ------------------------------------------------------------------------------------------------------ one table of results


def tidy(cells: Sequence[Cell]) -> pd.DataFrame:
    """The results of all cells, one row a number or text.

    Returns:
        DataFrame with a column for each swept parameter, then `COLUMNS`: exhibit, the name of a table; row, what its
        leading columns say; column; value, low, high; or text, where a cell of the table is no number. The numbers of
        claims have the exhibit "claims", the claim as column, its part as row, and the verdict.
    """
    import pandas as pd

    depths: dict[str, int] = {}
    for table in (table for cell in cells for table in cell.tables):
        depths[table["name"]] = max(depths.get(table["name"], 0), _depth(table))
    rows = [
        {**dict(zip(cell.settings, cell.at, strict=True)), **row}
        for cell in cells
        for row in _rows(cell, depths)
    ]
    return pd.DataFrame(rows, columns=[*cells[0].settings, *COLUMNS]).astype(
        dict.fromkeys(("value", "low", "high"), float)
    )


def _depth(table: Mapping) -> int:
    """Number of columns that name a row, of those that say what it is about: as few as tell most
    rows apart."""
    distinct_labels = [
        len({str(row[:depth]) for row in table["rows"]}) for depth in range(1, table["labels"] + 1)
    ]
    return 1 + distinct_labels.index(max(distinct_labels))


def _rows(cell: Cell, depths: Mapping[str, int]):
    """Yield what a cell's run displayed, as `COLUMNS` says."""
    for table in cell.tables:
        labels, taken = depths[table["name"]], set()
        columns = [column.replace("*", "") for column in table["columns"]]
        for number, row in enumerate(table["rows"], 1):
            label = ", ".join(map(_label, columns[:labels], row))
            label = f"{label} (row {number})" if label in taken else label
            taken.add(label)
            for column, value in list(zip(columns, row, strict=True))[labels:]:
                yield {"exhibit": table["name"], "row": label, "column": column, **_value(value)}
    for claim in cell.claims:
        for part in claim["numbers"] or [{}]:
            name = part and (part["part"] or "estimate")
            yield {
                "exhibit": CLAIMS,
                "row": name or "",
                "column": claim["claim"],
                **_value(part),
                "verdict": claim["verdict"],
            }


def _label(column: str, cell) -> str:
    number = cell.get("text", cell["value"]) if isinstance(cell, Mapping) else cell
    return cell.replace("*", "") if isinstance(cell, str) else f"{column} = {number}"


def _value(cell) -> dict:
    if isinstance(cell, Mapping):
        return {name: cell.get(name) for name in ("value", "low", "high")}
    return {"text" if isinstance(cell, str) else "value": cell}


# -------------------------------------------------------------------------------------------------------------- and its page


def page(
    name: str,
    cells: Sequence[Cell],
    preset: str,
    folder: Path,
    root: Path,
    figures: Sequence[Mapping],
    same: Sequence[str],
) -> str:
    """The page as HTML: `cells` of a grid, in its order, with links for a page that lies in `folder`, and their `charts`."""
    known = {p.name: p for p in parameters(name, preset, root)}
    ran = [cell for cell in cells if cell.record]
    words = ["mia", "sweep", name, *(["--preset", preset] if preset != PUBLISHED else [])]
    swept = {}
    for place, axis in enumerate(cells[0].settings):
        values = list(dict.fromkeys(str(cell.at[place]) for cell in cells))
        between = "|" if known[axis].is_list or any("," in value for value in values) else ","
        # A single word that holds a comma is told from a list of words by a bar at its end.
        alone = between == "|" and len(values) == 1 and not known[axis].is_list
        words += ["-p", axis, between.join(values) + "|" * alone]
        swept[axis] = known[axis].meaning, (" | " if between == "|" else ", ").join(values)
    verdicts: dict[str, list[str]] = {}
    for claim in (claim for cell in ran for claim in cell.claims):
        verdicts.setdefault(claim["claim"], []).append(claim["verdict"])
    return outputs.render(
        "sweep.html",
        name=name,
        preset=preset,
        cells=cells,
        ran=ran,
        swept=swept,
        command=shlex.join(words),
        figures=figures,
        same=same,
        verdicts=dict(sorted(verdicts.items(), key=lambda item: len(set(item[1])) == 1)),
        texts={claim["claim"]: claim["text"] for cell in ran for claim in cell.claims},
        link={cell.at: os.path.relpath(cell.page, folder) for cell in ran if cell.page},
    )


def charts(frame: pd.DataFrame, axes: Sequence[str]) -> tuple[list[dict], list[str]]:
    """A chart for each column of a table and each claim whose numbers are not the same in all cells of a `tidy` frame: the
    first parameter along the axis, a panel for each setting of the others, a line a row.

    Returns:
        charts, each {"title", "alt", "svg"}, SVG in base64, or {"title", "failed"}, why it could not be drawn; and the titles
        of what stays the same.
    """
    import matplotlib.pyplot as plt

    from mia_lib import drawing

    drawn, same = [], []
    for (exhibit, column), part in frame.dropna(subset="value").groupby(
        ["exhibit", "column"], sort=False
    ):
        title = f"{exhibit}: {column}"
        if (part.groupby("row")[["value", "low", "high"]].nunique() <= 1).all(axis=None):
            same.append(title)
            continue
        x, *others = axes
        panel = (
            part[others]
            .astype(str)
            .apply(lambda row: ", ".join(map(" = ".join, row.items())), axis=1)
            if others
            else ""
        )
        part = part.assign(panel=panel)
        part = part[
            part["row"].isin(part["row"].unique()[:LINES])
            & part["panel"].isin(part["panel"].unique()[:PANELS])
        ]
        svg, failed = io.BytesIO(), []
        with attempt(failed):
            figure = drawing.lineplot(
                part,
                x,
                "value",
                "row",
                panel="panel" if others else None,
                ylabel=drawing.plain(column),
            )
            figure.savefig(svg, format="svg", metadata={"Date": None})
        plt.close("all")
        if failed:
            drawn.append({"title": title, "failed": explain(failed[0])})
            continue
        ends = [
            f"{row} from {line['value'].iloc[0]:.4g} at {line[x].iloc[0]} to {line['value'].iloc[-1]:.4g} at "
            f"{line[x].iloc[-1]}"
            for row, line in part.groupby("row", sort=False)
        ]
        drawn.append(
            {
                "title": title,
                "alt": f"{column} against {x}: {'; '.join(ends)}.",
                "svg": base64.b64encode(svg.getvalue()).decode(),
            }
        )
    return drawn, same
