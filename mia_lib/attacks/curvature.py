"""Likelihood ratio of input loss curvature (Ravikumar et al. 2024, Algorithm 2).

`mia_lib.signals.curvature` estimates the signal from the loss at inputs of the attacker's choice: 4 queries a probe, so
with the paper's 10 probes 40 for each record and view.

The paper reports two tests, the likelihood ratio (LR) and its negative logarithm (NLL, Eq. 12), with different results. The
logarithm rises strictly, so that with the same Gaussians both rank alike. The released code fits different ones:

- both put the variance in the place of the standard deviation;
- its NLL takes that of the IN references for both hypotheses, so that the score is linear in the signal;
- its LR adds likelihoods, not their logarithms, over views, and 1e-22 to the denominator.

`variant` is "paper" or "released_code" for each.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mia_lib.attacks import check_references, in_blocks, needs
from mia_lib.attacks.baselines import VARIANTS, moments
from mia_lib.checks import check_flag, check_numbers
from mia_lib.errors import MiaError, check_choice, check_range

LACKING = ("refuse", "drop")
ADDED = 1e-22  # to the denominator of the released LR
NO_VARIANCE = np.sqrt(
    np.finfo(np.float64).tiny
)  # the released code squares a variance: below this, to nothing


def log_curvature(curvature: np.ndarray, floor: float = 1e-22) -> np.ndarray:
    """``log(|curvature| + floor)``, to which the paper's figures and its released code fit Gaussians.

    Algorithm 2 as printed takes the curvature itself, whose values under different models spread over orders of magnitude.

    Args:
        curvature: float [...]. floor: is added to all, so that the logarithm of a zero is -50.66 with the released code's; one
            that is not positive, or too small for the type of the curvature, is refused.

    Returns:
        [...], float64, or float32 where the curvature is.
    """
    curvature = check_numbers("curvature", curvature)
    kind = np.result_type(curvature.dtype, np.float32)
    check_range("floor", floor, float(np.finfo(kind).tiny))
    return np.log(np.abs(curvature, dtype=kind) + kind.type(floor))


@dataclass(frozen=True)
class _Fit:
    """Input of a scoring rule: the target's signals [n, A], and of the IN and the OUT references
    mean [n, A], sum of squared deviations [n, A] and number [n, 1]."""

    signal: np.ndarray
    inside: tuple[np.ndarray, ...]
    out: tuple[np.ndarray, ...]
    rounding: float


def _variance(fit: _Fit, *kinds: tuple[np.ndarray, ...], less: int = 1) -> np.ndarray:
    """Variance [n, A] pooled over kinds of references: the sum of squared deviations over the
    number of references minus `less` for each kind."""
    squares = sum(
        np.where(s > n * np.maximum((fit.rounding * mean) ** 2, NO_VARIANCE), s, 0.0)
        for mean, s, n in kinds
    )
    degrees = sum(n - less for *_, n in kinds)
    pooled = squares.sum(0) / max(degrees.sum(), 1)  # type: ignore[union-attr]
    pooled = np.where(pooled > NO_VARIANCE, pooled, 1.0)
    return np.where(squares > 0, squares / degrees, pooled)


def _log_density(fit: _Fit, kind: tuple[np.ndarray, ...], scale: np.ndarray) -> np.ndarray:
    return -0.5 * ((fit.signal - kind[0]) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)


def _one_scale(fit: _Fit, scale: np.ndarray) -> np.ndarray:
    """log N(c; IN) - log N(c; OUT) summed over views, [n], with one `scale` for both. The
    difference of squares is computed as a product, in which nothing cancels."""
    (mean_in, *_), (mean_out, *_) = fit.inside, fit.out
    gap = mean_in - mean_out
    gap = np.where(
        np.abs(gap) > fit.rounding * np.abs(mean_in), gap, 0.0
    )  # records whose signals are all equal tie
    return (gap / scale * ((fit.signal - mean_in / 2 - mean_out / 2) / scale)).sum(1)


def _nll(fit: _Fit, variant: str, tied: bool) -> np.ndarray:
    if variant == "released_code":
        return _one_scale(fit, _variance(fit, fit.inside, less=0))
    if tied:
        return _one_scale(fit, np.sqrt(_variance(fit, fit.inside, fit.out)))
    of_in, of_out = (
        _log_density(fit, kind, np.sqrt(_variance(fit, kind))) for kind in (fit.inside, fit.out)
    )
    return (of_in - of_out).sum(1)


def _released_lr(fit: _Fit, *_) -> np.ndarray:
    of_in, of_out = (
        np.exp(_log_density(fit, kind, _variance(fit, kind, less=0))).sum(1)
        for kind in (fit.inside, fit.out)
    )
    return of_in / (of_out + ADDED)


def _scores(
    rule: Callable, curvature, reference_curvature, reference_members, variant, tied, lacking
) -> np.ndarray:
    """Scores [N] by the scoring rule `rule`, with other arguments as for `nll`."""
    check_choice("variant", variant, VARIANTS)
    if check_flag("tied", tied) and variant == "released_code":
        raise MiaError(
            "tied = True is allowed with variant = 'paper' alone: the released code has its own variances."
        )
    check_choice("lacking", lacking, LACKING)
    curvature, reference_curvature, reference_members = check_references(
        curvature,
        reference_curvature,
        reference_members,
        views=True,
        names=("curvature", "reference_curvature"),
    )
    trained, references = reference_members.sum(0), len(reference_members)
    few = {"was trained on it": trained < 2, "left it out": references - trained < 2}
    kept = ~np.logical_or(*few.values())
    if not kept.all():
        each = " and ".join(
            f"{n.sum()} have at most one reference that {kind}"
            for kind, n in few.items()
            if n.any()
        )
        problem = f"{(~kept).sum()} of {len(kept)} records cannot be scored: {each}, where a Gaussian needs 2."
        if lacking == "refuse":
            raise MiaError(
                f"{problem} Use membership.balanced_halves, more references, or lacking = 'drop'."
            )
        warnings.warn(
            f"{problem} Their score is NaN: leave them out of metrics.", UserWarning, stacklevel=3
        )

    def both(signals, members):
        with np.errstate(all="ignore"):  # records that are dropped
            return *moments(signals, members), *moments(signals, ~members)

    rows = references, len(curvature), -1
    fitted = [
        part[kept] for part in in_blocks(both, reference_curvature.reshape(rows), reference_members)
    ]
    rounding = np.finfo(np.result_type(reference_curvature.dtype, np.float16)).eps
    fit = _Fit(
        curvature.reshape(rows[1:])[kept].astype(np.float64),
        tuple(fitted[:3]),
        tuple(fitted[3:]),
        rounding,
    )
    with np.errstate(all="ignore"):
        score = rule(fit, variant, tied)
    if np.isnan(score).any():
        raise MiaError(
            f"{np.isnan(score).sum()} records have signals too large for float64 to square: rescale them, "
            "or take log_curvature of them."
        )
    scores = np.full(len(kept), np.nan)
    scores[kept] = score
    return scores


@needs("loss", "in and out", "the training recipe and the distribution of records")
def likelihood_ratio(
    curvature: np.ndarray,
    reference_curvature: np.ndarray,
    reference_members: np.ndarray,
    variant: str = "paper",
    tied: bool = False,
    lacking: str = "refuse",
) -> np.ndarray:
    """Likelihood ratio of a record's curvature under models trained on it and under the others (Algorithm 2).

    - "paper": N(c; mean and variance of IN references) / N(c; those of OUT references), multiplied over views. It is
      exp(`nll`), so that it ranks alike, but for records of which exp over- or underflows: they tie, at infinity or zero.
    - "released_code": the sum over views of N(c; mean_in, var_in^2), over the sum of N(c; mean_out, var_out^2) plus 1e-22.
      Population variances stand where standard deviations should, densities far from the mean underflow to zero, and a
      record that is likely under neither hypothesis scores low.

    Arguments and errors are those of `nll`. The score [N] is not negative, and NaN for records that are dropped.
    """
    released = check_choice("variant", variant, VARIANTS) == "released_code"
    rule = _released_lr if released else _nll
    score = _scores(rule, curvature, reference_curvature, reference_members, variant, tied, lacking)
    with np.errstate(over="ignore", under="ignore"):
        return score if released else np.exp(score)


@needs("loss", "in and out", "the training recipe and the distribution of records")
def nll(
    curvature: np.ndarray,
    reference_curvature: np.ndarray,
    reference_members: np.ndarray,
    variant: str = "paper",
    tied: bool = False,
    lacking: str = "refuse",
) -> np.ndarray:
    """Logarithm of the likelihood ratio of a record's curvature (Eq. 12).

    Eq. 12 prints log N(c; OUT) - log N(c; IN), which is lower for members; its sign is turned here, as in the released code.

    - "paper": log N(c; mean_in, var_in) - log N(c; mean_out, var_out), summed over views, which are taken as independent.
      Variances are the unbiased ones of each record and view; it is LiRA's score (`baselines.lira_online`) of this signal.
      `tied` takes one for both hypotheses: squared deviations from the two means over n_in + n_out - 2.
    - "released_code": the sum over views of ((c - mean_out)^2 - (c - mean_in)^2) / (2 var_in^2). The population variance of
      the IN references stands where a standard deviation should, for both hypotheses.

    Gaussians are fitted to the signal as it is given; the paper's figures and code take `log_curvature` of it.

    Where references agree up to rounding there is no variance to fit. Such a record and view gets the one of all records:
    squared deviations summed over records, over the sum of what each divides by. Where that is zero as well, the variance is
    1. With "released_code" the value stands where the standard deviation should, as any other variance does; that code itself
    would divide by zero.

    Args:
        curvature: of each record under the target, [N], or [N, A] for A views, such as the image and its mirror image.
        reference_curvature, reference_members: the same under R references, [R, N] or [R, N, A], and whether each was trained
            on the record, bool [R, N].
        variant, tied: one of `VARIANTS`; one variance for both hypotheses, with "paper" alone.
        lacking: about records with fewer than two references of a kind: "refuse" them all, or "drop" those.

    Returns:
        score [N], a logarithm; NaN for records that are dropped, of which a warning gives the number.

    Raises:
        MiaError: records with fewer than two references of a kind, unless they are dropped; `tied` with "released_code"; a
            signal that is not finite, or that float64 cannot square; the target among its references.
    """
    return _scores(_nll, curvature, reference_curvature, reference_members, variant, tied, lacking)
