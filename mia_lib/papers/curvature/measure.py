"""What the chapter on input loss curvature measures: that of Ravikumar et al. (2024) under a bank's models."""

from __future__ import annotations

import numpy as np

from mia_lib.errors import check_range, check_whole
from mia_lib.papers.banks import RESNET, models_of, with_models
from mia_lib.published import measurement

# The released code steps h = 1e-3 in images divided by their spread, .2667 on average; here they run from -1 to 1.
STEP = 2 * 0.2667e-3


@with_models
def curvatures(index: range, asked: int = 20_000, precisely: int = 5000, views: int = 2, iterations: int = 10, h: float = STEP,
               outside: int = 2000, **bank) -> dict[str, np.ndarray]:
    """Curvature of a record's loss in its input, and what other attacks take of the same models.

    The statistic of the released code: the mean of ``|q| h`` over `iterations` four-point differences q of losses (Eq. 11),
    four queries each.

    Args:
        asked: so many records, the first ones. precisely: so many of them in float64, too. outside: so many test records.
        views: 2 for image and mirror image, 1 for the image alone.
        iterations, h: of the differences; h in the unit of inputs from -1 to 1.

    Returns:
        released: the logarithm, as the released code computes the curvature, in float32 with PyTorch's own cross-entropy, and
        with 1e-22 added as there: a curvature of exactly zero is -50.66. precise: the same in float64, [M, `precisely`, A].
        true, top: log odds of the true and of the likeliest class. All float16 [M, N, A]. entropy: the logarithm of the
        modified entropy (Song and Mittal 2021) of the image alone, float16 [M, N]. outside: log odds of the true class of test
        records, float16 [M, `outside`]; none where only some of the training records are used. members: bool [M, N].
    """
    from mia_lib import signals
    from mia_lib.attacks.baselines import modified_entropy
    from mia_lib.attacks.curvature import log_curvature
    from mia_lib.signals import curvature
    from mia_lib.signals.given import log_odds

    check_range("views", check_whole("views", views, 1), 1, 2)
    models, pool = models_of(index, **bank)
    records = pool.take(np.arange(check_whole("asked", asked, 1, len(pool))))
    few = np.arange(check_whole("precisely", precisely, 1, len(records)))
    found: dict[str, list] = {"released": [], "precise": [], "true": [], "top": []}
    for view in [records, records.mirrored()][:views]:
        for name, of, dtype in (("released", view, "float32"), ("precise", view.take(few), "float64")):
            found[name].append(log_curvature(curvature.of(models, of, "released_code", iterations, h, dtype=dtype, warn=False,
                                                          precise=name == "precise")))
        found["true"].append(log_odds(signals.loss(models, view)))
        found["top"].append(log_odds(signals.least_loss(models, view)))
    arrays = {name: np.stack(seen, -1) for name, seen in found.items()}
    entropy = np.stack([-modified_entropy(p, records.y) for p in signals.probabilities(models, records)])
    tested = pool.take(np.arange(pool.n_train, min(len(pool), pool.n_train + check_whole("outside", outside, 0))))
    arrays |= {"entropy": np.log(entropy + 1e-22),
               "outside": log_odds(signals.loss(models, tested)) if len(tested) else np.empty((len(index), 0))}
    return {**{name: array.astype(np.float16) for name, array in arrays.items()}, "members": models.members[:, :len(records)]}


# On a smooth network, and with a large step: kinks and rounding are each processor's own.
PROBE = {"index": range(1, 3), "dataset": "fashion_mnist_20k", "architecture": "tanh_cnn:4,8,16", "records": 200, "epochs": 2,
         "batch_size": 50, "learning_rate": 0.05, "augmentation": "flip_crop:4", "precision": "float32", "asked": 30,
         "precisely": 20, "iterations": 2, "h": 0.05}
cifar100 = measurement("curvature/cifar100", probe=PROBE, block=16, chunk=2, dataset="cifar100", **RESNET)(curvatures)
cifar10 = measurement("curvature/cifar10", probe=PROBE, block=16, chunk=2, dataset="cifar10", **RESNET)(curvatures)
