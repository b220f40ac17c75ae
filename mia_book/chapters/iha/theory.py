"""The law of the parameters at which SGD comes to rest, and what it tells of the records: the
theorems of Suri, Zhang and Evans (2024), each with a trial.

Near a minimum the loss is a quadratic, batches add noise, and SGD with momentum wanders about with a covariance that theory
gives (Theorems 2.2 and 2.3, Eq. 4). A Gaussian of that covariance is the law of the parameters (Theorem 3.1); two such laws
give the odds that a record was a member (Theorem 3.2, Eqs. 7 and 8).

Losses are means over records, a Hessian is that of the mean loss without weight decay, `minimum` is the mean loss L* at its
minimum, theta the parameters w, a = lambda / (1 + mu). Logarithms are natural.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import linalg

from mia_lib.errors import MiaError, check_range

# ----------------------------------------------------------------------------------------- where SGD with momentum rests


def stationary_variance(
    curvature, noise, learning_rate: float, momentum: float = 0.0
) -> np.ndarray:
    """``lambda^2 C / ((1 - mu^2) kappa (2 - kappa))``, ``kappa = lambda k / (1 + mu)``: Theorem 2.2 in one direction.

    Args:
        curvature: k = second derivative of the loss + weight decay, [...]. noise: C, variance of the gradient, [...].

    Raises:
        MiaError: a curvature at which SGD does not come to rest, outside of 0 to 2 (1 + mu) / lambda.
    """
    kappa = learning_rate * np.asarray(curvature, float) / (1 + momentum)
    if not (np.all(kappa > 0) and np.all(kappa < 2)):
        raise MiaError(
            f"curvature reaches from {np.min(curvature):.4g} to {np.max(curvature):.4g}: with this learning rate "
            f"and momentum SGD comes to rest above 0 and below {2 * (1 + momentum) / learning_rate:.4g}."
        )
    return learning_rate**2 * np.asarray(noise, float) / ((1 - momentum**2) * kappa * (2 - kappa))


@dataclass(frozen=True)
class LinearWorld:
    """Linear regression of y [n] on x [n, d] with the loss ``1/2 (x . w - y)^2``."""

    x: np.ndarray
    y: np.ndarray

    @property
    def hessian(self) -> np.ndarray:
        """``X^T X / n``, [d, d]."""
        return self.x.T @ self.x / len(self.x)

    def optimum(self, weight_decay: float = 0.0) -> np.ndarray:
        """w*, [d], where mean loss + ``alpha / 2 |w|^2`` is least."""
        return linalg.solve(
            self.hessian + weight_decay * np.eye(self.x.shape[1]), self.x.T @ self.y / len(self.x)
        )

    def losses(self, theta: np.ndarray) -> np.ndarray:
        """Loss of each record at theta [..., d]: [..., n]."""
        return 0.5 * np.square(theta @ self.x.T - self.y)

    def gradients(self, theta: np.ndarray) -> np.ndarray:
        """Gradient of each record's loss at theta [d], without weight decay: [n, d]."""
        return (self.x @ theta - self.y)[:, None] * self.x

    def ends(
        self,
        batch_size: int,
        learning_rate: float,
        momentum: float,
        chains: int,
        steps: int,
        seed: int = 0,
    ) -> np.ndarray:
        """Ends of SGD (Eq. 2) that starts at the minimum, with batches drawn with replacement as
        Theorem 2.3 takes them: [chains, d]."""
        rng = np.random.default_rng(seed)
        w = np.repeat(self.optimum()[None], check_range("chains", chains, 1), 0)
        velocity = np.zeros_like(w)
        for _ in range(check_range("steps", steps, 1)):
            rows = rng.integers(len(self.x), size=(chains, batch_size))
            residual = np.einsum("csd,cd->cs", self.x[rows], w) - self.y[rows]
            velocity = (
                momentum * velocity + np.einsum("cs,csd->cd", residual, self.x[rows]) / batch_size
            )
            w = w - learning_rate * velocity
        return w


def linear_regression(n: int, d: int, noise: float = 1.0, seed: int = 0) -> LinearWorld:
    """``y = x . w + noise * normal`` with normal w [d], and inputs whose variances fall geometrically from 1 to 1 / 100.

    Raises:
        MiaError: not more than d records.
    """
    check_range("n (records)", n, d + 1)
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) * np.geomspace(1, 0.1, d)
    return LinearWorld(x, x @ rng.standard_normal(d) + noise * rng.standard_normal(n))


def spectrum(
    world: LinearWorld,
    batch_size: int,
    learning_rate: float,
    momentum: float,
    groups: int = 20,
    chains: int = 100,
    seed: int = 0,
) -> pd.DataFrame:
    """Variance of SGD along each eigenvector of the Hessian, beside the predicted ones.

    Eq. 4 without weight decay is ``2 L* lambda / (S (1 - mu)) (2 I - a H)^-1``: noise ~ H cancels H^-1. A Boltzmann law (Eq.
    5) has ``T H^-1``, with the temperature T that fits best in logarithms.

    Returns:
        A row for each group of chains and direction: group, eigenvalue, simulated, equation_4, boltzmann (variances).
    """
    values, vectors = np.linalg.eigh(world.hessian)
    # in which the slowest direction forgets its start
    steps = int(5 * (1 - momentum) / (learning_rate * values[0])) + 100
    ends = (
        world.ends(batch_size, learning_rate, momentum, groups * chains, steps, seed)
        - world.optimum()
    )
    simulated = np.square(ends @ vectors).reshape(groups, chains, -1).mean(1)
    least = world.losses(world.optimum()).mean()
    predicted = stationary_variance(
        values, 2 * least * values / batch_size, learning_rate, momentum
    )
    temperature = np.exp(np.mean(np.log(simulated.mean(0)) + np.log(values)))
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "group": k,
                    "eigenvalue": values,
                    "simulated": row,
                    "equation_4": predicted,
                    "boltzmann": temperature / values,
                }
            )
            for k, row in enumerate(simulated)
        ],
        ignore_index=True,
    )


# -------------------------------------------------------------------------------------------- the law of the parameters


def log_density(
    theta,
    optimum,
    hessian,
    minimum: float,
    batch_size: int,
    learning_rate: float,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
) -> float | np.ndarray:
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
    """
    values, vectors = np.linalg.eigh(np.asarray(hessian, float))
    a, alpha = learning_rate / (1 + momentum), weight_decay
    step = np.square((np.asarray(theta, float) - optimum) @ vectors)
    far = (1 - a * alpha) * step.sum(-1) + alpha / 2 * (2 - a * alpha) * step @ (1 / values)
    scale, loss = batch_size * (1 - momentum) / (2 * minimum), minimum + 0.5 * step @ values
    return (
        -len(values) / 2 * np.log(minimum)
        + 0.5 * np.log((2 - a * (values + alpha)) * (values + alpha) / values).sum()
        - scale / learning_rate * far
        + scale / (1 + momentum) * loss
    )


def worlds(count: int, seed: int = 0) -> float:
    """Largest distance between the log odds of Eq. 7 and the log ratio of two densities of Theorem 3.1, over random
    quadratics, relative to the larger of the log ratio and one. Eq. 7 is exact for two quadratic losses with one Hessian and
    one minimum (Assumption 3), with and without the record."""
    from mia_lib.attacks import iha

    rng, worst = np.random.default_rng(seed), 0.0
    for _ in range(count):
        d, n, batch = (int(rng.integers(*ends)) for ends in ((1, 6), (10, 1000), (1, 100)))
        basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
        h = (basis * rng.uniform(0.1, 3, d)) @ basis.T
        ends = {"learning_rate": (0.01, 0.1), "momentum": (0, 0.9), "weight_decay": (0, 0.01)}
        rates = {name: rng.uniform(*pair) for name, pair in ends.items()}
        least = rng.uniform(0.1, 1)
        theta, included, without = rng.normal(size=(3, d))
        distance = (
            np.square((theta - w) @ np.linalg.cholesky(h)).sum() for w in (included, without)
        )
        loss = n / 2 * np.subtract(*distance)
        gradient = n * (h @ (theta - included) - h @ (theta - without))
        forms = iha.forms(gradient[None], np.linalg.inv(h), h @ (theta - without))
        sgd = iha.Sgd(**rates)
        score = iha.combine(np.zeros(1), iha.split(forms, 0, n, sgd), sgd)
        score = score[0] + loss / (1 + rates["momentum"])
        # Eq. 7, of even prior odds
        odds = batch * (1 - rates["momentum"]) / (2 * n * least) * score
        direct = np.subtract(
            *(log_density(theta, w, h, least, batch, **rates) for w in (included, without))
        )
        worst = max(worst, abs(odds - direct) / max(1.0, abs(direct)))
    return worst
