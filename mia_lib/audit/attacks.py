"""The attacks of an audit: whether each is possible, and the signals that an audit shows them. None is tuned on the records
that it judges.

To add one, give its entry in `mia_lib.attacks.registry.ATTACKS` an `audit_order`; a signal that takes more than outputs has a
function in `COMPUTED`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from mia_lib import signals
from mia_lib.attacks import iha, quantile
from mia_lib.attacks.feasibility import EPOCHS, PROBES
from mia_lib.attacks.quantile.networks import NetworkConfig
from mia_lib.attacks.registry import IN_AUDITS as ATTACKS
from mia_lib.attacks.registry import Attack
from mia_lib.audit.inputs import AuditInputs
from mia_lib.audit.options import LEFT_OUT, REFERENCES
from mia_lib.audit.references import References
from mia_lib.errors import MiaError
from mia_lib.signals import boundary, curvature, hessian
from mia_lib.signals import outputs as evaluation
from mia_lib.training import TrainConfig
from mia_lib.training.losses import precise_loss

STEP = 1e-3  # of differences for the curvature, in units of the input
DAMPING = 0.2  # of the Hessian


@dataclass(frozen=True, eq=False)
class AuditSignals:
    """Signals that attacks see, as `registry.TargetSignals` says: of what the audit has, and of
    references if there are any. A signal with one number a record is float64."""

    inputs: AuditInputs
    models: References | None = None  # R references

    @property
    def labels(self) -> np.ndarray:
        """Class of each record of the pool, int [N]."""
        return self.inputs.pool.y

    def own(self, signal: str) -> np.ndarray:
        """A signal of the target for the pool, [N]; "probabilities" and "outputs" as they are, [N, K]."""
        if signal in COMPUTED:
            return COMPUTED[signal](self.inputs)
        values = self.inputs.target.scalars(self.inputs.pool)[signal]
        return values if values.ndim > 1 else values.astype(np.float64)

    def references(self, signal: str) -> tuple[np.ndarray, np.ndarray]:
        """A signal of the references for the pool, [R, N], and whom each was trained on, bool [R, N]."""
        return self.models.values[signal].astype(np.float64), self.models.members

    def public(self, signal: str, most: int | None = None) -> np.ndarray:
        """A signal of the target for public records, [Q]."""
        return self.inputs.target.scalars(self.inputs.public)[signal].astype(np.float64)[:most]

    def public_references(self, signal: str, most: int | None = None) -> np.ndarray:
        """A signal of the references for public records, [R, Q]."""
        return self.models.public_values[signal].astype(np.float64)[:, :most]


@dataclass(frozen=True)
class MeasuredCosts:
    """Seconds that were measured on a few records."""

    answer: float  # of outputs of a record
    gradient: float = 0.0  # of a record's gradient
    epoch: float | None = None  # of training on a record once, None without a recipe
    starting: float = 0.0  # of a training, whatever its length
    refit: float | None = None  # of a reference that is fitted again, and of its answers
    curve: float = 0.0  # of one probe of a record's curvature
    regression: float = 0.0  # of one record in one epoch of a quantile regression
    # Cost (a name above) or DP-SGD -> why it could not be measured.
    obstacles: Mapping[str, str] = field(default_factory=dict)

    def training(self, recipe: TrainConfig, records: int) -> float:
        """Seconds of a training on `records` records."""
        return self.starting + self.epoch * records * max(1, recipe.epochs)


def find_obstacle(attack: Attack, inputs: AuditInputs, costs: MeasuredCosts) -> str:
    """Why an attack is not possible, or ""."""
    recipe = inputs.recipe
    if attack.name in inputs.options.without:
        return LEFT_OUT
    if attack.takes_references and REFERENCES in inputs.options.without:
        return "needs references, which were left out"
    if inputs.target.labels and attack.needs.access != "label" and not attack.takes_references:
        return "needs more than predicted classes"
    if obstacle := attack.obstacle(inputs, costs):
        return obstacle
    if attack.takes_references and not (recipe or inputs.refits or inputs.given):
        return "needs a training recipe"
    if attack.takes_references and (obstacle := costs.obstacles.get("refit", "")):
        return obstacle
    if (
        attack.public
        and attack.takes_references
        and inputs.given
        and not inputs.given.public_values
    ):
        return "needs what the references say of public records"
    if (
        recipe
        and attack.takes_references
        and "loss" in attack.signals
        and recipe.loss != inputs.target.loss
    ):
        return f"needs one loss for the model and its references, and the recipe's {recipe.loss} is none of probabilities"
    return "needs public records" if attack.public and not inputs.public else ""


def regression(inputs: AuditInputs) -> NetworkConfig:
    """The network of a quantile regression on the public records."""
    big = inputs.pool.is_image and min(inputs.pool.shape[:2]) >= 16
    return NetworkConfig(
        "strided_cnn:8,16,32" if big else "mlp:64",
        epochs=EPOCHS,
        batch_size=64,
        seed=inputs.options.seed,
    )


def _quantile_position(inputs: AuditInputs) -> np.ndarray:
    config, seed = regression(inputs), inputs.options.seed
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


def _gradient_norm(inputs: AuditInputs) -> np.ndarray:
    return np.sqrt(_gradients(inputs, lambda block: (block**2).sum(1)))


def traces(inputs: AuditInputs, x: np.ndarray, y: np.ndarray, probes: int) -> np.ndarray:
    """Curvature of the loss of each record, [n]: from derivatives of a network, or from differences
    of losses of any other model, which is asked in float64."""
    target, seed = inputs.target, inputs.options.seed
    if target.kind == "network":
        network = evaluation.in_precision(target.model, "float64")
        blocks = []
        for start in range(0, len(x), 500):  # all records in float64 would take gigabytes
            part = evaluation.inputs(
                x,
                start,
                start + 500,
                evaluation.device_of(network),
                torch.float64,
                target.input_scaling,
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


def _boundary_distance(inputs: AuditInputs) -> np.ndarray:
    """L2 distance of each record to the decision boundary, from predicted classes; negative of a record in a wrong class,
    [N]."""
    pool, options = inputs.pool, inputs.options

    def predict(points: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(inputs.target.ask(points.numpy()).argmax(1))

    return boundary.hop_skip_jump(
        predict, torch.tensor(pool.x), pool.y, options.queries, seed=options.seed, signed=True
    ).distance


def _iha(inputs: AuditInputs) -> np.ndarray:
    """Scores of the inverse Hessian attack, [N]."""
    recipe, is_member, members = inputs.recipe, inputs.is_member, inputs.members
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
        AuditSignals(inputs).own("loss"),
        gradients,
        inverse,
        gradients[is_member].mean(0),
        is_member,
        len(members),
        recipe.learning_rate,
        recipe.momentum,
        recipe.weight_decay,
    )[0]


def _stationarity(inputs: AuditInputs) -> np.ndarray:
    is_member, n = inputs.is_member, len(inputs.members)
    gradients = _gradients(inputs, lambda block: block)
    theta = np.concatenate(
        [w.detach().cpu().double().numpy().ravel() for w in inputs.target.model.parameters()]
    )
    direction = gradients[is_member].mean(0) + inputs.recipe.weight_decay * theta
    return iha.stationarity(gradients @ direction, (gradients**2).sum(1), is_member / n, n)


COMPUTED = {  # signal of the target -> function that gives it, [N], of what an audit has
    "gradient_norm": _gradient_norm,
    "curvature": lambda inputs: traces(inputs, inputs.pool.x, inputs.pool.y, PROBES),
    "quantile_position": _quantile_position,
    "boundary_distance": _boundary_distance,
    "iha": _iha,
    "stationarity": _stationarity,
}
TOOLS = frozenset(
    attack.name for attack in ATTACKS.values() if attack.knows_membership
)  # that are told who is a member


def score(attack: Attack, view: AuditSignals) -> np.ndarray:
    """Scores of an attack, float64 [N], finite, higher for members; a `MiaError` where it gives none."""
    scores = np.asarray(attack.score(view), np.float64)
    if np.isnan(scores).any():
        raise MiaError(f"{attack.name} gives {int(np.isnan(scores).sum())} records no score.")
    return np.nan_to_num(scores, posinf=np.finfo(np.float32).max, neginf=np.finfo(np.float32).min)
