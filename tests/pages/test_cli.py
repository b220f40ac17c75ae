"""The command line says what went wrong in one paragraph and with the right exit code."""

import errno
import http.server
import re
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import papermill.iorw
import pytest
from typer.testing import CliRunner

import mia_lib
import mia_lib.doctor
from mia_book.pages import doctor, parameters, run_page, sync
from mia_book.pages.cli import app
from mia_lib import store
from mia_lib.cli import STOPPED, main


def mia(*words: str):
    return CliRunner().invoke(app, list(words))


def test_params_prints_name_type_value_allowed_and_meaning_and_breaks_no_name_however_narrow(
    tiny, repo, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    rows = [
        re.findall(r"[^\s│]+", line)
        for line in mia("params", "tiny", "--preset", "smoke").output.splitlines()
    ]
    at = rows.index(["steps", "how", "many", "steps"])
    assert rows[at + 1] == ["int", "=", "1", "[1..10]"]
    monkeypatch.chdir(repo)
    for notebook in parameters.notebooks(repo):
        said = mia("params", notebook)
        names = [re.findall(r"[^\s│]+", line)[:1] for line in said.output.splitlines()]
        assert said.exit_code == 0 and all(
            [p.name] in names for p in parameters.parameters(notebook, root=repo)
        ), notebook


@pytest.mark.parametrize(
    "words, says",
    [
        ("run tinny", "Did you mean 'tiny'"),
        ("run tiny -p steps 99", "less than or equal to 10"),
        ("run tiny -p steps", "has no value"),
        ("run tiny -p steps 2 -p steps 3", "-p steps is given twice, as 2 and 3"),
        ("serve", "Run `mia build`"),
        ("publish bank/cifar10 --next", "--next makes no use of NAME: leave it out"),
        ("build --preset huge", "Allowed: published, quick, smoke"),
    ],
)
def test_bad_input_exits_2_with_one_paragraph(tiny, words, says):
    done = mia(*words.split())
    assert done.exit_code == 2 and says in done.stderr
    assert done.stderr.strip().count("\n") == 0 and not (tiny / "ran.log").exists()


def test_a_disk_that_cannot_be_used_is_said_and_the_first_error_is_not_hidden(
    tmp_path, monkeypatch
):
    def unplugged(*given, **named):
        raise OSError(errno.EROFS, "Read-only file system", "signals.npz")

    monkeypatch.setattr("builtins.open", unplugged)
    monkeypatch.setattr(Path, "unlink", lambda *given, **named: unplugged())
    with pytest.raises(OSError, match="signals.npz"):
        store.write(tmp_path / "file", b"")
    monkeypatch.undo()
    monkeypatch.setattr("mia_book.course.bank.write", unplugged)
    done = mia("course", "data")
    assert done.exit_code == 2
    assert done.stderr.startswith("A disk cannot be used: [Errno 30] Read-only file system")


def test_a_folder_that_is_gone_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 2
    assert done.stderr.startswith("The folder in which this was called is gone: go to another one")
    monkeypatch.undo()


def test_run_takes_pairs_in_both_spellings_and_prints_the_page(tiny):
    done = mia("run", "tiny", "-p", "steps", "2", "-p", "sizes=4,5", "--output", str(tiny / "out"))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(tiny / "out" / "tiny.html")
    assert "2 0.5 plain False [4, 5]" in (tiny / "out" / "tiny.ipynb").read_text()


def test_on_a_full_disk_no_half_of_a_notebook_is_left_and_the_same_command_works_when_there_is_room(
    tiny, monkeypatch
):
    def half(_, text, path):
        Path(path).write_text(text[:9])
        raise OSError(errno.ENOSPC, "No space left on device")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    for place, instead, left in (
        (papermill.iorw.LocalHandler, half, []),
        (run_page, full, ["tiny.ipynb"]),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, "write", instead)
            done = mia("run", "tiny", "--output", "out")
        assert done.exit_code == 2
        assert "The disk is full: [Errno 28] No space left on device." in done.stderr
        assert [path.name for path in (tiny / "out").iterdir()] == left
    assert mia("run", "tiny", "--output", "out").exit_code == 0
    assert (tiny / "ran.log").read_text().count("\n") == 2


def test_sync_writes_and_checks_and_other_errors_are_not_hidden(tiny, monkeypatch):
    assert mia("sync", "--check").exit_code == 1
    assert "written" in mia("sync").output
    assert mia("sync", "--check").exit_code == 0
    raised = iter((RuntimeError("a mistake of ours"), KeyboardInterrupt()))

    def fail(*_):
        raise next(raised)

    monkeypatch.setattr(sync, "pairs", fail)
    assert isinstance(mia("sync").exception, RuntimeError)
    done = mia("sync")
    assert done.exit_code == 130 and STOPPED in done.stderr


def test_data_lists_and_gets(monkeypatch):
    stub = SimpleNamespace(
        describe=lambda: pd.DataFrame({"name": ["toy"], "licence": ["[MIT]"]}),
        get=lambda name: f"got {name}",
    )
    monkeypatch.setitem(sys.modules, "mia_lib.data", stub)
    monkeypatch.setattr(mia_lib, "data", stub, raising=False)
    said = mia("data", "ls").output
    assert "toy" in said and "[MIT]" in said and "got toy" in mia("data", "get", "toy").output


@pytest.mark.kernel
def test_doctor_reports_and_fails_on_what_is_essential(tiny, monkeypatch):
    done = mia("doctor")
    assert done.exit_code == 0, done.output
    assert all(
        word in done.output
        for word in ("memory", "disk", "cache", "MIA_DATA", "Chromium", "torch", "kernel: started")
    )
    monkeypatch.setenv("MIA_CACHE", __file__)
    monkeypatch.setattr("mia_lib.doctor._torch", lambda: 1 / 0)
    monkeypatch.setattr(
        "mia_lib.doctor._torchvision", lambda: (_ for _ in ()).throw(ImportError("no"))
    )
    monkeypatch.setattr(doctor, "_kernel", lambda: "started")
    done = mia("doctor")
    assert done.exit_code == 1 and "is no folder" in done.output
    assert "MISSING torch: ZeroDivisionError" in done.output
    assert "without torchvision: ImportError" in done.output


def test_a_torchvision_that_only_this_library_can_import_is_said_to_be_one():
    pytest.importorskip("torch")
    if find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    plain = subprocess.run([sys.executable, "-c", "import torchvision"], capture_output=True)
    assert ("a plain `import torchvision` fails" in mia_lib.doctor._torchvision()) == bool(
        plain.returncode
    )


def test_serve_shows_the_built_book_to_this_machine_only(tiny, monkeypatch):
    html = tiny / "_build" / "book" / "_build" / "html"
    html.mkdir(parents=True)
    (html / "index.html").write_text("hello")
    (tiny / "private").mkdir()
    (tiny / "private" / "secret").write_text("mine")
    (html / "out").symlink_to(tiny / "private")
    (html / "in").symlink_to(html / "index.html")
    seen = []

    def serve(self):
        seen.append(self.server_address)
        for asked in (b"/.%00.", b"/out", b"/out/secret", b"/in"):
            with socket.create_connection(self.server_address) as client:
                client.sendall(b"GET " + asked + b" HTTP/1.0\r\n\r\n")
                self.handle_request()
                seen.append(client.makefile().readline().split()[1])
        raise KeyboardInterrupt

    monkeypatch.setattr(http.server.ThreadingHTTPServer, "serve_forever", serve)
    done = mia("serve", "--port", "0")
    assert done.exit_code == 0 and seen[0][0] == "127.0.0.1" and f":{seen[0][1]}/" in done.stdout
    assert seen[1:] == ["404", "404", "404", "200"], (
        "no file, links out of the book, and one within"
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), None) as taken:
        done = mia("serve", "--port", str(taken.server_port))
    assert done.exit_code == 2 and "cannot be used" in done.stderr


def test_main_treats_termination_like_ctrl_c(monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    try:
        monkeypatch.setattr("mia_lib.cli.app", lambda: signal.raise_signal(signal.SIGTERM))
        with pytest.raises(KeyboardInterrupt):
            main()
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("MIA_WORKERS", "0", "MIA_WORKERS = 0"),
        ("MIA_DEVICE", "nonsense", "MIA_DEVICE"),
        ("MIA_MOST_SECONDS", "abc", "MIA_MOST_SECONDS = 'abc'"),
        ("MIA_CLUSTER", "nonsense", "'nonsense' is no address of a cluster"),
    ],
)
def test_variables_are_looked_at_before_anything_runs(tiny, monkeypatch, name, value, words):
    monkeypatch.setenv(name, value)
    said = mia("run", "tiny")
    assert said.exit_code == 2 and words in said.stderr and not (tiny / "ran.log").exists()
