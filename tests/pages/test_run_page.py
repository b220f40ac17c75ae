"""The page of a rerun is a page of the book: the same markup, the same look, in one file that asks the network for nothing."""

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from test_book import LEFTOVERS, anchors
from test_browser import GRAVE, LOOKS, Visit
from test_explorable import KERNEL
from test_prose import RECORD
from test_written import CHAPTERS

from mia_book.evidence import results
from mia_book.pages import build, outputs, run_page, sweep
from mia_book.pages import pages as book
from mia_lib import data
from mia_lib.errors import MiaError

RENDER = run_page.render  # before `tiny` puts a stub in its place
REPORT = {
    "name": "audit-forest",
    "title": "a <forest>",
    "files": {"audit.html": "<title>é</title>", "audit.json": "{}"},
}
HOSTILE = "/home/me/s|<img src=x><svg onload='a=1'>`*b* $\\frac$ {ref}.npz"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def drawn(notebook: Path, folder: Path, root: Path) -> tuple[Path, BeautifulSoup, list[str]]:
    """The page of a copy of an executed notebook in a folder of its own, as `mia run` leaves it: where, what, and warnings."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    copy = folder / f"{content['metadata']['mia']['notebook']}.ipynb"
    copy.write_text(json.dumps(content), encoding="utf-8")
    text, warnings = RENDER(copy, root)
    (path := copy.with_suffix(".html")).write_text(text, encoding="utf-8")
    for file, report in outputs.displayed(content).report_files().items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(report, encoding="utf-8")
    return path, BeautifulSoup(text, "html.parser"), warnings


@pytest.fixture(scope="module")
def chapter(built_book, repo, tmp_path_factory):
    """The page of a chapter with theorems and citations."""
    [notebook] = (built_book.parents[2] / "executed").glob("bayes-*.ipynb")
    return drawn(notebook, tmp_path_factory.mktemp("chapter"), repo)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A book of one notebook that has all that leads elsewhere, or nowhere, and the notebook as a run of it leaves it."""
    root = tmp_path_factory.mktemp("small")
    for folder in ("notebooks", "book"):
        (root / folder).mkdir()
    (root / "_toc.yml").write_text("format: jb-book\nroot: notebooks/small\n")
    (root / "_config.yml").write_text(
        "title: Small\nexecute: {execute_notebooks: 'off'}\n"
        "repository: {url: https://github.com/a/b, path_to_book: '', branch: main}\n"
        "launch_buttons: {binderhub_url: https://mybinder.org}\nhtml: {use_repository_button: true}\n"
        "bibtex_bibfiles: [book/references.bib]\nparse: {myst_enable_extensions: [dollarmath, colon_fence]}\n"
        "sphinx: {extra_extensions: [sphinx_exercise]}\n"
    )
    (root / "book" / "references.bib").write_text(
        "@article{known, author={Ada Known}, title={A Title}, journal={J}, year={2020}}\n"
        "@article{other, author={Not Cited}, title={Other}, journal={J}, year={2021}}\n"
    )
    (root / "notebooks" / "small.py").write_text(
        '# %% tags=["parameters"]\nsteps: int = 3  # how many\nword: str = "a`b"  # which\n'
    )
    text = (
        "# A small page\n\nAn {term}`apple` {cite}`known`, [elsewhere](../book/game.md#rules), {ref}`there <a-place>`, "
        "{doc}`that page </book/game>`, $x^2$, {numref}`fig-here`, {py:func}`mia_lib.data.load`, {ref}`no-such-place`.\n\n"
        "```{exercise}\n:label: task\nWhy?\n```\n\n```{solution} task\n:class: dropdown\nBecause.\n```\n"
    )
    frame = pd.DataFrame({"data": [data.title(HOSTILE), "other"], "auc": [0.5, 0.6]})
    text += (
        "\n"
        + results.bundle_of_table(frame, "tab-named", f"Of {data.title(HOSTILE)}.")["text/markdown"]
    )
    figure = (
        {"image/png": PIXEL},
        {"mia": {"name": "fig-here", "caption": "A dot.", "alt": "one dot"}},
    )
    record = RECORD | {
        "notebook": "small",
        "preset": "published",
        "parameters": {"steps": 5, "word": "it's"},
    }
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": text},
        {
            "cell_type": "code",
            "id": "b",
            "execution_count": 1,
            "source": "secret()",
            "metadata": {"tags": ["injected-parameters"]},
            "outputs": [
                {"output_type": "display_data", "data": shown, "metadata": more}
                for shown, more in (
                    figure,
                    ({outputs.AUDIT: REPORT, "text/html": "<iframe></iframe>"}, {}),
                )
            ],
        },
    ]
    (root / "small.ipynb").write_text(
        json.dumps(
            {
                "cells": cells,
                "metadata": {"mia": record, "kernelspec": KERNEL},
                "nbformat": 4,
                "nbformat_minor": 5,
            }
        )
    )
    return root


@pytest.mark.book
def test_the_page_of_a_rerun_is_a_page_of_the_book_whose_links_lead_somewhere_and_loads_nothing(
    chapter,
):
    path, soup, warnings = chapter
    assert not warnings
    notebook = path.with_suffix(".ipynb").read_text()
    assert results.MIME in notebook and outputs.OURS not in str(soup), "no bookkeeping"
    article = soup.find("article")
    assert len(article.find_all("h1")) == 1
    assert article.select(".citation")
    assert article.select("div.exercise")
    tags = [cell["metadata"].get("tags", []) for cell in json.loads(notebook)["cells"]]
    folded = sum(bool({"hide-input", "injected-parameters"} & set(some)) for some in tags)
    assert len(article.select("details.above-input")) == folded > 5, (
        "code that the book hides is hidden"
    )
    for kind, start in (
        ("figure figcaption", r"Figure 1\.\d+ \S"),
        ("table caption", r"Table 1\."),
        ("span.eqno", r"\(1\."),
    ):
        found = [one.get_text().strip() for one in article.select(kind)]
        assert found and all(re.match(start, text) for text in found), (
            "numbers without a dot are the paper's"
        )
    banner = " ".join(article.select_one("h1 + .admonition").get_text(" ").split())
    assert "Preset: published" in banner and "Changed from it: nothing" in banner
    assert not LEFTOVERS.search(
        " ".join(
            one for one in article.find_all(string=True) if not one.find_parent(["pre", "code"])
        )
    )
    led = set()
    for url in (urlsplit(link["href"]) for link in article.find_all("a", href=True)):
        if url.scheme not in ("http", "https"):
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            assert target.is_file() and (
                not url.fragment or unquote(url.fragment) in anchors(target)
            ), url
            led.add("/".join(target.parts[-2:]))
    assert {"notebooks/bayes.html", "book/glossary.html", "book/game.html"} <= led, led
    check_that_nothing_is_loaded(soup)


def check_that_nothing_is_loaded(soup: BeautifulSoup) -> None:
    """Scripts and styles stand in the page itself; pictures are data."""
    assert not soup.select(
        "script[src], link[rel=stylesheet], link[rel=preload], iframe, object, embed"
    )
    assert all(tag["src"].startswith("data:") for tag in soup.select("[src]"))
    assert all(tag["href"].startswith("data:") for tag in soup.find_all("link", href=True))
    for style in soup.find_all("style"):
        assert "@import" not in style.string
        assert not re.search(r"url\((?![\"']?(data:|#))", style.string)
    assert (
        sum(
            "MathJax" in (tag.string or "") and len(tag.string) > 10**6
            for tag in soup.find_all("script")
        )
        == 1
    )


@pytest.mark.book
@pytest.mark.parametrize("name", CHAPTERS)
def test_names_of_rows_hold_settings_and_no_measured_value(built_book, repo, name):
    """Else rows of different runs would not match. A decimal in a name is written in a source, a preset or a printed table."""
    places = (
        f"notebooks/{name}.py",
        *(
            f"mia_book/chapters/{name}/{files}"
            for files in ("presets/smoke.yaml", "*.py", "printed/*")
        ),
        f"mia_book/chapters/{name}/claims.yaml",
    )
    text = "\n".join(
        path.read_text(encoding="utf-8") for place in places for path in repo.glob(place)
    )
    settings = [
        scale * float(number)
        for number in re.findall(r"\d*\.?\d+(?:e-?\d+)?", text)
        for scale in (1, 100)
    ]
    [notebook] = (built_book.parents[2] / "executed").glob(f"{name}-*.ipynb")
    for row in sweep.tidy([sweep.read({"seed": 0}, notebook, repo)])["row"].unique():
        for number in map(float, re.findall(r"\d+\.\d+(?:e-?\d+)?", row)):
            assert any(abs(number - known) < 1e-9 for known in settings), row


@pytest.mark.book
@pytest.mark.browser
def test_the_page_works_from_a_file(chapter, browser):
    with Visit(browser) as visit:
        tab = visit.go(chapter[0].as_uri())
        assert tab.locator("mjx-container").count() > 50 and tab.locator("mjx-merror").count() == 0
        assert not tab.locator("div.solution.dropdown").first.locator("section").first.is_visible()
        tab.keyboard.press("Control+k")  # the theme's search, which a page alone does not have
        assert tab.locator(".search-button, .search-button__wrapper").count() == 0
        for theme, width in LOOKS:
            visit.look(theme, width)
            assert tab.evaluate("document.documentElement.dataset.theme") in (theme, "auto")
            assert not visit.errors and not visit.elsewhere
            visit.check_fits()
        # which the book's page has, too
        visit.check_is_accessible("html", grave=GRAVE, without=["article section section"])


def test_without_a_built_book_other_pages_are_words_and_what_leads_nowhere_is_said(small, tmp_path):
    _, soup, warnings = drawn(small / "small.ipynb", tmp_path, small)
    assert len(warnings) == 1 and "no-such-place" in warnings[0]
    article = soup.find("article")
    text = " ".join(article.get_text(" ").split())
    for words in (
        "An apple",
        "elsewhere",
        "there",
        "that page",
        "Fig. 1",
        "mia_lib.data.load",
        "no-such-place",
    ):
        assert words in text, words
    assert "A title" in text and "Not Cited" not in text
    links = {link.get_text(): link["href"] for link in article.find_all("a", href=True)}
    files = {words: href for words, href in links.items() if not href.startswith("#")}
    assert files == {
        "as a notebook": "small.ipynb",
        "The whole report on a <forest>": "audit-forest/audit.html",
    }
    assert all((tmp_path / file).is_file() for file in files.values())
    assert not soup.select("a[href*='mybinder'], a[href*='github.com'], .search-button"), (
        "no button leads away"
    )
    check_that_nothing_is_loaded(soup)
    [table] = article.select("table#tab-named")
    assert [cell.decode_contents() for cell in table.select("td p")][:2] == [
        data.title(HOSTILE),
        "0.500",
    ]
    assert table.select_one(".caption-text").decode_contents() == f"Of {data.title(HOSTILE)}."
    assert article.select_one("div.solution.dropdown")
    assert article.select_one("details.above-input pre")


def test_the_banner_says_what_was_changed_and_how_to_do_it_again(small):
    record = json.loads((small / "small.ipynb").read_text())["metadata"]["mia"]
    changes = run_page.changed_from_preset(record, small)
    assert changes == {"steps": (5, 3), "word": ("it's", "a`b")}
    assert book.rerun_command(record, changes) == "mia run small -p steps 5 -p word 'it'\"'\"'s'"
    text = run_page.banner(record, changes, "small.ipynb", None)
    assert "`steps` = `5` in place of `3`" in text
    assert "`word` = `it's` in place of `` a`b ``" in text
    assert "left out" in text
    assert "left out" not in run_page.banner(record, changes, "small.ipynb", None, bound=False)
    assert "Your own" not in text
    record["parameters"]["word"] = "/home/me/mine.npz"
    assert "**Your own:** `/home/me/mine.npz`; the paper's" in run_page.banner(
        record, changes, "small.ipynb", None
    )


def test_a_page_for_which_the_disk_had_no_room_is_none_though_sphinx_went_on(small, monkeypatch):
    monkeypatch.setattr(
        build,
        "JUPYTER_BOOK",
        "import os; print('WARNING: not copied:', OSError(28, os.strerror(28)))",
    )
    with pytest.raises(OSError, match="No space left on device: '/.*book'"):
        RENDER(small / "small.ipynb", small)


def test_a_page_that_cannot_be_drawn_says_where_the_run_is(small, monkeypatch):
    monkeypatch.setattr(build, "sphinx", lambda *_: (2, ["Sphinx: ERROR: broken"]))
    with pytest.raises(build.BookFailed, match="broken") as error:
        RENDER(small / "small.ipynb", small)
    assert str(small / "small.ipynb") in str(error.value)


def test_a_copy_that_somebody_worked_in_stays_as_it_is(small, monkeypatch):
    monkeypatch.setattr(run_page, "render", lambda *_: ("page", []))
    copy = small / "small-copy.ipynb"
    run_page.write(small / "small.ipynb", small)
    made = copy.read_text()
    run_page.write(small / "small.ipynb", small)
    assert copy.read_text() == made
    copy.write_text("my work")
    run_page.write(small / "small.ipynb", small)
    assert copy.read_text() == "my work"
    copy.unlink()


@pytest.mark.parametrize(
    "data, more",
    [
        ({outputs.AUDIT: REPORT | {"name": "../audit"}}, {}),
        ({outputs.AUDIT: REPORT | {"name": "/tmp"}}, {}),
        ({outputs.AUDIT: REPORT | {"files": {"../../audit.html": ""}}}, {}),
        ({outputs.AUDIT: REPORT | {"files": {"__init__.py": ""}}}, {}),
        ({"image/png": PIXEL}, {"mia": {"name": "../fig"}}),
    ],
)
def test_nothing_that_a_notebook_shows_is_written_elsewhere(data, more):
    cell = {"outputs": [{"output_type": "display_data", "data": data, "metadata": more}]}
    with pytest.raises(MiaError, match="no name for a file"):
        outputs.displayed({"cells": [cell]})
