"""A row is a claim, and says nothing but what runs found."""

import json
import re

import pytest
from typer.testing import CliRunner

from mia_lib.evidence import claims
from mia_lib.publish import outputs, scorecard
from mia_lib.publish.cli import app


def verdict(paper, claim, verdict="reproduced", **more):
    """What a notebook keeps of a claim."""
    known = claims.claims(paper)[claim]
    number = {"part": "", "value": 1.0, "low": 0.9, "high": 1.1, "unit": ""}
    return {"notebook": paper, "preset": "quick", "paper": paper, "claim": claim, "text": known["text"], "kind": known["kind"],
            "verdict": verdict, "brief": "1.000 [0.900, 1.100]", "estimate": "1.000 [0.900, 1.100]", "data": "", "reason": "",
            "numbers": [number], **more}


def verdicts(paper="bayes", of_all="reproduced"):
    return [verdict(paper, claim, of_all) for claim in claims.claims(paper)]


def row_of(page, paper, claim):
    return next(line for line in page.splitlines() if f'id="{paper}-{claim}"' in line)


def test_a_row_is_a_claim_and_papers_come_as_they_stand_in_the_book():
    rows = scorecard.rows([*reversed(verdicts("iha")), *verdicts("bayes")])
    assert [row["claim"] for row in rows] == [*claims.claims("iha"), *claims.claims("bayes")]
    assert scorecard.rows([]) == []
    assert scorecard.rows([{**verdicts()[0], "claim": "C99"}]) == [], "of an old run, and no claim any more"


def test_what_only_an_error_refutes_is_a_proof_whoever_states_it_and_however_it_came_out():
    kinds = {row["claim"]: row["kind"] for row in scorecard.rows(verdicts())}
    assert kinds["C1"] == kinds["C3r"] == "proof" and kinds["C7"] == "paper" and kinds["C7r"] == "ours"
    rows = scorecard.rows([verdict("bayes", "C1", "contradicted"), verdict("bayes", "C7", claims.CHECKED)])
    assert scorecard.totals(rows)["proof"] == {"contradicted": 1, claims.CHECKED: 1}


def test_the_three_counters_count_each_claim_once():
    rows = scorecard.rows(verdicts())
    counted = scorecard.totals(rows)
    assert sum(count.total() for count in counted.values()) == len(claims.claims("bayes"))
    page = scorecard.page(rows)
    assert re.findall(r'"mia-kind">([^<]*)<', page) == list(scorecard.KINDS.values())
    assert [int(n) for n in re.findall(r'"mia-count">(\d+)<', page)] == [count.total() for count in counted.values()]


def test_a_row_has_the_paper_and_this_run():
    row = row_of(scorecard.page(scorecard.rows(verdicts())), "bayes", "C6")
    claim, printed, ours = row.strip("| ").split(" | ")
    assert 'href="../notebooks/bayes.html#claim-C6"' in claim and "; Figure 1" in claim
    assert claims.claims("bayes")["C6"]["text"] in claim and printed == claims.claims("bayes")["C6"]["evidence"]
    assert "verdict-reproduced" in ours and "1.000 [0.900, 1.100]" in ours


@pytest.mark.parametrize("data, mark, words", [
    (claims.OWN_DATA, "own", "On the paper's own data: 1 not run."),
    (claims.STAND_IN, "stand-in", "On other data: 1 not run."), ("", "none", "About no data set: 1 not run.")])
def test_what_was_not_run_says_why_and_where_it_counts(data, mark, words):
    page = scorecard.page(scorecard.rows([verdict("bayes", "C14", "not run", brief="", reason="no | ImageNet", data=data)]))
    row = row_of(page, "bayes", "C14")
    assert r"no \| ImageNet" in row and f'data-verdict="not run" data-data="{mark}"' in row and words in page


def mia(*words):
    return CliRunner().invoke(app, ["scorecard", *map(str, words)])


def leave(folder, name, date, of_all="reproduced"):
    """An executed notebook with all verdicts of its paper."""
    output = {"output_type": "display_data", "data": {outputs.CLAIMS: verdicts(name, of_all)}}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.ipynb").write_text(json.dumps({
        "metadata": {"mia": {"notebook": name, "preset": "smoke", "date": date}},
        "cells": [{"cell_type": "code", "metadata": {}, "source": "", "outputs": [output]}]}))


def test_without_a_book_the_command_to_run_is_named(tiny):
    done = mia()
    assert done.exit_code == 2 and "Run `mia build` or `make book` first" in done.stderr and done.stderr.count("\n") == 1
    done = mia(tiny)
    assert done.exit_code == 2 and "no executed notebook with verdicts" in done.stderr


def test_the_latest_run_of_each_chapter_in_a_folder_is_printed(tmp_path):
    leave(tmp_path / "bayes-new", "bayes", "2026-02-01", "contradicted")
    leave(tmp_path / "bayes-old", "bayes", "2026-01-01")
    leave(tmp_path / "iha-one", "iha", "2025-01-01")
    (tmp_path / "other.ipynb").write_text('{"metadata": {}, "cells": []}')
    rows = json.loads(mia(tmp_path, "--json").stdout)
    assert [row["claim"] for row in rows] == [*claims.claims("bayes"), *claims.claims("iha")]
    assert {(row["paper"], row["verdict"]) for row in rows} == {("bayes", "contradicted"), ("iha", "reproduced")}
    assert json.loads(mia(tmp_path / "iha-one" / "iha.ipynb", "--json").stdout) == [
        row for row in rows if row["paper"] == "iha"]


def test_the_table_has_every_claim_and_the_three_counters(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    leave(tmp_path, "bayes", "2026-01-01")
    said = mia(tmp_path).stdout
    assert all(re.search(rf"bayes {claim}\b", said) for claim in claims.claims("bayes"))
    assert all(title in said for title in scorecard.KINDS.values()) and "reproduced: 1.000" in said


def test_help_names_every_field_of_the_records(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    said = mia("--help").output
    assert all(re.search(rf"\b{field}\b", said) for field in scorecard.rows(verdicts())[0])


def test_the_built_book_is_read_by_default(built_book, tmp_path, monkeypatch):
    monkeypatch.setattr(scorecard, "find_root", lambda root=None: tmp_path)
    (tmp_path / "_build").symlink_to(built_book.parents[2])
    rows = json.loads(mia("--json").stdout)
    shown = (built_book / "book" / "scorecard.html").read_text()
    assert all(f'id="{row["paper"]}-{row["claim"]}"' in shown for row in rows)
    assert {row["preset"] for row in rows} == {"published"} and len(rows) > 90
