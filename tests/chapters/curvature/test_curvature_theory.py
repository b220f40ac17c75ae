"""What differential privacy lets a score reveal, against enumeration, integration and mechanisms made by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import rel_entr

from mia_book.chapters.curvature import theory
from mia_lib.errors import MiaError

EPSILONS = (0.0, 0.05, 0.5, 1.0, 3.0, 20.0)


def kl(p, q):
    return rel_entr(p, q).sum(-1)


def stochastic(rng, rows, columns):
    matrix = rng.dirichlet(np.full(columns, rng.choice([0.1, 1.0, 10.0])), rows)
    matrix[:, rng.random(columns) < 0.2] = 0
    matrix[:, 0] += 1e-3
    return matrix / matrix.sum(1, keepdims=True)


def private(rng, epsilon, outputs):
    """Two laws of a random epsilon-private mechanism: randomised response or the exponential mechanism, post-processed."""
    if rng.random() < 0.5:
        laws = theory.randomised_response(epsilon, int(rng.integers(2, 6)))[:2]
    else:
        weights = np.exp(rng.uniform(0, epsilon / 2, (2, 7))) * rng.dirichlet(np.ones(7))
        laws = weights / weights.sum(1, keepdims=True)
    return laws @ stochastic(rng, laws.shape[1], outputs)


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_randomised_response_is_private_with_exactly_its_epsilon(epsilon, classes):
    matrix = theory.randomised_response(epsilon, classes)
    assert matrix.shape == (classes, classes)
    assert_allclose(matrix.sum(1), 1, rtol=1e-12)
    assert_allclose(np.log(matrix[:, None] / matrix).max(), epsilon, atol=1e-12)
    assert (matrix.argmax(1) == np.arange(classes)).all() or epsilon == 0
    assert kl(matrix[0], matrix[1]) == pytest.approx(
        epsilon * np.expm1(epsilon) / (np.exp(epsilon) + classes - 1)
    )  # by hand


def test_randomised_response_by_hand():
    assert_allclose(
        theory.randomised_response(np.log(3), 3),
        [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]],
    )
    assert_allclose(theory.randomised_response(2000.0, 4), np.eye(4))


def worlds(count, seed=0):
    """Random constants with epsilon: some flat in m, some with thresholds beyond any data set, many that need none."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        loss_bound, gamma, bias, rho, alpha = 10 ** rng.uniform(-2, 2, 5) * np.array(
            [1, 0.01, 0.01, 0.1, 1]
        )
        gamma, bias, rho = (value * (rng.random() < 0.7) for value in (gamma, bias, rho))
        yield (
            theory.CurvatureWorld(loss_bound, gamma, bias, rho, alpha),
            rng.uniform(0.01, 10),
            rng,
        )


WORLD = theory.CurvatureWorld(
    loss_bound=2.0, gamma=0.1, bias=0.3, hessian_lipschitz=1.5, alpha_cubed=4.0
)


def test_curvature_world_by_hand_and_of_arrays():
    assert WORLD.c(5) == pytest.approx(19 * 0.1 + 8 * 0.3 + 1.0 + 2.0)  # Eq. 9: 7.3
    # Eq. 15: 12.3
    assert WORLD.mean_bound(5, np.log(2)) == pytest.approx(2 * (5 * 0.5 + 1) + 7.3 - 2)
    m, epsilon = np.array([1, 10, 100]), np.array([[0.0], [1.0]])
    bound = WORLD.mean_bound
    assert_allclose(bound(m, epsilon), [[bound(int(a), float(e[0])) for a in m] for e in epsilon])


@settings(deadline=None, max_examples=200)
@given(epsilon=st.floats(0, 6), seed=st.integers(0, 2**32 - 1))
def test_step_five_of_lemma_a_1_private_training_is_stable(epsilon, seed):
    rng = np.random.default_rng(seed)
    laws = private(rng, epsilon, 6)
    gap = np.abs((laws[0] - laws[1]) @ (3.0 * rng.random((6, 40)))).max()
    assert gap <= 3.0 * -np.expm1(-epsilon) + 1e-12
    assert gap <= 3.0 * np.tanh(epsilon / 2) + 1e-12  # the sharp form


def test_lemma_a_1_as_printed_fails_in_one_dimension_and_corrected_holds():
    """Every model has the loss x^2 (1 - |x|); records -1, 0 and 1. No risk, no gap, no dependence on the data."""
    x = np.linspace(-1, 1, 200_001)
    loss = x**2 * (1 - np.abs(x))
    second = np.gradient(np.gradient(loss, x), x)[2:-2]
    curvature, rho = second[len(second) // 2], np.abs(np.diff(second)).max() / (x[1] - x[0])
    assert curvature == pytest.approx(2, abs=1e-3)
    assert loss.min() == 0
    assert rho == pytest.approx(6, rel=0.05)
    world = theory.CurvatureWorld(loss.max(), 0.0, 0.0, 6.0, 1.0)
    assert world.mean_bound(3, 0.0) == pytest.approx(1 + 4 / 27)
    assert world.mean_bound(3, 0.0) < curvature < 2 * world.mean_bound(3, 0.0)


def test_random_mechanisms_are_private_and_randomised_response_is_farthest_apart():
    found = theory.mechanisms(200, seed=4)
    cap = found["epsilon"] * np.tanh(found["epsilon"] / 2)  # sharper than Theorem 4.1's epsilon
    assert (found["kl"] <= cap + 1e-9).all() and len(found) == 240
    attained = found["kind"] == "randomised response"
    assert_allclose(found["kl"][attained], cap[attained], rtol=1e-9)


@pytest.mark.parametrize(
    "call,named",
    [
        (lambda: theory.randomised_response(-1.0, 2), "epsilon"),
        (lambda: theory.randomised_response(1.0, 1), "classes"),
        (lambda: WORLD.c(0), "m = "),
        (lambda: WORLD.mean_bound(1, -1), "epsilon"),
        (lambda: theory.CurvatureWorld(0.0, 0, 0, 0, 0), "loss_bound"),
        (lambda: theory.CurvatureWorld(1.0, 0, np.inf, 0, 0), "bias"),
    ],
)
def test_bad_input_is_refused_by_name(call, named):
    with pytest.raises(MiaError, match=named):
        call()
