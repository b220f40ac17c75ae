"""`mia doctor --device`: what it compares, refuses, notes, and what the page of machines says of it."""

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from mia_lib.errors import MiaError
from mia_lib.publish import marks, selftest
from mia_lib.publish.cli import app

AGREES = selftest.Check("the same", ("here",), lambda device: {"a": np.ones(3)}, 1e-6)
DIFFERS = selftest.Check("another", ("there",), lambda device: {"a": np.ones(3) + (device == "cuda")}, 1e-6)
FAILS = selftest.Check("no", ("nowhere",), lambda device: (_ for _ in ()).throw(RuntimeError("left behind")), 1e-6)
LACKS = selftest.Check("later", ("elsewhere",), lambda device: {}, 1e-6, lambda: "an extra brings it")
BROKEN = selftest.Check("odd", ("here",), lambda device: {"a": np.array([1.0, np.nan])}, 1e-6)


def test_the_processor_agrees_with_itself():
    stopped = next(check for check in selftest.CHECKS if check.what == "going on after a stop")
    [row] = selftest.compare("cpu", (stopped,))
    assert row.good and row.apart == 0 and row.what == "going on after a stop"


def test_a_difference_a_failure_and_what_is_no_number_are_told_from_what_lacks():
    rows = list(selftest.compare("cuda", (AGREES, DIFFERS, FAILS, LACKS, BROKEN)))
    assert [row.good for row in rows] == [True, False, False, False, False]
    assert [row.text().split()[0] for row in rows] == ["ok", "DIFFERS", "FAILED", "without", "DIFFERS"]
    assert "RuntimeError: left behind" in rows[2].text() and "an extra brings it" in rows[3].text()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a graphics card with CUDA")
@pytest.mark.parametrize("check", selftest.CHECKS, ids=lambda check: check.what)
def test_a_graphics_card_agrees_with_the_processor(check):
    if check.lacking():
        pytest.skip(check.lacking())
    [row] = selftest.compare("cuda", (check,))
    assert row.good, row.text()


def test_the_command_is_refused_without_a_card_and_ends_in_an_error_where_one_differs(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for device, said in (("cuda", "no CUDA here"), ("cpu", "the processor, with which a card is compared")):
        done = CliRunner().invoke(app, ["doctor", "--device", device])
        assert done.exit_code == 2 and said in done.output
    assert CliRunner().invoke(app, ["doctor", "--keep"]).exit_code == 2
    monkeypatch.setattr(selftest, "card", lambda device: device)
    for checks, code in (((AGREES, LACKS), 0), ((AGREES, DIFFERS), 1), ((FAILS,), 1)):
        monkeypatch.setattr(selftest, "compare", lambda device, checks=checks, real=selftest.compare: real(device, checks))
        done = CliRunner().invoke(app, ["doctor", "--device", "cuda"])
        monkeypatch.undo()
        monkeypatch.setattr(selftest, "card", lambda device: device)
        assert done.exit_code == code and len(done.output.splitlines()) == len(checks)


def test_the_page_says_by_name_what_never_ran_on_a_card(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "book").mkdir()
    monkeypatch.setattr(selftest, "find_root", lambda root=None: tmp_path)
    (tmp_path / "data" / "cards.json").write_text("[]")
    page = tmp_path / "book" / "machines.md"
    page.write_text(f"before\n{selftest.BEGIN}\n{marks.END}\nafter\n")
    assert selftest.sync(check=True) == selftest.sync() == [page] and selftest.sync() == []
    assert "Nothing of this has ever run on a card" in page.read_text()
    rows = [selftest.Row(check.what, check.paths, 0.0 if k else 1.0, 1e-6, 1.0) for k, check in enumerate(selftest.CHECKS)]
    selftest.keep("cpu", rows)
    [noted] = json.loads((tmp_path / "data" / "cards.json").read_text())
    assert noted["bad"] == [selftest.CHECKS[0].what] and len(noted["good"]) == len(selftest.CHECKS) - 1
    assert f"**Never run on a card:** {selftest.CHECKS[0].what}." in selftest.page()
    page.write_text("without marks")
    with pytest.raises(MiaError, match="lacks the marks"):
        selftest.sync()


def test_the_page_of_machines_is_in_step():
    assert selftest.sync(check=True) == [], "run `mia sync`"
