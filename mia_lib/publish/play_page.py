"""The page on which readers play the membership game: the deal of an executed notebook, as `book/_static/play.js` reads it.

Without scripts the same place has a table of the records and, folded, the solutions; the script takes both out of the page
before it begins, so that no answer stands there while somebody plays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape

from mia_lib.publish.outputs import GAME

HOLDER = "mia-game"  # class of what holds a game
ABSENT = ("```{admonition} Nothing was dealt\n:class: warning\n\nThe records come from the chapter that compares all "
          "attacks, and this copy of the book was built without it. `mia build` runs every chapter and deals them.\n```")


def game(notebooks: Iterable[Mapping]) -> str:
    """The game in MyST Markdown: that of the first notebook that dealt one, or how to get one.

    Args:
        notebooks: executed, as JSON.
    """
    for notebook in notebooks:
        for cell in notebook["cells"]:
            for output in cell.get("outputs", []):
                if GAME in output.get("data", {}):
                    return holder(output["data"][GAME])
    return ABSENT


def holder(dealt: Mapping) -> str:
    """A deal, as data and as tables.

    Args:
        dealt: from `mia_lib.evidence.game_cards.deal`.
    """
    data = json.dumps(dealt, separators=(",", ":")).replace("<", "\\u003c")
    records, names = dealt["records"], [attack["name"] for attack in dealt["attacks"]]
    seen = [[str(number), *_picture(number, one), escape(one["class"]), f"{one['loss']:.2g}",
             ", ".join(f"{loss:.2g}" for loss in one["references"])] for number, one in enumerate(records, 1)]
    heads = ["record", *["picture"] * (records[0]["picture"] is not None), "class", "loss", "losses of references without it"]
    ranks = {name: sorted((one["places"][name] for one in records), reverse=True) for name in names}
    solved = [[str(number), "member" if one["member"] else "non-member",
               *(str(ranks[name].index(one["places"][name]) + 1) for name in names)] for number, one in enumerate(records, 1)]
    given = _table("What the attacker sees, losses in nats", heads, seen)
    answers = _table("Who was a member, and the place that each attack gives a record (1: most likely a member)",
                     ["record", "it was a", *names], solved)
    return (f'```{{raw}} html\n<div class="{HOLDER}"><script type="application/json">{data}</script>{given}'
            f'<details class="mia-fold"><summary>Open: the solutions</summary>{answers}</details></div>\n```')


def _picture(number: int, one: Mapping) -> list[str]:
    if one["picture"] is None:
        return []
    return [f'<img src="{one["picture"]}" alt="Record {number}, of class {escape(one["class"])}" width="56">']


def _table(caption: str, heads: list[str], rows: list[list[str]]) -> str:
    """Of cells that are HTML."""
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (f'<div class="mia-scroll"><table class="table"><caption>{escape(caption)}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")
