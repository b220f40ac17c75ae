"""The ranking of a competition as one page that needs no network and no script."""

from __future__ import annotations

import time
from pathlib import Path

from mia_lib import standalone, store
from mia_lib.course.game import FPR, Answers, Place

TITLE = "Who was in the training set?"


def page(places: list[Place], kept: Answers, final: bool) -> str:
    """The page.

    Args:
        places: from `game.judge`. kept: the answers of the competition; the page tells none of them. final: which half it is.
    """
    half = ~kept.public if final else kept.public
    return standalone.page(
        Path(__file__).with_name("leaderboard.html"), title=TITLE, places=places, final=final, tries=kept.tries,
        records=int(half.sum()), chance=FPR, pairs=len(places) * (len(places) - 1) // 2,
        most=max(0.1, *(min(1.0, 1.05 * place.tpr.high) for place in places)), verdict=verdict(places),
        silent=[team for team in kept.teams if team not in {place.team for place in places}],
        date=time.strftime("%d %B %Y").lstrip("0"))


def verdict(places: list[Place]) -> str:
    """Who won, as far as these records can say."""
    first = [place.team for place in places if place.best == 1]
    if len(places) == 1:
        return f"{first[0]} is alone, so there is nobody to be better than."
    if len(first) == 1:
        return f"{first[0]} is ahead of everyone, by differences that are more than chance."
    return (f"Who is first cannot be told: {', '.join(first[:-1])} and {first[-1]} may each be the best. The order in which "
            "they stand is that of these records.")


def write(path: Path, places: list[Place], kept: Answers, final: bool) -> Path:
    """Write the page, in the place of an earlier one."""
    store.write(path, page(places, kept, final).encode())
    return path
