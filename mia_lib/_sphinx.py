"""A Sphinx extension of this book's: pages are kept small between builds.

Sphinx keeps each page it has read as a pickled tree, and unpickles it for every number of a figure and for every reference to
one. Parts of a page that came from a docstring still point to the document they were read in, and through its settings to all
that Sphinx knows of the whole book: a hundred times as much as the page.
"""

from __future__ import annotations


def setup(app) -> dict:
    """Called by Sphinx."""
    app.connect("doctree-read", forget_where_it_was_read, priority=999)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def forget_where_it_was_read(app, document) -> None:
    """Let every node of a page belong to the page and to no document besides."""
    for node in document.findall():
        if node.__dict__.get("_document") not in (None, document):
            node._document = None
