"""The attacks that are compared: one entry each, in the order of what they need.

To add one, write its score function where the others are (`mia_lib.attacks`), declare what it needs, and add an entry to
`ATTACKS`: it is then in every table and figure of the chapter and in the guide. CONTRIBUTING.md shows it with Attack S.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import numpy as np

from mia_lib import models, signals, store
from mia_lib.attacks import ACCESS, REFERENCES, Needs, baselines, bayes, calibration, iha, per_class, quantile
from mia_lib.attacks import curvature as by_curvature
from mia_lib.attacks.quantile import networks
from mia_lib.papers import costs
from mia_lib.papers.compare.case import Case, Seen, took
from mia_lib.signals import hessian
from mia_lib.training import Ensemble, ensemble, train

LEVELS = tuple(float(1 - alpha) for alpha in np.geomspace(0.9, 0.0005, 15))  # of the pinball regression
POPULATION = 2000  # public records of RMIA, at most
OFFLINE_A = 0.3  # of RMIA's offline form, the authors' for CIFAR-10
SHADOWS = 4  # of Shokri et al., whose classifiers learn from all their outputs


@dataclass(frozen=True)
class Attack:
    """An attack in the comparison.

    Attributes:
        name: in kept arrays. title: in tables. source: whose it is, a key of the bibliography, or "" for this book's.
        needs: what it has, as declared by its score function.
        scorer: what it gives each record of a case, from what it sees of one target and its options, [N].
        options: plain values, which distinguish it from others of the same function.
        fits: why a case is not for it, or "".
        swept: whether it takes any number of references.
        audits: whether it is told who is a member: to take a record's own gradient out, or by the Hessian of the members. Its
            AUC is then no measure of what the model kept of a record, and no price is set beside it.
    """

    name: str
    title: str
    source: str
    needs: Needs
    scorer: Callable[..., np.ndarray]
    options: Mapping[str, str | float | bool | None] = field(default_factory=dict)
    fits: Callable[[Case], str] | None = None
    swept: bool = False
    audits: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """How much it is given: places in `ACCESS` and `REFERENCES`."""
        return ACCESS.index(self.needs.access), REFERENCES.index(self.needs.references)

    def score(self, seen: Seen) -> np.ndarray:
        """Of each record of the pool, higher for members, [N]."""
        return self.scorer(seen, **self.options)

    def lacks(self, case: Case) -> str:
        """Why a case is not for it, or ""."""
        return self.fits(case) if self.fits else ""


def by_names(attack: Callable, seen: Seen) -> np.ndarray:
    """What an attack gives whose arguments are called like what is seen: "labels", "reference_members", a signal of
    `case.SIGNALS` for the target's, and "reference_" before one for that of the references."""
    given = {}
    for name in inspect.signature(attack).parameters:
        if name == "labels":
            given[name] = seen.labels
        elif name.startswith("reference_") and name != "reference_members":
            given[name], given["reference_members"] = seen.references(name.removeprefix("reference_"))
        elif name != "reference_members":
            given[name] = seen.own(name)
    return attack(**given)


def _gap(seen: Seen) -> np.ndarray:
    return baselines.gap(seen.own("correct"))


def _malt(seen: Seen) -> np.ndarray:
    return bayes.malt(seen.own("loss"))


def _signal(seen: Seen, signal: str) -> np.ndarray:
    return -seen.own(signal)


def _margin(seen: Seen) -> np.ndarray:
    return seen.own("hinge")


def _entropy(seen: Seen) -> np.ndarray:
    return baselines.modified_entropy(seen.own("probabilities"), seen.labels)


def _shokri(seen: Seen, shadows: int) -> np.ndarray:
    outputs, inside = seen.references("probabilities", most=shadows)
    return baselines.shadow_models(seen.own("probabilities"), seen.labels, outputs, seen.labels, inside, seed=seen.case.seed)


def _attack_r(seen: Seen) -> np.ndarray:
    return baselines.attack_r(seen.own("loss"), *seen.references("loss"))


def _calibrated(seen: Seen, signal: str) -> np.ndarray:
    under, inside = seen.references(signal)
    return calibration.calibrate(-seen.own(signal), -under, inside)


def _mast(seen: Seen, estimator: str) -> np.ndarray:
    return bayes.mast(seen.own("loss"), *seen.references("loss"), estimator)


def _lira(seen: Seen, one_spread: bool) -> np.ndarray:
    return baselines.lira_online(seen.own("log_odds"), *seen.references("log_odds"), one_spread)


def _lira_offline(seen: Seen, one_spread: bool) -> np.ndarray:
    return baselines.lira_offline(seen.own("log_odds"), *seen.references("log_odds"), one_spread)


def _rmia(seen: Seen, a: float | None) -> np.ndarray:
    under, inside = seen.references("loss")
    public, public_under = seen.public("loss", POPULATION), seen.references("loss", "public")[0]
    return baselines.rmia(np.exp(-seen.own("loss")), np.exp(-under), inside, np.exp(-public),
                          np.exp(-public_under[:, :POPULATION]), a=a)


def _curvature(seen: Seen) -> np.ndarray:
    return by_curvature.nll(*_logarithms(seen))


def _released_ratio(seen: Seen) -> np.ndarray:
    return by_curvature.likelihood_ratio(*_logarithms(seen), "released_code")


def _released_nll(seen: Seen) -> np.ndarray:
    return by_curvature.nll(*_logarithms(seen), "released_code")


def _logarithms(seen: Seen) -> tuple[np.ndarray, ...]:
    under, inside = seen.references("curvature")
    return by_curvature.log_curvature(seen.own("curvature")), by_curvature.log_curvature(under), inside


# ---------------------------------------------------------------------------------------------------- what takes more lines


def _regress_task(paths, labels, score, fit, selection, kind, settings, classes):
    begun, (x, pool) = time.perf_counter(), map(ensemble.open_records, paths)
    regression = (quantile.GaussianQuantile(settings, classes) if kind == "gauss"
                  else quantile.PinballQuantile(settings, LEVELS, classes))

    def part(rows: np.ndarray) -> tuple:
        return np.asarray(x[rows]), score[rows], labels[0][rows]

    regression.fit(*part(fit), validation=part(selection))
    said = regression.predict(np.asarray(pool), labels[1])
    return {"said": np.stack(said).astype(np.float32), "seconds": np.array(time.perf_counter() - begun)}


def regressions(case: Case, kind: str, targets: Sequence[int], size: int | None = None) -> list[dict[str, np.ndarray]]:
    """What quantile regressions on public records say of the pool, one a target, kept in the store.

    Args:
        kind: "gauss" or "pinball". size: public records of the fit split that are used, the first ones; all when None.

    Returns:
        for each target "said", mean and spread [2, N] or quantiles [L, N], and "seconds".
    """
    fit, selection = case.splits["fit"][:size], case.splits["selection"]
    spec = store.under({"kind": "regression", "public": case.public.fingerprint, "pool": case.pool.fingerprint,
                        "classes": len(case.pool.classes), "settings": asdict(case.regression), "head": kind,
                        "fit": store.fingerprint(fit), "selection": store.fingerprint(selection)},
                       regressions, case.models, case.regression)
    specs = [{**spec, "model": store.address(case.models.spec(target))} for target in targets]

    def arguments(k: int) -> dict:
        return {"score": case.values("hinge", [targets[k]], "public")[0],
                "settings": replace(case.regression, seed=case.regression.seed + 7919 * (1 + targets[k]))}

    return signals.map_models(
        _regress_task, None, specs, f"regressions against {case.name}", each=arguments, kind=kind, fit=fit,
        paths=[ensemble.records_file(records) for records in (case.public, case.pool)], labels=(case.public.y, case.pool.y),
        selection=selection, classes=len(case.pool.classes))


def by_regression(seen: Seen, kind: str, size: int | None = None) -> np.ndarray:
    """Where a record's score lies among those of strangers like it, [N]; arguments as for `regressions`."""
    case, outputs = seen.case, 2 if kind == "gauss" else len(LEVELS)
    found = regressions(case, kind, case.bank.attacked, size)[case.bank.attacked.index(seen.target)]
    seen.public("hinge")
    shape, classes = case.pool.shape, len(case.pool.classes)
    operations = costs.regression(case.regression, shape, classes, outputs, len(case.splits["fit"][:size]),
                                  len(case.splits["selection"]))
    network = networks.build(case.regression, shape, classes, outputs)
    seen.makes("a regression", operations, float(found["seconds"]), held=4 * models.parameter_count(network))
    score, said = seen.own("hinge"), found["said"].astype(np.float64)
    return quantile.gaussian_position(score, *said) if kind == "gauss" else quantile.pinball_position(score, said, LEVELS)


def _forgotten(case: Case) -> Ensemble:
    """The targets, each trained further on the public records."""
    config = replace(case.models.config, epochs=case.limits.forget_epochs, schedule="constant",
                     seed=case.models.config.seed + 2)
    everyone = np.ones((len(case.bank.attacked), len(case.public)), bool)
    return train(case.public, everyone, config, start=(case.models, list(case.bank.attacked)),
                 label=f"forgetting, {case.name}")


def _forgetting(seen: Seen) -> np.ndarray:
    case, further = seen.case, _forgotten(seen.case)
    place = case.bank.attacked.index(seen.target)
    after = signals.loss(further, case.pool)[[place]].astype(np.float64)
    seen.makes("the target, further", _operations(further.config, case, len(case.public)), took(further, place),
               held=4 * case.parameters)
    return calibration.calibrate(-seen.own("loss"), -after, own="keep")


def _matt(seen: Seen) -> np.ndarray:
    """With one model on public records as its reference."""
    case = seen.case
    size = int(case.bank.members[seen.target].sum())
    chosen = np.arange(len(case.public)) < size
    reference = train(case.public, chosen[None], replace(case.models.config, seed=case.models.config.seed + 5),
                   label=f"reference on public records, {case.name}")
    seen.makes("a reference on public records", _operations(reference.config, case, int(chosen.sum())), took(reference, 0),
               held=4 * case.parameters)
    seen.has_parameters()
    blocks = signals.record_gradients(reference.model(0), case.pool.x, case.pool.y, reference.config.loss, "float64")
    theta, theta0 = (each.astype(np.float64) for each in (case.models.parameters(seen.target), reference.parameters(0)))
    return bayes.matt(theta, theta0, np.concatenate(list(blocks)))


def _operations(config, case: Case, records: int) -> float:
    return costs.training(config, case.pool.shape, len(case.pool.classes), records)


@dataclass(frozen=True, eq=False)
class _Audit:
    """What the auditor of one target sees: gradients of the loss [N, P], who is inside, the target's parameters."""

    gradients: np.ndarray
    inside: np.ndarray
    theta: np.ndarray


def _audited(seen: Seen) -> _Audit:
    case, key = seen.case, ("audit", "pool", seen.target)
    inside, records = seen.audit()
    seen.has_parameters()
    if key not in case._known:
        network = case.models.model(seen.target)
        loss = case.models.config.loss
        gradients = np.concatenate(list(signals.record_gradients(network, records.x, records.y, loss, "float64")))
        case._known[key] = _Audit(gradients, inside, case.models.parameters(seen.target).astype(np.float64))
    return case._known[key]


def _inverse(seen: Seen) -> hessian.Inverse:
    """The inverse of the damped Hessian of the members' mean loss."""
    case, key = seen.case, ("inverse Hessian", seen.target)
    loss, (inside, records) = case.models.config.loss, seen.audit()
    if key not in case._known:
        begun = time.perf_counter()
        matrix = hessian.exact(case.models.model(seen.target), records.x[inside], records.y[inside], loss)
        case._known[key] = hessian.inverse(matrix, case.limits.damping), time.perf_counter() - begun
    found, seconds = case._known[key]
    seen.makes("the inverse Hessian", costs.hessian_itself(case.models.untrained(), records.shape, int(inside.sum()), loss)
               + costs.decomposition(case.parameters), seconds, models=0, held=8 * case.parameters**2)
    return found


def _mean_gradient(seen: Seen) -> np.ndarray:
    """Of the loss over the members, [P]: one pass of training through them."""
    case, found = seen.case, _audited(seen)
    operations = _operations(replace(case.models.config, epochs=1), case, int(found.inside.sum()))
    seen.makes("the mean gradient", operations, 0.0, models=0, held=8 * case.parameters)
    return found.gradients[found.inside].mean(0)


def _self_influence(seen: Seen) -> np.ndarray:
    return baselines.self_influence(_audited(seen).gradients, _inverse(seen))


def _inverse_hessian(seen: Seen) -> np.ndarray:
    found, config = _audited(seen), seen.case.models.config
    score, _ = iha.scores(seen.own("loss"), found.gradients, _inverse(seen), _mean_gradient(seen), found.inside,
                          int(found.inside.sum()), config.learning_rate, config.momentum, config.weight_decay)
    return score


def _gradient_test(seen: Seen) -> np.ndarray:
    found, n = _audited(seen), int(seen.audit()[0].sum())
    direction = _mean_gradient(seen) + seen.case.models.config.weight_decay * found.theta
    return iha.stationarity(found.gradients @ direction, (found.gradients**2).sum(1), found.inside / n, n)


def _small(case: Case) -> str:
    if case.parameters > case.limits.parameters:
        return f"{case.parameters:,} parameters, whose Hessian is too large"
    return "" if case.models.config.optimizer == "sgd" else "not trained by SGD"


def _convex(case: Case) -> str:
    return "" if case.linear else "a loss with many minima"


# ------------------------------------------------------------------------------------------------------------- the attacks

LIRA, WATSON, SURI, RMIA = "carlini2022membership", "watson2022importance", "suri2024parameters", "zarifzadeh2024low"
CURVATURE, BERTRAN, MAST = "ravikumar2024curvature", "bertran2023scalable", "sablayrolles2019white"
YE = "ye2022enhanced"
GAUSS = Needs("output vector", "none", "public records that the target was not trained on")
KNOWS = calibration.calibrate.needs.knows

ATTACKS = {one.name: one for one in (
    Attack("gap", "0-1", "yeom2018privacy", baselines.gap.needs, _gap),
    Attack("malt", "MALT", MAST, bayes.malt.needs, _malt),
    Attack("confidence", "confidence", WATSON, calibration.SIGNALS["confidence"], _signal, {"signal": "least_loss"}),
    Attack("margin", "margin", BERTRAN, Needs("output vector", "none", "nothing"), _margin),
    Attack("entropy", "modified entropy", "song2021systematic", baselines.modified_entropy.needs, _entropy),
    Attack("gradient", "gradient norm", WATSON, calibration.SIGNALS["gradient norm"], _signal, {"signal": "gradient_norm"}),
    Attack("quantile", "quantile, Gaussian", BERTRAN, GAUSS, by_regression, {"kind": "gauss"}),
    Attack("pinball", "quantile, pinball", BERTRAN, GAUSS, by_regression, {"kind": "pinball"}),
    Attack("shokri", "shadow models", "shokri2017membership", baselines.shadow_models.needs, _shokri, {"shadows": SHADOWS}),
    Attack("forgetting", "loss, by forgetting", WATSON, calibration.SIGNALS["any score, by forgetting"], _forgetting),
    Attack("attack_s", "Attack S", YE, per_class.attack_s.needs, partial(by_names, per_class.attack_s), swept=True),
    Attack("attack_r", "Attack R", YE, baselines.attack_r.needs, _attack_r, swept=True),
    Attack("calibrated", "calibrated loss", WATSON, calibration.calibrate.needs, _calibrated,
           {"signal": "loss"}, swept=True),
    Attack("calibrated_confidence", "calibrated confidence", WATSON, Needs("output vector", "out only", KNOWS), _calibrated,
           {"signal": "least_loss"}, swept=True),
    Attack("calibrated_gradient", "calibrated gradient norm", WATSON, Needs("parameters", "out only", KNOWS), _calibrated,
           {"signal": "gradient_norm"}),
    Attack("mast_softmin", "MAST, softmin", MAST, Needs("loss", "out only", bayes.mast.needs.knows), _mast,
           {"estimator": "softmin"}, swept=True),
    Attack("mast_split", "MAST, best split", MAST, bayes.mast.needs, _mast, {"estimator": "best_split"}, swept=True),
    Attack("lira_offline", "LiRA offline, one spread", LIRA, baselines.lira_offline.needs, _lira_offline,
           {"one_spread": True}, swept=True),
    Attack("lira_offline_own", "LiRA offline, own spreads", LIRA, baselines.lira_offline.needs, _lira_offline,
           {"one_spread": False}, swept=True),
    Attack("rmia_offline", "RMIA offline", RMIA, Needs("loss", "out only", baselines.rmia.needs.knows), _rmia,
           {"a": OFFLINE_A}, swept=True),
    Attack("lira", "LiRA, one spread", LIRA, baselines.lira_online.needs, _lira, {"one_spread": True}, swept=True),
    Attack("lira_own", "LiRA, own spreads", LIRA, baselines.lira_online.needs, _lira, {"one_spread": False}, swept=True),
    Attack("rmia", "RMIA", RMIA, baselines.rmia.needs, _rmia, {"a": None}, swept=True),
    Attack("curvature", "curvature, likelihood ratio", CURVATURE, by_curvature.nll.needs, _curvature),
    Attack("curvature_lr", "curvature, released LR", CURVATURE, by_curvature.likelihood_ratio.needs, _released_ratio),
    Attack("curvature_nll", "curvature, released NLL", CURVATURE, by_curvature.nll.needs, _released_nll),
    Attack("matt", "MATT", MAST, bayes.matt.needs, _matt, fits=_convex),
    Attack("influence", "self-influence", "cohen2024membership", baselines.self_influence.needs, _self_influence,
           fits=_small, audits=True),
    Attack("iha", "IHA", SURI, iha.scores.needs, _inverse_hessian, fits=_small, audits=True),
    Attack("gradient_test", "gradient alone", "", iha.stationarity.needs, _gradient_test, fits=_small, audits=True),
)}
