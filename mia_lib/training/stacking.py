"""Several equal networks as one.

A small network leaves most of a machine idle: starting an operation takes longer than carrying it out. G networks with
their weights stacked run the same operations once for all, with matrix products batched and convolutions grouped. Each
keeps its own weights, statistics of batch normalisation and dropout masks, so the sum of their losses has for gradient
the gradient of each.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from mia_lib import custom
from mia_lib import models as architectures


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
            layer.__class__ = {nn.Linear: _Linear, nn.BatchNorm2d: _BatchNorm2d}.get(
                type(layer), type(layer)
            )

    def forward(self, x: torch.Tensor, shared: bool = False) -> torch.Tensor:
        """Outputs [G, B, K] of inputs [G, B, ...], each network its own batch; or, `shared`, of one batch [B, ...] for all,
        which is several times as fast."""
        weights, buffers = (
            {name: getattr(self, _flat(name)) for name in names} for names in self._names
        )

        def apply(weights, buffers, x):
            return functional_call(self._skeleton[0], (weights, buffers), (x,))

        places = (0, 0, None if shared else 0)
        return vmap(apply, places, randomness="error")(weights, buffers, x)

    def train(self, mode: bool = True) -> Stacked:
        self._skeleton[0].train(mode)
        return super().train(mode)

    def states(self) -> list[dict[str, torch.Tensor]]:
        """The `state_dict` of each network, on the CPU."""
        values = {
            name: getattr(self, _flat(name)).detach().cpu()
            for names in self._names
            for name in names
        }
        return [
            {name: value[g].clone() for name, value in values.items()} for g in range(self.networks)
        ]


class _Linear(nn.Linear):
    """Linear layer as W x' instead of x W': batched products of many rows with few columns are
    several times as slow on a CPU, their gradients above all."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = (self.weight @ x.mT).mT
        return product if self.bias is None else product + self.bias


class _BatchNorm2d(nn.BatchNorm2d):
    """Batch normalisation in float32: on a card, PyTorch does not differentiate it for several
    networks at once if numbers are short and statistics long."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.float() if x.dtype == torch.bfloat16 else x)


def _flat(name: str) -> str:
    return name.replace(".", "__")  # a registered name must not hold a dot


@lru_cache
def stackable(architecture: str, shape: tuple, classes: int) -> bool:
    """True if networks compute stacked what they compute one by one.

    Those of `models.build` do. Two of the user's own are tried with three records each, as they are trained and as they are
    asked: outputs, gradients and all that they hold afterwards must agree. What cannot be stacked is trained one by one.
    """
    if not custom.is_own(architecture):
        return True
    networks = [architectures.build(architecture, shape, classes, seed=seed) for seed in (0, 1)]
    if not all(weight.requires_grad for weight in networks[0].parameters()):
        return False  # a stack would train them
    size = (2, 3, shape[2], *shape[:2]) if len(shape) == 3 else (2, 3, *shape)
    x = torch.rand(size, generator=torch.Generator().manual_seed(0)) - 0.5
    try:
        together = Stacked(networks).train()
        stacked = [together(x)]
        stacked[0].square().sum().backward()
        states = together.states()
        stacked.append(together.eval()(x))
        gradients = {name: getattr(together, _flat(name)).grad for name in together._names[0]}
    except Exception:  # whatever its code does that cannot be mapped over several
        return False
    for g, network in enumerate(networks):
        alone = [network(x[g])]
        alone[0].square().sum().backward()
        state = {name: value.clone() for name, value in network.state_dict().items()}
        alone.append(network.eval()(x[g]))
        own = {name: weight.grad for name, weight in network.named_parameters()}
        theirs = {name: value if value is None else value[g] for name, value in gradients.items()}
        pairs = [
            *((a, b[g]) for a, b in zip(alone, stacked, strict=True)),
            *((own[name], theirs[name]) for name in own),
            *((state[name], states[g].get(name)) for name in state),
        ]
        if set(state) != set(states[g]) or not all(_agree(a, b) for a, b in pairs):
            return False
    return True


def _agree(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    if a is None or b is None:
        return a is b or not (a if b is None else b).any()
    return a.shape == b.shape and torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-5)
