"""Numbers that a model gives a record: from its outputs here, from derivatives and labels in the modules beside."""

from mia_lib import _torch  # noqa: F401
from mia_lib.signals.outputs import (
    correctness,
    entropy,
    features,
    from_probabilities,
    gradient_norm,
    hinge,
    least_loss,
    logit_scaled_confidence,
    logits,
    loss,
    max_confidence,
    model_outputs,
    precise_loss,
    probabilities,
    record_gradients,
    scalars,
)

__all__ = ["correctness", "entropy", "features", "from_probabilities", "gradient_norm", "hinge", "least_loss",
           "logit_scaled_confidence", "logits", "loss", "max_confidence", "model_outputs", "precise_loss", "probabilities",
           "record_gradients", "scalars"]
