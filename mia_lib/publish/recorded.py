"""Recorded runs, which chapters show beside their own: read as they are from `data/recorded/runs/NAME.PRESET/`.

Each has a manifest with parameters, versions, device, seconds, memory, date and the sha256 of its files: `exhibits.json`, what
`outputs.displayed_outputs` found in the executed notebook, and a PNG a figure.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from mia_lib import progress
from mia_lib.publish.parameters import find_root, notebooks, presets


@dataclass(frozen=True)
class Recorded:
    """A recorded run.

    Attributes:
        name, preset: of the notebook.
        manifest: how it came about.
        shown: its tables, captions of figures, claims and results, the content of `exhibits.json`.
        figures: PNGs by name.
    """

    name: str
    preset: str
    manifest: dict
    shown: dict
    figures: dict[str, bytes]


def layer(root: Path) -> Path:
    """The folder of all that is recorded."""
    return root / "data" / "recorded"


def path_of(name: str, preset: str, file: str, sha256: str, root: Path) -> Path:
    """Where a file of a recorded run lies."""
    return layer(root) / "runs" / f"{name}.{preset}" / f"{sha256[:12]}-{file}"


def run(name: str, preset: str, root: Path | None = None) -> Recorded | None:
    """The recorded run of a notebook at a preset; None where there is none, or a damaged one, which is said."""
    root = find_root(root)
    folder = layer(root) / "runs" / f"{name}.{preset}"
    if not folder.is_dir():
        return None
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        files = {file: path_of(name, preset, file, sha256, root).read_bytes() for file, sha256 in manifest["files"].items()}
        for file, sha256 in manifest["files"].items():
            if hashlib.sha256(files[file]).hexdigest() != sha256:
                raise ValueError(f"{file} does not match its sha256")
        shown = json.loads(files["exhibits.json"])
        figures = {figure: files[one["file"]] for figure, one in shown["figures"].items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        progress.warn(f"{folder} is damaged ({error}); this recorded run is not shown.", stacklevel=2)
        return None
    return Recorded(name, preset, manifest, shown, figures)


def runs(name: str, root: Path | None = None) -> list[Recorded]:
    """All recorded runs of a notebook."""
    root = find_root(root)
    return [found for preset in presets(name, root) if (found := run(name, preset, root)) is not None]


def every(root: Path | None = None) -> list[Recorded]:
    """All recorded runs of all notebooks."""
    root = find_root(root)
    return [found for name in notebooks(root) for found in runs(name, root)]


def ensembles(root: Path | None = None) -> list[dict]:
    """Manifests of the recorded ensembles, by name; one that cannot be read is said and left out."""
    found = []
    for path in layer(find_root(root)).glob("ensemble/*/*.json"):
        try:
            manifest = json.loads(path.read_bytes())
            found.append((manifest["name"], manifest))
        except (OSError, ValueError, KeyError, TypeError) as error:
            progress.warn(f"{path} is damaged ({error}); it is not shown.", stacklevel=2)
    return [manifest for _, manifest in sorted(found, key=lambda pair: pair[0])]
