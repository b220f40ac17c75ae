"""Attacks with reference models against loops, invariances and limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import norm

from mia_lib import membership, metrics
from mia_lib.attacks import _common, baselines, bayes, calibration
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)
R, N, A, Z = 10, 60, 3, 50
MEMBERS = membership.balanced_halves(N, R)
SIGNAL = RNG.normal(size=N)
REFERENCES = RNG.normal(size=(R, N)) + MEMBERS
VIEWS, REFERENCE_VIEWS = RNG.normal(size=(N, A)), RNG.normal(size=(R, N, A)) + MEMBERS[..., None]
PROBABILITY, REFERENCE_PROBABILITY = RNG.random(N), RNG.random((R, N))
POPULATION, REFERENCE_POPULATION = RNG.random(Z), RNG.random((R, Z))

# Signals here are noise of either sign, and levels of any size.
pytestmark = pytest.mark.filterwarnings(
    "ignore:reference_(loss|signal|probability) is", "ignore:level ="
)

LIRA = {"online": baselines.lira_online, "offline": baselines.lira_offline}
# name -> score [N] from a signal that is lower for members, and the references' [R, N] with their membership
ATTACKS = {
    **{f"mast {e}": lambda s, r, m, e=e: bayes.mast(s, r, m, e) for e in bayes.ESTIMATORS},
    **{
        f"lira {kind}, fixed_variance={fixed}": lambda s, r, m, f=f, fixed=fixed: f(
            -s, -r, m, fixed
        )
        for kind, f in LIRA.items()
        for fixed in (False, True)
    },
    "attack_r": baselines.attack_r,
    "attack_r level": lambda s, r, m: baselines.attack_r(s, r, m, 0.3),
    **{
        f"rmia a={a}": lambda s, r, m, a=a: baselines.rmia(
            expit(-s), expit(-r), m, POPULATION, REFERENCE_POPULATION[:1].repeat(len(r), 0), 1.0, a
        )
        for a in (None, 0.3)
    },
}
every_attack = pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
both_variances = pytest.mark.parametrize("fixed_variance", (False, True))


# What holds for every attack


@every_attack
@pytest.mark.parametrize("cells,threads", ((1, 1), (7 * R, 3)))
def test_scores_do_not_depend_on_the_size_of_the_blocks(monkeypatch, attack, cells, threads):
    expected = attack(SIGNAL, REFERENCES, MEMBERS)
    monkeypatch.setattr(_common, "CELLS", cells)
    monkeypatch.setattr(_common, "THREADS", threads)
    assert_allclose(attack(SIGNAL, REFERENCES, MEMBERS), expected, rtol=1e-12, atol=1e-12)


@every_attack
def test_single_precision_gives_the_same_scores_to_its_rounding(attack):
    low = attack(SIGNAL.astype(np.float32), REFERENCES.astype(np.float32), MEMBERS)
    assert_allclose(low, attack(SIGNAL, REFERENCES, MEMBERS), rtol=1e-4, atol=1e-4)


def game(gap, records=4000, references=16, seed=1):
    """Losses of one target, of references and who is in, where members lie `gap` lower and records differ in difficulty."""
    rng = np.random.default_rng(seed)
    members = membership.balanced_halves(records, 2 + references, seed)
    loss = rng.gumbel(size=(2 + references, records)) + 2 * rng.normal(size=records) - gap * members
    return loss[0], members[0], loss[2:], members[2:]


@every_attack
def test_every_attack_works_where_members_have_a_lower_loss_and_none_where_membership_changes_nothing(
    attack,
):
    signal, target, references, members = game(0.0)
    assert metrics.auc(attack(signal, references, members), target) == pytest.approx(0.5, abs=0.03)
    signal, target, references, members = game(3.0)
    without_references = metrics.auc(bayes.malt(signal), target)
    assert (
        0.7 < without_references < metrics.auc(attack(signal, references, members), target) - 0.02
    )


# Likelihood-ratio attack


def loop_gaussians(references, members, fixed_variance, kind):
    """For each record and view the Gaussian of references of a kind, as scipy's frozen distribution."""
    kept = [references[members[:, i] == kind, i] for i in range(references.shape[1])]
    if fixed_variance:
        degrees = sum(len(k) - 1 for k in kept)
        pooled = sum(((k - k.mean(0)) ** 2).sum(0) for k in kept) / degrees
        return [norm(k.mean(0), np.sqrt(pooled)) for k in kept]
    return [norm(k.mean(0), k.std(0, ddof=1)) for k in kept]


@both_variances
@pytest.mark.parametrize(
    "signal,references", ((SIGNAL, REFERENCES), (VIEWS, REFERENCE_VIEWS)), ids=("one view", "views")
)
def test_lira_is_what_a_loop_over_records_finds(signal, references, fixed_variance):
    members = RNG.random((R, N)) < 0.5
    # uneven numbers, two of each kind at least
    members[:4] = np.array([True, True, False, False])[:, None]
    inside, out = (
        loop_gaussians(references, members, fixed_variance, kind) for kind in (True, False)
    )
    online = [
        np.sum(i.logpdf(s) - o.logpdf(s)) for s, i, o in zip(signal, inside, out, strict=True)
    ]
    offline = [np.sum(o.logcdf(s)) for s, o in zip(signal, out, strict=True)]
    assert_allclose(
        baselines.lira_online(signal, references, members, fixed_variance), online, atol=1e-9
    )
    assert_allclose(
        baselines.lira_offline(signal, references, members, fixed_variance), offline, rtol=1e-9
    )
    kept = [references[~members[:, i], i] for i in range(N)]
    of_all = np.concatenate(kept).std()
    released = [
        -np.mean(norm.logpdf(s, np.median(k, 0), (of_all if fixed_variance else k.std(0)) + 1e-30))
        for s, k in zip(signal, kept, strict=True)
    ]
    assert_allclose(
        baselines.lira_offline(
            signal, references, members, fixed_variance, variant="released_code"
        ),
        released,
    )


numbers = arrays(np.float64, N, elements=st.floats(-5, 5))


@given(shift=numbers, log_scale=numbers)
def test_lira_is_unchanged_by_an_affine_map_of_each_records_signal(shift, log_scale):
    scale = np.exp(log_scale)
    for attack in LIRA.values():
        assert_allclose(
            attack(shift + scale * SIGNAL, shift + scale * REFERENCES, MEMBERS),
            attack(SIGNAL, REFERENCES, MEMBERS),
            rtol=1e-6,
            atol=1e-6,
        )
    assert_allclose(
        baselines.lira_online(shift - scale * SIGNAL, shift - scale * REFERENCES, MEMBERS),
        baselines.lira_online(SIGNAL, REFERENCES, MEMBERS),
        rtol=1e-6,
        atol=1e-6,
    )


def test_lira_reaches_the_optimal_attack_with_many_references():
    records, references, gap = 4000, 400, 1.0
    members = membership.balanced_halves(records, references + 2)
    signal = np.random.default_rng(2).normal(size=members.shape) + gap * members
    for attack in LIRA.values():  # offline is optimal too: members can only lie higher
        score = attack(signal[0], signal[2:], members[2:], fixed_variance=True)
        assert metrics.auc(score, members[0]) == pytest.approx(norm.cdf(gap / np.sqrt(2)), abs=0.02)


def test_lira_offline_is_exact_where_the_probability_itself_is_zero():
    members = np.zeros((2, 5), bool)
    references = np.array([-1.0, 1.0])[:, None].repeat(5, 1) / np.sqrt(2)  # mean 0, variance 1
    signal = np.array([-1000.0, -40.0, 0.0, 8.3, 37.0])
    score = baselines.lira_offline(signal, references, members)
    assert_allclose(score[:4], norm.logcdf(signal[:4]), rtol=1e-12)
    assert (np.diff(score) > 0).all() and score[-1] < 0
    assert_allclose(score[-1], -norm.sf(37.0), rtol=1e-6)
    assert_allclose(score[0], -0.5e6 - np.log(1000 * np.sqrt(2 * np.pi)), rtol=1e-9)


@pytest.mark.parametrize("kind", (np.float32, np.float64))
def test_a_record_without_variance_gets_the_fixed_one(kind):
    references = REFERENCES.astype(kind)
    references[:, 0] = kind(0.1)
    references[~MEMBERS[:, 1], 1] = (
        kind(1 / 3) + np.spacing(kind(1 / 3)) * np.arange((~MEMBERS[:, 1]).sum()) // 3
    )
    inside, out = (
        loop_gaussians(references.astype(np.float64), MEMBERS, False, k) for k in (True, False)
    )
    rough = {True: [0], False: [0, 1]}
    for gaussians, k in ((inside, True), (out, False)):
        kept = [references[MEMBERS[:, i] == k, i].astype(np.float64) for i in range(N)]
        degrees = sum(len(x) - 1 for x in kept)
        pooled = (
            sum(((x - x.mean()) ** 2).sum() for i, x in enumerate(kept) if i not in rough[k])
            / degrees
        )
        for i in rough[k]:
            gaussians[i] = norm(kept[i].mean(), np.sqrt(pooled))
    expected = [i.logpdf(s) - o.logpdf(s) for s, i, o in zip(SIGNAL, inside, out, strict=True)]
    assert_allclose(
        baselines.lira_online(SIGNAL, references, MEMBERS), expected, rtol=1e-6, atol=1e-6
    )


@both_variances
@pytest.mark.parametrize("attack", LIRA.values(), ids=LIRA)
@pytest.mark.parametrize("value", (0.0, 1e12))
def test_lira_is_finite_where_no_reference_differs_from_another(attack, value, fixed_variance):
    same = np.full((R, N), value)
    score = attack(same[0], same, MEMBERS, fixed_variance)
    assert_allclose(score, 0.0 if attack is baselines.lira_online else np.log(0.5))
    assert np.isfinite(attack(same[0] + SIGNAL, same, MEMBERS, fixed_variance)).all()


# Attack R


def test_attack_r_is_the_share_of_out_references_with_a_greater_loss_and_no_equal_one():
    expected = [
        np.mean([REFERENCES[r, i] > SIGNAL[i] for r in range(R) if not MEMBERS[r, i]])
        for i in range(N)
    ]
    assert_allclose(baselines.attack_r(SIGNAL, REFERENCES, MEMBERS), expected)
    assert (
        baselines.attack_r([1.0], np.array([[1.0], [0.5], [2.0], [3.0]]), np.zeros((4, 1), bool))
        == 0.5
    )


@pytest.mark.parametrize("level", (0.0, 1e-4, 0.3, 0.5, 1.0))
def test_attack_r_at_one_level_is_the_margin_to_that_quantile(level):
    members = RNG.random((R, N)) < 0.5
    members[0] = False  # uneven numbers, one at least
    members[1:, 0] = True
    expected = [np.quantile(REFERENCES[~members[:, i], i], level) for i in range(N)] - SIGNAL
    assert_allclose(baselines.attack_r(SIGNAL, REFERENCES, members, level), expected, atol=1e-12)


# Difficulty calibration


def test_calibration_leaves_references_that_were_trained_on_a_record_aside():
    references = np.array([[0.0, 5.0], [1.0, 7.0], [9.0, 3.0]])
    members = np.array([[0, 0], [0, 1], [1, 0]], bool)
    assert_allclose(calibration.calibrate([1.0, 5.0], references, members), [0.5, 1.0])
    assert_allclose(
        calibration.calibrate(SIGNAL, REFERENCES, MEMBERS),
        bayes.mast(-SIGNAL, -REFERENCES, MEMBERS, "mean_out"),
        atol=1e-12,
    )
    # a copy that forgot nothing
    assert (calibration.calibrate(SIGNAL, SIGNAL[None], own="keep") == 0).all()
    with pytest.raises(
        MiaError, match="1 of 2 records have no reference that left it out; calibration needs 1"
    ):
        calibration.calibrate([1.0, 5.0], references, members | [True, False])


@pytest.mark.parametrize(
    "difficulty,noise,references", ((1.0, 0.3, 1), (1.0, 0.3, 5), (0.3, 1.0, 1), (0.3, 1.0, 10))
)
def test_calibration_helps_as_much_as_the_gaussian_model_says(difficulty, noise, references):
    rng, n, gain = np.random.default_rng(3), 40_000, 0.5
    members, hard = rng.random(n) < 0.5, difficulty * rng.normal(size=n)
    score = -hard + gain * members + noise * rng.normal(size=n)
    calibrated = calibration.calibrate(score, -hard + noise * rng.normal(size=(references, n)))
    before = norm.cdf(gain / np.sqrt(2 * (difficulty**2 + noise**2)))
    after = norm.cdf(gain / np.sqrt(2 * noise**2 * (1 + 1 / references)))
    assert metrics.auc(score, members) == pytest.approx(before, abs=0.01)
    assert metrics.auc(calibrated, members) == pytest.approx(after, abs=0.01)
    assert (after > before) == (difficulty**2 > noise**2 / references)


# Modified entropy


def loop_modified_entropy(p, y):
    others = [q * np.log(1 - q) for i, q in enumerate(p) if i != y]
    return (1 - p[y]) * np.log(p[y]) + sum(others)


def test_modified_entropy_is_what_a_loop_over_classes_finds():
    p, labels = RNG.dirichlet(np.ones(5), N), RNG.integers(0, 5, N)
    expected = [loop_modified_entropy(*pair) for pair in zip(p, labels, strict=True)]
    assert_allclose(baselines.modified_entropy(p, labels), expected)
    assert_allclose(baselines.modified_entropy(p.astype(np.float32), labels), expected, rtol=1e-4)


@pytest.mark.parametrize("kind", (np.float32, np.float64))
def test_modified_entropy_tells_certain_and_right_from_certain_and_wrong(kind):
    p = np.array([[1, 0, 0], [0.9, 0.1, 0], [0.1, 0.9, 0], [0, 1, 0]], kind)
    score = baselines.modified_entropy(p, np.zeros(4, int))
    assert score[0] == 0 and (np.diff(score) < 0).all() and np.isfinite(score).all()
    # told apart by what is left for the other class
    rounded = np.array([[1, 1e-12], [1, 1e-10], [1, 1e-8]], kind)
    assert (np.diff(baselines.modified_entropy(rounded, np.zeros(3, int))) < 0).all()


# RMIA

RMIA = PROBABILITY, REFERENCE_PROBABILITY, MEMBERS, POPULATION, REFERENCE_POPULATION


def loop_rmia(gamma, a):
    def ratio_z(j):
        mean = REFERENCE_POPULATION[:, j].mean()
        return POPULATION[j] / (mean if a is None else ((1 + a) * mean + 1 - a) / 2)

    def ratio(i):
        inside, out = (
            REFERENCE_PROBABILITY[MEMBERS[:, i] == kind, i].mean() for kind in (True, False)
        )
        return PROBABILITY[i] / ((inside + out) / 2 if a is None else ((a * out + 1 - a) + out) / 2)

    return [np.mean([ratio(i) / ratio_z(j) >= gamma for j in range(Z)]) for i in range(N)]


@pytest.mark.parametrize("gamma", (1.0, 1.3, 2.0))
@pytest.mark.parametrize("a", (None, 0.0, 0.3, 1.0))
def test_rmia_is_what_a_loop_over_records_and_population_finds(gamma, a):
    assert_allclose(baselines.rmia(*RMIA, gamma, a), loop_rmia(gamma, a))


def test_rmia_offline_tells_tiny_means_apart():
    """With a = 1 the typical probability is the mean over references, however small."""
    p, typical = np.array([1e-30, 1e-20, 1e-30]), np.array([1e-17, 1e-19, 1e-31])
    score = baselines.rmia(
        p, typical[None], np.zeros((1, 3), bool), p, typical[None], gamma=1.0, a=1.0
    )
    assert score.argsort().tolist() == [0, 1, 2]  # ratios 1e-13, .1, 10


def test_rmia_without_a_population_is_refused():
    reference_members = np.array([[True, False], [False, True]])
    with pytest.raises(MiaError, match="population_probability has no record"):
        baselines.rmia(
            [0.5, 0.4], np.full((2, 2), 0.3), reference_members, np.empty(0), np.empty((2, 0))
        )


def test_rmia_is_finite_where_every_probability_is_zero():
    nothing = np.zeros((R, N)), MEMBERS, POPULATION, REFERENCE_POPULATION
    assert (baselines.rmia(np.zeros(N), *nothing) == np.mean(POPULATION == 0)).all()
    assert (baselines.rmia(np.full(N, 0.5), *nothing) == 1).all()


# Blocks and errors


def members_with_few_references(of_members):
    """Members where two records have no reference of a kind and three more have a single one."""
    members = MEMBERS.copy()
    members[:, :2] = not of_members
    members[:, 2:5] = np.arange(R)[:, None] == 0 if of_members else np.arange(R)[:, None] != 0
    return members


OUTSIDE, INSIDE = members_with_few_references(False), members_with_few_references(True)


@pytest.mark.parametrize(
    "call,words",
    [
        (
            lambda: baselines.lira_online(SIGNAL, REFERENCES, OUTSIDE),
            "5 of 60 .* at most one reference that left it out",
        ),
        (
            lambda: baselines.lira_online(SIGNAL, REFERENCES, INSIDE),
            "5 of 60 .* at most one reference that was trained on it",
        ),
        (
            lambda: baselines.lira_online(SIGNAL, REFERENCES, OUTSIDE, True),
            "2 of 60 records have no reference that left it out",
        ),
        (
            lambda: baselines.lira_offline(SIGNAL, REFERENCES, MEMBERS, variant="released"),
            "variant = 'released'",
        ),
        (lambda: baselines.lira_online(VIEWS, REFERENCES, MEMBERS), r"\[N, A\] and \[R, N, A\]"),
        (lambda: baselines.attack_r(VIEWS, REFERENCE_VIEWS, MEMBERS), r"\[N\] and \[R, N\] with"),
        (lambda: baselines.attack_r(SIGNAL, REFERENCES, MEMBERS, 2.0), "level = 2.0"),
        (lambda: calibration.calibrate(SIGNAL, REFERENCES[:0]), "R >= 1"),
        (
            lambda: baselines.modified_entropy(REFERENCE_PROBABILITY[:, :1], np.zeros(R, int)),
            "of 1 classes: .* two classes",
        ),
        (
            lambda: baselines.modified_entropy([[0.9, 0.9], [0.1, 0.2]], [0, 1]),
            "sums of rows from 0.3 to 1.8",
        ),
        (
            lambda: baselines.shadow_models(
                [[0.5, 0.5]], [0], [[[2.0, -3.0]] * 30] * 2, [0] * 30, [[True, False] * 15] * 2
            ),
            "shadow_probabilities run from -3 to 2",
        ),
        (lambda: baselines.rmia(SIGNAL, *RMIA[1:]), "probability = .* out of range"),
        (lambda: baselines.rmia(*RMIA[:3], POPULATION, REFERENCE_POPULATION[:, 1:]), "are needed"),
        (lambda: baselines.rmia(*RMIA, gamma=0.5), "gamma = 0.5"),
        (lambda: baselines.rmia(*RMIA, a=1.5), "a = 1.5"),
        (lambda: baselines.rmia(*RMIA[:2], INSIDE, *RMIA[3:]), "RMIA, online, needs 1"),
        (lambda: baselines.rmia(*RMIA[:2], OUTSIDE, *RMIA[3:], a=0.3), "RMIA, offline, needs 1"),
    ],
)
def test_bad_input_says_what_is_wrong(call, words):
    with pytest.raises(MiaError, match=words):
        call()
