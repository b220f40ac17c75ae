"""Writing blocks of models: into the working cache, or into what is published."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mia_lib import environment, store
from mia_lib.errors import MiaError
from mia_lib.published.pieces import Piece, folder

FILE_LIMIT, TOTAL_LIMIT = 8_000_000, 110_000_000  # bytes of a file, and of all that is published


def cache() -> Path:
    """Folder of measurements that are not published, in the working cache."""
    return store.cache_dir() / "measured"


def write(
    where: Path, stem: str, suffix: str, arrays: Mapping[str, np.ndarray], manifest: dict
) -> Piece:
    """Write a block and, last, its manifest: killed between, there is none, or an older one that does not fit the block.

    Raises:
        MiaError: it is too large to be published; it cannot be written, as on a full disk.
    """
    packed = {
        name: np.packbits(array, axis=-1) if array.dtype == bool else array
        for name, array in arrays.items()
    }
    content = store.encode(packed, suffix)
    path = where / f"{stem}.json"
    manifest = {
        **manifest,
        "seconds": float(f"{manifest['seconds']:.3g}"),
        "file": f"{path.stem}{suffix}",
        "bytes": len(content),
        "arrays": {
            name: {"dtype": str(a.dtype), "shape": list(a.shape)} for name, a in arrays.items()
        },
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    if where == folder():
        _check_room(path, len(content))
    try:
        store.write(path.with_name(manifest["file"]), content)
        store.write(path, (json.dumps(manifest, indent=1) + "\n").encode())
    except OSError as error:
        raise MiaError(
            f"{path.with_name(manifest['file'])} cannot be written: {error.strerror or error}. What was finished "
            "before is kept. Free some space, or set MIA_CACHE to another folder, and run again: it goes on from "
            "there."
        ) from error
    return Piece(path, manifest)


def published_bytes(without: str = "") -> int:
    """Bytes of all files in `folder()`, but for those named `without`, whatever their ending, and
    those that a process that was killed left."""
    return sum(
        file.stat().st_size
        for file in folder().rglob("[!.]*")
        if file.is_file() and file.stem != without
    )


def _check_room(path: Path, size: int) -> None:
    total = size + published_bytes(without=path.stem)
    if size > FILE_LIMIT:
        raise MiaError(
            f"{path.stem} would have {size / 1e6:.1f} MB; {FILE_LIMIT / 1e6:.0f} MB is the limit of a published "
            "file. Publish blocks of fewer models (`block` of its measurement)."
        )
    if total > TOTAL_LIMIT:
        raise MiaError(
            f"{folder()} would hold {total / 1e6:.1f} MB; {TOTAL_LIMIT / 1e6:.0f} MB is the limit. Publish fewer "
            "models, or remove what no page shows."
        )


def device_kind() -> str:
    """Kind of device that costs go by: "cpu", or the name of the card that is computed on."""
    from mia_lib.training import devices

    where = devices.pick()
    return devices.describe(where) if devices.is_card(where) else "cpu"


def processes() -> int:
    """Number of processes that work side by side: on a card one."""
    from mia_lib.training import pool

    return pool.default_workers() if device_kind() == "cpu" else 1


def elsewhere() -> int:
    """Number of models that the workers of a cluster train at once; 0 without a cluster."""
    if not environment.cluster():
        return 0
    from mia_lib.training import pool

    return pool.at_once()


def circumstances() -> dict:
    """Circumstances of a measurement, for its manifest: device, memory, versions, date, commit."""
    import torch

    from mia_lib.training import devices

    return {
        "device_kind": device_kind(),
        "device": devices.describe(devices.pick()),
        "peak_memory_mb": _peak_memory_mb(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": _commit(),
    }


def _peak_memory_mb() -> int | None:
    """Peak memory in MB of this process, or of the largest that it started, whichever is more; None
    on Windows."""
    try:
        import resource
    except ImportError:
        return None
    most = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return round(most / 2**10 if platform.system() == "Linux" else most / 2**20)


def _commit() -> str:
    """The commit of the repository, with a + where files were changed since; "" outside of one."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=Path(__file__).parent,
            check=True,
            capture_output=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
