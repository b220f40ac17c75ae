"""What the chapters measure: the same whatever else is measured, and what it is called."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from mia_book import publishing
from mia_book.chapters.calibration import measure as calibration
from mia_book.chapters.curvature import measure as curvature
from mia_book.chapters.quantile import measure as regressed
from mia_book.publishing import banks
from mia_book.publishing.measurements import differences
from mia_lib import data, membership, models, signals, training
from mia_lib.attacks import quantile
from mia_lib.attacks.baselines import modified_entropy
from mia_lib.attacks.quantile.networks import NetworkConfig
from mia_lib.errors import MiaError
from mia_lib.signals import curvature as signal
from mia_lib.signals.views import augmented, shifted

MEASUREMENTS = publishing.catalogue()
PICTURES = data.load("fashion_mnist_20k").take(np.arange(600))


def at_the_probe(name: str, index: range, **changes) -> dict[str, np.ndarray]:
    one = MEASUREMENTS[name]
    given = {key: value for key, value in one.probe.items() if key != "index"} | changes
    return one.compute(index, one.complete(given))


@pytest.fixture
def trained(monkeypatch):
    """What was given to `training.train`: pools, members, and how."""
    seen, real = [], training.train
    monkeypatch.setattr(
        training,
        "train",
        lambda pool, members, *recipe, **how: (
            seen.append((members, how)) or real(pool, members, *recipe, **how)
        ),
    )
    return seen


@pytest.mark.parametrize(
    "name",
    [
        "bank/cifar100",
        "curvature/cifar100",
        "calibration/cifar10",
        "iha/odd",
        "iha/fashion-partial",
        "iha/fashion-left-out",
        "quantile/cifar10",
        "quantile/public-references",
        "quantile/trees",
        "quantile/tables",
    ],
)
def test_a_model_is_the_same_whatever_others_are_measured(name):
    """Its probe was measured with more or fewer."""
    one = MEASUREMENTS[name]
    index = one.probe["index"]
    last = len(index) > 1
    found = at_the_probe(name, index[1:] if last else range(index[0], index[0] + 2))
    with np.load(one.probe_path) as kept:
        probed = {key: kept[key][1:] if last else kept[key] for key in found}
    assert (
        differences(probed, found if last else {key: array[:1] for key, array in found.items()})
        == ""
    )


def test_of_a_bank_the_first_records_are_asked_as_all_are():
    recipe = banks.RECIPE | {
        "dataset": "fashion_mnist_20k",
        "architecture": "batchnorm_cnn:4,8,8",
        "records": 120,
        "epochs": 1,
    }
    whole, part = banks.answers(range(2), recipe), banks.answers(range(2), recipe, asked=50)
    assert all((array[:, :50] == part[name]).all() for name, array in whole.items())
    more = banks.answers(range(2), recipe, outputs=50, viewed=30)
    assert all((more[name] == array).all() for name, array in whole.items())
    logits = more["logits"].astype(float)
    labels = data.load("fashion_mnist_20k").y[:50]
    margin = signals.scalars(logits[0], labels, "cross_entropy")["logit_scaled_confidence"]
    assert np.abs(margin - part["margin"][0]).max() < 0.02
    queries = banks.queries(range(2), recipe, viewed=30)
    # the first view is the image itself
    assert np.abs(queries["queries"][..., 0] - part["margin"][:, :30]).max() < 0.01
    assert (queries["members"] == part["members"][:, :30]).all()
    assert (queries["queries"] == more["queries"]).all()
    with pytest.raises(MiaError, match="asked"):
        banks.answers(range(2), recipe, asked=121)


def test_views_are_shifts_and_mirror_images_each_once():
    x, views = PICTURES.x[:5], shifted(PICTURES.take(np.arange(5)))
    assert len(views) == 18 and len({view.fingerprint for view in views}) == 18
    assert (views[0].x == x).all() and (views[1].x == x[:, :, ::-1]).all()
    assert any(
        (view.x[:, 4:, :] == x[:, :-4, :]).all() and (view.x[:, :4] == x[:, :1]).all()
        for view in views
    )
    [plain] = augmented(PICTURES.take(np.arange(5)), "none", 1)
    assert (plain.x == x).all()
    table = data.Dataset("t", np.zeros((4, 3), np.float32), np.arange(4) % 2, 4, ("a", "b"))
    with pytest.raises(MiaError, match="views are of images"):
        shifted(table)


PLAYS = {
    "architecture": "watson_cnn:4,4,4,8",
    "records": 400,
    "epochs": 3,
    "batch_size": 20,
    "learning_rate": 0.02,
    "augmentation": "none",
    "views": 1,
    "references": 1,
}


def test_a_play_is_the_papers_game_and_its_rehearsal_the_same_within_the_public_half(trained):
    """And no calibrating model has seen a private record."""
    found = at_the_probe("calibration/cifar10", range(2), **PLAYS)
    assert found["private"].sum(1).tolist() == [200] * 2
    assert found["members"].sum(1).tolist() == [100] * 2
    assert found["rehearsal_members"].shape == (2, 100)
    assert found["rehearsal_members"].sum(1).tolist() == [50] * 2
    private = found["private"][1]
    inside, reference, spare, own = calibration._within(~private, 1)
    assert not ((inside | reference | spare) & private).any()
    assert not (own & (reference | spare)).any()
    assert (inside <= own).all()
    assert own.sum() == reference.sum() + spare.sum() == 100
    assert inside.sum() == 50
    calibrating = [
        (members, how["validation"])
        for members, how in trained
        if how["label"] in ("references", "forgetful copies")
    ]
    assert len(calibrating) == 4
    for members, validation in calibrating[:2]:  # those of the game itself come first
        assert not ((members | validation) & found["private"]).any()
        assert (members.sum(1) == 100).all()


def test_the_scores_of_a_play_are_those_of_its_models_and_more_references_leave_the_first_as_it_is():
    found = at_the_probe("calibration/cifar10", range(1), **PLAYS, forgetting_epochs=0)
    assert np.abs(found["forgetting_margin"][:, 0] - found["target_margin"]).max() == 0
    assert (found["target_top"] >= found["target_margin"]).all()
    assert (found["correct"] == (found["target_top"] == found["target_margin"])).mean() > 0.99
    pool = data.load("fashion_mnist_20k").take(np.arange(400))
    split, private = membership.calibration_splits(400, 1, 1, 0)
    recipe = training.TrainConfig(
        "watson_cnn:4,4,4,8",
        epochs=3,
        batch_size=20,
        optimizer="sgd",
        momentum=0.9,
        nesterov=True,
        learning_rate=0.02,
        weight_decay=1e-4,
        schedule="cosine",
        seed=0,
    )
    model = training.train(pool, split[:1], recipe)
    loss = signals.loss(model, pool)[0][private[0]]
    norm = signals.gradient_norm(model, pool)[0][private[0]]
    assert np.abs(
        signals.loss_of(found["target_margin"][0].astype(float)) - loss
    ).max() < 2e-3 * max(1, loss.max())
    assert np.abs(np.exp(found["target_gradient"][0].astype(float)) / norm - 1).max() < 5e-3
    one, two = (
        at_the_probe("calibration/cifar10", range(1), **PLAYS | {"references": count})
        for count in (1, 2)
    )
    assert two["scratch_margin"].shape[1] == 2
    assert (two["scratch_margin"][:, :1] == one["scratch_margin"]).all()
    assert not np.array_equal(two["scratch_margin"][:, 0], two["scratch_margin"][:, 1])


def test_a_reference_that_was_never_stopped_is_a_stopped_one_at_the_last_epoch():
    """And a play keeps that one, where its last epoch is its best."""
    plain = {
        name: PLAYS[name]
        for name in ("architecture", "records", "epochs", "batch_size", "learning_rate")
    }
    play = at_the_probe("calibration/cifar10", range(1), **PLAYS)
    stopped = at_the_probe("calibration/stopped", range(1), **plain, stops=[1, 2, 3])
    assert np.array_equal(stopped["members"], play["members"])
    assert stopped["accuracy"].shape == (1, 3, 2)
    best = int(play["best_epoch"][0])
    assert np.array_equal(stopped["stopped_margin"][:, best - 1], play["scratch_margin"][:, 0])
    assert not np.array_equal(stopped["stopped_margin"][:, 0], stopped["stopped_margin"][:, 2])


def test_the_released_curvature_is_rounded_and_the_precise_one_is_not():
    recipe = {
        "dataset": "fashion_mnist_20k",
        "architecture": "batchnorm_cnn:8,16,32",
        "records": 200,
        "epochs": 60,
        "batch_size": 20,
        "learning_rate": 0.1,
        "weight_decay": 1e-4,
        "augmentation": "none",
    }
    asked = {"asked": 60, "precisely": 40, "iterations": 10, "h": curvature.STEP}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = at_the_probe("curvature/cifar100", range(2), **recipe, **asked)
    gap = np.abs(found["released"][:, :40] - found["precise"]).astype(float)
    # what rounding does to the surest
    assert np.median(gap) < 0.1 < gap.max() and np.isfinite(gap).all()
    assert found["released"].shape == (2, 60, 2) == found["true"].shape
    assert not np.array_equal(found["true"][..., 0], found["true"][..., 1])
    models, pool = banks.models_of(range(2), banks.RECIPE | recipe)
    entropy = modified_entropy(signals.probabilities(models, pool)[0, :60], pool.y[:60])
    assert np.abs(found["entropy"][0] - np.log(1e-22 - entropy)).max() < 0.04
    assert found["outside"].shape == (2, 0)


def test_with_all_records_the_curvature_comes_with_test_records_too(monkeypatch):
    small = data.load("fashion_mnist_20k")
    small = replace(small, x=small.x[:240], y=small.y[:240], n_train=200)
    monkeypatch.setattr(data, "load", lambda name: small)
    given = {
        "dataset": "fashion_mnist_20k",
        "architecture": "tanh_cnn:4,4,8",
        "epochs": 1,
        "batch_size": 20,
        "asked": 10,
        "precisely": 5,
        "iterations": 1,
        "precision": "float32",
        "augmentation": "none",
    }
    whole = curvature.cifar10.complete(given)
    found = curvature.cifar10.compute(range(2), whole)
    whole = banks.answers(range(2), {name: whole[name] for name in banks.RECIPE})
    assert found["outside"].shape == (2, 40)
    assert np.abs(found["outside"] - whole["margin"][:, 200:]).max() < 0.01


def test_of_a_record_that_a_network_is_sure_of_the_released_curvature_is_zero_as_is_pytorchs_loss():
    """Less than half of float32's epsilon of a loss is none at all."""
    layers, x = torch.nn, PICTURES.x[:40]
    network = layers.Sequential(
        layers.Flatten(), layers.Linear(784, 2), layers.Tanh(), layers.Linear(2, 2)
    )
    with torch.no_grad():
        network[3].weight.copy_(torch.tensor([[30.0, 0.0], [-30.0, 0.0]]))
    network = models.set_input_scaling(network, "-1 to 1").eval()
    labels = network(models.to_input(torch.from_numpy(x))).argmax(1).numpy()
    how = {"variant": "released_code", "iterations": 2, "h": 1e-3, "seed": 0}
    released, precise = (
        signal._task([network], x, labels, "cross_entropy", dtype, how, False, precise)[0][
            "curvature"
        ]
        for dtype, precise in (("float32", False), ("float64", True))
    )
    assert (released == 0).mean() > 0.1 and (precise > 0).all()


def test_a_regression_is_fitted_to_the_half_that_did_not_train_the_target():
    """Number k is model 2k of the bank; what its regression says is the attack's own function on those records."""
    told = at_the_probe("quantile/cifar10-small", range(1, 2))
    blind = at_the_probe("quantile/cifar10-small", range(1, 2), label=False)
    bank = MEASUREMENTS["bank/cifar10-small"](4, **regressed.PROBE["recipe"])
    pool = data.load("fashion_mnist_20k").take(np.arange(240))
    part = regressed.split(bank.members[2], 200, 2, 50, 20)
    assert told["mean"].shape == (1, 50 + 40 + 20)
    assert not np.array_equal(blind["mean"], told["mean"])
    config = NetworkConfig("strided_cnn:4,4,8", (8,), 2, 128, 2e-3, 1e-3, seed=2)
    x, margin, labels = pool.x[part.fitted], bank.margin[2][part.fitted], pool.y[part.fitted]
    mirrored = (
        np.concatenate([x, x[:, :, ::-1]]),
        np.tile(margin, 2).astype(float),
        np.tile(labels, 2),
    )
    validation = (pool.x[part.holdout], bank.margin[2][part.holdout], pool.y[part.holdout])
    asked = np.r_[part.judged, part.holdout]
    mean, spread = (
        quantile.GaussianQuantile(config, 10)
        .fit(*mirrored, validation=validation)
        .predict(pool.x[asked], pool.y[asked])
    )
    assert np.abs(mean - told["mean"][0]).max() < 2e-2
    assert np.abs(np.log(spread) - told["log_spread"][0]).max() < 2e-2
    with pytest.raises(MiaError, match="bank"):
        at_the_probe("quantile/cifar10-small", range(1), bank="bank/none")


def test_references_on_public_records_never_saw_a_judged_one(trained):
    found = at_the_probe("quantile/public-references", range(1, 2))["margin"]
    [*_, (members, _)] = trained
    bank = MEASUREMENTS["bank/cifar10-small"](4, **regressed.PROBE["recipe"])
    judged = regressed.split(bank.members[2], 200, 2, 50, 20).judged
    outside = members[2:]
    assert found.shape == (1, 2, 90)
    assert not outside[:, judged].any()
    assert (outside.sum(1) == 100).all()


def test_trees_are_grown_on_balanced_halves_and_told_the_label_or_not():
    grown = at_the_probe("quantile/trees", range(4))
    assert (grown["members"][0::2] ^ grown["members"][1::2])[:, :400].all()
    assert not grown["members"][:, 400:].any()
    margin = grown["margin"].astype(float)
    # they know their members
    assert margin[grown["members"]].mean() > margin[~grown["members"]].mean() + 0.03
    told, blind = (
        at_the_probe("quantile/tables", range(1), label=label) for label in (True, False)
    )
    rest = margin[0, 400:] - told["mean"][0, 100:-50]
    assert told["mean"].shape == (1, 250)
    assert np.std(rest) < np.std(margin[0, 400:] - blind["mean"][0, 100:-50])
    with pytest.raises(MiaError, match="holds images"):
        regressed.table_of(regressed.TREES | {"dataset": "fashion_mnist_20k"})
