"""Experiments of the input-loss-curvature chapter (Ravikumar et al. 2024, section 6).

M models in complementary halves of a pool of N records; T of them are attacked in turn, with all others but the complement as
references. Scores are higher for members, and kept as ranks within a target, on which every metric here depends alone. Arrays
[T, N] hold a row a target.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from scipy import stats

from mia_lib import membership, metrics, signals, store
from mia_lib.attacks import baselines
from mia_lib.attacks import curvature as attack
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_range
from mia_lib.metrics.interval import Interval
from mia_lib.metrics.numbers import TITLES, log_odds, ranks
from mia_lib.signals import curvature, outputs
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
        models: in complementary halves; trained when a number of theirs is first needed.
        population: records that no model was trained on.
        attacked: T numbers of models.
        iterations, h: probes of the curvature and their step.
    """

    name: str
    models: Ensemble
    population: Dataset
    attacked: tuple[int, ...]
    iterations: int
    h: float

    @property
    def records(self) -> Dataset:
        """The pool."""
        return self.models.records

    @property
    def members(self) -> np.ndarray:
        """bool [M, N], complementary halves."""
        return self.models.members

    @property
    def judged(self) -> np.ndarray:
        """bool [T, N], membership in each target."""
        return self.members[list(self.attacked)]

    def references(self, target: int, count: int | None = None) -> np.ndarray:
        """Models that serve against a target: the first `count` of those that are neither it nor its complement."""
        return membership.references_of(target, len(self.models))[:count]

    @property
    def spec(self) -> dict:
        """What determines the numbers of a bank."""
        return {"models": self.models.key, "attacked": list(self.attacked), "iterations": self.iterations, "h": self.h,
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
    check_range("targets", targets, 2, models)
    if models % 2 or models < 6:
        raise MiaError(f"models = {models}: an even number from 6 is needed, complementary pairs of which two are left "
                       "against each target, so that each record has references that were trained on it and others.")
    order = np.random.default_rng([17, seed]).permutation(len(records))
    pool, outside = records.take(order[:size]), records.take(order[size:size + POPULATION])
    members = membership.balanced_halves(size, models, seed)
    name = TITLES.get(records.name, records.name)
    return Bank(name, train(pool, members, config, label=f"models of {name}"), outside, tuple(range(targets)), iterations, h)


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
              "members of each": len(first.records) // 2, "queries": f"{4 * first.iterations}"},
             {"exhibit": "Figures 6 and 7", "models": kinds * seeds, "members of each": ", ".join(map(str, sizes)),
              "queries": f"{4 * first.iterations}"}]
    return pd.DataFrame(rows).astype(str)


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
    """Scores [n] of a target by every method that needs nothing but `signals_of`; of these, Sablayrolles et al. take the
    middle of the mean losses IN and OUT, Watson et al. the mean OUT.

    Args:
        own: signals of the target on n records, [n] or [n, A]. references: the same of R references, [R, n] or [R, n, A].
        members: bool [R, n].
    """
    def both(function, signal: str, **how):
        return function(own[signal], references[signal], members, **how)

    loss, losses = own["loss"], references["loss"]
    inside, outside = (np.average(losses, 0, side) for side in (members, ~members))
    return {"nll": both(attack.nll, "curvature", variant="released_code"),
            "lr": both(attack.likelihood_ratio, "curvature", variant="released_code"),
            "log_ratio": both(attack.nll, "curvature"),
            "lira_released": both(attack.likelihood_ratio, "top", variant="released_code"),
            "lira_top": both(baselines.lira_online, "top"),
            "lira_lr": both(attack.likelihood_ratio, "true", variant="released_code"),
            "lira": both(baselines.lira_online, "true"),
            "lira_fixed": both(baselines.lira_online, "true", fixed_variance=True),
            "yeom": -loss, "sablayrolles": (inside + outside) / 2 - loss, "watson": outside - loss,
            "ye": baselines.attack_r(loss, losses, members, QUANTILE)}


def _against(bank: Bank, target: int, views: int = 2, count: int | None = None) -> dict[str, np.ndarray]:
    """Scores of `methods` against a model of the bank."""
    references, found = bank.references(target, count), bank.signals

    def pick(which) -> dict[str, np.ndarray]:
        return {name: one[which] if one.ndim == 2 else one[which][..., :views] for name, one in found.items()}

    return methods(pick(target), pick(references), bank.members[references])


def _foreign(bank: Bank, models: Ensemble, judged: np.ndarray) -> list[dict[str, np.ndarray]]:
    """Scores of `methods` against each of other models, with the whole bank as references; image alone.

    Args:
        models: S of them, on the bank's records. judged: bool [S, N].
    """
    found, rows = signals_of(bank, models, judged, views=1), []
    for s, asked in enumerate(judged):
        own = {name: one[s][asked] for name, one in found.items()}
        references = {name: one[:, asked] if one.ndim == 2 else one[:, asked, :1] for name, one in bank.signals.items()}
        rows.append(methods(own, references, bank.members[:, asked]))
    return rows


def _held(members: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Membership of the judged records of each row, equally many in all rows."""
    return np.stack([member[asked] for member, asked in zip(members, judged, strict=True)])


def _ranks(rows: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Scores of each target by name as ranks within the target, float32 [T, n]."""
    return {name: np.stack([ranks(row[name]) for row in rows]) for name in rows[0]}


def play(bank: Bank) -> dict[str, np.ndarray]:
    """All methods against all targets, kept in the store.

    Returns:
        "members" bool [T, N]; for each method its ranks [T, N], of `TWO_VIEWS` also "METHOD.1", from the image alone;
        "NLL.STEP", "LR.STEP" and "control.NAME" [T, N] for what `attacks.curvature.ladder` gives;
        "log_curvature" float32 [T, N] of the image; "difficulty" float32 [N], mean log curvature under all models that were
        not trained on the record, and "reference_difficulty" [T, N], under those that serve against each target; accuracies
        "train" and "test" [T], and median losses "median_in" and "median_out" [T].
    """
    return store.fetch({"kind": "study", "study": "curvature.play", **bank.spec}, lambda: _play(bank)).arrays


def _play(bank: Bank) -> dict[str, np.ndarray]:
    found, targets, judged, rows, easy = bank.signals, list(bank.attacked), bank.judged, [], []
    loss, log = found["loss"][targets], found["curvature"][..., 0]
    probabilities = signals.probabilities(bank.models.part(targets), bank.records)
    p, elsewhere = np.exp(-found["loss"]), np.exp(-signals.loss(bank.models, bank.population).astype(np.float64))
    for place, target in enumerate(targets):
        references = bank.references(target)
        inside = bank.members[references]
        row = _against(bank, target)
        row |= {f"{name}.1": score for name, score in _against(bank, target, 1).items() if name in TWO_VIEWS}
        row["song"] = baselines.modified_entropy(probabilities[place], bank.records.y)
        row["rmia"] = baselines.rmia(p[target], p[references], inside, elsewhere[target], elsewhere[references])
        steps = attack.ladder(found["curvature"][target], found["curvature"][references], inside)
        row |= {f"{end}.{step}": score for end, of_end in steps.items() for step, score in of_end.items()}
        easy.append(np.average(log[references], 0, ~inside))
        rows.append(row)
    right = signals.correctness(bank.models, bank.records)[targets]
    return {"members": judged, **_ranks(rows), "log_curvature": log[targets].astype(np.float32),
            "difficulty": np.average(log, 0, ~bank.members).astype(np.float32),
            "reference_difficulty": np.stack(easy).astype(np.float32),
            "train": np.average(right, 1, judged), "test": np.average(right, 1, ~judged),
            "median_in": np.array([np.median(a[b]) for a, b in zip(loss, judged, strict=True)]),
            "median_out": np.array([np.median(a[~b]) for a, b in zip(loss, judged, strict=True)])}


def by_references(bank: Bank, counts: Sequence[int]) -> dict[int, dict[str, np.ndarray]]:
    """Methods against all targets with fewer references, two views; kept in the store.

    Args:
        counts: numbers of references, even.

    Returns:
        number -> method -> ranks [T, N].
    """
    def compute() -> dict[str, np.ndarray]:
        return {f"{count}.{name}": ranks for count in counts
                for name, ranks in _ranks([_against(bank, t, count=count) for t in bank.attacked]).items() if name in COMPARED}

    check_counts(bank, counts)
    spec = {"kind": "study", "study": "curvature.by_references", **bank.spec, "counts": list(counts)}
    arrays = store.fetch(spec, compute).arrays
    return {count: {name: arrays[f"{count}.{name}"] for name in COMPARED} for count in counts}


def check_counts(bank: Bank, counts: Sequence[int]) -> None:
    """Refuse numbers of references that leave a record without two of either kind, and none at all."""
    if not counts:
        raise MiaError("reference_counts is empty: give at least one even number, such as 4.")
    for count in counts:
        if count % 2 or not 4 <= count <= len(bank.models) - 2:
            raise MiaError(f"reference_counts = {list(counts)}: each must be even and from 4 to {len(bank.models) - 2}, so "
                           "that each record has two references of either kind.")


# ------------------------------------------------------------------------------------------------------ single records


def record_curves(bank: Bank, percentiles: Sequence[float]) -> dict[str, np.ndarray]:
    """Log curvature of single records under all models, and whether that of all records is Gaussian; kept in the store.

    Records are chosen by how far their two means lie apart, in standard deviations: the given percentiles over the pool.

    Returns:
        "record" int [P], "values" [P, M], "members" bool [P, M]; "gap" [N]; and p-values of the Shapiro-Wilk test [2, N], IN
        and OUT: "p.log", of log curvature, and "p.raw", of the curvature itself; "spread" [2], median standard deviation of
        log curvature over models, IN and OUT.
    """
    def compute() -> dict[str, np.ndarray]:
        log, members = bank.signals["curvature"][..., 0], bank.members
        inside, outside = ([log[side[:, i], i] for i in range(len(bank.records))] for side in (members, ~members))
        gap = np.array([(b.mean() - a.mean()) / max(np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2), 1e-12)
                        for a, b in zip(inside, outside, strict=True)])
        chosen = np.argsort(gap)[[round(q / 100 * (len(gap) - 1)) for q in percentiles]]
        p = {kind: np.array([[stats.shapiro(use(one)).pvalue if np.ptp(use(one)) else np.nan for one in side]
                             for side in (inside, outside)]) for kind, use in (("log", np.asarray), ("raw", np.exp))}
        return {"record": chosen, "values": log[:, chosen].T, "members": members[:, chosen].T, "gap": gap,
                "p.log": p["log"], "p.raw": p["raw"],
                "spread": np.array([np.median([one.std(ddof=1) for one in side]) for side in (inside, outside)])}

    spec = {"kind": "study", "study": "curvature.record_curves", **bank.spec, "percentiles": list(percentiles)}
    return store.fetch(spec, compute).arrays


# ------------------------------------------------------------------------------------------- what the number measures


def estimators(bank: Bank, count: int, steps: Sequence[float], iterations: Sequence[int]) -> dict[str, np.ndarray]:
    """The log-likelihood ratio of several estimates of curvature, and of what they are like, on the first records of the
    pool; image alone; kept in the store.

    Args:
        count: n records. steps: h of the released form. iterations: numbers of its probes.

    Returns:
        "members" bool [T, n]; ranks [T, n] by name of the signal: "exact" (trace), "exact_norm", "hutchinson", "printed" (the
        trace as printed, a Gaussian of its values as they are), "printed_log" (of its logarithm), "released.h=H",
        "released.iterations=K", "released_float32", "own_label" (the released form, of the loss with the label that each model
        gives itself), "true", "top"; "norm_correlation.NAME", rank correlation with the exact norm, [M]; "negative.NAME",
        share of values; "size.NAME" [2], median of the values over the exact norm, where the model gives the
        record's label and where it does not;
        "wrong" [2], shares of members and of others whose label the models do not give; "h", the bank's; "easy" bool [n],
        records that all models get right.
    """
    rows, steps = np.arange(min(count, len(bank.records))), sorted({*steps, bank.h})

    def compute() -> dict[str, np.ndarray]:
        records, models = bank.records.take(rows), bank.models
        values = dict(zip(("exact", "exact_norm"), curvature.between_kinks(models, records), strict=True))
        values["hutchinson"] = curvature.of(models, records, "hutchinson", bank.iterations)
        values["printed"] = curvature.of(models, records, "zero_order", bank.iterations, bank.h)
        released = {f"released.h={h:g}": {"h": h, "iterations": bank.iterations} for h in steps}
        released |= {f"released.iterations={k}": {"h": bank.h, "iterations": k} for k in iterations}
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
        for target in bank.attacked:
            references = bank.references(target)
            inside = bank.members[references][:, rows]
            scores.append({name: attack.nll(one[target], one[references], inside) for name, one in fits.items()})
        out = {"members": bank.judged[:, rows], **_ranks(scores)}
        wrong, inside = given != records.y, bank.members[:, rows]
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

    spec = {"kind": "study", "study": "curvature.estimators", **bank.spec, "count": len(rows), "steps": list(steps),
            "probes": list(iterations)}
    return store.fetch(spec, compute).arrays


def slices(bank: Bank, percentile: float, reach: float = 0.05, points: int = 41) -> dict[str, np.ndarray]:
    """The loss of one record along one random direction, under all models; kept in the store.

    Args:
        percentile: of the pool's records by how far their mean log curvatures IN and OUT lie apart. reach: farthest point, in
            the unit of h.

    Returns:
        "t" [P], "loss" [M, P], "members" bool [M], "record" int [].
    """
    def compute() -> dict[str, np.ndarray]:
        record = int(record_curves(bank, [percentile])["record"][0])
        one, t = bank.records.take([record]), np.linspace(-reach, reach, points)
        x = outputs.inputs(one.x, 0, 1, torch.device("cpu"), torch.float64)
        direction = torch.from_numpy(np.random.default_rng(31).choice([-1.0, 1.0], tuple(x.shape)))
        line, y = x + torch.from_numpy(t)[:, None, None, None] * direction, torch.from_numpy(np.repeat(one.y, points))
        with torch.no_grad():
            losses = [precise_loss(outputs.in_precision(bank.models.model(m), "float64")(line), y).numpy()
                      for m in range(len(bank.models))]
        return {"t": t, "loss": np.stack(losses), "members": bank.members[:, record], "record": np.array(record)}

    spec = {"kind": "study", "study": "curvature.slices", **bank.spec, "percentile": percentile, "reach": reach,
            "points": points}
    return store.fetch(spec, compute).arrays


def step_sizes(bank: Bank, steps: Sequence[float], count: int = 100) -> dict[str, np.ndarray]:
    """Mean ``|q|`` of the first records under the first model as h shrinks, in both precisions; kept in the store.

    Returns:
        "h" [H]; "float32" and "float64" [n, H], mean over probes; "expected" [n], the same by the Hessian's own products with
        the same probes, between kinks; "loss" [n].
    """
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

    spec = {"kind": "study", "study": "curvature.step_sizes", **bank.spec, "steps": list(steps), "count": len(rows)}
    return store.fetch(spec, compute).arrays


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
    ranked, members = np.argsort(play(bank)["difficulty"], kind="stable"), np.zeros((seeds, len(bank.records)), bool)
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


def by_size(bank: Bank, kind: str, sizes: Sequence[int], seeds: int, most: int) -> dict[int, dict[str, np.ndarray]]:
    """Methods against models of training sets of several sizes, with the bank as references, image alone; kept in the store.

    References are not matched to the targets' size, as in the released code.

    Args:
        kind: of `KINDS`. seeds: S targets of each size. most: members and non-members that are judged, at most.

    Returns:
        size -> {"members" bool [S, n], method -> ranks [S, n], "untouched" [S, n]: ranks of minus the difficulty, which no
        target has a part in; "train" accuracy [S]}, n being twice the smaller of `most`, members and non-members.
    """
    sizes = [size for size in sizes if kind != "matched" or 2 * size < len(bank.records)]
    drawn = {size: training_sets(bank, kind, size, seeds) for size in sizes}
    config = replace(bank.models.config, seed=bank.models.config.seed + 11)
    ensembles = {size: train(bank.records, members, config, label=f"{kind}, {size}")
                 for size, (members, _) in drawn.items()}

    def compute() -> dict[str, np.ndarray]:
        out, difficulty = {}, play(bank)["difficulty"]
        for size, models in ensembles.items():
            judged = _sample(models.members, drawn[size][1], most)
            rows = _foreign(bank, models, judged)
            for row, asked in zip(rows, judged, strict=True):
                row["untouched"] = -difficulty[asked]
            held = _held(models.members, judged)
            right = signals.correctness(models, bank.records)
            out |= {f"{size}.members": held, f"{size}.train": np.average(right, 1, models.members)}
            out |= {f"{size}.{name}": ranks for name, ranks in _ranks(rows).items()}
        return out

    spec = {"kind": "study", "study": "curvature.by_size", **bank.spec, "set": kind, "most": most,
            "targets": [models.key for models in ensembles.values()]}
    arrays = store.fetch(spec, compute).arrays
    return {size: {name.split(".", 1)[1]: one for name, one in arrays.items() if name.startswith(f"{size}.")}
            for size in sizes}


def _sample(members: np.ndarray, judged: np.ndarray, most: int) -> np.ndarray:
    """Equally many members and others among the judged of each row, as many in all rows, bool [S, N]."""
    count = min([most, *(side.sum(1).min() for side in (members & judged, ~members & judged))])
    asked = np.zeros_like(members)
    for s, row in enumerate(asked):
        rng = np.random.default_rng([29, s])
        for side in (members[s], ~members[s]):
            row[rng.permutation(np.flatnonzero(side & judged[s]))[:count]] = True
    return asked


# ---------------------------------------------------------------------------------------------------------------- DP-SGD


def private_training(bank: Bank, epsilons: Sequence[float], seeds: int, config: TrainConfig,
                     most: int) -> dict[str, np.ndarray]:
    """Methods against targets trained by DP-SGD on random halves of the pool (Figure 5); kept in the store.

    References are the bank's, which are not private, as in the released code. The last row is the same recipe without privacy.
    Targets of all rows have the same training sets. Delta is 1e-5, the paper's.

    Args:
        epsilons: one or more. seeds: S targets each. config: recipe. most: members and non-members judged, at most.

    Returns:
        "members" bool [S, n]; method -> ranks [E + 1, S, n]; "epsilon" and "noise" [E]; accuracies "train" and "test"
        [E + 1, S].
    """
    members = membership.random_halves(len(bank.records), seeds, 1000 + bank.models.config.seed)
    config = replace(config, seed=bank.models.config.seed + 12)  # other weights to start from than any reference's
    banks = [dp.train(bank.records, members, config, dp.Privacy(epsilon, DELTA), label=f"private models (ε = {epsilon:g})")
             for epsilon in epsilons]
    banks.append(train(bank.records, members, config, label="models without privacy"))

    def compute() -> dict[str, np.ndarray]:
        judged = _sample(members, np.ones_like(members), most)
        right = [signals.correctness(models, bank.records) for models in banks]
        scores = [_ranks(_foreign(bank, models, judged)) for models in banks]
        return {"members": _held(members, judged), **{name: np.stack([one[name] for one in scores]) for name in scores[0]},
                "epsilon": np.array([models.epsilon().mean() for models in banks[:-1]]),
                "noise": np.array([models.noise().mean() for models in banks[:-1]]),
                "train": np.stack([np.average(one, 1, members) for one in right]),
                "test": np.stack([np.average(one, 1, ~members) for one in right])}

    spec = {"kind": "study", "study": "curvature.private_training", **bank.spec, "most": most,
            "targets": [models.key for models in banks]}
    return store.fetch(spec, compute).arrays


# --------------------------------------------------------------------------------------------------------------- numbers


def over_targets(found: dict[str, np.ndarray], name: str, metric: str = "auc", minus: str | None = None) -> Interval:
    """The same for targets that are judged on records of their own: Student's t over targets."""
    function = {"auc": metrics.auc, "balanced_accuracy": metrics.balanced_accuracy}[metric]
    values = function(found[name], found["members"])
    if minus is not None:
        values = values - function(found[minus], found["members"])
    bounds = (-1.0, 1.0) if minus is not None else (0.0, 1.0)
    return metrics.t_interval(values, covers=f"{len(values)} targets", bounds=bounds)


def among_the_easiest(found: dict[str, np.ndarray], method: str, share: float) -> np.ndarray:
    """AUC of a method for each target among the records that are of lowest mean curvature under its references, [T]; not a
    number where these are members only, or others only.

    Args:
        found: of `play`. share: of all records, in (0, 1].
    """
    out = []
    for own, members, easy in zip(found[method], found["members"], found["reference_difficulty"], strict=True):
        kept = np.argsort(easy, kind="stable")[:round(share * len(easy))]
        sides = set(members[kept])
        out.append(metrics.auc(own[kept], members[kept]) if len(sides) == 2 else np.nan)
    return np.array(out)
