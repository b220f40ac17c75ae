"""Models per minute of an ensemble against plain loops: one model after the other, with a DataLoader, or tight.

    python benchmarks/loop.py [--device cpu|cuda] [--repeats 3] [--only tanh_cnn]

The plain loop is how public ports of the likelihood ratio attack train their shadow models: a `Dataset` that converts one
record at a time, `DataLoader(shuffle=True)` with whichever of 0 or 2 loading processes is faster, PyTorch's own number of
threads, layers in the order a textbook has them (activation, then pooling). The tight one (`tight.py`) holds the records as
tensors where it trains and loops over batches of them. All train the same functions on the same training sets; accuracies
after training are printed side by side. Each pair runs one after the other, the ensemble into an empty store with its
processes already started.

Below each pair stand models a minute, records a second, and the rate of floating-point operations of training as a share of
what a large product of matrices reaches on the device in the same run (float32 on one core, bfloat16 on a card). On a card
with the package `airbench` its 94 % network on all of CIFAR-10 is timed beside them.

Goals: on 2 cores 2.5x for the small CNN, 6x for logistic regression and MLPs under 10,000 parameters, and on one of them
1.15x for the recipe of the small banks; on one card 20x for small CNNs and MLPs, 2.5x and 30 % of the card's rate for
ResNet-18, and `resnet9` on 25,000 records of CIFAR-10 in 2 s.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import statistics
import tempfile
import time
from functools import partial

import numpy as np
import tight
import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from mia_book.chapters.iha import costs
from mia_lib import data, membership, models, training
from mia_lib.training import devices, pool, recipe
from mia_lib.training.recipe import TrainConfig


def table(columns: int, classes: int, records: int) -> data.Dataset:
    """Gaussian records, a class each."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, records)
    x = rng.normal(size=(records, columns)) + 0.5 * rng.normal(size=(classes, columns))[y]
    return data.Dataset(
        "gaussian", x.astype(np.float32), y, records, tuple(map(str, range(classes)))
    )


def images(size: int, channels: int, records: int) -> data.Dataset:
    """Noise with a pattern for each of ten classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, records)
    x = (
        0.7 * rng.integers(0, 256, (records, size, size, channels))
        + 0.3 * rng.integers(0, 256, (10, size, size, channels))[y]
    )
    return data.Dataset("patterns", x.astype(np.uint8), y, records, tuple(map(str, range(10))))


def cases(device: str) -> dict[str, tuple]:
    """Name -> records, configuration, models of the ensemble, models of the plain loop, goal."""
    sgd = dict(optimizer="sgd", learning_rate=0.05, momentum=0.9)
    if device == "cpu":
        fashion = data.load("fashion_mnist_20k").take(np.arange(2000))
        pixels = data.Dataset(
            "pixels",
            fashion.x.reshape(2000, -1).astype(np.float32) / 255,
            fashion.y,
            2000,
            fashion.classes,
        )
        bank = TrainConfig(
            "batchnorm_cnn:24,48,96",
            epochs=4,
            batch_size=256,
            optimizer="sgd",
            learning_rate=0.15,
            momentum=0.9,
            nesterov=True,
            weight_decay=5e-4,
            schedule="one_cycle",
        )
        return {
            ALONE: (images(32, 3, 50_000), bank, 1, 1, 1.15),
            "tanh_cnn:16,32,64": (
                fashion,
                TrainConfig("tanh_cnn:16,32,64", epochs=3, learning_rate=2e-3),
                8,
                4,
                2.5,
            ),
            "logistic regression 20-2": (
                table(20, 2, 1000),
                TrainConfig("logistic_regression", epochs=40, **sgd),
                64,
                2,
                6,
            ),
            "logistic regression 784-10": (
                pixels,
                TrainConfig("logistic_regression", epochs=40, **sgd),
                64,
                2,
                6,
            ),
            "MLP 20-40-2": (
                table(20, 2, 1000),
                TrainConfig("mlp:40", epochs=40, batch_size=32, **sgd),
                64,
                2,
                6,
            ),
            "MLP 100-64-10": (
                table(100, 10, 2000),
                TrainConfig("mlp:64", epochs=40, **sgd),
                64,
                2,
                6,
            ),
            "MLP 784-6-10": (pixels, TrainConfig("mlp:6", epochs=40, **sgd), 64, 2, 6),
        }
    cifar, halves = images(32, 3, 20_000), images(32, 3, 50_000)
    large = dict(
        optimizer="sgd",
        learning_rate=0.4,
        momentum=0.9,
        nesterov=True,
        weight_decay=1e-3,
        schedule="one_cycle",
        batch_size=512,
        augmentation="flip_crop:4",
        precision="bfloat16",
    )
    short = dict(
        optimizer="sgd",
        learning_rate=0.05,
        momentum=0.9,
        batch_size=128,
        augmentation="flip_crop:4",
    )
    return {
        "tanh_cnn:32,64,128": (
            cifar,
            TrainConfig("tanh_cnn:32,64,128", epochs=3, learning_rate=1e-3),
            64,
            2,
            20,
        ),
        "watson_cnn": (cifar, TrainConfig("watson_cnn", epochs=3, **sgd), 64, 2, 20),
        "MLP 100-64-10": (
            table(100, 10, 20_000),
            TrainConfig("mlp:64", epochs=5, **sgd),
            64,
            1,
            20,
        ),
        "resnet18, batches of 128": (
            cifar,
            TrainConfig("resnet18", epochs=2, precision="bfloat16", **short),
            2,
            1,
            2.5,
        ),
        "resnet18, batches of 512": (halves, TrainConfig("resnet18", epochs=4, **large), 2, 1, 2.5),
        "resnet9, the bank's recipe": (
            halves,
            TrainConfig("resnet9:32,64,256,256", epochs=20, **large),
            4,
            1,
            2.5,
        ),
    }


THREADS = torch.get_num_threads()
ALONE = "batchnorm_cnn:24,48,96 on one core"  # the recipe of the small banks, against a loop of one thread


class Subset(TorchDataset):
    """Some records, one at a time."""

    def __init__(self, records: data.Dataset, rows: np.ndarray):
        self.records, self.rows = records, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int):
        x, y = self.records.x[self.rows[number]], self.records.y[self.rows[number]]
        if x.ndim == 3:
            return torch.from_numpy(x).permute(2, 0, 1).float().div(127.5).sub(1.0), y
        return torch.from_numpy(x), y


def textbook(config: TrainConfig, shape: tuple, classes: int) -> nn.Module:
    """The network with each activation before its pooling."""
    network = models.build(config.architecture, shape, classes, seed=0)
    layers = list(network.body.children()) if isinstance(network.body, nn.Sequential) else []
    for k in range(len(layers) - 1):
        if isinstance(layers[k], nn.MaxPool2d) and isinstance(layers[k + 1], nn.Tanh | nn.ReLU):
            layers[k], layers[k + 1] = layers[k + 1], layers[k]
    return nn.Sequential(*layers, network.head) if layers else network


def optimizer_of(network: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    if config.optimizer == "adam":
        return torch.optim.Adam(network.parameters(), config.learning_rate)
    return torch.optim.SGD(
        network.parameters(),
        config.learning_rate,
        config.momentum,
        nesterov=config.nesterov,
        weight_decay=config.weight_decay,
    )


def in_memory(
    records: data.Dataset,
    members: np.ndarray,
    config: TrainConfig,
    device: torch.device,
    _: int = 0,
    first: bool = True,
) -> tuple:
    """As `plain`, by the tight loop; images with their channels `first`, as PyTorch has them, or last."""
    started, right = time.perf_counter(), []
    x, y = (
        models.to_input(torch.from_numpy(records.x)).to(device),
        torch.from_numpy(records.y).to(device),
    )
    x = x.contiguous() if first else x
    for row in members:
        network = textbook(config, records.shape, len(records.classes)).to(device)
        rows = torch.from_numpy(np.flatnonzero(row)).to(device)
        right.append(
            tight.train(
                network,
                optimizer_of(network, config),
                x[rows],
                y[rows],
                config.epochs,
                config.batch_size,
                lambda views: recipe.augment(views, config.augmentation),
            )
        )
    return time.perf_counter() - started, float(np.mean(right))


def plain(
    records: data.Dataset,
    members: np.ndarray,
    config: TrainConfig,
    device: torch.device,
    loaders: int,
) -> tuple:
    """Seconds, and accuracy on the training set in the last epoch, of training models one after the other."""
    started, right = time.perf_counter(), []
    for row in members:
        network = textbook(config, records.shape, len(records.classes)).to(device)
        optimizer = optimizer_of(network, config)
        loader = DataLoader(
            Subset(records, np.flatnonzero(row)),
            config.batch_size,
            shuffle=True,
            num_workers=loaders,
            pin_memory=device.type == "cuda",
            persistent_workers=loaders > 0,
        )
        for _ in range(config.epochs):
            correct = 0
            for x, y in loader:
                x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
                outputs = network(recipe.augment(x, config.augmentation))
                loss = torch.nn.functional.cross_entropy(outputs, y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                correct += (outputs.argmax(1) == y).sum().item()
        right.append(correct / row.sum())
    return time.perf_counter() - started, float(np.mean(right))


def ours(
    records: data.Dataset,
    members: np.ndarray,
    config: TrainConfig,
    device: torch.device,
    workers: int | None,
) -> tuple:
    """The same of `training.train`."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MIA_CACHE"] = folder
        ensemble = training.train(records, members, config, device=str(device), workers=workers)
        started = time.perf_counter()
        ensemble.fit()
        seconds = time.perf_counter() - started
        return seconds, float(ensemble.history()[:, -1, 1].mean())


def dense_rate(device: torch.device) -> float:
    """Floating-point operations a second of a large product of matrices: bfloat16 on a card, float32 on a core."""
    card = devices.is_card(device)
    size, kind, rounds = (8192, torch.bfloat16, 20) if card else (1024, torch.float32, 5)
    a, best = torch.randn(size, size, device=device).to(kind), 0.0
    before = torch.get_num_threads()
    torch.set_num_threads(before if card else 1)
    for _ in range(3):
        devices.wait(device)
        started = time.perf_counter()
        for _ in range(rounds):
            a @ a
        devices.wait(device)
        best = max(best, rounds * 2 * size**3 / (time.perf_counter() - started))
    torch.set_num_threads(before)
    return best


def airbench() -> None:
    """The fast network of the package `airbench` (Jordan 2024), where it is there."""
    if importlib.util.find_spec("airbench") is None:
        print("airbench is not installed: its 94 % on CIFAR-10 was not timed here")
        return
    from airbench import train94

    train94(verbose=False)  # compiles
    started = time.perf_counter()
    accuracy = train94(verbose=False)
    print(
        f"airbench94 on all 50,000 records of CIFAR-10: {time.perf_counter() - started:.2f} s, accuracy {accuracy}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    device = devices.pick(arguments.device)
    # On a core in a process of its own: what it leaves in this one's memory would make the plain loop faster.
    peak = (
        dense_rate(device)
        if devices.is_card(device)
        else pool.default_workers() * pool.pool(1).submit(dense_rate, device).result()
    )
    for name, (records, config, many, few, goal) in cases(device.type).items():
        if arguments.only not in name:
            continue
        members = membership.random_halves(len(records), many + many % 2)[:many]
        alone, loaders = name == ALONE, 0
        workers, peers = (
            (1 if alone else None),
            [
                (in_memory, f"in memory, goal {goal}x" if alone else "in memory"),
                (partial(in_memory, first=False), "in memory, channels last"),
            ],
        )
        torch.set_num_threads(1 if alone else THREADS)
        ours(
            records,
            members[: 2 * pool.default_workers()],
            TrainConfig(config.architecture, epochs=1),
            device,
            workers,
        )
        if not alone:
            loaders = min((0, 2), key=lambda n: plain(records, members[:1], config, device, n)[0])
            peers.insert(0, (plain, f"{loaders} loaders, goal {goal}x"))
        for peer, said in peers:
            ratios, accuracies, spent = [], [], []
            for _ in range(arguments.repeats):
                theirs, accuracy = peer(records, members[:few], config, device, loaders)
                mine, same = ours(records, members, config, device, workers)
                ratios.append((theirs / few) / (mine / many))
                accuracies.append((same, accuracy))
                spent.append((mine / many, theirs / few))
            mine, other = np.mean(accuracies, 0)
            each, theirs = np.median(spent, 0)
            print(
                f"{name:27} {statistics.median(ratios):6.2f}x ({min(ratios):.2f} to {max(ratios):.2f}) the plain loop, "
                f"{said}; training accuracy {mine:.3f}, plain {other:.3f}; {each:.3f} s a model, plain {theirs:.3f}",
                flush=True,
            )
        trained = int(members[0].sum())
        rate = costs.training(config, records.shape, len(records.classes), trained) / each
        share = rate / (peak / pool.default_workers() if alone else peak)
        print(
            f"{'':27} {60 / each:.1f} models a minute, {config.epochs * trained / each:,.0f} records a second, "
            f"{rate / 1e9:,.0f} GFLOP/s, {share:.0%} of the device's",
            flush=True,
        )
    if devices.is_card(device):
        airbench()
    print(
        f"Python {platform.python_version()}, torch {torch.__version__}, {devices.describe(device)}, "
        f"{pool.default_workers()} processes; plain loop with {torch.get_num_threads()} threads"
    )
