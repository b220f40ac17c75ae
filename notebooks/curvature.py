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
# # Input loss curvature
#
# **On {ours}`set`, an attacker who asks for the loss at {ours}`asks` points around an image measures how the loss curves there, and with the help of
# {param}`references` other networks finds {ours}`curvature-tpr:value` of the training images if one in a hundred of the other images may be accused.
# LiRA, which asks once, finds {ours}`lira-tpr:value`; with its mirror image as well, {ours}`lira-two:value`.**

# %% tags=["parameters", "hide-input"]
datasets: list[str] = ["cifar10"]  # of networks that generalise (see `mia data ls`) [data set; not empty; distinct]
memorised: bool = True  # whether to begin with networks that know their members by heart: 2,000 of 4,000 images of CIFAR-100
models: int = 32  # networks in complementary pairs, each trained on half of the training records [6..256; even]
targets: int = 8  # networks that are attacked, one of each pair [2..128]
references: int = 30  # other networks that an attack may use [4..254; even]
records: int = 0  # training records that the networks share; 0 for all of the set [0..60000]
asked: int = 4000  # records that are attacked, the first ones [300..60000]
precisely: int = 2000  # of these, whose curvature is also computed in float64 [300..60000]
exactly: int = 1000  # of these, whose Hessian is computed [10..60000]
architecture: str = "batchnorm_cnn:24,48,96"  # of the networks [architecture]
epochs: int = 20  # of training [1..500]
batch_size: int = 256  # of training [1..10000]
learning_rate: float = 0.15  # the highest, of SGD [1e-6..10.0]
reference_counts: list[int] = [4, 8, 16]  # fewer references, besides all, as far as there are so many [4..254; even; not empty; distinct]
sized: str = "cifar100"  # data set of Figures 6 and 7 [data set]
sizes: list[int] = [1000, 5000, 45000]  # training sets there, besides half of all records [10..60000; ascending; not empty]
size_targets: int = 8  # networks of each size [2..64]
unmeasured: str = "leave out"  # what to do about networks of Figures 6 and 7 that nobody has measured [leave out | train]
hand_models: int = 8  # networks trained in "The idea" and attacked in "One target by hand" [6..64; even]
hand_epochs: int = 40  # of these [1..500]
seed: int = 0  # of splits and training [0..1000000]
draws: int = 60  # resamples of records behind each interval [10..10000]

# %% tags=["hide-input"]
from dataclasses import replace

import numpy as np
import pandas as pd

from mia_lib import (attacks, claims, data, membership, metrics, plotting, published,
                     results, signals, training)
from mia_lib.attacks import baselines, bayes, calibration
from mia_lib.attacks import curvature as attack
from mia_lib.evidence import rules
from mia_lib.papers.curvature import exhibits, measure, study
from mia_lib.signals import curvature

ITERATIONS = 10  # differences whose mean is the curvature, each of four losses
sets = [*[study.MEMORISED] * memorised, *datasets]
first = sets[0]


def number(frame, attack, metric, **where):
    return metrics.estimate(frame, attack, metric, data=first, **where).interval()

# %%
recipe = {"records": records or None, "architecture": architecture, "epochs": epochs,
          "batch_size": batch_size, "learning_rate": learning_rate, "seed": seed}
games = study.attacked(models, targets, references)
curved, banks, frames, scores, members = {}, {}, [], {}, {}
for name in sets:
    curved[name], banks[name] = study.measured(name, models, asked, precisely,
                                               exactly, **recipe)
    table, scores[name], members[name] = study.table_1(name, curved[name],
                                                       banks[name], games, draws)
    counted = study.queries(name, curved[name], banks[name], games, ITERATIONS, draws)
    frames += [table, counted]
table_1 = pd.concat(frames, ignore_index=True)

# %% tags=["remove-input"]
asks, queried = 4 * ITERATIONS, table_1[table_1["study"] == "queries"]
results.name({"lira-two": number(queried, study.FIXED, "tpr_at_fpr=0.01", queries=2)}, ".1%")
results.name({"set": exhibits.name_of(first), "sets": " and ".join(map(exhibits.name_of, sets)), "asks": asks, "asks-twice": 2 * asks})
for metric, short, spec in (("tpr_at_fpr=0.01", "tpr", ".1%"), ("auc", "auc", ".3f")):
    results.name({f"curvature-{short}": number(queried, study.RATIO, metric, queries=asks),
                  f"lira-{short}": number(queried, study.FIXED, metric, queries=1)}, spec)
drawn = [*study.PAPER, study.FIXED]
printed = exhibits.printed("table5")
points = {row.attack: [(float(row.metric.split("=")[1]), row.value / 100)] for row in printed[
    (printed["metric"] == "tpr_at_fpr=0.001") & (printed["protocol"] == "as released")].itertuples() if row.attack in plotting.STYLE}
plotting.show(
    plotting.roc({name: scores[first][name] for name in drawn}, members[first], points, "paper, TPR at 0.1 %", band=False), name="curvature-figure-4",
    caption="**Figure 4 of the paper**, all eight methods as released, on {ours}`set`: members found (true positive rate) against false alarms "
            "(false positive rate), mean over {param}`targets` networks. *LiRA, one spread* is ours: LiRA as in its own paper. Hollow marks are the "
            "paper's, of ResNet-18 that was trained for 300 epochs. Dashed: guessing.",
    alt="ROC curves of nine attacks on logarithmic axes. Where one in a hundred non-members is accused, the curvature's log ratio finds "
        "{ours}`curvature-tpr:value` of the members with {ours}`asks` queries and LiRA with one spread {ours}`lira-tpr:value` with one.")

# %% [markdown]
# Deepak Ravikumar, Efstathia Soufleri and Kaushik Roy, *Curvature Clues: Decoding Deep Learning Privacy with Input Loss Curvature*, NeurIPS 2024
# {cite}`ravikumar2024curvature`. Run it again: `mia run curvature`, or with other settings, `mia run curvature -p references 8`
# ([how to rerun](../book/rerun.md)).
#
# ## What the attacker has
#
# Somebody trained a network on half of the training images of a set; for each image a coin decided. The attacker has an image with its label and
# wants to know how the coin fell. It may ask the network for its loss at any input, and it may train {term}`reference models <reference model>` of its
# own on other halves. That is the [membership game](../book/game.md). The attacks differ in what they need, and in how often they ask:

# %% tags=["hide-input"]
released = replace(baselines.lira_online.needs, access=baselines.modified_entropy.needs.access)
needs = attacks.threat_model({
    "Curv ZO NLL, LR": attack.nll, "LiRA, as released": released, "LiRA": baselines.lira_online, "Yeom": bayes.malt, "MAST": bayes.mast,
    "Watson": calibration.calibrate, "Attack R": baselines.attack_r, "Song and Mittal": baselines.modified_entropy, "RMIA": baselines.rmia.needs})
results.show_table(
    needs.assign(queries=[2 * asks, 2, 2, *[1] * 6]), name="curvature-threat-model",
    caption="What each attack needs, as declared by the function that computes it, and how often it asks the target about one image as run in the paper. MAST is the "
            "attack of Sablayrolles et al., Attack R that of Ye et al. Song and Mittal run here with one threshold for all classes.")

# %% [markdown]
# ## The idea: how the loss bends around an image
#
# A network that was trained on an image should have a loss there that is low and flat. Around an image that it has not seen, the loss should rise and
# bend ({numref}`curvature-figure-2`). How much it bends also depends on the image. This cell trains {param}`hand_models` small networks on halves of 1,000 images of FashionMNIST, which lie in the repository, and measures the
# curvature of the loss around each image.

# %%
images = data.load("fashion_mnist_20k").take(np.arange(1000))
inside = membership.balanced_halves(1000, models=hand_models, seed=seed)
config = training.TrainConfig("strided_cnn:4,8,32", epochs=hand_epochs, batch_size=64,
                              optimizer="sgd", learning_rate=0.05, momentum=0.9,
                              seed=seed)
networks = training.train(images, inside, config)
bent = curvature.of(networks, images, "released_code", ITERATIONS, measure.STEP)
log_bent = attack.log_curvature(bent)  # [models, images]

# %% [markdown]
# ## One target by hand
#
# The attack compares the log curvature of an image under the target with two Gaussians: one fitted to the references that were trained on the image,
# one to the others. Here it attacks the first of the networks above.

# %%
others = membership.references_of(0, len(networks))  # without the target's complement
ratio = attack.nll(log_bent[0], log_bent[others], inside[others])
margin = signals.logit_scaled_confidence(networks, images)
lira = baselines.lira_online(margin[0], margin[others], inside[others])
by_hand = {"Curv, log ratio": ratio, "LiRA": lira, "Yeom": margin[0]}
{name: round(metrics.auc(score, inside[0]), 3) for name, score in by_hand.items()}

# %% [markdown]
# The curvature attack has an {term}`AUC` of {ours}`hand-curvature`, for {ours}`asks` queries an image. LiRA is the same comparison for the
# log odds of the true class and has {ours}`hand-lira`, for one query. The networks come in pairs that share no image; the partner of the target stays
# out, because counting which references hold an image would give the answer away.
#
# ## The method
#
# ```{admonition} The paper's score
# :class: paper
# The {term}`input loss curvature` of a record $(x, y)$ under a model $f$ is the trace of a Hessian,
# $\mathrm{Curv} = \operatorname{tr} H$ with $H = \nabla^2_x\, \ell(f(x), y)$. With random vectors $u$, $v$ of entries $\pm 1$, four losses give
#
# $$
# q = \tfrac{1}{4h^2} \bigl[\ell(x + hv + hu) - \ell(x - hv + hu) - \ell(x + hv - hu) + \ell(x - hv - hu)\bigr] = v^\top H u + O(h^2),
# $$ (curvature-probe)
#
# and the mean of $n^2 q\,(u^\top v)$ over ten draws is the estimate ($n$ pixels).
# ```
#
# *An example first.* Let $\ell(x) = \tfrac12 x_1^2 + \tfrac32 x_2^2$, so that $H$ has trace $4$. With $v = u$, $q = 4$ and $u^\top v = 2$; with
# $v = -u$ both change sign; with $v \perp u$, $u^\top v = 0$. So $q\,(u^\top v)$ is $8, 8, 0, 0$, and its mean is the trace. No factor $n^2$ is needed
# ({ref}`exercise <curvature-exercise-factor>`).
#
# **The released code does not compute the trace.** It averages $|q|$ over the ten draws and multiplies by $h$. This grows with the *size* of the Hessian's
# entries. It can be exactly zero, so the code adds a small number before it takes the logarithm.
#
# ````{prf:proposition} The label cancels between kinks
# :label: curvature-label
# Let the logits $z$ be linear in the input, with Jacobian $J$, on a convex region that holds the four points, and
# $\ell = \log\sum_k e^{z_k} - z_y$. Then $q$ does not depend on $y$, at any step, and with $p$ the softmax of $z$
#
# $$
# H = J^\top(\operatorname{diag} p - p p^\top)J .
# $$ (curvature-between)
# ````
#
# *Why.* The label occurs in $-z_y$ alone, which is linear, and four points as in {eq}`curvature-probe` cancel whatever is linear. A ReLU network is
# linear between its {term}`kinks <kink>`. If a kink lies between the four points, the slope of the logits changes there by some $\Delta z$. The loss
# changes with them, by about $(p - e_y)^\top \Delta z$, $e_y$ being the label as a unit vector. The vector $p - e_y$ is small where the network is sure of
# the label and large where it is wrong. Through it the label enters the estimate.

# %% tags=["hide-input"]
results.name({f"hand-{name}": float(metrics.auc(by_hand[attack_name], inside[0])) for name, attack_name in (("curvature", study.RATIO), ("lira", "LiRA"))})
given = signals.logits(networks, images)[0].argmax(-1)
wrong = np.flatnonzero(~inside[0] & (given != images.y))
shown = int(wrong[0]) if len(wrong) else 0
probed = study.probe(networks.model(0), images.x[shown], dict.fromkeys([int(images.y[shown]), int(given[shown])]), seed)
called = [f"the label, {images.classes[images.y[shown]]}", f"the network's own, {images.classes[given[shown]]}"]
results.name({"probe-true": images.classes[images.y[shown]], "probe-own": images.classes[given[shown]]})
plotting.explore(
    exhibits.probe_chart(probed, called, measure.STEP), exhibits.probe_figure(probed, called, measure.STEP), name="curvature-idea",
    instructions="Move the step. Up to which step is the estimate the Hessian's own number (dashed)? Then change the label: where does it make a "
                 "difference, and where not?",
    caption="One probe of one image, labelled {ours}`probe-true`, which a network that was not trained on it calls {ours}`probe-own`: the size of "
            "the estimate $q$ against the step $h$, and $v^\\top H u$ for the piece of the network that the image lies on. While the four points lie on "
            "that piece, the label makes no difference; at larger steps it does.",
    alt="Size of the estimate q against the step on logarithmic axes, for the image's label and for the one that the network gives, with a level "
        "line for the Hessian's own number. The two curves agree at small steps and part at larger ones.")

# %% [markdown]
# **The attack** (ZO, *zero-order*: without derivatives) fits two Gaussians to the log curvature of a record under references, IN and OUT:
#
# $$
# \mathrm{LR} = \frac{\mathcal N(c;\, \mu_{\mathrm{in}}, \sigma^2_{\mathrm{in}})}{\mathcal N(c;\, \mu_{\mathrm{out}}, \sigma^2_{\mathrm{out}})}, \qquad
# \mathrm{NLL} = \log \mathrm{LR} .
# $$ (curvature-lr)
#
# NLL is here the logarithm of LR. Since the logarithm rises strictly, *LR and NLL must rank all records alike*. In the paper they do not: on CIFAR-100
# their AUCs are {printed}`table1 | CIFAR100 | Curv ZO LR | auroc` and {printed}`table1 | CIFAR100 | Curv ZO NLL | auroc` %. The released code computes
# two other scores under these names ({ref}`below <curvature-ladder-section>`).
#
# ## All methods: Table 1
#
# The paper attacks three ResNets with 64 references. This run attacks {param}`targets` small networks with {param}`references` references each, on
# {ours}`sets`. The networks on {ours}`set` have 2,000 members and were trained for 60 epochs with mirrored images: they are right on {ours}`fit-in` of their
# members and on {ours}`fit-out` of the others. Those on {ours}`second` are {param}`architecture`, trained for {param}`epochs` epochs without augmentation
# on half of the training images, and generalise better. Verdicts on this page are about the former.

# %% tags=["hide-input"]
def lead(claim):
    return rules.number_of("curvature", claim, table_1[table_1["data"] == first])


as_released = table_1[(table_1["study"] == "methods") & (table_1["protocol"] == "as released") & (table_1["data"] == first)]
auc_of = {name: metrics.estimate(as_released, name, "auc") for name in as_released["attack"].unique()}
alike = table_1[table_1["study"] == "alike"]
results.name({f"fit-{side}": number(alike, "model", f"{which}_accuracy").value for side, which in (("in", "member"), ("out", "other"))}, ".1%")
results.name({"second": exhibits.name_of(sets[-1]), "nll-auc": auc_of[study.NLL].interval(), "yeom-auc": auc_of["Yeom"].interval()})
results.name({"behind-released": -lead("C3"), "behind-one-view": -lead("C3v"), "behind-lira": -lead("A1"), "second-view": lead("C6")}, ".1f")
results.name({"lira-released-auc": auc_of[study.RELEASED].interval(), "lira-class-auc": auc_of["LiRA, released rule"].interval(),
              "lira-true-auc": auc_of[study.TRUE].interval(), "ratio-auc": auc_of[study.RATIO].interval()}, ".3f")
results.show_table(
    exhibits.table_one(table_1), name="curvature-table-1",
    caption="**Table 1 of the paper**, in percent. The upper eight methods run as in the released code, with image and mirror image for curvature and "
            "LiRA and the image alone for the others; the lower ones are ours. AUC with 95 % intervals over {param}`targets` networks and their "
            "images; accuracy at the best threshold, a {ref}`peak <peak-accuracy>`, which has no interval. Paper: ResNets and 64 references, on all of CIFAR-100 "
            "beside the first networks. Its ImageNet is not measured.")

# %% [markdown]
# :::{finding}
# :claims: C3 inconclusive, C3v contradicted, A1 contradicted
# On {ours}`set` NLL as released has an AUC of {ours}`nll-auc:value`, and the plain loss (Yeom) has {ours}`yeom-auc:value`: these networks know their members
# so well that the loss alone tells them. With one view for every method NLL is {ours}`behind-one-view` points behind the best. In the paper NLL has the
# best AUC on all three sets. On {ours}`second` all attacks are weaker, and MAST, Watson and Attack R are ahead of NLL.
#
# The released code gives LiRA the *largest* probability, where its own paper takes the true class's {cite}`carlini2022membership`, and scores it by the
# rule that the code calls LR. So run, its AUC on {ours}`set` is {ours}`lira-released-auc:value`. With the true class it is {ours}`lira-class-auc:value`,
# and with a proper likelihood ratio as well {ours}`lira-true-auc:value`. NLL as released is {ours}`behind-lira` points behind LiRA so repaired, and the
# curvature's own proper ratio, with an AUC of {ours}`ratio-auc:value`, half as far.
# :::
#
# ## A second view, and few false alarms: Tables 2 to 5

# %% tags=["hide-input"]
results.show_table(
    exhibits.views_table(table_1), name="curvature-table-2",
    caption="**Tables 2 to 4 of the paper**: AUC in percent from the image alone and with its mirror image. The paper's networks and those on "
            "{ours}`set` were trained with mirrored images, those on {ours}`second` without.")
results.show_table(
    exhibits.table_five(table_1, first), name="curvature-table-5",
    caption="**Table 5 of the paper** on {ours}`set`: members found at low rates of false alarms, in percent, as released. Each target has half of "
            "the images as non-members; a rate that fewer than one of them would make is below resolution. The paper's on CIFAR-100.")

# %% [markdown]
# :::{finding}
# :claims: C4 reproduced, C5 reproduced, C6 reproduced
# At few false alarms LR is first of the eight, as in the paper. At one in a thousand LR finds {ours}`curvature-table-5 | Curv ZO LR | TPR at 0.1 %` % of the members on
# {ours}`set`, NLL {ours}`curvature-table-5 | Curv ZO NLL | TPR at 0.1 %` % and MAST {ours}`curvature-table-5 | MAST | TPR at 0.1 %` %, as released. The
# paper has LR at {printed}`table5 | 2 augmentations | Curv ZO LR | tpr_at_fpr_0.1pct` %, ahead of all. LiRA with the true class, which the paper did not
# run, finds more: {ours}`curvature-table-5 | LiRA, true class | TPR at 0.1 %` %.
#
# The second view adds {ours}`second-view` points of AUC to NLL and LR, on average. On {ours}`second` it takes away: those networks were trained without
# mirrored images, and a mirrored image tells less about membership than the image itself.
# :::
#
# ## Count the queries
#
# The paper's curvature asks {ours}`asks-twice` times about an image with its mirror image, LiRA as run there twice, LiRA in its own paper 18 times. This
# table has all of them on the images whose curvature is known in float64. LiRA with 18 and with 80 queries sees shifted and mirrored views.

# %% tags=["hide-input"]
results.name({"tied-tpr": number(queried, study.TIED, "tpr_at_fpr=0.01", queries=2 * asks)}, ".1%")
results.name({"alike": number(table_1, study.RATIO, "rank correlation")}, ".2f")
results.name({"overlap": number(table_1, study.RATIO, "overlap")}, ".0%")
results.show_table(
    exhibits.queries_table(table_1), name="curvature-queries",
    caption="Attacks by the number of queries of an image, in percent, with 95 % intervals over {param}`targets` networks and images (4,000 of CIFAR-100, "
            "{param}`precisely` of a bank), {param}`references` references. The curvature is in float64. *One spread*: one variance for all images, as LiRA's "
            "authors advise where references are few; *log ratio* and *true class*: two for each image; *tied*: one for each image.")

# %% [markdown]
# :::{finding}
# :claims: A4 reproduced
# With one query LiRA is about as good as the curvature with eighty. With two it is ahead at one false alarm in a hundred: on {ours}`set` it finds
# {ours}`lira-two:value` of the members with one spread, and the best form of curvature that we tried, one variance of each image for both hypotheses
# (*tied*), {ours}`tied-tpr:value`.
#
# How alike are the two attacks? Within members and within the others the log ratio of curvature and LiRA of the true class have a mean rank
# correlation of {ours}`alike`. Of the members that either finds at one false alarm in a hundred, both find {ours}`overlap`.
#
# Views that training did not show do not help: with shifted images, averaged, LiRA finds less than with the image alone.
# :::
#
# ## What held and what did not
#
# :::{finding}
# :claims: C1 reproduced, C4 reproduced, C5 reproduced, C6 reproduced, C13 checked, C3 inconclusive, A1 contradicted, A2 reproduced, A4 reproduced
# **What held.** The loss curves more around images that the network was not trained on. Of the eight methods as released LR finds most members at few
# false alarms; NLL has the better AUC of the two, and the mirror image helps both.
#
# **What did not.** NLL is not clearly ahead of the plain loss. LiRA as in its own paper does with one or two queries what the curvature does with forty or eighty.
# What the curvature finds beyond the exact Hessian is due to the label ({numref}`curvature-signals`), which LiRA sees directly.
#
# **What stays open.** Whether ResNets with 25,000 members give the same picture, and Figure 5.
# :::
#
# ## Exercises
#
# ````{exercise} Fewer references (a change of parameters)
# :label: curvature-exercise-references
# Run `mia run curvature -p references 8`. Which rows of {numref}`curvature-queries` lose most, and which stay? What does that say about one spread for
# all images?
# ````
#
# ````{solution} curvature-exercise-references
# :class: dropdown
# Yeom's attack uses no reference and stays. Rows with a variance for each image lose most: with eight references each variance comes from four values.
# One spread for all images is estimated from all of them, and loses least.
# ````
#
# ````{exercise} Which factor?
# :label: curvature-exercise-factor
# For a quadratic $\ell = \tfrac12 x^\top H x$ show that $q = v^\top H u$ exactly. Compute $\mathbb E[q\, v u^\top]$ for entries $\pm 1$ and for vectors
# on the unit sphere. Where does the paper's $n^2$ belong? How many times more probes do independent $u, v$ need than $u = v$ for
# $H = \mathbf 1\mathbf 1^\top / n$, with $n = 784$?
# ````
#
# ````{solution} curvature-exercise-factor
# :class: dropdown
# All first-order terms cancel and the second-order ones leave $4h^2\, v^\top H u$. With $\mathbb E[uu^\top] = \mathbb E[vv^\top] = C$,
# $\mathbb E[q\,vu^\top] = C H C$: it is $H$ for $\pm 1$ ($C = I$) and $H / n^2$ on the sphere ($C = I/n$). `theory.probe_variance(H)` gives the
# variances of one probe: 787 with independent vectors and 2 with one, 394 times less.
# ````
#
# ````{exercise} Can LR and log LR disagree?
# :label: curvature-exercise-logs
# Show that the AUC does not change under strictly increasing maps. Compute the AUC of `attack.likelihood_ratio` and of `attack.nll` with the arguments
# of the cell that attacks one target by hand. Where would they differ after all?
# ````
#
# ````{solution} curvature-exercise-logs
# :class: dropdown
# The AUC is $P(s_{\mathrm{in}} > s_{\mathrm{out}}) + \tfrac12 P(s_{\mathrm{in}} = s_{\mathrm{out}})$ for a random member and a random non-member, and
# a strictly increasing map changes neither event. The two differ only where the exponential over- or underflows and ties records: beyond a log ratio of
# $709$, or below $-745$.
# ````
#
# ````{exercise} Privacy closes the door
# :label: curvature-exercise-private
# Show that no score of an $\epsilon$-{term}`private <differential privacy>` model has an AUC above $e^\epsilon/(1 + e^\epsilon)$. What does the Gaussian
# map $\mathrm{AUC} = \Phi(\sqrt{D_{KL}})$ allow for $D_{KL} \le \epsilon$? Which of the two is right at $\epsilon = 1$?
# ````
#
# ````{solution} curvature-exercise-private
# :class: dropdown
# Privacy keeps the ROC curve below $\min(e^\epsilon\,\mathrm{FPR},\ 1 - e^{-\epsilon}(1 - \mathrm{FPR}))$, whose area is
# $e^\epsilon/(1 + e^\epsilon)$: at most $0.73$ at $\epsilon = 1$. The Gaussian map allows $0.84$, for two such Gaussians are not $\epsilon$-private.
# `theory.auc_cap` and `theory.gaussian_auc_of_kl` have both.
# ````

# %% [markdown]
# ## Quiz
#
# Choose an option and open it: it says why it is right, or what it mistakes.
#
# :::{quiz} curvature
# :::

# %% [markdown]
# ## In more depth
#
# ### Figures 1 to 3: which images bend, many records, one record

# %% tags=["hide-input"]
plotting.show(
    exhibits.extremes(images, np.average(log_bent, 0, ~inside)), name="curvature-figure-1",
    caption="**Figure 1 of the paper**, left part, on FashionMNIST: the images with the lowest and the highest mean log curvature under networks "
            "that were not trained on them. The paper calls images of low curvature prototypical and images of high curvature atypical.",
    alt="Two rows of eight small images with their labels: the lowest curvature above, the highest below.")
gaussian = pd.concat([study.gaussian(name, curved[name], games) for name in sets])
results.name({"threshold-auc": number(table_1[table_1["protocol"] == "one view"], study.CURVATURE, "auc")})
results.name({"distance": number(gaussian, study.CURVATURE, "distance")}, ".1%")
shown_logs = {name: (bank.precise[list(games), :, 0].astype(float), bank.members[list(games), :bank.precise.shape[1]]) for name, bank in curved.items()}
plotting.show(
    plotting.histograms({exhibits.name_of(name): (log.ravel(), held.ravel()) for name, (log, held) in shown_logs.items()},
                        xlabel="log curvature"),
    name="curvature-figure-2",
    caption="**Figure 2 of the paper**, on {ours}`sets`: log curvature of members and of non-members, all targets and images together, in float64.",
    alt="A panel for each data set with two histograms of log curvature, of members and of non-members.")
plotting.show(
    exhibits.record_figure(curved[first].precise[..., 0], curved[first].members[:, :curved[first].precise.shape[1]]), name="curvature-figure-3",
    caption="**Figure 3 of the paper**, for three images of {ours}`set`: log curvature under networks trained on the image and under the others, a "
            "tick a network, and the Gaussians that the attack fits. The images stand at three percentiles of how far the two means lie apart.",
    alt="Three panels, each with two rows of ticks and two Gaussian curves over log curvature.")

# %% [markdown]
# :::{finding}
# :claims: C1 reproduced, C2 contradicted
# The loss curves less around members: as an attack by itself, without references, low curvature on {ours}`set` has an AUC of {ours}`threshold-auc`. Values
# of one record over many networks are not quite Gaussian. What the Gaussians of the references predict of the target's values is wrong by up to
# {ours}`distance`, taken over all images and on average over members and others (the distance of Kolmogorov and Smirnov). Our rule allows five points.
# :::
#
# (curvature-ladder-section)=
# ### Why LR and NLL differ
#
# The code passes the variance where the Gaussian density expects the standard deviation; both scores share this slip. NLL makes a second change: it
# uses the IN spread for both Gaussians, so that the terms in $c^2$ cancel. LR makes another one: it adds the likelihoods of the two views, where
# independent views would be multiplied. Here is one change after the other:

# %% tags=["hide-input"]
ladder = pd.concat([study.ladder(name, curved[name], games, draws) for name in sets])
results.show_table(
    exhibits.ladder_table(ladder), name="curvature-ladder",
    caption="From the log-likelihood ratio to the released NLL and LR, in percent, two views in float64; in brackets each change against the step "
            "before, paired, with 95 % intervals. The control is no step, and is compared with the first.")

# %% [markdown]
# The log ratio of two Gaussians has a term that depends on the target and one that does not,
#
# $$
# \underbrace{\tfrac12 (c - \mu_{\mathrm{out}})^2/\sigma_{\mathrm{out}}^2 - \tfrac12 (c - \mu_{\mathrm{in}})^2/\sigma_{\mathrm{in}}^2}_{\text{evidence}}
# \; + \; \underbrace{\log(\sigma_{\mathrm{out}}/\sigma_{\mathrm{in}})}_{\text{the record's own}} .
# $$
#
# With $\sigma^2$ in the place of $\sigma$ the record's own term doubles, and the evidence is divided by $\sigma^2$ once more. The balance of the two
# then depends on the unit of $c$, even on the base of its logarithm, which no likelihood ratio does.
#
# ### In which precision?
#
# The released code computes losses in float32. Where a network is sure of an image, the four losses are equal in float32, and the curvature is exactly
# zero. The code adds $10^{-22}$ before it takes the logarithm, so that such an image has a log curvature of $-50.66$.

# %%
precisions = pd.concat([study.precisions(name, curved[name], games, draws)
                        for name in sets])
rounded = curvature.of(networks, images, "released_code", ITERATIONS, measure.STEP,
                       dtype="float32", precise=False, warn=False)
logs = {"released": attack.log_curvature(rounded), "precise": log_bent}
sure = study.precisions("the networks of this page", published.Bank("by hand", {}, {
    **{name: log[..., None] for name, log in logs.items()}, "members": inside}, []),
    study.attacked(hand_models, hand_models // 2, hand_models - 2), draws)

# %% tags=["hide-input"]
zero = precisions[precisions["metric"] == "zero"]
results.name({"zero": metrics.estimate(zero, study.CURVATURE, "zero", data=first, precision="float32").value}, ".1%")
results.name({f"{short}-{precision}": number(precisions, name, "tpr_at_fpr=0.01", precision=precision)
              for short, name in (("nll", study.NLL), ("lr", study.LR)) for precision in ("float32", "float64")}, ".1%")
results.show_table(
    exhibits.precision_table(pd.concat([precisions, sure])), name="curvature-precision",
    caption="The curvature attacks in float32, as released, and in float64, on the same images, in percent with 95 % intervals; two views. Of the "
            "small networks that are trained above, 1,000 images and one view.")

# %% [markdown]
# :::{finding}
# :claims: A3 no difference, A5 reproduced
# On {ours}`set` float32 rounds {ours}`zero` of the curvatures to zero. All of these have the log curvature -50.66, whatever their curvature is. This lowers what
# NLL finds at one false alarm in a hundred from {ours}`nll-float64:value` to {ours}`nll-float32:value` of the members. LR goes the other way, from
# {ours}`lr-float64:value` to {ours}`lr-float32:value`. It depends on how sure networks are: on {ours}`second` hardly any curvature is zero, and precision
# changes nothing.
#
# In float64 the log-likelihood ratio itself does as well as the better of the two released scores, by AUC and at one false alarm in a hundred.
# :::
#
# (curvature-what)=
# ### What does the number measure?
#
# By {prf:ref}`curvature-label` exact curvature cannot see the label, and differences see it through kinks. So we run one likelihood ratio on several
# signals of the same {param}`exactly` images.

# %% tags=["hide-input"]
estimated = pd.concat([study.estimators(name, curved[name], games, draws) for name in sets])
results.name({f"signal-{short}": metrics.estimate(estimated, name, "auc", data=first).interval() for short, name in zip(
    ("released", "own-label", "exact", "top", "true"), study.SIGNALS, strict=True)}, ".3f")
results.show_table(
    exhibits.signals_table(estimated), name="curvature-signals",
    caption="AUC of the log-likelihood ratio on several signals, in percent with 95 % intervals, the image alone. The last two rows are no curvature.")

# %% [markdown]
# :::{finding}
# :claims: A2 reproduced
# On {ours}`set` the released estimate has an AUC of {ours}`signal-released:value`. With each network's own label in the place of the true one it has
# {ours}`signal-own-label:value`, and the exact norm, which cannot see the label, {ours}`signal-exact:value`. So what four losses find beyond the exact
# curvature is due to the label. The true class's probability, one query, has {ours}`signal-true:value`.
# :::
#
# ### The number of references (Appendix A.8)
#
# The paper says that at low rates LR with 64 shadow models is about where LiRA is with 256. It prints no number for the latter.

# %% tags=["hide-input"]
counts = [count for count in reference_counts if count <= references]
fewer = pd.concat([study.by_references(name, curved[name], games, counts, draws) for name in sets])
plotting.show(
    exhibits.references_figure(fewer), name="curvature-costs",
    caption="Members found at 1 % false alarms against the number of references, with 95 % intervals; two views, curvature in float32. Dashed: guessing.",
    alt="A panel for each data set with a line for each of six attacks, true positive rate at one percent false positives against the number of "
        "references.")

# %% [markdown]
# :::{finding}
# :claims: C7 reproduced
# With eight references LR finds more than half of what LiRA, as released, finds with all at one false alarm in a thousand. LiRA with the largest probability
# is a weak rival.
# :::
#
# ### Figure 5: DP-SGD
#
# For **Figure 5 of the paper** targets are trained with {term}`DP-SGD` at fourteen epsilons, one network each, and $[s(1 - e^{-\epsilon}) + c]^2$ is fitted to
# the AUC of LR. This is not measured here: fourteen epsilons with eight networks each take about six hours of two cores. The fit is no test of the theorem. From $\epsilon = 5$ on the curve is flat whatever its parameters, and
# ten of the fourteen points lie there. The released notebook plots the AUC of the *negated* LR, so that a printed $.56$ is $.44$ of the score itself,
# and adds $0.015$ to the fitted curve.
#
# ### Figures 6 and 7: the size of the training set
#
# Targets are trained on random sets of other sizes and on {term}`coresets <coreset>`, the records of lowest curvature. References are always trained on
# half of the records, as in the released code. Sizes that nobody has measured have the authors' numbers alone; `-p unmeasured train` trains them.

# %%
of_half, half, others_sized = study.of_other_sizes(
    sized, measure.KINDS, sizes, models, size_targets, asked,
    train=unmeasured == "train", **recipe)
by_size = study.sizes(of_half, others_sized, games, half, draws).assign(data=sized)

# %% tags=["hide-input"]
for figure, caption in (
        (6, "**Figure 6 of the paper**: AUC against the size of random training sets, on {param}`sized:title`; the image alone, {param}`size_targets` "
            "networks of each size and {param}`models` references"),
        (7, "**Figure 7 of the paper**: NLL on random sets and on coresets of low curvature, AUC and peak balanced accuracy, the same networks")):
    plotting.show(
        exhibits.sizes_figure(by_size, figure), name=f"curvature-figure-{figure}",
        caption=caption + ". Hollow: what the authors' notebooks hold, for CIFAR-100 and ResNet-18; the paper prints no numbers.",
        alt=f"Figure {figure}: AUC against the number of training records, the authors' values as hollow marks.")


def at_size(attack, size):
    rows = by_size[(by_size["kind"] == "random") & (by_size["size"] == size)]
    return metrics.estimate(rows, attack, "auc").interval() if len(rows) else "not measured"


for place, size in (("few", sizes[0]), ("half", half)):
    results.name({f"{place}-{short}": at_size(name, size) for short, name in (
        ("lr", study.LR), ("nll", study.NLL), ("loss", "Yeom"), ("lira", study.TRUE))}, ".3f")
results.name({"half": half}, ",")

# %% [markdown]
# :::{finding}
# :claims: C9l contradicted
# References must be of the target's size. A network that was trained on 1,000 images knows them by heart: its plain loss has an AUC of {ours}`few-loss:value`. LR as
# released compares its curvature with networks of {ours}`half` images and has {ours}`few-lr:value`, far below guessing; NLL has {ours}`few-nll:value`. With a
# target of {ours}`half` images, like the references, the loss has {ours}`half-loss:value`, NLL {ours}`half-nll:value` and LR {ours}`half-lr:value`; LiRA with the true
# class has {ours}`half-lira:value`. In the authors' notebooks LR is ahead of the loss and of LiRA there.
# :::
#
# Members of a coreset are easy records and its non-members hard ones, so an order of records by ease alone tells them apart without any target. The
# authors' notebooks have {printed}`fig7_authors_code | m = 45000 | Curv ZO NLL | auroc` % for NLL on a coreset of 45,000 and
# {printed}`fig7_authors_code | m = 45000 | Yeom et al. (2018) | auroc` % for the plain loss. On random sets they have LR at
# {printed}`fig6_authors_code | random subset | m = 35000 | Curv ZO LR | auroc` and LiRA at
# {printed}`fig6_authors_code | random subset | m = 35000 | Carlini et al. (2022) | auroc` % with 35,000 records, although the text has LR ahead from 30
# to 40 % of the records on.
#
# (curvature-theory)=
# ### What privacy allows, and two slips on the way
#
# ````{prf:theorem} Output and curvature under differential privacy (Theorems 4.1 and 4.2)
# :label: curvature-theorem
# Let training be $\epsilon$-differentially private. Then the output probability of a record, with and without the record in the training set of $m$
# records, has divergence $D_{KL} \le \epsilon$. Let moreover losses lie in $[0, L]$, empirical and true risk differ by at most $\gamma$, the risk exceed
# that of the best predictor by at most $\Delta$, Hessians be $\rho$-Lipschitz, adjacent records differ by a random $\alpha$, and curvature be Gaussian
# with one standard deviation $\sigma$. Then with probability $1 - \delta$ the divergence of the curvature is at most
# $[L m (1 - e^{-\epsilon}) + c]^2/2\sigma^2$, with $c = (4m - 1)\gamma + 2(m - 1)\Delta + \tfrac{\rho}{6}\,\mathbb E\lVert\alpha\rVert^3 + L$.
# ````
#
# *Why.* Privacy keeps the ratio of two densities below $e^\epsilon$, and the divergence is the mean of its logarithm. For the second, privacy limits how
# much one record moves the expected loss. A Taylor expansion makes of that a bound $B$ on mean curvature, and two Gaussians with means in $[0, B]$ have
# divergence at most $B^2/2\sigma^2$.
#
# The second bound grows with $m$. The paper concludes (Theorem 4.3) that beyond some size curvature reveals more than the output, *if both bounds are
# tight*. They cannot be: curvature, too, is computed from the model, so by {term}`post-processing` it obeys the first bound, and the sharper
# $\epsilon\tanh(\epsilon/2)$, whatever $m$.
#
# *A cross term.* Eq. 29 has $(\mu_{\mathrm{out}}^2 - \mu_{\mathrm{in}}^2)/2\sigma^2$ for the divergence of two Gaussians. With means $0.4$ and $1.3$ and
# $\sigma = 0.7$ that is $1.56$; the divergence, $(\mu_{\mathrm{out}} - \mu_{\mathrm{in}})^2/2\sigma^2$, is $0.83$.
#
# *A factor of one half.* Let every model have the loss $x^2(1 - |x|)$ on $[-1, 1]$, and let the records be $-1$, $0$ and $1$. Nothing depends on
# training, so $\epsilon = 0$ and all gaps are zero; $L = 4/27$, $\rho = 6$, and neighbours lie at distance one. Lemma A.1 bounds the curvature at $0$ by
# $4/27 + 6/6 = 1.15$; it is $2$. The expansion lacks the one half before its second-order term.
#
# (curvature-claims)=
# ### Every claim, with its verdict

# %%
results_of_all = pd.concat([table_1, gaussian, ladder, precisions, estimated, fewer,
                            by_size, study.theorems(seed)], ignore_index=True)
of_first = (results_of_all["data"].isin([first]) | results_of_all["data"].isna()
            | (results_of_all["study"] == "sizes"))
own = {"dataset": first, "architecture": architecture, "epochs": epochs}
ran = {"dataset": "cifar100", "architecture": "strided_cnn:8,16,64",
       "epochs": 60, "members": 2000} if memorised else own
about = ["Figure 2", "Figure 3", "Table 1", "Table 5, Figure 4", "Tables 1 and 5",
         "Tables 2 to 5", "Appendix A.8", "Figure 5"]
on_sizes = {"dataset": sized, "architecture": architecture, "epochs": epochs}
verdicts = rules.judge_all("curvature", results_of_all[of_first], {
    **dict.fromkeys(about, ran), "Figure 6": on_sizes, "Figure 7": on_sizes})

# %% tags=["hide-input"]
claims.show("curvature", verdicts)

# %% [markdown]
# ### Where text and released code differ
#
# | the text | the released code | what it does |
# | --- | --- | --- |
# | trace, $n^2 q\,(u^\top v)$ | mean of $\lvert q\rvert$, times $h$ | measures the size of the Hessian, and kinks: {numref}`curvature-signals` |
# | Gaussian of the curvature | of $\log(\lvert\cdot\rvert + 10^{-22})$ | {numref}`curvature-figure-3` |
# | LR and its logarithm | two tests with different spreads; variance for standard deviation | {numref}`curvature-ladder` |
# | no word on precision | float32 | {numref}`curvature-precision` |
# | NLL with its sign turned (Eq. 12) | higher for members | ours: higher for members |
# | LiRA | with the largest probability, and by the rule called LR | {numref}`curvature-table-1` |
# | all methods on a par | two views for curvature and LiRA, one for the others | {numref}`curvature-table-2` |
# | one view | the mirror image | ours: the image |
# | balanced accuracy | where FPR + TPR is closest to one | ours: the largest over thresholds |
# | TPR at low FPR | interpolated between thresholds | ours: at most that FPR |
# | a threshold for each class (Song and Mittal) | one for all | ours: one for all |
# | ImageNet (not run) | LR with all standard deviations one, LiRA by the rule called NLL | not measured |
#
# ### Where this run differs from the paper
#
# | exhibit | the paper | this run | to close the gap |
# | --- | --- | --- | --- |
# | data | CIFAR-10, CIFAR-100, ImageNet | {ours}`sets` | ImageNet in a folder and weeks of a graphics card |
# | network | ResNet-18 and ResNet-50, 300 epochs, crops and mirroring | on {ours}`set` `strided_cnn:8,16,64`, 60 epochs, mirroring; on {ours}`second` {param}`architecture`, {param}`epochs` epochs, no augmentation | `mia publish curvature/cifar100` and a graphics card: half an hour for 18 ResNets of 30 epochs |
# | references, targets | 64 and 3 of other halves | {param}`references` against each of {param}`targets` | `-p models 64 -p references 62` |
# | Table 5 | 25,000 non-members | half of {param}`asked` | `-p asked 20000` |
# | Figure 5 | 14 epsilons, 20 epochs of CIFAR-100 | not run | six hours of two cores |
# | Figures 6 and 7 | 14 sizes, 2 and 6 networks a size | {param}`sizes` and half of all, {param}`size_targets` small networks a size | `mia publish curvature/sizes` |
#
# All targets come from one bank: they share records and references. Intervals cover the choice of target and of records, not that of the bank.
#
# On Colab, add a cell before the first one, and in it: `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`
