"""Experiments of the difficulty-calibration chapter (Watson et al. 2022, section 4).

T plays of one game, R references for each target, N records of which N' are private. Scores are higher for members. A play's
arrays hold the N' private records of each target, in their order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd
import torch
from scipy.stats import rankdata

from mia_lib import membership, metrics, signals, store
from mia_lib import models as architectures
from mia_lib.attacks import baselines, bayes, calibration
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_range, choose
from mia_lib.metrics.interval import Interval, t_interval
from mia_lib.papers.ladder import PrivateTraining, ladder, spent
from mia_lib.signals import boundary, outputs
from mia_lib.signals.views import augmented
from mia_lib.training import Ensemble, TrainConfig, train
from mia_lib.training import private as dp
from mia_lib.training import shared as ensembles

SCORES = {"loss": "Loss", "gradient_norm": "GN", "confidence": "Conf."}  # key -> the paper's name
VARIANTS = {"original": "Orig", "scratch": "Cal.", "forgetting": "Cal.-F"}
ATTACKS = tuple((score, variant) for score in SCORES for variant in VARIANTS)
GAP = ("gap", "original")
LABEL_ONLY_RECORDS = 1000  # members, and as many others, of a play that the label-only attack is tried on, as in the paper
TABLES = tuple(name for name, shared in ensembles.SHARED.items() if "calibration" in shared.chapters)
PAPER_ROWS = {"german_credit": "German Credit", "hepatitis": "Hepatitis", "adult": "Adult", "mnist": "MNIST",
              "fashion_mnist": "MNIST", "fashion_mnist_20k": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
TITLES = {**PAPER_ROWS, "fashion_mnist": "FashionMNIST", "fashion_mnist_20k": "FashionMNIST"}


@dataclass(frozen=True)
class Games:
    """T plays of the paper's game on random splits of N records.

    In each, half of the records are private; the target is trained on half of these and judged on all of them. The public
    half is the attacker's: references are trained on random halves of it.

    Attributes:
        name: what tables call them.
        paper: the row of the paper's tables that they stand beside.
        covers: what varies between plays.
        models: T * (1 + R) models, a target and R references of the same recipe in turn, trained to the end.
        private, public: bool [T, N], the two halves of the records of each play.
        forgetting: recipe with which a target is trained further on public records.
        views: the same records several times, augmented at random; an attack averages over them.
    """

    name: str
    paper: str
    covers: str
    models: Ensemble
    private: np.ndarray
    public: np.ndarray
    forgetting: TrainConfig
    views: tuple[Dataset, ...] = ()

    def __len__(self) -> int:
        return len(self.private)

    @property
    def references(self) -> int:
        """R."""
        return len(self.models) // len(self) - 1

    @property
    def members(self) -> np.ndarray:
        """bool [T, 1 + R, N], training sets of targets and references."""
        return self.models.members.reshape(len(self), 1 + self.references, -1)

    @property
    def targets(self) -> list[int]:
        """Numbers of the T targets among the models."""
        return list(range(0, len(self.models), 1 + self.references))

    @property
    def calibrating(self) -> np.ndarray:
        """bool [T, N], the public records that what calibrates each target is trained on, those of its first reference."""
        return self.members[:, 1]

    @property
    def validation(self) -> np.ndarray:
        """bool [T, N], the other public records, on which it is stopped."""
        return self.public & ~self.calibrating

    @property
    def attacked(self) -> Ensemble:
        """The T targets."""
        return self.models.part(self.targets)

    @cached_property
    def scratch(self) -> Ensemble:
        """T references with the target's recipe, each kept at its best validation accuracy."""
        config = replace(self.models.config, seed=self.models.config.seed + 1)
        return train(self.models.records, self.calibrating, config, validation=self.validation,
                     label=f"stopped references ({self.name})")

    @cached_property
    def forgotten(self) -> Ensemble:
        """T targets trained further on public records, each kept at its best validation accuracy."""
        return train(self.models.records, self.calibrating, self.forgetting, validation=self.validation,
                     start=(self.models, self.targets), label=f"forgetting ({self.name})")

    @cached_property
    def rehearsal(self) -> Games:
        """The same game played by the attacker within the public half, at half the size, to find thresholds."""
        members, private = np.zeros((len(self), 2, self.public.shape[1]), bool), np.zeros_like(self.public)
        for t, public in enumerate(self.public):
            inside, rest = np.array_split(np.random.default_rng([13, t]).permutation(np.flatnonzero(public)), 2)
            private[t, inside] = members[t, 0, inside[:len(inside) // 2]] = members[t, 1, rest[:len(inside) // 2]] = True
        config = replace(self.models.config, seed=self.models.config.seed + 4)
        models = train(self.models.records, members.reshape(2 * len(self), -1), config, label=f"rehearsals ({self.name})")
        return Games(f"{self.name}, rehearsed", self.paper, self.covers, models, private, self.public & ~private,
                     replace(self.forgetting, seed=self.forgetting.seed + 4), self.views)

    def covering(self, plays: int) -> str:
        """What varies between some of the plays."""
        return self.covers.replace(str(len(self)), str(min(plays, len(self))), 1)

    @property
    def spec(self) -> dict:
        """What determines the games."""
        return {"models": self.models.key, "private": store.fingerprint(self.private), "scratch": self.scratch.key,
                "forgotten": self.forgotten.key, "views": [view.fingerprint for view in self.views]}


def forgetting(config: TrainConfig, epochs: int, learning_rate: float) -> TrainConfig:
    """A target's recipe with other epochs and rate, for its further training."""
    return replace(config, epochs=epochs, learning_rate=learning_rate, schedule="constant", seed=config.seed + 2)


def on_table(name: str, epochs: int, learning_rate: float) -> Games:
    """The games of a shared ensemble of `TABLES`, at the size of the paper's.

    Args:
        epochs, learning_rate: of forgetting.
    """
    models = ensembles.get(choose("tables", name, TABLES))
    repeats = len(models) // (1 + ensembles.REFERENCES)
    _, private = membership.calibration_splits(len(models.records), repeats, ensembles.REFERENCES)
    paper = PAPER_ROWS[models.records.name]
    title = paper.removeprefix("German ") + (", softmax twice" if models.config.loss == "double_softmax" else "")
    return Games(title, paper, f"{repeats} splits of one pool", models, private, ~private,
                 forgetting(models.config, epochs, learning_rate))


def on_images(records: Dataset, size: int, games: int, config: TrainConfig, epochs: int, learning_rate: float,
              views: int = 0, seed: int = 0) -> Games:
    """Games on images, each on records of its own while there are enough.

    Args:
        records: to draw from.
        size: records of a game; a target is trained on a quarter of them.
        games: how many. config: of targets and references.
        epochs, learning_rate: of forgetting.
        views: times that each record is augmented with the recipe's augmentation when it is attacked; 0 takes it as it is.

    Raises:
        MiaError: more records asked for than there are, or too few for a public and a private half.
    """
    if not 8 <= size <= len(records):
        raise MiaError(f"size = {size} records of a game: {records.name} has {len(records)}, and 8 are the least that leave "
                       "public records besides members and non-members.")
    rng = np.random.default_rng([seed, size])
    if apart := games * size <= len(records):
        drawn = rng.permutation(len(records))[:games * size].reshape(games, size)
    else:
        drawn = np.stack([rng.permutation(len(records))[:size] for _ in range(games)])
    used, places = np.unique(drawn, return_inverse=True)
    records, places = records.take(used), places.reshape(games, size)
    members, private = np.zeros((games, 3, len(used)), bool), np.zeros((games, len(used)), bool)
    public = private.copy()
    for g, own in enumerate(places):
        of_game, inside = membership.calibration_splits(size, 1, 2, seed + g)
        members[g][:, own], private[g, own], public[g, own] = of_game, inside[0], ~inside[0]
    models = train(records, members.reshape(3 * games, -1), config, label=f"targets of {records.name}")
    name = TITLES.get(records.name, records.name) + ("" if config.augmentation == "none" else ", augmented")
    paper = PAPER_ROWS.get(records.name, records.name) + ("" if config.augmentation == "none" else " (aug.)")
    covers = f"{games} games on records of their own" if apart else f"{games} splits of one pool"
    return Games(name, paper, covers, models, private, public, forgetting(config, epochs, learning_rate),
                 augmented(records, config.augmentation, views, seed))


def plan(all_games: dict[str, Games], sizes: list[int], games: int, ablated: Games, *, queries: int, epsilons: list[float],
         shadow_shares: list[float], copies: int, stops: list[int]) -> pd.DataFrame:
    """What a run will train, and its parameters checked, before anything is trained.

    Args:
        all_games: of Tables 1 to 3. sizes: training records of Figure 3. games: played at each of them.
        ablated: of Figures 5 and 6. queries: of the label-only attack. epsilons: of Figure 6.
        shadow_shares, copies: of Figure 5. stops: epochs at which references are stopped by hand.

    Returns:
        DataFrame, a row a kind of model: exhibit, models, members of each, epochs.

    Raises:
        MiaError: a budget too small for one step of the label-only attack, an epsilon that is none, a shadow set that leaves
            no public record.
    """
    for share in shadow_shares:
        check_range("shadow_shares", share, 0.01, 0.99)
    for epsilon in epsilons:
        dp.Privacy(epsilon)
    rows = []
    for name, one in all_games.items():
        boundary.check_budget(queries, int(np.prod(one.models.records.shape)))
        members, config = int(one.models.members[0].sum()), one.models.config
        rows += [{"exhibit": f"Tables 1 to 3, {name}", "models": len(one.models), "members of each": members,
                  "epochs": config.epochs},
                 {"exhibit": f"references, stopped, {name}", "models": len(one), "members of each": members,
                  "epochs": f"at most {config.epochs}"},
                 {"exhibit": f"forgetting, {name}", "models": len(one), "members of each": members,
                  "epochs": f"at most {one.forgetting.epochs}"},
                 {"exhibit": f"rehearsals, {name}", "models": 4 * len(one), "members of each": members // 2,
                  "epochs": f"at most {max(config.epochs, one.forgetting.epochs)}"}]
    rows += [{"exhibit": "Figure 3", "models": 9 * games, "members of each": f"{n}, rehearsals {n // 2}",
              "epochs": rows[-1]["epochs"]} for n in sizes]
    rows += [{"exhibit": f"references, stopped by hand, {name}", "models": len(one) * len(stops),
              "members of each": int(one.models.members[0].sum()), "epochs": ", ".join(map(str, stops))}
             for name, one in stoppable(all_games).items()]
    rows.append({"exhibit": f"Figure 5, {ablated.name}", "models": len(ablated) * copies * len(shadow_shares),
                 "members of each": ", ".join(f"{100 * share:g} %" for share in shadow_shares) + " of public",
                 "epochs": f"at most {ablated.forgetting.epochs}"})
    return pd.DataFrame(rows)


# --------------------------------------------------------------------------------------------------- the main experiment


def raw_scores(models: Ensemble, views: tuple[Dataset, ...], judged: np.ndarray) -> dict[str, np.ndarray]:
    """Eqs. 1 to 3, [M, N] where `judged`, averaged over views: minus the loss, minus the gradient's norm, the confidence."""
    functions = {"loss": signals.loss, "gradient_norm": signals.gradient_norm, "confidence": signals.least_loss}
    return {name: -np.mean([signal(models, view, judged=judged) for view in views], 0, dtype=np.float64)
            for name, signal in functions.items()}


def calibrated(score: np.ndarray, references: np.ndarray, own: str = "refuse") -> np.ndarray:
    """Scores [T, n] of targets, calibrated by `attacks.calibration.calibrate`, in the type of the scores: what is equal in the
    precision of single losses ties.

    Args:
        score: of each target, [T, n]. references: of its references, [T, n] for one, or [T, R, n].
        own: as for `calibrate`; "keep" where references are copies of the target.
    """
    each = [calibration.calibrate(*pair, own=own) for pair in zip(score, references, strict=True)]
    return np.stack(each).astype(score.dtype)


def scores(games: Games) -> dict[tuple[str, str], np.ndarray]:
    """Every attack of `ATTACKS` on the private records, [T, N']."""
    views, found = games.views or (games.models.records,), {}
    target, scratch, forgotten = (
        {score: _of(one, games.private) for score, one in raw_scores(models, views, games.private).items()}
        for models in (games.attacked, games.scratch, games.forgotten))
    for score, own in target.items():
        found[score, "original"] = own
        found[score, "scratch"] = calibrated(own, scratch[score])
        found[score, "forgetting"] = calibrated(own, forgotten[score], own="keep")
    return found


@dataclass(frozen=True, eq=False)
class Play:
    """All attacks of Tables 2 and 3 on all targets.

    Attributes:
        members: bool [T, N']. correct: whether the target classifies a record right, bool [T, N'].
        scores: of `ATTACKS`, [T, N']. thresholds: of `ATTACKS`, [T], the best of the rehearsal.
        accuracy: [T] of targets on members, "train", and non-members, "test"; of what calibrates them on the private half,
            "scratch" and "forgetting".
        epoch: [T], at which the reference from scratch was best.
        reference_loss: [T, R, N'] of references that were trained to the end.
    """

    members: np.ndarray
    correct: np.ndarray
    scores: dict[tuple[str, str], np.ndarray]
    thresholds: dict[tuple[str, str], np.ndarray]
    accuracy: dict[str, np.ndarray]
    epoch: np.ndarray
    reference_loss: np.ndarray


def play_of(kept: dict[str, np.ndarray]) -> Play:
    """A play from its kept arrays: "SCORE.VARIANT", "SCORE.VARIANT.threshold", "SIDE_accuracy", and the rest."""
    return Play(scores={attack: kept[".".join(attack)] for attack in ATTACKS},
                thresholds={attack: kept[".".join(attack) + ".threshold"] for attack in ATTACKS},
                accuracy={side: kept[f"{side}_accuracy"] for side in ("train", "test", "scratch", "forgetting")},
                **{name: kept[name] for name in ("members", "correct", "epoch", "reference_loss")})


def play(games: Games) -> Play:
    """All attacks of Tables 2 and 3 on all targets, kept in the store."""
    return play_of(store.study("calibration.play", {**games.spec, "rehearsal": games.rehearsal.spec}, partial(_play, games)))


def _play(games: Games) -> dict[str, np.ndarray]:
    records, judged, own = games.models.records, games.private, games.members[:, 0]
    right = {name: signals.correctness(models, records, judged)
             for name, models in (("target", games.attacked), ("scratch", games.scratch), ("forgetting", games.forgotten))}
    found, inside = scores(games), _of(games.rehearsal.members[:, 0], games.rehearsal.private)
    # Where a loss has its smallest value at zero, float32 keeps the order of records; elsewhere it does not.
    if games.models.config.loss not in ("brier", "double_softmax"):
        found = {attack: score.astype(np.float32) for attack, score in found.items()}
    best = {attack: [metrics.best_threshold(*pair) for pair in zip(rehearsed, inside, strict=True)]
            for attack, rehearsed in scores(games.rehearsal).items()}
    return {**{".".join(attack): score for attack, score in found.items()},
            **{".".join(attack) + ".threshold": np.array(of_targets) for attack, of_targets in best.items()},
            "members": _of(own, judged), "correct": _of(right["target"], judged),
            "train_accuracy": _mean(right["target"], own), "test_accuracy": _mean(right["target"], judged & ~own),
            "scratch_accuracy": _mean(right["scratch"], judged), "forgetting_accuracy": _mean(right["forgetting"], judged),
            "epoch": np.array([1 + int(games.scratch.arrays(t)["validation"].argmax()) for t in range(len(games))]),
            "reference_loss": reference_losses(games)}


def reference_losses(games: Games) -> np.ndarray:
    """Losses [T, R, N'] of the private records under references that were trained to the end."""
    count = games.references
    numbers = [target + 1 + r for target in games.targets for r in range(count)]
    judged = np.repeat(games.private, count, 0)
    loss = signals.loss(games.models.part(numbers), games.models.records, judged)
    return _of(loss, judged).reshape(len(games), count, -1)


def _of(values: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """[T, N] at bool [T, N] with equally many in each row -> [T, N']."""
    return np.stack([row[inside] for row, inside in zip(values, judged, strict=True)])


def _mean(values: np.ndarray, of: np.ndarray) -> np.ndarray:
    return np.array([row[inside].mean() for row, inside in zip(values, of, strict=True)])


def per_target(played: Play, attack: tuple[str, str], metric: str) -> np.ndarray:
    """A number for each target, [T].

    Args:
        attack: `GAP`, of which every number is its AUC, or one of `ATTACKS`.
        metric: of `metrics.evaluate`, or "accuracy", at the threshold from the rehearsal on public records, or
            "default_accuracy", at zero.
    """
    members = played.members
    if attack == GAP:
        return metrics.auc(baselines.gap(played.correct), members)
    score = played.scores[attack]
    if metric == "accuracy":
        return metrics.auc(score >= played.thresholds[attack][:, None], members)
    if metric == "default_accuracy":
        return metrics.auc(score > 0, members)
    if metric == "auc":
        return metrics.auc(score, members)
    return metrics.tpr_at_fpr(score, members, float(metric.partition("=")[2]))


def over(values: np.ndarray, covers: str, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Interval:
    """Mean and Student t interval over plays; one play has no interval.

    Args:
        values: [T].
        covers: what varies between plays.
        bounds: range of the quantity.
    """
    values = np.asarray(values, float)
    if len(values) < 2:
        raise MiaError(f"{len(values)} play has no interval: at least 2 are needed.")
    return t_interval(values, covers=covers, bounds=bounds)


# -------------------------------------------------------------------------------------------- which reference, how many


def reference_aucs(played: Play) -> np.ndarray:
    """AUC [R, T] of the loss calibrated with the first 1, ..., R references that were trained to the end."""
    own, references = (one.astype(np.float64) for one in (played.scores["loss", "original"], -played.reference_loss))
    return np.array([metrics.auc(calibrated(own, references[:, :r]), played.members)
                     for r in range(1, references.shape[1] + 1)])


def softmin_scores(played: Play, references: int) -> np.ndarray:
    """Score [T, N'] with the soft minimum of the references' losses in the place of their mean."""
    losses = played.reference_loss[:, :references].astype(np.float64)
    return np.stack([bayes.mast(-own, of_references, np.zeros(of_references.shape, bool), "softmin")
                     for own, of_references in zip(played.scores["loss", "original"], losses, strict=True)])


def whole_public_half(games: Games) -> np.ndarray:
    """AUC [T] of the loss calibrated with a reference trained to the end on all public records; kept in the store."""
    models = train(games.models.records, games.public, replace(games.models.config, seed=games.models.config.seed + 3),
                   label=f"references on all public records ({games.name})")

    def compute() -> dict[str, np.ndarray]:
        played, loss = play(games), signals.loss(models, models.records, games.private)
        score = calibrated(played.scores["loss", "original"], -_of(loss, games.private))
        return {"auc": metrics.auc(score, played.members)}

    return store.study("calibration.whole_public_half", {**games.spec, "reference": models.key}, compute)["auc"]


@dataclass(frozen=True, eq=False)
class Stopping:
    """The loss calibrated with one reference that was stopped after so many epochs, whatever it was worth there.

    Attributes:
        epochs: E of them, rising.
        members: bool [T, N'].
        scores: calibrated, [E, T, N'].
        original: minus the loss of the target, [T, N'].
    """

    epochs: list[int]
    members: np.ndarray
    scores: np.ndarray
    original: np.ndarray

    @property
    def auc(self) -> np.ndarray:
        """[E, T]."""
        return np.array([metrics.auc(score, self.members) for score in self.scores])


def stoppable(all_games: dict[str, Games]) -> dict[str, Games]:
    """The first two games on tables, whose rate is constant: there a short training is the beginning of a long one."""
    tables = [name for name, one in all_games.items() if one.models.config.schedule == "constant"]
    return {name: all_games[name] for name in tables[:2]}


def stopping(games: Games, epochs: list[int]) -> Stopping:
    """The loss calibrated with references stopped by hand: `Games.scratch` after each of these epochs; kept in the store.

    Args:
        games: with a constant learning rate. epochs: from 1 to those of the target.

    Raises:
        MiaError: a schedule under which a short training is not the beginning of a long one, or an epoch that is none.
    """
    config = games.models.config
    if config.schedule != "constant":
        raise MiaError(f"schedule = {config.schedule!r}: a training of fewer epochs is not the beginning of a longer one. "
                       "Give games with a constant learning rate.")
    epochs = sorted(set(epochs))
    for count in epochs:
        check_range("epochs", count, 1, config.epochs)
    references = [train(games.models.records, games.calibrating, replace(config, epochs=count, seed=config.seed + 1),
                        label=f"references stopped after {count} epochs ({games.name})") for count in epochs]

    def compute() -> dict[str, np.ndarray]:
        judged, members = games.private, _of(games.members[:, 0], games.private)
        own = -_of(signals.loss(games.attacked, games.models.records, judged), judged)
        return {"members": members, "original": own, "scores": np.stack([
            calibrated(own, -_of(signals.loss(models, models.records, judged), judged)) for models in references])}

    spec = {"targets": games.attacked.key, "private": store.fingerprint(games.private),
            "references": [models.key for models in references]}
    return Stopping(epochs, **store.study("calibration.stopping", spec, compute))


def law(played: Play) -> dict[str, float]:
    """Spread of difficulty, noise of training and gain of members, from this play's own losses.

    In the model s(target, z) = -D + gain * member + noise and s(reference, z) = -D + noise, with all spreads normal.

    Returns:
        "difficulty" and "noise", standard deviations; "gain"; and what they predict: "original", and "calibrated" [R], AUCs.
    """
    from mia_lib.papers.calibration import theory

    references, members = played.reference_loss.astype(np.float64), played.members
    count = references.shape[1]
    noise = references.var(1, ddof=1).mean() if count > 1 else np.nan
    difficulty = max(references.mean(1).var(1).mean() - noise / count, 0.0)
    excess = calibrated(played.scores["loss", "original"].astype(np.float64), -references)
    gain = np.mean([row[inside].mean() - row[~inside].mean() for row, inside in zip(excess, members, strict=True)])
    spreads = {"difficulty": float(np.sqrt(difficulty)), "noise": float(np.sqrt(noise)), "gain": float(gain)}
    return {**spreads, **theory.calibration_auc(**spreads, references=count)}


@dataclass(frozen=True, eq=False)
class MoreForgetting:
    """The loss calibrated with 1, ..., C copies of the target and S sizes of shadow set: "auc", and "accuracy" with the
    threshold that is best in other plays, [S, C, T]."""

    auc: np.ndarray
    accuracy: np.ndarray


def more_forgetting(games: Games, most: int, shares: list[float]) -> MoreForgetting:
    """The loss calibrated with up to `most` forgetful copies of the target and several sizes of shadow set (Figure 5); kept
    in the store.

    Args:
        shares: of the public records, below 1, for each a random set a copy is trained on; the rest validates.
    """
    def compute() -> dict[str, np.ndarray]:
        played, judged = play(games), np.repeat(games.private, most, 0)
        own, members, auc, accuracy = played.scores["loss", "original"], played.members, [], []
        for models in copies:
            losses = _of(signals.loss(models, models.records, judged), judged).reshape(len(games), most, -1)
            scores = [calibrated(own, -losses[:, :r], own="keep") for r in range(1, most + 1)]
            auc.append([metrics.auc(score, members) for score in scores])
            accuracy.append([metrics.rehearsed_accuracy(score, members) for score in scores])
        return {"auc": np.array(auc), "accuracy": np.array(accuracy)}

    copies = [_forgetful(games, most, share) for share in shares]
    spec = {**games.spec, "models": [models.key for models in copies], "most": most}
    return MoreForgetting(**store.study("calibration.more_forgetting", spec, compute))


def _forgetful(games: Games, most: int, share: float) -> Ensemble:
    members, validation = [], []
    for t, of_play in enumerate(games.public):
        public = np.flatnonzero(of_play)
        size = round(share * len(public))
        if not 0 < size < len(public):
            raise MiaError(f"shadow share = {share:g} of {len(public)} public records leaves {size} to train on and "
                           f"{len(public) - size} to validate: at least one of each is needed.")
        for copy in range(most):
            row = np.zeros_like(of_play)
            row[np.random.default_rng([7, t, copy]).permutation(public)[:size]] = True
            members.append(row)
            validation.append(of_play & ~row)
    return train(games.models.records, np.array(members), replace(games.forgetting, seed=games.forgetting.seed + 1),
                 validation=np.array(validation), start=(games.models, np.repeat(games.targets, most).tolist()),
                 label=f"forgetting on {100 * share:.0f} % of the public records ({games.name})")


def forgetting_curve(games: Games, epochs: list[int]) -> np.ndarray:
    """AUC [E, T] of the loss calibrated by forgetting for so many epochs, to the end; kept in the store."""
    aucs = []
    for count in epochs:
        models = train(games.models.records, games.calibrating, replace(games.forgetting, epochs=count),
                       start=(games.models, games.targets), label=f"forgetting for {count} epochs ({games.name})")

        def compute(models: Ensemble = models) -> dict[str, np.ndarray]:
            played, loss = play(games), _of(signals.loss(models, models.records, games.private), games.private)
            return {"auc": metrics.auc(calibrated(played.scores["loss", "original"], -loss, own="keep"), played.members)}

        aucs.append(store.study("calibration.forgetting_curve", {**games.spec, "copies": models.key}, compute)["auc"])
    return np.array(aucs)


# ------------------------------------------------------------------------------------------- where text and code differ


def gradient_by_entry(games: Games) -> dict[str, np.ndarray]:
    """AUC [T] of minus the gradient's largest absolute entry, "original" and calibrated from "scratch"; kept in the store."""
    def compute() -> dict[str, np.ndarray]:
        records, judged, members = games.models.records, games.private, _of(games.members[:, 0], games.private)
        own, reference = (-_of(signals.gradient_norm(models, records, np.inf, judged=judged), judged).astype(float)
                          for models in (games.attacked, games.scratch))
        return {"original": metrics.auc(own, members), "scratch": metrics.auc(calibrated(own, reference), members)}

    return store.study("calibration.gradient_by_entry", games.spec, compute)


def released_gradient(games: Games) -> np.ndarray:
    """AUC [T] of what the released code computes for an infinity norm: minus the largest entry, its sign kept, of the
    target's gradient *less the reference's*; kept in the store. It is no difference of two scores.

    In float32, as there. Where networks are sure of many records, the order of the smallest of these numbers is that of their
    rounding, and the AUC a processor's own, by up to a thousandth."""
    def compute() -> dict[str, np.ndarray]:
        records, config, aucs = games.models.records, games.models.config, []
        for t, judged in enumerate(games.private):
            pair = [signals.record_gradients(models.model(t), records.x[judged], records.y[judged], config.loss)
                    for models in (games.attacked, games.scratch)]
            largest = np.concatenate([(own - reference).max(1) for own, reference in zip(*pair, strict=True)])
            aucs.append(metrics.auc(-largest, games.members[t, 0, judged]))
        return {"auc": np.array(aucs)}

    return store.study("calibration.released_gradient", games.spec, compute)["auc"]


def drops_out(games: Games) -> bool:
    """Whether the networks have dropout."""
    records, config = games.models.records, games.models.config
    network = architectures.build(config.architecture, records.shape, len(records.classes), seed=0)  # no trained one is needed
    return any(isinstance(one, architectures.Dropout | torch.nn.Dropout) for one in network.modules())


def with_dropout(games: Games) -> dict[str, np.ndarray]:
    """AUC [T] of the loss, "original" and calibrated from "scratch", of models left in training mode; kept in the store."""
    def compute() -> dict[str, np.ndarray]:
        records, judged, both = games.models.records, games.private, []
        for models in (games.attacked, games.scratch):
            results = signals.map_models(_training_mode_task, models, {"kind": "loss_in_training_mode"},
                                         "losses in training mode", records=records, judged=judged)
            both.append(np.stack([arrays["loss"] for arrays in results]).astype(np.float64))
        members = _of(games.members[:, 0], judged)
        return {"original": metrics.auc(-both[0], members), "scratch": metrics.auc(calibrated(-both[0], -both[1]), members)}

    return store.study("calibration.with_dropout", games.spec, compute)


def _training_mode_task(networks, x, labels, loss):
    [network] = networks
    how = {"device": outputs.device_of(network), "scaling": outputs.scaling_of(network, x, None)}
    with torch.no_grad():
        logits = [network.train()(outputs.inputs(x, i, i + 500, **how)).cpu().numpy() for i in range(0, len(x), 500)]
    return [{"loss": outputs.scalars(np.concatenate(logits), labels, loss)["loss"]}]


# --------------------------------------------------------------------------------------------------- label-only attacks


@dataclass(frozen=True, eq=False)
class LabelOnly:
    """Distances to the decision boundary as scores, of T' plays on N' records.

    Attributes:
        members: bool [T', N'].
        distances: signed, of the "target", of its reference from "scratch" and of the copy after "forgetting", [T', N'].
        scores: of `VARIANTS`, [T', N']. thresholds: of `VARIANTS`, [T'], the best of the rehearsal.
        queries: spent on a record, on average.
    """

    members: np.ndarray
    distances: dict[str, np.ndarray]
    scores: dict[str, np.ndarray]
    thresholds: dict[str, np.ndarray]
    queries: float


def label_only_of(kept: dict[str, np.ndarray]) -> LabelOnly:
    """From kept arrays: members, queries, distances by name, "distance.VARIANT" and "distance.VARIANT.threshold"."""
    return LabelOnly(kept["members"], {name: kept[name] for name in ("target", "scratch", "forgetting")},
                     {variant: kept[f"distance.{variant}"] for variant in VARIANTS},
                     {variant: kept[f"distance.{variant}.threshold"] for variant in VARIANTS}, float(kept["queries"]))


def label_only(games: Games, queries: int, plays: int) -> LabelOnly:
    """Table 4: distances to the decision boundary found by HopSkipJump, original and calibrated; kept in the store.

    Records that are classified wrongly have distance 0 in the original score, and the negative of the distance back to
    their label in the calibrated one, as the released code has it.

    Args:
        queries: budget a record and model. plays: of the T, how many are run.
    """
    def compute() -> dict[str, np.ndarray]:
        keep = range(min(plays, len(games)))
        out, rehearsed = (_distances(one, queries, keep) for one in (games, games.rehearsal))
        for variant in VARIANTS:
            pairs = zip(rehearsed[f"distance.{variant}"], rehearsed["members"], strict=True)
            out[f"distance.{variant}.threshold"] = np.array([metrics.best_threshold(score, member) for score, member in pairs])
        return out

    spec = {**games.spec, "rehearsal": games.rehearsal.spec, "queries": queries, "plays": plays, "most": LABEL_ONLY_RECORDS}
    return label_only_of(store.study("calibration.label_only", spec, compute))


def _distances(games: Games, queries: int, keep: range) -> dict[str, np.ndarray]:
    own = games.members[keep, 0]
    judged = label_only_records(games.private[keep], own)
    found = [boundary.distance(models.part(keep), games.models.records, queries, signed=True, judged=judged)
             for models in (games.attacked, games.scratch, games.forgotten)]
    target, scratch, forgetting = (_finite(_of(one.distance.astype(np.float64), judged)) for one in found)
    return {"members": _of(own, judged), "queries": np.array(found[0].queries[judged].mean()), "target": target,
            "scratch": scratch, "forgetting": forgetting, "distance.original": np.maximum(target, 0.0),
            "distance.scratch": calibrated(target, scratch),
            "distance.forgetting": calibrated(target, forgetting, own="keep")}


def label_only_records(private: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Which records the label-only attack judges, for it takes hundreds of queries for each; all bool [M, N]."""
    return membership.at_most(private, members, LABEL_ONLY_RECORDS, seed=11)


def _finite(distance: np.ndarray) -> np.ndarray:
    """Where no boundary was found, on either side, it is at least as far as the model's farthest that was."""
    farthest = np.where(np.isfinite(distance), np.abs(distance), 0.0).max(1, keepdims=True)
    return np.clip(distance, -farthest, farthest)


# ---------------------------------------------------------------------------------------------------------------- DP-SGD


def check_private_batch(games: Games, size: int) -> None:
    """Refuse a batch of `private_training` larger than a training set, before anything is trained."""
    check_range("private_batch_size", size, 1, int(games.members[:, :2].sum(-1).min()))


def private_training(games: Games, epsilons: list[float], config: TrainConfig, plays: int) -> PrivateTraining:
    """The loss attack, original and calibrated, against targets trained by DP-SGD (Figure 6); kept in the store.

    References are trained in the same private way on public records. The last row is training with the same recipe and no
    privacy.

    Args:
        epsilons: one or more; delta is one over the number of members. config: recipe. plays: how many of the games.
    """
    keep = list(range(min(plays, len(games))))
    members = games.members[keep, :2].reshape(2 * len(keep), -1)
    records = games.models.records
    banks = ladder(records, members, config, epsilons)

    def compute() -> dict[str, np.ndarray]:
        judged, own = games.private[keep], games.members[keep, 0]
        score = [-signals.loss(models, records).astype(np.float64) for models in banks]
        right = [signals.correctness(models, records)[::2] for models in banks]
        return {"members": _of(own, judged),
                "original": np.stack([_of(one[::2], judged) for one in score]),
                "scratch": np.stack([calibrated(_of(one[::2], judged), _of(one[1::2], judged)) for one in score]),
                **spent(banks),
                "train": np.stack([_mean(one, own) for one in right]),
                "test": np.stack([_mean(one, judged & ~own) for one in right])}

    spec = {"private": store.fingerprint(games.private), "models": [models.key for models in banks]}
    kept = store.study("calibration.private_training", spec, compute)
    return PrivateTraining.of(kept, ("original", "scratch"))


# ----------------------------------------------------------------------------------------------- the ratio of members


def at_ratio(played: Play, attack: tuple[str, str], others: int, seed: int = 0) -> pd.DataFrame:
    """Accuracy with one member to `others` non-members, members left out at random (Figure 4).

    Returns:
        DataFrame, a row a target: accuracy at the threshold from the rehearsal, at the best threshold for the records judged,
        and of calling everybody a non-member.
    """
    rng, rows = np.random.default_rng(seed), []
    for t, (score, member) in enumerate(zip(played.scores[attack], played.members, strict=True)):
        inside, outside = np.flatnonzero(member), np.flatnonzero(~member)
        kept = np.concatenate([rng.permutation(inside)[:max(1, len(outside) // others)], outside])
        share = member[kept].mean()
        fpr, tpr, _ = metrics.roc_curve(score[kept], member[kept])
        called = score[kept] >= played.thresholds[attack][t]
        rows.append({"rehearsed": (called == member[kept]).mean(),
                     "best": (share * tpr + (1 - share) * (1 - fpr)).max(), "nobody": 1 - share})
    return pd.DataFrame(rows)


def coincidences(played: Play) -> dict[str, float]:
    """How far calibration is from attacks that it must equal.

    Returns:
        name -> largest difference: of scores from MAST with the mean over OUT references; of ranks (as a share of all) from
        offline LiRA on minus the loss with one variance for all records.
    """
    mast, lira, originals = 0.0, 0.0, played.scores["loss", "original"].astype(np.float64)
    for own, references in zip(originals, played.reference_loss.astype(np.float64), strict=True):
        out = np.zeros(references.shape, bool)
        calibrated = calibration.calibrate(own, -references)
        mast = max(mast, np.abs(calibrated - bayes.mast(-own, references, out, "mean_out")).max())
        offline = baselines.lira_offline(own, -references, out, fixed_variance=True)
        differ = offline < 0  # beyond 38 standard deviations its score is 0
        ranks = rankdata(calibrated[differ]), rankdata(offline[differ])
        lira = max(lira, np.abs(ranks[0] - ranks[1]).max() / differ.sum())
    return {"MAST, mean out": float(mast), "LiRA offline, fixed variance": float(lira)}
