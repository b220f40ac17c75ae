"""`mia publish` and `mia verify`: the queue, what fits into some minutes, and models measured again."""

import json

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from mia_lib import published
from mia_lib.errors import MiaError
from mia_lib.publish import cli, measured
from mia_lib.published import pieces

QUEUE = measured.queue()
TINY = {"dataset": "fashion_mnist_20k", "architecture": "batchnorm_cnn:4,8,8", "records": 300, "epochs": 1}


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """A folder of published pieces of its own."""
    monkeypatch.setenv("MIA_PUBLISHED", str(tmp_path))
    return tmp_path


def test_the_queue_says_of_each_entry_what_it_costs_and_how_it_is_tried():
    assert QUEUE
    for entry in QUEUE:
        assert {"cpu", "card"} <= entry.minutes.keys() and entry.trial, entry.measurement.name
        assert entry.minutes["card"] <= 9 or entry.models > entry.measurement.chunk


@pytest.mark.parametrize("entry", QUEUE, ids=lambda entry: f"{entry.measurement.name} {entry.models}")
def test_an_entry_goes_from_the_queue_to_pieces_on_disk_at_a_hundredth_of_its_size(entry, own_folder):
    one = {"measurement": entry.measurement.name, "models": 2, "parameters": {**entry.parameters, **entry.trial}}
    (own_folder / "queue.yaml").write_text(yaml.safe_dump([one]))
    said = list(measured.next_of_queue(5))
    assert "2 of 2 models are missing, 2 fit" in said[0] and said[1].startswith("wrote ")
    bank = published.load(entry.measurement.name)
    assert len(bank) == 2 and bank.parameters["records"] == entry.trial["records"]
    assert list(measured.next_of_queue(5)) == []
    assert measured.table()["missing"].tolist() == [0]


def test_what_does_not_fit_is_left_for_the_next_time(own_folder, monkeypatch):
    monkeypatch.setenv("MIA_CACHE", str(own_folder / "cache"))
    one = {"measurement": "bank/cifar10-small", "models": 4, "parameters": TINY, "minutes": {"cpu": 60}}
    (own_folder / "queue.yaml").write_text(yaml.safe_dump([one]))
    assert measured.table()[["missing", "here"]].values.tolist() == [[4, "1 h 0 min"]]
    [said] = measured.next_of_queue(9)
    assert "no time for any of the 4 that are missing" in said and not list(own_folder.rglob("*.json"))


def test_models_measured_again_are_the_same_and_others_are_told(own_folder):
    measurement = measured.find("bank/cifar10-small")
    [path] = measurement.publish(range(6), TINY)
    good, said = measured.verify("bank/cifar10-small", {}, 2, seed=0)
    assert good and said.count("the same") == 2
    manifest = json.loads(path.read_text())
    arrays = published.load("bank/cifar10-small").arrays
    path.unlink()
    pieces.write(own_folder, "bank/cifar10-small-000-005", ".npz", {**arrays, "margin": arrays["margin"] + 3}, manifest)
    good, said = measured.verify("bank/cifar10-small", {}, 2, seed=0)
    assert not good and "standard deviations" in said
    shuffled = np.random.default_rng(0).permutation(arrays["margin"], axis=1)
    pieces.write(own_folder, "bank/cifar10-small-000-005", ".npz", {**arrays, "margin": shuffled}, manifest)
    assert not measured.verify("bank/cifar10-small", {}, 1, seed=0)[0]  # the same numbers, of other records


@pytest.mark.parametrize(("words", "said"), [
    (["publish"], "Say what to publish"), (["publish", "bank/cifar-small"], "Did you mean"),
    (["publish", "bank/cifar10-small", "-p", "recods", "3"], "Did you mean 'records'"),
    (["publish", "bank/cifar10-small", "-p", "records"], "has no value"),
    (["publish", "bank/cifar10-small", "-p", "records", "3", "-p", "records", "4"], "given twice"),
    *((["publish", "bank/cifar10-small", "-p", "dataset", "fashion_mnist_20k", "-p", *wrong], said) for *wrong, said in [
        ("records", "abc", "whole number"), ("records", "-5", "out of range"), ("records", "2.5", "whole number"),
        ("records", "99999999", "out of range"), ("records", "[1", "in quotes"), ("seed", "-1", "out of range")]),
    (["verify", "bank/cifar11"], "nothing is published"),
    (["verify", "bank/cifar10-small", "-p", "models", "3"], "not known")])
def test_a_wrong_call_says_what_is_allowed(words, said, own_folder):
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 2 and said in done.output


def test_the_list_says_what_is_there_and_what_is_missing():
    done = CliRunner().invoke(cli.app, ["publish", "--list"])
    assert done.exit_code == 0 and all(entry.measurement.name in done.output for entry in QUEUE)


def test_parameters_of_a_command_line_are_numbers_lists_or_text():
    assert measured.plain({"records": "500", "rate": "0.1", "sizes": "[1, 2]", "dataset": "cifar10", "whole": "null"}) == {
        "records": 500, "rate": 0.1, "sizes": [1, 2], "dataset": "cifar10", "whole": None}
    with pytest.raises(MiaError, match="is not known"):
        measured.find("nothing")
    assert measured.plain({"rate": "1e-3"}) == {"rate": 0.001}


@pytest.mark.parametrize(("text", "said"), [
    ("- [1", "cannot be read"), ("models: 3", "a list of entries"), ("- toy", "measurement and models"),
    ("- {measurement: bank/cifar10-small}", "measurement and models"),
    ("- {measurement: bank/cifar10-small, models: many}", "whole number"),
    ("- {measurement: bank/cifar10-small, models: 2, minuts: {cpu: 1}}", "Did you mean 'minutes'"),
    ("- {measurement: bank/cifar10-small, models: 2, minutes: 3}", "names with values"),
    ("- {measurement: bank/cifar10-small, models: 2, minutes: {cpu: 0}}", "more are needed"),
    ("- {measurement: bank/cifar10-small, models: 2, parameters: {recods: 3}}", "Did you mean 'records'"),
    ("- {measurement: bank/none, models: 2}", "not known")])
def test_a_queue_that_is_wrong_is_refused(text, said, own_folder):
    (own_folder / "queue.yaml").write_text(text)
    with pytest.raises(MiaError, match=said):
        measured.queue()


def test_an_empty_queue_is_none(own_folder):
    (own_folder / "queue.yaml").write_text("# nothing\n")
    assert measured.queue() == []
