"""`mia doctor --device`: what it compares, refuses, and how it ends."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from mia_book.pages import doctor
from mia_book.pages.cli import app

sys.path.append(str(Path(__file__).resolve().parents[1] / "training"))

import ways


@pytest.mark.parametrize(
    "there, good, said",
    [
        (1.0, True, "ok"),
        (2.0, False, "DIFFERS"),
        (np.nan, False, "DIFFERS"),
        (None, False, "FAILED"),
    ],
)
def test_a_difference_a_failure_and_what_is_no_number_are_told_apart(there, good, said):
    places = iter((1.0, there))

    def compute():
        if (value := next(places)) is None:
            raise RuntimeError("two devices")
        return {"a": np.full(3, value), "members": np.array([True, False])}

    row = doctor.compare("what", compute, "cuda")
    assert row.good is good
    assert str(row).split()[0] == said
    assert ("two devices" in str(row)) == (there is None)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a graphics card with CUDA")
@pytest.mark.parametrize("way", ways.WAYS, ids=lambda way: way.what)
def test_a_graphics_card_agrees_with_the_processor(way):
    if way.missing_dependency():
        pytest.skip(way.missing_dependency())
    row = ways.compare(way, "cuda")
    assert row.good, row


def test_the_command_is_refused_without_a_card_and_ends_in_an_error_where_one_differs(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for device, reason in (
        ("cuda", "no CUDA here"),
        ("cpu", "the processor, with which a card is compared"),
    ):
        done = CliRunner().invoke(app, ["doctor", "--device", device])
        assert done.exit_code == 2 and reason in done.output
    for marks, code in ((("ok", "ok"), 0), (("ok", "DIFFERS"), 1), (("FAILED",), 1)):
        rows = [doctor.Finding("bank", "lost", mark) for mark in marks]
        monkeypatch.setattr(doctor, "compare_probes", lambda device, rows=rows: iter(rows))
        done = CliRunner().invoke(app, ["doctor", "--device", "cuda"])
        assert done.exit_code == code and len(done.output.splitlines()) == len(rows)


def test_a_probe_that_fails_by_whatever_error_is_a_line_and_the_others_are_compared():
    assert doctor.compare("what", lambda: {}["no room"], "cpu").mark == "FAILED"
