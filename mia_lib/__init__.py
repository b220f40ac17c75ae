"""Membership inference attacks, from training the models to the figures of five papers.

Modules are imported when first used, so that `import mia_lib` is quick and a reader without Torch can still run
attacks and metrics on recorded signals.
"""

import os
from importlib import import_module

# The same sums wherever arrays lie in memory, on every processor with AVX2: Intel's library, which PyTorch multiplies matrices
# with, promises that only when asked before its first product. It costs nothing that could be measured.
os.environ.setdefault("MKL_CBWR", "AVX2,STRICT")

__version__ = "0.1.0"
__all__ = ["attacks", "boundary", "claims", "curvature", "data", "dp", "hessian", "membership", "metrics", "models",
           "plotting", "results", "signals", "store", "training"]


def __getattr__(name: str):
    if name in __all__:
        return import_module(f"mia_lib.{name}")
    raise AttributeError(f"module 'mia_lib' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
