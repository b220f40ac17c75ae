"""Devices: where arrays live, and how much of them is handled at a time."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from contextlib import contextmanager

import torch

from mia_lib import environment
from mia_lib.errors import MiaError, brief


def pick(device: str | int | None = None) -> torch.device:
    """The device to compute on.

    Args:
        device: "cpu", "cuda", "cuda:1" or 1, the number of a card; None for `$MIA_DEVICE`, or else a graphics card where there
            is one.

    Raises:
        MiaError: any other name, or CUDA on a machine without it.
    """
    argument, name = ("MIA_DEVICE", environment.device()) if device is None else ("device", device)
    if device is None and not name:
        return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    name = f"cuda:{name}" if str(name).isdecimal() else str(name)
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (number and not (kind == "cuda" and number.isdecimal())):
        raise MiaError(
            f"{argument} = {brief(name)}: allowed are 'cpu', 'cuda', 'cuda:NUMBER' and the number of a card."
        )
    if kind == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        why = (
            "PyTorch was built without it"
            if torch.version.cuda is None
            else "PyTorch finds no NVIDIA driver or card"
        )
        raise MiaError(
            f"{argument} = {name!r}, but there is no CUDA here: {why}. Say 'cpu', or leave it out."
        )
    if number and int(number) >= torch.cuda.device_count():
        raise MiaError(
            f"{argument} = {name!r}: this machine has {torch.cuda.device_count()} card(s), counted from 0."
        )
    return torch.device("cuda", int(number or 0))


def is_card(device: torch.device) -> bool:
    """True if a device has a memory and a queue of its own: work for it is best sent in large
    pieces and without waiting."""
    return device.type != "cpu"


def replays(device: torch.device) -> bool:
    """True if a device can record work and replay it (CUDA graphs)."""
    return device.type == "cuda"


def wait(device: torch.device) -> None:
    """Wait until a card has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def free_memory(device: torch.device) -> int:
    """Bytes that are free on a device."""
    if device.type == "cuda":
        release()
        return torch.cuda.mem_get_info(device)[0]
    import psutil

    return psutil.virtual_memory().available


def describe(device: torch.device) -> str:
    """The device in words, for manifests and pages."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{os.cpu_count()} CPU cores ({platform.machine()})"


_NO_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "ALLOC_FAILED",
    "HOST_ALLOCATION_FAILED",
    "unable to find an engine",
)


def out_of_memory(error: BaseException) -> bool:
    """True if an error says that the device, or the machine, has no memory left."""
    return isinstance(error, torch.cuda.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)
    )


def release() -> None:
    """Hand memory that PyTorch keeps in reserve back to the card."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def stream(function: Callable, count: int, batch: int) -> list:
    """`function(start, stop)` on one slice of `range(count)` after the other.

    Where memory runs out the slice is halved and the work goes on with the smaller size; where it does on a single record,
    that is an error. A list of what the function returned, in order.
    """
    parts, start = [], 0
    while start < count:
        stop = min(count, start + batch)
        try:
            parts.append(function(start, stop))
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            if stop - start == 1:
                raise MiaError(
                    f"Memory ran out on a single record (number {start} of {count}): use a smaller network, fewer "
                    "probes, or a device with more memory."
                ) from error
            batch = (stop - start + 1) // 2
        else:
            start = stop
            continue
        release()  # outside `except`, where the traceback would keep the tensors alive
    return parts


@contextmanager
def plain_float32(tf32: bool = False):
    """Within the block, compute sums and products in true float32: the short TF32 format of newer
    cards would set them apart from the CPU. With `tf32` they are in that format, for a recipe that
    asks for it."""
    # newer versions of PyTorch refuse a mixture of this and the older way
    if hasattr(torch.backends.cudnn, "conv"):
        switches = [torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn]
        name, wanted = "fp32_precision", "tf32" if tf32 else "ieee"
    else:
        switches = [torch.backends.cuda.matmul, torch.backends.cudnn]
        name = "allow_tf32"
        wanted = tf32
    before = [getattr(switch, name) for switch in switches]
    for switch in switches:
        setattr(switch, name, wanted)
    try:
        yield
    finally:
        for switch, value in zip(switches, before, strict=True):
            setattr(switch, name, value)
