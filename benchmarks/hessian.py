"""The Hessian in closed form against products, one spectrum against many solves, systems at once against one by one.

    python benchmarks/hessian.py [--repeats 3] [--records 2000] [--large]

Both sides of a ratio run one after the other on the same numbers, whose agreement is printed beside it:

- `exact` of an MLP 100-16-10 and of logistic regression 60-10 in closed form over the same matrix from products with unit
  vectors;
- one spectrum for 10 dampings over 10 solves, for the norms of (H + epsilon I)^-1 g of 500 gradients, which the eigenbasis
  gives without turning anything back;
- `conjugate_gradient` of 64 gradients at once over 64 calls, products by `operator`.

Seconds of `exact` and `spectrum` for the 4,780 parameters of an MLP 784-6-10 follow. `--large` does one shape only, on a
graphics card: MLP 600-32-100, 22,532 parameters, 80,000 records, float32, 160,000 gradients rotated; seconds and peak memory.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np
import scipy
import torch

from mia_lib import models, signals
from mia_lib.signals import hessian
from mia_lib.training import devices

DAMPINGS = np.geomspace(0.01, 10, 10)


def timed(function: Callable) -> tuple:
    """Seconds, and what it returned."""
    started = time.perf_counter()
    found = function()
    return time.perf_counter() - started, found


def shape(architecture: str, columns: int, classes: int, records: int) -> tuple:
    """An untrained model, records and labels at random."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(records, columns)).astype(np.float32)
    return (
        models.build(architecture, (columns,), classes, seed=0),
        x,
        rng.integers(0, classes, records),
    )


def relative_difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference over largest entry."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def closed_form(architecture: str, columns: int, classes: int, records: int) -> tuple:
    given = shape(architecture, columns, classes, records)
    slow, expected = timed(
        lambda: hessian._from_products(
            hessian.operator(*given), models.parameter_count(given[0]), "float64"
        )
    )
    quick, found = timed(lambda: hessian.exact(*given))
    return slow / quick, relative_difference(found, expected), quick


def dampings(records: int) -> tuple:
    given = shape("mlp:16", 100, 10, records)
    matrix = hessian.exact(*given)
    gradients = np.concatenate(
        list(
            signals.record_gradients(
                *(part[:500] if k else part for k, part in enumerate(given)), dtype="float64"
            )
        )
    )
    used = max(0.0, -float(np.linalg.eigvalsh(matrix)[0])) + DAMPINGS

    def solved(damping: float) -> np.ndarray:
        return np.linalg.norm(
            np.linalg.solve(matrix + damping * np.eye(len(matrix)), gradients.T), axis=0
        )

    def rotated() -> list:
        spectrum = hessian.spectrum(matrix, device="cpu")
        squares = (gradients @ spectrum.vectors) ** 2
        return [np.sqrt(squares @ spectrum.inverse(damping).weights ** 2) for damping in used]

    slow, expected = timed(lambda: [solved(damping) for damping in used])
    quick, found = timed(rotated)
    return slow / quick, relative_difference(np.stack(found), np.stack(expected)), quick


def batched(records: int) -> tuple:
    given = shape("mlp:16", 100, 10, records)
    right = np.concatenate(
        list(
            signals.record_gradients(
                *(part[:64] if k else part for k, part in enumerate(given)), dtype="float64"
            )
        )
    )
    product = hessian.operator(*given)
    slow, expected = timed(
        lambda: [hessian.conjugate_gradient(product, row[None]).check().x[0] for row in right]
    )
    quick, found = timed(lambda: hessian.conjugate_gradient(product, right).check().x)
    return slow / quick, relative_difference(found, np.stack(expected)), quick


def large() -> None:
    """The MLP of Purchase-100 in the shape of the paper."""
    if not torch.cuda.is_available():
        raise SystemExit("--large needs a graphics card with CUDA; there is none here.")
    device = devices.pick("cuda")
    model, x, y = shape("mlp:32", 600, 100, 80_000)
    model, x = model.to(device), torch.from_numpy(x).to(device)
    allocated = torch.cuda.memory_allocated(device)

    def report(name: str, seconds: float) -> None:
        peak, other = (
            torch.cuda.max_memory_allocated(device) - allocated,
            torch.cuda.mem_get_info(device),
        )
        print(
            f"{name}: {seconds:.1f} s, at most {peak / 1e9:.1f} GB of tensors besides model and data "
            f"({(other[1] - other[0]) / 1e9:.1f} GB of the card in use)",
            flush=True,
        )
        devices.release()
        torch.cuda.reset_peak_memory_stats(device)

    seconds, matrix = timed(lambda: hessian.exact(model, x, y, dtype="float32"))
    report("exact", seconds)
    seconds, spectrum = timed(lambda: hessian.spectrum(matrix, device="cuda"))
    report("spectrum", seconds)
    print(f"eigenvalues from {spectrum.values[0]:.3g} to {spectrum.values[-1]:.3g}")
    inverse = spectrum.inverse(max(0.2, 0.2 - float(spectrum.values[0])))

    def rotate() -> None:
        vectors = torch.from_numpy(inverse.vectors).to(device)
        for _ in range(2):  # the records stand for members and non-members
            for block in signals.record_gradients(model, x, y, batch=8192):
                torch.from_numpy(block).to(device) @ vectors
        torch.cuda.synchronize()

    report("rotation of 160,000 gradients", timed(rotate)[0])
    right = next(signals.record_gradients(model, x, y, batch=64))
    product = hessian.operator(model, x, y, dtype="float32")
    seconds, found = timed(lambda: hessian.conjugate_gradient(product, right, 0.2, 1e-4))
    report(
        f"conjugate gradient of 64 gradients, {found.iterations.mean():.0f} iterations, {found.converged.sum()} converged",
        seconds,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    if arguments.large:
        large()
    else:
        cases = {
            "closed form, MLP 100-16-10": lambda n: closed_form("mlp:16", 100, 10, n),
            "closed form, logistic 60-10": lambda n: closed_form("logistic_regression", 60, 10, n),
            "spectrum, 10 dampings": dampings,
            "64 systems at once": batched,
        }
        for name, case in cases.items():
            ratios, differences, spent = zip(
                *[case(arguments.records) for _ in range(arguments.repeats)], strict=True
            )
            print(
                f"{name:28} {statistics.median(ratios):7.1f}x ({min(ratios):.1f} to {max(ratios):.1f}); "
                f"{statistics.median(spent):.2f} s; apart by {max(differences):.0e}",
                flush=True,
            )
        seconds, matrix = timed(lambda: hessian.exact(*shape("mlp:6", 784, 10, arguments.records)))
        print(
            f"4,780 parameters, {arguments.records:,} records, float64: exact {seconds:.1f} s, spectrum "
            f"{timed(lambda: hessian.spectrum(matrix, device='cpu'))[0]:.1f} s",
            flush=True,
        )
    where = devices.describe(devices.pick("cuda" if arguments.large else "cpu"))
    print(
        f"Python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"{where}, {torch.get_num_threads()} threads"
    )
