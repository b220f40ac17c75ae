"""The attacks that are compared, in the order of what they need: those of the registry, and those that train models or take
gradients.

To add one, add an entry to `mia_lib.attacks.registry.ATTACKS` and a line to `ATTACKS`: it is then in every table and figure of
the chapter and in the guide. CONTRIBUTING.md shows it with Attack S.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from mia_lib import models, signals, store
from mia_lib.attacks import baselines, bayes, calibration, iha, quantile, registry
from mia_lib.attacks.quantile import networks
from mia_lib.attacks.registry import BERTRAN, COSTLY, REGRESSION, SABLAYROLLES, SURI, WATSON, Attack
from mia_lib.papers import costs
from mia_lib.papers.compare.case import Case, Seen, took
from mia_lib.signals import hessian
from mia_lib.training import Ensemble, ensemble, train

LEVELS = tuple(float(1 - alpha) for alpha in np.geomspace(0.9, 0.0005, 15))  # of the pinball regression


def _shokri(seen: Seen, shadows: int) -> np.ndarray:
    return registry.shadow_models(seen, shadows, seen.case.seed)


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

SHARED = registry.ATTACKS

ATTACKS: dict[str, Attack] = {  # by their names in kept arrays
    "gap": SHARED["0-1"],
    "malt": SHARED["MALT"],
    "confidence": SHARED["confidence"],
    "margin": SHARED["margin"],
    "entropy": SHARED["modified entropy"],
    "gradient": SHARED["gradient norm"],
    "quantile": Attack("quantile, Gaussian", BERTRAN, REGRESSION, ("hinge",), by_regression, {"kind": "gauss"}, public=True),
    "pinball": Attack("quantile, pinball", BERTRAN, REGRESSION, ("hinge",), by_regression, {"kind": "pinball"}, public=True),
    "shokri": replace(SHARED["shadow models"], scorer=_shokri),
    "forgetting": Attack("loss, by forgetting", WATSON, calibration.SIGNALS["any score, by forgetting"], ("loss",),
                         _forgetting),
    "attack_s": SHARED["Attack S"],
    "attack_r": SHARED["Attack R"],
    "calibrated": SHARED["calibrated loss"],
    "calibrated_confidence": SHARED["calibrated confidence"],
    "calibrated_gradient": SHARED["calibrated gradient norm"],
    "mast_softmin": SHARED["MAST, softmin"],
    "mast_split": SHARED["MAST, best split"],
    "lira_offline": replace(SHARED["LiRA, offline"], name="LiRA offline, one spread"),
    "lira_offline_own": SHARED["LiRA offline, own spreads"],
    "rmia_offline": replace(SHARED["RMIA, offline"], name="RMIA offline"),
    "lira": replace(SHARED["LiRA"], name="LiRA, one spread"),
    "lira_own": SHARED["LiRA, own spreads"],
    "rmia": SHARED["RMIA"],
    "curvature": SHARED["curvature, likelihood ratio"],
    "curvature_lr": SHARED["curvature, released LR"],
    "curvature_nll": SHARED["curvature, released NLL"],
    "matt": Attack("MATT", SABLAYROLLES, bayes.matt.needs, (), _matt),
    "influence": Attack("self-influence", "cohen2024membership", baselines.self_influence.needs, (), _self_influence,
                        audits=True),
    "iha": Attack("IHA", SURI, iha.scores.needs, ("loss",), _inverse_hessian, audits=True),
    "gradient_test": Attack("gradient alone", "", iha.stationarity.needs, (), _gradient_test, audits=True),
}
FITS = {"matt": _convex, "influence": _small, "iha": _small, "gradient_test": _small}
SWEPT = tuple(name for name, attack in ATTACKS.items() if attack.takes_references and attack.signals
              and not set(attack.signals) & set(COSTLY) and name != "shokri")  # those that take any number of references


def lacks(name: str, case: Case) -> str:
    """Why a case is not for an attack of `ATTACKS`, or ""."""
    return FITS[name](case) if name in FITS else ""
