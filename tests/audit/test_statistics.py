"""What an audit makes of scores: tests, choice of an attack, curves and groups, against exact counts and plain loops."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from mia_lib import metrics
from mia_lib.attacks import baselines
from mia_lib.audit import statistics
from mia_lib.audit.inputs import ScoreTable, score_inputs
from mia_lib.audit.options import AuditOptions
from mia_lib.data import Dataset
from mia_lib.metrics import Interval

RNG = np.random.default_rng(0)


def test_low_rate_test_is_exact():
    """The share of all ways to deal out membership with as many members above the bar."""
    score = np.arange(9.0)
    is_member = np.isin(score, [8, 7, 5, 2])
    for fpr in (0.0, 0.2, 0.4):
        allowed = int(fpr * 5 + 1e-9)

        def above(members, allowed=allowed):
            return (score[members] > np.sort(score[~members])[::-1][allowed]).sum()

        deals = [np.isin(np.arange(9), chosen) for chosen in combinations(range(9), 4)]
        twin = np.mean([above(deal) >= above(is_member) for deal in deals])
        assert statistics.low_p(score, is_member, fpr) == pytest.approx(twin)
    assert statistics.low_p(np.ones(9), is_member, 0.2) == 1, "ties count against the attack"


def test_an_auc_that_can_be_detected_is_found_in_four_audits_of_five():
    """Gaussian scores with that AUC, by the rank test at the level that is left to one of eight tests."""
    auc, is_member = statistics.detectable_auc(150, 300, 4), np.arange(450) < 150
    lead = np.sqrt(2) * stats.norm.ppf(auc)
    found = [
        statistics.auc_p(RNG.standard_normal(450) + lead * is_member, is_member) < 0.05 / 8
        for _ in range(500)
    ]
    # 3.9 standard errors
    assert 0.73 < np.mean(found) < 0.87 and auc == pytest.approx(0.596, abs=1e-3)


def test_a_rate_that_can_be_detected_is_found_in_four_audits_of_five():
    """Gaussian scores with that rate at 1 %, by the exact test; and of few non-members nothing is said."""
    rate, is_member = statistics.detectable_tpr(400, 300, 4, 0.01), np.arange(700) < 400
    lead = stats.norm.ppf(rate) - stats.norm.ppf(0.01)
    found = [
        statistics.low_p(RNG.standard_normal(700) + lead * is_member, is_member, 0.01) < 0.05 / 8
        for _ in range(500)
    ]
    assert 0.73 < np.mean(found) < 0.87
    few, many = statistics.detectable((99, 1000), 4, 0.01)
    assert np.isnan(few.tpr) and few.auc > many.auc and 0.01 < many.tpr < rate


@pytest.mark.parametrize("members", [3, 6])
def test_rank_test_of_few_records_is_exact(members):
    """The share of all ways to deal out membership whose AUC is as high, with ties, for few members and for few others."""
    for _ in range(4):
        score, is_member = RNG.integers(0, 5, 9).astype(float), np.arange(9) < members
        deals = [np.isin(np.arange(9), chosen) for chosen in combinations(range(9), members)]
        twin = np.mean(
            [metrics.auc(score, deal) >= metrics.auc(score, is_member) - 1e-12 for deal in deals]
        )
        assert statistics.rank_p(score, is_member) == pytest.approx(twin)
    assert statistics.auc_p(np.ones(10), np.arange(10) < 5) == 1.0
    score, is_member = RNG.standard_normal(60), np.arange(60) < 25
    assert statistics.rank_p(score, is_member) == pytest.approx(
        statistics.auc_p(score, is_member), abs=0.01
    )


@pytest.mark.parametrize("groups, side", [(10, 10), (5, 20)])
def test_groups_without_a_leak_are_not_called_and_one_that_leaks_is(groups, side):
    """Of 150 audits no more call a group than one test in ten thousand would make of 5 %."""
    chance = np.random.default_rng([groups, side])
    is_member = np.arange(2 * side * groups) % 2 == 0
    rows = np.arange(2 * side * groups).reshape(groups, -1)
    alarms = sum(
        min(statistics.groups_p(chance.standard_normal(len(is_member)).round(1), is_member, rows))
        < 0.05
        for _ in range(150)
    )
    assert alarms <= stats.binom.ppf(0.9999, 150, 0.05)
    score = np.arange(float(len(is_member)))
    score[rows[0]] += 1000 * is_member[rows[0]]
    leaks, *others = statistics.groups_p(score, is_member, rows)
    assert leaks < 1e-3 < 0.05 < min(others)


def test_p_values_of_members_are_conformal_and_rates_those_of_the_metric_within_their_intervals():
    """(g + 1) / (n + 1) with g of n non-members as high; ties count. Of 50 members none was found: up to seven in a hundred
    are not excluded, so nothing is below chance."""
    score, is_member = (
        np.array([3.0, 1.0, 2.0, 3.0, 0.0]),
        np.array([True, True, False, False, False]),
    )
    np.testing.assert_allclose(statistics.p_values(score, is_member)[:2], [2 / 4, 3 / 4])
    score, is_member = RNG.standard_normal(300), RNG.random(300) < 0.5
    for rate in statistics.judge_rates(score, is_member, (0.001, 0.02, 0.3), 0):
        assert rate.tpr.value == metrics.conformal_tpr_at_fpr(score, is_member, rate.fpr)
        assert rate.tpr.low <= rate.tpr.value <= rate.tpr.high
        assert rate.resolved == (rate.fpr * (~is_member).sum() >= 1)
    [rate] = statistics.judge_rates(
        np.r_[np.zeros(50), np.linspace(0.1, 1, 300)], np.arange(350) < 50, (0.01,), 0
    )
    assert rate.tpr.value == rate.tpr.low == 0
    assert rate.tpr.high == pytest.approx(1 - 0.025 ** (1 / 50))


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_of_a_rate_holds_the_truth_as_often_as_it_says(level, monkeypatch):
    """Scores of one standard deviation's lead, whose curve is known: at a few rates, over many sets of records."""
    monkeypatch.setattr(statistics, "DRAWS", 300)
    rng = np.random.default_rng(0)
    covered = []
    is_member = np.arange(400) % 2 == 0
    rates = (0.05, 0.2, 0.5)
    for _ in range(60):
        for found in statistics.judge_rates(
            rng.standard_normal(400) + is_member, is_member, rates, 0, level
        ):
            covered.append(
                found.tpr.low <= stats.norm.sf(stats.norm.isf(found.fpr) - 1) <= found.tpr.high
            )
    assert level - 0.1 < np.mean(covered) < level + 0.1


@pytest.mark.parametrize("members, others", [(100, 600), (60, 60)])
def test_null_audits_say_nothing_more_often_than_they_may(members, others):
    """A model that gives nothing away, attacked by a loss, a rounded one, right or wrong, and by references: no rate is called
    above or below chance, no leak found, no members called lower, in more audits than one test in ten thousand would make of
    the level."""
    chance = np.random.default_rng([members, others])
    is_member = np.arange(members + others) < members
    audits = 30
    said = dict.fromkeys(("above", "below", "leak", "lower", "alone"), 0)
    for game in range(audits):
        loss = chance.exponential(size=len(is_member))
        half = chance.random((4, len(is_member))) < 0.5
        odds = chance.standard_normal((9, len(is_member)))
        scores = {
            "MALT": -loss,
            "modified entropy": -loss.round(1),
            "0-1": (loss < 1).astype(float),
            "LiRA": baselines.lira_online(odds[0], odds[1:], np.concatenate([half, ~half]), True),
        }
        table = ScoreTable(
            -loss, is_member, np.arange(len(is_member)), None, AuditOptions(seed=game)
        )
        found = statistics.judge(table, scores)
        rates = [rate for part in (found.best, *found.attacks) for rate in part.rates[:1]]
        said["above"] += any(rate.tpr.low > rate.fpr for rate in rates[:1])
        said["below"] += any(rate.tpr.high < rate.fpr for rate in rates[:1])
        said["leak"] += found.leak
        said["lower"] += found.below
        said["alone"] += found.best.p < 0.025
    level = {"leak": 0.05}
    assert all(
        count <= stats.binom.ppf(0.9999, audits, level.get(what, 0.025))
        for what, count in said.items()
    ), said


def test_the_control_says_no_more_often_than_it_may_that_records_of_one_kind_differ():
    """Of thirty studies at one in twenty more than four are seen two times in a hundred; a test of all scores together says so
    three times as often as it may."""
    found, is_member = [], np.arange(300) < 150
    for game in range(30):
        x = np.random.default_rng(game).normal(size=(300, 6)).astype(np.float32)
        rows, score, second = score_inputs(
            Dataset("one kind", x, (x[:, 0] > 0).astype(int), 300, ("0", "1")), is_member, game
        )
        found.append(
            (
                statistics.halves_p(score, is_member[rows], second),
                statistics.auc_p(score, is_member[rows]),
            )
        )
    halves, pooled = (np.array(found) < 0.05).sum(0)
    assert halves <= 4 and halves <= pooled


def test_the_choice_does_not_look_at_what_it_is_judged_on():
    """Scores of the judging half may be anything: the same attack is chosen."""
    is_member = np.arange(200) < 100
    scores = {"MALT": RNG.standard_normal(200) + is_member, "curvature": RNG.standard_normal(200)}
    first = statistics.choose_best(scores, is_member, (0.05,), 0)
    scores["curvature"][first.judged_on] = 10.0 * is_member[first.judged_on]
    assert statistics.choose_best(scores, is_member, (0.05,), 0).attack == first.attack == "MALT"
    assert first.chosen and is_member[first.judged_on].sum() == 50


@pytest.mark.parametrize(
    "auc, tpr, severity",
    [
        (0.55, 0.02, "slight"),
        (0.65, 0.02, "marked"),
        (0.8, 0.02, "severe"),
        (0.55, 0.05, "marked"),
        (0.55, 0.2, "severe"),
    ],
)
def test_severity_is_the_highest_that_the_auc_or_a_rate_reaches(auc, tpr, severity):
    rate = statistics.Rate(0.01, Interval(tpr, 0.015, 0.3), resolved=True)
    best = statistics.BestAttack(
        "LiRA", True, np.arange(3), Interval(auc, 0.52, 0.9), (rate,), 0.01
    )
    assert best.severity == severity
    uncertain = replace(best, rates=(replace(rate, tpr=Interval(tpr, 0.005, 0.3)),))
    # a rate that may be chance counts nothing
    assert uncertain.severity == replace(best, rates=()).severity


def test_labels_drawn_at_random_are_what_a_guess_is_compared_with():
    """Mean and variance are those of all draws; a model that names the frequent class alone does no better than a guess."""
    predicted = np.array([0, 0, 1, 2])
    labels = np.array([0, 1, 1, 2])
    pool = np.array([0, 0, 0, 1, 2])
    hits = [(predicted == drawn).sum() for drawn in product(pool, repeat=4)]
    found = statistics.compare_with_guessing(predicted, labels, pool)
    assert found.count == 3 and found.by_a_guess == pytest.approx(np.mean(hits))
    assert found.p == pytest.approx(stats.norm.sf((3 - np.mean(hits) - 0.5) / np.std(hits)))
    rare, zeros = (np.arange(100) > 90).astype(int), np.zeros(100, int)
    assert statistics.compare_with_guessing(zeros, rare, rare).guessed
    # members of one class
    assert not statistics.compare_with_guessing(zeros, zeros, np.arange(200) % 2).guessed
