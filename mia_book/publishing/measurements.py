"""Measurements by name: found, made, published, and held to what they mean by their probes."""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from mia_book import folders
from mia_book.publishing import writing
from mia_lib import custom, environment, progress, store
from mia_lib.archives import read_npz
from mia_lib.data import sets
from mia_lib.errors import MiaError, check_choice, check_count, check_whole
from mia_lib.published import pieces as disk
from mia_lib.published import reading
from mia_lib.published.pieces import Bank, Piece, folder

TIMED = 64  # records of a batch by which networks are timed
# what a measurement in progress was made from
_served: ContextVar[list[Piece] | None] = ContextVar("served", default=None)


def training_cost(parameters: Mapping) -> float:
    """Cost of training a model, up to a factor: epochs times records, where these are numbers."""
    sizes = [parameters.get(name) for name in ("records", "epochs")]
    return float(np.prod([max(size, 1) for size in sizes if isinstance(size, int | float)]))


@dataclass(frozen=True, eq=False)
class Measurement:
    """A function of plain parameters that returns named arrays, a row a model, for the models `index`.

    What a training is made by is one argument of the function, a dict, and outside of it plain parameters like all others: an
    argument whose default is a dict, such as `recipe`, stands for the names in that dict, whose values are their defaults.

    Attributes:
        name: ROOM/NAME, the same for ever.
        function: `function(index: range, ...) -> dict of arrays [len(index), ...]`.
        edition: raised when what it measures changes.
        probe: tiny parameters, with `index`, at which a test measures again.
        defaults: parameters at which this measurement takes a function that several share.
        block: models in a published file. chunk: models that are measured, and kept, together.
        suffix: of its files: ".npz", or ".safetensors" for weights.
        cost: of complete parameters, what a model takes, up to a factor: by it seconds that were measured are scaled.
    """

    name: str
    function: Callable[..., dict[str, np.ndarray]]
    edition: int
    probe: dict
    defaults: dict
    block: int = 32
    chunk: int = 8
    suffix: str = ".npz"
    cost: Callable[[Mapping], float] = training_cost

    # -------------------------------------------------------------------------------------------------------------- finding

    def __call__(
        self, models: int | None = None, *, index: range | None = None, **parameters
    ) -> Bank:
        """The arrays of models 0 to `models` - 1, or of those in `index`: published, cached, or measured now.

        Raises:
            MiaError: an unknown parameter or one that is no plain value; what measuring raises.
        """
        index, parameters = _numbers(models, index), self.complete(parameters)
        rows, used = self._sound_rows(index, parameters)
        if set(index) - rows.keys():
            self.measure(index, parameters)
            rows, used = self._sound_rows(index, parameters)
        return self._bank(index, parameters, rows, used)

    def _sound_rows(
        self, index: Sequence[int], parameters: dict
    ) -> tuple[dict[int, dict], list[Piece]]:
        """Arrays by the number of a model, for the models in `index` that sound pieces have; and
        these pieces."""
        rows: dict[int, dict] = {}
        used = []
        for piece in self.available(parameters):
            wanted = (set(index) & set(piece.index)) - rows.keys()
            if wanted and (sound := piece.sound_rows()):
                rows |= {number: arrays for number, arrays in sound.items() if number in wanted}
                used.append(piece)
        return rows, used

    def _bank(
        self, index: Sequence[int], parameters: dict, rows: Mapping[int, dict], used: list[Piece]
    ) -> Bank:
        if gone := set(index) - rows.keys():
            raise MiaError(
                f"Model {min(gone)} of {self.name} was there and is gone: its file was changed meanwhile. Run "
                "again."
            )
        if (served := _served.get()) is not None:
            served.extend(used)
        return Bank(
            self.name, parameters, disk.stack(rows, index), [piece.manifest for piece in used]
        )

    def complete(self, parameters: Mapping) -> dict:
        """All parameters by name, those left out at their defaults; plain data.

        Raises:
            MiaError: one that is not known, or is no plain value; one without a default that is missing.
        """
        known = _parameters(self.function)
        for name in parameters:
            check_choice(f"parameter of {self.name}", name, known)
        usual = self.usual()
        whole = {**usual, **parameters}
        if missing := [name for name in known if name not in whole]:
            raise MiaError(f"{self.name} needs {', '.join(missing)}.")
        try:
            plain = json.loads(
                json.dumps(
                    {name: whole[name] for name in known}, allow_nan=False, default=_of_numpy
                )
            )
            return {name: _as_the_default(value, usual.get(name)) for name, value in plain.items()}
        except (TypeError, ValueError) as error:
            raise MiaError(
                f"parameters of {self.name}: {error}. Numbers, texts, lists of them, True, False and None are "
                "plain values."
            ) from error

    def usual(self) -> dict:
        """The defaults of the measurement's parameters, by name."""
        defaults = _parameters(self.function)
        return {
            name: value for name, value in defaults.items() if value is not inspect.Parameter.empty
        } | self.defaults

    def compute(self, index: range, parameters: Mapping) -> dict[str, np.ndarray]:
        """The arrays of the models in `index`, measured now and not kept; `parameters` are complete
        ones, of which the function gets those in a dict that it takes as one."""
        gathered = {
            name: {each: parameters[each] for each in default}
            if isinstance(default, dict)
            else parameters[name]
            for name, default in _arguments(self.function).items()
        }
        arrays = self.function(index, **gathered)
        return {name: np.asarray(array) for name, array in arrays.items()}

    def identity(self) -> dict:
        """Entries that a manifest must have for its piece to be served."""
        from mia_lib import training

        return {"name": self.name, "edition": self.edition, "training_edition": training.EDITION}

    def definition(self) -> dict:
        """What a reader of its pieces needs to know: editions, and the defaults of parameters."""
        return {key: value for key, value in self.identity().items() if key != "name"} | {
            "defaults": self.usual()
        }

    def answers(
        self,
        manifest: Mapping,
        parameters: dict | None = None,
        made: frozenset = frozenset(),
        sound: set | None = None,
    ) -> bool:
        """True if a piece is of this measurement as it is now, at `parameters` if given, and what
        it was made from stands; `made` are names and hashes of the pieces that are made from it,
        `sound` those of pieces that were found to stand."""
        try:
            measured = self.complete(manifest["parameters"])
        except MiaError:  # of a parameter that there is no more
            return False
        same = self.identity().items() <= manifest.items() and (
            parameters is None or _text(measured) == _text(parameters)
        )
        return (
            same
            and manifest.get("own", {}) == _own_content(measured)
            and _parents_stand(manifest, made, set() if sound is None else sound)
        )

    def check_answers(self, bank: Bank) -> None:
        """Refuse a bank of `published.load`, which asks no code, that is not of this measurement as it is now: who computes
        more by its parameters calls the functions that they name, and the folder can be from anyone.

        Raises:
            MiaError: its editions, defaults or parents are others, or it is of a module with another source.
        """
        if not all(self.answers(manifest, bank.parameters) for manifest in bank.manifests):
            raise MiaError(
                f"{bank.name} in {folder()} is not what the code here measures: editions, defaults or the source of "
                "a module of your own differ. Where the code is right, `mia sync` writes what it defines."
            )

    def available(self, parameters: dict) -> list[Piece]:
        """The pieces that answer: published ones first, then of the working cache those made by the code there is now."""
        return [piece for piece in self._candidates() if self.answers(piece.manifest, parameters)]

    def _candidates(self) -> list[Piece]:
        return [
            piece
            for piece in self.all_pieces()
            if piece.is_published or piece.manifest.get("code") == self._code()
        ]

    def all_pieces(self) -> list[Piece]:
        """All pieces of this name, whatever code or edition they are of."""
        return [*disk.pieces(self.name, folder()), *disk.pieces(self.name, writing.cache())]

    def serves(
        self,
        parent: Mapping,
        *,
        published: bool = False,
        made: frozenset = frozenset(),
        sound: set | None = None,
    ) -> bool:
        """True if the piece `parent`, as the manifest of a piece made from it names it, is there
        and answers; with `published`, if it is published, too."""
        return any(
            piece.manifest["sha256"] == parent["sha256"]
            and (piece.is_published or not published)
            and self.answers(piece.manifest, made=made, sound=sound)
            for piece in self._candidates()
        )

    def _published_of(self, parent: Mapping) -> list[dict]:
        """References (name, edition, index, sha256) to published pieces with the same arrays as the
        piece `parent` of the working cache, or to `parent` if it is published; [] if there are
        none."""
        if self.serves(parent, published=True):
            return [dict(parent)]
        cached = next(
            piece for piece in self._candidates() if piece.manifest["sha256"] == parent["sha256"]
        )
        public = [
            piece
            for piece in self.available(self.complete(cached.manifest["parameters"]))
            if piece.is_published and {*piece.index} & {*cached.index}
        ]
        rows = {
            number: arrays for piece in reversed(public) for number, arrays in piece.rows().items()
        }
        same = all(
            number in rows
            and np.array_equal(rows[number][name], array, equal_nan=array.dtype.kind == "f")
            for number, arrays in cached.rows().items()
            for name, array in arrays.items()
        )
        return list(map(_named, public)) if same else []

    def _code(self) -> str:
        """Hash of the code that measures: the rooms below, and the module of the function."""
        return store.code_of(store.PIECES, Path(inspect.getfile(self.function)))

    def missing_models(
        self, index: Sequence[int], parameters: dict, *, published: bool = False
    ) -> list[int]:
        """Numbers in `index` of which there is no sound piece, or none that is published."""
        there = disk.numbers(
            [
                piece
                for piece in self.available(parameters)
                if (piece.is_published or not published) and piece.sound_rows()
            ]
        )
        return [number for number in index if number not in there]

    # ------------------------------------------------------------------------------------------------------------ measuring

    def measure(
        self, index: range, parameters: dict, until: float | None = None, each: float | None = None
    ) -> None:
        """Measure the models in `index` that no piece has, into the working cache, a chunk at a time.

        Args:
            parameters: complete ones.
            until: `time.monotonic` by which it ends: no chunk is begun that would not be done by then.
            each: seconds a model, where no manifest tells.

        Raises:
            MiaError: it takes longer than `$MIA_MOST_SECONDS`, where that is set.
        """
        with store.lock(
            {"kind": "piece", "name": self.name, "parameters": parameters},
            what=f"measuring {self.name}",
        ):
            missing = self.missing_models(index, parameters)
            if missing:
                cost = self.cost_in_words(len(missing), parameters)
                most = environment.most_seconds()
                if (self.estimate(len(missing), parameters)[0] or 0) > most:
                    raise MiaError(
                        f"{cost}. A run measures at most {progress.duration(most)} unasked: `--preset quick` "
                        "begins from models that a laptop trains in a minute, `--yes` measures this."
                    )
                progress.say(cost)
            chunks = max(1, math.ceil(writing.elsewhere() / self.chunk))
            for run in _runs(missing, self.chunk * chunks):
                known = self.seconds(len(run), parameters)
                estimate = known if known is not None else len(run) * (each or 0)
                if until is not None and time.monotonic() + estimate > until:
                    return
                self._measure_chunk(run, parameters)

    def _measure_chunk(self, index: range, parameters: dict) -> None:
        own_content = _own_content(parameters)
        began = time.perf_counter()
        code = self._code()
        token = _served.set([])
        try:
            with store.seconds_of_others() as others:
                arrays = self.compute(index, parameters)
            parents = _served.get()
        finally:
            _served.reset(token)
        seconds = time.perf_counter() - began + sum(others.values()) / writing.processes()
        for name, array in arrays.items():
            if array.shape[:1] != (len(index),):
                raise MiaError(
                    f"{self.name} gave {name} of shape {array.shape} for {len(index)} models: a row a model is "
                    "needed."
                )
        if own_content != _own_content(parameters):
            raise MiaError(
                f"A file or module of your own was edited while {self.name} was measured of it: run again."
            )
        manifest = {
            **self.identity(),
            "parameters": parameters,
            "index": [index.start, index.stop],
            **writing.circumstances(),
            "seconds": seconds,
            "code": code,
            "own": own_content,
            "parents": list(map(_named, parents)),
        }
        store.check_unedited(code)
        writing.write(writing.cache(), self._stem(index, parameters), self.suffix, arrays, manifest)

    def _stem(self, index: range, parameters: dict) -> str:
        """A readable name for a file: the measurement's, what of its parameters is not the default, the models."""
        usual = self.usual()
        unusual = {
            k: v for k, v in parameters.items() if k not in usual or _text(v) != _text(usual[k])
        }
        slug = re.sub(r"[^\w.,=-]+", "-", "-".join(f"{k}-{v}" for k, v in unusual.items()))
        # others could be written so
        if len(slug) > 60 or any(re.search(r"[^\w.,=]", str(v)) for v in unusual.values()):
            slug = f"{slug[:50]}-{hashlib.sha256(_text(unusual).encode()).hexdigest()[:8]}"
        return "-".join(filter(None, [self.name, slug, f"{index.start:03}-{index.stop - 1:03}"]))

    # ----------------------------------------------------------------------------------------------------------- publishing

    def publish(
        self,
        index: Sequence[int],
        parameters: Mapping,
        until: float | None = None,
        each: float | None = None,
    ) -> list[Path]:
        """Measure what is not published of the models in `index`, and write it into `folder()`, a block as soon as it is done.

        The probe must give what it gave when the first block of this edition was published. Arguments as for `measure`.

        Returns:
            the manifests that were written.

        Raises:
            MiaError: the probe fails; a file or the whole would be too large; what it was made from is not published; a
                parameter names a function of a module whose source is not followed, as of an installed one.
        """
        parameters, written = self.complete(parameters), []
        disk.check_named(parameters, _own_content(parameters))
        self.keep_probe()
        define(self)
        for block in _runs(index, self.block):
            if self.missing_models(block, parameters, published=True):
                self.measure(block, parameters, until, each)
                written += self._publish_block(block, parameters)
        return written

    def _publish_block(self, block: range, parameters: dict) -> list[Path]:
        """Publish what the working cache has of a block and is not published; returns the paths of
        the files, one for each row of models that follow each other and were measured on the same
        device."""
        written = []
        with store.lock(
            {"kind": "publishing", "name": self.name, "parameters": parameters},
            what=f"publishing {self.name}",
        ):
            wanted = self.missing_models(block, parameters, published=True)
            device_of = {
                number: piece.manifest["device"]
                for piece in reversed(self.available(parameters))
                if not piece.is_published and piece.sound_rows()
                for number in piece.index
            }
            for run in [
                run
                for device in dict.fromkeys(device_of.values())
                for run in _runs([n for n in wanted if device_of.get(n) == device], self.block)
            ]:
                bank = self._bank(run, parameters, *self._sound_rows(run, parameters))
                parents: dict[str, dict] = {}
                for parent in [
                    parent for manifest in bank.manifests for parent in manifest.get("parents", [])
                ]:
                    if not (public := catalogue()[parent["name"]]._published_of(parent)):
                        raise MiaError(
                            f"{self.name} was measured from {parent['name']}, of which the same is not published. "
                            "Publish that first."
                        )
                    parents |= {piece["sha256"]: piece for piece in public}
                seconds = sum(
                    manifest["seconds"]
                    * len({*run} & {*range(*manifest["index"])})
                    / len(range(*manifest["index"]))
                    for manifest in bank.manifests
                )
                manifest = {
                    **bank.manifests[0],
                    "index": [run.start, run.stop],
                    "seconds": seconds,
                    "parents": list(parents.values()),
                }
                del manifest["code"]  # what it was, git knows
                written.append(
                    writing.write(
                        folder(), self._stem(run, parameters), self.suffix, bank.arrays, manifest
                    ).path
                )
        return written

    # --------------------------------------------------------------------------------------------------------------- probes

    @property
    def probe_path(self) -> Path:
        """Path of the file with the numbers that the measurement's probe gave."""
        return folder() / "probes" / f"{self.name}.npz"

    def run_probe(self) -> dict[str, np.ndarray]:
        """Arrays that the measurement gives at the probe's parameters."""
        parameters = self.complete(
            {name: value for name, value in self.probe.items() if name != "index"}
        )
        return self.compute(self.probe["index"], parameters)

    def check_probe(self) -> str:
        """Words that say how the probe differs from what it gave when the first block of this
        edition was published; "" if it does not.

        Raises:
            MiaError: of this edition no probe was kept.
        """
        kept = self._kept_probe()
        if kept is None:
            raise MiaError(
                f"No probe of edition {self.edition} of {self.name} is kept: `mia publish {self.name}` keeps one."
            )
        return differences(kept, self.run_probe())

    def keep_probe(self) -> None:
        """Keep what the probe gives, once for each edition.

        Raises:
            MiaError: it gives something else than was kept; none was, though pieces of this edition are published; it cannot
                be written.
        """
        if self._kept_probe() is None:
            if any(self.answers(piece.manifest) for piece in disk.pieces(self.name, folder())):
                raise MiaError(
                    f"{self.name} is published, but no probe of its edition, so nothing tells whether it means the "
                    f"same. Bring {self.probe_path} back, or raise its edition."
                )
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **self.run_probe(), editions=self._editions())
            try:
                store.write(self.probe_path, buffer.getvalue())
            except OSError as error:
                raise MiaError(
                    f"{self.probe_path} cannot be written: {error.strerror or error}."
                ) from error
        elif different := self.check_probe():
            raise MiaError(
                f"The probe of {self.name} does not give what it gave when it was first published: {different}. If "
                "its meaning was changed, raise its edition; its pieces are then measured anew."
            )

    def _kept_probe(self) -> dict[str, np.ndarray] | None:
        if not self.probe_path.is_file():
            return None
        arrays = read_npz(
            self.probe_path,
            f"The probe {self.probe_path}",
            ("editions",),
            remedy="Bring it back (in a clone: `git checkout -- data/published/probes`).",
        )
        return arrays if np.array_equal(arrays.pop("editions"), self._editions()) else None

    def _editions(self) -> np.ndarray:
        return np.array([value for value in self.identity().values() if isinstance(value, int)])

    # ----------------------------------------------------------------------------------------------------------------- cost

    def seconds(self, models: int, parameters: dict, alike: bool = False) -> float | None:
        """Seconds that measuring `models` models takes on this device, from the nearest manifest;
        None where none tells. `alike`: by none of another network, or of other targets of a
        regression, whose times differ by more than `cost` knows."""
        nearest = self._nearest(parameters, alike)
        return nearest and models * nearest[0]

    def estimate(self, models: int, parameters: dict) -> tuple[float | None, str]:
        """Seconds that measuring `models` models takes here, None where nothing tells; and what that supposes, in words.

        Another network than those that were measured is timed, some steps of either, where `cost` does not know networks.
        """
        if not (nearest := self._nearest(parameters, alike=False)):
            return None, ""
        each, measured = nearest
        unlike = [
            name
            for name in _unlike(parameters, measured)
            if self.cost(parameters) == self.cost(parameters | {name: measured.get(name)})
        ]
        forms = [_form_of(one.get("dataset")) for one in (parameters, measured)]
        if "architecture" in unlike and all(forms):
            paces = [
                _pace(one["architecture"], *form[:2])
                for one, form in zip((parameters, measured), forms, strict=True)
            ]
            each *= paces[0] / paces[1]
            unlike.remove("architecture")
        if not unlike:
            return models * each, ""
        name = unlike[0]
        return (
            models * each,
            f", if {name} {parameters[name]} takes what {measured.get(name)} does",
        )

    def count_missing(self, index: Sequence[int], parameters: dict) -> int:
        """How many models in `index` no piece has, damaged ones counted as there."""
        return len(set(index) - disk.numbers(self.available(parameters)))

    def _nearest(self, parameters: dict, alike: bool) -> tuple[float, dict] | None:
        """Seconds a model, and the parameters that they were measured at: by pieces of this
        measurement, else by those of one with the same function, for other data or at other
        settings."""
        here, known = writing.device_kind(), []
        same_function = [other for other in catalogue().values() if other.function is self.function]
        for measurement, piece in [(self, piece) for piece in self.all_pieces()] or [
            (other, piece) for other in same_function for piece in other.all_pieces()
        ]:
            measured = measurement.usual() | piece.manifest["parameters"]
            sizes = [_sized(one) for one in (parameters, measured)]
            # one of all records, one of some, and nothing tells how many all are
            of_all = bool(sizes[0].get("records")) != bool(sizes[1].get("records"))
            if (
                piece.manifest["device_kind"] == here
                and not of_all
                and not (alike and _unlike(parameters, measured))
            ):
                scale = self.cost(sizes[0]) / self.cost(sizes[1])
                differing = sum(measured.get(name) != value for name, value in parameters.items())
                known.append(
                    (
                        differing,
                        abs(np.log(scale)),
                        scale * piece.manifest["seconds"] / len(piece.index),
                        measured,
                    )
                )
        return min(known, key=lambda one: one[:3])[2:] if known else None

    def cost_in_words(self, models: int, parameters: dict) -> str:
        """Words said before measuring: what is measured, and how long that takes here."""
        seconds, unlike = self.estimate(models, parameters)
        cost = "nothing tells how long that takes here"
        if seconds is not None:
            cost = f"about {progress.duration(seconds)} here{unlike}"
        told = {name: parameters.get(name) for name in ("dataset", "records", "epochs")}
        what = ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)
        return f"measuring {self.name} of {models} model{'s' * (models != 1)}{f' ({what})' * bool(what)}: {cost}"


@cache
def _form_of(dataset: str | None) -> tuple[tuple[int, ...], int, int] | None:
    """Shape of a record of a set, or of a file of the user's own, number of classes and of records; None where that is not
    known."""
    if dataset in sets.names():
        return sets.form(dataset)
    if not dataset:
        return None
    from mia_lib import data

    pool = data.load(dataset)
    return pool.shape, len(pool.classes), len(pool)


def _sized(parameters: Mapping) -> Mapping:
    """The parameters, with the number of all records of the set where `records` asks for all and that is known."""
    form = None if parameters.get("records", 0) else _form_of(parameters.get("dataset"))
    return {**parameters, "records": form[2]} if form else parameters


@cache
def _pace(architecture: str, shape: tuple[int, ...], classes: int) -> float:
    """Seconds of a step of training on `TIMED` records of a shape.

    Raises:
        MiaError: a network of the user's own that cannot be trained; records that do not fit the architecture.
    """
    from mia_lib import models, training

    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (TIMED, *shape)).astype(np.uint8 if len(shape) == 3 else np.float32)
    models.try_out(architecture, x, classes)

    def seconds(epochs: int) -> float:
        began = time.perf_counter()
        config = training.TrainConfig(architecture, epochs=epochs, batch_size=TIMED)
        training.fit(x, np.arange(TIMED) % classes, classes, config)
        return time.perf_counter() - began

    few, many = (min(seconds(epochs) for _ in range(3)) for epochs in (1, 5))
    return max(many - few, many / 10) / 4


def _unlike(parameters: Mapping, measured: Mapping) -> list[str]:
    """Names of the parameters that tell networks and targets of regressions apart and that
    differ."""
    return [
        name
        for name in ("architecture", "backbone", "recipe")
        if parameters.get(name) != measured.get(name)
    ]


def measurement(
    name: str,
    *,
    edition: int = 1,
    probe: dict,
    block: int = 32,
    chunk: int = 8,
    suffix: str = ".npz",
    cost: Callable[[Mapping], float] = training_cost,
    **defaults,
) -> Callable[[Callable], Measurement]:
    """Makes a measurement of a function, see `Measurement`. The function imports PyTorch itself, so that names, parameters and
    editions can be read without it.

    Raises:
        MiaError: the function does not take `index` first, or not what it is given; the probe has no `index`.
    """

    def make(function: Callable) -> Measurement:
        takes = [*inspect.signature(function).parameters][:1] + [*_parameters(function)]
        if takes[:1] != ["index"] or not {*defaults, *probe} <= set(takes) or "index" not in probe:
            raise MiaError(
                f"{name}: a measurement takes index first, and its probe has one. {function.__name__} takes "
                f"{', '.join(takes)}; its defaults are for {list(defaults)}, its probe has {list(probe)}."
            )
        return Measurement(name, function, edition, probe, defaults, block, chunk, suffix, cost)

    return make


def _arguments(function: Callable) -> dict:
    """The defaults of a measured function's arguments after the first, `index`, by name;
    `inspect.Parameter.empty` of those that have none."""
    arguments = list(inspect.signature(function).parameters.values())
    return {argument.name: argument.default for argument in arguments[1:]}


def _parameters(function: Callable) -> dict:
    """The arguments of a measured function with their defaults, where those that are dicts are
    replaced by what is in them."""
    parameters = {}
    for name, default in _arguments(function).items():
        parameters |= default if isinstance(default, dict) else {name: default}
    return parameters


def _runs(numbers: Sequence[int], most: int) -> list[range]:
    """Ascending numbers as ranges of those that follow each other, cut at multiples of `most`."""
    runs: list[range] = []
    for number in numbers:
        if runs and runs[-1].stop == number and number % most:
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return runs


def _parents_stand(manifest: Mapping, made: frozenset, sound: set) -> bool:
    """True if each piece that this one was made from is still there and served, and so on up to
    what came first; of those that are, `sound` is told."""
    parents, made = manifest.get("parents", ()), made | {(manifest["name"], manifest["sha256"])}
    if any((parent["name"], parent["sha256"]) in made for parent in parents):
        progress.warn(
            f"{manifest['file']} is damaged (it was made from itself); it is not used.",
            stacklevel=4,
        )
        return False
    known = catalogue() if parents else {}
    for parent in parents:
        name, one = parent["name"], (parent["name"], parent["sha256"])
        if one not in sound:
            if name not in known or not known[name].serves(parent, made=made, sound=sound):
                return False
            sound.add(one)
    return True


def _own_content(parameters: Mapping) -> dict[str, str]:
    """Hash, by name, of each parameter that names a file or a module of the user's own: of its
    content, with the modules that it imports."""
    digests = {}
    for name, value in parameters.items():
        if isinstance(value, str):
            files, file = custom.sources(value), os.path.expanduser(value)
            # "cifar10" is a data set, whatever lies here
            here = Path(file).suffix and os.path.isfile(file) and not custom.is_own(value)
            if files or here:
                content = b"".join(path.read_bytes() for path in files or [Path(file)])
                digests[name] = hashlib.sha256(content).hexdigest()
    return digests


def _named(piece: Piece) -> dict:
    """Reference to a piece, as manifests hold it that were made from it: name, edition, index,
    sha256."""
    return {key: piece.manifest[key] for key in ("name", "edition", "index", "sha256")}


def _text(plain) -> str:
    return json.dumps(plain, sort_keys=True)


def _of_numpy(value):
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is of type {type(value).__name__}")


def _as_the_default(value, usual):
    """A number in the type of its default: 1 as 1.0 if that is 1.0, else 1.0 as 1, so that they are
    one parameter."""
    if type(value) is int and isinstance(usual, float):
        return float(value)
    if type(value) is float and value.is_integer() and not isinstance(usual, float):
        return int(value)
    return value


def _numbers(models: int | None, index: Sequence[int] | None) -> Sequence[int]:
    """The numbers of the models that are asked for."""
    if (models is None) == (index is None):
        raise MiaError("Give how many models, or the index of some, such as index=range(3, 5).")
    if index is None:
        return range(check_count("models", models))
    try:
        numbers = [check_whole("index", number, 0) for number in index]
    except TypeError as error:
        raise MiaError(
            f"index = {index!r}: numbers of models are needed, such as range(3, 5)."
        ) from error
    if not numbers:
        raise MiaError(f"index = {index!r}: the number of at least one model is needed.")
    return numbers


def differences(
    before: Mapping[str, np.ndarray], now: Mapping[str, np.ndarray], tolerance: float = 0.005
) -> str:
    """Words that say where arrays differ by more than processors do; "" if they do not.

    Numbers may be apart by the last digit, and beyond it (root of the mean square) by a share `tolerance` of the spread of
    their array; of truth values one in a hundred may be another, but not who is a member.
    """
    sentences = []
    for name in sorted(before.keys() | now.keys()):
        a, b = before.get(name), now.get(name)
        if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype:
            sentences.append(f"{name} is {_form(b)}, it was {_form(a)}")
        elif a.dtype.kind == "f":
            step = np.spacing(np.maximum(abs(a), abs(b)))  # what rounding alone may do
            a, b = a.astype(np.float64), b.astype(np.float64)
            beyond = np.where(
                (a == b) | (np.isnan(a) & np.isnan(b)), 0, np.maximum(np.abs(a - b) - step, 0)
            )
            gap = float(np.sqrt(np.mean(beyond**2))) if a.size else 0.0
            spread = float(np.std(a[np.isfinite(a)])) if np.isfinite(a).any() else 0.0
            if not gap <= tolerance * max(spread, 1e-12):
                sentences.append(f"{name} is apart by {gap:.3g}, of a spread of {spread:.3g}")
        elif a.size and np.mean(a != b) > (0 if name == "members" else 0.01):
            sentences.append(f"{name} is another in {np.mean(a != b):.1%} of its entries")
    return "; ".join(sentences)


def _form(array: np.ndarray | None) -> str:
    return "not there" if array is None else f"{array.dtype}{list(array.shape)}"


# -------------------------------------------------------------------------------------------------------------- what there is


@cache
def catalogue() -> dict[str, Measurement]:
    """All measurements of the chapters by name, from their modules `measure`; none imports PyTorch before it measures."""
    return {
        thing.name: thing
        for module in folders.modules("measure")
        for thing in vars(module).values()
        if isinstance(thing, Measurement)
    }


def define(*measurements: Measurement) -> None:
    """Write what `mia_lib.published` needs to know of some measurements into `folder()`: their editions and defaults."""
    path = folder() / reading.DEFINITIONS
    with store.lock({"kind": "definitions"}, what="writing definitions"):
        known = reading.definitions()
        now = known | {one.name: one.definition() for one in measurements}
        if now != known:
            store.write(path, (json.dumps(now, indent=1, sort_keys=True) + "\n").encode())


def groups() -> list[tuple[Measurement, dict, list[Piece]]]:
    """All that is published and served: measurement, parameters and pieces."""
    published = []
    for measurement in catalogue().values():
        by_parameters: dict[str, list[Piece]] = {}
        for piece in disk.pieces(measurement.name, folder()):
            if measurement.answers(piece.manifest):
                by_parameters.setdefault(
                    _text(measurement.complete(piece.manifest["parameters"])), []
                ).append(piece)
        published += [
            (measurement, json.loads(text), pieces) for text, pieces in by_parameters.items()
        ]
    return published
