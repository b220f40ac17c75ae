"""Measurements of the chapter on Bayes-optimal attacks: the models of Sablayrolles et al. (2019),
Tables 1 to 3."""

from __future__ import annotations

import numpy as np

from mia_book.publishing import measurement
from mia_book.publishing.banks import PROBE, RECIPE, answers, config_of, in_processes
from mia_lib.errors import MiaError, check_range

OTHER_CLASSES = "other classes"
C_GRID = tuple(10.0**k for k in range(-2, 5))
VALIDATION_SPLITS = 40  # of the same pool, on which the penalty is chosen

# Table 2: 15,000 members of 30,000 records of CIFAR-10, two convolutions and two layers with tanh, a rate of .001. The
# paper trains for 50 epochs and names no optimiser; with Adam the network knows all its members after 25.
TANH = {
    "dataset": "cifar10",
    "architecture": "tanh_cnn:16,32,128",
    "records": 30_000,
    "epochs": 25,
    "batch_size": 64,
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "weight_decay": 0.0,
    "schedule": "constant",
    "outputs": 2000,
}
TANH_PROBE = {
    "index": range(1, 3),
    "dataset": "fashion_mnist_20k",
    "architecture": "tanh_cnn:4,8,16",
    "records": 200,
    "epochs": 2,
    "outputs": 50,
}
# Table 3: one half of a set, without augmentation and with two kinds; CIFAR-100 and small networks in the place of ImageNet.
HALVES = {"dataset": "cifar100", "asked": 10_000}
HALVES_PROBE = {**PROBE, "augmentation": "flip_resized_crop:0.3", "asked": 150}
# Table 1: truck and ship, and the networks, trained on other data, whose features of them it has.
EXTRACTOR = {
    "dataset": "cifar10",
    "classes": [9, 8],
    "source": "cifar100",
    "architecture": "batchnorm_cnn:64,128,256",
    "epochs": 10,
    "learning_rate": 1e-3,
    "augmentation": "flip_crop:4",
    "seed": 0,
}
EXTRACTOR_PROBE = {
    "dataset": "fashion_mnist_20k",
    "classes": [5, 7],
    "source": OTHER_CLASSES,
    "architecture": "tanh_cnn:2,4,8",
    "epochs": 1,
    "augmentation": "none",
}


def features(index: range, recipe: dict = EXTRACTOR) -> dict[str, np.ndarray]:
    """Features that networks trained on other data give the records of two classes: the activations
    before the last layer.

    Args:
        index: of the networks.
        recipe: a value for each name of `EXTRACTOR`. dataset, classes: whose records are asked about, the second class being
            the positive one. source: set that the networks are trained on, all its records, by Adam; or `OTHER_CLASSES` of
            the same set. augmentation: of images; rows of a table are taken as they are.

    Returns:
        features: float16 [len(index), N, F]; labels: bool [len(index), N].
    """
    from mia_lib import data, signals, training

    dataset, classes, source = recipe["dataset"], recipe["classes"], recipe["source"]
    pool = data.load(dataset)
    if (
        len(classes) != 2
        or len(set(classes)) != 2
        or not set(classes) <= set(range(len(pool.classes)))
    ):
        raise MiaError(
            f"classes = {list(classes)}: two different numbers from 0 to {len(pool.classes) - 1} are needed, of "
            f"{', '.join(f'{k} {name}' for k, name in enumerate(pool.classes))}."
        )
    rest = [label for label in range(len(pool.classes)) if label not in classes]
    if source == OTHER_CLASSES and len(rest) < 2:
        raise MiaError(
            f"source = {source!r}: {dataset} has {len(pool.classes)} classes, so {len(rest)} besides the two of "
            "`classes`, and two are needed. Name a data set."
        )
    known = pool.of_classes(rest) if source == OTHER_CLASSES else data.load(source)
    config = config_of(recipe if known.is_image else recipe | {"augmentation": "none"})
    extractors = training.train(
        known, np.ones((index.stop, len(known)), bool), config, label="feature extractor"
    ).part(index)
    asked = pool.of_classes(classes)
    return {
        "features": np.stack(
            [signals.features(extractors.model(row), asked.x) for row in range(len(index))]
        ).astype(np.float16),
        "labels": np.tile(asked.y.astype(bool), (len(index), 1)),
    }


def design(extracted: np.ndarray) -> np.ndarray:
    """Rows scaled to length one, with a constant column: [N, F] -> float64 [N, F + 1]."""
    extracted = np.asarray(extracted, np.float64)
    length = np.linalg.norm(extracted, axis=1, keepdims=True)
    return np.hstack([extracted / np.maximum(length, 1e-12), np.ones((len(extracted), 1))])


def logistic(x: np.ndarray, y: np.ndarray, c: float) -> np.ndarray:
    """Parameters [P] that minimise C sum(loss) + ||theta||^2 / 2, to a tight tolerance.

    Args:
        x: [n, P], with a constant column. y: bool [n]. c: inverse strength of the penalty.
    """
    import warnings

    from sklearn.linear_model import LogisticRegression

    solver = LogisticRegression(
        C=c, fit_intercept=False, tol=1e-8, max_iter=5000, solver="newton-cholesky"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a solution that did not converge must not pass for one
        return solver.fit(x, y).coef_[0]


def three_way_split(
    records: int, n: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Indices of members, non-members, records of the reference model (n / 2 each), and all that are left.

    Raises:
        MiaError: an odd n, or fewer than 1.5 n records.
    """
    if n % 2 or 3 * n // 2 > records:
        raise MiaError(
            f"n = {n}: it must be even, and members, non-members and the reference model take 1.5 n = "
            f"{3 * n // 2} records of the {records} there are."
        )
    order = np.random.default_rng([n, seed]).permutation(records)
    half = n // 2
    return order[:half], order[half:n], order[n : n + half], order[n + half :]


def choose_c(x: np.ndarray, y: np.ndarray, n: int) -> float:
    """The C of `C_GRID` with the best accuracy on records left out, over splits of their own.

    It serves the model's accuracy; the attacks have no say.
    """
    accuracy = np.zeros(len(C_GRID))
    for split in range(VALIDATION_SPLITS):
        member_rows, other_rows, _, _ = three_way_split(len(y), n, 10_000_000 + split)
        for k, c in enumerate(C_GRID):
            accuracy[k] += np.mean(
                (x[other_rows] @ logistic(x[member_rows], y[member_rows], c) > 0) == y[other_rows]
            )
    return C_GRID[int(np.argmax(accuracy))]


def logistic_regressions(
    index: range, n: int, recipe: dict = EXTRACTOR, c: float | None = None
) -> dict[str, np.ndarray]:
    """The targets of Table 1 and their references, on splits of one pool: `three_way_split(N, n, seed + index)`.

    Args:
        index: of the splits. n: n / 2 members, n / 2 non-members, n / 2 further records for the reference.
        recipe: as for `features`; its seed is that of the splits, too. c: inverse strength of the penalty; chosen on other
            splits when None.

    Returns:
        theta, theta0: parameters of target and reference, float32 [len(index), F + 1]; c: [len(index)].
    """
    check_range("n", n, 40)
    known = table1_features(1, **recipe)
    x, y = design(known.features[0]), known.labels[0]
    strength = choose_c(x, y, n) if c is None else c
    theta, theta0 = [], []
    for split in index:
        member_rows, _, reference_rows, _ = three_way_split(len(y), n, recipe["seed"] + split)
        theta.append(logistic(x[member_rows], y[member_rows], strength))
        theta0.append(logistic(x[reference_rows], y[reference_rows], strength))
    return {
        "theta": np.array(theta, np.float32),
        "theta0": np.array(theta0, np.float32),
        "c": np.full(len(index), float(strength)),
    }


def shadow_models(
    index: range, recipe: dict = RECIPE, outputs: int = 0, shadows: int = 30
) -> dict[str, np.ndarray]:
    """The attack of Shokri et al. (2017) on the first models of the complementary pairs with these numbers.

    Args:
        index: of the pairs. recipe: as for `banks.models_of`.
        outputs: records whose outputs `table2` has; these are judged, and teach the attack.
        shadows: models of other pairs that serve as shadow models.

    Returns:
        score: probability of membership, float32 [len(index), outputs]; members: bool [len(index), outputs].
    """
    from scipy.special import softmax

    from mia_lib import data, membership
    from mia_lib.attacks import baselines

    models = max(index.stop * 2, shadows + 2)
    answered = table2(models + models % 2, outputs=outputs, **recipe)
    labels, members = data.load(recipe["dataset"]).y[:outputs], answered.members[:, :outputs]
    probabilities = softmax(answered.logits.astype(np.float64), -1)
    tasks = []
    for pair in index:
        others = membership.references_of(2 * pair, len(answered.members))[:shadows]
        tasks.append(
            (probabilities[2 * pair], labels, probabilities[others], labels, members[others])
        )
    scores = np.stack(in_processes(baselines.shadow_models, tasks, "shadow-model attacks"))
    return {"score": scores.astype(np.float32), "members": members[[2 * pair for pair in index]]}


table1_features = measurement(
    "bayes/table1-features", probe={"index": range(1), **EXTRACTOR_PROBE}
)(features)
table1 = measurement(
    "bayes/table1",
    probe={"index": range(1, 3), "n": 100, **EXTRACTOR_PROBE, "c": 10.0},
    block=100,
    chunk=100,
)(logistic_regressions)
table2 = measurement("bayes/table2", probe=TANH_PROBE, **TANH)(answers)
table2_shadow = measurement(
    "bayes/table2-shadow",
    probe=TANH_PROBE | {"index": range(1, 3), "records": 400, "outputs": 400, "shadows": 4},
    block=8,
    **TANH,
)(shadow_models)
table3 = measurement("bayes/table3", probe=HALVES_PROBE, **HALVES)(answers)
