"""The loss of each record: as models are trained with it, and as exactly as numbers allow."""

from __future__ import annotations

import math
from contextlib import suppress

import torch
from torch import nn

from mia_lib.checks import LOSSES, check_labels
from mia_lib.errors import MiaError, check_choice

# the loss of a language model, which has tokens for labels: of `objectives.NextToken`
NEXT_TOKEN = "next_token"
NO_CLASS = torch.iinfo(torch.int64).min


def record_loss(outputs: torch.Tensor, labels: torch.Tensor, kind: str) -> torch.Tensor:
    """Loss of each record.

    Args:
        outputs: logits z [..., K].
        labels: y, int [...].
        kind: "cross_entropy" -log p_y with p = softmax(z); "squared_error" 1/2 ||z - onehot||^2; "brier"
            1/2 ||p - onehot||^2, which for two classes is (p_1 - y)^2, the loss of Suri et al. (2024) on MNIST-Odd;
            "double_softmax" the cross-entropy of logits that are themselves p, as the code of Watson et al. (2022) has it.

    Returns:
        [...].

    Raises:
        MiaError: an unknown kind, outputs of fewer than two classes, labels of another shape or type, or that are no class (on
            a graphics card that is PyTorch's to say).
    """
    check_choice("loss", kind, LOSSES)
    check_outputs(outputs, labels)
    try:
        if kind in ("brier", "double_softmax"):
            outputs = outputs.softmax(-1)
        if kind in ("squared_error", "brier"):
            return 0.5 * (outputs - nn.functional.one_hot(labels, outputs.shape[-1])).square().sum(
                -1
            )
        # PyTorch would give a record of class -100 the loss 0
        losses = nn.functional.cross_entropy(
            outputs.flatten(0, -2), labels.flatten(), reduction="none", ignore_index=NO_CLASS
        )
        return losses.view(labels.shape)
    except (IndexError, RuntimeError):  # PyTorch's own look at the labels costs nothing
        if labels.device.type == "cpu":
            check_labels("labels", labels.flatten(), outputs.shape[-1])
        raise


def check_outputs(outputs: torch.Tensor, labels: torch.Tensor) -> None:
    """Refuse outputs, logits [..., K] of two classes at least, and labels, whole numbers [...], that do not fit each other."""
    if outputs.ndim < 2 or outputs.shape[-1] < 2:
        raise MiaError(
            f"outputs have shape {tuple(outputs.shape)}: logits of at least two classes are needed, [..., K]. Of "
            "one sigmoid output s [N, 1] make two: torch.cat([0 * s, s], 1)."
        )
    if labels.shape != outputs.shape[:-1]:
        raise MiaError(
            f"labels have shape {tuple(labels.shape)} and outputs {tuple(outputs.shape)}: "
            f"{tuple(outputs.shape[:-1])} is needed, the number of each record's class."
        )
    if labels.is_floating_point() or labels.dtype == torch.bool:
        raise MiaError(
            f"labels are of type {labels.dtype}: the number of each record's class is needed, as labels.long()."
        )


def precise_loss(
    outputs: torch.Tensor, labels: torch.Tensor, kind: str = "cross_entropy"
) -> torch.Tensor:
    """`record_loss` in a form whose derivatives, and values near zero, are exact relative to their size.

    All of it follows from the margin log(p_y / (1 - p_y)) and the other classes: the usual log-sum-exp less z_y, and the
    usual softmax, round 1 - p_y to a multiple of the machine's epsilon.

    Arguments and errors are those of `record_loss`.
    """
    check_choice("loss", kind, LOSSES)
    check_outputs(outputs, labels)
    # within torch.func.vmap there are no values to look at; whoever maps has looked before
    with suppress(RuntimeError):
        if not ((labels >= 0) & (labels < outputs.shape[-1])).all():
            check_labels("labels", labels.cpu().flatten(), outputs.shape[-1])
    one_hot = torch.arange(outputs.shape[-1], device=outputs.device) == labels[..., None]
    if kind == "squared_error":
        return 0.5 * (outputs - one_hot.to(outputs.dtype)).square().sum(-1)
    margin = torch.where(one_hot, outputs, 0.0).sum(-1) - outputs.masked_fill(
        one_hot, -math.inf
    ).logsumexp(-1)
    if kind == "cross_entropy":
        return -nn.functional.logsigmoid(margin)
    missing, others = torch.sigmoid(-margin), outputs.softmax(-1).masked_fill(one_hot, 0.0)
    if kind == "brier":
        return 0.5 * (missing.square() + others.square().sum(-1))
    return (others + missing[..., None] - 1).exp().masked_fill(one_hot, 0.0).sum(-1).log1p()
