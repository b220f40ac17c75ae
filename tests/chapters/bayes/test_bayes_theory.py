"""The mathematics of the Bayes-optimal chapter, against enumeration, simulation and values worked out by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit
from scipy.stats import multivariate_normal as normal

from mia_book.chapters.bayes import theory
from mia_lib import metrics
from mia_lib.errors import MiaError


def world(n=3, temperature=0.7, prior=0.5, loss=None):
    loss = np.random.default_rng(1).random((7, 3)) * 2 if loss is None else loss
    return theory.FiniteWorld(loss, n, temperature, prior)


@pytest.mark.parametrize("n,temperature,prior", [(2, 0.2, 0.5), (3, 0.7, 0.5), (4, 1.0, 0.3)])
def test_theorem_one_is_exact_under_the_posterior_law_and_the_log_ratio_is_the_score_of_theorem_two(
    n, temperature, prior
):
    both = theory.theorem_one(world(n, temperature, prior))
    assert_allclose(both["theorem"], both["truth"], atol=1e-13)
    # the other reading is another number
    assert np.abs(both["prior_law"] - both["truth"]).max() > 1e-3
    assert np.abs(both["ratio"]).max() > 0.1
    assert_allclose(both["ratio_minus_score"], 0, atol=1e-12)
    assert ((both["score"] > 0) == (both["given_setting"] > prior)).all()
    assert_allclose(both["given_setting"], expit(both["score"] + logit(prior)), atol=1e-12)


def test_a_hotter_posterior_usually_gives_less_away_but_not_always_and_nothing_in_the_limit():
    accuracy = [theory.best_rule_accuracy(world(temperature=t)) for t in (0.05, 0.5, 5.0)]
    assert accuracy[0] > accuracy[1] > accuracy[2] > 0.5
    assert theory.best_rule_accuracy(world(temperature=1e6)) == pytest.approx(0.5, abs=1e-4)
    loss = np.random.default_rng(5).uniform(0, 2, (7, 3))
    loss[1, 0] = loss[0, 0]
    cold, warm = (theory.best_rule_accuracy(world(temperature=t, loss=loss)) for t in (1e-3, 1e6))
    assert cold > warm


def test_best_rule_accuracy_is_what_its_posterior_says():
    small = world(n=2)
    truth, (totals, weights), total = theory.theorem_one(small)["truth"], small.settings(), 0.0
    p_out = small.posterior(totals)
    for z in range(3):
        evidence = sum(
            w * (0.5 * small.posterior(t + small.loss[:, z]) + 0.5 * p)
            for w, t, p in zip(weights, totals, p_out, strict=True)
        )
        total += (evidence * np.maximum(truth[:, z], 1 - truth[:, z])).sum() / 3
    assert theory.best_rule_accuracy(small) == pytest.approx(total)


def test_gaussian_tau_is_the_softmin_of_the_loss_over_the_law_of_the_model():
    z = np.array([1.0, -0.5, 2.0])
    models = np.random.default_rng(2).normal(size=(400_000, 3)) / np.sqrt(10)
    simulated = -np.log(np.exp(-theory.gaussian_loss(models, z)).mean())
    assert theory.gaussian_tau(z, 0.0, 10) == pytest.approx(simulated, abs=0.01)


def test_gaussian_log_ratio_is_the_ratio_of_normal_densities():
    k, (theta, z) = 5, np.random.default_rng(0).normal(size=(2, 3))
    inside = normal(z / k, (k - 1) / k**2).logpdf(theta)
    outside = normal(np.zeros(3), 1 / k).logpdf(theta)
    assert theory.gaussian_log_ratio(theta, z, 0.0, k) == pytest.approx(inside - outside)


def test_gaussian_games_reach_the_closed_form_and_mast_ranks_like_the_exact_ratio():
    games = theory.gaussian_games(n=100, d=200, games=80, seed=3)
    closed = theory.gaussian_auc(200, 50)
    auc = {
        name: metrics.auc(getattr(games, name), games.members).mean()
        for name in ("malt", "mast", "exact")
    }
    assert auc["malt"] == pytest.approx(closed["MALT"], abs=0.02)
    assert auc["mast"] == pytest.approx(closed["MAST"], abs=0.02)
    assert auc["exact"] == pytest.approx(auc["mast"], abs=0.002)


def test_zero_separates_the_two_bumps_only_with_the_constant_the_paper_drops():
    games = theory.gaussian_games(seed=4)
    inside, outside = games.mast[games.members].mean(), games.mast[~games.members].mean()
    assert inside == pytest.approx(20, abs=3) and outside == pytest.approx(-20, abs=3)


def test_privacy_caps_agree_to_first_order_and_the_sharp_one_is_never_above():
    for prior in (0.5, 0.1, 0.01):
        cap = theory.privacy_cap(np.linspace(0, 5, 60), prior)
        assert (cap["sharp"] <= cap["printed"] + 1e-12).all()
    assert theory.privacy_cap(0.01, 0.5)["printed"] == pytest.approx(0.5025)
    assert theory.privacy_cap(1.0, 0.1)["sharp"] == pytest.approx(0.2320, abs=1e-4)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: theory.gaussian_games(n=5), "n = 5 must be even"),
        (lambda: theory.gaussian_games(n=2), "= 2 .*at least 4"),
        (lambda: theory.gaussian_log_ratio(0.0, np.zeros(3), 0.0, 1), "members = 1 .*at least 2"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(MiaError, match=words):
        call()
