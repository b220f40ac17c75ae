"""The pages as a reader meets them: in Chromium, in light and dark, on a desk and on a phone."""

import functools
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
import test_written

pytestmark = [pytest.mark.book, pytest.mark.browser]

CHAPTERS = [f"notebooks/{name}" for name in test_written.CHAPTERS]
SEEN = [
    "book/index",
    "book/primer",
    "book/play",
    *CHAPTERS,
    "notebooks/banks",
    "book/statistics",
    "book/findings",
    "book/scorecard",
    "book/status",
    "book/guide",
]
WITH_MATHEMATICS = {*CHAPTERS, "book/statistics", "book/primer"}
REACHABLE = """() => [...document.querySelectorAll(
  ".bd-article :is(.pst-scrollable-table-container, .mia-scroll, pre, div.math, .cell_output)")].every(
  box => box.scrollWidth <= box.clientWidth + 1 || !["auto", "scroll"].includes(getComputedStyle(box).overflowX)
    || !box.tabIndex)"""
LOOKS = [("light", 1280), ("dark", 390)]
# one page of each kind, and in which looks
AXE = {
    "book/index": LOOKS,
    "notebooks/bayes": LOOKS[1:],
    "book/play": LOOKS[:1],
    "book/scorecard": LOOKS[:1],
    "book/status": LOOKS[1:],
}
GRAVE = ("serious", "critical")
# thousands of parts, all made by the same few rules
REPEATED = ["tbody tr:nth-child(n + 4)", "svg", "pre", "mjx-container"]
OF_TABLES = {"book/scorecard", "book/status"}
CUT_OFF = """() => {
  const cells = [...document.querySelectorAll(".bd-article table.table :is(td, th)")].filter(
    one => one.getClientRects().length);
  const box = one => one.closest(".pst-scrollable-table-container, .mia-scroll");
  return cells.filter(one => one.getBoundingClientRect().right > innerWidth + 1
    && !(box(one) && box(one).tabIndex === 0 && one.closest(".mia-status"))
    || one.scrollWidth > one.clientWidth + 1).map(one => one.textContent.slice(0, 60))
}"""
BYTES = "performance.getEntries().reduce((sum, one) => sum + (one.encodedBodySize || 0), 0)"
NO_SCROLLING = """() => [...document.querySelectorAll(".pst-scrollable-table-container")].every(
  box => box.scrollWidth <= box.clientWidth + 1)"""


@pytest.fixture(scope="module")
def server(built_book):
    serving = ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(SimpleHTTPRequestHandler, directory=built_book)
    )
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    serving.server_close()


class Visit:
    """One tab that keeps what went wrong and what was asked of others."""

    def __init__(self, browser, theme: str = "light", width: int = 1280):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme
        )
        self.page = self.context.new_page()
        self.errors, self.elsewhere = [], []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("response", lambda r: self.errors.append(r.url) if r.status >= 400 else None)
        self.context.route("**/*", self._route)

    def _route(self, route):
        url = route.request.url
        if url.startswith(("http://127.0.0.1:", "file:", "data:", "blob:")):
            return route.continue_()
        self.elsewhere.append(url)
        return route.abort()

    def go(self, url: str):
        self.page.goto(url, wait_until="load")
        self.page.evaluate("document.fonts.ready.then(() => true)")
        self.page.evaluate(
            "(window.MathJax?.startup?.promise ?? Promise.resolve()).then(() => true)"
        )
        return self._settled()

    def look(self, theme: str, width: int, reachable: bool = True):
        """The page as it stands, in another light or on another screen; what scrolls there is reached by the keyboard."""
        self.page.emulate_media(color_scheme=theme)
        self.page.set_viewport_size({"width": width, "height": 900})
        if not reachable:
            return self._settled()
        # tab stops follow the new width once it stays, on a busy machine later
        self.page.wait_for_timeout(800)
        from playwright.sync_api import TimeoutError as Late

        with suppress(Late):  # axe then says what is wrong
            self.page.wait_for_function(REACHABLE, timeout=60_000)
        return self._settled()

    def check_fits(self):
        """Nothing sticks out to the right."""
        wide, room = self.page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide <= room, f"{wide - room} pixels stick out to the right"

    def check_is_accessible(
        self, part: str = "article", grave: tuple[str, ...] = (), without: Sequence[str] = ()
    ):
        """Nothing sticks out to the right, and axe finds nothing in a part of the page, or nothing so `grave`."""
        self.check_fits()
        axe = pytest.importorskip(
            "axe_playwright_python.sync_playwright", reason="axe is not installed"
        ).Axe()
        # axe refuses to leave out what is not there
        parts = [[one] for one in without if self.page.locator(one).count()]
        found = axe.run(
            self.page,
            context={"include": [[part]]} | ({"exclude": parts} if parts else {}),
            options={"resultTypes": ["violations"]},
        ).response
        self.page.wait_for_timeout(300)
        self.errors.clear()  # axe asks for style sheets by names that only it can think of
        told = [
            f"{v['id']}: {v['help']}\n   {node['html'][:160]}"
            for v in found["violations"]
            for node in v["nodes"][:5]
            if not grave or v["impact"] in grave
        ]
        assert not told, "\n".join(told)

    def _settled(self):
        # hover and theme transitions would be caught half-way by axe
        self.page.wait_for_timeout(200)
        return self.page

    def until(self, holds: Callable[[], bool]) -> bool:
        """Whether something holds in the end: on a busy machine pages are late."""
        for _ in range(300):
            if holds():
                return True
            self.page.wait_for_timeout(200)
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


@pytest.mark.parametrize("name", SEEN)
def test_a_page_works_in_both_looks(browser, server, name):
    with Visit(browser) as tab:
        tab.go(f"{server}/{name}.html")
        for theme, width in LOOKS:
            page = tab.look(
                theme, width, reachable=(theme, width) in AXE.get(name, ()) or name in OF_TABLES
            )
            assert not tab.errors
            assert not tab.elsewhere, "asked of others than the book itself"
            assert page.evaluate("document.documentElement.dataset.theme") == theme
            assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
            assert page.locator("mjx-container").count() > 0 or name not in WITH_MATHEMATICS
            tab.check_fits()
            if name in OF_TABLES:
                assert not page.evaluate(CUT_OFF)
                assert page.evaluate(NO_SCROLLING) or (name, width) == ("book/status", 390)
            if (theme, width) in AXE.get(name, ()):
                tab.check_is_accessible(
                    "html", grave=GRAVE, without=() if name == "book/index" else REPEATED
                )
        most = 4.5e6 if name in WITH_MATHEMATICS else 3e6
        assert page.evaluate(BYTES) <= most, "all that a visit loads, charts and fonts included"


def test_mathematics_is_drawn_from_a_file_without_any_server_and_every_claim_is_there_without_scripts(
    browser, built_book
):
    with Visit(browser) as tab:
        page = tab.go((built_book / "book" / "statistics.html").as_uri())
        assert page.locator("mjx-container").count() > 0 and page.locator("mjx-merror").count() == 0
        assert not tab.elsewhere
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto((built_book / "book" / "scorecard.html").as_uri())
        rows = page.locator("table.mia-scorecard tbody tr")
        assert rows.count() > 90
        assert all(rows.evaluate_all("all => all.map(row => row.getClientRects().length > 0)"))
        assert page.locator(".mia-filters").count() == 0


ROWS = """() => [...document.querySelectorAll("table.mia-scorecard tbody tr")].map(row => [
  row.querySelector(".mia-claim").id, row.getClientRects().length > 0,
  [...row.querySelectorAll(".mia-run")].map(run => run.dataset.verdict)])"""


def test_the_scorecard_is_filtered_by_keyboard_and_its_links_open_the_part_that_a_claim_is_folded_in(
    browser, server
):
    with Visit(browser) as tab:
        page = tab.go(f"{server}/book/scorecard.html")
        everything = page.evaluate(ROWS)
        said, count = page.locator(".mia-filters [role=status]"), len(everything)
        assert all(shown for _, shown, _ in everything)
        assert said.inner_text() == f"{count} of {count} claims shown"
        page.get_by_label("Verdict, in any run").focus()
        page.keyboard.type("contra")
        left = page.evaluate(ROWS)
        assert [shown for _, shown, _ in left] == [
            "contradicted" in verdicts for *_, verdicts in left
        ]
        assert said.inner_text() == f"{sum(shown for _, shown, _ in left)} of {count} claims shown"
        page.get_by_label("Kind").select_option("proof")
        assert 0 < sum(shown for _, shown, _ in page.evaluate(ROWS)) < count
        assert "verdict=contradicted" in page.url and "kind=proof" in page.url
        page.get_by_role("button", name="Show all").press("Enter")
        assert tab.until(lambda: page.evaluate(ROWS) == everything and "=" not in page.url)
        page.locator("#bayes-C7 + a").click()
        page.wait_for_url("**/notebooks/bayes.html#claim-C7")
        assert tab.until(page.locator("tr:has(#claim-C7)").is_visible)
        assert not tab.errors


def test_a_printed_page_has_no_navigation_and_its_folded_parts_are_open(browser, server):
    with Visit(browser) as tab:
        page = tab.go(f"{server}/notebooks/quantile.html")
        page.emulate_media(media="print")
        seen = page.evaluate("""() => [...document.querySelectorAll(".bd-sidebar-primary, .bd-sidebar-secondary,"
          + ".bd-header-article, .prev-next-footer, .bd-footer, .headerlink, .copybtn")].filter(
          part => part.checkVisibility({ visibilityProperty: true })).map(one => one.className)""")
        assert not seen
        folds, opened = page.locator("details.mia-fold"), page.locator("details.mia-fold[open]")
        assert folds.count() and not opened.count()
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details.mia-fold table").first.is_visible()
        assert opened.count() == folds.count()
