import re

import pytest

from mia_lib.errors import MiaError
from mia_lib.evidence import tables
from mia_lib.publish import exhibits
from mia_lib.publish.parameters import find_root, notebooks

ROOT = find_root()
CHAPTERS = notebooks(ROOT)


@pytest.mark.parametrize("text, found", [
    ("Table 2", ["Table 2"]),
    ("Tables 2 to 4, Figure 5", ["Table 2", "Table 3", "Table 4", "Figure 5"]),
    ("Figures 1, 2 and 5", ["Figure 1", "Figure 2", "Figure 5"]),
    ("Table 2, images", ["Table 2"]),
    ("Section 4.2, Eq. 39", []),
    ("Tables 1, 6 and 7, Figure 5", ["Table 1", "Table 6", "Table 7", "Figure 5"]),
])
def test_exhibits_are_read_from_text(text, found):
    assert exhibits.named(text) == found


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_exhibit_of_a_paper_is_missing(chapter):
    """Each has a caption in the notebook; each number that the paper printed, and each claim, is of a listed exhibit."""
    known = exhibits.exhibits(chapter)
    written = (ROOT / "notebooks" / f"{chapter}.py").read_text()
    led = {exhibit for lead in exhibits.LEAD.findall(re.sub(r'"\s*\n\s*"', "", written)) for exhibit in exhibits.named(lead)}
    assert led == set(known)
    printed = {f"{kind.title()} {number}" for path in tables.PAPERS.glob(f"{chapter}_*.csv")
               for kind, number in re.findall(r"_(table|fig)(\d+)", path.stem)}
    assert {one.replace("Fig ", "Figure ") for one in printed} <= set(known)
    claimed = re.findall(r"^ *exhibit: (.*)$", (tables.PAPERS / f"{chapter}_claims.yaml").read_text(), re.MULTILINE)
    assert {exhibit for text in claimed for exhibit in exhibits.named(text)} <= set(known)


def test_a_row_says_where_at_what_level_and_what_was_found():
    live = exhibits.Shown("quick", {"bayes-table-1": {"caption": "**Table 1 of the paper**: numbers"}},
                          {"bayes-idea": {"caption": "**Figure 1 of the paper**"},
                           "own": {"caption": "Ours, not Table 2 of the paper"}})
    recorded = exhibits.Shown("cpu", {"bayes-table-1": {"caption": "**Tables 1 and 2 of the paper**"}}, {})
    verdict = {"paper": "bayes", "claim": "C5", "exhibit": "Table 1", "verdict": "reproduced", "said": "reproduced",
               "brief": "MATT - MALT: 1 [0, 2]",
               "evidence": "57.0"}
    found = exhibits.index({"bayes": [live, recorded]}, [verdict, {**verdict, "run": "cpu", "claim": "C6"}], "_figures")
    row = {line.split("|")[1].split("<br>")[0].strip(" *"): line for line in found.splitlines() if line.startswith("| **")}
    assert list(row) == list(exhibits.exhibits("bayes"))
    assert all(part in row["Table 1"] for part in ("{numref}`bayes-table-1`", "live at `quick`<br>recorded at `cpu`",
                                                   "C5 **reproduced**: MATT - MALT: 1 [0, 2]", "C5: 57.0"))
    assert "C6" not in found and "![Figure 1 of the paper, as drawn here](_figures/bayes-idea.png)" in row["Figure 1"]
    assert "recorded at `cpu`" in row["Table 2"] and "live" not in row["Table 2"] and "not run" in row["Table 3"]


def test_a_paper_that_nobody_listed_is_named():
    with pytest.raises(MiaError, match="'shokri' has no exhibits .* bayes, calibration"):
        exhibits.exhibits("shokri")
