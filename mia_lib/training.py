"""Many models from one membership design.

`train` only describes the models; they are trained when something first needs them and no layer of the store holds
them. Each model is its own task in a pool of single-threaded processes (Torch's own threading collapses when cores are
shared) and is kept the moment it is finished, so a run that is stopped goes on where it was. A model is determined by
its records, training set, configuration and index alone: the number of processes does not enter.
"""

from __future__ import annotations

import atexit
import io
import math
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field

import numpy as np
import torch
from torch import nn

from mia_lib import models as architectures
from mia_lib import progress, store
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_range, choose

AUGMENTATIONS = ("none", "flip", "crop", "flip_crop", "flip_resized_crop")


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained.

    Attributes:
        architecture: a name of `models.names()`, with optional widths: "tanh_cnn:16,32,64".
        epochs: passes over the training set.
        batch_size: records a step; a last batch of a single record is left out (batch normalisation needs two).
        optimizer: "sgd" or "adam".
        learning_rate: of the first epoch.
        momentum, nesterov: of SGD.
        weight_decay: L2 penalty added to the gradient.
        schedule: "constant", "step" (times `step_factor` every `step_epochs`) or "cosine" (to zero).
        loss: "cross_entropy", or "squared_error" = 1/2 ||output - onehot||^2.
        augmentation: "none", "flip", "crop:P" and "flip_crop:P" (shift by up to P pixels, edges repeated), or
            "flip_resized_crop:S" (random crop of S to 1 of the area and 3/4 to 4/3 in aspect, resized).
        seed: of initial weights, batch order and augmentation.
    """

    architecture: str
    epochs: int = 20
    batch_size: int = 64
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    schedule: str = "constant"
    step_epochs: int = 30
    step_factor: float = 0.1
    loss: str = "cross_entropy"
    augmentation: str = "none"
    seed: int = 0

    def __post_init__(self):
        choose("architecture", self.architecture.split(":")[0], architectures.names())
        choose("optimizer", self.optimizer, ("sgd", "adam"))
        choose("schedule", self.schedule, ("constant", "step", "cosine"))
        choose("loss", self.loss, ("cross_entropy", "squared_error"))
        check_range("epochs", self.epochs, 0)
        check_range("batch_size", self.batch_size, 1)
        check_range("learning_rate", self.learning_rate, 0.0, 1e3)
        check_range("momentum", self.momentum, 0.0, 1.0)
        check_range("weight_decay", self.weight_decay, 0.0)
        check_range("step_epochs", self.step_epochs, 1)
        _augmentation(self.augmentation)
        if self.nesterov and not self.momentum:
            raise MiaError("nesterov = True needs momentum > 0; momentum = 0.0 was given.")


def _augmentation(text: str) -> tuple[str, float]:
    name, _, strength = text.partition(":")
    choose("augmentation", name, AUGMENTATIONS)
    try:
        value = float(strength) if strength else {"flip_resized_crop": 0.08}.get(name, 4.0)
    except ValueError:
        raise MiaError(f"augmentation = {text!r}: what follows the colon must be a number, as in 'flip_crop:4'.") from None
    check_range(f"augmentation = {text!r}: strength", value, *((0.01, 1.0) if "resized" in name else (0, 64)))
    return name, value


def augment(x: torch.Tensor, augmentation: str) -> torch.Tensor:
    """A fresh random view of each image.

    Args:
        x: images [B, C, H, W].
        augmentation: as in `TrainConfig`.

    Returns:
        images of the same shape.
    """
    name, strength = _augmentation(augmentation)
    if name == "none":
        return x
    batch, _, height, width = x.shape
    mirrored = torch.rand(batch) < 0.5 if "flip" in name else torch.zeros(batch, dtype=torch.bool)
    if name == "flip_resized_crop":
        area = torch.empty(batch).uniform_(strength, 1.0)
        aspect = torch.exp(torch.empty(batch).uniform_(math.log(3 / 4), math.log(4 / 3)))
        wide = (area * aspect).sqrt().clamp(max=1.0)
        high = (area / aspect).sqrt().clamp(max=1.0)
        theta = torch.zeros(batch, 2, 3)
        theta[:, 0, 0] = torch.where(mirrored, -wide, wide)
        theta[:, 1, 1] = high
        theta[:, 0, 2] = (2 * torch.rand(batch) - 1) * (1 - wide)
        theta[:, 1, 2] = (2 * torch.rand(batch) - 1) * (1 - high)
        grid = nn.functional.affine_grid(theta, list(x.shape), align_corners=False)
        return nn.functional.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)
    reach = int(strength) if "crop" in name else 0
    columns = torch.arange(width).expand(batch, width)
    columns = torch.where(mirrored[:, None], columns.flip(1), columns) + torch.randint(-reach, reach + 1, (batch, 1))
    rows = torch.arange(height).expand(batch, height) + torch.randint(-reach, reach + 1, (batch, 1))
    rows, columns = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
    picked = x.permute(0, 2, 3, 1)[torch.arange(batch)[:, None, None], rows[:, :, None], columns[:, None, :]]
    return picked.permute(0, 3, 1, 2)


def record_loss(outputs: torch.Tensor, labels: torch.Tensor, kind: str) -> torch.Tensor:
    """Loss of each record [B] from outputs [B, K] and labels [B]; `kind` as in `TrainConfig.loss`."""
    if kind == "cross_entropy":
        return nn.functional.cross_entropy(outputs, labels, reduction="none")
    return 0.5 * (outputs - nn.functional.one_hot(labels, outputs.shape[1])).square().sum(1)


def _optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    if config.optimizer == "adam":
        return torch.optim.Adam(model.parameters(), config.learning_rate, weight_decay=config.weight_decay, fused=True)
    return torch.optim.SGD(model.parameters(), config.learning_rate, momentum=config.momentum, fused=True,
                           nesterov=config.nesterov, weight_decay=config.weight_decay)


def learning_rate(config: TrainConfig, epoch: int) -> float:
    """The learning rate of an epoch (counted from 0) under the configuration's schedule."""
    if config.schedule == "step":
        return config.learning_rate * config.step_factor ** (epoch // config.step_epochs)
    if config.schedule == "cosine":
        return config.learning_rate * 0.5 * (1 + math.cos(math.pi * epoch / config.epochs))
    return config.learning_rate


def fit(x: np.ndarray, y: np.ndarray, classes: int, config: TrainConfig, index: int = 0) -> tuple[nn.Module, np.ndarray]:
    """Train one model in this process.

    Args:
        x: the training set in the form of `Dataset.x`, [n, ...].
        y: labels [n].
        classes: number of classes K.
        config: how.
        index: number of the model within its ensemble; with `config.seed` it seeds everything random.

    Returns:
        the model in evaluation mode, and its history float32 [epochs, 2]: mean loss and accuracy while training.

    Raises:
        MiaError: the loss stops being a finite number.
    """
    seed = int(np.random.SeedSequence([config.seed, index]).generate_state(1, np.uint64)[0] >> 1)
    model = architectures.build(config.architecture, x.shape[1:], classes, seed=seed)
    inputs, labels = architectures.to_input(x), torch.from_numpy(np.array(y, np.int64))
    history = np.zeros((config.epochs, 2), np.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        optimizer = _optimizer(model, config)
        model.train()
        for epoch in range(config.epochs):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(config, epoch)
            total, right = torch.zeros(()), torch.zeros((), dtype=torch.long)
            for batch in torch.randperm(len(inputs)).split(config.batch_size):
                if len(batch) == 1 < len(inputs):
                    continue
                outputs = model(augment(inputs[batch], config.augmentation))
                losses = record_loss(outputs, labels[batch], config.loss)
                optimizer.zero_grad(set_to_none=True)
                losses.mean().backward()
                optimizer.step()
                total += losses.detach().sum()
                right += (outputs.detach().argmax(1) == labels[batch]).sum()
            if not torch.isfinite(total):
                raise MiaError(
                    f"Model {index} ({config.architecture}) diverged: its loss is {total.item()} in epoch {epoch + 1} of "
                    f"{config.epochs}. Lower learning_rate ({config.learning_rate:g} was given)"
                    f"{' or momentum (' + format(config.momentum, 'g') + ')' if config.momentum else ''}.")
            history[epoch] = total.item() / len(inputs), right.item() / len(inputs)
    return model.eval(), history


# ---------------------------------------------------------------------------------------------------------- the pool

_pools: dict[int, ProcessPoolExecutor] = {}


def _start_worker() -> None:
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)  # a killed parent would otherwise leave its workers waiting for ever


def default_workers() -> int:
    """Processes of the pool: `$MIA_WORKERS`, or one a core this process may use, at most 16."""
    if os.environ.get("MIA_WORKERS"):
        try:
            return check_range("MIA_WORKERS", int(os.environ["MIA_WORKERS"]), 1)
        except ValueError as error:
            raise MiaError(f"MIA_WORKERS = {os.environ['MIA_WORKERS']!r}: a whole number from 1 is needed.") from error
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(16, cores)


def pool(workers: int | None = None) -> ProcessPoolExecutor:
    """The pool of single-threaded processes, started once and kept for the life of this process."""
    workers = workers or default_workers()
    if workers not in _pools:
        # A forked child of a process whose Torch threads have run can hang, so each worker starts afresh.
        context = multiprocessing.get_context("spawn")
        _pools[workers] = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)
    return _pools[workers]


@atexit.register
def close_pools() -> None:
    """End the processes of every pool."""
    while _pools:
        _pools.popitem()[1].shutdown(wait=False, cancel_futures=True)


def run_tasks(function: Callable, tasks: list[tuple], finished: Callable[[int, object], None], label: str,
              workers: int | None = None, executor: Executor | None = None) -> None:
    """Run `function(*task)` for every task and hand each result over as it comes.

    Args:
        function: importable by name.
        tasks: argument tuples.
        finished: called in this process with (position of the task, result).
        label: what the progress bar says.
        workers: processes of the local pool.
        executor: any `concurrent.futures.Executor` in the pool's place.

    Raises:
        MiaError: a task's own, or that a process died. Results handed over before are not lost.
    """
    executor_used = executor or pool(workers)
    futures = {executor_used.submit(function, *task): position for position, task in enumerate(tasks)}
    try:
        with progress.Bar(label, len(tasks)) as bar:
            for future in as_completed(futures):
                finished(futures.pop(future), future.result())
                bar.advance()
    except BrokenProcessPool as error:
        close_pools()
        raise MiaError(f"A process died during '{label}' (out of memory?). What was finished is kept: run again, with "
                       "fewer processes if memory is short (MIA_WORKERS=1).") from error
    except BaseException:
        for future in futures:
            future.cancel()
        if executor is None:
            close_pools()
        raise


# ------------------------------------------------------------------------------------------------------ the ensemble


def _data_file(records: Dataset) -> str:
    """The records as a file that every process maps instead of being sent a copy."""
    path = store.cache_dir() / "data" / f"{records.fingerprint[:40]}.npy"
    if not path.is_file():
        buffer = io.BytesIO()
        np.save(buffer, records.x)
        store.write(path, buffer.getvalue())
    return str(path)


def _fit_task(path: str, labels: np.ndarray, row: np.ndarray, classes: int, config: TrainConfig, index: int):
    started = time.perf_counter()
    model, history = fit(np.load(path, mmap_mode="r")[row], labels, classes, config, index)
    arrays = {name: tensor.contiguous().numpy() for name, tensor in model.state_dict().items()}
    return {**arrays, "history": history}, time.perf_counter() - started


@dataclass(frozen=True, eq=False)
class Ensemble:
    """M models, trained when first needed.

    Attributes:
        records: the data set that `members` indexes, N records.
        members: bool [M, N], row m = training set of model m.
        config: how they are trained.
        label: what progress bars call them.
    """

    records: Dataset
    members: np.ndarray
    config: TrainConfig
    label: str = "models"
    workers: int | None = None
    executor: Executor | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.members)

    def spec(self, index: int) -> dict:
        """What determines model `index`."""
        return {"kind": "model", "data": self.records.fingerprint, "members": store.fingerprint(self.members[index]),
                "classes": len(self.records.classes), "config": asdict(self.config), "index": index}

    def missing(self) -> list[int]:
        """Models that no layer of the store holds undamaged."""
        return [m for m in range(len(self)) if store.look_up(self.spec(m)) is None]

    def fit(self) -> Ensemble:
        """Train what is missing; each model is kept as soon as it is finished."""
        if not self.missing():
            return self
        # One lock for the ensemble: two notebooks that want it train it once.
        with store.lock({"kind": "model", "ensemble": [self.spec(m) for m in range(len(self))]}):
            todo = self.missing()
            path, classes = _data_file(self.records), len(self.records.classes)
            rows = [np.flatnonzero(self.members[m]) for m in todo]
            tasks = [(path, self.records.y[row], row, classes, self.config, m) for m, row in zip(todo, rows, strict=True)]
            run_tasks(_fit_task, tasks, lambda k, result: store.keep(
                self.spec(todo[k]), result[0], result[1], torch=torch.__version__, device="cpu"),
                f"training {self.label}", self.workers, self.executor)
        return self

    def arrays(self, index: int) -> dict[str, np.ndarray]:
        """Weights of model `index` by name, and its `history` [epochs, 2]."""
        entry = store.look_up(self.spec(index)) or store.look_up(self.fit().spec(index))
        return entry.arrays

    def model(self, index: int) -> nn.Module:
        """Model `index`, trained, in evaluation mode."""
        arrays = self.arrays(index)
        model = architectures.build(self.config.architecture, self.records.shape, len(self.records.classes), seed=0)
        model.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in arrays.items() if name != "history"})
        return model.eval()

    def parameters(self, index: int) -> np.ndarray:
        """All parameters of model `index` as one vector float32 [P], in the order of `nn.Module.parameters`."""
        return nn.utils.parameters_to_vector(self.model(index).parameters()).detach().numpy()

    def history(self) -> np.ndarray:
        """Mean loss and accuracy while training, float32 [M, epochs, 2]."""
        self.fit()
        return np.stack([self.arrays(m)["history"] for m in range(len(self))])


def train(records: Dataset, members: np.ndarray, config: TrainConfig, *, label: str = "models",
          workers: int | None = None, executor: Executor | None = None) -> Ensemble:
    """Describe an ensemble; nothing is trained before it is needed.

    Args:
        records: N records.
        members: bool [M, N]; row m is the training set of model m.
        config: how each is trained.
        label: what progress bars call the models.
        workers: processes of the local pool, one a core by default.
        executor: any `concurrent.futures.Executor` whose processes share this file system, in the pool's place.

    Raises:
        MiaError: shapes that do not fit, an empty training set, fewer than two classes, an architecture that cannot
            take these records.
    """
    members = np.atleast_2d(np.asarray(members, bool))
    if members.shape[1] != len(records):
        raise MiaError(f"members has {members.shape[1]} columns, but there are {len(records)} records: they must agree.")
    if not members.any(1).all():
        raise MiaError(f"members: row {int(np.argmin(members.any(1)))} has no member; every model needs at least one.")
    if len(records.classes) < 2:
        raise MiaError(f"{records.name} has {len(records.classes)} class; a classifier needs at least 2.")
    architectures.build(config.architecture, records.shape, len(records.classes), seed=0)  # says now what does not fit
    if config.augmentation != "none" and not records.is_image:
        raise MiaError(f"augmentation = {config.augmentation!r} needs images; {records.name} is a table. Use 'none'.")
    return Ensemble(records, members, config, label, workers, executor)
