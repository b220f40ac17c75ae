"""Options of an audit besides the model and its records, checked without PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from mia_lib import environment
from mia_lib.errors import MiaError, check_choice, check_range, list_few, refusals

SCALINGS = ("-1 to 1", "0 to 1", "0 to 255")  # those of `models`, which needs PyTorch
CONTROL, REFERENCES, RETRAINED = (
    "control without the model",
    "references",
    "what to try, retrained",
)  # the other steps
LEFT_OUT = "was left out, as was asked for"
FAILED = "failed"  # state of a step that was tried
PAGE, NUMBERS, ANSWERS = "audit.html", "audit.json", "answers"  # what is in the folder of an audit
RATES = (0.01, 0.001)  # false positive rates that are looked at unless others are asked for
GATES = {"auc": (0.5, 1.0), "tpr": (0.0, 1.0), "epsilon": (0.0, None)}  # bounds of `--fail-on`


class ScoreOptions(BaseModel):
    """Options of an audit of scores; a value that cannot be used raises `MiaError`."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        str_strip_whitespace=True,
        use_attribute_docstrings=True,
    )

    fpr: tuple[Annotated[float, Field(gt=0, lt=1)], ...] | None = Field(None, min_length=1)
    """False positive rates that must be resolved, such as 0.01. Without any, 1 % and 0.1 % are looked at, and the page says
    where they are not resolved."""
    groups: Any = None
    """The group of each record: an array for scores; of a model a pair, the groups of members and of non-members."""
    ids: Any = None
    """Your own name of each record, which the page shows beside those that are most exposed: an array for scores; of a model a
    pair, of members and of non-members."""
    delta: float = Field(0.0, ge=0, le=1)
    """The delta of the lower bound on epsilon."""
    confidence: float = Field(0.95, ge=0.5, lt=1)
    """Confidence of all intervals, tests and bounds, such as 0.95."""
    name: str = Field("model", min_length=1)
    """What the page calls the model."""
    auditor: str = ""
    """Who audits, for the page, as the next two."""
    purpose: str = ""
    """What the model is for, and why it is audited."""
    period: str = ""
    """The time that its records are of, and the version of the model."""
    seed: int = Field(0, ge=0)
    """Seed of everything random."""

    def __init__(self, **options):
        with refusals(type(self)):
            super().__init__(**options)

    @field_validator("*", mode="before")
    @classmethod
    def _plain(cls, value, field):
        """Numbers and arrays of NumPy as Python's, except for groups, and one rate as a tuple of it."""
        if hasattr(value, "tolist") and field.field_name not in ("groups", "ids"):
            value = value.tolist()
        if field.field_name == "fpr" and value is not None:
            return tuple(value) if isinstance(value, list | tuple) else (value,)
        return value

    @property
    def rates(self) -> tuple[float, ...]:
        """False positive rates, the highest first, each once."""
        return RATES if self.fpr is None else tuple(sorted(set(self.fpr), reverse=True))

    def check_resolved(self, others: int) -> None:
        """Refuse rates that were asked for and that so many non-members do not resolve."""
        for rate in self.rates if self.fpr is not None else ():
            if rate * others < 1 - 1e-9:
                needed = math.ceil(min(1 / rate, 1e18) - 1e-9)
                raise MiaError(
                    f"fpr = {rate:g} is below the resolution: of {others} non-members one is {1 / others:.2g}. "
                    f"Give at least {needed} non-members, or a higher fpr; without fpr the page says where "
                    "it resolves nothing."
                )


class RecordOptions(ScoreOptions):
    """Options of an audit of records; a value that cannot be used raises `MiaError`."""

    deduplicate: bool = False
    """Leave out records that are there before, by content: of members, of non-members those that are members, too, and of
    public records those that are judged. They are refused otherwise."""


class AuditOptions(RecordOptions):
    """Options of an audit of a model; a value that cannot be used raises `MiaError`."""

    outputs: Literal["logits", "probabilities", "labels", "top-k"] | None = None
    """What the model returns: logits or their like, as log probabilities; probabilities; labels, the classes that a function
    predicts, by number or by name; or top-k, probabilities of the best classes alone. Without it logits, of an estimator as of
    scikit-learn what its predict_proba gives."""
    columns: Sequence | None = None
    """Names of the classes of the model's columns, as a,b,c, where it lacks some of the records' classes or has another order.
    Of an estimator its `classes_` are read."""
    scaling: Any = None
    """Scaling of pixels for a model from elsewhere: "-1 to 1", "0 to 1", "0 to 255", or in Python numbers, see
    `models.to_input`."""
    public: Any = None
    """Further records of the distribution, a `data.Dataset`, for attacks that learn from them; none of them may be judged."""
    recipe: Any = None
    """How the model was trained, as far as it can be said: a `training.TrainConfig`, or an estimator, of which copies are
    fitted; references are trained by it."""
    refit: Any = None
    """A function (x, y) -> model that trains like the model: it gets records in their form and the names of their classes
    (numbers, where these are whole numbers), and what it returns is asked as the model is. References are trained by it."""
    references_from: Any = None
    """References from elsewhere, as arrays by name: `members` bool [R, N], who was trained on which record, and `answers`
    [R, N, K] as the model gives them, or `loss` [R, N]; of public records `public_answers` or `public_loss`. Records are the
    members, then the non-members, as they are given."""
    minutes: float = Field(10.0, gt=0, lt=1e9)
    """Minutes that the whole audit may take."""
    references: int = Field(64, ge=0)
    """Reference models at most."""
    queries: int = Field(16, ge=0)
    """Predictions for each record that an attack may ask for besides the outputs: 16 of curvature, 2500 of the label-only
    distance to the decision boundary, 0 of neither."""
    without: Sequence[str] = ()
    """Attacks and other steps that are left out, by their names in the plan."""
    batch: int | None = Field(None, ge=1)
    """Records that the model is asked about at once: 1 where its answers depend on the others, as of int8."""
    keep: Path | None = None
    """Folder for the answers of a function and the scores of each attack, from which a call that was stopped goes on."""

    @field_validator("columns", mode="before")
    @classmethod
    def _split(cls, columns):
        return columns.split(",") if isinstance(columns, str) else columns

    @field_validator("scaling")
    @classmethod
    def _known_scaling(cls, scaling):
        return check_choice("scaling", scaling, SCALINGS) if isinstance(scaling, str) else scaling

    @field_validator("without")
    @classmethod
    def _known_steps(cls, without, others):
        from mia_lib.attacks.registry import IN_AUDITS  # SciPy takes half a second

        base_attack = "0-1" if others.data.get("outputs") == "labels" else "MALT"
        steps = [
            name for name in (*IN_AUDITS, CONTROL, REFERENCES, RETRAINED) if name != base_attack
        ]
        for step in without:
            check_choice("without", step, steps)
        return without

    @field_validator("keep", mode="before")
    @classmethod
    def _folder(cls, keep):
        if keep is None:
            return None
        if not isinstance(keep, str | Path) or environment.path(keep).is_file():
            raise ValueError("the name of a folder is needed, and no file")
        return environment.path(keep)

    @model_validator(mode="after")
    def _references_come_from_one_place(self):
        sources = [
            name
            for name in ("recipe", "refit", "references_from")
            if getattr(self, name) is not None
        ]
        if len(sources) > 1:
            raise MiaError(
                f"{' and '.join(sources)} each say where references come from: give one."
            )
        return self

    @model_validator(mode="after")
    def _labels_have_no_columns(self):
        if self.outputs in ("labels", "top-k") and self.columns is not None:
            raise MiaError(
                f"columns = {self.columns!r}, but outputs = {self.outputs!r} are classes by name or number, which have no "
                "columns: leave it out."
            )
        return self


for _options in (ScoreOptions, RecordOptions, AuditOptions):
    _options.__doc__ += "\n\nAttributes:\n" + "\n".join(
        f"    {name}: {field.description}" for name, field in _options.model_fields.items()
    )


def check_folder(folder: str | Path) -> Path:
    """A folder that an audit may write to; a file, and a folder that holds what is not of an audit, raise `MiaError`."""
    folder = environment.path(folder)
    if folder.exists() and not folder.is_dir():
        raise MiaError(
            f"folder = {str(folder)!r} is a file: give a folder for the page and its numbers."
        )
    ours = (
        PAGE,
        NUMBERS,
        ANSWERS,
        *(path.name for path in folder.glob(".writing-*")),
    )  # of an audit that was killed
    others = sorted(path.name for path in folder.glob("*") if path.name not in ours)
    if others:
        raise MiaError(
            f"folder = {str(folder)!r} is not empty ({list_few(others)}): "
            f"give a new one, so that nothing is lost in it."
        )
    return folder


def check_gates(texts: Sequence[str]) -> dict[str, float | None]:
    """Gates that `--fail-on` names, such as "leak" or "auc=0.6", as name -> bound, None for "leak".

    Raises:
        MiaError: another name, one twice, a bound that is missing or out of range.
    """
    gates: dict[str, float | None] = {}
    for text in texts:
        name, _, bound = text.partition("=")
        check_choice("--fail-on", name, ("leak", *GATES))
        if name in gates:
            raise MiaError(
                f"--fail-on {name} is given twice, of which one would count: give it once."
            )
        if text == "leak":
            gates[name] = None
            continue
        try:
            gates[name] = float(bound if name in GATES else "")
        except ValueError as error:
            raise MiaError(
                f"--fail-on {text}: write --fail-on leak, or a bound, such as auc=0.6, tpr=0.05 or "
                "epsilon=1."
            ) from error
        check_range(f"--fail-on {name}", gates[name], *GATES[name])
    return gates
