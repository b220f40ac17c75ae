"""Models as people have them: what they return and refuse, which columns they have, and how often they are asked."""

from __future__ import annotations

import re
from types import MethodType, SimpleNamespace

import numpy as np
import pytest
import torch
from audits import check
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier

from mia_lib import audit, metrics
from mia_lib.audit import attacks
from mia_lib.audit.plans import IMPOSSIBLE, RUNS
from mia_lib.audit.target import column_places, count_digits, one_hot, spread
from mia_lib.data import from_arrays
from mia_lib.errors import MiaError
from mia_lib.signals import boundary
from mia_lib.training import TrainConfig


class Packed(torch.nn.Module):
    """A network that returns what libraries of language models return, and keeps what is no tensor."""

    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, x):
        return {"logits": self.inside and self.inside(x)}

    def get_extra_state(self):
        return {"what": "no tensor"}

    def set_extra_state(self, state):
        pass


@pytest.fixture(scope="session")
def answer(memorised):
    """The network as a function from arrays to probabilities."""

    def function(x):
        with torch.no_grad():
            return (
                torch.softmax(memorised(torch.from_numpy(x.astype(np.float32))), 1)
                .numpy()
                .astype(np.float64)
            )

    return function


@pytest.fixture(scope="session")
def few(sets):
    return [records.take(np.arange(60)) for records in sets[:2]]


def why(plan, name: str) -> str:
    return next(step.why for step in plan.steps if step.name == name)


def test_logits_of_what_a_model_returns_are_taken_in_all_attacks_and_the_report_says_so(
    sets, memorised
):
    recipe = TrainConfig("mlp:16", optimizer="sgd", learning_rate=0.2)
    few = [of.take(np.arange(100)) for of in sets[:2]]
    network = Packed(memorised).eval()
    plain, packed = (check(model, *few, recipe=recipe) for model in (memorised, network))
    for name in ("MALT", "gradient norm", "curvature", "IHA"):
        expected, score = (
            attacks.score(attacks.ATTACKS[name], attacks.AuditSignals(found))
            for found in (plain, packed)
        )
        assert_allclose(score, expected, rtol=1e-6, err_msg=name)
    assert packed.target.queries.unpacked == {"dict"} and not plain.target.queries.unpacked
    # it is left as it was
    assert not isinstance(packed.target.model(torch.zeros(1, 12)), torch.Tensor)
    with pytest.raises(
        MiaError, match="model = Packed returns a dict: .* whose forward returns the tensor"
    ):
        audit.plan(Packed(None).eval(), *few)

    def function(x):
        with torch.no_grad():
            return SimpleNamespace(logits=memorised(torch.from_numpy(x.astype(np.float32))))

    assert_array_equal(check(function, *few).target.ask(few[0].x), plain.target.ask(few[0].x))
    report = audit.audit(network, *few, queries=0, minutes=5)
    assert "The model returns a dict, of which its logits were taken." in report.text("shows")
    assert report.data()


def test_columns_of_a_forest_that_lacks_a_class_stand_where_they_belong(sets):
    members = sets[0].take(np.flatnonzero(sets[0].y != 2))
    forest = RandomForestClassifier(10, random_state=0).fit(members.x, members.y)
    whole = np.zeros((300, 4))
    whole[:, [0, 1, 3]] = forest.predict_proba(sets[1].x)
    names = [members.classes[k] for k in (0, 1, 3)]
    for model, columns in (
        (forest.predict_proba, None),
        (lambda x: forest.predict_proba(x), forest.classes_),
        (lambda x: forest.predict_proba(x), names),
    ):
        inputs = check(model, members, sets[1], outputs="probabilities", columns=columns)
        assert_allclose(inputs.target.ask(sets[1].x), whole, rtol=1e-12)
    report = audit.audit(
        forest.predict_proba, members, sets[1], outputs="probabilities", queries=0, minutes=5
    )
    assert (
        "The model has columns for 3 of 4 classes; the others count as impossible."
        in report.text("shows")
    )
    assert "do not move" in why(
        audit.plan(forest.predict_proba, members, sets[1], outputs="probabilities"), "curvature"
    )
    with pytest.raises(
        MiaError,
        match=r"columns=model.classes_, .*: p = np.zeros\(\(len\(x\), 4\)\); p\[:, model.classes_\]",
    ):
        audit.audit(lambda x: forest.predict_proba(x), members, sets[1], outputs="probabilities")


def test_columns_in_another_order_are_put_in_that_of_the_records():
    assert column_places(None, ["b", "c", "a"], ("a", "b", "c")).tolist() == [1, 2, 0]
    assert column_places(None, ["a", "b", "c"], ("a", "b", "c")) is None
    assert column_places(None, [2, 0], ("a", "b", "c")).tolist() == [2, 0]
    assert column_places(None, ["2", "0"], ("0", "1", "2")).tolist() == [2, 0]
    estimator = SimpleNamespace(classes_=np.array(["no", "yes"]))
    unrelated = MethodType(lambda self, x: x, estimator)
    assert column_places(unrelated, None, ("0", "1")) is None
    several = MethodType(lambda self, x: x, SimpleNamespace(classes_=[np.arange(2), np.arange(3)]))
    assert column_places(several, None, ("0", "1")) is None


@pytest.mark.parametrize(
    "allowed, said",
    [
        (
            lambda x, known: {np.float32(row).tobytes() for row in x} <= known,
            "moved by a small step: .*not one of our records",
        ),
        # as layers of PyTorch, which refuse it
        (lambda x, known: x.dtype == np.float32, "does not answer records in float64"),
    ],
)
def test_a_function_that_refuses_what_curvature_asks_is_audited_without_it(
    sets, answer, allowed, said
):
    """One attack's probe is no reason to refuse the model; ordinary questions come in the records' own type."""
    known, asked = {row.tobytes() for one in sets for row in one.x}, set()

    def strict(x):
        asked.add(x.dtype.name)
        if not allowed(x, known):
            raise ValueError("not one of our records")
        return answer(x)

    found = audit.plan(strict, *sets[:2], outputs="probabilities")
    assert found.state("curvature") == IMPOSSIBLE and re.search(said, why(found, "curvature"))
    assert found.state("MALT") == RUNS and asked == {"float32", "float64"}


def test_records_that_are_probabilities_are_not_blamed_for_the_audits_step():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 200)
    y = np.array([rng.choice(3, p=row) for row in p])
    sides = [
        from_arrays(p[k : k + 100], y[k : k + 100], name, classes=("a", "b", "c"))
        for k, name in ((0, "in"), (100, "out"))
    ]
    assert audit.plan(lambda x: x, *sides, outputs="probabilities").state("MALT") == RUNS


def test_outputs_of_squared_error_may_look_like_probabilities(few, memorised):
    """Such a model learns zeros and ones: it is not told to make them logits, and its loss is the recipe's."""

    def sigmoids(x):
        with torch.no_grad():
            return torch.sigmoid(memorised(torch.from_numpy(x.astype(np.float32)))).numpy()

    recipe = TrainConfig("mlp:4", epochs=1, loss="squared_error")
    found = audit.audit(
        sigmoids,
        *few,
        recipe=recipe,
        references=0,
        queries=0,
        minutes=5,
        without=["modified entropy"],
    )
    pool = found.inputs.pool
    assert_allclose(
        -found.scores["MALT"], np.square(sigmoids(pool.x) - np.eye(4)[pool.y]).sum(1) / 2, rtol=1e-5
    )
    with pytest.raises(
        MiaError,
        match="trained on squared error say so: loss = 'squared_error', in an audit in its recipe",
    ):
        audit.plan(sigmoids, *few)


def test_predicted_classes_are_outputs_too(sets, memorised, answer):
    found = audit.audit(lambda x: answer(x).argmax(1), *sets[:2], outputs="labels", minutes=5)
    right = answer(found.inputs.pool.x).argmax(1) == found.inputs.pool.y
    assert metrics.auc(found.scores["0-1"], found.members) == pytest.approx(
        metrics.auc(right.astype(float), found.members)
    )
    assert list(found.scores) == ["0-1"]
    assert why(found.plan, "MALT") == "needs more than predicted classes"
    with pytest.raises(MiaError, match="a class from 0 to"):
        audit.plan(answer, *sets[:2], outputs="labels")
    with pytest.raises(MiaError, match="a network says more"):
        audit.plan(memorised, *sets[:2], outputs="labels")


def test_predicted_classes_may_be_names_and_numbers_that_could_be_either_are_refused():
    classes = ("3", "1", "setosa")
    expected = np.eye(3)[[1, 0, 2]]
    assert (one_hot(np.array(["1", "3", "setosa"]), 3, classes) == expected).all()
    assert (one_hot(np.array(["1", "3", "setosa"], object), 3, classes) == expected).all()
    assert (one_hot(np.array([1, 0, 2]), 3, ("a", "1", "c")) == expected).all(), (
        "1 is number one and called so"
    )
    with pytest.raises(
        MiaError, match=r"names of classes or numbers from 0, which are other ones.*astype\(str\)"
    ):
        one_hot(np.array([1, 0, 2]), 3, ("1", "2", "3"))
    with pytest.raises(MiaError, match="predicts '7', which is no class"):
        one_hot(np.array(["1", "7"]), 2, classes)


def test_best_classes_that_could_be_names_or_numbers_or_come_twice_are_refused():
    best = np.array([[0], [2], [1]]), np.array([[0.9], [0.8], [0.7]])
    assert spread(best, 3, ("a", "b", "c"))[0].argmax(1).tolist() == [0, 2, 1]
    with pytest.raises(MiaError, match="name of a class or a number from 0.*names as texts"):
        spread(best, 3, ("1", "2", "3"))
    assert spread((best[0].astype(str), best[1]), 3, ("0", "2", "1"))[0].argmax(1).tolist() == [
        0,
        1,
        2,
    ]
    with pytest.raises(MiaError, match="a class twice"):
        spread((np.array([[0, 0]]), np.array([[0.9, 0.0]])), 1, ("a", "b"))


def test_a_budget_of_queries_gives_labels_a_distance_to_the_boundary(few, answer):
    """It is that of the walk itself, for at most so many queries a record."""
    asked = [0]

    def predict(x):
        asked[0] += len(x)
        return answer(x).argmax(1)

    found = audit.audit(predict, *few, outputs="labels", queries=400, minutes=5)
    pool = found.inputs.pool
    twin = boundary.hop_skip_jump(
        lambda z: torch.from_numpy(answer(z.numpy()).argmax(1)),
        torch.from_numpy(pool.x),
        pool.y,
        400,
        signed=True,
    )
    assert_allclose(found.scores["boundary distance"], twin.distance, rtol=1e-6)
    assert 120 * 200 < asked[0] == found.data()["queries"] <= found.plan.queries + 1000
    assert f"asked about {asked[0]:,} records" in found.html()
    assert f"{found.plan.queries:,} queries" in str(found.plan)
    assert "2,500 is usual" in why(audit.plan(predict, *few, outputs="labels"), "boundary distance")
    assert "at least" in why(
        audit.plan(predict, *few, outputs="labels", queries=50), "boundary distance"
    )


def test_rounded_probabilities_are_taken_with_their_resolution(few, answer):
    """As an API gives them: rows then have about the sum 1."""
    found = audit.audit(
        lambda x: answer(x).round(1), *few, outputs="probabilities", queries=0, minutes=5
    )
    assert any(one.startswith("Its probabilities have 1 decimal: ") for one in found.text("shows"))
    exact = answer(found.inputs.pool.x)
    rounded = exact.round(1)
    assert_allclose(
        found.inputs.target.ask(found.inputs.pool.x), rounded / rounded.sum(1, keepdims=True)
    )
    assert count_digits(exact) == 0 == count_digits(2 * rounded)
    assert count_digits(exact.round(2)) == 2
