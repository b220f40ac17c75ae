"""The attacks of an audit: those of the registry that it can show signals, and those that ask, train or compute a Hessian;
whether each is possible, and what it costs. None is tuned on the records that it judges.

To add one, add an entry to `mia_lib.attacks.registry.ATTACKS` and name it in `options.ATTACKS`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from mia_lib import signals
from mia_lib.attacks import Needs, iha, quantile, registry
from mia_lib.attacks.quantile.networks import NetworkConfig
from mia_lib.attacks.registry import BERTRAN, CHOQUETTE, LOG_ODDS, SURI, Attack
from mia_lib.audit import options
from mia_lib.audit.inputs import AuditInputs
from mia_lib.errors import MiaError
from mia_lib.signals import boundary, curvature, hessian
from mia_lib.signals import outputs as evaluation
from mia_lib.training import Ensemble, TrainConfig
from mia_lib.training.losses import precise_loss

MOST_PARAMETERS = 3000  # of the largest network whose Hessian is computed
MOST_GRADIENTS = 3e8  # numbers, of the largest table of gradients
PROBES, STEP = 4, 1e-3  # of the curvature; the step of differences in units of the input
DAMPING = 0.2  # of the Hessian
OF_MODELS = {
    "loss": signals.loss,
    LOG_ODDS: signals.logit_scaled_confidence,
}  # signals that references are asked for


@dataclass(frozen=True, eq=False)
class AuditSignals:
    """Signals that attacks see, as `registry.TargetSignals` says: of what the audit has, and of
    references if there are any. A signal with one number a record is float64."""

    inputs: AuditInputs
    models: Ensemble | None = None  # R references, trained on records of the pool

    @property
    def labels(self) -> np.ndarray:
        """Class of each record of the pool, int [N]."""
        return self.inputs.pool.y

    def own(self, signal: str) -> np.ndarray:
        """A signal of the target for the pool, [N]; "probabilities" and "outputs" as they are, [N, K]."""
        if signal == "gradient_norm":
            return np.sqrt(_gradients(self.inputs, lambda block: (block**2).sum(1)))
        if signal == "curvature":
            return traces(self.inputs, self.inputs.pool.x, self.inputs.pool.y, PROBES)
        values = self.inputs.target.scalars(self.inputs.pool)[signal]
        return values if values.ndim > 1 else values.astype(np.float64)

    def references(self, signal: str) -> tuple[np.ndarray, np.ndarray]:
        """A signal of the references for the pool, [R, N], and whom each was trained on, bool [R, N]."""
        return OF_MODELS[signal](self.models, self.inputs.pool).astype(
            np.float64
        ), self.models.members

    def public(self, signal: str, most: int | None = None) -> np.ndarray:
        """A signal of the target for public records, [Q]."""
        return self.inputs.target.scalars(self.inputs.public)[signal].astype(np.float64)[:most]

    def public_references(self, signal: str, most: int | None = None) -> np.ndarray:
        """A signal of the references for public records, [R, Q]."""
        return OF_MODELS[signal](self.models, self.inputs.public).astype(np.float64)[:, :most]


@dataclass(frozen=True)
class MeasuredCosts:
    """Seconds that were measured on a few records."""

    answer: float  # of outputs of a record
    gradient: float = 0.0  # of a record's gradient
    epoch: float | None = None  # of training on a record once, None without a recipe
    starting: float = 0.0  # of a training, whatever its length
    curve: float = 0.0  # of one probe of a record's curvature
    regression: float = 0.0  # of one record in one epoch of a quantile regression
    obstacles: Mapping[str, str] = field(
        default_factory=dict
    )  # why an attack, or DP-SGD, cannot be

    def training(self, recipe: TrainConfig, records: int) -> float:
        """Seconds of a training on `records` records."""
        return self.starting + self.epoch * records * max(1, recipe.epochs)


# ------------------------------------------------------------------------------------------------------------ what is lacking


def find_obstacle(attack: Attack, inputs: AuditInputs, costs: MeasuredCosts) -> str:
    """Why an attack is not possible, or ""."""
    recipe = inputs.recipe
    if attack.name in inputs.options.without:
        return options.LEFT_OUT
    if attack.takes_references and options.REFERENCES in inputs.options.without:
        return "needs references, which were left out"
    if inputs.target.labels and attack.needs.access != "label" and not attack.takes_references:
        return "needs more than predicted classes"
    if obstacle := attack.obstacle(inputs) or costs.obstacles.get(
        "gradient norm" if attack.audits else attack.name, ""
    ):
        return obstacle
    if attack.takes_references and recipe is None:
        return "needs a training recipe"
    if attack.takes_references and "loss" in attack.signals and recipe.loss != inputs.target.loss:
        return f"needs one loss for the model and its references, and the recipe's {recipe.loss} is none of probabilities"
    return "needs public records" if attack.public and not inputs.public else ""


def _lack_of_weights(inputs: AuditInputs) -> str:
    return (
        ""
        if inputs.target.kind == "network"
        else f"needs weights, and a {inputs.target.kind} was given"
    )


def _lack_of_steps(inputs: AuditInputs) -> str:
    moves = inputs.pool.x.dtype.kind == "f"
    return (
        "" if moves else "needs records that can be moved by small steps, and whole numbers cannot"
    )


def _obstacle_of_curvature(inputs: AuditInputs) -> str:
    if inputs.target.kind == "program":
        return "needs derivatives, or outputs in float64; the program gives neither"
    if inputs.options.queries < (least := _queries_of_curvature(inputs)):
        return f"asks {least} times about each record, and queries = {inputs.options.queries}"
    return _lack_of_steps(inputs) if inputs.target.kind == "function" else ""


def _queries_of_curvature(inputs: AuditInputs) -> int:
    return 0 if inputs.target.kind == "network" else 4 * PROBES


def _obstacle_of_boundary(inputs: AuditInputs) -> str:
    if obstacle := _lack_of_steps(inputs):
        return obstacle
    try:
        boundary.check_budget(inputs.options.queries, math.prod(inputs.pool.shape))
    except MiaError as problem:
        return str(problem).rstrip(".")
    return ""


def _obstacle_of_hessian(inputs: AuditInputs) -> str:
    if obstacle := _lack_of_weights(inputs):
        return obstacle
    size, recipe = inputs.target.parameters, inputs.recipe
    if size > MOST_PARAMETERS:
        return f"too many parameters: {size:,}, and the Hessian of at most {MOST_PARAMETERS:,} is computed"
    if size * len(inputs.pool) > MOST_GRADIENTS:
        return f"too many gradients: {len(inputs.pool):,} records with {size:,} parameters each"
    if recipe is None:
        return "needs a training recipe, of which it takes learning rate and weight decay"
    return (
        "" if recipe.optimizer == "sgd" else f"is for SGD, and the recipe says {recipe.optimizer}"
    )


def _seconds_of_iha(inputs: AuditInputs, costs: MeasuredCosts) -> float:
    size = inputs.target.parameters
    return costs.gradient * (len(inputs.pool) + size * len(inputs.members) / 50) + 2e-10 * size**3


def _seconds_of_regression(inputs: AuditInputs, costs: MeasuredCosts) -> float:
    return len(inputs.public) * (costs.answer + costs.regression * regression(inputs).epochs)


# ------------------------------------------------------------------------------------------------------------------- scores


def regression(inputs: AuditInputs) -> NetworkConfig:
    """The network of a quantile regression on the public records."""
    big = inputs.pool.is_image and min(inputs.pool.shape[:2]) >= 16
    return NetworkConfig(
        "strided_cnn:8,16,32" if big else "mlp:64",
        epochs=20,
        batch_size=64,
        seed=inputs.options.seed,
    )


def _quantile(view: AuditSignals) -> np.ndarray:
    inputs, config, seed = view.inputs, regression(view.inputs), view.inputs.options.seed
    public, pool = inputs.public, inputs.pool
    score, own = (inputs.target.scalars(records)["hinge"] for records in (public, pool))
    fit, validation = np.split(
        np.random.default_rng([37, seed]).permutation(len(public)), [round(0.8 * len(public))]
    )
    model = quantile.GaussianQuantile(config, len(pool.classes))
    model.fit(
        public.x[fit],
        score[fit],
        public.y[fit],
        validation=(public.x[validation], score[validation], public.y[validation]),
    )
    return model.position(pool.x, own, pool.y)


def _gradients(inputs: AuditInputs, use: Callable) -> np.ndarray:
    blocks = signals.record_gradients(
        inputs.target.model,
        inputs.pool.x,
        inputs.pool.y,
        inputs.target.loss,
        "float64",
        scaling=inputs.target.scaling,
    )
    return np.concatenate([use(block) for block in blocks])


def traces(inputs: AuditInputs, x: np.ndarray, y: np.ndarray, probes: int) -> np.ndarray:
    """Curvature of the loss of each record, [n]: from derivatives of a network, or from differences
    of losses of any other model, which is asked in float64."""
    target, seed = inputs.target, inputs.options.seed
    if target.kind == "network":
        network = evaluation.in_precision(target.model, "float64")
        blocks = []
        for start in range(0, len(x), 500):  # all records in float64 would take gigabytes
            part = evaluation.inputs(
                x, start, start + 500, evaluation.device_of(network), torch.float64, target.fed
            )
            blocks.append(
                curvature.hutchinson_trace(
                    lambda at, labels: precise_loss(network(at), labels, target.loss),
                    part,
                    probes,
                    seed,
                    y=y[start : start + 500],
                    first=start,
                )
            )
        return np.concatenate(blocks)

    def of_outputs(part: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        outputs = target.ask(part.numpy()).astype(np.float64)
        if target.outputs == "probabilities":
            outputs = np.log(np.maximum(outputs, np.finfo(np.float64).tiny))
        return precise_loss(torch.from_numpy(outputs), labels, target.loss)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return curvature.zero_order_trace(
            of_outputs, torch.from_numpy(x.astype(np.float64)), probes, STEP, seed, y=y
        )


def _boundary_distance(view: AuditSignals) -> np.ndarray:
    """L2 distance of each record to the decision boundary, from predicted classes; negative of a record in a wrong class,
    [N]."""
    inputs, pool, options = view.inputs, view.inputs.pool, view.inputs.options

    def predict(points: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(inputs.target.ask(points.numpy()).argmax(1))

    return boundary.hop_skip_jump(
        predict, torch.tensor(pool.x), pool.y, options.queries, seed=options.seed, signed=True
    ).distance


def _iha(view: AuditSignals) -> np.ndarray:
    """Scores of the inverse Hessian attack, [N]."""
    inputs, recipe, inside, members = (
        view.inputs,
        view.inputs.recipe,
        view.inputs.inside,
        view.inputs.members,
    )
    gradients = _gradients(inputs, lambda block: block)
    spectrum = hessian.spectrum(
        hessian.exact(
            inputs.target.model,
            members.x,
            members.y,
            inputs.target.loss,
            scaling=inputs.target.scaling,
        )
    )
    try:
        inverse = spectrum.inverse(DAMPING)
    except MiaError as problem:
        raise MiaError(
            f"the model is not at a minimum of its loss, which the attack supposes: the Hessian's smallest "
            f"eigenvalue is {spectrum.values[0]:.3g}, and the audit adds {DAMPING:g}. A model that was trained "
            f"for longer may be at one."
        ) from problem
    return iha.scores(
        view.own("loss"),
        gradients,
        inverse,
        gradients[inside].mean(0),
        inside,
        len(members),
        recipe.learning_rate,
        recipe.momentum,
        recipe.weight_decay,
    )[0]


def _gradient_alone(view: AuditSignals) -> np.ndarray:
    inputs, inside, n = view.inputs, view.inputs.inside, len(view.inputs.members)
    gradients = _gradients(inputs, lambda block: block)
    theta = np.concatenate(
        [w.detach().cpu().double().numpy().ravel() for w in inputs.target.model.parameters()]
    )
    direction = gradients[inside].mean(0) + inputs.recipe.weight_decay * theta
    return iha.stationarity(gradients @ direction, (gradients**2).sum(1), inside / n, n)


# -------------------------------------------------------------------------------------------------------------- the attacks

MADE_HERE = {
    attack.name: attack
    for attack in (  # those that ask, train or compute, and what that costs
        Attack(
            "quantile regression",
            BERTRAN,
            registry.REGRESSION,
            ("hinge",),
            _quantile,
            public=True,
            seconds=_seconds_of_regression,
        ),
        Attack(
            "boundary distance",
            CHOQUETTE,
            Needs("label", "none", "nothing"),
            (),
            _boundary_distance,
            obstacle=_obstacle_of_boundary,
            queries=lambda inputs: inputs.options.queries,
            seconds=lambda inputs, costs: costs.answer * inputs.options.queries * len(inputs.pool),
        ),
        Attack(
            "IHA",
            SURI,
            iha.scores.needs,
            ("loss",),
            _iha,
            audits=True,
            obstacle=_obstacle_of_hessian,
            seconds=_seconds_of_iha,
        ),
        Attack(
            "gradient alone",
            SURI,
            iha.stationarity.needs,
            (),
            _gradient_alone,
            audits=True,
            obstacle=_obstacle_of_hessian,
        ),
        replace(
            registry.ATTACKS["curvature"],
            obstacle=_obstacle_of_curvature,
            queries=_queries_of_curvature,
            seconds=lambda inputs, costs: costs.curve * PROBES * len(inputs.pool),
        ),
        replace(
            registry.ATTACKS["gradient norm"],
            obstacle=_lack_of_weights,
            seconds=lambda inputs, costs: costs.gradient * len(inputs.pool),
        ),
    )
}
ATTACKS = {name: MADE_HERE.get(name) or registry.ATTACKS[name] for name in options.ATTACKS}
TOOLS = frozenset(
    attack.name for attack in ATTACKS.values() if attack.audits
)  # that are told who is a member


def score(attack: Attack, view: AuditSignals) -> np.ndarray:
    """Scores of an attack, float64 [N], finite, higher for members; a `MiaError` where it gives none."""
    scores = np.asarray(attack.score(view), np.float64)
    if np.isnan(scores).any():
        raise MiaError(f"{attack.name} gives {int(np.isnan(scores).sum())} records no score.")
    return np.nan_to_num(scores, posinf=np.finfo(np.float32).max, neginf=np.finfo(np.float32).min)
