"""Measurements of the chapter on input loss curvature: that of Ravikumar et al. (2024) under a
bank's models."""

from __future__ import annotations

import math

import numpy as np

from mia_book.publishing import catalogue, measurement
from mia_book.publishing.banks import RECIPE, RESNET, evaluations, models_of, queries
from mia_lib.errors import check_choice, check_range, check_whole

# The released code steps h = 1e-3 in images divided by their spread, .2667 on average; here they run from -1 to 1.
STEP = 2 * 0.2667e-3
FLOOR = 1e-22  # that the released code adds before it takes a logarithm
SHIFTED = "flip_crop:4"  # how views of an image differ that LiRA is given for as many queries
# views that its log odds are averaged over; 80 is what ten differences ask of image and mirror image
SHIFTED_MEANS = (18, 80)
KINDS = ("random", "coreset")
ASKED_AT_ONCE = 10_000  # shifted images, whose views are asked about together


def curvatures(
    index: range,
    recipe: dict = RECIPE,
    asked: int = 20_000,
    precisely: int = 5000,
    views: int = 2,
    iterations: int = 10,
    h: float = STEP,
    outside: int = 2000,
    shifted: bool = False,
    exactly: int = 0,
) -> dict[str, np.ndarray]:
    """Curvature of a record's loss in its input, and the signals that other attacks take from the
    same models.

    The statistic of the released code: the mean of ``|q| h`` over `iterations` four-point differences q of losses (Eq. 11),
    four queries each.

    Args:
        recipe: as for `banks.models_of`.
        asked: so many records, the first ones. precisely: so many of them in float64, too. outside: so many test records.
        views: 2 for image and mirror image, 1 for the image alone.
        iterations, h: of the differences; h in the unit of inputs from -1 to 1.
        shifted: whether to ask for views of the images, as many as the curvature has queries. exactly: so many records whose
            Hessian is looked at.

    Returns:
        released: the logarithm, as the released code computes the curvature, in float32 with PyTorch's own cross-entropy, and
        with 1e-22 added as there: a curvature of exactly zero is -50.66. precise: the same in float64, [M, `precisely`, A].
        true, top: log odds of the true and of the likeliest class. All float16 [M, N, A]. entropy: the logarithm of the
        modified entropy (Song and Mittal 2021) of the image alone, float16 [M, N]. outside: log odds of the true class of test
        records, float16 [M, `outside`]; none where only some of the training records are used. members: bool [M, N].
        shifted: mean log odds of the true class over the first so many of `SHIFTED_MEANS` views, float16 [M, N, 2]. Of the
        first `exactly` records, float16 [M, `exactly`]: exact, the logarithm of the Hessian's Frobenius norm between kinks;
        own, the precise curvature with each model's own label in the place of the true one.
    """
    from dataclasses import replace

    from mia_lib import signals
    from mia_lib.attacks.baselines import modified_entropy
    from mia_lib.attacks.curvature import log_curvature
    from mia_lib.signals import curvature, log_odds
    from mia_lib.signals.views import augmented

    check_range("views", check_whole("views", views, 1), 1, 2)
    models, pool = models_of(index, recipe)
    records = pool.take(np.arange(check_whole("asked", asked, 1, len(pool))))
    few = np.arange(check_whole("precisely", precisely, 0, len(records)))

    def precise(models, of):
        if not len(of):
            return np.empty((len(models), 0))
        return log_curvature(
            curvature.traces(models, of, "released_code", iterations, h, warn=False)
        )

    by_view: dict[str, list] = {"released": [], "precise": [], "true": [], "top": []}
    for view in [records, records.mirrored()][:views]:
        by_view["released"].append(
            log_curvature(
                curvature.traces(
                    models,
                    view,
                    "released_code",
                    iterations,
                    h,
                    dtype="float32",
                    warn=False,
                    precise=False,
                )
            )
        )
        by_view["precise"].append(precise(models, view.take(few)))
        by_view["true"].append(log_odds(signals.loss(models, view)))
        by_view["top"].append(log_odds(signals.least_loss(models, view)))
    arrays = {name: np.stack(views_of, -1) for name, views_of in by_view.items()}
    entropy = np.stack(
        [-modified_entropy(p, records.y) for p in signals.probabilities(models, records)]
    )
    tested = pool.take(
        np.arange(pool.n_train, min(len(pool), pool.n_train + check_whole("outside", outside, 0)))
    )
    arrays |= {
        "entropy": np.log(entropy + FLOOR),
        "outside": log_odds(signals.loss(models, tested))
        if len(tested)
        else np.empty((len(index), 0)),
    }
    if shifted:
        views_of_all, seen = augmented(records, SHIFTED, max(SHIFTED_MEANS)), []
        for start in range(0, len(views_of_all), at_once := max(1, ASKED_AT_ONCE // len(records))):
            part = views_of_all[start : start + at_once]
            joined = replace(
                records,
                x=np.concatenate([view.x for view in part]),
                y=np.tile(records.y, len(part)),
            )
            seen += np.split(log_odds(signals.loss(models, joined)), len(part), axis=1)
        arrays["shifted"] = np.stack([np.mean(seen[:count], 0) for count in SHIFTED_MEANS], -1)
    if exactly:
        whole = records.take(np.arange(check_whole("exactly", exactly, 1, len(records))))
        arrays["exact"] = log_curvature(curvature.between_kinks(models, whole)[1])
        labels = [
            signals.logits(models.part([row]), whole)[0].argmax(-1) for row in range(len(index))
        ]
        arrays["own"] = np.concatenate(
            [precise(models.part([row]), replace(whole, y=own)) for row, own in enumerate(labels)]
        )
    return {
        **{name: array.astype(np.float16) for name, array in arrays.items()},
        "members": models.members[:, : len(records)],
    }


def everywhere(
    index: range, recipe: dict = RECIPE, iterations: int = 4, h: float = STEP
) -> dict[str, np.ndarray]:
    """Curvature of all training records under few models, by which they are ranked; arguments as for `curvatures`.

    Returns:
        log_curvature: as `released`, float16 [M, N]; members: bool [M, N].
    """
    from mia_lib.attacks.curvature import log_curvature
    from mia_lib.signals import curvature

    models, pool = models_of(index, recipe)
    records = pool.take(np.arange(pool.n_train))
    traces = curvature.traces(
        models, records, "released_code", iterations, h, dtype="float32", warn=False, precise=False
    )
    return {
        "log_curvature": log_curvature(traces).astype(np.float16),
        "members": models.members[:, : len(records)],
    }


def sized(
    index: range,
    recipe: dict = RECIPE,
    *,
    kind: str,
    size: int,
    steps: int = 1000,
    asked: int = 4000,
    iterations: int = 10,
    h: float = STEP,
    ranked_by: int = 8,
) -> dict[str, np.ndarray]:
    """Targets of Figures 6 and 7, trained on other sets than halves, by the recipe of the bank that attacks them. Where its
    epochs make fewer steps than `steps` they are trained for as many.

    Args:
        kind: "random", drawn anew for each; or "coreset", the records of lowest mean curvature under the first `ranked_by`
            models of the bank that were not trained on them.
        size: training records. asked, iterations, h: as for `curvatures`, of the image alone.

    Returns:
        released, true, top: as of `curvatures`, float16 [M, N]; members: bool [M, N]; accuracy: on the training set, [M].
    """
    from dataclasses import replace

    from mia_lib import signals, training
    from mia_lib.attacks.curvature import log_curvature
    from mia_lib.signals import curvature, log_odds

    check_choice("kind", kind, KINDS)
    models, pool = models_of(range(2), recipe)
    check_whole("size", size, 10, pool.n_train - 10)
    members = np.zeros((index.stop, len(pool)), bool)
    if kind == "coreset":
        ranked = catalogue()["curvature/everywhere"](ranked_by, **recipe)
        difficulty = np.average(ranked.log_curvature.astype(np.float64), 0, ~ranked.members)
        members[:, np.argsort(difficulty, kind="stable")[:size]] = True
    else:
        for t, row in enumerate(members):
            row[np.random.default_rng([23, size, t]).permutation(pool.n_train)[:size]] = True
    usual = models.config
    config = replace(
        usual,
        epochs=epochs_of_size(usual.epochs, usual.batch_size, size, steps),
        batch_size=min(usual.batch_size, size),
        seed=usual.seed + 11,
    )
    targets = training.train(pool, members, config, label=f"targets, {kind}, {size}").part(index)
    records = pool.take(np.arange(check_whole("asked", asked, 1, len(pool))))
    released = curvature.traces(
        targets, records, "released_code", iterations, h, dtype="float32", warn=False, precise=False
    )
    arrays = {
        "released": log_curvature(released),
        "true": log_odds(signals.loss(targets, records)),
        "top": log_odds(signals.least_loss(targets, records)),
    }
    inside = pool.take(np.flatnonzero(members.any(0)))
    right = signals.correctness(targets, inside)
    return {
        **{name: array.astype(np.float16) for name, array in arrays.items()},
        "members": targets.members[:, : len(records)],
        "accuracy": np.average(right, 1, targets.members[:, members.any(0)]).astype(np.float32),
    }


def epochs_of_size(epochs: int, batch_size: int, size: int, steps: int) -> int:
    """Epochs of training on `size` records: the recipe's, or as many as make so many steps."""
    return max(epochs, math.ceil(steps / math.ceil(size / batch_size)))


# On a smooth network, and with a large step: kinks and rounding are each processor's own.
PROBE = {
    "index": range(1, 3),
    "dataset": "fashion_mnist_20k",
    "architecture": "tanh_cnn:4,8,16",
    "records": 200,
    "epochs": 2,
    "batch_size": 50,
    "learning_rate": 0.05,
    "augmentation": "flip_crop:4",
    "precision": "float32",
    "asked": 30,
    "precisely": 20,
    "iterations": 2,
    "h": 0.05,
}
SMALL = {"asked": 4000, "precisely": 2000, "outside": 0, "shifted": True, "exactly": 1000}
SMALL_PROBE = PROBE | {"augmentation": "none", "exactly": 5}
SETS_PROBE = {
    name: value for name, value in SMALL_PROBE.items() if name not in ("precisely", "exactly")
}
QUERIES_PROBE = {
    name: value
    for name, value in SMALL_PROBE.items()
    if name not in ("asked", "precisely", "exactly", "iterations", "h")
} | {"viewed": 30}
RANKING_PROBE = {name: value for name, value in SETS_PROBE.items() if name != "asked"}


def _ranking_cost(parameters) -> float:
    return evaluations(parameters, 2 * parameters["iterations"] * (parameters["records"] or 50_000))


def _sized_cost(parameters) -> float:
    """As `evaluations`, of training on `size` records; the ranking is a measurement of its own."""
    names = ("epochs", "batch_size", "size", "steps")
    trained = parameters["size"] * epochs_of_size(*(parameters[name] for name in names))
    return 3 * trained + 2 * parameters["iterations"] * parameters["asked"]


def _query_cost(parameters) -> float:
    """Cost in evaluations of a model: one in float64 takes twice as long as one in float32, and the
    trace of a Hessian as long as 140."""
    each = 2 * parameters["views"] * parameters["iterations"]
    return evaluations(
        parameters,
        each * (parameters["asked"] + 2 * parameters["precisely"]) + 140 * parameters["exactly"],
    )


cifar100 = measurement(
    "curvature/cifar100",
    probe=PROBE,
    block=16,
    chunk=2,
    cost=_query_cost,
    dataset="cifar100",
    **RESNET,
)(curvatures)
cifar10 = measurement(
    "curvature/cifar10",
    probe=PROBE,
    block=16,
    chunk=2,
    cost=_query_cost,
    dataset="cifar10",
    **RESNET,
)(curvatures)
cifar10_small = measurement(
    "curvature/cifar10-small",
    probe=SMALL_PROBE,
    chunk=2,
    cost=_query_cost,
    dataset="cifar10",
    weights="bank/cifar10-small-weights",
    **SMALL,
)(curvatures)
# The references of Figures 6 and 7: the image alone, in float32.
cifar100_small = measurement(
    "curvature/cifar100-small",
    probe=SMALL_PROBE,
    chunk=2,
    cost=_query_cost,
    dataset="cifar100",
    weights="bank/cifar100-small-weights",
    asked=4000,
    precisely=0,
    outside=0,
    views=1,
)(curvatures)
# Networks that know their 2,000 members by heart, as the paper's do; flips in training, so that the mirror image is a view.
BY_HEART = {
    "dataset": "cifar100",
    "architecture": "strided_cnn:8,16,64",
    "records": 4000,
    "epochs": 60,
    "batch_size": 64,
    "learning_rate": 0.05,
    "weight_decay": 1e-4,
    "schedule": "cosine",
    "augmentation": "flip",
}
memorised = measurement(
    "curvature/memorised",
    probe=SMALL_PROBE,
    chunk=4,
    cost=_query_cost,
    **BY_HEART,
    **SMALL | {"precisely": 4000},
)(curvatures)
# The same of networks as wide as it takes to know the paper's 25,000 members.
WIDE_BY_HEART = {"records": None, "architecture": "strided_cnn:16,32,256", "precisely": 2000}
# The 18 views of LiRA's own paper, each by itself.
cifar10_small_queries = measurement(
    "curvature/cifar10-small-queries",
    probe=QUERIES_PROBE,
    dataset="cifar10",
    weights="bank/cifar10-small-weights",
    viewed=4000,
)(queries)
memorised_queries = measurement(
    "curvature/memorised-queries", probe=QUERIES_PROBE, viewed=4000, **BY_HEART
)(queries)
ranking = measurement(
    "curvature/everywhere",
    probe=RANKING_PROBE,
    chunk=2,
    cost=_ranking_cost,
    dataset="cifar100",
    weights="bank/cifar100-small-weights",
)(everywhere)
# Of the probe's records number 26 and 27 in rank are far apart, so that no processor's rounding changes who is in the set.
SIZES_PROBE = SETS_PROBE | {"kind": "coreset", "size": 26, "steps": 4, "ranked_by": 2}
# As wide as `WIDE_BY_HEART`, whose models attack them: every size for the same epochs.
memorised_sizes = measurement(
    "curvature/memorised-sizes",
    probe=SIZES_PROBE,
    block=4,
    chunk=2,
    cost=_sized_cost,
    **BY_HEART | {"records": None, "architecture": WIDE_BY_HEART["architecture"], "steps": 1},
)(sized)
sizes = measurement(
    "curvature/sizes",
    probe=SIZES_PROBE,
    block=8,
    chunk=2,
    cost=_sized_cost,
    dataset="cifar100",
    weights="bank/cifar100-small-weights",
)(sized)
