"""The page on which readers play the membership game: the deal of an executed notebook, as `book/_static/play.js` reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mia_lib.publish import templates
from mia_lib.publish.outputs import GAME

ABSENT = ("```{admonition} Nothing was dealt\n:class: warning\n\nThe records come from the chapter that compares all "
          "attacks, and this copy of the book was built without it. `mia build` runs every chapter and deals them.\n```")


def game(notebooks: Iterable[Mapping]) -> str:
    """The game in MyST Markdown: that of the first notebook that dealt one, or how to get one.

    Args:
        notebooks: executed, as JSON.
    """
    deals = (output["data"][GAME] for notebook in notebooks for cell in notebook["cells"]
             for output in cell.get("outputs", []) if GAME in output.get("data", {}))
    deal = next(deals, None)
    return holder(deal) if deal else ABSENT


def holder(deal: Mapping) -> str:
    """A deal, as data and as tables.

    Args:
        deal: from `mia_lib.evidence.play.deal`.
    """
    places = {attack["name"]: [record["places"][attack["name"]] for record in deal["records"]] for attack in deal["attacks"]}
    ranks = [[1 + sum(place > own[number] for place in own) for own in places.values()]
             for number in range(len(deal["records"]))]
    return f"```{{raw}} html\n{templates.render('play.html', deal=deal, ranks=ranks)}\n```"
