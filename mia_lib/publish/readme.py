"""The part of README.md that says what was found: a table of one recorded run a chapter, written from them.

`mia sync` writes it and a test holds it to the records, so that README says nothing that no run found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mia_lib.evidence import claims, tables
from mia_lib.publish import marks, recorded
from mia_lib.publish.parameters import find_root, notebooks

BEGIN = "<!-- written by `mia sync` from data/recorded -->"
NEAREST = {  # chapter -> preset of the recorded run that is nearest the paper's data
    "iha": "cpu",  # MNIST-Odd and FashionMNIST, 30,000 members and 128 models as in the paper; the others have one data set
    "quantile": "members",  # CIFAR-10 with the paper's 25,000 members; the others have 5,000 or 10,000
}


def found(root: Path | None = None) -> str:
    """Markdown of that part."""
    root, rows = find_root(root), []
    for name in notebooks(root):
        run = recorded.run(name, NEAREST[name], root) if name in NEAREST else None
        if run is None:
            continue
        rows.append({"paper": claims.title(name), "run": f"`{name}`, preset `{run.preset}`, {run.manifest['date'][:10]}",
                     **_counted(run.shown["claims"])})
    if not rows:
        return "No run is recorded in this clone."
    import pandas as pd

    return tables.markdown_table(pd.DataFrame(rows))


def _counted(records: Iterable[Mapping]) -> dict[str, str]:
    """Verdicts on a paper's claims by whose data they were judged on, those on this book's own, and what was checked."""
    records = list(records)
    tried = [one for one in records if one["verdict"] != claims.CHECKED]
    theirs = [one for one in tried if claims.kind_of(one) == "paper"]
    groups = {"its claims on its own data": [one for one in theirs if one.get("data") == claims.OWN_DATA],
              "its other claims": [one for one in theirs if one.get("data") != claims.OWN_DATA],
              "claims of this book": [one for one in tried if claims.kind_of(one) == "ours"]}
    return {title: claims.counts(group) if group else "–" for title, group in groups.items()}


def sync(check: bool = False, root: Path | None = None) -> list[Path]:
    """Write the part anew where it is out of step.

    Args:
        check: write nothing.

    Returns:
        README.md where it was out of step, else nothing.

    Raises:
        MiaError: README.md without the marks between which the part stands.
    """
    path = find_root(root) / "README.md"
    return marks.between(path, BEGIN, found(root), check) if path.is_file() else []
