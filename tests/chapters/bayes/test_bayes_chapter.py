"""The Bayes-optimal chapter: its games against loops and limits, its attacks on banks whose losses are made up."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from toys import toy_bank

from mia_book.chapters.bayes import exhibits, measure, study, theory
from mia_book.evidence import settings
from mia_book.publishing.banks import load_bank
from mia_lib import membership, metrics, signals
from mia_lib.attacks import baselines, bayes
from mia_lib.errors import MiaError
from mia_lib.game import Game
from mia_lib.published import Bank

RNG = np.random.default_rng(0)
TINY = measure.EXTRACTOR | measure.EXTRACTOR_PROBE


def bank_of(**arrays):
    return Bank("toy", {}, arrays, [])


def value(frame, attack, metric, **where):
    return metrics.estimate(frame, attack, metric, **where).value


def test_matt_is_the_linearised_calibrated_loss_and_zero_one_malt_with_the_threshold_log_two():
    x, y = measure.design(RNG.normal(size=(200, 5))), RNG.integers(0, 2, 200)
    theta0, step = RNG.normal(size=6), 1e-4 * RNG.normal(size=6)
    gradients, loss = study.logistic_gradients(theta0, x, y), study.logistic_loss(theta0, x, y)
    second_order = ((x @ step) ** 2).max() / 8  # the logistic loss bends by a quarter at most
    difference = loss - study.logistic_loss(theta0 + step, x, y)
    assert_allclose(
        bayes.matt(theta0 + step, theta0, gradients), difference, rtol=0, atol=second_order
    )
    assert ((loss < np.log(2)) == ((x @ theta0 > 0) == y)).all()


def test_logistic_solution_has_no_gradient_and_its_hessian_is_the_derivative():
    x, y = measure.design(RNG.normal(size=(80, 4))), RNG.integers(0, 2, 80)
    theta, h = measure.logistic(x, y, 10.0), 1e-5
    assert_allclose(study.logistic_gradients(theta, x, y).sum(0) + theta / 10, 0, atol=1e-5)
    for k, unit in enumerate(np.eye(5)):
        right, left = (
            study.logistic_gradients(theta + sign * h * unit, x, y).sum(0) for sign in (1, -1)
        )
        assert_allclose(
            study.logistic_hessian(theta, x, 10.0)[:, k],
            (right - left) / (2 * h) + unit / 10,
            atol=1e-6,
        )


def test_three_way_split_keeps_the_parts_apart_and_refuses_what_does_not_fit():
    parts = measure.three_way_split(100, 40, seed=1)
    assert sorted(np.concatenate(parts)) == list(range(100))
    assert [len(p) for p in parts] == [20, 20, 20, 40]
    with pytest.raises(MiaError, match="1.5 n = 150"):
        measure.three_way_split(100, 100, seed=1)
    with pytest.raises(MiaError, match="two different numbers from 0 to 9"):
        measure.features(range(1), TINY | {"classes": [5, 5]})
    with pytest.raises(
        MiaError, match="german_credit has 2 classes, so 0 besides .* Name a data set"
    ):
        measure.features(range(1), TINY | {"dataset": "german_credit", "classes": [0, 1]})


def test_features_of_a_table_of_the_users_own_are_extracted_without_augmentation(tmp_path):
    np.savez(
        tmp_path / "mine.npz", x=RNG.normal(size=(200, 6)).astype(np.float32), y=np.arange(200) % 5
    )
    mine = {"dataset": str(tmp_path / "mine.npz"), "classes": [0, 1], "architecture": "mlp:4"}
    found = measure.features(range(1), TINY | mine | {"augmentation": "flip_crop:4"})
    assert found["features"].shape == (1, 80, 4) and found["labels"].sum() == 40


def toy_games(n=100, splits=10, records=300, c=10.0):
    x = measure.design(RNG.normal(size=(records, 6)))
    y = x[:, 0] + 0.3 * RNG.normal(size=records) > 0
    fits = {"theta": [], "theta0": [], "c": np.full(splits, c)}
    for split in range(splits):
        member_rows, _, reference_rows, _ = measure.three_way_split(records, n, split)
        fits["theta"].append(measure.logistic(x[member_rows], y[member_rows], c))
        fits["theta0"].append(measure.logistic(x[reference_rows], y[reference_rows], c))
    return x[:, :-1], y, bank_of(**{name: np.array(array) for name, array in fits.items()})


def test_the_games_of_table_one_hold_the_identities_of_the_paper():
    features, y, fit = toy_games()
    frame = study.table_1(features, y, {100: fit})

    def values(attack, metric):
        return metrics.estimate(frame, attack, metric, n=100).values

    # Eq. 41: 0-1 is right about members with p_train, about the rest with 1 - p_test, here by hand for the first split
    inside, outside, _, left = measure.three_way_split(300, 100, 0)
    x = measure.design(features)
    right = [np.mean((x[rows] @ fit.theta[0] > 0) == y[rows]) for rows in (inside, outside, left)]
    assert values("0-1", "auc")[0] == pytest.approx(0.5 + 0.5 * (right[0] - right[1]))
    assert values("model", "train_accuracy")[0] == right[0]
    assert values("model", "validation_accuracy")[0] == right[2]
    # MATT is nearly the loss calibrated by its reference, and the peak is no less than any other accuracy
    assert abs(values("MATT", "auc") - values("calibrated loss", "auc")).max() < 0.08
    assert (
        values("MALT", "balanced_accuracy") >= values("MALT", "rehearsed_accuracy") - 1e-12
    ).all()
    assert (
        values("MATT", "balanced_accuracy") >= values("MATT", "cross_validated_accuracy") - 1e-12
    ).all()
    assert values("Eq. 39", "auc") == pytest.approx(values("MATT", "auc"), abs=0.1)
    assert len(values("MATT", "average_precision")) == 10
    table = exhibits.table_one(
        frame, {("0-1", "auc"): "0-1", ("noise", "balanced_accuracy"): "noise"}
    )
    assert list(table.columns) == ["0-1", "noise"]  # the paper has no n = 100


def test_the_penalty_is_chosen_for_the_model_alone():
    """Labels that a weak penalty cannot learn are better guessed with a strong one."""
    x = measure.design(RNG.normal(size=(400, 30)))
    y = RNG.random(400) < 0.5 + 0.3 * np.sign(x[:, 0])
    assert measure.choose_c(x, y, 100) < 1e3


@pytest.mark.parametrize("records, lead, truth", [(4000, 1.0, 0.691), (100, 0.0, 0.5)])
def test_cross_validated_accuracy_is_near_the_truth_however_few_the_records(records, lead, truth):
    """A threshold chosen on a hundred records that are judged gains four points of nothing; one from other folds none."""
    rng, games = np.random.default_rng(0), 40_000 // records
    members = np.repeat((np.arange(records) < records // 2)[None], games, 0)
    scores = rng.normal(size=members.shape) + lead * members
    assert study.cross_validated_accuracy(scores, members).mean() == pytest.approx(truth, abs=0.01)


def test_the_peak_of_noise_is_above_one_half_where_a_rehearsed_accuracy_is_a_coin_flip_and_sees_nothing_of_its_own_game():
    scores, members = RNG.normal(size=(200, 100)), np.repeat((np.arange(100) < 50)[None], 200, 0)
    assert metrics.rehearsed_accuracy(scores, members).mean() == pytest.approx(0.5, abs=0.02)
    peak = metrics.balanced_accuracy(scores, members).mean()
    assert peak > 0.54 and study.peak_of_noise(100) == pytest.approx(peak, abs=0.01)
    orders = np.array(
        [np.isin(np.arange(6), inside) for inside in itertools.combinations(range(6), 3)]
    )  # all there are
    peaks = metrics.balanced_accuracy(np.tile(np.arange(6.0), (len(orders), 1)), orders)
    assert study.peak_of_noise(6) == pytest.approx(peaks.mean(), rel=1e-12)
    scores, members = RNG.normal(size=(3, 200)), RNG.random((3, 200)) < 0.5
    turned = members ^ (np.arange(3) == 0)[:, None]
    own, other = (metrics.rehearsed_accuracy(scores, one)[0] for one in (members, turned))
    assert other == pytest.approx(1 - own)
    with pytest.raises(MiaError, match="at least 2"):
        metrics.rehearsed_accuracy(scores[:1], members[:1])


# Banks


def test_the_frame_of_table_two_has_what_the_functions_of_the_page_say():
    bank = toy_bank(1.0)
    frame, scores = study.attack_bank(bank, 4, 8, draws=20)
    trained = bank.trained
    others = membership.references_of(2, 12)[:8]
    game = Game.of(bank, 4, 8, order="first")
    loss, members = signals.loss_of(bank.margin[:, trained]), bank.members[:, trained]
    assert set(scores) == {"0-1", *study.ATTACKS} and scores["MALT"].shape == (4, 400)
    assert_allclose(scores["MALT"][1], bayes.malt(loss[2]))
    learned = game.view(2).rehearse("MAST (softmin)", settings.REHEARSALS)
    for attack, how, options in (
        ("MAST", "best_split", {}),
        ("MAST (mean out)", "mean_out", {}),
        ("MAST (softmin), T = 1", "softmin", {}),
        ("MAST (softmin)", "softmin", learned),
    ):
        expected = bayes.mast(loss[2], loss[others], members[others], how, **options)
        assert_allclose(scores[attack][1], expected)
        assert metrics.estimate(frame, attack, "auc").values[1] == pytest.approx(
            metrics.auc(scores[attack][1], members[2])
        )
        called = scores[attack][1] >= study.thresholds(game, study.ATTACKS[attack])[1]
        assert metrics.estimate(frame, attack, "accuracy").values[1] == pytest.approx(
            metrics.auc(called, members[2])
        )
    correct = bank.correct[0, trained]
    eq41 = 0.5 * correct[members[0]].mean() + 0.5 * (1 - correct[~members[0]].mean())
    assert metrics.estimate(frame, "0-1", "accuracy").values[0] == pytest.approx(eq41)
    assert value(frame, "MAST", "auc") > value(frame, "MALT", "auc") + 0.1
    for targets, references in ((7, 8), (4, 12)):
        with pytest.raises(MiaError, match="of 12 models 6 can be attacked"):
            study.attack_bank(bank, targets, references)
    table = exhibits.table_two(frame)
    assert str(table.loc["MAST", "accuracy, paper"]) == "77.6"
    assert table.loc["MAST", "AUC"].value == pytest.approx(100 * value(frame, "MAST", "auc"))


def test_calls_are_near_the_best_ones_and_use_no_membership_of_the_target():
    bank = toy_bank(1.0, n=4000, others=0)
    flipped = bank.members.copy()
    flipped[:2] = ~flipped[:2]  # the target and its complement
    games = [
        Game.of(Bank("toy", {}, bank.arrays | {"members": members}, []), 1, 10)
        for members in (bank.members, flipped)
    ]
    for attack in study.ATTACKS.values():
        threshold, of_others = (study.thresholds(game, attack) for game in games)
        [score] = games[0].scores({"attack": attack})["attack"]
        peak = metrics.balanced_accuracy(score, bank.members[0])
        assert 0.55 < metrics.auc(score >= threshold, bank.members[0]) <= peak + 1e-12
        assert threshold == of_others
    with pytest.raises(MiaError, match="at least 4"):
        study.thresholds(Game.of(bank, 1, 2), "MALT")


def test_counting_references_finds_everybody_with_the_complement_and_nobody_without():
    """Whatever the losses: a member of the target is out of its complement, and every pair holds a record once."""
    frame = study.complement(toy_bank(0.0), 6, draws=20)
    assert value(frame, "counting", "auc", complement="kept") == 1
    assert value(frame, "counting", "auc", complement="put aside") == 0.5


def test_shadow_models_stand_beside_malt_and_zero_one_on_the_same_records():
    bank = toy_bank(1.5, n=400)
    score = np.where(bank.members[0:8:2, :200], 0.8, 0.2).astype(np.float32)
    frame = study.shadow_attack(
        bank, bank_of(score=score, members=bank.members[0:8:2, :200]), draws=20
    )
    assert value(frame, "Shadow models", "accuracy") == 1
    expected = metrics.auc(baselines.gap(bank.correct[2, :200]), bank.members[2, :200])
    assert metrics.estimate(frame, "0-1", "accuracy").values[1] == pytest.approx(expected)


def test_table_three_judges_each_network_with_a_threshold_from_the_others():
    banks = {
        ("net", strength): toy_bank(gap, models=8, seed=3)
        for strength, gap in zip(study.PAPER_AUGMENTATIONS, (2, 1, 0), strict=True)
    }
    frame = study.table_3(banks, draws=20)
    means = [
        value(frame, "MALT", "accuracy", augmentation=one) for one in study.PAPER_AUGMENTATIONS
    ]
    assert means[0] > means[1] > means[2]
    # Without a leak and with the same losses under all models the complement's membership would push this below one half.
    still = bank_of(
        **{
            **toy_bank(0, models=8).arrays,
            "margin": np.tile(toy_bank(0, models=8).margin[0], (8, 1)),
        }
    )
    assert value(
        study.table_3({("net", "none"): still}, draws=20), "MALT", "accuracy"
    ) == pytest.approx(0.5, abs=1e-12)
    theirs = [str(cell) for cell in exhibits.table_three(frame)["MALT, paper"]]
    assert theirs == ["90.4", "77.4", "68.0", "90.8", "79.5", "64.3"]  # ours stands beside three


def test_the_picture_of_the_idea_counts_who_one_threshold_can_tell_apart():
    bank = toy_bank(2.0)
    losses = study.mean_losses(bank)
    assert len(losses) == 400 and (losses["inside"] < losses["outside"]).mean() > 0.95
    separated = exhibits.is_separated(losses, 0.5)
    assert (
        separated == ((losses["inside"] < 0.5) & (losses["outside"] > 0.5))
    ).all() and separated.any()


def test_errors_of_one_threshold_are_false_alarms_or_misses():
    loss, members = np.array([0.1, 0.2, 0.3, 2.0, 3.0]), np.array([True, False, False, True, False])
    assert study.share_of_false_alarms(loss, members, 1.0) == pytest.approx(2 / 3)
    assert study.share_of_false_alarms(loss[:1], members[:1], 1.0) == 0  # no error at all


def test_a_network_that_failed_in_training_is_named_and_its_pair_left_out():
    bank = toy_bank(1.0, n=4000)
    margin = bank.margin.copy()
    margin[4][bank.members[4]] -= 3  # one network, on its members alone
    odd = bank_of(**bank.arrays | {"margin": margin})
    fit, loss = study.worst_fit(odd), signals.loss_of(margin.astype(float))
    assert fit["model"] == 4 and fit["loss"] > 2 * fit["median loss"]
    assert fit["loss"] == pytest.approx(loss[4][bank.members[4]].mean())
    left = bank_of(**{name: np.delete(array, [4, 5], axis=0) for name, array in odd.arrays.items()})
    attacks = {name: study.IN_SETTINGS[name] for name in ("MAST", "MALT")}
    frame, _ = settings.attack_banks({"left": left}, [6], 8, attacks, ("accuracy",))
    found = study.lead_without(odd, 4, 8, 6)
    assert found == study.lead(frame, "MAST", "MALT", "left", 6)
    assert found.value == pytest.approx(
        100 * (value(frame, "MAST", "accuracy") - value(frame, "MALT", "accuracy"))
    )
    assert study.lead(frame, "MAST", "MALT", "elsewhere", 6) == "not run"
    assert study.lead_without(odd, 5, 8, 10) == "not run"


def test_networks_that_know_their_images_by_heart_have_the_log_odds_of_one_query():
    bank = load_bank(study.MEMORISED)
    assert study.title_of(study.MEMORISED) == "cifar100-by-heart"
    assert study.title_of("bank/fashion-mlp") == "fashion-mlp"
    assert bank.margin.shape == bank.members.shape == (32, 4000)
    assert (bank.margin[bank.members] > 0).mean() > 0.998 > (bank.margin[~bank.members] > 0).mean()


def test_theorems_hold_to_rounding_and_the_remark_on_heat_is_no_theorem():
    frame, errors = study.theorems(seed=1, worlds=60)
    of_theory = frame[frame["study"] == "theory"].set_index(["attack", "metric"])["value"]
    assert of_theory["Theorem 2", "largest error"] < 1e-12
    assert of_theory["Theorem 2", "wrong signs"] == 0
    assert of_theory["Property 1", "largest excess"] < 1e-12
    assert of_theory["Property 2", "largest excess"] < 1e-12
    assert of_theory["best rule", "largest rise with temperature"] > 0
    left, right = exhibits.figure_one(theory.gaussian_games(n=40, d=500, games=20, seed=1)).axes
    assert left.get_xlim() == right.get_xlim()
    assert (errors[["Theorem 1", "Theorem 2"]] < 1e-12).all().all()
    assert (errors["as printed"] > 1e-3).all()
