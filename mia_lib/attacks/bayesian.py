"""Between RMIA and LiRA: BASE (Lassila et al. 2025) and BaVarIA (Brännvall 2026).

Both are log-likelihood ratios of one exponential family. BASE has one parameter a record, as RMIA has; LiRA has four, a mean
and a variance for models with the record and for models without it. BaVarIA keeps LiRA's four and draws the variances to those
of all records by a conjugate prior, more so where there are few references.
"""

from __future__ import annotations

import numpy as np

from mia_lib.attacks import (
    check_direction,
    check_loss,
    check_present,
    check_references,
    in_blocks,
    needs,
)
from mia_lib.attacks.baselines import moments
from mia_lib.errors import MiaError, check_choice, check_range

PREDICTIVES = ("normal", "t")
SPREADS = ("all", "within")


@needs("loss", "in and out", "the training recipe and the distribution of records")
def base(
    loss: np.ndarray,
    reference_loss: np.ndarray,
    reference_members: np.ndarray,
    factor: float | None = None,
) -> np.ndarray:
    """BASE: minus the loss, less the logarithm of the usual probability (Lassila et al. 2025).

    -loss - log mean exp(-reference loss), with the mean over all references. It is the logarithm of RMIA's ratio, online,
    where as many references were trained on a record as were not, and then ranks records as RMIA does (shown in the paper,
    and by a test). With `factor` it is the offline form, -loss - factor log mean exp(-reference loss), with the mean over
    references that were not trained on the record: factor 1 makes it MAST with the soft minimum, factor 0 the loss alone.

    The authors' code searches the factor and starts at 1; the code of LeakPro has 0.33, and divides logits by a temperature of
    2 first. That needs all logits and is left out here.

    Args:
        loss, reference_loss, reference_members: as for `bayes.mast`.
        factor: from 0 to 1 for the offline form; None for the online one.

    Returns:
        score [N].

    Raises:
        MiaError: a factor out of range; as `bayes.mast`, which also says of what it warns.
    """
    if factor is not None:
        check_range("factor", factor, 0, 1)
    loss, reference_loss, reference_members = check_references(
        loss, reference_loss, reference_members, names=("loss", "reference_loss")
    )
    check_loss("loss", loss)
    check_direction(reference_loss, reference_members, "reference_loss", higher=False)
    check_present(reference_members, "BASE", inside=int(factor is None))

    def usual(losses, members):
        kept = np.where(members & (factor is not None), np.inf, losses.astype(np.float64))
        least = kept.min(0)
        return np.log(np.exp(least - kept).sum(0) / np.isfinite(kept).sum(0)) - least

    return -loss.astype(np.float64) - (1 if factor is None else factor) * in_blocks(
        usual, reference_loss, reference_members
    )


@needs("loss", "in and out", "the training recipe and the distribution of records")
def bavaria_online(
    signal: np.ndarray,
    reference_signal: np.ndarray,
    reference_members: np.ndarray,
    predictive: str = "normal",
    spread: str = "all",
    mean_weight: float = 1.0,
    shape: float | None = None,
) -> np.ndarray:
    """BaVarIA, online: LiRA's ratio with variances under a normal-inverse-gamma prior (Brännvall 2026).

    log p(signal | references trained on the record) - log p(signal | the others). Of each kind n references of a record have
    the mean m and the sum of squares S around it, and

        shape_n = shape + n / 2,
        scale_n = scale + S / 2 + mean_weight n (m - prior mean)^2 / (2 (mean_weight + n)),

    where the prior's mean and variance are those of all records' references of that kind together, and its scale is the
    variance times (shape - 1), so that the variance is its mean, worth 2 (shape - 1) references. With shape 1, which has no
    mean, it is the variance itself, as in the author's code: all variances then come out larger, with few references by far.

    - "normal", BaVarIA-n: a Gaussian with the mean m and the variance scale_n / (shape_n - 1). Its shape is 1.
    - "t", BaVarIA-t: the posterior predictive, Student's t with 2 shape_n degrees of freedom, centre
      (mean_weight prior mean + n m) / (mean_weight + n) and squared width scale_n (mean_weight + n + 1) / (shape_n
      (mean_weight + n)). Its shape is 2.

    The limits of "normal" with mean_weight 0 are LiRA: for a large shape with one variance for all records, for a shape just
    above 1 with each record's own (of the population).

    Of the paper only the abstract and the code of its supplement were at hand when this was written; weights and shapes are
    those of that code. As there, the prior's variance counts how records differ from each other as noise. `spread` = "within"
    is ours: the prior's variance is that around each record's own mean, as in LiRA with a fixed variance.

    Args:
        signal, reference_signal, reference_members: as for `baselines.lira_online`; views are taken as independent.
        predictive: "normal" or "t".
        spread: what the prior's variance is of, "all" records together or "within" each.
        mean_weight: of the prior's mean, in references; above 0 for "t".
        shape: of the prior of the variance, at least 1; as above when None.

    Returns:
        score [N], a log-likelihood ratio.

    Raises:
        MiaError: as `baselines.lira_online`; weights out of range.
    """
    return _bavaria(
        signal,
        reference_signal,
        reference_members,
        predictive,
        spread,
        mean_weight,
        shape,
        online=True,
    )


@needs(
    "loss",
    "out only",
    "the training recipe, the distribution of records, and how references answer on their own records",
)
def bavaria_offline(
    signal: np.ndarray,
    reference_signal: np.ndarray,
    reference_members: np.ndarray,
    predictive: str = "normal",
    spread: str = "all",
    mean_weight: float = 1.0,
    shape: float | None = None,
) -> np.ndarray:
    """BaVarIA, offline: as `bavaria_online`, with the prior alone in the place of models trained on the record.

    The attacker knows how references answer on the records that *they* were trained on: these have the mean and the variance
    of the prior. So the score asks whether the target answers as on a member at large or as models do that do not know this
    record. It falls again where a signal is higher than a member's usually is.

    Arguments, score and errors are those of `bavaria_online`; that no reference was trained on any of these records, so that
    there is no prior, is an error, too. Of references trained on a record the signal enters the prior alone, of which it is
    one of very many.
    """
    return _bavaria(
        signal,
        reference_signal,
        reference_members,
        predictive,
        spread,
        mean_weight,
        shape,
        online=False,
    )


def _bavaria(
    signal,
    reference_signal,
    reference_members,
    predictive,
    spread,
    mean_weight,
    shape,
    online: bool,
) -> np.ndarray:
    check_choice("predictive", predictive, PREDICTIVES), check_choice("spread", spread, SPREADS)
    is_t = predictive == "t"
    shape = check_range("shape", 1.0 + is_t if shape is None else shape, 1)
    check_range("mean_weight", mean_weight, 0)
    if is_t and mean_weight == 0:
        raise MiaError(
            "mean_weight = 0: with predictive = 't' it must be above 0, for the prior alone predicts, too."
        )
    signal, reference_signal, reference_members = check_references(
        signal, reference_signal, reference_members, views=True
    )
    check_present(reference_members, "BaVarIA", inside=int(online))
    if not reference_members.any():
        raise MiaError(
            "reference_members: no reference was trained on any of these records. BaVarIA takes from such pairs "
            "how members answer; give the references' signals on records of their own, too."
        )
    if not online:
        check_direction(
            reference_signal if reference_signal.ndim == 2 else reference_signal[..., 0],
            reference_members,
            "reference_signal",
            higher=True,
        )
    rows = len(reference_signal), len(signal), -1
    signal, values = signal.reshape(rows[1:]).astype(np.float64), reference_signal.reshape(rows)

    def log_density(kept, observed: bool):
        """log p(signal) [N, A] from the kept references [R, N], or from the prior that they give when not `observed`."""
        mean, squares, count = in_blocks(moments, values, kept)
        prior_mean = np.average(mean, 0, np.broadcast_to(count, mean.shape))
        variance = (squares + count * (mean - prior_mean) ** 2).sum(0) / count.sum()
        if not observed:
            mean, squares, count = prior_mean, *np.zeros((2, 1, 1))
        if observed and spread == "within":
            variance = squares.sum(0) / max((count - 1).sum(), 1)
        variance = np.where(variance > 0, variance, 1.0)
        weight, shape_n = mean_weight + count, shape + count / 2
        scale_n = variance * (shape - 1 if shape > 1 else 1) + squares / 2
        if mean_weight:
            scale_n = scale_n + mean_weight * count * (mean - prior_mean) ** 2 / (2 * weight)
        if is_t:
            from scipy import stats  # which takes a second

            center = (mean_weight * prior_mean + count * mean) / weight
            return stats.t.logpdf(
                signal, 2 * shape_n, center, np.sqrt(scale_n * (weight + 1) / (shape_n * weight))
            )
        spread_n = scale_n / np.where(shape_n > 1, shape_n - 1, 1)
        return (
            -((signal - mean) ** 2 / spread_n + np.log(2 * np.pi * spread_n)) / 2
        )  # of a Gaussian

    return (log_density(reference_members, online) - log_density(~reference_members, True)).sum(1)
