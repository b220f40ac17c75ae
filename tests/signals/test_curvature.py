"""Curvature of the loss in its input: estimators against closed forms, loops and one another."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from mia_lib import data, membership, models, store, training
from mia_lib.errors import MiaError
from mia_lib.signals import curvature, mapping, outputs
from mia_lib.training import TrainConfig
from mia_lib.training.losses import precise_loss

RNG = np.random.default_rng(0)
TABLE = data.Dataset("toy table", RNG.normal(size=(30, 5)).astype(np.float32), RNG.integers(0, 2, 30), 30, ("no", "yes"))
ESTIMATES = {
    "zero_order": curvature.zero_order_trace,
    "released_code": lambda *given, **how: curvature.zero_order_trace(*given, variant="released_code", **how),
    "hutchinson": curvature.hutchinson_trace,
    "exact": lambda loss, x, probes=0, seed=0, **how: curvature.exact_trace(loss, x, **how)}


def symmetric(size, seed=0):
    matrix = np.random.default_rng(seed).normal(size=(size, size))
    return (matrix + matrix.T) / 2


def quadratic(matrix):
    """1/2 x^T H x, of which every estimator's expectation, and variance, is known."""
    h = torch.tensor(matrix)
    return lambda x: 0.5 * ((x @ h) * x).sum(-1)


def softmax_head(seed=0, size=8, classes=4):
    """Logits W x: H = W^T (diag p - p p^T) W whatever the label."""
    weight = np.random.default_rng(seed).normal(size=(classes, size))
    w = torch.tensor(weight)

    def trace(x):
        z = x @ weight.T
        p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
        gram = weight @ weight.T
        return (p * np.diag(gram)).sum(-1) - np.einsum("nj,jk,nk->n", p, gram, p)

    return (lambda x, y: torch.nn.functional.cross_entropy(x @ w.T, y, reduction="none")), trace


def network(architecture, shape, records=6, seed=0):
    model = outputs.in_precision(models.build(architecture, shape, 3, seed=seed), "float64")
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(records, *(shape[2:] + shape[:2])))  # channels first
    return (lambda x, y: precise_loss(model(x), y)), torch.tensor(x), torch.tensor(rng.integers(0, 3, records))


# ------------------------------------------------------------------------------------------------------ what they estimate


def test_the_exact_trace_of_quadratics_and_softmax_heads_is_the_closed_form():
    x, h = RNG.normal(size=(7, 8)), symmetric(8)
    np.testing.assert_allclose(curvature.exact_trace(quadratic(h), x), np.trace(h), rtol=1e-12)
    loss, trace = softmax_head()
    for y in (torch.zeros(7, dtype=torch.long), torch.arange(7) % 4):
        np.testing.assert_allclose(curvature.exact_trace(loss, torch.tensor(x), y=y), trace(x), rtol=1e-12)


@pytest.mark.parametrize("architecture,shape", [
    ("mlp:7", (5,)), ("tanh_cnn:2,3,4", (4, 4, 2)), ("leino_cnn:2,3,4", (4, 4, 1))])
def test_the_exact_trace_is_that_of_a_loop_over_hessians(architecture, shape):
    loss, x, y = network(architecture, shape)
    expected = [torch.autograd.functional.hessian(lambda z, n=n: loss(z[None], y[n:n + 1])[0], x[n]).view(x[n].numel(), -1)
                .trace().item() for n in range(len(x))]
    np.testing.assert_allclose(curvature.exact_trace(loss, x, y=y), expected, rtol=1e-9, atol=1e-12)


def test_a_relu_network_curves_by_its_softmax_alone_and_whatever_the_label():
    """tr H = tr(S J J^T), S = diag p - p p^T, J the Jacobian of the logits: kinks count for nothing."""
    model = outputs.in_precision(models.build("mlp:7", (5,), 3, seed=1), "float64")
    x = torch.tensor(RNG.normal(size=(4, 5)))
    expected = []
    for row in x:
        p, j = model(row[None])[0].softmax(0), torch.func.jacrev(lambda z: model(z[None])[0])(row)
        expected.append(((torch.diag(p) - torch.outer(p, p)) @ j @ j.T).trace().item())
    for label in range(3):
        found = curvature.exact_trace(lambda z, y: precise_loss(model(z), y), x, y=torch.full((4,), label))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("size", [3, 12])
def test_estimates_are_unbiased_with_the_variances_of_theory(size):
    """One probe each for 40,000 copies of a record. Zero-order: (n + 2)|H|^2 + tr(H)^2 - 4 sum H_ii^2; Hutchinson's:
    2 (|H|^2 - sum H_ii^2)."""
    h, copies = symmetric(size), 40_000
    squares, diagonal, trace = (h ** 2).sum(), (np.diag(h) ** 2).sum(), np.trace(h)
    x = torch.zeros(copies, size, dtype=torch.float64)
    for found, variance in (
            (curvature.zero_order_trace(quadratic(h), x, 1, seed=3), (size + 2) * squares + trace ** 2 - 4 * diagonal),
            (curvature.hutchinson_trace(quadratic(h), x, 1, seed=3), 2 * (squares - diagonal))):
        assert abs(found.mean() - trace) < 4 * np.sqrt(variance / copies)
        assert found.var() == pytest.approx(variance, rel=0.06)


def test_hutchinson_needs_one_probe_where_the_hessian_is_diagonal():
    x = torch.tensor(RNG.normal(size=(9, 4)))
    found = curvature.hutchinson_trace(lambda x: (x ** 3).sum(-1), x, 1)  # H = diag(6 x)
    np.testing.assert_allclose(found, 6 * x.sum(1).numpy(), rtol=1e-12)


@pytest.mark.parametrize("variant", curvature.VARIANTS)
def test_zero_order_estimates_are_the_printed_formula_probe_by_probe(variant):
    loss, x, y = network("tanh_cnn:2,3,4", (4, 4, 1))
    h, expected = 1e-2, []
    signs = curvature._probes(x, 5, 0, 0, 6)  # u and v take turns
    for n, k in product(range(len(x)), range(3)):
        u, v = signs[2 * k, n], signs[2 * k + 1, n]
        points = torch.stack([x[n] + h * v + h * u, x[n] - h * v + h * u, x[n] + h * v - h * u, x[n] - h * v - h * u])
        a, b, c, d = loss(points, y[n].expand(4)).tolist()
        q = (a - b - c + d) / (4 * h ** 2)
        expected.append(abs(q) * h if variant == "released_code" else q * (u * v).sum().item())
    found = curvature.zero_order_trace(loss, x, 3, h, seed=5, y=y, variant=variant)
    np.testing.assert_allclose(found, np.reshape(expected, (-1, 3)).mean(1), rtol=1e-6)


def test_the_limit_of_zero_order_estimates_is_reached_as_the_step_shrinks():
    loss, x, y = network("tanh_cnn:2,3,4", (4, 4, 1))
    limit = curvature.limit_trace(loss, x, 3, 5, y=y)
    np.testing.assert_allclose(curvature.zero_order_trace(loss, x, 3, 1e-3, seed=5, y=y), limit, rtol=1e-4)
    hessians = [torch.func.hessian(lambda z, n=n: loss(z[None], y[n:n + 1])[0])(x[n]).reshape(x[n].numel(), -1)
                for n in range(len(x))]
    u, v = curvature._probes(x, 5, 0, 0, 6).flatten(2).unflatten(0, (3, 2)).unbind(1)
    q = torch.stack([((v[:, n] @ h) * u[:, n]).sum(1) for n, h in enumerate(hessians)])
    np.testing.assert_allclose(limit, (q * (u * v).sum(2).T).mean(1), rtol=1e-9)


def test_differences_see_no_step_size_where_the_loss_is_quadratic_and_an_error_of_its_square_elsewhere():
    x = torch.tensor(RNG.normal(size=(5, 6)))
    coarse, fine = (curvature.zero_order_trace(quadratic(symmetric(6)), x, 4, h) for h in (1.0, 1e-3))
    np.testing.assert_allclose(coarse, fine, rtol=1e-6)
    loss, y = softmax_head(size=6)[0], torch.arange(5) % 4
    limit, near, far = (curvature.zero_order_trace(loss, x, 4, h, y=y) for h in (1e-3, 0.01, 0.02))
    np.testing.assert_allclose((far - limit) / (near - limit), 4, rtol=0.1)


def test_the_released_code_measures_size_where_traces_cancel():
    h = np.diag([1.0, -1.0, 2.0, -2.0])
    x = torch.zeros(2000, 4, dtype=torch.float64)
    found = curvature.zero_order_trace(quadratic(h), x, 10, 0.1, variant="released_code")
    size = np.mean([abs(np.dot(signs, np.diag(h))) for signs in product([-1, 1], repeat=4)])  # |v^T H u|, exactly
    assert found.mean() == pytest.approx(0.1 * size, rel=0.03) and (found > 0).all()
    assert abs(curvature.zero_order_trace(quadratic(h), x, 10, 0.1).mean()) < 0.2


# ----------------------------------------------------------------------------------------- probes, batches, memory, rounding


def test_probes_are_signs_without_a_pattern():
    signs = curvature._probes(torch.zeros(50, 40, dtype=torch.float64), 0, 0, 0, 20).numpy()  # [probes, records, coordinates]
    assert set(np.unique(signs)) == {-1.0, 1.0}
    for axes in ((0, 1), (0, 2), (1, 2)):
        count = np.prod([signs.shape[a] for a in axes])
        assert abs(signs.mean(axes)).max() < 4.5 / np.sqrt(count)
    for rows in (signs.reshape(20, -1), signs.transpose(1, 0, 2).reshape(50, -1), signs.transpose(2, 0, 1).reshape(40, -1)):
        correlation = rows @ rows.T / rows.shape[1] - np.eye(len(rows))
        assert abs(correlation).max() < 5 / np.sqrt(rows.shape[1])
    other = curvature._probes(torch.zeros(50, 40), 1, 0, 0, 20)
    assert other.dtype == torch.float32 and abs((other.double().numpy() * signs).mean()) < 0.02


@pytest.mark.parametrize("shape", [(1,), (31,), (32,), (33,), (2, 5, 7)])
def test_a_sign_depends_on_its_place_alone_not_on_how_many_places_there_are(shape):
    size, wide = int(np.prod(shape)), curvature._probes(torch.zeros(4, 200), 3, 5, 2, 6)
    found = curvature._probes(torch.zeros(4, *shape), 3, 5, 2, 6)
    assert found.shape == (4, 4, *shape) and (found.flatten(2) == wide[..., :size]).all()
    assert (curvature._probes(torch.zeros(2, *shape), 3, 7, 3, 5) == found[1:3, 2:]).all()  # a part of records and numbers


@pytest.mark.parametrize("name", ESTIMATES)
def test_streaming_changes_nothing(name):
    loss, x, y = network("tanh_cnn:2,3,4", (4, 4, 1), records=11)
    estimate = ESTIMATES[name]
    whole = estimate(loss, x, 7, seed=2, y=y)
    for batch in (1, 3, 11):
        np.testing.assert_allclose(estimate(loss, x, 7, seed=2, y=y, batch=batch), whole, rtol=1e-5, atol=1e-9)
    if name != "exact":  # a record's probes come from its position, wherever a part begins
        parts = [estimate(loss, x[:4], 7, seed=2, y=y[:4]), estimate(loss, x[4:], 7, seed=2, y=y[4:], first=4)]
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-5, atol=1e-9)
        assert not np.allclose(estimate(loss, x, 7, seed=3, y=y), whole)
    elsewhere = estimate(loss, torch.cat([x.flip(0)[:10], x[10:]]), 7, seed=2, y=torch.cat([y.flip(0)[:10], y[10:]]))
    np.testing.assert_allclose(elsewhere[10], whole[10], rtol=1e-5)  # the others' places do not matter


def test_rounding_that_drowns_the_probes_is_said_with_its_size():
    loss, trace = softmax_head(size=300, classes=10)
    x, y = torch.tensor(RNG.normal(size=(40, 300))), torch.zeros(40, dtype=torch.long)

    def single(z, y):
        return loss(z.double(), y).float()  # at the best: only the values are rounded

    words = r"h = 1e-05 is at the rounding floor of torch.float32 .* by about \d\.\de[+]0[2-4], .*float64"
    with pytest.warns(UserWarning, match=words):
        curvature.zero_order_trace(single, x.float(), 3, 1e-5, y=y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curvature.zero_order_trace(loss, x, 3, 1e-3, y=y)
        curvature.zero_order_trace(single, x.float(), 3, 0.1, y=y)
    with pytest.warns(UserWarning, match="rounding floor of torch.float64"):
        curvature.zero_order_trace(loss, x, 3, 1e-8, y=y)
    with pytest.warns(UserWarning, match="rounding floor"):  # so small that no point moves
        curvature.zero_order_trace(loss, x, 3, 1e-17, y=y)


# -------------------------------------------------------------------------------------------------------------- an ensemble


@pytest.fixture
def ensemble(isolated_cache):
    return training.train(TABLE, membership.balanced_halves(30, 2), TrainConfig("mlp:3", epochs=3, loss="brier"))


@pytest.mark.parametrize("variant", curvature.VARIANTS)
def test_an_ensemble_has_the_curvature_of_its_models_and_computes_it_once(ensemble, variant, monkeypatch):
    monkeypatch.setattr(curvature, "CONVERTED", 7)  # parts that begin elsewhere draw the same probes
    monkeypatch.setattr(mapping, "_in_pool", mapping._in_process)
    how = {"iterations": 4, "h": 1e-2, "seed": 9}
    found = curvature.traces(ensemble, TABLE, variant, **how)
    assert found.shape == (2, 30) and found.dtype == np.float64
    x = torch.from_numpy(TABLE.x).double()
    for m in range(2):
        model = outputs.in_precision(ensemble.model(m), "float64")

        def loss(z, y, model=model):
            return precise_loss(model(z), y, "brier")

        expected = curvature.zero_order_trace(loss, x, y=TABLE.y, variant=variant, **how)
        np.testing.assert_allclose(found[m], expected, rtol=1e-6, atol=1e-9)
    monkeypatch.setattr(mapping, "_in_process", lambda *a: pytest.fail("everything is in the store"))
    assert (curvature.traces(ensemble, TABLE, variant, **how) == found).all()


def test_the_pool_computes_what_this_process_does_and_what_matters_is_in_the_key(ensemble, monkeypatch):
    pooled = curvature.traces(ensemble, TABLE, iterations=4)
    others = [curvature.traces(ensemble, TABLE, **how) for how in ({"iterations": 5}, {"seed": 1}, {"h": 1e-2},
                                                                 {"variant": "released_code"}, {"precise": False})]
    assert not any(np.array_equal(other, pooled) for other in others)
    (store.cache_dir() / "curvature").rename(store.cache_dir() / "old")
    monkeypatch.setattr(mapping, "_in_pool", mapping._in_process)
    np.testing.assert_allclose(curvature.traces(ensemble, TABLE, iterations=4), pooled, rtol=1e-9, atol=1e-12)


IMAGES = data.Dataset("toy images", RNG.integers(0, 256, (12, 8, 8, 2)).astype(np.uint8), RNG.integers(0, 3, 12), 12,
                      ("a", "b", "c"))


@pytest.mark.parametrize("records,architecture", [(TABLE, "mlp:6,5"), (IMAGES, "strided_cnn:2,3,8")])
def test_between_kinks_the_hessian_is_that_of_automatic_differentiation_whatever_the_label(
        isolated_cache, records, architecture):
    config = TrainConfig(architecture, epochs=3, batch_size=6, learning_rate=0.01)
    models = training.train(records, membership.balanced_halves(len(records), 2), config)
    trace, norm = curvature.between_kinks(models, records)
    assert trace.dtype == norm.dtype == np.float64 and trace.shape == norm.shape == (2, len(records))
    x = outputs.inputs(records.x, 0, len(records), torch.device("cpu"), torch.float64)
    for m in range(2):
        network = outputs.in_precision(models.model(m), "float64")
        for n in range(len(records)):
            def loss(z, net=network, n=n):
                return torch.nn.functional.cross_entropy(net(z[None]), torch.tensor(records.y[n:n + 1]))

            hessian = torch.func.jacrev(torch.func.jacrev(loss))(x[n]).view(x[n].numel(), -1)
            assert trace[m, n] == pytest.approx(hessian.trace().item(), rel=1e-9)
            assert norm[m, n] == pytest.approx(hessian.norm().item(), rel=1e-9)
    other = replace(records, y=(records.y + 1) % len(records.classes))
    for mine, found in zip((trace, norm), curvature.between_kinks(models, other), strict=True):
        np.testing.assert_allclose(found, mine, rtol=1e-12)


def test_between_kinks_knows_one_loss_only(ensemble):
    with pytest.raises(MiaError, match="loss = 'brier': .*'cross_entropy' alone. Take exact_trace"):
        curvature.between_kinks(ensemble, TABLE)
    assert ensemble.missing() == [0, 1]


X = torch.zeros(4, 3, dtype=torch.float64)


@pytest.mark.parametrize("call,words", [
    (lambda e: curvature.zero_order_trace(quadratic(np.eye(3)), X, h=0.0), "h = 0.0 is out of range"),
    (lambda e: curvature.zero_order_trace(quadratic(np.eye(3)), X, variant="coded"), "Allowed: paper, released_code"),
    (lambda e: curvature.hutchinson_trace(quadratic(np.eye(3)), X, 0), "probes = 0 is out of range"),
    (lambda e: curvature.exact_trace(quadratic(np.eye(3)), X.half()), "float16: give float64"),
    (lambda e: curvature.exact_trace(lambda x: x.mean(), X), r"shape \(\) for 4 inputs.*not their mean"),
    (lambda e: curvature.traces(e, TABLE, "papre"), "Did you mean 'paper'"),
    (lambda e: curvature.traces(e, TABLE, iterations=2.9), "iterations = 2.9: a whole number"),
    (lambda e: curvature.traces(e, TABLE, seed=1.9), "seed = 1.9: a whole number"),
    (lambda e: curvature.exact_trace(quadratic(np.eye(3)), X, batch=-1), "batch = -1 is out of range"),
    (lambda e: curvature.traces(e, TABLE, dtype="double"), "Allowed: float32, float64")])
def test_bad_input_is_refused_before_any_work(ensemble, call, words):
    with pytest.raises(MiaError, match=words):
        call(ensemble)
    assert ensemble.missing() == [0, 1]
