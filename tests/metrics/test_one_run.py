"""A bound on epsilon from one run: closed forms, coins of randomised response whose epsilon is known, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mia_lib import metrics
from mia_lib.errors import MiaError


def randomised_response(rng, canaries, epsilon, delta=0.0):
    """Coins, and what an (epsilon, delta)-private mechanism says of them: each of itself, the truth with the chance that
    epsilon allows, and with chance delta gives it away for sure."""
    coins = rng.random(canaries) < 0.5
    said = coins ^ (rng.random(canaries) > 1 / (1 + math.exp(-epsilon)))
    return np.where(rng.random(canaries) < delta, 2 * coins - 1.0, 0.5 * said - 0.25), coins


def test_the_chance_is_a_binomial_tail_and_delta_adds_what_theorem_3_1_says_plain_loop():
    assert metrics.one_run_p_value(7, 9, 50, 1.3) == pytest.approx(
        sum(math.comb(9, k) * math.exp(1.3 * k) for k in (7, 8, 9)) / (1 + math.exp(1.3)) ** 9
    )
    assert metrics.one_run_p_value(0, 9, 50, 1.3, 0.1) == 1
    right, guesses, canaries, epsilon, delta = 14, 20, 60, 0.8, 1e-3
    chance = stats.binom(guesses, math.exp(epsilon) / (1 + math.exp(epsilon))).pmf(
        np.arange(guesses + 1)
    )
    worst = max(sum(chance[max(right - i, 0) : right]) / i for i in range(1, canaries + 1))
    assert metrics.one_run_p_value(right, guesses, canaries, epsilon, delta) == pytest.approx(
        chance[right:].sum() + 2 * canaries * delta * worst
    )


@pytest.mark.parametrize(
    "right, guesses, canaries, epsilon, delta, p",
    [
        # by the code of the paper's Appendix D, and by jax_privacy.auditing of Google DeepMind (Apache 2.0), run beside
        (90, 100, 1000, 2.0, 0.0, 0.3425540546249235),
        (90, 100, 1000, 2.0, 1e-5, 0.3449868367938024),
        (300, 400, 1000, 1.0, 1e-4, 0.22174441631519715),
    ],
)
def test_it_is_what_public_implementations_give(right, guesses, canaries, epsilon, delta, p):
    assert metrics.one_run_p_value(right, guesses, canaries, epsilon, delta) == pytest.approx(
        p, rel=1e-6
    )


def test_guesses_that_are_all_right_refute_what_would_make_them_rare_and_equal_scores_nothing():
    coins, sorted_coins = np.arange(400) % 2 == 0, np.arange(400) < 200  # members first
    bound = metrics.epsilon_one_run(coins, coins, (50, 50))
    chance = 0.05 ** (1 / 100)  # of one guess, where all of them have 5 %
    assert bound == pytest.approx(math.log(chance / (1 - chance)), abs=1e-5)
    assert (bound.guessed_in, bound.guessed_out, bound.right, bound.canaries) == (50, 50, 100, 400)
    assert metrics.epsilon_one_run(~coins, coins, (50, 50)) == 0
    for order in (sorted_coins, ~sorted_coins):
        assert metrics.epsilon_one_run(np.zeros(400), order, (100, 100)) < 0.5


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 60), st.data())
def test_more_right_guesses_show_more_and_delta_canaries_and_confidence_less(guesses, data):
    right = data.draw(st.integers(1, guesses))
    coins = np.arange(2 * guesses) % 2 == 0

    def bound(right, delta=0.0, confidence=0.9, more=0):
        scores, members = np.where(coins, 1.0, 0.0), np.r_[coins, np.arange(2 * more) % 2 == 0]
        scores[np.flatnonzero(coins)[:right]] = 2  # said to be in, and are
        scores[np.flatnonzero(~coins)[: guesses - right]] = 2
        return metrics.epsilon_one_run(
            np.r_[scores, np.full(2 * more, -1.0)], members, (guesses, 0), delta, confidence
        )

    assert bound(right).right == right
    assert bound(right) >= bound(right - 1)
    assert bound(right) >= bound(right, 1e-3) - 1e-5
    assert bound(right, 1e-3) >= bound(right, 1e-2) - 1e-5
    assert bound(right, 1e-3) >= bound(right, 1e-3, more=30) - 1e-5
    assert bound(right) >= bound(right, confidence=0.99)


@pytest.mark.parametrize("epsilon, delta", [(0.0, 0.0), (1.0, 0.0), (3.0, 0.0), (1.0, 0.002)])
def test_it_is_above_the_truth_no_more_often_than_its_confidence_allows_and_close_below(
    epsilon, delta
):
    rng = np.random.default_rng([1, int(10 * epsilon)])
    runs = [randomised_response(rng, 1000, epsilon, delta) for _ in range(100)]
    bounds = np.array(
        [metrics.epsilon_one_run(scores, coins, (100, 100), delta, 0.8) for scores, coins in runs]
    )
    assert np.mean(bounds > epsilon) <= 0.2 + 2 * math.sqrt(0.2 * 0.8 / 100)
    if not delta:  # where Theorem 3.1 is exact, but for the steps of a binomial
        assert np.mean(bounds > epsilon) >= 0.08 and np.median(bounds) > epsilon - 0.4


def test_the_best_of_several_numbers_of_guesses_is_corrected():
    """Uncorrected, the best of many is above the truth too often."""
    rng, pairs = np.random.default_rng(3), [(k, k) for k in range(5, 100, 10)]
    runs = [randomised_response(rng, 200, 1.0) for _ in range(40)]
    runs = [(scores + 0.01 * rng.random(200), coins) for scores, coins in runs]
    together = np.array([metrics.epsilon_one_run(*run, pairs, confidence=0.8) for run in runs])
    singly = np.array(
        [max(metrics.epsilon_one_run(*run, pair, confidence=0.8) for pair in pairs) for run in runs]
    )
    assert np.mean(together > 1) <= 0.2 < np.mean(singly > 1)
    one = metrics.epsilon_one_run(*runs[0], [(20, 20), (20, 20)], confidence=0.8)
    assert one == pytest.approx(
        metrics.epsilon_one_run(*runs[0], (20, 20), confidence=0.9), abs=2e-6
    )


COINS = np.arange(40) % 2 == 0


@pytest.mark.parametrize(
    "change, says",
    [
        ({"guesses": 100}, "a pair"),
        ({"guesses": (1.5, 2)}, "a pair"),
        ({"guesses": [(1, 2), (3,)]}, "a pair"),
        ({"guesses": (30, 30)}, "1 to 40"),
        ({"guesses": (0, 0)}, "1 to 40"),
        ({"guesses": (-1, 3)}, "1 to 40"),
        ({"confidence": 1.0}, "confidence = 1.0"),
        ({"delta": -1}, "delta"),
        ({"scores": np.tile(np.arange(40), (2, 1)), "members": np.tile(COINS, (2, 1))}, "one run"),
        ({"members": np.arange(40) < 2}, "fair coins"),
    ],
)
def test_what_cannot_be_right_is_refused(change, says):
    with pytest.raises(MiaError, match=says):
        metrics.epsilon_one_run(
            **{"scores": np.arange(40), "members": COINS, "guesses": (5, 5)} | change
        )


@pytest.mark.parametrize(
    "numbers, says",
    [((5, 4, 10, 1.0), "right"), ((4, 11, 10, 1.0), "guesses"), ((1, 1, 1, -1.0), "epsilon")],
)
def test_chances_of_impossible_numbers_are_refused(numbers, says):
    with pytest.raises(MiaError, match=says):
        metrics.one_run_p_value(*numbers)
