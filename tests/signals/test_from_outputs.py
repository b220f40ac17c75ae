"""Signals from outputs that are given, without Torch: the same numbers, and answers of functions, which may fail."""

import doctest
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from absent import WITHOUT_TORCH

from mia_lib import data, signals
from mia_lib.checks import LOSSES
from mia_lib.data import user
from mia_lib.errors import MiaError
from mia_lib.signals import from_outputs
from mia_lib.training import losses

RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 3))
W = RNG.normal(size=(3, 4))


def softmax(x):
    z = np.exp(x @ W)
    return z / z.sum(1, keepdims=True)


# ---------------------------------------------------------------------------------------------- without Torch


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0, 700.0])
def test_losses_are_those_that_torch_computes_to_rounding(loss, scale):
    for classes in (2, 7):
        z, y = scale * RNG.normal(size=(3, 50, classes)), RNG.integers(0, classes, (3, 50))
        expected = losses.precise_loss(torch.from_numpy(z), torch.from_numpy(y), loss).numpy()
        np.testing.assert_allclose(from_outputs.precise_loss(z, y, loss), expected, rtol=1e-12, atol=1e-300)


def test_nothing_but_models_needs_torch(tmp_path):
    """Records, signals of answers, attacks, trees, what is published, metrics, tables, claims and figures, and a bound of
    theory; and figures need no Altair."""
    np.savez(tmp_path / "mine.npz", x=X, y=np.arange(25) % 4)
    code = WITHOUT_TORCH + """
sys.modules["altair"] = None
import numpy as np
from mia_lib import claims, data, metrics, plotting, published, results, signals
from mia_lib.attacks import baselines, bayes, calibration, curvature, iha, per_class, quantile, registry
from mia_lib.evidence import explore
from mia_lib.papers.curvature import theory
records = data.from_npz(sys.argv[1])
def model(x):
    e = np.exp(x[:, :1] * [0, 1, 2, 3])
    return e / e.sum(1, keepdims=True)
answers = signals.from_function(model, records, "probabilities", batch=7)
loss = signals.from_probabilities(answers, records.y)["loss"]
print(metrics.auc(bayes.malt(loss), np.arange(25) % 2 == 0), "catboost" in sys.modules)
try:
    signals.loss
except ImportError:
    print("loss needs it")
from mia_lib.attacks.quantile import trees
quantile.GaussianQuantile(trees.TreeConfig(iterations=3)).fit(records.x, loss).thresholds(records.x, 0.9)
plotting.roc({"MALT": -loss}, np.arange(25) % 2 == 0)
assert len(published.load("bank/cifar10-small", 2)) == 2 and len(published.ls()) > 10 and "C16" in claims.claims("bayes")
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "mine.npz")], capture_output=True, text=True, check=True)
    area, *words = done.stdout.split(maxsplit=1)
    assert 0 < float(area) < 1 and words == ["False\nloss needs it\n"]


def test_examples_in_docstrings_run():
    for module in (from_outputs, user):
        found = doctest.testmod(module)
        assert found.attempted > 1 and not found.failed


# ---------------------------------------------------------------------------------------------- answers of a function


@pytest.mark.parametrize("batch", [7, 1000])
def test_answers_are_those_of_one_call(batch):
    sizes = []

    def function(x):
        sizes.append(len(x))
        return x @ W

    np.testing.assert_array_equal(signals.from_function(function, X, batch=batch), np.concatenate(
        [X[k:k + batch] @ W for k in range(0, len(X), batch)]))
    assert sum(sizes) == len(X) and max(sizes) == min(batch, len(X))
    np.testing.assert_array_equal(signals.from_function(softmax, X, "probabilities", batch), np.concatenate(
        [softmax(X[k:k + batch]) for k in range(0, len(X), batch)]))


def test_records_of_any_kind_are_handed_over_as_they_are():
    records = data.from_arrays(X, np.arange(25) % 2, "mine")
    kinds = {"DataFrame": (pd.DataFrame(X), lambda x: x.to_numpy() @ W), "list": (X.tolist(), lambda x: np.array(x) @ W),
             "Tensor": (torch.from_numpy(X), lambda x: (x @ torch.from_numpy(W)).requires_grad_()),
             "ndarray": (records, lambda x: x.astype(float) @ W)}
    for kind, (x, function) in kinds.items():
        seen = []

        def noting(part, seen=seen, function=function):
            seen.append(type(part).__name__)
            return function(part)

        found = signals.from_function(noting, x, batch=9)
        np.testing.assert_allclose(found, X @ W, rtol=1e-5)
        assert set(seen) == {kind} and found.dtype == np.float64


def test_scikit_learn_answers():
    from sklearn.linear_model import LogisticRegression

    y = np.arange(25) % 3
    model = LogisticRegression().fit(X, y)
    p = signals.from_function(model.predict_proba, X, "probabilities")
    z = signals.from_function(model.decision_function, X)
    a, b = signals.from_probabilities(p, y), signals.scalars(z, y)
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-5, atol=1e-6)
    with pytest.raises(MiaError, match=r"one number a record.*predict_proba"):
        signals.from_function(model.predict, X)


WRONG = [
    ("labels", lambda x: np.array(["a"] * len(x)), "logits", r"one label a record, shape \(25,\): \[25, K\] is needed"),
    ("one probability", lambda x: softmax(x)[:, 1], "probabilities", r"np.stack\(\[1 - p, p\], 1\)"),
    ("one column", lambda x: x[:, :1], "logits", r"at least two classes.*before the sigmoid.*\[0 \* s, s\]"),
    ("one column after its sigmoid", lambda x: 1 / (1 + np.exp(-x[:, :1])), "logits",
     r"after the sigmoid .all are in \[0, 1\].*\[1 - s, s\], 1\) with outputs = 'probabilities'"),
    ("zero and a sigmoid", lambda x: np.stack([0 * x[:, 0], 1 / (1 + np.exp(-x[:, 0]))], 1), "logits",
     r"outputs of sigmoids .*\[1 - s, s\], 1\) and give outputs = 'probabilities'"),
    ("a sigmoid a class", lambda x: 1 / (1 + np.exp(-x @ W)), "logits", r"outputs of sigmoids .*np.log\(s / \(1 - s\)\)"),
    ("a sigmoid a class as probabilities", lambda x: 1 / (1 + np.exp(-x @ W)), "probabilities", r"one sigmoid s a class"),
    ("percent as logits", lambda x: (100 * softmax(x)).round(1), "logits", r"percentages .*p / p.sum\(1, keepdims=True\)"),
    ("rounded", lambda x: softmax(x).round(1), "probabilities", r"Renormalise them: p / p.sum\(1, keepdims=True\)"),
    ("rounded as logits", lambda x: softmax(x).round(2), "logits", r"rounded probabilities .*Renormalise them"),
    ("one column of probabilities", lambda x: softmax(x)[:, :1], "probabilities", r"\[1 - s, s\]"),
    ("too few", lambda x: x[1:], "logits", r"shape \(24, 3\) .*for 25 records: numbers \[25, K\]"),
    ("transposed", lambda x: x.T, "logits", r"shape \(3, 25\)"), ("three axes", lambda x: x[None], "logits", "numbers"),
    ("text", lambda x: np.full((len(x), 2), "a"), "logits", "type <U1"),
    ("nothing", lambda x: None, "logits", "type object"),
    ("NaN", lambda x: np.where(x == x[4, 1], np.nan, x), "logits", "NaN or infinity for 1 of 25 records, .* is number 4"),
    ("infinity", lambda x: np.where(x == x[4, 1], np.inf, x), "logits", "NaN or infinity"),
    ("probabilities", softmax, "logits", "= 'logits': these seem to be probabilities .*Give outputs = 'probabilities'"),
    ("logits", lambda x: x @ W, "probabilities", "where outputs = 'probabilities'. Of logits say so"),
    ("percent", lambda x: 100 * softmax(x), "probabilities", "sums of rows from 100 to 100"),
    ("an error", lambda x: 1 / 0, "logits", "records 0 to 24 of 25, failed: ZeroDivisionError"),
]


@pytest.mark.parametrize("function,kind,words", [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_wrong_answers_are_refused_with_the_first_batch(function, kind, words):
    with pytest.raises(MiaError, match=words) as caught:
        signals.from_function(function, X, kind)
    assert caught.value.answered is None


def test_logits_that_may_be_such_are_no_sigmoids():
    """Votes, logits that happen to be in [0, 1] in a later batch, and such as were moved by one."""
    votes = signals.from_function(lambda x: np.eye(2)[(x[:, 0] > 0).astype(int)] + [[0, 1]] * (x[:, :1] > 1), X)
    assert set(np.unique(votes)) <= {0, 1, 2}
    last = signals.from_function(lambda x: x @ W if len(x) == 20 else 1 / (1 + np.exp(-x @ W)), X, batch=20)
    assert ((last[20:] > 0) & (last[20:] < 1)).all()
    signals.from_function(lambda x: 1 + 1 / (1 + np.exp(-x @ W)), X)


def test_wrong_questions_are_refused_before_anything_is_asked(tmp_path):
    def never(x):
        raise AssertionError

    for how, words in (({"outputs": "logit"}, "Did you mean 'logits'"), ({"batch": 0}, "batch = 0"), ({"batch": 2.5}, "= 2.5"),
                       ({"keep": "answers.csv"}, "ends in .npz"), ({"keep": tmp_path / "no" / "a.npz"}, "folder that exists")):
        with pytest.raises(MiaError, match=words):
            signals.from_function(never, X, **how)
    for x in ([], X[:0], 3):
        with pytest.raises(MiaError, match="at least one record"):
            signals.from_function(never, x)
    with pytest.raises(MiaError, match=r"model.predict_proba \(without brackets\)"):
        signals.from_function(softmax(X), X)


def test_the_same_answer_for_all_is_warned_of():
    with pytest.warns(UserWarning, match="gives all 25 records the same answer"):
        signals.from_function(lambda x: np.tile([1.0, 2.0], (len(x), 1)), X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        signals.from_function(lambda x: np.tile([1.0, 2.0], (len(x), 1)), X[:1])


class Endpoint:
    """Answers so often, and then no more."""

    def __init__(self, calls):
        self.left, self.asked = calls, 0

    def __call__(self, x):
        if not self.left:
            raise ConnectionError("no route to host")
        self.left, self.asked = self.left - 1, self.asked + len(x)
        return x @ W


def test_what_an_endpoint_answered_before_it_failed_is_kept(tmp_path):
    keep = tmp_path / "answers.npz"
    with pytest.raises(MiaError, match="records 12 to 17 of 25, failed: ConnectionError: no route to host.* The 12 answers "
                                       "before are in .*answers.npz: call it again with the same keep") as caught:
        signals.from_function(Endpoint(2), X, batch=6, keep=keep)
    np.testing.assert_array_equal(caught.value.answered, X[:12] @ W)
    again = Endpoint(99)
    np.testing.assert_allclose(signals.from_function(again, X, batch=5, keep=keep), X @ W)
    assert again.asked == 13
    np.testing.assert_allclose(signals.from_function(Endpoint(0), X, keep=keep), X @ W)  # all is there
    with pytest.raises(MiaError, match="holds answers about other records"):
        signals.from_function(again, X[1:], keep=keep)
    with pytest.raises(MiaError, match="holds answers about logits, not probabilities"):
        signals.from_function(again, X, "probabilities", keep=keep)
    keep.write_bytes(keep.read_bytes()[:100])
    with pytest.raises(MiaError, match="cannot be read as a file of answers.*delete it"):
        signals.from_function(again, X, keep=keep)


def test_without_a_file_the_error_holds_the_answers():
    with pytest.raises(MiaError, match="with keep = 'answers.npz' they would be in a file") as caught:
        signals.from_function(Endpoint(2), X, batch=6)
    np.testing.assert_array_equal(caught.value.answered, X[:12] @ W)


def test_an_interrupted_call_goes_on_too(tmp_path):
    asked = []

    def function(x):
        asked.append(len(x))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return x @ W

    with pytest.raises(KeyboardInterrupt):
        signals.from_function(function, X, batch=10, keep=tmp_path / "a.npz")
    np.testing.assert_allclose(signals.from_function(function, X, batch=10, keep=tmp_path / "a.npz"), X @ W)
    assert asked == [10, 10, 5, 5]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("loss", ["cross_entropy", "brier", "double_softmax"])
def test_minus_infinity_gives_no_number_that_could_be_believed(loss):
    z, y = np.array([[1.0, -np.inf, 0.5], [0.3, 2.0, 1.0]]), np.array([0, 1])
    found = signals.scalars(z, y, loss)
    assert all(np.isnan(found[name][0]) for name in ("loss", "logit_scaled_confidence", "hinge", "entropy"))
    assert all(np.isfinite(column[1]) for column in found.values())


@pytest.mark.parametrize("answer", [lambda z: z.bfloat16(), lambda z: z.requires_grad_(), lambda z: z.half()])
def test_tensors_of_any_type_are_answers(answer):
    found = from_outputs.from_function(lambda x: answer(torch.from_numpy(x @ W)), X)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, X @ W, rtol=1e-2, atol=1e-2)
