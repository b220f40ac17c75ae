"""What bears on a number: the definitions that a computation reaches, and one fingerprint of them.

A definition is a function, a class or a constant at the top level of a module. Its fingerprint is taken from its tokens,
without comments, docstrings, imports, line breaks within a statement, annotations by `mia_lib.hints`, and the modules' names
before a dot. So an edited formula, constant or default is another definition; a comment, a moved module or a renamed import is
not. What a definition names is followed through the library, and through modules of the user's own that lie beside the
notebooks or on `PYTHONPATH`; installed packages are not followed, their versions are noted elsewhere.

Classes count whole, with all their methods. A dictionary annotated `ByName` counts by its entries: of the architectures,
only those are reached whose name the computation holds, in its code or in the objects that it was given.

One room in four steps: `text` (one text's definitions), `sources` (names followed from module to module, as files lie),
`running` (the modules of this process, by their text at import) and `walk` (from objects to definitions). Of functions of a
notebook, which lie in no file, the bytes count, and by value what they hold.

Not followed are modules that carry results, or refuse input, and compute none (`CARRIERS`).

It decides two things: which notebook runs again, and which studies of chapters in the working cache are computed anew. Models
and signals go by `store.code_of`, and what is recorded by its address alone.
"""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader

from mia_lib.definitions.running import RUNNING, otherwise
from mia_lib.definitions.sources import (
    CARRIERS,
    LIBRARY,
    PACKAGE,
    Reached,
    Sources,
    of_cells,
    of_folder,
)
from mia_lib.definitions.text import ByName, Definition
from mia_lib.definitions.walk import Walk
from mia_lib.errors import MiaError

__all__ = ["CARRIERS", "LIBRARY", "PACKAGE", "ByName", "Definition", "Reached", "Sources", "check", "check_loaded",
           "check_running", "follows", "of", "of_cells", "of_folder"]
_memo: dict[tuple, Reached] = {}
_known: dict[str, Reached] = {}  # by fingerprint


def of(*things) -> Reached:
    """All that bears on what functions compute with the objects that they hold.

    Args:
        things: functions, methods, partials, classes; objects, of which classes and fields count; networks, of which each
            layer does; containers of such; texts.
    """
    walk = Walk()
    for thing in things:
        walk.see(thing)
    asked = frozenset(walk.roots), frozenset(walk.words), tuple(sorted(walk.own.items()))
    if asked not in _memo:
        _memo[asked] = Reached({**RUNNING.reach(walk.roots, walk.words).definitions, **walk.own})
        _known[_memo[asked].fingerprint] = _memo[asked]
    return _memo[asked]


def check(code: str) -> None:
    """See to it that what this process runs is what the files say, before something is kept under a fingerprint.

    Raises:
        MiaError: some of the definitions behind it were edited after this process had begun.
    """
    if code in _known:
        RUNNING.check(_known[code])


def follows(module: str) -> bool:
    """Whether the source of a module that was imported is followed; those of Python and of installed packages are not."""
    return RUNNING.path(module) is not None


def check_loaded(*things) -> None:
    """See to it that functions, classes and objects run as their files say, now and when this process took their fingerprint.

    Args:
        things: as for `of`.

    Raises:
        MiaError: some of the definitions behind them were edited since; or as for `check_running`.
    """
    reached = of(*things)
    RUNNING.check(reached)
    check_running(reached)


def check_running(reached: Reached) -> None:
    """See to it that what was reached runs as its fingerprint says, before something is looked up under it.

    An edit of a file alone does no harm here: look-up goes by the text from which this process runs.

    Raises:
        MiaError: a module was edited before it was imported, but after its fingerprint was taken, or the other way round; or
            it was loaded anew.
    """
    for module in {name.partition(":")[0] for name in reached.definitions}:
        path, loaded = RUNNING.path(module), sys.modules.get(module)
        if path is None:
            continue
        if RUNNING.loaded_otherwise(module, path, reached):
            raise MiaError(f"{path} was edited between the start of this process and its import, or loaded anew, so what runs "
                           "is not what goes by its fingerprint. Restart it (in JupyterLab: Kernel, Restart) and run again; "
                           "what was finished is kept.")
        if module.partition(".")[0] == PACKAGE or type(getattr(loaded, "__loader__", None)) is not SourceFileLoader:
            continue  # another loader, such as that of pytest, may write code of its own into it
        taken = {name.partition(":")[2] for name in reached.definitions if name.startswith(f"{module}:")}
        if name := otherwise(loaded, path, RUNNING.text(module), taken):
            raise MiaError(f"{name}, which runs, is not what {path} says: the file was edited after it was imported, or "
                           f"{name} was set from outside. Restart (in JupyterLab: Kernel, Restart), or write it into the "
                           "file, and run again; what was finished is kept.")
