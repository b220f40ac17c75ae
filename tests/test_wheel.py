"""What `pip install .` gives: a wheel without the book, which needs no PyTorch where the page of what stays says so."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

# Run where the wheel lies unpacked: only what its own requirements bring can be imported, as if nothing else was installed.
ALONE = """
import re, sys
from importlib import metadata
from packaging.requirements import Requirement

def name(line):
    return re.sub("[-_.]+", "-", line).lower()

allowed, waiting = set(), ["mia_lib"]
while waiting:
    one = name(waiting.pop())
    if one not in allowed:
        allowed.add(one)
        try:
            lines = metadata.requires(one) or []
        except metadata.PackageNotFoundError:
            continue
        waiting += [line.name for line in map(Requirement, lines) if not line.marker or line.marker.evaluate({"extra": ""})]
modules = metadata.packages_distributions()

class Alone:
    def find_spec(self, module, path=None, target=None):
        owners = modules.get(module.partition(".")[0])
        book = module.partition(".")[0] == "mia_book"  # which the wheel has not, though it is installed here
        if book or owners and not allowed & set(map(name, owners)):
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)

for module in [one for one in sys.modules if modules.get(one) and not allowed & set(map(name, modules[one]))]:
    del sys.modules[module]
sys.meta_path.insert(0, Alone())
"""


@pytest.fixture(scope="module")
def wheel(repo, tmp_path_factory) -> Path:
    """Folder in which the wheel of this checkout lies unpacked, as `pip install --target` leaves it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    # a build leaves its traces beside what it builds
    for part in ("pyproject.toml", "README.md", "LICENSE", "mia_lib", "mia_book", "setup.py"):
        os.symlink(repo / part, source / part)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            str(folder),
            str(source),
        ],
        check=True,
        capture_output=True,
    )
    (found,) = folder.glob("*.whl")
    with zipfile.ZipFile(found) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


def alone(wheel: Path, code: str, cwd: Path) -> subprocess.CompletedProcess:
    env = {
        **os.environ,
        "PYTHONPATH": str(wheel),
        "MIA_DATA": str(cwd),
        "MIA_CACHE": str(cwd / "cache"),
        "MPLBACKEND": "agg",
    }
    return subprocess.run(
        [sys.executable, "-c", ALONE + code], cwd=cwd, env=env, capture_output=True, text=True
    )


def test_the_wheel_is_the_library_and_what_is_promised_without_pytorch_works_where_there_is_none(
    wheel, repo, tmp_path
):
    text = (repo / "book" / "api" / "promise.md").read_text(encoding="utf-8")
    sections = [one for one in re.split(r"^(?=## )", text, flags=re.M) if "PyTorch" not in one]
    fences = [
        re.sub(rf"^{indent}", "", code, flags=re.M)
        for one in sections
        for indent, code in re.findall(r"^( *)```pycon\n(.*?)^ *```$", one, re.M | re.S)
    ]
    assert len(fences) > 25
    assert {one.name for one in wheel.iterdir() if not one.name.endswith(".dist-info")} == {
        "mia_lib"
    }, "nothing of the book"
    assert all((wheel / "mia_lib" / one).is_file() for one in ("py.typed", "audit/report.html"))
    done = alone(
        wheel,
        f"""
import doctest, json, mia_lib
names, runner = {{}}, doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
for code in json.loads({json.dumps(json.dumps(fences))}):
    one = doctest.DocTestParser().get_doctest(code, names, "promise.md", None, 0)
    runner.run(one, clear_globs=False)
    names = one.globs
print(mia_lib.__file__, runner.summarize(verbose=False).failed, "torch" in sys.modules)
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{wheel / 'mia_lib' / '__init__.py'} 0 False", (
        done.stdout
    )


def test_what_is_not_there_says_how_to_get_it_and_commands_that_need_the_repository_refuse_outside_one(
    wheel, tmp_path
):
    commands = ("build", "run bayes", "params bayes", "sweep bayes -p seed 1,2", "sync", "serve")
    done = alone(
        wheel,
        f"""
import contextlib, importlib, io
from mia_lib import data
for module in ("training", "signals", "models", "curvature", "attacks.quantile.networks"):
    try:
        one = getattr(__import__("mia_lib"), module) if module == "curvature" else importlib.import_module("mia_lib." + module)
        getattr(one, dict(signals="loss", training="train").get(module, "__name__"))  # these two import PyTorch when asked
    except ModuleNotFoundError as error:
        print(module, error.name, "pip install 'mia_lib[train]'" in str(error))
try:
    data.load("german_credit")
except data.sets.MiaError as error:
    print("clone" in str(error), "gaussian" in str(error), "german_credit, gaussian" in str(error))
from mia_lib import cli
for words in {commands}:
    sys.argv, said = ["mia", *words.split()], io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            cli.main()
        except SystemExit as stopped:
            print(words, stopped.code, "clone" in said.getvalue())
""",
        tmp_path,
    )
    assert done.stdout.splitlines() == [
        *(
            f"{module} torch True"
            for module in (
                "training",
                "signals",
                "models",
                "curvature",
                "attacks.quantile.networks",
            )
        ),
        "True True False",
        *(f"{words} 2 True" for words in commands),
    ], done.stderr
