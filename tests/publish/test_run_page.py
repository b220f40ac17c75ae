"""The page of a rerun is a page of the book: the same markup, the same look, in one file that asks the network for nothing."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from test_book import LEFTOVERS
from test_browser import LOOKS, REPEATED, Visit

from mia_lib.errors import MiaError
from mia_lib.evidence import tables
from mia_lib.publish import build, outputs, run_page, runner, sweep
from mia_lib.publish import pages as book

RENDER = run_page.render  # before `tiny` puts a stub in its place
CHAPTERS = ["bayes", "calibration", "curvature", "iha", "quantile", "compare", "audit"]
DRAWN = ["bayes", "audit"]  # with theorems and citations, and with reports beside it


def as_run(notebook: Path, folder: Path, **record) -> Path:
    """A copy of an executed notebook in a folder of its own, as `mia run` leaves it."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    content["metadata"]["mia"] |= record
    copy = folder / f"{content['metadata']['mia']['notebook']}.ipynb"
    copy.write_text(json.dumps(content), encoding="utf-8")
    return copy


def drawn(notebook: Path, root: Path) -> tuple[BeautifulSoup, list[str]]:
    text, warnings = RENDER(notebook, root)
    notebook.with_suffix(".html").write_text(text, encoding="utf-8")
    content = json.loads(notebook.read_text(encoding="utf-8"))
    for file, report in outputs.displayed(content).report_files().items():  # as `mia run` does
        path = notebook.parent / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(report, encoding="utf-8")
    return BeautifulSoup(text, "html.parser"), warnings


@pytest.fixture(scope="module")
def pages(built_book, repo, tmp_path_factory):
    """The pages of two chapters: name -> (path, soup, warnings)."""
    found = {}
    for name in DRAWN:
        [notebook] = (built_book.parents[2] / "executed").glob(f"{name}-*.ipynb")
        copy = as_run(notebook, tmp_path_factory.mktemp(name))
        found[name] = copy.with_suffix(".html"), *drawn(copy, repo)
    return found


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A book of one notebook that has all that leads elsewhere, and the notebook as a run of it leaves it."""
    root = tmp_path_factory.mktemp("small")
    (root / "notebooks").mkdir()
    (root / "book").mkdir()
    (root / "_toc.yml").write_text("format: jb-book\nroot: notebooks/small\n")
    (root / "_config.yml").write_text(
        "title: Small\nexecute: {execute_notebooks: 'off'}\n"
        "repository: {url: https://github.com/a/b, path_to_book: '', branch: main}\n"
        "launch_buttons: {binderhub_url: https://mybinder.org}\nhtml: {use_repository_button: true}\n"
        "bibtex_bibfiles: [book/references.bib]\nparse: {myst_enable_extensions: [dollarmath, colon_fence]}\n"
        "sphinx: {extra_extensions: [sphinx_exercise]}\n")
    (root / "book" / "references.bib").write_text(
        "@article{known, author={Ada Known}, title={A Title}, journal={J}, year={2020}}\n"
        "@article{other, author={Not Cited}, title={Other}, journal={J}, year={2021}}\n")
    (root / "notebooks" / "small.py").write_text(
        '# %% tags=["parameters"]\nsteps: int = 3  # how many\nword: str = "a`b"  # which\n')
    text = ("# A small page\n\nAn {term}`apple` {cite}`known`, [elsewhere](../book/game.md#rules), {ref}`there <a-place>`, "
            "{doc}`that page </book/game>`, $x^2$, {numref}`fig-here`, {py:func}`mia_lib.data.load`.\n\n"
            "```{exercise}\n:label: task\nWhy?\n```\n\n```{solution} task\n:class: dropdown\nBecause.\n```\n")
    pixel = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAA"
             "AABJRU5ErkJggg==")
    record = {"notebook": "small", "preset": "published", "parameters": {"steps": 3, "word": "a`b"}, "changed": {},
              "date": "2026-01-02T03:04:05+00:00", "seconds": 75.2, "peak_memory_mb": 300, "device": "an abacus",
              "versions": {"python": "3.11.2"}, "key": "0123"}
    cells = [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": text},
             {"cell_type": "code", "id": "b", "execution_count": 1, "metadata": {"tags": ["hide-input"]}, "source": "secret()",
              "outputs": [{"output_type": "display_data", "data": {"image/png": pixel}, "metadata": {
                  "mia": {"name": "fig-here", "caption": "A dot.", "alt": "one dot"}}}]}]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    (root / "small.ipynb").write_text(json.dumps({
        "cells": cells, "metadata": {"mia": record, "kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}))
    return root


# The page of each chapter


@pytest.mark.book
@pytest.mark.parametrize("name", DRAWN)
def test_the_page_of_a_rerun_is_a_page_of_the_book(pages, name):
    path, soup, warnings = pages[name]
    assert not warnings
    assert tables.MIME in path.with_suffix(".ipynb").read_text() and outputs.OURS not in str(soup), "no bookkeeping"
    article = soup.find("article")
    assert len(article.find_all("h1")) == 1
    for solution in article.select("div.solution"):
        assert {"dropdown", "toggle"} & set(solution["class"]), "solutions are folded"
    assert article.select("div.solution") and article.select("div.exercise")
    sources = {cell["id"]: cell for cell in json.loads(path.with_suffix(".ipynb").read_text())["cells"]}
    hidden = sum("hide-input" in cell["metadata"].get("tags", []) for cell in sources.values())
    injected = sum("injected-parameters" in cell["metadata"].get("tags", []) for cell in sources.values())
    assert len(article.select("details.above-input")) == hidden + injected > 5, "code that the book hides is hidden"
    numbered = [f.get_text().strip() for f in article.select("figure figcaption")]
    chapter = CHAPTERS.index(name) + 1
    assert numbered and all(re.match(rf"Figure {chapter}\.\d+ \S", text) for text in numbered), "without a dot: the paper's"
    tabled = [one.get_text().strip() for one in article.select("table caption")]
    assert tabled and all(text.startswith(f"Table {chapter}.") for text in tabled)
    for equation in article.select("span.eqno"):
        assert equation.get_text().startswith(f"({chapter}.")
    assert article.select(".citation")
    banner = article.select_one("h1 + .admonition").get_text(" ")
    assert "Preset: published" in " ".join(banner.split()) and "Changed from it: nothing" in " ".join(banner.split())
    for code in article.find_all(["pre", "code"]):
        code.replace_with(" ")
    found = LEFTOVERS.search(article.get_text(" "))
    assert not found, article.get_text(" ")[max(0, found.start() - 60):found.end() + 60]


@pytest.mark.book
@pytest.mark.parametrize("name", DRAWN)
def test_all_links_of_the_page_lead_somewhere_and_nothing_is_loaded(pages, name):
    path, soup, _ = pages[name]
    places = {tag["id"] for tag in soup.find_all(id=True)} | {tag["name"] for tag in soup.find_all("a", attrs={"name": True})}
    for link in soup.find("article").find_all("a", href=True):
        url = urlsplit(link["href"])
        if url.scheme in ("http", "https"):
            continue
        assert (path.parent / unquote(url.path)).exists() if url.path else unquote(url.fragment) in places, link["href"]
    check_that_nothing_is_loaded(soup, 1)


def check_that_nothing_is_loaded(soup: BeautifulSoup, mathematics: int) -> None:
    """Scripts and styles stand in the page itself; pictures are data."""
    assert not soup.select("script[src], link[rel=stylesheet], link[rel=preload], iframe, object, embed")
    assert all(tag["src"].startswith("data:") for tag in soup.select("[src]"))
    assert all(tag["href"].startswith("data:") for tag in soup.find_all("link", href=True))
    for style in soup.find_all("style"):
        assert "@import" not in style.string and not re.search(r"url\((?![\"']?(data:|#))", style.string)
    assert sum("MathJax" in (tag.string or "") and len(tag.string) > 10**6 for tag in soup.find_all("script")) == mathematics


@pytest.mark.book
@pytest.mark.parametrize("name", CHAPTERS)
def test_names_of_rows_hold_settings_and_no_measured_value(built_book, repo, name):
    """Else rows of different runs would not match. A decimal in a name is written in a source, a preset or a printed table."""
    sources = [repo / "notebooks" / f"{name}.py", repo / "notebooks" / "presets" / f"{name}.smoke.yaml",
               *repo.glob(f"mia_lib/papers/{name}/*.py"), *repo.glob(f"mia_lib/{name}/*.py"),
               *repo.glob(f"data/papers/{name}*")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    settings = {float(number) for number in re.findall(r"\d*\.?\d+(?:e-?\d+)?", text)}
    [notebook] = (built_book.parents[2] / "executed").glob(f"{name}-*.ipynb")
    frame = sweep.tidy([sweep.read({"seed": 0}, notebook, repo)])
    for exhibit, row in frame[["exhibit", "row"]].drop_duplicates().itertuples(False, None):
        for number in map(float, re.findall(r"\d+\.\d+(?:e-?\d+)?", row)):
            assert any(abs(number - k * scale) < 1e-9 for k in settings for scale in (1, 100)), f"{exhibit}: {row}"


@pytest.mark.book
@pytest.mark.browser
def test_the_page_works_from_a_file(pages, browser):
    path, _, _ = pages["bayes"]
    for theme, width in LOOKS:
        with Visit(browser, theme, width) as visit:
            tab = visit.go(path.as_uri())
            assert tab.locator("mjx-container").count() > 50 and tab.locator("mjx-merror").count() == 0
            assert tab.evaluate("document.documentElement.dataset.theme") in (theme, "auto")
            solution = tab.locator("div.solution.dropdown").first
            assert not solution.locator("section").first.is_visible()
            tab.keyboard.press("Control+k")  # the theme's search, which a page alone does not have
            assert tab.locator(".search-button, .search-button__wrapper").count() == 0
            assert not visit.errors and not visit.elsewhere
            visit.check_fits()
            visit.check_is_accessible("html", grave=("serious", "critical"), without=REPEATED)


# What leads elsewhere


def test_without_a_built_book_other_pages_are_words(small, tmp_path):
    soup, warnings = drawn(as_run(small / "small.ipynb", tmp_path), small)
    assert not warnings
    article = soup.find("article")
    text = " ".join(article.get_text(" ").split())
    for words in ("An apple", "elsewhere", "there", "that page", "Fig. 1", "mia_lib.data.load"):
        assert words in text, words
    assert "A title" in text and "Not Cited" not in text
    links = {link.get_text(): link["href"] for link in article.find_all("a", href=True)}
    assert all(href.startswith("#") or href == "small.ipynb" for href in links.values()), links
    assert (tmp_path / links["as a notebook"]).is_file()
    assert not soup.select("a[href*='mybinder'], a[href*='github.com'], .search-button"), "no button leads away"
    check_that_nothing_is_loaded(soup, 1)
    assert article.select_one("div.solution.dropdown") and article.select_one("details.above-input pre")


def test_with_a_built_book_they_are_links_into_it(small, tmp_path, monkeypatch):
    built = tmp_path / "book" / "html"
    built.mkdir(parents=True)
    lines = ("book/game std:doc -1 book/game.html The game\napple std:term -1 book/glossary.html#term-apple -\n"
             "a-place std:label -1 book/game.html#a-place A place\n"
             "mia_lib.data.load py:function 1 book/api/data.html#$ -\n")
    head = "# Sphinx inventory version 2\n# Project: S\n# Version: \n# The remainder of this file is compressed using zlib.\n"
    (built / "objects.inv").write_bytes(head.encode() + zlib.compress(lines.encode()))
    monkeypatch.setattr(run_page, "BOOK", (str(built),))
    (tmp_path / "run").mkdir()
    soup, warnings = drawn(as_run(small / "small.ipynb", tmp_path / "run"), small)
    assert not warnings
    links = {link.get_text(): link["href"] for link in soup.find("article").find_all("a", href=True)}
    base = "../book/html/book"
    assert links["elsewhere"] == f"{base}/game.html#rules" and links["there"] == f"{base}/game.html#a-place"
    assert links["apple"] == f"{base}/glossary.html#term-apple" and links["that page"] == f"{base}/game.html"
    assert next(href for text, href in links.items() if "data.load" in text) == f"{base}/api/data.html#mia_lib.data.load"
    assert links["the page in the book"] == "../book/html/notebooks/small.html"


def test_a_reference_that_leads_nowhere_is_said_and_stops_nothing(small, tmp_path):
    copy = as_run(small / "small.ipynb", tmp_path)
    content = json.loads(copy.read_text())
    content["cells"].append({"cell_type": "markdown", "id": "c", "metadata": {}, "source": "See {ref}`no-such-place`."})
    copy.write_text(json.dumps(content))
    soup, warnings = drawn(copy, small)
    assert len(warnings) == 1 and "no-such-place" in warnings[0]
    assert "no-such-place" in soup.find("article").get_text()


def test_the_banner_says_what_was_changed_and_how_to_do_it_again(small):
    record = json.loads((small / "small.ipynb").read_text())["metadata"]["mia"]
    assert run_page.changed_from_preset(record, small) == {}
    record["parameters"] = {"steps": 5, "word": "it's"}
    changes = run_page.changed_from_preset(record, small)
    assert changes == {"steps": (5, 3), "word": ("it's", "a`b")}
    assert book.rerun_command(record, changes) == "mia run small -p steps 5 -p word 'it'\"'\"'s'"
    text = run_page.banner(record, changes, "small.ipynb", None)
    for part in ("`published`", "`steps` = `5` in place of `3`", "`word` = `it's` in place of `` a`b ``",
                 "2026-01-02 03:04 UTC", "1 min 15 s", "an abacus"):
        assert part in text, part
    assert "left out and said so" in text
    assert "left out" not in run_page.banner(record, changes, "small.ipynb", None, bound=False) and "Your own" not in text
    record["parameters"]["word"] = "/home/me/mine.npz"
    assert "**Your own:** `/home/me/mine.npz`; the paper's" in run_page.banner(record, changes, "small.ipynb", None)


def test_a_page_that_cannot_be_drawn_says_where_the_run_is(small, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "sphinx", lambda *_: (2, ["Sphinx: ERROR: broken"]))
    copy = as_run(small / "small.ipynb", tmp_path)
    with pytest.raises(build.BookFailed, match="broken") as error:
        RENDER(copy, small)
    assert str(copy) in str(error.value)


def test_what_is_drawn_is_what_mia_run_returns(tiny, monkeypatch):
    monkeypatch.setattr(run_page, "render", RENDER)
    page = run_page.write(runner.run("tiny", {"steps": 2}, "smoke"))
    soup = BeautifulSoup(page.read_text(), "html.parser")
    check_that_nothing_is_loaded(soup, 0)
    text = " ".join(soup.find("article").get_text(" ").split())
    assert "2 0.001 plain" in text and "Caption of fig-one" in text
    assert "steps = 2 in place of 1" in text and "mia run tiny --preset smoke -p steps 2" in text
    with pytest.raises(MiaError):
        run_page.render(page.with_suffix(".ipynb"), page.parent)
