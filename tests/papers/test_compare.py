"""The chapter that compares: what attacks see and what that costs, and what follows from their rankings, beside loops."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mia_lib import membership, metrics, signals, store
from mia_lib.attacks import baselines, bayes, calibration, per_class
from mia_lib.attacks.quantile.networks import NetworkConfig
from mia_lib.errors import MiaError
from mia_lib.evidence import claims, plotting
from mia_lib.metrics.interval import over_pairs, t_interval
from mia_lib.papers import costs
from mia_lib.papers.compare import exhibits, study
from mia_lib.papers.compare.attacks import ATTACKS, lacks
from mia_lib.papers.compare.case import Case, Limits, Seen, case, named
from mia_lib.papers.numbers import packed_ranks
from mia_lib.training import TrainConfig

pytestmark = pytest.mark.usefixtures("module_cache")

SGD = {"batch_size": 16, "optimizer": "sgd", "learning_rate": 0.05, "momentum": 0.9, "weight_decay": 1e-4}
LIMITS = Limits(few=4, probes=1, parameters=400, forget_epochs=1)
RNG = np.random.default_rng(3)


def german(architecture="logistic_regression", **options) -> Case:
    given = {"pool": 160, "public": 100, "models": 10, "targets": 4, "counts": (4, 8), "limits": LIMITS,
             "regression": NetworkConfig("mlp:4", (), epochs=3), **options}
    return case("german_credit", TrainConfig(architecture, epochs=12, **SGD), **given)


@pytest.fixture(scope="module")
def linear():
    return german()


@pytest.fixture(scope="module")
def images():
    return case("fashion_mnist_20k", TrainConfig("mlp:4", epochs=2), 120, 80, 8, 4, (4, 6), LIMITS,
                NetworkConfig("mlp:4", (), epochs=1))


@pytest.fixture(scope="module")
def played(linear):
    return study.play(linear)


def made_up(scores, members):
    """A play of given scores, as far as rankings go."""
    targets = len(members)
    bank = membership.Bank(members, tuple(range(targets)))

    class Stand:
        spec = {"made up": store.fingerprint(members)}

    stand = Stand()
    stand.bank = bank
    return study.Play(stand, members, {name: np.stack([packed_ranks(row) for row in one]) for name, one in scores.items()}, {})


# ------------------------------------------------------------------------------------------------------- what is compared


def test_every_attack_that_a_case_is_for_ranks_all_of_its_records(played, linear):
    assert list(played.ranks) == list(ATTACKS)  # a linear model is for all
    for ranks in played.ranks.values():
        assert ranks.shape == (4, 160)
        assert_array_equal(ranks.sum(1, dtype=int), 160 * 161)  # twice the ranks, ties or not


def test_scores_are_those_of_the_library_on_what_the_target_and_its_references_say(played, linear):
    loss = signals.loss(linear.models, linear.pool).astype(float)
    odds = signals.logit_scaled_confidence(linear.models, linear.pool).astype(float)
    for target in range(4):
        rows = linear.bank.pairs_after(target, 8)
        inside = linear.bank.members[rows]
        for name, score in {"malt": bayes.malt(loss[target]), "mast_split": bayes.mast(loss[target], loss[rows], inside),
                            "calibrated": calibration.calibrate(-loss[target], -loss[rows], inside),
                            "attack_r": baselines.attack_r(loss[target], loss[rows], inside),
                            "attack_s": per_class.attack_s(loss[target], linear.pool.y, loss[rows], inside),
                            "lira": baselines.lira_online(odds[target], odds[rows], inside, True),
                            "lira_offline_own": baselines.lira_offline(odds[target], odds[rows], inside)}.items():
            assert_array_equal(played.ranks[name][target], packed_ranks(score), err_msg=name)
        mean_out = bayes.mast(loss[target], loss[rows], inside, "mean_out")
        assert_array_equal(played.ranks["calibrated"][target], packed_ranks(mean_out))  # as its source says


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_asks_the_target_or_its_complement_as_references(linear, name):
    for target in linear.bank.attacked:
        seen = Seen(linear, target)
        ATTACKS[name].score(seen)
        assert not seen.asked.references & {target, target ^ 1}
        attack, declared = ATTACKS[name], ATTACKS[name].needs
        assert bool(seen.asked.references) == (declared.references != "none" and name not in ("forgetting", "matt"))
        asks = {signal for whose, signal, _ in seen.asked.signals if whose == "target"}
        assert asks - {"parameters"} == set(attack.signals) and ("parameters" not in asks or declared.access == "parameters")
        assert bool(seen.asked.public) == attack.public


@pytest.mark.parametrize("name, models, queries, public", [
    ("malt", 0, 1, 0), ("gradient", 0, 1, 0), ("quantile", 1, 1, 100), ("lira", 8, 1, 0), ("rmia", 8, 1, 100),
    ("curvature", 4, 4, 0), ("shokri", 4, 1, 0), ("forgetting", 1, 1, 0), ("matt", 1, 0, 0), ("influence", 0, 0, 0),
    ("margin", 0, 1, 0), ("iha", 0, 1, 0), ("gradient_test", 0, 0, 0)])
def test_the_cost_is_what_an_attack_asked_for(played, linear, name, models, queries, public):
    cost = played.costs[name]
    assert (cost.models, cost.queries, cost.public) == (models, queries, public)
    each = costs.training(linear.models.config, linear.pool.shape, 2, 80)
    if name in ("lira", "shokri"):
        assert cost.operations == models * each and cost.held == 4 * linear.parameters * (1 + models)
    size = linear.parameters
    held = {"influence": 8 * size**2, "iha": 8 * size**2 + 8 * size, "gradient_test": 8 * size, "forgetting": 4 * size}
    if name in held:
        assert cost.held == 4 * size + held[name] and cost.operations > 0
    if name == "gradient_test":
        assert cost.operations == each / linear.models.config.epochs  # one pass through the members
    if name == "quantile":
        assert cost.held > 4 * size
    assert (cost.operations == 0) == (name in ("malt", "gradient", "margin"))


def test_attacks_that_a_case_is_not_for_say_why(images):
    names = [name for name in ATTACKS if not lacks(name, images)]
    assert set(ATTACKS) - set(names) == {"matt", "influence", "iha", "gradient_test"}
    assert "parameters" in lacks("iha", images) and "minima" in lacks("matt", images)
    assert "SGD" in lacks("iha", replace(images, limits=replace(LIMITS, parameters=10**6)))
    with pytest.raises(MiaError, match="'iha' is not for"):
        study.play(images, ["malt", "iha"])


def test_an_attack_is_kept_by_itself_and_another_option_computes_it_alone_anew(linear, played, monkeypatch):
    asked = []

    class Watched(Seen):
        def own(self, name, where="pool"):
            asked.append(name)
            return super().own(name, where)

    monkeypatch.setattr(study, "Seen", Watched)
    again = study.play(linear)
    assert not asked
    for name, ranks in again.ranks.items():
        assert_array_equal(ranks, played.ranks[name])
    monkeypatch.setitem(ATTACKS, "mast_softmin", replace(ATTACKS["mast_softmin"], options={"estimator": "middle"}))
    other = study.play(linear)
    assert asked == ["loss"] * 4
    assert not np.array_equal(other.ranks["mast_softmin"], played.ranks["mast_softmin"])


@pytest.mark.parametrize("wrong, said", [
    ({"models": 9}, "models = 9"), ({"models": 8}, "at least 10"), ({"counts": (3,)}, "references"),
    ({"counts": (8, 4)}, "ascending"), ({"counts": (2,)}, "from 4"), ({"targets": 1}, "targets"), ({"targets": 11}, "targets"),
    ({"pool": 950}, "must hold both"),
    ({"limits": Limits(few=3)}, "few = 3"), ({"public": 20}, "public")])
def test_numbers_that_make_no_case_are_refused(wrong, said):
    with pytest.raises(MiaError, match=said):
        german(**wrong)


def test_every_attack_is_described_and_its_source_is_in_the_bibliography(repo):
    known = (repo / "book" / "references.bib").read_text()
    for one in ATTACKS.values():
        assert not one.source or f"{{{one.source}," in known, one.name
    assert set(exhibits.ABOUT) <= set(ATTACKS)
    said = exhibits.sources_table()["in one line"]
    assert said.is_unique and (said.str.len() > 20).all()


def test_cases_of_one_name_are_refused(linear, images):
    assert list(named([linear, images])) == ["German credit, linear", "FashionMNIST, MLP 4"]
    with pytest.raises(MiaError, match="must differ"):
        named([linear, linear])


# ---------------------------------------------------------------------------------------------------------- what follows


def test_called_keeps_the_false_positive_rate_and_calls_as_many_as_it_allows():
    members = np.arange(500) % 2 == 0
    for ties in (1000, 5):
        scores = RNG.integers(0, ties, (3, 500))
        found = study.called(scores, np.tile(members, (3, 1)), 0.02)
        for row, score in zip(found, scores, strict=True):
            assert row[~members].sum() <= 5 and row[members].mean() == metrics.tpr_at_fpr(score, members, 0.02)


def test_agreement_is_the_share_of_either_that_both_call():
    members = membership.balanced_halves(400, 4)
    a, b = RNG.normal(size=(2, 4, 400)) + members
    played = made_up({"a": a, "b": b}, members)
    share = study.agreement(played, ["a", "b"])
    one, two = (study.called(x, members) & members for x in (a, b))
    sets = [(set(np.flatnonzero(x)), set(np.flatnonzero(y))) for x, y in zip(one, two, strict=True)]
    expected = np.mean([len(x & y) / len(x | y) for x, y in sets])
    assert share[0, 1] == share[1, 0] == pytest.approx(expected) and share[0, 0] == 1


def test_what_is_learned_on_other_targets_does_not_see_the_judged_pair():
    members = membership.balanced_halves(300, 8)
    scores = {name: RNG.normal(size=(8, 300)) + strength * members for name, strength in (("a", 1), ("b", 0.7), ("c", 0))}
    played = made_up(scores, members)
    found = study.combined(played, list(scores))
    assert set(found.chosen["auc"]) == {"a"} and found.weights["a"] > found.weights["b"] > abs(found.weights["c"])
    assert metrics.auc(found.logistic, members).mean() > metrics.auc(found.best["auc"], members).mean()
    assert_array_equal(found.best["auc"], played.ranks["a"])
    sharp = np.where(members & (RNG.random((8, 300)) < 0.3), 9.0, RNG.normal(size=(8, 300)))  # few, but sure of these
    mixed = study.combined(made_up({"wide": scores["a"], "sharp": sharp}, members), ["wide", "sharp"])
    assert set(mixed.chosen["auc"]) == {"wide"} and set(mixed.chosen["tpr"]) == {"sharp"}
    turned = members.copy()
    turned[:2] = ~turned[:2]  # another truth about the first pair
    other = replace(played, members=turned)
    other.case.spec = {"made up": "turned"}
    assert_array_equal(study.combined(other, list(scores)).logistic[:2], found.logistic[:2])
    with pytest.raises(MiaError, match="two pairs"):
        study.combined(made_up({"a": scores["a"][:2], "b": scores["b"][:2]}, members[:2]), ["a", "b"])


def test_records_are_found_again_where_the_score_is_of_the_record():
    members = membership.balanced_halves(2000, 8)
    of_record, of_chance = np.tile(RNG.normal(size=2000), (8, 1)), RNG.normal(size=(8, 2000))
    found = study.again(made_up({"malt": of_record + 0.5 * members, "gap": of_chance + 0.5 * members}, members),
                        ["malt", "gap"])
    assert found.members["malt"].low > 0.5 and found.strangers["malt"].low > 0.5
    assert abs(found.members["gap"].value) < 0.05 and abs(found.strangers["gap"].value) < 0.05
    assert found.beyond["malt"].value == pytest.approx(found.members["malt"].value - found.strangers["malt"].value)


def test_targets_that_are_compared_are_no_references_of_each_other(linear):
    for target, other in ((0, 3), (5, 2)):
        seen = Seen(linear, target, 6, (other,))
        under, inside = seen.references("logit_scaled_confidence")
        assert len(under) == 6 and not {target, other, target ^ 1, other ^ 1} & seen.asked.references
        assert (inside.sum(0) == 3).all()
    whole = Seen(linear, 0, 8)
    whole.references("logit_scaled_confidence")
    assert whole.asked.references == set(map(int, linear.bank.pairs_after(0, 8)))


def test_what_is_known_of_records_and_targets_comes_from_models_without_and_from_the_targets(linear):
    known, loss = study.records(linear), signals.loss(linear.models, linear.pool)
    right = signals.correctness(linear.models, linear.pool)
    for record in (0, 7):
        without = [loss[m, record] for m in range(10) if not linear.bank.members[m, record]]
        assert known.hardness[record] == pytest.approx(np.mean(without), rel=1e-5)
    assert known.train[1] == right[1][linear.members[1]].mean() and known.test[3] == right[3][~linear.members[3]].mean()
    assert list(exhibits.accuracy_table({"linear": known})["case"]) == ["linear"]


def test_groups_add_up_and_quarters_are_equal():
    members = membership.balanced_halves(400, 4)
    played, hardness = made_up({"a": RNG.normal(size=(4, 400)) + members}, members), RNG.normal(size=400)
    groups = study.quarters(hardness)
    assert_array_equal(np.bincount(groups), [100] * 4)
    assert hardness[groups == 0].max() < hardness[groups == 3].min()
    found, alarms = study.by_group(played, "a", groups, 4)
    for row, false, inside, ranks in zip(found, alarms, members, played.ranks["a"], strict=True):
        weights, others = ([(side & (groups == g)).sum() for g in range(4)] for side in (inside, ~inside))
        assert np.average(row, weights=weights) == pytest.approx(metrics.tpr_at_fpr(ranks, inside, 0.01))
        assert np.average(false, weights=others) <= 0.01


def test_records_that_vary_more_are_not_taken_for_exposed_where_nothing_leaks():
    """Hard records vary more from model to model, so LiRA calls more of them, and again: strangers as well as members."""
    rng, records, models, targets = np.random.default_rng(5), 600, 34, 8
    hardness, wrong, tempted = np.sort(rng.normal(size=records)), {"K9": 0, "K10": 0}, 0
    pair = np.arange(targets) // 2

    def calls(signal, members, t, but):
        rows = np.array([m for m in membership.references_of(t, models) if m // 2 not in but])
        return study.called(baselines.lira_online(signal[t], signal[rows], members[rows], True)[None], members[t][None])[0]

    for _ in range(20):
        members = membership.balanced_halves(records, models, int(rng.integers(1 << 30)))
        kind = rng.standard_t(3, size=records) * np.exp(hardness)
        signal = kind + np.exp(0.8 * hardness) * rng.normal(size=(models, records))
        found = np.stack([[calls(signal, members, t, (u // 2,)) for u in range(targets)] for t in range(targets)])
        one, _, beyond = study.repeated(found, members[:targets], pair)
        wrong["K9"] += beyond.sign > 0
        played = made_up({"lira": np.stack([calls(signal, members, t, ()) for t in range(targets)]) * 1.0}, members[:targets])
        tpr, _ = study.by_group(played, "lira", study.quarters(hardness), 4)
        [ten] = study.over_groups(played, "lira", study.quarters(hardness), np.array([[-1, 0, 0, 1]]))
        wrong["K10"] += ten.sign > 0
        tempted += over_pairs(tpr[:, -1] - tpr[:, 0]).sign > 0 and one.value > 0.04
    assert tempted >= 15  # what is called, alone, would be taken for exposure
    assert max(wrong.values()) <= 3  # of 20, at one in forty each


def test_calls_that_chance_alone_repeats_are_not_said_to_come_again_less_often():
    """Of some 300 records five strangers are called, and hardly one twice: none seen is no proof of fewer than by chance."""
    below = np.zeros(3)
    for _ in range(20):
        members = membership.balanced_halves(600, 8, int(RNG.integers(1 << 30)))
        calls = np.broadcast_to(study.called(RNG.normal(size=members.shape), members)[:, None], (8, *members.shape))
        below += [one.sign < 0 for one in study.repeated(calls, members, np.arange(8) // 2)]
    assert max(below) <= 2


def test_groups_and_repetitions_with_every_record_drawn_once_are_those_of_a_loop():
    members = membership.balanced_halves(400, 8)
    scores = RNG.normal(size=(8, 400)) + members
    played, groups, pair = made_up({"a": scores}, members), RNG.integers(0, 3, 400), np.arange(8) // 2
    found, alarms = study.by_group(played, "a", groups, 3)
    calls = study.called(played.ranks["a"], members)
    for t, g in itertools.product(range(8), range(3)):
        for rates, side in ((found, members), (alarms, ~members)):
            assert rates[t, g] == pytest.approx(calls[t, side[t] & (groups == g)].mean())
    intervals = study.over_groups(played, "a", groups, np.eye(3))
    assert_allclose([one.value for one in intervals], (found - alarms).mean(0))
    assert all(one.low < one.value < one.high for one in intervals)
    each = np.broadcast_to(calls[:, None], (8, *calls.shape))
    for interval, side in zip(study.repeated(each, members, pair), (members, ~members), strict=False):
        excess = np.full((8, 8), np.nan)
        for t, u in itertools.product(range(8), repeat=2):
            shared = side[t] & side[u]
            if pair[t] != pair[u]:
                first = shared & calls[t]
                excess[t, u] = calls[u, first].mean() - calls[u, shared].mean() if first.any() else 0
        whole = np.nanmean(excess, 1).mean()
        without = [np.nanmean(excess[pair != g][:, pair != g], 1).mean() for g in range(4)]
        assert interval.value == pytest.approx(np.mean(4 * whole - 3 * np.array(without)))
        assert interval.value == pytest.approx(whole, abs=0.01)


def test_exposure_counts_the_targets_that_were_trained_on_a_record():
    members = membership.balanced_halves(300, 6)
    scores = {"a": RNG.normal(size=(6, 300)) + members, "b": RNG.normal(size=(6, 300)) + members}
    frame = study.exposure(made_up(scores, members), ["a", "b"])
    assert_array_equal(frame["mean"], np.sort(frame["mean"])[::-1])
    for _, row in frame.head(20).iterrows():
        record = int(row["record"])
        for name in ("a", "b"):
            calls, others = ([study.called(scores[name], members)[t, record] for t in range(6) if members[t, record] == side]
                             for side in (True, False))
            assert row["targets"] == len(calls) >= 2 and row[name] == pytest.approx(np.mean(calls) - np.mean(others))


@pytest.mark.parametrize("seed", range(5))
def test_on_the_frontier_is_whom_nobody_beats_at_the_same_price_or_a_lower_one(seed):
    rng = np.random.default_rng(seed)
    members = membership.balanced_halves(100, 4)
    names = [name for name, one in ATTACKS.items() if not one.audits][:8]
    played = made_up({name: rng.normal(size=(4, 100)) + strength * members for name, strength in
                      zip(names, rng.uniform(0, 2, 8), strict=True)}, members)
    price = {name: tuple(rng.integers(0, 3, 2)) for name in names}
    value = {name: metrics.auc(played.ranks[name], members).mean() for name in names}
    expected = [name for name in names if not any(
        value[o] > value[name] and price[o][0] <= price[name][0] and price[o][1] <= price[name][1] for o in names)]
    assert exhibits.frontier(played, price.get) == expected
    audit = made_up({"malt": RNG.normal(size=(4, 100)), "iha": 9.0 * members}, members)
    assert exhibits.frontier(audit, lambda name: (0,)) == ["malt"]


def test_the_least_number_is_where_it_stays_ahead():
    ahead, behind = np.linspace(0.6, 0.61, 8), np.linspace(0.4, 0.41, 8)
    auc = {"a": np.array([ahead, behind, ahead]), "b": np.array([behind, ahead, ahead]), "c": np.array([ahead, ahead, behind])}
    leads = {name: [over_pairs(row - 0.5) for row in rows] for name, rows in auc.items()}
    swept = study.Swept("references", np.array([4, 8, 16]), auc, {}, leads)
    assert [swept.first(name) for name in "abc"] == [16, 8, None]
    # ahead of MALT with few references and not with the most
    lost = replace(swept, auc={"malt": swept.auc["b"][::-1]}, leads={"malt": leads["b"][::-1]})
    assert exhibits.least_table({"case": lost})["case"].tolist() == ["at 4, 8, not at the most"]


def test_a_mirror_image_is_the_image_in_a_mirror(images, linear):
    assert_array_equal(images.mirrored.x, images.pool.x[:, :, ::-1])
    with pytest.raises(MiaError, match="no mirror image"):
        linear.mirrored  # noqa: B018
    two = study.views(images)
    assert two.two["lira"].shape == (4, 120) and not np.array_equal(two.one["lira"], two.two["lira"])


def test_sweeps_end_where_the_whole_is(linear, played):
    swept = study.by_references(linear)
    assert_array_equal(swept.auc["lira"][-1], metrics.auc(played.ranks["lira"], played.members))
    public = study.by_public(linear, [40, 500])
    assert_array_equal(public.values, [40, 80])
    assert_array_equal(public.auc["quantile"][-1], metrics.auc(played.ranks["quantile"], played.members))


def test_every_claim_is_judged_and_every_situation_of_the_guide_has_its_attack(linear, played, images):
    plays = {"linear": played, "images": study.play(images)}
    few = {name: study.play(one.case, ["lira", "lira_own"], 4) for name, one in plays.items()}
    together = {name: study.combined(one, list(one.ranks)) for name, one in plays.items()}
    again = {name: study.again(one, ["malt", "lira"]) for name, one in plays.items()}
    hardness = {name: study.records(one.case).hardness for name, one in plays.items()}
    grown = {"epochs": study.over_cases("epochs", {1: linear, 2: linear})}
    verdicts = exhibits.judge(plays, few, together, again, grown, hardness)
    assert [one.claim for one in verdicts] == list(claims.claims("compare"))
    assert {one.claim for one in verdicts if one.verdict == "not run"} == {"K11"}
    assert next(one for one in verdicts if one.claim == "K12").estimate.startswith("0.000")
    swept = {name: study.by_references(one.case) for name, one in plays.items()}
    found = auc = exhibits.choices(plays, swept)
    assert list(found) == [*exhibits.SITUATIONS, "apart", "few", "many"]
    assert ATTACKS[found["apart"].name].needs.references == "out only" and found["labels"].name == "gap"
    assert not any(ATTACKS[one.name].audits for one in found.values())
    assert exhibits.choices(plays, swept, exhibits.SHARP) == {}  # with so few strangers
    assert_array_equal(auc["labels"].ranks["linear"], played.ranks["gap"][2:])  # of the other half of the targets
    assert {one.said for one in auc.values()} == {"too few targets"}  # a guess about two of them
    gap = np.mean([metrics.auc(auc["public"].ranks[case], auc["public"].members[case])
                   - metrics.auc(auc["labels"].ranks[case], auc["labels"].members[case]) for case in plays])
    assert auc["public"].beyond(auc["labels"]).value == pytest.approx(gap)
    few = study.play(linear, [found["few"].name], 4)
    assert_array_equal(found["few"].ranks["linear"], few.ranks[found["few"].name][2:])
    frame = exhibits.swept_table(swept["linear"])
    assert list(frame) == ["attack", "4 references", "8 references"] and len(frame) == len(swept["linear"].auc)
    assert exhibits.guide_figure(found, swept).axes and exhibits.cost_figure(plays, swept).axes


STRENGTHS = {"margin": 0.2, "malt": 0.4, "gradient": 0.7, "quantile": 0.8, "lira_offline": 1.0, "lira": 1.5, "lira_own": 2.0,
             "curvature": 3.0}


def world(strengths, hard=0.5, again=0.2, strangers=0.2, grown=1.0, together=1.0):
    """The verdicts where attacks are so strong, and the rest as far above zero as is said."""
    rng, hardness, members = np.random.default_rng(0), np.linspace(-1, 1, 800), membership.balanced_halves(800, 12)

    def ranks(size):
        return size * members + rng.normal(size=members.shape)

    scores = {name: ranks(size) for name, size in strengths.items()}
    scores["lira"] = scores["lira"] + hard * hardness * members
    played, few = made_up(scores, members), made_up({"lira": ranks(1.2), "lira_own": ranks(1.3)}, members)
    packed = {size: np.stack([packed_ranks(row) for row in ranks(size)]) for size in (1.0, 1.0 + together)}
    combined = study.Combined(members, {"auc": packed[1.0]}, packed[1.0], packed[1.0 + together], {}, {})
    spread = np.linspace(-0.05, 0.05, 6)
    found = study.Again({}, {"malt": t_interval(strangers + spread)}, {"lira": t_interval(again + spread)})
    ends = [made_up({"lira": ranks(1 + size)}, members) for size in (0, grown)]
    swept = {"members": study.Swept("members", np.array([1, 2]), {}, {}, {}, tuple(ends[::-1])),
             "epochs": study.Swept("epochs", np.array([1, 2]), {}, {}, {}, tuple(ends))}
    judged = exhibits.judge({"case": played}, {"case": few}, {"case": combined}, {"case": found}, swept, {"case": hardness})
    return {one.claim: one.verdict for one in judged}


def test_every_claim_has_its_direction():
    assert world(STRENGTHS, hard=2.0) == {f"K{k}": "reproduced" for k in range(1, 13)}
    turned = dict(zip(STRENGTHS, list(STRENGTHS.values())[::-1], strict=True)) | {"lira_own": 0.0}
    assert world(turned, -3.0, -0.2, -0.2, -0.8, -0.8) == {f"K{k}": "contradicted" for k in range(1, 13)}


@pytest.mark.parametrize("change, claim", [
    ({"strengths": {**STRENGTHS, "margin": 1.2}}, "K2"), ({"strengths": {**STRENGTHS, "malt": 1.2}}, "K2"),
    ({"strengths": {**STRENGTHS, "curvature": 0.5}}, "K6"), ({"again": -0.2}, "K9"), ({"strangers": -0.2}, "K9")])
def test_a_claim_of_two_parts_needs_both(change, claim):
    assert world(**{"strengths": STRENGTHS} | change)[claim] == "contradicted"


def test_the_bill_has_every_number_of_references_that_was_tried(linear, played):
    swept, each = study.by_references(linear), costs.training(linear.models.config, linear.pool.shape, 2, 80)
    found = exhibits.bills(played, swept)
    assert set(found) == {(name, 0) for name in ATTACKS} | {(name, 4) for name in swept.auc}
    for name in swept.auc:
        assert found[name, 4].operations == pytest.approx(4 * each) and found[name, 0].operations == pytest.approx(8 * each)
        assert found[name, 4].auc.value == pytest.approx(swept.auc[name][0].mean())
    assert found["lira", 4].label == f"{ATTACKS['lira'].name}, 4" and found["malt", 0].operations == exhibits.FREE


@pytest.mark.parametrize("values, apart, few", [
    ([[4, 8, 16], [4, 8]], (8, 4), (4, 4)), ([[4, 6], [4, 6]], (4, 2), (4, 4)), ([[4, 8], [4]], (4, 2), (4, 4))])
def test_models_without_the_record_are_as_many_as_models_of_which_half_hold_it(values, apart, few):
    swept = {str(k): study.Swept("references", np.array(one), {}, {}, {}) for k, one in enumerate(values)}
    assert exhibits.counts_of(swept) == {"apart": apart, "few": few}


def test_who_is_told_who_is_a_member_stands_in_no_ranking():
    members = membership.balanced_halves(200, 4)
    played = made_up({"malt": RNG.normal(size=(4, 200)), "gap": RNG.normal(size=(4, 200)) + members, "iha": 9.0 * members,
                      "influence": 3.0 * members}, members)
    for figure in (exhibits.ranking_figure({"one": played}), exhibits.matrix_figure(played)):
        labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        assert sorted(labels) == sorted([ATTACKS["gap"].name, ATTACKS["malt"].name])


def test_an_attack_is_chosen_on_one_half_of_the_targets_and_judged_on_the_other(monkeypatch):
    members = membership.balanced_halves(400, 12)
    noise, first = RNG.normal(size=(12, 400)), np.arange(12)[:, None] < 6
    lucky, steady = noise + 4 * members * first, noise + members * 0.5
    plays = {"one": made_up(dict.fromkeys(exhibits.SITUATIONS["parameters"], steady) | {"malt": lucky}, members)}
    strong = {"lira": noise + 2 * members, "calibrated": noise + members}
    auc = {name: metrics.auc(one, members)[None] for name, one in strong.items()}
    swept = {"one": study.Swept("references", np.array([4]), auc, auc, {})}
    monkeypatch.setattr(study, "play", lambda case, names, count: made_up({names[0]: strong[names[0]]}, members))
    found = exhibits.choices(plays, swept)
    assert found["losses"].name == "malt" and found["losses"].said == "none beyond chance"
    assert len(found["losses"].members["one"]) == 6 and 0.4 < found["losses"].mean.value < 0.6
    assert (found["apart"].name, found["few"].name) == ("calibrated", "lira")
    assert found["few"].said == ATTACKS["lira"].name and found["few"].mean.low > 0.8
    assert found["few"].beyond(found["apart"]).low > 0


def test_the_guide_covers_what_its_numbers_have_of_chance():
    """Where nothing leaks a guide says so, and its interval holds the chance level as often as it should."""
    rng, missed, found = np.random.default_rng(8), 0, 0
    for _ in range(60):
        members = membership.balanced_halves(200, 8, int(rng.integers(1 << 30)))
        ranks = np.stack([packed_ranks(row) for row in rng.normal(size=(8, 200))])
        choice = exhibits.Choice("malt", "auc", {"a": ranks, "b": ranks}, {"a": members, "b": members})
        missed += not choice.mean.low <= 0.5 <= choice.mean.high
        found += choice.said != "none beyond chance"
    assert missed <= 9 and found <= 6  # of 60, at one in twenty and one in forty


def test_rates_stand_beside_what_knows_nothing_and_are_left_out_where_they_cannot_be_told():
    members = membership.balanced_halves(400, 4)
    frame = exhibits.rates_table(made_up({"malt": RNG.normal(size=(4, 400)) + members}, members))
    chance = frame.iloc[0]
    assert chance["attack"] == "*scores that know nothing*" and chance["TPR at 1 % FPR"] == "1.5"  # three of 201
    assert {chance["precision at 1 % FPR"], *frame["TPR at 0.1 % FPR"]} == {exhibits.results.BELOW}
    more = membership.balanced_halves(1000, 4)
    assert exhibits.rates_table(made_up({"malt": RNG.normal(size=(4, 1000)) + more}, more))["precision at 1 % FPR"][0] == "50"
    rate = metrics.conformal_tpr_at_fpr(RNG.normal(size=(4, 400)) * 0, members, 0.01).mean()
    assert rate == pytest.approx(0.01)  # so that a half is chance for precision


def test_all_attacks_in_one_figure_are_told_apart_without_colour():
    every = [plotting.style_of(attack.name, place) for place, attack in enumerate(ATTACKS.values())]
    for looks in (every, list(exhibits.LOOK.values())):
        assert len({(str(look["linestyle"]), look["marker"]) for look in looks}) == len(looks)
    assert len(set(exhibits.FILLS.values())) == len(exhibits.FILLS) == len(exhibits.COLOURS)
