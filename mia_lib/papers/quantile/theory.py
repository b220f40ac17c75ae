"""How often a threshold function is exceeded: the lemmas and theorems of Bertran et al. (2023), each with a trial.

A record with the score s(x, y) is called a member where ``s >= q(x)``, and q is fitted to scores of non-members by the
pinball loss (Eq. 1). Its minimum is a quantile (Lemma 2), falls short of it quadratically (Lemma 3), and so holds the
false positive rate overall (Theorem 1) and in each group whose indicator the class of functions has (Theorem 2).

alpha is the nominal false positive rate and ``level = 1 - alpha`` that of the quantile, both in (0, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy import integrate, optimize, stats

from mia_lib.errors import MiaError, check_range, choose
from mia_lib.metrics import pinball_loss

# ------------------------------------------------------------------------------------------- the pinball loss (Lemma 2)


def gaussian_pinball(threshold, level, mean=0.0, spread=1.0) -> float | np.ndarray:
    """Expected pinball loss of a threshold for scores ``N(mean, spread^2)``, by Definition 3.

    ``E max{alpha (q - s), (1 - alpha) (s - q)} = (q - mu) (Phi(z) - (1 - alpha)) + sigma phi(z)`` with
    ``z = (q - mu) / sigma``. At the quantile of the level itself, where it is least, ``sigma phi(Phi^-1(level))`` is left.

    Args:
        threshold, level, mean, spread: numbers or arrays that broadcast; spread above 0.

    Raises:
        MiaError: a level outside (0, 1), or a spread not above 0.
    """
    level, spread = _levels(level), np.asarray(spread, float)
    if not (spread > 0).all():
        raise MiaError(f"spread = {spread.min():.4g}: standard deviations must be above 0.")
    distance = np.asarray(threshold, float) - mean
    z = distance / spread
    loss = distance * (stats.norm.cdf(z) - level) + spread * stats.norm.pdf(z)
    return loss if np.ndim(loss) else float(loss)


# ------------------------------------------------------------------------------- what a wrong level costs (Lemma 3)


@dataclass(frozen=True)
class Residual:
    """The law of ``s - q(x)``, up to where its zero lies.

    Attributes:
        cdf, ppf: distribution function and its inverse.
        density: rho, the largest density.
    """

    cdf: Callable
    ppf: Callable
    density: float


RESIDUALS: Mapping[str, Residual] = MappingProxyType({
    "uniform": Residual(stats.uniform.cdf, stats.uniform.ppf, 1.0),
    "Gaussian": Residual(stats.norm.cdf, stats.norm.ppf, 1 / np.sqrt(2 * np.pi)),
    "exponential": Residual(stats.expon.cdf, stats.expon.ppf, 1.0)})


def lemma_three(alpha: float, alpha_prime: float, residual: str | Residual = "uniform") -> dict:
    """What shifting a threshold from the rate alpha' to alpha saves in pinball loss, and what Lemma 3 promises.

    With F the distribution function of the residual, the loss falls by ``int_a^b (1 - alpha - F(u)) du`` from
    ``a = F^-1(1 - alpha')`` to ``b = F^-1(1 - alpha)``. F climbs no faster than rho, so the area is at least that of a
    triangle, ``(alpha - alpha')^2 / (2 rho)``. A uniform residual, where the triangle is all there is, has half of the square,
    so no bound can do without rho. (Symbols of the paper's formula are lost in the text that we have.)

    Args:
        alpha: the rate that the threshold should have. alpha_prime: the one that it has.
        residual: a name in `RESIDUALS`, or a law of its own.

    Returns:
        A dictionary of numbers: "shift" (b - a), "gap", the "bound" and the "square" (alpha - alpha')^2.

    Raises:
        MiaError: an unknown residual, or a rate outside (0, 1).
    """
    law = residual if isinstance(residual, Residual) else RESIDUALS[choose("residual", residual, RESIDUALS)]
    level, start = 1 - float(_levels(alpha, "alpha")), 1 - float(_levels(alpha_prime, "alpha_prime"))
    a, b = float(law.ppf(start)), float(law.ppf(level))
    gap, _ = integrate.quad(lambda u: level - law.cdf(u), a, b, epsabs=1e-13, epsrel=1e-11)
    square = (alpha - alpha_prime) ** 2
    return {"shift": b - a, "gap": gap, "bound": float(square / (2 * law.density)), "square": square}


# --------------------------------------------------------------------- a world with spreads of its own (Theorems 1 and 2)


@dataclass(frozen=True)
class HeteroscedasticWorld:
    """Scores ``s = intercept + slope x + e^(growth x) eps`` of non-members, with x and eps standard normal.

    Scores of members are higher by ``shift e^(growth x)``: by as many standard deviations at every x.
    """

    intercept: float = 1.0
    slope: float = 0.5
    growth: float = 0.5
    shift: float = 2.0

    def mean(self, x) -> np.ndarray:
        """Of a non-member's score at x."""
        return self.intercept + self.slope * np.asarray(x, float)

    def spread(self, x) -> np.ndarray:
        """Standard deviation of a score at x."""
        return np.exp(self.growth * np.asarray(x, float))

    def quantile(self, x, level) -> np.ndarray:
        """Of a non-member's score at x: the oracle's threshold."""
        return self.mean(x) + self.spread(x) * stats.norm.ppf(_levels(level))

    def sample(self, n: int, seed: int = 0, members: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Records of non-members, or of members.

        Returns:
            x [n] and score [n].

        Raises:
            MiaError: n below 1.
        """
        check_range("n (records)", n, 1)
        x, noise = np.random.default_rng(seed).standard_normal((2, n))
        return x, self.mean(x) + self.spread(x) * (noise + self.shift * members)

    def rate(self, threshold: Callable[[np.ndarray], np.ndarray], members: bool = False) -> float:
        """``Pr[s >= q(x)]`` of non-members, the false positive rate of q, or of members, its true positive rate.

        An integral over x, exact to ten digits where the threshold is smooth.
        """
        x, weight = _normal_grid()
        return float(weight @ stats.norm.sf((threshold(x) - self.mean(x)) / self.spread(x) - self.shift * members))

    def marginal(self, level: float) -> float:
        """The quantile of all non-members' scores: the one threshold that has the rate 1 - level."""
        level = float(_levels(level))
        ends = self.quantile(np.array([-9.0, 9.0]), level)
        return float(optimize.brentq(lambda tau: self.rate(lambda x: np.full_like(x, tau)) - (1 - level),
                                     ends.min() - 10, ends.max() + 10, xtol=1e-12))


def power(world: HeteroscedasticWorld, alphas: Sequence[float]) -> dict[str, np.ndarray]:
    """True positive rates of the best single threshold and of the oracle's conditional one.

    At each x members lie `shift` standard deviations higher, so the oracle finds ``Phi(shift - Phi^-1(1 - alpha))`` of them.
    What the single threshold loses grows as alpha falls: at last only the x of the widest scores reach it.

    Returns:
        "alphas", "marginal", "oracle", each [A].

    Raises:
        MiaError: a rate outside (0, 1).
    """
    alphas = np.atleast_1d(_levels(alphas, "alpha"))
    found = []
    for alpha in alphas:
        tau = world.marginal(1 - alpha)
        found.append(world.rate(lambda x, tau=tau: np.full_like(x, tau), members=True))
    return {"alphas": alphas, "marginal": np.array(found), "oracle": stats.norm.sf(stats.norm.isf(alphas) - world.shift)}


# --------------------------------------------------------------------------------------------- linear quantile regression


def quantile_regression(features, score, level: float) -> np.ndarray:
    """Coefficients of the linear function of least mean pinball loss (Eq. 1 for a linear class), exact.

    A linear programme. Its dual, ``max s . d`` subject to ``X^T d = (1 - level) X^T 1`` and ``0 <= d <= 1``, has one variable
    a record and one equation a coefficient, and the coefficients are the multipliers of these equations. d is 1 for records
    above the fitted threshold and 0 for those below, so the equations say what Theorem 2 says.

    Args:
        features: X, [N, p], a column of ones included if there is to be a constant. score: [N].

    Returns:
        [p].

    Raises:
        MiaError: shapes that do not fit, values that are not finite, no more records than columns, columns that depend on
            each other, or a level outside (0, 1).
    """
    x, s, level = np.asarray(features, float), np.asarray(score, float), float(_levels(level))
    if x.ndim != 2 or s.shape != x.shape[:1] or len(x) <= x.shape[1] or not x.shape[1]:
        raise MiaError(f"features of shape {x.shape} and score of shape {s.shape} must be [N, p] and [N], N above p.")
    if not (np.isfinite(x).all() and np.isfinite(s).all()):
        raise MiaError("features and score must be finite. Leave out the records that are not.")
    if np.linalg.matrix_rank(x) < x.shape[1]:
        raise MiaError(f"the {x.shape[1]} columns of features depend on each other, so that no coefficients are the best. "
                       "Leave out those that others make up.")
    solved = optimize.linprog(-s, A_eq=x.T, b_eq=(1 - level) * x.sum(0), bounds=(0, 1), method="highs-ds",
                              options={"presolve": False})  # which takes seconds where there is one column
    if not solved.success:
        raise MiaError(f"quantile regression of {len(x)} records at level {level} was not solved: {solved.message}")
    return -solved.eqlin.marginals


def optimality(features, score, coefficients, alpha: float, groups) -> dict[str, np.ndarray]:
    """False positive rates of a linear quantile regression on the sample that it was fitted to, with their exact bound.

    The fit passes through p records, if no more happen to lie on one plane, and the others are above or below. If the
    indicator of a group is a linear combination of columns, moving the group's threshold must not help: of its n_g records
    at most ``alpha n_g`` lie above it, and at least as many above or on it. So ``|FPR_g - alpha| <= p / n_g``, however ties
    are counted: Theorem 2 for a sample.

    Args:
        features: [N, p]. score: [N]. coefficients: [p], of `quantile_regression` at level 1 - alpha.
        groups: bool [G, N].

    Returns:
        Arrays [G]: "above", the share of records above the threshold, and "at_or_above"; "count", n_g; "bound", p / n_g;
        "closed", whether the group's indicator is in the class; "excess", by how much the worse of both shares misses alpha
        beyond the bound, at least 0, nan where not closed.

    Raises:
        MiaError: shapes that do not fit, an empty group, or a rate outside (0, 1).
    """
    x, s, alpha = np.asarray(features, float), np.asarray(score, float), float(_levels(alpha, "alpha"))
    groups, coefficients = np.atleast_2d(np.asarray(groups, bool)), np.asarray(coefficients, float)
    if x.ndim != 2 or s.shape != x.shape[:1] or coefficients.shape != x.shape[1:] or groups.shape[1:] != s.shape:
        raise MiaError(f"features {x.shape}, score {s.shape}, coefficients {coefficients.shape} and groups {groups.shape} "
                       "must be [N, p], [N], [p] and [G, N].")
    count = groups.sum(1)
    if not count.all():
        raise MiaError(f"group {int(np.argmin(count))} has no records: leave it out.")
    above, on = _sides(s - x @ coefficients, s)
    strict, loose = groups @ above.astype(float) / count, groups @ (above | on).astype(float) / count
    combined = x @ np.linalg.lstsq(x, groups.T.astype(float), rcond=None)[0]
    closed = np.abs(combined - groups.T).max(0) < 1e-8
    missed = np.maximum(np.abs(strict - alpha), np.abs(loose - alpha)) - x.shape[1] / count
    # alpha itself is a rounded number: what is below the share of a millionth of a record is rounding
    excess = np.where(closed, np.where(missed * count < 1e-6, 0.0, missed), np.nan)
    return {"above": strict, "at_or_above": loose, "count": count, "bound": x.shape[1] / count, "closed": closed,
            "excess": excess}


CLASSES = ("constant", "linear", "linear + 1[x > 1]", "oracle")
GROUPS = ("all", "x > 1", "x ≤ 1", "x < -1")


def group_world(n: int = 20_000, test: int = 180_000, alpha: float = 0.05, seed: int = 0,
                world: HeteroscedasticWorld | None = None) -> dict[str, np.ndarray]:
    """Theorem 2 where scores spread more at some x: classes of threshold functions, and the false positives of each group.

    Args:
        n: records to fit. test: fresh ones, of non-members and as many of members.

    Returns:
        Arrays with a row for each of the C `CLASSES`, those [C, G] with a column for each of `GROUPS`: "parameters" [C] (0 for
        the oracle, which is not fitted), "fit" and "test" [C, G], false positive rates of both samples, "closed" [C, G],
        whether the class has the group's indicator, "bound" and "excess" [C, G] of `optimality` (nan for the oracle),
        "pinball" [C, 2] on both samples, and "tpr" [C]. "counts" [2, G] has the records of each group in both.

    Raises:
        MiaError: a sample too small to have each group, or a rate outside (0, 1).
    """
    world, level = world or HeteroscedasticWorld(), 1 - float(_levels(alpha, "alpha"))
    check_range("n (records to fit)", n, 100)
    check_range("test", test, 100)
    seeds = np.random.SeedSequence(seed).generate_state(3)
    samples = [world.sample(n, seeds[0]), world.sample(test, seeds[1])]
    found_x, found_score = world.sample(test, seeds[2], members=True)
    groups = [_groups(x) for x, _ in samples]
    fitted: dict[str, list] = {key: [] for key in ("parameters", "fit", "test", "closed", "bound", "excess", "pinball", "tpr")}
    for name in CLASSES:
        if name == "oracle":
            thresholds = [world.quantile(x, level) for x in (samples[0][0], samples[1][0], found_x)]
            parameters, empty = 0, np.full(len(GROUPS), np.nan)
            told = {"closed": np.ones(len(GROUPS), bool), "bound": empty, "excess": empty}
        else:
            columns = [_columns(name, x) for x in (samples[0][0], samples[1][0], found_x)]
            coefficients = quantile_regression(columns[0], samples[0][1], level)
            thresholds = [column @ coefficients for column in columns]
            parameters = len(coefficients)
            told = optimality(columns[0], samples[0][1], coefficients, alpha, groups[0])
        rates = []
        for (_, score), threshold, group in zip(samples, thresholds, groups, strict=False):
            above, on = _sides(score - threshold, score)
            rates.append(group @ (above | on).astype(float) / group.sum(1))
        one = {"parameters": parameters, "fit": rates[0], "test": rates[1],
               "pinball": [pinball_loss(t, s, level) for (_, s), t in zip(samples, thresholds, strict=False)],
               "tpr": np.mean(found_score >= thresholds[2]), **{key: told[key] for key in ("closed", "bound", "excess")}}
        for key, value in one.items():
            fitted[key].append(value)
    return {**{key: np.array(value) for key, value in fitted.items()}, "counts": np.array([g.sum(1) for g in groups])}


def _columns(name: str, x: np.ndarray) -> np.ndarray:
    columns = [np.ones_like(x), x, (x > 1).astype(float)]
    return np.column_stack(columns[:1 + CLASSES.index(name)])


def _groups(x: np.ndarray) -> np.ndarray:
    groups = np.stack([np.full(len(x), True), x > 1, x <= 1, x < -1])
    if not groups.any(1).all():
        raise MiaError(f"none of {len(x)} records has {GROUPS[int(np.argmin(groups.any(1)))]}: draw more.")
    return groups


# ------------------------------------------------------------------------ where the theorem's condition fails (collapse)


def collapse(noises: Sequence[float] = (1.0, 0.1, 0.01, 0.0), n: int = 2000, test: int = 20_000, alpha: float = 0.05,
             seed: int = 0) -> dict[str, np.ndarray]:
    """A class that knows the score: pinball loss 0 and a false positive rate of 1, though the score is continuous.

    The label says whether x > 0 and the model's logits are (0, x), so the hinge score is ``|x|``, and ``a + b |x|`` has it.
    Theorem 1 needs ``s - q(x)`` without atoms, not s. With any noise in s that q does not see, the rate is alpha again,
    however small the pinball loss.

    Args:
        noises: standard deviations of what is added to the score. n, test: records to fit and fresh ones.

    Returns:
        Arrays, one entry a noise: "noise"; "pinball", on fresh records, and "expected", ``noise phi(Phi^-1(1 - alpha))``;
        "at_or_above", the false positive rate with ``s >= q(x)``, and "above", with ``s > q(x)``.

    Raises:
        MiaError: a negative noise, too few records, or a rate outside (0, 1).
    """
    level = 1 - float(_levels(alpha, "alpha"))
    check_range("n (records to fit)", n, 100)
    check_range("test", test, 1)
    rng, rows = np.random.default_rng(seed), []
    for noise in noises:
        check_range("noise", noise, 0.0)
        (x, score), (fresh, theirs) = [(x, np.abs(x) + noise * rng.standard_normal(len(x)))
                                       for x in (rng.standard_normal(n), rng.standard_normal(test))]
        fit = quantile_regression(np.column_stack([np.ones(n), np.abs(x)]), score, level)
        threshold = fit[0] + fit[1] * np.abs(fresh)
        above, on = _sides(theirs - threshold, theirs)
        rows.append((noise, pinball_loss(threshold, theirs, level), noise * stats.norm.pdf(stats.norm.ppf(level)),
                     np.mean(above | on), np.mean(above)))
    return dict(zip(("noise", "pinball", "expected", "at_or_above", "above"), np.array(rows, float).T, strict=True))


# ----------------------------------------------------------------------------------------- what a finite sample gives


def conformal_law(n: int, alpha: float, evaluation: int | None = None, confidence: float = 0.95) -> dict[str, float]:
    """The false positive rate of a threshold taken from n scores, over draws of these.

    The threshold is the k-th smallest score, ``k = ceil((n + 1) (1 - alpha))``. For continuous scores its false positive rate
    is ``Beta(n + 1 - k, k)``, whatever their law: ``(n + 1 - k) / (n + 1) <= alpha`` on average, with a spread of about
    ``sqrt(alpha (1 - alpha) / n)``. Counted on further records it is beta-binomial, and spreads more.

    Args:
        n: calibration scores, at least ``1 / alpha - 1``. evaluation: records on which the rate is counted; None for the rate
            itself. confidence: of the interval.

    Returns:
        A dictionary of numbers: "order" (k), "mean", "sd", and "low" and "high", the ends of the central interval.

    Raises:
        MiaError: too few scores to resolve alpha, or numbers out of range.
    """
    alpha = float(_levels(alpha, "alpha"))
    check_range("n (calibration scores)", n, 1)
    order = max(1, int(np.ceil((n + 1) * (1 - alpha) - 1e-9)))  # which rounding may have raised
    if order > n:
        raise MiaError(f"alpha = {alpha} is finer than n = {n} scores resolve: the smallest is 1 / (n + 1) = "
                       f"{1 / (n + 1):.3g}.")
    ends = (1 + np.array([-1, 1]) * float(_levels(confidence, "confidence"))) / 2
    if evaluation is None:
        law, scale = stats.beta(n + 1 - order, order), 1
    else:
        law, scale = stats.betabinom(check_range("evaluation", evaluation, 1), n + 1 - order, order), evaluation
    low, high = law.ppf(ends) / scale
    return {"order": order, "mean": float(law.mean() / scale), "sd": float(law.std() / scale), "low": float(low),
            "high": float(high)}


def true_positive_rate(precision, fpr) -> float | np.ndarray:
    """``FPR Prec / (1 - Prec)``: what a precision says, by Definition 2 with TPR in the numerator (the paper prints FPR).

    Raises:
        MiaError: a precision outside [0, 1), or a rate outside [0, 1].
    """
    precision, fpr = np.asarray(precision, float), np.asarray(fpr, float)
    if not ((precision >= 0) & (precision < 1)).all() or not ((fpr >= 0) & (fpr <= 1)).all():
        raise MiaError(f"precision = {precision} must be from 0 to below 1, and fpr = {fpr} from 0 to 1, both as fractions.")
    rate = fpr * precision / (1 - precision)
    return rate if np.ndim(rate) else float(rate)


# ------------------------------------------------------------------------------------------------------------ helpers


def _levels(values, name: str = "level") -> np.ndarray:
    values = np.asarray(values, float)
    if not ((values > 0) & (values < 1)).all():
        raise MiaError(f"{name} = {values} must lie strictly between 0 and 1.")
    return values


def _sides(residual: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which records lie above a threshold, and which on it up to rounding."""
    near = 1e-9 * max(1.0, float(np.abs(score).max()))
    return residual > near, np.abs(residual) <= near


def _normal_grid() -> tuple[np.ndarray, np.ndarray]:
    """Points x and weights of integrals over a standard normal: equal steps, which for smooth functions is exact."""
    x = np.linspace(-9, 9, 2001)
    weight = stats.norm.pdf(x)
    return x, weight / weight.sum()
