"""Arrays from `.npz` files, and tables from CSV: nothing is unpickled, and whatever is damaged ends in one `MiaError`."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mia_lib.errors import MEMORY, MiaError, first_line

if TYPE_CHECKING:
    import pandas as pd


def read_npz(
    source: Path | bytes,
    what: str,
    needed: Sequence[str] = (),
    more: Sequence[str] | None = None,
    remedy: str = "",
) -> dict[str, np.ndarray]:
    """Arrays by name from an `.npz` file, or from its content.

    Args:
        source: path or content. what: what messages call it. needed: names that it must have. more: names of those that are
            read, too, where they are there; all when None. remedy: the end of messages.

    Raises:
        MiaError: it cannot be read, lacks an array, or has one of Python's objects among those that are read.
    """
    arrays, objects = {}, []
    try:
        with zipfile.ZipFile(
            io.BytesIO(source) if isinstance(source, bytes) else source
        ) as archive:
            entries = {entry.removesuffix(".npy"): entry for entry in archive.namelist()}
            if len(entries) < len(archive.namelist()):  # of which readers take different ones
                raise ValueError("an array is in it twice")
            lacking = [name for name in needed if name not in entries]
            wanted = (
                entries if more is None else [name for name in (*needed, *more) if name in entries]
            )
            # A few bytes unpack to any number, and whoever reads copies them.
            size = sum(archive.getinfo(entries[name]).file_size for name in wanted)
            if size > MEMORY // 2:
                raise ValueError(
                    f"{size:,} bytes unpacked, more than half of this machine's memory"
                )
            for name in wanted:
                with archive.open(entries[name]) as part:
                    try:
                        arrays[name] = np.lib.format.read_array(part, allow_pickle=False)
                    except ValueError as error:
                        if not str(error).startswith("Object arrays"):
                            raise
                        objects.append(name)
                    else:
                        if part.read(1):  # its end, where zipfile compares the checksum
                            raise ValueError(f"{name} has more bytes than its header says")
    except Exception as error:  # zipfile, zlib and NumPy raise a dozen kinds
        raise MiaError(
            f"{what} cannot be read as an .npz file of plain arrays ({first_line(error)}). {remedy}"
        ) from error
    if lacking:
        raise MiaError(
            f"{what} has no array {' and '.join(lacking)} (it has {', '.join(entries) or 'none'}). {remedy}"
        )
    if objects:
        raise MiaError(
            f"{what} holds objects of Python in {', '.join(objects)}, as columns of text in pandas are, and none "
            f"is read: save texts as {objects[0]}.astype(str), numbers as {objects[0]}.astype(float). {remedy}"
        )
    return arrays


def _separators(path: Path) -> dict[str, str]:
    """How fields are parted, and decimals: by semicolon and comma where spreadsheets of many countries write so."""
    with path.open(encoding="utf-8", errors="replace") as file:
        start = file.read(2**16)
    header = start.partition("\n")[0]
    if header.count(";") <= header.count(","):
        return {}
    return {"sep": ";", "decimal": "," if re.search(r"\d,\d", start) else "."}


def read_csv(path: Path, what: str, texts: Sequence[str] = ()) -> pd.DataFrame:
    """A CSV with a line of names as a DataFrame, each column read as a whole; those named in `texts`, where there are such,
    as the texts that they hold, such as "NA" and "007".

    Args:
        what: what messages call it.

    Raises:
        MiaError: it cannot be read, has a line of more fields than names, or a name twice.
    """
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # without index_col a field more would make the first column an index
            read = partial(pd.read_csv, path, index_col=False, **_separators(path))
            names = read(header=None, dtype=str, nrows=1).iloc[0]
            table = read(low_memory=False)
            for name in table.columns.intersection(texts):
                how = {"dtype": str, "keep_default_na": False, "na_values": [""]}
                table[name] = read(usecols=[name], **how)[name]
    except (ValueError, OSError, pd.errors.ParserWarning) as error:
        raise MiaError(
            f"{what} cannot be read as a CSV ({first_line(error)}): write one row a record, with the names of the "
            "columns in the first, and no field more."
        ) from error
    if twice := names[names.duplicated() & names.notna()].tolist():
        raise MiaError(f"{what} has several columns {twice[0]}: give each a name of its own.")
    return table
