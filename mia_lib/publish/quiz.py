"""Quizzes: questions with their options and the reasons for and against each, from one file a page.

`book/quiz/NAME.yaml` is a list of questions; `says` and `asks` are plain text, `why` is MyST:

    - asks: What was asked?
      options:
        - says: A misconception.
          why: What is wrong with it.
        - says: The answer.
          right: true
          why: What makes it right.

The page (`:::{quiz} NAME`), the slides and the sheet to print are made of it. On the page every option is a fold of its own,
so that whoever chooses one reads the reason for that one; it needs no script.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, BeforeValidator, Field, field_validator

from mia_lib.errors import MiaError
from mia_lib.publish import templates
from mia_lib.publish.parameters import find_root, validated

FOLDER = "book/quiz"
FENCE = re.compile(r"^(:{3,})\{quiz\} *(\S+) *\n\1 *$", re.MULTILINE)
NOT_PLAIN = re.compile(r"\$|\{(?!ours|param|printed)\w+\}`|\]\(|[<>]")  # what a summary cannot hold: it is one button
LETTERS = "ABCDE"
Line = Annotated[str, BeforeValidator(lambda text: " ".join(str(text or "").split())), Field(min_length=1)]


class Option(BaseModel, extra="forbid"):
    """An answer to choose: its text, the reason for or against it, and whether it is the right one."""

    says: Line
    why: Line
    right: bool = False

    @field_validator("says")
    @classmethod
    def _plain(cls, text: str) -> str:
        if markup := NOT_PLAIN.search(text):
            raise ValueError(f"{markup[0]!r} in {text!r}: what is chosen is plain text, since it is a button. Write "
                             "mathematics in words or with letters such as λ, and leave links to `why`.")
        return text


class Question(BaseModel, extra="forbid"):
    """A question and its options, one of them right."""

    asks: Line
    options: list[Option] = Field(min_length=2, max_length=len(LETTERS))

    @field_validator("options")
    @classmethod
    def _one_is_right(cls, options: list[Option]) -> list[Option]:
        if (rights := sum(option.right for option in options)) != 1:
            raise ValueError(f"{rights} right options: exactly one needs `right: true`.")
        return options

    @property
    def answer(self) -> int:
        """Place of the right option."""
        return [option.right for option in self.options].index(True)


def load(name: str, root: Path | None = None) -> list[Question]:
    """The questions of a page.

    Args:
        name: of the file, without its ending.
        root: folder of the book.

    Raises:
        MiaError: no such file; a question without text, without two to five options, or without exactly one right one; an
            option without a reason, or with mathematics, links or roles in its text, which is a button.
    """
    path = find_root(root) / FOLDER / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml"))) or "none"
        raise MiaError(f"there is no quiz {name!r}: {FOLDER} has {known}.")
    return [validated(Question, question, f"{path.name}, question {number}") for number, question in enumerate(
        yaml.safe_load(path.read_text(encoding="utf-8")), 1)]


def page(questions: list[Question]) -> str:
    """Questions in MyST Markdown, each option a fold with its reason."""
    return templates.render("quiz.md", questions=questions, letters=LETTERS).strip()


def shown(text: str, where: str, root: Path | None = None) -> str:
    """A page with its quizzes in place of `:::{quiz} NAME`.

    Raises:
        MiaError: what `load` refuses, with the page.
    """
    def quiz(fence: re.Match) -> str:
        try:
            return page(load(fence[2], root))
        except MiaError as error:
            raise MiaError(f"{where}: {error}") from None

    return FENCE.sub(quiz, text)
