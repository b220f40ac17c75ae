"""Many models from one design: how each is trained, and where."""

from mia_lib import _torch  # noqa: F401
from mia_lib.training.ensemble import Ensemble, fit, open_records, train
from mia_lib.training.recipe import TrainConfig

__all__ = ["Ensemble", "TrainConfig", "fit", "open_records", "train"]
