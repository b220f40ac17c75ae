"""What the chapter on quantile regression computes, beside loops over its records."""

import sys
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass, replace
from types import SimpleNamespace

import jupytext
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from mia_lib import data, membership, metrics, signals, store, training
from mia_lib.attacks import baselines, quantile
from mia_lib.attacks.quantile import GaussianQuantile, PinballQuantile, networks, pinball_position, trees
from mia_lib.attacks.quantile.networks import NetworkConfig
from mia_lib.attacks.quantile.trees import TreeConfig
from mia_lib.errors import MiaError
from mia_lib.papers.quantile import study
from mia_lib.publish.parameters import find_root
from mia_lib.training import TrainConfig
from mia_lib.training.backends import pool

for package in ("catboost", "optuna"):
    pytest.importorskip(package, reason=f"{package} is not installed: pip install -e '.[tabular]'")
pytestmark = pytest.mark.usefixtures("module_cache")

SPLITS = (0.5, 0.2, 0.3)
SIZES = {"pool": 400, "public": 400, "models": 6, "targets": 2, "counts": (2, 4), "splits": SPLITS}
IMAGES = {"dataset": "fashion_mnist_20k", "config": TrainConfig("mlp:8", epochs=3), "views": "flip_crop:2", **SIZES}
TABLES = {"dataset": "german_credit", "config": TreeConfig(iterations=10, depth=2), **SIZES}
NETWORK = NetworkConfig("mlp:8", hidden=(8,), epochs=2, learning_rate=0.01)
FOREST = TreeConfig(iterations=12, depth=2)
NETWORKS = {"gauss": NETWORK, "pinball": replace(NETWORK, epochs=3)}
FORESTS = {"gauss": FOREST, "pinball": replace(FOREST, iterations=20)}
GRID = study.fitted_levels(6)
HEADS = list(study.HEADS)
FIT, SELECTION, CALIBRATION = slice(0, 200), slice(200, 280), slice(280, 400)


@pytest.fixture(scope="module")
def images():
    case = study.image_case(**IMAGES)
    assert case.scores and len(case.scores_of_views)  # the models are trained here, not within a test
    return case


@pytest.fixture(scope="module")
def tables():
    case = study.table_case(**TABLES)
    assert case.scores
    return case


@pytest.fixture(scope="module")
def played(images):
    return study.play(images, NETWORKS, HEADS, GRID)


@pytest.fixture(scope="module")
def forest_played(tables):
    return study.play(tables, FORESTS, HEADS, GRID)


@pytest.fixture(params=["images", "tables"])
def game(request, played, forest_played):
    """A case, the settings of its regressions, and its play."""
    found = {"images": (NETWORKS, played), "tables": (FORESTS, forest_played)}[request.param]
    return request.getfixturevalue(request.param), *found


@pytest.fixture
def untrained(monkeypatch):
    """Nothing may be trained, fitted or asked of a model."""
    def refuse(function, tasks, *_, **__):
        raise AssertionError(f"{len(tasks)} tasks of {function.__name__}")

    monkeypatch.setattr(pool, "run_tasks", refuse)


@pytest.fixture
def counted(monkeypatch):
    """The tasks that are run, by the name of what does them."""
    seen, run = [], pool.run_tasks

    def watch(function, tasks, *given, **named):
        seen.extend(getattr(task[0], "func", function).__name__ for task in tasks)
        run(function, tasks, *given, **named)

    monkeypatch.setattr(pool, "run_tasks", watch)
    return seen


@pytest.fixture
def inline(monkeypatch):
    """Tasks run in this process, where an error ends no pool."""
    threads = torch.get_num_threads()

    def run(function, tasks, finished, *_, **__):
        for k, task in enumerate(tasks):
            finished(k, function(*task))

    monkeypatch.setattr(pool, "run_tasks", run)
    yield
    torch.set_num_threads(threads)


def altered(case, of_pool=None, of_public=None, **changes):
    """The case with other fields, or had its models other scores; no model is asked for them."""
    other = replace(case, **changes)
    other.__dict__["scores"] = tuple(own if given is None else given
                                     for own, given in zip(case.scores, (of_pool, of_public), strict=True))
    return other


def asked(case, settings, *heads, size=None, target=0):
    """The regressions of some heads against one target, and what they say."""
    given = settings if isinstance(settings, dict) else dict.fromkeys(NETWORKS, settings)
    wanted = [study.Regression(target, head, given[study.HEADS[head].kind], GRID, size) for head in heads]
    return list(zip(wanted, study.regressions(case, wanted), strict=True))


def toy(kind, count=300):
    """Records that know their number."""
    number = np.arange(count)
    if kind == "tables":
        x = np.stack([number, number % 7], 1).astype(np.float32)
    else:
        x = np.stack([number // 256, number % 256], 1).astype(np.uint8).reshape(count, 1, 2, 1).repeat(4, 1)
    return data.Dataset("german_credit", x, number % 2, count, ("no", "yes"))


def numbers(records):
    x = records.x.astype(int)
    return x[:, 0, 0, 0] * 256 + x[:, 0, 1, 0] if records.is_image else x[:, 0]


def pinball(observed, predicted, level):
    """Definition 3, record by record."""
    return np.mean([level * (y - q) if y >= q else (1 - level) * (q - y)
                    for y, q in zip(observed, predicted, strict=True)])


def equal(one, other, part=False):
    """That two findings agree in every array, or in those of the first."""
    if isinstance(one, dict):
        assert set(one) <= set(other) if part else set(one) == set(other)
        for key, value in one.items():
            equal(value, other[key], part)
    elif is_dataclass(one) and not isinstance(one, study.Method):
        equal(vars(one), vars(other), part)
    elif isinstance(one, tuple):
        assert one == other
    else:
        assert_array_equal(one, other)


def order_statistic(score, alpha):
    """The k-th smallest of n with k = ceil((n + 1)(1 - alpha)); not a number where there is none."""
    k = int(np.ceil((len(score) + 1) * (1 - alpha) - 1e-9))
    return sorted(score)[k - 1] if k <= len(score) else np.nan


# ------------------------------------------------------------------------------------------------------------- the cases


@pytest.mark.parametrize("kind", ["images", "tables"])
@pytest.mark.parametrize("public,sizes", [(100, (50, 20, 30)), (0, (110, 44, 66))])
def test_no_record_has_two_roles(kind, public, sizes, monkeypatch):
    monkeypatch.setattr(data, "load", lambda name: toy(kind))
    make, given = (study.image_case, IMAGES) if kind == "images" else (study.table_case, TABLES)
    cases = [make(**given | {"pool": 80, "public": public, "seed": seed}) for seed in (3, 3, 4)]
    for case in cases:
        outside = numbers(case.public)
        parts = {name: outside[rows] for name, rows in case.splits.items()} | {"pool": numbers(case.pool)}
        assert {name: len(part) for name, part in parts.items()} == dict(
            zip(("fit", "selection", "calibration", "pool"), (*sizes, 80), strict=True))
        everyone = np.concatenate(list(parts.values()))
        assert len(set(everyone)) == len(everyone) == 80 + sum(sizes) and set(everyone) <= set(range(300))
        assert_array_equal(case.pool.y, numbers(case.pool) % 2)  # labels stay with their records
        assert (case.bank.members[0::2] ^ case.bank.members[1::2]).all() and (case.bank.members.sum(1) == 40).all()
        assert_array_equal(case.bank.judged, case.bank.members[:2])
    one, again, other = cases
    assert one.spec == again.spec and one.recipe == again.recipe == replace(given["config"], seed=3)
    for field in ("pool", "public"):
        assert set(numbers(getattr(one, field))) != set(numbers(getattr(other, field)))
    assert (one.bank.members != other.bank.members).any() and one.recipe.seed != other.recipe.seed


def test_real_cases_hold_what_was_asked_for(images, tables):
    whole = {one.tobytes() for one in data.load("fashion_mnist_20k").x}
    for case, records in ((images, images.seen), (tables, tables.seen)):
        assert [len(one) for one in records] == [400] * len(records) and len(case.bank.members) == 6
        assert (case.bank.attacked, case.counts) == ((0, 1), (2, 4))
        assert case.methods == (study.MARGINAL, study.lira(2), study.lira(4), study.lira(4, own=True),
                                study.lira(4, offline=True))
        assert replace(case, counts=(2,)).methods == (study.MARGINAL, study.lira(2), study.lira(2, offline=True))
        assert study.lira(64, own=True) not in replace(case, counts=(64,)).methods  # which has own spreads anyway
        for part, rows in zip(("fit", "selection", "calibration"), (FIT, SELECTION, CALIBRATION), strict=True):
            assert_array_equal(case.splits[part], np.arange(400)[rows])
    inside, outside = ({one.tobytes() for one in part.x} for part in images.seen[:2])
    assert not inside & outside and inside | outside <= whole
    assert (images.name, images.architecture, images.is_image) == ("FashionMNIST", "mlp:8", True)
    assert (tables.name, tables.architecture, tables.is_image) == ("German credit", "boosted trees", False)


def test_a_view_is_its_own_image_moved(images):
    view = images.seen[2]
    assert_array_equal(view.y, images.pool.y)
    for x, moved in list(zip(images.pool.x, view.x, strict=True))[:40]:
        wide = np.pad(x[..., 0], 2, mode="edge")
        shifts = [wide[r:r + 28, c:c + 28] for r in range(5) for c in range(5)]
        assert any((moved[..., 0] == s).all() or (moved[..., 0] == s[:, ::-1]).all() for s in shifts)
    assert (view.x != images.pool.x).any((1, 2, 3)).mean() > 0.8
    assert_array_equal(study.image_case(**IMAGES).seen[2].x, view.x)
    other = study.image_case(**IMAGES | {"views": "none"})
    assert len(other.seen) == 2 and other.pool.fingerprint == images.pool.fingerprint


@pytest.mark.parametrize("given,words", [
    ({"pool": 39}, "pool = 39 is out of range"), ({"counts": ()}, r"references = \[\]: ascending even numbers"),
    ({"counts": (4, 2)}, r"references = \[4, 2\]"), ({"counts": (2, 2)}, r"references = \[2, 2\]"),
    ({"counts": (3,)}, r"references = \[3\]"), ({"counts": (0, 2)}, r"references = \[0, 2\]"),
    ({"models": 7}, "models = 7: an even number, at least 6, is needed for 4 references"),
    ({"models": 4}, "models = 4: an even number, at least 6"), ({"targets": 1}, "targets = 1 is out of range"),
    ({"targets": 7}, "targets = 7 is out of range: allowed is from 2 to 6"),
    ({"splits": (0.5, 0.5)}, r"splits = \[0.5, 0.5\]: three shares"),
    ({"splits": (0.5, 0.2, 0.2)}, r"splits = \[0.5, 0.2, 0.2\]"),
    ({"splits": (0.8, 0.3, -0.1)}, r"splits = \[0.8, 0.3, -0.1\]"), ({"splits": (float("nan"),) * 3}, r"splits = \[nan"),
    ({"splits": (0.995, 0.004, 0.001), "public": 60}, r"splits = \[0.995, 0.004, 0.001\] of 60 public records: at least 20"),
    ({"public": 59}, "pool = 400 and public = 59: .* at least 60 public"), ({"public": -1}, "public = -1")])
def test_a_case_that_cannot_be_is_refused(given, words):
    for make, right in ((study.image_case, IMAGES), (study.table_case, TABLES)):
        with pytest.raises(MiaError, match=words):
            make(**right | given)


def test_a_case_with_too_few_records_names_how_many_there_are():
    for public, said in ((601, 601), (0, 50)):
        with pytest.raises(MiaError, match=f"public = {said}: german_credit has [0-9]+ records"):
            study.table_case(**TABLES | {"pool": len(data.load("german_credit")) - (50 if not public else 400),
                                         "public": public})


def test_trees_take_tables_and_tables_have_no_views():
    with pytest.raises(MiaError, match="fashion_mnist_20k holds images: boosted trees take tables, such as german_credit"):
        study.table_case(**TABLES | {"dataset": "fashion_mnist_20k"})
    with pytest.raises(MiaError, match="views = 'flip': german_credit holds tables"):
        study.image_case(**IMAGES | {"dataset": "german_credit", "views": "flip"})
    network = study.image_case(**IMAGES | {"dataset": "german_credit", "views": "none"})  # a network on a table
    assert not network.is_image and len(network.seen) == 2 and network.models is not None


def test_without_catboost_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "catboost", None)
    with pytest.raises(MiaError, match="CatBoost is not installed: the extra tabular"):
        study.table_case(**TABLES)


@pytest.mark.parametrize("lists", [
    ((), (), ()), (("adult",), (10, 20), (0,)), (("adult",), (10,), ()), (("a", "b"), (1,), (1,))])
def test_each_table_needs_its_sizes(lists):
    words = "tables has {} entries, table_pools {} and table_public {}".format(*map(len, lists))
    with pytest.raises(MiaError, match=words):
        study.check_tables(*lists)
    study.check_tables(("a", "b"), (1, 2), (3, 4))


def test_a_half_without_some_class_and_no_views_are_refused_before_anything_is_trained():
    y = np.repeat(np.arange(3), [10, 9, 1])
    row = np.r_[np.ones(19, bool), False]
    one = SimpleNamespace(name="Tiny", pool=SimpleNamespace(classes=("a", "b", "c"), y=y),
                          bank=SimpleNamespace(members=np.stack([row, ~row])))
    with pytest.raises(MiaError, match="for Tiny: half of that trains a model, and one half has records of 1 of 3 classes"):
        study.check_classes([one])
    study.check_classes([SimpleNamespace(name="Tiny", pool=one.pool, bank=SimpleNamespace(members=np.ones((2, 20), bool)))])
    with pytest.raises(MiaError, match="views = 'none'.*such as flip_crop:2"):
        study.check_views("none")
    study.check_views("flip_crop:1")


def test_levels_of_pinball_heads_cover_all_rates_that_are_asked_for():
    for count in (3, 15):
        levels = np.array(study.fitted_levels(count))
        assert len(levels) == count and (np.diff(levels) > 0).all()
        assert_allclose([levels[0], levels[-1]], [0.1, 0.9995])
        assert_allclose(np.diff(np.log(1 - levels), 2), 0, atol=1e-9)
        assert levels[0] <= 1 - max(study.ALPHAS) and levels[-1] >= max(*study.LEVELS, 1 - min(study.ALPHAS))
    with pytest.raises(MiaError, match="levels = 2 is out of range"):
        study.fitted_levels(2)


def test_titles_and_plan_tell_the_sizes_before_anything_is_trained(images, tables, untrained):
    named = [study.MARGINAL, study.HEADS["gauss_xy"], study.HEADS["pinball_x"], study.lira(8), study.lira(64, offline=True)]
    assert {one.name: one.title for one in named} == {
        "marginal": "Marginal", "gauss_xy": "Gaussian, q(x, y)", "pinball_x": "pinball, q(x)", "lira_8": "LiRA (n = 8)",
        "lira_off_64": "LiRA, offline (n = 64)"}
    nets, forests = (make(**given | {"seed": 9}) for make, given in ((study.image_case, IMAGES), (study.table_case, TABLES)))
    plan = study.plan([nets, forests], {True: replace(NETWORK, frozen=True), False: FOREST}).set_index("case")
    assert plan["regressor"].tolist() == ["mlp:8, frozen", "boosted trees"]
    for name, targets in (("FashionMNIST", "2 × mlp:8"), ("German credit", "2 × boosted trees")):
        row = plan.loc[name]
        assert (row["targets"], row["models"]) == (targets, 6)
        assert (row["members of each"], row["non-members judged"]) == ("200", "200")
        assert (row["fit"], row["selection"], row["calibration"]) == ("200", "80", "120")


# ---------------------------------------------------------------------------------------------------------------- scores


def hinge_by_hand(logits, labels):
    return np.array([z[y] - max(np.delete(z, y)) for z, y in zip(logits, labels, strict=True)], np.float64)


def test_scores_of_networks_are_margins_of_the_true_class(images):
    pool, public = images.scores
    assert pool.shape == public.shape == (6, 400) and pool.dtype == public.dtype == np.float64
    assert images.scores_of_views.shape == (2, 400)
    for m in (0, 1, 5):
        found = [pool[m], public[m], *images.scores_of_views[m:m + 1]]  # of the targets alone
        for score, records in zip(found, images.seen, strict=m < 2):
            logits = signals.model_outputs(images.models.model(m), records.x)
            assert_allclose(score, hinge_by_hand(logits, records.y), rtol=1e-4, atol=1e-4)


def test_scores_of_trees_are_margins_of_the_true_class_and_members_are_those_trained_on(tables):
    pool, public = tables.scores
    assert pool.shape == public.shape == (6, 400) and pool.dtype == np.float64
    for m in (0, 3):
        config = replace(tables.recipe, seed=tables.recipe.seed + 1000 * (1 + m))
        inside = tables.pool.take(tables.bank.members[m])
        logits = trees.classifier_logits(inside.x, inside.y, 2, config, tables.pool.x, tables.public.x)
        for found, z, records in zip((pool[m], public[m]), logits, tables.seen, strict=True):
            assert_allclose(found, hinge_by_hand(z, records.y), rtol=1e-5, atol=1e-6)
            assert_allclose(found, np.where(records.y == 1, 1, -1) * z[:, 1], rtol=1e-5, atol=1e-6)
    assert len({row.tobytes() for row in pool}) == 6
    own = np.mean([pool[m, inside].mean() - pool[m, ~inside].mean() for m, inside in enumerate(tables.bank.members)])
    assert own > 0  # members score higher than strangers


def test_references_are_complementary_pairs_without_the_target_and_its_twin(images):
    for target in range(6):
        for count in (2, 4):
            rows = images.bank.pairs_after(target, count)
            assert len(rows) == count and not {target, target ^ 1} & set(rows.tolist())
            assert (images.bank.members[rows].sum(0) == count / 2).all()
            after = [(target - target % 2 + step) % 6 for step in (2, 3, 4, 5)]  # the pair that follows its own comes first
            assert rows.tolist() == after[:count]


def test_what_training_took_is_what_the_store_says(images, tables, played, forest_played):
    kept = [store.look_up(images.models.spec(m)).manifest["seconds"] for m in range(6)]
    assert [images.training_seconds(m) for m in range(6)] == kept
    for t, target in enumerate((0, 1)):
        for case, found in ((images, played), (tables, forest_played)):
            of = [case.training_seconds(m) for m in case.bank.pairs_after(target, 4)]
            assert found.seconds_reference[t] == pytest.approx(np.mean(of)) and found.seconds_reference[t] >= 0


def test_trees_are_read_once_whatever_the_number_of_targets_and_references(tables, forest_played, monkeypatch):
    asked, grown = [], study._grown
    monkeypatch.setattr(study, "_grown", lambda case: asked.append(case) or grown(case))
    other = replace(tables, counts=(2,))  # another play, of the same trees
    study.play(other, FORESTS, ["gauss_xy"], GRID)
    assert len(asked) == 2  # for the scores, and for what they took


# ----------------------------------------------------------------------------------------------------------- regressions


@pytest.mark.parametrize("head", HEADS)
def test_a_regression_is_fitted_on_the_fit_split_and_validated_on_selection(head, game):
    case, settings, _ = game
    kind = study.HEADS[head].kind
    seeded = replace(settings[kind], seed=settings[kind].seed + 2 * 7919 + case.seed)
    classes = len(case.pool.classes) if study.HEADS[head].labelled else None
    model = GaussianQuantile(seeded, classes) if kind == "gauss" else PinballQuantile(seeded, GRID, classes)

    def part(rows):
        return case.public.x[rows], case.scores[1][1][rows], case.public.y[rows] if classes else None

    model.fit(*part(FIT), validation=part(SELECTION))
    [(_, said)] = asked(case, settings, head, target=1)
    assert set(said) == {"pool", "public", "seconds"} | ({"views"} if case.is_image else set())
    for name, one in zip(("pool", "public", "views"), case.seen, strict=False):
        expected = np.stack(model.predict(one.x, one.y if classes else None))
        assert said[name].shape == (2 if kind == "gauss" else len(GRID), len(one)) and said[name].dtype == np.float32
        assert_allclose(said[name], expected, rtol=1e-3, atol=1e-3)
    if kind == "gauss":
        assert (said["pool"][1] > 0).all()


def test_regressions_are_kept_one_by_one(images, played, counted, monkeypatch):
    small = asked(images, NETWORK, "gauss_x", size=40)
    assert counted == ["_regress_task"]
    both = asked(images, NETWORK, "gauss_xy", "gauss_x", size=40)
    assert counted == ["_regress_task"] * 2  # the second was there
    assert_array_equal(both[1][1]["pool"], small[0][1]["pool"])
    monkeypatch.setattr(pool, "run_tasks", lambda function, *_, **__: pytest.fail(f"{function} is asked again"))
    again = asked(study.image_case(**IMAGES), NETWORKS, *HEADS)  # those of the play
    assert counted == ["_regress_task"] * 2 and len(again) == 4
    assert study.regressions(images, []) == []
    other = [study.Regression(0, "gauss_x", NETWORK, study.fitted_levels(9))]  # a Gaussian head has no levels
    assert_array_equal(study.regressions(images, other)[0]["pool"], again[0][1]["pool"])


def test_only_a_head_that_sees_labels_depends_on_them(game):
    case, settings, _ = game
    rng = np.random.default_rng(2)
    other = altered(case, pool=replace(case.pool, y=rng.permutation(case.pool.y)),
                    public=replace(case.public, y=rng.permutation(case.public.y)))
    for head in HEADS:
        (_, before), (_, after) = asked(case, settings, head)[0], asked(other, settings, head)[0]
        for where in ("pool", "public", "views")[:len(case.seen)]:
            same = np.array_equal(before[where], after[where])
            assert same != study.HEADS[head].labelled, (head, where)


@pytest.mark.usefixtures("isolated_cache")
def test_scores_of_judged_and_of_calibration_records_enter_no_fit(game):
    case, settings, _ = game
    before = {head: {name: np.array(one) for name, one in said.items()} for head in ("gauss_xy", "pinball_x")
              for _, said in asked(case, settings, head)}
    public = case.scores[1].copy()
    public[:, CALIBRATION] = 50.0
    for given, changed in (({"of_pool": -3 * case.scores[0] + 1, "of_public": public}, False),
                           ({"of_public": case.scores[1] * np.where(np.arange(400) < 200, 2, 1)}, True)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MIA_CACHE", f"{store.cache_dir()}-{changed}")
            for head, there in before.items():
                [(_, said)] = asked(altered(case, **given), settings, head)
                for where in ("pool", "public"):
                    assert np.array_equal(said[where], there[where]) != changed


def test_images_of_calibration_records_enter_no_fit(images):
    x = images.public.x.copy()
    x[CALIBRATION] = 255
    other = altered(images, public=replace(images.public, x=x))
    for head in ("gauss_xy", "pinball_x"):
        (_, before), (_, after) = asked(images, NETWORK, head)[0], asked(other, NETWORK, head)[0]
        assert_array_equal(before["pool"], after["pool"])
        assert_array_equal(before["public"][:, :280], after["public"][:, :280])
        assert (before["public"][:, CALIBRATION] != after["public"][:, CALIBRATION]).any()


@pytest.mark.usefixtures("isolated_cache")
def test_a_size_takes_the_first_records(game):
    case, settings, _ = game
    public = case.scores[1].copy()
    public[:, 60:200] = -40.0
    other = altered(case, of_public=public)
    shorter = altered(case, splits={**case.splits, "fit": np.arange(60)})
    found = {name: {k: np.array(v) for k, v in asked(one, settings, "gauss_xy", size=size)[0][1].items()}
             for name, one, size in (("shorter", shorter, None), ("all", case, None))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIA_CACHE", f"{store.cache_dir()}-other")
        [(_, said)] = asked(other, settings, "gauss_xy", size=60)
    assert_array_equal(said["pool"], found["shorter"]["pool"])
    assert (said["pool"] != found["all"]["pool"]).any()


@pytest.fixture(scope="module")
def drawn():
    """Images of noise, and scores without models; more public ones than a task takes features of."""
    rng, splits = np.random.default_rng(4), np.split(np.arange(620), [300, 400])
    pool, public = (data.Dataset("noise", rng.integers(0, 255, (n, 8, 8, 1)).astype(np.uint8), rng.integers(0, 3, n), n,
                                 ("a", "b", "c")) for n in (60, 620))
    case = study.Case("noise", "none", pool, public, membership.Bank(rng.random((6, 60)) < 0.5, (0, 1)), (2, 4),
                      dict(zip(("fit", "selection", "calibration"), splits, strict=True)), TrainConfig("mlp:4"))
    case.__dict__["scores"] = rng.normal(size=(6, 60)), rng.normal(size=(6, 620)) + public.x.mean((1, 2, 3)) / 10
    return case


def test_a_frozen_backbone_is_asked_once_for_features(drawn, counted):
    settings = NetworkConfig("mlp:6", hidden=(), epochs=3, learning_rate=0.05, frozen=True)
    [(_, said)] = asked(drawn, settings, "gauss_xy")
    assert counted == ["_features_task"] * 3 + ["_regress_task"]  # 60 records, 500 and 120
    x = [networks.features(settings, one.x) for one in drawn.seen]
    for own, kept in zip(x, study.inputs(drawn, settings), strict=True):
        assert kept.x.dtype == np.float32
        assert_allclose(kept.x, own, rtol=2e-3, atol=1e-3)  # kept in half precision
    y, score = drawn.public.y, drawn.scores[1][0]
    model = GaussianQuantile(replace(settings, seed=7919), 3).fit(x[1][:300], score[:300], y[:300],
                                                                   (x[1][300:400], score[300:400], y[300:400]))
    assert_allclose(said["pool"], np.stack(model.predict(x[0], drawn.pool.y)), rtol=0.02, atol=0.02)
    asked(drawn, replace(settings, epochs=2), "gauss_x")
    assert counted == ["_features_task"] * 3 + ["_regress_task"] * 2


def test_features_count_for_what_a_regression_takes(drawn, counted, monkeypatch):
    settings = NetworkConfig("mlp:7", hidden=(), epochs=1, frozen=True)
    asked(drawn, settings, "gauss_x")
    before = len(counted)
    seconds = [float(part["seconds"]) for part in study._features(drawn.public, settings)]
    used = 400 / 620  # fit and selection
    assert len(seconds) == 2 and min(seconds) > 0
    assert study._feature_seconds(drawn, settings) == pytest.approx(used * sum(seconds))
    assert study._feature_seconds(drawn, replace(settings, frozen=False)) == 0 and len(counted) == before
    parts = {drawn.public.fingerprint: [{"seconds": np.array(3.0)}, {"seconds": np.array(5.0)}]}  # the pool does not count
    monkeypatch.setattr(study, "_features", lambda records, *_: parts[records.fingerprint])
    assert study._feature_seconds(drawn, settings) == pytest.approx(used * 8)


@pytest.fixture
def specs_of_features(monkeypatch):
    """What features were looked up by."""
    seen, mapped = [], signals.map_models

    def watch(function, models, specs, *given, **named):
        seen.extend(specs if function is study._features_task else [])
        return mapped(function, models, specs, *given, **named)

    monkeypatch.setattr(signals, "map_models", watch)
    return seen


def test_features_that_are_missing_are_computed_again(drawn, specs_of_features, counted):
    settings = NetworkConfig("mlp:9", hidden=(), epochs=1, frozen=True)
    [(_, before)] = asked(drawn, settings, "gauss_x")
    of_public = [spec for spec in specs_of_features if spec["records"] == drawn.public.fingerprint]
    assert [spec["start"] for spec in of_public] == [0, 500] and counted == ["_features_task"] * 3 + ["_regress_task"]
    x = [np.array(store.look_up(spec).arrays["x"]) for spec in of_public]
    store.discard(of_public[1])
    [(_, again)] = asked(drawn, settings, "gauss_x")  # kept, and enough without its features
    assert_array_equal(again["pool"], before["pool"])
    assert len(counted) == 4
    seconds = study._feature_seconds(drawn, settings)
    assert counted[4:] == ["_features_task"]  # what was missing, and no more
    entries = [store.look_up(spec).arrays for spec in of_public]
    assert seconds == pytest.approx(400 / 620 * sum(float(entry["seconds"]) for entry in entries))
    for entry, one in zip(entries, x, strict=True):
        assert_array_equal(entry["x"], one)


def test_the_seed_is_in_the_key_of_features_where_it_draws_the_backbone(drawn, monkeypatch):
    caught = []
    monkeypatch.setattr(signals, "map_models", lambda function, models, specs, *_, **__: caught.append(
        [store.key(spec) for spec in specs]))
    for backbone in ("mlp:5", "efficientnet_lite0"):
        for seed in (0, 1):
            study._features(drawn.public, NetworkConfig(backbone, frozen=True, seed=seed))
    scratch, other, trained, same = caught
    assert not set(scratch) & set(other) and trained == same and not set(trained) & set(scratch)


def test_features_of_another_seed_are_others(drawn):
    first, second = (study.inputs(drawn, NetworkConfig("mlp:5", frozen=True, seed=seed))[0].x for seed in (0, 1))
    expected = networks.features(NetworkConfig("mlp:5", frozen=True, seed=1), drawn.pool.x)
    assert (first != second).any()
    assert_allclose(second, expected, rtol=2e-3, atol=1e-3)


def test_positions_and_thresholds_say_the_same(game):
    case, settings, _ = game
    score, alphas = case.scores[0][0], np.array(study.ALPHAS)
    for one, said in asked(case, settings, *HEADS):
        place, bars = study.position(one, said, "pool", score), study.thresholds(one, said, "pool", 1 - alphas)
        assert bars.shape == (8, 400) and (np.diff(bars[::-1], axis=0) > -1e-12).all()
        assert_array_equal(place >= stats.norm.ppf(1 - alphas)[:, None], score >= bars)
        if study.HEADS[one.head].kind == "gauss":
            mean, spread = said["pool"].astype(float)
            assert_allclose(place, (score - mean) / spread)
            assert_allclose(bars, mean + spread * stats.norm.ppf(1 - alphas)[:, None])


# -------------------------------------------------------------------------------------------------------------- the play


def lira_bars(case, references, level):
    """Quantiles of the Gaussian of strangers on the calibration split; one variance, for references are few."""
    under = case.scores[1][references][:, CALIBRATION]
    mean = under.mean(0)
    variance = 1.0 if len(under) == 1 else ((under - mean) ** 2).sum() / ((len(under) - 1) * under.shape[1])
    return mean + np.sqrt(variance) * stats.norm.ppf(level)


@pytest.mark.parametrize("target", [0, 1])
def test_a_play_is_what_loops_say(game, target):
    case, settings, found = game
    (pool, public), inside = (scores[target] for scores in case.scores), case.bank.members[target]
    strangers = np.flatnonzero(~inside)
    assert_array_equal(found.members, case.bank.judged)
    assert_array_equal(found.labels, case.pool.y)
    assert_array_equal(found.calibration, [np.sum(case.public.y[CALIBRATION] == k) for k in range(len(case.pool.classes))])
    assert found.train[target] == pytest.approx((pool[inside] > 0).mean())
    assert found.test[target] == pytest.approx((pool[strangers] > 0).mean())
    score, of_calibration, own, quantiles = {}, {}, {}, {}
    score["marginal"], of_calibration["marginal"] = pool, public[CALIBRATION]
    own["marginal"] = [np.full(400, order_statistic(public[FIT], alpha)) for alpha in study.ALPHAS]
    quantiles["marginal"] = [np.full(120, np.quantile(public[FIT], level)) for level in study.LEVELS]
    for one, said in asked(case, settings, *HEADS, target=target):
        if study.HEADS[one.head].kind == "gauss":
            (mean, spread), (mean_out, spread_out) = said["pool"].astype(float), said["public"].astype(float)
            score[one.head], of_calibration[one.head] = (pool - mean) / spread, ((public - mean_out) / spread_out)[CALIBRATION]

            def law(level, where, said=said):
                return said[where][0].astype(float) + said[where][1].astype(float) * stats.norm.ppf(level)
        else:
            score[one.head] = pinball_position(pool, said["pool"].astype(float), GRID)
            of_calibration[one.head] = pinball_position(public, said["public"].astype(float), GRID)[CALIBRATION]

            def law(level, where, said=said):
                z = stats.norm.ppf(GRID)
                return np.array([np.interp(stats.norm.ppf(level), z, np.sort(q)) for q in said[where].astype(float).T])

            falls = [any(b < a for a, b in zip(q, q[1:], strict=False)) for q in said["pool"].T]
            assert found.crossing[one.head][target] == np.mean(falls)
        own[one.head] = [law(1 - alpha, "pool") for alpha in study.ALPHAS]
        quantiles[one.head] = [law(level, "public")[CALIBRATION] for level in study.LEVELS]
        assert found.seconds[one.head][target] > 0
    for count in (2, 4):
        rows = case.bank.pairs_after(target, count)
        given = pool, case.scores[0][rows], case.bank.members[rows]
        online = baselines.lira_online(*given, fixed_variance=True)
        assert_array_equal(found.ranks[f"lira_{count}"][target] / 2, stats.rankdata(online))
        quantiles[f"lira_{count}"] = [lira_bars(case, rows, level) for level in study.LEVELS]
    score["lira_own_4"] = baselines.lira_online(*given, fixed_variance=False)
    under = case.scores[1][rows][:, CALIBRATION]
    quantiles["lira_own_4"] = [under.mean(0) + under.std(0, ddof=1) * stats.norm.ppf(level) for level in study.LEVELS]
    score["lira_off_4"] = baselines.lira_offline(*given, fixed_variance=True)
    quantiles["lira_off_4"] = quantiles["lira_4"]
    for name, values in score.items():
        assert found.ranks[name].dtype == np.uint16
        assert_array_equal(found.ranks[name][target] / 2, stats.rankdata(values), err_msg=name)
        for a, alpha in enumerate(study.ALPHAS):
            if name in own and not np.isnan(own[name][a]).any():
                called = pool >= own[name][a]  # the paper's test, score against threshold
                assert found.fpr["raw"][name][target, a] == pytest.approx(called[strangers].mean(), abs=1e-12), (name, alpha)
                assert found.tpr["raw"][name][target, a] == pytest.approx(called[inside].mean(), abs=1e-12)
            if name in of_calibration:
                called = values >= order_statistic(of_calibration[name], alpha)
                rates = [np.nan] * 2 if alpha < 1 / 121 else [called[strangers].mean(), called[inside].mean()]
                assert_allclose([found.fpr["calibrated"][name][target, a], found.tpr["calibrated"][name][target, a]], rates)
    for name, (low, high) in quantiles.items():
        expected = [pinball(public[CALIBRATION], low, 0.99), pinball(public[CALIBRATION], high, 0.999)]
        assert_allclose(found.pinball[name][target], expected, rtol=1e-9, err_msg=name)


def test_rates_of_lira_are_those_of_its_gaussians(game):
    case, _, found = game
    for t in (0, 1):
        rows, inside = case.bank.pairs_after(t, 4), case.bank.members[t]
        bars = baselines.lira_threshold(case.scores[0][rows], case.bank.members[rows], 1 - np.array(study.ALPHAS), True)
        called = case.scores[0][t] >= bars
        assert_allclose(found.fpr["raw"]["lira_off_4"][t], called[:, ~inside].mean(1))
        assert_allclose(found.tpr["raw"]["lira_off_4"][t], called[:, inside].mean(1))


def test_a_play_has_a_row_for_each_target_and_all_its_methods(game):
    case, _, found = game
    assert found.methods == (study.MARGINAL, *study.HEADS.values(), *case.methods[1:])
    for name in (one.name for one in found.methods):
        assert found.ranks[name].shape == (2, 400) and found.pinball[name].shape == (2, 2)
    for name in (*HEADS, "marginal"):
        assert found.fpr["calibrated"][name].shape == found.tpr["raw"][name].shape == (2, len(study.ALPHAS))
        assert (np.isnan(found.fpr["calibrated"][name]) == (np.array(study.ALPHAS) < 1 / 121)).all()
        assert (np.isnan(found.tpr["calibrated"][name]) == np.isnan(found.fpr["calibrated"][name])).all()
    for name in ("lira_2", "lira_4", "lira_own_4"):
        assert name not in found.fpr["raw"] and name not in found.fpr["calibrated"]


def test_false_positives_are_counted_by_class(game):
    case, settings, found = game
    labels, classes = case.pool.y, len(case.pool.classes)
    of_calibration = case.public.y[CALIBRATION]
    by_class = np.bincount(of_calibration, minlength=classes).min() >= 19
    assert by_class != case.is_image  # ten classes of a dozen records cannot resolve 5 %
    for t in (0, 1):
        outside = ~case.bank.members[t]
        assert_array_equal(found.class_all[t], [np.sum(outside & (labels == k)) for k in range(classes)])
        (pool, public), a = (scores[t] for scores in case.scores), study.ALPHAS.index(study.CLASS_ALPHA)
        places = {"marginal": (pool, public)} | {
            one.head: tuple(study.position(one, said, where, score) for where, score in (("pool", pool), ("public", public)))
            for one, said in asked(case, settings, "gauss_x", "gauss_xy", target=t)}
        for name, (score, out_of) in places.items():
            bar = order_statistic(out_of[CALIBRATION], study.CLASS_ALPHA)
            hits = [np.sum((score >= bar) & outside & (labels == k)) for k in range(classes)]
            assert_array_equal(found.class_false[name, "calibrated"][t], hits)
            assert sum(hits) == pytest.approx(found.fpr["calibrated"][name][t, a] * outside.sum())
            assert ((name, "by_class") in found.class_false) == by_class
            if by_class:
                bars = [order_statistic(out_of[CALIBRATION][of_calibration == k], study.CLASS_ALPHA) for k in range(classes)]
                hits = [np.sum((score >= bars[k]) & outside & (labels == k)) for k in range(classes)]
                assert_array_equal(found.class_false[name, "by_class"][t], hits)
    assert {name for name, _ in found.class_false} == {"marginal", "gauss_x", "gauss_xy"}


@pytest.fixture
def kept_as(monkeypatch):
    """The arrays that studies keep, by name."""
    seen, kept = {}, store.study
    monkeypatch.setattr(store, "study", lambda name, *given: seen.setdefault(name, kept(name, *given)))
    return seen


def test_arrays_are_kept_under_the_names_that_recorded_ones_have(tables, forest_played, kept_as):
    study.play(tables, FORESTS, HEADS, GRID), study.flattery(tables, of(FOREST), GRID, 3), study.mismatch({"a": tables}, 2)
    study.growth(tables, FOREST, [60], GRID, ["gauss_xy"]), study.quarters(tables, FOREST, GRID)
    study.one_target(tables, FOREST, GRID)
    regressions, online = ["marginal", *HEADS], ["lira_2", "lira_4", "lira_own_4"]
    rates = [f"{how}{end}.{name}" for how in ("raw", "calibrated") for end in ("", "_tpr") for name in regressions]
    assert set(kept_as["quantile.play"]) == {
        "members", "labels", "calibration", "train", "test", "class_all", "seconds.reference", *regressions, *online, *rates,
        "lira_off_4", "raw.lira_off_4", "raw_tpr.lira_off_4", *(f"seconds.{head}" for head in HEADS),
        *(f"pinball.{name}" for name in (*regressions, *online, "lira_off_4")),
        "crossing.pinball_x", "crossing.pinball_xy",
        *(f"class_false.{name}.{how}" for name in ("marginal", "gauss_x", "gauss_xy") for how in ("calibrated", "by_class"))}
    assert set(kept_as["quantile.flattery"]) == {f"{name}.{what}" for name in study.PROTOCOLS for what in (
        "fpr", "fresh_fpr", "tpr", "pinball", "fresh_pinball", "fpr_off", "fresh_fpr_off")}
    assert set(kept_as["quantile.mismatch"]) == {"members", "a|a"}
    assert set(kept_as["quantile.growth"]) == {"sizes"} | {f"{what}.{name}" for what in ("pinball", "auc", "tpr")
                                                           for name in ("marginal", "gauss_xy")}
    assert set(kept_as["quantile.one_target"]) == {"members", "score", "mean", "spread", "aside_score", "aside_position"}
    assert set(kept_as["quantile.quarters"]) == {"shift", "spread_loss", "ratio_tpr"} | {
        f"{what}.{name}" for what in ("pinball", "above", "tpr", "fpr") for name in ("marginal", "gauss_xy", "lira_off_2")}


def test_some_heads_alone_give_the_same_numbers(images, played, untrained):
    found = study.play(images, NETWORKS, ("gauss_xy",), GRID)
    assert "gauss_x" not in found.ranks and "pinball_x" not in found.pinball
    equal(found, replace(played, methods=found.methods), part=True)


def test_thresholds_that_the_fit_split_cannot_resolve_have_no_rate(played):
    lacking = np.array(study.ALPHAS) < 1 / 201
    assert lacking.sum() == 2
    for rates in (played.fpr, played.tpr):
        assert_array_equal(np.isnan(rates["raw"]["marginal"]), np.tile(lacking, (2, 1)))


@pytest.mark.parametrize("public,splits", [
    (60, (0.5, 0.2, 0.3)), (60, (0.3, 0.3, 0.4)), (100, (0.19, 0.02, 0.79)), (100, (0.8, 0.01, 0.19)),
    (100, (0.8, 0.02, 0.18))])
def test_splits_too_small_for_a_play_are_refused_before_training(public, splits, untrained):
    words = (f"splits = {list(splits)} of {public} public records: at least 20 are needed to fit, 2 to select and 19 to "
             "calibrate.")
    for make, right in ((study.image_case, IMAGES), (study.table_case, TABLES)):
        with pytest.raises(MiaError) as caught:
            make(**right | {"public": public, "splits": splits})
        assert str(caught.value) == words


@pytest.mark.parametrize("public,splits,sizes", [(100, (0.2, 0.02, 0.78), (20, 2, 78)), (100, (0.79, 0.02, 0.19), (79, 2, 19)),
                                                 (60, (0.35, 0.33, 0.32), (21, 20, 19))])
def test_the_smallest_splits_are_enough_for_a_play(public, splits, sizes, inline):
    case = study.table_case(**TABLES | {"public": public, "splits": splits})
    assert tuple(len(case.splits[name]) for name in ("fit", "selection", "calibration")) == sizes
    found = study.play(case, FORESTS, ["gauss_xy"], GRID)
    at = study.ALPHAS.index(study.CLASS_ALPHA)
    assert np.isfinite(found.fpr["calibrated"]["gauss_xy"][:, at]).all()
    assert found.class_false["gauss_xy", "calibrated"].shape == (2, 2)
    assert found.calibration.sum() == sizes[2]


# -------------------------------------------------------------------------------------------------------- shadow models


@pytest.fixture(scope="module")
def nets(images):
    return {"mlp:8": images, "mlp:4": study.image_case(**IMAGES | {"config": TrainConfig("mlp:4", epochs=3)})}


def test_shadows_of_the_same_architecture_are_the_references_of_the_play(nets, played):
    found = study.mismatch(nets, 4)
    assert found.architectures == tuple(nets) and set(found.ranks) == {(a, b) for a in nets for b in nets}
    assert_array_equal(found.members, played.members)
    assert_array_equal(found.ranks["mlp:8", "mlp:8"], played.ranks["lira_4"])
    assert_array_equal(study.mismatch(nets, 2).ranks["mlp:8", "mlp:8"], played.ranks["lira_2"])
    for target, shadow in (("mlp:8", "mlp:4"), ("mlp:4", "mlp:8"), ("mlp:4", "mlp:4")):
        for t in (0, 1):
            rows = [2, 3, 4, 5]
            trained = nets[shadow]
            score = baselines.lira_online(nets[target].scores[0][t], trained.scores[0][rows], trained.bank.members[rows],
                                          fixed_variance=True)
            assert_array_equal(found.ranks[target, shadow][t] / 2, stats.rankdata(score))
    assert (found.ranks["mlp:8", "mlp:4"] != found.ranks["mlp:8", "mlp:8"]).any()


def test_shadows_that_play_another_game_are_refused(images, nets, untrained):
    seeded, small = study.image_case(**IMAGES | {"seed": 1, "config": TrainConfig("mlp:4", epochs=3)}), nets["mlp:4"]
    for other in (seeded, *(replace(small, bank=replace(small.bank, **change)) for change in (
            {"members": images.bank.members[::-1].copy()}, {"attacked": (0, 2)}, {"attacked": (0, 1, 2)},
            {"attacked": (1, 0)}))):
        with pytest.raises(MiaError, match="mlp:8 and mlp:4 play different games: the same pool, halves and targets"):
            study.mismatch({"one": images, "two": other}, 4)
    for count in (3, 0, 6):
        with pytest.raises(MiaError, match=f"shadow models = {count}: an even number from 2 to 4"):
            study.mismatch(nets, count)


# ---------------------------------------------------------------------------------------------------------------- tuning

TRIALS, EPOCHS = 6, 10


@pytest.fixture(scope="module")
def tuned(images):
    return study.tune(images, NETWORK, TRIALS, GRID, EPOCHS)


@pytest.fixture(scope="module")
def forest_tuned(tables):
    return study.tune(tables, FOREST, TRIALS, GRID)


def searches(images, tables, tuned, forest_tuned):
    return (images, NETWORK, tuned), (tables, FOREST, forest_tuned)


def same(one, other, *but):
    """Whether two searches agree, but for what took how long and some columns."""
    one, other = columns(one), columns(other)
    assert set(one) == set(other)
    return {name for name in one if not np.array_equal(one[name], other[name], equal_nan=True)} <= {"seconds", *but}


def columns(found):
    """All that is known of the trials of a search."""
    return found.searched | {name: getattr(found, name) for name in ("selection", "evaluation", "tpr", "seconds")}


def test_a_search_begins_with_the_base_and_stays_in_the_papers_ranges(tuned, forest_tuned):
    assert all(len(column) == TRIALS for found in (tuned, forest_tuned) for column in columns(found).values())
    for name in ("learning_rate", "weight_decay", "batch_size", "epochs"):
        assert tuned.searched[name][0] == getattr(NETWORK, name)
    assert (tuned.searched["hidden"][0], tuned.searched["layers"][0]) == (8, 1)
    for name in ("iterations", "depth", "l2_leaf_reg"):
        assert forest_tuned.searched[name][0] == getattr(FOREST, name)
    assert np.isnan([forest_tuned.searched[name][0] for name in ("learning_rate", "subsample")]).all()  # CatBoost's own
    ranges = {"learning_rate": (1e-6, 1e-2), "weight_decay": (2e-6, 5e-3), "batch_size": (32, 2048), "epochs": (5, EPOCHS)}
    trees_ranges = {"depth": (1, 10), "l2_leaf_reg": (1e-2, 1e6), "learning_rate": (1e-6, 1), "subsample": (20 / 200, 1),
                    "iterations": (1, 1000)}
    for found, allowed in ((tuned, ranges), (forest_tuned, trees_ranges)):
        for name, (low, high) in allowed.items():
            drawn = found.searched[name][1:]
            assert ((drawn >= low) & (drawn <= high)).all(), name
            assert name == "epochs" or len(set(drawn)) > 1, name
        assert (found.seconds > 0).all()
    assert set(zip(tuned.searched["layers"][1:], tuned.searched["hidden"][1:], strict=True)) <= {(0, 0), (2, 1024)}
    assert (tuned.searched["epochs"][1:] % 5 == 0).all()


def test_a_trial_is_judged_on_the_selection_split(images, tables, tuned, forest_tuned, untrained):
    for case, base, found in searches(images, tables, tuned, forest_tuned):
        inside = case.bank.members[0]
        [(_, said)] = asked(case, base, "gauss_xy")
        mean, spread = said["public"].astype(float)
        bars = mean + spread * stats.norm.ppf(0.99)
        public, pool = case.scores[1][0], case.scores[0][0]
        assert found.selection[0] == pytest.approx(pinball(public[SELECTION], bars[SELECTION], 0.99))
        mean, spread = said["pool"].astype(float)
        bars = mean + spread * stats.norm.ppf(0.99)
        assert found.evaluation[0] == pytest.approx(pinball(pool[~inside], bars[~inside], 0.99))
        score = (pool - mean) / spread
        strangers = np.sort(score[~inside])[::-1]
        assert found.tpr[0] == pytest.approx((score[inside] > strangers[2]).mean())  # 1 % of 200 is two of them


def test_every_trial_can_be_had_again_and_needs_no_training_any_more(images, tables, tuned, forest_tuned, untrained):
    for case, base, found in searches(images, tables, tuned, forest_tuned):
        everything = study.tried(found, base)
        assert len(everything) == TRIALS and everything[0] == base
        for k, settings in enumerate(everything):
            [(one, said)] = asked(case, settings, "gauss_xy")  # found in the store: the same settings to the last digit
            assert study._judge_trial(case, one, said)["selection"] == found.selection[k]
            column = np.where(np.arange(TRIALS) == k, -1.0, found.selection)
            assert study.chosen(replace(found, selection=column), base) == settings
            lost = np.where(np.arange(TRIALS) < k, np.nan, np.arange(TRIALS))  # trials without a loss are passed over
            assert study.chosen(replace(found, selection=lost), base) == settings
        losses = found.selection.tolist()
        assert study.chosen(found, base) == everything[losses.index(min(losses))]


def test_chosen_rebuilds_settings_of_the_right_types():
    base = NetworkConfig("mlp:8", hidden=(64,), frozen=True, seed=5)
    columns = {"learning_rate": [1e-3, 2e-4, 3e-4], "weight_decay": [1e-3, 1e-4, 1e-5], "batch_size": [128.0, 64.0, 32.0],
               "epochs": [8.0, 5.0, 10.0], "hidden": [64.0, 0.0, 1024.0], "layers": [1.0, 0.0, 2.0]}
    tuned = study.Tuned({name: np.array(column) for name, column in columns.items()}, None,
                        evaluation=np.array([1.0, 1.0, 0.0]), tpr=np.array([0.0, 1.0, 0.0]), seconds=np.ones(3))
    expected = (base, replace(base, learning_rate=2e-4, weight_decay=1e-4, batch_size=64, epochs=5, hidden=()),
                replace(base, learning_rate=3e-4, weight_decay=1e-5, batch_size=32, epochs=10, hidden=(512, 512)))
    for best, settings in enumerate(expected):
        found = study.chosen(replace(tuned, selection=np.where(np.arange(3) == best, 0.1, 0.2)), base)
        assert found == settings and type(found.batch_size) is type(found.epochs) is int
        store.key({"kind": "x", **asdict(found)})  # plain data
    columns = {"depth": [4.0, 7.0], "l2_leaf_reg": [3.0, 1e3], "learning_rate": [np.nan, 0.3], "subsample": [np.nan, 0.5],
               "iterations": [300.0, 17.0]}
    tuned = study.Tuned({name: np.array(column) for name, column in columns.items()}, np.array([0.2, 0.1]), None, None, None)
    found = study.chosen(tuned, TreeConfig(seed=4))
    assert found == TreeConfig(17, 7, 0.3, 1e3, 0.5, 4) and type(found.depth) is type(found.iterations) is int


@pytest.mark.usefixtures("isolated_cache")
def test_the_search_does_not_look_at_what_is_judged(images, tables, tuned, forest_tuned):
    for case, base, found in searches(images, tables, tuned, forest_tuned):
        public = case.scores[1].copy()
        public[:, CALIBRATION] += 9.0
        noise = np.random.default_rng(3).normal(size=case.scores[0].shape)
        other = altered(case, noise, public, bank=replace(case.bank, members=case.bank.members[[2, 3, 0, 1, 4, 5]]))
        again = study.tune(other, base, TRIALS, GRID, EPOCHS)
        assert same(found, again, "evaluation", "tpr")
        assert (found.evaluation != again.evaluation).all() and (found.tpr != again.tpr).any()
        assert study.chosen(found, base) == study.chosen(again, base)


def test_the_objective_is_the_selection_loss_alone(tables, forest_tuned, monkeypatch):
    judge = study._judge_trial
    monkeypatch.setattr(study, "_judge_trial", lambda *given: judge(*given) | {"evaluation": 0.0, "tpr": -1.0, "seconds": 9.0})
    monkeypatch.setattr(store, "fetch", lambda spec, compute: store.Entry(compute(), {}, "computed"))
    assert same(forest_tuned, study.tune(tables, FOREST, TRIALS, GRID), "evaluation", "tpr")
    monkeypatch.setattr(study, "_judge_trial", lambda *given: judge(*given) | {"selection": -judge(*given)["selection"]})
    backwards = study.tune(tables, FOREST, TRIALS, GRID)
    assert not same(forest_tuned, backwards, "selection")  # what is told to the sampler is what it goes by


def test_a_trial_that_cannot_be_fitted_has_no_loss_and_the_search_goes_on(tables, forest_tuned, monkeypatch):
    import optuna

    ask, tell, told, asked_of = study.regressions, optuna.Study.tell, [], []
    lost = study.tried(forest_tuned, FOREST)[2]

    def fragile(case, wanted):
        asked_of.append([one.settings for one in wanted])
        if lost in asked_of[-1]:
            raise MiaError("CatBoost could not fit")
        return ask(case, wanted)

    def watch(self, trial, value, *given, **named):
        told.append(value)
        return tell(self, trial, value, *given, **named)

    monkeypatch.setattr(study, "regressions", fragile)
    monkeypatch.setattr(optuna.Study, "tell", watch)
    monkeypatch.setattr(store, "fetch", lambda spec, compute: store.Entry(compute(), {}, "computed"))
    found = study.tune(tables, FOREST, TRIALS, GRID)
    assert all(len(column) == TRIALS for column in columns(found).values())
    for name in ("selection", "evaluation", "tpr"):
        assert np.isnan(getattr(found, name)).tolist() == [k == 2 for k in range(TRIALS)], name
    assert found.seconds[2] == 0 and (np.delete(found.seconds, 2) > 0).all()
    assert study.tried(found, FOREST)[2] == lost
    other = study.tried(forest_tuned, FOREST)[3]
    assert asked_of[1:4] == [[lost, other], [lost], [other]]  # the other one of the batch does not suffer
    for name in set(columns(found)) - {"seconds"}:
        kept = [0, 1, 3]  # proposed before the sampler was told
        assert_array_equal(columns(found)[name][kept], columns(forest_tuned)[name][kept], err_msg=name)
    assert told == [1e9 if np.isnan(loss) else loss for loss in found.selection[1:]]
    assert study.chosen(found, FOREST) == study.tried(found, FOREST)[int(np.nanargmin(found.selection))] != lost


def test_only_what_cannot_be_fitted_is_passed_over(tables, monkeypatch):
    def broken(case, wanted):
        raise ValueError("a mistake of ours")

    monkeypatch.setattr(study, "regressions", broken)
    with pytest.raises(ValueError, match="a mistake of ours"):
        study.tune(tables, replace(FOREST, iterations=14), 2, GRID)


def test_where_no_trial_can_be_fitted_the_reason_is_said(tables, monkeypatch):
    def lacking(case, wanted):
        raise MiaError("its weights could not be downloaded")

    monkeypatch.setattr(study, "regressions", lacking)
    monkeypatch.setattr(store, "fetch", lambda spec, compute: store.Entry(compute(), {}, "computed"))
    with pytest.raises(MiaError, match="could not be downloaded"):
        study.chosen(study.tune(tables, FOREST, 3, GRID), FOREST)


def test_a_process_that_died_ends_the_search(tables, forest_tuned, monkeypatch):
    ask, lost = study.regressions, study.tried(forest_tuned, FOREST)[2]

    def dying(case, wanted):
        if lost in [one.settings for one in wanted]:
            raise MiaError("A process died during 'regressions' (out of memory?). What was finished is kept: run again"
                           ) from BrokenProcessPool()  # as run_tasks does
        return ask(case, wanted)

    monkeypatch.setattr(study, "regressions", dying)
    monkeypatch.setattr(store, "fetch", lambda spec, compute: store.Entry(compute(), {}, "computed"))
    with pytest.raises(MiaError, match="A process died"):
        study.tune(tables, FOREST, TRIALS, GRID)


@pytest.mark.usefixtures("inline")
def test_a_network_that_diverges_is_a_trial_without_a_loss(images, monkeypatch):
    wild = replace(NETWORK, learning_rate=1e30)
    with pytest.raises(MiaError, match="The loss stopped being a finite number"):
        asked(images, wild, "gauss_xy")
    space, asks = study._image_space, []

    def first_wild(*given):
        asks.append(given)
        return wild if len(asks) == 1 else space(*given)

    monkeypatch.setattr(study, "_image_space", first_wild)
    found = study.tune(images, NETWORK, 3, GRID, 5)
    assert np.isnan(found.selection).tolist() == [False, True, False] and found.searched["learning_rate"][1] == 1e30
    assert study.chosen(found, NETWORK) == study.tried(found, NETWORK)[int(np.nanargmin(found.selection))]


def test_settings_to_begin_with_have_to_work(images):
    with pytest.raises(MiaError, match="The loss stopped being a finite number"):
        study.tune(images, replace(NETWORK, learning_rate=1e30), 2, GRID, 5)


@pytest.mark.parametrize("head", ["gauss_xy", "pinball_x"])
def test_a_search_that_was_stopped_goes_on_and_finds_the_same(head, tables, isolated_cache, counted, monkeypatch):
    trials, search = 7, {"levels": GRID, "head": head}
    case, ask, calls = tables, study._tried, []

    def stopped(*given):
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return ask(*given)

    with monkeypatch.context() as patch:
        patch.setattr(study, "_tried", stopped)
        with pytest.raises(KeyboardInterrupt):
            study.tune(case, FOREST, trials, **search)
    assert counted == ["_regress_task"] * 4  # two pairs
    found = study.tune(case, FOREST, trials, **search)
    assert counted == ["_regress_task"] * trials  # none twice
    monkeypatch.setenv("MIA_CACHE", f"{isolated_cache}-whole")
    assert same(found, study.tune(case, FOREST, trials, **search))
    assert counted == ["_regress_task"] * 2 * trials
    [(one, said)] = asked(tables, FOREST, head)
    bars = study.thresholds(one, said, "public", [0.99])[0, SELECTION]
    assert found.selection[0] == pytest.approx(pinball(tables.scores[1][0, SELECTION], bars, 0.99))
    assert {len(one.head) for call in calls for one in call[1]} == {len(head)}


def test_a_search_that_cannot_be_is_refused(tables, monkeypatch):
    for given, words in (({"trials": 0}, "trials = 0 is out of range: allowed is at least 1"),
                         ({"trials": 2, "most_epochs": 4}, "most_epochs = 4 is out of range: allowed is at least 5")):
        with pytest.raises(MiaError, match=words):
            study.tune(tables, FOREST, levels=GRID, **given)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MiaError, match="Tuning needs Optuna: the extra tabular"):
        study.tune(tables, FOREST, 3, GRID)


# ------------------------------------------------------------------------------------------------- what a protocol flatters


def protocols_by_hand(case, candidates, halvings):
    """Every protocol against every target, from positions and quantiles."""
    rng, rows = np.random.default_rng([29, case.seed]), []
    for target in case.bank.attacked:
        (pool, public), inside = (scores[target] for scores in case.scores), case.bank.members[target]
        found = [asked(case, settings, head, target=target)[0] for head, settings in candidates]
        place, out_of = ([study.position(*one, where, score) for one in found] for where, score in
                         (("pool", pool), ("public", public)))
        q, q_out = ([study.thresholds(*one, where, [0.99])[0] for one in found] for where in ("pool", "public"))
        chosen = min(range(len(found)), key=lambda k: pinball(public[SELECTION], q_out[k][SELECTION], 0.99))
        values = {}
        for _ in range(halvings):
            order = rng.permutation(np.flatnonzero(~inside))
            test, fresh = order[:(len(order) + 1) // 2], order[(len(order) + 1) // 2:]
            there = min(range(len(found)), key=lambda k: pinball(pool[test], q[k][test], 0.99))
            for name, best, measured in (("honest", chosen, None), ("thresholds", chosen, test), ("selection", there, None),
                                         ("both", there, test)):
                score = place[best]
                bar = order_statistic(out_of[best][CALIBRATION] if measured is None else score[measured], 0.01)
                for what, value in (("fpr", np.mean(score[test] >= bar)), ("fresh_fpr", np.mean(score[fresh] >= bar)),
                                    ("tpr", np.mean(score[inside] >= bar)),
                                    ("pinball", pinball(pool[test], q[best][test], 0.99)),
                                    ("fresh_pinball", pinball(pool[fresh], q[best][fresh], 0.99))):
                    values.setdefault((name, what), []).append(value)
        rows.append({key: np.mean(value) for key, value in values.items()} | {
            (name, f"{what}_off"): np.mean([(v - 0.01) ** 2 for v in value]) ** 0.5 for (name, what), value in values.items()
            if what in ("fpr", "fresh_fpr")})
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_protocols_are_what_loops_say(images, played, untrained):
    candidates = [(head, NETWORKS[study.HEADS[head].kind]) for head in HEADS]
    found = study.flattery(images, candidates, GRID, halvings=5)
    expected = protocols_by_hand(images, candidates, 5)
    assert {(name, what) for name, one in found.items() for what in vars(one)} == set(expected) == {
        (name, what) for name in study.PROTOCOLS for what in (
            "fpr", "fresh_fpr", "tpr", "pinball", "fresh_pinball", "fpr_off", "fresh_fpr_off")}
    for (name, what), values in expected.items():
        assert_allclose(getattr(found[name], what), values, rtol=1e-9, atol=1e-15, err_msg=f"{name} {what}")


def of(settings, heads=HEADS):
    """Candidates: every head with the same settings."""
    return [(head, settings) for head in heads]


def test_thresholds_set_where_they_are_reported_hit_the_nominal_rate_whatever_the_head(images, tables, played, forest_played):
    found = study.flattery(images, of(NETWORK), GRID)
    for name in ("thresholds", "both"):
        assert_allclose(found[name].fpr, 1 / 100)  # the largest of 100 strangers, always
        assert_allclose(found[name].fpr_off, 0, atol=1e-12)
        assert (found[name].fresh_fpr_off > 0).all()
    assert (found["honest"].fpr_off > 0).all()
    for case, settings in ((images, NETWORK), (tables, FOREST)):
        found = study.flattery(case, of(settings), GRID)
        assert (found["selection"].pinball <= found["honest"].pinball + 1e-12).all()
        assert_array_equal(found["thresholds"].pinball, found["honest"].pinball)
        assert_array_equal(found["both"].pinball, found["selection"].pinball)
    alone = study.flattery(images, of(NETWORK, ["gauss_xy"]), GRID)  # nothing to choose from
    for one, other in (("honest", "selection"), ("thresholds", "both")):
        equal(alone[one], alone[other])


@pytest.mark.parametrize("given,words", [({"pool": 390}, "there are 120 and 195"), ({"public": 320}, "there are 96 and 200")])
def test_too_few_records_for_one_per_cent_are_refused_before_anything_is_trained(given, words, untrained):
    for case, settings in ((study.image_case(**IMAGES | given), NETWORK), (study.table_case(**TABLES | given), FOREST)):
        with pytest.raises(MiaError, match=f"{case.name}: a nominal rate of 1 % needs 99 records .*{words}"):
            study.flattery(case, of(settings), GRID)


def test_a_candidate_without_a_loss_is_not_chosen(tables, forest_played, monkeypatch):
    ask = study.regressions
    sound = [("gauss_xy", FOREST), ("gauss_x", FOREST)]
    expected = study.flattery(tables, sound, GRID, halvings=3)
    lost = replace(FOREST, iterations=13)  # predicts no number, which `tune` and `chosen` allow for

    def asked_of(case, wanted):
        found = [{k: np.array(v) for k, v in said.items()} for said in ask(case, wanted)]
        for one, said in zip(wanted, found, strict=True):
            if one.settings == lost:
                said["pool"][:], said["public"][:] = np.nan, np.nan
        return found

    monkeypatch.setattr(study, "regressions", asked_of)
    equal(study.flattery(tables, [*sound, ("gauss_xy", lost)], GRID, halvings=3), expected)


# -------------------------------------------------------------------------------------------------------------- quarters


def spread_of_public(case, references):
    """Around each public record's own mean, over references that all left it out."""
    under = case.scores[1][references]
    return np.sqrt(((under - under.mean(0)) ** 2).sum() / ((len(under) - 1) * under.shape[1]))


@contextmanager
def threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


def test_quarters_are_what_loops_say(game):
    case, settings, found = game
    values = study.quarters(case, settings["gauss"], GRID)
    names = ("marginal", "gauss_xy", "lira_off_2")
    assert [one.name for one in values.methods] == list(names) and values.shift.shape == (2, 4)
    for of_method in (values.pinball, values.above, values.tpr, values.fpr):
        assert {name: one.shape for name, one in of_method.items()} == dict.fromkeys(names, (2, 4))

    def mean(rows, kind):
        return np.array([np.mean([case.scores[0][m, j] for m in rows if case.bank.members[m, j] == kind]) for j in range(400)])

    for t in (0, 1):
        sorting, rest = np.split(case.bank.pairs_after(t, 4), 2)  # one half tells what is hard, the other what is typical
        pool, inside, mean_out = case.scores[0][t], case.bank.members[t], mean(rest, False)
        hardness, shift = mean(sorting, False), mean(rest, True) - mean_out
        parts = np.array_split(np.argsort(hardness, kind="stable"), 4)
        assert sorted(np.concatenate(parts)) == list(range(400)) and {len(part) for part in parts} == {100}
        assert hardness[parts[0]].max() <= hardness[parts[3]].min()  # the hardest come first
        assert_allclose(values.shift[t], [shift[part].mean() for part in parts], rtol=1e-9, atol=1e-12)
        [(one, said)] = asked(case, settings, "gauss_xy", target=t)
        bars = {"marginal": np.full(400, np.quantile(case.scores[1][t, FIT], 0.99)),
                "gauss_xy": study.thresholds(one, said, "pool", [0.99])[0],
                "lira_off_2": mean_out + stats.norm.ppf(0.99) * spread_of_public(case, rest)}
        ranking = {name: found.ranks[name][t] for name in ("marginal", "gauss_xy")} | {"lira_off_2": pool - mean_out}
        for name, bar in bars.items():
            rank = ranking[name]
            called = rank > sorted(rank[~inside])[-2]  # one of 200 strangers, for with the next one it would be two of 201
            for k, part in enumerate(parts):
                strangers, members = part[~inside[part]], part[inside[part]]
                expected = [pinball(pool[strangers], bar[strangers], 0.99), np.mean(bar[part] - mean_out[part]),
                            called[members].mean(), called[strangers].mean()]
                assert_allclose([one[name][t, k] for one in (values.pinball, values.above, values.tpr, values.fpr)], expected,
                                rtol=1e-9, atol=1e-12, err_msg=f"{name} {k}")
            counts = np.array([np.sum(~inside[part]) for part in parts])
            overall = (values.fpr[name][t] * counts).sum() / counts.sum()
            assert overall == pytest.approx(called[~inside].mean()) and overall <= 0.01 + 1e-12
            hits = (values.tpr[name][t] * (100 - counts)).sum() / (100 - counts).sum()
            exact = metrics.conformal_tpr_at_fpr(rank, inside, 0.01)  # has a part of the members before the next stranger
            assert exact - 0.01 <= hits <= exact + 1e-12


def test_spreads_of_two_models_call_one_stranger_in_a_hundred():
    """Many strangers lie more spreads above the mean than a logarithm of a probability tells apart."""
    rng, n = np.random.default_rng(3), 400
    bank = membership.bank(n, 10, 2)
    pool, public = rng.normal(size=(10, n)), rng.normal(size=(10, 60))
    pool[1:, ::4] = np.round(pool[1:, ::4]) + rng.normal(scale=1e-3, size=(9, n // 4))  # references that nearly agree
    case = SimpleNamespace(bank=bank, counts=(8,), scores=(pool, public), splits={"fit": np.arange(60)})
    said = {"pool": np.stack([np.zeros(n), np.ones(n)])}
    one = study.Regression(0, "gauss_xy", NetworkConfig(), (0.9, 0.99))
    found = study._quarters(case, one, said, 0.99)
    inside, (sorting, rest) = bank.members[0], study._halves_of_references(case, 0)
    parts = np.array_split(np.argsort(np.average(pool[sorting], 0, ~bank.members[sorting]), kind="stable"), 4)
    tied = baselines.lira_offline(pool[0], pool[rest], bank.members[rest])[~inside]
    assert (tied == tied.max()).mean() > 0.02
    for name in ("marginal", "gauss_xy", "lira_off_4", "lira_off_own_4"):
        called = found[f"fpr.{name}"] @ [np.sum(~inside[part]) for part in parts]
        assert called == pytest.approx(1), name  # of 200 strangers, for with the next one it would be two of 201


def test_any_spread_is_that_of_thresholds_and_of_rankings(game):
    case, settings, _ = game
    values, size = study.quarters(case, settings["gauss"], GRID), len(study.SPREADS)
    assert values.spread_loss.shape == (3, 4, size) and values.ratio_tpr.shape == (3, 4, 2 * size - 1)
    losses, hits, hard, easy = [], [], 30, 17
    for t in (0, 1):
        sorting, rest = np.split(case.bank.pairs_after(t, 4), 2)
        pool, inside = case.scores[0][t], case.bank.members[t]
        order = np.argsort(np.average(case.scores[0][sorting], 0, ~case.bank.members[sorting]), kind="stable")
        mean = np.average(case.scores[0][rest], 0, ~case.bank.members[rest])
        spread = np.ones(400)
        spread[order[:200]], spread[order[200:]] = study.SPREADS[hard], study.SPREADS[easy]
        rank = (pool - mean) / spread
        called = rank > sorted(rank[~inside])[-2]
        bars = mean + spread * stats.norm.ppf(0.99)
        losses.append([pinball(pool[rows], bars[rows], 0.99) for rows in (p[~inside[p]] for p in np.array_split(order, 4))])
        hits.append([called[p[inside[p]]].mean() for p in np.array_split(order, 4)])
    assert_allclose(np.mean(losses, 0), [*values.spread_loss[2, :2, hard], *values.spread_loss[2, 2:, easy]], rtol=1e-5)
    assert_allclose(np.mean(hits, 0), values.ratio_tpr[2, :, hard - easy + size - 1], atol=0.011)  # a tie may fall either way


def test_the_one_target_is_the_first_of_the_play(game):
    case, settings, found = game
    seen = study.one_target(case, settings["gauss"], GRID)
    assert_array_equal(seen.members, case.bank.members[0])
    place = (seen.score.astype(float) - seen.mean) / seen.spread
    assert metrics.auc(place, seen.members) == pytest.approx(metrics.auc(found.ranks["gauss_xy"][0], seen.members), abs=1e-4)
    assert seen.aside_score.shape == seen.aside_position.shape == (120,)


def test_a_case_with_fewer_targets_shares_all_that_was_computed(images, tables, played, forest_played, untrained):
    for case, settings, found in ((images, NETWORKS, played), (tables, FORESTS, forest_played)):
        few = study.fewer(case, 1)
        assert few.bank.attacked == (0,) and few.scores is case.scores
        alone = study.play(few, settings, HEADS, GRID)
        for name in found.ranks:
            assert_array_equal(alone.ranks[name], found.ranks[name][:1])


def test_the_target_by_hand_is_the_first_of_the_study(images, played):
    """The cells of the chapter, on the images of these tests."""
    sources = [cell.source for cell in jupytext.read(find_root() / "notebooks" / "quantile.py").cells]
    cells = [next(one for one in sources if words in one) for words in ("known = source.take", "regression.fit(")]
    page = {"data": data, "np": np, "membership": membership, "training": training, "signals": signals, "stats": stats,
            "attack": quantile, "study": study, "first": images, "settings": NETWORK, "dataset": IMAGES["dataset"], "seed": 0,
            "pool": 400, "models": 6, "architectures": ["mlp:8"], "recipe": lambda name: images.recipe}
    with threads(1):
        for cell in cells:
            exec(cell, page)
    assert_array_equal(page["score"], images.scores[0][0].astype(np.float32))
    inside, at = images.bank.members[0], study.ALPHAS.index(0.01)
    assert played.tpr["raw"]["gauss_xy"][0, at] == pytest.approx(page["called"][inside].mean(), abs=1e-12)
    assert played.fpr["raw"]["gauss_xy"][0, at] == pytest.approx(page["called"][~inside].mean(), abs=1e-12)
    by_hand = metrics.auc((page["score"] - page["mean"]) / page["spread"], inside)
    assert by_hand == pytest.approx(metrics.auc(played.ranks["gauss_xy"][0], inside), abs=1e-4)


def test_quarters_need_references_for_two_halves(untrained):
    case = study.table_case(**TABLES | {"counts": (2,)})
    with pytest.raises(MiaError, match=r"references = \[2\]: the last must be at least 4"):
        study.quarters(case, FOREST, GRID)


# ----------------------------------------------------------------------------------------------------------------- views


def test_views_mix_as_they_say(images, played, untrained):
    found = study.views(images, NETWORK, GRID)
    assert_array_equal(found.members, images.bank.judged)
    plain, moved = images.scores[0][:2], images.scores_of_views
    for t, (score, view, inside) in enumerate(zip(plain, moved, images.bank.judged, strict=True)):
        [(_, said)] = asked(images, NETWORK, "gauss_xy", target=t)
        place = [(s - said[where][0].astype(float)) / said[where][1] for s, where in ((score, "pool"), (view, "views"))]
        for name, (none, everyone) in {"marginal": (score, view), "gauss_xy": place}.items():
            mixed = [e if m else n for n, e, m in zip(none, everyone, inside, strict=True)]
            for who, values in (("none", none), ("members", mixed), ("all", everyone)):
                assert_array_equal(found.ranks[name, who][t] / 2, stats.rankdata(values), err_msg=f"{name} {who}")
    for name in ("marginal", "gauss_xy"):
        assert_array_equal(found.ranks[name, "none"], played.ranks[name])
        assert (found.ranks[name, "all"] != found.ranks[name, "none"]).any()


def test_without_views_there_are_none(tables, forest_played, untrained):
    with pytest.raises(MiaError, match="German credit has no augmented views: views = 'none'"):
        study.views(tables, FOREST, GRID)


def test_that_there_are_no_views_is_said_before_anything_is_fitted(tables, forest_played, untrained):
    with pytest.raises(MiaError, match="no augmented views"):
        study.views(tables, replace(FOREST, iterations=3), GRID)


# ---------------------------------------------------------------------------------------------------------------- growth


def test_growth_ends_where_the_play_is(game):
    case, settings, found = game
    settings = settings["gauss"]
    values = study.growth(case, settings, [20, 60, 200], GRID)
    assert values.sizes.tolist() == [20, 60, 200]
    heads = ("gauss_x", "gauss_xy")
    assert [one.name for one in values.methods] == ["marginal", *heads]
    assert all(set(one) == {"marginal", *heads} for one in (values.pinball, values.auc, values.tpr))
    for s, size in enumerate((20, 60, 200)):
        for t, (pooled, inside) in enumerate(zip(case.scores[0], case.bank.judged, strict=False)):
            constant = np.full(120, np.quantile(case.scores[1][t, :size], 0.99))
            assert values.pinball["marginal"][s, t] == pytest.approx(pinball(case.scores[1][t, CALIBRATION], constant, 0.99))
            assert values.auc["marginal"][s, t] == pytest.approx(metrics.auc(pooled, inside))
            assert values.tpr["marginal"][s, t] == pytest.approx(metrics.conformal_tpr_at_fpr(pooled, inside, 0.01))
    for head in heads:
        assert_allclose(values.pinball[head][2], found.pinball[head][:, 0])
        assert_allclose(values.auc[head][2], metrics.auc(found.ranks[head], found.members))
        assert_allclose(values.tpr[head][2], metrics.conformal_tpr_at_fpr(found.ranks[head], found.members, 0.01))
        for s, size in enumerate((20, 60)):  # the same as a case with no more records
            shorter = altered(case, splits={**case.splits, "fit": np.arange(size)})
            for t in (0, 1):
                [(_, said)] = asked(shorter, settings, head, target=t)
                mean, spread = said["public"][:, CALIBRATION].astype(float)
                bars = mean + spread * stats.norm.ppf(0.99)
                assert values.pinball[head][s, t] == pytest.approx(pinball(case.scores[1][t, CALIBRATION], bars, 0.99))
                mean, spread = said["pool"].astype(float)
                score, inside = (case.scores[0][t] - mean) / spread, case.bank.members[t]
                wins = np.sign(score[inside][:, None] - score[~inside])
                assert values.auc[head][s, t] == pytest.approx(0.5 + wins.mean() / 2)
    only = study.growth(case, settings, [60], GRID, heads=["gauss_xy"])
    assert [one.name for one in only.methods] == list(only.auc) == ["marginal", "gauss_xy"]
    assert_array_equal(only.pinball["gauss_xy"], values.pinball["gauss_xy"][1:2])


@pytest.mark.parametrize("sizes,words", [([19], "sizes = 19 is out of range: allowed is from 20 to 200"),
                                         ([60, 201], "sizes = 201 is out of range")])
def test_sizes_that_cannot_be_are_refused(sizes, words, tables, untrained):
    with pytest.raises(MiaError, match=words):
        study.growth(tables, FOREST, sizes, GRID)


# -------------------------------------------------------------------------------------------------------------- transfer


def test_settings_that_are_the_same_transfer_without_loss(images, tables, played, forest_played, untrained):
    for tuned, other, settings, found in ((tables, images, NETWORK, played), (images, tables, FOREST, forest_played)):
        values = study.transfer(tuned, other, {"borrowed": settings, "own": settings}, GRID)
        assert_array_equal(values.borrowed, values.own)
        assert_allclose(values.own, found.pinball["gauss_xy"][:, 0])


def test_settings_that_differ_are_told_apart(tables, images, forest_played):
    weak = replace(FOREST, iterations=1, learning_rate=0.01)
    values = study.transfer(images, tables, {"borrowed": weak, "own": FOREST}, GRID)
    assert_allclose(values.own, forest_played.pinball["gauss_xy"][:, 0])
    for t in (0, 1):
        [(one, said)] = asked(tables, weak, "gauss_xy", target=t)
        bars = study.thresholds(one, said, "public", [0.99])[0, CALIBRATION]
        assert values.borrowed[t] == pytest.approx(pinball(tables.scores[1][t, CALIBRATION], bars, 0.99))
    swapped = study.transfer(images, tables, {"borrowed": FOREST, "own": weak}, GRID)
    assert_array_equal(swapped.borrowed, values.own)


# ------------------------------------------------------------------------------------------------------------------ keys

STUDIES = {"play": lambda case, settings: study.play(case, {"gauss": settings, "pinball": settings}, HEADS, GRID),
           "flattery": lambda case, settings: study.flattery(case, of(settings), GRID),
           "quarters": lambda case, settings: study.quarters(case, settings, GRID),
           "views": lambda case, settings: study.views(case, settings, GRID),
           "one_target": lambda case, settings: study.one_target(case, settings, GRID),
           "growth": lambda case, settings: study.growth(case, settings, [60], GRID),
           "tune": lambda case, settings: study.tune(case, settings, 3, GRID),
           "transfer": lambda case, settings: study.transfer(case, case, {"borrowed": settings, "own": settings}, GRID),
           "mismatch": lambda case, settings: study.mismatch({"one": case}, 2)}


@pytest.fixture
def key_of(monkeypatch, untrained):
    """The key of a study's results."""
    def find(function, *given):
        caught = []

        def stop(spec, compute):
            caught.append(spec)
            raise InterruptedError

        with monkeypatch.context() as patch:
            patch.setattr(store, "fetch", stop)
            with pytest.raises(InterruptedError):
                function(*given)
        return store.key(caught[0])

    return find


@pytest.mark.parametrize("name", STUDIES)
def test_results_are_kept_under_what_determines_them(name, images, tables, key_of):
    run = STUDIES[name]
    key = key_of(run, images, NETWORK)
    again = study.image_case(**IMAGES)
    for equal in (again, replace(again, name="another name", models=replace(again.models, label="other", workers=3))):
        assert key_of(run, equal, replace(NETWORK)) == key
    changed = [study.image_case(**IMAGES | given) for given in (
        {"seed": 1}, {"views": "none"}, {"views": "flip_crop:1"}, {"pool": 420}, {"public": 402}, {"targets": 3},
        {"counts": (4,)}, {"splits": (0.4, 0.3, 0.3)}, {"config": TrainConfig("mlp:8", epochs=2)})]
    changed.append(replace(images, bank=replace(images.bank, members=images.bank.members[[2, 3, 0, 1, 4, 5]])))
    keys = [key_of(run, one, NETWORK) for one in (*changed, tables) if name != "views" or len(one.seen) == 3]
    if name != "mismatch":  # which fits no regression
        keys += [key_of(run, images, replace(NETWORK, **given)) for given in ({"epochs": 3}, {"seed": 1}, {"hidden": ()})]
    assert len({key, *keys}) == 1 + len(keys)


def test_results_depend_on_what_a_study_was_asked_for(images, key_of):
    few, asked_for = study.fitted_levels(5), [
        lambda: study.play(images, NETWORKS, HEADS, GRID), lambda: study.play(images, NETWORKS, HEADS[:2], GRID),
        lambda: study.play(images, {**NETWORKS, "pinball": replace(NETWORK, seed=1)}, HEADS, GRID),
        lambda: study.play(images, NETWORKS, HEADS, few), lambda: study.flattery(images, of(NETWORK), GRID, 3),
        lambda: study.flattery(images, of(NETWORK), few), lambda: study.flattery(images, of(NETWORK, HEADS[:2]), GRID),
        lambda: study.flattery(images, [*of(NETWORK), ("gauss_x", NETWORKS["pinball"])], GRID),
        lambda: study.growth(images, NETWORK, [61], GRID), lambda: study.growth(images, NETWORK, [60], GRID, ["gauss_x"]),
        lambda: study.tune(images, NETWORK, 4, GRID), lambda: study.tune(images, NETWORK, 3, GRID, 10),
        lambda: study.tune(images, NETWORK, 3, GRID, head="pinball_x"),
        lambda: study.mismatch({"one": images}, 4), lambda: study.mismatch({"two": images}, 2)]
    keys = [key_of(run, images, NETWORK) for run in STUDIES.values()] + [key_of(run) for run in asked_for]
    assert len(set(keys)) == len(keys)


def test_equal_cases_share_what_was_computed(played, forest_played, untrained):
    for make, given, settings, found in ((study.image_case, IMAGES, NETWORKS, played),
                                         (study.table_case, TABLES, FORESTS, forest_played)):
        equal(study.play(make(**given), settings, HEADS, GRID), found)


def test_a_backbone_that_is_not_here_is_said_before_targets_are_trained(images, monkeypatch):
    monkeypatch.setattr(study.networks, "lacking", lambda backbone: f"no {backbone} here")
    monkeypatch.setattr(study, "_tried", lambda *given: pytest.fail("something was fitted"))
    with pytest.raises(MiaError, match="no efficientnet_lite0 here"):
        study.tune(images, replace(NETWORK, backbone="efficientnet_lite0"), 2, GRID, 5)
