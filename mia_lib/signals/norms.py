"""The norm of each record's gradient, without the gradient.

By the weights of a linear layer the gradient of one record's loss is an outer product, ``delta a'``, of what comes back to the
layer's output and what went in. Its norm is ``||delta|| ||a||`` (Goodfellow 2015, arXiv:1510.01799), and the matrix, in which
most parameters of small networks lie, is never made. Gradients by the weights of a convolution, a batch normalisation or a
linear layer that serves several places of a record are sums over places and are made, from one pass forward and one back for
a whole batch of records.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.autograd.graph import get_gradient_edge
from torch.nn import functional

from mia_lib.training.losses import precise_loss


def _norm(gradient: torch.Tensor) -> torch.Tensor:
    """[B, ...] -> float64 [B]; the squares of a confident record's gradient would vanish in float32."""
    return torch.linalg.vector_norm(gradient.flatten(1), 2, 1, dtype=torch.float64)


def _linear(layer: nn.Linear, inputs: torch.Tensor, back: torch.Tensor) -> torch.Tensor:
    if inputs.ndim > 2:  # the layer serves several places of a record, over which its gradient is a sum
        back = back.flatten(1, -2)
        weight = _norm(torch.bmm(back.transpose(1, 2), inputs.flatten(1, -2)))
        return weight if layer.bias is None else torch.hypot(weight, _norm(back.sum(1)))
    length = _norm(inputs)
    return _norm(back) * (length if layer.bias is None else torch.hypot(length, torch.ones_like(length)))


def _convolution(layer: nn.Conv2d, inputs: torch.Tensor, back: torch.Tensor) -> torch.Tensor:
    patches = functional.unfold(inputs, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    weight = _norm(torch.bmm(back.flatten(2), patches.transpose(1, 2)))
    return weight if layer.bias is None else torch.hypot(weight, _norm(back.sum((2, 3))))


def _normalisation(layer: nn.BatchNorm2d, inputs: torch.Tensor, back: torch.Tensor) -> torch.Tensor:
    mean, spread = (statistic[:, None, None] for statistic in (layer.running_mean, torch.sqrt(layer.running_var + layer.eps)))
    return torch.hypot(_norm((back * (inputs - mean) / spread).sum((2, 3))), _norm(back.sum((2, 3))))


LAYERS = {nn.Linear: _linear, nn.Conv2d: _convolution, nn.BatchNorm2d: _normalisation}


def known(model: nn.Module) -> bool:
    """Whether `of_batch` covers a network: modules are PyTorch's and this library's, each in one place, and what has weights
    is a layer of `LAYERS` in its usual form. Modules of the user's own might use a weight elsewhere, too."""
    places = [module for _, module in model.named_modules(remove_duplicate=False)]
    weights = [weight for _, weight in model.named_parameters(remove_duplicate=False)]
    return (len(places) == len(set(places)) and len(weights) == len(set(weights))
            and all(type(module).__module__.startswith(("torch.nn.", "mia_lib.models")) for module in places)
            and all(type(module) in LAYERS
                    and {name for name, _ in module.named_parameters(recurse=False)} <= {"weight", "bias"}
                    and not module._forward_pre_hooks  # by which spectral_norm makes a weight of another
                    for module in places if next(module.parameters(recurse=False), None) is not None)
            and all(module.groups == 1 and module.padding_mode == "zeros" and not isinstance(module.padding, str)
                    for module in places if type(module) is nn.Conv2d)
            and all(module.running_mean is not None for module in places if type(module) is nn.BatchNorm2d))


def of_batch(model: nn.Module, x: torch.Tensor, labels: torch.Tensor, loss: str) -> torch.Tensor:
    """``||grad l(theta, z)||_2`` of each record of a batch, float64 [B].

    Args:
        model: `known`, in evaluation mode. x: [B, ...] as it takes them. labels: int [B]. loss: a name of `LOSSES`.
    """
    calls = []

    def keep(layer: nn.Module, inputs: tuple, output: torch.Tensor) -> None:
        calls.append((layer, inputs[0].detach(), get_gradient_edge(output)))  # of the output before it is written over

    hooks = [layer.register_forward_hook(keep) for layer in model.modules()
             if next(layer.parameters(recurse=False), None) is not None]
    try:
        losses = precise_loss(model(x.detach().requires_grad_()), labels, loss)
    finally:
        for hook in hooks:
            hook.remove()
    layers, inputs, edges = zip(*calls, strict=True)
    back = torch.autograd.grad(losses.sum(), edges)
    parts = [LAYERS[type(layer)](layer, *pair) for layer, *pair in zip(layers, inputs, back, strict=True)]
    return torch.linalg.vector_norm(torch.stack(parts), 2, 0)
