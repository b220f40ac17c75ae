"""Types of arguments, by the names that annotations use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Scores: TypeAlias = npt.ArrayLike  # float [N] or [T, N], higher = more likely a member
Members: TypeAlias = npt.ArrayLike  # bool [N] or [T, N]
Numbers: TypeAlias = npt.ArrayLike  # of a shape that the docstring says
Indices: TypeAlias = npt.ArrayLike | None  # int, or what goes without
PerTarget: TypeAlias = Any  # a float for scores [N], an array [T] for [T, N]: which, only the shape says
Metric: TypeAlias = Callable[..., Any] | str  # a metric of `mia_lib.metrics`, or its name
MetricNames: TypeAlias = Sequence[str]
Labels: TypeAlias = Any  # int [N], an array or a tensor, or None
Records: TypeAlias = Any  # an array or a tensor, [N, ...]
Gradients: TypeAlias = np.ndarray | Iterable[np.ndarray]  # [N, P], or blocks [B, P] of it
Inverse: TypeAlias = Any  # [P, P], or an object with `vectors` [P, P] and `weights` [P], or several of these
Regressor: TypeAlias = Any  # settings of a network or of trees
