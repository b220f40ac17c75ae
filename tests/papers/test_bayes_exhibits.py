"""What the Bayes-optimal chapter shows, beside the paper's numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mia_lib import data, membership, metrics, signals, training
from mia_lib.attacks import bayes
from mia_lib.errors import MiaError
from mia_lib.evidence import claims
from mia_lib.papers.bayes import exhibits, study, theory
from mia_lib.training import TrainConfig

RNG = np.random.default_rng(0)


def numbers(played):
    return study.numbers_of(study.measured(played))


@pytest.fixture(scope="module")
def games():
    """Two sizes of Table 1 on three pairs of classes with made-up features."""
    def play(pair, n):
        rng = np.random.default_rng(pair)
        features = rng.normal(size=(400, 5))
        labels = (features[:, 0] + rng.normal(size=400) > 0).astype(int)
        return numbers(study.play_logistic(features, labels, n, seeds=6, c=1.0))

    return {n: [play(pair, n) for pair in range(3)] for n in (100, 200)}


@pytest.fixture(scope="module")
def swept():
    """Table 3 where MALT always wins and augmentation always helps."""
    members = np.repeat((np.arange(100) < 50)[None], 3, 0)
    recipes = {"none": 2.0, "flip_crop:1": 1.0, "flip_crop:5": 1.0, "flip_resized_crop:0.25": 0.5}
    scores = {(network, recipe): {"MALT": gap * members + RNG.normal(size=members.shape),
                                  "0-1": (RNG.random(members.shape) < 0.5 + 0.1 * gap * members).astype(float)}
              for network in ("one", "two") for recipe, gap in recipes.items()}
    return scores, members, list(recipes)


def test_random_worlds_never_break_the_privacy_bounds_and_come_close_to_them():
    worlds = exhibits.privacy_in_random_worlds(worlds=40, seed=1)
    assert set(worlds.prior) == {0.5, 0.1, 0.01}
    assert worlds.property_1_excess.max() <= 1e-12 and worlds.property_2_excess.max() <= 1e-12
    slack = worlds.prior + worlds.epsilon / 4 - worlds.posterior
    assert slack.min() < 0.01 and worlds.epsilon.max() > 1
    assert len(exhibits.privacy_figure(worlds).axes) == 3


def test_heat_usually_leaves_the_attacker_less_and_there_are_worlds_where_it_does_not():
    accuracy = exhibits.temperature_in_random_worlds(200, seed=0)
    assert accuracy.shape == (200, 6)
    assert (np.diff(accuracy.mean(0)) < 0).all() and (np.diff(accuracy, axis=1) > 1e-6).any()


def test_posterior_figure_puts_calibrated_predictions_on_the_diagonal():
    posterior = RNG.random(5000)
    figure = exhibits.posterior_figure({0.5: (posterior, RNG.random(5000) < posterior)})
    x, y = figure.axes[0].containers[0].lines[0].get_data()
    np.testing.assert_allclose(x, y, atol=0.08)


def test_table_one_stands_beside_every_printed_number(games):
    table = exhibits.table_one(games, [100, 400])
    assert list(table.columns) == ["n", "train", "validation", "0-1", "MALT, peak", "MATT, peak", "MALT, rehearsed",
                                   "MATT, rehearsed", "noise, peak"]
    assert table["MALT, peak"][1] == "not run / 54.4" and "/" not in str(table["MALT, peak"][0])
    assert table["MALT, rehearsed"][0].low and table["MALT, peak"][0].low is None  # a peak has no interval
    assert table["noise, peak"][0].value > 52
    averages = exhibits.table_one_averages(games, [400])
    assert averages.iloc[0, 1:].tolist() == ["not run / 55.8", "not run / 60.1", "not run / 51.9", "not run / 57.1"]


def test_the_figure_of_table_one_has_the_sizes_run_and_those_printed(games):
    figure = exhibits.table_one_figure(games)
    assert len(figure.axes) == 3
    for axis in figure.axes:
        lines = {bars.get_label(): bars.lines[0] for bars in axis.containers}
        np.testing.assert_allclose(np.round(lines["MATT"].get_xdata(), -1), [100, 200], atol=20)
        assert np.isfinite(lines["MATT"].get_ydata()).all()
        assert len(axis.get_xticks()) == 2 + 5  # beside the paper's, none of which was run
        assert ("0-1" in lines) == (axis is figure.axes[0]), "0-1 ranks nothing"
    widths = {bars.get_label(): np.diff([part.vertices[:, 1] for part in bars.lines[2][0].get_paths()])
              for bars in figure.axes[0].containers if bars.has_yerr}
    assert not np.isfinite([widths[name] for name in ("MATT", "MALT") if name in widths]).any(), "a peak has no interval"
    assert np.isfinite(widths["0-1"]).all(), "which has no threshold to choose"


def test_intervals_are_over_pairs_of_classes_where_there_are_enough(games):
    def auc(one):
        return one.numbers["matt", "auc"]

    means = [auc(one).mean() for one in games[100]]
    assert study.over(games[100], auc) == metrics.t_interval(means, covers="3 pairs of classes")
    assert study.over(games[100][:2], auc) == study.over_splits(auc(games[100][0]))
    table = exhibits.pairs_of_classes(games, ["a", "b", "c"])
    assert table.reset_index()["classes"].tolist() == ["a", "b", "c"] * 2 + ["**all pairs**"] * 2
    assert len(exhibits.pairs_of_classes({n: found[:1] for n, found in games.items()}, ["a"])) == 2


def test_pairs_of_classes_share_none():
    assert study.pairs_of_classes([5, 7], 10, 5) == [[5, 7], [0, 1], [2, 3], [4, 6], [8, 9]]
    assert study.pairs_of_classes([5, 7], 10, 1) == [[5, 7]]
    with pytest.raises(MiaError, match="class_pairs = 3: 4 classes make 2 pairs"):
        study.pairs_of_classes([0, 1], 4, 3)


def test_what_the_second_term_and_the_penalty_do_is_tabled(games):
    assert exhibits.second_term(games)["n"].tolist() == [100, 200]
    assert exhibits.penalties({100: [games[100][0], games[100][0]]}).index.tolist() == [(100, "1")]


def test_verdicts_of_table_one_cover_its_claims_and_say_what_was_not_run(games):
    verdicts = {v.claim: v for v in exhibits.judge_table_one(games, [400], "too few records")}
    assert set(verdicts) == {"C7", "C7r", "C8", "C9", "C10", "C10r", "C15", "C15r", "C16"}
    assert verdicts["C8"].said.endswith("n = 400 not run") and verdicts["C8"].reason == "too few records"
    assert len(verdicts["C7"].parts) == 3 and len(verdicts["C7r"].parts) == 5
    assert {"C10", "C15"} <= {v.claim for v in exhibits.judge_table_one({100: games[100]}, [], "")}


def table_one(n, sign, base, seed=0):
    """Three pairs of classes of which every number lies where the paper says (sign 1) or on the other side (-1)."""
    def pair(k):
        rng = np.random.default_rng([n, seed, k])
        at = {("malt", metric): base for metric in study.TABLE_1}
        at |= {("malt", "map_test"): 0.6 + 0.02 * sign, ("malt", "map_train"): 0.6,
               ("malt", "cross_validated_accuracy"): base - (0.002 if sign > 0 else 0.03)}
        at |= {("matt", metric): at["malt", metric] + 0.02 * sign for metric in study.TABLE_1}
        at |= {("gap", metric): base - 0.02 * sign for metric in study.TABLE_1}
        at |= {("matt", "auc"): 0.5 + 0.1 * sign, ("eq39", "auc"): 0.5 + 0.1 * sign + (0.001 if sign > 0 else 0.02),
               ("calibrated", "auc"): 0.5}
        values = {one: at[one] + rng.normal(0, 1e-4, 8) for one in study.MEASURED}
        second = (0.05 if sign > 0 else 0.5) + rng.normal(0, 1e-4, 8)
        return study.Numbers(values, np.ones(8), np.ones(8), 1.0, np.ones(8), second)

    return [pair(k) for k in range(3)]


@pytest.mark.parametrize("pairs", [1, 3])
def test_every_claim_of_table_one_has_its_direction(pairs, monkeypatch):
    monkeypatch.setattr(study, "peak_of_noise", lambda n: 0.5 + 10 / n)  # .0025 and .001

    def verdicts(sign, fall):
        games = {4000: table_one(4000, sign, 0.6 + fall)[:pairs], 10_000: table_one(10_000, sign, 0.6)[:pairs]}
        return {v.claim: v.verdict for v in exhibits.judge_table_one(games, [], "")}

    as_printed, turned = verdicts(1, 0.05), verdicts(-1, -0.05)
    assert as_printed == dict.fromkeys(as_printed, "reproduced") and len(as_printed) == 9
    assert turned == dict.fromkeys(as_printed, "contradicted")
    slow = verdicts(1, 0.001)  # what the choice of thresholds alone would lose is .0015
    assert (slow["C10"], slow["C10r"]) == ("contradicted", "reproduced")


def test_the_dropped_term_may_neither_add_nor_take(monkeypatch):
    monkeypatch.setattr(study, "peak_of_noise", lambda n: 0.5)
    for change, expected in ((0.004, "reproduced"), (-0.004, "reproduced"), (0.006, "contradicted"), (-0.006, "contradicted")):
        games = table_one(4000, 1, 0.6)
        for k, one in enumerate(games):
            one.numbers["eq39", "auc"] = one.numbers["matt", "auc"] + change + 1e-5 * k
        verdicts = {v.claim: v.verdict for v in exhibits.judge_table_one({4000: games}, [], "")}
        assert verdicts["C15r"] == expected


def noise(n=100, seeds=60, seed=1):
    """Table 1 where no attack knows anything."""
    rng = np.random.default_rng(seed)
    scores = {name: rng.normal(size=(seeds, n)) for name in ("malt", "matt", "eq39")}
    scores |= {"gap": (rng.random((seeds, n)) < 0.9).astype(float), "calibrated": rng.normal(size=(seeds, n))}
    members, ones = np.repeat((np.arange(n) < n // 2)[None], seeds, 0), np.ones(seeds)
    return numbers(study.Logistic(scores, members, ones, ones, 1.0))


def test_the_peak_rule_and_the_rehearsed_rule_part_on_noise():
    n, found = 100, noise()
    verdicts = {v.claim: v for v in exhibits.judge_table_one({n: [found]}, [], "")}
    peak = found.numbers["malt", "attack_accuracy"] - found.numbers["gap", "attack_accuracy"]
    assert study.over_splits(peak).sign == 1  # the paper's protocol sees a lead where nothing is
    assert verdicts["C7r"].parts[f"MALT - 0-1, n = {n}"].sign <= 0


def test_a_world_without_a_leak_reproduces_nothing():
    games = {n: [noise(n, 40, seed=n)] for n in (100, 1000)}
    verdicts = {v.claim: v for v in exhibits.judge_table_one(games, [], "")}
    assert {v.verdict for claim, v in verdicts.items() if claim in ("C7", "C7r", "C8", "C9", "C10", "C10r", "C15r", "C16")
            } <= {"inconclusive", "no difference", "not run", "contradicted"}
    small = exhibits.judge_table_one({100: games[100]}, [], "")[-1]
    assert small.claim == "C16" and small.verdict == "not run" and "random numbers" in small.reason


def test_theorems_are_checked_and_the_remark_on_heat_is_judged_by_its_mean():
    rng = np.random.default_rng(0)
    loss = rng.uniform(0, 2, (7, 3))
    loss[1] = loss[0]
    still = np.hstack([loss, np.ones((7, 1))])
    checks, unmoved = ([theory.theorem_one(theory.FiniteWorld(one, 2, 0.5, 0.5))] for one in (loss, still))
    accuracy, caps = exhibits.temperature_in_random_worlds(100, 0), exhibits.privacy_in_random_worlds(20, 0)
    found = {v.claim: v.verdict for v in exhibits.judge_theorems(checks, unmoved, [0.5], accuracy, caps)}
    assert found == {**dict.fromkeys(("C1", "C2", "C4", "C5"), "checked"), "C3": "reproduced", "C3r": "contradicted"}
    other = [theory.theorem_one(theory.FiniteWorld(rng.uniform(0, 2, (7, 3)), 2, 0.5, 0.5))]
    assert exhibits.judge_theorems(other, unmoved, [0.5], accuracy, caps)[0].verdict == "contradicted"  # losses differ
    off = [{**unmoved[0], "given_setting": unmoved[0]["given_setting"] + 0.01}]
    assert exhibits.judge_theorems(checks, off, [0.5], accuracy, caps)[1].verdict == "contradicted"


def test_table_two_has_the_papers_numbers_and_its_verdict():
    members = membership.balanced_halves(60, 8)[::2]
    def attack(strength):
        return strength * members + RNG.normal(size=members.shape)
    scores = {name: attack(k) for k, name in enumerate(["0-1", "Shadow models", "MALT", *study.MAST])}
    scores["0-1"] = (scores["0-1"] > 0).astype(float)
    judged = study.Judged(scores, {a: s > 0.5 for a, s in scores.items()}, members, np.array([0, 0, 1, 1]))
    table = exhibits.table_two(judged).set_index("attack")
    assert table["accuracy, paper"].tolist() == ["69.4", "73.9", "77.1", "77.6", "–", "–"]
    assert table.loc["0-1", "TPR at 1 % FPR"] == "–"
    assert table.loc["MALT", "TPR at 1 % FPR"] == "below resolution"
    [verdict] = exhibits.judge_table_two(judged, "tanh_cnn:8,16,64")
    assert verdict.claim == "C11" and None not in verdict.parts.values()
    [verdict] = exhibits.judge_table_two(judged, "mlp:8")
    assert verdict.verdict == "not run" and "no convolutional network" in verdict.reason
    [verdict] = exhibits.judge_table_two(replace(judged, groups=np.zeros(4, int)), "tanh_cnn")
    assert verdict.parts["MALT - shadow models"] is None and "know the records" in verdict.reason
    assert verdict.parts["MALT - 0-1"] is not None


def called(rng, members, accuracy):
    """Decisions of which this share is right on either side."""
    return np.where(rng.random(members.shape) < accuracy, members, ~members)


@pytest.mark.parametrize("share, accuracies, verdict", [
    (0.003, (0.80, 0.70, 0.60), "reproduced"), (0.02, (0.80, 0.70, 0.60), "contradicted"),
    (0.003, (0.65, 0.70, 0.60), "contradicted"), (0.003, (0.80, 0.60, 0.70), "contradicted"),
    (0.1, (0.60, 0.65, 0.70), "contradicted")])
def test_the_order_of_table_two_is_that_of_the_paper(share, accuracies, verdict):
    """MAST calls as MALT does but for a share of the records, which costs it that share of MALT's lead over chance, twice."""
    rng, members, bank = np.random.default_rng(0), membership.balanced_halves(4000, 32)[::2], np.repeat(range(8), 2)
    decisions = {name: called(rng, members, right) for name, right in
                 zip(("MALT", "Shadow models", "0-1"), accuracies, strict=True)}
    decisions["MAST (best split)"] = decisions["MALT"] ^ (rng.random(members.shape) < share)
    judged = study.Judged({name: one.astype(float) for name, one in decisions.items()}, decisions, members, bank)
    [found] = exhibits.judge_table_two(judged, "tanh_cnn:8,16,64")
    signs = {part: interval.sign for part, interval in found.parts.items()}
    malt, shadows, gap = accuracies
    assert signs == {"MAST - MALT + 0.5": 1 if share < 0.005 else -1, "MALT - shadow models": 1 if malt > shadows else -1,
                     "shadow models - 0-1": 1 if shadows > gap else -1}
    assert found.verdict == verdict
    [alone] = exhibits.judge_table_two(replace(judged, groups=np.zeros(16, int)), "tanh_cnn:8,16,64")
    assert alone.parts["MALT - 0-1"].sign == (1 if malt > gap + 0.01 else -1)


def games_of_table_three(accuracy, games=4, n=20_000):
    """Scores of which MALT, with a threshold, and 0-1 are right as often as `accuracy[network, recipe]` says."""
    from scipy.stats import norm

    rng, members = np.random.default_rng(0), np.repeat((np.arange(n) < n // 2)[None], games, 0)
    scores = {}
    for cell, (malt, gap) in accuracy.items():
        shift = 2 * norm.ppf(malt)
        scores[cell] = {"MALT": shift * members + rng.normal(size=members.shape),
                        "0-1": (rng.random(members.shape) < 0.45 + (2 * gap - 1) * members).astype(float)}
    return scores, members


RECIPES = ["none", "flip_crop:5", "flip_resized_crop:0.25"]


def test_every_claim_of_table_three_has_its_direction():
    falling, rising = ((0.90, 0.77), (0.80, 0.70), (0.70, 0.62)), ((0.62, 0.70), (0.70, 0.77), (0.72, 0.775))
    for by_recipe, dataset, expected in (
            (falling, "imagenet", ("reproduced", "reproduced", "reproduced")),
            (falling, "x", ("reproduced", "reproduced", "not run")),
            (rising, "imagenet", ("contradicted", "contradicted", "contradicted"))):
        scores, members = games_of_table_three({("net", r): pair for r, pair in zip(RECIPES, by_recipe, strict=True)})
        found = {v.claim: v for v in exhibits.judge_table_three(scores, members, RECIPES, dataset)}
        assert tuple(found[claim].verdict for claim in ("C12", "C13", "C14")) == expected
    levels = {part: interval.sign for part, interval in found["C14"].parts.items()}
    assert levels == {"MALT within 5 points, net, from above": 1, "MALT within 5 points, net, from below": -1,
                      "0-1 within 5 points, net, from above": 1, "0-1 within 5 points, net, from below": -1}
    high, members = games_of_table_three({("net", r): (0.97, 0.774) for r in RECIPES})
    levels = exhibits.judge_table_three(high, members, RECIPES, "imagenet")[-1].parts
    assert [interval.sign for interval in levels.values()] == [-1, 1, 1, 1]


def test_table_three_puts_the_papers_recipes_beside_the_first_two_and_the_last(swept):
    scores, members, recipes = swept
    intervals = exhibits.table_three_intervals(scores, members)
    table = exhibits.table_three(intervals, recipes)
    assert [one.paper for one in table.MALT] == [90.4, 77.4, None, 68.0, 90.8, 79.5, None, 64.3]
    of_paper = ["None", "Flip, Crop +-5", "Flip, Crop"]
    assert exhibits.paper_recipes(["flip_crop:5", "flip_resized_crop:0.1", "flip_crop:1", "none"]) == dict(
        zip(of_paper, ["none", "flip_crop:1", "flip_resized_crop:0.1"], strict=True))
    assert exhibits.paper_recipes(["none", "flip_crop:5", "flip_crop:6"]) == {"None": "none", "Flip, Crop +-5": "flip_crop:5"}
    assert exhibits.paper_recipes(["none", "flip_resized_crop:0.1"]) == {"None": "none", "Flip, Crop": "flip_resized_crop:0.1"}
    assert len(exhibits.table_three_figure(intervals, recipes).axes) == 2


def test_what_training_lowers_is_said_as_a_share_only_where_it_is_one():
    falls = exhibits.drop_in_words(np.linspace(0, 1, 100))
    assert "by 0.50 nats on average" in falls and falls.endswith("makes 19.1 % of the sum.")
    for drop in (np.linspace(-1, 1, 100) - 0.01, np.r_[np.full(10, 5.0), np.full(90, -0.5)]):
        said = exhibits.drop_in_words(drop)
        assert "of the sum" not in said and "of the records rise." in said
    assert "by 0.00 nats" in exhibits.drop_in_words(np.array([-0.001, -0.002, 0.001]))


def test_verdicts_of_table_three(swept):
    scores, members, recipes = swept
    verdicts = {v.claim: v for v in exhibits.judge_table_three(scores, members, recipes, "fashion_mnist_20k")}
    assert len(verdicts["C12"].parts) == 6 and len(verdicts["C13"].parts) == 8
    assert verdicts["C14"].verdict == "not run" and "ImageNet" in verdicts["C14"].reason
    alone = {cell: of_cell for cell, of_cell in scores.items() if cell[1] == "none"}
    assert {v.claim: v for v in exhibits.judge_table_three(alone, members, ["none"], "x")}["C13"].verdict == "not run"
    assert len(exhibits.judge_table_three(scores, members, recipes, "imagenet")[-1].parts) == 8


def test_every_claim_of_the_paper_gets_exactly_one_verdict(games, swept):
    scores, members, recipes = swept
    from_tables = [*exhibits.judge_table_one(games, [], ""), *exhibits.judge_table_three(scores, members, recipes, "x")]
    others = {"C1", "C2", "C3", "C3r", "C4", "C5", "C6", "C11"}
    assert sorted({v.claim for v in from_tables} | others) == sorted(claims.claims("bayes"))


def test_the_figure_of_the_complement_has_both_ways_for_each_attack():
    members = membership.balanced_halves(40, 8)[::2]
    nothing, all_of_it = np.tile(np.arange(40.0), (4, 1)), members.astype(float)
    found = study.Complement(members, {"counting": nothing, "MAST (best split)": nothing},
                             {"counting": all_of_it, "MAST (best split)": nothing}, np.zeros((2, 2)))
    aside, kept = (bars.lines[0].get_ydata() for bars in exhibits.complement_figure(found).axes[0].containers)
    assert kept[0] == 1 and kept[1] == aside[0] == aside[1]
    assert exhibits.complement_change(found, "MAST (best split)").value == 0
    assert exhibits.complement_change(found, "counting").value == pytest.approx(1 - aside[0])


def test_the_picture_of_the_idea_counts_who_one_threshold_can_tell_apart():
    inside, outside = np.array([0.1, 0.1, 2.0, 1e-9]), np.array([0.2, 1.0, 3.0, 1e-9])
    seen = study.Summary(np.array(1.0), np.array(0.5), np.zeros(4), inside, outside)
    assert exhibits.told_apart(seen, 0.5) == 0.25
    assert len(exhibits.idea(seen, 0.5).axes) == 1


def test_the_chart_of_the_idea_holds_the_losses_behind_each_dot(isolated_cache):
    members = membership.balanced_halves(len(IMAGES), models=4, seed=0)
    bank = study.Bank(training.train(IMAGES, members, TrainConfig("tanh_cnn:2,3,4", epochs=1)))
    seen = study.summary(bank)
    spec = exhibits.idea_chart(bank, seen, threshold=0.5, records=15).to_dict()
    rows, slider = spec["datasets"]["records"], next(one for one in spec["params"] if one["name"] == "power")
    assert len(rows) == 15 and slider["value"] == -0.3 and slider["bind"]["input"] == "range"
    inside = [float(loss) for loss in rows[0]["with"].split(", ")]
    assert len(inside) == members[:, 0].sum() and rows[0]["in"] == pytest.approx(np.mean(inside), rel=0.02)
    assert any(view.get("name") == "said" for view in spec["vconcat"])


def test_the_target_by_hand_is_the_first_of_the_study(isolated_cache):
    pool, count = IMAGES, 6
    members = membership.balanced_halves(len(pool), models=count, seed=0)
    models = training.train(pool, members, TrainConfig("tanh_cnn:2,3,4", epochs=2))
    loss, others = signals.loss(models, pool), membership.references_of(0, count)
    judged = study.judge_banks([study.Bank(models)], targets=2, shadows=2, rehearsals=1)
    by_hand = {"MALT": bayes.malt(loss[0]), "MAST (best split)": bayes.mast(loss[0], loss[others], members[others])}
    for name, score in by_hand.items():
        of_study = metrics.auc(judged.scores[name][0], judged.members[0])
        assert of_study == pytest.approx(metrics.auc(score, members[0]), abs=1e-12)
    assert (judged.members[0] == members[0]).all()


IMAGES = data.Dataset("toy", RNG.integers(0, 255, (40, 12, 12, 1)).astype(np.uint8), RNG.integers(0, 3, 40), 40,
                      ("a", "b", "c"))
FIT = {"classes": [0, 1], "banks": 2, "bank_records": 20, "references": 4, "extractors": 1, "feature_epochs": 1,
       "sweep_games": 2, "class_pairs": 1, "sweep_records": 20, "config": TrainConfig("tanh_cnn:2,3,4"),
       "recipes": [TrainConfig("leino_cnn:2,3,4")]}


def test_plan_counts_what_will_be_trained():
    table = study.plan(IMAGES, IMAGES, **FIT)
    assert isinstance(table, pd.DataFrame) and table.models.tolist() == [1, 12, 2]


@pytest.mark.parametrize("change,words", [
    ({"classes": [0, 0]}, "two different numbers from 0 to 2"), ({"classes": [0, 7]}, "0 a, 1 b, 2 c"),
    ({"references": 5}, "even number"), ({"class_pairs": 4}, "class_pairs = 4: 3 classes make 1 pairs"),
    ({"banks": 3}, "3 x 20 = 60 records, but toy has 40"),
    ({"sweep_records": 30}, "sweep_games x sweep_records"),
    ({"config": TrainConfig("resnet18:3")}, "resnet18")])
def test_what_cannot_be_run_is_refused_before_anything_is_trained(change, words):
    with pytest.raises(MiaError, match=words):
        study.plan(IMAGES, IMAGES, **{**FIT, **change})


def test_accuracies_of_table_one_agree_with_the_metrics():
    features = RNG.normal(size=(300, 5))
    played = study.play_logistic(features, (features[:, 0] > 0).astype(int), 100, seeds=4, c=1.0)
    assert (numbers(played).numbers["malt", "attack_accuracy"]
            == metrics.balanced_accuracy(played.scores["malt"], played.members)).all()
