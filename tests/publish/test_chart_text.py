"""An explorable figure in words: what a loop over the records counts, at settings that the reader is told."""

from __future__ import annotations

import numpy as np
import pytest
from bs4 import BeautifulSoup

from mia_lib.evidence import explore, plotting
from mia_lib.publish import pages

RNG = np.random.default_rng(3)
MEMBERS = RNG.random(300) < 0.5
SCORES = {"MALT": RNG.normal(size=300) + MEMBERS, "MAST": RNG.normal(size=300) + 2 * MEMBERS}
WORDS = {"name": "fig-words", "alt": "what is seen", "instructions": "Move the threshold."}


def rows(chart) -> dict[str, list[str]]:
    """Setting -> lines that the chart writes there."""
    page = BeautifulSoup(pages.chart_in_words(plotting.specification_of_chart(chart, **WORDS)), "html.parser")
    assert [head.text for head in page.select("thead th[scope=col]")] == ["setting", "what the chart says"]
    assert page.find("details") and not page.find("script"), "folded, and no script"
    found = {row.th.text: list(row.td.stripped_strings) for row in page.select("tbody tr")}
    assert len(found) == len(page.select("tbody tr"))
    return found


@pytest.fixture(scope="module")
def said() -> dict[str, list[str]]:
    return rows(explore.rates(SCORES, MEMBERS))


def test_it_begins_where_the_chart_begins_and_moves_one_control_at_a_time(said):
    first, *others = said
    assert first.startswith("As it begins: Attack: MALT; Threshold (0 lowest, 200 highest): ")
    assert set(others) == {"Attack: MAST"} | {f"Threshold (0 lowest, 200 highest): {step}" for step in (0, 100, 200)}


@pytest.mark.parametrize("step", [0, 100, 200])
def test_its_counts_are_those_of_a_loop_over_records(said, step):
    place = explore.thresholds(SCORES["MALT"])[step]
    tp, fp = (sum(score >= place for score in SCORES["MALT"][kind]) for kind in (MEMBERS, ~MEMBERS))
    lines = said[f"Threshold (0 lowest, 200 highest): {step}"]
    assert f"Members: {tp} called (TP), {MEMBERS.sum() - tp} missed (FN)" in lines
    assert f"Non-members: {fp} called (FP), {(~MEMBERS).sum() - fp} not (TN)" in lines


def test_data_above_the_view_are_found_too():
    found = rows(explore.two_attacks({"a case": (SCORES, MEMBERS)}))
    assert "500.0 right, 500.0 wrong, 0.0 missed" in found["False positive rate allowed, power of ten: 0"]
    assert all(found.values())


def test_a_chart_that_says_nothing_has_no_words():
    alt = plotting.altair
    chart = alt.Chart(alt.Data(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    assert pages.chart_in_words(plotting.specification_of_chart(chart, **WORDS)) == ""
