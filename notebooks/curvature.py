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
# LiRA, which asks once, finds {ours}`lira-tpr:value`. With the mirror image as well they find {ours}`curvature-two-tpr:value` and {ours}`lira-two-tpr:value`.**

# %% tags=["parameters", "hide-input"]
datasets: list[str] = ["cifar10"]  # of networks that generalise (see `mia data ls`) [data set; not empty; distinct]
memorised: bool = True  # whether to begin with networks that know their members by heart: 2,000 of 4,000 images of CIFAR-100
models: int = 32  # networks in complementary pairs, each trained on half of the training records [6..256; even]
targets: int = 8  # networks that are attacked, one of each pair [2..128]
references: int = 30  # other networks that an attack may use [4..254; even]
records: int = 0  # training records that the networks share; 0 for all of the set [0..60000]
asked: int = 4000  # records that are attacked, the first ones: half of them in float64, too, of a quarter with the Hessian [300..60000]
architecture: str = "batchnorm_cnn:24,48,96"  # of the networks [architecture]
epochs: int = 20  # of training [1..500]
batch_size: int = 256  # of training [1..10000]
learning_rate: float = 0.15  # the highest, of SGD [1e-6..10.0]
sizes: list[int] = [1000, 5000, 45000]  # random training sets of Figures 6 and 7, besides halves of all records [10..49000; ascending; not empty]
coreset_sizes: list[int] = [1000, 5000, 25000, 45000]  # coresets of Figure 7 [10..49000; ascending; not empty]
hand_epochs: int = 40  # of the networks of "One target by hand" [1..500]
seed: int = 0  # of splits and training [0..1000000]
draws: int = 60  # resamples of records behind each interval [10..10000]

# %% tags=["hide-input"]
import numpy as np
import pandas as pd

from mia_book import publishing
from mia_book.evidence import claims, figures, results
from mia_lib import data, membership, metrics, signals, training
from mia_lib.attacks import baselines
from mia_lib.attacks import curvature as attack
from mia_book.evidence import rules
from mia_book.chapters.curvature import exhibits, measure, study
from mia_lib.signals import curvature

sets = [*[study.MEMORISED] * memorised, *datasets]
first, by_heart = sets[0], publishing.catalogue()["curvature/memorised"].usual()


def number(attack, metric, **where):
    return metrics.estimate(frame, attack, metric, data=first, **where).interval()

# %%
recipe = {"records": records or None, "architecture": architecture, "epochs": epochs,
          "batch_size": batch_size, "learning_rate": learning_rate, "seed": seed}
curved, games, scored, frames = {}, {}, {}, []
for name in sets:
    curved[name], bank = study.measured(name, models, asked, **recipe)
    game = games[name] = study.attacked(curved[name], targets, references)
    table, *scored[name] = study.table_1(name, curved[name], bank, game, draws)
    frames += [table, study.queries(name, curved[name], bank, game, draws)]
frame = pd.concat(frames, ignore_index=True)

# %% tags=["remove-input"]
asks = 4 * study.ITERATIONS
results.name({"set": exhibits.name_of(first), "second": exhibits.name_of(sets[-1]), "sets": " and ".join(map(exhibits.name_of, sets)),
              "asks": asks, "asks-twice": 2 * asks, "heart-members": by_heart["records"] // 2, "heart-epochs": by_heart["epochs"]})
for word, name, count in (("curvature", study.RATIO, asks), ("curvature-two", study.RATIO, 2 * asks), ("lira", study.FIXED, 1), ("lira-two", study.FIXED, 2)):
    results.name({f"{word}-tpr": number(name, "tpr_at_fpr=0.01", study="queries", queries=count)}, ".1%")
    results.name({f"{word}-auc": number(name, "auc", study="queries", queries=count)})
figures.show(
    exhibits.figure_4(*scored[first]), name="curvature-figure-4",
    caption="**Figure 4 of the paper**, all eight methods as released, on {ours}`set`: members found (true positive rate) against false alarms, mean over "
            "{param}`targets` networks. *LiRA, one spread* is LiRA as in its own paper, from two views. Hollow: the paper's, of ResNet-18. Dashed: guessing.",
    alt="ROC curves of nine attacks on logarithmic axes, with the paper's points at a false positive rate of one in a thousand as hollow marks, and a "
        "dashed line of guessing below them.")

# %% [markdown]
# Deepak Ravikumar, Efstathia Soufleri and Kaushik Roy, *Curvature Clues: Decoding Deep Learning Privacy with Input Loss Curvature*, NeurIPS 2024
# {cite}`ravikumar2024curvature`. Run it again: `mia run curvature`, or with other settings, `mia run curvature -p references 8`
# ([how to rerun](../book/rerun.md)).
#
# ## What the attacker has
#
# Somebody trained a network on half of the training images of a set; for each image a coin decided. The attacker has an image with its label and
# wants to know how the coin fell. It may ask the network for its loss at any input, and it may train {term}`reference models <reference model>` of its
# own on other halves. That is the [membership game](../book/game.md). Curvature, LiRA, RMIA and MAST (Sablayrolles et al.) use references with and without
# the image, Watson (difficulty calibration) and Attack R (Ye et al.) those without it, Yeom and Song and Mittal none. LiRA as released and Song and Mittal
# see all probabilities, the others the loss alone ([what each attack needs](../book/guide.md)). About one image the paper's curvature asks
# {ours}`asks-twice` times, LiRA twice, and the rest once.
#
# ## One target by hand: how the loss bends around an image
#
# A network that was trained on an image should have a loss there that is low and flat. Around an image that it has not seen, the loss should rise and
# bend ({numref}`curvature-figure-2`). How much it bends also depends on the image. So the attack compares the curvature under the target with two
# Gaussians, one of networks that were trained on the image and one of others. This cell trains eight small networks on halves of 600 images of
# FashionMNIST, which lie in the repository, measures how the loss curves around each image, and attacks the first network.

# %%
images = data.load("fashion_mnist_20k").take(np.arange(600))
inside = membership.balanced_halves(600, models=8, seed=seed)
config = training.TrainConfig("strided_cnn:4,8,32", epochs=hand_epochs, batch_size=64,
                              optimizer="sgd", learning_rate=0.05, momentum=0.9,
                              seed=seed)
networks = training.train(images, inside, config)
bent = curvature.traces(networks, images, "released_code", h=measure.STEP)
log_bent = attack.log_curvature(bent)  # [models, images]
margin = signals.logit_scaled_confidence(networks, images)
others = membership.references_of(0, len(networks))  # without the target's complement
by_hand = {"curvature": attack.nll(log_bent[0], log_bent[others], inside[others]),
           "LiRA": baselines.lira_online(margin[0], margin[others], inside[others])}
{name: round(metrics.auc(score, inside[0]), 3) for name, score in by_hand.items()}

# %% [markdown]
# The number is the {term}`AUC`; guessing has one half. LiRA is the same comparison for the log odds of the true class, from one query in the place of
# {ours}`asks`. The target's partner, which was trained on all other images, stays out of the references: it would give the answer away.
#
# ## The method
#
# ```{admonition} The paper's score
# :class: paper
# The {term}`input loss curvature` of a record $(x, y)$ under a model $f$ is the trace of a Hessian,
# $\mathrm{Curv} = \operatorname{tr} H$ with $H = \nabla^2_x\, \ell(f(x), y)$. With random vectors $u$, $v$ of entries $\pm 1$, four losses give
#
# $$
# \begin{aligned} 4h^2 q &= \ell(x + hv + hu) - \ell(x - hv + hu) \\
# &\quad - \ell(x + hv - hu) + \ell(x - hv - hu), \qquad q = v^\top H u + O(h^2), \end{aligned}
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
probed = study.probe_of_stranger(networks, images, inside[0], seed)
figures.explore(
    exhibits.probe_chart(probed, measure.STEP), exhibits.probe_figure(probed, measure.STEP), name="curvature-idea",
    instructions="Move the step. Up to which step is the estimate the Hessian's own number (dashed)? Then change the label: where does it matter?",
    caption="One probe of one image that the network was not trained on and gets wrong: the size of the estimate $q$ against the step $h$ with two labels, "
            "and $v^\\top H u$ on the piece of the network around the image. While the four points lie on that piece, the label makes no difference.",
    alt="Size of the estimate q against the step on logarithmic axes, for the image's label and for the network's own, with a level line for the "
        "Hessian's own number. The two curves agree at small steps and part at larger ones.")

# %% [markdown]
# **The attack** (ZO, *zero-order*: without derivatives) fits two Gaussians to the log curvature $c$ of a record under references, IN and OUT. Its score is
# $\mathrm{LR} = \mathcal N(c;\, \mu_{\mathrm{in}}, \sigma^2_{\mathrm{in}}) / \mathcal N(c;\, \mu_{\mathrm{out}}, \sigma^2_{\mathrm{out}})$, or its logarithm, NLL. Since
# the logarithm rises strictly, *LR and NLL must rank all records alike*. In the paper they do not: on CIFAR-100 their AUCs are
# {printed}`table1 | CIFAR100 | Curv ZO LR | auroc` and {printed}`table1 | CIFAR100 | Curv ZO NLL | auroc` %. The released code computes two other scores
# under these names ({ref}`below <curvature-ladder-section>`).
#
# ## All methods: Tables 1 to 5
#
# The paper attacks three ResNets with 64 references. This run attacks {param}`targets` small networks with {param}`references` references each, on
# {ours}`sets`. Verdicts on this page are about those on {ours}`set`: they are right on {ours}`fit-in` of their members and on {ours}`fit-out` of the others.
# Networks on *4,000 images of CIFAR-100* had {ours}`heart-members` of these for {ours}`heart-epochs` epochs, with mirrored images, and know them by heart. Those
# on other sets, {param}`architecture`, had half of the training images as they are for {param}`epochs` epochs.

# %% tags=["hide-input"]
results.name({f"{word}-auc": number(name, "auc", study="methods", protocol="as released") for word, name in (
    ("nll", study.NLL), ("yeom", "Yeom"), ("lira-released", study.RELEASED), ("lira-true", study.TRUE))}, ".3f")
results.name({word: rules.number_of("curvature", claim, frame[frame["data"] == first], sign) for word, sign, claim in (
    ("behind-released", -1, "C3"), ("behind-one-view", -1, "C3v"), ("behind-lira", -1, "A1"), ("second-view", 1, "C6"))}, ".1f")
right, trained = (curved[first].true == curved[first].top)[..., 0], curved[first].members
results.name({"fit-in": right[trained].mean(), "fit-out": right[~trained].mean()}, ".1%")
results.show_table(
    exhibits.table_one(frame), name="curvature-table-1",
    caption="**Table 1 of the paper**, in percent. The upper eight methods run as released, curvature and LiRA with the mirror image, too; the lower ones are "
            "ours: *largest class* is a proper ratio of the largest probability, *released rule* the code's LR of the true class's. MAST as released, with the midpoint of the mean losses with and without the image. AUC with 95 % intervals over {param}`targets` networks and their images; accuracy is a {ref}`peak <peak-accuracy>`. Paper: on all of CIFAR-100.")
results.show_table(
    exhibits.views_table(frame), name="curvature-table-2",
    caption="**Tables 2 to 4 of the paper**: AUC in percent from the image alone and with its mirror image. The paper's networks and those on "
            "4,000 images of CIFAR-100 were trained with mirrored images, all others without.")
results.show_table(
    exhibits.table_five(frame, first), name="curvature-table-5",
    caption="**Table 5 of the paper** on {ours}`set`: members found at low rates of false alarms, in percent, as released. A rate that fewer than one "
            "non-member would make is below resolution. The paper's on CIFAR-100.")

# %% [markdown]
# :::{finding}
# :claims: C3 inconclusive, C3v contradicted, A1 contradicted, C4 reproduced, C5 reproduced, C6 reproduced
# On {ours}`set` NLL as released has an AUC of {ours}`nll-auc:value`, and the plain loss (Yeom) has {ours}`yeom-auc:value`: these networks know their members
# so well that the loss alone tells them. With one view for every method NLL is {ours}`behind-one-view` points behind the best. In the paper NLL has the
# best AUC on all three sets. On {ours}`second` all attacks are weaker, and MAST, Watson and Attack R are ahead of NLL.
#
# The released code gives LiRA the *largest* probability, where its own paper takes the true class's {cite}`carlini2022membership`, and scores it by the
# rule that the code calls LR. So run, its AUC on {ours}`set` is {ours}`lira-released-auc:value`; with the true class and a proper likelihood ratio it is
# {ours}`lira-true-auc:value`. NLL as released is {ours}`behind-lira` points behind LiRA so repaired, and the curvature's own proper ratio half as far.
#
# At few false alarms LR is first of the eight, as in the paper. At one in a thousand it finds {ours}`curvature-table-5 | Curv ZO LR | TPR at 0.1 %` % of the
# members on {ours}`set`, NLL {ours}`curvature-table-5 | Curv ZO NLL | TPR at 0.1 %` %. LiRA, which the paper did not run so, finds
# {ours}`curvature-table-5 | LiRA, true class | TPR at 0.1 %` % with the true class and a variance for each image, {ours}`curvature-table-5 | LiRA, one spread | TPR at 0.1 %` % with one for all: whether it is ahead hangs on that. The second view adds {ours}`second-view` points of AUC to NLL and LR, on average. On
# {ours}`second` it takes away, as one would expect of networks that were trained without mirrored images.
# :::
#
# ## Count the queries

# %% tags=["hide-input"]
results.name({"tied-tpr": number(study.TIED, "tpr_at_fpr=0.01", study="queries", queries=2 * asks)}, ".1%")
results.name({"precise-second": curved[sets[-1]].precise.shape[1], "exact-images": curved[first].exact.shape[1]})
results.show_table(
    exhibits.queries_table(frame), name="curvature-queries",
    caption="Attacks by the number of queries of an image, in percent, with 95 % intervals over {param}`targets` networks and images; {param}`references` "
            "references. Curvature in float64, on {ours}`second` of the first {ours}`precise-second` images. LiRA asks for 18 shifted and mirrored views in its own paper. *One spread*: one variance for all images; *tied*: one for each; else two.")

# %% [markdown]
# :::{finding}
# :claims: A4 reproduced
# At one false alarm in a hundred on {ours}`set` LiRA with one spread finds {ours}`lira-tpr:value` of the members with one query and {ours}`lira-two-tpr:value` with two; the curvature's log ratio
# {ours}`curvature-tpr:value` with forty and {ours}`curvature-two-tpr:value` with eighty, and the best form of it that we tried, one variance of each image for both hypotheses
# (*tied*), {ours}`tied-tpr:value` with eighty. Views that training did not show do not help: with shifted images, averaged, LiRA finds less than with the image alone.
# :::
#
# ## What held and what did not
#
# :::{finding}
# :claims: C1 reproduced, C4 reproduced, C5 reproduced, C6 reproduced, C13 checked, C3 inconclusive, A1 contradicted, A2 reproduced, A4 reproduced
# **What held.** The loss curves more around images that the network was not trained on. On {ours}`set`, of the eight methods as released LR finds most members at few false alarms; NLL has the better AUC of the two, and the mirror image helps both.
#
# **What did not.** NLL is not clearly ahead of the plain loss. LiRA as in its own paper finds more with two queries than the curvature with eighty.
# What the curvature finds beyond the exact Hessian is due to the label ({numref}`curvature-signals`), which LiRA sees directly.
#
# **What stays open.** Whether ResNets with 25,000 members give the same picture, Figure 5, and large coresets.
# :::
#
# ## Exercises
#
# ````{exercise} Fewer references (a change of parameters)
# :label: curvature-exercise-references
# Run `mia run curvature -p references 8`. Which rows of {numref}`curvature-queries` lose most, and which stay? What does that say about one spread for
# all images?
# ````
# ````{solution} curvature-exercise-references
# :class: dropdown
# Yeom's attack uses no reference and stays. Rows with a variance for each image lose most: with eight references each variance comes from four values.
# One spread for all images is estimated from all of them, and loses least.
# ````
# ````{exercise} Which factor?
# :label: curvature-exercise-factor
# For a quadratic $\ell = \tfrac12 x^\top H x$ show that $q = v^\top H u$ exactly. Compute $\mathbb E[q\, v u^\top]$ for entries $\pm 1$ and for vectors
# on the unit sphere. Where does the paper's $n^2$ belong?
# ````
# ````{solution} curvature-exercise-factor
# :class: dropdown
# All first-order terms cancel and the second-order ones leave $4h^2\, v^\top H u$. With $\mathbb E[uu^\top] = \mathbb E[vv^\top] = C$,
# $\mathbb E[q\,vu^\top] = C H C$: it is $H$ for $\pm 1$ ($C = I$) and $H / n^2$ on the sphere ($C = I/n$).
# ````
#
# ## Quiz
#
# Choose an option and open it: it says why it is right, or what it mistakes.
#
# :::{quiz} curvature
# :::
#
# ## In more depth
#
# ### Figures 1 to 3: which images bend, many records, one record

# %%
for name in sets:
    frame = pd.concat([frame, study.gaussian(name, curved[name], games[name]), *[
        of_study(name, curved[name], games[name], draws)
        for of_study in (study.precisions, study.estimators, study.by_references)]])

# %% tags=["hide-input"]
results.name({"threshold-auc": number(study.CURVATURE, "auc", study="methods", protocol="one view")})
results.name({"distance": number(study.CURVATURE, "distance", study="gaussian"),
              "zero": number(study.CURVATURE, "zero", study="precision", precision="float32").value,
              **{f"{word}-{precision}": number(name, "tpr_at_fpr=0.01", study="precision", precision=precision)
                 for word, name in (("nll", study.NLL), ("lr", study.LR)) for precision in ("float32", "float64")}}, ".1%")
figures.show(
    exhibits.extremes(images, np.average(log_bent, 0, ~inside)), name="curvature-figure-1",
    caption="**Figure 1 of the paper**, left part, on FashionMNIST: the images with the lowest and the highest mean log curvature under networks "
            "that were not trained on them. The paper calls images of low curvature prototypical and images of high curvature atypical.",
    alt="Two rows of eight small images with their labels: the lowest curvature above, the highest below.")
figures.show(
    exhibits.figure_2(curved, list(game.targets)), name="curvature-figure-2",
    caption="**Figure 2 of the paper**, on {ours}`sets`: log curvature of members and of non-members, all targets and images together, in float64.",
    alt="A panel for each data set with two histograms of log curvature, of members and of non-members.")
figures.show(
    exhibits.figure_3(curved[first]), name="curvature-figure-3",
    caption="**Figure 3 of the paper**, for three images of {ours}`set`: log curvature under networks trained on the image and under the others, a "
            "tick a network, and the Gaussians that the attack fits. The images stand at three percentiles of how far the two means lie apart.",
    alt="Three panels, each with two rows of ticks and two Gaussian curves over log curvature.")

# %% [markdown]
# :::{finding}
# :claims: C1 reproduced, C2 contradicted
# The loss curves less around members: as an attack by itself, without references, low curvature on {ours}`set` has an AUC of {ours}`threshold-auc`. Values
# of one record over many networks are not quite Gaussian: what the Gaussians of the references predict of the target's values is wrong by up to
# {ours}`distance`, on average over members and others (the distance of Kolmogorov and Smirnov). Our rule allows five points.
# :::
#
# (curvature-ladder-section)=
# ### LR and NLL, precision, and fewer references (Appendix A.8)
#
# The code passes the variance where the Gaussian density expects the standard deviation; both scores share this slip. NLL makes a second change: it
# uses the IN spread for both Gaussians, so that the terms in $c^2$ cancel. LR makes another one: it adds the likelihoods of the two views, where
# independent views would be multiplied. {numref}`curvature-queries` has both beside the log ratio itself.
#
# The code computes losses in float32. Where a network is sure of an image all four are equal, and the curvature is exactly zero; the code adds
# $10^{-22}$ before it takes the logarithm, which is then $-50.66$. At low rates, the paper says, LR with 64 references is about where LiRA is with 256.
#
# :::{finding}
# :claims: A3 inconclusive, A5 reproduced, C7 reproduced
# On {ours}`set` float32 rounds {ours}`zero` of the curvatures to zero. This lowers what NLL finds at one false alarm in a hundred from
# {ours}`nll-float64:value` to {ours}`nll-float32:value` of the members. LR goes the other way, from {ours}`lr-float64:value` to {ours}`lr-float32:value`. On
# {ours}`second` networks are less sure, and precision changes nothing. Whether in float64 the log-likelihood ratio itself does as well as the better
# of the two released scores, this run does not decide. With eight references LR finds more than half of what LiRA, as released, finds with all at one false alarm in a thousand, which is little ({numref}`curvature-table-5`).
# :::
#
# (curvature-what)=
# ### What does the number measure?
#
# By {prf:ref}`curvature-label` exact curvature cannot see the label, and differences see it through kinks. So we run one likelihood ratio on several
# signals of the same images.

# %% tags=["hide-input"]
results.name({f"signal-{word}": number(name, "auc", study="signals") for word, name in zip(
    ("released", "own-label", "exact", "top", "true"), study.SIGNALS, strict=True)}, ".3f")
results.show_table(
    exhibits.signals_table(frame), name="curvature-signals",
    caption="AUC of the log-likelihood ratio on several signals, in percent with 95 % intervals over networks and the first {ours}`exact-images` images, the image alone. The last two rows are no curvature.")

# %% [markdown]
# :::{finding}
# :claims: A2 reproduced
# On {ours}`set` the released estimate has an AUC of {ours}`signal-released:value`. With each network's own label in the place of the true one it has
# {ours}`signal-own-label:value`, and the exact norm, which cannot see the label, {ours}`signal-exact:value`. So what four losses find beyond the exact
# curvature is due to the label. The true class's probability, one query, has {ours}`signal-true:value`.
# :::
#
# ### Figures 6 and 7: the size of the training set
#
# Targets are trained on random sets of other sizes and on {term}`coresets <coreset>`, the records of lowest curvature. Members of a coreset are easy records
# and its non-members hard ones, so an order of records by ease alone tells them apart without any target. References are always trained on half of the
# records, as in the released code.

# %%
of_half, half, of_sizes = study.of_other_sizes(sizes, coreset_sizes, models)
halves = study.attacked(of_half, targets, references)
frame = pd.concat([frame, study.sizes(of_half, half, of_sizes, halves, draws)])

# %% tags=["hide-input"]
figures.show(
    exhibits.sizes_figure(frame, 6), name="curvature-figure-6",
    caption="**Figure 6 of the paper**: AUC against the size of random training sets, on CIFAR-100; the image alone, eight small networks of each size and "
            "{param}`models` references. Hollow: what the authors' notebooks hold, for ResNet-18; the paper prints no numbers.",
    alt="AUC of four attacks against the number of training records, the authors' values as hollow marks.")
figures.show(
    exhibits.sizes_figure(frame, 7), name="curvature-figure-7",
    caption="**Figure 7 of the paper**: NLL on random sets and on coresets of low curvature, AUC and peak balanced accuracy, the same networks.",
    alt="Two panels, AUC and balanced accuracy of NLL against the number of training records, for random sets and coresets.")
for place, size in (("few", sizes[0]), ("half", half), ("most", sizes[-1])):
    results.name({place: size, **{f"{place}-{word}": metrics.estimate(frame, name, "auc", kind="random", size=size).interval() for word, name in (
        ("lr", study.LR), ("nll", study.NLL), ("loss", "Yeom"), ("lira", study.TRUE), ("watson", "Watson"))}}, ".3f")
results.name({f"{short}-{word}": metrics.estimate(frame, name, "auc", kind="coreset", size=coreset_sizes[k]).interval() for word, k in (("few", 0), ("most", -1))
              for short, name in (("core", study.NLL), ("ease", "no target"))}, ".3f")

# %% [markdown]
# :::{finding}
# :claims: C9 contradicted, C9l contradicted, C10 reproduced
# Gaussians that are fitted to networks of another size mislead. A network that was trained on {ours}`few` images knows them by heart: its plain loss has an AUC of
# {ours}`few-loss:value`. LR as released compares its curvature with networks of {ours}`half` images and has {ours}`few-lr:value`, far below guessing; the loss less its mean under the same references (Watson), which fits no Gaussian, has {ours}`few-watson:value`. With a
# target of {ours}`half` images, like the references, the loss has {ours}`half-loss:value`, NLL {ours}`half-nll:value`, LR {ours}`half-lr:value` and LiRA with
# the true class {ours}`half-lira:value`. In the authors' notebooks LR is ahead of the loss and of LiRA there. NLL falls with the size, as in the paper, from
# {ours}`few-nll:value` to {ours}`most-nll:value` with {ours}`most` images. But the loss is ahead of it there as well, with {ours}`most-loss:value`. On
# coresets NLL goes from {ours}`core-few:value` on the smallest to {ours}`core-most:value` on the largest. Ranking records by their curvature under the references, without any target, has {ours}`ease-few:value` and {ours}`ease-most:value` there.
# :::
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
# The first follows because privacy keeps the ratio of two densities below $e^\epsilon$. For the second, privacy limits how much one record moves the
# expected loss, and a Taylor expansion makes of that a bound on mean curvature. It grows with $m$. The paper concludes (Theorem 4.3) that beyond some size
# curvature reveals more than the output, *if both bounds are tight*. They cannot be: curvature, too, is computed from the model, so by
# {term}`post-processing` it obeys the first bound, and the sharper $\epsilon\tanh(\epsilon/2)$, whatever $m$.
#
# *Two slips.* Eq. 29 has $(\mu_{\mathrm{out}}^2 - \mu_{\mathrm{in}}^2)/2\sigma^2$ for the divergence of two Gaussians, in the place of
# $(\mu_{\mathrm{out}} - \mu_{\mathrm{in}})^2/2\sigma^2$. And the expansion lacks the one half before its second-order term. Let every model have the loss
# $x^2(1 - |x|)$ on $[-1, 1]$, with records $-1$, $0$ and $1$. Nothing depends on training, so $\epsilon = 0$ and all gaps are zero; $L = 4/27$,
# $\rho = 6$, and neighbours lie at distance one. Lemma A.1 bounds the curvature at $0$ by $4/27 + 6/6 = 1.15$; it is $2$.
#
# ### Every claim, with its verdict

# %%
frame = pd.concat([frame, study.theorems(seed)])
of_first = frame[frame["data"].isna() | (frame["data"] == first)]
own = {"dataset": first, "architecture": architecture, "epochs": epochs}
ran = own if not memorised else {name: by_heart[name] for name in own} | {
    "members": by_heart["records"] // 2}
by_exhibit = {claim["exhibit"]: ran for claim in claims.claims("curvature").values()}
by_exhibit |= dict.fromkeys(("Figure 6", "Figure 7"), own | {"dataset": "cifar100"})
claims.show("curvature", rules.judge_all("curvature", of_first, by_exhibit))

# %% [markdown]
# ### Where text and released code differ
#
# | the text | the released code | what it does |
# | --- | --- | --- |
# | trace, $n^2 q\,(u^\top v)$ | mean of $\lvert q\rvert$, times $h$ | measures the size of the Hessian, and kinks: {numref}`curvature-signals` |
# | Gaussian of the curvature | of $\log(\lvert\cdot\rvert + 10^{-22})$ | {numref}`curvature-figure-3` |
# | balanced accuracy | where FPR + TPR is closest to one | ours: the largest over thresholds |
# | TPR at low FPR | interpolated between thresholds | ours: at most that FPR |
# | a threshold for each class (Song and Mittal) | one for all | ours: one for all |
# | LR ahead of LiRA from 30 to 40 % of the records on | with 35,000 records LR {printed}`fig6_authors_code | random subset | m = 35000 | Curv ZO LR | auroc`, LiRA {printed}`fig6_authors_code | random subset | m = 35000 | Carlini et al. (2022) | auroc` % | {numref}`curvature-figure-6` |
# | ImageNet (not run) | LR with all standard deviations one, LiRA by the rule called NLL | not measured |
#
# ### Where this run differs from the paper
#
# | exhibit | the paper | this run | to close the gap |
# | --- | --- | --- | --- |
# | data and networks | CIFAR-10, CIFAR-100, ImageNet; ResNet-18 and ResNet-50, 300 epochs, crops and mirroring | 4,000 images of CIFAR-100: `strided_cnn:8,16,64`, {ours}`heart-epochs` epochs, mirroring; other sets: {param}`architecture`, {param}`epochs` epochs, no augmentation | half an hour of a graphics card for 18 ResNets of 30 epochs; ImageNet weeks |
# | references, targets | 64 and 3 of other halves | {param}`references` against each of {param}`targets` | `-p models 64 -p references 62` |
# | Figure 5 | {term}`DP-SGD` at 14 epsilons, 20 epochs of CIFAR-100; the fitted curve is flat where ten of the fourteen points lie, and the released notebook plots the *negated* LR and adds $0.015$ to the curve | not run | six hours of two cores |
# | Figures 6 and 7 | 14 sizes, 2 and 6 networks a size | {param}`sizes` and half of all, coresets of {param}`coreset_sizes`, eight small networks a size | an hour of two cores for each other size |
#
# All targets come from one bank: they share records and references. Intervals cover the choice of target and of records, not that of the bank.
#
# On Colab, add a cell before the first one, and in it: `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`
