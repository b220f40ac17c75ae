"""The pages as a reader meets them: in Chromium, in light and dark, on a desk and on a phone."""

from __future__ import annotations

import functools
import http.server
import threading
from contextlib import suppress

import pytest

pytestmark = [pytest.mark.book, pytest.mark.browser]

CHAPTERS = [f"notebooks/{name}" for name in ("bayes", "calibration", "curvature", "iha", "quantile", "compare")]
SEEN = ["book/index", "book/play", *CHAPTERS, "book/statistics", "book/scorecard", "book/guide"]
WITH_MATHEMATICS = {*CHAPTERS, "book/statistics"}
CONTRAST = "color-contrast"  # takes longest; text has the same colours at every width, menus have not
CHECKS = {1280: [(None, {})], 390: [(None, {"rules": {CONTRAST: {"enabled": False}}}),
                                    ({"exclude": [["article"]]}, {"runOnly": {"type": "rule", "values": [CONTRAST]}})]}
REACHABLE = """() => [...document.querySelectorAll(
  ".bd-article :is(.pst-scrollable-table-container, .mia-scroll, pre, div.math, .cell_output)")].every(
  box => box.scrollWidth <= box.clientWidth + 1 || !["auto", "scroll"].includes(getComputedStyle(box).overflowX)
    || !box.tabIndex)"""
HEAVY = 3e6  # bytes of the first page
LOOKS = [(theme, width) for theme in ("light", "dark") for width in (1280, 390)]
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--no-first-run"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server(built_book):
    handler = functools.partial(Quiet, directory=built_book)
    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    serving.server_close()


@pytest.fixture(scope="module")
def browser(chromium):
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=ARGS)
        yield running
        running.close()


class Visit:
    """One tab that keeps what went wrong and what was asked of others."""

    def __init__(self, browser, theme: str = "light", width: int = 1280):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
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
        self.page.evaluate("(window.MathJax?.startup?.promise ?? Promise.resolve()).then(() => true)")
        return self._settled()

    def look(self, theme: str, width: int):
        """The page as it stands, in another light or on another screen."""
        self.page.emulate_media(color_scheme=theme)
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.wait_for_timeout(800)  # tab stops follow the new width once it stays, on a busy machine later
        from playwright.sync_api import TimeoutError as Late

        with suppress(Late):  # axe then says what is wrong
            self.page.wait_for_function(REACHABLE, timeout=15_000)
        return self._settled()

    def _settled(self):
        self.page.wait_for_timeout(200)  # hover and theme transitions would be caught half-way by axe
        return self.page

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


@pytest.fixture(scope="module", params=SEEN)
def seen(request, browser, server):
    """A page, loaded once for all looks, and its name."""
    with Visit(browser) as tab:
        tab.go(f"{server}/{request.param}.html")
        yield request.param, tab


@pytest.mark.parametrize("theme, width", LOOKS)
def test_a_page_works(seen, theme, width):
    name, visit = seen
    page = visit.look(theme, width)
    assert not visit.errors
    assert not visit.elsewhere, "asked of others than the book itself"
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    wide, room = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= room, f"{wide - room} pixels stick out to the right"
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    assert page.locator("mjx-container").count() > 0 or name not in WITH_MATHEMATICS

    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    found = []
    for where, what in CHECKS[width]:
        found += axe.run(page, context=where, options={"resultTypes": ["violations"], **what}).response["violations"]
    visit.errors.clear()  # axe asks for style sheets by names that only it can think of
    grave = [v for v in found if v["impact"] in ("serious", "critical")]
    told = [f"{v['id']}: {v['help']}\n   {node['html'][:160]}" for v in grave for node in v["nodes"][:5]]
    assert not grave, "\n".join(told)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_stand_on_white_in_either_theme(browser, server, theme):
    with Visit(browser, theme) as tab:
        page = tab.go(f"{server}/notebooks/bayes.html")
        looks = page.eval_on_selector_all(
            ".bd-article figure img",
            "all => all.map(i => getComputedStyle(i)).map(look => [look.backgroundColor, look.filter])")
        assert looks and all(look == ["rgb(255, 255, 255)", "none"] for look in looks)
        assert not tab.errors and not tab.elsewhere, "when it is loaded in this theme"


def test_the_theme_switch_turns_the_lights_off(browser, server):
    with Visit(browser, "light") as tab:
        page = tab.go(f"{server}/book/index.html")
        ground = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(ground)
        for _ in range(3):  # auto, light, dark
            page.locator(".theme-switch-button:visible").first.click()
            if page.evaluate("document.documentElement.dataset.theme") == "dark":
                break
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.wait_for_timeout(200)
        assert page.evaluate(ground) != before
        assert not tab.errors


def test_a_solution_stays_closed_until_it_is_opened(browser, server):
    with Visit(browser) as tab:
        page = tab.go(f"{server}/notebooks/bayes.html")
        solution = page.locator("div.solution.dropdown").first
        inside = solution.locator("section").first
        assert not inside.is_visible()
        solution.locator("button.toggle-button").first.click()
        inside.wait_for(state="visible", timeout=5000)


def test_wide_tables_scroll_in_their_own_box_and_by_keyboard(browser, server):
    with Visit(browser, width=390) as tab:
        page = tab.go(f"{server}/notebooks/bayes.html")
        boxes = page.eval_on_selector_all(
            ".pst-scrollable-table-container",
            "all => all.map(box => [box.scrollWidth > box.clientWidth + 1, box.tabIndex])")
        assert boxes and all(index == (0 if scrolls else -1) for scrolls, index in boxes)
        assert not tab.errors and not tab.elsewhere, "when it is loaded on a phone"


def test_the_first_page_is_light(browser, server):
    """All that a first visit loads, charts and fonts included."""
    sizes = {}
    with Visit(browser) as tab:
        tab.page.on("requestfinished", lambda request: sizes.update({request.url: request.sizes()["responseBodySize"]}))
        tab.go(f"{server}/book/index.html")
        tab.page.locator(".mia-chart svg").first.wait_for()
        tab.page.wait_for_timeout(500)
    assert sum(sizes.values()) <= HEAVY, sorted(sizes.items(), key=lambda one: -one[1])[:5]


def test_mathematics_is_drawn_from_a_file_without_any_server(browser, built_book):
    with Visit(browser) as tab:
        page = tab.go((built_book / "book" / "statistics.html").as_uri())
        assert page.locator("mjx-container").count() > 0
        assert page.locator("mjx-merror").count() == 0
        assert not tab.elsewhere
