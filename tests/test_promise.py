"""What `book/api/promise.md` promises: names, signatures and types as it says them, and its examples as they run."""

import doctest
import importlib
import inspect
import re
from typing import NamedTuple

import pytest

import mia_lib
from mia_lib import LIBRARY

PAGE = LIBRARY.parent / "book" / "api" / "promise.md"
TEXT = PAGE.read_text(encoding="utf-8")
ENTRY = re.compile(r"^\{py:obj\}`([\w.]+) <([\w.]+)>`(?: `(\(.*\))`)?\n: \S", re.M)
FENCE = re.compile(r"^( *)```pycon\n(.*?)^ *```$", re.M | re.S)


class Promised(NamedTuple):
    """A name as users write it after `mia_lib.`, where the reference shows it, its arguments, and what follows on the page."""

    name: str
    shown: str
    arguments: str
    below: str


def promised(text: str) -> list[Promised]:
    found = list(ENTRY.finditer(text))
    ends = [*(one.start() for one in found[1:]), len(text)]
    return [Promised(one[1], one[2], one[3] or "", text[one.end():end]) for one, end in zip(found, ends, strict=True)]


PROMISED = promised(TEXT)


def meant(name: str):
    """What a name of the page stands for; None if nothing."""
    first, *rest, last = name.split(".")
    home = mia_lib._MODULE_PATHS.get(first, first)  # where the code lies is not what is promised
    return getattr(importlib.import_module(".".join(["mia_lib", home, *rest])), last, None)


def arguments(thing) -> str:
    """Names, order, kinds and defaults, without types."""
    if isinstance(thing, type) and issubclass(thing, Exception):
        return ""
    signature = inspect.signature(thing)
    bare = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def examples(text: str) -> list[tuple[str, int]]:
    """Code of the fences, without their indentation, and the lines before it."""
    return [(re.sub(rf"^{one[1]}", "", one[2], flags=re.M), text[:one.start(2)].count("\n")) for one in FENCE.finditer(text)]


@pytest.mark.parametrize("one", PROMISED, ids=lambda one: one.name)
def test_a_promised_name_is_there_with_the_arguments_that_are_promised(one):
    thing = meant(one.name)
    broken = (f"mia_lib.{one.name} is promised as {one.arguments or 'it is'} in book/api/promise.md, and ")
    assert thing is not None, broken + "is not there. Keep the name, deprecated, as that page says."
    now = arguments(thing)
    assert now == one.arguments, (broken + f"takes {now}. Arguments may be added last, with a default; anything else needs a "
                                  "new version as that page says. Then change the page, and say so in the changelog.")
    assert meant(one.shown.removeprefix("mia_lib.")) is thing
    assert (inspect.getdoc(thing) or "").strip()


@pytest.mark.parametrize("one", PROMISED, ids=lambda one: one.name)
def test_a_promised_name_says_its_types_and_has_an_example(one):
    thing = meant(one.name)
    assert len(FENCE.findall(one.below)) == 1
    assert re.search(rf"\b{one.name.rpartition('.')[2]}\b", FENCE.search(one.below)[2])
    if one.arguments:
        signature = inspect.signature(thing)
        untyped = [name for name, given in signature.parameters.items()
                   if given.annotation is given.empty and given.kind is not given.VAR_KEYWORD]
        assert not untyped and (isinstance(thing, type) or signature.return_annotation is not signature.empty)


def test_the_examples_say_what_they_say(module_cache):
    names: dict = {}
    failed = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for code, line in examples(TEXT):
        one = doctest.DocTestParser().get_doctest(code, names, "promise.md", str(PAGE), line)
        runner.run(one, out=failed.append, clear_globs=False)
        names = one.globs
    assert not failed, "".join(failed)


def test_from_arrays_to_a_roc_takes_fifteen_lines(module_cache):
    code = re.search(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)[1]
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 15
    names: dict = {}
    exec(compile(code, str(PAGE), "exec"), names)
    value = names["table"].set_index("metric").loc["auc"]
    assert value["low"] > 0.5 and names["figure"].axes
