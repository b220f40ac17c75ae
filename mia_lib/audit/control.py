"""The control of every audit: can members be told from non-members without the model?

Where they can (another year, another hospital, another way to make the files), an attack may do as well by looking at the
records alone, and its numbers say nothing about the model.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from mia_lib import store
from mia_lib.audit.inputs import AuditInputs

MOST = 4000  # records that are looked at
COLUMNS = 120  # that wider records are projected to, at random
FOLDS = 5
KINDS = 30  # classes that get a column each


def describe(x: np.ndarray, y: np.ndarray, classes: int, seed: int) -> np.ndarray:
    """What a classifier sees of records, [N, C]: their numbers, or random projections of them; simple statistics; the
    class.

    Args:
        x: in the form of `Dataset.x`. y: labels int [N]. classes: K. seed: of the projections.
    """
    flat = x.reshape(len(x), -1).astype(np.float64)
    spread = flat.std(0)
    flat = (flat - flat.mean(0)) / np.where(spread > 0, spread, 1)
    raw = x.reshape(len(x), -1, x.shape[-1] if x.ndim == 4 else 1).astype(np.float64)
    simple = np.concatenate([raw.mean(1), raw.std(1), raw.min(1), raw.max(1), (raw == raw.round()).mean(1)], 1)
    if flat.shape[1] > COLUMNS:
        chance = np.random.default_rng([29, seed])
        flat = flat @ chance.standard_normal((flat.shape[1], COLUMNS)) / np.sqrt(flat.shape[1])
    kind = np.eye(classes)[y] if classes <= KINDS else y[:, None]
    return np.concatenate([flat, simple, kind], 1)


def score_inputs(inputs: AuditInputs) -> tuple[np.ndarray, np.ndarray]:
    """What a classifier that never sees the model makes of records, each asked about by one that was not trained on it.

    The mean rank of a logistic regression and of extremely randomised trees, in `FOLDS` folds. Ranks are within a fold, for
    the folds' classifiers have different scales.

    Returns:
        rows of the pool that were looked at, int [n], and their scores [n].
    """
    pool, seed = inputs.pool, inputs.options.seed
    spec = {"pool": pool.fingerprint, "classes": len(pool.classes), "members": len(inputs.members), "seed": seed, "most": MOST}
    kept = store.cached("audit.control", spec, partial(cross_validate, pool.x, pool.y, len(pool.classes), inputs.inside, seed))
    return kept["rows"], kept["score"]


def draw_rows(inside: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Rows that a classifier is shown, ascending int [n]: all, or `MOST` of them, half of each side as far as it goes.

    The rarer side is kept whole where it is less than half of them, for a difference is seen by its records.

    Args:
        inside: bool [N], who is a member. chance: that draws.
    """
    sides = [chance.permutation(np.flatnonzero(side)) for side in (inside, ~inside)]
    rarer = min(*map(len, sides), MOST // 2)
    return np.sort(np.concatenate([side[:MOST - rarer] for side in sides]))


def cross_validate(x: np.ndarray, y: np.ndarray, classes: int, inside: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """`rows` that were looked at and their `score`; arguments as for `describe` and `draw_rows`."""
    from scipy.stats import rankdata
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = draw_rows(inside, np.random.default_rng([31, seed]))
    table, inside = describe(x[rows], y[rows], classes, seed), inside[rows]
    score = np.zeros(len(rows))
    for fitted, judged in StratifiedKFold(FOLDS, shuffle=True, random_state=seed % 2**32).split(table, inside):
        for classifier in (make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200, class_weight="balanced")),
                           ExtraTreesClassifier(40, min_samples_leaf=5, class_weight="balanced",
                                                random_state=seed % 2**32)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # one that has not converged is as good a control
                p = classifier.fit(table[fitted], inside[fitted]).predict_proba(table[judged])[:, 1]
            score[judged] += rankdata(p) / len(judged) / 2
    return {"rows": rows, "score": score}
