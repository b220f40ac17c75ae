"""Measurements of the chapter that audits: one question about several models of a pool, each
trained on half of it.

PyTorch and scikit-learn are imported within, so that this can be read without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mia_book.publishing import measurement
from mia_book.publishing.banks import RECIPE, SGD, config_of
from mia_lib.errors import MiaError, check_choice, check_range

if TYPE_CHECKING:
    from mia_lib.data import Dataset

# The recipe of the small published banks, on smaller batches.
BANK = {name: RECIPE[name] for name in ("epochs", "learning_rate", "weight_decay", "schedule")}
BANK |= {**SGD, "batch_size": 64}
NETWORK = {"architecture": "batchnorm_cnn:8,16,32", **BANK, "augmentation": "none", "seed": 0}
# What the owner of a network may change.
CHANGES = ("as it is", "more weight decay", "a third of the epochs", "flips and crops")
# Of networks that never saw the "members", and of networks with canaries.
STRANGERS = {
    "architecture": "mlp:32",
    "epochs": 20,
    "batch_size": 64,
    "learning_rate": 0.1,
    "seed": 0,
}
# With and without privacy: the rates at which each was most often right, of several tried on records that are not judged.
TWINS = STRANGERS | {"learning_rate": 0.02}
PRIVATE_RATE = 0.05
PLAIN_SGD = {"optimizer": "sgd", "momentum": 0.9}
CANARIES = STRANGERS | {"epochs": 6, "batch_size": 100, "learning_rate": 4.0}


@dataclass(frozen=True, eq=False)
class Records:
    """Records that are dealt anew to each of M models."""

    pool: Dataset  # N, half of which trains each
    holdout: Dataset  # members of none
    members: np.ndarray  # who trains which, bool [M, N]

    def sides(self, model: int = 0) -> tuple[Dataset, Dataset]:
        """Members and non-members of a model."""
        is_member = self.members[model]
        return self.pool.take(np.flatnonzero(is_member)), self.pool.take(np.flatnonzero(~is_member))


def records(
    dataset: str | Dataset, members: int, holdout: int, models: int, seed: int = 0
) -> Records:
    """Deal records of a data set, each content once, as audits demand.

    Args:
        dataset: itself, or by name. members: of a model, half of the pool. holdout: records besides. models: M.
        seed: of the order.

    Raises:
        MiaError: the data set has too few.
    """
    from mia_lib import data, membership
    from mia_lib.audit.inputs import digests

    whole = data.load(dataset) if isinstance(dataset, str) else dataset
    once = np.unique(digests(whole), return_index=True)[1]
    check_range("members", 2 * members + holdout, 100, len(once))
    order = np.random.default_rng([61, seed]).permutation(len(whole))
    order = order[np.isin(order, once)]
    return Records(
        whole.take(order[: 2 * members]),
        whole.take(order[2 * members : 2 * members + holdout]),
        membership.balanced_halves(2 * members, models + models % 2, seed),
    )


def forest(members: Dataset, trees: int, leaf: int = 1, seed: int = 0):
    """A random forest of scikit-learn with so many trees, fitted to the members; a leaf has `leaf`
    records at least."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(trees, min_samples_leaf=leaf, random_state=seed).fit(
        members.x, members.y
    )


def changed(recipe: dict, change: str) -> dict:
    """A recipe with one of `CHANGES`."""
    return (
        recipe
        | {
            "as it is": {},
            "more weight decay": {"weight_decay": max(5e-3, 10 * recipe["weight_decay"])},
            "a third of the epochs": {"epochs": max(1, recipe["epochs"] // 3)},
            "flips and crops": {"augmentation": "flip_crop:2"},
        }[change]
    )


def changes(
    index: range,
    dataset: str = "fashion_mnist_20k",
    members: int = 1000,
    recipe: dict = NETWORK,
) -> dict[str, np.ndarray]:
    """Networks trained by a recipe as it is, and with one thing changed at a time.

    Returns:
        as `_answers`, a kind for each of `CHANGES`.
    """
    from mia_lib import training

    dealt = records(dataset, members, 0, index.stop, recipe["seed"])
    kinds = [
        training.train(dealt.pool, dealt.members, config_of(changed(recipe, change)), label=change)
        for change in CHANGES
    ]
    return _answers(kinds, dealt, index)


def twins(
    index: range,
    epsilons: list,
    dataset: str = "fashion_mnist_20k",
    members: int = 800,
    recipe: dict = TWINS,
    private_rate: float = PRIVATE_RATE,
) -> dict[str, np.ndarray]:
    """Models trained without privacy and by DP-SGD, each at its own learning rate.

    Args:
        recipe: of the twin. private_rate: learning rate of the private models. epsilons: that these may spend.

    Returns:
        as `_answers`, the twin first and then a kind for each epsilon.
    """
    dealt = records(dataset, members, 0, index.stop, recipe["seed"])
    kinds = [train_twin(dealt, recipe)]
    kinds += [train_twin(dealt, recipe, private_rate, one) for one in epsilons]
    return _answers(kinds, dealt, index)


def _answers(kinds: list, dealt: Records, index: range) -> dict[str, np.ndarray]:
    """Answers of several kinds of ensembles on the same members: margin, the log odds of each record, float16 [M, L, N];
    right, the share of the non-members that each is right about, [M, L]; members, bool [M, N]."""
    from mia_lib import signals

    some, members = [models.part(index) for models in kinds], dealt.members[list(index)]
    margin = np.stack([signals.logit_scaled_confidence(one, dealt.pool) for one in some], 1)
    right = np.stack([signals.correctness(one, dealt.pool) for one in some], 1)
    return {
        "margin": margin.astype(np.float16),
        "right": right.mean(2, where=~members[:, None]).astype(np.float32),
        "members": members,
    }


def train_twin(dealt: Records, recipe: dict, rate: float | None = None, epsilon: float = 0.0):
    """An ensemble on the dealt records by a recipe with the names of `TWINS`; with an `epsilon` by DP-SGD at its own learning
    `rate`."""
    from mia_lib import training
    from mia_lib.training import private

    config = config_of(recipe | {"learning_rate": rate or recipe["learning_rate"]}, **PLAIN_SGD)
    if not epsilon:
        return training.train(dealt.pool, dealt.members, config, label="twins")
    return private.train(
        dealt.pool, dealt.members, config, private.Privacy(epsilon), label="private models"
    )


def tested(
    index: range,
    kind: str = "forest",
    dataset: str = "german_credit",
    members: int = 300,
    apart: int = 300,
    share: float = 0.2,
    games: int = 100,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Audits, by outputs alone, of models that were trained on other records and never saw the "members".

    Args:
        kind: "forest", or "network", by the recipe `STRANGERS`. share: of the members whom a leak makes surer.
        games: audits of each model, all with other "members".

    Returns:
        share of the games that find something, [M, 2], without a leak and with one; and members of the first, bool [M, N].
    """
    from mia_lib import signals, training
    from mia_lib.audit.rehearsal import count_alarms

    dealt = records(dataset, members, apart, index.stop, seed)
    if check_choice("kind", kind, ("forest", "network")) == "forest":
        answers = [
            forest(dealt.holdout, 100, seed=seed + 100 + k).predict_proba(dealt.pool.x)
            for k in index
        ]
    else:
        config = config_of({**STRANGERS, "seed": seed}, **PLAIN_SGD)
        everyone = np.ones((index.stop, len(dealt.holdout)), bool)
        strangers = training.train(dealt.holdout, everyone, config, label="strangers").part(index)
        answers = list(signals.probabilities(strangers, dealt.pool))
    alarms = [
        [count_alarms(p, dealt.pool.y, games, seed + k, leak) / games for leak in (0.0, share)]
        for k, p in zip(index, answers, strict=True)
    ]
    return {"alarms": np.array(alarms, np.float32), "members": dealt.members[list(index)]}


def canaries(
    index: range,
    dataset: str = "fashion_mnist_20k",
    records: int = 200,
    natural: int = 400,
    mislabelled: int = 400,
    gradients: int = 1000,
    recipe: dict = CANARIES,
    epsilon: float = 8.0,
    delta: float = 1e-5,
) -> dict[str, np.ndarray]:
    """Models trained by DP-SGD, each with canaries of three kinds, and for each canary of each model a fair coin of its own
    that says whether it is in (Steinke, Nasr and Jagielski 2023). How often records are drawn and how much noise is added
    follows from the number of records and of all canaries that are records, and not from how many the coins let in.

    Args:
        records: that train every model. natural: canaries as they come. mislabelled: canaries with a wrong class, by chance.
        gradients: Dirac canaries, whose gradient is the clipping norm at one parameter of their own, drawn by chance, and 0 at
            all others. epsilon: 1e9 leaves next to no noise.

    Returns:
        gain: by how much training lowered the loss of the natural, then of the mislabelled canaries, float16 [M, C];
        moved: how far training moved the parameters of the Dirac canaries against their gradient, the dot product of
        that gradient (of norm 1) with the sum of all updates, float16 [M, G]; coins: who is in, bool [M, C + G];
        right: share of 2,000 other records that the model is right about, [M]; spent: epsilon by the accountant, [M].
    """
    import torch

    from mia_lib import data, models, signals
    from mia_lib.training import ensemble, private
    from mia_lib.training.recipe import seed_of

    seed = recipe["seed"]
    whole, rng = data.load(dataset), np.random.default_rng([62, seed])
    order, count = rng.permutation(len(whole)), natural + mislabelled
    x, y, classes = whole.x[order], whole.y[order].astype(np.int64), len(whole.classes)
    wrong = slice(records + natural, records + count)
    y[wrong] = (y[wrong] + rng.integers(1, classes, mislabelled)) % classes
    config = config_of(recipe, optimizer="sgd", scaling="0 to 1")
    rows: dict[str, list] = {name: [] for name in ("gain", "moved", "coins", "right", "spent")}
    for k in index:
        coins = np.random.default_rng([63, seed, k]).random(count + gradients) < 0.5
        start = models.build(config.architecture, whole.shape, classes, seed=seed_of(config, k))
        before = torch.nn.utils.parameters_to_vector(start.parameters()).detach().numpy()
        at = np.random.default_rng([64, seed]).choice(len(before), gradients, replace=False)
        member_rows = np.flatnonzero(np.r_[np.ones(records, bool), coins[:count]])
        outcome = private.fit(
            x[member_rows],
            y[member_rows],
            classes,
            config,
            private.Privacy(epsilon, delta),
            k,
            size=records + count,
            canaries=at[coins[count:]],
        )
        if outcome.diverged:
            raise MiaError(outcome.diverged)
        trained = ensemble.rebuilt(config, whole.shape, classes, outcome.arrays)
        after = torch.nn.utils.parameters_to_vector(trained.parameters()).detach().numpy()
        losses = [
            signals.scalars(
                signals.model_outputs(one, x[records : records + count], "0 to 1"),
                y[records : records + count],
            )["loss"]
            for one in (start, trained)
        ]
        others = slice(records + count, records + count + 2000)
        answers = signals.model_outputs(trained, x[others], "0 to 1").argmax(1)
        for name, value in (
            ("gain", losses[0] - losses[1]),
            ("moved", (before - after)[at]),
            ("coins", coins),
            ("right", (answers == y[others]).mean()),
            ("spent", outcome.arrays["epsilon"]),
        ):
            rows[name].append(value)
    kinds: dict[str, type] = {"gain": np.float16, "moved": np.float16, "coins": bool}
    return {name: np.array(values, kinds.get(name, np.float32)) for name, values in rows.items()}


TINY = {"architecture": "mlp:4", "epochs": 2, "batch_size": 30}
private_models = measurement(
    "audit/twins",
    edition=2,
    block=16,
    epsilons=[2.0, 8.0],
    probe={"index": range(1, 2), "members": 60, **TINY, "epsilons": [8.0]},
)(twins)
changed_networks = measurement(
    "audit/changes",
    block=16,
    probe={
        "index": range(1, 2),
        "members": 60,
        "architecture": "batchnorm_cnn:4,8,8",
        "epochs": 3,
        "batch_size": 30,
        "learning_rate": 0.05,
    },
)(changes)
audits = measurement(
    "audit/tested", block=8, probe={"index": range(1, 2), "members": 60, "apart": 60, "games": 4}
)(tested)
one_run = measurement(
    "audit/one-run",
    block=8,
    chunk=2,
    probe={
        "index": range(2),
        "records": 60,
        "natural": 20,
        "mislabelled": 20,
        "gradients": 40,
        **TINY,
    },
)(canaries)
many_runs = measurement(
    "audit/many-runs",
    block=1000,
    chunk=20,
    records=992,
    natural=0,
    mislabelled=8,
    gradients=8,
    probe={"index": range(2), "records": 60, "mislabelled": 4, "gradients": 4, **TINY},
)(canaries)
