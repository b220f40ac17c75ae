"""The attacks of an audit: what each needs, what it costs, and its scores. None is tuned on the records that it judges.

To add one, write its score function where the others are (`mia_lib.attacks`) and add an entry to `ATTACKS`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch

from mia_lib import signals, store
from mia_lib.attacks import Needs, baselines, bayes, calibration, iha, quantile
from mia_lib.attacks import curvature as by_curvature
from mia_lib.attacks.quantile.networks import NetworkConfig
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
POPULATION = 2000  # public records of RMIA, at most
HALVES, PUBLIC = "halves of the records judged", "public records"


@dataclass(frozen=True, eq=False)
class References:
    """Models trained for comparison.

    Attributes:
        models: R of them.
        members: bool [R, N], which records of the pool each was trained on.
        variant: `HALVES` or `PUBLIC`.
    """

    models: Ensemble
    members: np.ndarray
    variant: str


@dataclass(frozen=True, eq=False)
class Seen:
    """What an attack sees: what was given, and references where there are some."""

    given: Given
    references: References | None = None

    def own(self, name: str) -> np.ndarray:
        """A signal of the target for the pool, [N] (or [N, K])."""
        return self.given.target.scalars(self.given.pool, self.given.loss)[name]

    def public(self, name: str) -> np.ndarray:
        """A signal of the target for public records, [Q]."""
        return self.given.target.scalars(self.given.public, self.given.loss)[name]


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


@dataclass(frozen=True)
class Attack:
    """An attack of an audit.

    Attributes:
        name: what pages call it. source: whose it is. family: what it goes by; two of different families are independent.
        needs: what it has.
        lacks: why it is not possible, or "".
        seconds: what it costs, references apart.
        score: of each record of the pool, higher for members, [N].
        references: whether it compares with models that are trained for it.
        audits: whether it is told who is a member, to take a record's own gradient out. Its AUC is no measure of what the
            model kept of a record, so it is set apart.
    """

    name: str
    source: str
    family: str
    needs: Needs
    lacks: Callable[[Given, Probe], str]
    seconds: Callable[[Given, Probe], float]
    score: Callable[[Seen], np.ndarray]
    references: bool = False
    audits: bool = False


# ------------------------------------------------------------------------------------------------------------ what is lacking


def _nothing(given: Given, probe: Probe) -> str:
    return ""


def _recipe(given: Given, probe: Probe) -> str:
    return "" if given.recipe else "needs a training recipe"


def _one_loss(given: Given, probe: Probe) -> str:
    """Of attacks that compare the model's loss with the references'."""
    if given.recipe and given.recipe.loss != given.loss:
        return (f"needs one loss for the model and its references, and the recipe's {given.recipe.loss} is none of "
                "probabilities")
    return _recipe(given, probe)


def _one_loss_and_public(given: Given, probe: Probe) -> str:
    return _one_loss(given, probe) or _public(given, probe)


def _public(given: Given, probe: Probe) -> str:
    return "" if given.public else "needs public records"


def _weights(given: Given, probe: Probe) -> str:
    if given.target.kind == "function":
        return "needs weights, and a function was given"
    return "" if given.target.kind == "network" else "needs derivatives, and the program gives outputs alone"


def _curve(given: Given, probe: Probe) -> str:
    if given.target.kind == "network":
        return ""
    return probe.rough


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


# ------------------------------------------------------------------------------------------------------------------- scores


def _malt(seen: Seen) -> np.ndarray:
    return bayes.malt(seen.own("loss"))


def _gap(seen: Seen) -> np.ndarray:
    return baselines.gap(seen.own("correctness"))


def _confidence(seen: Seen) -> np.ndarray:
    return -seen.own("least_loss")


def _entropy(seen: Seen) -> np.ndarray:
    return baselines.modified_entropy(seen.own("probabilities"), seen.given.pool.y)


def _lira(seen: Seen) -> np.ndarray:
    under = signals.logit_scaled_confidence(seen.references.models, seen.given.pool)
    return baselines.lira_online(_margin(seen), under.astype(np.float64), seen.references.members, True)


def _lira_offline(seen: Seen) -> np.ndarray:
    under = signals.logit_scaled_confidence(seen.references.models, seen.given.pool)
    return baselines.lira_offline(_margin(seen), under.astype(np.float64), seen.references.members, True)


def _margin(seen: Seen) -> np.ndarray:
    return seen.own("logit_scaled_confidence").astype(np.float64)


def _calibrated(seen: Seen) -> np.ndarray:
    under = signals.loss(seen.references.models, seen.given.pool).astype(np.float64)
    return calibration.calibrate(-seen.own("loss").astype(np.float64), -under, seen.references.members)


def _rmia(seen: Seen) -> np.ndarray:
    models, public = seen.references.models, seen.given.public
    under, beside = (np.exp(-signals.loss(models, one).astype(np.float64)) for one in (seen.given.pool, public))
    return baselines.rmia(np.exp(-seen.own("loss").astype(np.float64)), under, seen.references.members,
                          np.exp(-seen.public("loss").astype(np.float64)[:POPULATION]), beside[:, :POPULATION])


def regression(given: Given) -> NetworkConfig:
    """The network of a quantile regression on the public records."""
    big = given.pool.is_image and min(given.pool.shape[:2]) >= 16
    return NetworkConfig("strided_cnn:8,16,32" if big else "mlp:64", epochs=20, batch_size=64, seed=given.seed)


def _quantile(seen: Seen) -> np.ndarray:
    given, config = seen.given, regression(seen.given)
    public, pool, score, own = given.public, given.pool, seen.public("hinge"), seen.own("hinge")
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


def _gradient(seen: Seen) -> np.ndarray:
    return -np.sqrt(_gradients(seen, lambda block: (block**2).sum(1)))


def _gradients(seen: Seen, use: Callable) -> np.ndarray:
    given = seen.given
    blocks = signals.record_gradients(given.target.model, given.pool.x, given.pool.y, given.loss, "float64",
                                      scaling=given.target.scaling)
    return np.concatenate([use(block) for block in blocks])


def _curvature(seen: Seen) -> np.ndarray:
    given = seen.given

    def compute() -> dict[str, np.ndarray]:
        return {"trace": traces(given, given.pool.x, given.pool.y, PROBES)}

    spec = {"model": given.target.fingerprint, "outputs": store.fingerprint(seen.own("outputs")), "seed": given.seed,
            "pool": given.pool.fingerprint, "probes": PROBES, "step": STEP, "loss": given.loss}
    return -by_curvature.log_curvature(store.study("audit.curvature", spec, compute)["trace"])


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


def _audited(seen: Seen) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the inverse Hessian attack and of the gradient alone, [N] each."""
    given, recipe, inside = seen.given, seen.given.recipe, seen.given.inside
    network, members = given.target.model, given.members
    loss = seen.own("loss")

    def compute() -> dict[str, np.ndarray]:
        gradients = _gradients(seen, lambda block: block)
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
    found = store.study("audit.hessian", spec, compute)
    return found["iha"], found["gradient"]


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


def _iha(seen: Seen) -> np.ndarray:
    return _audited(seen)[0]


def _gradient_test(seen: Seen) -> np.ndarray:
    return _audited(seen)[1]


# -------------------------------------------------------------------------------------------------------------------- costs


def _none(given: Given, probe: Probe) -> float:
    return 0.0


def _of_references(given: Given, probe: Probe) -> float:
    return 0.0  # that of the references, which the plan counts once


def _of_regression(given: Given, probe: Probe) -> float:
    return probe.answer * len(given.public) + probe.regression * len(given.public) * regression(given).epochs


def _of_gradients(given: Given, probe: Probe) -> float:
    return probe.gradient * len(given.pool)


def _of_curvature(given: Given, probe: Probe) -> float:
    return probe.curve * PROBES * len(given.pool)


def _of_hessian(given: Given, probe: Probe) -> float:
    size = given.target.parameters
    return probe.gradient * len(given.pool) + probe.gradient * size * len(given.members) / 50 + 2e-10 * size**3


LIRA, WATSON, SURI, RMIA = ("Carlini et al. 2022", "Watson et al. 2022", "Suri et al. 2024", "Zarifzadeh et al. 2024")
ATTACKS = {one.name: one for one in (  # in the order of what they are worth for their price
    Attack("MALT", "Sablayrolles et al. 2019", "outputs", bayes.malt.needs, _nothing, _none, _malt),
    Attack("modified entropy", "Song and Mittal "
                               "2021", "outputs", baselines.modified_entropy.needs, _nothing, _none, _entropy),
    Attack("confidence", WATSON, "outputs", calibration.SIGNALS["confidence"], _nothing, _none, _confidence),
    Attack("0-1", "Yeom et al. 2018", "outputs", baselines.gap.needs, _nothing, _none, _gap),
    Attack("LiRA", LIRA, "references", baselines.lira_online.needs, _recipe, _of_references, _lira, references=True),
    Attack("LiRA, offline", LIRA, "references", baselines.lira_offline.needs, _recipe, _of_references, _lira_offline,
           references=True),
    Attack("RMIA", RMIA, "references", baselines.rmia.needs, _one_loss_and_public, _of_references, _rmia, references=True),
    Attack("calibrated loss", WATSON, "references", calibration.calibrate.needs, _one_loss, _of_references, _calibrated,
           references=True),
    Attack("quantile regression", "Bertran et al. 2023", "public records",
           Needs("output vector", "none", "public records that the target was not trained on"), _public, _of_regression,
           _quantile),
    Attack("gradient norm", WATSON, "weights", calibration.SIGNALS["gradient norm"], _weights, _of_gradients, _gradient),
    Attack("curvature", "Ravikumar et al. 2024", "curvature", Needs("loss", "none", "nothing"), _curve, _of_curvature,
           _curvature),
    Attack("IHA", SURI, "audit", iha.scores.needs, _small, _of_hessian, _iha, audits=True),
    Attack("gradient alone", SURI, "audit", iha.stationarity.needs, _small, _none, _gradient_test, audits=True),
)}


def score(attack: Attack, seen: Seen) -> np.ndarray:
    """Scores of an attack, float64 [N], finite; higher for members.

    Raises:
        MiaError: scores that are NaN.
    """
    found = np.asarray(attack.score(seen), np.float64)
    if np.isnan(found).any():
        raise MiaError(f"{attack.name} gives {int(np.isnan(found).sum())} records no score.")
    return np.nan_to_num(found, posinf=np.finfo(np.float32).max, neginf=np.finfo(np.float32).min)
