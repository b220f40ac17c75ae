"""What an audit found, and how it is written down: one HTML page that opens offline, and JSON of the same numbers."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path

import numpy as np

from mia_lib import standalone, store
from mia_lib.audit import figures, report_text
from mia_lib.audit.attacks import ATTACKS, HALVES
from mia_lib.audit.command import NUMBERS, PAGE, check_folder
from mia_lib.audit.inputs import AuditInputs, ScoreTable
from mia_lib.audit.plans import RUNS, Plan, size
from mia_lib.audit.remedies import AS_IT_IS, Price
from mia_lib.audit.statistics import ALONE, AuditResult
from mia_lib.metrics import EpsilonBound, Interval


@dataclass(frozen=True, eq=False)
class Report:
    """What an audit found.

    Attributes:
        inputs: what it had. plan: what ran and what did not; None where scores alone were given. minutes: that each part took.
        scores: attack -> float64 [N], members first, higher for members. result: all that they say. prices: of changes of the
            recipe.
        accuracy: of the model on members and on non-members, None of scores alone. provenance: plain data.
    """

    inputs: AuditInputs | ScoreTable = field(repr=False)
    plan: Plan | None = field(repr=False)
    minutes: Mapping[str, float] = field(repr=False)
    scores: Mapping[str, np.ndarray] = field(repr=False)
    result: AuditResult = field(repr=False)
    prices: tuple[Price, ...] = field(repr=False)
    accuracy: tuple[float, float] | None
    provenance: Mapping = field(repr=False)

    def __str__(self) -> str:
        return f"{self.answer}\n{self.low_rates}"

    @property
    def answer(self) -> str:
        """What was found, in a few sentences, warnings first."""
        return " ".join([*self.text("warnings"), *self.text("finding")])

    @property
    def low_rates(self) -> str:
        """What the best attack finds at few false positives."""
        return " ".join(self.text("low_rates"))

    @property
    def leak(self) -> bool | None:
        """Whether any attack found more than chance, all attacks and tests accounted for; False is no proof of safety. None
        where members and non-members differ without the model, so that nothing can be said about it."""
        return self.result.leak

    @property
    def members(self) -> np.ndarray:
        """bool [N], who is a member, in the order of `scores`."""
        return self.inputs.inside

    def text(self, block: str) -> list[str]:
        """The sentences of a block of `report.html`, as plain text."""
        return report_text.render(block, **self._values())

    def _values(self) -> dict:
        """What the template names."""
        result, prices = self.result, self.prices
        bounds = [attack for attack in result.attacks if attack.epsilon is not None]
        return {"report": self, "inputs": self.inputs, "options": self.inputs.options, "plan": self.plan, "result": result,
                "best": result.best, "best_bound": max(bounds, key=lambda attack: attack.epsilon.bound),
                "members": int(self.members.sum()), "non_members": int((~self.members).sum()),
                "reference_size": size(self.inputs, self.plan.variant) if self.plan and self.plan.references else 0,
                "not_run": [step.name for step in self.plan.steps if step.state != RUNS and step.name in ATTACKS]
                if self.plan else [],
                "as_it_is": next((price for price in prices if price.name == AS_IT_IS and price.accuracy is not None), None),
                "helped": [price.name for price in prices if price.less is not None and price.less.low > 0],
                "ALONE": ALONE, "HALVES": HALVES, "AS_IT_IS": AS_IT_IS}

    def data(self) -> dict:
        """All numbers as plain data, as audit.json has them; "leak" is null where `leak` is None, and "warnings" are those
        that the answer begins with."""
        result, names = to_plain(self.result), to_plain(self.inputs.class_names)
        for attack in result["attacks"]:
            attack |= {"audit_tool": attack.pop("audits"), "scores": to_plain(self.scores[attack["name"]]),
                       "source": ATTACKS[attack["name"]].citation if attack["name"] in ATTACKS else ""}
        exposed = result["exposed"]
        numbers = {
            "name": self.inputs.options.name, "answer": self.answer, "leak": result["leak"],
            "severity": self.result.best.severity if self.leak else None, "warnings": self.text("warnings"),
            "apart_without_the_model": self.result.differ, "headline": result["best"], "control": result["control"],
            "right_about_members": result["label_check"], "attacks": result["attacks"], "groups": result["groups"],
            "exposed": {name: exposed[name] for name in ("level", "called", "expected")} | {"records": [
                {"index": i if self.plan else int(self.inputs.rows[i]), "class": names and names[i], "score": s, "rate": r}
                for i, s, r in zip(exposed["index"], exposed["score"], exposed["rate"], strict=True)]},
            "shows": self.text("shows"), "provenance": dict(self.provenance)}
        return numbers if self.plan is None else numbers | {
            "accuracy": dict(zip(("members", "non_members"), self.accuracy, strict=True)), "prices": to_plain(self.prices),
            "plan": [{"step": step.name, "estimated_minutes": step.minutes, "minutes": self.minutes.get(step.name),
                      "state": step.state, "why": step.why} for step in self.plan.steps],
            "references": {"count": self.plan.references, "trained_on": self.plan.variant},
            "queries": self.inputs.target.queries.records}

    def html(self) -> str:
        """The page, which needs nothing beside it."""
        best, members = self.result.best.attack, self.members
        pictures = {"roc": figures.roc(self.result.attacks, best, int(members.sum()), int((~members).sum())),
                    "areas": figures.areas(self.result.attacks, self.result.control),
                    "scores": figures.scores(self.scores[best], members, best)}
        return standalone.page(
            report_text.TEMPLATE, report_text.FILTERS, **self._values(), sources=ATTACKS, numbers=NUMBERS,
            kinds={kind: [group for group in self.result.groups if group.kind == kind] for kind in ("group", "class")},
            pictures={name: figures.both(figure) for name, figure in pictures.items()}, provenance=self.provenance)

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


def to_plain(value):
    """Dataclasses, intervals and arrays as data for JSON: six digits, None for what is no finite number."""
    if isinstance(value, EpsilonBound):
        return {name: to_plain(getattr(value, name)) for name in ("bound", "confidence", "delta", "direction", "tpr", "fpr")}
    if isinstance(value, Interval):
        return {name: to_plain(getattr(value, name)) for name in ("value", "low", "high", "level", "covers")}
    if is_dataclass(value):
        return {part.name: to_plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, tuple | list | np.ndarray):
        return [to_plain(part) for part in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value


def describe_provenance(inputs: AuditInputs | ScoreTable, seconds: float) -> dict:
    """What an audit came from, as plain data: versions, fingerprints, seed, date. A model is known by the hash of its answers,
    and of its weights where there are some."""
    import scipy
    import sklearn
    import torch

    options = inputs.options
    general = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "seconds": round(seconds, 1), "seed": int(options.seed),
        "minutes": float(options.minutes), "confidence": float(options.confidence), "delta": float(options.delta),
        "versions": {"mia_lib": sys.modules["mia_lib"].__version__, "python": platform.python_version(),
                     "numpy": np.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__,
                     "torch": torch.__version__},
        "code": store.code_of(("attacks", "audit", "metrics"))}
    if isinstance(inputs, ScoreTable):
        return general | {"recipe": {}, "model": None, "data": {"scores": {
            "records": len(inputs.scores), "fingerprint": store.fingerprint(inputs.scores)}}}
    target, sets = inputs.target, {"members": inputs.members, "non_members": inputs.non_members, "public": inputs.public}
    return general | {
        "recipe": inputs.recipe.spec() if inputs.recipe else {},
        "model": {"kind": target.kind, "outputs": target.outputs, "unpacked": sorted(target.queries.unpacked),
                  "parameters": target.parameters, "weights": target.fingerprint,
                  "answers": store.fingerprint(target.scalars(inputs.pool, inputs.loss)["outputs"])},
        "data": {name: {"records": len(records), "fingerprint": records.fingerprint}
                 for name, records in sets.items() if records is not None}}
