"""The banks that are published, see `mia_lib.papers.banks`: other chapters attack them, and readers do."""

from __future__ import annotations

import numpy as np

from mia_lib.papers.banks import FAST, FAST_PROBE, PROBE, RESNET, answers, queries, weights
from mia_lib.published import measurement

cifar10 = measurement("bank/cifar10", probe=FAST_PROBE, dataset="cifar10", **FAST)(answers)
cifar10_queries = measurement("bank/cifar10-queries", probe={**FAST_PROBE, "viewed": 50}, dataset="cifar10", **FAST)(queries)
cifar100 = measurement("bank/cifar100", probe={**FAST_PROBE, "viewed": 50}, dataset="cifar100", viewed=2000, **RESNET)(answers)
cifar10_small = measurement("bank/cifar10-small", probe=PROBE, dataset="cifar10")(answers)
cifar100_small = measurement("bank/cifar100-small", probe=PROBE, dataset="cifar100")(answers)
fashion_small = measurement("bank/fashion-small", probe=PROBE, dataset="fashion_mnist")(answers)
TENSORS = {"probe": PROBE, "suffix": ".safetensors"}
cifar10_weights = measurement("bank/cifar10-small-weights", **TENSORS, dataset="cifar10")(weights)
cifar100_weights = measurement("bank/cifar100-small-weights", **TENSORS, dataset="cifar100")(weights)


def networks(bank: str, models: int, **parameters) -> list:
    """The networks of a bank from its published weights, in evaluation mode: for whoever measures a further signal of them.

    Args:
        bank: such as "bank/cifar10-small". models: the first so many. parameters: as for `published.load`.
    """
    import torch

    from mia_lib import data
    from mia_lib import models as architectures
    from mia_lib.published import load

    held = load(f"{bank}-weights", models, **parameters)
    pool, found = data.load(held.parameters["dataset"]), []
    for row in range(models):
        network = architectures.build(held.parameters["architecture"], pool.shape, len(pool.classes), seed=0)
        state = {name: torch.from_numpy(array[row].astype(np.float32)) for name, array in held.arrays.items()}
        network.load_state_dict(network.state_dict() | state)
        found.append(architectures.feed(network, "-1 to 1").eval())
    return found
