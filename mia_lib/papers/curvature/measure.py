"""What the chapter on input loss curvature measures: that of Ravikumar et al. (2024) under a bank's models."""

from __future__ import annotations

import numpy as np

from mia_lib.errors import check_range, check_whole
from mia_lib.papers.banks import RESNET, models_of, with_models
from mia_lib.published import measurement


@with_models
def curvatures(index: range, asked: int = 10_000, views: int = 2, iterations: int = 10, h: float = 1e-3,
               **bank) -> dict[str, np.ndarray]:
    """Curvature of a record's loss in its input, and the log odds that other attacks take, under each model.

    The statistic of the released code: the mean of ``|q| h`` over `iterations` four-point differences q of losses (Eq. 11),
    four queries each. The models are those of `bank/cifar100`.

    Args:
        asked: so many records, the first ones. views: 2 for image and mirror image, 1 for the image alone.
        iterations, h: of the differences.

    Returns:
        released: the logarithm, as the released code computes the curvature, in float32 with PyTorch's own cross-entropy; a
        curvature of exactly zero is minus infinity. precise: the same in float64. true, top: log odds of the true and of the
        likeliest class. All float16 [M, N, A]. members: bool [M, N].
    """
    from mia_lib import signals
    from mia_lib.metrics.numbers import log_odds
    from mia_lib.signals import curvature

    check_range("views", check_whole("views", views, 1), 1, 2)
    models, pool = models_of(index, **bank)
    records = pool.take(np.arange(check_whole("asked", asked, 1, len(pool))))
    found: dict[str, list] = {"released": [], "precise": [], "true": [], "top": []}
    for view in [records, records.mirrored()][:views]:
        found["released"].append(curvature.of(models, view, "released_code", iterations, h, dtype="float32", warn=False,
                                              precise=False))
        found["precise"].append(curvature.of(models, view, "released_code", iterations, h, warn=False))
        found["true"].append(log_odds(signals.loss(models, view)))
        found["top"].append(log_odds(signals.least_loss(models, view)))
    with np.errstate(divide="ignore"):
        arrays = {name: np.log(np.stack(seen, -1)) if name in ("released", "precise") else np.stack(seen, -1)
                  for name, seen in found.items()}
    return {**{name: array.astype(np.float16) for name, array in arrays.items()}, "members": models.members[:, :len(records)]}


# On a smooth network, and with a large step: kinks and rounding are each processor's own.
PROBE = {"index": range(1, 3), "dataset": "fashion_mnist_20k", "architecture": "tanh_cnn:4,8,16", "records": 200, "epochs": 2,
         "batch_size": 50, "learning_rate": 0.05, "augmentation": "flip_crop:4", "precision": "float32", "asked": 30,
         "iterations": 2, "h": 0.05}
cifar100 = measurement("curvature/cifar100", probe=PROBE, chunk=2, dataset="cifar100", **RESNET)(curvatures)
