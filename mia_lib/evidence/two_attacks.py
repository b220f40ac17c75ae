"""Two attacks side by side, for readers to choose: whom they accuse rightly and wrongly, and what that is worth.

An auditor looks at records of which some share are members, allows a false positive rate, and puts a price on a wrong
accusation. `chart` lets a reader move all three. It holds rates at a few hundred false positive rates in place of records.

Shapes: N records, T targets, K false positive rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mia_lib import metrics
from mia_lib.errors import MiaError, check_range, choose
from mia_lib.evidence import explore, plotting
from mia_lib.evidence.explore import SIDE
from mia_lib.metrics import ranking

PER_DECADE = 50  # false positive rates that a reader can choose between one and ten times itself
RECORDS, DOWN = 1000, 20  # records counted, a square each, so many below one another
COST = 100  # the highest
KINDS = {"members missed": "#A9CDE4", "right accusations": plotting.BLUE, "wrong accusations": plotting.ORANGE,
         "non-members left alone": "#EDEDED"}  # in this order who is a member, and who is accused, stands together
LINES = {"first": ("solid line", []), "second": ("dashed line", [6, 3])}
Cases = Mapping[str, tuple[Mapping[str, np.ndarray], np.ndarray]]


def curves(cases: Cases) -> tuple[np.ndarray, list[dict]]:
    """False positive rates that can be allowed, and the rates of each attack at them.

    Args:
        cases: as of `chart`.

    Returns:
        [K], rising evenly in logarithm to 1 from less than one record would make in any case; and a row for each case and
        attack: "case"; "attack"; "tpr", the true positive rate [K] at each false positive rate allowed, "fpr", the one that
        is then reached, which ties and few non-members may leave below it, means over the targets; "members" and "others", how
        many there are of each in the target that has fewest.

    Raises:
        MiaError: no case, or one without attacks.
    """
    checked = []
    for case, (scores, members) in cases.items():
        if not scores:
            raise MiaError(f"cases[{case!r}] has no scores: give at least one attack, {{name: scores}}.")
        for attack, of_attack in scores.items():
            of_targets, inside, _ = ranking.check_scores(of_attack, members)
            checked.append((case, attack, of_targets, inside))
    if not checked:
        raise MiaError("cases is empty: give at least one, {case: ({attack: scores}, members)}.")
    most = max(max(inside.sum(1).max(), (~inside).sum(1).max()) for *_, inside in checked)
    allowed = 10.0 ** (np.arange(-math.ceil(PER_DECADE * math.log10(1.6 * most)), 1) / PER_DECADE)
    rows = []
    for case, attack, of_targets, inside in checked:
        rates = []
        for target, members in zip(of_targets, inside, strict=True):
            fpr, tpr, _ = metrics.roc_curve(target, members)
            at = np.searchsorted(fpr, allowed * (1 + 1e-12), side="right") - 1
            rates.append((tpr[at], fpr[at]))
        tpr, fpr = np.mean(rates, axis=0)
        rows.append({"case": case, "attack": attack, "tpr": tpr.tolist(), "fpr": fpr.tolist(),
                     "members": int(inside.sum(1).min()), "others": int((~inside).sum(1).min())})
    return allowed, rows


def chart(cases: Cases, pair: tuple[str, str] | None = None, fpr: float = 0.01, share: float = 0.5, cost: float = 10):
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
    allowed, rows = curves(cases)
    check_range("share", share, 0.01, 0.99)
    check_range("cost", cost, 0, COST)
    check_range("fpr", fpr, float(allowed[0]), 1)
    names = list(dict.fromkeys(row["attack"] for row in rows))
    pair = pair or (names[0], names[min(1, len(names) - 1)])
    for name in pair:
        choose("pair", name, names)
    steps, start = len(allowed) - 1, int(np.abs(np.log(allowed / fpr)).argmin())
    controls = [
        explore.choice("setting", next(iter(cases)), list(cases), "Case"),
        explore.choice("first", pair[0], names, "First attack"), explore.choice("second", pair[1], names, "Second attack"),
        explore.slider("power", round((start - steps) / PER_DECADE, 2), round(-steps / PER_DECADE, 2), 0, 1 / PER_DECADE,
                       "False positive rate allowed, power of ten"),
        explore.slider("share", round(100 * share), 1, 99, 1, "Members among the records, in percent"),
        explore.slider("cost", cost, 0, COST, 1, "Cost of a wrong accusation, in right ones")]
    here = alt.Chart(alt.NamedData("curves")).transform_filter("datum.case == setting").transform_calculate(
        place=f"round(power * {PER_DECADE}) + {steps}").transform_calculate(
        seen="power > -log(datum.others * 1.0001) / LN10", t="datum.tpr[datum.place]", f="datum.fpr[datum.place]",
        one=f"{RECORDS} * share / 100 / datum.members").transform_calculate(
        right=f"{RECORDS} * share / 100 * datum.t", missed=f"{RECORDS} * share / 100 * (1 - datum.t)",
        wrong=f"{RECORDS} * (1 - share / 100) * datum.f").transform_calculate(gain="datum.right - cost * datum.wrong")
    left = alt.vconcat(_counts(here), *(_squares(alt, here, role) for role in LINES), spacing=8)
    return explore.side_by_side(left, _roc(alt, here, names, float(allowed[0]), steps), controls, curves=rows)


def _counts(here):
    """The counts in words."""
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
    seen = [f"'of {RECORDS:,} records, ' + {RECORDS // 100} * share + ' members:'", *lines("first"), *lines("second"), last]
    unseen = ["'below resolution: less than one'", "'of ' + format(datum.others, ',') + ' non-members'"]
    unseen += ["' '"] * (len(seen) - len(unseen))
    return explore.words(both, [head, *(f"datum.seen ? {one} : {other}" for one, other in zip(seen, unseen, strict=True))])


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
    where, colour, curves, points = explore.roc_axes(low), explore.attack_colours(names), [], []
    for role, (_, dash) in LINES.items():
        own = here.transform_filter(f"datum.attack == {role}")
        curves.append(own.transform_calculate(step=f"sequence(0, {steps + 1})").transform_flatten(
            ["tpr", "step"]).transform_calculate(
            fpr=f"pow(10, (datum.step - {steps}) / {PER_DECADE})", tpr=f"max(datum.tpr, {low})").mark_line(
            strokeWidth=2.5, strokeDash=dash, interpolate="step-after", aria=False).encode(
            **where, color=colour, order="step:Q"))
        points.append(own.transform_filter("datum.seen").transform_calculate(
            fpr="pow(10, power)", tpr=f"max(datum.t, {low})").mark_point(
            filled=True, size=90, opacity=1, aria=False).encode(**where, color=colour))
    corner = here.transform_aggregate(members="min(members)", others="min(others)").transform_calculate(
        fpr="1 / datum.others", tpr="1 / datum.members")
    rule = alt.Chart(alt.Data(values=[{}])).transform_calculate(fpr="pow(10, power)").mark_rule(
        color=plotting.INK, aria=False).encode(where["x"])
    return alt.layer(explore.chance_line(where, low), *curves, *explore.unresolved(corner), rule, *points).properties(
        width=SIDE, height=SIDE)
