# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Difficulty calibration
#
# **A low loss is a sign of membership, or of an easy record. Subtract the loss that a model without the record gives it, and what is left
# is about membership.**
#
# Lauren Watson, Chuan Guo, Graham Cormode and Alexandre Sablayrolles, *On the Importance of Difficulty Calibration in
# Membership Inference Attacks* {cite}`watson2022importance`.
#
# ```{admonition} Run this chapter again
# :class: tip
# `mia run calibration` uses the data inside the repository and a laptop; [what it takes](../book/status.md). The second time, what did
# not change is read from the store. Change anything: `mia run calibration -p image_epochs 60 -p queries 5000`; text and verdicts follow
# the new numbers. All parameters: `mia params calibration`. [How to rerun](../book/rerun.md) has the rest.
#
# On Colab, add a cell before the first one, and in it: `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`
# ```
#
# The [chapter before](bayes.ipynb) ended at a threshold for each record. This paper takes the cheapest step there: one
# {term}`reference model` and one subtraction, for whatever {term}`score` the attacker has. Its second message is about judging. An attack
# that is right on average need not be able to name a single member.
#
# *The main line* below takes about half an hour to read. *In depth*, after the exercises, are the other exhibits, every claim with its
# verdict, and where text and code differ, each folded. Tables and figures numbered without a dot (Table 1) are the paper's, those with one
# this book's.

# %%
from dataclasses import replace

import numpy as np
import pandas as pd

from mia_lib import (attacks, claims, data, membership, metrics, plotting, results,
                     signals, training)
from mia_lib.attacks import baselines, bayes, calibration
from mia_lib.papers.calibration import exhibits, study
from mia_lib.training import private as dp
from mia_lib.training import shared

plotting.set_style()

# %% [markdown]
# ## What the attacker has
#
# One round of the [membership game](../book/game.md) is called a *play* here (a game, in the names of parameters). Each play splits the records anew, at random. The *private*
# half belongs to the trainer: a target is trained on one half of it and judged on all of it. The *public* half is the attacker's. It
# comes from the same distribution, and the attacker trains references there. No reference from scratch ever saw a record under attack; one made by forgetting did, and
# is to forget it.

# %% tags=["hide-input"]
results.show_table(
    attacks.threat_model({"gap": baselines.gap, "loss": bayes.malt,
                          **{name: calibration.SIGNALS[name] for name in ("gradient norm", "confidence", "label-only")},
                          "loss, calibrated": calibration.calibrate,
                          "any score, by forgetting": calibration.SIGNALS["any score, by forgetting"]}),
    name="calibration-threat-model",
    caption="What each attack of this chapter needs for its score, as declared where it is computed. A score calibrated by references from scratch "
            "needs what the score needs, and the last two columns of the calibrated loss. *Gap* calls a record a member when it is classified correctly.")

# %% [markdown]
# ## Parameters
#
# Everything that can be changed without touching code; square brackets say what is allowed. The presets in `notebooks/presets` hold larger
# runs.

# %% tags=["parameters"]
tables: list[str] = ["german_credit_mlp_double_softmax", "german_credit_mlp"]  # shared ensembles on tables [german_credit_mlp | german_credit_mlp_double_softmax | hepatitis_mlp | hepatitis_mlp_double_softmax | adult_mlp | adult_mlp_double_softmax; not empty]
stops: list[int] = [1, 2, 4, 7, 12, 20, 35, 60, 100, 200]  # epochs after which references are stopped by hand, on the first two tables; longer ones than the target's are left out [1..2000; not empty; ascending]
image_dataset: str = "fashion_mnist_20k"  # images for the other rows (see `mia data ls`) [data set]
image_records: int = 2400  # records of a game on images; a quarter of them trains the target [16..60000]
image_games: int = 5  # games on images [2..20]
image_architecture: str = "leino_cnn:4,8,128"  # of the networks on images [architecture]
image_epochs: int = 30  # of targets and references on images [1..500]
image_learning_rate: float = 0.1  # of the first epoch, on images [1e-6..1.0]
image_augmentations: list[str] = ["none"]  # recipes of the targets on images, "none" first; with "flip_crop:4" a second row [augmentation; not empty]
views: int = 10  # times a record is augmented when a target trained with augmentation is attacked [1..50]
sizes: list[int] = [150, 300]  # training sets of Figure 3 besides that of the tables [8..]
forgetting_epochs: int = 20  # further epochs of forgetting, on tables [0..500]
forgetting_learning_rate: float = 0.1  # of them [1e-6..1.0]
image_forgetting_epochs: int = 10  # the same on images [0..500]
image_forgetting_learning_rate: float = 0.02  # of them [1e-6..1.0]
ablations: str = "tables"  # what Figures 5 and 6 are run on: the first of the tables, or the images as in the paper [tables | images]
copies: int = 10  # forgetful copies of Figure 5 [1..50]
shadow_shares: list[float] = [0.25, 0.5, 0.75]  # of the public records, in Figure 5 [0.01..0.99; not empty]
ratios: list[int] = [1, 2, 5, 10]  # non-members to a member, in Figure 4 [1..; not empty]
queries: int = 2500  # of the label-only attack, a record and model [222..1000000]
label_only_games: int = 5  # of the label-only attack [2..20]
epsilons: list[float] = [1.0, 10.0, 100.0, 1000.0]  # of DP-SGD, in Figure 6 [1e-6..; not empty]
private_epochs: int = 40  # of DP-SGD [1..500]
private_batch_size: int = 64  # of DP-SGD, in expectation [1..10000]
private_games: int = 5  # of DP-SGD [2..20]
seed: int = 0  # first seed of everything random on images [0..1000000]

# %% tags=["hide-input"]
records = data.load(image_dataset)
records = records.take(range(records.n_train))
config = training.TrainConfig(
    image_architecture, epochs=image_epochs, batch_size=64, optimizer="sgd",
    learning_rate=image_learning_rate, momentum=0.9, nesterov=True,
    weight_decay=1e-4, schedule="cosine", seed=seed)

def games_on_images(size, augmentation="none"):
    return study.on_images(
        records, size, image_games, replace(config, augmentation=augmentation),
        image_forgetting_epochs, image_forgetting_learning_rate,
        views if augmentation != "none" else 0, seed)

games = [study.on_table(name, forgetting_epochs, forgetting_learning_rate) for name in tables]
games += [games_on_images(image_records, augmentation) for augmentation in image_augmentations]
games = {one.name: one for one in games}
table, images = (next(one for one in games.values() if one.models.records.is_image == wanted)
                 for wanted in (False, True))
ablated = {"tables": table, "images": images}[ablations]
longest = min(one.models.config.epochs for one in study.stoppable(games).values())
study.check_private_batch(ablated, private_batch_size)
lengths = [count for count in stops if count <= longest] or [longest]
plan = study.plan(games, sizes, image_games, ablated, queries=queries, epsilons=epsilons,
                  shadow_shares=shadow_shares, copies=copies, stops=lengths)

# %% [markdown]
# ## One target by hand
#
# Before any theory, the whole attack once, on {ours}`first-table` (where that is *softmax twice*, the network is the released one, whose second
# softmax is {ref}`drawn below <calibration-softmax-part>`). Draw a play. Train the target on its half of the private records. Train a
# reference in the same way on public records, and stop it where it classifies other public records best.

# %%
bank = shared.get(tables[0])  # the records, and how its networks are trained
pool, recipe = bank.records, bank.config
members, private = membership.calibration_splits(len(pool), repeats=1, references=1)

target = training.train(pool, members[:1], recipe)
reference = training.train(
    pool, members[1:], replace(recipe, seed=recipe.seed + 1),
    validation=~private & ~members[1:])  # keeps its best epoch

# %% [markdown]
# Then look up two losses for each private record, subtract, and measure.

# %%
loss, usual = (signals.loss(models, pool)[0, private[0]]
               for models in (target, reference))
inside = members[0, private[0]]

scores = {"Orig": bayes.malt(loss),
          "Cal.": calibration.calibrate(-loss, -usual)}
auc = {name: metrics.auc(score, inside) for name, score in scores.items()}
auc

# %% tags=["hide-input"]
plays = {name: study.play(one) for name, one in games.items()}
results.name({"hand-orig": float(auc["Orig"]), "hand-cal": float(auc["Cal."])})
results.name({"ablated-data": ablated.name.removesuffix(", softmax twice")})
results.name({"first-table": table.name, "images-name": images.name, "ablated": ablated.name, "plays": len(table),
              "members-each": int(table.models.members[0].sum()), "image-members": int(images.models.members[0].sum())})
results.name({f"{name}-members": said for name, said in exhibits.called_in_idea(plays[table.name]).items()})
results.name({"intervals": exhibits.intervals(games)})
results.name({f"top-{variant}": exhibits.top_share(plays[table.name], variant, 0.1, table.covers) for variant in study.VARIANTS}, ".0%")
results.name({f"tip-{variant}": exhibits.top_share(plays[images.name], variant, 0.01, images.covers) for variant in study.VARIANTS}, ".0%")

# %% [markdown]
# An {term}`AUC` of one half is guessing. *Orig*, the loss as it is, reaches {ours}`hand-orig`; *Cal.*, calibrated, {ours}`hand-cal`. This
# is the first of the {ours}`plays` plays behind the row *{ours}`first-table`* of {numref}`calibration-table-2` and of most tables below.
#
# ## The idea
#
# Some records are hard: their loss is high under any model. The picture has all records of the play above, by both losses.

# %% tags=["hide-input"]
plotting.show(
    exhibits.idea(plays[table.name]), name="calibration-idea",
    caption="Each dot is a record of one play ({ours}`first-table`), by how hard it is for the target and for a reference that never saw it, from "
            "the easiest to the hardest. Below the solid line is the tenth of the records that one threshold for all calls first; rings mark the "
            "tenth that the calibrated loss calls first: axes are ranks, rings go by losses, of which hard records have more to lose. In this play members are {ours}`line-members` of the former and {ours}`rings-members` of the "
            "latter; over {ours}`plays` plays {ours}`top-original` and {ours}`top-scratch` (means, 95 % intervals). Half of all records are members.",
    alt="Scatter plot of members and non-members, rank of the loss under the target against rank of the loss under the reference, with the diagonal. A "
        "horizontal line has a tenth of the records below it, of which {ours}`line-members` are members; another tenth has rings, of which "
        "{ours}`rings-members` are.")

# %% [markdown]
# One threshold for all takes the records that are easiest for the target. Calibration takes those whose loss under this target is furthest below
# that under a model that never saw them. Only a record that is hard for the latter can fall far: rings stand at the right.
#
# ## The method
#
# ```{admonition} The paper's scores
# :class: paper
# For a model $h$ with cross-entropy $\ell$, higher meaning member,
#
# $$
# \begin{aligned}
# s_{\mathrm{loss}} &= -\ell(h(x), y), \\
# s_{\mathrm{GN}} &= -\lVert\nabla_\theta \ell(h(x), y)\rVert_2, \\
# s_{\mathrm{conf}} &= -\min_{y'} \ell(h(x), y') = \max_i \log h(x)_i .
# \end{aligned}
# $$ (calibration-scores)
#
# The calibrated score of any of them subtracts its mean over models that the training algorithm $\mathcal A$ makes of the attacker's
# records $\mathcal D_{\mathrm{shadow}}$, without the record,
#
# $$
# s^{\mathrm{cal}}(h, z) = s(h, z) - \mathbb E_{g \leftarrow \mathcal A(\mathcal D_{\mathrm{shadow}})}\big[s(g, z)\big].
# $$ (calibration-score)
# ```
#
# The mean is taken over one model, or a few. There are two ways to get one:
#
# - **From scratch** (*Cal.*): the target's recipe on public records, stopped early.
# - **Forgetting** (*Cal.-F*): go on training *the target itself* on public records, though it has seen the record. Records whose loss
#   rises were remembered. In the cell above
#   that would be one more argument of `training.train`, `start=(target, [0])`, with a recipe of fewer epochs.
#
# The whole attack is a line, and this is the very code that runs:

# %% tags=["hide-input"]
results.show_source(calibration.calibrate)

# %% [markdown]
# ### Is it the optimal attack?
#
# *An example first.* A reference model may have loss $0$ or $2$ on a record, each with probability one half. The calibrated loss of a
# target with loss $0$ is $1 - 0 = 1$. In the [chapter before](bayes.ipynb) the evidence for membership was
# $-\log\frac{1 + e^{-2}}{2} = 0.57$. The mean says more than is true. In general:
#
# ````{prf:theorem} Calibration is an upper bound of the optimal score
# :label: calibration-theorem
# Let models be drawn from $p(h; \mathcal D) \propto e^{-\sum_{z \in \mathcal D} \ell(h, z)}$, and let the attacker know $\mathcal D$
# and ask whether $z$ was added. The log-likelihood ratio is
#
# $$
# -\ell(h, z) - \log \mathbb E_{g \sim p(\cdot; \mathcal D)}\big[e^{-\ell(g, z)}\big] \;\le\;
# -\ell(h, z) + \mathbb E_g[\ell(g, z)] = s^{\mathrm{cal}}_{\mathrm{loss}} .
# $$
# ````
#
# *Why.* In the ratio of the two densities at $h$ the numerator has an extra $e^{-\ell(h, z)}$; the normalising integrals differ by
# the factor $\mathbb E_g[e^{-\ell(g, z)}]$. The inequality is Jensen's.
#
# The paper calls its attack an approximation to an optimal white-box attack, and in its derivation says that thresholding
# $s^{\mathrm{cal}}$ *is* optimal. The optimum takes a {term}`soft minimum`, not a mean. The two agree when the losses of $g$ vary little,
# or when there is only one $g$. For gradient norms and confidence nothing is proved: there calibration is a good idea, not a theorem.
#
# (calibration-softmax-part)=
# ## Softmax, twice
#
# The paper's text and its released code train different networks on tables. In the code the network ends in a softmax *and* is trained
# with a loss that applies another. This is what the second one does:

# %% tags=["hide-input"]
plotting.show(
    exhibits.softmax_twice(), name="calibration-softmax",
    caption="Loss of a record of two classes against the difference of its logits, with one softmax and with two. With two, the loss lies "
            "between $\\log(1 + 1/e)$ and $\\log(1 + e)$, and is flat at both ends: a record that is wrong for sure pulls no harder "
            "than one that is right for sure.",
    alt="Two curves of loss against the logit of the true class less the other's. With one softmax the loss grows without bound to the left and "
        "falls to zero to the right. With two it runs from one flat level to another.")

# %% [markdown]
# The text has one softmax layer; that the loss applies another shows in the code alone. Rows named *softmax twice* are the released
# network, the others the plain cross-entropy. With the second softmax no loss is huge, which matters for a score that subtracts losses.
#
# ## The paper's Table 2: AUC

# %% tags=["hide-input"]
results.show_table(
    exhibits.table_of(plays, games, "auc", "table2"), name="calibration-table-2",
    caption="**Table 2 of the paper**: AUC, ours with {ours}`intervals` over plays and records, the paper's behind the slash. Orig: not calibrated. "
            "Cal.: one reference from scratch. Cal.-F: forgetting. What *softmax twice* is: {numref}`calibration-softmax`. FashionMNIST, where it is run, stands beside the "
            "paper's MNIST. Rows of the paper that were not run are in {ref}`depth <calibration-not-run>`.")

# %% [markdown]
# Compare within a row first: what calibration adds. Then compare rows: how near each network comes to the printed numbers. Where a
# model has changed its mind about a label, that gives the member away; confidence does not see the label, so it cannot see that.
#
# ## Whom can the attack name?
#
# The paper's second message. An auditor who names members must not name others. So start with the best score, call one record after the
# other a member, and count.

# %% tags=["hide-input"]
plotting.show(
    exhibits.top_figure(plays[images.name]), name="calibration-named",
    caption="Share of members among the records called members, against how many are called ({ours}`images-name`, the loss). Lines: means over "
            "plays; bands: from the lowest play to the highest; dashed: guessing. In the best-scored hundredth, one record at least, members are {ours}`tip-original` "
            "before calibration, {ours}`tip-scratch` after (Cal.), {ours}`tip-forgetting` by forgetting. Figure 1 of the paper shows it as two histograms; "
            "ours are {numref}`calibration-figure-1`.",
    alt="Three curves of the share of members among the records called, against the share of records that is called, on a logarithmic axis. In the "
        "best-scored hundredth they are at {ours}`tip-original:value`, {ours}`tip-scratch:value` and {ours}`tip-forgetting:value`.")

# %% tags=["hide-input"]
plotting.show(
    exhibits.curves(plays[images.name]), name="calibration-figure-2",
    caption="**Figure 2 of the paper**, on {ours}`images-name`, the loss: ROC on logarithmic axes and precision against recall, means "
            "over plays. Rings: the point of best accuracy, a mean over plays, too, so not quite on the curve. Dashed: chance.",
    alt="Left, three ROC curves on logarithmic axes with the chance line; right, precision against recall of the same scores. A ring beside each "
        "curve marks the threshold of best accuracy.")

# %% [markdown]
# The rings show where accuracy would put the threshold. Whoever must not accuse wrongly reads the left end of both panels instead. Rates
# there, as far as so many records have any, are in {numref}`calibration-low-rates`, with what chance gives.
#
# (calibration-which-reference)=
# ## Which reference?
#
# The subtraction takes difficulty out and puts the reference's noise in. Write a record's score as minus its difficulty $D$, with standard
# deviation $\sigma_D$ over records, plus noise of training with $\sigma_\varepsilon$, plus a gain $\Delta$ for members under the target. If
# all is normal, with $R$ references,
#
# $$
# \mathrm{AUC}_{\mathrm{orig}} = \Phi\Big(\frac{\Delta}{\sqrt{2(\sigma_D^2 + \sigma_\varepsilon^2)}}\Big), \qquad
# \mathrm{AUC}_{\mathrm{cal}} = \Phi\Big(\frac{\Delta}{\sqrt{2\sigma_\varepsilon^2(1 + 1/R)}}\Big).
# $$ (calibration-law)
#
# *An example.* Take $\Delta = 0.5$ and $R = 1$. Spread records with $\sigma_D = 1$ and quiet training with $\sigma_\varepsilon = 0.3$ give
# $0.63$ before and $0.80$ after. Exchange the two spreads, and the same $0.63$ becomes $0.60$. In this law, which is ours, calibration
# helps exactly when $\sigma_D^2 > \sigma_\varepsilon^2 / R$, as long as members gain at all ($\Delta > 0$). So the noise of the reference matters, and that depends on when it is stopped:

# %% tags=["hide-input"]
stopped = {name: study.stopping(one, lengths) for name, one in study.stoppable(games).items()}
law = exhibits.law_table(plays, games).iloc[0]
results.name({"law-says": law["law: change"], "law-measured": law["measured change"]}, "+.3f")
results.name({"to-the-end": exhibits.interval(plays, games, table.name, exhibits.UNSTOPPED, "auc"),
              "stopped": exhibits.interval(plays, games, table.name, ("loss", "scratch"), "auc")})
results.name({"by-hand": exhibits.stopped_by_hand(stopped[table.name]), "printed-cal": exhibits.printed_of(table, "Loss Cal.")})
results.name({"best-epoch": f"{np.median(plays[table.name].epoch):g}", "last-epoch": table.models.config.epochs})
plotting.explore(
    exhibits.stopping_chart(stopped, plays),
    exhibits.stopping_figure(stopped, plays, {name: games[name].covers for name in stopped}), name="calibration-stopping",
    instructions="Move the slider through the epochs after which the reference is stopped, and watch both histograms: where do members and non-members part? "
                 "Compare with the reference that is stopped where it classifies other public records best.",
    caption="AUC of the calibrated loss against the number of epochs its one reference was trained for, for the "
            "first two tables that were run. All plays; in print with 95 % intervals over them. Each point is the training of Cal. in "
            "{numref}`calibration-table-2`, ended early. Dash-dotted: each play's reference stopped where it validates best. "
            "Dotted: not calibrated. In the chart, also the calibrated scores of members and non-members at that epoch.",
    alt="AUC of the calibrated loss against epochs of the reference on a logarithmic axis, with a horizontal line for the reference stopped where it "
        "validates best ({ours}`stopped:value` on {ours}`first-table`) and one for the loss as it is.")

# %% [markdown]
# Here text and released code part again, and every number called Cal. hangs on it. The text stops a reference at its best validation
# accuracy. The code never stops: each epoch overwrites the checkpoint, and the last one is used. On {ours}`first-table` the median best epoch is
# {ours}`best-epoch` of {ours}`last-epoch`. One reference trained to the end gives {ours}`to-the-end`, one stopped {ours}`stopped`; {ours}`printed-cal`.
# {says}`A1` (One trained to the end has another seed than those of
# {numref}`calibration-stopping`.) {ours}`by-hand`
#
# A model trained far beyond its best epoch can be sure of itself everywhere, and off its own records wrongly so. Its loss on a record it has never
# seen is partly chance. We read that as $\sigma_\varepsilon$, which is measured here for references trained to the end, and not for stopped ones. Of one reference trained to the end, the law expects the AUC of {ours}`first-table` to change by
# {ours}`law-says`; it changes by {ours}`law-measured`. {ref}`Depth <calibration-law-part>` has all data sets.
#
# ## When members are rare: the paper's Figure 4
#
# In the game members and others are equally many. In life most records were never in the training set. With a share
# $\pi$ of members,
#
# $$
# \begin{aligned}
# \mathrm{accuracy} &= \pi\,\mathrm{TPR} + (1 - \pi)(1 - \mathrm{FPR}), \\
# \mathrm{precision} &= \frac{\pi\,\mathrm{TPR}}{\pi\,\mathrm{TPR} + (1 - \pi)\,\mathrm{FPR}} .
# \end{aligned}
# $$ (calibration-precision)
#
# The ROC does not depend on $\pi$; what it is worth does.

# %% tags=["hide-input"]
plotting.show(
    exhibits.ratio_figure(plays[images.name], ratios, images.covers), name="calibration-figure-4",
    caption="**Figure 4 of the paper**, on {ours}`images-name`: accuracy against the ratio of members, with the threshold rehearsed at one to one "
            "and with the best threshold for the records judged; and precision against recall at each ratio (solid: Cal., dashed: Orig).",
    alt="Left, accuracy against the number of non-members to a member, for two thresholds before and after calibration, with the line of calling nobody "
        "a member. Right, curves of precision against recall, two for each ratio.")

# %% [markdown]
# The paper reads the rise of accuracy as *non-membership inference*. With the best threshold for each ratio it needs no inference: who
# calls nobody a member is right in a share $1 - \pi$ of cases, and the best threshold is never worse. Precision says what has happened.
#
# ## What held and what did not
#
# These sentences are chosen by the verdicts of this run; the numbers behind each are {ref}`below <calibration-claims>`.
# Where one ends with a number of parts, its claim was put as that many numbers, and so many of them hold.
#
# **Is calibration better?** {says}`C1` {says}`C2` {says}`C3` {says}`C7` {says}`C9` {says}`C4` {says}`C16`
#
# **Whom can it name?** {says}`C5` {says}`C6` {says}`C12` {says}`C12m` {says}`C12a`
#
# **What does it depend on?** {says}`C8` {says}`C10` {says}`A2` {says}`C11` {says}`C11c`
#
# **More references, more data, less privacy.** {says}`C13` {says}`C13s` {says}`C14` {says}`C15`

# %% [markdown]
# ## Exercises
#
# ````{exercise} How many references?
# :label: calibration-exercise-references
# In {eq}`calibration-law`, by what factor does the separation grow from one reference to infinitely many? Which share of the limit do one and five
# references reach? When does the *first* reference make the attack worse?
# ````
#
# ````{solution} calibration-exercise-references
# :class: dropdown
# The separation is $\Delta / \sqrt{2\sigma_\varepsilon^2(1 + 1/R)}$: from $R = 1$ to $\infty$ it grows by $\sqrt 2 = 1.41$.
# One reference reaches $1/\sqrt 2 = 0.71$ of the limit, five $\sqrt{1/1.2} = 0.91$. The first one hurts when $\sigma_D < \sigma_\varepsilon$; compare the two
# spreads in {numref}`calibration-law-table`.
# ````
#
# ````{exercise} Rare members
# :label: calibration-exercise-rare
# An attack reaches $(\mathrm{TPR}, \mathrm{FPR}) = (0.9, 0.6)$ at the threshold that is best for accuracy, and $(0.05, 0.001)$ at a cautious
# one. Compute the precision of both when one record in two, in ten, in a hundred is a member. Which would you report to a regulator?
# ````
#
# ````{solution-start} calibration-exercise-rare
# :class: dropdown
# ````

# %%
results.say(results.markdown_table(pd.DataFrame([
    {"share of members": results.cell(share, "g"),
     "accurate": float(metrics.precision(0.9, 0.6, share)),
     "cautious": float(metrics.precision(0.05, 0.001, share))}
    for share in (0.5, 0.1, 0.01)])))

# %% [markdown]
# At one in a hundred, nearly all records that the accurate attack accuses were not members. The cautious one is right once in three, about
# the few records it names.
#
# ````{solution-end}
# ````
#
# ````{exercise} Mean or soft minimum?
# :label: calibration-exercise-softmin
# Replace the mean loss of the references by their soft minimum, $-\log \frac1R \sum_r e^{-\ell(g_r, z)}$, of {prf:ref}`calibration-theorem`
# and compare AUC and TPR at an FPR of $0.01$ with one and with all references. Why can it only lower scores? Which records does it lower?
# ````
#
# ````{solution-start} calibration-exercise-softmin
# :class: dropdown
# ````

# %%
def soft(name, references):
    played = plays[name]
    mean = study.calibrated(played.scores["loss", "original"],
                            -played.reference_loss[:, :references])
    pair = {"mean": mean, "soft minimum": study.softmin_scores(played, references)}
    row = {"data": name, "references": references}
    fine = metrics.resolves(played.members, 0.01)
    for kind, score in pair.items():
        row[f"AUC, {kind}"] = metrics.auc(score, played.members).mean()
        row[f"TPR at 1 %, {kind}"] = metrics.conformal_tpr_at_fpr(
            score, played.members, 0.01).mean() if fine else np.nan
    return row

results.say(results.markdown_table(pd.DataFrame([
    soft(name, references) for name, played in plays.items()
    for references in (1, played.reference_loss.shape[1])])))

# %% [markdown]
# The TPR is the rate that is fair to ties ({py:func}`~mia_lib.metrics.conformal_tpr_at_fpr`), by chance one in a hundred. With one reference
# both are the same. By Jensen's inequality the soft minimum is never above the mean. It follows the *best* reference: a
# record on which references disagree, whose mean is ruled by one huge loss, is demoted. In rows with *softmax twice*, whose losses are bounded,
# there are no such records.
#
# ````{solution-end}
# ````
#
# ````{exercise} Forget a little, forget a lot (a change of parameters)
# :label: calibration-exercise-forgetting
# Run `mia sweep calibration -p forgetting_epochs 1,5,20,50` and plot Cal.-F for German credit. What is the AUC without any further
# epoch? When is forgetting enough to replace a reference from scratch?
# ````
#
# ````{solution-start} calibration-exercise-forgetting
# :class: dropdown
# ````
#
# Here without the stopping, for five lengths:

# %%
further = [0, 1, 5, 20, 50]
results.say(results.markdown_table(pd.DataFrame([
    {"data": name,
     **{f"{count} epoch{'s' * (count != 1)}": value for count, value in
        zip(further, study.forgetting_curve(one, further).mean(1), strict=True)},
     "from scratch, stopped":
         study.per_target(plays[name], ("loss", "scratch"), "auc").mean()}
    for name, one in games.items() if not one.models.records.is_image])))

# %% [markdown]
# Without an epoch the copy is the target, all scores are zero and the AUC is one half. It can rise as members are
# forgotten, and fall again when the copy has learned its new records by heart. Forgetting is enough in a row where some length reaches the last
# column. Cal.-F elsewhere is stopped where it validates best, which these are not. Several copies are in {numref}`calibration-figure-5`.
#
# ````{solution-end}
# ````
#
# ````{exercise} Carry a threshold over
# :label: calibration-exercise-transfer
# The paper finds that the best threshold of a calibrated score lies just above zero. Compare accuracy at the rehearsed threshold and at zero,
# for the original and the calibrated loss. Why does zero mean something for one and nothing for the other?
# ````
#
# ````{solution-start} calibration-exercise-transfer
# :class: dropdown
# ````

# %%
results.say(results.markdown_table(pd.DataFrame([
    {"data": name} | {
        f"{study.VARIANTS[v]}, {word}":
            study.per_target(played, ("loss", v), metric).mean()
        for v in ("original", "scratch", "forgetting")
        for word, metric in (("rehearsed", "accuracy"), ("zero", "default_accuracy"))}
    for name, played in plays.items()])))

# %% [markdown]
# A calibrated score is zero where the target finds a record exactly as easy as the reference does, whatever the record. Minus a loss is
# never above zero, so that threshold calls nobody a member. Neither default nor rehearsal need win: a rehearsal is noisy and
# its models are models of smaller plays; zero ignores that a forgetful copy may be a better model than the target.
#
# ````{solution-end}
# ````
#
# ````{exercise} What can confidence not see?
# :label: calibration-exercise-confidence
# Take a non-member that is labelled 1 and looks like a 0 to every model. What are its loss, its confidence, and both calibrated? Take the
# same record as a member of the target that has been learned by heart.
# ````
#
# ````{solution} calibration-exercise-confidence
# :class: dropdown
# As a non-member: high loss under target and reference, so the calibrated loss is near zero; high confidence under both, calibrated near
# zero. As a member: the target now says 1 with confidence. Its loss has dropped from high to low, so the calibrated loss is large. Its
# confidence is *high as before*: it has changed its mind, not its certainty, and without the label that does not show. The records that
# give most away are those that confidence cannot see.
# ````

# %% [markdown]
# ## Quiz
#
# Choose an option and open it: it says why it is right, or what it mistakes.
#
# :::{quiz} calibration
# :::

# %% [markdown]
# ## In depth
#
# Everything else: the other exhibits of the paper in its order, controls, claims with their verdicts, and where text and code differ.
# Each part opens on its own.
#
# ### Figure 1: before and after

# %% tags=["hide-input"]
plotting.show(
    exhibits.histograms(plays[images.name]), name="calibration-figure-1",
    caption="**Figure 1 of the paper**, on {ours}`images-name`: the loss as a score before and after calibration, all plays together. Dotted: "
            "the threshold from a rehearsal on public records (median over plays).",
    alt="Two histograms of members and non-members: minus the loss, and the same less the reference's, each with a dotted threshold.")

# %% [markdown]
# Before, the best scores belong to the records that are easiest for the target, of either kind. After, a record that the reference finds as
# easy as the target does is at zero, whichever kind it is.
#
# ### Table 1: the targets

# %% tags=["hide-input"]
results.show_table(
    exhibits.table_one(plays, games), name="calibration-table-1",
    caption="**Table 1 of the paper**: accuracy of the targets on members (train) and non-members (test), ours with {ours}`intervals` "
            "over plays, the paper's behind the slash; and, of ours, accuracy on all private records, half of which are members: of the "
            "target, of the reference from scratch, and of the copy after forgetting, which shows what forgetting costs it.")

# %% [markdown]
# A second softmax leaves small gradients where a network is wrong for sure, so it need not fit its members as closely. The paper prints one row a
# data set. Its CIFAR rows are the augmented targets: $\tfrac12(1 + .946 - .740) = .603$ is the gap attack of the augmented row.
#
# (calibration-not-run)=
# ### Tables 1 and 2: the paper's rows that were not run

# %% tags=["hide-input"]
results.show_table(
    exhibits.table_one(plays, games, run=False), name="calibration-table-1-rest",
    caption="**Table 1 of the paper**: what it prints for data that this run does not have.")
results.show_table(
    exhibits.table_of(plays, games, "auc", "table2", run=False), name="calibration-table-2-rest",
    caption="**Table 2 of the paper**, AUC: what it prints for data that this run does not have.")

# %% [markdown]
# The captions of the paper's Tables 2 and 3 say *consistently improves* and *on par or better in almost all settings*. By their own cells (Cal. against
# Orig) 22 of 27 AUCs rise; accuracy rises in 13, stays in 2 and falls in 12.
#
# ### Table 3: accuracy, and what a threshold is worth
#
# Accuracy needs a threshold, and the attacker has no labelled members to choose it on. The paper: halve the public records, call
# one half members, and choose there. We **rehearse**: the attacker plays the whole game once more within the public half, at half
# the size, with a target, a reference and a forgetful copy of their own, and carries over the threshold that is best there. The
# records judged have no say in it.

# %% tags=["hide-input"]
results.show_table(
    exhibits.table_of(plays, games, "accuracy", "table3"), name="calibration-table-3",
    caption="**Table 3 of the paper**: balanced accuracy at the rehearsed threshold, ours with {ours}`intervals` over plays and records, the "
            "paper's behind the slash. For the gap attack, which has no threshold, it equals the AUC.")
results.show_table(
    exhibits.table_of(plays, games, "accuracy", "table3", run=False), name="calibration-table-3-rest",
    caption="**Table 3 of the paper**: what it prints for data that this run does not have.")

# %% [markdown]
# In the paper the gap attack's AUC and accuracy differ on the small sets: {printed}`table2 | German Credit | Gap` and
# {printed}`table3 | German Credit | Gap` for German credit. On one balanced set they must be equal; its Table 1 supports the accuracy.
#
# How much of an accuracy is the threshold?

# %% tags=["hide-input"]
at_thresholds = exhibits.thresholds(plays, games)
nearer, cells = exhibits.nearer_to_peaks(at_thresholds, exhibits.as_in_the_paper(games))
results.name({"nearer-peak": nearer, "threshold-cells": cells})
results.show_table(
    at_thresholds, name="calibration-thresholds",
    caption="Balanced accuracy of the attacks of the paper's Table 3 at three thresholds: rehearsed on public records; zero, the default that the paper "
            "suggests for calibrated scores; and the best one for the very records judged (its peak), beside what the paper "
            "prints. With {ours}`intervals` over plays and records; a peak has none.")

# %% [markdown]
# A peak is {ref}`flattered by small samples <peak-accuracy>`. On the paper's own data and, where it is run, with its released network, our peak
# reaches {ours}`threshold-cells` of the printed numbers; of these, nearer to it than to our rehearsal: {ours}`nearer-peak`. The text says that thresholds come from the public half, not which model plays
# the target there. So a cell does not tell which rule was used. A rehearsal on few records is noisy, and its models are trained on half as
# many.
#
# ### Figure 2 in numbers: few false alarms

# %% tags=["hide-input"]
results.show_table(
    exhibits.low_rates(plays, games), name="calibration-low-rates",
    caption="True positive rate at 1 % and 0.1 % false positives, in percent, with {ours}`intervals` over plays and records. *Chance*: what "
            "{ref}`scores that know nothing and do not tie have on average <chance-tpr>`. *Below resolution*: a target has too few non-members for that "
            "rate. The paper prints none of these.")

# %% [markdown]
# Chance is above the rate itself where non-members are few. Where many non-members share the best score, no threshold stays below the rate, and
# the TPR is below chance: with softmax twice, losses of records that are learned by heart tie at the least loss there is. The verdict on C5 takes a rate that is fair to both
# ({py:func}`~mia_lib.metrics.conformal_tpr_at_fpr`).
#
# ### Table 4: labels alone
#
# An attacker who sees nothing but predicted labels can still ask how far a record is from the decision boundary:
# members are pushed away from it. HopSkipJump {cite}`chen2020hopskipjump` finds that distance by asking for labels of points
# nearby, here {param}`queries` at most for each record and model; the score was proposed by {cite:t}`choquette2021label`. Records that are classified
# wrongly have distance 0 and, in the calibrated score, minus the distance back to their label.

# %%
label_only = {name: study.label_only(one, queries, label_only_games)
              for name, one in games.items() if not one.models.records.is_image}

# %% tags=["hide-input"]
results.show_table(
    exhibits.table_four(label_only, games), name="calibration-table-4",
    caption="**Table 4 of the paper**: the label-only attack, ours with 95 % intervals over plays and records (three plays or more), the paper's behind the slash, and "
            "the queries we spent on a record and model. Our HopSkipJump works on all records at once and agrees with "
            "that of the Adversarial Robustness Toolbox on the same points. On images a query costs far more; they are left out.")
results.show_table(
    exhibits.table_four(label_only, games, run=False), name="calibration-table-4-rest",
    caption="**Table 4 of the paper**: what it prints for data that this run does not have.")

# %% [markdown]
# (calibration-label-only-reading)=
# What should be subtracted for records that one of the two models gets wrong is not obvious; four readings, on the same distances:

# %%
readings = exhibits.readings(label_only, games)

# %% tags=["hide-input"]
results.show_table(
    readings, name="calibration-readings",
    caption="AUC of label-only scores calibrated in four ways: distances of wrongly classified records negative "
            "(as in {numref}`calibration-table-4`), zero, the released code's slip (where the reference is wrong, the target's own distance is "
            "subtracted), and ranks in the place of distances. 95 % intervals over plays and records (three plays or more).")

# %% [markdown]
# A distance depends on how steep a network is at that record as much as on its loss, and two networks may have different scales. Ranks have none.
#
# ### Figure 3: size of the training set

# %%
size_games = {int(one.members[0, 0].sum()): one
              for one in [*(games_on_images(4 * n) for n in sizes), images]}
by_size = {n: study.play(one) for n, one in size_games.items()}
size_rows = exhibits.sizes_frame(by_size, size_games)

# %% tags=["hide-input"]
plotting.show(
    exhibits.sizes_figure(size_rows), name="calibration-figure-3",
    caption="**Figure 3 of the paper**, on {ours}`images-name`: AUC and accuracy of the loss against the number of training records, "
            "with 95 % intervals over plays and records where there are three plays or more. The paper's curves, for CIFAR-10, rise towards small sets; it prints no numbers.",
    alt="Two panels, AUC and accuracy, against the number of training records, for the gap attack, the loss, and the loss calibrated in both ways.")

# %% [markdown]
# Forgetting is given the same number of epochs at every size, which for small sets is few steps. The same holds for targets and references.
#
# ### Figure 5: more references, more shadow data

# %%
more = study.more_forgetting(ablated, copies, shadow_shares)

# %% tags=["hide-input"]
plotting.show(
    exhibits.more_figure(exhibits.more_frame(more, shadow_shares, ablated.covers)), name="calibration-figure-5",
    caption="**Figure 5 of the paper**, on {ours}`ablated`: the loss calibrated with several forgetful copies of the target, for the "
            "sizes of the set they forget on. Accuracy has the threshold that is best in the other splits, which no attacker has. From one copy to ten "
            "the paper's curves, for CIFAR-10, rise by up to {printed}`text | CIFAR-10 | auc_gain` of AUC.",
    alt="Two panels, AUC and accuracy against the number of copies, a line a size of shadow set.")

# %% [markdown]
# The paper calls this attack *calibrated*; its references are forgetful copies. `-p ablations images` runs this part and the next on images.
#
# ### Figure 6: differential privacy
#
# DP-SGD {cite}`abadi2016deep` clips the gradient of each record and adds noise, so that no record can matter much. We train targets and
# references with Opacus: clipping at norm 1, $\delta = 1/n$, the noise found from the $\epsilon$ asked for by its accountant.
#
# **This Cal. is another attack than above.** Under DP-SGD, and in its row without privacy, a reference is trained to the end like the target; it is
# not stopped. So compare Cal. with Orig within this part, not with {numref}`calibration-table-2`.

# %%
private_config = replace(ablated.models.config, epochs=private_epochs,
                         batch_size=private_batch_size, loss="cross_entropy",
                         seed=seed + 9)
lacking = dp.lacking()
private_models = None if lacking else study.private_training(
    ablated, epsilons, private_config, private_games)

# %% tags=["hide-input"]
near, left = "no ε near 1 was run", ""
if private_models is None:
    results.say(f"*Not run: {lacking}.*")
else:
    if exhibits.near_one(epsilons):
        left = ", or something is left near 1"
        at_least = private_models.scores["scratch"][int(np.argmin(epsilons))]
        near = f"at ε = {min(epsilons):g} Cal. has an AUC of {metrics.auc(at_least, private_models.members).mean():.3f}"
    results.show_table(
        exhibits.private_table(private_models, epsilons, ablated), name="calibration-private-table",
        caption="{ours}`ablated-data` under DP-SGD, trained with the plain cross-entropy: the ε asked for, spent by the accountant's count, and the noise it "
                "takes; accuracy of the targets; AUC of the loss, with 95 % intervals over plays and records (three plays or more).")
    plotting.show(
        exhibits.private_figure(private_models, epsilons, ablated), name="calibration-figure-6",
        caption="**Figure 6 of the paper**, in numbers, on {ours}`ablated-data` with the plain cross-entropy: AUC of the loss and, where non-members resolve "
                "it, its TPR at an FPR of one in a hundred (the rate that is fair to ties), against the ε asked for, with 95 % intervals where there are three plays or more. Dashed: chance. Cal. has one reference that was trained to the "
                "end in the same private way. The paper draws ROC and precision against recall.",
        alt="AUC, and the true positive rate at few false positives, against epsilon, with training without privacy last, for the loss calibrated and not.")
results.name({"near-one": near, "near-left": left})

# %% [markdown]
# (calibration-law-part)=
# ### The law against measurements

# %% tags=["hide-input"]
results.show_table(
    exhibits.reference_table(plays, games), name="calibration-references",
    caption="AUC of the loss calibrated with different references: trained to the end like the target, one or all there are (their "
            "number in parentheses); one trained to the end on all public records, twice as many; and one kept at its best validation accuracy, "
            "reached at the epoch in the last column (median). With {ours}`intervals` over plays and records; of the one on all public records, which is trained for "
            "tables alone, over plays.")
results.show_table(
    exhibits.law_table(plays, games), name="calibration-law-table",
    caption="The ingredients of {eq}`calibration-law`, measured (nats): spread of difficulty over records, noise over references trained to the end, "
            "gain of members. And the change of AUC by one such reference: what the law says, and what was measured, with {ours}`intervals`.")
plotting.show(
    exhibits.law_figure(plays), name="calibration-law-figure",
    caption="AUC of the loss against the number of references trained to the end: measured, the law {eq}`calibration-law` with "
            "spreads measured on the same losses, and, where there are more than two references, its one-parameter fit. Dotted: not calibrated. Dash-dotted: one stopped reference.",
    alt="A panel for each data set: AUC against the number of references, as measured, by the law and, with more than two, by its fit.")

# %% [markdown]
# A stopped reference also sees the other half of the public records, if only to know when to stop. Two assumptions of the law fail. References drawn from one
# public half share half of their records, and so some of their noise. And losses are far from normal: they are bounded below, and
# with one softmax not above. The two columns of changes say how far the law is from the measured change.
#
# ### Calibration among its relatives
#
# Calibration, {term}`MAST` and LiRA all compare a signal with what is typical for the record. With references that never saw the record and the loss as
# signal, the form of MAST with the mean of OUT references *is* the calibrated loss (its form with the soft minimum is the optimal score above).
# Offline LiRA with one variance for all records puts records in the same order. What they add comes with more references: a variance for each
# record, references *with* the record, or the soft minimum.

# %%
same = pd.DataFrame([{"data": name, **study.coincidences(played)}
                     for name, played in plays.items()])

# %% tags=["hide-input"]
results.show_table(
    same, name="calibration-coincidences", formats={"MAST, mean out": ".1e", "LiRA offline, fixed variance": ".1e"},
    caption="How far calibration is from its relatives on the records of this chapter: largest difference of scores from MAST (nats), "
            "and of ranks from offline LiRA, as a share of the records (ties of rounding).")

# %% [markdown]
# (calibration-claims)=
# ### Every claim, with its verdict
#
# Each claim is put as one or more numbers, its parts, that the paper says are above zero. The verdict is computed from their intervals
# ([how](../book/statistics.md)); those in the table are not widened for their number.

# %%
verdicts = [
    *exhibits.judge_tables(plays, games),
    exhibits.judge_label_only(label_only, games),
    *exhibits.judge_sizes(by_size, size_games),
    *exhibits.judge_ratio(plays[images.name], images.covers),
    *exhibits.judge_more(more, shadow_shares, ablated.covers),
    exhibits.judge_private(private_models, epsilons, ablated, lacking),
    claims.judge("calibration", "C15", None,
                 "the paper gives neither number nor criterion"),
]

# %% tags=["hide-input"]
used = {name: one.models.records.name for name, one in games.items()}
claims.show("calibration", verdicts, {
    "Table 2, largest gains": [data for data in used.values() if data in ("german_credit", "cifar10")],
    **dict.fromkeys(["Table 2", "Table 3", "Tables 2 and 3", "Section 4.1", "Figure 2"], used.values()),
    "Table 4": [used[name] for name in label_only], "Section 4.3": used[ablated.name], **dict.fromkeys(["Figure 3", "Figure 4"], image_dataset),
    **dict.fromkeys(["Figure 5", "Figure 6"], used[ablated.name])})

# %% [markdown]
# ### Where text and released code differ
#
# Two differences bear on the loss and are in the main line: the second softmax, and references that are never stopped. Others, measured:

# %% tags=["hide-input"]
results.show_table(
    exhibits.code_differences(plays, games, images.name), name="calibration-differences",
    caption="AUC of gradient scores by two norms, of what the released code computes, and of dropout. Its infinity norm is no norm and no difference of scores: it is the largest entry, sign "
            "kept, of the target's gradient less the reference's, and there is none without calibration. Losses may be computed with the network in "
            "training mode. With {ours}`intervals` over plays.")

# %% [markdown]
# - **Validation**: the text speaks of validation accuracy without naming the records. The code measures it on the test split and does not act on
#   it. We stop on public records that the reference was not trained on.
# - **Several references** are joined by the sum of differences, which ranks as the mean does, for the loss; for
#   confidence and distance the released code keeps only the last reference.
# - **Confidence**: text and code take the largest probability, whatever the label. The paper prints $\max_{y'}$ where
#   {eq}`calibration-scores` has $\min_{y'}$; its right-hand side is the one meant.
# - **Forgetting** has no formula in the paper; it is {eq}`calibration-score` with the forgetful copy as $g$. The code reloads the optimiser's
#   momentum with the weights; ours starts from none, and keeps the copy's best validated epoch.
#
# ### Where this run differs from the paper
#
# | exhibit | the paper | this run | to close the gap |
# | --- | --- | --- | --- |
# | Credit | 200 members, 5 repeats, epochs and batch not given | tables run: {param}`tables` | `-p tables german_credit_mlp_double_softmax` is its released network, where it is not among these |
# | Hepatitis, Adult | 31 and 8,140 members | tables run: {param}`tables` | `--preset cpu` has both |
# | MNIST | 15,000 members, 500 hidden units, 50 to 200 epochs | {param}`image_dataset:title`, {ours}`image-members` members, {param}`image_architecture`, {param}`image_epochs` epochs | `--preset mnist` has the first two; `-p image_epochs 50` |
# | CIFAR-10, CIFAR-100 | 12,500 members, a first rate of 0.1, with and without augmentation | images run: {param}`image_dataset:title`, {ours}`image-members` members, {param}`image_epochs` epochs, a first rate of {param}`image_learning_rate`, augmentation {param}`image_augmentations` | `--preset cifar10` has the first without augmentation; `--preset paper`, and a graphics card, has it with, and with `-p image_dataset cifar100` the other |
# | ImageNet | 320,292 members, ResNet-18 | not run | ImageNet and weeks of a graphics card |
# | Figures 1 to 4 | CIFAR-10, 12,500 members | {ours}`images-name`, {ours}`image-members` members | `--preset cifar10` has these |
# | Figure 5 | CIFAR-10, ten copies | {ours}`ablated`, {param}`copies` copies | `--preset cifar10 -p ablations images` |
# | Figure 6 | CIFAR-10, four epsilons, the least about one | {ours}`ablated-data`, one softmax; epsilon {param}`epsilons` | `--preset cifar10 -p ablations images` |
# | games | 5, on ImageNet 3 | {ours}`plays` on {ours}`first-table`, {param}`image_games` on images | `-p image_games 5`, where it is fewer |
#
# The paper's numbers of members are those of its released code; the text says only how records are shared out.
#
# Intervals cover the splits, and so the choice of members, references and seeds; those over plays and records also which records are
# judged. Where two plays stand there is none. All splits of a table are of one pool.
#
# ### What this run trains

# %% tags=["hide-input"]
results.show_table(plan, name="calibration-plan", caption="The larger part of what this run trains; models found in the store, or recorded in the "
                                                          "repository, are not trained again.")
