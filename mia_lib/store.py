"""Results under the hash of what determines them: nothing is computed twice, nothing damaged is used.

An entry of the working cache is a set of named arrays and the spec (plain data) that says what was asked for. On disk it is
`KEY.npz` (or `KEY.safetensors` for weights) with a manifest `KEY.json` beside it, which holds the spec, the file's sha256 and
how the arrays came about. KEY is the hash of the whole spec, and in that as "code" one hash of the code of the rooms that
compute it (`code_of`). The manifest is written last, so a file without a matching manifest is a write that never ended.
"""

from __future__ import annotations

import ast
import errno
import hashlib
import io
import json
import os
import platform
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from mia_lib import BEGAN, LIBRARY, PACKAGES, documents, environment, frames, progress
from mia_lib.archives import read_npz
from mia_lib.errors import MiaError

SCHEMA = 1  # part of every key: raise it when the meaning of stored arrays changes
# rooms of the library that determine what a model is
MODELS = ("data", "membership", "models", "custom", "training")
PIECES = (*MODELS, "signals")  # and what is asked of one
STUDIES = (*PIECES, "attacks", "metrics", "audit")  # and what an audit makes of the answers


@dataclass(frozen=True)
class Entry:
    """Entry of the store under one spec: arrays by name, and a manifest with spec, sha256, seconds, date and versions."""

    arrays: dict[str, np.ndarray]
    manifest: dict


def cache_dir() -> Path:
    """The working cache: `$MIA_CACHE`, or the user's cache folder."""
    if named := environment.folder("MIA_CACHE"):
        return named
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("mia_lib"))


def size() -> int:
    """Bytes in the working cache."""
    if cache_dir().is_dir():
        return sum(f.stat().st_size for f in cache_dir().rglob("*") if f.is_file())
    return 0


# file -> its state and the digest of its code, at its first use
_taken: dict[Path, tuple[tuple[int, int], str]] = {}
_behind: dict[str, list[Path]] = {}  # hash of code -> the files that it is of


def code_of(rooms: Sequence[str], *modules: Path) -> str:
    """One hash of all code in some rooms and modules, as it was when this process first asked.

    Comments, docstrings and formatting are not in it, nor the names of files and of the modules of the library from which they
    import, so that a module can be moved.

    Args:
        rooms: files and folders of the library, without the package's name: `MODELS`, `PIECES`.
        modules: further files, such as an architecture of the user's own.
    """
    files = sorted({*modules, *(path for room in rooms for path in _files(room))})
    for path in files:
        if path not in _taken:
            _taken[path] = _state(path), digest(path)
    code = hashlib.sha256(" ".join(sorted(_taken[path][1] for path in files)).encode()).hexdigest()[
        :16
    ]
    _behind[code] = files
    return code


@lru_cache
def _files(room: str) -> list[Path]:
    files = (
        [LIBRARY / f"{room}.py"]
        if (LIBRARY / f"{room}.py").is_file()
        else sorted((LIBRARY / room).rglob("*.py"))
    )
    if not files:
        raise MiaError(f"There is no room {room!r} in {LIBRARY}.")
    return files


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def digest(path: Path) -> str:
    """sha256 of a module's statements, without docstrings and the places in the library that it imports from."""
    return _digest(path, _state(path))


@lru_cache(maxsize=1000)
def _digest(path: Path, state: tuple[int, int]) -> str:
    tree = ast.parse(path.read_bytes())
    for node in _statements(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            del body[0]
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in {
            package.name for package in PACKAGES
        }:
            node.module = LIBRARY.name  # what is imported, and as what, but not from where
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """A module and its statements, at any depth, with the handlers and cases that hold some, without expressions."""
    rest = [tree]
    while rest:
        yield (node := rest.pop())
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            rest += getattr(node, block, ())


def check_unedited(code: str) -> None:
    """See to it that what this process runs is what the files say, before something is kept under the hash of their code."""
    for path in _behind.get(code, ()):
        state, then = _taken[path]
        same = path.is_file() and (_state(path) == state or digest(path) == then)
        if not same or ({*PACKAGES} & {*path.parents} and BEGAN.get(path) != _state(path)):
            raise MiaError(
                f"{path} was edited after this process had begun, so what runs is not what the file says. "
                "Restart it (in JupyterLab: Kernel, Restart) and run again; what was finished is kept."
            )


def address(spec: dict) -> str:
    """The name of what a spec asks for, whatever code computes it; what specs call each other by."""
    return key({name: value for name, value in spec.items() if name != "code"})


def key(spec: dict) -> str:
    """The name of a spec, plain data: sha256 of its canonical JSON and the schema number."""
    try:
        text = json.dumps(
            {"schema": SCHEMA, **spec}, sort_keys=True, separators=(",", ":"), allow_nan=False
        )
    except (TypeError, ValueError) as error:
        raise MiaError(
            f"spec = {spec!r} is not plain data (numbers, text, lists, dicts): {error}."
        ) from error
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def fingerprint(array) -> str:
    """sha256 of an array's type, shape and bytes, or of a DataFrame's columns, their types and its rows."""
    array = np.ascontiguousarray(frames.content(array))
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    digest.update(array.reshape(-1).view(np.uint8))  # without a copy
    return digest.hexdigest()[:40]


def _paths(folder: Path, spec: dict, name: str) -> tuple[Path, Path]:
    if "code" not in spec:
        raise MiaError(
            f"The spec of a {spec['kind']} has no code: store.code_of says what computes it."
        )
    suffix = "safetensors" if spec["kind"] == "model" else "npz"
    place = folder / spec["kind"] / name[:2]
    return place / f"{name}.{suffix}", place / f"{name}.json"


def decode(data: bytes, suffix: str) -> dict[str, np.ndarray]:
    """The arrays in the content of a file, by their names; a `MiaError` of damaged ones."""
    if suffix != ".safetensors":
        return read_npz(data, "it", remedy="It was not written so.")
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return load(data)
    except SafetensorError as error:
        raise MiaError(f"it cannot be read as safetensors ({error})") from error


def encode(arrays: Mapping[str, np.ndarray], suffix: str, compress: bool = True) -> bytes:
    """The content of a file with named arrays: ".npz", or ".safetensors" for weights."""
    if suffix == ".safetensors":
        from safetensors.numpy import save

        return save({name: np.asarray(a, order="C") for name, a in arrays.items()})
    buffer = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def look_up(spec: dict) -> Entry | None:
    """The entry under `spec` if the cache holds an undamaged one made by the same code."""
    path, manifest_path = _paths(cache_dir(), spec, key(spec))
    try:
        manifest = documents.parse(manifest_path.read_bytes(), manifest_path)
        data = path.read_bytes()
        if manifest["sha256"] != hashlib.sha256(data).hexdigest():
            raise ValueError("its bytes do not match their sha256")
        if manifest["spec"] != json.loads(json.dumps(spec)):
            raise ValueError("it is another entry, by this one's name")
        entry = Entry(decode(data, path.suffix), manifest)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, OSError) as error:
        progress.warn(
            f"{path} is damaged ({error}); it is not used and is computed anew.", stacklevel=3
        )
        return None
    if (reused := _reused.get()) is not None and spec["kind"] != "checkpoint":
        reused.setdefault(key(spec), manifest["seconds"])
    return entry


_reused: ContextVar[dict[str, float] | None] = ContextVar("reused", default=None)


@contextmanager
def seconds_of_others() -> Iterator[dict[str, float]]:
    """Within the block, fill the dictionary that it is given: key of an entry -> seconds that
    computing it took, 0 for an entry that the block computes."""
    token = _reused.set({})
    try:
        yield _reused.get()
    finally:
        _reused.reset(token)


def write(path: Path, data: bytes, lasting: bool = True) -> None:
    """Write all of a file or nothing, by a temporary file, fsync where it has to stand when the
    machine loses power (waiting for the disk takes longer than all the rest), and rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".writing-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as out:
            out.write(data)
            if lasting:
                out.flush()
                os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        # what went wrong is said, and not that nothing can be taken away either
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def put(path: Path, data: bytes) -> None:
    """`write` into the working cache, where what a power cut spoils is seen by its sha256 and computed anew."""
    with _writing():
        write(path, data, lasting=False)


@contextmanager
def _writing() -> Iterator[None]:
    """Say what to do where the disk is full or the cache cannot be written."""
    try:
        yield
    except OSError as error:
        why = "the disk is full" if error.errno == errno.ENOSPC else str(error)
        raise MiaError(
            f"The store cannot write to {cache_dir()}: {why}. Results finished before this one are kept. "
            "Free some space, or set MIA_CACHE to another folder, and run again: it goes on from there."
        ) from error


def keep(spec: dict, arrays: dict[str, np.ndarray], seconds: float = 0.0, **notes) -> Entry:
    """Write an entry into the working cache: arrays by name under a spec, plain data with a `kind` and a `code` (`code_of`),
    what computing them took, and notes for the manifest. That the code was edited after this process had begun is an error."""
    path, manifest_path = _paths(cache_dir(), spec, key(spec))
    check_unedited(spec["code"])
    # written often, while a card waits
    data = encode(arrays, path.suffix, compress=spec["kind"] != "checkpoint")
    manifest = {
        "spec": spec,
        "schema": SCHEMA,
        "sha256": hashlib.sha256(data).hexdigest(),
        "seconds": round(seconds, 3),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "numpy": np.__version__,
        "python": platform.python_version(),
        **notes,
    }
    put(path, data)
    put(manifest_path, json.dumps(manifest, indent=1, sort_keys=True).encode())
    if (reused := _reused.get()) is not None:
        reused[key(spec)] = 0.0
    return Entry(arrays, manifest)


def discard(spec: dict) -> None:
    """Take an entry out of the working cache, such as a checkpoint of a training that has ended."""
    # the manifest first: without it the rest is no entry
    for path in reversed(_paths(cache_dir(), spec, key(spec))):
        path.unlink(missing_ok=True)


@contextmanager
def lock(spec: dict, what: str) -> Iterator[None]:
    """A lock between processes on one entry, held with `with`.

    Who has to wait is told so, and what the holder is doing. The operating system drops the lock of a process that dies, so a
    lock file left behind never blocks anyone.
    """
    with ExitStack() as stack:
        with _writing():
            stack.enter_context(lock_file(cache_dir() / "locks" / f"{key(spec)}.lock", what))
        yield


@contextmanager
def lock_file(path: Path, what: str) -> Iterator[None]:
    """As `lock`, by a file that stands where what it guards is written."""
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    file_lock = FileLock(path)
    try:
        file_lock.acquire(timeout=0)
    except Timeout:
        progress.say(f"waiting for another process that is {what}")
        file_lock.acquire(timeout=-1)
    try:
        yield
    finally:
        file_lock.release()


def cached_many(
    specs: Sequence[dict], compute: Callable[[list[int], Callable], None], **notes
) -> list[dict[str, np.ndarray]]:
    """The arrays of many entries that are computed together: what is kept is left out, what is done is kept at once.

    Args:
        specs: complete ones, with their code.
        compute: called with the positions of those that the cache does not hold, if any, and with `done(position, arrays,
            seconds)`, to be called as soon as one of them is there.
        notes: into the manifests.
    """
    entries = [look_up(spec) for spec in specs]

    def done(position: int, arrays: dict[str, np.ndarray], seconds: float) -> None:
        entries[position] = keep(specs[position], arrays, seconds, **notes)

    missing = [position for position, entry in enumerate(entries) if entry is None]
    if missing:
        compute(missing, done)
    return [entry.arrays for entry in entries]
