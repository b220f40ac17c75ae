"""Norms of gradients that are never made: the same numbers as those of the gradients."""

import numpy as np
import pytest
import torch
from torch import nn

from mia_lib import models, signals
from mia_lib.models import Network
from mia_lib.signals import outputs

RNG = np.random.default_rng(0)
IMAGES = torch.from_numpy(RNG.normal(size=(9, 2, 12, 12)))
LABELS = torch.from_numpy(RNG.integers(0, 3, 9))


def normalised(**how) -> nn.BatchNorm2d:
    norm = nn.BatchNorm2d(3, **how)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    return norm


NETWORKS = {
    "linear layers": lambda: Network(nn.Sequential(nn.Flatten(), nn.Linear(288, 4), nn.Tanh()), nn.Linear(4, 3)),
    "without biases": lambda: Network(nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.ReLU(), nn.Flatten(),
                                                    nn.Linear(300, 4, bias=False), nn.Tanh()), nn.Linear(4, 3)),
    "several places of a record": lambda: Network(nn.Sequential(
        nn.Linear(12, 4), nn.Tanh(), nn.Flatten(2), nn.Linear(48, 3, bias=False), nn.Flatten()), nn.Linear(6, 3)),
    "strides, dilation and padding": lambda: Network(nn.Sequential(
        nn.Conv2d(2, 4, (5, 3), stride=2, padding=(2, 1)), nn.ReLU(), nn.Conv2d(4, 3, 3, dilation=2, padding=1),
        nn.AvgPool2d(2), nn.Flatten()), nn.Linear(12, 3)),
    "batch normalisation": lambda: Network(nn.Sequential(nn.Conv2d(2, 3, 3), normalised(), nn.ReLU(), nn.MaxPool2d(5),
                                                         nn.Flatten()), nn.Linear(12, 3)),
    "normalisation without weights": lambda: Network(nn.Sequential(
        nn.Conv2d(2, 3, 3), normalised(affine=False), nn.MaxPool2d(5), nn.Flatten()), nn.Linear(12, 3)),
    "written over": lambda: Network(nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(inplace=True), nn.Conv2d(3, 3, 3),
                                                  nn.ReLU(inplace=True), nn.Flatten()), nn.Linear(192, 3)),
}


@pytest.mark.parametrize("loss", ["cross_entropy", "brier"])
@pytest.mark.parametrize("network", NETWORKS)
def test_norms_are_those_of_the_gradients_in_any_company_and_leave_the_model_as_it_was(network, loss):
    torch.manual_seed(0)
    model = NETWORKS[network]().double().eval()
    gradients = np.concatenate(list(signals.record_gradients(model, IMAGES.numpy(), LABELS.numpy(), loss, "float64")))
    assert outputs.has_norms(model)
    found = outputs.norms_of_batch(model.requires_grad_(False), IMAGES, LABELS, loss)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found, np.linalg.norm(gradients, axis=1), rtol=1e-12)
    np.testing.assert_allclose(outputs.norms_of_batch(model, IMAGES[3:4], LABELS[3:4], loss), found[3:4], rtol=1e-12)
    assert not any(layer._forward_hooks for layer in model.modules()) and not IMAGES.requires_grad
    assert all(weight.grad is None for weight in model.parameters())


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x) @ self.layer.weight  # outside the layer


def shared(weight_alone: bool):
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    return nn.Sequential(first, nn.Tanh(), second if weight_alone else first)


@pytest.mark.parametrize("body", [
    Tied, lambda: shared(True), lambda: shared(False), lambda: nn.LayerNorm(3),
    lambda: nn.Conv2d(4, 4, 3, groups=2), lambda: nn.Conv2d(4, 4, 3, padding_mode="reflect", padding=1),
    lambda: nn.Conv2d(4, 4, 3, padding="same"), lambda: nn.BatchNorm2d(3, track_running_stats=False),
    lambda: nn.utils.spectral_norm(nn.Linear(3, 3)), lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))])
def test_what_it_does_not_cover_is_not_taken(body):
    assert not outputs.has_norms(Network(body(), nn.Linear(3, 3)))


@pytest.mark.parametrize("name", ["mlp:8", "tanh_cnn:2,3,4", "watson_cnn:2,3,4,5", "leino_cnn:2,3,4", "strided_cnn:2,3,4"])
def test_the_architectures_of_the_chapters_are_covered(name):
    assert outputs.has_norms(models.build(name, (16, 16, 3), 3, seed=0))
