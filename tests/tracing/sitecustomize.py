"""Python imports this at its start where its folder is on `PYTHONPATH`: notes which functions of the library are called.

Into the file that `MIA_CALLS` names go lines of JSON: {"page", "ran"} for each function that ran, with the number of the
kernel for which it did, and {"page", "said"} for each that the page displays, or names as an attack.

The library's modules are compiled with a call of `NOTE` at the head of each function, so that the rest of Python, Torch first,
runs as fast as ever; `sys.settrace` made a run of a notebook a third longer.
"""

import ast
import builtins
import hashlib
import importlib.machinery
import inspect
import json
import marshal
import os
import sys
from pathlib import Path

NOTE = "__mia_note__"
SEES = {"mia_lib.evidence.tables:show_source", "mia_lib.attacks:threat_model"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _at(node: ast.AST, code: str) -> ast.stmt:
    """A statement that stands where a node does."""
    statement, = ast.parse(code).body
    for part in ast.walk(statement):
        ast.copy_location(part, node)
    return statement


def noting(tree: ast.Module, module: str) -> ast.Module:
    """The module with a call at the head of each function that says its name and, of those in `SEES`, what it was given."""

    def walk(node: ast.AST, scope: str):
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (*FUNCTIONS, ast.ClassDef)):
                walk(child, scope)
                continue
            name = f"{scope}{child.name}"
            walk(child, f"{name}." if isinstance(child, ast.ClassDef) else f"{name}.<locals>.")
            full = f"{module}:{name}"
            if isinstance(child, ast.ClassDef):
                continue
            begins = int(ast.get_docstring(child, clean=False) is not None)
            head, rest = child.body[:begins], child.body[begins:]
            given = ", locals()" if full in SEES else ""
            child.body = [*head, _at(child, f"{NOTE}({full!r}{given})"), *rest]

    walk(tree, "")
    return tree


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module of the library with notes in it; what was compiled once is kept beside the file of notes."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        source = self.get_data(path)
        made = Path(os.environ["MIA_CALLS"] + ".code") / hashlib.sha256(path.encode() + b"\0" + source).hexdigest()
        try:
            return marshal.loads(made.read_bytes())
        except OSError:
            code = compile(noting(ast.parse(source, path), fullname), path, "exec", dont_inherit=True)
            made.parent.mkdir(exist_ok=True)
            new = made.with_suffix(f".{os.getpid()}")
            new.write_bytes(marshal.dumps(code))
            new.replace(made)
            return code


class Finder(importlib.machinery.PathFinder):
    """Finds the modules of the library, and no others."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname.partition(".")[0] != "mia_lib":
            return None
        spec = super().find_spec(fullname, path, target)
        if spec is not None and spec.origin and spec.origin.startswith(os.environ["MIA_CALLS_LIBRARY"]):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def begin(path: str) -> None:
    """Note what this process calls."""
    worker = "ipykernel_launcher" not in started_as
    page = os.getppid() if worker else os.getpid()
    noted, ran = set(), set()

    def write(line: dict) -> None:
        text = json.dumps(line, sort_keys=True)
        if text not in noted:
            noted.add(text)
            with open(path, "a", encoding="utf-8") as out:
                out.write(text + "\n")

    def said(given: dict) -> None:
        """Note what `show_source` is to display, or `threat_model` to declare."""
        values = [one for value in given.values() for one in (value.values() if isinstance(value, dict) else value)]
        for one in filter(inspect.isfunction, values):
            write({"page": page, "said": f"{one.__module__}:{one.__qualname__}"})

    def note(name: str, given: dict | None = None) -> None:
        if name not in ran:
            ran.add(name)
            write({"page": page, "ran": name})
        if given is not None:
            said(given)

    setattr(builtins, NOTE, note)
    sys.meta_path.insert(0, Finder)


started_as = " ".join(sys.orig_argv)
if os.environ.get("MIA_CALLS") and any(way in started_as for way in ("ipykernel_launcher", "spawn_main", "forkserver")):
    begin(os.environ["MIA_CALLS"])
