"""Recorded runs: what takes hours or a graphics card is run once, and every reader sees it.

`data/recorded/` holds, in git: `study/`, entries of the store that a page asked for; `ensemble/`, the weights of the shared
ensembles, one file each; and `runs/NAME.PRESET/`, the exhibits of a notebook run at that preset. Each has a manifest with
parameters, hashes of the source, versions, device, seconds, memory and date.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import re
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from mia_lib import progress, runner, store
from mia_lib.bars import Bars
from mia_lib.errors import MiaError, choose
from mia_lib.parameters import QUICK, find_root, notebooks, presets, validate

FILE_LIMIT, TOTAL_LIMIT = 8 * 2**20, 60 * 2**20  # bytes
TOLERANCE = 1e-4  # of a number computed anew on another machine, relative to the largest of its kind
NOT_RECORDED = (QUICK, "smoke")
# These draw, print or run; no recorded number depends on them.
DISPLAY = {"_sweep_page", "bars", "book", "claims", "cli", "health", "parameters", "plotting", "progress", "recorded",
           "results", "runner", "sweep"}
TABLE, CLAIMS = runner.OURS + "table+json", runner.OURS + "claims+json"


@dataclass(frozen=True)
class State:
    """Where a record stands.

    Attributes:
        name, preset: of the notebook; a shared ensemble has the preset "ensemble".
        state: "recorded", "source changed", "stale", "damaged" or "absent".
        why: what changed, in words.
        cpu_minutes, gpu_minutes: expected; None when unknown.
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
        """What records it."""
        return f"mia record {self.name}" + ("" if self.preset == "ensemble" else f" --preset {self.preset}")


# ---------------------------------------------------------------------------------------------------------- the source


def code_hash(source: str) -> str:
    """Hash of Python code that comments, docstrings and layout do not change."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            node.body = body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:16]


def _imports(source: str) -> set[str]:
    """Modules of the library that code imports by name, such as "attacks.bayes"."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("mia_lib.") for alias in node.names if alias.name.startswith("mia_lib.")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mia_lib":
            inside = (node.module or "").removeprefix("mia_lib").lstrip(".")
            found |= {f"{inside}.{alias.name}".lstrip(".") for alias in node.names} | ({inside} if inside else set())
    return found


def sources(start: Path | list[str], root: Path) -> dict[str, str]:
    """Hashes of all code that can bear on a result.

    Args:
        start: a notebook's source, or names of modules.
        root: folder of the book.

    Returns:
        "notebook" and names of modules -> `code_hash`.
    """
    library, found = runner._library(root), {}
    waiting = set(start) if isinstance(start, list) else set()
    if isinstance(start, Path):
        text = start.read_text(encoding="utf-8")
        found["notebook"], waiting = code_hash(text), _imports(text)
    while waiting:
        name = waiting.pop()
        path = library.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name in found or name in DISPLAY or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        found[name] = code_hash(text)
        waiting |= _imports(text)
    return found


ENSEMBLE_SOURCES = ["data", "membership", "training"]


# -------------------------------------------------------------------------------------------------- what there is


def _folder(root: Path) -> Path:
    return root / "data" / "recorded"


def run_folder(name: str, preset: str, root: Path | None = None) -> Path:
    """Where the exhibits of a notebook's recorded run lie."""
    return _folder(find_root(root)) / "runs" / f"{name}.{preset}"


def _manifest(folder: Path) -> dict:
    """The manifest of a recorded run; {} when there is none.

    Raises:
        ValueError: it, or a file it names, is damaged or missing.
    """
    path = folder / "manifest.json"
    if not path.is_file():
        return {}
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for name, sha256 in manifest["files"].items():
        if not (folder / name).is_file() or hashlib.sha256((folder / name).read_bytes()).hexdigest() != sha256:
            raise ValueError(f"{name} is missing or does not match its sha256")
    return manifest


def _minutes(name: str, preset: str, root: Path) -> tuple[float | None, float | None]:
    text = (root / "notebooks" / "presets" / f"{name}.{preset}.yaml").read_text(encoding="utf-8")
    line = re.search(r"^# minutes: (.*)$", text, re.MULTILINE)
    found = dict(re.findall(r"([\d.]+) on (?:\d+ |a )?(CPU|GPU)", line[1])) if line else {}
    by_device = {device: float(number) for number, device in found.items()}
    return by_device.get("CPU"), by_device.get("GPU")


def _changed(before: dict[str, str], now: dict[str, str]) -> str:
    return ", ".join(sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name)))


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
    values = validate(name, {}, preset, root)
    different = [k for k in values if manifest["parameters"].get(k) != json.loads(json.dumps(values[k]))]
    if different or manifest["schema"] != store.SCHEMA:
        why = f"parameters {', '.join(different)}" if different else "the store's schema"
        return State(name, preset, "stale", why, *minutes, manifest)
    changed = _changed(manifest["sources"], sources(root / "notebooks" / f"{name}.py", root))
    return State(name, preset, "source changed" if changed else "recorded", changed, *minutes, manifest)


def state_of_ensemble(name: str, root: Path | None = None) -> State:
    """Where the record of a shared ensemble stands, judged without its data."""
    from mia_lib import ensembles

    root, shared = find_root(root), ensembles.SHARED[name]
    minutes = shared.cpu_minutes, shared.gpu_minutes
    for path in sorted(_folder(root).glob("ensemble/*/*.json")):
        try:
            manifest = json.loads(path.read_bytes())
            weights = path.with_suffix(".safetensors")
            if manifest["name"] != name:
                continue
            if hashlib.sha256(weights.read_bytes()).hexdigest() != manifest["sha256"]:
                raise ValueError("its weights do not match their sha256")
        except (OSError, ValueError, KeyError, TypeError) as error:
            return State(name, "ensemble", "damaged", f"{path.name}: {error}", *minutes, {})
        changed = _changed(manifest["sources"], sources(ENSEMBLE_SOURCES, root))
        state = "stale" if manifest["schema"] != store.SCHEMA else "source changed" if changed else "recorded"
        return State(name, "ensemble", state, changed, *minutes, manifest)
    return State(name, "ensemble", "absent", "", *minutes, {})


def states(root: Path | None = None) -> list[State]:
    """All that can be recorded: notebooks at every preset but the two that are run live, and the shared ensembles."""
    from mia_lib import ensembles

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


# ------------------------------------------------------------------------------------------------------- recording


def record(name: str, preset: str = "paper", root: Path | None = None, bars: Bars | None = None) -> str:
    """Run a notebook at a preset, or train a shared ensemble, and keep what readers need; what was finished is used again.

    Returns:
        a sentence that says what was kept.

    Raises:
        MiaError: neither a notebook nor an ensemble, a preset that is run live, more than the limits allow.
    """
    from mia_lib import ensembles

    root = find_root(root)
    choose("name", name, [*notebooks(root), *ensembles.names()])
    if name in ensembles.names():
        return _record_ensemble(name, root)
    allowed = [p for p in presets(name, root) if p not in NOT_RECORDED]
    if not allowed:
        raise MiaError(f"{name} has no preset to record; put one into notebooks/presets/{name}.paper.yaml.")
    choose("preset", preset, allowed)
    values = validate(name, {}, preset, root)
    target = root / "runs" / f"{name}-{runner.key(name, values, root)}" / f"{name}.ipynb"
    run = runner.execute(name, values, target, preset=preset, root=root, bars=bars)
    return _keep_run(name, preset, run, json.loads(target.read_text(encoding="utf-8")), root)


def _keep_run(name: str, preset: str, run: dict, notebook: dict, root: Path) -> str:
    layer, folder = _folder(root), run_folder(name, preset, root)
    entries, left_out, copies = [], [], {}
    for entry in run["entries"]:
        spec_path = Path(entry["kind"]) / entry["key"][:2]
        folders = [f / spec_path for f in (store.cache_dir(), layer)]
        held = next((f for f in folders if all((f / f"{entry['key']}{end}").is_file() for end in (".npz", ".json"))), None)
        if held is None:
            continue
        size = (held / f"{entry['key']}.npz").stat().st_size
        if size > FILE_LIMIT:
            left_out.append(f"{entry['study']} ({size / 2**20:.0f} MB)")
            continue
        entries.append(entry)
        copies |= {spec_path / f"{entry['key']}{end}": held / f"{entry['key']}{end}" for end in (".npz", ".json")}
    files = exhibits_of(notebook)
    too_large = [path for path, content in files.items() if len(content) > FILE_LIMIT]
    new = {layer / path: source for path, source in copies.items() if not (layer / path).is_file()}
    total = _size(layer, without=folder) + sum(map(len, files.values())) + sum(s.stat().st_size for s in new.values())
    _check_limits(too_large, total)
    for path, source in new.items():
        store.write(path, source.read_bytes())
    manifest = {
        "notebook": name, "preset": preset, "parameters": run["parameters"], "schema": store.SCHEMA,
        "sources": sources(root / "notebooks" / f"{name}.py", root), "versions": run["versions"], "device": run["device"],
        "seconds": _seconds(run, entries), "peak_memory_mb": run["peak_memory_mb"], "date": run["date"], "entries": entries,
        "left_out": left_out, "files": {path: hashlib.sha256(content).hexdigest() for path, content in files.items()},
    }
    files["manifest.json"] = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as scratch:
        ready, old = Path(scratch) / "new", Path(scratch) / "old"
        for path, content in files.items():
            store.write(ready / path, content)
        if folder.exists():
            os.replace(folder, old)
        os.replace(ready, folder)
    _prune(layer)
    said = f"{folder}: {len(files)} files and {len(entries)} entries of the store"
    return said + (f"; too large and computed when asked for: {', '.join(left_out)}" if left_out else "")


def _seconds(run: dict, entries: list[dict]) -> float:
    """What the run took, with what it found in the store counted as if it had been computed on the way."""
    found = sum(entry["seconds"] for entry in run["entries"] if entry["source"] != "computed")
    return round(run["seconds"] + found, 1)


def exhibits_of(notebook: dict) -> dict[str, bytes]:
    """The named tables and figures and the verdicts of an executed notebook: file -> content.

    Returns:
        "exhibits.json", which holds {"tables": name -> {"markdown", ...}, "figures": name -> {"caption", "alt", "file"},
        "claims": [...]}, and a PNG a figure.
    """
    found: dict = {"tables": {}, "figures": {}, "claims": []}
    files: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            figure, image = output.get("metadata", {}).get("mia"), data.get("image/png")
            if figure and image:
                files[f"{figure['name']}.png"] = _shrunk(base64.b64decode("".join(image)))
                found["figures"][figure["name"]] = {**figure, "file": f"{figure['name']}.png"}
            if TABLE in data:
                markdown = "".join(data["text/markdown"])
                found["tables"][data[TABLE]["name"]] = {**data[TABLE], "markdown": markdown}
            found["claims"] += data.get(CLAIMS, [])
    files["exhibits.json"] = (json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
    return files


def _shrunk(png: bytes) -> bytes:
    """A figure with 256 colours, which lines and letters do not miss, when that is smaller."""
    import io

    from PIL import Image

    small = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return min(png, small.getvalue(), key=len)


def _size(layer: Path, without: Path | None = None) -> int:
    return sum(p.stat().st_size for p in layer.rglob("*") if p.is_file() and (without is None or without not in p.parents))


def _check_limits(too_large: list[str], total: int) -> None:
    if too_large:
        raise MiaError(f"{', '.join(too_large)} would be larger than {FILE_LIMIT >> 20} MB, the limit of a recorded file. "
                       "Record less: scores of the targets, not signals of every reference.")
    if total > TOTAL_LIMIT:
        raise MiaError(f"data/recorded would hold {total / 2**20:.1f} MB; {TOTAL_LIMIT >> 20} MB is the limit. Remove a "
                       "record, or record less.")


def _prune(layer: Path) -> None:
    """Remove entries that no manifest names any more."""
    named = {entry["key"] for path in layer.glob("runs/*/manifest.json")
             for entry in json.loads(path.read_text(encoding="utf-8"))["entries"]}
    for path in layer.glob("study/*/*"):
        if path.stem not in named:
            path.unlink()
    for path in layer.glob("study/*"):
        if not any(path.iterdir()):
            path.rmdir()


def _record_ensemble(name: str, root: Path) -> str:
    from mia_lib import ensembles

    layer, ensemble = _folder(root), ensembles.get(name)
    started = time.perf_counter()
    ensemble.fit()
    held = [store.look_up(ensemble.spec(m)) for m in range(len(ensemble))]
    arrays = {k: np.stack([entry.arrays[k] for entry in held]) for k in held[0].arrays}
    size = sum(a.nbytes for a in arrays.values())
    _check_limits([name] if size > FILE_LIMIT else [], _size(layer) + size)
    config = asdict(ensemble.config)
    for path in layer.glob("ensemble/*/*.json"):
        if json.loads(path.read_bytes()).get("name") == name and path.stem != ensemble.key:
            path.with_suffix(".safetensors").unlink(missing_ok=True)
            path.unlink()
    first = held[0].manifest
    path = store.write_pack(
        layer, ensemble.key, [store.key(ensemble.spec(m)) for m in range(len(ensemble))], arrays, name=name,
        data=ensemble.records.name, config=config, seconds=round(sum(entry.manifest["seconds"] for entry in held), 1),
        wall_seconds=round(time.perf_counter() - started, 1), device=first["device"], date=first["date"],
        versions={k: first[k] for k in ("torch", "numpy", "python")}, sources=sources(ENSEMBLE_SOURCES, root))
    return f"{path.with_suffix('.safetensors')}: {len(held)} models, {size / 2**20:.1f} MB"


# ------------------------------------------------------------------------------------------------------- checking


def check(name: str, preset: str = "paper", minutes: float = 5.0, seed: int = 0, root: Path | None = None,
          bars: Bars | None = None) -> tuple[bool, str]:
    """Compute a random sample of a record anew, in an empty store, and compare.

    Args:
        name, preset: as for `record`.
        minutes: what the sample may take, by the seconds it took when it was recorded; at least one piece is taken.
        seed: of the sample.

    Returns:
        whether they agree, and a sentence with the largest difference. A record that agrees although its source had changed
        is noted as confirmed.

    Raises:
        MiaError: there is no such record, or it is damaged or stale.
    """
    from mia_lib import ensembles

    root = find_root(root)
    choose("name", name, [*notebooks(root), *ensembles.names()])
    ensemble = name in ensembles.names()
    state = state_of_ensemble(name, root) if ensemble else state_of_run(name, preset, root)
    if state.state not in ("recorded", "source changed"):
        raise MiaError(f"The record of {name} is {state.state} ({state.why or 'nothing is there'}): `{state.command}` makes "
                       "it anew.")
    rng = np.random.default_rng(seed)
    if ensemble:
        agrees, said = _check_ensemble(name, state.manifest, minutes, rng)
    else:
        with tempfile.TemporaryDirectory(prefix="mia-check-") as scratch:
            agrees, said = _check_run(name, preset, state.manifest, minutes, rng, Path(scratch), root, bars)
    if agrees and state.state == "source changed":
        _confirm(name, preset, ensemble, root)
    return agrees, f"{name}: {said}"


def _difference(recorded: dict[str, np.ndarray], anew: dict[str, np.ndarray]) -> float:
    """Largest difference of two sets of arrays, each relative to the largest absolute value of its array."""
    if recorded.keys() != anew.keys() or any(recorded[k].shape != anew[k].shape for k in recorded):
        return float("inf")
    worst = 0.0
    for k, before in recorded.items():
        before, now = np.asarray(before, np.float64), np.asarray(anew[k], np.float64)
        if not before.size or np.array_equal(before, now, equal_nan=True):
            continue
        gap = np.abs(before - now).max() / max(np.abs(before).max(), 1e-300)
        worst = max(worst, float(gap) if np.isfinite(gap) else float("inf"))
    return worst


def _check_ensemble(name: str, manifest: dict, minutes: float, rng: np.random.Generator) -> tuple[bool, str]:
    """Train some of the models again.

    Their weights must agree. Where rounding differs (another processor, another PyTorch) a recipe with a high learning rate
    lets it grow without bound; then the models must at least be like the recorded ones: their last training loss within four
    standard deviations, over the record's models, of what it was.
    """
    from mia_lib import ensembles
    from mia_lib.backends.loop import fit_group

    ensemble = ensembles.get(name)
    each = max(manifest["seconds"] / len(ensemble), 1e-9)
    sample = rng.permutation(len(ensemble))[:int(np.clip(60 * minutes / each, 1, 8))]
    worst, unlike = 0.0, 0.0
    held = [store._read_pack(ensemble.spec(m)) for m in range(len(ensemble))]
    if None in held:
        raise MiaError(f"Model {held.index(None)} of {name} is not in its record: data, design or recipe changed. "
                       f"`mia record {name}` makes it anew.")
    last = np.array([entry.arrays["history"][-1, 0] for entry in held])
    for m in progress.track(sorted(map(int, sample)), f"checking {name}"):
        rows = [np.flatnonzero(ensemble.members[m])]
        records = ensemble.records
        [anew] = fit_group(records.x, records.y, rows, len(records.classes), ensemble.config, [m])
        worst = max(worst, _difference(held[m].arrays, anew.arrays))
        unlike = max(unlike, abs(anew.arrays["history"][-1, 0] - last[m]) / max(last.std(), 1e-12))
    said = f"{len(sample)} of {len(ensemble)} models trained anew; largest difference {worst:.1e} of the largest value"
    if worst <= TOLERANCE:
        return True, f"{said}, {TOLERANCE:g} is allowed"
    return bool(unlike <= 4), (f"{said}, more than rounding; their training losses differ from the recorded by at most "
                               f"{unlike:.1f} standard deviations, 4 are allowed")


def _check_run(name: str, preset: str, manifest: dict, minutes: float, rng: np.random.Generator, scratch: Path,
               root: Path, bars: Bars | None) -> tuple[bool, str]:
    order = [manifest["entries"][i] for i in rng.permutation(len(manifest["entries"]))]
    cheapest = sorted(order, key=lambda entry: entry["seconds"])[:1]
    affordable = [entry for entry in order if entry["seconds"] <= 60 * minutes] or cheapest
    if not affordable:
        raise MiaError(f"The record of {name} holds no entry of the store to check; `mia record {name} --preset {preset}` "
                       "makes it anew.")
    spent = np.cumsum([entry["seconds"] for entry in affordable])
    sample = affordable[:max(1, int((spent <= 60 * minutes).sum()))]
    before = {k: os.environ.get(k) for k in ("MIA_CACHE", "MIA_RECOMPUTE")}
    os.environ |= {"MIA_CACHE": str(scratch / "cache"), "MIA_RECOMPUTE": ",".join(entry["key"] for entry in sample)}
    try:
        values = validate(name, {}, preset, root)
        runner.execute(name, values, scratch / f"{name}.ipynb", preset=preset, root=root, bars=bars)
        worst, compared = 0.0, 0
        for entry in sample:
            path = Path(entry["kind"]) / entry["key"][:2] / f"{entry['key']}.npz"
            if (store.cache_dir() / path).is_file():
                kept, anew = (store._decode((f / path).read_bytes(), ".npz") for f in (_folder(root), store.cache_dir()))
                worst, compared = max(worst, _difference(kept, anew)), compared + 1
    finally:
        for k, value in before.items():
            os.environ.pop(k) if value is None else os.environ.update({k: value})
    if not compared:
        raise MiaError(f"The notebook {name} no longer asks for what its record holds: `mia record {name} --preset {preset}`.")
    return worst <= TOLERANCE, (f"{compared} of {len(manifest['entries'])} results computed anew; largest difference "
                                f"{worst:.1e} of the largest value, {TOLERANCE:g} is allowed")


def _confirm(name: str, preset: str, ensemble: bool, root: Path) -> None:
    if ensemble:
        paths = [p for p in _folder(root).glob("ensemble/*/*.json") if json.loads(p.read_bytes()).get("name") == name]
        start = ENSEMBLE_SOURCES
    else:
        paths, start = [run_folder(name, preset, root) / "manifest.json"], root / "notebooks" / f"{name}.py"
    for path in paths:
        manifest = json.loads(path.read_bytes())
        manifest |= {"sources": sources(start, root), "confirmed": time.strftime("%Y-%m-%d", time.gmtime())}
        store.write(path, (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode())


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
            shown = json.loads((folder / "exhibits.json").read_text(encoding="utf-8"))
            figures = {key: (folder / one["file"]).read_bytes() for key, one in shown["figures"].items()}
            found.append((state, shown, figures))
    return found
