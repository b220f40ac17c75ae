"""What an audit found, and how it is written down: one HTML page that opens offline, and JSON of the same numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from mia_lib import standalone, store
from mia_lib.audit import figures, remedies, words
from mia_lib.audit.attacks import ATTACKS
from mia_lib.audit.given import Given
from mia_lib.audit.judging import Judgement, Rate
from mia_lib.audit.planning import Plan
from mia_lib.audit.remedies import Price
from mia_lib.errors import MiaError
from mia_lib.metrics import Interval
from mia_lib.progress import duration

PAGE, NUMBERS, ANSWERS = "audit.html", "audit.json", "answers"


@dataclass(frozen=True, eq=False)
class Report:
    """What an audit found.

    Attributes:
        given: what it had. plan: what ran and what did not. minutes: that each part took. scores: attack -> float64 [N],
            members first, higher for members. judged: all that they say. prices: of changes of the recipe.
        accuracy: of the model on members and on non-members. provenance: plain data.
    """

    given: Given = field(repr=False)
    plan: Plan = field(repr=False)
    minutes: Mapping[str, float] = field(repr=False)
    scores: Mapping[str, np.ndarray] = field(repr=False)
    judged: Judgement = field(repr=False)
    prices: tuple[Price, ...] = field(repr=False)
    accuracy: tuple[float, float]
    provenance: Mapping = field(repr=False)

    def __str__(self) -> str:
        return f"{self.answer}\n{words.low(self.judged.headline)}"

    @property
    def answer(self) -> str:
        """What was found, in a few sentences."""
        return words.answer(self.given, self.judged)

    @property
    def leak(self) -> bool | None:
        """Whether any attack found more than chance, all attacks and tests accounted for; False is no proof of safety. None
        where members and non-members differ without the model, so that nothing can be said about it."""
        return self.judged.leak

    @property
    def members(self) -> np.ndarray:
        """bool [N], who is a member, in the order of `scores`."""
        return self.given.inside

    def frame(self) -> pd.DataFrame:
        """The attacks as a table: AUC with its interval, rates, corrected p-value, lower bound on epsilon."""
        rows = []
        for one in self.judged.attacks:
            row = {"attack": one.name, "audit tool": one.audits, "auc": one.auc.value, "low": one.auc.low,
                   "high": one.auc.high}
            for rate in one.rates:
                row[f"tpr at {words.percent(rate.fpr)}"] = rate.found.value if rate.resolved else np.nan
            rows.append({**row, "p": one.p, "epsilon": None if one.epsilon is None else one.epsilon.bound})
        return pd.DataFrame(rows)

    def data(self) -> dict:
        """All numbers as plain data, as audit.json has them; "leak" is null where `leak` is None, and "warnings" are those
        that the answer begins with."""
        judged, headline = self.judged, self.judged.headline
        agreement = judged.agreement
        return {
            "name": self.given.name, "answer": self.answer, "leak": judged.leak, "apart_without_the_model": judged.blind.apart,
            "warnings": list(words.warnings(self.given, judged).values()),
            "accuracy": {"members": self.accuracy[0], "non_members": self.accuracy[1]},
            "right_about_members": {"count": judged.right.members, "by_a_guess": judged.right.guess, "p": judged.right.p,
                                    "guessed": judged.right.guessed},
            "headline": {"attack": headline.name, "second": headline.second, "auc": _interval(headline.auc),
                         "rates": [_rate(one) for one in headline.rates], "judged_on": headline.judged.tolist()},
            "control": {"auc": _interval(judged.blind.auc), "p": judged.blind.p, "beyond": _interval(judged.blind.beyond)},
            "attacks": [{
                "name": one.name, "source": ATTACKS[one.name].citation, "family": one.family, "audit_tool": one.audits,
                "auc": _interval(one.auc), "rates": [_rate(rate) for rate in one.rates], "p": one.p, "constant": one.constant,
                "epsilon": None if one.epsilon is None else {
                    "bound": one.epsilon.bound, "confidence": one.epsilon.confidence, "delta": one.epsilon.delta,
                    "direction": one.epsilon.direction, "tpr": one.epsilon.tpr, "fpr": one.epsilon.fpr},
                "roc": {name: _rounded(getattr(one.curve, name)) for name in ("fpr", "tpr", "low", "high")},
                "scores": _rounded(self.scores[one.name])} for one in judged.attacks],
            "groups": [{"kind": one.kind, "name": one.name, "members": one.members, "non_members": one.others,
                        "auc": _interval(one.auc), "p": one.p} for one in judged.groups],
            "exposed": {"level": judged.exposed.level, "called": judged.exposed.called, "expected": judged.exposed.expected,
                        "records": [{"index": int(i), "class": str(self.given.members.classes[k]), "score": float(s),
                                     "rate": float(r), "second_rate": _number(q)}
                                    for i, k, s, r, q in self._exposed()]},
            "agreement": None if agreement is None else {
                "attacks": [agreement.first, agreement.second], "level": agreement.level, "members": agreement.index.tolist(),
                "expected": agreement.expected, "p": agreement.p, "non_members": agreement.others,
                "non_members_expected": agreement.others_expected, "non_members_p": agreement.others_p},
            "prices": [remedies.plain(one) for one in self.prices],
            "plan": [{"step": step.name, "estimated_minutes": step.minutes, "minutes": self.minutes.get(step.name),
                      "state": step.state, "why": step.why} for step in self.plan.steps],
            "references": {"count": self.plan.references, "trained_on": self.plan.variant},
            "queries": self.given.target.queries,
            "shows": words.shows(self.given, self.plan, judged), "provenance": dict(self.provenance),
        }

    def _exposed(self):
        one = self.judged.exposed
        return zip(one.index, one.label, one.score, one.rate, one.second, strict=True)

    def html(self) -> str:
        """The page, which needs nothing beside it."""
        filters = {"percent": words.percent, "span": words.span, "rate": words.rate, "chance": words.chance,
                   "remedy": words.remedy, "duration": duration, "minutes": _minutes, "p": _p}
        given, judged, headline = self.given, self.judged, self.judged.headline
        kinds = {kind: [one for one in judged.groups if one.kind == kind] for kind in ("group", "class")}
        pictures = {
            "roc": figures.roc(judged.attacks, headline.name, len(given.members), len(given.non_members)),
            "areas": figures.areas(judged.attacks, judged.blind),
            "scores": figures.scores(self.scores[headline.name], given.inside, headline.name),
            **{kind: figures.groups(found) for kind, found in kinds.items() if any(one.auc is not None for one in found)}}
        return standalone.page(
            Path(__file__).with_name("page.html"), filters,
            report=self, given=given, judged=judged, headline=headline, warnings=words.warnings(given, judged),
            answer=self.answer, low=words.low(headline),
            shows=words.shows(given, self.plan, judged), agreement=words.agreement(judged),
            exposure=words.exposure(given, judged), epsilon=words.epsilon(given, judged), kinds=kinds,
            said_of={kind: words.groups(judged, kind) for kind, found in kinds.items() if found},
            exposed=list(self._exposed()),
            to_try=words.to_try(given, self.plan, self.prices, self.accuracy[1]),
            pictures={name: figures.both(one) for name, one in pictures.items()},
            provenance=self.provenance,
            sources=ATTACKS, numbers=NUMBERS)

    def save(self, folder: str | Path) -> Path:
        """Write audit.html and audit.json.

        Args:
            folder: new or empty; answers of a function and an older audit may be in it.

        Returns:
            path of the page.

        Raises:
            MiaError: the folder holds something else, or is a file.
        """
        folder = check_folder(folder)
        store.write(folder / NUMBERS, json.dumps(self.data(), indent=1, allow_nan=False).encode())
        store.write(folder / PAGE, self.html().encode())
        return folder / PAGE


def check_folder(folder: str | Path) -> Path:
    """A folder that an audit may write to.

    Raises:
        MiaError: it is a file, or holds what is not of an audit.
    """
    folder = Path(folder).expanduser()
    if folder.exists() and not folder.is_dir():
        raise MiaError(f"folder = {str(folder)!r} is a file: give a folder for the page and its numbers.")
    others = sorted(path.name for path in folder.glob("*") if path.name not in (PAGE, NUMBERS, ANSWERS))
    if others:
        raise MiaError(f"folder = {str(folder)!r} is not empty ({', '.join(others[:3])}{', ...' if others[3:] else ''}): "
                       f"give a new one, so that nothing is lost in it.")
    return folder


def _interval(one: Interval | None) -> dict | None:
    return None if one is None else {"value": _number(one.value), "low": _number(one.low), "high": _number(one.high),
                                     "level": one.level, "covers": one.covers}


def _rate(one: Rate) -> dict:
    return {"fpr": one.fpr, "tpr": _interval(one.found), "chance": one.chance, "resolved": one.resolved, "tied": one.tied}


def _number(value) -> float | None:
    return float(value) if np.isfinite(value) else None


def _rounded(values) -> list[float]:
    return [float(f"{value:.6g}") for value in np.asarray(values, float)]


def _minutes(value: float | None) -> str:
    return "" if value is None else "< 0.01" if value < 0.01 else f"{value:.2g}"


def _p(value: float | None) -> str:
    return "" if value is None else "< 0.0001" if value < 1e-4 else f"{value:.2g}"
