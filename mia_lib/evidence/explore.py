"""Charts that readers can move, drawn from a run's own arrays, and what such charts are made of; `plotting.explore` puts
them on the page.

A chart is a specification in Vega-Lite, built with Altair. It holds its data, so these are prepared here to be few: bins in
place of records, and counts at a few hundred thresholds. Its controls are a `slider` or a `choice`, and `words` is the view
that writes what it shows.

Shapes: N records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mia_lib.errors import MiaError
from mia_lib.evidence import plotting
from mia_lib.metrics import ranking

STEPS = 200  # of the slider
SIDE, LINE = 280, 17  # pixels: of a panel, which a page makes as wide as it has room for, and of a line of text
SHADE = "#E2E2E2"  # of rates that fewer than one record would make
BARS = {"fillOpacity": 0.4, "strokeWidth": 1.5, "binSpacing": 0, "aria": False}  # of two histograms, one behind the other
OTHERS = "#8C8C8C"  # colour of the attacks that were not chosen
COUNTS = {"fn": "members - datum.tp", "tn": "others - datum.fp"}


def rates(scores: Mapping[str, np.ndarray], members, xlabel: str = "score"):
    """An attack from a list and a threshold on a slider: what is called a member, on histograms, in counts and on the ROC.

    A record is called a member when its score reaches the threshold. The slider goes through `thresholds`. The ROC has
    logarithmic axes, is grey where fewer than one record would make a rate, and shows the other attacks as thin lines.

    Args:
        scores: attack -> [N], finite; higher = more likely a member.
        members: bool [N].
        xlabel: what is on the axis of the histograms, with its unit.

    Returns:
        A chart of Altair with the parameters `attack` and `step`. Its view "said" writes the counts.

    Raises:
        MiaError: no attack, several targets, scores that are not finite, or Altair is missing.
    """
    if not scores:
        raise MiaError("scores is empty: give at least one attack, {name: scores}.")
    alt = plotting.altair()
    bars, points = [], []
    for name, of_attack in scores.items():
        checked, of_members, single = ranking.check_scores(of_attack, members)
        if not single:
            raise MiaError(f"scores[{name!r}] have shape {checked.shape}: give those of one target, [N].")
        if not np.isfinite(checked).all():
            raise MiaError(f"scores[{name!r}] hold {int((~np.isfinite(checked)).sum())} infinite values, for which an axis "
                           "has no room: clip them, which leaves the order of the others alone.")
        bars += _bars(name, checked[0], of_members[0])
        points += _points(name, checked[0], of_members[0])
    inside = int(np.asarray(members).sum())
    outside = len(members) - inside
    first = max(points[:STEPS + 1], key=lambda row: row["tp"] / inside - row["fp"] / outside)
    names = list(scores)
    controls = [choice("attack", names[0], names, "Attack"),
                slider("step", first["step"], 0, STEPS, 1, f"Threshold (0 lowest, {STEPS} highest)"),
                alt.param("members", value=inside), alt.param("others", value=outside)]
    curve = alt.NamedData("points")
    chosen = alt.Chart(curve).transform_filter("datum.attack == attack && datum.step == step")
    text = words(chosen.transform_calculate(**COUNTS), [
        "'Called members: score of ' + format(datum.threshold, '.4~g') + ' or more'",
        "'Members: ' + datum.tp + ' called (TP), ' + datum.fn + ' missed (FN)'",
        "'Non-members: ' + datum.fp + ' called (FP), ' + datum.tn + ' not (TN)'",
        "'TPR ' + format(datum.tp / members, '.3f') + ', FPR ' + format(datum.fp / others, '.3f')"], x=-42)
    left = alt.vconcat(text, _histograms(alt, alt.NamedData("bars"), chosen, xlabel), spacing=8)
    return side_by_side(left, _roc(alt, curve, chosen, names, inside, outside), controls, bars=bars, points=points)


def thresholds(scores: np.ndarray) -> np.ndarray:
    """Places for a threshold: half of them even on the axis, for the tails, and half even in rank, for the bulk.

    Args:
        scores: [N].

    Returns:
        Rising, [`STEPS` + 1]: at the first all records are called members, at the last none.
    """
    low, high = float(scores.min()), float(scores.max())
    above = max(high + 0.02 * ((high - low) or 1), np.nextafter(high, np.inf))
    even = np.linspace(low, above, STEPS // 2 + 1)
    return np.sort(np.concatenate([even, np.quantile(scores, np.linspace(0, 1, STEPS // 2 + 2)[1:-1],
                                                    method="lower")]))


def _points(name: str, scores: np.ndarray, members: np.ndarray) -> list[dict]:
    """Counts of members (tp) and non-members (fp) that are called members, one row a threshold."""
    places = thresholds(scores)
    tp, fp = (kind.size - np.searchsorted(np.sort(kind), places) for kind in (scores[members], scores[~members]))
    return [{"attack": name, "step": step, "threshold": float(place), "tp": int(hits), "fp": int(misses)}
            for step, (place, hits, misses) in enumerate(zip(places, tp, fp, strict=True))]


def _bars(name: str, scores: np.ndarray, members: np.ndarray) -> list[dict]:
    """Shares of the members and of the non-members in bins of equal width, as in `plotting.histograms`."""
    edges = np.histogram_bin_edges(scores, bins=min(40, max(12, int(np.sqrt(scores.size) * 1.6))))
    rows = []
    for kind, of_kind in (("members", members), ("non-members", ~members)):
        shares = np.histogram(scores[of_kind], edges)[0] / of_kind.sum()
        rows += [{"attack": name, "kind": kind, "from": float(low), "to": float(high), "share": float(share)}
                 for low, high, share in zip(edges[:-1], edges[1:], shares, strict=True)]
    return rows


def _histograms(alt, bars, chosen, xlabel: str):
    shares = alt.Chart(bars).transform_filter("datum.attack == attack").mark_bar(**BARS).encode(
        alt.X("from:Q", bin="binned", title=xlabel, scale=alt.Scale(zero=False, nice=False)), x2="to:Q",
        y=alt.Y("share:Q", title="share of records", stack=None, axis=alt.Axis(tickCount=4)),
        **two_kinds("kind:N", ["members", "non-members"]))
    line = chosen.mark_rule(color=plotting.INK, strokeWidth=2, aria=False).encode(x="threshold:Q")
    called = chosen.mark_rect(color=plotting.INK, opacity=0.06, aria=False).encode(x="threshold:Q", x2=alt.value("width"))
    return alt.layer(called, shares, line).properties(width=SIDE, height=170)


def _roc(alt, curve, chosen, names: list[str], members: int, others: int):
    low = min(1 / members, 1 / others) / 1.6
    place = {"fpr": f"max(datum.fp / others, {low})", "tpr": f"max(datum.tp / members, {low})"}
    where, colour = roc_axes(low), attack_colours(names)
    lines = alt.Chart(curve).transform_filter("datum.tp > 0 && datum.fp > 0").transform_calculate(**place)
    step = {"interpolate": "step-before", "aria": False}  # towards higher thresholds first fewer non-members
    every = lines.mark_line(color=OTHERS, strokeWidth=1, **step).encode(**where, detail="attack:N", order="step:Q")
    own = lines.transform_filter("datum.attack == attack").mark_line(strokeWidth=2.5, **step).encode(
        **where, color=colour, order="step:Q")
    point = chosen.transform_calculate(**place).mark_point(
        filled=True, size=110, color=plotting.INK, opacity=1, aria=False).encode(**where)
    unseen = unresolved(alt.Chart(alt.Data(values=[{"fpr": 1 / others, "tpr": 1 / members}])))
    return alt.layer(chance_line(where, low), every, own, *unseen, point).properties(width=SIDE, height=SIDE)


# ------------------------------------------------------------------------------------------------- what charts are made of


def slider(name: str, value: float, low: float, high: float, step: float, label: str):
    """A parameter that a reader moves from low to high."""
    alt = plotting.altair()
    return alt.param(name, value=value, bind=alt.binding_range(min=low, max=high, step=step, name=f"{label} "))


def choice(name: str, value: str, options: Sequence[str], label: str):
    """A parameter that a reader chooses from a list."""
    alt = plotting.altair()
    return alt.param(name, value=value, bind=alt.binding_select(options=list(options), name=f"{label} "))


def words(chart, lines: Sequence[str], x: float = 0, width: float = SIDE):
    """The view "said": what a chart shows as lines of text, told by `book/_static/explore.js` to those who cannot see it.

    Args:
        chart: whose first row the lines are about. lines: each an expression of Vega. x, width: in pixels.
    """
    alt = plotting.altair()
    return chart.transform_calculate(lines=f"[{', '.join(lines)}]").mark_text(
        align="left", baseline="top", lineHeight=LINE).encode(
        x=alt.value(x), y=alt.value(0), text="lines:N").properties(name="said", width=width, height=LINE * len(lines))


def side_by_side(left, right, controls: Sequence, **datasets: list[dict]):
    """Two views with their controls, on a narrow page one below the other; rows of data by the names that the views read."""
    alt = plotting.altair()
    both = alt.concat(left, right, columns=2, spacing=24, **({"datasets": datasets} if datasets else {}))
    return both.resolve_scale(color="independent").add_params(*controls)


def two_kinds(field: str, kinds: Sequence[str]) -> dict:
    """Encodings of `BARS` of two kinds, members first, that are told apart by their outlines, too.

    Args:
        field: that holds the kind, with its type: "kind:N".
        kinds: its two values.
    """
    alt = plotting.altair()
    scale = alt.Scale(domain=list(kinds), range=[plotting.STYLE[kind]["color"] for kind in ("members", "non-members")])
    dashes = alt.Scale(domain=list(kinds), range=[[1, 0], [4, 2]])
    return {"color": alt.Color(field, title=None, legend=alt.Legend(orient="top"), scale=scale),
            "stroke": alt.Stroke(field, legend=None, scale=scale),
            "strokeDash": alt.StrokeDash(field, legend=None, scale=dashes)}


def attack_colours(names: Sequence[str]):
    """The colour of the attack in field `attack`, as in all figures."""
    alt = plotting.altair()
    return alt.Color("attack:N", legend=None, scale=alt.Scale(
        domain=list(names), range=[plotting.style_of(name, number)["color"] for number, name in enumerate(names)]))


def roc_axes(low: float) -> dict:
    """Encodings of fields `fpr` and `tpr` on logarithmic axes from a lowest rate to one; linear ones from 0."""
    alt = plotting.altair()
    if low:
        axis = alt.Axis(format="~g", values=[10.0**power for power in range(math.ceil(math.log10(low)), 1)])
        scale = alt.Scale(type="log", domain=[low, 1], nice=False)
    else:
        axis, scale = alt.Axis(tickCount=5), alt.Scale(domain=[0, 1])
    return {"x": alt.X("fpr:Q", title="false positive rate", scale=scale, axis=axis),
            "y": alt.Y("tpr:Q", title="true positive rate", scale=scale, axis=axis)}


def chance_line(where: Mapping, low: float):
    """What guessing makes, on the axes of `roc_axes`."""
    alt = plotting.altair()
    return alt.Chart(alt.Data(values=[{"fpr": low, "tpr": low}, {"fpr": 1, "tpr": 1}])).mark_line(
        color=plotting.FAINT, strokeDash=[2, 4], strokeWidth=1.2, aria=False).encode(**where)


def unresolved(corner) -> list:
    """Shades of the rates below those of a chart's one row, its fields `fpr` and `tpr`."""
    alt = plotting.altair()
    shade = corner.mark_rect(color=SHADE, opacity=1, aria=False)
    return [shade.encode(x="fpr:Q", x2=alt.value(0)), shade.encode(y="tpr:Q", y2=alt.value("height"))]
