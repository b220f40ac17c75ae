"""What every attack is judged on: targets, records, references and public records, the same for all.

A case is a bank of M models in complementary halves of a pool of N records, and Q public records that no model saw. T of the
models are attacked in turn, with up to R of the others as references. What an attack sees of a case goes through `Seen`, which
takes down what it asks for; its cost is what it asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

import numpy as np
import torch

from mia_lib import data, membership, signals, store
from mia_lib import models as architectures
from mia_lib.attacks.quantile.networks import NetworkConfig
from mia_lib.attacks.registry import COSTLY, LOG_ODDS
from mia_lib.data import Dataset
from mia_lib.data.sets import TITLES
from mia_lib.errors import MiaError, check_range
from mia_lib.signals import curvature
from mia_lib.training import Ensemble, TrainConfig, train
from mia_lib.training.recipe import augment, draw_views

PUBLIC = {"fit": 0.8, "selection": 0.2}  # shares of the public records that a regression learns from, and is stopped by
LINEAR = ("logistic_regression", "sigmoid_regression")
STEP = 1e-3  # of the curvature's finite differences, in units of the input


@dataclass(frozen=True)
class Limits:
    """How much of what is expensive an attack is given.

    Attributes:
        few: references of gradient norms and curvatures, which cost many times a loss; even.
        probes: of the curvature, four losses each.
        damping: of the Hessian, epsilon.
        parameters: of the largest network whose Hessian is computed.
        forget_epochs: of training a target further, to forget.
    """

    few: int = 8
    probes: int = 2
    damping: float = 0.2
    parameters: int = 3000
    forget_epochs: int = 2


@dataclass(frozen=True, eq=False)
class Case:
    """Targets of one recipe on one data set, and all that attacks on them have.

    Attributes:
        name: what tables call it.
        pool: N records, half of which trains each model. public: Q records that no model was trained on.
        models: M, in complementary pairs.
        bank: their membership, and the T targets.
        counts: numbers of references, even, ascending; the last is what attacks have unless said otherwise.
        limits: of what is expensive.
        regression: network of the quantile regressions.
        seed: of everything random.
    """

    name: str
    pool: Dataset
    public: Dataset
    models: Ensemble
    bank: membership.Bank
    counts: tuple[int, ...]
    limits: Limits
    regression: NetworkConfig
    seed: int = 0
    _known: dict = field(default_factory=dict, init=False, repr=False)
    _took: dict = field(default_factory=dict, init=False, repr=False)

    @property
    def members(self) -> np.ndarray:
        """bool [T, N]."""
        return self.bank.judged

    @property
    def splits(self) -> dict[str, np.ndarray]:
        """Rows of the public records by name."""
        cut = round(PUBLIC["fit"] * len(self.public))
        return {"fit": np.arange(cut), "selection": np.arange(cut, len(self.public))}

    @property
    def parameters(self) -> int:
        """P."""
        return architectures.parameter_count(self.models.untrained())

    @property
    def linear(self) -> bool:
        """Whether the loss has one minimum: no hidden layer."""
        return architectures.parse(self.models.config.architecture)[0] in LINEAR

    @property
    def spec(self) -> dict:
        """What determines the numbers of a case."""
        return {"models": self.models.key, "attacked": list(self.bank.attacked), "counts": list(self.counts),
                "public": self.public.fingerprint, "classes": len(self.pool.classes), "seed": self.seed,
                "limits": asdict(self.limits), "regression": asdict(self.regression)}

    @cached_property
    def mirrored(self) -> Dataset:
        """The pool of images, each as in a mirror."""
        if not self.pool.is_image:
            raise MiaError(f"{self.name} holds tables, which have no mirror image.")
        x = torch.from_numpy(np.array(self.pool.x)).permute(0, 3, 1, 2).float()
        views = draw_views("flip", len(x))
        views[:, 0] = 1
        x = augment(x, "flip", views).to(torch.uint8).permute(0, 2, 3, 1)
        return replace(self.pool, name=f"{self.pool.name} mirrored", x=np.ascontiguousarray(x.numpy()))

    def seconds(self, model: int) -> float:
        """What training a model of the bank took, as the clock had it."""
        if model not in self._took:
            self._took[model] = took(self.models, model)
        return self._took[model]

    def __definitions__(self) -> tuple:
        """What of a case bears on what is computed from it: not what was computed already."""
        return self.models, self.regression, self.limits

    def values(self, name: str, rows: Sequence[int], where: str = "pool") -> np.ndarray:
        """A signal under some of the models; computed for all that an attack may ask, which keeps all cores busy.

        Args:
            name: of `SIGNALS`. rows: numbers of the models. where: "pool", "public" or "mirrored".

        Returns:
            [len(rows), N], or Q in place of N; [., ., K] of probabilities.
        """
        rows = [int(row) for row in rows]
        if any((name, where, row) not in self._known for row in rows):
            most = self.limits.few if name in COSTLY else self.counts[-1]
            asked = {m for target in self.bank.attacked for m in (target, *self.bank.pairs_after(target, most))}
            missing = sorted(int(m) for m in asked | set(rows) if (name, where, int(m)) not in self._known)
            found = SIGNALS[name](self, self.models.part(missing), getattr(self, where))
            self._known.update({(name, where, row): value for row, value in zip(missing, found, strict=True)})
        return np.stack([self._known[name, where, row] for row in rows])


def _curvature(case: Case, models: Ensemble, records: Dataset) -> np.ndarray:
    return curvature.of(models, records, "released_code", case.limits.probes, STEP, case.seed, warn=False)


SIGNALS: dict[str, Callable[[Case, Ensemble, Dataset], np.ndarray]] = {
    "loss": lambda case, models, records: signals.loss(models, records).astype(np.float64),
    LOG_ODDS: lambda case, models, records: signals.logit_scaled_confidence(models, records).astype(np.float64),
    "hinge": lambda case, models, records: signals.hinge(models, records).astype(np.float64),
    "least_loss": lambda case, models, records: signals.least_loss(models, records).astype(np.float64),
    "correctness": lambda case, models, records: signals.correctness(models, records),
    "probabilities": lambda case, models, records: signals.probabilities(models, records),
    "gradient_norm": lambda case, models, records: signals.gradient_norm(models, records).astype(np.float64),
    "curvature": _curvature,
}


def took(models: Ensemble, index: int) -> float:
    """Seconds that training one of the models took, as the clock had it."""
    models.part([index]).fit()
    return float(store.look_up(models.spec(index)).manifest["seconds"])


@dataclass(frozen=True)
class Made:
    """Something that an attack computes once against a target, besides references.

    Attributes:
        operations: see `papers.costs`. seconds: as the clock had it. models: how many that trains, 0 or 1.
        held: bytes of it.
    """

    operations: float
    seconds: float
    models: int = 1
    held: int = 0


@dataclass
class Asked:
    """What an attack asked for, against one target.

    Attributes:
        signals: (whose, signal, where): whose is "target" or "references". public: records outside the pool that it asked the
            target about.
        references: numbers of the models that it asked.
        made: what else it made, by name.
    """

    signals: set[tuple[str, str, str]] = field(default_factory=set)
    public: int = 0
    references: set[int] = field(default_factory=set)
    made: dict[str, Made] = field(default_factory=dict)


class Seen:
    """What an attacker sees of one target, as `registry.TargetSignals` says. It does not have the target's membership; only
    `audit` gives that.

    Args:
        references: how many models serve as such; the most by default. apart: targets that do not, nor their complements.
    """

    def __init__(self, case: Case, target: int, references: int | None = None, apart: Sequence[int] = ()):
        self.case, self.target, self.asked, self.apart = case, int(target), Asked(), tuple(apart)
        self.count = case.counts[-1] if references is None else references

    @property
    def labels(self) -> np.ndarray:
        """int [N]."""
        return self.case.pool.y

    def own(self, name: str, where: str = "pool") -> np.ndarray:
        """A signal of the target, [N]."""
        self.asked.signals.add(("target", name, where))
        return self.case.values(name, [self.target], where)[0]

    def public(self, name: str, most: int | None = None) -> np.ndarray:
        """A signal of the target for public records, the first `most` of them or all, [Q]."""
        value = self.case.values(name, [self.target], "public")[0][:most]
        self.asked.public = max(self.asked.public, len(value))
        return value

    def references(self, name: str, where: str = "pool", most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """A signal of the references [R, N], and which records each was trained on, bool [R, N].

        Args:
            most: references at most; `Limits.few` of signals that are `registry.COSTLY`.
        """
        most = self.case.limits.few if name in COSTLY else most
        count = self.count if most is None else min(self.count, most)
        rows = self.case.bank.pairs_after(self.target, len(self.case.bank.members) - 2)
        rows = rows[~np.isin(rows // 2, np.array(self.apart, int) // 2)][:count]
        self.asked.signals.add(("references", name, where))
        self.asked.references |= set(map(int, rows))
        return self.case.values(name, rows, where), self.case.bank.members[rows]

    def public_references(self, name: str, most: int | None = None) -> np.ndarray:
        """A signal of the references for the same public records, [R, Q]."""
        return self.references(name, "public")[0][:, :most]

    def has_parameters(self) -> None:
        """Take down that the target's parameters were used, which takes no query."""
        self.asked.signals.add(("target", "parameters", ""))

    def audit(self) -> tuple[np.ndarray, Dataset]:
        """What an auditor is given who knows every other record: the training set bool [N], and the records."""
        return self.case.bank.members[self.target], self.case.pool

    def makes(self, name: str, operations: float, seconds: float, models: int = 1, held: int = 0) -> None:
        """Take down what an attack trains or computes once, besides references; see `Made`."""
        self.asked.made[name] = Made(operations, seconds, models, held)


def check(pool: int, public: int, models: int, targets: int, counts: Sequence[int], limits: Limits) -> None:
    """Refuse numbers that make no case.

    Raises:
        MiaError: naming them.
    """
    check_range("pool", pool, 40)
    check_range("public", public, 60)
    check_range("targets", targets, 2, models)
    membership.check_counts(counts, models, 4, ", and a spread wants two of each kind")
    if limits.few % 2 or not 4 <= limits.few:
        raise MiaError(f"few = {limits.few}: an even number of references is needed, at least 4.")


def case(dataset: str, config: TrainConfig, pool: int, public: int, models: int, targets: int, counts: Sequence[int],
         limits: Limits, regression: NetworkConfig, seed: int = 0) -> Case:
    """A case on a data set.

    The records are dealt as in the chapter on quantile regression, so that both share the models of one recipe.

    Args:
        dataset: by name. config: of targets and references. pool: N. public: Q, 0 for all that the pool leaves.
        models: M. targets: T, the first ones. counts: of references. limits, regression: see `Case`.
        seed: of pool, halves and models.

    Raises:
        MiaError: too few records, models or references.
    """
    found = data.load(dataset)
    public = public or len(found) - pool
    check(pool, public, models, targets, counts, limits)
    if pool + public > len(found):
        raise MiaError(f"pool = {pool} and public = {public}: {found.name} has {len(found)} records, which must hold both.")
    order = np.random.default_rng([23, seed]).permutation(len(found))
    inside, outside = found.take(order[:pool]), found.take(order[pool:pool + public])
    bank = membership.Bank(membership.balanced_halves(pool, models, seed), tuple(range(targets)))
    config = replace(config, seed=seed)
    title = TITLES.get(dataset, dataset)
    trained = train(inside, bank.members, config, label=f"{config.architecture} on {title}")
    return Case(f"{title}, {_kind(config.architecture)}", inside, outside, trained, bank, tuple(counts), limits, regression,
                seed)


def _kind(architecture: str) -> str:
    """What tables call a network."""
    name, widths = architectures.parse(architecture)
    if name in LINEAR:
        return "linear"
    if name == "mlp":
        return "MLP " + "-".join(map(str, widths))
    return "CNN" if name.endswith("_cnn") else name


def left(dataset: str, pool: int, wanted: int) -> int:
    """Public records where a pool takes so many: those wanted, or what it leaves."""
    return min(wanted, len(data.load(dataset)) - pool)


def named(cases: Sequence[Case]) -> dict[str, Case]:
    """Cases by their names.

    Raises:
        MiaError: two cases with one name.
    """
    found = {one.name: one for one in cases}
    if len(found) < len(cases):
        raise MiaError(f"the cases are called {', '.join(one.name for one in cases)}: each must differ from all others in "
                       "data set or architecture.")
    return found
