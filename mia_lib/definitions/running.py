"""The modules of this process: their text as it was when they were imported, and whether that is what runs."""

from __future__ import annotations

import contextlib
import functools
import sys
import sysconfig
import types
from collections import defaultdict
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from mia_lib.definitions.sources import LIBRARY, PACKAGE, Reached, Sources, digest_of, read, state_of
from mia_lib.definitions.text import Text
from mia_lib.errors import MiaError

INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class Running(Sources):
    """The modules of this process: the library as it was when this began, the user's own as they were when imported.

    Args:
        then: path -> state and text; those of now when None.
    """

    def __init__(self, then: dict[Path, tuple] | None = None):
        super().__init__()
        self._then = {path: taken(path) for path in LIBRARY.rglob("*.py")} if then is None else then
        self.loaded: dict[Path, tuple] = {}  # by the last import, where that was after this began

    def note(self, path: Path) -> None:
        """Take the text of a module that is about to be loaded."""
        self.loaded[path] = taken(path)
        self._then.setdefault(path, self.loaded[path])

    def path(self, module: str) -> Path | None:
        """The file of a module that is followed and was imported."""
        if module.split(".")[0] == PACKAGE:
            return super().path(module)
        file = getattr(sys.modules.get(module), "__file__", None)
        if not file or not file.endswith(".py") or file.startswith(INSTALLED) or not Path(file).is_file():
            return None
        if Path(file) not in self._then:
            self._then[Path(file)] = taken(Path(file))
        return Path(file)

    def is_namespace(self, module: str) -> bool:
        """As for `Sources`, of what was imported."""
        loaded = sys.modules.get(module)
        return module.split(".")[0] != PACKAGE and getattr(loaded, "__file__", "") is None and hasattr(loaded, "__path__")

    def _full(self, module: str) -> str:
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        return spec.name if module == "__main__" and spec is not None else module  # run by `python -m`

    def content(self, path: Path) -> str:
        return self._then[path][1] if path in self._then else super().content(path)

    def loaded_otherwise(self, module: str, path: Path, reached: Reached) -> bool:
        """Whether some of what was reached in a module is another in the text that it was last loaded from."""
        if path not in self.loaded or self.loaded[path][1] == self._then[path][1]:
            return False
        return self._differ(reached, {**self._then, path: self.loaded[path]}, f"{module}:")

    def _differ(self, reached: Reached, then: dict[Path, tuple], where: str = "") -> bool:
        other = Running(then)
        for name, digest in reached.definitions.items():
            if name.startswith(where) and self.definition(name) is not None:
                there = other.definition(name)
                if there is None or there.digest != digest:
                    return True
        return False

    def check(self, reached: Reached) -> None:
        """Raise when some of what was reached stands otherwise in its file by now."""
        modules = {name.partition(":")[0] for name in reached.definitions}
        paths = [path for path in map(self.path, modules) if path is not None]
        changed = [path for path in paths if path in self._then and state_of(path) != self._then[path][0]]
        if not changed:
            return
        if self._differ(reached, {**self._then, **{path: taken(path) for path in changed if path.is_file()}}):
            raise MiaError(f"{changed[0]} was edited after this process had begun, so what runs is not what the file says. "
                           "Restart it (in JupyterLab: Kernel, Restart) and run again; what was finished is kept.")


def taken(path: Path) -> tuple:
    """State and text of a file."""
    return state_of(path), read(path)


class Noting:
    """Finds no module, but takes the text of each that is followed just before it is loaded (`sys.meta_path`)."""

    @staticmethod
    def find_spec(name: str, path=None, target=None) -> None:
        with contextlib.suppress(Exception):  # an import fails or not without us
            own = name.partition(".")[0] == PACKAGE
            if own or path is None or not all(str(one).startswith(INSTALLED) for one in path):
                file = getattr(PathFinder.find_spec(name, path), "origin", None) or ""
                if file.endswith(".py") and (own or not file.startswith(INSTALLED)):
                    RUNNING.note(Path(file))


RUNNING = Running()
for _module in list(sys.modules):  # those of the user's that were imported before
    if _module.partition(".")[0] not in (PACKAGE, *sys.stdlib_module_names):
        with contextlib.suppress(OSError, SyntaxError, UnicodeError):
            RUNNING.path(_module)
sys.meta_path.insert(0, Noting)


def otherwise(module: types.ModuleType, path: Path, text: Text, taken: set[str]) -> str | None:
    """The first of some definitions that is another in memory than in a module's text: a function, or a constant number, text
    or tuple, but for those that functions of the module set."""
    texts = _functions_in(RUNNING.content(path), str(path))
    for name, code in _loaded(module.__name__, path):
        if name in texts and name.partition(".")[0] in taken and _of_code(code) not in texts[name]:
            return name
    for name, value in text.literals.items():
        runs = vars(module).get(name, value)
        if name in taken and (type(runs) is not type(value) or runs != value):
            return name
    return None


@functools.lru_cache(maxsize=64)
def _functions_in(text: str, path: str) -> dict[str, set[str]]:
    """Name -> what functions of that name in a text compile to."""
    found, waiting = defaultdict(set), [compile(text, path, "exec", dont_inherit=True)]
    while waiting:
        code = waiting.pop()
        found[code.co_qualname].add(_of_code(code))
        waiting += [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return found


def _of_code(code: types.CodeType) -> str:
    """Of what a function runs, wherever in its file it stands."""
    constants = [sorted(map(repr, one)) if isinstance(one, frozenset) else _of_code(one) if isinstance(one, types.CodeType)
                 else one for one in code.co_consts]
    return digest_of(f"{code.co_code.hex()} {constants!r} {code.co_names} {code.co_varnames} {code.co_freevars}")


def _loaded(module: str, path: Path) -> Iterator[tuple[str, types.CodeType]]:
    """The functions and methods of a module as they are in memory."""
    waiting, seen = list(vars(sys.modules[module]).values()), set()
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, type):
            if thing.__module__ == module and thing not in seen:
                seen.add(thing)
                waiting += vars(thing).values()
            continue
        for part in (thing, *(getattr(thing, name, None) for name in ("__func__", "fget", "fset", "func"))):
            if isinstance(part, types.FunctionType) and part.__code__.co_filename == str(path):
                yield part.__code__.co_qualname, part.__code__
