"""The part of README.md that says what was found: a row a chapter, with its answer and its verdicts, from the book as it was
last built with the published parameters.

`mia sync` writes it, and `mia sync --check` after a build holds it to what was found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mia_lib.evidence import claims, tables
from mia_lib.publish import marks, prose
from mia_lib.publish.parameters import PUBLISHED, find_root

BEGIN = "<!-- written by `mia sync` from the book as it was last built -->"
STAGED = "book/found.json"  # in the staging folder


def found(runs: Mapping[str, prose.Run], judged: list[Mapping]) -> bytes:
    """What a book found, as JSON: preset -> a row a chapter with its answer and its counts of verdicts.

    Args:
        runs: chapter -> its run. judged: records of all claims, as `claims.show` keeps them.
    """
    rows = []
    for name, run in runs.items():
        of_chapter = [one for one in judged if one["notebook"] == name]
        if run.answer and of_chapter:
            groups = {kind: [one for one in of_chapter if one["kind"] == kind and one["verdict"] != claims.CHECKED]
                      for kind in ("paper", "ours")}
            rows.append({"chapter": f"[{claims.title(name)}](notebooks/{name}.py)",
                         "what was found": " ".join(prose.prose(run.answer, f"README.md, {name}", run).split()),
                         **{f"claims of {whose}": claims.counts(groups[kind]) if groups[kind] else tables.DASH
                            for kind, whose in (("paper", "the paper"), ("ours", "this book"))}})
    presets = {run.preset if run.unchanged else "" for run in runs.values()}
    return (json.dumps({"preset": presets.pop() if len(presets) == 1 else "", "rows": rows}, indent=1) + "\n").encode()


def sync(check: bool = False, root: Path | None = None) -> list[Path]:
    """Write the part anew where it is out of step with the last book; without a book of the published run it stays as it is.

    Args:
        check: write nothing.

    Returns:
        README.md where it was out of step, else nothing.

    Raises:
        MiaError: README.md without the marks between which the part stands.
    """
    import pandas as pd

    root = find_root(root)
    path, staged = root / "README.md", root / "_build" / "book" / STAGED
    if not path.is_file() or not staged.is_file():
        return []
    book = json.loads(staged.read_text(encoding="utf-8"))
    if book["preset"] != PUBLISHED:
        return []
    return marks.between(path, BEGIN, tables.markdown_table(pd.DataFrame(book["rows"])), check)
