"""Records: real data sets by name, and the Gaussian toy.

Two sets lie in the repository and need no network. The others are looked for in the folder `$MIA_DATA`
(the user's data folder unless set), as NAME.npz with x, y and n_train, or as the publisher's files in a
folder NAME, and are downloaded there when absent. What has a known hash is checked against it.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mia_lib import LIBRARY, environment, frames
from mia_lib.archives import read_npz
from mia_lib.checks import ALL_KINDS, check_finite, check_labels, check_numbers
from mia_lib.data import readers
from mia_lib.errors import (
    MiaError,
    brief,
    check_choice,
    check_count,
    check_once,
    check_range,
    check_type,
    check_whole,
)

if TYPE_CHECKING:
    import pandas as pd

UNITS = {
    "table": "numbers",
    "frame": "columns",
    "tokens": "tokens",
}  # kind of records -> of what they are
EMBEDDED = LIBRARY.parent / "data" / "embedded"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled records.

    Attributes:
        name: as given to `load`.
        x: images uint8 [N, H, W, C]; tables float32 [N, D]; token ids int64 [N, L], with -1 behind a record's last where a
            language model takes them; or a DataFrame of N rows, whose columns are kept as they are, for models that take one
            (`from_frame`); networks do not.
        y: int64 [N], indices into `classes`; of records that a language model is trained on all 0.
        n_train: the first `n_train` records are the publisher's training split; N where there is none.
        classes: names of the K classes; of records that a language model is trained on the V tokens, of which it predicts one
            at each place.

    The arrays are taken as they are, without a copy. What is computed from records is known by their content when it was
    first asked for, so do not write to them afterwards: make another `Dataset`, or let `data.from_arrays` take a copy that
    nobody can write to.

    Raises:
        MiaError: other types or shapes, x with values that are not finite, labels that are no class.
    """

    name: str
    x: np.ndarray | pd.DataFrame
    y: np.ndarray
    n_train: int
    classes: tuple[str, ...]

    def __post_init__(self):
        named = ("y",) if frames.is_frame(self.x) else ("x", "y")
        for name in named:
            given = check_type(
                name,
                getattr(self, name),
                np.ndarray,
                f"Of a tensor give {name}.numpy(), of a list np.array({name}).",
            )
            object.__setattr__(self, name, check_numbers(name, given, ALL_KINDS))
        if isinstance(self.classes, str) or not np.iterable(self.classes) or not len(self.classes):
            raise MiaError(
                f"classes = {brief(self.classes)}: the names of the classes are needed, for ten of them "
                "tuple(map(str, range(10)))."
            )
        check_once("classes", self.classes)
        if frames.is_frame(self.x):
            object.__setattr__(self, "x", frames.check_frame("x", self.x))
        x = self.x
        kind = "frame" if self.is_frame else x.dtype.kind
        if not (x.ndim == 2 and kind in (*"biuf", "frame") or x.ndim == 4 and x.dtype == np.uint8):
            raise MiaError(
                f"x has shape {x.shape} and type {x.dtype}: images uint8 [N, H, W, C] or tables of numbers [N, D] "
                "are needed. Grey images get their axis of channels by x[..., None]; pixels in [0, 1] become bytes "
                "by (255 * x).round().astype(np.uint8)."
            )
        check_labels("y", self.y, len(self.classes), len(x))
        if self.y.dtype.kind not in "iu":
            object.__setattr__(self, "y", self.y.astype(np.int64))
        check_whole("n_train", self.n_train, 0, len(x))
        # one pass without a copy
        if kind == "f" and not np.isfinite(x.sum(dtype=np.float64)):
            check_finite(
                "x",
                x,
                "records",
                "Fill in what is missing, as by the mean of its column, or leave them out.",
            )

    def __repr__(self) -> str:
        size = (
            f"images {' x '.join(map(str, self.shape))}"
            if self.is_image
            else f"records of {self.shape[0]} {UNITS[self.kind]}"
        )
        return f"{self.name}: {len(self)} {size}, {len(self.classes)} classes"

    def __len__(self) -> int:
        return len(self.x)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one record: (H, W, C) or (D,)."""
        return tuple(self.x.shape[1:])

    @property
    def kind(self) -> str:
        """What the records are: a name of `UNITS`, or "image"."""
        if self.is_image or self.is_frame:
            return "image" if self.is_image else "frame"
        return "tokens" if self.x.dtype == np.int64 else "table"

    @property
    def is_image(self) -> bool:
        """True if the records are images."""
        return self.x.ndim == 4

    @property
    def is_frame(self) -> bool:
        """True if the records are a table whose columns are kept as they are, a DataFrame."""
        return frames.is_frame(self.x)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over dtype, shape and bytes of x and y: equal for equal records, whatever their source."""
        digest = hashlib.sha256()
        for array in (frames.content(self.x), self.y):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def take(self, indices) -> Dataset:
        """The records at `indices` (int [n] or bool [N]), in that order.

        `n_train` of the result counts the training records before the first other one.
        """
        indices = np.asarray(indices)
        # a list of none would be float
        rows = np.arange(len(self))[indices if indices.size else np.zeros(0, int)]
        others = np.flatnonzero(rows >= self.n_train)
        n_train = int(others[0]) if len(others) else len(rows)
        return replace(self, x=frames.take(self.x, rows), y=self.y[rows], n_train=n_train)

    def of_classes(self, labels: Sequence[int]) -> Dataset:
        """Only the records of some classes, at least two, which are numbered 0, 1, ... in the order given; a class that the
        set does not have is refused."""
        labels = [int(label) for label in labels]
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise MiaError(f"labels = {labels}: name at least two different classes.")
        for label in labels:
            check_range("labels", label, 0, len(self.classes) - 1)
        kept = self.take(np.isin(self.y, labels))
        place = np.full(len(self.classes), -1)
        place[labels] = np.arange(len(labels))
        return replace(
            kept, y=place[kept.y], classes=tuple(self.classes[label] for label in labels)
        )

    def mirrored(self) -> Dataset:
        """Images with left and right exchanged: the second view of attacks that take several. Tables are refused."""
        if not self.is_image:
            raise MiaError(
                f"{self.name} has {self.kind} records of shape {self.shape}, which have no mirror image: "
                "use one view, or images."
            )
        return replace(self, x=np.ascontiguousarray(self.x[:, :, ::-1]))

    def as_table(self) -> Dataset:
        """Images as tables, float32 [N, H * W * C] with pixels in [0, 1]; tables as they are."""
        if self.is_image:
            return replace(self, x=self.x.reshape(len(self), -1).astype(np.float32) / 255)
        return self


# ---------------------------------------------------------------------------------------- what is known


class _Known(NamedTuple):
    """A data set that `load` knows: a row of `_KNOWN` has all that is known of it."""

    title: str  # what tables call it
    records: int  # 0: not known before it is here, and then nor are its shape (), and the classes where they are 0
    shape: tuple[int, ...]
    classes: tuple[str, ...] | int
    licence: str
    pixels: str = ""  # sha256 of x, training rows then test rows
    # fingerprint of the records that a reader of ours makes of the publisher's files
    made: str = ""
    # what lies in the folder of its name; all of it makes the set present
    raw: tuple[str, ...] = ()
    read: Callable[..., dict] | None = None  # makes arrays of that folder, with `options`
    fetch: Callable[[str], dict] | None = None  # downloads into a folder, and makes arrays
    options: tuple[str, ...] = ()
    embedded: str = ""  # its file in the repository


_CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
_CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def _on_torchvision(name: str, *known, pixels: str) -> _Known:
    return _Known(*known, pixels=pixels, fetch=partial(readers.torchvision_set, name=name))


def _of_shokri(*known, made: str = "", raw=(), read=None, **archive) -> _Known:
    fetch = partial(readers.shokri_archive, **archive)
    return _Known(*known, "none stated", made=made, raw=raw, read=read, fetch=fetch)


def _of_folders(title: str, records: int, shape, classes, licence: str, *splits: str) -> _Known:
    read = partial(readers.images, splits=splits, image_size=shape[0])
    options = ("image_size", "per_class")
    return _Known(title, records, shape, classes, licence, raw=splits, read=read, options=options)


def _of_verses(title: str, records: int, translation: str, made: str) -> _Known:
    read = partial(readers.verses, translation=translation)
    shape = (readers.LONGEST_VERSE + 2,)
    return _Known(
        title, records, shape, 2048, "public domain", made=made, read=read, embedded="verses.npz"
    )


def _of_census(problem: str, title: str, *classes: str) -> _Known:
    fetch = partial(readers.acs, name=problem)
    return _Known(title, 0, (), classes, "terms of the US Census Bureau", fetch=fetch)


# pooch downloads what has an address and a sha256. Its registry (tried: 1.9) does not stand here: it would name four files
# of three of the 25 sets. Others come by torchvision, scikit-learn or folktables, lie in the repository or with the user,
# or are pinned by a git blob, which it does not know. A file of another hash it replaces, where `load` refuses it and says
# why.
_KNOWN = {
    "fashion_mnist_20k": _Known(
        "FashionMNIST",
        20_000,
        (28, 28, 1),
        _CLOTHES,
        "MIT",
        "58e4771950337033c6f5665c995cab5743ed89bf7399fd5c583cf4de053257d1",
        embedded="fashion_mnist_20k.npz",
    ),
    "german_credit": _Known(
        "German credit",
        1000,
        (20,),
        ("good", "bad"),
        "CC BY 4.0",
        made="6c634511efb48c6cc3537294439cc7135b6bc0577d20956a3379bd4661bbd2f2",
        raw=("german.data",),
        read=readers.german_credit,
        embedded="german_credit.csv",
    ),
    "verses_kjv": _of_verses(
        "King James Version",
        31_093,
        "kjv",
        "019222430053982ace95dacb013d07494e7de449c8f795567267314850c86e5b",
    ),
    "verses_kjv_lower": _of_verses(
        "King James Version in lower case",
        8000,
        "lower",
        "1bdf66240f5ebd9e0b9e8b627d56f011a926b6b712d6905a16b7be6463350657",
    ),
    "verses_web": _of_verses(
        "World English Bible",
        31_093,
        "web",
        "d920ac0993a2c8388752c42b60ca8d9747cf7e61cb5b3b7e860d84bfc5d0d77f",
    ),
    "gaussian": _Known(
        "gaussian", 200, (2000,), ("z",), "none needed", options=("records", "dimension", "seed")
    ),
    "fashion_mnist": _on_torchvision(
        "FashionMNIST",
        "FashionMNIST",
        70_000,
        (28, 28, 1),
        _CLOTHES,
        "MIT",
        pixels="0fbbfcb392782b3b702472ead3688778e1509e8cf40f5c24d9d3303618b193ab",
    ),
    "mnist": _on_torchvision(
        "MNIST",
        "MNIST",
        70_000,
        (28, 28, 1),
        10,
        "CC BY-SA 3.0",
        pixels="5b92582eb909c82a9bfefcd44acbe9233be3eb5b419a44cf211022ad2bf4bf96",
    ),
    "cifar10": _on_torchvision(
        "CIFAR10",
        "CIFAR-10",
        60_000,
        (32, 32, 3),
        _CIFAR,
        "none stated",
        pixels="0ac3ab5c78edb36ac68f69e287fd8f957b2d4f820b80e5fa9bd05c810fc0d95d",
    ),
    "cifar100": _on_torchvision(
        "CIFAR100",
        "CIFAR-100",
        60_000,
        (32, 32, 3),
        100,
        "none stated",
        pixels="f33db8ac706110c918c04bd7359201ed472dec17f5afc2905d52ebec1fdc3365",
    ),
    "adult": _Known(
        "Adult",
        48_842,
        (108,),
        ("<=50K", ">50K"),
        "CC BY 4.0",
        made="0183621ec1682189e44326977fcd367b962bf910c5402182b0362059c3472e7c",
        raw=("adult.data", "adult.test"),
        read=readers.adult,
    ),
    "hepatitis": _Known(
        "Hepatitis",
        155,
        (19,),
        ("die", "live"),
        "CC BY 4.0",
        made="b2bfd6dfa45ac08a21d3edb7142be6888ac75f46b29c4577fe261bafa0d92cca",
        raw=("hepatitis.data",),
        read=readers.hepatitis,
    ),
    "location30": _of_shokri(
        "Location-30",
        5010,
        (446,),
        30,
        made="d85abbc0f23dfa00b6115b87880019d74918d1306f8e6152a62a5899a44beb14",
        raw=("location30.npz",),
        read=readers.location30,
        file="dataset_location.tgz",
        blob="0cfc2caa0c8c8569cd68a5d4ab369a98c1f98447",
        features="bangkok",
    ),
    "purchase100": _of_shokri(
        "Purchase-100",
        197_324,
        (600,),
        100,
        file="dataset_purchase.tgz",
        blob="3efa7476ad5ed7ac3e558d28585a186b38fc5f19",
        features="dataset_purchase",
    ),
    "texas100": _of_shokri(
        "Texas-100",
        67_330,
        (6169,),
        100,
        file="dataset_texas.tgz",
        blob="966f7ff40b24cf5912ff84759aab9adb8c25f30e",
        features="100/feats",
        labels="100/labels",
    ),
    "cinic10": _of_folders(
        "CINIC-10", 270_000, (32, 32, 3), 10, "MIT; a part is ImageNet's", "train", "valid", "test"
    ),
    "imagenet": _of_folders(
        "ImageNet", 1_331_167, (64, 64, 3), 1000, "ImageNet's terms of access", "train", "val"
    ),
    **{
        f"openml_{task}": _Known(
            f"openml_{task}",
            0,
            (),
            0,
            "stated at openml.org",
            fetch=partial(readers.openml, number=task),
        )
        for task in (361057, 361064, 361067, 361070)
    },
    "acs_public_coverage": _of_census(
        "ACSPublicCoverage",
        "acs_public_coverage",
        "no public health coverage",
        "public health coverage",
    ),
    "acs_income": _of_census(
        "ACSIncome", "acs_income", "up to 50,000 dollars", "above 50,000 dollars"
    ),
    "acs_travel_time": _of_census(
        "ACSTravelTime", "acs_travel_time", "up to 20 minutes to work", "above 20 minutes to work"
    ),
    "acs_mobility": _of_census(
        "ACSMobility", "acs_mobility", "moved within a year", "same address as a year ago"
    ),
}


def names() -> list[str]:
    """The names that `load` knows."""
    return list(_KNOWN)


def title(name: str) -> str:
    """Name of a data set in tables: for a file of the reader's own its `plain_name`, without folder
    and ending."""
    if name in _KNOWN:
        return _KNOWN[name].title
    return plain_name(Path(name).stem) if name.endswith(".npz") else name


def plain_name(text: str) -> str:
    """The name of a file as text that is no markup on a page, in a table or in a chart: letters, digits, spaces, dots, plus
    signs and underscores within a word stay, and a hyphen stands for whatever is between them."""
    printable = "".join(letter if letter.isprintable() else "-" for letter in text)
    return re.sub(r"((?![\w .+])[\0-\x7f]|\b_+|_+\b)+", "-", printable)


def content(name: str) -> str:
    """Hash that pins the records of a set: sha256 of an image set's pixels, the fingerprint of what
    our reader makes of a table's files, "" if nothing pins them."""
    known = _KNOWN.get(name)
    return "" if known is None else known.pixels or known.made


def data_dir() -> Path:
    """Folder where data sets are looked for and downloaded to: `$MIA_DATA`, or the user's data
    folder."""
    if named := environment.folder("MIA_DATA"):
        return named
    from platformdirs import user_data_dir

    return Path(user_data_dir("mia_lib"))


def _find(name: str) -> Path | None:
    """The file or folder that holds a set: NAME.npz, else the publisher's files, else the repository's."""
    folder = data_dir()
    raw, parts = folder / name, _KNOWN[name].raw if name in _KNOWN else ()
    if (folder / f"{name}.npz").is_file():
        return folder / f"{name}.npz"
    if parts and all((raw / part).exists() for part in parts):
        return raw
    embedded = EMBEDDED / (_KNOWN[name].embedded if name in _KNOWN else "")
    return embedded if embedded.is_file() else None


def is_here(name: str) -> bool:
    """True if a set can be loaded without a download."""
    return name == "gaussian" or _find(name) is not None


def form(name: str) -> tuple[tuple[int, ...], int, int] | None:
    """Shape of a record of a set, number of classes and of records, here or not; None where that is not known."""
    known = _KNOWN[name]
    count = known.classes if isinstance(known.classes, int) else len(known.classes)
    return (known.shape, count, known.records) if known.shape and count else None


def source_digest(name: str) -> str:
    """Hash that tells the files of a set that nothing pins from others of its name: of NAME.npz, or
    of names, sizes and dates in its folder; "" if its records are pinned, or no files are here."""
    path = None if content(name) or name == "gaussian" else _find(name)
    if path is None:
        return ""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    entries = sorted(
        (str(file.relative_to(path)), file.stat().st_size, file.stat().st_mtime_ns)
        for file in path.rglob("*")
    )
    return hashlib.sha256(repr(entries).encode()).hexdigest()


def _how(name: str) -> str:
    if _KNOWN[name].embedded:
        if EMBEDDED.is_dir():
            return "in the repository"
        return (
            "it lies in the book's repository, of which an installed mia_lib has nothing: clone it, "
            "`pip install -e .` there"
        )
    if name == "gaussian":
        return "drawn on demand"
    if "per_class" in _KNOWN[name].options:
        return f"put the images into {data_dir() / name}/{{{','.join(_KNOWN[name].raw)}}}/CLASS/"
    return f"mia data get {name}"


def describe():
    """Every known set, without loading or downloading any: name, records, shape, classes ("unknown" of a set that is not
    recorded in this book), licence, where ("embedded", "made on demand", "not here" or a path) and how to get."""
    import pandas as pd

    rows = []
    for name, known in _KNOWN.items():
        path = _find(name)
        where = (
            "made on demand"
            if name == "gaussian"
            else "not here"
            if path is None
            else ("embedded" if path.parent == EMBEDDED else str(path))
        )
        rows.append(
            {
                "name": name,
                "records": known.records or "unknown",
                "shape": " x ".join(map(str, known.shape)) or "unknown",
                "classes": (known.classes if isinstance(known.classes, int) else len(known.classes))
                or "unknown",
                "licence": known.licence,
                "where": where,
                "how to get": _how(name),
            }
        )
    return pd.DataFrame(rows)


# ---------------------------------------------------------------------------------------- loading


def _dataset(name: str, source: Path | str, x, y, n_train: int, classes=None) -> Dataset:
    """Make a `Dataset` of a known set: types set, records checked where they are known, arrays
    closed to writing."""
    known = _KNOWN[name]
    kept = np.ndim(x) == 4 or known.embedded == "verses.npz"
    x = np.ascontiguousarray(x, None if kept else np.float32)
    try:
        y = np.array(check_labels("y", y))
    except MiaError as problem:
        raise MiaError(f"{source} cannot be used: {problem}") from problem
    if known.pixels:
        digest = hashlib.sha256(x.data).hexdigest()
        if digest != known.pixels:
            raise readers.mismatch(f"{source} (pixels)", f"sha256 {digest}", known.pixels)
    if classes is None:
        classes = known.classes
        if isinstance(classes, int):
            classes = range(classes or int(y.max(initial=-1)) + 1)
    classes = tuple(map(str, classes))
    if not 0 < n_train <= len(x) == len(y) or y.min() < 0 or y.max() >= len(classes):
        raise MiaError(
            f"{source} does not fit together: {len(x)} records, {len(y)} labels, "
            f"{len(classes)} classes, n_train = {n_train}. Labels count from 0. Prepare it anew."
        )
    x.flags.writeable = y.flags.writeable = False
    records = Dataset(name, x, y, int(n_train), classes)
    # What the archive that a set is downloaded from holds was never compared with the file that this book's records are from.
    if known.made not in ("", records.fingerprint) and not (
        known.fetch and str(source).endswith(".npz")
    ):
        raise MiaError(
            f"{source} gives records of {name} with the fingerprint {records.fingerprint}; results of this book "
            f"are of {known.made}. A prepared file of other records is to be deleted or renamed (`mia data ls` "
            "says how to get them). If the reader was changed and others are meant, set `made` in "
            "mia_lib/data/sets.py: what is published stays of the old ones."
        )
    return records


def _read_npz(name: str, path: Path, content: bytes | None = None) -> Dataset:
    remedy = "Delete it, then fetch it anew (`mia data ls` says how)."
    arrays = read_npz(
        path if content is None else content, str(path), ("x", "y", "n_train"), ("classes",), remedy
    )
    try:
        n_train = int(arrays.pop("n_train"))
    except (TypeError, ValueError) as problem:
        raise MiaError(
            f"{path} cannot be read as an .npz file with x, y and n_train ({problem}). {remedy}"
        ) from problem
    return _dataset(name, path, n_train=n_train, **arrays)


@lru_cache
def _embedded(name: str, path: Path) -> Dataset:
    if read := _KNOWN[name].read:
        return _dataset(name, path, **read(path))
    return _read_npz(name, path, readers.verified(path))


def gaussian(records: int = 200, dimension: int = 2000, seed: int = 0) -> Dataset:
    """Records of N(0, I), float32 [records, dimension], all of one class (Sablayrolles et al. 2019)."""
    check_count("dimension", dimension, each=4 * check_count("records", records, each=4))
    x = np.random.default_rng(seed).standard_normal((records, dimension), np.float32)
    return _dataset("gaussian", "gaussian", x, np.zeros(records), records)


def _download(name: str) -> Path:
    """Put a set into `data_dir()`: small raw files stay as they are, others become NAME.npz."""
    folder = data_dir()
    folder.mkdir(parents=True, exist_ok=True)
    known = _KNOWN[name]
    if known.fetch is None:
        import pooch

        for file in known.raw:
            pooch.retrieve(
                f"{readers.UCI}/{name}/{file}", readers.SHA256[file], file, folder / name
            )
        return folder / name
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}-") as scratch:
        arrays = known.fetch(scratch)
        _dataset(name, f"the download of {name}.npz", **arrays)  # checked before it takes its place
        prepared = Path(scratch) / "arrays.npz"
        np.savez_compressed(prepared, **arrays)
        os.replace(prepared, folder / f"{name}.npz")
    return folder / f"{name}.npz"


def get(name: str) -> Path:
    """Make a set ready for use, downloading it when it is not here: the file or folder that `load` reads, NAME.npz or the
    folder of the publisher's files. No network, a wrong hash, or images that only the user can provide are errors."""
    check_choice("name", name, [known for known in names() if known != "gaussian"])
    if path := _find(name):
        return path
    instead = (
        f"or put {name}.npz (x, y, n_train) into {data_dir()} (MIA_DATA names another folder). "
        f"Without network these work: {'fashion_mnist_20k, german_credit, verses_kjv, ' * EMBEDDED.is_dir()}gaussian."
    )
    if not _how(name).startswith("mia data get"):
        raise MiaError(f"Data set {name!r} is not here: {_how(name)}; {instead}")
    try:
        return _download(name)
    except MiaError:
        raise
    except (OSError, RuntimeError, ValueError, ImportError, EOFError) as problem:
        # of urllib, requests or pooch; on one line, as the last of a traceback
        reason = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise MiaError(
            f"Data set {name!r} is not here and could not be downloaded ({reason}). "
            f"With network `{_how(name)}` fetches it; {instead}"
        ) from problem


def load(name: str, **options) -> Dataset:
    """A data set by name, see `mia_lib.data.load`."""
    check_choice("name", name, names())
    known = _KNOWN[name]
    allowed = known.options
    for option, value in options.items():
        if not allowed:
            raise MiaError(
                f"Data set {name!r} takes no options; given: {option} = {value!r}. Omit it."
            )
        check_choice(f"option of {name!r}", option, allowed)
        if option != "per_class" or value is not None:
            check_whole(option, value, int(option != "seed"))
    if name == "gaussian":
        return gaussian(**options)
    path = get(name)
    if path.parent == EMBEDDED:
        return _embedded(name, path)
    if path.is_dir():
        return _dataset(name, path, **known.read(path, **options))
    if options:
        raise MiaError(
            f"{path} is prepared already, so {', '.join(options)} cannot be chosen. "
            "Leave them out, or move that file away."
        )
    return _read_npz(name, path)
