"""Small worlds in which the optimal attack is known exactly (Sablayrolles et al. 2019, sections 3 and 5).

Two worlds: Gaussian records whose mean is published, where every density has a closed form, and a finite world of a
few records and a few models, where every probability is a sum.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit, logit, logsumexp
from scipy.stats import norm

from mia_lib.errors import MiaError, check_range

# ---------------------------------------------------------------------------------------- the mean of Gaussian records


def gaussian_loss(theta: np.ndarray, z: np.ndarray) -> np.ndarray:
    """1/2 ||z - theta||^2 for records z [..., d] (Eq. 33)."""
    return 0.5 * np.square(z - theta).sum(-1)


def gaussian_tau(z: np.ndarray, mean: np.ndarray | float, members: int) -> np.ndarray:
    """The threshold of each record z [..., d] when theta is the mean of `members` records (Eq. 34).

    tau(z) = n' / (2 (n' + 1)) ||z - mean||^2 + (d / 2) log((n' + 1) / n'), with n' = `members`. The paper prints it
    without the constant, which leaves rankings alone but moves the natural threshold away from zero.
    """
    check_range("members", members, 1)
    return members / (2 * (members + 1)) * np.square(z - mean).sum(-1) + 0.5 * np.shape(z)[
        -1
    ] * np.log1p(1 / members)


def gaussian_log_ratio(
    theta: np.ndarray, z: np.ndarray, mean: np.ndarray | float, members: int
) -> np.ndarray:
    """log p(theta | z in) / p(theta | z out) when theta is the mean of `members` records from N(mean, I).

    theta | in ~ N(mean + (z - mean) / n', (n' - 1) / n'^2 I) and theta | out ~ N(mean, I / n').

    Args:
        theta: [..., d]; z: [..., d]; members: n' >= 2.
    """
    check_range("members", members, 2)
    d = np.shape(z)[-1]
    inside = members**2 / (members - 1)
    far_in = np.square(theta - mean - (z - mean) / members).sum(-1)
    far_out = np.square(theta - mean).sum(-1)
    return 0.5 * (members * far_out - inside * far_in) + 0.5 * d * (
        np.log(inside) - np.log(members)
    )


@dataclass(frozen=True)
class Games:
    """Scores and membership of every record in repeated games, each array [games, n]."""

    members: np.ndarray
    malt: np.ndarray
    mast: np.ndarray
    exact: np.ndarray


def gaussian_games(n: int = 100, d: int = 2000, games: int = 1, seed: int = 0) -> Games:
    """Play the game of Figure 1: half of n records from N(0, I_d) are averaged; all n are scored.

    Args:
        n: records, even. d: dimension. games: repetitions with fresh records.

    Raises:
        MiaError: an odd n or n < 4.
    """
    check_range("n (records)", n, 4)
    check_range("d", d, 1)
    if n % 2:
        raise MiaError(f"n = {n} must be even: half of the records are members.")
    rng, half = np.random.default_rng(seed), n // 2
    members = np.repeat((np.arange(n) < half)[None], games, 0)
    out = {name: np.empty((games, n)) for name in ("malt", "mast", "exact")}
    for g in range(games):
        z = rng.standard_normal((n, d))
        theta = z[:half].mean(0)
        loss = gaussian_loss(theta, z)
        out["malt"][g] = -loss
        out["mast"][g] = gaussian_tau(z, 0.0, half) - loss
        out["exact"][g] = gaussian_log_ratio(theta, z, 0.0, half)
    return Games(members, **out)


def gaussian_auc(d: int, members: int) -> dict[str, float]:
    """Closed-form AUC of MALT and MAST, to leading order in 1 / members.

    MAST: Phi(sqrt(d / (2 n'))). MALT: Phi((sqrt(d) / n') / sqrt(1 + 2 / n')), which keeps the noise of ||z - mean||^2.
    """
    return {
        "MALT": float(norm.cdf(np.sqrt(d) / members / np.sqrt(1 + 2 / members))),
        "MAST": float(norm.cdf(np.sqrt(d / (2 * members)))),
    }


# ------------------------------------------------------------------------------------------------------ a finite world


@dataclass(frozen=True)
class FiniteWorld:
    """Records take one of Z values and models one of V, so every probability is a sum.

    Attributes:
        loss: l(theta, z), [V, Z].
        n: records in a game.
        temperature: T of the posterior (Eq. 2).
        prior: lambda.
    """

    loss: np.ndarray
    n: int
    temperature: float
    prior: float

    def settings(self) -> tuple[np.ndarray, np.ndarray]:
        """All settings of the other records and of their membership bits: total loss [S, V] and
        probability [S]."""
        values = self.loss.shape[1]
        totals, weights = [], []
        for records in itertools.product(range(values), repeat=self.n - 1):
            for bits in itertools.product((0, 1), repeat=self.n - 1):
                totals.append(
                    sum(
                        (b * self.loss[:, z] for z, b in zip(records, bits, strict=True)),
                        np.zeros(len(self.loss)),
                    )
                )
                inside = sum(bits)
                weights.append(
                    self.prior**inside
                    * (1 - self.prior) ** (self.n - 1 - inside)
                    / values ** (self.n - 1)
                )
        return np.array(totals), np.array(weights)

    def posterior(self, total: np.ndarray) -> np.ndarray:
        """p(theta) proportional to exp(-total / T), [..., V] (Eqs. 2 and 12)."""
        scaled = -total / self.temperature
        return np.exp(scaled - logsumexp(scaled, -1, keepdims=True))


def theorem_one(world: FiniteWorld) -> dict[str, np.ndarray]:
    """P(member | theta, z) three ways, each [V, Z]: by Bayes' rule over everything, by Theorem 1 with the other records
    drawn from their law *given theta and z*, and with their law before theta is seen, as the text may be read.

    Also, for each of the S settings of the other records: `ratio` [S, V, Z], the log-likelihood ratio; `score`, that of
    Eq. 15; `ratio_minus_score`, which Theorem 2 says is zero; `given_setting`, the posterior by Bayes' rule; `law`
    [S, V, Z], the setting's probability given theta and z; and `mean_loss` [S, Z], the loss of a record averaged over
    models that have not seen it.
    """
    totals, weights = world.settings()
    p_out = world.posterior(totals)[:, :, None]  # [S, V, 1]
    p_in = np.stack(
        [world.posterior(totals + world.loss[:, z]) for z in range(world.loss.shape[1])], 2
    )
    alpha, beta = world.prior * p_in, (1 - world.prior) * p_out
    truth = np.einsum("s,svz->vz", weights, alpha) / np.einsum("s,svz->vz", weights, alpha + beta)
    ratio = np.log(p_in / p_out)
    given_setting = expit(ratio + logit(world.prior))
    law = weights[:, None, None] * (alpha + beta)
    scaled = -world.loss / world.temperature
    tau = -world.temperature * np.log(np.einsum("svo,vz->sz", p_out, np.exp(scaled)))
    score = (tau[:, None, :] - world.loss[None]) / world.temperature
    return {
        "truth": truth,
        "theorem": (law * given_setting).sum(0) / law.sum(0),
        "prior_law": np.einsum("s,svz->vz", weights, given_setting),
        "ratio": ratio,
        "score": score,
        "given_setting": alpha / (alpha + beta),
        "ratio_minus_score": ratio - score,
        "law": law / law.sum(0),
        "mean_loss": np.einsum("svo,vz->sz", p_out, world.loss),
    }


def best_rule_accuracy(world: FiniteWorld) -> float:
    """Accuracy of the optimal attacker: P(member | theta, z) > 1/2, averaged over the game."""
    totals, weights = world.settings()
    p_out = world.posterior(totals)
    values = world.loss.shape[1]
    accuracy = 0.0
    for z in range(values):
        inside = world.prior * weights @ world.posterior(totals + world.loss[:, z])
        outside = (1 - world.prior) * weights @ p_out
        accuracy += np.maximum(inside, outside).sum() / values
    return float(accuracy)


def privacy_cap(epsilon: np.ndarray, prior: float) -> dict[str, np.ndarray]:
    """Largest posterior that epsilon-differential privacy allows: `printed` prior + epsilon / 4 (Eq. 21, Property 1)
    and `sharp` sigmoid(logit(prior) + epsilon), which holds as well and never exceeds 1.
    """
    epsilon = np.asarray(epsilon, float)
    return {"printed": prior + epsilon / 4, "sharp": expit(logit(prior) + epsilon)}


def temperature_in_random_worlds(
    worlds: int, seed: int, temperatures: Sequence[float]
) -> np.ndarray:
    """Accuracy of the best attacker in random finite worlds, [worlds, temperatures]."""
    rng = np.random.default_rng(seed)
    return np.array(
        [
            [best_rule_accuracy(FiniteWorld(loss, 3, t, 0.5)) for t in temperatures]
            for loss in rng.uniform(0, 2, (worlds, 7, 3))
        ]
    )


def privacy_in_random_worlds(worlds: int, seed: int = 0) -> pd.DataFrame:
    """Properties 1 and 2 put to the test where every quantity is a finite sum.

    Args:
        worlds: random finite worlds for each prior.

    Returns:
        DataFrame, a row for each world: prior; epsilon, the largest log-likelihood ratio;
        posterior, the largest there is; `property_2_says`, the share of models and records about
        which the bound of Property 2 says something; `property_1_excess`, that of the posterior
        over prior + epsilon / 4; and `property_2_excess`, the largest excess of a posterior over
        prior + epsilon / (4 T) + delta, at a random epsilon. Neither excess may be above zero.
    """
    rng, rows = np.random.default_rng(seed), []
    for prior in (0.5, 0.1, 0.01):
        for _ in range(worlds):
            scale, temperature = 10 ** rng.uniform(-2, 0.7), 10 ** rng.uniform(-0.7, 0.7)
            loss_table = rng.uniform(0, scale, (7, 3))
            theorem = theorem_one(FiniteWorld(loss_table, 3, temperature, prior))
            epsilon, posterior = max(float(theorem["ratio"].max()), 0.0), theorem["truth"]
            # [S, V, Z], what Definition 3 bounds
            gain = theorem["mean_loss"][:, None, :] - loss_table[None]
            # larger ones say nothing
            allowed = rng.uniform(0, min(max(gain.max(), 1e-9), 2 * temperature))
            delta = (theorem["law"] * (gain > allowed)).sum(0)
            cap = prior + allowed / (4 * temperature) + delta
            rows.append(
                {
                    "prior": prior,
                    "epsilon": epsilon,
                    "posterior": posterior.max(),
                    "property_1_excess": max(posterior.max() - (prior + epsilon / 4), 0.0),
                    "property_2_excess": max((posterior - cap).max(), 0.0),
                    "property_2_says": (cap < 1).mean(),
                }
            )
    return pd.DataFrame(rows)
