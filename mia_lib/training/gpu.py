"""Training on a graphics card: as many models at once as it trains faster than fewer."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from mia_lib import progress, store
from mia_lib.errors import MiaError
from mia_lib.training import devices
from mia_lib.training.loop import Group, Outcome, Task, checkpoint_slots, fit_group
from mia_lib.training.stacking import stackable

MAX_STACKED = 64  # models at once
# twice as many at once must train this many times faster, else the smaller number is kept
MIN_SPEEDUP = 1.15
TIMED_STEPS = 8  # for each number


def stack_size(task: Task, device: torch.device) -> int:
    """Number of models of a task to train at once, found by trying 1, 2, 4, ... for a few steps
    each: the last number that was worth doubling to, at most `MAX_STACKED` and the number of
    models."""
    best, rate, tried = 1, 0.0, 1
    if not stackable(task.config.architecture, task.x.shape[1:], task.classes):
        return 1
    while tried <= min(MAX_STACKED, len(task)):
        try:
            with devices.plain_float32(task.config.precision == "tf32"):
                speed = _models_per_second(task.part(range(tried)), device)
        except RuntimeError as error:
            if not devices.out_of_memory(error):
                raise
            speed = 0.0
        devices.release()
        if speed <= MIN_SPEEDUP * rate:
            break
        best, rate, tried = tried, speed, 2 * tried
    return best


def _models_per_second(task: Task, device: torch.device) -> float:
    group = Group(task, device, len(task) > 1)
    size = min(group.size, task.config.batch_size)
    picked = group.rows[:, :size]
    views = torch.zeros(
        len(task), size, 0 if task.config.augmentation == "none" else 5, device=device
    )
    step = group.recorded_step if devices.replays(device) else group.step
    for timed in (False, True):  # the first round chooses algorithms and records
        devices.wait(device)
        start = time.perf_counter()
        for _ in range(TIMED_STEPS if timed else 2):
            step(picked, views)
        devices.wait(device)
    return len(task) * TIMED_STEPS / max(time.perf_counter() - start, 1e-9)


def fit_on_gpu(
    task: Task,
    device: torch.device,
    finished: Callable[[int, Outcome], None],
    label: str,
    checkpoint: Callable[[list[int]], dict],
) -> None:
    """Train models in this process, several at once; where memory runs out, half as many.

    Args:
        task: what to train, training sets of any size.
        finished: called with each model's number and outcome.
        checkpoint: from the numbers of models in training to the store spec of their state.
    """
    sizes = [len(rows) for rows in task.rows]
    together = stack_size(
        task.part([k for k, size in enumerate(sizes) if size == sizes[0]]), device
    )
    waiting: list[list[int]] = []  # places, equally large training sets together
    for size in sorted(set(sizes)):
        same = [k for k, count in enumerate(sizes) if count == size]
        waiting += [same[k : k + together] for k in range(0, len(same), together)]
    kept: list[Group] = []
    with progress.Bar(label, len(task)) as bar:
        while waiting:
            places = waiting.pop(0)
            part = task.part(places)
            try:
                outcomes = fit_group(part, device, len(part) > 1, checkpoint(part.indices), kept)
            except RuntimeError as error:
                if not devices.out_of_memory(error):
                    raise
                if len(part) == 1:
                    raise MiaError(
                        f"{devices.describe(device)} has too little memory for one {task.config.architecture} "
                        f"with batch_size = {task.config.batch_size}: lower it, or take device='cpu'."
                    ) from error
                half = -(-len(part) // 2)  # for those that wait, too: they would not fit either
                waiting = [
                    group[k : k + half]
                    for group in [places, *waiting]
                    for k in range(0, len(group), half)
                ]
                outcomes = []
                kept.clear()
            if not outcomes:
                devices.release()
                continue
            for number, outcome in zip(part.indices, outcomes, strict=True):
                finished(number, outcome)
                bar.advance()
            if task.config.stop_epoch is None:
                for slot in checkpoint_slots(checkpoint(part.indices)):
                    store.discard(slot)
