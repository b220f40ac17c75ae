"""Processes of the pool come from one that has imported PyTorch, and none outlives who asked for them."""

import os
import shutil
import subprocess
import sys
import time

import psutil
import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere each process is started from nothing"
)

SCRIPT = """
import os, signal, sys, time

from mia_lib import training
from mia_lib.training import pool


def seen(*_):
    return os.getpid(), os.getppid(), os.environ["LATER"], "torch._dynamo" in sys.modules


if __name__ == "__main__":
    os.environ["LATER"] = "set after the template had started"
    found = []
    pool.run_tasks(seen, [(k,) for k in range(4)], lambda k, one: found.append(one), "asking", workers=2)
    from multiprocessing import forkserver
    assert {one[1] for one in found} == {forkserver._forkserver._forkserver_pid}
    assert all(one[2:] == (os.environ["LATER"], True) for one in found)
    with open(f"/proc/{forkserver._forkserver._forkserver_pid}/status") as status:
        [blocked] = [int(line.split()[1], 16) for line in status if line.startswith("SigBlk")]
    assert blocked & 1 << signal.SIGINT - 1, "Ctrl-C while it imports is not its to explain"
    print(os.getpid(), forkserver._forkserver._forkserver_pid, *sorted({one[0] for one in found}), flush=True)
    time.sleep(600)
"""


def test_workers_are_forked_from_the_template_in_our_environment_and_end_with_us(tmp_path):
    (tmp_path / "run.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "run.py")], stdout=subprocess.PIPE, text=True
    )
    mine, *others = map(int, process.stdout.readline().split())
    assert mine == process.pid and len(others) >= 2 and all(map(psutil.pid_exists, others))
    process.kill()
    process.wait()
    deadline = time.time() + 600
    while any(map(psutil.pid_exists, others)) and time.time() < deadline:
        time.sleep(0.1)
    assert not any(map(psutil.pid_exists, others))


def test_nothing_is_imported_from_the_folder_where_we_run(tmp_path):
    (folder := tmp_path / "records").mkdir()
    for name in ("multiprocessing", "torch"):
        (folder / f"{name}.py").write_text(f"open('ran_{name}', 'w')")
    (tmp_path / "run.py").write_text(
        "from mia_lib import processes\n"
        "if __name__ == '__main__':\n"
        "    process = processes.context().Process(target=print, args=('imported',))\n"
        "    process.start()\n    process.join()"
    )
    done = subprocess.run(
        [sys.executable, tmp_path / "run.py"], cwd=folder, capture_output=True, text=True
    )
    assert not list(folder.glob("ran_*")) and done.stdout == "imported\n", done.stderr


def test_processes_compute_with_the_library_of_their_parent_wherever_it_was_found(tmp_path, repo):
    """Else results of an installed copy would stand under the hash of the code of a clone that is run from its folder."""
    shutil.copytree(
        repo / "mia_lib", tmp_path / "mia_lib", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "ask.py").write_text(
        "import mia_lib\nfrom mia_lib import processes\n\n\ndef where():\n    return mia_lib.__file__\n\n\n"
        "if __name__ == '__main__':\n    with processes.context().Pool(1) as pool:\n"
        "        print(pool.apply(where), where(), sep='\\n')\n"
    )
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "ask"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [str(tmp_path / "mia_lib" / "__init__.py")] * 2, done.stderr
