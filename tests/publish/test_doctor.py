"""`mia doctor --device`: what it compares, refuses, and how it ends."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from mia_lib.publish import doctor
from mia_lib.publish.cli import app

sys.path.append(str(Path(__file__).resolve().parents[1] / "training"))

import ways


def answers(here: float, there: float):
    """A computation that gives one number on the processor and another on a card."""
    places = iter((here, there))
    return lambda: {"a": np.full(3, next(places)), "members": np.array([True, False])}


def test_a_difference_a_failure_and_what_is_no_number_are_told_apart():
    rows = [doctor.compare("same", answers(1.0, 1.0), "cuda"), doctor.compare("other", answers(1.0, 2.0), "cuda"),
            doctor.compare("odd", answers(1.0, np.nan), "cuda"),
            doctor.compare("left behind", lambda: (_ for _ in ()).throw(RuntimeError("two devices")), "cuda")]
    assert [row.agrees for row in rows] == [True, False, False, False]
    assert [str(row).split()[0] for row in rows] == ["ok", "DIFFERS", "DIFFERS", "FAILED"]
    assert "RuntimeError: two devices" in str(rows[-1])


def test_the_processor_agrees_with_itself_where_training_stops_and_goes_on():
    row = ways.compare(next(way for way in ways.WAYS if way.what == "going on after a stop"), "cpu")
    assert row.agrees and row.difference == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a graphics card with CUDA")
@pytest.mark.parametrize("way", ways.WAYS, ids=lambda way: way.what)
def test_a_graphics_card_agrees_with_the_processor(way):
    if way.lacking():
        pytest.skip(way.lacking())
    row = ways.compare(way, "cuda")
    assert row.agrees, row


def test_the_command_is_refused_without_a_card_and_ends_in_an_error_where_one_differs(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for device, reason in (("cuda", "no CUDA here"), ("cpu", "the processor, with which a card is compared")):
        done = CliRunner().invoke(app, ["doctor", "--device", device])
        assert done.exit_code == 2 and reason in done.output
    for differences, code in (((0.0, 0.01), 0), ((0.0, 1.0), 1), ((None,), 1)):
        rows = [doctor.Comparison("bank", difference, doctor.ALLOWED, 1.0, "lost") for difference in differences]
        monkeypatch.setattr(doctor, "compare_probes", lambda device, rows=rows: iter(rows))
        done = CliRunner().invoke(app, ["doctor", "--device", "cuda"])
        assert done.exit_code == code and len(done.output.splitlines()) == len(rows)
