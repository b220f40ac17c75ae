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


def weights(models):
    states = [models.model(row).state_dict() for row in range(len(models))]
    return [{name: one.numpy() for name, one in state.items() if one.is_floating_point()} for state in states]


def test_models_with_the_weights_of_trained_ones_say_the_same(monkeypatch):
    trained = ensemble()
    held = with_weights(ensemble(), weights(trained))
    monkeypatch.setattr(training.Ensemble, "_fit_in_pool", lambda *_: pytest.fail("a model was trained"))
    assert np.array_equal(signals.loss(held, POOL), signals.loss(trained, POOL))
    part = with_weights(ensemble().part([2, 1]), [weights(trained)[2], weights(trained)[1]])
    assert np.array_equal(signals.loss(part, POOL), signals.loss(trained, POOL)[[2, 1]])
    assert np.array_equal(signals.loss(held.part([3]), POOL)[0], signals.loss(trained, POOL)[3])


def test_other_weights_are_other_models_to_the_store():
    whole = weights(ensemble())
    other = [{name: array + 1e-3 for name, array in one.items()} for one in whole]
    first, second = (with_weights(ensemble(), one) for one in (whole, other))
    assert first.spec(0) != second.spec(0) and not np.array_equal(signals.loss(first, POOL), signals.loss(second, POOL))


def test_weights_that_do_not_fit_are_refused():
    whole = weights(ensemble())
    with pytest.raises(MiaError, match="weights of 3 models"):
        with_weights(ensemble(), whole[:3])
    lacking = [{name: array for name, array in one.items() if "head" not in name} for one in whole]
    with pytest.raises(MiaError, match="do not fit batchnorm_cnn:3,4,4: head"):
        with_weights(ensemble(), lacking)
