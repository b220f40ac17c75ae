"""Quantile regression attack: thresholds against loops, positions as their inverse, regressions with known quantiles."""

import itertools
from math import ceil

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri

from mia_lib.attacks import baselines, quantile
from mia_lib.attacks.quantile import GaussianQuantile, PinballQuantile, trees
from mia_lib.attacks.quantile.networks import NetworkConfig
from mia_lib.attacks.quantile.trees import TreeConfig
from mia_lib.errors import MiaError
from mia_lib.metrics import pinball_loss

# Levels of any size, as a property holds for.
pytestmark = pytest.mark.filterwarnings("ignore:levels =")
RNG = np.random.default_rng(0)
FINITE = st.floats(-100, 100, allow_subnormal=False)
MLP, TREES = NetworkConfig("mlp:32", epochs=80, batch_size=500), TreeConfig(iterations=150)
BOTH = pytest.mark.parametrize("model", (MLP, TREES), ids=("mlp", "trees"))
GRID = (0.5, 0.8, 0.9, 0.95, 0.99)


def world(n, seed=0):
    """Scores 2 x0 + 3 y + e^{x1 / 2} noise of records x [n, 3] with labels y that x does not show; mean, spread."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, 3)).astype(np.float32), rng.integers(0, 2, n)
    mean, spread = 2.0 * x[:, 0] + 3 * y, np.exp(0.5 * x[:, 1].astype(float))
    return x, y, mean + spread * rng.normal(size=n), mean, spread


def held_out(n=2000, seed=3):
    """A validation split: at a fixed learning rate the last epoch is a matter of luck."""
    x, y, score, *_ = world(n, seed)
    return x, score, y


# Marginal thresholds


def brute_force(score, level):
    """The lowest score that at least (n + 1) level of the n do not exceed."""
    need = ceil(round((len(score) + 1) * level, 6))
    return min(t for t in score if sum(s <= t for s in score) >= need)


@given(st.lists(FINITE, min_size=2, max_size=30), st.floats(0.01, 0.96))
def test_marginal_is_that_of_a_loop(score, level):
    assume(level <= len(score) / (len(score) + 1))
    assert quantile.marginal(np.array(score), [level])[0] == brute_force(score, level)


@given(st.lists(FINITE, min_size=3, max_size=25, unique=True), st.floats(0.01, 0.96))
def test_each_record_left_out_in_turn_exceeds_the_others_threshold_with_the_conformal_rate(
    score, level
):
    n, score = len(score) - 1, np.array(score)
    assume(level <= n / (n + 1))
    hits = [score[i] >= quantile.marginal(np.delete(score, i), level)[0] for i in range(n + 1)]
    assert np.mean(hits) == (n + 1 - ceil(round((n + 1) * level, 6))) / (n + 1)
    assert np.mean(hits) <= 1 - level + 1e-9


def test_n_scores_resolve_just_one_in_n_plus_one():
    for n in (2, 9, 99, 999, 2999, 9999):
        score = RNG.normal(size=n)
        # in spite of the rounding of 1 - alpha
        assert quantile.marginal(score, 1 - 1 / (n + 1)) == score.max()
        with pytest.raises(MiaError, match=rf"1/{n + 1} = "):
            quantile.marginal(score, 1 - 0.99 / (n + 1))


# Thresholds and positions of each record


def test_gaussian_thresholds_and_positions_by_hand():
    mean, spread = np.array([0.0, 2.0]), np.array([1.0, 3.0])
    found = quantile.gaussian_thresholds(mean, spread, (0.5, 0.975))
    assert_allclose(found, [[0, 2], [1.959964, 2 + 3 * 1.959964]], rtol=1e-6)
    assert_allclose(quantile.gaussian_position(found[1], mean, spread), ndtri([0.975] * 2))
    for level in GRID:  # the two agree on every verdict
        score = RNG.normal(size=2) * 5
        reached = score >= quantile.gaussian_thresholds(mean, spread, level)[0]
        assert_array_equal(reached, quantile.gaussian_position(score, mean, spread) >= ndtri(level))


def threshold_loop(ranked, z, level):
    for k in range(len(z) - 1):
        if z[k] <= ndtri(level) <= z[k + 1]:
            return ranked[k] + (ranked[k + 1] - ranked[k]) * (ndtri(level) - z[k]) / (
                z[k + 1] - z[k]
            )


def position_loop(score, ranked, z):
    slope = (z[-1] - z[0]) / (ranked[-1] - ranked[0])
    if score < ranked[0]:
        return z[0] - (ranked[0] - score) * slope
    for k in range(len(z) - 1):
        if ranked[k] <= score < ranked[k + 1]:
            return z[k] + (z[k + 1] - z[k]) * (score - ranked[k]) / (ranked[k + 1] - ranked[k])
    return z[-1] + (score - ranked[-1]) * slope


def test_thresholds_and_positions_are_those_of_a_loop():
    quantiles, score, z = RNG.normal(size=(5, 400)), 2 * RNG.normal(size=400), ndtri(GRID)
    levels = (0.5, 0.51, 0.9, 0.97, 0.99)
    thresholds = quantile.pinball_thresholds(quantiles, GRID, levels)
    position = quantile.pinball_position(score, quantiles, GRID)
    for i in range(400):
        ranked = sorted(quantiles[:, i])
        assert_allclose(
            thresholds[:, i], [threshold_loop(ranked, z, level) for level in levels], atol=1e-12
        )
        assert_allclose(position[i], position_loop(score[i], ranked, z), atol=1e-9)


@given(st.lists(FINITE, min_size=5, max_size=5), FINITE | st.integers(0, 4), st.floats(0.5, 0.99))
def test_a_position_reaches_a_level_if_and_only_if_the_score_reaches_its_threshold(
    quantiles, score, level
):
    score = quantiles[score] if isinstance(score, int) else score  # on a quantile, too
    column = np.array(quantiles)[:, None]
    [position] = quantile.pinball_position(np.array([score]), column, GRID)
    assert np.isfinite(position)
    for fitted, threshold in zip(
        GRID, quantile.pinball_thresholds(column, GRID, GRID)[:, 0], strict=True
    ):
        assert (position >= ndtri(fitted)) == (score >= threshold)
    [[threshold]] = quantile.pinball_thresholds(column, GRID, level)
    if abs(score - threshold) > 1e-9 * (1 + abs(threshold)):  # between fitted levels up to rounding
        assert (position >= ndtri(level)) == (score >= threshold)


def test_equal_quantiles_leave_positions_finite():
    for value in (0.0, 5.0, -3e8):
        position = quantile.pinball_position(
            np.array([value - 1, value, value + 1]), np.full((5, 3), value), GRID
        )
        assert np.isfinite(position).all()
        assert position[0] < ndtri(0.5)
        assert position[2] > position[1] == ndtri(0.99)


def test_one_fitted_level_has_its_threshold_and_no_position():
    quantiles = np.array([[1.0, 2.0]])
    assert_array_equal(quantile.pinball_thresholds(quantiles, [0.9], [0.9]), quantiles)
    with pytest.raises(MiaError, match="at least 2 levels"):
        quantile.pinball_position(np.zeros(2), quantiles, [0.9])


# Regressions on data whose quantiles are known


@BOTH
def test_gaussian_recovers_mean_and_spread(model):
    x, y, score, *_ = world(4000)
    fitted = GaussianQuantile(model, classes=2).fit(x, score, y, held_out())
    x, y, score, mean, spread = world(10000, 1)
    found_mean, found_spread = fitted.predict(x, y)
    assert np.corrcoef(found_mean, mean)[0, 1] > 0.97 and abs((found_mean - mean).mean()) < 0.15
    assert np.corrcoef(np.log(found_spread), np.log(spread))[0, 1] > 0.9
    assert_allclose(np.median(found_spread / spread), 1, atol=0.12)
    thresholds = fitted.thresholds(x, (0.9, 0.99), y)
    assert (np.abs((score >= thresholds).mean(1) - (0.1, 0.01)) < (0.03, 0.012)).all()
    assert_array_equal(score >= thresholds[1], fitted.position(x, score, y) >= ndtri(0.99))
    for k, level in enumerate((0.9, 0.99)):
        constant = np.full(len(score), quantile.marginal(score, level)[0])
        assert pinball_loss(thresholds[k], score, level) < 0.75 * pinball_loss(
            constant, score, level
        )


@BOTH
def test_pinball_attains_about_its_nominal_rates(model):
    x, y, score, *_ = world(4000)
    fitted = PinballQuantile(model, GRID, classes=2).fit(x, score, y, held_out())
    assert fitted.predict(x, y).shape == (5, 4000)
    x, y, score, mean, spread = world(10000, 1)
    levels = (0.5, 0.7, 0.9, 0.97, 0.99)
    thresholds = fitted.thresholds(x, levels, y)
    assert_allclose((score >= thresholds).mean(1), 1 - np.array(levels), atol=0.04)
    assert np.corrcoef(thresholds[2], mean + ndtri(0.9) * spread)[0, 1] > 0.95
    position = fitted.position(x, score, y)
    for k, level in enumerate(levels):
        assert ((position >= ndtri(level)) == (score >= thresholds[k])).mean() > 0.999
    assert abs(np.median(position)) < 0.2


@BOTH
@pytest.mark.parametrize(
    "make",
    (GaussianQuantile, lambda model, classes: PinballQuantile(model, GRID, classes)),
    ids=("gaussian", "pinball"),
)
def test_thresholds_move_along_with_the_scores_and_positions_stay(model, make):
    x, y, score, *_ = world(500)
    plain, moved = make(model, 2).fit(x, score, y), make(model, 2).fit(x, 8 * score - 5, y)
    assert_allclose(
        moved.thresholds(x, (0.6, 0.9), y), 8 * plain.thresholds(x, (0.6, 0.9), y) - 5, atol=0.05
    )
    assert_allclose(
        moved.position(x, 8 * score - 5, y), plain.position(x, score, y), atol=0.02, rtol=0.02
    )


def test_images_and_features_are_taken():
    images, score = RNG.integers(0, 256, (40, 8, 8, 1), dtype=np.uint8), RNG.normal(size=40)
    config = NetworkConfig("strided_cnn:2,2,4", epochs=1)
    assert GaussianQuantile(config).fit(images, score).thresholds(images, GRID).shape == (5, 40)
    frozen = NetworkConfig("strided_cnn:2,2,4", epochs=1, frozen=True)
    assert PinballQuantile(frozen, GRID).fit(RNG.normal(size=(40, 6)), score).position(
        np.zeros((40, 6)), score
    ).shape == (40,)
    with pytest.raises(MiaError, match="Dataset.as_table"):
        GaussianQuantile(TREES, 2).fit(images, score, np.zeros(40, int))


# Thresholds of LiRA


def references():
    rng = np.random.default_rng(5)
    members = np.stack([rng.permutation(8) < 4 for _ in range(30)], 1)
    return rng.normal(size=(8, 30)) + 2 * rng.normal(size=30), members


@pytest.mark.parametrize("fixed_variance", (False, True))
def test_lira_threshold_is_that_of_a_loop(fixed_variance):
    signal, members = references()
    out = [signal[~members[:, i], i] for i in range(signal.shape[1])]
    pooled = sum(((o - o.mean()) ** 2).sum() for o in out) / sum(len(o) - 1 for o in out)
    variance = [pooled if fixed_variance else o.var(ddof=1) for o in out]
    expected = [
        [o.mean() + ndtri(level) * np.sqrt(v) for o, v in zip(out, variance, strict=True)]
        for level in GRID
    ]
    assert_allclose(
        baselines.lira_threshold(signal, members, GRID, fixed_variance), expected, rtol=1e-9
    )
    signal[:, 0] = 1.5  # without variance it takes that of `lira_offline`
    [threshold] = baselines.lira_threshold(signal, members, 0.9)
    assert_allclose(baselines.lira_offline(threshold, signal, members), np.log(0.9))


@pytest.mark.parametrize(
    "signal, members, levels, message",
    [
        (*references(), (), "at least one"),
        (references()[0][..., None], references()[1], 0.5, "one view"),
        (references()[0], np.ones_like(references()[1]), 0.5, "left it out"),
    ],
)
def test_lira_threshold_refuses(signal, members, levels, message):
    with pytest.raises(MiaError, match=message):
        baselines.lira_threshold(signal, members, levels)


# What it needs, and errors


def test_without_catboost_the_extra_is_named(monkeypatch):
    given = GaussianQuantile(TREES)
    monkeypatch.setattr(trees, "find_spec", lambda name: None)
    for make in (
        lambda: GaussianQuantile(TREES),
        lambda: PinballQuantile(TREES, GRID),
        lambda: given.fit(X, SCORE),
    ):
        with pytest.raises(MiaError, match="CatBoost is not installed: the extra tabular"):
            make()
    GaussianQuantile(MLP)  # a network needs none


X, Y, SCORE, *_ = world(40)
INFINITE = np.where(np.arange(40) == 3, -np.inf, SCORE)


@pytest.mark.parametrize("model, labels", list(itertools.product((MLP, TREES), (None, Y))))
def test_labels_are_given_if_and_only_if_there_are_classes(model, labels):
    classes, other = (None, Y) if labels is None else (2, None)
    message = "labels were given to q" if labels is None else "labels are missing"
    fitted = GaussianQuantile(model, classes).fit(X, SCORE, labels)
    for ask in (
        lambda: GaussianQuantile(model, classes).fit(X, SCORE, other),
        lambda: fitted.predict(X, other),
        lambda: fitted.thresholds(X, 0.9, other),
        lambda: fitted.position(X, SCORE, other),
        lambda: fitted.fit(X, SCORE, labels, (X, SCORE) if other is None else (X, SCORE, other)),
    ):
        with pytest.raises(MiaError, match=message):
            ask()


@pytest.mark.parametrize(
    "work, message",
    [
        (lambda: quantile.marginal([1.0], 0.5), "1 public scores: at least 2"),
        (lambda: quantile.marginal(INFINITE, 0.5), "1 values that are infinite or NaN"),
        (lambda: quantile.marginal(SCORE[None], 0.5), r"\[N\] is needed"),
        (lambda: quantile.marginal(SCORE, 0.0), "above 0"),
        (lambda: quantile.marginal(SCORE, np.nan), "nan"),
        (lambda: quantile.pinball_thresholds(np.zeros((2, 3)), (0.9, 0.5), 0.6), "must rise"),
        (lambda: quantile.pinball_thresholds(np.zeros((3, 3)), (0.5, 0.9), 0.6), r"\[2, N\]"),
        (
            lambda: quantile.pinball_thresholds(np.zeros((2, 3)), (0.5, 0.9), (0.6, 0.95)),
            r"\[0.95\] lie outside .* 0.5 to 0.9",
        ),
        (
            lambda: quantile.pinball_position(np.zeros(2), np.zeros((2, 3)), (0.5, 0.9)),
            "score has shape",
        ),
        (lambda: GaussianQuantile("mlp:3"), "a networks.NetworkConfig or a trees.TreeConfig"),
        (lambda: GaussianQuantile(MLP, 1), "classes = 1"),
        (lambda: PinballQuantile(MLP, (0.9,)), "at least two"),
        (lambda: PinballQuantile(MLP, (0.9, 0.5)), "must rise"),
        (lambda: PinballQuantile(MLP, (0.5, 1.0)), "below 1"),
        (lambda: GaussianQuantile(MLP).predict(X), "GaussianQuantile was not fitted"),
        (lambda: GaussianQuantile(MLP, 2).fit(X, SCORE, Y[:9]), r"\[40\] is needed"),
    ],
)
def test_bad_input_is_named(work, message):
    with pytest.raises(MiaError, match=message):
        work()


@pytest.mark.parametrize(
    "given, message",
    [
        ((X[:19], SCORE[:19]), "was given 19 public records to fit: at least 20"),
        ((X, INFINITE), "score holds 1 values"),
        ((X, SCORE[:30]), "score has length 30, x has 40"),
        ((X, np.ones(40)), "nothing to regress"),
        ((X, SCORE, None, (X, INFINITE)), "validation: score holds 1"),
        ((X, SCORE, None, (X[:9], SCORE)), "validation: score has length"),
        ((X, SCORE, None, (X,)), "validation = "),
        ((X, SCORE, None, (X[:, :2], SCORE)), "x has"),
    ],
)
def test_public_records_that_do_not_fit_are_refused(given, message):
    for regression in (GaussianQuantile(MLP), PinballQuantile(TREES, GRID)):
        with pytest.raises(MiaError, match=message):
            regression.fit(*given)
