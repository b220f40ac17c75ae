"""Two commands from a bare machine: pins agree, `make` explains itself, an old Python is refused plainly."""

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
    found = (re.fullmatch(r"([\w.-]+)==([\w.]+)", line.strip()) for line in lines)
    return {normal(match[1]): match[2] for match in found if match}


@pytest.fixture(scope="module")
def project(repo) -> dict:
    return tomllib.loads((repo / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def constraints(repo) -> dict[str, str]:
    lines = [
        line
        for line in (repo / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert len(found := pins(lines)) == len(lines), (
        "each once: no ranges, no local versions, no editables"
    )
    return found


def requirements(project: dict, *extras: str) -> dict[str, str]:
    listed = project["dependencies"] + [
        line for extra in extras for line in project["optional-dependencies"][extra]
    ]
    own = [extra for line in listed for extra in re.findall(r"^mia_lib\[(\w+)\]$", line)]
    named = {
        normal(re.match(r"[\w.-]+", line)[0]): line
        for line in listed
        if not line.startswith("mia_lib[")
    }
    return named | requirements(project, *own) if own else named


def test_environment_gives_conda_the_same_pins(repo, project, constraints):
    conda = yaml.safe_load((repo / "environment.yml").read_text())["dependencies"]
    listed = next(item["pip"] for item in conda if isinstance(item, dict))
    assert pins(listed) == {
        name: constraints[name] for name in requirements(project, "test", "lab")
    }
    assert "--constraint constraints.txt" in listed and "python=3.11" in conda


def test_every_direct_dependency_is_pinned_within_its_range(project, constraints):
    from packaging.requirements import Requirement

    for name, line in requirements(project, *project["optional-dependencies"]).items():
        assert Requirement(line).specifier.contains(constraints[name]), line


def test_every_import_of_the_library_is_a_declared_dependency(repo, project):
    as_package = {
        "bs4": "beautifulsoup4",
        "yaml": "pyyaml",
        "sklearn": "scikit-learn",
        "pil": "pillow",
        "vl-convert": "vl-convert-python",
        "markdown-it": "markdown-it-py",
    }
    imported = {
        name
        for path in (repo / "mia_lib").rglob("*.py")
        for name in re.findall(
            r"^ *(?:import (?=[\w.]+(?: as \w+)?$)|from (?=[\w.]+ import ))(\w+)",
            path.read_text(),
            re.M,
        )
    }
    outside = {normal(name) for name in imported - set(sys.stdlib_module_names) - {"mia_lib"}}
    assert {"torch", "sklearn"} < outside
    assert {as_package.get(name, name) for name in outside} <= set(
        requirements(project, *project["optional-dependencies"])
    )


def test_an_extra_that_a_message_or_a_page_names_is_there(repo, project):
    sources = [*(repo / "mia_lib").rglob("*.py"), *(repo / "mia_book").rglob("*.py")]
    sources += [*(repo / "book").glob("*.md"), *repo.glob("*.md")]
    pattern = r"(?:mia_lib|'\.)\[(\w+(?:,\w+)*)\]'"
    named = {
        extra
        for path in sources
        for found in re.findall(pattern, path.read_text("utf-8"))
        for extra in found.split(",")
    }
    assert {"train", "book", "parquet", "text"} <= named <= set(project["optional-dependencies"])


def executable(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_make_names_the_old_python_and_the_one_needed(repo, tmp_path):
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        (tmp_path / name).write_text((repo / name).read_text())
    old = executable(
        tmp_path / "python3",
        'case "$2" in\n*"sys.exit"*) exit 1;;\n*"sys.version"*) echo 3.9.18;;\nesac',
    )
    done = subprocess.run(
        ["make", "setup", f"PYTHON={old}"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "3.9.18" in done.stderr
    assert not (tmp_path / ".venv").exists()


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


def test_uv_is_told_what_pip_is_configured_to_and_pip_installs_where_uv_is_not_or_cannot(
    repo, tmp_path
):
    def install(*wanted: str) -> list[str]:
        asked = [tmp_path / "python", repo / ".ci" / "install.py", *wanted]
        env = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.run(
            asked, env=env, capture_output=True, text=True, check=True
        ).stdout.splitlines()

    (tmp_path / "python").symlink_to(sys.executable)
    (tmp_path / "pip.py").write_text(PIP)
    alone = install("-e", ".")
    assert alone == ["uv cannot install here: pip does, which takes longer.", "pip install -e ."]
    executable(tmp_path / "uv", 'echo uv "$@"\nexit 2')
    assert install("-e", ".")[1:] == alone
    executable(tmp_path / "uv", 'echo uv "$@"')
    (said,) = install("--extra-index-url", "https://here/cpu", "-e", ".")
    assert said == (
        f"uv pip install --python {tmp_path / 'python'} --index-strategy unsafe-best-match --compile-bytecode "
        "--index-url=https://mirror/simple --find-links=/wheels --find-links=/more --constraint=a.txt "
        "--constraint=b.txt --cert=ca.crt --extra-index-url https://here/cpu -e ."
    )


def test_mia_refuses_an_old_python_before_importing_anything(repo):
    cli = str(repo / "mia_lib" / "cli.py")
    pretend = f"import sys, runpy; sys.version_info = (3, 10, 2); runpy.run_path({cli!r})"
    done = subprocess.run([sys.executable, "-c", pretend], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip() == "mia needs Python 3.11 or newer, and this is Python 3.10."


def test_help_imports_nothing_heavy(repo):
    heavy = ("torch", "numpy", "pandas", "papermill", "jupytext", "matplotlib")
    probe = (
        "import sys, typer.testing; from mia_book.pages.cli import app; "
        "typer.testing.CliRunner().invoke(app, ['--help']); "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": str(repo)}
    assert (
        subprocess.run(
            [sys.executable, "-c", probe], env=env, capture_output=True, text=True
        ).stdout.strip()
        == "[]"
    )


def test_git_keeps_what_is_published(repo):
    names = [
        str(path.relative_to(repo))
        for path in (repo / "data" / "published").rglob("*")
        if path.is_file()
    ]
    asked = subprocess.run(
        ["git", "check-ignore", "--no-index", *names], cwd=repo, capture_output=True, text=True
    )
    if asked.returncode == 128:
        pytest.skip("not a git checkout")
    assert len(names) > 100 and asked.stdout == ""
