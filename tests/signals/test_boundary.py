"""Distances to the decision boundary from classes alone: against geometry, a search of the plane and the public toolbox."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from mia_lib import data, membership, models, signals, training
from mia_lib.errors import MiaError
from mia_lib.signals import boundary, mapping
from mia_lib.signals.boundary import hop_skip_jump
from mia_lib.training import TrainConfig

RNG = np.random.default_rng(0)
W = torch.tensor(RNG.normal(size=20))
X = torch.tensor(RNG.normal(size=(60, 20)))


def linear(x):
    """Class 1 where w . x > -0.3: the boundary is a plane."""
    return ((x * W).sum(-1) > -0.3).long()


Y = linear(X)


@pytest.mark.parametrize(
    "size,queries,median,worst",
    [
        (20, 1000, 0.08, 0.25),
        (20, 2500, 0.015, 0.025),
        (1, 3500, 0.05, 0.06),
        (100, 3500, 0.05, 0.06),
    ],
)
def test_the_distance_to_a_plane_is_reached_from_above(size, queries, median, worst):
    """The true distance is |w . x + b| / |w|; what is found lies beyond the plane, so it is never less."""
    w, x = (
        (W, X)
        if size == 20
        else (torch.tensor(RNG.normal(size=size)), torch.tensor(RNG.normal(size=(50, size))))
    )

    def predict(z):
        return ((z * w).sum(-1) > -0.3).long()

    error = (
        hop_skip_jump(predict, x, predict(x), queries).distance
        / ((x @ w + 0.3).abs() / w.norm()).numpy()
        - 1
    )
    assert error.min() >= -1e-12 and np.median(error) < median and error.max() < worst


def test_a_smooth_network_in_the_plane_has_the_distance_of_a_fine_grid():
    rng = np.random.default_rng(4)
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    ).double()
    for weights in model.parameters():
        weights.data = torch.tensor(rng.normal(size=weights.shape) * 1.5)
    x = torch.tensor(rng.uniform(-1, 1, size=(40, 2)))
    line = torch.linspace(-4, 4, 1001, dtype=torch.float64)
    grid = torch.cartesian_prod(line, line)
    with torch.no_grad():
        y, there = model(x).argmax(1), model(grid).argmax(1)
    assert len(y.unique()) == 3
    expected = torch.stack(
        [(grid[there != k] - point).norm(dim=1).min() for point, k in zip(x, y, strict=True)]
    ).numpy()
    found = hop_skip_jump(lambda z: model(z).argmax(1), x, y, 2500, low=-4.0, high=4.0).distance
    # 1.5 spacings: a walk may end at a farther part of the boundary, never closer
    assert (found > expected - 0.012).all()
    assert (found < expected * 1.02 + 0.008).mean() >= 0.8 and np.median(found / expected) < 1.02


def test_points_stay_between_bounds_and_reach_the_boundary_there():
    """The plane x_1 + x_2 = 1.7 in the unit square: two of three normals leave it, where (1, 0.7) is the nearest point."""
    seen, x = [], torch.tensor([[0.9, 0.3], [0.7, 0.7], [1.0, 0.2]], dtype=torch.float64)
    found = hop_skip_jump(
        lambda z: seen.append(z) or (z.sum(1) > 1.7).long(),
        x,
        torch.zeros(3),
        2500,
        low=0.0,
        high=torch.tensor([1.0, 1.0]),
    ).distance
    assert all(((z >= 0) & (z <= 1)).all() for z in seen)
    ratio = found / [np.hypot(0.1, 0.4), 0.3 / np.sqrt(2), 0.5]
    assert (ratio >= 1 - 1e-12).all() and (ratio < 1.05).all()


def test_wrong_records_have_distance_0_for_one_query_or_a_negative_one_to_their_own_class():
    labels, wrong = torch.cat([1 - Y[:30], Y[30:]]), np.arange(60) < 30
    right, found = hop_skip_jump(linear, X, Y, 1500), hop_skip_jump(linear, X, labels, 1500)
    assert_allclose(found.distance, np.where(wrong, 0, right.distance), rtol=1e-9)
    assert (found.queries == np.where(wrong, 1, right.queries)).all()
    # with two classes both ways lead to one boundary
    signed = hop_skip_jump(linear, X, labels, 1500, signed=True)
    assert_allclose(signed.distance, np.where(wrong, -1, 1) * right.distance, rtol=1e-9)
    assert (signed.queries == right.queries).all()
    # on a line class 0 is below 0, 1 up to 1, 2 from there: what is 1.5 and labelled 0 has 1 closer by, to which it is not
    line = torch.tensor([[-1.0], [0.9], [1.5], [3.0]], dtype=torch.float64)
    found = hop_skip_jump(
        lambda z: (z[:, 0] > 0).long() + (z[:, 0] > 1), line, [0, 1, 0, 1], 500, signed=True
    ).distance
    assert_allclose(found, [1.0, 0.1, -1.5, -2.0], rtol=2e-3)


def test_where_random_points_fail_the_walk_starts_at_the_nearest_record_of_another_class():
    """Class 1 is a ball too small for random points to hit: only a record inside leads there."""
    x, asked = torch.tensor(RNG.normal(size=(12, 6))), []

    def predict(z):
        asked.append(z)
        return ((z - 3).norm(dim=1) < 0.5).long()

    x[-1] = 3.1
    found = hop_skip_jump(predict, x, predict(x), 2500)
    assert_allclose(found.distance[:-1], (x[:-1] - 3).norm(dim=1) - 0.5, rtol=0.02)
    assert (found.queries <= 2500).all()
    nowhere = hop_skip_jump(predict, x[:3], torch.zeros(3), 2500)
    assert np.isinf(nowhere.distance).all() and (nowhere.queries == 101).all()
    assert (
        hop_skip_jump(predict, x[:3], torch.ones(3), 2500, signed=True).distance == -np.inf
    ).all()
    x[-2] = 3.0
    labels = predict(x)
    asked.clear()
    hop_skip_jump(predict, x, labels, 500, starts=0)
    middle = (
        x[:-2]
        + torch.where(
            ((x[:-2] - x[-2]).norm(dim=1) < (x[:-2] - x[-1]).norm(dim=1))[:, None], x[-2], x[-1]
        )
    ) / 2
    # the first bisection: to the nearer of the two
    assert torch.allclose(asked[1][: len(middle)], middle)


def test_more_queries_never_give_a_longer_distance_and_no_record_is_asked_about_more_than_its_budget():
    found = np.stack(
        [hop_skip_jump(linear, X, Y, queries).distance for queries in (222, 250, 371, 800, 2500)]
    )
    assert (np.diff(found, axis=0) <= 0).all() and (found[-1] < 0.9 * found[0]).all()
    before, asked = np.inf, []
    # ends everywhere: in a direction, a step and a bisection
    for budget in (*range(42, 60, 3), *range(69, 84)):
        asked.clear()
        found = hop_skip_jump(
            lambda z: asked.append(len(z)) or linear(z), X, Y, budget, starts=0, evaluations=20
        )
        assert (found.distance <= before).all()
        assert (found.queries <= budget).all()
        assert found.queries.sum() == sum(asked)
        before = found.distance


def test_the_seed_decides_and_neither_batches_nor_company_do():
    state = torch.random.get_rng_state()
    whole = hop_skip_jump(linear, X, Y, 900, seed=4)
    assert torch.equal(torch.random.get_rng_state(), state)
    again = hop_skip_jump(linear, X, Y, 900, seed=4)
    assert (again.distance == whole.distance).all() and (again.queries == whole.queries).all()
    assert not np.isclose(
        hop_skip_jump(linear, X, Y, 900, seed=5).distance, whole.distance, rtol=1e-6
    ).any()
    bounds = {"low": -5.0, "high": 5.0}  # without, starts have the range of the records
    whole = hop_skip_jump(linear, X, Y, 900, seed=4, **bounds)
    order = RNG.permutation(60)[:25]
    some = hop_skip_jump(linear, X[order], Y[order], 900, seed=4, **bounds)
    assert_allclose(some.distance, whole.distance[order], rtol=1e-9)
    assert (some.queries == whole.queries[order]).all()


@pytest.mark.filterwarnings("ignore")
def test_the_public_toolbox_finds_the_same_distances_once_its_last_point_is_brought_to_the_boundary():
    """With 10 steps it asks for about 2,380 predictions a record, and returns the point after the last step, 1 + 1 / sqrt(10)
    times as far. The median ratio of the two distances has a standard deviation of about 0.01."""
    pytest.importorskip("art", reason="the Adversarial Robustness Toolbox is not installed")
    from art.attacks.evasion import HopSkipJump
    from art.estimators.classification import BlackBoxClassifierNeuralNetwork

    x = torch.randn(200, 20, generator=torch.Generator().manual_seed(1))
    y = (x.square().sum(1) > 20).long()
    network = models.build("mlp:40", (20,), 2, seed=0)
    asked = []
    x = x.clamp(-4, 4)
    optimiser = torch.optim.Adam(network.parameters(), 0.01)
    for _ in range(100):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(network(x), y).backward()
        optimiser.step()
    network.requires_grad_(False).eval()
    x = x[:40]

    def predict(z):
        return network(z).argmax(1)

    def scores(z):
        asked.append(len(z))
        return network(torch.as_tensor(z, dtype=torch.float32)).softmax(1).numpy()

    state = np.random.get_state()
    np.random.seed(0)
    classifier = BlackBoxClassifierNeuralNetwork(scores, (20,), 2, clip_values=(-4, 4))
    attack = HopSkipJump(
        classifier,
        batch_size=1000,
        norm=2,
        max_iter=10,
        init_eval=100,
        init_size=100,
        verbose=False,
    )
    theirs = torch.as_tensor(attack.generate(x.numpy()))
    np.random.set_state(state)
    far, y = torch.ones(len(x)), predict(x)
    for k in range(1, 16):  # bisection
        closer = far - 0.5**k
        far = torch.where(predict(x + closer[:, None] * (theirs - x)) != y, closer, far)
    brought = (far * (theirs - x).norm(dim=1)).numpy()
    ours, queries = hop_skip_jump(predict, x, y, 2500, low=-4, high=4), sum(asked) / len(x)
    assert 2300 < queries < 2500 and abs(ours.queries.mean() / queries - 1) < 0.05
    assert np.median(ours.distance / brought) == pytest.approx(1, abs=0.05)
    assert np.corrcoef(ours.distance, brought)[0, 1] > 0.5
    assert far.median() == pytest.approx(1 / (1 + 10**-0.5), rel=0.02)


TABLE = data.Dataset(
    "toy table", X[:30, :5].float().numpy(), RNG.integers(0, 2, 30), 30, ("no", "yes")
)
IMAGES = data.from_arrays(
    RNG.integers(0, 256, (20, 4, 4, 1), dtype=np.uint8), RNG.integers(0, 2, 20), "toy images"
)


@pytest.mark.parametrize("records,architecture", [(TABLE, "mlp:3"), (IMAGES, "tanh_cnn:2,3,4")])
def test_an_ensemble_has_the_distances_of_its_models_and_computes_what_was_not_asked_before(
    records, architecture, isolated_cache, monkeypatch
):
    monkeypatch.setattr(mapping, "_in_pool", mapping._in_process)
    trained = training.train(
        records, membership.balanced_halves(len(records), 2), TrainConfig(architecture, epochs=5)
    )
    found = boundary.distance(trained, records, 400, seed=2)
    assert (found.distance.dtype, found.queries.dtype) == (np.float32, np.int64)
    bounds = {} if records is TABLE else {"low": -1.0, "high": 1.0}
    for m in range(2):
        network = trained.model(m).eval()
        expected = hop_skip_jump(
            lambda z, network=network: network(z).argmax(1),
            models.to_input(records.x),
            records.y,
            400,
            seed=2,
            **bounds,
        )
        assert_array_equal(found.distance[m], expected.distance.astype(np.float32))
        assert_array_equal(found.queries[m], expected.queries)
    right = signals.correctness(trained, records)
    assert ((found.distance == 0) == ~right).all()
    assert ((found.queries == 1) == ~right).all()
    assert right.any()
    signed = boundary.distance(trained, records, 400, seed=2, signed=True).distance
    assert ((signed < 0) == ~right).all() and (signed[right] == found.distance[right]).all()
    monkeypatch.setattr(mapping, "_in_pool", lambda *a: pytest.fail("it is not in the store"))
    assert (boundary.distance(trained, records, 400, seed=2).distance == found.distance).all()
    for other in (
        {"queries": 401},
        {"seed": 1},
        {"starts": 0},
        {"records": records.take(np.arange(10))},
    ):
        with pytest.raises(pytest.fail.Exception):
            boundary.distance(
                **{"models": trained, "records": records, "queries": 400, "seed": 2} | other
            )


@pytest.mark.parametrize(
    "call,words",
    [
        (
            lambda e: hop_skip_jump(linear, X, Y, None),
            "queries = None: give the number .* at least 222 for 20 inputs",
        ),
        (lambda e: hop_skip_jump(linear, X[0], Y, 500), r"shape \(20,\): give float32"),
        (lambda e: hop_skip_jump(linear, X, Y[:5], 500), r"labels have shape \(5,\): give \[60\]"),
        (
            lambda e: hop_skip_jump(linear, torch.where(X == X[3, 2], math.nan, X), Y, 500),
            "x holds 1 values that are not finite",
        ),
        (
            lambda e: hop_skip_jump(linear, X, Y, 500, low=0.0),
            "low = 0.0 and high = None: give both",
        ),
        (
            lambda e: hop_skip_jump(linear, X, Y, 500, low=-1.0, high=1.0),
            "leave records outside, whose values run from -",
        ),
        (
            lambda e: hop_skip_jump(linear, X, Y, 500, evaluations=1),
            "evaluations = 1 is out of range",
        ),
        (lambda e: hop_skip_jump(linear, X, Y, 500, starts=-1), "starts = -1 is out of range"),
        (
            lambda e: hop_skip_jump(lambda z: z @ W, X, Y, 500),
            r"type torch.float64 for 60 inputs: it must give \[60\] integers",
        ),
        (lambda e: boundary.distance(e, TABLE, 200), "queries = 200: .* at least 222 for 5 inputs"),
    ],
)
def test_bad_input_is_refused_before_any_work(isolated_cache, call, words):
    ensemble = training.train(TABLE, membership.balanced_halves(30, 2), TrainConfig("mlp:3"))
    with pytest.raises(MiaError, match=words):
        call(ensemble)
    assert ensemble.missing() == [0, 1]
