"""The command line: `mia audit`, `data` and `doctor`; in a clone of the repository also the commands of the book."""

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
from importlib.metadata import entry_points
from pathlib import Path

import typer
from typer.core import TyperGroup

from mia_lib import environment
from mia_lib.audit.options import AuditOptions
from mia_lib.errors import FAILURES, MiaError, is_full

OWN = ("audit", "doctor", "data")
STOPPED = "Stopped. Finished models are kept in the store; the same command goes on from there."
FULL = (
    "The disk is full: {}. Free some space, where results go or in the folder for temporary files (TMPDIR), and give the "
    "same command again. What was finished is kept."
)
GONE = (
    "A disk cannot be used: {}. See to it that it is there and can be read and written, or name another folder, and give "
    "the same command again. What was finished is kept."
)
# of a disk that is read-only, or was unplugged
UNUSABLE = (errno.EACCES, errno.EIO, errno.ENODEV, errno.EROFS, errno.ESTALE)


def _check_here() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise MiaError(
            "The folder in which this was called is gone: go to another one (cd), and call it there."
        ) from None


class Mia(TyperGroup):
    """Turns what went wrong into one paragraph on standard error and an exit code."""

    def resolve_command(self, ctx, args):
        if len(self.commands) == len(OWN) and self.get_command(ctx, args[0]) is None:
            raise MiaError(
                f"There is no command {args[0]!r} here, but {', '.join(OWN)}. Those of the book need a clone of its "
                "repository: pip install -c constraints.txt -e '.[book]' there."
            )
        return super().resolve_command(ctx, args)

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
            code = 2
            text = (
                f"This needs {error.name}, which is not installed. The extra `book` brings what runs notebooks "
                "and builds the book: pip install -c constraints.txt -e '.[book]' in a clone of the repository."
            )
        except RuntimeError as error:
            if type(error).__name__ not in FAILURES:
                raise
            code, text = 1, str(error)
        typer.echo(text, err=True)
        raise typer.Exit(code)


app = typer.Typer(
    cls=Mia,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Membership inference attacks: audit a model; in a clone of the book, build it and rerun its notebooks.",
)
data_app = typer.Typer(no_args_is_help=True, help="The data sets: where they are, how to get them.")
app.add_typer(data_app, name="data")


def use_device(device: str | None) -> None:
    """Says before any work what is wrong with the device, and with the number of workers."""
    if name := device or environment.device():
        if name != "cpu":  # of which nothing is to be said, and PyTorch takes seconds to import
            from mia_lib.training import devices

            devices.pick(device)
        os.environ["MIA_DEVICE"] = name
    environment.workers()


def use_cluster(address: str | None) -> None:
    if address := address or environment.cluster():
        if not re.fullmatch(r"(\w+://)?\S+:\d+", address):
            raise MiaError(
                f"{address!r} is no address of a cluster: give the one that its scheduler prints when it starts, "
                "such as tcp://10.0.0.1:8786."
            )
        from mia_lib.training import pool

        pool.connect(address).close()  # says now what is wrong with it
        os.environ["MIA_CLUSTER"] = address


DEVICE = typer.Option(
    None,
    callback=use_device,
    metavar="DEVICE",
    help="cpu, cuda or cuda:1, else a card where there is one.",
)
CLUSTER = typer.Option(
    None,
    callback=use_cluster,
    metavar="ADDRESS",
    help="Train on the workers of a dask scheduler, such as tcp://10.0.0.1:8786.",
)


def run_way(ctx: typer.Context, ways: Mapping[str, Callable]):
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


def show_table(
    columns, rows, title: str | None = None, caption: str | None = None, **first
) -> None:
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
        help="my_module:factory with --state, my_module:pipeline or :predict, or program.pt2 "
        "with --trust. All are code.",
    ),
    members: str | None = typer.Option(
        None, help="Records it was trained on: .npz with x and y, or .csv or .parquet with --label."
    ),
    non_members: str | None = typer.Option(None, help="Others of the same distribution."),
    public: str | None = typer.Option(None, help="Further ones, for attacks that learn from them."),
    state: str | None = typer.Option(None, help="Weights of the factory's network, safetensors."),
    trust: bool = typer.Option(
        False,
        "--trust",
        help="Read a program, or a recipe that names a module: code of its maker's, run in your name.",
    ),
    recipe: str | None = typer.Option(
        None, help="How it was trained: YAML or JSON of TrainConfig's names."
    ),
    refit: str | None = typer.Option(
        None, help="my_module:fit, a function (x, y) -> model, or an estimator: trains references."
    ),
    references_from: str | None = typer.Option(
        None,
        help="References from elsewhere: .npz with members [R, N] and answers [R, N, K] or loss "
        "[R, N], records as in --members, then --non-members.",
    ),
    label: str | None = typer.Option(None, help="Column of the tables that is to be predicted."),
    groups: str | None = typer.Option(
        None, help="Name of a column or array in both files, or a column of --scores: the groups."
    ),
    id: str | None = typer.Option(
        None, help="Likewise your own name of each record, shown beside those most exposed."
    ),
    scores: str | None = typer.Option(
        None, help="In the place of a model: .csv or .npz, a row a record; see --score."
    ),
    tokens: str | None = typer.Option(
        None,
        help="In the place of a language model: .npz with what it says of each token of its "
        "members, and --non-members likewise.",
    ),
    canaries: str | None = typer.Option(
        None,
        help="Epsilon from one training run: .csv or .npz, a row a canary with "
        "its --score and, as --member, its coin.",
    ),
    score: str = typer.Option(
        "score",
        help="Its column of scores, higher for members; of several, a,b,c, the best is chosen.",
    ),
    member: str = typer.Option("member", help="Its column that says who is a member, 1 or True."),
    outputs: str = AUDIT["outputs"],
    columns: str | None = AUDIT["columns"],
    scaling: str | None = AUDIT["scaling"],
    batch: int | None = AUDIT["batch"],
    minutes: float = AUDIT["minutes"],
    references: int = AUDIT["references"],
    queries: int = AUDIT["queries"],
    without: list[str] = AUDIT["without"],
    deduplicate: bool = AUDIT["deduplicate"],
    fpr: list[float] = AUDIT["fpr"],
    delta: float = AUDIT["delta"],
    confidence: float = AUDIT["confidence"],
    name: str = AUDIT["name"],
    auditor: str = AUDIT["auditor"],
    purpose: str = AUDIT["purpose"],
    period: str = AUDIT["period"],
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

    text, code = run_way(
        ctx,
        {
            "test": command.rehearse,
            "canaries": command.audit_canaries,
            "scores": command.audit_scores,
            "tokens": command.audit_tokens,
            "": command.audit_model,
        },
    )
    typer.echo(text)
    if code:
        raise typer.Exit(code)


@data_app.command("ls")
def data_ls() -> None:
    """List the data sets: size, licence, where each is or how to get it."""
    from mia_lib import data

    sets = data.describe()
    show_table(sets, sets.itertuples(index=False))


@data_app.command("get")
def data_get(name: str = typer.Argument(help="A name from `mia data ls`.")) -> None:
    """Download and prepare a data set."""
    from mia_lib import data

    typer.echo(data.get(name))


@app.command()
def doctor() -> None:
    """Look whether this machine has what the library needs."""
    from mia_lib.doctor import examine, report

    report(examine())


def main() -> None:
    """Entry point of the console script, which takes commands from whatever is installed, such as those of the book."""
    import signal

    for commands in entry_points(group="mia.commands"):
        try:
            commands.load()
        except ModuleNotFoundError as error:
            if error.name != commands.module.partition(".")[0]:  # that is not here, but in a clone
                raise
    # What a scheduler sends before it kills: the kernel and its processes are ended as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()


if __name__ == "__main__":
    from mia_lib import cli  # to whose `app` the book adds its commands

    cli.main()
