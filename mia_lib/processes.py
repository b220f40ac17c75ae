"""Processes of the pool, and where they come from.

Python's `spawn` starts an interpreter for each, and each imports PyTorch and, at its first step, the optimisers' machinery:
seconds, before anything is trained. Here one process, the template, imports them once, and the others are forked from it. It
begins when `mia_lib.training` or `mia_lib.signals` is first asked for, so it is ready when data are loaded. A forked child of
a process whose PyTorch has computed can hang; the template never computes.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import site
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from pathlib import Path

from mia_lib import LIBRARY, environment

# `torch._dynamo` is what every optimiser imports when it is first used.
PRELOADED = ["torch", "torch._dynamo", "mia_lib.signals.outputs"]
DRIVER = Path("/proc/driver/nvidia/version")


def context() -> BaseContext:
    """Start method of processes: forked from the template on Linux, each from nothing elsewhere,
    where a fork may not be safe."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    _start()
    return multiprocessing.get_context("forkserver")


def prepare() -> None:
    """Start the template where this process is likely to need it: on Linux, without a graphics card or a cluster, and unless
    it is itself such a process."""
    elsewhere = (
        "distributed" in sys.modules
        or environment.cluster()
        or DRIVER.exists()
        and environment.device() != "cpu"
    )
    if sys.platform == "linux" and not elsewhere and not _is_child():
        _start()


def _is_child() -> bool:
    """True if another process of Python started this one, the template included."""
    return multiprocessing.parent_process() is not None or any(
        "multiprocessing." in word for word in sys.orig_argv
    )


def _start() -> None:
    from multiprocessing import forkserver, resource_tracker

    server = forkserver._forkserver
    if server._preload_modules == ["__main__"]:  # else whoever uses this process chose
        forkserver.set_forkserver_preload(PRELOADED)
    # Ctrl-C is ours to handle; what stands here is handed down, and the template would only ignore it once it has imported.
    with _safe_path():
        resource_tracker.ensure_running()  # which lifts the block when it starts, so it is to be there before
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    atexit.unregister(_end)
    atexit.register(_end, server, os.getpid())


@contextmanager
def _safe_path() -> Iterator[None]:
    """Within the block, an interpreter that is started imports this very library, wherever it was found, and nothing else from
    the folder where we run, which `-c` looks into first: there may be whatever came with the records."""
    named = {"PYTHONSAFEPATH": "1"}
    if str(LIBRARY.parent) not in site.getsitepackages():  # which are looked into anyway
        found = [str(LIBRARY.parent), os.environ.get("PYTHONPATH", "")]
        named["PYTHONPATH"] = os.pathsep.join(filter(None, found))
    before = {name: os.environ.get(name) for name in named}
    os.environ.update(named)
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


def _end(server, starter: int) -> None:
    """End a template that may still be importing: whoever waits for our output would wait for its, too."""
    if server._forkserver_pid is not None and os.getpid() == starter:
        os.kill(server._forkserver_pid, signal.SIGKILL)
