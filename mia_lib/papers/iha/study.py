"""Experiments of the inverse-Hessian chapter (Suri, Zhang and Evans 2024, section 4).

A case is a bank of M models in complementary halves of N records; T of them are audited in turn on J of the records. Scores
are higher for members, and kept as ranks within a target. Arrays [T, J] hold a row a target; what is kept of sweeps are
metrics of each target, in the order of `KEPT`.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import combinations
from multiprocessing import get_context

import numpy as np
import pandas as pd
import psutil
import torch
from scipy import stats
from threadpoolctl import threadpool_limits

from mia_lib import data, membership, metrics, signals, store, training
from mia_lib import models as architectures
from mia_lib.attacks import baselines, iha
from mia_lib.data import Dataset
from mia_lib.data.sets import TITLES
from mia_lib.errors import MiaError, check_range, choose
from mia_lib.evidence import tables
from mia_lib.papers import costs as counts
from mia_lib.signals import hessian, outputs
from mia_lib.signals.given import log_odds
from mia_lib.training import Ensemble, TrainConfig, ensemble, train
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
FORMS = {"full": ABLATION["all"], "pair": ABLATION["I1, I2"]}  # of the score, under other conditionings
RATES = (0.01, 0.001)
KEPT = ("auc", *(f"tpr_at_fpr={rate:g}" for rate in RATES))


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
        models: trained when a number of theirs is first needed.
        bank: their complementary halves, T of them attacked.
        rows: int [J], records judged.
        damping: epsilon of the attack.
        sweep: other conditionings, which share the one decomposition.
        images: whether records are images, as a table of their pixels.
        precision: "float64" or "float32", of Hessians and gradients.
    """

    name: str
    models: Ensemble
    bank: membership.Bank
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
        return self.bank.judged[:, self.rows]

    @property
    def parameters(self) -> int:
        """P."""
        return architectures.parameter_count(self.models.untrained())

    @property
    def rates(self) -> dict[str, float]:
        """What Eq. 8 takes of the recipe."""
        config = self.models.config
        return {"learning_rate": config.learning_rate, "momentum": config.momentum, "weight_decay": config.weight_decay}

    @property
    def spec(self) -> dict:
        """What determines the numbers of a case."""
        return {"models": self.models.key, "attacked": list(self.bank.attacked), "rows": store.fingerprint(self.rows),
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


def told_apart(cases: Sequence[Case]) -> list[Case]:
    """The cases, those of one name with the number of members in it.

    Raises:
        MiaError: two have that in common, too, so that one would take the place of the other.
    """
    names = Counter(one.name for one in cases)
    found = [one if names[one.name] == 1 else replace(one, name=f"{one.name}, {one.bank.judged[0].sum()} members")
             for one in cases]
    twice = [name for name, count in Counter(one.name for one in found).items() if count > 1]
    if twice:
        raise MiaError(f"datasets, architectures and pools give {twice[0]} twice: each case must differ in one of the three.")
    return found


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
    bank = membership.bank(pool, models, targets, seed)
    if not damping > 0:
        raise MiaError(f"damping = {damping!r}: above 0 is needed, such as the paper's 0.2.")
    if pool < len(found):
        found = found.take(np.random.default_rng([17, seed]).permutation(len(found))[:pool])
    config = TrainConfig(architecture, epochs=epochs, batch_size=batch_size, optimizer="sgd", learning_rate=learning_rate,
                         momentum=momentum, weight_decay=weight_decay, schedule=schedule, loss=loss, seed=seed)
    trained = train(found, bank.members, config, label=f"models of {title}")
    rows = np.sort(np.random.default_rng([19, seed]).permutation(pool)[:judged])
    return Case(title, trained, bank, rows, damping, sweep, data.load(dataset).is_image,
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


def check_left_out(targets: int, models: int) -> None:
    """Refuse more targets of `leave_one_out`, of which no two are complements, than the models have room for."""
    check_range("left_out_targets", targets, 2, (models + 1) // 2)


def check_pools(**pools: int | Sequence[int]) -> None:
    """Refuse pools too small to be cut into halves, by the name of the parameter; 0 stands for all records."""
    for name, given in pools.items():
        for size in np.atleast_1d(given):
            if size:
                check_range(name, int(size), 20)


def plan(cases: Sequence[Case], left_out: Case | None = None, count: int = 4, references: int = 2) -> pd.DataFrame:
    """What a run trains and inverts, before anything is trained; says what of the recipes Eq. 8 does not cover.

    Args:
        left_out: the case of `leave_one_out`, which attacks every second of its targets. count, references: as there.
    """
    rows = []
    for one in [*cases, *([] if left_out is None else [left_out])]:
        attacked = one.bank.attacked[::2] if one is left_out else one.bank.attacked
        p, own = one.parameters, 0
        if one is left_out:  # of each member's, and for all others of a target together
            own = len(attacked) * (left_out_records(one, count).shape[1] // 2 + 1) * references
        name = one.name + (", constant rate" if one.models.config.schedule == "constant" else "")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            beyond = iha.assumed(one.models.config)
        rows.append({"case": f"{name}, leave-one-out game" if one is left_out else name,
                     "members of each": tables.cell(int(one.models.members[0].sum()), ","), "models": len(one.models),
                     "references of single records": tables.cell(own, ",") if own else "none",
                     "targets": len(attacked), "parameters": tables.cell(p, ","),
                     "Hessian, GB": tables.cell(8e-9 * p * p, ".2g"),
                     "records judged": tables.cell(len(one.rows), ","), "Eq. 8 does not cover": "; ".join(
                         sentence.split(":")[0] for sentence in beyond) or "nothing"})
    return pd.DataFrame(rows)


# --------------------------------------------------------------------------------------------------------- one target


def _mean_gradient(network, x, labels, loss: str, dtype: str = "float64") -> np.ndarray:
    blocks = signals.record_gradients(network, x, labels, loss, dtype)
    return sum(block.sum(0, dtype=np.float64) for block in blocks) / len(x)


def _audit_task(networks, x, labels, loss, **arguments):
    [network] = networks
    one_core = outputs.device_of(network).type == "cpu"
    with threadpool_limits(1 if one_core else None):  # or each process would start as many threads as there are processors
        return [_audit(network, x, labels, loss, **arguments)]


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
    for name in (one.name for one in fields(iha.Forms)):
        whole = np.full((len(ways), len(rows)), np.nan)
        if usable:
            whole[usable] = getattr(forms, name)
        out[name] = whole
    return out


@dataclass(frozen=True, eq=False)
class Audit:
    """What a model's parameters and Hessian say of the judged records.

    Attributes:
        forms: [E, J], a row a conditioning; not a number where that leaves the Hessian indefinite.
        squares, along_mean, along_theta: ``|g|^2``, d^T g and w^T g, [J].
        values: eigenvalues, [P]. mean, theta: mean gradient and parameters, [P].
        seconds: [3], of Hessian, decomposition and rotation.
    """

    forms: iha.Forms
    squares: np.ndarray
    along_mean: np.ndarray
    along_theta: np.ndarray
    values: np.ndarray
    mean: np.ndarray
    theta: np.ndarray
    seconds: np.ndarray

    @staticmethod
    def of(arrays: dict[str, np.ndarray]) -> Audit:
        """From kept arrays, in which those of `forms` stand by themselves."""
        of_forms = [one.name for one in fields(iha.Forms)]
        return Audit(iha.Forms(*(arrays[name] for name in of_forms)),
                     **{name: one for name, one in arrays.items() if name not in of_forms})

    def take(self, place: np.ndarray) -> Audit:
        """Of some of the judged records."""
        return replace(self, forms=self.forms[:, place], squares=self.squares[place], along_mean=self.along_mean[place],
                       along_theta=self.along_theta[place])


def audits(case: Case, targets: Sequence[int], ways: Sequence[Conditioning] | None = None,
           known: Sequence[np.ndarray] | None = None) -> list[Audit]:
    """Audits of some models, each kept in the store as soon as it is there.

    Args:
        targets: numbers of models; the same one may come several times. ways: how the Hessian is conditioned, E of them,
            the case's by default.
        known: for each target, the members that the auditor knows, bool [N]; all by default.
    """
    models, given = case.models, [asdict(way) for way in (case.ways if ways is None else ways)]
    known = [models.members[m] for m in targets] if known is None else list(known)
    spec = store.under({"kind": "audit", "rows": store.fingerprint(case.rows), "ways": given, "precision": case.precision},
                       audits, case)
    specs = [{**spec, "known": store.fingerprint(members)} for members in known]
    return [Audit.of(arrays) for arrays in signals.map_models(
        _audit_task, models, specs, "inverse Hessians", index=targets, each=lambda k: {"known": known[k]}, rows=case.rows,
        ways=given, dtype=case.precision)]


def _measured(score: np.ndarray, members: np.ndarray) -> np.ndarray:
    """[3] in the order of `KEPT`; not a number where the score is none."""
    if not np.isfinite(score).all():
        return np.full(len(KEPT), np.nan)
    return np.array([metrics.auc(score, members), *(metrics.tpr_at_fpr(score, members, rate) for rate in RATES)])


def _score(case: Case, forms: iha.Forms, loss: np.ndarray, taken_out: np.ndarray, n: int, terms: str | Sequence[str] = "all",
           stationary: bool = False) -> np.ndarray:
    """Eq. 8 for the rates of a case; arguments as for `iha.split` and `iha.combine`."""
    rates = case.rates
    parts = iha.split(forms, taken_out, n, **rates, stationary=stationary)
    return iha.combine(loss, parts, rates["learning_rate"], rates["momentum"], terms)


def _gradient_alone(case: Case, found: Audit, taken_out: np.ndarray, n: int) -> np.ndarray:
    along = found.along_mean + case.rates["weight_decay"] * found.along_theta
    return iha.stationarity(along, found.squares, taken_out, n)


def variants(case: Case, found: Audit, loss: np.ndarray, members: np.ndarray, n: int) -> dict[str, np.ndarray]:
    """Scores [J] of all white-box audits of one target, by their names in `NAMES`.

    Args:
        loss, members: [J]. n: size of the training set.
    """
    forms, taken, nothing = found.forms[0], members / n, np.zeros(len(loss))
    return {"sif": iha.self_influence(forms), "iha": _score(case, forms, loss, taken, n),
            "whole": _score(case, forms, loss, nothing, n), "stationary": _score(case, forms, loss, taken, n, stationary=True),
            "gradient": _gradient_alone(case, found, taken, n),
            "gradient_plain": iha.stationarity(found.along_mean, found.squares, taken, n),
            "gradient_whole": -(found.along_mean + case.rates["weight_decay"] * found.along_theta)}


# --------------------------------------------------------------------------------------------------------- the attacks


@dataclass(frozen=True, eq=False)
class Play:
    """All attacks against all targets.

    Attributes:
        members: bool [T, J]. ranks: attack, of `NAMES` -> [T, J]. terms: row of `ABLATION` -> `KEPT` [T, 3].
        scatter: of the first target, [3, J]: 2 x_D^T x, ``|x|^2 / n`` and the loss.
        smallest: lowest eigenvalues, [T]. size: [T, 3], norms of grad L_D, of that with weight decay, and of w.
        train, test: accuracy on members and on others, [T]. loss_in, loss_out: mean loss, likewise.
    """

    members: np.ndarray
    ranks: dict[str, np.ndarray]
    terms: dict[str, np.ndarray]
    scatter: np.ndarray
    smallest: np.ndarray
    size: np.ndarray
    train: np.ndarray
    test: np.ndarray
    loss_in: np.ndarray
    loss_out: np.ndarray

    @staticmethod
    def of(arrays: dict[str, np.ndarray]) -> Play:
        """From kept arrays, which also hold "inverting" and "training", seconds [T] of Hessian and decomposition, and of the
        training of LiRA's references."""
        own = ("members", "scatter", "smallest", "size", "train", "test", "loss_in", "loss_out")
        return Play(ranks={name: arrays[name] for name in NAMES},
                    terms={name: arrays[f"terms.{name}"] for name in ABLATION}, **{name: arrays[name] for name in own})


def play(case: Case) -> Play:
    """All attacks against all targets, kept in the store."""
    def compute() -> dict[str, np.ndarray]:
        models, targets, judged, rows, terms, sizes = case.models, list(case.bank.attacked), case.judged, [], [], []
        found = audits(case, targets)
        loss = signals.loss(models.part(targets), case.records)[:, case.rows].astype(np.float64)
        n, alpha = models.members.sum(1), models.config.weight_decay
        for own, target, one, members in zip(loss, targets, found, judged, strict=True):
            _check_definite(case, target, one)
            references = case.bank.references(target)
            given = case.signal[target], case.signal[references], models.members[references][:, case.rows]
            rows.append(variants(case, one, own, members, n[target]) | {
                "loss": -own, "lira": baselines.lira_online(*given),
                "lira_fixed": baselines.lira_online(*given, fixed_variance=True),
                "lira_self": baselines.lira_online(given[0], case.signal, models.members[:, case.rows], own="keep")})
            terms.append([_measured(_score(case, one.forms[0], own, members / n[target], n[target], chosen), members)
                          for chosen in ABLATION.values()])
            mean, theta = one.mean.astype(float), one.theta.astype(float)
            sizes.append([np.linalg.norm(v) for v in (mean, mean + alpha * theta, theta)])
        first = found[0].forms[0]
        right = signals.correctness(models.part(targets), case.records)[:, case.rows]
        return {"members": judged, **{name: np.stack([order(row[name]) for row in rows]) for name in NAMES},
                **{f"terms.{name}": one for name, one in zip(ABLATION, np.moveaxis(terms, 1, 0), strict=True)},
                "scatter": np.stack([2 * first.newton_mean, first.newton / n[targets[0]], loss[0]]).astype(np.float32),
                "smallest": np.array([one.values[0] for one in found]), "size": np.array(sizes),
                "train": np.average(right, 1, judged), "test": np.average(right, 1, ~judged),
                "loss_in": np.average(loss, 1, judged), "loss_out": np.average(loss, 1, ~judged),
                "inverting": np.array([one.seconds[:2].sum() for one in found]),
                "training": np.array([_training_seconds(case, target) for target in targets])}

    return Play.of(store.study("iha.play", case.spec, compute))


def order(score: np.ndarray) -> np.ndarray:
    """Places of scores [n] in their order, equal ones in one place: all that a metric here depends on, in two bytes each where
    they fit."""
    place = np.unique(score, return_inverse=True)[1]
    return place.astype(np.uint16 if len(score) <= 2**16 else np.float32)


def _check_definite(case: Case, target: int, found: Audit) -> None:
    """Refuse an audit whose Hessian the case's damping leaves indefinite."""
    if np.isnan(found.forms.newton[0]).any():
        least = found.values[0]
        raise MiaError(f"damping = {case.damping:g} leaves the Hessian of target {target} of {case.name} indefinite: its "
                       f"smallest eigenvalue is {least:.4g}. Give more than {-least:.4g}.")


def _training_seconds(case: Case, target: int) -> float:
    """What the training of a target's references took, when it was done."""
    return float(sum(store.look_up(case.models.spec(m)).manifest["seconds"] for m in case.bank.references(target).tolist()))


@dataclass(frozen=True, eq=False)
class Swept:
    """Targets audited under other conditionings.

    Attributes:
        kept: (way, form), of the fields of `Sweep` and `FORMS` -> `KEPT` [T, E, 3], not a number where the Hessian stays
            indefinite.
        gradient: [T, 3], no Hessian at all, without weight decay.
        epsilon: of the percentiles, [T, E]. values: eigenvalues, [T, P].
    """

    kept: dict[tuple[str, str], np.ndarray]
    gradient: np.ndarray
    epsilon: np.ndarray
    values: np.ndarray

    @staticmethod
    def of(arrays: dict[str, np.ndarray]) -> Swept:
        """From kept arrays."""
        kept = {(way.name, form): arrays[f"{way.name}.{form}"] for way in fields(Sweep) for form in FORMS}
        return Swept(kept, arrays["gradient"], arrays["epsilon"], arrays["values"])


def conditioning(case: Case) -> Swept:
    """The targets audited under all conditionings of the case's sweep; kept in the store (Table 8)."""
    def compute() -> dict[str, np.ndarray]:
        targets, sweep = list(case.bank.attacked), asdict(case.sweep)
        found, n = audits(case, targets), case.models.members.sum(1)
        loss = signals.loss(case.models.part(targets), case.records)[:, case.rows].astype(np.float64)
        out: dict[str, list] = {form: [] for form in FORMS}
        gradient = []
        for one, own, members, target in zip(found, loss, case.judged, targets, strict=True):
            size, taken = n[target], members / n[target]
            for form, terms in FORMS.items():
                out[form].append([_measured(_score(case, one.forms[way], own, taken, size, terms), members)
                                  for way in range(1, len(case.ways))])
            gradient.append(_measured(iha.stationarity(one.along_mean, one.squares, taken, size), members))
        cuts, values = np.cumsum([len(group) for group in sweep.values()])[:-1], np.stack([one.values for one in found])
        kept = {f"{way}.{form}": part for form in FORMS
                for way, part in zip(sweep, np.split(np.reshape(out[form], (len(targets), -1, 3)), cuts, 1), strict=True)}
        return kept | {"gradient": np.stack(gradient), "values": values.astype(np.float32),
                       "epsilon": np.percentile(np.abs(values), case.sweep.percentiles, axis=1).T}

    return Swept.of(store.study("iha.conditioning", case.spec, compute))


@dataclass(frozen=True, eq=False)
class Partial:
    """`KEPT` of audits by someone who knows F fractions of the training set, [T, F, 3] each.

    Attributes:
        honest, released: by the two rules of `partial_knowledge`. gradient: without Hessian and with the honest rule.
    """

    honest: np.ndarray
    released: np.ndarray
    gradient: np.ndarray


def partial_knowledge(case: Case, fractions: Sequence[float], seed: int = 0) -> Partial:
    """Audits by someone who knows only a part of the training set (Table 9); kept in the store.

    Hessian and mean gradient are those of the known part S; n stays the size of the training set. The record's own gradient
    is taken out with weight 1 / abs(S) where S holds it (honest); or with weight 1 / n from that of every member, known or
    not, as in the released code.
    """
    check_fractions(fractions)

    def compute() -> dict[str, np.ndarray]:
        models, out = case.models, {"honest": [], "released": [], "gradient": []}
        loss = signals.loss(models.part(case.bank.attacked), case.records)[:, case.rows].astype(np.float64)
        known = []
        for target in case.bank.attacked:
            order = np.random.default_rng([37, seed, target]).permutation(np.flatnonzero(models.members[target]))
            for fraction in fractions:
                part = np.zeros(len(case.records), bool)
                part[order[:max(1, round(fraction * len(order)))]] = True
                known.append(part)
        targets = [target for target in case.bank.attacked for _ in fractions]
        whole = [bool((part == models.members[target]).all()) for target, part in zip(targets, known, strict=True)]
        kept = iter(audits(case, [target for target, one in zip(targets, whole, strict=True) if one]))  # as of the play
        rest = iter(audits(case, [target for target, one in zip(targets, whole, strict=True) if not one],
                           [Conditioning(case.damping)], [part for part, one in zip(known, whole, strict=True) if not one]))
        found = [next(kept if one else rest) for one in whole]
        for k, (target, one, part) in enumerate(zip(targets, found, known, strict=True)):
            members, n, inside = models.members[target][case.rows], models.members[target].sum(), part[case.rows]
            own, honest = loss[k // len(fractions)], inside / part.sum()
            for name, score in (("honest", _score(case, one.forms[0], own, honest, n)),
                                ("released", _score(case, one.forms[0], own, members / n, n)),
                                ("gradient", _gradient_alone(case, one, honest, n))):
                out[name].append(_measured(score, members))
        return {name: np.reshape(rows, (len(case.bank.attacked), len(fractions), 3)) for name, rows in out.items()}

    spec = {**case.spec, "fractions": list(fractions), "seed": seed}
    return Partial(**store.study("iha.partial_knowledge", spec, compute))


@dataclass(frozen=True, eq=False)
class Control:
    """`KEPT` of audits of something else than membership, [T, 3] each.

    Attributes:
        iha: the full score. pair: I1 and I2 alone. gradient: no Hessian.
    """

    iha: np.ndarray
    pair: np.ndarray
    gradient: np.ndarray


def placebo(case: Case) -> Control:
    """The audits on records that a model never saw, a random half of which is called its training set; kept in the store.

    Each target's non-members take the place of all records, half of them that of the training set. Whatever the audit finds
    here is due to the sign that it gives the members by itself.
    """
    def compute() -> dict[str, np.ndarray]:
        models, pretended = case.models, []
        for target in case.bank.attacked:
            fresh = np.flatnonzero(~models.members[target])
            pretended.append(np.zeros(len(case.records), bool))
            pretended[-1][np.random.default_rng([41, target]).permutation(fresh)[:len(fresh) // 2]] = True
        found = audits(case, list(case.bank.attacked), [Conditioning(case.damping)], pretended)
        kept = [~models.members[target][case.rows] for target in case.bank.attacked]
        return _controls(case, found, [known[case.rows] for known in pretended], [int(one.sum()) for one in pretended], kept)

    return Control(**store.study("iha.placebo", case.spec, compute))


def random_flags(case: Case) -> Control:
    """The audits told random flags in the place of membership, and judged by how well they find these; kept in the store.

    Model, training set, mean gradient and Hessian are those of the attack. The flags are membership shuffled over the judged
    records: as many as there are members, and they say nothing of who was trained on.
    """
    def compute() -> dict[str, np.ndarray]:
        targets = list(case.bank.attacked)
        flags = [np.random.default_rng([45, target]).permutation(inside)
                 for target, inside in zip(targets, case.judged, strict=True)]
        return _controls(case, audits(case, targets), flags, [int(case.models.members[target].sum()) for target in targets])

    return Control(**store.study("iha.random_flags", case.spec, compute))


def _controls(case: Case, found: Sequence[Audit], flags: Sequence[np.ndarray], sizes: Sequence[int],
              kept: Sequence[np.ndarray] | None = None) -> dict[str, np.ndarray]:
    """Scores with a flag [J] a record in the place of its membership, measured against the flags, on the records `kept`."""
    out: dict[str, list] = {"iha": [], "pair": [], "gradient": []}
    loss = signals.loss(case.models.part(case.bank.attacked), case.records)[:, case.rows].astype(np.float64)
    for k, (one, own, flag, n) in enumerate(zip(found, loss, flags, sizes, strict=True)):
        where = slice(None) if kept is None else kept[k]
        for name, score in (("iha", _score(case, one.forms[0], own, flag / n, n)),
                            ("pair", _score(case, one.forms[0], own, flag / n, n, FORMS["pair"])),
                            ("gradient", _gradient_alone(case, one, flag / n, n))):
            out[name].append(_measured(score[where], flag[where]))
    return {name: np.stack(rows) for name, rows in out.items()}


TAKEN = ("members", "random records", "nobody")  # whose own gradient the explorable figure takes out
SLIDE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)  # its dampings


@dataclass(frozen=True, eq=False)
class Slide:
    """I1 + I2 of the first target under E dampings of one decomposition.

    Attributes:
        dampings: [E], those of `SLIDE` that leave the Hessian definite.
        members, flags: bool [J], the truth and the random records of `TAKEN`.
        scores: [2, 3, E, J]: as printed and with the weight decay; by `TAKEN`.
        eigenvalue: [G], of groups of directions, geometric means; of that with all at or below 1e-5, negative ones too, 1e-5.
        weight: [E, G], mean over a group's directions of 1 / (eigenvalue + damping)^2. signal: [E, G], sum over them of the
            weight times the square of a member's share g / n of the gradient, mean over members. noise: [2, E, G], sum of the
            squared weight times that square times the square of what training left of the gradient, without and with that of
            the weight decay.
    """

    dampings: np.ndarray
    members: np.ndarray
    flags: np.ndarray
    scores: np.ndarray
    eigenvalue: np.ndarray
    weight: np.ndarray
    signal: np.ndarray
    noise: np.ndarray


def slide(case: Case, groups: int = 14, count: int = 4000) -> Slide:
    """What the explorable figure moves through; kept in the store.

    Args:
        groups: G, of directions, by eigenvalue; those at or below 1e-5 are one. count: J, at most.
    """
    def compute() -> dict[str, np.ndarray]:
        target, models = case.bank.attacked[0], case.models
        rows, inside, kind = case.rows[:count], models.members[target], models.config.loss
        x, y, n = case.records.x, case.records.y, int(inside.sum())
        network, theta = models.model(target), models.parameters(target).astype(np.float64)
        found = hessian.spectrum(hessian.exact(network, x[inside], y[inside], kind, case.precision), overwrite=True)
        mean = _mean_gradient(network, x[inside], y[inside], kind, case.precision)
        dampings = np.array([one for one in SLIDE if Conditioning(one).inverse(found) is not None])
        members, square = inside[rows], np.zeros(len(mean))

        def blocks():
            start = 0
            for block in signals.record_gradients(network, x[rows], y[rows], kind, case.precision):
                own = block[members[start:start + len(block)]] @ found.vectors
                square[:] += (own.astype(np.float64)**2).sum(0)
                start += len(block)
                yield block

        forms = iha.forms(blocks(), [found.inverse(one) for one in dampings], mean, theta)
        flags = np.random.default_rng([45, target]).permutation(members)
        nobody = np.zeros(len(rows))
        scores = [[_score(case, forms, nobody, taken / n, n, FORMS["pair"], stationary)
                   for taken in (members, flags, nobody)] for stationary in (False, True)]
        own = square / members.sum() / n**2
        left = np.stack([mean, mean + models.config.weight_decay * theta]) @ found.vectors
        edges = np.geomspace(1e-5, max(found.values[-1], 1e-4), groups)
        place = np.searchsorted(edges[:-1], found.values)
        there = [place == k for k in range(groups) if (place == k).any()]
        weight = (found.values + dampings[:, None]) ** -2
        return {"dampings": dampings, "members": members, "flags": flags, "scores": np.array(scores, np.float32),
                "eigenvalue": np.array([np.exp(np.log(np.maximum(found.values[k], 1e-5)).mean()) for k in there]),
                "weight": np.stack([weight[:, k].mean(1) for k in there], 1),
                "signal": np.stack([weight[:, k] @ own[k] for k in there], 1),
                "noise": np.stack([left[:, k]**2 @ (weight[:, k]**2 * own[k]).T for k in there], 2)}

    return Slide(**store.study("iha.slide", {**case.spec, "groups": groups, "count": count}, compute))


EDGES = (-np.inf, -5e-4, 5e-4, 0.01, 0.1, 1.0, np.inf)  # of eigenvalues


@dataclass(frozen=True, eq=False)
class Residuals:
    """What training left of the gradient, by intervals of eigenvalues between `EDGES`, [T, 6] each.

    Attributes:
        directions: how many. left: root mean square of grad L_D + alpha w along them. own: that of g / n, over judged members.
        noise, noise_iha: their share in the variance of the gradient test, and of I1 and I2 with the weight decay.
    """

    directions: np.ndarray
    left: np.ndarray
    own: np.ndarray
    noise: np.ndarray
    noise_iha: np.ndarray


def residuals(case: Case) -> Residuals:
    """What training left of the gradient in directions of the Hessian, beside the share of a single record; kept in the
    store."""
    def compute() -> dict[str, np.ndarray]:
        models, rows = case.models, []
        for target in case.bank.attacked:
            network, inside = models.model(target), models.members[target]
            x, y, loss = case.records.x, case.records.y, models.config.loss
            found = hessian.spectrum(hessian.exact(network, x[inside], y[inside], loss), overwrite=True)
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
        return dict(zip((one.name for one in fields(Residuals)), np.moveaxis(np.array(rows), 2, 0), strict=True))

    return Residuals(**store.study("iha.residuals", case.spec, compute))


def _rms(squares: np.ndarray, where: np.ndarray) -> float:
    return float(np.sqrt(squares[where].mean())) if where.any() else np.nan


@dataclass(frozen=True, eq=False)
class Conjugated:
    """One target audited by conjugate gradients and by the exact inverse.

    Attributes:
        members: bool [n]. exact, cg: scores, [n]. iterations: of A^-1 g, int [n]. residuals: [n].
        bound: most iterations that the condition number allows. seconds: of all systems together.
    """

    members: np.ndarray
    exact: np.ndarray
    cg: np.ndarray
    iterations: np.ndarray
    residuals: np.ndarray
    bound: np.ndarray
    seconds: np.ndarray


def conjugate(case: Case, count: int, tolerance: float) -> Conjugated:
    """The first target audited by conjugate gradients, without any matrix, beside the exact inverse; kept in the store.

    Args:
        count: records, half of them members. tolerance: relative residual at which a system stops.

    Raises:
        MiaError: systems that did not converge, see `hessian.Solution.check`.
    """
    def compute() -> dict[str, np.ndarray]:
        target, models = case.bank.attacked[0], case.models
        members, n = models.members[target], int(models.members[target].sum())
        place = _balanced(members[case.rows], count)
        rows = case.rows[place]
        [found] = audits(case, [target])
        loss = signals.loss(models.part([target]), case.records)[0, rows].astype(np.float64)
        network, x, y = models.model(target), case.records.x, case.records.y
        start = time.perf_counter()
        gradients = np.concatenate(list(signals.record_gradients(network, x[rows], y[rows], models.config.loss, "float64")))
        mean = _mean_gradient(network, x[members], y[members], models.config.loss)
        product = hessian.operator(network, x[members], y[members], models.config.loss)
        once = hessian.conjugate_gradient(product, np.vstack([gradients, mean]), case.damping, tolerance).check()
        twice = hessian.conjugate_gradient(product, once.x[:-1], case.damping, tolerance).check()
        seconds, values = time.perf_counter() - start, found.values
        root = np.sqrt((values[-1] + case.damping) / (values[0] + case.damping))  # of the condition number
        forms = {"cg": iha.from_solutions(once.x[:-1], once.x[-1], gradients, twice.x), "exact": found.forms[0][place]}
        scores = {name: _score(case, one, loss, members[rows] / n, n) for name, one in forms.items()}
        return {"members": members[rows], **scores, "iterations": once.iterations[:-1], "residuals": once.residuals[:-1],
                "bound": np.array(0.5 * root * np.log(2 * root / tolerance)), "seconds": np.array(seconds)}

    if not 0 < tolerance < 1:
        raise MiaError(f"cg_tolerance = {tolerance!r}: above 0 and below 1 is needed.")
    return Conjugated(**store.study("iha.conjugate", {**case.spec, "count": count, "tolerance": tolerance}, compute))


def _balanced(members: np.ndarray, count: int) -> np.ndarray:
    """Places of the first members and the first others, equally many, at most `count` in all."""
    half = min(count // 2, members.sum(), (~members).sum())
    return np.sort(np.concatenate([np.flatnonzero(side)[:half] for side in (members, ~members)]))


@dataclass(frozen=True, eq=False)
class Others:
    """The audit with the Hessian of the whole training set, and with that of the other records alone.

    Attributes:
        members: bool [T, J]. records: which ones, int [T, J]. whole, others: scores, [2, T, J], with the damping of the case
            and with `MORE_DAMPING` times it.
    """

    members: np.ndarray
    records: np.ndarray
    whole: np.ndarray
    others: np.ndarray


MORE_DAMPING = 2.5  # from 0.2 to 0.5, as in Appendix D.1


def hessian_of_others(case: Case, count: int = 200) -> Others:
    """What it is worth to the audit that a member's Hessian holds the member itself; kept in the store.

    The auditor of the game knows the others alone. For a member z of n the Hessian of their mean loss is
    (n H - H_z) / (n - 1), whose inverse comes from that of H by the few directions that H_z has; for a non-member it is H.

    Args:
        count: records of each target, half of them members, at most.
    """
    targets = list(case.bank.attacked)
    half = min(count // 2, case.judged.sum(1).min(), (~case.judged).sum(1).min())
    rows = np.stack([case.rows[_balanced(case.models.members[target][case.rows], 2 * half)] for target in targets])

    def compute() -> dict[str, np.ndarray]:
        whole, others = zip(*(_with_others(case, target, row) for target, row in zip(targets, rows, strict=True)), strict=True)
        return {"members": np.stack([case.models.members[target][row] for target, row in zip(targets, rows, strict=True)]),
                "records": rows, "whole": np.stack(whole, 1), "others": np.stack(others, 1)}

    return Others(**store.study("iha.hessian_of_others", {**case.spec, "count": count}, compute))


def _with_others(case: Case, target: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores [2, J] of a target's records with the Hessian of its training set, and of the other records; as in `Others`."""
    models, x, y = case.models, case.records.x, case.records.y
    network, kind, inside = models.model(target), models.config.loss, models.members[target]
    found = hessian.spectrum(hessian.exact(network, x[inside], y[inside], kind), overwrite=True)
    n, mean = int(inside.sum()), _mean_gradient(network, x[inside], y[inside], kind) @ found.vectors
    gradients = np.concatenate(list(signals.record_gradients(network, x[rows], y[rows], kind, "float64"))) @ found.vectors
    loss = signals.loss(models.part([target]), case.records)[0, rows].astype(np.float64)
    out = np.empty((2, 2, len(rows)))
    for k, (row, g) in enumerate(zip(rows, gradients, strict=True)):
        for place in (0, 1):
            values, low = found.values, None
            if place and inside[row]:
                basis, own = record_hessian(network, x[[row]], y[[row]], kind)
                values, low = found.values * n / (n - 1), (found.vectors.T @ basis, own / (n - 1))
            for which, damping in enumerate((case.damping, MORE_DAMPING * case.damping)):
                solved = _solver(values + damping, low)
                once = solved(np.stack([g, mean]))
                forms = iha.from_solutions(once[:1], once[1], g[None], solved(once[:1]))
                out[place, which, k] = _score(case, forms, loss[[k]], np.array([inside[row] / n]), n)[0]
    return out[0], out[1]


def _solver(diagonal: np.ndarray, low: tuple[np.ndarray, np.ndarray] | None):
    """Function: vectors [k, P] -> (diag - U S U^T)^-1 of each, by Woodbury's formula; `low` is U [P, r] and S [r, r]."""
    if low is None:
        return lambda vectors: vectors / diagonal
    basis, own = low
    scaled = basis / diagonal[:, None]
    inner = np.linalg.solve(np.eye(len(own)) - own @ (basis.T @ scaled), own)
    return lambda vectors: vectors / diagonal + (vectors @ scaled) @ inner.T @ scaled.T


def record_hessian(network, x: np.ndarray, labels: np.ndarray, loss: str) -> tuple[np.ndarray, np.ndarray]:
    """The Hessian of a single record's loss as Q B Q^T, to rounding.

    A record's Hessian has few directions: products with random vectors span them, and more are drawn until they do.

    Returns:
        Q [P, r] with orthonormal columns, B [r, r].
    """
    size = sum(weight.numel() for weight in network.parameters())
    rng, count = np.random.default_rng(43), 16
    [seen] = hessian.products(network, x, labels, rng.normal(size=(1, size)), loss)
    while True:
        basis = np.eye(size)
        if count < size:
            basis = np.linalg.qr(hessian.products(network, x, labels, rng.normal(size=(count, size)), loss).T)[0]
        if np.linalg.norm(seen - basis @ (basis.T @ seen)) <= 1e-8 * np.linalg.norm(seen):
            return basis, hessian.products(network, x, labels, basis.T, loss) @ basis
        count *= 2


# ----------------------------------------------------------------------------------------- leave-one-out reference models


LEFT_OUT = {"lira": "LiRA", "l_attack": "L-attack", "lira_l": "LiRA-L", "lira_l_released": "LiRA-L, as released", "iha": "IHA",
            "gradient": "gradient alone"}
AGREED = (0.05, 0.3)  # false positive rates of Table 5


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Attacks that know all other records.

    Attributes:
        members: bool [T, J]. scores: attack, of `LEFT_OUT` -> [T, J].
        l_attack_at: false positive rate, of `AGREED` -> [T, J], the L-attack with a quantile for that rate.
    """

    members: np.ndarray
    scores: dict[str, np.ndarray]
    l_attack_at: dict[float, np.ndarray]

    @staticmethod
    def of(arrays: dict[str, np.ndarray]) -> LeftOut:
        """From kept arrays."""
        return LeftOut(arrays["members"], {name: arrays[name] for name in LEFT_OUT},
                       {rate: arrays[f"l_attack_{round(100 * rate)}"] for rate in AGREED})


def leave_one_out(case: Case, count: int, references: int) -> LeftOut:
    """Attacks that know all other records, with reference models trained on exactly these; kept in the store (section 4.4).

    Against each record R models are trained on the target's training set without it: for a member n - 1 records, for a
    non-member all n, so these references are shared. LiRA has the bank's. Targets are every second one of the case, of which
    no two are complements.

    Args:
        count: records of each target, half of them members. references: R.
    """
    check_range("left_out_references", references, 2)
    targets, models = list(case.bank.attacked[::2]), case.models
    check_range("left_out_targets", len(targets), 2)
    half = min(count // 2, case.judged.sum(1).min(), (~case.judged).sum(1).min())
    places = [_balanced(models.members[target][case.rows], 2 * half) for target in targets]

    def compute() -> dict[str, np.ndarray]:
        games = [_left_out(case, target, place, references) for target, place in zip(targets, places, strict=True)]
        return {name: np.stack([game[name] for game in games]) for name in games[0]}

    return LeftOut.of(store.study("iha.leave_one_out", {**case.spec, "count": count, "references": references}, compute))


def left_out_records(case: Case, count: int) -> np.ndarray:
    """The records that `leave_one_out` judges each target on, int [T, J]; arguments as there."""
    targets = list(case.bank.attacked[::2])
    half = min(count // 2, case.judged.sum(1).min(), (~case.judged).sum(1).min())
    return np.stack([case.rows[_balanced(case.models.members[target][case.rows], 2 * half)] for target in targets])


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
    found = found.take(place)
    bank = case.bank.references(target)
    mean, spread = of_references.mean(0), np.maximum(of_references.std(0, ddof=1), 1e-12)
    return {"members": members,
            "lira": baselines.lira_online(case.signal[target][place], case.signal[bank][:, place],
                                          models.members[bank][:, rows]),
            "l_attack": baselines.attack_r(own, loss, nobody),
            **{f"l_attack_{round(100 * rate)}": baselines.attack_r(own, loss, nobody, rate) for rate in AGREED},
            "lira_l": baselines.lira_offline(phi, of_references, nobody),
            "lira_l_released": ((phi - mean) / spread) ** 2 / 2 + np.log(spread),
            "iha": _score(case, found.forms[0], own, members / n, n), "gradient": _gradient_alone(case, found, members / n, n)}


def _log_odds(loss: np.ndarray, kind: str) -> np.ndarray:
    """log(p / (1 - p)) of the true class, from the cross-entropy or, of two classes, the squared error."""
    if kind == "brier":
        wrong = np.clip(np.sqrt(loss), 1e-300, 1 - 1e-16)
        return np.log1p(-wrong) - np.log(wrong)
    return log_odds(loss)


def called(found: LeftOut, rate: float) -> dict[str, np.ndarray]:
    """The records that each attack calls members at a false positive rate, bool [T, J]: as many non-members of each target as
    the rate allows, and every member that scores above them. "truth" are the members.

    Args:
        rate: one of `AGREED`.
    """
    members, out = found.members, {"truth": found.members}
    for name in ("lira", "l_attack", "lira_l", "iha", "gradient"):
        score = found.l_attack_at[rate] if name == "l_attack" else found.scores[name]
        out[name] = np.stack([one > np.sort(one[~inside])[::-1][int(rate * (~inside).sum() + 1e-9)]
                              for one, inside in zip(score, members, strict=True)])
    return out


def agreement(found: LeftOut, rate: float) -> dict[tuple[str, str, bool], float]:
    """How often two attacks decide alike, among members (True) and among others, all targets together (Table 5).

    Agreement with "truth" is the TPR among members and 1 - FPR among others.
    """
    decided, members = called(found, rate), found.members
    return {(a, b, side): float(np.mean((decided[a] == decided[b])[members == side]))
            for a in decided for b in decided for side in (True, False) if a != b}


def agreement_gap(found: LeftOut, rate: float) -> np.ndarray:
    """How often two attacks on losses decide alike among members less how often one of them and IHA do, means over the pairs,
    of each target, [T]."""
    decided, members = called(found, rate), found.members

    def alike(pairs) -> np.ndarray:
        return np.mean([np.average(decided[a] == decided[b], 1, members) for a, b in pairs], 0)

    losses = ("lira", "l_attack", "lira_l")
    return alike(combinations(losses, 2)) - alike((one, "iha") for one in losses)


def found_beside(found: LeftOut, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Of the members of each target that no attack on losses calls, which IHA calls.

    Returns:
        bool [n], these members of all targets; the number of each one's target, int [n].
    """
    decided = called(found, rate)
    missed = found.members & ~(decided["lira"] | decided["l_attack"] | decided["lira_l"])
    return decided["iha"][missed], np.nonzero(missed)[0]


def guess_above(found: LeftOut, rate: float) -> tuple[float, float]:
    """How often a score that knows nothing exceeds the threshold of `called`: mean and variance over draws of the others.

    With k of m others above it the threshold is the next highest, and the share of all scores above that one is
    Beta(k + 1, m - k).
    """
    others = int((~found.members[0]).sum())
    above = int(rate * others + 1e-9)
    law = stats.beta(above + 1, others - above)
    return float(law.mean()), float(law.var())


def strongest_l_attack(found: LeftOut) -> np.ndarray:
    """The L-attack by the share of references with a greater loss, which has few levels where these are few, or by the
    distance below a quantile of theirs: the form whose AUC is highest on the records judged, in its favour, [T, J]."""
    return max([found.scores["l_attack"], *found.l_attack_at.values()], key=lambda one: metrics.auc(one, found.members).mean())


# ------------------------------------------------------------------------------------------------------------------- cost


@dataclass(frozen=True)
class Cost:
    """What an attack costs; not a number where there is nothing to do.

    Attributes:
        once: seconds of what is computed once. each: seconds a record.
        held, most: most memory in MB beyond what the process held before, in either phase.
    """

    once: float
    each: float
    held: float
    most: float


def cost(case: Case, count: int, tolerance: float) -> dict[str, Cost]:
    """Time and memory of the attacks on members of the first target, each in a process of its own (Table 6); kept in the
    store.

    Args:
        count: records that are attacked one by one. tolerance: of conjugate gradients.

    Returns:
        for "iha", "cg", "lira", "loss". What LiRA computes once are its references: the seconds are those their training took
        when it was done, the memory that of one epoch.
    """
    def compute() -> dict[str, np.ndarray]:
        models, target = case.models, case.bank.attacked[0]
        models.fit()
        pool.close_pools()  # whose processes would hold memory beside those that are measured
        rows = np.flatnonzero(models.members[target])[:count]
        given = (models.config, models.records.shape, len(models.records.classes), ensemble.records_file(models.records),
                 models.records.y, models.members[target], rows, case.damping, tolerance)

        def measure(name: str) -> np.ndarray:
            used = [target, *case.bank.references(target).tolist()] if name == "lira" else [target]
            with get_context("spawn").Pool(1) as one:
                return np.array(one.apply(_cost, (name, [models.arrays(m) for m in used], *given)))

        names = ("iha", "cg", "lira", "loss")
        with ThreadPoolExecutor(min(2, pool.default_workers())) as two:  # each on a thread of its own
            out = dict(zip(names, two.map(measure, names), strict=True))
        out["lira"][0] = _training_seconds(case, target)
        return out

    found = store.study("iha.cost", {**case.spec, "count": count, "tolerance": tolerance}, compute)
    return {name: Cost(*map(float, values)) for name, values in found.items()}


REFERENCES, AUDITED = 128, 1000  # reference models and records of the paper's comparison of costs


@dataclass(frozen=True)
class Work:
    """Floating-point operations of what attacks on one target consist of.

    Attributes:
        reference: to train one model. hessian: to compute and decompose it. rotation: of one gradient by its eigenvectors.
        product: of the Hessian with one vector.
    """

    reference: float
    hessian: float
    rotation: float
    product: float


def work(case: Case) -> Work:
    """Operations of attacks on a target of a case, counted and not timed: see `costs`."""
    models, size = case.models, case.parameters
    shape, classes = models.records.shape, len(models.records.classes)
    members = int(case.bank.judged[0].sum())
    given = models.untrained(), shape, members, models.config.loss
    return Work(counts.training(models.config, shape, classes, members),
                counts.hessian_itself(*given) + counts.decomposition(size), 2.0 * size**2, counts.hessian_product(*given))


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
                outputs.scalars(signals.model_outputs(one, x[[row]]), labels[[row]], loss)

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
