"""Verdicts follow from intervals alone."""

import re

import numpy as np
import pytest

from mia_book import folders
from mia_book.evidence import claims, results
from mia_lib import metrics
from mia_lib.data import sets
from mia_lib.errors import MiaError
from mia_lib.metrics import Interval

PAPERS = sorted(folders.find("claims.yaml"))


def around(mean, spread=0.1, count=9):
    """A Student interval of about +- 0.77 spread around `mean`."""
    return metrics.t_interval(mean + spread * np.linspace(-1.5, 1.5, count))


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_files_name_their_data_and_what_is_ours(paper):
    for claim in claims.claims(paper).values():
        assert not re.search(r"\{\w+\}", claim["rule"]), "a margin that the rule names is not there"
        assert (claim["kind"] == "ours") == bool(
            re.search(r"\(our (addition|reading)\b", claim["text"])
        ), claim["id"]
        assert claim["kind"] == "ours" or not claim["id"].startswith("A"), claim["id"]
    regimes = claims._file(paper).get("regimes", {})
    exhibits = {one["exhibit"] for one in claims.claims(paper).values()}
    assert set(regimes) <= exhibits
    assert {regime["dataset"] for regime in regimes.values()} <= set(sets.names())


@pytest.mark.parametrize(
    "claim, number, verdict",
    [
        ("C7r", around(1.0), "reproduced"),
        ("C7r", around(0.0), "inconclusive"),
        ("C7r", around(-1.0), "contradicted"),
        *(("C7r", around(mean, 0.001), "no difference") for mean in (0.0, 0.002, -0.002)),
        ("C7r", around(0.02, 0.001), "reproduced"),
        ("C7", around(0.0, 0.001), "inconclusive"),  # has no such margin
        ("C7r", metrics.t_interval([0.001] * 3), "inconclusive"),  # has no width
        ("C1", Interval(0.05, 0.05, 0.05, exact=True), "contradicted"),
        ("C1", Interval(3e-13, 3e-13, 3e-13, exact=True), "checked"),
    ],
)
def test_a_verdict_follows_from_one_interval(claim, number, verdict):
    judged = claims.judge("bayes", claim, number)
    assert judged.verdict == verdict and judged.text == claims.claims("bayes")[claim]["text"]
    assert claim != "C1" or ", rounding allows 1e-" in judged.estimate


def test_numbers_are_text_for_the_reader_and_data_for_programs():
    judged = claims.judge(
        "bayes", "C7", around(1.5), cases={"n = 400": around(4), "n = 1000": around(-1)}
    )
    assert re.fullmatch(
        r"150\.0 \[\S+, \S+\] points; n = 400: 400\.0 \[\S+, \S+\] points; n = 1000: -100.*",
        judged.estimate,
    )
    assert (
        judged.brief
        == judged.estimate.split(";")[0] + "; wholly above zero in 1 of 2 cases, wholly below in 1"
    )
    assert [(one["part"], one["unit"]) for one in judged.numbers] == [
        ("", "points"),
        ("n = 400", "points"),
        ("n = 1000", "points"),
    ]
    assert [one["value"] for one in judged.numbers] == pytest.approx([150, 400, -100])
    assert re.fullmatch(r"1\.000 \[\S+, \S+\]", claims.judge("bayes", "C6", around(1)).brief)
    bare = claims.judge("bayes", "C6", around(1).without("2 games: too few"))
    assert bare.numbers == [
        {"part": "", "value": pytest.approx(1.0), "low": None, "high": None, "unit": ""}
    ]


def test_a_sentence_says_the_claim_with_its_verdict_and_number_or_the_reason():
    record = claims.judge("iha", "C3", around(1)).record()
    said = claims.sentence(record)
    assert record["text"] in said and record["brief"] in said and "So it is here" in said
    judged = claims.judge("iha", "C3", None, "because")
    assert (judged.verdict, judged.estimate, judged.brief, judged.numbers) == (
        "not run",
        "",
        "",
        [],
    )
    assert "because" in claims.sentence(judged.record())


def all_of_bayes(**data):
    """A verdict on each claim: identities hold, C14 is not run, all else is reproduced; exhibit -> on whose data."""
    judged = []
    for claim, one in claims.claims("bayes").items():
        number = None if claim == "C14" else around(0 if "rounding" in one else 1)
        judged.append(
            claims.judge(
                "bayes",
                claim,
                number,
                "" if number else "no ImageNet",
                data=data.get(one["exhibit"], ""),
            )
        )
    return judged


def test_show_hands_every_verdict_to_the_scorecard_and_says_whose_it_is_and_what_was_not_run(
    monkeypatch,
):
    bundles = []
    monkeypatch.setattr(results, "display_bundle", bundles.append)
    claims.show("bayes", reversed(all_of_bayes()))
    (table, details), text = bundles, bundles[0]["text/markdown"]
    assert [record["claim"] for record in table[claims.MIME]] == list(claims.claims("bayes"))
    assert ":name: tab-bayes-claims" in text
    assert "Every case of every claim" in details["text/markdown"]
    rows = {
        row.split("**")[1].rstrip("."): row for row in text.splitlines() if row.startswith("| **")
    }
    assert len(rows) == len(table[claims.MIME]) and "**not run** (no ImageNet)" in rows["C14"]
    ours = {claim for claim, one in claims.claims("bayes").items() if one["kind"] == "ours"}
    assert ours and {claim for claim, row in rows.items() if "(ours) " in row} == ours


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: claims.show("bayes", all_of_bayes()[:-1]), "missing A5"),
        (lambda: claims.show("bayes", [*all_of_bayes(), all_of_bayes()[0]]), "of 25 given"),
        (lambda: claims.judge("bayes", "C14", None), "reason"),
        (lambda: claims.judge("bayes", "C99", around(1)), "C16"),
        (lambda: claims.claims("byes"), "bayes"),
    ],
)
def test_unknown_claims_and_those_left_out_or_given_twice_are_refused(call, words):
    with pytest.raises(MiaError, match=words):
        call()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "title: A",
        "title: A\nclaims: [",
        "title: A\nclaims:\n",
        "title: A\nclaims: [C1]",
        "title: A\nclaims:\n- {id: C1, text: a}",
        "title: A\nclaims:\n- {id: C1, text: a, exhibit: b, evidence: c, rule: d, combined: least}",
        "title: A\nclaims:\n- {id: C1, text: a, exhibit: b, evidence: c, rule: '{margin}'}",
        "title: A\nclaims:\n" + "- {id: C1, text: a, exhibit: b, evidence: c, rule: d}\n" * 2,
    ],
)
def test_a_file_of_claims_that_is_damaged_is_refused_by_name(text, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "CHAPTERS", tmp_path)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "claims.yaml").write_text(text)
    with pytest.raises(MiaError, match="cut/claims.yaml.* Bring it back"):
        claims.claims("cut")


def test_verdicts_that_do_not_add_up_are_counted_apart():
    records = [
        verdict.record()
        for verdict in all_of_bayes(**{"Table 1": claims.OWN_DATA, "Table 2": claims.STAND_IN})
    ]
    theirs = [one for one in records if one["kind"] == "paper" and one["verdict"] == "reproduced"]
    on = {
        exhibit: sum(one["exhibit"] == exhibit for one in theirs)
        for exhibit in ("Table 1", "Table 2")
    }
    ours = sum(one["kind"] == "ours" and one["verdict"] == "reproduced" for one in records)
    checked = sum(one["verdict"] == "checked" for one in records)
    text = claims.tally(records)
    assert f"own data: {on['Table 1']} reproduced" in text
    assert f"On other data: {on['Table 2']} reproduced" in text
    assert f"additions: {ours} reproduced" in text
    assert f"identities: 1 contradicted, {checked} checked" in text
    assert "about no data set: " in text.lower() and "1 not run" in text


NO_NUMBERS = {  # claims of which the paper prints none, so that nothing says how large a margin may be
    "curvature": {"C1", "C2"},
    "quantile": {"C8", "C9", "C9d"},
}


@pytest.mark.parametrize("paper", PAPERS)
def test_a_margin_of_no_difference_is_at_most_a_quarter_of_what_the_paper_prints(paper):
    for name, claim in claims.claims(paper).items():
        same = claim.get("margins", {}).get("same", 0)
        if same and claim["kind"] == "paper" and name not in NO_NUMBERS.get(paper, ()):
            assert same <= claim["printed"] / 4 + 1e-12, name
