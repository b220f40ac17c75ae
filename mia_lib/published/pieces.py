"""Blocks of models on disk: arrays in one file, and a manifest beside it that says what they are."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mia_lib import PACKAGES, custom, documents, environment, progress, store
from mia_lib.errors import MiaError, brief

MOST_MODELS = 10**6  # of a measurement, whose numbers are counted one by one
REPOSITORY = Path(__file__).parents[2]


def folder() -> Path:
    """Folder of published measurements: `$MIA_PUBLISHED`, or data/published of the repository."""
    return environment.folder("MIA_PUBLISHED") or REPOSITORY / "data" / "published"


@dataclass(frozen=True, eq=False)
class Bank:
    """Measurements of M models: each array [M, ...] is an attribute, such as `bank.margin`.

    Attributes:
        name, parameters: of the measurement.
        arrays: name -> [M, ...], as they are kept. As an attribute half precision comes as float32, to compute with.
        manifests: of the files that it was read from.
    """

    name: str
    parameters: dict
    arrays: dict[str, np.ndarray]
    manifests: list[dict] = field(repr=False)

    def __getattr__(self, name: str) -> np.ndarray:
        if name in self.__dict__.get("arrays", {}):
            array = self.arrays[name]
            if array.dtype == np.float16:
                self.__dict__[name] = array = array.astype(np.float32)  # so that this is asked once
                array.setflags(write=False)
            return array
        raise AttributeError(
            f"{self.__dict__.get('name', 'a bank')} has no array {name!r}, but "
            f"{', '.join(self.__dict__.get('arrays', ()))}."
        )

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    @property
    def trained(self) -> np.ndarray:
        """Numbers of the records that some model was trained on, int [N]."""
        return np.flatnonzero(self.members.any(0))

    @property
    def untrained(self) -> np.ndarray:
        """Numbers of the records that no model was trained on, int [Q]."""
        return np.flatnonzero(~self.members.any(0))

    def __repr__(self) -> str:
        shapes = ", ".join(
            f"{name} {array.dtype}{list(array.shape)}" for name, array in self.arrays.items()
        )
        return f"{self.name}: {len(self)} models; {shapes}"


@dataclass(frozen=True)
class Piece:
    """A block of models: the path of its manifest, and what that says."""

    path: Path
    manifest: dict

    @property
    def index(self) -> range:
        """Numbers of the models in the block."""
        return range(*self.manifest["index"])

    @property
    def is_published(self) -> bool:
        """True if the piece lies in `folder()`, and not in the working cache."""
        return self.path.is_relative_to(folder())

    def _content(self) -> bytes:
        content = self.path.with_name(self.manifest["file"]).read_bytes()
        if hashlib.sha256(content).hexdigest() != self.manifest["sha256"]:
            raise OSError(
                f"{self.path.with_name(self.manifest['file'])} is damaged: its bytes do not match their sha256"
            )
        return content

    def sound_rows(self) -> dict[int, dict[str, np.ndarray]]:
        """The piece's `rows` if it is as it was written, else {}; then the person waiting is
        told."""
        try:
            return self.rows()
        except OSError as error:
            progress.warn(f"{error}. It is not used; its models are measured anew.", stacklevel=4)
            return {}

    def rows(self, names: Sequence[str] = ()) -> dict[int, dict[str, np.ndarray]]:
        """Number of a model -> its arrays, or those with some names.

        Raises:
            OSError: it is not there, or damaged.
        """
        arrays = decode(self._content(), self.manifest["file"], self.manifest["arrays"])
        return {
            number: {name: arrays[name][row] for name in names or arrays}
            for row, number in enumerate(self.index)
        }


def numbers(blocks: Sequence[Piece]) -> set[int]:
    """The numbers of all models in some blocks."""
    return {number for piece in blocks for number in piece.index}


def stack(
    rows: Mapping[int, Mapping[str, np.ndarray]], index: Sequence[int]
) -> dict[str, np.ndarray]:
    """Arrays [len(index), ...] of the models in `index`, from those of each."""
    return {name: np.stack([rows[number][name] for number in index]) for name in rows[index[0]]}


def decode(content: bytes, file: str, forms: Mapping[str, Mapping]) -> dict[str, np.ndarray]:
    """The arrays in a file; `forms` are their types and shapes, from its manifest. Of truth values eight make a byte."""
    try:
        packed = store.decode(content, Path(file).suffix)
        if set(packed) != set(forms):
            raise ValueError(
                f"it holds {', '.join(sorted(packed))}, its manifest says {', '.join(sorted(forms))}"
            )
        for name, array in packed.items():
            dtype, shape = forms[name]["dtype"], list(forms[name]["shape"])
            written = (
                ("uint8", [*shape[:-1], -(-shape[-1] // 8)]) if dtype == "bool" else (dtype, shape)
            )
            if (str(array.dtype), list(array.shape)) != written:
                raise ValueError(
                    f"{name} is {array.dtype}{list(array.shape)}, not as its manifest says {dtype}{shape}"
                )
    except (KeyError, ValueError) as error:
        raise OSError(f"{file} cannot be read ({error})") from error
    return {
        name: np.unpackbits(array, axis=-1, count=forms[name]["shape"][-1]).astype(bool)
        if forms[name]["dtype"] == "bool"
        else array
        for name, array in packed.items()
    }


def pieces(name: str, where: Path) -> list[Piece]:
    """The blocks of a measurement in a folder, by their first model; a manifest that cannot be read is said and left out."""
    found = []
    for path in (where / name).parent.glob(f"{Path(name).name}*.json"):
        try:
            manifest = documents.load(path)
            if manifest["name"] == name:
                _check(manifest, path)
                found.append(Piece(path, manifest))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            progress.warn(f"{path} is damaged ({error}); it is not used.", stacklevel=3)
    return sorted(found, key=lambda piece: (piece.manifest["index"], str(piece.path)))


# of a manifest
NEEDED = {
    "edition": int,
    "training_edition": int,
    "parameters": dict,
    "index": list,
    "device_kind": str,
    "device": str,
    "seconds": int | float,
    "date": str,
    "file": str,
    "bytes": int,
    "arrays": dict,
    "sha256": str,
}
MARKUP = re.compile(r"[<>|`$\\{}]|\]\(")  # in Markdown, for pages say what a manifest says


def _check(manifest: dict, path: Path) -> None:
    """Raises ValueError for a manifest that was not written by `write`."""
    for name, kind in NEEDED.items():
        if not isinstance(manifest.get(name), kind):
            raise ValueError(f"{name} is {manifest.get(name)!r}")
    for name in ("device", "device_kind", "date"):
        if MARKUP.search(manifest[name]) or not manifest[name].isprintable():
            raise ValueError(f"{name} is {manifest[name]!r}")
    first, stop = manifest["index"]
    if not 0 <= first < stop <= MOST_MODELS or not path.stem.endswith(f"-{first:03}-{stop - 1:03}"):
        raise ValueError(f"index is {manifest['index']}")
    if manifest["file"] not in (f"{path.stem}.npz", f"{path.stem}.safetensors"):
        raise ValueError(f"file is {manifest['file']!r}, which is not beside it")
    for name in ("seconds", "bytes"):
        if not 0 <= manifest[name] < 1e15:
            raise ValueError(f"{name} is {manifest[name]}")
    for name, form in manifest["arrays"].items():
        if (
            not isinstance(form["dtype"], str)
            or form["shape"][0] != stop - first
            or {*map(type, form["shape"])} != {int}
        ):
            raise ValueError(f"{name} is {form} of {stop - first} models")
    for parent in manifest.get("parents", []):
        if not (
            isinstance(parent["name"], str)
            and isinstance(parent["sha256"], str)
            and "edition" in parent
        ):
            raise ValueError(f"it was made from {parent!r}")
    if path.is_relative_to(folder()):
        check_named(manifest["parameters"], manifest.get("own", {}))


def check_named(parameters: Mapping, own: Mapping[str, str]) -> None:
    """Refuse parameters of what is published that name functions of modules whose source has no hash in `own`, or of the book
    and its library, which make no networks and know how to run a folder: a piece can be from anyone, and what is measured
    again is called as it says."""
    ours = {package.name for package in PACKAGES}
    for name, value in parameters.items():
        if custom.is_own(value) and (
            name not in own or re.split("[.:]", value, maxsplit=1)[0] in ours
        ):
            raise MiaError(
                f"{name} is {brief(value)}, of a module whose source is not followed, and what is published runs no such code"
            )
