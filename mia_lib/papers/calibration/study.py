"""Results of the chapter on difficulty calibration (Watson et al. 2022, section 4): tidy frames, from what was measured.

Scores are higher for members. Attacks have the paper's names: "Orig" is a score as it is, "Cal." the same less what a
reference from random weights gives, "Cal.-F" less what a copy of the target gives that was trained further.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from mia_lib import membership, metrics
from mia_lib.attacks import baselines, calibration, registry
from mia_lib.errors import MiaError
from mia_lib.metrics import by_repetition, by_target
from mia_lib.papers.calibration import theory
from mia_lib.published import Bank
from mia_lib.signals import loss_of

SIGNALS = {"loss": "margin", "gradient norm": "gradient", "confidence": "top"}  # score -> what was measured
MODELS = {"Cal.": "scratch", "Cal.-F": "forgetting"}  # what calibrates
RATIO, RECALL = 10, 0.05  # non-members to a member, and the recall, at which precision is judged
METRICS = ("auc", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001")
RMIA_A = registry.OFFLINE_A


def score(name: str, signal: np.ndarray) -> np.ndarray:
    """Eqs. 1 to 3: a score from what was measured, higher for members; float64.

    Args:
        name: of `SIGNALS`, or "distance". signal: the log odds of the true class, the logarithm of the gradient's norm, the
            log odds of the likeliest class; or the distance to the decision boundary.
    """
    signal = np.asarray(signal, np.float64)
    return {"gradient norm": lambda: -np.exp(signal), "distance": lambda: signal}.get(name, lambda: -loss_of(signal))()


def calibrated(own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Eq. 5 for each of T targets: [T, N] and [T, R, N] -> [T, N]."""
    return np.stack([calibration.calibrate(*pair, own="keep") for pair in zip(own, others, strict=True)])


def scores(plays: Bank, prefix: str = "") -> dict[tuple[str, str], np.ndarray]:
    """(score, attack) -> [T, N], for all scores and attacks of Tables 2 and 3.

    Args:
        plays: of `measure`. prefix: "rehearsal_" for the attacker's own game.
    """
    found = {}
    for name, signal in SIGNALS.items():
        own = score(name, plays.arrays[f"{prefix}target_{signal}"])
        found[name, "Orig"] = own
        for attack, kind in MODELS.items():
            found[name, attack] = calibrated(own, score(name, plays.arrays[f"{prefix}{kind}_{signal}"]))
    return found


def with_one_reference(plays: Bank) -> dict[str, np.ndarray]:
    """What today's attacks make of the very reference that "Cal." has: attack -> [T, N].

    RMIA's population is the judged records: its score is a rank among them, so that which they are moves no rank."""
    target, references = plays.target_margin.astype(np.float64), plays.scratch_margin.astype(np.float64)
    out, found = np.zeros(references.shape[1:], bool), {"LiRA, offline": [], "RMIA, offline": []}
    for own, others in zip(target, references, strict=True):
        p, q = np.exp(-loss_of(own)), np.exp(-loss_of(others))
        found["LiRA, offline"].append(baselines.lira_offline(own, others, out, fixed_variance=True))
        found["RMIA, offline"].append(baselines.rmia(p, q, out, p, q, gamma=1.0, a=RMIA_A))
    return {attack: np.stack(rows) for attack, rows in found.items()}


def attack_plays(plays: Bank, data: str, study: str = "plays") -> pd.DataFrame:
    """Tables 1 to 3 and Figures 2 and 4 for one set: a row for each score, attack, metric and play.

    Returns:
        columns study, data, score. Metrics of ranking; "accuracy" at the threshold from the rehearsal, "accuracy at zero",
        "peak accuracy", "FPR of it"; "precision" at `RECALL` with `RATIO` non-members to a member; attack "model" with
        "train_accuracy" and "test_accuracy"; score "any" with "best calibrated" and "best other", picked on the other half of
        the plays; attack "Gap".
    """
    members, where = plays.members, {"study": study, "data": data}
    found, frames = scores(plays), []
    ranks = {**found, **{("loss", attack): each for attack, each in with_one_reference(plays).items()}}
    for name in SIGNALS:
        each = {attack: of_attack for (of, attack), of_attack in ranks.items() if of == name}
        frames.append(by_target(each, members, METRICS, shared=False, score=name, **where))
    frames.append(by_target({"Gap": baselines.gap(plays.correct)}, members, ("auc",), shared=False, score="gap", **where))
    rehearsed = scores(plays, "rehearsal_") if "rehearsal_members" in plays.arrays else {}
    for (name, attack), of_attack in found.items():
        peak, alarms = best_accuracy(of_attack, members)
        values = {"peak accuracy": peak, "FPR of it": alarms,
                  "precision": precision_at_recall(of_attack, members, RATIO, RECALL)}
        if attack != "Orig":
            values["accuracy at zero"] = metrics.auc(of_attack > 0, members)
        if rehearsed:
            thresholds = thresholds_of(rehearsed[name, attack], plays.rehearsal_members)
            values["accuracy"] = metrics.auc(of_attack >= thresholds[:, None], members)
        frames.append(by_repetition({attack: values}, score=name, **where))
    right = plays.correct
    fit = {"train_accuracy": [row[inside].mean() for row, inside in zip(right, members, strict=True)],
           "test_accuracy": [row[~inside].mean() for row, inside in zip(right, members, strict=True)]}
    frames += [by_repetition({"model": fit}, score="none", **where),
               by_repetition(best_of_both(found, plays), score="any", **where)]
    return pd.concat(frames, ignore_index=True)


def thresholds_of(rehearsed: np.ndarray, members: np.ndarray) -> np.ndarray:
    """The threshold of best accuracy in each of T rehearsals, [T]."""
    return np.array([metrics.best_threshold(*pair) for pair in zip(rehearsed, members, strict=True)])


def best_accuracy(scores: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best balanced accuracy of any threshold, chosen on the records judged, and its false positive rate, each [T]."""
    found = []
    for row, inside in zip(scores, members, strict=True):
        fpr, tpr, _ = metrics.roc_curve(row, inside)
        place = np.argmax(tpr - fpr)
        found.append(((1 + tpr[place] - fpr[place]) / 2, fpr[place]))
    accuracy, alarms = np.transpose(found)
    return accuracy, alarms


def precision_at_recall(scores: np.ndarray, members: np.ndarray, ratio: float, recall: float) -> np.ndarray:
    """Precision of the highest threshold that finds a share `recall` of the members, with `ratio` non-members to each, [T]."""
    found = []
    for row, inside in zip(scores, members, strict=True):
        fpr, tpr, _ = metrics.roc_curve(row, inside)
        place = np.searchsorted(tpr, recall)
        found.append(metrics.precision(tpr[place], fpr[place], 1 / (1 + ratio)))
    return np.array(found, float)


def best_of_both(found: Mapping[tuple[str, str], np.ndarray], plays: Bank) -> dict[str, dict[str, np.ndarray]]:
    """AUC of the best calibrated attack and of the best other one, each play's picked on the other half of the plays."""
    auc = {key: metrics.auc(of_attack, plays.members) for key, of_attack in found.items()}
    auc["gap", "Gap"] = metrics.auc(baselines.gap(plays.correct), plays.members)
    half, best = np.arange(len(plays)) % 2, {}
    for name, wanted in (("best calibrated", True), ("best other", False)):
        rows = np.array([values for (_, attack), values in auc.items() if (attack in MODELS) == wanted])
        picked = [rows[:, half != side].mean(1).argmax() if (half != side).any() else 0 for side in (0, 1)]
        best[name] = {"auc": np.array([rows[picked[half[t]], t] for t in range(len(plays))])}
    return best


def never_stopped(plays: Bank, data: str) -> pd.DataFrame:
    """Study "stopping": the loss calibrated by one reference that is never stopped, as the released code has it, beside one
    that was; attack "law" has the spread of difficulty and the noise of training."""
    own, others = score("loss", plays.target_margin), score("loss", plays.ended_margin)
    where, law = {"study": "stopping", "data": data, "score": "loss"}, law_of(own, others, plays.members)
    stopped = {"Orig": own, "Cal.": calibrated(own, score("loss", plays.scratch_margin)),
               "Cal., never stopped": calibrated(own, others[:, :1])}
    return pd.concat([by_target(stopped, plays.members, ("auc",), shared=False, **where),
                      by_repetition({"law": {name: law[name] for name in ("difficulty", "noise")}}, **where)],
                     ignore_index=True)


def law_of(own: np.ndarray, others: np.ndarray, members: np.ndarray) -> dict:
    """The law's ingredients from scores of targets [T, N] and of references [T, R, N]: spread of difficulty over records,
    noise of training, and what members gain; and the AUCs that it expects.

    Raises:
        MiaError: fewer than two references, of which the noise could be told.
    """
    if others.shape[1] < 2:
        raise MiaError(f"{others.shape[1]} reference tells nothing of the noise of training: at least 2 are needed.")
    noise = others.var(1, ddof=1).mean()
    spread = others.mean(1).var(1, ddof=1).mean() - noise / others.shape[1]
    lead = own - others.mean(1)
    gain = np.mean([row[inside].mean() - row[~inside].mean() for row, inside in zip(lead, members, strict=True)])
    found = {"difficulty": float(np.sqrt(max(spread, 0.0))), "noise": float(np.sqrt(noise)), "gain": float(gain)}
    return found | theory.calibration_auc(**found, references=others.shape[1])


# ---------------------------------------------------------------------------------------------------------- label-only attacks


def readings(target: np.ndarray, others: np.ndarray) -> dict[str, np.ndarray]:
    """Distances to the decision boundary [T, N] calibrated by those of references [T, N], in four readings.

    Distances are negative where a model is wrong. The released code's slip: where the reference is wrong it takes minus the
    size of the target's own distance d for the reference's, so that the calibrated score is ``d + |d|``."""
    target, others = np.asarray(target, np.float64), np.asarray(others, np.float64)
    ranks = rankdata(target, axis=1) - rankdata(others, axis=1)
    return {"negative": target - others, "zero": np.maximum(target, 0) - np.maximum(others, 0),
            "as released": np.where(others < 0, target + np.abs(target), target - others), "ranks": ranks}


def label_only(plays: Bank, data: str) -> pd.DataFrame:
    """Table 4 for one table of records, study "label-only": column `reading` says how distances are subtracted, "" for the
    score as it is, in which a wrongly classified record has distance 0."""
    members, where, frames = plays.walked_members, {"study": "label-only", "data": data, "score": "distance"}, []
    own, rehearsed = (plays.arrays[f"{prefix}target_distance"].astype(np.float64) for prefix in ("", "rehearsal_"))
    pairs = {("Orig", ""): (np.maximum(own, 0), np.maximum(rehearsed, 0))}
    for attack, kind in MODELS.items():
        each = readings(own, plays.arrays[f"{kind}_distance"])
        again = readings(rehearsed, plays.arrays[f"rehearsal_{kind}_distance"])
        pairs |= {(attack, reading): (each[reading], again[reading]) for reading in each}
    for (attack, reading), (found, again) in pairs.items():
        frames.append(by_target({attack: found}, members, ("auc",), shared=False, reading=reading, **where))
        called = found >= thresholds_of(again, plays.rehearsal_walked_members)[:, None]
        frames.append(by_repetition({attack: {"accuracy": metrics.auc(called, members)}}, reading=reading, **where))
    return pd.concat(frames, ignore_index=True)


def label_only_of_bank(further: Bank, targets: int, data: str, draws: int = 100) -> pd.DataFrame:
    """The same for models of a bank, each calibrated by all others that were not trained on the record, its complement put
    aside; no rehearsal, so no accuracy."""
    distance, members = further.distance.astype(np.float64), further.members
    attacked, found = range(0, 2 * targets, 2), {}
    for t in attacked:
        others = membership.references_of(t, len(members))
        mean = np.average(distance[others], 0, ~members[others])
        for reading, of_target in readings(distance[t][None], mean[None]).items():
            found.setdefault(("Cal.", reading), []).append(of_target[0])
    found["Orig", ""] = list(np.maximum(distance[list(attacked)], 0))
    return pd.concat([by_target({attack: np.stack(rows)}, members[list(attacked)], ("auc",), draws=draws,
                                study="label-only, bank", data=data, score="distance", reading=reading)
                      for (attack, reading), rows in found.items()], ignore_index=True)


# ---------------------------------------------------------------------------------------------------- many references: a bank


def attack_bank(bank: Bank, further: Bank, data: str, targets: int, counts: Sequence[int], draws: int = 100) -> pd.DataFrame:
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
    if 2 * targets > len(bank) or max(counts) > len(bank) - 2:
        raise MiaError(f"targets = {targets}, references = {max(counts)}: of {len(bank)} models {len(bank) // 2} can be "
                       f"attacked, one of each complementary pair, with {len(bank) - 2} others as references.")
    judged, tested = np.arange(further.members.shape[1]), ~bank.members.any(0)
    attacked, members = list(range(0, 2 * targets, 2)), further.members[:2 * targets:2]
    signal = {"loss": bank.margin[:, judged], "gradient norm": further.gradient, "confidence": further.top}
    value = {name: score(name, of_name) for name, of_name in signal.items()}
    where = {"study": "bank", "data": data}
    frames = [by_target({"Orig": value[name][attacked]}, members, METRICS, draws=draws, score=name, **where)
              for name in SIGNALS]
    for count in counts:
        others = {t: np.roll(membership.references_of(t, len(bank)).reshape(-1, 2), -(t // 2), 0).ravel()[:count]
                  for t in attacked}
        for name in SIGNALS:
            each = np.stack([calibration.calibrate(value[name][t], value[name][others[t]], further.members[others[t]])
                             for t in attacked])
            frames.append(by_target({"Cal.": each}, members, METRICS, draws=draws, score=name, references=count, **where))
        today: dict[str, list] = {}
        for t in attacked:
            rows = [t, *others[t]]
            seen = registry.ArraySignals({registry.LOG_ODDS: bank.margin[rows][:, judged].astype(np.float64)},
                                         further.members[others[t]],
                                         {registry.LOG_ODDS: bank.margin[rows][:, tested].astype(np.float64)})
            for attack in ("LiRA, offline", "RMIA, offline", "LiRA", "RMIA"):
                if count > 2 or attack.endswith("offline"):
                    today.setdefault(attack, []).append(registry.score(attack, seen))
        frames.append(by_target({attack: np.stack(rows) for attack, rows in today.items()}, members, METRICS, draws=draws,
                                score="loss", references=count, **where))
    return pd.concat(frames, ignore_index=True)


def by_size(plays: Mapping[int, Bank]) -> pd.DataFrame:
    """Figure 3, study "sizes": column n, the number of training records. Accuracy has the threshold of the other plays."""
    frames = []
    for n, each in plays.items():
        found, where = scores(each), {"study": "sizes", "score": "loss", "n": n}
        loss = {attack: of_attack for (name, attack), of_attack in found.items() if name == "loss"}
        frames += [by_target(loss | {"Gap": baselines.gap(each.correct)}, each.members, ("auc",), shared=False, **where),
                   by_repetition({attack: {"accuracy": metrics.rehearsed_accuracy(of_attack, each.members)}
                                  for attack, of_attack in loss.items()}, **where)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["study", *metrics.estimates.COLUMNS])
