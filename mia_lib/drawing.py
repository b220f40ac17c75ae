"""One look for all figures: each attack keeps its colour, line and marker in every one.

Figures are drawn 7 inches wide for 700 pixels on a page, so that type of 10 points is read as 14 pixels. `roc`,
`histograms` and `lineplot` return a matplotlib `Figure`; others are made of `panels`, `legend` and `ticks`, with lines of
chance as `axis.axhline(0.5, **CHANCE)` and what a paper printed as `axis.plot(x, y, marker=..., mec=..., **HOLLOW)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from mia_lib import metrics
from mia_lib.attacks import registry
from mia_lib.checks import Members, check_flag, check_numbers
from mia_lib.errors import MiaError, check_type
from mia_lib.metrics import ranking

WIDTH, DPI = 7.0, 200  # inches; twice the page's 100 pixels an inch
INK, FAINT = "#222222", "#767676"
CHANCE = {"color": FAINT, "ls": (0, (4, 3)), "lw": 1.2}
PRINTED = "printed in the paper"
HOLLOW = {"ls": "none", "mfc": "white", "mew": 1.5, "ms": 7, "zorder": 5}

# Hues of Okabe and Ito (2008), darker: each has 3:1 on white, which their orange and sky blue have not, and the nearest two
# are further apart than theirs, with all kinds of cones and without any one. Yellow is too pale for lines.
COLORS = {
    "black": "#222222",
    "orange": "#C88600",
    "sky": "#3A9ADB",
    "green": "#007F5C",
    "blue": "#00478F",
    "red": "#B5360B",
    "pink": "#AA4A88",
}
BLACK, ORANGE, SKY, GREEN, BLUE, RED, PINK = COLORS.values()
LINES = {
    "dots": (0, (1, 1)),
    "dashes": (0, (5, 1, 1, 1)),
    "dash-dots": (0, (3, 1, 1, 1)),
    "long": (0, (7, 2)),
    "wide": (0, (6, 2)),
    "short": (0, (2, 1.5)),
    "wide-dots": (0, (6, 2, 2, 2)),
}


def _style(look: str) -> dict:
    """Options of matplotlib for a look such as "blue -- ^": colour, line and marker."""
    color, line, marker = look.split()
    return {"color": COLORS[color], "linestyle": LINES.get(line, line), "marker": marker}


VARIANTS = {  # that only a chapter knows, and what is no attack
    "Shadow models": "orange -. d",
    "MAST (mean out)": "red dashes v",
    "MATT": "green - D",
    "Cal.-F": "green dashes D",
    "LiRA, as released": "sky : h",
    "LiRA, one spread": "blue long h",
    "IHA, told nothing": "black -- X",
    "IHA, random flags": "green -. *",
    "IHA with weight decay in I2": "red long *",
    "SIF": "orange -- o",
    "Marginal": "black -. s",
    "Gaussian, q(x, y)": "green - 8",
    "Gaussian, q(x)": "green : ^",
    "LiRA, public records": "blue - p",
    "Gaussian, by the loss": "sky -- >",
    "members": "blue - o",
    "non-members": "orange -- s",
}
LOOKS = (VARIANTS, *({one.name: one.look, **one.also} for one in registry.ATTACKS.values()))
STYLE = {name: _style(look) for looks in LOOKS for name, look in looks.items() if look}

# Colours, line styles and markers of names without a look. No name has one of these lines with one of these markers, and the
# numbers of lines and markers have no common divisor.
SPARE = (
    ("blue", "orange", "green", "red", "pink", "sky"),
    ("-", "wide", "short", "wide-dots"),
    ("^", "d", "H", "x", "+", "1", "2"),
)


def style_of(name: str, place: int = 0) -> dict:
    """Colour, line style and marker of an attack; other names have the `place`-th spare one.

    Twenty-eight spares differ from one another and from those of names also where no colour is seen.
    """
    return STYLE.get(name) or _style(" ".join(of[place % len(of)] for of in SPARE))


def set_style() -> None:
    """Set the look of the book for all figures made after."""
    import seaborn as sns  # takes a second, which who draws nothing need not wait

    sns.set_theme(
        context="paper",
        style="ticks",
        rc={
            "figure.figsize": (WIDTH, 4.2),
            "figure.dpi": 100,
            "figure.facecolor": "white",
            "figure.constrained_layout.use": True,
            "savefig.facecolor": "white",
            "savefig.transparent": False,
            "axes.facecolor": "white",
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "text.color": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#E4E4E4",
            "grid.linewidth": 0.7,
            "axes.axisbelow": True,
            "font.family": "DejaVu Sans",
            "font.size": 10,
            "axes.titlesize": 11,
            "axes.labelsize": 10,
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "legend.fontsize": 9,
            "legend.frameon": False,
            "lines.linewidth": 2.0,
            "lines.markersize": 6,
        },
    )


def plain(name) -> str:
    """A name of an attack, a class or a set as text that is no formula, whatever stands in it."""
    return str(name).replace("$", r"\$")


def panels(
    titles: int | Sequence[str] = 1,
    height: float = 4.2,
    ylabel: str = "",
    rows: int = 1,
    width: float = WIDTH,
    **shared,
) -> tuple[Figure, np.ndarray]:
    """A figure of panels side by side, and its axes in the order of reading, those of empty places last.

    Args:
        titles: of the panels, or how many there are. ylabel: of the first panel of each row. rows: of panels.
        height, width: of the figure, in inches. shared: `sharex` and `sharey`, as in `matplotlib.pyplot.subplots`.
    """
    set_style()
    count = titles if isinstance(titles, int) else len(titles)
    columns = math.ceil(count / rows)
    figure, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **shared)
    for axis in axes[:, 0]:
        axis.set_ylabel(ylabel)
    for axis, title in zip(axes.flat, () if isinstance(titles, int) else titles, strict=False):
        axis.set_title(plain(title))
    for axis in axes.flat[count:]:
        axis.axis("off")
    return figure, axes.ravel()


def legend(
    figure: Figure,
    columns: int = 2,
    axes: Iterable[Axes] | None = None,
    marks: Mapping[str, Line2D] | None = None,
    **options,
) -> Legend | None:
    """One legend above all panels, in which each name stands once; none where there are no names.

    Args:
        columns: at most; fewer where the names would not fit the width.
        axes: whose labels it shows; of all panels by default. marks: name -> mark of what stands after them.
    """
    handles = {}
    for axis in figure.axes if axes is None else axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    handles |= marks or {}
    for count in range(min(columns, len(handles)), 0, -1):
        made = figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside upper center",
            ncols=count,
            **{"handlelength": 3, **options},
        )
        if count == 1 or made.get_window_extent().width <= figure.bbox.width:
            return made
        made.remove()


def ticks(axis: Axis, at: Sequence[float], names: Sequence[str] | None = None) -> None:
    """Ticks of an axis (`axes.xaxis`) at these places and nowhere else, by default named by their numbers."""
    axis.set_ticks(at, [f"{value:g}" for value in at] if names is None else list(map(plain, names)))
    axis.set_minor_locator(plt.NullLocator())


def sparse_markers(place: int, points: int = 400) -> dict:
    """Options of the `place`-th curve of so many points that give it three or four markers, each
    curve at other points, for readers who see no colours."""
    gap = points // 4
    return {"markevery": (gap // 4 + 29 * place % gap, gap), "markersize": 5}


def hollow() -> Line2D:
    """A mark of `HOLLOW` for a legend."""
    return Line2D([], [], marker="o", mec=FAINT, **HOLLOW)


def _spread(places, gaps, low: float, high: float) -> np.ndarray:
    """Places, each moved as little as it takes for neighbours to keep the mean of their gaps,
    within [low, high]."""
    order = np.argsort(places, kind="stable")
    moved, gaps = np.asarray(places, float)[order], np.broadcast_to(gaps, len(places))[order]
    for _ in range(200):
        for i in range(len(moved) - 1):
            lacking = (gaps[i] + gaps[i + 1]) / 2 - (moved[i + 1] - moved[i])
            if lacking > 0:
                moved[i], moved[i + 1] = moved[i] - lacking / 2, moved[i + 1] + lacking / 2
        moved = np.clip(moved, low + gaps / 2, high - gaps / 2)
    out = np.empty_like(moved)
    out[order] = moved
    return out


def _label(ax, name: str, place: tuple[float, float], color: str, ha: str, va: str):
    """A bold name on the axes, at a place given in fractions of them."""
    dark = [0.7 * channel for channel in to_rgb(color)]  # letters need more contrast than lines
    return ax.text(
        *place,
        plain(name),
        transform=ax.transAxes,
        color=dark,
        fontsize=9.5,
        weight="bold",
        ha=ha,
        va=va,
    )


def rates_at(allowed: np.ndarray, scores: np.ndarray, members: np.ndarray) -> np.ndarray:
    """True positive rates [T, K] at K false positive rates that are allowed, of scores and members [T, N]."""
    rates = []
    for target in zip(scores, members, strict=True):
        fpr, tpr, _ = metrics.roc_curve(*target)
        rates.append(tpr[np.searchsorted(fpr, allowed * (1 + 1e-12), side="right") - 1])
    return np.array(rates)


def roc(
    scores: Mapping[str, np.ndarray],
    members: Members,
    paper: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    printed: str = "",
    band: bool = True,
) -> Figure:
    """ROC on logarithmic axes, where the attacks that matter differ: at low false positive rates.

    With several targets the line is the mean TPR at each FPR and the `band` reaches from the lowest target to the highest.
    Rates that fewer than one record would make cannot be resolved and are shaded.

    Args:
        scores: attack -> [N] or [T, N]. members: bool [N] or [T, N].
        paper: attack -> (FPR, TPR) points that the paper printed, drawn as hollow marks, which a legend calls `printed`.
    """
    check_type("printed", printed, str)
    check_flag("band", band)
    ranking.check_attacks(scores)
    marked = check_type("paper", {} if paper is None else paper, Mapping)
    marked = {str(name): check_numbers("paper", points) for name, points in marked.items()}
    if any(points.ndim != 2 or points.shape[1] != 2 for points in marked.values()):
        raise MiaError("paper holds something else than points (FPR, TPR), [n, 2], of an attack.")
    if far := [name for name, points in marked.items() if (points < 0).any() or (points > 1).any()]:
        raise MiaError(
            f"paper has points of {far[0]} beyond 1, which would be drawn outside: rates are shares, 0.5 for 50 %."
        )
    scores, lines, floors = {str(name): of_attack for name, of_attack in scores.items()}, {}, []
    for name, of_attack in scores.items():
        checked, inside_all, _ = ranking.check_scores(of_attack, members)
        floors.append((1 / (~inside_all).sum(1).min(), 1 / inside_all.sum(1).min()))
        grid = np.geomspace(floors[-1][0], 1, 400)
        lines[name] = grid, rates_at(grid, checked, inside_all)
    many = (
        len(scores) > 5 or max(map(len, scores)) > 15
    )  # names in the margin would take half of the picture
    fig, (ax,) = panels(1, 6.2 if many else 5.6, width=5.8)
    x_floor, y_floor = np.min(floors, axis=0)
    margin = 0.08 if many else 0.05 + 0.016 * max(map(len, scores))  # shaded; the names stand there
    low = min(x_floor, y_floor) ** (1 / (1 - margin))
    ax.set(
        xscale="log",
        yscale="log",
        xlim=(low, 1),
        ylim=(low, 1),
        box_aspect=1,
        xlabel="False positive rate (logarithmic)",
        ylabel="True positive rate (logarithmic)",
    )
    for place, (name, (grid, each)) in enumerate(lines.items()):
        look = style_of(name, place)
        ax.plot(
            grid,
            np.maximum(each.mean(0), low / 10),
            label=plain(name),
            drawstyle="steps-post",
            **sparse_markers(place),
            **look,
        )
        if band and len(each) > 1:
            ax.fill_between(
                grid,
                np.maximum(each.min(0), low / 10),
                each.max(0),
                color=look["color"],
                alpha=0.15,
                lw=0,
                step="post",
            )
    for name, points in marked.items():
        look = style_of(name)
        ax.plot(*points.T, marker=look["marker"], mec=look["color"], **HOLLOW)
    ax.plot([low, 1], [low, 1], zorder=1, **CHANCE)
    # Above the lines: what is under less than one record is not to be read.
    ax.axvspan(low, x_floor, color="#E2E2E2", lw=0, zorder=3)
    ax.axhspan(low, y_floor, color="#E2E2E2", lw=0, zorder=3)
    quiet = {"transform": ax.transAxes, "fontsize": 9, "color": "#555555"}
    ax.text(0.02, 0.012, "shaded: less than one record", zorder=6, **quiet)
    along = {"rotation": 45, "rotation_mode": "anchor", "ha": "left", "va": "top"}
    ax.text(0.55, 0.52, "chance", **along, **quiet)
    marks = {printed: hollow()} if printed and paper else {}
    if many or marks:
        legend(fig, 3, [ax] if many else [], marks)
    if not many:
        _name_curves(
            ax,
            {name: (grid, each.mean(0)) for name, (grid, each) in lines.items()},
            x_floor,
            y_floor,
        )
    return fig


def _name_curves(ax, lines, x_floor: float, y_floor: float) -> None:
    """Write names of curves into the shaded margin, beside the place where each enters: from the
    left, or from below."""

    def fraction(rate):
        return 1 - np.log10(rate) / np.log10(ax.get_xlim()[0])

    left = {name: y[0] for name, (_, y) in lines.items() if y[0] >= y_floor}
    below = {name: x[np.argmax(y >= y_floor)] for name, (x, y) in lines.items() if name not in left}
    ax.figure.canvas.draw()
    for entering, upright in ((left, True), (below, False)):
        texts = [
            _label(
                ax,
                name,
                (0, 0),
                style_of(name, list(lines).index(name))["color"],
                "right" if upright else "center",
                "center" if upright else "top",
            )
            for name in entering
        ]
        boxes = [text.get_window_extent() for text in texts]
        size = ax.get_window_extent()
        gaps = [
            box.height / size.height * 1.1 if upright else box.width / size.width + 0.02
            for box in boxes
        ]
        edge = fraction(y_floor if upright else x_floor)
        places = _spread([fraction(v) for v in entering.values()], gaps, edge, 1) if texts else []
        for text, place in zip(texts, places, strict=True):
            text.set(
                zorder=6,
                position=(fraction(x_floor) - 0.015, place)
                if upright
                else (place, fraction(y_floor) - 0.015),
            )


def histograms(
    scores: Mapping[str, tuple[np.ndarray, np.ndarray]],
    thresholds: Mapping[str, float] | None = None,
    xlabel: str = "score",
) -> Figure:
    """Scores of members and of non-members, one panel an attack.

    Args:
        scores: title -> (scores [N], members bool [N]). thresholds: title -> threshold drawn as a vertical line.
        xlabel: what the scores are, with their unit.
    """
    thresholds = thresholds or {}
    fig, axes = panels(list(scores), 3.4, "density")
    for ax, (title, of_panel) in zip(axes, scores.items(), strict=True):
        values, members, _ = ranking.check_scores(*of_panel)
        low, high = values.min(), values.max()
        coarse = 64 * np.spacing(
            max(abs(low), abs(high))
        )  # no bin is narrower than the rounding of the values
        margin = 0.0 if high - low > coarse else max(coarse, 0.5)
        edges = np.linspace(
            low - margin, high + margin, 1 + min(40, max(12, int(np.sqrt(values.size) * 1.6)))
        )
        for name, kind in (("members", members), ("non-members", ~members)):
            look = STYLE[name]
            bars = {"x": values[kind], "bins": edges, "density": True, "color": look["color"]}
            ax.hist(histtype="stepfilled", alpha=0.3, **bars)
            ax.hist(histtype="step", ls=look["linestyle"], lw=1.8, label=name, **bars)
        if title in thresholds:
            ax.axvline(thresholds[title], color=INK, lw=1.4, ls=":", label="threshold")
        ax.set_xlabel(xlabel)
        ax.grid(False)
    legend(fig, 3)
    return fig


def lineplot(
    frame: pd.DataFrame,
    x: str,
    y: str,
    by: str,
    paper: str | None = None,
    panel: str | None = None,
    log: bool = False,
    percent: bool = False,
    xlabel: str | None = None,
    ylabel: str | None = None,
    chance: float | None = None,
    sharey: bool = True,
    rows: int = 1,
) -> Figure:
    """A quantity with intervals against a parameter, one line an attack, the paper's values as hollow marks.

    Args:
        frame: tidy, one row a point; its columns `low` and `high` are the ends of the interval.
        x, y, by: columns of the parameter (numbers, or names in their order), the estimate and the attack.
        paper: column with the paper's value, NaN where it has none.
        panel: column that gives each of its values a panel.
        log: logarithmic x. percent: y are fractions, printed in percent. chance: level of a dashed line.
        xlabel, ylabel: with units; the column names by default.
        sharey: whether the panels have one vertical axis. rows: of panels.
    """
    missing = [
        c for c in (x, y, by, "low", "high", paper, panel) if c is not None and c not in frame
    ]
    if missing:
        raise MiaError(
            f"frame lacks the columns {', '.join(missing)}: it has {', '.join(map(str, frame))}."
        )
    titles = [""] if panel is None else list(frame[panel].unique())
    fig, axes = panels(titles, 4.0 + 2.6 * (rows - 1), ylabel or y, rows, sharey=sharey)
    names = list(frame[by].unique())
    looks = {name: style_of(name, place) for place, name in enumerate(names)}
    named = not pd.api.types.is_numeric_dtype(frame[x])
    places = {value: place for place, value in enumerate(frame[x].unique())}
    step = np.diff(
        np.sort([np.log10(v) if log else v for v in (range(len(places)) if named else places)])
    )
    gap = 0.04 * (step.min() if len(step) else 1)
    for position, (ax, title) in enumerate(
        zip(axes, titles, strict=False)
    ):  # empty places come last
        is_lowest = position + len(axes) // rows >= len(titles)
        part = frame if panel is None else frame[frame[panel] == title]
        last = {}
        for place, name in enumerate(names):
            points = part[part[by] == name]
            if points.empty:
                continue
            at = points[x].map(places).to_numpy(float) if named else points[x].to_numpy(float)
            shift = gap * (
                place - (len(names) - 1) / 2
            )  # side by side, so that bars do not hide each other
            at = at * 10**shift if log else at + shift
            value, look = points[y].to_numpy(float), looks[name]
            run = np.isfinite(value)  # a line goes on past what only the paper has
            low, high = (points[end].to_numpy(float)[run] for end in ("low", "high"))
            bars = np.maximum(
                [value[run] - low, high - value[run]], 0
            )  # an interval may leave its estimate out
            ax.errorbar(
                at[run], value[run], bars, label=plain(name), capsize=3, elinewidth=1.2, **look
            )
            if paper is not None:
                ax.plot(
                    at,
                    points[paper].to_numpy(float),
                    marker=look["marker"],
                    mec=look["color"],
                    **HOLLOW,
                )
            last[name] = value[run][-1] if run.any() else chance or 0.0
        if chance is not None:
            ax.axhline(chance, **CHANCE)
        if log:
            ax.set_xscale("log")
        shown = list(places) if named else list(part[x].unique())
        ticks(
            ax.xaxis,
            list(places.values()) if named else shown,
            [str(v) if named else f"{v / 1000:g}k" if v >= 1000 else f"{v:g}" for v in shown],
        )
        ax.margins(x=0.1)
        if is_lowest:
            ax.set_xlabel(xlabel or x)
        if percent:
            ax.yaxis.set_major_formatter(lambda rate, _: f"{100 * rate:g} %")
    marks = {PRINTED: hollow()} if paper is not None else {}
    direct = len(last) == len(names) <= 5
    if direct:
        fig.canvas.draw()
        size = ax.get_window_extent()
        heights = [
            (ax.transData.transform((0, end))[1] - size.y0) / size.height for end in last.values()
        ]
        for name, place in zip(last, _spread(heights, 18 / size.height, 0, 1), strict=True):
            _label(ax, name, (1.02, place), looks[name]["color"], "left", "center")
    if marks or not direct:
        legend(fig, 4, [] if direct else None, marks)
    return fig


def pictures(records, rows: Mapping[str, Sequence[int]]) -> Figure:
    """Images of a data set with their classes: a row for each list of record numbers, all lists of
    one length."""
    figure, axes = panels(sum(map(len, rows.values())), 1.3 * len(rows), rows=len(rows))
    for axis, record in zip(axes, [record for row in rows.values() for record in row], strict=True):
        axis.imshow(records.x[record].squeeze(), cmap="gray")
        axis.set_title(plain(records.classes[records.y[record]]), fontsize=7.5)
        axis.set(xticks=[], yticks=[])
        axis.grid(False)
    for axis, title in zip(axes[:: len(axes) // len(rows)], rows, strict=True):
        axis.set_ylabel(title, fontsize=9)
    return figure
