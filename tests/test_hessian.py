"""Products of the training loss's Hessian with vectors, against the Hessian itself."""

import numpy as np
import pytest
import torch
from torch.func import functional_call

from mia_lib import hessian, models, recipe, signals
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(23, 4)).astype(np.float32), RNG.integers(0, 2, 23)
IMAGES, LABELS = RNG.integers(0, 255, (9, 8, 8, 1)).astype(np.uint8), RNG.integers(0, 3, 9)


def brute_force(model, x, y, loss):
    """[P, P], from the loss that training uses and PyTorch's Hessian of a vector."""
    model = signals.in_precision(model, "float64")
    weights = dict(model.named_parameters())
    sizes = [w.numel() for w in weights.values()]

    def mean(vector):
        parts = {name: p.view_as(w) for (name, w), p in zip(weights.items(), vector.split(sizes), strict=True)}
        return recipe.record_loss(functional_call(model, parts, (models.to_input(x).double(),)), torch.tensor(y), loss).mean()

    start = torch.cat([w.flatten() for w in weights.values()])
    assert (start == torch.nn.utils.parameters_to_vector(model.parameters())).all()
    return torch.func.hessian(mean)(start).numpy()


@pytest.mark.parametrize("loss", recipe.LOSSES)
@pytest.mark.parametrize("architecture", ["logistic_regression", "sigmoid_regression", "mlp:5,3"])
def test_products_are_those_of_the_hessian(architecture, loss):
    model = models.build(architecture, (4,), 2, seed=1)
    expected = brute_force(model, X, Y, loss)
    found = hessian.products(model, X, Y, np.eye(len(expected)), loss)
    np.testing.assert_allclose(found, expected, atol=1e-12 * abs(expected).max() + 1e-14)


@pytest.mark.parametrize("architecture", ["tanh_cnn:1,2,3", "leino_cnn:1,2,3", "watson_cnn:1,1,2,2"])
def test_products_of_convolutional_networks_are_those_of_the_hessian(architecture):
    """In training mode the model would drop activations; products are of the network as it is evaluated."""
    model = models.build(architecture, (8, 8, 1), 3, seed=1)
    expected = brute_force(model, IMAGES, LABELS, "cross_entropy")
    vectors = RNG.normal(size=(5, len(expected)))
    np.testing.assert_allclose(hessian.products(model, IMAGES, LABELS, vectors), vectors @ expected, rtol=1e-9, atol=1e-12)


def test_logistic_regression_has_the_textbook_hessian():
    """H = 1/n sum (diag p - p p^T) kron (x, 1)(x, 1)^T, here with the weights before the biases."""
    model = models.build("logistic_regression", (4,), 3, seed=0)
    p = np.exp(signals.model_outputs(model, X).astype(float))
    p /= p.sum(1, keepdims=True)
    inner = np.eye(3) * p[:, None] - p[:, :, None] * p[:, None]
    full = np.einsum("nij,na,nb->iajb", inner, *[np.c_[X, np.ones(23)].astype(float)] * 2) / 23
    order = [(k, a) for k in range(3) for a in range(4)] + [(k, 4) for k in range(3)]
    expected = np.array([[full[k, a, j, b] for j, b in order] for k, a in order])
    np.testing.assert_allclose(hessian.products(model, X, Y, np.eye(15)), expected, atol=1e-6)


def test_products_are_symmetric_and_linear():
    model = models.build("mlp:6", (4,), 2, seed=2)
    u, v = RNG.normal(size=(2, models.parameter_count(model)))
    hu, hv, both = hessian.products(model, X, Y, np.stack([u, v, 2 * u - v]))
    assert u @ hv == pytest.approx(v @ hu, rel=1e-10)
    np.testing.assert_allclose(both, 2 * hu - hv, atol=1e-12)


def test_products_are_differences_of_gradients():
    model = models.build("tanh_cnn:1,2,3", (8, 8, 1), 3, seed=1)
    vector, h = RNG.normal(size=models.parameter_count(model)), 1e-5
    gradients = []
    for step in (h, -h):
        moved = signals.in_precision(model, "float64")
        there = torch.nn.utils.parameters_to_vector(moved.parameters()) + step * torch.tensor(vector)
        torch.nn.utils.vector_to_parameters(there, moved.parameters())
        gradients.append(np.concatenate(list(signals.record_gradients(moved, IMAGES, LABELS, dtype="float64"))).mean(0))
    expected = (gradients[0] - gradients[1]) / (2 * h)
    np.testing.assert_allclose(hessian.products(model, IMAGES, LABELS, vector[None])[0], expected, rtol=1e-5, atol=1e-7)


def test_single_precision_is_close_and_batches_change_nothing(monkeypatch):
    model = models.build("mlp:6", (4,), 2, seed=2)
    vectors = RNG.normal(size=(7, models.parameter_count(model)))
    exact = hessian.products(model, X, Y, vectors)
    short = hessian.products(model, X, Y, vectors, dtype="float32")
    assert short.dtype == np.float32 and exact.dtype == np.float64
    np.testing.assert_allclose(short, exact, atol=1e-5 * abs(exact).max())
    for batch, at_once in ((1, 7), (5, 3), (23, 1)):
        monkeypatch.setattr(hessian, "VECTORS", at_once)
        np.testing.assert_allclose(hessian.products(model, X, Y, vectors, batch=batch), exact, atol=1e-13)


def test_batches_halve_when_memory_runs_out_and_nothing_else_changes(monkeypatch):
    model, plain, sizes = models.build("mlp:6", (4,), 2, seed=2), signals.precise_loss, []
    vectors = RNG.normal(size=(3, models.parameter_count(model)))
    exact = hessian.products(model, X, Y, vectors)

    def cramped(outputs, labels, kind):
        sizes.append(len(labels))
        if len(labels) > 4:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return plain(outputs, labels, kind)

    monkeypatch.setattr(signals, "precise_loss", cramped)
    np.testing.assert_allclose(hessian.products(model, X, Y, vectors), exact, atol=1e-13)
    assert sizes[:4] == [23, 12, 6, 3]


def test_a_unit_exactly_at_its_kink_counts_as_one_that_is_off():
    model = models.build("mlp:2", (4,), 2, seed=0)
    with torch.no_grad():
        model.body[1].weight[0], model.body[1].bias[0] = 0.0, 0.0  # its input is 0 for every record
    size = models.parameter_count(model)
    found = hessian.products(model, X, Y, np.eye(size))
    names = np.concatenate([[name] * w.numel() for name, w in model.named_parameters()])
    first = (names == "body.1.weight") & (np.cumsum(names == "body.1.weight") <= 4)
    assert (found[first] == 0).all() and (found[:, first] == 0).all() and np.abs(found).max() > 0


@pytest.mark.parametrize("how,words", [
    ({"vectors": np.zeros((2, 5))}, r"shape \(2, 5\): \[k, 44\] is needed"), ({"vectors": np.zeros(44)}, r"\(44,\)"),
    ({"loss": "brierr"}, "Did you mean 'brier'"), ({"dtype": "float16"}, "Allowed: float32, float64")])
def test_bad_input_is_refused(how, words):
    model = models.build("mlp:6", (4,), 2, seed=2)
    with pytest.raises(MiaError, match=words):
        hessian.products(model, X, Y, **{"vectors": np.zeros((1, 44)), **how})
