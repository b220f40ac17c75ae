"""The curvature chapter: its frames against the library's functions, on banks whose signals are made up."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose

from mia_book.chapters.curvature import exhibits, study
from mia_lib import data, membership, metrics, models, signals, training
from mia_lib.attacks import baselines, bayes
from mia_lib.attacks import curvature as attack
from mia_lib.published import Bank


def bank_of(**arrays):
    return Bank("toy", {}, arrays, [])


def toy_bank(gap, count=12, n=600, seed=0):
    """Log odds of members lie `gap` higher and their log curvature `gap` lower, on records of their own difficulty; of the
    first third the curvature in float32 is nothing."""
    rng = np.random.default_rng(seed)
    members, hard = membership.balanced_halves(n, count, seed), 2 * rng.normal(size=n)
    views = members[..., None] * np.array([1.0, 0.5]) * gap
    margin = hard[:, None] + views + 0.5 * rng.normal(size=views.shape)
    log = -8 + hard[:, None] - views + 0.5 * rng.normal(size=views.shape)
    released = log.copy()
    released[:, : n // 3] = np.log(1e-22)
    arrays = {
        "released": released,
        "precise": log[:, : n // 2],
        "true": margin,
        "top": np.abs(margin),
        "entropy": -margin[..., 0],
        "exact": log[:, : n // 4, 0],
        "own": log[:, : n // 4, 0] + hard[: n // 4],
    }
    arrays = {name: array.astype(np.float16) for name, array in arrays.items()}
    return bank_of(**arrays, members=members)


CURVED = toy_bank(1.5)
REFERENCES = 8
FRAME, _, SCORES = study.attack_bank("CIFAR-10", CURVED, 12, [6, REFERENCES], draws=5)


def test_the_frame_has_what_the_functions_of_the_page_say():
    """Every model is a target, and its partner serves nobody."""
    game = study.attacked(CURVED, 12, REFERENCES, 2)
    view = list(game)[4]
    others, inside = view.models, CURVED.members[view.models]
    assert view.target == 4 and not {4, 5} & {*others} and len(others) == REFERENCES
    assert list(SCORES)[:8] == list(study.PAPER) and SCORES["Yeom"].shape == (12, 600)
    loss = signals.loss_of(CURVED.true[..., 0])
    assert_allclose(SCORES["MAST"][4], bayes.mast(loss[4], loss[others], inside, "middle"))
    log, top = CURVED.released, CURVED.top
    assert_allclose(SCORES[study.NLL][4], attack.nll(log[4], log[others], inside, "released_code"))
    for name, signal in ((study.LR, log), (study.RELEASED, top)):
        expected = attack.likelihood_ratio(signal[4], signal[others], inside, "released_code")
        assert_allclose(SCORES[name][4], expected)
    for views in ("1 view", "2 views"):
        yeom = metrics.estimate(
            FRAME, "Yeom", "auc", study="attacks", views=views, references="8 references"
        )
        # one view in either case
        assert_allclose(yeom.values, metrics.auc(SCORES["Yeom"], CURVED.members))
    measured = FRAME[(FRAME["study"] == "measures") & (FRAME["attack"] == study.LIRA)]
    assert set(measured["measure"]) == {"AUC", "1 %"} | {"0.1 %"} and len(measured) == 2 * 2 * 3
    assert metrics.estimate(
        measured, study.LIRA, "found", views="2 views", references="8 references", measure="AUC"
    ).value == pytest.approx(
        metrics.estimate(
            FRAME,
            study.LIRA,
            "auc",
            study="attacks",
            views="2 views",
            references="8 references",
        ).value
    )


def test_what_is_chosen_is_best_on_the_attackers_own_models_and_adds_up():
    view = study.attacked(CURVED, 12, REFERENCES).view(0)
    chosen = study.choose(view)["auc"]
    own = view.on(np.arange(600)[:: study.STEP]).rehearsals(2)
    for name, forms in study.FORMS.items():
        found = {
            form: sum(metrics.auc(score(each), inside) for each, inside in own)
            for form, score in forms.items()
        }
        assert found[chosen[name]] == max(found.values())
    ratios = study.log_ratios(view, {"auc": chosen})["auc"]
    assert_allclose(
        ratios[study.BOTH], ratios[study.LIRA] + chosen[study.BOTH] * ratios[study.RATIO]
    )
    # too few references to attack one of them: the first form, and no curvature
    few = study.choose(study.attacked(CURVED, 2, 4).view(0))["auc"]
    assert few == {name: next(iter(forms)) for name, forms in study.FORMS.items()} | {study.BOTH: 0}


def test_liras_many_views_have_a_gaussian_each():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(*CURVED.members.shape, 3))
    queries = bank_of(queries=CURVED.true[..., :1] + noise, members=CURVED.members)
    frame, _, _ = study.attack_bank("x", CURVED, 4, [REFERENCES], 2, queries)
    auc = metrics.estimate(frame, study.LIRA, "auc", study="attacks", views="3 views")
    game = study.attacked(CURVED, 4, REFERENCES)
    scores = [
        baselines.lira_online(
            queries.queries[view.target], queries.queries[view.models], view.reference_members, True
        )
        for view in game
    ]
    assert_allclose(auc.values, metrics.auc(np.stack(scores), game.target_members), atol=0.02)
    table = exhibits.queries_table(pd.concat([frame]))
    assert [*map(int, table.index.get_level_values("queries"))] == [1, 1, 1, 2, 3, 40, 40, 80, 80]


def test_where_float32_has_nothing_precision_matters_and_the_share_of_nothing_is_told():
    frame = study.precisions("x", CURVED, 4, REFERENCES)
    zero = [
        metrics.estimate(frame, study.CURVATURE, "zero", precision=one).value
        for one in ("float32", "float64")
    ]
    assert zero == [pytest.approx(2 / 3), 0]  # of the first half of the records


def test_the_distance_of_gaussian_values_is_small_and_of_others_is_not():
    def distance(bank):
        return metrics.estimate(
            study.gaussian("x", bank, 4, REFERENCES), study.CURVATURE, "distance"
        ).value

    values = np.exp(np.random.default_rng(1).normal(size=(12, 600, 2))).astype(np.float16)
    skewed = Bank("toy", {}, CURVED.arrays | {"released": values}, [])
    normal = Bank("toy", {}, CURVED.arrays | {"released": np.log(values)}, [])
    assert distance(normal) < 0.09 < distance(skewed)


def test_half_precision_moves_no_number_that_is_shown():
    """Log curvature and log odds are kept in half precision: AUC to a ten-thousandth, TPR at 1 % to a thousandth."""
    rng, members = np.random.default_rng(3), membership.balanced_halves(4000, 12, 3)
    for offset in (-12, 6):
        signal = offset + 3 * rng.normal(size=4000) - 1.2 * members + rng.normal(size=members.shape)
        found = [
            attack.nll(one[0], one[2:10], members[2:10])
            for one in (signal, signal.astype(np.float16))
        ]
        assert abs(np.subtract(*[metrics.auc(score, members[0]) for score in found])) < 2e-4
        assert (
            abs(np.subtract(*[metrics.tpr_at_fpr(score, members[0], 0.01) for score in found]))
            < 2e-3
        )


def test_the_banks_own_models_stand_among_random_sets_whose_references_are_halves_of_cifar_100():
    other = toy_bank(1.5, 4, seed=5)
    targets = {
        (kind, size): bank_of(
            **{name: getattr(other, name)[..., 0] for name in ("released", "true", "top")},
            members=other.members,
        )
        for kind in ("random", "coreset")
        for size in (100, 30_000)
    }
    frame = study.sizes("toy", CURVED, 25_000, targets, draws=5)
    of_random = frame[(frame["kind"] == "random") & (frame["study"] == "sizes")]
    assert of_random["size"].unique().tolist() == [100, 25_000, 30_000]
    assert {*frame["networks"]} == {"toy"}
    for size in study.CROSSINGS.values():
        large = frame[frame["study"] == f"beyond {size:,}"]
        assert large["size"].unique().tolist() == [25_000, 30_000]
        assert {*large["kind"]} == {"random"}
    references, half, targets = study.of_other_sizes([1000], [5000], 8)
    assert references.members.shape == (8, 4000) and half == 25_000
    assert {key: bank.members.shape for key, bank in targets.items()} == {
        ("random", 1000): (8, 4000),
        ("coreset", 5000): (8, 4000),
    }
    # at least a thousand steps
    assert study.epochs_by_size(half, references, targets) == {1000: 250, 5000: 50, 25_000: 20}


def test_tables_stand_beside_the_papers():
    table = exhibits.table_one(FRAME)
    assert list(table.index.get_level_values("attack")) == list(study.PAPER)
    assert str(table.loc[("CIFAR-10", study.NLL), "AUC, paper"]) == "68.8"
    views = exhibits.views_table(FRAME)
    assert str(views.loc[("CIFAR-10", study.LR), "AUC, 1 view, paper"]) == "58.1"
    low = exhibits.table_five(FRAME.assign(data="by heart"), "by heart")
    assert str(low.loc[study.LR, "TPR at 0.1 %, 2 views, paper"]) == "23.9"
    assert str(low.loc[study.LR, "TPR at 0.01 %, 1 view"]) == "below resolution"
    five = exhibits.five_methods(FRAME)
    assert [*five.index] == [
        ("CIFAR-10", "loss", 1),
        ("CIFAR-10", "MAST", 1),
        ("CIFAR-10", "curvature", 40),
        ("CIFAR-10", "LiRA", 1),
        ("CIFAR-10", "LiRA + curvature", 41),
    ]
    of_imagenet = exhibits.imagenet().set_index("attack")
    assert of_imagenet.loc["Curv ZO NLL", "AUC"] == "77.45"
    assert of_imagenet.loc["Curv ZO NLL", "AUC, one view"] == "75.84"
    assert of_imagenet.loc["Yeom et al. (2018)", "AUC, one view"] == "–"
    signals_of = exhibits.signals_table(study.estimators("x", CURVED, 4, REFERENCES))
    assert list(signals_of.index.get_level_values("signal")) == list(study.SIGNALS)


def test_a_probe_reads_the_hessian_at_small_steps_whatever_the_label():
    torch.manual_seed(0)
    layers, images = torch.nn, data.load("fashion_mnist_20k").take(np.arange(2))
    smooth = layers.Sequential(
        layers.Flatten(), layers.Linear(784, 8), layers.Tanh(), layers.Linear(8, 10)
    )
    linear = layers.Sequential(layers.Flatten(), layers.Linear(784, 10))
    probed = study.probe(models.set_input_scaling(smooth, "-1 to 1").eval(), images.x[0], [3, 4])
    assert len(probed) == 2 * len(study.STEP_SIZES)
    small = probed[(probed["h"] > 9e-5) & (probed["h"] < 2e-4)]
    assert_allclose(small["q"], small["product"], rtol=0.02)
    (_, one), (_, other) = study.probe(
        models.set_input_scaling(linear, "-1 to 1").eval(), images.x[0], [3, 4]
    ).groupby("label")
    # logits are linear: no label at any step
    assert_allclose(one["q"].to_numpy()[10:], other["q"].to_numpy()[10:], atol=1e-6)
    chart = exhibits.probe_chart(probed.astype({"label": str}), 1e-3).to_dict()
    assert len(chart["datasets"]["rows"]) == len(probed)


def test_probed_records_are_those_that_the_network_has_not_seen_and_gets_wrong():
    records = data.load("fashion_mnist_20k").take(np.arange(60))
    members = membership.balanced_halves(60, 2, 0)
    config = training.TrainConfig("strided_cnn:4,4,8", epochs=2, batch_size=10)
    networks = training.train(records, members, config)
    called = signals.logits(networks, records)[0].argmax(-1)
    found = study.strangers(networks, records, members[0], 0.1)
    assert [*found["record"]] == [*np.flatnonzero(~members[0] & (called != records.y))]
    shown = found.loc[found["left"].idxmax()]
    probed = study.probe_of_stranger(networks, records, found)
    label, own = probed["label"].unique()
    assert label == f"the label, {records.classes[int(shown['label'])]}"
    assert own == f"the network's own, {records.classes[int(shown['called'])]}"
    at_step = probed[np.isclose(probed["h"], 0.1)]["q"].to_numpy()
    assert_allclose(at_step, [shown["q"], shown["q_called"]])


def test_the_four_losses_of_the_picture_are_those_of_the_probe():
    torch.manual_seed(0)
    images = data.load("fashion_mnist_20k").take(np.arange(2))
    layers = torch.nn
    smooth = layers.Sequential(
        layers.Flatten(), layers.Linear(784, 8), layers.Tanh(), layers.Linear(8, 10)
    )
    network = models.set_input_scaling(smooth, "-1 to 1").eval()
    points, losses = study.four_points(network, images.x[0], 3, 0.1)
    assert points.shape == (5, 28, 28)
    q = (losses[1] - losses[2] - losses[3] + losses[4]) / (4 * 0.1**2)
    probed = study.probe(network, images.x[0], [3], sizes=np.array([0.1]))
    assert q == pytest.approx(probed["q"].iloc[0])
    assert len(exhibits.four_losses(points, losses).axes) == 5


def test_theorems_hold_but_for_the_lemma_as_printed():
    frame = study.theorems(seed=1).set_index(["attack", "metric"])["value"]
    assert frame["Theorem 4.1", "excess"] <= 1e-12
    assert frame["Lemma A.1", "excess"] == pytest.approx(2 - 1 - 4 / 27)
    assert frame["four points", "distance"] < 1e-3


def test_networks_that_know_their_members_and_those_published_besides():
    curved = study.measured(study.MEMORISED, 12, 0)
    assert curved.members.shape == (12, 4000)
    assert (curved.true[..., 0] > 0)[curved.members].mean() > 0.999  # log odds of the true class
    zero = study.precisions(study.MEMORISED, curved, 4, 10, draws=2).query("metric == 'zero'")
    share = zero.groupby("precision")["value"].mean()
    assert share["float32"] > 0.05 > 100 * share["float64"]
    others = study.other_banks(4)
    assert others["CIFAR-100"].members.shape == (4, 4000) and "ResNet-18" not in others
    queries = study.many_queries(study.MEMORISED, 4)
    assert queries.queries.shape == (4, 4000, 18)
    # the image itself and its mirror image come first, under the same networks
    assert_allclose(queries.queries[..., :2], curved.true[:4], atol=0.1, rtol=0.01)
    assert study.many_queries("cifar10", 4, epochs=3) is None
    assert study.many_queries("mnist", 4) is None
