"""Signals from outputs that are given: logits or probabilities of any model, asked for here or elsewhere. Needs no Torch.

A model is whatever answers: scikit-learn's `predict_proba`, XGBoost, an ONNX session, an endpoint on the network. Its answers
come from `from_function`; `scalars` makes signals of logits, `from_probabilities` of probabilities.
"""

from __future__ import annotations

import hashlib
import io
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import expit, logsumexp, softmax

from mia_lib import environment, progress, store
from mia_lib.archives import read_npz
from mia_lib.checks import (
    LOSSES,
    are_probabilities,
    as_array,
    check_labels,
    check_numbers,
    check_order,
    check_unmasked,
    explain_not_logits,
    explain_not_probabilities,
    explain_single_output,
)
from mia_lib.errors import MiaError, check_choice, check_range, check_type, check_whole

OUTPUTS = ("logits", "probabilities")
KEPT_EVERY = 5.0  # seconds


def loss_of(margin: np.ndarray) -> np.ndarray:
    """Cross-entropy in nats from the log odds of the true class, log(1 + e^-margin).

    Banks keep the log odds, `logit_scaled_confidence`: in half precision the loss itself would be zero for many confident
    records, and ties there spoil low false positive rates.

    >>> float(loss_of(0.0).round(3))
    0.693

    Args:
        margin: log(p / (1 - p)) of the probability p of the true class, [...].

    Returns:
        float64 [...].
    """
    return np.logaddexp(0, -check_numbers("margin", margin).astype(np.float64))


def log_odds(loss: np.ndarray) -> np.ndarray:
    """log(p / (1 - p)) of p = exp(-loss), float64; a loss that float32 rounded to zero counts as its smallest number."""
    loss = np.maximum(
        check_numbers("loss", loss).astype(np.float64), np.finfo(np.float32).smallest_subnormal
    )
    return -(loss + np.log(-np.expm1(-loss)))


def scalars(
    logits: np.ndarray, labels: np.ndarray, loss: str = "cross_entropy"
) -> dict[str, np.ndarray]:
    """Every scalar signal from logits.

    With p the softmax of the logits z, y the label and j the best other class:
    loss as in `record_loss`, -log p_y by default; logit_scaled_confidence log(p_y / (1 - p_y)) (Carlini et al. 2022);
    hinge z_y - z_j; max_confidence max p; least_loss, the smallest loss that any label would have; entropy -sum p log p;
    correctness 1 if argmax z = y.

    >>> import numpy as np
    >>> found = scalars(np.array([[2.0, 0.0], [0.0, 0.0]]), np.array([0, 1]))
    >>> found["loss"].astype(float).round(3).tolist(), found["correctness"].tolist()
    ([0.127, 0.693], [1.0, 0.0])

    Args:
        logits: [..., N, K]; of minus infinity come NaN: give a large negative number.
        labels: int [N].
        loss: a name of `LOSSES`.

    Returns:
        name -> float32 [..., N]; the losses float64 where they are "brier", whose squares leave the range of float32, or
        "double_softmax", whose smallest value is not zero but log(1 + (K - 1) / e): float32 would make confident records
        equal.

    Raises:
        MiaError: an unknown loss; logits of one output a record, with NaN, or that are probabilities (see
            `from_probabilities`); labels that are no class.
    """
    check_choice("loss", loss, LOSSES)
    check_order(logits=logits, labels=labels)
    z = _check_logits("logits", logits)
    if loss != "squared_error" and are_probabilities(z):  # whose outputs are to be one-hot
        raise MiaError(
            f"logits of shape {z.shape} are probabilities: all in [0, 1], and each row has the sum 1. Give "
            "signals.from_probabilities(probabilities, labels). If they are logits after all, add 1 to each, which "
            "changes no softmax."
        )
    labels = check_labels("labels", labels, z.shape[-1], z.shape[-2])
    one_hot = np.arange(z.shape[-1]) == labels[:, None]
    log_p = z - logsumexp(z, -1, keepdims=True)
    truth, others, margin = _margin(z, one_hot)
    signals = {
        "loss": precise_loss(z, np.broadcast_to(labels, z.shape[:-1]), loss),
        # the label with the smallest loss, whichever the loss
        "least_loss": precise_loss(z, z.argmax(-1), loss),
        "logit_scaled_confidence": margin,
        "hinge": truth - others.max(-1),
        "max_confidence": np.exp(log_p.max(-1)),
        "entropy": -(np.exp(log_p) * log_p).sum(-1),
        "correctness": z.argmax(-1) == labels,
    }
    wide = ("loss", "least_loss") if loss in ("brier", "double_softmax") else ()
    return {
        name: column.astype(np.float64 if name in wide else np.float32)
        for name, column in signals.items()
    }


def precise_loss(logits: np.ndarray, labels: np.ndarray, kind: str = "cross_entropy") -> np.ndarray:
    """`training.losses.precise_loss` without Torch: of each record [...] from logits float64 [..., K]."""
    one_hot = np.arange(logits.shape[-1]) == labels[..., None]
    if kind == "squared_error":
        return 0.5 * np.square(logits - one_hot).sum(-1)
    margin = _margin(logits, one_hot)[2]
    if kind == "cross_entropy":
        return np.logaddexp(0, -margin)
    missing, others = expit(-margin), np.where(one_hot, 0, softmax(logits, -1))
    if kind == "brier":
        return 0.5 * (np.square(missing) + np.square(others).sum(-1))
    return np.log1p(np.where(one_hot, 0, np.exp(others + missing[..., None] - 1)).sum(-1))


def _margin(z, one_hot):
    """The logit at the marked class, the others with -inf in its place, and log(p / (1 - p)) of the marked class."""
    truth, others = (z * one_hot).sum(-1), np.where(one_hot, -np.inf, z)
    return truth, others, truth - logsumexp(others, -1)


def _check_logits(argument: str, values) -> np.ndarray:
    """Check `values` and return them as float64 [..., N, K]."""
    z = check_numbers(argument, values)
    if z.ndim < 2 or z.shape[-1] < 2:
        columns = "[0 * s, s]" if argument == "logits" else "[1 - s, s]"
        raise MiaError(
            f"{argument} has shape {z.shape} and type {z.dtype}: numbers of at least two classes are needed, "
            f"[..., N, K]. Of one sigmoid output s a record, [N, 1], make two: np.concatenate({columns}, 1)."
        )
    z = z.astype(np.float64)
    if np.isnan(z).any() or (z == np.inf).any():
        bad = (np.isnan(z) | (z == np.inf)).any(-1)
        raise MiaError(
            f"{argument} holds NaN or infinity in {bad.sum()} of {bad.size} rows, the first is number "
            f"{int(np.flatnonzero(bad)[0])}: leave out the records, or the model whose training diverged."
        )
    return z


def from_probabilities(
    probabilities: np.ndarray,
    labels: np.ndarray,
    loss: str = "cross_entropy",
    floor: float | None = None,
) -> dict[str, np.ndarray]:
    """Every scalar signal from probabilities, for models that give no logits: `scalars` of their logarithms.

    What a softmax rounded away cannot be had back. A probability below `floor`, zero above all, counts as `floor`, so that
    every signal is finite: with p_y = 0 the loss is -log(floor), and where all other classes are 0, log(p_y / (1 - p_y)) is
    -log((K - 1) floor). Records that share such a value tie. 1 - p_y is the sum of the other classes, which is exact where p_y
    itself was rounded to 1.

    Args:
        probabilities: [..., N, K], each row with the sum 1.
        labels: int [N].
        loss: "cross_entropy", "brier" or "double_softmax"; "squared_error" is of logits.
        floor: by default the smallest normal number of their type, or of float32 if that is smaller: 1.2e-38. Where they were
            rounded, as in a file with four decimals, half of the last digit, 5e-5.

    Returns:
        as `scalars`.

    Raises:
        MiaError: rows that are no probabilities, one column (of p make [1 - p, p]), labels that are no class, another loss.

    Warns:
        UserWarning: without `floor`: probabilities of the true class, or of all others, are zero; it counts the records.
    """
    check_choice("loss", loss, [name for name in LOSSES if name != "squared_error"])
    check_order(probabilities=probabilities, labels=labels)
    array = check_numbers("probabilities", probabilities)
    p = _check_logits("probabilities", array)
    labels = check_labels("labels", labels, p.shape[-1], p.shape[-2])
    if not are_probabilities(p):
        sums = p.sum(-1)
        raise MiaError(
            f"probabilities run from {p.min():.4g} to {p.max():.4g}, sums of rows from {sums.min():.4g} to "
            f"{sums.max():.4g}: numbers in [0, 1] with the sum 1 are needed. Logits go to signals.scalars."
        )
    coarse = floor is not None
    floor = floor if coarse else float(np.finfo(np.result_type(array.dtype, np.float32)).tiny)
    if not 0 < check_range("floor", floor) < 0.5:
        raise MiaError(f"floor = {floor!r} is out of range: allowed is above 0 and below 1/2.")
    one_hot = np.arange(p.shape[-1]) == labels[:, None]
    lost = ((p * one_hot).sum(-1) < floor) | (np.where(one_hot, 0, p).max(-1) < floor)
    if lost.any() and not coarse:
        warnings.warn(
            f"probabilities of the true class, or of all others, are below {floor:.2g} in {lost.sum()} of "
            f"{lost.size} cases, as a rounded softmax gives them: these tie. Logits, or float64, would tell them "
            "apart.",
            UserWarning,
            stacklevel=2,
        )
    return scalars(np.log(np.maximum(p, floor)), labels, loss)


def from_function(
    function: Callable,
    x,
    outputs: str = "logits",
    batch: int = 1000,
    keep: str | Path | None = None,
    loss: str = "cross_entropy",
) -> np.ndarray:
    """The answers of a model that is a function, one batch of records after the other.

    >>> import numpy as np
    >>> def halves(x):
    ...     return np.stack([x[:, 0], 1 - x[:, 0]], 1)
    >>> from_function(halves, np.array([[0.25], [0.5]]), "probabilities").tolist()
    [[0.25, 0.75], [0.5, 0.5]]

    Args:
        function: of records [B, ...] -> [B, K], logits or probabilities; of an array, list, tensor or DataFrame, whichever it
            knows: it gets slices of `x` as it is.
        x: N records: array, tensor, DataFrame or list; of a `Dataset` its `x`.
        outputs: what it answers, "logits" (before the softmax, any numbers) or "probabilities".
        batch: records a call.
        keep: an `.npz` file in which answers are kept as they come; in memory while it cannot be written. If it is there, from
            an earlier call with the same records, asking goes on behind its last answer: delete it when the model changes.
        loss: a name of `LOSSES`, that the model was trained with: of "squared_error" its outputs may look like probabilities.

    Returns:
        [N, K] of the type that it answers with, float64 of whole numbers: for `scalars`, or `from_probabilities`.

    Raises:
        MiaError: the function fails, or answers with other than numbers [B, K], K >= 2 and always the same, with NaN, with
            probabilities in the place of logits or the other way. The message says how to go on, and the error has the
            answers so far as `answered`, [n, K], or None.

    Warns:
        UserWarning: all records got the same answer.
    """
    check_type(
        "function",
        function,
        Callable,
        "It answers for records, as model.predict_proba (without brackets) does.",
    )
    check_choice("outputs", outputs, OUTPUTS)
    check_choice("loss", loss, LOSSES)
    check_whole("batch", batch, 1)
    x = x.x if hasattr(x, "fingerprint") and hasattr(x, "x") else x
    if hasattr(x, "toarray"):
        raise MiaError(f"x is a sparse {type(x).__name__}: an array is needed. Give x.toarray().")
    if not hasattr(x, "__len__") or getattr(x, "shape", None) == () or not len(x):
        raise MiaError(
            f"x is of type {type(x).__name__}: at least one record is needed, as an array, a DataFrame or a list."
        )
    check_unmasked("x", x)
    kept = _Kept(
        keep, {"of": _content(x) if isinstance(keep, str | Path) else "", "outputs": outputs}
    )
    parts = kept.parts
    with progress.Bar("asking the model", len(x)) as bar:
        done = sum(map(len, parts))
        bar.advance(done)
        try:
            while done < len(x):
                part = x.iloc[done : done + batch] if hasattr(x, "iloc") else x[done : done + batch]
                try:
                    answer = _checked(function(part), len(part), outputs, parts, loss)
                    parts.append(answer.copy())  # a model may use its array again
                except Exception as error:
                    kept.write()
                    raise _stopped(error, parts, done, len(part), len(x), kept) from error
                done += len(part)
                bar.advance(len(part))
                if time.monotonic() - kept.written > KEPT_EVERY:
                    kept.write()
        finally:  # after Ctrl-C, too
            kept.write()
    answers = np.concatenate(parts)
    if len(answers) > 1 and (answers == answers[0]).all():
        warnings.warn(
            f"function gives all {len(answers)} records the same answer: no attack can tell them apart. Does it "
            "look at what it is given?",
            UserWarning,
            stacklevel=2,
        )
    return answers


def _checked(raw, records: int, outputs: str, before: list[np.ndarray], loss: str) -> np.ndarray:
    """One batch's answers as an array [records, K]."""
    check_unmasked("answer", raw)
    answer = as_array(raw)
    if answer.shape == (records,):
        raise MiaError(
            f"one {'number' if answer.dtype.kind in 'biuf' else 'label'} a record, shape {answer.shape}: "
            f"[{records}, K] is needed, a number for each class. Of scikit-learn give model.predict_proba in the "
            "place of predict; of one probability p make np.stack([1 - p, p], 1) with outputs = 'probabilities', "
            "of one number s before the sigmoid np.stack([0 * s, s], 1) with outputs = 'logits'."
        )
    if answer.dtype.kind not in "biuf" or answer.ndim != 2 or len(answer) != records:
        raise MiaError(
            f"shape {answer.shape} and type {answer.dtype} for {records} records: numbers [{records}, K] are "
            "needed."
        )
    if answer.shape[1] < 2:
        remedy = explain_single_output(
            answer,
            "np.concatenate([0 * s, s], 1) with outputs = 'logits'",
            "np.concatenate([1 - s, s], 1) with outputs = 'probabilities'",
        )
        raise MiaError(f"shape {answer.shape}: at least two classes are needed. {remedy}")
    if before and before[0].shape[1] != answer.shape[1]:
        raise MiaError(
            f"{answer.shape[1]} classes, where {before[0].shape[1]} were answered before."
        )
    answer = answer if answer.dtype.kind == "f" else answer.astype(np.float64)
    bad = (np.isnan(answer) | (answer == np.inf)).any(1)
    if bad.any():
        raise MiaError(
            f"NaN or infinity for {bad.sum()} of {records} records, the first is number {int(np.argmax(bad))} of "
            "the batch."
        )
    if (
        outputs == "logits"
        and loss != "squared_error"
        and (kind := explain_not_logits(answer) if not before or are_probabilities(answer) else "")
    ):
        raise MiaError(f"no logits, though outputs = 'logits': these seem to be {kind}.")
    if outputs == "probabilities" and not are_probabilities(answer):
        sums = answer.sum(1)
        raise MiaError(
            f"numbers from {answer.min():.4g} to {answer.max():.4g} with sums of rows from {sums.min():.4g} to "
            f"{sums.max():.4g}, where outputs = 'probabilities'. "
            f"{explain_not_probabilities(answer) or 'Of logits say so, outputs = ' + repr('logits')}."
        )
    return answer


def _stopped(
    error: Exception, parts: list, done: int, size: int, records: int, kept: _Kept
) -> MiaError:
    """The error that says where asking stopped; its `answered` are the answers until then."""
    what = (
        f"answered with {error}"
        if isinstance(error, MiaError)
        else f"failed: {type(error).__name__}: {error}"
    )
    if not done:
        then = ""
    elif kept.path and not kept.unwritten:
        then = f" The {done} answers before are in {kept.path}: call it again with the same keep, and it goes on there."
    else:
        then = f" The {done} answers before are this error's `answered`; " + (
            f"they could not be written to {kept.path}."
            if kept.path
            else "with keep = 'answers.npz' they would be in a file, and the next call would go on there."
        )
    stopped = MiaError(
        f"function, asked about records {done} to {done + size - 1} of {records}, {what}{then}"
    )
    stopped.answered = np.concatenate(parts) if parts else None
    return stopped


def _content(x) -> str:
    """Hash of the numbers of records, whatever holds them, by which a file of answers knows them
    again."""
    if hasattr(x, "columns"):
        parts = [part for name in x.columns for part in (name, x[name].to_numpy())]
    else:
        array = x if isinstance(x, list | tuple) else as_array(x)
        if not isinstance(array, list | tuple) and array.dtype.kind != "O":
            return store.fingerprint(array)
        parts = list(array)
    contents = [
        _content(part)
        if isinstance(part, list | tuple | np.ndarray) or hasattr(part, "detach")
        else repr(part)
        for part in parts
    ]
    return hashlib.sha256(repr(contents).encode()).hexdigest()[:40]


class _Kept:
    """Answers in a file, or nowhere when the path is None."""

    def __init__(self, path: str | Path | None, about: dict[str, str]):
        if not isinstance(path, str | Path | None):
            raise MiaError(
                f"keep is of type {type(path).__name__}: the name of a file that ends in .npz is needed."
            )
        self.path, self.about, self.parts = environment.path(path) if path else None, about, []
        self.written, self.unwritten = time.monotonic(), False
        if self.path is None:
            return
        if self.path.suffix != ".npz" or not self.path.parent.is_dir():
            raise MiaError(
                f"keep = {str(path)!r}: the name of a file that ends in .npz is needed, in a folder that exists."
            )
        if not self.path.is_file():
            return
        contents = read_npz(
            self.path,
            f"keep = {str(path)!r}",
            ("answers", *about),
            (),
            "Delete it, or give another name.",
        )
        for name, value in about.items():
            if str(contents[name]) != value:
                what = "other records" if name == "of" else f"{contents[name]}, not {value}"
                raise MiaError(
                    f"keep = {str(path)!r} holds answers about {what}: give another name, or delete it."
                )
        self.parts = [contents["answers"]] if len(contents["answers"]) else []

    def write(self) -> None:
        if self.path is not None and self.parts:
            self.parts[:] = [np.concatenate(self.parts)]
            buffer = io.BytesIO()
            np.savez(
                buffer,
                answers=self.parts[0],
                **{name: np.array(value) for name, value in self.about.items()},
            )
            self.written = time.monotonic()
            try:
                store.write(self.path, buffer.getvalue())
                self.unwritten = False
            except OSError as error:
                if not self.unwritten:
                    progress.say(
                        f"The answers cannot be written to {self.path} ({error.strerror}): they are kept in memory, "
                        "and written there once there is room."
                    )
                self.unwritten = True
