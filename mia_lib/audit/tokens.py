"""An audit of a language model, from the log probabilities that it gives to each token of members and of other texts.

The model itself is not needed: whoever serves it, or holds it, writes down what it says, and the audit judges that.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mia_lib.attacks import registry, text
from mia_lib.attacks.registry import LOG_ODDS, ArraySignals
from mia_lib.audit import statistics
from mia_lib.audit.inputs import check_scores, first_occurrences
from mia_lib.audit.options import RecordOptions
from mia_lib.audit.references import check_counts
from mia_lib.audit.report import Report, describe_provenance
from mia_lib.checks import as_array, check_finite, check_mask, check_numbers, check_texts
from mia_lib.errors import MiaError, brief

NAMES = (
    "log_prob",
    "lengths",
    "mean",
    "variance",
    "counted",
    "reference_log_prob",
    "reference_members",
    "text",
)
SAME = 8  # tokens whose log probabilities no two records have alike by chance
MOST_ZEROS = 0.01  # share of tokens that may be certain
UNLIKELY = 9.0  # nats a token: as a model that knows nothing of 8,000 tokens
TIMES = 2.5  # that the loss may exceed what the model's own distribution says
WITH_REFERENCES = (
    "MAST (best split)",
    "BASE",
    "LiRA",
)  # with references that were trained on the records and others that were not
ATTACKER = (
    "To do this an attacker needs the whole text that is asked about, and the log probability that the model gives to each "
    "of its tokens; where references are named, those of other models, too. Who has no text to ask about learns nothing by "
    "it. Whether the model recites texts that it was trained on was not tested."
)
MEANINGS = {
    "loss": "the tokens of a member are likely on average (Yeom et al. 2018).",
    "Min-K%": "even the least likely tokens of a member are not so unlikely (Shi et al. 2024).",
    "Min-K%++": "the same, compared with other tokens that the model might have put there (Zhang et al. 2024).",
    "zlib": "the loss over the bytes to which zlib compresses the text, few where it repeats itself (Carlini et al. 2021).",
    "BASE": "the loss is low beside the average that references give to the record (Lassila et al. 2025).",
    "MAST (best split)": "the loss is below the threshold that best parts references trained on the record from the others "
    "(Sablayrolles et al. 2019).",
}


@dataclass(frozen=True, eq=False)
class TokenAnswers:
    """What a language model says of N records of S tokens in all; references are R other models.

    Attributes:
        log_prob: of each token that is counted, in nats, float64 [S]. offsets: where each record begins, int [N + 1].
        mean, variance: of the log probability of a token that the model would draw there, [S], or None.
        reference_loss: mean loss of each record under each reference, [R, N], or None.
        reference_members: who was trained on which record, bool [R, N]; none of them on any where it is None.
        texts: [N], or None.
    """

    log_prob: np.ndarray
    offsets: np.ndarray
    mean: np.ndarray | None
    variance: np.ndarray | None
    reference_loss: np.ndarray | None
    reference_members: np.ndarray | None
    texts: list[str] | None

    def __len__(self) -> int:
        return len(self.offsets) - 1


def audit_tokens(members: Mapping, non_members: Mapping, **options) -> Report:
    """Audit a language model by what it says of each token of members and of others.

    Args:
        members, non_members: arrays by name, of records that it was trained on and of others of the same distribution:
            log_prob: natural logarithm of the probability of each predicted token given those before, a list of N arrays; or
            all of them one after the other, [S], with lengths int [N].
            mean, variance: of the log probability over the model's whole vocabulary at each place, in the same form, for
            Min-K%++.
            counted: whether a token counts, in the same form: not those of a prompt or a template.
            reference_log_prob: of R other models with the same tokens, each in the same form, [R, S]; such as the base of a
            fine-tuned one.
            reference_members: whether reference r was trained on record i, bool [R, N]; on none of them where it is left out.
            text: the N texts, for zlib and for the control that never sees the model.
        options: fields of `RecordOptions` by name.

    Returns:
        a report, as of `audit_scores`, whose control tells members from others by words and lengths alone.

    Raises:
        MiaError: what cannot be used: numbers above 0, probabilities in their place, padding, lengths that do not match, a
            text that is there twice, unless `deduplicate` leaves it out.

    Warns:
        UserWarning: tokens so unlikely that they may be shifted by one place, or logarithms of another base; a mean that is
            none of the model's own distribution.
    """
    begun = time.perf_counter()
    of_members, of_others = read(members, "members"), read(non_members, "non_members")
    if (members.get("counted") is None) != (non_members.get("counted") is None):
        raise MiaError(
            "Only one of members and non_members has counted: give it of both, or of neither."
        )
    _check_pair(of_members, of_others)
    _warn_of_shift(of_others)
    chosen = RecordOptions(**options)
    first = _first_occurrences(of_members, of_others, chosen.deduplicate)
    kept = np.concatenate([*first.values()])
    is_member = np.arange(len(of_members) + len(of_others)) < len(of_members)
    scores = _scores(of_members, of_others)
    table = check_scores(scores, is_member, chosen, kept)
    table = replace(
        table,
        attacker=ATTACKER,
        numbering="the texts of members as they were given",
        meanings=MEANINGS,
        left_out={name: int((~rows).sum()) for name, rows in first.items() if not rows.all()},
    )
    lengths = np.concatenate([np.diff(of_members.offsets), np.diff(of_others.offsets)])
    texts = None if of_members.texts is None else of_members.texts + of_others.texts
    if texts is not None:
        texts = [texts[row] for row in table.rows]
    control = score_texts(lengths[table.rows], texts, table.is_member, table.options.seed)
    return Report(
        table,
        None,
        statistics.judge(table, table.scores, control=control),
        [],
        None,
        None,
        describe_provenance(table, time.perf_counter() - begun),
    )


def read(given: Mapping, argument: str) -> TokenAnswers:
    """`TokenAnswers` from arrays by name, see `audit_tokens`; what cannot be used raises `MiaError`."""
    if not isinstance(given, Mapping) or given.get("log_prob") is None:
        raise MiaError(
            f"{argument} is of type {type(given).__name__}: arrays by name are needed, log_prob at least. Others are "
            f"{', '.join(NAMES[1:])}."
        )
    if unknown := sorted({*map(str, given)} - {*NAMES}):
        raise MiaError(f"{argument} has {unknown[0]!r}, which is none of {', '.join(NAMES)}.")
    # rows may stand in a column of a DataFrame
    given = {
        name: values.tolist() if _holds_objects(values) else values
        for name, values in given.items()
        if values is not None
    }
    lengths = _lengths(given, argument)
    offsets = np.concatenate([[0], np.cumsum(lengths)])

    def of_tokens(name: str, values) -> np.ndarray:
        flat = _flat(values, f"{argument}[{name!r}]", lengths)
        if flat.shape[-1] != offsets[-1]:
            raise MiaError(
                f"{argument}[{name!r}] has {flat.shape[-1]} tokens, but the {len(lengths)} records have {offsets[-1]}: one "
                "number a predicted token is needed."
            )
        check_finite(
            f"{argument}[{name!r}]",
            flat,
            "tokens",
            "Leave these records out, or ask in a precision that keeps them.",
        )
        return flat

    log_prob = _check_log_prob(of_tokens("log_prob", given["log_prob"]), f"{argument}['log_prob']")
    mean = variance = None
    if ("mean" in given) != ("variance" in given):
        raise MiaError(f"{argument}: mean and variance belong together: give both, or neither.")
    if "mean" in given:
        mean, variance = (of_tokens(name, given[name]) for name in ("mean", "variance"))
        if mean.max() > text.ROUNDING or variance.min() < -text.ROUNDING:
            raise MiaError(
                f"{argument}: mean reaches {mean.max():.3g} and variance from {variance.min():.3g}: of a log probability over "
                "the vocabulary the mean is at most 0 and the variance at least 0."
            )
    references = reference_members = None
    if "reference_log_prob" in given:
        models = given["reference_log_prob"]
        if isinstance(models, Mapping) or not hasattr(models, "__len__") or not len(models):
            raise MiaError(
                f"{argument}['reference_log_prob'] = {brief(models)}: a row for each reference is needed, [R, S], of one at "
                "least."
            )
        if np.isscalar(models[0]):
            raise MiaError(
                f"{argument}['reference_log_prob'] is one row of numbers: a row for each reference is needed, [R, S]; of a "
                "single one give reference_log_prob[None]."
            )
        rows = [of_tokens("reference_log_prob", model) for model in models]
        references = np.stack(
            [_check_log_prob(row, f"{argument}['reference_log_prob']") for row in rows]
        )
    kept = slice(None)
    if "counted" in given:
        counted = of_tokens("counted", given["counted"])
        kept = check_mask(f"{argument}['counted']", counted, "a token that counts")
        lengths = np.add.reduceat(kept.astype(int), offsets[:-1])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        if not lengths.all():
            raise MiaError(
                f"{argument}: {int((lengths == 0).sum())} records have no token that counts, the first is number "
                f"{int(np.argmin(lengths))}: leave them out."
            )
    if "reference_members" in given:
        reference_members = check_mask(
            f"{argument}['reference_members']", given["reference_members"]
        )
        if references is None or reference_members.shape != (len(references), len(lengths)):
            raise MiaError(
                f"{argument}['reference_members'] has shape {reference_members.shape}: a row for each of the references of "
                f"reference_log_prob and a column for each of {len(lengths)} records is needed."
            )
    texts = check_texts(f"{argument}['text']", given["text"]) if "text" in given else None
    if texts is not None and len(texts) != len(lengths):
        raise MiaError(
            f"{argument}['text'] has {len(texts)} texts, but there are {len(lengths)} records."
        )
    return TokenAnswers(
        log_prob[kept],
        offsets,
        None if mean is None else mean[kept],
        None if variance is None else np.maximum(variance[kept], 0),
        None if references is None else text.loss(references[:, kept], offsets),
        reference_members,
        texts,
    )


def _holds_objects(values) -> bool:
    """True of an array or a Series of Python's objects."""
    return str(getattr(values, "dtype", "")) == "object" and hasattr(values, "tolist")


def _lengths(given: Mapping, argument: str) -> np.ndarray:
    """Number of tokens of each record, int [N], at least one each."""
    if "lengths" in given:
        lengths = check_numbers(f"{argument}['lengths']", given["lengths"])
    elif not len(given["log_prob"]) or np.ndim(given["log_prob"][0]) == 0:
        raise MiaError(
            f"{argument}['log_prob'] is one row of numbers: lengths say how many are of each record."
        )
    else:
        lengths = np.array([len(row) for row in given["log_prob"]])
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not len(lengths) or lengths.min() < 1:
        raise MiaError(
            f"{argument}: lengths are {lengths.dtype}{list(lengths.shape)}, the least {lengths.min(initial=0)}: whole numbers "
            "from 1 are needed, of each record the number of predicted tokens."
        )
    return lengths.astype(int)


def _flat(values, argument: str, lengths: np.ndarray) -> np.ndarray:
    """Numbers of all tokens, one record after the other, float64 [S], of an array or of rows as long as `lengths` [N] says."""
    if isinstance(values, Sequence) and len(values) and np.ndim(values[0]) == 1:
        counts = [len(row) for row in values]
        if len(counts) != len(lengths):
            raise MiaError(
                f"{argument} has {len(counts)} rows, but there are {len(lengths)} records: a row for each is needed, with "
                "one number a predicted token."
            )
        if (other := np.flatnonzero(counts != lengths)).size:
            first = other[0]
            raise MiaError(
                f"{argument} has {counts[first]} tokens in row {first}, but that record has {lengths[first]}: one number a "
                "predicted token is needed. Do the rows stand in another order?"
            )
        values = np.concatenate([as_array(row) for row in values])
    numeric = str(getattr(values, "dtype", "object")) != "object"
    if not numeric and any(value is None for value in values):
        raise MiaError(
            f"{argument} has None among its numbers, as endpoints give for the first token, which nothing predicts: leave it "
            "out."
        )
    flat = check_numbers(argument, values)
    if flat.ndim != 1:
        raise MiaError(
            f"{argument} has shape {flat.shape}: of padded rows give a list, row[:length] each, for padding is no token."
        )
    return flat.astype(np.float64)


def _check_log_prob(values: np.ndarray, argument: str) -> np.ndarray:
    if values.min() >= 0 and values.max() <= 1:
        raise MiaError(
            f"{argument} holds numbers from 0 to 1: they seem to be probabilities. Give their logarithms."
        )
    if values.max() > text.ROUNDING:
        raise MiaError(
            f"{argument} reaches {values.max():.4g}: a log probability is at most 0. Of losses give the negative, of logits "
            "the log softmax."
        )
    certain = float((values == 0).mean())
    if certain > MOST_ZEROS:
        raise MiaError(
            f"{argument} is exactly 0 for {certain:.1%} of the tokens: padding or a masked prompt, it seems. Leave these "
            "tokens out, or say by counted which ones count."
        )
    return np.minimum(values, 0)


def _check_pair(members: TokenAnswers, others: TokenAnswers) -> None:
    """Refuse members and others of which one has what the other lacks."""
    for name in ("mean", "reference_loss", "reference_members", "texts"):
        if (getattr(members, name) is None) != (getattr(others, name) is None):
            raise MiaError(
                f"Only one of members and non_members has {name}: give it of both, or of neither."
            )
    if members.reference_loss is not None and len(members.reference_loss) != len(
        others.reference_loss
    ):
        raise MiaError(
            f"members have {len(members.reference_loss)} references and non_members {len(others.reference_loss)}: the same "
            "models are needed."
        )


def _first_occurrences(
    members: TokenAnswers, others: TokenAnswers, deduplicate: bool
) -> dict[str, np.ndarray]:
    """Which records of members and of others are there for the first time, by their texts and by their log probabilities, see
    `inputs.first_occurrences`."""
    sets = {"members": members, "non_members": others}
    kept = []
    if members.texts is not None:
        texts = {
            argument: np.array([_digest(text.encode()) for text in answers.texts])
            for argument, answers in sets.items()
        }
        kept.append(first_occurrences(texts, deduplicate, "text"))
    rows = {argument: _row_digests(argument, answers) for argument, answers in sets.items()}
    kept.append(first_occurrences(rows, deduplicate, "the log probabilities of their tokens"))
    return {argument: np.all([each[argument] for each in kept], 0) for argument in sets}


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _row_digests(argument: str, answers: TokenAnswers) -> np.ndarray:
    """What each record is known by, text [N]: its log probabilities, or where these are too few its place alone."""
    rows = np.split(answers.log_prob, answers.offsets[1:-1])
    return np.array(
        [
            _digest(row.tobytes()) if len(row) >= SAME else f"{argument} {place}"
            for place, row in enumerate(rows)
        ]
    )


def _warn_of_shift(others: TokenAnswers) -> None:
    loss = -others.log_prob.mean()
    usual = UNLIKELY if others.mean is None else max(0.5, -TIMES * others.mean.mean())
    if loss > usual:
        warnings.warn(
            f"The loss of non-members is {loss:.2f} nats a token"
            + (
                ""
                if others.mean is None
                else f", where the model's own distribution says {-others.mean.mean():.2f}"
            )
            + ": are log probabilities shifted by one token (those at place t are of the token at t + 1), or logarithms of "
            "another base?",
            UserWarning,
            stacklevel=3,
        )
    if others.mean is not None and loss < -others.mean.mean() / TIMES:
        warnings.warn(
            f"The loss of non-members is {loss:.2f} nats a token, where the model's own distribution says "
            f"{-others.mean.mean():.2f}: is mean the sum of p log p over the vocabulary? The plain mean of log p is another "
            "number, with which Min-K%++ says nothing.",
            UserWarning,
            stacklevel=3,
        )


def _scores(members: TokenAnswers, others: TokenAnswers) -> dict[str, np.ndarray]:
    """Scores [N] of every attack that the answers permit, higher for members; members come first."""

    def both(score) -> np.ndarray:
        return np.concatenate([score(members), score(others)], -1)

    loss = both(lambda of: text.loss(of.log_prob, of.offsets))
    scores = {"loss": -loss, "Min-K%": both(lambda of: text.min_k(of.log_prob, of.offsets))}
    if members.mean is not None:
        scores["Min-K%++"] = both(
            lambda of: text.min_k_plus(of.log_prob, of.mean, of.variance, of.offsets)
        )
    if members.texts is not None:
        compressed = both(lambda of: text.zlib_bytes(of.texts))
        scores["zlib"] = text.over_zlib(loss, both(lambda of: np.diff(of.offsets)), compressed)
    if members.reference_loss is not None:
        references = both(lambda of: of.reference_loss)
        values = np.concatenate([loss[None], references])
        reference_members = np.zeros(references.shape, bool)
        if members.reference_members is not None:
            reference_members = both(lambda of: of.reference_members)
        if reference_members.all(0).any():
            raise MiaError(
                f"reference_members: {int(reference_members.all(0).sum())} records are in the training set of every "
                "reference: one that was not trained on it is needed for each."
            )
        check_counts("reference_members", reference_members, np.arange(len(loss)) < len(members))
        view = ArraySignals({"loss": values, LOG_ODDS: -values}, reference_members)
        scores["calibrated loss"] = registry.score("calibrated loss", view)
        if reference_members.any(0).all() and len(references) >= 4:
            scores |= {name: registry.score(name, view) for name in WITH_REFERENCES}
    return scores


def score_halves(features, is_member: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of records by features that know no model: each half is judged by a logistic regression on the other.

    Args:
        features: [N, W], sparse or dense. is_member: bool [N], who is a member. seed: of the halves.

    Returns:
        scores [N], and which half each is in, bool [N].
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    score, second = np.zeros(len(is_member)), np.zeros(len(is_member), bool)
    folds = StratifiedKFold(2, shuffle=True, random_state=seed % 2**32)
    for fitted, judged in folds.split(is_member, is_member):
        second = np.isin(np.arange(len(is_member)), judged)
        classifier = LogisticRegression(C=10, max_iter=500, class_weight="balanced")
        classifier.fit(features[fitted], is_member[fitted])
        score[judged] = classifier.decision_function(features[judged])
    return score, second


def bag_of_words(texts: Sequence[str]):
    """Features of texts by their words, sparse [N, W]; texts without any word raise `ValueError`."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, max_features=20_000).fit_transform(texts)


def score_texts(
    lengths: np.ndarray, texts: Sequence[str] | None, is_member: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of records by their words and their number of tokens alone, see `score_halves`.

    Args:
        lengths: int [N]. texts: [N], or None. is_member, seed: as for `score_halves`.

    Returns:
        all rows, int [N], their scores [N], and which half each is in, bool [N], as `inputs.score_inputs`.
    """
    from scipy import sparse

    size = np.log(lengths)[:, None]
    features = sparse.csr_matrix((size - size.mean()) / (size.std() or 1))
    if texts is not None:
        try:
            features = sparse.hstack([bag_of_words(texts), features / 10]).tocsr()
        except ValueError:  # no words
            pass
    return np.arange(len(is_member)), *score_halves(features, is_member, seed)
