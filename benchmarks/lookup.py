"""Milliseconds to look up a recorded result: a study of about 4 MB, and a model of the largest recorded ensemble.

    python benchmarks/lookup.py [--repeats 30]

Goal: at most 50 ms. First looks, in a process that has read nothing of it yet, are timed apart: they check a file's sha256.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from mia_lib import store

STUDY = {"kind": "study", "study": "benchmark"}
FIRST = """
import json, sys, time
from pathlib import Path
from mia_lib import store
import numpy, safetensors.numpy
spec, store.RECORDED = json.loads(sys.argv[1]), Path(sys.argv[2])
if "key" in spec:
    store.key = lambda _: spec["key"]
start = time.perf_counter()
assert store.look_up(spec).source == "recorded"
print(time.perf_counter() - start)
"""


def milliseconds(spec: dict, folder: Path, repeats: int) -> tuple[list[float], list[float]]:
    """Of first looks and of later ones."""
    command = [sys.executable, "-c", FIRST, json.dumps(spec), str(folder)]
    first = [1e3 * float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(3)]
    real, later = store.key, []
    store.key = (lambda _: spec["key"]) if "key" in spec else real
    for _ in range(repeats):
        start = time.perf_counter()
        assert store.look_up(spec).source == "recorded"
        later.append(1e3 * (time.perf_counter() - start))
    store.key = real
    return first, later


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=30)
    repeats = parser.parse_args().repeats
    packs = [json.loads(path.read_bytes()) for path in store.RECORDED.glob("ensemble/*/*.json")]
    cases = {}
    if packs:
        pack = max(packs, key=lambda one: len(one["models"]))
        cases[f"a model of {pack['name']}"] = ({"kind": "model", "key": pack["models"][7]}, store.RECORDED)
    with tempfile.TemporaryDirectory() as scratch:
        cache = store.cache_dir
        store.cache_dir = lambda: Path(scratch)
        store.keep(STUDY, {"x": np.random.default_rng(0).normal(size=(100, 10_000)).astype(np.float32)})
        store.cache_dir, store.RECORDED = cache, Path(scratch)
        cases["a study of 4 MB"] = (STUDY, store.RECORDED)
        for name, (spec, store.RECORDED) in cases.items():
            first, later = milliseconds(spec, store.RECORDED, repeats)
            print(f"{name}: {statistics.median(later):.1f} ms ({min(later):.1f} to {max(later):.1f}), first look "
                  f"{statistics.median(first):.1f} ms ({min(first):.1f} to {max(first):.1f}), goal 50 ms")
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
