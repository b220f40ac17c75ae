"""Tables, figures and verdicts of the input-loss-curvature chapter, from what `study` computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import curve_fit

from mia_lib import metrics
from mia_lib.attacks import curvature as attack
from mia_lib.evidence import claims, panels, plotting, tables
from mia_lib.evidence.tables import format_percent as percent
from mia_lib.metrics.interval import LEAST, Interval, combined, difference
from mia_lib.papers.curvature import study, theory
from mia_lib.papers.numbers import MEASURES, number
from mia_lib.signals import curvature

PANELS = ("CIFAR10", "CIFAR100", "ImageNet")
SHORT = study.NAMES | {"lira_released": "LiRA, as released", "yeom": "Yeom"}  # in figures and verdicts
SWEPT = ("nll", "lr", "log_ratio", "lira_released", "lira", "yeom")
PRIVATE = ("nll", "lr", "lira", "yeom")
MAIN = (*study.PAPER, "log_ratio", "lira", "rmia")  # of the paper's eight and ours, what the main line compares
LIRAS = ("lira_released", "lira_lr", "lira_top", "lira", "lira_fixed")  # from the released code to the attack's own paper
CURVES = ("nll", "lr", "sablayrolles", "lira_released", "lira")  # of Figure 4
LOOKS = {method: plotting.style_of(SHORT[method]) for method in ("nll", "lr", "log_ratio", "lira", "yeom")} | {
    "sablayrolles": plotting.style_of("MAST") | {"label": "MAST (Sablayrolles)"},
    "lira_released": plotting.style_of("Quantile regression") | {"linestyle": ":"},
    "lira_fixed": plotting.style_of("LOSS") | {"linestyle": "-.", "marker": "D"}}
AUTHORS_POOL = 50_000  # records of CIFAR-100 that their training sets are drawn from
EASIEST = (0.1, 0.3, 0.5)  # shares of the pool
LOWEST = "tpr_at_fpr=0.001"
RATES = (0.001, 0.0001)  # of Table 5
POOLED = "pooled variance for its root, in both"  # of `attacks.curvature.CONTROLS`
CONTROL = "above chance"  # the part of a verdict without which a margin would be met where nothing leaks


def label(method: str) -> str:
    """What tables call a method: the paper's name, with what we add to it; ours in italics."""
    name = study.NAMES[method] + (" (LiRA, as released)" if method == "lira_released" else "")
    return name if method in study.PAPER else f"*{name}*"


def printed(table: str, metric: str) -> dict[tuple[str, str, str], str]:
    """(data, method, setting) -> the paper's number in percent, as text."""
    found = tables.printed("curvature", table, "dataset", "attack", "setting", "metric")
    return {(data, method, setting): f"{value + 1e-9:.1f}" for (data, method, setting, of), value in found.items()
            if of == metric}


# ------------------------------------------------------------------------------------------------------------- the idea


def look_of(method: str, **other) -> dict:
    """Colour, line, marker and name of a method in this chapter's figures."""
    return {"label": SHORT[method], **LOOKS[method], **other}


SEEN = ("a model that never saw it", "the model that was trained on it")
LABELS = ("the record's label", "the label that the model gives")
LINES = ("along u + v", "along u - v")
PAIRS = {"never saw it": (0, 0), "never saw it, the model's label": (0, 1), "trained on it": (1, 0)}  # model, label
COLOURS = (plotting.BLUE, plotting.RED)  # of the two lines


def probe_figure(found: study.Probe, h: float) -> plt.Figure:
    """Left: the loss less its tangent along the two lines of a probe, with its four points; right: the estimate against the
    step.

    Args:
        h: where the four points lie; the nearest of the probe's steps is drawn, see `step_drawn`.
    """
    figure, (left, right) = panels.grid(["around the record", "what four losses say"], 4.2)
    k = step_drawn(found, h)
    near, middle = np.abs(found.t) <= 2 * found.h[k], len(found.h)
    for line, (name, color) in enumerate(zip(LINES, COLOURS, strict=True)):
        bent = found.bent[0, 0, line]
        left.plot(found.t[near], bent[near], color=color, ls=("-", "--")[line], label=f"loss {name}")
        ends = middle + np.array([-k - 1, k + 1])
        left.plot(found.t[ends], bent[ends], "o", color=color, ms=7)
        crossed = np.flatnonzero(found.kinks[0, line])
        at = (found.t[crossed] + found.t[crossed + 1]) / 2
        at = at[np.abs(at) <= 2 * found.h[k]]
        left.plot(at, np.full(len(at), 0.02 + 0.04 * line), "|", color=color, ms=8, transform=left.get_xaxis_transform())
    left.set(xlabel="step from the record", ylabel="loss less its tangent (nats)")
    left.ticklabel_format(axis="both", style="sci", scilimits=(-2, 2))
    for (name, (model, given)), color, line in zip(
            PAIRS.items(), (plotting.ORANGE, plotting.PINK, plotting.BLUE), ("-", ":", "--"), strict=True):
        right.plot(found.h, np.maximum(np.abs(found.q[model, given]), TINY), color=color, ls=line, label=name)
        right.axhline(max(abs(found.product[model, given]), TINY), color=color, ls=line, lw=0.8, alpha=0.7)
    right.axvline(found.h[k], color=plotting.INK, lw=1, ls=":")
    right.set(xscale="log", yscale="log", xlabel="step h", ylabel="|q|")
    panels.legend(figure, 3)
    return figure


TINY = 1e-12  # of what a logarithmic axis shows


def step_drawn(found: study.Probe, h: float, most: float = np.inf) -> int:
    """The place of the probe's step that is nearest to h, among those up to `most`."""
    return int(np.abs(np.log(found.h[found.h <= most * (1 + 1e-9)] / h)).argmin())


def probe_chart(found: study.Probe, h: float):
    """The same for readers to move: the step, the model and the label.

    Args:
        h: where the slider starts.
    """
    alt = plotting.altair()
    start = step_drawn(found, h, most=0.1)  # where the slider ends
    middle, rows, steps, marks = len(found.h), [], [], []
    place = np.arange(-middle, middle + 1)
    for m in range(len(SEEN)):
        for line, name in enumerate(LINES):
            marks += [{"model": m, "line": name, "t": float((found.t[i] + found.t[i + 1]) / 2)}
                      for i in np.flatnonzero(found.kinks[m, line])]
        for g in range(len(LABELS)):
            for line, name in enumerate(LINES):
                rows += [{"model": m, "label": g, "line": name, "k": int(k), "t": float(t), "y": float(y)}
                         for k, t, y in zip(place, found.t, found.bent[m, g, line], strict=True)]
            inside = [found.kinks[m][:, middle - k:middle + k].sum() for k in range(1, middle + 1)]
            steps += [{"model": m, "label": g, "k": k + 1, "h": float(found.h[k]), "q": float(found.q[m, g, k]),
                       "size": max(abs(float(found.q[m, g, k])), TINY), "crossed": int(inside[k]),
                       "exact": float(found.product[m, g])} for k in range(middle)]
    power = alt.param("power", value=round(float(np.log10(found.h[start])), 2), bind=alt.binding_range(
        min=-5, max=-1, step=0.05, name="Step h, power of ten "))
    model = alt.param("seen", value=SEEN[0], bind=alt.binding_select(options=list(SEEN), name="Model "))
    given = alt.param("given", value=LABELS[0], bind=alt.binding_select(options=list(LABELS), name="Loss for "))
    here = f"datum.model == (seen == '{SEEN[1]}' ? 1 : 0)"
    asked = f"{here} && datum.label == (given == '{LABELS[1]}' ? 1 : 0)"
    k = "round((power + 5) / 0.05) + 1"
    colour = alt.Color("line:N", title=None, legend=alt.Legend(orient="top"),
                       scale=alt.Scale(domain=list(LINES), range=list(COLOURS)))
    curve = alt.Chart(alt.NamedData("rows")).transform_filter(asked).transform_filter(
        "abs(datum.t) <= 2.01 * pow(10, power)").transform_calculate(s="datum.t / pow(10, power)")
    x = alt.X("s:Q", title="step from the record, in units of h", scale=alt.Scale(domain=[-2.05, 2.05], nice=False))
    y = alt.Y("y:Q", title="loss less its tangent (nats)", axis=alt.Axis(format=".1~e", tickCount=5))
    dash = alt.StrokeDash("line:N", legend=None, scale=alt.Scale(domain=list(LINES), range=[[1, 0], [5, 3]]))
    bent = curve.mark_line(strokeWidth=2, aria=False).encode(x, y, colour, dash, order="t:Q")
    four = curve.transform_filter(f"abs(datum.k) == {k}").mark_point(filled=True, size=130, opacity=1).encode(
        x, y, colour, tooltip=[alt.Tooltip("line:N"), alt.Tooltip("t:Q", format=".3~g"), alt.Tooltip("y:Q", format=".3~g")])
    ticks = alt.Chart(alt.NamedData("marks")).transform_filter(here).transform_filter(
        "abs(datum.t) <= 2 * pow(10, power)").transform_calculate(s="datum.t / pow(10, power)").mark_tick(
        thickness=1.5, size=9, aria=False).encode(x, y=alt.value(SIDE - 6), color=colour)
    left = alt.layer(bent, ticks, four).properties(width=SIDE, height=SIDE)
    whole = alt.Chart(alt.NamedData("steps")).transform_filter(asked)
    scale = alt.Scale(type="log", nice=False)
    at = alt.X("h:Q", title="step h", scale=scale, axis=alt.Axis(format=".0e", tickCount=5, grid=False))
    chosen = whole.transform_filter(f"datum.k == {k}")
    lines = ["'Step ' + format(datum.h, '.2~g') + ', kinks crossed on the way to the four points: at least ' + datum.crossed",
             "'Four losses: q = ' + format(datum.q, '.3~g')",
             "'Hessian between kinks: ' + format(datum.exact, '.3~g')"]
    text = chosen.transform_calculate(lines=f"[{', '.join(lines)}]").mark_text(
        align="left", baseline="top", lineHeight=17).encode(
        x=alt.value(0), y=alt.value(0), text="lines:N").properties(name="said", width=2 * SIDE, height=17 * len(lines))
    size = alt.Y("size:Q", title="|q|", scale=alt.Scale(type="log"),
                 axis=alt.Axis(format=".0e", tickCount=5, grid=False))
    against = whole.mark_line(color=plotting.INK, strokeWidth=2, aria=False).encode(at, size)
    point = chosen.mark_point(filled=True, size=130, color=plotting.INK, opacity=1).encode(at, size)
    exact = chosen.transform_calculate(level=f"max(abs(datum.exact), {TINY})").mark_rule(
        color=plotting.FAINT, strokeDash=[5, 4], strokeWidth=1.5, aria=False).encode(
        y=alt.Y("level:Q", scale=alt.Scale(type="log")))
    right = alt.layer(exact, against, point).properties(width=SIDE, height=SIDE)
    both = alt.concat(left, right, columns=2, spacing=24)
    return alt.vconcat(text, both, spacing=8, datasets={"rows": rows, "steps": steps, "marks": marks}).add_params(
        power, model, given)


SIDE = 280  # pixels of a panel


# --------------------------------------------------------------------------------------------------------- single records


def extremes(records, difficulty: np.ndarray, count: int = 8) -> plt.Figure:
    """The images of lowest and of highest mean curvature (Figure 1)."""
    ranked = np.argsort(difficulty, kind="stable")
    figure, axes = panels.grid(2 * count, 2.6, rows=2)
    for axis, record in zip(axes, [*ranked[:count], *ranked[::-1][:count]], strict=True):
        image = records.x[record]
        axis.imshow(image[..., 0] if image.shape[-1] == 1 else image, cmap="gray")
        axis.set_title(records.classes[records.y[record]], fontsize=7.5)
        axis.set(xticks=[], yticks=[])
        axis.grid(False)
    for axis, title in zip(axes[::count], ("lowest", "highest"), strict=True):
        axis.set_ylabel(f"{title}\ncurvature", fontsize=9)
    return figure


def record_figure(found: Mapping[str, study.RecordCurves], percentiles: Sequence[float]) -> plt.Figure:
    """Log curvature of single records over all models, a tick a model, with the two Gaussians (Figure 3); a row a data set."""
    titles = [f"{name}:\n{percentile:g}th percentile" for name in found for percentile in percentiles]
    figure, axes = panels.grid(titles, 3.1 * len(found) + 0.3, "density", rows=len(found))
    records = [pair for one in found.values() for pair in zip(one.values, one.members, strict=True)]
    for axis, (values, members) in zip(axes, records, strict=True):
        grid = np.linspace(values.min() - 1, values.max() + 1, 200)
        for place, (name, side) in enumerate((("members", members), ("non-members", ~members))):
            look, own = plotting.STYLE[name], values[side]
            word = "trained on it" if name == "members" else "not trained on it"
            axis.plot(grid, stats.norm.pdf(grid, own.mean(), max(own.std(ddof=1), 1e-9)), color=look["color"],
                      ls=look["linestyle"], label=f"models {word}")
            axis.plot(own, np.full(len(own), 0.03 + 0.06 * place), "|", color=look["color"], ms=9,
                      transform=axis.get_xaxis_transform())
        axis.set_xlabel("log curvature")
        axis.grid(False)
    panels.legend(figure, 2)
    return figure


def mean_gap(log_curvature: np.ndarray, members: np.ndarray, draws: int = 400, seed: int = 0) -> Interval:
    """Mean log curvature [T, N] of non-members less that of members, over targets and records; without an interval where
    targets are too few for one."""
    log = log_curvature.astype(float)
    weights = np.random.default_rng(seed).multinomial(log.shape[1], np.full(log.shape[1], 1 / log.shape[1]), draws)

    def gap(w: np.ndarray) -> np.ndarray:
        return (w @ (log * ~members).T) / (w @ (~members).T) - (w @ (log * members).T) / (w @ members.T)

    each = gap(np.ones((1, log.shape[1])))[0]
    covers = f"{len(each)} targets and {log.shape[1]} records"
    found = combined(float(each.mean()), [each.var(ddof=1) / len(each), gap(weights).mean(1).var()], [len(each) - 1, np.inf],
                     covers=covers)
    return found if len(each) >= LEAST else found.without(f"{covers}: too few for an interval")


def intervals(targets: int) -> str:
    """What captions call intervals over so many targets."""
    return ("with 95 % intervals over targets and records" if targets >= LEAST else
            f"without intervals, for which {targets} targets are too few")


# -------------------------------------------------------------------------------------------------------------- the tables


def targets_table(plays: Mapping[str, study.Play]) -> pd.DataFrame:
    """What the targets are like."""
    return pd.DataFrame([{
        "data": name, "accuracy, members": float(found.train.mean()), "accuracy, non-members": float(found.test.mean()),
        "median loss, members": tables.cell(found.median_in.mean(), ".1e"),
        "median loss, non-members": tables.cell(found.median_out.mean(), ".1e"),
        "mean log curvature, non-members less members": mean_gap(found.log_curvature, found.members)}
        for name, found in plays.items()])


def table_one(plays: Mapping[str, study.Play], methods: Sequence[str] = tuple(study.NAMES)) -> pd.DataFrame:
    """Table 1: AUC as released and with one view for every method, and peak balanced accuracy, ours and the paper's, in
    percent; a peak has no interval."""
    theirs = {metric: {key[:2]: value for key, value in printed("table1", metric).items()}
              for metric in ("auroc", "balanced_accuracy")}
    rows = []
    for method in methods:
        row = {"method": label(method)}
        for name, found in plays.items():
            row |= {f"{name}: AUC": percent(number(found.scores[method], found.members)),
                    f"{name}: AUC, one view": percent(number(found.one_view.get(method, found.scores[method]), found.members)),
                    f"{name}: accuracy": percent(metrics.balanced_accuracy(found.scores[method], found.members).mean())}
        for data in PANELS:
            pair = [theirs[metric].get((data, study.PAPER.get(method, "")), tables.NOTHING) for metric in theirs]
            row[f"paper, {data}"] = " / ".join(pair) if method in study.PAPER else tables.NOTHING
        rows.append(row)
    return pd.DataFrame(rows)


def views_table(plays: Mapping[str, study.Play]) -> pd.DataFrame:
    """Tables 2 to 4: AUC with one and with two views, in percent."""
    theirs = {}
    for table in ("table2", "table3", "table4"):
        for (data, method, setting), value in printed(table, "auroc").items():
            theirs[data, method, setting.startswith("2")] = value
    rows = []
    for method in study.TWO_VIEWS:
        row = {"method": label(method)}
        for name, found in plays.items():
            one, two, members = found.one_view[method], found.scores[method], found.members
            row |= {f"{name}: one view": percent(number(one, members)), f"{name}: two views": percent(number(two, members)),
                    f"{name}: gain": percent(number(two, members, minus=one))}
        for data in PANELS:
            pair = [theirs.get((data, study.PAPER.get(method), two)) for two in (False, True)]
            row[f"paper, {data}"] = f"{pair[0]}, {pair[1]}" if all(pair) else tables.NOTHING
        rows.append(row)
    return pd.DataFrame(rows)


def tpr(scores: np.ndarray, members: np.ndarray, rate: float) -> Interval:
    """TPR at a rate, over targets and records; the lowest rate, for which few runs have records enough, by itself."""
    name = f"tpr_at_fpr={rate}"
    return number(scores, members, name, measures=MEASURES if name in MEASURES else (name,))


def low_rates(plays: Mapping[str, study.Play]) -> pd.DataFrame:
    """Table 5: TPR at low FPR, in percent, and what scores that know nothing have of it; the lowest rate of the paper's where
    non-members are enough for it."""
    theirs = {(method, setting[0], metric.split("_")[-1]): tables.cell(value, ".2f", "%") for (method, setting, metric), value
              in tables.printed("curvature", "table5", "attack", "setting", "metric").items()}
    rows = []
    for method in [*study.NAMES, None]:
        row = {"method": "*scores that know nothing*" if method is None else label(method)}
        for name, found in plays.items():
            lowest = [rate for rate in RATES if rate == RATES[0] or metrics.resolves(found.members, rate)]
            for rate, of_views in ((0.01, found.scores), *product(lowest, (found.one_view, found.scores))):
                column = f"{name}: {100 * rate:g} %" + (", one view" if of_views is found.one_view else "")
                row[column] = (tables.BELOW if not metrics.resolves(found.members, rate) else
                               tables.chance(found.members, rate) if method is None else
                               tables.NOTHING if method not in of_views else
                               percent(tpr(of_views[method], found.members, rate)))
        for rate in ("0.1pct", "0.01pct"):
            pair = [theirs.get((study.PAPER.get(method), views, rate)) for views in ("1", "2")]
            row[f"paper, CIFAR-100: {rate.removesuffix('pct')} %"] = (
                tables.NOTHING if not all(pair) else pair[1] if pair[0] == pair[1] else f"{pair[0]}, {pair[1]}")
        rows.append(row)
    return pd.DataFrame(rows)


def roc(plays: Mapping[str, study.Play], methods: Sequence[str] = CURVES) -> plt.Figure:
    """Figure 4: ROC on logarithmic axes, the mean TPR over targets, a panel a data set. It begins where one record counts."""
    figure, axes = panels.grid(list(plays), min(4.6, 1.6 + panels.WIDTH / len(plays)), "true positive rate", sharey=True)
    for axis, found in zip(axes, plays.values(), strict=True):
        low = 1 / min((~found.members).sum(1).min(), found.members.sum(1).min())
        grid = np.geomspace(low, 1, 300)
        for place, method in enumerate(methods):
            each = []
            for scores, members in zip(found.scores[method], found.members, strict=True):
                fpr, tpr, _ = metrics.roc_curve(scores, members)
                each.append(tpr[np.searchsorted(fpr, grid * (1 + 1e-12), side="right") - 1])
            axis.plot(grid, np.maximum(np.mean(each, 0), low / 10), drawstyle="steps-post", **look_of(method),
                      **panels.now_and_then(place, len(grid)))
        axis.plot([low, 1], [low, 1], label="chance", **panels.CHANCE)
        axis.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1), box_aspect=1, xlabel="false positive rate")
    panels.legend(figure, 3)
    return figure


def logs_and_ratios(bank: study.Bank) -> pd.DataFrame:
    """AUC of the likelihood ratio and of its logarithm for each target, and how many records tie after the exponential."""
    rows, log = [], bank.signals["curvature"]
    for target in bank.game.attacked:
        references = bank.game.references(target)
        of_target, of_references, inside = log[target], log[references], bank.game.members[references]
        pair = {"LR": attack.likelihood_ratio(of_target, of_references, inside),
                "log LR": attack.nll(of_target, of_references, inside)}
        rows.append({"target": target, **{f"AUC of {name}": float(metrics.auc(score, bank.game.members[target]))
                                          for name, score in pair.items()},
                     "tied by exp": len(log[0]) - len(np.unique(pair["LR"]))})
    return pd.DataFrame(rows)


def ladder_table(plays: Mapping[str, study.Play]) -> pd.DataFrame:
    """The steps between the log-likelihood ratio and the released scores, each with what it changes, in percentage points."""
    measures = {}
    for name, found in plays.items():
        rates = [rate for rate in (0.01, 0.001) if metrics.resolves(found.members, rate)]
        measures[name] = [("auc", "AUC"), *((f"tpr_at_fpr={rate:g}", f"TPR at {100 * rate:g} %") for rate in rates)]

    def row(towards: str, step: str, pick, before) -> dict[str, tables.Cell | str]:
        cells = {"towards": towards, "step": step}
        for name, found in plays.items():
            scores, earlier = pick(found), before and before(found)
            for metric, word in measures[name]:
                change = [f"({percent(number(scores, found.members, metric, earlier))})"] if before else []
                cells[f"{name}: {word}"] = tables.stacked([
                    percent(number(scores, found.members, metric).value), *change])
        return cells

    rows = []
    for end, steps in attack.LADDERS.items():
        names = list(steps)
        for place, step in enumerate(names):
            rows.append(row(end, f"{step} = {end}" if step == names[-1] else step,
                            lambda found, end=end, step=step: found.ladders[end][step],
                            (lambda found, end=end, last=names[place - 1]: found.ladders[end][last]) if place else None))
    rows += [row("control", control, lambda found, control=control: found.controls[control],
                 lambda found: found.ladders["NLL"]["log-likelihood ratio"]) for control in attack.CONTROLS]
    return pd.DataFrame(rows)


def steps_table(plays: Mapping[str, study.Play]) -> pd.DataFrame:
    """Of `ladder_table`, AUC on the way to the released LR, and of the control that has one variance for both sides."""
    every = ladder_table(plays)
    return every.loc[(every["towards"] == "LR") | (every["step"] == POOLED),
                     ["step", *(column for column in every if column.endswith(": AUC"))]]


def base_table(found: Mapping[float, Mapping[str, np.ndarray]], members: np.ndarray) -> pd.DataFrame:
    """AUC of the log-likelihood ratio, and with variances for standard deviations, logarithms to each base, in percent."""
    rows = []
    for base, steps in found.items():
        proper, squared = steps.values()
        rows.append({"base of the logarithm": "e" if base == np.e else tables.cell(base, "g"), "log-likelihood ratio": percent(
            number(proper, members)), "variance for standard deviation": percent(number(squared, members)),
            "difference": percent(number(squared, members, minus=proper))})
    return pd.DataFrame(rows)


def references_table(counted: Mapping[int, Mapping[str, np.ndarray]], played: study.Play, most: int) -> pd.DataFrame:
    """AUC of the log-likelihood ratio with fewer references, of the same with variances for standard deviations, and of both
    released variants, in percent."""
    every = {**counted, most: {**played.scores, study.SQUARED: played.ladders["LR"][study.SQUARED]}}
    return pd.DataFrame([{"references": n, **{SHORT[m]: percent(number(every[n][m], played.members))
                                              for m in ("log_ratio", "nll", "lr")},
                          **{f"{SHORT.get(m, m)}, less log ratio": percent(number(every[n][m], played.members,
                                                                                  minus=every[n]["log_ratio"]))
                             for m in (study.SQUARED, "nll", "lr")}} for n in sorted(every)])


# ------------------------------------------------------------------------------------------------ what the number measures


def estimators_table(found: study.Estimators, h: float, iterations: int) -> pd.DataFrame:
    """Estimates of curvature: what they are like, and how well the same likelihood ratio does on each."""
    members, easy = found.members, found.easy
    return pd.DataFrame([
        {"signal": name, "needs": needs, "AUC of its log ratio": percent(number(one.ranks, members)),
         "AUC, all models right": (percent(number(one.ranks[:, easy], members[:, easy])) if easy.sum() >= 10
                                   else tables.NOTHING),
         "rank correlation with the norm": float(one.norm_correlation.mean()),
         "over the norm, right / wrong": " / ".join(tables.NOTHING if np.isnan(size) else f"{size:.2g}" for size in one.size)}
        for name, needs, one in _estimates(found, h, iterations)])


def signals_table(found: study.Estimators, h: float, iterations: int) -> pd.DataFrame:
    """What the main line needs of `estimators_table`: exact curvature, the released estimate with either label, and single
    confidences."""
    wanted = [found.named[name] for name in ("exact", "exact_norm", "own_label", "top", "true")] + [found.released]
    return pd.DataFrame([{"signal": name, "needs": needs, "AUC of its log ratio": percent(number(one.ranks, found.members))}
                         for name, needs, one in _estimates(found, h, iterations) if any(one is each for each in wanted)])


def _estimates(found: study.Estimators, h: float, iterations: int) -> list[tuple[str, str, study.Estimate]]:
    """Name, what it needs of the target, and estimate."""
    named, many = found.named, f"{4 * iterations} queries"
    return [
        ("trace, exact", "parameters", named["exact"]), ("Frobenius norm, exact", "parameters", named["exact_norm"]),
        ("trace, Hutchinson", "parameters", named["hutchinson"]), ("trace, four losses, as printed", many, named["printed"]),
        ("the same, log of its size", many, named["printed_log"]),
        *((f"as released, h = {step:g}", many, one) for step, one in found.by_step.items()),
        *((f"as released, h = {h:g}, {probes} probe{'s' * (probes != 1)}", f"{4 * probes} queries", one)
          for probes, one in found.by_probes.items()),
        (f"as released, h = {h:g}, in float32", many, named["released_float32"]),
        (f"as released, h = {h:g}, the model's own label", many, named["own_label"]),
        ("largest confidence (no curvature)", "1 query", named["top"]),
        ("true class's confidence (no curvature)", "1 query", named["true"])]


def steps_figure(found: study.StepSizes) -> plt.Figure:
    """Mean size of probes over what the Hessian between kinks gives for the same probes, against the step, in both
    precisions."""
    figure, (axis,) = panels.grid(1, 3.8)
    for dtype, sizes, marker, line, color in (("float32", found.float32, "o", "--", plotting.ORANGE),
                                              ("float64", found.float64, "s", "-", plotting.BLUE)):
        ratio = sizes / np.maximum(found.expected, 1e-300)[:, None]
        low, middle, high = np.quantile(ratio, (0.05, 0.5, 0.95), axis=0)
        axis.plot(found.h, middle, marker=marker, ls=line, color=color, label=f"{dtype}, median record")
        axis.fill_between(found.h, low, high, color=color, alpha=0.2, lw=0, label=f"{dtype}, 5th to 95th percentile")
    axis.axhline(1, color=plotting.INK, ls="-.", lw=1.4, label="the Hessian's, same probes")
    axis.set(xscale="log", yscale="log", xlabel="step h", ylabel=r"mean $|q|$ / mean $|v^\top Hu|$")
    panels.legend(figure, 2)
    return figure


def costs_figure(found: study.Estimators, counted: Mapping[int, Mapping[str, np.ndarray]], played: study.Play, most: int,
                 iterations: int) -> plt.Figure:
    """TPR at 1 % FPR against references, and AUC against queries, whose records are few for such a rate."""
    figure, (left, right) = panels.grid(["references", "queries"], 4.2)
    every = {**counted, most: played.scores}
    rates = metrics.resolves(played.members, 0.01)
    if not rates:
        left.text(0.5, 0.6, tables.BELOW, transform=left.transAxes, ha="center")
    for method in study.COMPARED if rates else ():
        values = [number(every[n][method], played.members, "tpr_at_fpr=0.01") for n in sorted(every)]
        panels.bars(left, sorted(every), values, 100, **look_of(method))
    left.set(xscale="log", xlabel="reference models", ylabel="TPR at 1 % FPR (%)")
    panels.ticks(left.xaxis, sorted(every))
    of = dict(sorted({**{4 * n: one for n, one in found.by_probes.items()}, 4 * iterations: found.released}.items()))
    at, values = list(of), [number(one.ranks, found.members) for one in of.values()]
    panels.bars(right, at, values, 100, **look_of("log_ratio", label="Curv, log ratio, one view"))
    for place, key, color, name in ((0.85, "true", plotting.SKY, "true class, log odds"),
                                    (1.15, "top", plotting.GREEN, "likeliest class, log odds")):
        value = number(found.named[key].ranks, found.members)
        panels.bars(right, [place], [value], 100, color=color, ls="none", label=name, marker="s" if key == "true" else "D")
    right.set(xscale="log", xlabel="queries of a record", ylabel="AUC (%)")
    panels.ticks(right.xaxis, [1, *at])
    for axis in (left, right) if rates else (right,):
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=1, fontsize=8)
    return figure


# ------------------------------------------------------------------------------------------------------------ the sweeps


def private_frame(found: study.PrivateTraining, epsilons: Sequence[float],
                  records: np.ndarray | None = None) -> pd.DataFrame:
    """AUC of methods at each epsilon, tidy; `records` as for `study.over_targets`."""
    rows = []
    for k, epsilon in enumerate([*epsilons, np.inf]):
        for method in PRIVATE:
            value = study.over_targets(found.scores[method][k], found.members, records=records)
            rows.append({"epsilon": epsilon, "method": SHORT[method], "interval": value, **plotting.ends(value)})
    return pd.DataFrame(rows)


def private_table(found: study.PrivateTraining, epsilons: Sequence[float],
                  records: np.ndarray | None = None) -> pd.DataFrame:
    """What DP-SGD spent, its accuracy and the AUC of the methods, in percent."""
    frame, rows = private_frame(found, epsilons, records), []
    for k, epsilon in enumerate([*epsilons, np.inf]):
        private = np.isfinite(epsilon)
        row = {"ε": tables.cell(epsilon, "g") if private else "no privacy",
               "ε spent": tables.cell(found.epsilon[k], ".2f") if private else tables.NOTHING,
               "noise": tables.cell(found.noise[k], ".2f") if private else tables.NOTHING,
               "accuracy": f"{found.train[k].mean():.2f} / {found.test[k].mean():.2f}"}
        at = frame[frame["epsilon"] == epsilon]
        rows.append(row | {name: percent(value) for name, value in zip(at["method"], at["interval"], strict=True)})
    return pd.DataFrame(rows)


def theorem_shape(epsilon, scale, offset):
    """(scale (1 - e^-epsilon) + offset)^2: of the three parameters of the paper's fit two can be told apart."""
    return (scale * (1 - np.exp(-np.asarray(epsilon, float))) + offset) ** 2


def private_figure(found: study.PrivateTraining, epsilons: Sequence[float],
                   records: np.ndarray | None = None) -> plt.Figure:
    """AUC against epsilon, and without privacy, mean over targets, with the paper's curve fitted to that of LR (Figure 5)."""
    every = private_frame(found, epsilons, records)
    frame = every[np.isfinite(every["epsilon"])].sort_values("epsilon")
    figure, (axis,) = panels.grid(1, 4.0, "AUC")
    beyond = max(epsilons) * max(1.5, (max(epsilons) / min(epsilons)) ** 0.12)  # where the recipe without privacy stands
    for method in PRIVATE:
        own = frame[frame["method"] == SHORT[method]]
        axis.plot(own["epsilon"], own["value"], **look_of(method))
        none = every[(every["method"] == SHORT[method]) & ~np.isfinite(every["epsilon"])]
        axis.plot([beyond], none["value"], **look_of(method, label=None, linestyle="none"))
    own = frame[frame["method"] == SHORT["lr"]]
    if len(own) > 2:
        fitted, _ = curve_fit(theorem_shape, own["epsilon"], own["value"], p0=[0.1, 0.7], maxfev=10000)
        fine = np.geomspace(min(epsilons), max(epsilons), 200)
        axis.plot(fine, theorem_shape(fine, *fitted), color=plotting.INK, ls="-", lw=1, alpha=0.7, label="fit to Curv ZO LR")
    axis.axhline(0.5, **panels.CHANCE)
    axis.axvline(np.sqrt(beyond * max(epsilons)), color=panels.FAINT, lw=0.7)
    axis.set(xscale="log", xlabel="ε (logarithmic)")
    few = [e for e in sorted(epsilons) if e in (min(epsilons), max(epsilons)) or len(epsilons) < 8 or e in (2, 5, 10, 20)]
    panels.ticks(axis.xaxis, [*few, beyond], [*(f"{e:g}" for e in few), "no\nprivacy"])
    panels.legend(figure, 3)
    return figure


Records = Mapping[str, Mapping[int, np.ndarray]]  # kind -> size -> of `study.judged_records`


def _at(records: Records | None, kind: str, size: int) -> np.ndarray | None:
    return None if records is None else records[kind][size]


def authors(figure: str, metric: str = "auroc") -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What the authors' own notebooks hold behind a figure that the paper prints without numbers.

    Args:
        figure: "fig6" or "fig7". metric: "auroc" or "balanced_accuracy".

    Returns:
        method -> share of the pool in percent, [n], and the metric as a fraction, [n].
    """
    found = tables.printed("curvature", f"{figure}_authors_code", "setting", "attack", "metric")
    names, out = {name: method for method, name in study.PAPER.items()}, {}
    for (setting, name, of), value in found.items():
        if of == metric:
            records = next(int(part.removeprefix(" m = ")) for part in setting.split(";") if part.startswith(" m = "))
            shares, values = out.setdefault(names[name], ([], []))
            shares.append(100 * records / AUTHORS_POOL)
            values.append(value / 100)
    return {method: (np.array(shares), np.array(values)) for method, (shares, values) in out.items()}


def sizes_figure(swept: Mapping[int, study.Sized], pool: int) -> plt.Figure:
    """AUC against the size of random training sets, mean over targets, beside the authors' (Figure 6).

    Args:
        pool: records that the sets are drawn from.
    """
    figure, axes = panels.grid(["ours", "the authors' notebooks, CIFAR-100"], 4.0, "AUC", sharey=True)
    shares = [100 * size / pool for size in swept]
    for method in SWEPT:
        axes[0].plot(shares, [metrics.auc(found.scores[method], found.members).mean() for found in swept.values()],
                     **look_of(method))
    for method, (at, values) in authors("fig6").items():
        axes[1].plot(at, values, **look_of(method, mfc="white"))
    for axis in axes:
        axis.axhline(0.5, **panels.CHANCE)
        axis.set(xscale="log", xlabel="training set, share of the pool (%)")
        panels.ticks(axis.xaxis, [1, 3, 10, 30, 100])
    panels.legend(figure, 3, [axes[0]])
    return figure


def coreset_figure(swept: Mapping[str, Mapping[int, study.Sized]], pool: int, told: Mapping[int, float]) -> plt.Figure:
    """AUC of NLL on each kind of training set, what tells a coreset without any target, and the authors' (Figure 7).

    Args:
        pool: records that the sets are drawn from. told: of `study.told_without_a_target`.
    """
    figure, axes = panels.grid(["AUC", "balanced accuracy"], 4.0, sharey=True)
    looks = {"random": (plotting.BLUE, "o", "-"), "coreset": (plotting.PINK, "v", "-"), "matched": (plotting.GREEN, "D", "--")}
    theirs = {"random": "fig6", "coreset": "fig7"}
    of_figure = {"auc": metrics.auc, "balanced_accuracy": metrics.balanced_accuracy}
    for axis, (metric, of_records) in zip(axes, of_figure.items(), strict=True):
        for kind, (color, marker, line) in looks.items():
            axis.plot([100 * size / pool for size in swept[kind]],
                      [of_records(found.scores["nll"], found.members).mean() for found in swept[kind].values()],
                      color=color, marker=marker, ls=line, label=kind)
            if kind in theirs:
                of = authors(theirs[kind], "auroc" if metric == "auc" else metric)
                if "nll" in of:
                    axis.plot(*of["nll"], marker=marker, mec=color, label=f"{kind}, the authors'", **panels.HOLLOW)
        axis.set(xscale="log", xlabel="training set, share of the pool (%)")
        panels.ticks(axis.xaxis, [1, 3, 10, 30, 100])
        axis.axhline(0.5, **panels.CHANCE)
    axes[0].plot([100 * size / pool for size in told], list(told.values()), "X:", color=plotting.INK,
                 label="coreset, no target at all")
    panels.legend(figure, 3)
    return figure


def coreset_table(swept: Mapping[str, Mapping[int, study.Sized]], told: Mapping[int, float],
                  records: Records | None = None) -> pd.DataFrame:
    """AUC of methods on each kind of training set, in percent."""
    rows = []
    for kind, of_kind in swept.items():
        for size, found in of_kind.items():
            rows.append({"training set": kind, "records": size, **{
                SHORT[m]: percent(study.over_targets(found.scores[m], found.members, records=_at(records, kind, size)))
                for m in ("nll", "lr", "lira_released", "lira", "yeom")},
                "no target at all": percent(told[size]) if kind == "coreset" else tables.NOTHING})
    return pd.DataFrame(rows).set_index(["training set", "records"])


# ------------------------------------------------------------------------------------------------------------- the theory


def mechanisms(count: int, seed: int = 0) -> pd.DataFrame:
    """Divergences of random finite epsilon-private mechanisms and of randomised response.

    A random mechanism draws a distribution and another whose ratio to it lies in [e^-epsilon, e^epsilon].

    Returns:
        DataFrame: epsilon, kl, kind.
    """
    rng, rows = np.random.default_rng(seed), []
    for _ in range(count):
        epsilon, outcomes = float(np.exp(rng.uniform(-3, 2))), int(rng.integers(2, 6))
        p = rng.dirichlet(np.full(outcomes, 0.5))
        ratio = np.exp(rng.uniform(-epsilon, epsilon, outcomes))
        side = p * ratio > p  # q = p ratio must sum to one: the part above and the part below are scaled towards p
        up, down = (p * (ratio - 1))[side].sum(), (p * (1 - ratio))[~side].sum()
        scale = min(up, down)
        move = np.where(side, p * (ratio - 1) * (scale / up if up else 0), p * (ratio - 1) * (scale / down if down else 0))
        rows.append({"epsilon": epsilon, "kl": float(theory.kl(p, p + move)), "kind": "random mechanism"})
    for epsilon in np.geomspace(0.05, 7, 40):
        matrix = theory.randomised_response(float(epsilon), 2)
        rows.append({"epsilon": float(epsilon), "kl": float(theory.kl(matrix[0], matrix[1])), "kind": "randomised response"})
    return pd.DataFrame(rows)


def theory_figure(found: pd.DataFrame, world: theory.CurvatureWorld, sizes: Sequence[float]) -> plt.Figure:
    """Left: what epsilon allows; right: the bound of Theorem 4.2 against it as the training set grows."""
    figure, (left, right) = panels.grid(["any score of a private model", "curvature"], 4.0)
    fine = np.geomspace(0.05, 7.4, 200)
    for kind, marker, color in (("random mechanism", ".", plotting.SKY), ("randomised response", "x", plotting.RED)):
        part = found[found["kind"] == kind]
        left.plot(part["epsilon"], part["kl"], marker, color=color, ms=4, label=kind)
    left.plot(fine, fine, color=plotting.INK, ls="--", label="Theorem 4.1: ε")
    left.plot(fine, theory.kl_cap(fine), color=plotting.INK, ls="-", label="sharp: ε tanh(ε/2)")
    left.set(xscale="log", yscale="log", xlabel="ε", ylabel="divergence (nats)", ylim=(1e-5, 20))
    for epsilon, line in ((0.5, "-"), (1.0, "--"), (2.0, ":")):
        right.plot(sizes, world.kl_bound(np.asarray(sizes, float), epsilon), color=plotting.PINK, ls=line,
                   label=f"Theorem 4.2, ε = {epsilon:g}")
        right.axhline(theory.kl_cap(epsilon), color=plotting.INK, ls=line, lw=1.2)
    right.plot([], [], color=plotting.INK, label="sharp, same ε")
    right.set(xscale="log", yscale="log", xlabel="training records m", ylabel="bound on the divergence (nats)")
    for axis in (left, right):
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), fontsize=8)
    return figure


# --------------------------------------------------------------------------------------------------------------- verdicts


def judge_theory(found: pd.DataFrame, world: theory.CurvatureWorld) -> list[claims.Verdict]:
    """Verdicts on C11, C12, C12a and C13."""
    excess = float(np.maximum(found["kl"] - found["epsilon"], 0).max())
    # Every model has the loss x^2 (1 - |x|) on [-1, 1], and records are -1, 0, 1: no noise, no gap, no bias.
    small = theory.CurvatureWorld(loss_bound=4 / 27, gamma=0.0, bias=0.0, hessian_lipschitz=6.0, alpha_cubed=1.0, sigma=1.0)
    lemma = max(2.0 - float(small.mean_bound(3, 0.0)), 0.0)
    sizes, beyond = np.geomspace(1, 1e6, 200), 0.0
    for epsilon in np.geomspace(0.1, 10, 60):
        bound = world.kl_bound(sizes, float(epsilon))
        beyond = max(beyond, *(theory.kl_cap(float(epsilon)) - bound[bound > epsilon]))
    return [claims.judge_identity("curvature", "C11", excess, 1e-12, "largest excess"),
            claims.judge_identity("curvature", "C12", lemma, 0.0, "curvature 2, beyond the bound by"),
            claims.judge_identity("curvature", "C12a", float(beyond), 0.0, "beyond the bound"),
            claims.judge_within("curvature", "C13", four_points_against_hessian(), "distance", "largest relative distance")]


def four_points_against_hessian(h: float = 1e-3, seed: int = 0) -> float:
    """Largest distance of q (u . v) from the same number by autograd's products, relative to their spread, on a smooth network
    of 64 inputs in float64."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.Tanh(), torch.nn.Linear(16, 5)).double()
    with torch.no_grad():
        for weight in net.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator, dtype=torch.float64) / weight.shape[-1] ** 0.5)
    x, y = torch.randn(20, 64, generator=generator, dtype=torch.float64), torch.arange(20) % 5

    def loss(inputs, labels):
        return torch.nn.functional.cross_entropy(net(inputs), labels, reduction="none")

    found, exact = curvature.zero_order_trace(loss, x, 1, h, seed, y=y), curvature.limit_trace(loss, x, 1, seed, y=y)
    return float(np.abs(found - exact).max() / exact.std())


def judge_attacks(plays: Mapping[str, study.Play], counted: Mapping[int, Mapping[str, np.ndarray]],
                  records: study.RecordCurves, estimated: study.Estimators,
                  normal: study.Normality) -> list[claims.Verdict]:
    """Verdicts on C1 to C7, C3v, C4v and A1 to A3.

    Args:
        plays: of `study.play`, by data set, the first that of the other three. counted: of `study.by_references`. records: of
            `study.record_curves`. estimated: of `study.estimators`. normal: of `study.normality`.
    """
    played = next(iter(plays.values()))
    most = len(records.values[0]) - 2
    few = quarter_of(counted, most)
    ids = ("C1", "C2", "C3", "C3v", "C4", "C4v", "C5", "C6", "C7", "A1", "A2", "A3")
    allowed, share = claims.margin("curvature", "A3", "allowed_points"), claims.margin("curvature", "C7", "allowed")
    parts: dict[str, dict[str, Interval | None]] = {claim: {} for claim in ids}
    for data, found in plays.items():
        where, scores, single = f"{data}, " if len(plays) > 1 else "", found.scores, found.one_view
        resolved = metrics.resolves(found.members, 0.001)
        alike = {m: single.get(m, scores[m]) for m in study.PAPER}  # one view for every method

        def lead(a: np.ndarray, b: np.ndarray, metric: str = "auc", found=found, resolved=resolved) -> Interval | None:
            return number(a, found.members, metric, b) if metric != LOWEST or resolved else None

        parts["C1"][data if where else ""] = mean_gap(found.log_curvature, found.members)
        for claim, seen, one in (("C3", scores, ""), ("C3v", alike, ".1")):
            calls = {m: found.called.get(m + one, found.called[m]).astype(np.float32) for m in study.PAPER}
            for m in (method for method in study.PAPER if method != "nll"):
                for word, of in (("AUC", seen), ("accuracy, rehearsed", calls)):  # the accuracy of calls is their AUC
                    parts[claim][f"{where}{word}, less {SHORT[m]}"] = lead(of["nll"], of[m])
        for claim, seen in (("C4", scores), ("C4v", alike)):
            parts[claim] |= {f"{where}less {SHORT[m]}": lead(seen["lr"], seen[m], LOWEST) for m in study.PAPER if m != "lr"}
        parts["C5"] |= {f"{where}AUC, NLL - LR": lead(scores["nll"], scores["lr"]),
                        f"{where}TPR at 0.1 %, LR - NLL": lead(scores["lr"], scores["nll"], LOWEST)}
        parts["C6"] |= {f"{where}NLL, AUC": lead(scores["nll"], single["nll"]),
                        f"{where}LR, AUC": lead(scores["lr"], single["lr"]),
                        f"{where}LR, TPR at 0.1 %": lead(scores["lr"], single["lr"], LOWEST)}
        parts["A1"] |= {f"{where}free variances": lead(scores["nll"], scores["lira"]),
                        f"{where}one variance": lead(scores["nll"], scores["lira_fixed"])}
        gain, low = lead(scores["log_ratio"], scores["nll"]), lead(scores["log_ratio"], scores["lr"], LOWEST)
        more = f"plus {100 * allowed:g} points"
        parts["A3"] |= {f"{where}AUC, less NLL, {more}": gain + allowed,
                        f"{where}TPR at 0.1 %, less LR, {more}": None if low is None else low + allowed,
                        f"{where}{CONTROL}": metrics.beyond_chance([number(scores["nll"], found.members)])}
    parts["C2"] = {side: rejections(share, left_out, claims.margin("curvature", "C2", "most"))
                   for side, share, left_out in zip(("IN", "OUT"), normal.share, normal.left_out, strict=True)}
    rivals = played.scores["lira_released"]
    asked = metrics.resolves(played.members, 0.001) and 4 * few <= most
    chance = float(np.mean(metrics.chance_tpr(played.members, 0.001)))
    parts["C7"] = {
        f"LR with {few}, plus {share:g} of LiRA's beyond chance": metrics.contrast(LOWEST, [
            (1.0, counted[few]["lr"], played.members, None), (share - 1, rivals, played.members, None)]) - share * chance
        if asked else None,
        f"LiRA, as released, {CONTROL}": number(rivals, played.members, f"conformal_{LOWEST}") - 0.001 if asked else None}
    parts["A2"] = {f"less {word}": number(estimated.released.ranks, estimated.members, minus=estimated.named[key].ranks)
                   for key, word in (("exact_norm", "the exact norm"), ("own_label", "own labels"))}
    reasons = {"C2": "no record was rejected, or all were, or single pairs of so few models make too much of a difference"}
    if 4 * few > most:
        reasons["C7"] = f"{few} of {most} references are more than a quarter"
    unresolved = "fewer than 1,000 non-members, which cannot resolve a false positive rate of 0.1 %"
    return [claims.judge("curvature", claim, found, reasons.get(claim, unresolved) if None in found.values() else None)
            for claim, found in parts.items()]


def finds(played: study.Play, name: str) -> str:
    """What the attacks find at few false alarms, in sentences."""
    if not metrics.resolves(played.members, 0.01):
        return f"On {name} a target has too few non-members for one false alarm in a hundred."
    lr, nll, released, lira, fixed, mast, rmia = (
        f"{100 * number(played.scores[of], played.members, 'tpr_at_fpr=0.01'):.1f} %"
        for of in ("lr", "nll", "lira_released", "lira", "lira_fixed", "sablayrolles", "rmia"))
    return (f"On {name} LR finds {lr} of the members where one in a hundred non-members is a false alarm. NLL finds {nll}, "
            f"LiRA as released {released}, with the true class {lira}, and with one variance for all records besides {fixed}, "
            f"all with two views. With one, MAST finds {mast}, RMIA {rmia}.")


def quarter_of(counted: Mapping[int, object], most: int) -> int:
    """The number of references nearest to a quarter of `most`."""
    return min(counted, key=lambda n: abs(n - most / 4))


def held(verdict: claims.Verdict) -> dict[str, str]:
    """How many parts of a claim lie above zero beyond chance, how many below it, of how many, and which do not lie above."""
    parts = {name: part for name, part in verdict.parts.items() if part is not None}
    rest = [name.removeprefix("less ") for name, part in parts.items() if part.sign <= 0]
    lost = sum(part.sign < 0 for part in parts.values())
    return {"won": str(len(parts) - len(rest)), "lost": str(lost), "all": str(len(parts)), "rest": "; ".join(rest) or "none"}


def rejections(share: float, left_out: np.ndarray, most: float) -> Interval | None:
    """`most` less the share of rejected records, by the jackknife over pairs of models; None where none was rejected, or all
    were, or a pair makes too much of a difference.

    Args:
        left_out: [G], the share without each pair.
    """
    if share in (0, 1) or not np.isfinite([share, *left_out]).all():
        return None
    pairs = len(left_out)
    variance = (pairs - 1) * left_out.var()
    return combined(most - float(share), [variance], [pairs - 1], covers=f"{2 * pairs} models", bounds=(most - 1, most))


def judge_sweeps(swept: Mapping[str, Mapping[int, study.Sized]], played: study.Play,
                 private: study.PrivateTraining | None, epsilons: Sequence[float], lacking: str,
                 records: Records | None = None, privately: np.ndarray | None = None) -> list[claims.Verdict]:
    """Verdicts on C8 to C10 and A4; `lacking` is why nothing was trained privately, where nothing was.

    Args:
        records, privately: of `study.judged_records` and `study.privately_judged`.
    """
    def over(kind: str, size: int, method: str, minus: str | None = None) -> Interval:
        found = swept[kind][size]
        return study.over_targets(found.scores[method], found.members, minus and found.scores[minus],
                                  _at(records, kind, size))

    random, pool = swept["random"], played.members.shape[1]
    sizes, nine = sorted(random), {}
    for method in ("nll", "lr"):
        nine[f"{SHORT[method]}, smallest less largest"] = None if len(sizes) < 2 else difference(
            *(over("random", n, method) for n in (sizes[0], sizes[-1])))
    for method in ("nll", "lr"):  # from which on the paper sees them ahead
        share = claims.margin("curvature", "C9", f"{method}_from")
        nine |= {f"{SHORT[method]} - {SHORT[b]} at {size}": over("random", size, method, b)
                 for size in sizes if size >= share * pool for b in ("lira_released", "yeom")} or {
                     f"{SHORT[method]} from {share:g} of the pool": None}
    ends = [over("coreset", n, "nll") for n in (sizes[0], sizes[-1])]
    ten = {"largest less smallest": difference(ends[1], ends[0]) if len(sizes) > 1 else None, **{
        f"coreset less random at {n}": difference(over("coreset", n, "nll"), over("random", n, "nll")) for n in sizes}}
    four = {f"easiest {100 * share:g} %": study.among_the_easiest(played, "nll", share, True) for share in EASIEST}
    lacking_sizes = None if None not in nine.values() else "one size only" if len(sizes) < 2 else "no size so large"
    verdicts = [claims.judge("curvature", "C9", nine, lacking_sizes),
                claims.judge("curvature", "C10", ten, None if len(sizes) > 1 else "one size only"),
                claims.judge("curvature", "A4", four, "members only, or others only, among so few records"
                             if None in four.values() else None)]
    if private is None or len(epsilons) < 3:
        return [*verdicts, claims.judge("curvature", "C8", None, lacking or "fewer than three epsilons")]
    order = np.argsort(epsilons)
    low, high, *middle = (private.scores["lr"][order[place]]  # the same targets; of an even number two are in the middle
                          for place in (0, -1, (len(order) - 1) // 2, len(order) // 2))
    return [*verdicts, claims.judge("curvature", "C8", {
        "rise": study.weighted_auc([(1.0, high), (-1.0, low)], private.members, privately),
        "first half less second": study.weighted_auc([*((1.0, one) for one in middle), (-1.0, low), (-1.0, high)],
                                                     private.members, privately)})]


def easiest_table(found: study.Play) -> pd.DataFrame:
    """AUC among the records of lowest curvature, members and non-members alike, in percent."""
    def cell(method: str, share: float) -> tables.Cell | str:
        value = study.among_the_easiest(found, method, share)
        return tables.NOTHING if value is None else percent(value)

    return pd.DataFrame([{"records of lowest curvature": tables.Cell(f"{100 * share:g} %", 100 * share, unit="%"), **{
        SHORT[m]: cell(m, share) for m in ("nll", "log_ratio", "lira", "lira_fixed", "yeom")}}
        for share in (*EASIEST, 1.0)])
