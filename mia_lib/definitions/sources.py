"""Many modules: names followed from one to the next, as the files lie in folders."""

from __future__ import annotations

import ast
import functools
import hashlib
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from mia_lib.definitions.text import Definition, Text, parsed

PACKAGE, NOTEBOOK = "mia_lib", "notebook"
LIBRARY = Path(__file__).resolve().parent.parent
CARRIERS = frozenset({"errors", "checks", "processes", "progress", "store", "definitions", "own", "training.backends.pool",
                      "publish"})


@dataclass(frozen=True)
class Reached:
    """All that bears on a computation.

    Attributes:
        definitions: full name -> digest.
    """

    definitions: Mapping[str, str]

    @functools.cached_property
    def fingerprint(self) -> str:
        """Of the definitions, wherever they lie: 16 hexadecimal digits."""
        return digest_of(" ".join(sorted(self.definitions.values())))


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Sources:
    """Python modules as they lie in folders: the library, and the user's own.

    Args:
        library: folder of the package.
        beside: folders in which the user's modules are looked for.
    """

    def __init__(self, library: Path = LIBRARY, beside: Iterable[Path] = ()):
        self.library, self.beside = Path(library), tuple(map(Path, beside))
        self._texts: dict[str, Text | None] = {}
        self._definitions: dict[str, Definition | None] = {}
        self.read: dict[Path, tuple[int, int]] = {}  # files that were read -> time of their last change, size

    def copy(self) -> Sources:
        """The same, to which cells can be added."""
        other = Sources(self.library, self.beside)
        other._texts, other._definitions, other.read = dict(self._texts), dict(self._definitions), dict(self.read)
        return other

    def take(self, other: Sources) -> None:
        """Keep what a copy has read since."""
        for mine, theirs in ((self._texts, other._texts), (self._definitions, other._definitions)):
            mine |= {name: one for name, one in theirs.items() if name.partition(":")[0] != NOTEBOOK}
        self.read |= other.read

    def path(self, module: str) -> Path | None:
        """The file of a module that is followed."""
        first, *rest = module.split(".")
        bases = [self.library] if first == PACKAGE else [folder / first for folder in self.beside]
        for base in bases:
            whole = base.joinpath(*rest)
            for path in (whole / "__init__.py", whole.with_name(whole.name + ".py")):
                if path.is_file():
                    return path
        return None

    def text(self, module: str) -> Text | None:
        """A module's text; None of one that is not followed."""
        if module not in self._texts:
            path = self.path(module)
            self._texts[module] = None
            if path is not None:
                self.read[path] = state_of(path)
                self._texts[module] = parsed(self.content(path), self._full(module), path.name == "__init__.py")
        return self._texts[module]

    def _full(self, module: str) -> str:
        """The name by which relative imports of a module are meant."""
        return module

    def content(self, path: Path) -> str:
        return read(path)

    def add_cells(self, module: str, text: str, ends: list[int]) -> list[str]:
        """A module that lies in no file: the code of a notebook, of which each cell is a definition at its place.

        Args:
            ends: number of lines before each cell, and of all.

        Returns:
            names of these definitions.
        """
        whole, names = Text(text), []
        self._texts[module] = whole
        for number, (before, end) in enumerate(pairwise(ends)):
            name = f"{module}:<cell {number}>"
            cell = self._made(name, [node for node in whole.tree.body if before < node.lineno <= end])
            self._definitions[name] = replace(cell, digest=digest_of(f"{number} {cell.digest}"))
            names.append(name)
        return names

    def resolve(self, module: str, name: str | None) -> str | None:
        """Where a name of a module is defined: `module:name`, `module:*` of a module, None of what is not followed."""
        for _ in range(9):  # a chain of imports
            if name is None:
                return f"{module}:*" if self.path(module) or self._texts.get(module) or self.is_namespace(module) else None
            text = self.text(module)
            if text is None:
                return f"{module}.{name}:*" if self.is_namespace(module) and self.path(f"{module}.{name}") else None
            if name in text.nodes:
                return f"{module}:{name}"
            if name in text.imports:
                module, name = text.imports[name]
            elif text.is_package and self.path(f"{module}.{name}") is not None:
                return f"{module}.{name}:*"
            else:
                return next(filter(None, (self.resolve(one, name) for one in text.stars if one != module)), None)
        return None

    def is_namespace(self, module: str) -> bool:
        """Whether a folder without `__init__.py`, from which modules are imported."""
        first, *rest = module.split(".")
        return first != PACKAGE and any((folder / first).joinpath(*rest).is_dir() for folder in self.beside)

    def definition(self, name: str) -> Definition | None:
        """The definition of a full name, `module:name` or `module:name[entry]`."""
        if name not in self._definitions:
            self._definitions[name] = self._define(name)
        return self._definitions[name]

    def _define(self, name: str) -> Definition | None:
        module, _, here = name.partition(":")
        text = self.text(module)
        if text is None:
            return None
        if here == "*":
            inside = {f"{module}:{one}" for one in text.nodes}
            if text.is_package and module.partition(".")[0] != PACKAGE:  # what it hands on lies in others; ours are named
                inside |= {found for one in text.imports if (found := self.resolve(module, one))}
            return Definition(name, "", frozenset(inside), frozenset())
        if here == "<statements>":
            return self._made(name, text.statements)
        known, _, entry = here.partition("[")
        if entry:
            table = text.by_name.get(known)
            parts = [value for key, value in zip(table.keys, table.values, strict=True)
                     if isinstance(key, ast.Constant) and key.value == entry[:-1]] if table else []
            return self._made(name, parts) if parts else None
        if known in text.by_name:  # reached entry by entry
            return Definition(name, "", frozenset(), frozenset())
        return self._made(name, text.nodes[known]) if known in text.nodes else None

    def _made(self, name: str, nodes: list[ast.AST]) -> Definition:
        """The definition that statements make, its references to names of the same module in full."""
        module = name.partition(":")[0]
        found = self.text(module).definition(name, nodes, self.resolve)
        full = frozenset(f"{module}{one}" if one.startswith(":") else one for one in found.references)
        return Definition(found.name, found.digest, full, found.words)

    def _at_import(self, module: str) -> list[str]:
        """What bears on all of a module though nothing names it: statements, and, in the user's own, what a decorator of
        theirs may have put into a table. The library's tables are `ByName`, and its decorators note nothing."""
        text, own = self.text(module), module.partition(".")[0] != PACKAGE
        noted = [name for name, decorators in text.decorated.items() if own and any(
            one in text.nodes or (one in text.imports and self.resolve(*text.imports[one])) for one in decorators)]
        return [f"{module}:{name}" for name in (*noted, *["<statements>"] * bool(text.statements))]

    def entries(self, name: str) -> list[str]:
        """Keys of a `ByName`."""
        module, _, known = name.partition(":")
        table = self.text(module).by_name.get(known)
        return [key.value for key in table.keys if isinstance(key, ast.Constant)] if table else []

    def _asked(self, table: str, heard: Mapping[str, set[str]]) -> list[str]:
        """Keys of a `ByName` that were said."""
        own = {table.partition(":")[0]}
        return [key for key in self.entries(table) if heard.get(key, own) - own]

    def reach(self, roots: Iterable[str], words: Iterable[str] = ()) -> Reached:
        """All definitions that bear on what starts at `roots`.

        Args:
            roots: full names.
            words: texts that the computation was given.
        """
        # A word counts for a table where it is said outside of the table's own module.
        heard, found, tables = {word.partition(":")[0]: {""} for word in words}, {}, set()
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name in found or _left_out(name):
                continue
            definition = self.definition(name)
            if definition is None:
                continue
            found[name] = definition.digest
            module = name.partition(":")[0]
            waiting += definition.references
            if module not in (PACKAGE, NOTEBOOK):
                waiting += self._at_import(module)
            for word in definition.words:
                heard.setdefault(word.partition(":")[0], set()).add(module)
            if self.entries(name):
                tables.add(name)
            waiting += [f"{table}[{key}]" for table in tables for key in self._asked(table, heard)]
        return Reached({name: digest for name, digest in found.items() if digest})


def _left_out(name: str) -> bool:
    """Whether a definition is not followed: its module or its room is one of `CARRIERS`."""
    module = name.partition(":")[0]
    inside = module.removeprefix(f"{PACKAGE}.") if module.startswith(f"{PACKAGE}.") else None
    return inside is not None and not CARRIERS.isdisjoint({inside, inside.partition(".")[0]})


def of_cells(cells: list[str], words: Iterable[str] = (), library: Path = LIBRARY,
             beside: Iterable[Path] = ()) -> Reached:
    """All that bears on what the code of a notebook shows.

    Args:
        cells: code of each cell.
        words: texts among its parameters.
        library: folder of the package that it runs with.
        beside: folders from which it imports modules of the user's own.
    """
    held, cells, lost, ends = of_folder(library, beside), list(cells), {}, [0]
    sources = held.copy()
    for number, code in enumerate(cells):
        try:
            ast.parse(code)
        except SyntaxError:
            from IPython.core.inputtransformer2 import TransformerManager

            code = TransformerManager().transform_cell(code)  # magics
        try:
            ast.parse(code)
        except SyntaxError:  # it will say so itself when it runs
            lost[f"{NOTEBOOK}:<cell {number}>"], code = digest_of(code), "\n"
        cells[number] = code.rstrip("\n") + "\n"
        ends.append(ends[-1] + cells[number].count("\n"))
    roots = sources.add_cells(NOTEBOOK, "".join(cells), ends)
    found = sources.reach(roots, words)
    held.take(sources)
    return Reached({**found.definitions, **lost})


def read(path: Path) -> str:
    with tokenize.open(path) as file:  # in the encoding that it declares
        return file.read()


_held: dict[tuple, Sources] = {}


def of_folder(library: Path = LIBRARY, beside: Iterable[Path] = ()) -> Sources:
    """The modules of folders as they are now; what was read before is read again only where a file changed."""
    place = Path(library), tuple(map(Path, beside))
    if place not in _held or any(state_of(path) != before for path, before in _held[place].read.items()):
        _held[place] = Sources(*place)
    return _held[place]


def state_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
