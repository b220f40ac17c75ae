"""Slides: a deck for each lesson, said with the chapters' own numbers and figures, and nothing of it off the screen."""

from __future__ import annotations

import re

import pytest
import yaml
from test_written import loose

from mia_lib.errors import MiaError
from mia_lib.publish import prose, slides
from mia_lib.publish.parameters import find_root

ROOT = find_root()
DECKS = sorted((ROOT / slides.FOLDER).glob("*.md"))
LESSONS = {"primer", "bayes", "bayes-theory", "calibration", "curvature", "iha", "quantile", "compare", "audit"}
FEWEST, MOST = 8, 14
FACTS = {"calibration": {"0.9", "0.6", "0.05", "0.001"}}  # of an exercise
WRONG = "Usual wrong answer"


def parts(path):
    return re.split(r"^---$", slides.HEAD.sub("", path.read_text(), count=1), flags=re.MULTILINE)


def test_every_lesson_has_a_deck():
    assert {path.stem for path in DECKS} == LESSONS


@pytest.mark.parametrize("path", DECKS, ids=lambda path: path.stem)
def test_a_deck_has_what_a_speaker_needs(path):
    made = parts(path)
    assert FEWEST <= len(made) <= MOST
    with_notes = [slides.NOTES.split(one, maxsplit=1)[1] for one in made if slides.NOTES.search(one)]
    asked = [one for one in made if "{ask}" in one]
    assert len(with_notes) + len(asked) == len(made), "a slide has notes, or those of its question"
    assert sum(WRONG in one for one in with_notes) >= 3 and 2 <= len(asked) <= 4
    assert sum("{picture}" in one for one in made) >= 2


@pytest.mark.parametrize("path", DECKS, ids=lambda path: path.stem)
def test_a_deck_says_the_minutes_of_its_plan(path):
    """They follow one another, last as long as its head says, and are the rows of the plan of that lesson."""
    head = yaml.safe_load(slides.HEAD.match(path.read_text())[1])
    said = [(int(a), int(b)) for a, b in re.findall(r"\b[Mm]inutes\s+(\d+)\s+to\s+(\d+)\b", path.read_text())]
    assert said[-1][1] - said[0][0] == head["minutes"]
    assert all(end == begin for (_, end), (begin, _) in zip(said, said[1:], strict=False))
    plans = {plan.split("\n", 1)[0]: plan for plan in (ROOT / "book" / "teaching.md").read_text().split("\n## ")}
    plan = plans.get(head["lesson"].split(",")[0], "")
    assert plan or path.stem == "primer"
    rows = [(int(a), int(b)) for a, b in re.findall(r"^\| (\d+)–(\d+) \|", plan, re.MULTILINE)]
    assert rows in ([], said)


@pytest.mark.parametrize("path", DECKS, ids=lambda path: path.stem)
def test_a_deck_types_no_result(path):
    text = slides.HEAD.sub("", path.read_text(), count=1)
    text = re.sub(r"\b[Mm]inutes\s+\d+\s+to\s+\d+\b", " ", text)
    assert not loose(text, FACTS.get(path.stem, ()))


def run() -> prose.Run:
    cell = {"value": 0.25, "low": 0.2, "high": 0.3}
    return prose.Run("tiny", "quick", True, results={"lead": {"value": 1.5, "spec": ".1f"}},
                     figures={"fig-one": "Lead {ours}`lead`"}, tables={
                         "table-one": {"columns": ["attack", "AUC"], "rows": [["MALT", cell], ["MAST", 0.5]]}})


@pytest.fixture
def source(tmp_path):
    made = slides._Source({}, tmp_path)
    made.runs, made.pictures = {"tiny": run()}, {"fig-one": b"PNG"}
    folder = tmp_path / prose.QUIZZES
    folder.mkdir(parents=True)
    (folder / "tiny.yaml").write_text(
        "- asks: Why?\n  options:\n    - {says: So., why: 'Since $x < 1$.', right: true}\n    - {says: Not so., why: Odd.}\n")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_toc.yml").write_text("")
    return made


HEAD = "---\ntitle: Tiny\nlesson: none\nchapter: notebooks/tiny\nminutes: 5\n---\n"


def made(source, text):
    path = source.root / "tiny.md"
    path.write_text(HEAD + text)
    return slides.deck(path, source)["slides"]


def test_a_slide_says_numbers_shows_figures_and_leads_nowhere(source):
    (one,) = made(source, "## A slide\n\nIt leads by {ours}`tiny lead`, says {term}`MALT <malt>` {cite:p}`someone2020`.\n\n"
                          ":::{picture} fig-one\n:::\n\nNotes:\n\n*Why?* $x < 1$")
    assert "<h2>A slide</h2>" in one.shown and "It leads by 1.5, says MALT" in one.shown and "someone" not in one.shown
    assert 'src="figures/fig-one.png" alt="Lead 1.5"' in one.shown and "Why?" not in one.shown
    assert "<em>Why?</em>" in one.notes and r"\(x &lt; 1\)" in one.notes


def test_a_table_is_shown_in_part(source):
    (one,) = made(source, ":::{rows} table-one\n:rows: MALT\n:columns: AUC\n:::")
    assert "0.250 [0.200, 0.300]" in one.shown and "0.500" not in one.shown and "attack" not in one.shown


def test_what_is_asked_first_is_shown_with_the_next_step(source):
    (one,) = made(source, "Guess.\n\n:::{rows} table-one\n:step: next\n:::")
    assert 'class="rows fragment"' in one.shown


def test_a_question_keeps_its_answer_for_the_next_step_and_its_reasons_for_the_speaker(source):
    (one,) = made(source, ":::{ask} tiny 1\n:::")
    assert one.shown.count("<li") == 2 and '<li class=right><p>So.</p>' in one.shown
    assert one.shown.index("fragment answer") > one.shown.index("Not so.") and "Odd." not in one.shown
    assert "(right): Since" in one.notes and "(no): Odd." in one.notes


@pytest.mark.parametrize("text, said", [
    (":::{picture} fig-on\n:::", "no figure 'fig-on'; the nearest is 'fig-one'"),
    (":::{rows} table-two\n:::", "no table 'table-two'"),
    (":::{rows} table-one\n:rows: MATT\n:::", "no row of table-one 'MATT'"),
    (":::{rows} table-one\n:columns: TPR\n:::", "no column of table-one 'TPR'"),
    (":::{ask} tiny 2\n:::", "has questions 1 to 1, and no '2'"),
    (":::{ask} tinny 1\n:::", "no quiz 'tinny'"),
    (":::{shown} fig-one\n:::", "is unknown here; there are picture, rows and ask"),
    (":::{picture} fig-one\nA caption.\n:::", "text where options belong"),
    ("See {ref}`there <bayes-claims>` and {doc}`/book/game`.", "leads nowhere from a slide"),
    ("It is {ours}`tiny led`.", "the nearest is 'lead'"),
])
def test_what_no_chapter_has_is_refused_with_the_slide(source, text, said):
    with pytest.raises(MiaError) as refused:
        made(source, f"# First\n\n---\n\n{text}")
    assert said in str(refused.value) and "slide 2" in str(refused.value)


def test_a_deck_without_its_head_is_refused(source):
    path = source.root / "tiny.md"
    path.write_text("# A slide\n")
    with pytest.raises(MiaError, match="tiny.md: the head has .*; it needs chapter, lesson, minutes, title"):
        slides.deck(path, source)


def test_slides_of_a_book_that_was_not_built_are_refused(tmp_path):
    with pytest.raises(MiaError, match="was not run at preset 'smoke'.*mia build --preset smoke"):
        slides.build("smoke", root=ROOT, folder=tmp_path)


@pytest.fixture(scope="module")
def folder(built_book):
    """The decks of the built book."""
    return slides.build(root=ROOT, folder=built_book.parents[2]).parent


@pytest.mark.book
def test_decks_hold_all_that_they_show(folder):
    for path in folder.glob("*.html"):
        text = path.read_text()
        wanted = re.findall(r'(?:src|href)="([^"#]+)"', text)
        assert all((folder / one).is_file() for one in wanted if not one.startswith("../book/"))
        assert not re.search(r"https?:|\{(?:ours|says|printed|param|term|numref)\}|:::", text), path.name
    assert {path.stem for path in folder.glob("*.html")} == {*LESSONS, "index", "quiz", "answers"}
    asked, answered = ((folder / name).read_text() for name in ("quiz.html", "answers.html"))
    questions = sum(len(prose.quiz_questions(path.stem)) for path in (ROOT / prose.QUIZZES).glob("*.yaml"))
    assert "</strong> is right" not in asked and answered.count("</strong> is right") == questions


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
def test_nothing_stands_off_a_slide_and_nothing_is_asked_of_the_network(browser, folder):
    with browser.new_context(viewport={"width": 1280, "height": 720}, color_scheme="dark") as context:
        asked, failed = [], []
        context.on("request", lambda one: None if one.url.startswith(("file:", "data:")) else asked.append(one.url))
        page = context.new_page()
        page.on("pageerror", lambda error: failed.append(str(error)))
        for name in sorted(LESSONS):
            page.goto((folder / f"{name}.html").as_uri())
            page.wait_for_function("document.documentElement.dataset.ready !== undefined")
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 29)"
            off = {}
            for number in range(page.evaluate("Reveal.getTotalSlides()")):
                page.evaluate(f"Reveal.slide({number}, 0, 9)")
                off[number + 1] = page.evaluate(OFF)
            assert not any(off.values()), (name, off)
        assert not asked and not failed


@pytest.mark.book
@pytest.mark.browser
def test_the_speaker_sees_notes_and_the_next_slide_without_a_server(browser, folder):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto((folder / "bayes.html").as_uri())
        page.wait_for_function("document.documentElement.dataset.ready !== undefined")
        with context.expect_page() as opened:
            page.keyboard.press("s")
        notes = opened.value.locator(".speaker-controls-notes .value")
        notes.get_by_text("Before the lesson").wait_for()
        page.keyboard.press("ArrowRight")
        notes.get_by_text("What did the second attacker do differently?").wait_for()
