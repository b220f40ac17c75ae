"""Score functions, one module a paper. Higher = more likely a member.

A scorer never sees the target's membership. What it needs besides is declared with `needs` and printed in the book's
threat-model tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mia_lib.errors import MiaError, choose

ACCESS = ("label", "loss", "output vector", "parameters")
REFERENCES = ("none", "out only", "in and out")


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


def check_references(signal: np.ndarray, reference_signal: np.ndarray,
                     reference_members: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Arrays of matching shape: signal [N], references [R, N] and, when given, their membership bool [R, N].

    Raises:
        MiaError: shapes differ, there is no reference, or a signal is not a number.
    """
    signal, reference_signal = np.asarray(signal), np.atleast_2d(reference_signal)
    if signal.ndim != 1 or reference_signal.shape[1:] != signal.shape or not len(reference_signal):
        raise MiaError(f"the target's signal has shape {signal.shape} and the references' {reference_signal.shape}: "
                       "[N] and [R, N] with R >= 1 are needed.")
    if not (np.isfinite(signal).all() and np.isfinite(reference_signal).all()):
        raise MiaError("the signals hold values that are not finite numbers; attacks cannot rank them.")
    if reference_members is None:
        return signal, reference_signal
    reference_members = np.atleast_2d(np.asarray(reference_members, bool))
    if reference_members.shape != reference_signal.shape:
        raise MiaError(f"reference_members has shape {reference_members.shape}, reference signals "
                       f"{reference_signal.shape}: they must agree.")
    return signal, reference_signal, reference_members
