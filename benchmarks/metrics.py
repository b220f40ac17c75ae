"""Time of AUC and TPR at FPR together on 1,000,000 scores, as a ratio to scikit-learn's `roc_curve` alone.

Run `python benchmarks/metrics.py`. The aim is at most 2. Each of 7 runs times both, one after the other and
in turn first, so that the ratio is of one machine at one time.
"""

import platform
import resource
import time

import numpy as np
import sklearn
from sklearn.metrics import roc_curve

from mia_lib import metrics

RECORDS, RUNS = 1_000_000, 7


def ours(scores, members):
    return metrics.auc(scores, members), metrics.tpr_at_fpr(scores, members, 0.001)


def theirs(scores, members):
    return roc_curve(members, scores)


def seconds(function, *arguments) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def main() -> None:
    rng = np.random.default_rng(0)
    members = rng.random(RECORDS) < 0.5
    print(f"{platform.platform()}, Python {platform.python_version()}, numpy {np.__version__}, "
          f"scikit-learn {sklearn.__version__}; {RECORDS:,} scores, {RUNS} paired runs")
    for kind in (np.float64, np.float32):
        scores = (rng.normal(size=RECORDS) + 0.5 * members).astype(kind)
        times = []
        for run in range(RUNS):
            order = (ours, theirs) if run % 2 else (theirs, ours)
            taken = {function: seconds(function, scores, members) for function in order}
            times.append((taken[ours], taken[theirs]))
        mine, other = np.array(times).T
        ratio = mine / other
        print(f"{kind.__name__}: auc + tpr_at_fpr {np.median(mine):.3f} s, sklearn {np.median(other):.3f} s, "
              f"ratio {np.median(ratio):.2f} (from {ratio.min():.2f} to {ratio.max():.2f})")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of the process {peak:.0f} MB")


if __name__ == "__main__":
    main()
