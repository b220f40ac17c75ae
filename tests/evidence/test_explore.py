"""Explorable charts: their counts are those of the metrics, they are valid Vega-Lite, described and light."""

import json
import sys

import altair
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mia_book.evidence import explore, figures, results
from mia_lib import metrics
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)
MEMBERS = RNG.random(500) < 0.4
SCORES = {
    "MALT": RNG.normal(size=500) + MEMBERS,
    "MAST": np.exp(3 * RNG.normal(size=500) + MEMBERS),
    "Gap": (RNG.random(500) < 0.6 + 0.3 * MEMBERS).astype(float),
    "constant": np.zeros(500),
}
WORDS = {
    "caption": "What a threshold does.",
    "alt": "Two histograms and a ROC",
    "instructions": "Move the threshold.",
}


@pytest.fixture
def displayed(monkeypatch):
    shown = []
    monkeypatch.setattr(
        "mia_book.evidence.results.display_bundle", lambda *bundle: shown.append(bundle)
    )
    return shown


def put(chart, **words):
    bundle = figures.bundle_of_chart(chart, plt.figure(), "fig-live", **WORDS | words)
    results.display_bundle(*bundle)


@pytest.fixture(scope="module")
def rates():
    return explore.rates(SCORES, MEMBERS).to_dict()


@pytest.mark.parametrize("name", SCORES)
def test_counts_are_those_of_a_loop_and_walk_along_the_roc_from_all_to_none(rates, name):
    rows = [row for row in rates["datasets"]["points"] if row["attack"] == name]
    assert [row["step"] for row in rows] == list(range(explore.STEPS + 1))
    for row in rows:
        called = [score >= row["threshold"] for score in SCORES[name]]
        assert row["tp"] == sum(one and member for one, member in zip(called, MEMBERS, strict=True))
        assert row["fp"] == sum(
            one and not member for one, member in zip(called, MEMBERS, strict=True)
        )
    fpr, tpr, _ = metrics.roc_curve(SCORES[name], MEMBERS)
    walked = [(row["fp"] / (~MEMBERS).sum(), row["tp"] / MEMBERS.sum()) for row in rows]
    assert set(walked) <= set(zip(fpr, tpr, strict=True))
    assert walked[0] == (1, 1)
    assert walked[-1] == (0, 0)
    assert walked == sorted(walked, reverse=True)
    for kind in ("members", "non-members"):
        bars = [
            row for row in rates["datasets"]["bars"] if (row["attack"], row["kind"]) == (name, kind)
        ]
        assert np.isclose(sum(row["share"] for row in bars), 1)
        assert all(a["to"] == b["from"] for a, b in zip(bars, bars[1:], strict=False))


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=300))
def test_thresholds_rise_from_the_lowest_score_to_above_the_highest(scores):
    scores = np.array(scores)
    places = explore.thresholds(scores)
    assert places.shape == (explore.STEPS + 1,) and (np.diff(places) >= 0).all()
    assert places[0] == scores.min() and places[-1] > scores.max()


@pytest.mark.parametrize(
    "scores, members, said",
    [
        ({}, MEMBERS, "at least one attack"),
        ({"a": np.zeros((2, 500))}, MEMBERS, "one target"),
        ({"a": np.where(MEMBERS, np.inf, 0)}, MEMBERS, "infinite values"),
        ({"a": np.zeros(500)}, np.ones(500, bool), "both are needed"),
    ],
)
def test_what_cannot_be_drawn_is_refused(scores, members, said):
    with pytest.raises(MiaError, match=said):
        explore.rates(scores, members)


# On the page


def test_what_is_displayed_is_the_picture_with_the_chart_beside_it(displayed):
    plt.close("all")
    put(explore.rates({"MALT": SCORES["MALT"]}, MEMBERS))
    figures.show(plt.figure(), "fig-live", WORDS["caption"], WORDS["alt"])
    (live, metadata), (still, same) = displayed
    assert set(live) == {*still, "application/vnd.vegalite.v5+json"} and metadata == same
    spec = json.loads(json.dumps(live[figures.VEGA_LITE], allow_nan=False)) | {"datasets": {}}
    assert altair.ConcatChart.from_dict(spec).to_dict()["params"] == spec["params"], (
        "valid, as Altair sees it"
    )
    assert spec["description"] == WORDS["alt"]
    assert spec["usermeta"]["instructions"] == WORDS["instructions"]
    assert spec["background"] == "white" and spec["$schema"].endswith("v5.20.1.json")
    assert not plt.get_fignums()


def test_data_are_rounded_and_places_are_not(displayed):
    frame = pd.DataFrame({"x": [0.123456, 123456.0, np.nan], "y": [-9.87654e-7, 1.0, 7.0]})
    put(
        altair.Chart(frame)
        .mark_point()
        .encode(altair.X("x:Q", scale=altair.Scale(domain=[0.123456, 2])), y="y:Q")
    )
    spec = displayed[0][0][figures.VEGA_LITE]
    (rows,) = spec["datasets"].values()
    assert [row["x"] for row in rows] == [0.1235, 123456, None] and rows[0]["y"] == -9.877e-7
    assert spec["encoding"]["x"]["scale"]["domain"][0] == 0.123456
    assert spec["width"] == "container", "one view is as wide as the page"


def test_more_rows_than_altair_allows_may_be_drawn_and_more_than_a_page_holds_may_not(displayed):
    few, many = (
        altair.Chart(pd.DataFrame({"x": np.arange(rows) % 10})).mark_tick().encode(x="x:Q")
        for rows in (6_000, 40_000)
    )
    put(few)
    with pytest.raises(
        MiaError, match=r"fig-live: the chart has [34]\d\d kB, and a page holds at most 300 kB"
    ):
        put(many)
    with pytest.raises(altair.MaxRowsError):
        few.to_dict()  # as ever for others
    with pytest.raises(MiaError, match="of type dict"):
        put({})
    assert len(displayed) == 1


def test_without_altair_charts_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MiaError, match="pip install"):
        explore.rates(SCORES, MEMBERS)
