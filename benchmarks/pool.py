"""The pool of processes against one process: seconds to train the same models, as a ratio from one run.

    python benchmarks/pool.py [--models 8] [--repeats 3] [--workers 2]

Goal on 2 cores: at least 1.7 times one process.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time

import torch

from mia_lib import data, membership, training

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--models", type=int, default=8)
parser.add_argument("--repeats", type=int, default=3)
parser.add_argument("--workers", type=int, default=2)


def seconds(workers: int, models: int) -> float:
    """Wall time of training `models` small CNNs into an empty cache, the pool already warm."""
    game = data.load("fashion_mnist_20k").take(range(2000))
    config = training.TrainConfig("tanh_cnn:16,32,64", epochs=5, learning_rate=2e-3)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MIA_CACHE"] = folder
        ensemble = training.train(
            game, membership.balanced_halves(2000, models), config, workers=workers
        )
        start = time.perf_counter()
        ensemble.fit()
        return time.perf_counter() - start


if __name__ == "__main__":
    arguments = parser.parse_args()
    for workers in (1, arguments.workers):
        seconds(workers, 2 * workers)  # starts the processes and warms the kernels up
    ratios = [
        seconds(1, arguments.models) / seconds(arguments.workers, arguments.models)
        for _ in range(arguments.repeats)
    ]
    print(
        f"pool of {arguments.workers} against 1: {statistics.median(ratios):.2f}x "
        f"({min(ratios):.2f} to {max(ratios):.2f} over {len(ratios)} pairs), {arguments.models} models"
    )
    print(
        f"Python {platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} cores, {platform.machine()}"
    )
