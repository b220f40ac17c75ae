"""The training loop: one network or many stacked, on any device."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch

from mia_lib import custom, store
from mia_lib import models as architectures
from mia_lib.training import devices, objectives, recipe
from mia_lib.training.recipe import TrainConfig
from mia_lib.training.stacking import Stacked, stackable

# Parameters: on a CPU stacking gains 15x for the smallest networks, 2 to 3x here and nothing from about 300,000 on
# (benchmarks/crossover.py); a stopped run loses less when networks that train for long do so one by one.
STACKED_BELOW = 30_000
CHECKPOINT_SECONDS = 60.0
VALIDATED_AT_ONCE = 1000  # records
# bytes: data sets up to this size lie on a card whole, so that models to come find their records there
HELD_WHOLE = 2 << 30
SIMD_LANES = 8  # networks are stacked on a CPU by multiples of this, see `fit_group`


@dataclass(frozen=True, eq=False)
class Task:
    """G models to be trained on the same records by the same recipe.

    Attributes:
        x: records in the form of `Dataset.x`, [N, ...]; on the way to another process the file of the store that holds them.
        y: labels [N].
        classes: number K of classes.
        config: how.
        rows: training sets, G arrays of indices.
        indices: the models' numbers within their ensemble.
        start: `state_dict` of each, to go on from; random weights when None.
        validation: G arrays of equally many indices, on which accuracy is measured after each epoch; the weights of the
            best epoch, the earliest of equals, are what remains. Those of the last when None.
    """

    x: np.ndarray | str
    y: np.ndarray
    classes: int
    config: TrainConfig
    rows: list[np.ndarray]
    indices: list[int]
    start: list[dict[str, np.ndarray]] | None = None
    validation: list[np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, places: Sequence[int]) -> Task:
        """The models at some places, in the order given."""
        rows, indices, start, validation = (
            of_models and [of_models[k] for k in places]
            for of_models in (self.rows, self.indices, self.start, self.validation)
        )
        return replace(self, rows=rows, indices=indices, start=start, validation=validation)

    def records(self) -> np.ndarray:
        """All records that are trained or validated on, their indices ascending."""
        return np.unique(np.concatenate([*self.rows, *(self.validation or [])]))


@dataclass(frozen=True)
class Outcome:
    """Result of training one model.

    Attributes:
        arrays: its `state_dict` and `history` float32 [epochs, 2], the mean loss and accuracy while training; where it was
            validated, also `validation` float32 [epochs], and the weights are those of its best epoch.
        seconds: its share of the time.
        diverged: what to tell the user when its loss stopped being a number, else "".
    """

    arrays: dict[str, np.ndarray]
    seconds: float
    diverged: str = ""


def stacks(architecture: str, shape: tuple, classes: int) -> bool:
    """True if networks of this architecture train faster together on a CPU: small ones, without
    convolutions."""
    network = architectures.build(architecture, shape, classes, seed=0)
    convolves = any(isinstance(layer, torch.nn.Conv2d) for layer in network.modules())
    return (
        not convolves
        and architectures.parameter_count(network) < STACKED_BELOW
        and stackable(architecture, shape, classes)
    )


class Group:
    """The models of a task in training, whose training sets are equally large; `stacked` as one network, which more than one
    must be."""

    def __init__(self, task: Task, device: torch.device, stacked: bool):
        x, self.config, self.device, self._stacked = task.x, task.config, device, stacked
        self._used = (
            np.arange(len(x))
            if devices.is_card(device) and x.nbytes <= HELD_WHOLE
            else task.records()
        )
        self._objective = objectives.of(self.config.loss)
        raw, self._y = self._objective.inputs_and_labels(
            torch.from_numpy(np.ascontiguousarray(x[self._used])),
            torch.from_numpy(np.array(task.y, np.int64)[self._used]),
        )
        networks = self._untrained(task)
        self._scaling = architectures.feeding(networks[0], raw, self.config.scaling)
        # The CPU converts all records once; a card holds them as bytes and converts each batch. Channels stay last.
        self._x = (
            raw.to(device)
            if devices.is_card(device)
            else _channels_last(architectures.to_input(raw, self._scaling))
        )
        self._labels, self._y = self._y, self._y.to(device)
        self.network = self._join(networks).to(device).train()
        if not stacked and x.ndim == 4 and not custom.is_own(self.config.architecture):
            self.network.to(memory_format=torch.channels_last)  # pools ten times as fast on a CPU
        self.optimizer = self._make_optimizer()
        self._total = torch.zeros(len(task), device=device)
        self._right = torch.zeros(len(task), device=device)
        self._recorded: dict[int, tuple] = {}
        self._pool = torch.cuda.graph_pool_handle() if devices.replays(device) else None
        self._begin(task)

    def _untrained(self, task: Task) -> list[torch.nn.Module]:
        """The models as they are before training."""
        networks = [
            architectures.build(
                self.config.architecture,
                task.x.shape[1:],
                task.classes,
                seed=recipe.seed_of(self.config, index),
            )
            for index in task.indices
        ]
        for network, weights in zip(networks, task.start or (), strict=bool(task.start)):
            network.load_state_dict(
                {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
            )
        return networks

    def _join(self, networks: list[torch.nn.Module]) -> torch.nn.Module:
        return Stacked(networks) if self._stacked else networks[0]

    def _begin(self, task: Task) -> None:
        self.indices, self.size = list(task.indices), len(task.rows[0])
        places = torch.from_numpy(
            np.searchsorted(self._used, np.concatenate([*task.rows, *(task.validation or [])]))
        )
        count = len(task) * self.size
        # on the CPU, where the order of records is drawn
        self._labels_by_model = self._labels[places[:count].view(len(task), -1)]
        places = places.to(self.device)
        self.rows = places[:count].view(len(task), -1)
        self._validation = places[count:].view(len(task), -1) if task.validation else None
        self._generators = [
            torch.Generator().manual_seed(recipe.seed_of(self.config, index))
            for index in task.indices
        ]
        self.history = np.zeros((len(task), self.config.epochs_trained, 2), np.float32)
        self.validated = np.zeros((len(task), self.config.epochs_trained), np.float32)
        self._best = self._states() if task.validation else None
        self.epoch = 0

    def renew(self, task: Task) -> bool:
        """Make place for as many other models of the same records and recipe, for which what was
        recorded is replayed; False if there is none: for records that are not held, or another
        number of models."""
        if len(task) != len(self.indices) or not np.isin(task.records(), self._used).all():
            return False
        with torch.no_grad():
            self.network.load_state_dict(self._join(self._untrained(task)).state_dict())
            for entry in self.optimizer.state.values():
                for value in entry.values():
                    if isinstance(value, torch.Tensor):
                        value.zero_()
        self._begin(task)
        return True

    def _make_optimizer(self) -> torch.optim.Optimizer:
        config, weights = self.config, list(self.network.parameters())
        # there the rate is a tensor, which a recorded step reads anew
        on_card = devices.is_card(self.device)
        rate = (
            torch.tensor(config.learning_rate, device=self.device)
            if on_card
            else config.learning_rate
        )
        if config.optimizer == "adam":
            return torch.optim.Adam(
                weights, rate, weight_decay=config.weight_decay, fused=True, capturable=on_card
            )
        return torch.optim.SGD(
            weights,
            rate,
            momentum=config.momentum,
            nesterov=config.nesterov,
            weight_decay=config.weight_decay,
            fused=True,
        )

    def step(self, picked: torch.Tensor, views: torch.Tensor) -> None:
        """One step of every model, on records at places [G, B] among those held here, in views [G, B, V] of the
        augmentation."""
        x, labels = self._batch(picked)
        x = recipe.augment(x, self.config.augmentation, views.flatten(0, 1))
        outputs = self._outputs(x, picked)
        losses = self._objective.losses(outputs, labels, self.config.loss)
        self.optimizer.zero_grad(set_to_none=True)
        # no weight is shared, so each model gets the gradient of its own mean
        losses.mean(1).sum().backward()
        self.optimizer.step()
        self._total += losses.detach().sum(1)
        self._right += self._objective.correct(outputs.detach(), labels).sum(1)

    def _batch(self, picked: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The records [G * B, ...] at the places [G, B], and what is to be predicted of them, [G, B, ...]."""
        x = self._x.index_select(0, picked.flatten())  # several times as fast as indexing
        if devices.is_card(self.device):  # which records steps of one shape
            return architectures.to_input(x, self._scaling), self._y[picked]
        return self._objective.trim(_channels_second(x), self._y[picked])

    def _outputs(self, x: torch.Tensor, picked: torch.Tensor) -> torch.Tensor:
        """Logits [G, B, K] of the inputs [G * B, ...], each network its own."""
        short = (
            torch.autocast(self.device.type, torch.bfloat16)
            if self.config.precision == "bfloat16"
            else nullcontext()
        )
        with short:
            outputs = (
                self.network(x.unflatten(0, picked.shape))
                if self._stacked
                else self.network(x)[None]
            )
        return outputs.float()

    def run_epoch(self) -> None:
        """Pass once over every training set."""
        config = self.config
        orders = torch.stack(
            [
                self._objective.batch_order(
                    torch.randperm(self.size, generator=generator),
                    labels,
                    config.batch_size,
                    generator,
                )
                for generator, labels in zip(self._generators, self._labels_by_model, strict=True)
            ]
        ).to(self.device)
        views = torch.stack(
            [recipe.draw_views(config.augmentation, self.size, g) for g in self._generators]
        )
        everything, views = self.rows.gather(1, orders), views.to(self.device)
        self._total.zero_()
        self._right.zero_()
        trained = 0
        for start in range(0, self.size, config.batch_size):
            if self.size - start == 1 < self.size:
                break
            if start == 0 or config.schedule == "one_cycle":
                self._set_rate(recipe.learning_rate(config, self.epoch + start / self.size))
            part = slice(start, start + config.batch_size)
            picked = everything[:, part]
            (self.recorded_step if devices.replays(self.device) else self.step)(
                picked, views[:, part]
            )
            trained += picked.shape[1]
        self.history[:, self.epoch, 0] = self._total.cpu().numpy() / trained
        self.history[:, self.epoch, 1] = self._right.cpu().numpy() / trained
        if self._validation is not None:
            self._validate()
        self.epoch += 1

    def _set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    @torch.no_grad()
    def _validate(self) -> None:
        """Measure accuracy on the validation records, and keep the weights of models that were never better."""
        right, count = torch.zeros_like(self._right), self._validation.shape[1]
        self.network.eval()
        for start in range(0, count, VALIDATED_AT_ONCE):
            picked = self._validation[:, start : start + VALIDATED_AT_ONCE]
            x, labels = self._batch(picked)
            right += self._objective.correct(self._outputs(x, picked), labels).sum(1)
        self.network.train()
        self.validated[:, self.epoch] = right.cpu().numpy() / count
        earlier = self.validated[:, : self.epoch].max(1, initial=-1)
        better = self.validated[:, self.epoch] > earlier
        if better.any():
            now = self._states()
            self._best = [
                new if is_better else old
                for new, old, is_better in zip(now, self._best, better, strict=True)
            ]

    def recorded_step(self, picked: torch.Tensor, views: torch.Tensor) -> None:
        """A step replayed from a recording (a CUDA graph): a small network's operations take less time than starting them.

        There is one for batches of each size, that of the last one, too."""
        if picked.shape[1] not in self._recorded:
            before = [tensor.clone() for tensor in self._tensors()]
            batch = picked.clone(), views.clone()
            replay = capture_graph(lambda: self.step(*batch), self.device, self._pool)
            self._recorded[picked.shape[1]] = *batch, replay
            # Recording took steps. What the optimiser had not held before starts from zero, as it would have.
            tensors = self._tensors()
            for tensor, value in zip(
                tensors, before + [None] * (len(tensors) - len(before)), strict=True
            ):
                tensor.zero_() if value is None else tensor.copy_(value)
        own_picked, own_views, replay = self._recorded[picked.shape[1]]
        own_picked.copy_(picked)
        own_views.copy_(views)
        replay()

    def _tensors(self) -> list[torch.Tensor]:
        """All that a step changes: weights, buffers, counts, and what the optimiser keeps."""
        kept = [
            value
            for entry in self.optimizer.state.values()
            for _, value in sorted(entry.items())
            if isinstance(value, torch.Tensor)
        ]
        return [
            *(p.data for p in self.network.parameters()),
            *self.network.buffers(),
            self._total,
            self._right,
            *kept,
        ]

    def state(self) -> dict[str, np.ndarray]:
        """All that is needed to go on later, as arrays."""
        kept = {
            f"optimizer.{i}.{name}": value
            for i, weight in enumerate(self.network.parameters())  # some may be frozen
            for name, value in self.optimizer.state.get(weight, {}).items()
            if isinstance(value, torch.Tensor)
        }
        kept |= {f"network.{name}": value for name, value in self.network.state_dict().items()}
        arrays = {name: value.detach().cpu().numpy().copy() for name, value in kept.items()}
        generators = np.stack([g.get_state().numpy() for g in self._generators])
        best = {
            f"best.{g}.{name}": value.numpy()
            for g, state in enumerate(self._best or [])
            for name, value in state.items()
        }
        return {
            **arrays,
            **best,
            "generators": generators,
            "history": self.history,
            "validated": self.validated,
            "epoch": np.array(self.epoch),
        }

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `state` returned."""
        self._recorded = {}  # they know the optimiser's tensors, which are others from here on
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}
        self.network.load_state_dict(
            {
                name.removeprefix("network."): value
                for name, value in tensors.items()
                if name.startswith("network.")
            }
        )
        for i, weight in enumerate(self.network.parameters()):
            entry = {
                name.split(".", 2)[2]: value
                for name, value in tensors.items()
                if name.startswith(f"optimizer.{i}.")
            }
            if entry:
                # In the weight's own order of memory: the fused optimisers walk through both side by side.
                self.optimizer.state[weight] = {
                    name: torch.empty_like(weight.data).copy_(value)
                    if value.shape == weight.shape
                    else value.to(self.device)
                    for name, value in entry.items()
                }
        for generator, state in zip(self._generators, arrays["generators"], strict=True):
            generator.set_state(torch.from_numpy(np.array(state)))
        self.epoch = int(arrays["epoch"])
        for name in ("history", "validated"):
            getattr(self, name)[:, : self.epoch] = arrays[name][:, : self.epoch]
        for g, state in enumerate(self._best or []):
            self._best[g] = {name: tensors[f"best.{g}.{name}"] for name in state}

    def _states(self) -> list[dict[str, torch.Tensor]]:
        """The `state_dict` of each model as it is, copied to the CPU."""
        if self._stacked:
            return self.network.states()
        return [
            {
                name: value.detach().cpu().contiguous().clone()
                for name, value in self.network.state_dict().items()
            }
        ]

    def outcomes(self, seconds: float) -> list[Outcome]:
        """Outcome of each model, as it is or, if it was validated, as it was at its best."""
        states = self._best or self._states()
        validated = [{"validation": row} if self._best else {} for row in self.validated]
        return [
            Outcome(
                {
                    **{name: value.numpy() for name, value in state.items()},
                    "history": self.history[g],
                    **validated[g],
                },
                seconds / len(states),
                self._divergence(g),
            )
            for g, state in enumerate(states)
        ]

    def _divergence(self, g: int) -> str:
        config, losses = self.config, self.history[g, : self.epoch, 0]
        if np.isfinite(losses).all():
            return ""
        epoch = int(np.argmin(np.isfinite(losses)))
        return (
            f"Model {self.indices[g]} ({config.architecture}) diverged: its loss is {losses[epoch]} in epoch {epoch + 1} "
            f"of {config.epochs}. Lower learning_rate ({config.learning_rate:g} was given)"
            f"{' or momentum (' + format(config.momentum, 'g') + ')' if config.momentum else ''}."
        )


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 2, 3, 1).contiguous() if x.ndim == 4 else x


def _channels_second(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 3, 1, 2) if x.ndim == 4 else x


def capture_graph(
    step: Callable[[], None], device: torch.device, pool: tuple | None = None
) -> Callable[[], None]:
    """A function that replays the work `step` gives the card, without Python in between.

    Recordings of one pool (`torch.cuda.graph_pool_handle`) use the same memory: none may count on what another left in it.
    """
    with torch.cuda.device(device):
        usual, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(usual)
        try:
            # libraries choose their algorithms in the first runs, which must not be recorded
            with torch.cuda.stream(side):
                for _ in range(3):
                    step()
            usual.wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool, stream=side):
                step()
        finally:
            torch.cuda.set_stream(usual)  # a recording that fails leaves its own behind
    return graph.replay


def checkpoint_slots(checkpoint: dict) -> list[dict]:
    """The two places of a checkpoint, written in turn: killed while it writes one, a run finds the other."""
    return [{**checkpoint, "slot": slot} for slot in (0, 1)]


def fit_group(
    task: Task,
    device: torch.device | None = None,
    stacked: bool | None = None,
    checkpoint: dict | None = None,
    kept: list[Group] | None = None,
) -> list[Outcome]:
    """Train models whose training sets are equally large.

    Args:
        task: what to train.
        device, stacked: as for `Group`; by default on the CPU, stacked when `stacks` says so.
        checkpoint: store spec under which the state is kept about once a minute, and at the end of a training with
            `stop_epoch`; a run that was stopped, or that stops later, goes on from it.
        kept: of earlier calls for the same records, recipe and device; a group in it with place for these models serves again,
            and one that had to be made is put there instead.

    Returns:
        one outcome a model. A model that diverges leaves the others alone. On a CPU with
        AVX2 how many are stacked makes no difference, to the last bit: vector instructions round what is left over at the end
        of an array differently, so the last model is repeated until nothing is left over.
    """
    device, wanted, config = device or torch.device("cpu"), len(task), task.config
    if stacked is None:
        stacked = len(task) > 1 or stacks(config.architecture, task.x.shape[1:], task.classes)
    if stacked and device.type == "cpu":
        task = task.part([*range(wanted), *[wanted - 1] * (-wanted % SIMD_LANES)])
    started = time.perf_counter()
    with devices.plain_float32(config.precision == "tf32"):
        if kept and kept[0].renew(task):
            group = kept[0]
        else:
            if kept:
                kept.clear()  # and its memory, before there is another
            group = Group(task, device, stacked)
            if kept is not None:
                kept.append(group)
        entries = (
            [store.look_up(slot) for slot in checkpoint_slots(checkpoint)] if checkpoint else []
        )
        usable = [e for e in entries if e and int(e.arrays["epoch"]) <= config.epochs_trained]
        stopped = max(usable, key=lambda entry: int(entry.arrays["epoch"]), default=None)
        if stopped:
            group.load(stopped.arrays)
        # the other is next
        last_write, written = time.perf_counter(), int(bool(stopped) and stopped is entries[1])
        while (
            group.epoch < config.epochs_trained
            and np.isfinite(group.history[:, : group.epoch, 0]).all(1).any()
        ):
            group.run_epoch()
            unfinished = checkpoint and group.epoch < config.epochs
            at_stop = group.epoch == config.epochs_trained
            if unfinished and (at_stop or time.perf_counter() - last_write > CHECKPOINT_SECONDS):
                spent = (
                    time.perf_counter()
                    - started
                    + (stopped.manifest["seconds"] if stopped else 0.0)
                )
                written += 1
                store.keep(checkpoint_slots(checkpoint)[written % 2], group.state(), spent)
                last_write = time.perf_counter()
    seconds = time.perf_counter() - started + (stopped.manifest["seconds"] if stopped else 0.0)
    return group.outcomes(seconds * len(task) / wanted)[:wanted]
