"""Exposure of records: how often attacks call single records of a bank members, when they are and
when they are not.

Each record is a member of half of a bank's models. So we know for each how often an attack finds
it, under the models that were trained on it, and how often it is accused, under the models that
were not. An attack that always calls the same records tells nothing about them, so the *exposure*
of records is the first share less the second.

Models that say who is exposed are no references of those under which it is tried: in a bank of noise a record ranks high where
a reference's answer happens to fit its membership, and that same answer would then be judged.

Shapes: T target models, N records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mia_lib.attacks import registry
from mia_lib.game import Game
from mia_lib.metrics import by_repetition, by_target
from mia_lib.published import Bank

ATTACKS = ("MALT", "LiRA", "RMIA")
WITH_REFERENCES = ("LiRA", "RMIA", "calibrated loss")  # of an onion
LEFT = {"tpr_at_fpr=0.01": "TPR at 1 %", "tpr_at_fpr=0.05": "TPR at 5 %", "auc": "AUC"}
FPR = 0.01  # of each target, at which records are called members
TENTHS = 10


def attack_models(
    bank: Bank, records: np.ndarray, attacks: Sequence[str] = ATTACKS, models: slice = slice(None)
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Scores [T, N] of each attack on every one of the chosen models, with all others of them as
    references except its partner; and their members, bool [T, N].

    Args:
        bank: with `margin` and `members`. records: numbers of those that are judged, int [N]. attacks: of the registry.
        models: of the bank, whole pairs.
    """
    some = Bank(
        bank.name,
        bank.parameters,
        {name: bank.arrays[name][models] for name in ("margin", "members")},
        [],
    )
    public = bank.untrained[: registry.POPULATION]
    game = Game.on(some, records, public, range(len(some)), len(some) - 2, "first")
    return game.scores(attacks), game.members


def call_members(scores: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Records that the threshold of each target at a false positive rate of `FPR` calls members,
    bool [T, N]."""
    return np.stack(
        [
            row > np.quantile(row[~is_member], 1 - FPR, method="higher")
            for row, is_member in zip(scores, members, strict=True)
        ]
    )


def detection_rate(calls: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Share of the models trained on a record under which it is called a member, [N]."""
    return (calls & members).sum(0) / np.maximum(members.sum(0), 1)


def rank_records(calls: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Numbers of the records by their detection rate, the highest first; int [N]."""
    return np.argsort(-detection_rate(calls, members), kind="stable")


def by_ranking(banks: Mapping[str, Bank], records: int, draws: int) -> pd.DataFrame:
    """Study "exposed": how often records that an attack finds most often under one half of a bank's
    models are found under the other half, by that attack and by another; and under networks of
    another kind that were trained on other halves.

    Args:
        banks: name -> bank on the same records; of the first the second half of the models is judged. records: the first so
            many. draws: of the intervals. A half has its own models alone for references.

    Returns:
        a row for each attack, `ranking` (the attack by which records were ranked under the first half of the models, or the
        bank under all of whose networks LiRA ranked them), `tenth` from 1 on, judged target and metric: "found", the share of
        its members that are called, and "accused", that of its non-members. Of the first tenth also the AUC of the calls, by
        which exposure is 2 AUC - 1.
    """
    (title, bank), *others = banks.items()
    rows, half = np.arange(records), len(bank) // 4 * 2
    scores, members = attack_models(bank, rows, models=slice(half))
    rankings = {
        name: rank_records(call_members(score, members), members) for name, score in scores.items()
    }
    for name, other in others:
        scores, members = attack_models(other, rows, ["LiRA"])
        rankings[name] = rank_records(call_members(scores["LiRA"], members), members)
    scores, members = attack_models(bank, rows, models=slice(half, 2 * half))
    frames = []
    for name, score in scores.items():
        calls = call_members(score, members)
        for by, ranking in rankings.items():
            where = {"study": "exposed", "data": title, "ranking": by}
            tenths = np.array_split(ranking, TENTHS)
            for tenth, part in enumerate(tenths, 1):
                of_part, part_members = calls[:, part], members[:, part]
                rates = {
                    metric: [row[side].mean() for row, side in zip(of_part, sides, strict=True)]
                    for metric, sides in (("found", part_members), ("accused", ~part_members))
                }
                frames.append(by_repetition({name: rates}, tenth=tenth, **where))
            frames += [
                by_target(
                    {name: calls[:, part].astype(float)},
                    members[:, part],
                    ("auc",),
                    draws=draws,
                    part=label,
                    **where,
                )
                for label, part in (("first tenth", tenths[0]), ("all", rows))
            ]
    return pd.concat(frames, ignore_index=True)


def without_records(before: Bank, after: Mapping[str, Bank], draws: int) -> pd.DataFrame:
    """Study "onion": attacks on records that remain when others leave all training sets.

    Args:
        before: the bank. after: what was taken -> `measure.onion`. draws: of the intervals.

    Returns:
        what an attack with references finds among the records that are left, under models of the bank that did not say who is
        taken: columns `by` (the attack), `measure` (of `LEFT`), `taken` and `trained` ("with them", "without them").
    """
    frames = []
    for taken, bank in after.items():
        left, first = bank.trained, bank.parameters["ranked"]
        models = {
            "with them": (before, slice(first, first + len(bank))),
            "without them": (bank, slice(None)),
        }
        for trained, (one, judged) in models.items():
            scores, members = attack_models(one, left, WITH_REFERENCES, judged)
            frame = by_target(
                scores,
                members,
                tuple(LEFT),
                draws=draws,
                study="onion",
                taken=taken,
                trained=trained,
            )
            frame = frame.assign(by=frame["attack"], measure=frame["metric"].map(LEFT))
            frames.append(frame.assign(attack="with references", metric="found"))
    return pd.concat(frames, ignore_index=True)
