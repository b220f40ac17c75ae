"""The page of a sweep: what was run, the verdicts side by side, and small charts of all that changes.

One file that asks the network for nothing, in the look of the book.
"""

from __future__ import annotations

import base64
import io
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure

from mia_lib import standalone
from mia_lib.evidence import plotting
from mia_lib.evidence.tables import NOTHING
from mia_lib.progress import duration
from mia_lib.publish import runner
from mia_lib.publish.parameters import PUBLISHED, find_root, parameters
from mia_lib.publish.sweep.cells import CLAIMS, Cell, tidy

LINES, PANELS = 8, 6  # at most, of a chart



def charts(frame: pd.DataFrame, cells: Sequence[Cell]) -> tuple[dict[str, list[dict]], dict[str, list[str]]]:
    """Small charts of all that depends on what was swept: the first such parameter along the axis, panels for the others.

    Args:
        frame: from `tidy`.
        cells: of the sweep.

    Returns:
        exhibit -> charts (column, panel, note, alt, svg); and exhibit -> columns that are the same in every cell.
    """
    axes, drawn, still = list(cells[0].given), {}, {}
    for (exhibit, column), part in frame.dropna(subset="value").groupby(["exhibit", "column"], sort=False):
        found = {cell.at: {} for cell in cells if cell.record}
        for at, rows in part.groupby(axes, sort=False):
            found[at] = dict(zip(rows.row, rows[["value", "low", "high"]].astype(str).itertuples(False, None), strict=True))
        moving = _moving(found)
        if not moving:
            still.setdefault(exhibit, []).append(column)
            continue
        x, *others = (axes[place] for place in moving)
        part = part.drop_duplicates([x, *others, "row"])
        names = list(part.row.unique())
        shown = part[part.row.isin(names[:LINES])]
        ends = np.nanmin(shown[["value", "low"]]), np.nanmax(shown[["value", "high"]])
        values = list(dict.fromkeys(cell.at[axes.index(x)] for cell in cells))
        of_panel = dict(list(shown.groupby(others))) if others else {(): shown}
        in_order = dict.fromkeys(tuple(cell.at[place] for place in moving[1:]) for cell in cells)
        panels = [(at, of_panel[at]) for at in in_order if at in of_panel]
        left_out = [f"the first {most} of {len(all_)} {what}" for most, all_, what in
                    ((LINES, names, "lines"), (PANELS, panels, "panels")) if len(all_) > most]
        for at, rows in panels[:PANELS]:
            panel = ", ".join(f"{axis} = {value}" for axis, value in zip(others, at, strict=True))
            drawn.setdefault(exhibit, []).append({
                "column": column, "panel": panel, "note": ", ".join(left_out), "alt": _alt(rows, column, x, panel),
                "svg": _svg(plotting.lines(rows, x, values, names[:LINES], ends,
                                           exhibit == CLAIMS and rows.low.notna().any()))})
    return drawn, still


def said(frame: pd.DataFrame, cells: Sequence[Cell]) -> dict[tuple[str, str, str], list[str]]:
    """Words that are not the same in all cells: (exhibit, row, column) -> what stands there in each cell that ran."""
    axes, ran = list(cells[0].given), [cell.at for cell in cells if cell.record]
    of_tables, found = frame[frame.exhibit != CLAIMS], {}
    for place, part in of_tables.groupby(["exhibit", "row", "column"], sort=False):
        if part.text.notna().any():
            texts = part.text.where(part.text.notna(), part.value.map("{:g}".format))
            at_cell = dict(zip(part[axes].itertuples(False, None), texts, strict=True))
            if len({at_cell.get(at) for at in ran}) > 1:
                found[place] = [at_cell.get(at) or NOTHING for at in ran]
    return found


def _moving(found: Mapping[tuple, dict]) -> list[int]:
    """Places of the parameters that matter: two cells that differ in nothing else show something else."""
    def matters(place: int) -> bool:
        lines: dict[tuple, list] = {}
        for at, content in found.items():
            lines.setdefault(at[:place] + at[place + 1:], []).append(content)
        return any(content != line[0] for line in lines.values() for content in line)

    return [place for place in range(len(next(iter(found)))) if matters(place)]


def _alt(rows: pd.DataFrame, column: str, x: str, panel: str) -> str:
    ends = [f"{name} from {line.value.iloc[0]:.4g} at {line[x].iloc[0]} to {line.value.iloc[-1]:.4g} at {line[x].iloc[-1]}"
            for name, line in rows.groupby("row", sort=False)]
    return f"{column} against {x}{', ' + panel if panel else ''}: {'; '.join(ends)}."


def _svg(figure: Figure) -> str:
    """In base64; the same from the same numbers."""
    svg = io.BytesIO()
    with rc_context({"svg.hashsalt": "mia"}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return base64.b64encode(svg.getvalue()).decode()


def _html(text: str) -> str:
    """Text of a caption with what our tables use: **bold**, *emphasis*, roles, and simple formulas such as $n_1$."""
    text = re.sub(r"\{[\w:]+\}`([^`<]*?)(?: <[^`]*>)?`", r"\1", text)
    pieces = escape(text).split("$")
    pieces[1::2] = ["<i>" + re.sub(r"_\{?(\w+)\}?", r"<sub>\1</sub>", formula) + "</i>" for formula in pieces[1::2]]
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", "".join(pieces))
    return re.sub(r"\*(.+?)\*", r"<em>\1</em>", text)


def _captions(cells: Sequence[Cell]) -> dict[str, str]:
    """exhibit -> those sentences of its caption that are the same in all cells, for captions hold numbers of a run."""
    found: dict[str, list[list[str]]] = {}
    for table in (table for cell in cells for table in cell.tables):
        found.setdefault(table["name"], []).append(re.split(r"(?<=[.!?])\s+|(?<=[.!?]\*\*)\s+", table["caption"]))
    return {name: " ".join(sentence for sentence in each[0] if all(sentence in other for other in each))
            for name, each in found.items()}


def write(name: str, cells: Sequence[Cell], preset: str | None, folder: Path, root: Path | None = None) -> Path:
    """Write the page of a sweep into its folder.

    Args:
        name, preset, root: as for `cells.run`.
        cells, folder: what it returned.

    Returns:
        Path of index.html, one page that needs no network.

    Raises:
        NotebookFailed: some cells failed; the page says why and shows the others.
    """
    index = folder / "index.html"
    runner.write_whole(index, page(name, cells, preset or PUBLISHED, folder, find_root(root)))
    failed = [cell for cell in cells if cell.error]
    if failed:
        raise runner.NotebookFailed(f"{len(failed)} of {len(cells)} cells failed: " + "; ".join(map(str, failed))
                                    + f". {index} says why and shows the others.")
    return index


def page(name: str, cells: Sequence[Cell], preset: str, folder: Path, root: Path) -> str:
    """The page as HTML.

    Args:
        name: of the notebook.
        cells: of the grid, in its order.
        preset: that the runs began from.
        folder: where the page will lie, for links.
        root: folder of the book.
    """
    ran, known = [cell for cell in cells if cell.record], {p.name: p for p in parameters(name, preset, root)}
    frame = tidy(cells)
    exhibits, still = charts(frame, cells) if ran else ({}, {})
    moving = {chart["column"] for chart in exhibits.get(CLAIMS, [])}
    verdicts: dict[str, dict] = {}
    for cell in ran:
        for claim in cell.claims:
            line = verdicts.setdefault(claim["claim"], {"text": claim["text"], "said": {}, "same": True})
            line["said"][cell.at] = claim["verdict"]
            line["same"] = len(set(line["said"].values())) == 1
    words, swept = ["mia", "sweep", name, *(["--preset", preset] if preset != PUBLISHED else [])], {}
    for place, axis in enumerate(cells[0].given):
        values = list(dict.fromkeys(str(cell.at[place]) for cell in cells))
        is_list = known[axis].type.startswith(("list", "tuple"))
        between = "|" if is_list or any("," in value for value in values) else ","
        # A single word that holds a comma is told from a list of words by a bar at its end.
        words += ["-p", axis, between.join(values) + ("|" if between == "|" and len(values) == 1 and not is_list else "")]
        swept[axis] = known[axis].meaning, (" | " if between == "|" else ", ").join(values)
    return standalone.page(
        Path(__file__).with_name("page.html"), {"caption": _html, "duration": duration},
        name=name, preset=preset, cells=cells, ran=ran, swept=swept, command=shlex.join(words), captions=_captions(ran),
        verdicts=verdicts, exhibits=exhibits, still=still, claims=CLAIMS,
        changed=[(claim, line) for claim, line in verdicts.items() if not line["same"]],
        same=sorted(((claim, line) for claim, line in verdicts.items() if line["same"]), key=lambda one: one[0] not in moving),
        texts=said(frame, cells),
        link={cell.at: os.path.relpath(cell.page, folder) for cell in ran})
