"""The chapter that compares: what attacks see, beside plain loops, and what the guide chooses."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from mia_book.chapters.compare import exhibits, study
from mia_book.chapters.compare.study import ATTACKS, ENTRIES
from mia_lib import metrics, signals
from mia_lib.attacks import baselines, bayes, calibration, registry
from mia_lib.errors import MiaError
from mia_lib.published import Bank, load

RECORDS, TARGETS = 600, 8


@pytest.fixture(scope="module")
def case():
    return study.of_bank("cifar10", RECORDS, 20)


@pytest.fixture(scope="module")
def attacked(case):
    return study.attack_case(case, TARGETS, [1, 2, 4, 8], draws=10)


def test_a_record_is_compared_with_as_many_references_whichever_kind_an_attack_takes(case):
    for name, entry in ENTRIES.items():
        others = case.game.references_of(4, 2 * study.pairs_for(entry, 4))
        knows, left = case.game.members[others].sum(0), (~case.game.members[others]).sum(0)
        assert entry.kind != "out only" or set(left) == {4}, name
        assert entry.kind != "in and out" or set(knows) == set(left) == {2}, name


def test_scores_are_those_of_the_library_on_the_bank(case, attacked):
    _, scores = attacked
    bank = load("bank/cifar10-small", 20)
    odds, members = bank.margin[:, :RECORDS].astype(float), bank.members[:, :RECORDS]
    loss, tested = signals.loss_of(odds), bank.untrained[: study.POPULATION]
    for k, target in enumerate(range(0, 2 * TARGETS, 2)):
        both, out = (case.game.references_of(target, count) for count in (4, 8))
        assert_allclose(scores[0]["MALT"][k], bayes.malt(loss[target]))
        assert_allclose(
            scores[4]["LiRA"][k],
            baselines.lira_online(odds[target], odds[both], members[both], True),
        )
        assert_allclose(
            scores[4]["calibrated loss"][k],
            calibration.calibrate(-loss[target], -loss[out], members[out]),
        )
        p, public = np.exp(-loss), np.exp(-signals.loss_of(bank.margin[:, tested].astype(float)))
        assert_allclose(
            scores[4]["RMIA"][k],
            baselines.rmia(p[target], p[both], members[both], public[target], public[both]),
        )
    curved, both = load("curvature/cifar10-small", 20), case.game.references_of(2, 8)
    released = curved.released[:, :RECORDS, 0].astype(float)
    expected = registry.by_curvature.nll(released[2], released[both], members[both])
    assert_allclose(scores[8]["Curv, log ratio"][1], expected, rtol=1e-5)
    for name, views in (
        ("LiRA, 2 queries", curved.true.astype(float).mean(-1)),
        ("LiRA, 18 queries", curved.shifted[..., 0]),
    ):
        odds = views[:, :RECORDS].astype(float)  # more queries are joined by their mean
        assert_allclose(
            scores[8][name][1], baselines.lira_online(odds[2], odds[both], members[both], True)
        )


def test_the_soft_minimum_and_base_rank_as_rmia(case):
    for one in (case, study.by_heart(RECORDS)):
        found = study.ranks_as_rmia(one, 4)
        assert found["attack"].tolist() == ["MAST (softmin)", "BASE"] and found[
            "value"
        ].tolist() == [0, 0]


def test_a_tail_is_the_share_of_others_above_all_but_one_in_a_hundred_members(case):
    found, loss = study.tail(case, 2, draws=4), case.game.values["loss"]
    for k, target in enumerate((0, 2)):
        members, others = (
            loss[target][case.game.members[target]],
            loss[target][~case.game.members[target]],
        )
        threshold = np.sort(members)[::-1][int(0.01 * len(members))]
        assert metrics.estimate(found, "loss tail", "tpr_at_fpr=0.01").values[k] == pytest.approx(
            (others > threshold).mean()
        )


def test_with_most_numbers_of_references_only_curves_are_known(case):
    _, scores = study.attack_case(case, 2, [2, 4, 8], draws=2, whole=[4])
    assert set(scores[2]) | set(scores[8]) < set(study.CURVES) and "LiRA, 18 queries" in scores[4]
    assert "0-1" in scores[0] and "BASE" in scores[4] and "BASE" not in scores[8]
    with pytest.raises(MiaError, match="targets = 11"):
        study.attack_case(case, 11, [2])


def test_both_references_of_the_sharing_study_know_no_judged_record():
    found = study.sharing("cifar10", 2, draws=4)
    bank = load("bank/cifar10-small", 6)
    size = min((bank.members[t] & ~bank.members[t + 2]).sum() for t in (0, 2))
    kept = np.flatnonzero(bank.members[0] & ~bank.members[2])[:size]
    assert (
        not bank.members[[1, 2]][:, kept].any()
        and abs((bank.members[0] & bank.members[2]).sum() - 12_500) < 500
    )
    rows = np.r_[kept, bank.untrained]
    loss = signals.loss_of(bank.margin[[0, 2]][:, rows].astype(float))
    value = metrics.auc(loss[1] - loss[0], np.arange(len(rows)) < size)
    assert metrics.estimate(found, "calibrated loss", "auc", overlap="half").values[
        0
    ] == pytest.approx(value)


def test_a_regression_on_public_records_is_a_row_where_it_is_published():
    bank = load("bank/cifar10-small", 4)
    judged, tested = 100, (~bank.members.any(0)).sum()
    shape = (2, judged + tested + 30)  # those that are held back follow
    regression = Bank(
        "quantile",
        {},
        {"mean": np.zeros(shape, np.float16), "log_spread": np.zeros(shape, np.float16)},
        [],
    )
    further = Bank(
        "more", {}, {"margin": np.random.default_rng(0).normal(size=(2, 3, judged + tested))}, []
    )
    found = study.public_records("cifar10", 8, regression, further, judged, draws=4)
    assert set(found["references"]) == {0, 1, 4}
    assert {len(number.values) for number in found["estimate"]} == {
        2
    }  # as many targets as there are regressions
    rate = {
        name: metrics.estimate(found, name, "auc", references=0).value
        for name in ("MALT", "quantile regression")
    }
    assert rate["MALT"] == pytest.approx(
        rate["quantile regression"]
    )  # a regression that says nothing
    assert "quantile regression" not in set(
        study.public_records("cifar10", 2, None, None, judged, 4)["attack"]
    )
    assert study.find("quantile/of-nothing") is None


def test_the_guide_chooses_on_some_targets_and_reports_on_others(attacked):
    frame, _ = attacked
    means, chosen = study.means_of(frame, 4), study.guide(frame, 4)
    assert list(exhibits.guide_table(frame, 4)["attack"]) == list(chosen.values())
    assert chosen["labels"] == "0-1" and means["many"][2] == 8 and list(means) == list(chosen)
    for what, name in chosen.items():
        rows = frame[(frame["attack"] == name) & (frame["metric"] == study.METRICS[1])]
        rows = rows[rows["references"] == means[what][2]]
        found = study.reported(frame, name, means[what][2], "CIFAR-10")
        assert found.value == pytest.approx(rows["estimate"].iloc[0].values[1::2].mean())
        assert ATTACKS[name].kind in means[what][1]


def test_the_guide_stands_whatever_numbers_of_references_are_asked_for(case):
    frame, _ = study.attack_case(case, 2, [4], draws=2, whole=study.all_with([case], [4], 2))
    assert set(frame["references"]) == {0, 1, 2, 4}
    assert len(study.guide(frame, 2)) == len(exhibits.guide_table(frame, 2)) == len(exhibits.HAVE)
    frame, _ = study.attack_case(case, 2, [2], draws=2, whole=study.all_with([case], [2], 2))
    assert list(study.guide(frame, 2)) == list(exhibits.HAVE), (
        "prose names each, also where there are no more than a few"
    )
    assert len(exhibits.guide_table(frame, 2)) == len(exhibits.HAVE) - 1


def test_every_exhibit_has_a_row_an_attack(case, attacked):
    frame, scores = attacked
    table = exhibits.main_table(frame, 8)
    names = {name for count in (0, 8) for name in scores[count]} & set(ATTACKS)
    assert set(table.index.get_level_values("attack")) == names
    queries = dict(
        zip(
            table.index.get_level_values("attack"),
            table.index.get_level_values("queries"),
            strict=True,
        )
    )
    assert queries["Curv, log ratio"] == 40 and queries["LiRA"] == 1
    assert len(exhibits.access_table()) == 1 + len(ATTACKS)
    figure = exhibits.ranking_figure(frame, 8)
    assert {text.get_text() for text in figure.axes[0].get_yticklabels()} == names - {"RMIA"}
    for drawn in (exhibits.references_figure(frame), exhibits.queries_figure(frame, 8)):
        assert [axis.get_title() for axis in drawn.axes if axis.get_title()] == ["CIFAR-10"]
    assert set(exhibits.beside([case], [scores], 8)["CIFAR-10"][0]) == set(exhibits.BESIDE)
    assert isinstance(exhibits.regimes_table([case]), pd.DataFrame)
    reported = exhibits.reported_table(frame, [case]).reset_index()
    assert (reported["references"][-2:] == "8").all() and set(reported["whose"]) >= {
        "Carlini et al. 2022",
        "ours",
    }
    tails = exhibits.tail_table(pd.concat([study.tail(case, TARGETS, 10), frame]))
    assert list(tails.index) == ["CIFAR-10"] and "loss tail: TPR at 1 %" in tails.columns


def test_recipes_differ_in_augmentation_and_in_length_alone():
    frame, cases = study.recipes(draws=4)
    assert {(a, e) for a, e in zip(frame["augmentation"], frame["epochs"], strict=True)} == set(
        study.RECIPES
    )
    assert all(np.array_equal(case.game.members, cases[0].game.members) for case in cases)
    bank, case = load("compare/recipes", **study.RECIPES["none", 20]), cases[0]
    members, odds = bank.members, bank.queries[..., 0].astype(float)
    others = case.game.references_of(1)
    value = metrics.auc(
        baselines.lira_online(odds[1], odds[others], members[others], True), members[1]
    )
    rows = frame[(frame["augmentation"] == "none") & (frame["epochs"] == 20)]
    assert metrics.estimate(rows, "LiRA", "auc").values[1] == pytest.approx(value)
