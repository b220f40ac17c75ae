"""Membership inference attacks, from training the models to the figures of five papers.

Modules are imported when first used, so that `import mia_lib` is quick and a reader without Torch can still run
attacks and metrics on recorded signals.
"""

import os
import warnings
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING


def _processor() -> set[str]:
    """What the processor says that it can, as Linux spells it; nothing on other systems."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return set(next((line for line in lines if line.startswith("flags")), "").split())
    except OSError:
        return set()


# The same sums on every processor of Intel's with AVX2, whatever else it can and wherever arrays lie in memory: each library
# picks its code by the processor, and vectors of another length add up in another order (benchmarks/arithmetic.py). PyTorch
# reads its variables when it first computes, NumPy when it is imported. NumPy's linear algebra is left as it is: it moves by
# 1e-14, and a decomposition would take 1.3 times as long.
ARITHMETIC = {
    "MKL_CBWR": "AVX2,STRICT",  # PyTorch's matrix products
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # its convolutions
    "ATEN_CPU_CAPABILITY": "avx2",  # its other functions
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",  # NumPy's functions
}
# The first two take what they are told for a limit; the others, told of what is not there, would crash or complain.
_NEEDED = {"ATEN_CPU_CAPABILITY": "avx2", "NPY_DISABLE_CPU_FEATURES": "avx512f"}
for _name, _value in ARITHMETIC.items():
    if _NEEDED.get(_name, "") in {"", *_processor()}:
        os.environ.setdefault(_name, _value)

LIBRARY = Path(__file__).resolve().parent
PACKAGES: list[Path] = []  # whose code counts: this one, and what is built on it
BEGAN: dict[Path, tuple[int, int]] = {}  # their modules as this process found them, times and sizes


def add_package(folder: Path) -> None:
    """Count the code of a package, which `mia_lib.store` then knows: a module that is edited later does not run as its file
    says. No clock is asked, for files can be from one that goes ahead."""
    PACKAGES.append(folder)
    for path in folder.rglob("*.py"):
        if path.is_file():
            BEGAN[path] = path.stat().st_mtime_ns, path.stat().st_size


add_package(LIBRARY)
__version__ = "1.0.0"
__all__ = [
    "attacks",
    "audit",
    "curvature",
    "data",
    "drawing",
    "game",
    "hessian",
    "membership",
    "metrics",
    "models",
    "published",
    "signals",
    "store",
    "training",
]
_MODULE_PATHS = {"curvature": "signals.curvature", "hessian": "signals.hessian"}

if TYPE_CHECKING:
    from mia_lib.signals import curvature, hessian  # noqa: F401


MOVED = {  # names that were here, for a release more -> where they are
    "claims": "mia_book.evidence.claims",
    "plotting": "mia_lib.drawing",
    "results": "mia_book.evidence.results",
}


def __getattr__(name: str):
    if name in MOVED:
        warnings.warn(f"mia_lib.{name} is {MOVED[name]} now.", FutureWarning, stacklevel=2)
        return import_module(MOVED[name])
    if name in ("signals", "training"):
        import_module("mia_lib.processes").prepare()
    if name in __all__:
        return import_module(f"mia_lib.{_MODULE_PATHS.get(name, name)}")
    raise AttributeError(f"module 'mia_lib' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
