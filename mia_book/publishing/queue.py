"""Work of `mia publish` and `mia verify`: the queue of what is still to be measured, and pieces
measured again."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from mia_book import publishing
from mia_book.publishing import Measurement, writing
from mia_lib import documents, published
from mia_lib.errors import MiaError, attempt, check_choice, check_count, explain, validated
from mia_lib.progress import duration
from mia_lib.published import pieces

if TYPE_CHECKING:
    import pandas as pd

FAILED = "FAILED: "  # begins what is said of an entry that could not be measured
EXPONENT = r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+"  # in YAML 1.1 a text, without a point or a sign
FEWEST = 100  # numbers of a model by which it can be told from others


def find(name: str) -> Measurement:
    """A measurement by name, or a `MiaError` with the nearest."""
    known = publishing.catalogue()
    return known[check_choice("measurement", name, known)]


class Entry(BaseModel, extra="forbid", arbitrary_types_allowed=True):
    """A measurement that is published, or is to be.

    Attributes:
        measurement: which, by its name. models: how many there are to be. parameters: complete ones.
        minutes: of all of them where nobody has measured one yet, by device: "cpu" (two cores) and "card".
        trial: parameters at which a test measures two models of it on a CPU.
        petaflop: floating-point operations of all of them. megabytes: of their files.
    """

    measurement: Annotated[
        Measurement, BeforeValidator(lambda name: find(name) if isinstance(name, str) else name)
    ]
    models: PositiveInt
    parameters: dict = {}
    minutes: dict[Literal["cpu", "card"], PositiveFloat] = {}
    trial: dict = {}
    petaflop: NonNegativeFloat | None = None
    megabytes: NonNegativeFloat | None = None

    @model_validator(mode="after")
    def _complete(self):
        self.parameters = self.measurement.complete(self.parameters)
        return self

    def missing_models(self) -> list[int]:
        """Numbers of the models that are not published."""
        return self.measurement.missing_models(range(self.models), self.parameters, published=True)

    def megabytes_each(self) -> float:
        """Megabytes of a model: of those that are published, else as the queue has it; 0 where neither tells."""
        there = [
            piece.manifest
            for piece in self.measurement.available(self.parameters)
            if piece.is_published
        ]
        if there:
            models = sum(len(range(*manifest["index"])) for manifest in there)
            return sum(manifest["bytes"] for manifest in there) / models / 1e6
        return (self.megabytes or 0.0) / self.models

    def each(self) -> float | None:
        """Seconds a model on this device: from the nearest manifest of such models, else from the queue, else from any."""
        if (alike := self.measurement.seconds(1, self.parameters, alike=True)) is not None:
            return alike
        planned = self.minutes.get("cpu" if writing.device_kind() == "cpu" else "card")
        if planned:
            return 60 * planned / self.models
        return self.measurement.seconds(1, self.parameters)

    def planned(self, device: str, missing: int) -> str:
        """Time, in words, that the queue expects for `missing` models, on "cpu" or "card"; "" if
        none is missing or it says nothing."""
        if missing and device in self.minutes:
            return duration(60 * self.minutes[device] * missing / self.models)
        return ""

    def unusual(self) -> str:
        """The parameters that are not the measurement's own, in words."""
        usual = self.measurement.usual()
        return ", ".join(
            f"{name} {value}" for name, value in self.parameters.items() if usual.get(name) != value
        )


def read_values(parameters: Mapping[str, str]) -> dict:
    """Parameters of a command line: numbers, lists, true and null as YAML writes them, else text."""
    remedy = "Put a text with such signs in quotes of its own, as '\"text\"'."
    return {
        name: float(value)
        if re.fullmatch(EXPONENT, value)
        else documents.parse(value, f"-p {name}", object, remedy)
        for name, value in parameters.items()
    }


def queue() -> list[Entry]:
    """The entries of data/published/queue.yaml, in the order in which they are to be measured.

    Raises:
        MiaError: it is no list of entries; one of an unknown measurement or parameter, or without what it needs.
    """
    path = published.folder() / "queue.yaml"
    remedy = "Write a list of entries, as `- measurement: bank/cifar10-small`; [] is an empty one."
    entries = documents.load(path, list, remedy) if os.path.lexists(path) else []
    return [
        validated(Entry, entry, f"entry {number} of {path}: ")
        for number, entry in enumerate(entries, 1)
    ]


def published_entries() -> list[tuple[Entry, list[pieces.Piece]]]:
    """All that is published, as a queue would have it, each entry with its pieces."""
    return [
        (
            Entry.model_construct(
                measurement=measurement, parameters=parameters, models=len(pieces.numbers(blocks))
            ),
            blocks,
        )
        for measurement, parameters, blocks in publishing.groups()
    ]


def table() -> pd.DataFrame:
    """Table of what is published and what is missing, a row an entry: measurement, models, missing,
    parameters; `here`, the time that the missing ones take on this device, and `card`, what the
    queue expects of a card."""
    import pandas as pd

    entries = queue()
    listed = [(entry.measurement.name, entry.parameters) for entry in entries]
    entries += [
        entry
        for entry, _ in published_entries()
        if (entry.measurement.name, entry.parameters) not in listed
    ]
    rows = []
    for entry in entries:
        missing, each = len(entry.missing_models()), entry.each()
        here = "" if not missing else "not known" if each is None else duration(missing * each)
        rows.append(
            (
                entry.measurement.name,
                entry.models,
                missing,
                entry.unusual(),
                here,
                entry.planned("card", missing),
            )
        )
    return pd.DataFrame(rows, columns="measurement models missing parameters here card".split())


def page() -> str:
    """Markdown of what was measured where, and of what is still to be."""
    import pandas as pd

    from mia_book.evidence.results import markdown_table

    done = pd.DataFrame(
        [
            {
                "measurement": _cell(entry),
                "models": entry.models,
                "on": " and ".join(
                    sorted({piece.manifest["device"].partition(" (")[0] for piece in blocks})
                ),
                "took": duration(sum(piece.manifest["seconds"] for piece in blocks)),
                "measured": max(piece.manifest["date"] for piece in blocks),
            }
            for entry, blocks in published_entries()
        ]
    )
    missing = pd.DataFrame(
        [
            {
                "measurement": _cell(entry),
                "models": missing,
                "petaflop": f"{entry.petaflop * missing / entry.models:.3g}",
                "two cores": entry.planned("cpu", missing),
                "one H100": entry.planned("card", missing),
            }
            for entry in queue()
            if (missing := len(entry.missing_models()))
        ]
    )
    return (
        f"{markdown_table(done)}\n\nStill to be measured, in this order; times are what the queue expects of the models "
        f"that are missing, where nobody has measured one yet:\n\n{markdown_table(missing)}"
    )


def _cell(entry: Entry) -> str:
    return ", ".join(
        filter(None, [f"`{entry.measurement.name}`", pieces.MARKUP.sub("-", entry.unusual())])
    )


def next_of_queue(minutes: float) -> Iterator[str]:
    """Measure and publish what fits into some minutes, in the order of the queue; yields what it does and what it did."""
    until = time.monotonic() + 60 * minutes
    for entry in queue():
        wanted, each, left = entry.missing_models(), entry.each(), until - time.monotonic()
        missing = len(wanted)
        size = entry.megabytes_each()
        room = (writing.TOTAL_LIMIT - writing.published_bytes()) / 1e6
        if not missing:
            continue
        if left <= 0 or (each and each > left):
            yield f"{entry.measurement.name}: no time for any of the {missing} that are missing; {duration(max(left, 0))} left"
            return
        if size > room:
            yield (
                f"{entry.measurement.name}: no room for any of the {missing} that are missing, of {size:.2f} MB each; "
                f"{room:.1f} MB are left of what may be published"
            )
            continue
        wanted = wanted[: int(room / size)] if size else wanted
        fits = min(len(wanted), int(left / each)) if each else len(wanted)
        cost = (
            "nothing tells what one takes here"
            if each is None
            else f"about {duration(fits * each)}"
        )
        yield f"{entry.measurement.name}: {missing} of {entry.models} models are missing, {fits} fit ({cost})"
        failed: list[Exception] = []
        with attempt(failed):
            for path_of_piece in entry.measurement.publish(wanted, entry.parameters, until, each):
                yield f"wrote {path_of_piece}"
        for error in failed:
            yield f"{FAILED}{entry.measurement.name}: {explain(error)}"


def numbers(text: str) -> range:
    """Numbers of the models that a text such as "0:16" names."""
    first, _, stop = text.partition(":")
    if not (first.isdigit() and stop.isdigit() and len(text) < 1000 and int(first) < int(stop)):
        raise MiaError(
            f"--index {text}: give two whole numbers, the first model and the one after the last, as in 0:16."
        )
    return range(int(first), check_models(int(stop)))


def check_models(models: int) -> int:
    """Check how many models there are to be, of a kilobyte at least, and return it."""
    return check_count("models", models, each=1000)


def verify(
    name: str, parameters: Mapping, models: int = 2, seed: int | None = None
) -> tuple[bool, str]:
    """Measure some of a bank's models again, from nothing, and compare.

    Where processors round alike, the arrays agree. Where they do not, a training lets the difference grow, and the model is
    another of the same kind. Then the means of its arrays must lie within four standard deviations of those of the bank, and
    of all models of the bank it must be most like the one that it was to be, beyond chance.

    Args:
        parameters: that tell which, where several sets of them are published.
        models, seed: how many, drawn at random, and the seed of the draw.

    Returns:
        whether they agree, and how, in words.

    Raises:
        MiaError: nothing such is published; it is not what the code here measures.
    """
    for parameter in {"name", "models", "arrays"} & parameters.keys():  # of `load`
        check_choice(
            f"parameter of {name}",
            parameter,
            set(find(name).usual()) - {"name", "models", "arrays"},
        )
    bank, measurement = published.load(name, **parameters), find(name)
    measurement.check_answers(bank)
    rows = sorted(int(row) for row in np.random.default_rng(seed).permutation(len(bank))[:models])
    lines, good = [], True
    with empty_cache():
        for row in rows:
            failed: list[Exception] = []
            with attempt(failed):
                anew = measurement.compute(range(row, row + 1), bank.parameters)
            if failed:
                good = False
                lines.append(f"model {row}: could not be measured ({explain(failed[0])})")
                continue
            different = publishing.differences(
                {name: array[row : row + 1] for name, array in bank.arrays.items()}, anew
            )
            unlikeness = {
                name: _unlikeness(array, row, anew[name][0])
                for name, array in bank.arrays.items()
                if different
            }
            good &= all(far <= 4 and nearest for far, nearest in unlikeness.values())
            lines.append(
                f"model {row}: "
                + (f"{different}. " if different else "the same")
                + "; ".join(
                    f"the mean of {name} is {far:.1f} standard deviations from those of the bank (4 are allowed), and it is "
                    f"{'' if nearest else 'NOT '}most like the model's own"
                    for name, (far, nearest) in unlikeness.items()
                )
            )
    return good, f"{name}, {len(rows)} of {len(bank)} models measured again\n" + "\n".join(lines)


@contextmanager
def empty_cache(**variables: str) -> Iterator[None]:
    """Within the block, the working cache is an empty folder, and environment variables are set."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="mia-cache-") as folder:
        os.environ |= {"MIA_CACHE": folder, **variables}
        try:
            yield
        finally:
            os.environ.clear()
            os.environ |= before


def _unlikeness(bank: np.ndarray, row: int, anew: np.ndarray) -> tuple[float, bool]:
    """Distance of the mean of a model's array from the means of a bank's, in their standard
    deviations; and True if it correlates most with that of model `row`, beyond chance, or has too
    few numbers to tell."""
    if anew.shape != bank.shape[1:]:
        return float("inf"), False
    flat, anew = bank.reshape(len(bank), -1).astype(np.float64), anew.ravel().astype(np.float64)
    gap = abs(anew.mean() - flat.mean())
    far = 0.0 if gap == 0 else float(gap / max(flat.mean(1).std(), 1e-12))
    if anew.size < FEWEST:
        return far, True
    correlations = [np.corrcoef(anew, other)[0, 1] for other in flat]
    nearest = int(np.argmax(correlations)) == row and correlations[row] > 4 / np.sqrt(anew.size)
    return far, nearest or np.array_equal(anew, flat[row])
