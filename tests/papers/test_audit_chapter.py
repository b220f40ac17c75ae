"""The chapter that audits: a leak that was planted is there and is found, models that saw nothing give chance, loops agree."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mia_lib import metrics
from mia_lib.audit import given as giving
from mia_lib.audit.attacks import ATTACKS
from mia_lib.errors import MiaError
from mia_lib.evidence import claims
from mia_lib.papers.audit import exhibits, networks, study
from mia_lib.papers.audit.study import Many, Trials
from mia_lib.training import TrainConfig

pytestmark = pytest.mark.usefixtures("module_cache")


@pytest.fixture(scope="module")
def dealt():
    return study.records("german_credit", 120, 120, 4)


@pytest.fixture(scope="module")
def forests(dealt):
    return study.forests(dealt, 15, [1, 20])


def content(records):
    return {row.tobytes() for row in records.x}


def test_records_are_dealt_to_complementary_halves_and_a_part_of_their_own(dealt):
    assert dealt.members.shape == (4, 240) and dealt.title == "German credit"
    assert_array_equal(dealt.members[0], ~dealt.members[1])
    inside, outside = dealt.sides(2)
    assert len(inside) == len(outside) == 120
    assert not content(inside) & content(outside) and not content(dealt.apart) & content(dealt.pool)
    with pytest.raises(MiaError, match="members"):
        study.records("german_credit", 450, 200, 4)


def test_what_is_in_a_data_set_twice_is_dealt_once(monkeypatch):
    credit = study.data.load("german_credit")
    twice = credit.take(np.r_[np.arange(200), np.arange(200), np.arange(200)])
    monkeypatch.setattr(study.data, "load", lambda name: twice)
    dealt = study.records("twice", 60, 60, 2)
    assert len(content(dealt.pool) | content(dealt.apart)) == 180
    with pytest.raises(MiaError, match="200"):
        study.records("twice", 80, 60, 2)


@pytest.mark.parametrize("stages, parameters", [(1, 151_882), (2, 678_090), (4, 11_175_370)])
def test_the_network_is_torchvisions_up_to_a_stage(stages, parameters):
    import torch

    network = networks.resnet18((28, 28, 1), 10, stages).eval()
    assert sum(w.numel() for w in network.parameters()) == parameters
    assert network(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_a_planted_leak_changes_some_members_and_nothing_else(dealt):
    inside, outside = dealt.sides()
    plain = study.forest(dealt.apart, 10).predict_proba
    leak = study.planted(plain, inside, 0.5)
    assert_array_equal(leak(outside.x), plain(outside.x))
    before, after = (p[np.arange(len(inside)), inside.y] for p in (plain(inside.x), leak(inside.x)))
    known = after != before
    assert 40 < known.sum() < 80
    assert_allclose((1 - after[known]) / (1 - before[known]), 1 - study.SURER)
    assert_allclose(leak(inside.x).sum(1), 1)
    assert_array_equal(study.planted(plain, inside, 0.0)(inside.x), plain(inside.x))


def test_an_audit_finds_the_planted_leak_and_no_other(dealt):
    functions = [study.forest(dealt.apart, 15, 1, 100 + k).predict_proba for k in range(4)]
    found = study.tested(dealt, functions, 0.5, 40)
    assert (found.planted > found.strange + 0.05).all() and abs(found.strange.mean() - 0.5) < 0.1
    assert found.alarms.mean() <= 0.125  # 160 audits at 5 %: 20 would be one in two thousand
    assert found.found.min() > 0.9
    assert_array_equal(study.tested(dealt, functions, 0.5, 40).planted, found.planted)


def test_alarms_need_something_to_see(dealt):
    assert study.alarms(dealt.pool, np.full((240, 2), 0.5), 20, 0) == 0


def test_forests_are_those_that_a_loop_fits(dealt, forests):
    inside = dealt.members[1]
    fitted = study.forest(dealt.sides(1)[0], 15, 20, 1)
    p = fitted.predict_proba(dealt.pool.x)[np.arange(240), dealt.pool.y]
    assert_allclose(forests.auc("leaf 20")[1], metrics.auc(p, inside), atol=1e-12)
    assert_allclose(forests.accuracy["leaf 20"][1], (p > 0.5)[~inside].mean(), atol=0.02)  # ties at one half
    assert (forests.auc("leaf 1") > forests.auc("leaf 20")).all()


def test_references_that_attack_each_other_are_those_of_the_audit(monkeypatch):
    """Trained by the same recipe as the audit trained them, so that what is kept is found again."""
    class Asked(Exception):
        pass

    def train(records, members, config, **more):
        raise Asked(config)

    recipe = TrainConfig("mlp:8", seed=3)
    given = SimpleNamespace(pool=range(40), recipe=recipe, seed=0)
    monkeypatch.setattr(study.training, "train", train)
    with pytest.raises(Asked) as asked:
        study.of_references(SimpleNamespace(given=given, plan=SimpleNamespace(references=4)))
    assert asked.value.args == (giving.reseeded(recipe),)


def test_the_control_sees_no_model(dealt, forests):
    assert abs(forests.auc("blind").mean() - 0.5) < 0.1
    again = study.blindly(dealt, 0, study.forest(dealt.apart, 5).predict_proba)
    assert_array_equal(again, forests.scores["blind"][0])


def verdicts(**more):
    rng, members = np.random.default_rng(0), np.tile(np.arange(200) < 100, (4, 1))

    def scores(by):
        return rng.normal(size=(4, 200)) + by * members

    forests = Many(members, {"leaf 1": scores(3), "leaf 9": scores(1), "blind": scores(0)}, {})
    pair = Many(members, {"twin": scores(2), "private": scores(0)},
                {"twin": np.array([0.8, 0.81, 0.79, 0.8]), "private": np.array([0.7, 0.72, 0.7, 0.69])})
    tests = {"forests": Trials(np.full(4, 0.5), np.array([0.6, 0.61, 0.62, 0.6]), np.array([0.01, 0.02, 0.01, 0.02]),
                               np.array([0.9, 0.91, 0.92, 0.9]), 100)}
    given = {"tests": tests, "forests": forests, "leaves": [1, 9], "private": pair, "lacking": "",
             "references": Many(members, {"calibrated loss": scores(1), "LiRA": scores(2), "MALT": scores(0)}, {}), **more}
    return {one.claim: one for one in exhibits.judge(**given)}


def test_every_claim_is_judged():
    found = verdicts()
    assert list(found) == list(claims.claims("audit"))
    assert {one.verdict for one in found.values()} == {"reproduced"}
    assert set(found["A6"].parts) == {"calibrated loss", "LiRA"}


def test_what_all_audits_find_is_found():
    every = Trials(np.full(8, 0.5), np.full(8, 0.7), np.zeros(8), np.ones(8), 40)
    found = verdicts(tests={"forests": every})
    assert found["A1"].verdict == found["A2"].verdict == "reproduced"
    none = Trials(np.full(8, 0.5), np.full(8, 0.5), np.ones(8), np.zeros(8), 40)
    found = verdicts(tests={"forests": none, "others": every})
    assert found["A1"].verdict == found["A2"].verdict == "contradicted"


def test_what_was_not_run_says_why():
    found = verdicts(private=None, lacking="Opacus is not installed", references=None, leaves=[1])
    assert {claim for claim, one in found.items() if one.verdict == "not run"} == {"A4", "A5", "A6", "A7"}
    assert found["A4"].reason == found["A5"].reason == "Opacus is not installed"


def test_every_attack_has_a_look_of_its_own():
    assert set(exhibits.LOOK) == {name for name, one in ATTACKS.items() if not one.audits}
    assert len({(look["color"], str(look["linestyle"])) for look in exhibits.LOOK.values()}) == len(exhibits.LOOK)


def test_a_table_says_why_it_is_not_there():
    assert exhibits.not_run("Opacus is not installed").to_numpy().tolist() == [["Opacus is not installed."]]


def test_a_report_is_shown_whole(monkeypatch):
    shown = []
    monkeypatch.setattr("mia_lib.evidence.tables.display_bundle", lambda data, metadata=None: shown.append(data))
    report = SimpleNamespace(html=lambda: "<p title='x'>found & \"said\"</p>", data=lambda: {"auc": 0.5},
                             given=SimpleNamespace(name="a <b>"))
    exhibits.show_report(report, "audit-forest")
    assert shown[0][exhibits.MIME] == {"name": "audit-forest", "title": "a <b>",
                                       "files": {"audit.html": report.html(), "audit.json": '{"auc": 0.5}'}}
    assert "&lt;p title=&#x27;x&#x27;&gt;found &amp; &quot;" in shown[0]["text/html"]
    with pytest.raises(MiaError, match="cannot be linked"):
        exhibits.show_report(report, "Audit forest")


def test_an_audit_has_to_be_asked_about_both_sides(dealt):
    inside, _ = dealt.sides()
    with pytest.raises(MiaError, match="non_members"):
        giving.given(study.forest(inside, 5).predict_proba, inside, inside, outputs="probabilities")
