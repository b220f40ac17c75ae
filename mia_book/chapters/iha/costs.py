"""Costs of computations, counted instead of timed: the same on every machine and under any load.

Floating-point operations of products and convolutions are counted, which is nearly all that networks and matrices do, two for
a multiplication and its addition.

A count does not say how long something takes. Large products run at several times the speed of the small ones that training
consists of, so tables give seconds as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from mia_lib import models
from mia_lib.errors import check_range
from mia_lib.signals import hessian
from mia_lib.training.recipe import TrainConfig

COUNTED = 4  # records in the batch that is counted; batch normalisation needs more than one
# operations over P^3: tridiagonal form 4/3, divide and conquer 4/3 at most, vectors back 2
DECOMPOSITION = 14 / 3


def _counted(function: Callable[[], object]) -> float:
    with FlopCounterMode(display=False) as counter:
        function()
    return float(counter.get_total_flops())


def _images_or_rows(shape: tuple) -> torch.Tensor:
    return torch.zeros(COUNTED, *shape, dtype=torch.uint8 if len(shape) == 3 else torch.float32)


def training(config: TrainConfig, shape: tuple, classes: int, records: int) -> float:
    """Operations of training one network: forwards and backwards through every record in every epoch.

    Args:
        config: of the training. shape: of a record. classes: K. records: size of the training set.
    """
    check_range("records", records, 1)
    return config.epochs * records * _step(config.architecture, shape, classes) / COUNTED


@cache
def _step(architecture: str | Callable, shape: tuple, classes: int) -> float:
    network = models.build(architecture, shape, classes, seed=0)
    x = models.to_input(_images_or_rows(shape))
    return _counted(lambda: network(x).sum().backward())


def hessian_product(network: nn.Module, shape: tuple, records: int, loss: str) -> float:
    """Operations of multiplying a vector with the Hessian of the mean loss over so many records.

    Args:
        network: with any weights. shape: of a record. records: how many. loss: a name of `LOSSES`.
    """
    size = sum(weight.numel() for weight in network.parameters())
    product = hessian.operator(
        network, _images_or_rows(shape).numpy(), np.zeros(COUNTED, int), loss, "float64"
    )
    return records * _counted(lambda: product(np.ones((1, size)))) / COUNTED


def hessian_itself(network: nn.Module, shape: tuple, records: int, loss: str) -> float:
    """Operations of `hessian.exact`, at most: as if every hidden unit were on for every record.
    Arguments as for `hessian_product`."""
    layers, size = hessian.shallow(network), sum(weight.numel() for weight in network.parameters())
    if layers is None:
        return size * hessian_product(network, shape, records, loss)
    outputs, inputs = layers.head.weight.shape
    each = outputs * (outputs + 1) / 2 * (inputs + 1) ** 2
    if layers.hidden is not None:
        units, columns = inputs, layers.hidden.in_features + 1
        each += units * (units + 1) / 2 * columns**2 + units * columns * outputs * (units + 1)
    return 2 * records * each


def decomposition(parameters: int) -> float:
    """Operations of all eigenvalues and eigenvectors of a symmetric matrix [P, P], at most."""
    return DECOMPOSITION * float(parameters) ** 3
