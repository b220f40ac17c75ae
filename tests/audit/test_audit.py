"""The audit: that it finds what is there and not what is not, and says what it did."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
import torch
from scipy import stats

from mia_lib import audit, metrics, training
from mia_lib.audit import attacks, blind, given, judging, planning, rehearsal, remedies, running, words
from mia_lib.audit.planning import IMPOSSIBLE, RUNS, TOO_DEAR
from mia_lib.audit.rehearsal import clusters, sharpened, split
from mia_lib.audit.report import check_folder
from mia_lib.metrics import Interval
from mia_lib.training import TrainConfig
from mia_lib.training.recipe import seed_of

RNG = np.random.default_rng(0)
RECIPE = TrainConfig("mlp:16", epochs=30, batch_size=50, optimizer="sgd", learning_rate=0.2, momentum=0.9)


# ------------------------------------------------------------------------------------------------ the audit itself, first


def test_false_alarms_keep_their_level():
    """Of 200 models that never saw the "members", no more are accused than one test in a thousand would make of 5 %."""
    assert rehearsal.false_alarms(200, records=200) <= stats.binom.ppf(0.999, 200, 0.05)


def test_a_leak_in_some_members_is_found():
    """A function that is sharper for a fifth of its members: those are who is called."""
    members, others = split(clusters(600, 1), 300)
    found = audit.audit(sharpened(members), members, others, outputs="probabilities", minutes=5)
    assert found.leak and not found.judged.blind.apart
    assert found.judged.headline.name in ("confidence", "modified entropy", "MALT")
    known = np.ptp(sharpened(members)(members.x), axis=1) > 0.9
    assert known[found.judged.exposed.index].mean() > 2 * known.mean()
    assert "gives its members away" in found.answer


@pytest.fixture(scope="module")
def sets():
    drawn = clusters(900, 3)
    return [drawn.take(np.arange(k, k + 300)) for k in (0, 300, 600)]


@pytest.fixture(scope="module")
def memorised(sets):
    members = sets[0]
    return training.fit(members.x, members.y, len(members.classes), RECIPE)[0]


@pytest.fixture(scope="module")
def report(sets, memorised):
    """Of a network that knows its members by heart, with all that can be had."""
    members, others, public = sets
    groups = tuple(np.where(one.x[:, 0] > 0, "high", "low") for one in (members, others))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remedies.private, "lacking", lambda: "DP-SGD is tested where it is made")
        return audit.audit(memorised, members, others, public=public, recipe=RECIPE, minutes=30, references=8, groups=groups,
                           name="a network & its <members>")


def test_a_network_that_knows_its_members_is_found(report):
    assert report.leak
    assert report.judged.headline.auc.low > 0.5
    assert all(report.plan.state(name) == RUNS for name in attacks.ATTACKS)
    assert set(report.scores) == set(attacks.ATTACKS)


def test_tools_that_are_told_of_membership_are_set_apart(report):
    assert attacks.ATTACKS["IHA"].audits and report.judged.headline.name not in ("IHA", "gradient alone")
    for one in report.judged.attacks:
        assert (one.p is None) == (one.epsilon is None) == one.audits


def test_remedies_have_their_price(report):
    first, *others = report.prices
    assert first.less is None and {one.name for one in others} >= {"weight decay 0.005", "10 in place of 30 epochs"}
    for one in others:
        if not one.failed:
            assert one.less.value == pytest.approx(first.auc.value - one.auc.value)
            assert one.price.value == pytest.approx(first.accuracy.value - one.accuracy.value)


def test_changes_of_a_recipe(had):
    """One thing at a time; augmentation of images alone, DP-SGD where Opacus is."""
    pytest.importorskip("opacus")
    first, *others = remedies.changes(had)
    assert first.config == given.reseeded(RECIPE)
    for one in others:
        changed = [name for name in RECIPE.__dataclass_fields__ if getattr(one.config, name) != getattr(first.config, name)]
        assert len(changed) + (one.privacy is not None) == 1 and "augmentation" not in changed


def test_prices_have_the_confidence_that_was_asked_for(had, monkeypatch):
    monkeypatch.setattr(remedies.private, "lacking", lambda: "DP-SGD is tested where it is made")
    first, *others = remedies.measured(replace(had, confidence=0.8, recipe=replace(RECIPE, epochs=2)))
    assert first.accuracy.level == first.auc.level == 0.8
    assert all(one.less.level == one.price.level == 0.8 for one in others)


def test_no_reference_begins_where_the_model_did(had, monkeypatch):
    """The recipe's own seed is the model's, where it was trained by `training.fit` or as the first of an ensemble."""
    class Asked(Exception):
        pass

    def train(records, members, config, **more):
        raise Asked(config)

    monkeypatch.setattr(running.training, "train", train)
    planned = replace(planning.arranged(had, PROBE), references=8, variant=attacks.HALVES)
    with pytest.raises(Asked) as asked:
        running._references(had, planned, lambda: 60)
    [config] = asked.value.args
    assert replace(config, seed=RECIPE.seed) == RECIPE
    assert seed_of(RECIPE, 0) not in [seed_of(config, index) for index in range(8)]


def test_losses_are_compared_where_both_sides_have_the_same(had):
    """Of probabilities there is no squared error, so attacks that compare it with the references' are left out."""
    squared = replace(had, recipe=replace(RECIPE, loss="squared_error"))
    of_probabilities = replace(squared, target=replace(squared.target, outputs="probabilities"))
    for name in ("calibrated loss", "RMIA"):
        attack = attacks.ATTACKS[name]
        assert not attacks.lacks(attack, squared, PROBE) and not attacks.lacks(attack, had, PROBE)
        assert "needs one loss" in attacks.lacks(attack, of_probabilities, PROBE)
    assert squared.loss == "squared_error" and of_probabilities.loss == "cross_entropy"
    assert not attacks.lacks(attacks.ATTACKS["LiRA"], of_probabilities, PROBE)


def test_a_model_without_the_members_gives_chance(sets):
    """A network that was trained on other records: its two sides are alike."""
    members, others, public = sets
    stranger = training.fit(public.x, public.y, len(public.classes), RECIPE)[0]
    found = audit.audit(stranger, members, others, minutes=5)
    assert not found.leak
    assert "no proof of safety" in found.answer
    assert max(one.epsilon for one in found.judged.attacks) < 0.5


# ---------------------------------------------------------------------------------------------------------------- the model


def test_network_program_and_function_give_the_same_scores(sets, memorised):
    members, others, _ = sets
    x = torch.from_numpy(members.x)
    program = torch.export.export(memorised, (x[:4],), dynamic_shapes=({0: torch.export.Dim.AUTO},))

    def function(x):
        with torch.no_grad():
            return memorised(torch.from_numpy(x.astype(np.float32)))

    found = [given.given(one, members, others) for one in (memorised, program, function)]
    scores = [attacks.score(attacks.ATTACKS[name], attacks.Seen(one)) for name in ("MALT", "confidence") for one in found]
    for one in scores[1:3]:
        np.testing.assert_allclose(one, scores[0], rtol=1e-5, atol=1e-6)
    assert [one.target.parameters for one in found] == [12 * 16 + 16 + 16 * 4 + 4] * 2 + [None]


def test_logits_and_their_probabilities_rank_alike(sets, memorised):
    members, others, _ = sets

    def function(x):
        with torch.no_grad():
            return memorised(torch.from_numpy(x)).double().softmax(1)

    one, other = (given.given(model, members, others, outputs=outputs) for model, outputs in
                  ((memorised, "logits"), (function, "probabilities")))
    for name in ("MALT", "0-1", "modified entropy"):
        left, right = (attacks.score(attacks.ATTACKS[name], attacks.Seen(case)) for case in (one, other))
        assert metrics.auc(left, one.inside) == pytest.approx(metrics.auc(right, one.inside), abs=1e-4)


# ----------------------------------------------------------------------------------------------------------------- the plan


@pytest.fixture(scope="module")
def had(sets, memorised):
    members, others, public = sets
    return given.given(memorised, members, others, public=public, recipe=RECIPE)


PROBE = attacks.Probe(answer=1e-5, gradient=1e-4, epoch=1e-3, curve=1e-4, regression=1e-5)


def test_more_minutes_give_more_references(had, monkeypatch):
    monkeypatch.setenv("MIA_WORKERS", "1")
    counts = [planning.arranged(replace(had, minutes=float(minutes), references=500), PROBE).references
              for minutes in (0.3, 2, 5, 10, 30, 100)]
    assert counts == sorted(counts) and counts[0] == 0 and counts[-1] == 500
    for minutes in (0.3, 2, 5, 10, 30):
        planned = planning.arranged(replace(had, minutes=float(minutes)), PROBE)
        assert planned.needed <= minutes


def test_public_records_take_the_place_of_halves_where_time_is_short(had, monkeypatch):
    """Eight on halves do not fit, but some on public records do; online attacks are then not possible, and say so."""
    monkeypatch.setenv("MIA_WORKERS", "1")
    planned = planning.arranged(replace(had, minutes=1.0), PROBE)
    assert planned.variant == attacks.PUBLIC and 2 <= planned.references < planning.FEW
    assert planned.state("LiRA") == IMPOSSIBLE and planned.state("LiRA, offline") == RUNS


def test_a_cluster_has_time_for_more_references(had, monkeypatch):
    few = planning.arranged(replace(had, minutes=4.0, references=500), PROBE).references
    monkeypatch.setattr(planning.pool, "at_once", lambda: 8 * planning.pool.default_workers())
    assert planning.arranged(replace(had, minutes=4.0, references=500), PROBE).references > 2 * few > 0


def test_what_is_lacking_is_said(had):
    bare = replace(had, public=None, recipe=None)
    planned = planning.arranged(bare, replace(PROBE, regression=None, epoch=None))
    why = {step.name: step.why for step in planned.steps}
    assert why["LiRA"] == "needs a training recipe" and why["quantile regression"] == "needs public records"
    assert "needs a training recipe" in why["IHA"]
    assert planned.state("gradient norm") == RUNS
    large = replace(had, recipe=replace(RECIPE, optimizer="adam", momentum=0.0))
    assert "is for SGD" in attacks.lacks(attacks.ATTACKS["IHA"], large, PROBE)
    dear = planning.arranged(had, replace(PROBE, gradient=100.0))
    assert dear.state("gradient norm") == TOO_DEAR
    assert "would need" in next(step.why for step in dear.steps if step.name == "gradient norm")
    assert all(step.name in str(dear) for step in dear.steps)


def test_trees_have_no_curvature(sets):
    members, others, _ = sets

    def steps(x):
        z = np.stack([np.floor(x[:, k]) for k in range(4)], 1).astype(np.float64)
        return np.exp(z) / np.exp(z).sum(1, keepdims=True)

    found = planning.plan(given.given(steps, members, others, outputs="probabilities"))
    assert "do not move" in next(step.why for step in found.steps if step.name == "curvature")


# -------------------------------------------------------------------------------------------------------------- judging


def test_rank_test_is_that_of_mann_and_whitney():
    for _ in range(5):
        score, inside = RNG.integers(0, 9, 60).astype(float), RNG.random(60) < 0.4
        twin = stats.mannwhitneyu(score[inside], score[~inside], alternative="greater", method="asymptotic").pvalue
        assert judging.auc_p(score, inside) == pytest.approx(twin)
    assert judging.auc_p(np.ones(10), np.arange(10) < 5) == 1.0


def test_low_rate_test_is_exact():
    """The p-value is the share of all ways to deal out membership with as many members above the bar."""
    score = np.arange(9.0)
    inside = np.isin(score, [8, 7, 5, 2])
    for fpr in (0.0, 0.2, 0.4):
        allowed = int(fpr * 5 + 1e-9)

        def above(held, allowed=allowed):
            return (score[held] > np.sort(score[~held])[::-1][allowed]).sum()

        deals = [np.isin(np.arange(9), held) for held in combinations(range(9), 4)]
        twin = np.mean([above(held) >= above(inside) for held in deals])
        assert judging.low_p(score, inside, fpr) == pytest.approx(twin)


@pytest.mark.parametrize("members", [3, 6])
def test_rank_test_of_few_records_is_exact(members):
    """The share of all ways to deal out membership whose AUC is as high, with ties, for few members and for few others."""
    for _ in range(4):
        score, inside = RNG.integers(0, 5, 9).astype(float), np.arange(9) < members
        deals = [np.isin(np.arange(9), held) for held in combinations(range(9), members)]
        twin = np.mean([metrics.auc(score, held) >= metrics.auc(score, inside) - 1e-12 for held in deals])
        assert judging.rank_p(score, inside) == pytest.approx(twin)
    score, inside = RNG.standard_normal(60), np.arange(60) < 25
    assert judging.rank_p(score, inside) == pytest.approx(judging.auc_p(score, inside), abs=0.01)


@pytest.mark.parametrize("groups, side", [(10, 10), (10, 20), (5, 10)])
def test_groups_without_a_leak_are_not_called(groups, side):
    """Of 300 audits no more call a group than one test in a thousand would make of 5 %."""
    chance = np.random.default_rng([groups, side])
    inside, rows = np.arange(2 * side * groups) % 2 == 0, np.arange(2 * side * groups).reshape(groups, -1)
    alarms = sum(min(judging.groups_p(chance.standard_normal(len(inside)).round(1), inside, rows)) < 0.05 for _ in range(300))
    assert alarms <= stats.binom.ppf(0.999, 300, 0.05)


def test_a_group_that_leaks_is_called(report):
    found = [replace(one, p=0.001 if one.name == "high" else 0.2) for one in report.judged.groups if one.kind == "group"]
    said = words.groups(replace(report.judged, groups=tuple(found)), "group")
    assert said == ("2 of 2 groups have records enough. Above chance by rank tests, with a confidence of 95 % for all of them "
                    "together: high. Intervals of few records are rough.")
    able = [one for one in report.judged.groups if one.auc is not None]
    assert all(one.p is not None and 0 <= one.p <= 1 for one in able)
    inside, score = np.arange(80) % 2 == 0, np.arange(80.0)
    score[:40] += 100 * inside[:40]
    leaks, other = judging.groups_p(score, inside, [np.arange(40), np.arange(40, 80)])
    assert leaks < 1e-6 < 0.05 < other


def test_p_values_of_members_are_conformal():
    """(g + 1) / (n + 1) with g non-members as high; ties count."""
    score, inside = np.array([3.0, 1.0, 2.0, 3.0, 0.0]), np.array([True, True, False, False, False])
    np.testing.assert_allclose(judging.p_values(score, inside)[:2], [2 / 4, 3 / 4])


def test_curve_is_the_roc_within_its_band():
    score, inside = RNG.standard_normal(300), RNG.random(300) < 0.5
    found = judging.curve(score, inside, 0)
    assert (found.low <= found.tpr).all() and (found.tpr <= found.high).all()
    twin = [metrics.tpr_at_fpr(score, inside, min(rate + 1e-9, 0.999999)) for rate in found.fpr[:-1]]
    np.testing.assert_allclose(found.tpr[:-1], twin)
    assert found.tpr[-1] == 1


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_band_of_a_curve_holds_the_truth_as_often_as_it_says(level):
    """Scores of one standard deviation's lead, whose curve is known: at a few rates, over many sets of records."""
    rng, held = np.random.default_rng(0), []
    for _ in range(60):
        inside = np.arange(400) % 2 == 0
        found = judging.curve(rng.standard_normal(400) + inside, inside, 0, level)
        for at in (0.05, 0.2, 0.5):
            k = np.searchsorted(found.fpr, at)
            truth = stats.norm.sf(stats.norm.isf(found.fpr[k]) - 1)
            held.append(found.low[k] <= truth <= found.high[k])
    assert level - 0.1 < np.mean(held) < level + 0.075


def test_the_choice_does_not_look_at_what_it_is_judged_on():
    """Scores of the judging half may be anything: the same attack is chosen."""
    inside = np.arange(200) < 100
    scores = {"MALT": RNG.standard_normal(200) + inside, "curvature": RNG.standard_normal(200)}
    first = judging.chosen(scores, inside, (0.05,), 0)
    scores["curvature"][first.judged] = 10.0 * inside[first.judged]
    assert judging.chosen(scores, inside, (0.05,), 0).name == first.name == "MALT"
    assert first.second == "curvature" and inside[first.judged].sum() == 50


def test_records_that_differ_by_themselves_are_found(sets, memorised):
    members, others, _ = sets
    shifted = replace(others, x=others.x + np.float32(0.7))
    same, apart = (blind.scores(given.given(memorised, members, one)) for one in (others, shifted))
    rows, found = apart
    assert judging.auc_p(found, rows < 300) < judging.ALONE < judging.auc_p(same[1], same[0] < 300)
    said = audit.audit(memorised, members, shifted, minutes=5)
    assert said.judged.blind.apart and "without the model" in said.answer
    assert 'class="warning"' in said.html()
    assert said.leak is None and said.data()["leak"] is None and said.data()["warnings"] == [said.answer]
    shown = words.shows(said.given, said.plan, said.judged)
    assert not any("The finding holds" in one for one in shown) and any("is not said" in one for one in shown)
    for one in (words.epsilon(said.given, said.judged), words.exposure(said.given, said.judged),
                words.agreement(said.judged), words.groups(said.judged, "class")):
        assert one.startswith("Members and non-members differ without the model")


# ------------------------------------------------------------------------------------------------------------- what is odd


def test_labels_drawn_at_random_are_what_a_guess_is_compared_with():
    """Mean and variance are those of all draws; a model that names the frequent class alone does no better than a guess."""
    predicted, labels, pool = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]), np.array([0, 0, 0, 1, 2])
    hits = [(predicted == drawn).sum() for drawn in product(pool, repeat=4)]
    found = judging.by_guess(predicted, labels, pool)
    assert found.members == 3 and found.guess == pytest.approx(np.mean(hits))
    assert found.p == pytest.approx(stats.norm.sf((3 - np.mean(hits) - 0.5) / np.std(hits)))
    rare = (np.arange(100) > 90).astype(int)
    assert judging.by_guess(np.zeros(100, int), rare, rare).guessed
    assert not judging.by_guess(np.zeros(100, int), np.zeros(100, int), np.arange(200) % 2).guessed  # members of one class


@pytest.mark.parametrize("what", ["labels", "columns"])
def test_a_model_that_is_right_as_often_as_a_guess_is_warned_of(sets, memorised, what):
    members, others, _ = sets
    order = np.random.default_rng(0).permutation(300)
    model = memorised
    if what == "labels":
        members, others = (replace(one, y=one.y[order]) for one in (members, others))
    else:
        def model(x):  # three columns of four in another place: one class is right
            with torch.no_grad():
                return memorised(torch.from_numpy(x.astype(np.float32)))[:, [0, 2, 3, 1]]

    found = audit.audit(model, members, others, minutes=5)
    assert found.judged.right.guessed and found.data()["right_about_members"]["guessed"]
    assert re.match(r"The model is right about \d+ of 300 members, no more, .* drawn at random.* Look at that first. ",
                    found.answer)
    assert "no better than a guess" in found.html() and 'class="warning"' in found.html()
    assert any("labels drawn at random" in one for one in words.shows(found.given, found.plan, found.judged))


def test_sets_that_were_exchanged_are_asked_about(sets, memorised, report):
    members, others, _ = sets
    found = audit.audit(memorised, others, members, minutes=5)
    assert found.judged.below and not found.leak
    assert re.match(r"Members score below non-members: .* Were the sets exchanged", found.answer)
    assert "holds 0.5" not in found.answer and "beyond chance" not in found.answer
    assert any("score below" in one for one in words.shows(found.given, found.plan, found.judged))
    assert not report.judged.below and not words.warnings(report.given, report.judged)
    low = replace(report.judged, headline=replace(report.judged.headline, auc=Interval(0.4, 0.3, 0.45)))
    assert "whose interval lies below 0.5" in words.answer(report.given, low)


@pytest.mark.parametrize("members, others, kept", [(300, 300, (300, 300)), (9000, 60, (3940, 60)), (50, 9000, (50, 3950)),
                                                   (2500, 3000, (2000, 2000)), (2500, 1700, (2300, 1700))])
def test_the_control_keeps_the_rarer_side(members, others, kept):
    """Of more records than it looks at, half of each side, or all of one that has fewer."""
    inside = np.arange(members + others) < members
    rows = blind.looked_at(inside, np.random.default_rng(0))
    assert (inside[rows].sum(), (~inside[rows]).sum()) == kept
    assert (np.diff(rows) > 0).all()


def test_a_few_non_members_that_differ_are_found_among_many_members():
    chance, inside = np.random.default_rng(0), np.arange(8060) < 8000
    x = chance.standard_normal((8060, 4)).astype(np.float32) + 2 * ~inside[:, None]
    found = blind._compute(x, chance.integers(2, size=8060), 2, inside, 0)
    assert judging.auc_p(found["score"], inside[found["rows"]]) < 1e-6


# ------------------------------------------------------------------------------------------------------- page and numbers


def test_page_and_numbers_are_one_folder(report, tmp_path):
    page = report.save(tmp_path / "new").read_text()
    numbers = json.loads((tmp_path / "new" / "audit.json").read_text())
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page) and "<script" not in page
    assert page.count("<img") == page.count('alt="') == 5 and 'alt=""' not in page
    assert "a network &amp; its &lt;members&gt;" in page and "None" not in page and "nan" not in page.lower().split()
    assert numbers["headline"]["attack"] == report.judged.headline.name
    for one in numbers["attacks"]:
        scores = np.array(one["scores"])
        assert one["auc"]["value"] == pytest.approx(metrics.auc(scores, report.members), abs=2e-3)
        assert words.span(Interval(*(one["auc"][end] for end in ("value", "low", "high")))) in page
    assert all(sentence["step"] in page for sentence in numbers["plan"])
    check_folder(tmp_path / "new")  # an older audit is no obstacle to the next


def test_rates_without_records_are_not_printed_as_numbers(report):
    below = [rate for one in report.judged.attacks for rate in one.rates if rate.fpr == 0.001]
    assert not any(rate.resolved for rate in below) and {words.rate(rate) for rate in below} == {"below resolution"}
    assert "nothing is said of 0.1 %" in " ".join(words.shows(report.given, report.plan, report.judged))


def test_bounds_of_groups_hold_together(report):
    """Each of G intervals is at 1 - 0.05 / G."""
    for kind in ("class", "group"):
        able = [one.auc for one in report.judged.groups if one.kind == kind and one.auc is not None]
        assert able and all(one.level == pytest.approx(1 - 0.05 / len(able)) for one in able)


def test_a_sentence_says_what_its_numbers_say(report):
    price = report.prices[1]
    better = replace(price, less=Interval(0.1, 0.05, 0.15), price=Interval(0.02, 0.01, 0.03))
    worse = replace(price, less=Interval(-0.1, -0.15, -0.05), price=Interval(-0.02, -0.03, -0.01))
    assert words.remedy(better) == "this training leaked less, cost accuracy"
    assert words.remedy(worse) == "this training leaked more, gained accuracy"
    agreed = report.judged.agreement
    chance = replace(report.judged, agreement=replace(agreed, index=agreed.index[:1], p=0.6))
    assert "no more than chance" in words.agreement(chance)
    shared, few = (replace(report.judged, agreement=replace(agreed, p=1e-3, others=5, others_expected=1.0, others_p=p))
                   for p in (0.001, 0.2))
    assert "easy for every model" in words.agreement(shared)
    assert "no agreement could be told from chance, which does not show" in words.agreement(few)
    assert "comes from the model" not in " ".join(words.shows(report.given, report.plan, report.judged))
    assert f"AUC of up to {report.judged.blind.auc.high:.3f} is not excluded" in " ".join(
        words.shows(report.given, report.plan, report.judged))
    lower = replace(report.judged, blind=replace(report.judged.blind, auc=Interval(0.38, 0.26, 0.48)))
    assert "nothing excludes one that it cannot see" in " ".join(words.shows(report.given, report.plan, lower))
    none = replace(report.judged.headline, rates=tuple(replace(rate, resolved=False) for rate in report.judged.headline.rates))
    every = " or ".join(f"{100 * rate.fpr:g} %" for rate in none.rates)
    assert words.low(none) == f"At a false positive rate of {every} this half of the non-members resolves nothing."
    calm = replace(report.judged, leak=False, headline=replace(report.judged.headline, auc=Interval(0.5, 0.4, 0.6)))
    assert words.answer(report.given, calm).startswith("No attack found anything beyond chance")
    alone = replace(calm, headline=replace(calm.headline, auc=Interval(0.55, 0.51, 0.59)))
    assert "alone above the 0.5 of chance" in words.answer(report.given, alone)


def test_an_attack_that_fails_is_said_to_have_failed_in_the_terms_of_an_audit(sets, memorised, monkeypatch):
    """A Hessian that bends down further than the damping goes."""
    members, others = sets[0].take(np.arange(120)), sets[1]
    monkeypatch.setattr(attacks.hessian, "exact", lambda network, *given, **how: -np.eye(276))
    monkeypatch.setattr(remedies, "changes", lambda given: [])
    found = audit.audit(memorised, members, others, recipe=RECIPE, references=0, minutes=5)
    step = next(one for one in found.plan.steps if one.name == "IHA")
    assert step.state == planning.FAILED and "smallest eigenvalue is -1, and the audit adds 0.2" in step.why
    assert "rank_threshold" not in found.html() and "IHA" not in found.scores


def test_networks_of_equal_weights_and_other_outputs_have_their_own_hessian(sets, memorised):
    """What is kept is found again by weights and outputs."""
    members, others, _ = sets

    class Doubled(torch.nn.Module):
        def __init__(self, inner, factor):
            super().__init__()
            self.inner, self.factor = inner, factor

        def forward(self, x):
            return self.inner(x) * self.factor

    found = [attacks.ATTACKS["gradient alone"].score(attacks.Seen(
        given.given(Doubled(memorised, factor).eval(), members, others, recipe=RECIPE))) for factor in (0.5, 0.4)]
    assert not np.allclose(*found)


def test_command_line(sets, memorised, tmp_path, monkeypatch):
    """A plan, then an audit, from files."""
    from safetensors.torch import save_file
    from typer.testing import CliRunner

    from mia_lib.publish.cli import app

    monkeypatch.chdir(tmp_path)
    for name, one in zip(("m", "n"), sets, strict=False):
        np.savez(f"{name}.npz", x=one.x, y=one.y, region=np.where(one.x[:, 1] > 0, "n", "s"))
    save_file(memorised.state_dict(), "w.safetensors")
    (tmp_path / "mine_to_audit.py").write_text("from mia_lib import models\n\ndef build():\n"
                                               "    return models.build('mlp:16', (12,), 4)\n")
    words_ = ["audit", "mine_to_audit:build", "--state", "w.safetensors", "--members", "m.npz", "--non-members", "n.npz",
              "--groups", "region", "--minutes", "5", "-o", "out"]
    planned = CliRunner().invoke(app, [*words_, "--plan"])
    assert planned.exit_code == 0 and "gradient norm" in planned.output and not (tmp_path / "out").exists()
    ran = CliRunner().invoke(app, words_)
    assert ran.exit_code == 0 and (tmp_path / "out" / "audit.html").is_file()
    assert "chosen on one half" in ran.output


# ------------------------------------------------------------------------------------------------- models as people have them


class Packed(torch.nn.Module):
    """A network that returns what libraries of language models return."""

    def __init__(self, inside, pack):
        super().__init__()
        self.inside, self.pack = inside, pack

    def forward(self, x):
        return self.pack(self.inside(x))


@pytest.mark.parametrize("pack, words_said", [
    (lambda z: {"logits": z}, r"returns a dict: .*self.model\(x\)\['logits'\]"),
    (lambda z: type("Out", (), {"logits": z})(), r"returns a Out: .*self.model\(x\).logits"),
    (lambda z: (z, None), r"self.model\(x\)\[0\]")])
def test_a_network_that_returns_no_tensor_is_refused_with_a_remedy(sets, memorised, pack, words_said):
    with pytest.raises(audit_error(), match=words_said):
        audit.plan(Packed(memorised, pack).eval(), *sets[:2])


def audit_error():
    from mia_lib.errors import MiaError

    return MiaError


def forward(memorised):
    def function(x):
        with torch.no_grad():
            return torch.softmax(memorised(torch.from_numpy(x.astype(np.float32))), 1).numpy().astype(np.float64)

    return function


def test_a_model_that_refuses_moved_records_is_audited_without_curvature(sets, memorised):
    """One attack's probe is no reason to refuse the model."""
    known = {row.tobytes() for one in sets for row in one.x}
    answer = forward(memorised)

    def strict(x):
        if not all(np.asarray(row, np.float32).tobytes() in known for row in x):
            raise ValueError("not one of our records")
        return answer(x)

    found = audit.plan(strict, *sets[:2], outputs="probabilities")
    step = next(step for step in found.steps if step.name == "curvature")
    assert step.state == IMPOSSIBLE and "moved by a small step" in step.why and "not one of our records" in step.why
    assert found.state("MALT") == RUNS


def test_records_that_are_probabilities_are_not_blamed_for_the_audits_step():
    rng = np.random.default_rng(0)
    from mia_lib.data import from_arrays

    p = rng.dirichlet(np.ones(3), 200)
    y = np.array([rng.choice(3, p=row) for row in p])
    sides = [from_arrays(p[k:k + 100], y[k:k + 100], name, classes=("a", "b", "c")) for k, name in ((0, "in"), (100, "out"))]
    assert audit.plan(lambda x: x, *sides, outputs="probabilities").state("MALT") == RUNS


def test_predicted_classes_are_outputs_too(sets, memorised):
    answer = forward(memorised)
    found = audit.audit(lambda x: answer(x).argmax(1), *sets[:2], outputs="labels", minutes=5)
    right = answer(found.given.pool.x).argmax(1) == found.given.pool.y
    assert metrics.auc(found.scores["0-1"], found.members) == pytest.approx(metrics.auc(right.astype(float), found.members))
    with pytest.raises(audit_error(), match="a class from 0 to"):
        audit.plan(answer, *sets[:2], outputs="labels")
    with pytest.raises(audit_error(), match="a network says more"):
        audit.plan(memorised, *sets[:2], outputs="labels")


def test_queries_are_planned_and_counted(sets, memorised):
    answer, asked = forward(memorised), [0]

    def counting(x):
        asked[0] += len(x)
        return answer(x)

    found = audit.audit(counting, *sets[:2], outputs="probabilities", minutes=5)
    records = sum(map(len, sets[:2]))
    runs = found.plan.state("curvature") == RUNS
    assert found.plan.queries == records * (1 + 4 * attacks.PROBES * runs)
    assert found.data()["queries"] == found.given.target.queries == asked[0] >= found.plan.queries
    assert f"asked about {asked[0]:,} records" in found.html() and f"{found.plan.queries:,} queries" in str(found.plan)


def test_a_rate_of_nobody_has_its_exact_interval():
    """Of 50 members none was found: up to seven in a hundred are not excluded, so nothing is below chance."""
    score = np.r_[np.zeros(50), np.linspace(0, 1, 300)]
    _, (rate,) = judging._numbers(score, np.arange(350) < 50, (0.01,), 0, 0.95)
    assert rate.found.value == 0 and rate.found.high == pytest.approx(1 - 0.025 ** (1 / 50))
    said = words.low(judging.Headline("MALT", "", np.arange(3), Interval(0.5, 0.4, 0.6), (rate,)))
    assert "not told from" in said


def test_the_report_says_both_conditions_of_privacy_and_how_large_references_are(report):
    said = words.epsilon(report.given, report.judged)
    assert "TPR > exp(epsilon) FPR" in said and "1 - FPR > exp(epsilon) (1 - TPR)" in said


def test_a_regression_is_told_that_audits_are_for_classifiers():
    from mia_lib.data import from_arrays

    with pytest.raises(audit_error(), match="for classifiers"):
        from_arrays(np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) * 7, "a regression")


def test_a_recipe_that_makes_another_model_is_said(report):
    """One epoch in the place of many: references would be no models like the audited one."""
    def said(accuracy):
        prices = (remedies.Price(remedies.AS_IT_IS, accuracy=Interval(0.8, 0.75, 0.85), auc=Interval(0.6, 0.5, 0.7)),)
        return words.to_try(report.given, report.plan, prices, accuracy)

    assert "Look whether the recipe is the model's" in said(0.5) and "80 %" in said(0.5)
    assert "Look whether" not in said(0.82)
