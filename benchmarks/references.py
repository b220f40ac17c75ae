"""Minutes for 64 reference models of the small CNN on half of CIFAR-10 each, 30 epochs, on one graphics card.

    python benchmarks/references.py [--device cuda] [--models 64] [--epochs 30]

Goal: at most 5 minutes on one H200-class card. Noise in the shape of CIFAR-10 takes its place where it is not here; that
changes no time.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time

import numpy as np
import torch

from mia_lib import data, membership, training
from mia_lib.errors import MiaError
from mia_lib.training import devices

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=30)
    arguments = parser.parse_args()
    device = devices.pick(arguments.device)
    try:
        records = data.load("cifar10").take(np.arange(50_000))
    except MiaError:
        rng = np.random.default_rng(0)
        pixels, labels = (
            rng.integers(0, 256, (50_000, 32, 32, 3)).astype(np.uint8),
            rng.integers(0, 10, 50_000),
        )
        records = data.Dataset("noise", pixels, labels, 50_000, tuple("0123456789"))
    config = training.TrainConfig("tanh_cnn:32,64,128", epochs=arguments.epochs, batch_size=128)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MIA_CACHE"] = folder
        members = membership.balanced_halves(len(records), arguments.models)
        started = time.perf_counter()
        history = training.train(records, members, config, device=str(device)).history()
        minutes = (time.perf_counter() - started) / 60
    print(
        f"{arguments.models} models, {arguments.epochs} epochs on half of {records.name}: {minutes:.2f} minutes (goal 5 "
        f"on an H200 for 64 and 30), training accuracy {history[:, -1, 1].mean():.3f}"
    )
    print(
        f"Python {platform.python_version()}, torch {torch.__version__}, {devices.describe(device)}"
    )
