"""The chapter that audits: what is measured, beside plain loops; a planted leak is found, and none where there is none."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mia_book.chapters.audit import exhibits, measure, study
from mia_lib import audit, data, metrics
from mia_lib.errors import MiaError
from mia_lib.published import Bank, load

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
    assert not content(inside) & content(outside) and not content(dealt.apart) & content(dealt.pool)
    # more models change none
    assert_array_equal(measure.records("german_credit", 120, 120, 2).members, dealt.members[:2])
    with pytest.raises(MiaError, match="members"):
        measure.records("german_credit", 450, 200, 4)
    twice = data.load("german_credit").take(np.tile(np.arange(200), 3))
    monkeypatch.setattr(data, "load", lambda name: twice)
    found = measure.records("twice", 60, 60, 2)
    assert len(content(found.pool) | content(found.apart)) == 180
    with pytest.raises(MiaError, match="200"):
        measure.records("twice", 80, 60, 2)


def test_published_forests_know_their_members_and_the_control_does_not():
    frame = study.forests(load("audit/forests"))
    value = {leaf: metrics.estimate(frame, "loss", "auc", leaf=leaf).value for leaf in (1, 5, 20)}
    assert value[1] > 0.8 > value[20] > 0.5  # a leaf of one record answers with its label
    blind = metrics.estimate(frame[frame["attack"] == "no model"], "no model", "auc").interval()
    assert blind.low < 0.5 < blind.high or abs(blind.value - 0.5) < 0.03
    held = load("audit/forests")
    assert_allclose(value[5], np.mean(metrics.auc(-held.loss[:, 1], held.members)))


def test_references_of_a_report_attack_each_other_without_their_complements(dealt, monkeypatch):
    from mia_lib.training import TrainConfig

    recipe = TrainConfig("mlp:8", epochs=1, optimizer="sgd", learning_rate=0.1)
    found = audit.audit(
        measure.forest(dealt.sides()[0], 5).predict_proba,
        *dealt.sides(),
        outputs="probabilities",
        recipe=recipe,
        references=4,
        minutes=5,
    )
    frame = study.references(found)
    assert {len(number.values) for number in frame["estimate"]} == {4}
    assert set(frame["attack"]) == {"MALT", "calibrated loss", "LiRA"}


def test_what_is_shown_of_a_report_has_its_numbers(report, monkeypatch):
    table = exhibits.rates_table({"a forest": report})
    assert list(table["attack"])[0] == report.result.best.attack
    assert table["attack"].iloc[-1].startswith("*control")
    speaks = next(one for one in report.result.attacks if one.name == report.result.best.attack)
    assert table["AUC"].iloc[0].value == speaks.auc.value
    plan = exhibits.plan_table({"a forest": report}).set_index("attack")["a forest"]
    assert plan["MALT"] == "**ran**" and plan["LiRA"] == "needs a training recipe"
    assert exhibits.prices_table(report)["recipe"].iloc[0] == "the model that is audited"
    shown = []
    monkeypatch.setattr("mia_book.evidence.results.display_bundle", shown.append)
    exhibits.show_report(report, "audit-forest")
    assert set(shown[0][exhibits.MIME]["files"]) == {"audit.html", "audit.json"}


def test_the_models_behind_the_claims_have_a_row_each():
    rng, members = np.random.default_rng(1), np.tile(np.arange(40) < 20, (2, 1))
    twins = Bank(
        "audit/twins",
        {},
        {"loss": rng.random((2, 2, 40)), "right": rng.random((2, 2)), "members": members},
        [],
    )
    frame = pd.concat([study.forests(load("audit/forests")), study.twins(twins)])
    rows = exhibits.many_table(frame)
    assert ("forests, leaves of 1", "loss") in rows.index
    assert ("twins, private", "loss") in rows.index
    tested = study.tested(
        Bank("audit/tested", {}, {"alarms": np.array([[0.0, 1.0], [0.1, 0.9]])}, []), "forests"
    )
    assert exhibits.tested_table(tested).loc["forests", "alarms with one"].value == pytest.approx(
        95
    )


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
    frame = study.one_run(with_canaries)
    assert metrics.estimate(frame, "gradients", "auc").value > 0.7
    score, coins = study.canary_scores(with_canaries)["mislabelled"]
    assert score.shape == coins.shape == (2, 20)
    assert_array_equal(coins, with_canaries.coins[:, 20:40])
    in_theory = study.simulate_gaussian(1e-5, repetitions=2).query("promised == 1")
    shown = exhibits.one_run_table(pd.concat([frame, frame.assign(promised=1.0), in_theory]))
    assert list(shown) == ["1", "no noise"] and shown["no noise"].iloc[0] == "–"


def test_published_bounds_stay_below_what_the_accountant_says():
    for promised in study.EPSILONS[:-1]:
        held = measure.one_run(8, epsilon=promised)
        assert (held.spent <= promised).all()
        frame = study.one_run(held)
        for kind in ("gradients", "mislabelled", "natural"):
            assert (metrics.estimate(frame, kind, "epsilon").values > held.spent).sum() <= 1
        held = measure.many_runs(1000, epsilon=promised)
        frame = study.many_runs(held)
        bounds = np.concatenate([number.values for number in frame["estimate"]])
        assert len(bounds) == 16
        assert (bounds < promised).all()
        assert (np.abs(held.coins.mean(0) - 0.5) < 0.07).all()
    score, coins = study.canary_scores(held)["gradients"]
    bound = metrics.epsilon_lower_bound(score[:, 1], coins[:, 1], 1e-5, splits=1)
    assert metrics.estimate(frame, "gradients, many runs", "epsilon").values[1] == float(bound) > 0
    assert list(exhibits.one_run_table(frame).index)[-1] == "one run: accuracy"


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
    for kind in ("one run", "many runs"):
        means = [
            metrics.estimate(frame, kind, "epsilon", promised=one).value
            for one in study.EPSILONS[:-1]
        ]
        assert (np.diff(means) > 0).all() and (np.array(means) < study.EPSILONS[:-1]).all()
    few, many = study.bounds_without_errors(8), study.bounds_without_errors(1000)
    assert many["one run"] == pytest.approx(np.log(0.05**0.001 / (1 - 0.05**0.001)), abs=1e-5)
    assert few["many runs"] == 0 < few["one run"]
