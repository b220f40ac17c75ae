"""Attacks on a published bank with few and with many references: tidy results, of which nothing is kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mia_lib import membership, metrics, signals
from mia_lib.attacks import baselines, bayes
from mia_lib.published import Bank

METRICS = {"auc": "AUC", "tpr_at_fpr=0.01": "TPR at 1 % FPR", "tpr_at_fpr=0.001": "TPR at 0.1 % FPR"}


def describe(banks: Sequence[Bank]) -> pd.DataFrame:
    """A row a bank: what was trained on what, how well, where and for how long."""
    rows = []
    for bank in banks:
        trained = bank.members.any(0)  # on the training records of the set; the others are its test records
        rows.append({
            "bank": bank.name, "models": len(bank), "data": bank.parameters["dataset"],
            "training records": f"{bank.members[0].sum():,} of {trained.sum():,}",
            "right on members": bank.correct[bank.members].mean(), "right on test records": bank.correct[:, ~trained].mean(),
            "minutes": sum(one["seconds"] for one in bank.manifests) / 60,
            "on": " and ".join(sorted({one["device"] for one in bank.manifests}))})
    return pd.DataFrame(rows)


def references(target: int, count: int, models: int) -> np.ndarray:
    """So many references against a target: pairs of `membership.references_of`, from the one after the target's own on, so
    that no two targets have the same few. A single one is the first of the first pair."""
    pairs = membership.references_of(target, models).reshape(-1, 2)
    return np.roll(pairs, -(target // 2), 0).ravel()[:count]


def attack(bank: Bank, target: int, others: np.ndarray) -> dict[str, np.ndarray]:
    """Scores [N] of the training records by every attack that these references allow; of records that the one reference was
    trained on, where there is one alone, they are not a number."""
    trained = bank.members.any(0)
    margin, members = bank.margin[:, trained], bank.members[:, trained]
    loss, inside = signals.loss_of(margin[[target, *others]]), members[others]
    odds, population = margin[[target, *others]], np.exp(-signals.loss_of(bank.margin[[target, *others]][:, ~trained]))
    probability = np.exp(-loss)
    judged = ~inside.all(0)  # whom a reference left out

    def offline(function, *arrays, **settings):
        score = np.full(len(judged), np.nan)
        score[judged] = function(*(array[..., judged] for array in arrays), **settings)
        return score

    def rmia(own, theirs, theirs_inside, **settings):
        return baselines.rmia(own, theirs, theirs_inside, population[0], population[1:], **settings)

    scores = {"LiRA, offline": offline(baselines.lira_offline, odds[0], odds[1:], inside, fixed_variance=True),
              "RMIA, offline": offline(rmia, probability[0], probability[1:], inside, a=0.3)}
    if inside.any(0).all():
        scores |= {"MAST": bayes.mast(loss[0], loss[1:], inside),
                   "LiRA": baselines.lira_online(odds[0], odds[1:], inside, fixed_variance=True),
                   "RMIA": rmia(probability[0], probability[1:], inside)}
    return scores


def by_references(bank: Bank, targets: int, counts: Sequence[int], draws: int = 20) -> pd.DataFrame:
    """A row for each number of references, attack and metric: value, low and high over targets and records.

    MALT, which takes no reference, is repeated at each number.
    """
    trained, rows = bank.members.any(0), []
    members = bank.members[:targets, trained]
    alone = {"MALT": bayes.malt(signals.loss_of(bank.margin[:targets, trained]))}
    malt = metrics.evaluate(alone, members, draws=draws, metrics=tuple(METRICS))
    for count in counts:
        each = [attack(bank, target, references(target, count, len(bank))) for target in range(targets)]
        scores = {name: np.stack([one[name] for one in each]) for name in each[0]}
        rows += [malt, _evaluate(scores, members, draws)]
        rows[-2:] = [one.assign(references=count) for one in rows[-2:]]
    return pd.concat(rows, ignore_index=True)


def _evaluate(scores: dict[str, np.ndarray], members: np.ndarray, draws: int) -> pd.DataFrame:
    """`metrics.evaluate`, each target on the records that have a score."""
    judged = np.isfinite(next(iter(scores.values())))
    if judged.all():
        return metrics.evaluate(scores, members, draws=draws, metrics=tuple(METRICS))
    size = judged.sum(1).min()  # of an odd number of records one half has one more
    places = np.stack([np.flatnonzero(row)[:size] for row in judged])
    inside = np.take_along_axis(members, places, 1)
    return pd.DataFrame([
        {"attack": name, "metric": metric, "value": found.value, "low": found.low, "high": found.high,
         "resolution": 1 / (~inside).sum(1).min()}
        for name, score in scores.items() for metric in METRICS
        for found in [metrics.bootstrap(metric, np.take_along_axis(score, places, 1), inside, draws=draws, records=places)]])
