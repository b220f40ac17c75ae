"""`mia audit` on a command line: names are checked before PyTorch is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from mia_lib import documents
from mia_lib.audit.options import (
    ANSWERS,
    FAILED,
    NUMBERS,
    PAGE,
    AuditOptions,
    check_folder,
    check_gates,
)
from mia_lib.errors import MiaError


def run_command(
    paths: Mapping[str, str | None],
    output: Path,
    only_plan: bool = False,
    fail_on: Sequence[str] = (),
    score: str = "score",
    member: str = "member",
    trust: bool = False,
    **options,
) -> tuple[str, int]:
    """Run an audit from names on a command line, see `files`.

    Args:
        paths: what MODEL, members, non-members, public, state, recipe, scores and groups name, None where nothing was given:
            files, but for the model and for groups, an array in both files or a column of the scores.
        output: folder for the page. only_plan: whether to stop behind the plan. fail_on: as for `check_gates`.
        score, member: columns of a table of scores. trust: whether files that are code may be read.
        options: attributes of `AuditOptions`.

    Returns:
        what to print, and the exit code: 3 where something that `fail_on` names was found, else 1 where a step failed, else 0.

    Raises:
        MiaError: as `audit`; files that are missing or not safe to read, an output folder that holds something or cannot be
            written (in the end with what was found), or a `fail_on` that cannot be decided.
    """
    AuditOptions(**options)
    gates, scores = check_gates(fail_on), paths.get("scores")
    if missing := [
        name
        for name in ("MODEL", "members", "non-members")
        if paths.get(name) is None and scores is None
    ]:
        raise MiaError(
            f"{'' if missing[0] == 'MODEL' else '--'}{missing[0]} is missing: `mia audit MODEL --members M.npz "
            "--non-members N.npz`; `mia audit --scores table.csv` judges scores that are there; `mia audit --test` "
            "tests the audit itself."
        )
    for name, path in paths.items():
        if (
            path is not None
            and name not in ("MODEL", "groups")
            and not Path(path).expanduser().is_file()
        ):
            raise MiaError(f"--{name} {path}: there is no such file.")
    folder = check_folder(output)
    page = folder / PAGE
    if not only_plan:
        if page.exists() and _retried(folder) is None:
            raise MiaError(
                f"-o {folder} holds an audit that was finished: give a new folder, such as -o {folder}_2, so that "
                f"it is not lost; without its {PAGE} it would go on from the answers and scores that it kept."
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
        except OSError as error:
            raise MiaError(
                f"-o {folder} cannot be written ({error.strerror}): give another folder."
            ) from error
    if options.get("name", AuditOptions.name) == AuditOptions.name:  # nobody named it
        options["name"] = Path(scores).name if scores is not None else str(paths["MODEL"])
    from mia_lib import store
    from mia_lib.audit import execution, files

    if scores is not None:
        values, inside, options["groups"] = files.score_table(
            scores, score, member, paths.get("groups")
        )
        report = execution.audit_scores(values, inside, **options)
    else:
        sets, more = files.read(paths, trust)
        target = files.model(paths["MODEL"], paths.get("state"), trust)
        options |= more | {"keep": str(folder / ANSWERS)}
        if only_plan:
            return str(execution.plan(target, *sets, **options)), 0
        report = execution.audit(target, *sets, **options)
    lock = folder / ".writing-lock"  # here, for the cache may be full or gone
    try:
        with store.lock_file(lock, f"writing its audit into {folder}"):
            if page.exists() and _retried(folder) != _asked(report.provenance):
                raise MiaError(
                    f"another audit finished in {folder} meanwhile, which is not overwritten. Give another folder."
                )
            for rest in {*folder.glob(".writing-*")} - {lock}:  # of an audit that was killed
                rest.unlink()
            report.save(folder)
            with suppress(OSError):  # Windows removes no open file; the next audit takes it
                lock.unlink()
    except Exception as error:
        raise MiaError(f"{report}\nThis could not be saved: {error}") from error
    failures = report.exceeded(gates)
    warning = f"Send on {PAGE} alone: what lies beside it holds every record's scores, and of a function its answers."
    failed = report.plan.failed if report.plan else []
    again = (
        ["The same command tries again what failed, and --without leaves it out."] if failed else []
    )
    return "\n".join(
        [str(report), *failures, *failed, *again, str(page), warning]
    ), 3 if failures else 1 if failed else 0


def _asked(provenance: Mapping) -> dict:
    """Model and records of an audit, from its provenance."""
    return {name: provenance.get(name) for name in ("model", "data")}


def _retried(folder: Path) -> dict | None:
    """Model and records of the audit in a folder if a step of it failed and may be tried again;
    None if the audit has ended."""
    try:
        numbers = documents.load(folder / NUMBERS)
        failed = any(step["state"] == FAILED for step in numbers["plan"])
        return _asked(numbers["provenance"]) if failed else None
    except (MiaError, KeyError, TypeError):
        return None
