"""What `mia doctor` looks at."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mia_lib.errors import MiaError
from mia_lib.progress import duration
from mia_lib.publish.parameters import find_root
from mia_lib.publish.runner import free_bytes

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass(frozen=True)
class Finding:
    """One line of the report; the book cannot be built without what is essential."""

    what: str
    good: bool
    found: str
    essential: bool = True


def chromium() -> str | None:
    """Path of the Chromium that the browser tests use: `$CHROMIUM`, or the first one on the path."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)


def examine() -> Iterator[Finding]:
    """Yield one finding after another; the slow ones come last."""
    import psutil

    from mia_lib import store

    yield Finding("Python", True, f"{platform.python_version()} ({sys.executable})")
    yield Finding("processor", True, f"{os.cpu_count()} cores, {platform.machine()}")
    memory = psutil.virtual_memory()
    yield Finding("memory", memory.total > 3.5 * 2**30, f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} "
                  "GiB free; the book needs up to 4", essential=False)
    free = free_bytes(Path.cwd())
    yield Finding("disk", free > 2**29, f"{free / 2**30:.1f} GiB free here; the book needs 0.5")
    yield _checked("repository", lambda: str(find_root()))
    yield _checked("cache", lambda: _cache(store.cache_dir(), store.size()))
    folder = os.environ.get("MIA_DATA")
    sets = sorted(p.stem for p in Path(folder).glob("*.npz")) if folder else []
    yield Finding("$MIA_DATA", bool(sets), f"{folder}: {', '.join(sets) or 'no NAME.npz in it'}" if folder else
                  "not set; the embedded sets need nothing", essential=False)
    yield Finding("Chromium", bool(chromium()), chromium() or "not found; the browser tests will skip", essential=False)
    yield _checked("torch", _torch)
    yield _checked("torchvision", _torchvision, essential=False)
    yield _checked("notebook kernel", _kernel)


def _checked(what: str, look: Callable[[], str], essential: bool = True) -> Finding:
    try:
        return Finding(what, True, look(), essential)
    except Exception as error:  # whatever it is, the report says it and goes on
        return Finding(what, False, f"{type(error).__name__}: {error}", essential)


def _cache(folder: Path, size: int) -> str:
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise MiaError(f"{folder} cannot be written to, for {there} is no folder that this user may write to; MIA_CACHE names "
                       "another")
    return f"{folder}, {size / 2**20:.0f} MiB; {free_bytes(there) / 2**30:.1f} GiB free there"


def _torch() -> str:
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU only"
    return f"{torch.__version__}, {device}"


def _torchvision() -> str:
    # In a process of its own: a wheel that does not fit the installed torch can take the interpreter down with it.
    probe = "from mia_lib.data._torchvision import import_torchvision; print(import_torchvision().__version__)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    if done.returncode:
        raise MiaError((done.stderr.strip().splitlines() or ["the import failed"])[-1])
    return done.stdout.strip()


def _kernel() -> str:
    from rich.console import Console

    from mia_lib.progress import Bars
    from mia_lib.publish.runner import execute

    with tempfile.TemporaryDirectory(prefix="mia-doctor-") as folder:
        (Path(folder) / "notebooks").mkdir()
        (Path(folder) / "notebooks" / "probe.py").write_text("# %%\n1 + 1\n", encoding="utf-8")
        record = execute("probe", {}, Path(folder) / "probe.ipynb", root=Path(folder),
                         bars=Bars(Console(quiet=True)))
    return f"started, ran a cell and ended in {duration(record['seconds'])}"
