"""Up to what size networks train faster stacked than one by one on a CPU: the rule in `backends.loop`.

    python benchmarks/crossover.py [--repeats 3]

For each network: seconds of a step of one model alone over seconds of a model's share of a step when G are stacked, both on
one thread, data gathered and all.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time

import numpy as np
import torch

from mia_lib import models
from mia_lib.training.loop import STACKED_BELOW, Group, Task
from mia_lib.training.recipe import TrainConfig

CASES = [  # architecture, shape of a record, classes, batch size
    ("logistic_regression", (20,), 2, 16),
    ("mlp:40", (20,), 2, 16),
    ("mlp:122", (61,), 2, 32),
    ("mlp:32", (100,), 10, 64),
    ("sigmoid_regression", (784,), 2, 128),
    ("mlp:6", (784,), 10, 64),
    ("mlp:6", (784,), 10, 256),
    ("mlp:64", (100,), 10, 64),
    ("mlp:210", (105,), 2, 64),
    ("mlp:64", (784,), 10, 64),
    ("mlp:256", (784,), 10, 64),
    ("mlp:1024", (784,), 10, 64),
    ("tanh_cnn:4,8,16", (28, 28, 1), 10, 64),
    ("tanh_cnn:16,32,64", (28, 28, 1), 10, 64),
]


def seconds(case: tuple, together: int, stacked: bool) -> float:
    """Of a step for one model."""
    architecture, shape, classes, batch = case
    rng = np.random.default_rng(0)
    records = 2000 if len(shape) == 3 else 10_000
    x = rng.integers(0, 255, (records, *shape)).astype(np.uint8 if len(shape) == 3 else np.float32)
    rows = [rng.permutation(records)[: records // 2] for _ in range(together)]
    config = TrainConfig(architecture, batch_size=batch, optimizer="sgd", momentum=0.9)
    y = rng.integers(0, classes, records)
    group = Group(
        Task(x, y, classes, config, rows, list(range(together))), torch.device("cpu"), stacked
    )
    orders = torch.stack([torch.randperm(group.size) for _ in rows])
    views = torch.zeros(together, batch, 0)
    done, start = -3, 0.0
    while done < 8 or time.perf_counter() - start < 0.15:
        if done == 0:
            start = time.perf_counter()
        begin = (done + 3) * batch % (group.size - batch)
        group.step(group._rows.gather(1, orders[:, begin : begin + batch]), views)
        done += 1
    return (time.perf_counter() - start) / done / together


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    print(f"The rule stacks networks without convolutions under {STACKED_BELOW:,} parameters.")
    for case in CASES:
        parameters = models.parameter_count(models.build(*case[:3], seed=0))
        found = []
        for together in (8, 32) if "cnn" not in case[0] else (4,):
            pairs = [
                seconds(case, 1, False) / seconds(case, together, True) for _ in range(repeats)
            ]
            found.append(
                f"{together} stacked {statistics.median(pairs):5.2f}x ({min(pairs):.2f} to {max(pairs):.2f})"
            )
        print(
            f"{case[0]:20} {parameters:7,} parameters, batch {case[3]:3}: {', '.join(found)}",
            flush=True,
        )
    print(
        f"Python {platform.python_version()}, torch {torch.__version__}, one thread, {platform.machine()}"
    )
