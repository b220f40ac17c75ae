"""Experiments of the quantile-regression chapter (Bertran et al. 2023, section 4).

A case is a bank of M models in complementary halves of a pool of J records, and Q public records that no model saw. T of the
models are attacked in turn. The public records fall into three disjoint splits: regressions are *fitted* on one, their
settings *selected* on the next, their thresholds moved, where they are, on the last, for *calibration*. What is judged are the
pool's members and non-members. Scores are hinge scores, higher for members; attacks are kept as ranks within a target.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, cached_property

import numpy as np
import pandas as pd
import torch
from scipy import stats

from mia_lib import data, membership, metrics, signals, store, training
from mia_lib.attacks import baselines, quantile
from mia_lib.attacks.quantile import networks, trees
from mia_lib.attacks.quantile.networks import NetworkConfig
from mia_lib.attacks.quantile.thresholds import LEAST
from mia_lib.attacks.quantile.trees import TreeConfig
from mia_lib.data import Dataset
from mia_lib.data.sets import TITLES
from mia_lib.errors import MiaError, check_range
from mia_lib.evidence import tables
from mia_lib.papers import costs as counts
from mia_lib.papers.numbers import packed_ranks
from mia_lib.training import Ensemble, TrainConfig, ensemble, train
from mia_lib.training.recipe import augment, draw_views


@dataclass(frozen=True)
class Method:
    """An attack: the marginal baseline, a regression or LiRA.

    Attributes:
        name: in kept arrays and specs. title: in our tables. paper: in the paper's, nothing where it is ours.
        kind: of a regression, "gauss" or "pinball"; else nothing. labelled: whether the regression is given the label.
        references: models that it trains to imitate the target. offline: whether none of these holds the record. own: whether
            LiRA has a spread for each record where references are few; without, one for all.
    """

    name: str
    title: str
    paper: str = ""
    kind: str = ""
    labelled: bool = False
    references: int = 0
    offline: bool = False
    own: bool = False


def lira(references: int, offline: bool = False, own: bool = False) -> Method:
    """LiRA with so many references."""
    if offline or own:
        how, words = ["off"] * offline + ["own"] * own, ["offline"] * offline + ["own spreads"] * own
        return Method(f"lira_{'_'.join(how)}_{references}", f"LiRA, {', '.join(words)} (n = {references})",
                      references=references, offline=offline, own=own)
    return Method(f"lira_{references}", f"LiRA (n = {references})", f"LiRA ({references} shadow models)",
                  references=references)


MARGINAL = Method("marginal", "Marginal", "Marginal")
HEADS = {one.name: one for one in (
    Method("gauss_x", "Gaussian, q(x)", kind="gauss"),
    Method("gauss_xy", "Gaussian, q(x, y)", "Quantile regression", "gauss", labelled=True),
    Method("pinball_x", "pinball, q(x)", kind="pinball"),
    Method("pinball_xy", "pinball, q(x, y)", kind="pinball", labelled=True))}
LEAST_SAMPLE = 20  # records of a tree, in tuning
REGRESSIONS = (MARGINAL, *HEADS.values())  # what needs no reference
ALPHAS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)  # nominal false positive rates
LEVELS = (0.99, 0.999)  # of the pinball losses that are compared
Settings = NetworkConfig | TreeConfig  # of a regression
CLASS_ALPHA = 0.05  # of the comparison by class
BY_CLASS = ("marginal", "gauss_x", "gauss_xy")  # methods in it
CLASS_THRESHOLDS = ("calibrated", "by_class")  # on all records, and within each class
OWN_VARIANCE_FROM = 64  # references; with fewer, LiRA has one variance for all records (Carlini et al. 2022, section VI)


def in_order(methods: Iterable[Method]) -> list[Method]:
    """Each once: baseline and regressions, LiRA by the number of its references, then with own spreads, and then offline."""
    def place(one: Method) -> tuple:
        return one.offline, one.own, one.references, 0 if one.references else REGRESSIONS.index(one)

    return sorted(set(methods), key=place)


def _plain(recipe: TrainConfig | TreeConfig) -> dict:
    return recipe.spec() if isinstance(recipe, TrainConfig) else asdict(recipe)


@dataclass(frozen=True, eq=False)
class Case:
    """One data set, one recipe of the targets, a bank of models, and public records.

    Attributes:
        name: what tables call it. architecture: of the targets.
        pool: J records, half of which trains each model. public: Q records that none was trained on.
        bank: membership of the pool in the models, and which of them are attacked.
        counts: numbers of references of LiRA, even, ascending.
        splits: rows of `public` by name: "fit", "selection", "calibration", disjoint.
        recipe: of the targets and references: networks or boosted trees.
        models: the networks, trained when a score of theirs is first needed; None for trees.
        views: augmentation under which the pool is scored once more, "none" for tables.
        seed: of everything random.
    """

    name: str
    architecture: str
    pool: Dataset
    public: Dataset
    bank: membership.Bank
    counts: tuple[int, ...]
    splits: Mapping[str, np.ndarray]
    recipe: TrainConfig | TreeConfig
    models: Ensemble | None = None
    views: str = "none"
    seed: int = 0

    @property
    def is_image(self) -> bool:
        """Whether records are images."""
        return self.pool.is_image

    @property
    def methods(self) -> tuple[Method, ...]:
        """The attacks that are compared with regressions."""
        most = self.counts[-1]
        own = [lira(most, own=True)] if 4 <= most < OWN_VARIANCE_FROM else []  # a spread wants two references of each kind
        return MARGINAL, *map(lira, self.counts), *own, lira(most, offline=True)

    @cached_property
    def seen(self) -> tuple[Dataset, ...]:
        """Records that regressions are asked about: the pool, the public ones and, of images, the pool under augmentation."""
        if self.views == "none":
            return self.pool, self.public
        generator = torch.Generator().manual_seed(self.seed)
        x = torch.from_numpy(np.array(self.pool.x)).permute(0, 3, 1, 2)
        x = augment(x.float(), self.views, draw_views(self.views, len(x), generator)).round().to(torch.uint8)
        return self.pool, self.public, replace(self.pool, x=np.ascontiguousarray(x.permute(0, 2, 3, 1).numpy()))

    @property
    def spec(self) -> dict:
        """What determines the numbers of a case."""
        return {"records": [one.fingerprint for one in self.seen], "members": store.fingerprint(self.bank.members),
                "recipe": _plain(self.recipe), "attacked": list(self.bank.attacked), "counts": list(self.counts),
                "splits": {name: store.fingerprint(rows) for name, rows in self.splits.items()}}

    @cached_property
    def scores(self) -> tuple[np.ndarray, np.ndarray]:
        """Hinge scores under all models: of the pool [M, J] and of the public records [M, Q], float64."""
        if self.models is None:
            found = _grown(self)
            return tuple(np.stack([one[name] for one in found]).astype(np.float64) for name in ("pool", "public"))
        return tuple(signals.hinge(self.models, one).astype(np.float64) for one in self.seen[:2])

    @cached_property
    def scores_of_views(self) -> np.ndarray:
        """Hinge scores of the pool under augmentation, by the targets [T, J]."""
        return signals.hinge(self.models.part(self.bank.attacked), self.seen[2]).astype(np.float64)

    def training_seconds(self, model: int) -> float:
        """What training one model took, when it was done."""
        if self.models is None:
            return float(_grown(self)[int(model)]["seconds"])
        self.models.part([model]).fit()
        return float(store.look_up(self.models.spec(int(model))).manifest["seconds"])


def _check(pool: int, models: int, targets: int, counts: Sequence[int], splits: Sequence[float]) -> None:
    check_range("pool", pool, 40)
    membership.check_counts(counts, models)
    check_range("targets", targets, 2, models)
    if len(splits) != 3 or not all(part > 0 for part in splits) or abs(sum(splits) - 1) > 1e-9:
        raise MiaError(f"splits = {list(splits)}: three shares above 0 that add up to 1 are needed, for fit, selection and "
                       "calibration.")


def _deal(found: Dataset, pool: int, public: int, shares: Sequence[float], seed: int) -> tuple[Dataset, Dataset, dict]:
    """Records at random into pool and public ones, and these into their splits."""
    public = public or len(found) - pool
    if pool + public > len(found) or public < 60:
        raise MiaError(f"pool = {pool} and public = {public}: {found.name} has {len(found)} records, which must hold both, at "
                       "least 60 public ones among them (0 takes all that the pool leaves).")
    least = {"fit": LEAST, "selection": 2, "calibration": round(1 / CLASS_ALPHA) - 1}
    if any(share * public < need for share, need in zip(shares, least.values(), strict=True)):
        raise MiaError(f"splits = {list(shares)} of {public} public records: at least {least['fit']} are needed to fit, "
                       f"{least['selection']} to select and {least['calibration']} to calibrate.")
    order = np.random.default_rng([23, seed]).permutation(len(found))
    cuts = np.round(np.cumsum(shares[:2]) * public).astype(int)
    splits = dict(zip(("fit", "selection", "calibration"), np.split(np.arange(public), cuts), strict=True))
    quantile.check_splits(**{name: order[pool:][rows] for name, rows in splits.items()}, evaluation=order[:pool])
    return found.take(order[:pool]), found.take(order[pool:pool + public]), splits


def image_case(dataset: str, config: TrainConfig, pool: int, public: int, models: int, targets: int, counts: Sequence[int],
               splits: Sequence[float], views: str = "none", seed: int = 0) -> Case:
    """Networks attacked on a data set.

    Args:
        dataset: by name. config: how targets and references are trained. pool: J. public: Q, 0 for all that the pool leaves.
        models: M. targets: T, the first ones. counts: of LiRA's references. splits: shares of fit, selection, calibration.
        views: augmentation for the comparison of scores with and without. seed: of pool, halves and models.

    Raises:
        MiaError: too few records, models or references; shares that are none.
    """
    _check(pool, models, targets, counts, splits)
    found = data.load(dataset)
    if views != "none" and not found.is_image:
        raise MiaError(f"views = {views!r}: {found.name} holds tables, which have no augmentation. Use 'none'.")
    inside, outside, rows = _deal(found, pool, public, splits, seed)
    bank = membership.Bank(membership.balanced_halves(pool, models, seed), tuple(range(targets)))
    name = TITLES.get(dataset, dataset)
    trained = train(inside, bank.members, replace(config, seed=seed), label=f"{config.architecture} on {name}")
    return Case(name, config.architecture, inside, outside, bank, tuple(counts), rows, trained.config, trained, views, seed)


def table_case(dataset: str, config: TreeConfig, pool: int, public: int, models: int, targets: int, counts: Sequence[int],
               splits: Sequence[float], seed: int = 0) -> Case:
    """Boosted trees attacked on a table; arguments and errors as for `image_case`.

    Raises:
        MiaError: CatBoost is not installed; images.
    """
    if trees.lacking():
        raise MiaError(trees.lacking())
    _check(pool, models, targets, counts, splits)
    found = data.load(dataset)
    if found.is_image:
        raise MiaError(f"{found.name} holds images: boosted trees take tables, such as german_credit or adult.")
    inside, outside, rows = _deal(found, pool, public, splits, seed)
    bank = membership.Bank(membership.balanced_halves(pool, models, seed), tuple(range(targets)))
    return Case(TITLES.get(dataset, dataset), "boosted trees", inside, outside, bank, tuple(counts), rows,
                replace(config, seed=seed), seed=seed)


def fewer(case: Case, targets: int) -> Case:
    """The case with its first targets only; scores that were computed are shared."""
    few = replace(case, bank=replace(case.bank, attacked=case.bank.attacked[:targets]))
    few.__dict__.update({name: case.__dict__[name] for name in ("seen", "scores") if name in case.__dict__})
    return few


def check_tables(tables: Sequence[str], pools: Sequence[int], public: Sequence[int]) -> None:
    """Refuse lists that do not have one entry for each table.

    Raises:
        MiaError: with the length of each.
    """
    if not len(tables) == len(pools) == len(public) or not tables:
        raise MiaError(f"tables has {len(tables)} entries, table_pools {len(pools)} and table_public {len(public)}: one of "
                       "each is needed for every table, and one table at least.")


def check_references(references: Sequence[int]) -> None:
    """Refuse numbers of LiRA's references of which the largest cannot be parted, as `quarters` does.

    Raises:
        MiaError: naming it.
    """
    if references[-1] < 4:
        raise MiaError(f"references = {list(references)}: the last must be at least 4, for one half of so many sorts the "
                       "records by how hard they are, and the other half attacks them.")


def check_views(views: str) -> None:
    """Refuse no augmentation for scores under augmentation.

    Raises:
        MiaError: naming the parameter.
    """
    if views == "none":
        raise MiaError("views = 'none': scores are taken once more under an augmentation, such as flip_crop:2.")


def check_classes(cases: Sequence[Case]) -> None:
    """Refuse training sets of trees without a record of some class, to which boosted trees give no finite logit.

    Raises:
        MiaError: naming the table.
    """
    for one in cases:
        classes = np.arange(len(one.pool.classes))
        least = min((len(np.unique(one.pool.y[row])) for row in one.bank.members), default=len(classes))
        if least < len(classes):
            raise MiaError(f"table_pools = {len(one.pool.y)} for {one.name}: half of that trains a model, and one half has "
                           f"records of {least} of {len(classes)} classes alone. Give more records, or another of tables.")


def plan(cases: Sequence[Case], settings: Mapping[bool, Settings]) -> pd.DataFrame:
    """What a run trains, before anything is trained.

    Args:
        settings: of the regressions, for images (True) and tables (False).
    """
    rows = []
    for one in cases:
        how = settings[one.is_image]
        rows.append({"case": one.name, "targets": f"{len(one.bank.attacked)} × {one.architecture}",
                     "models": len(one.bank.members), "members of each": tables.cell(int(one.bank.members[0].sum()), ","),
                     "non-members judged": tables.cell(int((~one.bank.judged[0]).sum()), ","),
                     **{name: tables.cell(len(part), ",") for name, part in one.splits.items()},
                     "regressor": how.backbone + (", frozen" if how.frozen else "") if one.is_image else "boosted trees"})
    return pd.DataFrame(rows)


# ---------------------------------------------------------------------------------------------------------- boosted trees


def _grow_task(x, y, config, classes, pool, public, labels):
    start = time.perf_counter()
    logits = trees.classifier_logits(x, y, classes, config, pool, public)
    seconds = time.perf_counter() - start
    hinges = [signals.scalars(z, of)["hinge"] for z, of in zip(logits, labels, strict=True)]
    return {"pool": hinges[0], "public": hinges[1], "seconds": np.array(seconds)}


def _grown(case: Case) -> list[dict[str, np.ndarray]]:
    """Hinge scores of each tree model, kept in the store as soon as it is there."""
    pool, public, classes = case.pool, case.public, len(case.pool.classes)
    recipe = {"pool": pool.fingerprint, "public": public.fingerprint, "classes": classes, "config": asdict(case.recipe)}
    spec = store.under({"kind": "trees", **recipe}, _grown, case)
    specs = [{**spec, "members": store.fingerprint(row), "index": m} for m, row in enumerate(case.bank.members)]

    def arguments(m: int) -> dict:
        row = case.bank.members[m]
        return {"x": pool.x[row], "y": pool.y[row], "config": replace(case.recipe, seed=case.recipe.seed + 1000 * (1 + m))}

    return signals.map_models(_grow_task, None, specs, f"boosted trees on {case.name}", each=arguments, classes=classes,
                              pool=pool.x, public=public.x, labels=(pool.y, public.y))


# ------------------------------------------------------------------------------------------------------------- regressions


def fitted_levels(count: int) -> tuple[float, ...]:
    """Levels of the pinball heads: `count` false positive rates from 0.0005 to 0.9, evenly spaced in their logarithm."""
    check_range("levels", count, 3)
    return tuple(float(level) for level in 1 - np.geomspace(0.9, 0.0005, count))


@dataclass(frozen=True)
class Regression:
    """One regression against one target.

    Attributes:
        target: number of the model. head: one of `HEADS`. settings: of the regressor. levels: of pinball heads.
        size: public records of the fit split that are used, the first ones; all when None.
    """

    target: int
    head: str
    settings: Settings
    levels: tuple[float, ...]
    size: int | None = None


def seeded(case: Case, settings: Settings, target: int) -> Settings:
    """Settings with the seed that a regression against a target starts from."""
    return replace(settings, seed=settings.seed + 7919 * (1 + target) + case.seed)


def inputs(case: Case, settings: Settings) -> tuple[Dataset, ...]:
    """`Case.seen` as regressors take it: features, where the backbone is frozen."""
    if not case.is_image or not settings.frozen:
        return case.seen
    out = []
    for one in case.seen:
        x = np.concatenate([part["x"] for part in _features(one, settings)]).astype(np.float32)
        out.append(replace(one, name=f"{one.name} features", x=x))
    return tuple(out)


def _feature_seconds(case: Case, settings: Settings) -> float:
    """What computing the features of the records that a regression learns from took; 0 where its backbone learns, too."""
    if not case.is_image or not settings.frozen:
        return 0.0
    share = (len(case.splits["fit"]) + len(case.splits["selection"])) / len(case.public)
    return share * sum(float(part["seconds"]) for part in _features(case.public, settings))


def _features(records: Dataset, settings: NetworkConfig, size: int = 500) -> list[dict[str, np.ndarray]]:
    """Features of a frozen backbone, `size` records at a time, kept in the store as soon as they are there."""
    spec = {"kind": "features", "records": records.fingerprint, "backbone": settings.backbone, "size": size,
            "image_size": settings.image_size}
    if settings.backbone not in networks.PRETRAINED:  # random weights
        spec["seed"] = settings.seed
    spec, starts = store.under(spec, _features_task, settings), range(0, len(records), size)
    return signals.map_models(
        _features_task, None, [{**spec, "start": start} for start in starts], f"features by {settings.backbone}",
        each=lambda k: {"rows": slice(starts[k], starts[k] + size)}, path=ensemble.records_file(records), settings=settings)


def _features_task(settings, path, rows):
    begun = time.perf_counter()
    x = networks.features(settings, np.array(training.open_records(path)[rows])).astype(np.float16)
    return {"x": x, "seconds": np.array(time.perf_counter() - begun)}


def _regress_task(paths, labels, score, fit, selection, head, settings, levels, classes):
    begun = time.perf_counter()
    seen = [training.open_records(path) for path in paths]
    knows = classes if HEADS[head].labelled else None
    if HEADS[head].kind == "gauss":
        model = quantile.GaussianQuantile(settings, knows)
    else:
        model = quantile.PinballQuantile(settings, levels, knows)

    def part(rows):
        return np.asarray(seen[1][rows]), score[rows], labels[1][rows] if knows else None

    model.fit(*part(fit), validation=part(selection))
    seconds = time.perf_counter() - begun
    said = [model.predict(np.asarray(x), y if knows else None) for x, y in zip(seen, labels, strict=True)]
    names = ("pool", "public", "views")[:len(said)]
    return {**{name: np.stack(one).astype(np.float32) for name, one in zip(names, said, strict=True)},
            "seconds": np.array(seconds)}


def regressions(case: Case, wanted: Sequence[Regression]) -> list[dict[str, np.ndarray]]:
    """What regressions predict, each kept in the store as soon as it is there.

    Returns:
        for each: "pool" [., J], "public" [., Q] and, of images, "views" [., J]: mean and spread of a Gaussian head, or the
        quantiles of a pinball head, in units of the score; "seconds" of fitting.
    """
    specs = [store.under({
        "kind": "regression", "records": [each.fingerprint for each in case.seen], "classes": len(case.pool.classes),
        "members": store.fingerprint(case.bank.members[one.target]), "recipe": _plain(case.recipe), "target": one.target,
        "head": one.head, "settings": asdict(one.settings), "fit": store.fingerprint(case.splits["fit"][:one.size]),
        "levels": list(one.levels) if HEADS[one.head].kind == "pinball" else [],
        "selection": store.fingerprint(case.splits["selection"])}, regressions, case, one.settings) for one in wanted]

    @cache
    def files(settings: Settings) -> list:
        return [ensemble.records_file(each) for each in inputs(case, settings)]

    def arguments(k: int) -> dict:
        one = wanted[k]
        return {"paths": files(one.settings), "score": case.scores[1][one.target], "fit": case.splits["fit"][:one.size],
                "head": one.head, "settings": seeded(case, one.settings, one.target), "levels": one.levels}

    return signals.map_models(
        _regress_task, None, specs, f"regressions for {case.architecture} on {case.name}", each=arguments,
        labels=[each.y for each in case.seen], selection=case.splits["selection"], classes=len(case.pool.classes))


def position(one: Regression, found: dict[str, np.ndarray], where: str, score: np.ndarray) -> np.ndarray:
    """Where scores lie in the predicted law, in units of Phi^-1(level), [N].

    Args:
        found: of `regressions`. where: "pool", "public" or "views". score: [N].
    """
    said = found[where].astype(np.float64)
    if HEADS[one.head].kind == "gauss":
        return quantile.gaussian_position(score, *said)
    return quantile.pinball_position(score, said, one.levels)


def thresholds(one: Regression, found: dict[str, np.ndarray], where: str, levels: Sequence[float]) -> np.ndarray:
    """Predicted quantiles [L, N] at any levels."""
    said = found[where].astype(np.float64)
    if HEADS[one.head].kind == "gauss":
        return quantile.gaussian_thresholds(*said, levels)
    return quantile.pinball_thresholds(said, one.levels, levels)


# --------------------------------------------------------------------------------------------------------------- the attacks


@dataclass(frozen=True, eq=False)
class Play:
    """All attacks against all targets.

    Attributes:
        methods: the attacks, see `in_order`; what follows is by their names.
        members: bool [T, J]. labels: int [J]. calibration: int [K], records of that split by class.
        ranks: [T, J].
        pinball: [T, 2] at `LEVELS` on the calibration split; LiRA's with all of its references, for none saw these records.
        fpr, tpr: "raw", at nominal `ALPHAS` with a method's own thresholds, and "calibrated", with thresholds from the
            calibration split (not a number where it is too small) -> [T, A]; of those that have such thresholds.
        class_false: (name, "calibrated" on all records or "by_class") -> int [T, K], false positives at `CLASS_ALPHA`, of
            class_all [T, K].
        crossing: share of records whose quantiles cross, [T]. seconds: of fitting, [T]; seconds_reference: of a reference.
        train, test: accuracy of the targets on members and on others, [T].
    """

    methods: tuple[Method, ...]
    members: np.ndarray
    labels: np.ndarray
    calibration: np.ndarray
    ranks: dict[str, np.ndarray]
    pinball: dict[str, np.ndarray]
    fpr: dict[str, dict[str, np.ndarray]]
    tpr: dict[str, dict[str, np.ndarray]]
    class_false: dict[tuple[str, str], np.ndarray]
    class_all: np.ndarray
    crossing: dict[str, np.ndarray]
    seconds: dict[str, np.ndarray]
    seconds_reference: np.ndarray
    train: np.ndarray
    test: np.ndarray

    @staticmethod
    def of(arrays: dict[str, np.ndarray], methods: Sequence[Method]) -> Play:
        """From kept arrays."""
        online = [one for one in methods if one.references and not one.offline]
        heads = [one for one in methods if one.kind]
        with_own, by_position = [one for one in methods if one not in online], [MARGINAL, *heads]

        def named(prefix: str, some: Sequence[Method]) -> dict[str, np.ndarray]:
            return {one.name: arrays[f"{prefix}{one.name}"] for one in some}

        return Play(
            methods=tuple(in_order(methods)), ranks=named("", methods), pinball=named("pinball.", methods),
            fpr={"raw": named("raw.", with_own), "calibrated": named("calibrated.", by_position)},
            tpr={"raw": named("raw_tpr.", with_own), "calibrated": named("calibrated_tpr.", by_position)},
            class_false={(name, how): arrays[f"class_false.{name}.{how}"] for name in BY_CLASS for how in CLASS_THRESHOLDS
                         if f"class_false.{name}.{how}" in arrays},
            crossing=named("crossing.", [one for one in heads if one.kind == "pinball"]), seconds=named("seconds.", heads),
            seconds_reference=arrays["seconds.reference"],
            **{name: arrays[name] for name in ("members", "labels", "calibration", "class_all", "train", "test")})


def play(case: Case, settings: Mapping[str, Settings], heads: Sequence[str], levels: Sequence[float]) -> Play:
    """All attacks against all targets, kept in the store.

    Args:
        settings: of the regressions, "gauss" and "pinball". heads: of `HEADS`. levels: of pinball heads.
    """
    heads, levels = tuple(heads), tuple(levels)

    def compute() -> dict[str, np.ndarray]:
        wanted = [Regression(target, head, settings[HEADS[head].kind], levels)
                  for target in case.bank.attacked for head in heads]
        found = dict(zip([(one.target, one.head) for one in wanted], zip(wanted, regressions(case, wanted), strict=True),
                         strict=True))
        seconds = _seconds_of_training(case)
        rows = [_against(case, target, {head: found[target, head] for head in heads}, seconds)
                for target in case.bank.attacked]
        return {"members": case.bank.judged, "labels": case.pool.y.astype(np.int16),
                "calibration": np.bincount(case.public.y[case.splits["calibration"]], minlength=len(case.pool.classes)),
                **{name: np.stack([row[name] for row in rows]) for name in rows[0]}}

    spec = {**case.spec, "heads": list(heads), "levels": list(levels),
            "settings": {name: asdict(one) for name, one in settings.items()}}
    return Play.of(store.study("quantile.play", spec, compute), [*case.methods, *(HEADS[head] for head in heads)])


def _seconds_of_training(case: Case) -> np.ndarray:
    """What training each model took, [M]; trees, each kept with all its scores, are read once and not for each target's
    references."""
    if case.models is None:
        return np.array([float(one["seconds"]) for one in _grown(case)])
    return np.array([case.training_seconds(m) for m in range(len(case.bank.members))])


def _against(case: Case, target: int, found: Mapping[str, tuple[Regression, dict[str, np.ndarray]]],
             seconds: np.ndarray) -> dict[str, np.ndarray]:
    """All attacks on one target: the arrays that `Play` is made of, without the first axis.

    Args:
        found: head -> regression and what it said. seconds: of training each model, [M].
    """
    (pool, public), inside = (scores[target] for scores in case.scores), case.bank.members[target]
    fit, calibration = case.splits["fit"], case.splits["calibration"]
    out: dict[str, np.ndarray] = {"train": np.array((pool[inside] > 0).mean()), "test": np.array((pool[~inside] > 0).mean())}

    def keep(name, score, own, of_calibration=None, predicted=None):
        """`own`: thresholds [A, J or 1] of this score at `ALPHAS`. `of_calibration` [n]: this score of that split."""
        out[name] = packed_ranks(score)
        if own is not None:
            for end, rate in zip(("", "_tpr"), _rates(score >= own, inside), strict=True):
                out[f"raw{end}.{name}"] = np.where(np.isnan(own).any(1), np.nan, rate)
        if of_calibration is not None:
            moved = _resolvable(of_calibration, ALPHAS)[:, None]
            rates = _rates(score >= moved, inside)
            for end, rate in zip(("", "_tpr"), rates, strict=True):
                out[f"calibrated{end}.{name}"] = np.where(np.isnan(moved[:, 0]), np.nan, rate)
        if predicted is not None:
            out[f"pinball.{name}"] = np.array([metrics.pinball_loss(q, public[calibration], level)
                                               for q, level in zip(predicted, LEVELS, strict=True)])

    alphas = 1 - np.array(ALPHAS)
    constant = np.quantile(public[fit], LEVELS)[:, None] * np.ones(len(calibration))
    positions = {"marginal": (pool, public[calibration])}
    keep("marginal", pool, _resolvable(public[fit], ALPHAS)[:, None], public[calibration], constant)
    for head, (one, said) in found.items():
        score = position(one, said, "pool", pool)
        of_calibration = position(one, said, "public", public)[calibration]
        positions[head] = score, of_calibration
        keep(head, score, stats.norm.ppf(alphas)[:, None], of_calibration,
             thresholds(one, said, "public", LEVELS)[:, calibration])
        out[f"seconds.{head}"] = said["seconds"] + _feature_seconds(case, one.settings)
        if HEADS[head].kind == "pinball":
            out[f"crossing.{head}"] = np.array(quantile.crossings(said["pool"]))
    for count in case.counts:
        rows, fixed, name = case.bank.pairs_after(target, count), count < OWN_VARIANCE_FROM, lira(count).name
        signals_in, who = case.scores[0][rows], case.bank.members[rows]
        predicted = _lira_quantiles(case, rows, calibration, fixed)
        keep(name, baselines.lira_online(pool, signals_in, who, fixed), None, None, predicted)
    if lira(count, own=True) in case.methods:
        keep(lira(count, own=True).name, baselines.lira_online(pool, signals_in, who, False), None, None,
             _lira_quantiles(case, rows, calibration, False))
    offline = lira(count, offline=True).name
    keep(offline, pool, baselines.lira_threshold(signals_in, who, alphas, fixed), None, predicted)
    out[offline] = packed_ranks(baselines.lira_offline(pool, signals_in, who, fixed))
    out["seconds.reference"] = np.array(seconds[rows].mean())
    return out | _by_class(case, target, {name: positions[name] for name in BY_CLASS if name in positions})


def _lira_quantiles(case: Case, references: np.ndarray, calibration: np.ndarray, fixed: bool) -> np.ndarray:
    """Quantiles at `LEVELS` of LiRA's Gaussian for the calibration split, which all of these references left out, [2, n]."""
    under = case.scores[1][references][:, calibration]
    return baselines.lira_threshold(under, np.zeros(under.shape, bool), LEVELS, fixed)


def _rates(called: np.ndarray, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates [A] of decisions bool [A, J]."""
    return called[:, ~inside].mean(1), called[:, inside].mean(1)


def _resolvable(score: np.ndarray, alphas: Sequence[float]) -> np.ndarray:
    """Thresholds of `quantile.marginal` [A]; not a number at rates that so few scores cannot resolve."""
    fine = np.array(alphas) >= 1 / (len(score) + 1)
    out = np.full(len(alphas), np.nan)
    out[fine] = quantile.marginal(score, 1 - np.array(alphas)[fine])
    return out


def _by_class(case: Case, target: int, positions: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
    """False positives by class at `CLASS_ALPHA`: thresholds calibrated on all records, and within each class."""
    outside, classes, level = ~case.bank.members[target], len(case.pool.classes), [1 - CLASS_ALPHA]
    labels, of_calibration = case.pool.y, case.public.y[case.splits["calibration"]]

    def count(called):
        return np.bincount(labels[called & outside], minlength=classes)

    out = {"class_all": count(np.ones(len(labels), bool))}
    enough = np.bincount(of_calibration, minlength=classes).min() + 1 >= 1 / CLASS_ALPHA
    for name, (score, calibration) in positions.items():
        out[f"class_false.{name}.calibrated"] = count(score >= quantile.marginal(calibration, level)[0])
        if enough:
            moved = quantile.by_group(calibration, of_calibration, level, classes)[0]
            out[f"class_false.{name}.by_class"] = count(score >= moved[labels])
    return out


@dataclass(frozen=True, eq=False)
class OneTarget:
    """The first target and its Gaussian regression on record and label, record by record.

    Attributes:
        members: bool [J]. score, mean, spread: of the pool, [J]. aside_score, aside_position: of the calibration split, [n].
    """

    members: np.ndarray
    score: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    aside_score: np.ndarray
    aside_position: np.ndarray


def one_target(case: Case, settings: Settings, levels: Sequence[float]) -> OneTarget:
    """The first target, record by record, kept in the store; arguments as of `quarters`."""
    def compute() -> dict[str, np.ndarray]:
        one = Regression(case.bank.attacked[0], "gauss_xy", settings, tuple(levels))
        [said] = regressions(case, [one])
        (pool, public), aside = (scores[one.target] for scores in case.scores), case.splits["calibration"]
        mean, spread = said["pool"]
        return {"members": case.bank.members[one.target], "score": pool.astype(np.float32), "mean": mean, "spread": spread,
                "aside_score": public[aside].astype(np.float32),
                "aside_position": position(one, said, "public", public)[aside].astype(np.float32)}

    spec = {**case.spec, "settings": asdict(settings), "levels": list(levels)}
    return OneTarget(**store.study("quantile.one_target", spec, compute))


@dataclass(frozen=True, eq=False)
class Mismatch:
    """LiRA with shadow models of each architecture against targets of each.

    Attributes:
        architectures: their names. members: bool [T, J]. ranks: (target, shadow) -> [T, J].
    """

    architectures: tuple[str, ...]
    members: np.ndarray
    ranks: dict[tuple[str, str], np.ndarray]


def mismatch(cases: Mapping[str, Case], count: int) -> Mismatch:
    """LiRA with shadow models of each architecture against targets of each (Figure 4); kept in the store.

    Args:
        cases: name -> case; all with the same pool, halves and targets. count: shadow models.
    """
    first, *others = cases.values()
    for other in others:
        if (other.pool.fingerprint != first.pool.fingerprint or other.bank.attacked != first.bank.attacked
                or not np.array_equal(other.bank.members, first.bank.members)):
            raise MiaError(f"{first.architecture} and {other.architecture} play different games: the same pool, halves and "
                           "targets are needed.")
    if count % 2 or not 2 <= count <= len(first.bank.members) - 2:
        raise MiaError(f"shadow models = {count}: an even number from 2 to {len(first.bank.members) - 2} is needed.")

    def compute() -> dict[str, np.ndarray]:
        out = {"members": first.bank.judged}
        for target, attacked in cases.items():
            for shadow, trained in cases.items():
                out[f"{target}|{shadow}"] = np.stack([packed_ranks(baselines.lira_online(
                    attacked.scores[0][m], trained.scores[0][rows], trained.bank.members[rows], count < OWN_VARIANCE_FROM))
                    for m in first.bank.attacked for rows in [first.bank.pairs_after(m, count)]])
        return out

    spec = {"cases": {name: one.spec for name, one in cases.items()}, "count": count}
    arrays = store.study("quantile.mismatch", spec, compute)
    return Mismatch(tuple(cases), arrays["members"], {(a, b): arrays[f"{a}|{b}"] for a in cases for b in cases})


# ------------------------------------------------------------------------------------------------------------------- tuning


@dataclass(frozen=True, eq=False)
class Tuned:
    """A search, [trials] each.

    Attributes:
        searched: hyperparameter -> its values. selection: the objective. evaluation: pinball loss on the judged non-members.
        tpr: `metrics.conformal_tpr_at_fpr` at 1 %. seconds: of fitting.
    """

    searched: dict[str, np.ndarray]
    selection: np.ndarray
    evaluation: np.ndarray
    tpr: np.ndarray
    seconds: np.ndarray

    @staticmethod
    def of(arrays: dict[str, np.ndarray]) -> Tuned:
        """From kept arrays, in which those of `searched` stand by themselves."""
        own = {one.name: arrays[one.name] for one in fields(Tuned) if one.name in arrays}
        return Tuned({name: one for name, one in arrays.items() if name not in own}, **own)


def tune(case: Case, base: Settings, trials: int, levels: Sequence[float], most_epochs: int = 50,
         head: str = "gauss_xy") -> Tuned:
    """Settings of the regression against the first target, by Optuna within the ranges of Tables 4 and 5; kept in the store.

    The only objective is the pinball loss at 1 % on the selection split. The first trial is `base`; after it Optuna's sampler
    proposes, two at a time. Each trial is kept when it is done and the sampler is seeded, so a search that was stopped goes on
    where it was.

    Args:
        base: settings to begin with; what is not searched stays as it is there. trials: how many. most_epochs: the longest
            training that may be tried. head: of `HEADS`.

    Raises:
        MiaError: Optuna, or what the backbone needs, is not installed.
    """
    check_range("trials", trials, 1)
    check_range("most_epochs", most_epochs, 5)
    if isinstance(base, NetworkConfig) and networks.lacking(base.backbone):  # before the targets are trained
        raise MiaError(networks.lacking(base.backbone))

    def compute() -> dict[str, np.ndarray]:
        optuna = _optuna()
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=case.seed, constant_liar=True,
                                                                       n_startup_trials=max(2, trials // 3)))
        if isinstance(base, NetworkConfig):
            space, limit = _image_space, most_epochs
        else:
            space, limit = _table_space, len(case.splits["fit"])
        target, rows, asked = case.bank.attacked[0], [], 0
        while asked < trials:
            batch = []
            for _ in range(min(2, trials - asked)):
                if asked == 0:
                    batch.append((None, base))
                else:
                    trial = study.ask()
                    batch.append((trial, space(trial, base, limit)))
                asked += 1
            wanted = [Regression(target, head, settings, tuple(levels)) for _, settings in batch]
            for (trial, settings), one, said in zip(batch, wanted, _tried(case, wanted), strict=True):
                if trial is None and isinstance(said, MiaError):  # what is begun with has to work
                    raise said
                row = _judge_trial(case, one, said)
                rows.append({**_searched(settings), **row})
                if trial is not None:
                    study.tell(trial, row["selection"] if np.isfinite(row["selection"]) else 1e9)
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    spec = {**case.spec, "base": asdict(base), "trials": trials, "most_epochs": most_epochs, "head": head,
            "levels": list(levels)}
    return Tuned.of(store.study("quantile.tune", spec, compute))


def _tried(case: Case, wanted: Sequence[Regression]) -> list[dict[str, np.ndarray] | MiaError]:
    """`regressions`; the error of one that cannot be fitted, such as a network that diverges."""
    try:
        return regressions(case, wanted)
    except MiaError as error:
        if type(error.__cause__).__name__ not in ("NoneType", "_RemoteTraceback"):  # a process that died is no bad trial
            raise
        return [error] if len(wanted) == 1 else [_tried(case, [one])[0] for one in wanted]


def _optuna():
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "IProgress not found")  # of tqdm, about a bar that is not drawn
            import optuna
    except ImportError as error:
        raise MiaError("Tuning needs Optuna: the extra tabular brings it, pip install -e '.[tabular]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _image_space(trial, base: NetworkConfig, most_epochs: int) -> NetworkConfig:
    """Table 4; batches of 32, of which 1 to 64 make a step."""
    return replace(base, learning_rate=trial.suggest_float("learning_rate", 1e-6, 1e-2, log=True),
                   weight_decay=trial.suggest_float("weight_decay", 2e-6, 5e-3, log=True),
                   hidden=(512, 512) if trial.suggest_categorical("hidden", [False, True]) else (),
                   batch_size=32 * trial.suggest_categorical("accumulated", [1, 2, 4, 8, 16, 32, 64]),
                   epochs=trial.suggest_int("epochs", 5, min(50, most_epochs), step=5))


def _table_space(trial, base: TreeConfig, records: int) -> TreeConfig:
    """Table 5, but that a tree sees `LEAST_SAMPLE` of the records at least: CatBoost refuses a handful."""
    return replace(base, depth=trial.suggest_int("depth", 1, 10),
                   l2_leaf_reg=trial.suggest_float("l2_leaf_reg", 1e-2, 1e6, log=True),
                   learning_rate=trial.suggest_float("learning_rate", 1e-6, 1.0, log=True),
                   subsample=trial.suggest_float("subsample", max(1e-2, min(LEAST_SAMPLE / records, 1.0)), 1.0, log=True),
                   iterations=trial.suggest_int("iterations", 1, 1000, log=True))


def _searched(settings: Settings) -> dict[str, float]:
    """The hyperparameters of a trial as numbers; CatBoost's own choices are not numbers."""
    names = ("learning_rate", "weight_decay", "batch_size", "epochs") if isinstance(settings, NetworkConfig) else (
        "depth", "l2_leaf_reg", "learning_rate", "subsample", "iterations")
    out = {name: np.nan if getattr(settings, name) is None else float(getattr(settings, name)) for name in names}
    return out | ({"hidden": float(sum(settings.hidden)), "layers": float(len(settings.hidden))}
                  if isinstance(settings, NetworkConfig) else {})


def _judge_trial(case: Case, one: Regression, said: dict[str, np.ndarray] | MiaError) -> dict[str, float]:
    if isinstance(said, MiaError):
        return dict.fromkeys(("selection", "evaluation", "tpr"), np.nan) | {"seconds": 0.0}
    inside, selection = case.bank.members[one.target], case.splits["selection"]
    pool, public = (scores[one.target] for scores in case.scores)
    level = LEVELS[0]
    q, of_pool = (thresholds(one, said, where, [level])[0] for where in ("public", "pool"))
    return {"selection": metrics.pinball_loss(q[selection], public[selection], level),
            "evaluation": metrics.pinball_loss(of_pool[~inside], pool[~inside], level),
            "tpr": metrics.conformal_tpr_at_fpr(position(one, said, "pool", pool), inside, 1 - level),
            "seconds": float(said["seconds"])}


def tried(tuned: Tuned, base: Settings) -> list[Settings]:
    """The settings of all trials, the first of which is `base`."""
    out = [base]
    for trial in range(1, len(tuned.selection)):
        value = {name: column[trial] for name, column in tuned.searched.items()}
        if isinstance(base, NetworkConfig):
            out.append(replace(base, learning_rate=float(value["learning_rate"]), weight_decay=float(value["weight_decay"]),
                               hidden=(512, 512) if value["layers"] else (), batch_size=int(value["batch_size"]),
                               epochs=int(value["epochs"])))
        else:
            out.append(replace(base, depth=int(value["depth"]), l2_leaf_reg=float(value["l2_leaf_reg"]),
                               learning_rate=float(value["learning_rate"]), subsample=float(value["subsample"]),
                               iterations=int(value["iterations"])))
    return out


def chosen(tuned: Tuned, base: Settings) -> Settings:
    """The settings with the least pinball loss on the selection split."""
    return tried(tuned, base)[int(np.nanargmin(tuned.selection))]


@dataclass(frozen=True, eq=False)
class Search:
    """The searches of one case, "gauss" and "pinball".

    Attributes:
        base: what they began with. tuned: their trials. settings: the best of them.
    """

    base: Settings
    tuned: dict[str, Tuned]
    settings: dict[str, Settings]

    @property
    def tried(self) -> list[Settings]:
        """The settings of all trials for the Gaussian."""
        return tried(self.tuned["gauss"], self.base)


def search(case: Case, base: Settings, trials: int, levels: Sequence[float], most_epochs: int = 50) -> Search:
    """`tune` for the Gaussian and for the pinball loss, on record and label; arguments as there."""
    tuned = {kind: tune(case, base, trials, levels, most_epochs, head)
             for kind, head in (("gauss", "gauss_xy"), ("pinball", "pinball_xy"))}
    return Search(base, tuned, {kind: chosen(found, base) for kind, found in tuned.items()})


# -------------------------------------------------------------------------------------------------------------------- cost


@dataclass(frozen=True)
class Work:
    """What models cost: operations of networks, visits of boosted trees.

    Attributes:
        reference: to train one model of the case. regression: to fit one; not a number where its backbone is not installed.
        tuning: all trials of a search, with the features that the regression has; None where there was none.
    """

    reference: float
    regression: float
    tuning: float | None = None


def work(case: Case, settings: Settings, tried_settings: Sequence[Settings] = ()) -> Work:
    """What models cost, counted and not timed, see `mia_lib.papers.costs`.

    Args:
        settings: of the Gaussian regression on record and label. tried_settings: of the trials that found them, see `tried`.
    """
    shape, classes, inside = case.pool.shape, len(case.pool.classes), int(case.bank.members[0].sum())
    fit, selection = len(case.splits["fit"]), len(case.splits["selection"])

    def regression(how: Settings, kept: bool = False) -> float:
        if isinstance(how, TreeConfig):
            return counts.growing(how, fit, shape[0] + classes, 2)
        if networks.lacking(how.backbone):
            return np.nan
        return counts.regression(how, shape, classes, 2, fit, selection, kept)

    if isinstance(case.recipe, TreeConfig):
        reference = counts.growing(case.recipe, inside, shape[0], 1 if classes == 2 else classes)
    else:
        reference = counts.training(case.recipe, shape, classes, inside)
    trials = [regression(how, kept=True) for how in tried_settings]  # frozen features are computed once for all
    return Work(reference, regression(settings), sum(trials) if trials else None)


# ------------------------------------------------------------------------------------------------- what a protocol flatters


PROTOCOLS = {"honest": (False, False), "thresholds": (False, True), "selection": (True, False), "both": (True, True)}


@dataclass(frozen=True, eq=False)
class Reported:
    """What a protocol reports, means over halvings, [T] each.

    Attributes:
        fpr, pinball: on the test half. fresh_fpr, fresh_pinball: on the fresh one. tpr: of the target's members.
        fpr_off, fresh_fpr_off: root mean square distances from the nominal rate.
    """

    fpr: np.ndarray
    pinball: np.ndarray
    fresh_fpr: np.ndarray
    fresh_pinball: np.ndarray
    tpr: np.ndarray
    fpr_off: np.ndarray
    fresh_fpr_off: np.ndarray


def flattery(case: Case, candidates: Sequence[tuple[str, Settings]], levels: Sequence[float],
             halvings: int = 20) -> dict[str, Reported]:
    """What it does to choose and to set thresholds on the very non-members that a rate is reported on; kept in the store.

    The judged non-members of a target are halved at random: one half is the test set of the released code, the other is
    fresh. The candidate with the least pinball loss is chosen on the selection split, or on the test half ("selection"); the
    threshold for a nominal 1 % comes from the calibration split, or from the test half ("thresholds"); or "both" do. All are
    means over halvings.

    Args:
        candidates: head and settings of each regression to choose from.

    Returns:
        for each of `PROTOCOLS`.
    """
    alpha, level = 1 - LEVELS[0], LEVELS[0]

    def compute() -> dict[str, np.ndarray]:
        wanted = [Regression(target, head, settings, tuple(levels))
                  for target in case.bank.attacked for head, settings in candidates]
        found, rng = regressions(case, wanted), np.random.default_rng([29, case.seed])
        rows = []
        for k, target in enumerate(case.bank.attacked):
            mine = slice(k * len(candidates), (k + 1) * len(candidates))
            rows.append(_protocols(case, target, list(zip(wanted[mine], found[mine], strict=True)), rng))
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _protocols(case, target, candidates, rng) -> dict[str, float]:
        (pool, public), inside = (scores[target] for scores in case.scores), case.bank.members[target]
        selection, calibration = case.splits["selection"], case.splits["calibration"]
        place = [position(one, said, "pool", pool) for one, said in candidates]
        out_of = [position(one, said, "public", public) for one, said in candidates]
        q = [thresholds(one, said, "pool", [level])[0] for one, said in candidates]
        on_selection = [metrics.pinball_loss(thresholds(one, said, "public", [level])[0, selection], public[selection], level)
                        for one, said in candidates]
        total: dict[tuple[str, str], list] = {}
        for _ in range(halvings):
            test, fresh = np.array_split(rng.permutation(np.flatnonzero(~inside)), 2)
            on_test, on_fresh = ([metrics.pinball_loss(one[rows], pool[rows], level) for one in q] for rows in (test, fresh))
            for name, (choose_there, set_there) in PROTOCOLS.items():
                best = int(np.nanargmin(on_test if choose_there else on_selection))
                score = place[best]
                bar = quantile.marginal(score[test] if set_there else out_of[best][calibration], [level])[0]
                for what, value in (("fpr", (score[test] >= bar).mean()), ("fresh_fpr", (score[fresh] >= bar).mean()),
                                    ("tpr", (score[inside] >= bar).mean()), ("pinball", on_test[best]),
                                    ("fresh_pinball", on_fresh[best])):
                    total.setdefault((name, what), []).append(value)
        off = {f"{name}.{what}_off": float(np.sqrt(np.mean((np.array(total[name, what]) - alpha) ** 2)))
               for name in PROTOCOLS for what in ("fpr", "fresh_fpr")}
        return {f"{name}.{what}": float(np.mean(values)) for (name, what), values in total.items()} | off

    calibration, strangers = len(case.splits["calibration"]), int((~case.bank.judged).sum(1).min())
    if min(calibration, strangers // 2) + 1 < 1 / alpha:
        raise MiaError(f"{case.name}: a nominal rate of 1 % needs 99 records for calibration and twice as many judged "
                       f"non-members; there are {calibration} and {strangers}.")
    spec = {**case.spec, "levels": list(levels), "halvings": halvings,
            "candidates": [[head, asdict(settings)] for head, settings in candidates]}
    arrays = store.study("quantile.flattery", spec, compute)
    return {name: Reported(*(arrays[f"{name}.{one.name}"] for one in fields(Reported))) for name in PROTOCOLS}


SPREADS = np.geomspace(0.05, 20.0, 53)  # that a reader may give easy and hard records, a twentieth of a power of ten apart
MEANS = ("one for all", "by the regression", "by references")  # of strangers, around which spreads lie


@dataclass(frozen=True, eq=False)
class Quarters:
    """Attacks by how hard a record is, four equal parts, the hardest first.

    Attributes:
        methods: the attacks; what follows shift is by their names, [T, 4] each.
        shift: mean score under references trained on a record less that under the others, [T, 4].
        pinball: at 1 % of the strangers of the part, with a method's own thresholds. above: how far these lie above the mean
            score of strangers. tpr, fpr: within the part, at the one threshold of the ranking that gives 1 % overall.
        spread_loss: mean pinball loss at 1 % of strangers of a part if thresholds lie ``Phi^-1(0.99)`` times a spread above
            the mean that one of `MEANS` gives, [3, 4, S] for `SPREADS`.
        ratio_tpr: mean TPR within the part at 1 % FPR overall, if records are ranked by their distance from that mean over a
            spread that is so many times as large on the harder half as on the easier, [3, 4, 2 S - 1], for ratios
            ``SPREADS / SPREADS[-1]`` and then ``SPREADS / SPREADS[0]``.
    """

    methods: tuple[Method, ...]
    shift: np.ndarray
    pinball: dict[str, np.ndarray]
    above: dict[str, np.ndarray]
    tpr: dict[str, np.ndarray]
    fpr: dict[str, np.ndarray]
    spread_loss: np.ndarray
    ratio_tpr: np.ndarray


def quarters(case: Case, settings: Settings, levels: Sequence[float]) -> Quarters:
    """Where pinball loss is saved, and where members are found: by how hard a record is; kept in the store.

    Of LiRA's references one half sorts the records, by their mean score under those that were not trained on them, which makes
    the parts. The other half is LiRA's in this comparison, and says what is typical. Its one spread is that of public records
    around their means, which all of these references left out: of a judged record as few as one did.

    Raises:
        MiaError: fewer than four references.
    """
    check_references(case.counts)
    level = LEVELS[0]

    def compute() -> dict[str, np.ndarray]:
        wanted = [Regression(target, "gauss_xy", settings, tuple(levels)) for target in case.bank.attacked]
        rows = [_quarters(case, one, said, level) for one, said in zip(wanted, regressions(case, wanted), strict=True)]
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    spec = {**case.spec, "settings": asdict(settings), "levels": list(levels)}
    arrays = store.study("quantile.quarters", spec, compute)
    methods = _of_quarters(len(_halves_of_references(case, 0)[1]))
    return Quarters(methods, arrays["shift"], *({one.name: arrays[f"{what}.{one.name}"] for one in methods}
                                                for what in OF_QUARTERS),
                    *(arrays[name].mean(0, dtype=np.float64) for name in ("spread_loss", "ratio_tpr")))


OF_QUARTERS = ("pinball", "above", "tpr", "fpr")


def _of_quarters(references: int) -> tuple[Method, ...]:
    own = [lira(references, offline=True, own=True)] if 4 <= references < OWN_VARIANCE_FROM else []
    return MARGINAL, HEADS["gauss_xy"], lira(references, offline=True), *own


def _halves_of_references(case: Case, target: int) -> tuple[np.ndarray, np.ndarray]:
    """LiRA's references against a target: those that sort the records, and the others."""
    rows = case.bank.pairs_after(target, case.counts[-1])
    return tuple(np.split(rows, [2 * (len(rows) // 4)]))


def _quarters(case: Case, one: Regression, said: dict[str, np.ndarray], level: float) -> dict[str, np.ndarray]:
    (pool, public), inside = (scores[one.target] for scores in case.scores), case.bank.members[one.target]
    sorting, rest = _halves_of_references(case, one.target)
    fixed = len(rest) < OWN_VARIANCE_FROM
    under, who = case.scores[0][rest], case.bank.members[rest]
    mean_out, mean_in = (np.average(under, 0, kind) for kind in (~who, who))
    hardness = np.average(case.scores[0][sorting], 0, ~case.bank.members[sorting])
    parts = np.array_split(np.argsort(hardness, kind="stable"), 4)
    constant = np.full(len(pool), np.quantile(public[case.splits["fit"]], level))
    methods = {"marginal": (pool, constant),
               "gauss_xy": (position(one, said, "pool", pool), thresholds(one, said, "pool", [level])[0])}
    for method in _of_quarters(len(rest))[2:]:
        shared = fixed and not method.own
        one_spread = np.sqrt(case.scores[1][rest].var(0, ddof=1).mean())
        own_mean, own = baselines.lira_threshold(under, who, [0.5, level], shared)
        # the order of `lira_offline`, by spreads above the mean: told by few models, many lie above the 38 that it tells apart
        methods[method.name] = ((pool - own_mean) / (own - own_mean),
                                mean_out + stats.norm.ppf(level) * one_spread if shared else own)
    out = {"shift": np.array([(mean_in - mean_out)[part].mean() for part in parts])}
    for name, (score, threshold) in methods.items():
        called = _called(score, inside, level)
        values = []
        for part in parts:
            strangers, members = part[~inside[part]], part[inside[part]]
            values.append([metrics.pinball_loss(threshold[strangers], pool[strangers], level),
                           (threshold - mean_out)[part].mean(), called[members].mean(), called[strangers].mean()])
        for what, column in zip(OF_QUARTERS, np.array(values).T, strict=True):
            out[f"{what}.{name}"] = column
    means = np.full(len(pool), public[case.splits["fit"]].mean()), said["pool"][0].astype(np.float64), mean_out
    return out | _any_spread(pool, inside, means, parts, level)


def _called(score: np.ndarray, inside: np.ndarray, level: float) -> np.ndarray:
    """Which records are called at the threshold of `metrics.conformal_tpr_at_fpr`: with the next stranger counted among those
    who pass they are at most `1 - level` of all."""
    strangers = np.append(np.inf, np.sort(score[~inside])[::-1])
    return score > strangers[int((1 - level) * len(strangers) + 1e-9)]


def _any_spread(score: np.ndarray, inside: np.ndarray, means: Sequence[np.ndarray], parts: Sequence[np.ndarray],
                level: float) -> dict[str, np.ndarray]:
    """`Quarters.spread_loss` and `Quarters.ratio_tpr` of one target."""
    hard = np.isin(np.arange(len(score)), np.concatenate(parts[:2]))
    ratios = np.r_[SPREADS / SPREADS[-1], SPREADS[1:] / SPREADS[0]]
    losses = [[[metrics.pinball_loss(mean[rows] + spread * stats.norm.ppf(level), score[rows], level) for spread in SPREADS]
               for rows in (part[~inside[part]] for part in parts)] for mean in means]
    found = []
    for mean in means:
        called = [_called((score - mean) / np.where(hard, ratio, 1.0), inside, level) for ratio in ratios]
        found.append([[one[part[inside[part]]].mean() for one in called] for part in parts])
    return {"spread_loss": np.array(losses, np.float32), "ratio_tpr": np.array(found, np.float32)}


VIEWED = ("none", "members", "all")  # whose scores are taken under augmentation


@dataclass(frozen=True, eq=False)
class Views:
    """Attacks on scores taken with and without augmentation.

    Attributes:
        members: bool [T, J]. ranks: ("marginal" or "gauss_xy", one of `VIEWED`) -> [T, J].
    """

    members: np.ndarray
    ranks: dict[tuple[str, str], np.ndarray]


def views(case: Case, settings: NetworkConfig, levels: Sequence[float]) -> Views:
    """Scores taken with and without augmentation, kept in the store: nobody's, the members' alone, as in the released code, or
    everybody's.
    """
    if len(case.seen) < 3:
        raise MiaError(f"{case.name} has no augmented views: views = {case.views!r}.")

    def compute() -> dict[str, np.ndarray]:
        wanted = [Regression(target, "gauss_xy", settings, tuple(levels)) for target in case.bank.attacked]
        out: dict[str, list] = {}
        for one, said, moved in zip(wanted, regressions(case, wanted), case.scores_of_views, strict=True):
            plain, inside = case.scores[0][one.target], case.bank.members[one.target]
            for method, (still, under) in {
                    "marginal": (plain, moved),
                    "gauss_xy": (position(one, said, "pool", plain), position(one, said, "views", moved))}.items():
                for who, score in zip(VIEWED, (still, np.where(inside, under, still), under), strict=True):
                    out.setdefault(f"{method}.{who}", []).append(packed_ranks(score))
        return {"members": case.bank.judged, **{name: np.stack(rows) for name, rows in out.items()}}

    arrays = store.study("quantile.views", {**case.spec, "settings": asdict(settings)}, compute)
    return Views(arrays["members"], {(method, who): arrays[f"{method}.{who}"] for method in ("marginal", "gauss_xy")
                                     for who in VIEWED})


@dataclass(frozen=True, eq=False)
class Growth:
    """What more public records give, by the names of methods, [S, T] each.

    Attributes:
        methods: the regressions, and the baseline, whose ranking needs no record. sizes: int [S].
        pinball: at 1 % on the calibration split. auc; tpr: at 1 % FPR, `metrics.conformal_tpr_at_fpr`.
    """

    methods: tuple[Method, ...]
    sizes: np.ndarray
    pinball: dict[str, np.ndarray]
    auc: dict[str, np.ndarray]
    tpr: dict[str, np.ndarray]


def growth(case: Case, settings: Settings, sizes: Sequence[int], levels: Sequence[float],
           heads: Sequence[str] = ("gauss_x", "gauss_xy")) -> Growth:
    """What more public records give a regression; kept in the store.

    Args:
        sizes: records to fit on, the first ones of the fit split; at least 20 each.
    """
    for size in sizes:
        check_range("sizes", size, 20, len(case.splits["fit"]))

    def compute() -> dict[str, np.ndarray]:
        calibration, level = case.splits["calibration"], LEVELS[0]
        wanted = [Regression(target, head, settings, tuple(levels), None if size == len(case.splits["fit"]) else size)
                  for head in heads for size in sizes for target in case.bank.attacked]
        values: dict[str, list] = {}

        def keep(method, score, q, public, inside):
            for name, value in (("pinball", metrics.pinball_loss(q, public[calibration], level)),
                                ("auc", metrics.auc(score, inside)),
                                ("tpr", metrics.conformal_tpr_at_fpr(score, inside, 1 - level))):
                values.setdefault(f"{name}.{method}", []).append(value)

        for one, said in zip(wanted, regressions(case, wanted), strict=True):
            (pool, public), inside = (scores[one.target] for scores in case.scores), case.bank.members[one.target]
            score = position(one, said, "pool", pool)
            q = thresholds(one, said, "public", [level])[0, calibration]
            keep(one.head, score, q, public, inside)
        for size in sizes:
            for target in case.bank.attacked:
                (pool, public), inside = (scores[target] for scores in case.scores), case.bank.members[target]
                q = np.full(len(calibration), np.quantile(public[case.splits["fit"][:size]], level))
                keep("marginal", pool, q, public, inside)
        return {"sizes": np.array(sizes), **{name: np.reshape(column, (len(sizes), len(case.bank.attacked)))
                                             for name, column in values.items()}}

    spec = {**case.spec, "settings": asdict(settings), "sizes": list(sizes), "heads": list(heads), "levels": list(levels)}
    arrays, methods = store.study("quantile.growth", spec, compute), in_order([MARGINAL, *(HEADS[head] for head in heads)])
    return Growth(tuple(methods), arrays["sizes"], *({one.name: arrays[f"{what}.{one.name}"] for one in methods}
                                                     for what in ("pinball", "auc", "tpr")))


@dataclass(frozen=True, eq=False)
class Transfer:
    """Pinball loss at 1 % on the calibration split with settings tuned elsewhere and on the task itself, [T] each."""

    borrowed: np.ndarray
    own: np.ndarray


def transfer(tuned: Case, other: Case, settings: Mapping[str, Settings], levels: Sequence[float]) -> Transfer:
    """Settings tuned on another task against those tuned on the task itself; kept in the store.

    Args:
        tuned: where "borrowed" settings come from. other: the task. settings: "borrowed" and "own".
    """
    def compute() -> dict[str, np.ndarray]:
        calibration, level, out = other.splits["calibration"], LEVELS[0], {}
        for name, one in settings.items():
            wanted = [Regression(target, "gauss_xy", one, tuple(levels)) for target in other.bank.attacked]
            out[name] = np.array([metrics.pinball_loss(thresholds(each, said, "public", [level])[0, calibration],
                                                       other.scores[1][each.target][calibration], level)
                                  for each, said in zip(wanted, regressions(other, wanted), strict=True)])
        return out

    spec = {"from": tuned.spec, **other.spec, "settings": {name: asdict(one) for name, one in settings.items()}}
    return Transfer(**store.study("quantile.transfer", spec, compute))
