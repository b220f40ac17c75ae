"""Networks of one recipe: small enough for every recipe on two cores, to see which part of it makes an attack strong."""

from __future__ import annotations

import numpy as np

from mia_book.publishing import measurement
from mia_book.publishing.banks import PROBE, RECIPE, models_of
from mia_lib.errors import check_whole


@measurement(
    "compare/recipes",
    edition=2,
    block=16,
    probe={**PROBE, "viewed": 50, "unused": 20},
    dataset="cifar10",
    batch_size=64,
    learning_rate=0.1,
    architecture="batchnorm_cnn:8,16,32",
    records=2000,
    unused=1000,
)
def recipes(index: range, recipe: dict = RECIPE, viewed: int = 1000) -> dict[str, np.ndarray]:
    """Log odds of models on their first training records, each asked about in 18 views, and on
    unused records.

    Args:
        recipe: as for `banks.models_of`. viewed: number of records.

    Returns:
        queries: log odds of the true class of the views of `signals.views.shifted`, the image, its mirror image and shifts of
        both, float16 [M, `viewed`, 18]; outside: log odds of the `unused` records, float16 [M, `unused`]; correct: of both,
        bool [M, `viewed` + `unused`]; members: bool [M, `viewed`].
    """
    from mia_lib import signals
    from mia_lib.signals.views import shifted

    models, pool = models_of(index, recipe)
    records = pool.take(np.arange(check_whole("viewed", viewed, 1, pool.n_train)))
    rest = pool.take(np.arange(pool.n_train, len(pool)))
    seen = np.stack(
        [signals.logit_scaled_confidence(models, view) for view in shifted(records)], -1
    )
    right = [signals.correctness(models, part) for part in (records, rest)]
    return {
        "queries": seen.astype(np.float16),
        "outside": signals.logit_scaled_confidence(models, rest).astype(np.float16),
        "correct": np.concatenate(right, 1),
        "members": models.members[:, :viewed],
    }
