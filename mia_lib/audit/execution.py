"""An audit from what was given to a report, within its budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mia_lib import signals
from mia_lib.audit import attacks, plans, statistics
from mia_lib.audit.attacks import ATTACKS, AuditSignals
from mia_lib.audit.inputs import AuditInputs, check_inputs, check_right, check_scores, references, score_inputs
from mia_lib.audit.options import AuditOptions
from mia_lib.audit.plans import FAILED, REFERENCES, RETRAINED, RUNS, TOO_DEAR, Plan, Step
from mia_lib.audit.report import Report, describe_provenance
from mia_lib.data import Dataset
from mia_lib.errors import MiaError
from mia_lib.training import Ensemble, pool


def plan(model, members: Dataset, non_members: Dataset, **options) -> Plan:
    """What an audit would do, without doing it: each attack, whether it is possible, its minutes, whether it fits; as text, a
    table. A few records are measured for it. Arguments as for `audit`."""
    inputs = check_inputs(model, members, non_members, AuditOptions(**options))
    return plans.arrange(inputs, plans.measure(inputs))


def audit(model, members: Dataset, non_members: Dataset, **options) -> Report:
    """Attack a model of one's own with all that is at hand, within a budget.

    Args:
        model: a network in evaluation mode, a program of `torch.export`, or a function from records as `Dataset.x` has them
            (`data.from_arrays` makes tables float32; `data.Dataset` leaves ids of tokens int64) to outputs [N, K], such as a
            scikit-learn model's `predict_proba`. Of what returns a dictionary or an object with `logits` these are taken.
            Curvature asks a function in float64, and is left out where that is refused.
        members: records that it was trained on, all or a sample. non_members: others of the same distribution, as many as can
            be had: their number is what rates of false positives are resolved by.
        options: attributes of `AuditOptions` by name.

    Returns:
        a report; `save(folder)` writes audit.html and audit.json. Its `leak` is None where the control tells members from
        non-members; its `answer` begins with what else is to be looked at first.

    Raises:
        MiaError: whatever cannot be used, before any work; a budget too small for anything; a function that fails.
    """
    begun = time.perf_counter()
    inputs = check_inputs(model, members, non_members, AuditOptions(**options))
    return _run(inputs, plans.arrange(inputs, plans.measure(inputs)), begun)


def audit_scores(scores: np.ndarray, members: np.ndarray, **options) -> Report:
    """Judge scores that were made elsewhere: rates with intervals, tests, lower bound on epsilon, groups. No model is asked.

    Args:
        scores: [N], higher for members. members: bool [N], who was trained on.
        options: attributes of `AuditOptions` by name: fpr, groups (an array [N]), delta, confidence, name, seed.

    Raises:
        MiaError: whatever cannot be used.
    """
    begun = time.perf_counter()
    table = check_scores(scores, members, AuditOptions(**options))
    by_name = {"score": table.scores}
    return Report(table, None, {}, by_name, statistics.judge(table, by_name), [], None, None,
                  describe_provenance(table, time.perf_counter() - begun))


def _run(inputs: AuditInputs, plan: Plan, begun: float) -> Report:
    """What was planned; `begun` is when the budget began to count."""
    minutes: dict[str, float] = {}
    ended: dict[str, tuple[str, str]] = {}  # what was planned and has no result -> state and why

    def left() -> float:
        return 60 * inputs.options.minutes - (time.perf_counter() - begun)

    def timed(name: str, work):
        start = time.perf_counter()
        result = work()
        minutes[name] = (time.perf_counter() - start) / 60
        return result

    view, of_references, prices = AuditSignals(inputs), None, []
    timed("outputs", lambda: view.own("loss"))
    right = view.own("correctness") > 0.5
    check_right(inputs, right)
    accuracy = float(right[inputs.inside].mean()), float(right[~inputs.inside].mean())
    control = timed(plans.CONTROL, lambda: score_inputs(inputs.pool, inputs.inside, inputs.options.seed))
    if plan.references:
        models, plan = timed(REFERENCES, lambda: train_references(inputs, plan, left))
        view = AuditSignals(inputs, models)
        if models is None:
            ended[REFERENCES] = TOO_DEAR, "out of time"
        else:
            known = signals.correctness(models, inputs.pool)
            of_references = float(known[models.members].mean()), float(known[~models.members].mean())
    scores: dict[str, np.ndarray] = {}
    for name, attack in ATTACKS.items():
        if plan.state(name) != RUNS:
            continue
        if attack.takes_references and view.models is None:
            ended[name] = TOO_DEAR, "no references: out of time"
            continue
        if left() < 0 and scores:
            ended[name] = TOO_DEAR, "the budget was spent"
            continue
        try:
            scores[name] = timed(name, lambda attack=attack: attacks.score(attack, view))
        except MiaError as problem:
            if name == "MALT":
                raise
            ended[name] = FAILED, str(problem)
    if plan.state(RETRAINED) == RUNS:
        if left() > 0:
            prices = timed(RETRAINED, lambda: plans.measure_changes(inputs, accuracy))
        else:
            ended[RETRAINED] = TOO_DEAR, "the budget was spent"
    result = timed("judging", lambda: statistics.judge(inputs, scores, attacks.TOOLS, control, view.own("outputs").argmax(1)))
    plan = replace(plan, references=0 if view.models is None else len(view.models), steps=tuple(
        Step(step.name, step.minutes, *ended.get(step.name, (step.state, step.why))) for step in plan.steps))
    return Report(inputs, plan, minutes, scores, result, prices, accuracy, of_references,
                  describe_provenance(inputs, time.perf_counter() - begun))


def train_references(inputs: AuditInputs, plan: Plan, left: Callable[[], float]) -> tuple[Ensemble | None, Plan]:
    """References, as many as the seconds that are `left()` allow, each kept as it is finished, or None where these are too
    few; and the plan as corrected by what they took."""
    models, done = references(inputs, int(inputs.options.references) // 2 * 2), 0
    while done < plan.references:
        upto = min(plan.references, done + max(8, 2 * pool.at_once()) if done else max(2, pool.at_once() // 2 * 2))
        batch, start = models.part(range(done, upto)), time.perf_counter()
        missing = len(batch.missing())  # the others were kept by an earlier call
        batch.fit()
        spent = time.perf_counter() - start
        if missing:
            working = spent if done else max(spent - plans.STARTING, spent / 10)  # the first wait for the processes, too
            plan = plans.correct(inputs, plan, upto, working / missing)
        done = upto
        if left() < spent:
            break
    if done < plan.references:
        plan = replace(plan, references=done, steps=tuple(replace(step, why=f"{done}, for which there was time")
                                                          if step.name == REFERENCES else step for step in plan.steps))
    return models.part(range(done)) if done >= plans.LEAST else None, plan
