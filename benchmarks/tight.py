"""Reference models and LiRA in plain PyTorch: data in memory, a tight loop, one model after the other, PyTorch's own threads.

    python benchmarks/tight.py ARRAYS.npz FIGURE.png [--models 16] [--epochs 20] [--threads N]

What a careful reader writes without `mia_lib`, and imports nothing of it; `start.py` and `loop.py` take it for a peer. The
arrays are `x` uint8 [N, 28, 28, 1] and `y` [N].
"""

import argparse

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy


def tanh_cnn() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 49, 64),
        nn.Tanh(),
        nn.Linear(64, 10),
    )


def train(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    x: torch.Tensor,
    y: torch.Tensor,
    epochs: int,
    batch_size: int,
    augment=lambda x: x,
) -> float:
    """Train a network in place; its accuracy in the last epoch."""
    right = torch.zeros((), dtype=torch.long, device=x.device)
    for _ in range(epochs):
        right.zero_()
        order = torch.randperm(len(x), device=x.device)
        for start in range(0, len(x), batch_size):
            batch = order[start : start + batch_size]
            outputs = network(augment(x[batch]))
            optimizer.zero_grad()
            cross_entropy(outputs, y[batch]).backward()
            optimizer.step()
            right += (outputs.detach().argmax(1) == y[batch]).sum()
    return right.item() / len(x)


def main(arrays: str, figure: str, models: int, epochs: int) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from scipy.stats import norm
    from sklearn.metrics import roc_curve

    given = np.load(arrays)
    x = torch.from_numpy(given["x"]).permute(0, 3, 1, 2).float().div(127.5).sub(1.0)
    y = torch.from_numpy(given["y"]).long()
    rng = np.random.default_rng(0)
    members = np.array([rng.permutation(len(x)) < len(x) // 2 for _ in range(models)])
    signal = np.zeros(members.shape)
    for row, of_model in zip(members, signal, strict=True):
        network = tanh_cnn()
        train(network, torch.optim.Adam(network.parameters(), 1e-3), x[row], y[row], epochs, 64)
        with torch.no_grad():
            outputs = network(x).double()
        mine = outputs.gather(1, y[:, None])[:, 0]
        of_model[:] = mine - outputs.scatter(1, y[:, None], -torch.inf).logsumexp(1)
    said, reference_members = signal[1:], members[1:]
    fitted = []
    for which in (reference_members, ~reference_members):
        mean = np.average(said, 0, weights=which)
        fitted.append(
            norm.logpdf(
                signal[0], mean, np.sqrt(np.average((said - mean) ** 2, 0, weights=which)) + 1e-6
            )
        )
    scores = fitted[0] - fitted[1]
    fpr, tpr, _ = roc_curve(members[0], scores)
    plt.loglog(fpr, tpr)
    plt.savefig(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("arrays")
    parser.add_argument("figure")
    parser.add_argument("--models", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    main(given.arrays, given.figure, given.models, given.epochs)
