"""Attacks on a published bank with few and with many references: tidy results, of which nothing is kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mia_lib import metrics
from mia_lib.attacks import registry
from mia_lib.data.sets import plain_name
from mia_lib.errors import MiaError
from mia_lib.game import Game, View
from mia_lib.published import Bank

METRICS = {
    "auc": "AUC",
    "tpr_at_fpr=0.01": "TPR at 1 % FPR",
    "tpr_at_fpr=0.001": "TPR at 0.1 % FPR",
}


def describe(banks: Sequence[Bank]) -> pd.DataFrame:
    """Table with a row for each bank: data, records, accuracy, size, minutes and device."""
    rows = []
    for bank in banks:
        rows.append(
            {
                "bank": bank.name,
                "models": len(bank),
                "data": plain_name(bank.parameters["dataset"]),
                "training records": f"{bank.members[0].sum():,} of {len(bank.trained):,}",
                "right on members": bank.correct[bank.members].mean(),
                "right on others": bank.correct[:, bank.untrained].mean(),
                "megabytes": sum(one["bytes"] for one in bank.manifests) / 1e6,
                "minutes": sum(one["seconds"] for one in bank.manifests) / 60,
                "on": " and ".join(sorted({one["device"] for one in bank.manifests})),
            }
        )
    return pd.DataFrame(rows)


def attack(view: View) -> dict[str, np.ndarray]:
    """Scores [N] by every attack that these references allow; NaN for records that every reference
    was trained on, as with a single reference."""
    members = view.reference_members
    judged = ~members.all(0)  # whom a reference left out
    left_out = view.on(np.flatnonzero(judged))
    chosen = view.rehearse("RMIA, offline", population=None)
    scores = {name: np.full(len(judged), np.nan) for name in ("LiRA, offline", "RMIA, offline")}
    scores["LiRA, offline"][judged] = registry.score("LiRA, offline", left_out)
    scores["RMIA, offline"][judged] = registry.score(
        "RMIA, offline", left_out, population=None, **chosen
    )
    if members.any(0).all():
        scores |= {
            "MAST": registry.score("MAST (best split)", view),
            "LiRA": registry.score("LiRA", view),
            "RMIA": registry.score("RMIA", view, population=None),
        }
    return scores


def by_references(
    bank: Bank, targets: int, counts: Sequence[int], draws: int = 20
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Metrics of attacks with few and with many references.

    Returns:
        a row for each number of references, attack and metric: value, low and high over targets and records; and the scores
        [T, N] of each attack with the largest number.

    Raises:
        MiaError: no number of references from 2 that the bank has, which all attacks can use.
    """
    counts = [count for count in counts if count <= len(bank) - 2]
    if not counts or counts[-1] < 2:
        raise MiaError(
            f"references: at least one number from 2 to {len(bank) - 2} is needed, the models of {bank.name} but "
            "the target and its partner."
        )
    game = Game.on(bank, bank.trained, bank.untrained, range(targets), counts[-1])
    members, alone = game.target_members, game.scores(["MALT"])
    malt, frames = _evaluate(alone, members, draws), []
    for count in counts:
        each = [attack(game.view(target, count)) for target in game.targets]
        scores = {name: np.stack([one[name] for one in each]) for name in each[0]}
        both = pd.concat([malt, _evaluate(scores, members, draws)])
        frames.append(both.assign(references=count))
    table = metrics.summary(pd.concat(frames), ["references", "attack", "metric"])
    return table.assign(resolved=table["value"].notna()), alone | scores


def _evaluate(scores: dict[str, np.ndarray], members: np.ndarray, draws: int) -> pd.DataFrame:
    """Tidy frame of metrics; each target is judged on the records that have a score."""
    frames = []
    for name, score in scores.items():
        judged = np.isfinite(score)
        size = judged.sum(1).min()  # of an odd number of records one half has one more
        places = np.stack([np.flatnonzero(row)[:size] for row in judged])
        of_judged, known = (np.take_along_axis(array, places, 1) for array in (members, score))
        frames.append(
            metrics.by_target({name: known}, of_judged, [*METRICS], draws=draws, records=places)
        )
    return pd.concat(frames)


def lead(
    scores: dict[str, np.ndarray], members: np.ndarray, draws: int = 20
) -> tuple[str, str, metrics.Interval]:
    """Names of the two attacks that find most members at 1 % FPR, and the lead of the first in TPR,
    paired on the same records."""
    rates = {
        name: np.mean(metrics.tpr_at_fpr(score, members, 0.01)) for name, score in scores.items()
    }
    first, second = sorted(rates, key=rates.get, reverse=True)[:2]
    return (
        first,
        second,
        metrics.compare("tpr_at_fpr", scores[first], scores[second], members, 0.01, draws=draws),
    )
