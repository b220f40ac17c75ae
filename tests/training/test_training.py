"""Training: the same models whatever the pool, resumable, and errors before or during the work."""

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from mia_lib import data, membership, signals, training
from mia_lib.errors import MiaError
from mia_lib.training import TrainConfig, pool, recipe
from mia_lib.training.ensemble import with_weights

RNG = np.random.default_rng(0)
IMAGES = data.from_arrays(
    RNG.integers(0, 255, (60, 12, 12, 1)).astype(np.uint8), RNG.integers(0, 3, 60), "toy images"
)
TABLE = data.Dataset(
    "toy table",
    RNG.normal(size=(80, 5)).astype(np.float32),
    RNG.integers(0, 2, 80),
    80,
    ("no", "yes"),
)
FAST = TrainConfig("logistic_regression", epochs=2, learning_rate=0.05)

pytestmark = pytest.mark.usefixtures("isolated_cache")


def bank(records=TABLE, config=FAST, count=4, **kwargs):
    return training.train(
        records, membership.balanced_halves(len(records), count), config, **kwargs
    )


def test_models_are_bit_identical_whatever_the_size_of_the_pool(tmp_path, monkeypatch):
    config = TrainConfig("tanh_cnn:2,3,4", epochs=2, batch_size=8, augmentation="flip_crop:2")
    weights = []
    for workers in (1, 2):
        monkeypatch.setenv("MIA_CACHE", str(tmp_path / str(workers)))
        ensemble = bank(IMAGES, config, workers=workers).fit()
        weights.append([ensemble.parameters(m) for m in range(4)])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    here, _ = training.fit(
        IMAGES.x[ensemble.members[1]], IMAGES.y[ensemble.members[1]], 3, config, index=1
    )
    torch.set_num_threads(threads)
    for one, two in zip(*weights, strict=True):
        assert (one == two).all()
    assert (
        torch.nn.utils.parameters_to_vector(here.parameters()).detach().numpy() == weights[0][1]
    ).all()
    assert not (weights[0][0] == weights[0][2]).all()


def test_nothing_is_trained_before_it_is_needed_and_nothing_twice(monkeypatch):
    ensemble = bank()
    assert ensemble.missing() == [0, 1, 2, 3]
    first = signals.loss(ensemble, TABLE)
    assert ensemble.missing() == []
    monkeypatch.setattr(
        pool, "run_tasks", lambda *a, **k: pytest.fail("everything is in the store")
    )
    assert (signals.loss(bank(), TABLE) == first).all()
    assert signals.correctness(bank(), TABLE).dtype == bool
    longer = np.vstack([bank().members, membership.random_halves(80, 2, seed=9)])
    assert training.train(TABLE, longer, FAST).missing() == [4, 5]
    ways = (
        TrainConfig("mlp:3", learning_rate=one, weight_decay=0 * one)
        for one in (1, 1.0, np.float32(1))
    )
    assert len({json.dumps(way.spec()) for way in ways}) == 1


def test_models_with_the_weights_of_trained_ones_say_the_same_and_are_never_trained(monkeypatch):
    def ensemble():
        return bank(IMAGES, TrainConfig("batchnorm_cnn:3,4,4", epochs=2, batch_size=20))

    trained = ensemble()
    expected = signals.loss(trained, IMAGES)
    states = [trained.model(row).state_dict() for row in range(4)]
    weights = [
        {name: one.numpy() for name, one in state.items() if one.is_floating_point()}
        for state in states
    ]
    monkeypatch.setattr(
        training.Ensemble, "_fit_in_pool", lambda *_: pytest.fail("a model was trained")
    )
    copies = with_weights(ensemble(), weights)
    part = with_weights(ensemble().part([2, 1]), [weights[2], weights[1]])
    for models, rows in ((copies, [0, 1, 2, 3]), (part, [2, 1]), (copies.part([3]), [3])):
        assert np.array_equal(signals.loss(models, IMAGES), expected[rows])
    other = with_weights(
        ensemble(), [{name: array + 1e-3 for name, array in one.items()} for one in weights]
    )
    assert other.spec(0) != copies.spec(0)
    assert not np.array_equal(signals.loss(other, IMAGES), expected)
    incomplete = [
        {name: array for name, array in one.items() if "head" not in name} for one in weights
    ]
    for given, said in (
        (weights[:3], "weights of 3 models"),
        (incomplete, "do not fit batchnorm_cnn:3,4,4: head"),
    ):
        with pytest.raises(MiaError, match=said):
            with_weights(ensemble(), given)


def test_logistic_regression_by_gradient_descent_reaches_the_minimum():
    config = TrainConfig(
        "logistic_regression",
        epochs=400,
        batch_size=80,
        optimizer="sgd",
        learning_rate=1.0,
        weight_decay=0.02,
    )
    model, history = training.fit(TABLE.x, TABLE.y, 2, config)
    # Two outputs with penalty w on each are one logit with w / 2; the bias is penalised too, hence the added column.
    x = np.hstack([TABLE.x, np.ones((80, 1), np.float32)])
    exact = (
        LogisticRegression(C=1 / (80 * 0.01), fit_intercept=False, tol=1e-10)
        .fit(x, TABLE.y)
        .coef_[0]
    )
    weight, bias = model.head.weight.detach().numpy(), model.head.bias.detach().numpy()
    np.testing.assert_allclose(
        np.append(weight[1] - weight[0], bias[1] - bias[0]), exact, atol=2e-3
    )
    assert history[-1, 0] < history[0, 0]


def test_a_training_that_stops_is_the_beginning_of_the_whole_one():
    records = data.load("german_credit").take(np.arange(60))
    config = TrainConfig("mlp:4", epochs=6, learning_rate=0.1, optimizer="sgd", schedule="cosine")
    members = np.ones((1, 60), bool)
    whole, part = (
        training.train(records, members, replace(config, stop_epoch=stop)).history()
        for stop in (None, 2)
    )
    assert part.shape == (1, 2, 2) and np.array_equal(part, whole[:, :2])
    with pytest.raises(MiaError, match="stop_epoch = 7"):
        replace(config, stop_epoch=7)


def test_schedules_by_hand():
    step = TrainConfig("mlp:4", epochs=9, learning_rate=1.0, schedule="step", step_epochs=3)
    cosine = TrainConfig("mlp:4", epochs=4, learning_rate=1.0, schedule="cosine")
    assert [recipe.learning_rate(step, e) for e in (0, 2, 3, 8)] == pytest.approx([1, 1, 0.1, 0.01])
    assert [recipe.learning_rate(cosine, e) for e in (0, 2)] == pytest.approx([1, 0.5])


def test_flips_and_shifts_only_move_pixels():
    x = torch.arange(2 * 36.0).reshape(2, 1, 6, 6)
    torch.manual_seed(0)
    views = [recipe.augment(x, "flip")[0] for _ in range(20)]
    assert {(v == x[0]).all().item() for v in views} == {True, False}
    assert all((v == x[0]).all() or (v == x[0].flip(2)).all() for v in views)
    moved = {recipe.augment(x, "crop:1")[0, 0, 2, 2].item() for _ in range(60)}
    assert moved == {x[0, 0, r, c].item() for r in (1, 2, 3) for c in (1, 2, 3)}
    assert recipe.augment(x, "none") is x


def test_resized_crops_have_the_areas_and_shapes_that_they_should():
    """Seen in images whose pixels say where they are: how far neighbours are apart is how large the crop is."""
    torch.manual_seed(0)
    across = torch.arange(64.0).expand(2000, 1, 64, 64)
    both = recipe.augment(torch.cat([across, across.mT], 1), "flip_resized_crop:0.25")
    width = (both[:, 0, 32, 40] - both[:, 0, 32, 24]) / 16
    height = (both[:, 1, 40, 32] - both[:, 1, 24, 32]) / 16
    assert (height > 0).all() and 0.45 < (width < 0).float().mean() < 0.55, (
        "mirrored left and right, one in two"
    )
    area, shape = width.abs() * height, width.abs() / height
    assert 0.24 < area.min() < 0.3 and area.max() <= 1.001 and 0.45 < area.median() < 0.7
    assert 0.74 < shape.min() < 0.8 and 1.25 < shape.max() < 1.35
    middle = both[:, 0, 32, 31:33].mean(1)  # where its centre lies
    assert (middle - 31.5).abs().max() > 10 and (middle - 31.5).mean().abs() < 1


KILLED = """
import os

import numpy as np

from mia_lib import data, membership, store, training
rng = np.random.default_rng(0)
table = data.Dataset("t", rng.normal(size=(2000, 20)).astype(np.float32), rng.integers(0, 2, 2000), 2000, ("a", "b"))
config = training.TrainConfig("mlp:2000", epochs=1, batch_size=200)  # too large to be stacked
if __name__ == "__main__":
    keep, kept = store.keep, []

    def keep_two(spec, *given, **notes):
        kept.append(keep(spec, *given, **notes))
        if len(kept) == 2:
            os.kill(os.getpid(), 9)

    store.keep = keep_two
    training.train(table, membership.random_halves(2000, 5), config, workers=2).fit()
"""


def test_a_killed_run_keeps_its_finished_models_and_goes_on_from_there(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(KILLED)
    assert (
        subprocess.run([sys.executable, str(script)], capture_output=True).returncode
        == -signal.SIGKILL
    )
    again = runpy.run_path(str(script))
    ensemble = training.train(
        again["table"], membership.random_halves(2000, 5), again["config"], workers=1
    )
    assert len(ensemble.missing()) == 3
    assert ensemble.fit().missing() == []


def test_a_process_that_began_elsewhere_works_in_the_environment_of_who_gives_it_work(monkeypatch):
    found = []
    for folder in ("one", "another"):
        monkeypatch.setenv("MIA_CACHE", folder)
        pool.run_tasks(os.getenv, [("MIA_CACHE",)], lambda _, value: found.append(value), "x", 1)
    assert found == ["one", "another"]


def test_a_process_that_dies_at_work_or_idle_is_reported_and_the_pool_recovers():
    def work(code: str = ""):
        pool.run_tasks(exec, [(f"import os; {code}",)], lambda *_: None, "work", workers=1)

    for code, words in (
        ("os._exit(3)", r"died.*\(exit code 3\)"),
        ("os.kill(os.getpid(), 9)", r"died.*\(out of memory\?\)"),
    ):
        with pytest.raises(MiaError, match=words):
            work(code)
    work()
    [process] = pool.pool(1)._processes.values()
    process.kill()
    process.join()
    time.sleep(0.5)
    with pytest.raises(MiaError, match="died"):
        work()
    work()


@pytest.mark.parametrize(
    "call,words",
    [
        (lambda: TrainConfig("tanh_cn"), "Did you mean 'tanh_cnn'"),
        (lambda: TrainConfig("mlp:4", optimizer="sgdd"), "Did you mean 'sgd'"),
        (lambda: TrainConfig("mlp:4", nesterov=True), "needs momentum"),
        (lambda: TrainConfig("mlp:4", augmentation="flip_crop:x"), "must be a number"),
        (lambda: TrainConfig("mlp:4", augmentation="flip_resized_crop:2"), "out of range"),
        (lambda: TrainConfig("mlp:4", augmentation="flip_crop:0.9"), "whole pixels"),
        (
            lambda: bank().part(np.array([True, False])),
            "shape .2,. and type bool: numbers of some of 4 models",
        ),
        (lambda: training.train(TABLE, np.ones((1, 7), bool), FAST), "7 columns, but there are 80"),
        (lambda: training.train(TABLE, np.zeros((2, 80), bool), FAST), "row 0 has no member"),
        (
            lambda: bank(data.Dataset("one class", TABLE.x, np.zeros(80, int), 80, ("only",))),
            "at least 2",
        ),
        (lambda: training.train(TABLE, np.ones((1, 80), bool), TrainConfig("tanh_cnn")), "image"),
        (
            lambda: training.train(
                TABLE, np.ones((1, 80), bool), TrainConfig("mlp:4", augmentation="flip")
            ),
            "needs images",
        ),
        (lambda: training.train(TABLE, np.ones((1, 80), bool), FAST, workers=0), "workers = 0"),
        (lambda: training.fit(IMAGES.x[:5], IMAGES.y[:9], 3, FAST), "y .*9.*5"),
        (lambda: training.fit(IMAGES.x[:0], IMAGES.y[:0], 3, FAST), "at least one record"),
    ],
)
def test_bad_input_is_refused_before_any_work(call, words):
    with pytest.raises(MiaError, match=words):
        call()
