"""The chapter on difficulty calibration: its scores against loops and limits, its frames against the functions of the page."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mia_book.chapters.calibration import exhibits, study
from mia_book.evidence import results
from mia_lib import membership, metrics, signals
from mia_lib.attacks import baselines, bayes, calibration, registry
from mia_lib.errors import MiaError
from mia_lib.published import Bank


def plays_of(gap=1.0, plays=8, n=400, spread=1.0, noise=0.3, ended=4, seed=0):
    """Plays whose losses are made up: log odds of members lie `gap` higher, on records of their own difficulty."""
    rng = np.random.default_rng(seed)
    members = np.stack([rng.permutation(np.arange(n) < n // 2) for _ in range(plays)])
    arrays = {
        "members": members,
        "rehearsal_members": members,
        "walked_members": members,
        "rehearsal_walked_members": members,
    }
    for prefix in ("", "rehearsal_"):
        easy = spread * rng.normal(size=(plays, n))
        for name in ("margin", "top", "gradient", "distance"):
            sign = -1 if name == "gradient" else 1
            arrays[f"{prefix}target_{name}"] = (
                easy + noise * rng.normal(size=(plays, n)) + sign * gap * members
            )
            for kind in ("scratch", "forgetting"):
                shape = (plays, n) if name == "distance" else (plays, 1, n)
                arrays[f"{prefix}{kind}_{name}"] = easy.reshape(shape) + noise * rng.normal(
                    size=shape
                )
        if not prefix:
            arrays["ended_margin"] = easy[:, None] + noise * rng.normal(size=(plays, ended, n))
    arrays["correct"] = arrays["target_margin"] > 0
    return Bank("toy", {}, arrays, [])


def of(frame, attack, metric, **where):
    return metrics.estimate(frame, attack, metric, **where).values


def test_a_frame_has_what_the_functions_of_the_page_say():
    assert_allclose(study.score("gradient norm", np.log([3.0, 0.5])), [-3.0, -0.5])
    assert_allclose(
        study.score("confidence", np.array([2.0, -1.0])), np.log(1 / (1 + np.exp([-2.0, 1.0])))
    )
    plays = plays_of()
    frame, scores = study.attack_plays(plays, "toy"), study.scores(plays)
    loss, usual = (
        signals.loss_of(plays.arrays[name]) for name in ("target_margin", "scratch_margin")
    )
    for t in range(len(plays)):
        by_hand = np.array([usual[t, 0, i] - loss[t, i] for i in range(loss.shape[1])])
        assert_allclose(scores["loss", "Cal."][t], by_hand)
        assert of(frame, "Cal.", "auc", score="loss")[t] == pytest.approx(
            metrics.auc(by_hand, plays.members[t])
        )
    assert of(frame, "Gap", "auc")[0] == metrics.auc(
        baselines.gap(plays.correct[0]), plays.members[0]
    )
    assert of(frame, "model", "train_accuracy")[2] == plays.correct[2][plays.members[2]].mean()
    threshold = metrics.best_threshold(
        study.scores(plays, "rehearsal_")["loss", "Orig"][3], plays.members[3]
    )
    called = scores["loss", "Orig"][3] >= threshold
    assert of(frame, "Orig", "rehearsed accuracy", score="loss")[3] == metrics.auc(
        called, plays.members[3]
    )
    zero = metrics.auc(scores["loss", "Cal."][1] > 0, plays.members[1])
    assert of(frame, "Cal.", "accuracy at zero", score="loss")[1] == zero
    threshold = metrics.best_threshold(scores["loss", "Cal."][1], plays.members[1])
    alarms = (scores["loss", "Cal."][1] >= threshold)[~plays.members[1]].mean()
    assert of(frame, "Cal.", "FPR at the best accuracy", score="loss")[1] == alarms


def test_with_one_reference_calibration_is_mast_and_ranks_as_offline_lira_and_rmia_whatever_its_population():
    plays = plays_of()
    loss, usual = (
        signals.loss_of(plays.arrays[name]) for name in ("target_margin", "scratch_margin")
    )
    nobody, today = np.zeros(usual[0].shape, bool), study.with_references(plays)
    assert_allclose(
        study.calibrated(-loss, -usual)[0], bayes.mast(loss[0], usual[0], nobody, "mean_out")
    )
    of_margin = calibration.calibrate(plays.target_margin[0], plays.scratch_margin[0])
    assert_allclose(np.argsort(of_margin), np.argsort(today["loss", "LiRA, offline"][0]))
    p, q, few = np.exp(-loss[0]), np.exp(-usual[0]), np.arange(0, loss.shape[1], 7)
    falls = [
        (np.diff(part[np.argsort(today["loss", "RMIA, offline"][0], kind="stable")]) < 0).any()
        for a in registry.SHARES
        for part in [baselines.rmia(p, q, nobody, p[few], q[:, few], gamma=1.0, a=a)]
    ]
    assert falls.count(False) == 1  # with the constant that was learned, and no other


def test_the_constant_is_learned_for_the_metric_that_is_judged_and_its_authors_stands_beside():
    plays = plays_of(plays=4, noise=1.5)
    by_metric = {metric: study.with_references(plays, metric=metric) for metric in study.METRICS}
    ratio = [
        np.exp(-signals.loss_of(plays.target_margin))
        / ((1 + a) * np.exp(-signals.loss_of(plays.scratch_margin[:, 0])) + 1 - a)
        for a in registry.SHARES
    ]
    frame = study.in_plays(plays, "toy", False)
    for metric, scores in by_metric.items():
        judge = metrics.auc if metric == "auc" else lambda s, m: metrics.tpr_at_fpr(s, m, 0.01)
        found = np.array([[judge(s[t], plays.members[t]) for t in range(4)] for s in ratio])
        best = found[:, 1] + found[:, 2]  # of the next two plays
        assert_allclose(scores["loss", study.RMIA][0], ratio[best.argmax()][0])
        assert of(frame, study.RMIA, metric, score="loss")[0] == found[best.argmax(), 0]
    assert_allclose(by_metric["auc"]["loss", study.AUTHORS], ratio[1])  # of CIFAR-10
    assert study.authors_a(Bank("toy", {"dataset": "cifar100"}, {}, [])) == 0.6


def test_the_law_predicts_what_made_up_scores_do_and_not_more():
    plays = plays_of(spread=1.0, noise=0.6, n=4000, gap=1.0)
    own, other = plays.target_margin, plays.scratch_margin[:, 0]
    before, after = (np.mean(metrics.auc(score, plays.members)) for score in (own, own - other))
    assert study.auc_by_law(before, 1.0, 0.6) == pytest.approx(after, abs=0.01)
    assert study.auc_by_law(0.6, 1.0, 1.0) == pytest.approx(0.6)  # noise as large as difficulty
    assert study.auc_by_law(0.6, 0.5, 1.0) < 0.6 < study.auc_by_law(0.6, 0.5, 1.0, 8)
    law = study.law_of_bank(bank_of(0.0, models=12)[0])
    assert law["noise"] < law["difficulty"]


def test_references_of_other_plays_serve_where_a_record_was_private_and_the_constant_is_learned_elsewhere():
    plays, rng = plays_of(plays=4, n=100), np.random.default_rng(3)
    private = np.stack([rng.permutation(np.arange(200) < 100) for _ in range(4)])
    plays.arrays["private"] = private
    others = signals.loss_of(plays.scratch_margin[:, 0])
    found = study.with_references(plays, several=True)
    record = np.flatnonzero(private[0])[7]
    by_hand = [others[u, private[u, :record].sum()] for u in range(4) if private[u, record]]
    assert found["loss", "Cal."][0, 7] == pytest.approx(
        np.mean(by_hand) - signals.loss_of(plays.target_margin)[0, 7]
    )
    left_out = [private[:, row].sum(0).mean() for row in private]
    [count] = study.in_plays(plays, "toy", True, own=True)["references"].unique()
    assert count == round(np.mean(left_out))
    turned = plays_of(plays=4, n=100)
    turned.arrays["private"] = private
    turned.members[0] = ~turned.members[0]
    again = study.with_references(turned, several=True)
    assert_allclose(again["loss", "RMIA, offline"][0], found["loss", "RMIA, offline"][0])


def test_without_a_leak_no_attack_is_better_than_a_coin_and_with_one_calibration_gains():
    still = study.attack_plays(plays_of(gap=0.0), "toy")
    means = still[still["metric"] == "auc"].groupby(["score", "attack"])["value"].mean()
    assert (means.sub(0.5).abs() < 0.03).all()
    leaking = study.attack_plays(plays_of(gap=1.0), "toy")
    assert (
        of(leaking, "Cal.", "auc", score="loss").mean()
        > of(leaking, "Orig", "auc", score="loss").mean() + 0.05
    )
    assert of(leaking, "best calibrated", "auc").mean() > of(leaking, "best other", "auc").mean()
    walked = study.label_only(plays_of(), "Adult")
    assert set(walked["reading"]) == {"", "negative", "as released"}
    assert (
        of(walked, "Cal.", "auc", reading="negative").mean()
        > of(walked, "Orig", "auc").mean() + 0.05
    )
    table = exhibits.table_4(walked)
    assert table.loc[("Adult", "Cal."), "AUC, paper"].value == pytest.approx(54.1)
    assert len(table) == 3


def test_the_best_attack_of_a_play_is_picked_on_other_plays():
    """Of many attacks that know nothing, the best on the records judged would be above one half."""
    rng, members = np.random.default_rng(0), np.tile(np.arange(40) < 20, (200, 1))
    plays = Bank("toy", {}, {"members": members, "correct": rng.random((200, 40)) < 0.5}, [])
    found = {
        (f"s{k}", attack): rng.normal(size=members.shape)
        for k in range(5)
        for attack in ("Orig", "Cal.", "Cal.-F")
    }
    best = study.best_of_both(found, plays)
    assert all(values["auc"].mean() == pytest.approx(0.5, abs=0.02) for values in best.values())


def test_by_hand_precision_at_a_recall_is_that_of_the_records_called_and_distances_are_subtracted_also_of_wrong_models():
    scores = np.array([[5.0, 4, 3, 2, 1, 0]])
    members = np.array([[True, False, True, False, True, False]])
    # two of three members and one of three others are called at a recall of one half
    assert study.precision_at_recall(scores, members, 1, 0.5)[0] == pytest.approx(2 / 3)
    assert study.precision_at_recall(scores, members, 10, 0.5)[0] == pytest.approx(
        (2 / 3) / (2 / 3 + 10 / 3)
    )
    target, reference = np.array([[2.0, -1.0, 2.0, -1.0]]), np.array([[0.5, 0.5, -3.0, -3.0]])
    calibrated = study.subtracted(target, reference)
    assert_allclose(calibrated["negative"], [[1.5, -1.5, 5.0, 2.0]])
    # d + |d| where the reference is wrong
    assert_allclose(calibrated["as released"], [[1.5, -1.5, 4.0, 0.0]])


def bank_of(gap, models=12, n=300, others=50, seed=0):
    rng = np.random.default_rng(seed)
    members = np.zeros((models, n + others), bool)
    members[:, :n] = membership.balanced_halves(n, models, seed)
    margin = rng.normal(size=n + others) + 0.3 * rng.normal(size=members.shape) + gap * members
    further = {
        "members": members[:, :200],
        "top": margin[:, :200],
        "gradient": -margin[:, :200],
        "distance": margin[:, :200],
    }
    return Bank("toy", {}, {"margin": margin, "members": members}, []), Bank("toy", {}, further, [])


def test_distances_of_a_bank_are_calibrated_by_the_one_of_a_pair_without_the_record():
    _, further = bank_of(1.0)
    walked = study.label_only_of_bank(further, 4, "toy", 10)
    distance, members = further.distance, further.members
    by_hand = [distance[2, i] - distance[4 + members[4, i], i] for i in range(200)]
    auc = of(walked, "Cal.", "auc", reading="negative")[1]
    assert auc == pytest.approx(metrics.auc(np.array(by_hand), members[2])) and len(walked) == 3


def test_difficulty_and_noise_are_estimated_from_references():
    rng = np.random.default_rng(0)
    others = rng.normal(size=(4, 1, 4000)) + 0.6 * rng.normal(size=(4, 6, 4000))
    known = rng.random((6, 4000)) < 0.6
    for law in (study.difficulty_and_noise(others), study.difficulty_and_noise(others, known)):
        assert law == pytest.approx({"difficulty": 1, "noise": 0.6}, abs=0.03)
    with pytest.raises(MiaError, match="at least 2"):
        study.difficulty_and_noise(others[:, :1])


def test_tables_stand_beside_the_papers_numbers():
    frame = study.attack_plays(plays_of(), "CIFAR-10")
    table = exhibits.table_2(frame)
    cell = table.loc[("CIFAR-10", "loss"), "Cal., paper"]
    assert cell.value == pytest.approx(73.1)
    assert table.loc[("CIFAR-10", "gap"), "Orig, paper"].value == pytest.approx(66.3)
    assert table.loc[("CIFAR-10", "gap"), "Cal."] == results.DASH
    assert exhibits.today(study.in_plays(plays_of(), "toy", False)).shape == (5, 2)
    assert exhibits.table_2(frame, "accuracy").loc[
        ("CIFAR-10", "gap"), "Orig, paper"
    ].value == pytest.approx(66.4)
    theirs = exhibits.table_1(frame)["on members, paper"]
    assert theirs["CIFAR-10 (aug.)"].value == pytest.approx(94.6)
    assert theirs["CIFAR-10"] == results.DASH  # ours is not augmented


def test_the_chart_counts_as_its_caption_does():
    plays = plays_of()
    shares = exhibits.called_in_idea(plays, 10)
    assert shares["loss"] == pytest.approx(
        plays.members[0][np.argsort(-plays.target_margin[0])[:40]].mean()
    )
    assert len(exhibits.never_stopped(study.never_stopped(plays, "toy"))) == 1
