"""The environment variables of this library: each is read here, and refused with a `MiaError` where it cannot be used."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path

from mia_lib.errors import MiaError, brief, check_range, first_line


def device() -> str:
    """What `$MIA_DEVICE` names, or ""; `mia_lib.training.devices` checks it."""
    return os.environ.get("MIA_DEVICE", "")


def cluster() -> str:
    """The address that `$MIA_CLUSTER` gives, or ""; `mia_lib.training.pool` connects to it."""
    return os.environ.get("MIA_CLUSTER", "")


def progress_file() -> str:
    """The file that `$MIA_PROGRESS` names, or ""."""
    path = os.environ.get("MIA_PROGRESS", "")
    if path and not Path(path).parent.is_dir():
        raise MiaError(f"MIA_PROGRESS = {path!r}: a file in a folder that is there is needed.")
    return path


def folder(name: str) -> Path | None:
    """The folder that `$MIA_CACHE`, `$MIA_DATA` or `$MIA_PUBLISHED` names, there or not; `~` is the user's."""
    if not (given := os.environ.get(name)):
        return None
    path = Path(os.path.expanduser(given))
    if given.startswith("~") and path == Path(given) or path.exists() and not path.is_dir():
        raise MiaError(f"{name} = {given!r} is no folder: name one, which need not be there yet.")
    return path


def path(given: str | Path) -> Path:
    """A path as people write it, in which `~` is the user's folder; what can be the name of no file raises `MiaError`."""
    made = Path(os.path.expanduser(given))
    try:
        made.lstat()
    except (OSError, ValueError) as error:
        if getattr(error, "errno", errno.ENAMETOOLONG) == errno.ENAMETOOLONG:
            raise MiaError(f"{brief(str(given))} can be no path ({first_line(error)}).") from error
    return made


def workers() -> int | None:
    """How many processes `$MIA_WORKERS` allows."""
    return _number("MIA_WORKERS", int, 1, 1024)


def most_seconds() -> float:
    """How long `$MIA_MOST_SECONDS` lets a run measure."""
    most = _number("MIA_MOST_SECONDS", float, 0)
    return math.inf if most is None else most


def _number(name: str, kind: type, low: int, high: int | None = None):
    given = os.environ.get(name)
    try:
        value = kind(given) if given else None
    except ValueError as error:
        raise MiaError(
            f"{name} = {given!r}: a {'whole ' * (kind is int)}number is needed."
        ) from error
    return value if value is None else check_range(name, value, low, high)
