"""What a model is trained to predict: the class of a record, or each token of it from those before.

These are all differences between a classifier and a language model in training. `of` gives the one that a loss has.
"""

from __future__ import annotations

import torch
from torch import nn

from mia_lib.training.losses import NEXT_TOKEN, record_loss

SORTED_TOGETHER = 20  # batches


class Classification:
    """One label a record."""

    @staticmethod
    def inputs_and_labels(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What is fed of records x [N, ...] with labels y [N], and what is to be predicted."""
        return x, y

    @staticmethod
    def trim(x: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs [G * B, ...] and what is predicted [G, B, ...] of a batch, without what is padding in all of it."""
        return x, labels

    @staticmethod
    def losses(outputs: torch.Tensor, labels: torch.Tensor, kind: str) -> torch.Tensor:
        """Loss of each record, [...]."""
        return record_loss(outputs, labels, kind)

    @staticmethod
    def correct(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Which records are predicted rightly, [...]: 0 or 1, or the share of their tokens."""
        return outputs.argmax(-1) == labels

    @staticmethod
    def batch_order(
        order: torch.Tensor, labels: torch.Tensor, batch: int, generator: torch.Generator
    ) -> torch.Tensor:
        """An epoch's order of records, a permutation [n] of records with these labels [n, ...], cut into batches as it is."""
        return order


class NextToken(Classification):
    """Each token of a record from those before. Records are token ids int64 [N, L], -1 behind the last."""

    @staticmethod
    def inputs_and_labels(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[:, :-1].clamp_min(0), x[:, 1:]

    @staticmethod
    def trim(x: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        longest = int(lengths(labels).max())
        return x[:, :longest], labels[..., :longest]

    @staticmethod
    def losses(outputs: torch.Tensor, labels: torch.Tensor, kind: str) -> torch.Tensor:
        """Mean over a record's tokens of -log p(token | those before), [...]."""
        losses = nn.functional.cross_entropy(
            outputs.flatten(0, -2), labels.flatten(), reduction="none", ignore_index=-1
        )
        return losses.view(labels.shape).sum(-1) / lengths(labels)

    @staticmethod
    def correct(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return (outputs.argmax(-1) == labels).sum(-1) / lengths(labels)

    @staticmethod
    def batch_order(
        order: torch.Tensor, labels: torch.Tensor, batch: int, generator: torch.Generator
    ) -> torch.Tensor:
        """Records of like length in a batch: those of `SORTED_TOGETHER` batches are sorted by length, and full batches are
        drawn in random order, so that little is computed of padding."""
        length = lengths(labels)
        alike = torch.cat(
            [
                part[length[part].argsort(stable=True)]
                for part in order.split(SORTED_TOGETHER * batch)
            ]
        )
        full = len(order) // batch
        drawn = torch.randperm(full, generator=generator)
        return torch.cat(
            [alike[: full * batch].view(full, batch)[drawn].flatten(), alike[full * batch :]]
        )


def lengths(tokens: torch.Tensor) -> torch.Tensor:
    """How many tokens each row [..., L] has before the padding of -1, int [...]."""
    return (tokens >= 0).sum(-1)


def of(loss: str) -> type[Classification]:
    """The objective of a loss of `TrainConfig`."""
    return NextToken if loss == NEXT_TOKEN else Classification
