"""Numbers that a model gives a record: from its outputs here, from derivatives and labels in the modules beside.

What asks networks is imported when first used; signals from outputs that are given need no Torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from mia_lib.signals.from_outputs import (
    from_function,
    from_probabilities,
    log_odds,
    loss_of,
    scalars,
)

if TYPE_CHECKING:
    from mia_lib.signals.outputs import (
        correctness,
        features,
        gradient_norm,
        least_loss,
        logit_scaled_confidence,
        logits,
        loss,
        map_models,
        model_outputs,
        precise_loss,
        probabilities,
        record_gradients,
    )

__all__ = [
    "correctness",
    "features",
    "from_function",
    "from_probabilities",
    "gradient_norm",
    "least_loss",
    "log_odds",
    "logit_scaled_confidence",
    "logits",
    "loss",
    "loss_of",
    "map_models",
    "model_outputs",
    "precise_loss",
    "probabilities",
    "record_gradients",
    "scalars",
]


def __getattr__(name: str):
    if name in __all__:
        import_module("mia_lib._torch")
        return getattr(import_module("mia_lib.signals.outputs"), name)
    raise AttributeError(f"module 'mia_lib.signals' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
