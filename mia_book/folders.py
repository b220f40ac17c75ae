"""Where a chapter keeps what is its own: one folder, `mia_book/chapters/NAME/`.

It may hold the modules `measure`, `study`, `exhibits` and `theory`; `claims.yaml`; `printed/TABLE.csv`, what the paper
printed; `presets/PRESET.yaml`; `quiz.yaml`; decks of slides, `slides.md` and `slides-MORE.md`; and in its `__init__.py` a
`CLASS_RUN`. Beside it stand its notebook, `notebooks/NAME.py`, and a line in `_toc.yml`, which says where it comes.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

from mia_lib.errors import MiaError

CHAPTERS = Path(__file__).parent / "chapters"
TEMPLATE = (
    Path(__file__).parent / "template"
)  # of a chapter to begin with; each file's name ends in .txt


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
    text = (root / "_toc.yml").read_text(encoding="utf-8")
    return re.findall(r"^ *-? *file: *notebooks/([\w-]+)(?:\.\w+)? *$", text, re.MULTILINE)


def begin(name: str, title: str, root: Path) -> list[Path]:
    """Write a chapter to begin with: its folder and its notebook, from `TEMPLATE`.

    Args:
        name: of the new chapter, a lower-case word. title: its heading. root: of the book.

    Returns:
        the files that were written.

    Raises:
        MiaError: a name that is no lower-case word, or of a chapter that is there.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise MiaError(f"name = {name!r}: a lower-case word is needed, such as leakage.")
    notebook, folder = root / "notebooks" / f"{name}.py", of(root) / name
    if notebook.exists() or folder.exists():
        raise MiaError(f"name = {name!r}: there is such a chapter already, {folder}.")
    written = []
    for source in sorted(path for path in TEMPLATE.rglob("*.txt")):
        place = source.relative_to(TEMPLATE).with_suffix("")
        path = notebook if place.name == "notebook.py" else folder / place
        text = source.read_text(encoding="utf-8").replace("NAME", name).replace("TITLE", title)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
