"""Checks of arrays that many functions are given, and the types by which annotations call them: who
is a member, which class, whether these are probabilities.

Each check says what was given and what to do before any work starts. It costs one look at the array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mia_lib.errors import MiaError, brief

Scores: TypeAlias = npt.ArrayLike  # float [N] or [T, N], higher = more likely a member
Members: TypeAlias = npt.ArrayLike  # bool [N] or [T, N]
Numbers: TypeAlias = npt.ArrayLike  # of a shape that the docstring says
Indices: TypeAlias = npt.ArrayLike | None  # int, or what goes without
# a float for scores [N], an array [T] for [T, N]: which, only the shape says
PerTarget: TypeAlias = Any
Metric: TypeAlias = Callable[..., Any] | str  # a metric of `mia_lib.metrics`, or its name
MetricNames: TypeAlias = Sequence[str]
Labels: TypeAlias = Any  # int [N], an array or a tensor, or None
Records: TypeAlias = Any  # an array or a tensor, [N, ...]
Gradients: TypeAlias = np.ndarray | Iterable[np.ndarray]  # [N, P], or blocks [B, P] of it
# [P, P], or an object with `vectors` [P, P] and `weights` [P], or several of these
Inverse: TypeAlias = Any
Regressor: TypeAlias = Any  # settings of a network or of trees

ROUNDED = 0.1 + 1e-6  # that a row's sum of rounded probabilities may be from 1
ALL_KINDS = "biufcmMOSUV"  # kinds of NumPy types
MOST_LABELS = 10  # values; more of them, all in [0, 1], are no votes or labels
# that networks are trained with, and signals are of
LOSSES = ("cross_entropy", "squared_error", "brier", "double_softmax")


def check_flag(argument: str, value) -> bool:
    """Return a switch as bool; what is neither True nor False is refused, for any text would count
    as True."""
    if not isinstance(value, bool | np.bool_):
        raise MiaError(f"{argument} = {brief(value)}: True or False is needed.")
    return bool(value)


def check_unmasked(argument: str, values) -> None:
    """Refuse an array, or a list of them, with masked values: what is made of it forgets the mask."""
    for part in values if isinstance(values, list | tuple) else (values,):
        if isinstance(part, np.ma.MaskedArray) and (hidden := int(np.ma.getmaskarray(part).sum())):
            raise MiaError(
                f"{argument} has {hidden} masked {'value' if hidden == 1 else 'values'}: fill in what is missing, "
                f"as by {argument}.filled(...), or leave those records out."
            )


def check_numbers(argument: str, values, kinds: str = "biuf") -> np.ndarray:
    """Numbers as an array of any shape and of a kind of NumPy type that is taken.

    An array, a list or a tensor is given. Rows of different lengths, masked values, text, dates, objects or complex numbers
    are refused, called by the argument's name. What is wider than float64 becomes float64.
    """
    check_unmasked(argument, values)
    try:
        array = as_array(values)
    except (ValueError, TypeError, RuntimeError, OverflowError) as problem:
        raise MiaError(
            f"{argument} cannot be made an array ({problem}): rows must be equally long."
        ) from problem
    if array.dtype.kind not in kinds:
        raise MiaError(
            f"{argument} is of type {array.dtype if array.ndim else type(values).__name__}: numbers are needed."
        )
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array


def check_rows(argument: str, places, count: int) -> np.ndarray:
    """Numbers of `count` records from 0, int [n], each once; of a mask bool [count] those that are True."""
    array = check_numbers(argument, places)
    if array.dtype == bool and array.shape == (count,):
        return np.flatnonzero(array)
    if not array.size and array.ndim == 1:
        return array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= count:
        raise MiaError(
            f"{argument} = {brief(array)}: numbers of records are needed, each once, whole ones [n] from 0 to {count - 1}, "
            f"or a mask bool [{count}]."
        )
    if len(np.unique(array)) < len(array):
        raise MiaError(f"{argument} has records more than once: give the number of each once.")
    return array.astype(np.int64)


def check_texts(argument: str, values) -> list[str]:
    """Texts, one a record, as a list; a single text, bytes, numbers and what is missing are refused."""
    if isinstance(values, str | bytes | Mapping) or not np.iterable(values):
        raise MiaError(f"{argument} = {brief(values)}: a list of texts is needed, one a record.")
    texts = list(values)
    wrong = [place for place, one in enumerate(texts) if not isinstance(one, str)]
    if wrong:
        raise MiaError(
            f"{argument} has {len(wrong)} entries that are no text, the first is number {wrong[0]}, {brief(texts[wrong[0]])}: "
            "a text for each record is needed. Leave records without one out, and decode bytes."
        )
    return [str(one) for one in texts]


def as_float64(argument: str, numbers: np.ndarray) -> np.ndarray:
    """Numbers as float64. Whole ones beyond 2^53 are refused where it takes different ones for the same, which would tie."""
    made = numbers.astype(np.float64)
    if numbers.dtype.kind in "iu" and np.abs(made).max(initial=0) > 2**53:
        there, kept = len(np.unique(numbers)), len(np.unique(made))
        if kept < there:
            raise MiaError(
                f"{argument} has {there} different whole numbers, of which float64 tells {kept} apart: subtract the "
                f"smallest, {argument} - {argument}.min()."
            )
    return made


def check_order(records: int = 0, **given) -> None:
    """Refuse objects of pandas, by their names, that have the same records or models in another order, for only places count.

    Args:
        records: their axis: the first one, 0, as of probabilities; or the last one, -1, before which that of models may be.
    """
    framed = {name: values.axes for name, values in given.items() if hasattr(values, "iloc")}
    for place in (-1, -2) if records else (0,):
        named = [
            (name, "index" if place != -1 or len(axes) == 1 else "columns", axes[place])
            for name, axes in framed.items()
            if place != -2 or len(axes) == 2
        ]
        for name, kind, other in named[1:]:
            first, of_first, one = named[0]
            if not other.equals(one) and set(other) == set(one):
                same = f"{kind} as the {of_first} of {first}" if kind != of_first else kind
                raise MiaError(
                    f"{name} and {first} have the same {same} in another order, and would be taken one by one as they "
                    f"stand: give {name}.loc[{':, ' * (kind == 'columns')}{first}.{of_first}] or, if places are what "
                    f"you mean, {name}.to_numpy()."
                )


def check_mask(argument: str, values, true: str = "trained on") -> np.ndarray:
    """A mask as bool array of any shape; 0 and 1 of any number type count as False and True. Text, not a number,
    probabilities, indices and permutations are refused, with what `true` would mean."""
    array = check_numbers(argument, values, ALL_KINDS)
    if array.dtype == bool:
        return array
    if array.dtype.kind == "O":  # of which pandas' missing value is neither equal nor unequal
        right = np.array([isinstance(one, Real | np.bool_) and one in (0, 1) for one in array.flat])
        right = right.reshape(array.shape).astype(bool)
    else:
        right = np.isin(array, (0, 1)) if array.dtype.kind in "iuf" else np.zeros(array.shape, bool)
    if right.all() and array.dtype.kind in "iufO":
        return array.astype(bool)
    wrong = array[~right]
    remedy = {
        "U": f"Compare first, as in {argument} == {str(wrong.flat[0]) if wrong.size else ''!r}.",
        "i": f"Of indices or a permutation make a mask: mask = np.zeros(N, bool); mask[{argument}] = True.",
        "f": "Leave out what is not known, and compare probabilities with a threshold, as in p > 0.5.",
    }
    remedy |= {"S": remedy["U"], "u": remedy["i"]}
    shown = ", ".join(map(str, np.atleast_1d(wrong).ravel()[:3].tolist()))
    raise MiaError(
        f"{argument} holds other values than True and False, such as {shown} ({wrong.size} of {array.size}): a "
        f"mask is needed, True = {true}. {remedy.get(array.dtype.kind, 'Give bool.')}"
    )


def check_labels(
    argument: str, labels, classes: int | None = None, records: int | None = None
) -> np.ndarray:
    """Labels as whole numbers int64 [N] that count the classes from 0.

    Args:
        labels: array or list; whole numbers of any type. classes, records: K and N, where they are known.

    Raises:
        MiaError: text, fractions or NaN, another shape, labels below 0, from 1 to K, or beyond the classes.
    """
    array = check_numbers(argument, labels, ALL_KINDS)
    if array.ndim != 1 or (records is not None and len(array) != records):
        remedy = (
            f" Give {argument}.ravel()."
            if array.ndim == 2 and array.shape[1] == 1
            else f" Give {argument}.argmax(1)."
            if array.ndim == 2
            else ""
        )
        wanted = "[N]" if records is None else f"[{records}]"
        raise MiaError(
            f"{argument} has shape {array.shape}: {wanted} is needed, the number of each record's class.{remedy}"
        )
    if array.dtype.kind not in "biuf":
        shown = repr(array.tolist()[0]) if len(array) else array.dtype
        raise MiaError(
            f"{argument} holds no numbers but such as {shown}: whole numbers from 0 are needed. Names become "
            f"numbers by classes, {argument} = np.unique({argument}, return_inverse=True)."
        )
    if array.dtype.kind == "f":
        wrong = array[array != np.floor(array)]  # NaN, too
        if len(wrong) or not np.isfinite(array).all():
            least = wrong[0] if len(wrong) else np.inf
            raise MiaError(
                f"{argument} holds {max(1, len(wrong))} values that are no whole numbers, such as {least}: the "
                "number of each record's class, from 0, is needed. A missing label is none: leave it out. "
                "Continuous targets are those of a regression, and attacks and audits here are for classifiers; "
                "`mia audit --scores` judges the negative of any loss, one a record, or what "
                "`attacks.calibration.calibrate` makes of it with references."
            )
    array = array.astype(np.int64, copy=False)
    if not len(array):
        return array
    low, high = int(array.min()), int(array.max())
    if low < 0 or (classes is not None and high >= classes):
        remedy = f"Classes count from 0{'' if classes is None else f', {classes} of them to {classes - 1}'}."
        if low == 1 and high == classes:
            remedy += f" These seem to count from 1: give {argument} - 1."
        elif low == -1 and high == 1 and not (array == 0).any():
            remedy += f" Give ({argument} + 1) // 2."
        elif low == -1:
            remedy += " If -1 marks records without a label, leave them out."
        outside = (array < 0) | (array >= (high + 1 if classes is None else classes))
        span = "at least 0" if classes is None else f"from 0 to {classes - 1}"
        raise MiaError(
            f"{argument} = {int(array[outside][0])} is out of range in {outside.sum()} of {len(array)} records, "
            f"which run from {low} to {high}: allowed is {span}. {remedy}"
        )
    return array


def take_logits(answer):
    """Output of a model, or its `logits` if it is a dictionary or an object that has them, as of
    Hugging Face."""
    if isinstance(answer, Mapping):
        return answer.get("logits", answer)
    return answer if hasattr(answer, "shape") else getattr(answer, "logits", answer)


def as_array(answer) -> np.ndarray:
    """Output of a model as an array; it may be a tensor of any device, that needs gradients or is
    of type bfloat16, which NumPy does not know and which becomes float32."""
    if hasattr(answer, "detach"):
        answer = answer.detach().cpu()
        answer = answer.float() if "bfloat16" in str(answer.dtype) else answer
    return np.asarray(answer)


def are_probabilities(values: np.ndarray) -> bool:
    """True if the last axis of an array [..., K] holds probabilities of K >= 2 classes: in [0, 1],
    with the sum 1."""
    values = np.asarray(values)
    if values.ndim < 2 or values.shape[-1] < 2 or not values.size:
        return False
    rows = values.reshape(-1, values.shape[-1])
    return all(
        bool((part >= 0).all() and (np.abs(part.sum(1, dtype=np.float64) - 1) < 1e-3).all())
        for part in (rows[:100], rows)
    )  # most arrays end at the first hundred


def explain_not_logits(values: np.ndarray) -> str:
    """Words, without a full stop, that say what outputs [N, K], K >= 2, that were declared logits
    seem to be, and what to do; "" if they may be logits."""
    if are_probabilities(values):
        return "probabilities (all are in [0, 1], and each row has the sum 1). Give outputs = 'probabilities'"
    if (values < 0).any():
        return ""
    sums = values.sum(1, dtype=np.float64)
    if (np.abs(sums - 100) < 2).all():
        return (
            "percentages (none is negative, and each row has the sum 100). Give p / p.sum(1, keepdims=True) and outputs = "
            "'probabilities'"
        )
    if (values > 1).any() or len(np.unique(values)) <= MOST_LABELS:
        return ""
    if (np.abs(sums - 1) < ROUNDED).all():
        return (
            f"rounded probabilities (all are in [0, 1], sums of rows run from {sums.min():.4g} to {sums.max():.4g}). "
            "Renormalise them, p / p.sum(1, keepdims=True), and give outputs = 'probabilities'"
        )
    remedy = (
        "Of one output s after its sigmoid make np.concatenate([1 - s, s], 1) and give outputs = 'probabilities'"
        if values.shape[1] == 2 and not values[:, 0].any()
        else "Of one sigmoid s a class give what goes into it, np.log(s / (1 - s)), or s / s.sum(1, keepdims=True) and "
        "outputs = 'probabilities'"
    )
    return (
        f"outputs of sigmoids (all are in [0, 1], sums of rows run from {sums.min():.4g} to {sums.max():.4g}). {remedy}. "
        "If they are logits after all, add 1 to each, which changes no softmax. Of a model that was trained on squared "
        "error say so: loss = 'squared_error', in an audit in its recipe"
    )


def explain_not_probabilities(values: np.ndarray) -> str:
    """Advice, without a full stop, on outputs [N, K], K >= 2, that were declared probabilities and
    are none; "" if nothing is known."""
    sums = values.sum(1, dtype=np.float64)
    if (values < 0).any():
        return ""
    if (np.abs(sums - 1) < ROUNDED).all() or (np.abs(sums - 100) < 2).all():
        return "Renormalise them: p / p.sum(1, keepdims=True)"
    if (sums < 1 + 1e-3).all():
        return "In an audit give outputs = 'top-k' where these are the best classes alone"
    if (values <= 1).all():
        return (
            "Of one sigmoid s a class give s / s.sum(1, keepdims=True), or what goes into it, np.log(s / (1 - s)), and "
            "outputs = 'logits'"
        )
    return ""


def explain_single_output(values, before: str, after: str) -> str:
    """Advice, as a sentence, on one sigmoid output s a record: which two columns to make of it,
    `before` the sigmoid [0, s], `after` it, where all values are in [0, 1], [1 - s, s]."""
    values = np.asarray(values)
    if values.dtype.kind not in "biuf" or not values.size:
        return f"Of one sigmoid output s a record, [N, 1], make two columns: before the sigmoid {before}; after it {after}."
    if ((values >= 0) & (values <= 1)).all():
        return f"Of one sigmoid output s a record, [N, 1], after the sigmoid (all are in [0, 1]), make two columns: {after}."
    return (
        f"Of one sigmoid output s a record, [N, 1], before the sigmoid, make two columns: {before}."
    )


def check_finite(argument: str, values: np.ndarray, rows: str, remedy: str) -> None:
    """Refuse values [n, ...] that are not finite numbers, with their count and places, what the first axis counts ("records",
    "references"), and what to do."""
    finite = np.isfinite(values)
    if finite.all():
        return
    bad = ~finite
    places = np.flatnonzero(bad.reshape(len(values), -1).any(1))
    shown = ", ".join(map(str, places[:5])) + (", ..." if len(places) > 5 else "")
    raise MiaError(
        f"{argument} holds {bad.sum()} values that are not finite numbers ({np.isnan(values).sum()} NaN), in "
        f"{len(places)} of {len(values)} {rows} (numbers {shown}). {remedy}"
    )
