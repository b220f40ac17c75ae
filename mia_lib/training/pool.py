"""Processes: those of this machine, of any executor, or of a cluster."""

from __future__ import annotations

import atexit
import ctypes
import itertools
import multiprocessing.connection
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import torch

from mia_lib import __version__, custom, environment, processes, progress, store
from mia_lib.errors import MiaError, first_line

CONNECT_SECONDS = 20
MOST_QUEUED = 64  # tasks that have been handed out and are not finished, at most, where it is not known how many run at once
UNGUARDED = 77  # how a process ends that would train when it imports the script
GUARD = (
    "This script trains models when it is imported, which the processes that train them do. Put what it does under "
    "`if __name__ == '__main__':`."
)

_pools: dict[int, ProcessPoolExecutor] = {}


def _start_worker(variables: dict[str, str]) -> None:
    os.environ.clear()  # its own is that of the process it was forked from, as it was when that one started
    os.environ.update(variables)
    torch.set_num_threads(1)
    _keep_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _keep_memory() -> None:
    """Have freed memory kept for the next array: handing it back and asking anew costs more than a small convolution. Large
    arrays, as a Hessian is, go back at once."""
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 2**26)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
    except (OSError, AttributeError, TypeError):
        pass  # another C library than glibc


def _end_with_parent() -> None:
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)  # a killed parent would otherwise leave its workers waiting for ever


def refuse_unguarded() -> None:
    """End a process of the pool that is still importing the script and is about to start work of its own.

    The process that started it tells by the exit code, and says why once more, as the last thing on the screen.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        print(GUARD, file=sys.stderr, flush=True)
        os._exit(UNGUARDED)  # an exception would be another exit code in a forked process


def _why_died(processes: list, label: str) -> str:
    """Message that says why a process of the pool may have died, and what to do."""
    for process in processes:
        process.join(5)
    # which the pool itself sends to the rest
    codes = {process.exitcode for process in processes} - {None, 0, -signal.SIGTERM}
    kept = "What was finished is kept: run again"
    if UNGUARDED in codes:
        return GUARD
    if codes == {1}:  # that of an exception, which tasks hand over instead
        return (
            f"The processes for '{label}' could not start: their error stands above. If it is the script's, put what it "
            f"does under `if __name__ == '__main__':`. {kept}."
        )
    if not codes or -signal.SIGKILL in codes:
        return (
            f"A process died during '{label}' (out of memory?). {kept}, with fewer processes if memory is short "
            "(MIA_WORKERS=1)."
        )
    return f"A process died during '{label}' (exit code {', '.join(map(str, sorted(codes)))}). {kept}, or with MIA_WORKERS=1."


def default_workers() -> int:
    """Number of processes of the pool: `$MIA_WORKERS`, or one a core this process may use, at most
    16."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return environment.workers() or min(16, cores)


def pool(workers: int | None = None) -> ProcessPoolExecutor:
    """The pool of single-threaded processes, started once and kept for the life of this process."""
    workers = workers or default_workers()
    if workers not in _pools:
        _pools[workers] = ProcessPoolExecutor(
            workers,
            mp_context=processes.context(),
            initializer=_start_worker,
            initargs=(dict(os.environ),),
        )
    return _pools[workers]


@atexit.register
def close_pools() -> None:
    """End the processes of every pool, whatever they are doing."""
    while _pools:
        ended = _pools.popitem()[1]
        # Futures must not be cancelled here: the pool's thread fails on one, and leaves a queue that nobody reads.
        for process in list((ended._processes or {}).values()):
            process.terminate()
        ended._result_queue._writer.close()  # else half a result of a process just ended would be waited for
        ended.shutdown()


def _as_here(variables: dict[str, str], paths: list[str], function: Callable, *task):
    """Run a task with the environment of who gives it, as where the cache is, and with `paths` to import from: folders with
    modules of the user's own. Both may be younger than the process."""
    os.environ.clear()
    os.environ.update(variables)
    sys.path += [path for path in paths if path not in sys.path]
    return function(*task)


def versions(architecture: str = "") -> dict[str, str]:
    """All that bears on the result of a task besides the task, by name: packages, the code of the
    library and that of an architecture of the user's own."""
    code = store.code_of(store.PIECES)
    try:
        store.check_unedited(code)
    except MiaError:
        code += ", edited since this process began"
    own = (
        {architecture: store.code_of((), *files)} if (files := custom.sources(architecture)) else {}
    )
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "PyTorch": torch.__version__.partition("+")[0],
        "NumPy": np.__version__,
        "mia_lib": f"{__version__} (code {code})",
        **own,
    }


def _refuse_others(where: str, found: dict[str, str], wanted: dict[str, str]) -> None:
    """Refuse a process, `where`, of other versions than are wanted."""
    if different := [name for name in wanted if found.get(name) != wanted[name]]:
        theirs, ours = (
            ", ".join(f"{name} {of.get(name, 'none')}" for name in different)
            for of in (found, wanted)
        )
        raise MiaError(
            f"{where} has {theirs}, and who gives it work has {ours}: install the same there and start it again, "
            "for models are to come out the same."
        )


def _alike(wanted: dict[str, str], architecture: str, function: Callable, *task):
    """Run a task if this process has the versions `wanted`: it may have joined a cluster after it
    was met, or be older than the code."""
    _refuse_others(f"Process {os.getpid()} on {platform.node()}", versions(architecture), wanted)
    return function(*task)


def run_tasks(
    function: Callable,
    tasks: Iterable[tuple],
    finished: Callable[[int, object], None],
    label: str,
    workers: int | None = None,
    executor: Executor | None = None,
    weights: list[int] | None = None,
    architecture: str = "",
) -> None:
    """Run `function(*task)` for every task and hand each result over as it comes.

    Args:
        function: importable by name. tasks: argument tuples. Each is asked for when its turn comes, twice as many as there are
            processes ahead, so that a generator need not hold what all of them take with them.
        finished: called in this process with (position of the task, result).
        workers: processes of the local pool.
        executor: any `concurrent.futures.Executor` in the place of the pool, or of the cluster that `$MIA_CLUSTER` names.
        weights: how far each task moves the bar; one each by default, where there is a list of tasks.
        architecture: of the networks of the tasks.

    Raises:
        MiaError: a task's own, that a process died, or that one elsewhere has other `versions`. Results handed over before
            are not lost.
    """
    refuse_unguarded()
    weights = [1] * len(tasks) if weights is None else weights
    elsewhere = executor or cluster()
    ahead = max(MOST_QUEUED, 2 * at_once()) if elsewhere else 2 * (workers or default_workers())
    wanted = versions(architecture) if elsewhere else {}
    futures: dict = {}
    paths, numbered_tasks = [os.path.abspath(path) for path in sys.path], enumerate(tasks)
    variables = dict(os.environ)
    try:
        with progress.Bar(label, sum(weights)) as bar:
            while True:
                for position, task in itertools.islice(numbered_tasks, ahead - len(futures)):
                    futures[
                        elsewhere.submit(_alike, wanted, architecture, function, *task)
                        if elsewhere
                        else pool(workers).submit(_as_here, variables, paths, function, *task)
                    ] = position
                if not futures:
                    break
                for future in wait(futures, return_when=FIRST_COMPLETED).done:
                    position = futures.pop(future)
                    finished(position, future.result())
                    bar.advance(weights[position])
    except BrokenProcessPool:
        processes = list((getattr(elsewhere or pool(workers), "_processes", None) or {}).values())
        close_pools()
        raise MiaError(_why_died(processes, label)) from None
    except CancelledError as error:
        _clusters.pop(environment.cluster(), None)
        raise MiaError(
            f"The scheduler of the cluster went away during '{label}'. What was finished is kept: start it again, "
            "and run again."
        ) from error
    except BaseException as error:
        if elsewhere is None:
            close_pools()
        for future in futures:
            future.cancel()
        # of dask.distributed, which need not be installed
        if type(error).__name__ == "KilledWorker":
            raise MiaError(
                f"Workers of the cluster died again and again during '{label}' (out of memory?). What was finished "
                "is kept: run again, with more memory for each worker."
            ) from error
        raise


# --------------------------------------------------------------------------------------------------------- a cluster

_clusters: dict = {}  # address of a scheduler -> distributed.Client


def at_once() -> int:
    """Number of tasks that `run_tasks` runs at the same time: threads of the workers of
    `$MIA_CLUSTER`, or processes of the pool."""
    if cluster() is None:
        return default_workers()
    return max(1, sum(_clusters[environment.cluster()].nthreads().values()))


def cluster() -> Executor | None:
    """An executor of the dask cluster whose scheduler `$MIA_CLUSTER` names, such as "tcp://10.0.0.1:8786". It is connected to
    once; the connection is kept for the life of this process.

    Returns:
        None when no cluster is named.

    Raises:
        MiaError: `dask.distributed` is not installed, nobody answers, there is no worker, or the workers do not see this
            machine's store or have other versions.
    """
    if not (address := environment.cluster()):
        return None
    if address not in _clusters:
        _clusters[address] = connect(address)
    return _clusters[address].get_executor(pure=False)


def connect(address: str):
    """A `distributed.Client` whose workers can do our work; errors as for `cluster`."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MiaError(
            f"The cluster {address} needs dask.distributed: install the extra, pip install "
            "'mia_lib[cluster]' (in a clone: pip install -e '.[cluster]')."
        ) from error
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MiaError(
            f"No dask scheduler answers at {address!r} ({error}). Give the address it prints when it starts, "
            "such as tcp://10.0.0.1:8786."
        ) from error
    try:
        _meet(client, address)
    except BaseException:
        client.close()
        raise
    return client


def _sees(path: str) -> tuple[bool, dict[str, str]]:
    """True if a worker sees a file, and the worker's versions; asked before it gets work."""
    return os.path.isfile(path), versions()


def _meet(client, address: str) -> None:
    """Refuse a cluster that would fail, or give other models, later."""
    if not client.scheduler_info()["workers"]:
        raise MiaError(
            f"The scheduler at {address} has no workers yet. Start some (dask worker {address} --nthreads 1) and "
            "run again."
        )
    mark = store.cache_dir() / "seen-by-workers"
    store.write(mark, b"")
    try:
        answers = client.run(_sees, str(mark))
    except Exception as error:
        # whatever dask makes of one that lacks this module, or has it in an older form
        raise MiaError(
            f"Workers of {address} cannot answer ({first_line(error)}): install mia_lib {__version__}, the same as "
            "here, where they run, too."
        ) from error
    finally:
        mark.unlink(missing_ok=True)
    for worker, (sees, found) in answers.items():
        if not sees:
            raise MiaError(
                f"Worker {worker} does not see {store.cache_dir()}: set MIA_CACHE to a folder on a file system "
                "that all machines share, here and for the workers."
            )
        _refuse_others(f"Worker {worker}", found, versions())
