"""Ways of this library onto a graphics card that no probe of a measurement takes, with small models: what `test_cards.py`
compares with the processor on a card that is not there (`tests/cards.py`), and `tests/pages/test_doctor.py` on one where
there is one."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from mia_book.pages import doctor
from mia_lib import data, membership, models, signals, training
from mia_lib.attacks.quantile import networks
from mia_lib.signals import curvature, hessian, outputs
from mia_lib.training import TrainConfig, devices, ensemble
from mia_lib.training.loop import Group, Task, fit_group
from mia_lib.training.losses import precise_loss

# allowed, relative to the largest value: see book/machines.md
TRAINED, SHORT, COMPUTED, WALKED = 2e-3, 5e-3, 1e-4, 2e-2


@dataclass(frozen=True)
class Way:
    """A computation by a device's name, which gives arrays by name.

    Attributes:
        allowed: the largest difference.
        missing_dependency: why it cannot run here, or "".
    """

    what: str
    run: Callable[[str], dict[str, np.ndarray]]
    allowed: float
    missing_dependency: Callable[[], str] = lambda: ""


def compare(way: Way, device: str) -> doctor.Finding:
    """A way on the processor and on `device`."""
    places = iter(("cpu", device))
    return doctor.compare(way.what, lambda: way.run(next(places)), device, way.allowed)


def _table() -> data.Dataset:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 96)
    x = rng.normal(size=(96, 6)) + rng.normal(size=(3, 6))[y]
    return data.Dataset("table of the self-test", x.astype(np.float32), y, 96, ("a", "b", "c"))


def _images() -> data.Dataset:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (64, 12, 12, 1)).astype(np.uint8), rng.integers(0, 3, 64)
    return data.Dataset("images of the self-test", x, y, 64, ("a", "b", "c"))


def recipes() -> dict[str, tuple[data.Dataset, TrainConfig]]:
    """Records and a recipe each: perceptrons, convolutions with views and dropout, batch normalisation."""
    sgd = {"optimizer": "sgd", "learning_rate": 0.02, "momentum": 0.9, "nesterov": True}
    return {
        "mlp": (_table(), TrainConfig("mlp:8", epochs=3, batch_size=20, schedule="cosine", **sgd)),
        "cnn": (
            _images(),
            TrainConfig("tanh_cnn:2,3,4", epochs=2, batch_size=10, augmentation="flip_crop:2"),
        ),
        "dropout": (
            _images(),
            TrainConfig(
                "leino_cnn:2,3,8",
                epochs=2,
                batch_size=10,
                augmentation="flip_resized_crop",
                weight_decay=1e-3,
            ),
        ),
        "resnet": (
            _images().take(range(24)),
            TrainConfig(
                "resnet9:2,3,4,5", epochs=1, batch_size=6, optimizer="sgd", learning_rate=0.01
            ),
        ),
    }


def _loss(records, config, arrays: dict[str, np.ndarray]) -> np.ndarray:
    network = ensemble.rebuilt(config, records.shape, len(records.classes), arrays)
    return signals.scalars(signals.model_outputs(network, records.x), records.y, config.loss)[
        "loss"
    ]


def _trained(device: str, stacked: bool, precision: str = "float32") -> dict[str, np.ndarray]:
    found = {}
    for name, (records, config) in recipes().items():
        config = replace(config, precision=precision)
        rows = [np.flatnonzero(row) for row in membership.balanced_halves(len(records), 2)]
        for part in [[0, 1]] if stacked else [[0], [1]]:
            task = Task(records.x, records.y, 3, config, [rows[m] for m in part], part)
            for m, outcome in zip(
                part, fit_group(task, devices.pick(device), stacked), strict=True
            ):
                found[f"{name} {m}"] = _loss(records, config, outcome.arrays)
    return found


def _ensemble(device: str) -> dict[str, np.ndarray]:
    """With validation, from the weights of other models, as many at once as pays."""
    records, config = recipes()["cnn"]
    members = membership.balanced_halves(len(records), 4)
    before = training.train(
        records, members, replace(config, epochs=1, augmentation="none"), device=device
    )
    trained = training.train(
        records, members, config, device=device, validation=~members, start=(before, [3, 2, 1, 0])
    )
    return {f"model {m}": _loss(records, config, trained.arrays(m)) for m in range(4)} | {
        "history": trained.history()
    }


def _stopped(device: str) -> dict[str, np.ndarray]:
    """A run that is stopped after an epoch, kept, and goes on in another group."""
    records, config = recipes()["mlp"]
    rows = [np.flatnonzero(row) for row in membership.balanced_halves(len(records), 2)]
    task = Task(records.x, records.y, 3, config, rows, [0, 1])
    first, second = (Group(task, devices.pick(device), True) for _ in range(2))
    with devices.plain_float32():
        first.run_epoch()
        second.load(first.state())
        while second.epoch < config.epochs:
            second.run_epoch()
    return {
        f"model {m}": _loss(records, config, outcome.arrays)
        for m, outcome in enumerate(second.outcomes(0.0))
    }


def _derivatives(device: str) -> dict[str, np.ndarray]:
    """What no measurement asks of a card: traces of the Hessian in the input, and products with that in the parameters."""
    records, where = _table().take(range(8)), devices.pick(device)
    built = models.build("mlp:4,3", records.shape, 3, seed=0).to(where)
    network = outputs.in_precision(built, "float64")
    inputs = outputs.inputs(records.x, 0, 8, where, torch.float64)

    def loss(x, y):
        return precise_loss(network(x), y)

    vectors = np.random.default_rng(0).normal(size=(3, models.parameter_count(built)))
    return {
        "hutchinson": curvature.hutchinson_trace(loss, inputs, 2, y=records.y),
        "exact": curvature.exact_trace(loss, inputs, y=records.y),
        "products": hessian.operator(built, records.x, records.y)(vectors),
    }


def _regressors(device: str) -> dict[str, np.ndarray]:
    records = _images().take(range(32))
    config = networks.NetworkConfig(
        "efficientnet_lite0", hidden=(4,), epochs=1, batch_size=16, image_size=32
    )
    score = np.random.default_rng(0).normal(size=len(records))
    model = networks.fit(
        records.x,
        score,
        config,
        2,
        networks.gaussian_loss,
        records.y,
        3,
        (records.x, score, records.y),
    )
    return {
        "outputs": networks.predict(model, records.x, records.y),
        "features": networks.features(config, records.x),
    }


WAYS = (
    Way("training one by one", lambda device: _trained(device, False), TRAINED),
    Way("training many stacked", lambda device: _trained(device, True), TRAINED),
    Way("training in bfloat16", lambda device: _trained(device, True, "bfloat16"), SHORT),
    Way("training as many at once as pays, validated, from given weights", _ensemble, TRAINED),
    Way("going on after a stop", _stopped, TRAINED),
    Way("derivatives of a network", _derivatives, COMPUTED),
    Way(
        "regressors on a backbone from ImageNet",
        _regressors,
        WALKED,
        lambda: networks.missing_dependency("efficientnet_lite0"),
    ),
)
