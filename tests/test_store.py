"""The store under everything that goes wrong: kills, truncation, flipped bits, two processes, a full disk."""

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest

from mia_lib import LIBRARY, store
from mia_lib.errors import MiaError

SPEC = {"kind": "test", "a": 1, "code": "of nothing"}
ARRAYS = {"x": np.arange(1000.0), "flag": np.array(True)}

pytestmark = pytest.mark.usefixtures("isolated_cache")


def path_of(spec, manifest=False):
    return store._paths(store.cache_dir(), spec, store.key(spec))[manifest]


@pytest.mark.parametrize(("kind", "ending"), [("test", ".npz"), ("model", ".safetensors")])
def test_an_entry_comes_back_as_it_was(kind, ending):
    spec = {**SPEC, "kind": kind}
    assert store.look_up(spec) is None
    store.keep(spec, ARRAYS)
    found = store.look_up(dict(reversed(spec.items())))
    assert (found.arrays["x"] == ARRAYS["x"]).all()
    assert found.manifest["spec"] == spec
    assert store.size() > 0
    assert path_of(spec).suffix == ending and store.look_up({**spec, "a": 2}) is None
    assert store.look_up({**spec, "code": "other"}) is None
    for manifest in (True, False):  # half an entry is no entry
        path_of(spec, manifest).rename(path_of(spec).parent / "aside")
        assert store.look_up(spec) is None
        (path_of(spec).parent / "aside").rename(path_of(spec, manifest))
    assert store.look_up(spec) is not None


MODULE = '''"""Says what."""

from mia_lib.training.backends import loop


def step(x, rate=0.1):
    """Says more."""
    return x - rate * loop.gradient(x)  # why
'''
SAME = {
    "a comment": ("# why", "# because"),
    "a docstring": ("Says more", "Says less"),
    "a moved import": (".backends", ""),
    "the module's own": ("Says what", "Says who"),
    "formatting": ("x - rate * loop", "x \\\n        - rate * loop"),
}
OTHER = {
    "a formula": ("x - rate", "x + rate"),
    "a default": ("0.1", "0.2"),
    "a decorator": ("def step", "@cache\ndef step"),
    "another thing by the same name": ("import loop", "import pool as loop"),
}


@pytest.mark.parametrize("what", [*SAME, *OTHER])
def test_the_hash_of_code_knows_what_runs_from_how_it_is_written(tmp_path, what):
    old, new = (SAME | OTHER)[what]
    assert old in MODULE
    paths = tmp_path / "one.py", tmp_path / "two" / "other_name.py"
    for path, text in zip(paths, (MODULE, MODULE.replace(old, new)), strict=True):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    one, other = (store.code_of((), path) for path in paths)
    assert (one == other) is (what in SAME)
    assert store.code_of(("metrics",), paths[0]) not in {store.code_of(("metrics",)), one}


def test_nothing_is_kept_under_the_hash_of_code_that_was_edited_since(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MODULE)
    spec = {"kind": "test", "code": store.code_of((), path)}
    path.write_text(MODULE.replace("# why", "# because"))
    store.keep(spec, ARRAYS)
    path.write_text(MODULE.replace("0.1", "0.2"))
    assert store.look_up(spec) and store.code_of((), path) == spec["code"], (
        "it is the code that this process runs"
    )
    for edit in (lambda: None, path.unlink):
        edit()
        with pytest.raises(MiaError, match="mine.py was edited after this process had begun"):
            store.keep({**spec, "a": 2}, ARRAYS)


def test_files_of_the_library_from_a_clock_that_goes_ahead_are_not_taken_for_edited(tmp_path):
    shutil.copytree(LIBRARY, tmp_path / LIBRARY.name, ignore=shutil.ignore_patterns("__pycache__"))
    module = tmp_path / LIBRARY.name / "membership.py"
    ahead = time.time() + 3600
    os.utime(module, (ahead, ahead))
    code = f"""
        import os
        from mia_lib import errors, store
        spec = {{"kind": "test", "code": store.code_of(["membership"])}}
        assert store.code_of.__code__.co_filename.startswith({str(tmp_path)!r})
        store.keep(spec, {{}})
        os.utime({str(module)!r}, (0, 0))
        try:
            store.keep(spec, {{}})
        except errors.MiaError as error:
            print(error)
    """
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "membership.py was edited after this process had begun" in said


def test_results_kept_one_by_one_are_computed_once():
    def each(specs: list[dict]) -> list[float]:
        return [
            found["x"][0]
            for found in store.cached_many(
                specs,
                lambda missing, done: [
                    done(k, {"x": np.full(2, 7919.0 * k)}, 0.0) for k in missing
                ],
            )
        ]

    specs = [{**SPEC, "m": m} for m in range(2)]
    assert each(specs) == [0, 7919] and each([]) == [] and each(specs[::-1]) == [7919, 0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: store.code_of(("trainings",)), "no room 'trainings'"),
        (lambda: store.look_up({"kind": "test"}), "has no code"),
        (lambda: store.discard({"kind": "test"}), "has no code"),
        (lambda: store.keep({"kind": "test"}, ARRAYS), "has no code"),
        (lambda: store.key({"kind": "test", "x": np.arange(3)}), "plain data"),
        (lambda: store.key({"kind": "test", "x": float("nan")}), "plain data"),
    ],
)
def test_a_spec_that_does_not_say_what_it_is_of_is_refused(call, words):
    with pytest.raises(MiaError, match=words):
        call()


@pytest.mark.parametrize(
    "harm", ["truncate", "flip", "empty", "manifest", "manifest_list", "another"]
)
def test_a_damaged_entry_is_reported_and_not_used(harm):
    store.keep(SPEC, ARRAYS)
    path = path_of(SPEC, manifest=harm.startswith("manifest"))
    data = bytearray(path.read_bytes())
    if harm == "flip":
        data[len(data) // 2] ^= 1
    if harm == "another":
        other = store.keep({**SPEC, "seed": 9}, {"x": np.zeros(3)}).manifest["spec"]
        path_of(SPEC, manifest=True).write_bytes(path_of(other, manifest=True).read_bytes())
        data = path_of(other).read_bytes()
    path.write_bytes(
        {
            "truncate": data[:-7],
            "flip": data,
            "empty": b"",
            "manifest": b"{",
            "manifest_list": b"[]",
            "another": data,
        }[harm]
    )
    with pytest.warns(UserWarning, match="damaged"):
        assert store.look_up(SPEC) is None
    store.keep(SPEC, {"x": np.ones(3)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (store.look_up(SPEC).arrays["x"] == 1).all()


def test_where_a_page_is_made_damage_is_told_to_the_person_waiting_and_not_to_the_page(
    tmp_path, monkeypatch
):
    store.keep(SPEC, ARRAYS)
    path_of(SPEC).write_bytes(b"")
    monkeypatch.setenv("MIA_PROGRESS", str(tmp_path / "progress.jsonl"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.look_up(SPEC) is None
    said = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert any(
        path_of(SPEC).name in line.get("say", "") and "damaged" in line["say"] for line in said
    )


def test_a_pickle_inside_an_archive_is_never_loaded():
    store.keep(SPEC, ARRAYS)
    np.savez(path_of(SPEC), x=np.array([{"an": "object"}], dtype=object))
    manifest = json.loads(path_of(SPEC, True).read_text())
    manifest["sha256"] = hashlib.sha256(path_of(SPEC).read_bytes()).hexdigest()
    path_of(SPEC, True).write_text(json.dumps(manifest))
    with pytest.warns(UserWarning, match="damaged"):
        assert store.look_up(SPEC) is None


WRITER = """
import numpy as np
from mia_lib import LIBRARY, store
for i in range(10_000):
    store.keep({"kind": "test", "i": i, "code": ""}, {"x": np.full(200_000, float(i))})
    print(i, flush=True)
"""


def test_kill_9_while_writing_leaves_only_whole_entries():
    process = subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if int(line) >= 5:
            break
    time.sleep(0.013)
    os.kill(process.pid, signal.SIGKILL)
    done = [int(line) for line in process.communicate()[0].split()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is even damaged
        for i in range(max(done, default=5) + 3):
            entry = store.look_up({"kind": "test", "i": i, "code": ""})
            assert entry is None or (entry.arrays["x"] == i).all()
            assert entry is not None or i > max(done, default=5)


def test_the_lock_of_a_dead_process_blocks_nobody():
    lock = f"import os; from mia_lib import store; store.lock({SPEC!r}, 'work').__enter__()"
    code = f"{lock}; os.kill(os.getpid(), {signal.SIGKILL:d})"
    subprocess.run([sys.executable, "-c", code])
    assert list((store.cache_dir() / "locks").iterdir())  # the file stays, the lock does not
    with store.lock(SPEC, "work"):
        pass


def test_a_full_disk_is_said_and_leaves_nothing_behind(monkeypatch):
    store.keep({**SPEC, "a": 0}, ARRAYS)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(MiaError, match="disk is full.*kept"):
        store.keep(SPEC, ARRAYS)
    assert store.look_up(SPEC) is None and not list(store.cache_dir().rglob(".writing-*"))
    assert store.look_up({**SPEC, "a": 0}) is not None


def test_fingerprints_tell_type_shape_and_values_apart():
    a = np.arange(6)
    prints = {store.fingerprint(v) for v in (a, a.reshape(2, 3), a.astype(float), a[::-1])}
    assert len(prints) == 4 and store.fingerprint(a) == store.fingerprint(a.copy())


NESTED = """
import os
if os.name:
    def a():
        "DOC"
        return lambda: 1
else:
    try:
        class B:
            "DOC"
            async def c(self):
                "DOC"
    except ValueError:
        def d(): "DOC"
    else:
        def e(): "DOC"
    finally:
        def f(): "DOC"
for g in (): pass
else:
    def h(): "DOC"
with open(os.devnull) as i:
    match g:
        case 1:
            def j():
                "DOC"
                from mia_lib.FROM import store
"""


def test_code_is_known_without_docstrings_and_places_wherever_they_stand(tmp_path):
    digests = set()
    for k, (words, place) in enumerate([("one", "models"), ("another", "data.sets")]):
        path = tmp_path / f"module_{k}.py"
        path.write_text(NESTED.replace("DOC", words).replace("FROM", place))
        digests.add(store.digest(path))
    (path := tmp_path / "module_2.py").write_text(NESTED.replace("return lambda: 1", "return 1"))
    assert len(digests) == 1 and store.digest(path) not in digests
