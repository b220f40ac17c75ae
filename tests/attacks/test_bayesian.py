"""BASE and BaVarIA against loops over records, their ends RMIA and LiRA, and invariances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, rankdata
from scipy.stats import t as student

from mia_lib import membership
from mia_lib.attacks import _common, baselines, bayes, bayesian
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)
R, N, A = 10, 60, 3
MEMBERS = membership.balanced_halves(N, R)
DIFFICULTY = RNG.normal(size=N)
SIGNAL = RNG.normal(size=N) + DIFFICULTY
REFERENCES = RNG.normal(size=(R, N)) + MEMBERS + DIFFICULTY
VIEWS, REFERENCE_VIEWS = RNG.normal(size=(N, A)), RNG.normal(size=(R, N, A)) + MEMBERS[..., None]
LOSS, REFERENCE_LOSS = RNG.exponential(size=N), RNG.exponential(size=(R, N)) * (2 - MEMBERS)

FORMS = {"online": bayesian.bavaria_online, "offline": bayesian.bavaria_offline}
SETTINGS = [
    {},
    {"predictive": "t"},
    {"predictive": "t", "mean_weight": 0.5, "shape": 1.5},
    {"spread": "within", "mean_weight": 0.0, "shape": 3.0},
    {"mean_weight": 2.0, "shape": 4.0},
]
# Signals here are noise, so that their direction may look wrong.
pytestmark = pytest.mark.filterwarnings("ignore:reference_(loss|signal) is")


def by_loop(
    signal,
    references,
    members,
    online,
    predictive="normal",
    spread="all",
    mean_weight=1.0,
    shape=None,
):
    """The author's equations, a record at a time."""
    shape = shape or {"normal": 1.0, "t": 2.0}[predictive]
    scores = np.empty(len(signal))
    for i in range(len(signal)):
        log = {}
        for kind in (True, False):
            prior = references[members == kind]
            variance, center = prior.var(), prior.mean()
            own = references[members[:, i] == kind, i] if online or not kind else np.empty(0)
            if spread == "within" and (online or not kind):
                of_records = [references[members[:, j] == kind, j] for j in range(len(signal))]
                variance = sum(((one - one.mean()) ** 2).sum() for one in of_records) / sum(
                    len(one) - 1 for one in of_records
                )
            n, mean = len(own), own.mean() if len(own) else center
            scale = variance * (shape - 1) if shape > 1 else variance
            scale += 0.5 * ((own - mean) ** 2).sum()
            scale += (
                0.5 * mean_weight * n * (mean - center) ** 2 / (mean_weight + n)
                if mean_weight
                else 0
            )
            shape_n, weight = shape + n / 2, mean_weight + n
            if predictive == "t":
                where = (mean_weight * center + own.sum()) / weight
                width = np.sqrt(scale * (weight + 1) / (shape_n * weight))
                log[kind] = student.logpdf(signal[i], 2 * shape_n, where, width)
            else:
                log[kind] = norm.logpdf(
                    signal[i], mean, np.sqrt(scale / (shape_n - 1) if shape_n > 1 else scale)
                )
        scores[i] = log[True] - log[False]
    return scores


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("options", SETTINGS)
def test_bavaria_is_what_a_loop_over_records_gives_in_whatever_unit(form, options):
    expected = by_loop(SIGNAL, REFERENCES, MEMBERS, form == "online", **options)
    assert_allclose(FORMS[form](SIGNAL, REFERENCES, MEMBERS, **options), expected)
    moved = FORMS[form](3 + 7 * SIGNAL, 3 + 7 * REFERENCES, MEMBERS, **options)
    assert_allclose(moved, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_views_are_independent_and_blocks_do_not_matter(form, monkeypatch):
    of_views = sum(FORMS[form](VIEWS[:, a], REFERENCE_VIEWS[..., a], MEMBERS) for a in range(A))
    assert_allclose(FORMS[form](VIEWS, REFERENCE_VIEWS, MEMBERS), of_views)
    monkeypatch.setattr(_common, "CELLS", 7 * R)
    assert_allclose(FORMS[form](VIEWS, REFERENCE_VIEWS, MEMBERS), of_views)


def test_bavaria_is_lira_with_one_variance_if_the_prior_is_certain_and_with_each_records_own_if_there_is_none():
    certain = bayesian.bavaria_online(
        SIGNAL, REFERENCES, MEMBERS, spread="within", mean_weight=0, shape=1e12
    )
    assert_allclose(certain, baselines.lira_online(SIGNAL, REFERENCES, MEMBERS, True), rtol=1e-6)
    free = bayesian.bavaria_online(SIGNAL, REFERENCES, MEMBERS, mean_weight=0, shape=1 + 1e-12)
    groups = [(MEMBERS, 1), (~MEMBERS, -1)]
    expected = sum(
        sign * norm.logpdf(SIGNAL, REFERENCES.mean(0, where=kept), REFERENCES.std(0, where=kept))
        for kept, sign in groups
    )
    assert_allclose(free, expected, rtol=1e-6)
    many = membership.balanced_halves(N, 4000)
    references = RNG.normal(size=many.shape) * (1 + DIFFICULTY**2) + many
    unbiased = baselines.lira_online(SIGNAL, references, many)
    assert_allclose(bayesian.bavaria_online(SIGNAL, references, many), unbiased, atol=0.05)


def test_base_is_what_a_loop_gives_and_the_logarithm_of_rmias_ratio():
    for factor in (None, 0.0, 0.4, 1.0):
        expected = []
        for i in range(N):
            kept = REFERENCE_LOSS[:, i] if factor is None else REFERENCE_LOSS[~MEMBERS[:, i], i]
            expected.append(
                -LOSS[i] - (1 if factor is None else factor) * np.log(np.exp(-kept).mean())
            )
        assert_allclose(bayesian.base(LOSS, REFERENCE_LOSS, MEMBERS, factor), expected)
    # enough records that hardly two ratios are tied
    population = RNG.exponential(size=(R + 1, 5000))
    rmia = baselines.rmia(
        np.exp(-LOSS),
        np.exp(-REFERENCE_LOSS),
        MEMBERS,
        np.exp(-population[0]),
        np.exp(-population[1:]),
    )
    in_order = rmia[np.argsort(bayesian.base(LOSS, REFERENCE_LOSS, MEMBERS))]
    assert (np.diff(in_order) >= 0).all() and len(np.unique(rmia)) > N / 2


def test_base_offline_runs_from_the_loss_to_the_soft_minimum():
    assert_array_equal(bayesian.base(LOSS, REFERENCE_LOSS, MEMBERS, 0), bayes.malt(LOSS))
    softmin = bayes.mast(LOSS, REFERENCE_LOSS, MEMBERS, "softmin")
    assert_allclose(bayesian.base(LOSS, REFERENCE_LOSS, MEMBERS, 1), softmin, atol=1e-12)
    assert_array_equal(
        rankdata(bayesian.base(LOSS, REFERENCE_LOSS, MEMBERS, 1).round(9)),
        rankdata(softmin.round(9)),
    )
    huge = 2000 * REFERENCE_LOSS  # of which exp alone would be zero
    assert np.isfinite(bayesian.base(LOSS, huge, MEMBERS)).all()


def test_references_that_agree_leave_scores_finite():
    alike = np.zeros((R, N)) + MEMBERS
    for form in FORMS.values():
        for options in SETTINGS:
            assert np.isfinite(form(SIGNAL, alike, MEMBERS, **options)).all()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: bayesian.base(LOSS, REFERENCE_LOSS, MEMBERS, 1.5), "factor = 1.5"),
        (
            lambda: bayesian.base(LOSS, REFERENCE_LOSS, np.zeros_like(MEMBERS)),
            "60 of 60 records have no reference that was",
        ),
        (
            lambda: bayesian.base(LOSS, REFERENCE_LOSS, np.ones_like(MEMBERS), 0.3),
            "60 of 60 records have no reference that le",
        ),
        (
            lambda: bayesian.bavaria_online(SIGNAL, REFERENCES, MEMBERS, "gamma"),
            "Did you mean|normal",
        ),
        (lambda: bayesian.bavaria_online(SIGNAL, REFERENCES, MEMBERS, spread="own"), "spread"),
        (lambda: bayesian.bavaria_online(SIGNAL, REFERENCES, MEMBERS, shape=0.5), "shape = 0.5"),
        (
            lambda: bayesian.bavaria_online(SIGNAL, REFERENCES, MEMBERS, mean_weight=-1),
            "mean_weight = -1",
        ),
        (
            lambda: bayesian.bavaria_online(SIGNAL, REFERENCES, MEMBERS, "t", mean_weight=0),
            "mean_weight = 0",
        ),
        (
            lambda: bayesian.bavaria_offline(SIGNAL, REFERENCES, np.zeros_like(MEMBERS)),
            "no reference was trained on any",
        ),
    ],
)
def test_what_cannot_be_scored_is_refused(call, words):
    with pytest.raises(MiaError, match=words):
        call()
