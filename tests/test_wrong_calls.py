"""Calls that give a plausible number and are wrong: each is refused, or warned of where it can be right, and says what to do.
The calls next to them that are right pass, without a word and with the numbers they should have."""

import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from mia_lib import audit, data, membership, metrics, models, signals, training
from mia_lib.attacks import baselines, bayes, calibration, iha, quantile
from mia_lib.attacks import curvature as likelihood
from mia_lib.attacks.quantile import networks, trees
from mia_lib.errors import MiaError, check_range
from mia_lib.signals import boundary, curvature, hessian
from mia_lib.training import TrainConfig
from mia_lib.training.losses import precise_loss, record_loss

RNG = np.random.default_rng(0)
R, N, K = 6, 80, 4
MEMBERS = membership.balanced_halves(N, R)
OWN_MEMBERS = RNG.permutation(N) < N // 2
LOSS = RNG.exponential(size=N)
REFERENCES = RNG.exponential(size=(R, N)) * np.where(MEMBERS, 0.3, 1.0)
SCORE, SCORES = -LOSS, -REFERENCES
P, REFERENCE_P = np.exp(-LOSS), np.exp(-REFERENCES)
POPULATION, REFERENCE_POPULATION = RNG.random(30), RNG.random((R, 30))
WITH_OWN, MEMBERS_OWN = np.vstack([REFERENCES, LOSS]), np.vstack([MEMBERS, OWN_MEMBERS])
HOLED = REFERENCES.copy()
HOLED[2, [3, 7]] = np.nan
LOGITS, LABELS = RNG.normal(size=(N, K)) * 3, RNG.integers(0, K, N)
LABELS[:K] = np.arange(K)
SOFTMAX = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
IMAGES = RNG.integers(0, 256, (N, 6, 6, 1), dtype=np.uint8)
X = RNG.normal(size=(N, 5)).astype(np.float32)
NAMES = tuple("abcd")
TABLE = data.Dataset("toy", X, LABELS, N, NAMES)
NETWORK = models.build("mlp:3", (5,), K, seed=0)
CONFIG = TrainConfig("mlp:3")


def foreign(outputs: int = K, size: int = 36) -> nn.Module:
    """A network that this library did not build."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(size, outputs))


def auc(scores, members):
    """A metric of one's own by the name of one of the library's."""
    return 0.5


def classes_of_inputs(x):
    return NETWORK(x).argmax(1)


def of_losses(references=REFERENCES, members=MEMBERS, own=LOSS):
    """Every attack that takes losses of the target and of references, with their membership, by name."""
    p, reference_p = np.exp(-own), np.exp(-references)
    population = RNG.random((len(references), 30))
    return {
        "mast": lambda: bayes.mast(own, references, members),
        "mast, mean out": lambda: bayes.mast(own, references, members, "mean_out"),
        "attack_r": lambda: baselines.attack_r(own, references, members),
        "lira_online": lambda: baselines.lira_online(-own, -references, members),
        "lira_offline": lambda: baselines.lira_offline(-own, -references, members),
        "rmia": lambda: baselines.rmia(p, reference_p, members, POPULATION, population),
        "likelihood_ratio": lambda: likelihood.likelihood_ratio(own, references, members),
        "nll": lambda: likelihood.nll(own, references, members),
    }


PERMUTED = np.stack([RNG.permutation(N) for _ in range(R)])
MASKS = {
    "text": (np.where(MEMBERS, "yes", "no"), "such as .*Compare first"),
    "NaN": (np.where(MEMBERS, 1.0, np.nan), r"such as nan.*Leave out what is not known"),
    "a half": (np.where(MEMBERS, 1.0, 0.5), "such as 0.5.*a threshold"),
    "a permutation": (PERMUTED, r"mask\[.*\] = True"),
    "another shape": (MEMBERS[:, 1:], "must agree|agree in references"),
}
WRONG_LABELS = {
    "from 1": (LABELS + 1, "from 1 to 4.*count from 1: give .* - 1"),
    "negative": (np.where(LABELS == 0, -1, LABELS), "= -1 is out of range"),
    "beyond": (LABELS + 3, "from 0 to 3"),
    "text": (LABELS.astype(str), "np.unique.*return_inverse"),
    "fractions": (LABELS + 0.5, "no whole numbers, such as"),
    "NaN": (np.where(LABELS == 0, np.nan, LABELS), "no whole numbers, such as nan"),
    "[N, 1]": (LABELS[:, None], r"\(80, 1\).*ravel"),
    "[N, K]": (np.eye(K)[LABELS], r"\(80, 4\).*argmax"),
    "too few": (LABELS[:-1], "is needed|y 79 labels|do not fit"),
}
LABELLED = {
    "from_probabilities": lambda y: signals.from_probabilities(SOFTMAX, y),
    "record_gradients": lambda y: signals.record_gradients(NETWORK, X, y),
    "hessian.exact": lambda y: hessian.exact(NETWORK, X, y),
    "hessian.operator": lambda y: hessian.operator(NETWORK, X, y),
    "modified_entropy": lambda y: baselines.modified_entropy(SOFTMAX, y),
    "shadow_models": lambda y: baselines.shadow_models(
        SOFTMAX, y, SOFTMAX[None], LABELS, MEMBERS[:1]
    ),
    "Dataset": lambda y: data.Dataset("toy", X, y, N, NAMES),
    "curvature.exact_trace": lambda y: curvature.exact_trace(
        precise_loss, torch.tensor(LOGITS), y=y
    ),
}

LONG = torch.tensor(LABELS)
WRONG_TENSORS = {
    "from 1": (LONG + 1, "count from 1"),
    "negative": (LONG.where(LONG > 0, -100), "-100 is out of range"),
    "fractions": (LONG + 0.5, "type torch.float32"),
    "[N, 1]": (LONG[:, None], r"\(80, 1\)"),
}

NAMED = pd.Series(LOSS, index=[f"record {k}" for k in range(N)])
FRAME, FRAME_MEMBERS = (pd.DataFrame(rows, columns=NAMED.index) for rows in (REFERENCES, MEMBERS))
TURNED, NAMED_MEMBERS = NAMED[::-1], pd.Series(OWN_MEMBERS, index=NAMED.index)
IN_ANOTHER_ORDER = {
    **of_losses(FRAME, FRAME_MEMBERS, TURNED),
    "columns of members": lambda: bayes.mast(NAMED, FRAME, FRAME_MEMBERS[TURNED.index]),
    "rows of members": lambda: bayes.mast(NAMED, FRAME, FRAME_MEMBERS[::-1]),
    "calibrate": lambda: calibration.calibrate(TURNED, FRAME),
    "compare": lambda: metrics.compare("auc", NAMED, TURNED, NAMED_MEMBERS),
    "columns of scores": lambda: metrics.auc(FRAME, FRAME_MEMBERS[TURNED.index]),
    "evaluate": lambda: metrics.evaluate({"a": NAMED, "b": TURNED}, OWN_MEMBERS),
    "by_target": lambda: metrics.by_target({1: FRAME, 2: FRAME[::-1]}, MEMBERS, ["auc"]),
    "pinball_loss": lambda: metrics.pinball_loss(NAMED, TURNED, 0.9),
    "iha": lambda: iha.scores(
        NAMED, X, np.eye(5), np.ones(5), NAMED_MEMBERS[::-1], 40, 0.1, 0.9, 0.0
    ),
    "regression": lambda: quantile.GaussianQuantile(networks.NetworkConfig("mlp:2", ())).fit(
        pd.DataFrame(X, index=NAMED.index), TURNED
    ),
    "members of scores": lambda: metrics.auc(FRAME, NAMED_MEMBERS[::-1]),
    **{
        f"labels: {name}": lambda call=call, given=given: call(
            pd.DataFrame(given, index=NAMED.index), pd.Series(LABELS, index=NAMED.index)[::-1]
        )
        for name, call, given in (
            ("from_probabilities", signals.from_probabilities, SOFTMAX),
            ("scalars", signals.scalars, LOGITS),
            ("modified_entropy", baselines.modified_entropy, SOFTMAX),
        )
    },
}
LARGE = 2**60 + np.arange(N)
REFUSED = [
    *(
        (call, r"different whole numbers, of which float64 tells 1 apart.*scores - scores\.min")
        for call in (
            lambda: metrics.auc(LARGE, OWN_MEMBERS),
            lambda: metrics.epsilon_one_run(LARGE.astype(np.uint64), OWN_MEMBERS),
            lambda: audit.audit_scores(np.tile(LARGE, 2), np.repeat([0, 1], N)),
        )
    ),
    *(
        (call, r"have the same (index|columns) .*in another order")
        for call in IN_ANOTHER_ORDER.values()
    ),
    (lambda: metrics.holm([0.1, np.nan]), "p holds nan, which is no p-value"),
    *(
        (call, "is called auc, as one of metrics is, and another: it would not be asked")
        for call in (
            lambda: metrics.bootstrap(auc, SCORE, OWN_MEMBERS),
            lambda: metrics.evaluate({"x": SCORE}, OWN_MEMBERS, metrics=[auc]),
        )
    ),
    *(
        (call, "inverse_hessian is not symmetric: it differs from its transpose by up to 1,")
        for call in (
            lambda: baselines.self_influence(X, np.tri(5)),
            lambda: iha.scores(LOSS, X, np.tri(5), np.ones(5), OWN_MEMBERS, 40, 0.1, 0.9, 0.0),
        )
    ),
    *(
        (call, "value: every frame has a column of this name")
        for call in (
            lambda: metrics.by_target({"x": REFERENCES}, MEMBERS, ["auc"], value=3),
            lambda: metrics.by_repetition({"x": {"auc": [0.5]}}, value=3),
        )
    ),
    (
        lambda: metrics.estimate(metrics.by_repetition({"x": {"a": [0.5]}}), "x", "a", n=3),
        "column = 'n' is not known",
    ),
    (
        lambda: iha.scores(LOSS, X, np.eye(5), np.ones(5), OWN_MEMBERS, 39, 0.1, 0.9, 0.0),
        "members_known has 40 members, and n = 39: n is the number of records in the training set",
    ),
    (
        lambda: metrics.auc(SCORE, pd.Series([True, None] * (N // 2), dtype="boolean")),
        r"such as <NA>, <NA>, <NA> \(40 of 80\)",
    ),
    # the target among its own references
    *(
        (call, "row 6 equals .* in all 80 records.*among its own references.*Leave that row out")
        for call in of_losses(WITH_OWN, MEMBERS_OWN).values()
    ),
    (lambda: calibration.calibrate(SCORE, -WITH_OWN), "reference_scores: row 6 equals score"),
    (
        lambda: baselines.attack_r(LOSS, WITH_OWN.astype(np.float32), MEMBERS_OWN),
        "row 6 equals loss",
    ),
    (
        lambda: baselines.lira_online(
            np.stack([SCORE, SCORE], 1), np.stack([-WITH_OWN] * 2, 2), MEMBERS_OWN
        ),
        "row 6 equals signal in all 80 records",
    ),
    (
        lambda: baselines.rmia(
            P, REFERENCE_P, MEMBERS, REFERENCE_POPULATION[4], REFERENCE_POPULATION
        ),
        "population_reference_probability: row 4 equals population_probability",
    ),
    (
        lambda: baselines.shadow_models(
            SOFTMAX, LABELS, np.stack([SOFTMAX, SOFTMAX]), LABELS, MEMBERS[:2]
        ),
        "shadow_probabilities: row 0 equals probabilities",
    ),
    # values that are not finite
    *(
        (
            call,
            "2 values that are not finite numbers .2 NaN., in 1 of 6 references .numbers 2..*Leave those ref",
        )
        for name, call in of_losses(HOLED).items()
        if name != "rmia"
    ),
    (
        lambda: bayes.mast(np.where(LOSS == LOSS[5], np.nan, LOSS), REFERENCES, MEMBERS),
        "loss holds 1 values .* 1 of 80 records .numbers 5..*leave these records out",
    ),
    (
        lambda: baselines.rmia(P, np.exp(-HOLED), MEMBERS, POPULATION, REFERENCE_POPULATION),
        "reference_probability holds 2 values",
    ),
    # masks: each kind at one door, one kind at each
    *(
        (lambda mask=mask: of_losses(members=mask)["mast"](), words)
        for (mask, words) in MASKS.values()
    ),
    *(
        (call, MASKS["a permutation"][1])
        for call in {
            **of_losses(members=PERMUTED),
            "metrics": lambda: metrics.auc(SCORE, PERMUTED[0]),
            "iha": lambda: iha.scores(
                LOSS, X, np.eye(5), np.ones(5), PERMUTED[0], 40, 0.1, 0.9, 0.0
            ),
            "train": lambda: training.train(TABLE, PERMUTED, CONFIG),
        }.values()
    ),
    (lambda: bayes.best_split(REFERENCES, MASKS["a half"][0]), "0.5"),
    (
        lambda: baselines.shadow_models(SOFTMAX, LABELS, SOFTMAX[None], LABELS, [["yes"] * N]),
        "shadow_members == 'yes'",
    ),
    (lambda: baselines.gap(LABELS), "True = classified right"),
    (lambda: membership.leave_one_out(RNG.permutation(N), [0]), "permutation"),
    # labels, likewise
    *((lambda y=y: signals.scalars(LOGITS, y), words) for (y, words) in WRONG_LABELS.values()),
    *(
        (lambda call=call: call(LABELS + 1), WRONG_LABELS["from 1"][1])
        for call in LABELLED.values()
    ),
    (
        lambda: boundary.hop_skip_jump(
            classes_of_inputs, torch.tensor(X), WRONG_LABELS["negative"][0], 300
        ),
        WRONG_LABELS["negative"][1],
    ),
    *(
        (lambda y=y: precise_loss(torch.tensor(LOGITS), y), words)
        for (y, words) in WRONG_TENSORS.values()
    ),
    (lambda: record_loss(torch.tensor(LOGITS), LONG + 1, "cross_entropy"), "count from 1"),
    # outputs of another kind
    *(
        (call, r"at least two classes.*sigmoid output.*make two")
        for call in (
            lambda: signals.scalars(LOGITS[:, :1], np.zeros(N, int)),
            lambda: precise_loss(torch.zeros(N, 1), torch.zeros(N, dtype=int)),
            lambda: record_loss(torch.zeros(N, 1), torch.zeros(N, dtype=int), "cross_entropy"),
            lambda: signals.record_gradients(foreign(1, 5), X, LABELS),
            lambda: hessian.exact(foreign(1, 5), X, LABELS),
        )
    ),
    (lambda: signals.scalars(SOFTMAX, LABELS), "from_probabilities.*add 1 to each"),
    (lambda: signals.from_probabilities(LOGITS, LABELS), "the sum 1 are needed.*scalars"),
    (lambda: signals.from_probabilities(P[:, None], LABELS), r"\[1 - s, s\]"),
    (
        lambda: signals.from_probabilities(SOFTMAX, LABELS, "squared_error"),
        "Allowed: cross_entropy, brier, double_softmax",
    ),
    (lambda: signals.from_probabilities(SOFTMAX, LABELS, floor=0.0), "floor = 0.0"),
    (lambda: signals.scalars(LOGITS, LABELS, "hinge"), "hinge.*Allowed: cross_entropy"),
    (lambda: signals.record_gradients(NETWORK, X, LABELS, "breir"), "Did you mean 'brier'"),
    (lambda: signals.record_gradients(NETWORK, X, LABELS, dtype="half"), "Allowed: float32"),
    (
        lambda: signals.loss(training.train(TABLE, MEMBERS, CONFIG), replace(TABLE, x=X[:, 1:])),
        "were trained on",
    ),
    (lambda: signals.scalars(np.where(LOGITS == LOGITS[7, 1], np.nan, LOGITS), LABELS), "number 7"),
    *(
        (
            lambda call=call: call(SOFTMAX, np.stack([SOFTMAX[::-1]] * R), MEMBERS),
            "probabilities of 4 classes where views.*from_probabilities",
        )
        for call in (baselines.lira_online, baselines.lira_offline, likelihood.nll)
    ),
    *(
        (
            lambda trace=trace, loss=loss: trace(loss, torch.tensor(X, dtype=torch.float64)),
            "loss of a record depends on the others of its batch, or is another one at each call",
        )
        for trace in (
            curvature.zero_order_trace,
            curvature.exact_trace,
            lambda loss, x: curvature.hutchinson_trace(loss, x, 2),
        )
        for loss in (
            lambda x: ((x - x.mean(0)) ** 2).sum(1),
            lambda x: (nn.functional.dropout(x, 0.5) ** 2).sum(1),
        )
    ),
    # numbers
    (lambda: metrics.compare(SCORE, P, OWN_MEMBERS, "auc"), "the metric comes first"),
    (lambda: metrics.auc(OWN_MEMBERS, SCORE), "the scores come first, then the members"),
    (lambda: training.train(TABLE, MEMBERS, "mlp:3"), r"training.TrainConfig\(name\)"),
    (lambda: hessian.exact("mlp:3", X, LABELS), "model is of type str: Module is needed"),
    (lambda: hessian.exact(NETWORK, X, LABELS, batch=-1), "batch = -1 is out of range"),
    (lambda: metrics.tpr_at_fpr(SCORE, OWN_MEMBERS, -0.1), "fpr = "),
    *(
        (call, "fpr = .* 0.01 for 1 %")
        for call in (
            lambda: metrics.tpr_at_fpr(SCORE, OWN_MEMBERS, 1),
            lambda: metrics.precision_at_fpr(SCORE, OWN_MEMBERS, 1),
            lambda: metrics.bootstrap("tpr_at_fpr", SCORE, OWN_MEMBERS, fpr=1),
            lambda: metrics.evaluate({"x": SCORE}, OWN_MEMBERS, metrics=["tpr_at_fpr=1"]),
            lambda: metrics.resolves(OWN_MEMBERS, 1),
        )
    ),
    (lambda: quantile.marginal(SCORE, 1), "1 - alpha: 0.99 for a false positive rate of 1 %"),
    *(
        (lambda call=call: call(LOSS, SCORE), "spread is not above 0 in 80 of 80 records.*np.exp")
        for call in (
            lambda m, s: quantile.gaussian_thresholds(m, s, 0.9),
            lambda m, s: quantile.gaussian_position(m, m, s),
        )
    ),
    (
        lambda: baselines.rmia(P, REFERENCE_P, MEMBERS, POPULATION, REFERENCE_POPULATION[1:]),
        "population_reference_probability has 5 rows and reference_probability 6.*same R references",
    ),
    # training
    *(
        (lambda given=given: TrainConfig("mlp:3", **given), words)
        for given, words in (
            (
                {"momentum": 0.9},
                "momentum = 0.9 is SGD's.*optimizer = 'sgd', or leave momentum out",
            ),
            ({"learning_rate": "0.1"}, "learning_rate = '0.1' is text.*without quotes"),
            ({"learning_rate": np.nan}, "= nan is out of range"),
            ({"weight_decay": np.inf}, "weight_decay = inf"),
            ({"step_factor": np.nan}, "step_factor"),
            ({"epochs": True}, "epochs = True: a whole number"),
            ({"nesterov": "no"}, "True or False"),
        )
    ),
    (lambda: trees.TreeConfig(depth="4"), "depth = '4': a whole number is needed, without quotes"),
    # records
    *(
        (call, words)
        for call, words in (
            (
                lambda: data.Dataset("t", torch.tensor(X), LABELS, N, NAMES),
                r"x is of type Tensor.*x.numpy\(\)",
            ),
            (
                lambda: data.Dataset("t", X, LABELS.tolist(), N, NAMES),
                r"y is of type list.*np.array\(y\)",
            ),
            (
                lambda: data.Dataset("t", X[1:], LABELS, N - 1, NAMES),
                r"y has shape \(80,\): \[79\] is needed",
            ),
            (
                lambda: replace(TABLE, x=np.where(X == X[9, 2], np.nan, X)),
                "1 NaN.*1 of 80 records .numbers 9..*Fill in",
            ),
            (lambda: replace(TABLE, x=(IMAGES / 255)), r"float64: images uint8.*255 \* x"),
            (lambda: replace(TABLE, n_train=N + 1), "n_train = 81"),
            (lambda: replace(TABLE, classes=4), "classes = 4: the names"),
        )
    ),
    # networks from elsewhere
    (
        lambda: models.to_input(IMAGES.transpose(0, 3, 1, 2)),
        r"channels seem to come first.*x.transpose\(0, 2, 3, 1\)",
    ),
    (lambda: models.to_input(IMAGES / 255, "0 to 1"), "for uint8 images.*passed as they are"),
    (lambda: models.to_input(IMAGES, "0-1"), "Allowed: -1 to 1, 0 to 1, 0 to 255"),
    (lambda: models.to_input(IMAGES, (0.5, 0.0)), "spreads above 0"),
    (lambda: models.to_input(IMAGES, 255), "(mean, spread)"),
    (lambda: models.to_input(IMAGES, ((0.5,) * 3, (0.2,) * 3)), "1 channels need one mean"),
    *(
        (lambda function=function: function(nn.Flatten(), X, LABELS), "has no parameters")
        for function in (signals.record_gradients, hessian.exact)
    ),
    (
        lambda: signals.features(foreign(), IMAGES, "0 to 1"),
        r"has no body.*models.Network\(body, head\)",
    ),
]

WARNED = [
    (
        lambda: curvature.zero_order_trace(
            lambda x: (x**2).sum(1), torch.full((3, 2), 1e3), h=1e-9
        ),
        "so far below the rounding of torch.float32 .* every trace is 0.*a larger h",
    ),
    (lambda: signals.model_outputs(foreign(), IMAGES), "scaling = '0 to 1'"),
    *(
        (
            lambda function=function: function(foreign(), IMAGES[:9], LABELS[:9]),
            "is not a network of models.build",
        )
        for function in (signals.record_gradients, hessian.exact)
    ),
    *(
        (call, "loss is nowhere above 0 .*give its negative")
        for call in (
            lambda: bayes.malt(SCORE),
            lambda: bayes.mast(SCORE, SCORES, ~MEMBERS),
            lambda: baselines.attack_r(SCORE, SCORES, ~MEMBERS),
            lambda: iha.scores(SCORE, X, np.eye(5), np.ones(5), OWN_MEMBERS, 40, 0.1, 0.9, 0.0),
        )
    ),
    *(
        (call, f"is {way} under references trained on a record .*Give the negative")
        for call, way in (
            (lambda: bayes.mast(P, REFERENCE_P, MEMBERS), "higher"),
            (lambda: baselines.attack_r(P, REFERENCE_P, MEMBERS), "higher"),
            (lambda: baselines.lira_offline(LOSS, REFERENCES, MEMBERS), "lower"),
            (
                lambda: baselines.rmia(
                    1 - P, 1 - REFERENCE_P, MEMBERS, POPULATION, REFERENCE_POPULATION
                ),
                "lower",
            ),
        )
    ),
    *(
        (call, "a level is 1 - alpha.* rate of 0.01 give 0.99")
        for call in (
            lambda: quantile.marginal(SCORE, 0.01),
            lambda: baselines.lira_threshold(SCORES, MEMBERS, [0.01]),
            lambda: quantile.gaussian_thresholds(LOSS, P, 0.01),
        )
    ),
    (
        lambda: baselines.attack_r(LOSS, REFERENCES, MEMBERS, 0.99),
        "level = 0.99 is the false positive",
    ),
    (lambda: metrics.bootstrap("auc", SCORE, OWN_MEMBERS, level=0.05), "for 95 % give 0.95"),
    *(
        (
            lambda bound=bound: bound(SCORE, OWN_MEMBERS, confidence=0.05),
            "confidence = 0.05 is .* for 95 % give 0.95",
        )
        for bound in (metrics.epsilon_lower_bound, metrics.epsilon_one_run)
    ),
    (
        lambda: metrics.bootstrap("tpr_at_fpr=0.001", SCORE, OWN_MEMBERS),
        "below the resolution: 40 non-members.*0.025.*Use more non-members",
    ),
    (
        lambda: metrics.compare("precision_at_fpr", SCORE, P, OWN_MEMBERS, fpr=0.0),
        "precision_at_fpr=0 is below the resolution",
    ),
    (lambda: signals.from_probabilities(np.eye(K)[LABELS], LABELS), "in 80 of 80 cases.*tie"),
]


@pytest.mark.parametrize("call, words", REFUSED)
def test_a_wrong_call_is_refused(call, words):
    with pytest.raises(MiaError, match=words):
        call()


@pytest.mark.parametrize("call, words", WARNED)
def test_a_call_that_is_likely_wrong_is_warned_of(call, words):
    with pytest.warns(UserWarning, match=words):
        call()


RIGHT = {
    **of_losses(),
    "calibrate": lambda: calibration.calibrate(SCORE, SCORES),
    "malt of zeros": lambda: bayes.malt(np.zeros(5)),
    "signals of a few values agree": lambda: calibration.calibrate(
        [1.0, 0.0, 1.0], [[1.0, 0.0, 1.0]]
    ),
    "objects of pandas": lambda: [
        bayes.mast(NAMED, FRAME, FRAME_MEMBERS),
        metrics.auc(FRAME, NAMED_MEMBERS),
        metrics.auc(FRAME, FRAME_MEMBERS),
        metrics.compare("auc", NAMED, TURNED.to_numpy(), NAMED_MEMBERS),
        signals.from_probabilities(pd.DataFrame(SOFTMAX), pd.Series(LABELS)),
    ],
    "large whole numbers": lambda: metrics.auc(np.arange(N) << 50, OWN_MEMBERS),
    "mask of other types": lambda: [
        metrics.auc(SCORE, OWN_MEMBERS.astype(kind)) for kind in (int, object)
    ],
    "labels of other types": lambda: [
        signals.scalars(LOGITS, LABELS.astype(kind)) for kind in (float, np.uint8)
    ],
    "two classes as bool": lambda: signals.scalars(LOGITS[:, :2], LABELS > 1),
    "outputs near one-hot": lambda: signals.scalars(np.eye(K)[LABELS], LABELS, "squared_error"),
    "levels of a grid": lambda: quantile.gaussian_thresholds(LOSS, P, [0.1, 0.9]),
    "resolved": lambda: metrics.bootstrap("tpr_at_fpr=0.1", SCORE, OWN_MEMBERS, draws=20),
    "momentum of SGD": lambda: TrainConfig("mlp:3", optimizer="sgd", momentum=0.9, learning_rate=1),
    "NumPy's numbers": lambda: [
        check_range("x", kind(1), 0, 1) for kind in (np.float32, np.float64, np.int64, np.uint8)
    ],
    "float images": lambda: signals.model_outputs(foreign(), IMAGES.transpose(0, 3, 1, 2) / 255),
    "our network, wrapped": lambda: signals.model_outputs(
        nn.Sequential(models.build("mlp:3", (6, 6, 1), K, seed=0)), IMAGES
    ),
    "networks of tables": lambda: [
        signals.model_outputs(network, X) for network in (foreign(size=5), nn.Flatten())
    ],
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("call", RIGHT.values(), ids=RIGHT)
def test_the_right_call_beside_it_passes_without_a_word(call):
    call()


def test_the_target_may_be_kept_among_its_references_where_that_is_meant():
    given = -LOSS, -WITH_OWN, MEMBERS_OWN
    assert_array_equal(
        baselines.lira_online(*given, own="keep")[:5],
        baselines.lira_online(-LOSS[:5], -WITH_OWN[:, :5], MEMBERS_OWN[:, :5], own="keep"),
    )
    leaked, honest = (
        metrics.auc(score, OWN_MEMBERS)
        for score in (
            baselines.lira_online(*given, own="keep"),
            baselines.lira_online(-LOSS, -REFERENCES, MEMBERS),
        )
    )
    assert leaked > honest + 0.1


def test_a_signal_without_direction_is_not_warned_of():
    """Noise does not look like a wrong sign, whatever the number of references and records."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(20):
            rng, count = np.random.default_rng(seed), (2, 4, 10)[seed % 3]
            members = membership.random_halves(300, count, seed)
            members[:, (members.sum(0) == count)] = False
            level = 3 * rng.exponential(size=(count, 1))  # some references are worse than others
            bayes.mast(
                rng.exponential(size=300),
                level + rng.exponential(size=(count, 300)),
                members,
                "mean_out",
            )


@pytest.mark.parametrize(
    "scaling, expected",
    [
        ("-1 to 1", lambda x: x / 127.5 - 1),
        ("0 to 1", lambda x: x / 255),
        ("0 to 255", lambda x: x),
        ((0.5, 0.25), lambda x: (x / 255 - 0.5) / 0.25),
    ],
)
def test_pixels_get_to_a_network_as_it_was_trained_on_them(scaling, expected):
    network = foreign()
    inputs = torch.tensor(expected(IMAGES.astype(np.float32).transpose(0, 3, 1, 2)))
    outputs = network(inputs).detach().numpy()
    assert_allclose(signals.model_outputs(network, IMAGES, scaling), outputs, rtol=1e-4, atol=1e-5)
    # floats are passed as they are
    assert_array_equal(signals.model_outputs(network, inputs.numpy()), outputs)
    for function in (
        lambda *given, **how: np.concatenate(list(signals.record_gradients(*given, **how))),
        hessian.exact,
    ):
        same = function(network, inputs.numpy(), LABELS, scaling=None)
        assert_allclose(
            function(network, IMAGES, LABELS, scaling=scaling), same, rtol=1e-4, atol=1e-5
        )
    colours = RNG.integers(0, 256, (3, 6, 5, 3), dtype=np.uint8)
    mean = (0.4, 0.5, 0.6)
    spread = (0.1, 0.2, 0.3)
    own = ((colours / 255 - mean) / spread).transpose(0, 3, 1, 2)  # of each channel
    assert_allclose(models.to_input(colours, (mean, spread)).numpy(), own, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:probabilities of the true class")
def test_probabilities_of_exactly_zero_and_one_give_finite_signals_in_order():
    p = np.array([[1.0, 0, 0], [1 - 1e-9, 1e-9, 0], [0.6, 0.4, 0], [1e-9, 1 - 1e-9, 0], [0, 1, 0]])
    labels = np.zeros(5, int)
    found = signals.from_probabilities(p, labels)
    small = signals.from_probabilities(p.astype(np.float32), labels)
    assert all(np.isfinite(column).all() for column in (*found.values(), *small.values()))
    assert (np.diff(found["loss"]) > 0).all()
    assert (np.diff(found["logit_scaled_confidence"]) < 0).all()
    assert_allclose(found["loss"][4], -np.log(np.finfo(np.float64).tiny), rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # whoever names a floor knows of it
        rounded = signals.from_probabilities(p, labels, floor=5e-5)
    assert_allclose(rounded["loss"][[3, 4]], -np.log(5e-5 / (1 + 5e-5)), rtol=1e-3)
    assert_allclose(rounded["logit_scaled_confidence"][0], -np.log(2 * 5e-5), rtol=1e-6)


UNGUARDED = """
import numpy as np
from mia_lib import data, membership, signals, training
rng = np.random.default_rng(0)
table = data.Dataset("t", rng.normal(size=(60, 3)).astype(np.float32), rng.integers(0, 2, 60), 60, ("a", "b"))
models = training.train(table, membership.random_halves(60, 4), training.TrainConfig("mlp:3", epochs=1), workers=1)
signals.loss(models, table)
"""


def test_why_a_script_without_a_guard_cannot_train_is_said_last(tmp_path, isolated_cache):
    script = tmp_path / "run.py"
    script.write_text(UNGUARDED)
    ended = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=600
    )
    last = ended.stderr.strip().splitlines()[-1]
    assert ended.returncode
    assert "Put what it does under `if __name__ == '__main__':`." in last
    assert "memory" not in last
