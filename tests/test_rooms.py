"""Which room may import which: data flow one way, and no paper knows another."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import mia_lib
from mia_lib import LIBRARY

GROUND = {"errors", "checks", "archives", "documents", "environment"}
BELOW = {  # a room (file or folder of mia_lib) -> the rooms it may import
    "errors": set(),
    "checks": {"errors"},
    "archives": {"errors"},
    "documents": {"errors"},
    "environment": {"errors"},
    "_torch": set(),
    "progress": {"environment"},
    "processes": {"environment"},
    "data": GROUND | {"progress"},
    "membership": GROUND,
    "custom": {"errors", "store"},
    "models": GROUND | {"_torch", "custom", "data.readers"},
    "store": GROUND | {"progress"},
    "training": GROUND
    | {"_torch", "processes", "progress", "data", "membership", "custom", "models", "store"},
    "signals": GROUND | {"_torch", "progress", "data", "membership", "models", "store", "training"},
    "published": GROUND
    | {
        "progress",
        "store",
        "custom",
        "training",
    },  # and by name the modules `measure` of the chapters
    "attacks": GROUND,
    "attacks.quantile.networks": GROUND | {"_torch", "models", "training.devices", "data.readers"},
    "metrics": GROUND | {"progress"},
    "evidence": GROUND | {"metrics"},
    "evidence.primer": GROUND | {"data", "membership", "metrics"},
    "game": GROUND | {"attacks", "metrics"},
    "standalone": set(),
    "audit": GROUND
    | {
        "standalone",
        "progress",
        "data",
        "membership",
        "custom",
        "models",
        "store",
        "training",
        "signals",
        "attacks",
        "metrics",
        "evidence",
    },
    "papers": GROUND
    | {
        "progress",
        "data",
        "membership",
        "models",
        "store",
        "training",
        "signals",
        "published",
        "attacks",
        "metrics",
        "game",
        "evidence",
    },
    "papers.audit": GROUND
    | {
        "data",
        "membership",
        "models",
        "training",
        "signals",
        "published",
        "attacks",
        "metrics",
        "game",
        "evidence",
        "audit",
    },
    "course": GROUND
    | {"standalone", "progress", "data", "store", "signals", "published", "attacks", "metrics"},
    "publish": GROUND
    | {
        "standalone",
        "progress",
        "data",
        "membership",
        "custom",
        "models",
        "store",
        "training",
        "signals",
        "published",
        "attacks",
        "metrics",
        "evidence",
        "audit",
        "papers",
        "course",
    },
}
PRIVATE = {  # a module -> private names that it takes from others
    "audit.programs": {"_package"},  # of PyTorch
    "attacks.quantile.networks": {"_fc"},  # a layer of the package efficientnet-lite-pytorch
    "models": {"_mia_scaling"},  # which it writes to networks
    "processes": {
        "_forkserver",
        "_forkserver_pid",
        "_preload_modules",
        "_dynamo",
    },  # Python's and PyTorch's
    "publish.sphinx_ext": {"_document"},  # of docutils
    "signals.boundary": {"_fields"},  # of named tuples
    "signals.outputs": {"_forward_pre_hooks"},  # of PyTorch
    "training.pool": {"_exit", "_processes", "_result_queue", "_writer"},  # Python's
}
MODULES = sorted(
    path for path in LIBRARY.rglob("*.py") if path.parent != LIBRARY or path.name != "__init__.py"
)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(LIBRARY).with_suffix("").parts).removesuffix(".__init__")


NAMES = {name_of(path) for path in MODULES}
PAPERS = {f"papers.{path.name}" for path in (LIBRARY / "papers").iterdir() if path.is_dir()}


@cache
def imports(path: Path) -> set[str]:
    """Modules of the library that a module imports anywhere in it, without the package's name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("mia_lib")}
        elif (
            isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "mia_lib"
        ):
            assert not node.level
            for alias in node.names:
                whole = f"{node.module}.{alias.name}".removeprefix("mia_lib.")
                if node.module == "mia_lib" and whole not in NAMES and whole in vars(mia_lib):
                    continue  # a constant of the package itself
                found.add(
                    whole if whole in NAMES else node.module.removeprefix("mia_lib").lstrip(".")
                )
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_from_rooms_below(path):
    here = name_of(path)
    room = here.partition(".")[0]
    allowed = BELOW.get(here, BELOW.get(".".join(here.split(".")[:2]), BELOW[room]))
    for module in imports(path):
        inside = module == room or module.startswith(f"{room}.")
        if room == "papers" and inside:  # its own folder, or what all chapters share
            inside = (
                module.split(".")[1] == here.split(".")[1]
                or module.count(".") == 1
                and module not in PAPERS
            )
        assert inside or any(module == one or module.startswith(f"{one}.") for one in allowed), (
            f"{here} imports {module}; it may import {sorted(allowed)}"
        )


def test_neither_rooms_nor_files_import_by_way_of_others_themselves():
    rooms = {
        room: {one.partition(".")[0] for one in below} - {room}
        for room, below in BELOW.items()
        if "." not in room
    }
    rooms["attacks"] |= {"models"}
    TopologicalSorter(rooms).prepare()
    TopologicalSorter({name_of(path): imports(path) for path in MODULES}).prepare()


def private_names_of_others(path: Path) -> set[str]:
    """Private names that a module takes from another module, or from an object whose class is not its own."""
    text = path.read_text(encoding="utf-8")
    own = set(re.findall(r"(?:def |class |self\.|cls\.)(_(?!_)\w+)", text))
    imported = " ".join(re.findall(r"^ *from mia_lib\S+ import ([ \w,]+)", text, re.M))
    return (
        {*re.findall(r"(?<=[\w)\]]\.)_(?!_)\w+", text), *re.findall(r"\b_(?!_)\w+", imported)}
        - own
        - {"_torch"}
    )


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_takes_no_private_name_of_another(path):
    assert private_names_of_others(path) == PRIVATE.get(name_of(path), set())
