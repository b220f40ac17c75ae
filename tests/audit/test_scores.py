"""Scores that were made elsewhere: judged like those of an attack, without a model that could be asked, or as canaries."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pandas as pd
import pytest
from matplotlib import rc_context
from typer.testing import CliRunner

from mia_book.pages.cli import app
from mia_lib import audit, metrics
from mia_lib.audit import execution, files, statistics
from mia_lib.audit import report as reporting
from mia_lib.audit.command import audit_canaries
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)
MEMBERS = RNG.permutation(400) < 200
SCORES = RNG.standard_normal(400) + 2 * MEMBERS
REGION = np.where(RNG.random(400) < 0.5, "north", "south")


def test_numbers_are_those_of_the_metrics():
    report = audit.audit_scores(SCORES, MEMBERS, groups=REGION, delta=1e-3, seed=3)
    [attack] = report.result.attacks
    order = np.argsort(~MEMBERS, kind="stable")  # members first
    np.testing.assert_array_equal(report.scores["score"], SCORES[order])
    np.testing.assert_array_equal(report.members, MEMBERS[order])
    assert attack.auc.value == pytest.approx(metrics.auc(SCORES, MEMBERS)) and report.leak
    assert attack.rates[0].tpr.value == pytest.approx(
        metrics.conformal_tpr_at_fpr(SCORES, MEMBERS, 0.01)
    )
    assert (
        attack.epsilon
        == metrics.epsilon_lower_bound(SCORES[order], MEMBERS[order], 1e-3, 0.95, 3)
        > 0
    )
    assert attack.p == pytest.approx(metrics.holm(statistics.tests([SCORES], MEMBERS, 0.01)).min())
    # no choice, no halves
    assert not report.result.best.chosen and report.result.best.auc.value == attack.auc.value
    for group in report.result.groups:
        rows = group.name == REGION
        assert group.kind == "group"
        assert group.auc.value == pytest.approx(metrics.auc(SCORES[rows], MEMBERS[rows]))
    assert report.answer.startswith(
        "The scores give away the members, the records that the model was trained on, to a severe"
    )
    assert any(
        "rate of 1 %, 100 of 1,000 members in the place of 10" in one
        for one in report.text("shows")
    )


def test_several_scores_are_judged_together_as_attacks_are():
    """The best is chosen on one half and judged on the other, and p-values are corrected for all."""
    noise = RNG.standard_normal(400)
    ids = np.array([f"P{k}" for k in range(400)])
    groups = np.where(np.arange(400) < 100, None, REGION)
    given = pd.DataFrame({"noise": noise, "margin": SCORES})
    report = audit.audit_scores(given, MEMBERS, ids=ids, groups=groups)
    assert list(report.scores) == ["noise", "margin"] and report.result.best.chosen
    assert "The score margin, chosen on one half of the records, has an AUC of" in report.answer
    expected = metrics.holm(statistics.tests([noise, SCORES], MEMBERS, 0.01)).reshape(2, 2).min(1)
    assert [attack.p for attack in report.result.attacks] == pytest.approx(expected.tolist())
    assert {group.name for group in report.result.groups} == {"missing", "north", "south"}
    shown = report.result.exposed.records[0]
    assert shown.id == f"P{shown.index}" and f"<td>{shown.id}</td>" in report.html()


def test_a_table_of_a_spreadsheet_has_semicolons_and_decimal_commas(tmp_path):
    path = tmp_path / "excel.csv"
    pd.DataFrame({"a": SCORES, "b": -SCORES, "member": MEMBERS.astype(int)}).to_csv(
        path, sep=";", decimal=",", index=False
    )
    scores, is_member, _ = files.score_table(str(path), "a,b", "member")
    np.testing.assert_allclose(scores["a"], SCORES)
    np.testing.assert_array_equal(is_member, MEMBERS)


def test_names_of_records_stay_as_they_are_written(tmp_path):
    names = ["", *(f"{10**18 + k:020d}" for k in range(1, 400))]
    path = tmp_path / "scores.csv"
    pd.DataFrame({"score": SCORES, "member": MEMBERS, "who": names}).to_csv(path, index=False)
    ids = files.score_table(str(path), "score", "member", {"ids": "who"})[2]["ids"]
    assert ids[1:].tolist() == names[1:]
    table = pd.DataFrame({"a": SCORES, "y": MEMBERS, "who": names})
    table.to_csv(path, index=False)
    paths = {"members": path, "non-members": path, "label": "y", "id": "who"}
    sets, options = files.read(paths)
    assert options["ids"][0][1:].tolist() == names[1:] and list(sets[0].x) == ["a"]


@pytest.mark.parametrize("turned", ["margin", "members", "ids", "groups"])
def test_series_in_another_order_are_refused(turned):
    given = {"margin": SCORES, "members": MEMBERS, "ids": np.arange(400), "groups": REGION}
    given = {name: pd.Series(values) for name, values in given.items()}
    given[turned] = given[turned][::-1]
    scores = {"noise": pd.Series(SCORES), "margin": given.pop("margin")}
    with pytest.raises(MiaError, match="the same index in another order"):
        audit.audit_scores(scores, **given)


def test_a_name_of_a_score_is_drawn_as_it_is_written():
    name = r"$\price$ in $"
    report = audit.audit_scores({name: SCORES, "noise": -SCORES}, MEMBERS)
    assert name in report.html()


def test_rates_and_levels_that_were_asked_for_are_not_rounded():
    report = audit.audit_scores(SCORES, MEMBERS, fpr=(0.0155, 0.0125), confidence=0.9999)
    assert "rate of 1.55 %" in report.low_rates and "rate of 1.25 %" in report.low_rates
    assert "intervals of 99.99 %" in report.html()
    assert "100 %" not in " ".join(report.text("epsilon"))


def test_of_equal_scores_the_list_of_exposed_members_says_that_its_end_is_by_number_alone():
    called = (SCORES > np.median(SCORES)).astype(float)
    report, shown = audit.audit_scores(called, MEMBERS), int((called * MEMBERS).sum())
    assert report.result.exposed.tied == shown > 25
    assert f"where {shown} have the last score" in report.html()
    assert audit.audit_scores(SCORES, MEMBERS).result.exposed.tied == 0


def test_scores_that_know_nothing_are_no_finding_and_turned_ones_are_asked_about():
    report = audit.audit_scores(RNG.permutation(SCORES), MEMBERS)
    assert not report.leak and "No attack found anything beyond chance" in report.answer
    assert "higher for non-members, as a loss is?" in audit.audit_scores(-SCORES, MEMBERS).answer
    assert audit.audit_scores(1e9 + 1e-7 * SCORES, MEMBERS).html(), "apart by their rounding alone"


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_a_table_is_audited_from_the_command_line(tmp_path, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)
    columns = {
        "odds": SCORES,
        "in_train": MEMBERS.astype(int),
        "region": np.where(REGION == "north", "NA", "south"),
    }
    if ending == "csv":
        pd.DataFrame(columns).to_csv("table.csv", index=False)
    else:
        np.savez("table.npz", **columns)
    words = f"audit --scores table.{ending} --score odds --member in_train --groups region -o out"
    if ending == "csv":
        words += " --name theirs"
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and "The scores give away the members, the records" in done.output
    numbers = json.loads((tmp_path / "out" / "audit.json").read_text())
    page = (tmp_path / "out" / "audit.html").read_text()
    assert numbers["headline"]["auc"]["value"] == pytest.approx(
        metrics.auc(SCORES, MEMBERS), abs=1e-6
    )
    assert {group["name"] for group in numbers["groups"]} == {"NA", "south"}
    most = numbers["exposed"]["records"][0]["index"]
    # rows of the table as it was given
    assert MEMBERS[most] and SCORES[most] == SCORES[MEMBERS].max()
    name = "theirs" if ending == "csv" else "table.npz"
    assert f"Audit of {name}" in page
    assert "By group" in page
    assert "None" not in page
    assert "What ran" not in page
    assert "Scores alone were given" in page


REFUSED = [  # what is given differently, and what the message says
    ({"scores": np.array(["a"] * 400)}, "numbers [N] are needed"),
    ({"scores": np.full((400, 2), 0.5)}, "of probabilities that of the true class"),
    (
        {"scores": np.where(np.arange(400) == 7, np.nan, SCORES)},
        "1 values that are not finite numbers",
    ),
    ({"scores": np.ones(400)}, "All scores are 1"),
    ({"members": MEMBERS[1:]}, "one a record is needed"),
    ({"members": SCORES}, "a mask is needed"),
    ({"members": np.arange(400) < 20}, "20 members: at least 50"),
    ({"scores": pd.Series(SCORES), "groups": pd.Series(SCORES)[::-1]}, "groups.loc[scores.index]"),
    ({"scores": {}}, "several by name"),
    ({"scores": {"a": SCORES, "b": np.ones(400)}}, "All scores['b'] are 1"),
    ({"scores": {1: SCORES, "1": -SCORES}}, "scores has 1 more than once"),
    ({"scores": pd.DataFrame({"a": SCORES, "member": MEMBERS * 1.0})}, "is members itself"),
    ({"ids": np.arange(9)}, "ids have shape (9,)"),
    ({"groups": SCORES}, "np.digitize"),
]


@pytest.mark.parametrize("changes, said", REFUSED)
def test_what_is_no_table_of_scores_is_refused(changes, said):
    with pytest.raises(MiaError) as refused:
        audit.audit_scores(**{"scores": SCORES, "members": MEMBERS} | changes)
    assert said in str(refused.value)


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gap = np.where(np.arange(400) == 5, np.nan, SCORES)
    pd.DataFrame({"score": SCORES, "member": MEMBERS, "text": REGION, "gap": gap}).to_csv(
        "table.csv", index=False
    )


@pytest.mark.parametrize(
    "words, said",
    [
        (["mine:predict"], "--scores makes no use of MODEL: leave it out"),
        (
            ["--deduplicate", "--minutes", "10"],
            "--scores makes no use of --minutes, --deduplicate: leave them out",
        ),
        (["--canaries", "table.csv", "-o", "out"], "--canaries makes no use of --scores, --output"),
        (["--test"], "--test makes no use of --scores"),
        (["--plan"], "--scores makes no use of --plan"),
        (["--fail-on", "auc=0.6", "--fail-on", "auc=0.9"], "--fail-on auc is given twice"),
        (
            ["--score", "scores"],
            "--score scores: table.csv has no such column. It has score, member, text",
        ),
        (["--member", "text"], "--member text holds other values than True and False"),
        (["--score", "gap"], "1 values are missing"),
        (["--scores", "other.csv"], "--scores other.csv: there is no such file"),
        (["--groups", "member"], "one column cannot be two of these"),
        (["--score", "score,score"], "one column cannot be two of these"),
        (["--score", "score,other"], "--score other: table.csv has no such column"),
        (["--scores", "empty.csv"], "cannot be read as a CSV"),
        (["--scores", "more.csv"], "and no field more"),
        (["--scores", "twice.csv"], "several columns score"),
    ],
)
def test_a_command_that_cannot_be_is_refused(table, tmp_path, words, said):
    for name, lines in (
        ("empty", ""),
        ("more", "score,member\n1,0,1\n2,1,1\n"),
        ("twice", "score,score,member\n1,2,1\n"),
    ):
        (tmp_path / f"{name}.csv").write_text(lines)
    done = CliRunner().invoke(app, ["audit", "--scores", "table.csv", *words])
    assert done.exit_code == 2 and said in " ".join(done.output.split())


@pytest.mark.parametrize(
    "gate, code, said",
    [
        ("leak", 3, "--fail-on leak: a leak was found."),
        ("auc=0.6", 3, "--fail-on auc: 0.9"),
        ("auc=0.99", 0, ""),
        ("epsilon=0.1", 3, "--fail-on epsilon: "),
        ("tpr=0.1", 3, "--fail-on tpr: "),
        ("nonsense", 2, "Allowed: leak, auc, tpr"),
        ("auc", 2, "write --fail-on leak, or a bound"),
        ("auc=2", 2, "out of range"),
    ],
)
def test_a_pipeline_ends_by_what_was_found(table, tmp_path, gate, code, said):
    """Three codes: 0 where nothing was found that must not be, 3 where something was, 2 where the audit was refused."""
    done = CliRunner().invoke(app, ["audit", "--scores", "table.csv", "--fail-on", gate])
    assert done.exit_code == code and said in " ".join(done.output.split())
    assert (tmp_path / "audit" / "audit.json").is_file() == (code != 2)


@pytest.mark.parametrize(
    "meanwhile, said",
    [
        (
            lambda folder: (folder / "audit.html").write_text("theirs"),
            "another audit finished in audit meanwhile",
        ),
        (lambda folder: (folder / "audit.json").mkdir(), "audit.json"),
        (lambda folder: (folder / "x").mkdir(), "is not empty (x)"),
    ],
)
def test_what_was_found_is_said_where_it_cannot_be_saved(
    table, tmp_path, monkeypatch, meanwhile, said
):
    judge, folder = execution.audit_scores, tmp_path / "audit"
    monkeypatch.setattr(
        execution,
        "audit_scores",
        lambda *given, **told: (meanwhile(folder), judge(*given, **told))[1],
    )
    done = CliRunner().invoke(app, ["audit", "--scores", "table.csv"])
    assert done.exit_code == 2
    assert said in done.output
    assert "The scores give away the members, the records" in done.output
    assert not (folder / "audit.json").is_file()
    assert [path.read_text() for path in folder.glob("audit.html")] == ["theirs"] * said.startswith(
        "another"
    )


def test_the_page_is_the_same_whatever_the_settings_of_matplotlib_are():
    report = audit.audit_scores(SCORES, MEMBERS)
    with rc_context({"text.usetex": True, "svg.fonttype": "none", "lines.linewidth": 9}):
        other = report.html()
    assert other == report.html()


def test_what_was_found_is_saved_where_the_cache_cannot_be_written(table, tmp_path, monkeypatch):
    monkeypatch.setenv("MIA_CACHE", str(tmp_path / "table.csv" / "cache"))
    done = CliRunner().invoke(app, ["audit", "--scores", "table.csv"])
    assert done.exit_code == 0 and (tmp_path / "audit" / "audit.html").is_file(), done.output


def test_a_pipeline_without_a_leak_ends_well_and_an_undecided_one_does_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shuffled = np.random.default_rng(3).permutation(SCORES)
    few = np.arange(400) < 330  # 70 non-members resolve no 1 %
    for name, columns in (
        ("table", {"score": shuffled, "member": MEMBERS}),
        ("few", {"score": SCORES, "member": few}),
        ("turned", {"score": -SCORES, "member": MEMBERS}),
    ):
        pd.DataFrame(columns).to_csv(f"{name}.csv", index=False)
    assert (
        CliRunner().invoke(app, ["audit", "--scores", "table.csv", "--fail-on", "leak"]).exit_code
        == 0
    )
    for name, gate in (("few", "tpr=0.1"), ("turned", "leak"), ("turned", "auc=0.6")):
        done = CliRunner().invoke(
            app, ["audit", "--scores", f"{name}.csv", "--fail-on", gate, "-o", name + gate]
        )
        assert done.exit_code == 2 and "cannot be decided" in done.output
        assert (tmp_path / (name + gate) / "audit.html").is_file()


def test_numbers_are_as_their_published_schema_says():
    schema = reporting.schema()
    numbers = json.loads(json.dumps(audit.audit_scores(SCORES, MEMBERS, groups=REGION).data()))
    jsonschema.validate(numbers, schema)
    assert set(schema["required"]) == set(numbers) and numbers["schema"] == reporting.SCHEMA
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(numbers | {"leak": "yes"}, schema)


def test_canaries_of_one_run_have_a_bound_with_its_conditions_also_from_a_table(tmp_path):
    coins = RNG.random(400) < 0.5
    scores = coins + 0.2 * RNG.normal(size=400)
    found = audit.canaries(scores, coins, 1e-5)
    assert found.bound == metrics.epsilon_one_run(scores, coins, None, 1e-5) > 2
    assert found.inside == coins.sum()
    assert (
        f"not (epsilon, delta = 1e-05)-private for an epsilon below {found.bound:.2f}, at a confidence of 95%"
        in str(found)
    )
    assert "fair coin" in str(found) and f"{found.bound.right} were right" in str(found)
    nothing = str(audit.canaries(RNG.random(400), coins, confidence=0.999))
    assert "not that there is nothing" in nothing and "confidence of 99.9%" in nothing
    pd.DataFrame({"loss": scores, "coin": coins.astype(int)}).to_csv(
        tmp_path / "canaries.csv", index=False
    )
    words = f"audit --canaries {tmp_path / 'canaries.csv'} --score loss --member coin"
    done = CliRunner().invoke(app, words)
    assert done.output.strip() == str(audit.canaries(scores, coins)) and not done.exit_code
    with pytest.raises(MiaError, match="fair coins"):
        audit.canaries(np.r_[scores[coins], scores[:5]], np.r_[coins[coins], coins[:5]])
    with pytest.raises(MiaError, match="no such file"):
        audit_canaries("nowhere.csv", "score", "member", 0.0, 0.95, 0)
