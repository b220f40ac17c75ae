"""Cells of tables that two runs of a chapter print otherwise, where one of them is of other code.

A chapter that is rewritten must find what it found. Run the old code and the new one at the same parameters and compare:

    python benchmarks/compare_exhibits.py OLD.ipynb NEW.ipynb -c "MALT, peak=MALT" -r "MAST (best split)=MAST"

Tables are matched by name, rows by their first cells, columns by title; -c and -r say what is called otherwise now. Of a cell
that holds the paper's number, too, "54.9 / 54.4", ours is compared. Prints cells that differ, and what only one of them has.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

TABLE = "application/vnd.mia.table+json"


def text_of(cell) -> str:
    """A cell as it is printed, without the paper's number and without marks."""
    if isinstance(cell, dict) and "text" not in cell:
        ends = "" if cell.get("low") is None else f" [{cell['low']:.3f}, {cell['high']:.3f}]"
        return f"{cell['value']:.3f}{ends}"
    text = (
        cell["text"]
        if isinstance(cell, dict)
        else f"{cell:.3f}"
        if isinstance(cell, float)
        else str(cell)
    )
    return text.split(" / ")[0].replace("*", "").strip()


def cells(
    path: Path, columns: dict[str, str], rows: dict[str, str]
) -> dict[tuple[str, str, str], str]:
    """(table, row, column) -> text of every table in an executed notebook, under the new names."""
    found = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            if table := output.get("data", {}).get(TABLE):
                titles = [columns.get(title, title) for title in table["columns"]]
                for row in table["rows"]:
                    label = text_of(row[0])
                    found |= {
                        (table["name"], rows.get(label, label), title): text_of(value)
                        for title, value in list(zip(titles, row, strict=True))[1:]
                    }
    return found


def main(old: Path, new: Path, columns: dict[str, str], rows: dict[str, str]) -> int:
    """Print what differs.

    Returns:
        how many cells do.
    """
    before, now = cells(old, columns, rows), cells(new, {}, {})
    shared = [key for key in before if key in now]
    differing = [key for key in shared if before[key] != now[key]]
    print(f"{len(shared) - len(differing)} of {len(shared)} cells that both print are the same.")
    for key in differing:
        print(f"{' | '.join(key)}: {before[key]} -> {now[key]}")
    for name, one, other in (("the old run", before, now), ("the new run", now, before)):
        gone = sorted(
            {(table, column) for table, row, column in one}
            - {(table, column) for table, row, column in other}
        )
        print(f"Only {name} has:", "; ".join(" | ".join(place) for place in gone) or "nothing")
    return len(differing)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("-c", "--column", action="append", default=[], metavar="OLD=NEW")
    parser.add_argument("-r", "--row", action="append", default=[], metavar="OLD=NEW")
    given = parser.parse_args()
    main(
        given.old,
        given.new,
        *(dict(pair.split("=", 1) for pair in pairs) for pairs in (given.column, given.row)),
    )
