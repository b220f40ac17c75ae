"""What readers move and play: explorable figures, in a chapter and shown again, and the game; as text and in a browser."""

import itertools
import json
import re
import shutil
from contextlib import contextmanager

import numpy as np
import pytest
import yaml
from bs4 import BeautifulSoup
from test_browser import LOOKS, Visit
from test_prose import RECORD

from mia_book.evidence import explore, figures, game_cards
from mia_book.pages import build, captions, pages, run_page
from mia_lib import drawing, metrics
from mia_lib.errors import MiaError
from mia_lib.progress import Bars

RNG = np.random.default_rng(0)
MEMBERS = RNG.random(400) < 0.5
SCORES = {
    "MALT": RNG.normal(size=400) + MEMBERS,
    "MAST": np.exp(RNG.normal(size=400) + 2 * MEMBERS),
}
ALT = "Two histograms that overlap, and a ROC above the diagonal <of chance>"
PLAY = np.random.default_rng(1)
N, R, COUNT = 120, 6, 6
GAME_MEMBERS = PLAY.random(N) < 0.5
LOSS = np.exp(PLAY.normal(size=N) - GAME_MEMBERS)
DEALT = {
    "labels": PLAY.integers(0, 2, N),
    "classes": ("shirt", "<shoe>"),
    "loss": LOSS,
    "members": GAME_MEMBERS,
    "count": COUNT,
    "images": PLAY.integers(0, 256, (N, 8, 8, 1)).astype(np.uint8),
    "reference_loss": np.exp(PLAY.normal(size=(R, N))),
    "reference_members": PLAY.permuted(np.arange(R)[:, None].repeat(N, 1) < R // 2, axis=0),
    "scores": {"MALT": -LOSS, "LiRA": PLAY.normal(size=N) + 2 * GAME_MEMBERS},
}
CASES = {
    "images": ({"LiRA": DEALT["scores"]["LiRA"], "MALT": -LOSS}, GAME_MEMBERS),
    "tables": (
        {"MALT": PLAY.normal(size=N) + GAME_MEMBERS, "LiRA": PLAY.normal(size=N)},
        GAME_MEMBERS,
    ),
}
SAYS = "Choose two attacks: which one gains more?"
AGAIN = (
    "# A tiny book\n\n:::{explorable} fig-versus\n:name: index-versus\n:instructions: On this page in other words.\n"
    ":::\n\nSee {numref}`fig-versus`, {numref}`fig-live` and {numref}`fig-still`.\n"
)
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
SAID = re.compile(
    r"Members: (\d+) called \(TP\), (\d+) missed \(FN\)\. Non-members: (\d+) called \(FP\), (\d+) not \(TN\)"
)


def executed(name: str, figure: str, show) -> dict:
    """A run of a notebook that names a figure, with a cell in which `show` displays it."""
    shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "mia_book.evidence.results.display_bundle",
            lambda data, metadata=None: shown.append(
                {
                    "output_type": "display_data",
                    "data": dict(data),
                    "metadata": dict(metadata or {}),
                }
            ),
        )
        show()
    cells = [
        {
            "cell_type": "markdown",
            "id": "a",
            "metadata": {},
            "source": f"# The page {name}\n\nSee {{numref}}`{figure}`.\n\n{WORDS[show]}",
        },
        {
            "cell_type": "code",
            "id": "b",
            "execution_count": 1,
            "metadata": {},
            "source": "draw()",
            "outputs": json.loads(json.dumps(shown)),
        },
    ]
    notebook = {
        "cells": cells,
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "mia": RECORD | {"notebook": name, "preset": "quick", "parameters": {}},
            "kernelspec": KERNEL,
        },
    }
    return captions.attach(notebook)


def show_figures() -> None:
    """One explorable figure and one that is not."""
    histograms = {"MALT": (SCORES["MALT"], MEMBERS)}
    figures.explore(explore.rates(SCORES, MEMBERS), drawing.histograms(histograms), "fig-live")
    figures.show(drawing.histograms(histograms), "fig-still")


def show_play() -> None:
    """A deal of the game, and two attacks side by side."""
    game_cards.show(game_cards.deal(**DEALT), "tiny-game")
    figures.explore(explore.two_attacks(CASES), drawing.roc(*CASES["images"]), "fig-versus")


WORDS = {
    show_figures: f""":::{{caption}} fig-live
:alt: {ALT}
:instructions: Choose an attack and move the threshold.

What a threshold does.
:::

:::{{caption}} fig-still
:alt: {ALT}

The same.
:::""",
    show_play: f""":::{{caption}} tiny-game
What an attacker sees.
:::

:::{{caption}} fig-versus
:alt: Two curves: and squares
:instructions: {SAYS}

Two attacks.
:::""",
}


@pytest.fixture(scope="module")
def html(repo, tmp_path_factory):
    """Pages as `mia build` makes them, warnings as errors, of a book in the look of this one: two chapters, a page that shows
    a figure again, and the game."""
    root = tmp_path_factory.mktemp("explorable")
    shutil.copytree(repo / "book" / "_static", root / "book" / "_static")
    config = yaml.safe_load((repo / "_config.yml").read_text())
    options = config["sphinx"]["config"]
    options["extensions"].remove("sphinxcontrib.bibtex")
    del config["bibtex_bibfiles"], options["bibtex_reference_style"], options["html_extra_path"]
    (root / "_config.yml").write_text(yaml.safe_dump(config))
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n- file: book/play\n- file: notebooks/tiny\n"
        "- file: notebooks/dealt\n"
    )
    (root / "book" / "index.md").write_text(AGAIN)
    (root / "book" / "play.md").write_text(
        "# Play the game\n\nBefore.\n\n<!-- generated -->\n\nAfter.\n"
    )
    for folder in ("notebooks", "_build"):
        (root / folder).mkdir()
    made = {
        "tiny": executed("tiny", "fig-live", show_figures),
        "dealt": executed("dealt", "fig-versus", show_play),
    }
    for name, notebook in made.items():
        (root / "notebooks" / f"{name}.py").write_text(
            '# %% tags=["parameters"]\nsteps: int = 3  # how many\n'
        )
        (root / f"{name}.ipynb").write_text(json.dumps(notebook))
    return build.render(build.contents(root, made), root, root / "_build", False, Bars()).parent


def soup(html, name: str) -> BeautifulSoup:
    return BeautifulSoup((html / f"{name}.html").read_text(), "html.parser")


def test_without_scripts_there_is_a_table_and_the_solutions_are_folded(html):
    seen, solved = soup(html, "book/play").select_one(".mia-game").select("table")
    assert len(seen.select("tbody tr")) == len(solved.select("tbody tr")) == COUNT
    assert "member" not in seen.get_text() and not solved.find_parent("details").has_attr("open")
    kinds = [row.select("td")[1].get_text() for row in solved.select("tbody tr")]
    assert kinds == [
        "member" if one["member"] else "non-member" for one in game_cards.deal(**DEALT)["records"]
    ]
    images = seen.select("img")
    assert all(
        image["src"].startswith("data:image/png") and len(image["alt"].split()) > 3
        for image in images
    )
    assert "<shoe>" in seen.get_text(), "escaped"
    assert "`mia build`" in pages.game([]) and "mia-game" not in pages.game([])


def test_a_chapter_shows_the_records_and_no_solution_and_a_rerun_the_picture_alone(html):
    table = soup(html, "notebooks/dealt").select_one("#tiny-game")
    assert "What an attacker sees." in table.get_text() and "member" not in table.get_text()
    assert game_cards.MIME not in (html / "notebooks" / "dealt.html").read_text()
    root = html.parents[3]
    text, warnings = run_page.render(root / "dealt.ipynb", root)
    rerun = BeautifulSoup(text, "html.parser")
    assert not warnings and rerun.select_one("#tiny-game") and not rerun.select_one(".mia-game")
    assert 'mia-explore"' not in text and "vegaEmbed" not in text
    assert rerun.select_one("figure#fig-versus img")["alt"] == "Two curves: and squares"


def test_a_chart_stands_beside_its_picture_in_the_chapter_and_where_it_is_shown_again_in_other_words(
    html,
):
    live, still = soup(html, "notebooks/tiny").select("article figure")
    assert live.img["alt"] == still.img["alt"] == ALT and live["id"] == "fig-live"
    assert "a = 'x|y'" in soup(html, "notebooks/tiny").get_text(), "what was changed for the run"
    page = soup(html, "book/index")
    image = page.select_one("#index-versus").find("img")
    assert image["alt"] == "Two curves: and squares" and image["src"].endswith("fig-versus.png")
    (holder,), (same,) = (
        page.select(".mia-explore"),
        soup(html, "notebooks/dealt").select(".mia-explore"),
    )
    assert holder["data-figure"] == "index-versus"
    assert same["data-figure"] == "fig-versus"
    assert same.has_attr("hidden")
    here, there = (json.loads(one.script.string) for one in (holder, same))
    assert [one.pop("usermeta")["instructions"] for one in (here, there)] == [
        "On this page in other words.",
        SAYS,
    ]
    assert here == there, "the chart itself is the chapter's"


@pytest.mark.parametrize(
    "text", [":::{explorable} fig-verso\n:name: x\n:::\n", ":::{explorable} fig-versus\n:::\n"]
)
def test_a_figure_that_nobody_shows_or_without_a_label_is_named(text):
    with pytest.raises(
        MiaError, match=r"book/x.md: .* figures that readers can move are fig-live, fig-versus"
    ):
        pages.show_charts_again(
            text, "book/x.md", dict.fromkeys(("fig-live", "fig-versus"), ({}, ""))
        )


def in_words(html, name: str) -> dict[str, list[str]]:
    """Setting -> lines that the chart of a page writes there."""
    words = soup(html, name).select_one("details.mia-words")
    return {row.th.text: list(row.td.stripped_strings) for row in words.select("tbody tr")}


def test_words_move_one_control_at_a_time_and_their_counts_are_those_of_a_loop_over_records(html):
    said = in_words(html, "notebooks/tiny")
    at = {step: f"Threshold (0 lowest, 200 highest): {step}" for step in (0, 100, 200)}
    assert set(list(said)[1:]) == {"Attack: MAST", *at.values()}, "after how it begins"
    for step, setting in at.items():
        assert [int(number) for number in SAID.search(". ".join(said[setting])).groups()] == right(
            "MALT", step
        )
    half = "500.0 right, 500.0 wrong, 0.0 missed"
    assert (
        half in in_words(html, "notebooks/dealt")["False positive rate allowed, power of ten: 0"]
    ), "above the view, too"
    assert pages.chart_in_words({"mark": "point"}) == ""


@contextmanager
def opened(browser, html, name: str, ready: str = ".mia-chart svg .said_marks text"):
    """A page from a file, when `ready` is there; in the end nothing went wrong and nothing was asked of others."""
    with Visit(browser) as tab:
        tab.go((html / f"{name}.html").as_uri())
        tab.page.locator(ready).first.wait_for()
        yield tab
        # it asks for its fonts in a way that is not for files
        of_the_theme = ("webfonts/", "net::ERR_FAILED")
        assert not [
            error for error in tab.errors if not any(part in error for part in of_the_theme)
        ]
        assert not tab.elsewhere


def numbers(text: str) -> list[int]:
    return [int(number) for found in SAID.findall(text) for number in found]


def counts(page) -> list[int]:
    return numbers(". ".join(page.locator(".said_marks tspan").all_text_contents()))


def within(inner: dict, outer: dict) -> bool:
    return (
        outer["x"] <= inner["x"] and inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1
    )


def right(attack: str, step: int) -> list[int]:
    called = SCORES[attack] >= explore.thresholds(SCORES[attack])[step]
    return [
        int(np.sum(kind))
        for kind in (called & MEMBERS, ~called & MEMBERS, called & ~MEMBERS, ~called & ~MEMBERS)
    ]


@pytest.mark.browser
def test_a_chart_is_moved_by_keyboard_counts_follow_and_stay_and_print_has_the_picture(
    browser, html
):
    with opened(browser, html, "notebooks/tiny") as tab:
        page = tab.page
        slider, choice = page.get_by_label("Threshold"), page.get_by_label("Attack")
        start = int(slider.input_value())
        assert counts(page) == right("MALT", start)
        slider.focus()
        for _ in range(7):
            page.keyboard.press("ArrowRight")
        assert tab.until(
            lambda: (
                int(slider.input_value()) == start + 7 and counts(page) == right("MALT", start + 7)
            )
        )
        aloud = page.get_by_role("status")
        assert tab.until(lambda: numbers(aloud.text_content()) == counts(page)), "said aloud"
        page.keyboard.press("Home")
        assert tab.until(lambda: counts(page)[1::2] == [0, 0])
        page.keyboard.press("Shift+Tab")
        assert choice.evaluate("one => one === document.activeElement")
        page.keyboard.press("ArrowDown")
        assert tab.until(
            lambda: choice.input_value() == "MAST" and counts(page) == right("MAST", 0)
        )
        slider.fill("120")
        for theme, width in LOOKS:  # dark and narrow in the end: what a reader moved stays
            tab.look(theme, width)
            assert tab.until(
                lambda: within(
                    *(
                        page.locator(f"#fig-live {part}").bounding_box()
                        for part in (".mia-chart svg", ".mia-live")
                    )
                )
            )
            assert counts(page) == right("MAST", 120) and choice.input_value() == "MAST"
            tab.check_is_accessible()
        assert page.locator(".mia-chart").get_attribute("aria-label") == ALT
        chart, picture = page.locator("#fig-live .mia-chart"), page.locator("#fig-live img")
        assert chart.is_visible() and not picture.is_visible()
        page.emulate_media(media="print")
        assert picture.is_visible() and not chart.is_visible()


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [False, True], ids=["without scripts", "without what draws"])
def test_where_a_chart_cannot_be_drawn_the_picture_is_there(browser, html, scripts):
    context = browser.new_context(java_script_enabled=scripts)
    context.route("**/vega.js*", lambda route: route.abort())
    page = context.new_page()
    page.goto((html / "notebooks" / "tiny.html").as_uri())
    assert page.locator("#fig-live img").is_visible()
    assert page.locator("#fig-live figcaption").is_visible()
    assert not page.locator(".mia-explore").is_visible() and page.locator(".mia-live").count() == 0
    context.close()


def solve(page, answers: list[list[int]], look) -> None:
    """Play to the end by keyboard alone."""
    page.get_by_role("button", name="Start").focus()
    page.keyboard.press("Enter")
    for number, answer in enumerate(itertools.chain(*answers)):
        page.get_by_role(
            "group", name=f"Was record {number % COUNT + 1} in the training set?"
        ).wait_for()
        look(number)
        page.keyboard.press(str(answer))
        page.keyboard.press("Enter")
    page.get_by_text("Your guesses beside the attacks").wait_for()


def rows(page) -> dict[str, list[str]]:
    found = page.locator(".mia-play table").first.locator("tbody tr")
    return {
        name: rest
        for name, *rest in (row.locator("th, td").all_text_contents() for row in found.all())
    }


@pytest.mark.browser
def test_a_whole_game_is_played_by_keyboard_judged_as_the_metrics_judge_and_accessible(
    browser, html
):
    game, answers = game_cards.deal(**DEALT), [[3] * COUNT, [1, 5, 5, 1, 2, 5]]
    members = np.array([one["member"] for one in game["records"]])

    def look(number):
        one, words = game["records"][number % COUNT], page.locator("#mia-play-seen").text_content()
        assert f"Record {number % COUNT + 1} of {COUNT}, class {one['class']}." in words
        assert page.locator(".mia-play circle").count() == (
            len(one["references"]) if number >= COUNT else 0
        )
        assert page.locator(".mia-answers input:focus").count() == 1, (
            "ready for an answer without a mouse"
        )
        stands = page.locator(".mia-game").evaluate("one => one.outerHTML")
        assert (
            "member</td>" not in stands and '"member"' not in stands and "<script" not in stands
        ), "no answer in the page"
        if number in (0, COUNT):
            page.keyboard.press("Enter")
            assert page.get_by_text(f"Record {number % COUNT + 1} of 6").is_visible(), (
                "no record is passed over"
            )
            tab.check_is_accessible()

    with opened(browser, html, "book/play", ".mia-game button") as tab:
        page = tab.look(*LOOKS[1])
        tab.check_is_accessible()
        solve(page, answers, look)
        for theme, width in reversed(LOOKS):
            tab.look(theme, width)
            tab.check_is_accessible()
        found, said = rows(page), page.locator(".mia-play-chance").text_content()
        assert "AUC" in page.get_by_role("status").text_content(), "said aloud"
        solutions = page.locator(".mia-play table").nth(1).locator("tbody tr").all_text_contents()
        kept = page.evaluate("[localStorage, sessionStorage].flatMap(kept => Object.keys(kept))")
        assert not [key for key in kept if re.search("play|game|guess|mia", key, re.IGNORECASE)], (
            "as the page promises"
        )
    assert list(found) == ["You, round 1", "You, round 2", "MALT", "LiRA"]
    wrong = sum(sure > 3 and not member for sure, member in zip(answers[1], members, strict=True))
    for k, given in enumerate(answers, 1):
        called = np.array(given) > 3
        assert found[f"You, round {k}"] == [
            f"{metrics.auc(given, members):.2f}",
            f"{(called & members).sum()} of 3",
            f"{(called & ~members).sum()} of 3",
            "–",
        ]
    for name in ("MALT", "LiRA"):
        places = np.array([one["places"][name] for one in game["records"]])
        fpr, tpr, _ = metrics.roc_curve(places, members)
        most = max(
            int(round(3 * t)) for f, t in zip(fpr, tpr, strict=True) if round(3 * f) <= wrong
        )
        assert found[name][:2] == [f"{metrics.auc(places, members):.2f}", f"{most} of 3"]
        assert found[name][3] == f"{metrics.auc(DEALT['scores'][name], GAME_MEMBERS):.2f}"
    # What chance would do, against every way to name three of the six.
    last, reached = np.array(answers[1]), metrics.auc(answers[1], members)
    law = sorted(
        metrics.auc(last, np.isin(np.arange(COUNT), named))
        for named in itertools.combinations(range(COUNT), 3)
    )
    beyond = f"{100 * np.mean(np.array(law) > reached - 1e-9):.2g}"
    low, high = law[int(0.025 * len(law))], law[-1 - int(0.025 * len(law))]
    assert (
        f"reach an AUC of {reached:.2f} in {beyond} % of all draws, and one from {low:.2f} to {high:.2f}"
        in said
    )
    assert [("no member" not in row) for row in solutions] == members.tolist()


@pytest.mark.browser
def test_two_attacks_are_chosen_and_moved_by_keyboard(browser, html):
    with opened(browser, html, "book/index") as tab:
        page = tab.page
        page.get_by_label("Cost of a wrong accusation").focus()
        page.keyboard.press("Home")
        for label, choice in (
            ("Second attack", "LiRA"),
            ("First attack", "MALT"),
            ("Case", "tables"),
        ):
            page.get_by_label(label).select_option(choice)
        page.get_by_label("False positive rate allowed").fill("-1")
        allowed, curves = explore.rates_allowed(CASES)
        told, place = page.get_by_role("status"), len(allowed) - 1 - explore.PER_DECADE
        for row in (row for row in curves if row["case"] == "tables"):
            tpr, fpr = row["tpr"][place], row["fpr"][place]
            for said in (
                f"{row['attack']}: net gain {500 * tpr:+,.1f}",
                f"{500 * fpr:,.1f} wrong, {500 * (1 - tpr):,.1f} missed",
            ):
                assert tab.until(lambda said=said: said in told.text_content())
        for theme, width in LOOKS:
            tab.look(theme, width)
            tab.check_is_accessible()
