"""What is odd is taken, or refused by a `MiaError`: public functions are given arrays of any shape, type and content.

Anything else that is raised is a traceback on somebody's screen. Arrays are mostly what is asked for, with one argument odd.
"""

import inspect
import tempfile
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from mia_lib import attacks, audit, membership, metrics, signals
from mia_lib.attacks import baselines, bayes, calibration, curvature, per_class
from mia_lib.audit import files
from mia_lib.errors import MiaError

N, R, K = 60, 6, 3
RNG = np.random.default_rng(0)
SHAPES = ((), (0,), (1,), (2,), (N,), (N, 1), (N, K), (0, K), (R, N), (R, 0), (1, N), (2, 3, N), (R, N, K))
VALUES = (0, 1, -1, np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, 2**62)
TYPES = ("float64", "float32", "float16", "int64", "uint8", "bool", "complex128", "O", "U3", "datetime64[s]")
ODD = (None, "text", 3, -1, 0.5, float("nan"), np.inf, True, [], {}, [[1, 2], [3]], ["a", "b"], object(), b"bytes", 10**30)


@st.composite
def arrays(draw):
    """An array of some shape and type with odd values in it, or something that is none."""
    if draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(ODD))
    x = np.random.default_rng(draw(st.integers(0, 3))).standard_normal(draw(st.sampled_from(SHAPES)))
    kind = draw(st.sampled_from(("normal", "constant", "one", "all")))
    if kind == "constant":
        x = np.zeros_like(x) + draw(st.integers(0, 1))
    elif kind != "normal" and x.size:
        x = x + 0 if kind == "one" else np.zeros_like(x)
        x.flat[:1 if kind == "one" else x.size] = draw(st.sampled_from(VALUES))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return x.astype(draw(st.sampled_from(TYPES)))
        except (ValueError, OverflowError):
            return x


def saved(x, y) -> str:
    """A file of records as a user has it; its arrays are such that NumPy can write."""
    try:
        np.savez(FOLDER.name + "/records.npz", x=x, y=y)
    except ValueError:  # rows of different lengths
        raise MiaError("no file") from None
    return FOLDER.name + "/records.npz"


FOLDER = tempfile.TemporaryDirectory()
PROBABILITIES = RNG.dirichlet(np.ones(K), N)
SCORES, MEMBERS, LABELS = RNG.standard_normal(N), np.arange(N) % 2 == 0, np.arange(N) % K
HALVES, BANK = membership.balanced_halves(N, R), RNG.standard_normal((R, N))
LOSS, LOSSES = np.abs(SCORES), np.abs(BANK)
SHARE, SHARES = np.exp(-LOSS), np.exp(-LOSSES)
FITTING = {  # what is called by a name, wherever it is asked for
    "correct": MEMBERS, "curvature": LOSS, "fpr": 0.1, "gradients0": RNG.standard_normal((N, 4)), "labels": LABELS,
    "level": 0.5, "logits": RNG.standard_normal((N, K)), "loss": LOSS, "margin": SCORES, "members": MEMBERS,
    "observed": SCORES, "p": SHARE, "population_probability": SHARE, "population_reference_probability": SHARES,
    "predicted": SCORES, "prior": 0.5, "probabilities": PROBABILITIES, "probability": SHARE, "reference_curvature": BANK,
    "reference_loss": LOSSES, "reference_members": HALVES, "reference_probability": SHARES, "reference_scores": BANK,
    "reference_signal": BANK, "score": SCORES, "scores": SCORES, "shadow_labels": LABELS, "shadow_members": HALVES[:2],
    "shadow_probabilities": np.stack([PROBABILITIES] * 2), "share": 0.5, "signal": SCORES, "theta": np.ones(4),
    "theta0": np.zeros(4), "threshold": 0.0, "tpr": 0.5, "values": SCORES}
FUNCTIONS = [
    metrics.roc_curve, metrics.auc, metrics.balanced_accuracy, metrics.average_precision, metrics.best_threshold,
    metrics.average_precision_non_members, metrics.epsilon_lower_bound, metrics.tpr_at_fpr, metrics.precision_at_fpr,
    metrics.conformal_tpr_at_fpr, metrics.accuracy_at_threshold, metrics.chance_tpr, metrics.resolves, metrics.precision,
    metrics.holm, metrics.pinball_loss, metrics.t_interval, baselines.gap, baselines.modified_entropy, baselines.attack_r,
    baselines.shadow_models, baselines.lira_online, baselines.lira_offline, baselines.rmia, bayes.malt, bayes.mast, bayes.matt,
    bayes.membership_posterior, per_class.attack_s, calibration.calibrate, curvature.log_curvature, curvature.nll,
    curvature.likelihood_ratio, attacks.check_references, signals.loss_of, signals.scalars, signals.from_probabilities]
CALLS = {  # what is called -> its arguments by name
    **{one.__name__: (one, {name: FITTING[name] for name, asked in inspect.signature(one).parameters.items()
                            if asked.default is asked.empty or name in ("reference_members", "level")}) for one in FUNCTIONS},
    "bootstrap": (partial(metrics.bootstrap, "auc", draws=10), {"scores": SCORES, "members": MEMBERS, "groups": None}),
    "compare": (partial(metrics.compare, "auc", draws=10), {"scores_a": SCORES, "scores_b": LOSS, "members": MEMBERS}),
    "evaluate": (partial(metrics.evaluate, draws=10), {"scores": {"a": SCORES}, "members": MEMBERS}),
    "evaluate's": (lambda scores: metrics.evaluate({"a": scores}, MEMBERS, draws=10), {"scores": SCORES}),
    "model_outputs": (signals.model_outputs, {"model": nn.Linear(1, K), "x": SCORES[:, None].astype(np.float32)}),
    "from_function": (signals.from_function, {"function": lambda x: PROBABILITIES[:len(x)], "x": SCORES[:, None],
                                              "outputs": "probabilities", "batch": 20, "keep": None}),
    "from_function's": (lambda answers: signals.from_function(lambda x: answers, SCORES[:, None], "probabilities"),
                        {"answers": PROBABILITIES}),
    "audit_scores": (audit.audit_scores, {"scores": np.tile(SCORES, 2), "members": np.tile(MEMBERS, 2)}),
    "audit_scores, groups": (partial(audit.audit_scores, np.tile(SCORES, 2), np.tile(MEMBERS, 2)), {
        "groups": np.tile(LABELS, 2)}),
    "plan": (audit.plan, {"model": lambda x: PROBABILITIES, "members": SCORES, "non_members": SCORES}),
    "files.records": (lambda x, y: files.records(saved(x, y), "members"), {"x": SCORES[:, None], "y": LABELS})}


@pytest.mark.parametrize("call", CALLS)
@settings(max_examples=40, derandomize=True, deadline=None, database=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_odd_is_taken_or_refused(call, data):
    function, arguments = CALLS[call]
    inspect.signature(function).bind(**arguments)  # or that a name is unknown would be found, and nothing else
    odd = data.draw(st.sampled_from(sorted(arguments)))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            function(**arguments | {odd: data.draw(arrays())})
        except MiaError:
            pass
