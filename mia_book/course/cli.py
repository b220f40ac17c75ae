"""`mia course`: what a lecturer hands out, and what comes back."""

from __future__ import annotations

from pathlib import Path

import typer

from mia_book.course import marking
from mia_book.course.child import printable
from mia_lib.errors import MiaError, attempt

app = typer.Typer(
    no_args_is_help=True,
    help="Exercises, signals and a competition for a class. `mia slides` makes slides of the lessons, and quizzes.",
)
TO = typer.Option(
    ...,
    metavar="FOLDER",
    help="A folder that does not exist yet or is empty; nothing is overwritten.",
)
BANK = typer.Option(
    "bank/fashion-mlp", "--bank", metavar="NAME", help="A published bank, see `published.ls()`."
)
REFERENCES = typer.Option(16, help="Models of the bank that everybody may use, the same ones.")


def _root() -> Path:
    for folder in (Path.cwd(), *Path.cwd().parents, Path(__file__).resolve().parents[2]):
        if (folder / "course" / "exercises").is_dir():
            return folder
    raise MiaError(
        "There is no folder course/exercises here. Run `mia course` inside a clone of the repository."
    )


@app.command("export")
def export(
    to: Path = TO,
    edition: str = typer.Option("student", help="student, without solutions, or lecturer."),
    only: str = typer.Option(
        "", metavar="NAMES", help="Some exercises, as malt_mast,lira: those of a week."
    ),
) -> None:
    """Write the exercises as notebooks, with their checks and signals to try them on."""
    from mia_book.course import export as exporting

    names = [name.strip() for name in only.split(",") if name.strip()]
    typer.echo(exporting.write(to, _root(), edition, names))


@app.command("data")
def data(
    to: Path = typer.Option(
        Path("signals.npz"), metavar="FILE", help="An .npz that does not exist yet."
    ),
) -> None:
    """Write the signals of one published bank, to attack with NumPy alone, and their card."""
    from mia_book.course import bank

    typer.echo(bank.write(to))


@app.command("check")
def check(
    notebooks: list[Path] = typer.Argument(
        help="Notebooks that were handed in, .ipynb or .py, or folders of them, as Moodle exports."
    ),
    seed: int = typer.Option(0, min=0, help="Of the checks' data; students have 0."),
    seconds: int = typer.Option(
        marking.SECONDS, min=1, help="For one notebook; the slowest exercise takes a few."
    ),
    to: Path | None = typer.Option(
        None,
        metavar="FILE",
        help="A .csv that does not exist yet, for the marks: student, "
        "exercise, points, first complaint.",
    ),
    brief: bool = typer.Option(False, "--brief", help="Only the points."),
) -> None:
    """Mark notebooks with the book's own checks. Their code runs on this machine.

    Ends with 1 where a notebook was refused: it has no checks, ran for too long, or is no notebook. The others are marked.
    """
    refused, root, unwritten = False, _root(), []
    paths = marking.notebooks(notebooks)
    if to is not None:
        marking.record(to, marking.COLUMNS, "x")
    try:
        for mark in (marking.mark(path, root, seed, seconds) for path in paths):
            refused |= mark.refused
            points = "refused" if mark.refused else f"{mark.right} of {mark.of}"
            typer.echo(f"{points:>8}  {mark.exercise:12} {printable(str(mark.path))}")
            for remark in () if brief and not mark.refused else mark.remarks:
                typer.echo(f"{'':10}{remark}")
            with attempt(unwritten):  # what is marked is printed all the same
                if to is not None:
                    marking.record(to, marking.row(mark, root))
    except KeyboardInterrupt:
        typer.echo("Stopped. What is marked above stands; the others were not marked.", err=True)
        raise typer.Exit(130) from None
    if unwritten:
        raise unwritten[0]
    if refused:
        raise typer.Exit(1)


@app.command("play")
def play(
    to: Path = TO,
    bank: str = BANK,
    references: int = REFERENCES,
    targets: int = typer.Option(
        16,
        help="Hidden models, half of them for the end; each takes as long to train as one of "
        "the bank.",
    ),
    seed: int | None = typer.Option(
        None, min=0, help="Who knows it knows the answers; drawn and kept secret by default."
    ),
) -> None:
    """Train hidden models for a competition, and write what everybody gets and, apart from it, the answers."""
    from mia_book.course import game

    game.hide(to, _root(), bank, targets, seed, references)
    typer.echo(f"{to / 'hand_out'}: what everybody gets\n{to}: the answers, for you alone")


@app.command("judge")
def judge(
    folder: Path = typer.Argument(help="That `mia course play` wrote."),
    submissions: list[Path] = typer.Argument(
        help="Files that were handed in, or folders of them. Their code runs on this machine."
    ),
    final: bool = typer.Option(
        False, "--final", help="Judge on the models that no ranking has shown. Once, at the end."
    ),
) -> None:
    """Rank functions on hidden models, with intervals, and write the page that shows it."""
    from mia_book.course import game

    page = folder / ("final.html" if final else "leaderboard.html")
    if final and page.exists():
        raise MiaError(
            f"The final ranking was made already: {page} shows it and is not overwritten. Who has seen it "
            "could fit a function to it. To make it anew, move that page away."
        )
    challenge = game.read_hidden(folder).half(final)
    places, refused = _rank(challenge, _files(submissions), kept=True)
    typer.echo(game.write_page(page, places, challenge.members, final, refused))


@app.command("try")
def practise(
    submissions: list[Path] = typer.Argument(help="Files with a function `attack`."),
    bank: str = BANK,
    references: int = REFERENCES,
) -> None:
    """Rank functions on published models, beside the attacks of the book. Everybody can look up the members of these."""
    from mia_book.course import game

    _rank(game.practise(bank, references), _files(submissions))


def _rank(challenge, paths: list[Path], kept: bool = False) -> tuple[list, list[str]]:
    """Print the ranking, and why files were refused; where all were, the command ends with 1."""
    from mia_book.course import game

    places, refused = game.judge(challenge, paths, kept)
    for reason in refused:
        typer.echo(f"Refused: {reason}", err=True)
    for place in places:
        rank = f"{place.best}" if place.best == place.worst else f"{place.best}-{place.worst}"
        typer.echo(
            f"{rank:>7}  {place.team:22} TPR at 1 % FPR {place.tpr:.1%}  AUC {place.auc:.3f}"
        )
    typer.echo(
        "\n".join(
            [game.say_who_won(places, len(challenge.members)), *game.say_whom_to_read(places)]
        )
    )
    if len(refused) == len(paths):
        raise typer.Exit(1)
    return places, refused


def _files(paths: list[Path]) -> list[Path]:
    """Files, and those in folders by name."""
    files = [
        file for path in paths for file in (sorted(path.glob("*.py")) if path.is_dir() else [path])
    ]
    if not files:
        raise MiaError(
            f"{', '.join(map(str, paths))}: there is no .py file in it. Submissions are files such as team_one.py."
        )
    return files
