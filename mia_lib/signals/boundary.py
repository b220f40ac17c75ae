"""Distance of records to the decision boundary, from predicted classes alone: the score of label-only attacks.

Members tend to lie farther from it (Choquette-Choo et al. 2021; Watson et al. 2022). HopSkipJump (Chen, Jordan and Wainwright
2020, Algorithm 2; untargeted, L2) walks along the boundary towards a record, and the closest point found bounds the distance
from above. All records walk at once: each step asks the model about all of them. Departures from the printed algorithm:

- Binary searches end at ``theta = min(d^(-3/2), 1e-3)`` of the distance for d inputs, and probes for gradients reach
  ``sqrt(d) theta`` of it. Without the minimum, as printed, both are a third of the distance or more for d = 2.
- The result is the closest point on the way, not the last. (The Adversarial Robustness Toolbox returns the point after the
  last step T, before its binary search: where the walk has settled, 1 + 1 / sqrt(T) times as far.)
- All records (and models) have the same random starts and directions, drawn on the CPU. So, between given bounds, what a
  record gets does not depend on the others, unless it starts from one of them.

On images a walk may end near where it starts: from random points distances differ by the seed, from records (`starts=0`) they
are shorter and differ less. Device and batch enter by the rounding of sums only, which may move a point across the boundary,
and with it the rest of that record's walk.
"""

from __future__ import annotations

from mia_lib import _torch  # noqa: F401  before PyTorch, to say what to do without it

# isort: split

import math
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import numpy as np
import torch

from mia_lib.checks import check_finite, check_flag, check_labels
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, brief, check_whole
from mia_lib.signals import outputs
from mia_lib.signals.mapping import map_models, spread
from mia_lib.training import Ensemble, devices


class Distances(NamedTuple):
    """Distances, in the unit of the inputs, infinite where no point beyond the boundary was found, and queries spent."""

    distance: np.ndarray
    queries: np.ndarray


@torch.no_grad()
def hop_skip_jump(
    predict: Callable,
    x: torch.Tensor,
    labels,
    queries: int,
    *,
    seed: int = 0,
    low=None,
    high=None,
    signed: bool = False,
    evaluations: int = 100,
    starts: int = 100,
) -> Distances:
    """L2 distance of each record to the nearest point found that a model puts in another class.

    Step t goes from z_t, just beyond the boundary of the record x at the distance r = ||z_t - x|| ::

        direction  v = sum_b (phi_b - mean phi) u_b, made a unit vector; u_1, ..., u_B uniform on the sphere, B = B_0 sqrt(t),
                   phi_b = +1 if z_t + sqrt(d) theta r u_b is beyond the boundary, else -1
        step       z = z_t + s v, where s = r / sqrt(t) is halved until z is beyond the boundary
        search     z_(t+1) by bisection between x and z                                                (Algorithm 1)

    A step begins as long as the budget allows a direction and one query more, so some of it may be left. A smaller budget only
    cuts the walk short; a larger one never gives more distance.

    Args:
        predict: function from inputs [B, ...], of the type of x and on its device, to classes int [B].
        x: [N, ...] of type float32 or float64, which points have, too.
        labels: classes int [N].
        queries: budget of each record, one of which goes for its own class. It must do for a step even from the last random
            start: 222 for up to 100 inputs, a few more beyond.
        seed: of starts and directions.
        low, high: bounds of the inputs, numbers or arrays that fit a record, to which points are clipped. Without bounds
            nothing is clipped, and random starts are from the range that each input has in x.
        signed: a wrongly classified record gets minus the distance to the nearest point found of class `labels`, otherwise 0.
        evaluations: B_0, probes for the first direction; later ones have at most 10,000.
        starts: random points, uniform between the bounds, tried one by one. Where they fail the nearest record beyond the
            boundary is the start.

    Returns:
        distances float64 [N] and queries int64 [N].

    Raises:
        MiaError: x of another type; labels of another shape; no budget, or too small a one; evaluations below 2 or
            starts below 0; one bound alone, or records outside; `predict` gives anything but a class for each input.
    """
    labels = torch.from_numpy(np.array(check_labels("labels", labels)))
    check_flag("signed", signed), check_whole("seed", seed, 0)
    box = _checked(x, labels, queries, low, high, evaluations, starts)
    model = _Model(predict, x.flatten(1), labels.to(x.device).long(), queries, x.shape[1:])
    walks = model.right | signed
    rows, distance = walks.nonzero()[:, 0], torch.where(walks, math.inf, 0.0).double()

    draws = torch.Generator().manual_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
    trials = torch.rand(starts, model.size, generator=draws, dtype=x.dtype).to(x.device)
    if len(rows):
        bottom, top = box or model.x.aminmax(dim=0)
        rows, point = _start(model, rows, bottom + trials * (top - bottom))
        point = _search(model, rows, point)
    for t in count(1) if len(rows) else ():
        distance[rows] = torch.minimum(distance[rows], model.distance(rows, point))
        probes = min(int(evaluations * math.sqrt(t)), 10_000)
        able = model.left(rows) > probes
        rows, point = rows[able], point[able]
        if not len(rows):
            break
        noise = torch.randn(probes, model.size, generator=draws, dtype=x.dtype).to(x.device)
        direction = _direction(model, rows, point, torch.nn.functional.normalize(noise, dim=1), box)
        point = _search(model, rows, _step(model, rows, point, direction, t, box))
    return Distances(
        torch.where(model.right, distance, 0.0 - distance).cpu().numpy(), model.used.cpu().numpy()
    )


def distance(
    models: Ensemble,
    records: Dataset,
    queries: int,
    seed: int = 0,
    signed: bool = False,
    starts: int = 100,
    judged: np.ndarray | None = None,
) -> Distances:
    """Distance of each record to the decision boundary of each model by `hop_skip_jump`, kept in the store.

    Inputs are in the unit that networks take: images run from -1 to 1, or as the models' `scaling`
    has them, where points stay. Tables have no bounds.

    Args:
        queries: budget of each record and model. seed: of starts and directions, which all models share.
        signed: whether wrongly classified records have a negative distance, which makes it continuous, and not 0.
        starts: random points to try first; with 0 a walk begins at the nearest record beyond the boundary.
        judged: bool [M, N], the records that each model is asked about; all when None.

    Returns:
        distances float32 [M, N], not a number where not judged, and queries int64 [M, N].

    Raises:
        MiaError: a budget that does not pay for a walk, or for so many `starts`.
    """
    check_budget(queries, math.prod(records.shape), 100, starts)
    how = {
        "queries": int(queries),
        "seed": check_whole("seed", seed, 0),
        "signed": check_flag("signed", signed),
        "starts": int(starts),
    }
    results = map_models(
        _task,
        models,
        {"kind": "boundary"},
        "boundary distances",
        records=records,
        judged=judged,
        **how,
    )
    distances, used = (spread(results, name, judged) for name in Distances._fields)
    return Distances(distances, np.nan_to_num(used).astype(np.int64))


def _task(networks, x, labels, loss, queries, **how):
    [network] = networks
    device, network = outputs.device_of(network), outputs.in_precision(network, "float32")
    scaling = outputs.scaling_of(network, x, None)
    ends = np.zeros((2, *x.shape[1:]), np.uint8)
    bounds = {}
    if x.ndim == 4:
        ends[1] = 255
        bounds = dict(
            zip(("low", "high"), outputs.inputs(ends, 0, 2, device, scaling=scaling), strict=True)
        )
    points, labels = outputs.inputs(x, 0, len(x), device, scaling=scaling), np.array(labels)
    with devices.plain_float32():
        distances = hop_skip_jump(
            lambda z: network(z).argmax(1), points, labels, queries, **how, **bounds
        )
    return [{"distance": distances.distance.astype(np.float32), "queries": distances.queries}]


class _Model:
    """A model that is asked, and the number of queries spent on each record. Points are flat, [n,
    d]; `rows` [n] are the records that they belong to."""

    def __init__(self, predict, x, labels, budget, shape):
        self.predict = predict
        self.x = x
        self.labels = labels
        self.budget = budget
        self.shape = shape
        self.size = x.shape[1]
        # inputs at a time, at most
        self.batch = max(outputs.batch_size(x.device), 2**18 // max(1, self.size))
        self.theta, self.halvings = _tolerance(self.size)
        self.classes = self.ask(x)
        self.right = self.classes == labels
        self.used = torch.ones_like(self.classes)

    def ask(self, points: torch.Tensor) -> torch.Tensor:
        def part(i, j):
            classes = torch.as_tensor(
                self.predict(points[i:j].view(-1, *self.shape)), device=points.device
            )
            if classes.shape == (j - i,) and not classes.is_floating_point():
                return classes.long()
            raise MiaError(
                f"predict gave an array of shape {tuple(classes.shape)} and type {classes.dtype} for {j - i} "
                f"inputs: it must give [{j - i}] integers, the class of each."
            )

        return torch.cat([self.labels[:0], *devices.stream(part, len(points), self.batch)])

    def beyond(self, rows: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """True where classes [n, k] are those of the other side of the boundary, seen from each
        record."""
        return (classes != self.labels[rows, None]) == self.right[rows, None]

    def hits(self, rows: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        """True where points [n, k, d] are beyond the boundary, [n, k]; each costs a query."""
        self.used[rows] += points.shape[1]
        return self.beyond(rows, self.ask(points.flatten(0, 1)).view(points.shape[:2]))

    def left(self, rows: torch.Tensor) -> torch.Tensor:
        return self.budget - self.used[rows]

    def distance(self, rows: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        return torch.linalg.vector_norm(points.double() - self.x[rows].double(), dim=1)


def _start(model, rows, trials):
    """Rows of records for which a point beyond the boundary is known, and this point: the first
    trial beyond it, or else the nearest record."""
    point, has_start, without = model.x.clone(), torch.zeros_like(model.right), rows
    for trial in trials:
        hit = model.hits(without, trial.expand(len(without), 1, -1))[:, 0]
        point[without[hit]], has_start[without[hit]] = trial, True
        without = without[~hit]
    for part in without.split(max(1, 2**24 // len(model.x))):
        distances = torch.cdist(model.x[part], model.x).masked_fill(
            ~model.beyond(part, model.classes), math.inf
        )
        nearest = distances.min(1)
        point[part], has_start[part] = model.x[nearest.indices], nearest.values < math.inf
    rows = rows[has_start[rows]]
    return rows, point[rows]


def _search(model, rows, outer):
    """Bisection between records and points beyond the boundary: the nearest point known to be beyond."""
    near, far, point = torch.zeros_like(outer[:, :1]), torch.ones_like(outer[:, :1]), outer.clone()
    for _ in range(model.halvings):
        able = (model.left(rows) > 0).nonzero()[:, 0]
        middle, x = (near[able] + far[able]) / 2, model.x[rows[able]]
        trial = x + middle * (outer[able] - x)
        hit = model.hits(rows[able], trial[:, None])[:, 0]
        near[able[~hit]], far[able[hit]], point[able[hit]] = middle[~hit], middle[hit], trial[hit]
    return point


def _direction(model, rows, point, noise, box):
    """Unit vectors from the boundary to the other side, estimated at points [n, d] with probes along `noise` [B, d]."""
    reach = (math.sqrt(model.size) * model.theta * model.distance(rows, point)).to(point.dtype)[
        :, None, None
    ]

    def part(i, j):
        probes = point[i:j, None] + reach[i:j] * noise
        probes = probes if box is None else probes.clamp(*box)
        phi = 2 * model.hits(rows[i:j], probes).to(point.dtype) - 1
        mean = phi.mean(1, keepdim=True)
        # equal answers tell nothing: as the authors, along the mean
        phi = torch.where(mean.abs() == 1, phi, phi - mean)
        if box is None:
            return phi @ noise
        return (phi[:, None] @ ((probes - point[i:j, None]) / reach[i:j]))[:, 0]

    together = max(1, model.batch // len(noise))
    directions = [part(i, min(len(rows), i + together)) for i in range(0, len(rows), together)]
    return torch.nn.functional.normalize(torch.cat(directions), dim=1)


def _step(model, rows, point, direction, t, box):
    """Points along the direction, after the first of the steps r, r/2, r/4, ... over sqrt(t) that ends beyond the boundary."""
    length = (model.distance(rows, point) / math.sqrt(t)).to(point.dtype)[:, None]
    point, pending = point.clone(), torch.arange(len(rows), device=rows.device)
    while len(pending := pending[model.left(rows[pending]) > 0]):
        trial = point[pending] + length[pending] * direction[pending]
        trial = trial if box is None else trial.clamp(*box)
        hit = model.hits(rows[pending], trial[:, None])[:, 0]
        point[pending[hit]], pending = trial[hit], pending[~hit]
        length[pending] /= 2
    return point


def _tolerance(size: int) -> tuple[float, int]:
    """Tolerance of a bisection for records of `size` inputs, and the queries that it takes."""
    theta = min(size**-1.5, 1e-3)
    return theta, math.ceil(-math.log2(theta))


def check_budget(queries, size: int, evaluations: int = 100, starts: int = 100) -> None:
    """Refuse a budget that is none, or too small for one step with records of `size` inputs, and name the least."""
    check_whole("evaluations", evaluations, 2)
    check_whole("starts", starts, 0)
    least = 2 + starts + evaluations + 2 * _tolerance(size)[1]
    if not isinstance(queries, int | np.integer) or queries < least:
        raise MiaError(
            f"queries = {brief(queries)}: give the number of predictions to ask for each record, at least {least} "
            f"for {size} inputs; 2,500 is usual."
        )


def _checked(x, labels, queries, low, high, evaluations, starts):
    """Check all arguments and return the bounds in the shape of a flat record, or None."""
    if x.dtype not in outputs.PRECISIONS.values() or x.ndim < 2:
        raise MiaError(
            f"x is of type {x.dtype} and shape {tuple(x.shape)}: give float32 or float64, [N, ...]."
        )
    if labels.shape != x.shape[:1]:
        raise MiaError(
            f"labels have shape {tuple(labels.shape)}: give [{len(x)}], the class of each record."
        )
    if not torch.isfinite(x).all():
        check_finite(
            "x",
            x.cpu().numpy(),
            "records",
            "Leave them out: random starts are between the values of all.",
        )
    check_budget(queries, math.prod(x.shape[1:]), evaluations, starts)
    if low is None and high is None:
        return None
    if low is None or high is None:
        raise MiaError(f"low = {low!r} and high = {high!r}: give both bounds or none.")
    low, high = (
        torch.as_tensor(bound).to(x).expand(x.shape[1:]).flatten() for bound in (low, high)
    )
    if not ((low <= x.flatten(1)) & (x.flatten(1) <= high)).all():
        raise MiaError(
            f"low and high leave records outside, whose values run from {x.min():g} to {x.max():g}: widen the "
            "bounds, or give none."
        )
    return low, high
