"""Inputs of an audit, checked before any work: records and their groups, how the model was trained;
see `target` for the model.

And the control of every audit: can members be told from non-members without the model? Where they can (another year, another
hospital, another way to make the files), an attack may do as well by looking at the records alone. N records, members first.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import stats

from mia_lib import frames, membership, training
from mia_lib import models as architectures
from mia_lib.audit.options import AuditOptions, ScoreOptions
from mia_lib.audit.references import References, Refits, check_given, fitting
from mia_lib.audit.target import Target, check_model, check_outputs
from mia_lib.checks import (
    ALL_KINDS,
    as_float64,
    check_finite,
    check_mask,
    check_numbers,
    check_order,
)
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_once, list_few
from mia_lib.frames import encode, is_frame, row_hashes
from mia_lib.training import Ensemble, TrainConfig

MIN_RECORDS = 50  # members, and non-members: with fewer nearly every interval is empty of news
MIN_PUBLIC = 60
MISSING = "missing"  # what the group of records without one is called
MOST_GROUPS = 50  # more different names are no groups but numbers or names of records
# of the control: records, columns of wide ones, classes
MOST_RECORDS, COLUMNS, KINDS = 4000, 120, 30
# accuracies of like models differ by less, and by so many standard errors of a rate besides
ACCURACY_MARGIN, ACCURACY_ERRORS = 0.05, 2.0


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """All that an audit has."""

    target: Target
    members: Dataset  # records that it was trained on, all or some of them
    non_members: Dataset  # others of the same distribution
    public: Dataset | None  # records of the same distribution that nobody asks about
    groups: np.ndarray | None  # of each record of the pool, text [N]
    options: AuditOptions
    rows: np.ndarray  # the number of each record in its set as it was given, int [N]
    # how many records of each set that were there before
    left_out: Mapping[str, int] = field(default_factory=dict)
    unused: tuple[str, ...] = ()  # columns that the model was not fitted to
    given: References | None = None  # references from elsewhere
    ids: np.ndarray | None = None  # names of the records of the pool, text [N]

    @property
    def recipe(self) -> TrainConfig | None:
        """Recipe by which the network was trained; None if it is not known."""
        recipe = self.options.recipe
        return recipe if isinstance(recipe, TrainConfig) else None

    @cached_property
    def refits(self) -> Refits | None:
        """References that are fitted by a function or as copies of an estimator; None where neither is known."""
        fit = fitting(self.options)
        return None if fit is None else Refits(fit, self.pool, self.public, self.options)

    @cached_property
    def pool(self) -> Dataset:
        """All N records that are judged: members, then non-members."""
        sides = self.members, self.non_members
        x = frames.join([side.x for side in sides])
        y = np.concatenate([side.y for side in sides])
        return Dataset(f"{self.options.name}'s pool", x, y, len(self.members), self.members.classes)

    @cached_property
    def is_member(self) -> np.ndarray:
        """True for members, bool [N]."""
        return np.arange(len(self.pool)) < len(self.members)

    @property
    def class_names(self) -> np.ndarray:
        """The class of each record of the pool, text [N]."""
        return np.array(self.pool.classes)[self.pool.y]


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores that were made elsewhere, members first, and what is known of their records."""

    scores: Mapping[str, np.ndarray]  # by name, float64 [N], higher for members
    is_member: np.ndarray  # bool [N], who is a member
    rows: np.ndarray  # where each stood in what was given, int [N]
    groups: np.ndarray | None  # of each record, text [N]
    options: ScoreOptions
    ids: np.ndarray | None = None  # names of the records, text [N]
    # what an attacker needs
    attacker: str = "Scores alone were given: an attacker needs what whoever made them had."
    numbering: str = "the rows of the table"  # what the numbers of records count
    meanings: Mapping[str, str] = field(default_factory=dict)  # of scores by name, for the page
    left_out: Mapping[str, int] = field(default_factory=dict)  # as of `AuditInputs`
    class_names = None


def check_inputs(model, members, non_members, options: AuditOptions) -> AuditInputs:
    """Check all that an audit is given, with arguments as for `audit`; the model is asked about a
    few records. Whatever cannot be used raises `MiaError`, before any work."""
    sets, recipe = {"members": members, "non_members": non_members}, options.recipe
    if options.public is not None:
        sets["public"] = options.public
    for argument, records in sets.items():
        _check_set(argument, records, members)
    counts = {argument: len(records) for argument, records in sets.items()}
    sets, unused = _cut_columns(sets, model)
    members, non_members = sets["members"], sets["non_members"]
    groups = options.groups
    if groups is not None:
        if not isinstance(groups, tuple | list) or len(groups) != 2:
            raise MiaError(
                "groups must be a pair: an array for the members and one for the non-members, the group of each "
                "record."
            )
        groups = _check_groups(
            ("groups of members", groups[0], len(members), "records"),
            ("groups of non_members", groups[1], len(non_members), "records"),
        )
    ids = None if options.ids is None else _check_ids(options.ids, members, non_members)
    contents = {argument: digests(records) for argument, records in sets.items()}
    kept = first_occurrences(contents, options.deduplicate)
    for argument, rows in kept.items():
        if rows.sum() < (least := MIN_PUBLIC if argument == "public" else MIN_RECORDS):
            raise MiaError(
                f"{argument} has {rows.sum()} records: at least {least} are needed, and more say more: rates of "
                f"1 % want some hundreds."
            )
    left_out = {argument: int((~rows).sum()) for argument, rows in kept.items() if not rows.all()}
    sets |= {argument: sets[argument].take(kept[argument]) for argument in left_out}
    members, non_members = sets["members"], sets["non_members"]
    options.check_resolved(len(non_members))
    scaling = None if options.scaling is None else architectures.check_scaling(options.scaling)
    fitting(options)  # says what cannot be fitted
    if isinstance(recipe, TrainConfig):
        # says what does not fit; trains nothing
        training.train(members, np.ones((1, len(members)), bool), recipe)
        scaling = _scaling(model, scaling, recipe, members)
    target = check_model(model, members.classes, options, scaling)
    if members.is_frame and target.kind != "function":
        raise MiaError(
            f"model is a {target.kind}, which takes numbers, and the records are a table whose columns are kept as they "
            "are. Give the numbers that it takes, data.from_arrays(x, y, name), or a function of such a table."
        )
    sides = kept["members"], kept["non_members"]
    inputs = AuditInputs(
        target,
        members,
        non_members,
        sets.get("public"),
        None if groups is None else groups[np.concatenate(sides)],
        options,
        np.concatenate([np.flatnonzero(side) for side in sides]),
        left_out,
        unused,
        ids=None if ids is None else ids[np.concatenate(sides)],
    )
    if options.references_from is not None:
        both = counts["members"] + counts["non_members"]
        rows = np.flatnonzero(np.concatenate(sides))
        given = check_given(options.references_from, both, rows, inputs.pool, inputs.public, target)
        inputs = replace(inputs, given=given)
    check_outputs(target, inputs.pool.x, *([] if inputs.public is None else [inputs.public.x]))
    return inputs


def check_scores(
    scores, members, options: ScoreOptions, kept: np.ndarray | None = None
) -> ScoreTable:
    """A table of scores [N], or several by name, members bool [N] and `options.groups` and `ids` [N], checked, of all records
    or of those that are `kept`, bool [N]: scores that are no finite numbers, other shapes, too few members or non-members, and
    scores that are all equal raise `MiaError`."""
    several = isinstance(scores, Mapping) or is_frame(scores)
    named = dict(scores.items()) if several else {"score": scores}
    if not named:
        raise MiaError("scores are empty: give one score a record, or several by name.")
    check_once("scores", named)
    given = {f"scores[{name!r}]" if several else "scores": one for name, one in named.items()}
    check_order(**given, members=members, groups=options.groups, ids=options.ids)
    members = check_mask("members", members)
    checked = {
        str(name): _check_score(argument, values, members)
        for name, (argument, values) in zip(named, given.items(), strict=True)
    }
    if several and (same := [name for name in checked if np.array_equal(checked[name], members)]):
        raise MiaError(
            f"scores[{same[0]!r}] is members itself, number by number: no attack knows that. Leave it out of the scores."
        )
    kept = np.ones(len(members), bool) if kept is None else kept
    others = int((~members & kept).sum())
    for what, count in (("members", int((members & kept).sum())), ("non-members", others)):
        if count < MIN_RECORDS:
            raise MiaError(
                f"The table has {count} {what}: at least {MIN_RECORDS} are needed, and more say more."
            )
    options.check_resolved(others)
    order, groups, ids = np.argsort(~members, kind="stable"), None, None
    order = order[kept[order]]
    if options.groups is not None:
        groups = _check_groups(("groups", options.groups, len(members), "scores"))[order]
    if options.ids is not None:
        ids = check_numbers("ids", options.ids, ALL_KINDS).astype(str)
        if ids.shape != members.shape:
            raise MiaError(
                f"ids have shape {ids.shape}, but there are {len(members)} scores: one a record is needed."
            )
        ids = ids[order]
    table = {name: values[order] for name, values in checked.items()}
    return ScoreTable(table, members[order], order, groups, options, ids)


def _check_score(argument: str, values, members: np.ndarray) -> np.ndarray:
    """One score as float64 [N]."""
    values = check_numbers(argument, values, ALL_KINDS)
    if values.dtype.kind not in "biuf" or values.ndim != 1:
        raise MiaError(
            f"{argument} have shape {values.shape} and type {values.dtype}: numbers [N] are needed, one a record, "
            "higher for members, or several such by name. Of a loss give the negative, of probabilities that of the true "
            "class."
        )
    if members.shape != values.shape:
        raise MiaError(
            f"members has shape {members.shape}, but there are {len(values)} scores: one a record is needed."
        )
    values = as_float64(argument, values)
    check_finite(argument, values, "records", "Leave these records out, or give each a number.")
    if np.ptp(values) == 0:
        raise MiaError(f"All {argument} are {values[0]:g}: they tell no record from another.")
    return values


def _scaling(
    model, scaling: str | tuple | None, recipe: TrainConfig, members: Dataset
) -> str | tuple | None:
    """Scaling of images for the model: as given, else the recipe's, None for the default. One that
    is not the recipe's, by which the references see images, raises `MiaError`."""
    known = architectures.input_scaling(model) if scaling is None else scaling
    if (
        members.is_image
        and known is not None
        and architectures.check_scaling(known) != recipe.scaling
    ):
        source = (
            f"scaling = {scaling!r}"
            if scaling is not None
            else f"model was trained with scaling = {known!r}"
        )
        raise MiaError(
            f"{source}, and recipe.scaling = {recipe.scaling!r}: the model and the references trained by the "
            f"recipe would see different pixels. Give both the same, as by dataclasses.replace(recipe, "
            f"scaling={known!r})."
        )
    return recipe.scaling if scaling is None and recipe.scaling != "-1 to 1" else scaling


def _check_set(argument: str, records, members: Dataset) -> None:
    if not isinstance(records, Dataset):
        framed = any(map(is_frame, records if isinstance(records, tuple | list) else [records]))
        raise MiaError(
            f"{argument} is of type {type(records).__name__}: a data.Dataset is needed, such as "
            f"data.{'from_frame' if framed else 'from_arrays'}(x, y, {argument!r})."
        )
    if len(records.classes) < 2:
        raise MiaError(
            f"{argument} has {len(records.classes)} class: a classifier tells at least 2 apart."
        )
    if records.is_frame != members.is_frame:
        kinds = ["a table whose columns are kept", "numbers"][:: 1 if records.is_frame else -1]
        raise MiaError(
            f"{argument} are {kinds[0]}, members {kinds[1]}: they must be prepared alike."
        )
    if records.is_frame:
        _check_columns(argument, records.x, members.x)
    elif records.shape != members.shape:
        raise MiaError(
            f"{argument} has records of shape {records.shape}, members {members.shape}: they must be prepared "
            f"alike."
        )
    elif records.is_image != members.is_image or (records.x.dtype.kind == "f") != (
        members.x.dtype.kind == "f"
    ):
        raise MiaError(
            f"{argument} has records of type {records.x.dtype}, members of {members.x.dtype}: they must be "
            f"prepared alike, or the type gives membership away."
        )
    if records.classes != members.classes:
        lacking = [name for name in members.classes if name not in records.classes]
        more = [name for name in records.classes if name not in members.classes]
        what = ", and ".join(
            [f"lacks {list_few(lacking)}"] * bool(lacking)
            + [f"has {list_few(more)}, which members lack"] * bool(more)
        ) or (
            f"has them in the order {list_few(records.classes)}, members {list_few(members.classes)}"
        )
        raise MiaError(
            f"{argument} has other classes than members: it {what}. Both need the same in the same order, or "
            "labels mean different things. Give the same classes=... to both."
        )


def _check_columns(argument: str, table, members) -> None:
    """Refuse a DataFrame with other columns than that of members, or columns of another type."""
    if list(table.columns) != list(members.columns):
        other = [*table.columns.symmetric_difference(members.columns, sort=False)]
        what = f"not both have {list_few(other)}" if other else "they stand in another order"
        raise MiaError(
            f"{argument} has other columns than members: {what}. Give {argument} the columns of members, "
            "table[members.columns]."
        )
    differing = [name for name in table if table[name].dtype != members[name].dtype]
    if differing:
        kinds = " and ".join(repr(side[differing[0]].dtype) for side in (table, members))
        raise MiaError(
            f"{argument} and members have columns of different types: {list_few(differing)} ({kinds} of the first). They must "
            "be prepared alike, or the type gives membership away: cut both from one table, or give "
            "table.astype(members.dtypes)."
        )


def _cut_columns(sets: Mapping[str, Dataset], model) -> tuple[dict[str, Dataset], tuple[str, ...]]:
    """Sets with the columns that an estimator was fitted to, in its order, and the names of the others; sets that are no
    DataFrame as they are."""
    names = getattr(getattr(model, "__self__", model), "feature_names_in_", None)
    table = sets["members"].x
    if names is None or not is_frame(table):
        return dict(sets), ()
    if lacking := [name for name in names if name not in table.columns]:
        raise MiaError(
            f"members lack columns that the model was fitted to: {list_few(lacking)}. They have {list_few(table.columns)}."
        )
    cut = {argument: replace(records, x=records.x[[*names]]) for argument, records in sets.items()}
    return cut, tuple(str(name) for name in table.columns if name not in names)


def digests(records: Dataset) -> np.ndarray:
    """Hash of each record, whatever its label, [N]; fractions are taken as float32."""
    if records.is_frame:
        return row_hashes(records.x)
    fractions = records.x.dtype.kind == "f"
    # -0 is 0
    x = records.x.astype(np.float32) + np.float32(0) if fractions else records.x.astype(np.int64)
    rows = np.ascontiguousarray(x.reshape(len(x), int(np.prod(records.shape))))
    return np.array([hashlib.blake2b(row.data, digest_size=16).hexdigest() for row in rows], str)


def first_occurrences(
    contents: Mapping[str, np.ndarray], deduplicate: bool, by: str = "content"
) -> dict[str, np.ndarray]:
    """Which records of each set are there for the first time, in the order of the sets.

    Args:
        contents: of each set by its argument what its records are known by, text [N]. by: what that is.
        deduplicate: whether repeated records are to be left out.

    Returns:
        True for those that are there for the first time, bool [N], by set.

    Raises:
        MiaError: repeated records, unless they are to be left out.
    """
    kept: dict[str, np.ndarray] = {}
    before: dict[str, np.ndarray] = {}
    cure = "deduplicate=True (--deduplicate on the command line) leaves them out, and the report says how many."
    for argument, own in contents.items():
        first = np.zeros(len(own), bool)
        first[np.unique(own, return_index=True)[1]] = True
        if not deduplicate and not first.all():
            raise MiaError(
                f"{argument} holds {(~first).sum()} records that are there before, by {by}, such as number "
                f"{np.flatnonzero(~first)[0]}: they would be counted twice. {cure}"
            )
        for other, hashes in before.items():
            shared = np.isin(own, hashes)
            if not deduplicate and shared.any():
                why = (
                    "a record is one or the other"
                    if argument == "non_members"
                    else "what is learned from public records must not be learned from those judged"
                )
                asked = "Is one file given for both? " if shared.mean() > 0.5 else ""
                raise MiaError(
                    f"{shared.sum()} records of {argument} are in {other}, too, by {by}, such as number "
                    f"{np.flatnonzero(shared)[0]}: {why}. {asked}{cure}"
                )
            first &= ~shared
        kept[argument], before[argument] = first, own
    return kept


def _check_ids(ids, *sets: Dataset) -> np.ndarray:
    """Names of all records, those of members first, as text [N]."""
    if not isinstance(ids, tuple | list) or len(ids) != 2:
        raise MiaError(
            "ids must be a pair: an array for the members and one for the non-members, your name of each record."
        )
    names = [check_numbers("ids", part, ALL_KINDS) for part in ids]
    if [part.shape for part in names] != [(len(records),) for records in sets]:
        raise MiaError(
            f"ids have shapes {' and '.join(str(part.shape) for part in names)}, but there are "
            f"{' and '.join(str(len(records)) for records in sets)} records: one a record is needed."
        )
    return np.concatenate([part.astype(str) for part in names])


def _check_groups(*parts: tuple[str, object, int, str]) -> np.ndarray:
    """The group of each record as text [N].

    Args:
        parts: of each part what messages call it, the groups, how many are needed, and of what.
    """
    import pandas as pd

    checked = []
    for argument, groups, count, counted in parts:
        names = check_numbers(argument, groups, ALL_KINDS)
        if names.shape != (count,):
            raise MiaError(
                f"{argument} have shape {names.shape}, but there are {count} {counted}: one a record is needed."
            )
        missing = pd.isna(names)  # a group like others: who has no entry may be treated otherwise
        checked.append(np.where(missing, MISSING, names.astype(str)))
    names = np.concatenate(checked)
    different = len(np.unique(names))
    if not 2 <= different <= MOST_GROUPS:
        remedy = "leave groups out" if different < 2 else "put numbers into bins, as by np.digitize"
        raise MiaError(
            f"groups have {different} different name{'s' if different > 1 else ''}: allowed are 2 to "
            f"{MOST_GROUPS}; {remedy}."
        )
    return names


def check_right(inputs: AuditInputs, right: np.ndarray) -> None:
    """Refuse a model that is right about its own members so rarely that columns or labels must be in another order; `right`
    says of which records of the pool it is, bool [N]."""
    count = int(right[inputs.is_member].sum())
    members = len(inputs.members)
    classes = inputs.members.classes
    if stats.binom.cdf(count, members, 1 / len(classes)) < 1e-6:
        raise MiaError(
            f"model is right about {count} of {members} members, fewer than a guess among {len(classes)} classes: "
            f"the columns of its outputs, the labels or the pixels are not as it knows them. The order of classes "
            f"is {list_few(classes)}; a scikit-learn model's is its classes_, which columns=model.classes_ gives."
        )


def reseeded(recipe: TrainConfig) -> TrainConfig:
    """The recipe with other random numbers than the model's, so that nothing trained by it begins where the model did."""
    return replace(recipe, seed=recipe.seed + 1)


def references(inputs: AuditInputs, count: int) -> Ensemble:
    """Models by the recipe on random halves of the pool in complementary pairs; each is trained when it is asked for."""
    members = membership.balanced_halves(len(inputs.pool), count, inputs.options.seed)
    return training.train(
        inputs.pool, members, reseeded(inputs.recipe), label=f"references for {inputs.options.name}"
    )


def accuracies_differ(
    accuracy: tuple[float, float], of_model: tuple[float, float], inputs: AuditInputs
) -> bool:
    """True if `accuracy`, on members or on non-members, is farther from `of_model`, that of the
    audited model, than like models are apart; both are on records that were trained on, and on
    others."""
    counts = len(inputs.members), len(inputs.non_members)
    return any(
        abs(one - other) > ACCURACY_MARGIN + ACCURACY_ERRORS * np.sqrt(other * (1 - other) / n)
        for one, other, n in zip(accuracy, of_model, counts, strict=True)
    )


# --------------------------------------------------------------------------------------------- the control without the model


def describe(x, y: np.ndarray, classes: int, seed: int) -> np.ndarray:
    """Features [N, C] of N records for a classifier (x in the form of `Dataset.x`, labels y int [N]
    of so many classes): their numbers, or random projections of them; simple statistics; the
    class. Words, dates and holes are coded."""
    x = encode(x) if is_frame(x) else x
    flat = x.reshape(len(x), -1).astype(np.float64)
    spread = flat.std(0)
    flat = (flat - flat.mean(0)) / np.where(spread > 0, spread, 1)
    raw = x.reshape(len(x), -1, x.shape[-1] if x.ndim == 4 else 1).astype(np.float64)
    simple = np.concatenate(
        [raw.mean(1), raw.std(1), raw.min(1), raw.max(1), (raw == raw.round()).mean(1)], 1
    )
    if flat.shape[1] > COLUMNS:
        chance = np.random.default_rng([29, seed])
        flat = flat @ chance.standard_normal((flat.shape[1], COLUMNS)) / np.sqrt(flat.shape[1])
    kind = np.eye(classes)[y] if classes <= KINDS else y[:, None]
    return np.concatenate([flat, simple, kind], 1)


def draw_rows(is_member: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Rows that a classifier is shown, ascending int [n]: all, or `MOST_RECORDS` of them, half of members and half of others
    as far as it goes. The rarer side is kept whole where it is less than half of them, for a difference is seen by its
    records."""
    sides = [chance.permutation(np.flatnonzero(side)) for side in (is_member, ~is_member)]
    rarer = min(*map(len, sides), MOST_RECORDS // 2)
    return np.sort(np.concatenate([side[: MOST_RECORDS - rarer] for side in sides]))


def score_inputs(
    pool: Dataset, is_member: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of records by a classifier that never sees the model: each half of them is judged by
    one fitted to the other.

    The mean rank of a logistic regression and of extremely randomised trees. Ranks are within a half, for the classifiers have
    different scales. So are tests: fitted ones know nothing of their half, but depend on each other, and scores of all records
    together have an AUC that spreads half as much again as one of independent records.

    Args:
        pool: N records. is_member: bool [N], who is a member. seed: of everything random.

    Returns:
        rows of the pool that were looked at, int [n], their scores [n], and which half each is in, bool [n].
    """
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows, random_state = draw_rows(is_member, np.random.default_rng([31, seed])), seed % 2**32
    table = describe(frames.take(pool.x, rows), pool.y[rows], len(pool.classes), seed)
    is_member = is_member[rows]
    score = np.zeros(len(rows))
    second = np.zeros(len(rows), bool)
    for fitted, judged in StratifiedKFold(2, shuffle=True, random_state=random_state).split(
        table, is_member
    ):
        second = np.isin(np.arange(len(rows)), judged)
        for classifier in (
            make_pipeline(
                StandardScaler(), LogisticRegression(C=0.1, max_iter=200, class_weight="balanced")
            ),
            ExtraTreesClassifier(
                40, min_samples_leaf=5, class_weight="balanced", random_state=random_state
            ),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # one that has not converged is as good a control
                p = classifier.fit(table[fitted], is_member[fitted]).predict_proba(table[judged])[
                    :, 1
                ]
            score[judged] += stats.rankdata(p) / len(judged) / 2
    return rows, score, second
