"""Results of the chapter on difficulty calibration (Watson et al. 2022, section 4): tidy frames, from what was measured.

Scores are higher for members. Attacks have the paper's names: "Orig" is a score as it is, "Cal." the same less what a
reference from random weights gives, "Cal.-F" less what a copy of the target gives that was trained further.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from mia_book.evidence.settings import Attack
from mia_lib import metrics
from mia_lib.attacks import baselines, calibration, registry
from mia_lib.errors import MiaError
from mia_lib.game import Game, View
from mia_lib.metrics import by_repetition, by_target
from mia_lib.published import Bank
from mia_lib.signals import loss_of

# score -> what was measured
SIGNALS = {"loss": "margin", "gradient norm": "gradient", "confidence": "top"}
MODELS = {"Cal.": "scratch", "Cal.-F": "forgetting"}  # what calibrates
RATIO, RECALL = 10, 0.05  # non-members to a member, and the recall, at which precision is judged
METRICS = ("auc", "tpr_at_fpr=0.01")
IN_SETTINGS = {
    "Cal.": Attack("calibrated loss"),
    "RMIA, offline": Attack("RMIA, offline", learned=True),
    "RMIA, offline, a = 0.3": Attack("RMIA, offline"),
    "MAST (midpoint)": Attack("MAST (best split)", options={"estimator": "middle"}),
    "LiRA": Attack("LiRA"),
}


def score(name: str, signal: np.ndarray) -> np.ndarray:
    """A score by one of Eqs. 1 to 3 from a measured signal, higher for members; float64.

    Args:
        name: of `SIGNALS`. signal: the log odds of the true class, the logarithm of the gradient's norm, or the log odds of
            the likeliest class.
    """
    return -np.exp(np.asarray(signal, np.float64)) if name == "gradient norm" else -loss_of(signal)


def calibrated(own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Scores [T, N] of T targets, calibrated (Eq. 5) by scores [T, R, N] of their references."""
    return np.stack(
        [calibration.calibrate(*pair, own="keep") for pair in zip(own, others, strict=True)]
    )


def scores(plays: Bank, prefix: str = "") -> dict[tuple[str, str], np.ndarray]:
    """(score, attack) -> [T, N], for all scores and attacks of Tables 2 and 3.

    Args:
        plays: of `measure`. prefix: "rehearsal_" for the attacker's own game.
    """
    by_attack = {}
    for name, signal in SIGNALS.items():
        own = score(name, plays.arrays[f"{prefix}target_{signal}"])
        by_attack[name, "Orig"] = own
        for attack, kind in MODELS.items():
            by_attack[name, attack] = calibrated(
                own, score(name, plays.arrays[f"{prefix}{kind}_{signal}"])
            )
    return by_attack


def with_one_reference(plays: Bank) -> dict[str, np.ndarray]:
    """Scores of today's attacks with the very reference that "Cal." has: attack -> [T, N].

    RMIA has the constant that is best at 1 % false alarms in the attacker's own game, where that was played, and once that
    of its authors for CIFAR-10. Its population is the judged records: its score is a rank among them, so that which they are
    moves no rank."""

    def view(own: np.ndarray, others: np.ndarray) -> registry.ArraySignals:
        odds = {registry.LOG_ODDS: np.vstack([own, others]).astype(np.float64)}
        return registry.ArraySignals(odds, np.zeros(others.shape, bool), odds)

    def rmia(played: registry.ArraySignals, share: float) -> np.ndarray:
        return registry.score("RMIA, offline", played, gamma=1.0, population=None, a=share)

    targets = list(map(view, plays.target_margin, plays.scratch_margin))
    shares = [registry.OFFLINE_A] * len(targets)
    if "rehearsal_members" in plays.arrays:
        own_games = zip(
            plays.rehearsal_target_margin,
            plays.rehearsal_scratch_margin,
            plays.rehearsal_members,
            strict=True,
        )
        shares = [
            max(
                registry.SHARES,
                key=lambda share: metrics.tpr_at_fpr(rmia(played, share), members, 0.01),
            )
            for played, members in (
                (view(own, others), inside) for own, others, inside in own_games
            )
        ]
    return {
        "LiRA, offline": np.stack([registry.score("LiRA, offline", one) for one in targets]),
        "RMIA, offline": np.stack(list(map(rmia, targets, shares))),
        "RMIA, offline, a = 0.3": np.stack([rmia(one, registry.OFFLINE_A) for one in targets]),
    }


def attack_plays(plays: Bank, data: str) -> pd.DataFrame:
    """Tables 1 to 3 and Figures 2 and 4 for one set, study "plays": a row for each score, attack, metric and play.

    Returns:
        columns study, data, score. Metrics of ranking; "accuracy" at the threshold that is best on the very records judged, as
        the paper has it, "rehearsed accuracy" at that of the attacker's own game, "accuracy at zero",
        "FPR at the best accuracy"; "precision" at `RECALL` with `RATIO` non-members to a member; attack "model" with
        "train_accuracy" and "test_accuracy"; score "any" with "best calibrated" and "best other", picked on the other half of
        the plays; attack "Gap".
    """
    members, where = plays.members, {"study": "plays", "data": data}
    by_attack, frames = scores(plays), []
    ranked = {
        **by_attack,
        **{("loss", attack): each for attack, each in with_one_reference(plays).items()},
    }
    for name in SIGNALS:
        of_score = {attack: each for (of, attack), each in ranked.items() if of == name}
        frames.append(by_target(of_score, members, METRICS, shared=False, score=name, **where))
    frames.append(
        by_target(
            {"Gap": baselines.gap(plays.correct)},
            members,
            ("auc",),
            shared=False,
            score="gap",
            **where,
        )
    )
    rehearsed = scores(plays, "rehearsal_") if "rehearsal_members" in plays.arrays else {}
    for (name, attack), each in by_attack.items():
        called = each >= best_thresholds(each, members)[:, None]
        values = {
            "accuracy": metrics.auc(called, members),
            "FPR at the best accuracy": (called & ~members).sum(1) / (~members).sum(1),
            "precision": precision_at_recall(each, members, RATIO, RECALL),
        }
        if attack != "Orig":
            values["accuracy at zero"] = metrics.auc(each > 0, members)
        if rehearsed:
            thresholds = best_thresholds(rehearsed[name, attack], plays.rehearsal_members)
            values["rehearsed accuracy"] = metrics.auc(each >= thresholds[:, None], members)
        frames.append(by_repetition({attack: values}, score=name, **where))
    fit = {
        f"{part}_accuracy": (plays.correct & side).sum(1) / side.sum(1)
        for part, side in (("train", members), ("test", ~members))
    }
    frames += [
        by_repetition({"model": fit}, score="none", **where),
        by_repetition(best_of_both(by_attack, plays), score="any", **where),
    ]
    return pd.concat(frames, ignore_index=True)


def best_thresholds(scores: np.ndarray, members: np.ndarray) -> np.ndarray:
    """The threshold of best accuracy in each of T games, [T]."""
    return np.array([metrics.best_threshold(*game) for game in zip(scores, members, strict=True)])


def precision_at_recall(
    scores: np.ndarray, members: np.ndarray, ratio: float, recall: float | np.ndarray
) -> np.ndarray:
    """Precision at the highest threshold that finds a share `recall` of the members, with `ratio`
    non-members to each member; [T], or [T, Q] for Q recalls."""
    rows = []
    for row, inside in zip(scores, members, strict=True):
        fpr, tpr, _ = metrics.roc_curve(row, inside)
        place = np.searchsorted(tpr, recall)
        rows.append(metrics.precision(tpr[place], fpr[place], 1 / (1 + ratio)))
    return np.array(rows, float)


def best_of_both(
    by_attack: Mapping[tuple[str, str], np.ndarray], plays: Bank
) -> dict[str, dict[str, np.ndarray]]:
    """AUC of the best calibrated attack and of the best other attack; for each play they are picked
    on the other half of the plays."""
    auc = {key: metrics.auc(of_attack, plays.members) for key, of_attack in by_attack.items()}
    auc["gap", "Gap"] = metrics.auc(baselines.gap(plays.correct), plays.members)
    half, best = np.arange(len(plays)) % 2, {}
    for name, wanted in (("best calibrated", True), ("best other", False)):
        rows = np.array(
            [values for (_, attack), values in auc.items() if (attack in MODELS) == wanted]
        )
        picked = [
            rows[:, half != side].mean(1).argmax() if (half != side).any() else 0 for side in (0, 1)
        ]
        best[name] = {"auc": np.array([rows[picked[half[t]], t] for t in range(len(plays))])}
    return best


def never_stopped(plays: Bank, data: str) -> pd.DataFrame:
    """Study "stopping": the loss calibrated by one reference that is never stopped, as in the
    released code, beside one that was stopped; attack "law" has the spread of difficulty and the
    noise of training."""
    own, others = score("loss", plays.target_margin), score("loss", plays.ended_margin)
    stopped = {
        "Orig": own,
        "Cal.": calibrated(own, score("loss", plays.scratch_margin)),
        "Cal., never stopped": calibrated(own, others[:, :1]),
    }
    law = dict(zip(("difficulty", "noise"), difficulty_and_noise(others), strict=True))
    where = {"study": "stopping", "data": data, "score": "loss"}
    return pd.concat(
        [
            by_target(stopped, plays.members, ("auc",), shared=False, **where),
            by_repetition({"law": law}, **where),
        ],
        ignore_index=True,
    )


def by_stop(plays: Bank, stopped: Bank, data: str) -> pd.DataFrame:
    """Study "stopped": scores calibrated by a reference that is kept at its best validation accuracy, or stopped earlier.

    Args:
        plays: `measure.plays`. stopped: `measure.stopped` of the same plays. data: the name of the set.

    Returns:
        "Orig" and "Cal." by the columns score and stopped: "at its best" or a number of epochs; attack "model" has the
        accuracy of a reference on its own records and on others.
    """
    stops, frames = [str(stop) for stop in stopped.parameters["stops"]], []
    for name in ("loss", "gradient norm"):
        own = score(name, plays.arrays[f"target_{SIGNALS[name]}"])
        others = np.moveaxis(score(name, stopped.arrays[f"stopped_{SIGNALS[name]}"]), 1, 0)
        by = {"at its best": calibrated(own, score(name, plays.arrays[f"scratch_{SIGNALS[name]}"]))}
        by |= {
            stop: calibrated(own, each[:, None]) for stop, each in zip(stops, others, strict=True)
        }
        frames += [
            by_target(
                {"Orig": own, "Cal.": each},
                plays.members,
                METRICS,
                shared=False,
                study="stopped",
                data=data,
                score=name,
                stopped=stop,
            )
            for stop, each in by.items()
        ]
    frames += [
        by_repetition(
            {"model": dict(zip(("train_accuracy", "test_accuracy"), right, strict=True))},
            study="stopped",
            data=data,
            score="none",
            stopped=stop,
        )
        for stop, right in zip(stops, np.moveaxis(stopped.accuracy, (1, 2), (0, 1)), strict=True)
    ]
    return pd.concat(frames, ignore_index=True)


def difficulty_and_noise(scores: np.ndarray) -> tuple[float, float]:
    """Standard deviations of difficulty over records and of the noise of training, from scores of references [T, R, N].

    Raises:
        MiaError: fewer than two references, of which the noise could be told.
    """
    references = scores.shape[1]
    if references < 2:
        raise MiaError(
            f"{references} reference tells nothing of the noise of training: at least 2 are needed."
        )
    noise = scores.var(1, ddof=1).mean()
    spread = scores.mean(1).var(1, ddof=1).mean() - noise / references
    return float(np.sqrt(max(spread, 0.0))), float(np.sqrt(noise))


# ---------------------------------------------------------------------------------------------------------- label-only attacks


def subtracted(target: np.ndarray, others: np.ndarray) -> dict[str, np.ndarray]:
    """Signed distances to the decision boundary [T, N], calibrated by those of one reference [T,
    N], in two ways: as in the paper, and by a slip in the released code.

    Distances are negative where a model is wrong. Where the reference is wrong that code takes minus the size of the target's
    own distance d for the reference's, so that the calibrated score is ``d + |d|``."""
    target, others = np.asarray(target, np.float64), np.asarray(others, np.float64)
    return {
        "negative": target - others,
        "as released": np.where(others < 0, target + np.abs(target), target - others),
    }


def label_only(plays: Bank, data: str) -> pd.DataFrame:
    """Table 4 for one table of records, study "label-only": column `reading` says how distances are subtracted, "" for the
    score as it is, in which a wrongly classified record has distance 0."""
    members = plays.walked_members
    where = {"study": "label-only", "data": data, "score": "distance"}
    frames = []
    own, rehearsed = (
        plays.arrays[f"{prefix}target_distance"].astype(np.float64) for prefix in ("", "rehearsal_")
    )
    pairs = {("Orig", ""): (np.maximum(own, 0), np.maximum(rehearsed, 0))}
    for attack, kind in MODELS.items():
        judged, again = (
            subtracted(distance, plays.arrays[f"{prefix}{kind}_distance"])
            for prefix, distance in (("", own), ("rehearsal_", rehearsed))
        )
        pairs |= {(attack, reading): (judged[reading], again[reading]) for reading in judged}
    for (attack, reading), (judged, again) in pairs.items():
        frames.append(
            by_target({attack: judged}, members, ("auc",), shared=False, reading=reading, **where)
        )
        called = judged >= best_thresholds(again, plays.rehearsal_walked_members)[:, None]
        frames.append(
            by_repetition(
                {attack: {"accuracy": metrics.auc(called, members)}}, reading=reading, **where
            )
        )
    return pd.concat(frames, ignore_index=True)


def label_only_of_bank(further: Bank, targets: int, data: str, draws: int = 100) -> pd.DataFrame:
    """Study "label-only" for models of a bank. Each is calibrated by all others that were not
    trained on the record, its complement put aside; without a rehearsal there is no accuracy."""
    game = Game(
        further.members,
        {"distance": further.distance.astype(np.float64)},
        {},
        range(0, 2 * targets, 2),
        len(further) - 2,
    )
    own = np.stack([view.own("distance") for view in game])
    usual = np.stack(
        [
            np.average(distance, 0, ~inside)
            for distance, inside in (view.references("distance") for view in game)
        ]
    )
    by_reading = {
        ("Orig", ""): np.maximum(own, 0),
        **{("Cal.", reading): each for reading, each in subtracted(own, usual).items()},
    }
    where = {"study": "label-only, bank", "data": data, "score": "distance"}
    return pd.concat(
        [
            by_target(
                {attack: each}, game.target_members, ("auc",), draws=draws, **where, reading=reading
            )
            for (attack, reading), each in by_reading.items()
        ],
        ignore_index=True,
    )


# ---------------------------------------------------------------------------------------------------- many references: a bank


def attack_bank(
    bank: Bank, further: Bank, data: str, targets: int, counts: Sequence[int], draws: int = 100
) -> pd.DataFrame:
    """Calibrated scores and today's attacks with the same references, study "bank": models of a bank, column `references`.

    Args:
        bank: log odds of all records. further: `measure.further` of the same models, on the first records; those are judged.
        data: what to call them. targets: models that are attacked, one a complementary pair. counts: references, even
            numbers; half of them were not trained on a record, and these calibrate.

    Returns:
        attacks "Orig"; "Cal.", "LiRA, offline", "RMIA, offline" from references without the record; "LiRA", "RMIA" from all.

    Raises:
        MiaError: more targets than pairs, or more references than other pairs have.
    """
    judged = np.arange(further.members.shape[1])
    game = Game.on(bank, judged, bank.untrained, range(0, 2 * targets, 2), max(counts))
    signal = {
        "loss": bank.margin[:, judged],
        "gradient norm": further.gradient,
        "confidence": further.top,
    }
    game = replace(
        game,
        values=game.values
        | {f"{name} score": score(name, of_name) for name, of_name in signal.items()},
    )
    where, metrics_of = {"study": "bank", "data": data}, {"names": METRICS, "draws": draws}
    frames = [
        game.frame(
            {"Orig": lambda view, name=name: view.own(f"{name} score")},
            **metrics_of,
            score=name,
            **where,
        )
        for name in SIGNALS
    ]

    def usual(view: View, name: str) -> np.ndarray:
        return calibration.calibrate(view.own(f"{name} score"), *view.references(f"{name} score"))

    for count in counts:
        few = replace(game, references=count)
        of_count = {"references": count, **metrics_of, **where}
        for name in SIGNALS:
            frames.append(few.frame({"Cal.": partial(usual, name=name)}, score=name, **of_count))
        today = ("LiRA, offline", "RMIA, offline", *(("LiRA", "RMIA") if count > 2 else ()))
        frames.append(few.frame(today, score="loss", **of_count))
    return pd.concat(frames, ignore_index=True)


def by_size(plays: Mapping[int, Bank]) -> pd.DataFrame:
    """Study "sizes" (Figure 3): column n is the number of training records. Accuracy has the
    threshold of the other plays."""
    frames = []
    for n, each in plays.items():
        where = {"study": "sizes", "score": "loss", "n": n}
        loss = {
            attack: of_attack
            for (name, attack), of_attack in scores(each).items()
            if name == "loss"
        }
        frames += [
            by_target(
                loss | {"Gap": baselines.gap(each.correct)},
                each.members,
                ("auc",),
                shared=False,
                **where,
            ),
            by_repetition(
                {
                    attack: {"accuracy": metrics.rehearsed_accuracy(of_attack, each.members)}
                    for attack, of_attack in loss.items()
                },
                **where,
            ),
        ]
    return pd.concat(frames, ignore_index=True)
