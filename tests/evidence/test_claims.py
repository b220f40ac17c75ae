"""Verdicts follow from intervals alone."""

import re

import numpy as np
import pytest

from mia_lib import metrics
from mia_lib.errors import MiaError
from mia_lib.evidence import claims, tables


def around(mean, spread=0.1, count=9):
    """A Student interval of about +- 0.77 spread around `mean`."""
    return metrics.t_interval(mean + spread * np.linspace(-1.5, 1.5, count))


def test_every_claim_says_what_is_claimed_where_and_how_it_is_judged():
    found = claims.claims("bayes")
    ours = {claim for claim in found if not claim[1:].isdigit()}  # variants that the paper does not print
    assert [claim for claim in found if claim not in ours] == [f"C{i}" for i in range(1, 17)]
    assert all("our addition" in found[claim]["text"] and claim[:-1] in found for claim in ours)
    for claim in found.values():
        assert set(claim) == {"id", "text", "exhibit", "evidence", "rule"}
        assert all(isinstance(text, str) and text for text in claim.values())


@pytest.mark.parametrize("ratios, verdict", [
    ({"a": 1.51}, "reproduced"), ({"a": 1.49}, "inconclusive"), ({"a": 0.67}, "inconclusive"), ({"a": 0.66}, "contradicted"),
    ({"a": 9.0, "b": 1.6}, "reproduced"), ({"a": 9.0, "b": 1.0}, "inconclusive"), ({"a": 9.0, "b": 0.1}, "contradicted")])
def test_work_is_judged_beyond_a_margin(ratios, verdict):
    assert claims.claims("iha")["C12"]["margin"] == claims.claims("quantile")["C10"]["margin"] == 1.5
    judged = claims.judge_work("iha", "C12", ratios)
    assert judged.verdict == judged.said == verdict and judged.record()["verdict"] == verdict
    assert judged.estimate == "; ".join(f"{name}: {ratio:.2g} times" for name, ratio in ratios.items())


def test_work_that_was_not_counted_is_named():
    judged = claims.judge_work("quantile", "C10", {"a": 3.0, "b": None, "c": 2.0, "d": 4.0}, "no backbone")
    assert judged.said == "reproduced for a, c, d; b not run" and judged.reason == "no backbone"
    assert judged.brief == "least of 3: c: 2 times"
    nothing = claims.judge_work("quantile", "C10", {}, "not counted")
    assert nothing.verdict == "not run" and nothing.reason == "not counted"


@pytest.mark.parametrize("given, words", [
    (("iha", "C11", {"a": 2.0}), "no margin"), (("iha", "C12", {"a": 0.0}), "above zero"),
    (("iha", "C12", {"a": float("nan")}), "above zero"), (("iha", "C12", {"a": None}), "Say why"),
    (("iha", "C12", {}), "Say why"), (("iha", "C99", {"a": 2.0}), "C99")])
def test_work_that_cannot_be_judged_is_refused(given, words):
    with pytest.raises(MiaError, match=words):
        claims.judge_work(*given)


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
    assert "reproduced for n = 400" in claims.scorecard([judged.record()])
    many = claims.judge("bayes", "C7", {**dict.fromkeys("abcde", around(1)), "f": None}, "too slow")
    assert many.said == "reproduced for the 5 parts run; f not run"


def test_identity_is_held_to_rounding():
    assert claims.judge_identity("bayes", "C1", 3e-13, 1e-10).verdict == "reproduced"
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
    assert seen[0]["text/markdown"].count("\n| **C") == len(records)
    assert "Every part of every claim" in seen[1]["text/markdown"]

    page = claims.scorecard(reversed(records))
    assert page.index("**C2**") < page.index("**C10**") and ":name: tab-scorecard-bayes" in page
    assert f"{len(records) - 1} reproduced, 1 not run." in page and "White-box vs Black-box" in page


def test_show_refuses_a_claim_left_out_or_given_twice():
    verdicts = all_of_bayes()
    with pytest.raises(MiaError, match="missing C16"):
        claims.show("bayes", verdicts[:-1])
    with pytest.raises(MiaError, match=f"of {len(verdicts) + 1} given"):
        claims.show("bayes", [*verdicts, verdicts[0]])


def test_of_many_parts_the_least_is_shown():
    judged = claims.judge("bayes", "C7", {"a": around(3), "b": around(1), "c": around(2), "d": None}, "too slow")
    assert judged.brief.startswith("least of 3: b: 1.000")
    assert claims.judge("bayes", "C7", {"a": around(3), "b": around(1)}).brief.count(":") == 2


def test_empty_scorecard():
    assert claims.scorecard([]) == "" and claims.counts([]) == "no claim judged"
