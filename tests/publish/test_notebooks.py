"""The chapters as they run: every claim judged, every exhibit of the paper there, nothing said on the side."""

import json
import re

import pytest
from test_written import CHAPTERS, ROOT

from mia_lib.evidence import claims, tables
from mia_lib.publish import outputs

LED = re.compile(r"\*\*([^*]+?) of the paper")  # begins the caption of what shows an exhibit of the paper


def named(text: str) -> set[str]:
    """The tables and figures that a text names: "Tables 2 to 4, Figure 5" has four."""
    exhibits = set()
    for kind, numbers in re.findall(r"\b(Table|Figure)s? (\d+(?:(?:, | and | to )\d+)*)", text):
        last = None
        for word, number in re.findall(r"(, | and | to |)(\d+)", numbers):
            exhibits |= {f"{kind} {n}" for n in range(last + 1 if word == " to " else int(number), int(number) + 1)}
            last = int(number)
    return exhibits


@pytest.mark.parametrize("name", CHAPTERS)
def test_each_exhibit_whose_numbers_the_paper_printed_has_a_caption(name):
    source = re.sub(r'"\s*\n\s*f?"', "", (ROOT / "notebooks" / f"{name}.py").read_text())
    shown = set().union(*map(named, LED.findall(source)))
    printed = {f"{'Figure' if kind == 'fig' else 'Table'} {number}" for path in tables.PAPERS.glob(f"{name}_*.csv")
               for kind, number in re.findall(r"_(table|fig)(\d+)", path.stem)}
    assert printed <= shown


@pytest.fixture(params=CHAPTERS)
def executed(request, built_book):
    """A chapter as the book shows it: its name and its outputs."""
    [path] = (built_book.parents[2] / "executed").glob(f"{request.param}-*.ipynb")
    return request.param, json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.book
def test_every_claim_has_a_verdict_in_its_order_and_nothing_is_printed_on_the_side(executed):
    name, notebook = executed
    assert [verdict["claim"] for verdict in outputs.displayed(notebook).claims] == list(claims.claims(name))
    kinds = {output["output_type"] for cell in notebook["cells"] for output in cell.get("outputs", [])}
    assert not kinds & {"stream", "error"}


@pytest.mark.book
def test_everything_with_a_name_stands_on_the_page(executed, built_book):
    name, notebook = executed
    page = (built_book / "notebooks" / f"{name}.html").read_text(encoding="utf-8")
    shown = outputs.displayed(notebook)
    assert shown.tables and shown.figures
    assert not [label for label in (*shown.tables, *shown.figures) if f'id="{label}"' not in page]


@pytest.mark.book
def test_what_theory_says_holds_at_any_size(built_book):
    [path] = (built_book.parents[2] / "executed").glob("bayes-*.ipynb")
    verdicts = {one["claim"]: one["verdict"] for one in outputs.displayed(json.loads(path.read_text())).claims}
    assert {verdicts[claim] for claim in ("C1", "C2", "C4", "C5")} == {"checked"}
    assert verdicts["C3"] == "reproduced"
    assert verdicts["C3r"] == "contradicted"  # heat usually takes from the attacker, and enumeration finds exceptions


@pytest.mark.book
def test_reports_of_audits_are_pages_of_their_own(built_book):
    page = (built_book / "notebooks" / "audit.html").read_text(encoding="utf-8")
    reports = re.findall(r'href="../(audits/[\w-]+/audit.html)"', page)
    assert len(reports) > 1
    for report in reports:
        text = (built_book / report).read_text(encoding="utf-8")
        assert len(text) < 500_000 and "<h1>Audit of" in text and not re.search(r'(?:src|href)="(?:https?:)?//', text)
        assert (built_book / report).with_name("audit.json").is_file()
