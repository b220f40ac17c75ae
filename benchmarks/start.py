"""From a cold interpreter to a saved ROC: `mia_lib` against a tight loop of plain PyTorch (`tight.py`), wall time.

    python benchmarks/start.py [--models 16 64] [--records 1000] [--epochs 20] [--repeats 3] [--threads 0 1]

Both load 1,000 images of FashionMNIST, train small CNNs on half of them each, attack the first with LiRA and save the
figure. Each pair runs one after the other, in turn first, in interpreters of their own, ours into an empty store.
`--threads`: of the plain loop; 0 stands for PyTorch's own number.

Goals on 2 cores: 16 models at least 1.7 times as fast as the plain loop, 64 models 2.2 times.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OURS = """
import sys

from mia_lib import data, drawing, membership, metrics, signals, training
from mia_lib.attacks import baselines

if __name__ == "__main__":
    models, count, epochs = map(int, sys.argv[2:])
    records = data.load("fashion_mnist_20k").take(range(count))
    members = membership.random_halves(count, models)
    bank = training.train(records, members, training.TrainConfig("tanh_cnn:16,32,64", epochs=epochs))
    signal = signals.logit_scaled_confidence(bank, records)
    scores = {"LiRA": baselines.lira_online(signal[0], signal[1:], members[1:])}
    print(metrics.evaluate(scores, members[0], metrics=["auc"]))
    drawing.roc(scores, members[0]).savefig(sys.argv[1])
"""


def seconds(*command: str, **environment: str) -> float:
    """Wall time of a process of Python."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *command],
        check=True,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - started


def pair(
    folder: Path, models: int, records: int, epochs: int, threads: int, turn: int
) -> tuple[float, float]:
    """Seconds of ours and of the plain loop."""

    def ours() -> float:
        with tempfile.TemporaryDirectory() as cache:
            return seconds(
                str(folder / "ours.py"),
                str(folder / "ours.png"),
                str(models),
                str(records),
                str(epochs),
                MIA_CACHE=cache,
                MIA_PROGRESS="",
            )

    def plain() -> float:
        more = ["--threads", str(threads)] if threads else []
        return seconds(
            str(Path(__file__).with_name("tight.py")),
            str(folder / "arrays.npz"),
            str(folder / "plain.png"),
            "--models",
            str(models),
            "--epochs",
            str(epochs),
            *more,
        )

    if turn % 2:
        other = plain()
        return ours(), other
    return ours(), plain()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[0, 1])
    arguments = parser.parse_args()
    import numpy as np

    from mia_lib import data

    with tempfile.TemporaryDirectory() as name:
        game = data.load("fashion_mnist_20k").take(range(arguments.records))
        np.savez(Path(name) / "arrays.npz", x=game.x, y=game.y)
        (Path(name) / "ours.py").write_text(OURS, encoding="utf-8")
        for models in arguments.models:
            for threads in arguments.threads:
                pairs = [
                    pair(Path(name), models, arguments.records, arguments.epochs, threads, turn)
                    for turn in range(arguments.repeats)
                ]
                ratios = [plain / mine for mine, plain in pairs]
                mine, plain = np.median(pairs, 0)
                print(
                    f"{models} models: {statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f}) the plain "
                    f"loop with {threads or 'its own'} threads; {mine:.1f} s, plain {plain:.1f} s",
                    flush=True,
                )
    from importlib.metadata import version

    print(
        f"Python {platform.python_version()}, torch {version('torch')}, {os.cpu_count()} cores, {platform.machine()}"
    )
