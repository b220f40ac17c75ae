"""Tables, figures and verdicts of the chapter on quantile regression, from made-up findings whose answers are known."""

from dataclasses import replace
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

from mia_lib import metrics
from mia_lib.evidence import claims, plotting, tables
from mia_lib.metrics.interval import t_interval
from mia_lib.papers.numbers import MEASURES, number
from mia_lib.papers.quantile import exhibits, study, theory

A = len(study.ALPHAS)
STRENGTHS = {"marginal": 0.0, "gauss_x": 0.1, "gauss_xy": 1.0, "pinball_x": 0.1, "pinball_xy": 0.9, "lira_2": 1.5,
             "lira_8": 2.0, "lira_off_8": 1.2}
METHODS = {one.name: one for one in (
    *study.REGRESSIONS, *(study.lira(n, offline, own) for n in (2, 4, 6, 8, 16, 32, 64) for offline in (False, True)
                          for own in (False, True) if not own or 4 <= n < 64))}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def games(targets=3, records=800, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(records) < records // 2 for _ in range(targets)])


def scored(members, strength, seed):
    """Ranks of scores that are `strength` standard deviations higher for members."""
    score = np.random.default_rng(seed).normal(size=members.shape) + strength * members
    return np.stack([stats.rankdata(row) for row in score]).astype(np.float32)


def made(strengths=STRENGTHS, targets=3, records=800, classes=4, fpr=1.0, calibrated=1.0, seed=0, seconds=1.0, each=20000):
    """A play whose pinball losses fall with strength; achieved rates are `fpr` and `calibrated` times the nominal ones.

    `each`: records of a class in the calibration split.
    """
    members, labels = games(targets, records, seed), np.arange(records) % classes
    jitter = 1 + 0.02 * np.linspace(-1, 1, targets)[:, None]
    own = [name for name in strengths if name in {one.name for one in study.REGRESSIONS}]
    heads = [name for name in own if name != "marginal"]
    pinball = {name: np.array([0.2, 0.03]) * np.exp(-0.3 * strength) * np.ones((targets, 1))
               for name, strength in strengths.items()}
    hits = {name: np.full((targets, A), 0.1) for name in own}
    class_all = np.stack([np.bincount(labels[~row], minlength=classes) for row in members])
    shares = {("marginal", "calibrated"): np.linspace(0, 0.1, classes), ("gauss_xy", "calibrated"): np.full(classes, 0.06),
              ("gauss_xy", "by_class"): np.full(classes, 0.05)}
    return study.Play(
        methods=tuple(study.in_order(METHODS[name] for name in strengths)), members=members, labels=labels,
        calibration=np.full(classes, each), pinball=pinball,
        ranks={name: scored(members, strength, [seed, k]) for k, (name, strength) in enumerate(strengths.items())},
        fpr={"raw": {name: np.array(study.ALPHAS) * fpr * jitter for name in own},
             "calibrated": {name: np.array(study.ALPHAS) * calibrated * jitter for name in own}},
        tpr={"raw": hits, "calibrated": hits}, class_all=class_all,
        class_false={kind: np.round(share * class_all).astype(int) for kind, share in shares.items()},
        crossing={}, seconds={name: np.full(targets, seconds) for name in heads},
        seconds_reference=np.linspace(2, 2.1, targets), train=np.full(targets, 0.99), test=np.linspace(0.70, 0.72, targets))


def changed(found, **entries):
    """The play with other entries of its dictionaries."""
    return replace(found, **{name: getattr(found, name) | some for name, some in entries.items()})


def counted(**changes):
    """Of `study.work`: a regression is as much work as a shadow model."""
    return replace(study.Work(reference=1.0, regression=1.0), **changes)


def searched(kind="image", trials=6, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "image":
        columns = {"learning_rate": 10 ** rng.uniform(-6, -2, trials), "weight_decay": 10 ** rng.uniform(-5, -3, trials),
                   "batch_size": 32.0 * 2 ** rng.integers(0, 7, trials), "epochs": 5.0 * rng.integers(1, 10, trials),
                   "hidden": np.full(trials, 64.0), "layers": 2.0 * (np.arange(trials) % 2)}
    else:
        columns = {"depth": rng.integers(1, 11, trials).astype(float), "l2_leaf_reg": 10 ** rng.uniform(-2, 6, trials),
                   "learning_rate": np.r_[np.nan, 10 ** rng.uniform(-6, 0, trials - 1)],
                   "subsample": np.r_[np.nan, 10 ** rng.uniform(-2, 0, trials - 1)],
                   "iterations": rng.integers(1, 1000, trials).astype(float)}
    return study.Tuned(columns, selection=0.1 + rng.permutation(trials) / 100, evaluation=np.full(trials, 0.1),
                       tpr=np.full(trials, 0.1), seconds=np.full(trials, 10.0))


NETWORKS = ("cnn:8", "cnn:8,16", "mlp:64")


def crossed(matched=2.0, other=1.0, targets=4):
    members = games(targets)
    return study.Mismatch(NETWORKS, members, {(a, b): scored(members, matched if a == b else other, [5, k, j])
                                              for k, a in enumerate(NETWORKS) for j, b in enumerate(NETWORKS)})


def flattered(gap=0.01, honest=0.0, targets=4):
    """Fresh records have `gap` more pinball loss than reported, where the regression was chosen on those reported on."""
    noise, out = 1e-5 * np.arange(targets), {}
    for how in study.PROTOCOLS:
        values = {"fpr": 0.01, "fresh_fpr": 0.0105, "tpr": 0.2, "pinball": 0.1, "fresh_fpr_off": 0.007,
                  "fpr_off": 0.002 if how in ("thresholds", "both") else 0.004}
        values = {what: value + noise for what, value in values.items()}
        fresh = values["pinball"] + (gap if how in ("selection", "both") else honest) + noise**2
        out[how] = study.Reported(**values, fresh_pinball=fresh + noise * (how in ("selection", "both")))
    return out


def grown(targets=4, heads=("marginal", "gauss_x", "gauss_xy")):
    sizes, rng = np.array([200, 800, 3200]), np.random.default_rng(0)
    return study.Growth(tuple(METHODS[head] for head in heads), sizes, *(
        {head: start + 0.01 * rng.random((3, targets)) + 0.02 * np.arange(3)[:, None] for head in heads}
        for start in (0.3, 0.5, 0.02)))


@pytest.fixture(scope="module")
def play():
    return made()


@pytest.fixture(scope="module")
def large():
    """Enough non-members for 0.1 %."""
    return made(targets=3, records=8000)


@pytest.fixture(scope="module")
def table():
    return made({"marginal": 0.0, "gauss_x": 0.1, "gauss_xy": 1.5, "pinball_x": 0.1, "pinball_xy": 0.9, "lira_16": 0.5,
                 "lira_64": 0.6, "lira_off_64": 0.5}, seed=3)


def only(found, names):
    """The play with these methods alone."""
    kept = {name: {key: value for key, value in getattr(found, name).items() if key in names}
            for name in ("ranks", "pinball")}
    return replace(found, methods=tuple(one for one in found.methods if one.name in names), **kept)


def spearman(found, names, place):
    """Of each target, by hand."""
    out, rate = [], (0.01, 0.001)[place]
    for t, inside in enumerate(found.members):
        loss = [found.pinball[name][t, place] for name in names]
        hits = []
        for name in names:
            score = found.ranks[name][t]
            bars = np.append(np.inf, np.sort(score[~inside])[::-1])  # strangers from the top
            whole, part = divmod(rate * len(bars), 1)  # those who may pass, one of them the next stranger
            at, below = bars[int(whole)], bars[int(whole) + 1]
            hits.append((score[inside] > at).mean() + part * ((score[inside] > below) & (score[inside] <= at)).mean())
        out.append(np.corrcoef(stats.rankdata(loss), stats.rankdata(hits))[0, 1])
    return np.array(out)


FOUR = [name for name in STRENGTHS if name in exhibits.SIX]


# ---------------------------------------------------------------------------------------------------------- names and rates


@pytest.mark.parametrize("dataset,beside", [("cifar100", "CIFAR-100"), ("cinic10", "CINIC-10"), ("cifar10", "CIFAR-10"),
                                            ("fashion_mnist_20k", "CIFAR-10")])
def test_ours_stands_beside_the_paper_s_numbers_for_the_same_images_where_it_has_any(dataset, beside):
    assert exhibits.printed_beside(dataset) == beside


def test_methods_are_ordered_and_those_of_the_paper_told_from_ours(play):
    assert [one.name for one in play.methods] == list(STRENGTHS)
    assert study.in_order([*map(study.lira, (16, 2, 8)), study.lira(2, offline=True), study.MARGINAL, study.lira(2)]) == [
        study.MARGINAL, *map(study.lira, (2, 8, 16)), study.lira(2, offline=True)]
    assert exhibits.most(play) == study.lira(8) and exhibits.most(only(play, ["marginal", "lira_2"])) == study.lira(2)
    assert {one.name for one in play.methods if one.paper} == {"marginal", "gauss_xy", "lira_2", "lira_8"}
    assert exhibits.label(study.lira(8)) == "LiRA (n = 8)" and exhibits.label(METHODS["gauss_x"]) == "*Gaussian, q(x)*"


def test_each_attack_of_the_chapter_has_a_look_of_its_own():
    assert {one.title for one in METHODS.values()} <= set(plotting.STYLE)


def test_a_number_may_be_of_other_measures(play):
    metric = "precision_at_fpr=0.05"
    given = play.ranks["gauss_xy"]
    found = number(given, play.members, metric, measures=(metric,))
    assert found.value == pytest.approx(metrics.precision_at_fpr(given, play.members, 0.05).mean())
    assert number(given, play.members).value == pytest.approx(metrics.auc(given, play.members).mean())
    assert metric not in MEASURES
    half = exhibits.tpr(play, "lira_8", 0.005, "gauss_xy")
    assert half.value == pytest.approx(np.subtract(*(metrics.conformal_tpr_at_fpr(play.ranks[name], play.members, 0.005)
                                                     for name in ("lira_8", "gauss_xy"))).mean())


def test_precision_is_at_equal_odds_whatever_the_share_of_members():
    members = games(3, 2000)
    score = scored(members, 1.0, 0)
    even = exhibits.precision(SimpleNamespace(members=members, ranks={"a": score}), "a", 0.01)
    tpr = metrics.conformal_tpr_at_fpr(score, members, 0.01).mean()
    assert even.value == pytest.approx(tpr / (tpr + 0.01))
    assert even.value == pytest.approx(metrics.precision_at_fpr(score, members, 0.01).mean(), abs=0.01)
    rows = np.array([np.r_[np.arange(2000), np.flatnonzero(row), np.flatnonzero(row)] for row in members])
    trebled = [np.take_along_axis(one, rows, 1) for one in (members, score)]
    again = exhibits.precision(SimpleNamespace(members=trebled[0], ranks={"a": trebled[1]}), "a", 0.01)
    assert again.value == pytest.approx(even.value)
    assert metrics.precision_at_fpr(trebled[1], trebled[0], 0.01).mean() > even.value + 0.05
    assert even.low < even.value < even.high <= 1 and even.at(0.99).low < even.at(0.9).low


def test_what_cannot_be_resolved_is_not_printed():
    three, two, few = made(targets=3), made(targets=2), made(records=150)
    assert tables.BELOW not in exhibits.cells_at(three, "gauss_xy", 0.01)  # 1,200 non-members: 12 false positives
    assert exhibits.cells_at(two, "gauss_xy", 0.01)[0] == tables.BELOW != exhibits.cells_at(two, "gauss_xy", 0.01)[1]
    assert exhibits.cells_at(three, "gauss_xy", 0.001) == exhibits.cells_at(few, "gauss_xy", 0.01) == (tables.BELOW,) * 2
    assert exhibits.resolved(three, 0.01) and not exhibits.resolved(few, 0.01)
    assert exhibits.resolved(made(records=2000), 0.001) and not exhibits.resolved(made(records=1998), 0.001)


def test_precision_of_two_targets_has_a_value_and_no_interval():
    members = games(2, 2000)
    found = exhibits.precision(SimpleNamespace(members=members, ranks={"a": scored(members, 1.0, 0)}), "a", 0.01)
    assert 0.5 < found.value < 1 and np.isnan([found.low, found.high]).all()


def test_precision_without_a_leak_is_one_half_however_few_non_members():
    """The field's TPR is 1.3 % by chance with 300 non-members, and precision at its nominal rate 57 %."""
    members, rng = np.tile(np.arange(600) < 300, (2000, 1)), np.random.default_rng(0)
    ranks = {"none": rng.permuted(np.tile(np.arange(600.0), (2000, 1)), axis=1)}
    found = metrics.conformal_tpr_at_fpr(ranks["none"], members, 0.01).mean()
    assert found / (found + 0.01) == pytest.approx(0.5, abs=0.02)
    plain = metrics.tpr_at_fpr(ranks["none"], members, 0.01).mean()
    assert plain / (plain + 0.01) == pytest.approx(0.57, abs=0.02)


# --------------------------------------------------------------------------------------------------------------- the tables


def test_access_is_what_functions_declare():
    frame = exhibits.access_table().set_index("attack")
    assert frame.loc["LiRA online", "access"] == frame.loc["Quantile regression", "access"]
    assert frame.loc["Quantile regression", "references"] == "none" and frame.loc["LiRA online", "references"] == "in and out"
    assert "outside the training set" in frame.loc["Marginal", "also knows"]
    assert "architecture" in frame.loc["*LiRA as the paper describes it*", "also knows"]


def test_table_one_is_beside_the_papers(play, large):
    plays = {"small": play, "large": large}
    frame, low = (exhibits.precision_table(plays, rate).set_index("attack") for rate in (0.01, 0.001))
    assert frame.loc["LiRA (n = 8)", "paper, CIFAR-10"] == "83.00 (4.88)"
    assert low.loc["LiRA (n = 8)", "paper, CIFAR-10"] == "93.70 (1.49)"
    assert low.loc["Gaussian, q(x, y)", "paper, ImageNet-1k"] == "99.64 (27.68)"
    assert "*pinball, q(x, y)*" not in frame.index
    share, rate = exhibits.precision(play, "gauss_xy", 0.01), exhibits.tpr(play, "gauss_xy", 0.01)
    assert frame.loc["Gaussian, q(x, y)", ["small: precision", "small: TPR"]].tolist() == [
        f"{100 * share:.1f}", f"{100 * rate:.1f}"]
    assert low.loc["Gaussian, q(x, y)", "small: TPR"] == tables.BELOW != low.loc["Gaussian, q(x, y)", "large: TPR"]
    assert frame.loc["LiRA (n = 4)", "small: TPR"] == tables.NOT_RUN
    own = made(STRENGTHS | {"lira_own_8": 1.8})
    row = exhibits.precision_table({"own": own}, 0.01).set_index("attack").loc["*LiRA, own spreads (n = 8)*"]
    assert row["paper, CIFAR-10"] == tables.NOTHING and row["own: TPR"] == f"{100 * exhibits.tpr(own, 'lira_own_8', 0.01):.1f}"


def test_a_sentence_says_what_is_resolved(play):
    lead = exhibits.tpr(play, "lira_8", 0.01, "gauss_xy")
    assert exhibits.said(play, "lira_8", 0.01, "gauss_xy") == f"{100 * lead:.1f} points"
    assert exhibits.said(play, "lira_8", 0.001) == "(below resolution)"


def test_precision_hides_what_the_implied_rates_show():
    frame = exhibits.implied_table().query("data == 'ImageNet-1k' and FPR == '0.1 %'").set_index("attack")
    assert frame.loc["LiRA (n = 8)", ["precision", "TPR", "Definition 2 as printed"]].tolist() == ["98.73", "7.77", "1.27"]
    assert frame.loc["Regression"].tolist()[2:] == ["99.64", "27.68", "0.36"]
    assert len(exhibits.implied_table()) == 48


def test_tables_six_and_seven_follow_ours(play):
    for place, rate in enumerate((0.01, 0.001)):
        frame = exhibits.pinball_table({"cnn": play}, rate).set_index("target")
        assert len(frame) == 9 and len(exhibits.pinball_table({"cnn": play}, rate, ())) == 1
        for name, method in ((name, METHODS[name]) for name in exhibits.SIX):
            cell = frame.loc["cnn", method.title]
            if name in STRENGTHS:
                loss = (0.2, 0.03)[place] * np.exp(-0.3 * STRENGTHS[name])
                assert cell.split("\n") == [f"{loss:.4f}", exhibits.cells_at(play, name, rate)[0]]
            else:
                assert cell == tables.NOT_RUN
        ours = frame["Gaussian, q(x, y)"]
        assert ours["paper: CIFAR-100, ResNet-34"] == ("0.1913\n81.80" if rate == 0.01 else "0.0270†\n79.64")
        assert ours.str.contains("†").sum() == (6 if rate == 0.001 else 0)


def test_rank_correlation_is_spearmans_of_each_target(large):
    for place, level in enumerate(study.LEVELS):
        found = exhibits.correlations({"one": large}, level)
        assert set(found) == {"one"}
        np.testing.assert_allclose(found["one"], spearman(large, FOUR, place))  # the paper's methods
        every = [one.name for one in large.methods]
        np.testing.assert_allclose(exhibits.correlations({"one": large}, level, every)["one"], spearman(large, every, place))
    level = changed(large, pinball={name: np.ones((3, 2)) for name in STRENGTHS})
    np.testing.assert_array_equal(exhibits.correlations({"one": level}, 0.99)["one"], 0)
    sided = changed(large, pinball={"gauss_x": np.full((3, 2), 99.0)}, ranks={"gauss_x": large.ranks["lira_8"]})
    np.testing.assert_array_equal(exhibits.correlations({"one": sided}, 0.99)["one"],
                                  exhibits.correlations({"one": large}, 0.99)["one"])  # a method of ours does not count


def test_cases_with_fewer_than_four_methods_have_no_correlation(large):
    for names, there in ((FOUR, True), (FOUR[:3], False), ([*FOUR[:3], "lira_off_8"], False)):
        assert set(exhibits.correlations({"one": only(large, names)}, 0.99)) == ({"one"} if there else set())
        assert set(exhibits.correlations({"one": large}, 0.99, names)) == ({"one"} if there or len(names) > 3 else set())
    assert set(exhibits.correlations({"few": only(large, FOUR[:3]), "one": large}, 0.99)) == {"one"}


def test_the_case_is_the_unit_of_chance(large):
    two, three = made(seed=4), made(STRENGTHS | {"gauss_xy": 2.4}, seed=5, targets=4)
    plays = {"one": large, "two": two, "three": three, "few": only(two, FOUR[:3])}
    each = [spearman(found, FOUR, 0).mean() for found in (large, two, three)]
    found = exhibits.rank_correlation(plays, 0.99)
    half = stats.t.isf(0.025, 2) * np.std(each, ddof=1) / np.sqrt(3)
    assert found.covers == "3 cases" and found.value == pytest.approx(np.mean(each))
    assert (found.low, found.high) == pytest.approx((max(np.mean(each) - half, -1), min(np.mean(each) + half, 1)))
    assert exhibits.rank_correlation({"one": large}, 0.99) is exhibits.rank_correlation({}, 0.99) is None
    assert exhibits.rank_correlation({"one": large, "few": plays["few"]}, 0.99) is None
    upside_down = {name: replace(one, pinball={method: -loss for method, loss in one.pinball.items()})
                   for name, one in plays.items() if name != "few"}
    assert exhibits.rank_correlation(upside_down, 0.99).value == pytest.approx(-np.mean(each))


def test_correlations_are_beside_the_papers(play, large):
    six = STRENGTHS | {"lira_4": 1.7, "lira_6": 1.9}
    plays = {"one": made(six, records=8000), "two": made(six, seed=2), "three": made(six, records=8000, seed=3)}
    frame = exhibits.correlation_table(plays).set_index("methods")
    assert frame.loc["the paper's methods", "paper, 1 %"] == "-1.00 to -0.49"  # of the fact sheet
    groups = {"the paper's methods": exhibits.SIX, "LiRA, by shadow models": ["lira_2", "lira_4", "lira_6", "lira_8"]}
    assert frame.index.tolist() == list(groups)
    for row, names in groups.items():
        each = [spearman(found, names, 0).mean() for found in plays.values()]
        assert frame.loc[row, "at 1 % FPR"] == f"{t_interval(each, bounds=(-1, 1)):.2f}"
        assert frame.loc[row, "by target network, 1 %"] == ", ".join(f"{one:.2f}" for one in each)
        low = [spearman(plays[name], names, 1).mean() for name in ("one", "three")]  # 400 are too few for 0.1 %
        assert frame.loc[row, "at 0.1 % FPR"] == f"{t_interval(low, bounds=(-1, 1)):.2f}"
    alone = exhibits.correlation_table({"two": play}).set_index("methods").loc["the paper's methods"]
    assert alone["at 0.1 % FPR"] == tables.BELOW and alone["at 1 % FPR"] == tables.NOTHING  # one case, and no interval
    assert alone["by target network, 1 %"] == f"{spearman(play, FOUR, 0).mean():.2f}"


def test_the_printed_correlations_are_those_of_the_tables():
    for rate, ends in ((0.01, (-1.0, -0.49)), (0.001, (-0.97, -0.35))):
        found = exhibits.printed_correlations(rate)
        assert len(found) == 8 and (min(found), max(found)) == pytest.approx(ends, abs=0.006)


def test_the_best_by_loss_is_judged_against_the_best_of_the_others(large):
    assert exhibits.lowest_loss(large, 0.99) == "lira_8"
    gap = exhibits.best_by_loss(large, 0.01)
    assert gap.value == pytest.approx(exhibits.tpr(large, "lira_8", 0.01, "lira_2").value) and gap.value > 0
    misled = changed(large, pinball={"gauss_xy": np.zeros((3, 2)), "gauss_x": np.full((3, 2), -1.0)})  # ours does not count
    assert exhibits.lowest_loss(misled, 0.99) == "gauss_xy"
    assert exhibits.best_by_loss(misled, 0.01).value == pytest.approx(exhibits.tpr(large, "gauss_xy", 0.01, "lira_8").value)


def test_accuracies_are_beside_the_papers(play):
    frame = exhibits.accuracy_table({"cnn": play}).set_index("target")["accuracy, non-members"]
    assert frame["cnn"].text.startswith("71.0 [") and frame["paper: CIFAR-100, ResNet-34"] == "68.3" and len(frame) == 10


def test_the_mismatch_table_has_matched_models_in_bold():
    found = crossed()
    frame = exhibits.mismatch_table(found).set_index("target")
    assert frame.columns.tolist() == [f"shadow models: {name}" for name in NETWORKS] and frame.index.tolist() == [*NETWORKS]
    for a in NETWORKS:
        for b in NETWORKS:
            share, rate = exhibits.cells_at(found, (a, b), 0.01)
            expected = f"**{share}**\n**{rate}**" if a == b else f"{share}\n{rate}"
            assert frame.loc[a, f"shadow models: {b}"] == expected


def test_table_two_is_beside_the_papers(table):
    frame = exhibits.tabular_table({"Adult": table}).set_index("attack")
    assert frame.loc["Gaussian, q(x)", "paper, OpenML 361057, at 1 %"] == "83.35\n5.01"  # not the form for images
    assert frame.loc["*Gaussian, q(x, y)*", "paper, OpenML 361057, at 1 %"] == tables.NOTHING
    for row, name in (("Gaussian, q(x)", "gauss_x"), ("*Gaussian, q(x, y)*", "gauss_xy")):
        assert frame.loc[row, "Adult: precision, TPR (%) at 1 %"] == tables.stacked(exhibits.cells_at(table, name, 0.01))
    assert frame.loc["LiRA (n = 16)", "paper, ACS NY Mobility, at 0.5 %"] == "72.74\n1.33"
    assert sum("paper" in name for name in frame.columns) == 8
    assert frame.loc["LiRA (n = 32)", "Adult: precision, TPR (%) at 1 %"] == tables.NOT_RUN
    assert frame.loc["LiRA (n = 16)", "Adult: precision, TPR (%) at 1 %"] == tables.stacked(
        exhibits.cells_at(table, "lira_16", 0.01))


def test_spaces_show_the_papers_ranges_and_the_best_trial():
    image, trees = searched(), searched("table")
    trees.selection[0] = 0.0  # the settings to begin with
    frame = exhibits.spaces_table(image, trees).set_index(["regressor", "hyperparameter"])
    assert frame.loc[("images", "learning rate"), "paper's range"] == "loguniform(1e-6, 1e-2)"
    assert frame.loc[("tables", "subsampling ratio"), "best"] == "CatBoost's own"
    best = int(np.argmin(image.selection))
    assert frame.loc[("images", "batches of 32 a step"), "best"] == f"{image.searched['batch_size'][best] / 32:.2g}"
    assert frame.loc[("images", "hidden layers of the head"), "tried"] == "0 to 2" and len(frame) == 10
    assert (exhibits.spaces_table(None, trees).query("regressor == 'images'")["best"] == tables.NOT_RUN).all()


def test_what_is_found_is_said_with_numbers_or_as_beyond_what_strangers_resolve(play):
    said = exhibits.finds(play, 0.01)
    assert exhibits.said(play, "gauss_xy", 0.01) in said and exhibits.said(play, "lira_8", 0.01, "gauss_xy") in said
    assert "LiRA with 8 references" in said
    few = exhibits.finds(play, 1e-5)
    assert few.startswith("At 0.001 % FPR a target has too few strangers") and tables.BELOW not in few


def test_costs_count_models_and_seconds(play):
    frame = exhibits.cost_table({"one": play}, {"one": searched()})
    rows = frame[frame.case == "one"].set_index("attack")
    assert rows.loc["LiRA (n = 8)", ["models trained", "time"]].tolist() == [8, "16 s"]
    assert rows.loc["Gaussian, q(x, y)", ["models trained", "time"]].tolist() == [1, "1 s"]
    assert rows.loc["Gaussian, q(x, y), with tuning", ["models trained", "time"]].tolist() == ["6 trials + 1", "61 s"]
    assert frame[frame.case == "paper: ImageNet-1k"]["time"].tolist() == ["960 min", "7,680 min"]


def test_the_labels_part_is_paired(play):
    frame = exhibits.label_table({"one": play})
    assert frame["regression"].tolist() == ["Gaussian, q(x)", "Gaussian, q(x, y)", "Gaussian, the label's part",
                                            "pinball, q(x)", "pinball, q(x, y)", "pinball, the label's part"]
    assert frame["AUC"][2] == f"{exhibits.of_attack(play, 'gauss_xy', minus='gauss_x'):.3f}"
    assert float(frame["pinball, 1 %"][2]) == pytest.approx(0.2 * (np.exp(-0.3) - np.exp(-0.03)), abs=1e-4)
    alone = only(play, set(STRENGTHS) - {"gauss_x", "pinball_x"})
    assert exhibits.label_table({"one": alone}).empty


def test_flattery_is_the_distance_of_fresh_records_from_reported_ones():
    frame = exhibits.flattery_table({"one": flattered()}).set_index("chosen on the records reported on")
    assert frame.loc["both", "pinball, fresh less reported"].text.startswith("0.0100")
    assert frame.loc["thresholds", "pinball, fresh less reported"].text.startswith("0.0000")
    rates = frame.loc["neither", ["FPR (%), reported", "FPR (%), fresh"]]
    assert [rate.value for rate in rates] == pytest.approx([1.0, 1.05], abs=0.005)
    off = frame[["off by (points), reported", "off by (points), fresh"]]
    assert off.loc["neither"].tolist() == ["0.40", "0.70"] and off.loc["both"].tolist() == ["0.20", "0.70"]


def quartered(names, seed=6):
    rng, size = np.random.default_rng(seed), len(study.SPREADS)
    values = {what: {name: rng.random((3, 4)) for name in names} for what in ("pinball", "above", "tpr", "fpr")}
    return study.Quarters(tuple(METHODS[name] for name in names), rng.random((3, 4)), **values,
                          spread_loss=rng.random((3, 4, size)), ratio_tpr=rng.random((3, 4, 2 * size - 1)))


def test_quarters_are_drawn_in_pairs_and_move():
    found = quartered(("marginal", "gauss_xy", "lira_off_4", "lira_off_own_4"))
    losses, hits = exhibits.quarters_figure(found).axes
    for axis, values, unit in ((losses, found.pinball, 1), (hits, found.tpr, 100)):
        for bars, name in zip(axis.containers, ("gauss_xy", "lira_off_4", "lira_off_own_4"), strict=True):
            np.testing.assert_allclose([bar.get_width() for bar in bars], unit * values[name].mean(0))
    pytest.importorskip("altair")
    chart = exhibits.quarters_chart(found).to_dict()
    size = len(study.SPREADS)
    assert {one["name"] for one in chart["params"]} >= {"whose", "hard", "easy"}
    assert [len(chart["datasets"][name]) for name in ("given", "losses", "halves", "hits")] == [
        12, 12 * size, 6 * size, 12 * (2 * size - 1)]
    half = {row["key"]: row["loss"] for row in chart["datasets"]["halves"]}
    assert half["by references17"] == pytest.approx(found.spread_loss[2, 2:, 7].mean())


def test_the_sliders_begin_at_the_least_loss():
    found = quartered(("marginal", "gauss_xy", "lira_off_4"))
    for m, mean in enumerate(study.MEANS):
        for half, place in enumerate(exhibits.best_spreads(found, mean)):
            losses = (found.spread_loss[m, 2 * half] + found.spread_loss[m, 2 * half + 1]).tolist()
            assert losses[place] == min(losses)


def test_quarters_have_a_row_an_attack():
    names = "marginal", "gauss_xy", "lira_off_4"
    kinds = ("pinball", "above", "tpr", "fpr")
    found = quartered(names)
    shift, values = found.shift, {what: getattr(found, what) for what in kinds}
    frame = exhibits.quarters_table(found)
    assert list(frame)[:2] == ["quarter", "attack"], "what is measured does not name a row"
    assert frame["quarter"].tolist() == [word for word in ("hardest", "harder", "easier", "easiest") for _ in names]
    assert frame["attack"].tolist() == ["Marginal", "Gaussian, q(x, y)", "*LiRA, offline (n = 4)*"] * 4
    for place, row in enumerate(frame.to_dict("records")):
        k, name = place // 3, names[place % 3]
        mean = {what: np.mean([values[what][name][t, k] for t in range(3)]) for what in kinds}
        assert row["members' scores higher by"] == f"{sum(shift[:, k]) / 3:.2f}"
        assert row["threshold above the mean"] == f"{mean['above']:.2f}"
        assert row["pinball, 1 %"] == f"{mean['pinball']:.4f}" and row["FPR (%)"] == f"{100 * mean['fpr']:.1f}"
        half = stats.t.isf(0.025, 2) * values["tpr"][name][:, k].std(ddof=1) / np.sqrt(3)
        value, low, high = (100 * np.clip(mean["tpr"] + sign * half, 0, 1) for sign in (0, -1, 1))
        assert row["TPR (%)"] == f"{value:.1f} [{low:.1f}, {high:.1f}]"


def test_views_are_compared_with_nobodys():
    members, strengths = games(), {"none": 0.5, "members": 1.5, "all": 0.5}
    found = study.Views(members, {(method, who): scored(members, strength, [9, k, len(who)])
                                  for k, method in enumerate(("marginal", "gauss_xy"))
                                  for who, strength in strengths.items()})
    frame = exhibits.views_table(found)
    gains = frame["AUC less that of nobody's"]
    gain = exhibits.of_attack(found, ("gauss_xy", "members"), minus=("gauss_xy", "none"))
    assert gains[0] == tables.NOTHING and gains[4] == f"{gain:.3f}"


def test_the_rates_table_says_what_is_not_resolved(play):
    rates = play.fpr["calibrated"] | {"marginal": np.where(np.array(study.ALPHAS) < 0.01, np.nan,
                                                           play.fpr["calibrated"]["marginal"])}
    narrow = changed(play, fpr={"calibrated": rates})
    row = exhibits.fpr_table({"one": narrow}).set_index("attack").loc["Marginal"]
    assert row["FPR (%) at 0.1 %, calibrated"] == tables.BELOW and row["FPR (%) at 0.1 %, as fitted"].text.startswith("0.10 [")
    assert row["FPR (%) at 1 %, calibrated"].text.startswith("1.00 [")


def test_no_false_positive_is_no_certainty(play):
    nothing = changed(play, fpr={"raw": {"gauss_xy": np.zeros((3, A))}})
    found, usual = (exhibits.achieved(one, "gauss_xy", 0.01) for one in (nothing, play))
    assert found.value == found.low == 0 < found.high < usual.high
    count = (~play.members).any(0).sum()
    assert usual.high - usual.value > stats.norm.isf(0.025) * np.sqrt(0.01 * 0.99 / count)


@pytest.mark.parametrize("each", [50, 2000])
def test_calibrated_rates_have_the_chance_of_the_calibration_split(each):
    found = made(each=each)
    rates = found.fpr["calibrated"]["gauss_xy"][:, study.ALPHAS.index(0.01)]
    mean, records = rates.mean(), int((~found.members).any(0).sum())
    between, pool, split = rates.var(ddof=1) / 3, mean * (1 - mean) / records, mean * (1 - mean) / (4 * each)
    for how, parts in (("raw", (between, pool)), ("calibrated", (between, pool, split))):
        one = exhibits.achieved(found, "gauss_xy", 0.01, how)
        freedom = sum(parts) ** 2 / (between**2 / 2)  # Welch and Satterthwaite; the others are known
        half = stats.t.isf(0.025, freedom) * np.sqrt(sum(parts))
        assert (one.value, one.low, one.high) == pytest.approx((mean, max(mean - half, 0), mean + half))
        assert (f"{4 * each} records for calibration" in one.covers) == (how == "calibrated")


def test_theory_tables_carry_what_coverage_found():
    groups = theory.group_world(500, 500)
    frame = exhibits.group_table(groups).set_index("class of functions")
    assert frame.loc["linear", "x > 1: fit, fresh"] == f"{groups['fit'][1, 1]:.3f}, {groups['test'][1, 1]:.3f}"
    assert frame.loc["oracle", "most beyond p / n"] == tables.NOTHING and frame.loc["constant", "most beyond p / n"] == "0"
    lemma = exhibits.lemma_three_table().set_index(["residual", "rate"])
    assert lemma.loc[("uniform", "0.2 to 0.05")].tolist() == ["0.01125", "0.01125", "0.02250", "fails"]
    assert lemma.loc[("Gaussian", "0.2 to 0.05"), "as a bound, the square alone"] == "holds"
    collapsed = exhibits.collapse_table(theory.collapse((1.0, 0.0), 500, 2000)).set_index("noise in the score")
    assert collapsed.loc["0", "FPR with ≥"] == "1.000" and collapsed.loc["0", "FPR with >"] == "0.000"
    power = exhibits.power_table()
    assert power["one threshold"].to_numpy() == pytest.approx([0.375, 0.143, 0.027], abs=0.003)  # of the fact sheet
    assert power["a threshold for each x"].to_numpy() == pytest.approx([0.638, 0.371, 0.137], abs=0.003)


# -------------------------------------------------------------------------------------------------------------- the figures


def legend(figure):
    return [text.get_text() for one in figure.legends for text in one.get_texts()]


def one_seen(records=800, aside=400):
    rng = np.random.default_rng(1)
    members, mean, spread = np.arange(records) % 2 == 0, rng.normal(size=records), np.exp(rng.normal(size=records) / 2)
    score = mean + spread * (rng.normal(size=records) + 2 * members)
    place = rng.normal(size=aside)
    return study.OneTarget(members, score, mean, spread, place * np.exp(rng.normal(size=aside) / 2), place)


def test_the_idea_calls_real_records_by_two_rules():
    seen = one_seen()
    alone, own = exhibits.idea_figure(seen).axes
    bar = order_statistic(seen.aside_score, 0.95)
    factor = order_statistic(seen.aside_position, 0.95)
    rules = seen.score >= bar, seen.score >= seen.mean + factor * seen.spread
    for axis, called in zip((alone, own), rules, strict=True):
        shares = [f"{100 * called[side].mean():.1f} % of" for side in (seen.members, ~seen.members)]
        assert all(share in axis.get_title() for share in shares)
        lines = {line.get_label(): line for line in axis.lines}
        drawn = np.concatenate([lines[f"members, {word}"].get_ydata() for word in ("called members", "not called")])
        assert len(drawn) == min(exhibits.SHOWN, seen.members.sum())
    x, y = next(line for line in own.lines if line.get_label() == "members, called members").get_data()
    assert len(x) and (y >= x).all()  # the diagonal is the rule


def order_statistic(score, level):
    return np.sort(score)[int(np.ceil((len(score) + 1) * level - 1e-9)) - 1]


def test_positions_are_drawn_with_both_thresholds():
    seen = one_seen()
    one, rest = exhibits.position_figure(seen).axes
    names = legend(one.figure)
    assert f"as fitted: {stats.norm.isf(0.01):.2f}" in names and "positions of 400 set aside" in names
    assert f"k-th smallest, k = 397: {order_statistic(seen.aside_position, 0.99):.2f}" in names
    few = exhibits.position_figure(replace(seen, aside_position=seen.aside_position[:50]))
    assert not [name for name in legend(few) if name.startswith("k-th")]  # too few for 1 %
    assert exhibits.thresholds_drawn(seen).startswith("two thresholds at 1 %")
    assert "too few records" in exhibits.thresholds_drawn(replace(seen, aside_position=seen.aside_position[:50]))


def test_the_world_shows_whom_thresholds_find():
    for axis, part in zip(exhibits.world_figure(2).axes, ("38 % of members", "64 % of members"), strict=True):
        assert part in axis.get_title() and "5 % of non-members" in axis.get_title()
        lines = {line.get_label(): line for line in axis.lines}
        bar = lines["threshold"]
        for kind in ("members", "non-members"):
            for word, above in (("called members", True), ("not called", False)):
                x, y = lines[f"{kind}, {word}"].get_data()
                kept = np.abs(x) < 2.6
                assert ((y[kept] >= np.interp(x[kept], *bar.get_data())) == above).mean() > 0.97


def test_the_pinball_loss_is_least_at_the_quantile():
    axis = exhibits.pinball_figure((0.5, 0.99)).axes[0]
    for curve, mark, level in ((axis.lines[0], axis.lines[1], 0.5), (axis.lines[3], axis.lines[4], 0.99)):
        x, y = curve.get_data()
        assert x[np.argmin(y)] == pytest.approx(stats.norm.ppf(level), abs=0.02) and y.min() == pytest.approx(1, abs=1e-3)
        assert mark.get_xdata()[0] == pytest.approx(stats.norm.ppf(level))


def test_a_roc_has_the_rates_that_the_paper_implies(play, table):
    figure = exhibits.roc_figure(play, "FashionMNIST")
    axis = figure.axes[0]
    hollow = {tuple(np.round(point, 6)) for line in axis.lines if line.get_markerfacecolor() == "white"
              for point in line.get_xydata()}
    assert (0.01, pytest.approx(0.048824, abs=1e-5)) in [(x, y) for x, y in hollow] and len(hollow) == 8
    assert axis.get_title() == "FashionMNIST" and "paper: CIFAR-10" in legend(figure)
    drawn = {line.get_label() for line in axis.lines}
    assert {"Marginal", "Gaussian, q(x, y)", "LiRA (n = 2)", "LiRA (n = 8)"} <= drawn and not axis.collections[:-2]
    assert not {"Gaussian, q(x)", "pinball, q(x, y)", "LiRA, offline (n = 8)"} & drawn
    assert "paper: ACS NY Income" in legend(exhibits.roc_figure(table, "Adult", "ACS NY Income"))
    bare = exhibits.roc_figure(table, "Adult", None)
    assert not [line for line in bare.axes[0].lines if line.get_markerfacecolor() == "white"]


def test_printed_rates_have_a_panel_a_data_set_and_ours_one_more(play):
    figure = exhibits.printed_figure(play, "ours: here")
    assert [axis.get_title() for axis in figure.axes[:5]] == ["paper: ImageNet-1k", "paper: CINIC-10", "paper: CIFAR-100",
                                                              "paper: CIFAR-10", "ours: here"]
    values = figure.axes[0].lines[0].get_xdata()  # at 1 %, the marginal baseline first, the regression last
    assert values[0] == pytest.approx(0.91, abs=0.005) and values[-1] == pytest.approx(38.22, abs=0.005)
    ours = [line.get_xdata()[0] for line in figure.axes[4].lines if line.get_marker() == "o"]
    assert ours == pytest.approx([100 * exhibits.tpr(play, name, 0.01).value
                                  for name in ("marginal", "lira_2", "lira_8", "gauss_xy")])
    assert not [line for line in figure.axes[4].lines if line.get_marker() == "s"]  # 0.1 % is not resolved
    assert not exhibits.printed_figure().axes[4].axison


def test_the_central_figure_has_a_mark_a_method(play, table):
    figure = exhibits.pinball_figure_central({"cnn": play, "Adult": table, "other": play})
    axis = figure.axes[0]
    marks = [line for line in axis.lines if line.get_marker() not in ("None", "none", None)]
    expected = [(play.pinball[name][:, 0].mean(), 100 * exhibits.tpr(play, name, 0.01).value) for name in FOUR]
    np.testing.assert_allclose([np.ravel(mark.get_xydata()) for mark in marks], expected)
    assert len({(mark.get_marker(), mark.get_color()) for mark in marks}) == len(FOUR)
    [arrow] = [text for text in axis.texts if text.arrow_patch is not None]  # from the regression to LiRA
    assert arrow.xyann == pytest.approx(expected[1]) and arrow.xy == pytest.approx(expected[-1])
    assert axis.get_xscale() == axis.get_yscale() == "log"
    assert arrow.get_zorder() > max(mark.get_zorder() for mark in marks)
    assert min(min(bar.get_ydata()) for bar in axis.lines) >= 0.5 * min(1, *(y for _, y in expected)) * (1 - 1e-9)
    low, high = axis.get_xlim()
    ticks = axis.get_xticks()
    assert len(ticks) > 1 and low <= min(ticks) and max(ticks) <= high and 0.2 in ticks.round(9)
    assert axis.xaxis.get_major_formatter()(0.2, 0) == "0.2" and not len(axis.get_xticks(minor=True))
    assert [one.get_title() for one in figure.axes[:3]] == ["cnn", "Adult", "other"] and not figure.axes[3].axison
    few = exhibits.pinball_figure_central({"few": made(records=150), "cnn": play}).axes[0]
    assert not few.lines and few.texts[0].get_text() == tables.BELOW


@pytest.mark.parametrize("low,high", [(0.22, 0.45), (0.105, 0.19), (0.55, 0.95)])
def test_the_axis_of_pinball_losses_has_numbers(play, low, high):
    losses = dict(zip(STRENGTHS, np.geomspace(low, high, len(STRENGTHS)), strict=True))
    near = replace(play, pinball={name: np.full((3, 2), loss) for name, loss in losses.items()})
    axis = exhibits.pinball_figure_central({"cnn": near}).axes[0]
    left, right = axis.get_xlim()
    assert [tick for tick in (*axis.get_xticks(), *axis.get_xticks(minor=True)) if left <= tick <= right]


def test_circles_are_where_architectures_match():
    found = crossed()
    fine = exhibits.mismatch_figure(found, 0.005)  # two false alarms, too few for a precision
    assert not fine.axes[0].containers and fine.axes[1].containers
    assert fine.axes[0].texts[0].get_text() == tables.BELOW and not fine.axes[1].texts
    for axis in exhibits.mismatch_figure(found, 0.001).axes:  # and less than one
        assert not axis.containers and axis.texts[0].get_text() == tables.BELOW
    figure = exhibits.mismatch_figure(found)
    for axis, of in zip(figure.axes, (exhibits.precision, exhibits.tpr), strict=True):
        circles = [np.ravel(line.get_xydata()) for line in axis.lines if line.get_markersize() == 14]
        assert [round(x) for x, _ in circles] == [0, 1, 2]
        assert [y for _, y in circles] == pytest.approx([100 * of(found, (name, name), 0.01).value for name in NETWORKS])
    assert "matched" in legend(figure) and len(legend(figure)) == 4


@pytest.mark.parametrize("kind", ["image", "table"])
def test_the_best_trial_is_marked(kind):
    found = searched(kind, 8)
    for axis, name in zip(exhibits.tuning_figure(found).axes, ("learning_rate", "epochs" if kind == "image" else "iterations"),
                          strict=True):
        lines, best = {line.get_label(): line for line in axis.lines}, int(np.argmin(found.selection))
        assert lines["best"].get_ydata()[0] == found.selection[best]
        if best or name != "learning_rate":
            assert lines["best"].get_xdata()[0] == pytest.approx(found.searched[name][best])
        start = lines["settings to begin with"].get_xdata()[0]
        own = found.searched[name][0]
        assert start == pytest.approx(own) if np.isfinite(own) else start < np.nanmin(found.searched[name])
    level = {name: np.full(3, np.nan if name == "subsample" else 1.0) for name in found.searched}
    exhibits.tuning_figure(study.Tuned(level, *[np.ones(3)] * 4))  # one setting throughout


def test_a_trial_without_a_loss_is_not_the_best():
    found = searched("image", 8)
    found = replace(found, **{name: np.where(np.arange(8) == 3, np.nan, getattr(found, name))
                              for name in ("selection", "evaluation", "tpr")})
    marks = {line.get_label(): line for line in exhibits.tuning_figure(found).axes[0].lines}
    best = int(np.nanargmin(found.selection))
    assert best != 3 and marks["best"].get_xdata()[0] == pytest.approx(found.searched["learning_rate"][best])
    frame = exhibits.spaces_table(found, None).set_index("hyperparameter")
    assert frame.loc["epochs", "best"] == f"{found.searched['epochs'][best]:.2g}"


def test_the_rates_are_drawn_as_achieved():
    found = made(fpr=2.0)
    found.fpr["calibrated"]["marginal"][:, 0] = np.nan
    left, right = exhibits.fpr_figure(found, 500).axes
    for axis, factor in ((left, 2), (right, 1)):
        lines = [bars.lines[0] for bars in axis.containers]
        assert len(lines) == 3
        np.testing.assert_allclose(lines[1].get_ydata(orig=False), factor * np.array(study.ALPHAS), rtol=1e-6)
    assert len(right.containers[0].lines[0].get_ydata()) == A - 1
    wide, narrow = exhibits._law(0.05, 400, 100), exhibits._law(0.05, 400, None)
    assert wide[0] < narrow[0] < 0.05 < narrow[1] < wide[1] and np.isnan(exhibits._law(0.001, 400, 100)).all()


def test_classes_are_drawn_with_the_intervals_of_targets_and_records(play):
    rng = np.random.default_rng(8)
    play = replace(play, calibration=np.array([20, 40, 400, 4000]), class_false={
        kind: value + rng.integers(0, 4, value.shape) for kind, value in play.class_false.items()})
    play.class_false["marginal", "calibrated"][:, 0] = 0
    axis = exhibits.class_figure(play, ["ankle boot", "bag", "coat", "dress"]).axes[0]
    drawn = {bars.get_label(): bars for bars in axis.containers}
    assert set(drawn) == {"Marginal", "q(x, y)", "q(x, y), calibrated by class"}
    records = np.bincount(play.labels)
    for name, kind in (("Marginal", ("marginal", "calibrated")), ("q(x, y)", ("gauss_xy", "calibrated")),
                       ("q(x, y), calibrated by class", ("gauss_xy", "by_class"))):
        each = play.class_false[kind] / play.class_all
        np.testing.assert_allclose(drawn[name].lines[0].get_ydata(orig=False), 100 * each.mean(0))
        for c, segment in enumerate(drawn[name].lines[2][0].get_segments()):
            mean, between = each[:, c].mean(), each[:, c].var(ddof=1) / 3
            chance = max(mean, 1 / records[c]) * (1 - mean)
            total = between + chance / records[c] + (chance / play.calibration[c] if "by_class" in kind else 0)
            half = stats.t.isf(0.025, total**2 / (between**2 / 2) if between else np.inf) * np.sqrt(total)
            assert segment[:, 1] == pytest.approx(100 * np.array([max(mean - half, 0), min(mean + half, 1)])), (name, c)
    assert axis.get_ylim()[0] < 0  # a mark at zero is whole
    alone = {(name, how): one for (name, how), one in play.class_false.items() if how == "calibrated"}
    assert len(exhibits.class_figure(replace(play, class_false=alone)).axes[0].containers) == 2


def test_many_classes_are_drawn_as_their_sorted_rates(play):
    rng, many = np.random.default_rng(0), exhibits.MANY_CLASSES + 1
    play = replace(play, labels=rng.integers(0, many, len(play.labels)), class_all=np.full((3, many), 50),
                   class_false={kind: rng.integers(0, 9, (3, many)) for kind in play.class_false})
    axis = exhibits.class_figure(play, [f"class {c}" for c in range(many)]).axes[0]
    drawn = {line.get_label(): line.get_ydata() for line in axis.lines}
    assert not axis.containers
    for name, kind in (("Marginal", ("marginal", "calibrated")), ("q(x, y), calibrated by class", ("gauss_xy", "by_class"))):
        np.testing.assert_allclose(drawn[name], np.sort(2 * play.class_false[kind].mean(0)))


def test_growth_is_drawn_as_what_it_has_over_the_baseline():
    found = grown()
    figure = exhibits.growth_figure(found)
    for axis, key, unit in zip(figure.axes, ("tpr", "auc", "pinball"), (100, 1, 1), strict=True):
        for bars, head in zip(axis.containers, ("gauss_x", "gauss_xy"), strict=True):
            gain = getattr(found, key)[head] - getattr(found, key)["marginal"]
            np.testing.assert_allclose(bars.lines[0].get_ydata(orig=False), unit * gain.mean(1), atol=1e-12)
    assert legend(figure) == ["Gaussian, q(x)", "Gaussian, q(x, y)"]
    rate, *others = exhibits.growth_figure(found, rates=False).axes
    assert not rate.containers and rate.texts[0].get_text() == tables.BELOW and all(axis.containers for axis in others)


# ------------------------------------------------------------------------------------------------------------- the verdicts


def judged(verdicts):
    return {one.claim: one for one in verdicts}


def test_every_claim_is_judged_once(play, table, monkeypatch):
    seen = []
    monkeypatch.setattr(tables, "display_bundle", lambda *bundle: seen.append(bundle))
    verdicts = [*exhibits.judge_theory(theory.group_world(500, 500), exhibits.lemmas()),
                *exhibits.judge_attacks({"one": play}, {"Adult": table}, {"one": 5000, "Adult": 4000}, {"one": counted()}),
                *exhibits.judge_studies(crossed(), {"one": flattered()}), *exhibits.judge_reach()]
    claims.show("quantile", verdicts)
    assert sorted(claims.claims("quantile")) == sorted(one.claim for one in verdicts)
    assert {one.claim for one in verdicts if one.verdict == "not run"} == {"C3", "C4", "C6", "C12", "C13"} and seen


def test_theory_is_judged_by_what_it_says():
    groups, lemma = theory.group_world(500, 500), exhibits.lemmas()
    assert {one.verdict for one in exhibits.judge_theory(groups, lemma)} == {"checked"}
    missed = groups | {"excess": np.where(np.isnan(groups["excess"]), np.nan, 0.01)}
    right = {key: one | {"square": one["bound"]} for key, one in lemma.items()}
    assert judged(exhibits.judge_theory(missed, lemma))["C2"].verdict == "contradicted"
    assert judged(exhibits.judge_theory(groups, right))["A4"].verdict == "contradicted"
    too_much = {key: one | {"bound": one["gap"] + 0.001} for key, one in lemma.items()}
    assert judged(exhibits.judge_theory(groups, too_much))["A4"].verdict == "contradicted"


@pytest.mark.parametrize("claim,holds,fails", [
    ("C1", {}, {"fpr": 2.0}), ("C1", {}, {"fpr": 0.4}), ("C1g", {}, {"fpr": 2.0}), ("A1", {"fpr": 2.0}, {"calibrated": 0.4}),
    ("C5", {}, {"gauss_xy": 3.5}), ("C5", {}, {"marginal": 2.0}), ("C7", {"gauss_xy": 4.0}, {"marginal": 2.0}),
    ("C11", {}, {"gauss_xy": -1.0}), ("C10", {}, {"reference": 0.05}), ("A2", {}, {"gauss_x": 2.5}),
    ("A2", {}, {"pinball_x": 2.5})])
def test_verdicts_turn_with_what_was_found(claim, holds, fails):
    def verdict(change):
        plain = {name: value for name, value in change.items() if name not in STRENGTHS and name != "reference"}
        strengths = STRENGTHS | {name: value for name, value in change.items() if name in STRENGTHS}
        found = made(strengths, records=6000, **plain)
        work = {"one": counted(reference=change.get("reference", 1.0))}
        return judged(exhibits.judge_attacks({"one": found}, {}, {"one": 4000}, work))[claim].verdict

    assert verdict(holds) == "reproduced"
    assert verdict(fails) == "contradicted"


def test_rates_are_judged_from_forty_expected_exceedances_on():
    plays = {name: made(records=2000, each=each) for name, each in (("much", 1000), ("less", 999), ("none", 1000))}
    fitted = {"much": 3999, "less": 4000}  # which records set the threshold: those fitted to, or those for calibration
    found = judged(exhibits.judge_attacks(plays, {}, fitted))
    heads = ("Gaussian, q(x, y)", "pinball, q(x, y)")
    for claim, enough, judged_on in (("C1", ["less"], heads[1:]), ("C1g", ["less"], heads[:1]),
                                     ("A1", ["much", "none"], heads)):
        parts = found[claim].parts
        words = [f"{name}, {part}" for name in judged_on for part in ("1.5 % less FPR", "FPR less 1 % / 1.5")]
        assert {name for name, part in parts.items() if part is not None} == {f"{case}, {word}" for case in enough
                                                                             for word in words}
        assert {name for name, part in parts.items() if part is None} == set(plays) - set(enough)
        assert "fewer than 40 expected exceedances" in found[claim].reason
    rate = plays["less"].fpr["raw"]["pinball_xy"][:, study.ALPHAS.index(0.01)].mean()
    assert found["C1"].parts["less, pinball, q(x, y), 1.5 % less FPR"].value == pytest.approx(0.015 - rate)
    assert found["C1"].parts["less, pinball, q(x, y), FPR less 1 % / 1.5"].value == pytest.approx(rate - 0.01 / 1.5)
    nobody = judged(exhibits.judge_attacks({"none": plays["none"]}, {}, {}))
    assert nobody["C1"].verdict == "not run" != nobody["A1"].verdict and nobody["C1"].parts == {"none": None}


def test_pinball_and_power_are_judged_over_networks_by_the_papers_methods(large):
    parts = [f"-0.5 less the correlation, at {rate} %" for rate in ("1", "0.1")]
    kept = [name for name in exhibits.SIX if name in large.ranks]

    def swapped(a, b):
        """The play with other losses, so that cases differ; its scores, and so all rates, are the same."""
        return changed(large, pinball={a: large.pinball[b], b: large.pinball[a]})

    plays = {"one": large, "two": swapped("lira_2", "lira_8"), "three": large, "four": swapped("gauss_xy", "marginal")}
    small = made(seed=8)
    six = judged(exhibits.judge_attacks({**plays, "small": small}, {"table": large}, {}))["C6"]
    assert list(six.parts) == parts and len(kept) > 3
    for name, place in zip(parts, (0, 1), strict=True):
        cases = [*plays.values(), small][:5 - place]  # 400 non-members are too few for 0.1 %
        each = [spearman(found, kept, place).mean() for found in cases]
        assert six.parts[name].covers == f"{5 - place} cases" and six.parts[name].value == pytest.approx(-np.mean(each) - 0.5)
    turned = {name: replace(found, pinball={key: -value for key, value in found.pinball.items()})
              for name, found in plays.items()}
    assert judged(exhibits.judge_attacks(turned, {}, {}))["C6"].verdict == "contradicted"
    alone = judged(exhibits.judge_attacks({"one": large}, {}, {}))["C6"]
    assert alone.verdict == "not run" and alone.parts == dict.fromkeys(parts)


def test_the_lowest_loss_is_judged_case_by_case(large):
    small, wrong = made(seed=8), changed(large, pinball={"gauss_xy": np.zeros((3, 2))})
    found = judged(exhibits.judge_attacks({"one": large, "small": small}, {"table": large}, {}))["C6u"]
    assert list(found.parts) == ["one, at 1 %", "one, at 0.1 %", "small, at 1 %", "small, at 0.1 %"]
    assert found.parts["small, at 0.1 %"] is None
    assert found.parts["one, at 1 %"].value == pytest.approx(exhibits.best_by_loss(large, 0.01).value)
    assert judged(exhibits.judge_attacks({"one": wrong}, {}, {}))["C6u"].verdict == "contradicted"
    assert judged(exhibits.judge_attacks({}, {"table": large}, {}))["C6u"].verdict == "not run"


def test_other_regressions_may_have_fewer_targets(large):
    paper, heads = only(large, FOUR), made(targets=2, records=8000, seed=4)
    paper = replace(paper, fpr={how: {name: rate for name, rate in rates.items() if name in FOUR}
                                for how, rates in paper.fpr.items()})
    given = {"one": paper}, {}, {"one": 5000}, {}
    together = judged(exhibits.judge_attacks(*given, {"one": heads}))
    assert list(together["A2"].parts) == ["one, gauss", "one, pinball"]
    at = study.ALPHAS.index(0.01)
    for claim, play, head in (("C1", heads, "pinball_xy"), ("C1g", paper, "gauss_xy")):
        part = together[claim].parts[f"one, {study.HEADS[head].title}, 1.5 % less FPR"]
        assert part.value == pytest.approx(0.015 - play.fpr["raw"][head][:, at].mean())
    assert len(together["A1"].parts) == 4


def test_one_case_is_not_said_to_have_too_few_non_members(large):
    assert "fewer than two cases" in judged(exhibits.judge_attacks({"one": large}, {}, {}))["C6"].reason


def test_the_label_is_judged_for_both_kinds_of_regression(play):
    found, of_table = (judged(exhibits.judge_attacks(*given, {})) for given in (({"one": play}, {}), ({}, {"one": play})))
    parts = found["A2"].parts
    assert list(parts) == ["one, gauss", "one, pinball"] and of_table["A2t"].parts == parts
    assert found["A2t"].verdict == of_table["A2"].verdict == "not run"
    for kind in ("gauss", "pinball"):
        both, alone = (metrics.auc(play.ranks[f"{kind}_{of}"], play.members).mean() for of in ("xy", "x"))
        assert parts[f"one, {kind}"].value == pytest.approx(both - alone)
    gauss = only(play, [name for name in STRENGTHS if name != "pinball_x"])
    alone = judged(exhibits.judge_attacks({"one": gauss}, {}, {}))["A2"]
    assert list(alone.parts) == ["one, gauss"]
    neither = judged(exhibits.judge_attacks({"one": only(play, ["marginal", "gauss_xy", "lira_8"])}, {}, {}))["A2"]
    assert neither.verdict == "not run" and "on the record alone" in neither.reason


def test_tables_are_judged_against_sixteen_shadow_models(table):
    strong = changed(table, ranks={"gauss_x": table.ranks["gauss_xy"]})
    assert judged(exhibits.judge_attacks({}, {"Adult": strong}, {"Adult": 2000}))["C8"].verdict == "reproduced"
    few = judged(exhibits.judge_attacks({}, {"Adult": table}, {"Adult": 1999}))["C8"]
    assert few.verdict == "not run" and "fewer than 2,000 records to fit" in few.reason
    stronger = made({"marginal": 0.0, "gauss_x": 0.1, "gauss_xy": 2.6, "lira_16": 2.5})
    found = judged(exhibits.judge_attacks({}, {"Adult": stronger}, {"Adult": 2000}))
    assert found["C8"].verdict == "contradicted"  # the form that is given the label finds more, but is not that of tables
    assert found["C5"].verdict == found["C7"].verdict == "not run" and "images" in found["C5"].reason
    assert judged(exhibits.judge_attacks({"one": made()}, {}, {}))["C8"].verdict == "not run"


def test_tuning_counts_where_it_was_run(play):
    dear, cheap = counted(tuning=20.0), counted(tuning=1.0)
    found = [judged(exhibits.judge_attacks({"one": play}, {}, {}, {"one": work}))["C10"] for work in (dear, cheap, counted())]
    assert [one.verdict for one in found] == ["contradicted", "reproduced", "reproduced"]
    parts = {name: part.value for name, part in found[0].parts.items()}
    assert parts == pytest.approx({"one, 8 shadow models to one regression": 8.0,
                                   "one, 8 shadow models to one regression and its tuning": 8 / 21})
    assert list(found[2].parts) == list(parts)[:1]


def test_a_backbone_that_is_not_here_is_not_counted(play):
    nowhere = counted(regression=np.nan, tuning=np.nan)
    ten = judged(exhibits.judge_attacks({"one": play, "two": play}, {}, {}, {"one": nowhere, "two": counted()}))["C10"]
    assert ten.verdict == "reproduced" and [part is None for part in ten.parts.values()] == [True, True, False]
    assert "not installed" in ten.reason
    assert judged(exhibits.judge_attacks({"one": play}, {}, {}))["C10"].verdict == "not run"


@pytest.mark.parametrize("load", range(5))
def test_no_load_of_the_machine_changes_a_verdict(play, table, load):
    rng = np.random.default_rng(load)

    def slowed(found):
        def one(value):
            return value * np.where(rng.random(value.shape) < 0.3, 3.0, 1.0)

        return replace(found, seconds={name: one(value) for name, value in found.seconds.items()},
                       seconds_reference=one(found.seconds_reference))

    def verdicts(change):
        given = {"one": change(play)}, {"Adult": change(table)}, {"one": 5000, "Adult": 4000}, {"one": counted()}
        return [one.record() for one in exhibits.judge_attacks(*given)]

    assert slowed(play).seconds_reference.tolist() != play.seconds_reference.tolist() or load
    assert verdicts(slowed) == verdicts(replace)


def test_too_few_non_members_are_not_judged():
    found = judged(exhibits.judge_attacks({"one": made(records=150)}, {}, {"one": 9000}))
    for claim in ("C1", "C1g", "C5", "C6", "C6u", "C7", "C11", "A1"):
        words = {**dict.fromkeys(("C1", "C1g", "A1"), "fewer than 100 non-members"),
                 "C6": "fewer than two cases"}.get(claim, "too few non-members")
        assert found[claim].verdict == "not run" and words in found[claim].reason, claim
    assert found["A2"].verdict != "not run" and None not in found["A2"].parts.values()  # AUC has no rate to resolve
    plays = {"small": made(records=150), "one": made(targets=4)}
    mixed = judged(exhibits.judge_attacks(plays, {}, dict.fromkeys(plays, 9000)))
    assert mixed["C7"].said == "reproduced for one, at 1 %; small, at 1 %, small, at 0.1 %, one, at 0.1 % not run"
    assert mixed["C1"].parts["small"] is mixed["A1"].parts["small"] is None and len(mixed["C1"].parts) == 3
    unresolved = made()
    unresolved.fpr["calibrated"]["gauss_xy"][:] = np.nan
    parts = judged(exhibits.judge_attacks({"one": unresolved}, {}, {}))["A1"].parts
    assert {name: part is None for name, part in parts.items()} == {
        "one": True, "one, pinball, q(x, y), 1.5 % less FPR": False, "one, pinball, q(x, y), FPR less 1 % / 1.5": False}


def test_wrong_architectures_are_judged_on_average():
    found = crossed(3.0, 0.5, targets=6)
    verdict = judged(exhibits.judge_studies(found, {}))["C9"]
    assert verdict.verdict == "reproduced"
    assert list(verdict.parts) == ["mean over 6 pairs, at 1 %", "mean over 6 pairs, at 0.1 %"]
    hits = {pair: metrics.conformal_tpr_at_fpr(one, found.members, 0.01).mean() for pair, one in found.ranks.items()}
    costs = [hits[target, target] - hits[target, shadow] for target in NETWORKS for shadow in NETWORKS if shadow != target]
    assert verdict.parts["mean over 6 pairs, at 1 %"].value == pytest.approx(np.mean(costs))
    assert verdict.parts["mean over 6 pairs, at 0.1 %"] is None  # 400 non-members
    few = replace(found, members=found.members[:, :150], ranks={pair: one[:, :150] for pair, one in found.ranks.items()})
    assert set(judged(exhibits.judge_studies(few, {}))["C9"].parts.values()) == {None}
    assert judged(exhibits.judge_studies(crossed(0.5, 3.0, targets=6), {}))["C9"].verdict == "contradicted"
    alone = replace(crossed(), architectures=("mlp:64",))
    assert judged(exhibits.judge_studies(alone, {}))["C9"].verdict == "not run"
    assert judged(exhibits.judge_studies(None, {}))["A3"].verdict == "not run"


@pytest.mark.parametrize("gap,honest,verdict", [(0.01, 0.0, "reproduced"), (-0.01, 0.0, "contradicted"),
                                                (0.01, 0.02, "contradicted"), (0.0, 0.0, "inconclusive")])
def test_flattery_is_more_than_what_an_honest_protocol_shows(gap, honest, verdict):
    assert judged(exhibits.judge_studies(None, {"one": flattered(gap, honest)}))["A3"].verdict == verdict


def test_reach_is_judged_where_data_were_given():
    easy, hard = made(records=4000), made(STRENGTHS | {"gauss_xy": 3.0}, records=4000, seed=1)
    assert judged(exhibits.judge_reach({"easy": easy, "hard": hard}))["C12"].verdict == "reproduced"
    assert judged(exhibits.judge_reach({"easy": hard, "hard": easy}))["C12"].verdict == "contradicted"
    alike = judged(exhibits.judge_reach({"fashion_mnist_20k": hard, "fashion_mnist": easy}))["C12"]  # one title, two sets
    assert alike.verdict == "contradicted"
    own = np.array([0.10, 0.11, 0.12])
    for factor, verdict in ((1.05, "reproduced"), (1.3, "contradicted")):
        found = exhibits.judge_reach(transferred={"task": study.Transfer(own=own, borrowed=factor * own)})
        assert judged(found)["C13"].verdict == verdict
        assert judged(found)["C13"].parts["task"].value == pytest.approx((1.1 - factor) * own.mean())
    same = judged(exhibits.judge_reach(transferred={"task": study.Transfer(own=own, borrowed=own.copy())}))["C13"]
    assert (same.verdict, same.reason) == ("not run", "both searches chose the same settings")
    mixed = exhibits.judge_reach(transferred={"task": study.Transfer(own=own, borrowed=own.copy()), "other":
                                                 study.Transfer(own=own, borrowed=1.05 * own)})
    assert judged(mixed)["C13"].said == "reproduced for other; task not run"
    strengths = STRENGTHS | {"lira_6": 2.0}
    between, above = (made(strengths | {"gauss_xy": value, "lira_2": 0.5}, records=12000) for value in (1.3, 4.0))
    assert judged(exhibits.judge_reach(large={"cinic10": between}))["C4"].verdict == "reproduced"
    assert judged(exhibits.judge_reach(large={"cinic10": above}))["C4"].verdict == "contradicted"
    assert judged(exhibits.judge_reach(large={"imagenet": above}))["C3"].verdict == "reproduced"
    assert judged(exhibits.judge_reach(large={"imagenet": between}))["C3"].verdict == "contradicted"
