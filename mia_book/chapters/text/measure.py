"""Language models on verses: the losses of verses, and of their other translation, after some passes over the training set."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mia_book.publishing import measurement
from mia_book.publishing.banks import config_of
from mia_lib.data import sets

# `verses`: of the first records of "verses_kjv" so many are judged. Of these the last `fourfold` lie in a training set four
# times, if at all, and the `twice` before them twice. `passes`: over the training set, after which models are asked.
RECIPE = {
    "architecture": "gpt:128,4,4",
    "epochs": 10,
    "batch_size": 32,
    "learning_rate": 2e-3,
    "schedule": "one_cycle",
    "loss": "next_token",
    "passes": [1, 2, 4, 10],
    "verses": 6000,
    "twice": 100,
    "fourfold": 100,
    "seed": 0,
}
SHARES = (0.05, 0.1, 0.4, 1.0)  # of tokens, in "text/variants"
PROBE = {
    "index": range(1, 3),
    "architecture": "gpt:16,1,2",
    "epochs": 2,
    "passes": [1, 2],
    "verses": 60,
    "twice": 4,
    "fourfold": 4,
    "batch_size": 8,
}


def training_cost(parameters: Mapping) -> float:
    """Cost of training a transformer, up to a factor: multiplications for a token, of the last layer and of the others, times
    verses and epochs. Of another network it is that of the usual one."""
    name = parameters["architecture"]
    widths = (name if name.startswith("gpt:") else RECIPE["architecture"]).partition(":")[2]
    width, layers, _ = map(int, widths.split(","))
    for_token = width * sets.form("verses_kjv")[1] + 12 * layers * width**2
    fine_tuned = parameters.get("tuned_epochs", 0) * parameters.get("tuned_verses", 0)
    base = parameters.get("base_epochs", 0) * parameters.get("base_verses", 0)
    verses = fine_tuned + base or parameters["epochs"] * parameters["verses"]
    return float(for_token * verses)


def pool_of(verses: int, twice: int, fourfold: int):
    """The judged verses of the King James Version and, behind them, the copies of those that repeat; and of each record the
    judged verse that it is, int [N]."""
    from mia_lib import data

    copies = [
        np.repeat(np.arange(verses - fourfold - twice, verses - fourfold), 1),
        np.repeat(np.arange(verses - fourfold, verses), 3),
    ]
    verse = np.concatenate([np.arange(verses), *copies])
    return data.load("verses_kjv").take(verse), verse


def members_of(models: int, verses: int, twice: int, fourfold: int, seed: int) -> np.ndarray:
    """Balanced halves of the verses that repeat equally often, bool [M, verses]: all training sets are equally large."""
    from mia_lib import membership

    strata = (verses - twice - fourfold, twice, fourfold)
    halves = [
        membership.balanced_halves(size, models, seed + 1000 * k)
        for k, size in enumerate(strata)
        if size
    ]
    return np.concatenate(halves, 1)


def models_of(index: range, recipe: dict) -> list:
    """The models with the numbers `index` after each of the `passes`, and bool [M, verses] who is in them."""
    from dataclasses import replace

    from mia_lib import training

    sizes = {name: recipe[name] for name in ("verses", "twice", "fourfold")}
    pool, verse = pool_of(**sizes)
    members = members_of(index.stop + index.stop % 2, **sizes, seed=recipe["seed"])
    config = config_of(recipe)
    models = training.train(pool, members[:, verse], config, label="language models").part(index)
    stops = [None if epoch == config.epochs else epoch for epoch in recipe["passes"]]
    return [replace(models, config=replace(config, stop_epoch=stop)) for stop in stops], members[
        list(index)
    ]


@measurement("text/verses", probe=PROBE, block=16, chunk=2, cost=training_cost)
def verses(index: range, recipe: dict = RECIPE) -> dict[str, np.ndarray]:
    """What models trained on halves of the judged verses say of each of them, and of its other translation.

    Args:
        index: of the models. recipe: see `RECIPE`.

    Returns:
        loss: mean loss of each verse in nats a token after each of the P passes, float16 [M, P, N]; min_k, min_k_plus: Min-K%
        and Min-K%++ at 20 %, float16 [M, P, N]; other: loss at the end of the same verse in the World English Bible, which no
        model was trained on, float16 [M, N]; members: bool [M, N].
    """
    from mia_lib import data, signals
    from mia_lib.attacks import text
    from mia_lib.signals import tokens

    models, members = models_of(index, recipe)
    kjv, web = (
        data.load(f"verses_{name}").take(np.arange(recipe["verses"])) for name in ("kjv", "web")
    )
    said = [tokens.statistics(after, kjv) for after in models]
    arrays = {
        "loss": [text.loss(of.log_prob, of.offsets) for of in said],
        "min_k": [text.min_k(of.log_prob, of.offsets) for of in said],
        "min_k_plus": [text.min_k_plus(*of) for of in said],
    }
    return {
        **{name: np.stack(of, 1).astype(np.float16) for name, of in arrays.items()},
        "other": signals.loss(models[-1], web).astype(np.float16),
        "members": members,
    }


@measurement("text/variants", probe=PROBE, cost=training_cost)
def variants(index: range, recipe: dict = RECIPE) -> dict[str, np.ndarray]:
    """Further signals of the models of "text/verses" at the end.

    Args:
        index: of the models. recipe: see `RECIPE`.

    Returns:
        min_k, min_k_plus: at 5, 10, 40 and 100 %, float16 [M, 4, N]; lower: mean loss of the verse in lower case, float16
        [M, N]; members: bool [M, N].
    """
    from mia_lib import data, signals
    from mia_lib.attacks import text
    from mia_lib.signals import tokens

    models, members = models_of(index, recipe)
    judged = np.arange(recipe["verses"])
    kjv, lower = (data.load(f"verses_{name}").take(judged) for name in ("kjv", "kjv_lower"))
    said = tokens.statistics(models[-1], kjv)
    arrays = {
        "min_k": np.stack([text.min_k(said.log_prob, said.offsets, share) for share in SHARES], 1),
        "min_k_plus": np.stack([text.min_k_plus(*said, share) for share in SHARES], 1),
        "lower": signals.loss(models[-1], lower),
    }
    return {name: array.astype(np.float16) for name, array in arrays.items()} | {"members": members}


@measurement(
    "text/verses-weights",
    probe=PROBE,
    suffix=".safetensors",
    block=2,
    chunk=2,
    cost=training_cost,
)
def verses_weights(index: range, recipe: dict = RECIPE) -> dict[str, np.ndarray]:
    """Weights of the models of "text/verses" at the end, by name, float16."""
    models = models_of(index, recipe)[0][-1]
    states = [models.model(m).state_dict() for m in range(len(index))]
    return {
        name: np.stack([state[name].numpy().astype(np.float16) for state in states])
        for name in states[0]
    }


@measurement(
    "text/tuned",
    probe={**PROBE, "tuned_epochs": 1, "tuned_passes": [1], "base_verses": 80},
    cost=training_cost,
)
def tuned(
    index: range,
    recipe: dict = RECIPE,
    tuned_verses: int = 2000,
    tuned_epochs: int = 4,
    tuned_passes: list = (1, 2, 4),
    tuned_rate: float = 5e-4,
    base_verses: int = 23_093,
    base_epochs: int = 2,
) -> dict[str, np.ndarray]:
    """Losses under models that were fine-tuned from one base: it was trained on the other translation, of verses that are not
    judged.

    Args:
        index: of the models. recipe: of the base and of the models, see `RECIPE`.
        tuned_verses: of the judged verses so many, the first ones, are halved.
        tuned_epochs, tuned_passes, tuned_rate: passes over a half, after which of them models are asked, and the highest rate.
        base_verses, base_epochs: verses of the World English Bible that the base was trained on, and passes over them.

    Returns:
        loss: mean loss of each verse, after each of the P passes, float16 [M, P, N]; base: under the base, the same for all
        models, float16 [M, N]; members: bool [M, N].
    """
    from dataclasses import replace

    from mia_lib import data, membership, signals, training

    judged = np.arange(min(tuned_verses, recipe["verses"]))
    kjv, web = data.load("verses_kjv").take(judged), data.load("verses_web")
    rest = web.take(np.arange(data.JUDGED, data.JUDGED + base_verses))
    config = config_of(recipe)
    base = training.train(
        rest, np.ones((1, len(rest)), bool), replace(config, epochs=base_epochs), label="the base"
    )
    members = membership.balanced_halves(len(kjv), index.stop + index.stop % 2, recipe["seed"] + 7)
    config = replace(config, epochs=tuned_epochs, learning_rate=tuned_rate)
    models = training.train(
        kjv, members, config, label="fine-tuned models", start=(base, [0] * len(members))
    ).part(index)
    stops = [None if epoch == tuned_epochs else epoch for epoch in tuned_passes]
    after = [replace(models, config=replace(config, stop_epoch=stop)) for stop in stops]
    return {
        "loss": np.stack([signals.loss(each, kjv) for each in after], 1).astype(np.float16),
        "base": np.repeat(signals.loss(base, kjv), len(index), 0).astype(np.float16),
        "members": members[list(index)],
    }
