"""Counts of work against counts by hand."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mia_book.chapters.iha import costs
from mia_lib import models
from mia_lib.errors import MiaError
from mia_lib.signals import hessian
from mia_lib.training.recipe import TrainConfig


def test_training_goes_forwards_and_backwards_through_each_record():
    # 5-3-2: two operations a weight forwards, as many for its gradient, and the second layer's for the first one's.
    assert costs.training(TrainConfig("mlp:3", epochs=7), (5,), 2, 10) == 7 * 10 * (
        4 * (15 + 6) + 2 * 6
    )
    one = costs.training(TrainConfig("strided_cnn:2,4,8", epochs=1), (28, 28, 1), 10, 100)
    assert one > 0
    assert (
        costs.training(TrainConfig("strided_cnn:2,4,8", epochs=3), (28, 28, 1), 10, 200) == 6 * one
    )
    with pytest.raises(MiaError, match="records"):
        costs.training(TrainConfig("mlp:3"), (5,), 2, 0)


@pytest.mark.parametrize("architecture", ["logistic_regression", "mlp:3"])
def test_the_closed_form_never_does_more_than_is_counted(architecture):
    # beyond the features up to which all pairs are formed at once
    network = models.build(architecture, (300,), 3, seed=0)
    x, y = np.random.default_rng(0).normal(size=(50, 300)).astype(np.float32), np.arange(50) % 3
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, torch.nn.Linear):
                layer.bias.fill_(100.0)  # every hidden unit is on
    with FlopCounterMode(display=False) as counter:
        hessian.exact(network, x, y)
    bound = costs.hessian_itself(network, (300,), 50, "cross_entropy")
    # one half: columns that a symmetric product leaves out
    assert 0.5 * bound < counter.get_total_flops() <= 1.3 * bound


def test_other_networks_are_multiplied_with_each_unit_vector_and_a_decomposition_grows_with_the_cube():
    network = models.build("mlp:3,2", (5,), 3, seed=0)
    size = models.parameter_count(network)
    product = costs.hessian_product(network, (5,), 10, "cross_entropy")
    assert costs.hessian_itself(network, (5,), 10, "cross_entropy") == size * product
    gradient = costs.training(TrainConfig("mlp:3,2", epochs=1), (5,), 3, 10)
    # a gradient and its derivative, which is two to three times one
    assert 1.5 * gradient < product < 4 * gradient
    assert costs.hessian_product(network, (5,), 20, "cross_entropy") == 2 * product
    assert (
        costs.decomposition(20)
        == pytest.approx(8 * costs.decomposition(10))
        == pytest.approx(14 / 3 * 8000)
    )
