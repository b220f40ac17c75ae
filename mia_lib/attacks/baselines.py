"""Attacks that the papers compare with."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from scipy.special import log_ndtr, ndtri

from mia_lib.attacks import (
    check_direction,
    check_loss,
    check_own,
    check_present,
    check_references,
    check_signals,
    iha,
    in_blocks,
    needs,
)
from mia_lib.checks import (
    Gradients,
    Inverse,
    are_probabilities,
    check_finite,
    check_flag,
    check_labels,
    check_mask,
    check_numbers,
    check_order,
)
from mia_lib.errors import MiaError, brief, check_choice, check_count, check_range, check_whole

VARIANTS = ("paper", "released_code")


@needs("label", "none", "nothing")
def gap(correct: np.ndarray) -> np.ndarray:
    """The 0-1 or gap attack: a record that is classified right is called a member (Yeom et al. 2018).

    Args:
        correct: bool [..., N]; other values, such as predicted classes, are refused.

    Returns:
        score [..., N], 1 or 0.
    """
    return check_mask("correct", correct, "classified right").astype(np.float64)


@needs(
    "output vector",
    "in and out",
    "the training recipe, and records of its own from the same distribution",
)
def shadow_models(
    probabilities: np.ndarray,
    labels: np.ndarray,
    shadow_probabilities: np.ndarray,
    shadow_labels: np.ndarray,
    shadow_members: np.ndarray,
    hidden: int = 64,
    seed: int = 0,
) -> np.ndarray:
    """Shadow-model attack (Shokri et al. 2017): a classifier that learns what the outputs of members look like.

    For each class a network with one hidden layer is trained to tell the output vectors of shadow models on their
    members from those on their non-members; it is then asked about the target's output vectors. It stops when it no
    longer improves on a tenth of its training rows.

    Args:
        probabilities, labels: of the target, [N, K], or of T targets, [T, N, K]; true classes, int [N].
        shadow_probabilities, shadow_labels, shadow_members: of S shadow models on records of the attacker's, [S, J, K]; true
            classes of those, int [J]; bool [S, J].
        hidden, seed: width of the attack networks; of their weights and batches.

    Returns:
        score [N] or [T, N]: probability of membership; 1/2 is the attack's own threshold.

    Raises:
        MiaError: shapes that do not fit, numbers that are no probabilities, labels that are no class, the target among the
            shadow models, or a class that no shadow model saw both inside and outside.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    hidden, seed = (
        check_count("hidden", hidden, 1, 32 * 200),
        check_whole("seed", seed, 0, 2**32 - 1),
    )  # in batches of 200
    probabilities = check_numbers("probabilities", probabilities)
    shadow_probabilities = check_numbers("shadow_probabilities", shadow_probabilities)
    if (
        shadow_probabilities.ndim != 3
        or probabilities.ndim not in (2, 3)
        or shadow_probabilities.shape[2] != probabilities.shape[-1]
    ):
        raise MiaError(
            f"shadow_probabilities has shape {shadow_probabilities.shape}, the target's "
            f"{probabilities.shape}: [S, J, K] and [N, K], or [T, N, K], are needed."
        )
    _check_distributions("probabilities", probabilities)
    _check_distributions("shadow_probabilities", shadow_probabilities)
    classes = probabilities.shape[-1]
    labels = check_labels("labels", labels, classes, probabilities.shape[-2])
    shadow_labels = check_labels(
        "shadow_labels", shadow_labels, classes, shadow_probabilities.shape[1]
    )
    shadow_members = check_mask("shadow_members", shadow_members)
    if shadow_members.shape != shadow_probabilities.shape[:2]:
        raise MiaError(
            f"shadow_members has shape {shadow_members.shape}: {shadow_probabilities.shape[:2]} is needed, [S, J]."
        )
    for target in probabilities.reshape(-1, *probabilities.shape[-2:]):
        if shadow_probabilities.shape[1:] == target.shape:
            check_own(target, shadow_probabilities, ("probabilities", "shadow_probabilities"))
    score = np.empty(probabilities.shape[:-1])
    for label in np.unique(labels):
        of_class = labels == label
        rows = shadow_probabilities[:, shadow_labels == label].reshape(-1, classes)
        members = shadow_members[:, shadow_labels == label].ravel()
        if min(members.sum(), (~members).sum()) < 10:
            raise MiaError(
                f"class {label}: the shadow models saw {members.sum()} of its records inside and "
                f"{(~members).sum()} outside; the attack model needs 10 of each. Use more shadow models."
            )
        network = MLPClassifier(
            (hidden,),
            learning_rate_init=0.01,
            early_stopping=True,
            n_iter_no_change=5,
            max_iter=60,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(rows, members)
        asked = probabilities[..., of_class, :]
        score[..., of_class] = network.predict_proba(asked.reshape(-1, classes))[:, 1].reshape(
            asked.shape[:-1]
        )
    return score


@needs("output vector", "none", "a threshold for each class, from shadow models")
def modified_entropy(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Modified prediction entropy, negated (Song and Mittal 2021).

    (1 - p_y) log p_y + sum over i != y of p_i log(1 - p_i): zero for a record that is certain and right, and ever lower
    as it is less certain or wrong, where the plain entropy cannot tell certain and right from certain and wrong. A
    probability that has been rounded to 0 or 1 counts as the number next to it that the array can hold, so that the
    score is finite.

    Args:
        probabilities: of the target, [N, K]. labels: true classes, int [N].

    Returns:
        score [N], never positive. The paper thresholds it class by class.

    Raises:
        MiaError: shapes that do not fit, labels that are no class, or numbers that are no probabilities.
    """
    check_order(probabilities=probabilities, labels=labels)
    probabilities = check_numbers("probabilities", probabilities)
    if probabilities.ndim != 2:
        raise MiaError(f"probabilities have shape {probabilities.shape}: [N, K] is needed.")
    _check_distributions("probabilities", probabilities)
    labels = check_labels("labels", labels, probabilities.shape[1], len(probabilities))
    kind = np.result_type(probabilities.dtype, np.float32)
    true = np.take_along_axis(probabilities, labels[:, None], 1)[:, 0].astype(np.float64)
    others = np.minimum(probabilities, np.nextafter(kind.type(1), kind.type(0)), dtype=kind)
    np.put_along_axis(others, labels[:, None], 0, 1)
    return (1 - true) * np.log(np.maximum(true, np.finfo(kind).tiny)) + (
        others * np.log1p(-others)
    ).sum(1, dtype=np.float64)


@needs("loss", "out only", "the training recipe and the distribution of records")
def attack_r(
    loss: np.ndarray,
    reference_loss: np.ndarray,
    reference_members: np.ndarray,
    level: float | None = None,
) -> np.ndarray:
    """Attack R: how rarely a model that was not trained on the record has so low a loss (Ye et al. 2022).

    A test at level alpha calls a record a member when its loss is at most the alpha-quantile of its losses under
    references not trained on it. The score is one minus the smallest such alpha, the p-value: the share of those
    references whose loss is greater. With R of them it takes R + 1 values, so false-positive rates below 1 / R cannot be
    told apart. With `level` it is how far the loss lies below the quantile of that one test, which has no ties; the
    released code of Ravikumar et al. (2024) ranks by it with level 1e-4, with few references their smallest loss.

    Args:
        loss, reference_loss, reference_members: as for `bayes.mast`; references trained on a record are left aside.
        level: alpha of a single test, from 0 to 1, its quantile interpolated linearly; None for the p-value.

    Returns:
        score [N]: in [0, 1], or a difference of losses when `level` is given.

    Raises:
        MiaError: as `bayes.mast`. It warns as that does, and of a level above 1/2.
    """
    if level is not None and check_range("level", level, 0, 1) > 0.5:
        warnings.warn(
            f"level = {level:g} is the false positive rate of the test, more than a half: for 1 % give 0.01.",
            UserWarning,
            stacklevel=2,
        )
    loss, reference_loss, reference_members = check_references(
        loss, reference_loss, reference_members, names=("loss", "reference_loss")
    )
    check_loss("loss", loss)
    check_direction(reference_loss, reference_members, "reference_loss", higher=False)
    check_present(reference_members, "Attack R")

    def share_above(losses, members, own):
        return ((losses > own) & ~members).sum(0) / (~members).sum(0)

    def quantile(losses, members):
        ranked = np.sort(np.where(members, np.inf, losses), 0)  # those left out come first
        last = (~members).sum(0) - 1
        below = np.floor(level * last).astype(int)
        low, high = (
            np.take_along_axis(ranked, at[None], 0)[0]
            for at in (below, np.minimum(below + 1, last))
        )
        return low + (high - low) * (level * last - below)

    if level is None:
        return in_blocks(share_above, reference_loss, reference_members, loss[None])
    return in_blocks(quantile, reference_loss, reference_members) - loss


def moments(signals: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, ...]:
    """Mean and sum of squared deviations [n, A] of the kept [R, n] of signals [R, n, A], and their number [n, 1]."""
    count, kept = kept.sum(0)[:, None], kept[..., None]
    some = np.maximum(count, 1)
    mean = (signals * kept).sum(0, dtype=np.float64) / some
    deviation = (signals - mean) * kept
    # the second term takes the mean's rounding back
    return mean, (deviation**2).sum(0) - deviation.sum(0) ** 2 / some, count


def _gaussian(
    mean, squares, count, rounding: float, fixed_variance: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance [N, A] of each record's Gaussian, from its `moments`."""
    squares = np.where(squares > count * (rounding * mean) ** 2, squares, 0.0)
    pooled = squares.sum(0) / max((count - 1).sum(), 1)
    pooled = np.where(pooled > 0, pooled, 1.0)
    if fixed_variance:
        return mean, np.broadcast_to(pooled, mean.shape)
    return mean, np.where(squares > 0, squares, (count - 1) * pooled) / (count - 1)


def _views(
    signal,
    reference_signal,
    reference_members,
    fixed_variance: bool,
    online: bool,
    own: str = "refuse",
) -> tuple[np.ndarray, ...]:
    """Signals as views, [N, A] and [R, N, A], and the mask [R, N]. Records with too few references
    of a kind for its Gaussian are refused: it takes one with a fixed variance, else two."""
    least = 1 if check_flag("fixed_variance", fixed_variance) else 2
    signal, reference_signal, reference_members = check_references(
        signal, reference_signal, reference_members, views=True, own=own
    )
    check_present(
        reference_members,
        f"LiRA with fixed_variance = {fixed_variance}",
        least,
        least if online else 0,
    )
    if not online:
        check_direction(
            reference_signal if reference_signal.ndim == 2 else reference_signal[..., 0],
            reference_members,
            "reference_signal",
            higher=True,
        )
    rows = len(reference_signal), len(signal), -1
    return signal.reshape(rows[1:]), reference_signal.reshape(rows), reference_members


def _fit(
    signal,
    reference_signal,
    reference_members,
    fixed_variance: bool,
    online: bool,
    own: str = "refuse",
):
    """The target's signals [N, A] and the Gaussians (mean, variance) of OUT references and, online, of IN references."""
    signal, reference_signal, reference_members = _views(
        signal, reference_signal, reference_members, fixed_variance, online, own
    )

    def both(signals, members):
        return (*moments(signals, ~members), *(moments(signals, members) if online else ()))

    fitted = in_blocks(both, reference_signal, reference_members)
    rounding = np.finfo(np.result_type(reference_signal.dtype, np.float16)).eps
    return signal, *(
        _gaussian(*fitted[k : k + 3], rounding, fixed_variance)  # type: ignore[call-arg]
        for k in range(0, len(fitted), 3)
    )


@needs("loss", "in and out", "the training recipe and the distribution of records")
def lira_online(
    signal: np.ndarray,
    reference_signal: np.ndarray,
    reference_members: np.ndarray,
    fixed_variance: bool = False,
    *,
    own: str = "refuse",
) -> np.ndarray:
    """Likelihood-ratio attack, online (Carlini et al. 2022, Algorithm 1).

    log N(signal; mean and variance under references trained on the record) - log N(signal; those under the others). The
    paper's signal is log(p / (1 - p)) for the probability p of the true class, which is closer to a Gaussian than the loss.

    Views are taken as independent: their Gaussian has a diagonal covariance, and the score is the sum of the A log ratios.
    Variances are the unbiased ones. `fixed_variance` fits one variance for all IN and one for all OUT references (and each
    view): squared deviations from each record's own mean, summed over all records and references and divided by the
    number of references less one for each record. It is meant for few references, where a record's own variance is noise.

    Where a record's references of one kind agree up to rounding there is no variance to fit. Such a record gets the
    fixed variance; where that is zero as well (all records so, or one reference each) the variance is 1.

    The released code differs: medians for means, population variances, and a fixed variance that is the standard deviation
    of all IN signals around their common mean, used for OUT too, so that the difficulty of records counts as noise.

    Args:
        signal: of each record under the target, [N], or [N, A] for A augmented views.
        reference_signal: the same under R references, [R, N] or [R, N, A].
        reference_members: bool [R, N], whether reference r was trained on record i.
        fixed_variance: one variance for all records.
        own: "refuse" a target that is among its own references, or "keep" it, as the code of Suri et al. (2024) does: its
            membership then leaks into the score.

    Returns:
        score [N], a log-likelihood ratio.

    Raises:
        MiaError: a record without references of a kind; without two, unless the variance is fixed; the target among its
            references; values that are not finite.
    """
    signal, (mean_out, variance_out), (mean_in, variance_in) = _fit(
        signal, reference_signal, reference_members, fixed_variance, online=True, own=own
    )
    apart_out = (signal - mean_out) ** 2 / variance_out
    apart_in = (signal - mean_in) ** 2 / variance_in
    return 0.5 * (apart_out - apart_in + np.log(variance_out) - np.log(variance_in)).sum(1)


@needs("loss", "out only", "the training recipe and the distribution of records")
def lira_offline(
    signal: np.ndarray,
    reference_signal: np.ndarray,
    reference_members: np.ndarray,
    fixed_variance: bool = False,
    *,
    variant: str = "paper",
) -> np.ndarray:
    """Likelihood-ratio attack, offline: one-sided, from OUT references alone (Carlini et al. 2022).

    - "paper": log Pr[OUT <= signal] for the Gaussian of references not trained on the record, computed without the
      probability itself: far below the mean it falls like a square. It tells signals apart up to 38 standard deviations above
      the mean, and is 0 beyond. For A views, taken as independent, it is the sum: the log probability that all are at most
      as high. Means and variances are those of `lira_online`, of which the fixed variance is wanted with few references.
    - "released_code": minus the mean over views of log N(signal; OUT), a density and no probability, which is as low where a
      signal is too low for a member's. Its Gaussian has the median and the standard deviation of the population, plus 1e-30,
      and with `fixed_variance` that of all OUT signals around their common mean. (The code takes as many OUT references of
      each record as the record with fewest has; here all are taken.)

    Args:
        signal, reference_signal, reference_members, fixed_variance: as for `lira_online`; references trained on a record are
            left aside.
        variant: "paper" or "released_code".

    Returns:
        score [N], with "paper" never positive.

    Raises:
        MiaError: as `lira_online`, of references without the record. It warns of a signal that is lower under the others.
    """
    if check_choice("variant", variant, VARIANTS) == "released_code":
        return _released_offline(signal, reference_signal, reference_members, fixed_variance)
    signal, (mean, variance) = _fit(
        signal, reference_signal, reference_members, fixed_variance, online=False
    )
    return log_ndtr((signal - mean) / np.sqrt(variance)).sum(1)


def _released_offline(
    signal, reference_signal, reference_members, fixed_variance: bool
) -> np.ndarray:
    signal, reference_signal, reference_members = _views(
        signal, reference_signal, reference_members, fixed_variance, False
    )

    def fit(signals, members):
        ranked, count = (
            np.sort(np.where(members[..., None], np.inf, signals), 0),
            (~members).sum(0),
        )  # OUT references first
        low, high = (
            np.take_along_axis(ranked, at[None, :, None], 0)[0]
            for at in ((count - 1) // 2, count // 2)
        )
        _, squares, count = moments(signals, ~members)
        return (low + high) / 2, np.sqrt(squares / count)

    median, deviation = in_blocks(fit, reference_signal, reference_members)
    scale = (reference_signal[~reference_members].std() if fixed_variance else deviation) + 1e-30
    return (0.5 * ((signal - median) / scale) ** 2 + np.log(scale) + 0.5 * np.log(2 * np.pi)).mean(
        1
    )


def check_levels(levels: Sequence[float], argument: str = "levels") -> np.ndarray:
    """Levels of quantiles as float64 [L], all above 0 and below 1; a warning where all are below 1/2, as false positive rates
    would be."""
    levels = np.atleast_1d(check_numbers(argument, levels)).astype(np.float64)
    if levels.ndim != 1 or not len(levels) or not ((levels > 0) & (levels < 1)).all():
        raise MiaError(
            f"{argument} = {brief(levels.tolist())}: at least one is needed, and all above 0 and below 1. A level "
            "is 1 - alpha: 0.99 for a false positive rate of 1 %."
        )
    if levels.max() < 0.5:
        warnings.warn(
            f"{argument} = {levels.tolist()}: a level is 1 - alpha, so the false positive rate is "
            f"{1 - levels.max():g} or more. For a rate of {levels.max():g} give {1 - levels.max():g}.",
            UserWarning,
            stacklevel=3,
        )
    return levels


def lira_threshold(
    reference_signal: np.ndarray,
    reference_members: np.ndarray,
    levels: Sequence[float],
    fixed_variance: bool = False,
) -> np.ndarray:
    """The thresholds that `lira_offline` stands for: quantiles of each record's OUT Gaussian.

    mean + standard deviation * Phi^-1(level), [L, N], with means and variances of `lira_offline`. A signal that lies on it
    has the score log(level). Bertran et al. (2023) compute the pinball loss of LiRA from it.

    Args:
        reference_signal: [R, N]. levels: 1 - alpha, above 0 and below 1, [L]. Others: as for `lira_offline`.

    Raises:
        MiaError: levels out of range; as `lira_offline`.
    """
    levels = check_levels(levels)
    reference_signal = np.atleast_2d(check_numbers("reference_signal", reference_signal))
    if reference_signal.ndim != 2:
        raise MiaError(
            f"reference_signal has shape {reference_signal.shape}: [R, N] is needed, a threshold is of one view."
        )
    unused = np.zeros(
        reference_signal.shape[1]
    )  # in place of the target's signal, which no threshold depends on
    _, (mean, variance) = _fit(
        unused, reference_signal, reference_members, fixed_variance, online=False
    )
    return mean[:, 0] + ndtri(levels)[:, None] * np.sqrt(variance[:, 0])


def _check_distributions(argument: str, values: np.ndarray) -> None:
    if values.size and not are_probabilities(values):
        check_finite(argument, values, "rows", "Give probabilities, or leave those records out.")
        sums = values.sum(-1)
        raise MiaError(
            f"{argument} run from {values.min():.4g} to {values.max():.4g}, sums of rows from {sums.min():.4g} to "
            f"{sums.max():.4g}, of {values.shape[-1]} classes: numbers in [0, 1] with the sum 1 are needed, for "
            "two classes or more. Of logits give their softmax, of one probability p [1 - p, p]."
        )


@needs(
    "loss", "in and out", "the training recipe, and records of its own that no model was trained on"
)
def rmia(
    probability: np.ndarray,
    reference_probability: np.ndarray,
    reference_members: np.ndarray,
    population_probability: np.ndarray,
    population_reference_probability: np.ndarray,
    gamma: float = 2.0,
    a: float | None = None,
) -> np.ndarray:
    """Robust membership inference attack (Zarifzadeh et al. 2024).

    The score of x is the share of population records z with ratio(x) >= gamma ratio(z), where ratio(x) is the probability
    p(x | target) of the true class over its typical value p(x):

    - online (`a` is None): p(x) is half the mean over references trained on x plus half that over the others;
    - offline (`a` given): from the mean over the others alone, p(x) = ((1 + a) mean + 1 - a) / 2, which supposes that
      references trained on x would give a mean + 1 - a.

    No model was trained on z: p(z) is the mean over references, offline scaled like p(x), as in the authors' code. For one
    target the score never falls when ratio(x) grows: population and gamma can tie records, never swap them. They give
    the score a meaning that is the same for all models. With Z population records it takes Z + 1 values.

    Args:
        probability: of each record's true class under the target, [N]; `reference_probability` under R references, [R, N].
        reference_members: bool [R, N], whether reference r was trained on record i.
        population_probability: of the true class of Z records outside every training set under the target, [Z];
            `population_reference_probability` under the references, [R, Z].
        gamma: at least 1; the paper takes 2.
        a: from 0 to 1 for the offline form (0.3 for CIFAR-10 in the authors' settings); None for the online one.

    Returns:
        score [N] in [0, 1].

    Raises:
        MiaError: numbers that are no probabilities, a record without references of a kind that is needed, the target among
            its references, or a population under another number of references. It warns of a probability that is lower under
            references trained on a record.
    """
    check_range("gamma", gamma, 1)
    if a is not None:
        check_range("a", a, 0, 1)
    names = ("probability", "reference_probability")
    probability, reference_probability, reference_members = check_references(
        probability, reference_probability, reference_members, names=names
    )
    population, population_reference = check_signals(
        population_probability,
        population_reference_probability,
        names=[f"population_{name}" for name in names],
    )
    if not len(population):
        raise MiaError(
            "population_probability has no record: RMIA compares with records that no model was trained on."
        )
    if len(population_reference) != len(reference_probability):
        raise MiaError(
            f"population_reference_probability has {len(population_reference)} rows and reference_probability "
            f"{len(reference_probability)}: both must be of the same R references, in the same order."
        )
    for name, values in (
        ("probability", probability),
        ("reference_probability", reference_probability),
        ("population_probability", population),
        ("population_reference_probability", population_reference),
    ):
        check_finite(name, values, "rows", "Give probabilities, or leave those records out.")
        for value in (values.min(), values.max()) if values.size else ():
            check_range(
                name, float(value), 0, 1 + 1e-5
            )  # the sum of a float32 softmax can pass 1 by its rounding
    check_direction(reference_probability, reference_members, "reference_probability", higher=True)
    check_present(
        reference_members, "RMIA, online," if a is None else "RMIA, offline,", inside=int(a is None)
    )
    tiny = np.finfo(np.float64).tiny  # for a record to which every reference gives probability 0

    def from_out(mean):
        return (
            mean if a is None else ((1 + a) * mean + (1 - a)) / 2
        )  # 1 - a first: a tiny mean would be lost in 1

    def typical(values, members):
        out = (values * ~members).sum(0, dtype=np.float64) / (~members).sum(0)
        if a is None:
            return (out + (values * members).sum(0, dtype=np.float64) / members.sum(0)) / 2
        return from_out(out)

    ratio = probability / np.maximum(
        in_blocks(typical, reference_probability, reference_members), tiny
    )
    ratio_z = np.sort(
        population / np.maximum(from_out(population_reference.mean(0, dtype=np.float64)), tiny)
    )
    return np.searchsorted(ratio_z, ratio / gamma, side="right") / len(ratio_z)


@needs("parameters", "none", "the Hessian of the training loss")
def self_influence(gradients: Gradients, inverse_hessian: Inverse) -> np.ndarray:
    """Self-influence (Cohen and Giryes 2024): how the record's own loss would change with more of its weight in training.

    -g^T A^-1 g, with the record's gradient g and the conditioned Hessian A: near 0 where the model gains nothing more from
    the record, far below where one step towards it would lower its loss a lot. Suri et al. (2024) compare with it as a
    score, in place of the original rule of yes or no, and do not print its sign; their released code has this one.

    Args:
        gradients, inverse_hessian: as for `iha.forms`, with its errors; A^-1 of the training set's mean loss without weight
            decay.

    Returns:
        score [N], float64; never positive where A is positive definite.
    """
    return -iha.forms(
        gradients, inverse_hessian, np.zeros(iha.check_inverses(inverse_hessian)[1])
    ).influence
