"""Signals of one bank of models, for those who attack with NumPy alone."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mia_lib import data, membership, published, signals, store, training
from mia_lib.errors import MiaError, check_range
from mia_lib.training.recipe import TrainConfig

LARGEST = 5_000_000  # bytes, what any mailbox takes
RECORDS = "fashion_mnist_20k"
FEATURES, DIRECTIONS = 11, 50  # numbers a record; main directions that its hardness is measured along
RECIPE = TrainConfig("mlp:32", epochs=60, batch_size=64, optimizer="sgd", learning_rate=0.05, momentum=0.9)
CLASSES = ("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")


@dataclass(frozen=True)
class Size:
    """How large a bank is.

    Attributes:
        records: N, of which each model is trained on half.
        models: M, in complementary pairs.
        public: records that no model was trained on.
        epochs: of each training.
    """

    records: int = 2000
    models: int = 18
    public: int = 2000
    epochs: int = RECIPE.epochs

    def __post_init__(self):
        check_range("records", self.records, 20, 9000)
        check_range("models", self.models, 6, 128)
        check_range("public", self.public, 20, 9000)
        if self.models % 2:
            raise MiaError(f"models = {self.models}: an even number is needed, for models come in pairs.")


WHAT = {
    "x": "uint8 [N, D], pixels of the records", "y": "uint8 [N], the number of each record's class",
    "members": "bool [M, N], whether model m was trained on record i; models 0 and 1, 2 and 3, ... share no record",
    "loss": "float32 [M, N], cross-entropy in nats of record i under model m",
    "margin": "float32 [M, N], log(p / (1 - p)) of the true class, higher for members",
    "features": "float32 [N, F], of each record: standardised coordinates along the main directions of the public ones, and "
                "last how much farther it lies from the mean of its own class than from the nearest other",
    "public_features": "float32 [Q, F], the same of records that no model was trained on",
    "public_margin": "float32 [Q], their margin under model 0",
    "w1": "float32 [D, H], model 0: logits = max(x / 255 @ w1 + b1, 0) @ w2 + b2", "b1": "float32 [H]",
    "w2": "float32 [H, K]", "b2": "float32 [K]",
}


def arrays(size: Size, seed: int = 0) -> dict[str, np.ndarray]:
    """The signals of a bank of small networks on Fashion-MNIST, by the names of `WHAT`; models are kept in the store.

    Args:
        size: of the bank. seed: of the records, of who is trained on what, and of the training.

    Raises:
        MiaError: more records than there are.
    """
    whole = data.load(RECORDS).as_table()
    if size.records + size.public > len(whole):
        raise MiaError(f"records + public = {size.records + size.public}: there are {len(whole)}.")
    drawn = np.random.default_rng([0x636F75, seed]).permutation(len(whole))[:size.records + size.public]
    records, public = whole.take(np.sort(drawn[:size.records])), whole.take(np.sort(drawn[size.records:]))
    members = membership.balanced_halves(size.records, size.models, seed)
    models = training.train(records, members, replace(RECIPE, epochs=size.epochs, seed=seed), label="models of the course")
    features, public_features = _features(records, public)
    w1, b1, w2, b2 = (weight.detach().numpy() for weight in models.model(0).parameters())
    return {"x": np.rint(255 * records.x).astype(np.uint8), "y": records.y.astype(np.uint8), "members": members,
            "loss": signals.loss(models, records).astype(np.float32),
            "margin": signals.logit_scaled_confidence(models, records).astype(np.float32), "features": features,
            "public_features": public_features,
            "public_margin": signals.logit_scaled_confidence(models.part([0]), public)[0].astype(np.float32),
            "w1": w1.T, "b1": b1, "w2": w2.T, "b2": b2}


def from_published(name: str, size: Size, seed: int = 0) -> dict[str, np.ndarray]:
    """Signals of a published bank, in NumPy and without training: of `WHAT` members, loss, margin and public_margin.

    Everybody has the published banks, and so what each model was trained on. These are for practice; a competition with a
    secret needs `arrays`.

    Args:
        name: of the bank, such as "bank/cifar10-small". size: as for `arrays`, its epochs aside. seed: of the pairs of models,
            of which the first is the target's, and of the records.

    Raises:
        MiaError: nothing such is published, or fewer models or records.
    """
    whole = published.load(name, arrays=("margin", "members"))
    trained, rng = whole.members.any(0), np.random.default_rng([0x707562, seed])
    for argument, wanted, there in (("models", size.models, len(whole)), ("records", size.records, int(trained.sum())),
                                    ("public", size.public, int((~trained).sum()))):
        if wanted > there:
            raise MiaError(f"{argument} = {wanted}: {name} has {there}.")
    pairs = rng.permutation(len(whole) // 2)[:size.models // 2]
    models = np.stack([2 * pairs, 2 * pairs + 1], 1).ravel()
    records, public = (np.sort(rng.permutation(np.flatnonzero(side))[:count])
                       for side, count in ((trained, size.records), (~trained, size.public)))
    margin = whole.margin[models]
    return {"members": whole.members[models][:, records], "loss": signals.loss_of(margin[:, records]).astype(np.float32),
            "margin": margin[:, records], "public_margin": margin[0, public]}


def _features(records, public) -> tuple[np.ndarray, np.ndarray]:
    """Of each, standardised coordinates along the main directions of the public records, and how hard the record looks: its
    squared distance from the mean of its own class less that from the nearest other, in fifty such coordinates."""
    centre = public.x.mean(0)
    variances, directions = np.linalg.eigh(np.cov(public.x - centre, rowvar=False))
    axes = (directions / np.sqrt(np.maximum(variances, 1e-12)))[:, :-DIRECTIONS - 1:-1]
    public_z, z = (public.x - centre) @ axes, (records.x - centre) @ axes
    means = np.stack([public_z[public.y == label].mean(0) for label in np.unique(public.y)])
    column = {label: k for k, label in enumerate(np.unique(public.y))}
    made = []
    for coordinates, labels in ((z, records.y), (public_z, public.y)):
        distance = ((coordinates[:, None] - means) ** 2).mean(-1)
        own = np.array([column.get(label, 0) for label in labels])[:, None]
        others = distance.copy()
        np.put_along_axis(others, own, np.inf, 1)
        harder = np.take_along_axis(distance, own, 1)[:, 0] - others.min(1)
        made.append(np.column_stack([coordinates[:, :FEATURES - 1], harder]).astype(np.float32))
    return tuple(made)


def packed(arrays: dict[str, np.ndarray]) -> bytes:
    """Arrays as the bytes of an .npz file, which holds no pickle and is the same whenever it is written.

    Raises:
        MiaError: it would be too large for a mail.
    """
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: np.array(array, order="C") for name, array in arrays.items()})
    if buffer.tell() > LARGEST:
        raise MiaError(f"The file would have {buffer.tell() / 1e6:.1f} MB, and {LARGEST / 1e6:g} are allowed, so that "
                       "it can be mailed. Take fewer records or models.")
    return buffer.getvalue()


def card(arrays: dict[str, np.ndarray], packed: bytes, size: Size, seed: int) -> dict:
    """What is in the file, how it was made, and on which terms."""
    return {
        "what": "Signals of one bank of models, to attack with NumPy alone",
        "records": "Fashion-MNIST (Xiao, Rasul and Vollgraf 2017, arXiv:1708.07747), some of the first 20,000 training "
                   "images",
        "classes": list(CLASSES), "licence": "MIT: (c) 2017 Zalando SE for the images; signals and weights as this book",
        "made": {"command": f"mia course data --seed {seed}", "size": vars(size),
                 "recipe": vars(replace(RECIPE, epochs=size.epochs, seed=seed))},
        "not_for": "conclusions about large models: these are small, and trained on few records for long, so that they "
                   "leak",
        "arrays": {name: {"what": WHAT[name], "shape": list(array.shape), "dtype": str(array.dtype)}
                   for name, array in arrays.items()},
        "bytes": len(packed), "sha256": hashlib.sha256(packed).hexdigest(),
    }


def write(to: Path, size: Size | None = None, seed: int = 0) -> Path:
    """Write a bank's signals and, beside them, their card (the same name, ending in .json).

    Args:
        to: a file that ends in .npz and does not exist. size, seed: as for `arrays`.

    Raises:
        MiaError: another ending, a file that is there already, one that is too large.
    """
    size = Size() if size is None else size
    if to.suffix != ".npz":
        raise MiaError(f"--to {to}: the name has to end in .npz.")
    for path in (to, to.with_suffix(".json")):
        if path.exists():
            raise MiaError(f"{path} is there already and is not overwritten. Give another name, or move it away.")
    signals_of_bank = arrays(size, seed)
    content = packed(signals_of_bank)
    store.write(to, content)
    store.write(to.with_suffix(".json"), (json.dumps(card(signals_of_bank, content, size, seed), indent=1) + "\n").encode())
    return to
