"""Options of an audit besides the model and its records, checked without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mia_lib.checks import check_flag
from mia_lib.errors import MiaError, check_choice, check_range, check_whole, list_few

if TYPE_CHECKING:
    from mia_lib.data import Dataset
    from mia_lib.training import TrainConfig

OUTPUTS = ("logits", "probabilities", "labels")
SCALINGS = ("-1 to 1", "0 to 1", "0 to 255")  # those of `models`, which needs PyTorch
ATTACKS = (
    "MALT",
    "modified entropy",
    "confidence",
    "0-1",
    "LiRA",
    "LiRA, offline",
    "RMIA",
    "calibrated loss",
    "quantile regression",
    "gradient norm",
    "curvature",
    "boundary distance",
    "IHA",
    "gradient alone",
)  # as they run
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


@dataclass(frozen=True, eq=False)
class AuditOptions:
    """Options of an audit, checked as far as no record is needed for it.

    Attributes:
        outputs: "logits", "probabilities" or "labels", the predicted classes of a function, by number or by name as text.
        columns: names of the classes of the model's columns, in their order, where it lacks some of the records' classes or
            has another order; of a method of a scikit-learn estimator its `classes_` are taken.
        scaling: of uint8 images for a network or a program from elsewhere, see `models.to_input`.
        public: further records of the distribution, for attacks that learn from them; none may be among those judged.
        recipe: how the model was trained, as far as it can be said; references are trained by it.
        minutes: that the whole audit may take.
        groups: a pair of arrays, the group of each member and of each non-member.
        fpr: false positive rates that must be resolved; without it 1 % and 0.1 % are looked at, and the page says where they
            are not resolved.
        references: how many to train at most.
        queries: predictions for each record that an attack may ask for besides the outputs: curvature of a function takes 16,
            the label-only distance of any model to its decision boundary all of them, of which 2,500 are usual.
        without: names of attacks and of other steps that are left out, as the plan calls them.
        deduplicate: whether records that are there before, by content, are left out: of members, of non-members those that are
            members, too, and of public records those that are judged. They are refused otherwise.
        delta, confidence: of the lower bound on epsilon; confidence is that of all intervals and tests, too.
        name: what the page calls the model.
        seed: of everything random.
        keep: folder for the answers of a function, and for the scores of each attack. A call that was stopped goes on from
            there.

    Raises:
        MiaError: a value that cannot be used.
    """

    outputs: str = "logits"
    columns: Sequence | None = None
    scaling: str | tuple | None = None
    public: Dataset | None = None
    recipe: TrainConfig | None = None
    minutes: float = 10.0
    groups: tuple | None = None
    fpr: float | Sequence[float] | None = None
    references: int = 64
    queries: int = 16
    without: Sequence[str] = ()
    deduplicate: bool = False
    delta: float = 0.0
    confidence: float = 0.95
    name: str = "model"
    seed: int = 0
    keep: str | Path | None = None

    def __post_init__(self):
        check_choice("outputs", self.outputs, OUTPUTS)
        if self.outputs == "labels" and self.columns is not None:
            raise MiaError(
                f"columns = {self.columns!r}, but outputs = 'labels' are predicted classes, which have no columns: "
                "leave it out."
            )
        if isinstance(self.scaling, str):
            check_choice("scaling", self.scaling, SCALINGS)
        if not isinstance(self.name, str) or not self.name.strip():
            raise MiaError(
                f"name = {self.name!r}: a text is needed, what the page calls the model."
            )
        if not 0 < check_range("minutes", self.minutes) < 1e9:
            raise MiaError(f"minutes = {self.minutes!r}: a budget above 0 is needed.")
        for argument in ("seed", "references", "queries"):
            check_whole(argument, getattr(self, argument), 0)
        if isinstance(self.without, str) or not isinstance(self.without, Sequence):
            raise MiaError(
                f"without = {self.without!r}: a list of names of steps is needed, such as ['curvature']."
            )
        base_attack = "0-1" if self.outputs == "labels" else "MALT"
        steps = [name for name in (*ATTACKS, CONTROL, REFERENCES, RETRAINED) if name != base_attack]
        for step in self.without:
            check_choice("without", step, steps)
        check_flag("deduplicate", self.deduplicate)
        check_range("delta", self.delta, 0, 1)
        if not 0.5 <= check_range("confidence", self.confidence) < 1:
            raise MiaError(
                f"confidence = {self.confidence!r} is out of range: allowed is from 0.5 to below 1, such as 0.95."
            )
        if not self.rates:
            raise MiaError(
                "fpr is empty: give at least one false positive rate, such as 0.01, or leave it out."
            )
        for rate in self.rates:
            if not 0 < check_range("fpr", rate) < 1:
                raise MiaError(
                    f"fpr = {rate!r} is out of range: a rate above 0 and below 1 is needed, such as 0.01 for 1 %."
                )
        if (
            not isinstance(self.keep, str | Path | None)
            or self.keep is not None
            and Path(self.keep).expanduser().is_file()
        ):
            raise MiaError(
                f"keep = {str(self.keep)!r}: the name of a folder for the answers is needed, and no file."
            )

    @property
    def rates(self) -> tuple[float, ...]:
        """False positive rates, the highest first, each once."""
        if self.fpr is None:
            return RATES
        given = self.fpr.tolist() if isinstance(self.fpr, np.ndarray) else self.fpr
        rates = (
            tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
        )
        return (
            tuple(sorted(set(rates), reverse=True))
            if all(isinstance(rate, Real) for rate in rates)
            else rates
        )

    def check_resolved(self, others: int) -> None:
        """Refuse rates that were asked for and that so many non-members do not resolve."""
        for rate in self.rates if self.fpr is not None else ():
            if rate * others < 1 - 1e-9:
                raise MiaError(
                    f"fpr = {rate:g} is below the resolution: of {others} non-members one is {1 / others:.2g}. "
                    f"Give at least {np.ceil(1 / rate - 1e-9):.15g} non-members, or a higher fpr; without fpr the "
                    "page says where it resolves nothing."
                )


def check_folder(folder: str | Path) -> Path:
    """A folder that an audit may write to; a file, and a folder that holds what is not of an audit, raise `MiaError`."""
    folder = Path(folder).expanduser()
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
