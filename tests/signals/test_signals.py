"""Signals: the same numbers in whatever batches, groups and places they are computed."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

from mia_lib import data, membership, models, signals, store, training
from mia_lib.models import Network
from mia_lib.signals import mapping
from mia_lib.signals import outputs as model_signals
from mia_lib.training import TrainConfig
from mia_lib.training import ensemble as ensembles
from mia_lib.training.losses import LOSSES, precise_loss, record_loss

RNG = np.random.default_rng(0)
IMAGES = data.Dataset("toy images", RNG.integers(0, 255, (60, 12, 12, 1)).astype(np.uint8), RNG.integers(0, 3, 60), 60,
                      ("a", "b", "c"))
TABLE = data.Dataset("toy table", RNG.normal(size=(80, 5)).astype(np.float32), RNG.integers(0, 2, 80), 80, ("no", "yes"))

pytestmark = pytest.mark.usefixtures("isolated_cache")


def bank(records=TABLE, config=None, count=4, **kwargs):
    config = config or TrainConfig("logistic_regression", epochs=2, learning_rate=0.05)
    return training.train(records, membership.balanced_halves(len(records), count), config, **kwargs)


def normalised():
    """A small network with batch normalisation, whose running statistics are not those of any batch."""
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(2)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    return Network(nn.Sequential(nn.Conv2d(1, 2, 3), norm, nn.ReLU(), nn.MaxPool2d(4), nn.Flatten()), nn.Linear(8, 3))


def test_signals_of_models_are_what_their_logits_say():
    ensemble = bank(IMAGES, TrainConfig("tanh_cnn:2,3,4", epochs=1))
    z = signals.logits(ensemble, IMAGES).astype(float)
    p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
    truth = np.take_along_axis(p, np.broadcast_to(IMAGES.y, (4, 60))[..., None], 2)[..., 0]
    np.testing.assert_allclose(signals.probabilities(ensemble, IMAGES), p, rtol=1e-5)
    np.testing.assert_allclose(signals.loss(ensemble, IMAGES), -np.log(truth), rtol=1e-5)
    np.testing.assert_allclose(signals.logit_scaled_confidence(ensemble, IMAGES), np.log(truth / (1 - truth)), rtol=1e-4,
                               atol=1e-5)
    assert (signals.correctness(ensemble, IMAGES) == (z.argmax(-1) == IMAGES.y)).all()
    others = signals.scalars(z, IMAGES.y)
    np.testing.assert_allclose(others["max_confidence"], p.max(-1), rtol=1e-5)
    np.testing.assert_allclose(others["entropy"], -(p * np.log(p)).sum(-1), rtol=1e-5)
    assert ((others["hinge"] > 0) == (z.argmax(-1) == IMAGES.y)).all()
    one = ensemble.model(1)
    np.testing.assert_allclose(signals.model_outputs(one, IMAGES.x), z[1], rtol=1e-4, atol=1e-5)
    assert signals.features(one, IMAGES.x).shape == (60, 4)


@pytest.mark.parametrize("kind", LOSSES)
def test_the_loss_signal_is_the_loss_of_training_and_the_least_that_of_the_best_label(kind):
    logits, labels = RNG.normal(size=(4, 50, 5)) * 3, RNG.integers(0, 5, 50)
    expected = record_loss(torch.tensor(logits), torch.tensor(labels).expand(4, 50), kind).numpy()
    found = signals.scalars(logits, labels, kind)
    np.testing.assert_allclose(found["loss"], expected, rtol=1e-6)
    each = np.stack([signals.scalars(logits, np.full(50, k), kind)["loss"] for k in range(5)])
    np.testing.assert_allclose(found["least_loss"], each.min(0), rtol=1e-6)
    precise = precise_loss(torch.tensor(logits), torch.tensor(labels).expand(4, 50), kind).numpy()
    np.testing.assert_allclose(precise, expected, rtol=1e-12)


def test_losses_next_to_zero_are_still_told_apart():
    for margin, (kind, power) in product((20.0, 40.0, 60.0), (("cross_entropy", 1), ("brier", 2))):
        logits, labels, expected = np.array([[margin, 0.0]]), np.array([0]), np.exp(-margin) ** power
        np.testing.assert_allclose(signals.scalars(logits, labels, kind)["loss"], expected, rtol=1e-6, atol=0)
        exact = precise_loss(torch.tensor(logits), torch.tensor(labels), kind)
        np.testing.assert_allclose(exact.numpy(), expected, rtol=1e-7, atol=0)
    # the least loss is log(1 + 1/e) under a double softmax, and float32 has only steps of 3e-8 around it
    loss = signals.scalars(np.array([[m, 0.0] for m in range(18, 33)]), np.zeros(15, int), "double_softmax")["loss"]
    assert loss.dtype == np.float64 and (np.diff(loss) < 0).all() and loss[-1] == pytest.approx(math.log(1 + math.exp(-1)))


@pytest.mark.parametrize("kind,slope", [("cross_entropy", 1.0), ("brier", 2e-13), ("double_softmax", 2 / (1 + math.e))])
def test_gradients_of_confident_records_are_exact_in_single_precision(kind, slope):
    """With two classes and q = 1 - p_y: d loss / d z_y is -q, -2 q^2 and -2 q / (1 + e) to first order."""
    z = torch.tensor([[math.log(1e13), 0.0]], requires_grad=True)
    precise_loss(z, torch.tensor([0]), kind).sum().backward()
    np.testing.assert_allclose(z.grad[0].numpy(), np.array([-1, 1]) * slope * 1e-13, rtol=1e-5)


@pytest.mark.parametrize("architecture", ["sigmoid_regression", "mlp:6,5", "tanh_cnn:2,3,4", "leino_cnn:2,3,8", "normalised"])
def test_networks_evaluated_together_answer_as_they_do_alone(architecture):
    classes = 2 if architecture == "sigmoid_regression" else 3
    several = [normalised() if architecture == "normalised" else models.build(architecture, (12, 12, 1), classes, seed=seed)
               for seed in range(3)]
    together = model_signals._outputs_stacked(several, IMAGES.x)  # built in training mode, evaluated without dropout
    for network, outputs in zip(several, together, strict=True):
        np.testing.assert_allclose(outputs, signals.model_outputs(network, IMAGES.x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("records,architecture,most", [(TABLE, "mlp:4", 3), (IMAGES, "mlp:220", 1)])
def test_a_card_gives_the_signals_of_the_pool_and_takes_small_networks_together(monkeypatch, records, architecture, most):
    """The code of the card, run on the CPU: records as tensors, groups of at most three."""
    def asked():
        return [ask(ensemble, records) for ask in (signals.logits, signals.loss, signals.gradient_norm)]

    ensemble = bank(records, TrainConfig(architecture, epochs=1))
    expected, groups, stacked = asked(), [], model_signals._outputs_stacked
    for folder in ("logits", "signals", "gradient_norm"):
        (store.cache_dir() / folder).rename(store.cache_dir() / f"old-{folder}")
    monkeypatch.setattr(mapping, "_in_pool", mapping._in_process)
    monkeypatch.setattr(ensembles, "MOST_AT_ONCE", 3)
    monkeypatch.setattr(model_signals, "_outputs_stacked", lambda n, x: groups.append((len(n), type(x))) or stacked(n, x))
    for one, two in zip(asked(), expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)
    assert groups == [(3, torch.Tensor)] * 2 * (most == 3)


def test_batches_halve_when_memory_runs_out_and_nothing_else_changes(monkeypatch):
    model, plain, sizes = bank(IMAGES, TrainConfig("leino_cnn:2,3,8", epochs=1)).model(0), model_signals.inputs, []

    def computed():
        blocks = list(signals.record_gradients(model, IMAGES.x, IMAGES.y))
        return blocks, [signals.model_outputs(model, IMAGES.x), signals.features(model, IMAGES.x), np.concatenate(blocks),
                        *model_signals._outputs_stacked([model, model], IMAGES.x)]

    def small(x, start, stop, *how):
        sizes.append(stop - start)
        if stop - start > 9:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return plain(x, start, stop, *how)

    _, expected = computed()
    monkeypatch.setattr(model_signals, "inputs", small)
    blocks, found = computed()
    assert max(map(len, blocks)) <= 9 and max(sizes) == 60
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


def looped(model, records, kind):
    """Gradients [N, P] one record at a time, in double precision."""
    model = model_signals.in_precision(model, "float64").requires_grad_()
    rows = []
    for x, y in zip(models.to_input(records.x).double(), torch.from_numpy(records.y), strict=True):
        loss = record_loss(model(x[None]), y[None], kind)[0]
        rows.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))]).numpy())
    return np.stack(rows)


@pytest.mark.parametrize("architecture,kind", [
    ("sigmoid_regression", "brier"), ("mlp:6", "cross_entropy"), ("mlp:6", "double_softmax"),
    ("tanh_cnn:2,3,4", "squared_error"), ("leino_cnn:2,3,8", "cross_entropy"), ("normalised", "cross_entropy")])
def test_gradients_of_records_are_those_of_a_plain_loop(architecture, kind):
    classes = 2 if architecture == "sigmoid_regression" else 3
    records = IMAGES.take(np.flatnonzero(IMAGES.y < classes))
    model = normalised() if architecture == "normalised" else models.build(architecture, (12, 12, 1), classes, seed=0)
    expected = looped(model, records, kind)
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        blocks = list(signals.record_gradients(model, records.x, records.y, kind, dtype, batch=7))
        assert {len(b) for b in blocks[:-1]} == {7} and blocks[0].dtype == dtype
        np.testing.assert_allclose(np.concatenate(blocks), expected, rtol=tolerance, atol=tolerance)
    assert all(p.requires_grad and p.dtype == torch.float32 for p in model.parameters())  # the model is left as it was


@pytest.mark.parametrize("known", [True, False])
def test_gradient_norms_are_norms_of_the_gradients(known, monkeypatch):
    monkeypatch.setattr(model_signals, "has_norms", lambda network: known)
    monkeypatch.setattr(mapping, "_in_pool", mapping._in_process)
    ensemble = bank(IMAGES, TrainConfig("tanh_cnn:2,3,4", epochs=1), count=2)
    found = signals.gradient_norm(ensemble, IMAGES)
    assert found.dtype == np.float32 and found.shape == (2, 60)
    for m in range(2):
        gradients = looped(ensemble.model(m), IMAGES, "cross_entropy")
        np.testing.assert_allclose(found[m], np.linalg.norm(gradients, axis=1), rtol=1e-4)


def test_gradient_norms_of_confident_records_do_not_vanish_in_single_precision():
    """||gradient|| = q sqrt(2 (|x|^2 + 1)) for logistic regression with two outputs; here q = 1 - p_y is about 1e-26."""
    model = models.build("logistic_regression", (2,), 2, seed=0)
    with torch.no_grad():
        model.head.weight.copy_(torch.tensor([[30.0, 0.0], [-30.0, 0.0]]))
        model.head.bias.zero_()
    x, y = np.array([[1.0, 2.0]], np.float32), np.array([0])
    [found] = model_signals._gradient_norm_task([model], x, y, "cross_entropy")
    np.testing.assert_allclose(found["norm"], np.exp(-60) * np.sqrt(12), rtol=1e-5)
