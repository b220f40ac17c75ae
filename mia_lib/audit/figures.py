"""The figures of an audit, each drawn for a light and for a dark page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from mia_lib.audit.judging import Blind, Group, Judged
from mia_lib.evidence import panels, plotting
from mia_lib.metrics import Interval

GROUND, LETTERS, GRID, SHADE = {"light": "#ffffff", "dark": "#14181e"}, {"light": "#222832", "dark": "#ced6dd"}, {
    "light": "#e4e4e4", "dark": "#39424e"}, {"light": "#e9e9ec", "dark": "#232a33"}
LINES = 5  # curves at most
PALE = {"#222222": "#d7dde4", "#0072B2": "#55b0ea"}  # colours that a dark page swallows


def both(draw: Callable[[str], Figure]) -> dict[str, str]:
    """A figure as "light" and "dark", SVG in base64, the same from the same numbers."""
    found = {}
    for theme in GROUND:
        panels.set_style()
        look = {name: LETTERS[theme] for name in ("text.color", "axes.labelcolor", "xtick.color", "ytick.color",
                                                  "axes.edgecolor")}
        with rc_context({**look, "figure.facecolor": GROUND[theme], "axes.facecolor": GROUND[theme], "grid.color": GRID[theme],
                         "savefig.facecolor": GROUND[theme], "svg.hashsalt": "mia", "figure.constrained_layout.use": True}):
            figure, svg = draw(theme), io.BytesIO()
            figure.savefig(svg, format="svg", metadata={"Date": None})
            plt.close(figure)
        found[theme] = base64.b64encode(svg.getvalue()).decode()
    return found


def _colour(name: str, place: int, theme: str) -> dict:
    look = dict(plotting.style_of(name, place))
    if theme == "dark":
        look["color"] = PALE.get(look["color"], look["color"])
    return look


def _across(ax, found: Interval, y: float, **look) -> None:
    """An estimate with its interval, lying."""
    ax.errorbar(found.value, y, xerr=[[max(0, found.value - found.low)], [max(0, found.high - found.value)]], fmt="o",
                capsize=3, **look)


def roc(judged: tuple[Judged, ...], headline: str, members: int, others: int) -> dict[str, str]:
    """ROC on logarithmic axes with a band for the attack that speaks for the audit; the others that find most beside it."""
    shown = sorted((one for one in judged if not one.audits), key=lambda one: (one.name != headline, -one.auc.value))[:LINES]
    low = min(1 / members, 1 / others) / 1.5

    def draw(theme: str) -> Figure:
        figure, ax = plt.subplots(figsize=(5.4, 5.9))
        for place, one in enumerate(shown):
            look = _colour(one.name, place, theme)
            tpr, floor, ceiling = (np.maximum(part, low / 2) for part in (one.curve.tpr, one.curve.low, one.curve.high))
            speaks = one.name == headline
            ax.plot(one.curve.fpr, tpr, label=one.name, drawstyle="steps-post", color=look["color"], ls=look["linestyle"],
                    lw=2.4 if speaks else 1.6, zorder=5 if speaks else 3)
            if speaks:
                ax.fill_between(one.curve.fpr, floor, ceiling, step="post", color=look["color"], alpha=0.2, lw=0)
        ax.plot([low, 1], [low, 1], color=LETTERS[theme], ls=(0, (5, 4)), lw=1, label="chance", zorder=1)
        ax.axvspan(low, 1 / others, color=SHADE[theme], lw=0, zorder=6)
        ax.axhspan(low, 1 / members, color=SHADE[theme], lw=0, zorder=6)
        ax.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1), box_aspect=1, xlabel="false positive rate",
               ylabel="true positive rate")
        figure.legend(loc="outside upper center", ncols=2, frameon=False, handlelength=3)
        return figure

    return both(draw)


def areas(judged: tuple[Judged, ...], blind: Blind) -> dict[str, str]:
    """AUC of each attack and of the control, with intervals."""
    rows = [(one.name, one.auc, one.audits) for one in judged] + [("without the model", blind.auc, False)]

    def draw(theme: str) -> Figure:
        figure, ax = plt.subplots(figsize=(5.4, 0.9 + 0.3 * len(rows)))
        for place, (name, auc, audits) in enumerate(rows):
            look = _colour(name, place, theme)
            _across(ax, auc, -place, color=look["color"], mfc=GROUND[theme] if audits else look["color"])
        ax.axvline(0.5, color=LETTERS[theme], ls=(0, (5, 4)), lw=1)
        ax.set_yticks([-k for k in range(len(rows))], [name for name, *_ in rows])
        ax.set(xlabel="AUC (dashed: chance)", ylim=(-len(rows) + 0.4, 0.6))
        ax.grid(axis="y", visible=False)
        return figure

    return both(draw)


def scores(score: np.ndarray, inside: np.ndarray, name: str) -> dict[str, str]:
    """Histograms of an attack's scores."""
    low, high = np.quantile(score, [0.002, 0.998])
    edges = np.linspace(low, high if high > low else low + 1, 36)

    def draw(theme: str) -> Figure:
        figure, ax = plt.subplots(figsize=(5.4, 3.3))
        for kind, held in (("members", inside), ("non-members", ~inside)):
            look = _colour(kind, 0, theme)
            shares = np.histogram(np.clip(score[held], edges[0], edges[-1]), edges)[0] / held.sum()
            ax.stairs(shares, edges, color=look["color"], ls=look["linestyle"], lw=1.8, label=kind)
            ax.stairs(shares, edges, color=look["color"], alpha=0.2, fill=True)
        ax.set(xlabel=f"score of {name}", ylabel="share of records")
        ax.grid(visible=False)
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
        return figure

    return both(draw)


def groups(found: list[Group]) -> dict[str, str]:
    """AUC in each group that has records enough, with intervals that hold together."""
    able = sorted((one for one in found if one.auc is not None), key=lambda one: -one.auc.value)[:30]

    def draw(theme: str) -> Figure:
        figure, ax = plt.subplots(figsize=(5.4, 0.9 + 0.27 * max(2, len(able))))
        for place, one in enumerate(able):
            _across(ax, one.auc, -place, color=_colour("members", 0, theme)["color"])
        ax.axvline(0.5, color=LETTERS[theme], ls=(0, (5, 4)), lw=1)
        ax.set_yticks([-k for k in range(len(able))], [one.name[:24] for one in able])
        ax.set(xlabel="AUC (dashed: chance)", ylim=(-max(2, len(able)) + 0.4, 0.6))
        ax.grid(axis="y", visible=False)
        return figure

    return both(draw)
