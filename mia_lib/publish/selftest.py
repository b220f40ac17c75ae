"""What `mia doctor --device` runs: each way of this library onto a graphics card, compared with the processor.

Small models, a minute or two in all. What ran where is kept in data/cards.json, and book/machines.md says by name what has and
what has never run on a card.
"""

from __future__ import annotations

import datetime
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from mia_lib import published
from mia_lib.errors import MiaError
from mia_lib.publish import marks
from mia_lib.publish.parameters import find_root

BEGIN = "<!-- written by `mia sync` from data/cards.json -->"
TRAINED, SHORT, COMPUTED, WALKED = 2e-3, 5e-3, 1e-4, 2e-2  # allowed, relative to the largest value: see book/machines.md


@dataclass(frozen=True)
class Check:
    """One way onto a card.

    Attributes:
        what: in words, its name in data/cards.json.
        paths: the code that it runs there.
        run: from a device's name, and a few models that the processor trained where it needs any, to arrays by name.
        allowed: the largest difference, relative to the largest value of each array.
        lacking: why it cannot run here, or "".
    """

    what: str
    paths: tuple[str, ...]
    run: Callable[[str], dict[str, np.ndarray]]
    allowed: float
    lacking: Callable[[], str] = lambda: ""


@dataclass(frozen=True)
class Row:
    """What a check found; `apart` is None where it could not run, for the reason in `said`: it failed, or something lacks."""

    what: str
    paths: tuple[str, ...]
    apart: float | None
    allowed: float
    seconds: float
    said: str = ""
    lacks: bool = False

    @property
    def good(self) -> bool:
        """Whether the card agrees with the processor."""
        return self.apart is not None and self.apart <= self.allowed

    def text(self) -> str:
        """One line of the table."""
        if self.apart is None:
            return f"{'without' if self.lacks else 'FAILED':8}{self.what}: {self.said}"
        return (f"{'ok' if self.good else 'DIFFERS':8}{self.what}: apart by {self.apart:.1e}, allowed {self.allowed:.0e}; "
                f"{self.seconds:.1f} s")


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


def _recipes():
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
    from mia_lib.training.backends.loop import fit_group

    found = {}
    for name, (records, config) in _recipes().items():
        config = replace(config, precision=precision)
        rows = [np.flatnonzero(row) for row in membership.balanced_halves(len(records), 2)]
        for part in ([[0, 1]] if stacked else [[0], [1]]):
            for m, outcome in zip(part, fit_group(records.x, records.y, [rows[m] for m in part], 3, config, part,
                                                  devices.pick(device), stacked), strict=True):
                found[f"{name} {m}"] = _loss(records, config, outcome.arrays)
    return found


def _in_bfloat16(device: str) -> dict[str, np.ndarray]:
    together = _trained(device, True, "bfloat16")
    return {f"{name}, stacked": loss for name, loss in together.items()} | _trained(device, False, "bfloat16")


def _ensemble(device: str) -> dict[str, np.ndarray]:
    """With validation, from the weights of other models, as many at once as pays."""
    from mia_lib import membership, training

    records, config = _recipes()["cnn"]
    members = membership.balanced_halves(len(records), 4)
    before = training.train(records, members, replace(config, epochs=1, augmentation="none"), device=device)
    models = training.train(records, members, config, device=device, validation=~members, start=(before, [3, 2, 1, 0]))
    return {f"model {m}": _loss(records, config, models.arrays(m)) for m in range(4)} | {"history": models.history()}


def _stopped(device: str) -> dict[str, np.ndarray]:
    """A run that is stopped after an epoch, kept, and goes on in another group."""
    from mia_lib import membership
    from mia_lib.training import devices
    from mia_lib.training.backends.loop import Group

    records, config = _recipes()["mlp"]
    rows = [np.flatnonzero(row) for row in membership.balanced_halves(len(records), 2)]
    first, second = (Group(records.x, records.y, rows, 3, config, [0, 1], devices.pick(device), True) for _ in range(2))
    with devices.plain_float32():
        first.run_epoch()
        second.load(first.state())
        while second.epoch < config.epochs:
            second.run_epoch()
    return {f"model {m}": _loss(records, config, outcome.arrays) for m, outcome in enumerate(second.outcomes(0.0))}


def _bank(device: str, name: str = "cnn"):
    """Models that the processor trained, of which signals are computed on `device`."""
    from mia_lib import membership, training

    records, config = _recipes()[name]
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
    from mia_lib.signals import curvature

    models, records = _bank(device)
    records = records.take(range(8))
    found = {name: curvature.of(models, records, name, 2, warn=False) for name in curvature.ESTIMATORS}
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

    records = _images()
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
    return {f"model {m}": _loss(records, config, models.arrays(m)) for m in range(2)} | {"epsilon": models.epsilon()}


def _lacks_opacus() -> str:
    from mia_lib.training import private

    return private.lacking()


def _probe(name: str, device: str) -> dict[str, np.ndarray]:
    """The numbers that a measurement gives at its probe; who was in which model is no question to a card."""
    found = published.catalogue()[name].run_probe()
    return {of: array for of, array in found.items() if array.dtype.kind == "f"}


CHECKS = (
    Check("training one by one", ("training.backends.loop",), lambda device: _trained(device, False), TRAINED),
    Check("training many stacked", ("training.backends.loop", "training.stacking"), lambda device: _trained(device, True),
          TRAINED),
    Check("training in bfloat16", ("training.backends.loop", "training.stacking"), _in_bfloat16, SHORT),
    Check("training as many at once as pays, validated, from given weights",
          ("training.backends.gpu", "training.ensemble"), _ensemble, TRAINED),
    Check("going on after a stop", ("training.backends.loop",), _stopped, TRAINED),
    Check("signals from outputs and gradients", ("signals.outputs",), _signals, COMPUTED),
    Check("distances to the boundary", ("signals.boundary",), _boundary, WALKED),
    Check("curvature", ("signals.curvature",), _curvature, COMPUTED),
    Check("Hessians, their spectrum and solves", ("signals.hessian",), _hessian, COMPUTED),
    Check("regressors on a backbone from ImageNet", ("attacks.quantile.networks",), _regressors, WALKED, _lacks_backbone),
    Check("private training", ("training.private",), _private, TRAINED, _lacks_opacus),
    *(Check(f"{name} at its probe", (one.function.__module__.removeprefix("mia_lib."),), partial(_probe, name), WALKED)
      for name, one in published.catalogue().items()))


def card(device: str) -> str:
    """The card's name for `compare`, once it is there.

    Raises:
        MiaError: no card, or a name that is none.
    """
    from mia_lib.training import devices

    where = devices.pick(device)
    if not devices.is_card(where):
        raise MiaError(f"device = {device!r} is the processor, with which a card is compared: give 'cuda' or 'cuda:NUMBER'.")
    return device


def compare(device: str, checks: tuple[Check, ...] = CHECKS) -> Iterator[Row]:
    """Run every check on the processor and on `device`, each into an empty store, and yield what it found.

    Args:
        device: as in `devices.pick`; "cpu" compares the processor with itself.
        checks: which.
    """
    for check in checks:
        began, why = time.perf_counter(), check.lacking()
        if why:
            yield Row(check.what, check.paths, None, check.allowed, 0.0, why, True)
            continue
        try:
            found = []
            for name in ("cpu", device):
                with _alone(name):
                    found.append(check.run(name))
        except (RuntimeError, TypeError, NotImplementedError, MiaError) as error:
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            yield Row(check.what, check.paths, None, check.allowed, time.perf_counter() - began, said)
            continue
        yield Row(check.what, check.paths, _apart(*found), check.allowed, time.perf_counter() - began)


@contextmanager
def _alone(device: str):
    """An empty store, and `device` where none is said."""
    before = {name: os.environ.get(name) for name in ("MIA_CACHE", "MIA_DEVICE", "MIA_CLUSTER")}
    with tempfile.TemporaryDirectory(prefix="mia-doctor-") as folder:
        os.environ |= {"MIA_CACHE": folder, "MIA_DEVICE": device}
        os.environ.pop("MIA_CLUSTER", None)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def _apart(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> float:
    """The largest difference of two sets of arrays, relative to the largest value of each array."""
    most = 0.0
    for name, values in one.items():
        difference = np.abs(np.asarray(other[name], float) - np.asarray(values, float)).max(initial=0.0)
        largest = max(np.abs(np.asarray(values, float)).max(initial=0.0), 1e-12)
        most = max(most, difference / largest if np.isfinite(difference) and np.isfinite(largest) else float("inf"))
    return most


# ------------------------------------------------------------------------------------------------- what ran on a card


def keep(device: str, rows: list[Row], root: Path | None = None) -> Path:
    """Note in data/cards.json what ran on this machine's card; the page of machines follows with `mia sync`."""
    import torch

    from mia_lib.training import devices

    path = find_root(root) / "data" / "cards.json"
    noted = json.loads(path.read_text(encoding="utf-8"))
    noted.append({"card": devices.describe(devices.pick(device)), "torch": torch.__version__,
                  "date": datetime.date.today().isoformat(), "good": [row.what for row in rows if row.good],
                  "bad": [row.what for row in rows if row.apart is not None and not row.good]})
    path.write_text(json.dumps(noted, indent=1) + "\n", encoding="utf-8")
    return path


def page(root: Path | None = None) -> str:
    """Markdown of what has, and what has never run on a card."""
    noted = json.loads((find_root(root) / "data" / "cards.json").read_text(encoding="utf-8"))
    on = {check.what: [one for one in noted if check.what in one["good"]] for check in CHECKS}
    never = [check for check in CHECKS if not on[check.what]]
    lines = []
    for check in CHECKS:
        runs = "; ".join(f"{one['card']}, {one['date']}" for one in on[check.what]) or "never"
        lines.append(f"| {check.what} | {', '.join(f'`{path}`' for path in check.paths)} | {runs} |")
    said = ("**Nothing of this has ever run on a card.**" if len(never) == len(CHECKS) else
            f"**Never run on a card:** {', '.join(check.what for check in never)}." if never else
            "Everything has run on a card.")
    head = ["| what | code in `mia_lib` | agreed with the processor on |", "| --- | --- | --- |"]
    never_here = "The card of the tests has neither CUDA graphs nor bfloat16."
    return "\n".join([f"{said} {never_here}", "", *head, *lines])


def sync(check: bool = False, root: Path | None = None) -> list[Path]:
    """Write that part of book/machines.md anew where it is out of step; its path where it was.

    Args:
        check: write nothing.
    """
    path = find_root(root) / "book" / "machines.md"
    return marks.between(path, BEGIN, page(root), check) if path.is_file() else []
