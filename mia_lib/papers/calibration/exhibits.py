"""Tables, figures and verdicts of the chapter on difficulty calibration, each beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import curve_fit
from scipy.stats import norm, rankdata

from mia_lib import metrics
from mia_lib.attacks import baselines
from mia_lib.evidence import claims, explore, panels, plotting, tables
from mia_lib.metrics.interval import LEAST, Interval, beyond_chance, combined, difference, share_over
from mia_lib.papers.calibration import study, theory

Plays = Mapping[str, study.Play]  # by name of the games
LOW = "conformal_tpr_at_fpr=0.01"  # in verdicts, see there
CONTROL = "an attack above chance"  # the part of a verdict without which a margin would be met where nothing leaks
Attack = tuple[str, str]  # `study.GAP`, `UNSTOPPED` or one of `study.ATTACKS`
UNSTOPPED: Attack = ("loss", "a reference trained to the end")
PAPER_ROWS = ("German Credit", "Hepatitis", "Adult", "MNIST", "CIFAR-10", "CIFAR-100", "ImageNet", "CIFAR-10 (aug.)",
              "CIFAR-100 (aug.)")
LARGEST_GAINS = (("German Credit", "loss"), ("CIFAR-10", "gradient_norm"))  # cells of Cal. over Orig
REPEATS = 5  # of the paper's numbers on tables


def printed(table: str) -> dict[tuple[str, str], float]:
    """(row of `PAPER_ROWS`, name of the attack) -> the paper's number."""
    return {(data + (" (aug.)" if "with augmentation" in setting else ""), attack): value for (data, setting, attack), value
            in tables.printed("calibration", table, "dataset", "setting", "attack").items()}


def printed_of(games: study.Games, attack: str) -> str:
    """What the paper's Table 2 prints of an attack on the data of games, in words."""
    value = printed("table2").get((games.paper, attack))
    return f"the paper has no {games.paper}" if value is None else f"the paper prints {value:.3f} for {games.paper}"


def stopped_by_hand(found: study.Stopping) -> str:
    """The best of the epochs after which references were stopped by hand, in a sentence."""
    auc, epochs = found.auc.mean(1), found.epochs
    if len(epochs) == 1:
        return f"Stopped by hand after epoch {epochs[0]} it has an AUC of {auc[0]:.3f} there."
    return (f"Of the epochs tried by hand {epochs[auc.argmax()]} has the highest AUC there, {auc.max():.3f}, picked with the "
            "records judged: no attacker can.")


def by_row(all_games: Mapping[str, study.Games]) -> list[tuple[str, str | None]]:
    """Rows of a table, (the paper's data set, the games run for it), in the paper's order; None where nothing was run.

    What stands beside no row of the paper comes last.
    """
    rows = []
    for row in dict.fromkeys([*PAPER_ROWS, *(games.paper for games in all_games.values())]):
        mine = [name for name, games in all_games.items() if games.paper == row]
        rows += [(row, name) for name in mine or [None]]
    return rows


def intervals(all_games: Mapping[str, study.Games]) -> str:
    """What captions call intervals over plays, with the games that are too few to have any."""
    few = [name for name, games in all_games.items() if len(games) < LEAST]
    return "95 % intervals" + (f" (none for {', '.join(few)}, with too few games)" if few else "")


# ------------------------------------------------------------------------------------------------------------- the idea


def idea(played: study.Play, share: float = 0.1) -> plt.Figure:
    """Each record of the first play: how hard it is for the target against how hard it is for the reference, in ranks, for
    losses pile up at their lowest; no record is left out.

    Args:
        share: of the records that each of two thresholds calls members: one for all, drawn as a line, and one for the
            calibrated score, whose records have rings.
    """
    target, reference, called = _ranks(played, share)
    members = played.members[0]
    figure, (axis,) = panels.grid(1, 5.4, width=5.8)
    for name, kind in (("non-members", ~members), ("members", members)):
        look = plotting.STYLE[name]
        axis.scatter(reference[kind], target[kind], s=20, alpha=0.65, lw=0, color=look["color"], marker=look["marker"],
                     label=name)
    axis.scatter(reference[called], target[called], s=58, facecolors="none", edgecolors=plotting.INK, linewidths=1.2,
                 label=f"best {100 * share:g} % after calibration")
    axis.plot([0, 100], [0, 100], label="as hard as for the reference", **panels.CHANCE)
    axis.axhline(100 * share, color=plotting.INK, lw=1.6, label="one threshold for all")
    axis.set(xlim=(0, 100), ylim=(0, 100), box_aspect=1, xlabel="loss under the reference, rank from easy to hard (%)",
             ylabel="loss under the target, rank from easy to hard (%)")
    panels.legend(figure)
    return figure


def _ranks(played: study.Play, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the first play, [N'] each: ranks in percent of the losses under target and reference, and what the calibrated score
    calls first."""
    loss, gain = -played.scores["loss", "original"][0].astype(float), played.scores["loss", "scratch"][0].astype(float)
    target, reference = (100 * (rankdata(one, "ordinal") - 0.5) / len(one) for one in (loss, loss + gain))
    return target, reference, rankdata(-gain, "ordinal") <= share * len(gain)


def called_in_idea(played: study.Play, share: float = 0.1) -> dict[str, str]:
    """What the figure of `idea` shows: how many of the records below its line, and of those with rings, are members."""
    target, _, called = _ranks(played, share)
    return {name: f"{int((one & played.members[0]).sum())} of {int(one.sum())}"
            for name, one in (("line", target < 100 * share), ("rings", called))}


def members_among(scores: np.ndarray, members: np.ndarray, called: np.ndarray) -> np.ndarray:
    """Share of members among those records that have the highest scores; records that tie count as shuffled.

    Args:
        scores, members: [T, N']. called: shares of the records, [S].

    Returns:
        [T, S].
    """
    found = []
    for score, member in zip(scores, members, strict=True):
        fpr, tpr, _ = metrics.roc_curve(score, member)
        hits, alarms = tpr * member.mean(), fpr * (1 - member.mean())
        found.append(np.interp(called, hits + alarms, hits) / called)
    return np.array(found)


def top_share(played: study.Play, variant: str, share: float, covers: str) -> Interval:
    """Mean share of members among the records whose loss, or calibrated loss, speaks most for membership."""
    [values] = members_among(played.scores["loss", variant], played.members, np.array([share])).T
    return study.over(values, covers, (0.0, 1.0))


def top_figure(played: study.Play) -> plt.Figure:
    """Share of members among the records called members, against how many are called, before and after calibration."""
    called = np.geomspace(min(0.01, max(5 / played.members.shape[1], 0.002)), 1, 200)
    figure, (axis,) = panels.grid(1, 4.0, width=6.2)
    for variant, short in study.VARIANTS.items():
        each, look = members_among(played.scores["loss", variant], played.members, called), plotting.style_of(short)
        axis.plot(called, each.mean(0), color=look["color"], ls=look["linestyle"], label=short)
        axis.fill_between(called, each.min(0), each.max(0), color=look["color"], alpha=0.12, lw=0)
    axis.axhline(played.members.mean(), **panels.CHANCE)
    axis.set(xscale="log", xlim=(called[0], 1), ylim=(0, 1.02), ylabel="members among them",
             xlabel="share of the records called members, best scores first")
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(lambda rate, _: f"{100 * rate:g} %")
    panels.legend(figure, 3)
    return figure


def softmax_twice() -> plt.Figure:
    """The loss of a record of two classes against the margin of its logits, with one softmax and with two."""
    margin = np.linspace(-8, 8, 400)
    figure, (axis,) = panels.grid(1, 3.6, width=5.8)
    for (name, loss), look in zip(theory.losses_of_two_classes(margin).items(), ({"color": plotting.BLUE, "ls": "--"},
                                                                               {"color": plotting.RED}), strict=True):
        axis.plot(margin, loss, label=f"softmax {name}", **look)
    axis.set(xlim=(-8, 8), ylim=(0, 4), xlabel="logit of the true class less the other's", ylabel="loss (nats)")
    panels.legend(figure)
    return figure


# --------------------------------------------------------------------------------------------------------- Tables 1 to 4


def table_one(plays: Plays, all_games: Mapping[str, study.Games], run: bool = True) -> pd.DataFrame:
    """Accuracies of the targets beside the paper's, and of what calibrates them; `run` as for `table_of`."""
    paper, rows = tables.printed("calibration", "table1", "dataset", "metric"), []
    for row, name in by_row(all_games):
        theirs = {side: paper.get((row.removesuffix(" (aug.)"), f"{side}_accuracy")) for side in ("train", "test")}
        ours = {side: None if name is None else study.over(plays[name].accuracy[side], all_games[name].covers, (0, 1))
                for side in ("train", "test", "scratch", "forgetting")}
        if (name is not None) != run or name is None and row.endswith("(aug.)"):
            continue  # the paper prints one row a set
        rows.append({"data": name or row, "train": tables.beside(ours["train"], theirs["train"]),
                     "test": tables.beside(ours["test"], theirs["test"]),
                     "target": tables.NOTHING if name is None else tables.cell((ours["train"].value + ours["test"].value) / 2),
                     "reference from scratch": tables.NOTHING if name is None else tables.cell(ours["scratch"].value),
                     "after forgetting": tables.NOTHING if name is None else tables.cell(ours["forgetting"].value)})
    return pd.DataFrame(rows)


def table_of(plays: Plays, all_games: Mapping[str, study.Games], metric: str, table: str, run: bool = True) -> pd.DataFrame:
    """Table 2 (metric "auc") or 3 ("accuracy"): a row a data set and score, ours / the paper's.

    Args:
        run: the data sets that were run, or the paper's numbers for those that were not.
    """
    paper, rows = printed(table), []
    paper_score = {"loss": "Loss", "gradient_norm": "GN", "confidence": "Confidence"}
    for row, name in by_row(all_games):
        if (name is not None) != run:
            continue

        def ours(attack: Attack, name: str | None = name) -> Interval | None:
            return None if name is None else interval(plays, all_games, name, attack, metric)

        rows.append({"data": name or row, "score": "gap",
                     "Orig": tables.beside(ours(study.GAP), paper.get((row, "Gap"))),
                     "Cal.": tables.NOTHING, "Cal.-F": tables.NOTHING})
        rows += [{"data": "", "score": score.replace("_", " ")} | {
            short: tables.beside(ours((score, variant)), paper.get((row, f"{paper_score[score]} {short}")))
            for variant, short in study.VARIANTS.items()} for score in study.SCORES]
    return pd.DataFrame(rows)


def as_in_the_paper(all_games: Mapping[str, study.Games]) -> list[str]:
    """Names of the games on the paper's own data; of two networks on one table the released one, with two softmaxes."""
    released = {one.paper for one in all_games.values() if one.models.config.loss == "double_softmax"}
    own = claims.on_own_data("calibration", "C1", {name: one.models.records.name for name, one in all_games.items()})
    return [name for name in own if all_games[name].models.config.loss == "double_softmax"
            or all_games[name].paper not in released]


def thresholds(plays: Plays, all_games: Mapping[str, study.Games]) -> pd.DataFrame:
    """Accuracy of each attack run at the rehearsed threshold, at zero and at its peak, and the paper's."""
    paper, rows = printed("table3"), []
    short_of = {"loss": "Loss", "gradient_norm": "GN", "confidence": "Confidence"}
    for name, played in plays.items():
        for attack in study.ATTACKS:
            score, variant = attack
            short, peak = study.VARIANTS[variant], metrics.balanced_accuracy(played.scores[attack], played.members)
            row = {"data": name if attack == study.ATTACKS[0] else "", "attack": f"{score.replace('_', ' ')}, {short}"}
            zero = tables.NOTHING if variant == "original" else tables.cell(
                interval(plays, all_games, name, attack, "default_accuracy"))
            theirs = paper.get((all_games[name].paper, f"{short_of[score]} {short}"))
            rows.append(row | {"rehearsed": tables.cell(interval(plays, all_games, name, attack, "accuracy")),
                               "above zero": zero, "peak": tables.cell(peak.mean()),
                               "paper": tables.NOTHING if theirs is None else tables.cell(theirs)})
    return pd.DataFrame(rows)


def nearer_to_peaks(frame: pd.DataFrame, where: Sequence[str]) -> tuple[int, int]:
    """Of the cells of `thresholds` whose printed number our peak reaches, how many of these numbers lie nearer to it than to
    our accuracy at the rehearsed threshold; and how many there are. One above both is always nearer to the peak.

    Args:
        where: the paper's own data with its own networks, by what the table calls them.
    """
    rows = frame[(frame["paper"] != tables.NOTHING) & frame["data"].replace("", None).ffill().isin(where)]
    paper, peak, rehearsed = (rows[column].astype(float).round(3) for column in ("paper", "peak", "rehearsed"))
    reached = paper <= peak
    return int((reached & ((paper - peak).abs() < (paper - rehearsed).abs())).sum()), int(reached.sum())


def code_differences(plays: Plays, all_games: Mapping[str, study.Games], images: str) -> pd.DataFrame:
    """AUC of gradient scores by two norms and of what the released code takes for the second, on tables, and of the loss with
    dropout left on, on images.

    Args:
        images: the game whose networks are left in training mode.
    """
    def row(data: str, score: str, found: Mapping[str, np.ndarray]) -> dict:
        shown = {v: study.over(of_plays, all_games[data].covers) for v, of_plays in found.items()}
        return {"data": data, "score": score, **{study.VARIANTS[v]: shown.get(v, tables.NOTHING)
                                                 for v in ("original", "scratch")}}

    def kept(name: str, score: str) -> dict[str, np.ndarray]:
        return {v: study.per_target(plays[name], (score, v), "auc") for v in ("original", "scratch")}

    rows = []
    for name, games in all_games.items():
        if not games.models.records.is_image:
            rows += [row(name, "gradient, 2-norm", kept(name, "gradient_norm")),
                     row(name, "gradient, largest absolute entry", study.gradient_by_entry(games)),
                     row(name, "gradient, largest entry of the difference, as released",
                         {"scratch": study.released_gradient(games)})]
    if study.drops_out(all_games[images]):
        rows += [row(images, "loss, dropout off", kept(images, "loss")),
                 row(images, "loss, dropout left on, as released", study.with_dropout(all_games[images]))]
    else:
        rows.append(row(images, "loss, dropout left on: this network has none", {}))
    return pd.DataFrame(rows)


def low_rates(plays: Plays, all_games: Mapping[str, study.Games]) -> pd.DataFrame:
    """TPR at 1 % and 0.1 % FPR of every attack run, in percent, and that of scores that know nothing; what non-members cannot
    resolve is said."""
    rows = []
    for name, played in plays.items():
        for score in study.SCORES:
            row = {"data": name if score == "loss" else "", "score": score.replace("_", " ")}
            for rate in (0.01, 0.001):
                if not any(metrics.resolves(one.members, rate) for one in plays.values()):
                    row[f"any, {100 * rate:g} %"] = tables.BELOW
                    continue
                for variant, short in study.VARIANTS.items():
                    row[f"{short}, {100 * rate:g} %"] = tables.BELOW if not metrics.resolves(played.members, rate) else (
                        tables.format_percent(interval(plays, all_games, name, (score, variant), f"tpr_at_fpr={rate:g}")))
                row[f"chance, {100 * rate:g} %"] = tables.chance(played.members, rate) if (
                    score == "loss" and metrics.resolves(played.members, rate)) else ""
            rows.append(row)
    return pd.DataFrame(rows)


def places(which: np.ndarray) -> np.ndarray:
    """The numbers of the records that are chosen in each row of bool [T, N], equally many, as int [T, n]."""
    return np.nonzero(which)[1].reshape(len(which), -1)


def scored(played: study.Play, attack: Attack, metric: str) -> tuple[np.ndarray, str]:
    """Scores [T, N'] and a metric of `mia_lib.metrics` that together give one of `study.per_target`: the accuracy of calls is
    their AUC."""
    if attack == study.GAP:
        return baselines.gap(played.correct), "auc"
    if attack == UNSTOPPED:
        return unstopped(played, 1), metric
    score = played.scores[attack]
    if metric == "accuracy":
        return (score >= played.thresholds[attack][:, None]).astype(float), "auc"
    if metric == "default_accuracy":
        return (score > 0).astype(float), "auc"
    return score, metric


def over_plays(games: study.Games, metric: str, terms: list[tuple[float, np.ndarray]], members: np.ndarray,
               which: np.ndarray | None = None) -> Interval:
    """A weighted sum of a metric of scores [T', n] over plays; plays and records are both chance.

    Args:
        which: bool [T', N], the records that are judged; the private ones by default.
    """
    records = places(games.private[:len(members)] if which is None else which)
    found = metrics.contrast(metric, [(weight, score, members, records) for weight, score in terms], draws=200)
    return replace(found, covers=f"{games.covering(len(members))} and {len(np.unique(records))} records")


def interval(plays: Plays, all_games: Mapping[str, study.Games], name: str, attack: Attack, metric: str,
             minus: Attack | None = None) -> Interval:
    """A number of the tables with its interval over plays and records, or the paired difference of two attacks."""
    return weighted(plays, all_games, name, metric, {attack: 1.0} if minus is None else {attack: 1.0, minus: -1.0})


def weighted(plays: Plays, all_games: Mapping[str, study.Games], name: str, metric: str,
             weights: Mapping[Attack, float]) -> Interval:
    """A weighted sum of a metric of several attacks."""
    found = {attack: scored(plays[name], attack, metric) for attack in weights}
    [core] = {core for _, core in found.values()}
    return over_plays(all_games[name], core, [(weights[attack], score) for attack, (score, _) in found.items()],
                      plays[name].members)


Labelled = Mapping[str, study.LabelOnly]  # by name of the games


def label_scores(found: study.LabelOnly, variant: str, metric: str) -> np.ndarray:
    """Scores [T', N'] whose AUC is that, or the rehearsed accuracy, of the boundary distance."""
    score = found.scores[variant]
    return score if metric == "auc" else (score >= found.thresholds[variant][:, None]).astype(float)


def of_labels(found: study.LabelOnly, games: study.Games, terms: list[tuple[float, np.ndarray]]) -> Interval:
    """A weighted sum of AUCs over the plays of the label-only attack."""
    plays = len(found.members)
    which = study.label_only_records(games.private[:plays], games.members[:plays, 0])
    return over_plays(games, "auc", terms, found.members, which)


def table_four(found: Labelled, all_games: Mapping[str, study.Games], run: bool = True) -> pd.DataFrame:
    """Label-only attacks, ours / the paper's, with the queries spent on each record; `run` as for `table_of`."""
    paper, rows = tables.printed("calibration", "table4", "dataset", "attack", "metric"), []
    for row, name in by_row(all_games):
        if (row, "HopSkipJump Orig", "auc") not in paper or (name in found) != run:
            continue
        cells = {"data": name or row}
        for metric, key, word in (("auc", "auc", "AUC"), ("accuracy", "attack_accuracy", "accuracy")):
            for variant, short in study.VARIANTS.items():
                ours = None
                if name in found:
                    ours = of_labels(found[name], all_games[name], [(1.0, label_scores(found[name], variant, metric))])
                cells[f"{word}, {short}"] = tables.beside(ours, paper.get((row, f"HopSkipJump {short}", key)))
        cells["queries"] = tables.cell(found[name].queries, ".0f") if name in found else tables.NOTHING
        rows.append(cells)
    return pd.DataFrame(rows)


def readings(found: Labelled, all_games: Mapping[str, study.Games]) -> pd.DataFrame:
    """AUC of the label-only score before calibration, and after it in four readings of how distances are subtracted."""
    rows = []
    for name, one in found.items():
        target = one.distances["target"]
        for variant in ("scratch", "forgetting"):
            reference = one.distances[variant]
            zero, rank = ([function(side) for side in (target, reference)]
                          for function in (lambda side: np.maximum(side, 0), lambda side: rankdata(side, axis=1)))
            readings_of = {"Orig": one.scores["original"], "negative": one.scores[variant],
                           "zero": study.calibrated(*zero, own="keep"),
                           "as released": np.where(reference < 0, 0.0, one.scores[variant]),
                           "ranks": study.calibrated(*rank, own="keep")}
            rows.append({"data": name, "calibrated": study.VARIANTS[variant]} | {
                word: of_labels(one, all_games[name], [(1.0, score)]) for word, score in readings_of.items()})
    return pd.DataFrame(rows)


# ------------------------------------------------------------------------------------------------------------- Figures


def histograms(played: study.Play) -> plt.Figure:
    """Figure 1: the loss of members and non-members of all plays, before and after calibration."""
    members, panels, thresholds = played.members.ravel(), {}, {}
    for variant, title in (("original", "before: minus the loss"), ("scratch", "after: less the reference's")):
        score = played.scores["loss", variant].ravel().astype(float)
        panels[title] = np.clip(score, *np.quantile(score, [0.01, 0.99])), members
        thresholds[title] = float(np.median(played.thresholds["loss", variant]))
    return plotting.histograms(panels, thresholds, xlabel="score in nats, ends clipped")


def _curves(axes, scores: np.ndarray, members: np.ndarray, dot: bool, **look) -> None:
    """Mean ROC (logarithmic) and precision against recall over plays, with the point of best accuracy."""
    grid = np.geomspace(1e-4, 1, 400)
    rates, recalls, dots = [], np.linspace(0.005, 1, 400), []
    precisions = []
    for score, member in zip(scores, members, strict=True):
        fpr, tpr, _ = metrics.roc_curve(score, member)
        rates.append(tpr[np.searchsorted(fpr, grid * (1 + 1e-12), side="right") - 1])
        share = member.mean()
        at = np.searchsorted(tpr, recalls)
        precisions.append(metrics.precision(tpr[at], fpr[at], share))
        best = np.argmax(tpr - fpr)
        dots.append((fpr[best], tpr[best], metrics.precision(tpr[best], fpr[best], share)))
    axes[0].plot(grid, np.mean(rates, 0), **look)
    axes[1].plot(recalls, np.mean(precisions, 0), **look)
    if dot:
        fpr, tpr, precision = np.mean(dots, 0)
        mark = {"marker": "o", "ms": 9, "mfc": "none", "mew": 2, "ls": "none", "color": look["color"], "zorder": 6}
        axes[0].plot(fpr, tpr, **mark)
        axes[1].plot(tpr, precision, **mark)


def _two_panels(members: np.ndarray) -> tuple[plt.Figure, np.ndarray]:
    """Axes of ROC and of precision against recall, with the lines of chance."""
    figure, axes = panels.grid(2, 3.9)
    low = max(1 / (~members).sum(1).min(), 1e-4)
    axes[0].plot([low, 1], [low, 1], **panels.CHANCE)
    axes[0].set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1.05), box_aspect=1, xlabel="false positive rate (log)",
                ylabel="true positive rate (log)")
    axes[1].axhline(members.mean(), **panels.CHANCE)
    axes[1].set(xlim=(0, 1), ylim=(0, 1.02), box_aspect=1, xlabel="recall", ylabel="precision")
    return figure, axes


def curves(played: study.Play) -> plt.Figure:
    """Figure 2: ROC and precision-recall of the loss, with the point that is best for accuracy."""
    figure, axes = _two_panels(played.members)
    for variant, short in study.VARIANTS.items():
        look = plotting.style_of(short)
        _curves(axes, played.scores["loss", variant], played.members, True, label=short, color=look["color"],
                ls=look["linestyle"])
    panels.legend(figure, 3)
    return figure


def sizes_frame(sizes: Mapping[int, study.Play], all_games: Mapping[int, study.Games]) -> pd.DataFrame:
    """Figure 3 as tidy rows: members of a training set, attack, metric, and the interval.

    Args:
        sizes, all_games: by the number of members.
    """
    attacks = {"Gap": study.GAP, **{short: ("loss", variant) for variant, short in study.VARIANTS.items()}}
    return pd.DataFrame([{"n": n, "attack": name, "panel": panel,
                          **plotting.ends(interval(sizes, all_games, n, attack, metric))}
                         for panel, metric in (("AUC", "auc"), ("accuracy, rehearsed", "accuracy"))
                         for n in sizes for name, attack in attacks.items()])


def sizes_figure(frame: pd.DataFrame) -> plt.Figure:
    """Figure 3: AUC and accuracy against the size of the training set."""
    return plotting.against(frame, "n", "value", by="attack", panel="panel", log=True, percent=True, chance=0.5,
                            xlabel="training records", ylabel="rate")


def ratio_figure(played: study.Play, others: list[int], covers: str) -> plt.Figure:
    """Figure 4: accuracy against the ratio of members, and precision-recall at each ratio, by the formula."""
    figure, axes = panels.grid(2, 4.2)
    for variant in ("original", "scratch"):
        look = plotting.style_of(study.VARIANTS[variant])
        frames = [study.at_ratio(played, ("loss", variant), k) for k in others]
        panels.bars(axes[0], others, [study.over(frame["rehearsed"], covers, (0.0, 1.0)) for frame in frames], **look,
                    label=f"{study.VARIANTS[variant]}, rehearsed threshold")
        axes[0].plot(others, [frame["best"].mean() for frame in frames], color=look["color"], ls=":", marker=look["marker"],
                     label=f"{study.VARIANTS[variant]}, best threshold")  # a peak has no interval
    axes[0].plot(others, [k / (1 + k) for k in others], label="calling nobody a member", **panels.CHANCE)
    axes[0].set(xscale="log", xlabel="non-members to one member", ylabel="accuracy", box_aspect=1)
    panels.ticks(axes[0].xaxis, others)
    recalls = np.linspace(0.005, 1, 300)
    for k, color in zip(others, plt.get_cmap("viridis")(np.linspace(0.0, 0.85, len(others))), strict=True):
        for variant, line in (("original", "--"), ("scratch", "-")):
            found = [metrics.precision(tpr[at], fpr[at], 1 / (1 + k))
                     for score, member in zip(played.scores["loss", variant], played.members, strict=True)
                     for fpr, tpr, _ in [metrics.roc_curve(score, member)] for at in [np.searchsorted(tpr, recalls)]]
            axes[1].plot(recalls, np.mean(found, 0), color=color, ls=line, label=f"1 : {k}" if line == "-" else None)
    axes[1].set(xlabel="recall", ylabel="precision (dashed: Orig)", xlim=(0, 1), ylim=(0, 1.02), box_aspect=1)
    axes[1].legend(title="members : others", loc="upper right")
    panels.legend(figure, axes=axes[:1])
    return figure


def more_frame(found: study.MoreForgetting, shares: list[float], covers: str) -> pd.DataFrame:
    """Figure 5 as tidy rows: references, share of the public records, metric and interval."""
    return pd.DataFrame([{"references": r + 1, "shadow set": f"{100 * share:g} % of public", "panel": panel,
                          **plotting.ends(study.over(values[s, r], covers))}
                         for panel, values in (("AUC", found.auc), ("accuracy, other plays' threshold", found.accuracy))
                         for s, share in enumerate(shares) for r in range(values.shape[1])])


def more_figure(frame: pd.DataFrame) -> plt.Figure:
    """Figure 5: AUC and accuracy against the number of references and the size of the shadow set."""
    return plotting.against(frame, "references", "value", by="shadow set", panel="panel", percent=True,
                            xlabel="forgetful copies", ylabel="rate")


def private_figure(found: study.PrivateTraining, epsilons: list[float], games: study.Games) -> plt.Figure:
    """Figure 6 in numbers: AUC, and TPR at 1 % FPR, against epsilon, calibrated and not, and without privacy; dashed, what
    scores have that know nothing."""
    names, levels = [f"{epsilon:g}" for epsilon in epsilons] + ["no privacy"], {"AUC": ("auc", 0.5)}
    if metrics.resolves(found.members, 0.01):
        levels["TPR at 1 % FPR"] = (LOW, 0.01)  # this rate's chance level, however few non-members there are
    figure, axes = panels.grid(list(levels), 4.0, "rate (%)")
    for axis, (metric, level) in zip(axes, levels.values(), strict=True):
        for place, variant in enumerate(("original", "scratch")):
            each = [over_plays(games, metric, [(1.0, one)], found.members) for one in found.scores[variant]]
            panels.bars(axis, np.arange(len(names)) + 0.1 * place, each, 100, label=study.VARIANTS[variant],
                        **plotting.style_of(study.VARIANTS[variant], place))
        axis.axhline(100 * level, **panels.CHANCE)
        panels.ticks(axis.xaxis, range(len(names)), names)
        axis.set_xlabel("ε asked for")
    panels.legend(figure, 2)
    return figure


def private_table(found: study.PrivateTraining, epsilons: list[float], games: study.Games) -> pd.DataFrame:
    """What DP-SGD costs and leaves: accuracies and AUC at each epsilon."""
    rows = []
    for e, name in enumerate([tables.cell(epsilon, "g") for epsilon in epsilons] + ["no privacy"]):
        spent = e < len(epsilons)
        rows.append({"ε asked for": name, "ε spent": tables.cell(found.epsilon[e], ".2f") if spent else tables.NOTHING,
                     "noise": tables.cell(found.noise[e], ".2f") if spent else tables.NOTHING,
                     "train": tables.cell(found.train[e].mean()), "test": tables.cell(found.test[e].mean()),
                     **{f"AUC, {study.VARIANTS[v]}": tables.cell(
                         over_plays(games, "auc", [(1.0, found.scores[v][e])], found.members))
                         for v in ("original", "scratch")}})
    return pd.DataFrame(rows)


def law_figure(plays: Plays) -> plt.Figure:
    """AUC against the number of references trained to the end: measured, by the law, and its one-parameter fit."""
    shown = {name: played for name, played in plays.items() if played.reference_loss.shape[1] > 1}
    rows = -(-len(shown) // 3)
    figure, axes = panels.grid(list(shown), 1.2 + 2.4 * rows, "AUC", rows, sharey=True)
    for axis, played in zip(axes, shown.values(), strict=False):
        measured, r = study.reference_aucs(played).mean(1), np.arange(1, played.reference_loss.shape[1] + 1)
        predicted, fine = study.law(played), np.linspace(1, len(r) + 0.5, 100)
        axis.plot(r, measured, "o", color=plotting.RED, label="measured")
        if len(r) > 2:
            [a], _ = curve_fit(fitted, r, measured, p0=[0.5])
            axis.plot(fine, fitted(fine, a), "-", color=plotting.RED, lw=1.4, label=r"fit of $\Phi(a/\sqrt{1+1/R})$")
        axis.plot(r, predicted["calibrated"], "s--", color=plotting.BLUE, mfc="white", label="law, from measured spreads")
        axis.axhline(metrics.auc(played.scores["loss", "original"], played.members).mean(), color=plotting.INK, ls=":",
                     label="not calibrated")
        axis.axhline(metrics.auc(played.scores["loss", "scratch"], played.members).mean(), color=plotting.GREEN, ls="-.",
                     label="one reference, stopped")
        axis.set(xlabel="references R", xticks=r)
    panels.legend(figure, 3)
    return figure


def fitted(r: np.ndarray, a: float) -> np.ndarray:
    """Phi(a / sqrt(1 + 1 / R))."""
    return norm.cdf(a / np.sqrt(1 + 1 / r))


def law_table(plays: Plays, all_games: Mapping[str, study.Games]) -> pd.DataFrame:
    """Spread of difficulty, noise and gain of members; and the change of AUC by one reference that was trained to the end, as
    the law has it and as measured."""
    rows = []
    for name, played in plays.items():
        if played.reference_loss.shape[1] < 2:
            continue
        found = study.law(played)
        rows.append({"data": name, "difficulty σ_D": found["difficulty"], "noise σ_ε": found["noise"],
                     "gain of members": found["gain"], "law: change": found["calibrated"][0] - found["original"],
                     "measured change": interval(plays, all_games, name, UNSTOPPED, "auc", ("loss", "original"))})
    return pd.DataFrame(rows)


def reference_table(plays: Plays, all_games: Mapping[str, study.Games]) -> pd.DataFrame:
    """AUC of the loss with each kind of reference."""
    rows = []
    for name, played in plays.items():
        games, count = all_games[name], played.reference_loss.shape[1]

        def to_the_end(r: int, played=played, games=games) -> Interval:
            return over_plays(games, "auc", [(1.0, unstopped(played, r))], played.members)

        rows.append({"data": name, "none": interval(plays, all_games, name, ("loss", "original"), "auc"),
                     "one, to the end": to_the_end(1), "all, to the end": f"{to_the_end(count):.3f} ({count})",
                     "one, all public records": tables.NOTHING if games.models.records.is_image else
                     study.over(study.whole_public_half(games), games.covers),
                     "one, stopped": interval(plays, all_games, name, ("loss", "scratch"), "auc"),
                     "best epoch": f"{np.median(played.epoch):g} of {games.models.config.epochs}"})
    return pd.DataFrame(rows)


def stopping_figure(found: Mapping[str, study.Stopping], plays: Plays, covers: Mapping[str, str]) -> plt.Figure:
    """AUC of the calibrated loss against the epoch at which the reference is stopped, beside two that know no such epoch.

    Args:
        found: by name of the games. plays: of the same games. covers: what varies between their plays.
    """
    figure, axes = panels.grid(list(found), 3.8, "AUC", sharey=True)
    for axis, (name, one) in zip(axes, found.items(), strict=True):
        panels.bars(axis, one.epochs, [study.over(values, covers[name], (0.0, 1.0)) for values in one.auc],
                    label="stopped there", **plotting.style_of("Cal."))
        for score, look, label in ((one.original, {"color": plotting.INK, "ls": ":"}, "not calibrated"),
                                   (plays[name].scores["loss", "scratch"], {"color": plotting.GREEN, "ls": "-."},
                                    "stopped where it validates best")):
            axis.axhline(metrics.auc(score, one.members).mean(), label=label, **look)
        axis.set(xscale="log", xlabel="epochs of the reference")
        panels.ticks(axis.xaxis, one.epochs[::2])
    panels.legend(figure, 3)
    return figure


def stopping_chart(found: Mapping[str, study.Stopping], plays: Plays, bins: int = 30):
    """The same for readers to move: the reference's last epoch on a slider, and the scores of all plays that follow.

    Args:
        found: by name of the games, at the same epochs. plays: of the same games.
    """
    alt, names, points, bars = plotting.altair(), list(found), [], []
    epochs = found[names[0]].epochs
    for name, one in found.items():
        chosen, ends = plays[name].scores["loss", "scratch"], np.quantile(one.scores, [0.005, 0.995])
        levels = {"plain": metrics.auc(one.original, one.members).mean(), "validated": metrics.auc(chosen, one.members).mean()}
        edges = np.linspace(*(ends if np.ptp(ends) else ends + [-1, 1]), bins + 1)
        for step, (epoch, score, auc) in enumerate(zip(epochs, one.scores, one.auc.mean(1), strict=True)):
            said = {f"{word}_said": f"{value:.3f}" for word, value in {**levels, "auc": auc}.items()}  # rounded once
            points.append({"data": name, "step": step, "epoch": epoch, "auc": float(auc), **said,
                           **{level: float(value) for level, value in levels.items()}})
            for kind, held in (("members", one.members), ("non-members", ~one.members)):
                shares = np.histogram(np.clip(score[held], edges[0], edges[-1]), edges)[0] / held.sum()
                bars += [{"data": name, "step": step, "kind": kind, "from": float(low), "to": float(high),
                          "share": float(share)} for low, high, share in zip(edges[:-1], edges[1:], shares, strict=True)]
    which = alt.param("which", value=names[0], bind=alt.binding_select(options=names, name="Targets "))
    step = alt.param("step", value=len(epochs) - 1, bind=alt.binding_range(
        min=0, max=len(epochs) - 1, step=1, name=f"Stop the reference (0 earliest, {len(epochs) - 1} latest) "))
    own = alt.Chart(alt.NamedData("points")).transform_filter("datum.data == which")
    chosen = own.transform_filter("datum.step == step")
    lines = ["'Reference stopped after ' + datum.epoch + (datum.epoch == 1 ? ' epoch' : ' epochs')",
             "'AUC ' + datum.auc_said + ', not calibrated ' + datum.plain_said",
             "'Stopped where it validates best: ' + datum.validated_said"]
    said = chosen.transform_calculate(lines=f"[{', '.join(lines)}]").mark_text(
        align="left", baseline="top", lineHeight=17).encode(
        x=alt.value(-42), y=alt.value(0), text="lines:N").properties(name="said", width=280, height=17 * len(lines))
    place = {"x": alt.X("epoch:Q", title="epochs of the reference", scale=alt.Scale(type="log", nice=False),
                        axis=alt.Axis(format="~g", values=epochs)),
             "y": alt.Y("auc:Q", title="AUC", scale=alt.Scale(zero=False))}
    rules = [own.mark_line(color=color, strokeDash=dash, aria=False).encode(x=place["x"], y=alt.Y(f"{level}:Q", title="AUC"))
             for level, color, dash in (("plain", plotting.INK, [2, 3]), ("validated", plotting.GREEN, [6, 3, 1, 3]))]
    curve = alt.layer(*rules, own.mark_line(color=plotting.RED, aria=False).encode(**place), chosen.mark_point(
        filled=True, size=110, color=plotting.INK, opacity=1, aria=False).encode(**place)).properties(width=280, height=190)
    shares = alt.Chart(alt.NamedData("bars")).transform_filter("datum.data == which && datum.step == step").mark_bar(
        **explore.BARS).encode(
        alt.X("from:Q", bin="binned", title="calibrated score (nats), ends gathered", scale=alt.Scale(zero=False, nice=False)),
        x2="to:Q", y=alt.Y("share:Q", title="share of records", stack=None, axis=alt.Axis(tickCount=4)),
        **explore.two_kinds("kind:N", ["members", "non-members"])).properties(width=280, height=240)
    both = alt.concat(alt.vconcat(said, curve, spacing=8), shares, columns=2, spacing=24,
                      datasets={"points": points, "bars": bars})
    return both.resolve_scale(color="independent").add_params(*([which] if len(names) > 1 else [
        alt.param("which", value=names[0])]), step)


def unstopped(played: study.Play, references: int) -> np.ndarray:
    """The loss calibrated with so many references that were trained to the end, [T, N']; its AUC is that of
    `study.reference_aucs`."""
    own, losses = (one.astype(np.float64) for one in (played.scores["loss", "original"], played.reference_loss))
    return study.calibrated(own, -losses[:, :references])


# ------------------------------------------------------------------------------------------------------------- verdicts


def judge_tables(plays: Plays, all_games: Mapping[str, study.Games]) -> list[claims.Verdict]:
    """Verdicts on C1 to C9, C16, A1 and A2 from what `study.play` found."""
    def gain(name: str, score: str, metric: str = "auc") -> Interval:
        return interval(plays, all_games, name, (score, "scratch"), metric, (score, "original"))

    parts: dict[str, dict[str, Interval | None]] = {claim: {} for claim in (
        "C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C16", "A1", "A2")}
    margin = partial(claims.margin, "calibration")

    def mean_gain(score: str, a: str = "scratch", b: str = "original", metric: str = "auc") -> Interval:
        return mean_of(plays, all_games, metric, {(score, a): 1.0, (score, b): -1.0})

    for score in study.SCORES:
        word = score.replace("_", " ")
        parts["C1"][word] = mean_gain(score)
        if score != "confidence":
            parts["C3"][f"{word}, Cal.-F - Orig"] = mean_gain(score, "forgetting")
            parts["C3"][f"{word}, Cal. - Cal.-F"] = mean_gain(score, "scratch", "forgetting")
    parts["C4"]["share of cells less one half"] = most_of(
        [gain(name, score, "accuracy") + margin("C4", "allowed_points") for name in plays for score in study.SCORES])
    parts["C4"][CONTROL] = beyond_chance(mean_of(plays, all_games, "auc", {(score, variant): 1.0})
                                         for score in study.SCORES for variant in ("original", "scratch"))
    for score in ("loss", "gradient_norm"):
        word = score.replace("_", " ")
        parts["C7"] |= {f"Cal. {word} - Cal. confidence": mean_of(plays, all_games, "auc", {
            (score, "scratch"): 1.0, ("confidence", "scratch"): -1.0}),
            f"gain of {word} - gain of confidence": mean_of(plays, all_games, "auc", {
                (score, "scratch"): 1.0, (score, "original"): -1.0, ("confidence", "scratch"): -1.0,
                ("confidence", "original"): 1.0})}
    parts["A1"] = {name: interval(plays, all_games, name, ("loss", "scratch"), "auc", UNSTOPPED) for name in plays}
    as_printed = as_in_the_paper(all_games)
    for name, games in all_games.items():
        for score in study.SCORES:
            if (games.paper, score) in LARGEST_GAINS and name in as_printed:
                least = margin("C2", "least")
                parts["C2"][f"{name}, gain of {score.replace('_', ' ')} less {least:g}"] = gain(name, score) - least
        fine = metrics.resolves(plays[name].members, 0.01)
        most = f"{100 * margin('C5', 'most_points'):g} % - Orig"
        parts["C5"] |= {f"{name}, Cal. - Orig": gain(name, "loss", metric=LOW) if fine else None,
                        f"{name}, {most}": margin("C5", "most_points") + -interval(
                            plays, all_games, name, ("loss", "original"), LOW) if fine else None}
        for variant in ("original", "scratch"):
            least = margin("C6", "least_points")
            parts["C6"][f"{name}, {study.VARIANTS[variant]}, less {100 * least:g} %"] = (
                false_positives(plays[name], variant, games) - least)
        parts["C9"][name] = best_calibrated(plays[name], games.covers)
        scratch = ("loss", "scratch")
        calls = [scored(plays[name], scratch, metric)[0] for metric in ("default_accuracy", "accuracy")]
        default = over_plays(games, "auc", [(1.0, calls[0]), (-1.0, calls[1])], plays[name].members)
        parts["C16"] |= {
            f"{name}, plus {100 * margin('C16', 'allowed_points'):g} points": default + margin("C16", "allowed_points"),
            f"{name}, {CONTROL}": interval(plays, all_games, name, scratch, "auc") - 0.5}
        if games.models.config.loss == "double_softmax":
            paper, bound = printed("table2"), margin("A2", "errors") * largest_spread(games.paper) / REPEATS**0.5
            for variant, short in study.VARIANTS.items():
                ours = interval(plays, all_games, name, ("loss", variant), "auc") - paper[games.paper, f"Loss {short}"]
                parts["A2"] |= {f"{name}, {short}, from below": ours + bound, f"{name}, {short}, from above": bound + -ours}
    for plain, augmented in _pairs(all_games):
        leaks = [(weight, plays[name].scores["loss", "original"]) for weight, name in ((1.0, plain), (-1.0, augmented))]
        parts["C8"][f"{augmented}, less leaked"] = over_plays(all_games[plain], "auc", leaks, plays[plain].members)
        for score in ("loss", "gradient_norm"):
            parts["C8"][f"{augmented}, {score.replace('_', ' ')}"] = gain(augmented, score)
    reasons = {"C2": "neither Credit nor CIFAR-10 was run", "C8": "no target was trained with augmentation",
               "A2": "no ensemble with two softmaxes was run"}
    few = "fewer than 100 non-members, which cannot resolve a false positive rate of 1 %"
    return [claims.judge("calibration", claim, found or None, reasons.get(claim) if not found else
                         few if None in found.values() else None) for claim, found in parts.items()]


def largest_spread(row: str) -> float:
    """The largest standard deviation of an AUC that the caption of the paper's Table 2 allows for a row."""
    said = tables.printed("calibration", "text", "dataset", "metric")
    return said.get((row, "std_upper_bound_auc"), said["all others", "std_upper_bound_auc"])


def mean_of(plays: Plays, all_games: Mapping[str, study.Games], metric: str, weights: Mapping[Attack, float]) -> Interval:
    """Mean over data sets of a weighted sum of a metric of several attacks, over plays and records.

    Games on the same data have their splits in common: they are averaged play by play first. What is left is independent;
    degrees of freedom are those of Welch and Satterthwaite.
    """
    each = []
    for names in on_the_same_data(plays, all_games):
        found = [(weight / len(names), *scored(plays[name], attack, metric)) for name in names
                 for attack, weight in weights.items()]
        [core] = {core for *_, core in found}
        each.append(over_plays(all_games[names[0]], core, [(weight, score) for weight, score, _ in found],
                               plays[names[0]].members))
    return mean_of_intervals(each)


def on_the_same_data(names: Iterable[str], all_games: Mapping[str, study.Games]) -> list[list[str]]:
    """Names of games, those on the same records together: of one row of the paper's tables, and those with augmentation, whose
    splits are the same."""
    rows: dict[str, list[str]] = {}
    for name in names:
        rows.setdefault(all_games[name].paper.removesuffix(" (aug.)"), []).append(name)
    return list(rows.values())


def mean_of_intervals(each: list[Interval]) -> Interval:
    """Mean over data sets of independent numbers with Student's t intervals; without one where one of them has none."""
    found = combined(float(np.mean([one.value for one in each])), [one.se**2 / len(each)**2 for one in each],
                    [one.dof for one in each], covers=f"{len(each)} data sets, the plays and records of each")
    alone = [one for one in each if np.isnan(one.low)]
    return found.without(alone[0].covers) if alone else found


def _pairs(all_games: Mapping[str, study.Games]) -> list[tuple[str, str]]:
    """Games with the same records without and with augmentation."""
    plain = {games.models.records.fingerprint: name for name, games in all_games.items() if not games.views}
    return [(plain[games.models.records.fingerprint], name) for name, games in all_games.items()
            if games.views and games.models.records.fingerprint in plain]


def false_positives(played: study.Play, variant: str, games: study.Games) -> Interval:
    """FPR of the loss at the threshold that is best for accuracy on the records judged, over plays and non-members."""
    rates = [np.mean(score[~member] >= metrics.best_threshold(score, member))
             for score, member in zip(played.scores["loss", variant], played.members, strict=True)]
    judged = len(np.unique(places(games.private)[~played.members]))
    return replace(share_over(rates, judged), covers=f"{games.covers} and {judged} non-members")


def most_of(cells: list[Interval]) -> Interval:
    """The share of numbers above zero, less one half: between the share of those whose intervals say so and of those whose
    intervals do not deny it, as if all erred the same way. A number without an interval says nothing and denies nothing."""
    value = np.array([one.value for one in cells])
    ends = np.array([(-np.inf, np.inf) if np.isnan(one.low) else (one.low, one.high) for one in cells])
    spread = np.ptp(ends, axis=1) / (2 * norm.isf((1 - cells[0].level) / 2))
    draws = np.mean(value + norm.ppf((np.arange(400) + 0.5) / 400)[:, None] * spread > 0, 1) - 0.5
    return Interval(float(np.mean(value > 0)) - 0.5, *(float(np.mean(side > 0)) - 0.5 for side in ends.T),
                    covers=f"{len(cells)} cells", draws=draws, bounds=(-0.5, 0.5), exact=True)


def best_calibrated(played: study.Play, covers: str) -> Interval:
    """AUC of the best calibrated attack less that of the best other one, each picked on half of the plays and judged on the
    other half."""
    original = [study.GAP, *((score, "original") for score in study.SCORES)]
    calibrated = [(score, variant) for score in study.SCORES for variant in ("scratch", "forgetting")]
    values = {attack: study.per_target(played, attack, "auc") for attack in original + calibrated}
    half, out = len(played.members) // 2, np.empty(len(played.members))
    for picking, judging in ((slice(None, half), slice(half, None)), (slice(half, None), slice(None, half))):
        one, two = (max(among, key=lambda attack: values[attack][picking].mean()) for among in (calibrated, original))
        out[judging] = values[one][judging] - values[two][judging]
    return study.over(out, covers)


def judge_label_only(found: Labelled, all_games: Mapping[str, study.Games]) -> claims.Verdict:
    """The verdict on C10; networks on the same data are averaged play by play first, as in `mean_of`."""
    def gain(names: list[str], variant: str) -> Interval:
        return of_labels(found[names[0]], all_games[names[0]], [
            (sign / len(names), found[name].scores[of]) for name in names
            for sign, of in ((1.0, variant), (-1.0, "original"))])

    parts = {f"{study.VARIANTS[variant]} - Orig": mean_of_intervals(
        [gain(names, variant) for names in on_the_same_data(found, all_games)])
        for variant in ("scratch", "forgetting")} if found else None
    return claims.judge("calibration", "C10", parts, None if parts else "no label-only attack was run")


def judge_sizes(sizes: Mapping[int, study.Play], all_games: Mapping[int, study.Games]) -> list[claims.Verdict]:
    """Verdicts on C11 and C11c; plays of different sizes are drawn apart.

    Args:
        sizes, all_games: by the number of members.
    """
    ordered = sorted(sizes)
    small, large = ordered[0], ordered[-1]
    parts = {f"{study.VARIANTS[variant]}, {small} to {large}": difference(
        *(interval(sizes, all_games, n, ("loss", variant), "auc") for n in (small, large)))
        for variant in ("original", "scratch")} if small < large else None
    helps = {f"{n} training records": interval(sizes, all_games, n, ("loss", "scratch"), "auc", ("loss", "original"))
             for n in ordered}
    return [claims.judge("calibration", "C11", parts, None if parts else "only one size was run"),
            claims.judge("calibration", "C11c", helps)]


def judge_ratio(played: study.Play, covers: str, recall: float = 0.05) -> list[claims.Verdict]:
    """Verdicts on C12, C12m and C12a."""
    parts = {}
    for variant in ("original", "scratch"):
        even, rare = (study.at_ratio(played, ("loss", variant), k)["rehearsed"] for k in (1, 10))
        parts[f"accuracy at 1 : 10 less at 1 : 1, {study.VARIANTS[variant]}"] = study.over(rare - even, covers)
    plain, precise = (precision_at_recall(played, variant, recall, 1 / 11) for variant in ("original", "scratch"))
    least = claims.margin("calibration", "C12m", "least")
    return [claims.judge("calibration", "C12", study.over(precise - plain, covers)),
            claims.judge("calibration", "C12m", {f"precision less {least:g}": study.over(precise, covers) - least}),
            claims.judge("calibration", "C12a", parts)]


def precision_at_recall(played: study.Play, variant: str, recall: float, share: float) -> np.ndarray:
    """Precision of the loss at a recall, with `share` of all records members, [T]."""
    found = []
    for score, member in zip(played.scores["loss", variant], played.members, strict=True):
        fpr, tpr, _ = metrics.roc_curve(score, member)
        at = np.searchsorted(tpr, recall)
        found.append(float(metrics.precision(tpr[at], fpr[at], share)))
    return np.array(found)


def judge_more(found: study.MoreForgetting, shares: list[float], covers: str) -> list[claims.Verdict]:
    """Verdicts on C13 and C13s."""
    auc, most = found.auc, found.auc.shape[1]
    references = {f"{most} copies less 1, {100 * share:g} % of public": study.over(of_share[-1] - of_share[0], covers)
                  for share, of_share in zip(shares, auc, strict=True)} if most > 1 else None
    large, small = auc[np.argmax(shares)], auc[np.argmin(shares)]
    data = {f"largest shadow set less smallest, {n} {'copy' if n == 1 else 'copies'}": study.over(
        large[n - 1] - small[n - 1], covers) for n in sorted({1, most})} if len(shares) > 1 else None
    return [claims.judge("calibration", "C13", references, None if references else "one copy was run"),
            claims.judge("calibration", "C13s", data, None if data else "one size of shadow set was run")]


def judge_private(found: study.PrivateTraining | None, epsilons: list[float], games: study.Games,
                  reason: str) -> claims.Verdict:
    """The verdict on C14; `reason` is why nothing was run, where it was not."""
    if found is None:
        return claims.judge("calibration", "C14", None, reason)

    def auc(*terms: tuple[float, str, int]) -> Interval:
        return over_plays(games, "auc", [(weight, found.scores[variant][e]) for weight, variant, e in terms], found.members)

    small, large = int(np.argmin(epsilons)), int(np.argmax(epsilons))
    near, within = auc((1.0, "scratch", small)) - 0.5, claims.margin("calibration", "C14", "chance")
    low = near_one(epsilons)
    parts = {**{f"no privacy less ε = {epsilons[small]:g}, {study.VARIANTS[variant]}": auc(
        (1.0, variant, -1), (-1.0, variant, small)) for variant in ("original", "scratch")},
             f"Cal. - Orig, ε = {epsilons[large]:g}": auc((1.0, "scratch", large), (-1.0, "original", large)),
             f"near chance from above, ε = {epsilons[small]:g}": within + -near if low else None,
             f"near chance from below, ε = {epsilons[small]:g}": near + within if low else None,
             f"no privacy, {CONTROL}": beyond_chance(auc((1.0, variant, -1)) for variant in ("original", "scratch"))}
    return claims.judge("calibration", "C14", parts, None if low else "no epsilon near 1")


def near_one(epsilons: Sequence[float]) -> bool:
    """Whether the smallest epsilon is one that the paper's claim about epsilon near 1 is about."""
    return min(epsilons) <= claims.margin("calibration", "C14", "most")
