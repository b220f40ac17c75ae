"""What an audit can do with what it was given, what each part costs, and what of it fits the budget.

Costs come from a few records that are measured first: outputs, gradients, one pass of training. They are estimates, and
references that share a core or a stack of small networks are quicker than theirs.
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
from mia_lib.audit.attacks import ATTACKS, HALVES, PUBLIC, Probe
from mia_lib.audit.given import Given
from mia_lib.errors import MiaError
from mia_lib.training.backends import pool

STARTING = 5.0  # seconds until the processes that train are there
SHARE = 0.9  # of the budget is planned for
FEW, LEAST_HALVES, LEAST_PUBLIC = 8, 4, 2  # references: wanted before anything dearer, and needed at all, of each kind
RUNS, IMPOSSIBLE, TOO_DEAR, FAILED = "runs", "not possible", "does not fit", "failed"
BLIND = "control without the model"
MOVED = "the model does not answer records in float64 that the audit has moved by a small step: {problem}"
WHY_HALVES = "so each record has some that were trained on it and some that were not"


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
            where there are none. probe: what was measured. records, public: that are judged, and besides.
    """

    steps: tuple[Step, ...]
    minutes: float
    references: int
    variant: str
    probe: Probe
    records: int = 0
    public: int = 0

    @property
    def queries(self) -> int:
        """Records that all that runs asks the model about, each as often as it is asked."""
        runs = {step.name for step in self.steps if step.state == RUNS}
        public = self.public * any(ATTACKS[name].public for name in runs & ATTACKS.keys())
        return self.records * (1 + 4 * attacks.PROBES * ("curvature" in runs)) + public

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
            said = ": ".join(filter(None, [step.state, step.why]))
            lines.append(f"{step.name:{wide}}  {minutes:>8}  {said}")
        return "\n".join([*lines, f"About {self.needed:.2g} of {self.minutes:g} minutes, and {self.queries:,} queries of the "
                         "model, besides a few hundred of this plan."])


def plan(given: Given) -> Plan:
    """What an audit of this does.

    Raises:
        MiaError: a budget that is too small for anything.
    """
    probe = measure(given)
    return arranged(given, probe)


def arranged(given: Given, probe: Probe) -> Plan:
    """The plan that measured costs make."""
    records, left = len(given.pool), SHARE * 60 * given.minutes
    outputs, blind = probe.answer * records, 3 + 5e-4 * min(records, 4000)
    judging = 0.3 + 1e-4 * records  # of an attack
    if outputs + blind + judging > left:
        raise MiaError(f"minutes = {given.minutes:g} is too small for anything: the outputs of {records:,} records and the "
                       f"control take about {(outputs + blind + judging) / 60 / SHARE:.2g} minutes. Give more minutes, or "
                       "fewer records.")
    steps = [Step("outputs", outputs / 60, RUNS, f"of {records:,} records"), Step(BLIND, blind / 60, RUNS)]
    left -= outputs + blind
    count, variant, why = _references(given, probe, left)
    if count:
        left -= _training(given, probe, variant, min(count, FEW))
    rows: list[Step] = []
    for attack in ATTACKS.values():
        missing = attacks.lacks(attack, given, probe)
        lacking = missing or (attack.takes_references and _not_of_these(attack, count, variant, why)) or ""
        cost = None if missing else attacks.seconds(attack, given, probe) + judging * (not attack.audits)
        state = IMPOSSIBLE if lacking else RUNS if cost <= left else TOO_DEAR
        if state == RUNS:
            left -= cost
            lacking = "an audit tool, set apart" if attack.audits else ""
        elif state == TOO_DEAR:
            lacking = f"would need {cost / 60:.2g} minutes, and {max(left, 0) / 60:.2g} are left"
        elif attack.takes_references and given.recipe and not count:
            state = TOO_DEAR
        rows.append(Step(attack.name, None if cost is None else cost / 60, state, lacking))
    fixing, cure = _remedies(given, probe, left)
    left -= cure if fixing.state == RUNS else 0.0
    if count:  # what is left goes to more of them
        more = _affordable(given, probe, variant, left + _training(given, probe, variant, min(count, FEW)))
        count = min(given.references, max(min(count, FEW), more))
        count -= count % 2 if variant == HALVES else 0
        cost = _training(given, probe, variant, count)
        steps.append(Step("references", cost / 60, RUNS, f"{count} trained on {variant}; {why}"))
    elif given.recipe:
        steps.append(Step("references", _training(given, probe, HALVES, LEAST_HALVES) / 60, TOO_DEAR, why))
    steps += rows
    return Plan((*steps, fixing), given.minutes, count, variant if count else "", probe, len(given.pool),
                0 if given.public is None else len(given.public))


def _not_of_these(attack: Attack, count: int, variant: str, why: str) -> str:
    if not count:
        return why
    if variant == PUBLIC and attack.name in ("LiRA", "RMIA"):
        return f"needs references trained on {HALVES}, and these are trained on {PUBLIC}"
    return ""


def size(given: Given, variant: str) -> int:
    """Records that a reference is trained on."""
    return len(given.pool) // 2 if variant == HALVES else min(len(given.members), round(0.8 * len(given.public)))


def _each(given: Given, probe: Probe, variant: str) -> float:
    """Seconds of a reference, where all cores train, or all of a cluster."""
    return _trained(given, probe, size(given, variant)) / pool.at_once()


def _trained(given: Given, probe: Probe, records: int) -> float:
    return probe.starting + probe.epoch * records * max(1, given.recipe.epochs)


def _training(given: Given, probe: Probe, variant: str, count: int) -> float:
    return STARTING + count * _each(given, probe, variant)


def _affordable(given: Given, probe: Probe, variant: str, left: float) -> int:
    return max(0, int((left - STARTING) / max(_each(given, probe, variant), 1e-6)))


def _references(given: Given, probe: Probe, left: float) -> tuple[int, str, str]:
    """How many references, trained on what, and why so or why none."""
    if given.recipe is None:
        return 0, "", "needs a training recipe"
    if given.references < LEAST_PUBLIC:
        return 0, "", f"references = {given.references} was asked for"
    of_halves = min(given.references, _affordable(given, probe, HALVES, left)) // 2 * 2
    wanted = min(FEW, given.references // 2 * 2)
    if of_halves >= LEAST_HALVES and (of_halves >= wanted or given.public is None):
        return of_halves, HALVES, WHY_HALVES
    of_public = 0 if given.public is None else min(given.references, _affordable(given, probe, PUBLIC, left))
    if of_public >= LEAST_PUBLIC:
        return of_public, PUBLIC, "of which none holds a record judged; " + (
            f"{wanted} on {HALVES} do not fit" if wanted >= LEAST_HALVES else
            f"references = {given.references} was asked for, and on {HALVES} {LEAST_HALVES} are needed")
    if of_halves >= LEAST_HALVES:
        return of_halves, HALVES, WHY_HALVES
    if given.references < LEAST_HALVES:
        return 0, "", f"references = {given.references} was asked for, and {LEAST_HALVES} are needed"
    needed = _training(given, probe, HALVES, LEAST_HALVES) / 60
    return 0, "", f"{LEAST_HALVES} references would need {needed:.2g} minutes, and {left / 60:.2g} are left"


def _remedies(given: Given, probe: Probe, left: float) -> tuple[Step, float]:
    name = "what to try, retrained"
    if given.recipe is None:
        return Step(name, None, IMPOSSIBLE, "needs a training recipe"), 0.0
    weight = sum(change.cost for change in remedies.changes(given))
    cost = STARTING + weight * _trained(given, probe, len(given.members))
    if cost > left:
        return Step(name, cost / 60, TOO_DEAR, f"would need {cost / 60:.2g} minutes, and {max(left, 0) / 60:.2g} are "
                                               "left"), cost
    return Step(name, cost / 60, RUNS, f"{len(remedies.changes(given))} changes of the recipe"), cost


# ------------------------------------------------------------------------------------------------------------- measurement


def measure(given: Given) -> Probe:
    """Seconds of what costs, each on a few records; what is slow the first time is run once before."""
    target, x, y = given.target, given.pool.x, given.pool.y
    few = np.unique(np.linspace(0, len(x) - 1, 32).astype(int))
    answer = _seconds(lambda: target.ask(x[few], again=True), 1 if target.kind == "function" else 2) / len(few)
    gradient = curve = epoch = regression = None
    starting = 0.0
    rough = "" if target.kind == "network" else _rough(given, few)
    if target.kind == "network":
        gradient = _seconds(lambda: list(signals.record_gradients(target.model, x[few], y[few], given.loss, "float64",
                                                                  scaling=target.scaling))) / len(few)
    if not rough:
        try:
            curve = _seconds(lambda: attacks.traces(given, x[few], y[few], 1)) / len(few)
        except MiaError as problem:
            rough = MOVED.format(problem=_first_sentence(problem))
    if given.recipe:
        some = np.arange(min(len(given.members), 4 * given.recipe.batch_size))
        once, more = (_seconds(partial(training.fit, given.members.x[some], given.members.y[some], len(given.members.classes),
                                       replace(given.recipe, epochs=epochs)), 3 - epochs // 2) for epochs in (1, 3))
        epoch = max((more - once) / 2, more / 30) / len(some)
        starting = max(0.0, once - epoch * len(some))
    if given.public:
        some, once = np.arange(min(len(given.public), 256)), replace(attacks.regression(given), epochs=1)
        score = np.random.default_rng(0).standard_normal(len(some))
        made = quantile.GaussianQuantile(once, len(given.public.classes))
        regression = _seconds(lambda: made.fit(given.public.x[some], score, given.public.y[some])) / len(some)
    return Probe(answer, gradient, epoch, starting, curve, regression, rough)


def _rough(given: Given, few: np.ndarray) -> str:
    """Why differences of a function's losses say nothing of curvature, or ""."""
    x = given.pool.x
    if given.target.kind == "program":
        return "needs derivatives, or outputs in float64; the program gives neither"
    if given.pool.is_image:
        return "needs records that can be moved by small steps, and bytes cannot"
    try:
        here = given.target.ask(x[few].astype(np.float64), again=True)
        if here.dtype != np.float64:
            return f"outputs are {here.dtype}, too coarse for differences of losses"
        there = given.target.ask(x[few].astype(np.float64) + attacks.STEP, again=True)
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
