"""Seconds and memory of the attacks with reference models on 256 references and 60,000 records.

Run `python benchmarks/attacks.py`. The aim is at most 3 seconds each on 2 cores, and at most twice the input's memory
beside the input. Each attack is timed 5 times; the median and the range are printed. Memory is the peak of what Python
and NumPy allocate during one further call, as tracemalloc counts it, over the size of the arrays the attack is given.
"""

import os
import platform
import time
import tracemalloc

import numpy as np
import scipy

from mia_lib import membership
from mia_lib.attacks import baselines, bayes, calibration

REFERENCES, RECORDS, POPULATION, RUNS = 256, 60_000, 10_000, 5


def inputs() -> dict[str, tuple[np.ndarray, ...]]:
    """Losses (exponential), as float32: of the target, the references and their membership, in the forms attacks take."""
    rng = np.random.default_rng(0)
    loss = rng.standard_exponential((1 + REFERENCES, RECORDS), dtype=np.float32)
    members = membership.balanced_halves(RECORDS, REFERENCES)
    population = np.exp(-rng.standard_exponential((1 + REFERENCES, POPULATION), dtype=np.float32))
    return {
        "loss": (loss[0], loss[1:], members),
        "calibration": (-loss[0], -loss[1:]),
        "rmia": (np.exp(-loss[0]), np.exp(-loss[1:]), members, population[0], population[1:]),
    }


ATTACKS = {
    **{f"mast, {e}": (lambda *x, e=e: bayes.mast(*x, e), "loss") for e in bayes.ESTIMATORS},
    **{
        f"{f.__name__}{', fixed variance' * fixed}": (
            lambda *x, f=f, fixed=fixed: f(*x, fixed),
            "loss",
        )
        for f in (baselines.lira_online, baselines.lira_offline)
        for fixed in (False, True)
    },
    "attack_r": (baselines.attack_r, "loss"),
    "attack_r, one level": (lambda *x: baselines.attack_r(*x, 1e-4), "loss"),
    "rmia, online": (baselines.rmia, "rmia"),
    "rmia, offline": (lambda *x: baselines.rmia(*x, a=0.3), "rmia"),
    "calibrate": (calibration.calibrate, "calibration"),
}


def seconds(attack, arrays) -> float:
    start = time.perf_counter()
    attack(*arrays)
    return time.perf_counter() - start


def peak_bytes(attack, arrays) -> int:
    tracemalloc.start()
    attack(*arrays)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> None:
    given = inputs()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(
        f"{platform.platform()}, {cores} cores, Python {platform.python_version()}, numpy {np.__version__}, "
        f"scipy {scipy.__version__}; {REFERENCES} references, {RECORDS:,} records, float32, {RUNS} runs"
    )
    for name, (attack, form) in ATTACKS.items():
        arrays = given[form]
        size = sum(a.nbytes for a in arrays)
        times = [seconds(attack, arrays) for _ in range(RUNS)]
        print(
            f"{name:30} {np.median(times):.2f} s (from {min(times):.2f} to {max(times):.2f}), "
            f"{peak_bytes(attack, arrays) / size:.2f} times the input's {size / 2**20:.0f} MiB"
        )


if __name__ == "__main__":
    main()
