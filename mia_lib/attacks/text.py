"""Attacks on a language model from what it says of each token of a record; no reference model.

A record has n predicted tokens with the log probabilities l_1 to l_n; those of N records stand one after the other, with
`offsets` [N + 1] of where each begins. Scores are higher for members.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from mia_lib.checks import check_finite, check_numbers, check_texts
from mia_lib.errors import MiaError, brief, check_range

ROUNDING = 1e-4  # of log probabilities and variances, that half precision leaves


def loss(log_prob: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Mean loss of a record, ``-mean(l)`` in nats a token, [.., N]; lower for members (Yeom et al. 2018).

    >>> loss(np.array([-1.0, -3.0, -2.0]), np.array([0, 2, 3])).tolist()
    [2.0, 2.0]

    Args:
        log_prob: [.., S] of S tokens. offsets: int [N + 1].

    Raises:
        MiaError: log probabilities above 0, as losses are, or that are no finite numbers; offsets that do not cut them into
            records. So do the others here.
    """
    log_prob, offsets = _check_tokens(log_prob, offsets)
    _check_at_most_zero("log_prob", log_prob)
    return -np.add.reduceat(log_prob, offsets[:-1], -1) / np.diff(offsets)


def min_k(log_prob: np.ndarray, offsets: np.ndarray, share: float = 0.2) -> np.ndarray:
    """Min-K%: mean of a record's least log probabilities, [.., N] (Shi et al. 2024).

    >>> min_k(np.array([-1.0, -3.0, -2.0, -5.0]), np.array([0, 3, 4]), 0.5).tolist()
    [-3.0, -5.0]

    Args:
        log_prob: [.., S], or any number of each token. offsets: int [N + 1].
        share: of a record's tokens, rounded down to whole ones, at least one.
    """
    log_prob, offsets = _check_tokens(log_prob, offsets)
    check_range("share", share, 0, 1)
    means = [
        np.sort(log_prob[..., first:last], -1)[..., : max(1, int(share * (last - first)))].mean(-1)
        for first, last in zip(offsets[:-1], offsets[1:], strict=True)
    ]
    return np.stack(means, -1)


def min_k_plus(
    log_prob: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    offsets: np.ndarray,
    share: float = 0.2,
) -> np.ndarray:
    """Min-K%++: Min-K% of ``(l - mu) / sigma``, with mean and variance of the log probability over the vocabulary at each
    place (Zhang et al. 2024, Eq. 3), [.., N].

    Args:
        log_prob, mean, variance: [.., S] each. offsets, share: as for `min_k`.
    """
    log_prob, offsets = _check_tokens(log_prob, offsets)
    mean, variance = check_numbers("mean", mean), check_numbers("variance", variance)
    if not log_prob.shape == mean.shape == variance.shape:
        raise MiaError(
            f"log_prob has shape {log_prob.shape}, mean {mean.shape} and variance {variance.shape}: of all three a number for "
            "each token is needed."
        )
    for argument, values in (("log_prob", log_prob), ("mean", mean)):
        _check_at_most_zero(argument, values)
    if variance.min() < -ROUNDING:
        raise MiaError(f"variance reaches {variance.min():.4g}: a variance is at least 0.")
    return min_k((log_prob - mean) / np.sqrt(np.maximum(variance, 1e-6)), offsets, share)


def over_zlib(loss: np.ndarray, lengths: np.ndarray, compressed: np.ndarray) -> np.ndarray:
    """Log probability of a record over the bytes that zlib makes of its text, [.., N] (Carlini et al. 2021).

    The paper divides the log perplexity, a mean over tokens, by the bytes; that ranks records by their length. Here it is the
    sum, in nats a compressed byte.

    Args:
        loss: mean loss of each record [.., N]. lengths: predicted tokens [N]. compressed: bytes of zlib [N].
    """
    loss, lengths, compressed = (
        check_numbers(*each)
        for each in (("loss", loss), ("lengths", lengths), ("compressed", compressed))
    )
    for argument, counts in (("lengths", lengths), ("compressed", compressed)):
        if counts.shape != loss.shape[-1:] or counts.min(initial=1) <= 0:
            raise MiaError(
                f"{argument} has shape {counts.shape}, from {counts.min(initial=1)}, and loss {loss.shape}: a number above 0 "
                "for each record is needed."
            )
    return -loss * lengths / compressed


def zlib_bytes(texts: Sequence[str]) -> np.ndarray:
    """Bytes that zlib makes of each text, int [N].

    >>> zlib_bytes(["and", "and and and and and and"]).tolist()
    [11, 14]
    """
    return np.array(
        [
            len(zlib.compress(one.encode(errors="surrogatepass")))
            for one in check_texts("texts", texts)
        ],
        int,
    )


def _check_tokens(log_prob, offsets) -> tuple[np.ndarray, np.ndarray]:
    log_prob, offsets = check_numbers("log_prob", log_prob), check_numbers("offsets", offsets)
    if (
        not log_prob.ndim
        or offsets.ndim != 1
        or offsets.dtype.kind not in "iu"
        or len(offsets) < 2
        or offsets[0] != 0
        or (np.diff(offsets) < 1).any()
        or offsets[-1] != log_prob.shape[-1]
    ):
        raise MiaError(
            f"offsets = {brief(offsets)} for log_prob of shape {log_prob.shape}: [N + 1] rising "
            "whole numbers from 0 to the number of tokens are needed, where each record begins and the last ends."
        )
    check_finite("log_prob", np.moveaxis(log_prob, -1, 0), "tokens", "Leave these records out.")
    return log_prob, offsets


def _check_at_most_zero(argument: str, values: np.ndarray) -> None:
    if values.max() > ROUNDING:
        raise MiaError(
            f"{argument} reaches {values.max():.4g}: a log probability is at most 0. Of losses give the negative, of "
            "probabilities the logarithm, of logits the log softmax."
        )
