"""What readers play with on a page of prose: the game, a figure of a chapter shown again, and two attacks side by side."""

from __future__ import annotations

import itertools
import json
import re

import numpy as np
import pytest
from bs4 import BeautifulSoup
from test_browser import LOOKS, Visit
from test_explorable import notebook, root  # noqa: F401 - `root` is a fixture

from mia_lib import metrics, plotting
from mia_lib.errors import MiaError
from mia_lib.evidence import explore, game_cards
from mia_lib.progress import Bars
from mia_lib.publish import build, outputs, pages, run_page

RNG = np.random.default_rng(1)
N, R, COUNT = 120, 6, 6
MEMBERS = RNG.random(N) < 0.5
LOSS = np.exp(RNG.normal(size=N) - MEMBERS)
DEALT = {"labels": RNG.integers(0, 2, N), "classes": ("shirt", "<shoe>"), "loss": LOSS, "members": MEMBERS, "count": COUNT,
         "images": RNG.integers(0, 256, (N, 8, 8, 1)).astype(np.uint8), "reference_loss": np.exp(RNG.normal(size=(R, N))),
         "reference_members": RNG.permuted(np.arange(R)[:, None].repeat(N, 1) < R // 2, axis=0),
         "scores": {"MALT": -LOSS, "LiRA": RNG.normal(size=N) + 2 * MEMBERS}}
CASES = {"images": ({"LiRA": DEALT["scores"]["LiRA"], "MALT": -LOSS}, MEMBERS),
         "tables": ({"MALT": RNG.normal(size=N) + MEMBERS, "LiRA": RNG.normal(size=N)}, MEMBERS)}
SAYS = "Choose two attacks: which one gains more?"
PAGE = "# Play the game\n\nBefore.\n\n<!-- generated -->\n\nAfter.\n"
AGAIN = """# A tiny book

:::{explorable} fig-versus
:name: index-versus
:instructions: On this page in other words.
:::

See {numref}`fig-versus`.

:::{note}
What stands in other fences stays.
:::
"""


def with_game(monkeypatch) -> dict:
    """A run of a notebook that deals a game and shows two attacks side by side."""
    shown = []
    made = notebook(monkeypatch)
    monkeypatch.setattr("mia_lib.evidence.tables.display_bundle", lambda data, metadata=None: shown.append(
        {"output_type": "display_data", "data": dict(data), "metadata": dict(metadata or {})}))
    game_cards.show(game_cards.deal(**DEALT), "tiny-game", "What an attacker sees.")
    plotting.explore(explore.two_attacks(CASES), plotting.roc(*CASES["images"]), "fig-versus", "Two attacks.",
                     "Two curves: and squares", SAYS)
    made["cells"].append({"cell_type": "code", "id": "c", "execution_count": 2, "metadata": {}, "source": "play()",
                          "outputs": json.loads(json.dumps(shown))})
    return made


@pytest.fixture(scope="module")
def ran(root):  # noqa: F811
    with pytest.MonkeyPatch.context() as patch:
        made = with_game(patch)
    (root / "tiny.ipynb").write_text(json.dumps(made))
    (root / "book" / "play.md").write_text(PAGE)
    (root / "book" / "index.md").write_text(AGAIN)
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n- file: book/play\n- file: notebooks/tiny\n")
    return made


@pytest.fixture(scope="module")
def html(root, ran):  # noqa: F811
    """Folder of the pages as `mia build` makes them, warnings as errors."""
    folder = root / "_build"
    folder.mkdir(exist_ok=True)
    return build.render(build.contents(root, {"tiny": ran}), root, folder, False, Bars()).parent


def soup(html, name: str) -> BeautifulSoup:
    return BeautifulSoup((html / f"{name}.html").read_text(), "html.parser")


# What stands in the pages


def test_without_a_deal_the_page_says_how_to_get_one(ran):
    assert outputs.displayed(ran).deals == [json.loads(json.dumps(game_cards.deal(**DEALT)))]
    assert "`mia build`" in pages.game([]) and "mia-game" not in pages.game([])
    assert game_cards.MIME == outputs.GAME


def test_without_scripts_there_is_a_table_and_the_solutions_are_folded(html):
    holder = soup(html, "book/play").select_one(".mia-game")
    seen, solved = holder.select("table")
    assert len(seen.select("tbody tr")) == len(solved.select("tbody tr")) == COUNT
    assert "member" not in seen.get_text() and not solved.find_parent("details").has_attr("open")
    kinds = [row.select("td")[1].get_text() for row in solved.select("tbody tr")]
    assert kinds == ["member" if one["member"] else "non-member" for one in game_cards.deal(**DEALT)["records"]]
    for image in seen.select("img"):
        assert image["src"].startswith("data:image/png") and len(image["alt"].split()) > 3
    assert "<shoe>" in seen.get_text(), "escaped"


def test_only_pages_with_something_to_play_load_what_plays_it(html):
    def loaded(name):
        return [re.search(r"(\w+)\.js", tag["src"])[1] for tag in soup(html, name).select("script[src]")
                if re.search(r"/(vega|explore|play)\.js", tag["src"])]

    assert loaded("book/play") == ["play"]
    assert loaded("book/index") == loaded("notebooks/tiny") == ["vega", "explore"]


def test_the_chapter_shows_the_records_and_no_solution(html, root, ran):  # noqa: F811
    table = soup(html, "notebooks/tiny").select_one("#tiny-game")
    assert "What an attacker sees." in table.get_text() and "member" not in table.get_text()
    assert game_cards.MIME not in (html / "notebooks" / "tiny.html").read_text()
    text, warnings = run_page.render(root / "tiny.ipynb", root)
    rerun = BeautifulSoup(text, "html.parser")
    assert not warnings and rerun.select_one("#tiny-game") and not rerun.select_one(".mia-game")


def test_a_figure_of_a_chapter_is_shown_again_in_other_words(html):
    page = soup(html, "book/index")
    figure = page.select_one("figure#index-versus") or page.select_one("#index-versus")
    assert figure.find("img")["alt"] == "Two curves: and squares" and figure.find("img")["src"].endswith("fig-versus.png")
    (holder,) = page.select(".mia-explore")
    assert holder["data-figure"] == "index-versus"
    (same,) = (one for one in soup(html, "notebooks/tiny").select(".mia-explore") if one["data-figure"] == "fig-versus")
    here, there = (json.loads(one.script.string) for one in (holder, same))
    assert [one.pop("usermeta")["instructions"] for one in (here, there)] == ["On this page in other words.", SAYS]
    assert here == there, "the chart itself is the chapter's"
    assert "What stands in other fences stays." in page.find("article").get_text()


@pytest.mark.parametrize("text", [":::{explorable} fig-verso\n:name: x\n:::\n", ":::{explorable} fig-versus\n:::\n"])
def test_a_figure_that_nobody_shows_or_without_a_label_is_named(ran, text):
    with pytest.raises(MiaError, match=r"book/x.md: .* figures that readers can move are fig-live, fig-versus"):
        pages.show_charts_again(text, "book/x.md", dict.fromkeys(outputs.displayed(ran).charts, ({}, "")))


# As a reader meets them


@pytest.fixture
def visit(browser, html):
    """The game from a file."""
    with Visit(browser) as tab:
        tab.go((html / "book" / "play.html").as_uri())
        yield tab
        of_the_theme = ("webfonts/", "net::ERR_FAILED")  # it asks for its fonts in a way that is not for files
        assert not [error for error in tab.errors if not any(part in error for part in of_the_theme)]
        assert not tab.elsewhere


def solve(page, answers: list[list[int]], look=None) -> None:
    """Play to the end by keyboard alone."""
    page.get_by_role("button", name="Start").focus()
    page.keyboard.press("Enter")
    for number, answer in enumerate(itertools.chain(*answers)):
        page.get_by_role("group", name=f"Was record {number % COUNT + 1} in the training set?").wait_for()
        if look:
            look(page, number)
        page.keyboard.press(str(answer))
        page.keyboard.press("Enter")
    page.get_by_text("Your guesses beside the attacks").wait_for()


def rows(page) -> dict[str, list[str]]:
    found = page.locator(".mia-play table").first.locator("tbody tr")
    return {name: rest for name, *rest in (row.locator("th, td").all_text_contents() for row in found.all())}


@pytest.mark.browser
@pytest.mark.parametrize("answers", [
    [[1, 2, 3, 4, 5, 3], [5, 5, 1, 1, 4, 4]], [[3] * COUNT, [1, 5, 5, 1, 2, 5]]])
def test_a_whole_game_is_played_by_keyboard_and_judged_as_the_metrics_judge(visit, answers):
    game = game_cards.deal(**DEALT)
    held = np.array([one["member"] for one in game["records"]])

    def look(page, number):
        one, words = game["records"][number % COUNT], page.locator("#mia-play-seen").text_content()
        assert f"Record {number % COUNT + 1} of {COUNT}, class {one['class']}." in words
        assert page.locator(".mia-play circle").count() == (len(one["references"]) if number >= COUNT else 0)
        assert page.locator(".mia-answers input:focus").count() == 1, "ready for an answer without a mouse"
        stands = page.locator(".mia-game").evaluate("one => one.outerHTML")
        assert "member</td>" not in stands and '"member"' not in stands and "<script" not in stands, "no answer in the page"

    solve(visit.page, answers, look)
    found = rows(visit.page)
    assert list(found) == ["You, round 1", "You, round 2", "MALT", "LiRA"]
    wrong = sum(sure > 3 and not member for sure, member in zip(answers[1], held, strict=True))
    for k, given in enumerate(answers, 1):
        called = np.array(given) > 3
        assert found[f"You, round {k}"] == [f"{metrics.auc(given, held):.2f}", f"{(called & held).sum()} of 3",
                                            f"{(called & ~held).sum()} of 3", "–"]
    for name in ("MALT", "LiRA"):
        places = np.array([one["places"][name] for one in game["records"]])
        fpr, tpr, _ = metrics.roc_curve(places, held)
        right = max(int(round(3 * t)) for f, t in zip(fpr, tpr, strict=True) if round(3 * f) <= wrong)
        assert found[name][:2] == [f"{metrics.auc(places, held):.2f}", f"{right} of 3"]
        assert found[name][3] == f"{metrics.auc(DEALT['scores'][name], MEMBERS):.2f}"
    # What chance would do, against every way to name three of the six.
    last, reached = np.array(answers[1]), metrics.auc(answers[1], held)
    law = sorted(metrics.auc(last, np.isin(np.arange(COUNT), named)) for named in itertools.combinations(range(COUNT), 3))
    beyond = f"{100 * np.mean(np.array(law) > reached - 1e-9):.2g}"
    low, high = law[int(0.025 * len(law))], law[-1 - int(0.025 * len(law))]
    said = visit.page.locator(".mia-play-chance").text_content()
    assert f"reach an AUC of {reached:.2f} in {beyond} % of all draws, and one from {low:.2f} to {high:.2f}" in said
    assert "AUC" in visit.page.get_by_role("status").text_content(), "said aloud"
    solutions = visit.page.locator(".mia-play table").nth(1).locator("tbody tr").all_text_contents()
    assert [("no member" not in row) for row in solutions] == held.tolist()


@pytest.mark.browser
def test_an_answer_is_asked_for_and_a_game_can_be_played_again(visit):
    page = visit.page
    page.get_by_role("button", name="Start").click()
    page.keyboard.press("Enter")
    assert page.get_by_text("Record 1 of 6").is_visible(), "no record is passed over"
    page.get_by_label("5 surely", exact=True).check()
    page.get_by_role("button", name="Next record").click()
    for _ in range(1, 2 * COUNT):
        page.keyboard.press("3")
        page.keyboard.press("Enter")
    assert rows(page)["You, round 2"][0] == "0.50", "who says nothing knows nothing"
    page.get_by_role("button", name="Play again").press("Enter")
    assert page.get_by_role("button", name="Start").evaluate("one => one === document.activeElement")
    kept = page.evaluate("[localStorage, sessionStorage].flatMap(kept => Object.keys(kept))")
    assert not [key for key in kept if re.search("play|game|guess|mia", key, re.IGNORECASE)]


@pytest.mark.browser
@pytest.mark.parametrize("theme, width", LOOKS)
def test_the_game_fits_and_is_accessible_from_start_to_end(visit, theme, width):
    page = visit.look(theme, width)
    visit.check_fits_and_is_accessible()
    solve(page, [[1, 5, 1, 5, 1, 5]] * 2, lambda page, number: number in (0, COUNT) and visit.check_fits_and_is_accessible())
    visit.check_fits_and_is_accessible()
    assert page.locator(".mia-live").evaluate("one => getComputedStyle(one).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.browser
@pytest.mark.parametrize("theme, width", LOOKS)
def test_two_attacks_are_chosen_and_moved_by_keyboard(browser, html, theme, width):
    with Visit(browser, theme, width) as tab:
        page = tab.go((html / "book" / "index.html").as_uri())
        page.locator(".mia-chart svg .said_marks text").first.wait_for()
        page.wait_for_timeout(500)
        slider = page.get_by_label("Cost of a wrong accusation")
        slider.focus()
        page.keyboard.press("Home")
        page.get_by_label("Second attack").select_option("LiRA")
        page.get_by_label("First attack").select_option("MALT")
        page.get_by_label("Case").select_option("tables")
        page.get_by_label("False positive rate allowed").fill("-1")
        page.wait_for_timeout(700)
        allowed, curves = explore.rates_allowed(CASES)
        told, place = page.get_by_role("status").text_content(), len(allowed) - 1 - explore.PER_DECADE
        for row in (row for row in curves if row["case"] == "tables"):
            tpr, fpr = row["tpr"][place], row["fpr"][place]
            assert f"{row['attack']}: net gain {500 * tpr:+,.1f}" in told
            assert f"{500 * fpr:,.1f} wrong, {500 * (1 - tpr):,.1f} missed" in told
        tab.check_fits_and_is_accessible()
