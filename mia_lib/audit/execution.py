"""An audit from what was given to a report, within its budget."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from mia_lib import progress, store
from mia_lib.audit import attacks, plans, statistics
from mia_lib.audit.attacks import ATTACKS, Attack, AuditSignals
from mia_lib.audit.inputs import (
    AuditInputs,
    check_inputs,
    check_right,
    check_scores,
    references,
    score_inputs,
)
from mia_lib.audit.options import CONTROL, FAILED, REFERENCES, RETRAINED, AuditOptions, ScoreOptions
from mia_lib.audit.plans import IMPOSSIBLE, RUNS, TOO_DEAR, Plan, Step
from mia_lib.audit.references import References, of_ensemble
from mia_lib.audit.report import Report, describe_inputs, describe_provenance
from mia_lib.data import Dataset
from mia_lib.errors import MiaError
from mia_lib.training import Ensemble, pool


def plan(model, members: Dataset, non_members: Dataset, **options) -> Plan:
    """Plan an audit without doing it: each attack, whether it is possible, its minutes, whether it
    fits; as text, a table. A few records are measured for it. Arguments as for `audit`."""
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
        options: fields of `AuditOptions` by name.

    Returns:
        a report; `save(folder)` writes audit.html and audit.json. Its `leak` is None where the control tells members from
        non-members; its `answer` begins with what else is to be looked at first.

    Raises:
        MiaError: whatever cannot be used, before any work; a budget too small for anything; a function that fails before all
            records have outputs. Whatever fails later is a line of the plan with its reason, and the others go on.
    """
    begun = time.perf_counter()
    inputs = check_inputs(model, members, non_members, AuditOptions(**options))
    return _run(inputs, plans.arrange(inputs, plans.measure(inputs)), begun)


def audit_scores(scores: np.ndarray, members: np.ndarray, **options) -> Report:
    """Judge scores that were made elsewhere: rates with intervals, tests, lower bound on epsilon, groups. No model is asked.

    Args:
        scores: [N], higher for members, or several such by name, of which the best is chosen as of attacks.
        members: bool [N], who was trained on.
        options: fields of `ScoreOptions` by name.

    Raises:
        MiaError: whatever cannot be used.
    """
    begun = time.perf_counter()
    table = check_scores(scores, members, ScoreOptions(**options))
    return Report(
        table,
        None,
        statistics.judge(table, table.scores),
        [],
        None,
        None,
        describe_provenance(table, time.perf_counter() - begun),
    )


def _run(inputs: AuditInputs, plan: Plan, begun: float) -> Report:
    """Run the plan and return the report; the budget counts from `begun`, a time of
    `time.perf_counter`."""
    minutes: dict[str, float] = {}
    ended: dict[str, tuple[str, str]] = {}  # what was planned and has no result -> state and why

    def left() -> float:
        return 60 * inputs.options.minutes - (time.perf_counter() - begun)

    def attempt(name: str, work: Callable):
        """Result of `work`, a step; None if it fails, by whatever error: nothing of other steps is
        lost."""
        start = time.perf_counter()
        try:
            return work()
        except Exception as problem:
            ended[name] = FAILED, plans.reason(problem)
        finally:
            minutes[name] = minutes.get(name, 0.0) + (time.perf_counter() - start) / 60

    view, of_references, prices, start = AuditSignals(inputs), None, None, time.perf_counter()
    view.own("loss")
    minutes["outputs"] = (time.perf_counter() - start) / 60
    right = view.own("correctness") > 0.5
    check_right(inputs, right)
    accuracy = float(right[inputs.is_member].mean()), float(right[~inputs.is_member].mean())
    control = (
        None
        if plan.state(CONTROL) != RUNS
        else attempt(
            CONTROL, partial(score_inputs, inputs.pool, inputs.is_member, inputs.options.seed)
        )
    )
    if plan.references:
        found, plan = attempt(REFERENCES, partial(find_references, inputs, plan, left)) or (
            None,
            plan,
        )
        if found:
            view, of_references = AuditSignals(inputs, found), found.accuracy
    scores: dict[str, np.ndarray] = {}
    described = describe_inputs(inputs)
    for name, attack in ATTACKS.items():
        if plan.state(name) != RUNS:
            continue
        if attack.takes_references and view.models is None:
            ended[name] = IMPOSSIBLE, "there are no references"
        elif left() < 0 and scores:
            ended[name] = TOO_DEAR, "the budget was spent"
        elif (found := attempt(name, partial(_scores, attack, view, described))) is not None:
            scores[name] = found
    if not scores.keys() - attacks.TOOLS:
        raise MiaError(
            f"No attack gives scores: {'; '.join(f'{name} {how}: {why}' for name, (how, why) in ended.items())}."
        )
    if plan.state(RETRAINED) == RUNS:
        if left() > 0:
            prices = attempt(
                RETRAINED, partial(plans.measure_changes, inputs, plan.costs, accuracy)
            )
        else:
            ended[RETRAINED] = TOO_DEAR, "the budget was spent"
    result = statistics.judge(inputs, scores, attacks.TOOLS, control, view.own("outputs").argmax(1))
    plan = replace(
        plan,
        references=0 if view.models is None else len(view.models),
        steps=tuple(
            Step(
                step.name,
                step.minutes,
                *ended.get(step.name, (step.state, step.why)),
                minutes.get(step.name),
            )
            for step in plan.steps
        ),
    )
    return Report(
        inputs,
        plan,
        result,
        prices or [],
        accuracy,
        of_references,
        describe_provenance(inputs, time.perf_counter() - begun),
    )


def _scores(attack: Attack, view: AuditSignals, described: dict) -> np.ndarray:
    """Scores of an attack, kept as soon as they are there; an audit that goes on takes those that
    were kept under the same description (`described`, and the attack and options)."""
    inputs, models = view.inputs, view.models
    if inputs.options.keep is None:
        return attacks.score(attack, view)
    spec = {
        "attack": attack.name,
        "seed": inputs.options.seed,
        "queries": inputs.options.queries,
        "references": [] if models is None else models.fingerprints,
        "scaling": inputs.target.scaling,
        "code": store.code_of(store.STUDIES),
        **described,
    }
    path = inputs.target.folder / f"{store.key(spec)}.npz"
    try:
        return store.decode(path.read_bytes(), path.suffix)["scores"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):  # nothing there, or no more
        scores = attacks.score(attack, view)
    with suppress(OSError):  # without room they are on the page alone
        store.write(path, store.encode({"scores": scores}, path.suffix))
    return scores


def find_references(
    inputs: AuditInputs, plan: Plan, left: Callable[[], float]
) -> tuple[References | None, Plan]:
    """What references say, from elsewhere or as many as the seconds that are `left()` allow; None if these are too few; and
    the plan as it went."""
    if inputs.given:
        return inputs.given, plan
    if inputs.refits:
        return _refit_references(inputs, plan, left)
    models, plan = train_references(inputs, plan, left)
    return (of_ensemble(models, inputs.pool, inputs.public) if models else None), plan


def _refit_references(
    inputs: AuditInputs, plan: Plan, left: Callable[[], float]
) -> tuple[References | None, Plan]:
    done, why, state = 0, "for which there was time", TOO_DEAR
    with progress.Bar("refitting references", plan.references) as bar:
        while done < plan.references:
            start = time.perf_counter()
            try:
                for index in (done, done + 1):
                    inputs.refits.train(index)
            except Exception as problem:
                why, state = f"before fitting failed: {plans.reason(problem)}", FAILED
                break
            done += 2
            bar.advance(2)
            if left() < time.perf_counter() - start:
                break
    plan = _with_fewer(plan, done, why, state)
    return inputs.refits.first(done) if done >= plans.MIN_REFERENCES else None, plan


def _with_fewer(plan: Plan, done: int, why: str, state: str) -> Plan:
    """The plan where `done` references were trained; where these are not all, with the reason, and the state of the step if
    they are too few or training failed."""
    if done == plan.references:
        return plan
    state = RUNS if done >= plans.MIN_REFERENCES and state == TOO_DEAR else state
    steps = tuple(
        replace(step, why=f"{done}, {why}", state=state) if step.name == REFERENCES else step
        for step in plan.steps
    )
    return replace(plan, references=done, steps=steps)


def train_references(
    inputs: AuditInputs, plan: Plan, left: Callable[[], float]
) -> tuple[Ensemble | None, Plan]:
    """References, as many as the seconds that are `left()` allow, each kept as it is finished, or
    None if these are too few; and the plan as corrected by the time that they took."""
    models, done = references(inputs, inputs.options.references // 2 * 2), 0
    why, state = "for which there was time", TOO_DEAR
    while done < plan.references:
        upto = min(
            plan.references,
            done + max(8, 2 * pool.at_once()) if done else max(2, pool.at_once() // 2 * 2),
        )
        batch, start = models.part(range(done, upto)), time.perf_counter()
        missing = len(batch.missing())  # the others were kept by an earlier call
        try:
            batch.fit()
        except Exception as problem:
            why, state = f"before training failed: {plans.reason(problem)}", FAILED
            break
        spent = time.perf_counter() - start
        if missing:
            # the first wait for the processes, too
            working = spent if done else max(spent - plans.STARTING, spent / 10)
            plan = plans.correct(inputs, plan, upto, working / missing)
        done = upto
        if left() < spent:
            break
    plan = _with_fewer(plan, done, why, state)
    return models.part(range(done)) if done >= plans.MIN_REFERENCES else None, plan
