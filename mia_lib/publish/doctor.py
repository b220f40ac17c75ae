"""Checks of `mia doctor`; with `--device`, whether a card gives the numbers of the processor at
every probe."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mia_lib import environment
from mia_lib.errors import MiaError
from mia_lib.progress import duration
from mia_lib.publish.measured import empty_cache
from mia_lib.publish.parameters import find_root

ALLOWED = 2e-2  # difference of a card at a probe, relative to the largest value of an array: see book/machines.md
NEEDED = 2**29  # bytes free
MISSING, WITHOUT = (
    "MISSING",
    "without",
)  # marks of what the book needs, and of what it can do without
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Finding(NamedTuple):
    """One line of a report; the marks of what is no good are MISSING, DIFFERS and FAILED."""

    what: str
    found: str
    mark: str = "ok"

    @property
    def good(self) -> bool:
        """True if one can go on after this finding."""
        return self.mark in ("ok", WITHOUT)

    def __str__(self) -> str:
        return f"{self.mark:8}{self.what}: {self.found}"


def chromium() -> str | None:
    """Path of the Chromium that the browser tests use: `$CHROMIUM`, or the first one on the path."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)


def examine() -> Iterator[Finding]:
    """Yield one finding after another; the slow ones come last."""
    import psutil

    from mia_lib import store

    yield Finding("Python", f"{platform.python_version()} ({sys.executable})")
    yield Finding("processor", f"{os.cpu_count()} cores, {platform.machine()}")
    memory = psutil.virtual_memory()
    yield Finding(
        "memory",
        f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB free; the book needs up to 4",
        "ok" if memory.total > 3.5 * 2**30 else WITHOUT,
    )
    free = shutil.disk_usage(Path.cwd()).free
    yield Finding(
        "disk",
        f"{free / 2**30:.1f} GiB free here; the book needs 0.5",
        "ok" if free > NEEDED else MISSING,
    )
    yield _checked("repository", lambda: str(find_root()))
    yield _checked("cache", lambda: _cache(store.cache_dir(), store.size()))
    yield _checked("$MIA_DATA", _own_sets, WITHOUT)
    yield Finding(
        "Chromium",
        chromium() or "not found; the browser tests will skip",
        "ok" if chromium() else WITHOUT,
    )
    yield _checked("torch", _torch)
    yield _checked("torchvision", _torchvision, WITHOUT)
    yield _checked("notebook kernel", _kernel)


def _checked(what: str, look: Callable[[], str], otherwise: str = MISSING) -> Finding:
    try:
        return Finding(what, look())
    except Exception as error:  # whatever it is, the report says it and goes on
        kind = f"{type(error).__name__}: " * (not isinstance(error, MiaError))
        return Finding(what, f"{kind}{error}", otherwise)


def _cache(folder: Path, size: int) -> str:
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise MiaError(
            f"{folder} cannot be written to, for {there} is no folder that this user may write to; MIA_CACHE names "
            "another"
        )
    free = shutil.disk_usage(there).free
    if free < NEEDED:
        raise MiaError(
            f"{folder}: {free / 2**30:.1f} GiB free there; the book needs 0.5; MIA_CACHE names another"
        )
    return f"{folder}, {size / 2**20:.0f} MiB; {free / 2**30:.1f} GiB free there"


def _own_sets() -> str:
    if not (folder := environment.folder("MIA_DATA")):
        raise MiaError("not set; the embedded sets need nothing")
    if not (sets := sorted(path.stem for path in folder.glob("*.npz"))):
        raise MiaError(f"{folder}: no NAME.npz in it")
    return f"{folder}: {', '.join(sets)}"


def _torch() -> str:
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU only"
    return f"{torch.__version__}, {device}"


def _torchvision() -> str:
    # In a process of its own: a wheel that does not fit the installed torch can take the interpreter down with it.
    probe = "from mia_lib.data.readers import import_torchvision; print(import_torchvision().__version__)"
    done = subprocess.run([sys.executable, "-P", "-c", probe], capture_output=True, text=True)
    if done.returncode:
        raise MiaError((done.stderr.strip().splitlines() or ["the import failed"])[-1])
    return done.stdout.strip()


def _kernel() -> str:
    from rich.console import Console

    from mia_lib.progress import Bars
    from mia_lib.publish.runner import execute

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
    from mia_lib import published
    from mia_lib.training import devices

    if not devices.is_card(devices.pick(device)):
        raise MiaError(
            f"device = {device!r} is the processor, with which a card is compared: give 'cuda' or 'cuda:NUMBER'."
        )
    measurements = published.catalogue()
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
