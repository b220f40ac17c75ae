"""Banks whose answers are made up."""

import numpy as np

from mia_lib import membership
from mia_lib.published import Bank


def toy_bank(gap=1.0, models=12, n=400, others=40, noise=0.3, seed=0):
    """Log odds of members lie `gap` higher, on records of their own difficulty; the last records are in no model."""
    rng = np.random.default_rng(seed)
    members = np.zeros((models, n + others), bool)
    members[:, :n] = membership.balanced_halves(n, models, seed)
    margin = 2 * rng.normal(size=n + others) + noise * rng.normal(size=members.shape)
    margin += gap * members
    arrays = {"margin": margin.astype(np.float16), "members": members, "correct": margin > 0}
    return Bank("toy", {}, arrays, [])
