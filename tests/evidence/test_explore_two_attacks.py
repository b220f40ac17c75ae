"""Two attacks side by side: rates are those of the metrics, counts those of arithmetic, and the chart writes what they are."""

import json
import re
from html import unescape

import numpy as np
import pytest
import vl_convert

from mia_book.evidence import explore, figures
from mia_lib import metrics
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)


def case(records, targets, **lifts):
    members = RNG.random((targets, records)) < 0.4
    scores = {name: RNG.normal(size=members.shape) + lift * members for name, lift in lifts.items()}
    return scores | {
        "Gap": (RNG.random(members.shape) < 0.3 + 0.3 * members).astype(float)
    }, members


CASES = {
    "images": case(900, 3, LiRA=1.2, MALT=0.4),
    "tables": case(300, 1, LiRA=1.0, MALT=0.5, IHA=2.0),
}
ALLOWED, CURVES = explore.rates_allowed(CASES)
OF = {(row["case"], row["attack"]): row for row in CURVES}


@pytest.fixture(scope="module")
def spec():
    chart = explore.two_attacks(CASES)
    return figures.specification_of_chart(
        chart, "fig-versus", "Two curves and squares.", "Choose two attacks."
    )


def said(spec, **moved):
    """What the chart writes where a reader has moved its parameters so, and its squares by colour."""
    spec = json.loads(json.dumps(spec))
    assert moved.keys() <= {one["name"] for one in spec["params"]}
    for one in spec["params"]:
        one["value"] = moved.get(one["name"], one["value"])
    svg = vl_convert.vegalite_to_svg(spec, vl_version="5.20")
    (group,) = re.findall(r'<g class="mark-text role-mark [^"]*said_marks.*?</g>', svg)
    lines = [unescape(line).strip() for line in re.findall(r"<tspan[^>]*>([^<]*)</tspan>", group)]
    squares = {
        kind: len(re.findall(rf'<path d="[^"]*" fill="{color}"', svg))
        for kind, color in explore.OUTCOMES.items()
    }
    return [line for line in lines if line], squares


@pytest.mark.parametrize("case, attack", OF)
def test_rates_are_those_of_the_metric_at_every_rate_allowed_and_rise_to_one(case, attack):
    scores, members, row = CASES[case][0][attack], CASES[case][1], OF[case, attack]
    assert ALLOWED[-1] == 1
    assert ALLOWED[0] < 1 / max((~members).sum(1).max() for _, members in CASES.values())
    assert np.allclose(np.diff(np.log10(ALLOWED)), 1 / explore.PER_DECADE)
    for place in range(0, len(ALLOWED), 9):
        rate = float(ALLOWED[place])
        if rate < 1:
            assert np.isclose(row["tpr"][place], np.mean(metrics.tpr_at_fpr(scores, members, rate)))
        assert row["fpr"][place] <= rate * (1 + 1e-9), "reached is at most what is allowed"
    assert (np.diff(row["tpr"]) >= 0).all()
    assert (np.diff(row["fpr"]) >= 0).all()
    assert row["tpr"][-1] == row["fpr"][-1] == 1
    below = (ALLOWED < 0.1).sum()  # where ties accuse nobody
    assert attack != "Gap" or not any(row["tpr"][:below]) and not any(row["fpr"][:below])


@pytest.mark.parametrize(
    "case, first, second, power, share, cost",
    [
        ("images", "LiRA", "MALT", -2, 50, 10),
        ("images", "MALT", "LiRA", -0.5, 7, 3),
        ("tables", "IHA", "LiRA", -1.24, 90, 0),
    ],
)
def test_it_says_and_draws_what_arithmetic_gives(spec, case, first, second, power, share, cost):
    lines, squares = said(
        spec, setting=case, first=first, second=second, power=power, share=share, cost=cost
    )
    place, came = round(power * explore.PER_DECADE) + len(ALLOWED) - 1, []
    # right, wrong and missed among a thousand records, and the net gain
    for row in (OF[case, first], OF[case, second]):
        tpr, wrong = row["tpr"][place], 10 * (100 - share) * row["fpr"][place]
        came.append(
            (10 * share * tpr, wrong, 10 * share * (1 - tpr), 10 * share * tpr - cost * wrong)
        )
    told = [
        float(number.replace("−", "-").replace(",", ""))
        for number in re.findall(r"gain ([+−][\d,.]+)", " ".join(lines))
    ]
    assert np.allclose(told, [gain for *_, gain in came], atol=0.06, rtol=2e-3)
    counts = re.findall(r"([\d,.]+) right, ([\d,.]+) wrong, ([\d,.]+) missed", " ".join(lines))
    assert np.allclose(
        [[float(one.replace(",", "")) for one in row] for row in counts],
        [counted for *counted, _ in came],
        atol=0.06,
        rtol=1e-3,
    )
    assert lines[-1].startswith(f"{first if came[0][-1] > came[1][-1] else second} gains ")
    right = sum(round(one[0]) for one in came)
    wrong = sum(round(one[1]) for one in came)
    members = 10 * share
    assert list(squares.values()) == [2 * members - right, right, wrong, 2000 - 2 * members - wrong]


def test_a_rate_below_resolution_has_no_counts_few_are_no_number_and_what_a_case_lacks_is_said(
    spec,
):
    others = OF["tables", "LiRA"]["others"]
    lines, squares = said(
        spec, setting="tables", power=float(np.floor(np.log10(1 / others) * 50) / 50 - 0.02)
    )
    assert lines[1:] == ["below resolution: less than one", f"of {others} non-members"]
    assert not any(squares.values())
    lines, squares = said(
        spec, setting="tables", power=float(np.ceil(np.log10(1 / others) * 50) / 50 + 0.02)
    )
    assert "net gain" in lines[2] and sum(squares.values()) == 2 * explore.RECORDS
    lines, _ = said(spec, setting="images", first="Gap", second="LiRA", power=-2, share=50)
    assert f"fewer than {500 / OF['images', 'Gap']['members']:,.1f} right, 0.0 wrong" in lines[3]
    lines, squares = said(spec, setting="images", first="IHA", second="MALT", power=-1)
    assert lines[2] == "IHA: not run in this case"
    assert lines[3].startswith("MALT: net gain")
    assert len(lines) == 5
    assert sum(squares.values()) == explore.RECORDS


def test_it_is_valid_and_begins_where_it_was_told():
    chart = explore.two_attacks(CASES, ("IHA", "LiRA")).to_dict()
    values = {one["name"]: one["value"] for one in chart["params"]}
    assert values == {
        "setting": "images",
        "first": "IHA",
        "second": "LiRA",
        "power": -2,
        "share": 50,
        "cost": 10,
    }


@pytest.mark.parametrize(
    "cases, options, text",
    [
        ({}, {}, "cases is empty"),
        ({"a": ({}, np.ones(3, bool))}, {}, "has no scores"),
        (CASES, {"pair": ("LiRA", "LIRA")}, "pair = 'LIRA' is not known"),
        ({"a": ({"x": np.zeros(4)}, np.ones(4, bool))}, {}, "both are needed"),
    ],
)
def test_what_cannot_be_drawn_is_refused(cases, options, text):
    with pytest.raises(MiaError, match=text):
        explore.two_attacks(cases, **options)
