"""Two attacks side by side, for readers to choose: whom they accuse rightly and wrongly, and what that is worth.

An auditor looks at records of which some share are members, allows a false positive rate, and puts a price on a wrong
accusation. `chart` lets a reader move all three, `picture` is the same for print. Both hold rates at a few hundred false
positive rates in place of records.

Shapes: N records, T targets, K false positive rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from mia_lib import metrics
from mia_lib.errors import MiaError, check_range, choose
from mia_lib.evidence import panels, plotting
from mia_lib.metrics import ranking

PER_DECADE = 50  # false positive rates that a reader can choose between one and ten times itself
RECORDS, DOWN = 1000, 20  # records counted, a square each, so many below one another
COST = 100  # the highest
SIDE = 280  # pixels; a page makes panels as wide as it has room for
KINDS = {"members missed": "#A9CDE4", "right accusations": plotting.BLUE, "wrong accusations": plotting.ORANGE,
         "non-members left alone": "#EDEDED"}  # in this order who is a member, and who is accused, stands together
SHADE = "#E2E2E2"
LINES = {"first": ("solid line", "-", []), "second": ("dashed line", (0, (5, 2)), [6, 3])}


@dataclass(frozen=True)
class Curve:
    """Rates of one attack in one case.

    Attributes:
        tpr, fpr: [K] true positive rate at each false positive rate allowed, and the one that is then reached, which ties and
            few non-members may leave below it; means over the targets.
        members, others: how many there are of each, in the target that has fewest.
    """

    case: str
    attack: str
    tpr: np.ndarray
    fpr: np.ndarray
    members: int
    others: int


@dataclass(frozen=True)
class Outcome:
    """Expected counts among `RECORDS` records, and what right accusations are worth less the cost of wrong ones."""

    right: float
    wrong: float
    missed: float
    gain: float


def outcome(curve: Curve, place: int, share: float, cost: float) -> Outcome:
    """What an attack comes to at the `place`-th false positive rate, where a share of all records are members."""
    right, missed = RECORDS * share * curve.tpr[place], RECORDS * share * (1 - curve.tpr[place])
    wrong = RECORDS * (1 - share) * curve.fpr[place]
    return Outcome(float(right), float(wrong), float(missed), float(right - cost * wrong))


def curves(cases: Mapping[str, tuple[Mapping[str, np.ndarray], np.ndarray]]) -> tuple[np.ndarray, list[Curve]]:
    """False positive rates that can be allowed, and the rates of each attack at them.

    Args:
        cases: as of `chart`.

    Returns:
        [K], rising evenly in logarithm to 1 from less than one record would make in any case; and a curve for each case
        and attack.

    Raises:
        MiaError: no case, or one without attacks.
    """
    found = []
    for case, (scores, members) in cases.items():
        if not scores:
            raise MiaError(f"cases[{case!r}] has no scores: give at least one attack, {{name: scores}}.")
        for attack, of_attack in scores.items():
            checked, held, _ = ranking.check_scores(of_attack, members)
            found.append((case, attack, checked, held))
    if not found:
        raise MiaError("cases is empty: give at least one, {case: ({attack: scores}, members)}.")
    most = max(max(held.sum(1).max(), (~held).sum(1).max()) for *_, held in found)
    allowed = 10.0 ** (np.arange(-math.ceil(PER_DECADE * math.log10(1.6 * most)), 1) / PER_DECADE)
    made = []
    for case, attack, checked, held in found:
        rates = []
        for target, inside in zip(checked, held, strict=True):
            fpr, tpr, _ = metrics.roc_curve(target, inside)
            at = np.searchsorted(fpr, allowed * (1 + 1e-12), side="right") - 1
            rates.append((tpr[at], fpr[at]))
        tpr, fpr = np.mean(rates, axis=0)
        made.append(Curve(case, attack, tpr, fpr, int(held.sum(1).min()), int((~held).sum(1).min())))
    return allowed, made


def chart(cases: Mapping[str, tuple[Mapping[str, np.ndarray], np.ndarray]], pair: tuple[str, str] | None = None,
          fpr: float = 0.01, share: float = 0.5, cost: float = 10):
    """Two attacks and a case from lists; false positive rate, share of members and cost of a wrong accusation on sliders.

    Both ROCs have logarithmic axes and are grey where fewer than one record would make a rate; a line stands at the rate
    allowed. Of a thousand records a square each says who is accused, rightly or wrongly. Where the rate allowed cannot be
    resolved there are no counts.

    Args:
        cases: case -> (attack -> scores [N] or [T, N], members bool [N] or [T, N]); of several targets rates are means.
            A case need not have all attacks.
        pair: the two attacks it begins with, the first two of the first case by default.
        fpr, share, cost: where sliders begin: the false positive rate allowed; the share of members among the records
            looked at, 0.01 to 0.99; how many right accusations a wrong one costs, 0 to 100.

    Returns:
        A chart of Altair with the parameters setting, first, second, power (of ten, the rate), share (in percent) and cost.
        Its view "said" writes the counts.

    Raises:
        MiaError: no case, one without attacks, scores that `metrics.roc_curve` refuses, a beginning that is out of range, or
            Altair is missing.
    """
    alt = plotting.altair()
    allowed, found, names, pair, start = _begin(cases, pair, fpr, share, cost)
    rows = [{"case": one.case, "attack": one.attack, "tpr": one.tpr.tolist(), "fpr": one.fpr.tolist(),
             "members": one.members, "others": one.others} for one in found]
    steps = len(allowed) - 1
    lists = [alt.param(name, value=value, bind=alt.binding_select(options=options, name=label))
             for name, value, options, label in (("setting", next(iter(cases)), list(cases), "Case "),
                                                 ("first", pair[0], names, "First attack "),
                                                 ("second", pair[1], names, "Second attack "))]
    sliders = [
        alt.param("power", value=round((start - steps) / PER_DECADE, 2), bind=alt.binding_range(
            min=round(-steps / PER_DECADE, 2), max=0, step=1 / PER_DECADE,
            name="False positive rate allowed, power of ten ")),
        alt.param("share", value=round(100 * share), bind=alt.binding_range(
            min=1, max=99, step=1, name="Members among the records, in percent ")),
        alt.param("cost", value=cost, bind=alt.binding_range(
            min=0, max=COST, step=1, name="Cost of a wrong accusation, in right ones "))]
    here = alt.Chart(alt.NamedData("curves")).transform_filter("datum.case == setting").transform_calculate(
        place=f"round(power * {PER_DECADE}) + {steps}").transform_calculate(
        seen="power > -log(datum.others * 1.0001) / LN10", t="datum.tpr[datum.place]", f="datum.fpr[datum.place]",
        one=f"{RECORDS} * share / 100 / datum.members").transform_calculate(
        right=f"{RECORDS} * share / 100 * datum.t", missed=f"{RECORDS} * share / 100 * (1 - datum.t)",
        wrong=f"{RECORDS} * (1 - share / 100) * datum.f").transform_calculate(gain="datum.right - cost * datum.wrong")
    left = alt.vconcat(_said(alt, here), *(_squares(alt, here, role) for role in LINES), spacing=8)
    right = _roc(alt, here, names, float(allowed[0]), steps)
    both = alt.concat(left, right, columns=2, spacing=24, datasets={"curves": rows})
    return both.resolve_scale(color="independent").add_params(*lists, *sliders)


def picture(cases: Mapping[str, tuple[Mapping[str, np.ndarray], np.ndarray]], pair: tuple[str, str] | None = None,
            fpr: float = 0.01, share: float = 0.5, cost: float = 10) -> Figure:
    """What `chart` shows before anybody moved it, with the same arguments."""
    allowed, found, names, pair, place = _begin(cases, pair, fpr, share, cost)
    of_case = {one.attack: one for one in found if one.case == next(iter(cases))}
    figure, axes = panels.grid(1, 4.8)
    axes[0].remove()
    places = figure.add_gridspec(2, 2, width_ratios=[1.05, 1])
    roc = figure.add_subplot(places[:, 0])
    floors = [1 / min(getattr(one, kind) for one in of_case.values()) for kind in ("others", "members")]
    roc.set(xscale="log", yscale="log", xlim=(allowed[0], 1), ylim=(allowed[0], 1), box_aspect=1,
            xlabel="false positive rate", ylabel="true positive rate", title=next(iter(cases)))
    roc.plot([allowed[0], 1], [allowed[0], 1], **panels.CHANCE)
    roc.axvspan(allowed[0], floors[0], color=SHADE, lw=0, zorder=3)
    roc.axhspan(allowed[0], floors[1], color=SHADE, lw=0, zorder=3)
    roc.axvline(allowed[place], color=panels.INK, lw=1)
    handles = []
    for number, (name, (line, style, _)) in enumerate(zip(pair, LINES.values(), strict=True)):
        axis = figure.add_subplot(places[number, 1])
        axis.axis("off")
        if name not in of_case:
            axis.set_title(f"{name} ({line}): not run", fontsize=9, loc="left")
            continue
        curve = of_case[name]
        look = {"color": plotting.style_of(name, names.index(name))["color"], "linestyle": style}
        roc.plot(allowed, np.maximum(curve.tpr, allowed[0] / 10), drawstyle="steps-post", **look)
        handles.append(Line2D([], [], label=name, **look))
        if allowed[place] * 1.0001 < 1 / curve.others:
            axis.set_title(f"{name} ({line}): below resolution", fontsize=9, loc="left")
            continue
        came = outcome(curve, place, share, cost)
        axis.pcolormesh(_image(came, share), cmap=ListedColormap(list(KINDS.values())), vmin=0, vmax=len(KINDS) - 1,
                        edgecolors="white", linewidth=0.6)
        axis.invert_yaxis()
        axis.set_title(f"{name} ({line}): net gain {came.gain:+,.1f}\n{came.right:,.1f} right, {came.wrong:,.1f} wrong, "
                       f"{came.missed:,.1f} missed", fontsize=9, loc="left")
    figure.legend(handles=[*handles, *(Patch(color=color, label=kind) for kind, color in KINDS.items())],
                  loc="outside lower center", ncols=3)
    return figure


def _begin(cases, pair, fpr: float, share: float, cost: float):
    """Rates allowed, curves, names of the attacks, and where a reader begins: the pair and the place of the rate."""
    allowed, found = curves(cases)
    check_range("share", share, 0.01, 0.99)
    check_range("cost", cost, 0, COST)
    check_range("fpr", fpr, float(allowed[0]), 1)
    names = list(dict.fromkeys(one.attack for one in found))
    pair = pair or (names[0], names[min(1, len(names) - 1)])
    for name in pair:
        choose("pair", name, names)
    return allowed, found, names, pair, int(np.abs(np.log(allowed / fpr)).argmin())


def _image(came: Outcome, share: float) -> np.ndarray:
    """Which of `KINDS` each square is, [`DOWN`, `RECORDS` // `DOWN`]."""
    held, right, wrong = round(RECORDS * share), round(came.right), round(came.wrong)
    counts = [held - right, right, wrong, RECORDS - held - wrong]
    return np.repeat(np.arange(len(KINDS)), counts).reshape(-1, DOWN).T


def _said(alt, here):
    """The counts in words, which `book/_static/explore.js` also tells those who cannot see them."""
    sums = {}
    both = here
    for role in LINES:
        flags = {f"{role}_run": f"datum.attack == {role} ? 1 : 0"}
        flags |= {f"{role}_{what}": f"datum.attack == {role} ? datum.{what} : 0"
                  for what in ("right", "wrong", "missed", "gain")}
        both = both.transform_calculate(**flags)
        sums |= {name: f"sum({name})" for name in flags}
    both = both.transform_aggregate(seen="min(seen)", others="min(others)", one="max(one)", **sums)

    def lines(role: str) -> tuple[str, str]:
        def number(what: str) -> str:
            return f"format(datum.{role}_{what}, ',.1f')"

        few = f"datum.{role}_right < 0.999 * datum.one ? 'fewer than ' + format(datum.one, ',.1f') : {number('right')}"
        return (f"{role} + (datum.{role}_run ? ': net gain ' + format(datum.{role}_gain, '+,.1f') : ': not run in this case')",
                f"datum.{role}_run ? '  ' + ({few}) + ' right, ' + {number('wrong')} + ' wrong, ' + {number('missed')} + "
                "' missed' : ' '")

    more = "(datum.first_gain > datum.second_gain ? first : second)"
    apart = "abs(datum.first_gain - datum.second_gain)"
    last = (f"!datum.first_run || !datum.second_run || first == second ? ' ' : {apart} < 0.05 ? 'Neither gains more' : "
            f"{more} + ' gains ' + format({apart}, ',.1f') + ' more'")
    head = "'At an FPR of ' + format(100 * pow(10, power), '.2~r') + ' %, at a cost of ' + cost + ','"
    seen = [head, f"'of {RECORDS:,} records, ' + {RECORDS // 100} * share + ' members:'",
            *lines("first"), *lines("second"), last]
    unseen = [head, "'below resolution: less than one'", "'of ' + format(datum.others, ',') + ' non-members'"]
    unseen += ["' '"] * (len(seen) - len(unseen))
    text = f"datum.seen ? [{', '.join(seen)}] : [{', '.join(unseen)}]"
    return both.transform_calculate(lines=text).mark_text(align="left", baseline="top", lineHeight=17).encode(
        x=alt.value(0), y=alt.value(0), text="lines:N").properties(name="said", width=SIDE, height=17 * len(seen))


def _squares(alt, here, role: str):
    """A square a record: `KINDS`, one after the other, column by column."""
    missed, right, wrong, alone = KINDS
    kind = (f"datum.square < datum.held - datum.hit ? '{missed}' : datum.square < datum.held ? '{right}' : "
            f"datum.square < datum.held + round(datum.wrong) ? '{wrong}' : '{alone}'")
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=list(KINDS), range=list(KINDS.values())),
                       legend=alt.Legend(orient="top", columns=1, symbolType="square") if role == "first" else None)
    named = alt.TitleParams(alt.ExprRef(f"{role} + ' ({LINES[role][0]})'"), anchor="start", fontSize=13)
    return here.transform_filter(f"datum.seen && datum.attack == {role}").transform_calculate(
        held=f"{RECORDS // 100} * share", hit="round(datum.right)", square=f"sequence(0, {RECORDS})").transform_flatten(
        ["square"]).transform_calculate(
        kind=kind, x=f"floor(datum.square / {DOWN})", y=f"datum.square % {DOWN}").transform_calculate(
        x2="datum.x + 0.86", y2="datum.y + 0.86").mark_rect(aria=False).encode(
        alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, RECORDS // DOWN], nice=False)), x2="x2:Q",
        y=alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[DOWN, 0], nice=False)), y2="y2:Q", color=colour).properties(
        width=SIDE, height=100, title=named)


def _roc(alt, here, names: list[str], low: float, steps: int):
    """On logarithmic axes; what fewer than one record would make is shaded."""
    axis = alt.Axis(format="~g", values=[10.0**power for power in range(math.ceil(math.log10(low)), 1)])
    scale = alt.Scale(type="log", domain=[low, 1], nice=False)
    where = {"x": alt.X("x:Q", title="false positive rate", scale=scale, axis=axis),
             "y": alt.Y("y:Q", title="true positive rate", scale=scale, axis=axis)}
    colour = alt.Color("attack:N", legend=None, scale=alt.Scale(
        domain=names, range=[plotting.style_of(name, number)["color"] for number, name in enumerate(names)]))
    layers = []
    for role, (_, _, dash) in LINES.items():
        own = here.transform_filter(f"datum.attack == {role}")
        layers.append(own.transform_calculate(step=f"sequence(0, {steps + 1})").transform_flatten(
            ["tpr", "step"]).transform_calculate(
            x=f"pow(10, (datum.step - {steps}) / {PER_DECADE})", y=f"max(datum.tpr, {low})").mark_line(
            strokeWidth=2.5, strokeDash=dash, interpolate="step-after", aria=False).encode(
            **where, color=colour, order="step:Q"))
        layers.append(own.transform_filter("datum.seen").transform_calculate(
            x="pow(10, power)", y=f"max(datum.t, {low})").mark_point(
            filled=True, size=90, opacity=1, aria=False).encode(**where, color=colour))
    chance = alt.Chart(alt.Data(values=[{"x": low, "y": low}, {"x": 1, "y": 1}])).mark_line(
        color=plotting.FAINT, strokeDash=[2, 4], strokeWidth=1.2, aria=False).encode(**where)
    unseen = here.transform_aggregate(members="min(members)", others="min(others)").transform_calculate(
        x="1 / datum.others", y="1 / datum.members")
    shade = {"color": SHADE, "opacity": 1, "aria": False}
    beside = unseen.mark_rect(**shade).encode(x="x:Q", x2=alt.value(0))
    below = unseen.mark_rect(**shade).encode(y="y:Q", y2=alt.value("height"))
    rule = alt.Chart(alt.Data(values=[{}])).transform_calculate(x="pow(10, power)").mark_rule(
        color=plotting.INK, aria=False).encode(x=alt.X("x:Q", scale=scale))
    lines, points = layers[::2], layers[1::2]
    return alt.layer(chance, *lines, beside, below, rule, *points).properties(width=SIDE, height=SIDE)
