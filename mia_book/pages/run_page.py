"""The page of a rerun: one executed notebook, drawn by the book's own machinery, in one file that needs no network.

The notebook alone is staged and rendered with the book's configuration and theme. The sources that it cites are put at its
end, and a reference to another page, or to a term of the glossary, becomes a link into the built book where there is one, its
own words where there is none. Styles, scripts, fonts and pictures go into the file, so that a page can be moved or sent; only
its links into the book then lead nowhere.

In Sphinx this module is an extension, too (`setup`).
"""

from __future__ import annotations

import base64
import json
import mimetypes
import os
import re
import tempfile
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mia_book.pages import build, copies, outputs, pages, prose, runner
from mia_book.pages.parameters import as_typed, find_root, own, validate
from mia_lib import documents, store
from mia_lib.progress import Bars

BOOK = ("_build", "book", "_build", "html")
# to another page of the book
LINK = re.compile(r"\[([^\[\]]+)\]\(([\w./-]+)\.(?:md|ipynb)(#[\w-]+)?\)")
# What a page alone does not have: an index, a search; and what is loaded twice.
DROPPED = ".search-button__wrapper, link[rel=index], link[rel=search], link[rel=preload]"
NO_SEARCH = """window.addEventListener("keydown", event => {  // which the theme would open with Ctrl-K
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") event.stopImmediatePropagation();
}, true);"""


def write(notebook: Path, root: Path | None = None, bars: Bars | None = None) -> Path:
    """Draw the page of an executed notebook beside it, in one file that needs no network, and the reports of its audits; and
    write a copy that reads like the page in JupyterLab, NAME-copy.ipynb, but over none that somebody worked in.

    Raises:
        BookFailed: Sphinx stopped.
    """
    bars, root, content = bars or Bars(), find_root(root), documents.load(notebook)
    bars.say(f"{notebook.stem}: drawing the page")
    text, warnings = render(notebook, root)
    for warning in warnings:
        bars.say(warning)
    for file, report in outputs.displayed(content).report_files().items():
        store.write(notebook.parent / file, report.encode())
    page = notebook.with_suffix(".html")
    store.write(page, text.encode())
    resolved = prose.resolve_roles(content, prose.run_of(content, root))
    copy = notebook.with_stem(f"{notebook.stem}-copy")
    made = json.dumps(copies.readable(resolved, root), indent=1).encode()
    if copy.exists() and copy.read_bytes() != made:
        bars.say(
            f"{copy} was changed and stays as it is: without it the next page brings a new one."
        )
    else:
        store.write(copy, made)
    return page


def render(notebook: Path, root: Path | None = None) -> tuple[str, list[str]]:
    """The page of an executed notebook, whose links count on lying beside it, and each warning of Sphinx about it.

    Raises:
        BookFailed: Sphinx stopped.
    """
    root, notebook = find_root(root), Path(notebook).resolve()
    content = documents.load(notebook)
    record, built = content["metadata"]["mia"], root.joinpath(*BOOK)
    runner.check_title(content, record["notebook"])
    base = (
        f"{Path(os.path.relpath(built, notebook.parent)).as_posix()}/"
        if (built / "objects.inv").is_file()
        else None
    )
    changes = changed_from_preset(record, root)
    # What draws explorable figures would be a fifth of the file.
    made = pages.page(
        prose.resolve_roles(content, prose.run_of(content, root)),
        explorable=False,
        audits="",
        again=pages.rerun_command(record, changes),
    )
    bound = any(
        ":::{finding}" in "".join(cell["source"])
        for cell in content["cells"]
        if cell["cell_type"] == "markdown"
    )
    for cell in made["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = _links("".join(cell["source"]), base)
    title, _, rest = made["cells"][0]["source"].partition("\n")
    made["cells"][0]["source"] = (
        f"{title}\n\n{banner(record, changes, notebook.name, base, bound)}\n{rest}"
    )
    if "{cite" in json.dumps(made) and list(root.glob("book/*.bib")):
        made["cells"].append(
            {
                "cell_type": "markdown",
                "id": "sources",
                "metadata": {},
                "source": "## Sources\n\n```{bibliography}\n```",
            }
        )
    place = f"notebooks/{record['notebook']}"
    config = _config(root, built if base else None, base, _chapter(record["notebook"], root))
    files = {
        f"{place}.ipynb": json.dumps(made).encode(),
        "_toc.yml": f"format: jb-book\nroot: {place}\n".encode(),
        "_config.yml": json.dumps(config).encode(),
    }  # JSON is YAML, too
    files |= {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in [*root.glob("book/_static/**/*"), *root.glob("book/*.bib")]
        if path.is_file()
    }
    with tempfile.TemporaryDirectory(prefix="mia-page-") as scratch:
        staged = Path(scratch) / "book"
        build.stage(files, staged)
        code, output = build.sphinx(staged, Path(scratch) / "log", root, "-n")
        page = staged / "_build" / "html" / f"{place}.html"
        lines = [
            line.replace(f"{staged}{os.sep}", "")
            for line in output
            if "WARNING" in line or "ERROR" in line
        ]
        if code or not page.is_file():
            raise build.BookFailed(
                "\n".join(
                    [
                        "The page could not be drawn:",
                        *(lines or output[-20:]),
                        f"Nothing of the run is lost: it is in {notebook}.",
                    ]
                )
            )
        return _in_one_file(page), lines


def _links(text: str, base: str | None) -> str:
    """Text whose links to the sources of other pages, `[words](../book/game.md#rules)`, lead into the built book; without one
    there are their words."""

    def link(found: re.Match) -> str:
        page = Path(os.path.normpath(Path("notebooks", found[2]))).as_posix()
        return f'<a href="{base}{page}.html{found[3] or ""}">{found[1]}</a>' if base else found[1]

    return LINK.sub(link, text)


def _chapter(name: str, root: Path) -> int:
    """The number of a notebook among the numbered chapters of the book; 0 where it has none."""
    parts = documents.load(root / "_toc.yml").get("parts", [])
    numbered = [
        Path(chapter["file"]).name
        for part in parts
        if part.get("numbered")
        for chapter in part["chapters"]
    ]
    return numbered.index(name) + 1 if name in numbered else 0


def _config(root: Path, built: Path | None, base: str | None, chapter: int) -> dict:
    """The book's configuration, without buttons that lead to the unchanged notebook."""
    config = documents.load(root / "_config.yml")
    config["launch_buttons"] = {}
    config.pop("repository", None)
    config["html"] = {
        key: value for key, value in config.get("html", {}).items() if not key.startswith("use_")
    }
    settings = config.setdefault("sphinx", {}).setdefault("config", {})
    settings.pop("html_extra_path", None)
    if "extensions" in settings:
        settings["extensions"].append(__name__)
    else:
        config["sphinx"].setdefault("extra_extensions", []).append(__name__)
    settings |= {
        "mia_inventory": str(built / "objects.inv") if built else "",
        "mia_base": base or "",
        "mia_chapter": chapter,
    }
    return config


def changed_from_preset(record: dict, root: Path | None = None) -> dict[str, tuple]:
    """Parameter -> (value in the run, value in its preset) as one would type them, for those that differ."""
    values = validate(record["notebook"], {}, record["preset"], root)
    both = {
        name: (as_typed(value), as_typed(values.get(name)))
        for name, value in record["parameters"].items()
    }
    return {name: (value, was) for name, (value, was) in both.items() if value != was}


def banner(
    run: dict, changes: dict[str, tuple], notebook: str, base: str | None, bound: bool = True
) -> str:
    """Text under the title of a rerun, in MyST Markdown: which run this is, and how it differs from
    the book's.

    Args:
        run, changes: its record, and `changed_from_preset` of it.
        notebook: name of its file, which lies beside the page. base: where the built book is, None where there is none.
        bound: whether the notebook has parts that were written about one preset.
    """
    return outputs.render(
        "banner.md",
        run=run,
        changes=changes,
        notebook=notebook,
        base=base,
        bound=bound,
        own=own(run["parameters"]),
        again=pages.rerun_command(run, changes),
    )


# As an extension of Sphinx


def setup(app) -> dict:
    """Called by Sphinx: references to pages that are not here are answered, and nothing is drawn around the page."""
    app.add_config_value("mia_inventory", "", "env", str)  # objects.inv of the built book
    app.add_config_value("mia_base", "", "env", str)  # the built book, seen from the page
    app.add_config_value("mia_chapter", 0, "env", int)  # the page's number in the book
    app.connect("config-inited", _plain_page)
    app.connect("builder-inited", _read_inventory)
    app.connect("missing-reference", _answer)
    app.connect("env-check-consistency", _number_as_in_the_book)  # numbers are there by then
    return {"parallel_read_safe": True}


def _plain_page(app, config) -> None:
    config.html_theme_options |= {
        "article_header_start": [],
        "use_download_button": False,
        "show_prev_next": False,
    }
    config.html_sidebars = {"**": []}


def _number_as_in_the_book(app, env) -> None:
    """Tables, figures, equations and the like by chapter, "Table 3.5", for numbers without a dot are the paper's."""
    if app.config.mia_chapter:
        for kinds in env.toc_fignumbers.values():
            for kind, numbers in kinds.items():
                kinds[kind] = {
                    figure: (app.config.mia_chapter, number[-1])
                    for figure, number in numbers.items()
                }


def _read_inventory(app) -> None:
    from sphinx.util.inventory import InventoryFile

    app.mia_inventory = {}
    if app.config.mia_inventory:
        with open(app.config.mia_inventory, "rb") as file:
            app.mia_inventory = InventoryFile.load(
                file, app.config.mia_base.rstrip("/"), lambda base, uri: f"{base}/{uri}"
            )


# role -> kinds of objects in an inventory that it can mean
KINDS = {
    "ref": ("std:label",),
    "numref": ("std:label",),
    "doc": ("std:doc",),
    "term": ("std:term",),
}


def _answer(app, env, node, contnode):
    """A reference to what is on another page: a link into the built book, or the words that stand there."""
    from docutils import nodes

    role, target = node["reftype"], node["reftarget"]
    if role == "doc":
        target = (
            os.path.normpath(os.path.join(os.path.dirname(env.docname), target))
            if target[:1] != "/"
            else target[1:]
        )
    python = node.get("refdomain") == "py"
    for kind in KINDS.get(
        role, [kind for kind in app.mia_inventory if python and kind.startswith("py:")]
    ):
        item = app.mia_inventory.get(kind, {}).get(target)
        if item:
            text = contnode
            if not node.get("refexplicit") and not python and item[3] != "-":
                text = nodes.inline("", item[3])
            return nodes.reference("", "", text, internal=False, refuri=item[2])
    return contnode if node.get("refexplicit") or python or role == "term" else None


# One file


def _in_one_file(page: Path) -> str:
    """A page that Sphinx made, with all that it loads written into it."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    for tag in [
        *soup.select(DROPPED),
        *soup.find_all("script", string=re.compile("search-button")),
    ]:
        tag.decompose()
    script = soup.new_tag("script")
    script.string = NO_SEARCH
    soup.head.insert(0, script)
    for tag in soup.select("link[rel=stylesheet]"):
        style = soup.new_tag("style")
        style.string = _style(_local(page, tag["href"]))
        tag.replace_with(style)
    for tag in soup.select("link[rel=icon]"):
        tag["href"] = _data(_local(page, tag["href"]))
    for tag in soup.select("script[src]"):
        text, late = _script(page, tag["src"]), tag.has_attr("defer")
        for name in ("src", "defer"):
            del tag[name]
        tag.string = text.replace("</script", "<\\/script")
        if not text:
            tag.decompose()
        elif late:  # what stands in the page cannot be deferred, so it goes where that leads
            soup.body.append(tag.extract())
    for tag in soup.select("img[src]"):
        if not tag["src"].startswith("data:"):
            tag["src"] = _data(_local(page, tag["src"]))
    for tag in soup.select("a.image-reference"):  # to the file of the picture
        tag.unwrap()
    for tag in soup.select("a.navbar-brand"):
        tag["href"] = "#"
    return str(soup)


def _local(page: Path, url: str) -> Path | None:
    parts = urlsplit(url)
    return None if parts.scheme or parts.netloc else page.parent / unquote(parts.path)


def _data(path: Path) -> str:
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _style(path: Path | None) -> str:
    """A style sheet with its pictures and with the one font of its icons that the page uses, in the form all browsers read."""
    if path is None:
        return ""
    text = re.sub(r"/\*# sourceMappingURL=.*?\*/", "", path.read_text(encoding="utf-8"))
    text = re.sub(
        r"@font-face\s*\{[^}]*\}",
        lambda face: face[0] if "Awesome\\ 6 Free" in face[0] else "",
        text,
    )
    text = re.sub(r",\s*url\([^)]*\.ttf[^)]*\)\s*format\(\"?'?truetype\"?'?\)", "", text)

    def put(match: re.Match) -> str:
        url = match[1].strip("\"' ")
        file = None if url.startswith(("data:", "#")) else _local(path, url)
        return f"url({_data(file)})" if file and file.is_file() else match[0]

    text = re.sub(r"url\(([^)]*)\)", put, text)
    return re.sub(r"@import \"([^\"]*)\";", lambda other: _style(_local(path, other[1])), text)


def _script(page: Path, url: str) -> str:
    """A script of the page; for mathematics the one that brings its letters along, nothing for what lies elsewhere."""
    path = _local(page, url)
    if "mathjax" in url.lower():
        path = (
            Path(find_spec("sphinx-mathjax-offline").origin).parent
            / "static"
            / "mathjax"
            / "tex-svg.js"
        )
    # The theme's icons are drawn by their font; the script would draw them a second time, at 1.5 MB.
    return "" if path is None or "fontawesome" in url else path.read_text(encoding="utf-8")
