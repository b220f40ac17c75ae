"""The page on which readers play the membership game: the deal of an executed notebook, as `book/_static/play.js` reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mia_lib.publish import templates

ABSENT = ("```{admonition} Nothing was dealt\n:class: warning\n\nThe records come from the chapter that compares all "
          "attacks, and this copy of the book was built without it. `mia build` runs every chapter and deals them.\n```")


def game(deals: Sequence[Mapping]) -> str:
    """The first deal, as data and as tables in MyST Markdown, or how to get one.

    Args:
        deals: from `mia_lib.evidence.game_cards.deal`.
    """
    if not deals:
        return ABSENT
    records, attacks = deals[0]["records"], deals[0]["attacks"]
    places = [[record["places"][attack["name"]] for record in records] for attack in attacks]
    ranks = [[1 + sum(place > of_attack[number] for place in of_attack) for of_attack in places]
             for number in range(len(records))]
    return f"```{{raw}} html\n{templates.render('play.html', deal=deals[0], ranks=ranks)}\n```"
