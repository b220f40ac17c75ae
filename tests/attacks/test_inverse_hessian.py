"""The inverse Hessian attack against loops over records, the theorem it comes from, its limits and what it leaves out."""

import itertools
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from torch.func import functional_call, jacrev
from torch.func import hessian as second_derivative

from mia_book.chapters.iha import theory
from mia_lib import models, signals
from mia_lib.attacks import baselines, iha
from mia_lib.errors import MiaError
from mia_lib.metrics import auc
from mia_lib.signals import hessian, outputs
from mia_lib.training.losses import record_loss

RNG = np.random.default_rng(0)
N, P, SIZE = 40, 7, 25  # records, parameters, records that were trained on
RATES = 0.1, 0.9, 0.05  # learning rate, momentum, weight decay
DAMPINGS = 0.02, 0.2, 3.0
TURN = np.linalg.qr(RNG.standard_normal((P, P)))[0]
HESSIAN = TURN @ np.diag(np.geomspace(0.05, 5, P)) @ TURN.T
GRADIENTS, LOSS, THETA = RNG.normal(size=(N, P)), RNG.exponential(size=N), RNG.normal(size=P)
MEMBERS = np.arange(N) % 8 < 5  # SIZE of them
MEAN = GRADIENTS[MEMBERS].mean(0)
SPECTRUM = hessian.spectrum(HESSIAN)
INVERSE = SPECTRUM.inverse(0.2)
FORMS = list(iha.Forms.__dataclass_fields__)


def compare(found, expected, **tolerance):
    """Two `Forms`, number by number."""
    for name in FORMS:
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None), name
        if one is not None:
            assert_allclose(one, other, err_msg=name, **tolerance)


# Forms against a loop that solves


def solved(damping, theta=None):
    """Forms of each record, by solving for it."""
    matrix = HESSIAN + damping * np.eye(P)
    x_mean, rows = np.linalg.solve(matrix, MEAN), []
    for g in GRADIENTS:
        x = np.linalg.solve(matrix, g)
        further = np.linalg.solve(matrix, x)
        row = [x @ x, x_mean @ x, x @ further, x_mean @ further, g @ x]
        if theta is not None:
            x_theta = np.linalg.solve(matrix, theta)
            row += [x_theta @ x, x_theta @ further]
        rows.append(row)
    return iha.Forms(*np.array(rows).T)


@pytest.mark.parametrize("theta", (None, THETA), ids=("without theta", "with theta"))
def test_forms_are_those_of_a_loop_that_solves(theta):
    for damping in DAMPINGS:
        inverse, expected = SPECTRUM.inverse(damping), solved(damping, theta)
        compare(iha.forms(GRADIENTS, inverse, MEAN, theta), expected, rtol=1e-9)
        compare(iha.forms(GRADIENTS, inverse.matrix(), MEAN, theta), expected, rtol=1e-9)
    several = iha.forms(GRADIENTS, [SPECTRUM.inverse(damping) for damping in DAMPINGS], MEAN, theta)
    for k, damping in enumerate(DAMPINGS):
        compare(several[k], solved(damping, theta), rtol=1e-9)
        compare(several[:, MEMBERS][k], solved(damping, theta)[MEMBERS], rtol=1e-9)


def test_forms_of_a_low_rank_inverse_are_those_of_the_pseudo_inverse():
    found = iha.forms(GRADIENTS, SPECTRUM.inverse(rank_threshold=0.2), MEAN, THETA)
    compare(
        found,
        iha.forms(GRADIENTS, np.linalg.pinv(HESSIAN, 0.2 / 5, hermitian=True), MEAN, THETA),
        rtol=1e-9,
    )
    assert (found.newton < iha.forms(GRADIENTS, SPECTRUM.inverse(0.0), MEAN).newton).all()


@pytest.mark.parametrize(
    "inverse",
    (INVERSE, INVERSE.matrix(), [INVERSE, SPECTRUM.inverse(1.0)]),
    ids=("spectrum", "matrix", "sequence"),
)
def test_blocks_of_gradients_are_joined_in_their_order(inverse):
    blocks = (GRADIENTS[i:j] for i, j in ((0, 13), (13, 13), (13, 39), (39, N)))
    found = iha.forms(blocks, inverse, MEAN, THETA)
    whole = iha.forms(GRADIENTS, inverse, MEAN, THETA)
    compare(found, whole, rtol=1e-12)
    assert found.newton.shape == ((2, N) if isinstance(inverse, list) else (N,))


@pytest.mark.parametrize(
    "how",
    (lambda s: s.inverse(0.2), lambda s: s.inverse(0.2).matrix(), lambda s: [s.inverse(0.2)]),
    ids=("spectrum", "matrix", "sequence"),
)
def test_single_precision_gives_the_same_forms_to_its_rounding(how):
    single = how(hessian.spectrum(HESSIAN.astype(np.float32)))
    found = iha.forms(
        GRADIENTS.astype(np.float32), single, MEAN.astype(np.float32), THETA.astype(np.float32)
    )
    found = found[0] if isinstance(single, list) else found
    expected = solved(0.2, THETA)
    for name in FORMS:
        one, other = getattr(found, name), getattr(expected, name)
        assert one.dtype == np.float64
        assert_allclose(one, other, rtol=1e-4, atol=1e-5 * np.abs(other).max(), err_msg=name)


# Scores against a loop that follows the paper


def loop(gradients, losses, members, matrix, learning_rate, momentum, weight_decay, undecayed=0.0):
    """l and I1 to I4 of each record, [N] each, in the paper's words."""
    n, a = members.sum(), learning_rate / (1 + momentum)
    mean, inverse, rows = gradients[members].mean(0), np.linalg.inv(matrix), []
    for g, loss, member in zip(gradients, losses, members, strict=True):
        rest = (mean - g / n if member else mean) + undecayed
        x, x0 = inverse @ g, inverse @ rest
        rows.append(
            [
                loss / (1 + momentum),
                1 / n * (1 - a * weight_decay) * np.linalg.norm(x) ** 2,
                2 * (1 - a * weight_decay) * x0 @ x,
                weight_decay / (2 * n) * (2 - a * weight_decay) * x @ inverse @ x,
                weight_decay * (2 - a * weight_decay) * x0 @ inverse @ x,
            ]
        )
    return dict(zip(iha.TERMS, np.array(rows).T, strict=True))


SUBSETS = [subset for size in range(1, 6) for subset in itertools.combinations(iha.TERMS, size)]


@pytest.mark.parametrize("rates", (RATES, (0.01, 0.9, 5e-4), (0.3, 0.0, 0.0)))
def test_every_sum_of_terms_is_that_of_a_loop_over_records(rates):
    expected = loop(GRADIENTS, LOSS, MEMBERS, HESSIAN + 0.2 * np.eye(P), *rates)
    for subset in SUBSETS:
        score, parts = iha.scores(
            LOSS, GRADIENTS, INVERSE, MEAN, MEMBERS, SIZE, *rates, terms=subset
        )
        by_hand = sum(expected[term] * (1 if term == "loss" else -1 / rates[0]) for term in subset)
        assert_allclose(score, by_hand, rtol=1e-9, atol=1e-12)
        for name, part in parts.items():
            assert_allclose(part, expected[name], rtol=1e-9, atol=1e-15, err_msg=name)
    whole = iha.scores(LOSS, GRADIENTS, INVERSE, MEAN, MEMBERS, SIZE, *rates)[0]
    sgd = iha.Sgd(*rates)
    assert_array_equal(whole, iha.combine(LOSS, parts, sgd, terms=iha.TERMS))
    assert_array_equal(
        iha.combine(LOSS, parts, sgd, terms="I2"), iha.combine(LOSS, parts, sgd, terms=("I2",))
    )
    assert_array_equal(
        iha.combine(LOSS, parts, sgd, terms=("I2", "loss", "I2")),
        iha.combine(LOSS, parts, sgd, terms=("loss", "I2")),
    )


def test_stationary_terms_are_those_of_a_loop_with_the_decays_gradient():
    found = iha.split(
        iha.forms(GRADIENTS, INVERSE, MEAN, THETA),
        MEMBERS / SIZE,
        SIZE,
        iha.Sgd(*RATES),
        stationary=True,
    )
    expected = loop(
        GRADIENTS, LOSS, MEMBERS, HESSIAN + 0.2 * np.eye(P), *RATES, undecayed=RATES[2] * THETA
    )
    for name, part in found.items():
        assert_allclose(part, expected[name], rtol=1e-9, atol=1e-12, err_msg=name)


# What the theory says


def test_it_is_the_log_ratio_of_two_laws_of_the_parameters():
    """A quadratic for the records with the one under test, one for the others; equal Hessians and minima (Assumption 3)."""
    learning_rate, momentum, decay = RATES
    for member in (False, True):
        without, least, batch = THETA + 0.3 * RNG.normal(size=P), 0.4, 16
        including = without + 0.1 * RNG.normal(size=P)

        def quadratic(optimum, least=least):
            away = THETA - optimum
            return least + 0.5 * away @ HESSIAN @ away, HESSIAN @ away

        (loss0, gradient0), (loss1, gradient1) = quadratic(without), quadratic(including)
        loss, gradient = SIZE * (loss1 - loss0), SIZE * (gradient1 - gradient0)
        score, _ = iha.scores(
            [loss],
            gradient[None],
            SPECTRUM.inverse(0.0),
            gradient1 if member else gradient0,
            [member],
            SIZE,
            *RATES,
        )
        law = [
            theory.log_density(THETA, optimum, HESSIAN, least, batch, *RATES)
            for optimum in (including, without)
        ]
        assert score[0] * batch * (1 - momentum) / (2 * SIZE * least) == pytest.approx(
            law[0] - law[1], rel=1e-8
        )


def test_stationarity_asks_which_training_set_leaves_the_smaller_gradient():
    d = MEAN + RATES[2] * THETA
    rest = d - GRADIENTS * MEMBERS[:, None] / SIZE
    expected = [
        r @ r - (r + g / SIZE) @ (r + g / SIZE) for r, g in zip(rest, GRADIENTS, strict=True)
    ]
    found = iha.stationarity(GRADIENTS @ d, (GRADIENTS**2).sum(1), MEMBERS / SIZE, SIZE)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-14)


def test_under_large_damping_no_hessian_is_left():
    """epsilon^2 (I1 + I2) tends to the form in gradients alone, which `stationarity` is."""
    damping = 1e7
    parts = iha.split(
        iha.forms(GRADIENTS, SPECTRUM.inverse(damping), MEAN), MEMBERS / SIZE, SIZE, iha.Sgd(*RATES)
    )
    limit = iha.stationarity(GRADIENTS @ MEAN, (GRADIENTS**2).sum(1), MEMBERS / SIZE, SIZE)
    once = 1 - RATES[0] / (1 + RATES[1]) * RATES[2]
    newton = -(parts["I1"] + parts["I2"])
    assert_allclose(damping**2 * newton, once * SIZE * limit, rtol=1e-4, atol=1e-5)
    assert_array_equal(np.argsort(newton), np.argsort(limit))
    plain = iha.split(iha.forms(GRADIENTS, INVERSE, MEAN), MEMBERS / SIZE, SIZE, iha.Sgd(*RATES))
    assert (np.argsort(-(plain["I1"] + plain["I2"])) != np.argsort(limit)).any()


@given(damping=st.floats(1e-3, 10), decay=st.floats(1e-6, 0.5), seed=st.integers(0, 100))
def test_weight_decay_is_felt_no_more_than_damping_lets_it(damping, decay, seed):
    """I3 / I1 <= alpha (2 - a alpha) / (2 (1 - a alpha) (sigma_min + epsilon))."""
    learning_rate, momentum, _ = RATES
    # the last one attains it
    gradients = np.vstack([np.random.default_rng(seed).normal(size=(5, P)), TURN[:, 0]])
    found = iha.forms(gradients, SPECTRUM.inverse(damping), MEAN)
    parts = iha.split(found, 0, SIZE, iha.Sgd(learning_rate, momentum, decay))
    a_alpha = decay * learning_rate / (1 + momentum)
    bound = decay * (2 - a_alpha) / (2 * (1 - a_alpha) * (SPECTRUM.values[0] + damping))
    ratio = parts["I3"] / parts["I1"]
    assert (ratio <= bound * (1 + 1e-9)).all() and ratio[-1] == pytest.approx(bound, rel=1e-6)


# At an exact optimum

DECAY = 0.05


@pytest.fixture(scope="module")
def optimum():
    """A ridge regression that is fitted to a random half of its records, at its exact minimum, where the training gradient is
    ``-alpha w``."""
    world = theory.linear_regression(800, 20, 1.0, seed=0)
    members = np.random.default_rng([0, 1]).permutation(np.arange(800) < 400)
    half = theory.LinearWorld(world.x[members], world.y[members])
    theta = half.optimum(DECAY)
    return SimpleNamespace(
        theta=theta,
        members=members,
        n=400,
        losses=world.losses(theta),
        gradients=world.gradients(theta),
        spectrum=hessian.spectrum(half.hessian),
        mean=world.gradients(theta)[members].mean(0),
    )


@pytest.mark.parametrize("damping", (0.0, 0.2, 100.0))
def test_at_an_optimum_the_condition_for_it_tells_every_member(optimum, damping):
    members, n, sgd = optimum.members, optimum.n, iha.Sgd(0.1, 0.9, DECAY)
    found = iha.forms(
        optimum.gradients, optimum.spectrum.inverse(damping), optimum.mean, optimum.theta
    )

    def i1_i2(taken_out, stationary):
        parts = iha.split(found, taken_out, n, sgd, stationary=stationary)
        return iha.combine(optimum.losses, parts, sgd, terms=("I1", "I2"))

    assert auc(i1_i2(members / n, True), members) == 1
    # the paper's: without the decay's gradient
    assert auc(i1_i2(members / n, False), members) < 0.95
    # who does not know that the record was taken out learns next to nothing
    for stationary_ in (True, False):
        assert auc(i1_i2(0, stationary_), members) == pytest.approx(0.5, abs=0.08)


def test_at_an_optimum_no_hessian_is_needed(optimum):
    complete, squares = optimum.mean + DECAY * optimum.theta, (optimum.gradients**2).sum(1)
    assert_allclose(complete, 0, atol=1e-12)
    for direction, least, most in ((complete, 1, 1), (optimum.mean, 0.5, 0.95)):
        score = iha.stationarity(
            optimum.gradients @ direction, squares, optimum.members / optimum.n, optimum.n
        )
        assert least <= auc(score, optimum.members) <= most


# Solutions in place of an inverse


def test_solutions_give_the_same_forms():
    x, along = INVERSE.apply(GRADIENTS), INVERSE.apply(MEAN)
    expected = solved(0.2)
    less = iha.from_solutions(x, along, GRADIENTS)
    compare(
        replace(less, inverse=expected.inverse, inverse_mean=expected.inverse_mean),
        expected,
        rtol=1e-9,
    )
    parts = iha.split(less, MEMBERS / SIZE, SIZE, iha.Sgd(*RATES))
    assert (
        not parts["I3"].any() and not parts["I4"].any() and parts["I1"].all() and parts["I2"].all()
    )


# Networks


def network(architecture, loss):
    """A model, random records of which some count as trained on, and gradients, losses and Hessian by PyTorch alone."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 4)).astype(np.float32)
    y = rng.integers(0, 2, 30)
    members = np.arange(30) % 3 > 0
    model = models.build(architecture, (4,), 2, seed=3)
    double = outputs.in_precision(model, "float64")
    weights = dict(double.named_parameters())
    start = torch.cat([w.detach().flatten() for w in weights.values()])
    inputs, labels = torch.tensor(x).double(), torch.tensor(y)

    def losses(vector):
        pieces = vector.split([w.numel() for w in weights.values()])
        parts = {
            name: piece.view_as(w) for (name, w), piece in zip(weights.items(), pieces, strict=True)
        }
        return record_loss(functional_call(double, parts, (inputs,)), labels, loss)

    return SimpleNamespace(
        model=model,
        x=x,
        y=y,
        members=members,
        n=int(members.sum()),
        losses=losses(start).numpy(),
        gradients=jacrev(losses)(start).numpy(),
        hessian=second_derivative(lambda v: losses(v)[torch.tensor(members)].mean())(start).numpy(),
    )


@pytest.mark.parametrize(
    "architecture,loss", [("sigmoid_regression", "brier"), ("mlp:3", "cross_entropy")]
)
def test_a_networks_scores_are_those_of_autograd_and_a_loop(architecture, loss):
    it = network(architecture, loss)
    damping = 0.2 + max(0.0, -np.linalg.eigvalsh(it.hessian)[0])
    truth = loop(
        it.gradients, it.losses, it.members, it.hessian + damping * np.eye(len(it.hessian)), *RATES
    )
    expected = truth["loss"] - sum(truth[term] for term in iha.TERMS[1:]) / RATES[0]
    inside = it.x[it.members], it.y[it.members]
    mean = np.concatenate(list(signals.record_gradients(it.model, *inside, loss, "float64"))).mean(
        0
    )
    for dtype, tolerance in (("float64", 1e-9), ("float32", 1e-4)):
        inverse = hessian.inverse(hessian.exact(it.model, *inside, loss, dtype), damping)
        blocks = signals.record_gradients(it.model, it.x, it.y, loss, dtype, batch=7)
        score, _ = iha.scores(it.losses, blocks, inverse, mean, it.members, it.n, *RATES)
        assert_allclose(score, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "architecture,loss", [("sigmoid_regression", "brier"), ("mlp:3", "cross_entropy")]
)
def test_conjugate_gradients_give_the_scores_of_the_exact_inverse(architecture, loss):
    it = network(architecture, loss)
    damping = 0.2 + max(0.0, -np.linalg.eigvalsh(it.hessian)[0])
    mean = it.gradients[it.members].mean(0)
    product = hessian.operator(it.model, it.x[it.members], it.y[it.members], loss)

    def solve(right):
        return hessian.conjugate_gradient(product, right, damping, tolerance=1e-10).check().x

    x = solve(np.vstack([it.gradients, mean]))
    found = iha.from_solutions(x[:-1], x[-1], it.gradients)
    exact = iha.forms(it.gradients, hessian.inverse(it.hessian, damping), mean)
    # of I3 and I4, which are left out
    exact = replace(exact, inverse=found.inverse, inverse_mean=found.inverse_mean)
    compare(found, exact, rtol=1e-6, atol=1e-8)
    sgd = iha.Sgd(*RATES)
    scores = [
        iha.combine(it.losses, iha.split(f, it.members / it.n, it.n, sgd), sgd)
        for f in (found, exact)
    ]
    assert_allclose(*scores, rtol=1e-7, atol=1e-7)


# Self-influence


@pytest.mark.parametrize("inverse", (INVERSE, INVERSE.matrix()), ids=("spectrum", "matrix"))
def test_self_influence_is_minus_the_influence_of_a_loop_that_solves(inverse):
    expected = [-g @ np.linalg.solve(HESSIAN + 0.2 * np.eye(P), g) for g in GRADIENTS]
    score = baselines.self_influence(GRADIENTS, inverse)
    assert_allclose(score, expected, rtol=1e-9)
    assert_allclose(score, -iha.forms(GRADIENTS, inverse, MEAN).influence, rtol=1e-12)
    assert_allclose(
        baselines.self_influence((GRADIENTS[i : i + 13] for i in range(0, N, 13)), inverse),
        score,
        rtol=1e-12,
    )
    assert (score < 0).all()


def test_self_influence_is_the_change_of_a_records_loss_under_more_of_its_weight():
    world, step = theory.linear_regression(60, 4), 1e-5
    theta = world.optimum()
    score = baselines.self_influence(world.gradients(world.optimum()), np.linalg.inv(world.hessian))
    for i in range(5):
        moved = np.linalg.solve(
            world.hessian + step * np.outer(world.x[i], world.x[i]),
            world.x.T @ world.y / 60 + step * world.x[i] * world.y[i],
        )
        change = (world.losses(moved)[i] - world.losses(theta)[i]) / step
        assert change == pytest.approx(score[i], rel=1e-2)


# What it needs, and errors


def never():
    """Gradients that must not be asked for."""
    raise AssertionError("work was started")
    yield


def scored(**changes):
    arguments = {
        "loss": LOSS,
        "gradients": GRADIENTS,
        "inverse_hessian": INVERSE,
        "mean_gradient": MEAN,
        "members_known": MEMBERS,
        "n": SIZE,
        "learning_rate": 0.1,
        "momentum": 0.9,
        "weight_decay": 0.05,
    }
    return iha.scores(**arguments | changes)


FOUND = iha.forms(GRADIENTS, INVERSE, MEAN)


@pytest.mark.parametrize(
    "call,words",
    [
        (lambda: scored(gradients=never(), n=0), "n = 0 is out of range"),
        (lambda: scored(gradients=never(), learning_rate=0.0), "learning_rate = 0.0: above 0"),
        (lambda: scored(gradients=never(), momentum=-0.1), "momentum = -0.1 is out of range"),
        (
            lambda: scored(gradients=never(), weight_decay=-1e-3),
            "weight_decay = -0.001 is out of range",
        ),
        (
            lambda: scored(gradients=never(), terms="I5"),
            "terms = 'I5' .* Allowed: all, loss, I1, I2, I3, I4",
        ),
        (lambda: scored(gradients=never(), terms=("I1", "los")), "Did you mean 'loss'"),
        (lambda: scored(gradients=never(), terms=()), "terms is empty"),
        (
            lambda: scored(gradients=never(), mean_gradient=MEAN[1:]),
            r"mean_gradient has shape \(6,\).* P = 7",
        ),
        (lambda: scored(gradients=GRADIENTS[:, 1:]), r"gradients have shape \(40, 6\): \[N, 7\]"),
        (lambda: scored(members_known=MEMBERS[1:]), r"members_known has shape \(39,\): \(40,\)"),
        (lambda: scored(loss=LOSS[1:]), r"loss has shape \(39,\): \(40,\)"),
        (
            lambda: scored(inverse_hessian=[INVERSE, hessian.inverse(HESSIAN.copy())]),
            "different decompositions",
        ),
        (lambda: scored(inverse_hessian=[]), "empty sequence"),
        (lambda: scored(inverse_hessian=INVERSE.matrix()[:, 1:]), r"\(7, 6\): \[P, P\]"),
        (lambda: iha.forms(never(), INVERSE, MEAN, THETA[1:]), r"theta has shape \(6,\)"),
        (
            lambda: iha.split(FOUND, 0, SIZE, iha.Sgd(*RATES), stationary=True),
            r"needs forms\(\.\.\., theta=w\)",
        ),
        (lambda: iha.from_solutions(GRADIENTS, MEAN[1:], GRADIENTS), r"along \(6,\)"),
        (
            lambda: baselines.self_influence(GRADIENTS[:, 1:], INVERSE),
            r"gradients have shape \(40, 6\): \[N, 7\]",
        ),
        (lambda: baselines.self_influence(iter(()), INVERSE), "no record"),
        (lambda: baselines.self_influence(never(), INVERSE.matrix()[:, 1:]), r"\(7, 6\): \[P, P\]"),
    ],
)
def test_bad_input_says_what_is_wrong(call, words):
    with warnings.catch_warnings(), pytest.raises(MiaError, match=words):
        warnings.simplefilter("error")
        call()
