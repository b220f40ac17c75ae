"""Recorded runs: what takes hours or a graphics card is run once, and every reader sees it.

`data/recorded/` holds, in git: `study/`, entries of the store that a page asked for; `ensemble/`, the weights of the shared
ensembles, one file each; and `runs/NAME.PRESET/`, the exhibits of a notebook run at that preset. Each has a manifest with
parameters, fingerprints of the code, versions, device, seconds, memory and date.

What a record is of is judged twice: each entry by the definitions that computed its arrays, and the run by those that made
tables, figures and verdicts of them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mia_lib import definitions, store
from mia_lib.data import sets
from mia_lib.publish import runner
from mia_lib.publish.parameters import QUICK, find_root, notebooks, presets, validate

NOT_RECORDED = (QUICK, "smoke")
OTHER_CODE, OTHER_EXHIBITS = "source changed", "to be drawn anew"


@dataclass(frozen=True)
class State:
    """Where a record stands.

    Attributes:
        name, preset: of the notebook; a shared ensemble has the preset "ensemble".
        state: "recorded"; "source changed", where arrays are of other code than there is now; "to be drawn anew", where arrays
            stand and what became tables, figures and verdicts is of other code; "stale"; "damaged"; or "absent".
        why: what changed, in words.
        cpu_minutes, gpu_minutes: expected, or where there is a record those that it took; None when unknown.
        manifest: of what is there, {} when nothing is.
    """

    name: str
    preset: str
    state: str
    why: str
    cpu_minutes: float | None
    gpu_minutes: float | None
    manifest: dict

    @property
    def command(self) -> str:
        """What records it, or checks it when only its source changed."""
        check = " --check" if self.state == OTHER_CODE else ""
        return f"mia record {self.name}" + ("" if self.preset == "ensemble" else f" --preset {self.preset}") + check


# -------------------------------------------------------------------------------------------------- what there is


def layer(root: Path) -> Path:
    """The folder of all records."""
    return root / "data" / "recorded"


def run_folder(name: str, preset: str, root: Path | None = None) -> Path:
    """Where the exhibits of a notebook's recorded run lie."""
    return layer(find_root(root)) / "runs" / f"{name}.{preset}"


def stored_name(name: str, sha256: str) -> str:
    """The name of a file of a recorded run, by its content: a new record never overwrites a file of the old one."""
    return f"{sha256[:12]}-{name}"


def _manifest(folder: Path) -> dict:
    """The manifest of a recorded run; {} when there is none.

    Raises:
        ValueError: it, a file it names, or a result it names is damaged or missing.
    """
    path = folder / "manifest.json"
    if not path.is_file():
        return {}
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for name, sha256 in manifest["files"].items():
        _sound(folder / stored_name(name, sha256), sha256)
    for entry in manifest["entries"]:
        result = folder.parents[1] / entry["kind"] / entry["key"][:2] / f"{entry['key']}.npz"
        _sound(result, json.loads(result.with_suffix(".json").read_bytes())["sha256"])
    return manifest


def _sound(path: Path, sha256: str) -> None:
    if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        raise ValueError(f"{path.name} does not match its sha256")


def _minutes(name: str, preset: str, root: Path) -> tuple[float | None, float | None]:
    text = (root / "notebooks" / "presets" / f"{name}.{preset}.yaml").read_text(encoding="utf-8")
    line = re.search(r"^# minutes: (.*)$", text, re.MULTILINE)
    found = dict(re.findall(r"([\d.]+) on (?:\d+ |a )?(CPU|GPU)", line[1])) if line else {}
    by_device = {device: float(number) for number, device in found.items()}
    return by_device.get("CPU"), by_device.get("GPU")


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Names of definitions that stand on one side only, wherever they lie: "attacks.bayes:malt"."""
    here, there = set(before.values()), set(now.values())
    different = {name for name, digest in before.items() if digest not in there}
    different |= {name for name, digest in now.items() if digest not in here}
    return sorted(name.removeprefix("mia_lib.") for name in different)


def _said(names: list[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def of_other_code(entry: Mapping, root: Path) -> bool:
    """Whether what an entry's manifest names as its code is another now; of code in a notebook's cells the run has to tell."""
    if entry.get("own"):
        return False
    return _reach(entry, root).fingerprint != entry.get("code")


def _reach(entry: Mapping, root: Path) -> definitions.Reached:
    """What the roots that a manifest names reach now."""
    sources = definitions.of_folder(runner.library_of(root))
    return sources.reach([sources.find(name) for name in entry.get("roots", ())], entry.get("words", ()))


def path_of(entry: Mapping, root: Path) -> Path:
    """The manifest of an entry that a run's manifest names."""
    return layer(root) / entry["kind"] / entry["key"][:2] / f"{entry['key']}.json"


def manifest_of(entry: Mapping, root: Path) -> dict:
    """What it holds."""
    return json.loads(path_of(entry, root).read_bytes())


def state_of_run(name: str, preset: str, root: Path | None = None) -> State:
    """Where the record of a notebook at a preset stands."""
    root = find_root(root)
    minutes, folder = _minutes(name, preset, root), run_folder(name, preset, root)
    try:
        manifest = _manifest(folder)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return State(name, preset, "damaged", f"{folder.name}: {error}", *minutes, {})
    if not manifest:
        return State(name, preset, "absent", "", *minutes, {})
    took = float(f"{manifest['seconds'] / 60:.2g}")
    minutes = (took, minutes[1]) if re.match(r"\d+ CPU", manifest["device"]) else (minutes[0], took)
    values = validate(name, {}, preset, root)
    different = [k for k in values if manifest["parameters"].get(k) != json.loads(json.dumps(values[k]))]
    if different or manifest["schema"] != store.SCHEMA:
        why = f"parameters {', '.join(different)}" if different else "the store's schema"
        return State(name, preset, "stale", why, *minutes, manifest)
    different = changed(manifest["definitions"], definitions_of_run(name, values, root))
    entries = [manifest_of(entry, root) for entry in manifest["entries"]]
    code = any(not name.startswith("data/") for name in different)
    other = any(of_other_code(entry, root) or (entry.get("own") and code) for entry in entries)
    state = OTHER_CODE if other else OTHER_EXHIBITS if different else "recorded"
    return State(name, preset, state, _said(different), *minutes, manifest)


def definitions_of_run(name: str, values: dict, root: Path) -> dict[str, str]:
    """Definition, file of what the paper claims, or data set -> digest, of all that bears on the numbers and verdicts of a
    notebook. How records are read is not among them: their content is, which is checked when they are loaded."""
    code = runner.bearing(name, values, root, definitions.FOR_NUMBERS).definitions
    return {**code, **{path.relative_to(root).as_posix(): hashlib.sha256(runner.bearing_part(path)).hexdigest()[:16]
                       for path in runner.papers(name, root)},
            **{f"data/{one}": sets.content(one)[:16] for one in sets.names() if sets.content(one) and any(
                text.startswith(one) for text in runner.texts_of(values))}}


def state_of_ensemble(name: str, root: Path | None = None) -> State:
    """Where the record of a shared ensemble stands, judged without its data."""
    from mia_lib.training import shared as ensembles

    root, shared = find_root(root), ensembles.SHARED[name]
    minutes = shared.cpu_minutes, shared.gpu_minutes
    for path in sorted(layer(root).glob("ensemble/*/*.json")):
        try:
            manifest = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        if manifest.get("name") != name:
            continue
        try:
            _sound(path.with_name(manifest["file"]), manifest["sha256"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            return State(name, "ensemble", "damaged", f"{path.name}: {error}", *minutes, {})
        if manifest["schema"] != store.SCHEMA or (shared.config and shared.config.spec() != manifest["config"]):
            why = "the store's schema" if manifest["schema"] != store.SCHEMA else "the recipe"
            return State(name, "ensemble", "stale", why, *minutes, manifest)
        state, why = "recorded", ""
        if of_other_code(manifest, root):
            state, why = OTHER_CODE, _said(changed(manifest.get("definitions", {}), _reach(manifest, root).definitions))
        return State(name, "ensemble", state, why, *minutes, manifest)
    return State(name, "ensemble", "absent", "", *minutes, {})


def states(root: Path | None = None) -> list[State]:
    """All that can be recorded: notebooks at every preset but the two that are run live, and the shared ensembles."""
    from mia_lib.training import shared as ensembles

    root = find_root(root)
    runs = [state_of_run(name, preset, root) for name in notebooks(root) for preset in presets(name, root)
            if preset not in NOT_RECORDED]
    return runs + [state_of_ensemble(name, root) for name in ensembles.names()]


def missing(root: Path | None = None) -> list[State]:
    """What is not recorded as it should be, cheapest first."""
    lacking = [state for state in states(root) if state.state != "recorded"]
    def cost(state: State) -> tuple[float, str]:
        minutes = state.gpu_minutes if state.cpu_minutes is None else state.cpu_minutes
        return float("inf") if minutes is None else minutes, state.name

    return sorted(lacking, key=cost)


def exhibits(name: str, root: Path | None = None) -> list[tuple[State, dict, dict[str, bytes]]]:
    """What the page of a notebook can show of its recorded runs.

    Returns:
        for each sound record its state, the content of `exhibits.json`, and the figures by name.
    """
    root, found = find_root(root), []
    for preset in presets(name, root):
        if preset in NOT_RECORDED:
            continue
        state = state_of_run(name, preset, root)
        if state.manifest:
            folder = run_folder(name, preset, root)
            files = {n: (folder / stored_name(n, sha)).read_bytes() for n, sha in state.manifest["files"].items()}
            shown = json.loads(files["exhibits.json"])
            figures = {key: files[one["file"]] for key, one in shown["figures"].items()}
            found.append((state, shown, figures))
    return found
