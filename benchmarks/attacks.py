"""Seconds and memory of each attack of the registry with reference models, on 256 references and 60,000 records.

Run `python benchmarks/attacks.py`. The aim is at most 3 seconds each on 2 cores, and at most twice the input's memory
beside the input. Each attack is timed 5 times; the median and the range are printed. Memory is the peak of what Python
and NumPy allocate during one further call, as tracemalloc counts it, over the size of the arrays the attack is given.
"""

import os
import platform
import timeit
import tracemalloc

import numpy as np
import scipy

from mia_lib import membership
from mia_lib.attacks import registry

REFERENCES, RECORDS, POPULATION, RUNS = 256, 60_000, 10_000, 5


def inputs() -> registry.ArraySignals:
    """Signals (exponential), as float32: of the target and the references, and their membership."""
    rng = np.random.default_rng(0)
    signal = rng.standard_exponential((1 + REFERENCES, RECORDS), dtype=np.float32)
    public = rng.standard_exponential((1 + REFERENCES, POPULATION), dtype=np.float32)
    return registry.ArraySignals(
        dict.fromkeys(("loss", registry.LOG_ODDS, "curvature"), signal),
        membership.balanced_halves(RECORDS, REFERENCES),
        {"loss": public},
        rng.integers(0, 10, RECORDS),
    )


def peak_bytes(attack: registry.Attack, view: registry.ArraySignals) -> int:
    tracemalloc.start()
    attack.score(view)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> None:
    view = inputs()
    size = view.values["loss"].nbytes + view.reference_members.nbytes
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(
        f"{platform.platform()}, {cores} cores, Python {platform.python_version()}, numpy {np.__version__}, "
        f"scipy {scipy.__version__}; {REFERENCES} references, {RECORDS:,} records, float32, {RUNS} runs"
    )
    for name, attack in registry.ATTACKS.items():
        if not attack.takes_references:
            continue
        times = timeit.repeat(lambda attack=attack: attack.score(view), number=1, repeat=RUNS)
        print(
            f"{name:30} {np.median(times):.2f} s (from {min(times):.2f} to {max(times):.2f}), "
            f"{peak_bytes(attack, view) / size:.2f} times the input's {size / 2**20:.0f} MiB"
        )


if __name__ == "__main__":
    main()
