"""The ranking of a competition as one page that needs no network and no script."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from mia_lib import standalone, store
from mia_lib.course.game import FPR, Place

TITLE = "Who was in the training set?"


def write(path: Path, places: list[Place], members: np.ndarray, final: bool) -> Path:
    """Write the page, in the place of an earlier one.

    Args:
        places: from `game.judge`. members: bool [T, N], of the targets that were judged. final: whether the ranking is.
    """
    text = standalone.template(Path(__file__).with_name("leaderboard.html")).render(
        title=TITLE, places=places, final=final, verdict=verdict(places),
        targets=members.shape[0], records=members.shape[1], chance=FPR, pairs=len(places) * (len(places) - 1) // 2,
        most=max(0.02, *(min(1.0, 1.05 * place.tpr.high) for place in places)), date=time.strftime("%d %B %Y").lstrip("0"))
    store.write(path, text.encode())
    return path


def verdict(places: list[Place]) -> str:
    """Who won, as far as these targets can say."""
    first = [place.team for place in places if place.best == 1]
    if len(first) == 1:
        return f"{first[0]} is ahead of everyone, by differences that are more than chance."
    return (f"Who is first cannot be told: {', '.join(first[:-1])} and {first[-1]} may each be the best. The order in which "
            "they stand is that of these targets.")
