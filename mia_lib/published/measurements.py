"""Measurements by name: found, made, published, and held to what they mean by their probes."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import io
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mia_lib import progress, store
from mia_lib.errors import MiaError, check_whole, choose
from mia_lib.published import pieces as disk
from mia_lib.published.pieces import Bank, Piece, folder

if TYPE_CHECKING:
    import pandas as pd

_served: ContextVar[list[Piece] | None] = ContextVar("served", default=None)  # what a measurement in progress was made from


@dataclass(frozen=True, eq=False)
class Measurement:
    """A function of plain parameters that returns named arrays, a row a model, for the models `index`.

    Attributes:
        name: ROOM/NAME, the same for ever.
        function: `function(index: range, **parameters) -> dict of arrays [len(index), ...]`.
        edition: raised when what it measures changes.
        probe: tiny parameters, with `index`, at which a test measures again.
        defaults: parameters at which this measurement takes a function that several share.
        block: models in a published file. chunk: models that are measured, and kept, together.
        suffix: of its files: ".npz", or ".safetensors" for weights.
    """

    name: str
    function: Callable[..., dict[str, np.ndarray]]
    edition: int
    probe: dict
    defaults: dict
    block: int = 32
    chunk: int = 8
    suffix: str = ".npz"

    # -------------------------------------------------------------------------------------------------------------- finding

    def __call__(self, models: int | None = None, *, index: range | None = None, **parameters) -> Bank:
        """The arrays of models 0 to `models` - 1, or of those in `index`: published, cached, or measured now.

        Raises:
            MiaError: an unknown parameter or one that is no plain value; what measuring raises.
        """
        index, parameters = range(check_whole("models", models, 1)) if index is None else index, self.complete(parameters)
        if self.lacking(index, parameters):
            self.measure(index, parameters)
        return self._collect(index, parameters)

    def _collect(self, index: Sequence[int], parameters: dict) -> Bank:
        """The arrays of models that sound pieces have."""
        rows: dict[int, dict] = {}
        used = []
        for piece in self.available(parameters):
            wanted = (set(index) & set(piece.index)) - rows.keys()
            if wanted and piece.is_sound():
                rows |= {number: arrays for number, arrays in piece.rows().items() if number in wanted}
                used.append(piece)
        if (served := _served.get()) is not None:
            served.extend(used)
        return Bank(self.name, parameters, disk.stack(rows, index), [piece.manifest for piece in used])

    def complete(self, parameters: Mapping) -> dict:
        """All parameters by name, those left out at their defaults; plain data.

        Raises:
            MiaError: one that is not known, or is no plain value; one without a default that is missing.
        """
        known = [name for name in inspect.signature(self.function).parameters if name != "index"]
        for name in parameters:
            choose(f"parameter of {self.name}", name, known)
        whole = {**self.usual(), **parameters}
        if lacking := [name for name in known if name not in whole]:
            raise MiaError(f"{self.name} needs {', '.join(lacking)}.")
        try:
            return json.loads(json.dumps({name: whole[name] for name in known}, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise MiaError(f"parameters of {self.name}: {error}. Numbers, texts, lists of them, True, False and None are "
                           "plain values.") from error

    def usual(self) -> dict:
        """The defaults of its parameters."""
        signature = inspect.signature(self.function).parameters
        return {**{name: one.default for name, one in signature.items() if one.default is not one.empty}, **self.defaults}

    def identity(self) -> dict:
        """What a manifest must say for its piece to be served."""
        from mia_lib import training

        return {"name": self.name, "edition": self.edition, "training_edition": training.EDITION}

    def answers(self, manifest: Mapping, parameters: dict) -> bool:
        """Whether a piece is of this measurement as it is now, at these parameters, and what it was made from still stands."""
        try:
            same = self.identity().items() <= manifest.items() and self.complete(manifest["parameters"]) == parameters
        except MiaError:  # of a parameter that there is no more
            return False
        return same and manifest.get("own", {}) == _own_content(parameters) and _parents_stand(manifest)

    def available(self, parameters: dict) -> list[Piece]:
        """The pieces that answer: published ones first, then of the working cache those made by the code there is now."""
        cached = [piece for piece in disk.pieces(self.name, disk.cache()) if piece.manifest["code"] == self._code()]
        return [piece for piece in [*disk.pieces(self.name, folder()), *cached] if self.answers(piece.manifest, parameters)]

    def _code(self) -> str:
        """Hash of the code that measures: the rooms below, and the module of the function."""
        return store.code_of(store.PIECES, Path(inspect.getfile(self.function)))

    def lacking(self, index: Sequence[int], parameters: dict, *, published: bool = False) -> list[int]:
        """Numbers in `index` of which there is no sound piece, or none that is published."""
        there = {number for piece in self.available(parameters) if piece.is_published or not published
                 if piece.is_sound() for number in piece.index}
        return [number for number in index if number not in there]

    # ------------------------------------------------------------------------------------------------------------ measuring

    def measure(self, index: range, parameters: dict, until: float | None = None, each: float | None = None) -> None:
        """Measure the models in `index` that no piece has, into the working cache, a chunk at a time.

        Args:
            index: of the models. parameters: complete ones.
            until: `time.monotonic` by which it ends: no chunk is begun that would not be done by then.
            each: seconds a model, where no manifest tells.
        """
        with store.lock({"kind": "piece", "name": self.name, "parameters": parameters}, what=f"measuring {self.name}"):
            lacking = self.lacking(index, parameters)
            if lacking:
                progress.say(self.cost_in_words(len(lacking), parameters))
            for run in _runs(lacking, self.chunk):
                estimate = self.seconds(len(run), parameters) or len(run) * (each or 0)
                if until is not None and time.monotonic() + estimate > until:
                    return
                self._measure_chunk(run, parameters)

    def _measure_chunk(self, index: range, parameters: dict) -> None:
        began, code, token = time.perf_counter(), self._code(), _served.set([])
        try:
            with store.seconds_of_others() as others:
                arrays = {name: np.asarray(array) for name, array in self.function(index, **parameters).items()}
            parents = _served.get()
        finally:
            _served.reset(token)
        seconds = time.perf_counter() - began + sum(others.values()) / disk.processes()
        for name, array in arrays.items():
            if array.shape[:1] != (len(index),):
                raise MiaError(f"{self.name} gave {name} of shape {array.shape} for {len(index)} models: a row a model is "
                               "needed.")
        own, of = _own_content(parameters), [
            {key: piece.manifest[key] for key in ("name", "edition", "index", "sha256")} for piece in parents]
        manifest = {**self.identity(), "parameters": parameters, "index": [index.start, index.stop], **disk.circumstances(),
                    "seconds": round(seconds, 1), "code": code,
                    **({"own": own} if own else {}), **({"parents": of} if of else {})}
        store.check_unedited(code)
        disk.write(disk.cache(), self._stem(index, parameters), self.suffix, arrays, manifest)

    def _stem(self, index: range, parameters: dict) -> str:
        """A readable name for a file: the measurement's, what of its parameters is not the default, the models."""
        usual = self.usual()
        slug = re.sub(r"[^\w.,=-]+", "-", "-".join(f"{k}-{v}" for k, v in parameters.items() if v != usual.get(k, ...)))
        if len(slug) > 60:
            slug = f"{slug[:50]}-{hashlib.sha256(slug.encode()).hexdigest()[:8]}"
        return "-".join(filter(None, [self.name, slug, f"{index.start:03}-{index.stop - 1:03}"]))

    # ----------------------------------------------------------------------------------------------------------- publishing

    def publish(self, index: range, parameters: Mapping, until: float | None = None, each: float | None = None) -> list[Path]:
        """Measure what is not published of the models in `index`, and write it into `folder()`, a block as soon as it is done.

        The probe must give what it gave when the first block of this edition was published.

        Args:
            index, until, each: as for `measure`. parameters: any of them.

        Returns:
            the manifests that were written.

        Raises:
            MiaError: the probe fails; a file or the whole would be too large; what it was made from is not published.
        """
        parameters, written = self.complete(parameters), []
        self.keep_probe()
        for block in _runs(index, self.block):
            if self.lacking(block, parameters, published=True):
                self.measure(block, parameters, until, each)
                written += self._publish_block(block, parameters)
        return written

    def _publish_block(self, block: range, parameters: dict) -> list[Path]:
        """What the working cache has of a block and is not published, a file for each row of models that follow each other."""
        written = []
        with store.lock({"kind": "publishing", "name": self.name, "parameters": parameters}, what=f"publishing {self.name}"):
            absent = self.lacking(block, parameters)
            for run in _runs([n for n in self.lacking(block, parameters, published=True) if n not in absent], self.block):
                bank = self._collect(run, parameters)
                parents = [parent for manifest in bank.manifests for parent in manifest.get("parents", [])]
                for parent in parents:
                    if not _stands(parent, folder()):
                        raise MiaError(f"{self.name} was measured from {parent['name']}, which is not published. Publish that "
                                       "first.")
                seconds = sum(manifest["seconds"] * len({*run} & {*range(*manifest["index"])}) / len(range(*manifest["index"]))
                              for manifest in bank.manifests)
                manifest = {**bank.manifests[0], "index": [run.start, run.stop], "seconds": round(seconds, 1)}
                manifest |= {"parents": parents} if parents else {}
                manifest.pop("code", None)  # what it was, git knows
                written.append(disk.write(folder(), self._stem(run, parameters), self.suffix, bank.arrays, manifest).path)
        return written

    # --------------------------------------------------------------------------------------------------------------- probes

    @property
    def probe_path(self) -> Path:
        """Where the numbers lie that its probe gave."""
        return folder() / "probes" / f"{self.name}.npz"

    def run_probe(self) -> dict[str, np.ndarray]:
        """The arrays at the probe's parameters."""
        parameters = self.complete({name: value for name, value in self.probe.items() if name != "index"})
        return {name: np.asarray(array) for name, array in self.function(self.probe["index"], **parameters).items()}

    def check_probe(self) -> str:
        """What of the probe is not as it was when the first block of this edition was published; "" when all is.

        Raises:
            MiaError: of this edition no probe was kept.
        """
        kept = self._kept_probe()
        if kept is None:
            raise MiaError(f"No probe of edition {self.edition} of {self.name} is kept: `mia publish {self.name}` keeps one.")
        return differences(kept, self.run_probe())

    def keep_probe(self) -> None:
        """Keep what the probe gives, once for each edition.

        Raises:
            MiaError: it gives something else than was kept.
        """
        if self._kept_probe() is None:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **self.run_probe(), editions=self._editions())
            store.write(self.probe_path, buffer.getvalue())
        elif different := self.check_probe():
            raise MiaError(f"The probe of {self.name} does not give what it gave when it was first published: {different}. If "
                           "its meaning was changed, raise its edition; its pieces are then measured anew.")

    def _kept_probe(self) -> dict[str, np.ndarray] | None:
        if not self.probe_path.is_file():
            return None
        with np.load(self.probe_path, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        return arrays if np.array_equal(arrays.pop("editions"), self._editions()) else None

    def _editions(self) -> np.ndarray:
        return np.array([value for value in self.identity().values() if isinstance(value, int)])

    # ----------------------------------------------------------------------------------------------------------------- cost

    def seconds(self, models: int, parameters: dict) -> float | None:
        """What measuring so many models takes on this device, from the nearest manifest; None where none tells."""
        here, nearest = disk.device_kind(), None
        for piece in [*disk.pieces(self.name, folder()), *disk.pieces(self.name, disk.cache())]:
            measured = piece.manifest["parameters"]
            sizes = [(parameters.get(name), measured.get(name)) for name in ("records", "epochs")]
            if piece.manifest["device_kind"] != here or any(bool(a) != bool(b) for a, b in sizes):
                continue  # of another device, or of all records where these are some
            apart = sum(measured.get(name) != value for name, value in parameters.items())
            estimate = piece.manifest["seconds"] / len(piece.index) * float(np.prod([a / b for a, b in sizes if b]))
            nearest = min(nearest or (apart, estimate), (apart, estimate))
        return nearest and models * nearest[1]

    def cost_in_words(self, models: int, parameters: dict) -> str:
        """What is said before measuring: what, and how long it takes here."""
        seconds = self.seconds(models, parameters)
        cost = "nothing tells how long that takes here" if seconds is None else f"about {progress.duration(seconds)} here"
        told = ", ".join(f"{name} {parameters[name]}" for name in ("dataset", "records", "epochs") if parameters.get(name))
        return f"measuring {self.name} of {models} model{'s' * (models != 1)}{f' ({told})' * bool(told)}: {cost}"


def measurement(name: str, *, edition: int = 1, probe: dict, block: int = 32, chunk: int = 8, suffix: str = ".npz",
                **defaults) -> Callable[[Callable], Measurement]:
    """Makes a measurement of a function, see `Measurement`. The function imports PyTorch itself, so that names, parameters and
    editions can be read without it.

    Raises:
        MiaError: the function does not take `index` first, or not what it is given; the probe has no `index`.
    """
    def make(function: Callable) -> Measurement:
        takes = list(inspect.signature(function).parameters)
        if takes[:1] != ["index"] or not {*defaults, *probe} <= set(takes) or "index" not in probe:
            raise MiaError(f"{name}: a measurement takes index first, and its probe has one. {function.__name__} takes "
                           f"{', '.join(takes)}; its defaults are for {list(defaults)}, its probe has {list(probe)}.")
        return Measurement(name, function, edition, probe, defaults, block, chunk, suffix)

    return make


def _runs(numbers: Sequence[int], most: int) -> list[range]:
    """Ascending numbers as ranges of those that follow each other, cut at multiples of `most`."""
    runs: list[range] = []
    for number in numbers:
        if runs and runs[-1].stop == number and number % most:
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return runs


def _stands(parent: Mapping, *where: Path) -> bool:
    return any(piece.manifest["sha256"] == parent["sha256"] for one in where for piece in disk.pieces(parent["name"], one))


def _parents_stand(manifest: Mapping) -> bool:
    """Whether each piece that this one was made from is still there, and of the edition that its measurement has now."""
    parents = manifest.get("parents", ())
    known = catalogue() if parents else {}
    return all(parent["name"] in known and known[parent["name"]].edition == parent["edition"]
               and _stands(parent, folder(), disk.cache()) for parent in parents)


def _own_content(parameters: Mapping) -> dict[str, str]:
    """Of parameters that name a file or a module of the user's own: the hash of what it holds."""
    found = {}
    for name, value in parameters.items():
        if not isinstance(value, str):
            continue
        path = Path(value).expanduser()
        if module := re.fullmatch(r"([A-Za-z_]\w*):[A-Za-z_].*", value, re.DOTALL):
            spec = importlib.util.find_spec(module[1])
            path = Path(spec.origin) if spec and spec.origin else path
        if path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def differences(before: Mapping[str, np.ndarray], now: Mapping[str, np.ndarray], tolerance: float = 0.005) -> str:
    """In words, where arrays differ by more than processors do; "" where they do not.

    Numbers may be apart (root of the mean square) by a share `tolerance` of the spread of their array, and one in a hundred
    truth values another.
    """
    apart = []
    for name in sorted(before.keys() | now.keys()):
        a, b = before.get(name), now.get(name)
        if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype:
            apart.append(f"{name} is {_form(b)}, it was {_form(a)}")
        elif a.dtype.kind == "f":
            a, b = a.astype(np.float64), b.astype(np.float64)
            gap = float(np.sqrt(np.mean(np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, a - b) ** 2))) if a.size else 0.0
            spread = float(np.std(a[np.isfinite(a)])) if np.isfinite(a).any() else 0.0
            if not gap <= tolerance * max(spread, 1e-12):
                apart.append(f"{name} is apart by {gap:.3g}, of a spread of {spread:.3g}")
        elif np.mean(a != b) > 0.01:
            apart.append(f"{name} is another in {np.mean(a != b):.1%} of its entries")
    return "; ".join(apart)


def _form(array: np.ndarray | None) -> str:
    return "not there" if array is None else f"{array.dtype}{list(array.shape)}"


# -------------------------------------------------------------------------------------------------------------- what there is


def catalogue() -> dict[str, Measurement]:
    """All measurements of the chapters by name, from their modules `measure`; none imports PyTorch before it measures."""
    found = {}
    for path in sorted((Path(__file__).parents[1] / "papers").glob("*/measure.py")):
        module = importlib.import_module(f"mia_lib.papers.{path.parent.name}.measure")
        found |= {one.name: one for one in vars(module).values() if isinstance(one, Measurement)}
    return found


def groups() -> list[tuple[Measurement, dict, list[Piece]]]:
    """All that is published and served: measurement, parameters and pieces."""
    found = []
    for one in catalogue().values():
        by_parameters: dict[str, list[Piece]] = {}
        for piece in disk.pieces(one.name, folder()):
            try:
                parameters = one.complete(piece.manifest["parameters"])
            except MiaError:  # of a parameter that there is no more
                continue
            if one.answers(piece.manifest, parameters):
                by_parameters.setdefault(json.dumps(parameters, sort_keys=True), []).append(piece)
        found += [(one, json.loads(text), pieces) for text, pieces in by_parameters.items()]
    return found


def ls() -> pd.DataFrame:
    """What is published: a DataFrame with a row a measurement and set of parameters.

    Columns: name; models, how many; dataset, "" where it has none; parameters; arrays, their names; device; minutes that it
    took; date; megabytes.
    """
    import pandas as pd

    return pd.DataFrame([{
        "name": one.name, "models": len({number for piece in pieces for number in piece.index}),
        "dataset": parameters.get("dataset", ""), "parameters": parameters,
        "arrays": ", ".join(pieces[0].manifest["arrays"]),
        "device": " and ".join(sorted({piece.manifest["device"] for piece in pieces})),
        "minutes": round(sum(piece.manifest["seconds"] for piece in pieces) / 60, 1),
        "date": max(piece.manifest["date"] for piece in pieces),
        "megabytes": round(sum(piece.manifest["bytes"] for piece in pieces) / 1e6, 1)}
        for one, parameters, pieces in groups()])


def load(name: str, models: int | None = None, arrays: Sequence[str] = (), **parameters) -> Bank:
    """What is published of a measurement, as arrays; nothing is measured, and PyTorch is not needed.

    >>> load("bank/cifar10-small", models=4).margin.shape
    (4, 60000)

    Args:
        name: of the measurement, see `ls`.
        models: the first so many; all that are published when None.
        arrays: names of those wanted; all when empty.
        parameters: what tells the one that is meant, where several sets of them are published.

    Raises:
        MiaError: nothing such is published, or fewer models; several sets of parameters answer; a damaged file.
    """
    there = groups()
    if not there:
        raise MiaError(f"name = {name!r}: nothing is published in {folder()}. A clone of the book's repository has it in "
                       "data/published; MIA_PUBLISHED names another folder.")
    choose("name", name, sorted({one.name for one, _, _ in there}))
    named = [(said, pieces) for one, said, pieces in there if one.name == name]
    meant = [(said, pieces) for said, pieces in named if all(said.get(key) == value for key, value in parameters.items())]
    if len(meant) != 1:
        raise MiaError(f"{name} is published with {len(named)} sets of parameters, of which {len(meant)} have {parameters}: "
                       f"name one of {[said for said, _ in named]}.")
    [(said, pieces)] = meant
    numbers = {number for piece in pieces for number in piece.index}
    models = len(numbers) if models is None else check_whole("models", models, 1)
    if lacking := sorted(set(range(models)) - numbers):
        raise MiaError(f"models = {models}: {len(numbers)} models of {name} are published, and model {lacking[0]} is not. "
                       f"`mia publish {name} --models {models}` measures it.")
    for array in arrays:
        choose("arrays", array, pieces[0].manifest["arrays"])
    used, rows = [piece for piece in pieces if piece.index.start < models], {}
    try:
        for piece in used:
            rows |= piece.rows(arrays)
    except OSError as error:
        raise MiaError(f"{error}. Bring it back (in a clone: `git checkout -- data/published`).") from error
    return Bank(name, said, disk.stack(rows, range(models)), [piece.manifest for piece in used])
