"""Verdicts follow from intervals alone."""

import re

import numpy as np
import pytest

from mia_lib import metrics
from mia_lib.data import sets
from mia_lib.errors import MiaError
from mia_lib.evidence import claims, tables
from mia_lib.metrics import Interval

PAPERS = ["bayes", "calibration", "curvature", "iha", "quantile", "compare", "audit"]


def around(mean, spread=0.1, count=9):
    """A Student interval of about +- 0.77 spread around `mean`."""
    return metrics.t_interval(mean + spread * np.linspace(-1.5, 1.5, count))


def test_every_claim_says_what_is_claimed_where_and_how_it_is_judged():
    found = claims.claims("bayes")
    ours = {claim for claim in found if found[claim]["kind"] == "ours"}  # variants that the paper does not print
    assert list(dict.fromkeys(claim.rstrip("ms") for claim in found if claim not in ours)) == [f"C{i}" for i in range(1, 17)]
    assert all("our addition" in found[claim]["text"] for claim in ours)


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_files_have_one_form(paper):
    needed = {"id", "paper", "text", "exhibit", "evidence", "rule", "kind"}
    more = {"margins", "where", "over", "combine", "about", "unit", "rounding", "number", "needs", "otherwise"}
    for claim in claims.claims(paper).values():
        assert needed <= set(claim) <= needed | more
        assert all(isinstance(claim[one], str) and claim[one] for one in needed) and claim["kind"] in ("paper", "ours")
        assert all(isinstance(margin, int | float) and margin > 0 for margin in claim.get("margins", {}).values())
        assert not re.search(r"\{\w+\}", claim["rule"]), "a margin that the rule names is not there"
    for claim in claims._file(paper)["claims"]:
        assert set(re.findall(r"\{(\w+)\}", claim["rule"])) | {"same"} == set(claim.get("margins", {})) | {"same"}, claim["id"]


@pytest.mark.parametrize("paper", PAPERS)
def test_additions_of_this_book_say_so(paper):
    for claim in claims.claims(paper).values():
        assert (claim["kind"] == "ours") == bool(re.search(r"\(our (addition|reading)\b", claim["text"])), claim["id"]
        assert claim["kind"] == "ours" or not claim["id"].startswith("A"), claim["id"]


@pytest.mark.parametrize("paper", PAPERS)
def test_regimes_are_of_exhibits_on_known_data_sets(paper):
    regimes, exhibits = claims._file(paper).get("regimes", {}), {one["exhibit"] for one in claims.claims(paper).values()}
    assert set(regimes) <= exhibits and {regime["dataset"] for regime in regimes.values()} <= set(sets.names())


@pytest.mark.parametrize("mean, spread, verdict", [
    (1.0, 0.1, "reproduced"), (0.0, 0.1, "inconclusive"), (-1.0, 0.1, "contradicted"), (0.0, 0.001, "no difference"),
    (0.002, 0.001, "no difference"), (-0.002, 0.001, "no difference"), (0.02, 0.001, "reproduced")])
def test_a_verdict_follows_from_one_interval(mean, spread, verdict):
    judged = claims.judge("bayes", "C7r", around(mean, spread))
    assert judged.verdict == verdict and judged.text == claims.claims("bayes")["C7r"]["text"]


def test_no_difference_needs_a_margin_and_an_interval_with_a_width():
    assert claims.judge("bayes", "C7", around(0.0, 0.001)).verdict == "inconclusive"  # has no such margin
    flat = metrics.t_interval([0.001, 0.001, 0.001])
    assert flat.degenerate and claims.judge("bayes", "C7r", flat).verdict == "inconclusive"


def test_under_no_effect_a_verdict_is_wrong_as_often_as_its_level_says():
    rng = np.random.default_rng(0)
    verdicts = [claims.judge("bayes", "C7", metrics.t_interval(rng.normal(size=8))).verdict for _ in range(400)]
    assert verdicts.count("reproduced") / 400 < 0.05 and verdicts.count("contradicted") / 400 < 0.05


def test_an_identity_is_held_to_its_rounding():
    off = Interval(0.05, 0.05, 0.05, exact=True)
    judged = claims.judge("bayes", "C1", off)
    assert judged.verdict == "contradicted" and ": 0.05, rounding allows 1e-" in judged.estimate
    assert claims.judge("bayes", "C1", Interval(3e-13, 3e-13, 3e-13, exact=True)).verdict == "checked"


def test_numbers_are_text_for_the_reader_and_data_for_programs():
    judged = claims.judge("bayes", "C7", around(1.5), cases={"n = 400": around(4), "n = 1000": around(-1)})
    assert re.fullmatch(r"150\.0 \[\S+, \S+\] points; n = 400: 400\.0 \[\S+, \S+\] points; n = 1000: -100.*", judged.estimate)
    assert judged.brief == judged.estimate.split(";")[0] + "; above zero in 1 of 2 cases"
    assert [(one["part"], one["unit"]) for one in judged.numbers] == [
        ("", "points"), ("n = 400", "points"), ("n = 1000", "points")]
    assert [one["value"] for one in judged.numbers] == pytest.approx([150, 400, -100])
    assert re.fullmatch(r"1\.000 \[\S+, \S+\]", claims.judge("bayes", "C6", around(1)).brief)
    bare = claims.judge("bayes", "C6", around(1).without("2 games: too few"))
    assert bare.numbers == [{"part": "", "value": pytest.approx(1.0), "low": None, "high": None, "unit": ""}]


def test_not_run_needs_a_reason():
    judged = claims.judge("bayes", "C14", None, "ImageNet is not here")
    assert (judged.verdict, judged.estimate, judged.brief, judged.numbers) == ("not run", "", "", [])
    with pytest.raises(MiaError, match="reason"):
        claims.judge("bayes", "C14", None)


def test_unknown_claims_are_refused():
    with pytest.raises(MiaError, match="C16"):
        claims.judge("bayes", "C99", around(1))
    with pytest.raises(MiaError, match="bayes"):
        claims.claims("byes")


def test_a_sentence_says_the_claim_with_its_verdict_and_number():
    record = claims.judge("iha", "C3", around(1)).record()
    said = claims.sentence(record)
    assert record["text"] in said and record["brief"] in said and "So it is here" in said
    assert "because" in claims.sentence(claims.judge("iha", "C3", None, "because").record())


def all_of_bayes(**data):
    """A verdict on each claim: identities hold, C14 is not run, all else is reproduced; exhibit -> on whose data."""
    known, judged = claims.claims("bayes"), []
    for claim, one in known.items():
        number = None if claim == "C14" else around(0 if "rounding" in one else 1)
        judged.append(claims.judge("bayes", claim, number, "" if number else "no ImageNet", data=data.get(one["exhibit"], "")))
    return judged


def shown(monkeypatch, verdicts):
    bundles = []
    monkeypatch.setattr(tables, "display_bundle", bundles.append)
    claims.show("bayes", verdicts)
    return bundles


def test_show_hands_every_verdict_to_the_scorecard(monkeypatch):
    table, details = shown(monkeypatch, reversed(all_of_bayes()))
    assert [record["claim"] for record in table[claims.MIME]] == list(claims.claims("bayes"))
    assert ":name: tab-bayes-claims" in table["text/markdown"]
    assert table["text/markdown"].count("\n| **") == len(table[claims.MIME])
    assert "Every case of every claim" in details["text/markdown"]


def test_the_table_says_whose_a_claim_is_and_what_was_not_run(monkeypatch):
    text = shown(monkeypatch, all_of_bayes())[0]["text/markdown"]
    rows = {row.split("**")[1].rstrip("."): row for row in text.splitlines() if row.startswith("| **")}
    assert "**not run** (no ImageNet)" in rows["C14"]
    ours = {claim for claim, one in claims.claims("bayes").items() if one["kind"] == "ours"}
    assert ours and {claim for claim, row in rows.items() if "(ours) " in row} == ours


def test_show_refuses_a_claim_left_out_or_given_twice():
    verdicts = all_of_bayes()
    with pytest.raises(MiaError, match="missing A4"):
        claims.show("bayes", verdicts[:-1])
    with pytest.raises(MiaError, match=f"of {len(verdicts) + 1} given"):
        claims.show("bayes", [*verdicts, verdicts[0]])


def test_verdicts_that_do_not_add_up_are_counted_apart():
    records = [verdict.record() for verdict in all_of_bayes(**{"Table 1": claims.OWN_DATA, "Table 2": claims.STAND_IN})]
    theirs = [one for one in records if one["kind"] == "paper" and one["verdict"] == "reproduced"]
    on = {exhibit: sum(one["exhibit"] == exhibit for one in theirs) for exhibit in ("Table 1", "Table 2")}
    ours = sum(one["kind"] == "ours" and one["verdict"] == "reproduced" for one in records)
    checked = sum(one["verdict"] == "checked" for one in records)
    text = claims.tally(records)
    assert f"own data: {on['Table 1']} reproduced" in text and f"On other data: {on['Table 2']} reproduced" in text
    assert f"additions: {ours} reproduced" in text and f"identities: {checked} checked" in text
    assert "about no data set: " in text.lower() and "1 not run" in text
