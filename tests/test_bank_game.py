"""The game on a bank: who is attacked, with which references, and what a rehearsal sees."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from toys import toy_bank

from mia_lib import membership, metrics
from mia_lib.attacks import baselines, calibration, registry
from mia_lib.attacks.registry import LOG_ODDS
from mia_lib.errors import MiaError
from mia_lib.game import Game
from mia_lib.published import Bank

MODELS, RECORDS = 12, 300


BANK = toy_bank(n=RECORDS, others=50)


def test_references_are_whole_pairs_without_the_targets_own_and_differ_between_targets():
    game = Game.of(BANK, 6, 4)
    for target in range(MODELS):
        assert sorted(game.references_of(target, 10)) == sorted(
            set(range(MODELS)) - {target, target ^ 1}
        )
        assert_array_equal(game.references_of(target), game.references_of(target ^ 1))
    assert len({tuple(game.references_of(target)) for target in game.targets}) == 6
    assert list(game.references_of(10)) == [0, 1, 2, 3]
    assert list(game.references_of(2, 3)) == [4, 5, 6]
    first = replace(game, order="first")
    assert_array_equal(first.references_of(2, 10), membership.references_of(2, MODELS))


def test_records_are_numbers_or_a_mask_as_an_array_or_a_list():
    mask = np.arange(350) % 3 == 0
    of_numbers = Game.on(BANK, np.flatnonzero(mask), BANK.untrained, [0], 4)
    for rows in (mask, mask.tolist(), np.flatnonzero(mask).tolist()):
        game = Game.on(BANK, rows, BANK.untrained, [0], 4)
        assert_array_equal(game.values["loss"], of_numbers.values["loss"])


def test_models_of_which_all_signals_are_known_are_the_first_references_and_alone_are_attacked():
    game = Game.of(BANK, 2, 4)
    costly = replace(game, values=game.values | {"curvature": np.ones((6, RECORDS))})
    assert costly.complete == 6 and set(costly.references_of(2)) == {4, 5, 0, 1}
    assert sorted(costly.references_of(2, 10)) == sorted(set(range(MODELS)) - {2, 3})
    with pytest.raises(MiaError, match="of 6 models 3 can be attacked"):
        replace(costly, targets=range(0, 8, 2))


def test_two_attacks_are_compared_on_the_same_targets_and_records():
    game = Game.of(BANK, 4, 6)
    ahead = game.compare(
        lambda view: view.own("loss") * 0, "LiRA", "tpr_at_fpr=0.05", level=0.9, draws=50
    )
    scores = game.scores({"mine": lambda view: view.own("loss") * 0, "LiRA": "LiRA"})
    assert ahead == metrics.compare(
        "tpr_at_fpr=0.05",
        scores["mine"],
        scores["LiRA"],
        game.target_members,
        level=0.9,
        draws=50,
    )
    assert ahead.high < 0
    assert game.compare("LiRA", "LiRA").value == 0
    # without `draws`, as many as in a frame
    usual = metrics.compare("auc", scores["mine"], scores["LiRA"], game.target_members, draws=100)
    assert game.compare(lambda view: view.own("loss") * 0, "LiRA") == usual
    with pytest.raises(MiaError, match="Did you mean 'LiRA'.* 'LiRA', 'LiRA, own spreads'"):
        game.compare("MALT", "LIRA")
    with pytest.raises(MiaError, match="Did you mean 'tpr_at_fpr=0.01'.* auc, .*tpr_at_fpr=0.01"):
        game.compare("MALT", "LiRA", "tpr@0.01")


def test_an_attack_that_writes_into_what_it_is_given_changes_no_other_score():
    game = Game.of(BANK, 2, 6)

    def careless(view):
        for given in (view.own(LOG_ODDS), view.public("loss"), *view.references("loss")):
            given[:] = 0
        return view.own("loss")

    alone = game.scores(["MALT", "RMIA"])
    after = game.scores({"careless": careless, "MALT": "MALT", "RMIA": "RMIA"})
    for attack, scores in alone.items():
        assert_array_equal(after[attack], scores)
    assert_array_equal(after["careless"], -alone["MALT"])
    view = game.view(0)  # one view for two attacks
    careless(view)
    assert_array_equal(registry.score("RMIA", view), alone["RMIA"][0])
    arrays = registry.ArraySignals(game.values, game.members[1:], game.public_values)
    careless(arrays)
    assert_array_equal(game.members, BANK.members[:, BANK.trained])
    assert_array_equal(registry.score("MALT", arrays), alone["MALT"][0])


def test_scores_are_those_of_the_functions_on_the_arrays():
    game = Game.of(BANK, 3, 6, records=200)
    margin, members = BANK.margin.astype(float), BANK.members
    loss, p = np.logaddexp(0, -margin), 1 / (1 + np.exp(-margin))
    mine = {
        "LiRA": "LiRA",
        "RMIA": "RMIA",
        "mine": lambda view: calibration.calibrate(
            -view.own("loss"), -view.references("loss")[0], view.reference_members
        ),
    }
    scores = game.scores(mine)
    for k, target in enumerate((0, 2, 4)):
        others = game.references_of(target)
        reference_members, judged, public = members[others, :200], slice(200), slice(RECORDS, None)
        assert_allclose(
            scores["LiRA"][k],
            baselines.lira_online(
                margin[target, judged], margin[others, judged], reference_members, True
            ),
        )
        assert_allclose(
            scores["RMIA"][k],
            baselines.rmia(
                p[target, judged],
                p[others, judged],
                reference_members,
                p[target, public],
                p[others, public],
            ),
        )
        assert_allclose(
            scores["mine"][k],
            calibration.calibrate(-loss[target, judged], -loss[others, judged], reference_members),
        )
    frame = game.frame(mine, ["auc"], draws=10, study="toy")
    assert metrics.estimate(frame, "LiRA", "auc", study="toy").values[1] == metrics.auc(
        scores["LiRA"][1], members[2, :200]
    )


def test_a_view_of_some_records_has_their_signals_and_members():
    view, rows = Game.of(BANK, 1, 4).view(0), np.array([5, 2, 7])
    some = view.on(rows)
    assert_array_equal(some.own(LOG_ODDS), view.own(LOG_ODDS)[rows])
    assert_array_equal(some.references("loss")[0], view.references("loss")[0][:, rows])
    assert_array_equal(some.references("loss")[1], view.reference_members[:, rows])
    assert_array_equal(
        some.public("loss", 3),
        np.logaddexp(0, -BANK.margin[0, RECORDS : RECORDS + 3].astype(float)),
    )


def test_of_a_signal_in_the_place_of_another_the_loss_follows_and_no_other_is_there():
    game = Game.of(BANK, 1, 4)
    queries = replace(game, values=game.values | {"2 queries": game.values[LOG_ODDS] + 1}).view(0)
    view = replace(queries, replaced={LOG_ODDS: "2 queries"})
    assert_allclose(view.own("loss"), np.logaddexp(0, -game.values[LOG_ODDS][0] - 1))
    with pytest.raises(MiaError, match="correctness"):
        view.own("correctness")


def test_a_rehearsal_attacks_references_without_the_target_its_partner_and_their_own():
    view = Game.of(BANK, 1, 6).view(0)
    rehearsals = view.rehearsals(2)
    assert [own.target for own, _ in rehearsals] == [2, 4]
    for own, members in rehearsals:
        assert not {0, 1, own.target, own.target ^ 1} & set(own.models) and len(own.models) == 4
        assert_array_equal(members, BANK.members[own.target, :RECORDS])


def test_what_a_rehearsal_chooses_knows_nothing_of_the_target_or_of_who_is_in_it():
    arrays = {name: array.copy() for name, array in BANK.arrays.items()}
    arrays["margin"][:2], arrays["members"][:2, :RECORDS] = 0, ~arrays["members"][:2, :RECORDS]
    chosen, again = (
        Game.of(Bank("toy", {}, one, []), 1, 6).view(0).rehearse("RMIA, offline", step=1)
        for one in (BANK.arrays, arrays)
    )
    assert chosen == again
    [(own, members)] = Game.of(BANK, 1, 6).view(0).rehearsals(1)
    auc = {
        a: metrics.auc(registry.score("RMIA, offline", own, a=a), members) for a in registry.SHARES
    }
    assert auc[chosen["a"]] == max(auc.values())
    assert Game.of(BANK, 1, 2).view(0).rehearse("RMIA, offline") == {}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: Game.of(BANK, 7, 4),
            "targets = 7, references = 4: of 12 models 6 can be attacked",
        ),
        (lambda: Game.of(BANK, 4, 12), "references = 12"),
        (lambda: Game.of(BANK, 0, 4), "targets = 0"),
        (lambda: Game.on(BANK, [True] * 300, BANK.untrained, [0], 4), r"or a mask bool \[350\]"),
        (lambda: Game.on(BANK, [-1, 3], BANK.untrained, [0], 4), "records = array"),
        (lambda: Game.on(BANK, [0.0, 1.0], BANK.untrained, [0], 4), "records = array"),
        (lambda: Game.on(BANK, [0, 350], BANK.untrained, [0], 4), "from 0 to 349"),
        (lambda: Game.on(BANK, [3, 3], BANK.untrained, [0], 4), "more than once"),
        (lambda: Game.on(BANK, [3, 4], [[300]], [0], 4), "public = array"),
        (lambda: Game.of(BANK, 2, -1), "references = -1"),
        (lambda: Game.of(BANK, 2, 2, order="last"), "order = 'last'"),
        (lambda: Game.of(toy_bank(models=2, n=RECORDS), 1, 0), "models = 2"),
        (lambda: Game.of(BANK, 2, 4).references_of(0, 11), "count = 11"),
        (lambda: Game.of(BANK, 2, 4).view(0).own("curvature"), "curvature"),
        (lambda: Game.of(BANK, 2, 4).scores(["Attack S"]), "labels"),
        (lambda: Game.of(BANK, 2, 4).scores(["LiRa"]), "LiRA"),
        (
            lambda: Game.of("bank/one", 2, 4),
            r"is a name: give the bank, published.load\('bank/one'\)",
        ),
        (lambda: Game.of(BANK, 2, 4).scores("LiRA"), "'LiRA': names in a list are needed"),
        (lambda: Game.of(BANK, 2, 4).scores([]), "of at least one attack"),
        (
            lambda: Game.of(BANK, 2, 4).scores([3]),
            "attack is of type int.* Give the name of an attack",
        ),
        (
            lambda: Game.of(BANK, 2, 4).compare("auc", "LiRA", "RMIA"),
            r"attack = 'auc' is a metric. Attacks come first, then the metric, as in game.compare\('LiRA', 'MALT', 'auc'\)",
        ),
        (lambda: Game.of(BANK, 2, 4).compare("LiRA", "auc", "RMIA"), "'auc' is a metric"),
        (
            lambda: Game.of(BANK, 2, 4).frame(["tpr_at_fpr=0.1"], ["auc"]),
            "'tpr_at_fpr=0.1' is a metric",
        ),
        (
            lambda: Game.of(BANK, 2, 4).compare("LiRA", "MALT", "RMIA"),
            "metric = 'RMIA' is an attack. Attacks come first",
        ),
        (
            lambda: Game.of(BANK, 2, 4).compare(np.zeros((2, 300)), "MALT"),
            "Scores that are there are compared by metrics.compare",
        ),
        (lambda: Game.of(BANK, 2, 4).frame(["LiRA"], "auc"), "metrics = 'auc': a list is needed"),
        (
            lambda: Game.of(BANK, 2, 4).scores({"mine": lambda view: view.own("loss").mean()}),
            r"attack 'mine' gives scores of shape \(\): one number for each of 300 records",
        ),
    ],
)
def test_what_cannot_be_played_is_refused(make, said):
    with pytest.raises(MiaError, match=said):
        make()


def test_a_complement_among_the_references_is_refused_wherever_it_stands():
    """Its membership tells the target's: without any leak an attack that counts references had an AUC of 0.6."""
    members = BANK.members[:, :RECORDS]
    stacked = np.concatenate([members[::2], members[1::2]])
    with pytest.raises(MiaError, match="model 6 was trained on all that model 0 was not"):
        Game(stacked, {LOG_ODDS: np.zeros(stacked.shape)}, {}, [0], 10)
    twice = np.concatenate([members[:2]] * 2)
    with pytest.raises(MiaError, match="Pairs stand together"):
        Game(twice, {LOG_ODDS: np.zeros(twice.shape)}, {}, [0], 2)
    halves = membership.random_halves(RECORDS, MODELS)  # of which none is another's complement
    assert Game(halves, {LOG_ODDS: np.zeros(halves.shape)}, {}, [0], 10).complete == MODELS


def test_odd_numbers_are_refused_before_they_mean_something_else():
    game = Game.of(BANK, 2, 4)
    for wrong in ({"records": -5}, {"records": True}, {"records": 0}, {"public": -1}):
        with pytest.raises(MiaError, match=next(iter(wrong))):
            Game.of(BANK, 2, 4, **wrong)
    for target in (-1, MODELS, 1.0, True):
        with pytest.raises(MiaError, match="target"):
            game.view(target)
    for wrong in ({"rehearsals": 0}, {"rehearsals": -1}, {"step": 0}, {"step": -5}):
        with pytest.raises(MiaError, match=next(iter(wrong))):
            game.view(0).rehearse("MAST (softmin)", **wrong)
    with pytest.raises(MiaError, match="count"):
        game.view(0).rehearsals(-1)
    for wrong in ([0, 1] * (RECORDS // 2), [-1], [RECORDS], [1.0], [True], [[1]]):
        with pytest.raises(MiaError, match="each once"):
            game.view(0).on(np.array(wrong))
    assert game.view(0).on(np.arange(RECORDS) == 3).own("loss").shape == (1,)
    with pytest.raises(MiaError, match="metric is not a number with {'temperature': 1.0}"):
        game.view(0).rehearse("MAST (softmin)", metric=lambda scores, members: np.nan)


def test_records_of_pandas_in_another_order_are_refused():
    pd = pytest.importorskip("pandas")
    members = BANK.members[:, :RECORDS]
    loss = pd.DataFrame(np.ones(members.shape))
    with pytest.raises(MiaError, match="same columns in another order"):
        Game(pd.DataFrame(members), {"loss": loss[loss.columns[::-1]]}, {}, [0], 4)
