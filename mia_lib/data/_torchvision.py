"""Import torchvision, also where its compiled extension does not fit the installed torch.

A torchvision wheel built for CUDA beside a CPU-only torch cannot load its extension. torchvision means to
go on without, yet its import then registers shape functions for two operators that only the extension
declares, and fails with `operator torchvision::nms does not exist`. Declaring the two mends the import;
data sets and models need neither.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from mia_lib.errors import MiaError

_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_library = None  # torch forgets the declarations when this object goes


def _extension_loads(folder: Path) -> bool:
    import torch

    for path in [*folder.glob("_C*.so"), *folder.glob("_C*.pyd")]:
        try:
            torch.ops.load_library(path)
            return True
        except (ImportError, OSError):
            continue
    return False


def import_torchvision():
    """Return the module torchvision.

    Raises:
        MiaError: it is not installed.
    """
    global _library
    if "torchvision" not in sys.modules:
        spec = find_spec("torchvision")
        if spec is None:
            raise MiaError("torchvision is not installed; downloads of image sets and the models of ResNet and ConvNeXt need "
                           "it. Install the version in constraints.txt.")
        if _library is None and not _extension_loads(Path(spec.origin).parent):
            import torch

            _library = torch.library.Library("torchvision", "FRAGMENT")
            for operator in ("nms", "qnms"):
                _library.define(operator + _SIGNATURE)
    import torchvision

    return torchvision
