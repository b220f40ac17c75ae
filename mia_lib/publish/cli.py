"""The command line: `mia build`, `slides`, `run`, `sweep`, `publish`, `verify`, `audit`, `params`, `data`,
`course`, `sync`, `doctor`, `serve`."""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - said plainly, before any import that an older Python cannot read
    raise SystemExit(
        f"mia needs Python 3.11 or newer, and this is Python {sys.version_info[0]}.{sys.version_info[1]}."
    )

import errno
import inspect
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import typer
from typer.core import TyperCommand, TyperGroup

from mia_lib import environment
from mia_lib.audit.options import AuditOptions
from mia_lib.course import cli as course
from mia_lib.errors import FAILURES, MiaError, is_full
from mia_lib.publish.parameters import PRESETS, PUBLISHED

STOPPED = "Stopped. Finished models are kept in the store; the same command goes on from there."
FULL = (
    "The disk is full: {}. Free some space, where results go or in the folder for temporary files (TMPDIR), and give the "
    "same command again. What was finished is kept."
)
GONE = (
    "A disk cannot be used: {}. See to it that it is there and can be read and written, or name another folder, and give "
    "the same command again. What was finished is kept."
)
UNUSABLE = (
    errno.EACCES,
    errno.EIO,
    errno.ENODEV,
    errno.EROFS,
    errno.ESTALE,
)  # of a disk that is read-only, or was unplugged


def _check_here() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise MiaError(
            "The folder in which this was called is gone: go to another one (cd), and call it there."
        ) from None


class Mia(TyperGroup):
    """Turns what went wrong into one paragraph on standard error and an exit code."""

    def invoke(self, ctx):
        try:
            _check_here()
            return super().invoke(ctx)
        except MiaError as error:
            code, text = 2, str(error)
        except KeyboardInterrupt:
            code, text = 130, STOPPED
        except OSError as error:
            if not is_full(error) and error.errno not in UNUSABLE:
                raise
            code, text = 2, (FULL if is_full(error) else GONE).format(error)
        except ModuleNotFoundError as error:
            code, text = (
                2,
                (
                    f"This needs {error.name}, which is not installed. The extra `book` brings what runs notebooks "
                    "and builds the book: pip install -c constraints.txt -e '.[book]' in a clone of the repository."
                ),
            )
        except RuntimeError as error:
            if type(error).__name__ not in FAILURES:
                raise
            code, text = 1, str(error)
        typer.echo(text, err=True)
        raise typer.Exit(code)


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


app = typer.Typer(
    cls=Mia,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Reproduce membership inference attacks: build the book, rerun its notebooks.",
)
data_app = typer.Typer(no_args_is_help=True, help="The data sets: where they are, how to get them.")
app.add_typer(data_app, name="data")
app.add_typer(course.app, name="course")

PRESET = typer.Option(
    PUBLISHED, help="; ".join(f"{name}: {what}" for name, what in PRESETS.items()) + "."
)


def _limit_measuring(yes: bool) -> None:
    """Lets no measurement of a run take longer than five minutes unless that was asked for."""
    if not yes:
        os.environ.setdefault("MIA_MOST_SECONDS", "300")
    environment.most_seconds()


def _use_device(device: str | None) -> None:
    """Says before any work what is wrong with the device, and with the number of workers."""
    if name := device or environment.device():
        if name != "cpu":  # of which nothing is to be said, and PyTorch takes seconds to import
            from mia_lib.training import devices

            devices.pick(device)
        os.environ["MIA_DEVICE"] = name
    environment.workers()


def _use_cluster(address: str | None) -> None:
    if address := address or environment.cluster():
        if not re.fullmatch(r"(\w+://)?\S+:\d+", address):
            raise MiaError(
                f"{address!r} is no address of a cluster: give the one that its scheduler prints when it starts, "
                "such as tcp://10.0.0.1:8786."
            )
        from mia_lib.training import pool

        pool.connect(address).close()  # says now what is wrong with it
        os.environ["MIA_CLUSTER"] = address


YES = typer.Option(
    False,
    "--yes",
    callback=_limit_measuring,
    help="Measure also what takes longer than five minutes.",
)
DEVICE = typer.Option(
    None,
    callback=_use_device,
    metavar="DEVICE",
    help="cpu, cuda or cuda:1, else a card where there is one.",
)
CLUSTER = typer.Option(
    None,
    callback=_use_cluster,
    metavar="ADDRESS",
    help="Train on the workers of a dask scheduler, such as tcp://10.0.0.1:8786.",
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
    from mia_lib.publish.build import build as make

    typer.echo(make(preset, force))


@app.command()
def slides(preset: str = PRESET) -> None:
    """Make a deck of slides for each lesson, and the quizzes to print, of the book as it was last built."""
    from mia_lib.publish import slides as decks

    typer.echo(decks.build(preset))


@app.command(cls=WithPairs)
def run(
    name: str = NOTEBOOK,
    parameter: list[str] = PARAMETER,
    preset: str = PRESET,
    output: Path | None = typer.Option(None, help="Folder of the result, else runs/NAME-HASH."),
    yes: bool = YES,
    device: str | None = DEVICE,
    cluster: str | None = CLUSTER,
) -> None:
    """Run one notebook with new parameters."""
    from mia_lib.publish import runner

    notebook = runner.run(name, _pairs(name, parameter), preset, output)

    from mia_lib.publish import run_page  # slow to load, and a wrong parameter is refused before

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
    from mia_lib.publish import sweep as grids

    typer.echo(grids.run(name, _pairs(name, parameter), preset, output))


def _run_way(ctx: typer.Context, ways: Mapping[str, Callable]):
    """Call the way into a command that was asked for, and return what it returns.

    Args:
        ctx: of the command, with a value for each parameter of each way.
        ways: name of a parameter of the command -> function that is called if it was given, the first that was; "" -> the
            function that is called otherwise. Functions take parameters of the command by name, or a pydantic model, whose
            fields are such parameters.

    Raises:
        MiaError: an option that was given and that the function does not take.
    """
    given = {
        name: value
        for name, value in ctx.params.items()
        if value is not None  # as where a callback has used it
        and ctx.get_parameter_source(name).name == "COMMANDLINE"
    }
    asked = next((name for name in ways if name in given), "")
    parameters = inspect.signature(ways[asked], eval_str=True).parameters
    arguments = {name: ctx.params[name] for name in parameters if name in ctx.params}
    used = {asked, *arguments}
    for name in parameters.keys() - arguments.keys():
        model = parameters[name].annotation
        fields = model.model_fields.keys() - arguments.keys()
        arguments[name] = model(**{field: given[field] for field in fields & given.keys()})
        used |= fields
    spelt = {
        one.name: max(one.opts, key=len) if one.opts[0].startswith("-") else one.name.upper()
        for one in ctx.command.params
    }
    if useless := [text for name, text in spelt.items() if name in given.keys() - used]:
        others = " or ".join(spelt[name] for name in ways if name)
        way = spelt.get(asked, f"{ctx.info_name} without {others}")
        raise MiaError(
            f"{way} makes no use of {', '.join(useless)}: leave {'them' if useless[1:] else 'it'} out."
        )
    return ways[asked](**arguments)


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
    _run_way(
        ctx,
        {
            "listed": _list_published,
            "next_": _publish_next,
            "index": _publish_index,
            "": _publish_models,
        },
    )


def _list_published() -> None:
    from mia_lib.publish import measured

    frame = measured.table()
    frame["measurement"] += frame.pop("parameters").map(lambda text: text and f"\n{text}")
    longest = 27  # letters of a name
    title = "Published, and still to be measured"
    _show(frame, frame.itertuples(index=False), title, min_width=longest)


def _publish_next(minutes: float) -> None:
    from mia_lib.publish import measured

    failed = False
    for line in measured.next_of_queue(minutes):
        typer.echo(line)
        failed |= line.startswith(measured.FAILED)
    if failed:
        raise typer.Exit(1)


def _publish_models(name: str | None, models: int, parameter: list[str]) -> None:
    from mia_lib.publish import measured

    _publish(name, range(measured.check_models(models)), parameter)


def _publish_index(name: str | None, index: str, parameter: list[str]) -> None:
    from mia_lib.publish import measured

    _publish(name, measured.numbers(index), parameter)


def _publish(name: str | None, models: range, parameter: list[str]) -> None:
    """Publish these models, by number, of the measurement `name`."""
    from mia_lib.publish import measured

    if name is None:
        raise MiaError(
            "Say what to publish: `mia publish NAME --models 16`; `mia publish --list` says what there is."
        )
    written = measured.find(name).publish(models, measured.read_values(_pairs(name, parameter)))
    typer.echo("\n".join(map(str, written)) or f"{name}: all {len(models)} models are published")


def _show(columns, rows, title: str | None = None, caption: str | None = None, **first) -> None:
    """Print a table, with settings of rich for its first column."""
    from rich import print as show
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, caption=caption)
    for place, column in enumerate(columns):
        table.add_column(
            Text(str(column)), **({"overflow": "fold"} | (first if place == 0 else {}))
        )
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    show(table)


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
    from mia_lib.publish import measured

    good, report = measured.verify(name, measured.read_values(_pairs(name, parameter)), models)
    typer.echo(report)
    if not good:
        raise typer.Exit(1)


AUDIT_CODES = (
    "Ends with 0 where nothing was found that --fail-on names (or it was not given), with 3 where something was, "
    "with 1 where nothing was but a step failed, which the same command tries again, with 2 where the audit was "
    "refused or cannot decide what --fail-on names."
)

AUDIT = {
    name: typer.Option(field.default, f"--{name}", help=field.description)
    for name, field in AuditOptions.model_fields.items()
}


@app.command(epilog=AUDIT_CODES)
def audit(
    ctx: typer.Context,
    model: str | None = typer.Argument(
        None,
        help="my_module:factory with --state, my_module:predict, or program.pt2 "
        "with --trust. All are code.",
    ),
    members: str | None = typer.Option(None, help="Records it was trained on: .npz with x and y."),
    non_members: str | None = typer.Option(None, help="Others of the same distribution."),
    public: str | None = typer.Option(None, help="Further ones, for attacks that learn from them."),
    state: str | None = typer.Option(None, help="Weights of the factory's network, safetensors."),
    trust: bool = typer.Option(
        False, "--trust", help="Read a program, which is code: its maker's, run in your name."
    ),
    recipe: str | None = typer.Option(
        None, help="How it was trained: YAML or JSON of TrainConfig's names."
    ),
    groups: str | None = typer.Option(
        None, help="Name of an array in both files, or a column of --scores: the groups."
    ),
    scores: str | None = typer.Option(
        None, help="In the place of a model: .csv or .npz, a row a record; see --score."
    ),
    canaries: str | None = typer.Option(
        None,
        help="Epsilon from one training run: .csv or .npz, a row a canary with "
        "its --score and, as --member, its coin.",
    ),
    score: str = typer.Option("score", help="Its column of scores, higher for members."),
    member: str = typer.Option("member", help="Its column that says who is a member, 1 or True."),
    outputs: str = AUDIT["outputs"],
    columns: str | None = AUDIT["columns"],
    scaling: str | None = AUDIT["scaling"],
    minutes: float = AUDIT["minutes"],
    references: int = AUDIT["references"],
    queries: int = AUDIT["queries"],
    without: list[str] = AUDIT["without"],
    deduplicate: bool = AUDIT["deduplicate"],
    fpr: list[float] = AUDIT["fpr"],
    delta: float = AUDIT["delta"],
    confidence: float = AUDIT["confidence"],
    name: str = AUDIT["name"],
    seed: int = AUDIT["seed"],
    fail_on: list[str] = typer.Option(
        [],
        help="leak, or a bound: auc=0.6, tpr=0.05 (at the highest --fpr), epsilon=1; "
        "repeat. What exceeds it ends the command with exit code 3.",
    ),
    output: Path = typer.Option(
        Path("audit"),
        "-o",
        "--output",
        help="A new folder for the page and its numbers, or that of an audit that was stopped.",
    ),
    plan: bool = typer.Option(False, "--plan", help="Say what would run, and stop."),
    test: bool = typer.Option(
        False, "--test", help="Test the audit itself on planted leaks, and without one."
    ),
    device: str | None = DEVICE,
    cluster: str | None = CLUSTER,
) -> None:
    """Audit a model of your own: all attacks that what you have permits, within a budget."""
    from mia_lib.audit import command

    text, code = _run_way(
        ctx,
        {
            "test": command.rehearse,
            "canaries": command.audit_canaries,
            "scores": command.audit_scores,
            "": command.audit_model,
        },
    )
    typer.echo(text)
    if code:
        raise typer.Exit(code)


@app.command()
def params(name: str = NOTEBOOK, preset: str = PRESET) -> None:
    """List the parameters of a notebook."""
    from mia_lib.publish.parameters import as_typed, parameters, where_own

    declarations = parameters(name, preset)
    own = where_own(declarations)
    rows = [
        (
            p.name,
            f"{p.meaning}\n{p.type} = {as_typed(p.default)}" + f"  [{p.allowed}]" * bool(p.allowed),
        )
        for p in declarations
    ]
    _show(
        ("parameter", "meaning, type, value [what is allowed]"),
        rows,
        f"{name}, preset {preset}",
        f"{own[0].upper()}{own[1:]}",
        no_wrap=True,
    )  # names are typed, so they stay whole


@data_app.command("ls")
def data_ls() -> None:
    """List the data sets: size, licence, where each is or how to get it."""
    from mia_lib import data

    sets = data.describe()
    _show(sets, sets.itertuples(index=False))


@data_app.command("get")
def data_get(name: str = typer.Argument(help="A name from `mia data ls`.")) -> None:
    """Download and prepare a data set."""
    from mia_lib import data

    typer.echo(data.get(name))


@app.command()
def sync(
    check: bool = typer.Option(False, help="Write nothing; fail when a pair is out of step."),
) -> None:
    """Make each notebooks/NAME.ipynb from NAME.py, without outputs; what README.md says was found, from the last built book;
    what book/measured.md says of what was measured; and the JSON Schema of claims files."""
    from mia_lib.publish.sync import sync as write

    stale = write(check)
    for path in stale:
        typer.echo(f"{'out of step' if check else 'written'}: {path}")
    if check and stale:
        typer.echo("Run `mia sync`.", err=True)
        raise typer.Exit(1)


@app.command()
def doctor(
    device: str | None = typer.Option(
        None, help="Compare a graphics card with the processor instead: cuda or cuda:1."
    ),
) -> None:
    """Look whether this machine has what the book needs; with --device, whether its card computes what the processor does."""
    from mia_lib.publish import doctor as health

    good = True
    for finding in health.examine() if device is None else health.compare_probes(device):
        good &= finding.good
        typer.echo(finding)
    if not good:
        raise typer.Exit(1)


@app.command()
def serve(port: int = typer.Option(8000, min=0, max=65535, help="0 takes any free one.")) -> None:
    """Show the built book in a browser on this machine."""
    import functools
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    from mia_lib.publish.parameters import find_root

    class Handler(SimpleHTTPRequestHandler):
        def translate_path(self, path):
            asked = (
                super().translate_path(path).replace("\0", "-")
            )  # no file has it, and to ask for it is an error
            inside = Path(os.path.realpath(asked)).is_relative_to(
                folder.resolve()
            )  # a link may lead out of the book
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


def main() -> None:
    """Entry point of the console script."""
    import signal

    # What a scheduler sends before it kills: the kernel and its processes are ended as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()


if __name__ == "__main__":
    main()
