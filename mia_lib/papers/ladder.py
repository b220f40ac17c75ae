"""The ladder of DP-SGD that two papers climb: the same targets at each epsilon and, as its last rung, without privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mia_lib.data import Dataset
from mia_lib.training import Ensemble, TrainConfig, train
from mia_lib.training import private as dp


@dataclass(frozen=True, eq=False)
class PrivateTraining:
    """Attacks against T targets at each of E epsilons and, in the last row, without privacy.

    Attributes:
        members: bool [T, N], the same in all rows.
        scores: attack -> scores or ranks [E + 1, T, N].
        epsilon: what was spent, as the accountant has it in the end, [E]. noise: the noise multiplier it took, [E].
        train, test: accuracies [E + 1, T].
    """

    members: np.ndarray
    scores: dict[str, np.ndarray]
    epsilon: np.ndarray
    noise: np.ndarray
    train: np.ndarray
    test: np.ndarray

    @staticmethod
    def of(arrays: Mapping[str, np.ndarray], attacks: Sequence[str]) -> PrivateTraining:
        """From kept arrays, the scores of each attack under its name."""
        return PrivateTraining(scores={attack: arrays[attack] for attack in attacks},
                               **{name: arrays[name] for name in ("members", "epsilon", "noise", "train", "test")})


def ladder(records: Dataset, members: np.ndarray, config: TrainConfig, epsilons: Sequence[float],
           delta: float | None = None) -> list[Ensemble]:
    """Models of the same training sets at each epsilon, and last without privacy.

    Args:
        records: N. members: bool [M, N]. config: recipe. epsilons: one or more.
        delta: one over the number of members when None.
    """
    private = [dp.train(records, members, config, dp.Privacy(epsilon, delta), label=f"private models (ε = {epsilon:g})")
               for epsilon in epsilons]
    return [*private, train(records, members, config, label="models without privacy")]


def spent(models: Sequence[Ensemble]) -> dict[str, np.ndarray]:
    """What the models of a `ladder` spent and the noise it took, mean over models: "epsilon" and "noise", [E]."""
    return {"epsilon": np.array([one.epsilon().mean() for one in models[:-1]]),
            "noise": np.array([one.noise().mean() for one in models[:-1]])}
