"""Tables, figures and verdicts of the Bayes-optimal chapter, each beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import beta

from mia_lib import metrics
from mia_lib.evidence import claims, panels, plotting
from mia_lib.evidence import tables as results
from mia_lib.metrics.interval import Interval
from mia_lib.metrics.numbers import TITLES, number
from mia_lib.papers.bayes import study, theory

# ----------------------------------------------------------------------------------------------- the idea and theory


def idea(seen: study.Summary, threshold: float) -> Figure:
    """The chapter's picture, of real records: the loss of each under models that were trained on it against that under models
    that were not, and what one threshold for all makes of them.

    Args:
        seen: of one bank of models. threshold: the loss that splits members from non-members best, one for all records.
    """
    figure, (axis,) = panels.grid(1, 5.4, width=5.8)
    outside, inside = (np.maximum(loss, IDEA_FLOOR) for loss in (seen.outside, seen.inside))
    ends = min(outside.min(), inside.min()) / 2, 2 * max(outside.max(), inside.max())
    told = (inside < threshold) & (outside > threshold)
    for which, style, label in ((~told, "non-members", "not told apart"), (told, "members", "told apart by it")):
        axis.plot(outside[which], inside[which], plotting.STYLE[style]["marker"], ms=2.5, mew=0,
                  color=plotting.STYLE[style]["color"], label=label)
    axis.plot(ends, ends, label="training on it changes nothing", **panels.CHANCE)
    axis.axvline(threshold, color="black", lw=1.4)
    axis.axhline(threshold, color="black", lw=1.4, label="one threshold for all")
    axis.set(xscale="log", yscale="log", xlim=ends, ylim=ends, box_aspect=1,
             xlabel="mean loss without training on the record (nats)", ylabel="mean loss with training on it (nats)")
    panels.legend(figure, markerscale=2)
    return figure


def idea_chart(bank: study.Bank, seen: study.Summary, threshold: float, records: int = 800):
    """The same for readers to move: the one threshold on a slider, and the losses behind each dot.

    Args:
        bank: whose models are drawn. seen: its summary. threshold: where the slider starts.
        records: at most so many are drawn, evenly from all.
    """
    alt = plotting.altair()
    members, drawn = bank.game.members, np.unique(np.linspace(0, len(bank.labels) - 1, records).astype(int))
    rows = [{"out": max(float(seen.outside[i]), IDEA_FLOOR), "in": max(float(seen.inside[i]), IDEA_FLOOR),
             "own": max(float(seen.threshold[i]), IDEA_FLOOR),
             **{side: ", ".join(f"{loss:.2g}" for loss in np.sort(bank.loss[held, i]))
                for side, held in (("with", members[:, i]), ("without", ~members[:, i]))}} for i in drawn]
    shown = [row[side] for row in rows for side in ("out", "in")]
    ends = [min(shown) / 2, 2 * max(shown)]
    power = alt.param("power", value=round(float(np.log10(np.clip(threshold, *ends))), 2), bind=alt.binding_range(
        min=round(np.log10(ends[0]), 2), max=round(np.log10(ends[1]), 2), step=0.02,
        name="Threshold for all, power of ten (nats) "))
    hover = alt.selection_point("record", on="pointerover", empty=False)
    sides = ["told apart by it", "always called a member", "never called one", "the wrong way round"]
    dots = alt.Chart(alt.NamedData("records")).transform_calculate(t="pow(10, power)").transform_calculate(
        side=f"datum['in'] < datum.t ? (datum.out >= datum.t ? '{sides[0]}' : '{sides[1]}') : "
             f"(datum.out >= datum.t ? '{sides[2]}' : '{sides[3]}')")
    axis, scale = alt.Axis(format="~g", tickCount=6), alt.Scale(type="log", domain=ends, nice=False)
    place = {"x": alt.X("out:Q", title="mean loss without training on the record (nats)", scale=scale, axis=axis),
             "y": alt.Y("in:Q", title="mean loss with training on it (nats)", scale=scale, axis=axis)}
    colours = [plotting.STYLE["members"]["color"], plotting.STYLE["non-members"]["color"], "#777777", plotting.INK]
    cloud = dots.mark_circle(size=22, opacity=0.75).encode(
        **place, color=alt.Color("side:N", title=None, legend=alt.Legend(orient="top", columns=2),
                                 scale=alt.Scale(domain=sides, range=colours)),
        tooltip=[alt.Tooltip("with:N", title="losses with it"), alt.Tooltip("without:N", title="losses without it"),
                 alt.Tooltip("own:Q", title="its own threshold", format=".2g")]).add_params(hover)
    line = alt.Chart(alt.Data(values=[{}])).transform_calculate(at="pow(10, power)").mark_rule(color=plotting.INK, aria=False)
    own = dots.transform_filter(hover).mark_rule(color=plotting.INK, strokeDash=[4, 3], aria=False)
    same = alt.Chart(alt.Data(values=[{"out": end, "in": end} for end in ends])).mark_line(
        color=plotting.FAINT, strokeDash=[5, 4], aria=False).encode(**place)
    picture = alt.layer(same, cloud, line.encode(x=alt.X("at:Q", scale=scale)), line.encode(y=alt.Y("at:Q", scale=scale)),
                        own.encode(x=alt.X("own:Q", scale=scale)), own.encode(y=alt.Y("own:Q", scale=scale))).properties(
        width=440, height=400)
    flags = {f"n{k}": f"datum.side == '{side}' ? 1 : 0" for k, side in enumerate(sides)}
    lines = ["'One threshold of ' + format(pow(10, power), '.2~g') + ' nats for all:'",
             f"datum.s0 + ' of {len(rows)} records told apart, ' + datum.s1 + ' always called, ' + datum.s2 + ' never'"]
    counted = dots.transform_calculate(**flags).transform_aggregate(**{f"s{k}": f"sum(n{k})" for k in range(3)})
    said = counted.transform_calculate(lines=f"[{', '.join(lines)}]").mark_text(
        align="left", baseline="top", lineHeight=17).encode(
        x=alt.value(0), y=alt.value(0), text="lines:N").properties(name="said", width=440, height=17 * len(lines))
    return alt.vconcat(said, picture, spacing=8, datasets={"records": rows}).add_params(power)


def drop_in_words(drop: np.ndarray) -> str:
    """By how much training on a record lowers its loss, and which share of the sum those make whose loss it lowers most.

    Args:
        drop: of each record, the loss without training on it less that with.
    """
    said = (f"Training on a record lowers its loss by {drop.mean():z.2f} nats on average and by {np.median(drop):z.2f} for "
            "the median record")
    share = np.sort(drop)[-len(drop) // 10:].sum() / drop.sum()
    if drop.mean() <= 0 or share > 1:  # some losses rise by as much as others fall
        return f"{said}; the losses of {np.mean(drop < 0):.0%} of the records rise.".replace("%", " %")
    return f"{said}; the tenth of the records whose loss it lowers most makes {100 * share:.1f} % of the sum."


def told_apart(seen: study.Summary, threshold: float) -> float:
    """Share of records whose mean losses with and without training on them lie on either side of one threshold."""
    return float(np.mean((seen.inside < threshold) & (seen.outside > threshold)))


IDEA_FLOOR = 1e-4  # nats; lower losses are drawn there


def posterior_figure(games: Mapping[float, tuple[np.ndarray, np.ndarray]], bins: int = 10) -> Figure:
    """Posterior by formula against the share of games in which the record was a member, with binomial intervals.

    Args:
        games: prior -> posterior [games] and member bool [games], from `theory.gaussian_posterior`.
    """
    figure, axes = panels.grid([f"prior {prior:g}" for prior in games], 3.6, "share of games with the record in", sharex=True,
                               sharey=True)
    edges = np.linspace(0, 1, bins + 1)
    for axis, (posterior, member) in zip(axes, games.values(), strict=True):
        place = np.clip(np.digitize(posterior, edges) - 1, 0, bins - 1)
        filled = [b for b in range(bins) if (place == b).sum() >= 20]
        said = np.array([posterior[place == b].mean() for b in filled])
        count = np.array([(place == b).sum() for b in filled])
        hits = np.array([member[place == b].sum() for b in filled])
        low, high = beta.ppf(0.025, hits, count - hits + 1), beta.ppf(0.975, hits + 1, count - hits)
        low, high = np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)
        axis.plot([0, 1], [0, 1], **panels.CHANCE)
        panels.whiskers(axis, said, hits / count, low, high, fmt="o", color=plotting.STYLE["members"]["color"])
        axis.set(xlabel="posterior by formula", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    return figure


def figure_one(played: theory.Games) -> Figure:
    """Figure 1: scores of the first game, MALT's centred, on one axis."""
    centred = {"MALT": played.malt[0] - played.malt[0].mean(), "MAST": played.mast[0]}
    figure = plotting.histograms({name: (score, played.members[0]) for name, score in centred.items()},
                                 thresholds=dict.fromkeys(centred, 0.0))
    ends = min(map(np.min, centred.values())), max(map(np.max, centred.values()))
    for axis in figure.axes:
        axis.set_xlim(ends[0] - 0.05 * (ends[1] - ends[0]), ends[1] + 0.05 * (ends[1] - ends[0]))
    return figure


def enumeration(settings: Sequence[tuple[int, float, float]], checks: Sequence[Mapping[str, np.ndarray]]) -> pd.DataFrame:
    """Errors of the theorems against Bayes' rule, a row a world.

    Args:
        settings: n, temperature and prior. checks: `theory.theorem_one` of worlds in which model 1 has the losses of model 0,
            and model 2 its loss on record 0.
    """
    return pd.DataFrame([
        {"n": n, "T": results.cell(temperature, "g"), "prior": results.cell(prior, "g"),
         "Theorem 1": results.cell(np.abs(c["theorem"] - c["truth"]).max(), ".0e"),
         "Theorem 2": results.cell(np.abs(c["ratio_minus_score"]).max(), ".0e"),
         "other reading": results.cell(np.abs(c["prior_law"] - c["truth"]).max()),
         "same loss on it": results.cell(np.abs(c["truth"][0, 0] - c["truth"][2, 0])),
         "on all": results.cell(np.abs(c["truth"][0] - c["truth"][1]).max(), ".0e")}
        for (n, temperature, prior), c in zip(settings, checks, strict=True)])


def temperature_in_random_worlds(worlds: int, seed: int = 0,
                                 temperatures: tuple = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0)) -> np.ndarray:
    """Accuracy of the best attacker in random finite worlds, [worlds, temperatures]."""
    rng = np.random.default_rng(seed)
    return np.array([[theory.best_rule_accuracy(theory.FiniteWorld(loss, 3, t, 0.5)) for t in temperatures]
                     for loss in rng.uniform(0, 2, (worlds, 7, 3))])


def privacy_in_random_worlds(worlds: int, seed: int = 0) -> pd.DataFrame:
    """Put Properties 1 and 2 to the test where every quantity is a finite sum.

    Args:
        worlds: random finite worlds for each prior.

    Returns:
        DataFrame, a row a world: prior; epsilon, the largest log-likelihood ratio; posterior, the largest there is; in what
        share of models and records the bound of Property 2 says something, `property_2_says`;
        `property_1_excess` of it over prior + epsilon / 4 and `property_2_excess`, the largest excess of a posterior over
        prior + epsilon / (4 T) + delta, at a random epsilon. Neither may be above zero.
    """
    rng, rows = np.random.default_rng(seed), []
    for prior in (0.5, 0.1, 0.01):
        for _ in range(worlds):
            scale, temperature = 10 ** rng.uniform(-2, 0.7), 10 ** rng.uniform(-0.7, 0.7)
            loss_table = rng.uniform(0, scale, (7, 3))
            found = theory.theorem_one(theory.FiniteWorld(loss_table, 3, temperature, prior))
            epsilon, posterior = max(float(found["ratio"].max()), 0.0), found["truth"]
            gain = found["mean_loss"][:, None, :] - loss_table[None]  # [S, V, Z], what Definition 3 bounds
            allowed = rng.uniform(0, min(max(gain.max(), 1e-9), 2 * temperature))  # larger ones say nothing
            delta = (found["law"] * (gain > allowed)).sum(0)
            cap = prior + allowed / (4 * temperature) + delta
            rows.append({"prior": prior, "epsilon": epsilon, "posterior": posterior.max(),
                         "property_1_excess": max(posterior.max() - (prior + epsilon / 4), 0.0),
                         "property_2_excess": max((posterior - cap).max(), 0.0), "property_2_says": (cap < 1).mean()})
    return pd.DataFrame(rows)


def privacy_figure(worlds: pd.DataFrame) -> Figure:
    """Dots of `privacy_in_random_worlds` under the printed and the sharp bound, a panel a prior."""
    figure, axes = panels.grid([f"prior {prior:g}" for prior in worlds.prior.unique()], 2.9, "largest posterior", sharex=True,
                               sharey=True)
    epsilon = np.linspace(0, 4, 200)
    for axis, (prior, rows) in zip(axes, worlds.groupby("prior", sort=False), strict=True):
        cap = theory.privacy_cap(epsilon, prior)
        axis.plot(rows.epsilon, rows.posterior, ".", ms=4, color=plotting.STYLE["members"]["color"], label="random worlds")
        axis.plot(epsilon, cap["sharp"], color="black", label=r"$\sigma(t_\lambda + \epsilon)$")
        axis.plot(epsilon, np.where(cap["printed"] <= 1, cap["printed"], np.nan), "--", color="black",
                  label=r"$\lambda + \epsilon/4$")
        axis.set(xlim=(0, 4), ylim=(0, 1.02))
    figure.supxlabel("ε, largest log-likelihood ratio", fontsize="medium")
    panels.legend(figure, columns=3)
    return figure


# --------------------------------------------------------------------------------------------- ours beside the paper's


def _n(setting: str) -> int:
    """400 of "n = 400; lambda = 1/2; 100 seeds"."""
    return int(setting.split(";")[0].removeprefix("n = "))


Games = Mapping[int, Sequence[study.Numbers]]  # n -> of each pair of classes; the first is the one that tables show
PEAK, REHEARSED = "attack_accuracy", "rehearsed_accuracy"
AVERAGES = {"map_test": "mAP$_{test}$", "map_train": "mAP$_{train}$"}


def _printed_by_n() -> dict[tuple[int, str, str], float]:
    found = results.printed("bayes", "table1", "setting", "attack", "metric")
    return {(_n(setting), attack, metric): value for (setting, attack, metric), value in found.items()}


def table_one(games: Games, sizes: list[int]) -> pd.DataFrame:
    """Accuracies of Table 1, a row an n: by the paper's protocol beside its numbers, and with thresholds from elsewhere."""
    printed, rows = _printed_by_n(), []
    for n in sizes:
        found = games[n][0] if n in games else None
        row = {"n": n}
        for side, values in (("train", found and found.train_accuracy), ("validation", found and found.validation_accuracy)):
            row[side] = results.beside(None if values is None else float(values.mean()),
                                       printed.get((n, "none", f"{side}_accuracy")), percent=True)
        for attack, name in study.NAMES.items():
            peak = None if found is None else float(found.numbers[attack, PEAK].mean())
            row[name if attack == "gap" else f"{name}, peak"] = results.beside(
                peak, printed.get((n, name, PEAK)), percent=True)
        for attack in ("malt", "matt"):
            own = found and study.over_splits(found.numbers[attack, REHEARSED])
            row[f"{study.NAMES[attack]}, rehearsed"] = results.beside(own, None, percent=True)
        row["noise, peak"] = results.format_percent(study.peak_of_noise(n))
        rows.append(row)
    return pd.DataFrame(rows)


def table_one_averages(games: Games, sizes: list[int]) -> pd.DataFrame:
    """Mean average precisions of Table 1, a row an n, beside the paper's."""
    printed = _printed_by_n()
    return pd.DataFrame([{"n": n} | {
        f"{study.NAMES[attack]} {title}": results.beside(
            study.over_splits(games[n][0].numbers[attack, metric]) if n in games else None,
            printed.get((n, study.NAMES[attack], metric)), percent=True)
        for metric, title in AVERAGES.items() for attack in ("malt", "matt")} for n in sizes])


def table_one_figure(games: Games) -> Figure:
    """Peak accuracy and both average precisions against n, with the paper's values hollow. A peak has no interval; 0-1 has no
    threshold to choose, and ranks nothing."""
    titles = {PEAK: "accuracy, best threshold", "map_test": "mAP test", "map_train": "mAP train"}
    keys, printed, rows = {name: attack for attack, name in study.NAMES.items()}, _printed_by_n(), []
    for n, name, metric in product(sorted({n for n, _, _ in printed} | set(games)), keys, titles):
        found = games[n][0].numbers.get((keys[name], metric)) if n in games else None
        value, guess = printed.get((n, name, metric), np.nan), keys[name] == "gap"
        if found is None and np.isnan(value) or guess and metric != PEAK:
            continue
        ours = plotting.ends(None if found is None else study.over_splits(found))
        if metric == PEAK and not guess:
            ours |= {"low": np.nan, "high": np.nan}
        rows.append({"n": n, "attack": name, "panel": titles[metric], "paper": value / 100, **ours})
    return plotting.against(pd.DataFrame(rows), "n", "value", by="attack", paper="paper", panel="panel", log=True,
                            percent=True, xlabel="n, records", ylabel="rate", chance=0.5)


def pairs_of_classes(games: Games, names: Sequence[str]) -> pd.DataFrame:
    """MATT less MALT for each pair of classes, a row a pair and an n, and over the pairs.

    Args:
        names: of the pairs, as "shirt, sneaker".
    """
    columns = {"peak accuracy": PEAK, "rehearsed accuracy": REHEARSED, "AUC": "auc"}
    def lead(metric: str):
        return lambda one: one.numbers["matt", metric] - one.numbers["malt", metric]

    rows = [{"n": n, "classes": name} | {column: 100 * study.over_splits(lead(metric)(one))
                                              for column, metric in columns.items()}
            for n, of_n in games.items() for name, one in zip(names, of_n, strict=True)]
    if len(names) >= study.ENOUGH_PAIRS:
        rows += [{"n": n, "classes": "**all pairs**"} | {column: 100 * study.over(of_n, lead(metric))
                                                             for column, metric in columns.items()}
                 for n, of_n in games.items()]
    return pd.DataFrame(rows).set_index(["n", "classes"])


def second_term(games: Games) -> pd.DataFrame:
    """The two terms of Eq. 39 and what keeping the second does, a row an n."""
    return pd.DataFrame([{
        "n": n, "C": results.cell(g.c, "g"), "spread of the first": np.mean(g.first_spread),
        "spread of the second": np.mean(g.second_spread), "AUC of MATT": study.over_splits(g.numbers["matt", "auc"]),
        "both terms": study.over_splits(g.numbers["eq39", "auc"] - g.numbers["matt", "auc"]),
        "plain calibrated loss": study.over_splits(g.numbers["calibrated", "auc"] - g.numbers["matt", "auc"]),
    } for n, (g, *_) in games.items()])


def penalties(by_penalty: Mapping[int, Sequence[study.Numbers]]) -> pd.DataFrame:
    """MATT less MALT in percentage points under several strengths of the penalty, a row an n and a strength."""
    def lead(g: study.Numbers, metric: str) -> Interval:
        return 100 * study.over_splits(g.numbers["matt", metric] - g.numbers["malt", metric])

    return pd.DataFrame([{"n": n, "C": results.cell(c, "g"), "rehearsed accuracy": results.cell(lead(g, REHEARSED), ".1f"),
                          "AUC": results.cell(lead(g, "auc"), ".1f")}
                         for n, found in by_penalty.items()
                         for c, g in sorted({g.c: g for g in found}.items())]).set_index(["n", "C"])


def table_two(judged: study.Judged) -> pd.DataFrame:
    """Table 2 as a page shows it: accuracy with thresholds from rehearsals beside the paper's, AUC and TPR at 1 % FPR."""
    paper_name = {"MAST (best split)": "MAST"}
    printed = results.printed("bayes", "table2", "attack")
    accuracy = metrics.evaluate(judged.decisions, judged.members, judged.groups, metrics=("auc",))
    rest = metrics.evaluate(judged.scores, judged.members, judged.groups, metrics=("auc", "tpr_at_fpr=0.01"))
    wide = results.wide(rest, digits=1, percent=True).set_index("attack")
    rows = []
    for row in accuracy.itertuples():
        interval = Interval(row.value, row.low, row.high)
        rows.append({"attack": row.attack, "accuracy, ours": results.format_percent(interval),
                     "accuracy, paper": results.cell(printed[name], ".1f", "%")
                     if (name := paper_name.get(row.attack, row.attack)) in printed else results.NOTHING,
                     "AUC": wide.loc[row.attack, "auc"],
                     # a 0/1 score has a single point on its curve, and that is not at 1 %
                     "TPR at 1 % FPR": results.NOTHING if row.attack == "0-1" else wide.loc[row.attack, "tpr_at_fpr=0.01"]})
    return pd.DataFrame(rows)


Swept = Mapping[tuple[str, str], Mapping[str, np.ndarray]]


def _sweep_values(scores: np.ndarray, attack: str, members: np.ndarray) -> np.ndarray:
    return (metrics.auc if attack == "0-1" else metrics.rehearsed_accuracy)(scores, members)


def table_three_intervals(swept: Swept, members: np.ndarray) -> dict[tuple[str, str, str], Interval]:
    """(network, augmentation, attack) -> attack accuracy over independent games.

    Args:
        swept: (network, augmentation) -> attack -> scores [games, N]. members: bool [games, N].
    """
    return {(network, augmentation, attack): metrics.t_interval(_sweep_values(values, attack, members),
                                                                covers=f"{len(members)} games", bounds=(0.0, 1.0))
            for (network, augmentation), scores in swept.items() for attack, values in scores.items()}


PAPER_NETWORKS = ("ResNet-101", "VGG-16")
PAPER_AUGMENTATIONS = ("None", "Flip, Crop +-5", "Flip, Crop")


def paper_recipes(augmentations: list[str]) -> dict[str, str]:
    """The paper's recipes, from weak to strong -> those of a list that stand for them: none, the smallest crop by a shift,
    whose pixels the paper counts in larger images, and the first crop that is scaled."""
    def shift(name: str) -> int:
        return int(name.partition(":")[2] or 0)

    of_kind = {PAPER_AUGMENTATIONS[0]: [name for name in augmentations if name == "none"],
               PAPER_AUGMENTATIONS[1]: sorted((name for name in augmentations if name.startswith("flip_crop")), key=shift),
               PAPER_AUGMENTATIONS[2]: [name for name in augmentations if name.startswith("flip_resized_crop")]}
    return {theirs: ours[0] for theirs, ours in of_kind.items() if ours}


def _paper_three(networks: list[str], augmentations: list[str]) -> dict[tuple[str, str, str], float]:
    """The paper's Table 3 under our names for its networks and recipes."""
    frame, ours = results.paper("bayes", "table3"), dict(zip(PAPER_NETWORKS, networks, strict=False))
    recipes = paper_recipes(augmentations)
    return {(ours[m], recipes[s.removeprefix("augmentation: ")], a): v
            for m, s, a, v in zip(frame.model, frame.setting, frame.attack, frame.value, strict=True)
            if m in ours and s.removeprefix("augmentation: ") in recipes}


def table_three(intervals: dict, augmentations: list[str]) -> pd.DataFrame:
    """Table 3 as a page shows it; the paper's networks and augmentations stand beside ours in their order."""
    networks = list(dict.fromkeys(n for n, _, _ in intervals))
    printed = _paper_three(networks, augmentations)
    return pd.DataFrame([{"network": network, "augmentation": augmentation.replace("_", " ").replace(":", " ")} | {
        attack: results.beside(intervals[network, augmentation, attack], printed.get((network, augmentation, attack)),
                               percent=True)
        for attack in ("0-1", "MALT")} for network in networks for augmentation in augmentations])


def table_three_figure(intervals: dict, augmentations: list[str]) -> Figure:
    """Attack accuracy against augmentation, a panel a network, with the paper's values hollow."""
    networks = list(dict.fromkeys(n for n, _, _ in intervals))
    printed = _paper_three(networks, augmentations)
    theirs = dict(zip(networks, PAPER_NETWORKS, strict=False))
    rows = [{"network": f"{network.partition(':')[0]}; hollow: {theirs.get(network, 'none')}", "attack": attack,
             "augmentation": augmentation.replace("_", "\n").replace(":", " "),
             "paper": printed.get((network, augmentation, attack), np.nan) / 100,
             **plotting.ends(intervals[network, augmentation, attack])}
            for network in networks for attack in ("0-1", "MALT") for augmentation in augmentations]
    return plotting.against(pd.DataFrame(rows), "augmentation", "value", by="attack", paper="paper", panel="network",
                            percent=True, xlabel="", ylabel="attack accuracy", chance=0.5)


# ------------------------------------------------------------------------------------------------------------ verdicts


def judge_theorems(checks: Sequence[Mapping[str, np.ndarray]], still: Sequence[Mapping[str, np.ndarray]],
                   priors: Sequence[float], accuracy: np.ndarray, caps: pd.DataFrame) -> list[claims.Verdict]:
    """Verdicts on C1 to C5.

    Args:
        checks: `theory.theorem_one` of worlds in which models 0 and 1 have the same loss on every record.
        still: of the same worlds with a last record whose loss no model moves.
        priors: of the worlds.
        accuracy: of the best rule, [worlds, temperatures]. caps: from `privacy_in_random_worlds`.
    """
    apart = max(max(np.abs(c["ratio_minus_score"]).max(), np.abs(c["truth"][0] - c["truth"][1]).max()) for c in checks)
    wrong = 0
    for c, same, prior in zip(checks, still, priors, strict=True):
        sure = np.abs(c["score"]) > ROUNDING  # at zero, rounding would decide
        wrong += int(((c["score"] > 0) != (c["given_setting"] > prior))[sure].sum())
        wrong += int((np.abs(same["given_setting"][..., -1] - prior) > ROUNDING).sum())
    falls, temperatures = -np.diff(accuracy, axis=1), accuracy.shape[1]
    rose = (falls < -ROUNDING).any(1)
    steps = {f"temperature {k + 1} to {k + 2} of {temperatures}":
             metrics.t_interval(falls[:, k], covers=f"{len(falls)} random worlds") for k in range(temperatures - 1)}
    return [claims.judge_identity("bayes", "C1", apart, ROUNDING),
            claims.judge_identity("bayes", "C2", wrong, 0.0, "cases that disagree"),
            claims.judge("bayes", "C3", steps),
            claims.judge_identity("bayes", "C3r", max(0.0, -falls.min()), ROUNDING,
                                  f"it rises in {rose.sum()} of {len(rose)} worlds, by at most"),
            claims.judge_identity("bayes", "C4", caps.property_1_excess.max(), ROUNDING),
            claims.judge_identity("bayes", "C5", caps.property_2_excess.max(), ROUNDING)]


ROUNDING = 1e-9


def judge_table_one(games: Games, not_run: list[int], reason: str) -> list[claims.Verdict]:
    """Verdicts on C7 to C10, C15 and C16 from the splits of Table 1.

    Args:
        games: n -> `study.logistic_games` of each pair of classes. not_run: the n that were not, and the reason.
    """
    def difference(n: int, a: str, b: str, metric: str) -> Interval:
        return study.over(games[n], lambda one: one.numbers[a, metric] - one.numbers[b, metric])

    run, parts = sorted(games), {claim: {} for claim in ("C7", "C7r", "C8", "C9", "C10", "C10r")}
    for n in run:
        parts["C7"][f"MATT - MALT, n = {n}"] = difference(n, "matt", "malt", PEAK)
        parts["C7r"][f"MATT - MALT, n = {n}"] = difference(n, "matt", "malt", REHEARSED)
        parts["C7r"][f"MALT - 0-1, n = {n}"] = difference(n, "malt", "gap", REHEARSED)
        for side in ("test", "train"):
            parts["C8"][f"mAP {side}, n = {n}"] = difference(n, "matt", "malt", f"map_{side}")
        parts["C9"][f"n = {n}"] = study.over(
            games[n], lambda one: one.numbers["malt", "map_test"] - one.numbers["malt", "map_train"])
    for small, large in zip(run, run[1:], strict=False):
        by_noise = study.peak_of_noise(small) - study.peak_of_noise(large)
        for attack in ("malt", "matt"):
            step = f"{study.NAMES[attack]}, n = {small} to {large}"
            parts["C10"][f"{step}, beyond noise"] = _fall(games, small, large, attack, PEAK) - by_noise
            parts["C10r"][step] = _fall(games, small, large, attack, REHEARSED)
    for of_claim in parts.values():
        of_claim.update({f"n = {n}": None for n in not_run})
    return [*(claims.judge("bayes", claim, of_claim or None, reason or "only one n was run", points=True)
              for claim, of_claim in parts.items()),
            *_judge_second_term(games), _judge_chosen_thresholds(games, not_run, reason)]


def _fall(games: Games, small: int, large: int, attack: str, metric: str) -> Interval:
    """What an accuracy loses from one n to a larger one. Splits of different size are drawn apart, so pairing them by seed
    adds nothing and costs nothing; pairs of classes are the same at both."""
    one, other = ([found.numbers[attack, metric] for found in games[n]] for n in (small, large))
    if len(one) >= study.ENOUGH_PAIRS:
        return metrics.t_interval([a.mean() - b.mean() for a, b in zip(one, other, strict=True)],
                                  covers=f"{len(one)} pairs of classes")
    return study.over_splits(one[0] - other[0])


def _judge_second_term(games: Games) -> list[claims.Verdict]:
    """Verdicts on C15 and C15r, at the largest n."""
    n = max(games)
    share, allowed = claims.margin("bayes", "C15", "share"), claims.margin("bayes", "C15r", "auc")
    small = study.over(games[n], lambda one: share * one.first_spread - one.second_spread)
    gain = study.over(games[n], lambda one: one.numbers["eq39", "auc"] - one.numbers["matt", "auc"])
    leaks = study.over(games[n], lambda one: one.numbers["matt", "auc"] - 0.5)
    return [claims.judge("bayes", "C15", {f"{share:g} of the first less the second, n = {n}": small}),
            claims.judge("bayes", "C15r", {f"{allowed:g} less what the dropped term adds, n = {n}": -gain + allowed,
                                           f"{allowed:g} less what it takes, n = {n}": gain + allowed,
                                           f"MATT's AUC above one half, n = {n}": leaks})]


def _judge_chosen_thresholds(games: Games, not_run: list[int], reason: str) -> claims.Verdict:
    """The verdict on C16, at the n where choosing is not worth more than the margin to random numbers alone."""
    most, parts = claims.margin("bayes", "C16", "most_points"), {}
    noisy = [n for n in sorted(games) if study.peak_of_noise(n) - 0.5 > most]
    for n in sorted(games):
        for attack in ("malt", "matt"):
            def left(one: study.Numbers, attack: str = attack) -> np.ndarray:
                return most - (one.numbers[attack, PEAK] - one.numbers[attack, "cross_validated_accuracy"])

            parts[f"{study.NAMES[attack]}, n = {n}"] = None if n in noisy else study.over(games[n], left)
    parts |= {f"n = {n}": None for n in not_run}
    at = ", ".join(map(str, noisy))
    why = [f"choosing is worth more than the margin to random numbers at n = {at}"] * bool(noisy)
    return claims.judge("bayes", "C16", parts, "; ".join([*why, *[reason] * bool(not_run)]) or None, points=True)


def complement_change(found: study.Complement, attack: str) -> Interval:
    """AUC of an attack with the target's complement among the references, less that with it put aside."""
    return number(found.kept[attack], found.members, minus=found.aside[attack], measures=("auc",))


def complement_figure(found: study.Complement) -> Figure:
    """AUC of attacks with the target's complement put aside, and with it among the references."""
    figure, (axis,) = panels.grid(1, 3.6, "AUC")
    at = np.arange(len(found.aside))
    for scores, label, look in ((found.aside, "complement put aside", {**plotting.STYLE["members"], "linestyle": "none"}),
                                (found.kept, "complement among the references",
                                 {**plotting.STYLE["non-members"], "linestyle": "none"})):
        shift = -0.12 if scores is found.aside else 0.12
        values = [number(score, found.members, measures=("auc",)) for score in scores.values()]
        panels.bars(axis, at + shift, values, label=label, **look)
    axis.axhline(0.5, **panels.CHANCE)
    panels.ticks(axis.xaxis, at, [name.replace(" (", "\n(") for name in found.aside])
    axis.set(xlim=(-0.5, len(at) - 0.5))
    panels.legend(figure)
    return figure


PLAIN = ("logistic_regression", "sigmoid_regression", "mlp")  # networks without a convolution


def judge_table_two(judged: study.Judged, architecture: str) -> list[claims.Verdict]:
    """The verdict on C11, of convolutional networks; shadow models that know the records under attack are another attack than
    the paper's."""
    if architecture.partition(":")[0] in PLAIN:
        return [claims.judge("bayes", "C11", None, f"{architecture} is no convolutional network")]
    allowed, apart = claims.margin("bayes", "C11", "allowed_points"), shadows_apart(judged)
    known = {"MALT - shadow models": accuracy_lead(judged, "MALT", "Shadow models") if apart else None,
             "shadow models - 0-1": accuracy_lead(judged, "Shadow models", "0-1") if apart else None}
    alone = {} if apart else {"MALT - 0-1": accuracy_lead(judged, "MALT", "0-1")}
    return [claims.judge("bayes", "C11", {
        f"MAST - MALT + {100 * allowed:g}": accuracy_lead(judged, "MAST (best split)", "MALT") + allowed,
        **alone, **known},
        None if apart else "one bank, whose shadow models know the records under attack", points=True)]


def feature_source(dataset: str) -> str:
    """What the feature extractor of Table 1 was trained on, in words."""
    return "the other classes" if dataset == "other classes" else TITLES.get(dataset, dataset)


def shadows_apart(judged: study.Judged) -> bool:
    """Whether shadow models come from another bank than the target, of other records."""
    return len(set(judged.groups)) > 1


def accuracy_lead(judged: study.Judged, one: str, other: str) -> Interval:
    """Difference in accuracy of two attacks of Table 2, with thresholds from rehearsals."""
    return metrics.compare("auc", *(judged.decisions[name].astype(float) for name in (one, other)), judged.members,
                           groups=judged.groups)


def judge_table_three(swept: Swept, members: np.ndarray, augmentations: list[str], dataset: str) -> list[claims.Verdict]:
    """Verdicts on C12 to C14; the level of C14 can be judged on ImageNet alone."""
    value = {(n, a, attack): _sweep_values(scores, attack, members)
             for (n, a), by_attack in swept.items() for attack, scores in by_attack.items()}
    networks = list(dict.fromkeys(n for n, _ in swept))

    def over_games(differences: np.ndarray) -> Interval:
        return metrics.t_interval(differences, covers=f"{len(differences)} games")

    recipes, lacking = list(paper_recipes(augmentations).values()), "not all of the paper's recipes are among augmentations"
    c12 = {f"{n}, {a}": over_games(value[n, a, "MALT"] - value[n, a, "0-1"]) for n in networks for a in recipes}
    c12 |= {theirs: None for theirs in PAPER_AUGMENTATIONS if theirs not in paper_recipes(augmentations)}
    c13 = {f"{attack}, {n}, {weak} to {strong}": over_games(value[n, weak, attack] - value[n, strong, attack])
           for n in networks for attack in ("MALT", "0-1") for weak, strong in zip(recipes, recipes[1:], strict=False)
           } if len(recipes) == len(PAPER_AUGMENTATIONS) else None
    c14, reason = None, f"the claim is about ImageNet, this run about {TITLES.get(dataset, dataset)}"
    if dataset == "imagenet":
        c14, reason, within = {}, None, claims.margin("bayes", "C14", "within_points")
        for n in networks:
            for attack, level in (("MALT", 0.90), ("0-1", 0.77)):
                near = over_games(value[n, augmentations[0], attack] - level)
                c14[f"{attack} within {100 * within:g} points, {n}, from above"] = -near + within
                c14[f"{attack} within {100 * within:g} points, {n}, from below"] = near + within
    return [claims.judge("bayes", "C12", c12, lacking if None in c12.values() else None, points=True),
            claims.judge("bayes", "C13", c13, None if c13 else lacking, points=True),
            claims.judge("bayes", "C14", c14, reason, points=True)]
