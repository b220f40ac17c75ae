"""A claim in every setting: a bank, so many references, a rate, constants as released or as learned.

The rule of a claim that names columns as its `settings` is evaluated in each combination of their values, with intervals that
all hold together (Bonferroni), so that many settings turn no claim by chance. `verdict_of` says what follows, `deciding` which
column the answer hangs on, and `specification` draws every setting of some claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import fill
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mia_lib import drawing, metrics
from mia_lib.attacks import registry
from mia_lib.game import Game, View, best_trial
from mia_lib.metrics import Interval, by_target
from mia_lib.published import Bank

STANDS, TURNED, ALIKE, OPEN = "stands", "turned", "no difference", "open"
REHEARSALS = 2  # of the attacker's own models, on which constants and thresholds are found
STEP = 5  # one record in so many is looked at where constants are chosen
JUDGED = 10_000  # records of a bank, at most, where it is one of many settings
LEVEL = 0.95  # at which the intervals of all settings hold together


class Setting(NamedTuple):
    """A claim's number in one setting.

    Attributes:
        values: column -> its value. number: of the rule, with its interval. own: whether it is the paper's own regime.
        mark: `STANDS`, `TURNED`, `ALIKE` (the whole interval within the claim's margin of zero) or `OPEN`.
    """

    values: Mapping[str, str]
    number: Interval
    own: bool
    mark: str

    @property
    def name(self) -> str:
        """The setting in words: "bank cifar10, references 30"."""
        return ", ".join(f"{column} {value}" for column, value in self.values.items())


def setting(values: Mapping[str, str], number: Interval, own: bool, same: float = 0.0) -> Setting:
    """A setting with its mark, by the margin `same` of no difference."""
    if not number.degenerate and max(-number.low, number.high) < same:
        return Setting(values, number, own, ALIKE)
    return Setting(values, number, own, {1: STANDS, 0: OPEN, -1: TURNED}[number.sign])


def verdict_of(settings: Sequence[Setting]) -> str:
    """What follows from all settings.

    - depends: some stand and some are turned, and those of the paper's own regime do not all say the latter;
    - contradicted: what is decided in the paper's own regime is turned, or everywhere;
    - reproduced: it stands in the paper's own regime, or somewhere if there is no such setting, and is turned nowhere;
    - no difference: in every setting; inconclusive: anything else.
    """
    own = {one.mark for one in settings if one.own}
    marks = {one.mark for one in settings}
    if TURNED in own and STANDS not in own or TURNED in marks and STANDS not in marks:
        return "contradicted"
    if {STANDS, TURNED} <= marks:
        return "depends"
    if STANDS in (own or marks):
        return "reproduced"
    return "no difference" if marks == {ALIKE} else "inconclusive"


def deciding(settings: Sequence[Setting]) -> str:
    """The column on which the answer hangs, in words: "references: it stands with 30 and is turned with 6"; "" where no column
    alone tells the settings apart in which it stands from those in which it is turned."""
    marked = {
        mark: [one.values for one in settings if one.mark == mark] for mark in (STANDS, TURNED)
    }
    for column in settings[0].values if all(marked.values()) else ():
        stands, turned = (dict.fromkeys(one[column] for one in marked[mark]) for mark in marked)
        if not stands.keys() & turned.keys():
            return (
                f"{column}: it stands with {_listed(stands)}, and is turned with {_listed(turned)}"
            )
    return ""


def _listed(values: Iterable[str]) -> str:
    *others, last = values
    return f"{', '.join(others)} and {last}" if others else last


def count(settings: Sequence[Setting]) -> str:
    """In how many settings a claim stands, in words."""
    marks = [one.mark for one in settings]
    turned = f", turned in {marks.count(TURNED)}" if TURNED in marks else ""
    return f"stands in {marks.count(STANDS)} of {len(marks)} settings{turned}"


# ------------------------------------------------------------------------------------------------------- attacks in settings


class Attack(NamedTuple):
    """An attack as it is played in settings: of the registry, with these options, and its free constants as the registry has
    them or, with `learned`, chosen by attacking the attacker's own models."""

    name: str
    learned: bool = False
    options: Mapping = {}


def attack(
    bank: Bank,
    targets: int,
    references: int,
    attacks: Mapping[str, Attack],
    names: Sequence[str],
    columns: Mapping,
    draws: int = 20,
    records: int | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Metrics of attacks on a bank, each constant learned for the metric that is judged.

    Args:
        bank, targets, references: of the game, see `Game.of`. attacks: name -> how it is played.
        names: of metrics; "accuracy" is that of calls whose threshold comes from the attacker's own models.
        columns: further ones, with the same value in all rows. draws: of the resamples of records.
        records: judged, the first so many that models were trained on; all when None.

    Returns:
        the tidy frame of `metrics.by_target`, without attacks whose constants too few references teach; and a row for each
        target and constant that was chosen: attack, metric, constant, value.
    """
    game = Game.of(bank, targets, references, records)
    played: dict[tuple[str, str], list[np.ndarray]] = {}
    chosen = []
    for view in game:
        for name, how in attacks.items():
            known: dict[tuple, np.ndarray] = {}
            trials = view.trials(how.name, REHEARSALS, STEP, **how.options) if how.learned else []
            for metric in names if trials or not how.learned else ():
                constants = best_trial(trials, _judged(metric))
                chosen += [(name, metric, *one) for one in constants.items()]
                options, key = {**how.options, **constants}, tuple(constants.values())
                if key not in known:
                    known[key] = registry.score(how.name, view, **options)
                scores = known[key]
                if metric == "accuracy":
                    scores = (scores >= threshold(how.name, view, **options)).astype(float)
                played.setdefault((name, metric), []).append(scores)
    # metrics of the same scores come from the same resamples
    of_scores: dict[tuple, tuple[np.ndarray, list[str]]] = {}
    for (name, metric), each in played.items():
        of_scores.setdefault((name, *map(id, each)), (np.stack(each), []))[1].append(metric)
    frames = []
    for (name, *_), (scores, of_name) in of_scores.items():
        frame = by_target(
            {name: scores},
            game.target_members,
            ["auc" if metric == "accuracy" else metric for metric in of_name],
            draws=draws,
            **columns,
        )
        frames.append(frame.assign(metric=of_name))
    table = pd.DataFrame(chosen, columns=["attack", "metric", "constant", "value"]).assign(
        **columns
    )
    return pd.concat(frames, ignore_index=True), table


def attack_banks(
    banks: Mapping[str, Bank],
    references: Sequence[int],
    targets: int,
    attacks: Mapping[str, Attack],
    names: Sequence[str],
    own: tuple[str, int] | None = None,
    draws: int = 20,
    records: int | None = JUDGED,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Study "settings": `attack` on each bank with each number of references that it has.

    Args:
        banks: name -> bank. references: of each target. targets: of each bank, as far as it has pairs.
        attacks, names, draws, records: as for `attack`. own: the name and the references of the paper's own regime.

    Returns:
        the tidy frame and the chosen constants of `attack`, with columns data, references and own.
    """
    played = [
        attack(
            bank,
            min(targets, len(bank) // 2),
            count,
            attacks,
            names,
            {"study": "settings", "data": name, "references": count, "own": (name, count) == own},
            draws,
            records,
        )
        for name, bank in banks.items()
        for count in references
        if count <= len(bank) - 2
    ]
    return tuple(pd.concat(frames, ignore_index=True) for frames in zip(*played, strict=True))


def _judged(metric: str) -> Callable[[np.ndarray, np.ndarray], float]:
    """The function by which constants are chosen for a metric."""
    rate = metric.partition("tpr_at_fpr=")[2]
    return (
        (lambda scores, members: metrics.tpr_at_fpr(scores, members, float(rate)))
        if rate
        else metrics.auc
    )


def threshold(attack: str | Callable, view: View, **options) -> float:
    """The threshold of an attack, as of `registry.score`, that is best against the attacker's own models."""
    own = [
        (registry.score(attack, rehearsal, **options), members)
        for rehearsal, members in view.rehearsals(REHEARSALS)
    ]
    return metrics.best_threshold(*map(np.concatenate, zip(*own, strict=True)))


# ------------------------------------------------------------------------------------------------------------------- a figure


MARKS = {
    STANDS: {"color": drawing.BLUE, "marker": "o"},
    TURNED: {"color": drawing.RED, "marker": "X"},
    ALIKE: {"color": drawing.FAINT, "marker": "s"},
    OPEN: {"color": drawing.FAINT, "marker": "D"},
}


def specification(
    settings: Mapping[str, Sequence[Setting]],
    printed: Mapping[str, float],
) -> Figure:
    """The number of each claim in all of its settings, in percentage points, from the highest to the lowest, a panel a claim;
    a setting is named by the values in which settings differ, and the paper's own regime is marked.

    Args:
        settings: title -> the settings of a claim. printed: title -> what the paper has in its own regime, a fraction.
    """
    rows = max(map(len, settings.values()))
    lines = math.ceil(len(settings) / 2)
    figure, axes = drawing.panels(
        list(settings),
        0.9 + 0.28 * rows * lines,
        rows=lines,
        width=7.0,
    )
    for axis, (claim, of_claim) in zip(axes, settings.items(), strict=False):
        title = fill(axis.get_title(), 44)
        axis.set_title(title, loc="right", fontsize=9.5)  # over the names of settings
        axis.set_title("")
        ordered = sorted(of_claim, key=lambda one: one.number.value)
        for place, one in enumerate(ordered):
            look = MARKS[one.mark]
            ends = np.clip([one.number.low, one.number.high], -1e9, 1e9) * 100
            axis.plot(ends, [place, place], color=look["color"], lw=1.6)
            axis.plot(one.number.value * 100, place, ls="none", ms=6, **look)
            if one.own and claim in printed:
                axis.plot(
                    printed[claim] * 100, place, marker="o", mec=drawing.FAINT, **drawing.HOLLOW
                )
        axis.axvline(0, **drawing.CHANCE)
        values = pd.DataFrame([one.values for one in ordered])
        differing = values.columns[values.nunique() > 1] if len(values) > 1 else values.columns
        names = [
            ", ".join(one.values[column] for column in differing) + " (paper)" * one.own
            for one in ordered
        ]
        drawing.ticks(axis.yaxis, range(len(ordered)), names)
        axis.set_xlabel("points")
    return figure


def joint(numbers: Iterable, interval: Callable) -> list[Interval]:
    """The intervals of several numbers that hold together at `LEVEL`: `interval(number, level)` gives one."""
    numbers = list(numbers)
    return [interval(one, 1 - (1 - LEVEL) / len(numbers)) for one in numbers]
