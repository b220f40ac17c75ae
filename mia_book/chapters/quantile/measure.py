"""Measurements of the chapter on quantile regression: regressions of a target's log odds (Bertran
et al. 2023), and rivals that are trained on the regression's own records.

A bank's models are the targets. Each was trained on half of a pool; the regression learns from the other half, and the records
that follow the pool were used by nobody. PyTorch and CatBoost are imported within.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mia_book.publishing import catalogue, measurement
from mia_book.publishing.banks import RECIPE, TINY, in_processes, models_of
from mia_lib.errors import MiaError, check_choice, check_whole
from mia_lib.published import Bank

GRAIN = 64  # log odds, means and log spreads are kept to a 64th, a tenth of the narrowest spread or less
# see `regressions`
REGRESSION = {
    "backbone": "batchnorm_cnn:24,48,96",
    "image_size": None,
    "hidden": None,
    "epochs": 10,
    "batch_size": 128,
    "learning_rate": 2e-3,
    "weight_decay": 1e-3,
}
# see `trees`
TREES = {
    "dataset": "adult",
    "records": 10_000,
    "unused": 4000,
    "iterations": 1000,
    "depth": 6,
    "seed": 0,
}


@dataclass(frozen=True)
class Split:
    """Numbers of a target's records, int.

    Attributes:
        judged: some of its members, then the records after the pool, which no model was trained on. is_member: bool, which of
            `judged` are members. holdout: of the pool's other half, the records that a regression is not fitted to; they
            choose its epoch, and thresholds can be set on them. fitted: the rest of that half.
    """

    judged: np.ndarray
    is_member: np.ndarray
    holdout: np.ndarray
    fitted: np.ndarray


def split(
    members: np.ndarray, pool: int, number: int, judged: int, held: int, seed: int = 0
) -> Split:
    """The `Split` of a target's records, by how they are used.

    Args:
        members: of the target, bool [N]. number: of the target.
        pool: number of records that models are trained on, the first ones.
        judged: so many of its members, the first ones, at most. held: records of the other half that are set aside.
    """
    member_rows = np.flatnonzero(members[:pool])[: min(judged, pool // 2)]
    other = np.random.default_rng([29, seed, number]).permutation(np.flatnonzero(~members[:pool]))
    check_whole("held", held, 2, len(other) - 20)
    rows = np.r_[member_rows, pool : len(members)]
    return Split(rows, rows < pool, np.sort(other[:held]), np.sort(other[held:]))


def coarse(values: np.ndarray) -> np.ndarray:
    """Values rounded to multiples of 1 / `GRAIN`, float16."""
    return (np.round(np.asarray(values, np.float64) * GRAIN) / GRAIN).astype(np.float16)


def targets_of(index: range, bank: str, **parameters) -> tuple[list[int], Bank]:
    """Numbers of a bank's attacked models, one of each complementary pair, and their arrays."""
    numbers = range(2 * index.start, 2 * index.stop)
    both = catalogue()[check_choice("bank", bank, catalogue())](index=numbers, **parameters)
    return list(numbers[::2]), replace(
        both, arrays={name: array[::2] for name, array in both.arrays.items()}
    )


def regressions(
    index: range,
    bank: str,
    recipe: dict | None = None,
    label: bool = True,
    mirrored: bool = True,
    public: int | None = None,
    judged: int = 10_000,
    held: int = 2500,
    regression: dict = REGRESSION,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Mean and spread of a model's log odds given the record, learned from images that did not train it.

    The paper's split: a target is trained on half of the training records, a Gaussian regression is fitted to its log odds on
    the other half, non-members are the test records.

    Args:
        index: of the targets; number k is model 2k of the bank.
        bank: a measurement whose models are the targets, such as "bank/cifar10-small". recipe: its parameters other than the
            usual.
        label: whether the regression is told the record's label, q(x, y).
        mirrored: whether it is fitted to mirror images as well, with the log odds of the image itself.
        public: so many of the records to fit to; all that are not held when None. judged, held: as for `split`.
        regression: a value for each name of `REGRESSION`, as in `attacks.quantile.networks.NetworkConfig`; hidden [128] when
            None.

    Returns:
        mean, and log_spread, its logarithm: float16 [T, n] of the judged records and then the held ones, as `split` has them.
    """
    from mia_lib import data
    from mia_lib.attacks.quantile import networks
    from mia_lib.training import devices

    check_whole("seed", seed, 0)
    if missing := networks.missing_dependency(
        regression["backbone"]
    ):  # before the bank is measured
        raise MiaError(missing)
    numbers, targets = targets_of(index, bank, **(recipe or {}))
    records, pool = data.load(targets.parameters["dataset"]), targets.parameters["records"]
    pool = records.n_train if pool is None else pool
    records = records.take(np.arange(targets.margin.shape[1]))
    hidden = (128,) if regression["hidden"] is None else tuple(regression["hidden"])
    config = networks.NetworkConfig(**{**regression, "hidden": hidden})
    views = [records, *([records.mirrored()] if mirrored else [])]
    tasks = []
    for number, margin, members in zip(numbers, targets.margin, targets.members, strict=True):
        part = split(members, pool, number, judged, held, seed)
        rows = part.fitted[:public]
        fitted = (
            np.concatenate([view.x[rows] for view in views]),
            np.tile(margin[rows], len(views)),
            np.tile(records.y[rows], len(views)),
        )
        asked = np.r_[part.judged, part.holdout]
        tasks.append(
            (
                replace(config, seed=10_000 * seed + number),
                fitted,
                (records.x[asked], margin[asked], records.y[asked]),
                len(part.holdout),
                len(records.classes) if label else None,
            )
        )
    if devices.is_card(devices.pick()):
        predictions = [_fit_and_predict(*task) for task in tasks]
    else:
        predictions = in_processes(_fit_and_predict, tasks, "quantile regressions")
    return {name: np.stack([one[name] for one in predictions]) for name in predictions[0]}


def _fit_and_predict(
    config, fitted: tuple, asked: tuple, holdout_size: int, classes: int | None
) -> dict[str, np.ndarray]:
    """Mean and log spread of the records `asked` (x, margin, labels), by a regression fitted to
    `fitted`; the last `holdout_size` of `asked` choose its epoch."""
    from mia_lib.attacks.quantile import GaussianQuantile

    last = slice(len(asked[0]) - holdout_size, None)
    (x, margin, labels), chosen = (
        fitted,
        tuple(array[last] for array in asked[: 2 if classes is None else 3]),
    )
    regression = GaussianQuantile(config, classes)
    regression.fit(
        x, margin.astype(np.float64), None if classes is None else labels, validation=chosen
    )
    mean, spread = regression.predict(asked[0], None if classes is None else asked[2])
    return {"mean": coarse(mean), "log_spread": coarse(np.log(spread))}


def public_references(
    index: range,
    bank: str,
    recipe: dict | None = None,
    count: int = 3,
    judged: int = 10_000,
    held: int = 2500,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Answers of references that are trained on all records which the regression has: on the half
    of the pool that did not train the target, by the target's recipe. None of them was trained on a
    judged record.

    Args:
        index: of the targets. bank, recipe: as for `regressions`. count: references against each target, besides its
            complement in the bank, which is one. judged, held: as for `split`.

    Returns:
        margin: log odds of the true class under the references, float16 [T, `count`, n] of the judged records.
    """
    from mia_lib import signals, training

    numbers, targets = targets_of(index, bank, **(recipe or {}))
    bank_models, records = models_of(range(2), {name: targets.parameters[name] for name in RECIPE})
    first, last = index.start * check_whole("count", count, 1), index.stop * count
    public = np.zeros((last, len(records)), bool)
    public[:first, 0] = True  # models against other targets, which are not trained here
    public[first:, : records.n_train] = np.repeat(~targets.members[:, : records.n_train], count, 0)
    config = replace(bank_models.config, seed=bank_models.config.seed + 17 + seed)
    trained = training.train(records, public, config, label="references on public records").part(
        range(first, last)
    )
    margin = []
    for row, (number, members) in enumerate(zip(numbers, targets.members, strict=True)):
        rows = split(members, records.n_train, number, judged, held, seed).judged
        own = trained.part(range(row * count, (row + 1) * count))
        margin.append(coarse(signals.logit_scaled_confidence(own, records.take(rows))))
    return {"margin": np.stack(margin)}


# ------------------------------------------------------------------------------------------------------------------ tables


def trees(index: range, recipe: dict = TREES) -> dict[str, np.ndarray]:
    """Answers of boosted trees on balanced halves of a pool for each record, and their members.

    Args:
        recipe: a value for each name of `TREES`. dataset: name of a table. records: of the pool, drawn at random; three
            quarters of all when None. unused: further ones, which no model is trained on; all others when None. iterations,
            depth: of the trees.

    Returns:
        margin: log odds of the true class, float16 [M, N]; members: bool [M, N], False of the records unused.
    """
    from mia_lib import membership

    table, pool = table_of(recipe)
    members = np.zeros((index.stop + index.stop % 2, len(table)), bool)
    members[:, :pool] = membership.balanced_halves(pool, len(members), recipe["seed"])
    of_trees = [recipe[name] for name in ("iterations", "depth", "seed")]
    tasks = [(table, members[number], *of_trees) for number in index]
    return {
        "margin": np.stack(in_processes(_tree, tasks, "boosted trees")),
        "members": members[list(index)],
    }


def table_of(recipe: dict):
    """The records of a table in random order, those of the pool first, and the number of records in
    the pool; `recipe` is that of `trees`.

    Raises:
        MiaError: images, or too few records.
    """
    from mia_lib import data
    from mia_lib.attacks.quantile.trees import missing_dependency

    if missing_dependency():
        raise MiaError(missing_dependency())
    table = data.load(recipe["dataset"])
    records, unused = recipe["records"], recipe["unused"]
    if table.is_image:
        raise MiaError(
            f"{table.name} holds images: boosted trees take tables, such as german_credit or adult."
        )
    pool = check_whole(
        "records", len(table) * 3 // 4 if records is None else records, 60, len(table) - 20
    )
    rest = check_whole(
        "unused", len(table) - pool if unused is None else unused, 20, len(table) - pool
    )
    order = np.random.default_rng([23, recipe["seed"]]).permutation(len(table))
    return table.take(order[: pool + rest]), pool


def _tree(table, members: np.ndarray, iterations: int, depth: int, seed: int) -> np.ndarray:
    from scipy.special import logsumexp

    from mia_lib.attacks.quantile import trees
    from mia_lib.attacks.quantile.trees import TreeConfig

    config = TreeConfig(iterations, depth, seed=seed)
    [logits] = trees.classifier_logits(
        table.x[members], table.y[members], len(table.classes), config, table.x
    )
    true = np.take_along_axis(logits, table.y[:, None], 1)[:, 0]
    np.put_along_axis(logits, table.y[:, None], -np.inf, 1)
    return coarse(true - logsumexp(logits, 1))


def tabular(
    index: range,
    label: bool = True,
    judged: int = 5000,
    held: int = 1000,
    regression_iterations: int = 1000,
    regression_depth: int = 4,
    regression_rate: float = 0.05,
    recipe: dict = TREES,
) -> dict[str, np.ndarray]:
    """Mean and log spread as of `regressions`, by boosted trees, for targets of `trees`, whose
    recipe is the last argument.

    Args:
        regression_iterations, regression_depth, regression_rate: of the regression; the number of trees that suits the held
            records best is kept.
    """
    from mia_lib.attacks.quantile.trees import TreeConfig

    table, pool = table_of(recipe)
    seed = recipe["seed"]
    config = TreeConfig(
        iterations=regression_iterations, depth=regression_depth, learning_rate=regression_rate
    )
    numbers, targets = targets_of(index, "quantile/trees", **recipe)
    tasks = []
    for number, margin, members in zip(numbers, targets.margin, targets.members, strict=True):
        part = split(members, pool, number, judged, held, seed)
        fitted, asked = (
            (table.x[rows], margin[rows], table.y[rows])
            for rows in (part.fitted, np.r_[part.judged, part.holdout])
        )
        tasks.append(
            (
                replace(config, seed=10_000 * seed + number),
                fitted,
                asked,
                len(part.holdout),
                len(table.classes) if label else None,
            )
        )
    predictions = in_processes(_fit_and_predict, tasks, "quantile regressions")
    return {name: np.stack([one[name] for one in predictions]) for name in predictions[0]}


BANK_PROBE = {
    "index": range(1, 2),
    "bank": "bank/cifar10-small",
    "recipe": TINY | {"unused": 40},
    "judged": 50,
    "held": 20,
}
PROBE = BANK_PROBE | {"backbone": "strided_cnn:4,4,8", "hidden": [8], "epochs": 2}
REFERENCES_PROBE = BANK_PROBE | {"count": 2}
TREES_PROBE = {
    "index": range(1, 3),
    "dataset": "german_credit",
    "records": 400,
    "unused": 100,
    "iterations": 20,
    "depth": 3,
}
TABLES_PROBE = TREES_PROBE | {"judged": 100, "held": 50, "regression_iterations": 20}
cifar10 = measurement("quantile/cifar10", probe=PROBE, block=8, chunk=8, bank="bank/cifar10")(
    regressions
)
cifar10_small = measurement(
    "quantile/cifar10-small", probe=PROBE, block=8, chunk=8, bank="bank/cifar10-small"
)(regressions)
cifar100_small = measurement(
    "quantile/cifar100-small", probe=PROBE, block=8, chunk=8, bank="bank/cifar100-small"
)(regressions)
references = measurement(
    "quantile/public-references",
    probe=REFERENCES_PROBE,
    block=8,
    chunk=2,
    bank="bank/cifar10-small",
)(public_references)
trees_bank = measurement("quantile/trees", probe=TREES_PROBE, block=66, chunk=8)(trees)
tables = measurement("quantile/tables", probe=TABLES_PROBE, block=8, chunk=8)(tabular)
