"""Runs notebooks: parameters in, an executed notebook and a record of the run out.

A notebook is converted from `notebooks/NAME.py` by Jupytext and executed by Papermill in a kernel of this very
interpreter (whatever kernels happen to be installed). Its key is the hash of all that bears on its outputs. A finished
notebook under the same key is never run again; text and comments that changed since are put around its outputs.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mia_book import folders, publishing
from mia_book.pages import captions, outputs
from mia_book.pages.parameters import (
    PUBLISHED,
    code_cells,
    find_root,
    import_path,
    own,
    parameters,
    read,
    say_unjudged,
    texts,
    validate,
)
from mia_book.publishing import plans
from mia_lib import PACKAGES, custom, documents, store
from mia_lib.data import sets
from mia_lib.errors import MiaError, attempt, explain
from mia_lib.progress import Bars, Tail, duration

INJECTED = "injected-parameters"  # Papermill's tag of the cell that sets parameters
CHANGED_MEANWHILE = "source changed meanwhile"  # stands in a record in the place of a key
PATIENCE = 15.0  # seconds a kernel has to end by itself after Ctrl-C
PACE = "notebooks/pace.json"
LEAST_SECONDS = 3.0  # of cells, before these say how fast this machine is
SAMPLED_EVERY = 1.0  # seconds between two looks at the memory of a notebook that runs


class NotebookFailed(RuntimeError):
    """A notebook stopped in a cell; what ran until then is kept."""


def packages_of(root: Path) -> list[Path]:
    """The folders of `mia_lib` and `mia_book`: those in `root`, or else of what is installed."""
    there = [root / package.name for package in PACKAGES]
    return there if all((folder / "__init__.py").is_file() for folder in there) else PACKAGES


def versions(*packages: str) -> dict[str, str]:
    """Installed version of each package, without importing any; those not installed are left out."""
    installed = {"python": platform.python_version()}
    for package in packages or ("mia_lib", "torch", "numpy"):
        try:
            installed[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def _code(name: str, values: dict, root: Path) -> list[str]:
    """The code behind a notebook, without comments, docstrings and text: its cells, the library, the book but for `pages` and
    `course`, and the modules of the user's own that cells import or parameters name."""
    cells = [
        _parsed(cell)
        for cell in code_cells((root / "notebooks" / f"{name}.py").read_text(encoding="utf-8"))
    ]
    modules = [f"{module}:all" for cell in cells for module in custom.imported(cell)]
    with import_path(beside(root, values)):
        files = {
            path for text in [*own(values)["networks"], *modules] for path in custom.sources(text)
        }
    files |= {
        path
        for package in packages_of(root)
        for path in package.rglob("*.py")
        if path.relative_to(package).parts[0] not in ("pages", "course")
    }
    return [*map(store.digest, sorted(files)), *map(ast.dump, cells)]


def _parsed(cell: str) -> ast.AST:
    try:
        return ast.parse(cell)
    except SyntaxError:  # such as a line for the shell; or an error, which the run will say
        return ast.Constant(cell)


def beside(root: Path, values: Mapping | None = None) -> list[Path]:
    """Folders from which notebooks import modules of the user's own: where the command was given, if its parameters name a
    network there; beside the book; and those on `PYTHONPATH`."""
    here = [Path.cwd()] if values and own(values)["networks"] else []
    return [
        *here,
        root,
        *map(Path, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))),
    ]


def key(name: str, values: dict, root: Path | None = None) -> str:
    """Hash of all that bears on the outputs of a run, as 12 hexadecimal digits: code, the data and what the paper printed (all
    papers, for a notebook of none), the published measurements, parameters, versions. Text and comments are not among them.

    A data set of which nothing pins the records is first fetched, so that what is downloaded for the run counts.

    Raises:
        MiaError: a set that is not here and cannot be had.
    """
    root = find_root(root)
    chapters = folders.of(root)
    known = chapters / name if (chapters / name).is_dir() else chapters
    files = [
        *known.rglob("printed/*"),
        *known.rglob("claims.yaml"),
        *(root / "data" / "embedded").rglob("*"),
    ]
    unpinned = {
        text
        for text in texts(values)
        if text in sets.names() and text != "gaussian" and not sets.content(text)
    }
    for dataset in unpinned:
        sets.get(dataset)
    spec = {
        "code": _code(name, values, root),
        "parameters": values,
        "versions": versions("torch", "numpy"),
        "data": {str(path.relative_to(root)): _sha256(path) for path in files if path.is_file()},
        "published": sorted(
            piece.manifest["sha256"] for _, _, pieces in publishing.groups() for piece in pieces
        ),
        "unpinned": {dataset: sets.source_digest(dataset) for dataset in unpinned},
        "own": {path: _sha256(Path(path)) for path in own(values)["records"]},
    }
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:12]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_output(folder: Path) -> None:
    """Refuse, with a `MiaError`, a folder for results that cannot be made or written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise MiaError(
            f"--output {folder} cannot be a folder for results ({error.strerror}): give one that can be made and "
            "written to."
        ) from error


def check_ours(path: Path, ours: bool, command: str) -> None:
    """Refuse, with a `MiaError`, to write over a file that this command did not make."""
    if path.exists() and not ours:
        raise MiaError(
            f"--output {path.parent} holds a {path.name} that `mia {command}` did not make: give another folder, so that "
            "it is not lost."
        )


def _put_aside(notebook: Path, key: str) -> str:
    """Give a finished run, its notebook, its page and its copy, names with its key, and return the notebook's."""
    key = re.sub(r"\W+", "-", key)
    copy = notebook.with_stem(f"{notebook.stem}-copy")  # in which somebody may have worked
    for path in (notebook.with_suffix(".html"), copy, notebook):
        with suppress(FileNotFoundError):
            path.rename(path.with_stem(f"{path.stem}-{key}"))
    return f"{notebook.stem}-{key}{notebook.suffix}"


def _metadata(path: Path) -> dict:
    """Metadata of the notebook at `path`; {} when it is missing, partial or damaged."""
    try:
        return dict(documents.load(path)["metadata"])
    except (ValueError, KeyError, TypeError):
        return {}


def run_record(path: Path) -> dict | None:
    """The record of the run that made the notebook at `path`; None when it is missing, partial or damaged."""
    return _metadata(path).get("mia")


def paces(root: Path) -> dict[str, list[float]]:
    """Seconds of each code cell of a notebook when the book was last published, on two cores: name -> list. They say how much
    of a run is done, and which notebook is to begin first."""
    path = root / PACE
    return documents.load(path) if path.is_file() else {}


def seconds_left(usual: Sequence[float], finished: Sequence[float], in_cell: float) -> float:
    """Seconds to go, if cells take in proportion what they usually take; not a number where one takes more than twice as long,
    as one does that measures.

    Args:
        usual: seconds of all cells. finished: of the first ones, here. in_cell: of the next one, so far.
    """
    before, rest = sum(usual[: len(finished)]), usual[len(finished) :]
    ratio = sum(finished) / before if before > LEAST_SECONDS else 1.0
    of_cell = ratio * sum(rest[:1])
    if in_cell > 2 * of_cell + LEAST_SECONDS:
        return math.nan
    return ratio * sum(rest) - min(in_cell, of_cell)


def with_current_text(notebook: dict, name: str, root: Path | None = None) -> dict:
    """An executed notebook, as JSON, with text, captions, comments and tags of its source now; its code is the source's.

    Raises:
        MiaError: the source has other cells by now.
    """
    source = read(find_root(root) / "notebooks" / f"{name}.py")
    injected = [cell for cell in notebook["cells"] if INJECTED in cell["metadata"].get("tags", [])]
    ran = [
        cell for cell in notebook["cells"] if cell["cell_type"] == "code" and cell not in injected
    ]
    if len(ran) != sum(cell.cell_type == "code" for cell in source.cells):
        raise MiaError(f"notebooks/{name}.py was edited since it ran: build again.")
    cells = []
    for cell in json.loads(json.dumps(source.cells)):
        cells.append(cell)
        if cell["cell_type"] == "code":
            before = ran.pop(0)
            cell |= {"outputs": before["outputs"], "execution_count": before["execution_count"]}
            if "parameters" in cell["metadata"].get("tags", []):
                cells += injected
    return captions.attach({**notebook, "cells": cells})


def check_title(notebook: dict, name: str) -> None:
    """Refuse a notebook, as JSON, of which no page can be made, for it has no title."""
    first = next(iter(notebook["cells"]), {"cell_type": "none"})
    if first["cell_type"] != "markdown" or not "".join(first["source"]).startswith("# "):
        raise MiaError(
            f"notebooks/{name}.py has no title: its first cell must be Markdown that begins with `# `."
        )


def execute(
    name: str,
    values: dict,
    output: Path,
    *,
    preset: str = PUBLISHED,
    root: Path | None = None,
    bars: Bars | None = None,
) -> dict:
    """Execute one notebook, whatever was run before; arguments, result and errors as of `execute_all`."""
    [record] = execute_all([(name, values, output)], preset=preset, root=root, bars=bars)
    return record


def execute_all(
    jobs: Sequence[tuple[str, dict, Path]],
    *,
    preset: str = PUBLISHED,
    root: Path | None = None,
    bars: Bars | None = None,
    at_once: int = 1,
) -> Iterator[dict]:
    """Execute notebooks, whatever was run before, `at_once` of them side by side.

    Args:
        jobs: of each its name, all its parameters, as `validate` returns them, and where the executed notebook goes, with what
            ran until then when a cell fails. When one fails, the others run to their end; at Ctrl-C all are ended.
        preset: name for the records.

    Yields:
        The record of each run when it is done: notebook, preset, parameters, changed, date, seconds, seconds_of_cells,
        peak_memory_mb, device, versions, key. It also stands in the executed notebook's metadata under "mia".

    Raises:
        NotebookFailed: a cell raised, or the kernel died; or several notebooks failed, by whatever error. This is raised at
            the end, as is the error of one alone.
        MiaError: a data set cannot be had; a notebook without a title, before anything runs.
        OSError: the disk is full.
        KeyboardInterrupt: after the kernels and their child processes have ended.
    """
    root, waiting, running, failed, said = find_root(root), list(jobs), [], [], 0
    for name, _, _ in jobs:
        check_title(read(root / "notebooks" / f"{name}.py"), name)
    with bars or Bars() as drawn:
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    with attempt(failed):
                        running.append(
                            _Session(*waiting.pop(0), preset, root, drawn, alone=len(jobs) == 1)
                        )
                for session in running[:1]:
                    session.worker.join(0.2)
                for session in list(running):
                    session.draw()
                    if not session.worker.is_alive():
                        running.remove(session)
                        with attempt(failed):
                            yield session.finish()
                for error in failed[said:] if waiting or running else ():
                    drawn.say(explain(error))
                said = len(failed)
            if failed:
                raise (
                    failed[0]
                    if len(failed) == 1
                    else NotebookFailed("\n".join(map(explain, failed)))
                )
        except KeyboardInterrupt:
            # a second one falls through to `finally`, which ends everything at once
            for session in running:
                session.interrupt()
            for session in running:
                session.worker.join(PATIENCE)
            raise
        finally:
            for session in running:
                session.end()


class _Session:
    """One notebook with its kernel and the thread that feeds it, while the main thread draws and listens for Ctrl-C."""

    def __init__(
        self,
        name: str,
        values: dict,
        output: Path,
        preset: str,
        root: Path,
        bars: Bars,
        alone: bool,
    ):
        """Begins to execute the cells."""
        self.name = name
        self.values = values
        self.output = output.resolve()
        self.preset = preset
        self.root = root
        # of what the notebook's own bars are called
        self.bars, self.prefix = bars, "" if alone else f"{name}: "
        defaults = {p.name: p.default for p in parameters(name, root=root)}
        self.changed = {name: value for name, value in values.items() if value != defaults[name]}
        self.notebook = read(root / "notebooks" / f"{name}.py")
        self.cells = sum(cell.cell_type == "code" for cell in self.notebook.cells) + bool(
            self.changed
        )
        self.peak, self.cell, self.stopped, self.sampled = 0, None, False, 0.0
        # of cells: usual ones, and here
        self.pace, self.seconds = [0.0] * bool(self.changed) + paces(root).get(name, []), []
        self.kernel, self.result, self.error, self.family = None, None, None, {}
        self.key, self.began = key(name, values, root), time.monotonic()
        self.cell_began = self.began
        self.date = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
        self.output.parent.mkdir(parents=True, exist_ok=True)
        self.scratch = Path(tempfile.mkdtemp(prefix="mia-"))
        self.tail = Tail(self.scratch / "progress.jsonl")
        self.bars.say(f"{name}: running {self.cells} cells")
        self.worker = threading.Thread(target=self.work, daemon=True)
        self.worker.start()

    def draw(self) -> None:
        """Draw how far the notebook is, and what it says of itself."""
        for line in self.tail:
            if "say" in line:
                self.bars.say(self.prefix + line["say"])
            else:
                self.bars.update(self.prefix + line["label"], line["done"], line["total"])
        left = math.nan
        if len(self.pace) == self.cells:
            left = seconds_left(self.pace, self.seconds, time.monotonic() - self.cell_began)
        self.bars.update(f"{self.name}, cells", len(self.seconds), self.cells, left)
        if time.monotonic() - self.sampled > SAMPLED_EVERY:
            self.sample()

    def interrupt(self) -> None:
        """Ask the kernel to stop, as Ctrl-C does."""
        self.stopped = True
        self.bars.say(f"{self.name}: stopping")
        self.sample()
        if self.kernel is not None and self.kernel.is_running():
            self.kernel.send_signal(signal.SIGINT)

    def finish(self) -> dict:
        """Keep the executed notebook and return the record of its run, or raise what stopped it."""
        import nbformat

        from mia_lib.training import devices

        self.end()
        self.bars.update(f"{self.name}, cells", self.cells, self.cells)
        if self.error is not None:
            raise self.explained() from self.error
        code = self.key
        if key(self.name, self.values, self.root) != code:
            self.bars.say(
                f"{self.name}: its source changed while it ran, so this page is of neither; the next run makes it "
                "anew"
            )
            code = CHANGED_MEANWHILE
        record = {
            "notebook": self.name,
            "preset": self.preset,
            "parameters": self.values,
            "changed": self.changed,
            "key": code,
            "date": self.date,
            "seconds": round(time.monotonic() - self.began, 1),
            "seconds_of_cells": [
                round(seconds, 1) for seconds in self.seconds[bool(self.changed) :]
            ],
            "peak_memory_mb": round(self.peak / 2**20),
            "device": devices.describe(devices.pick()),
            "versions": versions(),
        }
        self.result.metadata["mia"] = record
        store.write(self.output, nbformat.writes(self.result).encode())
        return record

    def work(self) -> None:
        """Execute the cells, in the thread of the session; what comes of it stands in `result` or `error`."""
        import logging

        logging.getLogger("papermill").setLevel(logging.CRITICAL)
        # no half of it is to stand at `output`
        partial = self.output.with_name(f".{self.name}-{os.getpid()}.ipynb")
        try:
            import papermill

            self.result = papermill.execute_notebook(
                self.notebook,
                # braces, else, are filled in with parameters
                re.sub("([{}])", r"\1\1", str(partial)),
                parameters=self.changed,
                kernel_name="python3",
                language="python",
                request_save_on_cell_execute=False,  # whose figures weigh megabytes: a quarter of a minute
                progress_bar=False,
                start_timeout=120,
                iopub_timeout=60,
                kernel_manager_class=self._manager(),
                resources={"metadata": {"path": str(self.root)}},
                on_cell_execute=self._begin_cell,
                on_cell_executed=self._end_cell,
                coalesce_streams=True,
            )
            _tidy(self.result)
            captions.attach(self.result)
        except BaseException as error:  # handed to the main thread, which raises it
            self.error = error
            # a cell's, after which Papermill has written the notebook
            if hasattr(error, "exec_count"):
                os.replace(partial, self.output)
        finally:
            partial.unlink(missing_ok=True)

    def _begin_cell(self, cell, cell_index) -> None:
        if self.stopped:
            raise RuntimeError("stopped")
        self.cell, self.cell_began = cell, time.monotonic()

    def _end_cell(self, cell, cell_index, execute_reply) -> None:
        self.seconds.append(time.monotonic() - self.cell_began)
        self.sample()

    def _manager(self) -> type:
        """A kernel manager class that knows one kernel: this interpreter, in an environment of our making."""
        import psutil
        from jupyter_client import AsyncKernelManager
        from jupyter_client.kernelspec import KernelSpec

        session = self
        path = [str(packages_of(self.root)[0].parent), *map(str, beside(self.root, self.values))]
        env = {
            "OMP_NUM_THREADS": "1",
            "MIA_PROGRESS": str(self.scratch / "progress.jsonl"),
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": os.pathsep.join(path),
            "IPYTHONDIR": str(self.scratch / "ipython"),
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }

        class Kernel(AsyncKernelManager):
            kernel_spec = KernelSpec(
                argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                env=env,
                display_name="Python 3",
                language="python",
            )

            def __init__(self, **options):
                # Sockets in the scratch folder: no port to collide on and nothing to listen in on.
                super().__init__(
                    **options,
                    transport="tcp" if os.name == "nt" else "ipc",
                    connection_file=str(session.scratch / "kernel.json"),
                )

            async def start_kernel(self, **options):
                # What the kernel's processes say as they are ended must not reach the terminal.
                with open(session.scratch / "kernel.log", "wb") as log:
                    await super().start_kernel(**options, stdout=log, stderr=log)
                session.kernel = psutil.Process(self.provisioner.pid)

        return Kernel

    def sample(self) -> None:
        """Note who belongs to the kernel and how much memory they hold together, shared pages counted once where the system
        tells."""
        import psutil

        self.sampled, memory = time.monotonic(), 0
        try:
            family = [self.kernel, *self.kernel.children(recursive=True)] if self.kernel else []
        except psutil.Error:
            return
        self.family |= {process.pid: process for process in family}
        for process in family:
            with suppress(psutil.Error):
                info = process.memory_full_info()
                memory += getattr(info, "pss", 0) or info.rss
        self.peak = max(self.peak, memory)

    def end(self) -> None:
        """End every process that the notebook started."""
        import psutil

        self.sample()
        left = [process for process in self.family.values() if process.is_running()]
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=5)
        self.worker.join(PATIENCE)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def explained(self) -> BaseException:
        """The error that says what stopped the notebook, with the cell if it is known."""
        from nbclient.exceptions import DeadKernelError
        from papermill.exceptions import PapermillExecutionError

        error, kept = self.error, ""
        if isinstance(error, PapermillExecutionError):
            number = error.exec_count
            source = error.source
            kept = f" What ran until then is kept in {self.output}."
            last = (error.evalue or "").strip().splitlines() or [""]
            if error.ename == "MiaError" and last[-1]:  # which says what was given, and what to do
                return NotebookFailed(
                    f"{self.name} cannot be run so. {outputs.without_colours(last[-1])}{kept}"
                )
            what = f"{error.ename}: {last[-1]}" if last[-1] else error.ename
        elif isinstance(error, DeadKernelError) and self.cell is not None:
            number, source = len(self.seconds) + 1, self.cell.source
            what = "the kernel died, as it does when memory runs out; lower the sizes among the parameters"
        else:
            return error
        first = next((line.strip() for line in source.splitlines() if line.strip()), "")
        return NotebookFailed(
            f"notebooks/{self.name}.py failed in cell [{number}], which begins `{first}`: "
            f"{outputs.without_colours(what).rstrip('.')}.{kept}"
        )


def _tidy(notebook) -> None:
    """Take away what Papermill leaves: timings, paths, empty tags and a random id."""
    notebook.metadata.pop("papermill", None)
    notebook.metadata.get("language_info", {}).pop("version", None)
    for cell in notebook.cells:
        if INJECTED in cell.metadata.get("tags", []):
            cell["id"] = INJECTED
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if not cell.metadata.get("tags", True):
            del cell.metadata["tags"]


def prepare(name: str, runs: Sequence[Mapping], root: Path) -> None:
    """Refuse runs that measure too long or whose data cannot be had, before anything runs, see `plans.prepare`."""
    with import_path([folder for values in runs for folder in beside(root, values)]):
        plans.prepare(name, runs)


def run(
    name: str,
    given: dict | None = None,
    preset: str | None = None,
    output: Path | None = None,
    *,
    root: Path | None = None,
    bars: Bars | None = None,
) -> Path:
    """Run a notebook with new parameters, unless the very same run is there already.

    Args:
        given: parameter -> value (or text) over the preset.
        output: folder of the result, None for `runs/NAME-KEY`. A finished run of other parameters or code that is there
            stays, with its key in its name.

    Returns:
        Path of the executed notebook, NAME.ipynb, for `run_page.write` to draw.

    Raises:
        MiaError: bad input, too long a measurement, or data that cannot be had, before anything runs.
        NotebookFailed: a cell raised.
    """
    root = find_root(root)
    values = validate(name, given or {}, preset, root)
    code = key(name, values, root)
    folder = Path(output) if output else root / "runs" / f"{name}-{code}"
    target = folder / f"{name}.ipynb"
    bars = bars or Bars()
    record = run_record(target)
    same = record is not None and record["key"] == code
    if not same:
        prepare(name, [values], root)  # what is refused leaves no folder behind
    check_output(folder)
    ours = not output or record is not None or "papermill" in _metadata(target)
    for path in (target, target.with_suffix(".html")):
        check_ours(path, ours, "run")
    if same:
        bars.say(f"{name}: these parameters were run on {record['date'][:10]}; shown again")
        notebook = with_current_text(documents.load(target), name, root)
        # another may hold the same parameters
        notebook["metadata"]["mia"]["preset"] = preset or PUBLISHED
        store.write(target, json.dumps(notebook, indent=1).encode())
    else:
        if unjudged := say_unjudged(parameters(name, preset, root), values):
            bars.say(f"{name}: {unjudged}")
        if record:
            bars.say(
                f"{name}: the run that was in {folder} stays there as {_put_aside(target, record['key'])}"
            )
        record = execute(name, values, target, preset=preset or PUBLISHED, root=root, bars=bars)
        bars.say(f"{name}: done in {duration(record['seconds'])}")
    return target
