"""What stands in the way of an attack in an audit, what it asks, and how long it takes.

All are functions of `audit.inputs.AuditInputs`; those of `audit.attacks.MeasuredCosts`, too, read what was measured on a few
records. An obstacle is a sentence, "" where there is none.
"""

from __future__ import annotations

import math

from mia_lib.errors import MiaError

MOST_PARAMETERS = 3000  # of the largest network whose Hessian is computed
MOST_GRADIENTS = 3e8  # numbers, of the largest table of gradients
PROBES = 4  # of the curvature
EPOCHS = 20  # of a quantile regression


def _lack_of_weights(inputs) -> str:
    kind = inputs.target.kind
    return "" if kind == "network" else f"needs weights, and a {kind} was given"


def lack_of_gradients(inputs, costs) -> str:
    """Why a record's gradient cannot be computed."""
    return _lack_of_weights(inputs) or costs.obstacles.get("gradient", "")


def _lack_of_steps(inputs) -> str:
    if inputs.pool.is_frame:
        return "needs records that are numbers, which can be moved by small steps, and these are columns of a table"
    if inputs.pool.x.dtype.kind == "f":
        return ""
    return "needs records that can be moved by small steps, and whole numbers cannot"


def lack_of_curvature(inputs, costs) -> str:
    """Why the curvature of the loss cannot be computed, or not with so few queries."""
    if inputs.target.kind == "program":
        return "needs derivatives, or outputs in float64; the program gives neither"
    if inputs.options.queries < (least := queries_of_curvature(inputs)):
        return f"asks {least} times about each record, and queries = {inputs.options.queries}"
    steps = _lack_of_steps(inputs) if inputs.target.kind == "function" else ""
    return steps or costs.obstacles.get("curve", "")


def queries_of_curvature(inputs) -> int:
    """Queries for each record, of differences; a network gives derivatives."""
    return 0 if inputs.target.kind == "network" else 4 * PROBES


def lack_of_boundary(inputs, costs) -> str:
    """Why the distance to the decision boundary cannot be found, or not with so few queries."""
    from mia_lib.signals import boundary  # which needs PyTorch

    if obstacle := _lack_of_steps(inputs):
        return obstacle
    try:
        boundary.check_budget(inputs.options.queries, math.prod(inputs.pool.shape))
    except MiaError as problem:
        return str(problem).rstrip(".")
    return ""


def lack_of_regression(inputs, costs) -> str:
    """Why no network can be fitted to public records."""
    if inputs.pool.is_frame:
        return "fits a network to records that are numbers, and these are columns of a table"
    return costs.obstacles.get("regression", "")


def lack_of_hessian(inputs, costs) -> str:
    """Why the Hessian cannot be computed, or is none of a model trained by SGD."""
    if obstacle := _lack_of_weights(inputs):
        return obstacle
    size, recipe = inputs.target.parameters, inputs.recipe
    if size > MOST_PARAMETERS:
        frozen = ", frozen ones included" if inputs.target.frozen else ""
        return f"too many parameters: {size:,}{frozen}, and the Hessian of at most {MOST_PARAMETERS:,} is computed"
    if size * len(inputs.pool) > MOST_GRADIENTS:
        return f"too many gradients: {len(inputs.pool):,} records with {size:,} parameters each"
    if recipe is None:
        return "needs a training recipe, of which it takes learning rate and weight decay"
    if recipe.optimizer != "sgd":
        return f"is for SGD, and the recipe says {recipe.optimizer}"
    return costs.obstacles.get("gradient", "")


def seconds_of_hessian(inputs, costs) -> float:
    """Seconds of the gradients of all records, the Hessian of the members and its inverse."""
    size = inputs.target.parameters
    return costs.gradient * (len(inputs.pool) + size * len(inputs.members) / 50) + 2e-10 * size**3
