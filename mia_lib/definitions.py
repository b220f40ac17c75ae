"""What bears on a number: the definitions that a computation reaches, and one fingerprint of them.

A definition is a function, a class or a constant at the top level of a module. Its fingerprint is taken from its tokens,
without comments, docstrings, imports, line breaks within a statement, annotations by `mia_lib.hints`, and the modules' names
before a dot. So an edited formula, constant or default is another definition; a comment, a moved module or a renamed import is
not. What a definition names is followed through the library, and through modules of the user's own that lie beside the
notebooks or on `PYTHONPATH`; installed packages are not followed, their versions are noted elsewhere.

Classes count whole, with all their methods. A dictionary annotated `ByName` counts by its entries: of the architectures,
only those are reached whose name the computation holds, in its code or in the objects that it was given.

Not followed are modules that carry results, or refuse input, and compute none (`CARRIERS`); where numbers are asked for and
not pages, also `READERS`, since what they read enters every result by its content, and `DRAWING`.
"""

from __future__ import annotations

import ast
import contextlib
import datetime
import functools
import hashlib
import inspect
import io
import re
import sys
import sysconfig
import tokenize
import types
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from importlib.machinery import PathFinder, SourceFileLoader
from itertools import pairwise
from pathlib import Path, PurePath

from mia_lib.errors import MiaError

ByName = dict  # what a dictionary is annotated with that counts by its entries
PACKAGE, NOTEBOOK = "mia_lib", "notebook"
HINTS = "mia_lib.hints"
LIBRARY = Path(__file__).resolve().parent
CARRIERS = frozenset({"errors", "checks", "processes", "progress", "store", "definitions", "own", "training.backends.pool",
                      "publish"})
READERS = frozenset({"data.readers", "data.given", "data._torchvision", "data.sets:load", "data.sets:get",
                      "data.sets:describe", "data.sets:names"})
DRAWING = frozenset({"evidence.panels", "evidence.plotting"})
FOR_PAGES, FOR_NUMBERS = CARRIERS, CARRIERS | READERS | DRAWING
SKIPPED = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER)
MARKS = {tokenize.NEWLINE: "\n", tokenize.INDENT: "\t>", tokenize.DEDENT: "\t<"}


@dataclass(frozen=True)
class Definition:
    """A top-level name of a module.

    Attributes:
        name: `mia_lib.attacks.bayes:malt`, or `mia_lib.models:_KNOWN[mlp]` of an entry by name.
        digest: of its tokens, 16 hexadecimal digits.
        references: names of the definitions that it names; `module:*` is all of a module.
        words: the short texts in it, by which entries of a `ByName` are reached.
    """

    name: str
    digest: str
    references: frozenset[str]
    words: frozenset[str]


# ------------------------------------------------------------------------------------------------- one module's text


class _Text:
    """The definitions of one Python text, before names are followed into other modules."""

    def __init__(self, text: str, module: str = "", is_package: bool = False):
        self.is_package, self.package = is_package, module if is_package else module.rpartition(".")[0]
        self.cells = not module  # a notebook, whose cells count whole
        self._definitions: dict[str, tuple[Definition, dict]] = {}
        self.tree = ast.parse(text)
        self._lines = text.splitlines(keepends=True) or [""]
        self._tokens = list(_tokens(text))
        self._begins = [begin for _, _, begin, _ in self._tokens]
        self.imports: dict[str, tuple[str, str | None]] = {}  # name here -> module, and the name there
        self.others: dict[str, list[tuple[str, str | None]]] = defaultdict(list)  # what else it may come to be imported from
        self.stars: list[str] = []  # modules of which all is imported
        self.nodes: dict[str, list[ast.stmt]] = defaultdict(list)
        self.by_name: dict[str, ast.Dict] = {}
        self.statements: list[ast.AST] = []  # what runs at import and defines nothing
        self.decorated: dict[str, set[str]] = {}  # name -> names of its decorators
        self._collect(self.tree.body)

    def _collect(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.nodes[node.name].append(node)
                if node.decorator_list:
                    self.decorated[node.name] = {one.id for decorator in node.decorator_list for one in ast.walk(decorator)
                                                 if isinstance(one, ast.Name)}
            elif names := [name for name, anew in _assigned(node) if anew or name in self.nodes]:
                for name in names:
                    self.nodes[name].append(node)
                if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict) and "ByName" in ast.dump(
                        node.annotation):
                    self.by_name[names[0]] = node.value
            elif isinstance(node, ast.If | ast.Try):
                if isinstance(node, ast.If) and ast.unparse(node.test) not in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
                    self.statements.append(node.test)  # by it goes which definitions there are
                for part in ("body", "orelse", "finalbody"):
                    self._collect(getattr(node, part, []))
                for handler in getattr(node, "handlers", []):
                    self._collect(handler.body)
            elif not _is_text(node):
                self.statements.append(node)
                for part in () if self.cells else _outside_functions(node):
                    if isinstance(part, ast.Import | ast.ImportFrom):
                        self._import(part)
                    elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                        self.nodes[part.id].append(node)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for name, target in self._imported(node).items():
            if name == "*":
                self.stars.append(target[0])
            elif self.imports.setdefault(name, target) != target:
                self.others[name].append(target)

    @functools.cached_property
    def literals(self) -> dict[str, object]:
        """Constants that are written as a number, a text or a tuple, and that no function sets."""
        found, bound = {}, [name for node in ast.walk(self.tree) if isinstance(node, ast.Global) for name in node.names]
        for node in _outside_functions(self.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.append(node.id)
            elif isinstance(getattr(node, "name", None), str):  # a pattern, an exception
                bound.append(node.name)
        for name in self.nodes.keys() - self.imports.keys():
            first, *more = self.nodes[name]
            targets = first.targets if isinstance(first, ast.Assign) else [first.target] if isinstance(
                first, ast.AnnAssign) else []
            if more or not all(isinstance(one, ast.Name) for one in targets or [None]) or bound.count(name) > 1:
                continue
            try:
                value = ast.literal_eval(first.value)
            except (ValueError, TypeError, SyntaxError):
                continue
            if value is None or isinstance(value, bool | int | float | complex | str | bytes | tuple):
                found[name] = value
        return found

    def _imported(self, node: ast.Import | ast.ImportFrom) -> dict[str, tuple[str, str | None]]:
        if isinstance(node, ast.Import):
            return {alias.asname or alias.name.split(".")[0]: (alias.name if alias.asname else alias.name.split(".")[0], None)
                    for alias in node.names}
        base = node.module or ""
        if node.level:
            above = self.package.split(".")
            base = ".".join([*above[:len(above) - node.level + 1], *filter(None, [node.module])])
        return {alias.asname or alias.name: (base, alias.name) for alias in node.names}

    def definition(self, name: str, nodes: list[ast.AST], resolve: Callable[[str, str | None], str | None]) -> Definition:
        """What the statements `nodes` come to, under the name `name`; `resolve` is `Sources.resolve`.

        It is worked out once, and again only where names of other modules have come to mean something else.
        """
        if name in self._definitions:
            found, answers = self._definitions[name]
            if all(resolve(*asked) == answer for asked, answer in answers.items()):
                return found
        answers = {}

        def noted(module: str, there: str | None) -> str | None:
            answers[module, there] = resolve(module, there)
            return answers[module, there]

        seen = _Names(self, noted)
        for node in nodes:
            seen.visit(node)
        total = hashlib.sha256()
        for token in self._kept(nodes, seen):
            total.update(token.encode() + b"\x1f")
        found = Definition(name, total.hexdigest()[:16], frozenset(seen.references), frozenset(seen.words))
        self._definitions[name] = found, answers
        return found

    def _kept(self, nodes: list[ast.AST], seen: _Names) -> Iterator[str]:
        """The tokens of statements, without what `seen` says bears on nothing."""
        dropped, renamed = seen.dropped, seen.renamed
        longest_first = sorted(map(re.escape, seen.in_texts), key=len, reverse=True)
        within = re.compile(rf"(?<![\w.])({'|'.join(longest_first)})(?!\w)")
        for node in nodes:
            first = min([node, *getattr(node, "decorator_list", [])], key=lambda one: (one.lineno, one.col_offset))
            start, stop = self._place(first.lineno, first.col_offset), self._place(node.end_lineno, node.end_col_offset)
            if start[1] and first is not node:
                start = start[0], start[1] - 1  # the @ of a decorator
            end_of_drop, statement, begun = (0, 0), False, False
            for kind, text, begin, _ in self._tokens[bisect_left(self._begins, start):bisect_left(self._begins, stop)]:
                begun = begun or kind != tokenize.DEDENT  # what stands before ends where this begins
                if kind in SKIPPED or not begun:
                    continue
                if begin in dropped:
                    end_of_drop, statement = dropped[begin]
                if begin < end_of_drop:
                    continue
                if statement and kind == tokenize.NEWLINE:
                    statement = False
                    continue
                if kind in (tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE):
                    yield MARKS[kind]
                elif kind == tokenize.STRING and seen.in_texts:
                    yield within.sub(lambda name: seen.in_texts[name[0]], text)
                else:
                    yield renamed.get(begin, text)

    def _place(self, row: int, offset: int) -> tuple[int, int]:
        """Where a node begins or ends, as tokens count: in characters, not bytes."""
        line = self._lines[row - 1]
        return row, len(line.encode()[:offset].decode())


@functools.lru_cache(maxsize=512)
def _parsed(text: str, module: str, is_package: bool) -> _Text:
    return _Text(text, module, is_package)


def _tokens(text: str) -> Iterator[tuple[int, str, tuple[int, int], tuple[int, int]]]:
    """Kind, text, begin and end; an f-string is one token in every version of Python."""
    lines, depth, begun = text.splitlines(keepends=True), 0, (0, 0)
    start, end = getattr(tokenize, "FSTRING_START", None), getattr(tokenize, "FSTRING_END", None)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if start is not None and token.type == start:
            begun, depth = (token.start, depth + 1) if not depth else (begun, depth + 1)
        elif end is not None and token.type == end and depth:
            depth -= 1
            if not depth:
                (top, left), (bottom, right) = begun, token.end
                part = lines[top - 1:bottom]
                part[-1] = part[-1][:right]
                part[0] = part[0][left:]
                yield tokenize.STRING, "".join(part), begun, token.end
        elif not depth:
            yield token.type, token.string, token.start, token.end


def _assigned(node: ast.stmt) -> Iterator[tuple[str, bool]]:
    """The names that a statement sets, adds to or changes an entry of, and whether it sets them."""
    targets = node.targets if isinstance(node, ast.Assign) else (
        [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else [])
    while targets:
        target, *targets = targets
        if isinstance(target, ast.Tuple | ast.List):
            targets = [*target.elts, *targets]
        for part in [target] * (not isinstance(target, ast.Tuple | ast.List)):
            anew = not isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(node, ast.AugAssign)
            while isinstance(part, ast.Attribute | ast.Subscript | ast.Starred):
                part = part.value
            if isinstance(part, ast.Name):
                yield part.id, anew


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """What a statement runs when its module is imported: all of it but the inside of functions and classes."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.ListComp | ast.SetComp
                          | ast.DictComp | ast.GeneratorExp):
            waiting += ast.iter_child_nodes(one)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


class _Names(ast.NodeVisitor):
    """What a definition names: references, words, and which of its tokens bear on nothing."""

    def __init__(self, text: _Text, find: Callable[[str, str | None], str | None]):
        self.text, self.find, self.references, self.words = text, find, set(), set()
        self.dropped: dict[tuple[int, int], tuple[tuple[int, int], bool]] = {}  # begin -> end, whether a whole statement
        self.renamed: dict[tuple[int, int], str] = {}
        self.in_texts: dict[str, str] = {}  # names in f-strings, as written -> as meant
        self._in_text = False
        self._scopes: list[tuple[set[str], dict]] = []  # names bound in each function around, and what it imports

    def _drop(self, node: ast.AST, stop: tuple[int, int] | None = None, statement: bool = False) -> None:
        place = self.text._place
        self.dropped[place(node.lineno, node.col_offset)] = (stop or place(node.end_lineno, node.end_col_offset), statement)

    def _resolve(self, name: str) -> tuple[str, str | None] | None:
        """Module and name there that a name means, or None for a local name, a builtin or an unknown one."""
        for bound, imports in reversed(self._scopes):
            if name in imports:
                return imports[name]
            if name in bound:
                return None
        if name in self.text.nodes:
            return "", name
        if name not in self.text.imports:
            return next(((one, name) for one in self.text.stars if self.find(one, name) is not None), None)
        return self.text.imports[name]

    def visit_Name(self, node: ast.Name) -> None:
        target = self._resolve(node.id) if isinstance(node.ctx, ast.Load) else None
        if target is None:
            return
        module, there = target
        self._alternatives(node.id, target)
        if not module:
            self.references.add(f":{there}")
            return
        found = self.find(module, there)
        if found is None:
            return
        self.references.add(found)
        if self._in_text:
            self.in_texts[node.id] = found.partition(":")[2].replace("*", node.id)
        elif not found.endswith(":*"):
            self.renamed[self.text._place(node.lineno, node.col_offset)] = found.partition(":")[2]

    def _alternatives(self, name: str, target: tuple[str, str | None]) -> None:
        """What else a name of the module may be, where tests or failed imports decide."""
        text = self.text
        if target == ("", name) or target == text.imports.get(name):
            others = [*text.others.get(name, ()), *([text.imports[name]] if not target[0] and name in text.imports else [])]
            self.references |= set(filter(None, [self.find(*one) for one in others]))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        before, self._in_text = self._in_text, True
        self.generic_visit(node)
        self._in_text = before

    def visit_Attribute(self, node: ast.Attribute) -> None:
        chain, base = [], node
        while isinstance(base, ast.Attribute):
            chain.append(base)
            base = base.value
        target = self._resolve(base.id) if isinstance(base, ast.Name) else None
        if target is None or not target[0]:
            self.visit(base)
            return
        self._alternatives(base.id, target)
        found = self.find(*target)
        while found is not None and found.endswith(":*") and chain:
            link = chain.pop()
            deeper = self.find(found[:-2], link.attr)
            if deeper is None:  # made by the module when asked, so anything in it may bear
                break
            found = deeper
            if self._in_text:
                self.in_texts[ast.unparse(link)] = found.partition(":")[2].replace("*", link.attr)
                continue
            # everything before the last name of the chain is where the definition lies, which bears on nothing
            end = self.text._place(link.end_lineno, link.end_col_offset)
            self._drop(base, (end[0], end[1] - len(link.attr)))
            self.renamed[end[0], end[1] - len(link.attr)] = found.partition(":")[2] if not found.endswith(":*") else link.attr
        if found is not None:
            self.references.add(found)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and 0 < len(node.value) < 64:
            self.words.add(node.value)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self._drop(node, statement=True)

    visit_ImportFrom = visit_Import

    def _body(self, node) -> None:
        """Statements of a function or class, without its docstring."""
        for place, part in enumerate(node.body):
            if not place and _is_text(part):
                self._drop(part, statement=True)
            else:
                self.visit(part)

    def _around(self, node) -> None:
        """What of a function is evaluated outside of it: decorators, defaults, annotations."""
        for part in [*getattr(node, "decorator_list", []), *node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(part)
        arguments = node.args
        for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
            if one is not None and one.annotation is not None:
                row, column = self.text._place(one.lineno, one.col_offset)
                self._annotation(one.annotation, (row, column + len(one.arg)))
        if getattr(node, "returns", None):
            arrow = bisect_left(self.text._begins, self.text._place(node.returns.lineno, node.returns.col_offset)) - 1
            self._annotation(node.returns, self.text._begins[arrow])

    def _annotation(self, node: ast.expr, begin: tuple[int, int]) -> None:
        """An annotation, whose colon or arrow stands at `begin`: one of `HINTS` alone is dropped."""
        names = [self._resolve(one.id) for one in ast.walk(node) if isinstance(one, ast.Name)]
        if names and all(name is not None and name[0] == HINTS for name in names):
            self.dropped[begin] = self.text._place(node.end_lineno, node.end_col_offset), False
        else:
            self.visit(node)

    def visit_FunctionDef(self, node) -> None:
        self._around(node)
        bound, imports = _bound(node, self.text)
        self._scopes.append((bound, imports))
        if isinstance(node, ast.Lambda):
            self.visit(node.body)
        else:
            self._body(node)
        self._scopes.pop()

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]:
            self.visit(part)
        self._body(node)

    def _comprehension(self, node) -> None:
        names = {name.id for one in node.generators for name in ast.walk(one.target) if isinstance(name, ast.Name)}
        self.visit(node.generators[0].iter)  # the one part that is evaluated outside
        self._scopes.append((names, {}))
        self.generic_visit(node)
        self._scopes.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def _bound(function, text: _Text) -> tuple[set[str], dict]:
    """Names that a function binds, and those it imports: module and name there."""
    arguments = function.args
    bound = {one.arg for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg,
                                 arguments.kwarg] if one is not None}
    imports, outer = {}, set()
    waiting: list[ast.AST] = list(function.body) if isinstance(function.body, list) else [function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
            continue
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            waiting += [part.target for part in ast.walk(node) if isinstance(part, ast.NamedExpr)]
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= text._imported(node)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            outer |= set(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            bound.add(node.name)
        waiting += ast.iter_child_nodes(node)
    return bound - outer, imports


# ------------------------------------------------------------------------------------------------------- many modules


@dataclass(frozen=True)
class Reached:
    """All that bears on a computation.

    Attributes:
        definitions: full name -> digest.
        roots: where it starts, full names.
        words: names of the entries by name that were reached.
        own: whether code took part that lies in no file, such as a function of a notebook's cell.
    """

    definitions: Mapping[str, str]
    roots: tuple[str, ...]
    words: tuple[str, ...]
    own: bool = False

    @functools.cached_property
    def fingerprint(self) -> str:
        """Of the definitions, wherever they lie: 16 hexadecimal digits."""
        return fingerprint(self.definitions.values())


def fingerprint(digests: Iterable[str]) -> str:
    """One for many, in any order: 16 hexadecimal digits."""
    return _digest(" ".join(sorted(digests)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Sources:
    """Python modules as they lie in folders: the library, and the user's own.

    Args:
        library: folder of the package.
        beside: folders in which the user's modules are looked for.
    """

    def __init__(self, library: Path = LIBRARY, beside: Iterable[Path] = ()):
        self.library, self.beside = Path(library), tuple(map(Path, beside))
        self._texts: dict[str, _Text | None] = {}
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

    def text(self, module: str) -> _Text | None:
        """A module's text; None of one that is not followed."""
        if module not in self._texts:
            path = self.path(module)
            self._texts[module] = None
            if path is not None:
                self.read[path] = _state(path)
                self._texts[module] = _parsed(self._content(path), self._full(module), path.name == "__init__.py")
        return self._texts[module]

    def _full(self, module: str) -> str:
        """The name by which relative imports of a module are meant."""
        return module

    def _content(self, path: Path) -> str:
        return _read(path)

    def add_cells(self, module: str, text: str, ends: list[int]) -> list[str]:
        """A module that lies in no file: the code of a notebook, of which each cell is a definition at its place.

        Args:
            ends: number of lines before each cell, and of all.

        Returns:
            names of these definitions.
        """
        whole, names = _Text(text), []
        self._texts[module] = whole
        for number, (before, end) in enumerate(pairwise(ends)):
            name = f"{module}:<cell {number}>"
            cell = self._made(name, [node for node in whole.tree.body if before < node.lineno <= end])
            self._definitions[name] = replace(cell, digest=_digest(f"{number} {cell.digest}"))
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

    def find(self, name: str) -> str:
        """A full name as it is now, of a definition that may have moved: the one of that name in another module."""
        if self.definition(name) is not None:
            return name
        module, _, here = name.partition(":")
        modules = [".".join((PACKAGE, *path.relative_to(self.library).with_suffix("").parts)).removesuffix(".__init__")
                   for path in sorted(self.library.rglob("*.py"))]
        moved = [one for one in modules if here in getattr(self.text(one), "nodes", ())]
        parts = set(re.split("[._]", module)[1:])
        return f"{max(moved, key=lambda one: len(parts & set(re.split('[._]', one))))}:{here}" if moved else name

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

    def reach(self, roots: Iterable[str], words: Iterable[str] = (), but: frozenset[str] = FOR_NUMBERS) -> Reached:
        """All definitions that bear on what starts at `roots`.

        Args:
            roots: full names.
            words: texts that the computation was given.
            but: modules, and names in modules, that are not followed, without the package's name.
        """
        # A word counts for a table where it is said outside of the table's own module.
        heard, found, tables = {word.partition(":")[0]: {""} for word in words}, {}, set()
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name in found or left_out(name, but):
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
        used = sorted({key for table in tables for key in self._asked(table, heard)})
        return Reached({name: digest for name, digest in found.items() if digest}, tuple(sorted(roots)), tuple(used))


def left_out(name: str, but: frozenset[str]) -> bool:
    """Whether a definition is not followed: it, its module or its room is named in `but`, without the package's name."""
    module, _, here = name.partition(":")
    inside = module.removeprefix(f"{PACKAGE}.") if module.startswith(f"{PACKAGE}.") else None
    return inside is not None and not but.isdisjoint({inside, f"{inside}:{here}", inside.partition(".")[0]})


def of_cells(cells: list[str], words: Iterable[str] = (), library: Path = LIBRARY, beside: Iterable[Path] = (),
             but: frozenset[str] = FOR_PAGES) -> Reached:
    """All that bears on what the code of a notebook shows.

    Args:
        cells: code of each cell.
        words: texts among its parameters.
        library: folder of the package that it runs with.
        beside: folders from which it imports modules of the user's own.
        but: what is not followed.
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
            lost[f"{NOTEBOOK}:<cell {number}>"], code = _digest(code), "\n"
        cells[number] = code.rstrip("\n") + "\n"
        ends.append(ends[-1] + cells[number].count("\n"))
    roots = sources.add_cells(NOTEBOOK, "".join(cells), ends)
    found = sources.reach(roots, words, but)
    held.take(sources)
    return Reached({**found.definitions, **lost}, found.roots, found.words)


def _read(path: Path) -> str:
    with tokenize.open(path) as file:  # in the encoding that it declares
        return file.read()


_held: dict[tuple, Sources] = {}


def of_folder(library: Path = LIBRARY, beside: Iterable[Path] = ()) -> Sources:
    """The modules of folders as they are now; what was read before is read again only where a file changed."""
    place = Path(library), tuple(map(Path, beside))
    if place not in _held or any(_state(path) != before for path, before in _held[place].read.items()):
        _held[place] = Sources(*place)
    return _held[place]


# ------------------------------------------------------------------------------------------------ what runs, as objects


class _Running(Sources):
    """The modules of this process: the library as it was when this began, the user's own as they were when imported.

    Args:
        then: path -> state and text; those of now when None.
    """

    def __init__(self, then: dict[Path, tuple] | None = None):
        super().__init__()
        self._then = {path: _taken(path) for path in LIBRARY.rglob("*.py")} if then is None else then
        self.loaded: dict[Path, tuple] = {}  # by the last import, where that was after this began

    def note(self, path: Path) -> None:
        """Take the text of a module that is about to be loaded."""
        self.loaded[path] = _taken(path)
        self._then.setdefault(path, self.loaded[path])

    def path(self, module: str) -> Path | None:
        """The file of a module that is followed and was imported."""
        if module.split(".")[0] == PACKAGE:
            return super().path(module)
        file = getattr(sys.modules.get(module), "__file__", None)
        if not file or not file.endswith(".py") or file.startswith(INSTALLED) or not Path(file).is_file():
            return None
        if Path(file) not in self._then:
            self._then[Path(file)] = _taken(Path(file))
        return Path(file)

    def is_namespace(self, module: str) -> bool:
        """As for `Sources`, of what was imported."""
        loaded = sys.modules.get(module)
        return module.split(".")[0] != PACKAGE and getattr(loaded, "__file__", "") is None and hasattr(loaded, "__path__")

    def _full(self, module: str) -> str:
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        return spec.name if module == "__main__" and spec is not None else module  # run by `python -m`

    def _content(self, path: Path) -> str:
        return self._then[path][1] if path in self._then else super()._content(path)

    def loaded_otherwise(self, module: str, path: Path, reached: Reached) -> bool:
        """Whether some of what was reached in a module is another in the text that it was last loaded from."""
        if path not in self.loaded or self.loaded[path][1] == self._then[path][1]:
            return False
        return self._differ(reached, {**self._then, path: self.loaded[path]}, f"{module}:")

    def _differ(self, reached: Reached, then: dict[Path, tuple], where: str = "") -> bool:
        other = _Running(then)
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
        changed = [path for path in paths if path in self._then and _state(path) != self._then[path][0]]
        if not changed:
            return
        if self._differ(reached, {**self._then, **{path: _taken(path) for path in changed if path.is_file()}}):
            raise MiaError(f"{changed[0]} was edited after this process had begun, so what runs is not what the file says. "
                           "Restart it (in JupyterLab: Kernel, Restart) and run again; what was finished is kept.")


def _state(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _taken(path: Path) -> tuple:
    """State and text of a file."""
    return _state(path), _read(path)


class _Noting:
    """Finds no module, but takes the text of each that is followed just before it is loaded (`sys.meta_path`)."""

    @staticmethod
    def find_spec(name: str, path=None, target=None) -> None:
        with contextlib.suppress(Exception):  # an import fails or not without us
            own = name.partition(".")[0] == PACKAGE
            if own or path is None or not all(str(one).startswith(INSTALLED) for one in path):
                file = getattr(PathFinder.find_spec(name, path), "origin", None) or ""
                if file.endswith(".py") and (own or not file.startswith(INSTALLED)):
                    _running.note(Path(file))


INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_running = _Running()
for _module in list(sys.modules):  # those of the user's that were imported before
    if _module.partition(".")[0] not in (PACKAGE, *sys.stdlib_module_names):
        with contextlib.suppress(OSError, SyntaxError, UnicodeError):
            _running.path(_module)
sys.meta_path.insert(0, _Noting)
_memo: dict[tuple, Reached] = {}
_known: dict[str, Reached] = {}  # by fingerprint


def of(*things) -> Reached:
    """All that bears on what functions compute with the objects that they hold.

    Args:
        things: functions, methods, partials, classes; objects, of which classes and fields count; networks, of which each
            layer does; containers of such; texts.
    """
    walk = _Walk()
    for thing in things:
        walk.see(thing)
    asked = frozenset(walk.roots), frozenset(walk.words), tuple(sorted(walk.own.items()))
    if asked not in _memo:
        found = _running.reach(walk.roots, walk.words, FOR_NUMBERS)
        _memo[asked] = Reached({**found.definitions, **walk.own}, found.roots, found.words, bool(walk.own))
        _known[_memo[asked].fingerprint] = _memo[asked]
    return _memo[asked]


def check(code: str) -> None:
    """See to it that what this process runs is what the files say, before something is kept under a fingerprint.

    Raises:
        MiaError: some of the definitions behind it were edited after this process had begun.
    """
    if code in _known:
        _running.check(_known[code])


def known(code: str) -> Reached | None:
    """What stood behind a fingerprint that this process has taken."""
    return _known.get(code)


def follows(module: str) -> bool:
    """Whether the source of a module that was imported is followed; those of Python and of installed packages are not."""
    return _running.path(module) is not None


def check_loaded(*things) -> None:
    """See to it that functions, classes and objects run as their files say, now and when this process took their fingerprint.

    Args:
        things: as for `of`.

    Raises:
        MiaError: some of the definitions behind them were edited since; or as for `check_running`.
    """
    reached = of(*things)
    _running.check(reached)
    check_running(reached)


def check_running(reached: Reached) -> None:
    """See to it that what was reached runs as its fingerprint says, before something is looked up under it.

    An edit of a file alone does no harm here: look-up goes by the text from which this process runs.

    Raises:
        MiaError: a module was edited before it was imported, but after its fingerprint was taken, or the other way round; or
            it was loaded anew.
    """
    for module in {name.partition(":")[0] for name in reached.definitions}:
        path, loaded = _running.path(module), sys.modules.get(module)
        if path is None:
            continue
        if _running.loaded_otherwise(module, path, reached):
            raise MiaError(f"{path} was edited between the start of this process and its import, or loaded anew, so what runs "
                           "is not what goes by its fingerprint. Restart it (in JupyterLab: Kernel, Restart) and run again; "
                           "what was finished is kept.")
        if module.partition(".")[0] == PACKAGE or type(getattr(loaded, "__loader__", None)) is not SourceFileLoader:
            continue  # another loader, such as that of pytest, may write code of its own into it
        taken = {name.partition(":")[2] for name in reached.definitions if name.startswith(f"{module}:")}
        if name := _otherwise(loaded, path, _running.text(module), taken):
            raise MiaError(f"{name}, which runs, is not what {path} says: the file was edited after it was imported, or "
                           f"{name} was set from outside. Restart (in JupyterLab: Kernel, Restart), or write it into the "
                           "file, and run again; what was finished is kept.")


def _otherwise(module: types.ModuleType, path: Path, text: _Text, taken: set[str]) -> str | None:
    """The first of some definitions that is another in memory than in a module's text: a function, or a constant number, text
    or tuple, but for those that functions of the module set."""
    texts = _functions_in(_running._content(path), str(path))
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
    return _digest(f"{code.co_code.hex()} {constants!r} {code.co_names} {code.co_varnames} {code.co_freevars}")


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


class _Walk:
    """Goes through objects and gathers the definitions behind them."""

    def __init__(self):
        self.roots, self.words, self.own, self._seen = set(), set(), {}, {}

    def see(self, thing) -> None:
        """Take in an object."""
        if isinstance(thing, str):
            if len(thing) < 64:
                self.words.add(thing)
            return
        if id(thing) in self._seen or thing is None or isinstance(thing, (bool, int, float, complex, bytes, *_arrays())):
            return
        self._seen[id(thing)] = thing  # held, so that no other object gets its id
        if isinstance(thing, functools.partial):
            self._each([thing.func, *thing.args, *thing.keywords.values()])
            self._given(inspect.unwrap(getattr(thing.func, "__func__", thing.func)), [*thing.args, thing.keywords])
        elif isinstance(thing, types.MethodType):
            self._each([thing.__func__, thing.__self__])
            self._given(thing.__func__, [thing.__self__] * (not isinstance(thing.__self__, type)))
        elif isinstance(thing, types.FunctionType):
            self._function(thing)
        elif isinstance(thing, type):
            self._class(thing)
        elif isinstance(thing, Mapping):
            self._each([*thing.keys(), *thing.values()])
        elif isinstance(thing, list | tuple | set | frozenset):
            self._each(thing)
        elif isinstance(thing, types.ModuleType):
            if _running.path(thing.__name__):
                self.roots.add(f"{thing.__name__}:*")
        elif hasattr(thing, "__wrapped__"):  # such as functools.cache makes
            self.see(thing.__wrapped__)
        elif isinstance(getattr(thing, "_modules", None), dict):  # a network of PyTorch's
            self._each([type(thing), *thing._modules.values()])
        elif hasattr(type(thing), "__definitions__"):  # says itself what of it bears
            self._each([type(thing), *thing.__definitions__()])
        else:
            self.see(type(thing))
            if is_dataclass(thing):
                self._each(getattr(thing, one.name, None) for one in fields(thing))
            elif _followed(type(thing).__module__):
                self._each(vars(thing).values() if hasattr(thing, "__dict__") else ())

    def _each(self, things: Iterable) -> None:
        for thing in things:
            self.see(thing)

    def _function(self, function: types.FunctionType) -> None:
        if hasattr(function, "__wrapped__"):  # a decorator's
            self.see(function.__wrapped__)
            inner = inspect.unwrap(function)
            if not isinstance(inner, types.FunctionType) or self._root(inner):
                return  # the text of what it wraps names the decorator
        self._each([*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()])
        self._each(cell.cell_contents for cell in function.__closure__ or () if _filled(cell))
        if not self._root(function):
            self._from_bytes(function)

    def _class(self, one: type) -> None:
        for base in one.__bases__:
            if base is not object:
                self.see(base)
        if _followed(one.__module__) and not self._root(one):
            self.see(type(one))
            for name, value in vars(one).items():
                behind = [value, *(getattr(value, part, None) for part in ("__func__", "fget", "fset", "func", "__wrapped__"))]
                self._each(part for part in behind if isinstance(part, types.FunctionType | type))
                if not name.startswith("__"):
                    self._plain(f"{one.__module__}:{one.__qualname__}.{name}", value)

    def _root(self, thing) -> bool:
        """Note where a function or class is defined, if a file that is followed says."""
        module, top = thing.__module__ or "", thing.__qualname__.split(".")[0]
        if not _followed(module):
            return True
        path = _running.path(module)
        if path is None or top not in _running.text(module).nodes:
            return False
        if isinstance(thing, types.FunctionType) and Path(thing.__code__.co_filename).resolve() != path.resolve():
            return False  # made by other means, such as exec
        self.roots.add(f"{module}:{top}")
        return True

    def _from_bytes(self, function: types.FunctionType) -> None:
        """A function that no file defines, such as one of a notebook's cell: by what it runs, and the names it uses."""
        waiting, total, names = [function.__code__], hashlib.sha256(), set()
        while waiting:
            code = waiting.pop()
            constants = [one for one in code.co_consts if not isinstance(one, types.CodeType)]
            if constants and constants[0] == function.__doc__:
                constants = constants[1:]
            constants = [sorted(map(repr, one)) if isinstance(one, frozenset) else one for one in constants]
            total.update(code.co_code + repr((constants, code.co_names, code.co_varnames)).encode())
            names |= set(code.co_names)
            self._each(one for one in constants if isinstance(one, str))
            waiting += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        held = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
        total.update(repr([_value(one) for one in (function.__defaults__, function.__kwdefaults__, *held)]).encode())
        name, digest = f"{function.__module__}:{function.__qualname__}", total.hexdigest()[:16]
        self.own[name] = _digest(self.own[name] + digest) if name in self.own else digest  # several may be called <lambda>
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            if isinstance(value, types.ModuleType):
                if _running.path(value.__name__):
                    inside = [_running.resolve(value.__name__, one) for one in names]
                    self.roots |= set(filter(None, inside)) or {f"{value.__name__}:*"}
            else:
                self.see(value)
                self._plain(f"{function.__module__}:{name}", value)

    def _given(self, function, arguments: list) -> None:
        """What is bound to a function or class of the user's own: no spec of ours says it."""
        module = getattr(function, "__module__", None) or ""
        if arguments and module.partition(".")[0] != PACKAGE and _followed(module):
            said, name = _digest(_value(arguments)), f"{module}:{getattr(function, '__qualname__', '')}(...)"
            self.own[name] = _digest(self.own[name] + said) if name in self.own else said

    def _plain(self, name: str, value) -> None:
        """A constant of the user's own, by its value."""
        if not isinstance(value, type | types.FunctionType | types.ModuleType):  # which `see` follows
            self.own[name] = _digest(_value(value))


PLAIN = (bool | int | float | complex | str | bytes | range | slice | PurePath | Fraction | Decimal | datetime.date
         | datetime.timedelta)


def _value(value, around: tuple[int, ...] = ()) -> str:
    """What a value is, the same in every process: numbers, texts, arrays, containers of such, and objects by their fields. Of
    anything else it is the type, and of the library's objects what they say themselves."""
    if value is None or isinstance(value, PLAIN):
        return f"{type(value).__name__} {value!r}"
    if id(value) in around:
        return "..."
    around, kind = (*around, id(value)), type(value)
    if isinstance(value, _arrays()):
        if value.dtype == object:
            return f"array{value.shape}{_value(value.tolist(), around)}"
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, Mapping):
        inside = [_value(list(pair), around) for pair in value.items()]
    elif isinstance(value, list | tuple | set | frozenset):
        inside = [_value(one, around) for one in value]
    elif is_dataclass(value) and not isinstance(value, type) and kind.__dataclass_params__.eq:
        inside = [f"{one.name}={_value(getattr(value, one.name, None), around)}" for one in fields(value)]
    elif isinstance(getattr(value, "fingerprint", None), str):  # a data set
        inside = [value.fingerprint]
    elif kind is types.SimpleNamespace or (hasattr(value, "__dict__") and _followed(kind.__module__)
                                           and kind.__module__.partition(".")[0] != PACKAGE):
        inside = [f"{name}={_value(one, around)}" for name, one in vars(value).items()]
    else:
        inside = [getattr(value, "__qualname__", "")]
    return f"{kind.__qualname__}({', '.join(sorted(inside) if isinstance(value, set | frozenset) else inside)})"


def _arrays() -> tuple[type, ...]:
    """NumPy's arrays and numbers, which is not imported for this."""
    numpy = sys.modules.get("numpy")
    return (numpy.ndarray, numpy.generic) if numpy else ()


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _followed(module: str | None) -> bool:
    """Whether definitions of a module count at all: not those of Python and of installed packages."""
    if not module or module == "__main__":
        return bool(module)
    if module.split(".")[0] in sys.stdlib_module_names:
        return False
    return _running.path(module) is not None or getattr(sys.modules.get(module), "__file__", None) is None
