"""What an audit came from: versions, fingerprints, seed, date."""

from __future__ import annotations

import platform
import sys
import time

import numpy as np
import scipy
import sklearn
import torch

from mia_lib import store
from mia_lib.audit import remedies
from mia_lib.audit.given import Given


def gather(given: Given, seconds: float) -> dict:
    """As plain data; the model is known by the hash of its outputs, and of its weights where there are some."""
    sets = {"members": given.members, "non_members": given.non_members, "public": given.public}
    said = given.target.scalars(given.pool, given.loss)["outputs"]
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "seconds": round(seconds, 1), "seed": given.seed,
        "minutes": given.minutes, "confidence": given.confidence, "delta": given.delta, "recipe": remedies.settings(given),
        "versions": {"mia_lib": sys.modules["mia_lib"].__version__, "python": platform.python_version(),
                     "numpy": np.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__,
                     "torch": torch.__version__},
        "code": store.code_of(("attacks", "audit", "metrics")),
        "model": {"kind": given.target.kind, "outputs": given.target.outputs, "parameters": given.target.parameters,
                  "weights": given.target.fingerprint, "answers": store.fingerprint(said)},
        "data": {name: {"records": len(one), "fingerprint": one.fingerprint} for name, one in sets.items() if one is not None},
    }
