"""The reference: pages made from the library itself, a room a page, after the page of what is promised.

What only the library calls is not in it: it is for those who write `import mia_lib`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

FOLDER = "book/api"
PROMISE = f"{FOLDER}/promise"
ROOMS = {  # in the order in which data flow -> its modules that users call
    "data": ("data",),
    "membership": ("membership",),
    "models": ("models",),
    "training": ("training", "training.private", "training.backends.pool"),
    "store": ("store",),
    "signals": ("signals", "signals.curvature", "signals.hessian", "signals.boundary", "signals.views"),
    "published": ("published",),
    "attacks": ("attacks", "attacks.bayes", "attacks.calibration", "attacks.curvature", "attacks.iha", "attacks.quantile",
                "attacks.quantile.networks", "attacks.quantile.trees", "attacks.baselines", "attacks.per_class",
                "attacks.registry"),
    "metrics": ("metrics", "metrics.interval", "metrics.pairs"),
    "evidence": ("evidence.tables", "evidence.claims", "evidence.plotting", "evidence.panels",
                 "evidence.explore", "evidence.two_attacks", "evidence.game_cards"),
    "papers": ("papers.bayes.theory", "papers.calibration.theory", "papers.curvature.theory", "papers.iha.theory",
               "papers.quantile.theory", "papers.costs"),
    "errors": ("errors",),
}


def pages(library: Path) -> dict[str, bytes]:
    """The page of every room: path in the book -> content.

    Args:
        library: folder of the package, of which only the text is read.
    """
    return {f"{FOLDER}/{room}.md": _page(room, library).encode() for room in ROOMS}


def contents(toc: dict) -> dict:
    """The table of contents with these pages under that of the reference."""
    for part in toc.get("parts", ()):
        for chapter in part["chapters"]:
            if chapter.get("file") == f"{FOLDER}/index":
                chapter["sections"] = [{"file": page} for page in (PROMISE, *(f"{FOLDER}/{room}" for room in ROOMS))]
    return toc


def overview(library: Path) -> str:
    """What the front page of the reference lists: the rooms."""
    lines = ["## Rooms", "", "| room | holds | runs without PyTorch |", "| --- | --- | --- |"]
    for room, modules in ROOMS.items():
        heavy = [_needs_torch(library, module) for module in modules]
        without = "no" if all(heavy) else "yes" if not any(heavy) else "in part"
        lines.append(f"| [`{room}`]({room}.md) | {_first(ast.get_docstring(_tree(library, room)) or '')} | {without} |")
    return "\n".join(lines)


def _page(room: str, library: Path) -> str:
    lines = [f"# mia_lib.{room}", ""]
    if ROOMS[room][0] != room:
        lines += [ast.get_docstring(_tree(library, room)) or "", ""]
    for module in ROOMS[room]:
        if module != room:
            lines += [f"## mia_lib.{module}", ""]
        lines += ["```{eval-rst}", f".. automodule:: mia_lib.{module}", "   :members:", "   :show-inheritance:"]
        if _exports(library, module):
            lines.append("   :imported-members:")
        lines += ["```", ""]
    return "\n".join(lines)


def _path(library: Path, module: str) -> Path:
    folder = library.joinpath(*module.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def _tree(library: Path, module: str) -> ast.Module:
    return ast.parse(_path(library, module).read_text(encoding="utf-8"))


def _exports(library: Path, module: str) -> bool:
    """Whether a package names what it takes from its modules."""
    return any(isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
               for node in _tree(library, module).body)


def _first(text: str) -> str:
    line = " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")
    return line.removesuffix(".")


def _needs_torch(library: Path, module: str) -> bool:
    """Whether importing a module imports PyTorch, through the library."""
    return any(name == "torch" for name in _imported(library, module, set()))


def _imported(library: Path, module: str, seen: set[str]) -> Iterator[str]:
    """Packages that a module imports at its top level, itself or through others of the library."""
    if module in seen or not _path(library, module).is_file():
        return
    seen.add(module)
    for package in (module.rsplit(".", n)[0] for n in range(1, module.count(".") + 1)):
        yield from _imported(library, package, seen)
    for node in _tree(library, module).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
            if node.module.startswith("mia_lib"):
                base = node.module.removeprefix("mia_lib").lstrip(".")
                for name in [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)]:
                    if name:
                        yield from _imported(library, name, seen)
