"""The engine: one model or many, here or elsewhere, stopped or not, the same models come out."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from mia_book import publishing
from mia_lib import data, membership, models, published, store, training
from mia_lib.errors import MiaError
from mia_lib.training import devices, gpu, loop, pool
from mia_lib.training import ensemble as ensembles
from mia_lib.training.losses import record_loss
from mia_lib.training.recipe import TrainConfig

RNG = np.random.default_rng(0)
IMAGES = data.from_arrays(
    RNG.integers(0, 255, (60, 12, 12, 3)).astype(np.uint8), RNG.integers(0, 3, 60), "toy images"
)
TABLE = data.Dataset(
    "toy table",
    RNG.normal(size=(80, 5)).astype(np.float32),
    RNG.integers(0, 2, 80),
    80,
    ("no", "yes"),
)
MEMBERS = membership.balanced_halves(80, 4)
CPU = torch.device("cpu")
TOLERANCE = 2e-4  # stated in book/machines.md: of per-record losses, between back ends, after short trainings

pytestmark = pytest.mark.usefixtures("isolated_cache")


def halves(records, count):
    return [np.flatnonzero(row) for row in membership.balanced_halves(len(records), count)]


def task_of(records, config, rows, indices, **more):
    return loop.Task(records.x, records.y, len(records.classes), config, rows, indices, **more)


def fitted(records, config, rows, indices, start=None, validation=None, **how):
    return loop.fit_group(
        task_of(records, config, rows, indices, start=start, validation=validation), **how
    )


def losses(records, config, outcome):
    network = ensembles.rebuilt(config, records.shape, len(records.classes), outcome.arrays)
    with torch.no_grad():
        return record_loss(
            network(models.to_input(records.x)), torch.from_numpy(records.y), config.loss
        ).numpy()


RECIPES = [
    (TABLE, TrainConfig("mlp:8,4", epochs=5, schedule="cosine")),
    (
        TABLE,
        TrainConfig(
            "sigmoid_regression",
            epochs=5,
            loss="brier",
            optimizer="sgd",
            learning_rate=0.1,
            momentum=0.9,
        ),
    ),
    (IMAGES, TrainConfig("tanh_cnn:2,3,4", epochs=3, batch_size=8, augmentation="flip_crop:2")),
    # with dropout
    (
        IMAGES,
        TrainConfig("leino_cnn:2,3,8", epochs=3, batch_size=8, augmentation="flip_resized_crop"),
    ),
    # with batch normalisation
    (
        IMAGES,
        TrainConfig(
            "resnet9:2,3,4,5", epochs=1, batch_size=15, optimizer="sgd", learning_rate=0.01
        ),
    ),
]


@pytest.mark.parametrize(
    "records,config", RECIPES, ids=lambda value: getattr(value, "architecture", "")
)
def test_many_models_at_once_are_the_models_one_by_one(records, config):
    rows = halves(records, 4)
    together = fitted(records, config, rows, [0, 1, 2, 3], stacked=True)
    for m in (0, 3):
        [alone] = fitted(records, config, [rows[m]], [m], stacked=False)
        assert_allclose(
            losses(records, config, together[m]),
            losses(records, config, alone),
            rtol=TOLERANCE,
            atol=TOLERANCE,
        )
        assert_allclose(
            together[m].arrays["history"], alone.arrays["history"], rtol=1e-3, atol=1e-4
        )
        assert set(together[m].arrays) == set(alone.arrays)


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig("logistic_regression", epochs=6, batch_size=7),
        TrainConfig(
            "mlp:5,3", epochs=6, batch_size=16, optimizer="sgd", momentum=0.9, weight_decay=1e-3
        ),
    ],
)
def test_how_many_are_stacked_does_not_matter_to_the_last_bit(config):
    rows = halves(TABLE, 12)
    all_at_once = fitted(TABLE, config, rows, list(range(12)))
    for part in ([0], [2, 5], [1, 4, 6, 7, 10], list(range(9))):
        for m, outcome in zip(
            part, fitted(TABLE, config, [rows[m] for m in part], part), strict=True
        ):
            assert all(
                (outcome.arrays[k] == all_at_once[m].arrays[k]).all() for k in outcome.arrays
            )


class Stop(Exception):
    pass


@pytest.fixture
def stop_after(monkeypatch):
    """Makes the training stop after so many epochs; gives the list of those that ran, which are kept one by one."""
    run_epoch, ran = loop.Group.run_epoch, []

    def stop_after(epochs: int) -> list[int]:
        def run(group):
            if len(ran) == epochs:
                raise Stop
            ran.append(group.epoch)
            run_epoch(group)

        monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
        monkeypatch.setattr(loop.Group, "run_epoch", run)
        return ran

    return stop_after


SPEC = {"kind": "checkpoint", "of": "this test", "code": ""}


@pytest.mark.parametrize(
    "records, config, stacked, validated",
    [
        (IMAGES, RECIPES[3][1], True, True),
        (IMAGES, RECIPES[3][1], False, False),
        (
            TABLE,
            TrainConfig(
                "mlp:8", epochs=6, optimizer="sgd", momentum=0.9, schedule="step", step_epochs=2
            ),
            True,
            True,
        ),
    ],
)
def test_a_training_that_was_stopped_goes_on_from_its_checkpoint_to_the_same_end(
    stop_after, records, config, stacked, validated
):
    rows = halves(records, 4)[: 3 if stacked else 1]
    validation = [np.setdiff1d(np.arange(len(records)), r) for r in rows] if validated else None
    how = {"indices": list(range(len(rows))), "validation": validation, "stacked": stacked}
    whole = fitted(records, config, rows, **how)
    stop_after(2)
    with pytest.raises(Stop):
        fitted(records, config, rows, **how, checkpoint=SPEC)
    ran = stop_after(99)
    again = fitted(records, config, rows, **how, checkpoint=SPEC)
    assert ran == list(range(config.epochs))  # no epoch twice
    for one, two in zip(whole, again, strict=True):
        assert all((one.arrays[name] == two.arrays[name]).all() for name in one.arrays)


def test_of_two_checkpoints_the_later_sound_one_counts(stop_after):
    config, rows = TrainConfig("mlp:8", epochs=6), halves(TABLE, 4)
    ran = stop_after(4)
    with pytest.raises(Stop):
        fitted(TABLE, config, rows, list(range(4)), checkpoint=SPEC)
    [latest] = [s for s in loop.checkpoint_slots(SPEC) if store.look_up(s).arrays["epoch"] == 4]
    path, _ = store._paths(store.cache_dir(), latest, store.key(latest))
    path.write_bytes(b"half a file")  # killed while it was written
    ran.clear()
    with pytest.warns(UserWarning, match="damaged"):
        fitted(TABLE, config, rows, list(range(4)), checkpoint=SPEC)
    assert ran == [3, 4, 5]


def test_records_that_were_damaged_on_the_way_to_the_workers_are_written_again():
    ensemble = training.train(
        TABLE, membership.balanced_halves(80, 2), TrainConfig("mlp:4", epochs=1)
    )
    path = Path(ensembles.records_file(TABLE))
    for harm in (lambda content: content[:-40], lambda content: content[:-2] + b"xx"):
        path.write_bytes(harm(path.read_bytes()))
        ensembles._verified.clear()
        assert (np.load(ensembles.records_file(TABLE)) == TABLE.x).all()
    assert ensemble.fit().missing() == []


def test_a_model_that_diverges_leaves_the_others_alone():
    x, members = np.array(TABLE.x, np.float64), np.ones((4, 80), bool)
    x[0] = 1e300  # finite here, but not in float32
    members[:3, 0] = members[3, 1] = False  # all four equally large
    broken = data.Dataset("broken", x, TABLE.y, 80, TABLE.classes)
    ensemble = training.train(broken, members, TrainConfig("mlp:4", epochs=2), workers=1)
    with pytest.raises(MiaError, match="Model 3 .*diverged"):
        ensemble.fit()
    assert ensemble.missing() == [3]


@pytest.mark.parametrize(
    "records, config, stacked",
    [
        (
            TABLE,
            TrainConfig(
                "mlp:8", epochs=7, batch_size=8, optimizer="sgd", learning_rate=0.5, momentum=0.9
            ),
            True,
        ),
        (
            IMAGES,
            TrainConfig("batchnorm_cnn:3,4,4", epochs=6, batch_size=5, learning_rate=0.05),
            False,
        ),
    ],
)
def test_validated_models_keep_the_weights_of_their_best_epoch(records, config, stacked):
    rows, numbers = (halves(records, 4)[::2], [0, 1]) if stacked else (halves(records, 2)[:1], [0])
    holdouts = [np.setdiff1d(np.arange(len(records)), r)[:29] for r in rows]
    found = fitted(records, config, rows, numbers, stacked=stacked, validation=holdouts)
    for m, (outcome, own) in enumerate(zip(found, holdouts, strict=True)):
        accuracy = outcome.arrays["validation"]
        best = int(np.argmax(accuracy))
        [stopped] = fitted(
            records, replace(config, epochs=best + 1), rows[m : m + 1], [m], stacked=stacked
        )
        for name, value in stopped.arrays.items():
            if name != "history":
                assert_allclose(outcome.arrays[name], value, atol=1e-4, err_msg=name)
        network = ensembles.rebuilt(config, records.shape, len(records.classes), outcome.arrays)
        with torch.no_grad():
            right = network(models.to_input(records.x[own])).argmax(1).numpy() == records.y[own]
        assert right.mean() == pytest.approx(accuracy[best])
    assert np.ptp(np.concatenate([o.arrays["validation"] for o in found])) > 0


def test_a_warm_start_goes_on_from_the_weights_it_names():
    config = TrainConfig("mlp:8", epochs=3)
    first = training.train(TABLE, MEMBERS, config)
    still, on, other = (
        training.train(TABLE, MEMBERS[:2], replace(config, epochs=epochs), start=(first, of))
        for epochs, of in ((0, [2, 0]), (1, [2, 0]), (1, [1, 0]))
    )
    for m, of in enumerate((2, 0)):
        assert (still.parameters(m) == first.parameters(of)).all()
    afresh = training.train(TABLE, MEMBERS[:2], replace(config, epochs=1))
    assert np.linalg.norm(on.parameters(0) - first.parameters(2)) < np.linalg.norm(
        afresh.parameters(0) - first.parameters(2)
    )
    assert len({store.key(e.spec(0)) for e in (still, on, afresh, other)}) == 4


def test_a_part_of_an_ensemble_holds_the_same_models_and_trains_no_others():
    validation = ~MEMBERS & (np.cumsum(~MEMBERS, 1) <= 20)
    whole = training.train(TABLE, MEMBERS, TrainConfig("mlp:8", epochs=3), validation=validation)
    # two of which nobody has trained
    on = training.train(TABLE, MEMBERS, whole.config, start=(whole, [3, 2, 1, 0]))
    for ensemble in (whole, on):
        part = ensemble.part([3, 1])
        assert [store.key(part.spec(k)) for k in (0, 1)] == [
            store.key(ensemble.spec(m)) for m in (3, 1)
        ]
        assert part.part(np.array([False, True])).spec(0) == ensemble.spec(1)
        part.fit()
        assert ensemble is on or ensemble.missing() == [0, 2]
        found = part.parameters(0)
        for m in range(4):
            store.discard(ensemble.spec(m))
        assert (found == ensemble.parameters(3)).all()


@pytest.mark.parametrize(
    "start, architecture, validation, words",
    [
        ([0], "mlp:8", None, "start names 1 models, 0 to 0, of 4"),
        ([0, 1, 2, 9], "mlp:8", None, "start names 4 models, 0 to 9"),
        (range(4), "mlp:9", None, "own architecture"),
        (None, "mlp:8", MEMBERS, "160 records are in the training set"),
        (None, "mlp:8", np.array([*~MEMBERS[:3], MEMBERS[3] & False]), "equally many"),
    ],
)
def test_a_start_and_validation_that_do_not_fit_are_refused(start, architecture, validation, words):
    config = TrainConfig("mlp:8", epochs=1)
    start = start and (training.train(TABLE, MEMBERS, config), start)
    with pytest.raises(MiaError, match=words):
        training.train(
            TABLE,
            MEMBERS,
            replace(config, architecture=architecture),
            start=start,
            validation=validation,
        )


def test_a_card_trains_the_same_models_and_goes_on_with_half_as_many_when_memory_runs_out(
    monkeypatch,
):
    config, rows = TrainConfig("tanh_cnn:2,3,4", epochs=2, batch_size=8), halves(IMAGES, 6)
    real, sizes, kept = gpu.fit_group, [], {}

    def small_memory(task, *how):
        sizes.append(len(task))
        if len(task) > 2:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
        return real(task, *how)

    monkeypatch.setattr(gpu, "fit_group", small_memory)
    monkeypatch.setattr(gpu, "stack_size", lambda *_: 6)
    others = halves(IMAGES, 6)[::-1]
    before = fitted(IMAGES, config, rows, list(range(6)), stacked=True)
    start = [ensembles.weights_among(outcome.arrays) for outcome in before]
    gpu.fit_on_gpu(
        task_of(IMAGES, config, rows, list(range(6)), start=start, validation=others),
        CPU,
        kept.__setitem__,
        "models",
        lambda numbers: {"kind": "checkpoint", "models": numbers, "code": ""},
    )
    assert sizes == [6, 3, 2, 1, 2, 1] and sorted(kept) == list(range(6))
    [alone] = fitted(IMAGES, config, [rows[4]], [4], start=start[4:5], validation=others[4:5])
    assert_allclose(losses(IMAGES, config, kept[4]), losses(IMAGES, config, alone), atol=TOLERANCE)


@pytest.mark.parametrize(
    "speeds,expected",
    [
        ({1: 10, 2: 19, 4: 35, 8: 38}, 4),
        ({1: 10, 2: 10}, 1),
        ({1: 1, 2: 2, 4: 4, 8: 8, 16: 16, 32: 32, 64: 64}, 64),
        ({1: 10, 2: None}, 1),
        ({1: None, 2: None}, 1),
    ],
)
def test_as_many_models_at_once_as_pays(monkeypatch, speeds, expected):
    def speed(task, device):
        if speeds[len(task)] is None:
            raise RuntimeError("CUDA error: out of memory")
        return speeds[len(task)]

    monkeypatch.setattr(gpu, "_models_per_second", speed)
    assert (
        gpu.stack_size(
            task_of(TABLE, TrainConfig("mlp:4"), [np.arange(4)] * 100, list(range(100))), CPU
        )
        == expected
    )


@pytest.mark.parametrize(
    "config", [TrainConfig("mlp:4"), TrainConfig("mlp:4", optimizer="sgd", momentum=0.9)]
)
def test_a_replayed_step_does_what_the_step_does(monkeypatch, config):
    """With a recording that runs its steps at once, as a CUDA graph does before it is replayed."""
    monkeypatch.setattr(
        loop, "capture_graph", lambda step, device, pool: [step() for _ in range(4)] and step
    )
    groups = [
        loop.Group(task_of(TABLE, config, halves(TABLE, 2), [0, 1]), CPU, True) for _ in range(2)
    ]
    for k in range(3):
        picked, views = groups[0].rows[:, 8 * k : 8 * k + 8], torch.zeros(2, 8, 0)
        groups[0].step(picked, views)
        groups[1].recorded_step(picked, views)
    for one, two in zip(*(g._tensors() for g in groups), strict=True):
        torch.testing.assert_close(one, two)


def test_a_machine_without_a_card_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for device, words in (
        ("cuda:1", "device = 'cuda:1', but there is no CUDA here.*Say 'cpu'"),
        ("tpu", "allowed are 'cpu'"),
        (0, "device = 'cuda:0', but there is no CUDA here"),
        (-1, "allowed are .* the number of a card"),
    ):
        with pytest.raises(MiaError, match=words):
            training.train(TABLE, MEMBERS, TrainConfig("mlp:4"), device=device)
    monkeypatch.delenv("MIA_DEVICE")
    assert devices.pick() == CPU == devices.pick("cpu")


def test_true_float32_is_set_for_a_while_whatever_was_set_before():
    def short() -> bool:
        switch = torch.backends.cuda.matmul
        if hasattr(torch.backends.cudnn, "conv"):
            return switch.fp32_precision == "tf32"
        return switch.allow_tf32

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with devices.plain_float32():
            seen = [short()]
            with devices.plain_float32(tf32=True):
                seen.append(short())
            assert [*seen, short()] == [False, True, False]
        assert short()
    finally:
        torch.set_float32_matmul_precision(before)


def test_streams_halve_their_batch_when_memory_runs_out():
    asked = []

    def part(start, stop):
        asked.append(stop - start)
        if stop - start > 3:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return list(range(start, stop))

    assert sum(devices.stream(part, 10, 7), []) == list(range(10))
    assert asked == [7, 4, 2, 2, 2, 2, 2]
    for error, raised in (
        (MemoryError(), MiaError),
        (RuntimeError("something else"), RuntimeError),
    ):
        with pytest.raises(raised, match="on a single record|something else"):
            devices.stream(mock.Mock(side_effect=error), 2, 4)


def test_losses_by_hand():
    z, y = torch.tensor([[0.0, np.log(3.0)]]), torch.tensor([1])  # p = (1/4, 3/4)
    assert record_loss(
        torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([0, 0]), "squared_error"
    ).tolist() == [0, 0.25]
    assert record_loss(z, y, "brier").item() == pytest.approx((1 - 0.75) ** 2)
    assert record_loss(z, y, "cross_entropy").item() == pytest.approx(-np.log(0.75))
    assert record_loss(z, y, "double_softmax").item() == pytest.approx(
        np.log(1 + np.exp(0.25 - 0.75))
    )


def test_dropout_follows_from_its_key_alone():
    x = torch.ones(200, 50)
    torch.manual_seed(0)
    one, two = models.Dropout(0.25), models.Dropout(0.25)
    two.load_state_dict(one.state_dict())
    first, second = one(x), one(x)
    assert (two(x) == first).all() and (first != second).any()
    assert (first == 0).float().mean() == pytest.approx(0.25, abs=0.02)
    assert first.max() == pytest.approx(4 / 3)
    zeros = torch.stack([first == 0, second == 0]).float() - 0.25
    assert abs((zeros[0] * zeros[1]).mean()) < 0.01
    assert abs((zeros[0, 1:] * zeros[0, :-1]).mean()) < 0.01
    assert (one.eval()(x) == x).all()


def test_precision_is_part_of_what_determines_a_model_and_tf32_is_allowed_where_its_recipe_says_so(
    monkeypatch,
):
    seen, real = [], devices.plain_float32
    monkeypatch.setattr(
        devices, "plain_float32", lambda tf32=False: seen.append(tf32) or real(tf32)
    )
    for precision in ("float32", "tf32", "bfloat16"):
        fitted(TABLE, TrainConfig("mlp:4", epochs=1, precision=precision), [np.arange(80)], [0])
    assert seen == [False, True, False]
    full, cut, short = (
        training.train(
            TABLE, np.ones((1, 80), bool), TrainConfig("mlp:4", epochs=2, precision=precision)
        )
        for precision in ("float32", "tf32", "bfloat16")
    )
    assert len({store.key(one.spec(0)) for one in (full, cut, short)}) == 3
    assert (cut.parameters(0) == full.parameters(0)).all(), "on a processor they are the same"
    assert 0 < np.abs(short.parameters(0) - full.parameters(0)).max() < 0.05
    with pytest.raises(MiaError, match="precision"):
        TrainConfig("mlp:4", precision="float16")


@pytest.mark.parametrize("counts", [(4, 6), (6, 6)], ids=["some", "all"])
def test_of_two_runs_that_share_models_one_trains_and_the_other_waits_and_says_so(
    monkeypatch, counts
):
    real, keep, said, kept = pool.run_tasks, store.keep, [], []
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(store.progress, "say", said.append)
    monkeypatch.setattr(
        store,
        "keep",
        lambda spec, *given, **notes: kept.append(spec["kind"]) or keep(spec, *given, **notes),
    )

    def run_tasks(*given, **options):
        deadline = time.time() + 600
        while not said and time.time() < deadline:  # until the other waits
            time.sleep(0.01)
        return real(*given, **options)

    monkeypatch.setattr(pool, "run_tasks", run_tasks)
    with ThreadPoolExecutor(2) as runs, ThreadPoolExecutor(1) as executor:
        found = [
            runs.submit(
                training.train(
                    TABLE,
                    membership.balanced_halves(80, count),
                    TrainConfig("mlp:4", epochs=2),
                    executor=executor,
                    label="shared models",
                ).fit
            )
            for count in counts
        ]
        assert [run.result().missing() for run in found] == [[], []]
    assert len(said) == 1
    assert "waiting for another process" in said[0]
    assert "training shared models" in said[0]
    assert kept.count("model") == 6, "none twice"
    left = [
        path
        for path in (store.cache_dir() / "checkpoint").rglob("*")
        if path.suffix in (".npz", ".json")
    ]
    assert "checkpoint" in kept and not left, "they are taken away when the models are kept"


@pytest.fixture
def dask(tmp_path):
    """A scheduler and two workers as processes of their own, and the scheduler's address."""
    distributed = pytest.importorskip("distributed", reason="needs the extra `cluster`")
    from dask import config

    file, timeouts = tmp_path / "scheduler.json", "DASK_DISTRIBUTED__COMM__TIMEOUTS__"
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "OMP_NUM_THREADS": "1",
        "DASK_DISTRIBUTED__LOGGING": "{}",
        f"{timeouts}TCP": "300s",
        f"{timeouts}CONNECT": "300s",
    }

    def start(*words) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--scheduler-file", str(file), "--no-dashboard"],
            env=env,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    workers = [
        start("worker", "--nthreads", "1", "--no-nanny", "--local-directory", str(tmp_path))
        for _ in range(2)
    ]
    while not (file.is_file() and file.read_text().endswith("}")) and scheduler.poll() is None:
        time.sleep(0.1)
    address = json.loads(file.read_text())["address"]
    with distributed.Client(address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=600)
    # On a machine that is busy otherwise nobody is to be given up but who was killed.
    with config.set(
        {"distributed.comm.timeouts.tcp": "300s", "distributed.comm.timeouts.connect": "300s"}
    ):
        yield address, workers
    client = pool._clusters.pop(address, None)
    if client is not None:
        client.close()
    for process in (scheduler, *workers):
        process.kill()
        process.wait()


def test_what_is_published_over_a_cluster_that_loses_a_worker_is_what_one_machine_publishes(
    dask, tmp_path, monkeypatch
):
    address, workers = dask
    bank = publishing.catalogue()["bank/cifar10-small"]
    tiny = {
        "dataset": "fashion_mnist_20k",
        "architecture": "batchnorm_cnn:8,16,16",
        "records": 300,
        "epochs": 2,
    }
    expected = bank(5, **tiny).arrays
    monkeypatch.setenv("MIA_PUBLISHED", str(tmp_path / "published"))
    monkeypatch.setenv("MIA_CACHE", str(tmp_path / "of the cluster"))
    monkeypatch.setenv("MIA_CLUSTER", address)
    assert pool.at_once() == 2
    monkeypatch.setattr(publishing.Measurement, "keep_probe", lambda self: None)
    real, trained = store.keep, []

    def keep(spec, *arguments, **notes):
        if spec["kind"] == "model":
            trained.append(store.address(spec))
            if len(trained) == 2:
                workers[0].send_signal(signal.SIGKILL)
        return real(spec, *arguments, **notes)

    monkeypatch.setattr(store, "keep", keep)
    [piece] = bank.publish(range(5), tiny)
    assert workers[0].wait(10) == -signal.SIGKILL and len(trained) == len(set(trained)) == 5
    there = published.load("bank/cifar10-small")
    assert all((there.arrays[name] == array).all() for name, array in expected.items())
    assert bank.publish(range(5), tiny) == [] and len(trained) == 5


def test_a_scheduler_that_goes_away_is_said():
    class Gone(Executor):
        def submit(self, *_):
            future = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with pytest.raises(MiaError, match="scheduler of the cluster went away during 'work'"):
        pool.run_tasks(len, [([],)], lambda *_: None, "work", executor=Gone())


def test_what_a_task_takes_is_asked_for_when_its_turn_comes_and_not_held_for_all():
    made, done = [], []

    def tasks():
        for number in range(12):
            made.append(number)
            yield ([number],)
            assert len(made) <= len(done) + 2, "two tasks ahead of one process"

    pool.run_tasks(
        sum,
        tasks(),
        lambda position, result: done.append((position, result)),
        "work",
        1,
        weights=[1] * 12,
    )
    assert sorted(done) == [(number, number) for number in range(12)]


def test_a_cluster_that_is_not_there_is_said_and_without_dask_the_extra_is_named(monkeypatch):
    pytest.importorskip("distributed", reason="needs the extra `cluster`")
    monkeypatch.setattr(pool, "CONNECT_SECONDS", 1)
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        with pytest.raises(MiaError, match=f"No dask scheduler answers at '{address}'"):
            pool.connect(address)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MiaError, match=r"mia_lib\[cluster\]"):
        pool.connect("tcp://127.0.0.1:9")
    assert pool.cluster() is None


def test_workers_that_do_not_share_the_store_or_the_version_are_refused():
    ours = pool.versions()
    for answers, words in (
        ({}, "has no workers yet"),
        ({"tcp://a": (False, {})}, "does not see.*MIA_CACHE"),
        (
            {"tcp://a": (True, ours | {"PyTorch": "1.0", "NumPy": "1"})},
            f"tcp://a has PyTorch 1.0, NumPy 1, and .* has PyTorch {ours['PyTorch']}, NumPy {ours['NumPy']}:",
        ),
        ({"tcp://a": (True, ours | {"mia_lib": "1 (code 2)"})}, r"has mia_lib 1 \(code 2\)"),
    ):
        client = SimpleNamespace(
            scheduler_info=lambda answers=answers: {"workers": answers},
            run=lambda *_, answers=answers: answers,
        )
        with pytest.raises(MiaError, match=words):
            pool._meet(client, "tcp://x")


def test_a_process_elsewhere_that_came_later_with_other_code_is_refused_before_it_works(
    monkeypatch,
):
    codes, worked = iter("ab"), []
    monkeypatch.setattr(pool, "versions", lambda architecture: {architecture: next(codes)})
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.raises(MiaError, match="has mine:net b, and who .* has mine:net a"),
    ):
        pool.run_tasks(
            worked.append,
            [(1,)],
            lambda *_: None,
            "work",
            executor=executor,
            architecture="mine:net",
        )
    assert not worked


def test_versions_tell_networks_of_the_users_own_and_a_library_edited_since_the_process_began_apart(
    tmp_path, monkeypatch
):
    found = []
    for width in range(2):
        (folder := tmp_path / str(width)).mkdir()
        (folder / "net_of_versions.py").write_text(f"width = {width}\n")
        monkeypatch.syspath_prepend(folder)
        found.append(pool.versions("net_of_versions:net"))
    assert {name for name in found[0] if found[0][name] != found[1][name]} == {
        "net_of_versions:net"
    }
    monkeypatch.setattr(store, "BEGAN", {})
    assert "edited since" in pool.versions()["mia_lib"] and "edited" not in found[0]["mia_lib"]
