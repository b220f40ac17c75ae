"""The three pictures of the primer: what they draw is what their formulas say, the descent is a descent, and the page has each
before its formula and in three forms."""

import json
import re

import numpy as np
import pytest
from scipy.stats import norm

from mia_book.chapters.primer import charts as primer
from mia_book.evidence import figures
from mia_book.pages import outputs, pages, prose
from mia_book.pages.parameters import find_root

RNG = np.random.default_rng(5)
TEXT = (find_root() / primer.PAGE).read_text()
SECTIONS = [part for part in TEXT.split("\n## ")[1:] if "{explorable}" in part]


@pytest.fixture(scope="module")
def learned():
    return primer.learned()


def test_the_model_is_that_of_descent_on_the_weights():
    x, y, members = RNG.normal(size=(30, 4)), RNG.integers(0, 3, 30), np.arange(30) % 3 == 0
    found = primer.learn(x, y, members, 3, [0, 7, 40], rate=0.1)
    ones, weights = np.c_[x, np.ones(30)], np.zeros((5, 3))
    for step in range(41):
        p = np.exp(ones @ weights) / np.exp(ones @ weights).sum(1, keepdims=True)
        if step in (0, 7, 40):
            np.testing.assert_allclose(
                found.loss[list(found.steps).index(step)], -np.log(p[np.arange(30), y]), atol=1e-10
            )
        weights -= 0.1 * ones[members].T @ (p[members] - np.eye(3)[y[members]]) / members.sum()


def test_what_the_page_says_of_the_training_is_so(learned):
    """Losses of members go on falling, those of others do not follow, and the model is right about members first."""
    assert len(json.dumps(primer.learning_chart(learned).to_dict())) < figures.LIMIT / 3
    assert learned.steps[0] == 0
    assert learned.auc[0] == 0.5
    assert np.allclose(learned.loss[0], np.log(10))
    inside, outside = (
        learned.loss[:, learned.members == members].mean(1) for members in (True, False)
    )
    assert (np.diff(inside) < 0).all()
    assert learned.auc[-1] > learned.auc[len(learned.auc) // 2] > 0.5
    assert np.diff(outside - inside)[len(inside) // 2 :].min() > 0 and outside[-1] > outside.min()
    gap = learned.right[:, learned.members].mean(1) - learned.right[:, ~learned.members].mean(1)
    assert gap[-1] > gap[len(gap) // 2] and learned.right[-1][learned.members].mean() > 0.99


@pytest.mark.parametrize(
    "chart, said",
    [
        (
            primer.roc_chart,
            [
                f"{norm.sf(2, primer.GAP):.1%}",
                f"{norm.sf(2):.1%}",
                f"{norm.cdf(primer.GAP / 2**0.5):.3f}",
            ],
        ),
        (
            primer.ratio_chart,
            [f"{norm.pdf(2, primer.GAP):.3f}", f"{norm.pdf(2, primer.GAP) / norm.pdf(2):.3g}"],
        ),
    ],
)
def test_a_chart_of_laws_computes_as_it_is_moved(chart, said):
    """Vega's own normal law, evaluated where no reader sees it, is SciPy's."""
    import vl_convert

    spec = chart().to_dict()
    for one in spec["params"]:
        if one["name"] in ("threshold", "seen"):
            one["value"] = 2.0
    text = json.dumps(spec)
    assert len(text) < figures.LIMIT / 3 and '"name": "said"' in text and '"input": "range"' in text
    drawn = vl_convert.vegalite_to_svg(text, vl_version="5.20")
    assert all(one in drawn for one in said), (said, drawn[:200])


def test_no_formula_stands_before_its_picture():
    assert len(SECTIONS) == 3 and "$" not in TEXT.partition("\n## ")[0]
    for section in SECTIONS:
        before, _, after = section.partition("{explorable}")
        assert "$" not in before and "**Now the formula.**" in after.partition("$")[0]


def test_each_picture_can_be_moved_looked_at_and_read_and_numbers_were_computed():
    notebook = primer.notebook()
    shown = outputs.displayed(notebook)
    for name in (re.findall(r"\{explorable\} (\S+)", section)[0] for section in SECTIONS):
        assert name in shown.pictures
        assert shown.figures[name]["alt"]
        assert shown.charts[name]["usermeta"]["instructions"]
    told = prose.prose(TEXT, "book/primer.md", runs={"primer": prose.run_of(notebook, find_root())})
    assert "{ours}" not in told and "mia-option" in told
    page = pages.show_charts_again(
        told, "book/primer.md", {name: (chart, "alt") for name, chart in shown.charts.items()}
    )
    assert "{explorable}" not in page and page.count(f'class="{pages.EXPLORABLE}"') == 3
    assert page.count("<table") == 3, "what each chart says, in words"
