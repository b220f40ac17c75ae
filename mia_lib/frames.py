"""Tables whose columns are kept as they are, DataFrames of pandas: words, categories, dates and holes among numbers.

What the rest of the library does with records that are an array, it does with such a table through these functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mia_lib.errors import MiaError, list_few

if TYPE_CHECKING:
    import pandas as pd

FREQUENT = 20  # values of a column of words that get a column of their own where they are coded


def is_frame(x) -> bool:
    """True if records are a DataFrame of pandas."""
    return hasattr(x, "iloc") and hasattr(x, "columns")


def take(x, rows):
    """Records at `rows` (int [n] or bool [N]) of an array or a DataFrame, in that order."""
    return x.iloc[rows].reset_index(drop=True) if is_frame(x) else x[rows]


def join(parts: Sequence):
    """Records of arrays, or of DataFrames with the same columns, one after the other."""
    if not is_frame(parts[0]):
        return np.concatenate(parts)
    import pandas as pd

    return pd.concat(parts, ignore_index=True)


def check_frame(argument: str, table) -> pd.DataFrame:
    """A copy of a DataFrame with rows counted from 0.

    Raises:
        MiaError: anything but a DataFrame of pandas; no rows or columns; columns that are called alike or by several names;
            cells that hold lists or other collections.
    """
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        remedy = (
            f"{argument}.to_pandas()"
            if hasattr(table, "to_pandas")
            else f"pd.DataFrame({argument})"
        )
        raise MiaError(
            f"{argument} is of type {type(table).__name__}: a DataFrame of pandas is needed, as {remedy}."
        )
    if 0 in table.shape:
        raise MiaError(
            f"{argument} has shape {table.shape}: at least one record and one column are needed."
        )
    if table.columns.nlevels > 1 or table.columns.has_duplicates:
        raise MiaError(
            f"{argument} has columns that are called alike or by several names "
            f"({list_few(table.columns[table.columns.duplicated()]) or 'levels'}): give each one name of its own."
        )
    objects = [name for name in table if table[name].dtype == object]
    nested = [name for name in objects if not table[name].map(pd.api.types.is_scalar).all()]
    if nested:
        raise MiaError(
            f"{argument} has columns whose cells are collections: {list_few(nested)}. Give each part a column."
        )
    return table.reset_index(drop=True)


def row_hashes(table: pd.DataFrame) -> np.ndarray:
    """Hash of each row of a DataFrame, whatever its index, uint64 [N]."""
    import pandas as pd

    return pd.util.hash_pandas_object(table, index=False).to_numpy()


def content(x) -> np.ndarray:
    """An array by which records are known: they themselves, or of a DataFrame the hashes of its header and its rows."""
    if not is_frame(x):
        return x
    header = repr([(name, repr(kind)) for name, kind in x.dtypes.items()]).encode()
    first = int.from_bytes(hashlib.sha256(header).digest()[:8], "little")
    return np.concatenate([np.array([first], np.uint64), row_hashes(x)])


def encode(table: pd.DataFrame) -> np.ndarray:
    """A DataFrame as numbers, float64 [N, C], finite, for a classifier that looks at records.

    A number stays one, a date is its time; a word is its place in the alphabet, its length, and one column for each of the
    most frequent words. What is missing has a column of its own, and counts as the median.
    """
    import pandas as pd

    columns: list[np.ndarray] = []
    for _, column in table.items():
        missing, more = column.isna().to_numpy(), []
        kind = column.dtype
        if pd.api.types.is_numeric_dtype(kind) and kind.kind != "c":
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        elif getattr(kind, "kind", "") in "mM":
            values = np.where(missing, np.nan, column.astype("int64").to_numpy(dtype=np.float64))
        else:
            words = column.astype(str).to_numpy(dtype=str)
            distinct, values, counts = np.unique(words, return_inverse=True, return_counts=True)
            frequent = np.argsort(-counts, kind="stable")[:FREQUENT]
            more = [np.char.str_len(words), *(values == place for place in frequent)]
            values = np.where(missing, np.nan, values)
        known = np.isfinite(values)
        median = np.median(values[known]) if known.any() else 0.0
        columns += [np.where(known, values, median), *more]
        if not known.all():
            columns.append(~known)
    return np.stack(columns, 1).astype(np.float64)
