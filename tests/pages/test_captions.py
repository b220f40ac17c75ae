"""Captions stand as Markdown beside the cell, and are on everything that a page shows."""

import copy
import json
import re

import jupytext
import matplotlib.pyplot as plt
import pandas as pd
import pytest

from mia_book.evidence import explore, figures, results
from mia_book.pages import captions, outputs, pages, parameters
from mia_lib.errors import MiaError

ROOT = parameters.find_root()
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.py"))
TEXT = """Before.

:::{caption} fig-still
:alt: Points on the diagonal,
  {ours}`many` of them: and more.

What is *drawn*,
on two lines.
:::

:::{caption} tab-one
Rows with $|x|$, **bold** and <less>.
:::

:::{caption} fig-live
:alt: Bars.
:instructions: Move the line.
What moves.
:::

:::{caption} fig-elsewhere
Shown in other runs alone.
:::

After."""


def shown(*bundle) -> dict:
    data, metadata = (*bundle, {})[:2]
    return {"output_type": "display_data", "data": dict(data), "metadata": dict(metadata or {})}


@pytest.fixture
def notebook(monkeypatch):
    """An executed notebook with a figure, a table and a chart that code said nothing about, and a figure of which it did."""
    kept = []
    monkeypatch.setattr(results, "display_bundle", lambda *bundle: kept.append(shown(*bundle)))
    figures.show(plt.figure(), "fig-still")
    results.show_table(pd.DataFrame({"a": ["x"], "n": [1.0]}), "tab-one")
    figures.explore(explore.rates({"a": [0.0, 1.0]}, [False, True]), plt.figure(), "fig-live")
    figures.show(plt.figure(), "fig-of-code", "What code says.", "A dot.")
    cells = [
        {"cell_type": "code", "id": "a", "metadata": {}, "source": "draw()", "outputs": kept},
        {"cell_type": "markdown", "id": "b", "metadata": {}, "source": TEXT},
    ]
    return json.loads(json.dumps({"cells": cells, "metadata": {"mia": {}}}))


def test_what_is_shown_has_its_words_in_every_form_and_the_text_no_longer(notebook):
    attached = captions.attach(notebook)
    assert attached["cells"][1]["source"].split() == ["Before.", "After."]
    captions.check(attached)
    found = outputs.displayed(attached)
    still = found.figures["fig-still"]
    assert still["caption"] == "What is *drawn*, on two lines."
    assert still["alt"] == "Points on the diagonal, {ours}`many` of them: and more."
    assert found.tables["tab-one"]["caption"] == "Rows with $|x|$, **bold** and <less>."
    assert found.charts["fig-live"]["description"] == found.figures["fig-live"]["alt"] == "Bars."
    assert found.charts["fig-live"]["usermeta"]["instructions"] == "Move the line."
    assert found.figures["fig-of-code"]["caption"] == "What code says."
    data = attached["cells"][0]["outputs"][1]["data"]
    assert data["text/markdown"].startswith(
        ":::{table} Rows with $|x|$, **bold** and <less>.\n:name: "
    )
    assert (
        "<caption>Rows with $|x|$, <strong>bold</strong> and &lt;less&gt;.</cap"
        in data["text/html"]
    )
    assert data["text/plain"].startswith("Rows with")
    assert attached["cells"][0]["outputs"][0]["data"]["text/plain"] == still["alt"]


def test_words_of_a_run_that_is_there_can_be_changed_and_follow_what_code_says(notebook):
    fences = ":::{caption} fig-of-code\nWhat is drawn.\n:::\n\n:::{caption} tab-one\nFirst.\n:::"
    notebook["cells"][1]["source"] = fences
    once = copy.deepcopy(captions.attach(notebook))
    again = copy.deepcopy(once)
    again["cells"][1]["source"] = fences
    assert captions.attach(again) == once, "nothing is said twice"
    assert (
        outputs.displayed(once).figures["fig-of-code"]["caption"]
        == "What is drawn. What code says."
    )
    again["cells"][1]["source"] = fences.replace("First", "Second \\1")
    table = captions.attach(again)["cells"][0]["outputs"][1]["data"]
    for form in ("text/html", "text/markdown", "text/plain"):
        assert "Second \\1." in table[form] and "First" not in table[form]
    assert table["text/html"].count("<caption>") == 1


@pytest.mark.parametrize(
    "lost, said",
    [
        (":::{caption} tab-one\nRows with $|x|$, **bold** and <less>.", "tab-one has no caption"),
        ("What is *drawn*,\non two lines.\n", "fig-still has no caption"),
        (":alt: Bars.\n", "fig-live has no alt"),
        (":instructions: Move the line.\n", "fig-live has no instructions"),
    ],
)
def test_a_page_refuses_what_has_no_words(lost, said, notebook):
    assert lost in TEXT
    notebook["cells"][1]["source"] = TEXT.replace(
        lost, ":::{caption} x" if "tab-one" in lost else ""
    )
    with pytest.raises(MiaError, match=said):
        pages.page(captions.attach(notebook))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_each_name_in_a_notebook_has_one_caption_and_each_caption_a_name(name):
    cells = jupytext.read(ROOT / "notebooks" / f"{name}.py").cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    shows = (
        r"(?:figures\.(?:show|explore)|results\.show_table|rules\.show_settings|game_cards\.show)\("
    )
    named = re.findall(shows + r'[^#]*?name="([\w-]+)"', code)
    of_text = re.findall(r"^:::\{caption\} ([\w-]+)$", text, re.MULTILINE)
    assert len(set(of_text)) == len(of_text)
    assert set(named) <= set(of_text)
    assert not [one for one in of_text if one not in named and one.split("-", 1)[1] not in code]
    assert not re.findall(r"\b(?:caption|alt|instructions)=|results\.say\(", code)
