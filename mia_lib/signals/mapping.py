"""A function mapped over models, in the pool of processes or on a graphics card; each result is kept as soon as it is there.

On a CPU each model is a task of the pool, one by one: of networks small enough to gain from being stacked, evaluation takes a
fraction of the time that keeping their signals does. A graphics card holds the records and evaluates networks of fewer than
`loop.STACKED_BELOW` parameters up to 32 at once.
"""

from __future__ import annotations

from mia_lib import _torch  # noqa: F401  before PyTorch, to say what to do without it

# isort: split

import inspect
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FunctionType

import numpy as np
import torch

from mia_lib import custom, progress, store, training
from mia_lib import models as architectures
from mia_lib.checks import check_mask
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_type
from mia_lib.training import Ensemble, devices, ensemble, pool
from mia_lib.training.loop import STACKED_BELOW
from mia_lib.training.stacking import stackable

CPU = torch.device("cpu")


def map_models(
    function: Callable,
    models: Ensemble,
    spec: dict | Sequence[dict],
    label: str,
    *,
    records: Dataset | None = None,
    index: Sequence[int] | None = None,
    judged: np.ndarray | None = None,
    each: Callable[[int], dict] | None = None,
    at_once: int = 1,
    **arguments,
) -> list[dict[str, np.ndarray]]:
    """Results of a function for each of T models: looked up in the store, or computed and kept
    there.

    Args:
        function: ``function(networks, x, labels, loss, **arguments)`` -> arrays by name for each network; importable by name.
            It gets a list of networks in evaluation mode on the device that is to compute; records [N, ...] as
            `outputs.inputs` takes them; labels int [N]; and the name of the loss the models were trained with.
        models: M models, all trained if any result is missing.
        spec: `kind`, and whatever besides model, records and code (that of models, signals and the function's own file)
            determines the result, `each` of it; plain data, one for all or T of them.
        label: what the progress bar says.
        records: N, of the shape that the models were trained on; those that they were trained on when None.
        index: numbers of the models, int [T]; all when None.
        judged: bool [T, N], the records that each model is asked about; all when None.
        each: number from 0 to T - 1 -> arguments for this model alone; called for results that are missing.
        at_once: networks in that list, where they are small and on a graphics card; otherwise it has one.
        arguments: for all models, plain data or arrays, which determine the result, too.

    Returns:
        arrays by name, T times.

    Raises:
        MiaError: records of another shape, or `judged` of another than [T, N]; a function without a name of its own.
    """
    check_type("function", function, FunctionType, "Write it in a module, with a name of its own.")
    check_type("models", models, Ensemble, "training.train describes one.")
    if records is not None:
        check_type("records", records, Dataset, "data.from_arrays makes one.")
    index = ensemble.numbers_of(range(len(models)) if index is None else index, len(models))
    specs = [spec] * len(index) if isinstance(spec, dict) else spec
    rows = [slice(None)] * len(index)
    records, label = models.records if records is None else records, f"{label} of {models.label}"
    if records.shape != models.records.shape:
        raise MiaError(
            f"records of {records.name} have shape {records.shape}; the models were trained on "
            f"{models.records.shape}."
        )
    named = custom.sources(f"{function.__module__}:{function.__name__}")
    own = Path(inspect.getfile(function)).resolve()
    code = store.code_of(store.PIECES, *models.modules(), own, *named)
    given = {
        name: store.fingerprint(value) if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }
    specs = [
        {
            **one,
            "arguments": given,
            "code": code,
            "records": records.fingerprint,
            "model": store.address(models.spec(m)),
        }
        for one, m in zip(specs, index, strict=True)
    ]
    where = CPU if models.executor or pool.cluster() else devices.pick(models.device)
    if judged is not None:
        judged = check_mask("judged", judged, "asked about")
        if np.shape(judged) != (len(index), len(records)):
            raise MiaError(
                f"judged has shape {np.shape(judged)}: {(len(index), len(records))} is needed, as [M, N]."
            )
        rows = [np.flatnonzero(row) for row in judged]
        specs = [
            {**one, "judged": store.fingerprint(row)} for one, row in zip(specs, rows, strict=True)
        ]

    def compute(missing: list[int], done: Callable) -> None:
        models.fit()
        tasks = [
            (k, index[k], rows[k], partial(function, **arguments, **(each(k) if each else {})))
            for k in missing
        ]
        how = _in_pool if where.type == "cpu" else _in_process
        how(
            tasks,
            models,
            records,
            where,
            at_once if judged is None and each is None else 1,
            label,
            done,
        )

    return store.cached_many(specs, compute, device=devices.describe(where))


def _in_pool(tasks, models, records, where, at_once, label, keep):
    recipe = (models.config, models.records.shape, len(models.records.classes))
    path = ensemble.records_file(records)
    calls = (
        (call, (*recipe, models.arrays(m)), path, records.y, rows) for _, m, rows, call in tasks
    )
    pool.run_tasks(
        _task,
        calls,
        lambda place, result: keep(tasks[place][0], *result),
        label,
        models.workers,
        models.executor,
        [1] * len(tasks),
        models.config.architecture,
    )


def _task(call, network, path, labels, rows):
    torch.set_num_threads(1)  # an executor's process may not be one of ours
    start = time.perf_counter()
    [arrays] = call(
        [ensemble.rebuilt(*network)],
        training.open_records(path)[rows],
        labels[rows],
        network[0].loss,
    )
    return arrays, time.perf_counter() - start


def _in_process(tasks, models, records, where, at_once, label, keep):
    x = _resident(records.x, where)
    if architectures.parameter_count(models.untrained()) >= STACKED_BELOW or not stackable(
        models.config.architecture, models.records.shape, len(models.records.classes)
    ):
        at_once = 1
    with progress.Bar(label, len(tasks)) as bar:
        for first in range(0, len(tasks), at_once):
            group, start = tasks[first : first + at_once], time.perf_counter()
            (_, _, rows, call), networks = (
                group[0],
                [models.model(m).to(where) for _, m, *_ in group],
            )
            results = call(networks, x[rows], records.y[rows], models.config.loss)
            seconds = (time.perf_counter() - start) / len(group)
            for (k, *_), arrays in zip(group, results, strict=True):
                keep(k, arrays, seconds)
                bar.advance()


def _resident(x: np.ndarray, where: torch.device):
    """The records on the device; where they do not fit, as they are, to be sent batch by batch."""
    try:
        return torch.from_numpy(np.ascontiguousarray(x)).to(where)
    except RuntimeError as error:
        if not devices.out_of_memory(error):
            raise
    return x


def spread(
    results: list[dict[str, np.ndarray]], name: str, judged: np.ndarray | None
) -> np.ndarray:
    """An array of each model's as [M, N]: not a number for records that a model was not asked about."""
    values = [arrays[name] for arrays in results]
    if judged is None:
        return np.stack(values)
    whole = np.full(np.shape(judged), np.nan, np.result_type(*values, np.float32))
    for row, asked, value in zip(whole, judged, values, strict=True):
        row[asked] = value
    return whole
