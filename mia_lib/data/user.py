"""Records of the user's own: from arrays, a DataFrame, a folder of images, a CSV or an `.npz` file.

What they are called does not matter to the store, which knows records by their content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mia_lib import environment
from mia_lib.archives import read_csv, read_npz
from mia_lib.checks import ALL_KINDS, check_labels, check_numbers, check_order
from mia_lib.data import sets
from mia_lib.data.readers import FORMATS
from mia_lib.data.sets import Dataset, plain_name
from mia_lib.errors import MiaError, brief, check_choice, check_count, check_whole, list_few
from mia_lib.frames import check_frame
from mia_lib.progress import track

IMAGES = (".png", ".jpg", ".jpeg")
SPLITS = ("train", "test")


def from_arrays(
    x, y, name: str, classes: Sequence[str] | None = None, n_train: int | None = None
) -> Dataset:
    """A data set from arrays in memory, which are copied.

    >>> import numpy as np
    >>> from_arrays(np.eye(4), ["no", "yes", "no", "yes"], "four records")
    four records: 4 records of 4 numbers, 2 classes

    Args:
        x: images uint8 [N, H, W, C]; or numbers [N, D], which become float32, as an array, lists or a DataFrame of numbers.
        y: labels [N], whole numbers from 0; or texts, or True and False, whose classes are their sorted values. Texts that are
            whole numbers and sort otherwise than these, as "10" before "2", need `classes` to confirm it.
        name: what tables call it.
        classes: names of the K classes, of labels that are numbers; "0" to K - 1 when None.
        n_train: the first so many are the training split; N when None.

    Raises:
        MiaError: other types or shapes, images whose pixels are floats or whose channels come first, columns that are no
            numbers, missing values, numbers beyond float32 or that it cannot tell apart, labels that are missing or no class,
            fewer than two classes.
    """
    if not isinstance(name, str) or not name.strip():
        raise MiaError(f"name = {name!r}: a text is needed, what tables are to call the records.")
    check_order(x=x, y=y)
    x = _records(x)
    y, classes = _labels(y, classes, len(x))
    n_train = len(x) if n_train is None else n_train
    x.flags.writeable = y.flags.writeable = False
    return Dataset(name, x, y, check_whole("n_train", n_train, 1, len(x)), classes)


def from_tokens(
    sequences,
    name: str,
    vocabulary: Sequence[str] | int,
    y=None,
    classes: Sequence[str] | None = None,
    padding: int = 0,
) -> Dataset:
    """A data set of token ids, for language models or, with labels, for classifiers of one's own.

    >>> from_tokens([[0, 5, 2], [0, 3]], "two records", 8)
    two records: 2 records of 3 whole numbers, 8 classes

    Args:
        sequences: of each record its token ids, whole numbers from 0, at least two; or an array [N, L], -1 behind the last.
        name: what tables call it.
        vocabulary: the V tokens, or how many there are.
        y, classes: labels [N] as for `from_arrays`, of a classifier; None for a language model, whose classes are the tokens.
        padding: the token behind a record's last that a classifier is given; a language model is never asked for it.

    Raises:
        MiaError: ids that are no whole numbers, outside the vocabulary, or too few; labels as for `from_arrays`.
    """
    if isinstance(vocabulary, Mapping):
        raise MiaError(
            "vocabulary is a dictionary, whose order is none of ids: give sorted(vocabulary, key=vocabulary.get), or how many "
            "tokens there are."
        )
    if isinstance(vocabulary, str) or not np.iterable(vocabulary):
        vocabulary = range(check_count("vocabulary", vocabulary, each=64))
    tokens = tuple(map(str, vocabulary))
    rows = [check_numbers(f"sequences[{i}]", np.asarray(row)) for i, row in enumerate(sequences)]
    for i, row in enumerate(rows):
        if isinstance(sequences, np.ndarray) and row.ndim == 1:
            row = row[: len(row) - np.argmax(row[::-1] != -1)]  # one between others is no padding
        rows[i] = row
        if row.ndim != 1 or row.dtype.kind not in "iu" or len(row) < 2:
            raise MiaError(
                f"sequences[{i}] has shape {row.shape} and type {row.dtype}: at least two token ids are needed, whole numbers."
            )
        if row.min() < 0 or row.max() >= len(tokens):
            raise MiaError(
                f"sequences[{i}] holds ids from {row.min()} to {row.max()}: allowed are 0 to {len(tokens) - 1}, those of the "
                f"{len(tokens)} tokens of the vocabulary."
            )
    if not rows:
        raise MiaError("sequences has no record: at least one is needed.")
    padding = -1 if y is None else check_whole("padding", padding, 0, len(tokens) - 1)
    x = np.full((len(rows), max(map(len, rows))), padding, np.int64)
    for row, ids in zip(x, rows, strict=True):
        row[: len(ids)] = ids
    if y is None:
        y, classes = np.zeros(len(x), np.int64), tokens
    else:
        y, classes = _labels(y, classes, len(x))
    x.flags.writeable = y.flags.writeable = False
    return Dataset(name, x, y, len(x), classes)


def _records(values) -> np.ndarray:
    """A copy of `x` in the form of `Dataset.x`."""
    # a DataFrame, of pandas or another library
    if hasattr(values, "dtypes") and hasattr(values, "columns"):
        _check_columns(values)
        values = (
            values.to_numpy(dtype=np.float64, na_value=np.nan)
            if hasattr(values, "iloc")
            else values.to_numpy()
        )
    x = check_numbers("x", values, ALL_KINDS)
    if x.dtype.kind not in "biuf":
        shown = next(iter(x.ravel().tolist()), None) if x.dtype.kind in "OUS" else x.dtype
        raise MiaError(
            f"x is of type {x.dtype}, such as {shown!r}: numbers are needed. Text "
            "columns become numbers one-hot, as by pandas.get_dummies(x, dtype=float) or data.from_csv."
        )
    if not len(x.shape) or not len(x):
        raise MiaError(
            f"x has shape {x.shape}: at least one record is needed, images [N, H, W, C] or tables [N, D]."
        )
    if x.ndim == 4 and x.dtype != np.uint8:
        low, high = (x.min(), x.max()) if x.size else (0, 0)
        scaled = (
            "255 * x"
            if 0 <= low and high <= 1
            else "x"
            if 0 <= low and high <= 255
            else "255 * (x - low) / (high - low)"
        )
        raise MiaError(
            f"x holds images of type {x.dtype} with values from {low:.4g} to {high:.4g}: bytes are needed, uint8 "
            "from 0 to 255, from which each model's scaling makes numbers. Give "
            f"({scaled}).round().astype(np.uint8)."
        )
    if x.ndim == 4 and x.shape[1] <= 4 < x.shape[3]:
        raise MiaError(
            f"x has shape {x.shape}: its channels seem to come first, where images are [N, H, W, C]. Give "
            "x.transpose(0, 2, 3, 1)."
        )
    if x.ndim == 3 and x.dtype == np.uint8:
        raise MiaError(
            f"x has shape {x.shape}: images are [N, H, W, C]. Grey ones get their axis of channels by "
            "x[..., None]."
        )
    if x.ndim != 4 and x.ndim != 2:
        raise MiaError(
            f"x has shape {x.shape}: images uint8 [N, H, W, C] or tables [N, D] are needed. Of a single column "
            "give x[:, None]; sequences and volumes become tables by x.reshape(len(x), -1)."
        )
    if 0 in x.shape[1:]:
        raise MiaError(f"x has shape {x.shape}: a record holds nothing.")
    if x.ndim == 4:
        return np.array(x, order="C")
    missing = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    if missing.any():
        raise MiaError(
            f"x has {missing.sum()} missing values, in columns {list_few(np.flatnonzero(missing.any(0)))}, first "
            f"in record {int(np.flatnonzero(missing.any(1))[0])}: fill them in, as with the mean of the column, or "
            "leave the records out."
        )
    with np.errstate(over="ignore"):
        table = np.array(x, np.float32, order="C")
    if not np.isfinite(table).all():
        raise MiaError(
            f"x has {(~np.isfinite(table)).sum()} values that float32 cannot hold, in columns "
            f"{list_few(np.flatnonzero((~np.isfinite(table)).any(0)))}: leave infinity out, and give large "
            "numbers in another unit."
        )
    # beyond, not every whole number is one of float32
    for column in np.flatnonzero(np.abs(table).max(0) > 2**24):
        there, kept = len(np.unique(x[:, column])), len(np.unique(table[:, column]))
        if 2 * kept < there:
            raise MiaError(
                f"x has {there} values in column {column}, of which float32 tells {kept} apart, such as "
                f"{x[0, column]}: leave numbers out that name records, and give others from a nearer zero."
            )
    return table


def _check_columns(table) -> None:
    """Refuse a DataFrame whose columns are no numbers."""
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        return
    texts = [
        name
        for name, kind in table.dtypes.items()
        if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind))
        or kind.kind == "c"
    ]
    if texts:
        raise MiaError(
            f"x has columns that are no numbers: {list_few(texts)}. For a network make them numbers, one-hot by "
            "pandas.get_dummies(x, dtype=float); dates become a number of days. For a pipeline that takes such a table "
            "data.from_frame(x, y, name) keeps it as it is."
        )
    lacking = [name for name in table.columns[table.isna().any().to_numpy()]]
    if lacking:
        raise MiaError(
            f"x has missing values in the columns {list_few(lacking)}: fill them in, as by x.fillna(x.mean()), or "
            "leave the records out, as by x.dropna(). For a model that takes them data.from_frame(x, y, name) keeps "
            "them."
        )


def _labels(
    labels, classes: Sequence[str] | None, records: int
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels int64 [N], and the names of the classes."""
    y = check_numbers("y", labels, ALL_KINDS)
    if classes is not None and (isinstance(classes, str) or np.ndim(classes) != 1):
        raise MiaError(f"classes = {classes!r}: the names of the classes are needed, one for each.")
    if y.ndim == 2 and y.shape[1] == 1 or y.ndim != 1 or len(y) != records:
        check_labels("y", np.empty(y.shape), records=records)
    if y.dtype.kind in "OUSb":
        values = y.tolist()
        if lacking := [
            k for k, value in enumerate(values) if value is None or value != value or value == ""
        ]:
            raise MiaError(
                f"y has {len(lacking)} missing labels, the first of record {lacking[0]}: leave those records out."
            )
        if not any(
            all(isinstance(value, kind) for value in values) for kind in (str, bool | np.bool_)
        ):
            kinds = sorted({type(value).__name__ for value in values})
            if all(isinstance(value, int | np.integer) for value in values) and "bool" not in kinds:
                y = y.astype(np.int64)
            else:
                raise MiaError(
                    f"y holds {' and '.join(kinds)}: whole numbers from 0, texts, or True and False are needed. "
                    "Give y.astype(str)."
                )
    if y.dtype.kind in "OUSb":
        distinct, y = np.unique(
            np.asarray(values if y.dtype.kind == "b" else list(map(str, values))),
            return_inverse=True,
        )
        names = tuple(map(str, distinct))
        if classes is not None:
            y, names = _places(names, classes)[y], tuple(map(str, classes))
        if (
            classes is None
            and all(map(str.isdecimal, names))
            and sorted(names, key=int) != list(names)
        ):
            raise MiaError(
                f"y holds texts that are whole numbers, and their order as texts, {list_few(names)}, is not that "
                "of the numbers. Give y.astype(int) for a model whose columns follow the numbers, or "
                "classes=sorted(set(y)) for one that was trained on the texts, as by scikit-learn."
            )
    else:
        y = np.array(check_labels("y", y, None if classes is None else len(classes), records))
        count = int(y.max(initial=-1)) + 1
        if classes is None and (
            empty := np.setdiff1d(np.arange(min(count, len(y) + 1)), y).tolist()
        ):  # of those
            raise MiaError(
                f"y runs to {count - 1}, but no record is of class {list_few(empty)}: name all classes, "
                f"those without records, too, by classes=(...), {count} or more in the order of their numbers"
                f"{'; labels that count from 1 become y - 1' if empty == [0] else ''}. If y is a quantity, as of a "
                "regression, it has no classes: attacks and audits here are for classifiers; `mia audit --scores` "
                "judges the negative of any loss, one a record, or what "
                "`attacks.calibration.calibrate` makes of it with references."
            )
        names = tuple(map(str, range(count) if classes is None else classes))
    if len(names) < 2:
        raise MiaError(f"y has one class, {names[0]!r}: a classifier needs at least two.")
    if len(set(names)) < len(names):
        raise MiaError(f"classes = {names}: each needs a name of its own.")
    return y.astype(np.int64), names


def _places(names: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """Place of each name among the classes, int [n]; a name that is none of them raises `MiaError`."""
    of_class = {str(name): k for k, name in enumerate(classes)}
    if unknown := [name for name in names if name not in of_class]:
        raise MiaError(
            f"classes = {brief(tuple(classes))}, but y holds {list_few(unknown)}, too: name all classes, or leave "
            "classes out, which are then the sorted values of y."
        )
    return np.array([of_class[name] for name in names], int)


def from_frame(
    table, label, name: str, classes: Sequence[str] | None = None, n_train: int | None = None
) -> Dataset:
    """A data set whose records are the rows of a DataFrame, its columns kept as they are: for a pipeline or a booster that
    takes words, categories, dates, True and False, and missing values.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"ward": ["A", "B", None], "age": [71, 8, 33], "died": ["no", "yes", "no"]})
    >>> from_frame(table, "died", "a hospital")
    a hospital: 3 records of 2 columns, 2 classes

    Args:
        table: one row a record. label: name of the column to be predicted, which is taken out of it, or labels [N] in the
            order of the rows: texts, whole numbers, or True and False.
        name: what tables call it.
        classes: names of the K classes, where some have no record here; the sorted values of the labels when None.
        n_train: the first so many are the training split; N when None.

    Raises:
        MiaError: what is no DataFrame of pandas, no such column, columns called alike or with collections in their cells,
            labels that are missing, fractions or no class, fewer than two classes.
    """
    table = check_frame("table", table)
    if isinstance(label, str):
        check_choice("label", label, map(str, table.columns))
        labels, table = table[label], table.drop(columns=label)
        table = check_frame(f"table without {label}", table)
    else:
        check_order(table=table, label=label)
        labels = label
    y, names = _named(labels)
    if classes is not None:
        y, names = _places(names, classes)[y], tuple(map(str, classes))
    y, names = _labels(y, names, len(table))
    n_train = len(table) if n_train is None else n_train
    return Dataset(name, table, y, check_whole("n_train", n_train, 1, len(table)), names)


def _named(labels) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels, texts, whole numbers or True and False, as places int [N] among their sorted values, and these as texts."""
    import pandas as pd

    if np.ndim(labels) != 1:
        raise MiaError(f"label has shape {np.shape(labels)}: [N] is needed, one a record.")
    column = pd.Series(np.asarray(labels) if not hasattr(labels, "isna") else labels)
    if missing := int(column.isna().sum()):
        raise MiaError(f"label: {missing} records have none: leave them out.")
    if pd.api.types.is_float_dtype(column):
        amounts = column[(column != column.round()) | (column.abs() >= 2**53)]
        if len(amounts):
            raise MiaError(
                f"label = {column.name!r} holds fractions, such as {amounts.iloc[0]}: classes are needed, texts or whole "
                "numbers. Of an amount make ranges, as by pandas.cut."
            )
        column = column.astype(np.int64)  # numbers that stood beside missing ones
    whole = pd.api.types.is_integer_dtype(column)
    values = column.to_numpy(np.int64) if whole else column.astype(str).to_numpy(str)
    distinct, places = np.unique(values, return_inverse=True)
    return places, tuple(map(str, distinct.tolist()))


def from_npz(path: str | Path, name: str | None = None) -> Dataset:
    """A data set from an `.npz` file with x and y, and n_train and classes where there are any, as for `from_arrays`,
    which refuses what does not fit.

    Args:
        path: of the file, as `np.savez` writes it; nothing in it is unpickled.
        name: the file's when None, in signs that are no markup.
    """
    path = _file(path)
    arrays = read_npz(
        path, str(path), ("x", "y"), ("n_train", "classes"), "Save it by np.savez(path, x=x, y=y)."
    )
    if unknown := {
        key: value
        for key, value in arrays.items()
        if key == "n_train" and np.shape(value) not in ((), (1,))
    }:
        raise MiaError(
            f"{path} cannot be used: n_train has shape {unknown['n_train'].shape}, where one number is needed."
        )
    return _from(
        path,
        arrays.pop("x"),
        arrays.pop("y"),
        name or plain_name(path.stem),
        **{
            key: value.tolist() if key == "classes" else value.ravel()[0]
            for key, value in arrays.items()
        },
    )


def load(name: str, **options) -> Dataset:
    """A data set by name, as `mia_lib.data.names` lists them, or one's own by the path of its `.npz` file, as for `from_npz`.

    Embedded sets are there at once, others come from `data_dir()` or the network.

    Args:
        name: of the set, or a path that ends in `.npz`.
        options: records, dimension and seed of gaussian; image_size and per_class of cinic10 and imagenet. Others take none.

    Returns:
        Dataset; of a named set its arrays are read-only.

    Raises:
        MiaError: unknown name or option, not here and no network, a file with the wrong hash, or one that `from_npz` refuses.
    """
    if not str(name).endswith(".npz"):
        return sets.load(name, **options)
    if options:
        raise MiaError(
            f"{name} is a file of records, which takes no options; given: {', '.join(options)}. Leave them out."
        )
    return from_npz(name)


def _file(path: str | Path) -> Path:
    path = environment.path(path)
    if not path.is_file():
        raise MiaError(f"path = {str(path)!r}: there is no such file ({path.resolve()}).")
    return path


def _from(path: Path, x, y, name: str, classes=None, n_train=None) -> Dataset:
    try:
        return from_arrays(x, y, name, classes, n_train)
    except MiaError as problem:
        raise MiaError(f"{path} cannot be used: {problem}") from problem


def from_csv(path: str | Path, label: str, name: str | None = None) -> Dataset:
    """A data set from a CSV with a line of names and a column of labels.

    Columns of numbers stay as they are; those of texts, or of True and False, become one column for each value, 1 where it
    stands and else 0, in the order of their values. Numbers are not standardised: networks train better on columns of mean 0
    and spread 1, which scikit-learn's StandardScaler gives, learnt from records that nobody is to be told apart by.

    Args:
        path: of the file.
        label: the column to be predicted, texts or whole numbers; its sorted values are the classes.
        name: the file's when None, in signs that are no markup.

    Raises:
        MiaError: no such file or column, a column that is there twice, missing values (the columns are named), texts of so
            many values that they are names or numbers of records, one class.
    """
    import pandas as pd

    path = _file(path)
    table = read_csv(path, str(path))
    check_choice("label", label, map(str, table.columns))
    lacking = table.columns[table.isna().any().to_numpy()]
    if len(lacking):
        raise MiaError(
            f"{path} has missing values in {list_few(f'{name} ({table[name].isna().sum()})' for name in lacking)}: "
            "fill them in, or leave those lines or columns out."
        )
    y, classes = _named(table[label])
    table = table.drop(columns=label)
    if not len(table.columns):
        raise MiaError(f"{path} has no column besides {label}.")
    texts = [
        column
        for column in table
        if not pd.api.types.is_numeric_dtype(table[column])
        or pd.api.types.is_bool_dtype(table[column])
    ]
    if many := [column for column in texts if table[column].nunique() > max(50, len(table) // 10)]:
        raise MiaError(
            f"{path} has text of {table[many[0]].nunique()} values in {many[0]}, for {len(table)} records: it "
            "seems to name records, not to describe them. Leave the column out, or put its values into groups."
        )
    parts = [
        pd.get_dummies(table[column].astype(str), prefix=column, dtype=np.float64)
        if column in texts
        else table[column].astype(np.float64)
        for column in table
    ]
    return _from(
        path,
        pd.concat(parts, axis=1),
        y,
        name or plain_name(path.stem),
        classes,
    )


def from_folder(
    path: str | Path, name: str | None = None, image_size: int | None = None
) -> Dataset:
    """A data set from images in PATH/CLASS/FILE, or in PATH/train/CLASS/FILE and PATH/test/CLASS/FILE.

    Images are PNG or JPEG files, read in the order of their names, class by class; those of train come first, and `n_train`
    counts them. Where all are grey they have one channel, else three; transparency is dropped.

    Args:
        path: of the folder.
        name: the folder's when None, in signs that are no markup.
        image_size: height and width in pixels, to which the shorter side is scaled and the centre cut out. When None all
            images must have one size.

    Raises:
        MiaError: no such folder, fewer than two classes, a class without images or one that only test has, a file that is no
            image (it is named), images of several sizes.
    """
    from PIL import Image, ImageOps

    path = environment.path(path)
    if not path.is_dir():
        raise MiaError(f"path = {str(path)!r}: there is no such folder ({path.resolve()}).")
    if image_size is not None:
        check_whole("image_size", image_size, 1, 4096)
    classes, splits = _files(path)
    files = [pair for split in splits for pair in split]
    images = []
    for file, _ in track(files, f"reading {path.name}"):
        try:
            with Image.open(file, formats=FORMATS) as opened:
                grey = opened.mode in ("1", "L", "LA", "I", "I;16", "F")
                if opened.mode in ("I", "I;16", "F"):
                    raise MiaError(
                        f"{file} has more than 8 bits a pixel (Pillow's mode {opened.mode}): save it with 8."
                    )
                image = ImageOps.exif_transpose(opened).convert("L" if grey else "RGB")
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as problem:
            if isinstance(problem, MiaError):
                raise
            raise MiaError(
                f"{file} cannot be read as an image ({problem}): mend it, or take it away."
            ) from problem
        if image_size is not None:
            image = ImageOps.fit(image, (image_size, image_size), Image.Resampling.BICUBIC)
        images.append(np.asarray(image))
        if images[0].shape[:2] != images[-1].shape[:2]:
            sizes = [" x ".join(map(str, image.shape[1::-1])) for image in (images[0], images[-1])]
            raise MiaError(
                f"{file} has {sizes[1]} pixels, {files[0][0]} has {sizes[0]}: give image_size, to which all are "
                "scaled."
            )
    coloured = any(image.ndim == 3 for image in images)
    x = np.stack(
        [
            np.repeat(image[..., None], 3, 2)
            if image.ndim == 2 and coloured
            else image[..., None]
            if image.ndim == 2
            else image
            for image in images
        ]
    )
    y = np.array([label for _, label in files])
    return _from(path, x, y, name or plain_name(path.resolve().name), classes, len(splits[0]))


def _files(path: Path) -> tuple[list[str], list[list[tuple[Path, int]]]]:
    """Classes, and for each split its files with their labels."""

    def inside(folder: Path) -> list[Path]:
        return sorted(
            (
                entry
                for entry in folder.iterdir()
                if entry.is_dir() and not entry.name.startswith(".")
            ),
            key=lambda entry: entry.name,
        )

    folders = inside(path)
    splits = [path / split for split in SPLITS if (path / split).is_dir()]
    if len(splits) == 2 and len(folders) > 2 or len(splits) == 1 and any(inside(splits[0])):
        lie = list_few(
            entry.name for entry in folders if entry.name not in SPLITS
        ) or "no " + "".join(split for split in SPLITS if not (path / split).is_dir())
        raise MiaError(
            f"{path} holds {' and '.join(split.name for split in splits)}, and {lie} beside: PATH/CLASS/FILE is "
            "needed, or PATH/train/CLASS/FILE and PATH/test/CLASS/FILE."
        )
    split = len(splits) == 2 and any(inside(entry) for entry in splits)
    roots = splits if split else [path]
    classes = [entry.name for entry in inside(roots[0])]
    if len(classes) < 2:
        raise MiaError(
            f"{roots[0]} holds {len(classes)} folders: one for each class is needed, at least two, with the images "
            "of the class in it."
        )
    labelled = []
    for root in roots:
        if other := [entry.name for entry in inside(root) if entry.name not in classes]:
            raise MiaError(f"{root} has the class {list_few(other)}, which {roots[0]} has not.")
        labelled.append(
            [
                (file, label)
                for label, name in enumerate(classes)
                if (root / name).is_dir()
                for file in sorted((root / name).iterdir(), key=lambda entry: entry.name)
                if file.suffix.lower() in IMAGES and not file.name.startswith(".")
            ]
        )
    if empty := [
        name
        for label, name in enumerate(classes)
        if label not in {taken for _, taken in labelled[0]}
    ]:
        raise MiaError(
            f"{roots[0] / empty[0]} holds no images: files that end in {', '.join(IMAGES)} are looked for, not in "
            "folders within."
        )
    return classes, labelled
