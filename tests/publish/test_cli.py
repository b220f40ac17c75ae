"""The command line says what went wrong in one paragraph and with the right exit code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from mia_lib.publish import parameters
from mia_lib.publish.cli import STOPPED, app


def mia(*words: str):
    return CliRunner().invoke(app, list(words))


def test_the_page_on_rerunning_has_every_command(repo):
    table = (repo / "book" / "rerun.md").read_text().split("## Commands")[1].split("\n(rerun-parameters)=")[0]
    commands = typer.main.get_command(app).commands
    assert {"audit", "course", "slides"} < set(commands)
    assert not [name for name in commands if not re.search(rf"`mia {name}\b", table)]


def test_params_prints_name_type_value_allowed_and_meaning(tiny):
    said = mia("params", "tiny", "--preset", "smoke")
    assert said.exit_code == 0
    rows = [re.findall(r"[^\s│]+", line) for line in said.output.splitlines()]
    at = rows.index(["steps", "how", "many", "steps"])
    assert rows[at + 1] == ["int", "=", "1", "[1..10]"]


def test_params_breaks_no_name_however_narrow_the_terminal(repo, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(repo)
    for notebook in parameters.notebooks(repo):
        names = [re.findall(r"[^\s│]+", line)[:1] for line in mia("params", notebook).output.splitlines()]
        assert all([p.name] in names for p in parameters.parameters(notebook, root=repo)), notebook


def test_help_names_every_preset_of_the_repository(repo, monkeypatch):
    there = {preset for notebook in parameters.notebooks(repo) for preset in parameters.presets(notebook, repo)}
    assert there == set(parameters.PRESETS)
    monkeypatch.setenv("COLUMNS", "2000")
    for command in ("build", "run", "sweep", "params"):
        said = mia(command, "--help").output
        assert all(re.search(rf"\b{preset}: \w", said) for preset in there), command


@pytest.mark.parametrize("words, says", [
    (["run", "tinny"], "Did you mean 'tiny'"),
    (["run", "tiny", "-p", "stepz", "3"], "Did you mean 'steps'"),
    (["run", "tiny", "-p", "steps", "99"], "less than or equal to 10"),
    (["run", "tiny", "-p", "steps"], "has no value"),
    (["run", "tiny", "-p", "steps", "2", "-p", "steps", "3"], "-p steps is given twice, as 2 and 3"),
    (["run", "tiny", "--preset", "huge"], "Allowed: published, quick, smoke"),
    (["build", "--preset", "huge"], "Allowed: published, quick, smoke"),
    (["serve"], "Run `mia build`"),
])
def test_bad_input_exits_2_with_one_paragraph(tiny, words, says):
    done = mia(*words)
    assert done.exit_code == 2 and says in done.stderr
    assert done.stderr.strip().count("\n") == 0 and not (tiny / "ran.log").exists()


def test_run_takes_pairs_in_both_spellings_and_prints_the_page(tiny):
    done = mia("run", "tiny", "-p", "steps", "2", "-p", "sizes=4,5", "--output", str(tiny / "out"))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(tiny / "out" / "tiny.html")
    assert "2 0.5 plain False [4, 5]" in (tiny / "out" / "tiny.ipynb").read_text()


@pytest.mark.kernel
def test_a_real_process_exits_1_when_a_cell_fails(tiny, repo):
    (tiny / "notebooks" / "fails.py").write_text("# %% [markdown]\n# # Toy\n\n# %%\n1 / 0\n")
    done = subprocess.run([sys.executable, "-m", "mia_lib.publish.cli", "run", "fails"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(repo)})
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "notebooks/fails.py failed in cell [1], which begins `1 / 0`: ZeroDivisionError: division" in done.stderr


def test_build_prints_the_path_of_the_index(tiny, monkeypatch):
    from mia_lib.publish import build

    monkeypatch.setattr(build, "render", lambda files, root, folder, force, bars: folder / "index.html")
    done = mia("build", "--preset", "smoke")
    assert done.exit_code == 0 and done.stdout.splitlines()[-1] == str(tiny / "_build" / "index.html")


def test_other_errors_are_not_hidden(tiny, monkeypatch):
    from mia_lib.publish import sync

    def fail(*_):
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(sync, "pairs", fail)
    assert isinstance(mia("sync").exception, RuntimeError)
    monkeypatch.setattr(sync, "pairs", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    done = mia("sync")
    assert done.exit_code == 130 and STOPPED in done.stderr


def test_sync_writes_and_checks(tiny):
    assert mia("sync", "--check").exit_code == 1
    assert "written" in mia("sync").output
    assert mia("sync", "--check").exit_code == 0


def test_data_lists_and_gets(monkeypatch):
    import pandas as pd

    import mia_lib

    stub = SimpleNamespace(describe=lambda: pd.DataFrame({"name": ["toy"], "licence": ["[MIT]"]}),
                           get=lambda name: f"got {name}")
    monkeypatch.setitem(sys.modules, "mia_lib.data", stub)
    monkeypatch.setattr(mia_lib, "data", stub, raising=False)
    said = mia("data", "ls").output
    assert "toy" in said and "[MIT]" in said
    assert "got toy" in mia("data", "get", "toy").output


@pytest.mark.kernel
def test_doctor_reports_and_fails_on_what_is_essential(tiny, monkeypatch):
    from mia_lib.publish import doctor

    done = mia("doctor")
    assert done.exit_code == 0, done.output
    for word in ("Python", "memory", "disk", "cache", "MIA_DATA", "Chromium", "torch", "kernel: started"):
        assert word in done.output
    monkeypatch.setattr(doctor, "_torch", lambda: 1 / 0)
    monkeypatch.setattr(doctor, "_torchvision", lambda: (_ for _ in ()).throw(ImportError("no")))
    monkeypatch.setattr(doctor, "_kernel", lambda: "started")
    done = mia("doctor")
    assert done.exit_code == 1
    assert "MISSING torch: ZeroDivisionError" in done.output and "without torchvision: ImportError" in done.output


def test_serve_shows_the_built_book_to_this_machine_only(tiny, monkeypatch):
    import http.server

    html = tiny / "_build" / "book" / "_build" / "html"
    html.mkdir(parents=True)
    (html / "index.html").write_text("hello")
    seen = []
    monkeypatch.setattr(http.server.ThreadingHTTPServer, "serve_forever",
                        lambda self: (seen.append(self.server_address), (_ for _ in ()).throw(KeyboardInterrupt))[0])
    done = mia("serve", "--port", "0")
    assert done.exit_code == 0 and seen[0][0] == "127.0.0.1" and f":{seen[0][1]}/" in done.stdout
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), None) as taken:
        done = mia("serve", "--port", str(taken.server_port))
    assert done.exit_code == 2 and "cannot be used" in done.stderr


def test_main_treats_termination_like_ctrl_c(monkeypatch):
    import signal

    from mia_lib.publish import cli

    before = signal.getsignal(signal.SIGTERM)
    try:
        monkeypatch.setattr(cli, "app", lambda: signal.raise_signal(signal.SIGTERM))
        with pytest.raises(KeyboardInterrupt):
            cli.main()
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("name, value, words", [
    ("MIA_WORKERS", "0", "MIA_WORKERS = '0'"), ("MIA_WORKERS", "x", "MIA_WORKERS = 'x'"),
    ("MIA_DEVICE", "nonsense", "MIA_DEVICE"), ("MIA_CLUSTER", "nonsense", "'nonsense' is no address of a cluster")])
def test_variables_are_looked_at_before_anything_runs(tiny, monkeypatch, name, value, words):
    monkeypatch.setenv(name, value)
    said = mia("run", "tiny")
    assert said.exit_code == 2 and words in said.stderr and not (tiny / "ran.log").exists()


def test_the_doctor_says_that_a_cache_is_no_folder(monkeypatch):
    from mia_lib.publish import doctor

    monkeypatch.setenv("MIA_CACHE", __file__)
    found = next(one for one in doctor.examine() if one.what == "cache")
    assert not found.good and "is no folder" in found.found
