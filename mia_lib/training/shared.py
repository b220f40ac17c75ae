"""Ensembles that more than one chapter, or a reader, may want: described here once, so that they are trained once.

A model's place in the store follows from its records, training set, recipe and index. Chapters that take the same ensemble
from here, or name the same design, seed and recipe themselves, share its models. Designs grow from the front: the first 16
models of a bank of 32 are the bank of 16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mia_lib import data, membership
from mia_lib.errors import choose
from mia_lib.training.ensemble import Ensemble, train
from mia_lib.training.recipe import TrainConfig

MNIST_ODD = TrainConfig("sigmoid_regression", epochs=80, batch_size=128, optimizer="sgd", learning_rate=0.01, momentum=0.9,
                        weight_decay=5e-4, schedule="cosine", loss="brier")
FASHION_MLP6 = TrainConfig("mlp:6", epochs=120, batch_size=256, optimizer="sgd", learning_rate=0.01, momentum=0.9,
                           weight_decay=5e-4, schedule="cosine")


@dataclass(frozen=True)
class Shared:
    """An ensemble with a name.

    Attributes:
        title: what it is, for tables.
        make: loads the data and describes the ensemble; trains nothing.
        chapters: papers whose chapters use it.
        cpu_minutes: expected, on 2 cores.
        gpu_minutes: expected; None where a card gains nothing.
        scale: how its size stands to the paper's.
        config: its recipe.
    """

    title: str
    make: Callable[[], Ensemble]
    chapters: tuple[str, ...]
    cpu_minutes: float
    gpu_minutes: float | None
    scale: str
    config: TrainConfig | None = None


def _training_part(records: data.Dataset) -> data.Dataset:
    return records.take(np.arange(records.n_train))


def mnist_odd() -> data.Dataset:
    """MNIST's 60,000 training digits as pixels in [0, 1], odd against even (Suri et al. 2024)."""
    digits = _training_part(data.load("mnist")).as_table()
    return replace(digits, name="mnist_odd", y=digits.y % 2, classes=("even", "odd"))


def _mnist_odd_logistic() -> Ensemble:
    records = mnist_odd()
    return train(records, membership.balanced_halves(len(records), 128), MNIST_ODD, label="MNIST-Odd logistic regressions")


def _fashion_mlp6() -> Ensemble:
    records = _training_part(data.load("fashion_mnist")).as_table()
    return train(records, membership.balanced_halves(len(records), 128), FASHION_MLP6, label="FashionMNIST MLPs 784-6-10")


SHARED = {
    "mnist_odd_logistic": Shared("MNIST-Odd: 128 logistic regressions, squared error", _mnist_odd_logistic, ("iha",), 5, 1,
                                 "the paper's size", MNIST_ODD),
    "fashion_mlp6": Shared("FashionMNIST: 128 MLPs 784-6-10", _fashion_mlp6, ("iha",), 12, 1, "the paper's size",
                           FASHION_MLP6),
}


def names() -> list[str]:
    """The ensembles that `get` knows."""
    return list(SHARED)


def get(name: str) -> Ensemble:
    """An ensemble by name; its data are loaded, its models trained when first needed.

    Raises:
        MiaError: unknown name, data that cannot be had.
    """
    choose("ensemble", name, names())
    return SHARED[name].make()
