"""Likelihood ratios of curvature against loops, the released code's formulas and the sheet's toy."""

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from mia_lib import metrics
from mia_lib.attacks import baselines, curvature
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)
R, N, A = 12, 50, 3
MEMBERS = RNG.random((R, N)) < 0.5
# uneven numbers, two of each kind at least
MEMBERS[:4] = np.array([True, True, False, False])[:, None]
VIEWS, REFERENCES = RNG.normal(size=(N, A)), RNG.normal(size=(R, N, A)) - MEMBERS[..., None]
DATA = VIEWS, REFERENCES, MEMBERS
ONE_VIEW = VIEWS[:, 0], REFERENCES[..., 0], MEMBERS

# Every score, by name.
SCORES = {
    f"{score.__name__} {variant}{' tied' * tied}": partial(score, variant=variant, tied=tied)
    for score in (curvature.nll, curvature.likelihood_ratio)
    for variant, tied in (("paper", False), ("paper", True), ("released_code", False))
}
every_score = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
both_views = pytest.mark.parametrize("data", (DATA, ONE_VIEW), ids=("views", "one view"))


# Against loops


def loop(name, signal, references, members, i):
    """The score of record i, written as the sheet has it."""
    inside, out = (references[members[:, i] == kind, i] for kind in (True, False))
    c = np.atleast_1d(signal[i])
    m_in, m_out = inside.mean(0), out.mean(0)
    unbiased_in, unbiased_out = inside.var(0, ddof=1), out.var(0, ddof=1)
    pooled = (((inside - m_in) ** 2).sum(0) + ((out - m_out) ** 2).sum(0)) / (
        len(inside) + len(out) - 2
    )
    var_in, var_out = inside.var(0), out.var(0)
    free = np.sum(
        norm.logpdf(c, m_in, np.sqrt(unbiased_in)) - norm.logpdf(c, m_out, np.sqrt(unbiased_out))
    )
    tied = np.sum(norm.logpdf(c, m_in, np.sqrt(pooled)) - norm.logpdf(c, m_out, np.sqrt(pooled)))
    released_nll = np.sum(((c - m_out) ** 2 - (c - m_in) ** 2) / (2 * var_in**2))
    p_in, p_out = norm.pdf(c, m_in, var_in), norm.pdf(c, m_out, var_out)
    released_lr = p_in.sum() / (p_out.sum() + 1e-22)
    return {
        "nll paper": free,
        "nll paper tied": tied,
        "nll released_code": released_nll,
        "likelihood_ratio paper": np.exp(free),
        "likelihood_ratio paper tied": np.exp(tied),
        "likelihood_ratio released_code": released_lr,
    }[name]


@both_views
@pytest.mark.parametrize("name", SCORES)
def test_every_score_is_what_a_loop_over_records_finds(name, data):
    assert_allclose(
        SCORES[name](*data), [loop(name, *data, i) for i in range(N)], rtol=1e-8, atol=1e-9
    )


def test_log_curvature_by_hand():
    assert_allclose(
        curvature.log_curvature([0.0, 1.0, -np.e]), [-50.6568720458690, 0, 1], atol=1e-12
    )
    assert curvature.log_curvature(0.0).shape == ()
    assert curvature.log_curvature([[0, 1]], floor=1).tolist() == [[0, np.log(2)]]
    low = curvature.log_curvature(np.zeros(2, np.float32))
    assert low.dtype == np.float32 and np.isfinite(low).all()
    assert np.isfinite(curvature.log_curvature(np.zeros(2, np.float16))).all()


def test_the_ratio_ties_records_where_exp_over_or_underflows():
    signal, references, members = 40 * ONE_VIEW[0], *ONE_VIEW[1:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log, ratio = (
            f(signal, references, members) for f in (curvature.nll, curvature.likelihood_ratio)
        )
    over, under = log > 710, log < -746
    assert over.sum() > 1 and under.sum() > 1 and len(np.unique(log)) == N
    assert np.isinf(ratio[over]).all() and (ratio[under] == 0).all()
    between = ~over & ~under
    assert_array_equal(np.argsort(ratio[between]), np.argsort(log[between]))
    target = log > np.median(log[over])  # members are told from non-members only inside the tie
    assert metrics.auc(log, target) == 1 > metrics.auc(ratio, target)


@every_score
def test_single_precision_gives_the_same_scores_to_its_rounding(score):
    low = score(VIEWS.astype(np.float32), REFERENCES.astype(np.float32), MEMBERS)
    assert_allclose(low, score(*DATA), rtol=1e-4, atol=1e-4)


# Signals without spread


@every_score
@pytest.mark.parametrize(
    "kind, value", ((np.float32, 0.1), (np.float64, -50.6568720458690), (np.float64, 1e12))
)
def test_scores_are_finite_where_no_reference_differs_from_another(score, value, kind):
    same = np.full((R, N), value, kind)
    assert len(np.unique(score(same[0], same, MEMBERS))) == 1
    assert np.isfinite(score(same[0] + VIEWS[:, 0].astype(kind), same, MEMBERS)).all()


def test_a_record_without_spread_gets_that_of_all_records():
    signal, references, members = (a.copy() for a in ONE_VIEW)
    # every model that was trained on it has a curvature of exactly zero
    references[members[:, 0], 0] = np.log(1e-22)
    inside = [references[members[:, i], i] for i in range(N)]
    squares = sum(((x - x.mean()) ** 2).sum() for x in inside[1:])  # those of record 0 are rounding
    variance = squares / sum(len(x) - 1 for x in inside)
    population = squares / sum(len(x) for x in inside)
    c, mean_in, out = signal[0], np.log(1e-22), references[~members[:, 0], 0]
    for name, expected in (
        (
            "nll paper",
            norm.logpdf(c, mean_in, np.sqrt(variance))
            - norm.logpdf(c, out.mean(), out.std(ddof=1)),
        ),
        ("nll released_code", ((c - out.mean()) ** 2 - (c - mean_in) ** 2) / (2 * population**2)),
        (
            "likelihood_ratio released_code",
            norm.pdf(c, mean_in, population) / (norm.pdf(c, out.mean(), out.var()) + 1e-22),
        ),
    ):
        assert_allclose(SCORES[name](signal, references, members)[0], expected, rtol=1e-9)
    for data in ((signal, references, members), DATA):  # nll is LiRA of the same signal
        assert_allclose(curvature.nll(*data), baselines.lira_online(*data), rtol=1e-12, atol=1e-12)


few_values = st.sampled_from((0.0, 1.0, -50.65687, 1e-80, 1e-170, 1 / 3, 1e30))


@given(
    signal=arrays(np.float64, (4, 2), elements=few_values),
    references=arrays(np.float64, (4, 4, 2), elements=few_values),
)
def test_no_score_is_ever_nan(signal, references):
    assume(not (references == signal).all((1, 2)).any())  # the target among them is refused
    members = np.array([True, True, False, False])[:, None].repeat(4, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, score in SCORES.items():
            assert not np.isnan(score(signal, references, members)).any(), name


@pytest.mark.parametrize(
    "name", [name for name in SCORES if name != "likelihood_ratio released_code"]
)
def test_signals_that_cannot_be_squared_are_refused(name):
    with pytest.raises(MiaError, match="log_curvature"):
        SCORES[name](1e200 * VIEWS, 1e200 * REFERENCES, MEMBERS)


# Records with too few references of a kind


def with_few_references():
    members = MEMBERS.copy()
    members[:, :2] = True  # nothing left out
    members[:, 2] = np.arange(R) != 0  # one left out
    members[:, 3:5] = np.arange(R)[:, None] == 0  # one trained on it
    return VIEWS, REFERENCES, members


@every_score
def test_records_with_too_few_references_are_refused_or_nan_and_the_others_scored_as_without_them(
    score,
):
    signal, references, members = with_few_references()
    with pytest.raises(
        MiaError,
        match="5 of 50 records cannot .* 2 have at most one reference that was trained on it and 3 "
        "have at most one reference that left it out",
    ):
        score(signal, references, members)
    with pytest.warns(UserWarning, match="5 of 50 records .* NaN") as caught:
        scores = score(signal, references, members, lacking="drop")
    assert len(caught) == 1 and caught[0].filename == __file__
    assert np.isnan(scores[:5]).all()
    assert_array_equal(scores[5:], score(signal[5:], references[:, 5:], members[:, 5:]))


# The Gaussian toy of the fact sheet


def toy(records=20_000, references=64, gap=1.0, spread=0.6, between_views=0.3, seed=0):
    """One target and references, where each record has a spread under models trained on it and another under the others."""
    rng = np.random.default_rng(seed)
    members = rng.random((references + 1, records)) < 0.5
    inside, out = np.exp(spread * rng.normal(size=(2, records)))
    signal = rng.normal(size=members.shape) * np.where(members, inside, out) - gap * members
    views = signal[..., None] + between_views * rng.normal(size=(*members.shape, 2))
    return views[0], members[0], views[1:], members[1:]


def test_the_toy_gives_the_values_of_the_sheet():
    signal, target, references, members = toy()
    for name, auc, tpr in (
        ("nll paper", 80.6, 9.9),
        ("nll paper tied", 75.6, 1.2),
        ("likelihood_ratio released_code", 78.4, 7.3),
        ("nll released_code", 74.2, 0.0),
    ):
        score = SCORES[name](signal, references, members)
        assert 100 * metrics.auc(score, target) == pytest.approx(auc, abs=1.2)
        assert 100 * metrics.tpr_at_fpr(score, target, 1e-3) == pytest.approx(
            tpr, abs=2.0 if tpr > 2 else 0.6
        )


# What it needs, and errors


@pytest.mark.parametrize(
    "call,words",
    [
        (
            lambda: curvature.nll(*DATA, variant="released_code", tied=True),
            "tied = True .* 'paper' alone",
        ),
        (
            lambda: curvature.nll(*DATA, variant="released"),
            "variant = 'released' .* Did you mean 'released_code'",
        ),
        (
            lambda: curvature.likelihood_ratio(*DATA, variant="printed"),
            "Allowed: paper, released_code",
        ),
        (lambda: curvature.nll(*DATA, lacking="ignore"), "lacking = 'ignore' .* refuse, drop"),
        (lambda: curvature.log_curvature([1.0], floor=0.0), "floor = 0.0 is out of range"),
    ],
)
def test_bad_input_says_what_is_wrong(call, words):
    with pytest.raises(MiaError, match=words):
        call()
