"""Distances to the decision boundary from classes alone: against geometry, a search of the plane and the public toolbox."""

import math

import numpy as np
import pytest
import torch

from mia_lib import data, membership, models, signals, store, training
from mia_lib.errors import MiaError
from mia_lib.signals import boundary, mapping
from mia_lib.signals.boundary import hop_skip_jump
from mia_lib.training import TrainConfig

RNG = np.random.default_rng(0)
W = torch.tensor(RNG.normal(size=20))
X = torch.tensor(RNG.normal(size=(60, 20)))
TRUE = ((X @ W + 0.3).abs() / W.norm()).numpy()


def linear(x):
    """Class 1 where w . x > -0.3: the boundary is a plane."""
    return ((x * W).sum(-1) > -0.3).long()


Y = linear(X)


class Counted:
    """A model that sees which record it is asked about: records lie at multiples of 1000 in the first input."""

    def __init__(self, records):
        self.calls, self.sizes = np.zeros(records, int), []

    def __call__(self, x):
        number = (x[:, 0] / 1000).round().long()
        np.add.at(self.calls, number.numpy(), 1)
        self.sizes.append(len(x))
        return (x[:, 1] > 0).long()

    @staticmethod
    def records(count):
        x = torch.tensor(np.random.default_rng(1).normal(size=(count, 3)))
        x[:, 0] = 1000.0 * torch.arange(count)
        return x


# ----------------------------------------------------------------------------------------------------- what a distance is


@pytest.mark.parametrize("queries,median,worst", [(1000, 0.08, 0.25), (2500, 0.015, 0.025)])
def test_the_distance_to_a_plane_is_reached_from_above(queries, median, worst):
    """The true distance is |w . x + b| / |w|; what is found lies beyond the plane, so it is never less."""
    error = hop_skip_jump(linear, X, Y, queries).distance / TRUE - 1
    assert error.min() >= -1e-12 and np.median(error) < median and error.max() < worst


@pytest.mark.parametrize("size", [1, 2, 100])
def test_few_and_many_inputs_work_alike(size):
    w, x = torch.tensor(RNG.normal(size=size)), torch.tensor(RNG.normal(size=(50, size)))
    error = hop_skip_jump(lambda z: ((z * w).sum(-1) > 0.1).long(), x, ((x * w).sum(-1) > 0.1).long(), 3500).distance / (
        (x @ w - 0.1).abs() / w.norm()).numpy() - 1
    assert error.min() >= -1e-12 and np.median(error) < 0.05 and error.max() < 0.06


def test_a_smooth_network_in_the_plane_has_the_distance_of_a_fine_grid():
    model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()
    rng = np.random.default_rng(4)
    for weights in model.parameters():
        weights.data = torch.tensor(rng.normal(size=weights.shape) * 1.5)
    x = torch.tensor(rng.uniform(-1, 1, size=(40, 2)))
    line = torch.linspace(-4, 4, 1001, dtype=torch.float64)
    grid = torch.cartesian_prod(line, line)
    with torch.no_grad():
        y, there = model(x).argmax(1), model(grid).argmax(1)
    assert len(y.unique()) == 3
    expected = torch.stack([(grid[there != k] - point).norm(dim=1).min() for point, k in zip(x, y, strict=True)]).numpy()
    found = hop_skip_jump(lambda z: model(z).argmax(1), x, y, 2500, low=-4.0, high=4.0).distance
    spacing = 8 / 1000
    assert (found > expected - 1.5 * spacing).all()  # a walk may end at a farther part of a curved boundary, never closer
    assert (found < expected * 1.02 + spacing).mean() >= 0.8 and np.median(found / expected) < 1.02


def test_distances_have_the_unit_of_the_inputs():
    found = hop_skip_jump(linear, X, Y, 600)
    scaled = hop_skip_jump(lambda z: linear(z / 8), X * 8, Y, 600)
    assert (scaled.distance == 8 * found.distance).all() and (scaled.queries == found.queries).all()
    moved = hop_skip_jump(lambda z: linear(z - 5), X + 5, Y, 600).distance
    np.testing.assert_allclose(moved, found.distance, rtol=1e-6)


def test_points_stay_between_bounds_and_reach_the_boundary_there():
    """The plane x_1 + x_2 = 1.7 in the unit square: two of three normals leave it, where (1, 0.7) is the nearest point."""
    seen = []

    def predict(z):
        seen.append(z)
        return (z.sum(1) > 1.7).long()

    x = torch.tensor([[0.9, 0.3], [0.7, 0.7], [1.0, 0.2]], dtype=torch.float64)
    found = hop_skip_jump(predict, x, torch.zeros(3), 2500, low=0.0, high=torch.tensor([1.0, 1.0])).distance
    assert all(((z >= 0) & (z <= 1)).all() for z in seen)
    ratio = found / [np.hypot(0.1, 0.4), 0.3 / np.sqrt(2), 0.5]
    assert (ratio >= 1 - 1e-12).all() and (ratio < 1.05).all()


# ---------------------------------------------------------------------------------------------------- misclassified records


def test_wrong_records_have_distance_0_for_one_query_or_a_negative_one():
    labels = Y.clone()
    labels[:30] = 1 - labels[:30]
    right, found = hop_skip_jump(linear, X, Y, 1500), hop_skip_jump(linear, X, labels, 1500)
    assert (found.distance[:30] == 0).all() and (found.queries[:30] == 1).all()
    np.testing.assert_allclose(found.distance[30:], right.distance[30:], rtol=1e-9)
    assert (found.queries[30:] == right.queries[30:]).all()
    signed = hop_skip_jump(linear, X, labels, 1500, signed=True)
    sign = np.where(np.arange(60) < 30, -1, 1)  # with two classes both ways lead to one boundary
    np.testing.assert_allclose(signed.distance, sign * right.distance, rtol=1e-9)
    assert (signed.queries == right.queries).all()


def test_a_wrong_record_is_measured_to_its_own_class_and_not_to_just_any_other():
    """On a line: class 0 below 0, 1 up to 1, 2 from there. What is 1.5 and labelled 0 has 1 closer by."""
    def predict(z):
        return (z[:, 0] > 0).long() + (z[:, 0] > 1).long()

    x = torch.tensor([[-1.0], [0.9], [1.5], [3.0]], dtype=torch.float64)
    found = hop_skip_jump(predict, x, [0, 1, 0, 1], 500, signed=True).distance
    np.testing.assert_allclose(found, [1.0, 0.1, -1.5, -2.0], rtol=2e-3)


# ---------------------------------------------------------------------------------------------------------------- the start


def test_where_random_points_fail_the_walk_starts_at_the_nearest_record_of_another_class():
    """Class 1 is a ball too small for random points to hit: only a record inside leads there."""
    def predict(z):
        return ((z - 3).norm(dim=1) < 0.5).long()

    x = torch.tensor(RNG.normal(size=(12, 6)))
    x[-1] = 3.1
    true = ((x - 3).norm(dim=1) - 0.5).abs().numpy()
    found = hop_skip_jump(predict, x, predict(x), 2500)
    np.testing.assert_allclose(found.distance[:-1], true[:-1], rtol=0.02)
    assert (found.queries <= 2500).all()
    nowhere = hop_skip_jump(predict, x[:3], torch.zeros(3), 2500)
    assert np.isinf(nowhere.distance).all() and (nowhere.queries == 101).all()
    assert (hop_skip_jump(predict, x[:3], torch.ones(3), 2500, signed=True).distance == -np.inf).all()
    x[-2], asked = 3.0, []
    hop_skip_jump(lambda z: asked.append(z) or predict(z), x, predict(x), 500, starts=0)
    middle = (x[:-2] + torch.where(((x[:-2] - x[-2]).norm(dim=1) < (x[:-2] - x[-1]).norm(dim=1))[:, None], x[-2], x[-1])) / 2
    assert torch.allclose(asked[1][:len(middle)], middle)  # the first bisection: to the nearer of the two


# --------------------------------------------------------------------------------------------------------------- the budget


@pytest.mark.parametrize("queries", [222, 400])
def test_no_record_is_asked_about_more_than_the_budget_and_the_account_is_exact(queries):
    x = Counted.records(9)
    low, high = torch.tensor([-400.0, -2.0, -2.0]), torch.tensor([8400.0, 2.0, 2.0])
    model, asked = Counted(9), []
    total = hop_skip_jump(lambda z: asked.append(len(z)) or model(z), x, Counted(9)(x), queries, low=low, high=high).queries
    assert sum(asked) == total.sum() and (total <= queries).all()
    one_by_one = [hop_skip_jump(counter := Counted(9), x[[n]], Counted(9)(x)[[n]], queries, low=low, high=high).queries[0]
                  == counter.calls.sum() for n in range(9)]
    assert all(one_by_one)


def test_more_queries_never_give_a_longer_distance_and_in_the_end_a_shorter_one():
    budgets = [222, 250, 371, 800, 2500]
    found = np.stack([hop_skip_jump(linear, X, Y, q).distance for q in budgets])
    assert (np.diff(found, axis=0) <= 0).all() and (found[-1] < 0.9 * found[0]).all()
    before = np.inf
    for budget in range(42, 60):  # ends everywhere: in a direction, a step and a bisection
        found = hop_skip_jump(linear, X, Y, budget, starts=0, evaluations=20)
        assert (found.distance <= before).all() and (found.queries <= budget).all()
        before = found.distance


def test_directions_are_asked_for_in_the_sizes_of_the_paper():
    sizes = []
    hop_skip_jump(lambda z: sizes.append(len(z)) or linear(z), X[:1], Y[:1], 2500, low=-5, high=5, evaluations=50)
    probes = [n for n in sizes if n > 1]
    assert probes == [int(50 * np.sqrt(t)) for t in range(1, len(probes) + 1)] and len(probes) > 10


# ---------------------------------------------------------------------------------------------------- seeds, batches, company


def test_the_seed_decides_and_neither_batches_nor_company_do():
    whole = hop_skip_jump(linear, X, Y, 900, seed=4)
    again = hop_skip_jump(linear, X, Y, 900, seed=4)
    assert (again.distance == whole.distance).all() and (again.queries == whole.queries).all()
    assert not np.isclose(hop_skip_jump(linear, X, Y, 900, seed=5).distance, whole.distance, rtol=1e-6).any()
    bounds = {"low": -5.0, "high": 5.0}  # without, starts have the range of the records
    whole = hop_skip_jump(linear, X, Y, 900, seed=4, **bounds)
    order = RNG.permutation(60)[:25]
    some = hop_skip_jump(linear, X[order], Y[order], 900, seed=4, **bounds)
    np.testing.assert_allclose(some.distance, whole.distance[order], rtol=1e-9)
    assert (some.queries == whole.queries[order]).all()
    state = torch.random.get_rng_state()
    hop_skip_jump(linear, X[:2], Y[:2], 300)
    assert torch.equal(torch.random.get_rng_state(), state)


# -------------------------------------------------------------------------------------------------------------- the toolbox


@pytest.mark.filterwarnings("ignore")
def test_the_public_toolbox_finds_the_same_distances_once_its_last_point_is_brought_to_the_boundary():
    """The Adversarial Robustness Toolbox with 10 steps asks for about 2,380 predictions a record. It returns the point after
    the last step, 1 + 1 / sqrt(10) times as far where the walk has settled.

    Compared by the median over records of the ratio of the two distances, which has a standard deviation of about 0.01 over
    networks and machines; that of the ratio of the two medians is three times as large."""
    pytest.importorskip("art", reason="the Adversarial Robustness Toolbox is not installed")
    from art.attacks.evasion import HopSkipJump
    from art.estimators.classification import BlackBoxClassifierNeuralNetwork

    bound = 4.0
    x = torch.randn(200, 20, generator=torch.Generator().manual_seed(1))
    y, architecture = (x.square().sum(1) > 20).long(), models.build("mlp:40", (20,), 2, seed=0)
    x = x.clamp(-bound, bound)
    optimiser = torch.optim.Adam(architecture.parameters(), 0.01)
    for _ in range(100):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(architecture(x), y).backward()
        optimiser.step()
    network, x, asked = architecture.requires_grad_(False).eval(), x[:40], []

    def predict(z):
        return network(z).argmax(1)

    def scores(z):
        asked.append(len(z))
        return network(torch.as_tensor(z, dtype=torch.float32)).softmax(1).numpy()

    state = np.random.get_state()
    np.random.seed(0)
    classifier = BlackBoxClassifierNeuralNetwork(scores, (20,), 2, clip_values=(-bound, bound))
    attack = HopSkipJump(classifier, batch_size=1000, norm=2, max_iter=10, init_eval=100, init_size=100, verbose=False)
    theirs = torch.as_tensor(attack.generate(x.numpy()))
    np.random.set_state(state)
    far, y = torch.ones(len(x)), predict(x)
    for k in range(1, 16):  # bisection
        closer = far - 0.5 ** k
        far = torch.where(predict(x + closer[:, None] * (theirs - x)) != y, closer, far)
    raw = (theirs - x).flatten(1).norm(dim=1)
    ours = hop_skip_jump(predict, x, y, 2500, low=-bound, high=bound)
    queries = sum(asked) / len(x)
    assert 2300 < queries < 2500 and abs(ours.queries.mean() / queries - 1) < 0.05
    assert np.median(ours.distance / (far * raw).numpy()) == pytest.approx(1, abs=0.05)
    assert np.corrcoef(ours.distance, far * raw)[0, 1] > 0.5
    assert far.median() == pytest.approx(1 / (1 + 10 ** -0.5), rel=0.02)


# -------------------------------------------------------------------------------------------------------------- an ensemble


TABLE = data.Dataset("toy table", X[:30, :5].float().numpy(), RNG.integers(0, 2, 30), 30, ("no", "yes"))
IMAGES = data.Dataset("toy images", RNG.integers(0, 256, (20, 4, 4, 1), dtype=np.uint8), RNG.integers(0, 2, 20), 20,
                      ("a", "b"))


@pytest.fixture
def ensemble(isolated_cache):
    return training.train(TABLE, membership.balanced_halves(30, 2), TrainConfig("mlp:3", epochs=5))


@pytest.mark.parametrize("records,architecture", [(TABLE, "mlp:3"), (IMAGES, "tanh_cnn:2,3,4")])
def test_an_ensemble_has_the_distances_of_its_models_and_computes_them_once(records, architecture, isolated_cache,
                                                                            monkeypatch):
    monkeypatch.setattr(mapping, "_in_pool", mapping._in_process)
    trained = training.train(records, membership.balanced_halves(len(records), 2), TrainConfig(architecture, epochs=5))
    found = boundary.distance(trained, records, 400, seed=2)
    assert found.distance.shape == found.queries.shape == (2, len(records))
    assert (found.distance.dtype, found.queries.dtype) == (np.float32, np.int64)
    bounds = {} if records is TABLE else {"low": -1.0, "high": 1.0}
    for m in range(2):
        network = trained.model(m).eval()
        expected = hop_skip_jump(lambda z, network=network: network(z).argmax(1), models.to_input(records.x), records.y, 400,
                                 seed=2, **bounds)
        np.testing.assert_array_equal(found.distance[m], expected.distance.astype(np.float32))
        np.testing.assert_array_equal(found.queries[m], expected.queries)
    right = signals.correctness(trained, records)
    assert ((found.distance == 0) == ~right).all() and ((found.queries == 1) == ~right).all() and right.any()
    signed = boundary.distance(trained, records, 400, seed=2, signed=True).distance
    assert ((signed < 0) == ~right).all() and (signed[right] == found.distance[right]).all()
    monkeypatch.setattr(mapping, "_in_process", lambda *a: pytest.fail("everything is in the store"))
    assert (boundary.distance(trained, records, 400, seed=2).distance == found.distance).all()


def test_the_pool_computes_what_this_process_does_and_what_matters_is_in_the_key(ensemble, monkeypatch):
    pooled = boundary.distance(ensemble, TABLE, 400)
    for how in ({"queries": 401}, {"seed": 1}, {"signed": True}, {"starts": 0}):
        boundary.distance(ensemble, TABLE, **{"queries": 400, **how})
    some = boundary.distance(ensemble, TABLE.take(np.arange(10)), 400)
    assert some.distance.shape == (2, 10) and len(list((store.cache_dir() / "boundary").rglob("*.npz"))) == 12
    (store.cache_dir() / "boundary").rename(store.cache_dir() / "old")
    monkeypatch.setattr(mapping, "_in_pool", mapping._in_process)
    np.testing.assert_allclose(boundary.distance(ensemble, TABLE, 400).distance, pooled.distance, rtol=1e-3)


@pytest.mark.parametrize("call,words", [
    (lambda e: hop_skip_jump(linear, X, Y, None), "queries = None: give the number .* at least 222 for 20 inputs"),
    (lambda e: hop_skip_jump(linear, X, Y, 221), "queries = 221: .* at least 222"),
    (lambda e: hop_skip_jump(linear, X[0], Y, 500), r"shape \(20,\): give float32"),
    (lambda e: hop_skip_jump(linear, X, Y[:5], 500), r"labels have shape \(5,\): give \[60\]"),
    (lambda e: hop_skip_jump(linear, torch.where(X == X[3, 2], math.nan, X), Y, 500), "x holds 1 values that are not finite"),
    (lambda e: hop_skip_jump(linear, X, Y, 500, low=0.0), "low = 0.0 and high = None: give both"),
    (lambda e: hop_skip_jump(linear, X, Y, 500, low=-1.0, high=1.0), "leave records outside, whose values run from -"),
    (lambda e: hop_skip_jump(linear, X, Y, 500, evaluations=1), "evaluations = 1 is out of range"),
    (lambda e: hop_skip_jump(linear, X, Y, 500, starts=-1), "starts = -1 is out of range"),
    (lambda e: hop_skip_jump(lambda z: z @ W, X, Y, 500), r"type torch.float64 for 60 inputs: it must give \[60\] integers"),
    (lambda e: hop_skip_jump(lambda z: linear(z)[:, None], X, Y, 500), r"shape \(60, 1\)"),
    (lambda e: boundary.distance(e, TABLE, 200), "queries = 200: .* at least 222 for 5 inputs"),
    (lambda e: boundary.distance(e, IMAGES, 400), "toy images have shape")])
def test_bad_input_is_refused_before_any_work(ensemble, call, words):
    with pytest.raises(MiaError, match=words):
        call(ensemble)
    assert ensemble.missing() == [0, 1]
