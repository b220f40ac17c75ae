"""One error for bad input: it names the argument, what was given, what is allowed and what to do."""

from __future__ import annotations

import difflib
import errno
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel

# errors that say what failed in words for people; `publish` has them
FAILURES = ("NotebookFailed", "BookFailed")
# bytes
MEMORY = (
    os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**40
)


class MiaError(ValueError):
    """Input that cannot be used, said before any work starts."""


def list_few(names: Iterable) -> str:
    """Up to five names, and how many more there are."""
    names = [str(name) for name in names]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def first_line(problem: BaseException) -> str:
    """First line of what an error says, at most 200 letters; its type where it says nothing."""
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0][:200]


def explain(problem: BaseException) -> str:
    """Message about one part of several that failed, by whatever error, while the others go on: a
    sentence that was written for people as it is, of any other error its type and first line."""
    spoken = isinstance(problem, MiaError) or type(problem).__name__ in FAILURES
    return str(problem) if spoken else f"{type(problem).__name__}: {first_line(problem)}"


def is_full(problem: BaseException) -> bool:
    """True if an error says that there is no room on a disk."""
    return isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def attempt(failed: list[Exception]) -> Iterator[None]:
    """Run the block as one part of several: whatever error it raises is put into `failed`, and what
    comes after goes on."""
    try:
        yield
    except Exception as problem:
        failed.append(problem)


def brief(value) -> str:
    """A value as an error shows it: one line, however long an array is."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        text = (
            f"a number of {value.bit_length():,} bits"
            if isinstance(value, int)
            else f"a {type(value).__name__}"
        )
    return text if len(text) <= 80 else f"{text[:77]}..."


@contextmanager
def refusals(model: type[BaseModel], where: str = "") -> Iterator[None]:
    """Within the block, what a pydantic model refuses is a `MiaError`: of the first field that cannot be used the name, what
    was given, what is allowed and the field's description.

    Args:
        model: the pydantic model. where: how the message begins, such as "entry 2 of queue.yaml: ".
    """
    from pydantic import ValidationError

    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        place = list(first["loc"])
        if first["type"] == "extra_forbidden" and len(place) == 1:
            check_choice(f"{where}field", place[0], model.model_fields)
        while place and isinstance(place[-1], int):  # items of a list are shown themselves
            place.pop()
        text = str(first.get("ctx", {}).get("error", first["msg"])).rstrip(".")
        name = ".".join(map(str, place))
        if name and not text.startswith(f"{name} = "):
            given = "" if first["type"] == "missing" else f" = {brief(first['input'])}"
            text = f"{name}{given}: {text}"
        field = model.model_fields.get(str(place[0])) if place else None
        meaning = (field and field.description or "").split()
        raise MiaError(" ".join([f"{where}{text}.", *meaning])) from error


def validated(model: type[BaseModel], values, where: str = ""):
    """`values` as an instance of a pydantic model; what it refuses raises `MiaError`, see `refusals`."""
    with refusals(model, where):
        return model.model_validate(values)


def check_type(argument: str, value, kind: type, remedy: str = ""):
    """Return `value` when it is of a type; otherwise a `MiaError` says which one is needed, and then the remedy."""
    if not isinstance(value, kind):
        raise MiaError(
            f"{argument} is of type {type(value).__name__}: {kind.__name__} is needed.{remedy and ' '}{remedy}"
        )
    return value


def check_choice(argument: str, given, allowed: Iterable[str]) -> str:
    """Return `given` when it is one of `allowed`.

    Raises:
        MiaError: otherwise, with the nearest allowed name.
    """
    allowed = list(allowed)
    if not getattr(given, "shape", ()) and given in allowed:  # an array has no one truth
        return given
    names = [str(a) for a in allowed]
    near = difflib.get_close_matches(str(given)[:80], names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if any("," in name for name in names):  # quotes show where a name ends
        names = [repr(name) for name in names]
    raise MiaError(f"{argument} = {brief(given)} is not known.{hint} Allowed: {', '.join(names)}.")


def check_whole(argument: str, value, low=None, high=None) -> int:
    """`check_range` for whole numbers, of Python or NumPy; 3.0 is none.

    Raises:
        MiaError: otherwise.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise MiaError(
            f"{argument} = {brief(value)}: a whole number is needed{', without quotes' * isinstance(value, str)}."
        )
    return int(check_range(argument, value, low, high))


def check_count(argument: str, value, low: int = 1, each: int = 8) -> int:
    """`check_whole` for a count of things that take `each` bytes each, those of a number where
    nothing larger is kept: what does not fit into the memory of this machine is refused, and runs
    neither for ever nor into a `MemoryError`."""
    most = MEMORY // max(1, each)
    if check_whole(argument, value, low) > most:
        raise MiaError(
            f"{argument} = {brief(value)} is more than fits into this machine's memory: allowed is up to {most}."
        )
    return int(value)


def check_once(argument: str, values: Iterable) -> None:
    """Refuse what is named twice, where each would count."""
    if twice := [name for name, times in Counter(map(str, values)).items() if times > 1]:
        raise MiaError(f"{argument} has {list_few(twice)} more than once: give each once.")


def check_range(argument: str, value, low=None, high=None):
    """Return `value` when it is a number with `low <= value <= high` (a bound of None is open).

    Raises:
        MiaError: otherwise; text, True and False are no numbers.
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        text = isinstance(value, str)
        raise MiaError(
            f"{argument} = {brief(value)} is {'text' if text else 'no number'}: a number is needed"
            f"{', without quotes' * text}."
        )
    if (low is not None and value < low) or (high is not None and value > high) or value != value:
        span = (
            "any number but NaN"
            if low is None and high is None
            else (
                f"from {low} to {high}"
                if low is not None and high is not None
                else f"at least {low}"
                if high is None
                else f"at most {high}"
            )
        )
        raise MiaError(f"{argument} = {brief(value)} is out of range: allowed is {span}.")
    return value
