"""Which room may import which: data flow one way, the library never imports the book, and no chapter knows another."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import mia_book  # noqa: F401  which appends its folder
from mia_lib import LIBRARY, PACKAGES

GROUND = {"errors", "checks", "archives", "documents", "environment", "frames"}
BELOW = {  # a room (file or folder of mia_lib) -> the rooms it may import
    "errors": set(),
    "checks": {"errors"},
    "archives": {"errors"},
    "frames": {"errors"},
    "documents": {"errors"},
    "environment": {"errors"},
    "_torch": set(),
    "progress": {"environment"},
    "processes": {"environment"},
    "templates": set(),
    "data": GROUND | {"progress"},
    "membership": GROUND,
    "custom": {"errors", "store"},
    "models": GROUND | {"_torch", "custom", "data.readers"},
    "store": GROUND | {"progress"},
    "training": GROUND
    | {"_torch", "processes", "progress", "data", "membership", "custom", "models", "store"},
    "signals": GROUND
    | {"_torch", "progress", "data", "membership", "custom", "models", "store", "training"},
    "published": GROUND | {"custom", "progress", "store"},
    "attacks": GROUND,
    "attacks.feasibility": GROUND | {"signals.boundary"},
    "attacks.quantile.networks": GROUND | {"_torch", "models", "training.devices", "data.readers"},
    "metrics": GROUND | {"progress"},
    "game": GROUND | {"attacks", "metrics"},
    "drawing": GROUND | {"attacks", "metrics"},
}
LIBRARY_ROOMS = {*BELOW}
BELOW["audit"] = LIBRARY_ROOMS - {"published", "game"}
LIBRARY_ROOMS |= {"audit", "cli", "doctor"}
BELOW |= {"doctor": LIBRARY_ROOMS - {"cli"}, "cli": LIBRARY_ROOMS}
BELOW |= {  # those of mia_book, which may import all of the library
    "book": LIBRARY_ROOMS,
    "book.folders": LIBRARY_ROOMS,
    "book.evidence": LIBRARY_ROOMS | {"book.folders"},
    "book.publishing": LIBRARY_ROOMS | {"book.folders", "book.evidence"},
    "book.course": LIBRARY_ROOMS | {"book.folders", "book.publishing"},
    "book.chapters": LIBRARY_ROOMS | {"book.folders", "book.evidence", "book.publishing"},
    "book.pages": LIBRARY_ROOMS
    | {"book.folders", "book.evidence", "book.publishing", "book.course", "book.chapters.primer"},
}
PRIVATE = {  # a module -> private names that it takes from others
    "audit.programs": {"_package"},  # of PyTorch
    "attacks.quantile.networks": {"_fc"},  # a layer of the package efficientnet-lite-pytorch
    "models": {"_mia_scaling"},  # which it writes to networks
    # Python's and PyTorch's
    "processes": {"_forkserver", "_forkserver_pid", "_preload_modules", "_dynamo"},
    "book.pages.sphinx_ext": {"_document"},  # of docutils
    "signals.boundary": {"_fields"},  # of named tuples
    "signals.outputs": {"_forward_pre_hooks"},  # of PyTorch
    "signals.tokens": {"_asdict", "_fields"},  # of named tuples
    "training.pool": {"_exit", "_processes", "_result_queue", "_writer"},  # Python's
}
MODULES = sorted(
    path
    for package in PACKAGES
    for path in package.rglob("*.py")
    if path != LIBRARY / "__init__.py"
)


def name_of(path: Path) -> str:
    """A module's name without the package's; those of `mia_book` begin with "book"."""
    parts = path.relative_to(LIBRARY.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__").removeprefix("mia_lib.").removeprefix("mia_")


NAMES = {name_of(path) for path in MODULES}


@cache
def imports(path: Path) -> set[str]:
    """Modules of both packages that a module imports anywhere in it, as `name_of` calls them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if re.match(r"mia_(lib|book)\b", name):
                whole = re.sub(r"^mia_(lib\.)?", "", name)
                while whole not in NAMES and "." in whole:  # what is imported from a module
                    whole = whole.rpartition(".")[0]
                if whole in NAMES:
                    found.add(whole)
    return found


def room_of(name: str) -> str:
    """The room in `BELOW` that a module is of: the longest name there that its own begins with."""
    parts = name.split(".")
    return next(room for n in range(len(parts), 0, -1) if (room := ".".join(parts[:n])) in BELOW)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_from_rooms_below(path):
    here = name_of(path)
    room = room_of(here)
    depth = 3 if room.startswith("book.chapters") else 2 if room.startswith("book") else 1
    own = ".".join(here.split(".")[:depth])  # of the chapters each is a room
    for module in imports(path):
        inside = module == own or module.startswith(f"{own}.")
        assert inside or any(
            module == one or module.startswith(f"{one}.") for one in BELOW[room]
        ), f"{here} imports {module}; it may import {sorted(BELOW[room])}"


def test_the_library_never_imports_the_book():
    assert not any(
        module.partition(".")[0] == "book"
        for path in MODULES
        if LIBRARY in path.parents
        for module in imports(path)
    )


def test_neither_rooms_nor_files_import_by_way_of_others_themselves():
    rooms = {
        room: {room_of(one) for one in below} - {room}
        for room, below in BELOW.items()
        if room.count(".") < 2
    }
    rooms = {room: below - {"attacks.quantile.networks"} for room, below in rooms.items()}
    rooms["attacks"] |= {"models"}
    TopologicalSorter(rooms).prepare()
    TopologicalSorter(
        {name_of(path): imports(path) - {name_of(path)} for path in MODULES}
    ).prepare()


def private_names_of_others(path: Path) -> set[str]:
    """Private names that a module takes from another module, or from an object whose class is not its own."""
    text = path.read_text(encoding="utf-8")
    own = set(re.findall(r"(?:def |class |self\.|cls\.)(_(?!_)\w+)", text))
    imported = " ".join(re.findall(r"^ *from mia_\S+ import ([ \w,]+)", text, re.M))
    return (
        {*re.findall(r"(?<=[\w)\]]\.)_(?!_)\w+", text), *re.findall(r"\b_(?!_)\w+", imported)}
        - own
        - {"_torch", "_common"}
    )


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_takes_no_private_name_of_another(path):
    assert private_names_of_others(path) == PRIVATE.get(name_of(path), set())
