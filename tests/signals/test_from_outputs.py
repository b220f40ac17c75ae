"""Signals from outputs that are given, without Torch: the same numbers, and answers of functions, which may fail."""

import subprocess
import sys
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from absent import WITHOUT_TORCH
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from mia_lib import data, signals
from mia_lib.checks import LOSSES
from mia_lib.errors import MiaError
from mia_lib.signals import from_outputs
from mia_lib.training import losses

RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 3))
W = RNG.normal(size=(3, 4))


def softmax(x):
    z = np.exp(x @ W)
    return z / z.sum(1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_those_that_torch_computes_to_rounding(loss):
    for scale, classes in product((1e-6, 1.0, 30.0, 700.0), (2, 7)):
        z, y = scale * RNG.normal(size=(3, 50, classes)), RNG.integers(0, classes, (3, 50))
        expected = losses.precise_loss(torch.from_numpy(z), torch.from_numpy(y), loss).numpy()
        assert_allclose(from_outputs.precise_loss(z, y, loss), expected, rtol=1e-12, atol=1e-300)


def test_nothing_but_models_needs_torch_and_figures_need_no_altair(tmp_path):
    np.savez(tmp_path / "mine.npz", x=X, y=np.arange(25) % 4)
    code = (
        WITHOUT_TORCH
        + """
sys.modules["altair"] = None
import numpy as np
from mia_book.evidence import claims, results
from mia_lib import data, drawing, metrics, published, signals
from mia_lib.attacks import baselines, bayes, calibration, curvature, iha, per_class, quantile, registry
from mia_book.evidence import explore
from mia_book.chapters.curvature import theory
records, members = data.from_npz(sys.argv[1]), np.arange(25) % 2 == 0
answers = signals.from_function(lambda x: np.full((len(x), 4), 0.25) + [[0.1, 0, 0, -0.1]] * x[:, :1].clip(-1, 1), records,
                                "probabilities", batch=7)
loss = signals.from_probabilities(answers, records.y)["loss"]
assert 0 < metrics.auc(bayes.malt(loss), members) < 1 and "catboost" not in sys.modules
try:
    signals.loss
except ImportError:
    print("loss needs it")
from mia_lib.attacks.quantile import trees
quantile.GaussianQuantile(trees.TreeConfig(iterations=3)).fit(records.x, loss).thresholds(records.x, 0.9)
assert "C16" in claims.claims("bayes")
"""
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "mine.npz")], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "loss needs it\n"), done.stderr


@pytest.mark.parametrize("batch", [7, 1000])
def test_records_of_any_kind_are_handed_over_as_they_are_in_batches(batch):
    w = torch.from_numpy(W)
    kinds = {
        "DataFrame": (pd.DataFrame(X), lambda x: x.to_numpy() @ W),
        "list": (X.tolist(), lambda x: np.array(x) @ W),
        "Tensor": (torch.from_numpy(X), lambda x: (x @ w).requires_grad_()),
        "ndarray": (
            data.from_arrays(X, np.arange(25) % 2, "mine"),
            lambda x: torch.from_numpy(x).half() @ w.half(),
        ),
    }
    for kind, (x, function) in kinds.items():
        seen = []

        def noting(part, seen=seen, function=function):
            seen.append((type(part).__name__, len(part)))
            return function(part)

        found = signals.from_function(noting, x, batch=batch)
        tolerance = 1e-2 if kind == "ndarray" else 1e-12
        assert_allclose(found, X @ W, rtol=tolerance, atol=tolerance)
        assert {name for name, _ in seen} == {kind} and isinstance(found, np.ndarray)
        assert [size for _, size in seen] == ([7, 7, 7, 4] if batch == 7 else [25])
    assert_allclose(
        signals.from_function(softmax, X, "probabilities", batch), softmax(X), rtol=1e-12
    )


WRONG = [
    (
        lambda x: np.array(["a"] * len(x)),
        "logits",
        r"one label a record, shape \(25,\): \[25, K\] is needed",
    ),
    (lambda x: x[:, 0], "logits", "one number a record.*predict_proba"),
    (lambda x: x[:, :1], "logits", r"at least two classes.*before the sigmoid.*\[0 \* s, s\]"),
    (
        lambda x: sigmoid(x[:, :1]),
        "logits",
        r"after the sigmoid .all are in \[0, 1\].*\[1 - s, s\], 1\) with outputs = 'probabilities'",
    ),
    (
        lambda x: sigmoid(x[:, :1]) * [0, 1],
        "logits",
        r"outputs of sigmoids .*\[1 - s, s\], 1\) and give outputs = 'probabilities'",
    ),
    (lambda x: sigmoid(x @ W), "logits", r"outputs of sigmoids .*np.log\(s / \(1 - s\)\)"),
    (lambda x: sigmoid(x @ W), "probabilities", r"one sigmoid s a class"),
    (
        lambda x: (100 * softmax(x)).round(1),
        "logits",
        r"percentages .*p / p.sum\(1, keepdims=True\)",
    ),
    (
        lambda x: softmax(x).round(1),
        "probabilities",
        r"Renormalise them: p / p.sum\(1, keepdims=True\)",
    ),
    (lambda x: softmax(x).round(2), "logits", r"rounded probabilities .*Renormalise them"),
    (lambda x: x[1:], "logits", r"shape \(24, 3\) .*for 25 records: numbers \[25, K\]"),
    (lambda x: np.full((len(x), 2), "a"), "logits", "<U1"),
    (
        lambda x: np.where(x == x[4, 1], np.nan, x),
        "logits",
        "NaN or infinity for 1 of 25 records, .* is number 4",
    ),
    (
        softmax,
        "logits",
        "= 'logits': these seem to be probabilities .*Give outputs = 'probabilities'",
    ),
    (lambda x: x @ W, "probabilities", "where outputs = 'probabilities'. Of logits say so"),
    (lambda x: 100 * softmax(x), "probabilities", "sums of rows from 100 to 100"),
    (lambda x: 1 / 0, "logits", "records 0 to 24 of 25, failed: ZeroDivisionError"),
]


@pytest.mark.parametrize("function,kind,words", WRONG)
def test_wrong_answers_are_refused_with_the_first_batch(function, kind, words):
    with pytest.raises(MiaError, match=words) as caught:
        signals.from_function(function, X, kind)
    assert caught.value.answered is None


def test_logits_that_may_be_such_are_no_sigmoids():
    """Votes, logits that happen to be in [0, 1] in a later batch, and such as were moved by one."""
    votes = signals.from_function(
        lambda x: np.eye(2)[(x[:, 0] > 0).astype(int)] + [[0, 1]] * (x[:, :1] > 1), X
    )
    assert set(np.unique(votes)) <= {0, 1, 2}
    last = signals.from_function(lambda x: x @ W if len(x) == 20 else sigmoid(x @ W), X, batch=20)
    assert ((last[20:] > 0) & (last[20:] < 1)).all()
    signals.from_function(lambda x: 1 + sigmoid(x @ W), X)
    with pytest.warns(UserWarning, match="gives all 25 records the same answer"):
        signals.from_function(lambda x: np.tile([1.0, 2.0], (len(x), 1)), X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        signals.from_function(lambda x: np.tile([1.0, 2.0], (len(x), 1)), X[:1])


def test_wrong_questions_are_refused_before_anything_is_asked(tmp_path):
    def never(x):
        raise AssertionError

    for x, how, words in (
        (X, {"outputs": "logit"}, "Did you mean 'logits'"),
        (X, {"batch": 0}, "batch = 0"),
        (X, {"keep": "answers.csv"}, "ends in .npz"),
        ([], {}, "at least one record"),
        (X, {"keep": tmp_path / "no" / "a.npz"}, "folder that exists"),
        (sparse.csr_array(X), {}, r"Give x.toarray\(\)"),
    ):
        with pytest.raises(MiaError, match=words):
            signals.from_function(never, x, **how)
    with pytest.raises(MiaError, match=r"model.predict_proba \(without brackets\)"):
        signals.from_function(softmax(X), X)


def test_records_of_objects_are_known_by_all_their_numbers(tmp_path):
    long = [np.arange(2000.0), np.arange(1000.0)]
    frame = pd.DataFrame({"name": ["a", "b"], "signal": long})
    objects = np.empty(2, object)
    objects[:] = long
    for k, (x, other) in enumerate(
        (
            (long, [long[0], long[1] + 1]),
            (frame, frame.assign(name=["a", "c"])),
            (objects, objects[::-1]),
        )
    ):
        keep = tmp_path / f"{k}.npz"
        signals.from_function(lambda x: np.array([[-5.5, 3], [0.5, 3]]), x, keep=keep)
        signals.from_function(lambda x: pytest.fail("all is there"), x, keep=keep)
        with pytest.raises(MiaError, match="other records"):
            signals.from_function(lambda x: pytest.fail("of others"), other, keep=keep)


class Endpoint:
    """Answers so often, and then no more."""

    def __init__(self, calls, error=ConnectionError):
        self.left, self.asked, self.error = calls, 0, error

    def __call__(self, x):
        if not self.left:
            raise self.error("no route to host")
        self.left, self.asked = self.left - 1, self.asked + len(x)
        return x @ W


def test_what_an_endpoint_answered_before_it_failed_or_was_interrupted_is_kept(tmp_path):
    keep, again = tmp_path / "answers.npz", Endpoint(99)
    with pytest.raises(
        MiaError, match="with keep = 'answers.npz' they would be in a file"
    ) as caught:
        signals.from_function(Endpoint(2), X, batch=6)
    assert_array_equal(caught.value.answered, X[:12] @ W)
    with pytest.raises(KeyboardInterrupt):
        signals.from_function(Endpoint(1, KeyboardInterrupt), X, batch=6, keep=keep)
    with pytest.raises(
        MiaError,
        match="records 12 to 17 of 25, failed: ConnectionError: no route to host.* The 12 answers "
        "before are in .*answers.npz: call it again with the same keep",
    ) as caught:
        signals.from_function(Endpoint(1), X, batch=6, keep=keep)
    assert_array_equal(caught.value.answered, X[:12] @ W)
    assert_allclose(signals.from_function(again, X, batch=5, keep=keep), X @ W)
    assert again.asked == 13
    # all is there
    assert_allclose(signals.from_function(Endpoint(0), X, keep=keep), X @ W)
    with pytest.raises(MiaError, match="holds answers about other records"):
        signals.from_function(again, X[1:], keep=keep)
    with pytest.raises(MiaError, match="holds answers about logits, not probabilities"):
        signals.from_function(again, X, "probabilities", keep=keep)
    keep.write_bytes(keep.read_bytes()[:100])
    with pytest.raises(MiaError, match="answers.npz. cannot be read.*Delete it"):
        signals.from_function(again, X, keep=keep)


def test_answers_for_which_there_is_no_room_are_kept_in_memory_and_written_once_there_is(
    tmp_path, monkeypatch, capsys
):
    keep, tried, room = tmp_path / "answers.npz", [], [99]

    def write(path, content, write=from_outputs.store.write):
        tried.append(path)
        if len(tried) < room[0]:
            raise OSError(28, "No space left on device")
        write(path, content)

    monkeypatch.setattr(from_outputs, "KEPT_EVERY", -1.0)  # after every batch
    monkeypatch.setattr(from_outputs.store, "write", write)
    assert_allclose(signals.from_function(Endpoint(9), X, batch=6, keep=keep), X @ W)
    assert capsys.readouterr().err.count("cannot be written to") == 1
    assert len(tried) > 1
    assert not keep.exists()
    with pytest.raises(
        MiaError, match="are this error's `answered`; they could not be written to"
    ) as caught:
        signals.from_function(Endpoint(2), X, batch=6, keep=keep)
    assert_array_equal(caught.value.answered, X[:12] @ W)
    room[0] = len(tried) + 2
    signals.from_function(Endpoint(9), X, batch=6, keep=keep)
    assert_allclose(signals.from_function(Endpoint(0), X, keep=keep), X @ W)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("loss", ["cross_entropy", "brier", "double_softmax"])
def test_minus_infinity_gives_no_number_that_could_be_believed(loss):
    z, y = np.array([[1.0, -np.inf, 0.5], [0.3, 2.0, 1.0]]), np.array([0, 1])
    found = signals.scalars(z, y, loss)
    assert all(
        np.isnan(found[name][0]) for name in ("loss", "logit_scaled_confidence", "hinge", "entropy")
    )
    assert all(np.isfinite(column[1]) for column in found.values())
