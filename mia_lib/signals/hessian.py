"""Hessian of the training loss with respect to the parameters: its products with vectors, itself, and its inverse.

Three ways lead to (H + epsilon I)^-1 g, which the attack of Suri et al. (2024, Eqs. 7 and 8) needs of the gradient of each
record. Up to some ten thousand parameters `exact` gives H, whose one eigendecomposition (`spectrum`) serves every damping
and every rank; beyond, `conjugate_gradient` solves with products of H alone (`operator`).

H is that of the mean loss over the records, without weight decay: their section 2.2 defines the loss so, and weight decay
would only add its coefficient, 0.0005 there, to a damping of 0.2.

Where a network has kinks (ReLU, max-pooling) all of this is about the smooth piece that the parameters lie on: PyTorch
takes the second derivative of ReLU to be zero everywhere, its first at zero to be zero, too. That is the Hessian wherever
it exists, which is almost everywhere; what the loss bends by at the kinks themselves is not in it.
"""

from __future__ import annotations

from mia_lib import _torch  # noqa: F401  before PyTorch, to say what to do without it

# isort: split

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from scipy import linalg
from torch import nn
from torch.func import functional_call, grad, jacrev, jvp, vmap

from mia_lib import models
from mia_lib.checks import Records, check_flag, check_labels, check_numbers
from mia_lib.errors import MiaError, check_choice, check_count, check_range
from mia_lib.signals import outputs as signals
from mia_lib.training import devices
from mia_lib.training.losses import LOSSES, precise_loss

VECTORS = 16  # at a time

# ---------------------------------------------------------------------------------------------------- products with vectors


def operator(
    model: nn.Module,
    x,
    y: np.ndarray,
    loss: str = "cross_entropy",
    dtype: str = "float64",
    batch: int | None = None,
    scaling: str | tuple | None = None,
) -> Callable[[np.ndarray], np.ndarray]:
    """H as a function of vectors, where H is the Hessian of the mean loss over the records, without weight decay.

    H v is the derivative of the gradient along v (forward over reverse mode, Pearlmutter 1994), summed over batches of
    records; H itself, [P, P], is never held.

    Args:
        model: on the device that is to compute; the function keeps a copy of it in evaluation mode.
        x: records in the form of `Dataset.x`, [N, ...].
        y: labels int [N].
        loss: a name of `LOSSES`.
        dtype: "float64", or "float32": to about 1e-7 of the products, but where two inputs of max-pooling are nearly equal
            rounding can choose another piece.
        batch: records at a time, by default fewer for more vectors; where memory runs out it is halved.
        scaling: of uint8 images, as for `signals.model_outputs`.

    Returns:
        function: vectors [k, P], parameters in the order of `nn.Module.parameters` -> H v of each, [k, P] of type `dtype`.

    Raises:
        MiaError: an unknown loss or dtype, no records, not a label for each or one that is no class, a model without
            parameters or of one output; the function: vectors of another shape.
    """
    check_choice("loss", loss, LOSSES)
    network = signals.in_precision(model, dtype)
    x = signals.check_records(x)
    batch = signals.check_batch(batch)
    device, scaling = signals.device_of(model), signals.scaling_of(model, x, scaling)
    weights, labels = dict(network.named_parameters()), _labels(network, x, y, device, scaling)
    sizes = [w.numel() for w in weights.values()]

    def summed(weights: dict, part: torch.Tensor, part_labels: torch.Tensor) -> torch.Tensor:
        return precise_loss(functional_call(network, weights, (part,)), part_labels, loss).sum()

    def product(
        vector: torch.Tensor, part: torch.Tensor, part_labels: torch.Tensor
    ) -> torch.Tensor:
        pieces = zip(weights.items(), vector.split(sizes), strict=True)
        direction = {name: piece.view_as(w) for (name, w), piece in pieces}
        along = jvp(lambda w: grad(summed)(w, part, part_labels), (weights,), (direction,))[1]
        return torch.cat([along[name].flatten() for name in weights])

    several = vmap(product, in_dims=(0, None, None))

    def apply(vectors: np.ndarray) -> np.ndarray:
        vectors = check_numbers("vectors", vectors)
        if vectors.ndim != 2 or vectors.shape[1] != sum(sizes):
            raise MiaError(
                f"vectors has shape {vectors.shape}: [k, {sum(sizes)}] is needed, a column for each parameter."
            )
        vectors = torch.tensor(vectors, dtype=signals.PRECISIONS[dtype], device=device)
        total = torch.zeros_like(vectors)
        size = batch or max(1, 8 * signals.batch_size(device) // max(4, min(len(vectors), VECTORS)))
        for k in range(0, len(vectors), VECTORS):

            def add(start: int, stop: int, some: slice = slice(k, k + VECTORS)) -> None:
                part = signals.inputs(x, start, stop, device, signals.PRECISIONS[dtype], scaling)
                total[some] += several(vectors[some], part, labels[start:stop])

            with devices.plain_float32():
                devices.stream(add, len(x), size)
        return (total / len(x)).cpu().numpy()

    return apply


def _labels(network: nn.Module, x, y, device: torch.device, scaling: str | tuple) -> torch.Tensor:
    labels = check_labels("y", y, signals.classes_of(network, x, scaling), len(x))
    return torch.from_numpy(np.array(labels)).to(device)


# ------------------------------------------------------------------------------------------------------------ H itself


def exact(
    model: nn.Module,
    x: Records,
    y: np.ndarray,
    loss: str = "cross_entropy",
    dtype: str = "float64",
    batch: int | None = None,
    scaling: str | tuple | None = None,
) -> np.ndarray:
    r"""H, the Hessian of the mean loss over the records with respect to all parameters, without weight decay.

    Of networks of linear layers with at most one hidden ReLU layer it is computed in closed form. With a record
    :math:`\tilde x = (x, 1)`, hidden activations :math:`\tilde a = (\max(0, W_1 \tilde x), 1)`, outputs
    :math:`z = W_2 \tilde a`, :math:`s_j` = 1 where hidden unit j is on and 0 where it is off, and the derivatives
    :math:`r = \partial \ell / \partial z` and :math:`A = \partial^2 \ell / \partial z^2` of a record's loss, the blocks are
    the means over the records of

    .. math::
        H[W_1^{j}, W_1^{k}] &= s_j s_k (W_2^\top A W_2)_{jk} \, \tilde x \tilde x^\top \\
        H[W_1^{j}, W_2^{km}] &= s_j \tilde x \, \big((W_2^\top A)_{jk} \tilde a_m + r_k [j = m]\big) \\
        H[W_2^{km}, W_2^{lq}] &= A_{kl} \tilde a_m \tilde a_q

    (:math:`W_2^\top` without the biases), so the work is in weighted Gram matrices of the records, one for each pair of
    hidden units and only over the records for which both are on. Without a hidden layer the last line is all, with x in place
    of a. Every other network is multiplied with one unit vector after the other, by `operator`.

    With ReLU this is the Hessian of the smooth piece that the parameters lie on: a unit exactly at its kink counts as off.
    The term with r, between the layers, is what it has beyond Gauss-Newton; it can make the matrix indefinite.

    Args:
        dtype: "float64", or "float32" for half the memory and about 1e-6 of the largest entry. Others: as for `operator`.

    Returns:
        [P, P] of type `dtype`, symmetric to the last bit, parameters in the order of `nn.Module.parameters`.

    Raises:
        MiaError: what `operator` raises; a matrix that would not fit into memory together with its decomposition.
    """
    check_choice("loss", loss, LOSSES)
    network = signals.in_precision(model, dtype)
    x = signals.check_records(x)
    batch = signals.check_batch(batch)
    device, scaling = signals.device_of(model), signals.scaling_of(model, x, scaling)
    labels, layers = _labels(network, x, y, device, scaling), shallow(network)
    size = sum(w.numel() for w in network.parameters())
    _check_memory(size, dtype, device)
    if layers is None:
        return _from_products(operator(model, x, y, loss, dtype, batch, scaling), size, dtype)
    totals: list[torch.Tensor] = []

    def add(start: int, stop: int) -> None:
        part = signals.inputs(x, start, stop, device, signals.PRECISIONS[dtype], scaling)
        sums = _sums(layers, part, labels[start:stop], loss)
        if totals:
            for total, part in zip(totals, sums, strict=True):
                total += part
        else:  # all at once: a slice that runs out of memory is repeated and must not be counted twice
            totals.extend(sums)

    with torch.no_grad(), devices.plain_float32():
        devices.stream(add, len(x), batch or _batch(layers, device))
    return _assembled(layers, totals, size).div_(len(x)).cpu().numpy()


def _from_products(product: Callable, size: int, dtype: str) -> np.ndarray:
    matrix = np.empty((size, size), dtype)
    for k in range(0, size, VECTORS):
        matrix[k : k + VECTORS] = product(np.eye(min(VECTORS, size - k), size, k))
    matrix += matrix.T
    matrix /= 2
    return matrix


class _Shallow(NamedTuple):
    """The layers of a network with at most one hidden ReLU layer; logits = tail(head(...))."""

    hidden: nn.Linear | None
    head: nn.Linear
    tail: nn.Module


def shallow(network: nn.Module) -> _Shallow | None:
    """A network's layers, or None when it is of another kind."""
    if type(network) is not models.Network:
        return None
    parts = [
        part
        for half in (network.body, network.head)
        for part in (half if type(half) is nn.Sequential else [half])
    ]
    tail = parts.pop() if type(parts[-1]) is models.FromZero else nn.Identity()
    if any(part.bias is None for part in parts if type(part) is nn.Linear):
        return None
    match [type(part) for part in parts]:
        case [nn.Flatten, nn.Linear]:
            return _Shallow(None, parts[1], tail)
        case [nn.Flatten, nn.Linear, nn.ReLU, nn.Linear]:
            return _Shallow(parts[1], parts[3], tail)
    return None


def _batch(layers: _Shallow, device: torch.device) -> int:
    """Number of records at a time, such that what is held of them takes about 128 MB, or 1 GB on a
    graphics card."""
    outputs, inputs = layers.head.weight.shape
    each = outputs * (outputs + inputs + 1) + 2 * (inputs + 1)
    if layers.hidden is not None:
        each += inputs * inputs + 2 * layers.hidden.in_features
    return max(
        1,
        min(8 * signals.batch_size(device), (2**27 if devices.is_card(device) else 2**24) // each),
    )


def _with_one(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x.new_ones(len(x), 1)], 1)


def _pairs(count: int, device: torch.device) -> torch.Tensor:
    return torch.triu_indices(count, count, device=device)


def _sums(layers: _Shallow, x: torch.Tensor, labels: torch.Tensor, kind: str) -> list[torch.Tensor]:
    """Sums over records of the blocks W2 W2 [pairs of outputs, F, F] and, with a hidden layer, W1 W1 and W1 W2."""
    hidden, head, tail = layers

    def loss(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return precise_loss(tail(z[None]), y[None], kind)[0]

    x = _with_one(x.flatten(1))
    a = x if hidden is None else _with_one(hidden(x[:, :-1]).relu())
    z = head(a[:, :-1])
    curved = vmap(jacrev(grad(loss)))(z, labels)  # A [B, K, K]
    k, m = _pairs(z.shape[1], z.device)
    outer = _grams(a, curved[:, k, m])
    if hidden is None:
        return [outer]
    slope, on = vmap(grad(loss))(z, labels), a[:, :-1] > 0  # r [B, K], s [B, h]
    curved = head.weight.T @ curved  # W2^T A [B, h, K]
    j, k = _pairs(on.shape[1], z.device)
    inner = _grams(x, (curved @ head.weight)[:, j, k] * (on[:, j] & on[:, k]))
    cross = x.new_empty(on.shape[1], x.shape[1], z.shape[1] * a.shape[1])
    for j, block in enumerate(cross):
        rows = on[:, j].nonzero().squeeze(1)
        mixed = curved[rows, j, :, None] * a[rows, None, :]
        mixed[:, :, j] += slope[rows]
        torch.mm(x[rows].T, mixed.flatten(1), out=block)
    return [outer, inner, cross]


# features up to which products of all pairs are formed at once; columns of a product otherwise
NARROW, COLUMNS = 40, 256


def _grams(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """sum_n weights[n, p] x_n x_n^T for each p: [p, F, F], of which only the upper triangles count."""
    features = x.shape[1]
    if features <= NARROW:
        return (weights.T @ (x[:, :, None] * x[:, None, :]).flatten(1)).view(-1, features, features)
    grams = x.new_zeros(weights.shape[1], features, features)
    for weight, gram in zip(weights.T, grams, strict=True):
        rows = weight.nonzero().squeeze(1)
        chosen = x[rows]
        weighted = chosen * weight[rows, None]
        for c in range(0, features, COLUMNS):  # leaves out nearly half of a symmetric product
            torch.mm(weighted[:, c : c + COLUMNS].T, chosen[:, c:], out=gram[c : c + COLUMNS, c:])
    return grams


def _assembled(layers: _Shallow, sums: list[torch.Tensor], size: int) -> torch.Tensor:
    """The matrix [P, P] of its blocks."""
    matrix, start, places = sums[0].new_empty(size, size), 0, []
    for layer in (layers.hidden, layers.head):
        if layer is not None:  # rows: where a unit's weights and its bias are among the parameters
            end = start + layer.weight.numel()
            number = torch.arange(start, end + layer.out_features, device=matrix.device)
            places.append(
                torch.cat(
                    [number[: end - start].view_as(layer.weight), number[end - start :, None]], 1
                )
            )
            start = end + layer.out_features
    for place, grams in zip(reversed(places), sums, strict=False):
        for gram, j, k in zip(grams, *_pairs(len(place), matrix.device), strict=True):
            gram = gram.triu()
            gram += gram.triu(1).T
            matrix[place[j, :, None], place[k]] = gram
            matrix[place[k, :, None], place[j]] = gram
    if len(sums) == 3:
        first, last = (place.flatten() for place in places)
        cross = sums[2].view(len(first), len(last))
        matrix[first[:, None], last] = cross
        matrix[last[:, None], first] = cross.T
    return matrix


def _check_memory(size: int, dtype: str, device: torch.device) -> None:
    """Refuse a matrix that is too large: it, its eigenvectors and the workspace of the
    decomposition are 4 P^2 numbers."""
    nbytes, free = size**2 * signals.PRECISIONS[dtype].itemsize, devices.free_memory(device)
    if 4 * nbytes > free:
        shorter = "dtype = 'float32' (half of that), " if dtype == "float64" else ""
        raise MiaError(
            f"The Hessian of {size:,} parameters takes {nbytes / 1e9:,.1f} GB in {dtype}, {4 * nbytes / 1e9:,.1f} "
            f"GB with its decomposition; {free / 1e9:,.1f} GB are free on {device}. Use {shorter}"
            "conjugate_gradient with hessian.operator, which hold no matrix, or a network of fewer parameters."
        )


# ----------------------------------------------------------------------------------------------------------- its inverse


@dataclass(frozen=True)
class Inverse:
    """An inverse of H with some of its directions damped or left out: eigenvectors as columns [P, P], and what each of these
    directions is multiplied by [P], 1 / (sigma + damping), or 1 / sigma where it is kept and 0 where it is not."""

    weights: np.ndarray
    vectors: np.ndarray

    @cached_property
    def _on_card(self) -> torch.Tensor | None:
        where = devices.pick(None)
        return None if where.type == "cpu" else torch.tensor(self.vectors, device=where)

    def rotate(self, v: np.ndarray) -> np.ndarray:
        """Each vector in the coordinates of the eigenvectors, [N, P] -> [N, P]; on a graphics card where there is one."""
        if self._on_card is None:
            return v @ self.vectors
        with devices.plain_float32():
            return (
                (torch.from_numpy(np.ascontiguousarray(v)).to(self._on_card) @ self._on_card)
                .cpu()
                .numpy()
            )

    def apply(self, v: np.ndarray) -> np.ndarray:
        """The inverse times each vector, [..., P] -> [..., P]."""
        v = check_numbers("v", v)
        if not v.ndim or v.shape[-1] != len(self.weights):
            raise MiaError(
                f"v has shape {v.shape}: [..., {len(self.weights)}] is needed, a column for each parameter."
            )
        return (v @ self.vectors * self.weights) @ self.vectors.T

    def matrix(self) -> np.ndarray:
        """The inverse as a matrix [P, P]."""
        return (self.vectors * self.weights) @ self.vectors.T


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues [P], ascending, and eigenvectors [P, P], as columns, of a matrix H = vectors diag(values) vectors^T."""

    values: np.ndarray
    vectors: np.ndarray

    def inverse(self, damping: float | None = None, rank_threshold: float | None = None) -> Inverse:
        """Either inverse of Suri et al. (2024, Table 8); costs P divisions.

        Args:
            damping: epsilon >= 0, gives (H + epsilon I)^-1.
            rank_threshold: >= 0, in place of damping: keeps the directions with abs(sigma) above it and damps none.

        Raises:
            MiaError: both or neither; a damping that leaves an eigenvalue not above zero (by more than rounding), so that
                H + epsilon I is singular or not the curvature of a minimum; a threshold that leaves no direction.
        """
        if (damping is None) == (rank_threshold is None):
            raise MiaError(
                f"damping = {damping!r} and rank_threshold = {rank_threshold!r}: give one of the two."
            )
        size = np.abs(self.values)
        if damping is None:
            check_range("rank_threshold", rank_threshold, 0.0)
            kept = size > max(rank_threshold, _rounding(size))
            if not kept.any():
                raise MiaError(
                    f"rank_threshold = {rank_threshold!r} leaves no direction: the largest absolute eigenvalue is "
                    f"{size.max():.4g}. Give a smaller one."
                )
            return Inverse(
                np.divide(1, self.values, out=np.zeros_like(size), where=kept), self.vectors
            )
        check_range("damping", damping, 0.0)
        least = self.values[0] + damping
        if not least > _rounding(size):
            raise MiaError(
                f"damping = {damping!r} leaves H singular or indefinite: its smallest eigenvalue is "
                f"{self.values[0]:.4g}, with damping {least:.4g}. Give more than {max(0.0, -self.values[0]):.4g}, "
                "or a rank_threshold."
            )
        return Inverse((1 / (self.values + damping)).astype(self.values.dtype), self.vectors)


def _rounding(size: np.ndarray) -> float:
    """Bound below which an eigenvalue cannot be told from zero."""
    return 10 * float(np.finfo(size.dtype).eps) * float(size.max())


def spectrum(
    matrix: np.ndarray, device: str | int | None = None, overwrite: bool = False
) -> Spectrum:
    """The eigendecomposition of a Hessian: the one costly step, about 9 P^3 operations, for every damping and every rank.

    Args:
        matrix: [P, P], symmetric and finite, or else refused; float32 is decomposed in float32, anything else in float64.
        device: where to compute, as in `devices.pick`: a graphics card where there is one.
        overwrite: let the eigenvectors take the memory of the matrix, which must be symmetric to the last bit, as of `exact`;
            a fourth of what this needs.
    """
    matrix = _checked(matrix)
    where = devices.pick(device)
    overwrite = check_flag("overwrite", overwrite)
    # measured on 4,780 parameters: two thirds of PyTorch's time, a quarter of driver "evr"
    if where.type == "cpu":
        matrix = matrix.T if overwrite else matrix  # in Fortran's order it is not copied
        return Spectrum(
            *linalg.eigh(matrix, driver="evd", check_finite=False, overwrite_a=overwrite)
        )
    values, vectors = torch.linalg.eigh(torch.tensor(matrix, device=where))
    return Spectrum(values.cpu().numpy(), vectors.cpu().numpy())


def _checked(matrix: np.ndarray) -> np.ndarray:
    matrix = check_numbers("matrix", matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise MiaError(f"matrix has shape {matrix.shape}: a square one [P, P] is needed.")
    matrix = np.ascontiguousarray(matrix, np.float32 if matrix.dtype == np.float32 else np.float64)
    asymmetry, largest = 0.0, 0.0
    # in blocks of rows, for a large matrix must not be copied
    for k in range(0, len(matrix), 1024):
        rows = matrix[k : k + 1024]
        if not np.isfinite(rows).all():
            raise MiaError(
                f"matrix has {(~np.isfinite(matrix)).sum():,} entries that are not finite: did the training "
                "diverge?"
            )
        largest = max(largest, float(np.abs(rows).max()))
        asymmetry = max(asymmetry, float(np.abs(rows - matrix[:, k : k + 1024].T).max()))
    if asymmetry > np.sqrt(np.finfo(matrix.dtype).eps) * largest:
        raise MiaError(
            f"matrix is not symmetric: it differs from its transpose by up to {asymmetry:.3g}, its largest entry is "
            f"{largest:.3g}. Give a Hessian, or the mean of the matrix and its transpose."
        )
    return matrix


def inverse(
    matrix: np.ndarray | Spectrum, damping: float = 0.2, rank_threshold: float | None = None
) -> Inverse:
    """(H + damping I)^-1, or with `rank_threshold` the pseudo-inverse of H's large directions (Suri et al. 2024, Table 8).

    Args:
        matrix: H [P, P], or its `spectrum`, which serves any number of inverses.
        damping, rank_threshold: as for `Spectrum.inverse`, with its errors; a damping of 0.2 is the paper's, which is not
            used when a threshold is given.
    """
    decomposed = matrix if isinstance(matrix, Spectrum) else spectrum(matrix)
    if rank_threshold is None:
        return decomposed.inverse(damping)
    return decomposed.inverse(rank_threshold=rank_threshold)


# ------------------------------------------------------------------------------------------------------- without a matrix


@dataclass(frozen=True)
class Solution:
    """Solutions of k systems by `conjugate_gradient`: x [k, P]; residuals [k], norms of b - (H +
    damping I) x over those of b, as the iteration carries them along; iterations [k], products that
    each took; and whether each converged."""

    x: np.ndarray
    residuals: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray

    def check(self) -> Solution:
        """The same solution, if every system converged; an error with residuals and iterations otherwise."""
        failed = np.flatnonzero(~self.converged)
        if len(failed):
            worst = failed[np.argsort(-self.residuals[failed])][:3]
            shown = ", ".join(
                f"{self.residuals[k]:.3g} after {self.iterations[k]} iterations (number {k})"
                for k in worst
            )
            raise MiaError(
                f"{len(failed)} of {len(self.converged)} systems did not converge; relative residuals: {shown}. A "
                "system that stopped before the limit of iterations met a direction in which H + damping I does "
                "not curve upwards: give more damping. Others need more iterations, or more damping."
            )
        return self


def conjugate_gradient(
    product: np.ndarray | Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
    damping: float = 0.2,
    tolerance: float = 1e-5,
    iterations: int = 200,
) -> Solution:
    """Solve (H + damping I) x = b for several b at once, from products with H alone.

    Each system takes steps of its own length (Hestenes and Stiefel 1952); one that has converged is multiplied no more, and
    one that meets a direction without upward curvature stops where it is. With c = (sigma_max + damping) / (sigma_min +
    damping), sqrt(c) / 2 log(2 sqrt(c) / tolerance) iterations are enough.

    Args:
        product: H [P, P], or a function of vectors [k, P] that gives H v of each, such as `operator` makes.
        right: b as rows, [k, P], finite; float32 is solved in float32, anything else in float64.
        damping: epsilon. tolerance: of the relative residual. iterations: at most so many products a system.

    Returns:
        `Solution`; call its `check` before use: some systems may not have converged.

    Raises:
        MiaError: shapes that do not fit, `right` not finite, numbers out of range.
    """
    check_range("damping", damping, 0.0)
    check_count("iterations", iterations)
    if not 0 < check_range("tolerance", tolerance) < 1:
        raise MiaError(
            f"tolerance = {tolerance!r} is out of range: allowed is above 0 and below 1."
        )
    right = check_numbers("right", right)
    right = right if right.dtype == np.float32 else right.astype(np.float64)
    if right.ndim != 2 or not np.isfinite(right).all():
        raise MiaError(
            f"right has shape {right.shape} and {(~np.isfinite(right)).sum():,} entries that are not finite: rows "
            "of finite numbers [k, P] are needed."
        )
    multiply, size = (
        (product, right.shape[1])
        if callable(product)
        else (_checked(product).__rmatmul__, len(product))
    )
    if size != right.shape[1]:
        raise MiaError(
            f"right has shape {right.shape}, product {np.shape(product)}: as many columns are needed."
        )
    x, residual, direction = np.zeros_like(right), right.copy(), right.copy()
    square = _dot(residual, residual)
    size, taken, active = np.sqrt(square), np.zeros(len(right), int), square > 0
    goal = tolerance * size
    for _ in range(iterations):
        rows = np.flatnonzero(active)
        if not len(rows):
            break
        along = check_numbers("product", multiply(direction[rows])).astype(right.dtype)
        if along.shape != direction[rows].shape:
            raise MiaError(
                f"product gave {along.shape} for vectors {direction[rows].shape}: H v of each is needed."
            )
        along += right.dtype.type(damping) * direction[rows]
        taken[rows] += 1
        curvature = _dot(direction[rows], along)
        upward = curvature > 0
        active[rows[~upward]] = False
        rows, along = rows[upward], along[upward]
        step = (square[rows] / curvature[upward]).astype(right.dtype)[:, None]
        x[rows] += step * direction[rows]
        residual[rows] -= step * along
        new = _dot(residual[rows], residual[rows])
        direction[rows] = (
            residual[rows] + (new / square[rows]).astype(right.dtype)[:, None] * direction[rows]
        )
        square[rows], active[rows] = new, np.sqrt(new) > goal[rows]
    residuals = np.sqrt(square) / np.where(size > 0, size, 1.0)
    return Solution(x, residuals, taken, residuals <= tolerance)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Dot product of each row of a with that of b, [k, P] -> float64 [k]."""
    return np.einsum("kp,kp->k", a, b, dtype=np.float64)
