"""Tables, figures and verdicts of the chapter that compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from matplotlib import patheffects
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from mia_lib import metrics
from mia_lib.attacks import ACCESS, REFERENCES
from mia_lib.evidence import claims, panels, plotting
from mia_lib.evidence import tables as results
from mia_lib.metrics.interval import Interval, difference, over_pairs
from mia_lib.papers.compare import study
from mia_lib.papers.compare.attacks import ATTACKS, lacks
from mia_lib.papers.compare.case import Case
from mia_lib.papers.numbers import number

MEASURES = ("auc", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001", "conformal_tpr_at_fpr=0.01")
SHORT = ("malt", "quantile", "gradient", "calibrated", "mast_split", "lira_offline", "lira", "rmia", "curvature")
BESIDE = (*SHORT, "gap", "pinball", "shokri", "forgetting", "attack_r", "mast_softmin", "lira_own")
OF_REFERENCES = ("attack_r", "calibrated", "mast_split", "lira_offline", "lira", "lira_own", "rmia_offline", "rmia")
COLOURS = {"none": plotting.BLUE, "out only": plotting.GREEN, "in and out": plotting.RED}  # of references
FILLS = {"none": "none", "out only": "left", "in and out": "full"}  # of marks, for who tells colours apart badly
PALE = 0.7  # how opaque marks are that are not named; less would leave them under 3:1 on white
MARKS = dict(zip(ACCESS, "so^D", strict=True))
LOOK = {name: plotting.style_of(like) for name, like in (
    ("malt", "MALT"), ("quantile", "Quantile regression"), ("gradient", "0-1"), ("calibrated", "Calibrated loss"),
    ("mast_split", "MAST"), ("lira_offline", "LiRA, as released"), ("lira", "LiRA"), ("lira_own", "LiRA (n = 64)"),
    ("rmia", "RMIA"), ("rmia_offline", "SIF"), ("curvature", "Curvature"), ("attack_r", "MATT"))}
ABOUT = {  # attack -> what it does in one line, if not its docstring says, and what the chapters before call it
    "gap": ("what is classified right is a member", "gap"),
    "malt": ("one threshold on the loss", "LOSS, Yeom, Orig"),
    "margin": ("one threshold on the margin, the score that the quantile regressions look at", "Marginal"),
    "confidence": ("one threshold on the highest probability", "Conf."),
    "entropy": ("one threshold on an entropy that knows the label", ""),
    "gradient": ("one threshold on the length of the record's gradient", "GN"),
    "quantile": ("the score beside a mean and a spread that a network predicts from the record", "Gaussian, q(x, y)"),
    "pinball": ("the score beside quantiles that a network predicts from the record", "pinball, q(x, y)"),
    "shokri": ("a classifier of output vectors, learned on a few models of one's own", ""),
    "forgetting": ("the loss less that of the same model, trained further on public records", "Cal.-F"),
    "attack_r": ("the share of models without the record whose loss is higher", "another form in the curvature chapter"),
    "calibrated": ("the loss less its mean under models without the record", "Cal., MAST (mean out)"),
    "calibrated_confidence": ("the same of the highest probability", "Conf., Cal."),
    "calibrated_gradient": ("the same of the gradient's length", "GN, Cal."),
    "mast_softmin": ("the loss less a soft minimum under models without the record", ""),
    "mast_split": ("the loss less the threshold that best tells models with the record from those without", ""),
    "lira_offline": ("how far the log odds lie above a Gaussian of models without the record; one spread for all", ""),
    "lira_offline_own": ("the same with a spread for each record", ""),
    "rmia_offline": ("the probability over its mean without the record, beside public records", ""),
    "lira": ("log odds under Gaussians of models with and without the record; one spread each for all", ""),
    "lira_own": ("the same with spreads of each record", ""),
    "rmia": ("the probability over its mean with and without the record, beside public records", ""),
    "curvature": ("LiRA of the logarithm of the loss's curvature about the record, by the released code's estimate",
                  "Curv, log ratio"),
    "curvature_lr": ("the same with the released code's likelihoods", "Curv ZO LR"),
    "curvature_nll": ("the same with the released code's logarithms", "Curv ZO NLL"),
    "matt": ("the gradient along the way from a reference's parameters to the target's", ""),
    "influence": ("the record's gradient in the norm of the inverse Hessian", "SIF"),
    "iha": ("how much nearer to a minimum the parameters are with the record than without", ""),
    "gradient_test": ("the same by the gradient's length, without a Hessian", "gradient alone"),
}
FALSE_ALARMS = 10  # expected over all targets, from which on a precision is printed
EXPOSED = 10  # images of the most exposed records
FREE = 1e5  # operations at which what needs none stands on a logarithmic axis, less than any training takes
Plays = Mapping[str, study.Play]


def of(played: study.Play, name: str, metric: str = "auc", minus: str | None = None) -> Interval:
    """A metric of an attack over the targets of a case, or its paired difference from another attack's."""
    return number(played.ranks[name], played.members, metric, None if minus is None else played.ranks[minus],
                  measures=MEASURES)


def _grid(plays: Mapping, height: float, **options):
    """Panels of cases, two in a row."""
    rows = -(-len(plays) // 2)
    return panels.grid(list(plays), height=height * rows, rows=rows, **options)


def title(name: str) -> str:
    """What tables call an attack."""
    return ATTACKS[name].name


def _together(plays: Plays) -> list[str]:
    """Attacks that ran in some case, in the order of `ATTACKS`."""
    return [name for name in ATTACKS if any(name in one.ranks for one in plays.values())]


# -------------------------------------------------------------------------------------------------------------- the tables


def access_table(cases: Mapping[str, Case]) -> pd.DataFrame:
    """What attacks have, as declared where they are computed, those with the same in one row; and the cases they are for."""
    groups: dict[tuple, list[str]] = {}
    for name, attack in ATTACKS.items():
        fits = [case.name for case in cases.values() if not lacks(name, case)]
        said = "all" if len(fits) == len(cases) else ", ".join(fits) or "none of this run"
        groups.setdefault((*attack.needs.place, attack.needs.knows, said), []).append(attack.name)
    return pd.DataFrame([{"access to the target": ACCESS[access], "reference models": REFERENCES[references],
                          "also knows": knows, "attacks": "; ".join(names), "cases": said}
                         for (access, references, knows, said), names in sorted(groups.items())])


def about(name: str) -> tuple[str, str]:
    """What an attack does in one line, from `ABOUT` or else from the first line of its function, and its names elsewhere."""
    if name in ABOUT:
        return ABOUT[name]
    first = (ATTACKS[name].scorer.args[0].__doc__ or "").partition("\n")[0]
    return first.partition(": ")[2].rpartition(" (")[0], ""


def sources_table() -> pd.DataFrame:
    """What each attack does, whose it is, and what other chapters call it."""
    return pd.DataFrame([{
        "attack": attack.name, "in one line": about(name)[0],
        "from": f"{{cite:t}}`{attack.source}`" if attack.source else "this book",
        "elsewhere": about(name)[1] or "–"} for name, attack in ATTACKS.items()])


def _priced(played: study.Play) -> list[str]:
    """Attacks that can be set beside each other: not those that are told who is a member."""
    return [name for name in played.ranks if not ATTACKS[name].audits]


def auc_table(plays: Plays) -> pd.DataFrame:
    """AUC of every attack on every case, with half the width of its interval; the best of a case in bold."""
    best = {case: max(_priced(played), key=lambda name, played=played: of(played, name).value)
            for case, played in plays.items()}
    rows = []
    for name in _together(plays):
        row = {"attack": title(name) + " †" * ATTACKS[name].audits}
        for case, played in plays.items():
            if name not in played.ranks:
                row[case] = results.NOTHING
                continue
            found = of(played, name)
            text = f"{found.value:.3f} ± {(found.high - found.low) / 2:.3f}"
            row[case] = replace(results.cell(found), text=f"**{text}**" if name == best[case] else text)
        rows.append(row)
    return pd.DataFrame(rows)


def accuracy_table(known: Mapping[str, study.Records]) -> pd.DataFrame:
    """Accuracy of the targets on members and on others, in percent, with intervals over pairs of targets; and the least of a
    target on its members."""
    return pd.DataFrame([{"case": case, **{
        words: results.format_percent(over_pairs(values, (0.0, 1.0)))
        for words, values in (("on members", one.train), ("on others", one.test))},
        "on members, the least of a target": results.format_percent(one.train.min())} for case, one in known.items()])


def rates_table(played: study.Play) -> pd.DataFrame:
    """TPR at 1 % and 0.1 % and precision at 1 % at equal odds, with intervals, of one case; and what knows nothing has."""
    rows = [{"attack": "*scores that know nothing*", "TPR at 1 % FPR": results.chance(played.members, 0.01),
             "TPR at 0.1 % FPR": results.chance(played.members, 0.001), "precision at 1 % FPR": results.cell(50, "d", "%")}]
    for name in played.ranks:
        row = {"attack": title(name) + " †" * ATTACKS[name].audits}
        for words, rate in (("TPR at 1 % FPR", 0.01), ("TPR at 0.1 % FPR", 0.001)):
            row[words] = results.format_percent(of(played, name, f"tpr_at_fpr={rate:g}"))
        found = of(played, name, "conformal_tpr_at_fpr=0.01")
        row["precision at 1 % FPR"] = results.format_percent(replace(found, **{
            end: metrics.precision(rate, 0.01, 0.5) for end in ("value", "low", "high")
            if np.isfinite(rate := getattr(found, end))}))
        rows.append(row)
    fine = {"TPR at 1 % FPR": metrics.resolves(played.members, 0.01),
            "TPR at 0.1 % FPR": metrics.resolves(played.members, 0.001),
            "precision at 1 % FPR": (~played.members).sum() * 0.01 >= FALSE_ALARMS}
    for words, enough in fine.items():
        if not enough:
            for row in rows:
                row[words] = results.BELOW
    return pd.DataFrame(rows)


def cost_table(plays: Plays) -> pd.DataFrame:
    """What each attack costs against one target, in the first case that it is for."""
    rows = []
    for name in _together(plays):
        played = next(one for one in plays.values() if name in one.ranks)
        cost = played.costs[name]
        rows.append({"attack": title(name), "case": played.case.name, "models trained": cost.models,
                     "queries a record": cost.queries, "public records asked": results.cell(cost.public, ","),
                     "operations": results.cell(cost.operations, ".1e") if cost.operations else "none",
                     "seconds of one core": results.cell(cost.seconds, ".1f"),
                     "held, MB": results.cell(cost.held / 1e6, ".1f")})
    return pd.DataFrame(rows)


def least_table(swept: Mapping[str, study.Swept]) -> pd.DataFrame:
    """From how many references on each attack is ahead of MALT."""
    rows = []
    for name in next(iter(swept.values())).auc:
        row = {"attack": title(name)}
        for case, one in swept.items():
            leads = zip(one.values, one.beyond(name), strict=True)
            first, ahead = one.first(name), [f"{value:.0f}" for value, lead in leads if lead.sign > 0]
            row[case] = (results.cell(first, ".0f") if first is not None else
                         f"at {', '.join(ahead)}, not at the most" if ahead else "not with those tried")
        rows.append(row)
    return pd.DataFrame(rows)


def swept_table(one: study.Swept) -> pd.DataFrame:
    """AUC and TPR of one case with each number of references, each with half the width of its interval."""
    def said(values: np.ndarray, unit: float, digits: int) -> str:
        found = over_pairs(unit * values)
        return f"{found.value:.{digits}f}" + ("" if np.isnan(found.low) else f" ± {(found.high - found.low) / 2:.{digits}f}")

    return pd.DataFrame([{"attack": title(name), **{
        f"{count:.0f} references": f"{said(auc, 1, 3)}; {said(tpr, 100, 1)}"
        for count, auc, tpr in zip(one.values, one.auc[name], one.tpr[name], strict=True)}} for name in one.auc])


def combined_table(found: Mapping[str, study.Combined]) -> pd.DataFrame:
    """The best attack, the mean of all and the regression on all, and what the last two have over the first."""
    rows = []
    for case, one in found.items():
        for metric, words, by in (("auc", "AUC", "auc"), ("tpr_at_fpr=0.01", "TPR at 1 % FPR", "tpr")):
            best = one.best[by]
            rows.append({"case": case, "metric": words, "best alone": results.cell(_of_ranks(best, one, metric)),
                         "mean of all, less the best": results.cell(_of_ranks(one.vote, one, metric, best)),
                         "regression on all, less the best": results.cell(_of_ranks(one.logistic, one, metric, best)),
                         "the best was": "; ".join(dict.fromkeys(title(name) for name in one.chosen[by]))})
    return pd.DataFrame(rows)


def _of_ranks(ranks: np.ndarray, one, metric: str, minus: np.ndarray | None = None) -> Interval:
    return number(ranks, one.members, metric, minus, measures=MEASURES)


def again_table(found: Mapping[str, study.Again]) -> pd.DataFrame:
    """Repeatability in points, members and false alarms."""
    rows = []
    for case, one in found.items():
        for name in one.members:
            both = {"members called again, beyond all members": one.members,
                    "false alarms again, beyond all strangers": one.strangers}
            rows.append({"case": case, "attack": title(name), **{
                words: results.format_percent(each[name]) for words, each in both.items()}})
    return pd.DataFrame(rows)


def views_table(found: study.Views) -> pd.DataFrame:
    """One view of each image, and two."""
    rows = []
    for name in found.one:
        for metric, words in (("auc", "AUC"), ("tpr_at_fpr=0.01", "TPR at 1 % FPR")):
            rows.append({"attack": title(name), "metric": words,
                         "one view": results.cell(number(found.one[name], found.members, metric, measures=MEASURES)),
                         "two views, less one":
                             results.cell(number(found.two[name], found.members, metric, found.one[name], measures=MEASURES))})
    return pd.DataFrame(rows)


# ------------------------------------------------------------------------------------------------------------- the figures


def frontier(played: study.Play, price) -> list[str]:
    """Attacks that no other beats at the same price or a lower one, those left out that are told who is a member.

    Args:
        price: name -> tuple of numbers; one price is lower where none of its numbers is higher.
    """
    values = {name: float(np.mean(metrics.auc(played.ranks[name], played.members))) for name in _priced(played)}
    return _unbeaten(values, price)


def _unbeaten(value: Mapping, price: Callable) -> list:
    """Of what has a value, that of which nothing at the same price or a lower one has a higher value."""
    def beaten(name) -> bool:
        return any((value[other], other) > (value[name], name) and all(a <= b for a, b in zip(price(other), price(name),
                                                                                              strict=True))
                   for other in value if other != name)

    return [name for name in value if not beaten(name)]


@dataclass(frozen=True)
class Bill:
    """What an attack comes to, and what it spends before the first record is judged; operations, `FREE` at least."""

    auc: Interval
    operations: float
    label: str


def bills(played: study.Play, swept: study.Swept) -> dict[tuple[str, int], Bill]:
    """Each attack with all of its references, and those that take any number with each smaller number that was tried: (name,
    that number, or 0 where it has all) -> its bill."""
    most = swept.values[-1]
    found = {(name, 0): Bill(of(played, name), max(cost.operations, FREE), title(name))
             for name, cost in played.costs.items()}
    return found | {(name, int(count)): Bill(over_pairs(auc), max(played.costs[name].operations * count / most, FREE),
                                             f"{title(name)}, {count:.0f}")
                    for name, rows in swept.auc.items() for count, auc in zip(swept.values[:-1], rows, strict=False)}


def cost_figure(plays: Plays, swept: Mapping[str, study.Swept]) -> Figure:
    """AUC against what is computed before the first record is judged, with the frontier; small: with fewer references."""
    figure, axes = _grid(plays, 3.4, ylabel="AUC")
    for axis, (case, played) in zip(axes, plays.items(), strict=False):
        found = bills(played, swept[case])
        priced = {key: bill.auc.value for key, bill in found.items() if not ATTACKS[key[0]].audits}
        spent = {key: bill.operations for key, bill in found.items()}
        best = sorted(_unbeaten(priced, lambda key, spent=spent: (spent[key],)), key=spent.get)
        for (name, fewer), bill in found.items():
            one, chosen = ATTACKS[name].needs, (name, fewer) in best
            look = {"color": COLOURS[one.references], "marker": MARKS[one.access], "fillstyle": FILLS[one.references],
                    "ls": "none"}
            if chosen or not fewer:
                panels.bars(axis, [bill.operations], [bill.auc], **look, ms=5, alpha=1.0 if chosen else PALE, capsize=0)
            else:
                axis.plot(bill.operations, bill.auc.value, **look, ms=2.5, alpha=PALE)
        axis.set(xscale="log", xlabel="operations (left: none)", xlim=(FREE / 2, None))
        corners = [found[key] for key in best]
        axis.step([one.operations for one in corners], [one.auc.value for one in corners], where="post", color=plotting.INK,
                  lw=1.2, zorder=0)
        _name(axis, [(one.operations, one.auc.value, one.label) for one in corners])
        axis.axhline(0.5, **panels.CHANCE)
    _legend(figure)
    return figure


def knowledge_figure(plays: Plays) -> Figure:
    """AUC against what an attack is given: access to the target from left to right, references by colour and fill."""
    figure, axes = _grid(plays, 3.6, ylabel="AUC")
    for axis, played in zip(axes, plays.values(), strict=False):
        best = frontier(played, lambda name: ATTACKS[name].needs.place)
        named = []
        for name in played.ranks:
            access, references = ATTACKS[name].needs.place
            x, found = access + 0.24 * (references - 1), of(played, name)
            panels.bars(axis, [x], [found], color=COLOURS[REFERENCES[references]], marker=MARKS[ACCESS[access]],
                        fillstyle=FILLS[REFERENCES[references]], ls="none", ms=5,
                        alpha=1.0 if name in best else PALE, capsize=0)
            if name in best:
                named.append((x, found.value, title(name)))
        axis.axhline(0.5, **panels.CHANCE)
        panels.ticks(axis.xaxis, range(len(ACCESS)), [word.replace(" ", "\n") for word in ACCESS])
        axis.set_xlim(-0.5, len(ACCESS) - 0.1)
        _name(axis, named)
    _legend(figure)
    return figure


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    marks = {f"references: {name}": Line2D([], [], ls="none", marker="o", color=colour, fillstyle=FILLS[name])
             for name, colour in COLOURS.items()}
    marks |= {f"sees: {name}": Line2D([], [], ls="none", marker=mark, color=panels.FAINT) for name, mark in MARKS.items()}
    panels.legend(figure, 4, axes=[], marks=marks, handlelength=1.2)


def _name(axis, points: Sequence[tuple[float, float, str]]) -> None:
    """Small names beside points, moved up where they would lie on one another; to the left of those far to the right."""
    axis.autoscale_view()
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + 0.08 * (high - low))
    taken: list[tuple[float, float, float]] = []  # from, to, height
    for x, y, text in sorted(points, key=lambda one: one[1]):
        across, place = axis.transAxes.inverted().transform(axis.transData.transform((x, y))) + (0, 0.015)
        right, width = across > 0.6, 0.019 * len(text)
        low, high = (across - width, across) if right else (across, across + width)
        while any(abs(place - other) < 0.055 and low < to and high > begin for begin, to, other in taken):
            place += 0.01
        taken.append((low, high, place))
        axis.text(across + (-0.02 if right else 0.02), place, text, transform=axis.transAxes, fontsize=7.5,
                  color=plotting.INK, ha="right" if right else "left", va="bottom",
                  path_effects=[patheffects.withStroke(linewidth=1.5, foreground="white", alpha=0.8)])


def references_figure(swept: Mapping[str, study.Swept], names: Sequence[str] = OF_REFERENCES) -> Figure:
    """AUC beyond MALT's against the number of references."""
    return _beyond_figure(swept, names, "references", log=2)


def grown_figure(swept: Mapping[str, study.Swept]) -> Figure:
    """AUC of MALT and of attacks with references against the number of members, and of epochs."""
    figure, axes = panels.grid([one.what for one in swept.values()], height=3.6, ylabel="AUC", sharey=True)
    for axis, one in zip(axes, swept.values(), strict=False):
        for name in one.auc:
            panels.bars(axis, one.values, [of(played, name) for played in one.plays], label=title(name), ms=5, **LOOK[name])
        axis.axhline(0.5, **panels.CHANCE)
        axis.set(xscale="log", xlabel=one.what)
        panels.ticks(axis.xaxis, one.values)
    panels.legend(figure, 5)
    return figure


def public_figure(swept: Mapping[str, study.Swept]) -> Figure:
    """AUC of the regression beyond MALT's against the public records that it learns from."""
    return _beyond_figure(swept, ("quantile",), "public records", log=10)


def _beyond_figure(swept: Mapping[str, study.Swept], names: Sequence[str], xlabel: str, log: int) -> Figure:
    figure, axes = _grid(swept, 3.1, ylabel="AUC beyond MALT's")
    for axis, one in zip(axes, swept.values(), strict=False):
        for place, name in enumerate(names):
            panels.bars(axis, one.values * (1 + 0.02 * place), one.beyond(name), label=title(name), ms=5, **LOOK[name])
        axis.axhline(0, **panels.CHANCE)
        axis.set_xscale("log", base=log)
        axis.set_xlabel(xlabel)
        panels.ticks(axis.xaxis, one.values)
    panels.legend(figure, 4)
    return figure


@cache
def pairs(played: study.Play) -> metrics.Pairs:
    """Every attack of a case against every other, by AUC; not those that are told who is a member."""
    return metrics.pairwise("auc", {name: played.ranks[name] for name in _priced(played)}, played.members, draws=300)


def matrix_figure(played: study.Play) -> Figure:
    """Paired differences of AUC between all attacks; grey where Holm's correction leaves none."""
    found = pairs(played)
    order = np.argsort(-found.value)
    apart = (found.value[:, None] - found.value)[np.ix_(order, order)]
    told = (found.p < 1 - found.level)[np.ix_(order, order)]
    figure, [axis] = panels.grid(height=6.6)
    most = np.abs(apart).max()
    shown = np.ma.masked_where(~told, 100 * apart)
    axis.set_facecolor("#E2E2E2")
    image = axis.imshow(shown, cmap="RdBu", vmin=-100 * most, vmax=100 * most)
    names = [title(found.names[k]) for k in order]
    axis.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    axis.set_yticks(range(len(names)), names, fontsize=7)
    axis.grid(False)
    figure.colorbar(image, ax=axis, label="row less column, points of AUC", shrink=0.7)
    return figure


def ranking_figure(plays: Plays) -> Figure:
    """Ranks of the attacks in each case, and which ranks the differences leave open."""
    places = {case: dict(zip(pairs(one).names, 1 + np.argsort(np.argsort(-pairs(one).value)), strict=True))
              for case, one in plays.items()}
    ranked = [name for name in _together(plays) if any(name in one for one in places.values())]
    names = sorted(ranked, key=lambda name: np.mean([one[name] for one in places.values() if name in one]))
    figure, axes = panels.grid(list(plays), height=0.19 * len(names) + 1.2)
    for axis, (case, played) in zip(axes, plays.items(), strict=False):
        found, place = pairs(played), places[case]
        for row, name in enumerate(names):
            if name in place:
                best, worst = found.ranks()[name]
                axis.plot([best, worst], [row, row], color=COLOURS[ATTACKS[name].needs.references], lw=2.5, alpha=PALE)
                axis.plot(place[name], row, marker=MARKS[ATTACKS[name].needs.access], ms=4.5, ls="none",
                          fillstyle=FILLS[ATTACKS[name].needs.references], color=COLOURS[ATTACKS[name].needs.references])
        axis.set(ylim=(len(names) - 0.5, -0.5), xlabel="rank")
        shown = [title(name) if axis is axes[0] else "" for name in names]
        panels.ticks(axis.yaxis, range(len(names)), shown)
        axis.tick_params(axis="y", labelsize=7)
        axis.title.set_fontsize(7.5)
    _legend(figure)
    return figure


def agreement_figure(plays: Plays, names: Sequence[str] = SHORT) -> Figure:
    """Of the members that either of two attacks calls at 1 % FPR, the share that both call."""
    figure, axes = _grid(plays, 3.9)
    for axis, played in zip(axes, plays.values(), strict=False):
        chosen = [name for name in names if name in played.ranks]
        share = study.agreement(played, chosen)
        axis.imshow(share, cmap="Greens", vmin=0, vmax=1)
        for i, row in enumerate(share):
            for j, value in enumerate(row):
                if i > j:
                    axis.text(j, i, f"{100 * value:.0f}", ha="center", va="center", fontsize=6.5,
                              color="white" if value > 0.6 else plotting.INK)
        axis.set_xticks(range(len(chosen)), [title(name) for name in chosen], rotation=90, fontsize=7)
        axis.set_yticks(range(len(chosen)), [title(name) for name in chosen], fontsize=7)
        axis.grid(False)
    return figure


def exposed_figure(played: study.Play, names: Sequence[str], count: int = EXPOSED) -> Figure:
    """The most exposed records as images, with the attacks that find them under most targets."""
    found = study.exposure(played, names).head(count)
    figure, axes = panels.grid(count, height=4.2, rows=2)
    for axis, (_, row) in zip(axes, found.iterrows(), strict=False):
        record = int(row["record"])
        axis.imshow(played.case.pool.x[record].squeeze(), cmap="gray_r")
        by = [title(name) for name in names if row[name] >= 0.5]
        label = played.case.pool.classes[int(played.case.pool.y[record])]
        axis.set_title(f"{label}\n{100 * row['mean']:.0f} %: {len(by)} of {len(names)}", fontsize=8)
        axis.axis("off")
    return figure


def groups_figure(plays: Plays, hardness: Mapping[str, np.ndarray], names: Sequence[str] = SHORT) -> Figure:
    """Members found beyond the false alarms of their own quarter, by how hard a record is."""
    figure, axes = _grid(plays, 3.1, ylabel="TPR less FPR, points")
    for axis, (case, played) in zip(axes, plays.items(), strict=False):
        groups = study.quarters(hardness[case])
        for place, name in enumerate(one for one in names if one in played.ranks):
            rates = study.over_groups(played, name, groups, np.eye(4))
            panels.bars(axis, np.arange(4) + 0.05 * (place - 4), rates, unit=100, label=title(name), ms=5, **LOOK[name])
        axis.axhline(0, **panels.CHANCE)
        panels.ticks(axis.xaxis, range(4), ["easiest", "second", "third", "hardest"])
    panels.legend(figure, 4)
    return figure


def classes_figure(played: study.Play, names: Sequence[str]) -> Figure:
    """Members found beyond the false alarms of their own class."""
    classes = played.case.pool.classes
    figure, [axis] = panels.grid(height=3.6, ylabel="TPR less FPR, points")
    for place, name in enumerate(names):
        rates = study.over_groups(played, name, played.case.pool.y, np.eye(len(classes)))
        panels.bars(axis, np.arange(len(classes)) + 0.12 * (place - len(names) / 2), rates, unit=100, label=title(name),
                    **{**LOOK[name], "linestyle": "none"}, ms=5)
    axis.axhline(0, **panels.CHANCE)
    axis.set_xticks(range(len(classes)), classes, rotation=35, ha="right")
    panels.legend(figure, 4)
    return figure


# --------------------------------------------------------------------------------------------------------------- the guide

SITUATIONS = {  # what an auditor has -> the attacks that it permits; of those with references see `choices`
    "labels": ("gap",),
    "losses": ("gap", "malt"),
    "outputs": ("gap", "malt", "margin", "entropy", "confidence"),
    "public": ("gap", "malt", "margin", "entropy", "confidence", "quantile", "pinball"),
    "parameters": ("gap", "malt", "margin", "entropy", "confidence", "quantile", "pinball", "gradient", "forgetting"),
}


@dataclass(frozen=True, eq=False)
class Choice:
    """The attack for a situation, chosen on one half of the targets, and its rankings of the records under the other half.

    Attributes:
        name: of the attack. metric: by which it was chosen.
        ranks: case -> [T', N]. members: case -> bool [T', N].
    """

    name: str
    metric: str
    ranks: dict[str, np.ndarray]
    members: dict[str, np.ndarray]

    def beyond(self, other: Choice | None = None) -> Interval:
        """Mean of the metric over the cases, or of its paired difference. Cases may share records, so their intervals are
        averaged end by end, which errs on the wide side."""
        found = [number(ranks, self.members[case], self.metric, None if other is None else other.ranks[case],
                        measures=MEASURES) for case, ranks in self.ranks.items()]
        value, low, high = (float(np.mean([getattr(one, end) for one in found])) for end in ("value", "low", "high"))
        return Interval(value, low, high, covers=found[0].covers)

    @property
    def mean(self) -> Interval:
        """Of the metric, over the cases."""
        return self.beyond()

    @property
    def said(self) -> str:
        """Its title, if it is above chance."""
        mean = self.mean
        if np.isnan(mean.low):
            return "too few targets"
        return title(self.name) if (mean - (0.5 if self.metric == "auc" else study.CALL)).sign > 0 else "none beyond chance"


SHARP = f"conformal_tpr_at_fpr={study.CALL:g}"


def counts_of(swept: Mapping[str, study.Swept]) -> dict[str, tuple[int, int]]:
    """For the situations with models of one's own: how many references are taken, and how many of these serve an attack.

    "few" takes the least that was tried in all cases. "apart" takes twice as many, half of which were not trained on a record,
    so that both have as many models; where no case tried so many, it takes as many and has half of them.
    """
    values = [set(map(int, one.values)) for one in swept.values()]
    least = min(set.intersection(*values))
    twice = 2 * least if all(2 * least in one for one in values) else least
    return {"apart": (twice, twice // 2), "few": (least, least)}


def choices(plays: Plays, swept: Mapping[str, study.Swept], metric: str = "auc") -> dict[str, Choice]:
    """For each thing that an auditor may have, the attack with the highest mean over cases and one half of the targets.

    Beside `SITUATIONS`, "apart" is few references of which none may hold the record, "few" as many of which half do (see
    `counts_of`), and "many" the most that a case has. Of complementary pairs of targets none is in both halves.

    Args:
        metric: "auc", or `SHARP` of the cases that resolve its rate; nothing comes back where none does.
    """
    fine = {case: one for case, one in plays.items() if metric == "auc" or metrics.resolves(one.members, study.CALL)}
    if not fine:
        return {}
    cut = {case: 2 * (len(one.members) // 4) for case, one in fine.items()}

    def best(names: Iterable[str], values: Callable, ranks: Callable) -> Choice:
        name = max(names, key=lambda one: np.mean([values(one, case)[:cut[case]].mean() for case in fine]))
        return Choice(name, metric, {case: ranks(name, case)[cut[case]:] for case in fine},
                      {case: one.members[cut[case]:] for case, one in fine.items()})

    def ranks(name: str, case: str) -> np.ndarray:
        return fine[case].ranks[name]

    def measured(name: str, case: str) -> np.ndarray:
        given = ranks(name, case), fine[case].members
        return metrics.auc(*given) if metric == "auc" else metrics.conformal_tpr_at_fpr(*given, study.CALL)

    def with_references(names: Iterable[str], count: int | None) -> Choice:
        def values(name: str, case: str) -> np.ndarray:
            one = swept[case]
            return (one.auc if metric == "auc" else one.tpr)[name][-1 if count is None else list(one.values).index(count)]

        return best(names, values, lambda name, case: study.play(fine[case].case, [name], count).ranks[name])

    names = list(next(iter(swept.values())).auc)
    apart = [name for name in names if ATTACKS[name].needs.references == "out only"]
    counts = counts_of(swept)
    return {**{situation: best(known, measured, ranks) for situation, known in SITUATIONS.items()},
            "apart": with_references(apart, counts["apart"][0]), "few": with_references(names, counts["few"][0]),
            "many": with_references(names, None)}


LADDER = (("labels", "predicted labels", None), ("losses", "losses", "labels"), ("outputs", "output vectors", "losses"),
          ("public", "and public records", "outputs"), ("apart", "and {apart} models without it", "public"),
          ("few", "or {few} models, half with it", "apart"), ("many", "and up to {many} models", "few"),
          ("parameters", "public records and\nthe parameters", "public"))
PLACES = {"labels": (0, 3), "losses": (0, 2), "outputs": (0, 1), "public": (0, 0), "apart": (1.15, 0), "few": (2.3, 0),
          "many": (2.3, 1.5), "parameters": (1.15, 1.5)}


def guide_figure(found: Mapping[str, Choice], swept: Mapping[str, study.Swept]) -> Figure:
    """What to use with what one has, as a picture; every box has the attack and its mean AUC, every arrow what it adds, with
    half the width of its interval."""
    models = {situation: used for situation, (_, used) in counts_of(swept).items()}
    models["many"] = int(max(one.values[-1] for one in swept.values()))
    figure, [axis] = panels.grid(height=4.6)
    axis.set(xlim=(-0.42, 2.72), ylim=(-0.4, 3.4))
    axis.axis("off")
    for situation, words, before in LADDER:
        if situation not in found:
            continue
        (x, y), choice = PLACES[situation], found[situation]
        axis.add_patch(FancyBboxPatch((x - 0.38, y - 0.28), 0.76, 0.56, boxstyle="round,pad=0.02", fc="white",
                                      ec=COLOURS[ATTACKS[choice.name].needs.references], lw=1.6))
        axis.text(x, y + 0.14, words.format(**models), ha="center", va="center", fontsize=7.5, color=panels.FAINT)
        axis.text(x, y - 0.12, f"{title(choice.name)}\nAUC {choice.mean.value:.3f}", ha="center", va="center", fontsize=8.5,
                  weight="bold")
        if before in found:
            bx, by = PLACES[before]
            down = 0.3 if by > y else -0.3
            start, end = ((bx, by - down), (x, y + down)) if bx == x else ((bx + 0.41, by), (x - 0.41, y))
            axis.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": plotting.INK, "shrinkA": 0,
                                                      "shrinkB": 0})
            beside = (0.02, 0) if bx == x else (0, 0.06) if by == y else (0.05, -0.1)
            middle = (start[0] + end[0]) / 2 + beside[0], (start[1] + end[1]) / 2 + beside[1]
            adds = choice.beyond(found[before])
            text = f"{adds.value:+.3f}" + ("" if np.isnan(adds.low) else f"\n± {(adds.high - adds.low) / 2:.3f}")
            where = ("center", "bottom") if by == y else ("left", "center")
            axis.text(*middle, text.replace("-", "−"), ha=where[0], va=where[1], fontsize=7, color=plotting.INK)
    return figure


# ------------------------------------------------------------------------------------------------------------ the verdicts


def judge(plays: Plays, few: Plays, combined: Mapping[str, study.Combined], again: Mapping[str, study.Again],
          grown: Mapping[str, study.Swept], hardness: Mapping[str, np.ndarray]) -> list[claims.Verdict]:
    """Every claim of the chapter.

    What is said of records called, of the hardest quarter or called again, is beyond the same of strangers: an attack calls
    records that vary from model to model more, and again, where nothing leaks, too.

    Args:
        plays: all attacks. few: LiRA with as few references as the curvature has. combined, again: by case.
        grown: "members" and "epochs". hardness: of records, by case.
    """
    parts: dict[str, dict[str, Interval | None]] = {f"K{k}": {} for k in range(1, 13)}

    def apart(claim: str, name: str, minus: str) -> None:
        for case, played in plays.items():
            if {name, minus} <= set(played.ranks):
                parts[claim][case] = of(played, name, "auc", minus)

    for claim, name, minus in (("K1", "lira", "malt"), ("K3", "lira", "quantile"), ("K4", "lira", "lira_offline"),
                               ("K5", "gradient", "malt"), ("K7", "lira_own", "lira")):
        apart(claim, name, minus)
    for case, played in plays.items():
        for minus in ("malt", "margin"):
            parts["K2"][f"{case}, {title(minus)}"] = of(played, "quantile", "auc", minus)
        for name in ("lira", "lira_own"):
            parts["K6"][f"{case}, {title(name)}"] = number(played.ranks["curvature"], played.members, "auc",
                                                           few[case].ranks[name], measures=MEASURES)
        [parts["K10"][case]] = study.over_groups(played, "lira", study.quarters(hardness[case]), np.array([[-1, 0, 0, 1]]))
    for case, one in combined.items():
        parts["K8"][case] = _of_ranks(one.logistic, one, "auc", one.best["auc"])
    for case, one in again.items():
        parts["K9"] |= {f"{case}, LiRA": one.beyond["lira"], f"{case}, MALT's false alarms": one.strangers["malt"]}
    if "members" in grown and len(grown["members"].plays) > 1:  # of pools of their own, the smaller in the larger
        fewest, *_, largest = grown["members"].plays
        parts["K11"] = {"": difference(of(fewest, "lira"), of(largest, "lira"))}
    if "epochs" in grown and len(grown["epochs"].plays) > 1:
        shortest, *_, longest = grown["epochs"].plays
        parts["K12"] = {"": number(longest.ranks["lira"], longest.members, "auc", shortest.ranks["lira"], measures=MEASURES)}
    missing = {"K11": "one size in this run", "K12": "one number of epochs in this run"}
    verdicts = []
    for claim, found in parts.items():
        given = found.get("") if set(found) == {""} else found or None
        verdicts.append(claims.judge("compare", claim, given, None if found else missing.get(claim, "no case in this run")))
    return verdicts
