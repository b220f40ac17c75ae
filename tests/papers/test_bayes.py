"""MALT, MAST, MATT and their baselines against loops, limits and values worked out by hand."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mia_lib import attacks, data, membership, metrics, store, training
from mia_lib.attacks import baselines, bayes
from mia_lib.errors import MiaError
from mia_lib.papers.bayes import study as chapter

RNG = np.random.default_rng(0)
R, N = 8, 40
LOSS = RNG.exponential(size=N)
REFERENCE_LOSS = RNG.exponential(size=(R, N))
MEMBERS = membership.balanced_halves(N, R)


def loop_best_split(losses, members):
    order = np.sort(np.unique(losses))
    candidates = (order[1:] + order[:-1]) / 2
    gains = [np.mean(losses[members] < t) + np.mean(losses[~members] > t) for t in candidates]
    return np.mean([t for t, g in zip(candidates, gains, strict=True) if g >= max(gains) - 1e-12])


def test_best_split_is_what_a_loop_over_thresholds_finds():
    expected = [loop_best_split(REFERENCE_LOSS[:, i], MEMBERS[:, i]) for i in range(N)]
    assert_allclose(bayes.best_split(REFERENCE_LOSS, MEMBERS), expected)


def test_best_split_by_hand_and_with_ties():
    members = np.array([[1], [1], [0], [0]], bool)
    assert bayes.best_split(np.array([[1.0], [2], [4], [5]]), members) == 3
    assert bayes.best_split(np.full((4, 1), 7.0), members) == 7
    assert bayes.best_split(np.array([[1.0], [1], [1], [3]]), members) == 2


def test_means_and_softmin_are_what_loops_say():
    inside, out = ([REFERENCE_LOSS[side[:, i], i] for i in range(N)] for side in (MEMBERS, ~MEMBERS))
    assert_allclose(bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "middle"),
                    [(a.mean() + b.mean()) / 2 for a, b in zip(inside, out, strict=True)] - LOSS)
    assert_allclose(bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "mean_out"), [o.mean() for o in out] - LOSS)
    for t in (0.5, 1.0, 3.0):
        softmin = np.array([-t * np.log(np.mean(np.exp(-o / t))) for o in out])
        assert_allclose(bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "softmin", t), softmin - LOSS)


def test_softmin_is_below_the_mean_and_reaches_it_when_hot_and_the_minimum_when_cold():
    mean = bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "mean_out")
    assert (bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "softmin") <= mean + 1e-12).all()
    assert_allclose(bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "softmin", 1e5), mean, atol=1e-3)
    cold = bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "softmin", 1e-3) + LOSS
    assert_allclose(cold, np.where(MEMBERS, np.inf, REFERENCE_LOSS).min(0), atol=0.01)


@pytest.mark.parametrize("estimator", bayes.ESTIMATORS)
def test_mast_with_the_same_difficulty_everywhere_ranks_like_malt(estimator):
    same = np.repeat(REFERENCE_LOSS[:, :1], N, 1)
    same_members = np.repeat(MEMBERS[:, :1], N, 1)
    scores = bayes.mast(LOSS, same, same_members, estimator)
    assert (np.argsort(scores) == np.argsort(bayes.malt(LOSS))).all()


@pytest.mark.parametrize("estimator", bayes.ESTIMATORS)
def test_adding_difficulty_to_a_record_everywhere_leaves_its_mast_score_alone(estimator):
    extra = RNG.exponential(size=N)
    before = bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, estimator)
    assert_allclose(bayes.mast(LOSS + extra, REFERENCE_LOSS + extra, MEMBERS, estimator), before, atol=1e-9)


def test_matt_is_the_linearised_calibrated_loss():
    x, y = chapter.design(RNG.normal(size=(200, 5))), RNG.integers(0, 2, 200)
    theta0 = RNG.normal(size=6)
    step = 1e-4 * RNG.normal(size=6)
    gradients = chapter.logistic_gradients(theta0, x, y)
    difference = chapter.logistic_loss(theta0, x, y) - chapter.logistic_loss(theta0 + step, x, y)
    second_order = ((x @ step) ** 2).max() / 8  # the logistic loss bends by a quarter at most
    assert_allclose(bayes.matt(theta0 + step, theta0, gradients), difference, rtol=0, atol=second_order)


def test_equation_37_with_38_is_39():
    p = 6
    a = RNG.normal(size=(p, p))
    hessian, g, theta, theta0 = a @ a.T + np.eye(p), RNG.normal(size=(3, p)), RNG.normal(size=p), RNG.normal(size=p)
    shift = -np.linalg.solve(hessian, g.T).T
    eq37 = shift @ hessian @ (theta - theta0) - 0.5 * np.einsum("np,pq,nq->n", shift, hessian, shift)
    assert_allclose(bayes.matt(theta, theta0, g) + bayes.matt_second_term(g, hessian), eq37)


def test_membership_posterior_of_a_zero_score_is_the_prior():
    assert_allclose(bayes.membership_posterior(np.zeros(3), 0.2), 0.2)
    assert bayes.membership_posterior(np.array([50.0]), 0.5) > 0.999


def test_logistic_solution_has_no_gradient_and_its_hessian_is_the_derivative():
    x, y = chapter.design(RNG.normal(size=(80, 4))), RNG.integers(0, 2, 80)
    theta = chapter.logistic(x, y, 10.0)
    assert_allclose(chapter.logistic_gradients(theta, x, y).sum(0) + theta / 10, 0, atol=1e-5)
    h = 1e-5
    for k in range(5):
        e = np.eye(5)[k] * h
        right, left = (chapter.logistic_gradients(theta + sign * e, x, y).sum(0) for sign in (1, -1))
        column = (right - left) / (2 * h)
        assert_allclose(chapter.logistic_hessian(theta, x, 10.0)[:, k], column + np.eye(5)[k] / 10, atol=1e-6)


def test_three_way_split_keeps_the_parts_apart_and_refuses_what_does_not_fit():
    parts = chapter.three_way_split(100, 40, seed=1)
    assert sorted(np.concatenate(parts)) == list(range(100))
    assert [len(p) for p in parts] == [20, 20, 20, 40]
    with pytest.raises(MiaError, match="1.5 n = 150"):
        chapter.three_way_split(100, 100, seed=1)


def test_logistic_games_hold_the_identities_of_the_paper(isolated_cache):
    features = RNG.normal(size=(300, 6))
    labels = (features[:, 0] + RNG.normal(size=300) > 0).astype(int)
    games = chapter.play_logistic(features, labels, n=100, seeds=4)
    assert games.scores["malt"].shape == games.members.shape == (4, 100)
    assert games.c in chapter.C_GRID
    assert (games.scores["eq39"] <= games.scores["matt"]).all()  # the dropped term is never positive
    # Eq. 41: the 0-1 attack is right about members with p_train, about the rest with 1 - p_test
    train = games.scores["gap"][:, :50].mean(1)
    assert_allclose(games.train_accuracy, train)


def test_numbers_of_the_games_are_kept_and_need_no_features_a_second_time(isolated_cache):
    images = RNG.integers(0, 255, (160, 6, 6, 1)).astype(np.uint8)
    records = data.Dataset("toy", images, (images.mean((1, 2, 3)) > 127).astype(int), 160, ("dark", "light"))
    extractor = training.train(records, np.ones((1, 160), bool), training.TrainConfig("tanh_cnn:2,3,5", epochs=1))
    first = chapter.logistic_games(chapter.Features(extractor, records), records.y, n=80, seeds=3)
    again = chapter.Features(extractor, records)
    second = chapter.logistic_games(again, records.y, n=80, seeds=3)
    assert all((first.numbers[pair] == second.numbers[pair]).all() for pair in chapter.MEASURED)
    assert "values" not in vars(again)
    assert again.width == again.values.shape[1] == 5
    other = chapter.logistic_games(again, records.y, n=80, seeds=3, seed=3)  # splits that the first did not play
    assert (other.numbers["malt", "auc"] != first.numbers["malt", "auc"]).any()


class Models(list):
    """The numbers of a bank's models, with a name in the place of what determines them."""

    def __init__(self, key, count):
        super().__init__(range(count))
        self.key = key


@dataclass(frozen=True, eq=False)
class Bank:
    """A bank whose losses are made up."""

    members: np.ndarray
    loss: np.ndarray
    correct: np.ndarray
    probabilities: np.ndarray
    labels: np.ndarray

    @property
    def game(self):
        return membership.Bank(self.members, tuple(range(0, len(self.members), 2)))

    @property
    def models(self):
        return Models(store.fingerprint(self.loss), len(self.loss))


def toy_bank(gap, models=8, n=400, classes=2, seed=0):
    """Losses of members lie `gap` lower; the output vector shows the loss and nothing else."""
    rng = np.random.default_rng(seed)
    members = membership.balanced_halves(n, models, seed)
    loss = np.abs(rng.normal(2 + rng.normal(size=n), 0.3, (models, n)) - gap * members)
    labels = rng.integers(0, classes, n)
    p = np.exp(-loss)
    probabilities = np.where(np.arange(classes) == labels[:, None], p[..., None], (1 - p[..., None]) / (classes - 1))
    return Bank(members, loss, p > 0.5, probabilities, labels)


def test_shadow_models_find_a_gap_and_find_nothing_where_there_is_none(isolated_cache):
    from sklearn.metrics import roc_auc_score

    leaky, tight = toy_bank(1.5), toy_bank(0.0)
    assert roc_auc_score(leaky.members[0], chapter.shadow_score(leaky, 0, 6)) > 0.65
    assert abs(roc_auc_score(tight.members[0], chapter.shadow_score(tight, 0, 6)) - 0.5) < 0.1
    apart = toy_bank(1.5, seed=7)  # shadow models that never saw the records under attack
    assert roc_auc_score(leaky.members[0], chapter.shadow_score(leaky, 0, 6, apart)) > 0.65
    score = chapter.shadow_score(leaky, 0, 6)
    assert ((score >= 0) & (score <= 1)).all()


def test_decisions_are_near_the_best_ones_and_use_no_membership_of_the_target(isolated_cache):
    bank = toy_bank(1.0, n=4000)
    flipped = Bank(bank.members.copy(), bank.loss, bank.correct, bank.probabilities, bank.labels)
    flipped.members[:2] = ~flipped.members[:2]  # the target and its complement
    for attack in ("MALT", *chapter.MAST):
        decided = chapter.decide(bank, 0, attack, 2)
        assert 0.55 < metrics.auc(decided, bank.members[0]) <= metrics.balanced_accuracy(
            chapter.score(bank, 0, attack), bank.members[0])
        assert (decided == chapter.decide(flipped, 0, attack, 2)).all()
    with pytest.raises(MiaError, match="at least 6"):
        chapter.decide(toy_bank(1.0, models=4), 0, "MALT", 2)


def test_counting_references_finds_everybody_with_the_complement_and_nobody_without(isolated_cache):
    """Whatever the losses: a member of the target is out of its complement, and every pair holds a record once."""
    found = chapter.complement(toy_bank(gap=0.0))
    assert (metrics.auc(found.kept[chapter.COUNTING], found.members) == 1).all()
    assert (metrics.auc(found.aside[chapter.COUNTING], found.members) == 0.5).all()
    assert found.held.tolist() == [[3, 3], [3, 4]] and len(found.members) == 4
    assert list(found.kept) == list(found.aside) == [chapter.COUNTING, *chapter.MAST, "LiRA"]


def test_without_the_complement_attacks_are_those_of_table_two(isolated_cache):
    bank = toy_bank(gap=1.0)
    found = chapter.complement(bank)
    for name in chapter.MAST:
        for row, target in zip(found.aside[name], bank.game.attacked, strict=True):
            assert_allclose(metrics.auc(row, bank.game.members[target]),
                            metrics.auc(chapter.score(bank, target, name), bank.game.members[target]))


def test_all_attacks_on_all_targets_come_in_rows_ordered_by_bank(isolated_cache):
    banks = [toy_bank(1.0, seed=s) for s in (0, 1)]
    judged = chapter.judge_banks(banks, targets=2, shadows=4, rehearsals=1)
    assert judged.groups.tolist() == [0, 0, 1, 1]
    assert (judged.members[2] == banks[1].members[0]).all() and (judged.members[3] == banks[1].members[2]).all()
    assert set(judged.scores) == {"0-1", "Shadow models", "MALT (per class)", "MALT", *chapter.MAST}
    assert all(s.shape == (4, 400) for s in [*judged.scores.values(), *judged.decisions.values()])
    assert (np.argsort(judged.scores["MALT"][3], kind="stable") == np.argsort(-banks[1].loss[2], kind="stable")).all()


def test_a_bank_is_trained_when_its_numbers_are_needed_and_judged_once(isolated_cache):
    images = RNG.integers(0, 255, (60, 12, 12, 1)).astype(np.uint8)
    records = data.Dataset("toy", images, RNG.integers(0, 2, 60), 60, ("a", "b"))
    config = training.TrainConfig("tanh_cnn:2,3,4", epochs=1)
    banks = [chapter.Bank(training.train(records, membership.balanced_halves(60, 8, seed), config)) for seed in (0, 1)]
    judged = chapter.judge_banks(banks, targets=1, shadows=6, rehearsals=1)
    summary = chapter.summary(banks[0])
    assert summary.threshold.shape == summary.inside.shape == summary.outside.shape == (60,) and 0 < summary.right_inside < 1
    again = [chapter.Bank(bank.models) for bank in banks]
    second = chapter.judge_banks(again, targets=1, shadows=6, rehearsals=1)
    assert all((second.scores[a] == judged.scores[a]).all() for a in judged.scores)
    assert chapter.summary(again[0]).inside.shape == (60,) and "loss" not in vars(again[0])


@pytest.mark.parametrize("function,names", [
    ("malt", {"MALT (per class)", "MALT"}), ("mast", {"MAST (best split)", "MAST (mean out)", "MAST (softmin)"})])
def test_every_attack_of_table_two_calls_the_function_that_the_page_names(function, names, monkeypatch):
    bank = toy_bank(1.0)
    before = chapter._judge(bank, 0, None, 4, 1)
    noise = np.random.default_rng(5).normal(size=len(bank.labels))
    monkeypatch.setattr(chapter.bayes, function, lambda loss, *given: np.broadcast_to(noise[:loss.shape[-1]], loss.shape))
    after = chapter._judge(bank, 0, None, 4, 1)
    assert {name for name in chapter.ATTACKS if (after[f"score.{name}"] != before[f"score.{name}"]).any()} == names


def test_thresholds_for_each_class_take_a_difference_between_classes_out():
    bank = toy_bank(0.5, n=2000)
    shifted = Bank(bank.members, bank.loss + 3 * bank.labels, bank.correct, bank.probabilities, bank.labels)
    by_class = chapter.class_thresholds(shifted, 0, 2)
    np.testing.assert_allclose(by_class, chapter.class_thresholds(bank, 0, 2), atol=1e-9)
    assert metrics.auc(by_class >= 0, bank.members[0]) > 0.55


def test_cross_validated_accuracy_is_near_the_truth_with_many_records():
    members = np.repeat((np.arange(4000) < 2000)[None], 3, 0)
    scores = RNG.normal(size=members.shape) + members
    np.testing.assert_allclose(chapter.cross_validated_accuracy(scores, members), 0.691, atol=0.02)


def test_cross_validated_accuracy_of_noise_is_one_half_however_few_the_records():
    """A threshold chosen on the records judged gains four points here; one from other folds gains nothing."""
    members, rng = np.repeat((np.arange(100) < 50)[None], 400, 0), np.random.default_rng(0)
    scores = rng.normal(size=members.shape)
    assert metrics.balanced_accuracy(scores, members).mean() > 0.54
    assert chapter.cross_validated_accuracy(scores, members).mean() == pytest.approx(0.5, abs=0.01)


def test_references_share_no_pair_with_what_is_attacked():
    assert chapter.references_without(toy_bank(1.0), 0, 5).tolist() == [2, 3, 6, 7]


def test_zero_one_accuracy_is_equation_41():
    bank = toy_bank(1.5)
    correct, member = bank.correct[0], bank.members[0]
    eq41 = 0.5 * correct[member].mean() + 0.5 * (1 - correct[~member].mean())
    assert metrics.auc(baselines.gap(correct), member) == pytest.approx(eq41)


def test_rehearsed_accuracy_of_noise_is_a_coin_flip_where_the_peak_is_not():
    scores, members = RNG.normal(size=(200, 100)), np.repeat((np.arange(100) < 50)[None], 200, 0)
    assert metrics.rehearsed_accuracy(scores, members).mean() == pytest.approx(0.5, abs=0.02)
    assert chapter.peak_of_noise(100, 200) == pytest.approx(metrics.balanced_accuracy(scores, members).mean(), abs=0.01)
    assert chapter.peak_of_noise(100) > 0.54


def test_rehearsed_accuracy_does_not_see_the_membership_of_the_game_it_judges():
    scores = RNG.normal(size=(3, 200))
    members = RNG.random((3, 200)) < 0.5
    turned = members.copy()
    turned[0] = ~turned[0]
    assert metrics.rehearsed_accuracy(scores, turned)[0] == pytest.approx(
        1 - metrics.rehearsed_accuracy(scores, members)[0])
    with pytest.raises(MiaError, match="at least 2"):
        metrics.rehearsed_accuracy(scores[:1], members[:1])


def test_unsigned_losses_keep_their_order():
    for kind in (np.uint8, bool, np.int64):
        assert_allclose(bayes.malt(np.array([0, 1, 1, 0], kind)), [0, -1, -1, 0])
    assert bayes.malt(LOSS.astype(np.float32)).dtype == np.float32


def test_with_two_classes_the_zero_one_attack_is_malt_with_the_threshold_log_two():
    x, y = chapter.design(RNG.normal(size=(100, 4))), RNG.integers(0, 2, 100)
    theta = RNG.normal(size=5)
    correct = (x @ theta > 0) == y
    assert ((chapter.logistic_loss(theta, x, y) < np.log(2)) == correct).all()



def test_games_side_by_side_share_no_record():
    members = chapter.block_halves(10, 3, seed=1)
    assert members.shape == (3, 30) and members.sum(0).max() == 1
    assert (chapter.own_block(members).sum(1) == 5).all()
    assert chapter.own_block(np.arange(8).reshape(2, 4)).tolist() == [[0, 1], [6, 7]]


def test_threat_model_table_is_made_from_what_the_attacks_declare():
    table = attacks.threat_model({"0-1": baselines.gap, "MATT": bayes.matt})
    assert table["access to the target"].tolist() == ["label", "parameters"]
    assert table["reference models"].tolist() == ["none", "out only"]


@pytest.mark.parametrize("call,words", [
    (lambda: bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "mean"), "estimator = 'mean' is not known"),
    (lambda: bayes.mast(LOSS, REFERENCE_LOSS[:, 1:], MEMBERS), "shape"),
    (lambda: bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS[:, 1:]), "must agree"),
    (lambda: bayes.mast(LOSS, REFERENCE_LOSS, np.ones((R, N), bool), "mean_out"), "have no reference that left it out"),
    (lambda: bayes.mast(LOSS, REFERENCE_LOSS, np.zeros((R, N), bool)), "was trained on it"),
    (lambda: bayes.mast(LOSS * np.nan, REFERENCE_LOSS, MEMBERS), "not finite"),
    (lambda: bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "softmin", 0.0), "temperature"),
    (lambda: bayes.matt(np.zeros(3), np.zeros(3), np.zeros((5, 2))), "do not fit"),
    (lambda: bayes.membership_posterior(0.0, 1.0), "strictly between"),
    (lambda: baselines.shadow_models(np.zeros((4, 2)), np.zeros(4), np.zeros((2, 3, 3)), np.zeros(3), np.zeros((2, 3))),
     "needed"),
    (lambda: baselines.shadow_models(np.eye(2)[[0, 1, 1, 0]], np.zeros(4), np.full((2, 4, 2), 0.5), np.zeros(4),
                                     np.eye(2, 4) > 0),
     "10 of each"),
    (lambda: attacks.needs("loss", "some", "")(len), "references = 'some'")])
def test_bad_input_says_what_is_wrong(call, words):
    with pytest.raises(MiaError, match=words):
        call()
