"""What score functions share: the declared threat model, the checks of their arguments, and work in blocks of records."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from mia_lib.checks import are_probabilities, check_finite, check_mask, check_numbers, check_order
from mia_lib.errors import MiaError, check_choice

ACCESS = ("label", "loss", "output vector", "parameters")
REFERENCES = ("none", "out only", "in and out")

# Reference signals in a block: a thread's few temporaries of that size stay in its core's cache.
CELLS = 1 << 16
# Values of a row, from which on two equal rows are no chance: two models do not agree in them to the last bit.
DISTINCT = 5
OWN = ("refuse", "keep")
SAMPLE = 2000  # records that tell whether a signal is higher or lower for members
WRONG_SIGN_ERRORS = 8.0  # standard errors; what is noise does not go so far
# At most; NumPy lets other threads run while it sorts or adds, but memory is soon the limit.
THREADS = 4


@dataclass(frozen=True)
class Needs:
    """The threat model of an attack: its access to the target, one of `ACCESS`; the models that the
    attacker trained, one of `REFERENCES`; and what else the attacker knows."""

    access: str
    references: str
    knows: str


def needs(access: str, references: str, knows: str) -> Callable:
    """Declare the threat model of an attack, kept as the function's attribute `needs`."""
    declared = Needs(
        check_choice("access", access, ACCESS),
        check_choice("references", references, REFERENCES),
        knows,
    )

    def mark(function: Callable) -> Callable:
        function.needs = declared  # type: ignore[attr-defined]
        return function

    return mark


def threat_model(attacks: dict[str, Callable | Needs]):
    """The threat-model table of a chapter, a row for each attack: access to the target, reference
    models, other knowledge. It is made of score functions marked with `needs`; for an attack whose
    score is a signal as it is, give its `Needs`."""
    import pandas as pd

    rows = []
    for name, attack in attacks.items():
        has = attack if isinstance(attack, Needs) else attack.needs  # type: ignore[attr-defined]
        rows.append((name, has.access, has.references, has.knows))
    columns = ["attack", "access to the target", "reference models", "also knows"]
    return pd.DataFrame(rows, columns=columns)


def check_references(
    signal: np.ndarray,
    reference_signal: np.ndarray,
    reference_members: np.ndarray,
    views: bool = False,
    names: Sequence[str] = ("signal", "reference_signal"),
    own: str = "refuse",
) -> tuple[np.ndarray, ...]:
    """The arrays of `check_signals`, and the membership of the references, bool [R, N]; anything
    but such a mask is refused."""
    given = dict(zip(names, (signal, reference_signal), strict=True))
    check_order(-1, **given, reference_members=reference_members)
    signal, reference_signal = check_signals(signal, reference_signal, views, names, own)
    reference_members = np.atleast_2d(check_mask("reference_members", reference_members))
    if reference_members.shape != reference_signal.shape[:2]:
        raise MiaError(
            f"reference_members has shape {reference_members.shape}, {names[1]} {reference_signal.shape}: they "
            "must agree in references and records."
        )
    return signal, reference_signal, reference_members


def check_signals(
    signal: np.ndarray,
    reference_signal: np.ndarray,
    views: bool = False,
    names: Sequence[str] = ("signal", "reference_signal"),
    own: str = "refuse",
) -> tuple[np.ndarray, np.ndarray]:
    """Arrays of matching shape: signal [N], references [R, N].

    Args:
        signal, reference_signal: with `views`, where the attack can take A augmented views of a record, also [N, A] and
            [R, N, A]. names: of both, for messages.
        own: what to do where the target is among its references: "refuse" or "keep" it.

    Raises:
        MiaError: shapes differ, there is no reference, a signal is not a number, the target is one of its own references,
            or class probabilities stand where views belong.
    """
    check_choice("own", own, OWN)
    check_order(-1, **dict(zip(names, (signal, reference_signal), strict=True)))
    signal, reference_signal = (
        check_numbers(*each) for each in zip(names, (signal, reference_signal), strict=True)
    )
    reference_signal = np.atleast_2d(reference_signal)
    if (
        signal.ndim not in (1, 1 + views)
        or reference_signal.shape[1:] != signal.shape
        or not len(reference_signal)
    ):
        or_views = " (or [N, A] and [R, N, A] for A views)" if views else ""
        raise MiaError(
            f"{names[0]}, of the target, has shape {signal.shape} and {names[1]} {reference_signal.shape}: "
            f"[N] and [R, N]{or_views} with R >= 1 are needed."
        )
    if signal.ndim == 2 and are_probabilities(signal):
        raise MiaError(
            f"{names[0]} of shape {signal.shape} holds probabilities of {signal.shape[1]} classes where views of a "
            "record belong. Give one number a record, such as signals.from_probabilities(probabilities, labels)"
            "['logit_scaled_confidence']."
        )
    check_finite(
        names[0],
        signal,
        "records",
        f"An attack cannot rank them: leave these records out of {names[0]}, "
        f"{names[1]} and members alike.",
    )
    check_finite(
        names[1],
        reference_signal,
        "references",
        "Leave those references out, if their training diverged; or the "
        f"records concerned, of {names[0]}, {names[1]} and members alike.",
    )
    if own == "refuse":
        check_own(signal, reference_signal, names)
    return signal, reference_signal


def check_own(
    signal: np.ndarray,
    reference_signal: np.ndarray,
    names: Sequence[str] = ("signal", "reference_signal"),
) -> None:
    """Refuse a target that is among its own references, of signals [N, ...] and [R, N, ...].

    Its signal is then one of those that it is compared with, and its membership one of those that the attacker is told. Told
    by a row that equals the target's, if it has at least `DISTINCT` different values; compared in the lesser of the two
    precisions.
    """
    kinds = signal.dtype, reference_signal.dtype
    floats = all(dtype.kind == "f" for dtype in kinds)
    kind = min(kinds, key=lambda dtype: dtype.itemsize) if floats else np.result_type(*kinds)
    own = signal.astype(kind, copy=False)
    head = (
        (reference_signal[:, :64].astype(kind) == own[:64])
        .reshape(len(reference_signal), -1)
        .all(1)
    )
    same = [
        int(row)
        for row in np.flatnonzero(head)
        if np.array_equal(reference_signal[row].astype(kind), own)
    ]
    if same and len(np.unique(own)) >= DISTINCT:
        raise MiaError(
            f"{names[1]}: row {same[0]} equals {names[0]} in all {len(signal)} records, so the target is among its "
            "own references and its membership is given away. Leave that row out of the signals and of "
            "reference_members, as membership.references_of does in a balanced bank."
        )


def check_loss(argument: str, loss: np.ndarray) -> np.ndarray:
    """A loss [...] as an array. A warning is given if it is nowhere above zero, for it then looks
    like a score, which is higher for members."""
    loss = check_numbers(argument, loss)
    if loss.size and loss.max() <= 0 and loss.min() < 0:
        warnings.warn(
            f"{argument} is nowhere above 0 (it runs from {loss.min():.4g} to {loss.max():.4g}), as no loss of "
            "`losses.LOSSES` is: a loss, lower for members, is wanted. Of a score, higher for members, give its "
            "negative.",
            UserWarning,
            stacklevel=3,
        )
    return loss


def check_direction(
    reference_signal: np.ndarray, reference_members: np.ndarray, argument: str, higher: bool
) -> None:
    """Warn where the references say that a signal has the wrong sign.

    The same record's signals under references trained on it and under the others are compared, over at most `SAMPLE` records,
    after each reference's mean is taken away. A mean difference of `WRONG_SIGN_ERRORS` standard
    errors the wrong way is no noise.

    Args:
        reference_signal, reference_members: [R, N]. argument: name of the first, for the message.
        higher: whether the signal is meant to be higher for members.
    """
    step = -(-reference_members.shape[1] // SAMPLE)
    values, members = reference_signal[:, ::step].astype(np.float64), reference_members[:, ::step]
    values -= values.mean(1, keepdims=True)
    count = members.sum(0)
    both = (count > 0) & (count < len(members))
    if both.sum() < 20:
        return
    values, members, count = values[:, both], members[:, both], count[both]
    difference = (values * members).sum(0) / count - (values * ~members).sum(0) / (
        len(members) - count
    )
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    if (-difference if higher else difference).mean() > max(
        WRONG_SIGN_ERRORS * error, 1e-6 * np.abs(values).max()
    ):  # beyond noise and rounding
        kind, other = ("higher", "lower") if higher else ("lower", "higher")
        warnings.warn(
            f"{argument} is {other} under references trained on a record (by {abs(difference.mean()):.3g} on average, "
            f"more than {WRONG_SIGN_ERRORS:g} standard errors), where {kind} is wanted for members. Give the negative of both "
            "signals.",
            UserWarning,
            stacklevel=3,
        )


def check_present(reference_members: np.ndarray, what: str, out: int = 1, inside: int = 0) -> None:
    """Refuse records with fewer references than `what` needs, by masks [R, N]; the error says how
    many records these are. Needed are `out` references that were not trained on the record and
    `inside` that were, 0, 1 or 2 of each."""
    references, records = reference_members.shape
    trained = reference_members.sum(0)
    for kind, count, least in (
        ("left it out", references - trained, out),
        ("was trained on it", trained, inside),
    ):
        lacking = int((count < least).sum())
        if lacking:
            none = "no reference" if least == 1 else "at most one reference"
            raise MiaError(
                f"{lacking} of {records} records have {none} that {kind}; {what} needs {least}. "
                "Use membership.balanced_halves, or more references."
            )


def in_blocks(function: Callable, *arrays: np.ndarray):
    """Apply `function` to a few records at a time, several blocks at once, and join what it returns.

    An attack treats each record by itself, so blocks change nothing but the memory: however many records there are,
    its temporaries are those of `CELLS` signals a thread.

    Args:
        function: of blocks [R, n, ...] of the arrays, in their order; returns an array [n, ...] or a tuple of such.
        arrays: [R, N, ...] with the records on the second axis; the first array sets the size of a block.
    """
    size, records = arrays[0].size, arrays[0].shape[1]
    width = max(1, CELLS * records // max(1, size))
    starts = range(0, records, width)
    if len(starts) < 2:
        return function(*arrays)
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    with ThreadPoolExecutor(min(THREADS, cores)) as pool:
        parts = list(
            pool.map(lambda start: function(*(a[:, start : start + width] for a in arrays)), starts)
        )
    if isinstance(parts[0], tuple):
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))
    return np.concatenate(parts)
