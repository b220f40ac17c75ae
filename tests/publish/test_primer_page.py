"""The primer: a picture before each formula, and each picture in three forms."""

import re

from mia_lib.evidence import primer
from mia_lib.publish import outputs, pages, prose
from mia_lib.publish.parameters import find_root

TEXT = (find_root() / primer.PAGE).read_text()
SECTIONS = [part for part in TEXT.split("\n## ")[1:] if "{explorable}" in part]


def test_no_formula_stands_before_its_picture():
    assert len(SECTIONS) == 3 and "$" not in TEXT.partition("\n## ")[0]
    for section in SECTIONS:
        before, _, after = section.partition("{explorable}")
        assert "$" not in before and "**Now the formula.**" in after.partition("$")[0]


def test_each_picture_can_be_moved_looked_at_and_read_and_numbers_were_computed():
    notebook = primer.notebook()
    shown = outputs.displayed(notebook)
    for name in (re.findall(r"\{explorable\} (\S+)", section)[0] for section in SECTIONS):
        assert name in shown.pictures and shown.figures[name]["alt"] and shown.charts[name]["usermeta"]["instructions"]
    told = prose.prose(TEXT, "book/primer.md", runs={"primer": prose.run_of(notebook, find_root())})
    assert "{ours}" not in told and "mia-option" in told
    page = pages.show_charts_again(told, "book/primer.md", {name: (chart, "alt") for name, chart in shown.charts.items()})
    assert "{explorable}" not in page and page.count(f'class="{pages.EXPLORABLE}"') == 3
    assert page.count("<table") == 3, "what each chart says, in words"
