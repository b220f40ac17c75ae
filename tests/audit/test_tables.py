"""Tables as people have them, words, dates and holes among numbers; references that are refitted, or come from elsewhere."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from mia_lib import audit, data, frames, signals
from mia_lib.attacks.registry import IN_AUDITS, LOG_ODDS
from mia_lib.audit import command, files, inputs, plans, references, statistics
from mia_lib.audit import report as reporting
from mia_lib.audit.options import AuditOptions
from mia_lib.audit.target import count_digits, spread
from mia_lib.errors import MiaError
from mia_lib.metrics import Interval
from mia_lib.training import TrainConfig

ROOT = Path(__file__).parents[2]
WORDS = make_pipeline(
    SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder(handle_unknown="ignore")
)
LEARNER = make_pipeline(
    make_column_transformer(
        (WORDS, ["ward", "sex"]), (SimpleImputer(), ["age", "crp"]), ("passthrough", ["smoker"])
    ),
    RandomForestClassifier(20, random_state=0),
)


def patients(count: int = 300, seed: int = 0) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    age, crp = chance.integers(1, 95, count).astype(float), chance.lognormal(2, 1, count).round(1)
    sick = 0.03 * age + 0.4 * np.log(crp) + chance.normal(0, 1, count)
    return pd.DataFrame(
        {
            "patient": [f"P{k}" for k in range(count)],
            "ward": pd.Categorical(chance.choice(["surgery", "heart"], count)),
            "sex": np.where(chance.random(count) < 0.1, None, chance.choice(["f", "m"], count)),
            "age": age,
            "crp": np.where(chance.random(count) < 0.3, np.nan, crp),
            "smoker": chance.random(count) < 0.3,
            "admitted": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(chance.integers(0, 365, count), "D"),
            "outcome": np.where(sick > np.median(sick), "back", "well"),
        }
    )


TABLE = patients()
INSIDE, OUTSIDE, PUBLIC = TABLE[:110], TABLE[110:220], TABLE[220:]
SETS = [data.from_frame(part, "outcome", "patients") for part in (INSIDE, OUTSIDE, PUBLIC)]
MEMBERS, OTHERS, MORE = SETS
PIPELINE = clone(LEARNER).fit(INSIDE.drop(columns=["outcome", "patient"]), INSIDE["outcome"])
ASKED = {"references": 4, "minutes": 5}


def fit(x, y):
    return clone(LEARNER).fit(x, y)


def coarse_loss(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Loss of a forest's probabilities, whose zeros are half of the least of them."""
    return signals.from_probabilities(p, y, floor=float(p[p > 0].min() / 2))["loss"]


# ---------------------------------------------------------------------------------------------------------------- records


def test_columns_are_kept_as_they_are_and_labels_are_named():
    expected = INSIDE.drop(columns="outcome").reset_index(drop=True)
    pd.testing.assert_frame_equal(MEMBERS.x, expected)
    assert MEMBERS.classes == ("back", "well") and MEMBERS.shape == (7,) and MEMBERS.is_frame
    assert_array_equal(np.array(MEMBERS.classes)[MEMBERS.y], INSIDE["outcome"])
    some = MEMBERS.take([3, 1])
    pd.testing.assert_frame_equal(some.x, expected.iloc[[3, 1]].reset_index(drop=True))
    for labels, classes in (([2, 7, 2], ("2", "7")), ([1.0, 0.0, 1.0], ("0", "1"))):
        assert data.from_frame(TABLE[:3], labels, "x").classes == classes
    named = data.from_frame(TABLE[:3], ["b", "a", "b"], "x", classes=("c", "b", "a"))
    assert named.y.tolist() == [1, 2, 1]


def test_a_table_is_known_by_its_content():
    again = data.from_frame(INSIDE.copy(), "outcome", "other name").fingerprint
    assert again == MEMBERS.fingerprint
    changed = INSIDE.assign(crp=INSIDE["crp"].fillna(0.0))
    for other in (changed, INSIDE.astype({"ward": str}), INSIDE.rename(columns={"crp": "c"})):
        assert data.from_frame(other, "outcome", "x").fingerprint != MEMBERS.fingerprint


@pytest.mark.parametrize(
    "table, label, said",
    [
        (np.ones((3, 2)), [0, 1, 0], "a DataFrame of pandas is needed"),
        (TABLE, "outcom", "Did you mean 'outcome'"),
        (TABLE[["outcome"]], "outcome", "at least one record and one column"),
        (TABLE.assign(outcome=None), "outcome", "300 records have none"),
        (TABLE, "crp", "have none: leave them out"),
        (TABLE.dropna(), "crp", "holds fractions"),
        (TABLE[:2], [np.inf, 1.0], "holds fractions, such as inf"),
        (TABLE[:2], [[1], [2]], r"shape \(2, 1\)"),
        (TABLE[:4], ["a", "a", "a", "a"], "one class"),
        (TABLE[:2].assign(all=[[1], [2]]), [0, 1], "cells are collections: all"),
        (pd.concat([TABLE, TABLE], axis=1), np.arange(300) % 2, "called alike"),
    ],
)
def test_what_is_no_table_is_refused(table, label, said):
    with pytest.raises(MiaError, match=said):
        data.from_frame(table, label, "patients")


def test_networks_are_told_what_they_take():
    with pytest.raises(MiaError, match="networks take numbers.*get_dummies"):
        audit.plan(PIPELINE.predict_proba, MEMBERS, OTHERS, recipe=TrainConfig("mlp:4"))
    with pytest.raises(MiaError, match="data.from_frame"):
        data.from_arrays(INSIDE, np.arange(110) % 2, "x")


def test_the_control_codes_words_dates_and_holes_and_finds_records_that_differ():
    coded = frames.encode(MEMBERS.x)
    assert np.isfinite(coded).all() and coded.shape[0] == 110
    for column, value in (("sex", None), ("admitted", pd.Timestamp("2031-01-01"))):
        later = data.from_frame(OUTSIDE.assign(**{column: value}), "outcome", "later")
        pool = frames.join([MEMBERS.x[[column]], later.x[[column]]])
        records = data.from_frame(pool, np.r_[MEMBERS.y, later.y], "pool")
        is_member = np.arange(220) < 110
        rows, score, second = inputs.score_inputs(records, is_member, 0)
        assert statistics.halves_p(score, is_member[rows], second) < statistics.ALONE


# ------------------------------------------------------------------------------------------------------------- the audit


@pytest.fixture(scope="module")
def report():
    return audit.audit(
        PIPELINE, MEMBERS, OTHERS, recipe=LEARNER, public=MORE, auditor="Ms Chen", **ASKED
    )


def test_a_pipeline_is_audited_with_references_on_the_table_that_it_was_fitted_to(report):
    assert {"LiRA", "LiRA, offline", "RMIA", "calibrated loss"} <= set(report.scores)
    assert report.leak and report.plan.references == 4
    assert list(report.inputs.pool.x) == list(PIPELINE.feature_names_in_)
    shown = " ".join(report.text("shows"))
    assert "left out, also for the control: patient" in shown
    assert "References were 4 models trained on halves" in shown
    p = PIPELINE.predict_proba(INSIDE)[np.arange(110), MEMBERS.y]
    assert_allclose(
        report.inputs.target.scalars(report.inputs.pool)["probabilities"][:110],
        PIPELINE.predict_proba(INSIDE),
    )
    assert np.corrcoef(report.scores["MALT"][:110], p)[0, 1] > 0.5
    steps = {step.name: step.why for step in report.plan.steps}
    for name in ("curvature", "boundary distance", "quantile regression"):
        assert "records that are numbers" in steps[name]
    assert report.data()["provenance"]["recipe"]["copies of"].startswith("Pipeline(")


def test_copies_of_an_estimator_are_fitted_to_halves_with_other_random_numbers():
    asked = []

    class Kept(RandomForestClassifier):
        def fit(self, x, y):
            asked.append((len(x), self.random_state, set(y)))
            return super().fit(x, y)

    fit_copy = references.fitting(AuditOptions(recipe=Kept(5, random_state=7)))
    for index in (0, 1):
        fit_copy(np.arange(8.0).reshape(4, 2), np.array(["a", "b", "a", "b"]), index)
    assert asked == [(4, 8, {"a", "b"}), (4, 9, {"a", "b"})]
    assert references.labels_by_name(("3", "10")).tolist() == [3, 10]
    assert references.labels_by_name(("False", "True")).tolist() == [False, True]
    assert references.labels_by_name(("01", "2")).tolist() == ["01", "2"]


def test_a_function_that_fits_is_asked_as_the_model_is_and_one_that_fails_is_said_to(report):
    found = inputs.check_inputs(
        PIPELINE, MEMBERS, OTHERS, AuditOptions(refit=fit, deduplicate=True, references=4)
    )
    found.refits.train(1)
    found.refits.train(0)
    made = found.refits.first(2)
    rows = found.refits.members[1]
    twin = fit(frames.take(found.pool.x, rows), np.array(found.pool.classes)[found.pool.y[rows]])
    expected = coarse_loss(twin.predict_proba(found.pool.x), found.pool.y)
    assert_allclose(made.values["loss"][1], expected)
    assert made.accuracy[0] > made.accuracy[1]

    def broken(x, y):
        raise KeyError("ward")

    planned = audit.plan(PIPELINE, MEMBERS, OTHERS, refit=broken, **ASKED)
    assert planned.state("LiRA") == plans.IMPOSSIBLE
    assert "a reference could not be fitted: KeyError: 'ward'" in str(planned)


def test_references_from_elsewhere_are_taken_with_what_they_were_trained_on(report):
    pool = report.inputs.pool
    rows = np.arange(220) % 2 == np.arange(4)[:, None] % 2
    made = [fit(pool.x[row], np.array(pool.classes)[pool.y[row]]) for row in rows]
    answers = np.stack([model.predict_proba(pool.x) for model in made])
    found = audit.audit(
        PIPELINE, MEMBERS, OTHERS, references_from={"answers": answers, "members": rows}, minutes=5
    )
    assert "LiRA" in found.scores and found.plan.references == 4
    assert "RMIA" not in found.scores  # which asks references about public records
    assert "4 models from elsewhere" in " ".join(found.text("shows"))
    given = found.inputs.given
    assert_array_equal(given.members, rows)
    assert_allclose(given.values["loss"][0], coarse_loss(answers[0], pool.y))
    loss = {"loss": given.values["loss"], "members": rows}
    of_losses = inputs.check_inputs(PIPELINE, MEMBERS, OTHERS, AuditOptions(references_from=loss))
    assert of_losses.given.accuracy is None
    assert_allclose(of_losses.given.values[LOG_ODDS], given.values[LOG_ODDS], rtol=1e-4, atol=1e-4)


HALVES = np.arange(220) % 2 == np.arange(4)[:, None] % 2
MORE_OF_ONE = np.where(np.arange(220) < 110, [[1], [1], [1], [0]], [[1], [0], [0], [0]]) == 1


def test_kept_scores_are_not_those_of_references_that_were_said_to_be_trained_on_others(tmp_path):
    loss = np.random.default_rng(0).exponential(size=(4, 220))
    one, other = (
        audit.audit(
            PIPELINE,
            MEMBERS,
            OTHERS,
            references_from={"loss": loss, "members": rows},
            keep=tmp_path,
            minutes=5,
        ).scores["LiRA"]
        for rows in (HALVES, ~HALVES)
    )
    assert not np.allclose(one, other)


def test_a_function_that_fits_the_audited_model_again_is_refused():
    model = fit(INSIDE.drop(columns=["outcome", "patient"]), INSIDE["outcome"])
    with pytest.raises(MiaError, match="refit has changed the model that is audited"):
        audit.audit(model, MEMBERS, OTHERS, refit=lambda x, y: model.fit(x, y), **ASKED)


REFUSED = [
    ({"members": (INSIDE, 1)}, "data.from_frame(x, y, 'members')"),
    (
        {"non_members": data.from_arrays(np.eye(110), MEMBERS.y, "x", MEMBERS.classes)},
        "prepared alike",
    ),
    (
        {"non_members": data.from_frame(OUTSIDE.drop(columns="crp"), "outcome", "x")},
        "not both have crp",
    ),
    (
        {"non_members": data.from_frame(OUTSIDE[OUTSIDE.columns[::-1]], "outcome", "x")},
        "in another order",
    ),
    (
        {
            "non_members": data.from_frame(
                OUTSIDE.assign(age=OUTSIDE["age"].astype(int)), "outcome", "x"
            )
        },
        "table.astype(members.dtypes)",
    ),
    ({"non_members": MEMBERS}, "110 records of non_members are in members"),
    ({"model": PIPELINE, "members": MORE, "non_members": MORE}, "counted twice|are in members"),
    ({"recipe": 5}, "an estimator as of scikit-learn, of which copies are fitted"),
    ({"refit": LEARNER}, "of an estimator that can be fitted again give recipe=estimator"),
    ({"refit": fit, "recipe": LEARNER}, "recipe and refit each say where references come from"),
    ({"references_from": [1]}, "arrays by name are needed"),
    ({"references_from": {"members": HALVES}}, "one of both"),
    (
        {"references_from": {"members": HALVES, "loss": HALVES * 1.0, "los": 1}},
        "Did you mean 'loss'",
    ),
    ({"references_from": {"members": HALVES[:, 1:], "loss": HALVES * 1.0}}, "[R, 220] is needed"),
    ({"references_from": {"members": HALVES, "loss": HALVES[:, 1:] * 1.0}}, "(4, 220) is needed"),
    (
        {"references_from": {"members": HALVES, "loss": HALVES * np.nan}},
        "Leave these references out",
    ),
    (
        {
            "references_from": {
                "members": HALVES,
                "loss": HALVES * 1.0,
                "public_loss": np.ones((4, 9)),
            }
        },
        "there are no public records",
    ),
    (
        {"references_from": {"members": MORE_OF_ONE, "loss": HALVES * 1.0}},
        "of 4 references 3 were trained on a member on average, and 1 on a non-member",
    ),
    (
        {"references_from": {"members": HALVES, "loss": HALVES * -1.0}},
        "references_from['loss'] runs from -1, and a loss is at least 0",
    ),
    (
        {"references_from": {"members": HALVES, "answers": np.full((4, 220, 2), -0.7)}},
        "references_from['answers']: probabilities run from -0.7",
    ),
    ({"recipe": type(LEARNER)}, "is a class: give an estimator"),
    ({"outputs": "top-k"}, "'top-k' is for a function, and a Pipeline says more"),
    ({"model": lambda x: 1 / 0}, "ZeroDivisionError"),
    ({"model": clone(LEARNER)}, "is not fitted"),
    ({"batch": 0}, "batch = 0"),
]


@pytest.mark.parametrize("changes, said", REFUSED)
def test_wrong_calls_with_tables_are_refused(changes, said):
    asked = {"model": PIPELINE, "members": MEMBERS, "non_members": OTHERS} | changes
    with pytest.raises(MiaError) as refused:
        audit.plan(asked.pop("model"), asked.pop("members"), asked.pop("non_members"), **asked)
    assert any(one in str(refused.value) for one in said.split("|"))


# ------------------------------------------------------------------------------------------------------- the command line


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(statistics, "DRAWS", 30)
    for name, part in (("in", INSIDE), ("out", OUTSIDE)):
        part.to_csv(f"{name}.csv", index=False)
    sets, _ = files.read({"members": "in.csv", "non-members": "out.csv", "label": "outcome"})
    np.savez("refs.npz", members=HALVES, loss=np.random.default_rng(0).exponential(size=(4, 220)))
    return sets


def run(**changes):
    usual = {
        "options": AuditOptions(minutes=5, references=4),
        "model": f"{__name__}:PIPELINE",
        "members": "in.csv",
        "non_members": "out.csv",
        "label": "outcome",
        "output": Path("found"),
    }
    return command.audit_model(**usual | changes)


def test_tables_are_read_alike_and_audited_by_name(tables):
    members, others = tables
    assert (members.x.dtypes == others.x.dtypes).all() and members.classes == ("back", "well")
    assert members.x["sex"].isna().sum() == INSIDE["sex"].isna().sum()
    text, code = run(refit=f"{__name__}:fit", groups="sex", id="patient")
    page = Path("found/audit.html").read_text()
    assert code == 0 and "says in" in text
    assert "missing" in page and re.search(r"<td>P\d+</td>", page)
    text, _ = run(references_from="refs.npz", output=Path("elsewhere"), plan=True)
    assert "4 from elsewhere" in text


def test_types_of_both_files_are_those_of_all_records_together():
    one = pd.DataFrame({"n": [1, 2], "w": ["a", None], "c": pd.Categorical(["x", "y"])})
    other = pd.DataFrame({"n": [1.5, None], "w": [None, None], "c": pd.Categorical(["z", "x"])})
    both = files.same_columns({"members": one, "non-members": other})
    assert (both["members"].dtypes == both["non-members"].dtypes).all()
    assert set(both["members"]["c"].cat.categories) == {"x", "y", "z"}
    with pytest.raises(MiaError, match="not both have n"):
        files.same_columns({"members": one, "non-members": other.drop(columns="n")})


def test_a_parquet_file_keeps_types(tmp_path):
    pytest.importorskip("pyarrow")
    paths = {"label": "outcome"}
    for name, part in (("members", INSIDE), ("non-members", OUTSIDE)):
        paths[name] = str(tmp_path / f"{name}.parquet")
        part.to_parquet(paths[name], index=False)
    (members, _), _ = files.read(paths)
    assert isinstance(members.x["ward"].dtype, pd.CategoricalDtype)
    assert members.x["admitted"].dtype.kind == "M"


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"label": None}, "--label NAME. It has patient, ward"),
        ({"label": "outcom"}, "Did you mean 'outcome'"),
        ({"groups": "war"}, "Did you mean 'ward'"),
        ({"members": "refs.npz"}, "is no table, where another file"),
        ({"refit": f"{__name__}:fitt"}, "Did you mean 'fit'"),
        ({"refit": "nowhere:fit"}, "--refit = nowhere:fit: there is no module"),
        ({"references_from": "none.npz"}, "--references-from none.npz: there is no such file"),
    ],
)
def test_wrong_tables_of_a_command_are_refused(tables, changes, said):
    with pytest.raises(MiaError) as refused:
        run(**changes)
    assert said in str(refused.value)


def test_parquet_without_pyarrow_names_it(tables, monkeypatch):
    Path("in.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "fastparquet", None)
    with pytest.raises(MiaError, match=r"pip install 'mia_lib\[parquet\]'"):
        run(members="in.parquet")


# --------------------------------------------------------------------------------------------------- answers of endpoints

CLASSES = ("a", "b", "c", "d")


def test_the_rest_of_the_best_classes_is_spread_over_the_others():
    expected = [[0.7, 0.2, 0.05, 0.05], [0.1, 0.1, 0.1, 0.7]]
    whole, count = spread(np.array([[0.7, 0.2, 0, 0], [0, 0, np.nan, 0.7]]), 2, CLASSES)
    assert_allclose(whole, expected)
    assert count == 2
    pair = np.array(["a", "d"]), np.array([0.7, 0.7])
    assert_allclose(spread(pair, 2, CLASSES)[0], [[0.7, 0.1, 0.1, 0.1], expected[1]])
    numbers = np.array([[0, 1], [3, 2]]), np.array([[0.7, 0.2], [0.7, 0.1]])
    assert_allclose(spread(numbers, 2, CLASSES)[0], expected)
    assert_allclose(spread([{"a": 0.7, "b": 0.2}, {"d": 0.7}], 2, CLASSES)[0], expected)
    assert_allclose(spread(np.array([[0.5, 0.3, 0.3, 0.0]]), 1, CLASSES)[0].sum(), 1)  # rounded
    for answer, said in (
        (np.ones((2, 3)), "for 2 records"),
        ((np.array(["a", "x"]), np.array([0.7, 0.7])), "'x', which is no class"),
        ((np.array(["a", "b"]), np.ones((2, 2))), "both need one shape"),
        (np.array([[2.0, 0, 0, 0]] * 2), "probabilities are needed"),
        (np.array([[0.9, 0.9, 0, 0]] * 2), "probabilities are needed"),
    ):
        with pytest.raises(MiaError, match=said):
            spread(answer, 2, CLASSES)


def test_a_label_with_its_probability_is_audited_and_the_page_says_what_is_lost():
    def endpoint(x):
        p = PIPELINE.predict_proba(x)
        return PIPELINE.classes_[p.argmax(1)], p.max(1).round(2)

    found = audit.audit(endpoint, MEMBERS, OTHERS, outputs="top-k", minutes=5)
    assert_allclose(found.inputs.target.ask(OTHERS.x), PIPELINE.predict_proba(OTHERS.x), atol=6e-3)
    assert any(
        one.startswith("It answered with the 1 best of 2 classes") for one in found.text("shows")
    )
    with pytest.raises(MiaError, match="a network says more"):
        numbers = [
            data.from_arrays(np.random.default_rng(k).normal(size=(60, 3)), np.arange(60) % 2, "x")
            for k in (0, 1)
        ]
        audit.plan(torch.nn.Linear(3, 2).eval(), *numbers, outputs="top-k")


def test_log_probabilities_and_digits_of_an_endpoint_are_taken():
    of_logs = inputs.check_inputs(PIPELINE.predict_log_proba, MEMBERS, OTHERS, AuditOptions())
    expected = inputs.check_inputs(PIPELINE, MEMBERS, OTHERS, AuditOptions())
    assert_allclose(
        of_logs.target.scalars(MEMBERS)["loss"], expected.target.scalars(MEMBERS)["loss"], rtol=1e-6
    )
    # ten classes, most of which are rounded away
    many = (np.full((40, 10), 0.04) + 0.6 * np.eye(10)[np.arange(40) % 10]).round(1)
    assert many.sum(1).max() < 0.7 and count_digits(many) == 1
    assert count_digits(np.array([[0.9, 0.8, 0.0]])) == 0  # sigmoids


def test_a_model_whose_answers_depend_on_the_batch_is_asked_one_by_one():
    sizes = set()

    def int8(x):
        sizes.add(len(x))
        p = PIPELINE.predict_proba(x)
        scale = p.mean(0, keepdims=True) / 5 + 0.01
        p = np.round(p / scale) * scale + 1e-3
        return p / p.sum(1, keepdims=True)

    with pytest.raises(MiaError, match="--batch 1"):
        audit.plan(int8, MEMBERS, OTHERS, outputs="probabilities")
    sizes.clear()
    audit.plan(int8, MEMBERS, OTHERS, outputs="probabilities", batch=1)
    assert sizes == {1}


# ------------------------------------------------------------------------------------------------------------- the report


def test_a_report_says_what_an_attacker_needs_what_its_words_mean_and_what_helps_trees(report):
    page = " ".join(report.html().split())
    assert "To do this an attacker needs the whole record that is asked about" in page
    assert "trains models like this one" in page
    assert "fewer trees or iterations" in page and "augmentation of images" not in page
    assert "no law or standard has any" in page and "breaks no promise here" in page
    assert '<a href="#plan">the plan</a> says why' in page
    assert "audited by</dt><dd>Ms Chen" in page and 'id="words"' in page
    bibliography = (ROOT / "book" / "references.bib").read_text().replace("{B}", "B")
    for attack in report.result.attacks:
        title = re.search(
            rf"<strong>{re.escape(attack.name)}</strong></dt><dd>[^<]*<cite>(.*?)</cite>", page
        )[1]
        assert f"{{{title}}}" in bibliography
    source = reporting.TEMPLATE.read_text()
    assert all(f'"{name}": (' in source for name in IN_AUDITS)


def test_a_share_of_less_than_one_record_is_said_to_be_that(report):
    """Rates are means over thresholds that are drawn, of which most may find nobody."""
    assert reporting.share(0.0001, 200) == "< 0.5 %" and reporting.share(0.0, 200) == "0 %"
    assert reporting.share(0.005, 200) == "0.5 %"
    rate = statistics.Rate(0.01, Interval(0.0001, 0, 0.06), True)
    assert reporting.tpr(rate, 200) == "< 0.5 % [0 %, 6 %]"
    best = replace(report.result.best, rates=(rate,))
    said = replace(report, result=replace(report.result, best=best)).low_rates
    members = int(report.members[best.judged_on].sum())
    assert f"it finds less than {reporting.percent(1 / members)} of the members [0 %" in said


def test_a_leak_on_average_and_chance_for_single_records_are_joined_by_a_sentence(report):
    def low_rates(low: float, high: float = 0.06) -> str:
        rate = report.result.best.rates[0]
        rate = statistics.Rate(0.01, Interval(0.05, low, high), True)
        best = replace(report.result.best, rates=(rate,))
        return replace(report, result=replace(report.result, best=best)).low_rates

    assert "hardly any single member can be recognised" in low_rates(0.001)
    assert "it may be none, and it may be 300 of 1,000" in low_rates(0.001, 0.3)
    assert "of 1,000 members 50 are, and of 1,000 non-members 10 by mistake" in low_rates(0.02)
