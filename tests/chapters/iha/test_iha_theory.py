"""Where SGD comes to rest, against simulation, exact equations for the second moments, refits and Gaussian densities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg
from scipy.stats import multivariate_normal

from mia_book.chapters.iha import theory
from mia_lib.errors import MiaError

# learning rate, momentum, weight decay
RATES = [(0.3, 0.0, 0.0), (0.3, 0.9, 0.0), (0.1, 0.5, 0.05), (0.5, 0.9, 0.2)]


def test_theorem_2_2_by_hand_by_a_solver_and_without_momentum_as_a_geometric_series():
    """kappa = 0.3 * 1.7 / 1.9, variance 0.09 / (0.19 * kappa * (2 - kappa)) = 1.0191."""
    assert theory.stationary_variance(1.7, 1.0, 0.3, 0.9) == pytest.approx(1.0191, abs=5e-5)
    # the linear recursion of Eq. 2 for (w, h), by a generic solver
    for learning_rate, momentum, alpha in RATES:
        k, root = 1.2 + alpha, np.array([[-learning_rate], [1.0]])
        step = np.array([[1 - learning_rate * k, -learning_rate * momentum], [k, momentum]])
        variance = linalg.solve_discrete_lyapunov(step, 0.7 * root @ root.T)[0, 0]
        assert theory.stationary_variance(k, 0.7, learning_rate, momentum) == pytest.approx(
            variance
        )
    k = np.array([0.1, 1.0, 3.0])
    assert_allclose(theory.stationary_variance(k, 2.0, 0.5), 0.5**2 * 2 / (1 - (1 - 0.5 * k) ** 2))


def test_where_the_recursion_stops_forgetting_is_refused_with_the_limit():
    assert theory.stationary_variance(379.0, 1.0, 0.01, 0.9) > 0
    for curvature in (381.0, 0.0, -1.0):
        with pytest.raises(MiaError, match="below 380"):
            theory.stationary_variance(curvature, 1.0, 0.01, 0.9)


def test_a_world_is_what_it_says():
    world = theory.linear_regression(50, 3, seed=6)
    w, e = np.array([0.3, -1.0, 0.5]), 1e-5 * np.eye(3)
    slopes = np.stack([(world.losses(w + d) - world.losses(w - d)) / 2e-5 for d in e], 1)
    assert_allclose(world.gradients(w), slopes, atol=1e-8)
    assert_allclose(
        world.hessian,
        [(world.gradients(w + d) - world.gradients(w - d)).mean(0) / 2e-5 for d in e],
        atol=1e-8,
    )
    assert_allclose(world.gradients(world.optimum()).mean(0), 0, atol=1e-12)
    assert_allclose(
        world.gradients(world.optimum(0.3)).mean(0), -0.3 * world.optimum(0.3), atol=1e-12
    )
    with pytest.raises(MiaError, match="records"):
        theory.linear_regression(3, 3)


def test_theorem_2_3_in_linear_regression():
    """The noise of a batch is 2 L* H / S where all losses are alike, as of residuals that do not depend on the input."""
    world = theory.linear_regression(20_000, 6, noise=0.7, seed=5)
    theta = world.optimum()
    measured = np.cov(world.gradients(theta).T, bias=True)
    predicted = 2 * world.losses(theta).mean() * world.hessian
    assert np.linalg.norm(predicted - measured) < 0.04 * np.linalg.norm(measured)


def test_real_minibatches_wander_as_equation_4_says_and_not_as_boltzmann():
    frame = theory.spectrum(
        theory.linear_regression(500, 6, noise=0.5, seed=2), 32, 0.1, 0.9, groups=8, seed=2
    )
    mean = frame.groupby("eigenvalue")[["simulated", "equation_4", "boltzmann"]].mean()
    assert_allclose(mean["simulated"], mean["equation_4"], rtol=0.25)
    slopes = {name: np.polyfit(np.log(mean.index), np.log(mean[name]), 1)[0] for name in mean}
    assert slopes["boltzmann"] == pytest.approx(-1)
    assert abs(slopes["simulated"]) < 0.15 > abs(slopes["equation_4"])
    assert len(frame) == 8 * 6


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("d", [1, 4])
def test_theorem_3_1_is_a_normal_density_up_to_the_constant_that_it_names(rates, d):
    rng, size, least = np.random.default_rng(11), 8, 0.4
    learning_rate, momentum, alpha = rates
    q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    h = q @ np.diag(rng.uniform(0.3, 3.0, d)) @ q.T
    w, theta = rng.standard_normal((2, d))
    a, eye = learning_rate / (1 + momentum), np.eye(d)
    inverse = (
        size
        * (1 - momentum)
        / (2 * learning_rate * least)
        * (2 * (1 - a * alpha) * eye - a * h + alpha * (2 - a * alpha) * np.linalg.inv(h))
    )  # Eq. 12
    wanted = multivariate_normal(w, np.linalg.inv(inverse)).logpdf(theta)
    each = size * (1 - momentum)
    constant = d / 2 * np.log(each / (4 * np.pi * learning_rate)) - each / (2 * (1 + momentum))
    found = constant + theory.log_density(theta, w, h, least, size, *rates)
    # the product of (2 - a (s + alpha)) (s + alpha) / s and Eq. 12 differ by terms of second order in alpha
    assert found == pytest.approx(wanted, abs=1e-9 if alpha == 0 else 2 * d * alpha)


def test_theorem_3_2_is_the_ratio_of_the_two_densities():
    assert theory.worlds(50, seed=3) < 1e-9


def test_the_minimum_moves_by_as_much_as_the_loss():
    """L_1* - L_0*, which Assumption 3 drops, lies between the record's loss at the one minimum and at the other, over n."""
    world = theory.linear_regression(40, 3, seed=9)
    n, others = 40, theory.LinearWorld(world.x[1:], world.y[1:])
    with_it, without = world.optimum(), others.optimum()
    difference = world.losses(with_it).mean() - world.losses(without)[1:].sum() / n
    assert world.losses(with_it)[0] / n <= difference <= world.losses(without)[0] / n
