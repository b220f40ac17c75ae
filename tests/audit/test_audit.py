"""The audit: that it finds what is there and not what is not, and says what it did."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
import torch
from audits import COSTS, RECIPE, check
from safetensors.torch import save_file
from scipy import stats
from typer.testing import CliRunner

from mia_book.pages.cli import app
from mia_lib import audit, metrics
from mia_lib.audit import attacks, execution, inputs, plans, rehearsal, statistics
from mia_lib.audit import report as reporting
from mia_lib.audit.options import check_folder
from mia_lib.audit.plans import RUNS
from mia_lib.audit.rehearsal import clusters, sharpened, split
from mia_lib.metrics import Interval
from mia_lib.training.recipe import seed_of

RNG = np.random.default_rng(0)


def test_false_alarms_keep_their_level():
    """Of 100 audits of a model that never saw the "members", no more alarm than one test in ten thousand would make of 5 %."""
    p = RNG.dirichlet(np.ones(3), 200)
    y = np.array([RNG.choice(3, p=row) for row in p])
    assert rehearsal.count_alarms(p, y, 100) <= stats.binom.ppf(0.9999, 100, 0.05)
    assert rehearsal.count_alarms(p, y, 40, share=0.6) > 36


def test_a_leak_in_some_members_is_found():
    """A function that is sharper for a fifth of its members: those are who is called."""
    members, others = split(clusters(600, 1), 300)
    found = audit.audit(
        sharpened(members),
        members,
        others,
        outputs="probabilities",
        minutes=5,
        without=["curvature"],
    )
    assert found.leak and not found.result.differ
    assert found.result.best.attack in ("confidence", "modified entropy", "MALT")
    known = np.ptp(sharpened(members)(members.x), axis=1) > 0.9
    exposed = [record.index for record in found.result.exposed.records]
    assert known[exposed].mean() > 2 * known.mean()
    assert "gives away its members, the records that it was trained on" in found.answer


@pytest.fixture(scope="module")
def report(sets, memorised):
    """Of a network that knows its members by heart, with all that can be had."""
    members, others, public = sets
    groups = tuple(np.where(one.x[:, 0] > 0, "high", "low") for one in (members, others))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            plans.private, "missing_dependency", lambda: "DP-SGD is tested where it is made"
        )
        return audit.audit(
            memorised,
            members,
            others,
            public=public,
            recipe=RECIPE,
            minutes=30,
            references=8,
            groups=groups,
            confidence=0.9,
            queries=230,
            name="a network & its <members>",
        )


def test_a_network_that_knows_its_members_is_found_at_the_confidence_asked_for_tools_are_set_apart_and_remedies_priced(
    report,
):
    assert report.leak
    assert report.result.best.auc.low > 0.5
    assert set(report.scores) == set(attacks.ATTACKS)
    assert all(report.plan.state(name) == RUNS for name in attacks.ATTACKS)
    assert attacks.ATTACKS["IHA"].knows_membership
    assert report.result.best.attack not in ("IHA", "gradient alone")
    for one in report.result.attacks:
        assert (one.p is None) == (one.epsilon is None) == one.audit_tool
    jsonschema.validate(report.data(), reporting.schema())
    first, *others = report.prices
    assert first.less is None
    assert {one.name for one in others} >= {"weight decay 0.005", "10 in place of 30 epochs"}
    assert (
        first.accuracy.level
        == first.auc.level
        == report.result.level
        == report.result.best.auc.level
        == 0.9
    )
    for one in others:
        if not one.failed:
            assert one.less.value == pytest.approx(first.auc.value - one.auc.value)
            assert one.less.level == 0.9
            assert one.price.value == pytest.approx(first.accuracy.value - one.accuracy.value)
            assert one.price.level == 0.9


def test_changes_of_a_recipe(had):
    """One thing at a time; augmentation of images alone, DP-SGD where Opacus is."""
    pytest.importorskip("opacus")
    first, *others = plans.list_changes(had, COSTS)
    assert first.config == inputs.reseeded(RECIPE)
    for one in others:
        changed = [
            name
            for name in RECIPE.__dataclass_fields__
            if getattr(one.config, name) != getattr(first.config, name)
        ]
        assert len(changed) + (one.privacy is not None) == 1 and "augmentation" not in changed


def test_no_reference_begins_where_the_model_did(had):
    """The recipe's own seed is the model's, where it was trained by `training.fit` or as the first of an ensemble."""
    config = inputs.references(had, 8).config
    assert replace(config, seed=RECIPE.seed) == RECIPE
    assert seed_of(RECIPE, 0) not in [seed_of(config, index) for index in range(8)]


def test_network_program_function_and_probabilities_give_the_same_scores(sets, memorised):
    members, others, _ = sets
    x = torch.from_numpy(members.x)
    program = torch.export.export(memorised, (x[:4],), dynamic_shapes=({0: torch.export.Dim.AUTO},))

    def function(x):
        with torch.no_grad():
            return memorised(torch.from_numpy(x.astype(np.float32)))

    found = [check(one, members, others) for one in (memorised, program, function)]
    found.append(
        check(lambda x: function(x).double().softmax(1), members, others, outputs="probabilities")
    )
    for name in ("MALT", "confidence"):
        first, *rest = [
            attacks.score(attacks.ATTACKS[name], attacks.AuditSignals(one)) for one in found
        ]
        np.testing.assert_allclose(rest, [first] * 3, rtol=1e-4, atol=1e-6)
    assert [one.target.parameters for one in found] == [12 * 16 + 16 + 16 * 4 + 4, None, None, None]


def test_records_that_differ_by_themselves_are_found(sets, memorised):
    members, others, _ = sets
    shifted = replace(others, x=others.x + np.float32(0.7))
    pools = [check(memorised, members, one).pool for one in (others, shifted)]
    same, differing = (inputs.score_inputs(pool, np.arange(600) < 300, 0) for pool in pools)
    rows, found, _ = differing
    assert (
        statistics.auc_p(found, rows < 300)
        < statistics.ALONE
        < statistics.auc_p(same[1], same[0] < 300)
    )
    said = audit.audit(memorised, members, shifted, minutes=5, without=["curvature"])
    assert said.result.differ
    assert "without the model" in said.answer
    assert 'class="warning"' in said.html()
    assert said.leak is None
    assert said.data()["leak"] is None
    assert said.data()["warnings"] == [said.answer]
    shown = said.text("shows")
    assert not any("The finding holds" in one for one in shown)
    assert any("is not said" in one for one in shown)
    for block in ("epsilon", "exposure", "warning_titles"):
        assert said.text(block)[0].startswith("Members and non-members differ without the model")


def test_a_model_that_is_right_as_often_as_a_guess_is_warned_of(sets, memorised):
    members, others = (
        replace(one, y=one.y[np.random.default_rng(0).permutation(300)]) for one in sets[:2]
    )
    found = audit.audit(memorised, members, others, minutes=5, without=["curvature"])
    assert found.result.guessed and found.data()["right_about_members"]["guessed"]
    assert re.match(
        r"The model is right about \d+ of 300 members, no more, .* drawn at random.* Look at that first. ",
        found.answer,
    )
    assert "no better than a guess" in found.html() and 'class="warning"' in found.html()
    assert any("labels drawn at random" in one for one in found.text("shows"))


def test_a_group_that_leaks_is_called(report):
    changed = [
        replace(one, p=0.001 if one.name == "high" else 0.2) if one.kind == "group" else one
        for one in report.result.groups
    ]
    page = " ".join(
        replace(report, result=replace(report.result, groups=tuple(changed))).html().split()
    )
    assert (
        "2 of 2 groups have records enough in the half of the records that judges, which alone is counted here. Above "
        "chance by rank tests, with a confidence of 90 % for all of them together: high. Intervals of few records are "
        "rough."
    ) in page
    result = replace(report.result, leak=False, groups=tuple(changed))
    page = " ".join(replace(report, result=result).html().split())
    assert "high. No attack found a leak on the whole, so audit these again, with" in page
    assert "nothing shows that any of them is exposed" in page and "is a suspicion" not in page
    for kind in ("class", "group"):  # each of G intervals is at 1 - 0.1 / G
        able = [one for one in report.result.groups if one.kind == kind and one.auc is not None]
        assert able and all(
            0 <= one.p <= 1 and one.auc.level == pytest.approx(1 - 0.1 / len(able)) for one in able
        )


def test_sets_that_were_exchanged_are_asked_about(sets, memorised, report):
    members, others, _ = sets
    found = audit.audit(memorised, others, members, minutes=5, without=["curvature"])
    assert found.result.below
    assert not found.leak
    assert any("score below" in one for one in found.text("shows"))
    assert re.match(r"Members score below non-members: .* Were the sets exchanged", found.answer)
    assert "holds 0.5" not in found.answer and "beyond chance" not in found.answer
    assert not report.result.below and not report.text("warnings")
    low = replace(
        report.result, best=replace(report.result.best, auc=Interval(0.4, 0.3, 0.45), p=0.9)
    )
    answer = replace(report, result=low).answer
    assert answer.startswith("The model gives some of its members away, to a ")
    assert "0.400 [0.300, 0.450]" in answer


@pytest.mark.parametrize(
    "members, others, kept",
    [
        (300, 300, (300, 300)),
        (9000, 60, (3940, 60)),
        (50, 9000, (50, 3950)),
        (2500, 3000, (2000, 2000)),
        (2500, 1700, (2300, 1700)),
    ],
)
def test_the_control_keeps_the_rarer_side(members, others, kept):
    """Of more records than it looks at, half of each side, or all of one that has fewer."""
    is_member = np.arange(members + others) < members
    rows = inputs.draw_rows(is_member, np.random.default_rng(0))
    assert (is_member[rows].sum(), (~is_member[rows]).sum()) == kept
    assert (np.diff(rows) > 0).all()


def test_page_and_numbers_are_one_folder(report, tmp_path):
    page = report.save(tmp_path / "new").read_text()
    numbers = json.loads((tmp_path / "new" / "audit.json").read_text())
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page) and "<script" not in page
    assert page.count("<img") == page.count('alt="') == 2 and 'alt=""' not in page
    assert "a network &amp; its &lt;members&gt;" in page
    assert "None" not in page
    assert "nan" not in page.lower().split()
    assert numbers["headline"]["attack"] == report.result.best.attack
    for one in numbers["attacks"]:
        scores = np.array(one["scores"])
        assert one["auc"]["value"] == pytest.approx(metrics.auc(scores, report.members), abs=2e-3)
        assert (
            reporting.span(Interval(*(one["auc"][end] for end in ("value", "low", "high")))) in page
        )
    assert all(sentence["step"] in page for sentence in numbers["plan"])
    below = [rate for one in report.result.attacks for rate in one.rates if rate.fpr == 0.001]
    assert not any(rate.resolved for rate in below)
    assert {reporting.tpr(rate, 60) for rate in below} == {"below resolution"}
    assert "nothing is said of lower false positive rates, such as 0.1 %" in " ".join(
        report.text("shows")
    )
    check_folder(tmp_path / "new")  # an older audit is no obstacle to the next


def test_a_sentence_says_what_its_numbers_say(report):
    price = report.prices[1]
    for sign, effect in (
        (1, "this training leaked less, cost accuracy"),
        (-1, "this training leaked more, gained accuracy"),
    ):
        less, cost = (
            Interval(sign * x, *sorted((sign * x / 2, sign * 1.5 * x))) for x in (0.1, 0.02)
        )
        assert replace(price, less=less, price=cost).effect == effect
    said = " ".join(report.text("epsilon"))
    assert "TPR > exp(epsilon) FPR" in said and "1 - FPR > exp(epsilon) (1 - TPR)" in said
    bound = max(
        (one.epsilon for one in report.result.attacks if one.epsilon is not None), key=float
    )
    assert (
        f"the {'first' if bound.direction == 'members' else 'second'} condition, at a TPR of"
        in said
    )

    def with_result(**changes):
        return replace(report, result=replace(report.result, **changes))

    for auc, words in (
        (Interval(0.51, 0.46, 0.55), "AUC of up to 0.550 is not excluded"),
        (Interval(0.38, 0.26, 0.48), "nothing excludes one that it cannot see"),
    ):
        assert words in " ".join(
            with_result(control=replace(report.result.control, auc=auc)).text("shows")
        )
    calm, alone = (
        with_result(leak=False, best=replace(report.result.best, auc=auc, p=p)).answer
        for auc, p in ((Interval(0.5, 0.4, 0.6), 0.5), (Interval(0.55, 0.51, 0.59), 0.02))
    )
    assert calm.startswith("No attack found anything beyond chance. The attack ")
    assert "in four audits of five" in calm
    assert "no proof of safety" in calm
    assert "more than chance had nothing else been tested. That is no proof" in alone


def test_an_attack_that_fails_is_said_to_have_failed_in_the_terms_of_an_audit(
    sets, memorised, monkeypatch
):
    """A Hessian that bends down further than the damping goes."""
    members, others = sets[0].take(np.arange(120)), sets[1]
    monkeypatch.setattr(attacks.hessian, "exact", lambda network, *given, **how: -np.eye(276))
    monkeypatch.setattr(plans, "list_changes", lambda *given: [])
    monkeypatch.setattr(execution, "train_references", lambda inputs, plan, left: (None, plan))
    found = audit.audit(memorised, members, others, recipe=RECIPE, references=4, minutes=5)
    steps = {one.name: one for one in found.plan.steps}
    assert steps["IHA"].state == plans.FAILED
    assert "smallest eigenvalue is -1, and the audit adds 0.2" in steps["IHA"].why
    assert steps["LiRA"].state == plans.IMPOSSIBLE and "LiRA" in found.html(), (
        "references that were not there in time"
    )
    assert "rank_threshold" not in found.html() and "IHA" not in found.scores


def test_a_step_that_fails_by_whatever_error_is_a_line_of_the_plan_and_the_others_go_on(
    sets, memorised, monkeypatch
):
    def broken(*given, **how):
        raise KeyError("no such thing")

    monkeypatch.setattr(execution, "score_inputs", broken)
    monkeypatch.setattr(execution, "references", broken)
    monkeypatch.setattr(attacks.signals, "record_gradients", broken)
    monkeypatch.setattr(plans.metrics, "compare", broken)  # of all changes but the first
    monkeypatch.setattr(
        plans, "_find_private_obstacle", lambda inputs: "it is tested where it is made"
    )
    found = audit.audit(memorised, *sets[:2], recipe=RECIPE, minutes=30, without=["curvature"])
    steps = {one.name: (one.state, one.why) for one in found.plan.steps}
    assert (
        steps[plans.CONTROL]
        == steps[plans.REFERENCES]
        == (plans.FAILED, "KeyError: 'no such thing'")
    )
    assert steps["gradient norm"] == (
        plans.IMPOSSIBLE,
        "the model does not do what it asks: KeyError: 'no such thing'",
    )
    assert steps["LiRA"] == (plans.IMPOSSIBLE, "there are no references") and "MALT" in found.scores
    assert not found.prices[0].failed
    assert all("no such thing" in price.failed for price in found.prices[1:])
    page = " ".join(found.html().split())
    assert (
        'did not run; <a href="#plan">the plan</a> says why. Whether members and non-members differ'
        in page
    )
    assert ">ran<" in page and ">runs" not in page and found.data()["control"] is None


def test_command_line(sets, memorised, tmp_path, monkeypatch):
    """A plan, then an audit, from files."""
    monkeypatch.chdir(tmp_path)
    for name, one in zip(("m", "n"), sets, strict=False):
        np.savez(
            f"{name}.npz",
            x=one.x[:100],
            y=one.y[:100],
            region=np.where(one.x[:100, 1] > 0, "n", "s"),
        )
    save_file(memorised.state_dict(), "w.safetensors")
    (tmp_path / "mine_to_audit.py").write_text(
        "from mia_lib import models\n\ndef build():\n    return models.build('mlp:16', (12,), 4)\n"
    )
    words = (
        "audit mine_to_audit:build --state w.safetensors --members m.npz --non-members n.npz "
        "--groups region --minutes 5 -o out"
    )
    planned = CliRunner().invoke(app, f"{words} --plan")
    assert planned.exit_code == 0
    assert "gradient norm" in planned.output
    assert not (tmp_path / "out").exists()
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0
    assert "chosen on one half" in ran.output
    assert (tmp_path / "out" / "audit.html").is_file()


def test_references_that_do_not_look_like_the_model_are_warned_of_and_its_recipe_is_tried_no_further(
    sets, memorised, report
):
    """One epoch in the place of many, or a sample of the members: references are right about other shares of the records, and
    what would help that model says nothing of the audited one."""
    assert not report.strange_references and report.data()["references"]["like_the_model"]
    for accuracy in ((0.4, report.accuracy[1]), (1.0, report.accuracy[1] - 0.2)):
        strange = replace(report, reference_accuracy=accuracy)
        assert "The references do not look like the model: they are right about" in strange.answer
        assert 'class="warning"' in strange.html()
        assert strange.data()["references"]["like_the_model"] is False
    found = audit.audit(
        memorised, *sets[:2], recipe=replace(RECIPE, epochs=1), references=4, minutes=30
    )
    [price] = found.prices
    assert not price.alike and found.strange_references and report.prices[0].alike
    assert " ".join(found.text("to_try")).startswith(
        "No change was tried. The recipe as it was given makes a model that is"
    )
    assert "No change was tried" not in " ".join(report.text("to_try"))
