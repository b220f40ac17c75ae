"""`mia publish` and `mia verify`: the queue, what fits into some minutes, and models measured again."""

import json
import os
import re
import signal
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from mia_lib import processes, published, store
from mia_lib.errors import MiaError
from mia_lib.papers import costs
from mia_lib.publish import cli, measured
from mia_lib.published import pieces
from mia_lib.training import pool
from mia_lib.training.recipe import TrainConfig

QUEUE = measured.queue()
KINDS = {(entry.measurement.function, *sorted(entry.parameters | entry.trial)): entry for entry in reversed(QUEUE)}
TINY = {"dataset": "fashion_mnist_20k", "architecture": "batchnorm_cnn:4,8,8", "records": 300, "epochs": 1}
FOUR = {"measurement": "bank/cifar10-small", "models": 4, "parameters": TINY}


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """A folder of published pieces of its own."""
    (folder := tmp_path / "published").mkdir()
    monkeypatch.setenv("MIA_PUBLISHED", str(folder))
    return folder


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache of its own, where nothing tells what a measurement takes."""
    monkeypatch.setenv("MIA_CACHE", str(tmp_path / "cache"))


def enqueue(folder: Path, *entries: dict) -> None:
    (folder / "queue.yaml").write_text(yaml.safe_dump(list(entries)))


def test_the_queue_says_of_each_entry_what_it_costs_and_how_it_is_tried():
    assert QUEUE
    for entry in QUEUE:
        assert {"cpu", "card"} <= entry.minutes.keys() and entry.trial and entry.petaflop, entry.measurement.name
        assert entry.minutes["card"] <= 9 or entry.models > entry.measurement.chunk
        assert entry.megabytes / entry.models * entry.measurement.block < pieces.FILE_LIMIT / 1e6


SIZES = {"cifar10": (50_000, 10, (32, 32, 3)), "cifar100": (50_000, 100, (32, 32, 3)),
         "fashion_mnist": (60_000, 10, (28, 28, 1)), "fashion_mnist_20k": (20_000, 10, (28, 28, 1)),
         "mnist": (60_000, 10, (28, 28, 1))}


@pytest.mark.parametrize("entry", QUEUE, ids=lambda entry: f"{entry.measurement.name} {entry.models}")
def test_the_operations_of_an_entry_are_those_of_its_training(entry):
    given = entry.parameters
    if "bank" in given:
        pytest.skip("regressions on published models: PyTorch counts too many operations for grouped convolutions")
    records, classes, shape = SIZES[given["dataset"]]
    config = TrainConfig(given["architecture"], epochs=given["epochs"])
    if entry.measurement.name.startswith("calibration/"):
        longer = 1 + 1 + given["forgetting_epochs"] / given["epochs"]  # of a target, a reference and a forgetful copy
        expected = 1.5 * longer * costs.training(config, shape, classes, records // 4)  # and a rehearsal at half the size
    else:
        expected = costs.training(config, shape, classes, (given["records"] or records) // 2)
    if "references" in given and "count" in given:  # of a target, those of half of the records one by one, and of the others
        expected *= 1 + (given["count"] // 2 + 1) * given["references"]
    if "iterations" in given:  # four losses each, in float32 and of some in float64
        forward = costs.training(TrainConfig(given["architecture"], epochs=1), shape, classes, 1) / 3
        expected += forward * (given["asked"] + given["precisely"]) * given["views"] * 4 * given["iterations"]
    assert entry.petaflop == pytest.approx(entry.models * expected / 1e15, rel=0.05)


def worked_through(folder: Path, killed: bool) -> None:
    """`mia publish --next`, which writes down what it trains, all by itself, and is killed after its first model."""
    os.environ.update(MIA_PUBLISHED=str(folder), MIA_CACHE=str(folder.parent / "cache"))
    pool.run_tasks = lambda task, calls, finished, *_: [finished(number, task(*call)) for number, call in enumerate(calls)]
    published.Measurement.keep_probe = lambda self: None  # a test of its own
    keep = store.keep

    def written(spec, *arguments, **notes):
        kept = keep(spec, *arguments, **notes)
        if spec["kind"] == "model":
            with (folder.parent / "log").open("a") as log:
                log.write(f"{store.address(spec)}\n")
            if killed:
                os.kill(os.getpid(), signal.SIGKILL)
        return kept

    store.keep = written
    with (folder.parent / "said").open("a", buffering=1) as said, redirect_stdout(said):
        cli.app(["publish", "--next", "--minutes", "5"])


@pytest.mark.parametrize("entry", KINDS.values(), ids=lambda entry: f"{entry.measurement.name} {entry.models}")
def test_an_entry_goes_from_the_queue_to_pieces_on_disk_at_a_hundredth_of_its_size_with_a_kill_in_the_middle(
        entry, own_folder):
    """Of entries that set the same parameters of the same function, one."""
    given = {**entry.parameters, **entry.trial}
    entries = [{"measurement": entry.measurement.name, "models": 2, "parameters": given}]
    if "bank" in given:  # what it is made from is published first
        entries.insert(0, {"measurement": given["bank"], "models": 4, "parameters": given["recipe"]})
    enqueue(own_folder, *entries)
    for killed, code in ((True, {-signal.SIGKILL}), (False, {0, None})):
        process = processes.context().Process(target=worked_through, args=(own_folder, killed))
        process.start()
        process.join(600)
        assert process.exitcode in code
    trained = (own_folder.parent / "log").read_text().split()
    assert len(trained) == len(set(trained)) >= 2
    fit = re.findall(r"(\d) of \1 models are missing, \1 fit", (own_folder.parent / "said").read_text())
    assert len(fit) == len(entries) + 1
    bank = published.load(entry.measurement.name)
    assert len(bank) == 2 and bank.parameters == entry.measurement.complete(given)
    assert list(measured.next_of_queue(5)) == []
    assert measured.table()["missing"].tolist() == [0] * len(entries)


def test_a_process_that_works_alone_publishes_some_of_the_models(own_folder, monkeypatch):
    """Jobs of an array each have a folder of their own for what they compute."""
    for first in (2, 0):
        monkeypatch.setenv("MIA_CACHE", str(own_folder.parent / f"cache{first}"))
        words = [word for name, value in TINY.items() for word in ("-p", name, str(value))]
        done = CliRunner().invoke(cli.app, ["publish", "bank/cifar10-small", "--index", f"{first}:{first + 2}", *words])
        assert done.exit_code == 0, done.output
    assert sorted(path.name[-12:] for path in (own_folder / "bank").glob("*.json")) == ["000-001.json", "002-003.json"]
    together = published.load("bank/cifar10-small", 4)
    monkeypatch.setenv("MIA_PUBLISHED", str(own_folder / "other"))
    monkeypatch.setenv("MIA_CACHE", str(own_folder.parent / "cache"))
    alone = measured.find("bank/cifar10-small")(4, **TINY)
    assert all((alone.arrays[name] == array).all() for name, array in together.arrays.items())


def test_what_there_is_no_room_for_is_said_before_it_is_measured(own_folder, monkeypatch):
    large = {**FOUR, "minutes": {"cpu": 1}, "megabytes": 8}
    enqueue(own_folder, large, {**large, "parameters": {**TINY, "seed": 1}, "megabytes": 0.04})
    monkeypatch.setattr(pieces, "TOTAL_LIMIT", 400_000)
    said = list(measured.next_of_queue(5))
    assert "no room for any of the 4 that are missing, of 2.00 MB each; 0.4 MB are left" in said[0]
    assert "4 of 4 models are missing, 4 fit" in said[1] and said[2].startswith("wrote ")
    monkeypatch.setattr(pieces, "TOTAL_LIMIT", 4200 + sum(f.stat().st_size for f in own_folder.rglob("[!.]*") if f.is_file()))
    enqueue(own_folder, {**large, "parameters": {**TINY, "seed": 2}, "megabytes": 0.01})
    assert "4 of 4 models are missing, 1 fit" in next(measured.next_of_queue(5))


def test_an_entry_that_fails_is_said_and_the_next_is_measured(own_folder, own_cache):
    enqueue(own_folder, {**FOUR, "parameters": {**TINY, "records": 999_999}}, {**FOUR, "models": 2})
    done = CliRunner().invoke(cli.app, ["publish", "--next", "--minutes", "5"])
    said = done.output.splitlines()
    assert done.exit_code == 1 and any(line.startswith("FAILED: bank/cifar10-small: records = 999999") for line in said)
    assert said[-1].startswith("wrote ")


def test_what_a_piece_of_another_kind_took_tells_nothing_where_the_queue_does(own_folder, own_cache):
    published.catalogue()["bank/cifar10-small"].publish(range(2), TINY)
    enqueue(own_folder, *({**FOUR, "minutes": {"cpu": 60}, "parameters": {**TINY, **changed}}
                          for changed in ({"epochs": 2}, {"architecture": "mlp:4"})))
    first, second = measured.queue()
    assert first.each() < 60 and second.each() == 900


def test_every_measurement_says_what_its_cost_depends_on():
    for one in published.catalogue().values():
        assert one.cost(one.complete({name: value for name, value in one.probe.items() if name != "index"})) > 0, one.name
    walked = measured.find("calibration/cifar10-small")
    assert walked.cost(walked.complete({"queries": 1000})) == 501 * walked.cost(walked.complete({}))


def test_what_does_not_fit_is_left_for_the_next_time(own_folder, own_cache):
    enqueue(own_folder, {**FOUR, "minutes": {"cpu": 60}})
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
    (["publish", "bank/cifar10-small", "--index", "3"], "two whole numbers"),
    (["publish", "bank/cifar10-small", "--index", "5:3"], "two whole numbers"),
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


def test_the_page_says_what_was_measured_where_and_what_is_missing(own_folder):
    published.catalogue()["bank/cifar10-small"].publish(range(2), TINY)
    four = {**FOUR, "petaflop": 8, "minutes": {"cpu": 60, "card": 2}}
    enqueue(own_folder, four, {**four, "models": 2})
    done, missing = (part.splitlines() for part in measured.page().split("Still to be measured"))
    assert "| `bank/cifar10-small`, architecture batchnorm_cnn:4,8,8, dataset" in done[2]
    assert "| 2 |" in done[2] and "CPU cores |" in done[2]
    assert len([line for line in missing if line.startswith("| `")]) == 1  # of the other entry nothing is missing
    assert "| 2 | 4 | 30 min | 1 min |" in missing[4]


@pytest.mark.parametrize(("text", "said"), [
    ("- [1", "cannot be read"), ("models: 3", "a list of entries"), ("- toy", "entry 1 of .* valid dictionary"),
    ("- {measurement: bank/cifar10-small}", "models: Field required"),
    ("- {measurement: bank/cifar10-small, models: many}", "models: .* valid integer"),
    ("- {measurement: bank/cifar10-small, models: 2, minuts: {cpu: 1}}", "minuts: Extra inputs are not permitted"),
    ("- {measurement: bank/cifar10-small, models: 2, minutes: 3}", "minutes: .* valid dictionary"),
    ("- {measurement: bank/cifar10-small, models: 2, minutes: {cpu: 0}}", "minutes.cpu: .* greater than 0"),
    ("- {measurement: bank/cifar10-small, models: 2, parameters: {recods: 3}}", "Did you mean 'records'"),
    ("- {measurement: bank/none, models: 2}", "not known")])
def test_a_queue_that_is_wrong_is_refused(text, said, own_folder):
    (own_folder / "queue.yaml").write_text(text)
    with pytest.raises(MiaError, match=said):
        measured.queue()
