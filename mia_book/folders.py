"""Where a chapter keeps what is its own: one folder, `mia_book/chapters/NAME/`.

It may hold the modules `measure`, `study`, `exhibits` and `theory`; `claims.yaml`; `printed/TABLE.csv`, what the paper
printed; `presets/PRESET.yaml`; `quiz.yaml`; decks of slides, `slides.md` and `slides-MORE.md`; and in its `__init__.py` a
`CLASS_RUN`. Beside it stand its notebook, `notebooks/NAME.py`, and a line in `_toc.yml`, which says where it comes.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from mia_lib import documents

CHAPTERS = Path(__file__).parent / "chapters"


def of(root: Path | None = None) -> Path:
    """The folder of the chapters of the book in `root`, by default of this one."""
    return CHAPTERS if root is None else root / "mia_book" / "chapters"


def find(pattern: str, root: Path | None = None) -> dict[str, Path]:
    """Files by the chapter in whose folder they are, such as `find("claims.yaml")`; of several in one the first."""
    found: dict[str, Path] = {}
    for path in sorted(of(root).glob(f"*/{pattern}")):
        found.setdefault(path.relative_to(of(root)).parts[0], path)
    return found


def modules(name: str) -> list[ModuleType]:
    """The modules of all chapters that are called `name`, such as "measure"."""
    return [
        importlib.import_module(f"mia_book.chapters.{chapter}.{name}")
        for chapter in find(f"{name}.py")
    ]


def in_order(root: Path) -> list[str]:
    """The chapters that have a notebook in the book in `root`, in the order of its table of contents."""
    return _notebooks(documents.load(root / "_toc.yml"))


def _notebooks(entry) -> list[str]:
    """The names of the notebooks in a part of a table of contents."""
    if isinstance(entry, list):
        return [name for one in entry for name in _notebooks(one)]
    if not isinstance(entry, dict):
        return []
    own = entry.get("file", "")
    return [
        *([own.removeprefix("notebooks/")] if own.startswith("notebooks/") else []),
        *_notebooks([value for value in entry.values() if isinstance(value, list)]),
    ]
