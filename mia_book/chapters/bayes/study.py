"""Results of the Bayes-optimal chapter (Sablayrolles et al. 2019, section 6): tidy frames, computed from what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import expit, gammaln

from mia_book.chapters.bayes import theory
from mia_book.chapters.bayes.measure import design, three_way_split
from mia_book.evidence import settings
from mia_book.evidence.results import NOT_RUN
from mia_book.evidence.settings import Attack
from mia_lib import metrics, signals
from mia_lib.attacks import baselines, bayes, calibration, registry
from mia_lib.errors import MiaError
from mia_lib.game import Game, View
from mia_lib.metrics import by_repetition, by_target
from mia_lib.published import Bank

METRICS = ("auc", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001")
PAPER_AUGMENTATIONS = ("none", "shift", "crop")  # of Table 3, from weak to strong


# -------------------------------------------------------------------------- Table 1: logistic regression on features


def logistic_loss(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Cross-entropy of each record in nats, [N]; y bool."""
    return np.logaddexp(0.0, -(2 * y.astype(float) - 1) * (x @ theta))


def logistic_gradients(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Gradient of each record's loss, [N, P]."""
    return (expit(x @ theta) - y)[:, None] * x


def logistic_hessian(theta: np.ndarray, x: np.ndarray, c: float) -> np.ndarray:
    """Hessian [P, P] of the summed loss and the penalty ||theta||^2 / (2 C)."""
    p = expit(x @ theta)
    return (x * (p * (1 - p))[:, None]).T @ x + np.eye(x.shape[1]) / c


def table_1(
    features: np.ndarray, labels: np.ndarray, fits: Mapping[int, Bank], seed: int = 0
) -> pd.DataFrame:
    """The games of Table 1: a row for each n, attack, metric and split.

    Args:
        features: [N, F]. labels: bool [N]. fits: n -> `measure.table1` at that n. seed: of the first split.

    Returns:
        study "table 1", n; attacks "0-1", "MALT", "MATT", "calibrated loss", "noise", and at the largest n "Eq. 39"; metrics
        of ranking, "rehearsed_accuracy" (threshold from other splits), at the largest n "cross_validated_accuracy", and
        "train_accuracy" and "validation_accuracy" of "model".
    """
    x, frames = design(features), []
    for n, fit in fits.items():
        scores, accuracy = _play(x, labels, n, fit, seed, both_terms=n == max(fits))
        members = np.tile(np.arange(n) < n // 2, (len(fit), 1))
        values = {
            "model": accuracy,
            "noise": {"balanced_accuracy": np.full(len(fit), peak_of_noise(n))},
        }
        for attack, score in scores.items():
            names = ["auc"]
            if attack in ("MALT", "MATT"):
                names += ["balanced_accuracy", "average_precision", "average_precision_non_members"]
                values[attack] = {"rehearsed_accuracy": metrics.rehearsed_accuracy(score, members)}
            if attack == "MATT" and n == max(fits):
                values[attack]["cross_validated_accuracy"] = cross_validated_accuracy(
                    score, members
                )
            frames.append(
                by_target({attack: score}, members, names, shared=False, study="table 1", n=n)
            )
        frames.append(by_repetition(values, study="table 1", n=n))
    return pd.concat(frames, ignore_index=True)


def _play(
    x: np.ndarray, y: np.ndarray, n: int, fit: Bank, seed: int, both_terms: bool
) -> tuple[dict, dict]:
    """Scores [S, n] by attack, with Eq. 39 if `both_terms`; and the model's accuracies [S]."""
    rows, accuracy = [], []
    for split, (theta, theta0, c) in enumerate(
        zip(fit.theta.astype(float), fit.theta0.astype(float), fit.c, strict=True)
    ):
        member_rows, other_rows, reference_rows, left = three_way_split(len(y), n, seed + split)
        judged, held_out = (
            np.concatenate([member_rows, other_rows]),
            left if len(left) else other_rows,
        )
        own = x[judged], y[judged]
        loss, loss0 = (logistic_loss(t, *own) for t in (theta, theta0))
        gradients = logistic_gradients(theta0, *own)
        correct = (x @ theta > 0) == y
        right = correct[judged]
        row = {
            "0-1": baselines.gap(right),
            "MALT": bayes.malt(loss),
            "MATT": bayes.matt(theta, theta0, gradients),
            "calibrated loss": calibration.calibrate(-loss, -loss0),
        }
        if both_terms:
            hessian = logistic_hessian(theta0, x[reference_rows], float(c))
            row["Eq. 39"] = row["MATT"] + bayes.matt_second_term(gradients, hessian)
        rows.append(row)
        accuracy.append((right[: n // 2].mean(), correct[held_out].mean()))
    scores = {attack: np.array([row[attack] for row in rows]) for attack in rows[0]}
    train, validation = np.transpose(accuracy)
    return scores, {"train_accuracy": train, "validation_accuracy": validation}


def cross_validated_accuracy(scores: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Balanced accuracy within each game [T] of scores [T, N], with the threshold chosen on the other nine of ten folds of its
    records, each with its share of the members, bool [T, N], and of the non-members."""
    rng, accuracy = np.random.default_rng(0), np.empty(len(scores))
    for t, (score, member) in enumerate(zip(scores, members, strict=True)):
        fold, called = np.empty(len(score), int), np.empty(len(score), bool)
        for side in (member, ~member):
            fold[side] = rng.permutation(np.arange(side.sum()) % 10)
        for k in range(10):
            called[fold == k] = score[fold == k] >= metrics.best_threshold(
                score[fold != k], member[fold != k]
            )
        accuracy[t] = metrics.auc(called, member)
    return accuracy


def peak_of_noise(n: int) -> float:
    """Mean peak accuracy of scores that know nothing, for m = n / 2 members and as many
    non-members: the gain from choosing the threshold on the records that are judged. At the peak,
    the true minus the false positive rate is the one-sided statistic of Kolmogorov and Smirnov,
    which reaches k / m with probability (2m over m + k) / (2m over m)."""
    m, k = n // 2, np.arange(1, n // 2 + 1)
    reached = np.exp(2 * gammaln(m + 1) - gammaln(m + k + 1) - gammaln(m - k + 1))
    return float(0.5 + reached.sum() / (2 * m))


# ------------------------------------------------------------------------------------------- Table 2: a bank of small networks


ATTACKS = {
    "MALT": "MALT",
    "MAST": "MAST (best split)",
    "MAST (mean out)": partial(registry.by_names, bayes.mast, estimator="mean_out"),
    "MAST (softmin), T = 1": "MAST (softmin)",
    "MAST (softmin)": lambda view: registry.score(
        "MAST (softmin)", view, **view.rehearse("MAST (softmin)", settings.REHEARSALS)
    ),
    "LiRA": "LiRA",
}
IN_SETTINGS = {
    "MALT": Attack("MALT"),
    "MAST": Attack("MAST (best split)"),
    "MAST (softmin)": Attack("MAST (softmin)", learned=True),
    "LiRA": Attack("LiRA"),
}


MEMORISED = "curvature/memorised"  # networks that know their images of CIFAR-100 by heart


def title_of(name: str) -> str:
    """Name of a published bank in figures and tables of settings."""
    return "cifar100-by-heart" if name == MEMORISED else name.removeprefix("bank/")


def worst_fit(bank: Bank) -> dict[str, float]:
    """The model with the highest mean loss on its own members: its number, "model", its "accuracy" and "loss" on them, and the
    "median loss" of all models."""
    members, loss = bank.members, signals.loss_of(bank.margin.astype(float))
    losses = np.array([row[own].mean() for row, own in zip(loss, members, strict=True)])
    model = int(losses.argmax())
    return {
        "model": model,
        "accuracy": float(bank.correct[model][members[model]].mean()),
        "loss": float(losses[model]),
        "median loss": float(np.median(losses)),
    }


def lead(
    frame: pd.DataFrame, attack: str, other: str, data: str, references: int
) -> metrics.Interval | str:
    """By how many points an attack is more accurate than another in a setting, or "not run"."""
    rows = frame[(frame["data"] == data) & (frame["references"] == references)]
    if rows.empty:
        return NOT_RUN
    ahead, behind = (metrics.estimate(rows, name, "accuracy") for name in (attack, other))
    return (100 * (ahead - behind)).interval()


def lead_without(bank: Bank, model: int, targets: int, references: int) -> metrics.Interval | str:
    """By how many points MAST is more accurate than MALT in the setting of a bank without a model
    and its partner, or "not run" where too few models are left."""
    kept = np.flatnonzero(np.arange(len(bank)) // 2 != model // 2)
    if references > len(kept) - 2:
        return NOT_RUN
    arrays = {name: array[kept] for name, array in bank.arrays.items()}
    rest = {"rest": Bank(bank.name, bank.parameters, arrays, bank.manifests)}
    attacks = {name: IN_SETTINGS[name] for name in ("MAST", "MALT")}
    frame, _ = settings.attack_banks(rest, [references], targets, attacks, ("accuracy",))
    return lead(frame, "MAST", "MALT", "rest", references)


def thresholds(game: Game, attack: str | Callable) -> np.ndarray:
    """The threshold against each target that is best against the attacker's own models, [T].

    Raises:
        MiaError: no pair of references is left to rehearse on.
    """
    if game.references < 4:
        raise MiaError(
            f"{game.references} references leave none to rehearse with: at least 4 are needed."
        )
    return np.array([settings.threshold(attack, view) for view in game])


def attack_bank(
    bank: Bank, targets: int, references: int, draws: int = 100
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """The attacks of Table 2 on the first models of complementary pairs, on the records that models were trained on.

    Args:
        targets: models that are attacked, one a pair. references: other models that an attack may use, the first ones, even.

    Returns:
        a row for each attack, metric and target, with "accuracy" among the metrics (balanced, of calls whose threshold comes
        from the attacker's own models); and attack -> scores [T, N].

    Raises:
        MiaError: more targets than pairs, or more references than models of other pairs.
    """
    game = Game.of(bank, targets, references, order="first")
    correct, members, target_members = (
        bank.correct[:, bank.trained],
        game.members,
        game.target_members,
    )
    scores, called = game.scores(ATTACKS), {"0-1": correct[list(game.targets)]}
    for name, attack in ATTACKS.items():
        called[name] = scores[name] >= thresholds(game, attack)[:, None]
    gap = {"0-1": baselines.gap(called["0-1"])}
    frames = [
        by_target(scores, target_members, METRICS, draws=draws, study="table 2"),
        by_target(gap, target_members, ("auc",), draws=draws, study="table 2"),
        by_target(
            {name: calls.astype(float) for name, calls in called.items()},
            target_members,
            ("auc",),
            draws=draws,
            study="table 2",
        ).assign(metric="accuracy"),
        by_repetition(
            {
                "model": {
                    "member_accuracy": correct[members].mean(),
                    "other_accuracy": correct[~members].mean(),
                }
            },
            study="table 2",
        ),
    ]
    return pd.concat(frames, ignore_index=True), gap | scores


def by_temperature(banks: Mapping[str, Bank], targets: int, references: int) -> pd.DataFrame:
    """The soft minimum at each temperature that the registry has, by which its rows are named, beside MALT and MAST, on each
    bank: the tidy frame of balanced accuracies, each with its best threshold, and of rates, with a column data."""
    attacks = {
        f"{temperature:g}": partial(registry.score, "MAST (softmin)", temperature=temperature)
        for temperature in registry.TEMPERATURES
    }
    names = ("balanced_accuracy", "tpr_at_fpr=0.01")
    return pd.concat(
        [
            Game.of(bank, targets, min(references, len(bank) - 2), settings.JUDGED).frame(
                {**attacks, "MALT": "MALT", "MAST": "MAST (best split)"}, names, 10, data=name
            )
            for name, bank in banks.items()
        ],
        ignore_index=True,
    )


def shadow_attack(bank: Bank, shadow: Bank, draws: int = 100) -> pd.DataFrame:
    """Study "shadow models": shadow models beside MALT and 0-1, on the same records, those whose
    outputs are published.

    Args:
        bank: `measure.table2`. shadow: `measure.table2_shadow` of the same models.
    """
    asked = np.arange(shadow.score.shape[1])
    game = Game.on(bank, asked, asked[:0], range(0, 2 * len(shadow), 2), len(bank) - 2, "first")
    called = {
        "Shadow models": shadow.score >= 0.5,
        "0-1": bank.correct[list(game.targets)][:, asked],
        "MALT": game.scores(["MALT"])["MALT"] >= thresholds(game, "MALT")[:, None],
    }
    frames = [
        by_target(
            {name: one.astype(float) for name, one in called.items()},
            shadow.members,
            ("auc",),
            draws=draws,
            study="shadow models",
        ).assign(metric="accuracy"),
        by_target(
            {"Shadow models": shadow.score},
            shadow.members,
            METRICS,
            draws=draws,
            study="shadow models",
        ),
    ]
    return pd.concat(frames, ignore_index=True)


def complement(bank: Bank, targets: int, draws: int = 100) -> pd.DataFrame:
    """Study "complement": what a target's complement among the references gives away. AUC of
    counting references, which looks at no loss, and of two attacks, with the complement put aside
    and kept, by the column `complement`."""
    game = Game.of(bank, targets, len(bank) - 2, order="first")
    attacks = {
        "counting": lambda view: -view.reference_members.sum(0).astype(float),
        "MAST": "MAST (best split)",
        "LiRA": "LiRA",
    }
    kept = [View(game, target, np.delete(np.arange(len(bank)), target)) for target in game.targets]
    scores = {
        "put aside": game.scores(attacks),
        "kept": {
            name: np.stack([registry.score(attack, view) for view in kept])
            for name, attack in attacks.items()
        },
    }
    return pd.concat(
        [
            by_target(
                each, game.target_members, ("auc",), draws=draws, study="complement", complement=way
            )
            for way, each in scores.items()
        ],
        ignore_index=True,
    )


def share_of_false_alarms(loss: np.ndarray, members: np.ndarray, threshold: float) -> float:
    """Of the errors of one threshold on the losses of one target, [N], the share that are non-members below it."""
    called = loss < threshold
    return float((called & ~members).sum() / max(1, (called != members).sum()))


def mean_losses(bank: Bank) -> pd.DataFrame:
    """Table with a row for each record: `inside` and `outside`, its mean loss under models that
    were trained on it and under those that were not; `own`, the threshold that splits its losses
    best."""
    members, loss = bank.members[:, bank.trained], signals.loss_of(bank.margin[:, bank.trained])
    return pd.DataFrame(
        {
            "inside": np.average(loss, 0, members),
            "outside": np.average(loss, 0, ~members),
            "own": bayes.best_split(loss, members),
        }
    )


# ------------------------------------------------------------------------------------- Table 3: models under augmentation


def table_3(banks: Mapping[tuple[str, str], Bank], draws: int = 100) -> pd.DataFrame:
    """Study "table 3": "MALT", its threshold from the models of other pairs, and "0-1".

    Args:
        banks: (network, one of `PAPER_AUGMENTATIONS`) -> `measure.table3`, all of whose models are attacked.
    """
    frames = []
    for (network, augmentation), bank in banks.items():
        game = Game.on(bank, bank.trained, bank.untrained, range(len(bank)), len(bank) - 2)
        members, correct, called = game.members, bank.correct[:, bank.trained], []
        for view in game:
            reference_loss, reference_members = view.references("loss")
            threshold = metrics.best_threshold(
                bayes.malt(reference_loss).ravel(), reference_members.ravel()
            )
            called.append(bayes.malt(view.own("loss")) >= threshold)
        scores = {"MALT": np.array(called, float), "0-1": baselines.gap(correct)}
        where = {"study": "table 3", "network": network, "augmentation": augmentation}
        fit = {
            "member_accuracy": correct[members].mean(),
            "other_accuracy": correct[~members].mean(),
        }
        frames += [
            by_target(scores, members, ("auc",), draws=draws, **where).assign(metric="accuracy"),
            by_repetition({"model": fit}, **where),
        ]
    return pd.concat(frames, ignore_index=True)


# ---------------------------------------------------------------------------------------------- Figure 1 and the theorems


def figure_1(played: theory.Games) -> pd.DataFrame:
    """Study "figure 1": AUC of MALT and MAST in each Gaussian game."""
    return by_target(
        {"MALT": played.malt, "MAST": played.mast},
        played.members,
        ("auc",),
        shared=False,
        study="figure 1",
    )


TEMPERATURES = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0)
# n, temperature and prior of the worlds that are summed over
WORLDS = ((2, 0.2, 0.5), (3, 0.7, 0.5), (4, 1.0, 0.3))
ROUNDING = 1e-9


def theorems(seed: int = 0, worlds: int = 300) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both theorems and both properties put to the test where every probability is a finite sum.

    Args:
        worlds: random finite worlds for each prior and for the temperatures.

    Returns:
        studies "theory" and "temperature"; and the table of errors, a row for each of `WORLDS`.
    """
    checks, table, wrong = [], [], 0
    loss = np.random.default_rng(seed).uniform(0, 2, (7, 3))
    # same losses on all records, and on the first record alone
    loss[1], loss[2, 0] = loss[0], loss[0, 0]
    for n, temperature, prior in WORLDS:
        world = theory.theorem_one(theory.FiniteWorld(loss, n, temperature, prior))
        unmoved = theory.theorem_one(
            theory.FiniteWorld(np.hstack([loss, np.ones((7, 1))]), n, temperature, prior)
        )
        sure = np.abs(world["score"]) > ROUNDING  # at zero, rounding would decide
        wrong += int(((world["score"] > 0) != (world["given_setting"] > prior))[sure].sum())
        wrong += int((np.abs(unmoved["given_setting"][..., -1] - prior) > ROUNDING).sum())
        truth = world["truth"]
        checks.append(
            max(np.abs(world["ratio_minus_score"]).max(), np.abs(truth[0] - truth[1]).max())
        )
        table.append(
            {
                "n": n,
                "T": temperature,
                "prior": prior,
                "Theorem 1": np.abs(world["theorem"] - truth).max(),
                "Theorem 2": np.abs(world["ratio_minus_score"]).max(),
                "as printed": np.abs(world["prior_law"] - truth).max(),
                "same loss on it": np.abs(truth[0, 0] - truth[2, 0]),
                "on all": np.abs(truth[0] - truth[1]).max(),
            }
        )
    accuracy = theory.temperature_in_random_worlds(worlds, seed, TEMPERATURES)
    rises, caps = np.diff(accuracy, axis=1), theory.privacy_in_random_worlds(worlds, seed)
    frames = [
        by_repetition(
            {
                "Theorem 2": {"largest error": max(checks), "wrong signs": wrong},
                "best rule": {
                    "largest rise with temperature": max(0.0, rises.max()),
                    "worlds where it rises": (rises > ROUNDING).any(1).sum(),
                },
                "Property 1": {"largest excess": caps.property_1_excess.max()},
                "Property 2": {"largest excess": caps.property_2_excess.max()},
            },
            study="theory",
        )
    ]
    frames += [
        by_repetition(
            {"best rule": {"accuracy": accuracy[:, k]}},
            study="temperature",
            temperature=temperature,
        )
        for k, temperature in enumerate(TEMPERATURES)
    ]
    return pd.concat(frames, ignore_index=True), pd.DataFrame(table)
