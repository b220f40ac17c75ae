"""Signals: the same numbers in whatever batches, groups and places they are computed, and functions mapped over models."""

import importlib
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from mia_lib import data, membership, models, signals, store, training
from mia_lib.errors import MiaError
from mia_lib.models import Network
from mia_lib.signals import mapping
from mia_lib.signals import outputs as model_signals
from mia_lib.training import TrainConfig
from mia_lib.training.losses import LOSSES, precise_loss, record_loss

RNG = np.random.default_rng(0)
IMAGES = data.from_arrays(
    RNG.integers(0, 255, (60, 12, 12, 1)).astype(np.uint8), RNG.integers(0, 3, 60), "toy images"
)
TABLE = data.Dataset(
    "toy table",
    RNG.normal(size=(80, 5)).astype(np.float32),
    RNG.integers(0, 2, 80),
    80,
    ("no", "yes"),
)

pytestmark = pytest.mark.usefixtures("isolated_cache")


def bank(records=TABLE, config=None, count=4, **kwargs):
    config = config or TrainConfig("logistic_regression", epochs=2, learning_rate=0.05)
    return training.train(
        records, membership.balanced_halves(len(records), count), config, **kwargs
    )


def norm_layer(size: int, **how) -> nn.BatchNorm2d:
    """With running statistics that are not those of any batch."""
    norm = nn.BatchNorm2d(size, **how)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    return norm


def normalised():
    torch.manual_seed(0)
    return Network(
        nn.Sequential(nn.Conv2d(1, 2, 3), norm_layer(2), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten()),
        nn.Linear(8, 3),
    )


def test_signals_of_models_are_what_their_logits_say():
    ensemble = bank(IMAGES, TrainConfig("tanh_cnn:2,3,4", epochs=1))
    z = signals.logits(ensemble, IMAGES).astype(float)
    p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
    truth = np.take_along_axis(p, np.broadcast_to(IMAGES.y, (4, 60))[..., None], 2)[..., 0]
    assert_allclose(signals.probabilities(ensemble, IMAGES), p, rtol=1e-5)
    assert_allclose(signals.loss(ensemble, IMAGES), -np.log(truth), rtol=1e-5)
    assert_allclose(
        signals.logit_scaled_confidence(ensemble, IMAGES),
        np.log(truth / (1 - truth)),
        rtol=1e-4,
        atol=1e-5,
    )
    assert (signals.correctness(ensemble, IMAGES) == (z.argmax(-1) == IMAGES.y)).all()
    others = signals.scalars(z, IMAGES.y)
    assert_allclose(others["max_confidence"], p.max(-1), rtol=1e-5)
    assert_allclose(others["entropy"], -(p * np.log(p)).sum(-1), rtol=1e-5)
    assert ((others["hinge"] > 0) == (z.argmax(-1) == IMAGES.y)).all()
    one = ensemble.model(1)
    assert_allclose(signals.model_outputs(one, IMAGES.x), z[1], rtol=1e-4, atol=1e-5)
    assert signals.features(one, IMAGES.x).shape == (60, 4)


@pytest.mark.parametrize("kind", LOSSES)
def test_the_loss_signal_is_the_loss_of_training_and_the_least_that_of_the_best_label(kind):
    logits, labels = RNG.normal(size=(4, 50, 5)) * 3, RNG.integers(0, 5, 50)
    expected = record_loss(torch.tensor(logits), torch.tensor(labels).expand(4, 50), kind).numpy()
    found = signals.scalars(logits, labels, kind)
    assert_allclose(found["loss"], expected, rtol=1e-6)
    each = np.stack([signals.scalars(logits, np.full(50, k), kind)["loss"] for k in range(5)])
    assert_allclose(found["least_loss"], each.min(0), rtol=1e-6)
    precise = precise_loss(torch.tensor(logits), torch.tensor(labels).expand(4, 50), kind).numpy()
    assert_allclose(precise, expected, rtol=1e-12)


def test_losses_next_to_zero_are_still_told_apart():
    for margin, (kind, power) in product((20.0, 40.0, 60.0), (("cross_entropy", 1), ("brier", 2))):
        logits = np.array([[margin, 0.0]])
        labels = np.array([0])
        expected = np.exp(-margin) ** power
        assert_allclose(signals.scalars(logits, labels, kind)["loss"], expected, rtol=1e-6, atol=0)
        exact = precise_loss(torch.tensor(logits), torch.tensor(labels), kind)
        assert_allclose(exact.numpy(), expected, rtol=1e-7, atol=0)
    # the least loss is log(1 + 1/e) under a double softmax, and float32 has only steps of 3e-8 around it
    loss = signals.scalars(
        np.array([[m, 0.0] for m in range(18, 33)]), np.zeros(15, int), "double_softmax"
    )["loss"]
    assert loss.dtype == np.float64
    assert (np.diff(loss) < 0).all()
    assert loss[-1] == pytest.approx(math.log(1 + math.exp(-1)))


@pytest.mark.parametrize(
    "kind,slope", [("cross_entropy", 1.0), ("brier", 2e-13), ("double_softmax", 2 / (1 + math.e))]
)
def test_gradients_of_confident_records_are_exact_in_single_precision(kind, slope):
    """With two classes and q = 1 - p_y: d loss / d z_y is -q, -2 q^2 and -2 q / (1 + e) to first order."""
    z = torch.tensor([[math.log(1e13), 0.0]], requires_grad=True)
    precise_loss(z, torch.tensor([0]), kind).sum().backward()
    assert_allclose(z.grad[0].numpy(), np.array([-1, 1]) * slope * 1e-13, rtol=1e-5)


@pytest.mark.parametrize(
    "architecture",
    ["sigmoid_regression", "mlp:6,5", "tanh_cnn:2,3,4", "leino_cnn:2,3,8", "normalised"],
)
def test_networks_evaluated_together_answer_as_they_do_alone(architecture):
    classes = 2 if architecture == "sigmoid_regression" else 3
    several = [
        normalised()
        if architecture == "normalised"
        else models.build(architecture, (12, 12, 1), classes, seed=seed)
        for seed in range(3)
    ]
    # built in training mode, evaluated without dropout
    together = model_signals._outputs_stacked(several, IMAGES.x)
    for network, outputs in zip(several, together, strict=True):
        assert_allclose(outputs, signals.model_outputs(network, IMAGES.x), rtol=1e-5, atol=1e-6)


def test_blocks_of_gradients_halve_when_memory_runs_out_and_nothing_else_changes(monkeypatch):
    model = models.build("leino_cnn:2,3,8", (12, 12, 1), 3, seed=0)
    plain = model_signals.inputs
    sizes = []
    expected = np.concatenate(list(signals.record_gradients(model, IMAGES.x, IMAGES.y)))

    def small(x, start, stop, *how):
        sizes.append(stop - start)
        if stop - start > 9:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return plain(x, start, stop, *how)

    monkeypatch.setattr(model_signals, "inputs", small)
    blocks = list(signals.record_gradients(model, IMAGES.x, IMAGES.y))
    assert max(map(len, blocks)) <= 9 and max(sizes) == 60
    assert_allclose(np.concatenate(blocks), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "architecture,kind",
    [
        ("sigmoid_regression", "brier"),
        ("mlp:6", "cross_entropy"),
        ("mlp:6", "double_softmax"),
        ("tanh_cnn:2,3,4", "squared_error"),
        ("leino_cnn:2,3,8", "cross_entropy"),
        ("normalised", "cross_entropy"),
    ],
)
def test_gradients_of_records_are_those_of_a_plain_loop(architecture, kind):
    classes = 2 if architecture == "sigmoid_regression" else 3
    records = IMAGES.take(np.flatnonzero(IMAGES.y < classes))
    model = (
        normalised()
        if architecture == "normalised"
        else models.build(architecture, (12, 12, 1), classes, seed=0)
    )
    double, expected = model_signals.in_precision(model, "float64").requires_grad_(), []
    for x, y in zip(models.to_input(records.x).double(), torch.from_numpy(records.y), strict=True):
        loss = record_loss(double(x[None]), y[None], kind)[0]
        expected.append(
            torch.cat(
                [g.flatten() for g in torch.autograd.grad(loss, list(double.parameters()))]
            ).numpy()
        )
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        blocks = list(signals.record_gradients(model, records.x, records.y, kind, dtype, batch=7))
        assert {len(b) for b in blocks[:-1]} == {7} and blocks[0].dtype == dtype
        assert_allclose(np.concatenate(blocks), expected, rtol=tolerance, atol=tolerance)
    # the model is left as it was
    assert all(p.requires_grad and p.dtype == torch.float32 for p in model.parameters())


def test_gradient_norms_of_confident_records_do_not_vanish_in_single_precision():
    """||gradient|| = q sqrt(2 (|x|^2 + 1)) for logistic regression with two outputs; here q = 1 - p_y is about 1e-26."""
    model = models.build("logistic_regression", (2,), 2, seed=0)
    with torch.no_grad():
        model.head.weight.copy_(torch.tensor([[30.0, 0.0], [-30.0, 0.0]]))
        model.head.bias.zero_()
    x, y = np.array([[1.0, 2.0]], np.float32), np.array([0])
    [found] = model_signals._gradient_norm_task([model], x, y, "cross_entropy")
    assert_allclose(found["norm"], np.exp(-60) * np.sqrt(12), rtol=1e-5)


PIXELS = torch.from_numpy(RNG.normal(size=(9, 2, 12, 12)))
KINDS = torch.from_numpy(RNG.integers(0, 3, 9))
NETWORKS = {
    "linear layers": lambda: Network(
        nn.Sequential(nn.Flatten(), nn.Linear(288, 4), nn.Tanh()), nn.Linear(4, 3)
    ),
    "without biases": lambda: Network(
        nn.Sequential(
            nn.Conv2d(2, 3, 3, bias=False),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(300, 4, bias=False),
            nn.Tanh(),
        ),
        nn.Linear(4, 3),
    ),
    "several places of a record": lambda: Network(
        nn.Sequential(
            nn.Linear(12, 4), nn.Tanh(), nn.Flatten(2), nn.Linear(48, 3, bias=False), nn.Flatten()
        ),
        nn.Linear(6, 3),
    ),
    "strides, dilation and padding": lambda: Network(
        nn.Sequential(
            nn.Conv2d(2, 4, (5, 3), stride=2, padding=(2, 1)),
            nn.ReLU(),
            nn.Conv2d(4, 3, 3, dilation=2, padding=1),
            nn.AvgPool2d(2),
            nn.Flatten(),
        ),
        nn.Linear(12, 3),
    ),
    "batch normalisation": lambda: Network(
        nn.Sequential(nn.Conv2d(2, 3, 3), norm_layer(3), nn.ReLU(), nn.MaxPool2d(5), nn.Flatten()),
        nn.Linear(12, 3),
    ),
    "normalisation without weights": lambda: Network(
        nn.Sequential(
            nn.Conv2d(2, 3, 3), norm_layer(3, affine=False), nn.MaxPool2d(5), nn.Flatten()
        ),
        nn.Linear(12, 3),
    ),
    "written over": lambda: Network(
        nn.Sequential(
            nn.Conv2d(2, 3, 3),
            nn.ReLU(inplace=True),
            nn.Conv2d(3, 3, 3),
            nn.ReLU(inplace=True),
            nn.Flatten(),
        ),
        nn.Linear(192, 3),
    ),
}


@pytest.mark.parametrize("loss", ["cross_entropy", "brier"])
@pytest.mark.parametrize("network", NETWORKS)
def test_norms_are_those_of_the_gradients_in_any_company_and_leave_the_model_as_it_was(
    network, loss
):
    torch.manual_seed(0)
    model = NETWORKS[network]().double().eval()
    gradients = np.concatenate(
        list(signals.record_gradients(model, PIXELS.numpy(), KINDS.numpy(), loss, "float64"))
    )
    assert model_signals.has_norms(model)
    found = model_signals.norms_of_batch(model.requires_grad_(False), PIXELS, KINDS, loss)
    assert found.dtype == torch.float64
    assert_allclose(found, np.linalg.norm(gradients, axis=1), rtol=1e-12)
    assert_allclose(
        model_signals.norms_of_batch(model, PIXELS[3:4], KINDS[3:4], loss), found[3:4], rtol=1e-12
    )
    assert not any(layer._forward_hooks for layer in model.modules()) and not PIXELS.requires_grad
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


@pytest.mark.parametrize(
    "body",
    [
        Tied,
        lambda: shared(True),
        lambda: shared(False),
        lambda: nn.LayerNorm(3),
        lambda: nn.Conv2d(4, 4, 3, groups=2),
        lambda: nn.Conv2d(4, 4, 3, padding_mode="reflect", padding=1),
        lambda: nn.Conv2d(4, 4, 3, padding="same"),
        lambda: nn.BatchNorm2d(3, track_running_stats=False),
        lambda: nn.utils.spectral_norm(nn.Linear(3, 3)),
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)),
    ],
)
def test_what_it_does_not_cover_is_not_taken(body):
    assert not model_signals.has_norms(Network(body(), nn.Linear(3, 3)))


ASKED = """
from mia_lib import signals
def asked(networks, x, labels, loss, scale, shift=0.0):
    return [{"top": scale * signals.model_outputs(network, x).max(1) + shift, "labels": labels} for network in networks]
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of the user's own."""
    (tmp_path / "own_signal.py").write_text(ASKED)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("own_signal")
    del sys.modules["own_signal"]


@pytest.fixture(params=["_in_pool", "_in_process"])
def mapped(request, monkeypatch):
    monkeypatch.setattr(mapping, "_in_pool", getattr(mapping, request.param))
    with ThreadPoolExecutor(1) as executor:
        yield bank(config=TrainConfig("mlp:3", epochs=1), executor=executor)


def test_a_function_of_the_users_own_is_given_each_model_its_records_and_its_arguments(own, mapped):
    top, shifts = signals.logits(mapped, TABLE).max(-1), (1.0, 2.0, 3.0)
    judged = np.arange(80) % 4 < [[1], [2], [3]]
    specs = [{"kind": "top", "shift": shift} for shift in shifts]
    results = signals.map_models(
        own.asked,
        mapped,
        specs,
        "tops",
        index=[2, 0, 2],
        judged=judged,
        at_once=2,
        scale=2.0,
        each=lambda k: {"shift": shifts[k]},
    )
    for arrays, m, shift, rows in zip(results, (2, 0, 2), shifts, judged, strict=True):
        assert_allclose(arrays["top"], 2 * top[m, rows] + shift, rtol=1e-5)
        assert_array_equal(arrays["labels"], TABLE.y[rows])
    together = mapping.spread(results, "top", judged)
    assert_array_equal(np.isnan(together), ~judged)
    assert_array_equal(together[judged], np.concatenate([arrays["top"] for arrays in results]))
    with pytest.raises(MiaError, match=r"judged has shape \(3, 80\): \(1, 80\) is needed"):
        signals.map_models(
            own.asked, mapped, specs[:1], "tops", index=[0], judged=judged, scale=1.0
        )


def test_results_are_kept_one_by_one_under_the_code_of_the_functions_file(own, mapped, tmp_path):
    asked = []
    for index, edited in (((0, 1), False), ((1, 2), False), ((0,), True)):
        if edited:
            (tmp_path / "own_signal.py").write_text(ASKED + "EDITED = True\n")
            store._taken.clear()  # as in a new process
        signals.map_models(
            own.asked,
            mapped,
            {"kind": "top"},
            "tops",
            index=list(index),
            scale=1.0,
            each=lambda k, index=index: asked.append(index[k]) or {},
        )
    assert asked == [0, 1, 2, 0]


def test_what_a_function_is_given_and_what_its_module_imports_determine_what_is_kept(
    own, mapped, tmp_path
):
    (tmp_path / "own_helper.py").write_text("PLUS = 0\n")
    (tmp_path / "own_signal.py").write_text("import own_helper\n" + ASKED)

    def top(**arguments):
        store._taken.clear()  # as in a new process
        [arrays] = signals.map_models(
            own.asked, mapped, {"kind": "top"}, "tops", index=[0], **arguments
        )
        return arrays["top"]

    once = top(scale=1.0)
    assert_allclose(top(scale=2.0), 2 * once, rtol=1e-6)
    assert_allclose(top(scale=1.0, shift=np.float32([3.0])), once + 3, rtol=1e-5)
    assert_allclose(top(scale=1.0, shift=np.float32([4.0])), once + 4, rtol=1e-5)
    asked = []
    for plus in (0, 0, 1):
        (tmp_path / "own_helper.py").write_text(f"PLUS = {plus}\n")
        top(scale=5.0, each=lambda k, plus=plus: asked.append(plus) or {})
    assert asked == [0, 1]
    with pytest.raises(MiaError, match="function is of type partial: function is needed"):
        signals.map_models(partial(own.asked, scale=3.0), mapped, {"kind": "top"}, "tops")
