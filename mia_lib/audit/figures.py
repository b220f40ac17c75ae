"""The figures of an audit, each drawn for a light and for a dark page."""

from __future__ import annotations

import base64
import io
import re

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from mia_lib.audit.attacks import ATTACKS
from mia_lib.audit.judging import Blind, Group, Judged
from mia_lib.evidence import panels, plotting
from mia_lib.metrics import Interval

LINES, MOST = 5, 30  # curves, and groups, at most
GRID, SHADE = "#e4e4e4", "#e9e9ec"
# What a dark page has in the place of colours that it would swallow.
DARK = {"#ffffff": "#14181e", panels.INK: "#ced6dd", "#262626": "#ced6dd",
        GRID: "#39424e", SHADE: "#232a33", plotting.BLUE: "#55b0ea"}


def both(figure: Figure) -> dict[str, str]:
    """A figure as "light" and "dark", SVG in base64, the same from the same numbers."""
    svg = io.BytesIO()
    with rc_context({"svg.hashsalt": "mia"}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
    plt.close(figure)
    light = re.sub(r"<!--.*?-->|\n\s*", " ", svg.getvalue().decode())  # a tenth is indentation
    colours = {name.lower(): other for name, other in DARK.items()}
    dark = re.sub("#[0-9a-f]{6}", lambda found: colours.get(found[0], found[0]), light)
    return {name: base64.b64encode(one.encode()).decode() for name, one in (("light", light), ("dark", dark))}


def _across(ax, found: Interval, y: float, **look) -> None:
    """An estimate with its interval, lying."""
    ax.errorbar(found.value, y, xerr=[[max(0, found.value - found.low)], [max(0, found.high - found.value)]], fmt="o",
                capsize=3, **look)


def _rows(ax, names: list[str]) -> None:
    """Names of lying estimates, the first on top, and the line of chance."""
    ax.axvline(0.5, color=panels.INK, ls=(0, (5, 4)), lw=1)
    ax.set_yticks([-k for k in range(len(names))], names)
    ax.set(xlabel="AUC (dashed: chance)", ylim=(-max(2, len(names)) + 0.4, 0.6))
    ax.grid(axis="y", visible=False)


def _place(name: str) -> int:
    """By which an attack without a look of its own has the same in all figures."""
    return list(ATTACKS).index(name) if name in ATTACKS else len(ATTACKS)


def roc(judged: tuple[Judged, ...], headline: str, members: int, others: int) -> Figure:
    """ROC on logarithmic axes with a band for the attack that speaks for the audit; the others that find most beside it."""
    shown = sorted((one for one in judged if not one.audits), key=lambda one: (one.name != headline, -one.auc.value))[:LINES]
    low = min(1 / members, 1 / others) / 1.5
    figure, [ax] = panels.grid(1, 5.9, width=5.4)
    for one in shown:
        look, speaks = plotting.style_of(one.name, _place(one.name)), one.name == headline
        tpr, floor, ceiling = (np.maximum(part, low / 2) for part in (one.curve.tpr, one.curve.low, one.curve.high))
        ax.plot(one.curve.fpr, tpr, label=one.name, drawstyle="steps-post", color=look["color"], ls=look["linestyle"],
                lw=2.4 if speaks else 1.6, zorder=5 if speaks else 3)
        if speaks:
            ax.fill_between(one.curve.fpr, floor, ceiling, step="post", color=look["color"], alpha=0.2, lw=0)
    ax.plot([low, 1], [low, 1], color=panels.INK, ls=(0, (5, 4)), lw=1, label="chance", zorder=1)
    ax.axvspan(low, 1 / others, color=SHADE, lw=0, zorder=6)
    ax.axhspan(low, 1 / members, color=SHADE, lw=0, zorder=6)
    ax.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1), box_aspect=1, xlabel="false positive rate",
           ylabel="true positive rate")
    panels.legend(figure, 2)
    return figure


def areas(judged: tuple[Judged, ...], blind: Blind) -> Figure:
    """AUC of each attack and of the control, with intervals; audit tools hollow."""
    rows = [(one.name, one.auc, one.audits) for one in judged] + [("without the model", blind.auc, False)]
    figure, [ax] = panels.grid(1, 0.9 + 0.3 * len(rows), width=5.4)
    for place, (name, auc, audits) in enumerate(rows):
        colour = plotting.style_of(name, _place(name))["color"]
        _across(ax, auc, -place, color=colour, mfc="#ffffff" if audits else colour)
    _rows(ax, [name for name, *_ in rows])
    return figure


def scores(score: np.ndarray, inside: np.ndarray, name: str) -> Figure:
    """Histograms of an attack's scores; what lies far out is in the last bins."""
    low, high = np.quantile(score, [0.002, 0.998])
    edges = np.linspace(low, high if high > low else low + 1, 36)
    figure, [ax] = panels.grid(1, 3.3, "share of records", width=5.4)
    for kind, held in (("members", inside), ("non-members", ~inside)):
        look = plotting.STYLE[kind]
        shares = np.histogram(np.clip(score[held], edges[0], edges[-1]), edges)[0] / held.sum()
        ax.stairs(shares, edges, color=look["color"], ls=look["linestyle"], lw=1.8, label=kind)
        ax.stairs(shares, edges, color=look["color"], alpha=0.2, fill=True)
    ax.set_xlabel(f"score of {name}")
    ax.grid(visible=False)
    panels.legend(figure, 2)
    return figure


def groups(found: list[Group]) -> Figure:
    """AUC in each group that has records enough, highest first, with intervals widened for their number."""
    able = sorted((one for one in found if one.auc is not None), key=lambda one: -one.auc.value)[:MOST]
    figure, [ax] = panels.grid(1, 0.9 + 0.27 * max(2, len(able)), width=5.4)
    for place, one in enumerate(able):
        _across(ax, one.auc, -place, color=plotting.BLUE)
    _rows(ax, [one.name[:24] for one in able])
    return figure
