"""What might help, with its price: the recipe with one thing changed, trained on the same members.

Each retrained model is judged by the loss alone, as the retrained recipe beside it is: references of another recipe would
compare it with what it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mia_lib import metrics, signals, training
from mia_lib.audit.given import Given, reseeded
from mia_lib.errors import MiaError
from mia_lib.metrics import Interval
from mia_lib.training import TrainConfig, private

EPSILON = 8.0  # of the private model
DECAY = 5e-3  # weight decay that is tried, or ten times the recipe's
AS_IT_IS = "the recipe as it is"


@dataclass(frozen=True)
class Change:
    """A change of the recipe.

    Attributes:
        name: what it is. config: the recipe with it. cost: how many times the recipe's time. privacy: of DP-SGD, else None.
    """

    name: str
    config: TrainConfig
    cost: float
    privacy: private.Privacy | None = None


@dataclass(frozen=True)
class Price:
    """What a change brought.

    Attributes:
        name: of the change. accuracy: on the non-members. auc: of the loss as an attack. less: AUC of the recipe as it is,
            less this one. price: accuracy of the recipe as it is, less this one. failed: why it could not be trained, or "".
    """

    name: str
    accuracy: Interval | None = None
    auc: Interval | None = None
    less: Interval | None = None
    price: Interval | None = None
    failed: str = ""


def changes(given: Given) -> list[Change]:
    """The recipe as it is, and with one thing changed at a time, where that can be."""
    recipe = reseeded(given.recipe)
    found = [Change(AS_IT_IS, recipe, 1.0)]
    decay = max(DECAY, 10 * recipe.weight_decay)
    found.append(Change(f"weight decay {decay:g}", replace(recipe, weight_decay=decay), 1.0))
    if recipe.epochs > 1:
        fewer = max(1, recipe.epochs // 3)
        found.append(Change(f"{fewer} in place of {recipe.epochs} epochs", replace(recipe, epochs=fewer), 1 / 3))
    if given.pool.is_image and recipe.augmentation == "none":
        found.append(Change("augmentation flip_crop:2", replace(recipe, augmentation="flip_crop:2"), 1.5))
    if not private.lacking() and recipe.epochs and recipe.batch_size <= len(given.members) and recipe.precision == "float32":
        found.append(Change(f"DP-SGD, epsilon {EPSILON:g}", recipe, 5.0, private.Privacy(EPSILON)))
    return found


def measured(given: Given) -> list[Price]:
    """What each change brought, the recipe as it is first."""
    everyone, found, base, level = np.ones((1, len(given.members)), bool), [], None, given.confidence
    for change in changes(given):
        try:
            if change.privacy:
                models = private.train(given.members, everyone, change.config, change.privacy, label=change.name)
            else:
                models = training.train(given.members, everyone, change.config, label=change.name)
            loss = signals.loss(models, given.pool)[0].astype(np.float64)
            right = signals.correctness(models, given.pool)[0][~given.inside]
        except MiaError as problem:  # diverged, or layers that have no private gradient
            found.append(Price(change.name, failed=str(problem).split(". ")[0]))
            continue
        if base is None:
            base = loss, right
        accuracy = metrics.t_interval(right.astype(float), level, covers="records only", bounds=(0.0, 1.0))
        auc = metrics.bootstrap("auc", -loss, given.inside, level=level, draws=400, seed=given.seed)
        less = price = None
        if base[0] is not loss:
            less = metrics.compare("auc", -base[0], -loss, given.inside, level=level, draws=400, seed=given.seed)
            price = metrics.t_interval(base[1].astype(float) - right, level, covers="records only", bounds=(-1.0, 1.0))
        found.append(Price(change.name, accuracy, auc, less, price))
    return found


def plain(price: Price) -> dict:
    """As data for JSON."""
    return {name: {"value": one.value, "low": one.low, "high": one.high} if isinstance(one, Interval) else one
            for name, one in ((name, getattr(price, name)) for name in Price.__dataclass_fields__)}


def settings(given: Given) -> dict:
    """The recipe as plain data."""
    return {} if given.recipe is None else given.recipe.spec()
