"""What a machine has of what the library needs, as `mia doctor` says it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from mia_lib import environment
from mia_lib.errors import MiaError

NEEDED = 2**29  # bytes free
PROBE = """
from mia_lib.data import readers
version = readers.import_torchvision().__version__
spared = ", whose extension does not fit this PyTorch: this library does without it, and a plain `import torchvision` fails"
print(version + (spared if readers.operators else ""))
"""
MISSING, WITHOUT = "MISSING", "without"  # marks of what is needed, and of what one can do without


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


def report(findings: Iterable[Finding]) -> None:
    """Print findings as they come; ends the program with code 1 if one is no good."""
    import typer

    good = True
    for finding in findings:
        good &= finding.good
        typer.echo(finding)
    if not good:
        raise typer.Exit(1)


def examine() -> Iterator[Finding]:
    """Yield one finding after another; the slow ones come last."""
    from mia_lib import store

    yield Finding("Python", f"{platform.python_version()} ({sys.executable})")
    yield Finding("processor", f"{os.cpu_count()} cores, {platform.machine()}")
    yield checked("memory", _memory, WITHOUT)
    free = shutil.disk_usage(Path.cwd()).free
    yield Finding(
        "disk",
        f"{free / 2**30:.1f} GiB free here; the book needs 0.5",
        "ok" if free > NEEDED else MISSING,
    )
    yield checked("cache", lambda: _cache(store.cache_dir(), store.size()))
    yield checked("$MIA_DATA", _own_sets, WITHOUT)
    yield checked("torch", _torch)
    yield checked("torchvision", _torchvision, WITHOUT)


def checked(what: str, look: Callable[[], str], otherwise: str = MISSING) -> Finding:
    """What a function finds, or the error that it raises under the mark `otherwise`."""
    try:
        return Finding(what, look())
    except Exception as error:  # whatever it is, the report says it and goes on
        kind = f"{type(error).__name__}: " * (not isinstance(error, MiaError))
        return Finding(what, f"{kind}{error}", otherwise)


def _memory() -> str:
    import psutil

    memory = psutil.virtual_memory()
    found = f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB free; the book needs up to 4"
    if memory.total <= 3.5 * 2**30:
        raise MiaError(found)
    return found


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
    done = subprocess.run([sys.executable, "-P", "-c", PROBE], capture_output=True, text=True)
    if done.returncode:
        raise MiaError((done.stderr.strip().splitlines() or ["the import failed"])[-1])
    return done.stdout.strip()
