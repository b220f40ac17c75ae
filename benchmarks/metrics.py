"""Time of AUC and TPR at FPR together on 1,000,000 scores, as a ratio to scikit-learn's `roc_curve` alone, and how time and
memory of intervals grow with the records.

Run `python benchmarks/metrics.py`. The aim is at most 2. Each of 7 runs times both, one after the other and
in turn first, so that the ratio is of one machine at one time. Intervals of 100 draws are to take at most 20 times as long
for ten times as many records, and 15 s for 1,000,000, of one core that has nothing else to do.
"""

import itertools
import platform
import resource
import time
import tracemalloc

import numpy as np
import sklearn
from sklearn.metrics import roc_curve

from mia_lib import metrics

RECORDS, RUNS = 1_000_000, 7
INTERVALS = {
    "bootstrap": lambda scores, members, draws: metrics.bootstrap(
        "auc", scores, members, draws=draws
    ),
    "compare": lambda scores, members, draws: metrics.compare(
        "auc", scores, -scores, members, draws=draws
    ),
    "evaluate": lambda scores, members, draws: metrics.evaluate(
        {"attack": scores}, members, draws=draws
    ),
}


def ours(scores, members):
    return metrics.auc(scores, members), metrics.tpr_at_fpr(scores, members, 0.001)


def theirs(scores, members):
    return roc_curve(members, scores)


def seconds(function, *arguments, clock=time.perf_counter) -> float:
    start = clock()
    function(*arguments)
    return clock() - start


def main() -> None:
    rng = np.random.default_rng(0)
    members = rng.random(RECORDS) < 0.5
    print(
        f"{platform.platform()}, Python {platform.python_version()}, numpy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}; {RECORDS:,} scores, {RUNS} paired runs"
    )
    for kind in (np.float64, np.float32):
        scores = (rng.normal(size=RECORDS) + 0.5 * members).astype(kind)
        times = []
        for run in range(RUNS):
            order = (ours, theirs) if run % 2 else (theirs, ours)
            taken = {function: seconds(function, scores, members) for function in order}
            times.append((taken[ours], taken[theirs]))
        mine, other = np.array(times).T
        ratio = mine / other
        print(
            f"{kind.__name__}: auc + tpr_at_fpr {np.median(mine):.3f} s, sklearn {np.median(other):.3f} s, "
            f"ratio {np.median(ratio):.2f} (from {ratio.min():.2f} to {ratio.max():.2f})"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of the process {peak:.0f} MB")
    for name, function in INTERVALS.items():
        function(scores[:100], members[:100], 10)  # imports
        times, peaks = [], []
        for count in (RECORDS // 100, RECORDS // 10, RECORDS):
            times.append(
                [
                    seconds(function, scores[:count], members[:count], 100, clock=time.process_time)
                    for _ in range(3)
                ]
            )
            tracemalloc.start()
            function(scores[:count], members[:count], 10)
            peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
            tracemalloc.stop()
        taken, grown = (
            np.median(times, 1),
            [np.divide(more, less) for less, more in itertools.pairwise(times)],
        )
        print(
            f"{name}, 100 draws of {RECORDS // 100:,}, {RECORDS // 10:,} and {RECORDS:,} records: "
            f"{', '.join(f'{one:.2f} s' for one in taken)}; ten times the records "
            f"{', '.join(f'{np.median(one):.1f}x ({one.min():.1f} to {one.max():.1f})' for one in grown)}; "
            f"{', '.join(f'{one:.0f} MB' for one in peaks)} beside the scores"
        )


if __name__ == "__main__":
    main()
