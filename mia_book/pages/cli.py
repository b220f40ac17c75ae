"""The commands of the book: `mia build`, `slides`, `run`, `sweep`, `publish`, `verify`, `params`, `course`, `sync`, `doctor`,
`serve`."""

from __future__ import annotations

import os
from pathlib import Path

import typer
from typer.core import TyperCommand

from mia_book.course import cli as course
from mia_book.pages.parameters import PRESETS, PUBLISHED
from mia_lib import environment
from mia_lib.cli import CLUSTER, DEVICE, app, run_way, show_table
from mia_lib.errors import MiaError

app.add_typer(course.app, name="course")


class WithPairs(TyperCommand):
    """Lets `-p` take a name and a value, as Papermill's does; `-p name=value` is the same."""

    def parse_args(self, ctx, args):
        joined, rest = [], list(args)
        while rest:
            word = rest.pop(0)
            joined.append(word)
            if word in ("-p", "--parameter") and rest:
                name = rest.pop(0)
                joined.append(name if "=" in name or not rest else f"{name}={rest.pop(0)}")
        return super().parse_args(ctx, joined)


PRESET = typer.Option(
    PUBLISHED, help="; ".join(f"{name}: {what}" for name, what in PRESETS.items()) + "."
)


def _limit_measuring(yes: bool) -> None:
    """Lets no measurement of a run take longer than five minutes unless that was asked for."""
    if not yes:
        os.environ.setdefault("MIA_MOST_SECONDS", "300")
    environment.most_seconds()


YES = typer.Option(
    False,
    "--yes",
    callback=_limit_measuring,
    help="Measure also what takes longer than five minutes.",
)
PARAMETER = typer.Option([], "-p", "--parameter", metavar="NAME VALUE", help="A parameter; repeat.")
NOTEBOOK = typer.Argument(help="A notebook in notebooks/, without its ending.")


@app.command()
def build(
    preset: str = PRESET,
    force: bool = typer.Option(False, help="Run and build everything again."),
    device: str | None = DEVICE,
    cluster: str | None = CLUSTER,
) -> None:
    """Run every notebook and build the book."""
    from mia_book.pages.build import build as make

    typer.echo(make(preset, force))


@app.command()
def slides(
    preset: str = PRESET,
    quizzes: bool = typer.Option(
        False, "--quizzes", help="Only the quizzes and their answers, which need no built book."
    ),
) -> None:
    """Make a deck of slides for each lesson, and the quizzes to print, of the book as it was last built."""
    from mia_book.pages import slides as decks

    typer.echo(decks.quizzes() if quizzes else decks.build(preset))


@app.command(cls=WithPairs)
def run(
    name: str = NOTEBOOK,
    parameter: list[str] = PARAMETER,
    preset: str = PRESET,
    output: Path | None = typer.Option(
        None,
        help="Folder of the result, else runs/NAME-HASH. An earlier run there gets its hash into its name.",
    ),
    yes: bool = YES,
    device: str | None = DEVICE,
    cluster: str | None = CLUSTER,
) -> None:
    """Run one notebook with new parameters."""
    from mia_book.pages import runner

    notebook = runner.run(name, _pairs(name, parameter), preset, output)

    from mia_book.pages import run_page  # slow to load, and a wrong parameter is refused before

    typer.echo(run_page.write(notebook))


def _pairs(name: str, parameter: list[str]) -> dict[str, str]:
    values = {}
    for pair in parameter:
        key, equals, value = pair.partition("=")
        if not equals:
            raise MiaError(
                f"-p {pair} has no value. Write `-p {pair} VALUE`; `mia params {name}` lists what it takes."
            )
        if key in values:
            raise MiaError(f"-p {key} is given twice, as {values[key]} and {value}. Give it once.")
        values[key] = value
    return values


@app.command(cls=WithPairs)
def sweep(
    name: str = NOTEBOOK,
    parameter: list[str] = typer.Option(
        [],
        "-p",
        "--parameter",
        metavar="NAME VALUES",
        help="A parameter and its values: 1,2,3, or with bars between values that hold commas, '400,1000|400,2000', "
        "as lists do. Repeat for a grid.",
    ),
    preset: str = PRESET,
    output: Path | None = typer.Option(None, help="Folder of the page, else runs/NAME-sweep-HASH."),
    yes: bool = YES,
    device: str | None = DEVICE,
    cluster: str | None = CLUSTER,
) -> None:
    """Run one notebook over a grid of parameters: one page, one table of all results."""
    from mia_book.pages import sweep as grids

    typer.echo(grids.run(name, _pairs(name, parameter), preset, output))


@app.command(cls=WithPairs)
def publish(
    ctx: typer.Context,
    name: str | None = typer.Argument(None, help="A measurement; `mia publish --list` names them."),
    models: int = typer.Option(
        16, min=1, help="How many models there are to be; those that are there stay."
    ),
    index: str | None = typer.Option(
        None, metavar="FIRST:STOP", help="Or these alone, as 16:32: a job of an array."
    ),
    parameter: list[str] = PARAMETER,
    listed: bool = typer.Option(
        False, "--list", help="List what is published, what is missing and what it takes."
    ),
    next_: bool = typer.Option(
        False,
        "--next",
        help="Measure what fits into --minutes, in the order of data/published/queue.yaml.",
    ),
    minutes: float = typer.Option(9.0, min=0.01, help="What --next may take."),
    device: str | None = DEVICE,
    cluster: str | None = CLUSTER,
) -> None:
    """Measure what takes long once, and keep it in data/published/ for every reader."""
    run_way(
        ctx,
        {
            "listed": _list_published,
            "next_": _publish_next,
            "index": _publish_index,
            "": _publish_models,
        },
    )


def _list_published() -> None:
    from mia_book.publishing import queue

    frame = queue.table()
    frame["measurement"] += frame.pop("parameters").map(lambda text: text and f"\n{text}")
    longest = 27  # letters of a name
    title = "Published, and still to be measured"
    show_table(frame, frame.itertuples(index=False), title, min_width=longest)


def _publish_next(minutes: float) -> None:
    from mia_book.publishing import queue

    failed = False
    for line in queue.next_of_queue(minutes):
        typer.echo(line)
        failed |= line.startswith(queue.FAILED)
    if failed:
        raise typer.Exit(1)


def _publish_models(name: str | None, models: int, parameter: list[str]) -> None:
    from mia_book.publishing import queue

    _publish(name, range(queue.check_models(models)), parameter)


def _publish_index(name: str | None, index: str, parameter: list[str]) -> None:
    from mia_book.publishing import queue

    _publish(name, queue.numbers(index), parameter)


def _publish(name: str | None, models: range, parameter: list[str]) -> None:
    """Publish these models, by number, of the measurement `name`."""
    from mia_book.publishing import queue

    if name is None:
        raise MiaError(
            "Say what to publish: `mia publish NAME --models 16`; `mia publish --list` says what there is."
        )
    written = queue.find(name).publish(models, queue.read_values(_pairs(name, parameter)))
    typer.echo("\n".join(map(str, written)) or f"{name}: all {len(models)} models are published")


@app.command(cls=WithPairs)
def verify(
    name: str = typer.Argument(help="A published measurement, such as bank/cifar10-small."),
    models: int = typer.Option(2, min=1, help="How many of its models, drawn at random."),
    parameter: list[str] = typer.Option(
        [],
        "-p",
        "--parameter",
        metavar="NAME VALUE",
        help="What tells which is meant, where several are published.",
    ),
    device: str | None = DEVICE,
) -> None:
    """Measure some models of a published bank again, from nothing, and compare."""
    from mia_book.publishing import queue

    good, report = queue.verify(name, queue.read_values(_pairs(name, parameter)), models)
    typer.echo(report)
    if not good:
        raise typer.Exit(1)


@app.command()
def params(name: str = NOTEBOOK, preset: str = PRESET) -> None:
    """List the parameters of a notebook."""
    from mia_book.pages.parameters import as_typed, parameters, where_own

    declarations = parameters(name, preset)
    own = where_own(declarations)
    rows = [
        (
            p.name,
            f"{p.meaning}\n{p.type} = {as_typed(p.default)}" + f"  [{p.allowed}]" * bool(p.allowed),
        )
        for p in declarations
    ]
    show_table(
        ("parameter", "meaning, type, value [what is allowed]"),
        rows,
        f"{name}, preset {preset}",
        f"{own[0].upper()}{own[1:]}",
        no_wrap=True,
    )  # names are typed, so they stay whole


@app.command()
def chapter(
    name: str = typer.Argument(help="Its name, a lower-case word."),
    title: str = typer.Argument(help="Its heading."),
) -> None:
    """Begin a new chapter: a folder in mia_book/chapters and a notebook that runs, to be changed into what is meant."""
    from mia_book import folders
    from mia_book.pages.parameters import find_root

    for path in folders.begin(name, title, find_root()):
        typer.echo(path)
    typer.echo(
        f"Add `- file: notebooks/{name}` to _toc.yml, run `mia sync`, and `mia run {name} --preset smoke`."
    )


@app.command()
def sync(
    check: bool = typer.Option(False, help="Write nothing; fail when a pair is out of step."),
) -> None:
    """Make each notebooks/NAME.ipynb from NAME.py, without outputs; what README.md says was found, from the last built book;
    what book/measured.md says of what was measured; and what is derived from the code, definitions and a schema."""
    from mia_book.pages.sync import sync as write

    stale = write(check)
    for path in stale:
        typer.echo(f"{'out of step' if check else 'written'}: {path}")
    if check and stale:
        typer.echo("Run `mia sync`.", err=True)
        raise typer.Exit(1)


@app.command()  # in the place of the library's
def doctor(
    device: str | None = typer.Option(
        None, help="Compare a graphics card with the processor instead: cuda or cuda:1."
    ),
) -> None:
    """Look whether this machine has what the book needs; with --device, whether its card computes what the processor does."""
    from mia_book.pages import doctor as health
    from mia_lib.doctor import report

    report(health.examine() if device is None else health.compare_probes(device))


@app.command()
def serve(port: int = typer.Option(8000, min=0, max=65535, help="0 takes any free one.")) -> None:
    """Show the built book in a browser on this machine."""
    import functools
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    from mia_book.pages.parameters import find_root

    class Handler(SimpleHTTPRequestHandler):
        def translate_path(self, path):
            # no file has it, and to ask for it is an error
            asked = super().translate_path(path).replace("\0", "-")
            # a link may lead out of the book
            inside = Path(os.path.realpath(asked)).is_relative_to(folder.resolve())
            return asked if inside else f"{folder}{os.sep}-"

    folder = find_root() / "_build" / "book" / "_build" / "html"
    if not (folder / "index.html").is_file():
        raise MiaError(f"There is no book in {folder} yet. Run `mia build` or `make book` first.")
    try:
        server = ThreadingHTTPServer(
            ("127.0.0.1", port), functools.partial(Handler, directory=folder)
        )
    except OSError as error:
        raise MiaError(
            f"port = {port} cannot be used ({error.strerror}). Give another, or 0 for any."
        ) from error
    typer.echo(f"http://127.0.0.1:{server.server_port}/  (Ctrl-C ends it)")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()
