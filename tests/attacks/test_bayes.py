"""MALT, MAST and MATT against loops and limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mia_lib import attacks, membership
from mia_lib.attacks import baselines, bayes
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)
R, N = 8, 40
LOSS = RNG.exponential(size=N)
REFERENCE_LOSS = RNG.exponential(size=(R, N))
MEMBERS = membership.balanced_halves(N, R)


def loop_best_split(losses, members):
    order = np.sort(np.unique(losses))
    candidates = (order[1:] + order[:-1]) / 2
    gains = [np.mean(losses[members] < t) + np.mean(losses[~members] > t) for t in candidates]
    return np.mean([t for t, g in zip(candidates, gains, strict=True) if g >= max(gains) - 1e-12])


def test_best_split_is_what_a_loop_over_thresholds_finds():
    expected = [loop_best_split(REFERENCE_LOSS[:, i], MEMBERS[:, i]) for i in range(N)]
    assert_allclose(bayes.best_split(REFERENCE_LOSS, MEMBERS), expected)
    members = np.array([[1], [1], [0], [0]], bool)  # of losses that are tied
    assert bayes.best_split(np.full((4, 1), 7.0), members) == 7
    assert bayes.best_split(np.array([[1.0], [1], [1], [3]]), members) == 2


def test_means_and_softmin_are_what_loops_say():
    inside, out = (
        [REFERENCE_LOSS[side[:, i], i] for i in range(N)] for side in (MEMBERS, ~MEMBERS)
    )
    assert_allclose(
        bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "middle"),
        [(a.mean() + b.mean()) / 2 for a, b in zip(inside, out, strict=True)] - LOSS,
    )
    assert_allclose(
        bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "mean_out"), [o.mean() for o in out] - LOSS
    )
    for t in (0.5, 1.0, 3.0):
        softmin = np.array([-t * np.log(np.mean(np.exp(-o / t))) for o in out])
        assert_allclose(bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "softmin", t), softmin - LOSS)


def test_softmin_is_below_the_mean_and_reaches_it_when_hot_and_the_minimum_when_cold():
    mean = bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "mean_out")
    assert (bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "softmin") <= mean + 1e-12).all()
    assert_allclose(bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "softmin", 1e5), mean, atol=1e-3)
    cold = bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "softmin", 1e-3) + LOSS
    assert_allclose(cold, np.where(MEMBERS, np.inf, REFERENCE_LOSS).min(0), atol=0.01)


def test_equation_37_with_38_is_39():
    p = 6
    a = RNG.normal(size=(p, p))
    hessian = a @ a.T + np.eye(p)
    g = RNG.normal(size=(3, p))
    theta = RNG.normal(size=p)
    theta0 = RNG.normal(size=p)
    shift = -np.linalg.solve(hessian, g.T).T
    eq37 = shift @ hessian @ (theta - theta0) - 0.5 * np.einsum(
        "np,pq,nq->n", shift, hessian, shift
    )
    assert_allclose(bayes.matt(theta, theta0, g) + bayes.matt_second_term(g, hessian), eq37)


def test_membership_posterior_of_a_zero_score_is_the_prior():
    assert_allclose(bayes.membership_posterior(np.zeros(3), 0.2), 0.2)
    assert bayes.membership_posterior(np.array([50.0]), 0.5) > 0.999


def test_unsigned_losses_keep_their_order():
    for kind in (np.uint8, bool, np.int64):
        assert_allclose(bayes.malt(np.array([0, 1, 1, 0], kind)), [0, -1, -1, 0])
    assert bayes.malt(LOSS.astype(np.float32)).dtype == np.float32


def test_threat_model_table_is_made_from_what_the_attacks_declare():
    table = attacks.threat_model({"0-1": baselines.gap, "MATT": bayes.matt})
    assert table["access to the target"].tolist() == ["label", "parameters"]
    assert table["reference models"].tolist() == ["none", "out only"]


@pytest.mark.parametrize(
    "call,words",
    [
        (
            lambda: bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "mean"),
            "estimator = 'mean' is not known",
        ),
        (
            lambda: bayes.mast(LOSS, REFERENCE_LOSS, np.ones((R, N), bool), "mean_out"),
            "have no reference that left it out",
        ),
        (lambda: bayes.mast(LOSS, REFERENCE_LOSS, np.zeros((R, N), bool)), "was trained on it"),
        (lambda: bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "softmin", 0.0), "temperature"),
        (lambda: bayes.matt(np.zeros(3), np.zeros(3), np.zeros((5, 2))), "do not fit"),
        (lambda: bayes.membership_posterior(0.0, 1.0), "strictly between"),
        (
            lambda: baselines.shadow_models(
                np.zeros((4, 2)), np.zeros(4), np.zeros((2, 3, 3)), np.zeros(3), np.zeros((2, 3))
            ),
            "needed",
        ),
        (
            lambda: baselines.shadow_models(
                np.eye(2)[[0, 1, 1, 0]],
                np.zeros(4),
                np.full((2, 4, 2), 0.5),
                np.zeros(4),
                np.eye(2, 4) > 0,
            ),
            "10 of each",
        ),
        (lambda: attacks.needs("loss", "some", "")(len), "references = 'some'"),
    ],
)
def test_bad_input_says_what_is_wrong(call, words):
    with pytest.raises(MiaError, match=words):
        call()
