"""Tables, figures and verdicts of the quantile-regression chapter, from what `study` computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from scipy import stats

from mia_lib import metrics
from mia_lib.attacks import Needs, baselines
from mia_lib.attacks import quantile as attack
from mia_lib.data.sets import TITLES
from mia_lib.evidence import claims, panels, plotting
from mia_lib.evidence import tables as results
from mia_lib.evidence.tables import format_percent as percent
from mia_lib.metrics.interval import Interval, difference, over, share_over, t_interval
from mia_lib.papers.numbers import MEASURES, number
from mia_lib.papers.quantile import study, theory

Plays = Mapping[str, study.Play]  # by case
RATES = (0.01, 0.001)  # of the paper's tables, as `study.LEVELS`
OURS = "gauss_xy"  # the paper's attack, in the form of its code for images
OF_TABLES = "gauss_x"  # and in that of its code for tables
IMAGES = ("CIFAR-10", "CIFAR-100", "CINIC-10", "ImageNet-1k")  # columns of Table 1
RATE = "conformal_tpr_at_fpr={:g}"  # whose chance level is the rate, however few non-members there are
FEW = "too few non-members for this false positive rate"
PRINTED = {one.paper: one for one in (study.MARGINAL, study.HEADS[OURS], *map(study.lira, (2, 4, 6, 8, 16, 32, 64)))}
PAIRS = (("gauss_x", "gauss_xy"), ("pinball_x", "pinball_xy"))  # without and with the label
SIX = (study.MARGINAL.name, OURS, *(study.lira(n).name for n in (2, 4, 6, 8)))  # methods of Tables 6 and 7
PRINTED_BY = {one.name: one for one in PRINTED.values()}


def label(method: study.Method) -> str:
    """What tables call an attack; those that the paper does not have in italics."""
    return method.title if method.paper else f"*{method.title}*"


def most(found: study.Play) -> study.Method:
    """LiRA with most shadow models, in the form that is compared everywhere: online, one spread where these are few."""
    return [method for method in found.methods if not (method.offline or method.own)][-1]


def main_methods(found: study.Play) -> list[study.Method]:
    """The methods of Tables 6 and 7, as far as they were played."""
    return [method for method in found.methods if method.name in SIX]


def outsiders(found) -> int:
    """Fewest non-members of a target."""
    return int((~found.members).sum(1).min())


def resolved(found, rate: float) -> bool:
    """Whether a TPR at this rate may be shown and judged, see `metrics.resolves`."""
    return metrics.resolves(found.members, rate)


def of_attack(found, name, metric: str = "auc", minus=None) -> Interval:
    """A metric of an attack over targets, or its paired difference from another's.

    Args:
        found: with members [T, J] and ranks, name -> [T, J].
    """
    together = tuple(RATE.format(rate) for rate in RATES if resolved(found, rate))  # from the same resamples, which take long
    return number(found.ranks[name], found.members, metric, None if minus is None else found.ranks[minus],
                  measures=MEASURES if metric in MEASURES else together if metric in together else (metric,))


def tpr(found, name, rate: float, minus=None) -> Interval:
    """TPR at a rate, or its paired difference from another method's."""
    return of_attack(found, name, RATE.format(rate), minus)


def precision(found, name, rate: float) -> Interval:
    """Precision at equal odds of member and non-member, from the mean TPR at a rate: TPR / (TPR + rate).

    It is Definition 2 with the TPR in the numerator. Unlike a share of records it does not depend on how many members and
    non-members were judged; its interval is that of the TPR, carried over.
    """
    given = tpr(found, name, rate)

    def of(value):
        return metrics.precision(value, rate, 0.5)

    slope = rate / (given.value + rate) ** 2
    value, low, high = (float(of(end)) if np.isfinite(end) else end for end in (given.value, given.low, given.high))
    return replace(given, value=value, low=low, high=high, bounds=(0.0, 1.0),
                   se=None if given.se is None else slope * given.se, draws=None if given.draws is None else of(given.draws))


def implied_tpr(percent, rate: float):
    """TPR that a printed precision implies at its nominal rate, both in percent."""
    return 100 * theory.true_positive_rate(np.asarray(percent, float) / 100, rate)


def cells_at(found, name, rate: float) -> tuple[results.Cell | str, results.Cell | str]:
    """Precision and TPR in percent where they can be resolved.

    A TPR wants one non-member at its rate in each target, a precision ten expected false positives among the non-members of
    all targets.
    """
    if not resolved(found, rate):
        return results.BELOW, results.BELOW
    return (percent(precision(found, name, rate)) if _alarms_enough(found, rate) else results.BELOW,
            percent(tpr(found, name, rate), 2 if rate < 0.01 else 1))


def _alarms_enough(found, rate: float) -> bool:
    return (~found.members).sum() * rate >= 10


def said(found, name, rate: float, minus=None) -> str:
    """A TPR in percent, or its paired difference in points, with the unit, for a sentence."""
    if not resolved(found, rate):
        return f"({results.BELOW})"
    return f"{percent(tpr(found, name, rate, minus), 2 if rate < 0.01 else 1)} {'%' if minus is None else 'points'}"


def finds(found: study.Play, rate: float) -> str:
    """What the regression, the baseline and LiRA with most references find, and by how much, in sentences."""
    if not resolved(found, rate):
        return f"At {100 * rate:g} % FPR a target has too few strangers for a rate as low as that, so nothing is said of it."
    biggest = most(found)
    shares = [said(found, name, rate) for name in (OURS, study.MARGINAL.name, biggest.name)]
    ahead, behind = said(found, OURS, rate, study.MARGINAL.name), said(found, biggest.name, rate, OURS)
    return (f"At {100 * rate:g} % FPR the regression finds {shares[0]} of the members, the baseline {shares[1]} and LiRA with "
            f"{biggest.references} references {shares[2]}. The regression less the baseline is {ahead}, LiRA less the "
            f"regression {behind}.")


def printed(table: str) -> dict[tuple[str, str, str, str], float]:
    """(data, model, attack, metric) -> the paper's number."""
    return results.printed("quantile", table, "dataset", "model", "attack", "metric")


def _stack(*parts: results.Cell | str) -> results.Cell | str:
    return results.stacked(parts[:1] if set(parts) == {results.BELOW} else parts)


# -------------------------------------------------------------------------------------------------------------- the tables


def access_table() -> pd.DataFrame:
    """What each attack has, as the functions declare it, and as the paper has it."""
    regression = attack.GaussianQuantile.needs
    online = replace(baselines.lira_online.needs, access=regression.access)  # of any score; here of the regression's
    said = Needs("output vector", "not said", "the architecture and the training recipe, and the distribution of records")
    declared = {study.MARGINAL.title: (attack.marginal.needs, 0, "no"),
                "Quantile regression": (regression, "1 regression, for all records", "no"),
                "LiRA online": (online, "as many as references", "yes"),
                "*LiRA as the paper describes it*": (said, "2 to 64", "yes")}
    return pd.DataFrame([{"attack": name, "access": own.access, "references": own.references, "also knows": own.knows,
                          "models it trains": trained, "architecture of the target": architecture}
                         for name, (own, trained, architecture) in declared.items()])


def _printed_rates(table: str) -> dict[tuple[str, str, float], float]:
    """(data, attack, false positive rate) -> the precision that the paper prints, in percent."""
    return {(data, who, round(float(metric.removeprefix("precision_at_fpr_").removesuffix("pct")) / 100, 9)): value
            for (data, _, who, metric), value in printed(table).items() if metric.startswith("precision_at_fpr_")}


def precision_table(plays: Plays, rate: float) -> pd.DataFrame:
    """Table 1 at a rate: precision at equal odds and the TPR behind it, ours with intervals, the paper's as its precision
    implies it; the paper's methods, and LiRA with own spreads."""
    theirs, rows = _printed_rates("table1"), []
    for method in [one for one in _together(plays, [study.MARGINAL, study.HEADS[OURS], *map(study.lira, (2, 4, 6, 8))])
                   if one.paper or one.own]:
        row = {"attack": label(method)}
        for case, found in plays.items():
            ours = cells_at(found, method.name, rate) if method in found.methods else (results.NOT_RUN,) * 2
            row |= {f"{case}: precision": ours[0], f"{case}: TPR": ours[1]}
        for data in IMAGES:
            value = theirs.get((data, method.paper, rate))
            row[f"paper, {data}"] = results.NOTHING if value is None else f"{value:.2f} ({implied_tpr(value, rate):.2f})"
        rows.append(row)
    return pd.DataFrame(rows)


def _together(plays: Plays, of_paper: Sequence[study.Method]) -> list[study.Method]:
    """Methods of any of the plays and of the paper, in one order."""
    return study.in_order([*of_paper, *(method for found in plays.values() for method in found.methods)])


def implied_table() -> pd.DataFrame:
    """Exercise 3: what Table 1 says of TPR, and what Definition 2 would be as printed, in percent."""
    rows = []
    for (data, _, who, metric), value in printed("table1").items():
        rate = next(rate for rate in RATES if metric == f"precision_at_fpr_{100 * rate:g}pct")
        title = "Regression" if PRINTED[who].name == OURS else PRINTED[who].title
        rows.append({"data": data, "FPR": f"{100 * rate:g} %", "attack": title,
                     "precision": results.cell(value, ".2f"), "TPR": results.cell(implied_tpr(value, rate), ".2f"),
                     "Definition 2 as printed": results.cell(100 - value, ".2f")})
    return pd.DataFrame(rows)


DAGGER = "†"  # at a loss that is printed with the very digits of the baseline's


def pinball_table(plays: Plays, rate: float, data: Sequence[str] = ("CIFAR-10", "CIFAR-100")) -> pd.DataFrame:
    """Tables 6 and 7 at a rate, a row a target: pinball loss in units of the score on public records that nothing was fitted
    to, and under it precision in percent.

    Args:
        plays: by architecture. data: of the paper, whose rows follow; none for ours alone.
    """
    place, columns = RATES.index(rate), [PRINTED_BY[name] for name in SIX]
    rows = []
    for name, found in plays.items():
        row = {"target": name}
        for method in columns:
            row[method.title] = _stack(f"{found.pinball[method.name][:, place].mean():.4f}", cells_at(
                found, method.name, rate)[0]) if method in found.methods else results.NOT_RUN
        rows.append(row)
    for one in data:
        theirs = printed({"CIFAR-10": "table6", "CIFAR-100": "table7"}[one])
        for target in dict.fromkeys(model for _, model, _, _ in theirs):
            losses = {method: theirs[one, target, method.paper, f"pinball_loss_{100 * rate:g}pct"] for method in columns}
            row = {"target": f"paper: {one}, {target.removesuffix(' target')}"}
            for method, loss in losses.items():
                same = method.name == OURS and loss == losses[study.MARGINAL]
                share = theirs[one, target, method.paper, f"precision_at_fpr_{100 * rate:g}pct"]
                row[method.title] = f"{loss:.4f}{DAGGER * same}\n{share:.2f}"
            rows.append(row)
    return pd.DataFrame(rows)


def losses_and_hits(found: study.Play, level: float, methods: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Pinball losses and TPRs of methods against each target, [T, n] each."""
    place, rate = study.LEVELS.index(level), round(1 - level, 9)
    return (np.stack([found.pinball[name][:, place] for name in methods], 1),
            np.stack([metrics.conformal_tpr_at_fpr(found.ranks[name], found.members, rate) for name in methods], 1))


def correlations(plays: Plays, level: float, methods: Sequence[str] = SIX) -> dict[str, np.ndarray]:
    """Spearman's correlation over methods of pinball loss and TPR, of each target: case -> [T].

    Cases with fewer than four of the methods are left out, for their correlation hardly varies.

    Args:
        level: 0.99 or 0.999. methods: names of those compared. Where all pinball losses or all TPRs tie it is 0.
    """
    out = {}
    for case, found in plays.items():
        names = [one.name for one in found.methods if one.name in methods]
        if len(names) >= 4:
            out[case] = np.array([stats.spearmanr(a, b).statistic if np.ptp(a) and np.ptp(b) else 0.0
                                  for a, b in zip(*losses_and_hits(found, level, names), strict=True)])
    return out


def rank_correlation(plays: Plays, level: float, methods: Sequence[str] = SIX) -> Interval | None:
    """Mean of `correlations` over cases, which are the unit of chance, for targets of one share records and references; None
    for fewer than two."""
    each = [one.mean() for one in correlations(plays, level, methods).values()]
    return t_interval(each, covers=f"{len(each)} cases", bounds=(-1, 1)) if len(each) > 1 else None


def printed_correlations(rate: float, keep=lambda method: True) -> list[float]:
    """Spearman's correlations of the losses and precisions in Tables 6 and 7, one a target.

    Args:
        keep: of the methods.
    """
    theirs = printed("table6") | printed("table7")
    out = []
    for target in dict.fromkeys(key[:2] for key in theirs):
        kept = [who for who, method in PRINTED.items() if (*target, who, f"pinball_loss_{100 * rate:g}pct") in theirs
                and keep(method)]
        columns = [[theirs[(*target, who, metric.format(100 * rate))] for who in kept]
                   for metric in ("pinball_loss_{:g}pct", "precision_at_fpr_{:g}pct")]
        out.append(float(stats.spearmanr(*columns).statistic))
    return out


def correlation_table(plays: Plays) -> pd.DataFrame:
    """Rank correlation of pinball loss and TPR over the paper's methods that were run, and among subsets; the paper's over
    its eight targets."""
    groups = {"the paper's methods": (SIX, lambda method: True),
              "LiRA, by shadow models": ([name for name in SIX if name.startswith("lira")], lambda method: method.references)}
    rows = []
    for name, (methods, keep) in groups.items():
        row = {"methods": name}
        for rate, level in zip(RATES, study.LEVELS, strict=True):
            fine = {case: found for case, found in plays.items() if resolved(found, rate)}
            there = rank_correlation(fine, level, methods)
            of_cases = correlations(fine, level, methods)
            row[f"at {100 * rate:g} % FPR"] = (results.BELOW if not fine else results.NOTHING if there is None else
                                               results.cell(there, ".2f"))
            row[f"by target network, {100 * rate:g} %"] = ", ".join(f"{one.mean():.2f}" for one in of_cases.values()) or (
                results.NOTHING)
        for rate in RATES:
            each = printed_correlations(rate, keep)
            row[f"paper, {100 * rate:g} %"] = f"{min(each):.2f} to {max(each):.2f}"
        rows.append(row)
    return pd.DataFrame(rows)


def lowest_loss(found: study.Play, level: float) -> str:
    """The method with the lowest mean pinball loss among those of Tables 6 and 7."""
    return min((one.name for one in main_methods(found)), key=lambda name: found.pinball[name][
        :, study.LEVELS.index(level)].mean())


def best_by_loss(found: study.Play, rate: float) -> Interval:
    """TPR at a rate of the method with the lowest loss less that of the best of the others."""
    first = lowest_loss(found, study.LEVELS[RATES.index(rate)])
    other = max((one.name for one in main_methods(found) if one.name != first), key=lambda name: tpr(found, name, rate).value)
    return tpr(found, first, rate, other)


def accuracy_table(plays: Plays) -> pd.DataFrame:
    """Table 3: accuracy of the targets in percent."""
    rows = [{"target": name, **{f"accuracy, {word}": percent(share_over(values, int(side.any(0).sum())))
                                for word, values, side in (("members", found.train, found.members),
                                                           ("non-members", found.test, ~found.members))}}
            for name, found in plays.items()]
    for (data, model, *_), value in printed("table3").items():
        rows.append({"target": f"paper: {data}, {model}", "accuracy, members": results.NOTHING,
                     "accuracy, non-members": results.cell(value, ".1f")})
    return pd.DataFrame(rows)


def mismatch_table(found: study.Mismatch, rate: float = 0.01) -> pd.DataFrame:
    """Figure 4 in numbers: precision and, under it, TPR of LiRA in percent, a row a target, a column an architecture of the
    shadow models; matched ones in bold."""
    rows = []
    for target in found.architectures:
        row = {"target": target}
        for shadow in found.architectures:
            lines = str(_stack(*cells_at(found, (target, shadow), rate))).split("\n")
            row[f"shadow models: {shadow}"] = "\n".join(f"**{line}**" if target == shadow else line for line in lines)
        rows.append(row)
    return pd.DataFrame(rows)


def tabular_table(plays: Plays) -> pd.DataFrame:
    """Table 2: precision and, under it, TPR in percent, ours at 1 % and 0.5 % FPR; the paper's TPR is what its precision
    implies."""
    theirs, data = {}, {}
    for (name, _, who, metric), value in printed("table2").items():
        rate = float(metric.removeprefix("precision_at_fpr_").removesuffix("pct")) / 100
        data[name] = rate
        theirs[name, who] = f"{value:.2f}\n{implied_tpr(value, rate):.2f}"
    rows, regression = [], {OURS: "", OF_TABLES: study.HEADS[OURS].paper}
    for method in _together(plays, [study.MARGINAL, study.HEADS[OF_TABLES], *map(study.lira, (16, 32, 64))]):
        theirs_is = regression.get(method.name, method.paper)
        row = {"attack": label(replace(method, paper=theirs_is))}
        for case, found in plays.items():
            for rate in (0.01, 0.005):
                row[f"{case}: precision, TPR (%) at {100 * rate:g} %"] = (
                    _stack(*cells_at(found, method.name, rate)) if method in found.methods else results.NOT_RUN)
        rows.append(row | {f"paper, {name}, at {100 * rate:g} %": theirs.get((name, theirs_is), results.NOTHING)
                           for name, rate in data.items()})
    return pd.DataFrame(rows)


SEARCHED = {"table4": {"lr": "learning_rate", "weight_decay": "weight_decay", "hidden_dims": "layers",
                       "accumulate_gradient_batches": "batch_size", "epochs": "epochs"},
            "table5": {name: name for name in ("depth", "l2_leaf_reg", "learning_rate", "subsample", "iterations")}}
MEANINGS = {"lr": "learning rate", "weight_decay": "weight decay, biases excluded", "hidden_dims": "hidden layers of the head",
            "accumulate_gradient_batches": "batches of 32 a step", "epochs": "epochs", "depth": "depth of the trees",
            "l2_leaf_reg": "strength of L₂", "learning_rate": "step of boosting", "subsample": "subsampling ratio",
            "iterations": "boosting rounds"}


def spaces_table(image: study.Tuned | None, table: study.Tuned | None) -> pd.DataFrame:
    """Tables 4 and 5: the paper's ranges, what our trials covered, and the best of them."""
    rows = []
    for name, tuned in (("table4", image), ("table5", table)):
        for (*_, metric), space in printed(name).items():
            word = metric.removeprefix("search_space_")
            row = {"regressor": "images" if name == "table4" else "tables", "hyperparameter": MEANINGS[word],
                   "paper's range": space, "tried": results.NOT_RUN, "best": results.NOT_RUN}
            if tuned is not None:
                setting = SEARCHED[name][word]
                values = tuned.searched[setting].astype(float) / (32 if setting == "batch_size" else 1)  # as in Table 4
                given = values[np.isfinite(values)]
                row |= {"tried": f"{_setting(given.min())} to {_setting(given.max())}" if len(given) else results.NOTHING,
                        "best": _setting(values[int(np.nanargmin(tuned.selection))])}
            rows.append(row)
    return pd.DataFrame(rows)


def _setting(value: float) -> results.Cell | str:
    """At most three digits; not a number stands for the library's own choice."""
    if not np.isfinite(value):
        return "CatBoost's own"
    return results.cell(value, ",.0f" if 100 <= value < 100_000 else ".2g")


def cost_table(plays: Plays, tuned: Mapping[str, study.Tuned] | None = None) -> pd.DataFrame:
    """Models trained against one target and their seconds, ours as measured; the paper's in minutes of a GPU.

    Args:
        tuned: by the same names.
    """
    rows = []
    for case, found in plays.items():
        for method in (one for one in found.methods if not (one.offline or one.own)):
            if method.kind:
                trained, spent = 1, found.seconds[method.name].mean()
            else:
                trained, spent = method.references, method.references * found.seconds_reference.mean()
            rows.append({"case": case, "attack": label(method), "models trained": trained, "time": _seconds(spent)})
        if tuned and case in tuned:
            spent = tuned[case].seconds
            rows.append({"case": case, "attack": f"{label(study.HEADS[OURS])}, with tuning",
                         "models trained": f"{len(spent)} {'trial' if len(spent) == 1 else 'trials'} + 1",
                         "time": _seconds(spent.sum() + found.seconds[OURS].mean())})
    for (data, setting), minutes in results.printed("quantile", "text", "dataset", "setting").items():
        with_tuning = "hyperparameter" in setting
        rows.append({"case": f"paper: {data}", "attack": "quantile regression" + ", with tuning" * with_tuning,
                     "models trained": "32 trials" if with_tuning else 1, "time": f"{minutes:,.0f} min"})
    return pd.DataFrame(rows)


def _seconds(value: float) -> str:
    return f"{value:,.0f} s" if value >= 99.5 else f"{value:.2g} s"


def label_table(plays: Plays) -> pd.DataFrame:
    """The regression on the record against that on record and label: AUC, TPR in percent and pinball loss at 1 %, and what
    the label changes, target by target."""
    rows = []
    for case, found in plays.items():
        for pair in PAIRS:
            if not set(pair) <= set(found.ranks):
                continue
            for name in pair:
                rows.append({"case": case, "regression": study.HEADS[name].title, "AUC": results.cell(of_attack(found, name)),
                             "TPR (%) at 1 %": cells_at(found, name, 0.01)[1],
                             "pinball, 1 %": results.cell(over(found.pinball[name][:, 0]), ".4f")})
            alone, both = pair
            kind = study.HEADS[both].title.partition(",")[0]
            rows.append({"case": case, "regression": f"{kind}, the label's part",
                         "AUC": results.cell(of_attack(found, both, minus=alone)),
                         "TPR (%) at 1 %": percent(tpr(found, both, 0.01, alone)) if resolved(found, 0.01) else results.BELOW,
                         "pinball, 1 %": results.cell(over(found.pinball[both][:, 0] - found.pinball[alone][:, 0]), ".4f")})
    return pd.DataFrame(rows)


QUARTERS = ("hardest", "harder", "easier", "easiest")


def quarters_table(found: study.Quarters) -> pd.DataFrame:
    """Where pinball loss is saved and where members are found, by how hard a record is."""
    rows = []
    for k, quarter in enumerate(QUARTERS):
        shift = results.cell(found.shift[:, k].mean(), ".2f")
        rows += [{"quarter": quarter, "attack": label(method), "members' scores higher by": shift,
                  "threshold above the mean": results.cell(found.above[method.name][:, k].mean(), ".2f"),
                  "pinball, 1 %": results.cell(found.pinball[method.name][:, k].mean(), ".4f"),
                  "FPR (%)": percent(found.fpr[method.name][:, k].mean()),
                  "TPR (%)": percent(over(found.tpr[method.name][:, k], bounds=(0, 1)))} for method in found.methods]
    return pd.DataFrame(rows)


def flattery_table(found_by_case: Mapping[str, Mapping[str, study.Reported]]) -> pd.DataFrame:
    """What is reported when choices are made on the records reported on, and what fresh records say; nominal FPR 1 %."""
    words = {"honest": "neither", "thresholds": "thresholds", "selection": "regression", "both": "both"}
    rows = []
    for case, found in found_by_case.items():
        for how, word in words.items():
            one = found[how]
            rows.append({"case": case, "chosen on the records reported on": word,
                         "FPR (%), reported": percent(over(one.fpr, bounds=(0, 1)), 2),
                         "FPR (%), fresh": percent(over(one.fresh_fpr, bounds=(0, 1)), 2),
                         "off by (points), reported": percent(one.fpr_off.mean(), 2),
                         "off by (points), fresh": percent(one.fresh_fpr_off.mean(), 2),
                         "TPR (%)": percent(over(one.tpr, bounds=(0, 1))),
                         "pinball, reported": results.cell(one.pinball.mean(), ".4f"),
                         "pinball, fresh": results.cell(one.fresh_pinball.mean(), ".4f"),
                         "pinball, fresh less reported": results.cell(over(one.fresh_pinball - one.pinball), ".5f")})
    return pd.DataFrame(rows)


def views_table(found: study.Views) -> pd.DataFrame:
    """Whose scores are taken under augmentation: AUC and TPR in percent, and what the released code's way adds."""
    words = {"none": "nobody's", "members": "the members' alone, as released", "all": "everybody's"}
    rows = []
    for method in (study.MARGINAL, study.HEADS[OURS]):
        for who, word in words.items():
            name, plain = (method.name, who), (method.name, "none")
            gain = results.NOTHING if who == "none" else results.cell(of_attack(found, name, minus=plain))
            rows.append({"attack": label(method), "scores under augmentation": word,
                         "AUC": results.cell(of_attack(found, name)),
                         "TPR (%) at 1 %": cells_at(found, name, 0.01)[1], "AUC less that of nobody's": gain})
    return pd.DataFrame(rows)


# ------------------------------------------------------------------------------------------------------------- the figures


SHOWN = 300  # records of each kind in a scatter


def idea_figure(seen: study.OneTarget, alpha: float = 0.05) -> plt.Figure:
    """Real records: the score that a target gives each against the threshold that the regression sets it; one threshold for
    all and one for each, both at a rate that records set aside promise."""
    single = attack.marginal(seen.aside_score, [1 - alpha])[0]
    factor = attack.marginal(seen.aside_position, [1 - alpha])[0]
    own = seen.mean + factor * seen.spread
    rules = {"one threshold for all": seen.score >= single, "a threshold for each record": seen.score >= own}
    figure, axes = panels.grid(2, 4.9, "score $s(x, y)$", sharey=True)
    low, high = np.quantile(seen.score, [0.002, 0.998])
    left, right = np.quantile(own, [0.002, 0.998])
    for axis, (name, called) in zip(axes, rules.items(), strict=True):
        for kind, side in (("non-members", ~seen.members), ("members", seen.members)):
            look, rows = plotting.STYLE[kind], np.flatnonzero(side)[:SHOWN]
            for mask, face, word in ((~called, "white", "not called"), (called, look["color"], "called members")):
                some = rows[mask[rows]]
                axis.plot(own[some], seen.score[some], ls="none", marker=look["marker"], ms=4, mew=0.8, mec=look["color"],
                          mfc=face, alpha=0.85, label=f"{kind}, {word}")
        line = [left, right], ([single] * 2 if name == "one threshold for all" else [left, right])
        axis.plot(*line, color=plotting.INK, lw=2.2, label="threshold")
        axis.set(title=f"{name}:\n{100 * called[seen.members].mean():.1f} % of members called,\n"
                       f"{100 * called[~seen.members].mean():.1f} % of non-members",
                 xlabel="threshold of the record, by the regression", xlim=(left, right),
                 ylim=(low, max(high, right)))
        axis.title.set_fontsize(10)
        axis.grid(False)
    panels.legend(figure, 3)
    return figure


def world_figure(seed: int = 0, alpha: float = 0.05) -> plt.Figure:
    """Scores whose mean and spread follow x: whom one threshold finds at a false positive rate, and whom the conditional
    quantile."""
    world = theory.HeteroscedasticWorld()
    sides = {"non-members": world.sample(200, seed), "members": world.sample(200, seed + 1, members=True)}
    constant = world.marginal(1 - alpha)
    bars = {"one threshold for all": lambda x: np.full_like(x, constant),
            "a threshold for each $x$": lambda x: world.quantile(x, 1 - alpha)}
    figure, axes = panels.grid(2, 4.5, "score $s(x, y)$", sharey=True)
    grid = np.linspace(-2.6, 2.6, 200)
    for axis, (name, bar) in zip(axes, bars.items(), strict=True):
        found = {kind: world.rate(bar, members=kind == "members") for kind in sides}
        for kind, (x, score) in sides.items():
            look, called = plotting.STYLE[kind], score >= bar(x)
            for mask, face, word in ((~called, "white", "not called"), (called, look["color"], "called members")):
                axis.plot(x[mask], score[mask], ls="none", marker=look["marker"], ms=4.5, mew=0.9, mec=look["color"], mfc=face,
                          alpha=0.85, label=f"{kind}, {word}")
        axis.plot(grid, bar(grid), color=plotting.INK, lw=2.2, label="threshold")
        axis.set(title=f"{name}:\n{100 * found['members']:.0f} % of members called,\n"
                       f"{100 * found['non-members']:.0f} % of non-members", xlabel="$x$", xlim=(-2.7, 2.7), ylim=(-2.5, 11))
        axis.title.set_fontsize(10)
        axis.grid(False)
    panels.legend(figure, 3)
    return figure


def _position_stands(seen: study.OneTarget, alpha: float) -> bool:
    """Whether one of so many positions is a threshold that holds a rate."""
    return alpha * (len(seen.aside_position) + 1) >= 1


def thresholds_drawn(seen: study.OneTarget, alpha: float = 0.01) -> str:
    """Which thresholds `position_figure` draws, for its caption."""
    if not _position_stands(seen, alpha):
        return f"the formula's threshold at {100 * alpha:g} %; there are too few records for one of the positions themselves"
    return f"two thresholds at {100 * alpha:g} %: the formula's, and the $k$-th smallest position"


def position_figure(seen: study.OneTarget, alpha: float = 0.01) -> plt.Figure:
    """Where scores lie among their records' quantiles: two records, and the positions of the records set aside, whose k-th
    smallest is the threshold that holds its promise."""
    figure, (one, all_of_them) = panels.grid(2, 4.2)
    order = np.argsort(seen.mean)
    z = stats.norm.isf(alpha)
    for place, (share, color) in enumerate(((0.1, plotting.RED), (0.9, plotting.BLUE))):
        row = order[int(share * (len(order) - 1))]
        mean, spread, score = seen.mean[row], seen.spread[row], seen.score[row]
        grid = np.linspace(mean - 4 * spread, mean + 4 * spread, 200)
        height = stats.norm.pdf((grid - mean) / spread)  # each with the same height, for spreads differ by much
        one.plot(grid, height, color=color, ls=("-", "--")[place], label=f"predicted, {('a hard', 'an easy')[place]} record")
        one.plot([mean + z * spread] * 2, [0, 0.45], color=color, ls=":", lw=1.6)
        one.plot(score, 0.03 + 0.03 * place, marker=("o", "s")[place], color=color, ls="none", ms=8, mec="white", zorder=5,
                 label=f"its score, at position {(score - mean) / spread:z.1f}")
    one.set(xlabel="score; dotted: thresholds as fitted, at 1 %", yticks=[], ylim=(0, 0.48))
    n = len(seen.aside_position)
    shown = np.clip(seen.aside_position, -5, 8)
    all_of_them.hist(shown, 60, density=True, color=plotting.FAINT, alpha=0.6, label=f"positions of {n:,} set aside")
    grid = np.linspace(-5, 8, 300)
    all_of_them.plot(grid, stats.norm.pdf(grid), color=plotting.INK, lw=1.5, label="standard normal")
    all_of_them.axvline(z, color=plotting.INK, ls=":", lw=1.8, label=f"as fitted: {z:.2f}")
    if _position_stands(seen, alpha):
        moved = attack.marginal(seen.aside_position, [1 - alpha])[0]
        all_of_them.axvline(np.clip(moved, -5, 8), color=plotting.GREEN, lw=2,
                            label=f"k-th smallest, k = {int(np.ceil((n + 1) * (1 - alpha) - 1e-9)):,}: {moved:.2f}")
    all_of_them.set(xlabel="position", ylabel="density", yscale="log", ylim=(1e-4, 2))
    panels.legend(figure, 2)
    return figure


def printed_beside(dataset: str) -> str:
    """The image set of the paper's Table 1 that ours stands beside: the same, or CIFAR-10."""
    title = TITLES.get(dataset, dataset)
    return title if any(title == data for data, *_ in printed("table1")) else "CIFAR-10"


def roc_figure(play: study.Play, name: str, data: str | None = "CIFAR-10") -> plt.Figure:
    """Figures 1, 2, 3 and 5: ROC on logarithmic axes, and TPRs that the paper's precisions imply. Of LiRA the fewest and the
    most shadow models.

    Args:
        name: of the case, for the title. data: of the paper's Tables 1 and 2, whose points are drawn; None for none.
    """
    online = [one for one in play.methods if one.references and not (one.offline or one.own)]
    methods = [*(one for one in play.methods if one.name in (study.MARGINAL.name, OURS)),
               *dict.fromkeys((online[0], online[-1]))]
    points: dict[str, list] = {}
    for table in ("table1", "table2"):
        for (of, who, rate), value in _printed_rates(table).items():
            if of == data and PRINTED[who] in methods:
                points.setdefault(PRINTED[who].title, []).append((rate, implied_tpr(value, rate) / 100))
    figure = plotting.roc({one.title: play.ranks[one.name] for one in methods}, play.members, points, f"paper: {data}",
                          band=False)
    figure.axes[0].set_title(name)
    return figure


def printed_figure(play: study.Play | None = None, name: str = "ours") -> plt.Figure:
    """Figures 1, 2 and 5 as far as numbers were printed: TPR that Table 1 implies, a panel a data set; ours in the last.

    Args:
        play, name: of ours, filled marks with intervals; without it only the paper's.
    """
    theirs = {(data, PRINTED[who], metric): implied_tpr(value, rate)
              for (data, _, who, metric), value in printed("table1").items() for rate in RATES
              if metric.endswith(f"_{100 * rate:g}pct")}
    order = sorted(dict.fromkeys(method for _, method, _ in theirs), key=lambda one: (one.name == OURS, one.references))
    data = ("ImageNet-1k", "CINIC-10", "CIFAR-100", "CIFAR-10")
    titles = [*(f"paper: {one}" for one in data), name if play is not None else ""]
    figure, axes = panels.grid(titles, 5.6, rows=2, sharex=True, sharey=True)
    marks = {"1 %": ("o", plotting.BLUE), "0.1 %": ("s", plotting.RED)}
    height = np.arange(len(order))
    for axis, one_set in zip(axes, data, strict=False):
        for shift, (rate, (marker, color)) in zip((0.14, -0.14), marks.items(), strict=True):
            values = [theirs[one_set, one, f"precision_at_fpr_{rate.replace(' %', 'pct')}"] for one in order]
            axis.plot(values, height + shift, marker=marker, mec=color, **plotting.HOLLOW)
    last = axes[4]
    if play is not None:
        for shift, rate in zip((0.14, -0.14), RATES, strict=True):
            marker, color = marks[f"{100 * rate:g} %"]
            for k, one in enumerate(order):
                if one in play.methods and outsiders(play) * rate >= 1:
                    value = 100 * tpr(play, one.name, rate)
                    floor = 0.05
                    last.plot([max(value.low, floor), max(value.high, floor)], [k + shift] * 2, color=color, lw=1.6)
                    last.plot(max(value.value, floor), k + shift, marker=marker, color=color, ms=7)
    else:
        last.axis("off")
    for axis in axes[:5]:
        for rate, (_, color) in zip(RATES, marks.values(), strict=True):
            axis.axvline(100 * rate, **{**panels.CHANCE, "color": color})
        axis.set(xscale="log", xlim=(0.04, 100))
        panels.ticks(axis.yaxis, height, ["Regression" if one.name == OURS else one.title for one in order])
        panels.ticks(axis.xaxis, [0.1, 1, 10, 100])
    for axis in axes[[2, 3, 4]]:
        axis.set_xlabel("TPR (%), logarithmic")
        axis.xaxis.set_tick_params(labelbottom=True)
    handles = {f"at {rate} FPR: {word}": panels.hollow(marker, color) if word == "implied by the paper" else
               Line2D([], [], marker=marker, color=color, ls="none", ms=7)
               for (rate, (marker, color)), alpha in zip(marks.items(), RATES, strict=True)
               for word in ("implied by the paper", *(["ours"] if play is not None and resolved(play, alpha) else []))}
    panels.legend(figure, marks={**handles, "chance": Line2D([], [], **panels.CHANCE)})
    return figure


def pinball_figure_central(plays: Plays) -> plt.Figure:
    """Pinball loss against TPR at 1 % FPR, a mark for each of the paper's methods, a panel an architecture; bars are intervals
    over targets and records, an arrow goes from the regression to LiRA with most shadow models. A panel with fewer than 100
    non-members is left empty."""
    rows = -(-len(plays) // 2)
    figure, axes = panels.grid(list(plays), 1.4 + 2.9 * rows, "TPR (%) at 1 % FPR", rows, sharey=True)
    handles = {}
    for axis, found in zip(axes, plays.values(), strict=False):
        axis.set(xscale="log", yscale="log")
        if not resolved(found, 0.01):
            axis.text(0.5, 0.5, results.BELOW, transform=axis.transAxes, ha="center")
            continue
        values = {method: 100 * tpr(found, method.name, 0.01) for method in main_methods(found)}
        least, at = 50 / outsiders(found) / len(found.members), {}  # half a member
        floor = max(least, min(1.0, *(one.value for one in values.values())) / 2)
        for place, (method, value) in enumerate(values.items()):
            look = plotting.style_of(method.title, place)
            x, y = float(found.pinball[method.name][:, 0].mean()), max(value.value, floor)
            at[method.name] = x, y
            axis.plot([x, x], [max(value.low, floor), max(value.high, floor)], color=look["color"], lw=1.3, zorder=2)
            handles[method.title], = axis.plot(x, y, marker=look["marker"], color=look["color"], ls="none", ms=8,
                                               mec=plotting.INK, mew=0.6, zorder=3)
        if {OURS, most(found).name} <= at.keys():
            axis.annotate("", at[most(found).name], at[OURS], arrowprops={
                "arrowstyle": "->", "color": plotting.INK, "lw": 1.2}, zorder=4)
        axis.axhline(1, **panels.CHANCE)
    for axis in axes[:len(plays)]:
        steps = np.outer(10.0 ** np.arange(-6, 4), (1, 2, 5)).ravel()
        low, high = axis.get_ylim()
        axis.set_yticks([one for one in steps if low <= one <= high])
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.yaxis.set_minor_formatter(plt.NullFormatter())
        low, high = axis.get_xlim()
        if ((steps >= low) & (steps <= high)).sum() < 2:
            steps = plt.MaxNLocator(4).tick_values(low, high)
        axis.set_xticks([one for one in steps if low <= one <= high])
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.xaxis.set_minor_locator(plt.NullLocator())
        axis.set_xlabel("pinball loss at 1 % (logarithmic)")
    panels.legend(figure, 3, marks={**handles, "chance": Line2D([], [], **panels.CHANCE)})
    return figure


def compared(found: study.Quarters) -> list[study.Method]:
    """The methods whose quarters are drawn: all but the baseline."""
    return [method for method in found.methods if method != study.MARGINAL]


def quarters_figure(found: study.Quarters) -> plt.Figure:
    """Pinball loss beside members found, in paired bars, by how hard a record is; strangers called as ticks on the latter."""
    figure, (losses, hits) = panels.grid(2, 4.0, sharey=True)
    methods, height = compared(found), np.arange(len(QUARTERS))[::-1]
    width = 0.8 / len(methods)
    for k, method in enumerate(methods):
        look = plotting.style_of(method.title, k)
        at = height + width * ((len(methods) - 1) / 2 - k)
        losses.barh(at, found.pinball[method.name].mean(0), width * 0.9, color=look["color"], label=method.title)
        hits.barh(at, 100 * found.tpr[method.name].mean(0), width * 0.9, color=look["color"])
        hits.plot(100 * found.fpr[method.name].mean(0), at, ls="none", marker="|", ms=60 * width, mew=2.5, color=plotting.INK,
                  label=None if k else "strangers called")
    losses.set(xlabel="pinball loss at 1 %", yticks=height, yticklabels=QUARTERS)
    hits.set(xlabel="members found (%), at 1 % of all strangers")
    panels.legend(figure, 2)
    return figure


YOURS = "yours"


def quarters_chart(found: study.Quarters):
    """The same for readers to move: whose mean, and a spread for the harder and one for the easier half of the records.

    Thresholds lie a multiple of the spread above the mean, which makes the loss. Records are ranked by their distance from the
    mean over the spread, which makes the members found at 1 % of all strangers.
    """
    alt = plotting.altair()
    methods, size = compared(found), len(study.SPREADS)
    given = [{"attack": method.title, "quarter": name, "loss": float(found.pinball[method.name][:, q].mean()),
              "tpr": float(found.tpr[method.name][:, q].mean()), "fpr": float(found.fpr[method.name][:, q].mean())}
             for method in methods for q, name in enumerate(QUARTERS)]
    losses = [{"mean": mean, "quarter": name, "half": int(q > 1), "k": k, "loss": float(found.spread_loss[m, q, k])}
              for m, mean in enumerate(study.MEANS) for q, name in enumerate(QUARTERS) for k in range(size)]
    halves = [{"key": f"{mean}{half}{k}", "loss": float(found.spread_loss[m, 2 * half:2 * half + 2, k].mean())}
              for m, mean in enumerate(study.MEANS) for half in (0, 1) for k in range(size)]
    hits = [{"mean": mean, "quarter": name, "k": k, "tpr": float(found.ratio_tpr[m, q, k])}
            for m, mean in enumerate(study.MEANS) for q, name in enumerate(QUARTERS) for k in range(2 * size - 1)]
    whose = alt.param("whose", value=study.MEANS[1], bind=alt.binding_select(options=list(study.MEANS), name="Mean "))
    start = best_spreads(found, study.MEANS[1])
    words = "Spread on the {} half (0 narrowest, " + f"{size - 1} widest) "
    hard, easy = (alt.param(name, value=value, bind=alt.binding_range(min=0, max=size - 1, step=1, name=words.format(word)))
                  for name, value, word in zip(("hard", "easy"), start, ("harder", "easier"), strict=True))
    order = [*(method.title for method in methods), YOURS]
    looks = [plotting.style_of(method.title, k)["color"] for k, method in enumerate(methods)] + [plotting.INK]
    colour = alt.Color("attack:N", title=None, scale=alt.Scale(domain=order, range=looks),
                       legend=alt.Legend(orient="top", columns=2, labelLimit=SIDE))
    y = alt.Y("quarter:N", title=None, sort=list(QUARTERS), scale=alt.Scale(domain=list(QUARTERS)))
    offset = alt.YOffset("attack:N", sort=order, scale=alt.Scale(domain=order))
    ratio = f"hard - easy + {size - 1}"

    def bars(field: str, rows: str, mine: str, title: str, scale):
        x = alt.X(f"{field}:Q", title=title, scale=scale)
        fixed = alt.Chart(alt.NamedData("given")).mark_bar(aria=False).encode(x=x, y=y, yOffset=offset, color=colour)
        own = alt.Chart(alt.NamedData(rows)).transform_filter(f"datum.mean == whose && {mine}").transform_calculate(
            attack=f"'{YOURS}'").mark_bar(clip=True).encode(
            x=x, y=y, yOffset=offset, color=colour,
            tooltip=[alt.Tooltip("quarter:N"), alt.Tooltip(f"{field}:Q", format=".3~g")])
        return alt.layer(fixed, own).properties(width=SIDE, height=260)

    most_loss = 1.3 * max(row["loss"] for row in given)
    left = bars("loss", "losses", "datum.k == (datum.half ? easy : hard)", "pinball loss at 1 %",
                alt.Scale(domain=[0, most_loss]))
    reach = alt.Scale(domain=[0, max(1.2 * max(row["tpr"] for row in given), 1.1 * float(found.ratio_tpr.max()))])
    right = bars("tpr", "hits", f"datum.k == {ratio}", "share of members found, at 1 % of all strangers", reach)
    right += alt.Chart(alt.NamedData("given")).mark_tick(thickness=2, color=plotting.INK).encode(
        x=alt.X("fpr:Q", title="share of members found, at 1 % of all strangers", scale=reach), y=y, yOffset=offset,
        tooltip=[alt.Tooltip("attack:N"), alt.Tooltip("fpr:Q", title="strangers called", format=".3~g")])
    spreads = "0.05 * pow(10, 0.05 * {})"
    told = [f"'{method.title}: loss {found.pinball[method.name].mean():.4f}, found "
            f"{100 * found.tpr[method.name].mean():.1f} %'" for method in methods]
    told += ["'Yours: loss ' + format((datum.lh + datum.le) / 2, '.4f') + ', found ' + "
             "format(100 * datum.found, '.1f') + ' %'",
             f"'(mean ' + whose + ', spreads ' + format({spreads.format('hard')}, '.2~g') + ' and ' + "
             f"format({spreads.format('easy')}, '.2~g') + ')'"]
    text = alt.Chart(alt.NamedData("hits")).transform_filter(f"datum.mean == whose && datum.k == {ratio}").transform_aggregate(
        found="mean(tpr)").transform_calculate(kh="whose + '0' + hard", ke="whose + '1' + easy")
    for key, name in (("kh", "lh"), ("ke", "le")):
        text = text.transform_lookup(lookup=key, from_=alt.LookupData(data=alt.NamedData("halves"), key="key",
                                                                      fields=["loss"]), **{"as": [name]})
    text = text.transform_calculate(lines=f"[{', '.join(told)}]").mark_text(
        align="left", baseline="top", lineHeight=17).encode(x=alt.value(0), y=alt.value(0), text="lines:N").properties(
        name="said", width=2 * SIDE, height=17 * len(told))
    both = alt.concat(left, right, columns=2, spacing=24)
    return alt.vconcat(text, both, spacing=8, datasets={"given": given, "losses": losses, "halves": halves, "hits": hits}
                       ).add_params(whose, hard, easy)


SIDE = 280  # pixels of a panel


def best_spreads(found: study.Quarters, mean: str) -> tuple[int, int]:
    """Places in `study.SPREADS` of the least loss around a mean, on the harder and on the easier half of the records."""
    losses = found.spread_loss[study.MEANS.index(mean)]
    return int(losses[:2].mean(0).argmin()), int(losses[2:].mean(0).argmin())


def mismatch_figure(found: study.Mismatch, rate: float = 0.01) -> plt.Figure:
    """Figure 4: precision and TPR of LiRA with shadow models of each architecture against targets of each; matched ones in a
    red circle."""
    names = found.architectures
    figure, axes = panels.grid(2, 4.4)
    for k, shadow in enumerate(names):
        color, marker = plotting.style_of(f"shadow models: {shadow}", k)["color"], "osD^vP"[k % 6]
        at = np.arange(len(names)) + 0.6 * (k - (len(names) - 1) / 2) / len(names)
        for axis, of in zip(axes, (precision, tpr), strict=True):
            if not (_alarms_enough if of is precision else resolved)(found, rate):
                continue
            values = [of(found, (target, shadow), rate) for target in names]
            panels.bars(axis, at, values, 100, ls="none", marker=marker, color=color, label=f"shadow models: {shadow}")
            axis.plot(at[k], 100 * values[k].value, "o", ms=14, mfc="none", mec="#C00000", mew=1.8)
    for axis, name, chance in zip(axes, ("precision (%)", "TPR (%)"), (50, 100 * rate), strict=True):
        axis.axhline(chance, **panels.CHANCE)
        axis.set(ylabel=f"{name} at {100 * rate:g} % FPR", xlabel="architecture of the target",
                 xlim=(-0.6, len(names) - 0.4))
        slanted = len(names) > 2 and max(map(len, names)) > 8
        axis.set_xticks(range(len(names)), names, rotation=25 * slanted, ha="right" if slanted else "center")
    for axis, there in zip(axes, (_alarms_enough(found, rate), resolved(found, rate)), strict=True):
        if not there:
            axis.text(0.5, 0.6, results.BELOW, transform=axis.transAxes, ha="center")
    panels.legend(figure, marks={"matched": Line2D([], [], marker="o", ms=11, mfc="none", mec="#C00000", mew=1.8, ls="none")})
    return figure


SETTINGS = {"learning_rate": "learning rate", "iterations": "boosting rounds", "epochs": "epochs"}  # that a search shows


def tuning_figure(found: study.Tuned) -> plt.Figure:
    """Pinball loss of the trials of a search against two of its settings; one left to the library is at the left edge."""
    names = [name for name in SETTINGS if name in found.searched]
    figure, axes = panels.grid(len(names), 3.9, "pinball loss, selection split", sharey=True)
    best = int(np.nanargmin(found.selection))
    for axis, name in zip(axes, names, strict=True):
        values = found.searched[name].astype(float)
        there = np.isfinite(values)
        edge = np.nanmin(values) / 3 if there.any() else 1.0
        at = np.where(there, values, edge)
        axis.plot(at[1:], found.selection[1:], "o", color=plotting.FAINT, ms=5, label="trials drawn")
        ring = {"mfc": "none", "mew": 1.8}
        axis.plot(at[0], found.selection[0], "s", color=plotting.INK, ms=8, label="settings to begin with", **ring)
        axis.plot(at[best], found.selection[best], "o", color=plotting.RED, ms=11, label="best", **ring)
        axis.set(xscale="linear" if name == "epochs" else "log", yscale="log",
                 xlabel=SETTINGS[name] + ("" if there.all() else " (leftmost: CatBoost's own)"))
    panels.legend(figure, 3)
    return figure


RATED = ("marginal", OURS, "pinball_xy")


def achieved(found: study.Play, name: str, alpha: float, how: str = "raw") -> Interval | None:
    """FPR on non-members at a nominal one, mean over targets, with targets and non-members as chance; None where the public
    records cannot resolve it.

    Args:
        how: "raw", thresholds of the method's own, or "calibrated", where the chance of the calibration split, which all
            targets share, is a part; that of the records a regression was fitted to is not.
    """
    values = found.fpr[how][name][:, study.ALPHAS.index(alpha)]
    if not np.isfinite(values).all():
        return None
    count = int((~found.members).any(0).sum())
    one = share_over(values, count, found.calibration.sum() if how == "calibrated" else np.inf)
    return replace(one, covers=one.covers.replace(f"{count} records", f"{count} non-members", 1))


def fpr_table(plays: Plays) -> pd.DataFrame:
    """Achieved FPR in percent at nominal 1 % and 0.1 %, thresholds as fitted and calibrated, and the TPR that goes with it."""
    rows = []
    for case, found in plays.items():
        for method in (one for one in found.methods if one.name in found.fpr["raw"]):
            row = {"case": case, "attack": label(method)}
            for alpha in RATES:
                for how, word in (("raw", "as fitted"), ("calibrated", "calibrated")):
                    there = method.name in found.fpr[how]
                    rate = achieved(found, method.name, alpha, how) if there else None
                    hits = found.tpr[how][method.name][:, study.ALPHAS.index(alpha)] if there else None
                    row |= {f"FPR (%) at {100 * alpha:g} %, {word}": results.NOTHING if not there else results.BELOW
                            if rate is None else percent(rate, 2)}
                    if alpha == RATES[0]:
                        row |= {f"TPR (%), {word}": results.NOTHING if rate is None else
                                percent(share_over(hits, int(found.members.any(0).sum())))}
            rows.append(row)
    return pd.DataFrame(rows)


def fpr_figure(play: study.Play, calibration: int | None = None) -> plt.Figure:
    """Nominal against achieved FPR, thresholds as fitted and calibrated. The band holds 95 % of single targets whose
    thresholds are right.

    Args:
        calibration: records in that split; with it the band of the right panel covers their chance, too, by a Beta-binomial
            law.
    """
    titles = {"raw": "thresholds as fitted", "calibrated": "calibrated thresholds"}
    figure, axes = panels.grid(list(titles.values()), 4.5, "achieved FPR (%)", sharey=True)
    alphas, count = np.array(study.ALPHAS), outsiders(play)
    floor = 0.3 / count
    for axis, how in zip(axes, titles, strict=True):
        given = calibration if how == "calibrated" else None
        band = np.array([_law(alpha, count, given) for alpha in alphas])
        axis.fill_between(alphas, np.maximum(band[:, 0], floor), np.maximum(band[:, 1], floor), color="#DDDDDD", lw=0,
                          label="95 % of single targets with right thresholds")
        axis.plot(alphas, alphas, label="as asked for", **panels.CHANCE)
        for k, method in enumerate(one for one in play.methods if one.name in RATED and one.name in play.fpr[how]):
            look = plotting.style_of(method.title)
            found = {alpha: achieved(play, method.name, alpha, how) for alpha in study.ALPHAS}
            there = {alpha: one for alpha, one in found.items() if one is not None}
            at = np.array(list(there)) * 10 ** (0.035 * (k - 1))
            panels.bars(axis, at, there.values(), floor=floor, lw=1.4, ms=5, **look, label=method.title)
        axis.set(xscale="log", yscale="log", xlabel="nominal FPR (%)", xlim=(alphas[0] / 1.4, alphas[-1] * 1.4),
                 ylim=(floor, None))
        for one in (axis.xaxis, axis.yaxis):
            panels.ticks(one, [0.001, 0.01, 0.1], ["0.1", "1", "10"])
    panels.legend(figure)
    return figure


def _law(alpha: float, count: int, calibration: int | None) -> tuple[float, float]:
    """Middle 95 % of the FPR on `count` non-members: binomial, or Beta-binomial for a threshold from so many scores."""
    if calibration is None:
        return tuple(stats.binom(count, alpha).ppf((0.025, 0.975)) / count)
    if alpha * (calibration + 1) < 1 - 1e-9:
        return np.nan, np.nan
    law = theory.conformal_law(calibration, alpha, count)
    return law["low"], law["high"]


MANY_CLASSES = 20  # more are drawn as the lines of their sorted rates
BY_CLASS = {("marginal", "calibrated"): ("Marginal", plotting.BLACK, "s"),
            (OURS, "calibrated"): ("q(x, y)", plotting.GREEN, "o"),
            (OURS, "by_class"): ("q(x, y), calibrated by class", plotting.RED, "^")}


def _class_rate(values: np.ndarray, records: int, calibration: float) -> Interval:
    """Mean over targets of the FPR within a class."""
    return share_over(values, records, calibration)


def class_figure(play: study.Play, names: Sequence[str] | None = None) -> plt.Figure:
    """FPR of each class at a nominal rate, calibrated over all records and by class; intervals cover targets, records of the
    pool and, by class, those for calibration. Of more than `MANY_CLASSES` each method's rates are drawn as a line, sorted.

    Args:
        names: of the classes.
    """
    figure, (axis,) = panels.grid(1, 4.2)
    records = np.bincount(play.labels, minlength=play.class_all.shape[1])
    kinds, many = [kind for kind in BY_CLASS if kind in play.class_false], len(records) > MANY_CLASSES
    for k, kind in enumerate(kinds):
        name, color, marker = BY_CLASS[kind]
        each, (_, how) = play.class_false[kind] / np.maximum(play.class_all, 1), kind
        if many:
            axis.plot(np.arange(1, len(records) + 1), 100 * np.sort(each.mean(0)), color=color, label=name)
            continue
        rates = [_class_rate(each[:, c], records[c], play.calibration[c] if how == "by_class" else np.inf)
                 for c in range(len(records))]
        at = np.arange(len(records)) + 0.2 * (k - (len(kinds) - 1) / 2)
        panels.bars(axis, at, rates, 100, ls="none", marker=marker, color=color, label=name)
    axis.axhline(100 * study.CLASS_ALPHA, label="as asked for", **panels.CHANCE)
    if not many:
        words = [str(k) for k in range(len(records))] if names is None else list(names)
        long = max(map(len, words)) > 6
        axis.set_xticks(range(len(records)), words, rotation=35 * long, ha="right" if long else "center")
    axis.set(xlabel="class, by each method's rate" if many else "class", ylabel="achieved FPR (%)")
    axis.set_ylim(-0.02 * axis.get_ylim()[1], None)
    panels.legend(figure)
    return figure


def growth_figure(found: study.Growth, rates: bool = True) -> plt.Figure:
    """What a regression has over the baseline against the public records it was fitted to, paired by target: members found,
    AUC, and pinball loss. Members found only where `rates` says that strangers are enough for 1 %."""
    sizes, heads = found.sizes.astype(float), [one for one in found.methods if one != study.MARGINAL]
    columns = {"TPR (points) at 1 % FPR": (found.tpr, 100), "AUC": (found.auc, 1), "pinball loss at 1 %": (found.pinball, 1)}
    figure, axes = panels.grid(list(columns), 3.7)
    axes[0].set_ylabel("regression less baseline")
    for axis, (measured, unit) in zip(axes, columns.values(), strict=True):
        if measured is found.tpr and not rates:
            axis.text(0.5, 0.6, results.BELOW, transform=axis.transAxes, ha="center")
            continue
        for k, method in enumerate(heads):
            gain = measured[method.name] - measured[study.MARGINAL.name]
            panels.bars(axis, sizes * 1.04 ** (k - (len(heads) - 1) / 2), map(over, gain), unit,
                        label=method.title, **plotting.style_of(method.title))
        axis.axhline(0, **panels.CHANCE)
        axis.set(xscale="log", xlabel="public records fitted to", xlim=(sizes.min() / 1.4, sizes.max() * 1.4))
        shown = sizes if len(sizes) <= 4 else sizes[[0, len(sizes) // 2, -1]]
        panels.ticks(axis.xaxis, shown, [f"{size:,.0f}" for size in shown])
        axis.title.set_fontsize(10)
    panels.legend(figure)
    return figure


# -------------------------------------------------------------------------------------------------------------- the theory


def pinball_figure(levels: Sequence[float] = (0.5, 0.9, 0.99, 0.999)) -> plt.Figure:
    """Lemma 2: expected pinball loss of a threshold for standard normal scores, over its least value, which is at the
    quantile."""
    figure, (axis,) = panels.grid(1, 3.9)
    grid = np.linspace(-1.5, 4.2, 500)
    looks = zip((plotting.BLACK, plotting.BLUE, plotting.GREEN, plotting.RED), ("-", "--", "-.", ":"), "osD^", strict=True)
    for level, (color, line, marker) in zip(levels, looks, strict=False):
        least = theory.gaussian_pinball(stats.norm.ppf(level), level)
        axis.plot(grid, theory.gaussian_pinball(grid, level) / least, color=color, ls=line)
        axis.plot(stats.norm.ppf(level), 1, marker=marker, color=color, ms=8, mec="white", zorder=4)
        axis.plot([], [], color=color, ls=line, marker=marker, label=f"level {level:g}, least {least:.2g}")
    axis.set(yscale="log", ylim=(0.9, 30), xlabel="threshold (standard deviations)",
             ylabel="expected pinball loss / its least")
    panels.ticks(axis.yaxis, [1, 2, 5, 10, 20])
    panels.legend(figure)
    return figure


def lemmas(rates: Sequence[tuple[float, float]] = ((0.05, 0.2), (0.01, 0.05), (0.2, 0.05)),
           worlds: Sequence[str] = tuple(theory.RESIDUALS)) -> dict[tuple[str, float, float], dict[str, float]]:
    """Lemma 3 tried: (law of the residual, alpha, alpha') -> of `theory.lemma_three`."""
    return {(name, *pair): theory.lemma_three(*pair, name) for name in worlds for pair in rates}


def lemma_three_table(found: Mapping[tuple[str, float, float], Mapping[str, float]] | None = None) -> pd.DataFrame:
    """What moving a threshold to the right rate saves in pinball loss, and both forms of the bound.

    Args:
        found: of `lemmas`, by default as it is called without arguments.
    """
    return pd.DataFrame([
        {"residual": name, "rate": f"{had:g} to {alpha:g}", "saved": results.cell(one["gap"], ".5f"),
         "(α − α′)² / 2ρ": results.cell(one["bound"], ".5f"), "(α − α′)² alone": results.cell(one["square"], ".5f"),
         "as a bound, the square alone": "holds" if one["square"] <= one["gap"] + 1e-12 else "fails"}
        for (name, alpha, had), one in (lemmas() if found is None else found).items()])


def group_table(found: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Theorem 2: FPR by group of linear quantile regressions, on the sample fitted to and on fresh records.

    Args:
        found: of `theory.group_world`.
    """
    rows = []
    for k, name in enumerate(theory.CLASSES):
        row = {"class of functions": name}
        for g, group in enumerate(theory.GROUPS):
            row[f"{group}: fit, fresh"] = f"{found['fit'][k, g]:.3f}, {found['test'][k, g]:.3f}"
        excess = found["excess"][k]
        most_beyond = results.NOTHING if np.isnan(excess).all() else results.cell(np.nanmax(excess), ".1g")
        rows.append(row | {"most beyond p / n": most_beyond, "fresh pinball": results.cell(found["pinball"][k, 1], ".4f"),
                           "TPR": results.cell(found["tpr"][k])})
    return pd.DataFrame(rows)


def collapse_table(found: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """A class of functions that knows the score, with noise that it does not know; of `theory.collapse`."""
    return pd.DataFrame([{"noise in the score": results.cell(noise, "g"), "pinball loss": results.cell(loss, ".2g"),
                          "FPR with ≥": results.cell(loose), "FPR with >": results.cell(strict)}
                         for noise, loss, loose, strict in
                         zip(found["noise"], found["pinball"], found["at_or_above"], found["above"], strict=True)])


def power_table(alphas: Sequence[float] = (0.05, 0.01, 0.001)) -> pd.DataFrame:
    """TPR in the world of the idea: of the best single threshold, and of the conditional quantile."""
    found = theory.power(theory.HeteroscedasticWorld(), alphas)
    return pd.DataFrame([{"FPR": results.Cell(f"{100 * alpha:g} %", 100 * alpha, unit="%"), "one threshold": one,
                          "a threshold for each x": many, "ratio": results.cell(many / one, ".1f")}
                         for alpha, one, many in zip(*found.values(), strict=True)])


# ------------------------------------------------------------------------------------------------------------ the verdicts


def _judge(claim: str, parts: Mapping[str, Interval | None], absent: str, reason: str = FEW) -> claims.Verdict:
    """A verdict of parts; `reason` where one is None, `absent` where there is none."""
    if not parts:
        return claims.judge("quantile", claim, None, absent)
    return claims.judge("quantile", claim, parts, reason if None in parts.values() else None)


def judge_theory(groups: Mapping[str, np.ndarray],
                 lemma: Mapping[tuple[str, float, float], Mapping[str, float]]) -> list[claims.Verdict]:
    """C2 and A4.

    Args:
        groups: of `theory.group_world`. lemma: of `lemmas`.
    """
    excess, rounding = float(np.nanmax(groups["excess"])), 1e-9
    bound = max(one["bound"] - one["gap"] for one in lemma.values())
    square = min(one["gap"] - one["square"] for one in lemma.values()) + 2 * rounding  # not above 0 where it fails somewhere
    return [claims.judge_identity("quantile", "C2", excess, 0, "largest distance of an FPR beyond p / n"),
            claims.judge_identity("quantile", "A4", max(bound, square, 0.0), rounding, "distance from the statement")]


def judge_attacks(images: Plays, tables: Plays, fitted: Mapping[str, int], work: Mapping[str, study.Work] | None = None,
                  heads: Plays | None = None) -> list[claims.Verdict]:
    """C1, C1g, C5 to C8, C10, C11, A1, A2 and A2t.

    Args:
        images, tables: one of them may be empty. fitted: case -> records that regressions were fitted to. work: by case.
        heads: plays of images with the other regressions, where those were run against fewer targets than the paper's attack;
            `images` by default.
    """
    plays, work = {**images, **tables}, work or {}
    heads = {**(images if heads is None else heads), **tables}
    parts: dict[str, dict[str, Interval | None]] = {claim: {} for claim in
                                                    ("C1", "C1g", "C5", "C6", "C6u", "C7", "C8", "C11", "A1", "A2", "A2t")}
    margin = partial(claims.margin, "quantile")
    factor, exceedances = (margin("C1", name) for name in ("factor", "exceedances"))
    ten: dict[str, float | None] = {}
    sixteen = study.lira(16)

    def promise(claim: str, case: str, found: study.Play, how: str, head: str) -> None:
        if head not in found.fpr[how]:
            return
        enough = 0.01 * (fitted.get(case, 0) if how == "raw" else found.calibration.sum()) >= exceedances
        rate = achieved(found, head, 0.01, how) if resolved(found, 0.01) and enough else None
        name = f"{case}, {study.HEADS[head].title}"
        parts[claim] |= {case: None} if rate is None else {
            f"{name}, {factor:g} % less FPR": -rate + 0.01 * factor,
            f"{name}, FPR less 1 % / {factor:g}": rate - 0.01 / factor}

    for case, found in plays.items():
        fine, last = resolved(found, 0.01), most(found)

        def lead(a: str, b: str, found=found, fine=fine) -> Interval | None:
            return tpr(found, a, 0.01, b) if fine else None

        promise("C1g", case, found, "raw", OURS)
        promise("A1", case, found, "calibrated", OURS)
        ahead = lead(OURS, "marginal")
        if case in images:
            parts["C5"] |= {f"{case}, less Marginal": ahead, f"{case}, {last.title} less it": lead(last.name, OURS)}
            parts["C7"] |= {f"{case}, at 1 %": ahead, f"{case}, at 0.1 %": (
                tpr(found, OURS, 0.001, "marginal") if resolved(found, 0.001) else None)}
            least = margin("C11", "least")
            parts["C11"][f"{case}, precision less {least:g}"] = (
                precision(found, OURS, 0.01) - least if fine and _alarms_enough(found, 0.01) else None)
            if len(main_methods(found)) >= 4:
                parts["C6u"] |= {f"{case}, at {100 * rate:g} %": best_by_loss(found, rate) if resolved(found, rate) else None
                                 for rate in RATES}
        if case in tables and {OF_TABLES, sixteen.name} <= set(found.ranks):
            parts["C8"][case] = lead(OF_TABLES, sixteen.name) if fitted.get(case, 0) >= margin("C8", "records") else None
        if case in work:
            shadows, own, tuning = last.references * work[case].reference, work[case].regression, work[case].tuning
            name = f"{case}, {last.references} shadow models to one regression"
            ten[name] = shadows / own if np.isfinite(own) else None
            if tuning is not None:
                ten[f"{name} and its tuning"] = shadows / (own + tuning) if np.isfinite(own) else None
    for case, found in heads.items():
        promise("C1", case, found, "raw", "pinball_xy")
        promise("A1", case, found, "calibrated", "pinball_xy")
        for alone, both in (pair for pair in PAIRS if set(pair) <= set(found.ranks)):
            parts["A2" if case in images else "A2t"][f"{case}, {study.HEADS[both].kind}"] = of_attack(found, both, minus=alone)
    for rate, level in zip(RATES, study.LEVELS, strict=True):
        usable = {case: found for case, found in images.items() if resolved(found, rate)}
        found = rank_correlation(usable, level)
        least = margin("C6", "least")
        parts["C6"][f"-{least:g} less the correlation, at {100 * rate:g} %"] = None if found is None else -found - least
    missing = {**dict.fromkeys(("C5", "C7", "C11"), "no case with images in this run"),
               "C8": "no case with tables and 16 shadow models in this run",
               **{claim: f"no regression on the record alone with {kind} in this run" for claim, kind in (
                   ("A2", "images"), ("A2t", "tables"))}}
    missing["C6u"] = "no case with images and four of the paper's methods in this run"
    alone = "fewer than two cases with four of the paper's methods and non-members enough for this false positive rate"
    few = (f"fewer than 100 non-members, or fewer than {exceedances:g} expected exceedances among the records that set the "
           "threshold")
    too_few = {**dict.fromkeys(("C1", "C1g", "A1"), few), "C6": alone,
               "C7": "too few non-members for this false positive rate",
               "C8": f"fewer than {margin('C8', 'records'):,.0f} records to fit, or fewer than 100 non-members"}
    uncounted = "the regression's backbone is not installed here" if None in ten.values() else None if ten else "not counted"
    return [*(_judge(claim, of_claim, missing.get(claim, "no case in this run"), too_few.get(claim, FEW))
              for claim, of_claim in parts.items()), claims.judge_work("quantile", "C10", ten, uncounted)]


def judge_studies(mismatched: study.Mismatch | None,
                  flattered: Mapping[str, Mapping[str, study.Reported]]) -> list[claims.Verdict]:
    """C9 and A3.

    Args:
        mismatched: None where there was none. flattered: case -> of `flattery`.
    """
    nine: dict[str, Interval | None] = {}
    if mismatched is not None and len(mismatched.architectures) > 1:
        pairs = len(mismatched.architectures) * (len(mismatched.architectures) - 1)
        nine = {f"mean over {pairs} pairs, at {100 * rate:g} %":
                mismatch_cost(mismatched, rate) if resolved(mismatched, rate) else None for rate in RATES}
    three = {}
    for case, found in flattered.items():
        gap = {how: found[how].fresh_pinball - found[how].pinball for how in ("both", "honest")}
        three[case] = over(gap["both"] - gap["honest"])
    return [_judge("C9", nine, "one architecture in this run"),
            _judge("A3", three, "too few records to calibrate on, or too few strangers")]


@cache
def mismatch_cost(found: study.Mismatch, rate: float) -> Interval:
    """TPR at a rate of LiRA with the target's own architecture less that with another, mean over all pairs of two."""
    kinds = found.architectures
    terms = [(1.0 if shadow == target else -1 / (len(kinds) - 1), found.ranks[target, shadow])
             for target in kinds for shadow in kinds]
    return metrics.contrast(RATE.format(rate), [(weight / len(kinds), score, found.members, None) for weight, score in terms],
                            draws=100)


def judge_reach(data: Plays | None = None, transferred: Mapping[str, study.Transfer] | None = None,
                large: Plays | None = None) -> list[claims.Verdict]:
    """C3, C4, C12 and C13, which need more than one data set.

    Args:
        data: data sets in order of complexity. transferred: by task. large: by the name of a data set, of which "imagenet"
            and "cinic10" count.
    """
    large, data = large or {}, data or {}
    three, four = {}, {}

    def beyond(found: study.Play, name: str, minus: str, rate: float) -> Interval | None:
        return tpr(found, name, rate, minus) if resolved(found, rate) and {name, minus} <= set(found.ranks) else None

    for rate in RATES:
        if "imagenet" in large:
            three[f"at {100 * rate:g} %"] = beyond(large["imagenet"], OURS, "lira_8", rate)
        if "cinic10" in large:
            four |= {f"at {100 * rate:g} %, less LiRA (n = 2)": beyond(large["cinic10"], OURS, "lira_2", rate),
                     f"at {100 * rate:g} %, LiRA (n = 6) less it": beyond(large["cinic10"], "lira_6", OURS, rate)}
    twelve = {}
    for (less, easy), (more, hard) in pairwise(data.items()):
        step = " less ".join(TITLES.get(name, name) for name in (more, less))
        twelve[step] = difference(*(tpr(found, OURS, 0.01, "marginal") for found in (hard, easy))) if all(
            resolved(found, 0.01) for found in (easy, hard)) else None
    factor = claims.margin("quantile", "C13", "factor")
    thirteen = {task: None if np.array_equal(found.own, found.borrowed) else
                over(factor * found.own - found.borrowed) for task, found in (transferred or {}).items()}
    few = "too few non-members for a false positive rate, or LiRA without as many shadow models"
    return [_judge("C3", three, "ImageNet cannot be redistributed, and one regression takes 16 hours of a GPU", few),
            _judge("C4", four, "CINIC-10 was not run: `mia data ls` says where it comes from", few),
            _judge("C12", twelve, "fewer than two image data sets in this run"),
            _judge("C13", thirteen, "settings were not carried from one task to another in this run",
                   "both searches chose the same settings")]
