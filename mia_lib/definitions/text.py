"""One Python text: its definitions, before names are followed into other modules."""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import re
import tokenize
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ByName = dict  # what a dictionary is annotated with that counts by its entries
HINTS = "mia_lib.hints"
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


class Text:
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
def parsed(text: str, module: str, is_package: bool) -> Text:
    return Text(text, module, is_package)


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

    def __init__(self, text: Text, find: Callable[[str, str | None], str | None]):
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


def _bound(function, text: Text) -> tuple[set[str], dict]:
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
