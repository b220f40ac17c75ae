"""Recorded runs: what takes hours or a graphics card is run once, and every reader sees it.

`data/recorded/` holds, in git: `study/`, entries of the store that a page asked for; `ensemble/`, the weights of the shared
ensembles, one file each; and `runs/NAME.PRESET/`, the exhibits of a notebook run at that preset. Each has a manifest with
parameters, hashes of the source, versions, device, seconds, memory and date.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import tokenize
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from mia_lib import runner, store
from mia_lib.parameters import QUICK, find_root, notebooks, presets, validate

NOT_RECORDED = (QUICK, "smoke")
# These draw, print or run; no recorded number depends on them.
DISPLAY = {"_sphinx", "_sweep_page", "bars", "book", "claims", "cli", "health", "parameters", "plotting", "progress",
           "recorded", "recording", "results", "runner", "sweep"}


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
        """What records it, or checks it when only its source changed."""
        check = " --check" if self.state == "source changed" else ""
        return f"mia record {self.name}" + ("" if self.preset == "ensemble" else f" --preset {self.preset}") + check


# ---------------------------------------------------------------------------------------------------------- the source


@cache  # the same modules stand behind many records
def code_hash(source: str) -> str:
    """Hash of Python code that comments, docstrings and empty lines do not change."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        said = body[0] if isinstance(body, list) and body and isinstance(body[0], ast.Expr) else None
        if said and isinstance(said.value, ast.Constant) and isinstance(said.value.value, str):
            first, last = said.lineno - 1, said.end_lineno - 1
            before, after = lines[first].encode()[:said.col_offset], lines[last].encode()[said.end_col_offset:]
            lines[first:last + 1] = [(before + after).decode()] + [""] * (last - first)
    kept = [line.rstrip() for line in lines if line.strip()]
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()[:16]


@cache
def _imports(source: str) -> frozenset[str]:
    """Modules of the library that code imports by name, such as "attacks.bayes"."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("mia_lib.") for alias in node.names if alias.name.startswith("mia_lib.")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mia_lib":
            inside = (node.module or "").removeprefix("mia_lib").lstrip(".")
            found |= {f"{inside}.{alias.name}".lstrip(".") for alias in node.names} | ({inside} if inside else set())
    return frozenset(found)


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
        found["notebook"], waiting = code_hash(text), set(_imports(text))
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
        if manifest["schema"] != store.SCHEMA or (shared.config and asdict(shared.config) != manifest["config"]):
            why = "the store's schema" if manifest["schema"] != store.SCHEMA else "the recipe"
            return State(name, "ensemble", "stale", why, *minutes, manifest)
        changed = _changed(manifest["sources"], sources(ENSEMBLE_SOURCES, root))
        return State(name, "ensemble", "source changed" if changed else "recorded", changed, *minutes, manifest)
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
