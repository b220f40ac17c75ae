"""Models with given weights say what trained ones with these weights say, and are never trained."""

import numpy as np
import pytest

from mia_lib import data, membership, signals, training
from mia_lib.errors import MiaError
from mia_lib.training.ensemble import with_weights

POOL = data.load("fashion_mnist_20k").take(np.arange(80))
CONFIG = training.TrainConfig("batchnorm_cnn:3,4,4", epochs=2, batch_size=20)


def ensemble():
    return training.train(POOL, membership.balanced_halves(80, 4, 0), CONFIG)


@pytest.fixture(scope="module")
def trained():
    return ensemble()


@pytest.fixture(scope="module")
def weights(trained):
    states = [trained.model(row).state_dict() for row in range(4)]
    return [{name: one.numpy() for name, one in state.items() if one.is_floating_point()} for state in states]


def test_models_with_the_weights_of_trained_ones_say_the_same(trained, weights, monkeypatch):
    expected = signals.loss(trained, POOL)
    monkeypatch.setattr(training.Ensemble, "_fit_in_pool", lambda *_: pytest.fail("a model was trained"))
    held, part = with_weights(ensemble(), weights), with_weights(ensemble().part([2, 1]), [weights[2], weights[1]])
    for models, rows in ((held, [0, 1, 2, 3]), (part, [2, 1]), (held.part([3]), [3])):
        assert np.array_equal(signals.loss(models, POOL), expected[rows])
    other = with_weights(ensemble(), [{name: array + 1e-3 for name, array in one.items()} for one in weights])
    assert other.spec(0) != held.spec(0) and not np.array_equal(signals.loss(other, POOL), expected)


def test_weights_that_do_not_fit_are_refused(weights):
    lacking = [{name: array for name, array in one.items() if "head" not in name} for one in weights]
    for given, said in ((weights[:3], "weights of 3 models"), (lacking, "do not fit batchnorm_cnn:3,4,4: head")):
        with pytest.raises(MiaError, match=said):
            with_weights(ensemble(), given)
