"""Results of the chapter on difficulty calibration (Watson et al. 2022, section 4): tidy frames, from what was measured.

Scores are higher for members. Attacks have the paper's names: "Orig" is a score as it is, "Cal." the same less what a
reference from random weights gives, "Cal.-F" less what a copy of the target gives that was trained further.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr, ndtri

from mia_book.evidence import settings
from mia_book.evidence.settings import Attack
from mia_book.publishing.banks import where_measured
from mia_lib import metrics
from mia_lib.attacks import baselines, calibration, registry
from mia_lib.errors import MiaError
from mia_lib.game import Game
from mia_lib.metrics import by_repetition, by_target
from mia_lib.published import Bank
from mia_lib.signals import loss_of

# score -> what was measured
SIGNALS = {"loss": "margin", "gradient norm": "gradient", "confidence": "top"}
MODELS = {"Cal.": "scratch", "Cal.-F": "forgetting"}  # what calibrates
RATIO, RECALL = 10, 0.05  # non-members to a member, and the recall, at which precision is judged
METRICS = ("auc", "tpr_at_fpr=0.01")
RMIA, AUTHORS = "RMIA, offline", "RMIA, offline, authors' a"
BY_LAW = "Cal., by the law"
IN_SETTINGS = {
    "Cal.": Attack("calibrated loss"),
    RMIA: Attack("RMIA, offline", learned=True),
    "MAST (midpoint)": Attack("MAST (best split)", options={"estimator": "middle"}),
    "LiRA": Attack("LiRA"),
}
BEFORE = {"Orig": Attack("MALT"), "Cal.": IN_SETTINGS["Cal."]}


# networks that know their records by heart, on which calibration is asked once more
BY_HEART = {"tanh-cnn": "bayes/table2", "cifar100-by-heart": "curvature/memorised"}

OTHER_IMAGES = ("mnist", "cifar100")  # of Tables 1 to 3, shown as far as they are published


def of_other_images(plays: int, dataset: str) -> dict[str, Bank]:
    """So many plays on each set of `OTHER_IMAGES` but `dataset`, by its name, where they are published."""
    banks = {
        name: where_measured(f"calibration/{name}", plays)
        for name in OTHER_IMAGES
        if name != dataset
    }
    return {name: bank for name, bank in banks.items() if bank is not None}


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


def of_records(private: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values [T, N'] of the private records of plays, bool [T, N], at their places among all records, [T, N]; 0 elsewhere."""
    placed = np.zeros(private.shape)
    placed[private] = values.ravel()
    return placed


def left_out_mean(private: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Mean [T, N'] of the values [T, N'] by the references of all plays in which a record was private, which left it out."""
    means = of_records(private, values).sum(0) / np.maximum(private.sum(0), 1)
    return np.stack([means[row] for row in private])


def authors_a(bank: Bank) -> float:
    """RMIA's constant as its authors set it for the data set of a bank; that of CIFAR-10 for sets that they do not name."""
    return registry.AUTHORS_A.get(bank.parameters.get("dataset"), registry.OFFLINE_A)


def with_references(
    plays: Bank, several: bool = False, metric: str = METRICS[1]
) -> dict[tuple[str, str], np.ndarray]:
    """Scores by the very references that "Cal." has: (score, attack) -> [T, N].

    With one reference, or with the means over several, LiRA ranks as the difference of log odds and RMIA as a ratio of
    probabilities. RMIA's constant is the one that is best by the metric in the next two plays, or that of its authors.

    Args:
        plays: of `measure`. several: whether references of other plays serve, too, in which a record was private.
        metric: by which the scores are to be judged.
    """
    scores = {}

    def usual(values: np.ndarray) -> np.ndarray:
        return left_out_mean(plays.private, values) if several else values

    for name, signal in SIGNALS.items():
        own, others = (
            score(name, plays.arrays[f"{kind}_{signal}"]) for kind in ("target", "scratch")
        )
        scores[name, "Cal."] = own - usual(others[:, 0])
    odds, others = plays.target_margin.astype(float), plays.scratch_margin[:, 0].astype(float)
    scores["loss", "LiRA, offline"] = odds - usual(others)
    own, typical = expit(odds), usual(expit(others))
    tiny = np.finfo(float).tiny  # for a record to which references give probability 0

    def ratio(a: float) -> np.ndarray:
        return own / np.maximum((1 + a) * typical + 1 - a, tiny)

    tried = {f"{a:g}": ratio(a) for a in registry.SHARES}
    judged = by_target(tried, plays.members, (metric,), shared=False)["estimate"]
    found = np.stack([estimate.values for estimate in judged])
    elsewhere = sum(np.roll(found, -step, 1) for step in range(1, min(3, len(plays))))
    best = np.take_along_axis(np.stack([*tried.values()]), elsewhere.argmax(0)[None, :, None], 0)
    scores["loss", RMIA] = best[0]
    scores["loss", AUTHORS] = ratio(authors_a(plays))
    return scores


def in_plays(
    plays: Bank, data: str, several: bool, names: Sequence[str] = METRICS, own: bool = False
) -> pd.DataFrame:
    """Study "settings": scores of `with_references` on plays, by the columns data, references (about how many left a record
    out), own (whether it is the paper's own regime) and score; `names` are of metrics, for each of which RMIA's constant is
    learned."""
    count = 1
    if several:
        left_out = plays.private.sum(0)
        count = round(float(np.average(left_out, weights=left_out)))
    where = {"study": "settings", "data": data, "references": count, "own": own}
    frames = []
    for metric in names:
        found = with_references(plays, several, metric)
        for name in SIGNALS:
            of_score = {attack: each for (of, attack), each in found.items() if of == name}
            frames.append(
                by_target(of_score, plays.members, (metric,), shared=False, score=name, **where)
            )
    return pd.concat(frames, ignore_index=True)


def on_banks(
    banks: Mapping[str, Bank], references: Sequence[int], targets: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`settings.attack_banks` with `IN_SETTINGS`, and RMIA with its authors' constant for the data set of each bank."""
    played = [
        settings.attack_banks(
            {name: bank},
            references,
            targets,
            IN_SETTINGS | {AUTHORS: Attack("RMIA, offline", options={"a": authors_a(bank)})},
            METRICS,
        )
        for name, bank in banks.items()
    ]
    return tuple(pd.concat(frames, ignore_index=True) for frames in zip(*played, strict=True))


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
    for name in SIGNALS:
        of_score = {attack: each for (of, attack), each in by_attack.items() if of == name}
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
    frames += [
        by_repetition({"model": fit(plays)}, score="none", **where),
        by_repetition(best_of_both(by_attack, plays), score="any", **where),
    ]
    return pd.concat(frames, ignore_index=True)


def fit(plays: Bank) -> dict[str, np.ndarray]:
    """Accuracy [T] of the targets on their members and on others."""
    return {
        f"{part}_accuracy": (plays.correct & side).sum(1) / side.sum(1)
        for part, side in (("train", plays.members), ("test", ~plays.members))
    }


def best_thresholds(scores: np.ndarray, members: np.ndarray) -> np.ndarray:
    """The threshold of best accuracy in each of T games, [T]."""
    return np.array([metrics.best_threshold(*game) for game in zip(scores, members, strict=True)])


def best_points(
    scores: Mapping[str, np.ndarray], members: np.ndarray
) -> dict[str, list[tuple[float, float]]]:
    """Attack -> the mean FPR and TPR over games at the threshold of best accuracy, in a list of its own."""
    points = {}
    for attack, each in scores.items():
        called = each >= best_thresholds(each, members)[:, None]
        fpr, tpr = ((called & side).sum(1) / side.sum(1) for side in (~members, members))
        points[attack] = [(float(fpr.mean()), float(tpr.mean()))]
    return points


def precision_at_recall(
    scores: np.ndarray, members: np.ndarray, ratio: float, recall: float | np.ndarray
) -> np.ndarray:
    """Precision at the highest threshold that finds a share `recall` of the members, with `ratio`
    non-members to each member; [T], or [T, Q] for Q recalls."""
    rows = []
    for row, is_member in zip(scores, members, strict=True):
        fpr, tpr, _ = metrics.roc_curve(row, is_member)
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
    where = {"study": "stopping", "data": data, "score": "loss"}
    return pd.concat(
        [
            by_target(stopped, plays.members, ("auc",), shared=False, **where),
            by_repetition({"law": difficulty_and_noise(others)}, **where),
        ],
        ignore_index=True,
    )


def by_stop(plays: Bank, stopped: Bank, data: str) -> pd.DataFrame:
    """Study "stopped": scores calibrated by a reference that is kept at its best validation accuracy, or stopped earlier.

    Args:
        plays: `measure.plays`. stopped: `measure.stopped` of the same plays. data: the name of the set.

    Returns:
        "Orig" and "Cal." by the columns score and stopped: "at its best" or a number of epochs; attack "model" has the
        accuracy of a reference on its own records and on others, "law" the spread of difficulty and the noise of training,
        `BY_LAW` the AUC after calibration that follows from them.
    """
    stops, frames = ["at its best", *map(str, stopped.parameters["stops"])], []
    where = {"study": "stopped", "data": data}
    for name in ("loss", "gradient norm"):
        own = score(name, plays.arrays[f"target_{SIGNALS[name]}"])
        kept = plays.arrays[f"scratch_{SIGNALS[name]}"][:, :1]
        others = score(name, np.hstack([kept, stopped.arrays[f"stopped_{SIGNALS[name]}"]]))
        for stop, each in zip(stops, np.moveaxis(others, 1, 0), strict=True):
            by = {"Orig": own, "Cal.": own - each}
            at = where | {"score": name, "stopped": stop}
            frames.append(by_target(by, plays.members, METRICS, shared=False, **at))
            if name == "loss":
                law = difficulty_and_noise(of_records(plays.private, each)[None], plays.private)
                before = float(np.mean(metrics.auc(own, plays.members)))
                predicted = {BY_LAW: {"auc": auc_by_law(before, **law)}}
                frames.append(by_repetition({"law": law} | predicted, **at))
    for stop, right in zip(stops[1:], np.moveaxis(stopped.accuracy, (1, 2), (0, 1)), strict=True):
        fit = dict(zip(("train_accuracy", "test_accuracy"), right, strict=True))
        frames.append(by_repetition({"model": fit}, score="none", stopped=stop, **where))
    return pd.concat(frames, ignore_index=True)


def difficulty_and_noise(scores: np.ndarray, known: np.ndarray | None = None) -> dict[str, float]:
    """Standard deviations of the "difficulty" over records and of the "noise" of training, from scores of references
    [T, R, N], of which those at `known`, bool [R, N], are there; all when None.

    Raises:
        MiaError: fewer than two references of each record, of which the noise could be told.
    """
    known = np.ones(scores.shape[1:], bool) if known is None else known
    count = known.sum(0)
    if count.max() < 2:
        raise MiaError(
            f"{count.max()} reference tells nothing of the noise of training: at least 2 are needed."
        )
    scores, known, count = (each[..., count > 0] for each in (scores, known, count))
    means = (scores * known).sum(1) / count
    squares = ((scores - means[:, None]) ** 2 * known).sum()
    noise = squares / (len(scores) * (count - 1).sum())
    spread = means.var(1, ddof=1).mean() - noise * np.mean(1 / count)
    return {"difficulty": float(np.sqrt(max(spread, 0.0))), "noise": float(np.sqrt(noise))}


def auc_by_law(before: float, difficulty: float, noise: float, references: int = 1) -> float:
    """AUC after calibration by so many references that the chapter's law has for an AUC `before`, the spread of difficulty
    over records and the noise of training."""
    ratio = (difficulty**2 + noise**2) / (noise**2 * (1 + 1 / references))
    return float(ndtr(ndtri(before) * np.sqrt(ratio)))


def law_of_bank(bank: Bank) -> dict[str, float]:
    """`difficulty_and_noise` of the loss on a bank, from the models that were not trained on a record."""
    rows = bank.trained[: settings.JUDGED]
    return difficulty_and_noise(score("loss", bank.margin[:, rows])[None], ~bank.members[:, rows])


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
    """Study "label-only, bank", for models of a bank. Each is calibrated by the one of the next pair that was not trained on
    the record; without a rehearsal there is no accuracy."""
    game = Game(
        further.members,
        {"distance": further.distance.astype(np.float64)},
        {},
        range(0, 2 * targets, 2),
        references=2,
    )
    own = np.stack([view.own("distance") for view in game])
    usual = np.stack(
        [
            np.average(distance, 0, ~members)
            for distance, members in (view.references("distance") for view in game)
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


def by_size(plays: Mapping[int, Bank | None], equal: str) -> pd.DataFrame:
    """Study "sizes" (Figure 3): column n is the number of training records, of plays that are there, column `equal` what is
    the same at all sizes. Accuracy has the threshold of other plays; attack "model" has the accuracy of targets."""
    frames = []
    for n, each in plays.items():
        if each is None:  # not measured
            continue
        where = {"study": "sizes", "equal": equal, "score": "loss", "n": n}
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
                }
                | {"model": fit(each)},
                **where,
            ),
        ]
    return pd.concat(frames, ignore_index=True)
