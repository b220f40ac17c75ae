"""A graphics card that is not there: a device of its own whose tensors hold their numbers in the memory of the processor.

PyTorch treats `card:0` as any device: factories, `.to`, autograd, `torch.func` and fused optimisers go there. Operations are
computed on the processor, so results are real. Refused, as by a card: tensors of which some were left on the CPU, a generator
of the CPU, products of whole numbers, and types that the test names. Whatever makes the host wait (`.item()`, `.cpu()`,
`nonzero`, a mask for an index) is counted in `syncs`, and each tensor sent to the card in `sent`. What is not here: CUDA
graphs, streams, other rounding, memory that runs out.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

from mia_lib.errors import MiaError
from mia_lib.training import devices

COPIES = {"copy_", "_to_copy", "_copy_from"}
WAITS = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "_unique2",
    "unique_dim",
    "equal",
    "is_nonzero",
}
PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "mv", "dot", "convolution"}


class _Module(_DummyBackendModule):
    def get_amp_supported_dtype(self):
        return [torch.bfloat16, torch.float16]


_setup_privateuseone_for_python_backend("card", _Module())
DEVICE = torch.device("card", 0)
_rules = torch.library.Library("_", "IMPL")
# bfloat16 is left to cards that have it
_rules.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")


class Card(torch.Tensor):
    """A tensor on the card; `on_host` is a tensor of the CPU of the same shape and strides."""

    @staticmethod
    def __new__(cls, on_host: torch.Tensor):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            on_host.shape,
            strides=on_host.stride(),
            dtype=on_host.dtype,
            device=DEVICE,
            storage_offset=on_host.storage_offset(),
        )

    def __init__(self, on_host: torch.Tensor):
        self.on_host = on_host

    @classmethod
    def __torch_dispatch__(cls, operation, types, arguments=(), named=None):
        return _run(operation, arguments, named or {}, None)


class Fake(TorchDispatchMode):
    """While this is on, `card:0` is there."""

    def __init__(self, refused: tuple[torch.dtype, ...] = ()):
        super().__init__()
        self.refused, self.syncs, self.sent = refused, Counter(), Counter()

    def __torch_dispatch__(self, operation, types, arguments=(), named=None):
        return _run(operation, arguments, named or {}, self)


_on: list[Fake] = []


def _each_tensor(function: Callable, value):
    """`function` of each tensor in what an operation takes or gives: one, or sequences of them."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, tuple | list):
        return type(value)([_each_tensor(function, one) for one in value])
    return value


def _run(operation, arguments: tuple, named: dict, mode: Fake | None):
    mode, name = mode or _on[-1], operation.overloadpacket.__name__
    tensors: list[torch.Tensor] = []
    _each_tensor(tensors.append, (arguments, *named.values()))
    here = [one for one in tensors if not isinstance(one, Card)]
    target = named.get("device")
    if len(here) == len(tensors) and (target is None or torch.device(target).type != "card"):
        return operation(*arguments, **named)
    leaves = target is not None and torch.device(target).type == "cpu"
    comes = target is not None and not leaves and bool(here) and len(here) == len(tensors)
    copies = name in COPIES
    if copies and name == "copy_" and here:
        leaves, comes = arguments[0] is here[0], arguments[0] is not here[0]
    if not copies and len(here) < len(tensors) and any(one.ndim for one in here):
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found card:0 and cpu in {operation}"
        )
    if isinstance(named.get("generator"), torch.Generator):
        raise RuntimeError(
            f"Expected a 'card' device type for generator but found 'cpu' in {operation}"
        )
    if name in PRODUCTS and not all(one.is_floating_point() for one in tensors):
        raise NotImplementedError(f'"{name}" is not implemented on a card for whole numbers')
    masks = name.startswith("index") and any(
        isinstance(one, torch.Tensor) and one.dtype in (torch.bool, torch.uint8)
        for one in (
            arguments[1] if len(arguments) > 1 and isinstance(arguments[1], list | tuple) else ()
        )
    )
    if leaves or name in WAITS or masks:
        mode.syncs[name] += 1
    if comes:
        mode.sent[name] += 1
    by_host = {id(one.on_host): one for one in tensors if isinstance(one, Card)}

    def of_the_processor(one: torch.Tensor) -> torch.Tensor:
        return one.on_host if isinstance(one, Card) else one

    given = _each_tensor(of_the_processor, arguments)
    options = {name: _each_tensor(of_the_processor, value) for name, value in named.items()}
    if target is not None:
        options = {**options, "device": torch.device("cpu")}
    if name == "_to_copy" and (leaves or comes):  # both are on the CPU, but a copy is one
        found = operation(*given, **options).clone(memory_format=torch.preserve_format)
    elif name == "_efficientzerotensor":
        # of forward derivatives; it has no numbers that an operation could read
        found = torch.zeros(*given, **options)
    else:
        found = operation(*given, **options)

    def back(one: torch.Tensor) -> torch.Tensor:
        if id(one) in by_host:
            same = by_host[id(one)]
            assert same.shape == one.shape, (
                f"{operation} changes the shape of a tensor, which is not supported here"
            )
            return same
        if leaves:
            return one
        if one.dtype in mode.refused:
            raise TypeError(
                f"Cannot compute {operation} as {one.dtype}: this card does not have it"
            )
        return Card(one)

    return _each_tensor(back, found)


def _empty_strided(size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
    return Card(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))


def _copy_from(source, target, non_blocking=False):
    target.on_host.copy_(source)
    _on[-1].sent["tensor"] += 1
    return target


_card = torch.library.Library("aten", "IMPL")  # `torch.tensor` asks the device itself
_card.impl("empty_strided", _empty_strided, "PrivateUse1")
_card.impl("_copy_from", _copy_from, "PrivateUse1")


@contextmanager
def fake(patch, refused: tuple[torch.dtype, ...] = ()):
    """A machine with one such card, which `devices.pick` finds and which refuses some types; yields the `Fake` that counts."""

    def pick(device: str | None = None) -> torch.device:
        if device not in (None, "cpu", "cuda", "cuda:0"):
            raise MiaError(f"device = {device!r}")
        return torch.device("cpu") if (device or os.environ.get("MIA_DEVICE")) == "cpu" else DEVICE

    with patch.context() as mine, Fake(refused) as mode:
        mine.setattr(devices, "pick", pick)
        mine.delenv("MIA_DEVICE", raising=False)
        # `module.to` would change what a wrapper says of itself, and not what it holds.
        before = torch.__future__.get_overwrite_module_params_on_conversion()
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        _on.append(mode)
        try:
            yield mode
        finally:
            _on.pop()
            torch.__future__.set_overwrite_module_params_on_conversion(before)
