"""Results of the chapter that audits: tidy frames of what was measured. A row is an attack, a metric and a model."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mia_lib import audit, membership, signals
from mia_lib.attacks import baselines, bayes, calibration
from mia_lib.audit import inputs
from mia_lib.metrics import by_repetition, by_target
from mia_lib.published import Bank

METRICS = ("auc", "tpr_at_fpr=0.01")
NOISE = ("without", "private")  # of `measure.twins`


def forests(held: Bank) -> pd.DataFrame:
    """Study "forests": the loss and the accuracy on non-members by least records of a `leaf`; "no model" is the control."""
    leaves = held.parameters["leaves"] or [1, 5, 20]
    frames = [by_target({"no model": held.blind}, held.members, METRICS, study="forests", leaf=leaves[0])]
    for place, leaf in enumerate(leaves):
        frames += [by_target({"loss": bayes.malt(held.loss[:, place])}, held.members, METRICS, study="forests", leaf=leaf),
                   by_repetition({"model": {"accuracy": held.right[:, place]}}, study="forests", leaf=leaf)]
    return pd.concat(frames, ignore_index=True)


def twins(held: Bank) -> pd.DataFrame:
    """Study "twins": the loss and the accuracy on non-members by `noise`, one of `NOISE`."""
    frames = []
    for place, noise in enumerate(NOISE):
        frames += [by_target({"loss": bayes.malt(held.loss[:, place])}, held.members, METRICS, study="twins", noise=noise),
                   by_repetition({"model": {"accuracy": held.right[:, place]}}, study="twins", noise=noise)]
    return pd.concat(frames, ignore_index=True)


def tested(held: Bank, kind: str) -> pd.DataFrame:
    """Study "tested": the share of audits that raise an alarm, by `data`, the kind of model, and `leak`, none or planted."""
    return pd.concat([by_repetition({"audit": {"alarms": held.alarms[:, place]}}, study="tested", data=kind, leak=leak)
                      for place, leak in enumerate(("none", "planted"))], ignore_index=True)


def references(report: audit.Report) -> pd.DataFrame:
    """Study "references": attacks on each of an audit's own references by the others but its complement."""
    models, pool = inputs.references(report.inputs, report.plan.references), report.inputs.pool
    loss, odds = (signal(models, pool).astype(float) for signal in (signals.loss, signals.logit_scaled_confidence))
    scores = {"MALT": bayes.malt(loss), "calibrated loss": np.empty(loss.shape), "LiRA": np.empty(loss.shape)}
    members = models.members
    for target in range(len(models)):
        others = membership.references_of(target, len(models))
        scores["calibrated loss"][target] = calibration.calibrate(-loss[target], -loss[others], members[others])
        scores["LiRA"][target] = baselines.lira_online(odds[target], odds[others], members[others], True)
    return by_target(scores, members, METRICS, study="references")
