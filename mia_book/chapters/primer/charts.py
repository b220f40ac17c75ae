"""Three charts for whoever has never seen a ROC, a likelihood ratio, or a model that learns its records by heart.

Two are of normal laws, of which everything is known; the third is of real records, whose model is trained here by plain
gradient descent. They are shown on a page of prose, `book/primer.md`, and belong to no run: each build makes them, in seconds,
and takes them from `notebook`.

Shapes: N records, D dimensions, K classes, T moments of a training.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import log_softmax, softmax

from mia_book.evidence import explore, figures, results
from mia_book.evidence.explore import SIDE
from mia_book.evidence.figures import altair as alt
from mia_lib import drawing
from mia_lib.metrics import ranking

PAGE, NAME = "book/primer.md", "primer"
DATASET, RECORDS, SEED = "fashion_mnist_20k", 400, 0
STEPS = (0, *(int(step) for step in np.unique(np.geomspace(1, 3000, 28).round())))
# between the means of members and non-members, in standard deviations, when a chart opens
GAP = 1.5
KINDS = ["members", "non-members"]
EDGES = np.linspace(0, 4, 21)  # of the histograms of losses; what is higher goes into the last bin


@dataclass(frozen=True)
class Learned:
    """A model while it learns: numbers of steps of gradient descent [T], and after each the loss in
    nats of every record and whether the model classifies it right, [T, N]; members, bool [N]."""

    steps: np.ndarray
    loss: np.ndarray
    right: np.ndarray
    members: np.ndarray

    @property
    def auc(self) -> np.ndarray:
        """AUC at each step, [T], of the attack that calls a record with a low loss a member."""
        return np.array([ranking.auc(-row, self.members) for row in self.loss])


def learn(
    x: np.ndarray, y: np.ndarray, members: np.ndarray, classes: int, steps, rate: float = 0.01
) -> Learned:
    """Train a linear softmax model on the members by gradient descent from zero, and look at all records on the way.

    The weights stay sums of members' inputs, so that products of inputs are all that is needed: with few members that is
    many times as fast as descent on the weights, and the same.

    Args:
        x: [N, D], inputs. y: [N], labels from 0 to K - 1. members: bool [N]. classes: K.
        steps: moments to look, rising whole numbers from zero on.
        rate: of the descent on the mean loss.
    """
    steps, x = np.asarray(steps), np.c_[x, np.ones(len(x))]  # and a constant
    products = x @ x[members].T
    own, targets = products[members], np.eye(classes)[y[members]]
    weights = np.zeros((int(members.sum()), classes))
    loss, right = [], []
    for step in range(int(steps[-1]) + 1):
        if step in steps:
            logits = products @ weights
            loss.append(-log_softmax(logits, axis=1)[np.arange(len(y)), y])
            right.append(logits.argmax(1) == y)
        weights -= rate * (softmax(own @ weights, axis=1) - targets) / len(targets)
    return Learned(steps, np.array(loss), np.array(right), members)


def _words(lines: list[str], **calculated: str):
    """The view "said" with lines of text, each an expression in which names of `calculated` stand
    after "datum."."""
    return explore.words(
        alt.Chart(alt.Data(values=[{}])).transform_calculate(**calculated), lines, x=-42
    )


def _laws(x: str, mean: str, spread: str, title: str):
    """The densities of members and non-members on one axis, and the encodings that draw them."""
    both = alt.Chart(alt.sequence(-4, 7.02, 0.05, as_=x)).transform_calculate(
        members=f"densityNormal(datum.{x}, {mean}, {spread})",
        others=f"densityNormal(datum.{x}, 0, 1)",
    )
    named = both.transform_calculate(**{"non-members": "datum.others"}).transform_fold(
        KINDS, as_=["kind", "density"]
    )
    across = alt.X(f"{x}:Q", title=title, scale=alt.Scale(domain=[-4, 7], nice=False))
    up = alt.Y(
        "density:Q",
        title="density",
        stack=None,
        scale=alt.Scale(domain=[0, 0.9], nice=False),
        axis=alt.Axis(tickCount=4),
    )
    kinds = explore.two_kinds("kind:N", KINDS)
    outline = named.mark_line(strokeWidth=2, aria=False).encode(
        across, up, color=kinds["color"], strokeDash=kinds["strokeDash"], order=f"{x}:Q"
    )
    return named, across, up, kinds["color"], outline


def roc_chart():
    """Two normal laws, a threshold, and the ROC that it moves along."""
    controls = [
        explore.slider("threshold", 1.0, -4, 7, 0.1, "Threshold"),
        explore.slider("gap", GAP, 0, 4, 0.1, "How far members are ahead"),
    ]
    named, across, up, colour, outline = _laws("score", "gap", "1", "score")
    called = (
        named.transform_filter("datum.score >= threshold")
        .mark_area(opacity=0.35, aria=False)
        .encode(across, up, color=colour)
    )
    line = (
        alt.Chart(alt.Data(values=[{}]))
        .transform_calculate(at="threshold")
        .mark_rule(color=drawing.INK, strokeWidth=2, aria=False)
        .encode(alt.X("at:Q", title="score"))
    )
    text = _words(
        [
            "'Threshold ' + format(threshold, '.1f')",
            "'Members called (TPR): ' + format(datum.tpr, '.1%')",
            "'Non-members called (FPR): ' + format(datum.fpr, '.1%')",
            "'Area under the curve (AUC): ' + format(datum.auc, '.3f')",
        ],
        tpr="1 - cumulativeNormal(threshold, gap, 1)",
        fpr="1 - cumulativeNormal(threshold, 0, 1)",
        auc="cumulativeNormal(gap / sqrt(2), 0, 1)",
    )
    left = alt.vconcat(
        text, alt.layer(called, outline, line).properties(width=SIDE, height=190), spacing=8
    )
    rates = {
        "fpr": "1 - cumulativeNormal(datum.at, 0, 1)",
        "tpr": "1 - cumulativeNormal(datum.at, gap, 1)",
    }
    where = explore.roc_axes(0)
    curve = (
        alt.Chart(alt.sequence(-5, 10, 0.1, as_="at"))
        .transform_calculate(**rates)
        .mark_line(color=drawing.INK, strokeWidth=2.5, aria=False)
        .encode(**where, order="at:Q")
    )
    point = (
        alt.Chart(alt.Data(values=[{}]))
        .transform_calculate(at="threshold")
        .transform_calculate(**rates)
        .mark_point(
            filled=True, size=130, color=drawing.STYLE["members"]["color"], opacity=1, aria=False
        )
        .encode(**where)
    )
    right = alt.layer(explore.chance_line(where, 0), curve, point).properties(
        width=SIDE, height=SIDE
    )
    return explore.side_by_side(left, right, controls)


def ratio_chart():
    """Two normal laws, an observation, and the ratio of its densities under the two."""
    controls = [
        explore.slider("seen", 1.0, -4, 7, 0.1, "Score that is seen"),
        explore.slider("spread", 1.0, 0.5, 2, 0.1, "Spread of the members' scores"),
        explore.slider("share", 0.5, 0.01, 0.99, 0.01, "Share of members among all records"),
    ]
    _, across, up, colour, outline = _laws("score", str(GAP), "spread", "score")
    seen = alt.Chart(alt.Data(values=[{"kind": kind} for kind in KINDS])).transform_calculate(
        score="seen",
        density=f"datum.kind == 'members' ? densityNormal(seen, {GAP}, spread) : densityNormal(seen, 0, 1)",
    )
    line = seen.mark_rule(color=drawing.INK, strokeWidth=1.5, aria=False).encode(across)
    heights = seen.mark_point(filled=True, size=110, opacity=1, aria=False).encode(
        across, up, color=colour
    )
    posterior = "share * datum.inside / (share * datum.inside + (1 - share) * datum.outside)"
    text = _words(
        [
            "'Height if a member: ' + format(datum.inside, '.3f')",
            "'Height if not: ' + format(datum.outside, '.3f')",
            "'Likelihood ratio: ' + format(datum.inside / datum.outside, '.3~g')",
            f"'Of such records, members are ' + format({posterior}, '.1%')",
        ],
        inside=f"densityNormal(seen, {GAP}, spread)",
        outside="densityNormal(seen, 0, 1)",
    )
    left = alt.vconcat(
        text, alt.layer(outline, line, heights).properties(width=SIDE, height=190), spacing=8
    )
    whole = f"densityNormal(datum.score, {GAP}, spread) / densityNormal(datum.score, 0, 1)"
    ratio = f"max(1e-4, min(1e4, {whole}))"
    scale = alt.Scale(type="log", domain=[1e-4, 1e4], nice=False)
    where = {
        "x": across,
        "y": alt.Y(
            "ratio:Q",
            title="likelihood ratio",
            scale=scale,
            axis=alt.Axis(format="~g", values=[10.0**power for power in range(-4, 5, 2)]),
        ),
    }
    curve = (
        alt.Chart(alt.sequence(-4, 7.02, 0.05, as_="score"))
        .transform_calculate(ratio=ratio)
        .mark_line(color=drawing.INK, strokeWidth=2.5, aria=False)
        .encode(**where, order="score:Q")
    )
    even = (
        alt.Chart(alt.Data(values=[{"score": -4, "ratio": 1}, {"score": 7, "ratio": 1}]))
        .mark_line(color=drawing.FAINT, strokeDash=[5, 4], strokeWidth=1.2, aria=False)
        .encode(**where)
    )
    point = (
        alt.Chart(alt.Data(values=[{}]))
        .transform_calculate(score="seen")
        .transform_calculate(ratio=ratio)
        .mark_point(
            filled=True, size=130, color=drawing.STYLE["members"]["color"], opacity=1, aria=False
        )
        .encode(**where)
    )
    return explore.side_by_side(
        left, alt.layer(even, curve, point).properties(width=SIDE, height=SIDE), controls
    )


def learning_chart(learned: Learned):
    """A slider for how long a model was trained; the losses of members and non-members then, and
    the success of an attack on them."""
    bars, moments, aucs = [], [], learned.auc
    for moment, step in enumerate(learned.steps):
        row = {"moment": moment, "step": int(step), "auc": float(aucs[moment])}
        for kind, members in zip(KINDS, (True, False), strict=True):
            losses = learned.loss[moment, learned.members == members]
            shares = np.histogram(np.minimum(losses, EDGES[-1] - 1e-9), EDGES)[0] / len(losses)
            bars += [
                {
                    "moment": moment,
                    "kind": kind,
                    "from": float(low),
                    "to": float(high),
                    "share": float(share),
                }
                for low, high, share in zip(EDGES[:-1], EDGES[1:], shares, strict=True)
                if share
            ]
            row |= {
                f"{kind} loss": float(losses.mean()),
                f"{kind} right": float(learned.right[moment, learned.members == members].mean()),
            }
        moments.append(row)
    last = len(moments) - 1
    control = explore.slider("moment", last // 2, 0, last, 1, f"Training (0 none, {last} longest)")
    rows = alt.NamedData("moments")
    now = alt.Chart(rows).transform_filter("datum.moment == moment")
    lines = [
        "'After ' + datum.step + ' steps of training'",
        "'Right about ' + format(datum['members right'], '.0%') + ' of members, '"
        " + format(datum['non-members right'], '.0%') + ' of others'",
        "'Mean loss ' + format(datum['members loss'], '.2f') + ' and ' + format(datum['non-members loss'], '.2f')",
        "'AUC of calling low losses members: ' + format(datum.auc, '.3f')",
    ]
    look = explore.two_kinds("kind:N", KINDS)
    histograms = (
        alt.Chart(alt.NamedData("bars"))
        .transform_filter("datum.moment == moment")
        .mark_bar(**explore.BARS)
        .encode(
            alt.X(
                "from:Q",
                bin="binned",
                title="loss in nats (last bin: and more)",
                scale=alt.Scale(domain=[0, 4]),
            ),
            x2="to:Q",
            y=alt.Y(
                "share:Q", title="share of records", stack=None, scale=alt.Scale(domain=[0, 1])
            ),
            **look,
        )
    )
    left = alt.vconcat(
        explore.words(now, lines, x=-42), histograms.properties(width=SIDE, height=190), spacing=8
    )
    across = alt.X(
        "step:Q",
        title="steps of training",
        scale=alt.Scale(type="symlog", nice=False),
        axis=alt.Axis(values=[0, 10, 100, 1000], format="d"),
    )
    kinds = (
        alt.Chart(rows)
        .transform_calculate(**{kind: f"datum['{kind} loss']" for kind in KINDS})
        .transform_fold(KINDS, as_=["kind", "loss"])
    )
    losses = kinds.mark_line(strokeWidth=2, aria=False).encode(
        across,
        alt.Y("loss:Q", title="mean loss", axis=alt.Axis(tickCount=4)),
        color=look["color"].legend(None),
        strokeDash=look["strokeDash"],
    )
    reached = (
        alt.Chart(rows)
        .mark_line(color=drawing.INK, strokeWidth=2, aria=False)
        .encode(
            across,
            alt.Y(
                "auc:Q", title="AUC", scale=alt.Scale(domain=[0.4, 1]), axis=alt.Axis(tickCount=4)
            ),
        )
    )
    half = (
        alt.Chart(alt.Data(values=[{"auc": 0.5}]))
        .mark_rule(color=drawing.FAINT, strokeDash=[5, 4], aria=False)
        .encode(y="auc:Q")
    )
    rule = now.mark_rule(color=drawing.INK, strokeWidth=1.5, aria=False).encode(across)
    right = alt.vconcat(
        alt.layer(losses, rule).properties(width=SIDE, height=110),
        alt.layer(half, reached, rule).properties(width=SIDE, height=90),
        spacing=8,
    )
    return explore.side_by_side(left, right, [control], bars=bars, moments=moments)


def learned() -> Learned:
    """A linear model of the first records of a set, half of them its members, while it learns."""
    from mia_lib import data, membership

    records = data.load(DATASET).take(np.arange(RECORDS))
    members = membership.balanced_halves(RECORDS, models=2, seed=SEED)[0]
    return learn(
        records.x.reshape(RECORDS, -1) / 127.5 - 1, records.y, members, len(records.classes), STEPS
    )


@cache
def notebook() -> dict:
    """Charts and pictures in the form of an executed notebook, as JSON, which nobody is to change."""
    trained = learned()
    shown = [
        figures.bundle_of_chart(
            roc_chart(),
            None,
            "primer-roc",
            "A threshold and its place on the ROC.",
            "Left: two bell curves over one axis of scores, that of the members further right, and a vertical line, the "
            "threshold; what lies right of it is filled. Right: true positive rate against false positive rate, a curve from "
            "the lower left to the upper right corner above the diagonal, with a dot for this threshold.",
            "Move the threshold and watch the dot. Then move the two groups apart, and back until one hides the other.",
        ),
        figures.bundle_of_chart(
            ratio_chart(),
            None,
            "primer-ratio",
            "Two heights at one place, and their ratio.",
            "Left: two bell curves over one axis of scores, and a vertical line at the score that is seen, with a dot on each "
            "curve. Right: the ratio of the two heights against the score, on a logarithmic axis, a rising straight line; it "
            "bends where the two spreads are not equal.",
            "Move the score that is seen. Then give the members a smaller spread: is a higher score always better evidence? "
            "Last, make members rare.",
        ),
        figures.bundle_of_chart(
            learning_chart(trained),
            None,
            "primer-learning",
            "A model while it learns its records.",
            "Left: histograms of the losses of members and of others. Right: above, mean loss of both against steps of "
            "training; the line of the members falls further. Below, the AUC of an attack that calls a low loss a member.",
            "Train longer. Watch how often the model is right about either kind, then the two histograms, then the AUC.",
        ),
        (
            {
                results.RESULTS: {
                    "records": {"text": str(RECORDS)},
                    "members": {"text": str(int(trained.members.sum()))},
                }
            },
            {},
        ),
    ]
    outputs = [
        {"output_type": "display_data", "data": data, "metadata": metadata}
        for data, metadata in shown
    ]
    return json.loads(
        json.dumps(
            {
                "cells": [{"cell_type": "code", "metadata": {}, "source": "", "outputs": outputs}],
                "metadata": {"mia": {"notebook": NAME}},
                "nbformat": 4,
                "nbformat_minor": 5,
            }
        )
    )
