"""The scorecard: every claim of every chapter, what the paper printed, and what its run found.

A row is a claim. The page, its three counters and what `mia scorecard` prints are made from the verdicts that the outputs of
executed notebooks carry, and of nothing typed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mia_lib.errors import MiaError
from mia_lib.evidence import claims
from mia_lib.publish import exhibits, marks, outputs
from mia_lib.publish.parameters import find_root

STAGED = "book/scorecard.json"  # in the staging folder, beside the page that offers it
KINDS = {"paper": "The papers' claims", "ours": "This book's additions", "proof": "Proofs and identities"}
OF_KIND = {"paper": "the paper's claim", "ours": "this book's addition", "proof": "a proof or an identity"}
OF_DATA = {claims.OWN_DATA: "the paper's own data", claims.STAND_IN: "stand-in data", "": "no data set"}


@dataclass(frozen=True)
class Found:
    """What one run found of a claim.

    Attributes:
        preset: of the run.
        verdict: one of `claims.VERDICTS`.
        brief, estimate: our numbers as text, the one that decides and those of all cases.
        data: `claims.OWN_DATA`, `claims.STAND_IN` or "". reason: why it was not run.
        numbers: the same as data, as `claims.Verdict.numbers` has them.
    """

    preset: str
    verdict: str
    brief: str
    estimate: str
    data: str
    reason: str
    numbers: Sequence[Mapping]


@dataclass(frozen=True)
class Row:
    """A claim, and what became of it in a run."""

    paper: str
    claim: str
    kind: str  # "paper", "ours" or "proof": what only an error could refute is counted as a proof, whoever claims it
    chapter: str  # name of its notebook
    text: str
    exhibit: str
    printed: str
    rule: str
    found: Found


def rows(records: Iterable[Mapping]) -> list[Row]:
    """The rows of the scorecard, papers as they come and claims in the order of their paper.

    Args:
        records: what `claims.show` put into executed notebooks, each with "notebook" and "preset". What a claims file has no
            more is left out.
    """
    of_claims = {(record["paper"], record["claim"]): record for record in records}
    return [Row(paper, claim, _kind(known, found), found["notebook"], known["text"], known["exhibit"], known["evidence"],
                known["rule"], _found(found))
            for paper in dict.fromkeys(paper for paper, _ in of_claims)
            for claim, known in claims.claims(paper).items() if (found := of_claims.get((paper, claim)))]


def _kind(claim: Mapping, found: Mapping) -> str:
    proof = "rounding" in claim or claims.CHECKED in claim.get("says", {}) or found["verdict"] == claims.CHECKED
    return "proof" if proof else claim["kind"]


def _found(one: Mapping) -> Found:
    return Found(one.get("preset", ""), one["verdict"], one["brief"], one["estimate"], one["data"], one["reason"],
                 one["numbers"])


def records(given: Sequence[Row]) -> list[dict]:
    """The scorecard as plain data, a record for each claim and run, for `mia scorecard --json`."""
    return [{"paper": row.paper, "title": claims.title(row.paper), "chapter": row.chapter, "claim": row.claim,
             "kind": row.kind, "text": row.text, "exhibit": row.exhibit, "printed": row.printed, "rule": row.rule,
             **asdict(row.found)} for row in given]


def of_records(given: Iterable[Mapping]) -> list[Row]:
    """The rows of what `records` made."""
    return [Row(**{name: one[name] for name in Row.__dataclass_fields__ if name != "found"},
                found=Found(**{name: one[name] for name in Found.__dataclass_fields__})) for one in given]


def totals(given: Iterable[Row]) -> dict[str, Counter]:
    """Three counters, by kind: how many claims came to which verdict in their runs."""
    made = {kind: Counter() for kind in KINDS}
    for row in given:
        made[row.kind][row.found.verdict] += 1
    return made


# --------------------------------------------------------------------------------------------------------- the page


def page(given: Sequence[Row]) -> str:
    """Markdown of the scorecard: three counters, then a section and a table a paper."""
    if not given:
        return ""
    sections = []
    for paper in dict.fromkeys(row.paper for row in given):
        of_paper = [row for row in given if row.paper == paper]
        title, chapter = claims.title(paper), of_paper[0].chapter
        lines = ["| claim | the paper | this run |", "| :--- | :--- | :--- |",
                 *(f"| {' | '.join(map(_cell, _cells(row)))} |" for row in of_paper)]
        sections.append(f"## {title}\n\nChapter: {{doc}}`/notebooks/{chapter}`.\n\n"
                        f":::{{table}} Claims of *{title}*\n:name: tab-scorecard-{paper}\n:class: mia-scorecard\n\n"
                        + "\n".join(lines) + "\n:::\n")
    return f"{_counters(given)}\n" + "\n".join(sections)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text).replace("\n", "<br>")


def _cells(row: Row) -> tuple[str, str, str]:
    named = exhibits.named(row.exhibit)
    exhibit = row.exhibit
    if named:
        exhibit = f'<a href="exhibits.html#{marks.of_exhibit(row.paper, named[0])}">{row.exhibit}</a>'
    data = f", {OF_DATA[row.found.data]}" if row.found.data else ""
    place = f"../notebooks/{row.chapter}.html#{marks.in_chapter(row.claim)}"
    about = OF_KIND[row.kind] + (f"; {exhibit}" if row.exhibit != "none" else "") + data
    claim = (f'<span id="{marks.of_claim(row.paper, row.claim)}" class="mia-claim" data-kind="{row.kind}"></span>'
             f'<a href="{place}"><strong>{row.claim}</strong></a> {row.text}\n{marks.small(about)}')
    return claim, row.printed, _run(row.found)


def _run(found: Found) -> str:
    """What a run found, in HTML and Markdown, with what the filters of `book.js` read."""
    inside = "\n".join(filter(None, [
        marks.pill(found.verdict), found.brief.replace("; ", "\n"),
        marks.small(found.reason) if found.reason else ""]))
    whose = {claims.OWN_DATA: "own", claims.STAND_IN: "stand-in"}.get(found.data, "none")
    return f'<span class="mia-run" data-verdict="{found.verdict}" data-data="{whose}">{inside}</span>'


def _counters(given: Sequence[Row]) -> str:
    counted, cards = totals(given), []
    for kind, title in KINDS.items():
        pills = " ".join(marks.pill(verdict, f"{counted[kind][verdict]} {verdict}")
                         for verdict in claims.VERDICTS if counted[kind][verdict])
        lines = [f'<span class="mia-kind">{title}</span>', f'<span class="mia-count">{counted[kind].total()}</span>', pills]
        if kind == "paper":
            lines += [marks.small(f"{where}: {_counts(given, data)}.") for data, where in (
                (claims.OWN_DATA, "On the paper's own data"), (claims.STAND_IN, "On other data"), ("", "About no data set"))
                if any(row.kind == kind and row.found.data == data for row in given)]
        cards.append("<div>\n" + "\n".join(f"<p>{line}</p>" for line in filter(None, lines)) + "\n</div>\n")
    return f'<div class="mia-counters">\n{"".join(cards)}</div>\n'


def _counts(given: Iterable[Row], data: str) -> str:
    own = [row.found for row in given if row.kind == "paper" and row.found.data == data]
    return claims.counts([{"verdict": one.verdict} for one in own])


# ------------------------------------------------------------------------------------------------------ on a terminal


def read(folder: Path | None = None, root: Path | None = None) -> list[Row]:
    """The scorecard of the last built book, or of what notebooks in a folder show.

    Args:
        folder: with executed notebooks, in it or below, such as `runs`; the latest of each chapter counts. A notebook will do.
            None for the book.
        root: folder of the book.

    Raises:
        MiaError: no book was built yet; nothing in the folder has verdicts.
    """
    if folder is None:
        path = find_root(root) / "_build" / "book" / STAGED
        if not path.is_file():
            raise MiaError("There is no scorecard yet, since no book was built. Run `mia build` or `make book` first, or name "
                           "a folder with executed notebooks: `mia scorecard runs`.")
        return of_records(json.loads(path.read_text(encoding="utf-8")))
    folder = Path(folder)
    latest: dict[str, tuple[str, dict]] = {}
    for path in sorted(folder.rglob("*.ipynb")) if folder.is_dir() else [folder] if folder.is_file() else []:
        try:
            notebook = json.loads(path.read_text(encoding="utf-8"))
            record = notebook["metadata"]["mia"]
        except (ValueError, KeyError, TypeError):  # a notebook that `mia` did not run
            continue
        if record["date"] >= latest.get(record["notebook"], ("",))[0]:
            latest[record["notebook"]] = record["date"], notebook
    found = rows(record for _, notebook in latest.values() for record in of_notebook(notebook))
    if not found:
        raise MiaError(f"folder = {folder} holds no executed notebook with verdicts. `mia run NAME` leaves one in runs/.")
    return found


def of_notebook(notebook: dict) -> list[dict]:
    """The verdicts that an executed notebook's outputs carry, each with the notebook's name and preset."""
    record = notebook["metadata"].get("mia", {})
    whose = {"notebook": record.get("notebook", ""), "preset": record.get("preset", "")}
    return [{**whose, **claim} for cell in notebook["cells"] for output in cell.get("outputs", [])
            for claim in output.get("data", {}).get(outputs.CLAIMS, [])]


def show(given: Sequence[Row]) -> None:
    """Print the scorecard as a table, with its three counters."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, counted = Console(), totals(given)
    said = {kind: ", ".join(f"{count[verdict]} {verdict}" for verdict in claims.VERDICTS if count[verdict]) or "none"
            for kind, count in counted.items()}
    caption = "\n".join(f"{KINDS[kind]}: {text}" for kind, text in said.items())
    table = Table(title="Scorecard", caption=caption, show_lines=True)
    table.add_column("claim", no_wrap=True)
    for column, ratio in (("what is claimed", 4), ("the paper", 3), ("this run", 4)):
        table.add_column(column, ratio=ratio, overflow="fold")
    for row in given:
        table.add_row(*map(Text, (f"{row.paper} {row.claim}", row.text, row.printed, _line(row.found))))
    console.print(table)


def _line(found: Found) -> str:
    return found.verdict + (f": {found.brief}" if found.brief else "")
