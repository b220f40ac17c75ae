"""Attacks on a published bank with few and with many references: tidy results, of which nothing is kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mia_lib import membership, metrics, signals
from mia_lib.attacks import bayes, registry
from mia_lib.errors import MiaError
from mia_lib.papers.banks import rehearsed
from mia_lib.published import Bank

METRICS = {"auc": "AUC", "tpr_at_fpr=0.01": "TPR at 1 % FPR", "tpr_at_fpr=0.001": "TPR at 0.1 % FPR"}


def describe(banks: Sequence[Bank]) -> pd.DataFrame:
    """A row a bank: what was trained on what, how well, where and for how long."""
    rows = []
    for bank in banks:
        trained = bank.members.any(0)
        rows.append({
            "bank": bank.name, "models": len(bank), "data": bank.parameters["dataset"],
            "training records": f"{bank.members[0].sum():,} of {trained.sum():,}",
            "right on members": bank.correct[bank.members].mean(), "right on others": bank.correct[:, ~trained].mean(),
            "megabytes": sum(one["bytes"] for one in bank.manifests) / 1e6,
            "minutes": sum(one["seconds"] for one in bank.manifests) / 60,
            "on": " and ".join(sorted({one["device"] for one in bank.manifests}))})
    return pd.DataFrame(rows)


def references(target: int, count: int, models: int) -> np.ndarray:
    """So many references against a target: pairs of `membership.references_of`, from the one after the target's own on, so
    that no two pairs of targets have the same few. A single one is the first of the first pair."""
    pairs = membership.references_of(target, models).reshape(-1, 2)
    return np.roll(pairs, -(target // 2), 0).ravel()[:count]


def attack(bank: Bank, target: int, others: np.ndarray) -> dict[str, np.ndarray]:
    """Scores [N] of the training records by every attack that these references allow; of records that the one reference was
    trained on, where there is one alone, they are not a number."""
    rows, trained = [target, *others], bank.members.any(0)
    values = {registry.LOG_ODDS: bank.margin[rows], "loss": signals.loss_of(bank.margin[rows])}
    members, records = bank.members[rows], np.flatnonzero(trained)
    inside, whole = members[1:, trained], _signals(values, members, records, trained)
    judged = ~inside.all(0)  # whom a reference left out
    left_out = _signals(values, members, records[judged], trained) if not judged.all() else whole
    a = rehearsed(whole, "RMIA, offline", "a", (0.0, 0.3, 0.6, 0.9), population=None)
    scores = {name: np.full(len(judged), np.nan) for name in ("LiRA, offline", "RMIA, offline")}
    scores["LiRA, offline"][judged] = registry.score("LiRA, offline", left_out)
    scores["RMIA, offline"][judged] = registry.score("RMIA, offline", left_out, a=a, population=None)
    if inside.any(0).all():
        scores |= {"MAST": registry.score("MAST (best split)", whole), "LiRA": registry.score("LiRA", whole),
                   "RMIA": registry.score("RMIA", whole, population=None)}
    return scores


def _signals(values: dict[str, np.ndarray], members: np.ndarray, records: np.ndarray, trained: np.ndarray
             ) -> registry.ArraySignals:
    """Of the first model and its references, for some records and, as public ones, for the test records."""
    return registry.ArraySignals({name: value[:, records] for name, value in values.items()}, members[1:, records],
                                 {name: value[:, ~trained] for name, value in values.items()})


def by_references(bank: Bank, targets: int, counts: Sequence[int], draws: int = 20
                  ) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """What attacks find with few and with many references.

    Returns:
        a row for each number of references, attack and metric: value, low and high over targets and records; and the scores
        [T, N] of each attack with the largest number.

    Raises:
        MiaError: no number of references from 2 that the bank has, which all attacks can use.
    """
    counts = [count for count in counts if count <= len(bank) - 2]
    if not counts or counts[-1] < 2:
        raise MiaError(f"references: at least one number from 2 to {len(bank) - 2} is needed, the models of {bank.name} but "
                       "the target and its partner.")
    trained = bank.members.any(0)
    members, alone = bank.members[:targets, trained], {"MALT": bayes.malt(signals.loss_of(bank.margin[:targets, trained]))}
    malt, frames = _evaluate(alone, members, draws), []
    for count in counts:
        each = [attack(bank, target, references(target, count, len(bank))) for target in range(targets)]
        scores = {name: np.stack([one[name] for one in each]) for name in each[0]}
        frames += [malt.assign(references=count), _evaluate(scores, members, draws).assign(references=count)]
    return pd.concat(frames, ignore_index=True), alone | scores


def _evaluate(scores: dict[str, np.ndarray], members: np.ndarray, draws: int) -> pd.DataFrame:
    """Metrics with intervals, each target on the records that have a score."""
    rows = []
    for name, score in scores.items():
        judged = np.isfinite(score)
        size = judged.sum(1).min()  # of an odd number of records one half has one more
        places = np.stack([np.flatnonzero(row)[:size] for row in judged])
        inside, known = (np.take_along_axis(array, places, 1) for array in (members, score))
        for metric, found in metrics.intervals(METRICS, known, inside, draws=draws, records=places).items():
            rows.append({"attack": name, "metric": metric, "value": found.value, "low": found.low, "high": found.high,
                         "resolved": float(metric.partition("_at_fpr=")[2] or 1) >= 1 / (~inside).sum(1).min()})
    return pd.DataFrame(rows)


def lead(scores: dict[str, np.ndarray], members: np.ndarray, draws: int = 20) -> tuple[str, str, metrics.Interval]:
    """The two attacks that find most members at 1 % false positives, and how far the first is ahead, on the same records."""
    rates = {name: np.mean(metrics.tpr_at_fpr(score, members, 0.01)) for name, score in scores.items()}
    first, second = sorted(rates, key=rates.get, reverse=True)[:2]
    return first, second, metrics.compare("tpr_at_fpr", scores[first], scores[second], members, 0.01, draws=draws)
