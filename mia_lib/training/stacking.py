"""Several equal networks as one.

A small network leaves most of a machine idle: starting an operation takes longer than carrying it out. G networks with
their weights stacked run the same operations once for all, with matrix products batched and convolutions grouped. Each
keeps its own weights, statistics of batch normalisation and dropout masks, so the sum of their losses has for gradient
the gradient of each.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap


class Stacked(nn.Module):
    """G networks of one architecture; their weights and buffers are parameters and buffers [G, ...] of this module.

    Args:
        networks: at least one; all in the same mode (training or evaluation).
    """

    def __init__(self, networks: Sequence[nn.Module]):
        super().__init__()
        weights, buffers = stack_module_state(list(networks))
        self.networks, self._names = len(networks), (list(weights), list(buffers))
        for name, value in weights.items():
            self.register_parameter(_flat(name), nn.Parameter(value.detach().clone()))
        for name, value in buffers.items():
            self.register_buffer(_flat(name), value.detach().clone())
        # A list keeps the skeleton out of the parameters of this module.
        self._skeleton = [copy.deepcopy(networks[0]).to("meta")]
        for layer in self._skeleton[0].modules():
            if type(layer) is nn.Linear:
                layer.__class__ = _Linear

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Outputs [G, B, K] of inputs [G, B, ...], each network its own batch."""
        weights, buffers = ({name: getattr(self, _flat(name)) for name in names} for names in self._names)

        def one(weights, buffers, x):
            return functional_call(self._skeleton[0], (weights, buffers), (x,))

        return vmap(one, randomness="error")(weights, buffers, x)

    def train(self, mode: bool = True) -> Stacked:
        self._skeleton[0].train(mode)
        return super().train(mode)

    def states(self) -> list[dict[str, torch.Tensor]]:
        """The `state_dict` of each network, on the CPU."""
        found = {name: getattr(self, _flat(name)).detach().cpu() for names in self._names for name in names}
        return [{name: value[g].clone() for name, value in found.items()} for g in range(self.networks)]


class _Linear(nn.Linear):
    """The layer as W x' instead of x W': batched products of many rows with few columns are several times as slow on a CPU,
    their gradients above all."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = (self.weight @ x.mT).mT
        return product if self.bias is None else product + self.bias


def _flat(name: str) -> str:
    return name.replace(".", "__")  # a registered name must not hold a dot
