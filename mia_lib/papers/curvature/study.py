"""Experiments of the input-loss-curvature chapter (Ravikumar et al. 2024, section 6).

M models in complementary halves of a pool of N records; T of them are attacked in turn, with all others but the complement as
references. Scores are higher for members, and kept as ranks within a target, on which every metric here depends alone. Arrays
[T, N] hold a row a target.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd
import torch
from scipy import stats

from mia_lib import membership, metrics, signals, store
from mia_lib.attacks import baselines, bayes, calibration
from mia_lib.attacks import curvature as attack
from mia_lib.data import Dataset
from mia_lib.data.sets import TITLES
from mia_lib.errors import MiaError, check_range
from mia_lib.metrics.interval import Interval
from mia_lib.papers.ladder import PrivateTraining, ladder, spent
from mia_lib.papers.numbers import packed_ranks
from mia_lib.signals import curvature, outputs
from mia_lib.signals.given import log_odds
from mia_lib.training import Ensemble, TrainConfig, train
from mia_lib.training import private as dp
from mia_lib.training.losses import precise_loss

# The paper's methods, in the order of its Table 1: key -> the paper's name.
PAPER = {"nll": "Curv ZO NLL", "lr": "Curv ZO LR", "lira_released": "Carlini et al. (2022)", "yeom": "Yeom et al. (2018)",
         "sablayrolles": "Sablayrolles et al. (2019)", "watson": "Watson et al. (2022)", "ye": "Ye et al. (2022)",
         "song": "Song and Mittal (2021)"}
OURS = {"log_ratio": "Curv, log ratio", "lira_top": "LiRA, largest confidence, log ratio",
        "lira_lr": "LiRA, true class, released rule", "lira": "LiRA, true class",
        "lira_fixed": "LiRA, true class, one variance", "rmia": "RMIA"}
NAMES = PAPER | OURS
FROM_SIGNALS = tuple(name for name in NAMES if name not in ("song", "rmia"))  # what `methods` gives
SQUARED = "variance for standard deviation"  # a step of `attacks.curvature.LADDERS`
COMPARED = ("nll", "lr", "log_ratio", "lira_released", "lira", "lira_fixed")  # with fewer references
# Of image and mirror image; the others see the image.
TWO_VIEWS = ("nll", "lr", "log_ratio", "lira_released", "lira_top", "lira_lr", "lira", "lira_fixed")
QUANTILE = 1e-4  # level of attack R in the released code
DELTA = 1e-5  # of DP-SGD, the paper's
POPULATION = 2000  # records outside the pool that RMIA compares with, at most


@dataclass(frozen=True)
class Bank:
    """M models of one pool, and what of them is attacked.

    Attributes:
        name: what tables call it.
        models: trained when a number of theirs is first needed.
        population: records that no model was trained on.
        game: who is trained on what, which T models are attacked, and who serves against each.
        iterations, h: probes of the curvature and their step.
    """

    name: str
    models: Ensemble
    population: Dataset
    game: membership.Bank
    iterations: int
    h: float

    @property
    def records(self) -> Dataset:
        """The pool."""
        return self.models.records

    @property
    def spec(self) -> dict:
        """What determines the numbers of a bank."""
        return {"models": self.models.key, "attacked": list(self.game.attacked), "iterations": self.iterations, "h": self.h,
                "population": self.population.fingerprint}

    @cached_property
    def signals(self) -> dict[str, np.ndarray]:
        """Signals of all models, as `signals_of` has them."""
        return signals_of(self, self.models)


def bank(records: Dataset, size: int, models: int, targets: int, config: TrainConfig, iterations: int, h: float,
         seed: int = 0) -> Bank:
    """A bank on a random pool.

    Args:
        records: to draw from. size: records of the pool; half of it trains each model.
        models: M, even. targets: T, the first ones.
        config: of all models. iterations, h: of the curvature. seed: of pool and halves.

    Raises:
        MiaError: tables, which have no mirror image; too few records, models or references.
    """
    records.mirrored()
    if not 20 <= size < len(records):
        raise MiaError(f"pool = {size} records: {records.name} has {len(records)}, of which some must stay outside; the "
                       "least is 20.")
    game = membership.bank(size, models, targets, seed)
    order = np.random.default_rng([17, seed]).permutation(len(records))
    pool, outside = records.take(order[:size]), records.take(order[size:size + POPULATION])
    name = TITLES.get(records.name, records.name)
    return Bank(name, train(pool, game.members, config, label=f"models of {name}"), outside, game, iterations, h)


def plan(banks: dict[str, Bank], sizes: Sequence[int], seeds: int, epsilons: Sequence[float], private_seeds: int,
         private: TrainConfig, steps: Sequence[float], reference_counts: Sequence[int]) -> pd.DataFrame:
    """What a run will train and ask, and its parameters checked, before anything is trained.

    Args:
        banks: of Table 1, the first also of everything else. sizes: of training sets in Figures 6 and 7, `seeds` targets each.
        epsilons: of Figure 5, `private_seeds` targets each with the recipe `private`. steps: of the comparison of estimators.
        reference_counts: fewer references.

    Returns:
        DataFrame, a row a kind of model.

    Raises:
        MiaError: a size that leaves no non-members, an epsilon or a step that is none, a number of references that leaves a
            record without two of a kind, a recipe that cannot be private.
    """
    first = next(iter(banks.values()))
    for size in sizes:
        check_range("sizes", size, 10, len(first.records) - 10)
    halves = membership.random_halves(len(first.records), private_seeds, 1000 + first.models.config.seed)
    for epsilon in epsilons:
        dp.train(first.records, halves, private, dp.Privacy(epsilon, DELTA))
    check_counts(first, reference_counts)
    for h in steps:
        if not 0 < h < np.inf:
            raise MiaError(f"steps = {list(steps)}: each must be above 0, such as 1e-3.")
    rows = []
    for name, one in banks.items():
        rows.append({"exhibit": f"Tables 1 to 5, {name}", "models": len(one.models), "members of each": len(one.records) // 2,
                     "queries": f"{8 * one.iterations} a record and model"})
    kinds = sum(2 + (2 * size < len(first.records)) for size in sizes)
    rows += [{"exhibit": "Figure 5 (DP-SGD)", "models": 0 if dp.lacking() else (len(epsilons) + 1) * private_seeds,
              "members of each": len(first.records) // 2, "queries": 4 * first.iterations},
             {"exhibit": "Figures 6 and 7", "models": kinds * seeds, "members of each": ", ".join(map(str, sizes)),
              "queries": 4 * first.iterations}]
    return pd.DataFrame(rows)


# --------------------------------------------------------------------------------------------------- signals and methods


def signals_of(bank: Bank, models: Ensemble, judged: np.ndarray | None = None, views: int = 2) -> dict[str, np.ndarray]:
    """What the methods see of models: "loss" [M, N], and with A views "curvature", its logarithm, "true" and "top", the log
    odds of the true and of the likeliest class, [M, N, A].

    Args:
        judged: bool [M, N], the records whose curvature is wanted; the others are not a number.
        views: 2 for image and mirror image.
    """
    seen = [bank.records, bank.records.mirrored()][:views]
    curved = [curvature.of(models, view, "released_code", bank.iterations, bank.h, judged=judged) for view in seen]
    return {"curvature": np.stack([attack.log_curvature(one) for one in curved], -1),
            "true": np.stack([log_odds(signals.loss(models, view)) for view in seen], -1),
            "top": np.stack([log_odds(signals.least_loss(models, view)) for view in seen], -1),
            "loss": signals.loss(models, bank.records).astype(np.float64)}


def methods(own: dict[str, np.ndarray], references: dict[str, np.ndarray], members: np.ndarray) -> dict[str, np.ndarray]:
    """Scores [n] of a target by every method that needs nothing but `signals_of`, `FROM_SIGNALS`.

    Args:
        own: signals of the target on n records, [n] or [n, A]. references: the same of R references, [R, n] or [R, n, A].
        members: bool [R, n].
    """
    def both(function, signal: str, **how):
        return function(own[signal], references[signal], members, **how)

    loss, losses = own["loss"], references["loss"]
    return {"nll": both(attack.nll, "curvature", variant="released_code"),
            "lr": both(attack.likelihood_ratio, "curvature", variant="released_code"),
            "log_ratio": both(attack.nll, "curvature"),
            "lira_released": both(attack.likelihood_ratio, "top", variant="released_code"),
            "lira_top": both(baselines.lira_online, "top"),
            "lira_lr": both(attack.likelihood_ratio, "true", variant="released_code"),
            "lira": both(baselines.lira_online, "true"),
            "lira_fixed": both(baselines.lira_online, "true", fixed_variance=True),
            "yeom": bayes.malt(loss), "sablayrolles": bayes.mast(loss, losses, members, "middle"),
            "watson": calibration.calibrate(-loss, -losses, members),
            "ye": baselines.attack_r(loss, losses, members, QUANTILE)}


def _against(bank: Bank, target: int, views: int = 2, count: int | None = None) -> dict[str, np.ndarray]:
    """Scores of `methods` against a model of the bank."""
    references, found = bank.game.references(target, count), bank.signals

    def pick(which) -> dict[str, np.ndarray]:
        return {name: one[which] if one.ndim == 2 else one[which][..., :views] for name, one in found.items()}

    return methods(pick(target), pick(references), bank.game.members[references])


def _foreign(bank: Bank, models: Ensemble, judged: np.ndarray) -> list[dict[str, np.ndarray]]:
    """Scores of `methods` against each of other models, with the whole bank as references; image alone.

    Args:
        models: S of them, on the bank's records. judged: bool [S, N].
    """
    found, rows = signals_of(bank, models, judged, views=1), []
    for s, asked in enumerate(judged):
        own = {name: one[s][asked] for name, one in found.items()}
        references = {name: one[:, asked] if one.ndim == 2 else one[:, asked, :1] for name, one in bank.signals.items()}
        rows.append(methods(own, references, bank.game.members[:, asked]))
    return rows


def _held(members: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Membership of the judged records of each row, equally many in all rows."""
    return np.stack([member[asked] for member, asked in zip(members, judged, strict=True)])


def _ranks(rows: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Scores of each target by name as ranks within the target, [T, n]; see `packed_ranks`."""
    return {name: np.stack([packed_ranks(row[name]) for row in rows]) for name in rows[0]}


def _called(rows: list[dict[str, np.ndarray]], members: np.ndarray) -> dict[str, np.ndarray]:
    """Whom the paper's methods call with the threshold that is best against all other targets, "called.NAME", bits of [T, N].
    A threshold is of scores, not of ranks, which make every target call about as many."""
    names = [name for name in rows[0] if name.removesuffix(".1") in PAPER]
    return {f"called.{name}": np.packbits(metrics.rehearsed_calls(np.stack([row[name] for row in rows]), members), axis=1)
            for name in names}


@dataclass(frozen=True, eq=False)
class Play:
    """All methods against all targets; scores are ranks within a target, [T, N].

    Attributes:
        members: bool [T, N].
        scores: by method, of `NAMES`. one_view: of `TWO_VIEWS`, from the image alone.
        called: bool, by method of `PAPER`, and by "METHOD.1" from the image alone, with a threshold from the other targets.
        ladders: "NLL" and "LR" -> step -> scores. controls: name -> scores. See `attacks.curvature.ladder`.
        log_curvature: of the image, float32 [T, N].
        difficulty: mean log curvature under all models that were not trained on the record, float32 [N].
        reference_difficulty: the same under those that serve against each target, [T, N].
        train, test: accuracies [T]. median_in, median_out: median losses [T].
    """

    members: np.ndarray
    scores: dict[str, np.ndarray]
    one_view: dict[str, np.ndarray]
    called: dict[str, np.ndarray]
    ladders: dict[str, dict[str, np.ndarray]]
    controls: dict[str, np.ndarray]
    log_curvature: np.ndarray
    difficulty: np.ndarray
    reference_difficulty: np.ndarray
    train: np.ndarray
    test: np.ndarray
    median_in: np.ndarray
    median_out: np.ndarray


def play_of(kept: dict[str, np.ndarray]) -> Play:
    """A play from its kept arrays: "METHOD", "METHOD.1" from one view, "called.METHOD", "NLL.STEP", "LR.STEP", "control.NAME",
    and the rest."""
    rest = ("members", "log_curvature", "difficulty", "reference_difficulty", "train", "test", "median_in", "median_out")
    called = {name.removeprefix("called."): np.unpackbits(bits, axis=1, count=kept["members"].shape[1]).astype(bool)
              for name, bits in kept.items() if name.startswith("called.")}
    return Play(scores={name: kept[name] for name in NAMES}, one_view={name: kept[f"{name}.1"] for name in TWO_VIEWS},
                called=called,
                ladders={end: {step: kept[f"{end}.{step}"] for step in steps} for end, steps in attack.LADDERS.items()},
                controls={name: kept[f"control.{name}"] for name in attack.CONTROLS}, **{name: kept[name] for name in rest})


def play(bank: Bank) -> Play:
    """All methods against all targets, kept in the store; the ladders by themselves, so that either fits a recorded file."""
    return play_of({**store.study("curvature.play", bank.spec, partial(_play, bank)),
                    **store.study("curvature.ladders", bank.spec, partial(_ladders, bank))})


def _play(bank: Bank) -> dict[str, np.ndarray]:
    found, targets, judged, rows, easy = bank.signals, list(bank.game.attacked), bank.game.judged, [], []
    loss, log = found["loss"][targets], found["curvature"][..., 0]
    probabilities = signals.probabilities(bank.models.part(targets), bank.records)
    p, elsewhere = np.exp(-found["loss"]), np.exp(-signals.loss(bank.models, bank.population).astype(np.float64))
    for place, target in enumerate(targets):
        references = bank.game.references(target)
        inside = bank.game.members[references]
        row = _against(bank, target)
        row |= {f"{name}.1": score for name, score in _against(bank, target, 1).items() if name in TWO_VIEWS}
        row["song"] = baselines.modified_entropy(probabilities[place], bank.records.y)
        row["rmia"] = baselines.rmia(p[target], p[references], inside, elsewhere[target], elsewhere[references])
        easy.append(np.average(log[references], 0, ~inside))
        rows.append(row)
    right = signals.correctness(bank.models, bank.records)[targets]
    return {"members": judged, **_ranks(rows), **_called(rows, judged), "log_curvature": log[targets].astype(np.float32),
            "difficulty": np.average(log, 0, ~bank.game.members).astype(np.float32),
            "reference_difficulty": np.stack(easy).astype(np.float32),
            "train": np.average(right, 1, judged), "test": np.average(right, 1, ~judged),
            "median_in": np.array([np.median(a[b]) for a, b in zip(loss, judged, strict=True)]),
            "median_out": np.array([np.median(a[~b]) for a, b in zip(loss, judged, strict=True)])}


def _ladders(bank: Bank) -> dict[str, np.ndarray]:
    rows = []
    for target in bank.game.attacked:
        steps = _ladder(bank, target)
        rows.append({f"{end}.{step}": score for end, of_end in steps.items() for step, score in of_end.items()})
    return _ranks(rows)


def _ladder(bank: Bank, target: int, count: int | None = None, base: float = np.e) -> dict[str, dict[str, np.ndarray]]:
    """Scores of `attacks.curvature.ladder` against a model of the bank, two views, of the logarithm to a base."""
    references, log = bank.game.references(target, count), bank.signals["curvature"] / np.log(base)
    return attack.ladder(log[target], log[references], bank.game.members[references])


def by_references(bank: Bank, counts: Sequence[int]) -> dict[int, dict[str, np.ndarray]]:
    """Methods, and the step of the ladder that puts variances for standard deviations, against all targets with fewer
    references, two views; kept in the store.

    Args:
        counts: numbers of references, even.

    Returns:
        number -> method of `COMPARED`, or `SQUARED` -> ranks [T, N].
    """
    def compute() -> dict[str, np.ndarray]:
        found = {count: _ranks([{**_against(bank, t, count=count), SQUARED: _ladder(bank, t, count)["LR"][SQUARED]}
                                for t in bank.game.attacked]) for count in counts}
        return {f"{count}.{name}": of_count[name] for count, of_count in found.items() for name in (*COMPARED, SQUARED)}

    check_counts(bank, counts)
    kept = store.study("curvature.by_references", {**bank.spec, "counts": list(counts)}, compute)
    return {count: {name: kept[f"{count}.{name}"] for name in (*COMPARED, SQUARED)} for count in counts}


def check_counts(bank: Bank, counts: Sequence[int]) -> None:
    """Refuse numbers of references that leave a record without two of either kind, and none at all."""
    if not counts:
        raise MiaError("reference_counts is empty: give at least one even number, such as 4.")
    for count in counts:
        if count % 2 or not 4 <= count <= len(bank.models) - 2:
            raise MiaError(f"reference_counts = {list(counts)}: each must be even and from 4 to {len(bank.models) - 2}, so "
                           "that each record has two references of either kind.")


def by_base(bank: Bank, bases: Sequence[float]) -> dict[float, dict[str, np.ndarray]]:
    """The log-likelihood ratio of log curvature, and the same with variances in the place of standard deviations, when the
    logarithm is to another base; two views; kept in the store.

    Args:
        bases: above 1.

    Returns:
        base -> step of `attacks.curvature.LADDERS` -> ranks [T, N].
    """
    steps = list(attack.LADDERS["LR"])[:2]

    def compute() -> dict[str, np.ndarray]:
        out = {}
        for base in bases:
            rows = [_ladder(bank, target, base=base)["LR"] for target in bank.game.attacked]
            rows = [{step: row[step] for step in steps} for row in rows]
            out |= {f"{float(base)!r}.{step}": one for step, one in _ranks(rows).items()}
        return out

    kept = store.study("curvature.by_base", {**bank.spec, "bases": list(bases)}, compute)
    return {base: {step: kept[f"{float(base)!r}.{step}"] for step in steps} for base in bases}


# ------------------------------------------------------------------------------------------------------ single records


@dataclass(frozen=True, eq=False)
class RecordCurves:
    """Log curvature of P single records under all models, and whether that of all records is Gaussian.

    Attributes:
        record: which ones, int [P]. values: log curvature, [P, M]. members: bool [P, M].
        gap: how far the two means of each record of the pool lie apart, in standard deviations, [N].
        p: p-values of the Shapiro-Wilk test [2, N], IN and OUT: "log", of log curvature, and "raw", of the curvature itself.
        spread: median standard deviation of log curvature over models, IN and OUT, [2].
    """

    record: np.ndarray
    values: np.ndarray
    members: np.ndarray
    gap: np.ndarray
    p: dict[str, np.ndarray]
    spread: np.ndarray


def record_curves(bank: Bank, percentiles: Sequence[float]) -> RecordCurves:
    """Single records at the given percentiles over the pool of how far their two means lie apart; kept in the store."""
    def compute() -> dict[str, np.ndarray]:
        log, members = bank.signals["curvature"][..., 0], bank.game.members
        inside, outside = ([log[side[:, i], i] for i in range(len(bank.records))] for side in (members, ~members))
        gap = np.array([(b.mean() - a.mean()) / max(np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2), 1e-12)
                        for a, b in zip(inside, outside, strict=True)])
        chosen = np.argsort(gap)[[round(q / 100 * (len(gap) - 1)) for q in percentiles]]
        p = {kind: np.array([[stats.shapiro(use(one)).pvalue if np.ptp(use(one)) else np.nan for one in side]
                             for side in (inside, outside)]) for kind, use in (("log", np.asarray), ("raw", np.exp))}
        return {"record": chosen, "values": log[:, chosen].T, "members": members[:, chosen].T, "gap": gap,
                "p.log": p["log"], "p.raw": p["raw"],
                "spread": np.array([np.median([one.std(ddof=1) for one in side]) for side in (inside, outside)])}

    kept = store.study("curvature.record_curves", {**bank.spec, "percentiles": list(percentiles)}, compute)
    rest = ("record", "values", "members", "gap", "spread")
    return RecordCurves(p={kind: kept[f"p.{kind}"] for kind in ("log", "raw")}, **{name: kept[name] for name in rest})


# ------------------------------------------------------------------------------------------- what the number measures


# Estimates of curvature besides the released form: the trace and the Frobenius norm; four losses as printed, a Gaussian of its
# values as they are or of the logarithm of their size; the released form in float32, and of the loss with the label that each
# model gives itself. And what is no curvature: log odds of the true and of the likeliest class.
ESTIMATES = ("exact", "exact_norm", "hutchinson", "printed", "printed_log", "released_float32", "own_label", "true", "top")


@dataclass(frozen=True, eq=False)
class Estimate:
    """One estimate of curvature on the first n records of a pool, image alone.

    Attributes:
        ranks: of its log-likelihood ratio within each target, [T, n].
        norm_correlation: rank correlation of its size with the exact norm, [M].
        size: median of its size over the exact norm, [2], where the model gives the record's label and where it does not; not
            a number of what is no curvature.
        negative: share of negative values; not a number of what is no curvature.
    """

    ranks: np.ndarray
    norm_correlation: np.ndarray
    size: np.ndarray
    negative: float


@dataclass(frozen=True, eq=False)
class Estimators:
    """Several estimates of curvature.

    Attributes:
        members: bool [T, n].
        named: of `ESTIMATES`. by_step: the released form, step -> estimate. by_probes: number of its probes -> estimate.
        wrong: shares of members and of others whose label the models do not give, [2].
        easy: bool [n], records that all models get right.
        h: the bank's step.
    """

    members: np.ndarray
    named: dict[str, Estimate]
    by_step: dict[float, Estimate]
    by_probes: dict[int, Estimate]
    wrong: np.ndarray
    easy: np.ndarray
    h: float

    @property
    def released(self) -> Estimate:
        """The released form with the bank's step."""
        return self.by_step[self.h]


def estimators_of(kept: dict[str, np.ndarray], steps: Sequence[float], iterations: Sequence[int]) -> Estimators:
    """Estimates from their kept arrays: ranks "NAME", and "norm_correlation.NAME", "size.NAME" and "negative.NAME", which are
    the same of "printed" and "printed_log"."""
    def one(name: str) -> Estimate:
        like = "printed" if name == "printed_log" else name
        return Estimate(kept[name], kept[f"norm_correlation.{like}"], kept.get(f"size.{like}", np.full(2, np.nan)),
                        float(kept.get(f"negative.{like}", np.nan)))

    return Estimators(kept["members"], {name: one(name) for name in ESTIMATES},
                      {h: one(released_with("h", h)) for h in sorted(steps)},
                      {k: one(released_with("iterations", k)) for k in sorted(iterations)}, kept["wrong"], kept["easy"],
                      float(kept["h"]))


def released_with(argument: str, value: float) -> str:
    """Name under which the arrays of the released form are kept."""
    return f"released.{argument}={float(value)!r}"


def estimators(bank: Bank, count: int, steps: Sequence[float], iterations: Sequence[int]) -> Estimators:
    """The log-likelihood ratio of several estimates of curvature, and what they are like, on the first records of the pool;
    image alone; kept in the store.

    Args:
        count: n records. steps: h of the released form. iterations: numbers of its probes.
    """
    rows, steps = np.arange(min(count, len(bank.records))), sorted({*steps, bank.h})

    def compute() -> dict[str, np.ndarray]:
        records, models = bank.records.take(rows), bank.models
        values = dict(zip(("exact", "exact_norm"), curvature.between_kinks(models, records), strict=True))
        values["hutchinson"] = curvature.of(models, records, "hutchinson", bank.iterations)
        values["printed"] = curvature.of(models, records, "zero_order", bank.iterations, bank.h)
        released = {released_with("h", h): {"h": h, "iterations": bank.iterations} for h in steps}
        released |= {released_with("iterations", k): {"h": bank.h, "iterations": k} for k in iterations}
        released["released_float32"] = {"h": bank.h, "iterations": bank.iterations, "dtype": "float32", "warn": False}
        for name, how in released.items():
            values[name] = curvature.of(models, records, "released_code", **how) / how["h"]
        given = signals.logits(models, records).argmax(-1)
        relabelled = replace(records, x=np.concatenate([records.x] * len(models)), y=given.ravel(), n_train=given.size)
        asked = np.kron(np.eye(len(models), dtype=bool), np.ones(len(rows), bool))  # each model about its own labels
        values["own_label"] = curvature.of(models, relabelled, "released_code", bank.iterations, bank.h,
                                           judged=asked)[asked].reshape(given.shape) / bank.h
        fits = {name: attack.log_curvature(one) for name, one in values.items()}
        fits["printed"], fits["printed_log"] = values["printed"], fits["printed"]
        fits["true"], fits["top"] = (bank.signals[name][:, rows, 0] for name in ("true", "top"))
        scores = []
        for target in bank.game.attacked:
            references = bank.game.references(target)
            inside = bank.game.members[references][:, rows]
            scores.append({name: attack.nll(one[target], one[references], inside) for name, one in fits.items()})
        out = {"members": bank.game.judged[:, rows], **_ranks(scores)}
        wrong, inside = given != records.y, bank.game.members[:, rows]
        for name, one in values.items():
            out[f"negative.{name}"] = np.mean(one < 0)
            ratio = np.abs(one) / np.maximum(values["exact_norm"], 1e-300)
            out[f"size.{name}"] = np.array([np.median(ratio[side]) if side.any() else np.nan for side in (~wrong, wrong)])
        sizes = {name: np.abs(one) for name, one in values.items()} | {name: -fits[name] for name in ("true", "top")}
        for name, one in sizes.items():
            out[f"norm_correlation.{name}"] = np.array([
                stats.spearmanr(a, b).statistic for a, b in zip(one, values["exact_norm"], strict=True)])
        return out | {"easy": ~wrong.any(0), "h": np.array(bank.h),
                      "wrong": np.array([wrong[inside].mean(), wrong[~inside].mean()])}

    spec = {**bank.spec, "count": len(rows), "steps": list(steps), "probes": list(iterations)}
    return estimators_of(store.study("curvature.estimators", spec, compute), steps, iterations)


@dataclass(frozen=True, eq=False)
class Probe:
    """One probe of one record under two models, from small steps to large ones.

    The four points of a probe lie two by two on the lines along u + v and u - v, at a distance h on either side. Models are
    the first target, which was not trained on the record, and its complement, which was; labels the record's own and the one
    that the model gives.

    Attributes:
        h: steps [H], rising. t: places on a line, [2H + 1], those at -h, the record and those at h.
        bent: the loss less its tangent at the record, [2 models, 2 labels, 2 lines, 2H + 1].
        kinks: bool [2 models, 2 lines, 2H], whether logits have a kink between one place and the next.
        q: by four losses, [2 models, 2 labels, H]. product: v^T H u by automatic differentiation, [2 models, 2 labels].
        record: which one. labels: int [2 models, 2 labels].
    """

    h: np.ndarray
    t: np.ndarray
    bent: np.ndarray
    kinks: np.ndarray
    q: np.ndarray
    product: np.ndarray
    record: np.ndarray
    labels: np.ndarray


STEPS = np.round(10.0 ** np.arange(-5.0, -0.69, 0.05), 12)  # of the probe that is looked at
BENT = 1e-6  # of the steepest slope: less is rounding


def one_probe(bank: Bank, seed: int = 0) -> Probe:
    """A probe of the record of median loss among those that the first target was not trained on and gets wrong (among all
    that it was not trained on, where there is none); kept in the store."""
    def compute() -> dict[str, np.ndarray]:
        pair, outside = bank.models.part([0, 1]), ~bank.game.members[0]
        given, loss = signals.logits(pair, bank.records).argmax(-1), signals.loss(pair, bank.records)[0]
        wrong = outside & (given[0] != bank.records.y)
        among = np.flatnonzero(wrong if wrong.any() else outside)
        record = int(among[np.argsort(loss[among], kind="stable")[len(among) // 2]])
        one, rng = bank.records.take([record]), np.random.default_rng([37, seed])
        x = outputs.inputs(one.x, 0, 1, torch.device("cpu"), torch.float64).contiguous()
        u, v = (torch.from_numpy(rng.choice([-1.0, 1.0], tuple(x.shape))) for _ in range(2))
        t = np.concatenate([-STEPS[::-1], [0.0], STEPS])
        places = torch.from_numpy(t)[:, None, None, None]
        labels = np.stack([np.repeat(one.y, 2), given[:, record]], 1)
        out = [_probed(outputs.in_precision(bank.models.model(m), "float64"), x, u, v, places, labels[m]) for m in range(2)]
        return {"h": STEPS, "t": t, "record": np.array(record), "labels": labels,
                **{name: np.stack([of[name] for of in out]) for name in out[0]}}

    return Probe(**store.study("curvature.one_probe", {**bank.spec, "steps": STEPS.tolist(), "seed": seed}, compute))


def _probed(network, x: torch.Tensor, u: torch.Tensor, v: torch.Tensor, places: torch.Tensor,
            labels: np.ndarray) -> dict[str, np.ndarray]:
    """`Probe.bent`, `kinks`, `q` and `product` of one network, with each of the labels."""
    t, middle, own = places.flatten().numpy(), len(places) // 2, [torch.tensor([int(label)]) for label in labels]
    with torch.no_grad():
        logits = torch.stack([network(x + places * line) for line in (u + v, u - v)])  # [2, P, K]
        loss = np.stack([[precise_loss(one, y.expand(len(one))).numpy() for one in logits] for y in own])
    slope = (loss[..., middle + 1] - loss[..., middle - 1]) / (t[middle + 1] - t[middle - 1])
    q = [loss[:, 0, middle + k] + loss[:, 0, middle - k] - loss[:, 1, middle + k] - loss[:, 1, middle - k]
         for k in range(1, middle + 1)]
    steepness = np.diff(logits.numpy(), axis=1) / np.diff(t)[:, None]
    turns = np.abs(np.diff(steepness, axis=1)).max(-1) > BENT * np.abs(steepness).max()
    kinks = np.zeros(steepness.shape[:2], bool)
    kinks[:, 1:-1] = turns[:, :-1] & turns[:, 1:]  # before a kink the slope is another than after it
    product, moved = [], x.clone().requires_grad_()
    for y in own:
        [gradient] = torch.autograd.grad(precise_loss(network(moved), y).sum(), moved, create_graph=True)
        [times] = torch.autograd.grad((gradient * v).sum(), moved)
        product.append(float((times * u).sum()))
    return {"bent": loss - loss[..., middle:middle + 1] - slope[..., None] * t, "kinks": kinks,
            "q": np.stack(q, 1) / (4 * t[middle + 1:] ** 2), "product": np.array(product)}


@dataclass(frozen=True, eq=False)
class StepSizes:
    """Mean ``|q|`` of n records under one model, over the same probes.

    Attributes:
        h: steps, [H].
        float32, float64: by four losses in either precision, [n, H].
        expected: by the Hessian's own products, between kinks, [n].
        loss: [n].
    """

    h: np.ndarray
    float32: np.ndarray
    float64: np.ndarray
    expected: np.ndarray
    loss: np.ndarray

    def typical(self, h: float) -> float:
        """The median record's at one of the steps, in float64."""
        return float(np.median(self.float64[:, list(self.h).index(h)]))


def step_sizes(bank: Bank, steps: Sequence[float], count: int = 100) -> StepSizes:
    """Mean ``|q|`` of the first records under the first model as h shrinks, in both precisions; kept in the store."""
    rows = np.arange(min(count, len(bank.records)))

    def compute() -> dict[str, np.ndarray]:
        records, model = bank.records.take(rows), bank.models.part([0])
        out: dict[str, np.ndarray] = {"h": np.array(steps)}
        for dtype in outputs.PRECISIONS:
            network = outputs.in_precision(model.model(0), dtype)
            x = outputs.inputs(records.x, 0, len(rows), torch.device("cpu"), outputs.PRECISIONS[dtype])

            def losses(inputs: torch.Tensor, y: torch.Tensor, network=network) -> torch.Tensor:
                return precise_loss(network(inputs), y)

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that rounding shows is what this is to show
                out[dtype] = np.stack([curvature.zero_order_trace(
                    losses, x, bank.iterations, h, y=records.y, variant="released_code") / h for h in steps], 1)
        out["expected"] = curvature.limit_trace(losses, x.double(), bank.iterations, y=records.y, variant="released_code")
        return out | {"loss": signals.loss(model, records)[0].astype(np.float64)}

    return StepSizes(**store.study("curvature.step_sizes", {**bank.spec, "steps": list(steps), "count": len(rows)}, compute))


# -------------------------------------------------------------------------------------------- training sets by design


KINDS = ("random", "coreset", "matched")


def training_sets(bank: Bank, kind: str, size: int, seeds: int) -> tuple[np.ndarray, np.ndarray]:
    """Training sets and the records judged.

    "random": drawn from the pool. "coreset": the records of lowest mean curvature under models that were not trained on
    them. "matched": half of the 2 * `size` records of lowest curvature, at random, judged on these alone: members and
    non-members are equally easy.

    Returns:
        members bool [S, N]; candidates for judging bool [S, N].
    """
    ranked, members = np.argsort(play(bank).difficulty, kind="stable"), np.zeros((seeds, len(bank.records)), bool)
    judged = np.ones_like(members)
    for s, row in enumerate(members):
        rng = np.random.default_rng([23, size, s])
        if kind == "coreset":
            row[ranked[:size]] = True
        else:
            among = np.arange(len(row)) if kind == "random" else ranked[:2 * size]
            row[rng.permutation(among)[:size]] = True
            judged[s] = np.isin(np.arange(len(row)), among)
    return members, judged


def told_without_a_target(bank: Bank, sizes: Sequence[int]) -> dict[int, float]:
    """AUC with which the records of lowest curvature under one half of the models are told from the rest by their curvature
    under the other half, both ways; kept in the store.

    Told by the very numbers that chose it a coreset is told perfectly, whatever they are. Here they share no model,
    and no target is attacked.

    Args:
        sizes: of coresets.
    """
    def compute() -> dict[str, np.ndarray]:
        log, members = bank.signals["curvature"][..., 0], bank.game.members
        first = np.arange(len(members)) // 2 % 2 == 0  # complementary pairs stay together
        one, other = (np.average(log[half], 0, ~members[half]) for half in (first, ~first))
        return {"auc": np.array([np.mean([_told(one, other, size), _told(other, one, size)]) for size in sizes])}

    kept = store.study("curvature.told_without_a_target", {**bank.spec, "sizes": list(sizes)}, compute)
    return dict(zip(sizes, kept["auc"].tolist(), strict=True))


def _told(chosen_by: np.ndarray, ranked_by: np.ndarray, size: int) -> float:
    members = np.zeros(len(chosen_by), bool)
    members[np.argsort(chosen_by, kind="stable")[:size]] = True
    return float(metrics.auc(-ranked_by, members))


@dataclass(frozen=True, eq=False)
class Sized:
    """Methods against S targets of one size, each judged on n records of its own, half of them members.

    Attributes:
        members: bool [S, n].
        scores: method of `FROM_SIGNALS` -> ranks [S, n].
        train: accuracy on all members, [S].
    """

    members: np.ndarray
    scores: dict[str, np.ndarray]
    train: np.ndarray


def by_size(bank: Bank, kind: str, sizes: Sequence[int], seeds: int, most: int) -> dict[int, Sized]:
    """Methods against models of training sets of several sizes, with the bank as references, image alone; kept in the store.

    References are not matched to the targets' size, as in the released code.

    Args:
        kind: of `KINDS`. seeds: S targets of each size. most: members and non-members that are judged, at most.

    Returns:
        size -> what was found, on twice the smaller of `most`, members and non-members.
    """
    sizes = [size for size in sizes if kind != "matched" or 2 * size < len(bank.records)]
    drawn = {size: training_sets(bank, kind, size, seeds) for size in sizes}
    config = replace(bank.models.config, seed=bank.models.config.seed + 11)
    ensembles = {size: train(bank.records, members, config, label=f"{kind}, {size}")
                 for size, (members, _) in drawn.items()}

    def compute() -> dict[str, np.ndarray]:
        out = {}
        for size, models in ensembles.items():
            judged = _sample(models.members, drawn[size][1], most)
            right = signals.correctness(models, bank.records)
            out |= {f"{size}.members": _held(models.members, judged), f"{size}.train": np.average(right, 1, models.members)}
            out |= {f"{size}.{name}": ranks for name, ranks in _ranks(_foreign(bank, models, judged)).items()}
        return out

    spec = {**bank.spec, "set": kind, "most": most, "targets": [models.key for models in ensembles.values()]}
    kept = store.study("curvature.by_size", spec, compute)
    return {size: Sized(kept[f"{size}.members"], {name: kept[f"{size}.{name}"] for name in FROM_SIGNALS},
                        kept[f"{size}.train"]) for size in sizes}


def _sample(members: np.ndarray, judged: np.ndarray, most: int) -> np.ndarray:
    """Equally many members and others among the judged of each row, as many in all rows, bool [S, N]."""
    count = min([most, *(side.sum(1).min() for side in (members & judged, ~members & judged))])
    return membership.at_most(judged, members, count, seed=29)


# ---------------------------------------------------------------------------------------------------------------- DP-SGD


def private_training(bank: Bank, epsilons: Sequence[float], seeds: int, config: TrainConfig, most: int) -> PrivateTraining:
    """Methods against targets trained by DP-SGD on random halves of the pool (Figure 5); kept in the store.

    References are the bank's, which are not private, as in the released code. The last row is the same recipe without privacy.
    Targets of all rows have the same training sets. Delta is 1e-5, the paper's.

    Args:
        epsilons: one or more. seeds: S targets each. config: recipe. most: members and non-members judged, at most.
    """
    members = membership.random_halves(len(bank.records), seeds, 1000 + bank.models.config.seed)
    config = replace(config, seed=bank.models.config.seed + 12)  # other weights to start from than any reference's
    banks = ladder(bank.records, members, config, epsilons, DELTA)

    def compute() -> dict[str, np.ndarray]:
        judged = _sample(members, np.ones_like(members), most)
        right = [signals.correctness(models, bank.records) for models in banks]
        scores = [_ranks(_foreign(bank, models, judged)) for models in banks]
        return {"members": _held(members, judged), **{name: np.stack([one[name] for one in scores]) for name in scores[0]},
                **spent(banks),
                "train": np.stack([np.average(one, 1, members) for one in right]),
                "test": np.stack([np.average(one, 1, ~members) for one in right])}

    kept = store.study("curvature.private_training",
                       {**bank.spec, "most": most, "targets": [models.key for models in banks]}, compute)
    return PrivateTraining.of(kept, FROM_SIGNALS)


# --------------------------------------------------------------------------------------------------------------- numbers


def over_targets(scores: np.ndarray, members: np.ndarray, minus: np.ndarray | None = None,
                 records: np.ndarray | None = None) -> Interval:
    """AUC of scores [S, n], or its lead over that of others, over targets and records.

    Args:
        records: int [S, n], which record stands in each place, as `judged_records` has it; by default every target is judged
            on records of its own.
    """
    return weighted_auc([(1.0, scores)] if minus is None else [(1.0, scores), (-1.0, minus)], members, records)


def weighted_auc(terms: Sequence[tuple[float, np.ndarray]], members: np.ndarray,
                 records: np.ndarray | None = None) -> Interval:
    """A weighted sum of AUCs of scores [S, n] over targets and records; arguments as for `over_targets`."""
    records = np.arange(members.size).reshape(members.shape) if records is None else records
    return metrics.contrast("auc", [(weight, score, members, records) for weight, score in terms], draws=200)


def judged_records(bank: Bank, kind: str, sizes: Sequence[int], seeds: int, most: int) -> dict[int, np.ndarray]:
    """The records that `by_size` judges each target on, size -> int [S, n]; arguments as there."""
    sizes = [size for size in sizes if kind != "matched" or 2 * size < len(bank.records)]
    return {size: _places(_sample(*training_sets(bank, kind, size, seeds), most)) for size in sizes}


def privately_judged(bank: Bank, seeds: int, most: int) -> np.ndarray:
    """The records that `private_training` judges each target on, int [S, n]; arguments as there."""
    members = membership.random_halves(len(bank.records), seeds, 1000 + bank.models.config.seed)
    return _places(_sample(members, np.ones_like(members), most))


def _places(judged: np.ndarray) -> np.ndarray:
    return np.nonzero(judged)[1].reshape(len(judged), -1)


@dataclass(frozen=True, eq=False)
class Normality:
    """For how many records the Shapiro-Wilk test rejects normal log curvature at 5 %, IN and OUT.

    Attributes:
        share: of the records, [2]. left_out: the same without each complementary pair of models in turn, [2, G].
    """

    share: np.ndarray
    left_out: np.ndarray


def normality(bank: Bank) -> Normality:
    """How often log curvature under many models is not Gaussian, and what that owes to which models they are; kept in the
    store.

    All records are seen by the same models, so their tests are no independent trials.
    """
    def compute() -> dict[str, np.ndarray]:
        log, members = bank.signals["curvature"][..., 0], bank.game.members
        pairs = np.arange(len(members)) // 2
        return {"share": _rejected(log, members),
                "left_out": np.stack([_rejected(log[pairs != k], members[pairs != k]) for k in range(pairs[-1] + 1)], 1)}

    return Normality(**store.study("curvature.normality", bank.spec, compute))


def _rejected(log: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Shares of records whose values, under models trained on them and under the others, the test rejects at 5 %, [2]; not a
    number where there are fewer than three."""
    out = []
    for side in (members, ~members):
        columns = [log[side[:, i], i] for i in range(log.shape[1])]
        p = [stats.shapiro(one).pvalue for one in columns if len(one) > 2 and np.ptp(one)]
        out.append(np.mean(np.array(p) < 0.05) if p else np.nan)
    return np.array(out)


def easiest(found: Play, share: float) -> np.ndarray:
    """The records of lowest mean curvature under the references of each target, int [T, n].

    Args:
        share: of all records, in (0, 1].
    """
    count = round(share * found.members.shape[1])
    return np.argsort(found.reference_difficulty, 1, kind="stable")[:, :count]


def among_the_easiest(found: Play, method: str, share: float, less_than_all: bool = False) -> Interval | None:
    """AUC of a method among the `easiest` records, over targets and records; None where these are members only, or others
    only, for some target.

    Args:
        less_than_all: the AUC among all records less that.
    """
    records = easiest(found, share)
    scores, members = (np.take_along_axis(one, records, 1) for one in (found.scores[method], found.members))
    if members.all(1).any() or not members.any(1).all():
        return None
    terms = [(-1.0 if less_than_all else 1.0, scores, members, records)]
    if less_than_all:
        everyone = np.tile(np.arange(found.members.shape[1]), (len(found.members), 1))
        terms.append((1.0, found.scores[method], found.members, everyone))
    return metrics.contrast("auc", terms, draws=200)
