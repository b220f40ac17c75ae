"""Parameters are checked, notebooks are run once, what fails is kept, and the book is made of what ran."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
import psutil
import pytest

from mia_lib.errors import MiaError
from mia_lib.progress import Bars, Tail, duration
from mia_lib.publish import outputs, pages, parameters, runner


def times_run(root) -> int:
    log = root / "ran.log"
    return len(log.read_text().split()) if log.exists() else 0


# Parameters


def test_a_declaration_is_read_whole(tiny):
    found = {p.name: p for p in runner.parameters("tiny")}
    assert list(found) == ["steps", "rate", "mode", "noisy", "sizes", "kinds"]
    assert found["steps"] == parameters.Parameter("steps", "int", 3, "1..10", "how many steps")
    assert found["mode"].allowed == "plain | fancy" and found["noisy"].allowed == ""
    assert found["sizes"].type == "list[int]" and found["kinds"].type == "tuple[str]"


def test_a_preset_stands_over_the_defaults_and_the_given_over_both(tiny):
    assert runner.presets("tiny") == ["published", "quick", "smoke"]
    assert runner.validate("tiny", {})["steps"] == 3
    values = runner.validate("tiny", {"steps": "7"}, "smoke")
    assert values["steps"] == 7 and values["rate"] == 1e-3 and values["mode"] == "plain"
    assert runner.changed("tiny", values) == {"steps": 7, "rate": 1e-3}
    assert {p.name: p.default for p in runner.parameters("tiny", "smoke")}["steps"] == 1


@pytest.mark.parametrize("name, text, value", [
    ("steps", "10", 10), ("rate", "1", 1.0), ("rate", "1e-2", 0.01), ("mode", "fancy", "fancy"), ("noisy", "Yes", True),
    ("noisy", "false", False), ("sizes", "3,40", [3, 40]), ("sizes", "[3, 40]", [3, 40]), ("sizes", "", []),
    ("kinds", "a,b", ("a", "b")), ("kinds", "a;b", ("a", "b")), ("kinds", "['b']", ("b",)),
    ("kinds", "[a, b]", ("a", "b")),
])
def test_text_is_read_according_to_the_type(tiny, name, text, value):
    got = runner.validate("tiny", {name: text})[name]
    assert got == value and type(got) is type(value)


def test_an_item_with_commas_that_was_taken_apart_is_said_to_need_a_semicolon(rules):
    with pytest.raises(MiaError, match="ends with a semicolon: 'tanh_cnn:8,8,8' as one item is 'tanh_cnn:8,8,8;'"):
        runner.validate("rules", {"nets": "tanh_cnn:8,8,8"})


@pytest.mark.parametrize("given, says", [
    ({"stepz": 1}, "Did you mean 'steps'"),
    ({"steps": "many"}, "steps = 'many' has the wrong type: give a whole number"),
    ({"steps": 2.5}, "wrong type"), ({"steps": True}, "wrong type"), ({"steps": "11"}, "from 1 to 10"),
    ({"rate": "nan"}, "wrong type"), ({"rate": -0.1}, "out of range"), ({"mode": "fancier"}, "Did you mean 'fancy'"),
    ({"noisy": "perhaps"}, "true or false"), ({"sizes": "3,x"}, "wrong type"), ({"sizes": "0"}, "out of range"),
    ({"sizes": 3}, "not a list"), ({"kinds": "c"}, "kinds"), ({"mode": 3}, "wrong type"),
])
def test_bad_values_are_refused_by_name(tiny, given, says):
    with pytest.raises(MiaError, match=next(iter(given))) as error:
        runner.validate("tiny", given)
    assert says in str(error.value)


def test_unknown_notebook_and_preset_are_refused(tiny):
    with pytest.raises(MiaError, match="Did you mean 'tiny'"):
        runner.validate("tinny", {})
    with pytest.raises(MiaError, match="Did you mean 'smoke'"):
        runner.validate("tiny", {}, "smokey")


@pytest.mark.parametrize("text, says", [
    ("steps: 99\n", "from 1 to 10"), ("stepz: 1\n", "preset smoke: parameter"), ("[1", "not YAML"),
    ("- 1\n", "one `name: value`"),
])
def test_a_bad_preset_is_refused(tiny, text, says):
    (tiny / "notebooks" / "presets" / "tiny.smoke.yaml").write_text(text)
    with pytest.raises(MiaError, match=says):
        runner.validate("tiny", {}, "smoke")


@pytest.mark.parametrize("line, says", [
    ("a = 1", "is no parameter"), ("a: complex = 1", "has type 'complex'"), ("a: int = f()", "plain value"),
    ("a: int =", "not Python"),
])
def test_a_bad_declaration_is_refused(tiny, line, says):
    (tiny / "notebooks" / "bad.py").write_text(f'# %% tags=["parameters"]\n{line}\n')
    with pytest.raises(MiaError, match=says):
        runner.parameters("bad")


def test_comments_above_units_and_open_ranges(tiny):
    (tiny / "notebooks" / "more.py").write_text(
        '# %% tags=["parameters"]\n"""What the page takes."""\n# where it starts [-1..]\nstart: int = 0\n'
        'length: float = 1.0  # how long [seconds]\n')
    start, length = runner.parameters("more")
    assert (start.meaning, start.allowed) == ("where it starts", "-1..")
    assert (length.meaning, length.allowed) == ("how long [seconds]", "")
    assert runner.validate("more", {"start": "1000"})["start"] == 1000
    with pytest.raises(MiaError, match="at least -1"):
        runner.validate("more", {"start": -2})


@pytest.mark.parametrize("name", parameters.notebooks(Path(__file__).parents[2]))
def test_cells_are_read_as_jupytext_reads_them(repo, name):
    text = (repo / "notebooks" / f"{name}.py").read_text()
    cells = [cell for cell in runner.read(repo / "notebooks" / f"{name}.py").cells if cell.cell_type == "code"]
    assert parameters.code_cells(text) == [cell.source for cell in cells]
    assert parameters.code_cells(text, "parameters") == [
        cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(parameters.code_cells(text, "parameters")) == 1


RULES = '''# %% tags=["parameters"]
models: int = 6  # in pairs [4..20; even]
targets: int = 2  # attacked [2..models]
counts: list[int] = [2, 4]  # of references [2..models - 2; even; ascending; not empty]
pair: list[int] = [1, 2]  # two of them [0..9; 2 items; distinct]
shares: list[float] = [0.5, 0.5]  # of the records [0.0..1.0; adding up to 1]
names: list[str] = ["a", "b"]  # of cases
each: list[int] = [3, 4]  # one a case [1..; as many as names]
data: str = "own"  # where records come from [own | data set]
nets: list[str] = ["mlp:8"]  # that are trained [architecture; not empty]
change: str = "none"  # of images [augmentation]
'''


@pytest.fixture
def rules(tiny):
    (tiny / "notebooks" / "rules.py").write_text(RULES)
    (tiny / "notebooks" / "presets" / "rules.small.yaml").write_text("models: 4\ncounts: [2]\nnets: [logistic_regression]\n")


@pytest.mark.parametrize("given", [
    {}, {"models": "8", "targets": "8", "counts": "2,4,6"}, {"pair": "9,0"}, {"shares": "0.2,0.3,0.5"},
    {"names": "a", "each": "7"}, {"data": "german_credit"}, {"nets": "mlp:4,4;tanh_cnn:8,8,8"},
    {"nets": "mlp:4,4;"}, {"change": "flip_crop:2"},
])
def test_rules_between_brackets_let_pass_what_fits(rules, given):
    values = runner.validate("rules", given)
    assert all(str(parameters.plain(values[name])) == text for name, text in given.items())


@pytest.mark.parametrize("given, says", [
    ({"models": "7"}, "models = 7 is odd: an even number is needed, such as 8"),
    ({"targets": "7"}, "targets = 7 is out of range: allowed is at most 6, that is models"),
    ({"models": "4"}, "counts = [2, 4] is out of range: allowed is at most 2, that is models - 2"),
    ({"counts": "2,3"}, "counts = 3 is odd"), ({"counts": "4,2"}, "counts = [4, 2] is not allowed: it must be ascending"),
    ({"counts": ""}, "counts = [] is not allowed: it must be not empty"), ({"pair": "1"}, "it must be 2 items"),
    ({"pair": "1,1"}, "it must be distinct"), ({"shares": "0.5,0.6"}, "it must be adding up to 1"),
    ({"each": "3"}, "it must be as many as names. names has 2, each 1. It means: one a case"),
    ({"data": "german"}, "data: data set = 'german' is not known. Did you mean 'german_credit'"),
    ({"data": "german"}, "Or 'own'"),
    ({"nets": "mpl"}, "nets: architecture = 'mpl' is not known. Did you mean 'mlp'"),
    ({"nets": "tanh_cnn:8"}, "gives 1 widths, not 3"), ({"nets": ""}, "not empty"),
    ({"change": "flop"}, "change: augmentation = 'flop' is not known. Did you mean 'flip'"),
    ({"change": "flip_crop:far"}, "must be a number"),
])
def test_rules_between_brackets_refuse_before_a_kernel_starts(rules, given, says):
    with pytest.raises(MiaError) as error:
        runner.run("rules", given)
    assert says in str(error.value)


def test_a_preset_is_held_to_the_rules_together_with_what_is_given(rules):
    assert runner.validate("rules", {}, "small")["counts"] == [2]
    with pytest.raises(MiaError, match="targets = 5 is out of range: allowed is at most 4, that is models"):
        runner.validate("rules", {"targets": 5}, "small")


WRONG = {
    "bayes": [{"references": 5}, {"classes": [5]}, {"classes": [5, 5]}, {"sizes": [401]}, {"architecture": "mlp:a"},
              {"sweep_architectures": ["lenet"]}, {"augmentations": ["none", "flop", "flip_crop:1"]},
              {"augmentations": ["none"]}, {"dataset": "cifar"}, {"source": "x"}],
    "calibration": [{"tables": ["german"]}, {"tables": []}, {"image_architecture": "leino_cnn:1"}, {"image_plays": 1},
                    {"counts": [3]}, {"ratios": [0]}, {"image_dataset": "x"}, {"counts": [8, 2]}, {"sizes": [5]},
                    {"bank": "cifar"}],
    "curvature": [{"models": 7}, {"targets": 129}, {"references": 5}, {"asked": 5}, {"architecture": "x"},
                  {"datasets": []}, {"sizes": [5, 1]}, {"sizes": []}],
    "iha": [{"epochs": [3]}, {"records": [60000]}, {"targets": 129}, {"models": 9}, {"architectures": ["mlp:", "mlp:6"]},
            {"datasets": ["x", "mnist"]}, {"first_epochs": []}, {"first_fractions": [0.0]}, {"damping": 0.0}, {"sizes": [5]},
            {"unmeasured": "x"}, {"left_out_targets": 9}],
    "quantile": [{"models": [9]}, {"images": []}, {"counts": [3]}, {"counts": [4, 2]}, {"targets": 1}, {"backbone": "resnet1"},
                 {"images": ["x"]}, {"table_models": 7}, {"table_counts": [65]}, {"tables": ["adult", "adult"]}],
}


@pytest.mark.parametrize("name, given", [(name, given) for name, each in WRONG.items() for given in each], ids=str)
def test_what_a_chapter_would_refuse_is_refused_before_a_kernel_starts(repo, name, given):
    with pytest.raises(MiaError, match=next(iter(given))):
        runner.validate(name, given, root=repo)


def test_outside_a_book_it_says_so(tmp_path, monkeypatch):
    with pytest.raises(MiaError, match="inside a clone"):
        runner.find_root(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert (runner.find_root() / "mia_lib").is_dir(), "an installed checkout is found from anywhere"


def test_presets_of_the_repository_are_valid(repo):
    for path in (repo / "notebooks" / "presets").glob("*.yaml"):
        name, preset = path.stem.split(".")
        runner.validate(name, {}, preset, repo)
    for name in runner.notebooks(repo):
        runner.validate(name, {}, root=repo)
        assert all(p.meaning for p in runner.parameters(name, root=repo)), f"{name}: each parameter says what it means"


# Pairs


def test_pairs(repo):
    assert runner.sync_pairs(check=True, root=repo) == [], "run `mia sync`"


def test_converting_twice_gives_the_same_pair_without_outputs(tiny):
    pair = tiny / "notebooks" / "tiny.ipynb"
    assert runner.sync_pairs(check=True) == [pair] and not pair.exists()
    assert runner.sync_pairs() == [pair]
    first = pair.read_bytes()
    assert runner.sync_pairs() == []
    pair.write_text("{}")
    runner.sync_pairs()
    assert pair.read_bytes() == first
    notebook = nbformat.read(pair, as_version=4)
    nbformat.validate(notebook)
    assert set(notebook.metadata) == {"kernelspec"} and notebook.nbformat_minor == 5
    assert not any(cell.get("outputs") for cell in notebook.cells)
    (tiny / "notebooks" / "stray.ipynb").write_text("{}")
    assert runner.sync_pairs(check=True) == [tiny / "notebooks" / "stray.ipynb"]


# Running


@pytest.mark.kernel
def test_a_run_is_reused_until_something_that_matters_changes(tiny):
    ran = runner.run("tiny", {"steps": 2})
    assert times_run(tiny) == 1 and ran.parent.parent == tiny / "runs"
    assert runner.run("tiny", {"steps": "2"}) == ran and times_run(tiny) == 1
    record = runner.finished(ran)
    assert record["changed"] == {"steps": 2} and record["device"] == runner.processor() and record["peak_memory_mb"] > 5
    source = tiny / "notebooks" / "tiny.py"
    source.write_text(source.read_text().replace("# # A tiny page", "# # A tinier page"))
    assert runner.run("tiny", {"steps": 2}) == ran and times_run(tiny) == 1, "text is put around what ran"
    assert "# A tinier page" in ran.read_text()
    source.write_text(source.read_text().replace('"one dot"', '"a dot"'))
    assert runner.run("tiny", {"steps": 2}) != ran and times_run(tiny) == 2


def test_the_key_follows_source_data_and_parameters(tiny):
    values = runner.validate("tiny", {})
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
    values, keys = runner.validate("tiny", {}), []
    for path, text in ((library / "attacks.py", "def score(x):\n    return -x\n"),
                       (library / "attacks.py", "def score(x):  # low is suspicious\n    return -x\n"),
                       (library / "publish" / "pages.py", "a = 2\n"),
                       (library / "attacks.py", "def score(x):\n    return x\n"),
                       (tiny / "my_layers.py", "width = 4\n")):
        path.write_text(text)
        os.utime(path, ns=(len(keys), len(keys)))  # a file system's clock may be coarse
        keys.append(runner.key("tiny", values))
    assert keys[0] == keys[1] == keys[2] and len(set(keys)) == 3


def test_a_failing_cell_is_named_and_what_ran_is_kept(tiny):
    (tiny / "notebooks" / "fails.py").write_text(
        "# %%\nprint('before')\n\n# %%\n# breaks here\nraise ValueError('first\\nlast word')\n\n# %%\nprint('after')\n")
    with pytest.raises(runner.NotebookFailed) as error:
        runner.run("fails")
    kept = next((tiny / "runs").glob("fails-*/fails.ipynb"))
    assert all(part in str(error.value) for part in
               ("notebooks/fails.py", "cell [2]", "`# breaks here`", "ValueError: last word", str(kept)))
    text = kept.read_text()
    outputs = [str(o) for c in nbformat.read(kept, as_version=4).cells for o in c.get("outputs", [])]
    assert "before" in text and not any("after" in output for output in outputs)
    assert runner.finished(kept) is None and not kept.with_suffix(".html").exists()


def test_the_key_follows_the_records_of_a_set_that_nothing_pins(tiny, monkeypatch):
    """Whoever puts another NAME.npz in place has another run; of a set that is not here that is said before anything runs."""
    folder = tiny / "sets"
    folder.mkdir()
    monkeypatch.setenv("MIA_DATA", str(folder))
    source = tiny / "notebooks" / "tiny.py"
    source.write_text(source.read_text().replace(
        "steps: int = 3", 'dataset: str = "german_credit"  # of records [data set]\nsteps: int = 3'))
    pinned = runner.key("tiny", runner.validate("tiny", {}))
    with pytest.raises(MiaError, match="'purchase100' is not here"):
        runner.run("tiny", {"dataset": "purchase100"})
    assert times_run(tiny) == 0
    values = runner.validate("tiny", {"dataset": "purchase100"})
    keys = []
    for k in range(2):
        np.savez(folder / "purchase100.npz", x=np.full((4, 600), k, np.float32), y=np.arange(4), n_train=2)
        keys.append(runner.key("tiny", values))
        runner.run("tiny", {"dataset": "purchase100"})
        assert times_run(tiny) == k + 1
    runner.run("tiny", {"dataset": "purchase100"})
    assert times_run(tiny) == 2 and keys[0] != keys[1] and runner.key("tiny", runner.validate("tiny", {})) == pinned


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
    assert runner.finished(first)["preset"] == "other"


@pytest.mark.kernel
def test_a_dead_kernel_is_explained(tiny):
    (tiny / "notebooks" / "dies.py").write_text("# %%\nimport os\n\n# %%\nos.kill(os.getpid(), 9)\n")
    with pytest.raises(runner.NotebookFailed, match=r"cell \[2\].*the kernel died"):
        runner.run("dies")


def test_a_full_disk_is_said(tiny, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(runner, "_write", full)
    with pytest.raises(MiaError, match="disk is full"):
        runner.run("tiny")
    monkeypatch.setattr(runner, "_write", lambda *_: (_ for _ in ()).throw(PermissionError("no")))
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
        "# %%\nimport os, sys, mia_lib\nprint(sys.executable, os.environ['OMP_NUM_THREADS'], os.getcwd())\n")
    assert f"{sys.executable} 1 {tiny}" in runner.run("who").read_text()


SLOW = '''# %%
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
    assert next((tiny / "runs").glob("slow-*/slow.ipynb")).exists()


MEETS = '''# %%
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
        assert runner.finished(output)["notebook"] == name


@pytest.mark.kernel
def test_when_one_of_several_fails_the_others_are_ended(tiny):
    (tiny / "notebooks" / "slow.py").write_text(SLOW)
    (tiny / "notebooks" / "fails.py").write_text(
        "# %%\nimport time\nfrom pathlib import Path\nwhile not Path('pids').exists() or not Path('pids').read_text():\n"
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
        def tick(self):
            if (tiny / "pids").exists():
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run("slow", bars=Impatient())
    assert not [p for p in psutil.Process().children(recursive=True) if "ipykernel" in " ".join(p.cmdline())]


# The book


def test_a_book_is_built_once_and_only_what_changed_is_touched(tiny, capsys, monkeypatch):
    index = pages.build()
    assert index.is_file() and times_run(tiny) == 1
    page = (index.parent / "notebooks" / "tiny.html").read_text()
    assert "Caption of fig-one" in page and "Fig. 2" in page and 'alt="one dot"' in page
    assert "How the numbers on this page came about" in page
    assert "mia run tiny -p NAME VALUE" in (tiny / "_build" / "book" / "notebooks" / "tiny.ipynb").read_text()
    status = (index.parent / "book" / "status.html").read_text()
    assert "A tiny page" in status and runner.processor() in status
    assert (tiny / "_build" / "book" / "book" / "_figures" / "fig-one.png").read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert pages.build() == index and times_run(tiny) == 1
    assert "nothing changed, used again" in capsys.readouterr().out
    with monkeypatch.context() as patch:
        patch.setattr(pages, "_pages", None)  # so nothing is read to see that nothing changed
        assert pages.build() == index
    status = tiny / "_build" / "book" / "book" / "status.md"
    for spoil in (status.unlink, lambda: (tiny / "book" / "status.md").write_text("# Runs\n\n<!-- generated -->\n")):
        spoil()
        assert pages.build() == index and runner.processor() in status.read_text(), "what changed is seen"
    assert "Runs" in status.read_text() and times_run(tiny) == 1

    files = dict(pages._pages(tiny, {}))
    folder = tiny / "stage"
    assert set(pages.stage(files, folder)) == set(files)
    assert pages.stage(files, folder) == []
    files["book/index.md"] += b"\nmore\n"
    files.pop("book/status.md")
    assert set(pages.stage(files, folder)) == {"book/index.md", "book/status.md"}
    assert not (folder / "book" / "status.md").exists()

    # A warning fails the build, also when only the other pages have changed since.
    (tiny / "book" / "index.md").write_text("# Tiny book\n\nSee {numref}`fig-none`.\n")
    for _ in range(2):
        with pytest.raises(pages.BookFailed, match="fig-none"):
            pages.build()
        (tiny / "book" / "status.md").write_text("# Status again\n\n<!-- generated -->\n")
    assert times_run(tiny) == 1


def test_bad_presets_and_pages_are_refused_before_anything_runs(tiny):
    with pytest.raises(MiaError, match="preset of tiny = 'papr'"):
        pages.build("papr")
    assert times_run(tiny) == 0
    (tiny / "book" / "status.md").write_text("# Status\n")
    with pytest.raises(MiaError, match="has no line <!-- generated -->"):
        pages._pages(tiny, {})


def test_two_builds_at_once_are_refused(tiny):
    from filelock import FileLock

    (tiny / "_build").mkdir()
    with FileLock(tiny / "_build" / "lock"), pytest.raises(MiaError, match="Another `mia build`"):
        pages.build()


RECORD = {"notebook": "n", "preset": "smoke", "changed": {"a": "x|y"}, "date": "2026-01-02T03:04:05+00:00",
          "seconds": 75.2, "peak_memory_mb": 300, "device": "2 CPU cores", "versions": {"python": "3.11.2"},
          "key": "0123"}


def cell(*outputs, **metadata) -> dict:
    return {"cell_type": "code", "id": "c", "execution_count": 1, "metadata": metadata, "source": "x",
            "outputs": list(outputs)}


def shown(data, figure=None) -> dict:
    return {"output_type": "display_data", "data": data, "metadata": {"mia": figure} if figure else {}}


def test_a_page_carries_captions_and_provenance_and_no_bookkeeping():
    figure = {"name": "fig-a", "caption": "A", "alt": "dots", "width": "80%"}
    stream = {"output_type": "stream", "name": "stdout", "text": "hello"}
    made = pages.page({"metadata": {"mia": RECORD}, "cells": [
        cell(stream, shown({"image/png": "a"}, figure), shown({"text/markdown": "t"}),
             shown({"image/png": "b"}, figure)),
        cell(shown({outputs.RESULTS: {}}), tags=["injected-parameters"]),
    ]})
    first, table, second, injected, footer = made["cells"]
    assert "mia" not in made["metadata"]
    assert first["metadata"]["mystnb"] == {"figure": {"name": "fig-a", "caption": "A"},
                                           "image": {"alt": "dots", "width": "80%"}}
    assert [len(c["outputs"]) for c in (first, table, second)] == [2, 1, 1]
    assert "mystnb" not in table["metadata"] and second["metadata"]["tags"] == ["remove-input"]
    assert len({c["id"] for c in made["cells"][:3]}) == 3
    assert injected["outputs"] == [] and injected["metadata"]["tags"] == ["injected-parameters", "hide-input"]
    for part in ("smoke", "`a = 'x\\|y'`", "2026-01-02 03:04 UTC, 1 min 15 s, 300 MB",
                 "mia run n --preset smoke -p NAME VALUE"):
        assert part in footer["source"], part


def test_pages_are_staged_with_the_code_that_they_describe(tiny):
    made = {"metadata": {"mia": RECORD}, "cells": [cell()]}
    files = pages._pages(tiny, {"tiny": made})
    assert "mia_lib/publish/runner.py" in files, "pages include code"
    assert b"execute_notebooks: 'off'" in files["_config.yml"]


def test_rows_of_a_chapters_claims_can_be_linked_to():
    table = "| claim | ours |\n| --- | --- |\n| **C7** (ours) text | 1 |\n| **C10r** other | **C7** |\n"
    made = pages.page({"metadata": {"mia": RECORD}, "cells": [
        {**cell(shown({outputs.CLAIMS: [{"claim": "C7"}], "text/markdown": table})), "id": "a"}]})
    told = next(o["data"]["text/markdown"] for one in made["cells"] for o in one.get("outputs", []))
    assert '| <span id="claim-C7"></span>**C7** (ours) text |' in told and told.count("<span") == 2


# Progress


def test_plain_lines_say_counts_and_time_left(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with Bars() as bars:
        bars.update("models", 2, 10)
        for done, now in ((3, 5.0), (6, 20.0), (7, 25.0)):
            clock[0] = now
            bars.update("models", done, 10)
        clock[0] = 31.0
        bars.tick()
        bars.update("models", 10, 10)
        bars.update("models", 0, 4)  # the label again, for other work
    assert capsys.readouterr().out.splitlines() == [
        "models: 6/10, about 20 s left", "models: 7/10, about 19 s left"]


def test_bars_are_drawn_in_a_terminal():
    import io

    from rich.console import Console

    out = io.StringIO()
    with Bars(Console(file=out, force_terminal=True, width=100)) as bars:
        bars.update("models", 1, 4)
        bars.say("a line")
        bars._drawn.refresh()
        bars.update("models", 4, 4)
    assert "models" in out.getvalue() and "1/4" in out.getvalue() and "a line" in out.getvalue()


def test_the_tail_yields_whole_lines_only(tmp_path):
    path = tmp_path / "p"
    tail = Tail(path)
    assert list(tail) == []
    path.write_text('{"a": 1}\nbroken\n{"a"')
    assert list(tail) == [{"a": 1}]
    with open(path, "a") as file:
        file.write(': 2}\n')
    assert list(tail) == [{"a": 2}] and list(tail) == []


@pytest.mark.parametrize("seconds, text", [(3.4, "3 s"), (60, "1 min"), (200, "3 min 20 s"), (3900, "1 h 5 min")])
def test_durations_read_like_speech(seconds, text):
    assert duration(seconds) == text


def test_items_that_hold_commas_are_parted_by_semicolons():
    assert parameters._items("tanh_cnn:16,32;mlp:8") == ["tanh_cnn:16,32", "mlp:8"]
    assert parameters._items("tanh_cnn:16,32;") == ["tanh_cnn:16,32"]
