"""What publishes the book: workflows that are pinned, bounded and run nothing but the project's own commands; one version."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import mia_lib
from mia_book.pages.parameters import find_root, notebooks

FOLDER = find_root() / ".github" / "workflows"
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yml"))}
JOBS = {
    (name, job): what
    for name, workflow in WORKFLOWS.items()
    for job, what in workflow["jobs"].items()
}
STEPS = {"setup", "lint", "test", "book"}
PINNED = re.compile(r"^ *(?:- )?uses: ([\w-]+/[\w-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$")
MAY_WRITE = {("pages", "deploy"): {"pages", "id-token"}, ("pages", "results"): {"contents"}}
# that chapters need at their defaults, and `make setup` brings with the tests
EXTRAS = "tabular,dp"
BESIDE = (
    "binder/pack",
    "gh release upload",
    "date -u",
    "git push -q --force",
)  # what runs besides .ci/run


@pytest.mark.parametrize(
    "schema, files",
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("dependabot", ".github/dependabot.yml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_it_fits_its_schema(repo, monkeypatch, schema, files):
    # a grammar of addresses that takes seconds to import
    monkeypatch.setitem(sys.modules, "rfc3987_syntax", None)
    from check_jsonschema import main

    said = CliRunner().invoke(
        main, ["--builtin-schema", f"vendor.{schema}", *map(str, sorted(repo.glob(files)))]
    )
    assert said.exit_code == 0, said.output


def test_a_job_may_do_what_it_has_to_and_no_more():
    lines = [
        line
        for path in FOLDER.glob("*.yml")
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    pins = [PINNED.match(line) for line in lines if "uses: ./" not in line]
    assert all(pins), lines
    assert len({pin.groups() for pin in pins}) == len({pin[1] for pin in pins}), (
        "one commit an action"
    )
    assert all(
        workflow["permissions"] == {} and "group" in workflow["concurrency"]
        for workflow in WORKFLOWS.values()
    )
    for place, job in JOBS.items():
        assert {
            name for name, right in job["permissions"].items() if right == "write"
        } == MAY_WRITE.get(place, set()), place
        assert set(job["permissions"].values()) <= {"read", "write"}
        assert "uses" in job or 0 < job["timeout-minutes"] <= 120, "nothing runs for ever"
        for step in job.get("steps", []):
            checked_out = "actions/checkout@" in step.get("uses", "")
            assert not checked_out or step["with"]["persist-credentials"] is False, (
                "no later step can push"
            )
    assert "pull_request" in WORKFLOWS["pull-request"][True], (
        "and not pull_request_target, which holds secrets"
    )
    assert "secrets" not in json.dumps(WORKFLOWS["pull-request"])


def test_workflows_run_the_projects_own_commands(repo):
    ran = {}
    for place, job in JOBS.items():
        for step in filter(None, (step.get("run") for step in job.get("steps", []))):
            assert "${{" not in step, "what others can name goes through the environment"
            assert step.startswith(".ci/run") or any(command in step for command in BESIDE), step
            ran.setdefault(place, set()).update(
                step.split()[1:] if step.startswith(".ci/run") else ()
            )
    assert all(named <= STEPS for named in ran.values())
    assert ran[("tests", "tests")] >= {"test"} and ran[("tests", "book")] >= {"book"}, (
        "together they are .ci/run"
    )
    done = subprocess.run(
        [repo / ".ci" / "run", "tests"], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 2 and not done.stdout, (
        "what it does not know is refused before it installs"
    )
    assert "tests is none of setup, lint, test and book" in done.stderr


def test_all_places_say_one_version_one_date_and_the_same_of_who_and_what_and_chapters_how_to_run_on_colab(
    repo,
):
    cited = yaml.safe_load((repo / "CITATION.cff").read_text())
    deposited = json.loads((repo / ".zenodo.json").read_text())
    project = tomllib.loads((repo / "pyproject.toml").read_text())["project"]
    version, date = re.search(
        r"^## (\d\S*) – (\S+)$", (repo / "CHANGELOG.md").read_text(), re.MULTILINE
    ).groups()
    assert {project["version"], mia_lib.__version__, cited["version"], deposited["version"]} == {
        version
    }
    assert {str(cited["date-released"]), deposited["publication_date"]} == {date}
    assert all(cited[what] == deposited[what] for what in ("title", "license", "keywords"))
    assert [one["name"] for one in cited["authors"]] == [
        one["name"] for one in deposited["creators"]
    ]
    address = yaml.safe_load((repo / "_config.yml").read_text())["repository"]["url"]
    line = re.search(r"^ +(!git .*)$", (repo / "book" / "rerun.md").read_text(), re.MULTILINE)[1]
    assert cited["repository-code"] == address
    assert address in line
    assert f'".[train,{EXTRAS}]"' in line
    assert all(
        f"`{line}`" in (repo / "notebooks" / f"{name}.py").read_text() for name in notebooks(repo)
    )


@pytest.fixture
def clone(repo, tmp_path) -> Path:
    """What of a clone the scripts of Binder look at, with a book and a store."""
    root = tmp_path / "clone"
    shutil.copytree(repo / "binder", root / "binder")
    for name in ("_config.yml", "pyproject.toml"):
        shutil.copy(repo / name, root)
    for name in (
        "_build/book/_build/html/index.html",
        "_build/book/_build/.doctrees/index.doctree",
        "_build/executed/tiny.ipynb",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    for kind in ("study", "model", "data", "locks"):
        (tmp_path / "store" / kind).mkdir(parents=True)
        (tmp_path / "store" / kind / "entry").write_text(kind)
    return root


def script(clone: Path, name: str, *arguments, **environment) -> subprocess.CompletedProcess:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(Path(mia_lib.__file__).parents[1]),
        "MIA_CACHE": str(clone.parent / "store"),
        **environment,
    }
    return subprocess.run(
        [clone / "binder" / name, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_binder_begins_with_the_results_that_a_release_packed_or_without(clone, tmp_path):
    results = tmp_path / "results.tar.gz"
    done = script(clone, "postBuild", QUICK_RESULTS=results.as_uri())
    assert done.returncode == 0 and "No results at" in done.stdout
    packed = script(clone, "pack", str(results))
    assert packed.returncode == 0, packed.stderr
    for made in (clone / "_build", tmp_path / "store"):
        shutil.rmtree(made)
    got = script(clone, "postBuild", QUICK_RESULTS=results.as_uri())
    assert got.returncode == 0, got.stderr
    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert {one for one in there if one.startswith(("clone/_build", "store"))} == {
        *(f"clone/_build/{one}" for one in ("book/_build/html/index.html", "executed/tiny.ipynb")),
        "store/study/entry",
        "store/model/entry",
    }
    shutil.rmtree(clone / "_build")
    done = script(clone, "pack", str(tmp_path / "other.tar.gz"))
    assert done.returncode == 1
    assert "make book" in done.stderr
    assert not (tmp_path / "other.tar.gz").exists()


def test_binder_and_the_dev_container_install_what_setup_installs(repo):
    lines = [
        line
        for line in (repo / "binder" / "requirements.txt").read_text().splitlines()
        if line[0] != "#"
    ]
    index, constraint, package = (line.split(maxsplit=1)[1] for line in lines)
    assert (repo / "binder" / constraint).resolve() == repo / "constraints.txt"
    assert package == f".[book,lab,{EXTRAS}]"
    assert index in (repo / "Makefile").read_text()
    assert "python-3.11" in (repo / "binder" / "runtime.txt").read_text()
    container = json.loads((repo / ".devcontainer" / "devcontainer.json").read_text())
    assert index in container["containerEnv"]["PIP_ARGS"] and "python:3.11" in container["image"]
    assert ".ci/run setup" in container["postCreateCommand"]
    assert "binder/postBuild" in container["postCreateCommand"]
    assert all(
        os.access(repo / "binder" / name, os.X_OK) for name in ("pack", "postBuild", "start")
    )
