"""Notebooks are run once, what fails is kept and named, and every process that they start is ended."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import nbformat
import numpy as np
import psutil
import pytest

from mia_book.pages import parameters, runner
from mia_lib.errors import MiaError

TITLE = "# %% [markdown]\n# # Toy\n\n"


def times_run(root) -> int:
    return len((root / "ran.log").read_text().split()) if (root / "ran.log").exists() else 0


def test_a_run_is_reused_until_something_that_matters_changes(tiny):
    ran = runner.run("tiny", {"steps": 2})
    assert times_run(tiny) == 1 and ran.parent.parent == tiny / "runs"
    assert runner.run("tiny", {"steps": "2"}) == ran and times_run(tiny) == 1
    assert runner.run_record(ran)["changed"] == {"steps": 2}
    source = tiny / "notebooks" / "tiny.py"
    presets = tiny / "mia_book" / "chapters" / "tiny" / "presets"
    (presets / "other.yaml").write_text("steps: 2\n")
    assert runner.run("tiny", {}, "other") == ran and runner.run_record(ran)["preset"] == "other", (
        "shown under its name"
    )
    source.write_text(source.read_text().replace("# # A tiny page", "# # A tinier page"))
    assert runner.run("tiny", {"steps": 2}) == ran and times_run(tiny) == 1, (
        "text is put around what ran"
    )
    assert "# A tinier page" in ran.read_text()
    source.write_text(source.read_text().replace('"one dot"', '"a dot"'))
    assert runner.run("tiny", {"steps": 2}) != ran and times_run(tiny) == 2
    for steps in (1, 2, 2):  # what an earlier run of ours left is put aside
        ran = runner.run("tiny", {"steps": steps}, output=tiny / "out")
        assert ran == tiny / "out" / "tiny.ipynb"
        assert runner.run_record(ran)["changed"] == {"steps": steps}
        ran.with_suffix(".html").write_text(f"page of {steps}")
        ran.with_stem("tiny-copy").write_text(f"work on {steps}")
    [aside] = {*(tiny / "out").glob("*.ipynb")} - {ran, *(tiny / "out").glob("tiny-copy*")}
    assert runner.run_record(aside)["changed"] == {"steps": 1}
    assert aside.stem == f"tiny-{runner.run_record(aside)['key']}"
    assert aside.with_suffix(".html").read_text() == "page of 1"
    copy = aside.with_stem(f"tiny-copy-{runner.run_record(aside)['key']}")
    assert copy.read_text() == "work on 1"


def test_the_key_follows_parameters_printed_numbers_and_the_code_of_the_library_and_of_the_readers_own_modules(
    tiny,
):
    """But no comments, and nothing that only draws pages."""
    attacks = tiny / "mia_lib" / "attacks.py"
    drawing = tiny / "mia_book" / "pages" / "pages.py"
    own = tiny / "my_layers.py"
    printed = tiny / "mia_book" / "chapters" / "tiny" / "printed" / "t.csv"
    for folder in (attacks.parent, drawing.parent, printed.parent):
        folder.mkdir(parents=True, exist_ok=True)
    for package in ("mia_lib", "mia_book"):
        (tiny / package / "__init__.py").touch()
    (tiny / "my_models.py").write_text("from my_layers import width\n")
    own.write_text("width = 3\n")
    source = tiny / "notebooks" / "tiny.py"
    source.write_text(
        source.read_text().replace("# # A tiny page", "# # A tiny page\n\n# %%\nimport my_models")
    )
    values, keys = parameters.validate("tiny", {}), []
    for path, text in (
        (attacks, "def score(x):\n    return -x\n"),
        (attacks, "def score(x):  # low is suspicious\n    return -x\n"),
        (drawing, "a = 2\n"),
        (attacks, "def score(x):\n    return x\n"),
        (own, "width = 4\n"),
        (printed, "1"),
    ):
        path.write_text(text)
        os.utime(path, ns=(len(keys), len(keys)))  # a file system's clock may be coarse
        keys.append(runner.key("tiny", values))
    assert keys[0] == keys[1] == keys[2]
    assert len({*keys, runner.key("tiny", {**values, "steps": 4})}) == 5


@pytest.mark.parametrize(
    "finished, in_cell, left",
    [
        ([], 0.0, 62.0),
        ([2.0], 1.0, 28.0),
        ([8.0, 16.0], 5.0, 95.0),
        ([8.0, 16.0], 204.0, np.nan),
        ([8.0, 16.0, 9.0], 1.0, 0.0),
    ],
)
def test_what_is_left_is_what_cells_usually_take_at_the_pace_of_this_run(finished, in_cell, left):
    assert runner.seconds_left([4.0, 8.0, 50.0], finished, in_cell) == pytest.approx(
        left, nan_ok=True
    )


@pytest.mark.parametrize(
    "source", ["", "# %%\nx = 1\n", "# %% [markdown]\n# no title\n\n# %%\nx = 1\n"]
)
def test_a_notebook_without_a_title_is_refused_before_anything_runs(tiny, source):
    (tiny / "notebooks" / "untitled.py").write_text(source)
    jobs = [
        ("tiny", parameters.validate("tiny", {}), tiny / "a.ipynb"),
        ("untitled", {}, tiny / "b.ipynb"),
    ]
    with pytest.raises(
        MiaError, match="notebooks/untitled.py has no title: its first cell must be Markdown"
    ):
        list(runner.execute_all(jobs))
    assert times_run(tiny) == 0


def test_a_failing_cell_is_named_and_what_ran_is_kept(tiny):
    (tiny / "notebooks" / "fails.py").write_text(
        TITLE
        + "# %%\nprint('before')\n\n# %%\n# breaks here\nraise ValueError('one\\nlast word')\n\n# %%\nprint('after')\n"
    )
    with pytest.raises(runner.NotebookFailed) as error:
        runner.run("fails", output=tiny / "{out}")
    [kept] = (tiny / "{out}").iterdir()
    assert all(
        part in str(error.value)
        for part in (
            "notebooks/fails.py",
            "cell [2]",
            "`# breaks here`",
            "ValueError: last word",
            str(kept),
        )
    )
    shown = [str(o) for c in nbformat.read(kept, as_version=4).cells for o in c.get("outputs", [])]
    assert "before" in shown[0] and not any("after" in output for output in shown)
    assert runner.run_record(kept) is None and not kept.with_suffix(".html").exists()


def test_a_run_that_is_refused_leaves_no_folder_behind(tiny, monkeypatch):
    def refuse(*_):
        raise MiaError("measuring takes too long")

    monkeypatch.setattr(runner, "prepare", refuse)
    with pytest.raises(MiaError, match="too long"):
        runner.run("tiny")
    with pytest.raises(MiaError, match="too long"):
        runner.run("tiny", output=tiny / "out")
    assert not (tiny / "out").exists() and not list(tiny.glob("runs/*"))


def test_a_refusal_of_the_library_is_said_as_it_is(tiny):
    (tiny / "notebooks" / "refuses.py").write_text(
        TITLE
        + "# %%\nfrom mia_lib.errors import MiaError\nraise MiaError('n = 7: 2 to 6 can be had.')\n"
    )
    with pytest.raises(runner.NotebookFailed) as error:
        runner.run("refuses", output=tiny / "out")
    said = "refuses cannot be run so. n = 7: 2 to 6 can be had. What ran until then is kept in "
    assert str(error.value).startswith(said)


def test_the_key_follows_the_records_of_a_set_that_nothing_pins(tiny, monkeypatch):
    """Whoever puts another NAME.npz in place has another run; of a set that is not here that is said before anything runs."""
    (folder := tiny / "sets").mkdir()
    monkeypatch.setenv("MIA_DATA", str(folder))
    source = tiny / "notebooks" / "tiny.py"
    source.write_text(
        source.read_text().replace(
            "steps: int = 3",
            'dataset: str = "german_credit"  # of records [data set]\nsteps: int = 3',
        )
    )
    pinned, values = (
        parameters.validate("tiny", {"dataset": name}) for name in ("german_credit", "purchase100")
    )
    before = runner.key("tiny", pinned)
    with pytest.raises(MiaError, match="'purchase100' is not here"):
        runner.run("tiny", {"dataset": "purchase100"})
    keys = []
    for k in range(2):
        assert times_run(tiny) == k
        np.savez(
            folder / "purchase100.npz",
            x=np.full((4, 600), k, np.float32),
            y=np.arange(4),
            n_train=2,
        )
        keys.append(runner.key("tiny", values))
        runner.run("tiny", {"dataset": "purchase100"})
    runner.run("tiny", {"dataset": "purchase100"})
    assert times_run(tiny) == 2 and keys[0] != keys[1] and runner.key("tiny", pinned) == before


@pytest.mark.parametrize(
    "where, said",
    [
        *(
            (where, "--output .* cannot be a folder for results")
            for where in ("file", "file/inside", "/proc/nothing")
        ),
        ("mine", "holds a tiny.ipynb that `mia run` did not make"),
        ("pages", "holds a tiny.html that `mia run` did not make"),
    ],
)
def test_nothing_of_the_readers_own_is_overwritten_and_an_output_that_cannot_be_a_folder_refused(
    tiny, where, said
):
    (tiny / "mine").mkdir()
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("my notes")]),
        tiny / "mine" / "tiny.ipynb",
    )
    (tiny / "file").write_text("mine")
    (tiny / "pages").mkdir()
    (tiny / "pages" / "tiny.html").write_text("mine")
    with pytest.raises(MiaError, match=said):
        runner.run("tiny", output=tiny / where)
    assert times_run(tiny) == 0
    assert {(tiny / path).read_text() for path in ("file", "pages/tiny.html")} == {"mine"}
    assert "my notes" in (tiny / "mine" / "tiny.ipynb").read_text()


OWN = """# %% [markdown]
# # Toy

# %% tags=["parameters"]
dataset: str = "german_credit"  # records [data set]
net: str = "mlp:4"  # network [architecture]

# %%
import os, sys
from mia_lib import custom, data

print(data.load(dataset), custom.from_text(net)((3,), 2))
print(sys.executable, os.environ['OMP_NUM_THREADS'], os.getcwd())
"""


@pytest.mark.kernel
def test_the_kernel_is_this_interpreter_and_takes_records_and_a_network_from_the_folder_in_which_it_is_asked_for(
    tiny, monkeypatch
):
    spec = tiny / "jupyter" / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(
        json.dumps({"argv": ["/bin/false"], "display_name": "trap", "language": "python"})
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tiny / "jupyter"))
    (tiny / "notebooks" / "own.py").write_text(OWN)
    (folder := tiny / "mine").mkdir()
    np.savez(folder / "mine.npz", x=np.eye(6), y=[0, 1] * 3)
    (folder / "own_module_of_runs.py").write_text(
        "def net(shape, classes):\n    return f'a net of {shape} and {classes}'\n"
    )
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.path", list(sys.path))
    ran = runner.run("own", {"dataset": "mine.npz", "net": "own_module_of_runs:net"})
    assert "mine: 6 records of 6 numbers, 2 classes a net of (3,) and 2" in ran.read_text()
    assert f"{sys.executable} 1 {tiny}" in ran.read_text()
    record = runner.run_record(ran)
    assert "CPU cores" in record["device"] and record["peak_memory_mb"] > 5


SLOW = """# %% [markdown]
# # Toy

# %%
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("pids", "w").write(str(child.pid))

# %%
time.sleep(600)
"""


def mia_run(name: str, repo) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "mia_lib.cli", "run", name],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(repo)},
    )


def kernels(process: psutil.Process) -> list[psutil.Process]:
    return [p for p in process.children(recursive=True) if "ipykernel" in " ".join(p.cmdline())]


def ended(child: int) -> bool:
    return not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


@pytest.mark.kernel
def test_a_dead_kernel_is_explained_by_a_real_process_that_exits_1(tiny, repo):
    (tiny / "notebooks" / "dies.py").write_text(
        TITLE + "# %%\nimport os\n\n# %%\nos.kill(os.getpid(), 9)\n"
    )
    mia = mia_run("dies", repo)
    said = " ".join(mia.communicate(timeout=600)[1].split())
    assert mia.returncode == 1
    assert re.search(r"cell \[2\].*the kernel died", said)
    assert "Traceback" not in said


@pytest.mark.kernel
def test_ctrl_c_ends_the_kernel_and_its_children(tiny, repo):
    (tiny / "notebooks" / "slow.py").write_text(SLOW)
    mia = mia_run("slow", repo)
    pids = tiny / "pids"
    while not (pids.exists() and pids.read_text()):
        assert mia.poll() is None
        time.sleep(0.1)
    started = kernels(psutil.Process(mia.pid))
    time.sleep(0.5)
    mia.send_signal(signal.SIGINT)
    said = mia.communicate(timeout=600)[1]
    assert mia.returncode == 130
    assert "Finished models are kept in the store" in said and "Traceback" not in said
    assert started and not any(p.is_running() for p in started) and ended(int(pids.read_text()))


@pytest.mark.kernel
def test_notebooks_run_side_by_side_as_many_as_asked(tiny):
    for me, other in (("one", "two"), ("two", "one"), ("three", "one")):  # each waits for another
        (tiny / "notebooks" / f"{me}.py").write_text(
            TITLE + f"# %%\nimport time\nfrom pathlib import Path\nPath('{me}.here').touch()\n"
            f"while not Path('{other}.here').exists():\n    time.sleep(0.1)\n"
        )
    jobs = {name: tiny / f"{name}.ipynb" for name in ("one", "two", "three")}
    records = list(runner.execute_all([(name, {}, path) for name, path in jobs.items()], at_once=2))
    assert {record["notebook"] for record in records} == set(jobs) and len(records) == 3
    assert all(runner.run_record(path)["notebook"] == name for name, path in jobs.items())


def test_when_some_of_several_fail_the_others_run_to_their_end_and_all_that_failed_is_said(
    tiny, capsys
):
    for name, cell in (("one", "1 / 0"), ("two", "2"), ("three", "{}['key']")):
        (tiny / "notebooks" / f"{name}.py").write_text(f"{TITLE}# %%\n{cell}\n")
    jobs, done = [(name, {}, tiny / f"{name}.ipynb") for name in ("one", "two", "three")], []
    with pytest.raises(
        runner.NotebookFailed,
        match=r"(?s)notebooks/one.py.*division by zero.*notebooks/three.py.*key",
    ):
        done.extend(runner.execute_all(jobs))
    assert runner.run_record(tiny / "two.ipynb")["notebook"] == "two"
    assert "division by zero" in capsys.readouterr().out
    with pytest.raises(runner.NotebookFailed, match="^notebooks/one.py"):
        list(runner.execute_all(jobs[:2]))
    (tiny / "file").touch()
    with pytest.raises(NotADirectoryError):  # where no kernel comes to be, too, all else is done
        list(
            runner.execute_all(
                [("two", {}, tiny / "file" / "x" / "two.ipynb"), ("two", {}, tiny / "again.ipynb")]
            )
        )
    assert runner.run_record(tiny / "again.ipynb")
