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
# **A low loss is a sign of membership or of an easy record. Subtract what a model that never saw the record gives it, and
# difficulty drops out: with hardly a false alarm the attack finds a few members, where the plain loss does little better than guess.**
#
# Lauren Watson, Chuan Guo, Graham Cormode and Alexandre Sablayrolles, *On the Importance of Difficulty Calibration in
# Membership Inference Attacks* {cite}`watson2022importance`.
#
# ```{admonition} Run this chapter again
# :class: tip
# `mia run calibration` takes two to three minutes on two CPU cores and about 2 GB of memory; the second time, seconds.
# Change anything: `mia run calibration -p image_epochs 60 -p queries 5000`. All parameters: `mia params calibration`.
# [How to rerun](../book/rerun.md) has the rest.
# ```
#
# The [chapter before](bayes.ipynb) ended at a score for each record that no threshold for all can replace. This paper takes the
# cheapest step there: one {term}`reference model`, one subtraction, for whatever {term}`score` the attacker has. Its
# second message is about judging: an attack that is right on average is not the one that can name a member.
#
# Numbers of tables and figures are this book's; *Table 1 of the paper* is always called that.

# %%
from dataclasses import replace

import pandas as pd

from mia_lib import attacks, claims, data, metrics, plotting, results, training
from mia_lib.attacks import baselines, calibration
from mia_lib.papers.calibration import exhibits, study
from mia_lib.training import private as dp

plotting.set_style()

# %% [markdown]
# ## What the attacker has
#
# The [membership game](../book/game.md), played on a *private* half of the records: a target is trained on half of it and
# judged on all of it. The *public* half is the attacker's, who knows that it comes from the same distribution and
# trains references there: none of them ever saw a record under attack.

# %% tags=["hide-input"]
results.show_table(
    attacks.threat_model({"Gap": baselines.gap, "Calibrated loss": calibration.calibrate}),
    name="calibration-threat-model",
    caption="What the attacks need, as declared by the functions that run them. What calibration needs of the target is what "
            "the score needs: the loss; the parameters for gradient norms; the output vector without the label for confidence; "
            "predicted labels and many queries for the distance to the boundary. Forgetting needs the parameters, to go on "
            "training from them.")

# %% [markdown]
# ## Parameters
#
# Square brackets say what is allowed. The `quick` values below take German credit at the paper's own size and put a sample of
# FashionMNIST in the place of MNIST. `mia params calibration` lists them with their meaning.

# %% tags=["parameters"]
tables: list[str] = ["german_credit_mlp_double_softmax", "german_credit_mlp"]  # shared ensembles on tables [german_credit_mlp | german_credit_mlp_double_softmax | hepatitis_mlp | hepatitis_mlp_double_softmax | adult_mlp | adult_mlp_double_softmax; not empty]
image_dataset: str = "fashion_mnist_20k"  # images for the other rows (see `mia data ls`) [data set]
image_records: int = 2400  # records of a game on images; a quarter of them trains the target [16..60000]
image_games: int = 5  # games on images [2..20]
image_architecture: str = "leino_cnn:8,16,128"  # of the networks on images [architecture]
image_epochs: int = 30  # of targets and references on images [1..500]
image_learning_rate: float = 0.1  # of the first epoch, on images [1e-6..1.0]
image_augmentations: list[str] = ["none"]  # recipes of the targets on images, "none" first; with "flip_crop:4" a second row [augmentation; not empty]
views: int = 10  # times a record is augmented when a target trained with augmentation is attacked [1..50]
sizes: list[int] = [150, 300]  # training sets of Figure 3 besides that of the tables [8..]
forgetting_epochs: int = 20  # further epochs of forgetting, on tables [0..500]
forgetting_learning_rate: float = 0.1  # of them [1e-6..1.0]
image_forgetting_epochs: int = 10  # the same on images [0..500]
image_forgetting_learning_rate: float = 0.02  # of them [1e-6..1.0]
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

# %%
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
plan = study.plan(games, sizes, image_games, queries=queries, epsilons=epsilons,
                  shadow_shares=shadow_shares, copies=copies)

# %% tags=["hide-input"]
results.show_table(plan, name="calibration-plan", caption="The larger part of what this run trains; models found in the store, or recorded in the "
                                                          "repository, are not trained again.")

# %% [markdown]
# ## The idea
#
# Train one more model on other records of the same kind, and look at every record twice. Below, each dot is a record: its
# loss under the target, and under a reference that never saw it.

# %%
plays = {name: study.play(one) for name, one in games.items()}

# %% tags=["hide-input"]
plotting.show(
    exhibits.idea(plays[images.name]), name="calibration-idea",
    caption=f"Loss under the target against loss under a reference, {images.name}; records that are easy for the reference "
            "(below 0.01) are left out, and small losses under the target stand on the lower edge. Dashed: one threshold for all. "
            "Solid: as hard as for the reference. Dotted: one nat less, a threshold of the calibrated score; to its right "
            "members prevail.",
    alt="Scatter on logarithmic axes. To the right, where the reference finds records hard, members lie below the diagonal and "
        "non-members around it and above. A horizontal dashed line cuts both kinds alike. A dotted curve runs below the "
        "diagonal where losses are large and falls off steeply at one nat.")

# %% [markdown]
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
# The calibrated score of any of them subtracts its mean over models trained without the record,
#
# $$
# s^{\mathrm{cal}}(h, z) = s(h, z) - \mathbb E_{g \leftarrow \mathcal A(\mathcal D_{\mathrm{shadow}})}\big[s(g, z)\big].
# $$ (calibration-score)
# ```
#
# (The paper prints $\max_{y'}$ where {eq}`calibration-scores` has $\min_{y'}$; its right-hand side is the one meant.)
#
# The mean is taken over one model, or a few. Two ways to get one:
#
# - **From scratch** (*Cal.*): the target's recipe on public records. The paper stops the reference at its best accuracy on
#   held-out public records. That is more than a detail, {ref}`as we shall see <calibration-which-reference>`.
# - **Forgetting** (*Cal.-F*): go on training *the target itself* on public records for a few epochs; of these, too, we keep the
#   best validated one. Records whose loss rises were remembered. There is no formula for it in the paper; it is
#   {eq}`calibration-score` with that *forgetful copy* as $g$.
#
# *Orig* is the score as it is; the *gap* attack calls a record a member when it is classified correctly.
#
# The whole attack is a line, and this is the very code that runs:

# %% tags=["hide-input"]
results.show_source(calibration.calibrate)

# %% [markdown]
# ### Is it the optimal attack?
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
# The paper says that thresholding $s^{\mathrm{cal}}$ *is* optimal. The optimum takes a {term}`soft minimum`, not a mean: that is
# {term}`MAST`, and the two agree when the losses of $g$ vary little, or when there is only one $g$. For gradient norms and confidence
# nothing of the kind is proved anywhere: there calibration is a good idea, not a theorem.
#
# ### When does it help?
#
# Write a record's score under any model as minus its difficulty $D$, with standard deviation $\sigma_D$ over records, plus
# noise of training with $\sigma_\varepsilon$, plus a gain $\Delta$ for members under the target. If all is normal, with $R$ references,
#
# $$
# \mathrm{AUC}_{\mathrm{orig}} = \Phi\Big(\frac{\Delta}{\sqrt{2(\sigma_D^2 + \sigma_\varepsilon^2)}}\Big), \qquad
# \mathrm{AUC}_{\mathrm{cal}} = \Phi\Big(\frac{\Delta}{\sqrt{2\sigma_\varepsilon^2(1 + 1/R)}}\Big).
# $$ (calibration-law)
#
# Subtracting a reference takes $\sigma_D$ out and puts $\sigma_\varepsilon / \sqrt R$ in. So calibration helps exactly when
# $\sigma_D^2 > \sigma_\varepsilon^2 / R$, and **one noisy reference can hurt**. (This law is ours; what the paper found is
# held against it {ref}`below <calibration-which-reference>`.)

# %% [markdown]
# ## The paper's Figure 1: before and after

# %% tags=["hide-input"]
plotting.show(
    exhibits.histograms(plays[images.name]), name="calibration-figure-1",
    caption=f"**Figure 1 of the paper**, on {images.name}: the score before and after calibration, all games together. Dotted: "
            "the threshold from a rehearsal on public records (median over games).",
    alt="Two histograms of members and non-members. Left, minus the loss: both kinds pile up at zero, one on the other. Right, "
        "calibrated: most records lie near zero, members outnumber others in the right tail, others in the left one.")

# %% [markdown]
# Before, no threshold isolates members: the best scores belong to easy records of either kind. After, easy records of both
# kinds meet at zero, and the right tail is made of records that are easier for this model than they should be.
#
# ## The paper's Table 1: the targets

# %% tags=["hide-input"]
results.show_table(
    exhibits.table_one(plays, games), name="calibration-table-1",
    caption="**Table 1 of the paper**: accuracy of the targets on members (train) and non-members (test), ours with 95 % intervals "
            "over plays, the paper's behind the slash; and, of ours, what the calibrating models score on the private records. "
            "*Softmax twice* is the released code's model; FashionMNIST stands in for MNIST.")

# %% [markdown]
# Two rows stand for the paper's Credit. The released network ends in a softmax *and* is trained with a loss that applies
# another. The loss of a two-class record then lies between 0.313 and 1.313, gradients are small, and the network overfits
# less. The paper's text does not mention it; its train accuracy is that of this network (on test records ours is .03 lower).
#
# ## The paper's Table 2: AUC

# %% tags=["hide-input"]
results.show_table(
    exhibits.table_of(plays, games, "auc", "table2"), name="calibration-table-2",
    caption="**Table 2 of the paper**: AUC, ours with 95 % intervals over plays and records, the paper's behind the slash. Orig: not calibrated. "
            "Cal.: one reference from scratch. Cal.-F: forgetting. FashionMNIST stands in for MNIST.")

# %% [markdown]
# The rows with softmax twice are the paper's, or close to them. Adult says so best: in the recorded run, folded in below the table, each of
# its nine cells is within .01 of the printed one, where the plain cross-entropy leaks about twice as much.
#
# Calibration from scratch lifts loss and gradient norm on every set that was run. Confidence gains least: what gives a member away
# is often that the model has changed its mind about the label, and confidence does not see the label.
#
# ## The paper's Table 3: accuracy
#
# Accuracy needs a threshold, and the attacker has no labelled members to choose it on. The paper: halve the public records, call
# one half members, and choose there. We **rehearse**: the attacker plays the whole game once more within the public half, at half
# the size, with a target, a reference and a forgetful copy of their own, and carries over the threshold that is best there. The
# records judged have no say in it.

# %% tags=["hide-input"]
results.show_table(
    exhibits.table_of(plays, games, "accuracy", "table3"), name="calibration-table-3",
    caption="**Table 3 of the paper**: balanced accuracy at the rehearsed threshold, ours with 95 % intervals over plays and records, the "
            "paper's behind the slash. For the gap attack, which has no threshold, it equals the AUC.")

# %% [markdown]
# (In the paper the gap attack's AUC and accuracy differ on the small sets, .549 and .589 for Credit. On one balanced set they must
# be equal; its Table 1 supports the accuracy.)
#
# On the paper's Credit calibrating the loss costs nothing (.617 and .618). Ours, softmax twice, loses three points. How much of it is
# the threshold?

# %% tags=["hide-input"]
results.show_table(
    exhibits.thresholds(plays, games), name="calibration-thresholds",
    caption="Balanced accuracy of the attacks of the paper's Table 3 at three thresholds: rehearsed on public records; zero, the default that the paper "
            "suggests for calibrated scores; and the best one for the very records judged (its peak), beside what the paper "
            "prints. 95 % intervals over plays and records; a peak has none.")

# %% [markdown]
# With the best threshold for the very records judged the loss from calibration shrinks to two points. That peak is
# {ref}`flattered by small samples <peak-accuracy>`, but most of the paper's Credit row lies nearer to it than to our rehearsals. The text
# says that thresholds come from the public half, not which model plays the target there. A rehearsal on 200 records is noisy, and
# its models are trained on half as many.
#
# ## The paper's Figure 2: whom can the attack name?

# %% tags=["hide-input"]
plotting.show(
    exhibits.curves(plays[images.name]), name="calibration-figure-2",
    caption=f"**Figure 2 of the paper**, on {images.name}, the loss: ROC on logarithmic axes and precision against recall, means "
            "over games. Rings: the point of best accuracy. Dashed: chance.",
    alt="Left, ROC: without calibration the curve stays at chance until high false positive rates; both calibrated curves rise "
        "above it, Cal. from the left edge. Right, precision against recall: Cal. starts high and falls, the original loss "
        "stays near one half. The rings lie at high false positive rates and high recall.")

# %% [markdown]
# The rings are the paper's second message. The threshold that is best for accuracy accuses a large share of all
# non-members. Whoever must not accuse wrongly reads the left end, where the plain loss is little better than guessing:

# %% tags=["hide-input"]
results.show_table(
    exhibits.low_rates(plays, games), name="calibration-low-rates",
    caption="True positive rate at 1 % and 0.1 % false positives, in percent, with 95 % intervals over plays and records. *Chance*: what "
            "{ref}`scores that know nothing have on average <chance-tpr>`. *Below resolution*: a target has too few non-members for that rate. The paper prints none of these.")

# %% [markdown]
# ## The paper's Table 4: labels alone
#
# An attacker who sees nothing but predicted labels can still ask how far a record is from the decision {term}`boundary <threshold>`:
# members are pushed away from it. HopSkipJump {cite}`chen2020hopskipjump` finds that distance by asking for labels of points
# nearby, a few thousand for each record; the score was proposed by {cite:t}`choquette2021label`. Records that are classified
# wrongly have distance 0 and, in the calibrated score, minus the distance back to their label.

# %%
label_only = {name: study.label_only(one, queries, label_only_games)
              for name, one in games.items() if not one.models.records.is_image}

# %% tags=["hide-input"]
results.show_table(
    exhibits.table_four(label_only, games), name="calibration-table-4",
    caption="**Table 4 of the paper**: the label-only attack, ours with 95 % intervals over plays and records, the paper's behind the slash, and "
            "the queries we spent on a record and model. Our HopSkipJump works on all records at once and agrees with "
            "that of the Adversarial Robustness Toolbox on the same points. On images a query costs some hundred times as much; they "
            "are left out.")

# %% [markdown]
# (calibration-label-only-reading)=
# Here calibration *loses*, where the paper's Credit gains most. What should be subtracted for records that one of the two models gets
# wrong is not obvious; four readings, on the same distances:

# %%
readings = exhibits.readings(label_only, games)

# %% tags=["hide-input"]
results.show_table(
    readings, name="calibration-readings",
    caption="AUC of label-only scores calibrated in four ways: distances of wrongly classified records negative "
            "(the table above), zero, the released code's slip (where the reference is wrong, the target's own distance is "
            "subtracted), and ranks in the place of distances. 95 % intervals over plays and records.")

# %% [markdown]
# None of them gains measurably. A distance is a noisy score: it depends on how steep a network is at that record as much as on its loss, and
# the two networks' scales differ (the stopped reference is the smoother one). Ranks, which have no scale, lose least.
#
# ## The paper's Figure 3: size of the training set

# %%
size_games = {int(one.members[0, 0].sum()): one
              for one in [*(games_on_images(4 * n) for n in sizes), images]}
by_size = {n: study.play(one) for n, one in size_games.items()}
size_rows = exhibits.sizes_frame(by_size, size_games)

# %% tags=["hide-input"]
plotting.show(
    exhibits.sizes_figure(size_rows), name="calibration-figure-3",
    caption=f"**Figure 3 of the paper**, on {images.name}: AUC and accuracy of the loss against the number of training records, "
            "with 95 % intervals. The paper's curves, for CIFAR-10, rise towards small sets; it prints no numbers.",
    alt="Two panels, AUC and accuracy, against training records. In AUC the loss calibrated from scratch lies highest; original loss and "
        "gap attack rise towards small sets.")

# %% [markdown]
# Intervals over five games are wide. Forgetting is given the same number of epochs at every size, which for small sets is few
# steps.

# %% [markdown]
# ## The paper's Figure 4: when members are rare
#
# In the game members and others are equally many. In life most records were never in the training set. With a share
# $\pi$ of members,
#
# $$
# \mathrm{accuracy} = \pi\,\mathrm{TPR} + (1 - \pi)(1 - \mathrm{FPR}), \qquad
# \mathrm{precision} = \frac{\pi\,\mathrm{TPR}}{\pi\,\mathrm{TPR} + (1 - \pi)\,\mathrm{FPR}} .
# $$ (calibration-precision)
#
# The ROC does not depend on $\pi$; what it is worth does.

# %% tags=["hide-input"]
plotting.show(
    exhibits.ratio_figure(plays[images.name], ratios, images.covers), name="calibration-figure-4",
    caption="**Figure 4 of the paper**: accuracy against the ratio of members, with the threshold rehearsed at 1 : 1 and with the "
            "best threshold for the records judged; and precision against recall at each ratio (solid: Cal., dashed: Orig).",
    alt="Left: with the best threshold accuracy climbs along the line of calling nobody a member; with the rehearsed threshold it "
        "falls, for the original loss most. Right: precision falls as members get rarer; calibrated curves stay highest at low recall.")

# %% [markdown]
# The paper reads the rise of accuracy as *non-membership inference*. With the best threshold it is mostly arithmetic: who calls
# nobody a member is right in a share $1 - \pi$ of cases. With a threshold fixed beforehand accuracy falls: the more non-members there
# are, the more its false alarms weigh. Precision says what has happened.
#
# (calibration-which-reference)=
# ## Which reference?
#
# The paper stops references at their best validation accuracy and does not say what that is worth. On Credit one stopped reference does
# what five do that are trained to the end, or more (it also sees the other public half, if only to know when to stop):

# %% tags=["hide-input"]
results.show_table(
    exhibits.reference_table(plays, games), name="calibration-references",
    caption="AUC of the loss calibrated with different references: trained to the end like the target, one or all there are (their "
            "number in parentheses); one trained to the end on all public records, twice as many; and one kept at its best validation accuracy, "
            "reached at the epoch in the last column (median). 95 % intervals over plays.")

# %% [markdown]
# A model trained far beyond its best epoch is sure of itself everywhere, and elsewhere than on its own records often wrongly: on one that
# it has never seen its loss may be a hundredth of a nat or ten, as chance will have it. That is noise, $\sigma_\varepsilon$ in
# {eq}`calibration-law`. A model stopped in time says what is typical for the record, which is what difficulty means. On
# the images the best epoch is one of the last, and stopping changes nothing.

# %% tags=["hide-input"]
plotting.show(
    exhibits.law_figure(plays), name="calibration-law-figure",
    caption="AUC of the loss against the number of references trained to the end: measured, the law {eq}`calibration-law` with "
            "spreads measured on the same losses, and its one-parameter fit. Dotted: not calibrated. Dash-dotted: one stopped reference.",
    alt="A panel for each data set. Measured AUC rises with the number of references and flattens. On both Credit sets one stopped "
        "reference reaches what five others do, or more.")

# %% tags=["hide-input"]
results.show_table(
    exhibits.law_table(plays), name="calibration-law-table",
    caption="The law's ingredients, measured: spread of difficulty over records, noise over references trained to the end, gain of "
            "members (in nats), what the law says of one such reference, and the change of AUC that was measured.")

# %% [markdown]
# The law foresees the sign. Its form $\sqrt{1 + 1/R}$ fits with softmax twice; with the plain cross-entropy the curve flattens sooner. Two
# of its assumptions fail: references drawn from one public half share half of their records, and so some of their noise; and
# losses are far from normal, most next to zero and a few ten nats.
#
# ## The paper's Figure 5: more references

# %%
more = study.more_forgetting(table, copies, shadow_shares)

# %% tags=["hide-input"]
plotting.show(
    exhibits.more_figure(exhibits.more_frame(more, shadow_shares, table.covers)), name="calibration-figure-5",
    caption=f"**Figure 5 of the paper**, on {table.name}: the loss calibrated with several forgetful copies of the target, for three "
            "sizes of the set they forget on. Accuracy has the threshold that is best in the other splits, which no attacker has. The paper's curves, for CIFAR-10, "
            "rise by up to 5 points of AUC and 3 of accuracy from one copy to ten.",
    alt="Two panels, AUC and accuracy against the number of copies, a line a size of shadow set. The lines rise steeply at first "
        "and flatten.")

# %% [markdown]
# ## The paper's Figure 6: differential privacy
#
# DP-SGD {cite}`abadi2016deep` clips the gradient of each record and adds noise, so that no record can matter much. We train targets and
# references with Opacus: clipping at norm 1, $\delta = 1/n$, the noise found from the $\epsilon$ asked for by its accountant.

# %%
private_config = replace(table.models.config, epochs=private_epochs, batch_size=private_batch_size,
                         loss="cross_entropy", seed=seed + 9)
lacking = dp.lacking()
private = None if lacking else study.private_training(table, epsilons, private_config, private_games)

# %% tags=["hide-input"]
if private is None:
    results.say(f"*Not run: {lacking}.*")
else:
    results.show_table(
        exhibits.private_table(private, epsilons, table), name="calibration-private-table",
        caption="German credit under DP-SGD, trained with the plain cross-entropy: the ε asked for, spent by the accountant's count, and the noise it takes; accuracy of the "
                "targets; AUC of the loss, with 95 % intervals over plays and records.")
    plotting.show(
        exhibits.private_figure(private, epsilons), name="calibration-figure-6",
        caption="**Figure 6 of the paper**, on German credit: ROC and precision against recall of the loss, calibrated (solid) and not "
                "(dashed, thin), at each ε; dotted without privacy.",
        alt="Left, ROC curves on logarithmic axes; right, precision against recall. At the smallest epsilon both lie at chance; without "
            "privacy the calibrated curve is highest.")

# %% [markdown]
# ## Calibration among its relatives
#
# Calibration, {term}`MAST` and LiRA all compare a signal with what is typical for the record. With references that never saw the record and the loss as
# signal, MAST with the mean of OUT references *is* the calibrated loss, and offline LiRA with one variance for all records puts
# records in the same order. What they add comes with more references: a variance for each record, references *with* the record,
# or the soft minimum.

# %%
same = pd.DataFrame([{"data": name, **study.coincidences(played)} for name, played in plays.items()])

# %% tags=["hide-input"]
results.show_table(
    same, name="calibration-coincidences", formats={"MAST, mean out": ".1e", "LiRA offline, fixed variance": ".1e"},
    caption="How far calibration is from its relatives on the records of this chapter: largest difference of scores from MAST (nats), "
            "and of ranks from offline LiRA, as a share of the records (ties of rounding).")

# %% [markdown]
# ## The paper's claims

# %%
verdicts = [
    *exhibits.judge_tables(plays, games), exhibits.judge_label_only(label_only, games),
    exhibits.judge_sizes(by_size, size_games), *exhibits.judge_ratio(plays[images.name], images.covers),
    *exhibits.judge_more(more, shadow_shares, table.covers),
    exhibits.judge_private(private, epsilons, table, lacking),
    claims.judge("calibration", "C15", None, "the paper gives neither number nor criterion"),
]

# %% tags=["hide-input"]
used = {name: one.models.records.name for name, one in games.items()}
claims.show("calibration", verdicts, {
    **dict.fromkeys(["Table 2", "Table 3", "Tables 2 and 3", "Section 4.1", "Figure 2"], used.values()),
    "Table 4": [used[name] for name in label_only], **dict.fromkeys(["Figure 3", "Figure 4"], image_dataset),
    **dict.fromkeys(["Figure 5", "Figure 6"], used[table.name])})

# %% [markdown]
# ### Reading the verdicts
#
# These sentences are chosen by the verdicts of this run.
#
# - **C1.** {says}`C1`
# - **C2.** {says}`C2`
# - **C3.** {says}`C3`
# - **C4.** {says}`C4`
# - **C5.** {says}`C5`
# - **C6.** {says}`C6`
# - **C7.** {says}`C7`
# - **C8.** {says}`C8`
# - **C9.** {says}`C9`
# - **C10.** {says}`C10`
# - **C11.** {says}`C11`
# - **C12.** {says}`C12`
# - **C12a.** {says}`C12a`
# - **C13.** {says}`C13`
# - **C13s.** {says}`C13s`
# - **C14.** {says}`C14`
# - **C15.** {says}`C15`
# - **C16.** {says}`C16`
# - **A1.** {says}`A1`
# - **A2.** {says}`A2`
#
# :::{about} quick
# *Why, at the quick setting:*
#
# - **Label-only (C10).** Contradicted on the one data set that this run shares with the paper's table, in
#   {ref}`every reading <calibration-label-only-reading>` of the subtraction.
# - **Size (C11).** The direction is right, and five games are too few to resolve one step of size. Small sets also get fewer steps in the same
#   number of epochs.
# :::

# %% [markdown]
# ## Where text and released code differ
#
# The double softmax is the difference that matters; both versions stand in every table above. Others, measured:

# %%
gradients = pd.DataFrame([
    {"data": name, "score": f"gradient, {of}", "Orig": study.over(both["original"], one.covers),
     "Cal.": study.over(both["scratch"], one.covers)}
    for name, one in games.items() if not one.models.records.is_image
    for of, both in study.gradient_variants(one).items()])
dropout = study.with_dropout(images)
left_on = pd.DataFrame([
    {"data": images.name, "score": f"loss, dropout {state}", "Orig": study.over(a, images.covers),
     "Cal.": study.over(b, images.covers)}
    for state, a, b in (
        ("off", *(study.per_target(plays[images.name], ("loss", v), "auc") for v in ("original", "scratch"))),
        ("left on, as released", dropout["original"], dropout["scratch"]))])

# %% tags=["hide-input"]
results.show_table(
    pd.concat([gradients, left_on]), name="calibration-differences",
    caption="AUC of variants found in the released code: the norm of the gradient (its infinity norm keeps the sign), and losses "
            "computed with the network in training mode. 95 % intervals over plays.")

# %% [markdown]
# - **Several references** are joined by the sum of differences, which ranks as the mean does, for the loss; for
#   confidence and distance the released code keeps only the last reference.
# - **Confidence**: text and code take the largest probability, whatever the label. With the true class's it would be the loss.
# - **Forgetting** reloads the optimiser's momentum with the weights; ours starts from none.
# - **Figure 5** calls its attack *calibrated*; the references are forgetful copies.
# - **Table 1** prints one row a data set. Its CIFAR rows are the augmented targets: $\tfrac12(1 + .946 - .740) = .603$ is the gap attack
#   of the augmented row.
# - **Captions** of Tables 2 and 3 say *consistently improves* and *on par or better in almost all settings*; by its own cells 22 of
#   27 AUCs rise, and accuracy rises in 13, stays in 2 and falls in 12.

# %% [markdown]
# ## Where this run differs from the paper
#
# | exhibit | the paper | this run | to close the gap |
# | --- | --- | --- | --- |
# | Credit | 200 members, 5 repeats, epochs and batch not given | the same size, 20 repeats, 200 epochs, batch 16 | nothing |
# | Hepatitis, Adult | 31 and 8,140 members | not in this run | `--preset cpu` |
# | MNIST | 15,000 members, 500 hidden units | FashionMNIST, 600 members, 128 hidden units | `--preset cpu` for the size |
# | CIFAR-10, CIFAR-100 | 12,500 members, with and without augmentation | not in this run | `--preset paper` and a GPU |
# | ImageNet | 320,292 members, ResNet-18 | not run | ImageNet and weeks of GPU time |
# | Figures 1 to 4 | CIFAR-10 | FashionMNIST | `--preset paper` |
# | Figures 5 and 6 | CIFAR-10 | German credit | `mia run calibration -p ...` on images takes hours |
#
# Intervals cover the splits, and so the choice of members, references and seeds. All splits of Credit are of one pool of 800
# applicants: other applicants might differ.
#
# ## Exercises
#
# ````{exercise} How many references?
# :label: calibration-exercise-references
# In {eq}`calibration-law`, by what factor does the separation grow from one reference to infinitely many? Which share of that do five
# references give? When does the *first* reference make the attack worse?
# ````
#
# ````{solution} calibration-exercise-references
# :class: dropdown
# The separation is $\Delta / \sqrt{2\sigma_\varepsilon^2(1 + 1/R)}$: from $R = 1$ to $\infty$ it grows by $\sqrt 2 = 1.41$, and
# five references give $\sqrt{2/1.2} = 1.29$, which is 91 % of it. The first one hurts when $\sigma_D < \sigma_\varepsilon$, as for the plain
# cross-entropy in {numref}`calibration-law-table`: targets and references trained far beyond their best epoch.
# ````
#
# ````{exercise} Rare members
# :label: calibration-exercise-rare
# An attack reaches (TPR, FPR) = (0.9, 0.6) at the threshold that is best for accuracy, and (0.05, 0.001) at a cautious one. Compute
# the precision of both when one record in two, in ten, in a hundred is a member. Which of them would you report to a regulator?
# ````
#
# ````{solution-start} calibration-exercise-rare
# :class: dropdown
# ````

# %%
results.say(results.markdown_table(pd.DataFrame([
    {"share of members": f"{share:g}", "accurate": float(metrics.precision(0.9, 0.6, share)),
     "cautious": float(metrics.precision(0.05, 0.001, share))} for share in (0.5, 0.1, 0.01)])))

# %% [markdown]
# At one in a hundred, 98 or 99 of 100 records that the accurate attack accuses were not members. The cautious one is right once in three,
# about the few records it names.
#
# ````{solution-end}
# ````
#
# ````{exercise} Mean or soft minimum?
# :label: calibration-exercise-softmin
# Replace the mean in {eq}`calibration-score` by the soft minimum $-\log \frac1R \sum_r e^{-\ell(g_r, z)}$ of {prf:ref}`calibration-theorem`
# and compare AUC and TPR at 1 % FPR with one and with all references. Why can it only lower scores? Which records does it lower?
# ````
#
# ````{solution-start} calibration-exercise-softmin
# :class: dropdown
# ````

# %%
def soft(name, references):
    played = plays[name]
    mean = study.calibrated(played.scores["loss", "original"], -played.reference_loss[:, :references])
    pair = {"mean": mean, "soft minimum": study.softmin_scores(played, references)}
    return {"data": name, "references": references} | {
        f"{metric}, {kind}": value for kind, score in pair.items() for metric, value in (
            ("AUC", metrics.auc(score, played.members).mean()),
            ("TPR at 1 %", metrics.tpr_at_fpr(score, played.members, 0.01).mean()))}

results.say(results.markdown_table(pd.DataFrame([
    soft(name, r) for name in plays for r in (1, plays[name].reference_loss.shape[1])])))

# %% [markdown]
# With one reference both are the same. By Jensen's inequality the soft minimum is never above the mean. It follows the *best* reference: a
# record on which references disagree, whose mean is ruled by one huge loss, is demoted. On Credit with plain cross-entropy that is worth
# four points of AUC. With losses bounded by the second softmax there are no such records, and both agree.
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
# Here without the stopping, for five lengths:
# ````

# %%
lengths = [0, 1, 5, 20, 50]
results.say(results.markdown_table(pd.DataFrame([
    {"data": name, **{f"{count} epochs": value for count, value in
                      zip(lengths, study.forgetting_curve(one, lengths).mean(1), strict=True)},
     "from scratch, stopped": study.per_target(plays[name], ("loss", "scratch"), "auc").mean()}
    for name, one in games.items() if not one.models.records.is_image])))

# %% [markdown]
# Without an epoch the copy is the target, all scores are zero and the AUC is one half. It rises as members are forgotten, and
# may fall again when the copy has learned its new records by heart. With plain cross-entropy a few epochs are as good as a reference
# from scratch. With softmax twice no number of epochs is: one copy stays noisy, and several are needed.
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
    {"data": name} | {f"{study.VARIANTS[v]}, {word}": study.per_target(played, ("loss", v), metric).mean()
                      for v in ("original", "scratch", "forgetting")
                      for word, metric in (("rehearsed", "accuracy"), ("zero", "default_accuracy"))}
    for name, played in plays.items()])))

# %% [markdown]
# A calibrated score is zero where the target finds a record exactly as easy as the reference does, whatever the record. Minus a loss is
# never above zero, so that threshold calls nobody a member. Neither default nor rehearsal wins everywhere: a rehearsal is noisy and
# its models are smaller games' models; zero ignores that a forgetful copy is a better model than the target.
#
# ````{solution-end}
# ````
#
# ````{exercise} Why does confidence gain so little?
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
