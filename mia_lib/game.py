"""The membership game on a bank: an attacker has a target's answers, and other models of the bank as references.

Models of a bank come in complementary pairs. One model of a pair is attacked, and no reference is the target or its partner:
were the partner kept, a member would have one reference fewer that was trained on it than a non-member has, and that count
would give membership away.

>>> from mia_lib import published
>>> game = Game.of(published.load("bank/fashion-mlp", models=8), targets=2, references=6)
>>> game.scores(["MALT", "LiRA"])["LiRA"].shape
(2, 2000)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from mia_lib import metrics
from mia_lib.attacks import registry
from mia_lib.attacks.registry import LOG_ODDS
from mia_lib.checks import check_mask, check_numbers, check_order, check_rows
from mia_lib.errors import MiaError, brief, check_choice, check_once, check_type, check_whole
from mia_lib.metrics.ranking import CORES, check_metrics, look_up_metric

if TYPE_CHECKING:
    import pandas as pd

ORDERS = ("next", "first")
FEWEST = 32  # records from which on it is no chance that one model was trained on all that another was not


@dataclass(frozen=True, eq=False)
class Game:
    """Targets of a bank, and the references that each is attacked with.

    Attributes:
        members: bool [M, N], the judged records that each model was trained on; rows 0 and 1, 2 and 3, ... are pairs.
        values: signal -> [M, N, ...], named as in `registry.SIGNALS`. Of a costly signal only the first models may be there.
        public_values: signal -> [M, Q] of records that no model was trained on.
        targets: numbers of the models that are attacked.
        references: R, how many models each is attacked with.
        order: "next", the pairs after the target's, so that targets differ in them; or "first", those of the lowest numbers.

    Raises:
        MiaError: an odd number of models; a target that is not there; more references than models of other pairs; pairs
            that do not stand together.
    """

    members: np.ndarray
    values: Mapping[str, np.ndarray]
    public_values: Mapping[str, np.ndarray]
    targets: Sequence[int]
    references: int
    order: str = "next"

    def __post_init__(self):
        members = check_mask("members", self.members)
        if members.ndim != 2:
            raise MiaError(f"members has shape {members.shape}: [M, N] is needed, a row a model.")
        for m, other in _complements(members):
            if other != m ^ 1:
                raise MiaError(
                    f"members: model {other} was trained on all that model {m} was not, and would tell as one of its "
                    "references whom that knows. Pairs stand together, rows 0 and 1, 2 and 3, ..., of members and "
                    "values alike, as membership.balanced_halves has them."
                )
        for argument in ("values", "public_values"):
            signals = check_type(
                argument, getattr(self, argument), Mapping, "Give arrays by the names of signals."
            )
            check_order(
                -1, **({"members": self.members} if argument == "values" else {}), **signals
            )
            checked = {
                name: check_numbers(f"{argument}[{name!r}]", array)
                for name, array in signals.items()
            }
            for name, array in checked.items():
                if (
                    array.ndim < 2
                    or len(array) > len(members)
                    or argument == "values"
                    and array.shape[1] != members.shape[1]
                ):
                    raise MiaError(
                        f"{argument}[{name!r}] has shape {array.shape}, and members {members.shape}: a row a model "
                        "and a column a record are needed."
                    )
            object.__setattr__(self, argument, checked)
        object.__setattr__(self, "members", members)
        targets = check_numbers("targets", self.targets)
        if targets.ndim != 1:
            raise MiaError(
                f"targets = {brief(self.targets)}: a list of numbers of models is needed."
            )
        object.__setattr__(
            self, "targets", [check_whole("targets", target, 0) for target in targets]
        )
        check_once("targets", self.targets)
        models = len(members)
        check_choice("order", self.order, ORDERS)
        check_whole("references", self.references, 0)
        if models % 2 or models < 4:
            raise MiaError(
                f"models = {models}: a bank of complementary pairs needs an even number, at least 4."
            )
        if (
            not len(self.targets)
            or max(self.targets) >= self.complete
            or self.references > models - 2
        ):
            raise MiaError(
                f"targets = {len(self.targets)}, references = {self.references}: of {self.complete} models "
                f"{self.complete // 2} can be attacked, one of each complementary pair, with {models - 2} others "
                "as references."
            )

    @classmethod
    def of(
        cls,
        bank,
        targets: int,
        references: int,
        records: int | None = None,
        public: int | None = registry.POPULATION,
        order: str = "next",
    ) -> Game:
        """The game on a published bank: the first model of each of the first pairs is a target.

        Args:
            bank: of `published.load`, with arrays `margin` (log odds) and `members`. targets: T. references: R for each.
            records: N of the records that models were trained on, the first ones; all when None.
            public: Q of the others, at most; all when None. order: see `Game`.
        """
        if isinstance(bank, str):
            raise MiaError(f"bank = {bank!r} is a name: give the bank, published.load({bank!r}).")
        targets = range(0, 2 * check_whole("targets", targets, 1), 2)
        for argument, count in (("records", records), ("public", public)):
            if count is not None:
                check_whole(argument, count, 1)
        return cls.on(
            bank, bank.trained[:records], bank.untrained[:public], targets, references, order
        )

    @classmethod
    def on(
        cls,
        bank,
        records: np.ndarray,
        public: np.ndarray,
        targets: Sequence[int],
        references: int,
        order: str = "next",
    ) -> Game:
        """The game on a published bank, with the numbers of the judged records [N], of the public
        ones [Q] and of the targets [T]; other arguments as for `of`."""
        records, public = (
            check_rows(argument, rows, bank.margin.shape[1])
            for argument, rows in (("records", records), ("public", public))
        )
        log_odds, public_log_odds = (
            bank.margin[:, rows].astype(np.float64) for rows in (records, public)
        )
        return cls(
            bank.members[:, records],
            {LOG_ODDS: log_odds, "loss": np.logaddexp(0, -log_odds)},
            {LOG_ODDS: public_log_odds, "loss": np.logaddexp(0, -public_log_odds)},
            targets,
            references,
            order,
        )

    @property
    def complete(self) -> int:
        """Number of models that have all signals, the first ones; only these are attacked."""
        return min([len(self.members), *map(len, self.values.values())])

    @property
    def target_members(self) -> np.ndarray:
        """Membership of the judged records in each target's training set, bool [T, N]."""
        return self.members[list(self.targets)]

    def references_of(self, target: int, count: int | None = None) -> np.ndarray:
        """Numbers of `count` references against a target, int [count]; `references` of them when
        None.

        Models of a pair stand together; the last of an odd count lacks its partner. Pairs that have
        all signals come first.
        """
        count = (
            self.references
            if count is None
            else check_whole("count", count, 0, len(self.members) - 2)
        )
        check_whole("target", target, 0, len(self.members) - 1)
        pairs, own = np.arange(len(self.members) // 2), target // 2
        if self.order == "next":
            near, far = np.split(pairs, [self.complete // 2])
            pairs = np.concatenate([np.roll(near, -own), np.roll(far, -own)])
        pairs = pairs[pairs != own]
        return np.stack([2 * pairs, 2 * pairs + 1], 1).ravel()[:count]

    def view(self, target: int, count: int | None = None) -> View:
        """The `View` of an attacker who attacks the model `target` with `count` references."""
        return View(self, target, self.references_of(target, count))

    def __iter__(self) -> Iterator[View]:
        """The view of each target."""
        return map(self.view, self.targets)

    def scores(
        self, attacks: Sequence[str] | Mapping[str, str | Callable[[View], np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Scores [T, N] of each attack, higher for members.

        Args:
            attacks: names of `registry.ATTACKS`; or a name of one's own -> such a name, or a function that gives scores [N]
                from a `View`.
        """
        if isinstance(attacks, str) or not np.iterable(attacks) or not len(attacks):
            raise MiaError(
                f"attacks = {brief(attacks)}: names in a list are needed, such as ['MALT', 'LiRA'], or {{name: attack}}, of "
                "at least one attack."
            )
        named = attacks if isinstance(attacks, Mapping) else {name: name for name in attacks}
        return {name: self._score(name, attack) for name, attack in named.items()}

    def _score(self, name: str, attack: str | Callable[[View], np.ndarray]) -> np.ndarray:
        """Scores [T, N] of one attack, which has a name of its own."""
        _check_kinds([attack])
        scores, records = [registry.score(attack, view) for view in self], self.members.shape[1]
        for score in scores:
            if np.shape(score) != (records,):
                raise MiaError(
                    f"attack {name!r} gives scores of shape {np.shape(score)}: one number for each of {records} records is "
                    f"needed, [{records}]."
                )
        return np.stack(scores)

    def frame(
        self,
        attacks: Sequence[str] | Mapping[str, str | Callable[[View], np.ndarray]],
        names: Sequence[str],
        draws: int = 100,
        **columns,
    ) -> pd.DataFrame:
        """Metrics of attacks on the targets as a tidy frame, see `metrics.by_target`.

        Args:
            attacks: as for `scores`. names: of metrics. draws: of the resamples of records. columns: further ones.
        """
        _check_kinds(metrics=names)
        check_metrics(names)
        return metrics.by_target(
            self.scores(attacks), self.target_members, names, draws=draws, **columns
        )

    def compare(
        self,
        attack: str | Callable[[View], np.ndarray],
        other: str | Callable[[View], np.ndarray],
        metric: str = "auc",
        level: float = 0.95,
        draws: int = 100,
    ) -> metrics.Interval:
        """By how much an attack is ahead of another on the same targets and records, with its interval, see `metrics.compare`.

        Args:
            attack, other: names of `registry.ATTACKS`, or functions that give scores [N] from a `View`.
            metric: such as "auc" or "tpr_at_fpr=0.01". level: of the interval. draws: of the resamples of records, as many as
                in `frame`; where there is one target, its interval is made of them alone, and 1,000 are better.
        """
        _check_kinds([attack, other], [metric])
        look_up_metric(metric)
        scores = self.scores({"attack": attack, "other": other})
        return metrics.compare(
            metric, scores["attack"], scores["other"], self.target_members, level=level, draws=draws
        )


def _check_kinds(attacks: Iterable = (), metrics: Iterable = ()) -> None:
    """Refuse a metric in the place of an attack, and an attack in that of a metric."""
    order = "Attacks come first, then the metric, as in game.compare('LiRA', 'MALT', 'auc')."
    for attack in attacks:
        if isinstance(attack, str) and attack.partition("=")[0] in CORES:
            raise MiaError(f"attack = {attack!r} is a metric. {order}")
    for metric in metrics:
        if isinstance(metric, str) and metric in registry.ATTACKS:
            raise MiaError(f"metric = {metric!r} is an attack. {order}")


@dataclass(frozen=True, eq=False)
class View:
    """One target as an attacker sees it, a `registry.TargetSignals`: it does not tell whom the
    target was trained on.

    Attributes:
        game: with the answers of all models. target: its number. models: numbers of the references, [R].
        records: numbers or mask of the game's records that are judged; all when None.
        replaced: signal -> the game's signal that stands in its place, such as the mean log odds
            of many queries; other signals are then not there.
    """

    game: Game
    target: int
    models: np.ndarray
    records: np.ndarray | None = None
    replaced: Mapping[str, str] | None = None

    @property
    def _rows(self) -> np.ndarray | slice:
        return slice(None) if self.records is None else self.records

    @property
    def labels(self) -> np.ndarray:
        """Raises `MiaError`: a bank keeps no labels."""
        raise MiaError("an attack that reads labels cannot be run on a bank, which keeps none.")

    @property
    def reference_members(self) -> np.ndarray:
        """Membership of the judged records in each reference's training set, bool [R, N]."""
        return self.game.members[self.models][:, self._rows]

    @cached_property
    def _read(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Signals of the references that were asked for, which many attacks and constants read."""
        return {}

    @property
    def _values(self) -> Mapping[str, np.ndarray]:
        values = self.game.values
        if self.replaced is None:
            return values
        return {signal: values[name] for signal, name in self.replaced.items()}

    def own(self, signal: str) -> np.ndarray:
        """Signal of the target for each judged record, [N]; a signal that is not there raises
        `MiaError`."""
        return registry.read_signal("game.values", self._values, signal, self.target)[self._rows]

    def references(self, signal: str) -> tuple[np.ndarray, np.ndarray]:
        """Signal of all references for each judged record, [R, N], and their `reference_members`,
        bool [R, N]."""
        if signal not in self._read:
            values = registry.read_signal("game.values", self._values, signal, self.models)
            self._read[signal] = values[:, self._rows], self.reference_members
        values, members = self._read[signal]
        return values.copy(), members.copy()  # which an attack may write into

    def public(self, signal: str, most: int | None = None) -> np.ndarray:
        """Signal of the target for the first `most` public records, or all when None, [Q]."""
        return registry.read_signal(
            "game.public_values", self.game.public_values, signal, self.target
        )[:most]

    def public_references(self, signal: str, most: int | None = None) -> np.ndarray:
        """Signal of all references for the same public records, [R, Q]."""
        return registry.read_signal(
            "game.public_values", self.game.public_values, signal, self.models
        )[:, :most]

    def on(self, records: np.ndarray) -> View:
        """The view with these of the game's records as those that are judged: their numbers, each
        once, or a mask of True and False; zeros and ones are numbers."""
        records = check_rows("records", records, self.game.members.shape[1])
        return replace(self, records=records)

    def rehearsals(self, count: int) -> list[tuple[View, np.ndarray]]:
        """Views in which models of the attacker's own are the target, and the membership of the
        judged records in each, bool [N].

        The attacker trained the references, so it knows who is in them. At most
        `count` references, one of each pair, are attacked with the others except their partner.
        """
        check_whole("count", count, 1)
        own = [model for model in self.models if model % 2 == 0][:count]
        return [
            (
                replace(self, target=model, models=self.models[self.models // 2 != model // 2]),
                self.game.members[model, self._rows],
            )
            for model in own
        ]

    def trials(
        self, attack: str, rehearsals: int = 1, step: int = 5, **options
    ) -> list[tuple[dict[str, float], list[tuple[np.ndarray, np.ndarray]]]]:
        """An attack with each choice of its constants, tried on the attacker's own models.

        Args:
            attack: of the registry, whose `constants` say which and from which values. rehearsals: models that are attacked.
            step: one record in so many is judged. options: others of the attack.

        Returns:
            option -> value, and scores and membership of the judged records in each rehearsal; [] if there are too few
            references to attack one of them, so that the registry's values hold.
        """
        known = registry.ATTACKS[check_choice("attack", attack, registry.ATTACKS)]
        check_whole("rehearsals", rehearsals, 1)
        check_whole("step", step, 1)
        if len(self.models) < 4:
            return []
        rows = np.arange(self.game.members.shape[1])[self._rows][::step]
        own = self.on(rows).rehearsals(rehearsals)
        grid = [
            dict(zip(known.constants, values, strict=True))
            for values in product(*known.constants.values())
        ]
        return [
            (chosen, [(known.score(view, **options, **chosen), members) for view, members in own])
            for chosen in grid
        ]

    def rehearse(
        self,
        attack: str,
        rehearsals: int = 1,
        step: int = 5,
        metric: Callable[[np.ndarray, np.ndarray], float] = metrics.auc,
        **options,
    ) -> dict[str, float]:
        """The constants of an attack that are best against the attacker's own models by a metric, the higher the better; {}
        where there are no `trials`, whose arguments these are."""
        return best_trial(self.trials(attack, rehearsals, step, **options), metric)


def best_trial(
    trials: Sequence[tuple[dict[str, float], list[tuple[np.ndarray, np.ndarray]]]],
    metric: Callable[[np.ndarray, np.ndarray], float] = metrics.auc,
) -> dict[str, float]:
    """The constants with the highest metric over the rehearsals of `View.trials`; {} of none. A
    metric that is not a number for some of them is refused, for nothing is above it."""
    if not trials:
        return {}
    totals = [sum(metric(*played) for played in of_choice) for _, of_choice in trials]
    if np.isnan(totals).any():
        raise MiaError(
            f"metric is not a number with {trials[int(np.argmax(np.isnan(totals)))][0]}, so nothing says what is best: "
            "give one that is defined for all scores, as metrics.auc is."
        )
    return trials[int(np.argmax(totals))][0]


def _complements(members: np.ndarray) -> Iterator[tuple[int, int]]:
    """Pairs of models, by their masks [M, N], of which one was trained on all that the other was not, of the records that
    some model was trained on."""
    trained = members[:, members.any(0)]
    rows = {row.tobytes(): m for m, row in enumerate(trained)}
    for m, row in enumerate(trained if trained.shape[1] >= FEWEST else ()):
        if (other := rows.get((~row).tobytes())) is not None:
            yield m, other
