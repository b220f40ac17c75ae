"""Banks: many small models on halves of one data set, and what they say about each record."""

from __future__ import annotations

import numpy as np


def small_models(index: range, dataset: str, architecture: str = "batchnorm_cnn:24,48,96", epochs: int = 20,
                 batch_size: int = 256, learning_rate: float = 0.15, weight_decay: float = 5e-4, seed: int = 0):
    """The trained models with these numbers, on balanced halves of the training records; and all N records."""
    from mia_lib import data, membership, training

    records = data.load(dataset)
    members = np.zeros((index.stop + index.stop % 2, len(records)), bool)
    members[:, :records.n_train] = membership.balanced_halves(records.n_train, len(members), seed)
    recipe = training.TrainConfig(architecture, epochs=epochs, batch_size=batch_size, optimizer="sgd", momentum=0.9,
                                  nesterov=True, learning_rate=learning_rate, weight_decay=weight_decay,
                                  schedule="one_cycle", seed=seed)
    return training.train(records, members, recipe, label=f"small models on {dataset}").part(index), records


def small_bank(index: range, dataset: str, **recipe) -> dict[str, np.ndarray]:
    """Log odds of the true class [M, N], float16, whether it is the most likely one, and who was in which model, [M, N] bool."""
    from mia_lib import signals

    models, records = small_models(index, dataset, **recipe)
    return {"margin": signals.logit_scaled_confidence(models, records).astype(np.float16), "members": models.members,
            "correct": signals.correctness(models, records).astype(bool)}
