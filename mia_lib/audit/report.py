"""Report of an audit: one HTML page that opens offline, and JSON of the same numbers.

The sentences are blocks of `report.html`. The JSON is an `AuditNumbers`, of which the book has the JSON Schema.
"""

from __future__ import annotations

import base64
import html
import io
import json
import platform
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import rc_context, rcdefaults
from matplotlib.figure import Figure
from pydantic import BaseModel, Field

from mia_lib import __version__, drawing, store, templates
from mia_lib.audit.attacks import ATTACKS
from mia_lib.audit.inputs import AuditInputs, ScoreTable, accuracies_differ
from mia_lib.audit.numbers import CONFIG, Number, Schema, result
from mia_lib.audit.options import NUMBERS, PAGE, check_folder
from mia_lib.audit.plans import Plan, Price, Step
from mia_lib.audit.statistics import (
    ALONE,
    SEVERITIES,
    SIZES,
    AttackResult,
    AuditResult,
    BestAttack,
    Detectable,
    ExposedRecords,
    GroupResult,
    InputOnlyCheck,
    LabelCheck,
    Rate,
    detectable,
    detectable_auc,
)
from mia_lib.errors import MiaError
from mia_lib.metrics import Interval
from mia_lib.progress import duration
from mia_lib.training import TrainConfig

SCHEMA = 2  # version of audit.json, raised where a name goes or means something else
TEMPLATE = Path(__file__).with_name("report.html")
LINES = 5  # curves at most
GRID, SHADE = "#e4e4e4", "#e9e9ec"
# What a dark page has in the place of colours that it would swallow.
DARK = {
    "#ffffff": "#14181e",
    drawing.INK: "#ced6dd",
    "#262626": "#ced6dd",
    GRID: "#39424e",
    SHADE: "#232a33",
    drawing.BLUE: "#55b0ea",
}


@result
class Sides:
    """Shares of members and of non-members."""

    members: Number
    non_members: Number


@result
class ReferenceNumbers:
    """Reference models."""

    count: int
    records: int
    """How many records each was trained on."""
    like_the_model: bool | None
    """Whether their accuracy is like the model's; null without references."""
    accuracy: Sides | None
    """Their average accuracy on records that they were trained on, and on others; null without references."""


OfModel = partial(Field, None, json_schema_extra=lambda schema: schema.pop("default"))


class AuditNumbers(BaseModel):
    """Numbers of an audit, rounded to six digits; null is what is no finite number. Properties that are not required are there
    where a model was audited, and not of scores alone."""

    model_config = CONFIG | {"json_schema_serialization_defaults_required": False}

    format: Literal[SCHEMA] = Field(alias="schema")
    """Version of this schema, which is raised where a name goes or means something else."""
    name: str
    """What the page calls the model."""
    answer: str
    """What was found, in sentences, warnings first."""
    leak: bool | None
    """Whether any attack found more than chance; null where members and non-members differ without the model."""
    severity: Literal[*SEVERITIES] | None
    """How much the attack that speaks finds; null without a leak."""
    warnings: list[str]
    """Sentences that the answer begins with."""
    apart_without_the_model: bool
    """Whether members and non-members differ without the model."""
    headline: BestAttack
    control: InputOnlyCheck | None
    """The classifier that never sees the model; null where it did not run."""
    right_about_members: LabelCheck | None
    attacks: tuple[AttackResult, ...]
    groups: tuple[GroupResult, ...]
    """Classes, and groups that were given."""
    exposed: ExposedRecords
    detectable: tuple[Detectable, ...]
    """What audits of other sizes would find."""
    shows: list[str]
    """What the audit shows and what not, in sentences."""
    provenance: dict
    """Versions, fingerprints, seed and date."""
    accuracy: Sides = OfModel()
    """Accuracy of the model."""
    prices: Sequence[Price] = OfModel()
    """What was tried against the leak; the recipe as it is comes first."""
    left_out: dict[str, int] = OfModel()
    """Records that were there before, by the set that they were left out of."""
    queries: int = OfModel()
    """Records that the model was asked about, each as often as it was."""
    plan: tuple[Step, ...] = OfModel()
    """What was planned, and what became of it."""
    references: ReferenceNumbers = OfModel()


def schema() -> dict:
    """The JSON Schema of audit.json."""
    return {"$schema": Schema.schema_dialect} | AuditNumbers.model_json_schema(
        schema_generator=Schema, mode="serialization"
    )


@dataclass(frozen=True, eq=False)
class Report:
    """Findings of an audit; as text, its answer.

    Attributes:
        inputs: what it had. plan: what ran and what did not; None where scores alone were given.
        result: what the scores say. prices: of changes of the recipe.
        accuracy: of the model on members and on non-members, None of scores alone. reference_accuracy: on average on what each
            reference was trained on, and on the rest; None without. provenance: plain data.
    """

    inputs: AuditInputs | ScoreTable = field(repr=False)
    plan: Plan | None = field(repr=False)
    result: AuditResult = field(repr=False)
    prices: Sequence[Price] = field(repr=False)
    accuracy: tuple[float, float] | None
    reference_accuracy: tuple[float, float] | None
    provenance: Mapping = field(repr=False)

    def __str__(self) -> str:
        return f"{self.answer}\n{self.low_rates}"

    @property
    def answer(self) -> str:
        """Findings in a few sentences, warnings first."""
        return " ".join([*self.text("warnings"), *self.text("finding")])

    @property
    def low_rates(self) -> str:
        """Sentences that say what the best attack finds at few false positives, and what that means beside its AUC."""
        return " ".join(self.text("low_rates"))

    @property
    def leak(self) -> bool | None:
        """True if any attack found more than chance, all attacks and tests accounted for; False is
        no proof of safety. None if members and non-members differ without the model, so that
        nothing can be said about it."""
        return self.result.leak

    @property
    def scores(self) -> dict[str, np.ndarray]:
        """Scores by attack, float64 [N], members first, higher for members."""
        return {attack.name: attack.scores for attack in self.result.attacks}

    @property
    def members(self) -> np.ndarray:
        """True for members, bool [N], in the order of `scores`."""
        return self.inputs.is_member

    @property
    def detectable(self) -> tuple[Detectable, ...]:
        """What audits with as many attacks find four times in five, by how many records they have."""
        result = self.result
        plain = sum(not attack.audit_tool for attack in result.attacks)
        return detectable(SIZES, plain, self.inputs.options.rates[0], result.level)

    @property
    def strange_references(self) -> bool:
        """True if the accuracy of the references is farther from the model's than like models are
        apart."""
        return self.reference_accuracy is not None and accuracies_differ(
            self.reference_accuracy, self.accuracy, self.inputs
        )

    def text(self, block: str) -> list[str]:
        """The sentences of a block of `report.html`, as plain text."""
        template = templates.template(TEMPLATE, FILTERS)
        return sentences(
            html.unescape("".join(template.blocks[block](template.new_context(self._values()))))
        )

    def exceeded(self, gates: Mapping[str, float | None]) -> list[str]:
        """Sentences that say which gates were exceeded, one for each.

        Args:
            gates: "leak" -> None; "auc" or "tpr" (at the highest false positive rate) -> a bound for the attack that speaks;
                "epsilon" -> a bound for the largest lower bound.

        Raises:
            MiaError: members and non-members differ without the model, it knows its members no better than a guess would,
                they score below non-members and nothing was found, or the rate of "tpr" is not resolved.
        """
        result, best = self.result, self.result.best
        if gates and (result.differ or result.guessed or result.below and not result.leak):
            raise MiaError(f"--fail-on {', '.join(gates)} cannot be decided: {self.answer}")
        if "tpr" in gates and not best.rates[0].resolved:
            raise MiaError(
                f"--fail-on tpr cannot be decided: {self.low_rates} Give more non-members."
            )
        values = {
            "auc": best.auc.value,
            "tpr": best.rates[0].tpr.value,
            "epsilon": max(
                attack.epsilon.bound for attack in result.attacks if attack.epsilon is not None
            ),
        }
        failures = ["--fail-on leak: a leak was found."] if "leak" in gates and self.leak else []
        return failures + [
            f"--fail-on {name}: {values[name]:.3g} was found, above {bound:g}."
            for name, bound in gates.items()
            if bound is not None and values[name] > bound
        ]

    def _values(self) -> dict:
        """Values by the names that the template uses."""
        result, members, others = self.result, int(self.members.sum()), int((~self.members).sum())
        plain = sum(not attack.audit_tool for attack in result.attacks)
        return {
            "report": self,
            "inputs": self.inputs,
            "options": self.inputs.options,
            "plan": self.plan,
            "result": result,
            "best": result.best,
            "members": members,
            "non_members": others,
            "judged": int(self.members[result.best.judged_on].sum()),
            "sources": ATTACKS,
            "ALONE": ALONE,
            "SEVERITIES": SEVERITIES,
            "detectable": detectable_auc(members, others, plain, result.level),
            "sizes": self.detectable,
        }

    def data(self) -> dict:
        """All numbers as plain data, as audit.json has them, see `AuditNumbers`."""
        inputs, plan, found = self.inputs, self.plan, self.result
        numbers = {
            "schema": SCHEMA,
            "name": inputs.options.name,
            "answer": self.answer,
            "leak": found.leak,
            "severity": found.best.severity if self.leak else None,
            "warnings": self.text("warnings"),
            "apart_without_the_model": found.differ,
            "headline": found.best,
            "control": found.control,
            "right_about_members": found.label_check,
            "attacks": found.attacks,
            "groups": found.groups,
            "exposed": found.exposed,
            "detectable": self.detectable,
            "shows": self.text("shows"),
            "provenance": dict(self.provenance),
        }
        if plan is not None:
            accuracy = self.reference_accuracy
            numbers |= {
                "accuracy": Sides(*self.accuracy),
                "prices": self.prices,
                "left_out": dict(inputs.left_out),
                "queries": inputs.target.queries.records,
                "plan": plan.steps,
                "references": ReferenceNumbers(
                    plan.references,
                    len(self.members) // 2 if plan.references else 0,
                    None if accuracy is None else not self.strange_references,
                    None if accuracy is None else Sides(*accuracy),
                ),
            }
        return AuditNumbers(**numbers).model_dump(mode="json", by_alias=True, exclude_unset=True)

    def html(self) -> str:
        """The page, which needs nothing beside it."""
        best = self.result.best.attack
        with rc_context():
            rcdefaults()  # a matplotlibrc, which may lie where we run, could ask for LaTeX
            pictures = {
                "roc": light_and_dark(roc_figure(self)),
                "scores": light_and_dark(score_figure(self.scores[best], self.members, best)),
            }
        return templates.template(TEMPLATE, FILTERS).render(
            **self._values(), numbers=NUMBERS, provenance=self.provenance, pictures=pictures
        )

    def save(self, folder: str | Path) -> Path:
        """Write audit.html, whose path is returned, and audit.json into a folder that is new or empty; answers of a function
        and an older audit may be in it, anything else raises `MiaError`."""
        folder, page = check_folder(folder), self.html()
        store.write(folder / NUMBERS, json.dumps(self.data(), indent=1, allow_nan=False).encode())
        # the last: a folder without it is that of an audit that did not end
        store.write(folder / PAGE, page.encode())
        return folder / PAGE


# ---------------------------------------------------------------------------------------------------------- words and figures


def percent(value: float, digits: int = 1) -> str:
    """A fraction as a percentage: "1 %", "0.05 %"."""
    if 100 * value >= 10**-digits or not value:
        return f"{100 * value:.{digits}f} %".replace(".0 %", " %")
    return f"{100 * value:.2g} %"


def as_given(value: float) -> str:
    """A given rate or level as a percentage, with all its digits: "1.55 %"."""
    return f"{100 * value:.10g} %"


def span(interval: Interval) -> str:
    """An estimate with its interval: "0.612 [0.580, 0.644]"."""
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def share(value: float, count: int) -> str:
    """A share of `count` records as a percentage; of less than one of them, which an average over draws can be, "< 0.5 %"."""
    return f"< {percent(1 / count)}" if 0 < value < 1 / count else percent(value)


def tpr(rate: Rate, members: int) -> str:
    """A true positive rate among so many members for a table."""
    value, low, high = (
        share(one, members) for one in (rate.tpr.value, rate.tpr.low, rate.tpr.high)
    )
    return f"{value} [{low}, {high}]" if rate.resolved else "below resolution"


def or_less(value: float | None, least: float) -> str:
    """A number for a table: "" for None, "< LEAST" for a number below `least`."""
    return "" if value is None else f"< {least:g}" if value < least else f"{value:.2g}"


def sentences(text: str) -> list[str]:
    """The paragraphs of a block, which blank lines part, each on one line; markup stays such."""
    return [type(text)(" ".join(part.split())) for part in text.split("\n\n") if part.strip()]


FILTERS = {
    "percent": percent,
    "as_given": as_given,
    "span": span,
    "share": share,
    "tpr": tpr,
    "or_less": or_less,
    "duration": duration,
    "sentences": sentences,
}


def light_and_dark(figure: Figure) -> dict[str, str]:
    """A figure in the colours "light" and "dark", as SVG in base64; the same numbers give the same
    text."""
    svg = io.BytesIO()
    with rc_context({"svg.hashsalt": "mia"}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
    plt.close(figure)
    light = re.sub(r"<!--.*?-->|\n\s*", " ", svg.getvalue().decode())  # a tenth is indentation
    colours = {name.lower(): other for name, other in DARK.items()}
    dark = re.sub("#[0-9a-f]{6}", lambda colour: colours.get(colour[0], colour[0]), light)
    return {
        name: base64.b64encode(drawn.encode()).decode()
        for name, drawn in (("light", light), ("dark", dark))
    }


def roc_figure(report: Report) -> Figure:
    """ROC on logarithmic axes with a band for the attack that speaks for the audit, and those that find most beside it."""
    best = report.result.best.attack
    members = int(report.members.sum())
    others = int((~report.members).sum())
    low = min(1 / members, 1 / others) / 1.5
    figure, [ax] = drawing.panels(1, 5.9, width=5.4)
    plain = [attack for attack in report.result.attacks if not attack.audit_tool]
    for attack in sorted(plain, key=lambda attack: (attack.name != best, -attack.auc.value))[
        :LINES
    ]:
        look = drawing.style_of(attack.name, [*ATTACKS, attack.name].index(attack.name))
        fpr, speaks = [rate.fpr for rate in attack.curve], attack.name == best
        tpr, floor, ceiling = (
            np.maximum([getattr(rate.tpr, end) for rate in attack.curve], low / 2)
            for end in ("value", "low", "high")
        )
        ax.plot(
            fpr,
            tpr,
            label=_plain(attack.name),
            color=look["color"],
            ls=look["linestyle"],
            lw=2.4 if speaks else 1.6,
            zorder=5 if speaks else 3,
        )
        if speaks:
            ax.fill_between(fpr, floor, ceiling, color=look["color"], alpha=0.2, lw=0)
    ax.plot([low, 1], [low, 1], color=drawing.INK, ls=(0, (5, 4)), lw=1, label="chance", zorder=1)
    ax.axvspan(low, 1 / others, color=SHADE, lw=0, zorder=6)
    ax.axhspan(low, 1 / members, color=SHADE, lw=0, zorder=6)
    ax.set(
        xscale="log",
        yscale="log",
        xlim=(low, 1),
        ylim=(low, 1),
        box_aspect=1,
        xlabel="false positive rate",
        ylabel="true positive rate",
    )
    drawing.legend(figure, 2)
    return figure


def _plain(name: str) -> str:
    """A name as Matplotlib draws it letter by letter, for what stands between two dollars is a formula."""
    return name.replace("$", r"\$")


def score_figure(score: np.ndarray, is_member: np.ndarray, name: str) -> Figure:
    """Histograms of an attack's scores; what lies far out is in the last bins."""
    ends = np.quantile(score, [0.002, 0.998])
    figure = drawing.histograms(
        {"": (np.clip(score, *ends), is_member)},
        xlabel=f"score of {_plain(name)}" if name != "score" else name,
    )
    figure.set_size_inches(5.4, 3.3)
    return figure


# ------------------------------------------------------------------------------------------------------------------- numbers


def describe_provenance(inputs: AuditInputs | ScoreTable, seconds: float) -> dict:
    """Provenance of an audit, as plain data: versions, fingerprints, seed, date."""
    options = inputs.options
    said = {name: getattr(options, name) for name in ("auditor", "purpose", "period")}
    general = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(seconds, 1),
        "seed": options.seed,
        "confidence": options.confidence,
        "delta": options.delta,
        **{name: words for name, words in said.items() if words},
        "versions": {"mia_lib": __version__, "python": platform.python_version()}
        | {package: version(package) for package in ("numpy", "scipy", "scikit-learn", "torch")},
        "code": store.code_of(("attacks", "audit", "metrics")),
    }
    if isinstance(inputs, ScoreTable):
        return general | {
            "recipe": {},
            "model": None,
            "data": {
                "scores": {
                    "records": len(inputs.is_member),
                    "fingerprint": store.fingerprint(np.stack([*inputs.scores.values()])),
                }
            },
        }
    return general | {"minutes": options.minutes} | describe_inputs(inputs)


def _describe_recipe(options) -> dict:
    """Where references come from, as plain data."""
    if isinstance(options.recipe, TrainConfig):
        return options.recipe.spec()
    if options.recipe is not None:
        return {"copies of": " ".join(repr(options.recipe).split())}
    if options.refit is not None:
        return {"refit": getattr(options.refit, "__qualname__", type(options.refit).__name__)}
    return {}


def describe_inputs(inputs: AuditInputs) -> dict:
    """Recipe, model and records of an audit, as plain data. A model is known by the hash of its answers, and of its weights
    where there are some."""
    target = inputs.target
    sets = {"members": inputs.members, "non_members": inputs.non_members, "public": inputs.public}
    weights = (
        ""
        if target.kind != "network"
        else store.fingerprint(
            np.array(
                [
                    f"{name} {store.fingerprint(value.detach().cpu().double().numpy())}"
                    for name, value in target.model.state_dict().items()
                    if hasattr(value, "detach")
                ]
            )
        )
    )  # of the rest the answers tell
    return {
        "recipe": _describe_recipe(inputs.options),
        "model": {
            "kind": target.kind,
            "outputs": target.outputs,
            "unpacked": sorted(target.queries.unpacked),
            "parameters": target.parameters,
            "weights": weights,
            "answers": store.fingerprint(target.scalars(inputs.pool)["outputs"]),
        },
        "data": {
            name: {"records": len(records), "fingerprint": records.fingerprint}
            for name, records in sets.items()
            if records is not None
        },
    }
