"""Notebooks are run once, what fails is kept and named, and every process that they start is ended."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time

import nbformat
import numpy as np
import psutil
import pytest

from mia_lib.errors import MiaError
from mia_lib.progress import Bars
from mia_lib.publish import parameters, runner


def times_run(root) -> int:
    log = root / "ran.log"
    return len(log.read_text().split()) if log.exists() else 0


TITLE = "# %% [markdown]\n# # Toy\n\n"


@pytest.mark.kernel
def test_a_run_is_reused_until_something_that_matters_changes(tiny):
    ran = runner.run("tiny", {"steps": 2})
    assert times_run(tiny) == 1 and ran.parent.parent == tiny / "runs"
    assert runner.run("tiny", {"steps": "2"}) == ran and times_run(tiny) == 1
    record = runner.run_record(ran)
    assert record["changed"] == {"steps": 2} and "CPU cores" in record["device"] and record["peak_memory_mb"] > 5
    source = tiny / "notebooks" / "tiny.py"
    source.write_text(source.read_text().replace("# # A tiny page", "# # A tinier page"))
    assert runner.run("tiny", {"steps": 2}) == ran and times_run(tiny) == 1, "text is put around what ran"
    assert "# A tinier page" in ran.read_text()
    source.write_text(source.read_text().replace('"one dot"', '"a dot"'))
    assert runner.run("tiny", {"steps": 2}) != ran and times_run(tiny) == 2


def test_the_key_follows_source_data_and_parameters(tiny):
    values = parameters.validate("tiny", {})
    first = runner.key("tiny", values)
    assert runner.key("tiny", values) == first
    assert runner.key("tiny", {**values, "steps": 4}) != first
    (tiny / "data" / "papers").mkdir(parents=True)
    (tiny / "data" / "papers" / "t.csv").write_text("1")
    second = runner.key("tiny", values)
    os.utime(tiny / "data" / "papers" / "t.csv", (1, 1))
    assert runner.key("tiny", values) == second != first


def test_the_key_follows_the_code_of_the_library_and_of_modules_of_the_readers_own(tiny, monkeypatch):
    """But for comments, and for what only draws pages."""
    library = tiny / "mia_lib"
    for name, text in {"__init__.py": "", "attacks.py": "", "publish/pages.py": "a = 1\n"}.items():
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).write_text(text)
    (tiny / "my_models.py").write_text("from my_layers import width\n")
    (tiny / "my_layers.py").write_text("width = 3\n")
    source = tiny / "notebooks" / "tiny.py"
    source.write_text(source.read_text().replace("# # A tiny page", "# # A tiny page\n\n# %%\nimport my_models"))
    values, keys = parameters.validate("tiny", {}), []
    for path, text in ((library / "attacks.py", "def score(x):\n    return -x\n"),
                       (library / "attacks.py", "def score(x):  # low is suspicious\n    return -x\n"),
                       (library / "publish" / "pages.py", "a = 2\n"),
                       (library / "attacks.py", "def score(x):\n    return x\n"),
                       (tiny / "my_layers.py", "width = 4\n")):
        path.write_text(text)
        os.utime(path, ns=(len(keys), len(keys)))  # a file system's clock may be coarse
        keys.append(runner.key("tiny", values))
    assert keys[0] == keys[1] == keys[2] and len(set(keys)) == 3


@pytest.mark.parametrize("finished, in_cell, left", [
    ([], 0.0, 62.0), ([2.0], 1.0, 28.0), ([8.0, 16.0], 5.0, 95.0), ([8.0, 16.0], 204.0, np.nan), ([8.0, 16.0, 9.0], 1.0, 0.0)])
def test_what_is_left_is_what_cells_usually_take_at_the_pace_of_this_run(finished, in_cell, left):
    assert runner.seconds_left([4.0, 8.0, 50.0], finished, in_cell) == pytest.approx(left, nan_ok=True)


@pytest.mark.parametrize("source", ["", "# %%\nx = 1\n", "# %% [markdown]\n# no title\n\n# %%\nx = 1\n"])
def test_a_notebook_without_a_title_is_refused_before_anything_runs(tiny, source):
    (tiny / "notebooks" / "untitled.py").write_text(source)
    values = parameters.validate("tiny", {})
    with pytest.raises(MiaError, match="notebooks/untitled.py has no title: its first cell must be Markdown"):
        list(runner.execute_all([("tiny", values, tiny / "a.ipynb"), ("untitled", {}, tiny / "b.ipynb")]))
    assert times_run(tiny) == 0


def test_a_failing_cell_is_named_and_what_ran_is_kept(tiny):
    (tiny / "notebooks" / "fails.py").write_text(
        "# %% [markdown]\n# # Fails\n\n# %%\nprint('before')\n\n"
        "# %%\n# breaks here\nraise ValueError('first\\nlast word')\n\n# %%\nprint('after')\n")
    with pytest.raises(runner.NotebookFailed) as error:
        runner.run("fails")
    kept = next((tiny / "runs").glob("fails-*/fails.ipynb"))
    assert all(part in str(error.value) for part in
               ("notebooks/fails.py", "cell [2]", "`# breaks here`", "ValueError: last word", str(kept)))
    text = kept.read_text()
    outputs = [str(o) for c in nbformat.read(kept, as_version=4).cells for o in c.get("outputs", [])]
    assert "before" in text and not any("after" in output for output in outputs)
    assert runner.run_record(kept) is None and not kept.with_suffix(".html").exists()


def test_the_key_follows_the_records_of_a_set_that_nothing_pins(tiny, monkeypatch):
    """Whoever puts another NAME.npz in place has another run; of a set that is not here that is said before anything runs."""
    folder = tiny / "sets"
    folder.mkdir()
    monkeypatch.setenv("MIA_DATA", str(folder))
    source = tiny / "notebooks" / "tiny.py"
    source.write_text(source.read_text().replace(
        "steps: int = 3", 'dataset: str = "german_credit"  # of records [data set]\nsteps: int = 3'))
    pinned = runner.key("tiny", parameters.validate("tiny", {}))
    with pytest.raises(MiaError, match="'purchase100' is not here"):
        runner.run("tiny", {"dataset": "purchase100"})
    assert times_run(tiny) == 0
    values = parameters.validate("tiny", {"dataset": "purchase100"})
    keys = []
    for k in range(2):
        np.savez(folder / "purchase100.npz", x=np.full((4, 600), k, np.float32), y=np.arange(4), n_train=2)
        keys.append(runner.key("tiny", values))
        runner.run("tiny", {"dataset": "purchase100"})
        assert times_run(tiny) == k + 1
    runner.run("tiny", {"dataset": "purchase100"})
    assert times_run(tiny) == 2 and keys[0] != keys[1] and runner.key("tiny", parameters.validate("tiny", {})) == pinned


@pytest.mark.parametrize("where", ["file", "file/inside", "/proc/nothing"])
def test_an_output_that_cannot_be_a_folder_is_refused_before_anything_runs(tiny, where):
    (tiny / "file").write_text("mine")
    with pytest.raises(MiaError, match="--output .* cannot be a folder for results"):
        runner.run("tiny", output=tiny / where)
    assert times_run(tiny) == 0 and (tiny / "file").read_text() == "mine"


def test_a_notebook_of_the_readers_own_is_not_overwritten(tiny):
    own = tiny / "mine" / "tiny.ipynb"
    own.parent.mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("my notes")]), own)
    with pytest.raises(MiaError, match="holds a tiny.ipynb that `mia run` did not make"):
        runner.run("tiny", output=own.parent)
    assert "my notes" in own.read_text() and times_run(tiny) == 0
    own.unlink()
    runner.run("tiny", output=own.parent)
    assert runner.run("tiny", {"steps": 2}, output=own.parent).exists() and times_run(tiny) == 2  # a run of ours is


def test_the_same_parameters_by_another_preset_are_shown_under_its_name(tiny):
    presets = tiny / "notebooks" / "presets"
    first = runner.run("tiny", {"steps": 2}, "smoke")
    (presets / "tiny.smoke.yaml").rename(presets / "tiny.other.yaml")
    assert runner.run("tiny", {"steps": 2}, "other") == first and times_run(tiny) == 1
    assert runner.run_record(first)["preset"] == "other"


OWN = '''# %% [markdown]
# # Toy

# %% tags=["parameters"]
dataset: str = "german_credit"  # records [data set]
net: str = "mlp:4"  # network [architecture]

# %%
from mia_lib import custom, data

print(data.load(dataset), custom.from_text(net).function((3,), 2))
'''


@pytest.mark.kernel
def test_a_run_takes_records_and_a_network_from_the_folder_in_which_it_is_asked_for(tiny, monkeypatch):
    (tiny / "notebooks" / "own.py").write_text(OWN)
    (folder := tiny / "mine").mkdir()
    np.savez(folder / "mine.npz", x=np.eye(6), y=[0, 1] * 3)
    (folder / "own_module_of_runs.py").write_text("def net(shape, classes):\n    return f'a net of {shape} and {classes}'\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.path", list(sys.path))
    text = runner.run("own", {"dataset": "mine.npz", "net": "own_module_of_runs:net"}).read_text()
    assert "mine: 6 records of 6 numbers, 2 classes a net of (3,) and 2" in text


@pytest.mark.kernel
def test_a_dead_kernel_is_explained(tiny):
    (tiny / "notebooks" / "dies.py").write_text(TITLE + "# %%\nimport os\n\n# %%\nos.kill(os.getpid(), 9)\n")
    with pytest.raises(runner.NotebookFailed, match=r"cell \[2\].*the kernel died"):
        runner.run("dies")


def test_a_full_disk_is_said(tiny, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(runner, "write_whole", full)
    with pytest.raises(MiaError, match="disk is full"):
        runner.run("tiny")
    monkeypatch.setattr(runner, "write_whole", lambda *_: (_ for _ in ()).throw(PermissionError("no")))
    with pytest.raises(PermissionError):
        runner.run("tiny")


@pytest.mark.kernel
def test_the_kernel_is_this_interpreter_whatever_is_installed(tiny, monkeypatch):
    spec = tiny / "jupyter" / "kernels" / "python3"
    spec.mkdir(parents=True)
    trap = {"argv": ["/bin/false"], "display_name": "trap", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(trap))
    monkeypatch.setenv("JUPYTER_PATH", str(tiny / "jupyter"))
    (tiny / "notebooks" / "who.py").write_text(
        TITLE + "# %%\nimport os, sys, mia_lib\nprint(sys.executable, os.environ['OMP_NUM_THREADS'], os.getcwd())\n")
    assert f"{sys.executable} 1 {tiny}" in runner.run("who").read_text()


SLOW = '''# %% [markdown]
# # Toy

# %%
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("pids", "w").write(str(child.pid))

# %%
time.sleep(600)
'''


@pytest.mark.kernel
def test_ctrl_c_ends_the_kernel_and_its_children(tiny, repo):
    import signal

    (tiny / "notebooks" / "slow.py").write_text(SLOW)
    env = {**os.environ, "PYTHONPATH": str(repo)}
    mia = subprocess.Popen([sys.executable, "-m", "mia_lib.publish.cli", "run", "slow"], env=env, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pids = tiny / "pids"
    while not (pids.exists() and pids.read_text()):
        assert mia.poll() is None
        time.sleep(0.1)
    kernel = [p for p in psutil.Process(mia.pid).children(recursive=True) if "ipykernel" in " ".join(p.cmdline())]
    child = psutil.Process(int(pids.read_text()))
    time.sleep(0.5)
    mia.send_signal(signal.SIGINT)
    said = mia.communicate(timeout=60)[1]
    assert mia.returncode == 130
    assert "Finished models are kept in the store" in said and "Traceback" not in said
    assert kernel and not any(p.is_running() for p in kernel)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


MEETS = '''# %% [markdown]
# # Toy

# %%
import time
from pathlib import Path
Path("{me}.here").touch()
for _ in range(1200):
    if Path("{other}.here").exists():
        break
    time.sleep(0.1)
else:
    raise RuntimeError("{other} did not come")
'''


@pytest.mark.kernel
def test_notebooks_run_side_by_side_as_many_as_asked(tiny):
    for me, other in (("one", "two"), ("two", "one"), ("three", "one")):
        (tiny / "notebooks" / f"{me}.py").write_text(MEETS.format(me=me, other=other))
    jobs = [(name, {}, tiny / f"{name}.ipynb") for name in ("one", "two", "three")]
    records = list(runner.execute_all(jobs, at_once=2))
    assert sorted(record["notebook"] for record in records) == ["one", "three", "two"]
    for name, _, output in jobs:
        assert runner.run_record(output)["notebook"] == name


@pytest.mark.kernel
def test_when_one_of_several_fails_the_others_are_ended(tiny):
    (tiny / "notebooks" / "slow.py").write_text(SLOW)
    (tiny / "notebooks" / "fails.py").write_text(
        TITLE + "# %%\nimport time\nfrom pathlib import Path\n"
        "while not Path('pids').exists() or not Path('pids').read_text():\n"
        "    time.sleep(0.1)\n1 / 0\n")
    with pytest.raises(runner.NotebookFailed, match="notebooks/fails.py.*division by zero"):
        list(runner.execute_all([(name, {}, tiny / f"{name}.ipynb") for name in ("slow", "fails")], at_once=2))
    child = int((tiny / "pids").read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
    assert not [p for p in psutil.Process().children(recursive=True) if "ipykernel" in " ".join(p.cmdline())]


@pytest.mark.kernel
def test_an_interrupt_while_drawing_ends_the_kernel_too(tiny):
    (tiny / "notebooks" / "slow.py").write_text(SLOW)

    class Impatient(Bars):
        def update(self, *_):
            if (tiny / "pids").exists():
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run("slow", bars=Impatient())
    assert not [p for p in psutil.Process().children(recursive=True) if "ipykernel" in " ".join(p.cmdline())]
