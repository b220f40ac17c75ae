"""The built book: every page is there, nothing dangles, nothing is fetched from elsewhere."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup

from mia_book.evidence import claims
from mia_book.pages import pages

pytestmark = pytest.mark.book

ROOT = Path(__file__).resolve().parents[2]
PAGES = re.findall(
    r"^\W*(?:root|file): *(\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"), re.MULTILINE
)
NOTEBOOKS = [page for page in PAGES if page.startswith("notebooks/")]
LEFTOVERS = re.compile(
    r"\{(cite|numref|ref|eq|term|prf|doc|math|py)[:}`]|\$\$|\?\?|\]\{\.|:::|`{3,}\{|"
    r"<!-- generated|Traceback|Unknown (role|directive)"
)
LOADED_BY_LINK = {"stylesheet", "preload", "icon", "preconnect", "dns-prefetch", "modulepreload"}
LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
}


@cache
def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(path: Path) -> frozenset[str]:
    named = {tag["id"] for tag in soup(path).find_all(id=True)}
    return frozenset(
        named | {tag["name"] for tag in soup(path).find_all("a", attrs={"name": True})}
    )


def article(html: Path, page: str):
    return soup(html / f"{page}.html").find("article")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_one_title_and_text_without_markup_and_its_charts_in_words(built_book, page):
    found = article(built_book, page)
    assert len(found.find_all("h1")) == 1 and len(found.get_text()) > 80
    text = " ".join(
        one for one in found.find_all(string=True) if not one.find_parent(["pre", "code"])
    )
    left = LEFTOVERS.search(text)
    assert not left, f"{left[0]!r} in ...{text[max(0, left.start() - 60) : left.end() + 60]}..."
    charts, words = (found.select(f".{name}") for name in ("mia-explore", "mia-words"))
    assert len(charts) == len(words)
    assert all(cell.text.strip() != "nothing" for one in words for cell in one.select("td"))


def test_the_book_is_small_and_its_sidebar_short(built_book):
    """40 MB in all, 500 kB a page, 20 entries."""
    sizes = {path: path.stat().st_size for path in built_book.rglob("*") if path.is_file()}
    assert sum(sizes.values()) < 40e6
    assert not [path for path, size in sizes.items() if path.suffix == ".html" and size > 500_000]
    assert (
        len(soup(built_book / "book" / "index.html").select(".bd-sidebar-primary li.toctree-l1"))
        <= 20
    )


def test_every_source_page_is_in_the_contents():
    written = {
        p.relative_to(ROOT).with_suffix("").as_posix()
        for p in (ROOT / "book").rglob("*.md")
        if "slides" not in p.parts
    }  # decks, which `mia slides` makes
    assert written == {page for page in PAGES if page.startswith("book/")}


def test_the_reference_has_whatever_pages_refer_to(built_book):
    """Sphinx is told to pass over names of Python's that it does not find, for annotations name many."""
    from sphinx.util.inventory import InventoryFile

    with (built_book / "objects.inv").open("rb") as stream:
        kinds = InventoryFile.load(stream, "", lambda base, place: place)
    known = {name for kind, names in kinds.items() if kind.startswith("py:") for name in names}
    asked = set()
    for path in [*(ROOT / "book").rglob("*.md"), *(ROOT / "notebooks").glob("*.py")]:
        roles = re.findall(
            r"\{py:\w+\}`(?:[^`<]*<)?~?(mia_lib[\w.]*)>?`", path.read_text(encoding="utf-8")
        )
        asked |= set(roles)
    assert len(asked) > 40 and not asked - known


def test_internal_links_and_anchors_resolve(built_book):
    broken = []
    for page in [*PAGES, "index"]:
        path = built_book / f"{page}.html"
        for href in {link["href"] for link in soup(path).find_all("a", href=True)} - {"#", ""}:
            url = urlsplit(href)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            if (
                not target.is_file()
                or url.fragment
                and target.suffix == ".html"
                and (unquote(url.fragment) not in anchors(target))
            ):
                broken.append(f"{page}: {href}")
    assert not broken, "\n".join(broken)


def test_every_picture_is_there_with_words_and_every_figure_is_called_by_its_number(built_book):
    wrong = []
    for page in PAGES:
        path, inside = built_book / f"{page}.html", article(built_book, page)
        for image in soup(path).find_all("img"):
            if len(image.get("alt", "").split()) < (3 if image.find_parent("article") else 1):
                wrong.append(f"{page}: {image.get('alt')!r} does not say what {image['src']} shows")
            if (
                not image["src"].startswith("data:")
                and not (path.parent / unquote(urlsplit(image["src"]).path)).is_file()
            ):
                wrong.append(f"{page}: {image['src']} is not there")
        wrong += [
            f"{page}: {figure.get('id')} has no name"
            for figure in inside.find_all("figure")
            if figure.get("role") != "none" and not inside.find(id=figure["aria-labelledby"])
        ]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_loaded_from_elsewhere(built_book):
    external = []
    for path in (path for path in built_book.rglob("*.html") if "_static" not in path.parts):
        page = soup(path)
        asked = [tag.get(LOADED[tag.name], "") for tag in page.find_all(list(LOADED))]
        asked += [
            tag["href"]
            for tag in page.find_all("link", href=True)
            if LOADED_BY_LINK & set(tag.get("rel", []))
        ]
        external += [f"{path.name}: {url}" for url in asked if urlsplit(url).netloc]
        external += [
            f"{path.name}: a script that names {tag.string[:80]!r}"
            for tag in page.find_all("script", src=False)
            if re.search(r"https?://(cdn|unpkg|plausible|www\.google)", tag.string or "")
        ]
    named = re.compile(r"(?:@import\s+|url\()[\"']?((?:https?:)?//[^\"')]+)")
    for path in (built_book / "_static").rglob("*.css"):
        external += [
            f"{path.name}: {url}" for url in named.findall(path.read_text(encoding="utf-8"))
        ]
    assert not external, "\n".join(external)


def test_status_and_scorecard_have_a_row_for_each_chapter_and_claim_with_what_its_run_found(
    built_book,
):
    assert len(article(built_book, "book/status").find("table").find_all("tr")) == 1 + len(
        NOTEBOOKS
    )
    card = article(built_book, "book/scorecard")
    records = json.loads((built_book.parents[1] / pages.SCORECARD).read_text())
    assert [(one["chapter"], one["claim"]) for one in records] == [
        (name, claim)
        for name in (page.removeprefix("notebooks/") for page in NOTEBOOKS)
        for claim in claims.claims(name)
    ]
    assert {one["preset"] for one in records} == {"published"}
    assert card.select("a.download[href$='scorecard.json']")
    assert all(re.search(rf"\b{field}\b", card.get_text()) for field in records[0])
    for one, row in zip(records, card.select("table.mia-scorecard tbody tr"), strict=True):
        claim, run = row.find(class_="mia-claim"), row.find_all("td")[2].find(class_="mia-run")
        assert (claim["id"], claim["data-kind"]) == (f"{one['paper']}-{one['claim']}", one["kind"])
        assert run["data-verdict"] == one["verdict"]
        assert one["reason"].split("`")[0] in run.get_text()
        brief, said = (re.findall(r"\d[\d.,]*", text) for text in (one["brief"], run.get_text()))
        assert said[: len(brief)] == brief, one
    counted = Counter(one["kind"] for one in records)
    assert [int(one.get_text()) for one in card.select(".mia-count")] == [
        counted[kind] for kind in pages.KINDS
    ]
    kinds = {one["claim"]: one["kind"] for one in records if one["paper"] == "bayes"}
    assert [kinds[claim] for claim in ("C1", "C3r", "C7", "C7r")] == [
        "proof",
        "proof",
        "paper",
        "ours",
    ], "whoever states it"


def test_launch_buttons_name_copies_that_the_book_has(built_book):
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]
    base, branch = config["url"].removeprefix("https://github.com/"), config["branch"]
    for page in NOTEBOOKS:
        menu = soup(built_book / f"{page}.html").find(class_="dropdown-launch-buttons")
        for prefix in (
            f"https://colab.research.google.com/github/{base}/blob/copies/",
            f"https://mybinder.org/v2/gh/{base}/{branch}?urlpath=lab/tree/_build/book/_build/html/copies/",
        ):
            (link,) = (
                one["href"]
                for one in menu.find_all("a", href=True)
                if one["href"].startswith(prefix)
            )
            assert (built_book / "copies" / link.removeprefix(prefix)).is_file(), link


def test_every_figure_and_table_of_a_chapter_has_a_number_and_a_caption(built_book):
    for page in NOTEBOOKS:
        figures = article(built_book, page).find_all("figure")
        tables = [
            one
            for one in article(built_book, page).select(".cell_output table.table")
            if not one.find_parent(class_="solution")
        ]
        assert figures
        for kind, found, part in (("Figure", figures, "figcaption"), ("Table", tables, "caption")):
            for one in found:
                assert re.match(rf"{kind} \d+(\.\d+)? \S", one.find(part).get_text().strip()), (
                    one.get("id")
                )
        assert all(
            picture.find_parent("figure")
            for picture in article(built_book, page).select(".cell_output img")
        )
