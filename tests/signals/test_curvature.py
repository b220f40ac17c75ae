"""Curvature of the loss in its input: estimators against closed forms, loops and one another."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from mia_lib import data, membership, models, training
from mia_lib.errors import MiaError
from mia_lib.signals import curvature, mapping, outputs
from mia_lib.training import TrainConfig
from mia_lib.training.losses import precise_loss

RNG = np.random.default_rng(0)
TABLE = data.Dataset(
    "toy table",
    RNG.normal(size=(30, 5)).astype(np.float32),
    RNG.integers(0, 2, 30),
    30,
    ("no", "yes"),
)
ESTIMATES = {
    "zero_order": curvature.zero_order_trace,
    "released_code": lambda *given, **how: curvature.zero_order_trace(
        *given, variant="released_code", **how
    ),
    "hutchinson": curvature.hutchinson_trace,
    "exact": lambda loss, x, probes=0, seed=0, **how: curvature.exact_trace(loss, x, **how),
}


def quadratic(size):
    """1/2 x^T H x, of which every estimator's expectation, and variance, is known; and H."""
    matrix = np.random.default_rng(0).normal(size=(size, size))
    h = torch.tensor(matrix + matrix.T) / 2
    return (lambda x: 0.5 * ((x @ h) * x).sum(-1)), h.numpy()


def network(architecture, shape, records=6, seed=0):
    model = outputs.in_precision(models.build(architecture, shape, 3, seed=seed), "float64")
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(records, *(shape[2:] + shape[:2])))  # channels first
    return (
        (lambda x, y: precise_loss(model(x), y)),
        torch.tensor(x),
        torch.tensor(rng.integers(0, 3, records)),
    )


@pytest.mark.parametrize(
    "architecture,shape",
    [("mlp:7", (5,)), ("tanh_cnn:2,3,4", (4, 4, 2)), ("leino_cnn:2,3,4", (4, 4, 1))],
)
def test_the_exact_trace_is_that_of_a_loop_over_hessians(architecture, shape):
    loss, x, y = network(architecture, shape)
    expected = [
        torch.autograd.functional.hessian(lambda z, n=n: loss(z[None], y[n : n + 1])[0], x[n])
        .view(x[n].numel(), -1)
        .trace()
        .item()
        for n in range(len(x))
    ]
    assert_allclose(curvature.exact_trace(loss, x, y=y), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [3, 12])
def test_estimates_are_unbiased_with_the_variances_of_theory(size):
    """One probe each for 40,000 copies of a record. Zero-order: (n + 2)|H|^2 + tr(H)^2 - 4 sum H_ii^2; Hutchinson's:
    2 (|H|^2 - sum H_ii^2)."""
    (loss, h), x = quadratic(size), torch.zeros(40_000, size, dtype=torch.float64)
    squares, diagonal, trace = (h**2).sum(), (np.diag(h) ** 2).sum(), np.trace(h)
    assert_allclose(curvature.exact_trace(loss, x[:7]), trace, rtol=1e-12)
    for found, variance in (
        (
            curvature.zero_order_trace(loss, x, 1, seed=3),
            (size + 2) * squares + trace**2 - 4 * diagonal,
        ),
        (curvature.hutchinson_trace(loss, x, 1, seed=3), 2 * (squares - diagonal)),
    ):
        assert abs(found.mean() - trace) < 4 * np.sqrt(variance / 40_000)
        assert found.var() == pytest.approx(variance, rel=0.06)


@pytest.mark.parametrize("variant", curvature.VARIANTS)
def test_zero_order_estimates_are_the_printed_formula_probe_by_probe(variant):
    loss, x, y = network("tanh_cnn:2,3,4", (4, 4, 1))
    h, expected = 1e-2, []
    signs = curvature._probes(x, 5, 0, 0, 6)  # u and v take turns
    for n, k in product(range(len(x)), range(3)):
        u, v = signs[2 * k, n], signs[2 * k + 1, n]
        points = torch.stack(
            [x[n] + h * v + h * u, x[n] - h * v + h * u, x[n] + h * v - h * u, x[n] - h * v - h * u]
        )
        a, b, c, d = loss(points, y[n].expand(4)).tolist()
        q = (a - b - c + d) / (4 * h**2)
        expected.append(abs(q) * h if variant == "released_code" else q * (u * v).sum().item())
    found = curvature.zero_order_trace(loss, x, 3, h, seed=5, y=y, variant=variant)
    assert_allclose(found, np.reshape(expected, (-1, 3)).mean(1), rtol=1e-6)


def test_the_limit_of_zero_order_estimates_is_reached_as_the_step_shrinks():
    loss, x, y = network("tanh_cnn:2,3,4", (4, 4, 1))
    limit = curvature.limit_trace(loss, x, 3, 5, y=y)
    assert_allclose(curvature.zero_order_trace(loss, x, 3, 1e-3, seed=5, y=y), limit, rtol=1e-4)
    hessians = [
        torch.func.hessian(lambda z, n=n: loss(z[None], y[n : n + 1])[0])(x[n]).reshape(
            x[n].numel(), -1
        )
        for n in range(len(x))
    ]
    u, v = curvature._probes(x, 5, 0, 0, 6).flatten(2).unflatten(0, (3, 2)).unbind(1)
    q = torch.stack([((v[:, n] @ h) * u[:, n]).sum(1) for n, h in enumerate(hessians)])
    assert_allclose(limit, (q * (u * v).sum(2).T).mean(1), rtol=1e-9)


def test_probes_are_signs_without_a_pattern():
    # [probes, records, coordinates]
    signs = curvature._probes(torch.zeros(50, 40, dtype=torch.float64), 0, 0, 0, 20).numpy()
    assert set(np.unique(signs)) == {-1.0, 1.0}
    for axis in range(3):
        rows = np.moveaxis(signs, axis, 0).reshape(signs.shape[axis], -1)
        assert abs(rows.mean(1)).max() < 4.5 / np.sqrt(rows.shape[1])
        assert abs(rows @ rows.T / rows.shape[1] - np.eye(len(rows))).max() < 5 / np.sqrt(
            rows.shape[1]
        )
    other = curvature._probes(torch.zeros(50, 40), 1, 0, 0, 20)
    assert other.dtype == torch.float32 and abs((other.double().numpy() * signs).mean()) < 0.02
    wide = curvature._probes(torch.zeros(4, 200), 3, 5, 2, 6)  # a sign depends on its place alone
    for shape in ((1,), (31,), (32,), (33,), (2, 5, 7)):
        found = curvature._probes(torch.zeros(4, *shape), 3, 5, 2, 6)
        assert found.shape == (4, 4, *shape)
        assert (found.flatten(2) == wide[..., : found[0, 0].numel()]).all()
        # a part of records and numbers
        assert (curvature._probes(torch.zeros(2, *shape), 3, 7, 3, 5) == found[1:3, 2:]).all()


@pytest.mark.parametrize("name", ESTIMATES)
def test_streaming_changes_nothing(name):
    loss, x, y = network("tanh_cnn:2,3,4", (4, 4, 1), records=11)
    estimate = ESTIMATES[name]
    whole = estimate(loss, x, 7, seed=2, y=y)
    for batch in (1, 3, 11):
        assert_allclose(estimate(loss, x, 7, seed=2, y=y, batch=batch), whole, rtol=1e-5, atol=1e-9)
    if name != "exact":  # a record's probes come from its position, wherever a part begins
        parts = [
            estimate(loss, x[:4], 7, seed=2, y=y[:4]),
            estimate(loss, x[4:], 7, seed=2, y=y[4:], first=4),
        ]
        assert_allclose(np.concatenate(parts), whole, rtol=1e-5, atol=1e-9)
        assert not np.allclose(estimate(loss, x, 7, seed=3, y=y), whole)
    elsewhere = estimate(
        loss, torch.cat([x.flip(0)[:10], x[10:]]), 7, seed=2, y=torch.cat([y.flip(0)[:10], y[10:]])
    )
    # the others' places do not matter
    assert_allclose(elsewhere[10], whole[10], rtol=1e-5)


def test_rounding_that_drowns_the_probes_is_said_with_its_size():
    w, x = (torch.tensor(RNG.normal(size=(rows, 300))) for rows in (10, 40))
    y = torch.zeros(40, dtype=torch.long)

    def loss(z, y):
        return torch.nn.functional.cross_entropy(z @ w.T, y, reduction="none")

    def single(z, y):
        return loss(z.double(), y).float()  # at the best: only the values are rounded

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curvature.zero_order_trace(loss, x, 3, 1e-3, y=y)
        curvature.zero_order_trace(single, x.float(), 3, 0.1, y=y)
    words = r"h = 1e-05 is at the rounding floor of torch.float32 .* by about \d\.\de[+]0[2-4], .*float64"
    for function, points, h, said in (
        (single, x.float(), 1e-5, words),
        (loss, x, 1e-8, "rounding floor of torch.float64"),
        (loss, x, 1e-17, "rounding floor"),
    ):  # the last is so small that no point moves
        with pytest.warns(UserWarning, match=said):
            curvature.zero_order_trace(function, points, 3, h, y=y)


@pytest.fixture
def ensemble(isolated_cache):
    return training.train(
        TABLE, membership.balanced_halves(30, 2), TrainConfig("mlp:3", epochs=3, loss="brier")
    )


def test_an_ensemble_has_the_curvature_of_its_models_and_computes_what_was_not_asked_before(
    ensemble, monkeypatch
):
    # parts that begin elsewhere draw the same probes
    monkeypatch.setattr(curvature, "CONVERTED", 7)
    monkeypatch.setattr(mapping, "_in_pool", mapping._in_process)
    how, x = {"iterations": 4, "h": 1e-2, "seed": 9}, torch.from_numpy(TABLE.x).double()
    for variant in curvature.VARIANTS:
        found = curvature.traces(ensemble, TABLE, variant, **how)
        assert found.shape == (2, 30) and found.dtype == np.float64
        for m in range(2):
            model = outputs.in_precision(ensemble.model(m), "float64")
            expected = curvature.zero_order_trace(
                lambda z, y, model=model: precise_loss(model(z), y, "brier"),
                x,
                y=TABLE.y,
                variant=variant,
                **how,
            )
            assert_allclose(found[m], expected, rtol=1e-6, atol=1e-9)
    monkeypatch.setattr(mapping, "_in_pool", lambda *a: pytest.fail("it is not in the store"))
    assert (curvature.traces(ensemble, TABLE, variant, **how) == found).all()
    for other in (
        {"iterations": 5},
        {"seed": 1},
        {"h": 1e-3},
        {"dtype": "float32"},
        {"precise": False},
    ):
        with pytest.raises(pytest.fail.Exception):
            curvature.traces(ensemble, TABLE, variant, **how | other)


IMAGES = data.from_arrays(
    RNG.integers(0, 256, (12, 8, 8, 2)).astype(np.uint8), RNG.integers(0, 3, 12), "toy images"
)


@pytest.mark.parametrize(
    "records,architecture", [(TABLE, "mlp:6,5"), (IMAGES, "strided_cnn:2,3,8")]
)
def test_between_kinks_the_hessian_is_that_of_automatic_differentiation_whatever_the_label(
    isolated_cache, records, architecture
):
    config = TrainConfig(architecture, epochs=3, batch_size=6, learning_rate=0.01)
    models = training.train(records, membership.balanced_halves(len(records), 2), config)
    trace, norm = curvature.between_kinks(models, records)
    assert trace.dtype == norm.dtype == np.float64
    assert trace.shape == norm.shape == (2, len(records))
    x = outputs.inputs(records.x, 0, len(records), torch.device("cpu"), torch.float64)
    for m in range(2):
        network = outputs.in_precision(models.model(m), "float64")
        for n in range(len(records)):

            def loss(z, net=network, n=n):
                return torch.nn.functional.cross_entropy(
                    net(z[None]), torch.tensor(records.y[n : n + 1])
                )

            hessian = torch.func.jacrev(torch.func.jacrev(loss))(x[n]).view(x[n].numel(), -1)
            assert trace[m, n] == pytest.approx(hessian.trace().item(), rel=1e-9)
            assert norm[m, n] == pytest.approx(hessian.norm().item(), rel=1e-9)
    other = replace(records, y=(records.y + 1) % len(records.classes))
    for mine, found in zip((trace, norm), curvature.between_kinks(models, other), strict=True):
        assert_allclose(found, mine, rtol=1e-12)


NOUGHT = torch.zeros(4, 3, dtype=torch.float64)


@pytest.mark.parametrize(
    "call,words",
    [
        (
            lambda e: curvature.zero_order_trace(quadratic(3)[0], NOUGHT, h=0.0),
            "h = 0.0 is out of range",
        ),
        (
            lambda e: curvature.zero_order_trace(quadratic(3)[0], NOUGHT, variant="coded"),
            "Allowed: paper, released_code",
        ),
        (
            lambda e: curvature.hutchinson_trace(quadratic(3)[0], NOUGHT, 0),
            "probes = 0 is out of range",
        ),
        (lambda e: curvature.exact_trace(quadratic(3)[0], NOUGHT.half()), "float16: give float64"),
        (
            lambda e: curvature.exact_trace(lambda x: x.mean(), NOUGHT),
            r"shape \(\) for 4 inputs.*not their mean",
        ),
        (
            lambda e: curvature.exact_trace(quadratic(3)[0], NOUGHT, batch=-1),
            "batch = -1 is out of range",
        ),
        (lambda e: curvature.traces(e, TABLE, "papre"), "Did you mean 'paper'"),
        (lambda e: curvature.traces(e, TABLE, iterations=2.9), "iterations = 2.9: a whole number"),
        (lambda e: curvature.traces(e, TABLE, dtype="double"), "Allowed: float32, float64"),
        (
            lambda e: curvature.between_kinks(e, TABLE),
            "'brier': .*'cross_entropy' alone. Take exact_trace",
        ),
    ],
)
def test_bad_input_is_refused_before_any_work(ensemble, call, words):
    with pytest.raises(MiaError, match=words):
        call(ensemble)
    assert ensemble.missing() == [0, 1]
