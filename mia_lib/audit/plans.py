"""What an audit can do with what it has, what each part costs, and what of it fits the budget.

Costs come from a few records that are measured first: outputs, gradients, one pass of training. They are estimates, and
references that share a core or a stack of small networks are quicker than theirs; `correct` puts right what training the first
references has shown. What might help has its price: the recipe with one thing changed, trained on the same members.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mia_lib import metrics, signals, training
from mia_lib.attacks import quantile
from mia_lib.audit import attacks
from mia_lib.audit.attacks import ATTACKS, MeasuredCosts
from mia_lib.audit.inputs import MOST_RECORDS, AuditInputs, reseeded, unlike
from mia_lib.errors import MiaError
from mia_lib.metrics import Interval
from mia_lib.training import TrainConfig, pool, private

STARTING = 5.0  # seconds until the processes that train are there
SHARE = 0.9  # of the budget is planned for
FEW, LEAST = 8, 4  # references: wanted before anything dearer, and needed at all
RUNS, IMPOSSIBLE, TOO_DEAR, FAILED = "runs", "not possible", "does not fit", "failed"
CONTROL, REFERENCES, RETRAINED = "control without the model", "references", "what to try, retrained"
TRAINED_ON = "trained on halves of the records judged; so each record has some that were trained on it and some that were not"
EPSILON, DECAY = 8.0, 5e-3  # of the private model; weight decay that is tried, or ten times the recipe's
AS_IT_IS = "the recipe as it is"


@dataclass(frozen=True)
class Step:
    """A part of an audit.

    Attributes:
        name: of an attack, "outputs", "references", or what else is done. minutes: estimated; None where it is not possible.
        state: `RUNS`, `IMPOSSIBLE`, `TOO_DEAR` or, once tried, `FAILED`. why: it does not run, or how it does.
    """

    name: str
    minutes: float | None
    state: str
    why: str = ""


@dataclass(frozen=True, eq=False)
class Plan:
    """What runs and what does not.

    Attributes:
        steps: in the order of what they are worth. minutes: the budget. references: R. costs: what was measured. queries:
            records that all that runs asks the model about, each as often as it is asked.
    """

    steps: tuple[Step, ...]
    minutes: float
    references: int
    costs: MeasuredCosts
    queries: int

    @property
    def needed(self) -> float:
        """Minutes that all that runs is estimated to take."""
        return sum(step.minutes for step in self.steps if step.state == RUNS)

    def state(self, name: str) -> str:
        """Of a step."""
        return next((step.state for step in self.steps if step.name == name), IMPOSSIBLE)

    def __str__(self) -> str:
        wide = max(len(step.name) for step in self.steps)
        lines = [f"{'':{wide}}  {'minutes':>8}"]
        for step in self.steps:
            minutes = "" if step.minutes is None else f"{step.minutes:.2g}" if step.minutes >= 0.01 else "< 0.01"
            lines.append(f"{step.name:{wide}}  {minutes:>8}  {': '.join(filter(None, [step.state, step.why]))}")
        return "\n".join([*lines, f"About {self.needed:.2g} of {self.minutes:g} minutes, and {self.queries:,} queries of the "
                         "model, besides a few hundred of this plan."])


def arrange(inputs: AuditInputs, costs: MeasuredCosts, trained: int = 0) -> Plan:
    """The plan that measured costs make.

    Args:
        costs: as `measure` gives them. trained: references that are there already.

    Raises:
        MiaError: a budget that is too small for anything.
    """
    records, minutes = len(inputs.pool), float(inputs.options.minutes)
    left = SHARE * 60 * minutes
    outputs, control = costs.answer * records, 3 + 5e-4 * min(records, MOST_RECORDS)
    judging = 0.3 + 2e-4 * records  # of an attack
    if outputs + control + judging > left:
        raise MiaError(f"minutes = {minutes:g} is too small for anything: the outputs of {records:,} records and the "
                       f"control take about {(outputs + control + judging) / 60 / SHARE:.2g} minutes. Give more minutes, or "
                       "fewer records.")
    steps = [Step("outputs", outputs / 60, RUNS, f"of {records:,} records"), Step(CONTROL, control / 60, RUNS)]
    left -= outputs + control
    few, why = _first_references(inputs, costs, left, trained)
    first = _training(inputs, costs, few) if few else 0.0
    left -= first
    rows: list[Step] = []
    for attack in ATTACKS.values():
        if obstacle := attacks.find_obstacle(attack, inputs, costs):
            rows.append(Step(attack.name, None, IMPOSSIBLE, obstacle))
            continue
        cost = attacks.seconds(attack, inputs, costs) + judging * (not attack.audits)
        lacking = why if attack.takes_references and not few else _too_dear(cost, left) if cost > left else ""
        left -= 0.0 if lacking else cost
        rows.append(Step(attack.name, cost / 60, TOO_DEAR if lacking else RUNS,
                         lacking or "an audit tool, set apart" * attack.audits))
    retraining = _plan_changes(inputs, costs, left)
    left -= 60 * retraining.minutes if retraining.state == RUNS else 0.0
    count = 0
    if few:  # what is left goes to more of them
        count = max(few, trained, _affordable(inputs, costs, left + first))
        steps.append(Step(REFERENCES, _training(inputs, costs, count) / 60, RUNS, f"{count} {TRAINED_ON}"))
    elif inputs.recipe:
        steps.append(Step(REFERENCES, _training(inputs, costs, LEAST) / 60, TOO_DEAR, why))
    runs = [attack for attack, row in zip(ATTACKS.values(), rows, strict=True) if row.state == RUNS]
    queries = records * (1 + sum(attacks.queries_of(attack, inputs) for attack in runs)) + (
        len(inputs.public) if any(attack.public for attack in runs) else 0)
    return Plan((*steps, *rows, retraining), minutes, count, costs, queries)


def correct(inputs: AuditInputs, plan: Plan, trained: int, seconds: float) -> Plan:
    """The plan once it is known what training takes.

    Args:
        trained: references that are there. seconds: that one of the last took, while all cores trained.
    """
    factor = seconds / _each(inputs, plan.costs)
    costs = replace(plan.costs, epoch=plan.costs.epoch * factor, starting=plan.costs.starting * factor)
    return arrange(inputs, costs, trained)


def _too_dear(cost: float, left: float) -> str:
    return f"would need {cost / 60:.2g} minutes, and {max(left, 0) / 60:.2g} are left"


def _each(inputs: AuditInputs, costs: MeasuredCosts) -> float:
    """Seconds of a reference, where all cores train, or all of a cluster."""
    return max(_alone(inputs, costs, len(inputs.pool) // 2) / pool.at_once(), 1e-6)


def _alone(inputs: AuditInputs, costs: MeasuredCosts, records: int) -> float:
    return costs.starting + costs.epoch * records * max(1, inputs.recipe.epochs)


def _training(inputs: AuditInputs, costs: MeasuredCosts, count: int) -> float:
    return STARTING + count * _each(inputs, costs)


def _affordable(inputs: AuditInputs, costs: MeasuredCosts, left: float) -> int:
    """References, an even number, for which there is time."""
    return min(int(inputs.options.references), max(0, int((left - STARTING) / _each(inputs, costs)))) // 2 * 2


def _first_references(inputs: AuditInputs, costs: MeasuredCosts, left: float, trained: int) -> tuple[int, str]:
    """How many references are wanted before anything dearer, or 0 and why there are none."""
    most = int(inputs.options.references)
    if inputs.recipe is None:
        return 0, "needs a training recipe"
    if most < LEAST:
        return 0, f"references = {most} was asked for, and {LEAST} are needed"
    count = max(trained, _affordable(inputs, costs, left))
    if count < LEAST:
        return 0, f"{LEAST} references {_too_dear(_training(inputs, costs, LEAST), left)}"
    return min(count, FEW), ""


def _plan_changes(inputs: AuditInputs, costs: MeasuredCosts, left: float) -> Step:
    if inputs.recipe is None:
        return Step(RETRAINED, None, IMPOSSIBLE, "needs a training recipe")
    changes = list_changes(inputs)
    cost = STARTING + sum(change.cost for change in changes) * _alone(inputs, costs, len(inputs.members))
    return Step(RETRAINED, cost / 60, *((TOO_DEAR, _too_dear(cost, left)) if cost > left else (
        RUNS, f"{len(changes)} changes of the recipe")))


# ------------------------------------------------------------------------------------------------------------- measurement


def measure(inputs: AuditInputs) -> MeasuredCosts:
    """Costs, of few records; which they are does not depend on chance."""
    target, recipe, x, y = inputs.target, inputs.recipe, inputs.pool.x, inputs.pool.y
    few = np.unique(np.linspace(0, len(x) - 1, 32).astype(int))
    answer = _seconds(lambda: target.ask(x[few]), 1 if target.kind == "function" else 2) / len(few)
    epoch, starting, regression, obstacles = None, 0.0, 0.0, {}

    def attempt(attack: str, work: Callable) -> float:
        """Seconds a record; what cannot be done is one attack less, and no reason to refuse the model."""
        try:
            return _seconds(work) / len(few)
        except (MiaError, RuntimeError, ValueError, TypeError, NotImplementedError) as problem:
            reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0].split(". ")[0][:160]
            obstacles[attack] = f"the model does not do what it asks: {reason}"
            return 0.0

    gradient = curve = 0.0
    if target.kind == "network":
        gradient = attempt("gradient norm", lambda: list(signals.record_gradients(
            target.model, x[few], y[few], inputs.loss, "float64", scaling=target.scaling)))
    else:
        obstacles["gradient norm"] = f"needs weights, and a {target.kind} was given"
    if target.kind == "network" or not (reason := _curvature_obstacle(inputs, few)):
        curve = attempt("curvature", lambda: attacks.traces(inputs, x[few], y[few], 1))
    else:
        obstacles["curvature"] = reason
    if recipe:
        some = np.arange(min(len(inputs.members), 4 * recipe.batch_size))
        part = inputs.members.x[some], inputs.members.y[some], len(inputs.members.classes)
        once, more = (_seconds(partial(training.fit, *part, replace(recipe, epochs=epochs)), 3 - epochs // 2)
                      for epochs in (1, 3))
        epoch = max((more - once) / 2, more / 30) / len(some)
        starting = max(0.0, once - epoch * len(some))
    if inputs.public:
        some, once = np.arange(min(len(inputs.public), 256)), replace(attacks.regression(inputs), epochs=1)
        score = np.random.default_rng(0).standard_normal(len(some))
        model = quantile.GaussianQuantile(once, len(inputs.public.classes))
        regression = _seconds(lambda: model.fit(inputs.public.x[some], score, inputs.public.y[some])) / len(some)
    return MeasuredCosts(answer, gradient, epoch, starting, curve, regression, obstacles)


def _curvature_obstacle(inputs: AuditInputs, few: np.ndarray) -> str:
    """Why differences of the losses of a function or a program say nothing of curvature, or ""."""
    if inputs.target.kind == "program":
        return "needs derivatives, or outputs in float64; the program gives neither"
    if inputs.pool.x.dtype.kind != "f":
        return attacks.UNMOVED
    if inputs.options.queries < 4 * attacks.PROBES or "curvature" in inputs.options.without:
        return "is not asked for"
    x = inputs.pool.x[few].astype(np.float64)
    try:
        here = inputs.target.ask(x)
        if here.dtype != np.float64:
            return f"outputs are {here.dtype}, too coarse for differences of losses"
        there = inputs.target.ask(x + attacks.STEP)
    except MiaError as problem:
        return ("the model does not answer records in float64 that the audit has moved by a small step: "
                f"{str(problem).split('. ')[0].strip()[:160]}")
    if (here == there).all(1).mean() > 0.5:
        return "outputs do not move with small steps of the records, as those of trees"
    return ""


def _seconds(work: Callable, times: int = 2) -> float:
    """That the last of so many calls took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(times):
            begun = time.perf_counter()
            work()
            spent = time.perf_counter() - begun
    return spent


# ---------------------------------------------------------------------------------------------------------- what might help


@dataclass(frozen=True)
class Change:
    """A change of the recipe.

    Attributes:
        name: what it is. config: the recipe with it. cost: how many times the recipe's time. privacy: of DP-SGD, else None.
    """

    name: str
    config: TrainConfig
    cost: float
    privacy: private.Privacy | None = None


@dataclass(frozen=True)
class Price:
    """What a change brought.

    Attributes:
        name: of the change. accuracy: on the non-members. auc: of the loss as an attack. less: AUC of the recipe as it is,
            less this one. price: accuracy of the recipe as it is, less this one. failed: why it could not be trained, or "".
            alike: False of the recipe as it is where it makes a model unlike the audited one.
    """

    name: str
    accuracy: Interval | None = None
    auc: Interval | None = None
    less: Interval | None = None
    price: Interval | None = None
    failed: str = ""
    alike: bool = True

    @property
    def effect(self) -> str:
        """What the change brought, in words."""
        if self.failed:
            return f"could not be trained: {self.failed}"
        if self.less is None:
            return "what the others are compared with"
        leak = ("this training leaked less" if self.less.low > 0 else "this training leaked more" if self.less.high < 0 else
                "no change in the leak that could be told")
        cost = ("cost accuracy" if self.price.low > 0 else "gained accuracy" if self.price.high < 0 else
                "cost no accuracy that could be told")
        return f"{leak}, {cost}"


def list_changes(inputs: AuditInputs) -> list[Change]:
    """The recipe as it is, and with one thing changed at a time, where that can be."""
    recipe = reseeded(inputs.recipe)
    decay = max(DECAY, 10 * recipe.weight_decay)
    changes = [Change(AS_IT_IS, recipe, 1.0),
               Change(f"weight decay {decay:g}", replace(recipe, weight_decay=decay), 1.0)]
    if recipe.epochs > 1:
        fewer = max(1, recipe.epochs // 3)
        changes.append(Change(f"{fewer} in place of {recipe.epochs} epochs", replace(recipe, epochs=fewer), 1 / 3))
    if inputs.pool.is_image and recipe.augmentation == "none":
        changes.append(Change("augmentation flip_crop:2", replace(recipe, augmentation="flip_crop:2"), 1.5))
    if not private.lacking() and recipe.epochs and recipe.batch_size <= len(inputs.members) and recipe.precision == "float32":
        changes.append(Change(f"DP-SGD, epsilon {EPSILON:g}", recipe, 5.0, private.Privacy(EPSILON)))
    return changes


def measure_changes(inputs: AuditInputs, accuracy: tuple[float, float]) -> list[Price]:
    """What each change brought, the recipe as it is first; that alone where it makes a model unlike the audited one.

    Each retrained model is judged by the loss alone, as the retrained recipe beside it is: references of another recipe would
    compare it with what it is not.

    Args:
        accuracy: of the audited model, on members and on non-members.
    """
    everyone, prices, base, level = np.ones((1, len(inputs.members)), bool), [], None, inputs.options.confidence
    how = {"level": level, "draws": 400, "seed": inputs.options.seed}
    for change in list_changes(inputs):
        try:
            train = partial(private.train, privacy=change.privacy) if change.privacy else training.train
            models = train(inputs.members, everyone, change.config, label=change.name)
            loss = signals.loss(models, inputs.pool)[0].astype(np.float64)
            right = signals.correctness(models, inputs.pool)[0]
        except MiaError as problem:  # diverged, or layers that have no private gradient
            prices.append(Price(change.name, failed=str(problem).split(". ")[0]))
            if base is None:
                break
            continue
        others = right[~inputs.inside].astype(float)
        found = metrics.t_interval(others, level, covers="records only", bounds=(0.0, 1.0))
        auc = metrics.bootstrap("auc", -loss, inputs.inside, **how)
        if base is None:
            base = loss, others
            alike = not unlike((right[inputs.inside].mean(), others.mean()), accuracy, inputs)
            prices.append(Price(change.name, found, auc, alike=alike))
            if not alike:
                break
        else:
            prices.append(Price(change.name, found, auc, metrics.compare("auc", -base[0], -loss, inputs.inside, **how),
                                metrics.t_interval(base[1] - others, level, covers="records only", bounds=(-1.0, 1.0))))
    return prices
