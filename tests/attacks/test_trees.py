"""Boosted trees: CatBoost's own predictions in our units, seeds, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax

from mia_lib.attacks.quantile import GaussianQuantile, trees
from mia_lib.attacks.quantile.trees import TreeConfig
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)
N = 3000
X = RNG.normal(size=(N, 4)).astype(np.float32)
MEAN, SPREAD = 2 * X[:, 0], np.exp(0.5 * X[:, 1])
TARGET = MEAN + SPREAD * RNG.normal(size=N)
CONFIG = TreeConfig(iterations=60)


def own(kind, **given):
    """A model of CatBoost, made without this library."""
    import catboost

    return getattr(catboost, kind)(
        iterations=60,
        depth=4,
        l2_leaf_reg=3.0,
        random_seed=0,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        **given,
    )


# What CatBoost says, in our units


def test_two_classes_have_the_logits_zero_and_log_odds():
    y = (TARGET > 0).astype(int)
    model = own("CatBoostClassifier", loss_function="Logloss").fit(X[:1000], y[:1000])
    first, second = trees.classifier_logits(X[:1000], y[:1000], 2, CONFIG, X[:1000], X[1000:])
    assert first.shape == (1000, 2) and second.shape == (N - 1000, 2) and second.dtype == np.float64
    assert_array_equal(second[:, 0], 0)
    assert_allclose(expit(second[:, 1]), model.predict_proba(X[1000:])[:, 1], rtol=1e-9)
    assert (second.argmax(1) == y[1000:]).mean() > 0.7


def test_logits_of_several_classes_are_those_of_the_probabilities():
    y = np.digitize(TARGET, (-1, 1))
    model = own("CatBoostClassifier", loss_function="MultiClass").fit(X, y)
    [logits] = trees.classifier_logits(X, y, 3, CONFIG, X)
    assert logits.shape == (N, 3) and logits.dtype == np.float64
    assert_allclose(softmax(logits, 1), model.predict_proba(X), rtol=1e-6)
    assert trees.classifier_logits(X, y, 3, CONFIG) == []


def test_gaussian_has_the_root_of_catboosts_variance():
    regression = GaussianQuantile(CONFIG).fit(X, TARGET)
    mean, spread = regression.predict(X)
    twin = own("CatBoostRegressor", loss_function="RMSEWithUncertainty").fit(
        X, (TARGET - TARGET.mean()) / TARGET.std()
    )
    mean, spread = (mean - TARGET.mean()) / TARGET.std(), spread / TARGET.std()
    assert_allclose(np.stack([mean, spread**2], 1), twin.predict(X), rtol=1e-9)
    raw = twin.predict(X, prediction_type="RawFormulaVal")
    assert_allclose(spread, np.exp(raw[:, 1]), rtol=1e-9)  # what the trees add up is log sigma
    # of 60 trees
    assert np.corrcoef(mean, MEAN)[0, 1] > 0.97 and np.corrcoef(spread, SPREAD)[0, 1] > 0.7


def test_validation_chooses_the_number_of_trees():
    noise = RNG.normal(size=400)
    config = replace(CONFIG, learning_rate=0.3, depth=6)
    for loss in (trees.GAUSSIAN, trees.quantile_loss((0.5, 0.9))):
        # there is nothing to learn
        few = trees.fit(X[:200], noise[:200], config, loss, validation=(X[200:400], noise[200:]))
        assert (
            few.tree_count_
            < trees.fit(X[:200], noise[:200], config, loss).tree_count_
            == config.iterations
        )


@pytest.mark.parametrize("config", (CONFIG, replace(CONFIG, learning_rate=0.1, depth=2)))
def test_the_same_seed_grows_the_same_trees_and_another_one_others(config):
    def grow(config):
        return trees.predict(trees.fit(X, TARGET, config, trees.GAUSSIAN), X)

    assert_array_equal(grow(config), grow(config))
    assert (grow(config) != grow(replace(config, seed=1))).any()


# Errors


@pytest.mark.parametrize(
    "work, message",
    [
        (
            lambda: trees.fit(np.zeros((5, 4, 4, 1)), TARGET[:5], CONFIG, trees.GAUSSIAN),
            "Dataset.as_table",
        ),
        (lambda: trees.fit(X[:0], TARGET[:0], CONFIG, trees.GAUSSIAN), "not empty"),
        (
            lambda: trees.fit(X, TARGET, CONFIG, trees.GAUSSIAN, (X[:9, :2], TARGET[:9])),
            r"\[N, 4\]",
        ),
        (lambda: trees.classifier_logits(X, TARGET[:7] > 0, 2, CONFIG), "number of each record"),
        (lambda: trees.classifier_logits(X, np.full(N, 2), 2, CONFIG), "y = 2"),
        (lambda: trees.classifier_logits(X, np.zeros(N, int), 1, CONFIG), "classes = 1"),
        (
            lambda: trees.classifier_logits(X, np.arange(N) % 2 * 2, 4, CONFIG),
            "no record of 2 of 4 classes, the first is 1",
        ),
        (lambda: trees.classifier_logits(X, np.arange(N) % 2, 2, CONFIG, X[:, :3]), r"\[N, 4\]"),
    ],
)
def test_bad_input_is_named(work, message):
    with pytest.raises(MiaError, match=message):
        work()


def test_what_catboost_refuses_is_said_as_an_error_of_ours():
    same, nine = np.ones((50, 2)), replace(CONFIG, iterations=9)
    for work in (
        lambda: trees.fit(same, TARGET[:50], nine, trees.GAUSSIAN),
        lambda: trees.fit(same, TARGET[:50], nine, trees.quantile_loss((0.5, 0.9))),
        lambda: trees.classifier_logits(same, np.arange(50) % 2, 2, nine),
    ):
        with pytest.raises(
            MiaError, match="CatBoost could not fit 50 records with .*'iterations': 9.*constant"
        ):
            work()
