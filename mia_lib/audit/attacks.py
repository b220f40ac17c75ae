"""The attacks of an audit: those of the registry that it can show signals, and those that train or compute a Hessian; whether
each is possible, and what it costs. None is tuned on the records that it judges.

To add one, add an entry to `mia_lib.attacks.registry.ATTACKS` and name it in `ATTACKS`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch

from mia_lib import signals, store
from mia_lib.attacks import iha, quantile, registry
from mia_lib.attacks.quantile.networks import NetworkConfig
from mia_lib.attacks.registry import BERTRAN, LOG_ODDS, SURI, Attack
from mia_lib.audit.given import Given
from mia_lib.errors import MiaError
from mia_lib.signals import curvature, hessian
from mia_lib.signals import outputs as evaluation
from mia_lib.training import Ensemble
from mia_lib.training.losses import precise_loss

PARAMETERS = 3000  # of the largest network whose Hessian is computed
HELD = 3e8  # numbers, of the largest table of gradients
PROBES, STEP = 4, 1e-3  # of the curvature; the step of differences in units of the input
DAMPING = 0.2  # of the Hessian
HALVES, PUBLIC = "halves of the records judged", "public records"


@dataclass(frozen=True, eq=False)
class References:
    """Models trained for comparison.

    Attributes:
        models: R of them.
        members: bool [R, N], which records of the pool each was trained on.
    """

    models: Ensemble
    members: np.ndarray


OF_MODELS = {"loss": signals.loss, LOG_ODDS: signals.logit_scaled_confidence}  # signals that references are asked for


@dataclass(frozen=True, eq=False)
class Seen:
    """What an attack sees, as `registry.TargetSignals` says: what was given, and references where there are some. A number a
    record comes as float64."""

    given: Given
    reference_models: References | None = None

    @property
    def labels(self) -> np.ndarray:
        """int [N]."""
        return self.given.pool.y

    def own(self, signal: str) -> np.ndarray:
        """A signal of the target for the pool, [N]; "probabilities" and "outputs" as they are, [N, K]."""
        if signal == "gradient_norm":
            return np.sqrt(_gradients(self.given, lambda block: (block**2).sum(1)))
        if signal == "curvature":
            return _pool_traces(self.given)
        values = self.given.target.scalars(self.given.pool, self.given.loss)[signal]
        return values if values.ndim > 1 else values.astype(np.float64)

    def references(self, signal: str) -> tuple[np.ndarray, np.ndarray]:
        """A signal of the references for the pool, [R, N], and whom each was trained on, bool [R, N]."""
        models, members = self.reference_models.models, self.reference_models.members
        return OF_MODELS[signal](models, self.given.pool).astype(np.float64), members

    def public(self, signal: str, most: int | None = None) -> np.ndarray:
        """A signal of the target for public records, [Q]."""
        return self.given.target.scalars(self.given.public, self.given.loss)[signal].astype(np.float64)[:most]

    def public_references(self, signal: str, most: int | None = None) -> np.ndarray:
        """A signal of the references for public records, [R, Q]."""
        return OF_MODELS[signal](self.reference_models.models, self.given.public).astype(np.float64)[:, :most]


@dataclass(frozen=True)
class Probe:
    """Seconds that were measured on a few records.

    Attributes:
        answer: of outputs of a record. gradient: of a record's gradient, None without weights.
        epoch: of training on a record once, None without a recipe. starting: of a training, whatever its length.
        curve: of one probe of a record's curvature, None where it cannot be had.
        regression: of one record in one epoch of a quantile regression, None without public records.
        rough: why differences of losses say nothing, or "".
    """

    answer: float
    gradient: float | None = None
    epoch: float | None = None
    starting: float = 0.0
    curve: float | None = None
    regression: float | None = None
    rough: str = ""


# ------------------------------------------------------------------------------------------------------------ what is lacking


def lacks(attack: Attack, given: Given, probe: Probe) -> str:
    """Why an attack is not possible, or ""."""
    if attack.name in LACKS:
        return LACKS[attack.name](given, probe)
    if attack.takes_references and given.recipe is None:
        return "needs a training recipe"
    if attack.takes_references and "loss" in attack.signals and given.recipe.loss != given.loss:
        return (f"needs one loss for the model and its references, and the recipe's {given.recipe.loss} is none of "
                "probabilities")
    return "needs public records" if attack.public and not given.public else ""


def _weights(given: Given, probe: Probe) -> str:
    if given.target.kind == "function":
        return "needs weights, and a function was given"
    return "" if given.target.kind == "network" else "needs derivatives, and the program gives outputs alone"


def _curve(given: Given, probe: Probe) -> str:
    return "" if given.target.kind == "network" else probe.rough


def _small(given: Given, probe: Probe) -> str:
    if _weights(given, probe):
        return _weights(given, probe)
    size = given.target.parameters
    if size > PARAMETERS:
        return f"too many parameters: {size:,}, and the Hessian of at most {PARAMETERS:,} is computed"
    if size * len(given.pool) > HELD:
        return f"too many gradients: {len(given.pool):,} records with {size:,} parameters each"
    if given.recipe is None:
        return "needs a training recipe, of which it takes learning rate and weight decay"
    if given.recipe.optimizer != "sgd":
        return f"is for SGD, and the recipe says {given.recipe.optimizer}"
    return ""


LACKS = {"gradient norm": _weights, "curvature": _curve, "IHA": _small, "gradient alone": _small}


# ------------------------------------------------------------------------------------------------------------------- scores


def regression(given: Given) -> NetworkConfig:
    """The network of a quantile regression on the public records."""
    big = given.pool.is_image and min(given.pool.shape[:2]) >= 16
    return NetworkConfig("strided_cnn:8,16,32" if big else "mlp:64", epochs=20, batch_size=64, seed=given.seed)


def _quantile(seen: Seen) -> np.ndarray:
    given, config = seen.given, regression(seen.given)
    public, pool = given.public, given.pool
    score, own = (given.target.scalars(records, given.loss)["hinge"] for records in (public, pool))
    order = np.random.default_rng([37, given.seed]).permutation(len(public))
    fit, held = np.split(order, [round(0.8 * len(order))])

    def compute() -> dict[str, np.ndarray]:
        made = quantile.GaussianQuantile(config, len(pool.classes))
        made.fit(public.x[fit], score[fit], public.y[fit], validation=(public.x[held], score[held], public.y[held]))
        return {"score": made.position(pool.x, own, pool.y)}

    spec = {"public": public.fingerprint, "pool": pool.fingerprint, "classes": len(pool.classes),
            "settings": asdict(config), "seed": given.seed,
            "score": store.fingerprint(score), "own": store.fingerprint(own)}
    return store.study("audit.quantile", spec, compute)["score"]


def _gradients(given: Given, use: Callable) -> np.ndarray:
    blocks = signals.record_gradients(given.target.model, given.pool.x, given.pool.y, given.loss, "float64",
                                      scaling=given.target.scaling)
    return np.concatenate([use(block) for block in blocks])


def _pool_traces(given: Given) -> np.ndarray:
    """Curvature of the loss of each record of the pool, kept in the store, [N]."""
    def compute() -> dict[str, np.ndarray]:
        return {"trace": traces(given, given.pool.x, given.pool.y, PROBES)}

    outputs = given.target.scalars(given.pool, given.loss)["outputs"]
    spec = {"model": given.target.fingerprint, "outputs": store.fingerprint(outputs), "seed": given.seed,
            "pool": given.pool.fingerprint, "probes": PROBES, "step": STEP, "loss": given.loss}
    return store.study("audit.curvature", spec, compute)["trace"]


def traces(given: Given, x: np.ndarray, y: np.ndarray, probes: int) -> np.ndarray:
    """Curvature of the loss of records: from derivatives of a network, from differences of losses of anything else, [n]."""
    target = given.target
    if target.kind == "network":
        network = evaluation.in_precision(target.model, "float64")

        def of_network(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return precise_loss(network(inputs), labels, given.loss)

        found = []
        for start in range(0, len(x), 500):
            part = evaluation.inputs(x, start, start + 500, evaluation.device_of(network), torch.float64, target.fed)
            found.append(curvature.hutchinson_trace(of_network, part, probes, given.seed, y=y[start:start + 500], first=start))
        return np.concatenate(found)

    def of_outputs(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        found = target.ask(inputs.numpy()).astype(np.float64)
        if target.outputs == "probabilities":
            found = np.log(np.maximum(found, np.finfo(np.float64).tiny))
        return precise_loss(torch.from_numpy(found), labels, given.loss)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return curvature.zero_order_trace(of_outputs, torch.from_numpy(x.astype(np.float64)), probes, STEP, given.seed, y=y)


def _audited(seen: Seen, score: str) -> np.ndarray:
    """Scores of the inverse Hessian attack, "iha", or of the "gradient" alone, [N]."""
    given, recipe, inside = seen.given, seen.given.recipe, seen.given.inside
    network, members = given.target.model, given.members
    loss = given.target.scalars(given.pool, given.loss)["loss"]

    def compute() -> dict[str, np.ndarray]:
        gradients = _gradients(given, lambda block: block)
        matrix = hessian.exact(network, members.x, members.y, given.loss, scaling=given.target.scaling)
        mean, n = gradients[inside].mean(0), len(members)
        attack, _ = iha.scores(loss, gradients, _inverse(matrix), mean, inside, n, recipe.learning_rate,
                               recipe.momentum, recipe.weight_decay)
        theta = np.concatenate([w.detach().cpu().double().numpy().ravel() for w in network.parameters()])
        direction = mean + recipe.weight_decay * theta
        return {"iha": attack, "gradient": iha.stationarity(gradients @ direction, (gradients**2).sum(1), inside / n, n)}

    spec = {"model": given.target.fingerprint, "outputs": store.fingerprint(seen.own("outputs")),
            "pool": given.pool.fingerprint, "members": len(members), "loss": given.loss, "damping": DAMPING,
            "rates": [recipe.learning_rate, recipe.momentum, recipe.weight_decay]}
    return store.study("audit.hessian", spec, compute)[score]


def _inverse(matrix: np.ndarray) -> hessian.Inverse:
    """Of the Hessian of the members' loss, damped, [P, P].

    Raises:
        MiaError: the model is at no minimum, not even with the damping.
    """
    spectrum = hessian.spectrum(matrix)
    try:
        return spectrum.inverse(DAMPING)
    except MiaError as problem:
        raise MiaError(f"the model is not at a minimum of its loss, which the attack supposes: the Hessian's smallest "
                       f"eigenvalue is {spectrum.values[0]:.3g}, and the audit adds {DAMPING:g}. A model that was trained "
                       f"for longer may be at one.") from problem


# -------------------------------------------------------------------------------------------------------------------- costs


def seconds(attack: Attack, given: Given, probe: Probe) -> float:
    """What an attack costs; references apart, which the plan counts once."""
    return SECONDS[attack.name](given, probe) if attack.name in SECONDS else 0.0


def _of_regression(given: Given, probe: Probe) -> float:
    return probe.answer * len(given.public) + probe.regression * len(given.public) * regression(given).epochs


def _of_gradients(given: Given, probe: Probe) -> float:
    return probe.gradient * len(given.pool)


def _of_curvature(given: Given, probe: Probe) -> float:
    return probe.curve * PROBES * len(given.pool)


def _of_hessian(given: Given, probe: Probe) -> float:
    size = given.target.parameters
    return probe.gradient * len(given.pool) + probe.gradient * size * len(given.members) / 50 + 2e-10 * size**3


SECONDS = {"quantile regression": _of_regression, "gradient norm": _of_gradients, "curvature": _of_curvature,
           "IHA": _of_hessian}


# -------------------------------------------------------------------------------------------------------------- the attacks

ATTACKS = {attack.name: attack for attack in (  # in the order of what they are worth for their price
    *(registry.ATTACKS[name] for name in ("MALT", "modified entropy", "confidence", "0-1", "LiRA", "LiRA, offline", "RMIA",
                                          "calibrated loss")),
    Attack("quantile regression", BERTRAN, registry.REGRESSION, ("hinge",), _quantile, public=True),
    registry.ATTACKS["gradient norm"], registry.ATTACKS["curvature"],
    Attack("IHA", SURI, iha.scores.needs, ("loss",), _audited, {"score": "iha"}, audits=True),
    Attack("gradient alone", SURI, iha.stationarity.needs, (), _audited, {"score": "gradient"}, audits=True),
)}
FAMILIES = {"quantile regression": "public records", "gradient norm": "weights", "curvature": "curvature", "IHA": "audit",
            "gradient alone": "audit"}


def family(attack: Attack) -> str:
    """What an attack goes by; two of different families are independent."""
    return FAMILIES.get(attack.name, "references" if attack.takes_references else "outputs")


def score(attack: Attack, seen: Seen) -> np.ndarray:
    """Scores of an attack, float64 [N], finite; higher for members.

    Raises:
        MiaError: scores that are NaN.
    """
    found = np.asarray(attack.score(seen), np.float64)
    if np.isnan(found).any():
        raise MiaError(f"{attack.name} gives {int(np.isnan(found).sum())} records no score.")
    return np.nan_to_num(found, posinf=np.finfo(np.float32).max, neginf=np.finfo(np.float32).min)
