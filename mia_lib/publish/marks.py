"""What generated pages share: a verdict in its box, and the ids by which they point at one another's claims and exhibits."""

from __future__ import annotations

import re

IN_CHAPTER = re.compile(r"^\| \*\*([A-Z]\d+[a-z]?)\*\* ", re.MULTILINE)


def pill(verdict: str, text: str = "") -> str:
    """A verdict as the book shows it, in HTML; with other words in its box where they are given."""
    return f'<span class="verdict verdict-{verdict.replace(" ", "-")}">{text or verdict}</span>'


def small(text: str) -> str:
    """Words beside the main thing, in HTML."""
    return f'<span class="mia-small">{text}</span>'


def of_claim(paper: str, claim: str) -> str:
    """The id of a claim's row on the scorecard."""
    return f"{paper}-{claim}"


def of_exhibit(paper: str, exhibit: str) -> str:
    """The id of the row of "Table 2" in the index of exhibits."""
    return f"{paper}-{exhibit.lower().replace(' ', '-')}"


def in_chapter(claim: str) -> str:
    """The id of a claim's row in its chapter."""
    return f"claim-{claim}"


def with_anchors(table: str) -> str:
    """A chapter's table of claims, in Markdown, whose rows can be pointed at."""
    return IN_CHAPTER.sub(lambda row: f'| <span id="{in_chapter(row[1])}"></span>**{row[1]}** ', table)
