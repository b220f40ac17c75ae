"""Score functions, one module a paper. Higher = more likely a member.

A scorer never sees the target's membership. What it needs besides is declared with `needs` and printed in the book's
threat-model tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from mia_lib.errors import MiaError, choose

ACCESS = ("label", "loss", "output vector", "parameters")
REFERENCES = ("none", "out only", "in and out")

CELLS = 1 << 16  # reference signals in a block: a thread's few temporaries of that size stay in its core's cache
THREADS = 4  # at most; NumPy lets other threads run while it sorts or adds, but memory is soon the limit


@dataclass(frozen=True)
class Needs:
    """What an attack has.

    Attributes:
        access: to the target model; one of `ACCESS`.
        references: models trained by the attacker; one of `REFERENCES`.
        knows: whatever else.
    """

    access: str
    references: str
    knows: str


def needs(access: str, references: str, knows: str) -> Callable:
    """Declare what an attack has; kept as the function's attribute `needs`."""
    declared = Needs(choose("access", access, ACCESS), choose("references", references, REFERENCES), knows)

    def mark(function: Callable) -> Callable:
        function.needs = declared
        return function

    return mark


def threat_model(attacks: dict[str, Callable]):
    """The threat-model table of a chapter.

    Args:
        attacks: name -> score function marked with `needs`.

    Returns:
        DataFrame, a row an attack: access to the target, references, other knowledge.
    """
    import pandas as pd

    rows = [{"attack": name, "access to the target": f.needs.access, "reference models": f.needs.references,
             "also knows": f.needs.knows} for name, f in attacks.items()]
    return pd.DataFrame(rows)


def check_references(signal: np.ndarray, reference_signal: np.ndarray, reference_members: np.ndarray | None = None,
                     views: bool = False) -> tuple[np.ndarray, ...]:
    """Arrays of matching shape: signal [N], references [R, N] and, when given, their membership bool [R, N].

    Args:
        signal: [N]; with `views` also [N, A] for A augmented views of a record.
        reference_signal: [R, N], or [R, N, A].
        reference_members: [R, N] in either case.
        views: whether the attack can take them.

    Raises:
        MiaError: shapes differ, there is no reference, or a signal is not a number.
    """
    signal, reference_signal = np.asarray(signal), np.atleast_2d(reference_signal)
    if (signal.ndim not in (1, 1 + views) or reference_signal.shape[1:] != signal.shape or not len(reference_signal)):
        or_views = " (or [N, A] and [R, N, A] for A views)" if views else ""
        raise MiaError(f"the target's signal has shape {signal.shape} and the references' {reference_signal.shape}: "
                       f"[N] and [R, N]{or_views} with R >= 1 are needed.")
    if not (np.isfinite(signal).all() and np.isfinite(reference_signal).all()):
        raise MiaError("the signals hold values that are not finite numbers; attacks cannot rank them.")
    if reference_members is None:
        return signal, reference_signal
    reference_members = np.atleast_2d(np.asarray(reference_members, bool))
    if reference_members.shape != reference_signal.shape[:2]:
        raise MiaError(f"reference_members has shape {reference_members.shape}, reference signals "
                       f"{reference_signal.shape}: they must agree in references and records.")
    return signal, reference_signal, reference_members


def check_present(reference_members: np.ndarray, what: str, out: int = 1, inside: int = 0) -> None:
    """Refuse records with too few references of a kind.

    Args:
        reference_members: bool [R, N].
        what: needs them; for the message.
        out: references that each record must have been left out of; 0, 1 or 2.
        inside: references that must have been trained on it; 0, 1 or 2.

    Raises:
        MiaError: there are such records; it counts them.
    """
    references, records = reference_members.shape
    trained = reference_members.sum(0)
    for kind, count, least in (("left it out", references - trained, out), ("was trained on it", trained, inside)):
        lacking = int((count < least).sum())
        if lacking:
            none = "no reference" if least == 1 else "at most one reference"
            raise MiaError(f"{lacking} of {records} records have {none} that {kind}; {what} needs {least}. "
                           "Use membership.balanced_halves, or more references.")


def in_blocks(function: Callable, *arrays: np.ndarray):
    """Apply `function` to a few records at a time, several blocks at once, and join what it returns.

    An attack treats each record by itself, so blocks change nothing but the memory: however many records there are,
    its temporaries are those of `CELLS` signals a thread.

    Args:
        function: of blocks [R, n, ...] of the arrays, in their order; returns an array [n, ...] or a tuple of such.
        arrays: [R, N, ...] with the records on the second axis; the first array sets the size of a block.

    Returns:
        What `function` returns, for all N records.
    """
    size, records = arrays[0].size, arrays[0].shape[1]
    width = max(1, CELLS * records // max(1, size))
    starts = range(0, records, width)
    if len(starts) < 2:
        return function(*arrays)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(min(THREADS, cores)) as pool:
        parts = list(pool.map(lambda start: function(*(a[:, start:start + width] for a in arrays)), starts))
    if isinstance(parts[0], tuple):
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))
    return np.concatenate(parts)
