"""An executed notebook as a page: captions, provenance, links to claims and to reports of audits, charts in words."""

import numpy as np
import pytest
from bs4 import BeautifulSoup

from mia_lib.evidence import explore, plotting
from mia_lib.papers.audit import exhibits
from mia_lib.publish import outputs, pages

RNG = np.random.default_rng(3)
MEMBERS = RNG.random(300) < 0.5
SCORES = {"MALT": RNG.normal(size=300) + MEMBERS, "MAST": RNG.normal(size=300) + 2 * MEMBERS}
WORDS = {"name": "fig-words", "alt": "what is seen", "instructions": "Move the threshold."}
RECORD = {"notebook": "n", "preset": "smoke", "changed": {"a": "x|y"}, "date": "2026-01-02T03:04:05+00:00", "seconds": 75.2,
          "peak_memory_mb": 300, "device": "2 CPU cores", "versions": {"python": "3.11.2"}, "key": "0123"}


def cell(*outputs, **metadata) -> dict:
    return {"cell_type": "code", "id": "c", "execution_count": 1, "metadata": metadata, "source": "x",
            "outputs": list(outputs)}


def shown(data, figure=None) -> dict:
    return {"output_type": "display_data", "data": data, "metadata": {"mia": figure} if figure else {}}


def test_a_page_carries_captions_and_provenance_and_no_bookkeeping():
    figure = {"name": "fig-a", "caption": "A", "alt": "dots", "width": "80%"}
    stream = {"output_type": "stream", "name": "stdout", "text": "hello"}
    pictures = [shown({"image/png": name}, dict(figure)) for name in "ab"]
    made = pages.page({"metadata": {"mia": RECORD}, "cells": [
        cell(stream, pictures[0], shown({"text/markdown": "t"}), pictures[1]),
        cell(shown({outputs.RESULTS: {}}), tags=["injected-parameters"])]})
    first, table, second, injected, footer = made["cells"]
    assert "mia" not in made["metadata"] and "mystnb" not in table["metadata"]
    assert first["metadata"]["mystnb"] == {"figure": {"name": "fig-a", "caption": "A"},
                                           "image": {"alt": "dots", "width": "80%"}}
    assert [len(c["outputs"]) for c in (first, table, second)] == [2, 1, 1]
    assert second["metadata"]["tags"] == ["remove-input"] and len({c["id"] for c in made["cells"][:3]}) == 3
    assert injected["outputs"] == [] and injected["metadata"]["tags"] == ["injected-parameters", "hide-input"]
    for part in ("smoke", "`a = 'x\\|y'`", "2026-01-02 03:04 UTC, 1 min 15 s, 300 MB",
                 "mia run n --preset smoke -p NAME VALUE"):
        assert part in footer["source"], part


def test_rows_of_a_chapters_claims_can_be_linked_to():
    table = "| claim | ours |\n| --- | --- |\n| **C7** (ours) text | 1 |\n| **C10r** other | **C7** |\n"
    made = pages.page({"metadata": {"mia": RECORD}, "cells": [
        {**cell(shown({outputs.CLAIMS: [{"claim": "C7"}], "text/markdown": table})), "id": "a"}]})
    told = next(o["data"]["text/markdown"] for one in made["cells"] for o in one.get("outputs", []))
    assert '| <span id="claim-C7"></span>**C7** (ours) text |' in told and told.count("<span") == 2


REPORT = {"name": "audit-forest", "title": "a <forest>", "files": {"audit.html": "<title>é</title>", "audit.json": "{}"}}


@pytest.mark.parametrize("options, href", [
    ({}, "../audits/audit-forest/audit.html"), ({"audits": ""}, "audit-forest/audit.html")])
def test_a_report_is_a_link_to_a_page_of_its_own(options, href):
    assert outputs.AUDIT == exhibits.MIME, "the notebook and the book mean the same output"
    data = {"text/html": "<iframe></iframe>", "text/markdown": "elsewhere", outputs.AUDIT: REPORT}
    executed = {"metadata": {"mia": RECORD}, "cells": [cell(shown(data))]}
    files = {f"audit-forest/{name}": text for name, text in REPORT["files"].items()}
    assert outputs.displayed(executed).report_files() == files
    [output] = pages.page(executed, **options)["cells"][0]["outputs"]
    assert set(output["data"]) == {"text/markdown", "text/plain"}
    assert f'<a href="{href}">The whole report on a &lt;forest&gt;</a>' in output["data"]["text/markdown"]


def rows(chart) -> dict[str, list[str]]:
    """Setting -> lines that the chart writes there."""
    page = BeautifulSoup(pages.chart_in_words(plotting.specification_of_chart(chart, **WORDS)), "html.parser")
    assert [head.text for head in page.select("thead th[scope=col]")] == ["setting", "what the chart says"]
    assert page.find("details") and not page.find("script"), "folded, and no script"
    found = {row.th.text: list(row.td.stripped_strings) for row in page.select("tbody tr")}
    assert len(found) == len(page.select("tbody tr"))
    return found


def test_it_moves_one_control_at_a_time_and_its_counts_are_those_of_a_loop_over_records():
    said = rows(explore.rates(SCORES, MEMBERS))
    first, *others = said
    assert first.startswith("As it begins: Attack: MALT; Threshold (0 lowest, 200 highest): ")
    at = {step: f"Threshold (0 lowest, 200 highest): {step}" for step in (0, 100, 200)}
    assert set(others) == {"Attack: MAST", *at.values()}
    for step, setting in at.items():
        place = explore.thresholds(SCORES["MALT"])[step]
        tp, fp = (sum(score >= place for score in SCORES["MALT"][kind]) for kind in (MEMBERS, ~MEMBERS))
        assert f"Members: {tp} called (TP), {MEMBERS.sum() - tp} missed (FN)" in said[setting]
        assert f"Non-members: {fp} called (FP), {(~MEMBERS).sum() - fp} not (TN)" in said[setting]


def test_data_above_the_view_are_found_too_and_a_chart_that_says_nothing_has_no_words():
    found = rows(explore.two_attacks({"a case": (SCORES, MEMBERS)}))
    assert "500.0 right, 500.0 wrong, 0.0 missed" in found["False positive rate allowed, power of ten: 0"]
    assert all(found.values())
    alt = plotting.altair
    chart = alt.Chart(alt.Data(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    assert pages.chart_in_words(plotting.specification_of_chart(chart, **WORDS)) == ""
