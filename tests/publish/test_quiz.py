"""Quizzes: five questions, one right option each, a reason for every option, and nothing that a run could contradict."""

import re

import pytest
from test_written import CHAPTERS, FACTS, loose

from mia_lib.errors import MiaError
from mia_lib.publish import prose
from mia_lib.publish.parameters import find_root

ROOT = find_root()
NAMES = sorted(path.stem for path in (ROOT / prose.QUIZZES).glob("*.yaml"))
QUESTIONS, SEEN = {"prerequisites": 6}, 300  # five elsewhere; words that stand on the page before anything is opened
OF_A_RUN = re.compile(r"\b(?:this run|our|ours|we (?:find|measure|see)|in the (?:table|figure))\b", re.IGNORECASE)


def words(text):
    return len(re.findall(r"[A-Za-z][\w'’-]*", text))


@pytest.mark.parametrize("name", NAMES)
def test_a_quiz_has_its_questions_each_with_one_right_option_and_a_reason_for_all(name):
    questions = prose.quiz_questions(name)
    assert len(questions) == QUESTIONS.get(name, 5)
    for question in questions:
        assert len(question.options) >= 3 and len({option.says for option in question.options}) == len(question.options)
        assert all(words(option.why) >= 6 for option in question.options), question.asks
    assert len({question.answer for question in questions}) >= 3, "whoever always takes the same letter knows nothing"


@pytest.mark.parametrize("name", NAMES)
def test_the_right_option_is_not_told_by_its_length(name):
    longest = [max(question.options, key=lambda option: len(option.says)).right for question in prose.quiz_questions(name)]
    assert sum(longest) <= 3, "the longest option must not always be right"


@pytest.mark.parametrize("name", NAMES)
def test_a_quiz_says_what_no_run_changes_or_asks_the_run(name):
    for question in prose.quiz_questions(name):
        for text in [question.asks, *(part for option in question.options for part in (option.says, option.why))]:
            assert not loose(text, FACTS.get(name, ())), text
            assert not OF_A_RUN.search(text) or prose.ROLE.search(text), f"a result without its role: {text}"


@pytest.mark.parametrize("name", NAMES)
def test_what_stands_open_is_read_in_two_minutes(name):
    """The main line of a chapter is counted without its quiz, so that is counted here; the reasons are folded."""
    seen = " ".join(part for question in prose.quiz_questions(name)
                    for part in (question.asks, *(option.says for option in question.options)))
    assert words(seen) <= SEEN


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_asks_its_own_questions_before_what_is_in_depth(name):
    source = (ROOT / "notebooks" / f"{name}.py").read_text()
    main, _, _ = source.partition("# ## In more depth\n")
    assert re.findall(r"^# :::\{quiz\} (\S+)$", source, re.MULTILINE) == [name] and f"{{quiz}} {name}\n" in main


def test_on_the_page_each_option_opens_by_itself_and_without_a_script():
    from bs4 import BeautifulSoup
    from markdown_it import MarkdownIt

    text = prose.prose("Before.\n\n:::{quiz} bayes\n:::\n\nAfter.", "a page")
    page = BeautifulSoup(MarkdownIt("commonmark").render(text), "html.parser")
    folds = page.select("details.mia-option")
    assert len(folds) == sum(len(question.options) for question in prose.quiz_questions("bayes"))
    assert not any(fold.has_attr("open") or fold.select("summary :is(a, p)") for fold in folds)
    right = [fold for fold in folds if fold.p.strong.text == "Right."]
    assert len(right) == 5 and all(fold.p.strong.text in ("Right.", "No.") for fold in folds)
    assert text.startswith("Before.") and text.endswith("After.") and not page.select("script")


def test_a_reason_may_name_a_result_of_the_run():
    run = prose.Run("tiny", "quick", True, results={"lead": {"value": 0.25, "spec": ".2f"}})
    asked = prose.quiz_page([prose.Question(asks="Why?", options=[
        prose.Option(says="So.", why="It leads by {ours}`lead`.", right=True), prose.Option(says="Not so.", why="No.")])])
    assert "It leads by 0.25." in prose.prose(asked, "a page", run)


GOOD = """
- asks: Why?
  options:
    - {says: So., why: For this reason., right: true}
    - {says: Not so., why: For another.}
"""


@pytest.mark.parametrize("change, said", [
    (("right: true", "right: false"), "0 right options: exactly one"),
    (("For another.}", "For another., right: true}"), "2 right options: exactly one"),
    (("why: For another.", "why: ''"), "options.1.why: "),
    (("says: Not so.", "says: $x$"), "plain text, since it is a button"),
    (("says: Not so.", "says: '{term}`member`'"), "plain text, since it is a button"),
    (("asks:", "question:"), "asks: Field required"),
    (("right: true", "rigth: true"), "options.0.rigth: "),
    (("    - {says: Not so., why: For another.}\n", ""), "options: List should have at least 2 items"),
])
def test_a_quiz_that_cannot_be_asked_is_refused_with_its_question(tmp_path, change, said):
    folder = tmp_path / prose.QUIZZES
    folder.mkdir(parents=True)
    (tmp_path / "_toc.yml").write_text("")
    (folder / "tiny.yaml").write_text(GOOD)
    (tmp_path / "notebooks").mkdir()
    assert prose.quiz_questions("tiny", tmp_path)[0].answer == 0
    assert change[0] in GOOD
    (folder / "tiny.yaml").write_text(GOOD.replace(*change))
    with pytest.raises(MiaError, match="tiny.yaml, question 1: ") as refused:
        prose.quiz_questions("tiny", tmp_path)
    assert said in str(refused.value)
    with pytest.raises(MiaError, match="a page: there is no quiz 'tinny': book/quiz has tiny"):
        prose.quiz_questions("tinny", tmp_path, "a page: ")
