"""What generated pages share: a verdict in its box, the ids by which they point at one another's claims, and
parts of a page that are written between two marks."""

from __future__ import annotations

import re
from pathlib import Path

from mia_lib.errors import MiaError

END = "<!-- up to here -->"
IN_CHAPTER = re.compile(r"^\| \*\*([A-Z]\d+[a-z]?)\*\* ", re.MULTILINE)


def between(path: Path, begin: str, text: str, check: bool = False) -> list[Path]:
    """Write the part of a page after the mark `begin` and before `END` anew, where it is out of step.

    Args:
        check: write nothing.

    Returns:
        the path where it was out of step, else nothing.

    Raises:
        MiaError: a page without the marks.
    """
    before, mark, rest = (whole := path.read_text(encoding="utf-8")).partition(begin)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise MiaError(f"{path} lacks the marks {begin} and {END}, between which `mia sync` writes.")
    now = f"{before}{begin}\n\n{text}\n\n{END}{after}"
    if now != whole and not check:
        path.write_text(now, encoding="utf-8")
    return [path] if now != whole else []


def pill(verdict: str, text: str = "") -> str:
    """A verdict as the book shows it, in HTML; with other words in its box where they are given."""
    return f'<span class="verdict verdict-{verdict.replace(" ", "-")}">{text or verdict}</span>'


def small(text: str) -> str:
    """Words beside the main thing, in HTML."""
    return f'<span class="mia-small">{text}</span>'


def of_claim(paper: str, claim: str) -> str:
    """The id of a claim's row on the scorecard."""
    return f"{paper}-{claim}"


def in_chapter(claim: str) -> str:
    """The id of a claim's row in its chapter."""
    return f"claim-{claim}"


def with_anchors(table: str) -> str:
    """A chapter's table of claims, in Markdown, whose rows can be pointed at."""
    return IN_CHAPTER.sub(lambda row: f'| <span id="{in_chapter(row[1])}"></span>**{row[1]}** ', table)
