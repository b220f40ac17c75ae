"""The index of exhibits: every table and figure of the papers, where it stands in the book, at what level, and what was found.

Which exhibits there are is in `data/papers/exhibits.yaml`; where they stand is read from the captions of what was run, which
begin with "**Table 2 of the paper**".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import yaml

from mia_lib.errors import MiaError
from mia_lib.evidence import claims, tables

NAMED = re.compile(r"\b(Table|Figure)s? (\d+(?:(?:, | and | to )\d+)*)")
LEAD = re.compile(r"\*\*([^*]+?) of the paper")


@dataclass(frozen=True)
class Shown:
    """What a run at a preset shows, as `prose.named` has it: name -> a table or figure with its caption."""

    preset: str
    tables: Mapping[str, Mapping]
    figures: Mapping[str, Mapping]

    def places(self) -> dict[str, list[str]]:
        """Exhibit of the paper -> the names under which this run shows it."""
        found: dict[str, list[str]] = {}
        for name, one in {**self.figures, **self.tables}.items():
            lead = LEAD.match(one.get("caption", ""))
            for exhibit in named(lead[1]) if lead else ():
                found.setdefault(exhibit, []).append(name)
        return found


def named(text: str) -> list[str]:
    """The tables and figures that a text names: "Tables 2 to 4, Figure 5" has four."""
    found = []
    for kind, numbers in NAMED.findall(text):
        last = None
        for word, number in re.findall(r"(, | and | to |)(\d+)", numbers):
            found += [f"{kind} {n}" for n in range(last + 1 if word == " to " else int(number), int(number) + 1)]
            last = int(number)
    return found


def exhibits(paper: str) -> dict[str, str]:
    """Every exhibit of a paper and what it shows, in the paper's order, tables first."""
    known = yaml.safe_load((tables.PAPERS / "exhibits.yaml").read_text(encoding="utf-8"))
    if paper not in known:
        raise MiaError(f"paper = {paper!r} has no exhibits in data/papers/exhibits.yaml. There are: {', '.join(known)}.")
    return known[paper]


def index(runs: Mapping[str, Sequence[Shown]], verdicts: Iterable[Mapping], folder: str) -> str:
    """Markdown of the index, a section and a table a paper.

    Args:
        runs: chapter -> its own run first, and recorded ones.
        verdicts: what the chapters' claims came to, as `claims.show` keeps them; those of recorded runs have a "run".
        folder: of the figures, from the page.
    """
    of_claims: dict[tuple[str, str], list[Mapping]] = {}
    for one in verdicts:
        if "run" not in one:
            for exhibit in named(one["exhibit"]):
                of_claims.setdefault((one["paper"], exhibit), []).append(one)
    sections = []
    for chapter, of_chapter in runs.items():
        rows = [_row(exhibit, what, of_chapter, of_claims.get((chapter, exhibit), ()), folder)
                for exhibit, what in exhibits(chapter).items()]
        title = claims.title(chapter)
        sections.append(f"## {title}\n\nChapter: {{doc}}`/notebooks/{chapter}`.\n\n"
                        f":::{{table}} Exhibits of *{title}*\n:name: tab-exhibits-{chapter}\n:class: mia-exhibits\n\n"
                        f"{tables.markdown_table(pd.DataFrame(rows))}\n:::\n")
    return "\n".join(sections)


def _row(exhibit: str, what: str, runs: Sequence[Shown], verdicts: Iterable[Mapping], folder: str) -> dict[str, str]:
    own = runs[0].places().get(exhibit, [])
    pictures = [name for name in own if name in runs[0].figures]
    thumbnail = f"![{exhibit} of the paper, as drawn here]({folder}/{pictures[0]}.png)" if pictures else ""
    levels = [f"live at `{runs[0].preset}`"] if own else []
    levels += [f"recorded at `{one.preset}`" for one in runs[1:] if exhibit in one.places()]
    return {
        "exhibit": f"**{exhibit}**\n{what}",
        "here": "\n".join([*([thumbnail] if thumbnail else []), *(f"{{numref}}`{name}`" for name in own)]) or tables.NOTHING,
        "level": "\n".join(levels) or "not run",
        "found": "\n".join(map(_found, verdicts)) or tables.NOTHING,
        "paper": "\n".join(dict.fromkeys(f"{one['claim']}: {one['evidence']}" for one in verdicts)) or tables.NOTHING,
    }


def _found(one: Mapping) -> str:
    """Verdict on a claim and its numbers, in a line; the scorecard says which parts were not run."""
    partly = " (in part)" if one["said"] != one["verdict"] else ""
    return f"{one['claim']} **{one['verdict']}**{partly}" + (f": {one['brief'].splitlines()[0]}" if one["brief"] else "")
