"""Many models from one membership design.

`train` only describes the models; they are trained when something first needs them and no layer of the store holds
them. On a CPU they are tasks in a pool of single-threaded processes (Torch's own threading collapses when cores are
shared), small ones several at once; on a graphics card as many at once as pays. Each is kept when it is finished, and the
state of long trainings about once a minute, so a run that is stopped goes on where it was. A model is determined by its
records, training set, configuration and index; the number of processes, the size of a group and the device do not enter,
but for the rounding of sums.
"""

from __future__ import annotations

import io
import platform
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import nn

from mia_lib import custom, store
from mia_lib import models as architectures
from mia_lib.checks import check_labels, check_mask, check_numbers
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, brief, check_type, check_whole
from mia_lib.training import devices, gpu, pool
from mia_lib.training.loop import SIMD_LANES, Outcome, Task, checkpoint_slots, fit_group, stacks
from mia_lib.training.losses import NEXT_TOKEN
from mia_lib.training.recipe import TrainConfig

# small models in one task of the pool; more gain nothing (benchmarks/crossover.py)
MOST_AT_ONCE = 32
# what is kept with a model besides its state
NOT_WEIGHTS = ("history", "validation", "epsilon", "noise_multiplier")
PROCESSES_ELSEWHERE = 16  # so many share the work when an executor does not say how many it has


def fit(
    x: np.ndarray, y: np.ndarray, classes: int, config: TrainConfig, index: int = 0
) -> tuple[nn.Module, np.ndarray]:
    """Train one model in this process, on the CPU.

    Args:
        x, y: the training set in the form of `Dataset.x`, [n, ...], and labels [n] of K `classes`.
        index: number of the model within its ensemble; with `config.seed` it seeds everything random.

    Returns:
        the model in evaluation mode, and its history float32 [epochs, 2]: mean loss and accuracy while training.

    Raises:
        MiaError: no records, labels that do not fit them; the loss stops being a finite number.
    """
    if not len(x):
        raise MiaError(f"x has shape {np.shape(x)}: at least one record is needed.")
    y = check_labels("y", y, classes, len(x))
    _check_names(config, architectures.build(config.architecture, np.shape(x)[1:], classes, seed=0))
    [outcome] = fit_group(Task(x, y, classes, config, [np.arange(len(x))], [index]))
    if outcome.diverged:
        raise MiaError(outcome.diverged)
    return rebuilt(config, x.shape[1:], classes, outcome.arrays), outcome.arrays["history"]


def rebuilt(
    config: TrainConfig, shape: tuple, classes: int, arrays: dict[str, np.ndarray]
) -> nn.Module:
    model = architectures.build(config.architecture, shape, classes, seed=0)
    model.load_state_dict(
        {name: torch.from_numpy(np.array(a)) for name, a in weights_among(arrays).items()}
    )
    return architectures.set_input_scaling(model, config.scaling).eval()


def weights_among(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The `state_dict` among a model's arrays."""
    return {name: value for name, value in arrays.items() if name not in NOT_WEIGHTS}


def numbers_of(rows: Sequence[int], count: int) -> list[int]:
    """Numbers of some of so many models, which may be given as a mask."""
    rows = check_numbers("models", rows)
    if (
        rows.ndim != 1
        or rows.dtype.kind == "f"
        and rows.size
        or rows.dtype == bool
        and rows.shape != (count,)
    ):
        raise MiaError(
            f"models are named by an array of shape {rows.shape} and type {rows.dtype}: numbers of some of {count} "
            f"models are needed, or a mask of shape ({count},)."
        )
    return [int(row) for row in (np.flatnonzero(rows) if rows.dtype == bool else rows)]


def _check_names(config: TrainConfig, network: nn.Module) -> None:
    if taken := sorted({*NOT_WEIGHTS} & {*network.state_dict()}):
        raise MiaError(
            f"architecture = {config.architecture!r} has weights called {taken[0]}, the name of what is kept with "
            "each model: give them another name."
        )


# files of records that this process has compared with what they should hold
_verified: set[Path] = set()


def records_file(records: Dataset) -> str:
    """The records as a file that every process maps instead of being sent a copy."""
    path = store.cache_dir() / "data" / f"{records.fingerprint[:40]}.npy"
    if path not in _verified or not path.is_file():
        try:
            whole = np.array_equal(np.load(path, mmap_mode="r"), records.x)
        except (OSError, ValueError, EOFError):
            whole = False
        if not whole:
            buffer = io.BytesIO()
            np.save(buffer, records.x)
            store.put(path, buffer.getvalue())
        _verified.add(path)
    return str(path)


def open_records(path: str) -> np.ndarray:
    """The records in a file of the store, mapped into memory."""
    if not Path(path).is_file():
        raise MiaError(
            f"A process on {platform.node()} does not see {path}: set MIA_CACHE to a folder on a file system that "
            "all machines share."
        )
    return np.load(path, mmap_mode="r")


def _fit_task(task: Task, checkpoint: dict) -> list[Outcome]:
    torch.set_num_threads(1)  # an executor's process may not be one of ours
    return fit_group(replace(task, x=open_records(task.x)), checkpoint=checkpoint)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """M models, trained when first needed.

    Attributes:
        records: the data set that `members` indexes, N records.
        members: bool [M, N], row m = training set of model m.
        config: how they are trained.
        label: what progress bars call them.
        workers, executor, device, validation, start: as for `train`.
        numbers: of its models in the ensemble that this is a part of, [M]; 0 to M - 1 where none are said.
    """

    records: Dataset
    members: np.ndarray
    config: TrainConfig
    label: str = "models"
    workers: int | None = None
    executor: Executor | None = field(default=None, repr=False)
    device: str | int | None = None
    validation: np.ndarray | None = field(default=None, repr=False)
    start: tuple[Ensemble, Sequence[int]] | None = field(default=None, repr=False)
    numbers: tuple[int, ...] = field(default=(), repr=False)

    def __post_init__(self):
        object.__setattr__(self, "numbers", self.numbers or tuple(range(len(self.members))))

    def __repr__(self) -> str:
        many = "1 model" if len(self) == 1 else f"{len(self)} models"
        return (
            f"{many} of {self.config.architecture} on {self.records.name} ({len(self.records)} records), "
            f"label {self.label!r}"
        )

    def __len__(self) -> int:
        return len(self.members)

    def part(self, rows: Sequence[int]) -> Ensemble:
        """Ensemble of some of the models, in the order given, or by a mask; the models are the
        same, and no other is trained."""
        rows = numbers_of(rows, len(self))
        start = self.start and (self.start[0], [self.start[1][row] for row in rows])
        validation = None if self.validation is None else self.validation[rows]
        return replace(
            self,
            members=self.members[rows],
            validation=validation,
            start=start,
            numbers=tuple(self.numbers[row] for row in rows),
        )

    def spec(self, index: int) -> dict:
        """Spec of model `index`, plain data that determine it: data, training set, recipe and
        code."""
        further = {"code": self._code}
        if self.validation is not None:
            further["validation"] = store.fingerprint(self.validation[index])
        if self.start is not None:
            further["start"] = store.address(self.start[0].spec(self.start[1][index]))
        return {
            "kind": "model",
            "data": self.records.fingerprint,
            "members": store.fingerprint(self.members[index]),
            "classes": len(self.records.classes),
            "config": self.config.spec(),
            "index": self.numbers[index],
            **further,
        }

    @property
    def _whole(self) -> Ensemble:
        """The same models trained to the end: a training goes on from one with an earlier `stop_epoch`."""
        return replace(self, config=replace(self.config, stop_epoch=None))

    @cached_property
    def _code(self) -> str:
        """Hash of the code that trains the models."""
        return store.code_of(store.MODELS, *self.modules())

    def modules(self) -> set[Path]:
        """Files with the code of architectures of the user's own."""
        return {
            *custom.sources(self.config.architecture),
            *(self.start[0].modules() if self.start else ()),
        }

    def missing(self) -> list[int]:
        """Numbers of the models that no layer of the store holds undamaged."""
        return [m for m in range(len(self)) if store.look_up(self.spec(m)) is None]

    def fit(self) -> Ensemble:
        """Train what is missing; each model is kept as soon as it is finished."""
        if not (missing := self.missing()):
            return self
        if self.start is not None:  # before the lock, which may be theirs
            self.start[0].part(sorted({int(self.start[1][m]) for m in missing})).fit()
        pool.refuse_unguarded()
        elsewhere = self.executor or pool.cluster()  # whose processes use their processors
        where = torch.device("cpu") if elsewhere else devices.pick(self.device)
        # One lock for all ensembles of these records and this recipe: two runs that share models train them once.
        whole = self._whole.config.spec()
        shared = {"kind": "model", "data": self.records.fingerprint, "config": whole}
        with store.lock(shared, what=f"training {self.label}"):
            todo = self.missing()  # another may have trained them meanwhile
            train = self._fit_on_card if devices.is_card(where) else self._fit_in_pool
            diverged = train(where, todo) if todo else []
        if diverged:
            raise MiaError(
                diverged[0]
                + (
                    f" ({len(diverged)} models diverged; the others are kept.)"
                    if diverged[1:]
                    else ""
                )
            )
        return self

    def _keep(self, index: int, outcome: Outcome, where: torch.device, diverged: list[str]) -> None:
        if outcome.diverged:
            diverged.append(outcome.diverged)
        else:
            store.keep(
                self.spec(index),
                outcome.arrays,
                outcome.seconds,
                torch=torch.__version__,
                device=devices.describe(where),
            )

    def _checkpoint(self, indices: list[int], device: str = "cpu") -> dict:
        return {
            "kind": "checkpoint",
            "models": [store.address(self._whole.spec(m)) for m in indices],
            "device": device,
            "code": self._code,
        }

    def _task(self, models: list[int], x: np.ndarray | str) -> Task:
        """Models to be trained, with their records or the file that holds them."""
        start = self.start and [
            weights_among(self.start[0].arrays(self.start[1][m])) for m in models
        ]
        rows, validation = (
            None if masks is None else [np.flatnonzero(masks[m]) for m in models]
            for masks in (self.members, self.validation)
        )
        return Task(
            x,
            self.records.y,
            len(self.records.classes),
            self.config,
            rows,
            [self.numbers[m] for m in models],
            start,
            validation,
        )

    def _fit_in_pool(self, where: torch.device, todo: list[int]) -> list[str]:
        path = records_file(self.records)
        diverged = []
        lacking = set(todo)
        groups = self._groups(todo)
        tasks = ((self._task(group, path), self._checkpoint(group)) for group in groups)

        def finished(position: int, outcomes: list[Outcome]) -> None:
            for m, outcome in zip(groups[position], outcomes, strict=True):
                if m in lacking:
                    self._keep(m, outcome, where, diverged)
            if self.config.stop_epoch is None:
                for slot in checkpoint_slots(self._checkpoint(groups[position])):
                    store.discard(slot)

        pool.run_tasks(
            _fit_task,
            tasks,
            finished,
            f"training {self.label}",
            self.workers,
            self.executor,
            [len(group) for group in groups],
            self.config.architecture,
        )
        return diverged

    def _groups(self, todo: list[int]) -> list[list[int]]:
        """Groups of models, each trained by one task: with equally large training sets, and no more
        models than leave work for every process.

        Groups are made of all models of the ensemble, whatever is missing, so that a group that was stopped finds its
        checkpoint; where there is none, only what is missing of it is trained.
        """
        together = 1
        if stacks(self.config.architecture, self.records.shape, len(self.records.classes)):
            processes = (
                PROCESSES_ELSEWHERE
                if self.executor or pool.cluster()
                else self.workers or pool.default_workers()
            )
            together = min(MOST_AT_ONCE, SIMD_LANES * -(-len(self) // (SIMD_LANES * processes)))
        sizes, groups, lacking = self.members.sum(1), [], set(todo)
        for size in np.unique(sizes[todo]):
            same = [int(m) for m in np.flatnonzero(sizes == size)]
            groups += [same[k : k + together] for k in range(0, len(same), together)]
        stopped = [
            any(store.look_up(slot) for slot in checkpoint_slots(self._checkpoint(group)))
            for group in groups
        ]
        wanted = [
            group if again else [m for m in group if m in lacking]
            for group, again in zip(groups, stopped, strict=True)
        ]
        return [group for group in wanted if lacking & set(group)]

    def _fit_on_card(self, where: torch.device, todo: list[int]) -> list[str]:
        diverged: list[str] = []
        model_of = {self.numbers[m]: m for m in todo}
        gpu.fit_on_gpu(
            self._task(todo, self.records.x),
            where,
            lambda number, outcome: self._keep(model_of[number], outcome, where, diverged),
            f"training {self.label}",
            lambda numbers: self._checkpoint([model_of[number] for number in numbers], str(where)),
        )
        return diverged

    def arrays(self, index: int) -> dict[str, np.ndarray]:
        """Weights of model `index` by name, its `history` [epochs, 2] and, where it was validated, `validation` [epochs]."""
        entry = store.look_up(self.spec(index)) or store.look_up(self.fit().spec(index))
        return entry.arrays

    def untrained(self) -> nn.Module:
        """The network as it is before training, for its shape."""
        network = architectures.build(
            self.config.architecture, self.records.shape, len(self.records.classes), seed=0
        )
        return architectures.set_input_scaling(network, self.config.scaling)

    def model(self, index: int) -> nn.Module:
        """Model `index`, trained, in evaluation mode."""
        return rebuilt(
            self.config, self.records.shape, len(self.records.classes), self.arrays(index)
        )

    def parameters(self, index: int) -> np.ndarray:
        """All parameters of model `index` as one vector float32 [P], in the order of `nn.Module.parameters`."""
        return nn.utils.parameters_to_vector(self.model(index).parameters()).detach().numpy()

    def history(self) -> np.ndarray:
        """Mean loss and accuracy while training, float32 [M, epochs, 2]."""
        self.fit()
        return np.stack([self.arrays(m)["history"] for m in range(len(self))])


def train(
    records: Dataset,
    members: np.ndarray,
    config: TrainConfig,
    *,
    label: str = "models",
    workers: int | None = None,
    executor: Executor | None = None,
    device: str | int | None = None,
    validation: np.ndarray | None = None,
    start: tuple[Ensemble, Sequence[int]] | None = None,
) -> Ensemble:
    """Describe an ensemble; nothing is trained before it is needed.

    Args:
        records: N records.
        members: bool [M, N]; row m is the training set of model m.
        config: how each is trained.
        label: what progress bars call the models.
        workers: processes of the local pool, one a core by default.
        executor: any `concurrent.futures.Executor` whose processes share this file system, in the pool's place.
        device: "cpu", "cuda", "cuda:1" or 1, the number of a card; by default `$MIA_DEVICE`, or a graphics card where there is
            one.
        validation: bool [M, N], for each model equally many records, none of its training set; a model keeps the weights of
            the epoch with the best accuracy on them.
        start: an ensemble, and for each of the M models the number of its model to go on from instead of random weights.

    Raises:
        MiaError: shapes that do not fit, indices in the place of a mask, an empty training set, fewer than two classes, an
            architecture that cannot take these records, a device that is not there, validation records that are members, a
            start of another kind.
    """
    check_type("records", records, Dataset, "data.from_arrays makes one.")
    check_type(
        "config",
        config,
        TrainConfig,
        "Of the name of an architecture make training.TrainConfig(name).",
    )
    if workers is not None:
        check_whole("workers", workers, 1, 1024)
    if executor is not None:
        check_type("executor", executor, Executor)
    members = np.atleast_2d(check_mask("members", members))
    if members.ndim != 2:
        raise MiaError(f"members has shape {members.shape}: [M, N] is needed, a row a model.")
    if members.shape[1] != len(records):
        raise MiaError(
            f"members has {members.shape[1]} columns, but there are {len(records)} records: they must agree."
        )
    if not members.any(1).all():
        raise MiaError(
            f"members: row {int(np.argmin(members.any(1)))} has no member; every model needs at least one."
        )
    if records.is_frame:
        raise MiaError(
            f"{records.name} is a table whose columns are kept as they are, and networks take numbers: make columns of "
            "words numbers, as by pandas.get_dummies(table, dtype=float), and give data.from_arrays(x, y, name)."
        )
    _check_kind(records, config)
    if len(records.classes) < 2:
        raise MiaError(
            f"{records.name} has {len(records.classes)} class; a classifier needs at least 2."
        )
    _check_names(
        config,
        architectures.build(config.architecture, records.shape, len(records.classes), seed=0),
    )
    if config.scaling != "-1 to 1":
        if not records.is_image:
            raise MiaError(
                f"scaling = {config.scaling!r} is of images; {records.name} is a table, which is fed as it is. "
                "Leave it out."
            )
        architectures.to_input(records.x[:1], config.scaling)
    architectures.try_out(
        config.architecture, records.x, len(records.classes), config.scaling, config.loss
    )
    if config.augmentation != "none" and not records.is_image:
        raise MiaError(
            f"augmentation = {config.augmentation!r} needs images; {records.name} is a table. Use 'none'."
        )
    devices.pick(device)
    if workers is not None:
        check_whole("workers", workers, 1, 1024)
    if validation is not None:
        validation = np.atleast_2d(check_mask("validation", validation, "a record to validate on"))
        if validation.shape != members.shape or not validation.any() or np.ptp(validation.sum(1)):
            raise MiaError(
                f"validation has shape {validation.shape} and {np.unique(validation.sum(-1))} records a model: it "
                f"needs the shape of members, {members.shape}, and equally many for each model, at least one."
            )
        if (validation & members).any():
            raise MiaError(
                f"validation: {int((validation & members).sum())} records are in the training set that they are to "
                "validate. Leave them out."
            )
    if start is not None:
        if (
            not isinstance(start, list | tuple)
            or len(start) != 2
            or not isinstance(start[0], Ensemble)
        ):
            raise MiaError(
                f"start = {brief(start)}: a pair is needed, an ensemble and the numbers of its models."
            )
        start = start[0], numbers_of(start[1], len(start[0]))
        _check_start(*start, members, records, config)
    return Ensemble(records, members, config, label, workers, executor, device, validation, start)


def _check_kind(records: Dataset, config: TrainConfig) -> None:
    """Refuse a language model that is trained as a classifier, the other way round, and records that it cannot predict."""
    predicted = config.loss == NEXT_TOKEN
    is_gpt = config.architecture.partition(":")[0] == "gpt"
    if is_gpt != predicted and not (predicted and custom.is_own(config.architecture)):
        raise MiaError(
            f"architecture = {config.architecture!r} does not fit loss = {config.loss!r}: a language model, gpt or one of "
            "your own, is trained with 'next_token', a classifier with another loss."
        )
    if not predicted:
        return
    x = records.x
    if records.kind != "tokens" or (
        x.min() < -1
        or x.max() >= len(records.classes)
        or (x[:, :2] < 0).any()
        or ((x[:, 1:] >= 0) & (x[:, :-1] < 0)).any()
    ):
        raise MiaError(
            f"loss = 'next_token' does not fit {records!r}: records of a language model are at least two token ids below the "
            "number of classes, which are the tokens, and -1 behind the last. data.from_tokens makes them."
        )


def _check_start(
    models: Ensemble,
    numbers: Sequence[int],
    members: np.ndarray,
    records: Dataset,
    config: TrainConfig,
) -> None:
    if len(numbers) != len(members) or not all(0 <= m < len(models) for m in numbers):
        raise MiaError(
            f"start names {len(numbers)} models, {min(numbers, default=0)} to {max(numbers, default=0)}, of "
            f"{len(models)}: one of them is needed for each of the {len(members)} models."
        )
    ours = config.architecture, records.shape, len(records.classes)
    theirs = models.config.architecture, models.records.shape, len(models.records.classes)
    if ours != theirs:
        raise MiaError(
            "start: models go on from weights of their own architecture, shape of records and number of classes, "
            f"{ours}; given were {theirs}."
        )


# Models whose weights are given, such as those of a published bank, in the place of trained ones


@dataclass(frozen=True, eq=False)
class Loaded(Ensemble):
    """M models that are looked up and never trained. `weights`: number of the model -> its `state_dict` by name, tensors that
    hold no floating numbers left out."""

    weights: dict[int, dict[str, np.ndarray]] = field(default_factory=dict, repr=False)

    def spec(self, index: int) -> dict:
        """Spec of model `index`: its weights, besides what it was trained on."""
        own = self.weights[self.numbers[index]]
        return {
            **super().spec(index),
            "weights": {name: store.fingerprint(array) for name, array in sorted(own.items())},
        }

    def missing(self) -> list[int]:
        """Return []: there is nothing to train."""
        return []

    def arrays(self, index: int) -> dict[str, np.ndarray]:
        """Weights of model `index` by name."""
        start = {name: tensor.numpy() for name, tensor in self.untrained().state_dict().items()}
        return start | {
            name: array.astype(np.float32)
            for name, array in self.weights[self.numbers[index]].items()
        }


def with_weights(models: Ensemble, weights: Sequence[dict[str, np.ndarray]]) -> Loaded:
    """The models that `training.train` describes, with the given weights: of each model its
    `state_dict` by name but for counts of batches of batch normalisation. None is trained; weights
    that do not fit are refused."""
    if len(weights) != len(models):
        raise MiaError(
            f"weights of {len(weights)} models, for an ensemble of {len(models)}: one a model is needed."
        )
    shapes = {
        name: tuple(tensor.shape)
        for name, tensor in models.untrained().state_dict().items()
        if tensor.is_floating_point()
    }
    for own in weights:
        if (own_shapes := {name: array.shape for name, array in own.items()}) != shapes:
            wrong = sorted(
                name
                for name in own_shapes.keys() | shapes.keys()
                if own_shapes.get(name) != shapes.get(name)
            )
            raise MiaError(
                f"weights do not fit {models.config.architecture}: {', '.join(wrong)} differ in name or shape."
            )
    same = {attribute.name: getattr(models, attribute.name) for attribute in fields(models)}
    return Loaded(**same, weights=dict(zip(models.numbers, weights, strict=True)))
