"""Explorable figures on a page: the chart where there is a screen and a script, the picture everywhere else."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest
import vl_convert
import yaml
from bs4 import BeautifulSoup
from test_browser import LOOKS, Visit

from mia_lib import plotting
from mia_lib.evidence import explore
from mia_lib.progress import Bars
from mia_lib.publish import build, run_page

RNG = np.random.default_rng(0)
MEMBERS = RNG.random(400) < 0.5
SCORES = {"MALT": RNG.normal(size=400) + MEMBERS, "MAST": np.exp(RNG.normal(size=400) + 2 * MEMBERS)}
ALT = "Two histograms that overlap, and a ROC above the diagonal <of chance>"
SAID = re.compile(r"Members: (\d+) called \(TP\), (\d+) missed \(FN\)\. Non-members: (\d+) called \(FP\), (\d+) not \(TN\)")


def notebook(monkeypatch) -> dict:
    """A run of a notebook with one explorable figure and one that is not."""
    shown = []
    monkeypatch.setattr("mia_lib.evidence.tables.display_bundle", lambda data, metadata=None: shown.append(
        {"output_type": "display_data", "data": dict(data), "metadata": dict(metadata or {})}))
    histograms = {"MALT": (SCORES["MALT"], MEMBERS)}
    plotting.explore(explore.rates(SCORES, MEMBERS), plotting.histograms(histograms), "fig-live",
                     "What a threshold does.", ALT, "Choose an attack and move the threshold.")
    plotting.show(plotting.histograms(histograms), "fig-still", "The same.", ALT)
    record = {"notebook": "tiny", "preset": "quick", "parameters": {}, "changed": {}, "date": "2026-01-02T03:04:05+00:00",
              "seconds": 1.0, "peak_memory_mb": 300, "device": "an abacus", "versions": {"python": "3.11.2"}, "key": "0123"}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# A tiny page\n\nSee {numref}`fig-live`."},
             {"cell_type": "code", "id": "b", "execution_count": 1, "metadata": {}, "source": "draw()",
              "outputs": json.loads(json.dumps(shown))}]
    return {"cells": cells, "metadata": {"mia": record, "kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture(scope="module")
def root(repo, tmp_path_factory):
    """A book of two pages in the look of this one."""
    root = tmp_path_factory.mktemp("explorable")
    shutil.copytree(repo / "book" / "_static", root / "book" / "_static")
    config = yaml.safe_load((repo / "_config.yml").read_text())
    del config["bibtex_bibfiles"]
    config["sphinx"]["config"]["extensions"].remove("sphinxcontrib.bibtex")
    del config["sphinx"]["config"]["bibtex_reference_style"], config["sphinx"]["config"]["html_extra_path"]
    (root / "_config.yml").write_text(yaml.safe_dump(config))
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n- file: notebooks/tiny\n")
    (root / "book" / "index.md").write_text("# A tiny book\n\nSee {numref}`fig-live` and {numref}`fig-still`.\n")
    (root / "notebooks").mkdir()
    (root / "notebooks" / "tiny.py").write_text('# %% tags=["parameters"]\nsteps: int = 3  # how many\n')
    return root


@pytest.fixture(scope="module")
def ran(root):
    with pytest.MonkeyPatch.context() as patch:
        made = notebook(patch)
    (root / "tiny.ipynb").write_text(json.dumps(made))
    return made


@pytest.fixture(scope="module")
def html(root, ran):
    """Folder of the pages as `mia build` makes them, warnings as errors."""
    folder = root / "_build"
    folder.mkdir()
    return build.render(build.contents(root, {"tiny": ran}), root, folder, False, Bars()).parent


@pytest.fixture(scope="module")
def chapter(html):
    return BeautifulSoup((html / "notebooks" / "tiny.html").read_text(), "html.parser")


# What stands in the page


def test_the_picture_is_the_numbered_figure_and_the_chart_stands_beside_it_as_text(chapter):
    live, still = chapter.select("article figure")
    assert live.img["alt"] == still.img["alt"] == ALT
    assert [" ".join(f.figcaption.get_text().split()).rstrip("# ") for f in (live, still)] == [
        "Figure 1 What a threshold does.", "Figure 2 The same."]
    (holder,) = chapter.select(".mia-explore")
    assert holder["data-figure"] == live["id"] == "fig-live" and holder.has_attr("hidden")
    spec = json.loads(holder.script.string)
    assert spec["description"] == ALT and spec["usermeta"]["instructions"].startswith("Choose")
    assert holder.script["type"] == "application/json"


def test_only_a_page_with_a_chart_loads_the_library_and_only_once(html, chapter):
    loaded = [tag for tag in chapter.select("script[src]") if re.search(r"/(vega|explore)\.js", tag["src"])]
    assert [re.search(r"(\w+)\.js", tag["src"])[1] for tag in loaded] == ["vega", "explore"]
    assert all(tag.has_attr("defer") for tag in loaded)
    assert not re.search(r"(vega|explore)\.js", (html / "book" / "index.html").read_text())
    assert (html / "_static" / "vega.js").stat().st_size < 1_000_000
    assert vl_convert.get_vega_version().startswith("5."), "as in JupyterLab; Vega-Lite 5 complains of another"


def test_the_page_of_a_rerun_has_the_picture_alone(root, ran):
    text, warnings = run_page.render(root / "tiny.ipynb", root)
    assert not warnings and "mia-explore\"" not in text and "vegaEmbed" not in text
    assert BeautifulSoup(text, "html.parser").select_one("figure#fig-live img")["alt"] == ALT


# As a reader meets it


@pytest.fixture
def visit(browser, html):
    """The chapter from a file, with its chart drawn."""
    with Visit(browser) as tab:
        tab.go((html / "notebooks" / "tiny.html").as_uri())
        tab.page.locator("#fig-live .mia-chart svg .said_marks text").first.wait_for()
        yield tab
        of_the_theme = ("webfonts/", "net::ERR_FAILED")  # it asks for its fonts in a way that is not for files
        assert not [error for error in tab.errors if not any(part in error for part in of_the_theme)]
        assert not tab.elsewhere


def counts(page) -> list[int]:
    lines = page.locator(".said_marks tspan").all_text_contents()
    return [int(number) for number in SAID.search(". ".join(lines)).groups()]


def right(attack: str, step: int) -> list[int]:
    called = SCORES[attack] >= explore.thresholds(SCORES[attack])[step]
    return [int(np.sum(kind)) for kind in (called & MEMBERS, ~called & MEMBERS, called & ~MEMBERS, ~called & ~MEMBERS)]


@pytest.mark.browser
def test_a_chart_is_moved_by_keyboard_and_counts_follow(visit):
    page = visit.page
    slider, choice = page.get_by_label("Threshold"), page.get_by_label("Attack")
    start = int(slider.input_value())
    assert counts(page) == right("MALT", start)
    slider.focus()
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(500)
    assert int(slider.input_value()) == start + 7
    assert counts(page) == right("MALT", start + 7)
    assert [int(n) for n in SAID.search(page.get_by_role("status").text_content()).groups()] == counts(page), "said aloud"
    page.keyboard.press("End")
    assert counts(page)[::2] == [0, 0]
    page.keyboard.press("Home")
    assert counts(page)[1::2] == [0, 0]
    page.keyboard.press("Shift+Tab")
    assert choice.evaluate("one => one === document.activeElement")
    page.keyboard.press("ArrowDown")
    assert choice.input_value() == "MAST" and counts(page) == right("MAST", 0)


@pytest.mark.browser
def test_what_a_reader_moved_stays_when_the_window_changes(visit):
    page = visit.page
    page.get_by_label("Attack").select_option("MAST")
    page.get_by_label("Threshold").fill("120")
    page.set_viewport_size({"width": 390, "height": 900})
    page.wait_for_timeout(1500)
    assert counts(page) == right("MAST", 120)
    assert page.get_by_label("Attack").input_value() == "MAST"
    assert page.locator(".mia-controls input").count() == 1


@pytest.mark.browser
def test_the_chart_is_for_screens_and_the_picture_for_print(visit):
    page = visit.page
    chart, picture = page.locator("#fig-live .mia-chart"), page.locator("#fig-live img")
    assert chart.is_visible() and not picture.is_visible()
    page.emulate_media(media="print")
    assert picture.is_visible() and not chart.is_visible()
    assert page.locator("#fig-still img").is_visible() and page.locator("#fig-still .mia-live").count() == 0


@pytest.mark.browser
def test_without_scripts_the_picture_is_there(browser, html):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto((html / "notebooks" / "tiny.html").as_uri())
    assert page.locator("#fig-live img").is_visible() and page.locator("#fig-live figcaption").is_visible()
    assert not page.locator(".mia-explore").is_visible()


@pytest.mark.browser
def test_a_chart_that_cannot_be_drawn_leaves_the_picture(browser, html):
    with Visit(browser) as tab:
        tab.context.route("**/vega.js*", lambda route: route.abort())
        page = tab.go((html / "notebooks" / "tiny.html").as_uri())
        assert page.locator("#fig-live img").is_visible() and page.locator(".mia-live").count() == 0


@pytest.mark.browser
@pytest.mark.parametrize("theme, width", LOOKS)
def test_a_chart_fits_is_opaque_and_accessible(visit, theme, width):
    page = visit.look(theme, width)
    page.wait_for_timeout(700)
    svg, live = (page.locator(f"#fig-live {part}").bounding_box() for part in (".mia-chart svg", ".mia-live"))
    assert live["x"] <= svg["x"] and svg["x"] + svg["width"] <= live["x"] + live["width"] + 1
    assert svg["width"] > 0.85 * live["width"], "as wide as there is room for"
    assert page.locator(".mia-live").evaluate("one => getComputedStyle(one).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".mia-chart").get_attribute("aria-label") == ALT
    assert page.locator(".vega-actions, .mia-chart details").count() == 0
    visit.check_fits_and_is_accessible()
