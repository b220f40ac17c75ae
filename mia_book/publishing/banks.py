"""Banks: many models on balanced halves of one data set, and what they say about each record.

Models come in pairs: the second is trained on what the first is not. Records are the training records of a set, then its test
records, which no model was trained on. PyTorch is imported within, so that the modules `measure` of the chapters, which make
measurements of these functions, can be read without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np

from mia_book.publishing import catalogue
from mia_lib.errors import check_choice, check_whole
from mia_lib.published import Bank, load

# of the small banks; see `models_of`
RECIPE = {
    "dataset": "cifar10",
    "architecture": "batchnorm_cnn:24,48,96",
    "epochs": 20,
    "batch_size": 256,
    "learning_rate": 0.15,
    "weight_decay": 5e-4,
    "augmentation": "none",
    "precision": "float32",
    "optimizer": "sgd",
    "schedule": "one_cycle",
    "records": None,
    "seed": 0,
    "weights": None,
    "unused": 0,
}
SGD = {"optimizer": "sgd", "momentum": 0.9, "nesterov": True}

# Few steps at a low rate: more let the rounding of another processor grow until it looks like another recipe.
TINY = {
    "dataset": "fashion_mnist_20k",
    "architecture": "batchnorm_cnn:6,12,24",
    "records": 200,
    "epochs": 2,
    "batch_size": 64,
    "learning_rate": 0.05,
}
PROBE = {"index": range(1, 3), **TINY}

# for a graphics card: three seconds a model on an H200
FAST = {
    "architecture": "resnet9:32,64,256,256",
    "epochs": 20,
    "batch_size": 512,
    "learning_rate": 0.4,
    "weight_decay": 1e-3,
    "augmentation": "flip_crop:4",
    "precision": "bfloat16",
}
# two steps, for the same reason
FAST_PROBE = {
    **PROBE,
    "architecture": "resnet9:16,16,32,64",
    "epochs": 1,
    "batch_size": 50,
    "learning_rate": 0.4,
    "augmentation": "flip_crop:4",
    "precision": "float32",
}
# as in the curvature paper, but for epochs
RESNET = {**FAST, "architecture": "resnet18", "epochs": 30, "weight_decay": 1e-4}
# published: chapters' name -> piece, data set, large network
BANKS = {
    "cifar10": ("cifar10-small", "cifar10", ""),
    "cifar100": ("cifar100-small", "cifar100", ""),
    "resnet9": ("cifar10", "cifar10", "ResNet-9"),
}


def config_of(recipe: dict, **others):
    """The `TrainConfig` with the fields of training that a recipe has, and with `others`."""
    from mia_lib.training import TrainConfig

    names = recipe.keys() & {field.name for field in fields(TrainConfig)}
    return TrainConfig(**{name: recipe[name] for name in names}, **others)


def models_of(index: range, recipe: dict):
    """The models with the numbers `index`, trained when first needed, and all N records.

    SGD has Nesterov's momentum .9.

    Args:
        index: of the models.
        recipe: a value for each name of `RECIPE`. dataset: name of a set; its training records are halved. records: so many
            of the training records alone, the first ones; all of them, and the test records, when None. unused: so many
            records after those, which no model is trained on. weights: the measurement that has the models' weights, such
            as "bank/cifar10-small-weights"; trained here when None. The others are those of `training.TrainConfig`.
    """
    from mia_lib import data, membership, training
    from mia_lib.training.ensemble import with_weights

    pool = data.load(recipe["dataset"])
    records = recipe["records"]
    if records is not None:
        check_whole("records", records, 2, pool.n_train)
        unused = check_whole("unused", recipe["unused"], 0, len(pool) - records)
        pool = replace(pool.take(np.arange(records + unused)), n_train=records)
    seed = check_whole("seed", recipe["seed"], 0)
    members = np.zeros((index.stop + index.stop % 2, len(pool)), bool)
    members[:, : pool.n_train] = membership.balanced_halves(pool.n_train, len(members), seed)
    config = config_of(recipe | SGD if recipe["optimizer"] == "sgd" else recipe)
    label = f"{recipe['architecture']} on {pool.name}"
    models = training.train(pool, members, config, label=label).part(index)
    if recipe["weights"] is None:
        return models, pool
    weights = catalogue()[check_choice("weights", recipe["weights"], catalogue())]
    kept = weights(index=index, **recipe | {"weights": None})
    return with_weights(
        models,
        [{name: array[row] for name, array in kept.arrays.items()} for row in range(len(index))],
    ), pool


def _first(pool, name: str, count: int, least: int = 0):
    """The first `count` records of the pool; a number out of range raises `MiaError`."""
    return pool.take(np.arange(check_whole(name, count, least, len(pool))))


def answers(
    index: range, recipe: dict = RECIPE, asked: int | None = None, outputs: int = 0, viewed: int = 0
) -> dict[str, np.ndarray]:
    """Answers of the models for each record, and their members.

    Args:
        recipe: as for `models_of`.
        asked: number of records, the first ones; all when None.
        outputs, viewed: number of records in the arrays `logits` and `queries`; 0 leaves the array
            out.

    Returns:
        margin: log odds of the true class, float16 [M, N]; correct: whether it is the most likely one, bool [M, N];
        members: bool [M, N], all False of test records. logits: all outputs, float16 [M, `outputs`, K], which attacks by
        shadow models learn from. queries: the log odds of 18 views, as they are and mirrored, each shifted by four pixels to
        no or any side, float16 [M, `viewed`, 18], in the order of `signals.views.shifted`.
    """
    from mia_lib import signals
    from mia_lib.signals.views import shifted

    models, pool = models_of(index, recipe)
    records = _first(pool, "asked", len(pool) if asked is None else asked, 1)
    arrays = {
        "margin": signals.logit_scaled_confidence(models, records).astype(np.float16),
        "correct": signals.correctness(models, records),
        "members": models.members[:, : len(records)],
    }
    if outputs:
        arrays["logits"] = signals.logits(models, _first(pool, "outputs", outputs)).astype(
            np.float16
        )
    if viewed:
        seen = [
            signals.logit_scaled_confidence(models, view)
            for view in shifted(_first(pool, "viewed", viewed))
        ]
        arrays["queries"] = np.stack(seen, -1).astype(np.float16)
    return arrays


def queries(index: range, recipe: dict = RECIPE, viewed: int = 2000) -> dict[str, np.ndarray]:
    """The array `queries` of `answers`, and `members` of the same records: for a bank that was
    measured without them."""
    arrays = answers(index, recipe, asked=viewed, viewed=viewed)
    return {name: arrays[name] for name in ("queries", "members")}


def weights(index: range, recipe: dict = RECIPE) -> dict[str, np.ndarray]:
    """The weights of the models by the names of their `state_dict`, float16 [M, ...]; a test bounds what rounding does."""
    models, _ = models_of(index, recipe)
    states = [models.model(row).state_dict() for row in range(len(models))]
    return {
        name: np.stack([state[name].numpy() for state in states]).astype(np.float16)
        for name, tensor in states[0].items()
        if tensor.is_floating_point()
    }


def where_measured(name: str, models: int, make: bool = False, /, **parameters) -> Bank | None:
    """A measurement of so many models. None is returned for an unknown name, and for what is not
    measured yet if `make` is False."""
    measurement = catalogue().get(name)
    if (
        measurement is None
        or not make
        and measurement.missing_models(range(models), measurement.complete(parameters))
    ):
        return None
    return measurement(models, **parameters)


def load_bank(name: str) -> Bank:
    """A published bank with its log odds of one query as `margin`, where others have those of several views as `true`."""
    bank = load(name)
    if "margin" in bank.arrays:
        return bank
    arrays = {"margin": bank.true[..., 0], "members": bank.members}
    return Bank(name, bank.parameters, arrays, bank.manifests)


def in_processes(function: Callable, tasks: list[tuple], label: str) -> list:
    """Results of a function, importable by name, for each task in the order of the tasks, from the
    pool of processes."""
    from mia_lib.training import pool

    results: dict[int, object] = {}
    pool.run_tasks(function, tasks, results.__setitem__, label)
    return [results[position] for position in range(len(tasks))]


def evaluations(parameters, asked: float) -> float:
    """Number of evaluations of a model at a record, as a cost: three for each record in a step of
    training, unless the weights are given, and `asked` after training."""
    trained = (
        0
        if parameters["weights"]
        else 1.5 * parameters["epochs"] * (parameters["records"] or 50_000)
    )
    return trained + asked
