"""The curvature chapter: its frames against the library's functions, on banks whose signals are made up."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from mia_book.chapters.curvature import exhibits, study
from mia_lib import data, membership, metrics, models, signals, training
from mia_lib.attacks import baselines, bayes
from mia_lib.attacks import curvature as attack
from mia_lib.errors import MiaError
from mia_lib.published import Bank


def bank_of(**arrays):
    return Bank("toy", {}, arrays, [])


def toy_bank(gap, count=12, n=600, seed=0, others=60):
    """Log odds of members lie `gap` higher and their log curvature `gap` lower, on records of their own difficulty; of the
    first third the curvature in float32 is nothing. The bank has records besides that no model was trained on."""
    rng = np.random.default_rng(seed)
    members, hard = membership.balanced_halves(n, count, seed), 2 * rng.normal(size=n)
    views = members[..., None] * np.array([1.0, 0.5]) * gap
    margin = hard[:, None] + views + 0.5 * rng.normal(size=views.shape)
    log = -8 + hard[:, None] - views + 0.5 * rng.normal(size=views.shape)
    released = log.copy()
    released[:, : n // 3] = np.log(1e-22)
    whole = np.hstack([margin[..., 0], rng.normal(size=(count, others))])
    arrays = {
        "released": released,
        "precise": log[:, : n // 2],
        "true": margin,
        "top": np.abs(margin),
        "entropy": -margin[..., 0],
        "shifted": margin,
        "exact": log[:, : n // 4, 0],
        "own": log[:, : n // 4, 0] + hard[: n // 4],
    }
    return (
        bank_of(
            **{name: array.astype(np.float16) for name, array in arrays.items()}, members=members
        ),
        bank_of(
            margin=whole.astype(np.float16),
            members=np.hstack([members, np.zeros((count, others), bool)]),
        ),
    )


CURVED, BANK = toy_bank(1.5)
GAME = study.attacked(CURVED, 4, 8)
GAMES = dict(study.pairs(GAME))
FRAME, SCORES, MEMBERS = study.table_1("cifar100", CURVED, BANK, GAME, draws=20)


def test_the_frame_has_what_the_functions_of_the_page_say():
    """Targets are one of each pair, and their partner serves nobody."""
    assert list(GAMES) == [0, 2, 4, 6]
    assert all(not {t, t + 1} & {*others} and len(others) == 8 for t, others in GAMES.items())
    for targets, references, said in (
        (7, 8, "of 12 models 6 can be attacked"),
        (4, 12, "of 12 models 6 can be attacked"),
        (4, 7, "references = 7: an even number"),
        (4, 2, "4 at least"),
    ):
        with pytest.raises(MiaError, match=said):
            study.attacked(CURVED, targets, references)
    # in the paper's order
    assert list(SCORES)[:8] == list(study.PAPER) and SCORES["Yeom"].shape == (4, 600)
    assert (MEMBERS == CURVED.members[:8:2]).all()
    loss, others = signals.loss_of(CURVED.true[..., 0]), GAMES[4]
    assert_allclose(
        SCORES["MAST"][2], bayes.mast(loss[4], loss[others], CURVED.members[others], "middle")
    )
    inside, true, top, log = CURVED.members[others], CURVED.true, CURVED.top, CURVED.released
    assert_allclose(
        SCORES["LiRA, one spread"][2], baselines.lira_online(true[4], true[others], inside, True)
    )
    assert_allclose(SCORES[study.RATIO][2], attack.nll(log[4], log[others], inside))
    assert_allclose(SCORES[study.NLL][2], attack.nll(log[4], log[others], inside, "released_code"))
    for name, signal in (
        (study.LR, log),
        ("LiRA, as released", top),
        ("LiRA, released rule", true),
    ):
        assert_allclose(
            SCORES[name][2],
            attack.likelihood_ratio(signal[4], signal[others], inside, "released_code"),
        )
    for protocol in study.PROTOCOLS:
        yeom = metrics.estimate(FRAME, "Yeom", "auc", protocol=protocol)
        # one view in either protocol
        assert_allclose(yeom.values, metrics.auc(SCORES["Yeom"], MEMBERS))
    two = metrics.estimate(FRAME, study.TRUE, "auc", protocol="as released")
    assert_allclose(two.values, metrics.auc(SCORES[study.TRUE], MEMBERS))
    # without records that no model was trained on
    assert "RMIA" not in study.methods(CURVED, GAME, 1)[0]
    p, elsewhere = (
        np.exp(-signals.loss_of(BANK.margin[[0, *GAMES[0]]][:, rows]))
        for rows in (slice(600), slice(600, None))
    )
    assert_allclose(
        SCORES["RMIA"][0],
        baselines.rmia(p[0], p[1:], CURVED.members[GAMES[0]], elsewhere[0], elsewhere[1:]),
    )


def test_queries_are_counted_and_curvature_is_the_precise_one():
    frame = study.queries("cifar100", CURVED, BANK, GAME, draws=20)
    table = exhibits.queries_table(frame)
    assert len(table) == len(frame[frame["study"] == "queries"].groupby(["queries", "attack"]))
    assert list(table.index.get_level_values("queries")) == sorted(
        table.index.get_level_values("queries")
    )
    of_attack = frame[frame["study"] == "queries"].groupby("attack")["queries"].unique().map(sorted)
    assert of_attack[study.RATIO] == [40, 80]
    assert of_attack[study.TRUE] == [1, 2, 18, 80]
    assert of_attack["RMIA"] == [1]
    auc = metrics.estimate(frame, study.RATIO, "auc", queries=40)
    scores = study.against(
        study.pairs(GAME),
        CURVED.members[:, :300],
        lambda t, others, inside: study.curvature_attacks(
            CURVED.precise[..., :1], t, others, inside
        ),
    )[0][study.RATIO]
    assert_allclose(auc.values, metrics.auc(scores, MEMBERS[:, :300]))


def test_where_float32_has_nothing_precision_matters_and_the_share_of_nothing_is_told():
    frame = study.precisions("cifar100", CURVED, GAME, draws=20)
    zero = [
        metrics.estimate(frame, study.CURVATURE, "zero", precision=one).value
        for one in ("float32", "float64")
    ]
    assert zero == [pytest.approx(2 / 3), 0]  # of the first half of the records
    auc = [
        metrics.estimate(frame, study.RATIO, "auc", precision=one).value
        for one in ("float32", "float64")
    ]
    assert auc[1] > auc[0] + 0.1


def test_fewer_references_are_the_first_ones():
    frame = study.by_references("cifar100", CURVED, GAME, draws=20, few=4)
    metric = "conformal_tpr_at_fpr=0.001"
    assert sorted(frame["references"].unique()) == [4, 8]
    fewer = replace(GAME, references=4)
    scores = study.methods(CURVED, fewer, 2)[0]
    for name in (study.LR, study.RELEASED):
        rates = metrics.estimate(
            metrics.by_target({name: scores[name]}, MEMBERS, (metric,), draws=20), name, metric
        ).values
        assert_allclose(metrics.estimate(frame, name, metric, references=4).values, rates)
    assert study.by_references("cifar100", CURVED, GAME, draws=20)[
        "references"
    ].unique().tolist() == [8]


def test_the_distance_of_gaussian_values_is_small_and_of_others_is_not():
    normal = metrics.estimate(study.gaussian("x", CURVED, GAME), study.CURVATURE, "distance").value
    values = np.exp(np.random.default_rng(1).normal(size=(12, 600, 1))).astype(np.float16)
    skewed = bank_of(precise=values, members=CURVED.members)
    assert (
        normal
        < 0.09
        < metrics.estimate(study.gaussian("x", skewed, GAME), study.CURVATURE, "distance").value
    )


def test_half_precision_moves_no_number_that_is_shown():
    """Log curvature and log odds are kept in half precision: AUC to a ten-thousandth, TPR at 1 % to a thousandth."""
    rng, members = np.random.default_rng(3), membership.balanced_halves(4000, 12, 3)
    for offset in (-12, 6):
        signal = offset + 3 * rng.normal(size=4000) - 1.2 * members + rng.normal(size=members.shape)
        found = [
            attack.nll(one[0], one[GAMES[0]], members[GAMES[0]])
            for one in (signal, signal.astype(np.float16))
        ]
        assert abs(np.subtract(*[metrics.auc(score, members[0]) for score in found])) < 2e-4
        assert (
            abs(np.subtract(*[metrics.tpr_at_fpr(score, members[0], 0.01) for score in found]))
            < 2e-3
        )


def test_the_banks_own_models_stand_among_random_sets_whose_references_are_halves_of_cifar_100():
    other = toy_bank(1.5, 4, seed=5)[0]
    targets = {
        (kind, size): bank_of(
            **{name: getattr(other, name)[:3, :, 0] for name in ("released", "true", "top")},
            members=other.members[:3],
        )
        for kind in ("random", "coreset")
        for size in (100, 900)
    }
    frame = study.sizes(CURVED, 300, targets, GAME, draws=20)
    assert frame[frame["kind"] == "random"]["size"].unique().tolist() == [100, 300, 900]
    own, one_view = (
        metrics.estimate(one, study.NLL, "auc", **where).values
        for one, where in (
            (frame, {"kind": "random", "size": 300}),
            (FRAME, {"protocol": "one view"}),
        )
    )
    assert_allclose(own, one_view)
    references, half, targets = study.of_other_sizes([1000], [5000], 8)
    assert references.members.shape == (8, 4000) and half == 25_000
    assert {key: bank.members.shape for key, bank in targets.items()} == {
        ("random", 1000): (8, 4000),
        ("coreset", 5000): (8, 4000),
    }


def test_tables_stand_beside_the_papers():
    table = exhibits.table_one(FRAME)
    assert list(table.index.get_level_values("attack"))[:8] == list(study.PAPER)
    assert table.shape == (14, 4)
    assert str(table.loc[("CIFAR-100", study.NLL), "AUC, paper"]) == "93.5"
    assert str(table.loc[("CIFAR-100", "RMIA"), "AUC, paper"]) == "–"
    views = exhibits.views_table(FRAME)
    assert str(views.loc[("CIFAR-100", study.LR), "one view, paper"]) == "88.1" and len(views) == 5
    low = exhibits.table_five(FRAME, "cifar100")
    assert str(low.loc[study.LR, "TPR at 0.1 %, paper"]) == "23.9"
    assert str(low.loc[study.LR, "TPR at 0.01 %"]) == "below resolution"
    signals_of = exhibits.signals_table(study.estimators("cifar100", CURVED, GAME, draws=20))
    assert list(signals_of.index.get_level_values("signal")) == list(study.SIGNALS)


def test_a_probe_reads_the_hessian_at_small_steps_whatever_the_label():
    torch.manual_seed(0)
    layers, images = torch.nn, data.load("fashion_mnist_20k").take(np.arange(2))
    smooth = layers.Sequential(
        layers.Flatten(), layers.Linear(784, 8), layers.Tanh(), layers.Linear(8, 10)
    )
    linear = layers.Sequential(layers.Flatten(), layers.Linear(784, 10))
    probed = study.probe(models.feed(smooth, "-1 to 1").eval(), images.x[0], [3, 4])
    assert len(probed) == 2 * len(study.STEP_SIZES)
    small = probed[(probed["h"] > 9e-5) & (probed["h"] < 2e-4)]
    assert_allclose(small["q"], small["product"], rtol=0.02)
    (_, one), (_, other) = study.probe(
        models.feed(linear, "-1 to 1").eval(), images.x[0], [3, 4]
    ).groupby("label")
    # logits are linear: no label at any step
    assert_allclose(one["q"].to_numpy()[10:], other["q"].to_numpy()[10:], atol=1e-6)
    chart = exhibits.probe_chart(probed.astype({"label": str}), 1e-3).to_dict()
    assert len(chart["datasets"]["rows"]) == len(probed)


def test_the_probed_record_is_one_that_the_network_has_not_seen_and_gets_wrong():
    records = data.load("fashion_mnist_20k").take(np.arange(60))
    members = membership.balanced_halves(60, 2, 0)
    networks = training.train(
        records, members, training.TrainConfig("strided_cnn:4,4,8", epochs=2, batch_size=10)
    )
    called = signals.logits(networks, records)[0].argmax(-1)
    record = np.flatnonzero(~members[0] & (called != records.y))[0]
    label, own = study.probe_of_stranger(networks, records, members[0])["label"].unique()
    assert label == f"the label, {records.classes[records.y[record]]}"
    assert own == f"the network's own, {records.classes[called[record]]}"


def test_theorems_hold_but_for_the_lemma_as_printed():
    frame = study.theorems(seed=1).set_index(["attack", "metric"])["value"]
    assert frame["Theorem 4.1", "excess"] <= 1e-12 and frame["Theorem 4.3", "excess"] == 0
    assert frame["Lemma A.1", "excess"] == pytest.approx(2 - 1 - 4 / 27)
    assert frame["four points", "distance"] < 1e-3


def test_networks_that_know_their_members_stand_beside_the_papers_cifar_100():
    curved, bank = study.measured(study.MEMORISED, 12, 0)
    assert bank is None and curved.members.shape == (12, 4000)
    assert (curved.true[..., 0] > 0)[curved.members].mean() > 0.999  # log odds of the true class
    frame, scores, members = study.table_1(
        study.MEMORISED, curved, bank, study.attacked(curved, 4, 10), draws=10
    )
    assert scores["Yeom"].shape == members.shape == (4, 4000) and "RMIA" not in set(frame["attack"])
    table = exhibits.table_one(frame)
    assert table.loc[
        ("4,000 images of CIFAR-100", "Curv ZO NLL"), "AUC, paper"
    ].value == pytest.approx(93.49)
    zero = study.precisions(study.MEMORISED, curved, study.attacked(curved, 4, 10), draws=10).query(
        "metric == 'zero'"
    )
    share = zero.groupby("precision")["value"].mean()
    assert share["float32"] > 0.05 > 100 * share["float64"]
