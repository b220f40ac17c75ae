"""Builds the book: executed notebooks and prose go to a staging folder, and Jupyter Book makes HTML of it.

The staging folder `_build/book` mirrors the repository, so that a page's launch and download links name files that
exist there. Nothing in it is edited by hand, and no output flows back into the repository.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

from mia_book import folders
from mia_book.pages import copies, outputs, pages, prose, runner, sync
from mia_book.pages.parameters import PUBLISHED, find_root, validate
from mia_lib import documents, store
from mia_lib.errors import MiaError
from mia_lib.progress import Bars, duration

MARKER = "<!-- generated -->"
EXTRA = "book/_extra/"  # in the staging folder, and in _config.yml: what goes beside the pages as it is, reports of audits
STAGED = ("book", "CHANGELOG.md")
NO_PAGES = "book/slides/"
MEMORY_FOR_TWO = 5e9  # bytes that have to be free
INDEX = "book/_build/html/index.html"
VERSIONS = ("mia_lib", "torch", "numpy", "jupyter-book", "sphinx", "sphinx-book-theme")
# The package has no __main__. Of a page's thousands of nodes few are ever garbage while it is made; and without the grammar of
# web addresses, which nothing here asks for, jsonschema is imported in a tenth of the time.
JUPYTER_BOOK = (
    "import gc, sys; gc.set_threshold(50_000); sys.modules['rfc3987_syntax'] = None; "
    "from jupyter_book.cli.main import main; main()"
)


class BookFailed(RuntimeError):
    """Jupyter Book found something wrong in the pages."""


def build(
    preset: str = PUBLISHED,
    force: bool = False,
    *,
    root: Path | None = None,
    folder: Path | None = None,
) -> Path:
    """Run every notebook of the table of contents and build the HTML.

    Args:
        preset: of every notebook.
        force: run and build everything again.
        root, folder: of the book, and where everything that is made goes, None for `_build` in `root`.

    Returns:
        Path of index.html.

    Raises:
        MiaError: bad input, before anything runs.
        runner.NotebookFailed: a notebook stopped in a cell.
        BookFailed: Jupyter Book warned; warnings are errors here.
    """
    from filelock import FileLock, Timeout

    root = find_root(root)
    folder = Path(folder).resolve() if folder else root / "_build"
    values = {name: validate(name, {}, preset, root) for name in folders.in_order(root)}
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock", timeout=0):
            return _build(values, preset, force, root, folder)
    except Timeout:
        raise MiaError(
            f"Another `mia build` is at work in {folder}. Wait for it to end, or stop it."
        ) from None


def _build(values: dict[str, dict], preset: str, force: bool, root: Path, folder: Path) -> Path:
    bars, index, noted = Bars(), folder / INDEX, folder / "seen.json"
    before, last = _states(root, folder, preset), None
    if noted.is_file() and not force:
        last = documents.load(noted, remedy="Remove it, and build again.")
    if last == before and index.is_file():
        bars.say("book: nothing changed, used again")
        return index
    executed, todo = _executed(values, root, folder), []
    for name, path in executed.items():
        record = None if force else runner.run_record(path)
        if record and record["preset"] == preset and path.stem.endswith(record["key"]):
            bars.say(f"{name}: nothing changed since {record['date'][:10]}, used again")
        else:
            todo.append((name, values[name], path))
    seconds = {name: sum(cells) for name, cells in runner.paces(root).items()}
    # those that take long are not to be left for the end alone
    todo.sort(key=lambda one: -seconds.get(one[0], math.inf))
    at_once = _at_once() if todo else 1
    if len(todo) > 1:
        usual = duration(sum(seconds.get(name, 0.0) for name, _, _ in todo) / at_once)
        bars.say(
            f"book: running {len(todo)} notebooks, {at_once} at once ({usual} when last published, on two cores), "
            "and building the pages"
        )
    for record in runner.execute_all(todo, preset=preset, root=root, bars=bars, at_once=at_once):
        bars.say(
            f"{record['notebook']}: done in {duration(record['seconds'])}, {record['peak_memory_mb']} MB at most"
        )
    noted.unlink(missing_ok=True)
    fresh = last is None or last["versions"] != before["versions"]
    index = render(contents(root, _with_text(executed, root)), root, folder, fresh, bars)
    after = _states(root, folder, preset)
    if after["sources"] == before["sources"]:  # nobody edited while it was built
        store.write(noted, json.dumps(after).encode())
    return index


def _at_once() -> int:
    """Number of notebooks to run side by side: two, for each computes now and then what only one
    processor can take part in; one where they would share a card, or there is no memory for two."""
    import psutil

    from mia_lib.training import devices
    from mia_lib.training.pool import default_workers

    alone = devices.pick(None).type != "cpu" or default_workers() == 1
    return 1 if alone or psutil.virtual_memory().available < MEMORY_FOR_TWO else 2


def _executed(values: dict[str, dict], root: Path, folder: Path) -> dict[str, Path]:
    """Path of each executed notebook, there or not yet, for these parameters and the code that is
    there now."""
    return {
        name: folder / "executed" / f"{name}-{runner.key(name, of_notebook, root)}.ipynb"
        for name, of_notebook in values.items()
    }


def _with_text(executed: dict[str, Path], root: Path) -> dict[str, dict]:
    """Executed notebooks as JSON, with their text as it is now."""
    return {
        name: runner.with_current_text(documents.load(path), name, root)
        for name, path in executed.items()
    }


def executed_notebooks(preset: str, root: Path, folder: Path) -> dict[str, dict]:
    """The notebooks of the table of contents as `build` last ran them at a preset, with their text as it is now: name -> JSON.

    Raises:
        MiaError: one was not run, or not by the code that is there now.
    """
    executed = _executed(
        {name: validate(name, {}, preset, root) for name in folders.in_order(root)}, root, folder
    )
    for name, path in executed.items():
        if runner.run_record(path) is None:
            raise MiaError(
                f"{name} was not run at preset {preset!r} by the code that is there now: run "
                f"`mia build --preset {preset}` first, or `make slides`, which does both. `mia slides --quizzes` makes the "
                "quizzes to print without it."
            )
    return _with_text(executed, root)


def _states(root: Path, folder: Path, preset: str) -> dict:
    """Fingerprint by which it is seen that nothing changed: hashes of the names, sizes and times of
    change of all that a book is made from (with the library, and modules that notebooks may
    import), and of all that was made. Reading them would take many times as long."""

    def state(*tops: Path) -> str:
        files = [
            path
            for top in tops
            for path in [top, *top.rglob("*")]
            if path.suffix != ".pyc" and path.is_file()
        ]
        stats = [
            (str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in sorted(files)
        ]
        return hashlib.sha256(json.dumps(stats).encode()).hexdigest()

    sources = [
        root / part
        for part in (*STAGED, "data", "mia_book", "notebooks", "_toc.yml", "_config.yml")
    ]
    for beside in runner.beside(root):
        sources += [*beside.glob("*.py"), *(path.parent for path in beside.glob("*/__init__.py"))]
    return {
        "preset": preset,
        "versions": runner.versions(*VERSIONS),
        "sources": state(*runner.packages_of(root), *sources),
        "made": state(folder / "executed", folder / "book"),
    }


# The staging folder


def contents(root: Path, executed: dict[str, dict]) -> dict[str, bytes]:
    """Everything that belongs into the staging folder, path in it -> content, of executed notebooks as JSON by name.

    Raises:
        MiaError: a page names what no run has, or lacks the mark where its generated part belongs.
    """
    from mia_book.chapters.primer import charts as primer  # draws, and what draws is slow to load
    from mia_lib.audit import report

    for name, notebook in executed.items():
        runner.check_title(notebook, name)
    files = _sources(root)
    runs = {name: prose.run_of(notebook, root) for name, notebook in executed.items()}
    resolved = {
        name: prose.resolve_roles(notebook, runs[name]) for name, notebook in executed.items()
    }
    for name, notebook in resolved.items():
        files[f"notebooks/{name}.ipynb"] = (
            json.dumps(pages.page(notebook), indent=1, sort_keys=True) + "\n"
        ).encode()
    files |= copies.files(resolved, root)
    if primer.PAGE in files:
        resolved[primer.NAME] = primer.notebook()
        runs[primer.NAME] = prose.run_of(resolved[primer.NAME], root)
    charts, verdicts, deals = {}, [], []
    for name, notebook in resolved.items():
        shown = outputs.displayed(notebook)
        files |= {f"{prose.FIGURES}{figure}.png": png for figure, png in shown.pictures.items()}
        files |= {
            f"{EXTRA}audits/{file}": text.encode() for file, text in shown.report_files().items()
        }
        charts |= {
            figure: (chart, shown.figures[figure]["alt"]) for figure, chart in shown.charts.items()
        }
        verdicts += [
            {"notebook": name, "preset": runs[name].preset, **verdict} for verdict in shown.claims
        ]
        deals += shown.deals
    files["book/_static/audit.schema.json"] = json.dumps(report.schema(), indent=1).encode()
    files[sync.FINDINGS] = sync.findings({name: runs[name] for name in executed}, verdicts)
    card = pages.scorecard_rows(verdicts) if "book/scorecard.md" in files else []
    files |= {pages.SCORECARD: (json.dumps(card, indent=1) + "\n").encode()} if card else {}
    generated = {
        "book/status.md": lambda: outputs.render(
            "status.md", runs=[notebook["metadata"]["mia"] for notebook in executed.values()]
        ),
        "book/play.md": lambda: pages.game(deals),
        "book/scorecard.md": lambda: pages.scorecard(card),
    }
    for path, text in generated.items():
        if path in files:
            if MARKER not in (written := files[path].decode()):
                raise MiaError(
                    f"{path} has no line {MARKER}. Put it where the generated part belongs."
                )
            files[path] = written.replace(MARKER, text(), 1).encode()
    for path in [path for path in files if path.startswith("book/") and path.endswith(".md")]:
        files[path] = pages.show_charts_again(
            prose.prose(files[path].decode(), path, runs=runs), path, charts
        ).encode()
    return files


def _sources(root: Path) -> dict[str, bytes]:
    """Content of all files to stage, by path, as it stands in the repository."""
    files = {name: (root / name).read_bytes() for name in ("_toc.yml", "_config.yml")}
    for top in (root / part for part in STAGED):
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            name = path.relative_to(root)
            if (
                path.is_file()
                and not any(p.startswith(".") or p == "__pycache__" for p in name.parts)
                and not name.as_posix().startswith(NO_PAGES)
            ):
                files[name.as_posix()] = path.read_bytes()
    return files | {  # the reference pages are made from it, so a change must reach Sphinx
        f"{package.name}/{p.relative_to(package).as_posix()}": p.read_bytes()
        for package in runner.packages_of(root)
        for p in package.rglob("*.py")
    }


def stage(files: dict[str, bytes], folder: Path) -> list[str]:
    """Make the staging folder hold exactly `files`, path in it -> content, besides Jupyter Book's own `_build`. Only what
    differs is touched, so that Sphinx stays incremental; returns its paths."""
    touched = []
    for path in sorted(folder.rglob("*")) if folder.exists() else []:
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith("_build/") and name not in files:
            path.unlink()
            touched.append(name)
    for name, content in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            touched.append(name)
    return touched


# HTML


def render(files: dict[str, bytes], root: Path, folder: Path, fresh: bool, bars: Bars) -> Path:
    """Make HTML of `files`, from `contents`, and return the path of index.html.

    Where `fresh`, all pages are read again: else Sphinx reads none that it has read, and its warnings would not be heard.

    Raises:
        BookFailed: Jupyter Book warned.
    """
    staged, log, index = folder / "book", folder / "book.log", folder / INDEX
    touched = stage(files | _drawing(files, folder), staged)
    if fresh or any(name.startswith(("book/_static/", "_config", "_toc")) for name in touched):
        # static files are copied only when some page changed
        shutil.rmtree(staged / "_build", ignore_errors=True)
    bars.say("book: building the pages")
    code, lines = sphinx(staged, log, root, "-W", "-n", "--keep-going")
    if code or not index.is_file():
        wrong = [line for line in lines if "WARNING" in line or "ERROR" in line] or lines[-20:]
        raise BookFailed(
            "The pages could not be built:\n"
            + "\n".join(wrong)
            + f"\nAll that was said is in {log}."
        )
    return index


def _drawing(files: dict[str, bytes], folder: Path) -> dict[str, bytes]:
    """The library that draws charts, where some page has one: path in the staging folder -> content. It takes seconds to make,
    so it is kept in `folder`."""
    if not any(
        pages.EXPLORABLE.encode() in content
        for name, content in files.items()
        if name.endswith((".ipynb", ".md"))
    ):
        return {}
    import vl_convert

    from mia_book.evidence import figures

    version = figures.VEGA_LITE_VERSION
    kept = folder / f"vega-lite-{version}-{vl_convert.__version__}.js"
    if not kept.is_file():
        code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
        # Its names stay its own; those of a script are otherwise everybody's.
        licence = (
            "Vega, Vega-Lite and Vega-Embed: copyright University of Washington Interactive Data Lab, BSD 3-Clause "
            "licence, https://github.com/vega"
        )
        store.write(kept, f"/* {licence} */\n(() => {{{code}\n}})();\n".encode())
    return {"book/_static/vega.js": kept.read_bytes()}


def sphinx(staged: Path, log: Path, root: Path, *options: str) -> tuple[int, list[str]]:
    """Let Jupyter Book make HTML of a staging folder, in `_build/html` of it, in a process of its own, with the library of
    `root` and options of `jupyter-book build`; returns the exit code and the lines that it wrote to `log`."""
    path = os.pathsep.join(
        filter(None, [str(runner.packages_of(root)[0].parent), os.environ.get("PYTHONPATH")])
    )
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", str(staged), *options]
    with open(log, "wb") as out:
        process = subprocess.run(
            command, cwd=log.parent, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    said = outputs.without_colours(log.read_text(encoding="utf-8", errors="replace"))
    # where Sphinx may have gone on without a style, or with half a page
    if (full := os.strerror(errno.ENOSPC)) in said:
        raise OSError(errno.ENOSPC, full, str(staged))
    return process.returncode, said.splitlines()
