"""The banks that are published, see `mia_book.publishing.banks`: other chapters attack them, and readers do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mia_book.publishing import catalogue, measurement
from mia_book.publishing.banks import (
    FAST,
    FAST_PROBE,
    PROBE,
    RECIPE,
    RESNET,
    answers,
    models_of,
    queries,
    weights,
)
from mia_lib.errors import check_choice, check_range

cifar10 = measurement("bank/cifar10", probe=FAST_PROBE, dataset="cifar10", **FAST)(answers)
cifar10_queries = measurement(
    "bank/cifar10-queries", probe={**FAST_PROBE, "viewed": 50}, dataset="cifar10", **FAST
)(queries)
cifar100 = measurement(
    "bank/cifar100", probe={**FAST_PROBE, "viewed": 50}, dataset="cifar100", viewed=2000, **RESNET
)(answers)
cifar10_small = measurement("bank/cifar10-small", probe=PROBE, dataset="cifar10")(answers)
cifar100_small = measurement("bank/cifar100-small", probe=PROBE, dataset="cifar100")(answers)
# for a class: small, in long training, on few records
MLP = {
    "dataset": "fashion_mnist_20k",
    "architecture": "mlp:32",
    "epochs": 60,
    "batch_size": 64,
    "learning_rate": 0.1,
    "weight_decay": 0.0,
    "records": 2000,
    "unused": 2000,
}
MLP_PROBE = {**PROBE, "architecture": "mlp:8", "unused": 50}
fashion_mlp = measurement("bank/fashion-mlp", probe=MLP_PROBE, **MLP)(answers)
fashion_mlp_weights = measurement("bank/fashion-mlp-weights", probe=MLP_PROBE, **MLP)(weights)


@measurement("onion/fashion-mlp", probe={**MLP_PROBE, "index": range(2), "ranked": 4}, **MLP)
def fashion_onion(
    index: range,
    recipe: dict = RECIPE,
    taken: str = "exposed",
    share: float = 0.125,
    ranked: int = 16,
) -> dict[str, np.ndarray]:
    """Answers of models like those of "bank/fashion-mlp", trained without some of the records.

    Taking out an eighth leaves the last batch as large as before; a batch of a few records makes a
    step that spoils these networks.

    Args:
        index: of the models; number k is the bank's model `ranked` + k. recipe: as for `banks.models_of`.
        taken: "exposed", the records that LiRA finds most often in the bank's first `ranked`
            models; "random", as many by lot.
        share: of the training records that is taken out.

    Returns:
        margin: log odds of all training records, those that were taken out among them, float16 [M, N]; members: bool [M, N].
    """
    from mia_book.chapters.banks import exposure
    from mia_lib import signals

    check_choice("taken", taken, ("exposed", "random"))
    check_range("share", share, 0, 0.5)
    ensemble, pool = models_of(range(ranked + index.start, ranked + index.stop), recipe)
    known = catalogue()["bank/fashion-mlp"](index=range(ranked), **recipe)
    rows = np.arange(pool.n_train)
    scores, members = exposure.attack_models(known, rows, ["LiRA"])
    ranking = exposure.rank_records(exposure.call_members(scores["LiRA"], members), members)
    if taken == "random":
        ranking = np.random.default_rng([31, recipe["seed"]]).permutation(rows)
    reduced_members = ensemble.members.copy()
    reduced_members[:, ranking[: round(share * len(rows))]] = False
    margin = signals.logit_scaled_confidence(
        replace(ensemble, members=reduced_members), pool.take(rows)
    )
    return {"margin": margin.astype(np.float16), "members": reduced_members[:, : pool.n_train]}


TENSORS = {"probe": PROBE, "suffix": ".safetensors"}
cifar10_weights = measurement("bank/cifar10-small-weights", **TENSORS, dataset="cifar10")(weights)
cifar100_weights = measurement("bank/cifar100-small-weights", **TENSORS, dataset="cifar100")(
    weights
)


def networks(bank: str, models: int, **parameters) -> list:
    """The networks of a bank from its published weights, in evaluation mode: for whoever measures a further signal of them.

    Args:
        bank: such as "bank/cifar10-small". models: the first so many. parameters: as for `published.load`.
    """
    import torch

    from mia_lib import data
    from mia_lib import models as architectures
    from mia_lib.published import load

    weights = load(f"{bank}-weights", models, **parameters)
    catalogue()[weights.name].check_answers(weights)
    pool, answers = data.load(weights.parameters["dataset"]), []
    for row in range(models):
        network = architectures.build(
            weights.parameters["architecture"], pool.shape, len(pool.classes), seed=0
        )
        state = {
            name: torch.from_numpy(array[row].astype(np.float32))
            for name, array in weights.arrays.items()
        }
        network.load_state_dict(network.state_dict() | state)
        answers.append(architectures.set_input_scaling(network, "-1 to 1").eval())
    return answers
