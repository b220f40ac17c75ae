"""What might help, with its price: the recipe with one thing changed, trained on the same members.

Each retrained model is judged by the loss alone, as the retrained recipe beside it is: references of another recipe would
compare it with what it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mia_lib import metrics, signals, training
from mia_lib.audit.inputs import AuditInputs, reseeded
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

    @property
    def effect(self) -> str:
        """What the change brought, in words."""
        if self.failed:
            return f"could not be trained: {self.failed}"
        if self.less is None:
            return "what the others are compared with"
        leak = ("this training leaked less" if self.less.low > 0 else "this training leaked more" if self.less.high < 0 else
                "no change in the leak that could be told")
        cost = ("cost accuracy" if self.price.low > 0 else "gained accuracy" if self.price.high < 0 else
                "cost no accuracy that could be told")
        return f"{leak}, {cost}"


def list_changes(inputs: AuditInputs) -> list[Change]:
    """The recipe as it is, and with one thing changed at a time, where that can be."""
    recipe = reseeded(inputs.recipe)
    decay = max(DECAY, 10 * recipe.weight_decay)
    changes = [Change(AS_IT_IS, recipe, 1.0),
               Change(f"weight decay {decay:g}", replace(recipe, weight_decay=decay), 1.0)]
    if recipe.epochs > 1:
        fewer = max(1, recipe.epochs // 3)
        changes.append(Change(f"{fewer} in place of {recipe.epochs} epochs", replace(recipe, epochs=fewer), 1 / 3))
    if inputs.pool.is_image and recipe.augmentation == "none":
        changes.append(Change("augmentation flip_crop:2", replace(recipe, augmentation="flip_crop:2"), 1.5))
    if not private.lacking() and recipe.epochs and recipe.batch_size <= len(inputs.members) and recipe.precision == "float32":
        changes.append(Change(f"DP-SGD, epsilon {EPSILON:g}", recipe, 5.0, private.Privacy(EPSILON)))
    return changes


def measure_changes(inputs: AuditInputs) -> list[Price]:
    """What each change brought, the recipe as it is first."""
    everyone, prices, base, level = np.ones((1, len(inputs.members)), bool), [], None, inputs.options.confidence
    how = {"level": level, "draws": 400, "seed": inputs.options.seed}
    for change in list_changes(inputs):
        try:
            if change.privacy:
                models = private.train(inputs.members, everyone, change.config, change.privacy, label=change.name)
            else:
                models = training.train(inputs.members, everyone, change.config, label=change.name)
            loss = signals.loss(models, inputs.pool)[0].astype(np.float64)
            right = signals.correctness(models, inputs.pool)[0][~inputs.inside]
        except MiaError as problem:  # diverged, or layers that have no private gradient
            prices.append(Price(change.name, failed=str(problem).split(". ")[0]))
            continue
        accuracy = metrics.t_interval(right.astype(float), level, covers="records only", bounds=(0.0, 1.0))
        auc = metrics.bootstrap("auc", -loss, inputs.inside, **how)
        less = price = None
        if base is None:
            base = loss, right
        else:
            less = metrics.compare("auc", -base[0], -loss, inputs.inside, **how)
            price = metrics.t_interval(base[1].astype(float) - right, level, covers="records only", bounds=(-1.0, 1.0))
        prices.append(Price(change.name, accuracy, auc, less, price))
    return prices
