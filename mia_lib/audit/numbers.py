"""How results of an audit are written into `audit.json`: each is a dataclass that is its own part of the JSON Schema.

A class and an attribute are described there by the docstrings behind them.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, InstanceOf, PlainSerializer
from pydantic.dataclasses import dataclass
from pydantic.json_schema import GenerateJsonSchema

from mia_lib import metrics

CONFIG = ConfigDict(
    extra="forbid",
    from_attributes=True,
    json_schema_serialization_defaults_required=True,
    use_attribute_docstrings=True,
)
result = partial(dataclass, frozen=True, eq=False, config=CONFIG)


def _rounded(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


Number = Annotated[float, PlainSerializer(_rounded, return_type=float | None)]
Scores = Annotated[
    InstanceOf[np.ndarray], PlainSerializer(np.ndarray.tolist, return_type=list[Number])
]
Rows = Annotated[InstanceOf[np.ndarray], PlainSerializer(np.ndarray.tolist, return_type=list[int])]


class IntervalNumbers(BaseModel):
    """An estimate with its confidence interval."""

    model_config = CONFIG

    value: Number
    """The estimate."""
    low: Number
    """The lower end of its interval."""
    high: Number
    """The upper end of its interval."""
    level: Number
    """Confidence of the interval, such as 0.95."""
    covers: str
    """The chance that the interval covers, such as "records only"."""


class EpsilonNumbers(BaseModel):
    """A lower confidence bound on epsilon and the rates that gave it."""

    model_config = CONFIG

    bound: Number
    """The bound, never below 0."""
    confidence: Number
    """Confidence of the bound."""
    delta: Number
    """The delta for which it holds."""
    direction: str
    """Where epsilon shows: "members" who are called members, or "non-members" who are not."""
    tpr: Number
    """True positive rate of the threshold."""
    fpr: Number
    """False positive rate of the threshold."""


Interval = Annotated[
    InstanceOf[metrics.Interval],
    PlainSerializer(IntervalNumbers.model_validate, return_type=IntervalNumbers),
]
EpsilonBound = Annotated[
    InstanceOf[metrics.EpsilonBound],
    PlainSerializer(EpsilonNumbers.model_validate, return_type=EpsilonNumbers),
]


class Schema(GenerateJsonSchema):
    """A JSON Schema without titles that say what names say."""

    def field_title_should_be_set(self, schema) -> bool:
        return False
