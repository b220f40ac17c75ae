"""What an audit has, checked before any work: records and their groups, how the model was trained; see `target` for the model.

And the control of every audit: can members be told from non-members without the model? Where they can (another year, another
hospital, another way to make the files), an attack may do as well by looking at the records alone. N records, members first.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import stats

from mia_lib import membership, training
from mia_lib import models as architectures
from mia_lib.audit.options import AuditOptions
from mia_lib.audit.target import Target, check_model, check_outputs
from mia_lib.checks import ALL_KINDS, check_finite, check_mask, check_numbers
from mia_lib.data import Dataset
from mia_lib.errors import MiaError
from mia_lib.training import TrainConfig

LEAST = 50  # members, and non-members: with fewer nearly every interval is empty of news
LEAST_PUBLIC = 60
MOST_GROUPS = 50  # more different names are no groups but numbers or names of records
MOST_RECORDS, COLUMNS, FOLDS, KINDS = 4000, 120, 5, 30  # of the control: records, columns of wide ones, folds, classes
CLOSE, SPREAD = 0.05, 2.0  # accuracies of like models differ by less, and by so many standard errors of a rate besides


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """All that an audit has.

    Attributes:
        target: the model.
        members: records that it was trained on, all or some of them. non_members: others of the same distribution.
        public: records of the same distribution that nobody asks about, or None.
        groups: text [N] of each record of the pool, or None.
        options: what the audit was told.
        rows: int [N], the number of each record in its set as it was given. left_out: how many records that were there before
            were left out of each set.
    """

    target: Target
    members: Dataset
    non_members: Dataset
    public: Dataset | None
    groups: np.ndarray | None
    options: AuditOptions
    rows: np.ndarray
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def recipe(self) -> TrainConfig | None:
        """How the model was trained."""
        return self.options.recipe

    @cached_property
    def pool(self) -> Dataset:
        """Members, then non-members."""
        x, y = (np.concatenate([getattr(self.members, part), getattr(self.non_members, part)]) for part in ("x", "y"))
        return Dataset(f"{self.options.name}'s pool", x, y, len(self.members), self.members.classes)

    @cached_property
    def inside(self) -> np.ndarray:
        """bool [N], who is a member."""
        return np.arange(len(self.pool)) < len(self.members)

    @property
    def class_names(self) -> np.ndarray:
        """The class of each record of the pool, text [N]."""
        return np.array(self.pool.classes)[self.pool.y]

    @property
    def loss(self) -> str:
        """The loss that the model was trained with, as far as is known; of probabilities cross-entropy in the place of squared
        error, which is one of other outputs."""
        known = self.recipe.loss if self.recipe else "cross_entropy"
        return "cross_entropy" if self.target.outputs == "probabilities" and known == "squared_error" else known


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores that were made elsewhere, members first, and what is known of their records.

    Attributes:
        scores: float64 [N], higher for members. inside: bool [N], who is a member. rows: int [N], where each stood in what was
            given. groups: text [N] of each record, or None. options: what the audit was told.
    """

    scores: np.ndarray
    inside: np.ndarray
    rows: np.ndarray
    groups: np.ndarray | None
    options: AuditOptions
    class_names = None


def check_inputs(model, members, non_members, options: AuditOptions) -> AuditInputs:
    """What an audit has, checked; the model is asked about a few records.

    Args:
        model, members, non_members: as for `audit`.

    Raises:
        MiaError: whatever cannot be used, before any work.
    """
    sets, recipe = {"members": members, "non_members": non_members, "public": options.public}, options.recipe
    for argument, records in sets.items():
        if argument != "public" or records is not None:
            _check_set(argument, records)
            _check_alike(argument, records, members)
    groups = _groups(options.groups, (len(members), len(non_members)))
    given = {argument: records for argument, records in sets.items() if records is not None}
    kept = _first_occurrences(given, options.deduplicate)
    for argument, rows in kept.items():
        if rows.sum() < (least := LEAST_PUBLIC if argument == "public" else LEAST):
            raise MiaError(f"{argument} has {rows.sum()} records: at least {least} are needed, and more say more: rates of "
                           f"1 % want some hundreds.")
    left_out = {argument: int((~rows).sum()) for argument, rows in kept.items() if not rows.all()}
    if left_out:
        groups = None if groups is None else groups[np.concatenate([kept["members"], kept["non_members"]])]
        sets |= {argument: sets[argument].take(kept[argument]) for argument in left_out}
        members, non_members = sets["members"], sets["non_members"]
    options.check_resolved(len(non_members))
    scaling = None if options.scaling is None else architectures.check_scaling(options.scaling)
    if recipe is not None:
        if not isinstance(recipe, TrainConfig):
            raise MiaError(f"recipe is of type {type(recipe).__name__}: a training.TrainConfig is needed, how the model "
                           f"was trained.")
        training.train(members, np.ones((1, len(members)), bool), recipe)  # says what does not fit; trains nothing
        scaling = _scaling(model, scaling, recipe, members)
    target = check_model(model, members.classes, options, scaling)
    rows = np.concatenate([np.flatnonzero(kept[side]) for side in ("members", "non_members")])
    inputs = AuditInputs(target, members, non_members, sets["public"], groups, options, rows, left_out)
    check_outputs(target, inputs.pool.x)
    return inputs


def check_scores(scores, members, options: AuditOptions) -> ScoreTable:
    """A table of scores, checked.

    Args:
        scores: numbers [N], higher for members. members: bool [N]. options: of which `groups` is one array [N].

    Raises:
        MiaError: scores that are no finite numbers, other shapes, too few members or non-members, all scores equal.
    """
    scores, members = check_numbers("scores", scores, ALL_KINDS), check_mask("members", members)
    if scores.dtype.kind not in "biuf" or scores.ndim != 1:
        raise MiaError(f"scores have shape {scores.shape} and type {scores.dtype}: numbers [N] are needed, one a record, "
                       "higher for members. Of a loss give the negative, of probabilities that of the true class.")
    if members.shape != scores.shape:
        raise MiaError(f"members has shape {members.shape}, but there are {len(scores)} scores: one a record is needed.")
    scores = scores.astype(np.float64)
    check_finite("scores", scores, "records", "Leave these records out, or give each a number.")
    for what, count in (("members", int(members.sum())), ("non-members", int((~members).sum()))):
        if count < LEAST:
            raise MiaError(f"The table has {count} {what}: at least {LEAST} are needed, and more say more.")
    if np.ptp(scores) == 0:
        raise MiaError(f"All scores are {scores[0]:g}: they tell no record from another.")
    options.check_resolved(int((~members).sum()))
    order = np.argsort(~members, kind="stable")
    groups = None
    if options.groups is not None:
        groups = check_numbers("groups", options.groups, ALL_KINDS)
        if groups.shape != scores.shape:
            raise MiaError(f"groups have shape {groups.shape}, but there are {len(scores)} scores: one a record is needed.")
        parts = np.split(groups[order], [int(members.sum())])
        groups = _groups(tuple(parts), tuple(map(len, parts)))
    return ScoreTable(scores[order], members[order], order, groups, options)


def _scaling(model, scaling: str | tuple | None, recipe: TrainConfig, members: Dataset) -> str | tuple | None:
    """How images are fed to the model, which must be how the recipe feeds them to the references."""
    known = architectures.fed(model) if scaling is None else scaling
    if members.is_image and known is not None and architectures.check_scaling(known) != recipe.scaling:
        source = f"scaling = {scaling!r}" if scaling is not None else f"model was trained with scaling = {known!r}"
        raise MiaError(f"{source}, and recipe.scaling = {recipe.scaling!r}: the model and the references trained by the "
                       f"recipe would see different pixels. Give both the same, as by dataclasses.replace(recipe, "
                       f"scaling={known!r}).")
    return recipe.scaling if scaling is None and recipe.scaling != "-1 to 1" else scaling


def _check_set(argument: str, records) -> None:
    if not isinstance(records, Dataset):
        raise MiaError(f"{argument} is of type {type(records).__name__}: a data.Dataset is needed, such as "
                       f"data.from_arrays(x, y, {argument!r}).")
    if len(records.classes) < 2:
        raise MiaError(f"{argument} has {len(records.classes)} class: a classifier tells at least 2 apart.")


def _check_alike(argument: str, other: Dataset, members: Dataset) -> None:
    if other.shape != members.shape:
        raise MiaError(f"{argument} has records of shape {other.shape}, members {members.shape}: they must be prepared "
                       f"alike.")
    if other.is_image != members.is_image or (other.x.dtype.kind == "f") != (members.x.dtype.kind == "f"):
        raise MiaError(f"{argument} has records of type {other.x.dtype}, members of {members.x.dtype}: they must be "
                       f"prepared alike, or the type gives membership away.")
    if other.classes != members.classes:
        lacking = [name for name in members.classes if name not in other.classes]
        more = [name for name in other.classes if name not in members.classes]
        what = ", and ".join([f"lacks {list_few(lacking)}"] * bool(lacking)
                             + [f"has {list_few(more)}, which members lack"] * bool(more)) or (
            f"has them in the order {list_few(other.classes)}, members {list_few(members.classes)}")
        raise MiaError(f"{argument} has other classes than members: it {what}. Both need the same in the same order, or "
                       "labels mean different things. Give the same classes=... to both.")


def list_few(names: Sequence[str]) -> str:
    """Up to four names."""
    return f"{', '.join(map(str, names[:4]))}{f' and {len(names) - 4} more' if len(names) > 4 else ''}"


def digests(records: Dataset) -> np.ndarray:
    """A hash of what each record is, whatever its label; fractions as float32, text [N]."""
    fractions = records.x.dtype.kind == "f"
    x = records.x.astype(np.float32) + np.float32(0) if fractions else records.x.astype(np.int64)  # -0 is 0
    rows = np.ascontiguousarray(x.reshape(len(x), int(np.prod(records.shape))))
    return np.array([hashlib.blake2b(row.data, digest_size=16).hexdigest() for row in rows], str)


def _first_occurrences(sets: Mapping[str, Dataset], deduplicate: bool) -> dict[str, np.ndarray]:
    """Which records of each set are there for the first time, in the order of the sets, bool [N]; the others are refused
    unless they are to be left out."""
    kept: dict[str, np.ndarray] = {}
    before: dict[str, np.ndarray] = {}
    cure = "deduplicate=True (--deduplicate on the command line) leaves them out, and the report says how many."
    for argument, records in sets.items():
        own = digests(records)
        first = np.zeros(len(own), bool)
        first[np.unique(own, return_index=True)[1]] = True
        if not deduplicate and not first.all():
            raise MiaError(f"{argument} holds {(~first).sum()} records that are there before, by content, such as number "
                           f"{np.flatnonzero(~first)[0]}: they would be counted twice. {cure}")
        for other, hashes in before.items():
            shared = np.isin(own, hashes)
            if not deduplicate and shared.any():
                why = ("a record is one or the other" if argument == "non_members" else
                       "what is learned from public records must not be learned from those judged")
                raise MiaError(f"{shared.sum()} records of {argument} are in {other}, too, by content, such as number "
                               f"{np.flatnonzero(shared)[0]}: {why}. {cure}")
            first &= ~shared
        kept[argument], before[argument] = first, own
    return kept


def _groups(groups, counts: tuple[int, int]) -> np.ndarray | None:
    """The groups of members and of non-members, of which there are `counts`, as text [N]."""
    if groups is None:
        return None
    if not isinstance(groups, tuple | list) or len(groups) != 2:
        raise MiaError("groups must be a pair: an array for the members and one for the non-members, the group of each "
                       "record.")
    parts = []
    for argument, part, count in zip(("members", "non_members"), groups, counts, strict=True):
        part = check_numbers(f"groups of {argument}", part, ALL_KINDS)
        if part.shape != (count,):
            raise MiaError(f"groups of {argument} have shape {part.shape}, but there are {count} records: one a record is "
                           "needed.")
        if part.dtype.kind == "f" and np.isnan(part).any():
            raise MiaError(f"groups of {argument} hold {int(np.isnan(part).sum())} NaN: give what is missing a name of its "
                           "own.")
        parts.append(part.astype(str))
    names = np.concatenate(parts)
    different = len(np.unique(names))
    if not 2 <= different <= MOST_GROUPS:
        remedy = "leave groups out" if different < 2 else "put numbers into bins, as by np.digitize"
        raise MiaError(f"groups have {different} different name{'s' if different > 1 else ''}: allowed are 2 to "
                       f"{MOST_GROUPS}; {remedy}.")
    return names


def check_right(inputs: AuditInputs, right: np.ndarray) -> None:
    """Refuse a model that is wrong about its own members more often than a guess.

    Args:
        right: bool [N], whether it is right about each record of the pool.

    Raises:
        MiaError: so rarely right that columns or labels must be in another order.
    """
    count, members, classes = int(right[inputs.inside].sum()), len(inputs.members), inputs.members.classes
    if stats.binom.cdf(count, members, 1 / len(classes)) < 1e-6:
        raise MiaError(f"model is right about {count} of {members} members, fewer than a guess among {len(classes)} classes: "
                       f"the columns of its outputs, the labels or the pixels are not as it knows them. The order of classes "
                       f"is {list_few(classes)}; a scikit-learn model's is its classes_, which columns=model.classes_ gives.")


def halves(inputs: AuditInputs, count: int) -> np.ndarray:
    """Training sets of references: random halves of the pool in complementary pairs, bool [R, N]."""
    return membership.balanced_halves(len(inputs.pool), count, inputs.options.seed)


def reseeded(recipe: TrainConfig) -> TrainConfig:
    """The recipe with other random numbers than the model's, so that nothing trained by it begins where the model did."""
    return replace(recipe, seed=recipe.seed + 1)


def unlike(accuracy: tuple[float, float], of_model: tuple[float, float], inputs: AuditInputs) -> bool:
    """Whether models are right about members, or about non-members, more or less often than the audited one, by more than like
    ones are.

    Args:
        accuracy, of_model: on records that each was trained on, and on others.
    """
    counts = len(inputs.members), len(inputs.non_members)
    return any(abs(one - other) > CLOSE + SPREAD * np.sqrt(other * (1 - other) / n)
               for one, other, n in zip(accuracy, of_model, counts, strict=True))


# --------------------------------------------------------------------------------------------- the control without the model


def describe(x: np.ndarray, y: np.ndarray, classes: int, seed: int) -> np.ndarray:
    """What a classifier sees of records, [N, C]: their numbers, or random projections of them; simple statistics; the
    class.

    Args:
        x: in the form of `Dataset.x`. y: labels int [N]. classes: K. seed: of the projections.
    """
    flat = x.reshape(len(x), -1).astype(np.float64)
    spread = flat.std(0)
    flat = (flat - flat.mean(0)) / np.where(spread > 0, spread, 1)
    raw = x.reshape(len(x), -1, x.shape[-1] if x.ndim == 4 else 1).astype(np.float64)
    simple = np.concatenate([raw.mean(1), raw.std(1), raw.min(1), raw.max(1), (raw == raw.round()).mean(1)], 1)
    if flat.shape[1] > COLUMNS:
        chance = np.random.default_rng([29, seed])
        flat = flat @ chance.standard_normal((flat.shape[1], COLUMNS)) / np.sqrt(flat.shape[1])
    kind = np.eye(classes)[y] if classes <= KINDS else y[:, None]
    return np.concatenate([flat, simple, kind], 1)


def score_inputs(inputs: AuditInputs) -> tuple[np.ndarray, np.ndarray]:
    """What a classifier that never sees the model makes of records, each asked about by one that was not trained on it.

    The mean rank of a logistic regression and of extremely randomised trees, in `FOLDS` folds. Ranks are within a fold, for
    the folds' classifiers have different scales.

    Returns:
        rows of the pool that were looked at, int [n], and their scores [n].
    """
    pool = inputs.pool
    return cross_validate(pool.x, pool.y, len(pool.classes), inputs.inside, inputs.options.seed)


def draw_rows(inside: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Rows that a classifier is shown, ascending int [n]: all, or `MOST_RECORDS` of them, half of each side as far as it goes.

    The rarer side is kept whole where it is less than half of them, for a difference is seen by its records.

    Args:
        inside: bool [N], who is a member. chance: that draws.
    """
    sides = [chance.permutation(np.flatnonzero(side)) for side in (inside, ~inside)]
    rarer = min(*map(len, sides), MOST_RECORDS // 2)
    return np.sort(np.concatenate([side[:MOST_RECORDS - rarer] for side in sides]))


def cross_validate(x: np.ndarray, y: np.ndarray, classes: int, inside: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that were looked at and their scores; arguments as for `describe` and `draw_rows`."""
    from scipy.stats import rankdata
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = draw_rows(inside, np.random.default_rng([31, seed]))
    table, inside = describe(x[rows], y[rows], classes, seed), inside[rows]
    score = np.zeros(len(rows))
    for fitted, judged in StratifiedKFold(FOLDS, shuffle=True, random_state=seed % 2**32).split(table, inside):
        for classifier in (make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200, class_weight="balanced")),
                           ExtraTreesClassifier(40, min_samples_leaf=5, class_weight="balanced",
                                                random_state=seed % 2**32)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # one that has not converged is as good a control
                p = classifier.fit(table[fitted], inside[fitted]).predict_proba(table[judged])[:, 1]
            score[judged] += rankdata(p) / len(judged) / 2
    return rows, score
