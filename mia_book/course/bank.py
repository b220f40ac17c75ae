"""Signals of one published bank, and verses, in a file, for those who attack with NumPy alone."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import numpy as np

from mia_lib import data, published, signals, store
from mia_lib.errors import MiaError

NAME = "bank/fashion-mlp"
LARGEST = 5_000_000  # bytes, what any mailbox takes
# numbers a record; main directions that its hardness is measured along
FEATURES, DIRECTIONS = 11, 50
# of the King James Version; books of the Old Testament
VERSES, OLD_BOOKS = 3000, 39
CLASSES = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
WHAT = {
    "x": "uint8 [N, D], pixels of the records",
    "y": "uint8 [N], the number of each record's class",
    "members": "bool [M, N], whether model m was trained on record i; models 0 and 1, 2 and 3, ... share no record",
    "loss": "float32 [M, N], cross-entropy in nats of record i under model m",
    "margin": "float32 [M, N], log(p / (1 - p)) of the true class, higher for members",
    "features": "float32 [N, F], of each record: standardised coordinates along the main directions of the public ones, and "
    "last how much farther it lies from the mean of its own class than from the nearest other",
    "public_features": "float32 [Q, F], the same of records that no model was trained on",
    "public_margin": "float32 [M, Q], their margin under each model",
    "w1": "float32 [D, H], model 0: logits = max(x / 255 @ w1 + b1, 0) @ w2 + b2",
    "b1": "float32 [H]",
    "w2": "float32 [H, K]",
    "b2": "float32 [K]",
    "verse_tokens": "uint16 [S], token ids from 0 to 2047 of verses, one verse after the other; each begins with token 0",
    "verse_offsets": "int32 [V + 1], where each verse begins, and the last one ends",
    "verse_new": "bool [V], whether a verse is of the New Testament",
}


def arrays() -> dict[str, np.ndarray]:
    """The signals of the bank `NAME` and verses, by the names of `WHAT`; PyTorch neither trains nor
    computes any of them."""
    bank = published.load(NAME, arrays=("margin", "members"))
    weights = published.load(f"{NAME}-weights", 1).arrays
    whole = data.load(bank.parameters["dataset"]).as_table()
    records, public = whole.take(bank.trained), whole.take(bank.untrained)
    features, public_features = _features(records, public)
    margin = bank.margin[:, bank.trained]
    verses = data.load("verses_kjv").x[:VERSES]
    lengths = (verses >= 0).sum(1)
    w1, b1, w2, b2 = (
        weights[name][0].astype(np.float32)
        for name in ("body.1.weight", "body.1.bias", "head.weight", "head.bias")
    )
    return {
        "x": np.rint(255 * records.x).astype(np.uint8),
        "y": records.y.astype(np.uint8),
        "members": bank.members[:, bank.trained],
        "loss": signals.loss_of(margin).astype(np.float32),
        "margin": margin,
        "features": features,
        "public_features": public_features,
        "public_margin": bank.margin[:, bank.untrained],
        "w1": 2 * w1.T,
        "b1": b1 - w1.sum(1),
        "w2": w2.T,
        "b2": b2,
        "verse_tokens": verses[verses >= 0].astype(np.uint16),
        "verse_offsets": np.append(0, lengths.cumsum()).astype(np.int32),
        "verse_new": data.places()["book"].to_numpy()[:VERSES] >= OLD_BOOKS,
    }  # of pixels from 0 to 1; the model takes -1 to 1


def _features(records, public) -> tuple[np.ndarray, np.ndarray]:
    """Features [N, `FEATURES`] of the records and of the public ones: standardised coordinates
    along the main directions of the public records, and last how hard the record looks. That is its
    squared distance from the mean of its own class less that from the nearest other, in fifty such
    coordinates."""
    centre = public.x.mean(0)
    variances, directions = np.linalg.eigh(np.cov(public.x - centre, rowvar=False))
    axes = (directions / np.sqrt(np.maximum(variances, 1e-12)))[:, : -DIRECTIONS - 1 : -1]
    public_z, z = (public.x - centre) @ axes, (records.x - centre) @ axes
    means = np.stack([public_z[public.y == label].mean(0) for label in np.unique(public.y)])
    made = []
    for coordinates, labels in ((z, records.y), (public_z, public.y)):
        distance = ((coordinates[:, None] - means) ** 2).mean(-1)
        others = distance.copy()
        np.put_along_axis(others, labels[:, None], np.inf, 1)
        harder = np.take_along_axis(distance, labels[:, None], 1)[:, 0] - others.min(1)
        made.append(np.column_stack([coordinates[:, : FEATURES - 1], harder]).astype(np.float32))
    return tuple(made)


def packed(arrays: dict[str, np.ndarray]) -> bytes:
    """Arrays as the bytes of an .npz file, which holds no pickle and is the same whenever it is written.

    Raises:
        MiaError: it would be too large for a mail.
    """
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer, **{name: np.array(array, order="C") for name, array in arrays.items()}
    )
    if buffer.tell() > LARGEST:
        raise MiaError(
            f"The file would have {buffer.tell() / 1e6:.1f} MB, and {LARGEST / 1e6:g} are allowed, so that "
            "it can be mailed."
        )
    return buffer.getvalue()


def card(arrays: dict[str, np.ndarray], packed: bytes) -> dict:
    """Card of the file, as plain data: what is in it, how it was made, and on which terms."""
    return {
        "what": f"Signals of the published bank {NAME} and verses, to attack with NumPy alone",
        "records": "Fashion-MNIST (Xiao, Rasul and Vollgraf 2017, arXiv:1708.07747), some of the first 20,000 training "
        "images; verses of the King James Version",
        "classes": list(CLASSES),
        "licence": "MIT: (c) 2017 Zalando SE for the images; signals and weights as this book; verses: public domain",
        "made": {"command": "mia course data", "parameters": published.load(NAME, 1).parameters},
        "not_for": "conclusions about large models: these are small, and trained on few records for long, so that they leak",
        "arrays": {
            name: {"what": WHAT[name], "shape": list(array.shape), "dtype": str(array.dtype)}
            for name, array in arrays.items()
        },
        "bytes": len(packed),
        "sha256": hashlib.sha256(packed).hexdigest(),
    }


def write(to: Path) -> Path:
    """Write the bank's signals and, beside them, their card (the same name, ending in .json).

    Args:
        to: a file that ends in .npz and does not exist.

    Raises:
        MiaError: another ending, a file that is there already.
    """
    if to.suffix != ".npz":
        raise MiaError(f"--to {to}: the name has to end in .npz.")
    for path in (to, to.with_suffix(".json")):
        if path.exists():
            raise MiaError(
                f"{path} is there already and is not overwritten. Give another name, or move it away."
            )
    signals_of_bank = arrays()
    content = packed(signals_of_bank)
    store.write(to, content)
    store.write(
        to.with_suffix(".json"),
        (json.dumps(card(signals_of_bank, content), indent=1) + "\n").encode(),
    )
    return to
