"""The page for whoever starts (`book/primer.md`): its three charts.

They belong to no chapter and to no preset. Each build makes them, in seconds, from normal laws and from records that the
repository holds, and hands them on as an executed notebook would.
"""

from __future__ import annotations

import json
from functools import cache

import numpy as np

from mia_lib.evidence import plotting, primer, tables

PAGE, NAME = "book/primer.md", "primer"
DATASET, RECORDS, SEED = "fashion_mnist_20k", 400, 0
STEPS = (0, *(int(step) for step in np.unique(np.geomspace(1, 3000, 28).round())))


def learned() -> primer.Learned:
    """A linear model of the first records of a set, half of them its members, while it learns."""
    from mia_lib import data, membership

    records = data.load(DATASET).take(np.arange(RECORDS))
    members = membership.balanced_halves(RECORDS, models=2, seed=SEED)[0]
    return primer.learn(records.x.reshape(RECORDS, -1) / 127.5 - 1, records.y, members, len(records.classes), STEPS)


@cache
def notebook() -> dict:
    """Charts and pictures in the form of an executed notebook, as JSON, which nobody is to change."""
    trained = learned()
    shown = [
        plotting.bundle_of_chart(
            primer.roc_chart(), None, "primer-roc", "A threshold and its place on the ROC.",
            "Left: two bell curves over one axis of scores, that of the members further right, and a vertical line, the "
            "threshold; what lies right of it is filled. Right: true positive rate against false positive rate, a curve from "
            "the lower left to the upper right corner above the diagonal, with a dot for this threshold.",
            "Move the threshold and watch the dot. Then move the two groups apart, and back until one hides the other."),
        plotting.bundle_of_chart(
            primer.ratio_chart(), None, "primer-ratio", "Two heights at one place, and their ratio.",
            "Left: two bell curves over one axis of scores, and a vertical line at the score that is seen, with a dot on each "
            "curve. Right: the ratio of the two heights against the score, on a logarithmic axis, a rising straight line; it "
            "bends where the two spreads are not equal.",
            "Move the score that is seen. Then give the members a smaller spread: is a higher score always better evidence? "
            "Last, make members rare."),
        plotting.bundle_of_chart(
            primer.learning_chart(trained), None, "primer-learning", "A model while it learns its records.",
            "Left: histograms of the losses of members and of others. Right: above, mean loss of both against steps of "
            "training; the line of the members falls further. Below, the AUC of an attack that calls a low loss a member.",
            "Train longer. Watch how often the model is right about either kind, then the two histograms, then the AUC."),
        ({tables.RESULTS: {"records": {"text": str(RECORDS)}, "members": {"text": str(int(trained.members.sum()))}}}, {}),
    ]
    outputs = [{"output_type": "display_data", "data": data, "metadata": metadata} for data, metadata in shown]
    return json.loads(json.dumps({"cells": [{"cell_type": "code", "metadata": {}, "source": "", "outputs": outputs}],
                                  "metadata": {"mia": {"notebook": NAME}}, "nbformat": 4, "nbformat_minor": 5}))
