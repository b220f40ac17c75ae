"""What numbers owe to the processor, and what the book's arithmetic (`mia_lib.ARITHMETIC`) costs.

    python benchmarks/arithmetic.py [--repeats 5]

Every library picks its code by what the processor can, and vectors of another length add up in another order. One
computation after the other, each in the steps in which it is made, runs in a fresh process: as the book sets the libraries,
then with each of them left to itself, then with all of them, as on a processor with AVX-512. Printed is the first step that
differs, and the largest difference in the step and at the end, in standard deviations of the array. Matrix products in
their compatible form stand for processors that are not Intel's, where the library ignores its setting.

Then the same work is timed under both settings in turn, in seconds of the processor rather than of the clock: the ratio is
what the setting costs. Needs a processor with AVX-512; elsewhere there is nothing to compare.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

import mia_lib
from mia_lib import models, signals
from mia_lib.attacks.quantile import networks, trees
from mia_lib.signals import hessian
from mia_lib.training import loop
from mia_lib.training.recipe import TrainConfig

BOOK = dict(mia_lib.ARITHMETIC)
FREE = {
    "MKL_CBWR": "AVX512,STRICT",
    "ATEN_CPU_CAPABILITY": "avx512",
    "ONEDNN_MAX_CPU_ISA": "ALL",
    "NPY_DISABLE_CPU_FEATURES": "",
}
WORDS = {
    "MKL_CBWR": "PyTorch's matrix products",
    "ATEN_CPU_CAPABILITY": "PyTorch's other functions",
    "ONEDNN_MAX_CPU_ISA": "convolutions",
    "NPY_DISABLE_CPU_FEATURES": "NumPy's functions",
}
SETTINGS = (
    {"again": BOOK}
    | {WORDS[name]: BOOK | {name: FREE[name]} for name in BOOK}
    | {
        "NumPy's linear algebra": BOOK | {"OPENBLAS_CORETYPE": "Haswell"},
        "all but that": FREE,
        "not Intel's": BOOK | {"MKL_CBWR": "COMPATIBLE"},
    }
)
NETWORKS = ("tanh_cnn:8,16,64", "strided_cnn:8,16,32", "mlp:128", "mlp:32", "logistic_regression")


def records(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images with a pattern for each of ten classes, by integer arithmetic alone."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, count)
    x = 7 * rng.integers(0, 256, (count, 28, 28, 1)) + 3 * rng.integers(0, 256, (10, 28, 28, 1))[y]
    return (x // 10).astype(np.uint8), y


def regression(epochs: int = 4, count: int = 1200) -> dict[str, np.ndarray]:
    """A network regression of the quantile chapter, step by step."""
    x, y = records(count)
    target = (y + np.arange(count) % 7) / 4.0
    config = networks.NetworkConfig(epochs=epochs)
    model = networks.Regressor(config, x.shape[1:], 10, 2)
    weights, out = list(model.parameters()), {"inputs": x, "target": target}

    def flat(tensors) -> np.ndarray:
        return torch.cat([one.detach().flatten() for one in tensors]).numpy().copy()

    out["initial weights"] = flat(weights)
    part = torch.from_numpy(x[:128]), torch.from_numpy(y[:128])
    out["features"] = flat([model.body(part[0])])
    outputs = model(*part)
    out["outputs"] = flat([outputs])
    loss = networks.gaussian_loss(outputs, torch.from_numpy(target[:128].astype(np.float32)))
    loss.backward()
    out["gradient"] = flat([w.grad for w in weights])
    nn.utils.clip_grad_norm_(weights, 1.0)
    torch.optim.AdamW(weights, lr=1e-3, fused=True).step()
    out["weights after a step"] = flat(weights)
    holdout = slice(count * 3 // 4, count)
    fit = slice(0, holdout.start)
    model = networks.fit(
        x[fit],
        target[fit],
        config,
        2,
        networks.gaussian_loss,
        y[fit],
        10,
        (x[holdout], target[holdout], y[holdout]),
    )
    return out | {
        "weights after training": flat(model.parameters()),
        "predictions": networks.predict(model, x, y),
    }


def network(architecture: str, epochs: int = 4, count: int = 1000) -> dict[str, np.ndarray]:
    """A target of the chapters; more than one together where they are stacked."""
    x, y = records(2 * count)
    config = TrainConfig(architecture, epochs=epochs, batch_size=64, learning_rate=2e-3)
    stacked = loop.stacks(architecture, x.shape[1:], 10)
    rows = [np.arange(count) + k for k in range(4 if stacked else 1)]
    step = replace(config, epochs=1, batch_size=count)
    one, trained = (
        loop.fit_group(loop.Task(x, y, 10, how, rows, list(range(len(rows)))))[0].arrays
        for how in (step, config)
    )
    one, trained = (
        {name: value for name, value in arrays.items() if name != "history"}
        for arrays in (one, trained)
    )
    model = models.build(architecture, x.shape[1:], 10, seed=0)
    model.load_state_dict(
        {name: torch.from_numpy(np.array(value)) for name, value in trained.items()}
    )
    return {
        "weights after a step": joined(one),
        "weights after training": joined(trained),
        "logits": signals.model_outputs(model.eval(), x),
    }


def joined(arrays: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(value) for _, value in sorted(arrays.items())])


def inverse_hessian(count: int = 200) -> dict[str, np.ndarray]:
    """A Hessian, its eigenvalues, and what it makes of a gradient."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-50, 50, (count, 20)) / 25).astype(np.float32), rng.integers(0, 3, count)
    model = models.build("mlp:8", (20,), 3, seed=0).eval()
    matrix = hessian.exact(model, x, y)
    found = hessian.spectrum(matrix)
    steps = found.inverse(0.2).apply(np.ones((1, len(matrix))))
    return {"Hessian": matrix, "eigenvalues": found.values, "Newton steps": steps}


def boosted_trees(count: int = 400) -> dict[str, np.ndarray]:
    """A regression by boosted trees."""
    rng = np.random.default_rng(0)
    x = (rng.integers(-50, 50, (count, 20)) / 25).astype(np.float32)
    if trees.missing_dependency():
        return {}
    config = trees.TreeConfig(iterations=50, depth=3, learning_rate=0.05)
    fitted = trees.fit(x, x[:, 0] + x[:, 1] ** 2, config, trees.GAUSSIAN)
    return {"predictions": trees.predict(fitted, x)}


def functions(count: int = 300) -> dict[str, np.ndarray]:
    """NumPy's own."""
    a = np.random.default_rng(0).integers(-1000, 1000, (count, count)) / 300
    return {
        "sums": a.sum(0),
        "exponentials": np.exp(a),
        "products": a @ a,
        "solutions": np.linalg.solve(a, a[0]),
    }


COMPUTATIONS = {
    "regression, strided_cnn:8,16,32": regression,
    **{f"target, {name}": (lambda name=name: network(name)) for name in NETWORKS},
    "inverse Hessian": inverse_hessian,
    "boosted trees": boosted_trees,
    "functions": functions,
}
TIMED = {
    "regression": lambda: regression(epochs=3, count=2000),
    "tanh_cnn:8,16,64": lambda: network(NETWORKS[0], 1),
    "strided_cnn:8,16,32": lambda: network(NETWORKS[1], 2),
    "mlp:32, stacked": lambda: network("mlp:32", 8),
    "eigenvalues": lambda: np.linalg.eigh(np.fromfunction(lambda i, j: np.cos(i * j), (700, 700))),
}


def probe(path: str, what: str) -> None:
    """What a fresh process does: arrays of all computations, or seconds of its processor for those that are timed."""
    torch.set_num_threads(1)
    out = {}
    if what == "arrays":
        for name, compute in COMPUTATIONS.items():
            out |= {f"{name}|{step}": np.asarray(value) for step, value in compute().items()}
    else:
        for name, compute in TIMED.items():
            compute()  # what a first call loads is no part of it
            start = time.process_time()
            compute()
            out[name] = np.array(time.process_time() - start)
    np.savez(path, **out)


def run(settings: dict[str, str], what: str) -> dict[str, np.ndarray]:
    """`probe` in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.npz"
        env = (
            os.environ
            | settings
            | {
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
                "PYTHONPATH": str(Path(mia_lib.__file__).parents[1]),
            }
        )
        subprocess.run([sys.executable, __file__, "--probe", str(path), what], env=env, check=True)
        with np.load(path) as found:
            return dict(found)


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference, in standard deviations of the array."""
    one, other = one.astype(float), other.astype(float)
    return float(np.abs(one - other).max() / (one.std() or 1.0))


def first_difference(one: dict[str, np.ndarray], other: dict[str, np.ndarray], name: str) -> str:
    """Where a computation parts: the step, the distance there, and at its end."""
    steps = [step for step in one if step.startswith(f"{name}|")]
    differing = [step for step in steps if not np.array_equal(one[step], other[step])]
    if not differing:
        return "the same bits"
    first, last = (
        f"{step.partition('|')[2]} by {distance(one[step], other[step]):.1g}"
        for step in (differing[0], differing[-1])
    )
    return first if first == last else f"{first}; {last}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5, help="of the timing")
    parser.add_argument("--probe", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.probe:
        return probe(*given.probe)
    if "avx512f" not in mia_lib._processor():
        raise SystemExit(
            "This processor has no AVX-512: there is no other arithmetic to compare with."
        )
    print(f"torch {torch.__version__}, numpy {np.__version__}, Python {sys.version.split()[0]}\n")
    book = run(BOOK, "arrays")
    for word, settings in SETTINGS.items():
        found = run(settings, "arrays")
        print(f"{word}:")
        for name in COMPUTATIONS:
            print(f"  {name:32} {first_difference(book, found, name)}", flush=True)
    seconds = [(run(BOOK, "seconds"), run(FREE, "seconds")) for _ in range(given.repeats)]
    print("\nSeconds of the processor, as the book has it over those of the processor's own:")
    for name in TIMED:
        ratios = sorted(float(ours[name] / own[name]) for ours, own in seconds)
        print(f"  {name:32} {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
