"""All pairs of attacks at once, beside the pairs one by one; Holm's correction; ranks that are left open."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mia_lib import membership, metrics
from mia_lib.errors import MiaError

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("metric", ["auc", "tpr_at_fpr=0.1"])
@pytest.mark.parametrize("targets", [2, 4, 8])
def test_all_pairs_at_once_are_the_pairs_one_by_one(metric, targets):
    members = membership.balanced_halves(200, targets)
    scores = {name: RNG.normal(size=(targets, 200)) + strength * members for name, strength in
              (("a", 1.0), ("b", 0.8), ("c", 0.0))}
    found = metrics.pairwise(metric, scores, members, draws=100, seed=5)
    for (one, other), difference in found.differences.items():
        alone = metrics.compare(metric, scores[one], scores[other], members, draws=100, seed=5)
        assert_allclose([difference.value, difference.low, difference.high], [alone.value, alone.low, alone.high], atol=1e-12)
        assert difference.covers == alone.covers
    assert list(found.differences) == [("a", "b"), ("a", "c"), ("b", "c")]


def test_holm_is_bonferroni_for_the_smallest_and_never_falls():
    assert_allclose(metrics.holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])  # worked out by hand
    p = RNG.uniform(size=30)
    corrected = metrics.holm(p)
    assert corrected.min() == min(1, 30 * p.min()) and (corrected >= p).all()
    assert (np.diff(corrected[np.argsort(p)]) >= 0).all()
    assert_allclose(metrics.holm([0.03]), [0.03])
    assert_allclose(metrics.holm([0.9, 0.4, 0.01]), [0.9, 0.8, 0.03])
    assert_allclose(metrics.holm([0.9, 0.6, 0.4]), [1, 1, 1])


def test_holm_keeps_the_error_of_any_pair_below_its_level():
    wrong = [metrics.holm(np.random.default_rng(k).uniform(size=10)).min() < 0.05 for k in range(2000)]
    assert 0.035 < np.mean(wrong) < 0.065  # exactly 0.05 for independent tests that are all null


def test_ranks_leave_open_what_no_difference_decides():
    members = membership.balanced_halves(3000, 8)
    noise = RNG.normal(size=(8, 3000))
    scores = {"best": noise + 2 * members, "like it": noise + 2.0001 * members, "worst": RNG.normal(size=(8, 3000))}
    found = metrics.pairwise("auc", scores, members, draws=100)
    assert found.ranks()["worst"] == (3, 3)
    assert {found.ranks()[name] for name in ("best", "like it")} <= {(1, 2), (1, 1), (2, 2)}
    assert found.ahead[0, 2] and not found.ahead[2, 0] and not found.ahead.diagonal().any()
    same = metrics.pairwise("auc", {"a": noise, "b": noise}, members, draws=50)
    assert same.p[0, 1] == 1 and same.ranks() == {"a": (1, 2), "b": (1, 2)}


@pytest.mark.parametrize("scores, metric, said", [
    ({"a": np.zeros((4, 8))}, "auc", "at least two attacks"),
    ({"a": np.zeros((4, 8)), "b": np.ones((4, 8))}, "balanced_accuracy", "balanced_accuracy"),
    ({"a": np.zeros((4, 8)), "b": np.zeros((2, 8))}, "auc", "members of shape")])
def test_pairs_that_cannot_be_compared_are_refused(scores, metric, said):
    with pytest.raises(MiaError, match=said):
        metrics.pairwise(metric, scores, membership.balanced_halves(8, 4))
