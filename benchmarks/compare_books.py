"""What differs between two built books: tables, verdicts, captions and sentences, but not pixels, seconds or dates.

    python benchmarks/compare_books.py OLD NEW

OLD and NEW are folders of executed notebooks: `_build/executed`, or the `runs` of `mia run`; of a chapter that is there more
than once the newest counts. Exit status 1 where anything differs, 2 where there is nothing to compare.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import nbformat

from mia_book.evidence import claims, results

TIMED = re.compile(
    r"\b(seconds?|minutes?|hours?|time|dates?)\b|\((s|min|h)\)", re.IGNORECASE
)  # names of columns
SPENT = re.compile(
    r"\d[\d.,]*\s*(ms|s|min|h|seconds?|minutes?|hours?)\b|\d{4}-\d\d-\d\d"
)  # in sentences


def chapters(folder: Path) -> dict[str, Path]:
    """Name of a chapter -> its newest executed notebook in a folder, or in a folder of that."""
    found = sorted(
        [*folder.glob("*.ipynb"), *folder.glob("*/*.ipynb")], key=lambda path: path.stat().st_mtime
    )
    return {re.sub(r"-[0-9a-f]{8,}$", "", path.stem): path for path in found}


def facts(path: Path) -> dict[str, str]:
    """All that an executed notebook says by its outputs: where it says it -> what."""
    said, texts = {}, 0
    for output in (one for cell in nbformat.read(path, 4).cells for one in cell.get("outputs", [])):
        data, exhibit = output.get("data", {}), output.get("metadata", {}).get("mia", {})
        if results.MIME in data:
            table = data[results.MIME]
            name, columns = table["name"], table["columns"]
            said |= {f"{name}, caption": table["caption"], f"{name}, columns": " | ".join(columns)}
            said |= {
                f"{name}, row {r}, column {c} ({columns[c - 1]})": str(cell)
                for r, row in enumerate(table["rows"], 1)
                for c, cell in enumerate(row, 1)
                if not TIMED.search(columns[c - 1])
            }
        elif claims.MIME in data:
            said |= {
                f"{one['paper']} {one['claim']}, {key}": str(value)
                for one in data[claims.MIME]
                for key, value in one.items()
            }
        elif exhibit:
            said |= {f"{exhibit['name']}, {key}": exhibit[key] for key in ("caption", "alt")}
        elif "text/markdown" in data and not data["text/markdown"].startswith("```python"):
            texts += 1
            said |= {
                f"text {texts}, line {n}": SPENT.sub("(time)", line)
                for n, line in enumerate(data["text/markdown"].splitlines(), 1)
            }
    return said


def differences(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """A line for each place where two notebooks do not say the same."""
    places = [place for place in {**old, **new} if old.get(place) != new.get(place)]
    return [
        f"{place}: {old.get(place, '(nothing)')} -> {new.get(place, '(nothing)')}"
        for place in places
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, metavar="OLD")
    parser.add_argument("new", type=Path, metavar="NEW")
    given = parser.parse_args(arguments)
    old, new = chapters(given.old), chapters(given.new)
    for folder, found in ((given.old, old), (given.new, new)):
        if not found:
            parser.error(
                f"no executed notebook in {folder}: give _build/executed, or the folder `runs`."
            )
    differ = False
    for name in sorted({*old, *new}):
        if name in old and name in new:
            pair = facts(old[name]), facts(new[name])
            found, how = differences(*pair), f"the same in all {len(pair[1])} places"
        else:
            found, how = [f"only in {given.old if name in old else given.new}"], ""
        differ |= bool(found)
        print(f"{name}: {f'{len(found)} differ' if found else how}", *found, sep="\n  ")
    return int(differ)


if __name__ == "__main__":
    raise SystemExit(main())
