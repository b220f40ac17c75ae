"""What a chapter is going to measure at some parameters: refused before anything runs where it takes too long.

A chapter says it in `plan.py`, by a function `planned(p)` of its parameters, which yields measurements, each with how many
models and the parameters. It also refuses, with a `MiaError`, values that do not fit one another.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import SimpleNamespace

from mia_book import folders
from mia_book.publishing.measurements import Measurement
from mia_lib import data, environment, progress
from mia_lib.data import sets
from mia_lib.errors import MiaError


@lru_cache  # until `missing_measurements` is done
def records_here(dataset: str):
    """The data set by its name or file, None where it would have to be downloaded."""
    if dataset in sets.names() and not sets.is_here(dataset):
        return None
    return data.load(dataset)


def check_records(argument: str, count: int, dataset: str) -> None:
    """Refuse more records than a data set has for training, where it is here.

    Args:
        argument: name of the chapter's parameter. count: records that it asks for.
    """
    pool = records_here(dataset)
    if pool is not None and count > pool.n_train:
        raise MiaError(
            f"{argument} asks for {count} records, and {dataset} has {pool.n_train} for training: give fewer."
        )


def missing_measurements(name: str, values: Mapping) -> list[tuple[Measurement, int, dict]]:
    """What a run of the chapter `name` would measure: measurement, how many models no piece has, complete parameters."""
    if name not in folders.find("plan.py"):
        return []
    module = importlib.import_module(f"mia_book.chapters.{name}.plan")
    try:
        wanted = [
            (measurement, range(models), measurement.complete(parameters))
            for measurement, models, parameters in module.planned(SimpleNamespace(**values))
        ]
    finally:
        records_here.cache_clear()
    counted = [
        (measurement, measurement.count_missing(index, parameters), parameters)
        for measurement, index, parameters in wanted
    ]
    return [one for one in counted if one[1]]


def prepare(name: str, runs: Sequence[Mapping]) -> None:
    """Refuse runs that measure too long, naming what is not here besides; fetch the data that the others need.

    Args:
        name: of the chapter. runs: the parameters of each.

    Raises:
        MiaError: one measurement takes longer than `$MIA_MOST_SECONDS`, where that is set; data that cannot be had.
    """
    planned = {}
    for measurement, models, parameters in (
        one for values in runs for one in missing_measurements(name, values)
    ):
        key = measurement.name, repr(parameters)
        if key not in planned or planned[key][1] < models:
            planned[key] = measurement, models, parameters
    absent = {
        parameters[role]
        for _, _, parameters in planned.values()
        for role in ("dataset", "source")
        if parameters.get(role) in sets.names() and not sets.is_here(parameters[role])
    }
    most = environment.most_seconds()
    costs = [(one[0].estimate(*one[1:])[0] or 0.0, one) for one in planned.values()]
    longest = max(costs, key=lambda cost: cost[0], default=(0.0, None))
    if longest[0] > most:
        measurement, models, parameters = longest[1]
        cost = measurement.cost_in_words(models, parameters)
        if len(costs) > 1:
            cost += f", and with what else is to be measured {progress.duration(sum(seconds for seconds, _ in costs))}"
        fetch = "".join(
            f", and {data_set} has to be here (`mia data get {data_set}`)"
            for data_set in sorted(absent)
        )
        raise MiaError(
            f"{name} is not run: {cost}{fetch}. A run measures at most {progress.duration(most)} unasked: `--preset quick` "
            "begins from models that a laptop trains in a minute, fewer epochs or records take less, `--yes` measures this."
        )
    for dataset in sorted(absent):
        sets.get(dataset)
