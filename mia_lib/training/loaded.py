"""Models whose weights are given, such as those of a published bank, in the place of trained ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from mia_lib import store
from mia_lib.errors import MiaError
from mia_lib.training.ensemble import Ensemble


@dataclass(frozen=True, eq=False)
class Loaded(Ensemble):
    """M models that are looked up and never trained.

    Attributes:
        weights: number of the model -> its `state_dict` by name, tensors that hold no floating numbers left out.
    """

    weights: dict[int, dict[str, np.ndarray]] = field(default_factory=dict, repr=False)

    def spec(self, index: int) -> dict:
        """What determines model `index`: its weights, besides what it was trained on."""
        own = self.weights[self._numbers([index])[0]]
        return {**super().spec(index), "weights": {name: store.fingerprint(array) for name, array in sorted(own.items())}}

    def missing(self) -> list[int]:
        """None: there is nothing to train."""
        return []

    def arrays(self, index: int) -> dict[str, np.ndarray]:
        """Weights of model `index` by name."""
        start = {name: tensor.numpy() for name, tensor in self.untrained().state_dict().items()}
        return start | {name: array.astype(np.float32) for name, array in self.weights[self._numbers([index])[0]].items()}


def with_weights(models: Ensemble, weights: Sequence[dict[str, np.ndarray]]) -> Loaded:
    """The models with these weights.

    Args:
        models: M of them, described by `training.train`; none is trained.
        weights: of each, its `state_dict` by name; the counts of batches of batch normalisation may be left out.

    Raises:
        MiaError: weights of another number of models, or of another architecture.
    """
    if len(weights) != len(models):
        raise MiaError(f"weights of {len(weights)} models, for an ensemble of {len(models)}: one a model is needed.")
    shapes = {name: tuple(tensor.shape) for name, tensor in models.untrained().state_dict().items()
              if tensor.is_floating_point()}
    for own in weights:
        if (own_shapes := {name: array.shape for name, array in own.items()}) != shapes:
            wrong = sorted(name for name in own_shapes.keys() | shapes.keys() if own_shapes.get(name) != shapes.get(name))
            raise MiaError(f"weights do not fit {models.config.architecture}: {', '.join(wrong)} differ in name or shape.")
    numbers = range(len(models)) if models.numbers is None else models.numbers
    same = {attribute.name: getattr(models, attribute.name) for attribute in fields(models)}
    return Loaded(**same, weights=dict(zip(numbers, weights, strict=True)))
