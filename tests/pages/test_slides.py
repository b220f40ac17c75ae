"""Slides: a deck for each lesson, said with the chapters' own numbers and figures, and nothing of it off the screen."""

import re

import pytest
import yaml
from test_written import loose
from typer.testing import CliRunner

from mia_book import folders
from mia_book.pages import cli, prose, slides
from mia_book.pages.parameters import find_root
from mia_lib.errors import MiaError

ROOT = find_root()
DECKS = sorted(folders.CHAPTERS.glob("*/slides*.md"))
LESSONS = {path.parent.name + path.stem.removeprefix("slides") for path in DECKS}
FACTS = {"calibration": {"0.9", "0.6", "0.05", "0.001"}}  # of an exercise
MINUTES = r"\b[Mm]inutes\s+(\d+)\s+to\s+(\d+)\b"


@pytest.mark.parametrize("path", DECKS, ids=lambda path: path.parent.name + path.stem)
def test_a_deck_types_no_result_has_what_a_speaker_needs_and_says_the_minutes_of_its_plan(path):
    text, head = path.read_text(), yaml.safe_load(slides.HEAD.match(path.read_text())[1])
    made = re.split(r"^---$", slides.HEAD.sub("", text, count=1), flags=re.MULTILINE)
    assert all(slides.NOTES.search(one) or "{ask}" in one for one in made)
    said = [(int(a), int(b)) for a, b in re.findall(MINUTES, text)]
    assert said[-1][1] - said[0][0] == head["minutes"]
    assert all(end == begin for (_, end), (begin, _) in zip(said, said[1:], strict=False))
    plans = {
        plan.split("\n", 1)[0]: plan
        for plan in (ROOT / "book" / "teaching.md").read_text().split("\n## ")
    }
    plan = plans.get(head["lesson"].split(",")[0], "")
    assert plan or path.parent.name == "primer"
    assert [(int(a), int(b)) for a, b in re.findall(r"^\| (\d+)–(\d+) \|", plan, re.MULTILINE)] in (
        [],
        said,
    )
    assert not loose(
        re.sub(MINUTES, " ", slides.HEAD.sub("", text, count=1)), FACTS.get(path.parent.name, ())
    )


@pytest.fixture
def source(tmp_path):
    made = slides._Source({}, tmp_path)
    cell = {"value": 0.25, "low": 0.2, "high": 0.3}
    table = {"columns": ["attack", "AUC"], "rows": [["MALT", cell], ["MAST", 0.5]]}
    made.runs = {
        "tiny": prose.Run(
            "tiny",
            "quick",
            True,
            results={"lead": {"value": 1.5, "spec": ".1f"}},
            figures={"fig-one": "Lead {ours}`lead`"},
            tables={"table-one": table},
        )
    }
    made.pictures = {"fig-one": b"PNG"}
    for folder in (chapter := "mia_book/chapters/tiny", "notebooks"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / chapter / "quiz.yaml").write_text(
        "- asks: Why?\n  options:\n    - {says: So., why: 'Since $x < 1$.', right: true}\n    - {says: Not so., why: Odd.}\n"
    )
    (tmp_path / "_toc.yml").write_text("")
    return made


HEAD = "---\ntitle: Tiny\nlesson: none\nchapter: notebooks/tiny\nminutes: 5\n---\n"


def made(source, text):
    path = source.root / "tiny.md"
    path.write_text(HEAD + text)
    return slides.deck(path, source)["slides"]


def test_a_slide_says_numbers_shows_figures_and_parts_of_tables_and_leads_nowhere(source):
    (one,) = made(
        source,
        "## A slide\n\nIt leads by {ours}`tiny lead`, says {term}`MALT <malt>` {cite:p}`someone2020`.\n\n"
        ":::{picture} fig-one\n:::\n\nNotes:\n\n*Why?* $x < 1$",
    )
    assert "<h2>A slide</h2>" in one.shown
    assert "It leads by 1.5, says MALT" in one.shown
    assert "someone" not in one.shown
    assert 'src="figures/fig-one.png" alt="Lead 1.5"' in one.shown and "Why?" not in one.shown
    assert "<em>Why?</em>" in one.notes and r"\(x &lt; 1\)" in one.notes
    (one,) = made(
        source, "Guess.\n\n:::{rows} table-one\n:rows: MALT\n:columns: AUC\n:step: next\n:::"
    )
    assert "0.250 [0.200, 0.300]" in one.shown
    assert "0.500" not in one.shown
    assert "attack" not in one.shown
    assert 'class="rows fragment"' in one.shown, "what is asked first is shown with the next step"
    (one,) = made(source, ":::{ask} tiny 1\n:::")
    assert one.shown.index("fragment answer") > one.shown.index("Not so.")
    assert "Odd." not in one.shown
    assert "(right): Since" in one.notes and "(no): Odd." in one.notes, (
        "reasons are for the speaker"
    )


@pytest.mark.parametrize(
    "text, said",
    [
        (":::{picture} fig-on\n:::", "no figure 'fig-on'; the nearest is 'fig-one'"),
        (":::{rows} table-one\n:rows: MATT\n:::", "no row of table-one 'MATT'"),
        (":::{ask} tiny 2\n:::", "has questions 1 to 1, and no '2'"),
        (":::{shown} fig-one\n:::", "is unknown here; there are picture, rows and ask"),
        (":::{picture} fig-one\nA caption.\n:::", "text where options belong"),
        ("See {ref}`there <bayes-claims>` and {doc}`/book/game`.", "leads nowhere from a slide"),
    ],
)
def test_what_no_chapter_has_is_refused_with_the_slide(source, text, said):
    with pytest.raises(MiaError) as refused:
        made(source, f"# First\n\n---\n\n{text}")
    assert said in str(refused.value) and "slide 2" in str(refused.value)


def test_a_deck_without_its_head_and_a_book_that_was_not_built_are_refused(source, tmp_path):
    (path := source.root / "tiny.md").write_text("# A slide\n")
    with pytest.raises(
        MiaError, match="tiny.md: the head has .*; it needs chapter, lesson, minutes, title"
    ):
        slides.deck(path, source)
    with pytest.raises(MiaError, match="was not run at preset 'smoke'.*mia build --preset smoke"):
        slides.build("smoke", root=ROOT, folder=tmp_path)


def test_quizzes_need_no_built_book_and_leave_decks_alone(tmp_path):
    (out := tmp_path / "slides").mkdir()
    (out / "bayes.html").write_text("a deck")
    assert slides.quizzes(root=ROOT, folder=tmp_path) == out / "quiz.html"
    texts = {path.stem: path.read_text() for path in out.glob("*.html")}
    assert set(texts) == {"quiz", "answers", "bayes"} and texts["bayes"] == "a deck"
    for text in (texts["quiz"], texts["answers"]):
        titles = re.findall("<h2>(.*?)</h2>", text)
        assert titles[:2] == ["Prerequisites", title_of("primer")] and len(titles) == 10
        for one in re.findall(r'(?:src|href)="([^"#]+)"', text):
            assert (out / one).is_file()
    questions = sum(len(prose.quiz_questions(name)) for name in folders.find("quiz.yaml"))
    assert texts["answers"].count("</strong> is right") == questions


def test_who_looks_for_what_a_class_needs_is_told_of_slides():
    said = CliRunner().invoke(cli.app, ["course", "-h"]).output
    assert "`mia slides` makes slides of the lessons" in said


def title_of(name):
    return slides._head(folders.CHAPTERS / name / "slides.md")[0]["title"]


@pytest.fixture(scope="module")
def folder(built_book):
    """The decks of the built book."""
    return slides.build(root=ROOT, folder=built_book.parents[2]).parent


@pytest.mark.book
def test_decks_hold_all_that_they_show(folder):
    texts = {path.stem: path.read_text() for path in folder.glob("*.html")}
    assert set(texts) == {*LESSONS, "index", "quiz", "answers"}
    for name, text in texts.items():
        wanted = [
            one
            for one in re.findall(r'(?:src|href)="([^"#]+)"', text)
            if not one.startswith("../book/")
        ]
        assert all((folder / one).is_file() for one in wanted)
        assert not re.search(r"https?:|\{(?:ours|says|printed|param|term|numref)\}|:::", text), name
    questions = sum(len(prose.quiz_questions(name)) for name in folders.find("quiz.yaml"))
    assert "</strong> is right" not in texts["quiz"]
    assert texts["answers"].count("</strong> is right") == questions


OFF = """() => {
  const slide = Reveal.getCurrentSlide(), frame = slide.getBoundingClientRect();
  return [...slide.querySelectorAll(":is(h1, h2, p, li, table, img, pre, svg)")].filter(
    one => !one.closest("aside") && (one.tagName !== "svg" || !one.parentElement.closest("svg"))).map(
    one => [one, one.getBoundingClientRect()]).filter(
    ([one, box]) => box.width && (box.right > frame.right + 2 || box.left < frame.left - 2
      || box.bottom > innerHeight - 20)).map(
    ([one]) => `${one.tagName} ${one.textContent.slice(0, 40)}`).concat(
    [...slide.querySelectorAll("mjx-merror, [data-mjx-error]")].map(one => one.textContent));
}"""


@pytest.mark.book
@pytest.mark.browser
def test_nothing_stands_off_a_slide_nothing_is_asked_of_the_network_and_the_speaker_sees_notes(
    browser, folder
):
    with browser.new_context(
        viewport={"width": 1280, "height": 720}, color_scheme="dark"
    ) as context:
        asked, failed = [], []
        context.on(
            "request",
            lambda one: None if one.url.startswith(("file:", "data:")) else asked.append(one.url),
        )
        page = context.new_page()
        page.on("pageerror", lambda error: failed.append(str(error)))
        for name in sorted(LESSONS):
            page.goto((folder / f"{name}.html").as_uri())
            page.wait_for_function("document.documentElement.dataset.ready !== undefined")
            assert (
                page.evaluate("getComputedStyle(document.body).backgroundColor")
                == "rgb(18, 22, 29)"
            )
            off = {}
            for number in range(page.evaluate("Reveal.getTotalSlides()")):
                page.evaluate(f"Reveal.slide({number}, 0, 9)")
                off[number + 1] = page.evaluate(OFF)
            assert not any(off.values()), (name, off)
        assert not asked and not failed
        page.goto((folder / "bayes.html").as_uri())
        page.wait_for_function("document.documentElement.dataset.ready !== undefined")
        with context.expect_page() as opened:  # what the speaker sees
            page.keyboard.press("s")
        notes = opened.value.locator(".speaker-controls-notes .value")
        notes.get_by_text("Before the lesson").wait_for()
