"""Pieces of figures, in the one look of the book: panels, a legend above them, ticks, lines of chance.

Lines of chance and other levels to read by are `axis.axhline(0.5, **CHANCE)`, what a paper printed is
`axis.plot(x, y, marker=..., mec=..., **HOLLOW)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

WIDTH = 7.0  # inches
INK, FAINT = "#222222", "#767676"
CHANCE = {"color": FAINT, "ls": (0, (4, 3)), "lw": 1.2}
PRINTED = "printed in the paper"
HOLLOW = {"ls": "none", "mfc": "white", "mew": 1.5, "ms": 7, "zorder": 5}


def set_style() -> None:
    """Set the look of the book for all figures made after."""
    import seaborn as sns  # takes a second, which who draws nothing need not wait

    sns.set_theme(context="paper", style="ticks", rc={
        "figure.figsize": (WIDTH, 4.2), "figure.dpi": 100, "figure.facecolor": "white",
        "figure.constrained_layout.use": True, "savefig.facecolor": "white", "savefig.transparent": False,
        "axes.facecolor": "white", "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK,
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#E4E4E4",
        "grid.linewidth": 0.7, "axes.axisbelow": True, "font.family": "DejaVu Sans", "font.size": 10,
        "axes.titlesize": 11, "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9,
        "legend.fontsize": 9, "legend.frameon": False, "lines.linewidth": 2.0, "lines.markersize": 6,
    })


def grid(titles: int | Sequence[str] = 1, height: float = 4.2, ylabel: str = "", rows: int = 1, width: float = WIDTH,
         **shared) -> tuple[Figure, np.ndarray]:
    """A figure of panels side by side.

    Args:
        titles: of the panels, or how many there are.
        height, width: of the figure, in inches.
        ylabel: of the first panel of each row.
        rows: of panels; places left over in the last one stay empty.
        shared: `sharex` and `sharey`, as in `matplotlib.pyplot.subplots`.

    Returns:
        The figure and its axes in the order of reading, those of empty places last.
    """
    set_style()
    count = titles if isinstance(titles, int) else len(titles)
    columns = math.ceil(count / rows)
    figure, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **shared)
    for axis in axes[:, 0]:
        axis.set_ylabel(ylabel)
    for axis, title in zip(axes.flat, () if isinstance(titles, int) else titles, strict=False):
        axis.set_title(title)
    for axis in axes.flat[count:]:
        axis.axis("off")
    return figure, axes.ravel()


def legend(figure: Figure, columns: int = 2, axes: Iterable[Axes] | None = None, marks: Mapping[str, Line2D] | None = None,
           **options) -> Legend | None:
    """One legend above all panels, in which each name stands once; none where there are no names.

    Args:
        figure: whose panels have labels.
        columns: at most; fewer where the names would not fit the width.
        axes: whose labels it shows; of all panels by default.
        marks: name -> mark of what stands after them.
    """
    handles = {}
    for axis in figure.axes if axes is None else axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    handles |= marks or {}
    for count in range(min(columns, len(handles)), 0, -1):
        made = figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=count,
                             **{"handlelength": 3, **options})
        if count == 1 or made.get_window_extent().width <= figure.bbox.width:
            return made
        made.remove()


def ticks(axis: Axis, at: Sequence[float], names: Sequence[str] | None = None) -> None:
    """Ticks of an axis (`axes.xaxis`) at these places and nowhere else, by default named by their numbers."""
    axis.set_ticks(at, [f"{value:g}" for value in at] if names is None else names)
    axis.set_minor_locator(plt.NullLocator())


def sparse_markers(place: int, points: int = 400) -> dict:
    """Three or four marks on the `place`-th curve of so many points, each curve's at other points, for who sees no colours."""
    gap = points // 4
    return {"markevery": (gap // 4 + 29 * place % gap, gap), "markersize": 5}


def hollow(marker: str = "o", color: str = FAINT) -> Line2D:
    """A mark of `HOLLOW` for a legend."""
    return Line2D([], [], marker=marker, mec=color, **HOLLOW)
