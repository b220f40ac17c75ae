"""An audit from what was given to a report, within its budget."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from mia_lib import training
from mia_lib.audit import blind, doors, judging, planning, provenance, remedies
from mia_lib.audit import given as giving
from mia_lib.audit.attacks import ATTACKS, HALVES, References, Seen, score
from mia_lib.audit.given import Given
from mia_lib.audit.planning import FAILED, RUNS, TOO_DEAR, Plan, Step
from mia_lib.audit.report import ANSWERS, NUMBERS, Report, check_folder
from mia_lib.data import Dataset
from mia_lib.errors import MiaError
from mia_lib.membership import random_subsets
from mia_lib.training import TrainConfig
from mia_lib.training.backends import pool

RETRAINED = "what to try, retrained"


def plan(model, members: Dataset, non_members: Dataset, **options) -> Plan:
    """What an audit would do, without doing it: each attack, whether it is possible, its minutes, whether it fits.

    A few records are measured for it. Arguments as for `audit`.

    Returns:
        a plan, whose text is a table.
    """
    return planning.plan(giving.given(model, members, non_members, **options))


def audit(model, members: Dataset, non_members: Dataset, *, outputs: str = "logits", scaling: str | tuple | None = None,
          public: Dataset | None = None, recipe: TrainConfig | None = None, minutes: float = 10.0, groups: tuple | None = None,
          fpr: float | tuple | None = None, references: int = 64, delta: float = 0.0, confidence: float = 0.95,
          name: str = "model", seed: int = 0, keep: str | None = None) -> Report:
    """Attack a model of one's own with all that is at hand, within a budget.

    Args:
        model: a network in evaluation mode, a program of `torch.export`, or a function from records in the form of `Dataset.x`
            to outputs [N, K], such as a scikit-learn model's `predict_proba`.
        members: records that it was trained on, all or a sample. non_members: others of the same distribution, as many as can
            be had: their number is what rates of false positives are resolved by.
        outputs: "logits" or "probabilities".
        scaling: of uint8 images for a network or a program from elsewhere, see `models.to_input`.
        public: further records of the distribution, for attacks that learn from them; none may be among those judged.
        recipe: how the model was trained, as far as it can be said; references are trained by it.
        minutes: that all may take.
        groups: a pair of arrays, the group of each member and of each non-member.
        fpr: false positive rates that must be resolved; without it 1 % and 0.1 % are looked at, and the page says where they
            are not resolved.
        references: at most.
        delta, confidence: of the lower bound on epsilon; confidence is that of all intervals and tests, too.
        name: what the page calls the model.
        seed: of everything random.
        keep: folder for the answers of a function. A call that failed goes on from there.

    Returns:
        a report; `save(folder)` writes audit.html and audit.json. Its `leak` is None where the control tells members from
        non-members; its `answer` begins with what else is to be looked at first.

    Raises:
        MiaError: whatever cannot be used, before any work; a budget too small for anything; a function that fails.
    """
    begun = time.perf_counter()
    found = giving.given(model, members, non_members, outputs=outputs, scaling=scaling, public=public, recipe=recipe,
                         minutes=minutes, groups=groups, fpr=fpr, references=references, delta=delta, confidence=confidence,
                         name=name, seed=seed, keep=keep)
    return run(found, planning.plan(found), begun)


def commanded(model: str | None, members: str | None, non_members: str | None, public: str | None, state: str | None,
              recipe: str | None, groups: str | None, output: Path, only_plan: bool, **options) -> str:
    """An audit from names on a command line, see `doors`; what to print.

    Raises:
        MiaError: as `audit`; files that are missing or not safe to read; an output folder that holds something, an audit, too.
    """
    for argument, given in (("MODEL", model), ("--members", members), ("--non-members", non_members)):
        if given is None:
            raise MiaError(f"{argument} is missing: `mia audit MODEL --members M.npz --non-members N.npz`; `mia audit "
                           f"--test` tests the audit itself.")
    folder = check_folder(output)
    if not only_plan and (folder / NUMBERS).exists():
        raise MiaError(f"-o {folder} holds an audit that was finished: give a new folder, such as -o {folder}_2, so that it "
                       "is not lost.")
    sets = doors.alike({name: path and doors.records(path, name) for name, path in
                        (("members", members), ("non-members", non_members), ("public", public))})
    options |= {"public": sets["public"], "recipe": recipe and doors.recipe(recipe),
                "groups": groups and doors.groups(groups, (members, non_members)), "keep": str(folder / ANSWERS)}
    given = sets["members"], sets["non-members"]
    target = doors.model(model, state)
    if only_plan:
        return str(plan(target, *given, **options))
    found = audit(target, *given, **options)
    return f"{found}\n{found.save(folder)}"


def run(given: Given, planned: Plan, begun: float | None = None) -> Report:
    """What was planned."""
    begun = time.perf_counter() if begun is None else begun
    done: dict[str, float] = {}
    late: dict[str, str] = {}
    failed: dict[str, str] = {}

    def left() -> float:
        return 60 * given.minutes - (time.perf_counter() - begun)

    def timed(name: str, work):
        start = time.perf_counter()
        result = work()
        done[name] = (time.perf_counter() - start) / 60
        return result

    seen = Seen(given)
    timed("outputs", lambda: seen.own("loss"))
    giving.check_right(given, seen.own("correctness") > 0.5)
    giving.check_ties(given, -seen.own("loss"))
    control = timed(planning.BLIND, lambda: blind.scores(given))
    if planned.references:
        found = timed("references", lambda: _references(given, planned, left))
        late |= {"references": "out of time"} if found is None else {}
        seen = replace(seen, reference_models=found)
    scores = {}
    for name, attack in ATTACKS.items():
        if planned.state(name) != RUNS or attack.takes_references and seen.reference_models is None:
            continue
        if left() < 0 and scores:
            late[name] = "the budget was spent"
            continue
        try:
            scores[name] = timed(name, lambda attack=attack: score(attack, seen))
        except MiaError as problem:
            if name == "MALT":
                raise
            failed[name] = str(problem)
    prices = ()
    if planned.state(RETRAINED) == RUNS:
        if left() > 0:
            prices = tuple(timed(RETRAINED, lambda: remedies.measured(given)))
        else:
            late[RETRAINED] = "the budget was spent"
    judgement = timed("judging", lambda: judging.judge(given, scores, control, seen.own("outputs").argmax(1)))
    used = 0 if seen.reference_models is None else len(seen.reference_models.models)
    ends = {name: (TOO_DEAR, why) for name, why in late.items()} | {name: (FAILED, why) for name, why in failed.items()}
    steps = tuple(Step(step.name, step.minutes, *ends[step.name]) if step.name in ends else step for step in planned.steps)
    planned = replace(planned, steps=steps, references=used, variant=planned.variant if used else "")
    return Report(given, planned, done, scores, judgement, prices, accuracy(seen),
                  provenance.gather(given, time.perf_counter() - begun))


def accuracy(seen: Seen) -> tuple[float, float]:
    """Of the model on members and on non-members."""
    right, inside = seen.own("correctness") > 0.5, seen.given.inside
    return float(right[inside].mean()), float(right[~inside].mean())


def _references(given: Given, planned: Plan, left) -> References | None:
    """References, as many as the time allows of those planned; each is kept as it is finished."""
    if planned.variant == HALVES:
        members, records = giving.halves(given, planned.references), given.pool
        least, inside = planning.LEAST_HALVES, members
    else:
        size = planning.size(given, planned.variant)
        records = given.public
        members = random_subsets(len(records), size, planned.references, given.seed)
        least, inside = planning.LEAST_PUBLIC, np.zeros((planned.references, len(given.pool)), bool)
    models = training.train(records, members, giving.reseeded(given.recipe), label=f"references for {given.name}")
    step, there = max(8, 2 * pool.at_once()), 0
    while there < planned.references:
        upto, start, before = min(planned.references, there + step), time.perf_counter(), left()
        models.part(range(there, upto)).fit()
        there = upto
        if left() < (time.perf_counter() - start) and before:
            break
    return References(models.part(range(there)), inside[:there]) if there >= least else None
