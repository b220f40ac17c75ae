"""Checks of `mia doctor`; with `--device`, whether a card gives the numbers of the processor at
every probe."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from mia_book.pages.parameters import find_root
from mia_book.publishing.queue import empty_cache
from mia_lib import doctor as library
from mia_lib.doctor import WITHOUT, Finding, checked
from mia_lib.errors import MiaError
from mia_lib.progress import duration

ALLOWED = 2e-2  # difference of a card at a probe, relative to the largest value of an array: see book/machines.md
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """Path of the Chromium that the browser tests use: `$CHROMIUM`, or the first one on the path."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)


def examine() -> Iterator[Finding]:
    """Yield one finding after another, of the library first; the slow one comes last."""
    yield from library.examine()
    yield checked("repository", lambda: str(find_root()))
    there = chromium()
    yield Finding(
        "Chromium", there or "not found; the browser tests will skip", "ok" if there else WITHOUT
    )
    yield checked("notebook kernel", _kernel)


def _kernel() -> str:
    from rich.console import Console

    from mia_book.pages.runner import execute
    from mia_lib.progress import Bars

    with tempfile.TemporaryDirectory(prefix="mia-doctor-") as folder:
        (Path(folder) / "notebooks").mkdir()
        (Path(folder) / "notebooks" / "probe.py").write_text(
            "# %% [markdown]\n# # Probe\n\n# %%\n1 + 1\n", encoding="utf-8"
        )
        record = execute(
            "probe",
            {},
            Path(folder) / "probe.ipynb",
            root=Path(folder),
            bars=Bars(Console(quiet=True)),
        )
    return f"started, ran a cell and ended in {duration(record['seconds'])}"


# ------------------------------------------------------------------------------------------------ a card against the processor


def compare_probes(device: str, names: Sequence[str] | None = None) -> Iterator[Finding]:
    """The probes of all measurements, or of some, on the processor and on a card ("cuda" or "cuda:NUMBER")."""
    from mia_book import publishing
    from mia_lib.training import devices

    if not devices.is_card(devices.pick(device)):
        raise MiaError(
            f"device = {device!r} is the processor, with which a card is compared: give 'cuda' or 'cuda:NUMBER'."
        )
    measurements = publishing.catalogue()
    for name in measurements if names is None else names:
        yield compare(name, measurements[name].run_probe, device)


def compare(
    what: str, run: Callable[[], dict[str, np.ndarray]], device: str, allowed: float = ALLOWED
) -> Finding:
    """The arrays that `run` gives with `$MIA_DEVICE` the processor and with `device`, both from an empty cache. Who was in
    which model is no question to a card, so arrays of real numbers alone are compared."""
    began, results = time.perf_counter(), []
    try:
        for where in ("cpu", device):
            with empty_cache(MIA_DEVICE=where, MIA_CLUSTER=""):
                results.append(
                    {
                        name: array
                        for name, array in run().items()
                        if np.asarray(array).dtype.kind == "f"
                    }
                )
    except Exception as error:  # of this one; the others are compared
        return Finding(
            what, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}", "FAILED"
        )
    most = max(
        (_difference(array, results[1][name]) for name, array in results[0].items()), default=0.0
    )
    return Finding(
        what,
        f"apart by {most:.1e}, allowed {allowed:.0e}; {time.perf_counter() - began:.1f} s",
        "ok" if most <= allowed else "DIFFERS",
    )


def _difference(here: np.ndarray, there: np.ndarray) -> float:
    here, there = (np.asarray(array, float) for array in (here, there))
    if not (np.isfinite(here).all() and np.isfinite(there).all()):
        return float("inf")
    return float(np.abs(there - here).max(initial=0.0) / max(np.abs(here).max(initial=0.0), 1e-12))
