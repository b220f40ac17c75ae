"""Code that was handed in runs in a process of its own: it ends in time, and nothing that it started lives on."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of Linux
LARGEST = 10**9  # bytes of a file that it may write, so that printing without end is stopped


@dataclass(frozen=True)
class End:
    """Exit code of a process that ended, and what it printed last."""

    code: int
    printed: str  # the last line, "" where there is none
    complaint: str  # the last line of its errors, the same


def run(
    command: Sequence[str], folder: Path, seconds: float, environment: Mapping[str, str]
) -> End:
    """Run a command in a folder, and end it with all that it started.

    Raises:
        subprocess.TimeoutExpired: it took longer.
    """
    with (
        tempfile.TemporaryFile() as out,  # a pipe could be held open by whatever it started
        tempfile.TemporaryFile() as err,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own,
        _adopting(),
    ):
        before = {pid for pid, parent, *_ in _processes() if parent == os.getpid()}
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, "TMPDIR": own},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            if sys.platform == "linux":
                import resource

                with contextlib.suppress(OSError, ValueError):  # where a lower limit holds already
                    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (LARGEST, LARGEST))
            process.wait(seconds)
        finally:
            _end(process.pid, own, before)
            process.wait()
        return End(process.returncode, _last_line(out), _last_line(err))


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Within the block, on Linux, what outlives whoever started it becomes a child of this process, which can find it."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None
    try:
        if prctl:
            prctl(SUBREAPER, *map(ctypes.c_ulong, (1, 0, 0, 0)))
        yield
    finally:
        if prctl:
            prctl(SUBREAPER, *map(ctypes.c_ulong, (0, 0, 0, 0)))


def _processes() -> Iterator[tuple[int, int, int, bool]]:
    """Number, parent and session of each process, and whether it has ended and nobody was told; none but on Linux."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent, _, session = (
                path.read_text(errors="replace").rpartition(")")[2].split()[:4]
            )
            yield int(path.parent.name), int(parent), int(session), state == "Z"


def _end(leader: int, own: str, before: Collection[int]) -> None:
    """End all processes of a group and, on Linux, those that left it: that have its folder for temporary files, or that are
    ours in a session that is not, and were not `before`."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    mark = f"TMPDIR={own}".encode()
    for _ in range(100):  # what is killed takes a moment to go, and may have started another before
        left = []
        for pid, parent, session, ended in _processes():
            adopted = parent == os.getpid() and session != os.getsid(0) and pid not in before
            with contextlib.suppress(OSError):
                if pid == leader or not (
                    adopted or mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                ):
                    continue
                if ended:
                    os.waitpid(pid, os.WNOHANG)
                else:
                    left.append(pid)
                    os.kill(pid, signal.SIGKILL)
        if not left:
            return
        time.sleep(0.01)


def _last_line(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - 10**6))
    return (file.read().decode(errors="replace").strip().splitlines() or [""])[-1]


def printable(text: str) -> str:
    """Text from others as one line that any terminal and any file can show."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:1000])
