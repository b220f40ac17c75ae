"""Recorded runs: kept whole or not at all, known to be stale when they are, checked, and shown as what they are."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from mia_lib import membership, store, training
from mia_lib.data import Dataset, sets
from mia_lib.errors import MiaError
from mia_lib.publish import pages as book
from mia_lib.publish import runner
from mia_lib.publish.cli import app
from mia_lib.publish.records import make as recording
from mia_lib.publish.records import state as recorded
from mia_lib.training import shared as ensembles
from mia_lib.training.backends import loop, pool
from mia_lib.training.recipe import TrainConfig

NOTEBOOK = '''# %% [markdown]
# # A tiny page

# %% tags=["parameters"]
steps: int = 3  # how many steps [1..10]
size: int = 4  # of the result [1..10000000]

# %%
import os

import numpy as np
import pandas as pd

from mia_lib import claims, plotting, results, store
from mia_lib.metrics.interval import Interval


def compute():  # a comment
    with open(os.environ["TINY_LOG"], "a") as log:
        log.write("computed\\n")
    store.fetch({"kind": "study", "study": "tiny.inner", "steps": steps}, lambda: {"y": np.ones(2)})
    return {"x": steps * np.random.default_rng(0).normal(size=size)}


x = store.fetch({"kind": "study", "study": "tiny.outer", "steps": steps, "size": size}, compute).arrays["x"]
value = float(x.mean())
results.show_table(pd.DataFrame({"what": ["mean"], "value": [Interval(value, value - 1, value + 1)]}), name="tab-tiny",
                   caption=f"Of {size} numbers.")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(2, 1))
axes.plot(x[:100])
plotting.show(figure, name="fig-tiny", caption="A line.", alt="a line")

# %%
verdicts = [claims.judge_identity("bayes", c, 0.0, 1e-9) for c in claims.claims("bayes")]
claims.show("bayes", verdicts)
'''


@pytest.fixture
def shelf(tiny, isolated_cache):
    """The throw-away book with a notebook that asks the store for something, and a preset to record."""
    (tiny / "notebooks" / "tiny.py").write_text(NOTEBOOK)
    (tiny / "notebooks" / "presets" / "tiny.smoke.yaml").write_text("steps: 1\n")
    (tiny / "notebooks" / "presets" / "tiny.paper.yaml").write_text("# minutes: 90 on 2 CPU cores, 3 on a GPU\nsteps: 7\n")
    (tiny / "book" / "index.md").write_text("# Tiny book\n\nSee {numref}`fig-tiny`.\n")
    return tiny


def computed(root) -> int:
    log = root / "ran.log"
    return len(log.read_text().split()) if log.exists() else 0


def manifest(root, preset="paper") -> dict:
    return json.loads((recorded.run_folder("tiny", preset, root) / "manifest.json").read_text())


def exhibit(root, name, preset="paper"):
    return recorded.run_folder("tiny", preset, root) / recorded.stored_name(name, manifest(root, preset)["files"][name])


def entry_file(root):
    return next((root / "data" / "recorded" / "study").rglob("*.npz"))


@pytest.mark.kernel
def test_a_record_holds_what_the_page_needs_and_how_it_came_about(shelf):
    said = recording.record("tiny", "paper", shelf)
    kept = manifest(shelf)
    assert kept["parameters"] == {"steps": 7, "size": 4} and kept["schema"] == store.SCHEMA
    assert kept["seconds"] > 0 and kept["peak_memory_mb"] > 0 and kept["device"] and kept["date"] and kept["versions"]["numpy"]
    assert [entry["study"] for entry in kept["entries"]] == ["tiny.outer"]  # what it needed in turn is left out
    ran = json.loads(next(shelf.glob("runs/*/tiny.ipynb")).read_text())["metadata"]["mia"]
    assert {entry["section"] for entry in ran["entries"]} == {"A tiny page"}
    exhibits = json.loads(exhibit(shelf, "exhibits.json").read_text())
    assert exhibits["tables"]["tab-tiny"]["rows"][0][1]["low"] < exhibits["tables"]["tab-tiny"]["rows"][0][1]["high"]
    assert exhibits["figures"]["fig-tiny"]["alt"] == "a line" and len(exhibits["claims"]) > 5
    assert set(kept["files"]) == {"exhibits.json", "fig-tiny.png"} and "1 entries" in said
    with np.load(entry_file(shelf)) as stored:
        assert stored["x"].shape == (4,)
    assert recorded.state_of_run("tiny", "paper", shelf).state == "recorded"


def test_what_was_found_does_not_make_a_record_cheaper_than_the_one_before(tmp_path):
    def cost(source, seconds, device="an abacus", kind="study", **parameters):
        entry = {"source": source, "kind": kind, "seconds": 10.0}
        return recording._cost({"seconds": seconds, "peak_memory_mb": 100, "parameters": parameters, "device": device,
                                "entries": [entry]}, tmp_path)

    assert cost("cache", 5.0, n=1) == {"seconds": 15.0, "peak_memory_mb": 100}
    (tmp_path / "manifest.json").write_text(json.dumps(
        {"parameters": {"n": 1}, "seconds": 900.0, "peak_memory_mb": 50, "device": "an abacus"}))
    assert cost("cache", 5.0, n=1) == {"seconds": 900.0, "peak_memory_mb": 100}
    assert cost("cache", 5.0, n=1, kind="model")["seconds"] == 900.0, "of models no time is known"
    assert cost("cache", 5.0, n=2)["seconds"] == 15.0 and cost("computed", 5.0, n=1)["seconds"] == 5.0
    assert cost("cache", 5.0, n=1, device="a card")["seconds"] == 15.0, "another device takes another time"


def test_recording_again_computes_nothing_that_is_kept(shelf):
    recording.record("tiny", "paper", shelf)
    recording.record("tiny", "paper", shelf)
    assert computed(shelf) == 1


def test_a_run_that_fails_leaves_the_old_record(shelf):
    recording.record("tiny", "paper", shelf)
    before = manifest(shelf)
    source = shelf / "notebooks" / "tiny.py"
    source.write_text(source.read_text() + "\n# %%\nraise ValueError('too bad')\n")
    with pytest.raises(runner.NotebookFailed):
        recording.record("tiny", "paper", shelf)
    assert manifest(shelf) == before and not list((shelf / "data" / "recorded" / "runs").glob(".*"))


def test_what_no_manifest_names_is_removed(shelf):
    recording.record("tiny", "paper", shelf)
    old = entry_file(shelf)
    (shelf / "notebooks" / "presets" / "tiny.paper.yaml").write_text("steps: 8\n")
    assert recorded.state_of_run("tiny", "paper", shelf).state == "stale"
    recording.record("tiny", "paper", shelf)
    assert not old.exists() and entry_file(shelf).is_file()


def test_a_result_too_large_is_left_out_and_named(shelf, monkeypatch):
    monkeypatch.setattr(recording, "FILE_LIMIT", 50_000)
    (shelf / "notebooks" / "presets" / "tiny.paper.yaml").write_text("size: 20000\n")
    assert "tiny.outer" in recording.record("tiny", "paper", shelf)
    assert manifest(shelf)["entries"] == [] and "tiny.outer" in manifest(shelf)["left_out"][0]


def test_the_limits_are_kept_before_anything_is_written(shelf, monkeypatch):
    monkeypatch.setattr(recording, "TOTAL_LIMIT", 1000)
    with pytest.raises(MiaError, match="data/recorded would hold"):
        recording.record("tiny", "paper", shelf)
    assert not recorded.run_folder("tiny", "paper", shelf).exists() and not list((shelf / "data").rglob("*.npz"))
    with pytest.raises(MiaError, match="8 MB, the limit of a recorded file"):
        recording._check_limits(["big.png"], 0)


def test_where_there_is_no_room_arrays_of_stale_records_go_and_what_they_show_stays(shelf, monkeypatch):
    presets = shelf / "notebooks" / "presets"
    (presets / "tiny.paper.yaml").write_text("size: 60\n")
    recording.record("tiny", "paper", shelf)
    arrays = entry_file(shelf)
    (presets / "tiny.paper.yaml").write_text("size: 61\n")
    (presets / "tiny.other.yaml").write_text("# minutes: 1 on 2 CPU cores\nsize: 50\n")
    recording.record("tiny", "other", shelf)
    assert arrays.is_file()  # there was room
    size = recording._size(recorded.layer(shelf), set())
    (presets / "tiny.other.yaml").write_text("# minutes: 1 on 2 CPU cores\nsize: 70\n")
    monkeypatch.setattr(recording, "TOTAL_LIMIT", size - arrays.stat().st_size)
    recording.record("tiny", "other", shelf)
    assert not arrays.exists() and manifest(shelf)["entries"] == []
    assert recorded.state_of_run("tiny", "paper", shelf).state == "stale"
    assert {state.preset for state, _, _ in recorded.exhibits("tiny", shelf)} == {"paper", "other"}


@pytest.mark.parametrize("dear, needs, seconds", [("old", 1e6, 0.0), ("old", 0.0, 1e9), ("new", 0.0, 0.0)])
def test_where_there_is_still_no_room_what_is_cheapest_for_its_size_goes(shelf, monkeypatch, dear, needs, seconds):
    """By what an entry needs, or, where it knows of no models, by its share of what its run took."""
    presets = shelf / "notebooks" / "presets"
    (presets / "tiny.other.yaml").write_text("# minutes: 1 on 2 CPU cores\nsize: 70\n")
    recording.record("tiny", "paper", shelf)
    recording.record("tiny", "other", shelf)
    whole = recording._size(recorded.layer(shelf), set())
    of = {preset: recorded.run_folder("tiny", preset, shelf) / "manifest.json" for preset in ("paper", "other")}
    old = json.loads(of["paper"].read_text())
    old["entries"] = [entry | {"needs": needs, "seconds": min(seconds, 1e-9)} for entry in old["entries"]]
    of["paper"].write_text(json.dumps(old | {"seconds": seconds}))
    monkeypatch.setattr(recording, "TOTAL_LIMIT", whole - 200)
    assert ("left out and computed when asked for" in recording.record("tiny", "other", shelf)) == (dear == "old")
    left = {preset: json.loads(path.read_text())["left_out"] for preset, path in of.items()}
    assert {preset for preset, names in left.items() if names} == {"other" if dear == "old" else "paper"}
    assert all(name.endswith("(no room)") for names in left.values() for name in names)
    held = {preset: [p for entry in json.loads(path.read_text())["entries"]
                     for p in recorded.layer(shelf).rglob(f"{entry['key']}.npz")] for preset, path in of.items()}
    assert not held["other" if dear == "old" else "paper"] and held["paper" if dear == "old" else "other"]
    assert recording._size(recorded.layer(shelf), set()) <= whole - 200
    assert {state.preset for state, _, _ in recorded.exhibits("tiny", shelf)} == {"paper", "other"}


@pytest.mark.parametrize("lacking", [-60, 60])  # bytes; digits of seconds come and go
def test_all_that_is_written_counts_the_manifest_too(shelf, monkeypatch, lacking):
    recording.record("tiny", "paper", shelf)
    size = recording._size(recorded.layer(shelf), set())
    shutil.rmtree(recorded.layer(shelf))
    monkeypatch.setattr(recording, "TOTAL_LIMIT", size - lacking)
    assert ("no room" in recording.record("tiny", "paper", shelf)) == (lacking > 0)
    assert recording._size(recorded.layer(shelf), set()) <= size - lacking


@pytest.mark.parametrize("name,preset,words", [
    ("tinny", "paper", "Did you mean 'tiny'"), ("tiny", "quick", "paper"), ("tiny", "smoke", "paper"),
    ("tiny", "papr", "paper")])
def test_what_cannot_be_recorded_is_refused(shelf, name, preset, words):
    with pytest.raises(MiaError, match=words):
        recording.record(name, preset, shelf)
    assert computed(shelf) == 0


# ------------------------------------------------------------------------------------------------------------- stale


def test_a_record_knows_when_code_changed_and_does_not_mind_comments(shelf):
    recording.record("tiny", "paper", shelf)
    source = shelf / "notebooks" / "tiny.py"
    source.write_text(source.read_text().replace("# a comment", "# another comment"))
    assert recorded.state_of_run("tiny", "paper", shelf).state == "recorded"
    source.write_text(source.read_text().replace("np.ones(2)", "np.ones(3)"))
    state = recorded.state_of_run("tiny", "paper", shelf)
    assert (state.state, state.command) == ("source changed", "mia record tiny --preset paper --check")
    assert "notebook:<cell 1>" in state.why and "notebook:compute" in state.why


def test_recording_computes_what_is_of_other_code_and_nothing_else(shelf):
    recording.record("tiny", "paper", shelf)
    source = shelf / "notebooks" / "tiny.py"
    source.write_text(source.read_text().replace("np.ones(2)", "np.ones(3)"))
    recording.record("tiny", "paper", shelf)
    assert computed(shelf) == 2 and recorded.state_of_run("tiny", "paper", shelf).state == "recorded"
    source.write_text(source.read_text().replace("a line", "one line"))  # draws, computes nothing
    recording.record("tiny", "paper", shelf)
    assert computed(shelf) == 2 and recorded.state_of_run("tiny", "paper", shelf).state == "recorded"


def test_a_schema_that_changed_makes_a_record_stale(shelf, monkeypatch):
    recording.record("tiny", "paper", shelf)
    monkeypatch.setattr(store, "SCHEMA", store.SCHEMA + 1)
    assert recorded.state_of_run("tiny", "paper", shelf).state == "stale"


def test_a_damaged_record_is_not_shown_and_recording_mends_it(shelf):
    recording.record("tiny", "paper", shelf)
    for path in (exhibit(shelf, "exhibits.json"), exhibit(shelf, "fig-tiny.png"), entry_file(shelf),
                 recorded.run_folder("tiny", "paper", shelf) / "manifest.json"):
        whole = path.read_bytes()
        path.write_bytes(whole[:-9] + b"!")
        assert recorded.state_of_run("tiny", "paper", shelf).state == "damaged"
        assert recorded.exhibits("tiny", shelf) == []
        if path.suffix != ".npz":
            path.write_bytes(whole)
    path.write_bytes(whole)
    recording.record("tiny", "paper", shelf)
    assert recorded.state_of_run("tiny", "paper", shelf).state == "recorded"


def test_killed_while_it_replaces_a_record_the_old_one_stands(shelf, monkeypatch):
    recording.record("tiny", "paper", shelf)
    before = manifest(shelf)
    source = shelf / "notebooks" / "tiny.py"
    source.write_text(source.read_text().replace("Of {size} numbers", "Of {size} new numbers"))
    real = store.write

    def killed(path, data):
        if path.name == "manifest.json":
            raise KeyboardInterrupt
        real(path, data)

    monkeypatch.setattr(store, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        recording.record("tiny", "paper", shelf)
    monkeypatch.setattr(store, "write", real)
    assert manifest(shelf) == before and recorded.state_of_run("tiny", "paper", shelf).state == "source changed"
    assert len(recorded.exhibits("tiny", shelf)) == 1
    recording.record("tiny", "paper", shelf)
    assert len(list(recorded.run_folder("tiny", "paper", shelf).iterdir())) == 3  # nothing of either attempt is left


def test_missing_lists_the_cheapest_first_with_its_command(shelf, monkeypatch):
    shared = {"small": ensembles.Shared("Small", None, ("iha",), 2, None, "ours"),
              "large": ensembles.Shared("Large", None, ("iha",), 200, 5, "ours")}
    monkeypatch.setattr(ensembles, "SHARED", shared)
    lacking = recorded.missing(shelf)
    assert [(s.name, s.cpu_minutes, s.gpu_minutes) for s in lacking] == [
        ("small", 2, None), ("tiny", 90, 3), ("large", 200, 5)]
    result = CliRunner().invoke(app, ["record", "--missing"])
    assert result.exit_code == 0 and "mia record tiny --preset paper" in result.stdout and "absent" in result.stdout
    recording.record("tiny", "paper", shelf)
    assert [s.name for s in recorded.missing(shelf)] == ["small", "large"]
    found = recorded.state_of_run("tiny", "paper", shelf)
    assert found.cpu_minutes == float(f"{found.manifest['seconds'] / 60:.2g}") < 90 and found.gpu_minutes == 3


@pytest.mark.kernel
def test_a_record_says_on_which_card_its_results_were_computed(shelf):
    recording.record("tiny", "paper", shelf)
    cores = manifest(shelf)["device"]
    assert cores.startswith(f"{os.cpu_count()} CPU cores")
    for path in (store.cache_dir() / "study").rglob("*.json"):  # as if this machine had a card
        path.write_text(json.dumps(json.loads(path.read_text()) | {"card": "Card 9000"}))
    for path in (shelf / "data" / "recorded" / "study").rglob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"card": "Card 9000"}))
    recording.record("tiny", "paper", shelf)
    assert computed(shelf) == 1 and manifest(shelf)["device"] == f"Card 9000 and {cores}"
    found = recorded.state_of_run("tiny", "paper", shelf)
    assert found.cpu_minutes == 90 and found.gpu_minutes == float(f"{found.manifest['seconds'] / 60:.2g}") != 3


# ----------------------------------------------------------------------------------------------------------- checked


def tamper(path):
    """Other numbers with a right checksum."""
    with np.load(path) as stored:
        arrays = {name: stored[name] * 1.01 for name in stored.files}
    np.savez_compressed(path, **arrays)
    notes = json.loads(path.with_suffix(".json").read_text())
    notes["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".json").write_text(json.dumps(notes))


@pytest.mark.kernel
def test_a_check_computes_anew_and_agrees(shelf):
    recording.record("tiny", "paper", shelf)
    agrees, said = recording.check("tiny", "paper", root=shelf)
    assert agrees and "1 of 1 results computed anew" in said and computed(shelf) == 2
    assert "MIA_RECOMPUTE" not in os.environ


def test_a_check_finds_numbers_that_are_not_what_the_code_computes(shelf):
    recording.record("tiny", "paper", shelf)
    tamper(entry_file(shelf))
    result = CliRunner().invoke(app, ["record", "tiny", "--check"])
    assert result.exit_code == 1
    said = " ".join(result.stdout.split())
    assert re.search(r"9\.9e-03 of the largest value \(\w+ of \S+, [0-9a-f]{12}\)", said) and "recorded on" not in said


def test_a_check_that_fails_names_every_result_that_differs():
    gaps = [(0.0, "auc of a, 1"), (2e-3, "auc of b, 2"), (1e-5, "auc of c, 3"), (0.5, "scores of d, 4")]
    agrees, said = recording._compared(gaps, 9)
    assert not agrees and "4 of 9 results" in said and "difference 5.0e-01 of the largest value (scores of d, 4)" in said
    assert said.endswith("2 of the 4 agree; beyond it, too: 2.0e-03 (auc of b, 2)")
    agrees, said = recording._compared(gaps[::2], 9)
    assert agrees and said.endswith("difference 1.0e-05 of the largest value (auc of c, 3), 0.0001 is allowed")


def test_a_check_that_fails_on_another_processor_says_so(shelf):
    recording.record("tiny", "paper", shelf)
    tamper(entry_file(shelf))
    path = recorded.run_folder("tiny", "paper", shelf) / "manifest.json"
    path.write_text(json.dumps(manifest(shelf) | {"device": "2 CPU cores (another)"}))
    agrees, said = recording.check("tiny", "paper", root=shelf)
    assert not agrees and "recorded on 2 CPU cores (another), and computed here on" in said


def test_a_check_that_agrees_confirms_a_record_whose_source_changed(shelf):
    recording.record("tiny", "paper", shelf)
    source = shelf / "notebooks" / "tiny.py"
    source.write_text(source.read_text().replace('"A line."', '"The line."'))
    assert recorded.state_of_run("tiny", "paper", shelf).state == "source changed"
    assert recording.check("tiny", "paper", root=shelf)[0]
    state = recorded.state_of_run("tiny", "paper", shelf)
    assert state.state == "recorded" and state.manifest["confirmed"]


def test_a_check_that_agrees_draws_anew_what_the_code_now_shows_otherwise(shelf):
    recording.record("tiny", "paper", shelf)
    before, source = manifest(shelf)["files"], shelf / "notebooks" / "tiny.py"
    source.write_text(source.read_text().replace('"what": ["mean"]', '"what": ["average"]').replace('"A line."', '"Lines."'))
    agrees, said = recording.check("tiny", "paper", root=shelf)
    assert agrees and "the page drawn anew; what differs: tab-tiny" in said
    assert "average" in exhibit(shelf, "exhibits.json").read_text() and manifest(shelf)["files"] != before
    assert recorded.state_of_run("tiny", "paper", shelf).state == "recorded"
    assert len(list(recorded.run_folder("tiny", "paper", shelf).iterdir())) == 3  # nothing of the old is left


def test_a_check_adopts_what_it_computed_and_nothing_else(shelf):
    source = shelf / "notebooks" / "tiny.py"
    second = 'z = store.fetch({"kind": "study", "study": "tiny.second"}, lambda: {"z": np.full(3, 2.0)}).arrays["z"]\nvalue ='
    source.write_text(source.read_text().replace("value =", second, 1))
    recording.record("tiny", "paper", shelf)
    source.write_text(source.read_text().replace("2.0)", "2.0 + 0)").replace("return {", "size + 0\n    return {"))
    assert recorded.state_of_run("tiny", "paper", shelf).state == "source changed"
    agrees, said = recording.check("tiny", "paper", minutes=1e-9, root=shelf)  # time for one of two
    assert agrees and "1 of 2 results" in said and "1 of the other results are of other code" in said
    state = recorded.state_of_run("tiny", "paper", shelf)
    assert state.state == "source changed" and "confirmed" not in state.manifest
    agrees, said = recording.check("tiny", "paper", root=shelf)
    assert agrees and said.endswith("its code is adopted, and the page drawn anew")
    assert recorded.state_of_run("tiny", "paper", shelf).state == "recorded"


def test_a_check_trusts_no_record_of_other_code_within_what_it_computes(shelf, monkeypatch):
    """The inner result, changed, is in the record, too; the outer is computed from the code as it is."""
    source = shelf / "notebooks" / "tiny.py"
    inner = 'def inner():\n    import time\n    time.sleep(0.3)\n    return {"y": np.full(2, 1.0)}\n\n\ndef fetched():\n' \
            '    return store.fetch({"kind": "study", "study": "tiny.inner2"}, inner).arrays["y"]\n\n\ndef compute():'
    text = source.read_text().replace("def compute():", inner, 1)
    text = text.replace('return {"x": steps *', 'return {"x": fetched()[0] * steps *')
    text = text.replace("x = store", "y = fetched()\nx = store")
    source.write_text(text)
    recording.record("tiny", "paper", shelf)
    monkeypatch.setenv("MIA_CACHE", str(shelf / "another cache"))
    monkeypatch.setattr(store, "RECORDED", shelf / "data" / "recorded")
    source.write_text(source.read_text().replace("np.full(2, 1.0)", "np.full(2, 9.0)"))
    agrees, said = recording.check("tiny", "paper", minutes=0.004, root=shelf)  # time for the outer one alone
    assert not agrees and "1 of 2 results" in said


def test_a_run_whose_source_is_edited_meanwhile_is_not_recorded(shelf, monkeypatch):
    execute = runner.execute

    def edited(*given, **more):
        done = execute(*given, **more)
        source = shelf / "notebooks" / "tiny.py"
        source.write_text(source.read_text().replace("value = float", "value = 100 + float"))
        return done

    monkeypatch.setattr(runner, "execute", edited)
    with pytest.raises(MiaError, match="The source of tiny was edited while it ran"):
        recording.record("tiny", "paper", shelf)
    assert recorded.state_of_run("tiny", "paper", shelf).state == "absent"


def test_a_check_draws_figures_and_results_anew_and_lets_go_what_is_not_asked_for(shelf):
    source = shelf / "notebooks" / "tiny.py"
    more = 'store.fetch({"kind": "study", "study": "tiny.more"}, lambda: {"z": np.ones(1)})\nresults.name({"lead": value})\n'
    source.write_text(source.read_text().replace("# %%\nimport matplotlib", f"{more}\n# %%\nimport matplotlib"))
    recording.record("tiny", "paper", shelf)
    first = json.loads(exhibit(shelf, "exhibits.json").read_text())
    text = source.read_text().replace(more, 'results.name({"lead": value + 5})\n').replace("axes.plot(x", "axes.plot(-100 * x")
    source.write_text(text.replace('alt="a line"', 'alt="a falling line"'))
    agrees, said = recording.check("tiny", "paper", root=shelf)
    assert agrees and "what differs: lead" in said
    now = json.loads(exhibit(shelf, "exhibits.json").read_text())
    assert now["figures"]["fig-tiny"]["alt"] == "a falling line" and now["results"] != first["results"]
    assert [entry["study"] for entry in manifest(shelf)["entries"]] == ["tiny.outer"]
    assert recorded.state_of_run("tiny", "paper", shelf).state == "recorded"


def test_a_record_of_other_records_is_to_be_drawn_anew(shelf, monkeypatch):
    source = shelf / "notebooks" / "tiny.py"
    source.write_text(source.read_text().replace("size: int", 'data: str = "german_credit_x"  # [german_credit_x]\nsize: int'))
    recording.record("tiny", "paper", shelf)
    assert manifest(shelf)["definitions"]["data/german_credit"] == sets.content("german_credit")[:16]
    monkeypatch.setitem(sets._KNOWN, "german_credit", sets._KNOWN["german_credit"]._replace(made="0" * 64))
    state = recorded.state_of_run("tiny", "paper", shelf)
    assert state.state == "to be drawn anew" and state.why == "data/german_credit"


def test_what_a_run_shows_is_compared_but_for_rounding_and_clocks():
    def shown(value, verdict="reproduced", columns=("what", "value"), caption=""):
        table = {"columns": list(columns), "rows": [["mean", value]], "caption": caption}
        return {"tables": {"t": table}, "claims": [{"paper": "p", "claim": "C1", "verdict": verdict, "text": "so"}]}

    def different(*pair):
        return recording._shown_differently(*pair)

    assert different(shown(1.0), shown(1.0000001)) == [] != different(shown(1.0), shown(1.1))
    assert different(shown("57.0 [56.2, 57.8] / 57.1"), shown("57.1 [56.2, 57.8] / 57.1")) == []
    assert different(shown("57.0 [56.2, 57.8]"), shown("57.9 [56.2, 57.8]")) == ["t"]
    assert different(shown("below resolution"), shown("0.1")) == ["t"]
    assert different(shown({"value": 1.0, "low": 0.0, "high": 2.0}), shown({"value": 1.0, "low": 0.5, "high": 2.0})) == ["t"]
    assert different(shown(1.0), shown(1.0, "contradicted")) == ["p C1"]
    assert different(shown(3.0, columns=("what", "seconds")), shown(9.0, columns=("what", "seconds"))) == []


def test_differences_are_found_whatever_the_arrays_hold():
    def worst(before, now):
        return max(recording._differences(before, now).values(), default=0)

    nan, text = np.array([np.nan, 1.0]), np.array(["a"])
    assert worst({"x": nan}, {"x": nan + 1e-12}) < 1e-11
    assert worst({"x": nan}, {"x": np.array([1.0, 1.0])}) == float("inf")
    assert worst({"x": text}, {"x": text.copy()}) == 0
    assert worst({"x": text}, {"x": np.array(["b"])}) == float("inf")
    assert worst({"x": np.array([np.inf])}, {"x": np.array([-np.inf])}) == float("inf")
    assert worst({"x": np.array([True])}, {"x": np.array([False])}) == 1
    assert worst({"x": nan}, {"y": nan}) == float("inf")
    clock = {"seconds.fit": np.array([1.0])}
    assert worst(clock, {"seconds.fit": np.array([5.0])}) == 0  # another in every run
    assert recording._differences({"x": nan, "y": text}, {"x": nan, "y": np.array(["b"])}) == {"x": 0, "y": float("inf")}


def test_without_a_name_one_of_all_records_is_checked(shelf, monkeypatch):
    monkeypatch.setattr(ensembles, "SHARED", {})
    with pytest.raises(MiaError, match="Nothing is recorded yet"):
        recording.check(root=shelf)
    recording.record("tiny", "paper", shelf)
    assert recording.check(root=shelf)[1].startswith("tiny: 1 of 1 results")


def test_what_is_not_recorded_cannot_be_checked(shelf):
    with pytest.raises(MiaError, match="The record of tiny is absent.*mia record tiny --preset paper"):
        recording.check("tiny", "paper", root=shelf)


# --------------------------------------------------------------------------------------------------------- ensembles

RNG = np.random.default_rng(0)
TABLE = Dataset("toy table", RNG.normal(size=(60, 5)).astype(np.float32), RNG.integers(0, 2, 60), 60, ("no", "yes"))


@pytest.fixture
def shared(shelf, monkeypatch):
    """A shared ensemble of four models, and a recorded layer of its own."""
    def make():
        return training.train(TABLE, membership.balanced_halves(60, 4), TrainConfig("mlp:3", epochs=2))

    monkeypatch.setattr(ensembles, "SHARED", {"toys": ensembles.Shared("Toys", make, ("iha",), 1, None, "ours")})
    monkeypatch.setattr(store, "RECORDED", shelf / "data" / "recorded")
    return make


def forget():
    """Move the working cache away."""
    store.cache_dir().rename(store.cache_dir().with_name("forgotten"))


def test_an_ensemble_is_recorded_as_one_file_and_read_model_by_model(shelf, shared, monkeypatch):
    trained = shared().fit()
    expected = [trained.parameters(m) for m in range(4)]
    assert "4 models" in recording.record("toys", root=shelf)
    forget()
    monkeypatch.setattr(pool, "run_tasks", lambda *a, **k: pytest.fail("everything is recorded"))
    assert all((shared().parameters(m) == expected[m]).all() for m in range(4))
    assert store.look_up(shared().spec(2)).source == "recorded"
    assert store.look_up({"kind": "model", "a": 1, "code": ""}) is None
    assert shared().history().shape == (4, 2, 2)
    first = training.train(TABLE, membership.balanced_halves(60, 2), TrainConfig("mlp:3", epochs=2))
    assert first.missing() == []  # a smaller bank is the beginning of the larger
    assert recorded.state_of_ensemble("toys", shelf).state == "recorded"


def test_a_damaged_pack_is_reported_once_and_its_models_are_trained_anew(shelf, shared):
    expected = shared().fit().parameters(1)
    recording.record("toys", root=shelf)
    forget()
    [pack] = (shelf / "data" / "recorded").rglob("*.safetensors")
    content = bytearray(pack.read_bytes())
    content[-5] ^= 1
    pack.write_bytes(content)
    assert recorded.state_of_ensemble("toys", shelf).state == "damaged"
    with pytest.warns(UserWarning, match="is damaged") as said:
        assert shared().missing() == [0, 1, 2, 3]
    assert len(said) == 1
    assert (shared().parameters(1) == expected).all()


def test_an_ensemble_is_checked_by_training_some_of_it_anew(shelf, shared, monkeypatch):
    recording.record("toys", root=shelf)
    agrees, said = recording.check("toys", root=shelf)
    assert agrees and "4 of 4 models trained anew; largest difference 0.0e+00" in said
    real = loop.fit_group

    def other(*arguments, **options):
        [outcome] = real(*arguments, **options)
        outcome.arrays["history"] = outcome.arrays["history"] + 5
        return [outcome]

    monkeypatch.setattr(loop, "fit_group", other)
    agrees, said = recording.check("toys", root=shelf)
    assert not agrees and "standard deviations, 4 are allowed" in said


def test_an_ensemble_can_be_recorded_again_from_its_record(shelf, shared):
    recording.record("toys", root=shelf)
    before = recorded.state_of_ensemble("toys", shelf).manifest
    forget()
    assert "4 models" in recording.record("toys", root=shelf)
    after = recorded.state_of_ensemble("toys", shelf).manifest
    assert after["sha256"] == before["sha256"] and after["seconds"] == pytest.approx(before["seconds"], abs=0.2)


def test_a_recipe_that_changed_makes_an_ensemble_stale(shelf, shared, monkeypatch):
    recording.record("toys", root=shelf)
    other = ensembles.Shared("Toys", shared, ("iha",), 1, None, "ours", TrainConfig("mlp:3", epochs=3))
    monkeypatch.setitem(ensembles.SHARED, "toys", other)
    state = recorded.state_of_ensemble("toys", shelf)
    assert (state.state, state.why) == ("stale", "the recipe")


def test_an_ensemble_of_another_recipe_takes_the_place_of_the_old_one(shelf, shared, monkeypatch):
    recording.record("toys", root=shelf)

    def make():
        return training.train(TABLE, membership.balanced_halves(60, 4), TrainConfig("mlp:3", epochs=1))

    monkeypatch.setitem(ensembles.SHARED, "toys", ensembles.Shared("Toys", make, ("iha",), 1, None, "ours"))
    with pytest.raises(MiaError, match="Model 0 of toys is not in its record"):
        recording.check("toys", root=shelf)
    recording.record("toys", root=shelf)
    assert len(list((shelf / "data" / "recorded").rglob("*.safetensors"))) == 1


# ---------------------------------------------------------------------------------------------------------- the pages


def executed(root, preset="quick"):
    target = root / "runs" / "x" / "tiny.ipynb"
    runner.execute("tiny", runner.validate("tiny", {}, preset, root), target, preset=preset, root=root)
    return json.loads(target.read_text())


def test_a_page_folds_the_recorded_exhibits_in_beside_its_own(shelf):
    recording.record("tiny", "paper", shelf)
    runs = [(state, shown) for state, shown, _ in recorded.exhibits("tiny", shelf)]
    sources = ["".join(cell["source"]) for cell in book.page(executed(shelf), runs)["cells"]]
    [table] = [text for text in sources if ":name: tab-tiny-paper" in text]
    [figure] = [text for text in sources if ":name: fig-tiny-paper" in text]
    assert "recorded at preset `paper`" in table and table.startswith("::::::{admonition}") and "Of 4 numbers." in table
    assert ":alt: a line\n:width: 100%" in figure and "/book/_figures/fig-tiny-paper.png" in figure
    assert "mia run tiny --preset paper" in table and "has changed" not in table


def test_what_a_record_shows_just_as_the_page_does_is_not_shown_twice(shelf):
    recording.record("tiny", "paper", shelf)
    runs = recorded.exhibits("tiny", shelf)
    [(_, shown, figures)] = book._other(runs, executed(shelf))
    assert set(shown["tables"]) == {"tab-tiny"} and set(shown["figures"]) == set(figures) == {"fig-tiny"}
    assert shown["claims"]  # verdicts stay
    [(_, shown, figures)] = book._other(runs, executed(shelf, "paper"))
    assert not shown["tables"] and not shown["figures"] and not figures


def test_a_page_says_when_the_source_changed_since(shelf):
    recording.record("tiny", "paper", shelf)
    source = shelf / "notebooks" / "tiny.py"
    source.write_text(source.read_text().replace("np.ones(2)", "np.ones(3)"))
    runs = [(state, shown) for state, shown, _ in recorded.exhibits("tiny", shelf)]
    text = json.dumps(book.page(executed(shelf), runs)["cells"])
    assert "The code behind it has changed since." in text
    (shelf / "notebooks" / "presets" / "tiny.paper.yaml").write_text("steps: 8\n")
    runs = [(state, shown) for state, shown, _ in recorded.exhibits("tiny", shelf)]
    said = json.dumps(book.page(executed(shelf), runs)["cells"])
    assert "It was recorded with other values than the preset has now (parameters steps)" in said


def test_recorded_exhibits_that_the_page_does_not_show_come_at_its_end(shelf):
    recording.record("tiny", "paper", shelf)
    [(state, shown, _)] = recorded.exhibits("tiny", shelf)
    shown["tables"]["tab-more"] = {**shown["tables"]["tab-tiny"], "markdown": ":::{table} More\n:name: tab-more\n\n:::\n"}
    cells = book.page(executed(shelf), [(state, shown)])["cells"]
    assert ":name: tab-more-paper" in cells[-2]["source"] and "How the numbers" in cells[-1]["source"]


@pytest.mark.book
def test_the_built_book_shows_records_with_device_date_and_verdicts(shelf):
    pages = ("notebooks/tiny", "book/status", "book/recorded", "book/scorecard")
    (shelf / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n" + "".join(
        f"- file: {page}\n" for page in pages))
    for page in ("recorded", "scorecard"):
        (shelf / "book" / f"{page}.md").write_text(f"# {page}\n\n<!-- generated -->\n")
    with open(shelf / "_config.yml", "a") as config:
        config.write("    nb_render_markdown_format: myst\n")
    recording.record("tiny", "paper", shelf)
    html = book.build("quick", root=shelf, folder=shelf / "_build").parent
    page = (html / "notebooks" / "tiny.html").read_text()
    assert "The same, recorded at preset" in page and page.count("Of 4 numbers.") == 2
    assert page.count("note dropdown admonition") == 3 and "{admonition}" not in page  # with the provenance; none written out
    assert (html / "_images" / "fig-tiny-paper.png").is_file()
    card = (html / "book" / "scorecard.html").read_text()
    rows = card.count('class="mia-claim"')
    assert "Claims of" in card and rows == card.count(": the same") > 10, "nothing is counted twice"
    listed = (html / "book" / "recorded.html").read_text()
    assert "german_credit_mlp" in listed and "recorded" in listed and manifest(shelf)["date"][:10] in listed


def test_the_table_of_records_names_every_state(shelf, monkeypatch):
    monkeypatch.setattr(ensembles, "SHARED", {})
    assert "expected 90 min" in book.records(recorded.states(shelf)) and "absent" in book.records(recorded.states(shelf))


# ---------------------------------------------------------------------------------------------------------- the store


def test_what_is_asked_anew_is_computed_once_and_what_lies_in_the_store_stays(isolated_cache, monkeypatch):
    spec, calls = {"kind": "study", "study": "x"}, []

    def compute():
        calls.append(1)
        return {"x": np.ones(2)}

    monkeypatch.setattr(store, "_anew", set())
    store.fetch(spec, compute)
    monkeypatch.setenv("MIA_RECOMPUTE", store.address(spec))
    assert store.fetch(spec, compute).source == "computed" or len(calls) == 1
    monkeypatch.setattr(store, "_anew", set())
    assert [store.fetch(spec, compute).source for _ in range(2)] == ["computed", "cache"]


HOLDER = """
import time
from mia_lib import store
with store.lock({"kind": "study", "study": "slow"}):
    print("held", flush=True)
    time.sleep(1.5)
"""


def test_who_waits_for_another_process_is_told(isolated_cache, capsys):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    holder.stdout.readline()
    started = time.monotonic()
    with store.lock({"kind": "study", "study": "slow"}):
        assert time.monotonic() - started > 0.5
    holder.communicate()
    assert "waiting for another process that is computing the study slow" in capsys.readouterr().err
