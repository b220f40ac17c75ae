"""What bears on a number: an edit of it changes the fingerprints of what depends on it, and of nothing else."""

import shutil
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from mia_lib import definitions, runner, store
from mia_lib.definitions import FOR_NUMBERS, FOR_PAGES, Sources
from mia_lib.errors import MiaError
from mia_lib.parameters import validate

REPO = Path(__file__).resolve().parents[1]
CHAPTERS = ("bayes", "calibration", "curvature", "iha", "quantile")

# What is computed or shown, and where it starts.
STUDIES = {f"{chapter} study": [f"mia_lib.chapters.{chapter}:{root}"] for chapter, root in zip(
    CHAPTERS, ("judge_banks", "play", "play", "play", "play"), strict=True)}
MODELS = {f"{name} models": (["mia_lib.training:Ensemble"], [name]) for name in ("mlp", "tanh_cnn", "resnet18")}
SIGNALS = {"loss": ["mia_lib.signals:per_model", "mia_lib.signals:_outputs_task"],
           "curvature": ["mia_lib.signals:per_model", "mia_lib.curvature:_task"],
           "Hessian": ["mia_lib.hessian:exact"]}
PAGES = {f"{chapter} page": chapter for chapter in CHAPTERS}
EVERY = {*STUDIES, *MODELS, *SIGNALS, *PAGES}
ALL_PAGES, ALL_STUDIES, ALL_MODELS = set(PAGES), set(STUDIES), set(MODELS)


def fingerprints(library: Path) -> dict[str, str]:
    """Of everything above, with the library in a folder."""
    definitions._held.clear()
    sources = Sources(library)
    found = {name: sources.reach(roots).fingerprint for name, roots in (STUDIES | SIGNALS).items()}
    found |= {name: sources.reach(roots, words).fingerprint for name, (roots, words) in MODELS.items()}
    for name, chapter in PAGES.items():
        cells = [c.source for c in runner.read(REPO / "notebooks" / f"{chapter}.py").cells if c.cell_type == "code"]
        found[name] = definitions.of_cells(cells, (), library).fingerprint
    return found


@pytest.fixture(scope="module")
def before() -> dict[str, str]:
    return fingerprints(REPO / "mia_lib")


@pytest.fixture
def library(tmp_path) -> Path:
    """A copy of the library to edit."""
    return Path(shutil.copytree(REPO / "mia_lib", tmp_path / "mia_lib", ignore=shutil.ignore_patterns("__pycache__")))


def edit(library: Path, file: str, old: str, new: str) -> None:
    path = library / file
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{old!r} is not in {file}: the row of the table has to follow the code"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


BAYES, IHA, QUANTILE = {"bayes page"}, {"iha page"}, {"quantile page"}
BEARS = {
    "an attack": ("attacks/bayes.py", "return -np.asarray(loss)", "return +np.asarray(loss)",
                  {"bayes study", "bayes page"}),
    "a default of an attack": ("attacks/bayes.py", "temperature: float = 1.0", "temperature: float = 2.0",
                               {"bayes study", "bayes page"}),
    "a signal": ("signals.py", "return np.log1p(np.where(one_hot", "return np.log(np.where(one_hot",
                 ALL_STUDIES - {"iha study"} | {"iha study", "loss"} | ALL_PAGES),
    "a training detail": ("backends/loop.py", "losses.mean(1).sum().backward()", "losses.sum(1).sum().backward()",
                          ALL_STUDIES | ALL_MODELS | ALL_PAGES),
    "a constant of the training": ("backends/loop.py", "VALIDATED_AT_ONCE = 1000", "VALIDATED_AT_ONCE = 100",
                                   ALL_STUDIES | ALL_MODELS | ALL_PAGES),
    "a network": ("models.py", "    return Network(nn.Sequential(*layers), nn.Linear(sizes[-1], classes))\n\n\nclass _FromZero",
                  "    return Network(nn.Sequential(*layers[:-1]), nn.Linear(sizes[-1], classes))\n\n\nclass _FromZero", None),
    "a network that nobody here names": ("models.py", '"Bottleneck", [3, 4, 6, 3]', '"Bottleneck", [3, 4, 6, 4]', set()),
    "a metric": ("metrics.py", "def average_precision(", "@np.errstate()\ndef average_precision(", None),
    "a rule of verdicts": ("claims.py", "def judge(", "@dataclass\ndef judge(", ALL_PAGES),
    "a chapter's study": ("chapters/iha.py", "def placebo(", "@cache\ndef placebo(", IHA),
    "a constant of a chapter": ("chapters/quantile.py", "CLASS_ALPHA = 0.05", "CLASS_ALPHA = 0.06",
                                {"quantile study", "quantile page"}),
    "a helper three calls down": ("stacking.py", "def _flat(", "@staticmethod\ndef _flat(", None),
    "a drawing": ("plotting.py", "DPI", "DPI", None),
}


@pytest.mark.parametrize("what", BEARS)
def test_an_edit_changes_what_depends_on_it_and_nothing_else(what, library, before):
    file, old, new, expected = BEARS[what]
    edit(library, file, old, new)
    after = fingerprints(library)
    changed = {name for name in EVERY if after[name] != before[name]}
    print(what, sorted(changed))
    assert changed == expected
