"""Making records and checking them; what is recorded stands in `recorded`."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mia_lib import definitions, progress, store
from mia_lib.errors import MiaError, choose
from mia_lib.evidence import pictures
from mia_lib.progress import Bars
from mia_lib.publish import prose, runner
from mia_lib.publish.parameters import find_root, notebooks, presets, validate
from mia_lib.publish.records import state as recorded

FILE_LIMIT, TOTAL_LIMIT = 8_000_000, 60_000_000  # bytes
TOLERANCE = 1e-4  # of a number computed anew on another machine, relative to the largest of its kind


def record(name: str, preset: str = "paper", root: Path | None = None, bars: Bars | None = None) -> str:
    """Run a notebook at a preset, or train a shared ensemble, and keep what readers need; what was finished is used again.

    Returns:
        a sentence that says what was kept.

    Raises:
        MiaError: neither a notebook nor an ensemble, a preset that is run live, more than the limits allow.
    """
    from mia_lib.training import shared

    root = find_root(root)
    choose("name", name, [*notebooks(root), *shared.names()])
    if name in shared.names():
        return _record_ensemble(name, root)
    allowed = [p for p in presets(name, root) if p not in recorded.NOT_RECORDED]
    if not allowed:
        raise MiaError(f"{name} has no preset to record; put one into notebooks/presets/{name}.paper.yaml.")
    choose("preset", preset, allowed)
    values = validate(name, {}, preset, root)
    target = root / "runs" / f"{name}-{runner.key(name, values, root)}" / f"{name}.ipynb"
    bearing = recorded.definitions_of_run(name, values, root)  # before it runs, for it may be edited meanwhile
    run = runner.execute(name, values, target, preset=preset, root=root, bars=bars)
    _check_unchanged(name, run, bearing, root)
    return _keep_run(name, preset, run, json.loads(target.read_text(encoding="utf-8")), root)


def _check_unchanged(name: str, run: dict, before: dict[str, str], root: Path) -> None:
    """Refuse a run whose source is not what it was when it began: what it shows is of neither."""
    now = recorded.definitions_of_run(name, run["parameters"], root)
    if run["key"] == runner.CHANGED_MEANWHILE or now != before:
        different = ", ".join(recorded.changed(before, now)[:4])
        raise MiaError(f"The source of {name} was edited while it ran{f' ({different})' * bool(different)}, so the run is of "
                       "neither and is not recorded. What was finished is kept: record it again, from a copy of the project "
                       "where you edit meanwhile.")


KEPT = ("key", "kind", "study", "source", "seconds", "needs", "date")  # what the manifest of a run says of an entry


def _path(kind: str, name: str) -> Path:
    """Where an entry lies in a layer of the store."""
    return Path(kind) / name[:2] / f"{name}.npz"


def _keep_run(name: str, preset: str, run: dict, notebook: dict, root: Path) -> str:
    layer, folder = recorded.layer(root), recorded.run_folder(name, preset, root)
    entries, left_out, copies = [], [], {}
    for entry in run["entries"]:
        path = _path(entry["kind"], entry["key"])
        held = next((one for one in (store.cache_dir() / _path(entry["kind"], entry["cached"]), layer / path)
                     if one.is_file() and one.with_suffix(".json").is_file()), None)
        if held is None:
            continue
        if (size := held.stat().st_size) > FILE_LIMIT:
            left_out.append(f"{entry['study']} ({size / 1e6:.0f} MB)")
            continue
        entries.append({name: entry[name] for name in KEPT})
        copies |= {path: held, path.with_suffix(".json"): held.with_suffix(".json")}
    files = exhibits_of(notebook, root)
    too_large = [path for path, content in files.items() if len(content) > FILE_LIMIT]
    new = {layer / path: source.read_bytes() for path, source in copies.items()}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    manifest = {
        "notebook": name, "preset": preset, "parameters": run["parameters"], "schema": store.SCHEMA,
        "definitions": recorded.definitions_of_run(name, run["parameters"], root), "versions": run["versions"],
        "device": run["device"], **_cost(run, folder), "date": run["date"], "files": hashes,
    }

    def as_written() -> bytes:
        return (json.dumps(manifest | {"entries": entries, "left_out": left_out}, indent=1, sort_keys=True) + "\n").encode()

    besides = sum(map(len, files.values())) + len(as_written())  # an entry that is left out takes less room there

    def total() -> int:
        kept = sum(len(content) for path, content in new.items() if path.with_suffix(".npz") not in dropped)
        return _size(layer, without={*new, *replaced, *dropped, *shown}) + kept + besides

    dropped: set[Path] = set()
    shown = set(folder.glob("*"))
    replaced = _only_of(layer, folder)
    if total() > TOTAL_LIMIT:
        _drop_arrays_of_stale(layer, root)
        gone = []
        for path in _cheapest_first(layer, folder, entries, new):
            if total() <= TOTAL_LIMIT:
                break
            gone.append(path)
            dropped |= {path, path.with_suffix(".json")}
        for path in reversed(gone):  # the last one may have left room for some that went before it
            both = {path, path.with_suffix(".json")}
            dropped -= both
            if total() > TOTAL_LIMIT:
                dropped |= both
    _check_limits(too_large, total())
    left_out += [f"{entry['study']} (no room)" for entry in entries if layer / _path(entry["kind"], entry["key"]) in dropped]
    entries = [entry for entry in entries if layer / _path(entry["kind"], entry["key"]) not in dropped]
    new = {path: content for path, content in new.items() if path not in dropped}
    for path, content in new.items():
        if not path.is_file() or path.read_bytes() != content:
            store.write(path, content)
    for one, content in files.items():
        store.write(folder / recorded.stored_name(one, hashes[one]), content)
    # With this one step the new record takes the place of the old; killed before it, the old one stands.
    store.write(folder / "manifest.json", as_written())
    _leave_out(layer, folder, dropped)
    _prune(layer)
    said = f"{folder}: {len(files)} files and {len(entries)} entries of the store"
    without = ", ".join(f"{count} of {one}" if count > 1 else one for one, count in Counter(left_out).items())
    return said + (f"; left out and computed when asked for: {without}" if left_out else "")


def _cost(run: dict, folder: Path) -> dict[str, float]:
    """Seconds and memory that a run takes: what it found in the store counts as if it had been computed on the way, and no
    less than for the record of the same device that it takes the place of, for of models found in the store the run knows no
    time."""
    found = [entry for entry in run["entries"] if entry["source"] != "computed"]
    seconds = run["seconds"] + sum(entry["seconds"] for entry in found if entry["kind"] == "study")
    cost = {"seconds": round(seconds, 1), "peak_memory_mb": run["peak_memory_mb"]}
    try:
        before = json.loads((folder / "manifest.json").read_bytes())
        if found and before["device"] == run["device"] and before["parameters"] == json.loads(json.dumps(run["parameters"])):
            cost = {name: max(value, before[name]) for name, value in cost.items()}
    except (OSError, ValueError, KeyError):
        pass
    return cost


def exhibits_of(notebook: dict, root: Path) -> dict[str, bytes]:
    """The named tables, figures and results and the verdicts of an executed notebook: file -> content.

    Returns:
        "exhibits.json", which holds what `prose.named` finds, its text told by the numbers of this run, and a PNG a figure.
    """
    found, images = prose.named(prose.told(notebook, prose.run_of(notebook, root)))
    text = json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    return {**{file: shrunk(png) for file, png in images.items()}, "exhibits.json": text.encode()}


def shrunk(png: bytes) -> bytes:
    """A figure with 256 colours, which lines and letters do not miss, when that is smaller."""
    return min(png, reduced(png, pictures.of_few_colours), key=len)


def reduced(png: bytes, by: Callable[[bytes], bytes]) -> bytes:
    """What a function of `evidence.pictures` makes of a figure; kept in the store, for each build asks for all pages'."""
    import PIL

    def compute() -> dict[str, np.ndarray]:
        return {"png": np.frombuffer(by(png), np.uint8)}

    spec = {"kind": "figure", "by": by.__name__, "png": hashlib.sha256(png).hexdigest(), "pillow": PIL.__version__}
    return store.fetch(spec, compute).arrays["png"].tobytes()


def _size(layer: Path, without: set[Path]) -> int:
    return sum(p.stat().st_size for p in layer.rglob("*") if p.is_file() and p not in without)


def _check_limits(too_large: list[str], total: int) -> None:
    if too_large:
        raise MiaError(f"{', '.join(too_large)} would be larger than {FILE_LIMIT / 1e6:.0f} MB, the limit of a recorded file. "
                       "Record less: scores of the targets, not signals of every reference.")
    if total > TOTAL_LIMIT:
        raise MiaError(f"data/recorded would hold {total / 1e6:.1f} MB; {TOTAL_LIMIT / 1e6:.0f} MB is the limit. Remove "
                       "a record, or record less.")


def _drop_arrays_of_stale(layer: Path, root: Path) -> None:
    """Make room: of a run with other values than its preset has now nothing reads or checks arrays. What it shows stays."""
    for path in layer.glob("runs/*/manifest.json"):
        if recorded.state_of_run(*path.parent.name.split(".", 1), root).state == "stale":
            manifest = json.loads(path.read_text(encoding="utf-8"))
            store.write(path, (json.dumps(manifest | {"entries": []}, indent=1, sort_keys=True) + "\n").encode())
    _prune(layer)


def _manifests(layer: Path, but: Path | None = None) -> list[Path]:
    """Those of all runs, but the one in a folder."""
    return [path for path in sorted(layer.glob("runs/*/manifest.json")) if path.parent != but]


def _cheapest_first(layer: Path, folder: Path, entries: list[dict], new: dict[Path, bytes]) -> list[Path]:
    """Arrays of all records, those of the run in `folder` as they are to be, by what computing them again takes for their
    size, the models included that they were computed from.

    Of a run that found its models in the store, or was recorded before entries knew what they need, that is not known: what
    such a run took beyond its entries is theirs in proportion to their seconds.
    """
    worth = {}
    for path in _manifests(layer, but=folder):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        known = sum(entry["seconds"] for entry in manifest["entries"])
        share = max(manifest["seconds"] / known, 1.0) if known else 1.0
        for entry in manifest["entries"]:
            array = layer / _path(entry["kind"], entry["key"])
            if array.is_file():
                worth[array] = max(entry.get("needs", 0.0), share * entry["seconds"]) / array.stat().st_size
    for entry in entries:
        path = layer / _path(entry["kind"], entry["key"])
        worth[path] = entry["needs"] / len(new[path])
    return sorted(worth, key=worth.get)


def _leave_out(layer: Path, folder: Path, dropped: set[Path]) -> None:
    """Take arrays for which there is no room out of the manifests of the other runs, which say so."""
    for path in _manifests(layer, but=folder):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        gone = [entry for entry in manifest["entries"] if layer / _path(entry["kind"], entry["key"]) in dropped]
        if gone:
            manifest["entries"] = [entry for entry in manifest["entries"] if entry not in gone]
            manifest["left_out"] = [*manifest["left_out"], *(f"{entry['study']} (no room)" for entry in gone)]
            store.write(path, (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode())


def _named_by(*manifests: Path) -> set[Path]:
    """The files of runs that their manifests name.

    Raises:
        OSError, ValueError, KeyError, TypeError: a manifest that cannot be read.
    """
    named: set[Path] = set()
    for path in filter(Path.is_file, manifests):
        manifest, layer = json.loads(path.read_text(encoding="utf-8")), path.parents[2]
        named |= {path.with_name(recorded.stored_name(*item)) for item in manifest["files"].items()}
        named |= {layer / _path(entry["kind"], entry["key"]).with_suffix(end) for entry in manifest["entries"]
                  for end in (".npz", ".json")}
    return named


def _only_of(layer: Path, folder: Path) -> set[Path]:
    """The files of a run that no other names; none where a manifest cannot be read."""
    try:
        return _named_by(folder / "manifest.json") - _named_by(*_manifests(layer, but=folder))
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _prune(layer: Path) -> None:
    """Remove what no manifest names any more; a manifest that cannot be read keeps everything where it is."""
    try:
        named = _named_by(*_manifests(layer))
    except (OSError, ValueError, KeyError, TypeError):
        return
    for path in [*layer.glob("study/*/*"), *layer.glob("runs/*/*")]:
        if path not in named and path.name != "manifest.json":
            path.unlink()
    for path in layer.glob("study/*"):
        if not any(path.iterdir()):
            path.rmdir()


def _record_ensemble(name: str, root: Path) -> str:
    from mia_lib.training import shared

    layer, ensemble = recorded.layer(root), shared.get(name).fit()
    held = [store.look_up(ensemble.spec(m)) for m in range(len(ensemble))]
    arrays = {k: np.stack([entry.arrays[k] for entry in held]) for k in held[0].arrays}
    size = sum(a.nbytes for a in arrays.values())
    _check_limits([name] if size > FILE_LIMIT else [], _size(layer, set()) + size)
    first = held[0].manifest
    path = store.write_pack(
        layer, ensemble.key, [store.address(ensemble.spec(m)) for m in range(len(ensemble))], arrays, name=name,
        data=ensemble.records.name, config=ensemble.config.spec(),
        seconds=round(sum(entry.manifest["seconds"] for entry in held), 1), device=first["device"], date=first["date"],
        versions={k: first[k] for k in ("torch", "numpy", "python")}, **_code_of(ensemble))
    for other in layer.glob("ensemble/*/*.json"):  # the new one is in its place
        manifest = json.loads(other.read_bytes())
        if manifest.get("name") == name and other != path:
            other.unlink()
    packed = {p.with_name(json.loads(p.read_bytes())["file"]) for p in layer.glob("ensemble/*/*.json")}
    for weights in layer.glob("ensemble/*/*.safetensors"):
        if weights not in packed:
            weights.unlink()
    return f"{path}: {len(held)} models, {size / 1e6:.1f} MB"


def _code_of(ensemble) -> dict:
    """For the manifest of an ensemble: the code that trains it."""
    spec = ensemble.spec(0)
    return {**store.made_by(spec), "definitions": dict(definitions.known(spec["code"]).definitions)}


# ------------------------------------------------------------------------------------------------------- checking


def check(name: str | None = None, preset: str = "paper", minutes: float = 5.0, seed: int = 0, root: Path | None = None,
          bars: Bars | None = None) -> tuple[bool, str]:
    """Compute a random sample of a record anew, in an empty store, and compare.

    Args:
        name, preset: as for `record`; without a name, one of all records at random.
        minutes: what the sample may take, by the seconds it took when it was recorded; at least one piece is taken. What a
            notebook needs besides and no record holds comes on top.
        seed: of the sample.

    Returns:
        whether they agree, and a sentence with the largest difference. Of a record that agrees although its source had changed
        the results that were computed anew are adopted, and it is noted as confirmed once all of other code are.

    Raises:
        MiaError: there is no such record, or it is damaged or stale.
    """
    from mia_lib.training import shared

    root, rng = find_root(root), np.random.default_rng(seed)
    if name is None:
        held = [s for s in recorded.states(root) if s.state in ("recorded", "source changed")]
        if not held:
            raise MiaError("Nothing is recorded yet: `mia record --missing` lists what could be.")
        one = held[rng.integers(len(held))]
        name, preset = one.name, one.preset
    choose("name", name, [*notebooks(root), *shared.names()])
    ensemble = name in shared.names()
    state = recorded.state_of_ensemble(name, root) if ensemble else recorded.state_of_run(name, preset, root)
    if not state.manifest or state.state == "stale":
        raise MiaError(f"The record of {name} is {state.state} ({state.why or 'nothing is there'}): `{state.command}` makes "
                       "it anew.")
    if ensemble:
        agrees, said = _check_ensemble(name, state.manifest, minutes, rng)
        if agrees and state.state != "recorded":
            said += _adopt_ensemble(name, root)
        return agrees, f"{name}: {said}"
    with tempfile.TemporaryDirectory(prefix="mia-check-") as scratch:
        agrees, said, run, notebook, computed = _check_run(name, preset, state.manifest, minutes, rng, Path(scratch), root,
                                                           bars)
    if agrees and state.state != "recorded":
        said += _adopt_run(name, preset, state, run, notebook, computed, root)
    return agrees, f"{name}: {said}"


def _differences(recorded_arrays: dict[str, np.ndarray], anew: dict[str, np.ndarray]) -> dict[str, float]:
    """Of two sets of arrays, by name: the largest difference relative to the recorded array's largest absolute value.

    What a clock said, under names with "seconds" in them, is another in every run and not compared.
    """
    return {k: _difference(recorded_arrays.get(k), anew.get(k)) for k in sorted(recorded_arrays.keys() | anew.keys())
            if "seconds" not in k}


def _difference(before: np.ndarray | None, now: np.ndarray | None) -> float:
    if before is None or now is None or np.shape(before) != np.shape(now):
        return float("inf")
    if before.dtype.kind not in "biuf":
        return 0.0 if np.array_equal(before, now) else float("inf")
    before, now = before.astype(np.float64), np.asarray(now, np.float64)
    sound = np.isfinite(before)
    if not np.array_equal(sound, np.isfinite(now)) or not np.array_equal(before[~sound], now[~sound], equal_nan=True):
        return float("inf")
    gap = np.abs(before[sound] - now[sound]).max(initial=0)
    return float(gap / max(np.abs(before[sound]).max(initial=0), 1e-300)) if gap else 0.0


def _check_ensemble(name: str, manifest: dict, minutes: float, rng: np.random.Generator) -> tuple[bool, str]:
    """Train some of the models again.

    Their weights must agree. Where rounding differs (another processor, another PyTorch) a recipe with a high learning rate
    lets it grow without bound; then the models must at least be like the recorded ones: their last training loss within four
    standard deviations, over the record's models, of what it was.
    """
    from mia_lib.training import shared
    from mia_lib.training.backends.loop import fit_group

    ensemble = shared.get(name)
    each = max(manifest["seconds"] / len(ensemble), 1e-9)
    sample = rng.permutation(len(ensemble))[:int(np.clip(60 * minutes / each, 1, 8))]
    worst, unlike = 0.0, 0.0
    held = [store._read_pack(ensemble.spec(m), of_any_code=True) for m in range(len(ensemble))]
    if None in held:
        raise MiaError(f"Model {held.index(None)} of {name} is not in its record: data, design or recipe changed. "
                       f"`mia record {name}` makes it anew.")
    last = np.array([entry.arrays["history"][-1, 0] for entry in held])
    for m in progress.track(sorted(map(int, sample)), f"checking {name}"):
        rows = [np.flatnonzero(ensemble.members[m])]
        records = ensemble.records
        [anew] = fit_group(records.x, records.y, rows, len(records.classes), ensemble.config, [m])
        worst = max([worst, *_differences(held[m].arrays, anew.arrays).values()])
        unlike = max(unlike, abs(anew.arrays["history"][-1, 0] - last[m]) / max(last.std(), 1e-12))
    said = f"{len(sample)} of {len(ensemble)} models trained anew; largest difference {worst:.1e} of the largest value"
    if worst <= TOLERANCE:
        return True, f"{said}, {TOLERANCE:g} is allowed"
    return bool(unlike <= 4), (f"{said}, more than rounding; their training losses differ from the recorded by at most "
                               f"{unlike:.1f} standard deviations, 4 are allowed")


@contextmanager
def _records_of_any_code(cache: Path, **more: str) -> Iterator[None]:
    """Within, results are read whatever code recorded them and kept in `cache`, and the environment holds `more`."""
    more = {"MIA_RECORDS_OF_ANY_CODE": str(cache), "MIA_CACHE": str(cache), **more}
    before = {k: os.environ.get(k) for k in more}
    os.environ |= more
    try:
        yield
    finally:
        for k, value in before.items():
            os.environ.pop(k) if value is None else os.environ.update({k: value})


def _check_run(name: str, preset: str, manifest: dict, minutes: float, rng: np.random.Generator, scratch: Path,
               root: Path, bars: Bars | None) -> tuple[bool, str, dict, dict, set[str]]:
    """Compute entries anew, those of other code first; whether they agree, in words, the run, its notebook, and which."""
    order = [manifest["entries"][i] for i in rng.permutation(len(manifest["entries"]))]
    changed = {e["key"] for e in order if recorded.of_other_code(recorded.manifest_of(e, root), root)}
    order.sort(key=lambda entry: entry["key"] not in changed)
    cheapest = sorted(order, key=lambda entry: (entry["key"] not in changed, entry["seconds"]))[:1]
    affordable = [entry for entry in order if entry["seconds"] <= 60 * minutes] or cheapest
    if not affordable:
        raise MiaError(f"The record of {name} holds no entry of the store to check; `mia record {name} --preset {preset}` "
                       "makes it anew.")
    spent = np.cumsum([entry["seconds"] for entry in affordable])
    sample = affordable[:max(1, int((spent <= 60 * minutes).sum()))]
    with _records_of_any_code(scratch / "cache", MIA_RECOMPUTE=",".join(entry["key"] for entry in sample)):
        values, target = validate(name, {}, preset, root), scratch / f"{name}.ipynb"
        bearing = recorded.definitions_of_run(name, values, root)
        run = runner.execute(name, values, target, preset=preset, root=root, bars=bars)
        _check_unchanged(name, run, bearing, root)
        anew = {entry["key"]: store.cache_dir() / _path(entry["kind"], entry["cached"]) for entry in run["entries"]}
        gaps, computed = [], set()  # of each result that was compared: the largest, and where it is
        for entry in sample:
            path = anew.get(entry["key"])
            if path is not None and path.is_file():
                kept = recorded.layer(root) / _path(entry["kind"], entry["key"])
                found = _differences(*(store._decode(one.read_bytes(), ".npz") for one in (kept, path)))
                array = max(found, key=found.get, default="")
                computed.add(entry["key"])
                gaps.append((found.get(array, 0.0), f"{array} of {entry.get('study') or entry['kind']}, {entry['key'][:12]}"))
    if not gaps:
        raise MiaError(f"The notebook {name} no longer asks for what its record holds: `mia record {name} --preset {preset}`.")
    agrees, said = _compared(gaps, len(manifest["entries"]))
    if not agrees and run["device"] != manifest["device"]:
        said += (f". It was recorded on {manifest['device']}, and computed here on {run['device']}: last digits, and what "
                 "networks make of them, can be a processor's own (book/statistics.md)")
    return agrees, said, run, json.loads(target.read_text(encoding="utf-8")), computed


def _compared(gaps: list[tuple[float, str]], of: int) -> tuple[bool, str]:
    """Whether results agree, and in words the largest difference and each of the others that is more than rounding."""
    (worst, where), *others = sorted(gaps, key=lambda gap: -gap[0])
    said = (f"{len(gaps)} of {of} results computed anew; largest difference {worst:.1e} of the largest "
            f"value{f' ({where})' * bool(worst)}, {TOLERANCE:g} is allowed")
    if worst <= TOLERANCE:
        return True, said
    beyond = [f"{gap:.1e} ({where})" for gap, where in others if gap > TOLERANCE]
    more = f"; beyond it, too: {', '.join(beyond)}" if beyond else ""
    return False, f"{said}; {len(others) - len(beyond)} of the {len(gaps)} agree{more}"


def _adopt_run(name: str, preset: str, state: recorded.State, run: dict, notebook: dict, computed: set[str],
               root: Path) -> str:
    """Note which of a record's arrays are what the code now gives; once all are, what that shows takes the place of what was
    shown, and results that it does not ask for go."""
    folder, today = recorded.run_folder(name, preset, root), time.strftime("%Y-%m-%d", time.gmtime())
    now, manifest, left = {entry["key"]: entry for entry in run["entries"]}, dict(state.manifest), 0
    for entry in manifest["entries"]:
        if "roots" not in now.get(entry["key"], ()):
            continue
        path, made = recorded.path_of(entry, root), {k: now[entry["key"]][k] for k in ("code", "roots", "words", "own")}
        kept = json.loads(path.read_bytes())
        if entry["key"] not in computed:
            left += kept["code"] != made["code"]
        elif {k: kept.get(k) for k in made} != made:
            store.write(path, json.dumps(kept | made | {"adopted": today}, indent=1, sort_keys=True).encode())
    if left:
        return (f"; the code of these is adopted, but {left} of the other results are of other code and were not computed "
                "anew: give more --minutes")
    before = json.loads((folder / recorded.stored_name("exhibits.json", manifest["files"]["exhibits.json"])).read_bytes())
    files = exhibits_of(notebook, root)
    different = _shown_differently(before, json.loads(files["exhibits.json"]))
    manifest["entries"] = [entry for entry in manifest["entries"] if entry["key"] in now]
    manifest["files"] = {one: hashlib.sha256(content).hexdigest() for one, content in files.items()}
    for one, content in files.items():
        store.write(folder / recorded.stored_name(one, manifest["files"][one]), content)
    manifest |= {"confirmed": today, "definitions": recorded.definitions_of_run(name, run["parameters"], root)}
    store.write(folder / "manifest.json", (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode())
    _prune(recorded.layer(root))
    return "; its code is adopted, and the page drawn anew" + (f"; what differs: {', '.join(different)}" if different else "")


NUMBERS = re.compile(r"[-+−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
CLOCK = re.compile(r"\b(seconds?|minutes?|hours?)\b")


def _shown_differently(before: dict, now: dict) -> list[str]:
    """Names of tables and results whose numbers or words differ by more than rounding, and of claims whose verdicts do.

    Tables that show what a clock said are compared by their size.
    """
    tables = [name for name in before["tables"].keys() | now["tables"].keys()
              if not _same_table(before["tables"].get(name, {}), now["tables"].get(name, {}))]
    verdicts = [{f"{c['paper']} {c['claim']}": (c["verdict"], c["text"]) for c in one["claims"]} for one in (before, now)]
    claims = [key for key in verdicts[0].keys() | verdicts[1].keys() if verdicts[0].get(key) != verdicts[1].get(key)]
    results = [one.get("results", {}) for one in (before, now)]
    named = [key for key in results[0].keys() | results[1].keys() if not _same_cell(results[0].get(key), results[1].get(key))]
    return sorted(tables) + sorted(named) + sorted(claims)


def _same_table(one: dict, other: dict) -> bool:
    cells = [[*table.get("columns", ()), *(cell for row in table.get("rows", ()) for cell in row)] for table in (one, other)]
    if len(cells[0]) != len(cells[1]):
        return False
    if CLOCK.search(json.dumps([one.get("columns"), one.get("caption")])):
        return True
    return all(map(_same_cell, *cells))


def _same_cell(one, other) -> bool:
    """Whether two cells of a table are equal but for rounding: a number by a thousandth, a printed one by its last digit."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same_cell(one[k], other[k]) for k in one)
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other or (one != one and other != other) or abs(one - other) <= 1e-3 * max(abs(one), abs(other), 1e-3)
    one, other = str(one), str(other)
    if NUMBERS.sub("#", one) != NUMBERS.sub("#", other):
        return False
    pairs = zip(*(NUMBERS.findall(text) for text in (one, other)), strict=True)
    return all(abs(float(a.replace("−", "-")) - float(b.replace("−", "-"))) <= 1.01 * 10 ** -len(a.partition(".")[2])
               for a, b in pairs)


def _adopt_ensemble(name: str, root: Path) -> str:
    from mia_lib.training import shared

    made = _code_of(shared.get(name)) | {"confirmed": time.strftime("%Y-%m-%d", time.gmtime())}
    for path in recorded.layer(root).glob("ensemble/*/*.json"):
        manifest = json.loads(path.read_bytes())
        if manifest.get("name") == name:
            store.write(path, json.dumps(manifest | made, indent=1, sort_keys=True).encode())
    return "; its code is adopted"
