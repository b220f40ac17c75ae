"""False positive rates of fitted thresholds: loops and brute force, closed forms, and the numbers of the paper's theorems."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize, stats

from mia_lib.errors import MiaError
from mia_lib.metrics import pinball_loss, precision_at_fpr, tpr_at_fpr
from mia_lib.papers.quantile import theory

WORLD = theory.HeteroscedasticWorld()


# ------------------------------------------------------------------------------------------- the pinball loss (Lemma 2)


@pytest.mark.parametrize("threshold", [-4.0, 2.0, 5.845, 30.0])
@pytest.mark.parametrize("level", [0.05, 0.9, 0.999])
def test_expected_pinball_of_a_gaussian_is_its_integral(threshold, level):
    def loss(s):
        return max((1 - level) * (threshold - s), level * (s - threshold)) * stats.norm.pdf(s, 2, 3)

    expected = sum(integrate.quad(loss, *ends, epsabs=1e-13)[0] for ends in [(-40, threshold), (threshold, 40)])
    assert theory.gaussian_pinball(threshold, level, 2.0, 3.0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("alpha", "quantile"), [(0.1, 5.845), (0.01, 8.979)])
def test_expected_pinball_is_least_at_the_quantile(alpha, quantile):
    assert 2 + 3 * stats.norm.ppf(1 - alpha) == pytest.approx(quantile, abs=5e-4)
    found = optimize.minimize_scalar(lambda q: theory.gaussian_pinball(q, 1 - alpha, 2, 3), (0, 10), tol=1e-10)
    assert found.x == pytest.approx(quantile, abs=1e-3)
    assert found.fun == pytest.approx(3 * stats.norm.pdf(stats.norm.ppf(1 - alpha)), rel=1e-9)


def test_expected_pinball_at_its_own_quantile():
    levels = np.array([0.99, 0.999])
    least = theory.gaussian_pinball(stats.norm.ppf(levels), levels)
    assert_allclose(least, [0.0267, 0.00337], rtol=2e-3)  # 8 times less at a tenth of the rate
    assert_allclose(theory.gaussian_pinball(1 + 5 * stats.norm.ppf(levels), levels, 1, 5), 5 * least)


# ---------------------------------------------------------------------------------------------------------- Lemma 3


@pytest.mark.parametrize(("alpha", "other"), [(0.05, 0.2), (0.2, 0.05), (0.01, 0.011)])
def test_a_uniform_residual_attains_lemma_3_and_refutes_the_square_alone(alpha, other):
    found = theory.lemma_three(alpha, other)
    assert found["gap"] == pytest.approx((alpha - other) ** 2 / 2, rel=1e-7)
    assert found["gap"] == pytest.approx(found["bound"], rel=1e-7) and found["gap"] < found["square"]


def test_the_gap_by_hand():
    assert theory.lemma_three(0.05, 0.2)["gap"] == pytest.approx(0.01125)
    assert theory.lemma_three(0.05, 0.2)["square"] == pytest.approx(0.0225)


@pytest.mark.parametrize("name", list(theory.RESIDUALS))
@pytest.mark.parametrize("alpha", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("other", [0.9, 0.2, 0.011])
def test_the_bound_holds_and_the_gap_is_a_difference_of_losses(name, alpha, other):
    law, found = theory.RESIDUALS[name], theory.lemma_three(alpha, other, name)
    assert found["gap"] >= found["bound"] * (1 - 1e-7) > 0

    def loss(q):  # E PB = (1 - level) int_(-inf)^q F + level int_q^inf (1 - F)
        low, high = law.ppf(1e-15), law.ppf(1 - 1e-15)
        return alpha * integrate.quad(law.cdf, low, q, limit=200)[0] + (1 - alpha) * integrate.quad(
            lambda u: 1 - law.cdf(u), q, high, limit=200)[0]

    assert loss(law.ppf(1 - other)) - loss(law.ppf(1 - alpha)) == pytest.approx(found["gap"], rel=1e-4, abs=1e-9)
    assert found["shift"] == pytest.approx(law.ppf(1 - alpha) - law.ppf(1 - other))


def test_lemma_3_of_a_residual_of_ones_own():
    narrow = theory.Residual(stats.uniform(0, 0.1).cdf, stats.uniform(0, 0.1).ppf, 10.0)
    found = theory.lemma_three(0.05, 0.2, narrow)
    assert found["gap"] == pytest.approx(found["bound"]) and found["square"] == pytest.approx(20 * found["bound"])


# ------------------------------------------------------------------------------------------------- the world of Theorem 2


def test_the_oracle_has_its_rate_at_every_x():
    x, score = WORLD.sample(200_000, seed=3)
    above = score >= WORLD.quantile(x, 0.95)
    for group in (x < -1, np.abs(x) <= 1, x > 1):
        assert stats.binomtest(int(above[group].sum()), int(group.sum()), 0.05).pvalue > 1e-4
    assert WORLD.rate(lambda x: WORLD.quantile(x, 0.95)) == pytest.approx(0.05, abs=1e-12)


def test_rates_by_integration_are_those_of_samples():
    for members, expected in ((False, 0.05), (True, None)):
        x, score = WORLD.sample(400_000, seed=5, members=members)
        rate = WORLD.rate(lambda x: np.full_like(x, WORLD.marginal(0.95)), members)
        assert np.mean(score >= WORLD.marginal(0.95)) == pytest.approx(rate, abs=5 * 0.5 / np.sqrt(400_000))
        assert expected is None or rate == pytest.approx(expected, abs=1e-10)


def test_conditional_thresholds_buy_the_most_where_the_rate_is_low():
    """Another sample had .375, .143, .026 and .638, .371, .137; integrals say .3772, .1426, .0282 and .6388, .3721, .1378."""
    found = theory.power(WORLD, [0.05, 0.01, 0.001])
    assert_allclose(found["marginal"], [0.375, 0.143, 0.026], atol=0.003)
    assert_allclose(found["oracle"], [0.638, 0.371, 0.137], atol=0.0015)
    assert (np.diff(found["oracle"] / found["marginal"]) > 0).all()
    x, score = WORLD.sample(100_000, seed=1)
    theirs = WORLD.sample(100_000, seed=2, members=True)
    rank = np.concatenate([(s - WORLD.mean(x)) / WORLD.spread(x) for x, s in [(x, score), theirs]])
    members = np.arange(200_000) >= 100_000
    for one, scores in (("oracle", rank), ("marginal", np.concatenate([score, theirs[1]]))):
        assert tpr_at_fpr(scores, members, 0.01) == pytest.approx(found[one][1], abs=0.01)


# ------------------------------------------------------------------------------------------------ linear quantile regression


def random_world(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    return np.column_stack([np.ones(n), x, x > 0.5]).astype(float), 1 + x + np.exp(0.5 * x) * rng.standard_normal(n)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_linear_quantile_regression_is_the_best_of_all_planes_through_three_records(level):
    features, score = random_world(25)
    fit = theory.quantile_regression(features, score, level)
    best = np.inf
    for rows in np.array(np.meshgrid(*[np.arange(25)] * 3)).reshape(3, -1).T:
        if len(set(rows)) == 3 and abs(np.linalg.det(features[rows])) > 1e-9:
            plane = np.linalg.solve(features[rows], score[rows])
            best = min(best, pinball_loss(features @ plane, score, level))
    assert pinball_loss(features @ fit, score, level) == pytest.approx(best, rel=1e-9)
    assert (np.abs(score - features @ fit) < 1e-9).sum() == 3  # it passes through as many records as it has coefficients


def test_linear_quantile_regression_agrees_with_scikit_learn():
    from sklearn.linear_model import QuantileRegressor

    features, score = random_world(1000, 1)
    theirs = QuantileRegressor(quantile=0.9, alpha=0, fit_intercept=False, solver="highs").fit(features, score)
    assert_allclose(theory.quantile_regression(features, score, 0.9), theirs.coef_, atol=1e-7)


def test_one_column_of_ones_gives_the_order_statistic():
    score = np.random.default_rng(0).standard_normal(501)
    fit = theory.quantile_regression(np.ones((501, 1)), score, 0.95)
    assert fit[0] == pytest.approx(np.sort(score)[475])  # the 476th of 501: 0.95 * 501 is 475.95


def test_rates_on_the_fitted_sample_miss_alpha_by_no_more_than_the_records_that_the_fit_passes_through():
    for seed, (n, alpha) in enumerate([(60, 0.1), (333, 0.07), (2000, 0.05)]):
        features, score = random_world(n, seed)
        fit = theory.quantile_regression(features, score, 1 - alpha)
        groups = np.stack([np.full(n, True), features[:, 2] > 0, features[:, 2] == 0, features[:, 1] < -0.5])
        found = theory.optimality(features, score, fit, alpha, groups)
        assert found["closed"].tolist() == [True, True, True, False]
        assert (found["excess"][:3] == 0).all() and np.isnan(found["excess"][3])
        assert (found["above"][:3] <= alpha + 1e-12).all() and (found["at_or_above"][:3] >= alpha - 1e-12).all()
        assert ((found["at_or_above"] - found["above"]) * found["count"]).sum() <= 3 * 3  # 3 records, each in 3 groups at most
        assert_allclose(found["bound"], 3 / groups.sum(1))


def test_a_threshold_that_is_not_the_best_exceeds_the_bound():
    features, score = random_world(2000)
    fit = theory.quantile_regression(features, score, 0.95) + np.array([0.3, 0, 0])
    excess = theory.optimality(features, score, fit, 0.05, np.full((1, 2000), True))["excess"][0]
    above = np.mean(score > features @ fit)
    assert excess == pytest.approx(0.05 - above - 3 / 2000) and excess > 0.005


def test_group_rates_are_right_in_groups_that_the_class_knows():
    """Against another sample of the same sizes: chance is about .002, in x > 1 .005, and .001 in the loss."""
    found = theory.group_world()
    other = np.array([[0.051, 0.218, 0.020, 0.000], [0.052, 0.093, 0.044, 0.079],
                      [0.050, 0.054, 0.049, 0.061], [0.050, 0.050, 0.050, 0.049]])
    assert_allclose(found["test"], other, atol=0.012)
    assert_allclose(found["test"][:, [0, 2]], other[:, [0, 2]], atol=0.005)
    assert_allclose(found["pinball"][:, 1], [0.1810, 0.1224, 0.1195, 0.1164], atol=0.004)
    x, weight = theory._normal_grid()
    oracle = weight @ theory.gaussian_pinball(WORLD.quantile(x, 0.95), 0.95, WORLD.mean(x), WORLD.spread(x))
    assert oracle == pytest.approx(0.1169, abs=5e-5) and found["pinball"][3, 1] == pytest.approx(oracle, abs=0.0015)
    assert found["parameters"].tolist() == [1, 2, 3, 0]
    assert found["closed"].tolist() == [[True, False, False, False]] * 2 + [[True, True, True, False], [True] * 4]
    assert np.nansum(found["excess"]) == 0 and np.isfinite(found["excess"]).sum() == 5
    assert_allclose(found["fit"][2, :3], 0.05, atol=3 / 3000)  # exact where fitted, up to the three records on it
    assert found["tpr"][0] == pytest.approx(0.377, abs=0.01) and found["tpr"][3] == pytest.approx(0.6388, abs=0.005)
    assert (found["counts"][:, 1] + found["counts"][:, 2] == [20_000, 180_000]).all()
    assert (np.diff(found["pinball"][:, 1]) < 0).all()  # a richer class has the lower loss, and the oracle the least


def test_group_worlds_are_repeated_by_their_seed():
    one, same, other = (theory.group_world(500, 1000, seed=seed) for seed in (1, 1, 2))
    for key in one:
        np.testing.assert_array_equal(one[key], same[key])
    assert (one["test"] != other["test"]).any()


# ----------------------------------------------------------------------------------------------------------- collapse


def test_a_class_that_knows_the_score_has_no_loss_and_accuses_everybody():
    found = theory.collapse()
    assert found["noise"].tolist() == [1.0, 0.1, 0.01, 0.0]
    assert found["pinball"][-1] < 1e-12 and found["at_or_above"][-1] == 1 and found["above"][-1] == 0
    assert_allclose(found["at_or_above"][:-1], 0.05, atol=5 * np.sqrt(0.05 * 0.95 * (1 / 2000 + 1 / 20_000)))
    assert (found["above"][:-1] == found["at_or_above"][:-1]).all()
    assert_allclose(found["pinball"], found["expected"], rtol=0.05, atol=1e-12)


# --------------------------------------------------------------------------------------------------------- conformal law


@pytest.mark.parametrize(("n", "alpha", "order"), [(99, 0.05, 95), (100, 0.05, 96), (19, 0.05, 19), (999, 0.001, 999)])
def test_the_order_of_the_threshold(n, alpha, order):
    found = theory.conformal_law(n, alpha)
    assert found["order"] == order
    assert found["mean"] == pytest.approx((n + 1 - order) / (n + 1)) and found["mean"] <= alpha + 1e-12


def test_rates_of_calibrated_thresholds_follow_the_beta_law_whatever_the_scores():
    rng, n, alpha = np.random.default_rng(0), 199, 0.05
    found = theory.conformal_law(n, alpha)
    scores = np.sort(rng.standard_exponential((4000, n)), 1)
    rates = np.exp(-scores[:, found["order"] - 1])  # the tail of an exponential
    assert stats.kstest(rates, stats.beta(n + 1 - found["order"], found["order"]).cdf).pvalue > 1e-3
    assert rates.mean() == pytest.approx(found["mean"], abs=4 * found["sd"] / np.sqrt(4000))
    assert np.mean((rates >= found["low"]) & (rates <= found["high"])) == pytest.approx(0.95, abs=0.015)
    counted = rng.binomial(300, rates) / 300
    wider = theory.conformal_law(n, alpha, evaluation=300)
    assert counted.std() == pytest.approx(wider["sd"], rel=0.06) and wider["sd"] > found["sd"]
    assert wider["mean"] == pytest.approx(found["mean"])
    assert np.mean((counted >= wider["low"]) & (counted <= wider["high"])) >= 0.94


# ------------------------------------------------------------------------------------------------- precision, refusals


def test_one_point_of_precision_hides_a_factor_of_3_6():
    assert_allclose(theory.true_positive_rate(np.array([0.9873, 0.9964]), 0.001), [0.0777, 0.2768], atol=5e-5)
    scores, members = np.random.default_rng(0).normal(size=4000) + (np.arange(4000) % 2), np.arange(4000) % 2 == 1
    precision, tpr = precision_at_fpr(scores, members, 0.01), tpr_at_fpr(scores, members, 0.01)
    assert theory.true_positive_rate(float(precision), 0.01) == pytest.approx(tpr)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.gaussian_pinball(0.0, 1.0), "level = 1.0 must lie strictly between 0 and 1"),
        (lambda: theory.gaussian_pinball(0.0, 0.9, 0, 0), "standard deviations must be above 0"),
        (lambda: theory.lemma_three(0.1, 0.2, "gaussian"), "Did you mean 'Gaussian'"),
        (lambda: theory.lemma_three(0.1, 0.0), "alpha_prime = 0.0 must lie"),
        (lambda: theory.quantile_regression(np.ones((3, 3)), np.ones(3), 0.9), "N above p"),
        (lambda: theory.quantile_regression(np.ones((9, 2)), np.ones(9), 0.9), "depend on each other"),
        (lambda: theory.quantile_regression(np.ones((9, 1)), np.full(9, np.nan), 0.9), "must be finite"),
        (lambda: theory.optimality(np.ones((9, 1)), np.ones(9), [1.0], 0.1, np.zeros((1, 9))), "group 0 has no records"),
        (lambda: theory.optimality(np.ones((9, 1)), np.ones(8), [1.0], 0.1, np.ones((1, 9))), r"must be \[N, p\]"),
        (lambda: theory.group_world(n=10), "records to fit"),
        (lambda: theory.collapse([-1.0]), "noise = -1.0 is out of range"),
        (lambda: theory.conformal_law(98, 0.01), r"n = 98 scores resolve: the smallest is 1 / \(n \+ 1\) = 0.0101"),
        (lambda: theory.conformal_law(100, 0.05, 0), "evaluation = 0 is out of range"),
        (lambda: theory.true_positive_rate(98.73, 0.001), "both as fractions"),
        (lambda: WORLD.sample(0), "out of range"),
        (lambda: theory.power(WORLD, [0.1, 0.0]), "alpha = "),
    ],
)
def test_what_cannot_be_computed_is_refused(call, message):
    with pytest.raises(MiaError, match=message):
        call()


def test_theory_needs_no_torch(repo):
    code = "import sys; from mia_lib.papers.quantile import theory\n"
    code += "assert 'torch' not in sys.modules and 'catboost' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=repo)
