"""What a run would measure is known, and refused, before anything runs."""

import re

import numpy as np
import pytest

from mia_book import folders
from mia_book.pages import parameters
from mia_book.publishing import measurements, plans
from mia_lib.errors import MiaError

PLANNED = sorted(folders.find("plan.py"))


@pytest.fixture
def limited(monkeypatch, tmp_path):
    """Five minutes to measure, no data but those of the repository, and a cache that is empty."""
    monkeypatch.setenv("MIA_MOST_SECONDS", "300")
    monkeypatch.setenv("MIA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("MIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", PLANNED)
def test_the_published_run_measures_nothing_and_other_presets_have_all_that_their_plan_needs(
    name, limited
):
    assert plans.missing_measurements(name, parameters.validate(name, {})) == []
    for preset in parameters.presets(name)[1:]:
        for measurement, models, values in plans.missing_measurements(
            name, parameters.validate(name, {}, preset)
        ):
            assert models > 0
            assert values == measurement.complete(values)


def test_a_chapter_without_a_plan_measures_nothing(limited):
    assert plans.missing_measurements("compare", {}) == []


@pytest.mark.parametrize("values", [{"epochs": 5}, {"architecture": "tanh_cnn:16,32,64"}])
def test_a_refusal_is_one_sentence_that_names_time_and_data(limited, values):
    runs = [parameters.validate("bayes", values)]
    with pytest.raises(MiaError) as refused:
        plans.prepare("bayes", runs)
    said = str(refused.value)
    assert re.search(r"bayes is not run: measuring bayes/table2 .*: about .* here", said)
    assert "`mia data get cifar10`" in said and "--yes" in said and "\n" not in said


def test_a_plan_reads_a_data_set_once_and_keeps_none(limited, monkeypatch):
    read, load = [], plans.data.load
    monkeypatch.setattr(plans.data, "load", lambda name: read.append(name) or load(name))
    values = {"dataset": "fashion_mnist_20k", "shadow_records": 1000, "records": 2000}
    for times in (1, 2):
        plans.missing_measurements("bayes", parameters.validate("bayes", values))
        assert read == ["fashion_mnist_20k"] * times


def test_of_a_grid_the_longest_measurement_counts_and_the_same_one_once(limited, monkeypatch):
    measured = measurements.measurement("toy/planned", probe={"index": range(1)})(
        lambda index, epochs=1: {"margin": np.zeros((len(index), 1))}
    )
    monkeypatch.setattr(
        plans,
        "missing_measurements",
        lambda name, values: [(measured, 2, {"epochs": values["epochs"]})],
    )
    monkeypatch.setattr(
        type(measured), "estimate", lambda self, models, p: (models * 80.0 * p["epochs"], "")
    )
    plans.prepare("toy", [{"epochs": 1}, {"epochs": 1.5}])
    with pytest.raises(MiaError, match="about 5 min 20 s here, and with what else .* 8 min"):
        plans.prepare("toy", [{"epochs": 1}, {"epochs": 2}, {"epochs": 2}])


def test_sizes_that_do_not_fit_are_refused_with_one_that_does(limited):
    x = np.zeros((300, 8, 8, 1), np.uint8)
    x[np.arange(300), 0, 0, 0] = np.arange(300) % 256
    np.savez("mine.npz", x=x, y=np.arange(300) % 3)
    of_own = {"dataset": "mine.npz", "records": 200, "shadow_records": 200, "classes": "0,1"}
    values = parameters.validate("bayes", of_own, "quick")
    with pytest.raises(MiaError, match="sizes = .* has 200 records .* `-p sizes 66,132`"):
        plans.missing_measurements("bayes", values)
    assert plans.missing_measurements("bayes", values | {"sizes": [66, 132]})
    with pytest.raises(MiaError, match="records asks for 1000 records, and .*mine.npz has 300"):
        plans.missing_measurements("bayes", values | {"records": 1000})


def test_another_network_is_timed_and_one_that_cannot_be_trained_refused(limited, monkeypatch):
    def study(index: range, dataset: str = "fashion_mnist_20k", architecture: str = "mlp:16"):
        return {"margin": np.zeros((len(index), 1))}

    one = measurements.measurement("toy/networks", probe={"index": range(1)})(study)
    monkeypatch.setattr(
        type(one),
        "_nearest",
        lambda self, *_, **__: (1.0, {"architecture": "mlp:16", "dataset": "mnist"}),
    )
    monkeypatch.setattr(measurements, "_pace", lambda network, shape, classes: len(network))
    assert one.estimate(3, one.complete({"architecture": "watson_cnn"})) == (5.0, "")
    monkeypatch.undo()
    with pytest.raises(
        MiaError, match="has no parameters to train|without any entry|cannot be made"
    ):
        measurements._pace("torch.nn:Flatten", (4, 4, 1), 3)


def test_too_few_repetitions_for_verdicts_are_said():
    declared = parameters.parameters("bayes")
    values = {p.name: p.default for p in declared}
    assert parameters.say_unjudged(declared, values) == ""
    said = parameters.say_unjudged(declared, values | {"targets": 4})
    assert "'not run': targets = 4 (they need 8)" in said
