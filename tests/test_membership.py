"""Designs of the game: who is in which training set."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mia_lib import membership
from mia_lib.errors import MiaError


@given(st.integers(2, 60), st.integers(1, 6), st.integers(0, 5))
def test_random_halves_hold_half_and_depend_on_the_seed_alone(n, models, seed):
    members = membership.random_halves(n, models, seed)
    assert (members.sum(1) == n // 2).all()
    assert (members == membership.random_halves(n, models, seed)).all()


@given(st.integers(2, 60), st.integers(1, 8), st.integers(0, 5))
def test_every_record_is_in_exactly_half_of_the_models_of_a_balanced_bank(n, pairs, seed):
    members = membership.balanced_halves(n, 2 * pairs, seed)
    assert (members.sum(0) == pairs).all() and set(members.sum(1)) <= {n // 2, n - n // 2}


def test_model_7_is_the_same_in_a_bank_of_16_and_of_256():
    assert (
        membership.balanced_halves(100, 16, 3)[7] == membership.balanced_halves(100, 256, 3)[7]
    ).all()
    assert (
        membership.random_subsets(100, 30, 16, 3)[7]
        == membership.random_subsets(100, 30, 256, 3)[7]
    ).all()


def test_references_of_a_target_are_balanced_so_their_count_gives_nothing_away():
    members = membership.balanced_halves(50, 8, 1)
    for target in range(8):
        references = membership.references_of(target, 8)
        assert target not in references
        assert len(references) == 6
        assert (members[references].sum(0) == 3).all()


def test_calibration_splits_keep_references_out_of_the_private_half():
    members, private = membership.calibration_splits(40, repeats=3, references=2, seed=1)
    assert members.shape == (9, 40)
    assert (members.sum(1) == 10).all()
    assert (private.sum(1) == 20).all()
    for t in range(3):
        assert (members[3 * t] <= private[t]).all()
        assert not (members[3 * t + 1 : 3 * t + 3] & private[t]).any()
    assert (membership.calibration_splits(40, 5, 2, seed=1)[0][:9] == members).all()


def test_leave_one_out_turns_one_record_at_a_time():
    members = np.array([True, False, True, False])
    assert (membership.leave_one_out(members, [0, 3]) != members).tolist() == np.eye(4, dtype=bool)[
        [0, 3]
    ].tolist()


@given(st.integers(1, 12), st.integers(0, 3))
def test_so_many_of_each_kind_are_drawn_from_those_that_are_judged(most, seed):
    members = membership.random_halves(20, 4, seed)
    judged = membership.random_subsets(20, 15, 4, seed + 1)
    kept = membership.at_most(judged, members, most, seed)
    assert not (kept & ~judged).any()
    assert (kept == membership.at_most(judged, members, most, seed)).all()
    for side in (members, ~members):
        assert ((kept & side).sum(1) == np.minimum((judged & side).sum(1), most)).all()
    assert (membership.at_most(judged, members, 20, seed) == judged).all()


@pytest.mark.parametrize(
    "call,words",
    [
        (
            lambda: membership.random_subsets(10, 11, 1),
            "size = 11 is out of range: allowed is from 1 to 10",
        ),
        (lambda: membership.random_halves(1, 1), "n = 1 is out of range"),
        (lambda: membership.balanced_halves(10, 3), "even number"),
        (lambda: membership.references_of(0, 3), "at least 4"),
        (lambda: membership.references_of(9, 4), "target = 9"),
        (lambda: membership.leave_one_out(np.ones(3, bool), [3]), "whole numbers from 0 to 2"),
    ],
)
def test_bad_input_says_what_was_given_and_what_is_allowed(call, words):
    with pytest.raises(MiaError, match=words):
        call()
