"""The quantile chapter: how records are dealt, scores and thresholds against plain loops, the reading of its frame."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from mia_book.chapters.quantile import exhibits, measure, study
from mia_book.chapters.quantile.study import (
    CALIBRATED,
    CHOSEN,
    DIFFERENCE,
    HARDEST,
    LIRA,
    MARGINAL,
    ONE,
    POSITION,
    XY,
    X,
)
from mia_lib import membership, metrics, signals
from mia_lib.errors import MiaError
from mia_lib.published import Bank

POOL, FRESH, HELD, JUDGED = 1200, 600, 200, 400


def toy_case(gap, spread=1.0, count=24, targets=8, seed=0, name="toy"):
    """Log odds of members lie `gap` higher, on records of their own difficulty; the regression knows half of it, and gives
    `spread` times the right spread of what is left."""
    rng = np.random.default_rng(seed)
    members = np.zeros((count, POOL + FRESH), bool)
    members[:, :POOL] = membership.balanced_halves(POOL, count, seed)
    kind, own = rng.normal(size=(2, POOL + FRESH))
    margin = kind + own + gap * members + 0.5 * rng.normal(size=members.shape)
    parts = [measure.split(members[t], POOL, t, JUDGED, HELD) for t in range(0, 2 * targets, 2)]
    rows = np.stack([np.r_[part.judged, part.holdout] for part in parts])
    told = {"mean": kind[rows], "log_spread": np.full(rows.shape, np.log(spread * np.sqrt(1.25)))}
    blind = {"mean": np.zeros(rows.shape), "log_spread": np.full(rows.shape, np.log(1.5))}
    return study.Case(
        name,
        "images",
        Bank("toy", {}, {"margin": margin, "members": members}, []),
        targets,
        POOL,
        {XY: Bank("toy", {}, told, []), X: Bank("toy", {}, blind, [])},
        None,
        JUDGED,
        HELD,
    )


CASE = toy_case(1.0, count=24)
FRAME, SCORES, MEMBERS = study.attacks(CASE, [2, 8, 20], 20)
FRAME = pd.concat([FRAME, study.by_rate(FRAME)], ignore_index=True)
BEHIND = study.thresholds(CASE, [8, 20], 20)


def of(frame, attack, metric, **where):
    """An estimate, of attacks by the paper's score and of thresholds at 1 %, where nothing else is said."""
    for column, usual in (("score", POSITION), ("rate", "1 %")):
        if column in frame and column not in where:
            frame = frame[(frame[column] == usual) | frame[column].isna()]
    return metrics.estimate(frame, attack, metric, **where)


def test_records_are_dealt_as_the_paper_deals_them():
    members = membership.balanced_halves(1000, 2, 0)
    whole = np.hstack([members, np.zeros((2, 300), bool)])
    part = measure.split(whole[0], 1000, 0, 10_000, 100)
    assert (part.judged[part.is_member] == np.flatnonzero(members[0])).all()  # its members
    assert (
        part.judged[~part.is_member] == np.arange(1000, 1300)
    ).all()  # the records after the pool
    assert len(part.holdout) == 100 and not members[0][np.r_[part.holdout, part.fitted]].any()
    # the other half, once each
    assert sorted(np.r_[part.holdout, part.fitted]) == list(np.flatnonzero(~members[0]))
    assert (measure.split(whole[0], 1000, 0, 50, 100).judged[:50] == part.judged[:50]).all()
    with pytest.raises(MiaError, match="held"):
        measure.split(whole[0], 1000, 0, 50, 490)


def test_counting_references_says_nothing_and_what_is_kept_is_near():
    """A record counts as trained on in one of each pair of models, of the pool and after it."""
    assert (CASE.dealt[0::2] ^ CASE.dealt[1::2]).all()
    assert (CASE.dealt[:, :POOL] == CASE.bank.members[:, :POOL]).all()
    others = CASE.game.references_of(4, 20)
    assert (CASE.dealt[others].sum(0) == 10).all() and not {4, 5} & {*others}
    values = np.random.default_rng(0).normal(0, 5, 1000)
    assert np.abs(measure.coarse(values) - values).max() <= 0.5 / measure.GRAIN + 1e-9


def test_scores_are_those_of_a_plain_loop():
    loss = signals.loss_of
    for t, target in enumerate(CASE.targets):
        part = CASE.split(target)
        assert (MEMBERS[t] == part.is_member).all()
        for i in range(0, len(part.judged), 97):
            record, fitted = part.judged[i], CASE.regressions[XY]
            own, mean = CASE.margin[target, record], fitted.mean[t, i]
            wanted = (own - mean) / np.exp(fitted.log_spread[t, i])
            assert SCORES[XY, 1, POSITION][t, i] == pytest.approx(wanted, rel=1e-6)
            assert SCORES[XY, 1, DIFFERENCE][t, i] == pytest.approx(own - mean)
            assert SCORES[XY, 1, CALIBRATED][t, i] == pytest.approx(loss(mean) - loss(own))
            hard = mean < np.quantile(fitted.mean[t, -HELD:], 0.25)
            assert (SCORES[XY, 1, HARDEST][t, i] > -1e5) == hard
            out = [m for m in CASE.game.references_of(target, 8) if not CASE.dealt[m, record]]
            wanted = loss(CASE.margin[out, record]).mean() - loss(own)
            assert SCORES[LIRA, 8, CALIBRATED][t, i] == pytest.approx(wanted)
    own, other = (CASE.margin[model, CASE.split(0).judged] for model in (0, 1))
    assert SCORES[ONE, 1, POSITION][0] == pytest.approx(own - other)  # a difference of two scores
    first = SCORES[MARGINAL, 0, POSITION][0]
    assert (np.diff(first[np.argsort(own, kind="stable")]) >= 0).all()  # in the order of the scores
    for t, target in enumerate(CASE.targets):
        for which, side in (("members", MEMBERS[t]), ("others", ~MEMBERS[t])):
            found = of(FRAME[FRAME["study"] == "model"], "model", which).values[t]
            assert found == pytest.approx(
                (CASE.margin[target, CASE.split(target).judged[side]] > 0).mean()
            )


def test_references_differ_between_targets():
    assert len({tuple(CASE.game.references_of(target, 2)) for target in CASE.targets}) == 8


def test_one_reference_is_ahead_of_the_regression_and_many_of_one_but_not_where_nothing_leaks():
    auc = {
        key: of(FRAME, key[0], "auc", n=key[1]).value
        for key in ((MARGINAL, 0), (X, 1), (XY, 1), (ONE, 1), (LIRA, 20))
    }
    assert auc[MARGINAL, 0] < auc[XY, 1] < auc[ONE, 1] < auc[LIRA, 20]
    assert auc[X, 1] == pytest.approx(auc[MARGINAL, 0], abs=1e-3)  # it knows nothing here
    frame = study.attacks(toy_case(0.0, count=16), [2, 8], 20)[0]
    auc = frame[(frame["metric"] == "auc") & frame["score"].isin(study.SCORES)]
    assert (abs(auc["value"] - 0.5) < 0.05).all(), auc


def test_a_score_is_chosen_on_another_target():
    """Of two targets each is scored in the way that is best against the other."""
    members = np.tile(np.arange(400) < 200, (2, 1))
    good, bad = np.where(members, 1.0, -1.0), np.where(members, -1.0, 1.0)
    scores = {"one": np.stack([good[0], bad[1]]), "two": np.stack([bad[0], good[1]])}
    assert (study.chosen(scores, members, 0.01) == np.stack([bad[0], bad[1]])).all()
    assert of(FRAME, XY, "tpr_at_fpr=0.01", score=CHOSEN).value > 0


def test_a_constant_prediction_makes_one_threshold_of_every_score():
    blind = {score: SCORES[X, 1, score] for score in study.SCORES}
    for score in blind.values():
        assert metrics.auc(score, MEMBERS) == pytest.approx(
            metrics.auc(SCORES[MARGINAL, 0, POSITION], MEMBERS)
        )


def test_loss_and_rate_of_a_threshold_by_hand():
    part, level = CASE.split(6), ndtri(0.99)
    fitted = CASE.regressions[XY]
    bar = fitted.mean[3] + level * np.exp(fitted.log_spread[3])
    score = np.r_[CASE.margin[6, part.judged], CASE.margin[6, part.holdout]]
    fresh = ~part.is_member
    pairs = zip(bar[:-HELD][fresh], score[:-HELD][fresh], strict=True)
    loss = np.mean([max(0.01 * (q - s), 0.99 * (s - q)) for q, s in pairs])
    found = of(BEHIND, XY, "pinball", protocol="as fitted").values[3]
    assert found == pytest.approx(loss, rel=1e-6)
    rate = (score[:-HELD][fresh] >= bar[:-HELD][fresh]).mean()
    assert of(BEHIND, XY, "fpr", protocol="as fitted").values[3] == pytest.approx(rate)
    shift = np.quantile(score[-HELD:] - bar[-HELD:], 0.99)
    rate = (score[:-HELD][fresh] >= bar[:-HELD][fresh] + shift).mean()
    assert of(BEHIND, XY, "fpr", protocol="moved").values[3] == pytest.approx(rate)


def test_moving_thresholds_mends_a_wrong_spread():
    wrong = study.thresholds(toy_case(1.0, spread=0.5, count=24), [], 20)
    rates = [of(wrong, XY, "fpr", protocol=protocol).value for protocol in ("as fitted", "moved")]
    losses = [
        of(wrong, XY, "pinball", protocol=protocol).value for protocol in ("as fitted", "moved")
    ]
    assert rates[0] > 0.05 and rates[1] < 0.03 and losses[1] < losses[0]
    right = of(BEHIND, XY, "fpr", protocol="as fitted")
    assert 0.004 < right.value < 0.02 and right.interval().low < right.value < right.interval().high


def test_the_lower_loss_goes_with_more_members_or_not():
    rows = []
    where = {"data": "toy", "kind": "images"}
    for attack, n, loss, tpr in (
        (XY, 1, 0.5, 0.03),
        (LIRA, 4, 0.7, 0.02),
        (LIRA, 8, 0.4, 0.02),
        (LIRA, 16, 0.6, 0.05),
    ):
        rates = {"tpr_at_fpr=0.01": np.full(8, tpr), "tpr_at_fpr=0.001": np.full(8, np.nan)}
        rows.append(
            metrics.by_repetition({attack: rates}, study="attacks", n=n, score=POSITION, **where)
        )
        for rate in study.RATE_NAMES:
            values = {attack: {"pinball": np.full(8, loss)}}
            rows.append(
                metrics.by_repetition(
                    values, study="pinball", n=n, protocol="moved", rate=rate, **where
                )
            )
    frame = pd.concat(rows, ignore_index=True)
    found = study.pairs(frame, [4, 8, 16, 32])
    # with the first alone
    assert metrics.estimate(found, "pairs", "agreement").value == pytest.approx(1 / 3)
    assert list(found["rate"]) == ["1 %"]  # of the other rate nothing is resolved
    assert study.pairs(frame.query("attack != @XY"), [4]).empty


def test_quarters_share_one_threshold():
    frame = study.quarters(CASE, SCORES, MEMBERS)
    known = frame[frame["study"] == "difficulty"].set_index("attack")["value"]
    frame = frame[frame["study"] == "quarters"]
    assert set(frame["quarter"]) == {1, 2, 3, 4}
    rates = frame.pivot_table("value", "quarter", ["sorted", "attack", "score", "metric"])
    called = rates.xs("fpr", axis=1, level="metric")
    assert called.mean().to_numpy() == pytest.approx(0.01, abs=0.002)
    own = called["prediction", XY]
    assert (own[POSITION] < 0.02).all() and own[CALIBRATED].loc[1] > 0.02  # hard ones
    # the regression knows half of the difficulty: what is easier than it predicts is called by mistake
    assert called["references", XY, POSITION].loc[1] < 0.005
    assert called["references", XY, POSITION].loc[4] > 0.02
    assert (called["references", LIRA, POSITION] < 0.02).all()
    assert known[XY] < 0.75 < 0.9 < known[LIRA]


def test_difficulty_is_told_by_references_that_no_attack_has():
    target, few = CASE.targets[3], 8
    records, others = CASE.split(target).judged, CASE.game.references_of(target)
    assert not {*others[few:]} & {*CASE.game.references_of(target, few), target, target + 1}
    out = [m for m in others[few:] if not CASE.dealt[m, records[5]]]
    by_hand = np.mean([CASE.margin[m, records[5]] for m in out])
    assert study.difficulty(CASE, target, few)[5] == pytest.approx(by_hand)
    assert study.difficulty(CASE, target, len(others)).shape == (len(records),)  # none is left


def test_references_of_another_architecture():
    other = toy_case(1.0, count=24, seed=0, name="another")
    other.bank.arrays["margin"] = CASE.margin + np.random.default_rng(9).normal(
        0, 2, CASE.margin.shape
    )
    frame = study.mismatched("small", CASE, other, [8], 20)
    for score in (POSITION, CALIBRATED):
        own, wrong = (
            of(frame, LIRA, "auc", references=which, score=score).value
            for which in ("own", "other")
        )
        assert own == pytest.approx(of(FRAME, LIRA, "auc", n=8, score=score).value) and wrong < own
    with pytest.raises(MiaError, match="other halves"):
        study.mismatched("small", CASE, toy_case(1.0, count=24, seed=3), [8], 20)


def test_costs_by_hand_and_theorems(monkeypatch):
    frame = study.costs(CASE, {"epochs": 4}, {"epochs": 10})
    fitted = POOL // 2 - HELD
    assert of(frame, XY, "passes").value == pytest.approx(2 * fitted * 10 / 1e6)
    assert of(frame, XY, "references").value == pytest.approx(2 * fitted * 10 / (POOL // 2 * 4))
    groups = study.theory.groups
    monkeypatch.setattr(study.theory, "groups", lambda seed: groups(seed, n=1000, fresh=1000))
    frame = study.theorems(seed=2).set_index("attack")["value"]
    assert (frame.loc[["Theorem 1", "Theorem 2"]] <= 1e-9).all() and frame["Lemma 3"] <= 1e-12


def test_too_many_targets_and_no_fitting_references_are_refused_and_a_regression_not_published_is_left_out():
    with pytest.raises(MiaError, match="targets = 5"):
        study.image_case("cifar10", 8, 5, 100, 50, {}, {})
    with pytest.raises(
        MiaError,
        match=f"Give one from 2 to {len(CASE.bank) - 2}, the models but the target and its partner",
    ):
        study.attacks(CASE, [])
    assert study.where_measured("quantile/cifar10-small", 32, judged=77) is None
    case = study.image_case("cifar10", 4, 2, 10_000, 2500, {}, {})
    assert {XY, X} <= set(case.regressions) and len(case.bank) == 4
    again = study.image_case("cifar10", 4, 2, 10_000, 2500, {}, {"seed": 0}, again=True)
    assert again.data == "CIFAR-10, second bank" and XY in again.regressions
    assert study.image_case("cifar10", 4, 2, 10_000, 2500, {}, {"seed": 77}, again=True) is None


def test_precisions_of_the_paper_are_rates():
    assert exhibits.tpr_of(np.array([50.0, 80.0]), 0.01) == pytest.approx([0.01, 0.04])
    rows = exhibits.printed("table1").set_index(["data", "attack", "n", "rate"])["value"]
    assert rows["ResNet-9", XY, 1, "1 %"] == pytest.approx(1.699, abs=1e-3)
    assert rows["ImageNet", LIRA, 8, "0.1 %"] == pytest.approx(7.77, abs=0.01)
    # of six targets the loss at 0.1 % is that of the one threshold
    assert exhibits.printed_pairs() == {"1 %": (32, 32, 0), "0.1 %": (4, 8, 24)}
    table = exhibits.table_2(FRAME.assign(data="Adult"), ["Adult"])
    assert table.shape == (9, 1) and float(table.loc[("OpenML 361057 (paper)", "1 %")].iloc[0]) > 5
    assert list(exhibits.searched("table4", {"epochs": 10})["this run"])[-1] == "10"


def test_tables_stand_beside_the_papers():
    frame = pd.concat([FRAME, BEHIND], ignore_index=True).assign(data="CIFAR-10")
    table = exhibits.table_1(frame, ["CIFAR-10"], [2, 8])
    assert str(table.loc[("CIFAR-10", XY, 1), "TPR at 1 %, paper"]) == "1.70"
    assert str(table.loc[("CIFAR-10", XY, 1), "TPR at 0.1 %"]) == "below resolution"
    losses = exhibits.pinball_table(frame, ["CIFAR-10"], [8], ["ResNet-50"])
    assert losses.loc[("1 %", "CIFAR-10, ResNet-50 (paper)"), "LiRA, 8"].text == "0.1933 / 4.88"
    assert float(losses.loc[("1 %", "CIFAR-10"), "q(x, y)"]) > 0
    assert len(exhibits.pinball_table(frame, [], [2], ["ResNet-10", "ResNet-34"])) == 8
    by_score = exhibits.scores_table(frame, ["CIFAR-10"], 8, "1 %", [*study.SCORES, HARDEST])
    assert by_score.shape == (4, 3) and by_score.loc[("CIFAR-10", HARDEST), "8 references"] == "–"
    assert len(exhibits.rates_table(BEHIND)) == 5 and len(exhibits.table_3(frame)) > 0
    frame = frame.assign(data="toy")
    told = exhibits.numbers(frame, "toy", "", "toy", 8)
    assert told[0][0]["large-xy-tpr"] == "an unknown share", "no ResNet-9 was attacked"
    named = {name: value for values, _ in told for name, value in values.items()}
    assert named["xy-tpr"].value == of(FRAME, XY, "tpr_at_fpr=0.01", n=1).value
    assert named["table-xy-tpr"] == named["xy-tpr"]
    assert named["chosen-of"] == 8 and "passes" not in named  # of a study that was not run
