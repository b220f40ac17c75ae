"""Builds the book: executed notebooks and prose go to a staging folder, and Jupyter Book makes HTML of it.

The staging folder `_build/book` mirrors the repository, so that a page's launch and download links name files that
exist there. Nothing in it is edited by hand, and no output flows back into the repository.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path

from mia_lib.errors import MiaError
from mia_lib.evidence import pictures
from mia_lib.progress import Bars, duration
from mia_lib.publish import chart_text, play_page, primer_page, prose, runner, scorecard, sync, templates
from mia_lib.publish.outputs import AUDIT, CLAIMS, VEGA_LITE, displayed_outputs, for_readers, plain
from mia_lib.publish.parameters import PUBLISHED, find_root, validate

MARKER = "<!-- generated -->"
FIGURES = prose.FIGURES
EXTRA = "book/_extra/"  # goes beside the pages as it is
CARD = f"{EXTRA}_static/card.png"
VERSION = "5.20"  # of Vega-Lite, which draws explorable figures: JupyterLab, too, draws the fifth
EXPLORABLE = "mia-explore"  # class of what holds a chart, in `templates/explorable.html`
SHOWN_AGAIN = re.compile(r"^(:{3,})\{explorable\} *(\S+) *\n((?::[a-z]+:[^\n]*\n)*)(.*?)^\1 *$", re.MULTILINE | re.DOTALL)
STAGED = ("book", "data/papers", "CHANGELOG.md")
NO_PAGES = "book/slides/"
CLAIM = re.compile(r"^\| \*\*([A-Z]\d+[a-z]?)\*\* ", re.MULTILINE)  # begins a row of a chapter's table of claims
MEMORY_FOR_TWO = 5e9  # bytes that have to be free
INDEX = "book/_build/html/index.html"
VERSIONS = ("mia_lib", "torch", "numpy", "jupyter-book", "sphinx", "sphinx-book-theme")
NOTHING_CHANGED = "book: nothing changed, used again"
# The package has no __main__. Of a page's thousands of nodes few are ever garbage while it is made; and without the grammar of
# web addresses, which nothing here asks for, jsonschema is imported in a tenth of the time.
JUPYTER_BOOK = ("import gc, sys; gc.set_threshold(50_000); sys.modules['rfc3987_syntax'] = None; "
                "from jupyter_book.cli.main import main; main()")


class BookFailed(RuntimeError):
    """Jupyter Book found something wrong in the pages."""


def build(preset: str = PUBLISHED, force: bool = False, *, root: Path | None = None, folder: Path | None = None) -> Path:
    """Run every notebook of the table of contents and build the HTML.

    Args:
        preset: name of the preset of every notebook.
        force: run and build everything again.
        root: folder of the book.
        folder: where everything that is made goes, None for `_build` in `root`.

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
    names = _in_toc(root)
    values = {name: validate(name, {}, preset, root) for name in names}
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock", timeout=0):
            executed, todo, bars = {}, [], Bars()
            index, noted = folder / INDEX, folder / "book.seen"
            again = not force and index.is_file() and noted.is_file()
            if again and noted.read_text() == json.dumps(_seen(root, folder, preset)):
                bars.say(NOTHING_CHANGED)
                return index
            for name, code in _keys(values, root, folder).items():
                executed[name] = folder / "executed" / f"{name}-{code}.ipynb"
                record = None if force else runner.run_record(executed[name])
                if record and (record["preset"], record["key"]) == (preset, code):
                    bars.say(f"{name}: nothing changed since {record['date'][:10]}, used again")
                else:
                    todo.append((name, values[name], executed[name]))
            todo.reverse()  # the last chapters take longest, and none of them is to be left for the end alone
            for record in runner.execute_all(todo, preset=preset, root=root, bars=bars, at_once=_at_once() if todo else 1):
                bars.say(f"{record['notebook']}: done in {duration(record['seconds'])}, {record['peak_memory_mb']} MB at most")
            noted.unlink(missing_ok=True)
            before = _seen(root, folder, preset)
            made = {name: runner.with_current_text(json.loads(path.read_text(encoding="utf-8")), name, root)
                    for name, path in executed.items()}
            index = _render(_pages(root, made), root, folder, force, bars)
            if _seen(root, folder, preset)["sources"] == before["sources"]:  # nobody edited while it was built
                noted.write_text(json.dumps(_seen(root, folder, preset)))
            return index
    except Timeout:
        raise MiaError(f"Another `mia build` is at work in {folder}. Wait for it to end, or stop it.") from None


def _at_once() -> int:
    """Notebooks to run side by side: two, for each computes now and then what only one processor can take part in; one where
    they would share a card, or there is no memory for two."""
    import psutil

    from mia_lib.training import devices
    from mia_lib.training.backends.pool import default_workers

    alone = devices.pick(None).type != "cpu" or default_workers() == 1
    return 1 if alone or psutil.virtual_memory().available < MEMORY_FOR_TWO else 2


def _in_toc(root: Path) -> list[str]:
    """Names of the notebooks in `_toc.yml`, in its order."""
    import yaml

    found = []

    def walk(node):
        if isinstance(node, dict):
            file = str(node.get("file", ""))
            if file.startswith("notebooks/"):
                found.append(file.removeprefix("notebooks/").removesuffix(".ipynb").removesuffix(".py"))
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8")))
    return found


def ran(preset: str, root: Path, folder: Path) -> dict[str, dict]:
    """The notebooks of the table of contents as `build` last ran them at a preset, with their text as it is now: name -> JSON.

    Args:
        preset: of all notebooks.
        root: folder of the book.
        folder: where the book was built.

    Raises:
        MiaError: one was not run, or not by the code that is there now.
    """
    names = _in_toc(root)
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, code in _keys({name: validate(name, {}, preset, root) for name in names}, root, folder).items():
        path = folder / "executed" / f"{name}-{code}.ipynb"
        if runner.run_record(path) is None:
            raise MiaError(f"{name} was not run at preset {preset!r} by the code that is there now: run "
                           f"`mia build --preset {preset}` first, or `make slides`, which does both.")
        found[name] = runner.with_current_text(json.loads(path.read_text(encoding="utf-8")), name, root)
    return found


def _keys(values: dict[str, dict], root: Path, folder: Path) -> dict[str, str]:
    """`runner.key` of each notebook, without reading the library where no file that bears on one was touched."""
    noted = folder / "keys.json"
    seen = {"values": values, "versions": runner.versions(*VERSIONS), "files": _states(
        *_code(root), *(root / part for part in ("data/papers", "data/embedded", "data/published", "notebooks")))}
    seen = hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()
    try:
        before = json.loads(noted.read_text(encoding="utf-8"))
        if before["seen"] == seen:
            return before["keys"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    keys = {name: runner.key(name, given, root) for name, given in values.items()}
    noted.write_text(json.dumps({"seen": seen, "keys": keys}))
    return keys


def _code(root: Path) -> list[Path]:
    """Files and folders of the library, and of modules that notebooks may import."""
    beside = [path for folder in runner.beside(root) for path in [*folder.glob("*.py"), *folder.glob("*/__init__.py")]]
    return [runner.library_of(root), *(path.parent if path.name == "__init__.py" else path for path in beside)]


def _states(*tops: Path) -> str:
    """Hash of the names, sizes and times of change of files and of all in folders: reading them takes many times as long."""
    files = [path for top in tops for path in [top, *top.rglob("*")] if path.suffix != ".pyc" and path.is_file()]
    found = [(str(path), (state := path.stat()).st_size, state.st_mtime_ns) for path in sorted(files)]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def _seen(root: Path, folder: Path, preset: str) -> dict:
    """What says that nothing changed: the states of all that a book is made from, and of what was made."""
    sources = _states(*(root / part for part in (*STAGED, "data", "notebooks", "_toc.yml", "_config.yml")), *_code(root))
    return {"preset": preset, "versions": runner.versions(*VERSIONS), "sources": sources,
            "made": _states(folder / "executed", folder / "book")}


def _pages(root: Path, executed: dict[str, dict]) -> dict[str, bytes]:
    """Everything that belongs into the staging folder: path in it -> content."""
    import yaml

    files = {}
    for part in STAGED:
        top = root / part
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            name = path.relative_to(root)
            if name.as_posix().startswith(NO_PAGES):
                continue
            if path.is_file() and not any(p.startswith(".") or p == "__pycache__" for p in name.parts):
                files[name.as_posix()] = path.read_bytes()
    library = runner.library_of(root)  # the reference pages are made from it, so a change must reach Sphinx
    files |= {f"mia_lib/{p.relative_to(library).as_posix()}": p.read_bytes() for p in library.rglob("*.py")}
    files["_toc.yml"] = (root / "_toc.yml").read_bytes()
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    config["execute"] = {**config.get("execute", {}), "execute_notebooks": "off"}
    files["_config.yml"] = yaml.safe_dump(config, sort_keys=False, allow_unicode=True).encode()

    claims, charts = [], {}
    runs_of = {name: prose.run_of(notebook, root) for name, notebook in executed.items()}
    for name, notebook in executed.items():
        notebook = prose.resolve_roles(notebook, runs_of[name])
        claims += scorecard.of_notebook(notebook)
        files |= collect_figures(notebook)
        files |= {f"{EXTRA}audits/{file}": text.encode() for file, text in collect_audits(notebook).items()}
        charts |= collect_charts(notebook)
        files[f"notebooks/{name}.ipynb"] = (json.dumps(page(notebook), indent=1, sort_keys=True) + "\n").encode()
    files[sync.FINDINGS] = sync.findings(runs_of, claims)
    generated = {"book/status.md": lambda: status([n["metadata"]["mia"] for n in executed.values()]),
                 "book/play.md": lambda: play_page.game(executed.values())}
    if "book/scorecard.md" in files:
        judged = scorecard.rows(claims)
        generated["book/scorecard.md"] = lambda: scorecard.page(judged)
        files[scorecard.STAGED] = (json.dumps(judged, indent=1) + "\n").encode()
    landing = files.get(f"{yaml.safe_load(files['_toc.yml'])['root']}.md", b"").decode()
    first = re.search(r"_figures/([\w-]+)\.png|\{explorable\} *([\w-]+)", landing)
    stands = f"{FIGURES}{first[1] or first[2]}.png" if first else ""
    if stands in files:  # the picture of the landing page stands for the book elsewhere, too
        files[CARD] = pictures.card(files[stands], config["title"])
    for path, text in generated.items():
        if path in files:
            written = files[path].decode()
            if MARKER not in written:
                raise MiaError(f"{path} has no line {MARKER}. Put it where the generated part belongs.")
            files[path] = written.replace(MARKER, text(), 1).encode()
    if primer_page.PAGE in files:
        made = primer_page.notebook()
        files |= collect_figures(made)
        charts |= collect_charts(made)
        runs_of[primer_page.NAME] = prose.run_of(made, root)
    for path in [path for path in files if path.startswith("book/") and path.endswith(".md")]:
        files[path] = shown_again(prose.prose(files[path].decode(), path, runs=runs_of), path, charts).encode()
    return files


def collect_figures(notebook: dict) -> dict[str, bytes]:
    """The named figures of an executed notebook: path in the staging folder -> PNG."""
    return {f"{FIGURES}{file}": png for file, png in displayed_outputs(notebook)[1].items()}


def collect_audits(notebook: dict) -> dict[str, str]:
    """The reports of audits in an executed notebook, each in a folder of its own as `audit.Report.save` writes it: a page that
    needs nothing else, and its numbers. Path -> content."""
    return {f"{report['name']}/{file}": text for cell in notebook["cells"] for output in cell.get("outputs", [])
            if (report := output.get("data", {}).get(AUDIT)) for file, text in report["files"].items()}


def _linked(output: dict, folder: str) -> dict:
    """An output with a report as a link to its page, from the notebook's page; the report's folder lies in another."""
    report = output.get("data", {}).get(AUDIT)
    if not report:
        return output
    page = next(file for file in report["files"] if file.endswith(".html"))
    text = (f'<a href="{folder}{report["name"]}/{page}">The whole report on {escape(report["title"])}</a>, a page of its own '
            "that opens offline.")
    return {**output, "data": {"text/markdown": text, "text/plain": report["title"]}}


def collect_charts(notebook: dict) -> dict[str, tuple[dict, str]]:
    """The explorable figures of an executed notebook: name -> specification and alternative text."""
    found = {}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            figure, chart = output.get("metadata", {}).get("mia"), output.get("data", {}).get(VEGA_LITE)
            if figure and chart:
                found[figure["name"]] = chart, figure["alt"]
    return found


def shown_again(text: str, where: str, charts: dict[str, tuple[dict, str]]) -> str:
    """A page of prose with explorable figures of chapters, each where it names one:

        :::{explorable} bayes-idea
        :name: a label of its own
        :instructions: in place of the chapter's
        A caption, or nothing.
        :::

    Args:
        text: MyST Markdown.
        where: the page, for errors.
        charts: from `collect_charts`, of all chapters.

    Raises:
        MiaError: no chapter shows such a figure, or it is given no label.
    """
    def again(found: re.Match) -> str:
        name, options = found[2], dict(re.findall(r"^:([a-z]+): *(.*)$", found[3], re.MULTILINE))
        if name not in charts or not options.get("name"):
            raise MiaError(f"{where}: {{explorable}} {name} with {options} cannot be shown. It needs a :name: of its own, and "
                           f"the figures that readers can move are {', '.join(charts) or 'none, in this run'}.")
        chart, alt = charts[name]
        if "instructions" in options:
            chart = {**chart, "usermeta": {**chart["usermeta"], "instructions": options["instructions"]}}
        said = json.dumps(alt, ensure_ascii=False)
        return (f":::{{figure}} /{FIGURES}{name}.png\n:name: {options['name']}\n:alt: {said}\n:width: 100%\n\n"
                f"{found[4]}:::\n\n{_holder(chart, options['name'])}")

    return SHOWN_AGAIN.sub(again, text)


def page(notebook: dict, explorable: bool = True, audits: str = "../audits/", again: str | None = None) -> dict:
    """An executed notebook as the book shows it: captions, no bookkeeping, provenance at the end.

    Args:
        notebook: as JSON, with the record of the run in its metadata under "mia".
        explorable: keep the charts of explorable figures, which need a script; without them their pictures stand alone.
        audits: where what `collect_audits` finds lies, seen from this page.
        again: the command that repeats the run; that of its preset when None.

    Returns:
        A new notebook, as JSON.
    """
    notebook = copy.deepcopy(notebook)
    record = notebook["metadata"].pop("mia")
    cells = []
    for cell in notebook["cells"]:
        if runner.INJECTED in cell["metadata"].get("tags", []):
            cell["metadata"]["tags"].append("hide-input")
        for output in cell.get("outputs", []):
            if CLAIMS in output.get("data", {}):
                output["data"]["text/markdown"] = _with_anchors("".join(output["data"]["text/markdown"]))
        if "outputs" in cell:
            cell["outputs"] = [_linked(output, audits) for output in cell["outputs"]]
        for part in _captioned(cell):
            cells.append(part)
            cells += _charts(part, explorable)
    cells.append({"cell_type": "markdown", "id": "provenance", "metadata": {}, "source": provenance(record, again)})
    notebook["cells"] = cells
    return notebook


def _with_anchors(table: str) -> str:
    """A chapter's table of claims, in Markdown, whose rows can be pointed at."""
    return CLAIM.sub(r'| <span id="claim-\1"></span>**\1** ', table)


def _charts(cell: dict, explorable: bool) -> list[dict]:
    """Take the chart of an explorable figure out of its cell, into one where `explore.js` finds it, with what it says.

    It is text in the page, for a page that is opened from a disk may ask for no other file. Where it is not to be moved
    (`explorable`), its words stand alone.
    """
    figure = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name")
    charts = [output["data"].pop(VEGA_LITE) for output in cell.get("outputs", [])
              if VEGA_LITE in output.get("data", {})]
    if charts and figure and not explorable:
        shown = cell["metadata"]["mystnb"]["figure"]
        shown["caption"] = shown["caption"].replace("In the chart,", "In the book's chart,")
    cells = []
    for chart in charts if figure else []:
        source = _holder(chart, figure, explorable)
        cells += [{"cell_type": "markdown", "id": f"{figure}-chart"[:64], "metadata": {}, "source": source}] if source else []
    return cells


def _holder(chart: dict, figure: str, explorable: bool = True) -> str:
    """A chart beside the figure whose picture it replaces, and what it says in words, in MyST Markdown."""
    what = "this chart" if explorable else "the book's chart, with this run's numbers,"
    parts = [templates.render("explorable.html", chart=chart, figure=figure) if explorable else "",
             chart_text.table(chart, VERSION, what)]
    return "```{raw} html\n" + "\n".join(filter(None, parts)) + "\n```" if any(parts) else ""


def _captioned(cell: dict) -> list[dict]:
    """A cell with its figures' captions where MyST-NB looks for them, which is one a cell: more figures, more cells."""
    if "outputs" not in cell:
        return [cell]
    groups = [[]]
    for output in for_readers(cell["outputs"]):
        figure = output.get("metadata", {}).get("mia")
        # MyST-NB puts a cell's caption under each of its outputs, so a figure shares its cell with nothing displayed.
        if figure or (groups[-1] and groups[-1][-1].get("metadata", {}).get("mia")):
            groups.append([])
        groups[-1].append(output)
    if len(groups) > 1 and all(output["output_type"] == "stream" for output in groups[0]):
        groups[:2] = [groups[0] + groups[1]]
    cells = []
    for number, group in enumerate(groups):
        part = cell if not number else {
            "cell_type": "code", "execution_count": None, "id": f"{cell['id']}-{number}", "source": "# continued",
            "metadata": {"tags": ["remove-input"]}}
        part["outputs"] = group
        figure = next((o["metadata"].pop("mia") for o in group if o.get("metadata", {}).get("mia")), None)
        if figure:
            image = {key: figure[key] for key in ("alt", "width") if figure.get(key)}
            part["metadata"]["mystnb"] = {
                **part["metadata"].get("mystnb", {}), "image": image,
                "figure": {"name": figure["name"], "caption": figure["caption"]}}
        cells.append(part)
    return cells


def rerun_command(record: dict, changes: Mapping[str, tuple] | None = None) -> str:
    """The command that repeats a run.

    Args:
        changes: parameter -> (value in the run, value in its preset).
    """
    words = ["mia", "run", record["notebook"]]
    if record["preset"] != PUBLISHED:
        words += ["--preset", record["preset"]]
    for name, (value, _) in (changes or {}).items():
        words += ["-p", name, str(value)]
    return shlex.join(words)


def provenance(record: dict, again: str | None = None) -> str:
    """The footer of a page in MyST Markdown: how its numbers came about, and how to make them again."""
    different = ", ".join(f"`{k} = {v!r}`" for k, v in record["changed"].items()) or "none"
    rows = {
        "Preset": record["preset"],
        "Parameters unlike the defaults": different.replace("|", "\\|"),
        "Run": f"{record['date'][:16].replace('T', ' ')} UTC, {duration(record['seconds'])}, "
               f"{record['peak_memory_mb']} MB at most",
        "Device": record["device"],
        "Versions": _versions(record),
        "Hash of code, data and parameters": f"`{record['key']}`",
        "Again, or with other parameters": f"`{again or rerun_command(record)} -p NAME VALUE`",
    }
    table = "\n".join(f"| {left} | {right} |" for left, right in rows.items())
    title = "```{admonition} How the numbers on this page came about"
    return f"{title}\n:class: note dropdown\n\n| | |\n| --- | --- |\n{table}\n```"


def _versions(record: dict) -> str:
    return ", ".join(f"{name} {version}" for name, version in record["versions"].items())


def status(records: list[dict]) -> str:
    """The table of all runs in MyST Markdown."""
    lines = [":::{table}", ":class: mia-status", "",
             "| notebook | preset | date | time | peak memory | device | versions |", "| --- " * 7 + "|"]
    for r in records:
        cells = (f"{{doc}}`/notebooks/{r['notebook']}`", r["preset"], r["date"][:10], duration(r["seconds"]),
                 f"{r['peak_memory_mb']} MB", r["device"], _versions(r))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ":::"])


def stage(files: dict[str, bytes], folder: Path) -> list[str]:
    """Make `folder` hold exactly `files`, touching only what differs, so that Sphinx stays incremental.

    Args:
        files: path in the folder -> content.
        folder: the staging folder; Jupyter Book's own `_build` in it is left alone.

    Returns:
        Paths that were written or deleted.
    """
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


def _drawing(files: dict[str, bytes], folder: Path) -> dict[str, bytes]:
    """The library that draws charts, where some page has one: path in the staging folder -> content.

    It takes seconds to make, so it is kept in `folder`.
    """
    if not any(EXPLORABLE.encode() in content for name, content in files.items() if name.endswith((".ipynb", ".md"))):
        return {}
    import vl_convert

    kept = folder / f"vega-lite-{VERSION}-{vl_convert.__version__}.js"
    if not kept.is_file():
        code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VERSION)
        # Its names stay its own; those of a script are otherwise everybody's.
        licence = ("Vega, Vega-Lite and Vega-Embed: copyright University of Washington Interactive Data Lab, BSD 3-Clause "
                   "licence, https://github.com/vega")
        runner.write_whole(kept, f"/* {licence} */\n(() => {{{code}\n}})();\n")
    return {"book/_static/vega.js": kept.read_bytes()}


def _render(files: dict[str, bytes], root: Path, folder: Path, force: bool, bars: Bars) -> Path:
    files = files | _drawing(files, folder)
    staged, stamp, log = folder / "book", folder / "book.stamp", folder / "book.log"
    index = folder / INDEX
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(name.encode() + b"\0" + hashlib.sha256(files[name]).digest())
    total.update(json.dumps(runner.versions(*VERSIONS)).encode())
    wanted = total.hexdigest()
    built = stamp.read_text() if stamp.is_file() else ""
    touched = stage(files, staged)
    if built == wanted and not touched and not force and index.is_file():
        bars.say(NOTHING_CHANGED)
        return index
    if not built or force or any(name.startswith(("book/_static/", "_config", "_toc")) for name in touched):
        # A page that Sphinx has read is not read again, its warnings would not be heard a second time, and static files
        # are copied only when some page changed.
        shutil.rmtree(staged / "_build", ignore_errors=True)
    stamp.unlink(missing_ok=True)
    bars.say("book: building the pages")
    code, said = sphinx(staged, log, root, "-W", "-n", "--keep-going")
    if code or not index.is_file():
        lines = [line for line in said if "WARNING" in line or "ERROR" in line] or said[-20:]
        raise BookFailed("The pages could not be built:\n" + "\n".join(lines) + f"\nAll that was said is in {log}.")
    stamp.write_text(wanted)
    return index


def sphinx(staged: Path, log: Path, root: Path, *options: str) -> tuple[int, list[str]]:
    """Let Jupyter Book make HTML of a staging folder, in a process of its own.

    Args:
        staged: the folder; the pages go to `_build/html` in it.
        log: file for what is said.
        root: folder of the book, whose library the pages are made from.
        options: of `jupyter-book build`.

    Returns:
        The exit code, and the lines that were said.
    """
    path = os.pathsep.join(filter(None, [str(runner.library_of(root).parent), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", str(staged), *options]
    with open(log, "wb") as out:
        code = subprocess.run(command, cwd=log.parent, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out).returncode
    return code, plain(log.read_text(encoding="utf-8", errors="replace")).splitlines()
