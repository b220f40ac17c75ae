"""Bayes-optimal membership inference: MALT, MAST and MATT (Sablayrolles et al. 2019).

The optimal score of a record z under a model with parameters theta is s = (tau(z) - loss(theta, z)) / T (Eq. 15),
where tau(z) is the typical loss of z under models that have not seen it. The three attacks are three ways to
approximate tau: one constant, one a record, and one linearised around a reference model.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit, logit

from mia_lib.attacks import (
    check_direction,
    check_loss,
    check_present,
    check_references,
    in_blocks,
    needs,
)
from mia_lib.checks import check_mask, check_numbers
from mia_lib.errors import MiaError, check_choice, check_range

ESTIMATORS = ("best_split", "middle", "mean_out", "softmin")


@needs("loss", "none", "one threshold, from a simulated split")
def malt(loss: np.ndarray) -> np.ndarray:
    """Membership attack with one loss threshold for all records: s = -loss (Eq. 31; tau is the threshold).

    Args:
        loss: of each record under the target, [..., N]; one that is nowhere above 0, as a score would be, is warned of.

    Returns:
        score [..., N].
    """
    loss = check_loss("loss", loss)
    signed = (
        loss if loss.dtype.kind == "f" else loss.astype(np.float64)
    )  # of unsigned numbers there is no negative
    return -signed


@needs("loss", "in and out", "the training recipe and the distribution of records")
def mast(
    loss: np.ndarray,
    reference_loss: np.ndarray,
    reference_members: np.ndarray,
    estimator: str = "best_split",
    temperature: float = 1.0,
) -> np.ndarray:
    """Membership attack with a threshold for each record: s = tau(z) - loss (Eq. 30).

    tau(z) is estimated from reference models:

    - "best_split": the loss that best separates references trained on z from those that were not (section 6.3);
    - "middle": midway between the mean loss under references trained on z and that under the others, as in the released code
      of Ravikumar et al. (2024);
    - "mean_out": mean loss under references not trained on z (section 5.3; the text leaves open which references, and
      Eq. 14 integrates over models that have not seen z);
    - "softmin": -T log mean exp(-loss / T) over references not trained on z (Eq. 14; Eq. 29 prints it without -T, which
      would add difficulty instead of taking it away).

    Args:
        loss: of each record under the target, [N]. reference_loss: the same under R references, [R, N].
        reference_members: bool [R, N], whether reference r was trained on record i.
        estimator, temperature: of tau, one of the four above; T of the softmin.

    Returns:
        score [N].

    Raises:
        MiaError: a record that no reference left out (or, for best_split and middle, that none was trained on); the target
            among its references; values that are not finite.

    Warns:
        UserWarning: a loss that is nowhere above 0, or that is higher under references trained on a record.
    """
    check_choice("estimator", estimator, ESTIMATORS)
    check_range("temperature", temperature, 1e-6)
    loss, reference_loss, reference_members = check_references(
        loss, reference_loss, reference_members, names=("loss", "reference_loss")
    )
    check_loss("loss", loss)
    check_direction(reference_loss, reference_members, "reference_loss", higher=False)
    check_present(
        reference_members,
        f"estimator = {estimator!r}",
        inside=int(estimator in ("best_split", "middle")),
    )

    def mean_out(losses, members):
        return (losses * ~members).sum(0, dtype=np.float64) / (~members).sum(0)

    def middle(losses, members):
        return (mean_out(losses, ~members) + mean_out(losses, members)) / 2

    def softmin(losses, members):
        out = np.where(members, np.inf, losses.astype(np.float64))
        least = out.min(0)  # taken out, so that no exponential is too small
        shares = np.exp((least - out) / temperature).sum(0)
        return least - temperature * np.log(shares / (~members).sum(0))

    if estimator == "best_split":
        return best_split(reference_loss, reference_members) - loss
    of_block = {"middle": middle, "mean_out": mean_out, "softmin": softmin}[estimator]
    return in_blocks(of_block, reference_loss, reference_members) - loss


def best_split(reference_loss: np.ndarray, reference_members: np.ndarray) -> np.ndarray:
    """For each record, the threshold with members below that has the best balanced accuracy over the references.

    Candidates lie midway between neighbouring distinct losses; of equally good ones the mean is taken.

    Args:
        reference_loss: [R, N]. reference_members: a mask [R, N], each record with both kinds of reference.

    Returns:
        tau [N].
    """
    reference_loss = check_numbers("reference_loss", reference_loss)
    reference_members = check_mask("reference_members", reference_members)

    def of_block(losses, members):
        order = np.argsort(losses, 0)
        value = np.take_along_axis(losses, order, 0).astype(np.float64)
        sorted_members = np.take_along_axis(members, order, 0)
        caught = np.cumsum(sorted_members, 0)[:-1] / sorted_members.sum(0)
        spared = 1 - np.cumsum(~sorted_members, 0)[:-1] / (~sorted_members).sum(0)
        gain = np.where(value[1:] > value[:-1], caught + spared, -np.inf)
        best = gain >= gain.max(0) - 1e-12
        middle = (value[1:] + value[:-1]) / 2
        # All losses equal: no split exists and any threshold is that value; `best` is then all true and so is the mean.
        return (middle * best).sum(0) / best.sum(0)

    return in_blocks(of_block, reference_loss, reference_members)


@needs("parameters", "out only", "a reference model on separate records; a loss with one minimum")
def matt(theta: np.ndarray, theta0: np.ndarray, gradients0: np.ndarray) -> np.ndarray:
    """Membership attack with Taylor approximation: s = -(theta - theta0)^T grad loss(theta0, z) (Eq. 40).

    To first order it is loss(theta0, z) - loss(theta, z), the loss calibrated by one reference model.

    Args:
        theta, theta0: parameters of the target, and of a reference trained on other records, [P].
        gradients0: gradient of each record's unregularised loss at theta0, [N, P].

    Returns:
        score [N].

    Raises:
        MiaError: shapes that do not fit.
    """
    theta, theta0, gradients0 = map(
        check_numbers, ("theta", "theta0", "gradients0"), (theta, theta0, gradients0)
    )
    if theta.shape != theta0.shape or theta.ndim != 1 or gradients0.shape[1:] != theta.shape:
        raise MiaError(
            f"theta {theta.shape}, theta0 {theta0.shape} and gradients0 {gradients0.shape} do not fit: "
            "[P], [P] and [N, P] are needed."
        )
    return -(gradients0 @ (theta - theta0))


def matt_second_term(gradients0: np.ndarray, hessian0: np.ndarray) -> np.ndarray:
    """The term that MATT drops: -1/2 g^T H^-1 g for each record (Eq. 39), [N] and never positive, from gradients [N, P] and
    the Hessian [P, P], positive definite, of the summed training objective at theta0."""
    gradients0, hessian0 = map(check_numbers, ("gradients0", "hessian0"), (gradients0, hessian0))
    half = solve_triangular(
        np.linalg.cholesky(hessian0), gradients0.T, lower=True
    )  # g^T H^-1 g = |L^-1 g|^2
    return -0.5 * np.square(half).sum(0)


def membership_posterior(score: np.ndarray, prior: float) -> np.ndarray:
    """P(member | theta, z) = sigmoid(s + log(prior / (1 - prior))) (Eqs. 13 and 15).

    Args:
        score: s, a log-likelihood ratio; divide by the temperature first if it is a loss difference.
        prior: probability of membership before the model is seen; one outside of (0, 1) is refused.
    """
    if not 0 < check_range("prior", prior) < 1:
        raise MiaError(f"prior = {prior!r}: a probability strictly between 0 and 1 is needed.")
    return expit(check_numbers("score", score) + logit(prior))
