"""`mia audit`: from what the command line names to what it prints. What is misspelt is said before PyTorch is imported."""

from __future__ import annotations

from pathlib import Path

from mia_lib.audit.options import ANSWERS, NUMBERS, AuditOptions, check_folder
from mia_lib.errors import MiaError


def run_command(model: str | None, members: str | None, non_members: str | None, public: str | None, state: str | None,
                recipe: str | None, groups: str | None, output: Path, only_plan: bool, scores: str | None = None,
                score: str = "score", member: str = "member", **options) -> str:
    """An audit from names on a command line, see `files`; what to print.

    Args:
        scores: a table of scores in the place of a model and its records; score, member: names of its columns, and groups that
            of a further one. options: attributes of `AuditOptions`.

    Raises:
        MiaError: as `audit`; files that are missing or not safe to read; an output folder that holds something, an audit, too.
    """
    AuditOptions(**options)
    paths = {"members": members, "non-members": non_members, "public": public, "state": state, "recipe": recipe}
    if scores is not None:
        if unused := [f"--{name}" for name, value in paths.items() if value is not None] + ["MODEL"] * (model is not None):
            raise MiaError(f"--scores {scores} judges scores alone, without a model: leave {', '.join(unused)} out.")
        if only_plan:
            raise MiaError("--plan is for a model: scores are judged within seconds.")
    else:
        for argument, value in (("MODEL", model), ("--members", members), ("--non-members", non_members)):
            if value is None:
                raise MiaError(f"{argument} is missing: `mia audit MODEL --members M.npz --non-members N.npz`; `mia audit "
                               "--scores table.csv` judges scores that are there; `mia audit --test` tests the audit itself.")
    for argument, path in {**paths, "scores": scores}.items():
        if path is not None and not Path(path).expanduser().is_file():
            raise MiaError(f"--{argument} {path}: there is no such file.")
    folder = check_folder(output)
    if not only_plan and (folder / NUMBERS).exists():
        raise MiaError(f"-o {folder} holds an audit that was finished: give a new folder, such as -o {folder}_2, so that it "
                       "is not lost.")
    if options.get("name", AuditOptions.name) == AuditOptions.name:  # nobody named it
        options["name"] = Path(scores).name if scores is not None else str(model)
    from mia_lib.audit import execution, files

    if scores is not None:
        values, inside, options["groups"] = files.score_table(scores, score, member, groups)
        report = execution.audit_scores(values, inside, **options)
        return f"{report}\n{report.save(folder)}"
    sets = files.same_classes({name: paths[name] and files.records(paths[name], name)
                               for name in ("members", "non-members", "public")})
    options |= {"public": sets["public"], "recipe": recipe and files.recipe(recipe),
                "groups": groups and files.groups(groups, (members, non_members)), "keep": str(folder / ANSWERS)}
    target = files.model(model, state)
    if only_plan:
        return str(execution.plan(target, sets["members"], sets["non-members"], **options))
    report = execution.audit(target, sets["members"], sets["non-members"], **options)
    return f"{report}\n{report.save(folder)}"
