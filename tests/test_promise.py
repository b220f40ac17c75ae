"""What `book/api/promise.md` promises: names, signatures and types as it says them, and its examples as they run."""

import doctest
import importlib
import inspect
import re

import pytest

import mia_lib
from mia_lib import LIBRARY

PAGE = LIBRARY.parent / "book" / "api" / "promise.md"
TEXT = PAGE.read_text(encoding="utf-8")
ENTRY = re.compile(r"^\{py:obj\}`([\w.]+) <([\w.]+)>`(?: `(\(.*\))`)?\n: \S", re.M)
FENCE = re.compile(r"^( *)```pycon\n(.*?)^ *```$", re.M | re.S)


FOUND = list(ENTRY.finditer(TEXT))
# (a name as users write it after `mia_lib.`, where the reference shows it, its arguments, what follows on the page)
PROMISED = [
    (one[1], one[2], one[3] or "", TEXT[one.end() : end])
    for one, end in zip(FOUND, [*(one.start() for one in FOUND[1:]), len(TEXT)], strict=True)
]


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


@pytest.mark.parametrize("name,shown,promised,below", PROMISED, ids=[one[0] for one in PROMISED])
def test_a_promised_name_is_there_with_its_arguments_their_types_and_an_example(
    name, shown, promised, below
):
    thing = meant(name)
    broken = f"mia_lib.{name} is promised as {promised or 'it is'} in book/api/promise.md, and "
    assert name.partition(".")[0] in {*dir(mia_lib), "errors"}
    assert thing is not None, broken + "is not there. Keep the name, deprecated, as that page says."
    now = arguments(thing)
    assert now == promised, (
        broken + f"takes {now}. Arguments may be added last, with a default; anything else needs a "
        "new version as that page says. Then change the page, and say so in the changelog."
    )
    assert meant(shown.removeprefix("mia_lib.")) is thing and (inspect.getdoc(thing) or "").strip()
    [example] = FENCE.findall(below)
    assert re.search(rf"\b{name.rpartition('.')[2]}\b", example[1])
    if promised:
        signature = inspect.signature(thing)
        untyped = [
            name
            for name, given in signature.parameters.items()
            if given.annotation is given.empty and given.kind is not given.VAR_KEYWORD
        ]
        assert not untyped
        assert isinstance(thing, type) or signature.return_annotation is not signature.empty


def test_the_examples_say_what_they_say(module_cache):
    names, failed = {}, []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for fence in FENCE.finditer(TEXT):
        code = re.sub(rf"^{fence[1]}", "", fence[2], flags=re.M)
        line = TEXT[: fence.start(2)].count("\n")
        one = doctest.DocTestParser().get_doctest(code, names, "promise.md", str(PAGE), line)
        runner.run(one, out=failed.append, clear_globs=False)
        names = one.globs
    assert not failed, "".join(failed)


def test_from_arrays_to_a_roc_takes_fifteen_lines(module_cache):
    code, names = re.search(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)[1], {}
    assert sum(map(bool, code.splitlines())) <= 15
    exec(compile(code, str(PAGE), "exec"), names)
    assert names["table"].set_index("metric").loc["auc", "low"] > 0.5 and names["figure"].axes


def test_names_that_moved_are_found_for_a_release_with_a_note():
    for name, home in mia_lib.MOVED.items():
        with pytest.warns(FutureWarning, match=f"mia_lib.{name} is {home} now"):
            assert getattr(mia_lib, name) is importlib.import_module(home)
