"""What an audit has, checked before any work: records and their groups, how the model was trained; see `target` for the model.

N records, members first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import stats

from mia_lib import membership, training
from mia_lib import models as architectures
from mia_lib.audit.options import AuditOptions
from mia_lib.audit.target import Target, check_model, check_outputs
from mia_lib.checks import check_finite, check_mask
from mia_lib.data import Dataset
from mia_lib.errors import MiaError
from mia_lib.training import TrainConfig

LEAST = 50  # members, and non-members: with fewer nearly every interval is empty of news
LEAST_PUBLIC = 60
MOST_GROUPS = 50  # more different names are no groups but numbers or names of records


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """All that an audit has.

    Attributes:
        target: the model.
        members: records that it was trained on, all or some of them. non_members: others of the same distribution.
        groups: text [N] of each record of the pool, or None.
        options: what the audit was told.
    """

    target: Target
    members: Dataset
    non_members: Dataset
    groups: np.ndarray | None
    options: AuditOptions

    @property
    def public(self) -> Dataset | None:
        """Records of the same distribution that nobody asks about."""
        return self.options.public

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
    public, recipe = options.public, options.recipe
    for argument, records in (("members", members), ("non_members", non_members)):
        _check_set(argument, records, LEAST)
    if public is not None:
        _check_set("public", public, LEAST_PUBLIC)
    for argument, other in (("non_members", non_members), ("public", public)):
        if other is not None:
            _check_alike(argument, other, members)
    _check_content(members, non_members, public)
    options.check_resolved(len(non_members))
    scaling = None if options.scaling is None else architectures.check_scaling(options.scaling)
    groups = _groups(options.groups, (len(members), len(non_members)))
    if recipe is not None:
        if not isinstance(recipe, TrainConfig):
            raise MiaError(f"recipe is of type {type(recipe).__name__}: a training.TrainConfig is needed, how the model "
                           f"was trained.")
        training.train(members, np.ones((1, len(members)), bool), recipe)  # says what does not fit; trains nothing
        scaling = _scaling(model, scaling, recipe, members)
    target = check_model(model, members.classes, options, scaling)
    inputs = AuditInputs(target, members, non_members, groups, options)
    check_outputs(target, inputs.pool.x, inputs.loss)
    return inputs


def check_scores(scores, members, options: AuditOptions) -> ScoreTable:
    """A table of scores, checked.

    Args:
        scores: numbers [N], higher for members. members: bool [N]. options: of which `groups` is one array [N].

    Raises:
        MiaError: scores that are no finite numbers, other shapes, too few members or non-members, all scores equal.
    """
    scores, members = np.asarray(scores), check_mask("members", members)
    if scores.dtype.kind not in "biuf" or scores.ndim != 1:
        raise MiaError(f"scores have shape {scores.shape} and type {scores.dtype}: numbers [N] are needed, one a record, "
                       "higher for members. Of a loss give the negative, of probabilities that of the true class.")
    if members.shape != scores.shape:
        raise MiaError(f"members has shape {members.shape}, but there are {len(scores)} scores: one a record is needed.")
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
        groups = np.asarray(options.groups)
        if groups.shape != scores.shape:
            raise MiaError(f"groups have shape {groups.shape}, but there are {len(scores)} scores: one a record is needed.")
        parts = np.split(groups[order], [int(members.sum())])
        groups = _groups(tuple(parts), tuple(map(len, parts)))
    return ScoreTable(scores[order].astype(np.float64), members[order], order, groups, options)


def _scaling(model, scaling: str | tuple | None, recipe: TrainConfig, members: Dataset) -> str | tuple | None:
    """How images are fed to the model, which must be how the recipe feeds them to the references."""
    known = architectures.fed(model) if scaling is None else scaling
    if members.is_image and known is not None and architectures.check_scaling(known) != recipe.scaling:
        source = f"scaling = {scaling!r}" if scaling is not None else f"model was trained with scaling = {known!r}"
        raise MiaError(f"{source}, and recipe.scaling = {recipe.scaling!r}: the model and the references trained by the "
                       f"recipe would see different pixels. Give both the same, as by dataclasses.replace(recipe, "
                       f"scaling={known!r}).")
    return recipe.scaling if scaling is None and recipe.scaling != "-1 to 1" else scaling


def _check_set(argument: str, records, least: int) -> None:
    if isinstance(records, np.ndarray | list | tuple):
        raise MiaError(f"{argument} is of type {type(records).__name__}: a data set with labels is needed, such as "
                       f"data.from_arrays(x, y, {argument!r}).")
    if not isinstance(records, Dataset):
        raise MiaError(f"{argument} is of type {type(records).__name__}: a data.Dataset is needed.")
    if len(records.classes) < 2:
        raise MiaError(f"{argument} has {len(records.classes)} class: a classifier tells at least 2 apart.")
    if len(records) < least:
        raise MiaError(f"{argument} has {len(records)} records: at least {least} are needed, and more say more: rates of "
                       f"1 % want some hundreds.")


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
    """A hash of what each record is, whatever its label; numbers as float32."""
    x = records.x if records.is_image else records.x.astype(np.float32) + np.float32(0)  # -0 is 0
    rows = np.ascontiguousarray(x.reshape(len(x), -1))
    return np.array([hashlib.blake2b(row.data, digest_size=16).hexdigest() for row in rows])


def _check_content(members: Dataset, non_members: Dataset, public: Dataset | None) -> None:
    sets = {"members": members, "non_members": non_members} | ({} if public is None else {"public": public})
    hashes = {argument: digests(records) for argument, records in sets.items()}
    for argument, own in hashes.items():
        first = np.unique(own, return_index=True)[1]
        if len(first) < len(own):
            again = np.setdiff1d(np.arange(len(own)), first)
            raise MiaError(f"{argument} holds {len(again)} records that are there before, by content, such as number "
                           f"{again[0]}: they would be counted twice. Keep one of each, of its arrays x and y: "
                           "keep = np.sort(np.unique(x, axis=0, return_index=True)[1]); x, y = x[keep], y[keep].")
    for one, other in (("members", "non_members"), ("members", "public"), ("non_members", "public")):
        shared = np.flatnonzero(np.isin(hashes.get(other, np.empty(0, str)), hashes[one]))
        if len(shared):
            why = ("a record is one or the other" if other == "non_members" else
                   "what is learned from public records must not be learned from those judged")
            raise MiaError(f"{len(shared)} records of {other} are in {one}, too, by content, such as number {shared[0]}: "
                           f"{why}. Leave them out of {other}, of its arrays x and y, where x_{one} are the other "
                           f"records: known = set(map(bytes, x_{one})); keep = [bytes(row) not in known for row in x]; "
                           "x, y = x[keep], y[keep].")


def _groups(groups, counts: tuple[int, int]) -> np.ndarray | None:
    """The groups of members and of non-members, of which there are `counts`, as text [N]."""
    if groups is None:
        return None
    if not isinstance(groups, tuple | list) or len(groups) != 2:
        raise MiaError("groups must be a pair: an array for the members and one for the non-members, the group of each "
                       "record.")
    parts = []
    for argument, part, count in zip(("members", "non_members"), groups, counts, strict=True):
        part = np.asarray(part)
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


def check_ties(inputs: AuditInputs, score: np.ndarray) -> None:
    """Refuse rates that were asked for and that ties of the loss swallow.

    Args:
        score: of the pool, [N].

    Raises:
        MiaError: so many non-members tie at the top that no threshold has such a rate.
    """
    outside = np.sort(score[~inputs.inside])[::-1]
    together = int((outside == outside[0]).sum())
    for rate in inputs.options.rates if inputs.options.fpr is not None else ():
        if together > rate * len(outside) and (score > outside[0]).sum() == 0:
            raise MiaError(f"fpr = {rate:g} cannot be reached: {together} of {len(outside)} non-members tie at the highest "
                           f"score, so no threshold calls fewer than {together / len(outside):.2g} of them. Give outputs "
                           f"that are not rounded, as logits or float64, or leave fpr out.")


def halves(inputs: AuditInputs, count: int) -> np.ndarray:
    """Training sets of references: random halves of the pool in complementary pairs, bool [R, N]."""
    return membership.balanced_halves(len(inputs.pool), count, inputs.options.seed)


def reseeded(recipe: TrainConfig) -> TrainConfig:
    """The recipe with other random numbers than the model's, so that nothing trained by it begins where the model did."""
    return replace(recipe, seed=recipe.seed + 1)
