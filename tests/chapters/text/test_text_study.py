"""The chapter on language models: what its numbers are, on banks where the answer is known."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from mia_book.chapters.text import exhibits, measure, study
from mia_book.evidence import claims, rules
from mia_lib import data
from mia_lib.game import Game
from mia_lib.metrics import estimate
from mia_lib.published import Bank

VERSES, MODELS = 300, 18
PASSES = [1, 2, 4]
RECIPE = {"verses": VERSES, "twice": 20, "fourfold": 20}


@pytest.fixture(scope="module")
def about():
    return study.describe_verses(VERSES, {2: 20, 4: 20})


@pytest.fixture(scope="module")
def bank(about):
    """Losses that say more with each pass, and more of verses that repeat."""
    rng = np.random.default_rng(0)
    members = measure.members_of(MODELS, **RECIPE, seed=0)
    difficulty = rng.normal(4, 1, VERSES)
    lead = np.array([0.05, 0.3, 1.0])[:, None] * np.sqrt(about["copies"].to_numpy())
    noise = rng.normal(0, 0.2, (MODELS, len(PASSES), VERSES))
    loss = difficulty + noise - lead * members[:, None]
    arrays = {
        "loss": loss,
        "min_k": -loss,
        "min_k_plus": -loss,
        "other": difficulty + noise[:, 0] - 0.2 * members,
        "members": members,
    }
    return Bank("text/verses", {"passes": PASSES, "tuned_passes": PASSES}, arrays, [])


def value(frame, attack, metric="auc", **where):
    return estimate(frame, attack, metric, **where).value


def test_halves_are_of_verses_that_repeat_equally_often_and_pairs_are_complements():
    members = measure.members_of(4, **RECIPE, seed=3)
    assert (members[0] == ~members[1]).all() and (members.sum(0) == 2).all()
    assert members[:, -20:].sum(1).tolist() == members[:, -40:-20].sum(1).tolist() == [10] * 4
    more = measure.members_of(8, **RECIPE, seed=3)
    np.testing.assert_array_equal(more[:4], members)
    _, verse = measure.pool_of(**RECIPE)
    counts = np.bincount(verse)
    assert set(counts[:-40]) == {1} and set(counts[-40:-20]) == {2} and set(counts[-20:]) == {4}


def test_a_smaller_transformer_costs_less_and_another_network_what_the_usual_one_does():
    usual, small, own = (
        measure.verses.complete({"architecture": name})
        for name in ("gpt:128,4,4", "gpt:16,1,2", "my_module:Net")
    )
    assert 0 < 20 * measure.training_cost(small) < measure.training_cost(usual)
    assert measure.training_cost(own) == measure.training_cost(usual)
    assert "takes what" not in measure.verses.cost_in_words(2, small)
    assert "takes what gpt:128,4,4 does" in measure.verses.cost_in_words(2, own)


def test_verses_are_described_by_what_they_say(about):
    text = data.texts(data.load("verses_kjv").take(range(3)))
    assert about["text"][:3].tolist() == text
    assert about["copies"].value_counts().to_dict() == {1: 260, 2: 20, 4: 20}
    assert about["kept"].between(0, 1).mean() > 0.95 and 0.1 < about["new"].mean() < 0.5
    assert study.share_kept("a b c d e f", "x, a B c d e") == 0.5
    assert np.isnan(study.share_kept("too short", "too short"))
    common, rare = ("And the LORD said unto Moses", "Hodijah, Bani, Beninu")
    order = about.set_index("text")["rarity"]
    first = [order[[line for line in order.index if part in line]] for part in (common, rare)]
    assert all(len(each) == 0 for each in first) or first[0].mean() < order.max()


def test_one_other_model_is_the_one_that_did_not_read_the_verse(bank, about):
    [*_, (_, game)] = study.games(bank, about, 2, 4)
    view = game.view(2)
    loss, reference_members = view.references("loss")
    by_hand = [loss[0 if not reference_members[0, i] else 1, i] for i in range(VERSES)]
    np.testing.assert_allclose(study.one_model(view), by_hand - view.own("loss"))


def test_one_model_read_or_not_is_the_first_reference_and_the_midpoint_lies_between_means(
    bank, about
):
    [*_, (_, game)] = study.games(bank, about, 2, 4)
    view = game.view(2)
    loss, members = view.references("loss")
    np.testing.assert_allclose(study.first_model(view), loss[0] - view.own("loss"))
    means = [np.average(loss, 0, of) for of in (members, ~members)]
    np.testing.assert_allclose(study.midpoint(view), sum(means) / 2 - view.own("loss"))


def test_verses_differ_by_as_much_as_their_spread_over_their_mean():
    verses = pd.DataFrame({"copies": [1, 1, 2], "length": [1, 3, 9], "compressed": [1, 1, 1]})
    loss = np.array([[[9.0, 9, 9], [1, 1, 9]], [[9, 9, 9], [2, 6, 9]]])
    bank = Bank("text/verses", {"passes": [1, 2]}, {"loss": loss}, [])
    assert study.variation(bank, verses) == (0.5, 0.25)


def test_one_book_is_accused_where_its_records_are_easy_together():
    rng = np.random.default_rng(0)
    books, members = np.arange(4000) // 400, np.arange(4000) % 2 < 1
    alike = rng.normal(0, 1, 4000)
    assert study.books_accused(alike, members, books, 40, 0) == pytest.approx(0.01, abs=0.01)
    easy = alike + 3 * (books == 2)  # of one book in ten
    assert study.books_accused(easy, members, books, 40, 0) == pytest.approx(0.1, abs=0.01)
    assert np.isnan(study.books_accused(easy, members, books, 201, 0))


def test_attacks_find_more_with_each_pass_and_references_take_difficulty_out(bank, about):
    frame = study.attack(bank, about, 8, 14, 5)
    for attack in ("Loss", "one other model", "LiRA"):
        found = [value(frame, attack, passes=passes) for passes in PASSES]
        assert found == sorted(found)
    assert value(frame, "one other model", passes=4) > value(frame, "Loss", passes=4) + 0.1
    assert value(frame, "LiRA", passes=4) > value(frame, "one other model", passes=4)


def test_a_regression_takes_out_what_a_verse_is_expected_to_lose_and_nothing_of_membership(about):
    rng = np.random.default_rng(3)
    members = measure.members_of(MODELS, **RECIPE, seed=0)
    length = about["length"].to_numpy()
    hard = (length - length.mean()) / length.std()
    for lead, least, most in ((0.3, 0.68, 1.0), (0.0, 0.4, 0.6)):
        loss = (4 + hard + rng.normal(0, 0.2, members.shape) - lead * members)[:, None]
        arrays = {"loss": loss, "min_k": -loss, "min_k_plus": -loss, "members": members}
        frame = study.expected(Bank("text/verses", {"passes": [1]}, arrays, []), about, 8, 2, 0)
        assert least < value(frame, "quantile regression", passes=1) < most
        assert value(frame, "Loss", passes=1) < 0.62


def test_a_bag_of_words_knows_the_testament_and_nothing_of_random_halves(bank, about):
    frame = study.blind(bank, about, 8, 14, 5)
    assert value(frame, "bag of words", split="by testament", passes=1) > 0.7
    assert abs(value(frame, "bag of words", split="random", passes=1) - 0.5) < 0.08


def test_what_repeats_is_more_exposed_and_another_translation_less(bank, about):
    frame = study.exposed(bank, about, 8, 14, 5)
    once, often = (value(frame, "LiRA", of="copies", part=part, passes=2) for part in ("1", "4"))
    assert often > once + 0.1
    frame = study.paraphrased(bank, about, 8, 14, 5)
    own, other = (
        value(frame, "LiRA", asked=asked, wording="all")
        for asked in ("the verse", "the other translation")
    )
    assert 0.6 < other < own
    without = value(frame, "LiRA, offline", asked="the other translation", wording="all")
    assert 0.6 < without < own


def test_so_many_records_decide_with_the_power_that_is_promised():
    rng = np.random.default_rng(0)
    members = np.arange(20_000) < 10_000
    scores = rng.normal(0, 1, 20_000) + 0.2 * members
    needed = study.records_needed(scores, members)
    assert needed == pytest.approx(
        (norm.isf(0.01) * scores[~members].std() + norm.ppf(0.8) * scores[members].std()) ** 2
        / (scores[members].mean() - scores[~members].mean()) ** 2
    )
    size = round(needed)
    means = [rng.choice(scores[side], (4000, size)).mean(1) for side in (members, ~members)]
    assert (means[0] > np.quantile(means[1], 0.99)).mean() == pytest.approx(0.8, abs=0.03)
    assert study.records_needed(-scores, members) == np.inf


def test_the_share_of_a_collection_is_exact_where_calls_are_and_corrected_where_they_are_not():
    rng = np.random.default_rng(1)
    members = np.arange(4000) < 2000
    clear = study.share_error(members + 0.0, members, members + 0.0, members, 0)
    assert clear == {"share": 0.0, "calls": 0.0}
    scores, known = (rng.normal(0, 1, 4000) + 1.5 * members for _ in range(2))
    blurred = study.share_error(scores, members, known, members, 0)
    assert blurred["share"] < 0.06 < blurred["calls"]


def of_tuned(bank):
    """Fine-tuned models, whose base finds hard what they do."""
    loss = bank.loss[:, :, :200]
    base = np.repeat(loss[:1, 0] + 0.1, MODELS, 0)
    arrays = {"loss": loss, "base": base, "members": bank.members[:, :200]}
    return Bank("text/tuned", bank.parameters, arrays, [])


def test_a_fine_tuned_model_is_compared_with_its_base(bank):
    frame = study.tuned(of_tuned(bank), 5)
    assert value(frame, "base model", passes=4) > value(frame, "Loss", passes=4)


def test_every_claim_has_a_number_on_a_bank_of_all_studies(bank, about):
    books = np.arange(VERSES) // 100
    shares = bank.loss[:, -1:].repeat(len(measure.SHARES), 1)
    further = {"lower": bank.loss[:, -1], "min_k": -shares, "min_k_plus": -shares}
    frame = pd.concat(
        [
            study.variants(bank, Bank("text/variants", {}, further | {"members": bank.members}, []), 2),
            study.tuned(of_tuned(bank), 2),
            study.expected(bank, about, 8, 2, 0),
            study.attack(bank, about, 8, 14, 2),
            study.by_references(bank, about, 8, [2, 14], 2),
            study.blind(bank, about, 8, 14, 2),
            study.exposed(bank, about, 8, 14, 2),
            study.paraphrased(bank, about, 8, 14, 2),
            *(study.collections(game, books, data=str(passes)) for passes, game in study.games(bank, about, 8, 14)),
        ]
    )  # fmt: skip
    verdicts = {verdict.claim: verdict for verdict in rules.judge_all("text", frame, {})}
    assert {*verdicts} == {*claims.claims("text")}
    unasked = {name for name, verdict in verdicts.items() if verdict.verdict == claims.NOT_RUN}
    assert unasked <= {"L7", "L12"}  # too few verses for 1 %
    assert verdicts["L8"].verdict == verdicts["L20"].verdict == "reproduced"
    table = exhibits.collections_table(frame)
    assert list(table.columns)[0] == "records that decide" and len(table) == 9
    assert len(exhibits.reported_table(frame)) == 17


def test_a_target_that_leaks_nothing_has_a_collection_that_none_decides(bank, about):
    rng = np.random.default_rng(5)
    loss = rng.normal(4, 1, (MODELS, VERSES))
    game = Game(
        bank.members, {"loss": loss, "logit_scaled_confidence": -loss}, {}, range(0, 16, 2), 8
    )
    frame = study.collections(game, data="nothing")
    assert value(frame, "Loss", "evidence", data="nothing") < 0.01
