"""The built book: every page is there, nothing dangles, nothing is fetched from elsewhere."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup

from mia_lib.evidence import claims
from mia_lib.publish import scorecard

pytestmark = pytest.mark.book

ROOT = Path(__file__).resolve().parents[2]


def toc_pages() -> list[str]:
    """Every page of the table of contents, the root first."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    found = [toc["root"]]

    def walk(node):
        if isinstance(node, dict):
            found.extend([node["file"]] if "file" in node else [])
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(toc.get("parts", toc.get("chapters")))
    return found


PAGES = toc_pages()


@cache
def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(path: Path) -> frozenset[str]:
    named = {tag["id"] for tag in soup(path).find_all(id=True)}
    return frozenset(named | {tag["name"] for tag in soup(path).find_all("a", attrs={"name": True})})


def article(html: Path, page: str):
    return soup(html / f"{page}.html").find("article")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_the_contents_has_one_title_and_text(built_book, page):
    assert len(article(built_book, page).find_all("h1")) == 1
    assert len(article(built_book, page).get_text()) > 80


def test_the_book_is_small_and_its_sidebar_short(built_book):
    """40 MB in all, 500 kB a page, 20 entries."""
    sizes = {path: path.stat().st_size for path in built_book.rglob("*") if path.is_file()}
    assert sum(sizes.values()) < 40e6
    assert not [path for path, size in sizes.items() if path.suffix == ".html" and size > 500_000]
    assert len(soup(built_book / "book" / "index.html").select(".bd-sidebar-primary li.toctree-l1")) <= 20


def test_every_source_page_is_in_the_contents():
    written = {p.relative_to(ROOT).with_suffix("").as_posix() for p in (ROOT / "book").rglob("*.md")
               if "slides" not in p.parts}  # decks, which `mia slides` makes
    assert written == {page for page in PAGES if page.startswith("book/")}


@pytest.mark.parametrize("page", toc_pages())
def test_a_figure_to_move_is_there_in_words_too(built_book, page):
    charts, words = (article(built_book, page).select(f".{name}") for name in ("mia-explore", "mia-words"))
    assert len(charts) == len(words) and all(cell.text.strip() != "nothing" for one in words for cell in one.select("td"))


def test_the_reference_has_whatever_pages_refer_to(built_book):
    """Sphinx is told to pass over names of Python's that it does not find, for annotations name many."""
    from sphinx.util.inventory import InventoryFile

    with (built_book / "objects.inv").open("rb") as stream:
        kinds = InventoryFile.load(stream, "", lambda base, place: place)
    known = {name for kind, names in kinds.items() if kind.startswith("py:") for name in names}
    asked = set()
    for path in [*(ROOT / "book").rglob("*.md"), *(ROOT / "notebooks").glob("*.py")]:
        roles = re.findall(r"\{py:\w+\}`(?:[^`<]*<)?~?(mia_lib[\w.]*)>?`", path.read_text(encoding="utf-8"))
        asked |= set(roles)
    assert len(asked) > 40 and not asked - known


def test_internal_links_and_anchors_resolve(built_book):
    broken = []
    for page in [*PAGES, "index"]:
        path = built_book / f"{page}.html"
        for link in soup(path).find_all("a", href=True):
            url = urlsplit(link["href"])
            if url.scheme or url.netloc or link["href"] in ("#", ""):
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            if not target.is_file():
                broken.append(f"{page}: {link['href']} is not there")
            elif url.fragment and target.suffix == ".html" and unquote(url.fragment) not in anchors(target):
                broken.append(f"{page}: {link['href']} has no such place")
    assert not broken, "\n".join(broken)


def test_every_picture_is_there_and_has_a_text_alternative(built_book):
    wrong = []
    for page in PAGES:
        path = built_book / f"{page}.html"
        for image in soup(path).find_all("img"):
            source = unquote(urlsplit(image["src"]).path)
            if not image.get("alt", "").strip():
                wrong.append(f"{page}: {image['src']} has no text alternative")
            if not image["src"].startswith("data:") and not (path.parent / source).is_file():
                wrong.append(f"{page}: {image['src']} is not there")
        for image in article(built_book, page).find_all("img"):
            if len(image["alt"].split()) < 3:
                wrong.append(f"{page}: {image['alt']!r} does not say what {image['src']} shows")
    assert not wrong, "\n".join(wrong)


def test_a_figure_is_called_by_its_number_and_a_picture_alone_by_nothing(built_book):
    for page in PAGES:
        for figure in article(built_book, page).find_all("figure"):
            assert figure.get("role") == "none" or article(built_book, page).find(id=figure["aria-labelledby"]), page


LOADED_BY_LINK = {"stylesheet", "preload", "icon", "preconnect", "dns-prefetch", "modulepreload"}
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src",
          "embed": "src", "object": "data"}


def test_nothing_is_loaded_from_elsewhere(built_book):
    external = []
    for path in built_book.rglob("*.html"):
        if "_static" in path.parts:
            continue
        where = path.relative_to(built_book)
        for tag in soup(path).find_all(list(LOADED)):
            url = tag.get(LOADED[tag.name], "")
            if urlsplit(url).netloc:
                external.append(f"{where}: {url}")
        for tag in soup(path).find_all("link", href=True):
            if LOADED_BY_LINK & set(tag.get("rel", [])) and urlsplit(tag["href"]).netloc:
                external.append(f"{where}: {tag['href']}")
        for tag in soup(path).find_all("script", src=False):
            if re.search(r"https?://(cdn|unpkg|plausible|www\.google)", tag.string or ""):
                external.append(f"{where}: a script that names {tag.string[:80]!r}")
    named = re.compile(r"(?:@import\s+|url\()[\"']?((?:https?:)?//[^\"')]+)")
    for path in (built_book / "_static").rglob("*.css"):
        external += [f"{path.name}: {url}" for url in named.findall(path.read_text(encoding="utf-8"))]
    assert not external, "\n".join(external)


LEFTOVERS = re.compile(r"\{(cite|numref|ref|eq|term|prf|doc|math|py)[:}`]|\$\$|\?\?|\]\{\.|:::|`{3,}\{|"
                       r"<!-- generated|Traceback|Unknown (role|directive)")


@pytest.mark.parametrize("page", PAGES)
def test_markup_is_resolved(built_book, page):
    text = " ".join(one for one in article(built_book, page).find_all(string=True) if not one.find_parent(["pre", "code"]))
    found = LEFTOVERS.search(text)
    assert not found, f"{found[0]!r} in ...{text[max(0, found.start() - 60):found.end() + 60]}..."


def test_the_status_page_has_a_row_for_each_chapter(built_book):
    rows = article(built_book, "book/status").find("table").find_all("tr")[1:]
    assert len(rows) == sum(page.startswith("notebooks/") for page in PAGES)


def test_the_scorecard_has_a_row_for_each_claim_of_each_chapter(built_book):
    rows = article(built_book, "book/scorecard").select("table.mia-scorecard tbody tr")
    chapters = [page.removeprefix("notebooks/") for page in PAGES if page.startswith("notebooks/")]
    of_claims = [f"{chapter}-{claim}" for chapter in chapters for claim in claims.claims(chapter)]
    assert [row.find(class_="mia-claim")["id"] for row in rows] == of_claims
    assert all(row.find_all("td")[2].find(class_="mia-run") for row in rows)
    counted = [int(one.get_text()) for one in article(built_book, "book/scorecard").select(".mia-count")]
    assert len(counted) == 3 and sum(counted) == len(of_claims)
    assert (built_book.parents[1] / scorecard.STAGED).is_file()
    assert article(built_book, "book/scorecard").select("a.download[href$='scorecard.json']")


def test_a_finding_has_a_paragraph_and_a_figure_of_a_chapter_and_leads_there(built_book):
    sections = article(built_book, "book/findings").find_all("section")
    found = [section for section in sections if section.find("h2", recursive=False)]
    assert len(found) == (ROOT / "book" / "findings.md").read_text().count("\n## ") > 6
    for section in found:
        assert len(section.find("p").get_text().split()) > 40 and len(section.find_all("figure")) == 1
        assert any("notebooks/" in link["href"] for link in section.find_all("a", href=True))


def test_launch_buttons_name_files_of_the_repository(built_book):
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    base = config["repository"]["url"].removeprefix("https://github.com/")
    branch = config["repository"]["branch"]
    prefixes = (f"https://colab.research.google.com/github/{base}/blob/{branch}/",
                f"https://mybinder.org/v2/gh/{base}/{branch}?urlpath=lab/tree/")
    for page in (page for page in PAGES if page.startswith("notebooks/")):
        menu = soup(built_book / f"{page}.html").find(class_="dropdown-launch-buttons")
        links = [link["href"] for link in menu.find_all("a", href=True)]
        for prefix in prefixes:
            (link,) = (link for link in links if link.startswith(prefix))
            assert (ROOT / link.removeprefix(prefix)).is_file(), link


def test_every_figure_and_table_of_a_chapter_has_a_number_and_a_caption(built_book):
    for page in (page for page in PAGES if page.startswith("notebooks/")):
        figures = article(built_book, page).find_all("figure")
        assert figures
        for figure in figures:
            assert re.match(r"Figure \d+(\.\d+)? \S", figure.find("figcaption").get_text().strip()), figure.get("id")
        for table in article(built_book, page).select(".cell_output table.table"):
            if table.find_parent(class_="solution"):
                continue
            assert re.match(r"Table \d+(\.\d+)? \S", table.find("caption").get_text().strip()), table.get("id")
        for picture in article(built_book, page).select(".cell_output img"):
            assert picture.find_parent("figure"), picture["src"]


def test_all_papers_of_the_bibliography_are_listed_and_no_key_is_double(built_book):
    source = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    keys = re.findall(r"^@\w+\{(.+),$", source, re.MULTILINE)
    assert len(keys) == len(set(keys))
    assert len(article(built_book, "book/references").select(".citation")) == len(keys)
