"""Norms of the gradients of single records: without the gradients (`norms_of_batch`) against making them (`record_gradients`).

    python benchmarks/norms.py [--repeats 5]

Goal: at least 5x where most weights lie in linear layers, and nowhere slower. One thread; the two take turns.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time

import numpy as np
import torch

from mia_lib import models
from mia_lib.signals import outputs

CASES = {
    "leino_cnn:20,50,500": ((28, 28, 1), 130),
    "mlp:128,64": ((600,), 500),
    "strided_cnn:8,16,64": ((28, 28, 1), 300),
    "tanh_cnn": ((28, 28, 1), 200),
    "watson_cnn": ((32, 32, 3), 200),
}
CLASSES = 10


def seconds(
    network: torch.nn.Module, x: np.ndarray, y: np.ndarray, without: bool
) -> tuple[float, np.ndarray]:
    """Of all norms, and the norms."""
    start = time.perf_counter()
    if without:
        found = outputs._norms(network, x, y, "cross_entropy", "-1 to 1")
    else:
        found = np.concatenate(
            [np.linalg.norm(block, axis=1) for block in outputs.record_gradients(network, x, y)]
        )
    return time.perf_counter() - start, found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    print(f"{platform.machine()}, Python {platform.python_version()}, torch {torch.__version__}")
    for name, (shape, count) in CASES.items():
        network = outputs.in_precision(models.build(name, shape, CLASSES, seed=0), "float32")
        assert outputs.has_norms(network)
        x = (
            rng.integers(0, 256, (count, *shape)).astype(np.uint8)
            if len(shape) == 3
            else rng.normal(size=(count, *shape))
        )
        x, y = (
            x.astype(np.uint8 if len(shape) == 3 else np.float32),
            rng.integers(0, CLASSES, count),
        )
        ratios = []
        for _ in range(repeats + 1):
            (without, short), (made, long) = (seconds(network, x, y, way) for way in (True, False))
            ratios.append(made / without)
        ratios = sorted(ratios[1:])  # the first pair warms up
        print(
            f"{name:20s} {1e3 * without / count:6.2f} ms a record, {statistics.median(ratios):5.1f}x ({ratios[0]:.1f} to "
            f"{ratios[-1]:.1f}); largest difference {np.abs(short / long - 1).max():.0e}"
        )
