"""What the documents print as a command can be given as it stands."""

import re
import shlex

import numpy as np
import pytest
import typer

from mia_book.pages import cli, parameters, runner, sweep
from mia_book.publishing import measurements
from mia_lib import models
from mia_lib.cli import app

ROOT = parameters.find_root()
PAGES = [
    "README.md",
    "course/README.md",
    "course/STUDENT.md",
    *sorted(f"book/{p.name}" for p in (ROOT / "book").glob("*.md")),
]
TOLD = ("--yes",)  # says by itself that it measures what takes long


def commands(text: str) -> list[str]:
    """Commands of `mia` in blocks and in backticks, without comments; those with a placeholder in capitals are left out."""
    lines = [
        line
        for kind, block in re.findall(r"```(\w*)\n(.*?)```", text, re.S)
        if kind in ("bash", "")
        for line in block.replace("\\\n", " ").splitlines()
        if line.startswith("mia ")
    ]
    lines += re.findall(r"(?<!`)`(mia [^`]+)`(?!`)", text)
    given = [
        re.sub(r"\s+", " ", re.sub(r"\s#.*|--cluster \S+", "", line)).strip() for line in lines
    ]
    return [one for one in given if not re.search(r"\.\.\.|\$|\b[A-Z]{2,}\b", one)]


def printed() -> list[tuple[str, str]]:
    pages = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
    helped = typer.main.get_command(app).commands.values()
    pages["--help"] = "\n".join(
        str(getattr(one, "help", "")) for command in helped for one in [command, *command.params]
    )
    found = [(page, command) for page, text in pages.items() for command in commands(text)]
    return sorted({command: page for page, command in reversed(found)}.items())


PRINTED = printed()


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A clone as it stands: nothing measured or downloaded, five minutes to measure, and the files that the pages name."""
    monkeypatch.setenv("MIA_MOST_SECONDS", "300")
    monkeypatch.setenv("MIA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("MIA_CACHE", str(tmp_path / "cache"))

    def weights(architecture, shape, classes):
        models.try_out(architecture, np.zeros((2, *shape), np.uint8), classes)
        network = models.build(architecture, shape, classes, seed=0)
        return sum(weight.numel() for weight in network.parameters())

    monkeypatch.setattr(measurements, "_pace", weights)  # the time would be another on each machine
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).integers(0, 256, (4000, 12, 12, 1)).astype(np.uint8)
    np.savez("mine.npz", x=x, y=np.arange(4000) % 4)
    for module in ("my_net", "my_models"):
        (tmp_path / f"{module}.py").write_text(
            "from torch import nn\n\n\nclass Net(nn.Module):\n"
            "    def __init__(self, shape, classes, hidden=8):\n        super().__init__()\n"
            "        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], hidden),\n"
            "                                    nn.ReLU(), nn.Linear(hidden, classes))\n\n"
            "    def forward(self, x):\n        return self.layers(x)\n"
        )
    return tmp_path


def test_there_are_commands_on_every_page_that_is_about_them():
    pages = {page for _, page in PRINTED}
    assert {
        "README.md",
        "book/rerun.md",
        "book/own.md",
        "book/syllabus.md",
        "book/machines.md",
    } <= pages
    assert len(PRINTED) > 40


@pytest.mark.parametrize("command, page", PRINTED)
def test_a_printed_command_is_one_and_what_it_runs_is_not_refused(command, page, bare, monkeypatch):
    words = shlex.split(command)[1:]
    group = typer.main.get_command(app)
    while words and hasattr(group, "commands"):
        assert words[0] in group.commands or words[0] == "--help", command
        group, name = group.commands.get(words[0], group), words.pop(0)
    if not words or "--help" in words or name == "--help":
        return  # prose, by its name alone
    values = group.make_context(name, list(words)).params
    if name not in ("run", "sweep") or set(TOLD) & {*words}:
        return
    pairs = cli._pairs(values["name"], values["parameter"])
    if name == "run":
        runs = [pairs]
    else:
        runs = sweep.grid(values["name"], pairs, values["preset"])
    checked = [parameters.validate(values["name"], one, values["preset"]) for one in runs]
    runner.prepare(values["name"], checked, ROOT)
