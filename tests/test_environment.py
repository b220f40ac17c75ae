"""Two commands from a bare machine: pins agree, `make` explains itself, an old Python is refused plainly."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lines) -> dict[str, str]:
    found = (re.fullmatch(r"([\w.-]+)==(\S+)", line.strip()) for line in lines)
    return {normal(match[1]): match[2] for match in found if match}


@pytest.fixture(scope="module")
def project(repo) -> dict:
    return tomllib.loads((repo / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def constraints(repo) -> dict[str, str]:
    return pins((repo / "constraints.txt").read_text().splitlines())


@pytest.fixture(scope="module")
def conda(repo) -> list:
    return yaml.safe_load((repo / "environment.yml").read_text())["dependencies"]


def requirements(project: dict, *extras: str) -> dict[str, str]:
    listed = project["dependencies"] + [line for extra in extras for line in project["optional-dependencies"][extra]]
    own = [extra for line in listed for extra in re.findall(r"^mia_lib\[(\w+)\]$", line)]
    named = {normal(re.match(r"[\w.-]+", line)[0]): line for line in listed if not line.startswith("mia_lib[")}
    return named | requirements(project, *own) if own else named


def test_constraints_pin_each_line_once_and_exactly(repo):
    lines = [ln for ln in (repo / "constraints.txt").read_text().splitlines() if ln and not ln.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines), "no ranges, no local versions, no editables"
    assert len(pins(lines)) == len(lines)


def test_environment_gives_conda_the_same_pins(project, constraints, conda):
    listed = next(item["pip"] for item in conda if isinstance(item, dict))
    same = pins(listed)
    assert same == {name: constraints[name] for name in requirements(project, "test", "lab")}
    assert "--constraint constraints.txt" in listed and "python=3.11" in conda


def test_every_direct_dependency_is_pinned_within_its_range(project, constraints):
    from packaging.requirements import Requirement

    for name, line in requirements(project, *project["optional-dependencies"]).items():
        assert Requirement(line).specifier.contains(constraints[name]), line


def test_setup_brings_what_the_book_runs_with(repo, project):
    assert '-e ".[test,lab]"' in (repo / "Makefile").read_text()
    installed = requirements(project, "test", "lab")
    for extra in ("train", "book", "dp", "tabular", "cluster"):
        assert requirements(project, extra).items() <= installed.items(), extra


def test_every_import_of_the_library_is_a_declared_dependency(repo, project):
    import ast

    declared = set(requirements(project, *project["optional-dependencies"]))
    as_package = {"bs4": "beautifulsoup4", "yaml": "pyyaml", "sklearn": "scikit-learn", "pil": "pillow",
                  "vl-convert": "vl-convert-python", "markdown-it": "markdown-it-py"}
    imported = set()
    for path in (repo / "mia_lib").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.split(".")[0])
    outside = {normal(m) for m in imported - set(sys.stdlib_module_names) - {"mia_lib"}}
    assert {as_package.get(m, m) for m in outside} <= declared


def old_python(folder: Path, version: str) -> str:
    """A `python3` that says it is `version`."""
    script = folder / "python3"
    script.write_text(f'#!/bin/sh\ncase "$2" in\n*"sys.exit"*) exit 1;;\n*"sys.version"*) echo {version};;\nesac\n')
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def fresh(repo, tmp_path) -> Path:
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        (tmp_path / name).write_text((repo / name).read_text())
    return tmp_path


def test_make_names_the_old_python_and_the_one_needed(fresh):
    old = old_python(fresh, "3.9.18")
    done = subprocess.run(["make", "setup", f"PYTHON={old}"], cwd=fresh, capture_output=True, text=True)
    assert done.returncode and "Python 3.11 or newer is needed" in done.stderr and "3.9.18" in done.stderr
    assert not (fresh / ".venv").exists()


CONFIGURED = r"""
:env:.find-links='/wheels /more'
global.cert='ca.crt'
global.find-links='/old'
global.index-url='https://mirror/simple'
global.timeout='9'
install.constraint='a.txt\nb.txt'
install.no-index='false'
"""
PIP = f"""import sys
print({CONFIGURED.strip()!r} if sys.argv[1:] == ["config", "list"] else " ".join(["pip", *sys.argv[1:]]))
"""


@pytest.fixture
def beside(tmp_path) -> Path:
    """Folder of a Python with a pip that is configured and prints what it is asked; a test lays a uv beside them."""
    (tmp_path / "python").symlink_to(sys.executable)
    (tmp_path / "pip.py").write_text(PIP)
    return tmp_path


def install(repo: Path, beside: Path, *wanted: str) -> list[str]:
    asked = [beside / "python", repo / ".ci" / "install.py", *wanted]
    env = {**os.environ, "PYTHONPATH": str(beside)}
    return subprocess.run(asked, env=env, capture_output=True, text=True, check=True).stdout.splitlines()


def a_uv(beside: Path, code: int) -> None:
    (beside / "uv").write_text(f'#!/bin/sh\necho uv "$@"\nexit {code}\n')
    (beside / "uv").chmod(0o755)


def test_uv_is_told_what_pip_is_configured_to(repo, beside):
    a_uv(beside, 0)
    (said,) = install(repo, beside, "--extra-index-url", "https://here/cpu", "-e", ".")
    assert said.startswith(f"uv pip install --python {beside / 'python'} --index-strategy unsafe-best-match")
    assert said.endswith(" --index-url=https://mirror/simple --find-links=/wheels --find-links=/more --constraint=a.txt "
                         "--constraint=b.txt --cert=ca.crt --extra-index-url https://here/cpu -e .")
    assert "--no-index" not in said and "timeout" not in said


def test_pip_installs_where_uv_is_not_or_cannot(repo, beside):
    alone = install(repo, beside, "-e", ".")
    assert alone == ["uv cannot install here: pip does, which takes longer.", "pip install -e ."]
    a_uv(beside, 2)
    assert install(repo, beside, "-e", ".")[1:] == alone


def test_mia_refuses_an_old_python_before_importing_anything(repo):
    cli = str(repo / "mia_lib" / "publish" / "cli.py")
    pretend = f"import sys, runpy; sys.version_info = (3, 10, 2); runpy.run_path({cli!r})"
    done = subprocess.run([sys.executable, "-c", pretend], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip() == "mia needs Python 3.11 or newer, and this is Python 3.10."


def test_help_imports_nothing_heavy(repo):
    heavy = ("torch", "numpy", "pandas", "papermill", "jupytext", "matplotlib")
    probe = ("import sys, typer.testing; from mia_lib.publish.cli import app; "
             "typer.testing.CliRunner().invoke(app, ['--help']); "
             f"print([m for m in {heavy} if m in sys.modules])")
    env = {**os.environ, "PYTHONPATH": str(repo)}
    assert subprocess.run([sys.executable, "-c", probe], env=env, capture_output=True, text=True).stdout.strip() == "[]"


def test_git_keeps_what_is_published(repo):
    names = [str(path.relative_to(repo)) for path in (repo / "data" / "published").rglob("*") if path.is_file()]
    asked = subprocess.run(["git", "check-ignore", "--no-index", *names], cwd=repo, capture_output=True, text=True)
    if asked.returncode == 128:
        pytest.skip("not a git checkout")
    assert len(names) > 100 and asked.stdout == ""
