"""Curvature of a record's loss with respect to its input: the trace of the Hessian H.

Ravikumar et al. (2024) take it for a membership signal, for networks curve less around records they were trained on. Three
estimators, of which the first needs nothing but losses:

- `zero_order_trace`: differences of losses at four points, the paper's;
- `hutchinson_trace`: products of the Hessian with random vectors (automatic differentiation);
- `exact_trace`: products with every unit vector, as many as there are inputs.

The type of the inputs decides the arithmetic. Differences of losses need float64: rounding alone moves a probe by up to
``eps |loss| / h^2`` and, as the points are rounded themselves, by ``eps |x| |gradient| / h^2``. With the paper's h = 1e-3 the
former is a tenth of the loss in float32 (eps = 1.2e-7), often more than the curvature, and 2e-10 of it in float64. The usual
cross-entropy rounds by eps times the logits instead, in which confident records drown; `precise_loss`, which `traces`
takes, by eps times itself. The other two estimators lose no more than any derivative.

A network with ReLU or max-pooling is smooth in pieces. Derivatives are those of the piece that a record lies on; differences
also see a kink between the four points, which adds about the jump of the slope over h.

The entries of probes are +1 or -1, by integer arithmetic from the seed, the record's position and the probe's number. So
neither the size of a batch nor the device changes them, and all models of an ensemble see the same.
"""

from __future__ import annotations

from mia_lib import _torch  # noqa: F401  before PyTorch, to say what to do without it

# isort: split

import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch.autograd import grad

from mia_lib.checks import Labels, check_flag, check_labels
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_choice, check_count, check_range, check_type, check_whole
from mia_lib.models import scramble
from mia_lib.signals import outputs
from mia_lib.signals.mapping import map_models, spread
from mia_lib.training import Ensemble, devices
from mia_lib.training.losses import precise_loss, record_loss

VARIANTS = ("paper", "released_code")
CONVERTED = 2000  # records of an ensemble's that are held as numbers at a time


def zero_order_trace(
    loss: Callable,
    x: torch.Tensor,
    iterations: int = 10,
    h: float = 1e-3,
    seed: int = 0,
    *,
    y: Labels = None,
    variant: str = "paper",
    batch: int | None = None,
    first: int = 0,
) -> np.ndarray:
    """Trace of the Hessian from losses alone (Ravikumar et al. 2024, Eq. 11 and Algorithm 1).

    With independent u, v whose entries are +1 or -1, the mean over `iterations` draws of ``q (u . v)``, where ::

        q = [l(x + hv + hu) - l(x - hv + hu) - l(x + hv - hu) + l(x - hv - hu)] / 4h^2 = v^T H u + O(h^2).

    The paper has n^2 times this; the factor belongs to vectors on the unit sphere. Without it the estimate is unbiased, with
    variance ``((n + 2) |H|^2 + tr(H)^2 - 4 sum H_ii^2) / iterations``, where ``|H|^2`` is the sum of squared entries and n the
    number of inputs: about n / 2 times that of `hutchinson_trace`.

    Args:
        loss: function from inputs [B, ...] to losses [B], of which each depends on its own input alone. With `y`, function of
            inputs and labels [B]. It need not be differentiable.
        x: [N, ...] of type float32 or float64, which `loss` must compute in.
        iterations, seed: of the probes, each of four losses. h: step of every coordinate, in the unit of x.
        y: labels int [N], from 0. Without them `loss` gets all N records in each call (as far as memory goes), so that it may
            hold labels itself.
        variant: "paper", or "released_code": the mean of ``|q| h``, which measures the size of H rather than its trace.
        batch: records at a time; by default so many that `loss` gets batches of `signals.batch_size`. Where memory runs out
            it is halved.
        first: number of the first record, where x is a part of more.

    Returns:
        float64 [N].

    Raises:
        MiaError: h or iterations not above 0, an unknown variant, x of another type, `loss` of another shape, one that
            depends on the other records of a batch (two more losses of the first batch tell), labels that are no whole numbers
            from 0, one a record.

    Warns:
        UserWarning: h is so small that rounding shows in the probes. Four more losses of the first batch's records tell.
    """
    check_choice("variant", variant, VARIANTS)
    h = _check("iterations", iterations, seed, h)

    def terms(losses, part, start, low, high):
        u, v = _pairs(part, seed, start, low, high)
        difference = _difference(losses, part, u, v, h)
        if start == first and low == 0:
            _warn_of_rounding(losses, part, u[:1], v[:1], h, difference.abs().mean().item())
        q = difference / (4 * h * h)
        return q.abs() * h if variant == "released_code" else q * (u * v).flatten(2).sum(2)

    with torch.no_grad():
        return _streamed(terms, loss, x, y, batch, first, iterations, products=False) / iterations


def limit_trace(
    loss: Callable, x: torch.Tensor, iterations: int = 10, seed: int = 0, *, y: Labels = None
) -> np.ndarray:
    """Limit of `zero_order_trace` as h shrinks where the loss is smooth: the mean of
    ``v^T H u (u . v)`` over its probes, with products of the Hessian.

    Args:
        loss: as for `hutchinson_trace`. x, iterations, seed, y: as for `zero_order_trace`.

    Returns:
        float64 [N].
    """
    _check("iterations", iterations, seed)

    def terms(times_hessian, part, start, low, high):
        u, v = _pairs(part, seed, start, low, high)
        return (times_hessian(v) * u).flatten(2).sum(2) * (u * v).flatten(2).sum(2)

    return _streamed(terms, loss, x, y, None, 0, iterations) / iterations


def hutchinson_trace(
    loss: Callable,
    x: torch.Tensor,
    probes: int,
    seed: int = 0,
    *,
    y: Labels = None,
    batch: int | None = None,
    first: int = 0,
) -> np.ndarray:
    """Trace of the Hessian by Hutchinson's estimator: the mean of v^T H v over `probes` vectors v of +1 and -1.

    Unbiased, with variance ``2 (|H|^2 - sum H_ii^2) / probes``: exact for a diagonal H.

    Args:
        loss: twice differentiable by PyTorch. probes: number of vectors. Others: as for `zero_order_trace`.

    Returns:
        float64 [N].
    """
    _check("probes", probes, seed)

    def terms(times_hessian, part, start, low, high):
        v = _probes(part, seed, start, low, high)
        return (times_hessian(v) * v).flatten(2).sum(2)

    return _streamed(terms, loss, x, y, batch, first, probes) / probes


def exact_trace(
    loss: Callable, x: torch.Tensor, *, y: Labels = None, batch: int | None = None
) -> np.ndarray:
    """Trace of the Hessian, from its products with every unit vector.

    Args:
        loss: as for `hutchinson_trace`. x, y, batch: as for `zero_order_trace`.

    Returns:
        float64 [N].
    """
    x = _points(x)

    def terms(times_hessian, part, start, low, high):
        unit = torch.eye(part[0].numel(), dtype=part.dtype, device=part.device)[low:high]
        products = times_hessian(unit.view(-1, 1, *part.shape[1:]).expand(-1, *part.shape)).flatten(
            2
        )
        return products[:, :, low:high].diagonal(dim1=0, dim2=2).mT

    return _streamed(terms, loss, x, y, batch, 0, x[0].numel())


# ------------------------------------------------------------------------------------------------------------- an ensemble


def traces(
    models: Ensemble,
    records: Dataset,
    variant: str = "paper",
    iterations: int = 10,
    h: float = 1e-3,
    seed: int = 0,
    dtype: str = "float64",
    warn: bool = True,
    precise: bool = True,
) -> np.ndarray:
    """`zero_order_trace` of each record's loss under each model, kept in the store.

    Inputs are in the unit that networks take: images run from -1 to 1, or as the models' `scaling` has them. All models see
    the same probes.

    Args:
        models, records: M and N. variant, iterations, h, seed: as for `zero_order_trace`.
        dtype: "float64" or "float32", of the losses.
        warn: say when rounding shows in the probes.
        precise: take `precise_loss`; False for PyTorch's own, which rounds by eps times the logits, as the released code has
            it together with "float32".

    Returns:
        float64 [M, N]. Errors are those of `zero_order_trace`.
    """
    check_choice("variant", variant, VARIANTS)
    check_choice("dtype", dtype, outputs.PRECISIONS)
    _check("iterations", iterations, seed, h)
    check_flag("warn", warn), check_flag("precise", precise)
    how = {"variant": variant, "iterations": int(iterations), "h": float(h), "seed": int(seed)}
    return spread(
        map_models(
            _task,
            models,
            {"kind": "curvature"},
            "curvature",
            records=records,
            dtype=dtype,
            how=how,
            warn=bool(warn),
            precise=bool(precise),
        ),
        "curvature",
        None,
    )


def between_kinks(models: Ensemble, records: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Trace and Frobenius norm of the Hessian of the piece that each record lies on, for a network linear in pieces.

    Between the kinks of ReLU logits are linear in the input, with Jacobian J [K, D], and the cross-entropy has the Hessian
    ``J^T (diag(p) - p p^T) J``, whatever the label. With rows ``c_k = J_k - sum_j p_j J_j`` its trace is ``sum_k p_k |c_k|^2``
    and its norm ``sqrt(sum_kl p_k p_l (c_k . c_l)^2)``. K backward passes give both, and need the parameters. For networks
    that are not linear in pieces it is the generalised Gauss-Newton matrix, which leaves the curvature of logits out.

    Args:
        models: M, trained with the cross-entropy; of another loss they are refused. records: N.

    Returns:
        trace, norm: float64 [M, N].
    """
    if models.config.loss != "cross_entropy":
        raise MiaError(
            f"loss = {models.config.loss!r}: between_kinks knows the Hessian of 'cross_entropy' alone. Take "
            "exact_trace."
        )
    results = map_models(
        _between_task,
        models,
        {"kind": "curvature between kinks"},
        "exact curvature",
        records=records,
    )
    return spread(results, "trace", None), spread(results, "norm", None)


def _between_task(networks, x, labels, loss):
    [network] = networks
    device, scaling = outputs.device_of(network), outputs.scaling_of(network, x, None)
    network = outputs.in_precision(network, "float64")

    def part(start: int, stop: int) -> np.ndarray:
        inputs = (
            outputs.inputs(x, start, stop, device, torch.float64, scaling)
            .contiguous()
            .requires_grad_()
        )
        logits = network(inputs)
        p = logits.detach().softmax(-1)
        units = torch.eye(logits.shape[1], dtype=p.dtype, device=device)[:, None].expand(
            -1, len(p), -1
        )
        [jacobian] = grad(logits, inputs, units, is_grads_batched=True)
        jacobian = jacobian.flatten(2).transpose(0, 1)  # [B, K, D]
        root = p.sqrt()[..., None] * (jacobian - (p[:, None] @ jacobian))
        gram = root @ root.mT
        return (
            torch.stack([gram.diagonal(dim1=1, dim2=2).sum(1), torch.linalg.matrix_norm(gram)])
            .cpu()
            .numpy()
        )

    batch = max(1, outputs.batch_size(device) // 10)
    trace, norm = np.concatenate([np.empty((2, 0)), *devices.stream(part, len(x), batch)], 1)
    return [{"trace": trace, "norm": norm}]


def _task(networks, x, labels, loss, dtype, how, warn, precise):
    [network] = networks
    device, scaling = outputs.device_of(network), outputs.scaling_of(network, x, None)
    network = outputs.in_precision(network, dtype)

    def losses(inputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (precise_loss if precise else record_loss)(network(inputs), y, loss)

    parts = []
    with warnings.catch_warnings():
        if not warn:
            warnings.simplefilter("ignore", UserWarning)
        for start in range(0, len(x), CONVERTED):
            part = outputs.inputs(
                x, start, start + CONVERTED, device, outputs.PRECISIONS[dtype], scaling
            )
            parts.append(
                zero_order_trace(
                    losses, part, **how, y=labels[start : start + CONVERTED], first=start
                )
            )
    return [{"curvature": np.concatenate(parts)}]


# ---------------------------------------------------------------------------------------------------------------- the parts


def _check(name: str, count: int, seed: int, h: float = 1.0) -> float:
    """Check the arguments and return the step h."""
    check_count(name, count)
    check_whole("seed", seed, 0)
    if not 0 < check_range("h", h, high=1e300):
        raise MiaError(f"h = {h!r} is out of range: a step above 0 is needed, such as 1e-3.")
    return float(h)


def _streamed(
    terms: Callable,
    loss: Callable,
    x: torch.Tensor,
    y,
    batch: int | None,
    first: int,
    probes: int,
    products: bool = True,
) -> np.ndarray:
    """Sums over the probes of one slice of records after the other, float64 [N]: `terms(times_hessian, inputs, number of the
    first, first and last probe)` gives their terms [k, B]; without `products` from the losses, four a probe."""
    x, batch = _points(x), outputs.check_batch(batch)
    check_whole("first", first, 0, 2**30)
    check_type("loss", loss, Callable, "It makes losses [B] of inputs [B, ...].")
    most, losses_each = outputs.batch_size(x.device), 1 if products else 4
    if x.dtype == torch.float64 and x.device.type == "cpu":
        most //= 4  # what stays in its caches, for convolutions lay each number out many times over
    if y is not None:
        labels = check_labels("y", y, records=len(x))
        y = torch.as_tensor(np.array(labels), device=x.device)

    def part(start: int, stop: int) -> np.ndarray:
        inputs, losses = x[start:stop], _of_points(loss, None if y is None else y[start:stop])
        if start == first == 0:
            _check_apart(losses, inputs)
        given = _hessian(losses, inputs) if products else losses
        together = max(1, most // (losses_each * (stop - start)))
        total = torch.zeros(stop - start, dtype=x.dtype, device=x.device)
        for low in range(0, probes, together):
            total += terms(given, inputs, first + start, low, min(probes, low + together)).sum(0)
        return total.double().cpu().numpy()

    batch = batch or (max(1, len(x)) if y is None else max(1, most // (losses_each * probes)))
    with devices.plain_float32():
        return np.concatenate([np.empty(0), *devices.stream(part, len(x), batch)])


def _points(x) -> torch.Tensor:
    """The records as a tensor of float32 or float64; any other type is refused."""
    x = torch.as_tensor(outputs.check_records(x))
    if x.dtype not in outputs.PRECISIONS.values():
        raise MiaError(
            f"x is of type {x.dtype}: give float64 (or float32), for it decides the arithmetic."
        )
    return x


def _of_points(loss: Callable, labels: torch.Tensor | None) -> Callable:
    """The loss as a function of several points a record, [k, B, ...] -> [k, B]."""

    def losses(points: torch.Tensor) -> torch.Tensor:
        if labels is None:
            values = [loss(point) for point in points]
        else:
            values = [loss(points.flatten(0, 1), labels.repeat(len(points)))]
        wanted = points.shape[0] * points.shape[1] // len(values)
        shape = (
            tuple(values[0].shape)
            if isinstance(values[0], torch.Tensor)
            else type(values[0]).__name__
        )
        if shape != (wanted,):
            raise MiaError(
                f"loss gave an array of shape {shape} for {wanted} inputs: it must give [{wanted}], a number for "
                "each and not their mean."
            )
        return torch.cat(values).view(points.shape[:2])

    return losses


def _check_apart(losses: Callable, x: torch.Tensor) -> None:
    """Refuse a loss that is another one when the first record of the batch is: then no trace is of a record alone."""
    with torch.no_grad():
        before, after = (losses(one[None])[0, 1:] for one in (x, torch.cat([x[-1:], x[1:]])))
    rounding = 1e-4 * before.abs().max().item() if len(before) else 0.0
    if not torch.allclose(before, after, rtol=1e-3, atol=rounding, equal_nan=True):
        raise MiaError(
            "loss of a record depends on the others of its batch, or is another one at each call, as of batch normalisation "
            "or dropout that was left in training mode: its curvature would be none of a record's. Call model.eval() first."
        )


def _probes(x: torch.Tensor, seed: int, first: int, low: int, high: int) -> torch.Tensor:
    """Probes `low` to `high` of the records `first`, ... in `x` [B, ...]: +1 or -1, [high - low, B, ...]."""
    key = int(np.random.SeedSequence(seed).generate_state(1).view(np.int32)[0])
    numbers = torch.arange(low, high, dtype=torch.int32, device=x.device)[:, None, None]
    records = torch.arange(first, first + len(x), dtype=torch.int32, device=x.device)[:, None]
    size, bits = x[0].numel(), torch.arange(32, dtype=torch.int32, device=x.device)
    words = torch.arange(-(-size // 32), dtype=torch.int32, device=x.device)  # each gives 32 signs
    mixed = scramble(records * 668265263 + scramble(numbers * 374761393 + key))
    signs = (scramble(words * -1640531535 + mixed)[..., None] >> bits & 1).flatten(2)[..., :size]
    return (1 - 2 * signs.to(x.dtype)).view(high - low, *x.shape)


def _pairs(x: torch.Tensor, seed: int, first: int, low: int, high: int) -> tuple[torch.Tensor, ...]:
    """Vectors u and v of the probes `low` to `high` of four losses, each [high - low, B, ...]."""
    return _probes(x, seed, first, 2 * low, 2 * high).unflatten(0, (-1, 2)).unbind(1)


def _difference(
    losses: Callable, x: torch.Tensor, u: torch.Tensor, v: torch.Tensor, h: float
) -> torch.Tensor:
    """The four-point difference of the losses of x [B, ...] along u and v [k, B, ...]: [k, B]."""
    together, difference = h * (u + v), h * (u - v)
    a, b, c, d = losses(
        torch.cat([x + together, x + difference, x - difference, x - together])
    ).unflatten(0, (4, -1))
    return (a - b) - (c - d)  # differences of numbers so close are exact


def _warn_of_rounding(
    losses: Callable, x: torch.Tensor, u: torch.Tensor, v: torch.Tensor, h: float, size: float
) -> None:
    """Compare with a step so small that all of the difference is rounding; that of the losses does not depend on the step."""
    eps = torch.finfo(x.dtype).eps
    if not size and (x + 2 * h == x).any():
        warnings.warn(
            f"h = {h:g} is so far below the rounding of {x.dtype} (eps = {eps:.1e}) that x does not move: every trace is "
            "0. Give x and the loss in float64, or a larger h.",
            stacklevel=2,
        )
    small = min(h, max(h / 1000, 64 * eps * x.abs().max().item()))  # a point must still move
    rounding = _difference(losses, x, u, v, small).abs().mean().item()
    if rounding > 0.1 * size:
        unit = 4 * h * h
        warnings.warn(
            f"h = {h:g} is at the rounding floor of {x.dtype} (eps = {eps:.1e}): rounding alone moves a probe by "
            f"about {rounding / unit:.1e}, and the probes are of size {size / unit:.1e}. Give x and the loss in "
            "float64, or a larger h.",
            stacklevel=2,
        )


def _hessian(losses: Callable, x: torch.Tensor) -> Callable:
    """Function from vectors [k, B, ...] to their products with the Hessian of each record's loss."""
    # channels last, PyTorch cannot batch some second derivatives
    x = x.detach().contiguous().requires_grad_()
    with torch.enable_grad():
        [slope] = grad(losses(x[None]).sum(), x, create_graph=True)
    if not slope.requires_grad:  # the loss is linear
        return torch.zeros_like
    return lambda v: grad(
        slope, x, v, retain_graph=True, is_grads_batched=True, materialize_grads=True
    )[0]
