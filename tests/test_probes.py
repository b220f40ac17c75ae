"""Every measurement means what it meant when it was published: at tiny parameters it gives the same numbers."""

import os
import subprocess
import sys

import numpy as np
import pytest

from mia_book import publishing

MEASUREMENTS = publishing.catalogue()
# convolutions, logistic regression, Hessians, curvature, trees, regressions
OF_EACH_KIND = [
    "bank/cifar10-small",
    "bayes/table1",
    "iha/location",
    "curvature/sizes",
    "quantile/trees",
    "quantile/cifar100-small",
]
# measurements whose probe is the same call, as of banks of several data sets
SAME_PROBE: dict[tuple, list[str]] = {}
for name, one in sorted(MEASUREMENTS.items()):
    parameters = one.complete(
        {option: value for option, value in one.probe.items() if option != "index"}
    )
    SAME_PROBE.setdefault((one.function, one.probe["index"], repr(parameters)), []).append(name)


@pytest.mark.parametrize("names", SAME_PROBE.values(), ids=" ".join)
def test_a_measurement_gives_what_it_gave_when_it_was_published(names, monkeypatch):
    """If this fails on purpose, raise the measurement's edition (or `training.EDITION`) and publish it anew."""
    found = MEASUREMENTS[names[0]].run_probe()
    monkeypatch.setattr(publishing.Measurement, "run_probe", lambda self: found)
    assert [MEASUREMENTS[name].check_probe() for name in names] == [""] * len(names)


def test_a_processor_with_other_instructions_gives_them_too(tmp_path):
    """Without vector instructions sums are rounded otherwise, as on a processor of another make."""
    code = (
        "from mia_book import publishing\n"
        f"for name in {OF_EACH_KIND}: print(name, '=>', publishing.catalogue()[name].check_probe())\n"
    )
    plain = {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MIA_CACHE": str(tmp_path),
        "MIA_WORKERS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | plain, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{name} => " for name in OF_EACH_KIND]


@pytest.mark.parametrize(
    "change",
    [
        ("mia_lib.training.recipe.WARM_UP", 0.5),
        ("mia_lib.models.SCALINGS", {"-1 to 1": (127.5, 0.9)}),
        ("mia_lib.membership._generator", lambda seed: np.random.default_rng(seed)),
    ],
    ids=["learning rate", "inputs", "who is in"],
)
def test_an_edit_of_what_training_means_fails_the_probe(change, monkeypatch, tmp_path):
    # an edit of a file gives other code; here the code is changed in memory
    monkeypatch.setenv("MIA_CACHE", str(tmp_path))
    monkeypatch.setattr(*change)
    monkeypatch.setattr("mia_lib.training.pool.run_tasks", here)
    assert any(
        MEASUREMENTS[name].check_probe()
        for name in ("bank/cifar10-small-weights", "bank/cifar10-small")
    )


def here(task, calls, finished, *_):
    """The tasks of the pool in this process, where the change is."""
    for position, call in enumerate(calls):
        finished(position, task(*call))
