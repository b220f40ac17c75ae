"""What a language model says of each token of a record: the raw material of attacks on text.

Of each token that is predicted its log probability, and the mean and variance of the log probability of a token drawn from
the model at that place. Nothing of the size [N, T, V] is kept.
"""

from __future__ import annotations

from mia_lib import _torch  # noqa: F401  before PyTorch, to say what to do without it

# isort: split

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from mia_lib import models as architectures
from mia_lib.checks import are_probabilities, as_array, check_numbers
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_type, first_line
from mia_lib.signals.mapping import map_models
from mia_lib.training import Ensemble, devices
from mia_lib.training.losses import NEXT_TOKEN
from mia_lib.training.objectives import NextToken, lengths

TOKENS_AT_ONCE, TOKENS_AT_ONCE_ON_CARD = 2_000, 100_000
PEEKS = (
    0.1  # of the spread of logits: more than what rounding changes where later tokens are left out
)


class TokenStatistics(NamedTuple):
    """Of the S tokens that are predicted in N records, one record after the other.

    Attributes:
        log_prob: log probability of each token given those before, float32 [.., S].
        mean, variance: of the log probability of a token drawn from the model at that place, float32 [.., S].
        offsets: where each record begins, and where the last ends, int64 [N + 1].
    """

    log_prob: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    offsets: np.ndarray


def token_statistics(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Log probability of tokens int [...] under logits [..., V], and its mean and variance over the vocabulary,
    ``mu = sum_v p_v log p_v`` and ``sum_v p_v (log p_v - mu)^2`` (Zhang et al. 2024, Eq. 3), as [3, ...]."""

    def part(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        log_p = logits.float().log_softmax(-1)
        p = log_p.exp()
        mean = (p * log_p).sum(-1)
        own = log_p.gather(-1, tokens[..., None])[..., 0]
        return torch.stack([own, mean, (p * (log_p - mean[..., None]).square()).sum(-1)])

    # on a processor, so few that what lies between stays in the caches
    size = 128 if logits.device.type == "cpu" else 2**16
    places = zip(logits.flatten(0, -2).split(size), tokens.flatten().split(size), strict=True)
    return torch.cat([part(*place) for place in places], -1).view(3, *tokens.shape)


def log_probabilities(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """The first row of `token_statistics`, as [1, ...], in a third of the time."""
    losses = nn.functional.cross_entropy(
        logits.float().flatten(0, -2), tokens.flatten(), reduction="none"
    )
    return -losses.view(1, *tokens.shape)


def _context_of(model: nn.Module) -> int | None:
    """How many tokens a language model reads at once; None where neither it nor its configuration says so."""
    if isinstance(model, architectures.LanguageModel):
        return model.places.num_embeddings
    context = getattr(getattr(model, "config", None), "max_position_embeddings", None)
    return context if isinstance(context, int) and context > 0 else None


def _check_ids(x) -> torch.Tensor:
    """Token ids int64 [N, L], at least two a record and -1 behind the last; others raise `MiaError`."""
    x = torch.tensor(check_numbers("x", x))
    if x.ndim != 2 or x.dtype != torch.int64 or not len(x) or (lengths(x) < 2).any():
        raise MiaError(
            f"x has shape {tuple(x.shape)} and type {x.dtype}: token ids int64 [N, L] are needed, at least two a record, with "
            "-1 behind the last."
        )
    before = (x < 0) & (torch.arange(x.shape[1]) < lengths(x)[:, None])
    if before.any():
        raise MiaError(
            f"x has numbers below 0 before the last token in {int(before.any(1).sum())} of {len(x)} records: -1 stands behind "
            "the last token alone. What a tokenizer pads on the left goes without its padding to data.from_tokens."
        )
    return x


def _check_model(model: nn.Module, x: torch.Tensor, where: torch.device) -> None:
    """Refuse a model that, asked about the longest record, gives no logits of the token that follows each place."""
    name = f"model = {type(model).__name__}"
    longest = x[lengths(x).argmax()]
    longest = longest[longest >= 0][None, :-1]
    try:
        logits = architectures.logits_of(model, model(longest.to(where))).float()
    except IndexError as problem:  # of an embedding
        raise MiaError(
            f"{name} does not know all token ids of x, which reach {int(x.max())} ({first_line(problem)}): are they of its "
            "own tokenizer, and texts no longer than its context?"
        ) from problem
    if logits.shape[:-1] != longest.shape:
        raise MiaError(
            f"{name} gives outputs of shape {tuple(logits.shape)} for token ids {tuple(longest.shape)}: logits [B, T, V] are "
            "needed, of the token that follows each."
        )
    if x.max() >= logits.shape[-1]:
        raise MiaError(
            f"x has token ids up to {int(x.max())}, and {name} knows those from 0 to {logits.shape[-1] - 1}: are they of its "
            "own tokenizer?"
        )
    if are_probabilities(as_array(logits)):
        raise MiaError(f"{name} gives probabilities: logits are needed, which have no softmax yet.")
    some = longest[:, : (longest.shape[1] + 1) // 2]
    alone = architectures.logits_of(model, model(some.to(where))).float()
    if (alone - logits[:, : some.shape[1]]).abs().mean() > PEEKS * logits.std():
        raise MiaError(
            f"{name} says something else of a token where those behind it are left out, so it reads the tokens that it is to "
            "predict: a causal language model is needed, and no masked one."
        )


@torch.no_grad()
def _ask(
    model: nn.Module,
    x: np.ndarray | torch.Tensor,
    reduce: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers [C, S] that `reduce` makes of the logits of each predicted token, and where records begin, [N + 1]."""
    x = _check_ids(x)
    parameters = check_type("model", model, nn.Module, "Wrap a function in one.").parameters()
    where = next((weight.device for weight in parameters), torch.device("cpu"))
    model.eval()
    token_ids, labels = NextToken.inputs_and_labels(x, None)
    count = lengths(labels)
    context = _context_of(model)
    if context is not None and count.max() > context:
        raise MiaError(
            f"x has {int((count > context).sum())} of {len(x)} records of more than {context + 1} tokens, the longest of "
            f"{int(count.max()) + 1}: model = {type(model).__name__} has a context of {context} tokens and predicts one more. "
            f"Keep the first {context + 1} of each text, or cut texts into pieces."
        )
    _check_model(model, x, where)
    offsets = np.concatenate([[0], count.cumsum(0).numpy()])
    tokens = TOKENS_AT_ONCE_ON_CARD if devices.is_card(where) else TOKENS_AT_ONCE
    at_once = max(1, tokens // int(count.max()))
    values = None
    with devices.plain_float32():
        for rows in count.argsort(stable=True).split(at_once):  # little is computed of padding
            inputs, wanted = NextToken.trim(token_ids[rows], labels[rows])
            logits = architectures.logits_of(model, model(inputs.to(where)))
            part = reduce(logits, wanted.clamp_min(0).to(where)).cpu().numpy()
            if values is None:
                values = np.empty((len(part), offsets[-1]), np.float32)
            for k, row in enumerate(rows.tolist()):
                values[:, offsets[row] : offsets[row + 1]] = part[:, k, : count[row]]
    return values, offsets


def model_statistics(model: nn.Module, x: np.ndarray) -> TokenStatistics:
    """`TokenStatistics` of one language model in evaluation mode, [S].

    Args:
        model: of token ids [B, T] gives logits [B, T, V], as a tensor, or as `logits` of an object.
        x: token ids int64 [N, L], -1 behind the last. The first token of a record is given, all others are predicted.

    Raises:
        MiaError: x of another form, padded before its last token or with ids that the model does not know; a record longer
            than the context of the model; outputs that are no logits of each place, or that know the tokens behind it.
    """
    values, offsets = _ask(model, x, token_statistics)
    return TokenStatistics(*values, offsets)


def model_loss(model: nn.Module, x: np.ndarray) -> np.ndarray:
    """Mean loss of each record in nats a token, float32 [N], of one language model; arguments as for `model_statistics`."""
    [log_prob], offsets = _ask(model, x, log_probabilities)
    sums = np.add.reduceat(log_prob, offsets[:-1], dtype=np.float64)
    return (-sums / np.diff(offsets)).astype(np.float32)


def _statistics_task(networks, x, labels, loss):
    return [model_statistics(network, x)._asdict() for network in networks]


def statistics(models: Ensemble, records: Dataset) -> TokenStatistics:
    """`TokenStatistics` of each of M language models, [M, S].

    Raises:
        MiaError: models that are no language models, or records that are no token ids.
    """
    if models.config.loss != NEXT_TOKEN or records.kind != "tokens":
        raise MiaError(
            f"{models!r}, asked about {records!r}: what is said of each token needs language models (loss = 'next_token') and "
            "records of token ids (data.from_tokens)."
        )
    results = map_models(
        _statistics_task, models, {"kind": "tokens"}, "signals of tokens", records=records
    )
    stacked = (np.stack([result[name] for result in results]) for name in TokenStatistics._fields)
    *values, offsets = stacked
    return TokenStatistics(*values, offsets[0])
