"""The training loss's Hessian, its products with vectors and its inverse, against PyTorch's Hessian and plain solving."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch.func import functional_call

from mia_lib import models
from mia_lib.errors import MiaError
from mia_lib.signals import hessian
from mia_lib.signals import outputs as model_signals
from mia_lib.training.losses import LOSSES, record_loss

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(23, 4)).astype(np.float32), RNG.integers(0, 2, 23)
IMAGES, LABELS = RNG.integers(0, 255, (9, 8, 8, 1)).astype(np.uint8), RNG.integers(0, 3, 9)


def brute_force(model, x, y, loss):
    """[P, P], from the loss that training uses and PyTorch's Hessian of a vector."""
    model = model_signals.in_precision(model, "float64")
    weights = dict(model.named_parameters())
    sizes = [w.numel() for w in weights.values()]

    def mean(vector):
        parts = {
            name: p.view_as(w)
            for (name, w), p in zip(weights.items(), vector.split(sizes), strict=True)
        }
        return record_loss(
            functional_call(model, parts, (models.to_input(x).double(),)), torch.tensor(y), loss
        ).mean()

    start = torch.cat([w.flatten() for w in weights.values()])
    assert (start == torch.nn.utils.parameters_to_vector(model.parameters())).all()
    return torch.func.hessian(mean)(start).numpy()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("architecture", ["sigmoid_regression", "mlp:3", "mlp:5,3"])
def test_products_and_the_matrix_are_those_of_pytorchs_hessian(architecture, loss, monkeypatch):
    model = models.build(architecture, (4,), 2, seed=1)
    expected = brute_force(model, X, Y, loss)
    near = 1e-12 * abs(expected).max()
    assert_allclose(
        hessian.operator(model, X, Y, loss)(np.eye(len(expected))), expected, atol=near + 1e-14
    )
    monkeypatch.setattr(hessian, "COLUMNS", 3)
    for narrow in (hessian.NARROW, 2):  # 2: Gram matrices one by one, in two blocks of columns
        monkeypatch.setattr(hessian, "NARROW", narrow)
        found = hessian.exact(model, X, Y, loss)
        assert_allclose(found, expected, atol=near)
        assert (found == found.T).all()


@pytest.mark.parametrize("architecture", ["tanh_cnn:1,2,3", "leino_cnn:1,2,3"])
def test_of_images_too_and_of_the_network_as_it_is_evaluated(architecture):
    """In training mode leino_cnn would drop activations."""
    model = models.build(architecture, (8, 8, 1), 3, seed=1)
    expected = brute_force(model, IMAGES, LABELS, "cross_entropy")
    vectors = RNG.normal(size=(5, len(expected)))
    assert_allclose(
        hessian.operator(model, IMAGES, LABELS)(vectors), vectors @ expected, rtol=1e-9, atol=1e-12
    )
    if architecture != "leino_cnn:1,2,3":
        assert_allclose(
            hessian.exact(model, IMAGES, LABELS), expected, atol=1e-12 * abs(expected).max()
        )


@pytest.mark.parametrize("architecture", ["mlp:6", "mlp:4,3"])
def test_single_precision_is_close_and_batches_change_nothing(architecture, monkeypatch):
    model, x, y = models.build(architecture, (4,), 2, seed=2), X[:9], Y[:9]
    vectors = RNG.normal(size=(7, models.parameter_count(model)))
    products, matrix = hessian.operator(model, x, y)(vectors), hessian.exact(model, x, y)
    for batch, at_once in ((1, 7), (4, 3), (9, 1)):
        monkeypatch.setattr(hessian, "VECTORS", at_once)
        assert_allclose(hessian.operator(model, x, y, batch=batch)(vectors), products, atol=1e-13)
        assert_allclose(hessian.exact(model, x, y, batch=batch), matrix, atol=1e-14)
    short = hessian.operator(model, x, y, dtype="float32")(vectors)
    close = hessian.exact(model, x, y, dtype="float32")
    assert short.dtype == close.dtype == np.float32
    assert products.dtype == np.float64
    assert (close == close.T).all()
    assert_allclose(short, products, atol=1e-5 * abs(products).max())
    assert_allclose(close, matrix, atol=1e-6 * abs(matrix).max())


def test_a_unit_exactly_at_its_kink_counts_as_one_that_is_off():
    model = models.build("mlp:2", (4,), 2, seed=0)
    with torch.no_grad():
        model.body[1].weight[0], model.body[1].bias[0] = 0.0, 0.0  # its input is 0 for every record
    size = models.parameter_count(model)
    found = hessian.operator(model, X, Y)(np.eye(size))
    names = np.concatenate([[name] * w.numel() for name, w in model.named_parameters()])
    first = (names == "body.1.weight") & (np.cumsum(names == "body.1.weight") <= 4)
    assert (found[first] == 0).all() and (found[:, first] == 0).all() and np.abs(found).max() > 0


def test_a_batch_that_runs_out_of_memory_is_not_counted_twice(monkeypatch):
    model, plain, sizes = models.build("mlp:6", (4,), 2, seed=2), hessian._grams, []
    expected = hessian.exact(model, X, Y)

    def cramped(x, weights):
        sizes.append((len(x), x.shape[1]))
        if len(x) > 6 and x.shape[1] == 5:  # the second product of a batch
            raise MemoryError
        return plain(x, weights)

    monkeypatch.setattr(hessian, "_grams", cramped)
    assert_allclose(hessian.exact(model, X, Y), expected, atol=1e-14)
    assert [n for n, columns in sizes if columns == 5][:4] == [23, 12, 6, 6]


def test_a_hessian_that_does_not_fit_is_refused_before_any_work(monkeypatch):
    model = models.build("mlp:6", (4,), 2, seed=2)  # 44 parameters: 4 * 44^2 numbers
    monkeypatch.setattr(hessian, "_sums", lambda *given: pytest.fail("work was done"))
    for dtype, size, words in (
        ("float64", 8, "of 44 parameters takes .* GB in float64, .* on cpu. Use dtype = 'float32'"),
        ("float32", 4, "in float32, .* Use conjugate_gradient"),
    ):
        monkeypatch.setattr(
            hessian.devices, "free_memory", lambda device, size=size: 4 * 44**2 * size - 1
        )
        with pytest.raises(MiaError, match=words):
            hessian.exact(model, X, Y, dtype=dtype)


VALUES = np.array([-0.3, -0.05, 0.0, 0.01, 0.4, 2.0, 30.0])
DIRECTIONS = np.linalg.qr(np.random.default_rng(1).normal(size=(7, 7)))[0]
MIXED = DIRECTIONS * VALUES @ DIRECTIONS.T
VECTORS = RNG.normal(size=(5, 7))


def test_one_spectrum_serves_every_damping_and_rank():
    """A low rank keeps what is large in absolute value, as in the released code; a zero eigenvalue is never kept."""
    matrix = np.tril(MIXED) + np.tril(MIXED, -1).T
    spectrum = hessian.spectrum(matrix, "cpu")
    overwritten = hessian.spectrum(matrix, "cpu", overwrite=True)
    assert np.array_equal(overwritten.vectors, spectrum.vectors)
    assert np.shares_memory(overwritten.vectors, matrix)
    assert_allclose(spectrum.values, VALUES, atol=1e-13)
    assert_allclose(spectrum.vectors * spectrum.values @ spectrum.vectors.T, MIXED, atol=1e-13)
    for damping in (0.31, 0.5, 1.0, 100.0):
        damped, found = MIXED + damping * np.eye(7), spectrum.inverse(damping)
        assert_allclose(found.apply(VECTORS), np.linalg.solve(damped, VECTORS.T).T, rtol=1e-10)
        assert_allclose(found.matrix(), np.linalg.inv(damped), atol=1e-11)
        assert_array_equal(hessian.inverse(MIXED, damping).weights, found.weights)
        assert_array_equal(hessian.inverse(spectrum, damping).weights, found.weights)
    for threshold, kept in ((0.0, 6), (0.03, 5), (0.1, 4), (0.35, 3), (3.0, 1)):
        found = hessian.inverse(MIXED, rank_threshold=threshold)
        assert np.count_nonzero(found.weights) == kept
        expected = np.linalg.pinv(MIXED, rcond=max(threshold, 1e-12) / 30.0, hermitian=True)
        assert_allclose(found.matrix(), expected, atol=1e-10)


ROTTEN, ASKEW = MIXED.copy(), MIXED.copy()
ROTTEN[2, 3], ASKEW[2, 3] = np.nan, 5.0


def test_conjugate_gradient_solves_and_says_what_it_did_not():
    for damping in (0.35, 1.0, 50.0):
        found = hessian.conjugate_gradient(MIXED, VECTORS, damping, 1e-10)
        expected = np.linalg.solve(MIXED + damping * np.eye(7), VECTORS.T).T
        assert_allclose(found.check().x, expected, rtol=1e-6, atol=1e-9)
        assert found.converged.all()
        assert (found.residuals <= 1e-10).all()
        assert (found.iterations <= 9).all()
    found = hessian.conjugate_gradient(MIXED, VECTORS, 0.5, iterations=2)
    residuals = np.linalg.norm(
        VECTORS - found.x @ (MIXED + 0.5 * np.eye(7)), axis=1
    ) / np.linalg.norm(VECTORS, axis=1)
    assert_allclose(found.residuals, residuals, rtol=1e-8)
    assert not found.converged.any() and (found.iterations == 2).all()
    with pytest.raises(
        MiaError,
        match="5 of 5 systems did not converge; .* after 2 iterations .*need more iterations",
    ):
        found.check()
    assert not hessian.conjugate_gradient(
        lambda v: np.full_like(v, np.nan), VECTORS, 0.5
    ).converged.any()


def test_systems_are_solved_as_if_each_were_alone_and_only_those_that_meet_downward_curvature_fail():
    vectors = np.linalg.eigh(MIXED)[1]
    right, asked = np.stack([VECTORS[0], 3 * vectors[:, 6], np.zeros(7), VECTORS[1]]), []
    found = hessian.conjugate_gradient(
        lambda v: asked.append(len(v)) or v @ MIXED, right, 0.5, 1e-10
    )
    assert found.converged.all() and found.iterations[1] == 1 and found.iterations[2] == 0
    assert (found.x[2] == 0).all() and found.residuals[2] == 0
    assert asked[:2] == [3, 2] and sum(asked) == found.iterations.sum()
    for k, row in enumerate(right):
        alone = hessian.conjugate_gradient(MIXED, row[None], 0.5, 1e-10)
        assert_allclose(found.x[k], alone.x[0], rtol=1e-8, atol=1e-12)
        assert found.iterations[k] == alone.iterations[0]
    # the first has no part in what is below 0
    right = np.stack([vectors[:, 6] + vectors[:, 4], vectors[:, 0], VECTORS[0]])
    found = hessian.conjugate_gradient(MIXED, right, 0.1)
    assert found.converged.tolist() == [True, False, False]
    assert_allclose(found.x[0], vectors[:, 6] / 30.1 + vectors[:, 4] / 0.5, atol=1e-4)
    assert found.iterations[1] == 1 and found.residuals[1] == 1
    with pytest.raises(
        MiaError,
        match=r"2 of 3 systems did not converge; .* after .*\(number 1\).*give more damping",
    ):
        found.check()


SMALL = models.build("mlp:6", (4,), 2)  # 44 parameters


def solved(**how):
    hessian.conjugate_gradient(**{"product": MIXED, "right": VECTORS, **how})


@pytest.mark.parametrize(
    "call,words",
    [
        (
            lambda: hessian.operator(SMALL, X, Y)(np.zeros((2, 5))),
            r"shape \(2, 5\): \[k, 44\] is needed",
        ),
        (lambda: hessian.operator(SMALL, X, Y, "brierr"), "Did you mean 'brier'"),
        (lambda: hessian.exact(SMALL, X, Y, "brierr"), "Did you mean 'brier'"),
        (lambda: hessian.exact(SMALL, X, Y, dtype="float16"), "Allowed: float32, float64"),
        (lambda: hessian.exact(SMALL, X, Y[1:]), r"y has shape \(22,\): \[23\] is needed"),
        (
            lambda: hessian.inverse(MIXED, 0.2),
            "damping = 0.2 leaves H singular or indefinite: its smallest eigenvalue is -0.3, "
            "with damping -0.1. Give more than 0.3",
        ),
        (lambda: hessian.inverse(np.diag([0.0, 1.0]), 0.0), "damping = 0.0 leaves H singular"),
        (
            lambda: hessian.inverse(MIXED, -0.1),
            "damping = -0.1 is out of range: allowed is at least 0.0",
        ),
        (
            lambda: hessian.inverse(MIXED, rank_threshold=-1.0),
            "rank_threshold = -1.0 is out of range",
        ),
        (
            lambda: hessian.inverse(MIXED, rank_threshold=31.0),
            "leaves no direction: the largest absolute eigenvalue is 30",
        ),
        (
            lambda: hessian.spectrum(MIXED).inverse(0.5, 0.1),
            "damping = 0.5 and rank_threshold = 0.1: give one of the two",
        ),
        (lambda: hessian.spectrum(MIXED[:3]), r"shape \(3, 7\): a square one"),
        (lambda: hessian.spectrum(ROTTEN), "1 entries that are not finite"),
        (
            lambda: hessian.inverse(ASKEW, 1.0),
            "not symmetric: it differs from its transpose by up to",
        ),
        (
            lambda: hessian.inverse(MIXED, 1.0).apply(np.zeros((2, 6))),
            r"v has shape \(2, 6\): \[..., 7\] is needed",
        ),
        (lambda: solved(damping=-1.0), "damping = -1.0 is out of range"),
        (lambda: solved(iterations=0), "iterations = 0 is out"),
        (lambda: solved(tolerance=0.0), "tolerance = 0.0 is out of range"),
        (lambda: solved(right=np.full((2, 7), np.inf)), "14 entries that are not finite"),
        (lambda: solved(right=VECTORS[:, :6]), r"right has shape \(5, 6\), product \(7, 7\)"),
        (lambda: solved(product=ASKEW), "not symmetric"),
    ],
)
def test_what_cannot_be_computed_is_refused(call, words):
    with pytest.raises(MiaError, match=words):
        call()
