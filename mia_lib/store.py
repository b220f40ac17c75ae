"""Results under the hash of what determines them: nothing is computed twice, nothing damaged is used.

An entry is a set of named arrays and the spec (plain data) that determines them. Look-up goes
working cache -> `data/recorded/` (read-only) -> compute. On disk an entry is `KEY.npz` (or `KEY.safetensors` for
weights) with a manifest `KEY.json` beside it, which holds the spec, the file's sha256 and how the arrays came about.
The manifest is written last, so a file without a matching manifest is a write that never ended.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import platform
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from mia_lib.errors import MiaError

SCHEMA = 1  # part of every key: raise it when the meaning of stored arrays changes
RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"
LOCK_SECONDS = 3600.0


@dataclass(frozen=True)
class Entry:
    """What the store holds under one spec.

    Attributes:
        arrays: name -> array.
        manifest: spec, sha256, seconds, date, versions.
        source: "cache", "recorded" or "computed".
    """

    arrays: dict[str, np.ndarray]
    manifest: dict
    source: str


def cache_dir() -> Path:
    """The working cache: `$MIA_CACHE`, or the user's cache folder."""
    if os.environ.get("MIA_CACHE"):
        return Path(os.environ["MIA_CACHE"])
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("mia_lib"))


def size() -> int:
    """Bytes in the working cache."""
    return sum(f.stat().st_size for f in cache_dir().rglob("*") if f.is_file()) if cache_dir().is_dir() else 0


def key(spec: dict) -> str:
    """The name of a spec: sha256 of its canonical JSON and the schema number.

    Raises:
        MiaError: the spec holds something that is not plain data.
    """
    try:
        text = json.dumps({"schema": SCHEMA, **spec}, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise MiaError(f"spec = {spec!r} is not plain data (numbers, text, lists, dicts): {error}.") from error
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def fingerprint(array: np.ndarray) -> str:
    """sha256 of an array's type, shape and bytes."""
    array = np.ascontiguousarray(array)
    return hashlib.sha256(f"{array.dtype.str}{array.shape}".encode() + array.tobytes()).hexdigest()[:40]


def _paths(folder: Path, spec: dict) -> tuple[Path, Path]:
    name = key(spec)
    suffix = "safetensors" if spec["kind"] == "model" else "npz"
    place = folder / spec["kind"] / name[:2]
    return place / f"{name}.{suffix}", place / f"{name}.json"


def _decode(data: bytes, suffix: str) -> dict[str, np.ndarray]:
    if suffix == ".safetensors":
        from safetensors.numpy import load

        return load(data)
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _encode(arrays: dict[str, np.ndarray], suffix: str) -> bytes:
    if suffix == ".safetensors":
        from safetensors.numpy import save

        return save({name: np.ascontiguousarray(a) for name, a in arrays.items()})
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _read(folder: Path, spec: dict, source: str) -> Entry | None:
    path, manifest_path = _paths(folder, spec)
    try:
        manifest = json.loads(manifest_path.read_bytes())
        data = path.read_bytes()
        if manifest["sha256"] != hashlib.sha256(data).hexdigest():
            raise ValueError("its bytes do not match their sha256")
        return Entry(_decode(data, path.suffix), manifest, source)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, OSError, zipfile.BadZipFile) as error:
        warnings.warn(f"{path} is damaged ({error}); it is not used and is computed anew.", stacklevel=3)
        return None


def look_up(spec: dict) -> Entry | None:
    """The entry under `spec` if the cache or the recorded results hold an undamaged one."""
    return _read(cache_dir(), spec, "cache") or _read(RECORDED, spec, "recorded")


def write(path: Path, data: bytes) -> None:
    """All of the file or nothing: temporary file, fsync, rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def keep(spec: dict, arrays: dict[str, np.ndarray], seconds: float = 0.0, **notes) -> Entry:
    """Write an entry into the working cache.

    Args:
        spec: plain data with a `kind`.
        arrays: name -> array.
        seconds: what computing them took.
        notes: further plain data for the manifest.

    Raises:
        MiaError: the disk is full or the cache cannot be written.
    """
    path, manifest_path = _paths(cache_dir(), spec)
    data = _encode(arrays, path.suffix)
    manifest = {
        "spec": spec, "schema": SCHEMA, "sha256": hashlib.sha256(data).hexdigest(), "seconds": round(seconds, 3),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "numpy": np.__version__,
        "python": platform.python_version(), **notes,
    }
    try:
        write(path, data)
        write(manifest_path, json.dumps(manifest, indent=1, sort_keys=True).encode())
    except OSError as error:
        why = "the disk is full" if error.errno == errno.ENOSPC else str(error)
        raise MiaError(f"The store cannot write to {cache_dir()}: {why}. Results finished before this one are kept. "
                       "Free some space, or set MIA_CACHE to another folder, and run again: it goes on from there.") from error
    return Entry(arrays, manifest, "computed")


def discard(spec: dict) -> None:
    """Take an entry out of the working cache, such as a checkpoint of a training that has ended."""
    for path in reversed(_paths(cache_dir(), spec)):  # the manifest first: without it the rest is no entry
        path.unlink(missing_ok=True)


def lock(spec: dict, seconds: float | None = None, what: str = "") -> FileLock:
    """A lock between processes on one entry, held with `with`.

    The operating system drops the lock of a process that dies, so a lock file left behind never blocks anyone.
    """
    path, _ = _paths(cache_dir(), spec)
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(path.with_suffix(".lock"), timeout=LOCK_SECONDS if seconds is None else seconds)


def fetch(spec: dict, compute: Callable[[], dict[str, np.ndarray]], wait: float | None = None) -> Entry:
    """The entry under `spec`: looked up, or computed once however many processes ask.

    Args:
        spec: plain data that determines the arrays; `spec["kind"]` names the folder.
        compute: makes the arrays when no layer holds them.
        wait: seconds to wait for another process that computes the same entry.

    Raises:
        MiaError: another process has held the lock for longer than `wait`.
    """
    found = look_up(spec)
    if found is not None:
        return found
    try:
        with lock(spec, wait):
            found = look_up(spec)
            if found is not None:
                return found
            start = time.perf_counter()
            arrays = compute()
            return keep(spec, arrays, time.perf_counter() - start)
    except Timeout as error:
        raise MiaError(f"Another process is still computing {error.lock_file}. "
                       "Wait for it, or stop it and run again.") from error
