"""Attacks on language models of verses: tidy frames, of which nothing is kept.

Scores are higher for members. What is measured of a model is the mean loss of a verse in nats a token; its negative stands
where attacks on classifiers read log odds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from mia_book.chapters.text import measure
from mia_lib import data, metrics
from mia_lib.attacks import registry, text
from mia_lib.attacks.quantile import gaussian_position
from mia_lib.attacks.registry import LOG_ODDS
from mia_lib.audit.tokens import bag_of_words, score_halves
from mia_lib.game import Game, View
from mia_lib.metrics import by_repetition, by_target
from mia_lib.published import Bank

METRICS = ("auc", "tpr_at_fpr=0.01")
# without references: attack -> the signal, higher for members
WITHOUT_REFERENCES = {"Min-K%": "min_k", "Min-K%++": "min_k_plus", "zlib": "zlib"}
COMPARISONS = ("calibrated loss", "MAST (best split)", "MAST (midpoint)", "BASE", "LiRA")
REGRESSIONS = {  # on what is known of a verse
    "quantile regression": ["length", "rarity"],
    "quantile regression on length alone": ["length"],
}
OLD_BOOKS = 39
FIFTHS = ("first", "second", "third", "fourth", "last")
FALSE_ALARMS, POWER = 0.01, 0.8  # of a decision about a collection
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # of a collection that was trained on
COLLECTION = 500  # records
LARGEST = 50  # of scores, in size: one log odds beyond counts no more in a mean
RANDOM_COLLECTIONS, BOOK_COLLECTIONS = 2000, 200  # drawn for a threshold, and from each book


def describe_verses(count: int, copies: Mapping[int, int] | None = None) -> pd.DataFrame:
    """What can be said of the first `count` verses without a model.

    Args:
        copies: how often a verse lies in a training set, if at all -> how many of them, those at the end in this order.

    Returns:
        text; length, predicted tokens; compressed, bytes of zlib; rarity, mean surprisal of its tokens in nats by their counts
        in verses that are not judged; new, whether its book is of the New Testament; copies; kept, the share of its sequences
        of five words that the other translation has, too; book, its number.
    """
    kjv = data.load("verses_kjv")
    judged, others = kjv.x[:count], kjv.x[data.JUDGED :]
    counts = np.bincount(others[others >= 0], minlength=len(kjv.classes)) + 1
    surprisal = -np.log(counts / counts.sum())
    here = judged[:, 1:] >= 0
    length = here.sum(1)
    said = data.texts(kjv.take(np.arange(count)))
    other = data.texts(data.load("verses_web").take(np.arange(count)))
    repeated = np.ones(count, int)
    start = count - sum((copies or {}).values())
    for times, many in (copies or {}).items():
        repeated[start : start + many] = times
        start += many
    return pd.DataFrame(
        {
            "text": said,
            "length": length,
            "compressed": text.zlib_bytes(said),
            "rarity": (surprisal[judged[:, 1:]] * here).sum(1) / length,
            "book": data.places()["book"][:count].to_numpy(),
            "new": data.places()["book"][:count] >= OLD_BOOKS,
            "copies": repeated,
            "kept": [share_kept(*pair) for pair in zip(said, other, strict=True)],
        }
    )


def share_kept(verse: str, other: str, words: int = 5) -> float:
    """Share of a verse's sequences of so many words that another text has, too; NaN of a shorter verse."""
    own, theirs = (
        {tuple(parts[k : k + words]) for k in range(len(parts) - words + 1)}
        for parts in (_words(verse), _words(other))
    )
    return len(own & theirs) / len(own) if own else np.nan


def _words(verse: str) -> list[str]:
    return "".join(letter if letter.isalpha() else " " for letter in verse.lower()).split()


def games(
    bank: Bank, verses: pd.DataFrame, targets: int, references: int
) -> Iterator[tuple[int, Game]]:
    """The game on a bank after each number of passes over the training set."""
    for place, passes in enumerate(bank.parameters["passes"]):
        loss = bank.loss[:, place].astype(np.float64)
        values = {"loss": loss, LOG_ODDS: -loss}
        values |= {name: bank.arrays[name][:, place] for name in ("min_k", "min_k_plus")}
        values["zlib"] = text.over_zlib(
            loss, verses["length"].to_numpy(), verses["compressed"].to_numpy()
        )
        yield passes, Game(bank.members, values, {}, range(0, 2 * targets, 2), references)


def _own(signal: str):
    def score(view: View) -> np.ndarray:
        return view.own(signal)

    return score


def one_model(view: View) -> np.ndarray:
    """The loss minus that of one other model, which was not trained on the verse: the first pair's."""
    loss, reference_members = view.references("loss")
    return np.where(reference_members[0], loss[1], loss[0]) - view.own("loss")


def first_model(view: View) -> np.ndarray:
    """The loss minus that of the first reference, whether it was trained on the verse or not."""
    return view.references("loss")[0][0] - view.own("loss")


def midpoint(view: View) -> np.ndarray:
    """MAST with the threshold midway between the mean losses with the verse and without it."""
    return registry.score("MAST (best split)", view, estimator="middle")


ATTACKS = {
    "Loss": "MALT",
    **{name: _own(signal) for name, signal in WITHOUT_REFERENCES.items()},
    "one other model": one_model,
    "one other model, read or not": first_model,
    **{name: name for name in COMPARISONS},
    "MAST (midpoint)": midpoint,
}


def _judge(
    views: Sequence[View],
    members: np.ndarray,
    attacks: Sequence[str],
    names: Sequence[str],
    further: Mapping[str, np.ndarray] | None = None,
    **columns,
) -> pd.DataFrame:
    """Metrics of some of `ATTACKS`, or of the registry's, and of `further` scores [T, N], on the records that the views
    judge, see `metrics.by_target`."""
    scores = {
        name: np.stack([registry.score(ATTACKS.get(name, name), view) for view in views])
        for name in attacks
    }
    return by_target(scores | dict(further or {}), members, names, **columns)


def attack(
    bank: Bank, verses: pd.DataFrame, targets: int, references: int, draws: int
) -> pd.DataFrame:
    """Study "attacks": every attack after each number of passes, on the verses that lie in a training set once."""
    once = np.flatnonzero(verses["copies"] == 1)
    where = {"study": "attacks", "references": references, "draws": draws}
    frames = [
        _judge(
            [view.on(once) for view in game],
            game.target_members[:, once],
            [*ATTACKS],
            METRICS,
            passes=passes,
            **where,
        )
        for passes, game in games(bank, verses, targets, references)
    ]
    return pd.concat(frames, ignore_index=True)


def variation(bank: Bank, verses: pd.DataFrame) -> tuple[float, float]:
    """How much verses differ: standard deviation over mean of their tokens a byte of zlib, and of their losses under a model
    after the last pass, the mean over models; of verses that lie in a training set once."""
    once = (verses["copies"] == 1).to_numpy()
    tokens = (verses["length"] / verses["compressed"])[once].to_numpy()
    loss = bank.loss[:, -1, once].astype(np.float64)
    return float(tokens.std() / tokens.mean()), float((loss.std(1) / loss.mean(1)).mean())


def by_references(
    bank: Bank, verses: pd.DataFrame, targets: int, counts: Sequence[int], draws: int
) -> pd.DataFrame:
    """Study "references": attacks that compare, by how many models they compare with."""
    once = np.flatnonzero(verses["copies"] == 1)
    where = {"study": "references", "draws": draws}
    frames = [
        _judge(
            [game.view(target, count).on(once) for target in game.targets],
            game.target_members[:, once],
            COMPARISONS,
            METRICS,
            passes=passes,
            references=count,
            **where,
        )
        for passes, game in games(bank, verses, targets, max(counts))
        for count in counts
    ]
    return pd.concat(frames, ignore_index=True)


def variants(bank: Bank, further: Bank, draws: int) -> pd.DataFrame:
    """Study "variants": attacks without references at the end, on all verses: Min-K% and Min-K%++ by the share of tokens that
    they look at, and the loss of the verse in lower case over that of the verse as it is (Carlini et al. 2021).

    Args:
        bank, further: `measure.verses`, and `measure.variants` of its first models. One of each pair of these is attacked.
    """
    rows = np.arange(0, len(further.members), 2)
    loss = bank.loss[rows, -1].astype(np.float64)
    where = {"study": "variants", "passes": bank.parameters["passes"][-1]}
    scores = {("Loss", 1.0): -loss, ("lower case", 1.0): further.lower[rows] / loss}
    for name, signal in (("Min-K%", "min_k"), ("Min-K%++", "min_k_plus")):
        scores[name, 0.2] = bank.arrays[signal][rows, -1]
        for place, share in enumerate(measure.SHARES):
            scores[name, share] = further.arrays[signal][rows, place]
    frames = [
        by_target({name: of}, bank.members[rows], ("auc",), draws=draws, share=share, **where)
        for (name, share), of in scores.items()
    ]
    return pd.concat(frames, ignore_index=True)


def expected(bank: Bank, verses: pd.DataFrame, targets: int, draws: int, seed: int) -> pd.DataFrame:
    """Study "expected": quantile regression (Bertran et al. 2023) beside other attacks, after each number of passes.

    Of a random half of the verses the attacker knows which were not trained on, and learns from them what mean and spread of
    the target's loss to expect of a verse with its length and rarity, or with its length alone. All attacks are judged on the
    other half, by verses that lie in a training set once.
    """
    once = np.random.default_rng(seed).permutation(np.flatnonzero(verses["copies"] == 1))
    known, judged = np.sort(once[: len(once) // 2]), np.sort(once[len(once) // 2 :])
    frames = []
    for passes, game in games(bank, verses, targets, 2):
        positions: dict[str, list[np.ndarray]] = {name: [] for name in REGRESSIONS}
        for view, members in zip(game, game.target_members, strict=True):
            loss, public = view.own("loss"), known[~members[known]]
            for name, columns in REGRESSIONS.items():
                mean, spread = _fit_gaussian(verses.loc[public, columns], loss[public])
                of_judged = verses.loc[judged, columns]
                positions[name].append(
                    gaussian_position(-loss[judged], -mean(of_judged), spread(of_judged))
                )
        frames.append(
            _judge(
                [view.on(judged) for view in game],
                game.target_members[:, judged],
                ("Loss", *WITHOUT_REFERENCES, "one other model"),
                METRICS,
                draws=draws,
                further={name: np.stack(of) for name, of in positions.items()},
                study="expected",
                passes=passes,
            )
        )
    return pd.concat(frames, ignore_index=True)


def _fit_gaussian(features: pd.DataFrame, loss: np.ndarray) -> tuple[Callable, Callable]:
    """Functions of features that give the mean of a loss and its spread, by boosted trees."""
    trees = {"max_leaf_nodes": 8, "random_state": 0}
    mean = HistGradientBoostingRegressor(max_iter=60, **trees).fit(features, loss)
    left = np.abs(loss - mean.predict(features))
    spread = HistGradientBoostingRegressor(max_iter=40, **trees).fit(features, left)
    return mean.predict, lambda asked: np.maximum(spread.predict(asked), left.mean() / 10)


# ------------------------------------------------------------------------------------------------- without the model


def blind(
    bank: Bank, verses: pd.DataFrame, targets: int, references: int, draws: int
) -> pd.DataFrame:
    """Study "blind": attacks beside a bag of words, that knows no model, on two benchmarks. In one members and others are
    random verses; in the other members are of the Old Testament and others of the New, equally many."""
    words = bag_of_words(verses["text"])
    new = verses["new"].to_numpy()
    played = [*games(bank, verses, targets, references)]
    members = played[0][1].target_members
    count = min(min((of & ~new).sum(), (~of & new).sum()) for of in members)
    rows = {
        "random": [np.arange(len(verses))] * len(members),
        "by testament": [
            np.concatenate([np.flatnonzero(side)[:count] for side in (of & ~new, ~of & new)])
            for of in members
        ],
    }
    frames = []
    for split, of_split in rows.items():
        judged_members = np.stack(
            [of[judged] for of, judged in zip(members, of_split, strict=True)]
        )
        without_model = np.stack(
            [
                score_halves(words[judged], of, seed=0)[0]
                for of, judged in zip(judged_members, of_split, strict=True)
            ]
        )
        for passes, game in played:
            views = [view.on(judged) for view, judged in zip(game, of_split, strict=True)]
            scores = {
                name: np.stack([registry.score(ATTACKS[name], view) for view in views])
                for name in ("Loss", "Min-K%++", "LiRA")
            }
            frames.append(
                by_target(
                    scores | {"bag of words": without_model},
                    judged_members,
                    ("auc",),
                    draws=draws,
                    shared=False,
                    records=np.stack(of_split),
                    study="blind",
                    passes=passes,
                    split=split,
                )
            )
    return pd.concat(frames, ignore_index=True)


# -------------------------------------------------------------------------------------------------------- who is exposed


def exposed(
    bank: Bank, verses: pd.DataFrame, targets: int, references: int, draws: int
) -> pd.DataFrame:
    """Study "exposed": the loss and LiRA on verses of each fifth by length and by rarity, and by their copies."""
    once = verses["copies"] == 1
    groups = {
        (of, fifth): np.flatnonzero(once)[
            pd.qcut(verses.loc[once, of].rank(method="first"), 5, labels=FIFTHS) == fifth
        ]
        for of in ("length", "rarity")
        for fifth in FIFTHS
    }
    groups |= {
        ("copies", str(times)): np.flatnonzero(verses["copies"] == times)
        for times in verses["copies"].unique()
    }
    played = [
        ({"study": "exposed", "passes": passes}, game)
        for passes, game in games(bank, verses, targets, references)
    ]
    return pd.concat(
        [
            _judge_rows(game, rows, ("Loss", "LiRA"), draws, of=of, part=part, **where)
            for where, game in played
            for (of, part), rows in groups.items()
        ],
        ignore_index=True,
    )


def _judge_rows(
    game: Game, rows: np.ndarray, attacks: Sequence[str], draws: int, **columns
) -> pd.DataFrame:
    """AUC of attacks on some of the records."""
    views, members = [view.on(rows) for view in game], game.target_members[:, rows]
    return _judge(views, members, attacks, ("auc",), draws=draws, **columns)


PARAPHRASE_ATTACKS = ("Loss", "one other model", "LiRA, offline", "LiRA")


def paraphrased(
    bank: Bank, verses: pd.DataFrame, targets: int, references: int, draws: int
) -> pd.DataFrame:
    """Study "paraphrase": attacks at the end by the losses of the *other* translation of each verse, which no model was
    trained on, by how much of the verse's wording it keeps; beside those by the verse itself. Half of LiRA's references were
    trained on the verse; those of "LiRA, offline" and "one other model" were not."""
    *_, (passes, own) = games(bank, verses, targets, references)
    other = bank.other.astype(np.float64)
    game = Game(bank.members, {"loss": other, LOG_ODDS: -other}, {}, own.targets, references)
    once, kept = verses["copies"] == 1, verses["kept"]
    wordings = {
        "all": once,
        "no wording": once & (kept == 0),
        "less than half": once & (kept > 0) & (kept < 0.5),
        "half or more": once & (kept >= 0.5),
    }
    where = {"study": "paraphrase", "passes": passes}
    asked = (
        (where | {"asked": "the verse"}, own),
        (where | {"asked": "the other translation"}, game),
    )
    return pd.concat(
        [
            _judge_rows(
                of, np.flatnonzero(mask), PARAPHRASE_ATTACKS, draws, wording=wording, **where
            )
            for where, of in asked
            for wording, mask in wordings.items()
        ],
        ignore_index=True,
    )


# ------------------------------------------------------------------------------------------------------- many records at once


def records_needed(scores: np.ndarray, members: np.ndarray) -> float:
    """How many records of a collection tell that it was trained on, by the mean of their scores.

    With mean mu and standard deviation sigma of the scores of members (1) and others (0), a mean over n records exceeds what
    1 % of collections of others reach with probability .8 if

        ``n = ((z_.99 sigma_0 + z_.8 sigma_1) / (mu_1 - mu_0))^2``,

    for the mean of many is normal; infinity where members have no higher mean.

    Args:
        scores: [N], higher for members. members: bool [N].
    """
    from scipy.stats import norm

    member_scores, other_scores = scores[members], scores[~members]
    lead = member_scores.mean() - other_scores.mean()
    if lead <= 0:
        return np.inf
    spread = norm.isf(FALSE_ALARMS) * other_scores.std() + norm.ppf(POWER) * member_scores.std()
    return float((spread / lead) ** 2)


def share_error(
    score: np.ndarray, members: np.ndarray, known: np.ndarray, of_known: np.ndarray, seed: int
) -> dict[str, float]:
    """Error of the estimated share of a collection that was trained on (Tong et al. 2025, DUCI).

    A record is called a member above the threshold at which the attacker's own model has the largest difference of true and
    false positive rates; the share of calls less the false positive rate, over that difference, is the estimate.

    Args:
        score, members: of the target, [N]. known, of_known: scores and membership of the attacker's own model, [N].
        seed: of the collections, of `COLLECTION` records each, one for each of `SHARES`.

    Returns:
        mean absolute error of the estimate, and of the share of calls as it is.
    """
    fpr, tpr, thresholds = metrics.roc_curve(known, of_known)
    best = np.argmax(tpr - fpr)
    called = score >= thresholds[best]
    rng = np.random.default_rng([seed, 74])
    member_rows, other_rows = np.flatnonzero(members), np.flatnonzero(~members)
    size = min(COLLECTION, len(member_rows), len(other_rows))
    errors = {"share": [], "calls": []}
    for share in SHARES:
        many = round(share * size)
        rows = np.concatenate(
            [rng.permutation(member_rows)[:many], rng.permutation(other_rows)[: size - many]]
        )
        guess = called[rows].mean()
        errors["calls"].append(abs(guess - share))
        estimate = (guess - fpr[best]) / (tpr[best] - fpr[best])
        errors["share"].append(abs(np.clip(estimate, 0, 1) - share))
    return {name: float(np.mean(of)) for name, of in errors.items()}


def books_accused(
    score: np.ndarray, members: np.ndarray, books: np.ndarray, size: int, seed: int
) -> float:
    """False alarms on collections of one book, where 1 % of random collections of others are accused.

    Args:
        score, members: of the target, [N]. books: int [N], the book of each record. size: records of a collection.
        seed: of the collections.

    Returns:
        Share of collections, each of `size` records of one book that are no members, whose mean score exceeds what
        1 % of random collections of others reach; the mean over books that have as many. NaN where none has.
    """
    rng = np.random.default_rng([seed, 75])
    others = np.flatnonzero(~members)
    counts = np.bincount(books[others])
    if size > counts.max():
        return np.nan

    def means(rows: np.ndarray, count: int) -> np.ndarray:
        order = rng.random((count, len(rows)), dtype=np.float32)  # the first `size` are drawn
        return score[rows[np.argpartition(order, size - 1, axis=1)[:, :size]]].mean(1)

    threshold = np.quantile(means(others, RANDOM_COLLECTIONS), 1 - FALSE_ALARMS)
    accused = [
        means(others[books[others] == book], BOOK_COLLECTIONS) > threshold
        for book in np.flatnonzero(counts >= size)
    ]
    return float(np.mean(accused))


COLLECTION_ATTACKS = {"Loss": "MALT", "one other model": one_model, "LiRA": "LiRA"}


def collections(game: Game, books: np.ndarray | None = None, **columns) -> pd.DataFrame:
    """Study "collections", for each target: "evidence" of a record, one over `records_needed`; `share_error` with a
    threshold of one of the attacker's own models; and "accused", `books_accused` by collections of as many records as are
    needed, where the books [N] of the records are given and each target has one that is large enough."""
    values: dict[str, dict[str, list[float]]] = {name: {} for name in COLLECTION_ATTACKS}
    for view, members in zip(game, game.target_members, strict=True):
        [(own, of_own)] = view.rehearsals(1)
        for name, how in COLLECTION_ATTACKS.items():
            score, of_own_model = (
                np.clip(registry.score(how, each), -LARGEST, LARGEST) for each in (view, own)
            )
            needed = records_needed(score, members)
            found = {"evidence": 1 / needed}
            found |= share_error(score, members, of_own_model, of_own, view.target)
            if books is not None:
                size = int(np.ceil(min(needed, len(members))))
                found["accused"] = books_accused(score, members, books, size, view.target)
            for metric, value in found.items():
                values[name].setdefault(metric, []).append(value)
    for each in values.values():
        if np.isnan(each.get("accused", ())).any():
            del each["accused"]
    arrays = {
        name: {metric: np.array(of) for metric, of in each.items()} for name, each in values.items()
    }
    return by_repetition(arrays, study="collections", **columns)


# ------------------------------------------------------------------------------------------------------------- fine-tuned


def tuned(bank: Bank, draws: int) -> pd.DataFrame:
    """Study "tuned": attacks on one fine-tuned model of each pair, among them the loss less that of the base, which every
    fine-tuner has. The models of the other pairs are references."""
    targets, references = range(0, len(bank.members), 2), len(bank.members) - 2
    frames = []
    for place, passes in enumerate(bank.parameters["tuned_passes"]):
        loss = bank.loss[:, place].astype(np.float64)
        values = {"loss": loss, LOG_ODDS: -loss, "base": bank.base.astype(np.float64)}
        game = Game(bank.members, values, {}, targets, references)

        def less_base(view: View) -> np.ndarray:
            return view.own("base") - view.own("loss")

        scores = game.scores(
            {"Loss": "MALT", "base model": less_base, "one other model": one_model, "LiRA": "LiRA"}
        )
        frames.append(
            by_target(
                scores, game.target_members, METRICS, draws=draws, study="tuned", passes=passes
            )
        )
    return pd.concat(frames, ignore_index=True)


def curves(
    bank: Bank, verses: pd.DataFrame, place: int, references: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Scores [N] of attacks on the first model after the number of passes at `place`, and its members, on verses that lie in a
    training set once."""
    _, game = [*games(bank, verses, 1, references)][place]
    once = np.flatnonzero(verses["copies"] == 1)
    view = game.view(0).on(once)
    names = ("Loss", "Min-K%++", "one other model", "LiRA")
    return {name: registry.score(ATTACKS[name], view) for name in names}, game.members[0, once]
