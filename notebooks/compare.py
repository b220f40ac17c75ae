# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,mystnb,-papermill,-execution,-editable,-slideshow
#     formats: ipynb,py:percent
#     notebook_metadata_filter: kernelspec,-jupytext.text_representation.jupytext_version
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Which attack should I use?
#
# **With references of which half were trained on the record, take RMIA; from about eight on take BaVarIA if they are right on all their members, with losses near zero.
# With a single reference it depends on the networks. With {param}`compared` RMIA finds {ours}`rmia-first:value` of the members of small networks on {ours}`first`, if one in a
# hundred of the others may be accused, and BaVarIA {ours}`bavaria-heart:value` of those of networks that know their images by heart; a threshold on the loss finds
# {ours}`loss-first:value` and {ours}`loss-heart:value`.**

# %% tags=["parameters", "hide-input"]
banks: list[str] = ["cifar10", "cifar100", "resnet9", "cifar10_by_heart", "cifar100_by_heart", "fashion_by_heart"]  # published banks [cifar10 | cifar100 | resnet9 | cifar10_by_heart | cifar100_by_heart | fashion_by_heart; not empty; distinct]
targets: int = 16  # networks of each that are attacked, one of each complementary pair [2..16; verdicts from 8]
records: int = 50000  # of the training records the first so many are judged, as far as a bank has them [400..50000]
counts: list[int] = [1, 2, 8]  # references, besides those compared and the most that a bank has [1..126; ascending; not empty]
compared: int = 8  # references that a few are, in the guide and the table of all attacks [2..14; even]
hand_models: int = 6  # networks of the target by hand [6..100; even]
hand_records: int = 1000  # records there, half of which train each network [100..20000]
hand_epochs: int = 20  # of their training [1..200]
seed: int = 0  # of what is trained here [0..1000000]
draws: int = 20  # resamples of records behind each interval [10..10000]

# %% tags=["hide-input"]
from dataclasses import replace

import numpy as np
import pandas as pd

from mia_book.chapters.compare import exhibits, study
from mia_book.evidence import claims, explore, figures, game_cards, results, rules
from mia_lib import data, drawing, membership, metrics, signals, training
from mia_lib.attacks import baselines, bayes
from mia_lib.signals import log_odds

drawing.set_style()

# %%
cases = [study.of_bank(name, records) for name in banks]
asked = {1, 2, compared, *counts}  # and the most that a bank has
frame = pd.concat([study.attack_case(case, targets, asked | {case.game.references},
                                     draws=draws)[0] for case in cases])
choices = study.guide(frame, compared)

# %% tags=["hide-input"]
general, heart = ([case for case in cases if case.fit == fit] or cases for fit in (study.GENERALISES, study.BY_HEART))
shown = {"first": general[0], "second": general[len(general) // 2], "third": general[-1], "heart": heart[0], "heart-2": heart[len(heart) // 2], "heart-3": heart[-1]}
results.name({word: case.name for word, case in shown.items()} | {f"most-{word}": case.game.references for word, case in shown.items()})


def rate(attack, word, count):
    count = shown[word].game.references if count == "most" else count
    return metrics.estimate(frame, attack, study.METRICS[1], data=shown[word].name, references=count).interval((0.0, 1.0))


results.name({name: rate(*key) for name, key in {
    "rmia-first": ("RMIA", "first", compared), "bavaria-heart": ("BaVarIA", "heart", compared),
    "rmia-heart": ("RMIA", "heart", compared), "lira-heart": ("LiRA", "heart", compared), "rmia-heart-2": ("RMIA", "heart-2", compared),
    "lira-heart-2": ("LiRA", "heart-2", compared), "one-bavaria": ("BaVarIA, offline", "heart-2", 1), "loss-first": ("MALT", "first", 0), "loss-heart": ("MALT", "heart", 0), "loss-heart-2": ("MALT", "heart-2", 0),
    "one-heart-2": ("calibrated loss", "heart-2", 1), "one-heart": ("calibrated loss", "heart", 1), "two-rmia": ("RMIA", "first", 2), "two-lira": ("LiRA", "first", 2),
    "most-rmia": ("RMIA", "third", "most"), "most-lira": ("LiRA", "third", "most"), "most-own": ("LiRA, own spreads", "third", "most"),
    "two-bavaria": ("BaVarIA", "heart-2", 2), "two-lira-heart": ("LiRA", "heart-2", 2), "tied": ("RMIA, offline", "heart-2", 1)}.items()}, ".1%")
results.name({f"lead-{few}{word}": 100 * study.lead(frame, "BaVarIA", "RMIA", shown[word].name, count)
              for few, count in (("two-", 2), ("", compared)) for word in ("heart", "heart-2", "heart-3")}, ".1f")
of_guide = choices.set_index(["means", "fit"])
for means in exhibits.HAVE:
    for fit, word, of_banks in ((study.GENERALISES, "fit", ("first", "third")), (study.BY_HEART, "known", ("heart",)), ("either", "either", ())):
        row = of_guide.loc[(means, fit)] if (means, fit) in of_guide.index else None
        results.name({f"guide-{means}-{word}": results.NOT_RUN if row is None else f"{row['attack']} ({row['good']} of {row['settings']})"})
        results.name({f"guide-{means}-{bank}": results.NOT_RUN if row is None else row["rates"][shown[bank].name] for bank in of_banks}, ".1%")
figures.show(exhibits.references_figure(frame), name="compare-references")

# %% [markdown]
# :::{caption} compare-references
# :alt: Panels, one a bank, of curves against the number of references on a logarithmic axis, one for each attack with
#   bars; MALT, which has no references, is a level line.
#
# The share of the members found at 1 % false alarms, against the number of reference models that a record is compared
# with. Those of offline attacks and of the calibrated loss were all trained without the record, of the others half.
# {param}`targets` targets of each bank, all its training records; 95 % intervals over targets and records.
# :::

# %% [markdown]
# Each paper chooses data, references and queries. Here networks, records and references are the same for all attacks.
# Run it again: `mia run compare`, or `mia run compare -p compared 2` ([how to rerun](../book/rerun.md)).
#
# ## What each attacker has
#
# In the [game](../book/game.md) half of the records trained the target, and the attacker gives every record a score. Attacks differ
# in three things:
#
# - **Access**: the predicted label, the loss, or all outputs ({numref}`compare-access`).
# - **References**: none; models that were trained without the record, as an attacker has who meets it later (*offline*); or models half of them with it.
# - **Queries**: how often the target is asked about one record. Curvature asks forty times, most others once.
#
# The target's partner, which was trained on the other half, is no reference, for counting those that know a record would then give the answer away.
#
# ## The scores, one line each
#
# Let $\ell$ be the loss of a record under the target, $p = e^{-\ell}$ and $s = \log\frac{p}{1-p}$. A bar is a mean over references, *in* those that were
# trained on the record, *out* the others.
#
# | attack | score, higher for members |
# | --- | --- |
# | MALT, a threshold on the loss | $-\ell$ |
# | calibrated loss | $\bar\ell_{\mathrm{out}} - \ell$ |
# | MAST (softmin) | $-\ell - T \log \overline{e^{-\ell/T}}_{\mathrm{out}}$ |
# | RMIA, and BASE | $\log p - \log \tfrac12(\bar p_{\mathrm{in}} + \bar p_{\mathrm{out}})$ |
# | LiRA | $\log \mathcal N(s; \mu_{\mathrm{in}}, \sigma_{\mathrm{in}}) - \log \mathcal N(s; \mu_{\mathrm{out}}, \sigma_{\mathrm{out}})$, with one spread $\sigma$ for all records, or *own spreads*, one for each |
# | BaVarIA | LiRA's, each variance between the record's own and that of all records |
#
# Offline, RMIA guesses what references with the record would say from a constant $a$: $\bar p_{\mathrm{in}} = a\, \bar p_{\mathrm{out}} + 1 - a$. With $a = 1$ it asks
# how much more probable the label is under the target than usual; with $a = 0$ the usual probability is at least one half, so that an image that is hard for
# everybody must be learned well to be called. The attacker chooses $a$, and the temperature $T$, by attacking one of its references. With a single
# reference $a$ is what RMIA's authors use for the data set.
#
# :::{finding}
# :claims: K14 checked, K19 checked
# Three of these are nearly one. With $T = 1$ [MAST with the soft minimum](bayes.ipynb), published in 2019, is RMIA, offline, of 2024 with $a = 1$. BASE, of 2025,
# is the logarithm of RMIA's ratio, and ranks records as RMIA does but for ties {cite}`lassila2025practical`: RMIA's own score counts how many public
# records have less than half of the ratio.
# :::
#
# ## One target by hand

# %%
pool = data.load("fashion_mnist_20k").take(np.arange(hand_records))
inside = membership.balanced_halves(hand_records, hand_models, seed)
config = training.TrainConfig("strided_cnn:8,16,32", epochs=hand_epochs,
                              batch_size=32, learning_rate=0.002, seed=seed)
loss = signals.loss(training.train(pool, inside, config), pool).astype(float)

others = membership.references_of(0, hand_models)  # but the target and its partner
p, knows = np.exp(-loss), inside[others]
usual = (np.average(p[others], 0, knows) + np.average(p[others], 0, ~knows)) / 2
by_hand = {"loss": bayes.malt(loss[0]), "ratio": p[0] / usual}
{name: round(metrics.auc(score, inside[0]), 3) for name, score in by_hand.items()}

# %% [markdown]
# An {term}`AUC` of one half is guessing. The ratio of the target's probability to the usual one is RMIA's.
#
# ## What to use with what you have
#
# One thing about the target decides: whether it knows its members by heart, all right and with losses near zero. References trained by its
# recipe show it.

# %% tags=["hide-input"]
results.show_table(exhibits.guide_table(choices), name="compare-guide")

# %% [markdown]
# :::{caption} compare-guide
# Read down as long as the lines are true of you, and across by the target. The attack of a cell is, of those that use
# just these references, the best, or not told from the best at 95 %, in most settings, a bank at 1 % or 0.1 % false
# alarms, by every second target. In brackets: in how many settings it is so on the other targets.
# :::

# %%
shared = study.sharing(banks, targets, draws)
unsure = study.right_not_sure()  # networks beside the banks
of_unsure, _ = study.attack_case(unsure, len(unsure.game.members) // 2,
                                 [compared, unsure.game.references],
                                 ["RMIA", "BaVarIA"], draws, step=1)
zero = replace(shown["heart-2"], share=0.0)  # RMIA's a, with one reference
of_zero, _ = study.attack_case(zero, targets, [1], ["RMIA, offline"], draws)
one_spread = study.with_one_spread(heart, targets, compared, draws)

# %% tags=["hide-input"]
by_rate = pd.concat([study.at_rates(frame), study.with_most(study.at_rates(frame))])
results.name({f"unsure-{attack.lower()}": metrics.estimate(of_unsure, attack, study.METRICS[1], references=compared).interval((0.0, 1.0)) for attack in ("RMIA", "BaVarIA")}
             | {"unsure-right": unsure.accuracy[:, 0].mean(), "zero": metrics.estimate(of_zero, "RMIA, offline", study.METRICS[1]).interval((0.0, 1.0))}
             | {f"one-spread-{word}": metrics.estimate(one_spread, study.ONE_SPREAD, study.METRICS[1], data=shown[word].name).interval((0.0, 1.0))
                for word in ("heart", "heart-2")}, ".1%")
results.name({"unsure-most": unsure.game.references, "authors-a": shown["heart-2"].share}, "g")
results.name({"unsure-lead": 100 * study.lead(of_unsure, "RMIA", "BaVarIA", unsure.name, unsure.game.references)}, ".1f")
results.name({"unsure-loss": study.member_loss(unsure), "heart-loss": max(study.member_loss(case) for case in heart)}, ".3f")
rules.show_settings(
    "compare", {"K1": "RMIA less LiRA, one reference of each kind", "K3": "LiRA, own spreads, less RMIA, most references",
                "K7": "calibrated loss less loss, one reference", "K10": "a reference that shares half less one that shares nothing"},
    pd.concat([by_rate, study.at_rates(shared)]), name="compare-settings")

# %% [markdown]
# :::{caption} compare-settings
# Four claims about the share of members found in every setting, a bank and a rate of false alarms, over
# {param}`targets` targets and all records.
# :::

# %% [markdown]
# :::{finding}
# :claims: K1 reproduced, K3 depends, K5 depends, K7 depends, K15 depends, K21 depends
# **RMIA; by heart BaVarIA from about eight references on.** With one reference of each kind RMIA is ahead of LiRA in every setting: on {ours}`first` it finds
# {ours}`two-rmia`, LiRA {ours}`two-lira`. Where networks err on some members RMIA stays ahead but for ResNet-9 with the most references: {ours}`most-rmia`, LiRA {ours}`most-lira`, and
# with a spread for each record {ours}`most-own`. Where they know their members by heart BaVarIA less RMIA is, at 1 %, {ours}`lead-two-heart` points on CIFAR-10,
# {ours}`lead-two-heart-2` on CIFAR-100 and {ours}`lead-two-heart-3` on FashionMNIST with two references, and {ours}`lead-heart`, {ours}`lead-heart-2` and {ours}`lead-heart-3` with
# {param}`compared`. At 0.1 % it is then ahead for certain on CIFAR-10 alone.
#
# LiRA sees that a member's answers vary less, RMIA does not. On {ours}`heart` more than half of LiRA's lead is there without it: RMIA finds {ours}`rmia-heart`, LiRA with one spread for members
# and others {ours}`one-spread-heart`, with two {ours}`lira-heart`. On {ours}`heart-2` ({ours}`rmia-heart-2`, {ours}`one-spread-heart-2`, {ours}`lira-heart-2`) it needs the two.
#
# **BaVarIA is for networks that overfit.** Its paper claims most with few references. Where networks err on some members it is nowhere ahead of LiRA with few, and behind with
# {param}`compared` on {ours}`first` and ResNet-9. Where they know them by heart it is nowhere behind. Most it gains with two on {ours}`heart-2`, {ours}`two-bavaria` for LiRA's
# {ours}`two-lira-heart`; on FashionMNIST the two cannot be told apart. We saw this on {ours}`heart-2` first, and asked of the two other sets afterwards.
#
# **Right is not enough.** Perceptrons of FashionMNIST are right on {ours}`unsure-right` of their members, but not sure: their mean loss there is
# {ours}`unsure-loss`, that of networks that know them by heart at most {ours}`heart-loss`. With {param}`compared` references RMIA finds {ours}`unsure-rmia` and BaVarIA
# {ours}`unsure-bavaria`; with all {ours}`unsure-most` RMIA's lead is {ours}`unsure-lead` points.
#
# **A spread for each record needs many references.** With {param}`compared` it costs LiRA members on every bank, at both rates. It pays with {ours}`most-third`
# references on ResNet-9, and at 1 % false alarms on {ours}`heart-2`. LiRA's paper advises it from 64 on.
#
# **With one reference the calibrated loss can be worse than the loss.** On {ours}`heart-2`, whose networks are wrong on most other images, the loss alone finds {ours}`loss-heart-2`, and the
# calibrated loss {ours}`one-heart-2`. BaVarIA, offline, finds {ours}`one-bavaria`. RMIA finds {ours}`tied` with its authors' $a =$ {ours}`authors-a`, for its scores tie, and
# {ours}`zero` with $a = 0$. On {ours}`heart` one reference takes the rate from {ours}`loss-heart` to {ours}`one-heart`.
# :::
#
# ## One more query
#
# A record can be asked as it is, mirrored and shifted: LiRA's paper asks 18 times. We join the answers by the mean of their log odds, for all attacks alike; three recipes of one
# small network on 1,000 images, which stand beside the banks, also have a Gaussian for each view, as in LiRA's paper.

# %%
of_recipes, recipes = study.recipes(draws)
deep = [study.of_bank(name, min(records, study.CURVED)) for name in banks]
played = [study.attack_case(case, targets, [compared], study.ENTRIES, draws)
          for case in deep]
all_attacks = pd.concat([rows for rows, _ in played], ignore_index=True)

# %% tags=["hide-input"]
def metric_of(rows, attack, metric, **where):
    """The metric, or "not run" where the rows do not have it."""
    known = rows[(rows["attack"] == attack) & (rows[list(where)] == pd.Series(where)).all(axis=1)]
    return results.NOT_RUN if known.empty else metrics.estimate(known, attack, metric).interval((0.0, 1.0))


flips, plain, by_heart = {"recipe": "flips and crops, 20 epochs"}, {"recipe": "none, 20 epochs"}, {"data": shown["heart-2"].name, "references": compared}
results.name({name: metric_of(of_recipes, attack, "auc", **flips) for name, attack in (
    ("rmia-once", "RMIA"), ("rmia-18", "RMIA, 18 queries"), ("lira-once", "LiRA"), ("lira-18", "LiRA, 18 queries"))}, ".2f")
results.name({"spared": metric_of(of_recipes, "LiRA, a Gaussian each, 18 queries", study.METRICS[1], **plain),
              "ruined": metric_of(of_recipes, "LiRA, 18 queries", study.METRICS[1], **plain), "plain-once": metric_of(of_recipes, "LiRA", study.METRICS[1], **plain)}
             | {f"heart-{word}": metric_of(all_attacks, attack, study.METRICS[1], **by_heart) for word, attack in (
                 ("once", "LiRA"), ("twice", "LiRA, 2 queries"), ("often", "LiRA, 18 queries"))}, ".1%")
figures.show(
    exhibits.queries_figure(pd.concat([all_attacks, of_recipes]), compared), name="compare-queries")

# %% [markdown]
# :::{caption} compare-queries
# :alt: A panel for each set of which more than one answer is known: curves against the number of queries, one for each
#   attack that was asked so often.
#
# Members found at 1 % false alarms, against the queries about a record, with {param}`compared` references, the recipes
# with all others. Answers are joined by the mean of their log odds, but for *a Gaussian each*; curvature takes
# differences of forty. Small networks on a whole set were trained without augmentation, those that know CIFAR-100 by
# heart with flips. 95 % intervals over targets and images.
# :::

# %% [markdown]
# :::{finding}
# :claims: K20 depends
# **Ask what training showed.** In the recipe with flips and crops 18 queries raise the AUC of RMIA from {ours}`rmia-once:value` to {ours}`rmia-18:value` and that of LiRA from
# {ours}`lira-once:value` to {ours}`lira-18:value`; what they do to the rate at 1 % false alarms may be chance. Where training had no such views they harm both attacks. The networks that know
# {ours}`heart-2` had flips: with the mirror image as a second query LiRA finds {ours}`heart-twice:value` of their members instead of {ours}`heart-once:value`, and
# with 18 shifted views, which these networks never saw, {ours}`heart-often:value`.
# :::
#
# ## Where references come from
#
# These references have something that an attacker may lack: they were trained on halves of the pool that the target's training data come from.
# Even if a reference does not know the record that is judged, it shares about half of the target's other records. The target's partner shares none.

# %% tags=["hide-input"]
ends = {"share": (shared["data"].iloc[0], "calibrated loss"), "tested": (shared["data"].iloc[-1], "RMIA, offline")}
results.name({"tested": shared["data"].iloc[-1]} | {f"{word}-{overlap}": metrics.estimate(
    shared[shared["data"] == of_set], attack, study.METRICS[1], overlap=overlap).interval((0.0, 1.0))
    for word, (of_set, attack) in ends.items() for overlap in ("half", "nothing")}, ".1%")
results.show_table(exhibits.sharing_table(shared), name="compare-sharing")

# %% [markdown]
# :::{caption} compare-sharing
# One reference that shares half of the target's training records, and one that shares none, in percent with 95 %
# intervals over at most {param}`targets` targets and their records, on the banks that have test images. Judged are the
# members that neither reference knows, and these.
# :::

# %% [markdown]
# :::{finding}
# :claims: K10 reproduced
# The reference that shares half finds {ours}`share-half` of the members of {ours}`first`, the other one {ours}`share-nothing`. So small a difference is certain at 1 % where
# networks err on some members; at 0.1 %, and on {ours}`tested`, it is mostly open. RMIA loses more there: it finds {ours}`tested-half` and {ours}`tested-nothing`.
# So whoever trains references on records of their own finds fewer than our tables say.
# :::
#
# ## Two attacks at your own price

# %% tags=["hide-input"]
pairs = exhibits.beside(deep, [scores for _, scores in played], compared)
scores, members = pairs[shown["first"].name]
figures.explore(
    explore.two_attacks(pairs, ("MALT", "RMIA")), drawing.roc({name: scores[name] for name in ("MALT", "RMIA")}, members),
    name="compare-versus")

# %% [markdown]
# :::{caption} compare-versus
# :alt: Two ROC curves on logarithmic axes. In the chart that can be moved a line stands at the rate allowed, and beside
#   the curves is a square of a thousand small squares for each attack, coloured by members missed, right and wrong
#   accusations, and others left alone.
# :instructions: Choose a set and two attacks. Then move the false positive rate that is allowed, the share of members
#   among the records looked at, and what a wrong accusation costs in right ones. When does accusing nobody pay best?
#
# Two attacks on the same records, with {param}`compared` references where they need some, means over {param}`targets`
# targets: both ROCs, and of a thousand records who is accused, rightly and wrongly. The net gain is right accusations
# less wrong ones times their cost.
# :::

# %% [markdown]
# ## What held and what did not
#
# :::{finding}
# :claims: K1 reproduced, K10 reproduced, K14 checked
# **What held.** References are what matters. With one of each kind RMIA finds more members than LiRA, on all banks and at both rates. RMIA offline is an attack of 2019 with a
# constant. References that share the target's pool find more than such as share nothing.
# :::
#
# :::{finding}
# :claims: K3 depends, K5 depends, K7 depends, K15 depends, K20 depends, K21 depends
# **What depends.** Which attack is best hangs on the network: mostly RMIA where it errs on some members or, with up to {param}`compared` references, is not sure of them; by heart BaVarIA from about
# eight on, or with many LiRA with a spread for each record. A calibrated loss is no safe choice, and more queries are none unless training showed such views.
# :::
#
# Shadow models are in [the first chapter](bayes.ipynb), attacks that are told the other members in [that on the inverse Hessian](iha.ipynb), curvature in
# [its own](curvature.ipynb).
#
# To take away: say what the attacker has, and how well the target knows its members, before you say how well an attack does.
#
# ## Exercises
#
# ````{exercise} A frontier of your own
# :label: compare-exercise-frontier
# You may ask for losses and train no model. Which attacks of {numref}`compare-table` are left? What is the least that you must add to find more than
# guessing?
# ````
# ````{solution} compare-exercise-frontier
# :class: dropdown
# The 0-1 attack and MALT: whoever has the loss of the true label has no other outputs. Add one model that was trained without the record. With it the
# calibrated loss, the soft minimum and RMIA find several times what guessing finds, if the target generalises. If it knows its members by heart and is
# wrong on most other records, MALT alone finds many: {ours}`loss-heart-2:value` on {ours}`heart-2`, but {ours}`loss-heart:value` on {ours}`heart`.
# ````
#
# ````{exercise} Double the references, halve the targets
# :label: compare-exercise-budget
# With a budget for $M$ models in all you can have $M - 2$ references, and every model of the bank can be a target as well. Why are intervals over
# targets then not independent? Run `mia run compare -p targets 8` and say what becomes of the intervals.
# ````
#
# ````{solution} compare-exercise-budget
# :class: dropdown
# Targets of one bank share all other models as references and all records. The interval adds the variance of drawing targets and of drawing records,
# not that of drawing another bank. With half of the targets the first part doubles.
# ````
#
# ````{exercise} Is the best of many really best?
# :label: compare-exercise-holm
# {numref}`compare-table` has two dozen attacks on each bank, with an interval of 95 % each. If all attacks were alike, how many differences from RMIA would
# leave out zero? Why is the best of a table, chosen on the targets that it is reported on, flattered, and how does {numref}`compare-guide` avoid it?
# ````
#
# ````{solution} compare-exercise-holm
# :class: dropdown
# About one in twenty would leave out zero, half of them on either side. The largest of many noisy numbers is larger than its mean, more so with more of them. In the guide an attack is chosen on every
# second target and counted on the others. Those share references and records, so it is not all of the flattery that goes.
# ````


# %% [markdown]
# ## Quiz
#
# Choose an option and open it: it says why it is right, or what it mistakes.
#
# :::{quiz} compare
# :::

# %% [markdown]
# ## In more depth
#
# ### All attacks, with the same references

# %% tags=["hide-input"]
results.show_table(exhibits.main_table(all_attacks, compared), name="compare-table")

# %% [markdown]
# :::{caption} compare-table
# Share of the members found at 1 % false alarms, in percent, by every attack with {param}`compared` references or with
# none; guessing finds 1 %. *Trained*: references were trained *without* the record, or half of them with it, *both*.
# References and queries are those of one record; RMIA asks the target about 2,000 further images once, or about judged
# ones where all images train some model. 95 % intervals over {param}`targets` targets and the first 4,000 records, of
# which costly signals were measured. Attacks whose scores are few numbers, such as *0-1*, have no threshold for so few
# alarms. LiRA's released code scores offline by the density of its Gaussian, so that too low a confidence counts for
# membership, too.
# :::

# %% tags=["hide-input"]
results.show_table(exhibits.rates_table(choices), name="compare-rates")
results.show_table(exhibits.regimes_table(cases), name="compare-regimes")
results.show_table(exhibits.access_table(), name="compare-access")

# %% [markdown]
# :::{caption} compare-rates
# What the attacks of {numref}`compare-guide` find at 1 % false alarms, in percent with 95 % intervals, on the targets
# that did not choose them.
# :::
#
# :::{caption} compare-regimes
# The networks that are attacked: each was trained on half of the training records. *Others* are test images, or the
# other half where all images train some model. *By heart* are networks that are right on all members but a few in a
# thousand.
# :::
#
# :::{caption} compare-access
# What each attack needs, as declared by the function that computes it. Thresholds that are named there are for whoever
# must say yes or no; rankings do without.
# :::

# %% [markdown]
# ### The same attack on another recipe
#
# RMIA's paper has an AUC of .72 for both attacks on CIFAR-10. Readers who run its code get .61, with the same accuracies. What makes the difference?

# %% tags=["hide-input"]
results.name({word: metrics.estimate(of_recipes, "LiRA", "auc", augmentation=augmentation, epochs=epochs).interval((0.0, 1.0)) for word, augmentation, epochs in (
    ("auc-short", "none", 5), ("auc-long", "none", 20), ("auc-augmented", "flips and crops", 20))}, ".2f")
results.show_table(
    exhibits.reported_table(pd.concat([frame, of_recipes]), [*(case for case in cases if case.name in exhibits.NETWORKS), *recipes]),
    name="compare-recipe")

# %% [markdown]
# :::{caption} compare-recipe
# LiRA and RMIA on CIFAR-10, in percent: as papers
# {cite}`carlini2022membership,zarifzadeh2024low,brannvall2026exponential` and users of Privacy Meter report them, and
# ours with 95 % intervals. What is not stated, or not resolved, has a dash. Both of Brännvall's are by the same code.
# :::

# %% [markdown]
# :::{finding}
# :claims: K20 depends
# **Hardly the queries**: 18 of them instead of two change the AUC of those readers by a fifth of a point. **The network and its training**: by the same
# code LiRA's AUC is ten points lower on a ResNet-18 than on a wide ResNet; ours on ResNet-9 lies between. In our recipes four times the training
# raises it from {ours}`auc-short` to {ours}`auc-long`, and augmentation lowers it to {ours}`auc-augmented`. So a recipe that leaves members less sure could
# explain it; that is not tested here.
# :::

# %% [markdown]
# ### How answers are joined
#
# It matters where views harm. In the recipe without augmentation LiRA finds {ours}`plain-once:value` with one query, {ours}`ruined:value` with the mean of 18, and
# {ours}`spared:value` with a Gaussian for each, since a view that says little weighs little there.
#
# ### Records to guess
#
# Some records of the target by hand, as an attacker sees them; on [their own page](../book/play.md) they are dealt to you.

# %% tags=["hide-input"]
odds = log_odds(loss)
lira = baselines.lira_offline(odds[0], odds[others], knows, fixed_variance=True)
dealt = game_cards.deal(pool.x, pool.y, pool.classes, loss[0], loss[others], knows, inside[0],
                        {"MALT": by_hand["loss"], "LiRA": lira}, seed=seed)
game_cards.show(dealt, name="compare-game")

# %% [markdown]
# :::{caption} compare-game
# Half of these records were used to train the target. Losses in nats; references are those that were not trained on the
# record.
# :::

# %% [markdown]
# (compare-claims)=
# ### Every claim, with its verdict

# %%
identity = pd.concat([study.ranks_as_rmia(case, compared) for case in deep])
everything = pd.concat([by_rate, study.by_queries(of_recipes),
                        study.at_rates(shared), identity], ignore_index=True)
verdicts = rules.judge_all("compare", everything, {})

# %% tags=["hide-input"]
claims.show("compare", verdicts)

# %% [markdown]
# ### Where this comparison stops short
#
# Networks are small but for ResNet-9. Intervals cover targets and records, not the choice of the bank; of each set and network there is one.
#
# On Colab, add a cell before the first one, and in it: `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`
