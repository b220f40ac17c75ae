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
from mia_lib.audit.statistics import AttackResult, InputOnlyCheck
from mia_lib.evidence import plotting

LINES = 5  # curves at most
GRID, SHADE = "#e4e4e4", "#e9e9ec"
# What a dark page has in the place of colours that it would swallow.
DARK = {"#ffffff": "#14181e", plotting.INK: "#ced6dd", "#262626": "#ced6dd",
        GRID: "#39424e", SHADE: "#232a33", plotting.BLUE: "#55b0ea"}


def both(figure: Figure) -> dict[str, str]:
    """A figure as "light" and "dark", SVG in base64, the same from the same numbers."""
    svg = io.BytesIO()
    with rc_context({"svg.hashsalt": "mia"}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
    plt.close(figure)
    light = re.sub(r"<!--.*?-->|\n\s*", " ", svg.getvalue().decode())  # a tenth is indentation
    colours = {name.lower(): other for name, other in DARK.items()}
    dark = re.sub("#[0-9a-f]{6}", lambda colour: colours.get(colour[0], colour[0]), light)
    return {name: base64.b64encode(drawn.encode()).decode() for name, drawn in (("light", light), ("dark", dark))}


def _place(name: str) -> int:
    """By which an attack without a look of its own has the same in all figures."""
    return list(ATTACKS).index(name) if name in ATTACKS else len(ATTACKS)


def roc(attacks: tuple[AttackResult, ...], best: str, members: int, others: int) -> Figure:
    """ROC on logarithmic axes with a band for the attack that speaks for the audit; the others that find most beside it."""
    plain = [attack for attack in attacks if not attack.audits]
    low = min(1 / members, 1 / others) / 1.5
    figure, [ax] = plotting.panels(1, 5.9, width=5.4)
    for attack in sorted(plain, key=lambda attack: (attack.name != best, -attack.auc.value))[:LINES]:
        look, speaks, curve = plotting.style_of(attack.name, _place(attack.name)), attack.name == best, attack.roc
        tpr, floor, ceiling = (np.maximum(part, low / 2) for part in (curve.tpr, curve.low, curve.high))
        ax.plot(curve.fpr, tpr, label=attack.name, drawstyle="steps-post", color=look["color"], ls=look["linestyle"],
                lw=2.4 if speaks else 1.6, zorder=5 if speaks else 3)
        if speaks:
            ax.fill_between(curve.fpr, floor, ceiling, step="post", color=look["color"], alpha=0.2, lw=0)
    ax.plot([low, 1], [low, 1], color=plotting.INK, ls=(0, (5, 4)), lw=1, label="chance", zorder=1)
    ax.axvspan(low, 1 / others, color=SHADE, lw=0, zorder=6)
    ax.axhspan(low, 1 / members, color=SHADE, lw=0, zorder=6)
    ax.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1), box_aspect=1, xlabel="false positive rate",
           ylabel="true positive rate")
    plotting.legend(figure, 2)
    return figure


def areas(attacks: tuple[AttackResult, ...], control: InputOnlyCheck | None) -> Figure:
    """AUC of each attack and of the control, if there is one, with intervals; audit tools hollow."""
    rows = [(attack.name, attack.auc, attack.audits) for attack in attacks]
    rows += [("without the model", control.auc, False)] if control else []
    figure, [ax] = plotting.panels(1, 0.9 + 0.3 * max(2, len(rows)), width=5.4)
    for place, (name, auc, hollow) in enumerate(rows):
        colour = plotting.style_of(name, _place(name))["color"]
        ax.errorbar(auc.value, -place, xerr=[[max(0, auc.value - auc.low)], [max(0, auc.high - auc.value)]], fmt="o",
                    capsize=3, color=colour, mfc="#ffffff" if hollow else colour)
    ax.axvline(0.5, color=plotting.INK, ls=(0, (5, 4)), lw=1)
    ax.set_yticks([-place for place in range(len(rows))], [name for name, *_ in rows])
    ax.set(xlabel="AUC (dashed: chance)", ylim=(-max(2, len(rows)) + 0.4, 0.6))
    ax.grid(axis="y", visible=False)
    return figure


def scores(score: np.ndarray, inside: np.ndarray, name: str) -> Figure:
    """Histograms of an attack's scores; what lies far out is in the last bins."""
    low, high = np.quantile(score, [0.002, 0.998])
    edges = np.linspace(low, high if high > low else low + 1, 36)
    figure, [ax] = plotting.panels(1, 3.3, "share of records", width=5.4)
    for kind, side in (("members", inside), ("non-members", ~inside)):
        look = plotting.STYLE[kind]
        shares = np.histogram(np.clip(score[side], edges[0], edges[-1]), edges)[0] / side.sum()
        ax.stairs(shares, edges, color=look["color"], ls=look["linestyle"], lw=1.8, label=kind)
        ax.stairs(shares, edges, color=look["color"], alpha=0.2, fill=True)
    ax.set_xlabel(f"score of {name}" if name != "score" else "score")
    ax.grid(visible=False)
    plotting.legend(figure, 2)
    return figure
