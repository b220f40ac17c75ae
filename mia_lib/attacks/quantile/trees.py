"""Boosted trees by CatBoost, for tables: classifiers that are attacked, and regressions of scores.

CatBoost comes with the extra `tabular` and is imported when something is fitted. All fits take one thread, since runs use
the processors for several at once, and give the same trees for the same seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from mia_lib.checks import check_labels, check_numbers
from mia_lib.errors import MiaError, check_count, check_range, check_whole

GAUSSIAN = "RMSEWithUncertainty"  # CatBoost's loss
L2 = 3.0  # penalty on leaves: CatBoost's own, which where it is said turns CatBoost's choice of a learning rate off


def is_installed(package: str) -> bool:
    """True if `package` can be imported."""
    try:
        return find_spec(package) is not None
    except ValueError:  # a module without a specification, or None in its place
        return False


def missing_dependency() -> str:
    """The reason why boosted trees cannot be fitted here; "" if they can."""
    missing = "CatBoost is not installed: the extra tabular brings it, pip install -e '.[tabular]'"
    return "" if is_installed("catboost") else missing


@dataclass(frozen=True)
class TreeConfig:
    """Settings by which boosted trees are fitted.

    Attributes:
        iterations: trees.
        depth: of each, 1 to 16.
        learning_rate: above 0, to 1; None for 0.03, CatBoost's where the penalty on leaves is said, as here.
        seed: of what is random in it.

    Raises:
        MiaError: a value out of range.
    """

    iterations: int = 300
    depth: int = 4
    learning_rate: float | None = None
    seed: int = 0

    def __post_init__(self):
        check_count("iterations", self.iterations)
        check_whole("depth", self.depth, 1, 16)
        check_whole("seed", self.seed, 0)
        if (
            self.learning_rate is not None
            and not 0 < check_range("learning_rate", self.learning_rate) <= 1
        ):
            raise MiaError(
                f"learning_rate = {self.learning_rate!r} is out of range: allowed is above 0, to 1, or "
                "None for 0.03."
            )


def _arguments(config: TreeConfig) -> dict:
    arguments = dict(
        iterations=int(config.iterations),
        depth=int(config.depth),
        random_seed=int(config.seed),
        l2_leaf_reg=L2,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    )
    if config.learning_rate is not None:
        arguments["learning_rate"] = float(config.learning_rate)
    return arguments


def _catboost():
    if missing_dependency():
        raise MiaError(missing_dependency())
    import catboost

    return catboost


def _fitted(model, x, target, **options):
    """The model, fitted. CatBoost's own errors are raised as `MiaError`, for they cannot leave a
    process that did not import them from their package."""
    import catboost

    try:
        return model.fit(x, target, **options)
    except catboost.CatBoostError as error:
        raise MiaError(
            f"CatBoost could not fit {len(x)} records with {model.get_params()}: {error}"
        ) from None


def _table(x, columns: int | None = None) -> np.ndarray:
    x = check_numbers("x", x)
    if x.ndim != 2 or not len(x) or (columns is not None and x.shape[1] != columns):
        wanted = "[N, D]" if columns is None else f"[N, {columns}]"
        raise MiaError(
            f"x has shape {x.shape}: boosted trees need a table {wanted}, not empty. Images become one by "
            "Dataset.as_table."
        )
    return x


def classifier_logits(
    x: np.ndarray, y: np.ndarray, classes: int, config: TreeConfig, *others: np.ndarray
) -> list[np.ndarray]:
    """Train a classifier on records [N, D] with labels int [N], and ask it.

    Two classes are told apart by one number s, CatBoost's log odds; their logits are 0 and s.

    Returns:
        logits of each table [M, D] of `others`, float64 [M, K].

    Raises:
        MiaError: no CatBoost, shapes that do not fit, or a class without a training record, to which CatBoost gives minus
            infinity.
    """
    catboost, x = _catboost(), _table(x)
    check_range("classes", classes, 2)
    others = [_table(table, x.shape[1]) for table in others]
    y = check_labels("y", y, classes, len(x))
    lost = np.setdiff1d(np.arange(classes), y)
    if len(lost):
        raise MiaError(
            f"y has no record of {len(lost)} of {classes} classes, the first is {lost[0]}: each needs one."
        )
    loss = (
        {"loss_function": "Logloss"}
        if classes == 2
        else {"loss_function": "MultiClass", "classes_count": classes}
    )
    model = _fitted(catboost.CatBoostClassifier(**loss, **_arguments(config)), x, y)
    raw = [
        np.asarray(model.predict(table, prediction_type="RawFormulaVal"), np.float64)
        for table in others
    ]
    return [np.stack([np.zeros(len(s)), s], 1) for s in raw] if classes == 2 else raw


def fit(
    x: np.ndarray,
    target: np.ndarray,
    config: TreeConfig,
    loss: str,
    validation: tuple | None = None,
):
    """A CatBoost model for `predict` that is fitted to targets [N] from a table [N, D]. With
    validation records (x, target), it has the number of trees that is best on them. No CatBoost, no
    table and what CatBoost cannot fit are refused.

    Args:
        loss: CatBoost's name: `GAUSSIAN` for mean and variance by the likelihood of a Gaussian, or as `quantile_loss` says.
    """
    catboost, x, options = _catboost(), _table(x), {}
    if validation is not None:
        options = {
            "eval_set": (_table(validation[0], x.shape[1]), validation[1]),
            "use_best_model": True,
        }
    return _fitted(
        catboost.CatBoostRegressor(loss_function=loss, **_arguments(config)), x, target, **options
    )


def quantile_loss(levels: Sequence[float]) -> str:
    """CatBoost's name for the pinball loss of two or more quantiles."""
    return f"MultiQuantile:alpha={','.join(repr(float(level)) for level in levels)}"


def predict(model, x: np.ndarray) -> np.ndarray:
    """Predictions of a model of `fit` for records [N, D]: mean and variance [2, N], or quantiles
    [L, N], which may cross."""
    return np.asarray(model.predict(_table(x, len(model.feature_names_))), np.float64).T
