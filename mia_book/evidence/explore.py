"""Charts that readers can move, drawn from a run's own arrays, and what such charts are made of; `figures.explore` puts
them on the page.

A chart is a specification in Vega-Lite, built with Altair. It holds its data, so these are prepared here to be few: bins in
place of records, and counts or rates at a few hundred thresholds. Its controls are a `slider` or a `choice`, and `words` is
the view that writes what it shows. `rates` is of one attack and a threshold. `two_attacks` sets two side by side: an auditor
looks at records of which some share are members, allows a false positive rate, and puts a price on a wrong accusation.

Shapes: N records, T targets, K false positive rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mia_book.evidence.figures import altair as alt
from mia_lib import drawing, metrics
from mia_lib.errors import MiaError, check_choice
from mia_lib.metrics import ranking

STEPS = 200  # of the slider
# pixels: of a panel, which a page makes as wide as it has room for, and of a line of text
SIDE, LINE = 280, 17
SHADE = "#E2E2E2"  # of rates that fewer than one record would make
# of two histograms, one behind the other
BARS = {"fillOpacity": 0.4, "strokeWidth": 1.5, "binSpacing": 0, "aria": False}
OTHERS = "#8C8C8C"  # colour of the attacks that were not chosen
PER_DECADE = 50  # false positive rates that a reader can choose between one and ten times itself
RECORDS, DOWN = 1000, 20  # records counted, a square each, so many below one another
# where sliders begin: rate allowed; members in percent; right accusations a wrong one costs
FPR, SHARE, COST = 0.01, 50, 10
# in this order who is a member, and who is accused, stands together
OUTCOMES = {
    "members missed": "#A9CDE4",
    "right accusations": drawing.BLUE,
    "wrong accusations": drawing.ORANGE,
    "non-members left alone": "#EDEDED",
}
LINES = {"first": ("solid line", []), "second": ("dashed line", [6, 3])}
Cases = Mapping[str, tuple[Mapping[str, np.ndarray], np.ndarray]]


def rates(scores: Mapping[str, np.ndarray], members, xlabel: str = "score"):
    """An attack from a list and a threshold on a slider: what is called a member, on histograms, in counts and on the ROC.

    A record is called a member when its score reaches the threshold. The ROC has logarithmic axes, is grey where fewer than
    one record would make a rate, and shows the other attacks as thin lines.

    Args:
        scores: attack -> [N], finite, of one target; higher = more likely a member. members: bool [N].
        xlabel: what is on the axis of the histograms, with its unit.

    Returns:
        A chart of Altair with the parameters `attack` and `step`. Its view "said" writes the counts.

    Raises:
        MiaError: no attack, several targets, scores that are not finite, or Altair is missing.
    """
    if not scores:
        raise MiaError("scores is empty: give at least one attack, {name: scores}.")
    bars, points = [], []
    for name, of_attack in scores.items():
        checked, of_members, single = ranking.check_scores(of_attack, members)
        if not single:
            raise MiaError(
                f"scores[{name!r}] have shape {checked.shape}: give those of one target, [N]."
            )
        if not np.isfinite(checked).all():
            raise MiaError(
                f"scores[{name!r}] hold {int((~np.isfinite(checked)).sum())} infinite values, for which an axis "
                "has no room: clip them, which leaves the order of the others alone."
            )
        bars += _bars(name, checked[0], of_members[0])
        points += _points(name, checked[0], of_members[0])
    member_count = int(np.asarray(members).sum())
    other_count = len(members) - member_count
    first = max(
        points[: STEPS + 1], key=lambda row: row["tp"] / member_count - row["fp"] / other_count
    )
    names = list(scores)
    controls = [
        choice("attack", names[0], names, "Attack"),
        slider("step", first["step"], 0, STEPS, 1, f"Threshold (0 lowest, {STEPS} highest)"),
        alt.param("members", value=member_count),
        alt.param("others", value=other_count),
    ]
    curve = alt.NamedData("points")
    chosen = alt.Chart(curve).transform_filter("datum.attack == attack && datum.step == step")
    text = words(
        chosen.transform_calculate(fn="members - datum.tp", tn="others - datum.fp"),
        [
            "'Called members: score of ' + format(datum.threshold, '.4~g') + ' or more'",
            "'Members: ' + datum.tp + ' called (TP), ' + datum.fn + ' missed (FN)'",
            "'Non-members: ' + datum.fp + ' called (FP), ' + datum.tn + ' not (TN)'",
            "'TPR ' + format(datum.tp / members, '.3f') + ', FPR ' + format(datum.fp / others, '.3f')",
        ],
        x=-42,
    )
    left = alt.vconcat(text, _histograms(alt.NamedData("bars"), chosen, xlabel), spacing=8)
    return side_by_side(
        left,
        _roc_of_one(curve, chosen, names, member_count, other_count),
        controls,
        bars=bars,
        points=points,
    )


def thresholds(scores: np.ndarray) -> np.ndarray:
    """Thresholds [`STEPS` + 1] on scores [N], from one that calls all records members to one that
    calls none: half of them spaced evenly on the axis, for the tails, and half evenly in rank, for
    the bulk."""
    low, high = float(scores.min()), float(scores.max())
    above = max(high + 0.02 * ((high - low) or 1), np.nextafter(high, np.inf))
    even = np.linspace(low, above, STEPS // 2 + 1)
    return np.sort(
        np.concatenate(
            [even, np.quantile(scores, np.linspace(0, 1, STEPS // 2 + 2)[1:-1], method="lower")]
        )
    )


def _points(name: str, scores: np.ndarray, members: np.ndarray) -> list[dict]:
    """Counts of members (tp) and of non-members (fp) called members, a row for each threshold."""
    places = thresholds(scores)
    tp, fp = (
        kind.size - np.searchsorted(np.sort(kind), places)
        for kind in (scores[members], scores[~members])
    )
    return [
        {
            "attack": name,
            "step": step,
            "threshold": float(place),
            "tp": int(hits),
            "fp": int(misses),
        }
        for step, (place, hits, misses) in enumerate(zip(places, tp, fp, strict=True))
    ]


def _bars(name: str, scores: np.ndarray, members: np.ndarray) -> list[dict]:
    """Shares of the members and of the non-members in bins of equal width, as in `drawing.histograms`."""
    edges = np.histogram_bin_edges(scores, bins=min(40, max(12, int(np.sqrt(scores.size) * 1.6))))
    rows = []
    for kind, of_kind in (("members", members), ("non-members", ~members)):
        shares = np.histogram(scores[of_kind], edges)[0] / of_kind.sum()
        rows += [
            {
                "attack": name,
                "kind": kind,
                "from": float(low),
                "to": float(high),
                "share": float(share),
            }
            for low, high, share in zip(edges[:-1], edges[1:], shares, strict=True)
        ]
    return rows


def _histograms(bars, chosen, xlabel: str):
    shares = (
        alt.Chart(bars)
        .transform_filter("datum.attack == attack")
        .mark_bar(**BARS)
        .encode(
            alt.X("from:Q", bin="binned", title=xlabel, scale=alt.Scale(zero=False, nice=False)),
            x2="to:Q",
            y=alt.Y("share:Q", title="share of records", stack=None, axis=alt.Axis(tickCount=4)),
            **two_kinds("kind:N", ["members", "non-members"]),
        )
    )
    line = chosen.mark_rule(color=drawing.INK, strokeWidth=2, aria=False).encode(x="threshold:Q")
    called = chosen.mark_rect(color=drawing.INK, opacity=0.06, aria=False).encode(
        x="threshold:Q", x2=alt.value("width")
    )
    return alt.layer(called, shares, line).properties(width=SIDE, height=170)


def _roc_of_one(curve, chosen, names: list[str], members: int, others: int):
    low = min(1 / members, 1 / others) / 1.6
    place = {"fpr": f"max(datum.fp / others, {low})", "tpr": f"max(datum.tp / members, {low})"}
    where, colour = roc_axes(low), attack_colours(names)
    lines = (
        alt.Chart(curve)
        .transform_filter("datum.tp > 0 && datum.fp > 0")
        .transform_calculate(**place)
    )
    # towards higher thresholds first fewer non-members
    step = {"interpolate": "step-before", "aria": False}
    every = lines.mark_line(color=OTHERS, strokeWidth=1, **step).encode(
        **where, detail="attack:N", order="step:Q"
    )
    own = (
        lines.transform_filter("datum.attack == attack")
        .mark_line(strokeWidth=2.5, **step)
        .encode(**where, color=colour, order="step:Q")
    )
    point = (
        chosen.transform_calculate(**place)
        .mark_point(filled=True, size=110, color=drawing.INK, opacity=1, aria=False)
        .encode(**where)
    )
    unseen = unresolved(alt.Chart(alt.Data(values=[{"fpr": 1 / others, "tpr": 1 / members}])))
    return alt.layer(chance_line(where, low), every, own, *unseen, point).properties(
        width=SIDE, height=SIDE
    )


def rates_allowed(cases: Cases) -> tuple[np.ndarray, list[dict]]:
    """False positive rates that can be allowed, and the rates of each attack at them, of cases as for `two_attacks`.

    Returns:
        [K], rising evenly in logarithm to 1 from less than one record would make in any case; and a row for each case and
        attack: "case"; "attack"; "tpr", the true positive rate [K] at each false positive rate allowed, "fpr", the one that
        is then reached, which ties and few non-members may leave below it, means over the targets; "members" and "others", how
        many there are of each in the target that has fewest.
    """
    checked = []
    for case, (scores, members) in cases.items():
        if not scores:
            raise MiaError(
                f"cases[{case!r}] has no scores: give at least one attack, {{name: scores}}."
            )
        for attack, of_attack in scores.items():
            of_targets, checked_members, _ = ranking.check_scores(of_attack, members)
            checked.append((case, attack, of_targets, checked_members))
    if not checked:
        raise MiaError("cases is empty: give at least one, {case: ({attack: scores}, members)}.")
    most = max(
        max(checked_members.sum(1).max(), (~checked_members).sum(1).max())
        for *_, checked_members in checked
    )
    allowed = 10.0 ** (np.arange(-math.ceil(PER_DECADE * math.log10(1.6 * most)), 1) / PER_DECADE)
    rows = []
    for case, attack, of_targets, checked_members in checked:
        rates = []
        for target, members in zip(of_targets, checked_members, strict=True):
            fpr, tpr, _ = metrics.roc_curve(target, members)
            at = np.searchsorted(fpr, allowed * (1 + 1e-12), side="right") - 1
            rates.append((tpr[at], fpr[at]))
        tpr, fpr = np.mean(rates, axis=0)
        rows.append(
            {
                "case": case,
                "attack": attack,
                "tpr": tpr.tolist(),
                "fpr": fpr.tolist(),
                "members": int(checked_members.sum(1).min()),
                "others": int((~checked_members).sum(1).min()),
            }
        )
    return allowed, rows


def two_attacks(cases: Cases, pair: tuple[str, str] | None = None):
    """Two attacks and a case from lists; false positive rate, share of members and cost of a wrong accusation on sliders.

    Both ROCs have logarithmic axes and are grey where fewer than one record would make a rate; a line stands at the rate
    allowed. Of a thousand records a square each says who is accused, rightly or wrongly. Where the rate allowed cannot be
    resolved there are no counts.

    Args:
        cases: case -> (attack -> scores [N] or [T, N], members bool [N] or [T, N]); of several targets rates are means.
            A case need not have all attacks.
        pair: the two attacks it begins with, the first two of the first case by default.

    Returns:
        A chart of Altair with the parameters setting, first, second, power (of ten, the rate), share (in percent) and cost.
        Its view "said" writes the counts.

    Raises:
        MiaError: no case, one without attacks, scores that `metrics.roc_curve` refuses, an unknown attack, or Altair is
            missing.
    """
    allowed, rows = rates_allowed(cases)
    names = list(dict.fromkeys(row["attack"] for row in rows))
    pair = pair or (names[0], names[min(1, len(names) - 1)])
    for name in pair:
        check_choice("pair", name, names)
    steps, start = len(allowed) - 1, int(np.abs(np.log(allowed / FPR)).argmin())
    controls = [
        choice("setting", next(iter(cases)), list(cases), "Case"),
        choice("first", pair[0], names, "First attack"),
        choice("second", pair[1], names, "Second attack"),
        slider(
            "power",
            round((start - steps) / PER_DECADE, 2),
            round(-steps / PER_DECADE, 2),
            0,
            1 / PER_DECADE,
            "False positive rate allowed, power of ten",
        ),
        slider("share", SHARE, 1, 99, 1, "Members among the records, in percent"),
        slider("cost", COST, 0, 100, 1, "Cost of a wrong accusation, in right ones"),
    ]
    here = (
        alt.Chart(alt.NamedData("curves"))
        .transform_filter("datum.case == setting")
        .transform_calculate(place=f"round(power * {PER_DECADE}) + {steps}")
        .transform_calculate(
            seen="power > -log(datum.others * 1.0001) / LN10",
            t="datum.tpr[datum.place]",
            f="datum.fpr[datum.place]",
            one=f"{RECORDS} * share / 100 / datum.members",
        )
        .transform_calculate(
            right=f"{RECORDS} * share / 100 * datum.t",
            missed=f"{RECORDS} * share / 100 * (1 - datum.t)",
            wrong=f"{RECORDS} * (1 - share / 100) * datum.f",
        )
        .transform_calculate(gain="datum.right - cost * datum.wrong")
    )
    left = alt.vconcat(_counts(here), *(_squares(here, role) for role in LINES), spacing=8)
    return side_by_side(
        left, _roc_of_two(here, names, float(allowed[0]), steps), controls, curves=rows
    )


def _counts(here):
    sums, both = {}, here
    for role in LINES:
        flags = {f"{role}_run": f"datum.attack == {role} ? 1 : 0"}
        flags |= {
            f"{role}_{what}": f"datum.attack == {role} ? datum.{what} : 0"
            for what in ("right", "wrong", "missed", "gain")
        }
        both = both.transform_calculate(**flags)
        sums |= {name: f"sum({name})" for name in flags}
    both = both.transform_aggregate(seen="min(seen)", others="min(others)", one="max(one)", **sums)

    def lines(role: str) -> tuple[str, str]:
        def number(what: str) -> str:
            return f"format(datum.{role}_{what}, ',.1f')"

        few = f"datum.{role}_right < 0.999 * datum.one ? 'fewer than ' + format(datum.one, ',.1f') : {number('right')}"
        return (
            f"{role} + (datum.{role}_run ? ': net gain ' + format(datum.{role}_gain, '+,.1f') : ': not run in this case')",
            f"datum.{role}_run ? '  ' + ({few}) + ' right, ' + {number('wrong')} + ' wrong, ' + {number('missed')} + "
            "' missed' : ' '",
        )

    more = "(datum.first_gain > datum.second_gain ? first : second)"
    gap = "abs(datum.first_gain - datum.second_gain)"
    last = (
        f"!datum.first_run || !datum.second_run || first == second ? ' ' : {gap} < 0.05 ? 'Neither gains more' : "
        f"{more} + ' gains ' + format({gap}, ',.1f') + ' more'"
    )
    head = (
        "'At an FPR of ' + format(100 * pow(10, power), '.2~r') + ' %, at a cost of ' + cost + ','"
    )
    seen = [
        f"'of {RECORDS:,} records, ' + {RECORDS // 100} * share + ' members:'",
        *lines("first"),
        *lines("second"),
        last,
    ]
    unseen = [
        "'below resolution: less than one'",
        "'of ' + format(datum.others, ',') + ' non-members'",
    ]
    unseen += ["' '"] * (len(seen) - len(unseen))
    return words(
        both,
        [head, *(f"datum.seen ? {one} : {other}" for one, other in zip(seen, unseen, strict=True))],
    )


def _squares(here, role: str):
    """Squares, one for each record, coloured by `OUTCOMES` in order, column by column."""
    missed, right, wrong, alone = OUTCOMES
    kind = (
        f"datum.square < datum.held - datum.hit ? '{missed}' : datum.square < datum.held ? '{right}' : "
        f"datum.square < datum.held + round(datum.wrong) ? '{wrong}' : '{alone}'"
    )
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=list(OUTCOMES), range=list(OUTCOMES.values())),
        legend=alt.Legend(orient="top", columns=1, symbolType="square")
        if role == "first"
        else None,
    )
    named = alt.TitleParams(
        alt.ExprRef(f"{role} + ' ({LINES[role][0]})'"), anchor="start", fontSize=13
    )
    return (
        here.transform_filter(f"datum.seen && datum.attack == {role}")
        .transform_calculate(
            held=f"{RECORDS // 100} * share",
            hit="round(datum.right)",
            square=f"sequence(0, {RECORDS})",
        )
        .transform_flatten(["square"])
        .transform_calculate(
            kind=kind, x=f"floor(datum.square / {DOWN})", y=f"datum.square % {DOWN}"
        )
        .transform_calculate(x2="datum.x + 0.86", y2="datum.y + 0.86")
        .mark_rect(aria=False)
        .encode(
            alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, RECORDS // DOWN], nice=False)),
            x2="x2:Q",
            y=alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[DOWN, 0], nice=False)),
            y2="y2:Q",
            color=colour,
        )
        .properties(width=SIDE, height=100, title=named)
    )


def _roc_of_two(here, names: list[str], low: float, steps: int):
    where, colour, curves, points = roc_axes(low), attack_colours(names), [], []
    for role, (_, dash) in LINES.items():
        own = here.transform_filter(f"datum.attack == {role}")
        curves.append(
            own.transform_calculate(step=f"sequence(0, {steps + 1})")
            .transform_flatten(["tpr", "step"])
            .transform_calculate(
                fpr=f"pow(10, (datum.step - {steps}) / {PER_DECADE})", tpr=f"max(datum.tpr, {low})"
            )
            .mark_line(strokeWidth=2.5, strokeDash=dash, interpolate="step-after", aria=False)
            .encode(**where, color=colour, order="step:Q")
        )
        points.append(
            own.transform_filter("datum.seen")
            .transform_calculate(fpr="pow(10, power)", tpr=f"max(datum.t, {low})")
            .mark_point(filled=True, size=90, opacity=1, aria=False)
            .encode(**where, color=colour)
        )
    corner = here.transform_aggregate(
        members="min(members)", others="min(others)"
    ).transform_calculate(fpr="1 / datum.others", tpr="1 / datum.members")
    rule = (
        alt.Chart(alt.Data(values=[{}]))
        .transform_calculate(fpr="pow(10, power)")
        .mark_rule(color=drawing.INK, aria=False)
        .encode(where["x"])
    )
    return alt.layer(
        chance_line(where, low), *curves, *unresolved(corner), rule, *points
    ).properties(width=SIDE, height=SIDE)


# ------------------------------------------------------------------------------------------------- what charts are made of


def slider(name: str, value: float, low: float, high: float, step: float, label: str):
    """A parameter that a reader moves from low to high."""
    return alt.param(
        name, value=value, bind=alt.binding_range(min=low, max=high, step=step, name=f"{label} ")
    )


def choice(name: str, value: str, options: Sequence[str], label: str):
    """A parameter that a reader chooses from a list."""
    return alt.param(
        name, value=value, bind=alt.binding_select(options=list(options), name=f"{label} ")
    )


def words(chart, lines: Sequence[str], x: float = 0, width: float = SIDE):
    """The view "said", which shows a chart's first row as lines of text, each an expression of
    Vega; `book/_static/explore.js` reads it to those who cannot see it. `x` and `width` are in
    pixels."""
    return (
        chart.transform_calculate(lines=f"[{', '.join(lines)}]")
        .mark_text(align="left", baseline="top", lineHeight=LINE)
        .encode(x=alt.value(x), y=alt.value(0), text="lines:N")
        .properties(name="said", width=width, height=LINE * len(lines))
    )


def side_by_side(left, right, controls: Sequence, **datasets: list[dict]):
    """Two views with their controls, side by side, or one below the other on a narrow page;
    `datasets` are rows of data by the names that the views read."""
    both = alt.concat(
        left, right, columns=2, spacing=24, **({"datasets": datasets} if datasets else {})
    )
    return both.resolve_scale(color="independent").add_params(*controls)


def two_kinds(field: str, kinds: Sequence[str]) -> dict:
    """Encodings of `BARS` for two kinds, members first, in a field such as "kind:N": outlines tell
    the kinds apart, too."""
    scale = alt.Scale(
        domain=list(kinds),
        range=[drawing.STYLE[kind]["color"] for kind in ("members", "non-members")],
    )
    dashes = alt.Scale(domain=list(kinds), range=[[1, 0], [4, 2]])
    return {
        "color": alt.Color(field, title=None, legend=alt.Legend(orient="top"), scale=scale),
        "stroke": alt.Stroke(field, legend=None, scale=scale),
        "strokeDash": alt.StrokeDash(field, legend=None, scale=dashes),
    }


def attack_colours(names: Sequence[str]):
    """Encoding that gives the attack in field `attack` the colour it has in all figures."""
    return alt.Color(
        "attack:N",
        legend=None,
        scale=alt.Scale(
            domain=list(names),
            range=[drawing.style_of(name, number)["color"] for number, name in enumerate(names)],
        ),
    )


def roc_axes(low: float) -> dict:
    """Encodings of the fields `fpr` and `tpr` on logarithmic axes from the lowest rate `low` to 1;
    on linear axes for 0."""
    if low:
        axis = alt.Axis(
            format="~g", values=[10.0**power for power in range(math.ceil(math.log10(low)), 1)]
        )
        scale = alt.Scale(type="log", domain=[low, 1], nice=False)
    else:
        axis, scale = alt.Axis(tickCount=5), alt.Scale(domain=[0, 1])
    return {
        "x": alt.X("fpr:Q", title="false positive rate", scale=scale, axis=axis),
        "y": alt.Y("tpr:Q", title="true positive rate", scale=scale, axis=axis),
    }


def chance_line(where: Mapping, low: float):
    """ROC of guessing, as a line on the axes of `roc_axes`."""
    return (
        alt.Chart(alt.Data(values=[{"fpr": low, "tpr": low}, {"fpr": 1, "tpr": 1}]))
        .mark_line(color=drawing.FAINT, strokeDash=[2, 4], strokeWidth=1.2, aria=False)
        .encode(**where)
    )


def unresolved(corner) -> list:
    """Shades over the rates too low to be resolved: those below `fpr` and `tpr` in the one row of
    the chart `corner`."""
    shade = corner.mark_rect(color=SHADE, opacity=1, aria=False)
    return [
        shade.encode(x="fpr:Q", x2=alt.value(0)),
        shade.encode(y="tpr:Q", y2=alt.value("height")),
    ]
