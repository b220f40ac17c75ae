"""Files that `mia sync` writes: the pair of each notebook; from the book as it was last built with
the published parameters the part of README.md that says what was found, and how long each cell
takes; the part of book/measured.md that says what was measured; and the JSON Schema of claims
files, by which editors complete and check them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mia_book import folders, publishing
from mia_book.evidence import claims, results
from mia_book.pages import prose, runner
from mia_book.pages.parameters import PUBLISHED, find_root, notebooks, read
from mia_book.publishing import queue
from mia_lib import documents, published, store
from mia_lib.errors import MiaError, attempt
from mia_lib.published.reading import DEFINITIONS

FINDINGS = "book/found.json"  # in the staging folder
OF_BOOK = "<!-- written by `mia sync` from the book as it was last built -->"
OF_PIECES = "<!-- written by `mia sync` from data/published -->"
END = "<!-- up to here -->"


def sync(check: bool = False, root: Path | None = None) -> list[Path]:
    """Write what is out of step, or with `check` nothing; returns what was out of step, with `check` also pairs without a
    source, which are left alone otherwise.

    Raises:
        MiaError: a page without the marks between which a part stands.
    """
    root = find_root(root)
    stale: list[Path] = []
    failed: list[Exception] = []
    for part in (pairs, definitions, readme, pieces, pace, claims_schema):
        with attempt(failed):
            stale += part(check, root)
    if failed:
        raise failed[0]
    return stale


def pairs(check: bool = False, root: Path | None = None) -> list[Path]:
    """Make each `notebooks/NAME.ipynb` from `NAME.py`: no outputs, stable ids, no versions; see `sync`."""
    import nbformat

    folder = find_root(root) / "notebooks"
    names, stale = notebooks(root), []
    for name in names:
        notebook = read(folder / f"{name}.py")
        notebook.nbformat_minor = 5
        text = nbformat.writes(notebook, version=nbformat.NO_CONVERT) + "\n"
        stale += _whole(folder / f"{name}.ipynb", text, check)
    return stale + [
        pair for pair in sorted(folder.glob("*.ipynb")) if check and pair.stem not in names
    ]


def definitions(check: bool, root: Path) -> list[Path]:
    """Write the editions and defaults of all measurements, by which published pieces are read. See `sync`."""
    known = {name: one.definition() for name, one in sorted(publishing.catalogue().items())}
    text = json.dumps(known, indent=1, sort_keys=True) + "\n"
    return _whole(published.folder() / DEFINITIONS, text, check)


def readme(check: bool, root: Path) -> list[Path]:
    """Write what was found into README.md; without a book of the published run it stays as it is.
    See `sync`."""
    import pandas as pd

    path, staged = root / "README.md", root / "_build" / "book" / FINDINGS
    book = documents.load(staged) if path.is_file() and staged.is_file() else {"preset": ""}
    if book["preset"] != PUBLISHED:
        return []
    return _between(path, OF_BOOK, results.markdown_table(pd.DataFrame(book["rows"])), check)


def pace(check: bool, root: Path) -> list[Path]:
    """Write the seconds of each notebook's cells, where the built book's are others by half or
    more. See `sync`."""
    known = runner.paces(root)
    for path in sorted(
        (root / "_build" / "executed").glob("*.ipynb"), key=lambda one: one.stat().st_mtime
    ):
        record = runner.run_record(path) or {}
        if (
            record.get("preset") == PUBLISHED
            and not record["changed"]
            and "seconds_of_cells" in record
        ):
            now, before = record["seconds_of_cells"], known.get(record["notebook"], [])
            if len(now) != len(before) or not sum(before) / 1.5 < sum(now) < 1.5 * sum(before):
                known[record["notebook"]] = now
    if check or known == runner.paces(root):
        return []
    path = root / runner.PACE
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known))
    store.write(path, f"{{\n{lines}\n}}\n".encode())
    return [path]


def pieces(check: bool, root: Path) -> list[Path]:
    """Write what was measured into book/measured.md. See `sync`."""
    path = root / "book" / "measured.md"
    return _between(path, OF_PIECES, queue.page(), check) if path.is_file() else []


def claims_schema(check: bool, root: Path) -> list[Path]:
    """Write the JSON Schema of claims files beside them. See `sync`."""
    if not folders.find("claims.yaml", root):
        return []
    text = json.dumps(claims.ClaimsFile.model_json_schema(), indent=1) + "\n"
    return _whole(folders.of(root) / "claims.schema.json", text, check)


def findings(runs: Mapping[str, prose.Run], verdicts: list[Mapping]) -> bytes:
    """Findings of a book, as JSON: its preset, and a row a chapter with its answer and its counts
    of verdicts, of the runs by chapter and the verdicts on all claims."""
    rows = []
    for name, run in runs.items():
        of_chapter = [verdict for verdict in verdicts if verdict["notebook"] == name]
        if run.answer and of_chapter:
            groups = {
                kind: [
                    verdict
                    for verdict in of_chapter
                    if verdict["kind"] == kind and not claims.is_proof(verdict)
                ]
                for kind in ("paper", "ours")
            }
            rows.append(
                {
                    "chapter": f"[{claims.title(name)}](notebooks/{name}.py)",
                    "what was found": " ".join(
                        prose.prose(run.answer, f"README.md, {name}", run).split()
                    ),
                    **{
                        f"claims of {whose}": claims.counts(groups[kind])
                        if groups[kind]
                        else results.DASH
                        for kind, whose in (("paper", "the paper"), ("ours", "this book"))
                    },
                }
            )
    presets = {run.preset if run.unchanged else "" for run in runs.values()}
    return (
        json.dumps({"preset": presets.pop() if len(presets) == 1 else "", "rows": rows}, indent=1)
        + "\n"
    ).encode()


def _whole(path: Path, text: str, check: bool) -> list[Path]:
    """Write a file anew; its path where it was out of step."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return []
    if not check:
        store.write(path, text.encode())
    return [path]


def _between(path: Path, begin: str, text: str, check: bool) -> list[Path]:
    """Write the part of a page after the mark `begin` and before `END` anew; the path where it was out of step."""
    before, mark, rest = path.read_text(encoding="utf-8").partition(begin)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise MiaError(
            f"{path} lacks the marks {begin} and {END}, between which `mia sync` writes."
        )
    return _whole(path, f"{before}{begin}\n\n{text}\n\n{END}{after}", check)
