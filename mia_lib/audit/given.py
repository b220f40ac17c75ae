"""What an audit is given, checked before any work: records, groups, budget, recipe; see `target` for the model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import stats

from mia_lib import membership, training
from mia_lib import models as architectures
from mia_lib.audit.target import Target, look, target
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_range
from mia_lib.training import TrainConfig

LEAST = 50  # members, and non-members: with fewer nearly every interval is empty of news
LEAST_PUBLIC = 60
MOST_GROUPS = 50  # more different names are no groups but numbers or names of records
RATES = (0.01, 0.001)  # false positive rates that are looked at unless others are asked for


@dataclass(frozen=True, eq=False)
class Given:
    """All that an audit has.

    Attributes:
        target: the model.
        members: records that it was trained on, all or some of them. non_members: others of the same distribution.
        public: records of that distribution that nobody asks about, or None.
        recipe: how the model was trained, or None.
        groups: text [N] of each record of the pool, or None.
        rates: false positive rates. demanded: whether they were asked for.
        minutes, references, delta, confidence, name, seed: as for `audit`.
    """

    target: Target
    members: Dataset
    non_members: Dataset
    public: Dataset | None
    recipe: TrainConfig | None
    groups: np.ndarray | None
    rates: tuple[float, ...]
    demanded: bool
    minutes: float
    references: int
    delta: float
    confidence: float
    name: str
    seed: int

    @cached_property
    def pool(self) -> Dataset:
        """Members, then non-members."""
        both = (self.members, self.non_members)
        x, y = (np.concatenate([getattr(one, part) for one in both]) for part in ("x", "y"))
        return Dataset(f"{self.name}'s pool", x, y, len(self.members), self.members.classes)

    @cached_property
    def inside(self) -> np.ndarray:
        """bool [N], who is a member."""
        return np.arange(len(self.pool)) < len(self.members)

    @property
    def loss(self) -> str:
        """The loss that the model was trained with, as far as is known; of probabilities cross-entropy in the place of squared
        error, which is one of other outputs."""
        known = self.recipe.loss if self.recipe else "cross_entropy"
        return "cross_entropy" if self.target.outputs == "probabilities" and known == "squared_error" else known


def given(model, members, non_members, *, outputs="logits", scaling=None, public=None, recipe=None, minutes=10.0, groups=None,
          fpr=None, references=64, delta=0.0, confidence=0.95, name="model", seed=0, keep=None) -> Given:
    """What an audit was given, checked; arguments as for `audit`.

    Raises:
        MiaError: whatever cannot be used, before any work.
    """
    for argument, records in (("members", members), ("non_members", non_members)):
        _check_set(argument, records, LEAST)
    if public is not None:
        _check_set("public", public, LEAST_PUBLIC)
    for argument, other in (("non_members", non_members), ("public", public)):
        if other is not None:
            _check_alike(argument, other, members)
    _check_content(members, non_members, public)
    if not isinstance(name, str) or not name.strip():
        raise MiaError(f"name = {name!r}: a text is needed, what the page calls the model.")
    if not check_range("minutes", minutes) > 0 or not np.isfinite(minutes):
        raise MiaError(f"minutes = {minutes!r}: a budget above 0 is needed.")
    for argument, value, least in (("seed", seed, 0), ("references", references, 0)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise MiaError(f"{argument} = {value!r}: a whole number is needed.")
        check_range(argument, value, least)
    check_range("delta", delta, 0, 1)
    if not 0.5 <= check_range("confidence", confidence) < 1:
        raise MiaError(f"confidence = {confidence!r} is out of range: allowed is from 0.5 to below 1, such as 0.95.")
    if scaling is not None:
        architectures.check_scaling(scaling)
    named = _groups(groups, members, non_members)
    rates = _rates(fpr, non_members)
    if recipe is not None:
        if not isinstance(recipe, TrainConfig):
            raise MiaError(f"recipe is of type {type(recipe).__name__}: a training.TrainConfig is needed, how the model "
                           f"was trained.")
        training.train(members, np.ones((1, len(members)), bool), recipe)  # says what does not fit; trains nothing
    if recipe is not None:
        scaling = _scaling(model, scaling, recipe, members)
    asked = target(model, outputs, len(members.classes), scaling, keep)
    found = Given(asked, members, non_members, public, recipe, named, rates, fpr is not None, float(minutes),
                  int(references), float(delta), float(confidence), name.strip(), int(seed))
    look(found.target, found.pool.x, found.loss)
    return found


def _scaling(model, scaling: str | tuple | None, recipe: TrainConfig, members: Dataset) -> str | tuple | None:
    """How images are fed to the model, which must be how the recipe feeds them to the references."""
    known = architectures.fed(model) if scaling is None else scaling
    if members.is_image and known is not None and architectures.check_scaling(known) != recipe.scaling:
        said = f"scaling = {scaling!r}" if scaling is not None else f"model was trained with scaling = {known!r}"
        raise MiaError(f"{said}, and recipe.scaling = {recipe.scaling!r}: the model and the references trained by the recipe "
                       f"would see different pixels. Give both the same, as by dataclasses.replace(recipe, "
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
        raise MiaError(f"{argument} has the classes {_few(other.classes)}, members {_few(members.classes)}: both need the "
                       "same in the same order, or labels mean different things. Give the same classes=... to both.")


def _few(names: Sequence[str]) -> str:
    return f"({', '.join(map(str, names[:4]))}{', ...' if len(names) > 4 else ''})"


def digests(records: Dataset) -> np.ndarray:
    """A hash of what each record is, whatever its label; numbers as float32."""
    x = records.x if records.is_image else records.x.astype(np.float32) + np.float32(0)  # -0 is 0
    rows = np.ascontiguousarray(x.reshape(len(x), -1))
    return np.array([hashlib.blake2b(row.data, digest_size=16).hexdigest() for row in rows])


def _check_content(members: Dataset, non_members: Dataset, public: Dataset | None) -> None:
    sets = {"members": members, "non_members": non_members} | ({} if public is None else {"public": public})
    found = {argument: digests(records) for argument, records in sets.items()}
    for argument, hashes in found.items():
        _, first = np.unique(hashes, return_index=True)
        if len(first) < len(hashes):
            again = np.setdiff1d(np.arange(len(hashes)), first)
            raise MiaError(f"{argument} holds {len(again)} records that are there before, by content, such as number "
                           f"{again[0]}: they would be counted twice. Keep one of each: "
                           f"{argument}.take(np.sort(np.unique({argument}.x, axis=0, return_index=True)[1])).")
    for one, other in (("members", "non_members"), ("members", "public"), ("non_members", "public")):
        if other in found:
            shared = np.flatnonzero(np.isin(found[other], found[one]))
            if len(shared):
                why = ("a record is one or the other" if other == "non_members" else
                       "what is learned from public records must not be learned from those judged")
                raise MiaError(f"{len(shared)} records of {other} are in {one}, too, by content, such as number "
                               f"{shared[0]}: {why}. Leave them out of {other}.")


def _groups(groups, members: Dataset, non_members: Dataset) -> np.ndarray | None:
    if groups is None:
        return None
    if not isinstance(groups, tuple | list) or len(groups) != 2:
        raise MiaError("groups must be a pair: an array for the members and one for the non-members, the group of each "
                       "record.")
    parts = []
    for argument, part, records in zip(("members", "non_members"), groups, (members, non_members), strict=True):
        part = np.asarray(part)
        if part.shape != (len(records),):
            raise MiaError(f"groups of {argument} have shape {part.shape}, but there are {len(records)} records: one a "
                           f"record is needed.")
        if part.dtype.kind == "f" and np.isnan(part).any():
            raise MiaError(f"groups of {argument} hold {int(np.isnan(part).sum())} NaN: give what is missing a name of its "
                           "own.")
        parts.append(part.astype(str))
    named = np.concatenate(parts)
    different = len(np.unique(named))
    if not 2 <= different <= MOST_GROUPS:
        remedy = "leave groups out" if different < 2 else "put numbers into bins, as by np.digitize"
        raise MiaError(f"groups have {different} different name{'s' if different > 1 else ''}: allowed are 2 to "
                       f"{MOST_GROUPS}; {remedy}.")
    return named


def _rates(fpr, non_members: Dataset) -> tuple[float, ...]:
    if fpr is None:
        return RATES
    rates = tuple(fpr) if isinstance(fpr, Sequence | np.ndarray) and not isinstance(fpr, str) else (fpr,)
    if not rates:
        raise MiaError("fpr is empty: give at least one false positive rate, such as 0.01, or leave it out.")
    for rate in rates:
        if not 0 < check_range("fpr", rate) < 1:
            raise MiaError(f"fpr = {rate!r} is out of range: a rate above 0 and below 1 is needed, such as 0.01 for 1 %.")
        if rate * len(non_members) < 1 - 1e-9:
            raise MiaError(f"fpr = {rate:g} is below the resolution: of {len(non_members)} non-members one is "
                           f"{1 / len(non_members):.2g}. Give at least {int(np.ceil(1 / rate - 1e-9))} non-members, or a "
                           "higher fpr; without fpr the page says where it resolves nothing.")
    return tuple(sorted(set(map(float, rates)), reverse=True))


def check_right(found: Given, right: np.ndarray) -> None:
    """Refuse a model that is wrong about its own members more often than a guess.

    Args:
        right: bool [N], whether it is right about each record of the pool.

    Raises:
        MiaError: so rarely right that columns or labels must be in another order.
    """
    count, members, classes = int(right[found.inside].sum()), len(found.members), len(found.members.classes)
    if stats.binom.cdf(count, members, 1 / classes) < 1e-6:
        raise MiaError(f"model is right about {count} of {members} members, fewer than a guess among {classes} classes: "
                       f"the columns "
                       f"of its outputs, the labels or the pixels are not as it knows them. The order of classes is "
                       f"{_few(found.members.classes)}; a scikit-learn model's is its classes_.")


def check_ties(found: Given, score: np.ndarray) -> None:
    """Refuse rates that were asked for and that ties of the loss swallow.

    Args:
        score: of the pool, [N].

    Raises:
        MiaError: so many non-members tie at the top that no threshold has such a rate.
    """
    outside = np.sort(score[~found.inside])[::-1]
    together = int((outside == outside[0]).sum())
    for rate in found.rates:
        if found.demanded and together > rate * len(outside) and (score > outside[0]).sum() == 0:
            raise MiaError(f"fpr = {rate:g} cannot be reached: {together} of {len(outside)} non-members tie at the highest "
                           f"score, so no threshold calls fewer than {together / len(outside):.2g} of them. Give outputs "
                           f"that are not rounded, as logits or float64, or leave fpr out.")


def halves(found: Given, count: int) -> np.ndarray:
    """Training sets of references: random halves of the pool in complementary pairs, bool [R, N]."""
    return membership.balanced_halves(len(found.pool), count, found.seed)


def reseeded(recipe: TrainConfig) -> TrainConfig:
    """The recipe with other random numbers than the model's, so that nothing trained by it begins where the model did."""
    return replace(recipe, seed=recipe.seed + 1)
