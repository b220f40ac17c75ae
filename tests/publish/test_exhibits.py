import io
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from mia_lib.errors import MiaError
from mia_lib.evidence import claims, pictures, tables
from mia_lib.publish import exhibits
from mia_lib.publish.parameters import find_root, notebooks

ROOT = find_root()
CHAPTERS = [name for name in notebooks(ROOT) if name in exhibits.papers()]


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


def test_every_paper_whose_numbers_are_here_has_its_exhibits_listed():
    assert {path.stem.split("_", 1)[0] for path in tables.PAPERS.glob("*_table*.csv")} <= set(exhibits.papers())
    assert set(exhibits.papers()) <= set(notebooks(ROOT))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_says_how_its_run_differs_from_the_paper(chapter):
    text = "\n".join(line.removeprefix("# ") for line in (ROOT / "notebooks" / f"{chapter}.py").read_text().splitlines())
    differ = exhibits.differences(text)
    assert differ and all(one.about and one.paper and one.here and one.gap for one in differ)
    assert {exhibit for one in differ for exhibit in exhibits.named(one.about)} <= set(exhibits.exhibits(chapter))


PAGE = """### Where this run differs from the paper

| exhibit | the paper | this run | to close the gap |
| --- | --- | --- | --- |
| Table 1 | truck and ship | shirts | `--preset cpu` |
| Tables 1 to 3 | all | some | `--preset paper` |
| Figure 1 | the size | the same | nothing |
| network | large | small | `--preset paper` |

### The next part

| Table 9 | not | of | this |
"""
VERDICT = {"paper": "bayes", "claim": "C5", "exhibit": "Table 1", "verdict": "reproduced", "reason": "",
           "brief": "MATT - MALT: 1 [0, 2]", "evidence": "57.0", "kind": "paper"}
NUMBERS = tables.plain_table(pd.DataFrame({
    "n": [100, 400], "0-1": [tables.Cell("57.2", 57.2), tables.Cell("51.9 / 52.1", 51.9, paper=52.1)],
    "MATT, peak": [tables.Cell("62.1", 62.1), tables.Cell("54.3 [54.0, 55.0] / 57.0", 54.3, 54.0, 55.0, 57.0)]}), "tab", "")


def rows_of(run, verdicts=()):
    """Exhibit -> the line of the index."""
    found = exhibits.index({"bayes": run}, verdicts, "_figures/small")
    return {line.split("**")[1]: line for line in found.splitlines() if line.startswith("| <span")}


def test_a_row_says_where_at_what_level_and_what_was_found():
    live = exhibits.Shown("quick", {"bayes-table-1": {**NUMBERS, "caption": "**Table 1 of the paper**: numbers"}},
                          {"bayes-idea": {"caption": "**Figure 1 of the paper**"},
                           "own": {"caption": "Ours, not Table 2 of the paper"}}, exhibits.differences(PAGE))
    rows = rows_of(live, [VERDICT])
    assert list(rows) == list(exhibits.exhibits("bayes"))
    assert all(part in rows["Table 1"] for part in (
        "{numref}`bayes-table-1`", "at a fraction<br>", "here shirts; the paper truck and ship",
        "**54.3 [54.0, 55.0]**<br>the paper: 57.0", "n = 400, MATT, peak",
        'href="scorecard.html#bayes-C5"', "verdict-reproduced"))
    assert "![Figure 1 of the paper, as drawn here](_figures/small/bayes-idea.png)" in rows["Figure 1"]
    assert "at the paper's size" in rows["Figure 1"]
    assert "not run" in rows["Table 3"] and "to close the gap: `--preset paper`" in rows["Table 3"]
    assert exhibits.pictures({"bayes": live, "compare": live}) == ["bayes-idea"]


def test_what_was_not_run_says_why_by_its_claims_and_what_has_no_numbers_shows_those_of_the_first_claim():
    shown = exhibits.Shown("quick", {}, {"f": {"caption": "**Figure 1 of the paper**"}})
    verdicts = [{**VERDICT, "exhibit": "Figure 1", "kind": "ours", "claim": "C6"},
                {**VERDICT, "exhibit": "Figure 1", "brief": "2.0 [1.9, 2.1]", "evidence": "histograms"},
                {**VERDICT, "exhibit": "Table 3", "verdict": claims.NOT_RUN, "brief": "", "reason": "ImageNet is not here"}]
    rows = rows_of(shown, verdicts)
    assert "**2.0 [1.9, 2.1]**<br>the paper: histograms" in rows["Figure 1"], "the paper's claims come first"
    assert "ImageNet is not here" in rows["Table 3"] and "verdict-not-run" in rows["Table 3"]
    assert "shown |" in rows["Figure 1"], "where a chapter says nothing of differences"


def test_a_chapter_about_no_paper_has_no_section():
    assert exhibits.index({"compare": exhibits.Shown("quick", {}, {})}, [], "_figures") == ""


BESIDE = {"columns": ["attack", "A: AUC", "A: TPR", "paper, MNIST"],
          "rows": [["LOSS", "0.5 [0.4, 0.6]\n1.0", {"text": "2", "value": 2}, "0.51\n3"],
                   ["IHA", "0.6 [0.5, 0.7]\n2.0", "words", "0.54\n4"], ["ours", 0.7, 1, "–"]]}
BELOW = {"columns": ["case", "size", "IHA"],
         "rows": [["credit", {"text": "0.2", "value": 0.2}, {"value": 0.61, "low": 0.6, "high": 0.7}],
                  ["", {"text": "0.4", "value": 0.4}, tables.BELOW_RESOLUTION], ["paper: Purchase, MLP", "0.2", "0.79\n1"]]}


@pytest.mark.parametrize("table, wanted, found", [
    (NUMBERS, "", ("n = 400, 0-1", "51.9", "52.1", "")),
    (NUMBERS, "400 | MATT, peak", ("n = 400, MATT, peak", "54.3 [54.0, 55.0]", "57.0", "")),
    (NUMBERS, "100 | *", None), ({"columns": ["a"], "rows": [["not run / 57.0"], ["93.5 / 84.5"]]}, "", None),
    (BESIDE, "IHA | : AUC | paper, MNIST", ("IHA, A: AUC", "0.6 [0.5, 0.7]", "0.54", "MNIST")),
    (BESIDE, "* | : TPR | paper, MNIST", ("LOSS, A: TPR", "2", "0.51", "MNIST")), (BESIDE, "ours | * | paper, MNIST", None),
    (BESIDE, "IHA | : TPR | paper, MNIST", None),
    (BESIDE, "IHA | * | paper, CIFAR", None), (BESIDE, "", None),
    (BELOW, "* | IHA | paper: Purchase", ("credit, IHA", "0.610", "0.79", "Purchase, MLP")),
    (BELOW, "0.4 | IHA | paper: Purchase", None),
    (BELOW, "0.2 | IHA | paper: Purchase", ("credit, 0.2, IHA", "0.610", "0.79", "Purchase, MLP"))])
def test_the_key_number_stands_beside_one_of_the_papers(table, wanted, found):
    assert exhibits.key_number(table, wanted) == found


def png(size, noise=0):
    pixels = np.full((*size[::-1], 3), 255, np.uint8)
    pixels[:, : size[0] // 2] = 0
    if noise:
        pixels = np.random.default_rng(0).integers(0, 256, pixels.shape, np.uint8)
    made = io.BytesIO()
    Image.fromarray(pixels).save(made, "PNG")
    return made.getvalue()


@pytest.mark.parametrize("size, noise", [((1600, 900), 0), ((900, 1600), 1), ((100, 50), 0)])
def test_thumbnails_are_small_in_pixels_and_bytes_and_keep_their_shape(size, noise):
    small = pictures.thumbnail(png(size, noise))
    picture = Image.open(io.BytesIO(small))
    assert len(small) <= pictures.LIMIT or noise and len(small) < 40_000, "noise has no picture in few colours"
    assert picture.width <= pictures.THUMBNAIL
    assert picture.width / picture.height == pytest.approx(size[0] / size[1], rel=0.02)


@pytest.mark.parametrize("title", ["Short", "A title that is far too long to stand on one line of a card in large letters"])
def test_a_card_has_the_size_that_is_asked_for_and_holds_title_and_figure(title):
    card = np.asarray(Image.open(io.BytesIO(pictures.card(png((800, 400)), title))).convert("L"))
    assert card.shape == pictures.CARD[::-1]
    assert (card[:12] < 200).all() and (card[20:pictures.HEAD] < 100).any(), "bar and title"
    assert (card[:, -pictures.MARGIN // 2:][20:] > 200).all(), "nothing runs over the edge"
    assert (card[pictures.HEAD + 50:] < 50).any(), "the figure"


def test_a_paper_that_nobody_listed_is_named():
    with pytest.raises(MiaError, match="'shokri' has no exhibits .* bayes, calibration"):
        exhibits.exhibits("shokri")
