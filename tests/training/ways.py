"""Each way of this library onto a graphics card, with small models: what `test_cards.py` compares with the processor on a card
that is not there (`tests/cards.py`), and `tests/publish/test_doctor.py` on one where there is one."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from mia_lib.publish import doctor

TRAINED, SHORT, COMPUTED, WALKED = 2e-3, 5e-3, 1e-4, 2e-2  # allowed, relative to the largest value: see book/machines.md


@dataclass(frozen=True)
class Way:
    """From a device's name to arrays by name; `allowed`, the largest difference; `lacking`, why it cannot run here, or ""."""

    what: str
    run: Callable[[str], dict[str, np.ndarray]]
    allowed: float
    lacking: Callable[[], str] = lambda: ""


def compare(way: Way, device: str) -> doctor.Comparison:
    """A way on the processor and on `device`."""
    places = iter(("cpu", device))
    return doctor.compare(way.what, lambda: way.run(next(places)), device, way.allowed)


def _table():
    from mia_lib import data

    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 96)
    x = rng.normal(size=(96, 6)) + rng.normal(size=(3, 6))[y]
    return data.Dataset("table of the self-test", x.astype(np.float32), y, 96, ("a", "b", "c"))


def _images():
    from mia_lib import data

    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (64, 12, 12, 1)).astype(np.uint8), rng.integers(0, 3, 64)
    return data.Dataset("images of the self-test", x, y, 64, ("a", "b", "c"))


def recipes():
    """Records and a recipe each: perceptrons, convolutions with views and dropout, batch normalisation."""
    from mia_lib.training import TrainConfig

    sgd = {"optimizer": "sgd", "learning_rate": 0.02, "momentum": 0.9, "nesterov": True}
    return {"mlp": (_table(), TrainConfig("mlp:8", epochs=3, batch_size=20, schedule="cosine", **sgd)),
            "cnn": (_images(), TrainConfig("tanh_cnn:2,3,4", epochs=2, batch_size=10, augmentation="flip_crop:2")),
            "dropout": (_images(), TrainConfig("leino_cnn:2,3,8", epochs=2, batch_size=10, augmentation="flip_resized_crop",
                                               weight_decay=1e-3)),
            "resnet": (_images().take(range(24)), TrainConfig("resnet10", epochs=1, batch_size=6, optimizer="sgd",
                                                              learning_rate=0.01))}


def _loss(records, config, arrays: dict[str, np.ndarray]) -> np.ndarray:
    from mia_lib import signals
    from mia_lib.training import ensemble

    network = ensemble.rebuilt(config, records.shape, len(records.classes), arrays)
    return signals.scalars(signals.model_outputs(network, records.x), records.y, config.loss)["loss"]


def _trained(device: str, stacked: bool, precision: str = "float32") -> dict[str, np.ndarray]:
    from mia_lib import membership
    from mia_lib.training import devices
    from mia_lib.training.loop import Task, fit_group

    found = {}
    for name, (records, config) in recipes().items():
        config = replace(config, precision=precision)
        rows = [np.flatnonzero(row) for row in membership.balanced_halves(len(records), 2)]
        for part in ([[0, 1]] if stacked else [[0], [1]]):
            task = Task(records.x, records.y, 3, config, [rows[m] for m in part], part)
            for m, outcome in zip(part, fit_group(task, devices.pick(device), stacked), strict=True):
                found[f"{name} {m}"] = _loss(records, config, outcome.arrays)
    return found


def _in_bfloat16(device: str) -> dict[str, np.ndarray]:
    together = _trained(device, True, "bfloat16")
    return {f"{name}, stacked": loss for name, loss in together.items()} | _trained(device, False, "bfloat16")


def _ensemble(device: str) -> dict[str, np.ndarray]:
    """With validation, from the weights of other models, as many at once as pays."""
    from mia_lib import membership, training

    records, config = recipes()["cnn"]
    members = membership.balanced_halves(len(records), 4)
    before = training.train(records, members, replace(config, epochs=1, augmentation="none"), device=device)
    models = training.train(records, members, config, device=device, validation=~members, start=(before, [3, 2, 1, 0]))
    return {f"model {m}": _loss(records, config, models.arrays(m)) for m in range(4)} | {"history": models.history()}


def _stopped(device: str) -> dict[str, np.ndarray]:
    """A run that is stopped after an epoch, kept, and goes on in another group."""
    from mia_lib import membership
    from mia_lib.training import devices
    from mia_lib.training.loop import Group, Task

    records, config = recipes()["mlp"]
    rows = [np.flatnonzero(row) for row in membership.balanced_halves(len(records), 2)]
    task = Task(records.x, records.y, 3, config, rows, [0, 1])
    first, second = (Group(task, devices.pick(device), True) for _ in range(2))
    with devices.plain_float32():
        first.run_epoch()
        second.load(first.state())
        while second.epoch < config.epochs:
            second.run_epoch()
    return {f"model {m}": _loss(records, config, outcome.arrays) for m, outcome in enumerate(second.outcomes(0.0))}


def _bank(device: str, name: str = "cnn"):
    """Models that the processor trained, of which signals are computed on `device`."""
    from mia_lib import membership, training

    records, config = recipes()[name]
    if name == "cnn":  # as small as it gets, for Hessians are formed column by column
        config = replace(config, architecture="tanh_cnn:1,1,2")
    models = training.train(records, membership.balanced_halves(len(records), 2), config, device="cpu", workers=1).fit()
    return replace(models, device=device), records


def _signals(device: str) -> dict[str, np.ndarray]:
    from mia_lib import signals
    from mia_lib.training import devices

    found = {}
    for name in ("mlp", "cnn"):
        models, records = _bank(device, name)
        network = models.model(0).to(devices.pick(device))
        found |= {f"{name} logits": signals.logits(models, records), f"{name} loss": signals.loss(models, records),
                  f"{name} norms": signals.gradient_norm(models, records), f"{name} features": signals.features(
                      network, records.x), f"{name} gradients": np.concatenate([*signals.record_gradients(
                          network, records.x, records.y)])}
    return found


def _boundary(device: str) -> dict[str, np.ndarray]:
    from mia_lib.signals import boundary

    models, records = _bank(device, "mlp")
    found = boundary.distance(models, records, queries=300)
    return {"median": np.median(found.distance, 1)}


def _curvature(device: str) -> dict[str, np.ndarray]:
    from mia_lib.signals import curvature, outputs
    from mia_lib.training import devices
    from mia_lib.training.losses import precise_loss

    models, records = _bank(device)
    records, where = records.take(range(8)), devices.pick(device)
    network = outputs.in_precision(models.model(0).to(where), "float64")
    inputs = outputs.inputs(records.x, 0, 8, where, torch.float64)

    def loss(x, y):
        return precise_loss(network(x), y)

    found = {name: curvature.traces(models, records, name, 2, warn=False) for name in curvature.VARIANTS}
    found |= {"hutchinson": curvature.hutchinson_trace(loss, inputs, 2, y=records.y),
              "exact": curvature.exact_trace(loss, inputs, y=records.y)}
    return found | dict(zip(("trace", "norm"), curvature.between_kinks(models, records), strict=True))


def _hessian(device: str) -> dict[str, np.ndarray]:
    from mia_lib.signals import hessian
    from mia_lib.training import devices

    found, where = {}, devices.pick(device)
    for name in ("mlp", "cnn"):
        models, records = _bank(device, name)
        network = models.model(0).to(where)
        matrix = hessian.exact(network, records.x, records.y)
        spectrum = hessian.spectrum(matrix, device)
        product = hessian.operator(network, records.x, records.y)
        right = np.random.default_rng(0).normal(size=(3, len(matrix)))
        found |= {f"{name} matrix": matrix, f"{name} values": spectrum.values, f"{name} solved": hessian.conjugate_gradient(
            product, right, 10.0, tolerance=1e-9).x, f"{name} lengths": np.linalg.norm(
                spectrum.inverse(10.0).rotate(right), axis=1)}
    return found


def _regressors(device: str) -> dict[str, np.ndarray]:
    from mia_lib.attacks.quantile import networks

    records = _images().take(range(32))
    config = networks.NetworkConfig("efficientnet_lite0", hidden=(4,), epochs=1, batch_size=16, image_size=32)
    score = np.random.default_rng(0).normal(size=len(records))
    model = networks.fit(records.x, score, config, 2, networks.gaussian_loss, records.y, 3, (records.x, score, records.y))
    return {"outputs": networks.predict(model, records.x, records.y), "features": networks.features(config, records.x)}


def _lacks_backbone() -> str:
    from mia_lib.attacks.quantile import networks

    return networks.lacking("efficientnet_lite0")


def _private(device: str) -> dict[str, np.ndarray]:
    from mia_lib import membership
    from mia_lib.training import TrainConfig, private

    records = _table()
    config = TrainConfig("mlp:8", epochs=2, batch_size=16, optimizer="sgd", learning_rate=0.1)
    models = private.train(records, membership.balanced_halves(len(records), 2), config, private.Privacy(4.0), device=device)
    return {f"model {m}": _loss(records, config, models.arrays(m)) for m in range(2)} | {
        "epsilon": np.array([models.arrays(m)["epsilon"] for m in range(2)])}


def _lacks_opacus() -> str:
    from mia_lib.training import private

    return private.lacking()


WAYS = (
    Way("training one by one", lambda device: _trained(device, False), TRAINED),
    Way("training many stacked", lambda device: _trained(device, True), TRAINED),
    Way("training in bfloat16", _in_bfloat16, SHORT),
    Way("training as many at once as pays, validated, from given weights", _ensemble, TRAINED),
    Way("going on after a stop", _stopped, TRAINED),
    Way("signals from outputs and gradients", _signals, COMPUTED),
    Way("distances to the boundary", _boundary, WALKED),
    Way("curvature", _curvature, COMPUTED),
    Way("Hessians, their spectrum and solves", _hessian, COMPUTED),
    Way("regressors on a backbone from ImageNet", _regressors, WALKED, _lacks_backbone),
    Way("private training", _private, TRAINED, _lacks_opacus))
