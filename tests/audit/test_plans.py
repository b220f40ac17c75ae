"""What an audit plans: costs that decide, what is lacking, and corrections by what the first references took."""

from __future__ import annotations

from dataclasses import replace

import pytest
from audits import COSTS, RECIPE, check
from scipy.special import softmax

from mia_lib.audit import attacks, execution, inputs, plans
from mia_lib.audit.plans import CONTROL, FAILED, IMPOSSIBLE, REFERENCES, RETRAINED, RUNS, TOO_DEAR


def told(had: inputs.AuditInputs, **options) -> inputs.AuditInputs:
    """The same inputs, told otherwise."""
    return replace(had, options=had.options.model_copy(update=options))


def test_more_minutes_and_a_cluster_give_more_references(had, monkeypatch):
    monkeypatch.setenv("MIA_WORKERS", "1")

    def planned(minutes: float, references: int | None = 500):
        how = {} if references is None else {"references": references}
        return plans.arrange(told(had, minutes=minutes, **how), COSTS)

    counts = [planned(minutes).references for minutes in (0.3, 2.0, 5.0, 10.0, 30.0, 100.0)]
    assert counts == sorted(counts) and counts[0] == 0 and counts[-1] == 500
    assert all(planned(minutes, None).needed <= minutes for minutes in (0.3, 2.0, 5.0, 10.0, 30.0))
    few = planned(4.0).references
    monkeypatch.setattr(plans.pool, "at_once", lambda: 8 * plans.pool.default_workers())
    assert planned(4.0).references > 2 * few > 0


def test_what_is_lacking_is_said(had):
    planned = plans.arrange(
        replace(told(had, recipe=None), public=None), replace(COSTS, epoch=None)
    )
    why = {step.name: step.why for step in planned.steps}
    assert why["LiRA"] == "needs a training recipe"
    assert why["quantile regression"] == "needs public records"
    assert "needs a training recipe" in why["IHA"] and planned.state("gradient norm") == RUNS
    large = told(had, recipe=replace(RECIPE, optimizer="adam", momentum=0.0))
    assert "is for SGD" in attacks.find_obstacle(attacks.ATTACKS["IHA"], large, COSTS)
    # of probabilities there is none
    sets, recipe = (had.members, had.non_members), replace(RECIPE, loss="squared_error")
    squared = check(had.target.model, *sets, public=had.public, recipe=recipe)
    of_probabilities = check(
        lambda x: softmax(had.target.ask(x), 1), *sets, outputs="probabilities", recipe=recipe
    )
    assert squared.target.loss == "squared_error"
    assert of_probabilities.target.loss == "cross_entropy"
    one_by_one = (had, squared, of_probabilities)
    for name, said in (
        ("calibrated loss", "needs one loss"),
        ("RMIA", "needs one loss"),
        ("LiRA", ""),
    ):
        *none, obstacle = (
            attacks.find_obstacle(attacks.ATTACKS[name], one, COSTS) for one in one_by_one
        )
        assert not any(none) and said in obstacle and bool(said) == bool(obstacle)
    left_out = plans.arrange(told(had, without=("LiRA", "curvature")), COSTS)
    assert [
        step.name for step in left_out.steps if step.why == "was left out, as was asked for"
    ] == ["LiRA", "curvature"]
    steps = (CONTROL, REFERENCES, RETRAINED)
    left_out = plans.arrange(told(had, without=steps), COSTS)
    assert [
        step.name for step in left_out.steps if step.why == "was left out, as was asked for"
    ] == [*steps]
    assert left_out.state("LiRA") == IMPOSSIBLE and left_out.references == 0
    dear = plans.arrange(had, replace(COSTS, gradient=100.0))
    assert dear.state("gradient norm") == TOO_DEAR
    assert all(step.name in str(dear) for step in dear.steps)
    assert "would need" in next(step.why for step in dear.steps if step.name == "gradient norm")


def test_why_there_is_no_dp_sgd_is_known_before(had):
    """Such as a batch larger than the training set, or layers that Opacus cannot differentiate."""
    pytest.importorskip("opacus")
    wide = told(had, recipe=replace(RECIPE, batch_size=400))
    costs = plans.measure(wide)
    why = next(
        step.why
        for step in plans.arrange(told(wide, minutes=60), costs).steps
        if step.name == RETRAINED
    )
    assert why.startswith(
        "3 changes of the recipe, and not DP-SGD: batch_size = 400, but a training set has 300 records"
    )
    assert not any(change.privacy for change in plans.list_changes(wide, costs))


class Trained:
    """An ensemble whose models take `seconds` each, by the clock of `execution`, but for the first `kept`; those from number
    `spoilt` on cannot be trained."""

    def __init__(
        self, clock: list[float], seconds: float, kept: int = 0, spoilt: int = 1000, rows=range(0)
    ):
        self.clock = clock
        self.seconds = seconds
        self.kept = kept
        self.spoilt = spoilt
        self.rows = rows

    def part(self, rows):
        return Trained(self.clock, self.seconds, self.kept, self.spoilt, rows)

    def fit(self):
        if self.rows[-1] >= self.spoilt:
            raise OSError("a process died")
        self.clock[0] += self.seconds * len(self.missing())

    def missing(self):
        return [row for row in self.rows if row >= self.kept]

    def __len__(self):
        return len(self.rows)


@pytest.fixture
def train(had, monkeypatch):
    """References of a plan by `costs`, and the plan before and after, where each takes `seconds` and the first are `kept`."""

    def train(seconds: float, costs=COSTS, kept: int = 0, spoilt: int = 1000, **options):
        clock, given = [0.0], told(had, **options)
        monkeypatch.setenv("MIA_WORKERS", "1")
        monkeypatch.setattr(execution.time, "perf_counter", lambda: clock[0])
        monkeypatch.setattr(
            inputs.training, "train", lambda *given, **how: Trained(clock, seconds, kept, spoilt)
        )
        planned = plans.arrange(given, costs)
        return planned, *execution.train_references(
            given, planned, lambda: 60 * given.options.minutes - clock[0]
        )

    return train


def test_a_plan_that_was_ten_times_too_slow_is_corrected(train):
    """A reference was thought to take 9 s and takes 0.9: there is time for all, and for what did not fit before."""
    planned, references, corrected = train(0.9, minutes=2.0, references=64)
    assert planned.references < 16 and planned.state(RETRAINED) == TOO_DEAR
    assert len(references) == corrected.references == 64 and corrected.state(RETRAINED) == RUNS
    minutes = next(step.minutes for step in corrected.steps if step.name == REFERENCES)
    assert minutes == pytest.approx((64 * 0.9 + 5) / 60, rel=0.01)


def test_a_plan_that_was_too_quick_ends_in_time_or_is_done_without_references(train):
    """A reference was thought to take 0.9 s and takes 9: fewer are trained, and none is thrown away."""
    planned, references, corrected = train(
        9.0, replace(COSTS, epoch=1e-4), minutes=3.0, references=64
    )
    assert planned.references == 64
    assert 4 <= len(references) == corrected.references < 20
    assert corrected.needed <= 3.0
    planned, references, corrected = train(300.0, replace(COSTS, epoch=1e-4), minutes=1.0)
    assert planned.references >= 4 and references is None and corrected.state("LiRA") == TOO_DEAR
    # which says nothing of what others take
    planned, references, corrected = train(9.0, kept=64, minutes=5.0, references=64)
    assert planned.references == corrected.references == len(references)
    assert corrected.costs == planned.costs


def test_references_that_were_trained_before_training_failed_are_used_where_they_are_enough(train):
    for spoilt, count in ((12, 10), (2, 0)):
        _, references, found = train(0.1, minutes=5.0, references=64, spoilt=spoilt)
        step = next(step for step in found.steps if step.name == REFERENCES)
        assert (0 if references is None else len(references)) == count and step.state == FAILED
        assert step.why.endswith(", before training failed: OSError: a process died")
