"""Results under the hash of what determines them: nothing is computed twice, nothing damaged is used.

An entry is a set of named arrays and the spec (plain data) that says what was asked for. Look-up goes working cache ->
`data/recorded/` (read-only) -> compute. On disk an entry is `KEY.npz` (or `KEY.safetensors` for weights) with a manifest
`KEY.json` beside it, which holds the spec, the file's sha256 and how the arrays came about. In the working cache KEY is the
hash of the whole spec, and in that as "code" the hash of the code that computes it: coarse for models and signals
(`code_of`), by definition for the studies of chapters (`definitions`). In `data/recorded/` KEY is the spec's address, its
hash without the code: what is recorded is served whatever the code is by now.
The manifest is written last, so a file without a matching manifest is a write that never ended. Recorded ensembles are
one file each, read model by model.
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
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from mia_lib import definitions, progress
from mia_lib.errors import MiaError

SCHEMA = 1  # part of every key: raise it when the meaning of stored arrays changes
LIBRARY = Path(__file__).resolve().parent
RECORDED = LIBRARY.parent / "data" / "recorded"
MODELS = ("data", "membership", "models", "own", "training")  # rooms of the library that determine what a model is
PIECES = (*MODELS, "signals")  # and what is asked of one


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


# -------------------------------------------------------------------------------------------------- the hash of code

_taken: dict[Path, tuple[tuple[int, int], str]] = {}  # file -> its state and the digest of its code, at its first use
_behind: dict[str, list[Path]] = {}  # hash of code -> the files that it is of


def code_of(rooms: Sequence[str], *modules: Path) -> str:
    """One hash of all code in some rooms and modules, as it was when this process first asked.

    Comments, docstrings and formatting are not in it, nor the names of files and of the modules of the library from which they
    import, so that a module can be moved.

    Args:
        rooms: files and folders of the library, without the package's name: `MODELS`, `PIECES`.
        modules: further files, such as an architecture of the user's own.

    Returns:
        16 hexadecimal digits.

    Raises:
        MiaError: no such room.
    """
    files = sorted({*modules, *(path for room in rooms for path in _files(room))})
    for path in files:
        if path not in _taken:
            _taken[path] = _state(path), _digest(path)
    code = hashlib.sha256(" ".join(sorted(_taken[path][1] for path in files)).encode()).hexdigest()[:16]
    _behind[code] = files
    return code


@lru_cache
def _files(room: str) -> list[Path]:
    found = [LIBRARY / f"{room}.py"] if (LIBRARY / f"{room}.py").is_file() else sorted((LIBRARY / room).rglob("*.py"))
    if not found:
        raise MiaError(f"There is no room {room!r} in {LIBRARY}.")
    return found


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _digest(path: Path) -> str:
    """sha256 of a module's statements, without docstrings and the places in the library that it imports from."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
                node, clean=False) is not None:
            del body[0]
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == LIBRARY.name:
            node.module = LIBRARY.name  # what is imported, and as what, but not from where
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def check_unedited(code: str) -> None:
    """See to it that what this process runs is what the files say, before something is kept under the hash of their code."""
    for path in _behind.get(code, ()):
        state, digest = _taken[path]
        if not path.is_file() or (_state(path) != state and _digest(path) != digest):
            raise MiaError(f"{path} was edited after this process had begun, so what runs is not what the file says. "
                           "Restart it (in JupyterLab: Kernel, Restart) and run again; what was finished is kept.")


def under(spec: dict, *things) -> dict:
    """The spec of a chapter's study, or of a part of one, with the fingerprint of the definitions that compute it.

    Args:
        spec: plain data.
        things: what computes it and what that holds, as `definitions.of` takes them.

    Raises:
        MiaError: nothing of them is code that is followed; some of it was edited after this process had begun.
    """
    reached = definitions.of(*things)
    if not reached.definitions:
        raise MiaError(f"The code of a {spec['kind']} would be that of nothing: none of {', '.join(map(repr, things))} is "
                       "followed (definitions.CARRIERS, installed packages). Name the function that computes it.")
    definitions.check_running(reached)
    return {**spec, "code": reached.fingerprint}


def address(spec: dict) -> str:
    """The name of what a spec asks for, whatever code computes it; what specs call each other by."""
    return key({name: value for name, value in spec.items() if name != "code"})


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


def _paths(folder: Path, spec: dict, name: str) -> tuple[Path, Path]:
    if "code" not in spec:
        raise MiaError(f"The spec of a {spec['kind']} has no code: store.code_of or store.under says what computes it.")
    suffix = "safetensors" if spec["kind"] == "model" else "npz"
    place = folder / spec["kind"] / name[:2]
    return place / f"{name}.{suffix}", place / f"{name}.json"


def _decode(data: bytes, suffix: str) -> dict[str, np.ndarray]:
    if suffix == ".safetensors":
        from safetensors.numpy import load

        return load(data)
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _encode(arrays: dict[str, np.ndarray], suffix: str, compress: bool = True) -> bytes:
    if suffix == ".safetensors":
        from safetensors.numpy import save

        return save({name: np.asarray(a, order="C") for name, a in arrays.items()})
    buffer = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def _read(folder: Path, spec: dict, source: str) -> Entry | None:
    path, manifest_path = _paths(folder, spec, address(spec) if source == "recorded" else key(spec))
    try:
        manifest = json.loads(manifest_path.read_bytes())
        data = path.read_bytes()
        if manifest["sha256"] != hashlib.sha256(data).hexdigest():
            raise ValueError("its bytes do not match their sha256")
        return Entry(_decode(data, path.suffix), manifest, source)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, OSError, zipfile.BadZipFile) as error:
        progress.warn(f"{path} is damaged ({error}); it is not used and is computed anew.", stacklevel=3)
        return None


def look_up(spec: dict) -> Entry | None:
    """The entry under `spec` if the cache holds an undamaged one made by the same code, or the recorded results any."""
    entry, reused = _read(cache_dir(), spec, "cache") or _read(RECORDED, spec, "recorded") or _read_pack(spec), _reused.get()
    if entry and reused is not None and spec["kind"] != "checkpoint":
        reused.setdefault(key(spec), entry.manifest["seconds"])
    return entry


_reused: ContextVar[dict[str, float] | None] = ContextVar("reused", default=None)


@contextmanager
def seconds_of_others() -> Iterator[dict[str, float]]:
    """Within, the seconds that entries took which were found, and not computed within: by their keys."""
    token = _reused.set({})
    try:
        yield _reused.get()
    finally:
        _reused.reset(token)


def write(path: Path, data: bytes, lasting: bool = True) -> None:
    """All of the file or nothing: temporary file, fsync, rename.

    Args:
        lasting: whether it has to stand when the machine loses power; waiting for the disk takes longer than all the rest.
    """
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
        temporary.unlink(missing_ok=True)
        raise


def put(path: Path, data: bytes) -> None:
    """`write` into the working cache, where what a power cut spoils is seen by its sha256 and computed anew.

    Raises:
        MiaError: the disk is full or the cache cannot be written.
    """
    try:
        write(path, data, lasting=False)
    except OSError as error:
        raise _cannot_write(error) from error


def _cannot_write(error: OSError) -> MiaError:
    why = "the disk is full" if error.errno == errno.ENOSPC else str(error)
    return MiaError(f"The store cannot write to {cache_dir()}: {why}. Results finished before this one are kept. "
                    "Free some space, or set MIA_CACHE to another folder, and run again: it goes on from there.")


def keep(spec: dict, arrays: dict[str, np.ndarray], seconds: float = 0.0, **notes) -> Entry:
    """Write an entry into the working cache.

    Args:
        spec: plain data with a `kind` and a `code`, see `code_of` and `under`.
        arrays: name -> array.
        seconds: what computing them took.
        notes: further plain data for the manifest.

    Raises:
        MiaError: the disk is full or the cache cannot be written; the code was edited after this process had begun.
    """
    path, manifest_path = _paths(cache_dir(), spec, key(spec))
    check_unedited(spec["code"])
    definitions.check(spec["code"])
    data = _encode(arrays, path.suffix, compress=spec["kind"] != "checkpoint")  # written often, while a card waits
    manifest = {
        "spec": spec, "schema": SCHEMA, "sha256": hashlib.sha256(data).hexdigest(),
        "seconds": round(seconds, 3), "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "numpy": np.__version__,
        "python": platform.python_version(), **notes,
    }
    put(path, data)
    put(manifest_path, json.dumps(manifest, indent=1, sort_keys=True).encode())
    if (reused := _reused.get()) is not None:
        reused[key(spec)] = 0.0
    return Entry(arrays, manifest, "computed")


def discard(spec: dict) -> None:
    """Take an entry out of the working cache, such as a checkpoint of a training that has ended."""
    for path in reversed(_paths(cache_dir(), spec, key(spec))):  # the manifest first: without it the rest is no entry
        path.unlink(missing_ok=True)


@contextmanager
def lock(spec: dict, seconds: float | None = None, what: str = "") -> Iterator[None]:
    """A lock between processes on one entry, held with `with`.

    Who has to wait is told so. The operating system drops the lock of a process that dies, so a lock file left behind
    never blocks anyone.

    Args:
        spec: of the entry.
        seconds: to wait at most; by default until the other process is done.
        what: what the holder is doing, for the one who waits.

    Raises:
        MiaError: the lock was held for longer than `seconds`.
    """
    what = what or f"computing the {spec['kind']} {spec.get('study', '')}".rstrip()
    folder = cache_dir() / "locks"
    held = FileLock(folder / f"{key(spec)}.lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held.acquire(timeout=0)
    except Timeout:
        progress.say(f"waiting for another process that is {what}")
        try:
            held.acquire(timeout=-1 if seconds is None else seconds)
        except Timeout as error:
            raise MiaError(f"Another process has been {what} for {seconds:g} s ({error.lock_file}). Wait for it, or stop it "
                           "and run again.") from error
    except OSError as error:
        raise _cannot_write(error) from error
    try:
        yield
    finally:
        held.release()


_inside: ContextVar[bool] = ContextVar("inside", default=False)  # another fetch's computation


def fetch(spec: dict, compute: Callable[[], dict[str, np.ndarray]], wait: float | None = None) -> Entry:
    """The entry under `spec`: looked up, or computed once however many processes ask.

    Args:
        spec: plain data that determines the arrays together with the code; `spec["kind"]` names the folder.
        compute: makes the arrays when no layer holds them. What it reaches, itself and through the objects that it holds, is
            part of what the entry is kept under.
        wait: seconds to wait for another process that computes the same entry; by default until it is done.

    Raises:
        MiaError: another process has held the lock for longer than `wait`.
    """
    spec = under(spec, compute)
    found = look_up(spec)
    if found is None:
        with lock(spec, wait):
            found = look_up(spec) or _compute(spec, compute)
    _note(spec, found)
    return found


def study(name: str, spec: dict, compute: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The arrays of an experiment: kept ones, or computed and kept.

    Args:
        name: CHAPTER.EXPERIMENT, the same for ever, for it is part of what kept arrays are found by.
        spec, compute: as for `fetch`; `spec` without "kind" and "study".

    Raises:
        MiaError: `spec` has one of these.
    """
    if taken := {"kind", "study"} & spec.keys():
        raise MiaError(f"The spec of {name} has {', '.join(sorted(taken))}, which say what a study is: give it another name.")
    return fetch({"kind": "study", "study": name, **spec}, compute).arrays


def each(specs: Sequence[dict], compute: Callable[[list[int], Callable], None], **notes) -> list[dict[str, np.ndarray]]:
    """The arrays of many entries that are computed together: what is kept is left out, what is done is kept at once.

    Args:
        specs: complete ones, with their code.
        compute: called with the positions of those that no layer holds, if any, and with `done(position, arrays, seconds)`,
            to be called as soon as one of them is there.
        notes: into the manifests.
    """
    found = [look_up(spec) for spec in specs]

    def done(position: int, arrays: dict[str, np.ndarray], seconds: float) -> None:
        found[position] = keep(specs[position], arrays, seconds, **notes)

    missing = [position for position, entry in enumerate(found) if entry is None]
    if missing:
        compute(missing, done)
    return [entry.arrays for entry in found]


def _compute(spec: dict, compute: Callable[[], dict[str, np.ndarray]]) -> Entry:
    start, token = time.perf_counter(), _inside.set(True)
    try:
        arrays = compute()
    finally:
        _inside.reset(token)
    return keep(spec, arrays, time.perf_counter() - start, **_computed_by())


def _computed_by() -> dict[str, str]:
    """The version of Torch, if this process has it loaded, and the name of the graphics card that it has computed on, ""
    for none."""
    torch = sys.modules.get("torch")
    if torch is None:
        return {"card": ""}
    used = [n for n in range(torch.cuda.device_count()) if torch.cuda.max_memory_allocated(n)
            ] if torch.cuda.is_initialized() else []
    return {"card": ", ".join(torch.cuda.get_device_name(n) for n in used), "torch": torch.__version__}


def _note(spec: dict, entry: Entry, nested: bool = False) -> None:
    """Append to the file that `MIA_TRACE` names what a page asked for, leaving out what that asked for in turn."""
    if os.environ.get("MIA_TRACE") and (nested or not _inside.get()):
        line = {"key": address(spec), "kind": spec["kind"], "source": entry.source, "date": entry.manifest["date"],
                "card": entry.manifest.get("card", ""),
                "versions": {name: entry.manifest[name] for name in ("python", "torch", "numpy") if name in entry.manifest}}
        with open(os.environ["MIA_TRACE"], "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")


# -------------------------------------------------------------------------------------------- ensembles in one file


@lru_cache
def _pack_index(manifests: tuple[tuple[str, int], ...]) -> dict[str, tuple[Path, dict, int]]:
    """Address of a model -> pack, its manifest, row; from (manifest, time of its last change)."""
    found = {}
    for path, _ in manifests:
        try:
            manifest = json.loads(Path(path).read_bytes())
            if manifest["schema"] == SCHEMA:
                found |= {name: (Path(path).with_name(manifest["file"]), manifest, row)
                          for row, name in enumerate(manifest["models"])}
        except (OSError, ValueError, KeyError, TypeError) as error:
            progress.warn(f"{path} is damaged ({error}); it is not used.", stacklevel=2)
    return found


@lru_cache
def _sound(path: Path, sha256: str, changed: int) -> bool:
    try:
        sound = hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    except OSError:
        sound = False
    if not sound:
        progress.warn(f"{path} is damaged (its bytes do not match their sha256); its models are trained anew.", stacklevel=2)
    return sound


def _read_pack(spec: dict) -> Entry | None:
    """A model of a recorded ensemble."""
    folder = RECORDED / "ensemble"
    if spec["kind"] != "model" or not folder.is_dir():
        return None
    manifests = tuple((str(p), p.stat().st_mtime_ns) for p in sorted(folder.glob("*/*.json")))
    path, manifest, row = _pack_index(manifests).get(address(spec), (None, None, 0))
    if path is None or not _sound(path, manifest["sha256"], path.stat().st_mtime_ns if path.is_file() else 0):
        return None
    from safetensors import safe_open

    with safe_open(path, "numpy") as pack:
        arrays = {name: np.asarray(pack.get_slice(name)[row]) for name in pack.keys()}  # noqa: SIM118 - no mapping
    notes = {**manifest, **manifest["versions"], "seconds": manifest["seconds"] / len(manifest["models"]), "spec": spec}
    entry = Entry(arrays, notes, "recorded")
    _note(spec, entry, nested=True)
    return entry
