"""Pages that are one file: no network, no script, light and dark, a phone and paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path


def page(template: Path, filters: Mapping[str, Callable] | None = None, **values) -> str:
    """A page as HTML.

    Args:
        template: a file that extends `base.html` of this folder: blocks `title`, `style` (its own rules), `main`.
        filters: names that the template formats values with.
        values: what the template names; what it names and is not given is an error.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(loader=FileSystemLoader([template.parent, Path(__file__).parent]), autoescape=True,
                              trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    environment.filters |= filters or {}
    return environment.get_template(template.name).render(values)
