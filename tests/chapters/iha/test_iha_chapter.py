"""What the chapter on the inverse Hessian attack measures and shows: beside plain matrices, and beside the paper."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose

from mia_book.chapters.iha import costs, exhibits, measure, study
from mia_book.chapters.iha.measure import root, square
from mia_book.publishing import catalogue
from mia_lib import data, membership, metrics, models, signals
from mia_lib.attacks import baselines
from mia_lib.errors import MiaError
from mia_lib.published import Bank
from mia_lib.signals import hessian
from mia_lib.training.losses import precise_loss
from mia_lib.training.recipe import learning_rate, seed_of

GAME = {
    "dataset": "fashion_mnist_20k",
    "architecture": "mlp:2",
    "records": 120,
    "epochs": 12,
    "batch_size": 20,
    "learning_rate": 0.05,
    "momentum": 0.8,
    "weight_decay": 0.01,
    "seed": 0,
}
RECIPE = measure.ODD | GAME | {"judged": 100}
RATES = measure.rates_of(GAME)
ASKED = {
    "damping": 2.0,
    "inner": 120,
    "dampings": [0.01, 2.0, 4.0],
    "thresholds": [0.02],
    "swept": 90,
    "solved": 12,
    "tolerance": 1e-6,
    "judged": 100,
}
TARGETS, MODELS = 3, 8


def bank_of(name, models, **parameters):
    measurement = catalogue()[name]
    whole = measurement.complete(parameters)
    return Bank(name, whole, measurement.compute(range(models), whole), [])


@pytest.fixture(scope="module")
def case():
    audit = bank_of("iha/fashion", TARGETS, **GAME, **ASKED)
    return study.Case("a set", audit, bank_of("iha/fashion-bank", MODELS, **GAME, judged=100))


@pytest.fixture(scope="module")
def frames(case):
    table, scores, members = study.table_2(case, draws=10)
    return {
        "table": table,
        "scores": scores,
        "members": members,
        "told": study.control(case, 10),
        "parts": study.table_4(case, 10),
        "swept": study.conditioning(case, 10),
        "solved": study.conjugate(case, 10),
    }


@pytest.fixture(scope="module")
def less(case):
    return bank_of(
        "iha/fashion-partial", TARGETS, **GAME, damping=2.0, judged=100, fractions=[0.5, 1.0]
    )


@pytest.fixture(scope="module")
def partial(case, less):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "where_measured", lambda *_, **__: less)
        return study.partial_knowledge(case, [0.5, 1.0], True, 10, **GAME)


@cache
def matrices(target: int) -> "Matrices":
    return Matrices(target)


class Matrices:
    """Hessian, gradients and parameters of a target, without any of the chapter's shortcuts."""

    def __init__(self, target, known=None):
        models, pool, rows = measure.targets(range(target, target + 1), RECIPE)
        network, is_member = models.model(0), models.members[0] if known is None else known
        self.is_member, self.rows, self.n = models.members[0], rows, is_member.sum()
        self.hessian = hessian.exact(network, pool.x[is_member], pool.y[is_member], dtype="float64")
        self.gradients = np.concatenate(
            list(signals.record_gradients(network, pool.x, pool.y, dtype="float64"))
        )
        self.mean = self.gradients[is_member].mean(0)
        self.loss = signals.loss(models, pool)[0].astype(float)
        self.theta = np.concatenate(
            [p.detach().numpy().ravel() for p in network.parameters()]
        ).astype(float)

    def score(self, told, inverse, decay=0.0, loss=True):
        """Eq. 8, a record at a time."""
        rate, momentum, alpha = RATES.values()
        a, found, steps = rate / (1 + momentum), [], self.gradients[self.rows] @ inverse
        whole = inverse @ (self.mean + decay * self.theta)
        flags = np.broadcast_to(told, len(self.rows))
        for z, flag, x, further in zip(self.rows, flags, steps, steps @ inverse, strict=True):
            x0 = whole - flag * x / self.n  # of the other records
            terms = (
                (1 - a * alpha) * x @ x / self.n
                + 2 * (1 - a * alpha) * x0 @ x
                + alpha / (2 * self.n) * (2 - a * alpha) * x @ further
                + alpha * (2 - a * alpha) * x0 @ further
            )
            found.append(loss * self.loss[z] / (1 + momentum) - terms / rate)
        return np.array(found)


def damped(matrices, epsilon):
    return np.linalg.inv(matrices.hessian + epsilon * np.eye(len(matrices.hessian)))


def near(found, wanted):
    """To a thousandth of the spread of the scores, which are kept in half precision."""
    assert_allclose(found, wanted, rtol=2e-3, atol=4e-3 * np.std(wanted))


def test_the_audit_is_what_matrices_say(case):
    for t in range(TARGETS):
        by_hand, members = matrices(t), case.audit.members
        is_member = by_hand.is_member[by_hand.rows]
        assert (members[t] == is_member).all()
        inverse = damped(by_hand, 2.0)
        near(study.scores(case, members, few=True)[t], by_hand.score(is_member, inverse))
        near(study.scores(case, 0, few=True)[t], by_hand.score(0, inverse))
        flags = study.random_flags(members)
        near(study.scores(case, flags, few=True)[t], by_hand.score(flags[t], inverse))
        own, left = by_hand.gradients[by_hand.rows], by_hand.mean + 0.01 * by_hand.theta
        near(square(case.audit.influence[t]), ((own @ inverse) * own).sum(1))
        rest = left - is_member[:, None] * own / by_hand.n
        near(
            study.gradient_alone(case)[t], (rest**2).sum(1) - ((rest + own / by_hand.n) ** 2).sum(1)
        )
        assert case.audit.norm[t] == pytest.approx(np.linalg.norm(left), rel=1e-5)


def test_terms_add_up_to_the_score_and_the_weight_decay_joins_the_gradient_of_the_others(case):
    """In I2; in I4 it would be of second order and is left out."""
    by_hand, members = matrices(0), case.audit.members
    whole = study.scores(case, members, few=True)
    parts = [
        study.scores(case, members, (term,), few=True) for term in ("loss", "I1", "I2", "I3", "I4")
    ]
    assert_allclose(sum(parts), whole, rtol=1e-9, atol=1e-9 * np.std(whole))
    a, inverse = RATES["learning_rate"] / 1.8, damped(by_hand, 2.0)
    plain = by_hand.score(members[0], inverse)
    added = (
        2
        * (1 - a * 0.01)
        * 0.01
        * by_hand.gradients[by_hand.rows]
        @ inverse
        @ (inverse @ by_hand.theta)
    )
    near(
        study.scores(case, members, few=True, stationary=True)[0],
        plain - added / RATES["learning_rate"],
    )


def test_conditionings_are_those_of_matrices_and_none_where_the_hessian_is_indefinite(case, frames):
    solved, audit, by_hand = frames["solved"], case.audit, matrices(1)
    # of conjugate gradients from the inverse
    assert metrics.estimate(solved, "IHA (CG)", "distance").value < 0.02
    assert 1 <= metrics.estimate(solved, "IHA (CG)", "iterations").value <= 40
    assert np.isnan(audit.swept_shift[:, 0]).any() == (audit.least < -0.01).any()
    members = audit.members[:, :90]
    swept = frames["swept"]
    assert set(swept[swept["way"].eq("damping")]["epsilon"]) <= {0.01, 2.0, 4.0}
    values, vectors = np.linalg.eigh(by_hand.hessian)
    kept = np.abs(values) > 0.02
    low_rank = vectors[:, kept] / values[kept] @ vectors[:, kept].T
    for way, epsilon, inverse in (
        ("damping", 4.0, damped(by_hand, 4.0)),
        ("low rank", 0.02, low_rank),
    ):
        found = metrics.estimate(
            swept, "IHA", "auc", way=way, epsilon=epsilon, loss="left out"
        ).values[1]
        by_matrix = by_hand.score(by_hand.is_member[by_hand.rows], inverse, loss=False)[:90]
        assert found == pytest.approx(metrics.auc(by_matrix, members[1]), abs=0.01)


def test_who_knows_a_part_has_hessian_and_gradient_of_that_part(case, less, partial):
    models, pool, rows = measure.targets(range(TARGETS), RECIPE)
    assert sorted(partial["fraction"].unique()) == [0.5, 1.0]
    assert not (less.known[:, 0] & ~less.known[:, 1]).any()
    assert (less.known[:, 1] == less.members).all()
    order = np.random.default_rng([37, 0, 0]).permutation(np.flatnonzero(models.members[0]))[:30]
    known = np.isin(np.arange(len(pool)), order)
    assert (known[rows] == less.known[0, 0]).all()
    by_hand = Matrices(0, known)
    for rule, flags in (
        ("honest", known[rows]),
        ("as released", by_hand.is_member[rows] * 30 / 60),
    ):
        wanted = metrics.auc(by_hand.score(flags, damped(by_hand, 2.0)), less.members[0])
        assert metrics.estimate(partial, "IHA", "auc", fraction=0.5, rule=rule).values[
            0
        ] == pytest.approx(wanted, abs=0.01)
    whole = metrics.auc(study.scores(case, case.audit.members), case.audit.members)
    assert_allclose(
        metrics.estimate(partial, "IHA", "auc", fraction=1.0, rule="honest").values[:TARGETS],
        whole,
        atol=0.01,
    )


def test_a_target_among_few_references_lifts_lira_most(case):
    frame = study.self_references(case, draws=10)
    most = len(case.bank) - 2
    assert list(frame["references"].unique())[-1] == most
    for attack, scores in study.lira_scores(case).items():
        if attack in (study.LIRA, study.SELF):
            found = metrics.estimate(frame, attack, "auc", references=most).values
            assert_allclose(found, metrics.auc(scores, case.audit.members))


def test_references_know_all_records_but_one(case):
    found = bank_of("iha/fashion-left-out", 1, **GAME, judged=100, count=6, references=2)
    assert found.members[0].sum() == 3
    assert found.out_margin.shape == found.in_margin.shape == (1, 2, 6)
    targets, pool, rows = measure.targets(range(1), RECIPE)
    is_member, chosen = targets.members[0], rows[found.place[0]]
    config = replace(targets.config, seed=targets.config.seed + 21)
    log_odds = measure.log_odds_of_neighbours(pool, is_member, chosen, config, seed_of(config, 0))
    for k in range(6):
        turned, same = found.out_margin[0, 0, k], found.in_margin[0, 0, k]
        if not found.members[0, k]:
            turned, same = same, turned
        assert_allclose([turned, same], log_odds[[k, -1], k], rtol=2e-3)
    frame = study.left_out(case, found, draws=10)
    areas = frame[frame["study"] == "left out"]
    assert {"IHA", "LiRA", "L-attack", "LiRA-L", "LiRA-L, both sides"} < set(areas["attack"])
    assert {study.HALF, study.QUARTER} < set(areas["attack"])
    pairs = set(frame.loc[frame["study"] == "agreement", "attack"])
    assert pairs == {
        f"{one} and {two}" for one in ("LiRA", "IHA") for two in ("L-attack", "LiRA-L")
    }


def test_a_part_of_both_sides_is_the_first_of_each_and_at_least_two():
    own, without, within = np.split(np.random.default_rng(0).normal(size=(17, 20)), [1, 9])
    score = study.scores_of_both_sides
    for part, count in ((1, 8), (2, 4), (4, 2), (8, 2)):
        expected = score(own[0], without[:count], within[:count])
        assert_allclose(score(own[0], without, within, part), expected)


def test_networks_trained_together_are_those_trained_one_by_one():
    """Each without the record that it leaves out, or with the one that it takes in, from the same weights and batches."""
    targets, pool, rows = measure.targets(range(1), RECIPE | {"judged": 20})
    members, chosen, config = targets.members[0], np.sort(rows[:5]), targets.config
    assert 0 < members[chosen].sum() < 5
    together = measure.log_odds_of_neighbours(pool, members, chosen, config, seed=3)
    x = models.to_input(pool.x, config.scaling)
    y, joining = torch.from_numpy(pool.y).long(), torch.from_numpy(chosen[~members[chosen]])
    inside = torch.from_numpy(np.flatnonzero(members))
    for k, own in enumerate([*membership.leave_one_out(members, chosen), members]):
        network = models.build(config.architecture, pool.shape, len(pool.classes), 3).train()
        rates = {name: getattr(config, name) for name in ("momentum", "weight_decay", "nesterov")}
        optimizer = torch.optim.SGD(network.parameters(), config.learning_rate, **rates)
        generator = torch.Generator().manual_seed(3)
        for epoch in range(config.epochs):
            optimizer.param_groups[0]["lr"] = learning_rate(config, epoch)
            order = torch.randperm(len(inside), generator=generator)
            batches = inside[order].split(config.batch_size)
            joined = torch.randint(len(batches), joining.shape, generator=generator)
            for number, batch in enumerate(batches):
                picked = torch.cat([batch, joining[joined == number]])
                picked = picked[torch.from_numpy(own)[picked]]
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(network(x[picked]), y[picked]).backward()
                optimizer.step()
        with torch.no_grad():
            losses = precise_loss(network.eval()(x[chosen]), y[chosen])
        assert_allclose(together[k], signals.log_odds(losses.numpy()), atol=1e-4)


def test_half_precision_keeps_values_to_a_thousandth_over_twelve_decades():
    values = np.concatenate([[0.0], 10.0 ** np.linspace(-8, 9, 200)])
    for sign in (1, -1):
        assert_allclose(square(root(sign * values)), sign * values, rtol=2e-3)
    assert np.isfinite(root(np.array([1e12]))).all() and root(values).dtype == np.float16


def test_odd_classes_are_told_from_even_ones_by_the_squared_error():
    of_odd = {"architecture": "sigmoid_regression", "judged": 10}
    models, pool, rows = measure.game(range(2), RECIPE | of_odd)
    images = data.load("fashion_mnist_20k").as_table()
    chosen = np.random.default_rng([17, 0]).permutation(images.n_train)[:120]
    assert pool.classes == ("even", "odd")
    assert (pool.y == images.y[chosen] % 2).all()
    assert len(rows) == 10
    assert models.config.loss == "brier" and (models.members[0] != models.members[1]).all()
    assert study.name_of("mnist", "sigmoid_regression") == "MNIST-Odd"
    assert study.kind_of("mnist", "mlp:6") == "fashion"


def test_references_are_neither_the_target_nor_its_partner(case, frames):
    margin, members = case.bank.margin.astype(float), case.bank.members
    for t in range(TARGETS):
        others = [m for m in range(MODELS) if m not in (2 * t, 2 * t + 1)]
        assert others == list(membership.references_of(2 * t, MODELS))
        lira = baselines.lira_online(margin[2 * t], margin[others], members[others])
        assert_allclose(frames["scores"]["LiRA"][t], lira)
        alone = [2 * t, *others]
        itself = baselines.lira_online(margin[2 * t], margin[alone], members[alone], own="keep")
        assert_allclose(frames["scores"][study.SELF][t], itself)
    assert (frames["members"] == members[: 2 * TARGETS : 2]).all()


def test_frames_have_the_metrics_of_their_scores(case, frames):
    table, members, told = frames["table"], frames["members"], frames["told"]
    for name, score in frames["scores"].items():
        assert_allclose(
            metrics.estimate(table, name, "auc", study="attacks").values,
            metrics.auc(score, members),
        )
    assert 0 < metrics.estimate(table, "SIF", "rank correlation").value <= 1
    same = metrics.estimate(told, "IHA", "auc", told="membership").values
    assert_allclose(same, metrics.estimate(table, "IHA", "auc", study="attacks").values)
    flags = study.random_flags(members)
    assert (flags.sum(1) == members.sum(1)).all() and (flags != members).any(1).all()
    found = metrics.estimate(told, "IHA", "auc", told="random flags", judged="flags").values
    assert_allclose(found, metrics.auc(study.scores(case, flags), flags))


def test_other_epochs_and_sizes_stand_beside_the_case_itself_and_what_nobody_has_measured_is_left_out(
    monkeypatch, case
):
    """Smaller games train for as many steps: 60 members are 3 batches of 20, twelve times; 20 members one, 36 times."""
    recipe = GAME | {"damping": 2.0}
    assert study.measured(2, 6, make=False, **recipe) is None
    assert study.partial_knowledge(case, [0.5], False, **recipe).empty
    assert study.partial_knowledge(case, [], **recipe).empty
    assert study.convergence(case, [9], False, **recipe)["epochs"].unique().tolist() == [12]
    assert study.sizes(case, [40], 2, False, **recipe).empty
    asked = []

    def measured(targets, models, few, make, **how):
        asked.append((targets, models, how["records"], how["epochs"]))
        bank = models and Bank(
            "x", how, {name: array[:models] for name, array in case.bank.arrays.items()}, []
        )
        arrays = {name: array[:targets] for name, array in case.audit.arrays.items()}
        audit = Bank("x", case.audit.parameters | how, arrays, [])
        return None if how["epochs"] == 7 else study.Case("a set", audit, bank or None)

    monkeypatch.setattr(study, "measured", measured)
    trained = study.convergence(case, [9, 2, 7], True, 10, **GAME, damping=2.0)
    assert trained["epochs"].unique().tolist() == [2, 9, 12]
    assert {models for _, models, _, _ in asked} == {0}
    assert set(trained["attack"]) == {
        "LOSS",
        "IHA",
        "gradient alone",
        study.DECAY,
        "IHA, random flags",
    }
    sized = study.sizes(case, [40], 3, True, 10, **GAME, damping=2.0)
    assert asked[-1] == (3, 6, 40, 36) and sized["size"].unique().tolist() == [20, 60]
    assert set(sized["attack"]) == {"LOSS", "LiRA", "IHA", study.DECAY, "leak"}
    decayed = metrics.estimate(sized, study.DECAY, "auc", study="sizes", size=60)
    own = metrics.estimate(trained, study.DECAY, "auc", epochs=12)  # of the same records
    assert_allclose(decayed.values, own.values)
    assert set(sized.loc[sized["study"] == "decayed leak", "of"]) == {study.DECAY}
    assert set(sized.loc[sized["study"] == "leak", "of"]) == {"LOSS", "LiRA", "IHA"}
    assert set(sized["members"].dropna()) == {"20 to 60"}
    assert {len(number.values) for number in sized["estimate"]} == {3}
    assert len(exhibits.table_7(sized)) == 8


def test_the_stationary_law_and_the_odds_have_their_rows_and_costs_are_counted_of_the_case(
    monkeypatch,
):
    spectrum = study.theory.spectrum
    monkeypatch.setattr(
        study.theory, "spectrum", lambda *given, seed: spectrum(*given, groups=8, seed=seed)
    )
    frame = study.theorems()
    assert metrics.estimate(frame, "Theorem 3.2", "distance").value < 1e-9
    assert abs(metrics.estimate(frame, "SGD", "slope").value) < 0.15
    parameters = catalogue()["iha/fashion"].complete({})
    paper = study.Case("FashionMNIST", Bank("x", parameters, {}, []))
    frame, network = study.costs(paper, 20), models.build("mlp:6", (784,), 10, seed=0)
    cost = {
        name: metrics.estimate(frame, name, "1,000 records").value
        for name in ("IHA", "IHA (CG)", "LiRA")
    }
    # two rotations of a gradient of 4,780 numbers
    assert metrics.estimate(frame, "IHA", "each").value == 4 * 4780**2
    assert cost["IHA"] == pytest.approx(
        metrics.estimate(frame, "IHA", "once").value + 1000 * 4 * 4780**2
    )
    assert cost["IHA (CG)"] == 1000 * 40 * costs.hessian_product(
        network, (784,), 30_000, "cross_entropy"
    )
    assert metrics.estimate(frame, "IHA", "share of LiRA").value == pytest.approx(
        cost["IHA"] / cost["LiRA"]
    )


def test_tables_stand_beside_the_papers(frames, partial):
    named = {
        name: frame.assign(data="MNIST-Odd")
        for name, frame in frames.items()
        if isinstance(frame, pd.DataFrame)
    }
    table = exhibits.table_2(named["table"])
    assert str(table.loc[("MNIST-Odd", "IHA"), "AUC, paper"]) == "54.2" and len(table) == 7
    assert str(table.loc[("MNIST-Odd", "IHA"), "TPR at 0.1 %"]) == "below resolution"
    assert (
        str(exhibits.table_3(named["solved"]).loc[("MNIST-Odd", "IHA (CG)"), "AUC, paper"])
        == "54.1"
    )
    assert str(exhibits.table_4(named["parts"]).loc["all", "Purchase-100(S): AUC, paper"]) == "79.1"
    swept = exhibits.table_8(
        named["swept"].assign(epsilon=named["swept"]["epsilon"].replace(4.0, 0.2))
    )
    assert str(swept.loc[("damping", 0.2), "MNIST-Odd, loss added, paper"]) == "54.2"
    assert set(exhibits.learned_table(named["swept"]).index.get_level_values("attack")) == {
        "IHA",
        "IHA, learned",
        "IHA with weight decay in I2",
        "IHA with weight decay in I2, loss left out",
        "gradient alone",
    }
    pair = exhibits.table_5(named["table"]).loc["IHA and LiRA"]
    paper = [
        str(pair[f"30 %: Purchase-100(S), {word}, paper"])
        for word in ("same call", "beyond chance")
    ]
    assert paper == ["43.6", "-10.7"]  # .436 - .652 * .640 - .348 * .360
    assert abs(pair["30 %: MNIST-Odd"].value) <= 100
    assert str(exhibits.table_9(partial).iloc[1]["Purchase-100(S): as released, paper"]) == "79.1"
    assert set(exhibits.access_table()["attack"]) >= {"IHA", "L-attack"}


def test_ends_of_sgd_lie_about_their_own_minimum():
    found = exhibits.idea(data.load("german_credit"), (1, 12), chains=60)
    assert found.ends.shape == (2, 60, 2) and (found.nearer > 0.8).all()
    assert_allclose(
        found.ends.mean(1),
        found.minima,
        atol=0.2 * np.linalg.norm(found.minima[0] - found.minima[1]),
    )


def test_what_is_learned_is_best_on_other_targets_and_a_choice_is_among_those_measured(case):
    scores = study.conditioned(case)
    members = case.audit.members[:, :90]
    frame = study.conditioning(case, 10)
    released = study.scores(study.first_records(case, 90), members)
    candidates = [released, *scores.values()]
    found = metrics.estimate(frame, "IHA, learned", "value", study="learned", by="AUC").values
    areas = np.array([metrics.auc(score, members) for score in candidates])
    for t in range(TARGETS):
        best = np.delete(areas, t, 1).mean(1).argmax()
        assert found[t] == pytest.approx(areas[best, t])


def test_agreement_is_one_with_oneself_and_none_beyond_chance_for_independent_calls():
    rng = np.random.default_rng(0)
    members = membership.balanced_halves(4000, 6, 0)[::2]
    one, other = rng.normal(size=(2, *members.shape))
    attacks = {"LiRA": one, "RMIA": one, "IHA": other}
    frame = study.agreement(attacks, members, "LiRA", ["RMIA"], (0.3,))
    assert metrics.estimate(frame, "LiRA and RMIA", "kappa").value == pytest.approx(1)
    assert abs(metrics.estimate(frame, "IHA and LiRA", "kappa").value) < 0.05
    assert metrics.estimate(frame, "losses", "kappa").value == pytest.approx(1)
    assert abs(metrics.estimate(frame, "IHA", "excess").value) < 0.03


def test_cases_of_one_set_are_called_by_what_they_differ_in(case):
    named = {"architecture": "mlp:2", "records": 120, "epochs": 12, "batch_size": 20}
    cases = [
        study.Case("a set", Bank("x", named | further, {}, []))
        for further in ({}, {"architecture": "mlp:3"}, {"epochs": 24})
    ]
    names = [one.name for one in study.with_own_names(cases)]
    assert names == [
        "a set, mlp:2, epochs 12",
        "a set, mlp:3, epochs 12",
        "a set, mlp:2, epochs 24",
    ]
    assert [one.name for one in study.with_own_names(cases[:1])] == ["a set"]
    with pytest.raises(MiaError, match="stands twice"):
        study.with_own_names([cases[0], cases[0]])
