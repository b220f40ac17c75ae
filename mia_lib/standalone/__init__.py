"""Pages that are one file: no network, no script, light and dark, a phone and paper; and templates in general."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2


def page(template: Path, filters: Mapping[str, Callable] | None = None, **values) -> str:
    """A page as text; what is put into HTML is escaped.

    Args:
        template: a file, for a page that is one file of HTML one that extends `base.html` of this folder: blocks `title`,
            `style` (its own rules), `main`.
        filters: names that the template formats values with.
        values: what the template names; what it names and is not given is an error.
    """
    return environment(template, filters).get_template(template.name).render(values)


def environment(template: Path, filters: Mapping[str, Callable] | None = None) -> jinja2.Environment:
    """Where a template is found; arguments as for `page`."""
    of_folder = _environment(template.parent)
    of_folder.filters |= filters or {}
    return of_folder


@cache
def _environment(folder: Path) -> jinja2.Environment:
    """One a folder, which keeps what it has compiled."""
    import jinja2

    made = jinja2.Environment(loader=jinja2.FileSystemLoader([folder, Path(__file__).parent]), trim_blocks=True,
                              lstrip_blocks=True, undefined=jinja2.StrictUndefined,
                              autoescape=lambda name: name.endswith(".html"))
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "sort_keys": True, "ensure_ascii": False}
    return made
