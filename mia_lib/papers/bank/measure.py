"""Banks: many models on balanced halves of one data set, and what they say about each record. Other chapters attack them.

Models come in pairs: the second is trained on what the first is not. Records are the training records of a set, then its test
records, which no model was trained on. PyTorch is imported within, so that names and editions can be read without it.
"""

from __future__ import annotations

import inspect

import numpy as np

from mia_lib.errors import check_whole
from mia_lib.published import measurement

# Few steps at a low rate: more let the rounding of another processor grow until it looks like another recipe.
PROBE = {"index": range(1, 3), "dataset": "fashion_mnist_20k", "architecture": "batchnorm_cnn:6,12,24", "records": 200,
         "epochs": 2, "batch_size": 64, "learning_rate": 0.05}


def models_of(index: range, dataset: str, architecture: str = "batchnorm_cnn:24,48,96", epochs: int = 20,
              batch_size: int = 256, learning_rate: float = 0.15, weight_decay: float = 5e-4, augmentation: str = "none",
              precision: str = "float32", records: int | None = None, seed: int = 0):
    """The models with these numbers, trained when first needed, and all N records.

    SGD with Nesterov's momentum .9 and a learning rate of one cycle.

    Args:
        index: of the models.
        dataset: name of a set; its training records are halved.
        records: so many of the training records alone, the first ones; all of them, and the test records, when None.
        others: as in `training.TrainConfig`.
    """
    from mia_lib import data, membership, training

    pool = data.load(dataset)
    if records is not None:
        check_whole("records", records, 2, pool.n_train)
    check_whole("seed", seed, 0)
    pool = pool if records is None else pool.take(np.arange(records))
    members = np.zeros((index.stop + index.stop % 2, len(pool)), bool)
    members[:, :pool.n_train] = membership.balanced_halves(pool.n_train, len(members), seed)
    recipe = training.TrainConfig(architecture, epochs=epochs, batch_size=batch_size, optimizer="sgd", momentum=0.9,
                                  nesterov=True, learning_rate=learning_rate, weight_decay=weight_decay, schedule="one_cycle",
                                  augmentation=augmentation, precision=precision, seed=seed)
    return training.train(pool, members, recipe, label=f"{architecture} on {pool.name}").part(index), pool


def answers(index: range, **bank) -> dict[str, np.ndarray]:
    """What the models say of each record, and who was in which.

    Returns:
        margin: log odds of the true class, float16 [M, N]; correct: whether it is the most likely one, bool [M, N];
        members: bool [M, N], all False of test records.
    """
    from mia_lib import signals

    models, pool = models_of(index, **bank)
    return {"margin": signals.logit_scaled_confidence(models, pool).astype(np.float16),
            "correct": signals.correctness(models, pool), "members": models.members}


def weights(index: range, **bank) -> dict[str, np.ndarray]:
    """The weights of the models by the names of their `state_dict`, float16 [M, ...]; a test bounds what rounding does."""
    models, _ = models_of(index, **bank)
    states = [models.model(row).state_dict() for row in range(len(models))]
    return {name: np.stack([state[name].numpy() for state in states]).astype(np.float16)
            for name, tensor in states[0].items() if tensor.is_floating_point()}


answers.__signature__ = weights.__signature__ = inspect.signature(models_of)  # their parameters are the bank's

FAST = {"architecture": "resnet9:32,64,256,256", "epochs": 20, "batch_size": 512, "learning_rate": 0.4, "weight_decay": 1e-3,
        "augmentation": "flip_crop:4", "precision": "bfloat16"}  # for a graphics card: three seconds a model on an H200
FAST_PROBE = {**PROBE, "architecture": "resnet9:16,16,32,64", "epochs": 1, "batch_size": 50, "learning_rate": 0.4,
              "augmentation": "flip_crop:4", "precision": "float32"}  # two steps, for the same reason

cifar10 = measurement("bank/cifar10", probe=FAST_PROBE, dataset="cifar10", **FAST)(answers)
cifar10_small = measurement("bank/cifar10-small", probe=PROBE, dataset="cifar10")(answers)
cifar100_small = measurement("bank/cifar100-small", probe=PROBE, dataset="cifar100")(answers)
fashion_small = measurement("bank/fashion-small", probe=PROBE, dataset="fashion_mnist")(answers)
TENSORS = {"probe": PROBE, "suffix": ".safetensors"}
cifar10_weights = measurement("bank/cifar10-small-weights", **TENSORS, dataset="cifar10")(weights)
cifar100_weights = measurement("bank/cifar100-small-weights", **TENSORS, dataset="cifar100")(weights)
fashion_weights = measurement("bank/fashion-small-weights", **TENSORS, dataset="fashion_mnist")(weights)


def networks(bank: str, models: int, **parameters) -> list:
    """The networks of a bank from its published weights, in evaluation mode: for whoever measures a further signal of them.

    Args:
        bank: such as "bank/cifar10-small". models: the first so many. parameters: as for `published.load`.
    """
    import torch

    from mia_lib import data
    from mia_lib import models as architectures
    from mia_lib.published import load

    held = load(f"{bank}-weights", models, **parameters)
    pool, found = data.load(held.parameters["dataset"]), []
    for row in range(models):
        network = architectures.build(held.parameters["architecture"], pool.shape, len(pool.classes), seed=0)
        state = {name: torch.from_numpy(array[row].astype(np.float32)) for name, array in held.arrays.items()}
        network.load_state_dict(network.state_dict() | state)
        found.append(architectures.feed(network, "-1 to 1").eval())
    return found
