"""Tables, figures and verdicts of the Bayes-optimal chapter, each beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import beta, gamma

from mia_lib import metrics
from mia_lib.evidence import claims, plotting
from mia_lib.evidence import tables as results
from mia_lib.metrics.interval import Interval
from mia_lib.papers.bayes import study, theory

# ----------------------------------------------------------------------------------------------- the idea and theory


def idea() -> plt.Figure:
    """The chapter's picture: one threshold for all records against one for each, on two made-up records."""
    x = np.linspace(0, 6, 400)
    figure, axes = plt.subplots(1, 2, figsize=(plotting.WIDTH, 2.9), sharex=True, sharey=True, layout="constrained")
    for axis, title, inside, outside in ((axes[0], "an easy record", 0.35, 0.9), (axes[1], "a hard record", 2.0, 3.9)):
        for mean, style, label in ((inside, "members", "trained on it"), (outside, "non-members", "not trained on it")):
            density = gamma.pdf(x, 16.0, scale=mean / 16.0) * np.sqrt(mean)  # heights that fit one picture
            axis.fill_between(x, density, color=plotting.STYLE[style]["color"], alpha=0.5,
                              label=label)
        axis.axvline(np.sqrt(inside * outside), color="black", lw=1.6, label=r"its own threshold $\tau(z)$")
        axis.axvline(1.35, color="0.45", lw=1.6, ls="--", label="one threshold for all")
        axis.set(title=title, xlabel="loss of the record", yticks=[], xlim=(0, 6), ylim=(0, 3.0))
    axes[0].set_ylabel("how often, over models")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def posterior_figure(games: Mapping[float, tuple[np.ndarray, np.ndarray]], bins: int = 10) -> plt.Figure:
    """Posterior by formula against the share of games in which the record was a member, with binomial intervals.

    Args:
        games: prior -> posterior [games] and member bool [games], from `theory.gaussian_posterior`.
    """
    figure, axes = plt.subplots(1, len(games), figsize=(plotting.WIDTH, 3.6), sharex=True, sharey=True, squeeze=False,
                                layout="constrained")
    edges = np.linspace(0, 1, bins + 1)
    for axis, (prior, (posterior, member)) in zip(axes[0], games.items(), strict=True):
        place = np.clip(np.digitize(posterior, edges) - 1, 0, bins - 1)
        filled = [b for b in range(bins) if (place == b).sum() >= 20]
        said = np.array([posterior[place == b].mean() for b in filled])
        count = np.array([(place == b).sum() for b in filled])
        hits = np.array([member[place == b].sum() for b in filled])
        low, high = beta.ppf(0.025, hits, count - hits + 1), beta.ppf(0.975, hits + 1, count - hits)
        low, high = np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)
        axis.plot([0, 1], [0, 1], "--", color="0.5", lw=1)
        axis.errorbar(said, hits / count, np.maximum([hits / count - low, high - hits / count], 0), fmt="o", capsize=3,
                      color=plotting.STYLE["members"]["color"])
        axis.set(title=f"prior {prior:g}", xlabel="posterior by formula", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes[0, 0].set_ylabel("share of games with the record in")
    return figure


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


def privacy_figure(worlds: pd.DataFrame) -> plt.Figure:
    """Dots of `privacy_in_random_worlds` under the printed and the sharp bound, a panel a prior."""
    figure, axes = plt.subplots(1, 3, figsize=(plotting.WIDTH, 2.9), sharex=True, sharey=True, layout="constrained")
    epsilon = np.linspace(0, 4, 200)
    for axis, (prior, rows) in zip(axes, worlds.groupby("prior", sort=False), strict=True):
        cap = theory.privacy_cap(epsilon, prior)
        axis.plot(rows.epsilon, rows.posterior, ".", ms=4, color=plotting.STYLE["members"]["color"], label="random worlds")
        axis.plot(epsilon, cap["sharp"], color="black", label=r"$\sigma(t_\lambda + \epsilon)$")
        axis.plot(epsilon, np.where(cap["printed"] <= 1, cap["printed"], np.nan), "--", color="black",
                  label=r"$\lambda + \epsilon/4$")
        axis.set(title=f"prior {prior:g}", xlabel="ε, largest log-likelihood ratio", xlim=(0, 4), ylim=(0, 1.02))
    axes[0].set_ylabel("largest posterior")
    axes[2].legend(frameon=False, loc="upper left")
    return figure


# --------------------------------------------------------------------------------------------- ours beside the paper's


def slash(ours: Interval | None, printed: float | None) -> str:
    """Percent, "54.9 [54.5, 55.3] / 54.4": ours with its interval, then the paper's."""
    mine = results.NOT_RUN if ours is None else results.format_percent(ours)
    return mine if printed is None else f"{mine} / {printed:.1f}"


def _printed(table: str) -> dict[tuple[str, str, str], float]:
    frame = results.paper("bayes", table)
    return {(s, a, m): v for s, a, m, v in zip(frame.setting, frame.attack, frame.metric, frame.value, strict=True)}


def _n(setting: str) -> int:
    """400 of "n = 400; lambda = 1/2; 100 seeds"."""
    return int(setting.split(";")[0].removeprefix("n = "))


METRIC_NAMES = {"train_accuracy": "train accuracy", "validation_accuracy": "validation accuracy",
                "attack_accuracy": "", "map_test": "mAP$_{test}$", "map_train": "mAP$_{train}$"}


def table_one(ours: pd.DataFrame, sizes: list[int], shown: list[str]) -> pd.DataFrame:
    """Table 1 as a page shows it, a row an n.

    Args:
        ours: from `study.table_one`. sizes: n of the rows. shown: metrics of the columns.
    """
    mine = {(n, a, m): i for n, a, m, i in ours.itertuples(index=False)}
    printed = {(_n(setting), a, m): v for (setting, a, m), v in _printed("table1").items()}
    order = {"none": 0, "0-1": 1, "MALT": 2, "MATT": 3}
    columns = sorted({(m, a) for _, a, m in printed if m in shown}, key=lambda c: (shown.index(c[0]), order[c[1]]))
    return pd.DataFrame([{"n": str(n)} | {
        f"{'' if a == 'none' else a} {METRIC_NAMES[m]}".strip(): slash(mine.get((n, a, m)), printed.get((n, a, m)))
        for m, a in columns} for n in sizes])


def sentence_on_thresholds(games: Mapping[int, study.Numbers]) -> str:
    """How much of the lead of MALT over 0-1 the choice of threshold explains, in words with this run's numbers."""
    leads = []
    for n, found in games.items():
        gap = found.numbers["gap", "attack_accuracy"]
        peak, rehearsed = (study.over_splits(found.numbers["malt", metric] - gap)
                          for metric in ("attack_accuracy", "rehearsed_accuracy"))
        leads.append(f"{results.format_percent(peak)} against {results.format_percent(rehearsed)} at n = {n}")
    return ("MALT's lead over the 0-1 attack in percentage points, with the threshold chosen on the records judged and in "
            "other splits: " + "; ".join(leads) + ".")


def _rates(interval: Interval | None) -> dict[str, float]:
    """Columns of `plotting.against`; NaN where there is nothing to draw."""
    return dict(zip(("value", "low", "high"), (np.nan,) * 3 if interval is None else
                    (interval.value, interval.low, interval.high), strict=True))


def table_one_thresholds(games: Mapping[int, study.Numbers]) -> pd.DataFrame:
    """What the choice of threshold does to Table 1: best on the records judged, or chosen in other splits."""
    def cells(n: int, numbers: Mapping[tuple[str, str], np.ndarray]) -> dict[str, str]:
        row = {"n": str(n), "noise, peak": f"{100 * study.peak_of_noise(n, len(numbers['malt', 'auc'])).mean():.1f}",
               "0-1": f"{100 * numbers['gap', 'attack_accuracy'].mean():.1f}"}
        for attack in ("malt", "matt"):
            name = study.NAMES[attack]
            row[f"{name}, peak"] = f"{100 * numbers[attack, 'attack_accuracy'].mean():.1f}"
            row[f"{name}, rehearsed"] = results.format_percent(study.over_splits(numbers[attack, "rehearsed_accuracy"]))
        return row

    return pd.DataFrame([cells(n, found.numbers) for n, found in games.items()])


def table_one_figure(ours: pd.DataFrame) -> plt.Figure:
    """Accuracy and both average precisions against n, with the paper's values hollow."""
    mine = {(n, a, m): i for n, a, m, i in ours.itertuples(index=False)}
    titles = {"attack_accuracy": "attack accuracy", "map_test": "mAP test", "map_train": "mAP train"}
    printed = results.paper("bayes", "table1")
    rows = [{"n": n, "attack": a, "panel": titles[m], "paper": v / 100, **_rates(mine.get((n, a, m)))}
            for setting, a, m, v in zip(printed.setting, printed.attack, printed.metric, printed.value, strict=True)
            if m in titles for n in [_n(setting)]]
    return plotting.against(pd.DataFrame(rows), "n", "value", by="attack", paper="paper", panel="panel", log=True,
                            percent=True, xlabel="n, records", ylabel="rate", chance=0.5)


def table_two(judged: study.Judged) -> pd.DataFrame:
    """Table 2 as a page shows it: accuracy with thresholds from rehearsals beside the paper's, AUC and TPR at 1 % FPR."""
    paper_name = {"MAST (best split)": "MAST"}
    printed = {a: v for (_, a, _), v in _printed("table2").items()}
    accuracy = metrics.evaluate(judged.decisions, judged.members, judged.groups, metrics=("auc",))
    rest = metrics.evaluate(judged.scores, judged.members, judged.groups, metrics=("auc", "tpr_at_fpr=0.01"))
    wide = results.wide(rest, digits=1, percent=True).set_index("attack")
    rows = []
    for row in accuracy.itertuples():
        interval = Interval(row.value, row.low, row.high)
        rows.append({"attack": row.attack, "accuracy, ours": results.format_percent(interval),
                     "accuracy, paper": f"{printed[name]:.1f}" if (name := paper_name.get(row.attack, row.attack)) in printed
                     else results.NOTHING,
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


def paper_recipes(augmentations: list[str]) -> list[str]:
    """Of a list from weak to strong, the three that stand for the paper's: the first two and the last."""
    return list(dict.fromkeys([*augmentations[:2], augmentations[-1]]))


def _paper_three(networks: list[str], augmentations: list[str]) -> dict[tuple[str, str, str], float]:
    """The paper's Table 3 under our names for its networks and recipes."""
    frame, ours = results.paper("bayes", "table3"), dict(zip(PAPER_NETWORKS, networks, strict=False))
    recipes = dict(zip(PAPER_AUGMENTATIONS, paper_recipes(augmentations), strict=False))
    return {(ours[m], recipes[s.removeprefix("augmentation: ")], a): v
            for m, s, a, v in zip(frame.model, frame.setting, frame.attack, frame.value, strict=True)
            if m in ours and s.removeprefix("augmentation: ") in recipes}


def table_three(intervals: dict, augmentations: list[str]) -> pd.DataFrame:
    """Table 3 as a page shows it; the paper's networks and augmentations stand beside ours in their order."""
    networks = list(dict.fromkeys(n for n, _, _ in intervals))
    printed = _paper_three(networks, augmentations)
    return pd.DataFrame([{"network": network, "augmentation": augmentation.replace("_", " ").replace(":", " ")} | {
        attack: slash(intervals[network, augmentation, attack], printed.get((network, augmentation, attack)))
        for attack in ("0-1", "MALT")} for network in networks for augmentation in augmentations])


def table_three_figure(intervals: dict, augmentations: list[str]) -> plt.Figure:
    """Attack accuracy against augmentation, a panel a network, with the paper's values hollow."""
    networks = list(dict.fromkeys(n for n, _, _ in intervals))
    printed = _paper_three(networks, augmentations)
    rows = [{"network": network, "augmentation": augmentation.replace("_", "\n").replace(":", " "), "attack": attack,
             "paper": printed.get((network, augmentation, attack), np.nan) / 100,
             **_rates(intervals[network, augmentation, attack])}
            for network in networks for attack in ("0-1", "MALT") for augmentation in augmentations]
    return plotting.against(pd.DataFrame(rows), "augmentation", "value", by="attack", paper="paper", panel="network",
                            percent=True, xlabel="", ylabel="attack accuracy", chance=0.5)


# ------------------------------------------------------------------------------------------------------------ verdicts


def judge_table_one(games: Mapping[int, study.Numbers], not_run: list[int], reason: str) -> list[claims.Verdict]:
    """Verdicts on C7 to C10, C15 and C16 from the splits of Table 1.

    Args:
        games: n -> `study.logistic_games`. not_run: the n that were not, and the reason.
    """
    numbers = {n: found.numbers for n, found in games.items()}

    def difference(n: int, a: str, b: str, metric: str) -> Interval:
        return study.over_splits(numbers[n][a, metric] - numbers[n][b, metric])

    run, parts = sorted(games), {claim: {} for claim in ("C7", "C7r", "C8", "C9", "C10", "C10r", "C16")}
    for n in run:
        parts["C7"][f"MATT - MALT, n = {n}"] = difference(n, "matt", "malt", "attack_accuracy")
        parts["C7r"][f"MATT - MALT, n = {n}"] = difference(n, "matt", "malt", "rehearsed_accuracy")
        parts["C7r"][f"MALT - 0-1, n = {n}"] = difference(n, "malt", "gap", "rehearsed_accuracy")
        for side in ("test", "train"):
            parts["C8"][f"mAP {side}, n = {n}"] = difference(n, "matt", "malt", f"map_{side}")
        parts["C9"][f"n = {n}"] = study.over_splits(numbers[n]["malt", "map_test"] - numbers[n]["malt", "map_train"])
        for attack in ("malt", "matt"):
            lost = numbers[n][attack, "attack_accuracy"] - numbers[n][attack, "cross_validated_accuracy"]
            parts["C16"][f"{study.NAMES[attack]}, n = {n}"] = study.over_splits(0.01 - lost)
    for small, large in zip(run, run[1:], strict=False):
        for attack in ("malt", "matt"):
            for claim, accuracy in (("C10", "attack_accuracy"), ("C10r", "rehearsed_accuracy")):
                # Splits of different size are drawn apart, so pairing them by seed adds nothing and costs nothing.
                parts[claim][f"{study.NAMES[attack]}, n = {small} to {large}"] = study.over_splits(
                    numbers[small][attack, accuracy] - numbers[large][attack, accuracy])
    for of_claim in parts.values():
        of_claim.update({f"n = {n}": None for n in not_run})
    gain = numbers[run[-1]]["eq39", "auc"] - numbers[run[-1]]["matt", "auc"]
    c15 = {f"0.5 less what the dropped term adds, n = {run[-1]}": study.over_splits(0.005 - gain),
           f"0.5 less what it takes, n = {run[-1]}": study.over_splits(0.005 + gain)}
    return [*(claims.judge("bayes", claim, of_claim or None, reason or "only one n was run", points=True)
              for claim, of_claim in parts.items()),
            claims.judge("bayes", "C15", c15, points=True)]


def judge_table_two(judged: study.Judged) -> list[claims.Verdict]:
    """The verdict on C11; half a point is the margin by which the paper's MAST leads."""
    def lead(a, b):
        return metrics.compare("auc", judged.decisions[a].astype(float), judged.decisions[b].astype(float), judged.members,
                               groups=judged.groups)

    return [claims.judge("bayes", "C11", {
        "MAST - MALT + 0.5": lead("MAST (best split)", "MALT") + 0.005,
        "MALT - shadow models": lead("MALT", "Shadow models"), "shadow models - 0-1": lead("Shadow models", "0-1")},
        points=True)]


def judge_table_three(swept: Swept, members: np.ndarray, augmentations: list[str], dataset: str) -> list[claims.Verdict]:
    """Verdicts on C12 to C14; the level of C14 can be judged on ImageNet alone."""
    value = {(n, a, attack): _sweep_values(scores, attack, members)
             for (n, a), by_attack in swept.items() for attack, scores in by_attack.items()}
    networks = list(dict.fromkeys(n for n, _ in swept))

    def over_games(differences: np.ndarray) -> Interval:
        return metrics.t_interval(differences, covers=f"{len(differences)} games")

    def falling(recipes: list[str]) -> dict[str, Interval]:
        return {f"{attack}, {n}, {weak} to {strong}": over_games(value[n, weak, attack] - value[n, strong, attack])
                for n in networks for attack in ("MALT", "0-1") for weak, strong in zip(recipes, recipes[1:], strict=False)}

    recipes = paper_recipes(augmentations)
    c12 = {f"{n}, {a}": over_games(value[n, a, "MALT"] - value[n, a, "0-1"]) for n in networks for a in recipes}
    more = (falling(augmentations), None) if len(augmentations) > 3 else (None, "no other strength was asked for")
    c14, reason = None, f"the claim is about ImageNet, this run about {dataset}"
    if dataset == "imagenet":
        c14, reason = {}, None
        for n in networks:
            for attack, level in (("MALT", 0.90), ("0-1", 0.77)):
                near = value[n, augmentations[0], attack] - level
                c14[f"{attack} within 5 points, {n}, from above"] = over_games(0.05 - near)
                c14[f"{attack} within 5 points, {n}, from below"] = over_games(0.05 + near)
    return [claims.judge("bayes", "C12", c12, points=True), claims.judge("bayes", "C13", falling(recipes), points=True),
            claims.judge("bayes", "C13a", *more, points=True), claims.judge("bayes", "C14", c14, reason, points=True)]
