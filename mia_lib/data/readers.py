"""From the publishers' files to arrays: each reader returns x, y, n_train and, where
the files name them, classes.

What has a known hash is checked against it before it is used.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from mia_lib import documents
from mia_lib.archives import read_npz
from mia_lib.errors import MiaError, check_range
from mia_lib.progress import track

FORMATS = ("PNG", "JPEG")  # of images, by content: of PostScript, Pillow would ask Ghostscript

SHA256 = {
    "fashion_mnist_20k.npz": "36891374f6d2d933db5f39349f199822664a42f09b37dfc253116893fc9bf4a7",
    "verses.npz": "810f1bbf3e75da9f4d6f0f8c9736c0e713434a304574fbb1a1a1d41b7c5d6198",
    "german_credit.csv": "1f14a3ee97d632516c36ecba11e0472175b97dba3ec001790e4a34b64f2d604c",
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "german.data": "e2bc10785808eeb5e30462f0805edb73a672f295bc671dec0bca6e2fb5c8e1ca",
    "hepatitis.data": "9971f9d18abb4fc9dd6749eefb0f864b36fa7bdd59f54188c0b148a5c28214bc",
    "location30.npz": "4b12a3a89e019edc5b35423c2f037443df4494a37f9e7e2e280ff1254fc9bd3f",
}
LONGEST_VERSE = 144  # tokens
VERSES = [f"{name}_{part}" for name in ("kjv", "web", "lower") for part in ("ids", "lengths")]
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
SHOKRI = "https://github.com/privacytrustlab/datasets/raw/master"
ACS_NUMBERS = ("AGEP", "WKHP", "POVPIP", "JWMNP", "PINCP")  # the other columns are codes


def mismatch(path: Path | str, actual: str, expected: str) -> MiaError:
    """The error for a file that is not what its name says."""
    return MiaError(
        f"{path} is not the genuine file: its hash is {actual}, expected is {expected}. "
        "Delete or rename it, then fetch it anew (`mia data ls` says how)."
    )


def verified(path: Path) -> bytes:
    """Contents of a file whose sha256 is known."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256[path.name]:
        raise mismatch(path, f"sha256 {digest}", SHA256[path.name])
    return content


def scaled(table) -> np.ndarray:
    """Mean imputation, then each column over its largest absolute value (Watson et al. 2022)."""
    table = np.array(table, float)
    # rounded, so that fingerprints are the same on every machine
    means = np.nanmean(table, 0).round(6)
    table = np.where(np.isnan(table), means, table)
    return table / np.maximum(np.abs(table).max(0), 1e-12)


def columns(numbers, categories) -> np.ndarray:
    """Numbers standardised, a missing one the mean; then each category one-hot, a missing one 0 in all its columns.

    Args:
        numbers: table [N, A]. categories: DataFrame [N, B] of any values.
    """
    import pandas as pd

    numbers = np.array(numbers, float)
    numbers = np.where(np.isnan(numbers), np.nanmean(numbers, 0), numbers)
    # see `scaled`
    numbers = (numbers - numbers.mean(0).round(6)) / np.maximum(numbers.std(0).round(6), 1e-6)
    return np.hstack(
        [
            numbers,
            *(
                pd.get_dummies(categories[name].astype("category"), dtype=float)
                for name in categories
            ),
        ]
    )


def verses(path: Path, translation: str) -> dict:
    """A translation of `verses.npz` as token ids, the end token (0) before and after each verse; no labels."""
    arrays = read_npz(verified(path), str(path), ("place", "books", "vocabulary"), VERSES)
    lengths = arrays[f"{translation}_lengths"].astype(int)
    x = np.full((len(lengths), LONGEST_VERSE + 2), -1, np.int64)
    place = np.arange(x.shape[1])
    x[(place > 0) & (place <= lengths[:, None])] = arrays[f"{translation}_ids"]
    x[(place == 0) | (place == lengths[:, None] + 1)] = 0
    return {
        "x": x,
        "y": np.zeros(len(x), np.int64),
        "n_train": len(x),
        "classes": arrays["vocabulary"],
    }


def german_credit(path: Path) -> dict:
    """Statlog German Credit, 20 integer codes or numbers: the embedded CSV, or the folder of german.data."""
    if path.suffix == ".csv":
        table = np.loadtxt(io.BytesIO(verified(path)), delimiter=",", skiprows=1, dtype=int)
    else:  # category 3 of attribute 4 is written "A43"; attributes 3 and 4 count from 0, the others from 1
        rows = [line.split() for line in verified(path / "german.data").decode().splitlines()]
        table = np.array(
            [
                [
                    int(cell[1 + len(str(j)) :]) - (j not in (3, 4))
                    if cell[0] == "A"
                    else int(cell)
                    for j, cell in enumerate(row, 1)
                ]
                for row in rows
            ]
        )
        table[:, -1] -= 1
    return {"x": scaled(table[:, :-1]), "y": table[:, -1], "n_train": len(table) * 4 // 5}


def hepatitis(path: Path) -> dict:
    """Hepatitis, 19 attributes; the 13 two-valued ones are coded 1, 2 in the file and 0, 1 here."""
    text = verified(path / "hepatitis.data").decode().replace("?", "nan")
    table = np.loadtxt(io.StringIO(text), delimiter=",")
    table[:, [0, *range(2, 14), 19]] -= 1
    return {"x": scaled(table[:, 1:]), "y": table[:, 0], "n_train": len(table) * 4 // 5}


def adult(path: Path) -> dict:
    """Adult: 6 standardised numbers, then 8 attributes one-hot ("?" is a category); training rows first."""
    import pandas as pd

    parts = [
        pd.read_csv(
            io.BytesIO(verified(path / file)), header=None, comment="|", skipinitialspace=True
        )
        for file in ("adult.data", "adult.test")
    ]
    table = pd.concat(parts, ignore_index=True)
    return {
        "x": columns(table[[0, 2, 4, 10, 11, 12]], table[[1, 3, 5, 6, 7, 8, 9, 13]]),
        "y": table[14].str.startswith(">50K").to_numpy(),
        "n_train": len(parts[0]),
    }


def location30(path: Path) -> dict:
    """Bangkok check-ins of Shokri et al. (2017): 446 binary features, packed eight to a byte."""
    stored = read_npz(verified(path / "location30.npz"), "location30.npz")
    x = np.unpackbits(stored["features_packed"], axis=1)[:, : int(stored["n_features"])]
    return {"x": x, "y": stored["labels"], "n_train": len(x)}


def shokri_archive(
    folder: str, file: str, blob: str, features: str, labels: str | None = None
) -> dict:
    """A set of Shokri et al. (2017), downloaded: binary features, comma-separated, and labels from 1.

    Args:
        folder: where the archive is put. file: its name.
        blob: its object name in that git repository, sha1 of "blob SIZE\\0" and the bytes.
        features, labels: how the names of their files in it end; the first column is the label when None.
    """
    import pandas as pd
    import pooch

    url = f"{SHOKRI}/{file}"
    path = Path(pooch.retrieve(url, known_hash=None, fname=file, path=folder, progressbar=True))
    content = path.read_bytes()
    digest = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    if digest != blob:
        raise mismatch(path, f"git blob {digest}", blob)
    with tarfile.open(path) as files:

        def member(end: str) -> np.ndarray:
            file_in = next(m for m in files.getmembers() if m.isfile() and m.name.endswith(end))
            return pd.read_csv(files.extractfile(file_in), header=None, dtype=np.uint8).to_numpy()

        table = member(features)
        x, y = (table[:, 1:], table[:, 0]) if labels is None else (table, member(labels)[:, 0])
    return {"x": x, "y": y - 1, "n_train": len(x)}


def openml(folder: str, number: int) -> dict:
    """The data set of the OpenML classification task with this number, as `columns` makes it; there is no training split.

    The task says which data set it is of and which column is the label. Records without a label are left out.
    """
    import pandas as pd
    import pooch
    from sklearn.datasets import fetch_openml

    url = f"https://www.openml.org/api/v1/json/task/{number}"
    task = documents.load(pooch.retrieve(url, known_hash=None, fname="task.json", path=folder)).get(
        "task", {}
    )
    source = next(
        (part["data_set"] for part in task.get("input", ()) if part.get("name") == "source_data"),
        None,
    )
    if str(task.get("task_type_id")) != "1" or source is None:
        raise MiaError(
            f"{url} describes no classification task ({task.get('task_type', 'of unknown type')}): OpenML has "
            f"changed it. Put openml_{number}.npz there yourself."
        )
    downloaded = fetch_openml(
        data_id=int(source["data_set_id"]),
        target_column=source["target_feature"],
        data_home=folder,
        as_frame=True,
        parser="liac-arff",
    )  # scikit-learn 1.9's other parser fails on classes named 0 and 1
    labelled = downloaded.target.notna()
    table = downloaded.data[labelled].dropna(axis=1, how="all")
    labels = downloaded.target[labelled].astype("category").cat.remove_unused_categories()
    number = [
        pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)
        for kind in table.dtypes
    ]
    x = columns(table.loc[:, number], table.loc[:, np.invert(number)]).astype(np.float32)
    classes = [str(name) for name in labels.cat.categories]
    return {"x": x, "y": labels.cat.codes.to_numpy(), "n_train": len(x), "classes": classes}


def acs(folder: str, name: str) -> dict:
    """A problem of folktables (Ding et al. 2021): persons of New York in the American Community Survey of
    2018; no training split.

    Which persons and columns are in it, what the label is, and that what is missing counts as 0 is as folktables has it.
    Codes are one-hot, but those of more than 50 values stay numbers; columns of one value are left out.
    """
    import pandas as pd

    try:
        import folktables
    except ImportError as problem:
        raise MiaError(
            f"{name} needs folktables, which is not installed: the extra acs brings it, "
            "pip install -c constraints.txt -e '.[acs]'."
        ) from problem
    source = folktables.ACSDataSource(
        survey_year="2018", horizon="1-Year", survey="person", root_dir=folder
    )
    problem = getattr(folktables, name)
    x, y, _ = problem.df_to_numpy(source.get_data(states=["NY"], download=True))
    table = pd.DataFrame(x, columns=problem.features)
    values = table.nunique()
    code = (values <= 50) & ~table.columns.isin(ACS_NUMBERS)
    x = columns(table.loc[:, ~code & (values > 1)], table.loc[:, code & (values > 1)]).astype(
        np.float32
    )
    return {"x": x, "y": np.asarray(y), "n_train": len(x)}


# A torchvision wheel built for CUDA beside a CPU-only torch cannot load its extension. torchvision means to go on without, yet
# its import then registers shape functions for two operators that only the extension declares, and fails with `operator
# torchvision::nms does not exist`. Declaring the two mends the import; data sets and models need neither.
_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"  # of both operators
operators = None  # torch forgets the declarations when this object goes


def _extension_loads(folder: Path) -> bool:
    import torch

    for path in [*folder.glob("_C*.so"), *folder.glob("_C*.pyd")]:
        try:
            torch.ops.load_library(path)
            return True
        except (ImportError, OSError):
            continue
    return False


def import_torchvision():
    """Return the module torchvision.

    Raises:
        MiaError: it is not installed.
    """
    global operators
    if "torchvision" not in sys.modules:
        spec = find_spec("torchvision")
        if spec is None:
            raise MiaError(
                "torchvision is not installed; downloads of image sets and the models of ResNet and ConvNeXt need "
                "it. Install the version in constraints.txt."
            )
        if operators is None and not _extension_loads(Path(spec.origin).parent):
            import torch

            operators = torch.library.Library("torchvision", "FRAGMENT")
            for operator in ("nms", "qnms"):
                operators.define(operator + _SIGNATURE)
    import torchvision

    return torchvision


def torchvision_set(folder: str, name: str) -> dict:
    """An image set that torchvision downloads by this name, training rows then test rows."""
    source = getattr(import_torchvision().datasets, name)
    parts = [source(folder, train=train, download=True) for train in (True, False)]
    x = np.concatenate([np.asarray(part.data) for part in parts])
    y = np.concatenate([np.asarray(part.targets) for part in parts])
    x = x.reshape(*x.shape[:3], -1)  # MNIST comes without a channel axis
    return {"x": x, "y": y, "n_train": len(parts[0].data), "classes": parts[0].classes}


def images(
    path: Path, splits: Sequence[str], image_size: int, per_class: int | None = None
) -> dict:
    """Images in SPLIT/CLASS/FILE, the first split for training, at most `per_class` of a class in each split: the
    shorter side scaled to `image_size`, the centre cut out."""
    from PIL import Image, ImageOps

    check_range("image_size", image_size, 8, 1024)
    check_range("per_class", 1 if per_class is None else per_class, 1)
    classes = sorted(folder.name for folder in (path / splits[0]).iterdir() if folder.is_dir())
    by_split = [
        [
            (file, label)
            for label, folder in enumerate(classes)
            for file in sorted((path / split / folder).glob("*.*"))[:per_class]
        ]
        for split in splits
    ]
    if not by_split[0]:
        raise MiaError(f"{path / splits[0]} holds no images: put them into one folder a class.")
    files = [pair for split in by_split for pair in split]
    x = np.empty((len(files), image_size, image_size, 3), np.uint8)
    for row, (file, _) in zip(x, track(files, f"reading {path.name}"), strict=True):
        with Image.open(file, formats=FORMATS) as image:
            row[:] = ImageOps.fit(
                image.convert("RGB"), (image_size, image_size), Image.Resampling.BICUBIC
            )
    return {
        "x": x,
        "y": [label for _, label in files],
        "n_train": len(by_split[0]),
        "classes": classes,
    }
