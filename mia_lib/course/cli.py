"""`mia course`: what a lecturer hands out, and what comes back."""

from __future__ import annotations

from pathlib import Path

import typer

from mia_lib.errors import MiaError

app = typer.Typer(no_args_is_help=True, help="Exercises, signals and a competition for a class.")
TO = typer.Option(..., metavar="FOLDER", help="A folder that does not exist yet or is empty; nothing is overwritten.")


def _root() -> Path:
    for folder in (Path.cwd(), *Path.cwd().parents, Path(__file__).resolve().parents[2]):
        if (folder / "course" / "exercises").is_dir():
            return folder
    raise MiaError("There is no folder course/exercises here. Run `mia course` inside a clone of the repository.")


@app.command("export")
def export(to: Path = TO, edition: str = typer.Option("student", help="student, without solutions, or lecturer.")) -> None:
    """Write the exercises as notebooks, with their checks and signals to try them on."""
    from mia_lib.course import export as exporting

    typer.echo(exporting.write(to, _root(), edition))


@app.command("data")
def data(to: Path = typer.Option(Path("signals.npz"), metavar="FILE", help="An .npz that does not exist yet."),
         seed: int = typer.Option(0, min=0, help="Of records, training sets and training.")) -> None:
    """Write the signals of one bank of models, to attack with NumPy alone, and their card."""
    from mia_lib.course import bank

    typer.echo(bank.write(to, seed=seed))


@app.command("check")
def check(notebooks: list[Path] = typer.Argument(help="Notebooks that were handed in, .ipynb or .py."),
          seed: int | None = typer.Option(None, min=0, help="Of the checks' data, the same for all; new for each by "
                                                            "default."),
          brief: bool = typer.Option(False, "--brief", help="Only the points.")) -> None:
    """Mark notebooks with the book's own checks. Their code runs on this machine."""
    from mia_lib.course import marking

    refused = False
    try:
        for mark in marking.check(notebooks, _root(), seed):
            refused |= mark.refused
            typer.echo(f"{'refused' if mark.refused else f'{mark.right} of {mark.of}':>8}  {mark.exercise:12} {mark.path}")
            for remark in () if brief and not mark.refused else mark.remarks:
                typer.echo(f"{'':10}{remark}")
    except KeyboardInterrupt:
        typer.echo("Stopped. What is marked above stands; the others were not marked.", err=True)
        raise typer.Exit(130) from None
    if refused:
        raise typer.Exit(1)


@app.command("play")
def play(to: Path = TO, teams: int = typer.Option(..., help="How many take part."),
         tries: int = typer.Option(10, help="Files that a team may hand in."),
         seed: int | None = typer.Option(None, min=0, help="Who knows it knows the solution; drawn and kept secret by "
                                                           "default."),
         source: str | None = typer.Option(None, "--bank", metavar="NAME", help="For practice: deal from a published bank, "
                                           "such as bank/cifar10-small; everybody has its solution.")) -> None:
    """Deal a competition: for each team records, losses and references without the members; apart from it, the answers."""
    from mia_lib.course import game

    game.deal(to, teams, seed, tries, source=source)
    typer.echo(f"{to / 'teams'}: a folder for each team\n{to / 'lecturer'}: the answers, for you alone")


@app.command("judge")
def judge(folder: Path = typer.Argument(help="That `mia course play` wrote."),
          submissions: list[Path] = typer.Argument(None, help="Files that were handed in, or folders of them, the "
                                                              "later after the earlier."),
          final: bool = typer.Option(False, "--final", help="Judge the half that no ranking has shown. Once, at the "
                                                            "end.")) -> None:
    """Rank score files with intervals, and write the page that shows it."""
    from mia_lib.course import game, leaderboard

    places, refused = game.judge(folder, _files(submissions or []), final)
    for reason in refused:
        typer.echo(f"Refused: {reason}", err=True)
    for place in places:
        rank = f"{place.best}" if place.best == place.worst else f"{place.best}-{place.worst}"
        typer.echo(f"{rank:>7}  {place.team}  TPR at 5 % FPR {place.tpr:.3f}  AUC {place.auc:.3f}  files {place.tries}")
    page = folder / ("final.html" if final else "leaderboard.html")
    typer.echo(leaderboard.verdict(places))
    typer.echo(leaderboard.write(page, places, game.answers(folder), final))
    if refused:
        raise typer.Exit(1)


def _files(paths: list[Path]) -> list[Path]:
    """Files, and those in folders from the oldest to the newest; what else lies there is named."""
    files, others = [], []
    for path in paths:
        inside = sorted((file for file in path.rglob("*") if file.is_file() and not file.name.startswith(".")),
                        key=lambda file: (file.stat().st_mtime, file.name))
        files += [file for file in inside if file.suffix.lower() == ".npz"] if path.is_dir() else [path]
        others += [file.name for file in inside if file.suffix.lower() != ".npz"]
    if others:
        typer.echo(f"Not looked at, for they do not end in .npz: {', '.join(others[:10])}"
                   f"{f' and {len(others) - 10} more' if len(others) > 10 else ''}", err=True)
    if paths and not files:
        raise MiaError(f"{', '.join(map(str, paths))}: there is no .npz file in it. Submissions are files such as "
                       f"team-01.npz.")
    return files
