"""The ways in of `mia audit`: names on a command line are checked before PyTorch is imported.

Each returns what to print, and the exit code: 3 where something that `fail_on` names was found, else 1 where a step failed,
else 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from mia_lib import documents, environment
from mia_lib.audit.options import (
    ANSWERS,
    FAILED,
    NUMBERS,
    PAGE,
    AuditOptions,
    RecordOptions,
    ScoreOptions,
    check_folder,
    check_gates,
)
from mia_lib.errors import MiaError

if TYPE_CHECKING:
    from mia_lib.audit.report import Report


def audit_model(
    options: AuditOptions,
    model: str | None,
    members: str | None,
    non_members: str | None,
    output: Path,
    public: str | None = None,
    state: str | None = None,
    recipe: str | None = None,
    refit: str | None = None,
    references_from: str | None = None,
    label: str | None = None,
    groups: str | None = None,
    id: str | None = None,
    trust: bool = False,
    plan: bool = False,
    fail_on: Sequence[str] = (),
) -> tuple[str, int]:
    """Audit a model that a file or a module has.

    Args:
        model, members, non_members, public, state, recipe, references_from: names of files, the first also of a function, see
            `files`. refit: name of a function or an estimator.
        label, groups, id: names of a column or an array in the files of members and of non-members.
        output: folder for the page.
        trust: whether files that are code may be read. plan: whether to stop behind the plan.
        fail_on: as for `check_gates`.

    Raises:
        MiaError: as `execution.audit`; files that are missing or not safe to read, an output folder that holds something or
            cannot be written (in the end with what was found), or a `fail_on` that cannot be decided.
    """
    gates = check_gates(fail_on)
    if plan and gates:
        raise MiaError("--plan makes no use of --fail-on: leave it out.")
    needed = {"MODEL": model, "--members": members, "--non-members": non_members}
    for name, path in needed.items():
        if path is None:
            raise MiaError(
                f"{name} is missing: `mia audit MODEL --members M.npz --non-members N.npz`; `mia audit --scores "
                "table.csv` judges scores that are there; `mia audit --test` tests the audit itself."
            )
    paths = {
        "members": members,
        "non-members": non_members,
        "public": public,
        "state": state,
        "recipe": recipe,
        "references-from": references_from,
    }
    _check_files(paths)
    folder = check_folder(output) if plan else _new_folder(output)
    from mia_lib.audit import execution, files

    named = {"label": label, "groups": groups, "id": id}
    sets, more = files.read(paths | named, trust, refit)
    target = files.model(model, state, trust)
    asked = {"name": model, **options.model_dump(exclude_unset=True)}
    asked |= more | {"keep": folder / ANSWERS}
    if plan:
        return str(execution.plan(target, *sets, **asked)), 0
    return _save(execution.audit(target, *sets, **asked), folder, gates)


def audit_scores(
    options: ScoreOptions,
    scores: str,
    score: str,
    member: str,
    output: Path,
    groups: str | None = None,
    id: str | None = None,
    fail_on: Sequence[str] = (),
) -> tuple[str, int]:
    """Judge the scores of a table: `scores` names its file, `score` (or several, a,b,c), `member`, `groups` and `id` its
    columns; see `audit_model`."""
    gates = check_gates(fail_on)
    _check_files({"scores": scores})
    folder = _new_folder(output)
    from mia_lib.audit import execution, files

    values, is_member, more = files.score_table(
        scores, score, member, {"groups": groups, "ids": id}
    )
    asked = {"name": Path(scores).name, **options.model_dump(exclude_unset=True), **more}
    return _save(execution.audit_scores(values, is_member, **asked), folder, gates)


def audit_tokens(
    options: RecordOptions,
    tokens: str,
    non_members: str | None,
    output: Path,
    fail_on: Sequence[str] = (),
) -> tuple[str, int]:
    """Audit a language model by two files with what it says of each token, see `tokens.audit_tokens` and `audit_model`."""
    gates = check_gates(fail_on)
    if non_members is None:
        raise MiaError(
            "--non-members is missing: `mia audit --tokens members.npz --non-members others.npz`."
        )
    if options.groups is not None:  # a column, which only tables have
        raise MiaError("--tokens makes no use of --groups: leave it out.")
    _check_files({"tokens": tokens, "non-members": non_members})
    folder = _new_folder(output)
    from mia_lib.audit import files
    from mia_lib.audit import tokens as of_tokens

    sets = [
        files.arrays(path, option, ("log_prob", "lengths"), of_tokens.NAMES)
        for option, path in (("tokens", tokens), ("non-members", non_members))
    ]
    asked = {"name": Path(tokens).name, **options.model_dump(exclude_unset=True)}
    return _save(of_tokens.audit_tokens(*sets, **asked), folder, gates)


def audit_canaries(
    canaries: str, score: str, member: str, delta: float, confidence: float, seed: int
) -> tuple[str, int]:
    """Bound epsilon by the canaries of one training run: `canaries` names the file of a table with a row each, `score` and
    `member` its columns; delta, confidence, seed and what is refused as for `one_run.canaries`."""
    _check_files({"canaries": canaries})
    from mia_lib.audit import files, one_run

    scores, coins, _ = files.score_table(canaries, score, member)
    if len(scores) > 1:
        raise MiaError(f"--score {score}: canaries have one score, settled before anyone looked.")
    [values] = scores.values()
    return str(one_run.canaries(values, coins, delta, confidence, seed)), 0


def rehearse() -> tuple[str, int]:
    """Test the audit itself, see `rehearsal.rehearse`; the exit code is 1 where it failed."""
    from mia_lib.audit import rehearsal

    result = rehearsal.rehearse()
    return str(result), 0 if result.good else 1


def _check_files(paths: Mapping[str, str | None]) -> None:
    """Refuse a file that is not there, by the option that names it."""
    for name, path in paths.items():
        if path is not None and not environment.path(path).is_file():
            raise MiaError(f"--{name} {path}: there is no such file.")


def _new_folder(output: Path) -> Path:
    """The folder of an audit, made where it is not there; that of one that was finished, and one that cannot be written,
    raise `MiaError`."""
    folder = check_folder(output)
    if (folder / PAGE).exists() and _retried(folder) is None:
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
    return folder


def _save(report: Report, folder: Path, gates: Mapping[str, float | None]) -> tuple[str, int]:
    """Write a report into its folder; what to print, and the exit code."""
    from mia_lib import store

    page = folder / PAGE
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
