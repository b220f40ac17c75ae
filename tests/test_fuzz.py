"""What is odd is taken, or refused by a `MiaError`; anything else that is raised is a traceback on somebody's screen.

Public functions are given arrays of any shape, type and content, and every promised one each odd value in the place of each of
its arguments. What would be taken for something else, masked arrays and texts for switches, is refused always.
"""

import inspect
import shutil
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from test_promise import PROMISED, meant
from torch import nn

from mia_book.publishing import queue
from mia_lib import attacks, audit, data, game, membership, metrics, models, signals, training
from mia_lib.attacks import baselines, bayes, calibration, curvature, per_class, quantile
from mia_lib.attacks.quantile.networks import NetworkConfig
from mia_lib.audit import files
from mia_lib.audit.options import AuditOptions
from mia_lib.audit.target import spread
from mia_lib.errors import MiaError
from mia_lib.signals import views

N, R, K = 60, 6, 3
RNG = np.random.default_rng(0)
SHAPES = (
    (),
    (0,),
    (1,),
    (2,),
    (N,),
    (N, 1),
    (N, K),
    (0, K),
    (R, N),
    (R, 0),
    (1, N),
    (2, 3, N),
    (R, N, K),
)
VALUES = (0, 1, -1, np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, 2**62)
TYPES = (
    "float64",
    "float32",
    "float16",
    "int64",
    "uint8",
    "bool",
    "complex128",
    "O",
    "U3",
    "datetime64[s]",
)
ODD = (
    None,
    "text",
    "",
    b"bytes",
    -1,
    0,
    2,
    10**30,
    0.5,
    float("nan"),
    np.inf,
    1e-320,
    True,
    [],
    {},
    [[1, 2], [3]],
    ["a", "b"],
    {"a": [1, 2]},
    object(),
    str,
    np.int64(3),
    np.int64(-2),
    np.array(0.5),
    np.arange(3),
    np.ones((2, 2)),
)


@st.composite
def arrays(draw):
    """An array of some shape and type with odd values in it, or something that is none."""
    if draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(ODD))
    x = np.random.default_rng(draw(st.integers(0, 3))).standard_normal(
        draw(st.sampled_from(SHAPES))
    )
    kind = draw(st.sampled_from(("normal", "constant", "one", "all")))
    if kind == "constant":
        x = np.zeros_like(x) + draw(st.integers(0, 1))
    elif kind != "normal" and x.size:
        x = x + 0 if kind == "one" else np.zeros_like(x)
        x.flat[: 1 if kind == "one" else x.size] = draw(st.sampled_from(VALUES))
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
    "correct": MEMBERS,
    "curvature": LOSS,
    "fpr": 0.1,
    "gradients0": RNG.standard_normal((N, 4)),
    "labels": LABELS,
    "level": 0.5,
    "logits": RNG.standard_normal((N, K)),
    "loss": LOSS,
    "margin": SCORES,
    "members": MEMBERS,
    "observed": SCORES,
    "p": SHARE,
    "population_probability": SHARE,
    "population_reference_probability": SHARES,
    "predicted": SCORES,
    "prior": 0.5,
    "probabilities": PROBABILITIES,
    "probability": SHARE,
    "reference_curvature": BANK,
    "reference_loss": LOSSES,
    "reference_members": HALVES,
    "reference_probability": SHARES,
    "reference_scores": BANK,
    "reference_signal": BANK,
    "score": SCORES,
    "scores": SCORES,
    "shadow_labels": LABELS,
    "shadow_members": HALVES[:2],
    "shadow_probabilities": np.stack([PROBABILITIES] * 2),
    "share": 0.5,
    "signal": SCORES,
    "theta": np.ones(4),
    "theta0": np.zeros(4),
    "threshold": 0.0,
    "tpr": 0.5,
    "values": SCORES,
}
FUNCTIONS = [
    metrics.roc_curve,
    metrics.auc,
    metrics.balanced_accuracy,
    metrics.average_precision,
    metrics.best_threshold,
    metrics.average_precision_non_members,
    metrics.epsilon_lower_bound,
    metrics.tpr_at_fpr,
    metrics.precision_at_fpr,
    metrics.conformal_tpr_at_fpr,
    metrics.accuracy_at_threshold,
    metrics.chance_tpr,
    metrics.resolves,
    metrics.precision,
    metrics.holm,
    metrics.pinball_loss,
    metrics.t_interval,
    baselines.gap,
    baselines.modified_entropy,
    baselines.attack_r,
    baselines.shadow_models,
    baselines.lira_online,
    baselines.lira_offline,
    baselines.rmia,
    bayes.malt,
    bayes.mast,
    bayes.matt,
    bayes.membership_posterior,
    per_class.attack_s,
    calibration.calibrate,
    curvature.log_curvature,
    curvature.nll,
    curvature.likelihood_ratio,
    attacks.check_references,
    signals.loss_of,
    signals.scalars,
    signals.from_probabilities,
]
CALLS = {  # what is called -> its arguments by name
    **{
        one.__name__: (
            one,
            {
                name: FITTING[name]
                for name, asked in inspect.signature(one).parameters.items()
                if asked.default is asked.empty or name in ("reference_members", "level")
            },
        )
        for one in FUNCTIONS
    },
    "bootstrap": (
        partial(metrics.bootstrap, "auc", draws=10),
        {"scores": SCORES, "members": MEMBERS, "groups": None},
    ),
    "compare": (
        partial(metrics.compare, "auc", draws=10),
        {"scores_a": SCORES, "scores_b": LOSS, "members": MEMBERS},
    ),
    "evaluate": (
        partial(metrics.evaluate, draws=10),
        {"scores": {"a": SCORES}, "members": MEMBERS},
    ),
    "evaluate's": (
        lambda scores: metrics.evaluate({"a": scores}, MEMBERS, draws=10),
        {"scores": SCORES},
    ),
    "model_outputs": (
        signals.model_outputs,
        {"model": nn.Linear(1, K), "x": SCORES[:, None].astype(np.float32)},
    ),
    "from_function": (
        signals.from_function,
        {
            "function": lambda x: PROBABILITIES[: len(x)],
            "x": SCORES[:, None],
            "outputs": "probabilities",
            "batch": 20,
            "keep": None,
        },
    ),
    "from_function's": (
        lambda answers: signals.from_function(lambda x: answers, SCORES[:, None], "probabilities"),
        {"answers": PROBABILITIES},
    ),
    "audit_scores": (
        audit.audit_scores,
        {"scores": np.tile(SCORES, 2), "members": np.tile(MEMBERS, 2)},
    ),
    "audit_scores, groups": (
        partial(audit.audit_scores, np.tile(SCORES, 2), np.tile(MEMBERS, 2)),
        {"groups": np.tile(LABELS, 2)},
    ),
    "audit_scores, ids": (
        partial(audit.audit_scores, np.tile(SCORES, 2), np.tile(MEMBERS, 2)),
        {"ids": np.tile(LABELS, 2)},
    ),
    "spread": (
        lambda answer: spread(answer, len(PROBABILITIES), tuple("abc")),
        {"answer": PROBABILITIES},
    ),
    "from_frame": (
        lambda table, label: data.from_frame(table, label, "a table"),
        {"table": SCORES, "label": LABELS},
    ),
    "plan": (
        audit.plan,
        {"model": lambda x: PROBABILITIES, "members": SCORES, "non_members": SCORES},
    ),
    "files.records": (
        lambda x, y: files.records(saved(x, y), "members"),
        {"x": SCORES[:, None], "y": LABELS},
    ),
}


@pytest.mark.parametrize("call", CALLS)
@settings(
    max_examples=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_what_is_odd_is_taken_or_refused(call, data):
    function, arguments = CALLS[call]
    # or that a name is unknown would be found, and nothing else
    inspect.signature(function).bind(**arguments)
    odd = data.draw(st.sampled_from(sorted(arguments)))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            function(**arguments | {odd: data.draw(arrays())})
        except MiaError:
            pass


def squares(x, y=None):
    return (x**2).sum(1)


X, POINTS = RNG.standard_normal((N, 2)).astype(np.float32), torch.ones(3, 2, dtype=torch.float64)
RECORDS = data.Dataset("mine", X, LABELS, N, ("a", "b", "c"))
CONFIG = training.TrainConfig("logistic_regression", epochs=1)
GRADIENTS, NETWORK = FITTING["gradients0"], NetworkConfig("mlp:2", (), epochs=1)
ASKED = FITTING | {  # what promised functions need, by name
    "classes": ("a", "b", "c"),
    "config": CONFIG,
    "gradients": GRADIENTS,
    "inverse_hessian": np.eye(4),
    "learning_rate": 0.1,
    "levels": [0.5, 0.9],
    "mean_gradient": GRADIENTS[0],
    "members_known": MEMBERS,
    "metric": "auc",
    "model": NETWORK,
    "models": training.train(RECORDS, MEMBERS, CONFIG, executor=ThreadPoolExecutor(1)),
    "momentum": 0.9,
    "n": 30,
    "n_train": N,
    "name": "mine",
    "probes": 2,
    "records": RECORDS,
    "weight_decay": 1e-4,
    "x": X,
    "y": LABELS,
}
OTHERWISE = {  # a promised function -> what it is given in another place, or beside what it needs
    "data.load": {"name": "gaussian", "records": 3, "dimension": 2, "seed": 0},
    "membership.random_halves": {"models": 2},
    "membership.balanced_halves": {"models": 2},
    "membership.references_of": {"target": 1, "models": 4},
    "training.TrainConfig": {"architecture": "mlp:2"},
    "training.train": {"members": HALVES},
    "published.load": {"name": "bank/cifar10-small", "models": 1, "arrays": ["margin"]},
    **{
        f"curvature.{name}": {"loss": squares, "x": POINTS}
        for name in ("hutchinson_trace", "exact_trace")
    },
    "curvature.zero_order_trace": {"loss": squares, "x": POINTS, "iterations": 2, "h": 1e-2},
    "hessian.exact": {"model": models.build("mlp:2", (2,), K, seed=0)},
    "hessian.inverse": {"matrix": np.eye(3)},
    "hessian.conjugate_gradient": {
        "product": np.diag([1.0, 3.0]),
        "right": np.ones((1, 2)),
        "iterations": 3,
    },
    "attacks.baselines.shadow_models": {
        "hidden": 1,
        "shadow_probabilities": RNG.dirichlet(np.ones(K), (2, N)),
    },
    "metrics.evaluate": {"scores": {"a": SCORES}, "metrics": ["auc"], "draws": 10},
    "metrics.bootstrap": {"draws": 10},
    "game.Game": {
        "members": HALVES,
        "values": {"loss": LOSSES},
        "public_values": {"loss": LOSSES},
        "targets": [0, 2],
        "references": 4,
    },
    "drawing.roc": {"scores": {"a": SCORES}},
}
OPTIONS = {
    name: (meant(name), OTHERWISE.get(name, {}))
    for name, _, given, _ in PROMISED
    if given not in ("", "()")
}
OPTIONS["attacks.quantile.GaussianQuantile.fit"] = quantile.GaussianQuantile(NETWORK).fit, {}
OPTIONS["audit.audit_scores"] = (
    audit.audit_scores,
    {
        "scores": np.tile(SCORES, 2),
        "members": np.tile(MEMBERS, 2),
        "fpr": 0.1,
        "groups": None,
        "seed": 0,
    },
)


def masked(value):
    """An array, or each in a dictionary, with a value masked."""
    if isinstance(value, dict):
        return {name: masked(one) for name, one in value.items()}
    return np.ma.masked_array(value, np.arange(value.size).reshape(value.shape) == 1)


def other_forms(value):
    """An array as others hold it."""
    if not isinstance(value, np.ndarray | torch.Tensor):
        return ()
    array, tensor = np.asarray(value), torch.as_tensor(value)
    learnt = (
        (tensor.clone().requires_grad_(), tensor.bfloat16())
        if tensor.is_floating_point()
        else (tensor,)
    )
    return (
        *learnt,
        array.tolist(),
        *map(array.astype, ("O", "float16", "longdouble", "int8", "uint16")),
    )


@pytest.mark.parametrize("name", OPTIONS)
def test_an_odd_option_of_what_is_promised_is_taken_or_refused(name, monkeypatch, tmp_path, repo):
    (tmp_path / "bank").mkdir()  # one piece alone, for each call looks at all of them
    for piece in (repo / "data" / "published" / "bank").glob("cifar10-small-000-*"):
        (tmp_path / "bank" / piece.name).symlink_to(piece)
    shutil.copy(repo / "data" / "published" / "definitions.json", tmp_path)
    monkeypatch.setenv("MIA_PUBLISHED", str(tmp_path))
    function, otherwise = OPTIONS[name]
    parameters = inspect.signature(function).parameters
    usual = {
        one: ASKED.get(one) if known.default is known.empty else known.default
        for one, known in parameters.items()
        if known.kind is not known.VAR_KEYWORD
    } | otherwise
    failed = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        function(**usual)
        for argument, value in usual.items():
            never = (
                [one for one in ODD if not isinstance(one, bool)] if isinstance(value, bool) else []
            )
            never += [masked(value)] if isinstance(value, np.ndarray | dict) else []
            for odd in (*ODD, *other_forms(value), *never):
                try:
                    function(**usual | {argument: odd})
                    refused = False
                except MiaError:
                    refused = True
                except Exception as error:
                    failed.append(f"{argument} = {odd!r:.40} raises {error!r:.90}")
                if not refused and any(odd is one for one in never):
                    failed.append(f"{argument} = {odd!r:.40} is taken")
                plt.close("all")
    assert not failed, "\n".join(failed)


HUGE = 10**30
TOO_MANY = [  # of what is not among the arguments of promised functions
    lambda: queue.numbers(f"0:{HUGE}"),
    lambda: queue.check_models(HUGE),
    lambda: models.build(f"mlp:{HUGE}", (2,), K),
    lambda: models.build("mlp:2", (2,), HUGE),
    lambda: models.build("mlp:2", (HUGE,), K),
    lambda: views.augmented(RECORDS, "none", HUGE),
    lambda: AuditOptions(minutes=10**400),
    lambda: metrics.bootstrap("auc", SCORES, MEMBERS, draws=10**5000),
    lambda: membership.calibration_splits(HUGE, 1, 1),
    lambda: membership.random_halves(10**9, 10**9),
]


@pytest.mark.parametrize("call", TOO_MANY)
def test_more_than_can_ever_fit_is_refused_before_it_begins(call):
    with pytest.raises(MiaError):
        call()


def test_what_is_named_twice_or_masked_is_refused_and_none_is_a_choice_of_records():
    assert len(RECORDS.take([])) == len(RECORDS.take(np.zeros(N, bool))) == 0
    # whose intervals would be too narrow
    with pytest.raises(MiaError, match="targets has 2 more than once: give each once"):
        game.Game(HALVES, {"loss": LOSSES}, {"loss": LOSSES}, [0, 2, 2], 4)
    with pytest.raises(MiaError, match="classes has b more than once"):
        data.Dataset("mine", X, LABELS, N, ("a", "b", "b"))
    answers, records = np.zeros((N, K)), np.ma.masked_array(X, X > 1)
    for function, x in (
        (lambda x: answers[: len(x)], records),
        (lambda x: np.ma.masked_array(answers, answers == 0), X),
    ):
        with pytest.raises(MiaError, match=r"masked values.*fill in what is missing"):
            signals.from_function(function, x)
