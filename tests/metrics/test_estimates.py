"""Numbers made of tidy results have the values and the intervals of the metrics that they are made of."""

import numpy as np
import pandas as pd
import pytest

from mia_lib import membership, metrics
from mia_lib.errors import MiaError

RNG = np.random.default_rng(3)
MEMBERS = membership.balanced_halves(600, 10)[::2]  # one of each pair
SCORES = {
    name: RNG.normal(size=600) + lift * MEMBERS + RNG.normal(size=MEMBERS.shape)
    for name, lift in (("strong", 2.0), ("weak", 0.7))
}
FRAME = metrics.by_target(SCORES, MEMBERS, ("auc", "tpr_at_fpr=0.01"), draws=50, study="one")
OWN = metrics.by_repetition({"a": {"x": RNG.normal(size=12)}}, n=400)


def ends(interval):
    return interval.value, interval.low, interval.high


@pytest.mark.parametrize("metric", ["auc", "tpr_at_fpr=0.01"])
def test_an_estimate_has_the_interval_of_the_bootstrap_and_a_difference_that_of_the_paired_one(
    metric,
):
    strong, weak = (metrics.estimate(FRAME, name, metric) for name in SCORES)
    for made, scores in ((strong, SCORES["strong"]), (weak, SCORES["weak"])):
        expected = metrics.bootstrap(metric, scores, MEMBERS, draws=50)
        assert ends(made.interval()) == pytest.approx(ends(expected))
    expected = metrics.compare(metric, SCORES["strong"], SCORES["weak"], MEMBERS, draws=50)
    assert ends((strong - weak).interval()) == pytest.approx(ends(expected))


def test_complementary_targets_are_one_unit():
    members = membership.balanced_halves(400, 8)
    scores = RNG.normal(size=400) + members + RNG.normal(size=members.shape)
    own = metrics.estimate(
        metrics.by_target({"a": scores}, members, ("auc",), draws=40), "a", "auc"
    ).interval()
    expected = metrics.bootstrap("auc", scores, members, draws=40)
    assert (own.low, own.high) == pytest.approx((expected.low, expected.high))


def test_arithmetic_is_repetition_by_repetition():
    one, other = (metrics.estimate(FRAME, name, "auc") for name in SCORES)
    for made, expected in (
        (one + other, one.values + other.values),
        (2 * one, 2 * one.values),
        (1 - one, 1 - one.values),
        (one / other, one.values / other.values),
        (-one, -one.values),
        (abs(other - one), one.values - other.values),
        (abs(one - one.value - 1e-6), one.value + 1e-6 - one.values),
    ):  # as a whole, not one by one
        assert np.allclose(made.values, expected)
    assert np.allclose((one - other).resampled, one.resampled - other.resampled)


def test_repetitions_with_records_of_their_own_have_students_interval():
    assert ends(metrics.estimate(OWN, "a", "x", n=400).interval()) == ends(
        metrics.t_interval(OWN["estimate"].iloc[0].values)
    )
    unshared = metrics.by_target(SCORES, MEMBERS, ("auc",), shared=False)
    expected = metrics.t_interval(metrics.auc(SCORES["weak"], MEMBERS))
    assert metrics.estimate(unshared, "weak", "auc").interval().low == expected.low


def test_a_rate_without_spread_has_its_exact_binomial_interval():
    """None of 50 members found is no proof that none ever is: the exact interval reaches to 1 - 0.025^(1 / 50)."""
    members = np.tile(np.arange(150) < 50, (8, 1))
    scores = np.where(members, 0.0, 1.0) + RNG.normal(size=members.shape) / 100
    interval = metrics.estimate(
        metrics.by_target({"a": scores}, members, ("tpr_at_fpr=0.05",), draws=20),
        "a",
        "tpr_at_fpr=0.05",
    ).interval()
    assert interval.value == interval.low == 0
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / 50))


def test_in_a_summary_a_rate_below_the_resolution_is_no_number_and_a_peak_has_no_interval():
    frame = metrics.by_target(SCORES, MEMBERS, ("tpr_at_fpr=0.001", "balanced_accuracy"), draws=20)
    rows = metrics.summary(frame).set_index(["attack", "metric"])
    assert np.isnan(rows.loc[("weak", "tpr_at_fpr=0.001"), "value"])
    peak = rows.loc[("weak", "balanced_accuracy")]
    assert peak["value"] == pytest.approx(metrics.balanced_accuracy(SCORES["weak"], MEMBERS).mean())
    assert np.isnan(peak["low"])
    table = metrics.summary(FRAME[:0].assign(kind=""), ["kind", "attack", "metric"])
    assert list(table) == ["kind", "attack", "metric", "value", "low", "high", "interval"]
    assert table.empty


def less(count):
    other = metrics.by_repetition({"a": {"x": np.zeros(count)}})
    return metrics.estimate(FRAME, "weak", "auc") - metrics.estimate(other, "a", "x")


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: metrics.estimate(FRAME, "strang", "auc"), "Did you mean 'strong'"),
        (lambda: metrics.estimate(FRAME.astype(str), "weak", "auc"), "A file keeps no estimates"),
        (lambda: metrics.by_target(SCORES, MEMBERS, []), "a list is needed, of at least one"),
        (lambda: metrics.by_target(SCORES, MEMBERS, "auc"), "a list is needed, of at least one"),
        (lambda: metrics.by_repetition({"x": [0.5, 0.6]}), "values\\['x'\\] is of type list"),
        (lambda: metrics.by_repetition({"a": {"x": ["0.5"]}}), "numbers are needed"),
        (lambda: metrics.by_repetition({"a": {"x": [1j]}}), "numbers are needed"),
        (lambda: metrics.by_repetition({"a": {"x": np.ones((3, 2))}}), "one a repetition"),
        (lambda: metrics.by_repetition({"a": {"x": []}}), "one a repetition"),
        (
            lambda: metrics.by_repetition({"a": {"x": np.ma.array([1.0, 2.0], mask=[0, 1])}}),
            "masked",
        ),
        (lambda: metrics.summary(FRAME, by=["metric"]), "attack is needed, too"),
        (
            lambda: metrics.summary(FRAME, by=["attack", "metric", "stady"]),
            "by = 'stady' is not known",
        ),
        (
            lambda: metrics.estimate(FRAME.assign(n=np.arange(len(FRAME))), "weak", "auc", n=99),
            "n = 99",
        ),
        (
            lambda: metrics.estimate(pd.concat([FRAME, FRAME.assign(study="two")]), "weak", "auc"),
            "apart by study",
        ),
        (lambda: less(5), "cannot be paired"),
        (lambda: less(4), "over 5 and over 4 repetitions"),
        (lambda: metrics.by_target({}, MEMBERS, ("auc",)), "at least one attack"),
        (
            lambda: metrics.by_target(
                {"a": SCORES["weak"], "b": SCORES["weak"][0]}, MEMBERS, ("auc",)
            ),
            r"'b': \(600,\)",
        ),
    ],
)
def test_what_is_no_estimate_is_refused(call, words):
    with pytest.raises(MiaError, match=words):
        call()


def test_the_interval_of_a_share_ends_where_shares_do():
    frame = metrics.by_repetition(
        {"pairs": {"agreement=0.01": np.array([1.0, 1.0, 0.7, 1.0])}}, study="pairs"
    )
    [row] = metrics.summary(frame).itertuples()
    assert row.high == 1.0
    assert row.low < 0.9
    assert metrics.estimate(frame, "pairs", "agreement=0.01").interval().high > 1.0
