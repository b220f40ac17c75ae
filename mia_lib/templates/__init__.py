"""Pages that are one file: no network, no script, light and dark, a phone and paper; and templates in general."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2


def template(path: Path, filters: Mapping[str, Callable] | None = None) -> jinja2.Template:
    """A template, to be rendered with values for the names in it. A name without a value is an
    error, and values are escaped where they are put into HTML.

    Args:
        path: its file. For a page that is one file it extends `base.html` of this folder: blocks `title`, `style` (its own
            rules), `main`.
        filters: name -> function by which the template formats values.
    """
    of_folder = _environment(path.parent)
    of_folder.filters |= filters or {}
    return of_folder.get_template(path.name)


@cache
def _environment(folder: Path) -> jinja2.Environment:
    """The environment for the templates of one folder, which keeps those that it has compiled."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, Path(__file__).parent]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        autoescape=lambda name: name.endswith(".html"),
    )
    made.policies["json.dumps_kwargs"] = {
        "separators": (",", ":"),
        "sort_keys": True,
        "ensure_ascii": False,
    }
    return made
