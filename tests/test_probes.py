"""Every measurement means what it meant when it was published: at tiny parameters it gives the same numbers."""

import numpy as np
import pytest

from mia_lib import published

MEASUREMENTS = published.catalogue()


@pytest.mark.parametrize("name", sorted(MEASUREMENTS))
def test_a_measurement_gives_what_it_gave_when_it_was_published(name):
    """If this fails on purpose, raise the measurement's edition (or `training.EDITION`) and publish it anew."""
    assert MEASUREMENTS[name].check_probe() == ""


@pytest.mark.parametrize("change", [
    ("mia_lib.training.recipe.WARM_UP", 0.5), ("mia_lib.models.SCALINGS", {"-1 to 1": (127.5, 0.9)}),
    ("mia_lib.membership._generator", lambda seed: np.random.default_rng(seed)),
], ids=["learning rate", "inputs", "who is in"])
def test_an_edit_of_what_training_means_fails_the_probe(change, monkeypatch, tmp_path):
    monkeypatch.setenv("MIA_CACHE", str(tmp_path))  # an edit of a file gives other code; here the code is changed in memory
    monkeypatch.setattr(*change)
    monkeypatch.setattr("mia_lib.training.backends.pool.run_tasks", here)
    assert MEASUREMENTS["bank/cifar10-small"].check_probe() != ""


def here(task, calls, finished, *_):
    """The tasks of the pool in this process, where the change is."""
    for position, call in enumerate(calls):
        finished(position, task(*call))
