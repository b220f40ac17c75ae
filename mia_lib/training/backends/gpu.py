"""Training on a graphics card: as many models at once as it trains faster than fewer."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from mia_lib import progress, store
from mia_lib.errors import MiaError
from mia_lib.training import devices
from mia_lib.training.backends.loop import Group, Outcome, fit_group, slots
from mia_lib.training.recipe import TrainConfig
from mia_lib.training.stacking import stackable

MOST = 64  # models at once
WORTH = 1.15  # twice as many at once must train this many times faster, else the smaller number is kept
STEPS = 8  # timed for each number


def at_once(x: np.ndarray, y: np.ndarray, rows: list[np.ndarray], classes: int, config: TrainConfig,
            device: torch.device, clock: Callable[[], float] = time.perf_counter) -> int:
    """How many models to train at once, by trying 1, 2, 4, ... for a few steps each.

    Args:
        x, y, rows, classes, config, device: as for `Group`.
        clock: seconds.

    Returns:
        the last number that was worth doubling to, at most `MOST` and the number of models.
    """
    best, rate, tried = 1, 0.0, 1
    if not stackable(config.architecture, x.shape[1:], classes):
        return 1
    while tried <= min(MOST, len(rows)):
        try:
            with devices.plain_float32(config.precision == "tf32"):
                found = _models_per_second(x, y, rows[:tried], classes, config, device, clock)
        except RuntimeError as error:
            if not devices.out_of_memory(error):
                raise
            found = 0.0
        devices.release()
        if found <= WORTH * rate:
            break
        best, rate, tried = tried, found, 2 * tried
    return best


def _models_per_second(x, y, rows, classes, config, device, clock) -> float:
    group = Group(x, y, rows, classes, config, list(range(len(rows))), device, len(rows) > 1)
    size = min(group.size, config.batch_size)
    picked = group.rows[:, :size]
    views = torch.zeros(len(rows), size, 0 if config.augmentation == "none" else 5, device=device)
    step = group.recorded_step if devices.replays(device) else group.step
    for timed in (False, True):  # the first round chooses algorithms and records
        devices.wait(device)
        start = clock()
        for _ in range(STEPS if timed else 2):
            step(picked, views)
        devices.wait(device)
    return len(rows) * STEPS / max(clock() - start, 1e-9)


def fit_on(device: torch.device, x: np.ndarray, y: np.ndarray, rows: list[np.ndarray], classes: int, config: TrainConfig,
           indices: list[int], finished: Callable[[int, Outcome], None], label: str,
           checkpoint: Callable[[list[int]], dict], start: list[dict[str, np.ndarray]] | None = None,
           validation: list[np.ndarray] | None = None) -> int:
    """Train models in this process, several at once.

    Where memory runs out, half as many are tried.

    Args:
        device, x, y, rows, classes, config, indices, start, validation: as for `Group`, training sets of any size.
        finished: called with each model's number and outcome.
        label: what the progress bar says.
        checkpoint: from the numbers of models in training to the store spec of their state.

    Returns:
        how many were trained at once, at most.

    Raises:
        MiaError: a single model does not fit.
    """
    together, most = at_once(x, y, [r for r in rows if len(r) == len(rows[0])], classes, config, device), 0
    waiting: list[list[int]] = []  # positions, equally large training sets together
    for size in sorted({len(r) for r in rows}):
        same = [k for k, r in enumerate(rows) if len(r) == size]
        waiting += [same[k:k + together] for k in range(0, len(same), together)]
    kept: list[Group] = []
    with progress.Bar(label, len(rows)) as bar:
        while waiting:
            group = waiting.pop(0)
            numbers = [indices[k] for k in group]
            try:
                outcomes = fit_group(x, y, [rows[k] for k in group], classes, config, numbers, device,
                                     stacked=len(group) > 1, checkpoint=checkpoint(numbers),
                                     start=start and [start[k] for k in group],
                                     validation=validation and [validation[k] for k in group], kept=kept)
            except RuntimeError as error:
                if not devices.out_of_memory(error):
                    raise
                if len(group) == 1:
                    raise MiaError(f"{devices.describe(device)} has too little memory for one {config.architecture} with "
                                   f"batch_size = {config.batch_size}: lower it, or take device='cpu'.") from error
                half = -(-len(group) // 2)  # for those that wait, too: they would not fit either
                waiting = [one[k:k + half] for one in [group, *waiting] for k in range(0, len(one), half)]
                outcomes = []
                kept.clear()
            if not outcomes:
                devices.release()
                continue
            most = max(most, len(group))
            for number, outcome in zip(numbers, outcomes, strict=True):
                finished(number, outcome)
                bar.advance()
            for slot in slots(checkpoint(numbers)):
                store.discard(slot)
    return most
