"""Verdicts follow from intervals alone."""

import re

import numpy as np
import pytest

from mia_lib import metrics
from mia_lib.data import sets
from mia_lib.errors import MiaError
from mia_lib.evidence import claims, tables
from mia_lib.metrics import Interval

PAPERS = ["bayes", "calibration", "curvature", "iha", "quantile", "compare"]


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
        assert all(isinstance(claim[one], str) and claim[one] for one in needed) and claim["kind"] in claims.KINDS
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
def test_the_papers_own_data_are_known_data_sets_of_its_exhibits(paper):
    of_paper, exhibits = claims._file(paper)["data"], {claim["exhibit"] for claim in claims.claims(paper).values()}
    assert set(of_paper) <= exhibits and {name for names in of_paper.values() for name in names} <= set(sets.names())


def test_margins_are_read_from_the_claims_file():
    assert claims.margin("curvature", "A3", "same") == 0.005
    with pytest.raises(MiaError, match="Did you mean 'same'"):
        claims.margin("curvature", "A3", "sam")


@pytest.mark.parametrize("mean, spread, verdict", [
    (0.001, 0.001, "reproduced"), (0.0, 0.001, "no difference"), (0.0, 0.1, "inconclusive"), (-0.1, 0.001, "contradicted")])
def test_no_difference_needs_the_whole_interval_within_the_margin(mean, spread, verdict):
    assert claims.judge("bayes", "C7r", {"a": around(mean, spread), "b": around(max(mean, 0), spread)}).verdict == verdict
    assert claims.judge("bayes", "C7", around(0.0, 0.001)).verdict == "inconclusive"  # has no such margin


def test_an_interval_without_width_is_not_taken_for_no_difference():
    flat = metrics.t_interval([0.001, 0.001, 0.001])
    assert flat.degenerate and claims.judge("bayes", "C7r", {"a": flat, "b": around(0.0, 0.001)}).verdict == "inconclusive"


def test_a_claim_without_a_sentence_says_itself_with_its_verdict_and_numbers():
    record = {**claims.judge("iha", "C1", around(1)).record()}
    said = claims.sentence(record)
    assert record["text"] in said and record["brief"] in said and "So it is here" in said
    assert "because" in claims.sentence(claims.judge("iha", "C3", None, "because").record())


def test_verdicts_that_do_not_add_up_are_counted_apart(monkeypatch):
    monkeypatch.setattr(tables, "display_bundle", lambda bundle: shown.append(bundle))
    shown = []
    claims.show("bayes", [claims.judge_identity("bayes", "C1", 0.0, 0.0), *all_of_bayes()[1:]],
                {"Table 1": "cifar10", "Table 2": "fashion_mnist_20k"})
    records = {record["claim"]: record for record in shown[0][claims.MIME]}
    assert [records[claim]["data"] for claim in ("C7", "C11", "C6")] == [claims.OWN_DATA, claims.STAND_IN, ""]
    ours = [record for record in records.values() if record["kind"] == "ours"]
    on_own = [one for one in records.values() if one["exhibit"] == "Table 1" and one["kind"] == "paper"]
    said = claims.tally(records.values())
    assert f"own data: {len(on_own)} reproduced" in said and "On other data: 3 reproduced" in said
    assert f"additions: {len(ours)} reproduced" in said and "identities: 1 checked" in said
    with pytest.raises(MiaError, match="Table 9"):
        claims.show("bayes", all_of_bayes(), {"Table 9": "cifar10"})


def test_a_run_on_other_data_beside_the_papers_is_one_on_a_stand_in(monkeypatch):
    monkeypatch.setattr(tables, "display_bundle", lambda bundle: shown.append(bundle))
    for used, whose in ((["cifar10"], claims.OWN_DATA), (["cifar10", "mnist"], claims.STAND_IN), ([], claims.STAND_IN)):
        shown = []
        claims.show("bayes", all_of_bayes(), {"Table 1": used})
        assert {one["data"] for one in shown[0][claims.MIME] if one["exhibit"] == "Table 1"} == {whose}


@pytest.mark.parametrize("parts, verdict", [
    (around(1), "reproduced"), (around(0), "inconclusive"), (around(-1), "contradicted"),
    ({"a": around(1), "b": around(2)}, "reproduced"), ({"a": around(1), "b": around(0)}, "inconclusive"),
    ({"a": around(1), "b": around(-1)}, "contradicted")])
def test_verdict_by_parts(parts, verdict):
    judged = claims.judge("bayes", "C7", parts)
    assert judged.verdict == judged.said == verdict
    assert judged.text == claims.claims("bayes")["C7"]["text"]


def test_estimates_are_listed_by_part():
    judged = claims.judge("bayes", "C7", {"n = 400": around(1), "n = 1000": around(2)}, points=True)
    assert re.fullmatch(r"n = 400: 100\.0 \[\S+, \S+\] points; n = 1000: 200\.0 \[\S+, \S+\] points", judged.estimate)
    assert re.fullmatch(r"1\.000 \[\S+, \S+\]", claims.judge("bayes", "C6", around(1)).estimate)


def test_one_part_of_many_below_zero_contradicts_only_beyond_chance():
    barely = around(-0.08)
    assert barely.sign == -1
    assert claims.judge("bayes", "C7", barely).verdict == "contradicted"
    many = {"bad": barely, **{str(i): around(1) for i in range(19)}}
    assert claims.judge("bayes", "C7", many).verdict == "inconclusive"


def test_level_of_the_verdict_is_honest_under_no_effect():
    rng = np.random.default_rng(0)
    found = [claims.judge("bayes", "C7", {i: metrics.t_interval(rng.normal(size=6)) for i in "abcde"}).verdict
             for _ in range(300)]
    assert found.count("reproduced") == 0
    assert found.count("contradicted") / 300 < 0.06  # one side of 5 % over all parts


def test_bootstrap_intervals_are_widened_too():
    rng = np.random.default_rng(1)
    members = np.arange(300) < 150
    good, bad = rng.normal(size=300) + 2 * members, rng.normal(size=300)
    parts = {"a": metrics.compare("auc", good, bad, members), "b": metrics.compare("auc", bad, good, members)}
    assert claims.judge("bayes", "C6", parts).verdict == "contradicted"
    assert claims.judge("bayes", "C6", -parts["b"]).verdict == "reproduced"


def test_not_run_needs_a_reason():
    judged = claims.judge("bayes", "C14", None, "ImageNet is not here")
    assert (judged.verdict, judged.said, judged.estimate) == ("not run", "not run", "")
    for parts in (None, {"a": around(1), "b": None}, {}):
        with pytest.raises(MiaError, match="reason"):
            claims.judge("bayes", "C14", parts)
    assert claims.judge("bayes", "C7", {"a": None}, "later").said == "not run"


def test_partial_verdict_says_what_is_missing():
    judged = claims.judge("bayes", "C7", {"n = 400": around(1), "n = 4000": None, "n = 6000": None}, "too slow")
    assert judged.verdict == "reproduced"
    assert judged.said == "reproduced for n = 400; n = 4000, n = 6000 not run"
    many = claims.judge("bayes", "C7", {**dict.fromkeys("abcde", around(1)), "f": None}, "too slow")
    assert many.said == "reproduced for the 5 parts run; f not run"
    against = claims.judge("bayes", "C7", {"a": around(-1), "b": around(1), "f": None}, "too slow")
    assert against.said == "contradicted; f not run", "not of each part that was run"


def test_identity_is_held_to_rounding():
    assert claims.judge_identity("bayes", "C1", 3e-13, 1e-10).verdict == "checked"
    off = claims.judge_identity("bayes", "C1", 0.05, 1e-10)
    assert off.verdict == "contradicted" and "0.05, rounding allows 1e-10" in off.estimate
    assert claims.judge_identity("bayes", "C2", 3, 0, "cases that disagree").estimate == "cases that disagree: 3"
    for bad in (np.nan, -1e-3):
        with pytest.raises(MiaError, match="residual"):
            claims.judge_identity("bayes", "C1", bad, 1e-10)


def test_unknown_claims_are_refused():
    with pytest.raises(MiaError, match="C16"):
        claims.judge("bayes", "C99", around(1))
    with pytest.raises(MiaError, match="bayes"):
        claims.claims("byes")


def all_of_bayes():
    return [claims.judge("bayes", claim, around(1) if claim != "C14" else None, "no ImageNet")
            for claim in claims.claims("bayes")]


def test_show_hands_every_verdict_to_the_scorecard(monkeypatch):
    seen = []
    monkeypatch.setattr(tables, "display_bundle", lambda bundle: seen.append(bundle))
    claims.show("bayes", reversed(all_of_bayes()))
    records = seen[0][claims.MIME]
    assert [record["claim"] for record in records] == list(claims.claims("bayes"))
    assert ":name: tab-bayes-claims" in seen[0]["text/markdown"]
    assert seen[0]["text/markdown"].count("\n| **") == len(records)
    assert "Every part of every claim" in seen[1]["text/markdown"]


def test_the_table_says_whose_a_claim_is_and_what_was_not_run(monkeypatch):
    seen = []
    monkeypatch.setattr(tables, "display_bundle", lambda bundle: seen.append(bundle["text/markdown"]))
    parts = {"a": around(3), "b": around(0), "c": around(2)}
    claims.show("bayes", [claims.judge("bayes", "C7", parts) if one.claim == "C7" else one for one in all_of_bayes()])
    rows = {row.split("**")[1].rstrip("."): row for row in seen[0].splitlines() if row.startswith("| **")}
    assert "**not run** (no ImageNet)" in rows["C14"]
    ours = {claim for claim, one in claims.claims("bayes").items() if one["kind"] == "ours"}
    assert ours and {claim for claim, row in rows.items() if "(ours) " in row} == ours


def test_show_refuses_a_claim_left_out_or_given_twice():
    verdicts = all_of_bayes()
    with pytest.raises(MiaError, match="missing A4"):
        claims.show("bayes", verdicts[:-1])
    with pytest.raises(MiaError, match=f"of {len(verdicts) + 1} given"):
        claims.show("bayes", [*verdicts, verdicts[0]])


def test_of_many_parts_the_least_is_shown():
    judged = claims.judge("bayes", "C7", {"a": around(3), "b": around(1), "c": around(2), "d": None}, "too slow")
    assert judged.brief.startswith("decided by b (of 3): 1.000")
    wide = Interval(-0.1, -0.6, 0.4, 0.95, "4 targets", se=0.15, dof=3)
    narrow = Interval(-0.3, -0.35, -0.25, 0.95, "4 targets", se=0.015, dof=3)
    against = claims.judge("bayes", "C7", {"wide": wide, "narrow": narrow, "above": around(1)})
    assert against.verdict == "contradicted" and "narrow" in against.brief  # not the one that covers zero
    assert claims.judge("bayes", "C7", {"a": around(3), "b": around(1)}).brief.count(":") == 2
    open_ = claims.judge("bayes", "C7", {"a": around(1), "b": around(9).without("2 games: too few"), "c": around(2)})
    assert open_.verdict == "inconclusive" and "by b" in open_.brief  # which has no interval, and so leaves it open


def test_counts_of_nothing():
    assert claims.counts([]) == "no claim judged"
