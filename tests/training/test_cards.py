"""Whatever goes to a graphics card, on one that is not there (`tests/cards.py`): the same numbers, no tensor left behind, no
waiting."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

# PyTorch's automatic differentiation takes one kind of card in a process
if torch.cuda.is_available():
    pytest.skip("a card is here, which the tests that name it ask instead", allow_module_level=True)
sys.path += [str(Path(__file__).resolve().parents[k]) for k in (0, 1)]

import cards
import ways

from mia_book import publishing
from mia_book.pages import doctor
from mia_lib import membership
from mia_lib.attacks.quantile import networks
from mia_lib.training import devices, gpu, loop, private

TABLE, CONFIG = ways.recipes()["mlp"]

pytestmark = pytest.mark.usefixtures("isolated_cache")


def group(stacked: bool = True, recipe: str = "mlp", **changes) -> loop.Group:
    records, config = ways.recipes()[recipe]
    rows = [np.flatnonzero(row) for row in membership.balanced_halves(len(records), 2)][
        : 2 if stacked else 1
    ]
    config, numbers = replace(config, **changes), list(range(len(rows)))
    return loop.Group(
        loop.Task(records.x, records.y, 3, config, rows, numbers), devices.pick(), stacked
    )


def waits(run, card: cards.Fake) -> int:
    """How often `run` made the host wait."""
    before = card.syncs.total()
    run()
    return card.syncs.total() - before


@pytest.mark.parametrize("way", ways.WAYS, ids=lambda way: way.what)
def test_each_way_onto_a_card_gives_the_numbers_of_the_processor(way, monkeypatch):
    if way.missing_dependency():
        pytest.skip(way.missing_dependency())
    with cards.fake(monkeypatch) as card:
        row = ways.compare(way, "cuda")
    assert row.good, row
    assert card.sent, "nothing went to the card"


OF_EACH_FUNCTION = {one.function: name for name, one in publishing.catalogue().items()}
# no call that the others do not make
NOTHING_OF_ITS_OWN = {
    "audit/tested",
    "bayes/table2-shadow",
    "calibration/sizes",
    "compare/recipes",
    "curvature/sizes",
    "iha/fashion-left-out",
    "iha/fashion-partial",
}
# which asks a card for features
ASKED = sorted({*OF_EACH_FUNCTION.values()} - NOTHING_OF_ITS_OWN - {"bayes/table1"})


@pytest.mark.parametrize("name", ASKED)
def test_each_function_that_measures_gives_its_numbers_on_a_card(name, monkeypatch):
    # else the clock decides, and with it the rounding
    monkeypatch.setattr(gpu, "stack_size", lambda *_: 1)
    with cards.fake(monkeypatch):
        assert publishing.catalogue()[name].check_probe() == ""


def test_the_doctor_asks_the_card(monkeypatch):
    with cards.fake(monkeypatch) as card:
        monkeypatch.setattr(devices, "is_card", lambda device: device == cards.DEVICE)
        [row] = doctor.compare_probes("cuda", ["bank/cifar10-small"])
        assert row.good and row.what == "bank/cifar10-small" and str(row).startswith("ok"), row
    assert card.sent


@pytest.mark.parametrize("stacked, recipe", [(True, "mlp"), (False, "cnn"), (True, "dropout")])
def test_an_epoch_waits_for_the_card_as_often_however_many_steps_it_has(
    stacked, recipe, monkeypatch
):
    with cards.fake(monkeypatch, refused=(torch.float64,)) as card:
        found = []
        for batch_size in (4, 8):
            one = group(stacked, recipe, batch_size=batch_size)
            one.run_epoch()  # what an optimiser sets up in its first step
            found.append(waits(one.run_epoch, card))
    assert found == [2, 2], "the sums of the loss and of what was right"


@pytest.mark.parametrize("stacked, recipe", [(True, "mlp"), (False, "cnn"), (True, "dropout")])
def test_a_group_renewed_trains_its_next_models_as_a_new_one_would(stacked, recipe, monkeypatch):
    monkeypatch.setattr(
        loop, "capture_graph", lambda step, device, pool: [step() for _ in range(4)] and step
    )
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(devices, "replays", lambda device: True)
    with cards.fake(monkeypatch):
        new, old = (
            group(stacked, recipe, optimizer="sgd", momentum=0.9, batch_size=7) for _ in range(2)
        )
        assert old.size % 7 > 1, "a last batch of another size"
        count = len(old.indices)
        records, config = ways.recipes()[recipe][0], old.config
        task = loop.Task(
            records.x, records.y, 3, config, [np.arange(10, 31)] * count, [7, 8][:count]
        )
        new._begin(task)
        new.network.load_state_dict(new._join(new._untrained(task)).state_dict())
        old.run_epoch()
        recorded = dict(old._recorded)
        assert len(recorded) == 2 and old.renew(task)
        for one in (new, old):
            one.run_epoch()
            one.run_epoch()
        assert all(old._recorded[size] is recorded[size] for size in recorded)
        np.testing.assert_array_equal(old.history, new.history)
        for a, b in zip(old.outcomes(0.0), new.outcomes(0.0), strict=True):
            for name in a.arrays:
                np.testing.assert_array_equal(a.arrays[name], b.arrays[name])
        assert not old.renew(replace(task, rows=task.rows[:1] * 3, indices=[1, 2, 3])), (
            "three where one or two were"
        )


def test_a_private_epoch_and_a_regressor_wait_no_more_with_more_steps(monkeypatch):
    found = {}
    with cards.fake(monkeypatch) as card:
        monkeypatch.setattr(networks, "_where", lambda config: cards.DEVICE)
        monkeypatch.setattr(private, "noise_multiplier", lambda *_: 1.0)
        for size in (8, 16):
            config = networks.NetworkConfig("mlp:4", hidden=(4,), epochs=1, batch_size=size)
            found["regressor", size] = waits(
                lambda config=config: networks.fit(
                    TABLE.x, np.arange(96.0), config, 2, networks.gaussian_loss
                ),
                card,
            )
            if not private.missing_dependency():
                config = replace(CONFIG, epochs=1, batch_size=size)
                found["private", size] = waits(
                    lambda config=config: private.fit(
                        TABLE.x, TABLE.y, 3, config, private.Privacy(4.0), device=cards.DEVICE
                    ),
                    card,
                )
    for what in {name for name, _ in found}:
        assert found[what, 8] == found[what, 16], (what, found)
