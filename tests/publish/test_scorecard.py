"""A row is a claim, and says nothing but what runs found."""

import json
import re
from collections import Counter

import pytest

from mia_lib.evidence import claims
from mia_lib.publish import pages
from mia_lib.publish.parameters import find_root


def verdict(paper, claim, verdict="reproduced", **more):
    """What a notebook keeps of a claim."""
    return {"notebook": paper, "preset": "quick", "paper": paper, "claim": claim, "verdict": verdict, "data": "", "reason": "",
            **{part: claims.claims(paper)[claim][part] for part in ("text", "kind")},
            **dict.fromkeys(("brief", "estimate"), "1.000 [0.900, 1.100]"),
            "numbers": [{"part": "", "value": 1.0, "low": 0.9, "high": 1.1, "unit": ""}], **more}


def verdicts(paper="bayes"):
    return [verdict(paper, claim) for claim in claims.claims(paper)]


def row_of(page, paper, claim):
    return next(line for line in page.splitlines() if f'id="{paper}-{claim}"' in line)


def test_a_row_is_a_claim_and_papers_come_as_they_stand_in_the_book():
    rows = pages.scorecard_rows([*reversed(verdicts("iha")), *verdicts("bayes")])
    assert [row["claim"] for row in rows] == [*claims.claims("iha"), *claims.claims("bayes")]
    assert pages.scorecard_rows([{**verdicts()[0], "claim": "C99"}]) == [], "of an old run, and no claim any more"


def test_what_only_an_error_refutes_is_a_proof_whoever_states_it_and_however_it_came_out():
    kinds = {row["claim"]: row["kind"] for row in pages.scorecard_rows(verdicts())}
    assert [kinds[claim] for claim in ("C1", "C3r", "C7", "C7r")] == ["proof", "proof", "paper", "ours"]
    rows = pages.scorecard_rows([verdict("bayes", "C1", "contradicted"), verdict("bayes", "C7", claims.CHECKED)])
    assert [(row["kind"], row["verdict"]) for row in rows] == [("proof", "contradicted"), ("proof", claims.CHECKED)]


def test_the_three_counters_count_each_claim_once_and_a_row_has_the_paper_and_this_run():
    rows = pages.scorecard_rows(verdicts())
    page, counted = pages.scorecard(rows), Counter(row["kind"] for row in rows)
    assert counted.total() == len(claims.claims("bayes"))
    assert re.findall(r'"mia-kind">([^<]*)<', page) == list(pages.KINDS.values())
    assert [int(n) for n in re.findall(r'"mia-count">(\d+)<', page)] == [counted[kind] for kind in pages.KINDS]
    claim, printed, ours = row_of(page, "bayes", "C6").strip("| ").split(" | ")
    assert 'href="../notebooks/bayes.html#claim-C6"' in claim and "; Figure 1" in claim
    assert claims.claims("bayes")["C6"]["text"] in claim and printed == claims.claims("bayes")["C6"]["evidence"]
    assert "verdict-reproduced" in ours and "1.000 [0.900, 1.100]" in ours


@pytest.mark.parametrize("data, mark, words", [
    (claims.OWN_DATA, "own", "On the paper's own data: 1 not run."),
    (claims.STAND_IN, "stand-in", "On other data: 1 not run."), ("", "none", "About no data set: 1 not run.")])
def test_what_was_not_run_says_why_and_where_it_counts(data, mark, words):
    rows = pages.scorecard_rows([verdict("bayes", "C14", "not run", brief="", reason="no | ImageNet", data=data)])
    page = pages.scorecard(rows)
    row = row_of(page, "bayes", "C14")
    assert r"no \| ImageNet" in row and f'data-verdict="not run" data-data="{mark}"' in row and words in page


@pytest.mark.book
def test_the_page_offers_records_of_every_field_and_says_what_they_are(built_book):
    rows = json.loads((built_book.parents[1] / pages.SCORECARD).read_text())
    shown = (built_book / "book" / "scorecard.html").read_text()
    assert all(f'id="{row["paper"]}-{row["claim"]}"' in shown for row in rows)
    assert {row["preset"] for row in rows} == {"published"} and len(rows) > 90
    page = (find_root() / "book" / "scorecard.md").read_text()
    assert all(re.search(rf"\b{field}\b", page) for field in rows[0])
