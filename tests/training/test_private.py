"""Private training: steps worked out by hand, noise of the stated size, a budget that is kept, and errors before any work."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from mia_lib import data, membership, models, signals, store, training
from mia_lib.errors import MiaError
from mia_lib.training import TrainConfig, pool, recipe
from mia_lib.training import ensemble as ensembles
from mia_lib.training import private as dp
from mia_lib.training.losses import record_loss
from mia_lib.training.private import Privacy

accountants = pytest.importorskip(
    "opacus.accountants", reason="Opacus is not installed: pip install -e '.[dp]'"
)

RNG = np.random.default_rng(0)
TABLE = data.Dataset(
    "toy table",
    RNG.normal(size=(80, 5)).astype(np.float32),
    RNG.integers(0, 3, 80),
    80,
    ("a", "b", "c"),
)
IMAGES = data.from_arrays(
    RNG.integers(0, 255, (40, 8, 8, 3)).astype(np.uint8), RNG.integers(0, 3, 40), "toy images"
)
GREY = replace(IMAGES, x=IMAGES.x[..., :1])
MLP = TrainConfig("mlp:7", epochs=2, batch_size=10, optimizer="sgd", learning_rate=0.5)
# drawn with probability 80/80, so the batch is the training set
ONE_STEP = replace(MLP, epochs=1, batch_size=80)
# likewise of half the table, and what that spends is soon found
OF_HALF = replace(MLP, batch_size=40)
HERE = ThreadPoolExecutor(1)  # processes of the pool, which take seconds to start, are tried once
SILENT = 1e14  # an epsilon that leaves next to no noise

pytestmark = pytest.mark.usefixtures("isolated_cache")


SPARE = {  # a layer -> its sizes, and what is made of it and of records [B, 5]
    "MultiheadAttention": ((5, 1), lambda layer, x: layer(*3 * [x[None]])[0][0]),
    "Bilinear": ((5, 5, 5), lambda layer, x: layer(x, x)),
    "Linear": ((5, 5), lambda layer, x: x),
}


class WithSpare(torch.nn.Module):
    """A network with a layer that Opacus does not differentiate, or that is not used."""

    def __init__(self, shape, classes, kind):
        super().__init__()
        sizes, self.use = SPARE[kind]
        self.last, self.spare = torch.nn.Linear(5, classes), getattr(torch.nn, kind)(*sizes)

    def forward(self, x):
        return self.last(self.use(self.spare, x))


def private(epsilon=5.0, config=OF_HALF, records=TABLE, count=2, **how):
    members = membership.balanced_halves(len(records), count)
    return dp.train(records, members, config, Privacy(epsilon), **{"workers": 1, **how})


def fit(config=ONE_STEP, records=TABLE, index=0, **privacy):
    return dp.fit(records.x, records.y, 3, config, Privacy(**privacy), index)


def vector(arrays):
    return np.concatenate(
        [value.ravel() for name, value in arrays.items() if name not in ensembles.NOT_WEIGHTS]
    )


def by_hand(records, config, clip=np.inf):
    """Weights after one step over all records, from the gradient of each record by itself."""
    network = models.build(config.architecture, records.shape, 3, seed=recipe.seed_of(config, 0))
    weights, total = list(network.parameters()), 0.0
    for record, label in zip(records.x, records.y, strict=True):
        outputs = network(models.to_input(record[None]))
        loss = record_loss(outputs, torch.tensor([label]), config.loss).sum()
        gradient = torch.cat([part.flatten() for part in torch.autograd.grad(loss, weights)])
        total = total + gradient * min(1.0, clip / float(gradient.norm()))
    before = torch.nn.utils.parameters_to_vector(weights).detach()
    return before.numpy(), (before - config.learning_rate * total / len(records)).numpy()


@pytest.mark.parametrize(
    "config",
    [
        ONE_STEP,
        replace(ONE_STEP, loss="squared_error"),
        replace(ONE_STEP, loss="brier"),
        replace(ONE_STEP, architecture=partial(torch.nn.Linear, 5, 3)),
    ],
)
def test_without_clipping_and_noise_a_step_is_that_of_gradient_descent(config):
    before, after = by_hand(TABLE, config)
    found = vector(fit(config, epsilon=SILENT, clip=100.0).arrays)
    assert_allclose(found, after, atol=3e-6)
    assert np.abs(after - before).max() > 1e-2


@pytest.mark.parametrize(
    "records, architecture, augmentation",
    [
        (TABLE, "mlp:7", "none"),
        (IMAGES, "tanh_cnn:2,3,4", "none"),
        # crop:0 leaves images as they are, but with channels last in memory
        (GREY, "watson_cnn:3,4,5,6", "crop:0"),
        (IMAGES, "watson_cnn:3,4,5,6", "crop:0"),
    ],
)
def test_each_record_is_clipped_by_itself(records, architecture, augmentation):
    config = replace(
        ONE_STEP,
        architecture=architecture,
        batch_size=len(records),
        learning_rate=20.0,
        augmentation=augmentation,
    )
    clip = 0.05
    before, after = by_hand(records, config, clip)
    found = vector(fit(config, records, epsilon=SILENT, clip=clip).arrays)
    assert_allclose(found, after, atol=2e-5)
    assert 0.05 < np.linalg.norm(found - before) < config.learning_rate * clip * (1 + 1e-5)
    assert not np.allclose(after, by_hand(records, config)[1], atol=1e-2)


def test_a_dirac_canary_moves_its_own_parameter_by_the_clipping_norm_whenever_it_is_drawn():
    config, clip = replace(ONE_STEP, learning_rate=2.0), 0.05
    without = vector(fit(config, epsilon=SILENT, clip=clip).arrays)
    x, y, privacy = TABLE.x, TABLE.y, Privacy(SILENT, clip=clip)
    moved = without - vector(dp.fit(x, y, 3, config, privacy, canaries=[4, 60]).arrays)
    assert_allclose(np.flatnonzero(np.abs(moved) > 1e-6), [4, 60])
    assert_allclose(moved[[4, 60]], config.learning_rate * clip / 80, rtol=1e-3)
    # twenty steps, in a quarter of which it is drawn
    rare = replace(config, batch_size=20, epochs=5, learning_rate=1e-3)
    start, end = (
        vector(dp.fit(x, y, 3, rare, Privacy(SILENT, clip=1e6), canaries=these).arrays)
        for these in ((), range(30))
    )
    # beside which the gradients of records are nothing
    drawn = (start - end)[:30] / (rare.learning_rate * 1e6 / 20)
    assert 3 < drawn.mean() < 7 and np.ptp(drawn) > 2


def test_who_is_in_does_not_show_in_the_rate_the_steps_or_the_noise_where_a_size_is_given():
    few, many = (
        dp.fit(TABLE.x[:count], TABLE.y[:count], 3, MLP, Privacy(2.0, 1e-3), size=80).arrays
        for count in (30, 70)
    )
    assert (
        few["noise_multiplier"]
        == many["noise_multiplier"]
        == dp.noise_multiplier(Privacy(2.0, 1e-3), 80, MLP)
    )
    assert few["epsilon"] == many["epsilon"] <= 2.0


def test_noise_has_the_standard_deviation_sigma_clip_over_the_expected_size_of_a_batch(monkeypatch):
    monkeypatch.setattr(dp, "noise_multiplier", lambda privacy, *_: 3 / privacy.epsilon)
    config = replace(ONE_STEP, architecture="mlp:300", learning_rate=1.0)
    outcome, (before, after) = fit(config, epsilon=1.0, clip=0.3), by_hand(TABLE, config, 0.3)
    noise = vector(outcome.arrays) - after
    expected = float(outcome.arrays["noise_multiplier"]) * 0.3 / 80
    # 5 standard errors
    assert len(noise) == 2703 and noise.std() == pytest.approx(expected, rel=0.07)
    assert abs(noise.mean()) < 5 * expected / len(noise) ** 0.5
    # two steps, and so much noise that gradients do not count
    outcome = fit(replace(config, batch_size=40), epsilon=0.05)
    moved = vector(outcome.arrays) - before
    assert moved.std() == pytest.approx(
        2**0.5 * float(outcome.arrays["noise_multiplier"]) / 40, rel=0.07
    )


@pytest.mark.parametrize("epsilon, batch_size, steps", [(0.1, 80, 2), (1e6, 80, 2), (2.0, 30, 6)])
def test_what_is_spent_in_two_epochs_of_as_many_steps_as_batches_is_just_below_the_budget(
    epsilon, batch_size, steps
):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing that Opacus warns of in passing is seen
        outcome = fit(replace(MLP, batch_size=batch_size), epsilon=epsilon)
    spent, accountant = float(outcome.arrays["epsilon"]), accountants.RDPAccountant()
    accountant.history = [(float(outcome.arrays["noise_multiplier"]), batch_size / 80, steps)]
    assert 0.95 * epsilon <= spent <= epsilon
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert accountant.get_epsilon(1 / 80) == pytest.approx(spent, rel=1e-12)


def test_noise_grows_with_privacy_steps_and_the_share_drawn():
    def sigma(epsilon=2.0, delta=1e-5, **changes):
        return dp.noise_multiplier(Privacy(epsilon, delta), 200, replace(MLP, **changes))

    usual = sigma()
    assert sigma(0.5) > usual > sigma(delta=1e-2) > 0 == sigma(epochs=0)
    assert sigma(epochs=20) > usual < sigma(batch_size=50)


def test_batches_are_drawn_record_by_record_and_may_be_empty(monkeypatch):
    seen = []
    monkeypatch.setattr(
        recipe,
        "draw_views",
        lambda name, count, generator: seen.append(count) or torch.zeros(count, 0),
    )
    monkeypatch.setattr(dp, "noise_multiplier", lambda *_: 1.0)
    few = data.Dataset("few images", GREY.x[:6], GREY.y[:6], 6, GREY.classes)
    outcome = fit(TrainConfig("leino_cnn:2,2,4", epochs=20, batch_size=1), few, epsilon=3.0)
    assert len(seen) == outcome.arrays["body.6.calls"] == 120 and 0 in seen and max(seen) > 1
    assert abs(np.mean(seen) - 1) < 5 * (5 / 6 / 120) ** 0.5  # binomial with mean 1
    assert all(np.isfinite(value).all() for value in outcome.arrays.values())


def test_the_same_models_come_out_again_and_other_ones_otherwise(monkeypatch):
    monkeypatch.setattr(dp, "noise_multiplier", lambda *_: 1.0)
    config = TrainConfig("leino_cnn:2,2,4", epochs=2, batch_size=8, augmentation="flip_crop:1")
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first, again, second = (
        vector(fit(config, IMAGES, index, epsilon=2.0).arrays) for index in (0, 0, 1)
    )
    assert (torch.rand(3) == expected).all()  # the global random state is left alone
    assert (first == again).all() and (first == second).mean() < 0.05
    records = data.Dataset("but one", IMAGES.x[:-1], IMAGES.y[:-1], 39, IMAGES.classes)
    assert not (vector(fit(config, records, epsilon=2.0).arrays) == first).all()


def test_private_models_are_models_whether_the_pool_trains_them_or_this_process(
    tmp_path, monkeypatch
):
    there = private()
    assert there.missing() == [0, 1] and len(there) == 2
    loss = signals.loss(there, TABLE)
    assert loss.shape == signals.gradient_norm(there, TABLE).shape == (2, 80)
    assert there.missing() == []
    assert there.history().shape == (2, 2, 2)
    assert np.isfinite(there.history()).all()
    assert not there.model(0).training
    outputs = there.model(0)(torch.from_numpy(TABLE.x))
    own = (
        torch.nn.functional.cross_entropy(outputs, torch.from_numpy(TABLE.y), reduction="none")
        .detach()
        .numpy()
    )
    assert_allclose(loss[0], own, rtol=1e-4, atol=1e-5)
    there = [there.parameters(m) for m in (0, 1)]
    monkeypatch.setenv("MIA_CACHE", str(tmp_path / "another"))
    monkeypatch.setattr(pool, "run_tasks", dp._run_here)  # as on a graphics card
    threads = torch.get_num_threads()
    here = [private().parameters(m) for m in (0, 1)]
    torch.set_num_threads(threads)
    assert (np.array(there) == np.array(here)).all()


def test_each_model_is_kept_and_used_without_being_trained_again(monkeypatch):
    trained, first = [], float(private(workers=None, executor=HERE).arrays(0)["epsilon"])
    store.discard(private().spec(1))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "opacus", None)
        assert private().arrays(0)["epsilon"] == first  # what is kept needs no Opacus
    monkeypatch.setattr(
        pool,
        "run_tasks",
        lambda f, tasks, *a: trained.extend(task.indices[0] for task, *_ in tasks),
    )
    private().fit()
    assert trained == [1]


def test_a_private_model_can_go_on_from_another_and_privacy_and_start_are_part_of_what_determines_it():
    plain = training.train(TABLE, membership.balanced_halves(80, 2), MLP, executor=HERE)
    ensemble = private(config=replace(MLP, epochs=0), start=(plain, [1, 0]), executor=HERE)
    assert (ensemble.parameters(0) == plain.parameters(1)).all()
    assert ensemble.spec(0) != private(config=replace(MLP, epochs=0)).spec(0)
    first, *others = (
        dp.train(TABLE, plain.members, MLP, p)
        for p in (Privacy(1), Privacy(2), Privacy(1, delta=1e-5), Privacy(1, clip=2))
    )
    assert len({store.address(models.spec(0)) for models in (plain, first, *others)}) == 5
    assert dp.train(TABLE, plain.members, MLP, Privacy(1.0, clip=1)).spec(0) == first.spec(0)
    assert {**first.spec(0), "privacy": None} == {**plain.spec(0), "privacy": None}
    assert "privacy" not in plain.spec(0)


def test_what_cannot_be_trained_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(pool, "run_tasks", lambda *a: pytest.fail("work was begun"))
    with pytest.raises(MiaError, match="epsilon = 0.1 is less than.*delta = 1e-09"):
        dp.train(TABLE, membership.balanced_halves(80, 2), MLP, Privacy(0.1, delta=1e-9)).fit()
    with pytest.raises(
        MiaError, match=r"layer body\.0\.1\.1 \(BatchNorm2d\).*watson_cnn.*group normalisation"
    ):
        private(config=TrainConfig("resnet18", batch_size=4), records=IMAGES)
    for spare, words in (
        ("MultiheadAttention", r"layer spare \(MultiheadAttention\).*opacus.layers for attention"),
        ("Linear", "weights spare.weight have no gradients .* forward does not use"),
        ("Bilinear", "cannot differentiate it for single records .TypeError: "),
    ):
        with pytest.raises(MiaError, match=words):
            private(config=replace(MLP, architecture=partial(WithSpare, kind=spare)))
    monkeypatch.setitem(sys.modules, "opacus", None)
    with pytest.raises(MiaError, match=r"pip install 'mia_lib\[dp\]'.*pip install -e '\.\[dp\]'"):
        private().fit()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: Privacy(float("nan")), "epsilon = nan: .*above 0"),
        (lambda: Privacy(1, delta=1.0), "delta = 1.0: .*between 0 and 1"),
        (lambda: Privacy(1, clip=-1), "clip = -1: .*above 0"),
        (
            lambda: private(config=replace(MLP, batch_size=41)),
            "batch_size = 41, but .* 40 records.*at most 40",
        ),
        (
            lambda: private(config=replace(MLP, precision="bfloat16")),
            "precision = 'bfloat16'.*'float32'",
        ),
        (
            lambda: dp.train(
                TABLE, np.eye(80, dtype=bool)[:1], replace(MLP, batch_size=1), Privacy(1)
            ),
            "1 record: give delta",
        ),
        (lambda: dp.fit(TABLE.x, TABLE.y, 3, MLP, Privacy(1), size=0), "size = 0"),
        (lambda: dp.train(TABLE, np.ones((1, 3), bool), MLP, Privacy(1)), "members has 3 columns"),
    ],
)
def test_bad_input_is_refused_before_any_work(call, words):
    with pytest.raises(MiaError, match=words):
        call()
