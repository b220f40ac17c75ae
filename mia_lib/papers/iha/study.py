"""Experiments of the inverse-Hessian chapter (Suri, Zhang and Evans 2024, section 4).

A case is a bank of M models in complementary halves of N records; T of them are audited in turn on J of the records. Scores
are higher for members, and kept as ranks within a target. Arrays [T, J] hold a row a target; what is kept of sweeps are
metrics of each target, in the order of `KEPT`.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from multiprocessing import get_context

import numpy as np
import pandas as pd
import psutil
import torch
from threadpoolctl import threadpool_limits

from mia_lib import data, membership, metrics, signals, store, training
from mia_lib import models as architectures
from mia_lib.attacks import baselines, iha
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_range, choose
from mia_lib.metrics.numbers import TITLES, log_odds, ranks
from mia_lib.papers import costs as counts
from mia_lib.signals import hessian, outputs
from mia_lib.training import Ensemble, TrainConfig, devices, ensemble, train
from mia_lib.training.backends import loop, pool

# The paper's attacks, then ours: key -> name.
PAPER = {"loss": "LOSS", "sif": "SIF", "lira": "LiRA", "iha": "IHA"}
OURS = {"lira_self": "LiRA, the target among its references", "lira_fixed": "LiRA, one variance",
        "whole": "IHA, nothing taken out", "stationary": "IHA with weight decay in I2",
        "gradient": "gradient alone",
        "gradient_plain": "gradient alone, without weight decay",
        "gradient_whole": "gradient alone, nothing taken out"}
NAMES = PAPER | OURS
ABLATION = {"I1": ("I1",), "I2": ("I2",), "I1, I2": ("I1", "I2"), "I1, I2, I3, I4": ("I1", "I2", "I3", "I4"),
            "loss, I1": ("loss", "I1"), "loss, I2": ("loss", "I2"), "loss, I1, I2": ("loss", "I1", "I2"),
            "all": ("loss", "I1", "I2", "I3", "I4")}  # rows of Table 4
KEPT = ("auc", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001")


@dataclass(frozen=True)
class Conditioning:
    """How a Hessian is made invertible: exactly one of the three.

    Attributes:
        damping: epsilon.
        percentile: of the absolute eigenvalues, which is taken for epsilon.
        rank_threshold: below which directions are left out.
    """

    damping: float | None = None
    percentile: float | None = None
    rank_threshold: float | None = None

    def inverse(self, found: hessian.Spectrum) -> hessian.Inverse | None:
        """None where this conditioning leaves the Hessian singular or indefinite."""
        damping = self.damping if self.percentile is None else float(np.percentile(np.abs(found.values), self.percentile))
        try:
            if self.rank_threshold is not None:
                return found.inverse(rank_threshold=self.rank_threshold)
            return found.inverse(damping)
        except MiaError:
            return None


@dataclass(frozen=True)
class Sweep:
    """Conditionings of Table 8.

    Attributes:
        dampings: epsilons. percentiles: of the absolute eigenvalues, taken for epsilon. thresholds: of low rank.
    """

    dampings: tuple[float, ...] = ()
    percentiles: tuple[float, ...] = ()
    thresholds: tuple[float, ...] = ()

    def __post_init__(self):
        for name in ("dampings", "thresholds"):
            if not all(one > 0 for one in getattr(self, name)):
                raise MiaError(f"{name} = {list(getattr(self, name))}: each must be above 0.")
        for one in self.percentiles:
            check_range("percentiles", one, 0, 100)

    def ways(self) -> list[Conditioning]:
        """All of them, in this order."""
        return [*(Conditioning(damping=one) for one in self.dampings),
                *(Conditioning(percentile=one) for one in self.percentiles),
                *(Conditioning(rank_threshold=one) for one in self.thresholds)]


@dataclass(frozen=True)
class Case:
    """One data set, one architecture, a bank of models.

    Attributes:
        name: what tables call it.
        models: in complementary halves; trained when a number of theirs is first needed.
        attacked: T numbers of models.
        rows: int [J], records judged.
        damping: epsilon of the attack.
        sweep: other conditionings, which share the one decomposition.
        images: whether records are images, as a table of their pixels.
        precision: "float64" or "float32", of Hessians and gradients.
    """

    name: str
    models: Ensemble
    attacked: tuple[int, ...]
    rows: np.ndarray
    damping: float
    sweep: Sweep
    images: bool
    precision: str = "float64"

    @property
    def ways(self) -> list[Conditioning]:
        """How the Hessian of a target is conditioned: as the attack has it, then those of the sweep."""
        return [Conditioning(self.damping), *self.sweep.ways()]

    @property
    def records(self) -> Dataset:
        """All N records; half of them trains each model."""
        return self.models.records

    @property
    def judged(self) -> np.ndarray:
        """bool [T, J], membership in each target."""
        return self.models.members[list(self.attacked)][:, self.rows]

    @property
    def parameters(self) -> int:
        """P."""
        return architectures.parameter_count(self.models.untrained())

    @property
    def rates(self) -> dict[str, float]:
        """What Eq. 8 takes of the recipe."""
        config = self.models.config
        return {"learning_rate": config.learning_rate, "momentum": config.momentum, "weight_decay": config.weight_decay}

    def references(self, target: int) -> np.ndarray:
        """Models that serve LiRA against a target: all but it and its complement."""
        return membership.references_of(target, len(self.models))

    @property
    def spec(self) -> dict:
        """What determines the numbers of a case."""
        return {"models": self.models.key, "attacked": list(self.attacked), "rows": store.fingerprint(self.rows),
                "damping": self.damping, "sweep": asdict(self.sweep), "precision": self.precision}

    @cached_property
    def signal(self) -> np.ndarray:
        """LiRA's: log odds of the true class, [M, J]."""
        return signals.logit_scaled_confidence(self.models, self.records)[:, self.rows].astype(np.float64)


def records_of(dataset: str, architecture: str) -> tuple[str, Dataset, str]:
    """Records as a table, and the loss: sigmoid_regression tells odd classes from even ones, with squared error.

    Returns:
        title, records (the training part), name of the loss.
    """
    found = data.load(dataset)
    found = found.take(np.arange(found.n_train))
    found = found.as_table() if found.is_image else found
    title = TITLES.get(dataset, dataset)
    kind, _, widths = architecture.partition(":")
    if kind != "sigmoid_regression":
        layers = "-".join([str(found.shape[0]), *widths.split(","), str(len(found.classes))])
        return f"{title} {layers if kind == 'mlp' and widths else architecture}", found, "cross_entropy"
    if len(found.classes) > 2:
        found = replace(found, name=f"{dataset}_odd", y=found.y % 2, classes=("even", "odd"))
        title += "-Odd"
    return title, found, "brier"


def case(dataset: str, architecture: str, pool: int, epochs: int, batch_size: int, models: int, targets: int, judged: int,
         learning_rate: float, momentum: float, weight_decay: float, schedule: str, damping: float, sweep: Sweep = Sweep(),
         precision: str = "float64", seed: int = 0) -> Case:
    """A bank of SGD-trained models.

    Args:
        dataset, architecture: by name. pool: records of the game, half of which trains each model; 0 for all there are.
        models: M, even. targets: T, the first ones. judged: J, records that attacks are judged on, at most.
        epochs, batch_size, learning_rate, momentum, weight_decay, schedule: of SGD. damping, sweep, precision: of the Hessian.
        seed: of pool, halves and models.

    Raises:
        MiaError: too few records, models or references; a damping that is not above zero.
    """
    title, found, loss = records_of(dataset, architecture)
    pool = pool or len(found)
    if not 20 <= pool <= len(found):
        raise MiaError(f"pools holds {pool}: {found.name} has {len(found)} records; allowed are 20 to that, or 0 for all.")
    check_range("targets", targets, 2, models)
    if models % 2 or models < 6:
        raise MiaError(f"models = {models}: an even number from 6 is needed, complementary pairs of which two are left "
                       "against each target, so that each record has two references that were trained on it and two others.")
    if not damping > 0:
        raise MiaError(f"damping = {damping!r}: above 0 is needed, such as the paper's 0.2.")
    if pool < len(found):
        found = found.take(np.random.default_rng([17, seed]).permutation(len(found))[:pool])
    config = TrainConfig(architecture, epochs=epochs, batch_size=batch_size, optimizer="sgd", learning_rate=learning_rate,
                         momentum=momentum, weight_decay=weight_decay, schedule=schedule, loss=loss, seed=seed)
    bank = train(found, membership.balanced_halves(pool, models, seed), config, label=f"models of {title}")
    rows = np.sort(np.random.default_rng([19, seed]).permutation(pool)[:judged])
    return Case(title, bank, tuple(range(targets)), rows, damping, sweep, data.load(dataset).is_image,
                choose("precision", precision, outputs.PRECISIONS))


def check_lengths(**lists: Sequence) -> None:
    """Refuse lists that do not have one entry for each case.

    Raises:
        MiaError: with the length of each.
    """
    lengths = {name: len(one) for name, one in lists.items()}
    if len(set(lengths.values())) > 1 or not min(lengths.values()):
        raise MiaError("these lists need one entry for each case, equally many: " + ", ".join(
            f"{name} has {length}" for name, length in lengths.items()) + ".")


def check_fractions(fractions: Sequence[float]) -> None:
    """Refuse fractions of the training set outside (0, 1], and none at all."""
    if not fractions or not all(0 < fraction <= 1 for fraction in fractions):
        raise MiaError(f"fractions = {list(fractions)}: each must be above 0 and at most 1, and there must be one.")


def plan(cases: Sequence[Case]) -> pd.DataFrame:
    """What a run trains and inverts, before anything is trained; says what of the recipes Eq. 8 does not cover."""
    rows = []
    for one in cases:
        p = one.parameters
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            beyond = iha.assumed(one.models.config)
        rows.append({"case": one.name, "members of each": f"{int(one.models.members[0].sum()):,}", "models": len(one.models),
                     "targets": len(one.attacked), "parameters": f"{p:,}", "Hessian, GB": f"{8e-9 * p * p:.2g}",
                     "records judged": f"{len(one.rows):,}", "Eq. 8 does not cover": "; ".join(
                         sentence.split(":")[0] for sentence in beyond) or "nothing"})
    return pd.DataFrame(rows).astype(str)


# --------------------------------------------------------------------------------------------------------- one target


def _mean_gradient(network, x, labels, loss: str, dtype: str = "float64") -> np.ndarray:
    blocks = signals.record_gradients(network, x, labels, loss, dtype)
    return sum(block.sum(0, dtype=np.float64) for block in blocks) / len(x)


def _audit(network, x, labels, loss, rows, ways: list[dict], known: np.ndarray, dtype: str) -> dict[str, np.ndarray]:
    """All that audits of one model need: loss, gradient and forms of the judged records.

    Args:
        network: in evaluation mode, on the device that is to compute. x, labels: all N records. loss: its name.
        rows: int [J], judged. ways: fields of `Conditioning`, E of them. known: bool [N], the members that the auditor knows.
        dtype: of Hessian and gradients.
    """
    inside = np.flatnonzero(known)
    weights = torch.nn.utils.parameters_to_vector(network.parameters()).detach().cpu().numpy().astype(np.float64)
    start = time.perf_counter()
    matrix = hessian.exact(network, x[inside], labels[inside], loss, dtype)
    seconds = [time.perf_counter() - start]
    found = hessian.spectrum(matrix, overwrite=True)
    del matrix
    seconds.append(time.perf_counter() - start - sum(seconds))
    mean = _mean_gradient(network, x[inside], labels[inside], loss, dtype)
    inverses = [Conditioning(**way).inverse(found) for way in ways]
    usable = [k for k, one in enumerate(inverses) if one is not None]
    squares, along = [], []

    def blocks():
        for block in signals.record_gradients(network, x[rows], labels[rows], loss, dtype):
            squares.append((block**2).sum(1, dtype=np.float64))
            along.append(block @ np.stack([mean, weights]).T)
            yield block

    if usable:
        forms = iha.forms(blocks(), [inverses[k] for k in usable], mean, weights)
    else:
        for _ in blocks():  # for what else they give
            pass
    seconds.append(time.perf_counter() - start - sum(seconds))
    out = {"values": found.values, "squares": np.concatenate(squares), "along_mean": np.concatenate(along)[:, 0],
           "along_theta": np.concatenate(along)[:, 1], "seconds": np.array(seconds),
           "mean": mean.astype(np.float32), "theta": weights.astype(np.float32)}
    for name in iha.Forms.__dataclass_fields__:
        whole = np.full((len(ways), len(rows)), np.nan)
        if usable:
            whole[usable] = getattr(forms, name)
        out[name] = whole
    return out


def _audit_task(config, shape, classes, arrays, path, labels, loss, arguments):
    torch.set_num_threads(1)  # an executor's process may not be one of ours
    network, x = ensemble.rebuilt(config, shape, classes, arrays), training.open_records(path)
    with threadpool_limits(1):  # or each process would start as many threads as there are processors
        return _audit(network, x, labels, loss, **arguments)


def audits(case: Case, targets: Sequence[int], ways: Sequence[Conditioning] | None = None,
           known: Sequence[np.ndarray] | None = None) -> list[dict[str, np.ndarray]]:
    """`_audit` of some models, each kept in the store as soon as it is there.

    Args:
        targets: numbers of models; the same one may come several times. ways: how the Hessian is conditioned, E of them,
            the case's by default.
        known: for each target, the members that the auditor knows, bool [N]; all by default.

    Returns:
        for each target: "newton" and the other fields of `iha.Forms` [E, J], not a number where a conditioning leaves the
        Hessian indefinite; "squares", "along_mean", "along_theta" [J]: ``|g|^2``, d^T g and w^T g; "values" [P]; "mean" and
        "theta" [P]; "seconds" [3] of Hessian, decomposition and rotation.
    """
    models, given = case.models, [asdict(way) for way in (case.ways if ways is None else ways)]
    known = [models.members[m] for m in targets] if known is None else list(known)
    spec = store.under({"kind": "audit", "rows": store.fingerprint(case.rows), "ways": given, "precision": case.precision},
                       _audit_task, case)
    specs = [{**spec, "model": store.address(models.spec(m)), "known": store.fingerprint(part)}
             for m, part in zip(targets, known, strict=True)]
    found = [store.look_up(spec) for spec in specs]
    missing = [k for k, entry in enumerate(found) if entry is None]
    if missing:
        models.fit()
        where = devices.pick(models.device)
        shape, classes, loss = models.records.shape, len(models.records.classes), models.config.loss
        arguments = [{"rows": case.rows, "ways": given, "known": known[k], "dtype": case.precision} for k in missing]

        def keep(position: int, arrays: dict) -> None:
            k = missing[position]
            found[k] = store.keep(specs[k], arrays, float(arrays["seconds"].sum()), device=devices.describe(where))

        label = f"inverse Hessians of {case.name}"
        if where.type == "cpu":
            path = ensemble.records_file(models.records)
            tasks = [(models.config, shape, classes, models.arrays(targets[k]), path, models.records.y, loss, arguments[place])
                     for place, k in enumerate(missing)]
            pool.run_tasks(_audit_task, tasks, keep, label, models.workers, models.executor)
        else:
            for place, k in enumerate(missing):
                keep(place, _audit(models.model(targets[k]).to(where), models.records.x, models.records.y, loss,
                                   **arguments[place]))
    return [entry.arrays for entry in found]


def _forms(found: dict[str, np.ndarray], way: int = 0) -> iha.Forms:
    return iha.Forms(**{name: found[name][way] for name in iha.Forms.__dataclass_fields__})


def _measured(score: np.ndarray, members: np.ndarray) -> np.ndarray:
    """[3] in the order of `KEPT`; not a number where the score is none."""
    if not np.isfinite(score).all():
        return np.full(len(KEPT), np.nan)
    return np.array([metrics.auc(score, members), metrics.tpr_at_fpr(score, members, 0.01),
                     metrics.tpr_at_fpr(score, members, 0.001)])


def variants(case: Case, found: dict[str, np.ndarray], loss: np.ndarray, members: np.ndarray, n: int,
             way: int = 0) -> dict[str, np.ndarray]:
    """Scores [J] of all white-box audits of one target.

    Args:
        found: of `audits`. loss, members: [J]. n: size of the training set.
    """
    forms, rates, taken = _forms(found, way), case.rates, members / n
    mu, lr, alpha = rates["momentum"], rates["learning_rate"], rates["weight_decay"]

    def score(taken_out, terms="all", **how):
        return iha.combine(loss, iha.split(forms, taken_out, n, **rates, **how), lr, mu, terms)

    along = found["along_mean"] + alpha * found["along_theta"]
    return {"sif": -forms.influence, "iha": score(taken), "whole": score(np.zeros(len(loss))),
            "stationary": score(taken, stationary=True),
            "gradient": iha.stationarity(along, found["squares"], taken, n),
            "gradient_plain": iha.stationarity(found["along_mean"], found["squares"], taken, n), "gradient_whole": -along,
            **{f"terms.{name}": score(taken, terms) for name, terms in ABLATION.items()}}


# --------------------------------------------------------------------------------------------------------- the attacks


def play(case: Case) -> dict[str, np.ndarray]:
    """All attacks against all targets, kept in the store.

    Returns:
        "members" bool [T, J]; ranks [T, J] of each of `NAMES`; "terms.NAME" [T, 3], `KEPT` of the rows of `ABLATION`;
        "scatter" float32 [3, J] of the first target: 2 x_D^T x, ``|x|^2 / n`` and the loss; "smallest" [T], lowest
        eigenvalues; "size" [T, 3], norms of grad L_D, of that with weight decay, and of w; "train" and "test" accuracy and
        "loss_in" and "loss_out" [T]; "inverting" and "training" seconds [T], of Hessian and decomposition, and of LiRA's
        references.
    """
    def compute() -> dict[str, np.ndarray]:
        models, targets, judged, rows, terms, sizes = case.models, list(case.attacked), case.judged, [], [], []
        found = audits(case, targets)
        loss = signals.loss(models.part(targets), case.records)[:, case.rows].astype(np.float64)
        n, alpha = models.members.sum(1), models.config.weight_decay
        for place, target in enumerate(targets):
            one, members = found[place], judged[place]
            _check_definite(case, target, one)
            row = variants(case, one, loss[place], members, n[target])
            references = case.references(target)
            given = case.signal[target], case.signal[references], models.members[references][:, case.rows]
            row |= {"loss": -loss[place], "lira": baselines.lira_online(*given),
                    "lira_fixed": baselines.lira_online(*given, fixed_variance=True),
                    "lira_self": baselines.lira_online(given[0], case.signal, models.members[:, case.rows], own="keep")}
            terms.append({name: _measured(row.pop(name), members) for name in [*row] if name.startswith("terms.")})
            rows.append(row)
            mean, theta = one["mean"].astype(float), one["theta"].astype(float)
            sizes.append([np.linalg.norm(v) for v in (mean, mean + alpha * theta, theta)])
        first = _forms(found[0])
        right = signals.correctness(models.part(targets), case.records)[:, case.rows]
        return {"members": judged, **{name: np.stack([ranks(row[name]) for row in rows]) for name in rows[0]},
                **{name: np.stack([row[name] for row in terms]) for name in terms[0]},
                "scatter": np.stack([2 * first.newton_mean, first.newton / n[targets[0]], loss[0]]).astype(np.float32),
                "smallest": np.array([one["values"][0] for one in found]), "size": np.array(sizes),
                "train": np.average(right, 1, judged), "test": np.average(right, 1, ~judged),
                "loss_in": np.average(loss, 1, judged), "loss_out": np.average(loss, 1, ~judged),
                "inverting": np.array([one["seconds"][:2].sum() for one in found]),
                "training": np.array([_training_seconds(case, target) for target in targets])}

    return store.fetch({"kind": "study", "study": "iha.play", **case.spec}, compute).arrays


def _check_definite(case: Case, target: int, found: dict[str, np.ndarray]) -> None:
    """Refuse an audit whose Hessian the case's damping leaves indefinite."""
    if np.isnan(found["newton"][0]).any():
        least = found["values"][0]
        raise MiaError(f"damping = {case.damping:g} leaves the Hessian of target {target} of {case.name} indefinite: its "
                       f"smallest eigenvalue is {least:.4g}. Give more than {-least:.4g}.")


def _training_seconds(case: Case, target: int) -> float:
    """What the training of a target's references took, when it was done."""
    return float(sum(store.look_up(case.models.spec(m)).manifest["seconds"] for m in case.references(target).tolist()))


def conditioning(case: Case) -> dict[str, np.ndarray]:
    """The targets audited under all conditionings of the case's sweep; kept in the store (Table 8).

    Returns:
        "dampings.full", "dampings.pair" (I1 and I2 alone) [T, E, 3], `KEPT`, not a number where the Hessian stays
        indefinite; the same for "percentiles" and "thresholds"; "gradient" [T, 3], no Hessian at all, without weight decay;
        "epsilon" [T, E], of the percentiles; "values" float32 [T, P], eigenvalues.
    """
    def compute() -> dict[str, np.ndarray]:
        targets, sweep = list(case.attacked), asdict(case.sweep)
        found, n = audits(case, targets), case.models.members.sum(1)
        loss = signals.loss(case.models.part(targets), case.records)[:, case.rows].astype(np.float64)
        out: dict[str, list] = {"full": [], "pair": [], "gradient": []}
        for one, own, members, target in zip(found, loss, case.judged, targets, strict=True):
            scores = [variants(case, one, own, members, n[target], way) for way in range(len(case.ways))]
            for kind, name in (("full", "iha"), ("pair", "terms.I1, I2")):
                out[kind].append([_measured(of_way[name], members) for of_way in scores[1:]])
            out["gradient"].append(_measured(scores[0]["gradient_plain"], members))
        cuts, values = np.cumsum([len(group) for group in sweep.values()])[:-1], np.stack([one["values"] for one in found])
        kept = {f"{name}.{kind}": part for kind in ("full", "pair")
                for name, part in zip(sweep, np.split(np.reshape(out[kind], (len(targets), -1, 3)), cuts, 1), strict=True)}
        return kept | {"gradient": np.stack(out["gradient"]), "values": values.astype(np.float32),
                       "epsilon": np.percentile(np.abs(values), case.sweep.percentiles, axis=1).T}

    return store.fetch({"kind": "study", "study": "iha.conditioning", **case.spec}, compute).arrays


def partial_knowledge(case: Case, fractions: Sequence[float], seed: int = 0) -> dict[str, np.ndarray]:
    """Audits by someone who knows only a part of the training set (Table 9); kept in the store.

    Hessian and mean gradient are those of the known part S; n stays the size of the training set. The record's own gradient
    is taken out with weight 1 / abs(S) where S holds it ("honest"); or with weight 1 / n from that of every member, known or
    not, as in the released code ("released").

    Returns:
        "honest", "released" and "gradient" [T, F, 3], the last without Hessian and with the honest rule.
    """
    check_fractions(fractions)

    def compute() -> dict[str, np.ndarray]:
        models, out = case.models, {"honest": [], "released": [], "gradient": []}
        loss = signals.loss(models.part(case.attacked), case.records)[:, case.rows].astype(np.float64)
        known = []
        for target in case.attacked:
            order = np.random.default_rng([37, seed, target]).permutation(np.flatnonzero(models.members[target]))
            for fraction in fractions:
                part = np.zeros(len(case.records), bool)
                part[order[:max(1, round(fraction * len(order)))]] = True
                known.append(part)
        targets = [target for target in case.attacked for _ in fractions]
        found = audits(case, targets, [Conditioning(case.damping)], known)
        for k, (target, one, part) in enumerate(zip(targets, found, known, strict=True)):
            members, n, inside = models.members[target][case.rows], models.members[target].sum(), part[case.rows]
            own, forms, rates = loss[k // len(fractions)], _forms(one), case.rates
            for name, taken in (("honest", inside / part.sum()), ("released", members / n)):
                parts = iha.split(forms, taken, n, **rates)
                out[name].append(_measured(iha.combine(own, parts, rates["learning_rate"], rates["momentum"]), members))
            along = one["along_mean"] + rates["weight_decay"] * one["along_theta"]
            out["gradient"].append(_measured(iha.stationarity(along, one["squares"], inside / part.sum(), n), members))
        return {name: np.reshape(rows, (len(case.attacked), len(fractions), 3)) for name, rows in out.items()}

    spec = {"kind": "study", "study": "iha.partial_knowledge", **case.spec, "fractions": list(fractions), "seed": seed}
    return store.fetch(spec, compute).arrays


def placebo(case: Case) -> dict[str, np.ndarray]:
    """The audits on records that a model never saw, a random half of which is called its training set; kept in the store.

    Each target's non-members take the place of all records, half of them that of the training set. Whatever the audit finds
    here is due to the sign that it gives the members by itself.

    Returns:
        "iha", "pair" (I1 and I2 alone) and "gradient", `KEPT` of each target [T, 3].
    """
    def compute() -> dict[str, np.ndarray]:
        models, out, pretended = case.models, {"iha": [], "pair": [], "gradient": []}, []
        for target in case.attacked:
            fresh = np.flatnonzero(~models.members[target])
            pretended.append(np.zeros(len(case.records), bool))
            pretended[-1][np.random.default_rng([41, target]).permutation(fresh)[:len(fresh) // 2]] = True
        found = audits(case, list(case.attacked), [Conditioning(case.damping)], pretended)
        loss = signals.loss(models.part(case.attacked), case.records)[:, case.rows].astype(np.float64)
        for target, one, own, known in zip(case.attacked, found, loss, pretended, strict=True):
            kept = ~models.members[target][case.rows]
            members = known[case.rows]
            scores = variants(case, one, own, members, int(known.sum()))
            for name, score in (("iha", "iha"), ("pair", "terms.I1, I2"), ("gradient", "gradient")):
                out[name].append(_measured(scores[score][kept], members[kept]))
        return {name: np.stack(rows) for name, rows in out.items()}

    return store.fetch({"kind": "study", "study": "iha.placebo", **case.spec}, compute).arrays


EDGES = (-np.inf, 5e-4, 0.01, 0.1, 1.0, np.inf)  # of eigenvalues


def residuals(case: Case) -> dict[str, np.ndarray]:
    """What training left of the gradient in directions of the Hessian, beside the share of a single record; kept in the store.

    Returns:
        by intervals of eigenvalues between `EDGES`, for each target [T, 5]: "directions", how many; "left", root mean square
        of grad L_D + alpha w along them; "own", that of g / n, over judged members; "noise", the share of the directions in
        the variance of the gradient test, and "noise_iha" in that of I1 and I2 with the weight decay.
    """
    def compute() -> dict[str, np.ndarray]:
        models, rows = case.models, []
        for target in case.attacked:
            network, inside = models.model(target), models.members[target]
            x, y, loss = case.records.x, case.records.y, models.config.loss
            found = hessian.spectrum(hessian.exact(network, x[inside], y[inside], loss))
            left = (_mean_gradient(network, x[inside], y[inside], loss)
                    + models.config.weight_decay * models.parameters(target).astype(np.float64)) @ found.vectors
            asked, square = case.rows[inside[case.rows]], 0.0
            for block in signals.record_gradients(network, x[asked], y[asked], loss, "float64"):
                square = square + ((block @ found.vectors) ** 2).sum(0)
            own = square / len(asked) / inside.sum() ** 2
            noise = left**2 * own
            damped = noise / (found.values + case.damping) ** 4
            place = np.digitize(found.values, EDGES[1:-1])
            rows.append([[np.sum(place == k), _rms(left**2, place == k), _rms(own, place == k),
                          noise[place == k].sum() / noise.sum(), damped[place == k].sum() / damped.sum()]
                         for k in range(len(EDGES) - 1)])
        names = ("directions", "left", "own", "noise", "noise_iha")
        return dict(zip(names, np.moveaxis(np.array(rows), 2, 0), strict=True))

    return store.fetch({"kind": "study", "study": "iha.residuals", **case.spec}, compute).arrays


def _rms(squares: np.ndarray, where: np.ndarray) -> float:
    return float(np.sqrt(squares[where].mean())) if where.any() else np.nan


def conjugate(case: Case, count: int, tolerance: float) -> dict[str, np.ndarray]:
    """The first target audited by conjugate gradients, without any matrix, beside the exact inverse; kept in the store.

    Args:
        count: records, half of them members. tolerance: relative residual at which a system stops.

    Returns:
        "members" bool [n]; "exact" and "cg" scores [n]; "iterations" int [n] of A^-1 g; "residuals" [n]; "bound", most
        iterations that the condition number allows; "seconds" of all systems together.

    Raises:
        MiaError: systems that did not converge, see `hessian.Solution.check`.
    """
    def compute() -> dict[str, np.ndarray]:
        target, models = case.attacked[0], case.models
        members, n = models.members[target], int(models.members[target].sum())
        place = _balanced(members[case.rows], count)
        rows, rates = case.rows[place], case.rates
        [found] = audits(case, [target])
        loss = signals.loss(models.part([target]), case.records)[0, rows].astype(np.float64)
        network, x, y = models.model(target), case.records.x, case.records.y
        start = time.perf_counter()
        gradients = np.concatenate(list(signals.record_gradients(network, x[rows], y[rows], models.config.loss, "float64")))
        mean = _mean_gradient(network, x[members], y[members], models.config.loss)
        product = hessian.operator(network, x[members], y[members], models.config.loss)
        once = hessian.conjugate_gradient(product, np.vstack([gradients, mean]), case.damping, tolerance).check()
        twice = hessian.conjugate_gradient(product, once.x[:-1], case.damping, tolerance).check()
        seconds, values = time.perf_counter() - start, found["values"]
        condition = (values[-1] + case.damping) / (values[0] + case.damping)
        forms = {"cg": iha.from_solutions(once.x[:-1], once.x[-1], gradients, twice.x), "exact": _forms(found)[place]}
        scores = {name: iha.combine(loss, iha.split(one, members[rows] / n, n, **rates), rates["learning_rate"],
                                    rates["momentum"]) for name, one in forms.items()}
        return {"members": members[rows], **scores, "iterations": once.iterations[:-1], "residuals": once.residuals[:-1],
                "bound": np.array(0.5 * np.sqrt(condition) * np.log(2 / tolerance)), "seconds": np.array(seconds)}

    if not 0 < tolerance < 1:
        raise MiaError(f"cg_tolerance = {tolerance!r}: above 0 and below 1 is needed.")
    spec = {"kind": "study", "study": "iha.conjugate", **case.spec, "count": count, "tolerance": tolerance}
    return store.fetch(spec, compute).arrays


def _balanced(members: np.ndarray, count: int) -> np.ndarray:
    """Places of the first members and the first others, equally many, at most `count` in all."""
    half = min(count // 2, members.sum(), (~members).sum())
    return np.sort(np.concatenate([np.flatnonzero(side)[:half] for side in (members, ~members)]))


# ----------------------------------------------------------------------------------------- leave-one-out reference models


LEFT_OUT = {"lira": "LiRA", "l_attack": "L-attack", "lira_l": "LiRA-L", "lira_l_released": "LiRA-L, as released", "iha": "IHA",
            "gradient": "gradient alone"}


def leave_one_out(case: Case, count: int, references: int) -> dict[str, np.ndarray]:
    """Attacks that know all other records, with reference models trained on exactly these; kept in the store (section 4.4).

    Against each record R models are trained on the target's training set without it: for a member n - 1 records, for a
    non-member all n, so these references are shared. Targets are every second one of the case, of which no two are
    complements.

    Args:
        count: records of each target, half of them members. references: R.

    Returns:
        "members" bool [T, J] and scores [T, J] of each of `LEFT_OUT`. LiRA has the bank's references.
    """
    check_range("left_out_references", references, 2)
    targets, models = list(case.attacked[::2]), case.models
    check_range("left_out_targets", len(targets), 2)
    half = min(count // 2, case.judged.sum(1).min(), (~case.judged).sum(1).min())
    places = [_balanced(models.members[target][case.rows], 2 * half) for target in targets]

    def compute() -> dict[str, np.ndarray]:
        games = [_left_out(case, target, place, references) for target, place in zip(targets, places, strict=True)]
        return {name: np.stack([game[name] for game in games]) for name in games[0]}

    spec = {"kind": "study", "study": "iha.leave_one_out", **case.spec, "count": count, "references": references}
    return store.fetch(spec, compute).arrays


def _left_out(case: Case, target: int, place: np.ndarray, references: int) -> dict[str, np.ndarray]:
    models, rows = case.models, case.rows[place]
    inside, n = models.members[target], int(models.members[target].sum())
    members = inside[rows]
    sets = np.repeat(np.vstack([membership.leave_one_out(inside, rows[members]), inside]), references, 0)
    judged = np.zeros((len(sets), len(case.records)), bool)
    for k, row in enumerate(rows[members]):
        judged[k * references:(k + 1) * references, row] = True
    judged[-references:, rows[~members]] = True
    config = replace(models.config, seed=models.config.seed + 21)
    others = train(case.records, sets, config, label="leave-one-out references", workers=models.workers,
                   executor=models.executor, device=models.device)
    of_others = signals.loss(others, case.records, judged=judged).astype(np.float64)
    loss = np.empty((references, len(rows)))
    loss[:, members] = np.stack([of_others[k * references:(k + 1) * references, row]
                                 for k, row in enumerate(rows[members])], 1)
    loss[:, ~members] = of_others[-references:, rows[~members]]
    own = signals.loss(models.part([target]), case.records)[0, rows].astype(np.float64)
    phi, of_references = (_log_odds(values, config.loss) for values in (own, loss))
    nobody = np.zeros(loss.shape, bool)
    [found] = audits(case, [target])
    _check_definite(case, target, found)
    audit = variants(replace(case, rows=rows), {name: one[..., place] if name in PER_RECORD else one
                                                for name, one in found.items()}, own, members, n)
    bank = case.references(target)
    mean, spread = of_references.mean(0), np.maximum(of_references.std(0, ddof=1), 1e-12)
    return {"members": members,
            "lira": baselines.lira_online(case.signal[target][place], case.signal[bank][:, place],
                                          models.members[bank][:, rows]),
            "l_attack": baselines.attack_r(own, loss, nobody), "l_attack_5": baselines.attack_r(own, loss, nobody, 0.05),
            "l_attack_30": baselines.attack_r(own, loss, nobody, 0.3),
            "lira_l": baselines.lira_offline(phi, of_references, nobody),
            "lira_l_released": ((phi - mean) / spread) ** 2 / 2 + np.log(spread),
            "iha": audit["iha"], "gradient": audit["gradient"]}


PER_RECORD = {*iha.Forms.__dataclass_fields__, "squares", "along_mean", "along_theta"}


def _log_odds(loss: np.ndarray, kind: str) -> np.ndarray:
    """log(p / (1 - p)) of the true class, from the cross-entropy or, of two classes, the squared error."""
    if kind == "brier":
        wrong = np.clip(np.sqrt(loss), 1e-300, 1 - 1e-16)
        return np.log1p(-wrong) - np.log(wrong)
    return log_odds(loss)


def called(found: dict[str, np.ndarray], rate: float) -> dict[str, np.ndarray]:
    """The records that each attack calls members at a false positive rate, bool [T, J]: as many non-members of each target as
    the rate allows, and every member that scores above them. "truth" are the members.

    Args:
        found: of `leave_one_out`. rate: 0.05 or 0.3, as the paper's Table 5 has it.
    """
    members, out = found["members"], {"truth": found["members"]}
    for name in ("lira", "l_attack", "lira_l", "iha", "gradient"):
        score = found[f"l_attack_{round(100 * rate)}" if name == "l_attack" else name]
        out[name] = np.stack([one > np.sort(one[~inside])[::-1][int(rate * (~inside).sum() + 1e-9)]
                              for one, inside in zip(score, members, strict=True)])
    return out


def agreement(found: dict[str, np.ndarray], rate: float) -> dict[tuple[str, str, bool], float]:
    """How often two attacks decide alike, among members (True) and among others, all targets together (Table 5).

    Agreement with "truth" is the TPR among members and 1 - FPR among others.
    """
    decided, members = called(found, rate), found["members"]
    return {(a, b, side): float(np.mean((decided[a] == decided[b])[members == side]))
            for a in decided for b in decided for side in (True, False) if a != b}


def found_beside(found: dict[str, np.ndarray], rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Of the members of each target that no attack on losses calls, which IHA calls; and its false positive rate.

    Returns:
        bool [n], these members of all targets; FPR of IHA [T].
    """
    decided, members = called(found, rate), found["members"]
    missed = members & ~(decided["lira"] | decided["l_attack"] | decided["lira_l"])
    return decided["iha"][missed], np.average(decided["iha"], 1, ~members)


# ------------------------------------------------------------------------------------------------------------------- cost


def cost(case: Case, count: int, tolerance: float) -> dict[str, np.ndarray]:
    """Time and memory of the attacks on members of the first target, each in a process of its own (Table 6); kept in the
    store.

    Args:
        count: records that are attacked one by one. tolerance: of conjugate gradients.

    Returns:
        for "iha", "cg", "lira", "loss": [4], seconds of what is computed once, seconds a record, and the most memory in MB
        beyond what the process held before, in either phase; not a number where there is nothing to do. What LiRA computes
        once are its references: the seconds are those their training took when it was done, the memory that of one epoch.
    """
    def compute() -> dict[str, np.ndarray]:
        models, target = case.models, case.attacked[0]
        models.fit()
        pool.close_pools()  # whose processes would hold memory beside those that are measured
        rows = np.flatnonzero(models.members[target])[:count]
        given = (models.config, models.records.shape, len(models.records.classes), ensemble.records_file(models.records),
                 models.records.y, models.members[target], rows, case.damping, tolerance)

        def measure(name: str) -> np.ndarray:
            used = [target, *case.references(target).tolist()] if name == "lira" else [target]
            with get_context("spawn").Pool(1) as one:
                return np.array(one.apply(_cost, (name, [models.arrays(m) for m in used], *given)))

        names = ("iha", "cg", "lira", "loss")
        with ThreadPoolExecutor(min(2, pool.default_workers())) as two:  # each on a thread of its own
            out = dict(zip(names, two.map(measure, names), strict=True))
        out["lira"][0] = _training_seconds(case, target)
        return out

    spec = {"kind": "study", "study": "iha.cost", **case.spec, "count": count, "tolerance": tolerance}
    return store.fetch(spec, compute).arrays


REFERENCES, AUDITED = 128, 1000  # reference models and records of the paper's comparison of costs


def work(case: Case) -> dict[str, float]:
    """Floating-point operations of what attacks on one target of a case consist of, counted and not timed: see `costs`.

    Returns:
        "reference", to train one model; "hessian", to compute and decompose it; "rotation", of one gradient by its
        eigenvectors; "product", of the Hessian with one vector.
    """
    models, size = case.models, case.parameters
    shape, classes, members = models.records.shape, len(models.records.classes), int(models.members[case.attacked[0]].sum())
    given = models.untrained(), shape, members, models.config.loss
    return {"reference": counts.training(models.config, shape, classes, members),
            "hessian": counts.hessian_itself(*given) + counts.decomposition(size), "rotation": 2.0 * size**2,
            "product": counts.hessian_product(*given)}


def _cost(name, arrays, config, shape, classes, path, labels, members, rows, damping, tolerance) -> list[float]:
    torch.set_num_threads(1)
    networks = [ensemble.rebuilt(config, shape, classes, one) for one in arrays]
    x, network, loss = training.open_records(path), networks[0], config.loss
    inside = np.flatnonzero(members)

    def gradient(row: int) -> np.ndarray:
        return np.concatenate(list(signals.record_gradients(network, x[[row]], labels[[row]], loss, "float64")))

    def mean() -> np.ndarray:
        return _mean_gradient(network, x[inside], labels[inside], loss)

    def prepare():
        if name == "iha":
            found = hessian.spectrum(hessian.exact(network, x[inside], labels[inside], loss))
            return found.inverse(damping), mean()
        if name == "cg":
            product = hessian.operator(network, x[inside], labels[inside], loss)
            return product, hessian.conjugate_gradient(product, mean()[None], damping, tolerance).x[0]
        if name == "lira":
            loop.fit_group(x, labels, [inside], classes, replace(config, epochs=1), [0])
        return None

    def attack(row: int, ready) -> None:
        if name == "iha":
            iha.forms(gradient(row), *ready)
        elif name == "cg":
            g = gradient(row)
            once = hessian.conjugate_gradient(ready[0], g, damping, tolerance).check()
            iha.from_solutions(once.x, ready[1], g, hessian.conjugate_gradient(ready[0], once.x, damping, tolerance).check().x)
        else:
            for one in networks:
                signals.scalars(signals.model_outputs(one, x[[row]]), labels[[row]], loss)

    signals.model_outputs(network, x[rows[:1]])  # what a first call loads is not part of any attack
    warm = gradient(int(rows[0]))
    hessian.operator(network, x[rows[:1]], labels[rows[:1]], loss)(warm)
    loop.fit_group(x, labels, [inside[:2]], classes, replace(config, epochs=1), [0])
    with threadpool_limits(1), _Memory() as first:
        start = time.perf_counter()
        ready = prepare()
        once = time.perf_counter() - start
    with threadpool_limits(1), _Memory() as second:
        start = time.perf_counter()
        for row in rows:
            attack(int(row), ready)
        each = (time.perf_counter() - start) / len(rows)
    nothing = name == "loss"
    return [np.nan if nothing or name == "lira" else once, each, np.nan if nothing else first.most - first.base,
            max(0.0, second.most - first.base)]


class _Memory:
    """Memory of this process in MB: when it began, and the most since, looked at every millisecond."""

    def __enter__(self) -> _Memory:
        self.base = self.most = self._now()
        self.ended = threading.Event()
        self.watch = threading.Thread(target=self._look, daemon=True)
        self.watch.start()
        return self

    def __exit__(self, *_) -> None:
        self.ended.set()
        self.watch.join()
        self.most = max(self.most, self._now())

    def _look(self) -> None:
        while not self.ended.wait(0.001):
            self.most = max(self.most, self._now())

    @staticmethod
    def _now() -> float:
        return psutil.Process().memory_info().rss / 2**20
