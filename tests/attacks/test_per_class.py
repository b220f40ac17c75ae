"""Attack S against loops, and where it must agree with others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mia_lib import membership
from mia_lib.attacks import baselines, per_class
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)
MEMBERS = membership.balanced_halves(60, 8)
LOSS, REFERENCES = RNG.exponential(size=60), RNG.exponential(size=(8, 60)).round(1)  # with ties
LABELS = RNG.integers(0, 3, 60)


def test_the_score_is_the_share_of_strangers_of_the_class_whose_loss_is_higher():
    expected = [
        np.mean(
            [
                REFERENCES[r, i] > LOSS[n]
                for r in range(8)
                for i in range(60)
                if LABELS[i] == LABELS[n] and not MEMBERS[r, i]
            ]
        )
        for n in range(60)
    ]
    assert_allclose(per_class.attack_s(LOSS, LABELS, REFERENCES, MEMBERS), expected)


def test_with_a_class_for_each_record_it_is_attack_r_and_with_one_class_it_ranks_like_the_loss():
    assert_allclose(
        per_class.attack_s(LOSS, np.arange(60), REFERENCES, MEMBERS),
        baselines.attack_r(LOSS, REFERENCES, MEMBERS),
    )
    order = np.argsort(LOSS)
    assert (
        np.diff(per_class.attack_s(LOSS, np.zeros(60, int), REFERENCES, MEMBERS)[order]) <= 0
    ).all()


def test_a_class_without_strangers_is_refused():
    with pytest.raises(MiaError, match="class 2: every reference"):
        per_class.attack_s(LOSS, LABELS, REFERENCES, MEMBERS | (LABELS == 2))
