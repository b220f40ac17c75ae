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
        for one in marking.check(notebooks, _root(), seed):
            refused |= one.refused
            typer.echo(f"{'refused' if one.refused else f'{one.right} of {one.of}':>8}  {one.exercise:12} {one.path}")
            for said in () if brief and not one.refused else one.said:
                typer.echo(f"{'':10}{said}")
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
    for said in refused:
        typer.echo(f"Refused: {said}", err=True)
    for one in places:
        rank = f"{one.best}" if one.best == one.worst else f"{one.best}-{one.worst}"
        typer.echo(f"{rank:>7}  {one.team}  TPR at 5 % FPR {one.tpr:.3f}  AUC {one.auc:.3f}  files {one.tries}")
    kept = game.answers(folder)
    typer.echo(leaderboard.verdict(places))
    typer.echo(leaderboard.write(folder / ("final.html" if final else "leaderboard.html"), places, kept, final))
    if refused:
        raise typer.Exit(1)


def _files(given: list[Path]) -> list[Path]:
    """Files, and those in folders from the oldest to the newest; what else lies there is named."""
    found, others = [], []
    for one in given:
        inside = sorted((path for path in one.rglob("*") if path.is_file() and not path.name.startswith(".")),
                        key=lambda path: (path.stat().st_mtime, path.name)) if one.is_dir() else [one]
        found += [path for path in inside if path.suffix.lower() == ".npz" or not one.is_dir()]
        others += [path.name for path in inside if path not in found]
    if others:
        typer.echo(f"Not looked at, for they do not end in .npz: {', '.join(others[:10])}"
                   f"{f' and {len(others) - 10} more' if len(others) > 10 else ''}", err=True)
    if given and not found:
        raise MiaError(f"{', '.join(map(str, given))}: there is no .npz file in it. Submissions are files such as "
                       f"team-01.npz.")
    return found
