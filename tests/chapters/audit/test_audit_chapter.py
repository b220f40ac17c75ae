"""The chapter that audits: what is measured, beside plain loops; a planted leak is found, and none where there is none."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from mia_book.chapters.audit import exhibits, measure, study
from mia_lib import audit, data, membership, metrics
from mia_lib.audit import statistics
from mia_lib.errors import MiaError
from mia_lib.published import Bank

pytestmark = pytest.mark.usefixtures("module_cache")


@pytest.fixture(scope="module")
def dealt():
    return measure.records("german_credit", 120, 120, 4)


@pytest.fixture(scope="module")
def report(dealt):
    fitted = measure.forest(dealt.sides()[0], 20)
    return audit.audit(
        fitted.predict_proba, *dealt.sides(), outputs="probabilities", name="a forest", minutes=5
    )


def test_records_are_dealt_once_to_complementary_halves_and_a_part_of_their_own(dealt, monkeypatch):
    def content(records):
        return {row.tobytes() for row in records.x}

    assert dealt.members.shape == (4, 240)
    assert_array_equal(dealt.members[0], ~dealt.members[1])
    inside, outside = dealt.sides(2)
    assert len(inside) == len(outside) == 120
    assert not content(inside) & content(outside) and not content(dealt.holdout) & content(
        dealt.pool
    )
    # more models change none
    assert_array_equal(measure.records("german_credit", 120, 120, 2).members, dealt.members[:2])
    with pytest.raises(MiaError, match="members"):
        measure.records("german_credit", 450, 200, 4)
    twice = data.load("german_credit").take(np.tile(np.arange(200), 3))
    monkeypatch.setattr(data, "load", lambda name: twice)
    found = measure.records("twice", 60, 60, 2)
    assert len(content(found.pool) | content(found.holdout)) == 180
    with pytest.raises(MiaError, match="200"):
        measure.records("twice", 80, 60, 2)


def test_what_is_shown_of_a_report_has_its_numbers(report, monkeypatch):
    table = exhibits.rates_table({"a forest": report})
    assert list(table["attack"])[0] == report.result.best.attack
    assert table["attack"].iloc[-1].startswith("*control")
    speaks = next(one for one in report.result.attacks if one.name == report.result.best.attack)
    assert table["AUC"].iloc[0].value == speaks.auc.value
    plan = exhibits.plan_table({"a forest": report}).set_index("attack")["a forest"]
    assert plan["MALT"] == "**ran**" and plan["LiRA"] == "needs a training recipe"
    sizes = exhibits.detectable_table(report)["smallest AUC"]
    assert [cell.value for cell in sizes] == [one.auc for one in report.detectable]
    assert list(exhibits.severity_table()["a report says"]) == ["slight", "marked", "severe"]
    shown = []
    monkeypatch.setattr("mia_book.evidence.results.display_bundle", shown.append)
    exhibits.show_report(report, "audit-forest")
    assert set(shown[0][exhibits.MIME]["files"]) == {"audit.html", "audit.json"}


def test_networks_are_attacked_by_the_others_of_their_recipe_without_their_partners():
    rng, members = np.random.default_rng(1), membership.balanced_halves(400, 6)
    margin = rng.normal(size=(6, 2, 400)) + 3 * rng.normal(size=400)
    margin[:, 0] += 2 * members  # which the second kind does not have
    right = np.tile([0.8, 0.7], (6, 1))
    twins = Bank(
        "audit/twins",
        {"epsilons": [8.0]},
        {"margin": margin, "right": right, "members": members},
        [],
    )
    frame = study.networks(twins, study.twin_names(twins))
    calibrated = metrics.estimate(frame, "calibrated loss", "auc", recipe="twin").values
    others = [2, 3, 4, 5]
    loss = np.logaddexp(0, -margin[:, 0])
    usual = np.mean(loss[others], 0, where=~members[others])
    assert calibrated[0] == pytest.approx(metrics.auc(usual - loss[0], members[0]))
    beside = study.with_references(frame)
    lira = metrics.estimate(beside, "with references", "auc", recipe="twin", by="LiRA").values
    assert_array_equal(lira, metrics.estimate(frame, "LiRA", "auc", recipe="twin").values)
    assert set(beside["attack"]) == {"MALT", "with references"}
    networks, frame = frame, study.privacy(frame, ["twin"])
    where = {"noise": "without", "by": "model", "twin": "as accurate"}
    lost = metrics.estimate(frame, "network", "accuracy", **where)
    assert lost.value == pytest.approx(0.8) and set(frame["promised"]) == {"epsilon 8"}
    where = {"noise": "without", "by": "BASE", "twin": "as accurate", "measure": "AUC"}
    of_base = metrics.estimate(frame, "network", "value", **where).values
    assert_array_equal(of_base, metrics.estimate(networks, "BASE", "auc", recipe="twin").values)
    assert study.alarms(twins, 0) >= 5 > study.alarms(twins, 1) == 0
    # a level that one threshold passes more rarely than the calibrated loss
    tests, hits = 10**12, 0
    for m in range(6):
        others = [other for other in range(6) if other // 2 != m // 2]
        score = np.mean(loss[others], 0, where=~members[others]) - loss[m]
        hits += statistics.auc_p(score, members[m]) < 0.05 / tests
    assert study.alarms(twins, 0, "calibrated loss", tests) == hits
    assert hits > study.alarms(twins, 0, "MALT", tests)
    assert len(exhibits.networks_table(study.networks(twins, ["a", "b"]))) == 2


def test_a_recipe_is_changed_in_one_thing():
    kinds = {change: measure.changed(measure.NETWORK, change) for change in measure.CHANGES}
    changes = [
        sum(measure.NETWORK[name] != value for name, value in one.items()) for one in kinds.values()
    ]
    assert changes == [0, 1, 1, 1] and kinds["a third of the epochs"]["epochs"] == 6


# One run

TINY = {
    "records": 40,
    "natural": 20,
    "mislabelled": 20,
    "gradients": 50,
    "architecture": "mlp:4",
    "epochs": 2,
    "batch_size": 20,
    "learning_rate": 1.0,
}


@pytest.fixture(scope="module")
def with_canaries():
    pytest.importorskip("opacus", reason="Opacus is not installed: pip install -e '.[dp]'")
    return measure.one_run(2, epsilon=1e9, **TINY)


def test_canaries_are_in_by_coins_of_their_own_and_without_noise_those_that_are_in_move_their_parameters(
    with_canaries,
):
    assert [
        one.shape for one in (with_canaries.coins, with_canaries.gain, with_canaries.moved)
    ] == [(2, 90), (2, 40), (2, 50)]
    assert 20 < (with_canaries.coins[0] != with_canaries.coins[1]).sum() < 70
    assert_array_equal(
        measure.one_run.compute(range(1, 2), with_canaries.parameters)["coins"][0],
        with_canaries.coins[1],
    )
    frame = study.canary_bounds(with_canaries)
    score, coins = study.canary_scores(with_canaries)["gradients"]
    assert metrics.auc(score, coins).mean() > 0.7
    score, coins = study.canary_scores(with_canaries)["mislabelled"]
    assert score.shape == coins.shape == (2, 20)
    assert_array_equal(coins, with_canaries.coins[:, 20:40])
    in_theory = study.simulate_gaussian(1e-5, repetitions=2).query("promised == 1")
    shown = pd.concat([frame, frame.assign(promised=1.0), in_theory])
    table = exhibits.one_run_table(shown, "Gaussian")
    assert list(table) == ["1", "no noise"] and table["no noise"].iloc[0] == "–"


def test_published_bounds_stay_below_what_the_accountant_says_and_both_sides_are_judged_alike():
    for promised in study.EPSILONS[:-1]:
        bank = measure.one_run(8, epsilon=promised)
        assert (bank.spent <= promised).all()
        frame = study.canary_bounds(bank)
        many = measure.many_runs(1000, epsilon=promised)
        frame = pd.concat([frame, study.canary_bounds(many, many=True)])
        for bound, rows in frame.groupby("bound"):
            values = np.concatenate([number.values for number in rows["estimate"]])
            assert len(values) == 40 and (values > promised).sum() <= 2, (promised, bound)
        assert (np.abs(many.coins.mean(0) - 0.5) < 0.07).all()
    score, coins = study.canary_scores(many)["gradients"]
    bound = metrics.epsilon_one_run(score[:, 1], coins[:, 1], None, 1e-5)
    found = metrics.estimate(frame, "gradients, many runs", "epsilon", bound="right guesses")
    assert found.values[1] == float(bound) > 0


def test_a_gaussian_bound_is_below_the_epsilon_of_its_noise_but_for_its_confidence():
    rng, bounds = np.random.default_rng(3), []
    for _ in range(200):
        coins = rng.random(1000) < 0.5
        score = coins + study.gaussian_noise(4.0, 1e-5) * rng.normal(size=1000)
        bounds.append(study.gaussian_bound(score, coins, 1e-5))
    assert 2.5 < np.mean(bounds) < 4 and np.mean(np.array(bounds) > 4) < 0.1
    assert study.gaussian_bound(rng.normal(size=1000), coins, 1e-5) < 1


def test_noise_of_the_gaussian_mechanism_is_the_least_that_its_epsilon_allows():
    from scipy import integrate, stats

    for epsilon, delta in ((1.0, 1e-5), (8.0, 1e-3)):
        sigma = study.gaussian_noise(epsilon, delta)
        left, _ = integrate.quad(
            lambda x, s=sigma, e=epsilon: max(
                stats.norm.pdf(x, 1, s) - np.exp(e) * stats.norm.pdf(x, 0, s), 0
            ),
            -1,
            1 + 12 * sigma,
            limit=500,
        )
        assert left == pytest.approx(delta, rel=0.01)


def test_in_theory_bounds_stay_below_what_was_promised_and_grow_with_it():
    frame = study.simulate_gaussian(1e-5, repetitions=4)
    for bound in ("right guesses", "Gaussian"):
        means = [
            metrics.estimate(frame, "in theory", "epsilon", promised=one, bound=bound).value
            for one in study.EPSILONS[:-1]
        ]
        assert (np.diff(means) > 0).all() and (np.array(means) < study.EPSILONS[:-1]).all()
