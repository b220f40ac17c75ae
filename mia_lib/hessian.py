"""Hessian of the training loss with respect to the parameters, by its products with vectors.

Where a network has kinks (ReLU, max-pooling) the products are those of the smooth piece that the parameters lie on: PyTorch
takes the second derivative of ReLU to be zero everywhere, its first at zero to be zero, too.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, jvp, vmap

from mia_lib import devices, recipe, signals
from mia_lib.errors import MiaError, choose

VECTORS = 16  # at a time


def products(model: nn.Module, x, y: np.ndarray, vectors: np.ndarray, loss: str = "cross_entropy", dtype: str = "float64",
             batch: int | None = None) -> np.ndarray:
    """H v of each vector v, where H is the Hessian of the mean loss over the records, without weight decay.

    H v is the derivative of the gradient along v (forward over reverse mode, Pearlmutter 1994), summed over batches of
    records; H itself, [P, P], is never held.

    Args:
        model: on the device that is to compute; taken in evaluation mode.
        x: records in the form of `Dataset.x`, [N, ...].
        y: labels int [N].
        vectors: [k, P], parameters in the order of `nn.Module.parameters`.
        loss: a name of `recipe.LOSSES`.
        dtype: "float64", or "float32": to about 1e-7 of the products, but where two inputs of max-pooling are nearly equal
            rounding can choose another piece.
        batch: records at a time, by default fewer for more vectors; where memory runs out it is halved.

    Returns:
        [k, P] of type `dtype`.

    Raises:
        MiaError: vectors of another shape, an unknown loss or dtype.
    """
    choose("loss", loss, recipe.LOSSES)
    network, device = signals.in_precision(model, dtype), signals.device_of(model)
    weights = dict(network.named_parameters())
    size = sum(w.numel() for w in weights.values())
    if np.ndim(vectors) != 2 or np.shape(vectors)[1] != size:
        raise MiaError(f"vectors has shape {np.shape(vectors)}: [k, {size}] is needed, a column for each parameter.")
    vectors = torch.tensor(np.asarray(vectors), dtype=signals.PRECISIONS[dtype], device=device)
    labels = torch.from_numpy(np.array(y, np.int64)).to(device)

    def summed(weights: dict, part: torch.Tensor, part_labels: torch.Tensor) -> torch.Tensor:
        return signals.precise_loss(functional_call(network, weights, (part,)), part_labels, loss).sum()

    def product(vector: torch.Tensor, part: torch.Tensor, part_labels: torch.Tensor) -> torch.Tensor:
        pieces = vector.split([w.numel() for w in weights.values()])
        direction = {name: piece.view_as(w) for (name, w), piece in zip(weights.items(), pieces, strict=True)}
        along = jvp(lambda w: grad(summed)(w, part, part_labels), (weights,), (direction,))[1]
        return torch.cat([along[name].flatten() for name in weights])

    several, total = vmap(product, in_dims=(0, None, None)), torch.zeros_like(vectors)
    batch = batch or max(1, 8 * signals.batch_size(device) // max(4, min(len(vectors), VECTORS)))
    for k in range(0, len(vectors), VECTORS):
        def add(start: int, stop: int, some: slice = slice(k, k + VECTORS)) -> None:
            part = signals.inputs(x, start, stop, device, signals.PRECISIONS[dtype])
            total[some] += several(vectors[some], part, labels[start:stop])

        with devices.plain_float32():
            devices.stream(add, len(x), batch)
    return (total / len(x)).cpu().numpy()
