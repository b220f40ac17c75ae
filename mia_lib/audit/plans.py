"""What an audit can do with what it has, what each part costs, and what of it fits the budget.

Costs come from a few records that are measured first: outputs, gradients, one pass of training. They are estimates, and
references that share a core or a stack of small networks are quicker than theirs; `correct` puts right what training the first
references has shown.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mia_lib import signals, training
from mia_lib.attacks import quantile
from mia_lib.attacks.registry import Attack
from mia_lib.audit import attacks, remedies
from mia_lib.audit.attacks import ATTACKS, HALVES, PUBLIC, MeasuredCosts
from mia_lib.audit.inputs import AuditInputs
from mia_lib.errors import MiaError
from mia_lib.training.backends import pool

STARTING = 5.0  # seconds until the processes that train are there
SHARE = 0.9  # of the budget is planned for
FEW, LEAST_HALVES, LEAST_PUBLIC = 8, 4, 2  # references: wanted before anything dearer, and needed at all, of each kind
RUNS, IMPOSSIBLE, TOO_DEAR, FAILED = "runs", "not possible", "does not fit", "failed"
CONTROL, REFERENCES, RETRAINED = "control without the model", "references", "what to try, retrained"
MOVED = "the model does not answer records in float64 that the audit has moved by a small step: {problem}"


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
        steps: in the order of what they are worth. minutes: the budget. references: R. variant: what they are trained on, ""
            where there are none. costs: what was measured. queries: records that all that runs asks the model about, each as
            often as it is asked.
    """

    steps: tuple[Step, ...]
    minutes: float
    references: int
    variant: str
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


def arrange(inputs: AuditInputs, costs: MeasuredCosts, variant: str = "", trained: int = 0) -> Plan:
    """The plan that measured costs make.

    Args:
        costs: as `measure` gives them. variant: what references are trained on; the better that fits, where it is open.
        trained: references that are there already.

    Raises:
        MiaError: a budget that is too small for anything.
    """
    records, minutes = len(inputs.pool), float(inputs.options.minutes)
    left = SHARE * 60 * minutes
    outputs, control = costs.answer * records, 3 + 5e-4 * min(records, 4000)
    judging = 0.3 + 1e-4 * records  # of an attack
    if outputs + control + judging > left:
        raise MiaError(f"minutes = {minutes:g} is too small for anything: the outputs of {records:,} records and the "
                       f"control take about {(outputs + control + judging) / 60 / SHARE:.2g} minutes. Give more minutes, or "
                       "fewer records.")
    steps = [Step("outputs", outputs / 60, RUNS, f"of {records:,} records"), Step(CONTROL, control / 60, RUNS)]
    left -= outputs + control
    count, variant, why = _choose_references(inputs, costs, left, variant, trained)
    first = _training(inputs, costs, variant, min(count, FEW)) if count else 0.0
    left -= first
    rows: list[Step] = []
    for attack in ATTACKS.values():
        obstacle = attacks.find_obstacle(attack, inputs, costs)
        cost = None if obstacle else attacks.seconds(attack, inputs, costs) + judging * (not attack.audits)
        lacking = obstacle or attack.takes_references and (why if not count else _not_of_public(attack, variant)) or ""
        if lacking:
            state = TOO_DEAR if attack.takes_references and inputs.recipe and not count else IMPOSSIBLE
        else:
            state, lacking = (RUNS, "an audit tool, set apart" if attack.audits else "") if cost <= left else (
                TOO_DEAR, _too_dear(cost, left))
        left -= cost if state == RUNS else 0.0
        rows.append(Step(attack.name, None if cost is None else cost / 60, state, lacking))
    retraining = _plan_remedies(inputs, costs, left)
    left -= 60 * retraining.minutes if retraining.state == RUNS else 0.0
    if count:  # what is left goes to more of them
        count = max(min(count, FEW), min(inputs.options.references, _affordable(inputs, costs, variant, left + first)))
        count = max(trained, count - count % 2 if variant == HALVES else count)
        steps.append(Step(REFERENCES, _training(inputs, costs, variant, count) / 60, RUNS,
                          f"{count} trained on {variant}; {why}"))
    elif inputs.recipe:
        steps.append(Step(REFERENCES, _training(inputs, costs, HALVES, LEAST_HALVES) / 60, TOO_DEAR, why))
    runs = [attack for attack, row in zip(ATTACKS.values(), rows, strict=True) if row.state == RUNS]
    queries = records * (1 + sum(attacks.queries_of(attack, inputs) for attack in runs)) + (
        len(inputs.public) if any(attack.public for attack in runs) else 0)
    return Plan((*steps, *rows, retraining), minutes, count, variant if count else "", costs, queries)


def correct(inputs: AuditInputs, plan: Plan, trained: int, seconds: float) -> Plan:
    """The plan once it is known what training takes.

    Args:
        trained: references that are there. seconds: that one of the last took, while all cores trained.
    """
    factor = seconds / _each(inputs, plan.costs, plan.variant)
    costs = replace(plan.costs, epoch=plan.costs.epoch * factor, starting=plan.costs.starting * factor)
    return arrange(inputs, costs, plan.variant, trained)


def _not_of_public(attack: Attack, variant: str) -> str:
    if variant == PUBLIC and attack.name in ("LiRA", "RMIA"):
        return f"needs references trained on {HALVES}, and these are trained on {PUBLIC}"
    return ""


def _too_dear(cost: float, left: float) -> str:
    return f"would need {cost / 60:.2g} minutes, and {max(left, 0) / 60:.2g} are left"


def size(inputs: AuditInputs, variant: str) -> int:
    """Records that a reference is trained on."""
    return len(inputs.pool) // 2 if variant == HALVES else min(len(inputs.members), round(0.8 * len(inputs.public)))


def _each(inputs: AuditInputs, costs: MeasuredCosts, variant: str) -> float:
    """Seconds of a reference, where all cores train, or all of a cluster."""
    return max(_alone(inputs, costs, size(inputs, variant)) / pool.at_once(), 1e-6)


def _alone(inputs: AuditInputs, costs: MeasuredCosts, records: int) -> float:
    return costs.starting + costs.epoch * records * max(1, inputs.recipe.epochs)


def _training(inputs: AuditInputs, costs: MeasuredCosts, variant: str, count: int) -> float:
    return STARTING + count * _each(inputs, costs, variant)


def _affordable(inputs: AuditInputs, costs: MeasuredCosts, variant: str, left: float) -> int:
    return max(0, int((left - STARTING) / _each(inputs, costs, variant)))


def _choose_references(inputs: AuditInputs, costs: MeasuredCosts, left: float, variant: str,
                       trained: int) -> tuple[int, str, str]:
    """How many references, trained on what, and why so or why none; `variant` and `trained` as for `arrange`."""
    most = int(inputs.options.references)
    if inputs.recipe is None:
        return 0, "", "needs a training recipe"
    if most < LEAST_PUBLIC:
        return 0, "", f"references = {most} was asked for"
    of_halves = 0 if variant == PUBLIC else max(trained, min(most, _affordable(inputs, costs, HALVES, left)) // 2 * 2)
    of_public = 0 if variant == HALVES or inputs.public is None else max(
        trained, min(most, _affordable(inputs, costs, PUBLIC, left)))
    wanted = min(FEW, most // 2 * 2)
    if of_halves >= LEAST_HALVES and (of_halves >= wanted or of_public < LEAST_PUBLIC):
        return of_halves, HALVES, "so each record has some that were trained on it and some that were not"
    if of_public >= LEAST_PUBLIC:
        return of_public, PUBLIC, "of which none holds a record judged; " + (
            f"{wanted} on {HALVES} do not fit" if wanted >= LEAST_HALVES else
            f"references = {most} was asked for, and on {HALVES} {LEAST_HALVES} are needed")
    if most < LEAST_HALVES:
        return 0, "", f"references = {most} was asked for, and {LEAST_HALVES} are needed"
    return 0, "", f"{LEAST_HALVES} references {_too_dear(_training(inputs, costs, HALVES, LEAST_HALVES), left)}"


def _plan_remedies(inputs: AuditInputs, costs: MeasuredCosts, left: float) -> Step:
    if inputs.recipe is None:
        return Step(RETRAINED, None, IMPOSSIBLE, "needs a training recipe")
    changes = remedies.list_changes(inputs)
    cost = STARTING + sum(change.cost for change in changes) * _alone(inputs, costs, len(inputs.members))
    if cost > left:
        return Step(RETRAINED, cost / 60, TOO_DEAR, _too_dear(cost, left))
    return Step(RETRAINED, cost / 60, RUNS, f"{len(changes)} changes of the recipe")


# ------------------------------------------------------------------------------------------------------------- measurement


def measure(inputs: AuditInputs) -> MeasuredCosts:
    """Costs, of few records; which they are does not depend on chance."""
    target, recipe, x, y = inputs.target, inputs.recipe, inputs.pool.x, inputs.pool.y
    few = np.unique(np.linspace(0, len(x) - 1, 32).astype(int))
    answer = _seconds(lambda: target.ask(x[few], again=True), 1 if target.kind == "function" else 2) / len(few)
    gradient = curve = epoch = regression = None
    starting, no_curvature = 0.0, ""
    if target.kind == "network":
        gradient = _seconds(lambda: list(signals.record_gradients(target.model, x[few], y[few], inputs.loss, "float64",
                                                                  scaling=target.scaling))) / len(few)
    else:
        no_curvature = _why_no_curvature(inputs, few)
    if not no_curvature:
        try:
            curve = _seconds(lambda: attacks.traces(inputs, x[few], y[few], 1)) / len(few)
        except MiaError as problem:
            no_curvature = MOVED.format(problem=_first_sentence(problem))
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
    return MeasuredCosts(answer, gradient, epoch, starting, curve, regression, no_curvature)


def _why_no_curvature(inputs: AuditInputs, few: np.ndarray) -> str:
    """Why differences of the losses of a function or a program say nothing of curvature, or ""."""
    if inputs.target.kind == "program":
        return "needs derivatives, or outputs in float64; the program gives neither"
    if inputs.pool.is_image:
        return attacks.UNMOVED
    x = inputs.pool.x[few].astype(np.float64)
    try:
        here = inputs.target.ask(x, again=True)
        if here.dtype != np.float64:
            return f"outputs are {here.dtype}, too coarse for differences of losses"
        there = inputs.target.ask(x + attacks.STEP, again=True)
    except MiaError as problem:  # one attack less, and no reason to refuse the model
        return MOVED.format(problem=_first_sentence(problem))
    if (here == there).all(1).mean() > 0.5:
        return "outputs do not move with small steps of the records, as those of trees"
    return ""


def _first_sentence(problem: MiaError) -> str:
    return str(problem).split(". ")[0].strip()[:160]


def _seconds(work: Callable, times: int = 2) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(times):
            begun = time.perf_counter()
            work()
            spent = time.perf_counter() - begun
    return spent
