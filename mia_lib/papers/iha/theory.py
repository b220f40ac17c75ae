"""Where SGD comes to rest and what that says of its records: the theorems of Suri, Zhang and Evans (2024), each with a trial.

Near an optimum the loss is a quadratic, minibatches add noise, and SGD with momentum wanders about with a covariance that
theory gives (Theorems 2.2 and 2.3, Eq. 4) and `simulate` and `simulate_sgd` measure. A Gaussian of that covariance is the law
of the parameters (Theorem 3.1), two such laws give the odds that a record was a member (Theorem 3.2, Eqs. 7 and 8).

A matrix argument may be a number, which stands for a matrix [1, 1]. Losses are means over records, a Hessian is that of the
mean loss without weight decay, `minimum` is the mean loss L* at the optimum, again without weight decay, and theta the
parameters w. Logarithms are natural.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mia_lib.errors import MiaError, check_range, choose
from mia_lib.metrics.interval import t_interval

VARIANTS = ("corrected", "printed")

# ----------------------------------------------------------------------------------------- where SGD with momentum rests


def stability_limit(learning_rate: float, momentum: float = 0.0) -> float:
    """``2 (1 + mu) / lambda``: SGD stays finite only where the curvature k, weight decay included, is below this.

    Raises:
        MiaError: a learning rate not above 0, or a momentum outside [0, 1).
    """
    _check_rates(learning_rate, momentum)
    return 2 * (1 + momentum) / learning_rate


def stationary_variance(curvature, noise, learning_rate: float, momentum: float = 0.0) -> float | np.ndarray:
    """``lambda^2 C / ((1 - mu^2) kappa (2 - kappa))``, ``kappa = lambda k / (1 + mu)``: Theorem 2.2 in one dimension.

    Args:
        curvature: k = second derivative of the loss + weight decay, [...]. noise: C, variance of the gradient, [...].

    Raises:
        MiaError: a curvature not above 0 or not below `stability_limit`, or rates out of range.
    """
    k, c = np.asarray(curvature, float), np.asarray(noise, float)
    _check_stable(k, learning_rate, momentum)
    kappa = learning_rate * k / (1 + momentum)
    variance = learning_rate**2 * c / ((1 - momentum**2) * kappa * (2 - kappa))
    return variance if np.ndim(variance) else float(variance)


def stationary_covariance(hessian, noise, learning_rate: float, momentum: float = 0.0,
                          weight_decay: float = 0.0) -> np.ndarray:
    """Covariance of the parameters after many steps of SGD on a quadratic loss (Theorem 2.2).

    It is ``[a K (2 I - a K)]^-1 lambda^2 C / (1 - mu^2)``, with ``K = H + alpha I`` and ``a = lambda / (1 + mu)``, where noise
    and Hessian commute. Where they do not, that product is not even symmetric and the theorem is silent; this is the exact
    covariance all the same, as in the eigenbasis of H each pair of directions solves a linear equation of its own.

    Args:
        hessian: H, [d, d]. noise: covariance C of the gradient noise, [d, d], that need not commute with H.

    Returns:
        [d, d].

    Raises:
        MiaError: matrices that are not symmetric or differ in size, ``H + alpha I`` not positive definite or beyond
            `stability_limit`, or rates out of range.
    """
    h, c = _matrices(hessian, noise)
    check_range("weight_decay", weight_decay, 0.0)
    eigenvalues, q = np.linalg.eigh(h)
    k = eigenvalues + weight_decay
    _check_stable(k, learning_rate, momentum)
    # w_t = p w_{t-1} - mu w_{t-2} - lambda eta for each direction. Multiplied for two directions and averaged:
    p, mu = 1 + momentum - learning_rate * k, momentum
    one, other = p[:, None], p[None]
    lagged = mu * (one**2 + other**2 - 2 * mu * one * other) / (1 - mu**2)
    return q @ (learning_rate**2 * (q.T @ c @ q) / (1 - mu**2 - one * other + lagged)) @ q.T


def memory(hessian, learning_rate: float, momentum: float = 0.0, weight_decay: float = 0.0) -> float:
    """Steps in which the slowest direction forgets all but 1/e of where it started: what `simulate` needs a few times.

    Raises:
        MiaError: as `stationary_covariance`.
    """
    k = np.linalg.eigvalsh(_matrix("hessian", hessian)) + check_range("weight_decay", weight_decay, 0.0)
    _check_stable(k, learning_rate, momentum)
    p = (1 + momentum - learning_rate * k).astype(complex)
    root = np.sqrt(p**2 - 4 * momentum)
    radius = np.abs([p + root, p - root]).max() / 2
    return float(-1 / np.log(radius)) if radius > 0 else 0.0


def simulate(hessian, noise, learning_rate: float, momentum: float = 0.0, weight_decay: float = 0.0, chains: int = 1000,
             steps: int = 1000, seed: int = 0) -> np.ndarray:
    """SGD (Eq. 2) on a quadratic loss with Gaussian gradient noise, many chains at once.

    ``g = (H + alpha I) w + eta``, ``h <- mu h + g``, ``w <- w - lambda h`` is `torch.optim.SGD` without dampening and
    Nesterov. Chains start at the optimum. Beyond `stability_limit` they run away, which is not stopped.

    Args:
        hessian: H, [d, d]. noise: covariance of eta, [d, d].
        chains, steps: at least 1; `memory` says how many steps are many.

    Returns:
        Last parameters less the optimum, [chains, d].

    Raises:
        MiaError: bad matrices, a covariance with a negative eigenvalue, or numbers out of range.
    """
    h, c = _matrices(hessian, noise)
    _check_rates(learning_rate, momentum)
    k = h + check_range("weight_decay", weight_decay, 0.0) * np.eye(len(h))
    variances, q = np.linalg.eigh(c)
    if variances[0] < -1e-9 * max(variances[-1], 0.0) - 1e-300:
        raise MiaError(f"noise has the eigenvalue {variances[0]:.4g}: a covariance has none below 0.")
    root = q * np.sqrt(variances.clip(0))  # root root^T = C
    rng = np.random.default_rng(seed)

    def gradient(w):
        return w @ k + rng.standard_normal(w.shape) @ root.T

    return _descend(gradient, np.zeros(len(h)), learning_rate, momentum, chains, steps)


# ------------------------------------------------------------------------------------------------- noise of minibatches


def noise_covariance(hessian, minimum: float, batch_size: int, theta=None, weight_decay: float = 0.0) -> np.ndarray:
    """``(2 L* H - alpha^2 w* w*^T) / S``: the covariance of a minibatch's mean gradient at the optimum (Theorem 2.3).

    It takes the squared loss, and residuals that do not depend on the input. Cross-entropy has about H / S instead.

    Args:
        hessian: H, [d, d]. minimum: L*, at least 0. batch_size: S. theta: w*, [d]; needed with weight decay only.

    Returns:
        [d, d].

    Raises:
        MiaError: no theta with weight decay, weight decay for which this is no covariance, or arguments out of range.
    """
    h = _matrix("hessian", hessian)
    check_range("minimum (L*)", minimum, 0.0)
    check_range("batch_size", batch_size, 1)
    if not check_range("weight_decay", weight_decay, 0.0):
        return 2 * minimum * h / batch_size
    if theta is None:
        raise MiaError(f"weight_decay = {weight_decay} needs theta, the optimum, of shape ({len(h)},).")
    w = _vector("theta", theta, len(h))
    c = (2 * minimum * h - weight_decay**2 * np.outer(w, w)) / batch_size
    lowest = np.linalg.eigvalsh(c)[0]
    if lowest < -1e-9 * np.abs(c).max():
        raise MiaError(f"2 L* H - alpha^2 w* w*^T has the eigenvalue {lowest * batch_size:.4g} at L* = {minimum:.4g} and "
                       f"weight_decay = {weight_decay}: a covariance has none below 0. Use less weight decay.")
    return c


def measured_noise(gradients: np.ndarray, batch_size: int) -> np.ndarray:
    """Covariance of the mean gradient of `batch_size` records drawn with replacement: that of one gradient over S.

    Args:
        gradients: one a record, [n, d], without weight decay.

    Returns:
        [d, d].

    Raises:
        MiaError: gradients that are not a matrix, or a batch size below 1.
    """
    g = np.asarray(gradients, float)
    if g.ndim != 2 or not g.size:
        raise MiaError(f"gradients of shape {g.shape} must be [n, d], one row a record.")
    g = g - g.mean(0)
    return g.T @ g / len(g) / check_range("batch_size", batch_size, 1)


def covariance(hessian, minimum: float, batch_size: int, learning_rate: float, momentum: float = 0.0,
               weight_decay: float = 0.0, theta=None) -> np.ndarray:
    """Stationary covariance of minibatch SGD (Eq. 4): Theorem 2.3's noise in Theorem 2.2.

    Without weight decay ``2 L* lambda / (S (1 - mu)) (2 I - a H)^-1``: noise ~ H cancels H^-1, and SGD wanders nearly as far
    along every direction. With it Eq. 4 as printed is symmetric only if w* is an eigenvector of H; this always is, see
    `stationary_covariance`.

    Returns:
        [d, d].

    Raises:
        MiaError: as `noise_covariance` and `stationary_covariance`.
    """
    noise = noise_covariance(hessian, minimum, batch_size, theta, weight_decay)
    return stationary_covariance(hessian, noise, learning_rate, momentum, weight_decay)


# ----------------------------------------------------------------------------------------------------- linear regression


@dataclass(frozen=True)
class LinearWorld:
    """Linear regression with the loss ``1/2 (x . w - y)^2``.

    Attributes:
        x: float64 [n, d]. y: float64 [n].
    """

    x: np.ndarray
    y: np.ndarray

    @property
    def hessian(self) -> np.ndarray:
        """``X^T X / n``, [d, d]."""
        return self.x.T @ self.x / len(self.x)

    def optimum(self, weight_decay: float = 0.0) -> np.ndarray:
        """w*, [d], where mean loss + ``alpha / 2 |w|^2`` is least."""
        k = self.hessian + check_range("weight_decay", weight_decay, 0.0) * np.eye(self.x.shape[1])
        return linalg.solve(k, self.x.T @ self.y / len(self.x), assume_a="pos")

    def losses(self, theta: np.ndarray) -> np.ndarray:
        """Of each record at theta [..., d]: [..., n]."""
        return 0.5 * np.square(theta @ self.x.T - self.y)

    def gradients(self, theta: np.ndarray) -> np.ndarray:
        """Of each record's loss at theta [d], without weight decay: [n, d]."""
        return (self.x @ theta - self.y)[:, None] * self.x


def linear_regression(n: int, d: int, noise: float = 1.0, condition: float = 100.0, seed: int = 0) -> LinearWorld:
    """``y = x . w + noise * normal`` with normal w [d], and inputs whose variances fall geometrically from 1.

    Args:
        n: records, more than d. d: inputs. noise: standard deviation, at least 0.
        condition: largest over smallest variance, at least 1.

    Raises:
        MiaError: a number out of range.
    """
    check_range("d", d, 1)
    check_range("n (records)", n, d + 1)
    check_range("noise", noise, 0.0)
    check_range("condition", condition, 1.0)
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) * np.geomspace(1, condition**-0.5, d)
    return LinearWorld(x, x @ rng.standard_normal(d) + noise * rng.standard_normal(n))


def simulate_sgd(world: LinearWorld, batch_size: int, learning_rate: float, momentum: float = 0.0, weight_decay: float = 0.0,
                 chains: int = 1000, steps: int = 1000, seed: int = 0) -> np.ndarray:
    """`simulate` with the noise of real minibatches, drawn with replacement as Theorem 2.3 takes it.

    Epochs that visit every record once have other noise: what one batch adds, the rest of the epoch takes back.

    Returns:
        Last parameters less the optimum, [chains, d].

    Raises:
        MiaError: numbers out of range.
    """
    _check_rates(learning_rate, momentum)
    check_range("batch_size", batch_size, 1)
    start = world.optimum(weight_decay)
    rng = np.random.default_rng(seed)

    def gradient(w):
        records = rng.integers(len(world.x), size=(len(w), batch_size))
        x = world.x[records]
        residual = (x @ w[:, :, None])[..., 0] - world.y[records]
        return (residual[:, None] @ x)[:, 0] / batch_size + weight_decay * w

    return _descend(gradient, start, learning_rate, momentum, chains, steps) - start


def spectrum(world: LinearWorld, batch_size: int, learning_rate: float, momentum: float = 0.0, weight_decay: float = 0.0,
             repetitions: int = 20, chains: int = 100, seed: int = 0) -> dict:
    """How far SGD wanders along each eigenvector of the Hessian, beside what is predicted.

    A Boltzmann law (Eq. 5) has the covariance ``T (H + alpha I)^-1``, so the log of the variance falls with the log of the
    curvature at a slope of -1. Eq. 4 has nearly 0 without weight decay, and more with. T is the one that fits best in logs.
    Simulated variances exceed Eq. 4 as the square of the distance from w* adds noise, which Theorem 2.3 drops.

    Args:
        repetitions: at least 2 groups of `chains` chains, over which the slope has its interval.

    Returns:
        A dictionary. [d] by rising eigenvalue: "eigenvalue", "simulated" (variance about w*), "measured_noise" (Theorem 2.2
        with the covariance of the world's gradients), "equation_4", "boltzmann". "repetitions" [repetitions, d] has the
        simulated variances of each group. "slope" is an `Interval` of d log variance / d log (eigenvalue + alpha), and
        "slope_equation_4" and "slope_boltzmann" what it would be. "temperature" is T.

    Raises:
        MiaError: numbers out of range, a single input, or a learning rate beyond `stability_limit`.
    """
    check_range("repetitions", repetitions, 2)
    check_range("chains", chains, 2)
    check_range("d (inputs of the world)", world.x.shape[1], 2)
    h, theta = world.hessian, world.optimum(weight_decay)
    eigenvalues, q = np.linalg.eigh(h)
    rates = learning_rate, momentum, weight_decay
    predicted = {
        "measured_noise": stationary_covariance(h, measured_noise(world.gradients(theta), batch_size), *rates),
        "equation_4": covariance(h, world.losses(theta).mean(), batch_size, *rates, theta=theta)}
    steps = int(np.ceil(5 * memory(h, *rates))) + 1
    w = simulate_sgd(world, batch_size, *rates, chains=repetitions * chains, steps=steps, seed=seed)
    groups = np.square(w @ q).reshape(repetitions, chains, -1).mean(1)
    simulated, log_k = groups.mean(0), np.log(eigenvalues + weight_decay)
    temperature = np.exp(np.mean(np.log(simulated) + log_k))

    def slope(variance):
        return np.polyfit(log_k, np.log(variance).T, 1)[0]

    predicted = {name: np.diag(q.T @ sigma @ q).copy() for name, sigma in predicted.items()}
    return {"eigenvalue": eigenvalues, "simulated": simulated, "repetitions": groups, **predicted,
            "boltzmann": temperature * np.exp(-log_k), "temperature": float(temperature),
            "slope": t_interval(slope(groups), covers=f"{repetitions} groups of {chains} chains"),
            "slope_equation_4": float(slope(predicted["equation_4"])), "slope_boltzmann": -1.0}


# -------------------------------------------------------------------------------------------- the law of the parameters


def log_density(theta, optimum, hessian, minimum: float, batch_size: int, learning_rate: float, momentum: float = 0.0,
                weight_decay: float = 0.0) -> float | np.ndarray:
    """Log-density of the parameters that SGD ends with (Theorem 3.1), up to a constant.

    Normal about w* with Eq. 4 for a covariance, without its ``alpha^2 w* w*^T`` (Eq. 12). In the terms of the theorem::

        -d/2 ln L* + 1/2 sum_i ln[(2 - a (s_i + alpha)) (s_i + alpha) / s_i]
        - S (1-mu) / (2 lambda L*) [(1 - a alpha) |w - w*|^2 + alpha/2 (2 - a alpha) (w - w*)^T H^-1 (w - w*)]
        + S (1-mu) / (2 (1+mu)) L(w) / L*

    with eigenvalues s_i of H and ``L(w) = L* + 1/2 (w - w*)^T H (w - w*)``. The constant to add for a density is
    ``d/2 ln[S (1-mu) / (4 pi lambda)] - S (1-mu) / (2 (1+mu))``. The paper prints the sum of logarithms without its 1/2, and
    in Eq. 15 ``L(w*)`` for ``L(w)``.

    Args:
        theta: w, [..., d]. optimum: w*, [d]. hessian: H, [d, d]. minimum: L*, above 0.

    Returns:
        [...].

    Raises:
        MiaError: H not positive definite, rates beyond `stability_limit`, or arguments out of range.
    """
    eigenvalues, q = np.linalg.eigh(_matrix("hessian", hessian))
    a, alpha = _check_law(eigenvalues, minimum, batch_size, learning_rate, momentum, weight_decay), weight_decay
    k = eigenvalues + alpha
    step = (np.asarray(theta, float) - _vector("optimum", optimum, len(k))) @ q
    loss = minimum + 0.5 * np.square(step) @ eigenvalues
    far = (1 - a * alpha) * np.square(step).sum(-1) + alpha / 2 * (2 - a * alpha) * np.square(step) @ (1 / eigenvalues)
    scale = batch_size * (1 - momentum) / (2 * minimum)
    value = (-len(k) / 2 * np.log(minimum) + 0.5 * np.log((2 - a * k) * k / eigenvalues).sum()
             - scale / learning_rate * far + scale / (1 + momentum) * loss)
    return value if np.ndim(value) else float(value)


@dataclass(frozen=True)
class Odds:
    """What the parameters say of records, arrays [...] of which higher means member.

    Attributes:
        log_odds: log of p(w | member) / p(w | non-member) (Eq. 7); add log(prior odds) and take the sigmoid for a posterior.
        score: ``loss / (1 + mu) - (I1 + I2 + I3 + I4) / lambda``, the inverse Hessian attack's (Eq. 8).
        terms: I1, I2, I3 and I4, [4, ...].
    """

    log_odds: np.ndarray
    score: np.ndarray
    terms: np.ndarray


def log_odds(loss, gradient, gradient_rest, hessian, n: int, minimum: float, batch_size: int, learning_rate: float,
             momentum: float = 0.0, weight_decay: float = 0.0) -> Odds:
    """Log-odds of membership given the parameters (Theorem 3.2, Eq. 7), and the attack's score (Eq. 8).

    Exact for two quadratic losses with one Hessian and one minimum (Assumption 3), with and without the record. With
    ``x = H^-1 gradient`` and ``x0 = H^-1 gradient_rest``, and b for ``alpha (2 - a alpha)``::

        I1 = (1 - a alpha) |x|^2 / n    I2 = 2 (1 - a alpha) x0 . x    I3 = b / (2 n) x . H^-1 x    I4 = b x0 . H^-1 x

    Args:
        loss: of the record at w, [...]. gradient: of that loss, [..., d].
        gradient_rest: gradient at w of L0, the other records' losses summed and divided by n, [..., d] or [d].
        hessian: H, [d, d], damped where it must be. n: training records. minimum: L*, above 0. batch_size: S.

    Raises:
        MiaError: shapes that do not fit, H not positive definite, or arguments out of range.
    """
    h = _matrix("hessian", hessian)
    a = _check_law(np.linalg.eigvalsh(h), minimum, batch_size, learning_rate, momentum, weight_decay)
    check_range("n (training records)", n, 1)
    loss, gradient, rest = (np.asarray(value, float) for value in (loss, gradient, gradient_rest))
    for name, value in (("gradient", gradient), ("gradient_rest", rest)):
        if value.shape[-1:] != (len(h),):
            raise MiaError(f"{name} of shape {value.shape} must end in d = {len(h)}, as the Hessian does.")
    if loss.shape != gradient.shape[:-1]:
        raise MiaError(f"loss of shape {loss.shape} and gradient of shape {gradient.shape}: one loss a gradient is needed.")
    factor = linalg.cho_factor(h)

    def newton(v):
        return linalg.cho_solve(factor, v.reshape(-1, len(h)).T).T.reshape(v.shape)

    x, x0 = newton(gradient), newton(rest)
    further = newton(x)  # H^-1 x
    keep, decay = 1 - a * weight_decay, weight_decay * (2 - a * weight_decay)
    terms = np.stack([keep / n * (x * x).sum(-1), 2 * keep * (x0 * x).sum(-1),
                      decay / (2 * n) * (x * further).sum(-1), decay * (x0 * further).sum(-1)])
    score = loss / (1 + momentum) - terms.sum(0) / learning_rate
    return Odds(batch_size * (1 - momentum) / (2 * n * minimum) * score, score, terms)


# --------------------------------------------------------------------------------------- the sign of the loss (Appendix C.2)


def loss_coefficient(d: int, batch_size: int, momentum: float = 0.0, variant: str = "corrected",
                     distance: float = 0.0) -> float:
    """What the loss is multiplied by in the score (Eq. 8).

    Args:
        variant: "printed" is ``1 / (1 + mu)``, above 0: high loss would point to members. "corrected" restores what
            Assumption 3 (one minimal loss with and without the record) drops, to first order and with ``l / n`` for the
            difference of the minima: ``-(d - Q) / (S (1 - mu))``. The normalisation in Theorem 3.1 changes by ``-d/2``, the
            exponent by ``+Q/2`` times the difference in ``ln L*``. The printed term is gone: it comes from
            ``L_1(w) - L_0(w)``, from which the same difference is to be taken.
        distance: Q, of w from its minimum, squared and in units of the covariance; 0 at the minimum, on average d where SGD
            has come to rest.

    Raises:
        MiaError: an argument out of range.
    """
    check_range("d", d, 1)
    check_range("batch_size", batch_size, 1)
    _check_rates(1.0, momentum)
    if choose("variant", variant, VARIANTS) == "printed":
        return 1 / (1 + momentum)
    return (distance - d) / (batch_size * (1 - momentum))


def leave_one_out(world: LinearWorld, weight_decay: float = 0.0) -> dict[str, np.ndarray]:
    """Fits without each record in turn, and what C.2 says of them: ``l(w1*) / n <= L1* - L0* <= l(w0*) / n``.

    L1* and L0* are the least totals ``1/n sum of losses + alpha/2 |w|^2`` with all n records and without one, attained at w1*
    and w0*. By the definition of a minimum the inequality holds of any loss; for this one the middle is the geometric mean of
    the ends. So Assumption 3, ``L1* = L0*``, drops a term as large as the loss that it keeps.

    Returns:
        A dictionary of arrays [n], one entry a record left out: "lower", "difference", "upper" as above,
        "minimum_with" (L1*, always the same), "minimum_without" (L0*), and "distance", ``|w1* - w0*|^2``. Eq. 20 has
        ``|w - w1*|^2 - |w - w0*|^2`` above 0, but at w1* it is minus that distance.

    Raises:
        MiaError: weight decay below 0.
    """
    n, x = world.x.shape[0], world.x
    with_all = world.optimum(weight_decay)
    moves = linalg.solve(world.hessian + weight_decay * np.eye(x.shape[1]), x.T, assume_a="pos").T / n
    leverage = (moves * x).sum(1)
    residual = x @ with_all - world.y
    without = with_all + (residual / (1 - leverage))[:, None] * moves  # Sherman-Morrison
    losses = world.losses(without)  # [fit, record]
    minimum_with = world.losses(with_all).mean() + weight_decay / 2 * (with_all @ with_all)
    own = np.diag(losses)
    minimum_without = (losses.sum(1) - own) / n + weight_decay / 2 * np.square(without).sum(1)
    return {"lower": world.losses(with_all) / n, "difference": minimum_with - minimum_without, "upper": own / n,
            "minimum_with": np.full(n, minimum_with), "minimum_without": minimum_without,
            "distance": np.square(without - with_all).sum(1)}


# ------------------------------------------------------------------------------------------- where the signal comes from


@dataclass(frozen=True)
class NewtonWorld:
    """A ridge regression at its exact optimum, with all that an attack on it needs.

    There the training gradient is not 0 but ``-alpha w``. A member's own share of it is what betrays it: with
    ``gradient_rest + alpha w`` for `log_odds`'s gradient of the rest, which is ``-gradient / n`` for members and 0 for others,
    ``I1 + I2`` is below 0 for members, above 0 for all others, whatever positive definite Hessian is used.

    Attributes:
        theta: [d]. members: bool [2n], half of them.
        losses: [2n], gradients: [2n, d], of each record at theta, without weight decay.
        hessian: of the members' mean loss without weight decay, [d, d]. weight_decay: alpha.
    """

    theta: np.ndarray
    members: np.ndarray
    losses: np.ndarray
    gradients: np.ndarray
    hessian: np.ndarray
    weight_decay: float


def newton_world(n: int, d: int, weight_decay: float = 0.01, noise: float = 1.0, condition: float = 100.0,
                 seed: int = 0) -> NewtonWorld:
    """Fit `linear_regression` to a random half of 2n records.

    Args:
        n: training records, more than d. d: parameters. weight_decay: alpha, at least 0. noise, condition: as there.

    Raises:
        MiaError: a number out of range.
    """
    check_range("d", d, 1)
    check_range("n (training records)", n, d + 1)
    world = linear_regression(2 * n, d, noise, condition, seed)
    members = np.random.default_rng([seed, 1]).permutation(np.arange(2 * n) < n)
    half = LinearWorld(world.x[members], world.y[members])
    theta = half.optimum(weight_decay)
    return NewtonWorld(theta, members, world.losses(theta), world.gradients(theta), half.hessian, weight_decay)


# ----------------------------------------------------------------------------------------------------------------- help


def _descend(gradient, start, learning_rate, momentum, chains, steps):
    check_range("chains", chains, 1)
    check_range("steps", steps, 1)
    w = np.repeat(start[None], chains, 0)
    velocity = np.zeros_like(w)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the limit chains end at infinity
        for _ in range(steps):
            velocity = momentum * velocity + gradient(w)
            w = w - learning_rate * velocity
    return w


def _matrix(name: str, value) -> np.ndarray:
    matrix = np.atleast_2d(np.asarray(value, float))
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size or not np.isfinite(matrix).all():
        raise MiaError(f"{name} of shape {np.shape(value)} must be a square matrix of finite numbers, or a number.")
    if np.abs(matrix - matrix.T).max() > 1e-6 * np.abs(matrix).max():
        raise MiaError(f"{name} must be symmetric.")
    return (matrix + matrix.T) / 2


def _matrices(hessian, noise) -> tuple[np.ndarray, np.ndarray]:
    h, c = _matrix("hessian", hessian), _matrix("noise", noise)
    if len(h) != len(c):
        raise MiaError(f"hessian is of size {len(h)}, noise of size {len(c)}: both have one row a parameter.")
    return h, c


def _vector(name: str, value, d: int) -> np.ndarray:
    vector = np.atleast_1d(np.asarray(value, float))
    if vector.shape != (d,):
        raise MiaError(f"{name} of shape {vector.shape} must be of shape ({d},), as the Hessian has {d} rows.")
    return vector


def _check_rates(learning_rate: float, momentum: float) -> None:
    if not 0 < learning_rate < np.inf:
        raise MiaError(f"learning_rate = {learning_rate!r} must be above 0 and finite.")
    if not 0 <= momentum < 1:
        raise MiaError(f"momentum = {momentum!r} is out of range: allowed is from 0 to below 1.")


def _check_stable(curvature: np.ndarray, learning_rate: float, momentum: float) -> None:
    limit = stability_limit(learning_rate, momentum)
    lowest, highest = float(np.min(curvature)), float(np.max(curvature))
    if not lowest > 0:
        raise MiaError(f"the smallest curvature (Hessian + weight decay) is {lowest:.4g}, where SGD never comes to rest: it "
                       "must be above 0. Keep only the directions in which the loss bends, or add weight decay.")
    if not highest < limit:
        raise MiaError(f"learning_rate * curvature = {learning_rate:.4g} * {highest:.4g} = {learning_rate * highest:.4g} must "
                       f"be below 2 (1 + momentum) = {2 * (1 + momentum):.4g}, or SGD runs away. "
                       f"Use a learning rate below {2 * (1 + momentum) / highest:.4g}.")


def _check_positive(eigenvalues: np.ndarray) -> None:
    if not eigenvalues[0] > 0:
        raise MiaError(f"hessian has the eigenvalue {eigenvalues[0]:.4g}: it must be positive definite. Damp it, "
                       "or keep only the directions in which the loss bends.")


def _check_law(eigenvalues, minimum, batch_size, learning_rate, momentum, weight_decay) -> float:
    """Check what Theorems 3.1 and 3.2 need, and return a = lambda / (1 + mu)."""
    _check_positive(eigenvalues)
    check_range("weight_decay", weight_decay, 0.0)
    check_range("batch_size", batch_size, 1)
    _check_stable(eigenvalues + weight_decay, learning_rate, momentum)
    if not 0 < minimum < np.inf:
        raise MiaError(f"minimum (L*) = {minimum!r} must be above 0 and finite: at a loss of 0 SGD has no noise.")
    return learning_rate / (1 + momentum)
