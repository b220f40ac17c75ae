"""What the chapter on quantile regression measures: regressions of a target's log odds on images (Bertran et al. 2023)."""

from __future__ import annotations

import numpy as np

from mia_lib.errors import MiaError, check_whole, choose
from mia_lib.published import catalogue, measurement


def regressions(index: range, bank: str, models: dict | None = None, label: bool = True, backbone: str = "efficientnet_lite0",
                image_size: int | None = 128, hidden: list | None = None, epochs: int = 10, batch_size: int = 64,
                learning_rate: float = 1e-4, weight_decay: float = 1e-3, seed: int = 0) -> dict[str, np.ndarray]:
    """Mean and spread of a model's log odds given the record, learned from the records that did not train it.

    The paper's split: a target is trained on half of the training records; a Gaussian regression is fitted to its log odds on
    the other half and their mirror images, but for a tenth of the records, which chooses the epoch; non-members are the test
    records.

    Args:
        index: of the targets, which are models of the bank.
        bank: a measurement whose models are the targets, such as "bank/cifar10". models: its parameters other than the usual.
        label: whether the regression is told the record's label, q(x, y).
        backbone, image_size, hidden, epochs, batch_size, learning_rate, weight_decay: of the regression, as for
            `attacks.quantile.networks.NetworkConfig`; hidden [512, 512] when None, as the paper found.

    Returns:
        judged: bool [T, N], the records that the regression was not fitted to: members, test records, and those that chose its
        epoch. mean, and log_spread, its logarithm: float16 [T, N'] of the judged ones, in their order. The epoch's are
        `calibrating`, bool [T, N'].
    """
    from mia_lib import data
    from mia_lib.attacks.quantile.networks import lacking
    from mia_lib.training import devices
    from mia_lib.training.backends import pool as processes

    check_whole("seed", seed, 0)
    if missing := lacking(backbone):  # before the bank is measured
        raise MiaError(missing)
    targets = catalogue()[choose("bank", bank, catalogue())](index=index, **(models or {}))
    size, records = targets.parameters["records"], data.load(targets.parameters["dataset"])
    records = records if size is None else records.take(np.arange(size))
    how = {"backbone": backbone, "hidden": (512, 512) if hidden is None else tuple(hidden), "epochs": epochs,
           "batch_size": batch_size, "learning_rate": learning_rate, "weight_decay": weight_decay, "image_size": image_size}
    tasks = [(records, margin, members, label, {**how, "seed": 10_000 * seed + number})
             for number, margin, members in zip(index, targets.margin, targets.members, strict=True)]
    found: dict[int, dict] = {}
    if devices.is_card(devices.pick()):
        found = {position: _regression(*task) for position, task in enumerate(tasks)}
    else:
        processes.run_tasks(_regression, tasks, found.__setitem__, "quantile regressions")
    return {name: np.stack([found[position][name] for position in range(len(tasks))]) for name in found[0]}


def _regression(records, margin: np.ndarray, members: np.ndarray, label: bool, how: dict) -> dict[str, np.ndarray]:
    """The arrays of one target."""
    from mia_lib.attacks.quantile import GaussianQuantile
    from mia_lib.attacks.quantile.networks import NetworkConfig

    public = np.flatnonzero((np.arange(len(records)) < records.n_train) & ~members)
    chosen, fitted = np.split(np.random.default_rng(how["seed"]).permutation(public), [-(-len(public) // 10)])
    own = [(records.x[rows], margin[rows], *([records.y[rows]] if label else [])) for rows in (fitted, chosen)]
    other = records.take(fitted).mirrored().x  # a target that was trained with mirror images says the same of them
    own[0] = (np.concatenate([own[0][0], other]), *(np.tile(array, 2) for array in own[0][1:]))
    regression = GaussianQuantile(NetworkConfig(**how), len(records.classes) if label else None)
    regression.fit(*own[0], validation=own[1])
    judged = np.ones(len(records), bool)
    judged[fitted] = False
    mean, spread = regression.predict(records.x[judged], records.y[judged] if label else None)
    return {"mean": mean.astype(np.float16), "log_spread": np.log(spread).astype(np.float16), "judged": judged,
            "calibrating": np.isin(np.flatnonzero(judged), chosen)}


TINY = {"dataset": "fashion_mnist_20k", "architecture": "batchnorm_cnn:6,12,24", "records": 200, "epochs": 2, "batch_size": 64,
        "learning_rate": 0.05}
PROBE = {"index": range(1, 3), "bank": "bank/cifar10-small", "models": TINY, "backbone": "strided_cnn:4,4,8",
         "image_size": None, "hidden": [8], "epochs": 2, "learning_rate": 0.001}
cifar10 = measurement("quantile/cifar10", probe=PROBE, block=8, chunk=2, bank="bank/cifar10")(regressions)
cifar100 = measurement("quantile/cifar100", probe=PROBE, block=8, chunk=2, bank="bank/cifar100")(regressions)
