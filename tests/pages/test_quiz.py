"""Quizzes: five questions, one right option each, a reason for every option, and nothing that a run could contradict."""

import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from test_written import FACTS, loose

from mia_book import folders
from mia_book.pages import prose
from mia_book.pages.parameters import find_root
from mia_lib.errors import MiaError

ROOT = find_root()
NAMES = sorted(folders.find("quiz.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_a_quiz_has_its_questions_a_reason_for_every_option_and_types_no_result(name):
    questions = prose.quiz_questions(name)
    assert len(questions) >= 5 and len({question.answer for question in questions}) >= 3, (
        "the letter does not tell"
    )
    for question in questions:
        says = [option.says for option in question.options]
        assert len(set(says)) == len(says) >= 3
        for text in [question.asks, *says, *(option.why for option in question.options)]:
            assert not loose(text, FACTS.get(name, ())), text
    longest = sum(
        max(question.options, key=lambda option: len(option.says)).right for question in questions
    )
    assert longest <= 3, "nor does the length"


def test_on_the_page_each_option_opens_by_itself_without_a_script_and_a_reason_may_name_a_result():
    text = prose.prose("Before.\n\n:::{quiz} bayes\n:::\n\nAfter.", "a page")
    page = BeautifulSoup(MarkdownIt("commonmark").render(text), "html.parser")
    folds = page.select("details.mia-option")
    assert len(folds) == sum(len(question.options) for question in prose.quiz_questions("bayes"))
    assert not any(fold.has_attr("open") or fold.select("summary :is(a, p)") for fold in folds)
    assert [fold.p.strong.text for fold in folds if fold.p.strong.text != "No."] == ["Right."] * 5
    assert text.startswith("Before.") and text.endswith("After.") and not page.select("script")
    run = prose.Run("tiny", "quick", True, results={"lead": {"value": 0.25, "spec": ".2f"}})
    asked = prose.quiz_page(
        [
            prose.Question(
                asks="Why?",
                options=[
                    prose.Option(says="So.", why="It leads by {ours}`lead`.", right=True),
                    prose.Option(says="Not so.", why="No."),
                ],
            )
        ]
    )
    assert "It leads by 0.25." in prose.prose(asked, "a page", run)


GOOD = (
    "- asks: Why?\n  options:\n    - {says: So., why: For this reason., right: true}\n"
    "    - {says: Not so., why: For another.}\n"
)


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("right: true", "right: false", "0 right options: exactly one"),
        ("asks:", "question:", "asks: Field required"),
        ("For another.}", "For another., right: true}", "2 right options: exactly one"),
        ("why: For another.", "why: ''", "options.1.why = '': "),
        ("says: Not so.", "says: $x$", "plain text, since it is a button"),
        ("    - {says: Not so., why: For another.}\n", "", "List should have at least 2 items"),
    ],
)
def test_a_quiz_that_cannot_be_asked_is_refused_with_its_question(tmp_path, old, new, said):
    (folder := tmp_path / "mia_book" / "chapters" / "tiny").mkdir(parents=True)
    (tmp_path / "_toc.yml").write_text("")
    (tmp_path / "notebooks").mkdir()
    (folder / "quiz.yaml").write_text(GOOD)
    assert len(prose.quiz_questions("tiny", tmp_path)) and old in GOOD
    (folder / "quiz.yaml").write_text(GOOD.replace(old, new))
    with pytest.raises(MiaError, match="quiz tiny, question 1: ") as refused:
        prose.quiz_questions("tiny", tmp_path)
    assert said in str(refused.value)
    with pytest.raises(MiaError, match="a page: quiz = 'tinny'"):
        prose.quiz_questions("tinny", tmp_path, "a page: ")


def test_right_answers_are_spread_evenly_and_the_same_each_time():
    answers = [
        [question.answer for question in prose.quiz_questions(name)]
        for name in NAMES
        for _ in range(2)
    ]
    assert answers[::2] == answers[1::2]
    counted = [sum(answers[::2], []).count(place) for place in range(3)]
    assert max(counted) - min(counted) <= len(NAMES)
    assert all(max(map(one.count, one)) <= -(-len(one) // 3) for one in answers)
