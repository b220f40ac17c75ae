"""The primer: a picture before each formula, and each picture in three forms."""

import re

import pytest

from mia_lib.publish import outputs, pages, primer_page, prose
from mia_lib.publish.parameters import find_root

TEXT = (find_root() / primer_page.PAGE).read_text()
SECTIONS = [part for part in TEXT.split("\n## ")[1:] if "{explorable}" in part]


@pytest.fixture(scope="module")
def notebook():
    return primer_page.notebook()


def test_no_formula_stands_before_its_picture():
    assert len(SECTIONS) == 3
    opening = TEXT.partition("\n## ")[0]
    assert "$" not in opening
    for section in SECTIONS:
        before, _, after = section.partition("{explorable}")
        assert "$" not in before and "**Now the formula.**" in after.partition("$")[0]


def test_each_picture_can_be_moved_looked_at_and_read(notebook):
    shown = outputs.displayed(notebook)
    for section in SECTIONS:
        (name,) = re.findall(r"\{explorable\} (\S+)", section)
        assert name in shown.pictures and shown.figures[name]["alt"]
        assert shown.charts[name]["usermeta"]["instructions"]


def test_the_page_is_told_with_numbers_that_were_computed(notebook):
    run = prose.run_of(notebook, find_root())
    told = prose.prose(TEXT, "book/primer.md", runs={"primer": run})
    assert "{ours}" not in told and "mia-option" in told
    charts = {name: (chart, "alt") for name, chart in outputs.displayed(notebook).charts.items()}
    shown = pages.show_charts_again(told, "book/primer.md", charts)
    assert "{explorable}" not in shown and shown.count(f'class="{pages.EXPLORABLE}"') == 3
    assert shown.count("<table") == 3, "what each chart says, in words"
