"""Many models from one design: how each is trained, and where.

What needs PyTorch is imported when first used, so that `EDITION` can be read without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mia_lib.training.ensemble import Ensemble, fit, open_records, train
    from mia_lib.training.recipe import TrainConfig

EDITION = 1  # of all published measurements: raise it when the same configuration gives other models than before
__all__ = ["EDITION", "Ensemble", "TrainConfig", "fit", "open_records", "train"]


def __getattr__(name: str):
    if name in __all__:
        import_module("mia_lib._torch")
        return getattr(
            import_module(f"mia_lib.training.{'recipe' if name == 'TrainConfig' else 'ensemble'}"),
            name,
        )
    raise AttributeError(f"module 'mia_lib.training' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
