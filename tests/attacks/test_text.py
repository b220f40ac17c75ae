"""Attacks on tokens: values worked out by hand, limits, and what they do not depend on."""

import numpy as np
import pytest

from mia_lib.attacks import text
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)
OFFSETS = np.array([0, 1, 4, 9, 29])
LOG_PROB = -RNG.exponential(size=(3, 29))
MEAN, VARIANCE = -RNG.exponential(size=(3, 29)), RNG.exponential(size=(3, 29))


def of_record(values, i):
    return values[:, OFFSETS[i] : OFFSETS[i + 1]]


def test_scores_are_those_of_a_loop_over_records():
    for i in range(4):
        own = of_record(LOG_PROB, i)
        n = own.shape[1]
        np.testing.assert_allclose(text.loss(LOG_PROB, OFFSETS)[:, i], -own.mean(1))
        for share in (0.2, 0.5):
            least = np.sort(own, 1)[:, : max(1, int(share * n))].mean(1)
            np.testing.assert_allclose(text.min_k(LOG_PROB, OFFSETS, share)[:, i], least)
        standard = (own - of_record(MEAN, i)) / np.sqrt(of_record(VARIANCE, i))
        least = np.sort(standard, 1)[:, : max(1, int(0.2 * n))].mean(1)
        score = text.min_k_plus(LOG_PROB, MEAN, VARIANCE, OFFSETS)
        np.testing.assert_allclose(score[:, i], least)


def test_all_of_the_tokens_are_the_loss_and_the_order_of_tokens_is_nothing():
    np.testing.assert_allclose(text.min_k(LOG_PROB, OFFSETS, 1.0), -text.loss(LOG_PROB, OFFSETS))
    turned = LOG_PROB.copy()
    turned[:, 9:] = turned[:, :8:-1]
    np.testing.assert_allclose(text.min_k(turned, OFFSETS), text.min_k(LOG_PROB, OFFSETS))


def test_a_bound_on_a_certain_token_keeps_min_k_plus_finite():
    score = text.min_k_plus(np.zeros(2), np.zeros(2), np.zeros(2), np.array([0, 2]))
    assert score.tolist() == [0.0]


def test_over_zlib_is_nats_a_byte():
    assert text.over_zlib(np.array([2.0]), np.array([10]), np.array([40])).tolist() == [-0.5]


@pytest.mark.parametrize(
    "offsets", [[0, 4, 4, 29], [1, 29], [0, 5], [0.0, 29.0], [29], [[0, 29]], [0, 9, 4, 29]]
)
def test_offsets_that_do_not_cut_the_tokens_into_records_are_refused(offsets):
    with pytest.raises(MiaError, match="offsets"):
        text.loss(LOG_PROB, np.array(offsets))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: text.loss(-LOG_PROB, OFFSETS), "a log probability is at most 0"),
        (lambda: text.loss(np.exp(LOG_PROB), OFFSETS), "of probabilities the logarithm"),
        (lambda: text.loss(np.full((3, 29), -np.inf), OFFSETS), "not finite"),
        (lambda: text.min_k(np.where(LOG_PROB > -1, np.nan, LOG_PROB), OFFSETS), "not finite"),
        (lambda: text.min_k(LOG_PROB, 5), "offsets"),
        (lambda: text.min_k(-1.0, OFFSETS), "offsets"),
        (lambda: text.min_k_plus(LOG_PROB, MEAN, -VARIANCE, OFFSETS), "a variance is at least 0"),
        (lambda: text.min_k_plus(LOG_PROB, -MEAN, VARIANCE, OFFSETS), "mean reaches"),
        (lambda: text.min_k_plus(LOG_PROB, MEAN[:1], VARIANCE, OFFSETS), "of all three a number"),
        (lambda: text.over_zlib(np.ones(3), [4], [4, 5, 6]), "lengths has shape"),
        (lambda: text.over_zlib(np.ones(3), [4, 5, 6], [4, 0, 6]), "compressed has shape"),
        (lambda: text.zlib_bytes("one text"), "a list of texts is needed"),
        (lambda: text.zlib_bytes([b"one"]), "decode bytes"),
    ],
)  # fmt: skip
def test_what_would_be_taken_for_something_else_is_refused(call, message):
    with pytest.raises(MiaError, match=message):
        call()
