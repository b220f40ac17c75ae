"""The chapters as they run: every claim judged, every exhibit of the paper there, nothing said on the side."""

import json
import re

import pytest
from inprocess import kernels_replaced
from test_written import CHAPTERS, ROOT

from mia_book import folders
from mia_book.evidence import claims
from mia_book.pages import outputs, parameters, prose, runner

# begins the caption of what shows an exhibit of the paper
LED = re.compile(r"\*\*([^*]+?) of the paper")


def named(text: str) -> set[str]:
    """The tables and figures that a text names: "Tables 2 to 4, Figure 5" has four."""
    exhibits = set()
    for kind, numbers in re.findall(r"\b(Table|Figure)s? (\d+(?:(?:, | and | to )\d+)*)", text):
        last = None
        for word, number in re.findall(r"(, | and | to |)(\d+)", numbers):
            exhibits |= {
                f"{kind} {n}"
                for n in range(last + 1 if word == " to " else int(number), int(number) + 1)
            }
            last = int(number)
    return exhibits


@pytest.mark.parametrize("name", CHAPTERS)
def test_each_exhibit_whose_numbers_the_paper_printed_has_a_caption(name):
    text = " ".join((ROOT / "notebooks" / f"{name}.py").read_text().replace("\n# ", " ").split())
    shown = set().union(*map(named, LED.findall(text)))
    printed = {
        f"{'Figure' if kind == 'fig' else 'Table'} {number}"
        for path in folders.CHAPTERS.glob(f"{name}/printed/*.csv")
        for kind, number in re.findall(r"^(table|fig)(\d+)", path.stem)
    }
    assert printed <= shown


@pytest.mark.book
@pytest.mark.parametrize("name", CHAPTERS)
def test_every_claim_has_a_verdict_everything_with_a_name_is_on_the_page_and_nothing_is_printed_on_the_side(
    name, built_book
):
    [path] = (built_book.parents[2] / "executed").glob(f"{name}-*.ipynb")
    notebook = json.loads(path.read_text(encoding="utf-8"))
    shown = outputs.displayed(notebook)
    verdicts = {one["claim"]: one["verdict"] for one in shown.claims}
    assert list(verdicts) == list(claims.claims(name)) and len(verdicts) == len(shown.claims)
    kinds = {
        output["output_type"] for cell in notebook["cells"] for output in cell.get("outputs", [])
    }
    assert not kinds & {"stream", "error"}
    page = (built_book / "notebooks" / f"{name}.html").read_text(encoding="utf-8")
    assert shown.tables and shown.figures
    assert not [label for label in (*shown.tables, *shown.figures) if f'id="{label}"' not in page]
    # theory holds at any size; heat usually takes from the attacker, and enumeration finds exceptions
    if name == "bayes":
        expected = {
            **dict.fromkeys(("C1", "C2", "C4", "C5"), "checked"),
            "C3": "reproduced",
            "C3r": "contradicted",
        }
        assert {claim: verdicts[claim] for claim in expected} == expected
    if name == "audit":
        reports = [
            built_book / report
            for report in re.findall(r'href="../(audits/[\w-]+/audit.html)"', page)
        ]
        assert len(reports) > 1
        assert all(report.with_name("audit.json").is_file() for report in reports)
        for text in (report.read_text(encoding="utf-8") for report in reports):
            assert len(text) < 500_000
            assert "<h1>Audit of" in text
            assert not re.search(r'(?:src|href)="(?:https?:)?//', text)


@pytest.mark.parametrize("name", ["iha", "compare"])
def test_at_its_smallest_a_chapter_measures_what_nobody_published_judges_all_its_claims_and_has_what_pages_name(
    name, tmp_path, isolated_cache
):
    path = tmp_path / f"{name}.ipynb"
    with kernels_replaced():
        runner.execute(
            name, parameters.validate(name, {}, "smoke", ROOT), path, preset="smoke", root=ROOT
        )
    notebook = json.loads(path.read_text(encoding="utf-8"))
    shown = outputs.displayed(notebook)
    assert [verdict["claim"] for verdict in shown.claims] == list(claims.claims(name))
    assert shown.tables
    assert shown.figures
    assert not [
        output
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if output["output_type"] == "error"
    ]
    run = prose.run_of(prose.resolve_roles(notebook, prose.run_of(notebook, ROOT)), ROOT)
    for page in (ROOT / "book").rglob("*.md"):
        for role in prose.ROLE.finditer(page.read_text(encoding="utf-8")):
            if role[2].startswith(f"{name} ") and role[1] != "printed":
                assert prose.prose(role[0], page.name, runs={name: run})
