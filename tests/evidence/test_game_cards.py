"""A deal is fair, the same for the same seed, and holds what an attacker sees and nothing from which more follows."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

from mia_book.evidence import game_cards, results
from mia_lib import metrics
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)
N, R = 300, 8
CLASSES = ("shirt", "shoe", "bag")
GIVEN = {
    "images": RNG.integers(0, 256, (N, 28, 28, 1)).astype(np.uint8),
    "labels": RNG.integers(0, 3, N),
    "classes": CLASSES,
    "loss": np.exp(RNG.normal(size=N)),
    "reference_loss": np.exp(RNG.normal(size=(R, N))),
    "reference_members": RNG.permuted(np.arange(R)[:, None].repeat(N, 1) < R // 2, axis=0),
    "members": RNG.random(N) < 0.5,
}
GIVEN["scores"] = {"MALT": -GIVEN["loss"], "LiRA": RNG.normal(size=N).round(0)}


def index(game) -> list[int]:
    return [int(np.abs(GIVEN["loss"] - one["loss"]).argmin()) for one in game["records"]]


def test_half_of_the_records_are_members_and_each_is_shown_as_it_is():
    game = game_cards.deal(**GIVEN, seed=3)
    drawn = index(game)
    assert len(set(drawn)) == 20 and sum(one["member"] for one in game["records"]) == 10
    for i, one in zip(drawn, game["records"], strict=True):
        assert one["member"] == GIVEN["members"][i] and one["class"] == CLASSES[GIVEN["labels"][i]]
        out = np.sort(GIVEN["reference_loss"][~GIVEN["reference_members"][:, i], i])
        assert np.allclose(one["references"], out, rtol=1e-3)
        picture = Image.open(io.BytesIO(base64.b64decode(one["picture"].partition(",")[2])))
        assert (np.asarray(picture) == GIVEN["images"][i, ..., 0]).all()
    assert game == game_cards.deal(**GIVEN, seed=3)
    assert drawn != index(game_cards.deal(**GIVEN, seed=2))


def test_places_order_the_records_as_the_scores_do():
    game = game_cards.deal(**GIVEN)
    drawn, members = index(game), [one["member"] for one in game["records"]]
    for name, scores in GIVEN["scores"].items():
        assert metrics.auc(
            [one["places"][name] for one in game["records"]], members
        ) == metrics.auc(scores[drawn], members)
        (attack,) = (one for one in game["attacks"] if one["name"] == name)
        assert attack["auc"] == pytest.approx(metrics.auc(scores, GIVEN["members"]), rel=1e-3)


def test_the_others_are_counted_once_each_and_everything_has_room_on_the_axis():
    game = game_cards.deal(**GIVEN, count=8)
    assert sum(game["others"]["counts"]) == N - 8
    assert len(game["others"]["edges"]) == game_cards.BINS + 1
    low, high = game["others"]["edges"][0], game["others"]["edges"][-1]
    shown = [loss for one in game["records"] for loss in (one["loss"], *one["references"])]
    assert all(low - 1e-3 <= np.log10(loss) <= high + 1e-3 for loss in shown)


def test_it_is_plain_and_light_and_a_chapter_shows_the_records_without_the_solution(monkeypatch):
    shown = []
    monkeypatch.setattr(
        "mia_book.evidence.results.display_bundle", lambda *bundle: shown.append(bundle)
    )
    game = game_cards.deal(**GIVEN | {"images": np.repeat(GIVEN["images"], 3, axis=3)})
    assert len(json.dumps(game, allow_nan=False)) < 90_000
    assert game["records"][0]["picture"].startswith("data:image/png")
    assert all(
        one["picture"] is None for one in game_cards.deal(**GIVEN | {"images": None})["records"]
    )
    game_cards.show(game, "compare-game")
    ((bundle,),) = shown
    assert bundle[game_cards.MIME] == game and bundle[results.MIME]["name"] == "compare-game"
    assert ":name: compare-game" in bundle["text/markdown"] and "<table" in bundle["text/html"]
    assert len(game_cards.table(game)) == 20
    assert not any("member" in column for column in game_cards.table(game))


@pytest.mark.parametrize(
    "change, text",
    [
        ({"count": 7}, "count = 7: an even number"),
        ({"count": 400}, "count = 400: an even number is needed, half of it at most"),
        ({"loss": np.full(N, np.inf)}, "not finite"),
        ({"scores": {}}, "scores is empty"),
        ({"reference_members": np.ones((R, N), bool)}, "at most 0 members and 0 non-members"),
    ],
)
def test_what_cannot_be_played_is_refused(change, text):
    with pytest.raises(MiaError, match=text):
        game_cards.deal(**GIVEN | change)
