"""Plan of an audit: what it can do with what it has, what each part costs, and what of it fits the
budget.

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
from typing import Annotated

import numpy as np
from pydantic import Field

from mia_lib import frames, metrics, signals, training
from mia_lib.attacks import quantile
from mia_lib.audit import attacks
from mia_lib.audit.attacks import ATTACKS, MeasuredCosts
from mia_lib.audit.inputs import MOST_RECORDS, AuditInputs, accuracies_differ, reseeded
from mia_lib.audit.numbers import Interval, Number, result
from mia_lib.audit.options import CONTROL, FAILED, LEFT_OUT, REFERENCES, RETRAINED
from mia_lib.audit.target import changed
from mia_lib.errors import MiaError, first_line
from mia_lib.training import TrainConfig, pool, private

STARTING = 5.0  # seconds until the processes that train are there
SHARE = 0.9  # of the budget is planned for
FEW, MIN_REFERENCES = 8, 4  # references: wanted before anything dearer, and needed at all
RUNS, IMPOSSIBLE, TOO_DEAR = "runs", "not possible", "does not fit"
TRAINED_ON = "trained on halves of the records judged; so each record has some that were trained on it and some that were not"
FROM_ELSEWHERE = "from elsewhere, with what each was trained on"
NO_RECIPE = "needs a training recipe"
DP_SGD = "DP-SGD"
# of the private model; weight decay that is tried, or ten times the recipe's
EPSILON, DECAY = 8.0, 5e-3
AS_IT_IS = "the recipe as it is"


@result
class Step:
    """A part of an audit."""

    name: Annotated[str, Field(serialization_alias="step")]
    """Name of an attack, "outputs", "references", or what else is done."""
    minutes: Annotated[Number | None, Field(serialization_alias="estimated_minutes")]
    """Minutes as estimated; null where it is not possible."""
    state: str
    """Whether it runs, is not possible, does not fit or, once tried, failed."""
    why: str = ""
    """Why it does not run, or how it does."""
    took: Annotated[Number | None, Field(serialization_alias="minutes")] = None
    """Minutes that it took; null where it did not run."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Steps of an audit, those that run and those that do not; as text, a table."""

    steps: tuple[Step, ...]  # in the order of what they are worth
    minutes: float  # the budget
    references: int  # R
    costs: MeasuredCosts
    queries: int  # records that all that runs asks the model about, each as often as it is asked

    @property
    def needed(self) -> float:
        """Minutes that all that runs is estimated to take."""
        return sum(step.minutes for step in self.steps if step.state == RUNS)

    @property
    def failed(self) -> list[str]:
        """Sentences that say what went wrong, one for each step that failed."""
        return [f"{step.name} failed: {step.why}." for step in self.steps if step.state == FAILED]

    def state(self, name: str) -> str:
        """State of the step `name`; `IMPOSSIBLE` if the plan has no such step."""
        return next((step.state for step in self.steps if step.name == name), IMPOSSIBLE)

    def __str__(self) -> str:
        wide = max(len(step.name) for step in self.steps)
        lines = [f"{'':{wide}}  {'minutes':>8}"]
        for step in self.steps:
            minutes = (
                ""
                if step.minutes is None
                else f"{step.minutes:.2g}"
                if step.minutes >= 0.01
                else "< 0.01"
            )
            lines.append(
                f"{step.name:{wide}}  {minutes:>8}  {': '.join(filter(None, [step.state, step.why]))}"
            )
        return "\n".join(
            [
                *lines,
                f"About {self.needed:.2g} of {self.minutes:g} minutes, and {self.queries:,} queries of the "
                "model, besides a few hundred of this plan.",
            ]
        )


def arrange(inputs: AuditInputs, costs: MeasuredCosts, trained: int = 0) -> Plan:
    """The plan that measured costs make.

    Args:
        costs: as `measure` gives them. trained: references that are there already.

    Raises:
        MiaError: a budget that is too small for anything.
    """
    records, minutes, most = len(inputs.pool), inputs.options.minutes, inputs.options.references
    without, outputs = inputs.options.without, costs.answer * records
    control = 0.0 if CONTROL in without else 3 + 5e-4 * min(records, MOST_RECORDS)
    judging = 0.3 + 2e-4 * records  # of an attack
    left = SHARE * 60 * minutes - outputs - control
    if judging > left:
        raise MiaError(
            f"minutes = {minutes:g} is too small for anything: the outputs of {records:,} records and the "
            f"control take about {(outputs + control + judging) / 60 / SHARE:.2g} minutes. Give more minutes, or "
            "fewer records."
        )
    each = seconds_of_reference(inputs, costs)
    starting = STARTING if inputs.recipe else 0.0

    def affordable() -> int:
        """Number of references, even, for which there is time."""
        return max(trained, min(most, max(0, int((left - starting) / each))) // 2 * 2)

    few, why = 0, ""  # references before anything dearer
    if REFERENCES in without:
        why = LEFT_OUT
    elif inputs.given:
        few = len(inputs.given)
    elif not (inputs.recipe or costs.refit):
        why = costs.obstacles.get("refit", NO_RECIPE)
    elif most < MIN_REFERENCES:
        why = f"references = {most} was asked for, and {MIN_REFERENCES} are needed"
    elif affordable() < MIN_REFERENCES:
        why = f"{MIN_REFERENCES} references {_too_dear(starting + MIN_REFERENCES * each, left)}"
    else:
        few = min(affordable(), FEW)
        left -= starting + few * each
    rows = []
    for attack in ATTACKS.values():
        if obstacle := attacks.find_obstacle(attack, inputs, costs):
            rows.append(Step(attack.name, None, IMPOSSIBLE, obstacle))
            continue
        cost = attack.seconds(inputs, costs) + judging * (not attack.knows_membership)
        lacking = (
            why
            if attack.takes_references and not few
            else _too_dear(cost, left)
            if cost > left
            else ""
        )
        left -= 0.0 if lacking else cost
        rows.append(
            Step(
                attack.name,
                cost / 60,
                TOO_DEAR if lacking else RUNS,
                lacking or "an audit tool, set apart" * attack.knows_membership,
            )
        )
    runs = [attack for attack, row in zip(ATTACKS.values(), rows, strict=True) if row.state == RUNS]
    rows.append(_plan_changes(inputs, costs, left))
    left -= 60 * rows[-1].minutes if rows[-1].state == RUNS else 0.0
    before = [
        Step("outputs", outputs / 60, RUNS, f"of {records:,} records"),
        Step(CONTROL, control / 60, RUNS) if control else Step(CONTROL, None, IMPOSSIBLE, LEFT_OUT),
    ]
    count = 0
    if few and inputs.given:
        count = few
        before.append(Step(REFERENCES, 0.0, RUNS, f"{count} {FROM_ELSEWHERE}"))
    elif few:  # what is left goes to more of them
        left += starting + few * each
        count = max(few, affordable())
        before.append(
            Step(REFERENCES, (starting + count * each) / 60, RUNS, f"{count} {TRAINED_ON}")
        )
    elif REFERENCES in without or "refit" in costs.obstacles:
        before.append(Step(REFERENCES, None, IMPOSSIBLE, why))
    elif why != NO_RECIPE:
        before.append(Step(REFERENCES, (starting + MIN_REFERENCES * each) / 60, TOO_DEAR, why))
    queries = records * (1 + sum(attack.queries(inputs) for attack in runs)) + (
        len(inputs.public) if any(attack.public for attack in runs) else 0
    )
    return Plan((*before, *rows), minutes, count, costs, queries)


def correct(inputs: AuditInputs, plan: Plan, trained: int, seconds: float) -> Plan:
    """The plan after `trained` references are trained, by the seconds that each of the last took
    while all cores trained."""
    factor = seconds / seconds_of_reference(inputs, plan.costs)
    costs = replace(
        plan.costs, epoch=plan.costs.epoch * factor, starting=plan.costs.starting * factor
    )
    return arrange(inputs, costs, trained)


def seconds_of_reference(inputs: AuditInputs, costs: MeasuredCosts) -> float:
    """Seconds a reference, while all cores train, or all of a cluster; of one that is fitted again, by itself."""
    if not inputs.recipe:
        return max(costs.refit or 0.0, 1e-6)
    return max(costs.training(inputs.recipe, len(inputs.pool) // 2) / pool.at_once(), 1e-6)


def _too_dear(cost: float, left: float) -> str:
    return f"would need {cost / 60:.2g} minutes, and {max(left, 0) / 60:.2g} are left"


def _plan_changes(inputs: AuditInputs, costs: MeasuredCosts, left: float) -> Step:
    if RETRAINED in inputs.options.without or inputs.recipe is None:
        return Step(
            RETRAINED,
            None,
            IMPOSSIBLE,
            LEFT_OUT if RETRAINED in inputs.options.without else f"{NO_RECIPE} of a network",
        )
    changes, obstacle = list_changes(inputs, costs), costs.obstacles.get(DP_SGD, "")
    cost = STARTING + sum(change.cost for change in changes) * costs.training(
        inputs.recipe, len(inputs.members)
    )
    return Step(
        RETRAINED,
        cost / 60,
        TOO_DEAR if cost > left else RUNS,
        _too_dear(cost, left)
        if cost > left
        else f"{len(changes)} changes of the recipe"
        + f", and not {DP_SGD}: {obstacle}" * bool(obstacle),
    )


# ------------------------------------------------------------------------------------------------------------- measurement


def measure(inputs: AuditInputs) -> MeasuredCosts:
    """Measure costs on a few records, the same in every run."""
    target, recipe, x, y = inputs.target, inputs.recipe, inputs.pool.x, inputs.pool.y
    few = np.unique(np.linspace(0, len(x) - 1, 32).astype(int))
    some_x = frames.take(x, few)
    seconds, obstacles = {}, {}
    answer = _seconds(lambda: target.ask(some_x), 1 if target.kind == "function" else 2) / len(few)

    def attempt(cost: str, work: Callable, records: int = len(few)) -> None:
        """Measure the seconds a record that `work` takes. If it fails, attacks with this cost are
        left out, which is no reason to refuse the model."""
        try:
            seconds[cost] = _seconds(work) / records
        except Exception as problem:
            obstacles[cost] = f"the model does not do what it asks: {reason(problem)}"

    if target.kind == "network":
        attempt(
            "gradient",
            lambda: list(
                signals.record_gradients(
                    target.model, some_x, y[few], target.loss, "float64", scaling=target.scaling
                )
            ),
        )
    if not attacks.find_obstacle(ATTACKS["curvature"], inputs, MeasuredCosts(answer)):
        if target.kind == "function" and (
            obstacle := _find_coarseness(inputs, some_x.astype(np.float64))
        ):
            obstacles["curve"] = obstacle
        else:
            attempt("curve", lambda: attacks.traces(inputs, some_x, y[few], 1))
    if recipe:
        some = np.arange(min(len(inputs.members), 4 * recipe.batch_size))
        part = inputs.members.x[some], inputs.members.y[some], len(inputs.members.classes)
        once, more = (
            _seconds(partial(training.fit, *part, replace(recipe, epochs=epochs)), times)
            for epochs, times in ((1, 3), (3, 2))
        )
        seconds["epoch"] = max((more - once) / 2, more / 30) / len(some)
        seconds["starting"] = max(0.0, once - seconds["epoch"] * len(some))
        if obstacle := _find_private_obstacle(inputs):
            obstacles[DP_SGD] = obstacle
    if inputs.refits and REFERENCES not in inputs.options.without:
        before = target.ask(some_x)
        try:
            seconds["refit"] = _seconds(lambda: inputs.refits.train(0), 1)
        except Exception as problem:
            obstacles["refit"] = f"a reference could not be fitted: {reason(problem)}"
        if changed(before, target.ask(some_x)):
            raise MiaError(
                "refit has changed the model that is audited, which answers otherwise now: it fits that very object again. "
                "Let it fit a new one, as sklearn.base.clone(model).fit(x, y), and give the model as it was."
            )
    if inputs.public and not inputs.public.is_frame:
        some = np.arange(min(len(inputs.public), 256))
        score = np.random.default_rng(0).standard_normal(len(some))
        model = quantile.GaussianQuantile(
            replace(attacks.regression(inputs), epochs=1), len(inputs.public.classes)
        )
        attempt(
            "regression",
            lambda: model.fit(inputs.public.x[some], score, inputs.public.y[some]),
            len(some),
        )
    return MeasuredCosts(answer, **seconds, obstacles=obstacles)


def reason(problem: Exception) -> str:
    """Why a part of an audit failed, in one sentence."""
    said = first_line(problem).split(". ")[0].rstrip(".")
    return said if isinstance(problem, MiaError) else f"{type(problem).__name__}: {said}"


def _find_private_obstacle(inputs: AuditInputs) -> str:
    """Why the recipe cannot be trained by DP-SGD, or ""."""
    if obstacle := private.missing_dependency():
        return obstacle
    try:
        private.train(
            inputs.members,
            np.ones((1, len(inputs.members)), bool),
            inputs.recipe,
            private.Privacy(EPSILON),
        )
    except Exception as problem:
        return reason(problem)
    return ""


def _find_coarseness(inputs: AuditInputs, x: np.ndarray) -> str:
    """Why differences of a function's losses say nothing of curvature, or ""."""
    try:
        here = inputs.target.ask(x)
        if here.dtype != np.float64:
            return f"outputs are {here.dtype}, too coarse for differences of losses"
        there = inputs.target.ask(x + attacks.STEP)
    except MiaError as problem:
        return (
            "the model does not answer records in float64 that the audit has moved by a small step: "
            f"{reason(problem)}"
        )
    if (here == there).all(1).mean() > 0.5:
        return "outputs do not move with small steps of the records, as those of trees"
    return ""


def _seconds(work: Callable, times: int = 2) -> float:
    """Seconds taken by the last of `times` calls of `work`."""
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
    """A change of the recipe."""

    name: str
    config: TrainConfig  # the recipe with it
    cost: float  # how many times the recipe's time
    privacy: private.Privacy | None = None  # of DP-SGD


@result
class Price:
    """Effect of a change of the recipe on accuracy and on the leak."""

    name: str
    accuracy: Interval | None = None
    """Accuracy on the non-members of a model that was trained with the change."""
    auc: Interval | None = None
    """AUC of the loss as an attack on that model."""
    less: Interval | None = None
    """AUC of the recipe as it is, less this one; null of the recipe as it is."""
    price: Interval | None = None
    """Accuracy of the recipe as it is, less this one; null of the recipe as it is."""
    failed: str = ""
    """Why it could not be trained."""
    alike: bool = True
    """False of the recipe as it is where it makes a model unlike the audited one."""

    @property
    def effect(self) -> str:
        """Effect of the change, in words."""
        if self.failed:
            return f"could not be trained: {self.failed}"
        if self.less is None:
            return "what the others are compared with"
        leak = (
            "this training leaked less"
            if self.less.low > 0
            else "this training leaked more"
            if self.less.high < 0
            else "no change in the leak that could be told"
        )
        cost = (
            "cost accuracy"
            if self.price.low > 0
            else "gained accuracy"
            if self.price.high < 0
            else "cost no accuracy that could be told"
        )
        return f"{leak}, {cost}"


def list_changes(inputs: AuditInputs, costs: MeasuredCosts) -> list[Change]:
    """The recipe as it is, and with one thing changed at a time, where that can be."""
    recipe = reseeded(inputs.recipe)
    decay = max(DECAY, 10 * recipe.weight_decay)
    changes = [
        Change(AS_IT_IS, recipe, 1.0),
        Change(f"weight decay {decay:g}", replace(recipe, weight_decay=decay), 1.0),
    ]
    if recipe.epochs > 1:
        fewer = max(1, recipe.epochs // 3)
        changes.append(
            Change(
                f"{fewer} in place of {recipe.epochs} epochs", replace(recipe, epochs=fewer), 1 / 3
            )
        )
    if inputs.pool.is_image and recipe.augmentation == "none":
        changes.append(
            Change("augmentation flip_crop:2", replace(recipe, augmentation="flip_crop:2"), 1.5)
        )
    if DP_SGD not in costs.obstacles and recipe.epochs:
        changes.append(
            Change(f"{DP_SGD}, epsilon {EPSILON:g}", recipe, 5.0, private.Privacy(EPSILON))
        )
    return changes


def measure_changes(
    inputs: AuditInputs, costs: MeasuredCosts, accuracy: tuple[float, float]
) -> list[Price]:
    """Effects of changes of the recipe, the unchanged recipe first; it alone if it makes a model
    unlike the audited one.

    Each retrained model is judged by the loss alone, as the retrained recipe beside it is: references of another recipe would
    compare it with what it is not.

    Args:
        costs: as `measure` gives them, with what keeps DP-SGD from being tried. accuracy: of the audited model, on members and
            on non-members.
    """
    is_member, level = inputs.is_member, inputs.options.confidence
    how = {"level": level, "draws": 400, "seed": inputs.options.seed}
    prices: list[Price] = []
    for change in list_changes(inputs, costs):
        try:
            train = (
                partial(private.train, privacy=change.privacy) if change.privacy else training.train
            )
            models = train(
                inputs.members,
                np.ones((1, len(inputs.members)), bool),
                change.config,
                label=change.name,
            )
            loss = signals.loss(models, inputs.pool)[0].astype(np.float64)
            right = signals.correctness(models, inputs.pool)[0].astype(float)
            price = Price(
                change.name,
                metrics.t_interval(
                    right[~is_member], level, covers="records only", bounds=(0.0, 1.0)
                ),
                metrics.bootstrap("auc", -loss, is_member, **how),
            )
            if not prices:
                base_loss, base_right = loss, right
                alike = not accuracies_differ(
                    (right[is_member].mean(), right[~is_member].mean()), accuracy, inputs
                )
                prices.append(replace(price, alike=alike))
            else:
                prices.append(
                    replace(
                        price,
                        less=metrics.compare("auc", -base_loss, -loss, is_member, **how),
                        price=metrics.t_interval(
                            (base_right - right)[~is_member],
                            level,
                            covers="records only",
                            bounds=(-1.0, 1.0),
                        ),
                    )
                )
        except Exception as problem:  # one change less
            prices.append(Price(change.name, failed=reason(problem)))
        if prices[0].failed or not prices[0].alike:
            break
    return prices
