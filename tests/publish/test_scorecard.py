"""A row is a claim, and says nothing but what runs found."""

import json
import re

import numpy as np
from typer.testing import CliRunner

from mia_lib import metrics
from mia_lib.evidence import claims
from mia_lib.publish import outputs, scorecard
from mia_lib.publish.cli import app


def around(mean, spread=0.1):
    return metrics.t_interval(mean + spread * np.linspace(-1.5, 1.5, 9))


def found(paper="bayes", mean=1.0, **more):
    """Records of all claims of a paper, as the notebook of that paper hands them over."""
    whose = {"notebook": paper, "preset": "quick", **more}
    return [{**whose, **judged(paper, claim, mean).record()} for claim in claims.claims(paper)]


def judged(paper, claim, mean=1.0):
    """A verdict by an interval around the mean; an identity holds where that is above zero."""
    known = claims.claims(paper)[claim]
    return claims.judge(paper, claim, around(float(mean < 0), 0.0) if "rounding" in known else around(mean))


def row_of(page, paper, claim):
    return next(line for line in page.splitlines() if f'id="{paper}-{claim}"' in line)


def test_a_row_is_a_claim_and_papers_come_as_they_stand_in_the_book():
    rows = scorecard.rows([*reversed(found("iha")), *found("bayes")])
    assert [row.claim for row in rows] == [*claims.claims("iha"), *claims.claims("bayes")]
    assert scorecard.rows([]) == [] and scorecard.page([]) == ""
    assert scorecard.rows([{**found()[0], "claim": "C99"}]) == [], "of an old record, and no claim any more"


def test_what_only_an_error_refutes_is_a_proof_whoever_states_it_and_however_it_came_out():
    kinds = {row.claim: row.kind for row in scorecard.rows(found())}
    assert kinds["C1"] == kinds["C3r"] == "proof" and kinds["C7"] == "paper" and kinds["C7r"] == "ours"
    refuted = judged("bayes", "C1", -1.0).record()
    row, = scorecard.rows([{"notebook": "bayes", "preset": "quick", **refuted}])
    assert row.kind == "proof" and scorecard.totals([row])["proof"] == {"contradicted": 1}


def test_the_three_counters_count_each_claim_once():
    records = found()
    counted = scorecard.totals(scorecard.rows(records))
    assert sum(one.total() for one in counted.values()) == len(claims.claims("bayes"))
    assert set(counted) == set(scorecard.KINDS)
    assert {verdict for one in counted.values() for verdict in one} == {"reproduced", "checked"}
    page = scorecard.page(scorecard.rows(records))
    assert re.findall(r'"mia-kind">([^<]*)<', page) == list(scorecard.KINDS.values())
    assert [int(n) for n in re.findall(r'"mia-count">(\d+)<', page)] == [one.total() for one in counted.values()]


def test_a_row_has_the_paper_and_this_run():
    row = row_of(scorecard.page(scorecard.rows(found())), "bayes", "C6")
    claim, printed, ours = row.strip("| ").split(" | ")
    assert 'href="../notebooks/bayes.html#claim-C6"' in claim and "exhibits.html#bayes-figure-1" in claim
    assert claims.claims("bayes")["C6"]["text"] in claim and printed == claims.claims("bayes")["C6"]["evidence"]
    assert "verdict-reproduced" in ours and re.search(r"1\.000 \[0\.\d+, 1\.\d+\]", ours)


def test_what_was_not_run_says_why():
    left = claims.judge("bayes", "C14", None, "no ImageNet").record()
    row = row_of(scorecard.page(scorecard.rows([{"notebook": "bayes", **left}])), "bayes", "C14")
    assert "no ImageNet" in row and 'data-verdict="not run"' in row


def test_numbers_for_programs_are_those_of_the_verdict():
    verdict = claims.judge("bayes", "C7", around(0.02), cases={"n = 400": around(0.1), "n: 2; m": around(-0.5)}).record()
    row, = scorecard.rows([{"notebook": "bayes", **json.loads(json.dumps(verdict))}])
    assert scorecard.records([row])[0]["numbers"] == verdict["numbers"]


def test_records_hold_all_that_a_row_shows():
    rows = scorecard.rows(found())
    records = json.loads(json.dumps(scorecard.records(rows)))
    assert len(records) == len(rows) and scorecard.of_records(records) == rows
    assert set(records[0]) == {
        "paper", "title", "chapter", "claim", "kind", "text", "exhibit", "printed", "rule", "preset", "verdict",
        "brief", "estimate", "data", "reason", "numbers"}


def mia(*words):
    return CliRunner().invoke(app, ["scorecard", *map(str, words)])


def leave(folder, name, date, mean=1.0):
    """An executed notebook with all verdicts of its paper."""
    output = {"output_type": "display_data", "data": {outputs.CLAIMS: found(name, mean)}}
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
    leave(tmp_path / "bayes-new", "bayes", "2026-02-01", -1.0)
    leave(tmp_path / "bayes-old", "bayes", "2026-01-01")
    leave(tmp_path / "iha-one", "iha", "2025-01-01")
    (tmp_path / "other.ipynb").write_text('{"metadata": {}, "cells": []}')
    records = json.loads(mia(tmp_path, "--json").stdout)
    assert [one["claim"] for one in records] == [*claims.claims("bayes"), *claims.claims("iha")]
    assert {(one["paper"], one["verdict"]) for one in records} == {
        ("bayes", "contradicted"), ("iha", "reproduced"), ("iha", "checked")}
    assert json.loads(mia(tmp_path / "iha-one" / "iha.ipynb", "--json").stdout) == [
        one for one in records if one["paper"] == "iha"]


def test_the_table_has_every_claim_and_the_three_counters(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    leave(tmp_path, "bayes", "2026-01-01")
    said = mia(tmp_path).stdout
    assert all(re.search(rf"bayes {claim}\b", said) for claim in claims.claims("bayes"))
    assert all(title in said for title in scorecard.KINDS.values()) and "reproduced: 1.000" in said


def test_help_names_every_field_of_the_records(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    said = mia("--help").output
    assert all(re.search(rf"\b{field}\b", said) for field in scorecard.records(scorecard.rows(found()))[0])


def test_the_built_book_is_read_by_default(built_book, tmp_path, monkeypatch):
    monkeypatch.setattr(scorecard, "find_root", lambda root=None: tmp_path)
    (tmp_path / "_build").symlink_to(built_book.parents[2])
    records = json.loads(mia("--json").stdout)
    shown = (built_book / "book" / "scorecard.html").read_text()
    assert all(f'id="{one["paper"]}-{one["claim"]}"' in shown for one in records)
    assert {one["preset"] for one in records} == {"smoke"} and len(records) > 90
