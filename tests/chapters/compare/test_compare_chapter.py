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
from mia_lib.published import load

RECORDS, TARGETS = 600, 8


@pytest.fixture(scope="module")
def case():
    return study.of_bank("cifar10", RECORDS, 20)


@pytest.fixture(scope="module")
def attacked(case):
    return study.attack_case(case, TARGETS, [1, 2, 4, 8], ENTRIES, draws=10)


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
    for one in (case, study.of_bank("cifar100_by_heart", RECORDS)):
        found = study.ranks_as_rmia(one, 4)
        assert found["attack"].tolist() == ["MAST (softmin)", "BASE"] and found[
            "value"
        ].tolist() == [0, 0]


def test_a_case_has_costly_signals_where_they_were_measured_of_so_many_records_alone():
    few, all_of_it = (study.of_bank("cifar10", count, 4) for count in (RECORDS, None))
    assert "curvature" in few.game.values and "curvature" not in all_of_it.game.values
    assert all_of_it.game.members.shape == (4, 50_000)
    assert [study.of_bank(name, RECORDS, 4).fit for name in study.BANKS] == [
        study.GENERALISES if "heart" not in name else study.BY_HEART for name in study.BANKS
    ]
    with pytest.raises(MiaError, match="targets = 11"):
        study.attack_case(study.of_bank("cifar10", RECORDS, 20), 11, [2])


def test_rmia_has_its_authors_constant_of_the_data_where_it_cannot_learn_one():
    case = study.of_bank("cifar100", RECORDS, 6)
    view, entry = case.game.view(0, 2), ENTRIES["RMIA, offline"]
    assert_allclose(study.score(entry, case, view), registry.score("RMIA, offline", view, a=0.6))


def test_both_references_of_the_sharing_study_know_no_judged_record():
    found = study.sharing(["cifar10"], 2, draws=4)
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


def result(attack, data, fit, values, fpr, references=8):
    """A row of the frame of attacks: 16 targets, the even ones with the first of two rates."""
    rates = np.where(np.arange(16) % 2, values[1], values[0]) + np.linspace(0, 1e-3, 16)
    found = metrics.by_repetition({attack: {f"tpr_at_fpr={fpr}": rates}}, study="attacks")
    return found.assign(data=data, fit=fit, references=references)


def test_the_guide_chooses_on_some_targets_and_counts_on_others():
    frame = pd.concat(
        [
            result("RMIA", "a", study.GENERALISES, (0.5, 0.1), 0.01),
            result("LiRA", "a", study.GENERALISES, (0.4, 0.3), 0.01),
            result("RMIA", "a", study.GENERALISES, (0.3, 0.2), 0.001),
            result("LiRA", "a", study.GENERALISES, (0.2, 0.2), 0.001),
            result("RMIA", "b", study.BY_HEART, (0.1, 0.3), 0.01),
            result("LiRA", "b", study.BY_HEART, (0.2, 0.5), 0.01),
        ],
        ignore_index=True,
    )
    found = study.guide(frame, 8).set_index(["means", "fit"])
    assert list(found.index.get_level_values("means").unique()) == ["few", "many"]
    generalises = found.loc["few", study.GENERALISES]
    assert generalises["attack"] == "RMIA", "by the even targets"
    assert (generalises["good"], generalises["settings"]) == (1, 2), "by the odd ones"
    assert generalises["rates"]["a"].value == pytest.approx(0.1, abs=1e-3)
    assert found.loc["few", study.BY_HEART]["attack"] == "LiRA"
    table = exhibits.guide_table(study.guide(frame, 8))
    assert table.iloc[0].tolist()[:2] == ["RMIA (1 of 2)", "LiRA (1 of 1)"]
    assert len(exhibits.rates_table(study.guide(frame, 8))) == 4


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
    curves = frame[frame["attack"].isin(study.LOSS_ATTACKS)]
    for drawn in (exhibits.references_figure(curves), exhibits.queries_figure(frame, 8)):
        assert [axis.get_title() for axis in drawn.axes if axis.get_title()] == ["CIFAR-10"]
    assert set(exhibits.beside([case], [scores], 8)["CIFAR-10"][0]) == set(exhibits.BESIDE)
    assert isinstance(exhibits.regimes_table([case]), pd.DataFrame)
    reported = exhibits.reported_table(frame, [case]).reset_index()
    assert (reported["references"][-2:] == "8").all() and set(reported["whose"]) >= {
        "Carlini et al. 2022",
        "ours",
    }


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


def test_one_spread_is_lira_whose_variances_are_alike():
    case = study.of_bank("cifar10_by_heart", RECORDS, 10)
    frame = study.with_one_spread([case], 4, 6, draws=4)
    odds, both = case.game.values[registry.LOG_ODDS], case.game.references_of(2, 6)
    knows = case.game.members[both]
    inside, outside = (
        np.array([np.mean(odds[both][kind[:, i], i]) for i in range(RECORDS)])
        for kind in (knows, ~knows)
    )
    score = ((odds[2] - outside) ** 2 - (odds[2] - inside) ** 2) / 2
    assert_allclose(study.one_spread(case.game.view(2, 6)), score, rtol=1e-6, atol=1e-6)
    value = metrics.tpr_at_fpr(score, case.game.members[2], 0.01)
    assert frame["data"].unique().tolist() == [case.name]
    assert metrics.estimate(frame, study.ONE_SPREAD, study.METRICS[1]).values[1] == pytest.approx(
        value
    )


def test_a_lead_is_the_paired_difference_at_one_percent(attacked):
    frame, scores = attacked
    members = load("bank/cifar10-small", 20).members[: 2 * TARGETS : 2, :RECORDS]
    rates = {
        name: np.mean(
            [
                metrics.tpr_at_fpr(score, own, 0.01)
                for score, own in zip(scores[8][name], members, strict=True)
            ]
        )
        for name in ("RMIA", "LiRA")
    }
    found = study.lead(frame, "RMIA", "LiRA", "CIFAR-10", 8)
    assert found.value == pytest.approx(rates["RMIA"] - rates["LiRA"]) and found.low < found.high
