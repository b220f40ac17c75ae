"""`mia publish` and `mia verify`: the queue, what fits into some minutes, and models measured again."""

import json
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mia_book import publishing
from mia_book.course import game
from mia_book.pages import cli
from mia_book.pages.parameters import find_root
from mia_book.publishing import queue, writing
from mia_lib import processes, published, store
from mia_lib.errors import MiaError
from mia_lib.training import pool

QUEUE = queue.queue()
KINDS = {
    (entry.measurement.function, *sorted(entry.parameters | entry.trial)): entry
    for entry in reversed(QUEUE)
}
TINY = {
    "dataset": "fashion_mnist_20k",
    "architecture": "batchnorm_cnn:4,8,8",
    "records": 300,
    "epochs": 1,
}
SMALL = "bank/cifar10-small"
FOUR = {"measurement": SMALL, "models": 4, "parameters": TINY}


@pytest.fixture
def own_folder(tmp_path, isolated_cache, monkeypatch):
    """A folder of published pieces of its own, beside a cache where nothing tells what a measurement takes."""
    (folder := tmp_path / "published").mkdir()
    monkeypatch.setenv("MIA_PUBLISHED", str(folder))
    return folder


def enqueue(folder: Path, *entries: dict) -> None:
    (folder / "queue.yaml").write_text(json.dumps(entries))  # is YAML, too


def publish(*words):
    return CliRunner().invoke(cli.app, ["publish", *words])


def test_the_queue_says_of_each_entry_what_it_costs_and_how_it_is_tried_and_the_list_has_all():
    done = publish("--list")
    assert QUEUE and done.exit_code == 0
    for entry in QUEUE:
        assert {"cpu", "card"} <= entry.minutes.keys() and entry.trial and entry.petaflop, (
            entry.measurement.name
        )
        assert entry.minutes["card"] <= 9 or entry.models > entry.measurement.chunk
        assert entry.megabytes / entry.models * entry.measurement.block < writing.FILE_LIMIT / 1e6
        assert entry.measurement.name in done.output
    for one in publishing.catalogue().values():
        assert (
            one.cost(
                one.complete({name: value for name, value in one.probe.items() if name != "index"})
            )
            > 0
        ), one.name
    walked = queue.find("calibration/cifar10-small")
    assert walked.cost(walked.complete({"queries": 1000})) == 501 * walked.cost(walked.complete({}))
    # by how many records it is trained on, not by how many there are
    sized = queue.find("curvature/memorised-sizes")
    cost = {n: sized.cost(sized.complete({"kind": "random", "size": n})) for n in (5000, 45_000)}
    assert 8 < cost[45_000] / cost[5000] < 9


def worked_through(folder: Path, killed: bool = False) -> None:
    """`mia publish --next`, which writes down what it trains, all by itself, or kills its process after its first model."""
    keep = store.keep

    def written(spec, *arguments, **notes):
        kept = keep(spec, *arguments, **notes)
        if spec["kind"] == "model":
            with (folder.parent / "log").open("a") as log:
                log.write(f"{store.address(spec)}\n")
            if killed:
                os.kill(os.getpid(), signal.SIGKILL)
        return kept

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIA_PUBLISHED", str(folder))
        patch.setenv("MIA_CACHE", str(folder.parent / "cache"))
        patch.setattr(
            pool,
            "run_tasks",
            lambda task, calls, finished, *_: [
                finished(number, task(*call)) for number, call in enumerate(calls)
            ],
        )
        patch.setattr(publishing.Measurement, "keep_probe", lambda self: None)  # a test of its own
        patch.setattr(store, "keep", written)
        done = publish("--next", "--minutes", "5")
    assert done.exit_code == 0, done.output
    with (folder.parent / "said").open("a") as said:
        said.write(done.output)


@pytest.mark.parametrize(
    "entry", KINDS.values(), ids=lambda entry: f"{entry.measurement.name} {entry.models}"
)
def test_an_entry_goes_from_the_queue_to_pieces_on_disk_at_a_hundredth_of_its_size(
    entry, own_folder
):
    """Of entries that set the same parameters of the same function, one; that of a bank with a kill in the middle."""
    given = {**entry.parameters, **entry.trial}
    entries = [{"measurement": entry.measurement.name, "models": 2, "parameters": given}]
    if "bank" in given:  # what it is made from is published first
        entries.insert(
            0, {"measurement": given["bank"], "models": 4, "parameters": given["recipe"]}
        )
    enqueue(own_folder, *entries)
    if entry.measurement.name == SMALL:
        process = processes.context().Process(target=worked_through, args=(own_folder, True))
        process.start()
        process.join(600)
        assert process.exitcode == -signal.SIGKILL
    worked_through(own_folder)
    trained = (own_folder.parent / "log").read_text().split()
    assert len(trained) == len(set(trained)) >= 2
    fit = re.findall(
        r"(\d) of \1 models are missing, \1 fit", (own_folder.parent / "said").read_text()
    )
    assert len(fit) == len(entries)
    bank = published.load(entry.measurement.name)
    assert len(bank) == 2 and bank.parameters == entry.measurement.complete(given)
    assert list(queue.next_of_queue(5)) == []
    assert queue.table()["missing"].tolist() == [0] * len(entries)


def test_a_process_that_works_alone_publishes_some_of_the_models(own_folder, monkeypatch):
    """Jobs of an array each have a folder of their own for what they compute."""
    words = [word for name, value in TINY.items() for word in ("-p", name, str(value))]
    for first in (1, 0):
        monkeypatch.setenv("MIA_CACHE", str(own_folder.parent / f"cache{first}"))
        done = publish(SMALL, "--index", f"{first}:{first + 1}", *words)
        assert done.exit_code == 0, done.output
    assert sorted(path.name[-12:] for path in (own_folder / "bank").glob("*.json")) == [
        "000-000.json",
        "001-001.json",
    ]
    together = published.load(SMALL, 2)
    monkeypatch.setenv("MIA_PUBLISHED", str(own_folder / "other"))
    monkeypatch.setenv("MIA_CACHE", str(own_folder.parent / "cache"))
    alone = queue.find(SMALL)(2, **TINY)
    assert all((alone.arrays[name] == array).all() for name, array in together.arrays.items())


def test_what_a_piece_of_another_kind_took_tells_nothing_and_what_does_not_fit_is_left(own_folder):
    enqueue(own_folder, {**FOUR, "minutes": {"cpu": 60}})
    assert queue.table()[["missing", "here"]].values.tolist() == [[4, "1 h 0 min"]]
    [said] = queue.next_of_queue(9)
    assert "no time for any of the 4 that are missing" in said
    assert not list(own_folder.rglob("*.json"))
    publishing.catalogue()[SMALL].publish(range(2), TINY)
    enqueue(
        own_folder,
        *(
            {**FOUR, "minutes": {"cpu": 60}, "parameters": {**TINY, **changed}}
            for changed in ({"epochs": 2}, {"architecture": "mlp:4"})
        ),
    )
    first, second = queue.queue()
    assert first.each() < 60 and second.each() == 900
    [path] = (own_folder / "bank").glob("*.json")
    manifest = json.loads(path.read_text())
    assert manifest["seconds"] > 0
    # less than any clock tells is known, too
    path.write_text(json.dumps(manifest | {"seconds": 0}))
    assert first.each() == 0 and "4 fit (about 0 s)" in next(queue.next_of_queue(9))


def test_models_measured_again_are_the_same_and_others_are_told(own_folder):
    measurement = queue.find(SMALL)
    [path] = measurement.publish(range(6), TINY)
    good, said = queue.verify(SMALL, {}, 2, seed=0)
    assert good and said.count("the same") == 2
    manifest = json.loads(path.read_text())
    arrays = published.load(SMALL).arrays
    path.unlink()
    writing.write(
        own_folder,
        "bank/cifar10-small-000-005",
        ".npz",
        {**arrays, "margin": arrays["margin"] + 3},
        manifest,
    )
    good, said = queue.verify(SMALL, {}, 2, seed=0)
    assert not good and "standard deviations" in said
    shuffled = np.random.default_rng(0).permutation(arrays["margin"], axis=1)
    writing.write(
        own_folder, "bank/cifar10-small-000-005", ".npz", {**arrays, "margin": shuffled}, manifest
    )
    assert not queue.verify(SMALL, {}, 1, seed=0)[0]  # the same numbers, of other records


@pytest.mark.parametrize("where", ["manifest", "definitions"])
def test_nothing_is_measured_again_by_parameters_that_the_code_here_does_not_give(
    own_folder, tmp_path, monkeypatch, where
):
    """`published.load` takes defaults from the folder, and hashes of sources as they stand there."""
    [path] = queue.find(SMALL).publish(range(2), TINY)
    code = f"torch.utils.collect_env:run('touch {tmp_path}/ran')"
    manifest, file = json.loads(path.read_text()), own_folder / "definitions.json"
    if where == "manifest":
        manifest["parameters"]["architecture"] = code
        manifest["own"] = {"architecture": "0" * 64}
    else:
        del manifest["parameters"]["architecture"]
        definitions = json.loads(file.read_text())
        definitions[SMALL]["defaults"]["architecture"] = code
        file.write_text(json.dumps(definitions))
    path.write_text(json.dumps(manifest))
    assert published.load(SMALL).parameters["architecture"] == code
    monkeypatch.setattr(game, "practise", lambda *given: None)
    for call in (
        lambda: queue.verify(SMALL, {}, 1),
        lambda: game.hide(tmp_path / "game", find_root(), SMALL, 2),
    ):
        with pytest.raises(MiaError, match="is not what the code here measures"):
            call()
    assert not (tmp_path / "ran").exists() and not (tmp_path / "game").exists()


def test_a_model_that_cannot_be_measured_again_hides_no_other(own_folder, monkeypatch):
    measurement = queue.find(SMALL)
    measurement.publish(range(4), TINY)
    compute = publishing.Measurement.compute

    def broken(measurement, index, parameters):
        if index.start == 0:
            raise OSError("unplugged")
        return compute(measurement, index, parameters)

    monkeypatch.setattr(publishing.Measurement, "compute", broken)
    good, said = queue.verify(SMALL, {}, 4, seed=0)
    assert not good and "model 0: could not be measured (OSError: unplugged)" in said
    assert said.count("the same") == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("publish", "Say what to publish"),
        ("publish bank/cifar-small", "Did you mean"),
        (f"publish {SMALL} --index 3:3", "two whole numbers"),
        (f"publish {SMALL} -p recods 3", "Did you mean 'records'"),
        *(
            (f"publish {SMALL} -p dataset fashion_mnist_20k -p {wrong}", said)
            for wrong, said in [
                ("records 2.5", "whole number"),
                ("records -5", "out of range"),
                ("records [1", "in quotes"),
            ]
        ),
        ("verify bank/cifar11", "nothing is published"),
        (f"verify {SMALL} -p models 3", "not known"),
    ],
)
def test_a_wrong_call_says_what_is_allowed(words, said, own_folder):
    done = CliRunner().invoke(cli.app, words.split())
    assert done.exit_code == 2 and said in done.output


def test_the_page_says_what_was_measured_where_and_what_is_missing(own_folder):
    publishing.catalogue()[SMALL].publish(range(2), TINY)
    four = {**FOUR, "petaflop": 8, "minutes": {"cpu": 60, "card": 2}}
    enqueue(own_folder, four, {**four, "models": 2})
    done, missing = (part.splitlines() for part in queue.page().split("Still to be measured"))
    assert "| `bank/cifar10-small`, architecture batchnorm_cnn:4,8,8, dataset" in done[2]
    assert "| 2 |" in done[2] and "CPU cores |" in done[2]
    # of the other entry nothing is missing
    assert len([line for line in missing if line.startswith("| `")]) == 1
    assert "| 2 | 4 | 30 min | 1 min |" in missing[4]


def test_no_parameter_is_markup_on_the_page(own_folder):
    enqueue(own_folder, {**FOUR, "petaflop": 8, "parameters": {"dataset": "<img src=x>|[a](b)`c"}})
    assert "dataset -img src=x--[a-b)-c" in queue.page()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- [1", "queue.yaml is not YAML"),
        ("models: 3", "a list of entries"),
        ("", "queue.yaml holds nothing"),
        ("- toy", "entry 1 of .* valid dictionary"),
        ("- {measurement: bank/cifar10-small, models: many}", "models = 'many': .* valid integer"),
        (
            "- {measurement: bank/cifar10-small, models: 2, minuts: {cpu: 1}}",
            "'minuts' is not known. Did you mean 'minutes'",
        ),
        (
            "- {measurement: bank/cifar10-small, models: 2, minutes: {cpu: 0}}",
            "minutes.cpu = 0: .* greater than 0",
        ),
        (
            "- {measurement: bank/cifar10-small, models: 2, parameters: {recods: 3}}",
            "Did you mean 'records'",
        ),
    ],
)
def test_a_queue_that_is_wrong_is_refused(text, said, own_folder):
    (own_folder / "queue.yaml").write_text(text)
    with pytest.raises(MiaError, match=said):
        queue.queue()


def test_a_queue_that_cannot_be_read_is_refused(own_folder):
    assert queue.queue() == [] == queue.table()["missing"].tolist()
    (path := own_folder / "queue.yaml").symlink_to(own_folder / "gone.yaml")
    with pytest.raises(MiaError, match="queue.yaml cannot be read: No such file"):
        queue.queue()
    path.unlink()
    path.mkdir()
    with pytest.raises(MiaError, match="queue.yaml cannot be read: Is a directory"):
        queue.queue()


def test_what_there_is_no_room_for_and_what_fails_is_said_and_the_next_is_measured(
    own_folder, monkeypatch
):
    large = {**FOUR, "minutes": {"cpu": 1}, "megabytes": 8}
    enqueue(
        own_folder,
        large,
        {**FOUR, "parameters": {**TINY, "records": 999_999}},
        {**large, "models": 2, "megabytes": 0.02},
    )
    monkeypatch.setattr(writing, "TOTAL_LIMIT", 400_000)
    done = publish("--next", "--minutes", "5")
    said = done.output.splitlines()
    assert "no room for any of the 4 that are missing, of 2.00 MB each; 0.4 MB are left" in said[0]
    assert done.exit_code == 1
    assert any(line.startswith("FAILED: bank/cifar10-small: records = 999999") for line in said)
    assert any("2 of 2 models are missing, 2 fit" in line for line in said)
    assert said[-1].startswith("wrote ")
    with monkeypatch.context() as broken:
        broken.setattr(
            queue.Measurement,
            "publish",
            lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")),
        )
        small = {**large, "models": 4, "megabytes": 0.01}
        enqueue(own_folder, *({**small, "parameters": {**TINY, "seed": seed}} for seed in (3, 4)))
        done = publish("--next", "--minutes", "5")
    assert (
        done.output.count("FAILED: bank/cifar10-small: OSError: [Errno 5] Input/output error") == 2
    )
    assert done.exit_code == 1
    monkeypatch.setattr(
        writing,
        "TOTAL_LIMIT",
        4200 + sum(f.stat().st_size for f in own_folder.rglob("[!.]*") if f.is_file()),
    )
    enqueue(own_folder, {**large, "parameters": {**TINY, "seed": 2}, "megabytes": 0.01})
    assert "4 of 4 models are missing, 1 fit" in next(queue.next_of_queue(5))
