"""A game for the reader: real records, what an attacker sees of them, and what attacks made of the same records.

`deal` draws the records, `show` displays them in a chapter. The page "Play the game" finds the deal in whatever notebook
showed one (`mia_book.pages.pages`) and hands it to `book/_static/play.js`.

Shapes: N records, R references.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mia_book.evidence import results
from mia_lib import drawing, metrics
from mia_lib.checks import check_labels, check_mask
from mia_lib.errors import MiaError
from mia_lib.metrics import ranking

MIME = "application/vnd.mia.game+json"
LOWEST_LOSS = 1e-6  # nats; lower losses are drawn there
BINS = 30
FEWEST = 2  # references that were not trained on a record


def deal(
    images: np.ndarray | None,
    labels: np.ndarray,
    classes: Sequence[str],
    loss: np.ndarray,
    reference_loss: np.ndarray,
    reference_members: np.ndarray,
    members: np.ndarray,
    scores: Mapping[str, np.ndarray],
    count: int = 20,
    seed: int = 0,
) -> dict:
    """Draw records of a target at random, half of them members, with what an attacker sees of each.

    Args:
        images: uint8 [N, H, W, C], of one or three colours; None for records that are no pictures.
        labels: [N], indices into `classes`. loss: [N], the target's, in nats. members: bool [N], of the target.
        reference_loss: [R, N], in nats. reference_members: bool [R, N], who was trained on what; without the target's
            complement, which would give it away.
        scores: attack -> [N], higher = more likely a member.
        count: records drawn, an even number, with this seed.

    Returns:
        What the game needs, as plain data: records, in the order of play, each with class, loss, the share of the others whose
        loss is higher (`above`), losses of the references that were not trained on it, member, the places of its scores among
        those drawn, and picture (a PNG as data address, or None); attacks with their AUC on all records; a histogram of the
        losses of the others; and N.

    Raises:
        MiaError: losses that are not finite, an odd count or one that members or non-members do not suffice for, or too few
            records that two references were not trained on.
    """
    loss, reference_loss = np.asarray(loss, float), np.asarray(reference_loss, float)
    members = check_mask("members", members)
    without = ~check_mask("reference_members", reference_members)
    labels = check_labels("labels", labels, len(classes))
    total = len(labels)
    if not np.isfinite(loss).all() or not np.isfinite(reference_loss).all():
        raise MiaError(
            "loss or reference_loss holds values that are not finite, which have no place on an axis."
        )
    if not scores:
        raise MiaError(
            "scores is empty: give at least one attack, {name: scores}, to be compared with the reader."
        )
    playable = without.sum(0) >= FEWEST
    sides = [np.flatnonzero(playable & members), np.flatnonzero(playable & ~members)]
    if count < 2 or count % 2 or count >= total or min(map(len, sides)) < count // 2:
        raise MiaError(
            f"count = {count}: an even number is needed, half of it at most {len(sides[0])} members and "
            f"{len(sides[1])} non-members that at least {FEWEST} references were not trained on."
        )
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(
        np.concatenate([rng.choice(side, count // 2, replace=False) for side in sides])
    )
    whole, places = [], {}
    for place, (name, of_attack) in enumerate(scores.items()):
        checked, checked_members, _ = ranking.check_scores(of_attack, members)
        whole.append(
            {
                "name": name,
                "auc": _short(metrics.auc(checked[0], checked_members[0])),
                "color": drawing.style_of(name, place)["color"],
            }
        )
        places[name] = np.unique(checked[0][drawn], return_inverse=True)[1]
    rest = np.delete(loss, drawn)
    powers = np.log10(
        np.maximum(
            np.concatenate([rest, loss[drawn], reference_loss[:, drawn][without[:, drawn]]]),
            LOWEST_LOSS,
        )
    )
    counts, edges = np.histogram(
        powers[: len(rest)], BINS, (powers.min(), max(powers.max(), powers.min() + 0.1))
    )
    records = [
        {
            "class": str(classes[labels[i]]),
            "loss": _short(loss[i]),
            "above": _short(np.mean(rest > loss[i])),
            "member": bool(members[i]),
            "references": [_short(value) for value in np.sort(reference_loss[without[:, i], i])],
            "places": {name: int(of_attack[k]) for name, of_attack in places.items()},
            "picture": None if images is None else _png(images[i]),
        }
        for k, i in enumerate(drawn)
    ]
    return {
        "records": records,
        "attacks": whole,
        "of": total,
        "least": LOWEST_LOSS,
        "others": {"edges": [_short(edge) for edge in edges], "counts": counts.tolist()},
    }


def table(game: Mapping) -> pd.DataFrame:
    """Table of the records as an attacker sees them, without the solution."""
    return pd.DataFrame(
        [
            {
                "record": number,
                "class": record["class"],
                "loss": results.cell(record["loss"], ".2g"),
                "references without it": len(record["references"]),
                "their lowest loss": results.cell(record["references"][0], ".2g"),
                "median": results.cell(np.median(record["references"]), ".2g"),
                "highest": results.cell(record["references"][-1], ".2g"),
            }
            for number, record in enumerate(game["records"], 1)
        ]
    )


def show(game: Mapping, name: str) -> None:
    """Display the records as an attacker sees them, in a table, and hand the game to the page on
    which it is played; `name` is as for `results.show_table`."""
    results.show_table(table(game), name, further={MIME: dict(game)})


def _short(value) -> float:
    return float(f"{float(value):.4g}")


def _png(image: np.ndarray) -> str:
    from PIL import Image

    made = io.BytesIO()
    Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(
        made, "png", optimize=True
    )
    return "data:image/png;base64," + base64.b64encode(made.getvalue()).decode()
