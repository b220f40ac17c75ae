"""The index of exhibits: every table and figure of the papers, where it stands in the book, at what level, its key number
beside the paper's, and what became of the claims on it.

Which exhibits there are is in `data/papers/exhibits.yaml`, and of a table also which of its cells is shown; where they stand
is read from the captions of what was run, which begin with "**Table 2 of the paper**"; how far a run is from the paper from
the chapter's own table of differences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import pandas as pd
import yaml

from mia_lib.errors import MiaError
from mia_lib.evidence import claims, tables
from mia_lib.publish import marks

NAMED = re.compile(r"\b(Table|Figure)s? (\d+(?:(?:, | and | to )\d+)*)")
LEAD = re.compile(r"\*\*([^*]+?) of the paper")
DIFFERS = "### Where this run differs from the paper"
PAPERS_ROW = "paper: "  # how a row of ours begins that holds the paper's numbers


@dataclass(frozen=True)
class Difference:
    """A row of a chapter's table of differences: what it is about, the paper, this run, and what would close the gap."""

    about: str
    paper: str
    here: str
    gap: str


@dataclass(frozen=True)
class Shown:
    """What a run at a preset shows, as `outputs.displayed_outputs` has it: name -> a table or figure with its caption; and how
    it differs from the paper."""

    preset: str
    tables: Mapping[str, Mapping]
    figures: Mapping[str, Mapping]
    differences: Sequence[Difference] = field(default=())

    def places(self) -> dict[str, list[str]]:
        """Exhibit of the paper -> the names under which this run shows it."""
        found: dict[str, list[str]] = {}
        for name, one in {**self.figures, **self.tables}.items():
            lead = LEAD.match(one.get("caption", ""))
            for exhibit in named(lead[1]) if lead else ():
                found.setdefault(exhibit, []).append(name)
        return found

    def differs(self, exhibit: str) -> list[Difference]:
        """The row that is about an exhibit, of several the one about fewest; else all that are about none by name."""
        about = {one: named(one.about) for one in self.differences}
        own = [one for one, names in about.items() if exhibit in names]
        return [min(own, key=lambda one: len(about[one]))] if own else [one for one, names in about.items() if not names]


def differences(text: str) -> list[Difference]:
    """The rows of the table under `DIFFERS` in a chapter's text."""
    part = text.partition(DIFFERS)[2].partition("\n### ")[0]
    lines = [line.strip() for line in part.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines[2:]]
    return [Difference(*cells) for cells in rows if len(cells) == 4]


def named(text: str) -> list[str]:
    """The tables and figures that a text names: "Tables 2 to 4, Figure 5" has four."""
    found = []
    for kind, numbers in NAMED.findall(text):
        last = None
        for word, number in re.findall(r"(, | and | to |)(\d+)", numbers):
            found += [f"{kind} {n}" for n in range(last + 1 if word == " to " else int(number), int(number) + 1)]
            last = int(number)
    return found


@cache
def _listed() -> dict[str, dict]:
    return yaml.safe_load((tables.PAPERS / "exhibits.yaml").read_text(encoding="utf-8"))


def papers() -> list[str]:
    """The papers whose exhibits are listed; a chapter about none has no section in the index."""
    return list(_listed())


def exhibits(paper: str) -> dict[str, str]:
    """Every exhibit of a paper and what it shows, in the paper's order, tables first."""
    if paper not in papers():
        raise MiaError(f"paper = {paper!r} has no exhibits in data/papers/exhibits.yaml. There are: {', '.join(papers())}.")
    return {name: one["shows"] if isinstance(one, dict) else one for name, one in _listed()[paper].items()}


def index(runs: Mapping[str, Shown], verdicts: Iterable[Mapping], folder: str) -> str:
    """Markdown of the index, a section and a table a paper.

    Args:
        runs: chapter -> its run.
        verdicts: what the chapters' claims came to, as `claims.show` keeps them.
        folder: of the thumbnails, from the page.
    """
    of_claims: dict[tuple[str, str], list[Mapping]] = {}
    for one in verdicts:
        for exhibit in named(one["exhibit"]):
            of_claims.setdefault((one["paper"], exhibit), []).append(one)
    sections = []
    for chapter, of_chapter in runs.items():
        if chapter not in papers():
            continue
        rows = [_row(chapter, exhibit, what, of_chapter, of_claims.get((chapter, exhibit), ()), folder)
                for exhibit, what in exhibits(chapter).items()]
        title = claims.title(chapter)
        sections.append(f"## {title}\n\nChapter: {{doc}}`/notebooks/{chapter}`.\n\n"
                        f":::{{table}} Exhibits of *{title}*\n:name: tab-exhibits-{chapter}\n:class: mia-exhibits\n\n"
                        f"{tables.markdown_table(pd.DataFrame(rows))}\n:::\n")
    return "\n".join(sections)


def pictures(runs: Mapping[str, Shown]) -> list[str]:
    """Names of the figures of which the index shows a thumbnail: the first of each exhibit."""
    found = [name for chapter, own in runs.items() if chapter in papers() for exhibit in exhibits(chapter)
             for name in _pictures(own, exhibit)[:1]]
    return list(dict.fromkeys(found))


def _pictures(own: Shown, exhibit: str) -> list[str]:
    return [name for name in own.places().get(exhibit, []) if name in own.figures]


def _row(chapter: str, exhibit: str, what: str, run: Shown, verdicts: Sequence[Mapping], folder: str) -> dict[str, str]:
    own = run.places().get(exhibit, [])
    picture = "".join(f"![{exhibit} of the paper, as drawn here]({folder}/{name}.png)\n"
                      for name in _pictures(run, exhibit)[:1])
    return {
        "exhibit": f'<span id="{marks.of_exhibit(chapter, exhibit)}"></span>**{exhibit}**\n{what}',
        "here": picture + ("\n".join(f"{{numref}}`{name}`" for name in own) or tables.DASH),
        "level": _level(chapter, run, exhibit) if own else _why_not(run, exhibit, verdicts),
        "key number": _key(chapter, exhibit, run, verdicts),
        "claims": "\n".join(map(_claim, verdicts)) or tables.DASH,
    }


def _level(chapter: str, run: Shown, exhibit: str) -> str:
    """Whether a run shows an exhibit at the paper's size, else what it has in place of what."""
    differs = run.differs(exhibit)
    if differs and all(one.gap == "nothing" for one in differs):
        return "at the paper's size"
    if not differs:
        return "shown"
    about = [one for one in differs if one.gap != "nothing"]
    place = f"../notebooks/{chapter}.html#{DIFFERS.strip('# ').lower().replace(' ', '-')}"
    if named(about[0].about) and about[0].here:
        text = f'here {about[0].here}; the paper {about[0].paper} (<a href="{place}">all that differs</a>)'
    else:
        text = f'<a href="{place}">what differs</a>' + ("" if named(about[0].about) else
                                                        f": {', '.join(one.about for one in about)}")
    return f"at a fraction\n{marks.small(text)}"


def _why_not(run: Shown, exhibit: str, verdicts: Iterable[Mapping]) -> str:
    reasons = list(dict.fromkeys(one["reason"] for one in verdicts if one["verdict"] == claims.NOT_RUN))
    why = "; ".join(reasons) or "; ".join(f"to close the gap: {one.gap}" for one in run.differs(exhibit)[:1])
    return "not run" + (f"\n{marks.small(why)}" if why else "")


def _key(chapter: str, exhibit: str, own: Shown, verdicts: Sequence[Mapping]) -> str:
    """One number of ours beside the paper's: the cell that `exhibits.yaml` names, else the first that stands beside one of the
    paper's; of what prints no numbers beside one another that of the first claim that was judged."""
    listed = _listed()[chapter][exhibit]
    wanted = listed.get("key", "") if isinstance(listed, dict) else ""
    for name in own.places().get(exhibit, []):
        if name in own.tables and (found := key_number(own.tables[name], wanted)):
            where, ours, theirs, whose = found
            return f"**{ours}**\nthe paper: {theirs}{whose and f' ({whose})'}\n{marks.small(where)}"
    judged = [one for one in verdicts if one["brief"]]
    for one in sorted(judged, key=lambda one: one.get("kind") == "ours"):
        ours = "\n".join(f"**{part}**" for part in one["brief"].split("; "))
        return f"{ours}\nthe paper: {one['evidence']}\n{marks.small(one['claim'])}"
    return tables.DASH


def key_number(table: Mapping, wanted: str = "") -> tuple[str, str, str, str] | None:
    """A number of ours and the paper's beside it.

    Args:
        table: {"columns", "rows"}, as `tables.plain_table` has it.
        wanted: "row | column | the paper's": a row by what stands in one of its cells (or two, "damping & 0.2"; "*" is any), a
            column by how it begins or ends ("*" is any), and the paper's column, or its row, "paper: Purchase-100". Without
            the last part the cell keeps both, "0.63 [0.61, 0.65] / 0.65". "" is any such cell.

    Returns:
        where ours stands, ours, the paper's, and what that is about; None where there is no such pair.
    """
    row, ours, theirs = (*(part.strip() for part in (wanted or "*|*").split("|")), "", "")[:3]
    columns = [str(column) for column in table["columns"]]
    rows = [[_text(cell) for cell in cells] for cells in table["rows"]]
    papers_own, first = [cells for cells in rows if any(cell.startswith(PAPERS_ROW) for cell in cells)], ""
    for cells, whole in zip(rows, table["rows"], strict=True):
        first = cells[0] or first  # what does not change from the row before is left empty
        if cells in papers_own or row != "*" and not all(part in cells for part in row.split(" & ")):
            continue
        label = f"{columns[0]} = {first}" if isinstance(whole[0], int) else first
        named_rows = [label, *(part for part in row.split(" & ") if part not in ("*", first))]
        for place, column in enumerate(columns):
            cell = cells[place]
            if ours != "*" and not (column.startswith(ours) or column.endswith(ours)) or column.startswith("paper"):
                continue
            worded = isinstance(whole[place], str)
            lines = worded and "\n" in whole[place]  # several numbers, of which the first is ours
            where = ", ".join([*named_rows, column.split(", ")[0] if lines else column])
            if not theirs:
                if isinstance(whole[place], Mapping) and "paper" in whole[place]:
                    mine, _, papers = cell.partition(" / ")
                    return where, mine, papers or f"{whole[place]['paper']:.1f}", ""
            elif (not worded or lines or cell == tables.BELOW_RESOLUTION) and cell not in row.split(" & "):
                if printed := _printed(columns, cells, papers_own, place, row, theirs):
                    return where, cell, *printed
    return None


def _printed(columns: Sequence[str], cells: Sequence[str], papers_own: Iterable[Sequence[str]], place: int, row: str,
             theirs: str) -> tuple[str, str] | None:
    """The paper's number and what it is about, from its column in the same row or from its row in the same column."""
    if theirs.startswith(PAPERS_ROW):
        for own in papers_own:
            whose = next((cell for cell in own if cell.startswith(theirs)), "")
            if whose and (row in own or row == "*") and own[place] != tables.DASH:
                return own[place], whose.removeprefix(PAPERS_ROW)
        return None
    column = next((number for number, name in enumerate(columns) if name == theirs), None)
    if column is None or cells[column] == tables.DASH:
        return None
    return cells[column], re.sub(r"^paper, |^paper's |.*, paper$", "", theirs)


def _text(cell) -> str:
    """The first line of a cell, without marks."""
    if isinstance(cell, Mapping):
        cell = cell.get("text") or f"{cell['value']:.3f}"
    return str(cell).split("\n")[0].replace("**", "")


def _claim(one: Mapping) -> str:
    """A claim by its row on the scorecard, which has its numbers, with its verdict."""
    place = f"scorecard.html#{marks.of_claim(one['paper'], one['claim'])}"
    return f'<a href="{place}">{one["claim"]}</a> {marks.pill(one["verdict"])}'
