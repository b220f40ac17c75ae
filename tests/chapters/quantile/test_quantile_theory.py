"""False positive rates of fitted thresholds: loops and brute force, closed forms, and the numbers of the paper's theorems."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from mia_book.chapters.quantile import theory
from mia_lib.errors import MiaError
from mia_lib.metrics import pinball_loss


@pytest.mark.parametrize(("alpha", "quantile"), [(0.1, 5.845), (0.01, 8.979)])
def test_pinball_loss_is_least_at_the_quantile(alpha, quantile):
    scores = stats.norm(2, 3).ppf((np.arange(100_000) + 0.5) / 100_000)
    found = optimize.minimize_scalar(
        lambda q: pinball_loss(np.full(len(scores), q), scores, 1 - alpha), (0, 10), tol=1e-8
    )
    assert found.x == pytest.approx(quantile, abs=5e-3)
    assert found.fun == pytest.approx(3 * stats.norm.pdf(stats.norm.ppf(1 - alpha)), rel=1e-3)


def test_the_world_spreads_with_x():
    x, score = theory.world(200_000, seed=1)
    for low, high in ((-2, -1), (1, 2)):
        inside = (x > low) & (x < high)
        left = (score - 1 - x / 2)[inside] / np.exp(x[inside] / 2)
        assert abs(left.mean()) < 0.03 and abs(left.std() - 1) < 0.02


def test_groups_whose_indicator_may_be_added_have_the_rate_and_others_do_not():
    frame = theory.groups(seed=3, n=2000, fresh=50_000)
    assert len(frame) == 9 and (frame.loc[frame["closed"], "excess"] <= 1e-9).all()
    fresh = frame.set_index(["class", "group"])["fresh"]
    assert abs(fresh["linear + 1[x > 1]", "x > 1"] - 0.05) < 0.02
    assert fresh["constant", "x > 1"] > 0.15 and fresh["constant", "x < -1"] < 0.01
    loss = frame.groupby("class", sort=False)["pinball"].first()
    assert loss["constant"] > loss["linear"] > loss["linear + 1[x > 1]"] - 1e-4


@pytest.mark.parametrize("alpha, other", [(0.05, 0.2), (0.2, 0.05), (0.01, 0.011)])
def test_a_uniform_residual_attains_lemma_3_and_refutes_the_square_alone(alpha, other):
    gap = theory.gap_of_shift(alpha, other)
    assert gap == pytest.approx((alpha - other) ** 2 / 2, rel=1e-7) and gap < (alpha - other) ** 2


@pytest.mark.parametrize(
    "law", [stats.norm(0, 1), stats.norm(0, 0.2), stats.expon(), stats.logistic()]
)
@pytest.mark.parametrize("other", [0.9, 0.2, 0.011])
def test_the_bound_holds_and_the_gap_is_a_difference_of_losses(law, other, alpha=0.05):
    grid = np.linspace(law.ppf(1e-9), law.ppf(1 - 1e-9), 20_001)
    gap, density = theory.gap_of_shift(alpha, other, law), law.pdf(grid).max()
    assert gap >= (alpha - other) ** 2 / (2 * density) * (1 - 1e-6)

    def loss(q):
        low, high = law.ppf(1e-13), law.ppf(1 - 1e-13)
        return (
            alpha * integrate.quad(law.cdf, low, q, limit=200)[0]
            + (1 - alpha) * integrate.quad(lambda u: 1 - law.cdf(u), q, high, limit=200)[0]
        )

    assert loss(law.ppf(1 - other)) - loss(law.ppf(1 - alpha)) == pytest.approx(
        gap, rel=1e-4, abs=1e-9
    )


def test_thresholds_of_few_records_have_the_rate_of_a_beta_law():
    rng, n, alpha = np.random.default_rng(0), 200, 0.05
    order = int(np.ceil((n + 1) * (1 - alpha)))
    # of uniform scores the rate is one less the threshold
    rates = 1 - np.sort(rng.random((4000, n)), 1)[:, order - 1]
    low, high = theory.conformal_law(n, alpha)
    assert np.quantile(rates, [0.025, 0.975]) == pytest.approx([low, high], abs=0.003)
    with pytest.raises(MiaError, match="alpha"):
        theory.conformal_law(50, 0.01)
