"""Metrics against brute force, invariances, values worked out by hand, and the rules of intervals."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics as sk

from mia_lib import metrics
from mia_lib.errors import MiaError
from mia_lib.metrics import ranking, resampling
from mia_lib.progress import Tail

NAMED = [
    "auc",
    "balanced_accuracy",
    "tpr_at_fpr=0.2",
    "conformal_tpr_at_fpr=0.2",
    "precision_at_fpr=0.2",
    "average_precision",
    "average_precision_non_members",
]


TIED = st.integers(-4, 4)


@st.composite
def judged(draw, values=TIED):
    """Scores with many ties, and members of both kinds."""
    n = draw(st.integers(2, 30))
    scores = np.array(draw(st.lists(values, min_size=n, max_size=n)), float)
    members = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    members[:2] = True, False
    return scores, members


def value(name, scores, members):
    return ranking.look_up_metric(name)[1](
        *metrics.tally(np.asarray(scores, float), np.asarray(members))[:2]
    )


def gaussian(seed, n, shift, targets=None):
    rng, shape = np.random.default_rng(seed), (n,) if targets is None else (targets, n)
    members = rng.random(shape) < 0.5
    return rng.normal(size=shape) + shift * members, members


# brute-force twins


@given(judged(), st.sampled_from([0, 0.01, 0.1, 0.29, 1 / 3, 0.5, 0.999]))
def test_metrics_are_those_of_a_loop_over_thresholds(pair, fpr):
    scores, members = pair
    rate, precision, accuracy = 0.0, 0.0, [0.5]
    for threshold in sorted(set(scores), reverse=True):
        called = scores >= threshold
        accuracy.append((called[members].mean() + (~called)[~members].mean()) / 2)
        if called[~members].mean() <= fpr:
            rate, precision = called[members].mean(), members[called].mean()
    assert metrics.tpr_at_fpr(scores, members, fpr) == pytest.approx(rate)
    assert metrics.precision_at_fpr(scores, members, fpr) == pytest.approx(precision)
    assert metrics.balanced_accuracy(scores, members) == pytest.approx(max(accuracy))
    best = metrics.best_threshold(scores, members)
    assert metrics.accuracy_at_threshold(scores, members, best) == pytest.approx(max(accuracy))
    inside, outside = scores[members][:, None], scores[~members]
    assert metrics.auc(scores, members) == pytest.approx(
        ((inside > outside) + (inside == outside) / 2).mean()
    )


@given(judged(), st.integers(0, 20))
def test_curve_average_precision_and_pinball_loss_equal_scikit_learn(pair, twentieths):
    scores, members = pair
    theirs = sk.roc_curve(members, scores, drop_intermediate=False)
    for mine, one in zip(metrics.roc_curve(scores, members), theirs, strict=True):
        assert_allclose(mine, one)
    assert metrics.average_precision(scores, members) == pytest.approx(
        sk.average_precision_score(members, scores)
    )
    assert metrics.average_precision_non_members(scores, members) == pytest.approx(
        sk.average_precision_score(~members, -scores)
    )
    observed, predicted, level = scores, scores[::-1], twentieths / 20
    assert metrics.pinball_loss(predicted, observed, level) == pytest.approx(
        sk.mean_pinball_loss(observed, predicted, alpha=level)
    )


@given(judged(), st.data())
def test_weights_equal_duplicated_records(pair, data):
    scores, members = pair
    weights = data.draw(hnp.arrays(int, (3, len(scores)), elements=st.integers(0, 3)))
    weights[:, :2] += 1  # both kinds stay
    tp, fp = resampling.tally_resamples(
        resampling.rank_records(scores, members, np.arange(len(scores))), weights.T, {}
    )
    for name in NAMED:
        twins = [value(name, np.repeat(scores, w), np.repeat(members, w)) for w in weights]
        assert_allclose(ranking.look_up_metric(name)[1](tp, fp), twins)


# invariances, limits, values by hand


@given(judged(st.floats(-5, 5).map(lambda x: round(x, 2))))
def test_a_monotone_map_and_turning_score_and_membership_change_nothing(pair):
    scores, members = pair
    for name in NAMED:
        assert value(name, np.exp(scores) * 3 - 1, members) == value(name, scores, members)
    for metric in (metrics.auc, metrics.balanced_accuracy):
        assert metric(-scores, ~members) == pytest.approx(metric(scores, members))
    assert metrics.average_precision_non_members(-scores, ~members) == pytest.approx(
        metrics.average_precision(scores, members)
    )


def test_values_worked_out_by_hand():
    assert metrics.precision(0.5, 0.1, 0.2) == pytest.approx(0.1 / 0.18)
    members = [True, True, False]
    assert metrics.auc(np.array([np.inf, 0, -np.inf], np.float32), members) == 1
    assert metrics.auc([0, 0, 1], members) == 0
    assert metrics.best_threshold([np.inf, 0, -np.inf], members) == 0
    assert metrics.tpr_at_fpr([1, 1, 0], members, 0) == 1


# thresholds


def test_best_threshold_lies_between_the_two_sides_also_of_scores_of_its_own_type():
    assert metrics.best_threshold([3, 1], [True, False]) == 2
    assert metrics.best_threshold([1, 3], [True, False]) == np.inf
    near = np.nextafter(1.0, 2)
    assert metrics.best_threshold([near, 1], [True, False]) == near
    for kind in (np.float32, np.float64):
        close = np.nextafter(kind(1), kind(0)), kind(0.9999999)
        scores, members = np.repeat(np.array(close, kind), 5), np.arange(10) < 5
        assert (
            metrics.accuracy_at_threshold(scores, members, metrics.best_threshold(scores, members))
            == 1.0
        )
        assert_array_equal(
            metrics.rehearsed_accuracy(np.stack([scores] * 3), np.stack([members] * 3)), 1.0
        )


# intervals


def test_few_banks_add_the_variance_of_bank_means_and_that_of_their_records():
    """Banks share no record, so the second variance is the sum of what resampling does to each bank."""
    scores, members = gaussian(1, 60, 1, targets=6)
    made = metrics.bootstrap("auc", scores, members, groups=list("aabbcc"), draws=4000)
    means = metrics.auc(scores, members).reshape(3, 2).mean(1)
    alone = [
        metrics.bootstrap("auc", scores[k : k + 2], members[k : k + 2], draws=4000)
        for k in (0, 2, 4)
    ]
    of_records = (
        sum(
            one.se**2 - np.var(metrics.auc(scores[k : k + 2], members[k : k + 2]), ddof=1) / 2
            for k, one in zip((0, 2, 4), alone, strict=True)
        )
        / 9
    )
    assert made.value == pytest.approx(means.mean())
    assert made.se**2 == pytest.approx(means.var(ddof=1) / 3 + of_records, rel=0.05)
    # the fewest of the two, which is on the safe side
    assert (made.dof, made.covers) == (2, "3 banks")


def test_record_numbers_say_what_targets_share():
    """The same records in another order are the same records; records of their own leave the variance over targets."""
    scores, members = gaussian(1, 80, 1, targets=7)
    order = np.stack([np.random.default_rng(k).permutation(80) for k in range(7)])
    shared = metrics.bootstrap("auc", scores, members, draws=200)
    moved = metrics.bootstrap(
        "auc",
        np.take_along_axis(scores, order, 1),
        np.take_along_axis(members, order, 1),
        records=order,
        draws=200,
    )
    assert moved == shared and moved.se == pytest.approx(shared.se)
    uneven = scores + np.linspace(-0.6, 0.6, 7)[:, None] * members
    unshared = metrics.bootstrap(
        "auc", uneven, members, records=np.arange(560).reshape(7, 80), draws=2000
    )
    of_records = sum(
        metrics.bootstrap("auc", *pair, draws=2000).draws.var()
        for pair in zip(uneven, members, strict=True)
    )
    of_targets = metrics.auc(uneven, members).var(ddof=1) / 7
    assert of_records / 49 < of_targets < of_records / 7
    assert unshared.se**2 == pytest.approx(of_targets, rel=0.1)
    with pytest.raises(MiaError, match="number of the record in each place"):
        metrics.bootstrap("auc", scores, members, records=order[:2])


def test_the_records_of_one_target_are_drawn_apart_by_side_whatever_their_numbers():
    members, scores = np.arange(200) < 3, np.random.default_rng(0).normal(size=200)
    plain = metrics.bootstrap("auc", scores, members, draws=300)
    shifted, mixed = (
        metrics.bootstrap("auc", scores, members, draws=300, records=records)
        for records in (np.arange(200) + 100, np.random.default_rng(1).permutation(200))
    )
    assert len(shifted.draws) == len(mixed.draws) == 300
    assert shifted.value == mixed.value == plain.value
    assert (shifted.low, shifted.high) == (plain.low, plain.high)


def test_pairs_are_units_where_there_are_four_of_them():
    """What one half of the records has more of, the other has less: with pairs as units the interval is narrower."""
    rng = np.random.default_rng(8)
    first = np.stack([rng.permutation(200) < 100 for _ in range(5)])
    paired = np.stack([first, ~first], 1).reshape(10, 200)
    scores = 3 * rng.normal(size=200) + rng.normal(size=(10, 200)) + 0.5 * paired
    units, kind = resampling.units_of_chance(None, paired)
    assert kind == "pairs" and list(units) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    for unpaired in (paired[:6], paired[[0, 2, 1, 3, 4, 5, 6, 7, 8, 9]]):
        assert resampling.units_of_chance(None, unpaired)[1] == ""
    of_pairs = metrics.auc(scores, paired).reshape(5, 2).mean(1)
    assert (
        of_pairs.std(ddof=1) / math.sqrt(5)
        < metrics.auc(scores, paired).std(ddof=1) / math.sqrt(10) / 2
    )
    assert metrics.bootstrap("auc", scores, paired, draws=200).value == pytest.approx(
        of_pairs.mean()
    )


def test_an_interval_without_width_decides_nothing_unless_it_is_exact():
    flat = metrics.t_interval([0.02, 0.02, 0.02])
    assert flat.degenerate
    assert flat.sign == 0
    assert "no spread" in str(flat)
    assert flat.low == flat.value == flat.high
    assert (100 * flat).degenerate and flat.at(0.99).degenerate
    exact = metrics.Interval(0.02, 0.02, 0.02, se=0.0, exact=True)
    assert exact.sign == 1
    assert (-1 * exact).sign == -1
    assert exact.at(0.99).sign == 1
    assert not exact.degenerate
    assert not metrics.t_interval([0.01, 0.02, 0.03]).degenerate


def test_a_peak_accuracy_has_no_interval():
    scores, members = gaussian(5, 50, 1, targets=3)
    peak = metrics.bootstrap("balanced_accuracy", scores, members, draws=20)
    assert peak.value == pytest.approx(metrics.balanced_accuracy(scores, members).mean())
    assert np.isnan([peak.low, peak.high]).all() and peak.sign == 0 and not peak.degenerate
    assert str(peak) == f"{peak.value:.3f}" and np.isnan(peak.at(0.99).low)


def test_paired_difference_is_tighter_than_two_intervals_and_zero_for_the_same_scores():
    scores, members = gaussian(4, 400, 1)
    close = scores + 0.1 * np.random.default_rng(5).normal(size=400)
    difference = metrics.compare("auc", scores, close, members)
    alone = metrics.bootstrap("auc", scores, members)
    assert difference.value == pytest.approx(
        metrics.auc(scores, members) - metrics.auc(close, members)
    )
    assert difference.high - difference.low < (alone.high - alone.low) / 2
    grouped = metrics.compare(
        "auc", np.stack([scores] * 3), np.stack([close] * 3), members, groups=[0, 1, 2]
    )
    assert grouped.covers == "3 banks" and grouped.value == pytest.approx(difference.value)
    # which no chance tells apart
    same = metrics.compare("auc", np.stack([scores] * 3), np.stack([scores] * 3), members)
    assert (same.value, same.low, same.high, same.sign) == (0, 0, 0, 0) and same.exact


def test_interval_at_another_level():
    drawn = metrics.bootstrap("auc", *gaussian(6, 200, 1))
    student = metrics.t_interval([0.1, 0.2, 0.4], covers="3 seeds")
    for interval in (drawn, student):
        assert interval.at(0.95) == interval
        wider, widest = interval.at(0.99), interval.at(0.9999)
        assert widest.low < wider.low < interval.low < interval.high < wider.high < widest.high
        assert wider.level == 0.99 and wider.covers == interval.covers
    with pytest.raises(MiaError, match="neither draws nor a standard error"):
        metrics.Interval(0, -1, 1).at(0.9)
    with pytest.raises(MiaError, match="level"):
        drawn.at(1.5)


def test_an_interval_reads_and_has_other_units():
    interval = metrics.Interval(0.541, 0.53, 0.552, 0.95, "4 banks")
    assert str(interval) == "0.541 [0.530, 0.552]" and f"{interval:.1f}" == "0.5 [0.5, 0.6]"
    assert (interval.sign, (-1 * interval).sign, metrics.Interval(0.01, -0.1, 0.2).sign) == (
        1,
        -1,
        0,
    )
    assert str(100 * interval) == "54.100 [53.000, 55.200]"
    for one in (
        metrics.t_interval([1, 2, 3], bounds=(1, 9)),
        metrics.bootstrap("auc", *gaussian(6, 200, 1)),
    ):
        turned, wide = (-2 * one).at(0.99), one.at(0.99)
        assert (turned.low, turned.high) == pytest.approx((-2 * wide.high, -2 * wide.low))


def test_student_interval_by_hand():
    interval = metrics.t_interval([1, 2, 3, 4], level=0.9, covers="4 seeds")
    half = 2.353363 * math.sqrt(5 / 3) / 2
    assert (interval.low, interval.value, interval.high) == pytest.approx(
        (2.5 - half, 2.5, 2.5 + half)
    )
    for bad in ([1], [1, np.nan], [[1, 2], [3, 4]]):
        with pytest.raises(MiaError, match="at least two finite numbers"):
            metrics.t_interval(bad)


def test_two_units_have_no_interval_and_say_so():
    scores, members = gaussian(3, 60, 1, targets=2)
    alone = metrics.bootstrap("auc", scores, members)
    assert np.isnan([alone.low, alone.high]).all()
    assert alone.value == metrics.auc(scores, members).mean()
    assert alone.covers == "2 targets and 60 records: too few for an interval"
    assert f"{alone}" == f"{alone.value:.3f}"
    one = metrics.bootstrap("auc", scores[0], members[0])
    assert one.covers == "records only"
    assert one.sign == 1
    assert metrics.bootstrap("auc", scores, members, groups=[7, 7]) == alone
    assert alone.sign == 0 and np.isnan(alone.at(0.5).low) and np.isnan((100 * alone).high)
    twice, twice_members = np.tile(scores, (2, 1)), np.tile(members, (2, 1))
    banks = metrics.compare("auc", twice, -twice, twice_members, groups=list("aabb"))
    assert banks.sign == 0 and banks.covers == "2 banks: too few for an interval"
    same = metrics.compare("auc", scores, scores, members)
    assert (same.low, same.high) == (0, 0)  # an attack less itself is no matter of chance
    assert not np.isnan(metrics.bootstrap("auc", *gaussian(3, 60, 1, targets=3)).low)


def test_scores_are_sorted_once_for_all_resamples_and_many_have_a_bar(tmp_path, monkeypatch):
    scores, members = gaussian(7, 50, 1, targets=3)
    at_once, ranked, rank = metrics.bootstrap("auc", scores, members, draws=40), [], resampling.rank
    monkeypatch.setenv("MIA_PROGRESS", str(tmp_path / "bars"))
    monkeypatch.setattr(resampling, "CELLS", 200)
    monkeypatch.setattr(resampling, "LONG", 1)
    monkeypatch.setattr(resampling, "rank", lambda *given: ranked.append(given) or rank(*given))
    assert metrics.bootstrap("auc", scores, members, draws=40) == at_once
    assert len(ranked) == 3 and [bar["done"] for bar in Tail(tmp_path / "bars")] == list(range(11))


def test_evaluate_and_several_metrics_at_once_agree_with_bootstrap():
    scores, members = gaussian(7, 100, 1, targets=3)
    names = ("auc", "tpr_at_fpr=0.001")
    table = metrics.evaluate({"MALT": scores, "noise": -scores}, members, draws=100, metrics=names)
    assert list(table.columns) == [
        "attack",
        "metric",
        "value",
        "low",
        "high",
        "level",
        "covers",
        "targets",
        "records",
        "resolution",
        "resolved",
    ]
    assert list(table.resolved) == [True, False] * 2  # 50 non-members and a rate of 0.1 %
    assert list(table.attack) == ["MALT", "MALT", "noise", "noise"] and set(table.targets) == {3}
    one = metrics.bootstrap(metrics.auc, scores, members, draws=100)
    assert tuple(table.loc[0, ["value", "low", "high"]]) == (one.value, one.low, one.high)
    assert table.resolution[0] == 1 / (~members).sum(1).min()
    with pytest.warns(UserWarning, match="tpr_at_fpr=0.001 is below the resolution"):
        fpr = metrics.bootstrap(metrics.tpr_at_fpr, scores, members, fpr=0.001, draws=100)
    assert np.isfinite(fpr.value)
    assert np.isnan(table.loc[1, ["value", "low", "high"]].astype(float)).all()
    assert table.covers[1] == "below the resolution"
    names, other = ("auc", "tpr_at_fpr=0.1"), gaussian(8, 100, 1, targets=3)[0]
    together, differences = (
        metrics.intervals(names, scores, members, minus, draws=50) for minus in (None, other)
    )
    for name in names:
        assert str(together[name]) == str(metrics.bootstrap(name, scores, members, draws=50))
        assert str(differences[name]) == str(
            metrics.compare(name, scores, other, members, draws=50)
        )


def test_a_resample_without_members_is_left_out():
    members = [[True, False, False], [True, False, True], [False, True, True]]
    made = metrics.bootstrap("auc", [[1, 2, 3], [3, 1, 2], [2, 1, 3]], members)
    assert np.isfinite([made.low, made.high]).all() and made.se > 0


def test_a_rate_is_the_one_that_was_given():
    """One of 300 others is the loudest, and all members come next: at 1/300, to the last digit, all are found."""
    scores, members = np.r_[np.linspace(5, 6, 50), 9.0, np.zeros(299)], np.arange(350) < 50
    name = f"tpr_at_fpr={1 / 300!r}"
    found = metrics.evaluate({"a": scores}, members, metrics=[name], draws=50).iloc[0]
    assert (found["metric"], found["value"], found["resolved"]) == (name, 1.0, True)
    found = metrics.bootstrap("tpr_at_fpr", scores, members, fpr=0.01, draws=50)
    assert found.value == metrics.tpr_at_fpr(scores, members, 0.01)


# rates whose chance level is the rate


@given(st.data())
def test_conformal_tpr_is_the_mean_over_all_orders_of_ties(data):
    """Brute force: each way to break the ties, and the threshold drawn between two whole numbers of false alarms."""
    n = data.draw(st.integers(2, 5))
    scores = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    members = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    members[:2] = True, False
    fpr = data.draw(st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.9]))
    reach, values = fpr * ((~members).sum() + 1), []
    low = math.floor(reach + 1e-12)
    for order in itertools.permutations(range(n)):
        broken = scores + 0.1 * np.argsort(order) / n
        above = (broken[~members] > broken[members][:, None]).sum(1)
        # TPR with at most so many false alarms less one
        few, many = ((above + 1 <= false).mean() for false in (low, low + 1))
        values.append(few + (reach - low) * (many - few))
    assert metrics.conformal_tpr_at_fpr(scores, members, fpr) == pytest.approx(np.mean(values))


@pytest.mark.parametrize("scores", [[5, 4, 3, 2, 1, 0], [3, 3, 3, 2, 1, 0], [1, 1, 1, 1, 1, 1]])
@pytest.mark.parametrize("fpr", [0.1, 0.25, 0.4, 0.75])
def test_without_a_leak_the_mean_over_all_memberships_is_chance(scores, fpr):
    """Exact: every choice of 3 members among 6 records is as likely. The plain rate has `chance_tpr` where nothing ties."""
    each = [np.isin(np.arange(6), chosen) for chosen in itertools.combinations(range(6), 3)]
    assert np.mean(
        [metrics.conformal_tpr_at_fpr(scores, members, fpr) for members in each]
    ) == pytest.approx(fpr)
    if len(set(scores)) == 6:
        plain = np.mean([metrics.tpr_at_fpr(scores, members, fpr) for members in each])
        assert plain == pytest.approx(metrics.chance_tpr(np.arange(6) < 3, fpr))
    assert metrics.chance_tpr(np.arange(300) < 100, 0.01) == pytest.approx(3 / 201)


# epsilon


def randomised_response(seed, n, epsilon):
    members = np.arange(n) < n // 2
    return (
        members ^ (np.random.default_rng(seed).random(n) > 1 / (1 + math.exp(-epsilon)))
    ).astype(float), members


def test_epsilon_bound_of_noise_is_zero_and_delta_lowers_it():
    members = np.arange(2000) < 1000
    assert metrics.epsilon_lower_bound(np.ones(2000), members) == 0
    assert metrics.epsilon_lower_bound(np.random.default_rng(0).normal(size=2000), members) < 0.3
    perfect = metrics.epsilon_lower_bound(members, members, splits=1)
    # 500 of 500 against 0 of 500, each bounded at 2.5 %: log((.025 ** (1 / 500)) / (1 - .025 ** (1 / 500)))
    assert perfect == pytest.approx(math.log(0.025**0.002 / (1 - 0.025**0.002)))
    assert (perfect.threshold, perfect.direction, perfect.tpr, perfect.fpr) == (1, "members", 1, 0)
    perfect = metrics.epsilon_lower_bound(members, members)  # several splits, each rate at 1.25 %
    assert perfect == perfect.bound == pytest.approx(math.log(0.0125**0.002 / (1 - 0.0125**0.002)))
    for stricter in ({"delta": 0.5}, {"confidence": 0.99}):
        assert metrics.epsilon_lower_bound(members, members, **stricter) < perfect


def test_epsilon_bound_is_the_median_of_splits_and_says_how_it_was_found():
    scores, members = randomised_response(1, 400, 2.0)
    scores = scores + np.random.default_rng(2).normal(0, 0.3, 400)
    bound = metrics.epsilon_lower_bound(scores, members, splits=7)
    assert len(bound.splits) == 7 and np.ptp(bound.splits) > 0 and bound == sorted(bound.splits)[3]
    rates = (
        (bound.tpr, bound.fpr) if bound.direction == "members" else (1 - bound.fpr, 1 - bound.tpr)
    )
    # what the rates themselves say, less what they may owe to chance
    assert bound < np.log(rates[0] / rates[1])
    assert bound == metrics.epsilon_lower_bound(scores, members, splits=7)
    assert f"{bound:.3f}" == f"{bound.bound:.3f}" and np.mean([bound, bound]) == bound


@pytest.mark.parametrize("splits", [1, 6])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, -1.0])
def test_epsilon_bound_holds_with_its_confidence_however_many_splits(splits, epsilon):
    """Without a leak (epsilon = 0), and where the truth is known; a bound at 80 % may miss one in five. It is near the truth,
    and with the sign turned it is not above it either."""
    bounds = [
        metrics.epsilon_lower_bound(
            *randomised_response(k, 600, epsilon), confidence=0.8, splits=splits, seed=k
        )
        for k in range(100)
    ]
    assert np.mean(np.array(bounds) > abs(epsilon)) <= 0.2 and np.mean(bounds) >= 0.5 * epsilon


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("confidence", [0.0, 0.95, 1.0])
@pytest.mark.parametrize("delta", [0.0, 0.5, 1.0])
def test_epsilon_bound_of_extremes_is_finite_without_a_warning(delta, confidence):
    members = np.arange(40) < 20
    for scores in (members, ~members, np.ones(40), np.arange(40)):
        assert 0 <= metrics.epsilon_lower_bound(scores, members, delta, confidence) < np.inf


def test_holm_is_bonferroni_for_the_smallest_and_never_falls():
    # worked out by hand
    assert_allclose(metrics.holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert_allclose(metrics.holm([0.9, 0.6, 0.4]), [1, 1, 1])


# bad input


@pytest.mark.parametrize(
    "scores, members, says",
    [
        ([1, 2, 3], [True, False], "do not fit"),
        ([1, np.nan], [True, False], "1 NaN"),
        ([1, 2], [True, True], "no non-member"),
        ([[1, 2], [1, 2]], [[True, False], [False, False]], "no member"),
        ([], [], "not empty"),
        (
            pd.Series([3, 1, 2]).sort_values(),
            pd.Series([True, False, False]),
            "same index in another order.*members.loc",
        ),
    ],
)
def test_bad_input_is_refused(scores, members, says):
    for call in (
        metrics.auc,
        metrics.balanced_accuracy,
        metrics.average_precision,
        lambda *given: metrics.bootstrap("auc", *given),
        lambda *given: metrics.evaluate({"x": given[0]}, given[1]),
    ):
        with pytest.raises(MiaError, match=says):
            call(scores, members)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda s, m: metrics.bootstrap("aucc", s, m), "Did you mean 'auc'"),
        (lambda s, m: metrics.bootstrap("tpr_at_fpr", s, m), "needs a rate"),
        (lambda s, m: metrics.bootstrap("tpr_at_fpr=one", s, m), "needs a rate"),
        (lambda s, m: metrics.bootstrap("auc", [s, s], m, groups=[0]), "groups"),
        (lambda s, m: metrics.compare("auc", [s, s], s, m), "paired difference"),
        (lambda s, m: metrics.roc_curve([s], m), "one row at a time"),
        (lambda s, m: metrics.pinball_loss([1], [1, 2], 0.5), "differ"),
        (lambda s, m: metrics.epsilon_lower_bound([1, 2], [True, False]), "one target"),
        (lambda s, m: metrics.precision(0.5, 0.1, 50), "share = 50"),
        (lambda s, m: metrics.precision(np.array([0.5, 50]), 0.1, 0.5), "tpr = 50"),
        (lambda s, m: metrics.evaluate({"a": s}, m, metrics=[]), "at least one of auc"),
        (lambda s, m: metrics.accuracy_at_threshold(s, m, np.nan), "any number but NaN"),
        (lambda s, m: metrics.accuracy_at_threshold(np.full(4, np.nan), m, 0.0), "NaN"),
    ],
)
def test_bad_options_are_refused(call, says):
    with pytest.raises(MiaError, match=says):
        call(np.array([1.0, 2, 3, 4]), np.array([True, False, True, False]))
