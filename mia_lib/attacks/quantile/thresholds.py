"""Quantile regression attack (Bertran et al. 2023).

The target gives each record a score s(x, y), higher for members. A regression learns, on public records that the target was
not trained on, the 1 - alpha quantile of the score given the record, q(x) or q(x, y). The test calls a record a member when::

    s(x, y) >= q(x)

so that the false-positive rate is alpha, wherever q is right. A constant q is the marginal baseline. Two regressions are
here: the Gaussian, mean + spread * Phi^-1(1 - alpha) with mean and spread of the record by maximum likelihood, and the pinball
loss at a grid of levels. A record's position, where its score lies on the scale of Phi^-1 of its own quantiles, ranks records
for a ROC: position >= Phi^-1(1 - alpha) if and only if score >= threshold.

What is used for fitting, for selection and for measuring must be kept apart: quantiles of records that the regression was
fitted to are too low.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.special import ndtri

from mia_lib.attacks import needs
from mia_lib.attacks.baselines import check_levels
from mia_lib.attacks.quantile import trees
from mia_lib.checks import Regressor, check_labels, check_numbers, check_order
from mia_lib.errors import MiaError, brief, check_whole

MIN_PUBLIC = 20  # public records to fit a regression to
PUBLIC = "labelled records of the same distribution outside the training set"


def _scores(score, argument: str = "score") -> np.ndarray:
    """Scores as float64 [N], all finite."""
    score = check_numbers(argument, score).astype(np.float64)
    if score.ndim != 1:
        raise MiaError(
            f"{argument} has shape {score.shape}: [N] is needed, a number for each record."
        )
    bad = int((~np.isfinite(score)).sum())
    if bad:
        raise MiaError(
            f"{argument} holds {bad} values that are infinite or NaN; they have no quantile. Clip the "
            "probabilities they come from, or leave those records out."
        )
    return score


@needs("output vector", "none", PUBLIC)
def marginal(score: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """One threshold for all records, from public scores: the marginal baseline.

    The k-th smallest of n scores with k = ceil((n + 1) level). For scores without ties, on average over draws of the n, a
    further public record reaches it with probability (n + 1 - k) / (n + 1) <= alpha = 1 - level (split conformal prediction);
    the plain empirical quantile exceeds alpha. Public scores that tie with the threshold reach it together, which can be
    more than alpha.

    Args:
        score: of public records, [n], higher for members. levels: 1 - alpha, [L].

    Returns:
        thresholds [L]; a member has score >= threshold.

    Raises:
        MiaError: fewer than 2 scores, scores not finite, levels outside (0, 1), or above n / (n + 1), which n scores do not
            resolve.
    """
    score, levels = _scores(score), check_levels(levels)
    n = len(score)
    if n < 2:
        raise MiaError(f"score has {n} public scores: at least 2 are needed for a threshold.")
    place = np.ceil((n + 1) * levels - 1e-9).astype(int)  # less the rounding of 1 - alpha
    if place.max() > n:
        raise MiaError(
            f"level {levels.max():g} is above what {n} public scores resolve: the smallest alpha = 1 - level is "
            f"1/{n + 1} = {1 / (n + 1):.3g}. Use more public records, or a lower level."
        )
    return np.sort(score)[place - 1]


def _positive(spread) -> np.ndarray:
    """Spreads as float64; 0 or below is refused. NaN, from a regression that failed, stays NaN."""
    spread = check_numbers("spread", spread).astype(np.float64)
    if (spread <= 0).any():
        raise MiaError(
            f"spread is not above 0 in {(spread <= 0).sum()} of {spread.size} records (the least is "
            f"{np.nanmin(spread):.4g}): a standard deviation is needed. Of its logarithm give np.exp."
        )
    return spread


def gaussian_thresholds(
    mean: np.ndarray, spread: np.ndarray, levels: Sequence[float]
) -> np.ndarray:
    """mean + spread * Phi^-1(level), [L, N] for mean and spread [N], all spreads above 0."""
    return check_numbers("mean", mean).astype(np.float64) + ndtri(check_levels(levels))[
        :, None
    ] * _positive(spread)


def gaussian_position(score: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """(score - mean) / spread, [N], all spreads above 0."""
    return (
        check_numbers("score", score).astype(np.float64) - check_numbers("mean", mean)
    ) / _positive(spread)


def _quantiles(quantiles, fitted_levels, least: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles [L0, N], each record's sorted, and Phi^-1 of their levels [L0]."""
    fitted = check_levels(fitted_levels, "fitted_levels")
    quantiles = check_numbers("quantiles", quantiles).astype(np.float64)
    if (np.diff(fitted) <= 0).any():
        raise MiaError(f"fitted_levels = {fitted.tolist()}: they must rise.")
    if len(fitted) < least:
        raise MiaError(
            f"fitted_levels = {fitted.tolist()}: at least {least} levels are needed for a position between them."
        )
    if quantiles.ndim != 2 or len(quantiles) != len(fitted):
        raise MiaError(
            f"quantiles have shape {quantiles.shape}: [{len(fitted)}, N] is needed, a row for each fitted level."
        )
    return np.sort(quantiles, 0), ndtri(fitted)


def pinball_thresholds(
    quantiles: np.ndarray, fitted_levels: Sequence[float], levels: Sequence[float]
) -> np.ndarray:
    """Thresholds at any levels within a grid of predicted quantiles.

    Quantiles that cross are sorted, record by record (monotone rearrangement). Between fitted levels the threshold is linear
    in Phi^-1(level), so exact for Gaussians.

    Args:
        quantiles: [L0, N]. fitted_levels: of the rows, rising, [L0]. levels: [L].

    Returns:
        thresholds [L, N].

    Raises:
        MiaError: shapes that do not fit, levels outside the fitted ones.
    """
    ranked, z = _quantiles(quantiles, fitted_levels)
    levels, fitted = check_levels(levels), check_levels(fitted_levels)
    outside = (levels < fitted[0] - 1e-12) | (levels > fitted[-1] + 1e-12)
    if outside.any():
        raise MiaError(
            f"levels = {levels[outside].tolist()} lie outside the fitted ones, {fitted[0]:g} to {fitted[-1]:g}: "
            "fit those levels, too."
        )
    if len(z) == 1:
        return np.repeat(ranked, len(levels), 0)
    wanted = np.clip(ndtri(levels), z[0], z[-1])
    above = np.clip(np.searchsorted(z, wanted, side="right"), 1, len(z) - 1)
    share = ((wanted - z[above - 1]) / (z[above] - z[above - 1]))[:, None]
    return (1 - share) * ranked[above - 1] + share * ranked[above]


def pinball_position(
    score: np.ndarray, quantiles: np.ndarray, fitted_levels: Sequence[float]
) -> np.ndarray:
    """Position of a score among its record's quantiles, in units of Phi^-1(level): the inverse of
    `pinball_thresholds`.

    It is the largest z whose threshold the score reaches, so position >= Phi^-1(level) if and only
    if score >= threshold(level).
    Beyond the fitted levels it goes on in a straight line, with the record's slope (z_last - z_first) / (q_last - q_first); a
    record whose quantiles are all equal counts as one whose they span a millionth of their size.

    Args:
        score: [N]. quantiles: [L0, N], of at least two levels. fitted_levels: rising, [L0].

    Returns:
        position [N], finite.

    Raises:
        MiaError: shapes that do not fit, fewer than two levels.
    """
    ranked, z = _quantiles(quantiles, fitted_levels, least=2)
    score = check_numbers("score", score).astype(np.float64)
    if score.shape != ranked.shape[1:]:
        raise MiaError(
            f"score has shape {score.shape} and quantiles {ranked.shape}: [N] and [L0, N] are needed."
        )
    reached = (ranked <= score).sum(0)
    above = np.clip(reached, 1, len(z) - 1)
    low, high = (np.take_along_axis(ranked, at[None], 0)[0] for at in (above - 1, above))
    inside = (reached > 0) & (reached < len(z))
    span = np.where(inside, high - low, 1.0)
    between = z[above - 1] + (z[above] - z[above - 1]) * np.where(inside, score - low, 0.0) / span
    size = np.maximum(np.abs(ranked[0]), np.abs(ranked[-1]))
    slope = (z[-1] - z[0]) / np.maximum(ranked[-1] - ranked[0], 1e-6 * np.maximum(size, 1e-6))
    below = z[0] - (ranked[0] - score) * slope
    beyond = z[-1] + (score - ranked[-1]) * slope
    position = np.where(reached == 0, below, np.where(reached == len(z), beyond, between))
    short = reached < len(z)  # of the next quantile: rounding must not say otherwise
    return np.where(
        short,
        np.minimum(position, np.nextafter(z[np.minimum(reached, len(z) - 1)], -np.inf)),
        position,
    )


class _Regression:
    """Base class of both regressions: checks, standardised scores, labels."""

    def __init__(self, model: Regressor, classes: int | None = None):
        if isinstance(model, trees.TreeConfig):
            missing = trees.missing_dependency()
        else:
            from mia_lib.attacks.quantile import networks

            if not isinstance(model, networks.NetworkConfig):
                raise MiaError(
                    f"model = {brief(model)}: a networks.NetworkConfig or a trees.TreeConfig is needed."
                )
            missing = "" if model.frozen else networks.missing_dependency(model.backbone)
        if missing:
            raise MiaError(missing)
        if classes is not None:
            check_whole("classes", classes, 2)
        self.model, self.classes, self.fitted = model, classes, None
        self.centre, self.scale = 0.0, 1.0

    @property
    def _trees(self) -> bool:
        return isinstance(self.model, trees.TreeConfig)

    def _checked(self, x, labels, score=..., of: str = ""):
        """Records, labels and scores that fit each other; the last as they are where none were given."""
        of = of and f"{of}: "
        check_order(**{f"{of}x": x, f"{of}score": score, f"{of}labels": labels})
        x = check_numbers(f"{of}x", x)
        if not x.ndim:
            raise MiaError(f"{of}x has no records: [N, ...] is needed.")
        if (labels is None) != (self.classes is None):
            raise MiaError(
                of
                + (
                    "labels were given to q(x), which sees none: leave them out, or give classes."
                    if self.classes is None
                    else f"labels are missing: with classes = {self.classes} the regression is q(x, y)."
                )
            )
        if labels is not None:
            labels = check_labels(f"{of}labels", labels, self.classes, len(x))
        if score is not ...:
            score = _scores(score, f"{of}score")
            if score.shape != x.shape[:1]:
                raise MiaError(
                    f"{of}score has length {len(score)}, x has {len(x)} records: one for each is needed."
                )
        return x, labels, score

    def _columns(self, x: np.ndarray, labels: np.ndarray | None) -> np.ndarray:
        """The table that trees see: with labels, a column a class more."""
        if labels is None or x.ndim != 2:
            return x
        return np.column_stack([x, np.eye(self.classes, dtype=np.float32)[labels]])

    def fit(
        self,
        x: np.ndarray,
        score: np.ndarray,
        labels: np.ndarray | None = None,
        validation: tuple | None = None,
    ):
        """Learn from public records.

        Args:
            x: in the form of `Dataset.x`; tables for trees; features for a network that is frozen.
            score: of the target, [N], higher for members.
            labels: int [N]; given if and only if `classes` was.
            validation: (x, score) or (x, score, labels) of other public records: the epoch, or the number of trees, with the
                lowest loss on them is kept.

        Returns:
            self.

        Raises:
            MiaError: fewer than 20 records, scores that are infinite or all equal, lengths that differ, labels missing or not
                wanted, CatBoost absent.
        """
        x, labels, score = self._checked(x, labels, score)
        if len(x) < MIN_PUBLIC:
            raise MiaError(
                f"{type(self).__name__} was given {len(x)} public records to fit: at least {MIN_PUBLIC} are needed."
            )
        centre, scale = float(score.mean()), float(score.std())
        if not scale > 1e-12 * abs(centre):
            raise MiaError(
                f"score is {centre:g} for all {len(score)} public records: there is nothing to regress."
            )
        validation_set = None
        if validation is not None:
            if not isinstance(validation, list | tuple) or len(validation) not in (2, 3):
                raise MiaError(
                    f"validation = {brief(validation)}: (x, score) or (x, score, labels) is needed."
                )
            validation_x, validation_labels, validation_score = self._checked(
                validation[0],
                validation[2] if len(validation) == 3 else None,
                validation[1],
                "validation",
            )
            validation_set = validation_x, (validation_score - centre) / scale, validation_labels
        target = (score - centre) / scale
        if self._trees:
            validation_set = validation_set and (
                self._columns(validation_set[0], validation_set[2]),
                validation_set[1],
            )
            self.fitted = trees.fit(
                self._columns(x, labels), target, self.model, self._tree_loss, validation_set
            )
        else:
            from mia_lib.attacks.quantile import networks

            loss = self._network_loss(networks)
            self.fitted = networks.fit(
                x, target, self.model, *loss, labels, self.classes, validation_set
            )
        self.centre, self.scale = centre, scale
        return self

    def _ask(self, x, labels):
        """Outputs of the fitted model, in units of standardised scores, float64 [outputs, N]."""
        if self.fitted is None:
            raise MiaError(f"{type(self).__name__} was not fitted: call fit(x, score) first.")
        x, labels, _ = self._checked(x, labels)
        if self._trees:
            return trees.predict(self.fitted, self._columns(x, labels))
        from mia_lib.attacks.quantile import networks

        return networks.predict(self.fitted, x, labels).astype(np.float64).T


@needs("output vector", "none", PUBLIC)
class GaussianQuantile(_Regression):
    """Mean and spread of the score given the record, by maximum likelihood of a Gaussian (Bertran et al. 2023, section 4).

    It minimises log sigma + (s - mu)^2 / (2 sigma^2), not the pinball loss: its false-positive rate is alpha only where
    residuals are Gaussian, so its thresholds want calibration on further public records, `marginal` of their positions.

    Args:
        model: a `networks.NetworkConfig` or a `trees.TreeConfig`; another, or one whose packages are missing, is refused.
        classes: number K of classes for q(x, y); None for q(x), which sees no label.
    """

    _tree_loss = trees.GAUSSIAN

    def _network_loss(self, networks):
        return 2, networks.gaussian_loss

    def predict(
        self, x: np.ndarray, labels: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and spread of the score, float64 [N] each, in its units."""
        mean, second = self._ask(
            x, labels
        )  # of trees the variance, of networks the logarithm of the spread
        return self.centre + self.scale * mean, self.scale * (
            np.sqrt(second) if self._trees else np.exp(second)
        )

    def thresholds(
        self, x: np.ndarray, levels: Sequence[float], labels: np.ndarray | None = None
    ) -> np.ndarray:
        """Thresholds [L, N] at levels 1 - alpha; a member has score >= threshold."""
        levels = check_levels(levels)
        return gaussian_thresholds(*self.predict(x, labels), levels)

    def position(
        self, x: np.ndarray, score: np.ndarray, labels: np.ndarray | None = None
    ) -> np.ndarray:
        """(score - mean) / spread, [N]: higher for members."""
        x, labels, score = self._checked(x, labels, score)
        return gaussian_position(score, *self.predict(x, labels))


@needs("output vector", "none", PUBLIC)
class PinballQuantile(_Regression):
    """Quantiles of the score given the record, by the pinball loss (Bertran et al. 2023, Eq. 1), at a grid of levels at once.

    Args:
        levels: 1 - alpha, rising, at least two, above 0 and below 1. model, classes: as for
            `GaussianQuantile`.
    """

    def __init__(self, model: Regressor, levels: Sequence[float], classes: int | None = None):
        super().__init__(model, classes)
        self.levels = check_levels(levels)
        if len(self.levels) < 2 or (np.diff(self.levels) <= 0).any():
            raise MiaError(
                f"levels = {self.levels.tolist()}: at least two are needed, and they must rise."
            )
        self._tree_loss = trees.quantile_loss(self.levels)

    def _network_loss(self, networks):
        return len(self.levels), partial(networks.pinball_loss, levels=self.levels)

    def predict(self, x: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
        """Quantiles of the score at the fitted levels, float64 [L0, N], in its units; they may cross."""
        return self.centre + self.scale * self._ask(x, labels)

    def thresholds(
        self, x: np.ndarray, levels: Sequence[float], labels: np.ndarray | None = None
    ) -> np.ndarray:
        """Thresholds [L, N] at levels 1 - alpha within the fitted ones, see `pinball_thresholds`."""
        return pinball_thresholds(self.predict(x, labels), self.levels, levels)

    def position(
        self, x: np.ndarray, score: np.ndarray, labels: np.ndarray | None = None
    ) -> np.ndarray:
        """Position of each score among the record's quantiles, [N], higher for members, see
        `pinball_position`."""
        x, labels, score = self._checked(x, labels, score)
        return pinball_position(score, self.predict(x, labels), self.levels)
