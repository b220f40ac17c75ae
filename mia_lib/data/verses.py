"""The Bible's verses in two translations: what they say, and where they stand."""

from __future__ import annotations

import numpy as np

from mia_lib.archives import read_npz
from mia_lib.data import readers
from mia_lib.data.sets import EMBEDDED, Dataset
from mia_lib.errors import MiaError

# the first records of both translations: no other verse has their words, and the tokens were not learned on them
JUDGED = 8000


def places():
    """Book (0 to 65, 39 of them before the New Testament), chapter and verse of each record of "verses_kjv" and "verses_web",
    which have the same order: the `JUDGED` first ones at random, the others as in the canon."""
    import pandas as pd

    path = EMBEDDED / "verses.npz"
    arrays = read_npz(readers.verified(path), str(path), ("place", "books"), ())
    frame = pd.DataFrame(arrays["place"], columns=["book", "chapter", "verse"])
    return frame.assign(name=arrays["books"][frame["book"]])


def texts(records: Dataset) -> list[str]:
    """Texts of records whose classes are the tokens of a byte-pair encoding as GPT-2 writes them: one printable letter a byte,
    and special tokens in angle brackets, which are left out."""
    if records.kind != "tokens":
        raise MiaError(f"{records.name} has {records.kind} records: texts are of token ids.")
    byte_of = _bytes_of_letters()
    try:
        pieces = [
            b""
            if token.startswith("<") and token.endswith(">")
            else bytes(byte_of[a] for a in token)
            for token in records.classes
        ]
    except KeyError as error:
        raise MiaError(
            f"{records.name} has a token with the letter {error}, which is none of a byte-pair encoding as GPT-2 writes it."
        ) from None
    return [b"".join(pieces[i] for i in row[row >= 0]).decode() for row in records.x]


def _bytes_of_letters() -> dict[str, int]:
    """The byte that each letter of a token stands for: itself where it is printable, else the next letter from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = np.setdiff1d(np.arange(256), printable).tolist()
    return {chr(byte): byte for byte in printable} | {
        chr(256 + n): byte for n, byte in enumerate(others)
    }
