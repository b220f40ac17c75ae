"""References of an audit: networks by its recipe, models that are refitted one after the other, and answers from elsewhere.

R references and N records, the pool, in its order; Q public records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import stats

from mia_lib import frames, membership, signals, store
from mia_lib.attacks.registry import LOG_ODDS
from mia_lib.audit.options import AuditOptions
from mia_lib.audit.target import Target, check_model, scalars
from mia_lib.checks import as_array, check_finite, check_mask, check_numbers
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_choice
from mia_lib.training import Ensemble, TrainConfig

# What references are asked for.
OF_MODELS = {
    "loss": signals.loss,
    LOG_ODDS: signals.logit_scaled_confidence,
    "correctness": signals.correctness,
}
ARRAYS = ("members", "answers", "loss", "public_answers", "public_loss")  # of `references_from`
TELLING = 1e-6  # p-value below which numbers of references tell members from non-members


@dataclass(frozen=True, eq=False)
class References:
    """What references say of records.

    Attributes:
        members: who was trained on which record, bool [R, N].
        values: signal of `OF_MODELS` -> [R, N]; without "correctness" where losses alone are known.
        public_values: signal -> [R, Q]; none where there are no public records.
    """

    members: np.ndarray
    values: Mapping[str, np.ndarray]
    public_values: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def fingerprints(self) -> list[str]:
        """What scores that were kept know them by: who was trained on what, and all that they say."""
        said = *self.values.values(), *self.public_values.values()
        return [store.fingerprint(array) for array in (self.members, *said)]

    @property
    def accuracy(self) -> tuple[float, float] | None:
        """Mean accuracy on records that a reference was trained on, and on others; None if that is not known."""
        right = self.values.get("correctness")
        if right is None:
            return None
        return float(right[self.members].mean()), float(right[~self.members].mean())


def of_ensemble(models: Ensemble, pool: Dataset, public: Dataset | None) -> References:
    """What networks say of the pool and of public records."""
    values = {name: signal(models, pool) for name, signal in OF_MODELS.items()}
    public_values = (
        {}
        if public is None
        else {name: signal(models, public) for name, signal in OF_MODELS.items()}
    )
    return References(models.members, values, public_values)


@dataclass(frozen=True, eq=False)
class Refits:
    """References that a function fits to halves of the pool in complementary pairs, one after the other."""

    fit: Callable  # (x, y, number of the reference) -> model
    pool: Dataset
    public: Dataset | None
    options: AuditOptions
    _answers: dict[int, list[dict]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def members(self) -> np.ndarray:
        """Whom each reference is fitted to, bool [R, N], of as many as may be wanted."""
        most = max(2, self.options.references // 2 * 2)
        return membership.balanced_halves(len(self.pool), most, self.options.seed)

    def train(self, index: int) -> None:
        """Fit the reference of a number and ask it; one that was asked before is not fitted again."""
        if index in self._answers:
            return
        pool, rows = self.pool, np.flatnonzero(self.members[index])
        labels = labels_by_name(pool.classes)[pool.y[rows]]
        model = self.fit(frames.take(pool.x, rows), labels, index)
        target = check_model(model, pool.classes, self.options, self.options.scaling)
        sets = [pool] if self.public is None else [pool, self.public]
        self._answers[index] = [_signals_of(target, records) for records in sets]

    def first(self, count: int) -> References:
        """What the first references say, which are trained."""
        of_pool, *of_public = zip(*(self._answers[index] for index in range(count)), strict=True)
        return References(self.members[:count], _stacked(of_pool), *map(_stacked, of_public))


def _signals_of(target: Target, records: Dataset) -> dict[str, np.ndarray]:
    return _of_answers(target.ask(records.x), records.y, target)


def _of_answers(answers: np.ndarray, y: np.ndarray, target: Target) -> dict[str, np.ndarray]:
    values = scalars(answers, y, target.outputs, target.loss)
    return {name: values[name] for name in OF_MODELS}


def _stacked(parts) -> dict[str, np.ndarray]:
    return {name: np.stack([part[name] for part in parts]) for name in parts[0]}


def labels_by_name(classes: tuple[str, ...]) -> np.ndarray:
    """The name of each class [K] as a model is fitted to it: whole numbers, True and False, or texts."""
    if set(classes) == {"False", "True"}:
        return np.array([name == "True" for name in classes])
    numbers = [int(name) for name in classes if name.lstrip("-").isdecimal()]
    return np.array(numbers if list(map(str, numbers)) == list(classes) else classes)


def fitting(options: AuditOptions) -> Callable | None:
    """The function (x, y, number) -> model that `refit` or an estimator as `recipe` gives; None without either. A copy of an
    estimator has another `random_state` than the model, where that is a number."""
    refit, recipe = options.refit, options.recipe
    if isinstance(recipe, type):
        raise MiaError(
            f"recipe = {recipe.__name__} is a class: give an estimator, {recipe.__name__}(...)."
        )
    if refit is not None:
        if not callable(refit):
            raise MiaError(
                f"refit is of type {type(refit).__name__}: a function (x, y) -> model is needed; of an estimator that "
                "can be fitted again give recipe=estimator."
            )
        return lambda x, y, index: refit(x, y)
    if recipe is None or isinstance(recipe, TrainConfig):
        return None
    if not hasattr(recipe, "fit") or not hasattr(recipe, "get_params"):
        raise MiaError(
            f"recipe is of type {type(recipe).__name__}: a training.TrainConfig is needed, how the model was trained, "
            "or an estimator as of scikit-learn, of which copies are fitted. Any function (x, y) -> model is refit=."
        )
    from sklearn.base import clone

    def fit(x, y, index: int):
        model = clone(recipe)
        seeds = {
            name: value + 1 + index
            for name, value in model.get_params().items()
            if name.endswith("random_state") and isinstance(value, int)
        }
        return model.set_params(**seeds).fit(x, y)

    return fit


def check_counts(argument: str, reference_members: np.ndarray, is_member: np.ndarray) -> None:
    """Refuse references of which more, or fewer, were trained on members than on non-members: from that number alone attacks
    that compare the two kinds of references would tell who is a member, whatever the model says.

    Args:
        argument: what messages call the mask. reference_members: bool [R, N]. is_member: bool [N], who is a member.
    """
    counts = reference_members.sum(0)
    of_members, of_others = counts[is_member], counts[~is_member]
    if np.ptp(counts) and stats.mannwhitneyu(of_members, of_others).pvalue < TELLING:
        raise MiaError(
            f"{argument}: of {len(reference_members)} references {of_members.mean():.3g} were trained on a member on average, "
            f"and {of_others.mean():.3g} on a non-member. That number tells who is a member, and attacks would find a leak "
            "where there is none. Give references that know as many of the one as of the other, such as models of random "
            "halves of all these records; of a bank in complementary pairs leave out the model's partner."
        )


def check_given(
    given,
    given_records: int,
    rows: np.ndarray,
    pool: Dataset,
    public: Dataset | None,
    target: Target,
) -> References:
    """References from elsewhere, checked.

    Args:
        given: arrays by name, of `ARRAYS`. given_records: members and non-members before any were left out. rows: those that
            the pool has, int [N].

    Raises:
        MiaError: other arrays, shapes that do not fit the records and classes, masks or losses that are none.
    """
    what = "references_from"
    if not isinstance(given, Mapping) or "members" not in given:
        raise MiaError(
            f"{what} is {type(given).__name__ if not isinstance(given, Mapping) else list(given)}: arrays by name are "
            "needed, members bool [R, N] and answers [R, N, K] or loss [R, N]."
        )
    for name in given:
        check_choice(f"{what}: array", name, ARRAYS)
    if ("answers" in given) == ("loss" in given):
        raise MiaError(
            f"{what} has {', '.join(given)}: answers [R, N, K] or loss [R, N] is needed, one of both."
        )
    members = check_mask(f"{what}['members']", given["members"])
    if members.ndim != 2 or not len(members) or members.shape[1] != given_records:
        raise MiaError(
            f"{what}['members'] has shape {members.shape}: [R, {given_records}] is needed, for each reference who of the "
            "members and then of the non-members was in its training set."
        )
    check_counts(f"{what}['members']", members[:, rows], np.arange(len(pool)) < pool.n_train)

    def read(prefix: str, y: np.ndarray, count: int, kept) -> dict[str, np.ndarray]:
        kind = "answers" if f"{prefix}answers" in given else "loss"
        name = f"{what}[{prefix + kind!r}]"
        values = check_numbers(name, as_array(given[prefix + kind]))
        shape = (len(members), count) + (target.classes,) * (kind == "answers")
        if values.shape != shape:
            raise MiaError(f"{name} has shape {values.shape}: {shape} is needed.")
        check_finite(name, values, "references", "Leave these references out.")
        values = values[:, kept]
        if kind == "loss":
            if values.min(initial=0) < 0:
                raise MiaError(
                    f"{name} runs from {values.min():.4g}, and a loss is at least 0: of log probabilities give the negative."
                )
            return {"loss": values, LOG_ODDS: signals.log_odds(values)}
        try:
            return _stacked([_of_answers(one.astype(np.float64), y, target) for one in values])
        except MiaError as problem:
            raise MiaError(f"{name}: {problem}") from problem

    values = read("", pool.y, given_records, rows)
    has_public = {"public_answers", "public_loss"} & {*given}
    if has_public and public is None:
        raise MiaError(
            f"{what} has {min(has_public)}, but there are no public records: give public, or leave it out."
        )
    every = slice(None)
    public_values = read("public_", public.y, len(public), every) if has_public else {}
    return References(members[:, rows], values, public_values)
