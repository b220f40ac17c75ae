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
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from mia_lib.errors import MiaError
from mia_lib.publish.parameters import find_root

FOLDER = "book/quiz"
ASKED = re.compile(r"^(:{3,})\{quiz\} *(\S+) *\n\1 *$", re.MULTILINE)
PLAIN = re.compile(r"\$|\{(?!ours|param|printed|verdict)\w+\}`|\]\(|[<>]")  # what a summary cannot hold: it is one button
LETTERS = "ABCDE"
KEYS = {"asks", "options"}, {"says", "why", "right"}


@dataclass(frozen=True)
class Option:
    """An answer to choose: its text, the reason for or against it, and whether it is the right one."""

    says: str
    why: str
    right: bool


@dataclass(frozen=True)
class Question:
    """A question and its options, one of them right."""

    asks: str
    options: tuple[Option, ...]

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
        known = ", ".join(sorted(one.stem for one in path.parent.glob("*.yaml"))) or "none"
        raise MiaError(f"there is no quiz {name!r}: {FOLDER} has {known}.")
    return _read(path)


@cache
def _of(text: str) -> list:
    import yaml

    return yaml.safe_load(text)


def _read(path: Path) -> list[Question]:
    found = []
    for number, one in enumerate(_of(path.read_text(encoding="utf-8")), 1):
        where = f"{path.name}, question {number}"
        options = one.get("options") or []
        unknown = (one.keys() - KEYS[0]).union(*(option.keys() - KEYS[1] for option in options))
        if unknown:
            raise MiaError(f"{where}: {sorted(unknown)[0]!r} means nothing here. A question has `asks` and `options`, an "
                           "option `says`, `why` and, where it is right, `right: true`.")
        if not one.get("asks") or not 2 <= len(options) <= len(LETTERS):
            raise MiaError(f"{where} has {len(options)} options: `asks` and two to {len(LETTERS)} options are needed.")
        made = tuple(Option(_line(option.get("says")), _line(option.get("why")), option.get("right") is True)
                     for option in options)
        if sum(option.right for option in made) != 1:
            rights = sum(option.right for option in made)
            raise MiaError(f"{where} has {rights} right options: exactly one needs `right: true`.")
        for option in made:
            if not option.says or not option.why:
                raise MiaError(f"{where}: an option needs `says` and `why`; one has only {option.says or option.why!r}.")
            if odd := PLAIN.search(option.says):
                raise MiaError(f"{where}: {odd[0]!r} in {option.says!r}. What is chosen is plain text, since it is a button: "
                               "write mathematics in words or with letters such as λ, and leave links to `why`.")
        found.append(Question(_line(one["asks"]), made))
    return found


def _line(text) -> str:
    return " ".join(str(text or "").split())


def page(questions: list[Question]) -> str:
    """Questions in MyST Markdown, each option a fold with its reason."""
    parts = []
    for number, question in enumerate(questions, 1):
        parts.append(f"**{number}.** {question.asks}")
        for letter, option in zip(LETTERS, question.options, strict=False):
            said = "**Right.**" if option.right else "**No.**"
            parts.append(f'<details class="mia-option"><summary><span>{letter}</span> {escape(option.says, quote=False)}'
                         f"</summary>\n\n{said} {option.why}\n\n</details>")
    return "\n\n".join(parts)


def shown(text: str, where: str, root: Path | None = None) -> str:
    """A page with its quizzes in place of `:::{quiz} NAME`.

    Raises:
        MiaError: what `load` refuses, with the page.
    """
    def put(found: re.Match) -> str:
        try:
            return page(load(found[2], root))
        except MiaError as error:
            raise MiaError(f"{where}: {error}") from None

    return ASKED.sub(put, text)
