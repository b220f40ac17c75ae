"""A Sphinx extension of this book's: building it takes a fraction of the time, and a page loads what it needs and no more.

Sphinx keeps each page it has read as a pickled tree, and unpickles it for every number of a figure. Parts of a page that came
from a docstring still point to the document they were read in, and through its settings to all that Sphinx knows of the whole
book: a hundred times as much as the page.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from docutils import nodes

FOLDER, BUILT = "copies", "_build/book/_build/html"  # of executed copies, beside the pages
# class of what needs them
SCRIPTS = {"mia-explore": ("vega.js", "explore.js"), "mia-game": ("play.js",)}
FIGURE = re.compile(
    r'(<figure [^>]*id="([^"]+)"[^>]*)>((?:(?!</figure>).)*?<span class="caption-number")>',
    re.DOTALL,
)
PERCENT = re.compile(r"(<(pre|code|script)\b.*?</\2>)|(?<=\d) (?=%)", re.DOTALL)
UNCAPTIONED = re.compile(r"<figure(?=[^>]*>(?:(?!</?figure>|<figcaption).)*?</figure>)", re.DOTALL)


def setup(app) -> dict:
    """Called by Sphinx."""
    app.connect("doctree-read", detach_nodes_from_source_document, priority=999)
    app.connect("env-updated", write_side_by_side)
    app.connect("html-page-context", finish_page, priority=900)  # after Sphinx put mathematics in
    app.connect("build-finished", keep_what_pages_load, priority=900)  # after MathJax was copied
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def detach_nodes_from_source_document(app, document) -> None:
    """Let every node of a page belong to the page and to no document besides."""
    for node in document.findall():
        if node.__dict__.get("_document") not in (None, document):
            node._document = None


def write_side_by_side(app, env) -> None:
    """Let two processes write the pages. One has read them all, since what `sphinx_proof` knows of pages cannot be joined."""
    app.parallel = 2


def finish_page(app, pagename, templatename, context, doctree) -> None:
    """Load what a page needs and no more, and finish its text.

    What draws explorable figures and plays the game is for pages that have one; MathJax, a megabyte, for pages with equations:
    on the first one Sphinx loads it, for those of all others. Figures get their numbers for names, by which a screen reader
    lists them; the picture in it has its own text, and one without a caption is a picture and nothing more. No line ends
    between a number and its percent sign, but in code.
    """
    if doctree:
        raw = "".join(node.astext() for node in doctree.findall(nodes.raw))
        for mark, scripts in SCRIPTS.items():
            for script in scripts if f'class="{mark}"' in raw else ():
                app.add_js_file(script, loading_method="defer")
        body = FIGURE.sub(r'\1 aria-labelledby="\2-number">\3 id="\2-number">', context["body"])
        body = UNCAPTIONED.sub('<figure role="none"', body)
        context["body"] = PERCENT.sub(lambda found: found[1] or "\N{NO-BREAK SPACE}", body)
    _launch_copies(pagename, context.get("header_buttons", []))
    if not app.env.domains["math"].data["has_equations"].get(pagename):
        context["script_files"] = [
            script for script in context["script_files"] if "mathjax" not in (script.filename or "")
        ]


def _launch_copies(pagename: str, buttons: list[dict]) -> None:
    """Let a notebook's buttons for Binder and Colab open its executed copy, see `mia_book.pages.copies`: Binder that which the
    results of a release hold, Colab that of the branch of copies."""
    name = pagename.removeprefix("notebooks/")
    for group in buttons:
        if group.get("label") == "launch-buttons" and name != pagename:
            for button in group["buttons"]:
                button["url"] = (
                    button["url"]
                    .replace(f"/blob/main/{pagename}.ipynb", f"/blob/{FOLDER}/{name}.ipynb")
                    .replace(f"tree/{pagename}.ipynb", f"tree/{BUILT}/{FOLDER}/{name}.ipynb")
                )


def keep_what_pages_load(app, exception) -> None:
    """Leave out the script that draws icons a second time, as pictures, half of all that a page loads; and of MathJax, 24 MB,
    what no page asks for: all bundles but one, and the drawing of letters as pictures."""
    for script in Path(app.outdir, "_static", "vendor").glob("fontawesome/*/js/all.min.js"):
        script.write_text("/* icons come from the font */\n", encoding="utf-8")
    mathjax = Path(app.outdir, "_static", app.config.mathjax_path or "").parent
    if mathjax.name == "mathjax":
        for script in mathjax.glob("*.js"):
            if script.name != Path(app.config.mathjax_path).name:
                script.unlink()
        shutil.rmtree(mathjax / "output" / "svg", ignore_errors=True)
