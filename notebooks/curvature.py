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
# # Input loss curvature
#
# **Four losses around an image tell how the loss curves there. From {ours}`asks` such queries and {param}`references` other networks an attacker finds
# {ours}`curvature-tpr:value` of the training images of networks that know them by heart, if one in a hundred of the other images may be taken for one by mistake. LiRA and MAST, older
# attacks that ask once, find {ours}`lira-tpr:value` and {ours}`mast-tpr:value`. On networks that do not, with the paper's 25,000 images ({ours}`second`), curvature finds {ours}`curvature-second-tpr:value`,
# these {ours}`lira-second-tpr:value` and {ours}`mast-second-tpr:value`.**

# %% tags=["parameters", "hide-input"]
datasets: list[str] = ["cifar10"]  # of networks that generalise (see `mia data ls`) [data set; not empty; distinct]
memorised: bool = True  # whether to begin with networks that know their members by heart: 2,000 of 4,000 images of CIFAR-100
others: bool = True  # whether claims are asked on the other published networks, too
models: int = 32  # networks in complementary pairs, each trained on half of the training records [6..256; even]
targets: int = 32  # networks that are attacked, the first ones [2..256; verdicts from 8]
references: int = 30  # other networks that an attack may use [4..254; even]
few: int = 8  # fewer of them, with which claims are asked again [4..254; even]
records: int = 0  # training records that the networks share; 0 for all of the set [0..60000]
asked: int = 4000  # records that are attacked, the first ones: half of them in float64, too, of a quarter with the Hessian [300..60000]
architecture: str = "batchnorm_cnn:24,48,96"  # of the networks [architecture]
epochs: int = 20  # of training [1..500]
batch_size: int = 256  # of training [1..10000]
learning_rate: float = 0.15  # the highest, of SGD [1e-6..10.0]
sizes: list[int] = [1000, 5000, 45000]  # random training sets of small networks in Figure 7, besides halves of all records [10..49000; ascending; not empty]
coreset_sizes: list[int] = [1000, 5000, 25000, 45000]  # coresets of Figure 7 [10..49000; ascending; not empty]
hand_epochs: int = 40  # of the networks of "One target by hand" [1..500]
seed: int = 0  # of splits and training [0..1000000]
draws: int = 20  # resamples of records behind each interval [10..10000]

# %% [markdown]
# The figure shows one such estimate, $q$. It combines the losses at four points around an image, a step $h$ away, so that for small $h$ it becomes a number that the
# second derivatives of the loss, its {term}`Hessian`, give exactly. A network of ReLUs is linear in pieces, with {term}`kinks <kink>` between them; the authors' code takes the
# step at the dotted line.

# %% tags=["hide-input"]
import numpy as np
import pandas as pd

from mia_book import publishing
from mia_book.evidence import claims, figures, results, rules
from mia_lib import data, membership, metrics, signals, training
from mia_lib.attacks import baselines
from mia_lib.attacks import curvature as attack
from mia_book.chapters.curvature import exhibits, measure, study
from mia_lib.signals import curvature

images = data.load("fashion_mnist_20k").take(np.arange(600))
members = membership.balanced_halves(600, models=8, seed=seed)
config = training.TrainConfig("strided_cnn:4,8,32", epochs=hand_epochs, batch_size=64, optimizer="sgd", learning_rate=0.05, momentum=0.9, seed=seed)
networks = training.train(images, members, config)
probes = study.strangers(networks, images, members[0], measure.STEP, seed)
probed = study.probe_of_stranger(networks, images, probes, seed)
probe = probes.loc[probes["left"].idxmax()]
results.name({"strangers": len(probes), "strangers-left": int(probes["left"].sum())})
results.name({"q-label": probe["q"], "q-hessian": probe["product"], "mean-q": probes["q"].abs().mean(), "mean-hessian": probes["product"].abs().mean()}, ".3g")
figures.explore(
    exhibits.probe_chart(probed, measure.STEP), exhibits.probe_figure(probed, measure.STEP), name="curvature-idea")

# %% [markdown]
# :::{caption} curvature-idea
# :alt: Size of the estimate q against the step on logarithmic axes, for the image's label and for the network's own,
#   with a level line for the Hessian's own number. The two curves agree at small steps and part at larger ones.
# :instructions: Move the step. Up to which step is the estimate the Hessian's own number (dashed)? Then change the
#   label: where does it matter?
#
# One estimate of curvature, $q$, of one image that the network was not trained on and gets wrong: its size against the
# step $h$, with the image's label and with the network's own. Dashed: the Hessian's number, on the piece of the network
# around the image. Dotted: the step of the authors' code.
# :::

# %% [markdown]
# **At that step differences of losses measure kinks, and not the Hessian alone.** For this image they give {ours}`q-label`, and the Hessian {ours}`q-hessian`. Of {ours}`strangers` images that the network has not seen and gets
# wrong, the two numbers differ by more than a tenth on {ours}`strangers-left`. These weigh most: over all the mean
# size of $q$ is {ours}`mean-q`, that of the Hessian's number {ours}`mean-hessian`. The label, which the Hessian cannot see, enters through the kinks.
#
# Deepak Ravikumar, Efstathia Soufleri and Kaushik Roy, *Curvature Clues: Decoding Deep Learning Privacy with Input Loss Curvature*, NeurIPS 2024
# {cite}`ravikumar2024curvature`. Run it again: `mia run curvature`, or with other settings, `mia run curvature -p references 16`
# ([how to rerun](../book/rerun.md)).
#
# ## What the attacker has
#
# Somebody trained a network on half of the training images of a set; for each image a coin decided. The attacker has an image with its label and
# wants to know how the coin fell. It may ask the network for its loss at any input, and train {term}`reference models <reference model>` of its
# own on other halves. That is the [membership game](../book/game.md).
#
# ## Four losses around one image
#
# Step from the image in two random directions, forwards and backwards. Whatever is linear in the step cancels in
# $\ell_1 - \ell_2 - \ell_3 + \ell_4$; what is left says how the loss curves.

# %% tags=["hide-input"]
points, losses = study.four_points(networks.model(0), images.x[int(probe["record"])], int(probe["label"]), 200 * measure.STEP, seed)
figures.show(exhibits.four_losses(points, losses), name="curvature-four")

# %% [markdown]
# :::{caption} curvature-four
# :alt: Five small pictures in a row, an image of clothing and four grainy copies of it, with a loss below each.
#
# The image and the four points around it, each with its loss. So that the step can be seen it is 200 times the released
# one.
# :::

# %% [markdown]
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
# *An example.* Let $\ell(x) = \tfrac12 x_1^2 + \tfrac32 x_2^2$, so that $H$ has trace $4$. With $v = u$, $q = 4$ and $u^\top v = 2$; with
# $v = -u$ both change sign; with $v \perp u$, $u^\top v = 0$. So $q\,(u^\top v)$ is $8, 8, 0, 0$, and its mean is the trace. No factor $n^2$ is needed
# ({ref}`exercise <curvature-exercise-factor>`).
#
# **The released code does not compute the trace.** It averages $|q|$ over the ten draws and multiplies by $h$. This grows with the *size* of the Hessian's
# entries. It can be exactly zero, so the code adds a small number before it takes the logarithm. *Curvature* means the released number from here on.
#
# ## One target by hand
#
# A network that was trained on an image should have a loss there that is low and flat. How much it bends also depends on the image. So the attack compares
# the curvature under the target with two Gaussians, one of networks that were trained on the image and one of others. This cell trains eight small
# networks on halves of 600 images of FashionMNIST, which lie in the repository, and attacks the first one.

# %%
images = data.load("fashion_mnist_20k").take(np.arange(600))
members = membership.balanced_halves(600, models=8, seed=seed)
networks = training.train(images, members, config)  # kept since the figure above
bent = curvature.traces(networks, images, "released_code", h=measure.STEP)
log_bent = attack.log_curvature(bent)  # [models, images]
margin = signals.logit_scaled_confidence(networks, images)
others_of = membership.references_of(0, len(networks))  # without its complement
by_hand = {
    "curvature": attack.nll(log_bent[0], log_bent[others_of], members[others_of]),
    "LiRA": baselines.lira_online(margin[0], margin[others_of], members[others_of]),
}
{name: round(metrics.auc(score, members[0]), 3) for name, score in by_hand.items()}

# %% [markdown]
# The number is the {term}`AUC`; guessing has one half. {term}`LiRA` makes the same comparison for the log odds of the true class, from one query in the place of
# {ours}`asks`. The target's partner, which was trained on all other images, stays out of the references: it would give the answer away.
#
# ## What the number sees
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
#
# {numref}`curvature-idea` shows it: while the four points lie on one piece the two labels agree, and at the released step they do not.
#
# ## Where curvature helps
#
# We attack all networks of {ours}`set-count` sets. Those *by heart* were trained on {ours}`heart-members` images of CIFAR-100 for {ours}`heart-epochs` epochs; they are right on
# {ours}`fit-in` of these and on {ours}`fit-out` of the others. Wider ones, {ours}`known-set`, know the paper's number of members, and are right on {ours}`known-out` of the others. Those of {ours}`second` and CIFAR-100 are small networks, trained on as many for {param}`epochs` epochs; on CIFAR-10 the plain loss has
# the paper's AUC. The score of *curvature* here is the logarithm of the ratio of its two Gaussians. Whether these have one variance or two, and LiRA's, the attacker chooses on its own networks.
# {term}`MAST` compares the loss with a threshold for each image, midway between the mean losses with and without it.

# %%
recipe = {"records": records or None, "architecture": architecture, "epochs": epochs,
          "batch_size": batch_size, "learning_rate": learning_rate, "seed": seed}
counts, curved, played = sorted({min(few, references), references}), {}, {}
for name in [*[study.MEMORISED] * memorised, *datasets]:
    title = exhibits.name_of(name)
    curved[title] = study.measured(name, models, asked, **recipe)
    views = study.many_queries(name, models, **recipe)
    played[title] = study.attack_bank(title, curved[title], targets, counts,
                                      draws, views)
for title, bank in (study.other_banks(models) if others else {}).items():
    curved[title], there = bank, len(bank) - 2  # other networks
    played[title] = study.attack_bank(
        title, bank, targets, sorted({min(count, there) for count in counts}), draws)
frame = pd.concat([frame for frame, *_ in played.values()], ignore_index=True)

# %% tags=["remove-input"]
first, second = (list(curved)[0], list(map(exhibits.name_of, datasets))[-1])
by_heart = publishing.catalogue()["curvature/memorised"].usual()
asks = 4 * study.ITERATIONS
most = {"study": "attacks", "references": f"{references} references"}


def number(attack, metric, data=first, views="1 view", **where):
    return metrics.estimate(frame, attack, metric, data=data, views=views, **{**most, **where}).interval()


results.name({"second": second, "set-count": len(curved), "asks": asks, "asks-twice": 2 * asks, "heart-members": by_heart["records"] // 2,
              "heart-epochs": by_heart["epochs"]})
for word, name in (("curvature", study.RATIO), ("lira", study.LIRA), ("loss", "Yeom"), ("mast", "MAST"), ("both", study.BOTH)):
    results.name({f"{word}-tpr": number(name, "tpr_at_fpr=0.01"), f"{word}-second-tpr": number(name, "tpr_at_fpr=0.01", second)}, ".1%")
results.name({f"{word}-hundred": number(name, "tpr_at_fpr=0.01", references=f"{counts[0]} references") for word, name in (("lr", study.LR), ("nll", study.NLL))}, ".1%")
results.name({f"{word}-two-tpr": number(name, "tpr_at_fpr=0.01", views="2 views") for word, name in (("curvature", study.RATIO), ("lira", study.LIRA))}, ".1%")
right, trained = (curved[first].true == curved[first].top)[..., 0], curved[first].members
results.name({"fit-in": right[trained].mean(), "fit-out": right[~trained].mean()}, ".1%")
known = curved.get(study.WIDE)
known_references = min(references, len(known or ()) - 2)
results.name({"known-set": study.WIDE} | dict.fromkeys(["known-models", "known-references", "known-out"], results.NOT_RUN) | ({} if known is None else {
    "known-models": len(known), "known-references": known_references, "known-out": (known.true == known.top)[..., 0][~known.members].mean()}), ".1%")
for word, name, metric, views in (("lr-known", study.LR, "tpr_at_fpr=0.001", "2 views"), ("mast-known", "MAST", "tpr_at_fpr=0.001", "2 views"),
                                  ("nll-known", study.NLL, "auc", "2 views"), ("plain-known", "Yeom", "auc", "2 views"),
                                  ("curvature-known-tpr", study.RATIO, "tpr_at_fpr=0.01", "1 view"), ("mast-known-tpr", "MAST", "tpr_at_fpr=0.01", "1 view")):
    results.name({word: results.NOT_RUN if known is None else number(name, metric, study.WIDE, views, references=f"{known_references} references")},
                 ".3f" if metric == "auc" else ".1%")
choices = played[second][1].query("attack == @study.BOTH and metric == 'auc' and views == '1 view'")
results.name({"left-out": (choices["choice"] == "0").mean()}, ".0%")
results.show_table(exhibits.five_methods(frame), name="curvature-five")

# %% [markdown]
# :::{caption} curvature-five
# Five methods on the image alone, in percent, with {param}`references` references, or all there are, and 95 % intervals
# over networks and images: AUC, and members found at 1 % false alarms. *LiRA + curvature* adds to LiRA's log ratio so
# much of the curvature's as the attacker's own networks suggest.
# :::

# %% tags=["hide-input"]
at_1 = frame[frame["study"].ne("measures") | frame["measure"].eq("1 %")]
rules.show_settings(
    "curvature", {"A3": "LiRA less curvature", "A4": "curvature added, less LiRA"}, at_1, name="curvature-settings")

# %% [markdown]
# :::{caption} curvature-settings
# Members found at 1 % false alarms in every setting. Left: LiRA less the best of the curvature's log ratio, NLL and LR
# from as many views. Right: LiRA with curvature added, less LiRA.
# :::

# %% [markdown]
# :::{finding}
# :claims: A3 reproduced, A4 inconclusive
# **Curvature is ahead of the loss and MAST where networks know their members by heart.** There it finds {ours}`curvature-tpr:value` of the members, where the plain loss finds {ours}`loss-tpr:value` and MAST
# {ours}`mast-tpr:value`. On {ours}`second` it finds {ours}`curvature-second-tpr:value`, more than the plain loss and less than MAST, {ours}`mast-second-tpr:value`, which asks once.
#
# **LiRA finds more than curvature.** Of {ours}`known-set` some settings leave it open, most of them at one false alarm in a thousand. LiRA reads the label directly, which curvature sees through kinks.
#
# **That curvature adds to LiRA cannot be told.** By heart LiRA finds {ours}`lira-tpr:value` of the members at one false alarm in a
# hundred and {ours}`both-tpr:value` with curvature; on {ours}`second` {ours}`left-out` of the attackers leave it out for AUC.
# :::
#
# ## What the paper concludes: NLL and LR
#
# The paper's attack (ZO, *zero-order*: without derivatives) takes $\mathrm{LR} = \mathcal N(c;\, \mu_{\mathrm{in}}, \sigma^2_{\mathrm{in}}) / \mathcal N(c;\, \mu_{\mathrm{out}}, \sigma^2_{\mathrm{out}})$
# of the log curvature $c$, or its logarithm, NLL. Since the logarithm rises strictly, *LR and NLL must rank all records alike*. In the paper they do not: on CIFAR-100 their AUCs are
# {printed}`table1 | CIFAR100 | Curv ZO LR | auroc` and {printed}`table1 | CIFAR100 | Curv ZO NLL | auroc` %. The released code computes two other scores
# under these names ({ref}`below <curvature-ladder-section>`), and gives LiRA the *largest* probability, where its own paper takes the true class's {cite}`carlini2022membership`.

# %% tags=["hide-input"]
figures.show(
    exhibits.figure_4(played[first][2], curved[first].members[:targets]), name="curvature-figure-4")
rules.show_settings(
    "curvature", {"C3": "NLL less the best other, AUC", "C4": "LR less the best other, TPR at 0.1 %"}, frame, name="curvature-claims")

# %% [markdown]
# :::{caption} curvature-figure-4
# :alt: ROC curves of six attacks on logarithmic axes, with the paper's points at a false positive rate of one in a
#   thousand as hollow marks, and a dashed line of guessing below them.
#
# **Figure 4 of the paper**, six of its methods as released, from two views where they take two, and LiRA as in its own
# paper: members found (true positive rate) against false alarms, mean over networks that know by heart. Hollow, in the
# colour of the method: the paper's Table 5, of ResNet-18. Dashed: guessing.
# :::
#
# :::{caption} curvature-claims
# Two claims of the paper in every setting, all eight methods as released: the lead over the best other method.
# :::

# %% [markdown]
# :::{finding}
# :claims: C3 depends, C4 depends, C5 reproduced, C6 depends, A1 contradicted
# **NLL has the best AUC of the eight where as many members are known as in the paper**, and from two views: of {ours}`known-set` it has {ours}`nll-known:value`, the plain loss {ours}`plain-known:value`. With few members by heart the loss is ahead or level, elsewhere MAST, Watson and Attack R.
#
# **Of the eight LR finds most at one false alarm in a thousand where networks know members by heart**, in every setting from two views, in some from one. Of {ours}`known-set` it finds {ours}`lr-known:value`, MAST {ours}`mast-known:value`. On networks that generalise MAST finds more in every setting. At one in a hundred it needs many references, from one view: with {param}`few` LR finds {ours}`lr-hundred:value`
# and NLL {ours}`nll-hundred:value`. LiRA as in its own paper has a higher AUC than NLL everywhere.
#
# **The mirror image helps on networks that were trained with it and know their members**; here the two go together. On the small networks of CIFAR-10, without either, it costs NLL and LR AUC.
# :::
#
# ## What held and what did not
#
# :::{finding}
# :claims: C1 reproduced, C5 reproduced, C13 checked, A2 reproduced, C3 depends, C4 depends, C6 depends, A3 reproduced
# **What held.** The loss curves more around images that the network was not trained on, in every set. Where NLL and LR can be told apart, NLL has the better AUC and LR finds more members at one false alarm in a thousand.
#
# **What depends.** On networks that know their members by heart, trained with mirror images, LR leads at one false alarm in a thousand from two views, and the mirror image helps. On those that generalise, trained without, neither is so.
#
# **What did not.** LiRA as in its own paper finds more from one query than curvature from {ours}`asks`; of {ours}`known-set` some low rates stay open. What the curvature finds beyond the exact Hessian is due to the label ({numref}`curvature-signals`).
#
# **What stays open.** {ours}`known-set` are {ours}`known-models` networks. Figure 5 was not run.
# :::
#
# ## Exercises
#
# ````{exercise} Fewer references (a change of parameters)
# :label: curvature-exercise-references
# Run `mia run curvature -p references 8 -p few 4`. Which rows of {numref}`curvature-five` lose most, and which stay?
# Which variances would you choose?
# ````
# ````{solution} curvature-exercise-references
# :class: dropdown
# The loss uses no reference and stays. Rows with Gaussians lose most: with eight references two variances for each image come from four values
# each, so that the attackers choose one for all images, or one for each.
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
# ### All methods: Tables 1 to 5

# %% tags=["hide-input"]
results.name({f"{word}-few": number(name, "tpr_at_fpr=0.001", views="2 views", references=f"{count} references")
              for word, name, count in (("lr", study.LR, counts[0]), ("lira", study.LIRA, counts[0]), ("mast", "MAST", counts[0]), ("released", study.RELEASED, references))}, ".1%")
results.show_table(exhibits.table_one(frame), name="curvature-table-1")
results.show_table(exhibits.views_table(frame), name="curvature-table-2")
results.show_table(exhibits.imagenet(), name="curvature-imagenet")
results.show_table(exhibits.table_five(frame, first), name="curvature-table-5")

# %% [markdown]
# :::{caption} curvature-table-1
# **Table 1 of the paper**, in percent, the eight methods as released, {param}`references` references or all there are,
# 95 % intervals over networks and images; accuracy is a {ref}`peak <peak-accuracy>`. Curvature and LiRA have two views,
# on CIFAR-100 one, and so have the paper's numbers beside them. Beside both sets of networks that know by heart stands
# the paper's CIFAR-100.
# :::
#
# :::{caption} curvature-table-2
# **Tables 3 and 4 of the paper**: AUC and accuracy in percent from the image alone and with its mirror image. The
# paper's networks and those that know by heart were trained with mirrored images, those on CIFAR-10 without.
# :::
#
# :::{caption} curvature-imagenet
# **Tables 1 and 2 of the paper**, the columns on ImageNet, in percent, as printed: from two views, and from one. They
# were not run.
# :::
#
# :::{caption} curvature-table-5
# **Table 5 of the paper** on networks that know by heart: members found at low rates of false alarms, in percent, as
# released, and by LiRA as in its own paper. A rate that fewer than one non-member would make is below resolution. The
# paper's on CIFAR-100.
# :::

# %% [markdown]
# **As many members as the paper's, known by heart, have the paper's AUC** by NLL, and nearly that by LR, though each of these networks is compared with a few others. The loss, MAST, Watson and the modified entropy
# of Song and Mittal tell more than there, LiRA as released less. Our networks are wrong on more of the other images, which have high losses.
#
# ### Count the queries
#
# LiRA's own paper asks for 18 views of an image, shifted and mirrored, and fits a Gaussian to each. So does {numref}`curvature-queries`. It does not help these networks, which were not trained on
# shifted images: by heart LiRA finds {ours}`lira-two-tpr:value` of the members at one false alarm in a hundred from two views, and {ours}`lira-18-tpr:value` from 18.

# %% tags=["hide-input"]
often = frame[(frame["study"] == "attacks") & (frame["data"] == first) & (frame["views"] == "18 views") & (frame["metric"] == "tpr_at_fpr=0.01")]
results.name({"lira-18-tpr": often["estimate"].iloc[0].interval() if len(often) else "not measured"}, ".1%")
results.show_table(exhibits.queries_table(frame), name="curvature-queries")

# %% [markdown]
# :::{caption} curvature-queries
# Members found at two rates of false alarms, in percent, by the number of queries of an image, with 95 % intervals over
# networks and images; {param}`references` references, or all there are. LiRA has a Gaussian for each view, curvature for
# the image and for its mirror image.
# :::

# %% [markdown]
# ### Figures 1 to 3: which images bend, many records, one record

# %%
frame = pd.concat([frame] + [
    of_study(name, bank, targets, min(references, len(bank) - 2))
    for name, bank in curved.items()
    for of_study in (study.gaussian, study.precisions, study.estimators)
    if of_study is study.gaussian or bank.precise.size])

# %% tags=["hide-input"]
at = {"data": first, "study": "precision"}
results.name({"threshold-auc": number(study.CURVATURE, "auc"), "threshold-second-auc": number(study.CURVATURE, "auc", second)})
results.name({f"distance-{word}": metrics.estimate(frame, name, "distance", data=first, study="gaussian").value for word, name in (("curvature", study.CURVATURE), ("odds", "log odds"))}
             | {"zero": metrics.estimate(frame, study.CURVATURE, "zero", precision="float32", **at).value}
             | {f"{word}-{precision}": metrics.estimate(frame, name, "tpr_at_fpr=0.01", precision=precision, **at).interval()
                for word, name in (("nll", study.NLL), ("lr", study.LR)) for precision in ("float32", "float64")}, ".1%")
figures.show(
    exhibits.extremes(images, np.average(log_bent, 0, ~members)), name="curvature-figure-1")
figures.show(exhibits.figure_2(curved), name="curvature-figure-2")
figures.show(exhibits.figure_3(curved[first]), name="curvature-figure-3")

# %% [markdown]
# :::{caption} curvature-figure-1
# :alt: Two rows of eight small images with their labels: the lowest curvature above, the highest below.
#
# **Figure 1 of the paper**, left part, on FashionMNIST: the images with the lowest and the highest mean log curvature
# under networks that were not trained on them. The paper calls images of low curvature prototypical and images of high
# curvature atypical.
# :::
#
# :::{caption} curvature-figure-2
# :alt: A panel for each data set with two histograms of log curvature, of members and of non-members.
#
# **Figure 2 of the paper**: log curvature of members and of non-members, all networks and images together.
# :::
#
# :::{caption} curvature-figure-3
# :alt: Three panels, each with two rows of ticks and two Gaussian curves over log curvature.
#
# **Figure 3 of the paper**, for three images of networks that know by heart: log curvature under networks trained on
# the image and under the others, a tick a network, and the Gaussians that the attack fits. The images stand at three
# percentiles of how far the two means lie apart.
# :::

# %% [markdown]
# :::{finding}
# :claims: C1 reproduced, C2 contradicted
# The loss curves less around members: as an attack by itself, without references, low curvature has an AUC of {ours}`threshold-auc` by heart and of {ours}`threshold-second-auc` on {ours}`second`. Values
# of one record over many networks are not quite Gaussian: what the Gaussians of the references predict of the target's values is wrong by up to {ours}`distance-curvature` by heart, averaged over members and
# others (the distance of Kolmogorov and Smirnov). The log odds that LiRA takes for Gaussian are wrong by {ours}`distance-odds`.
# :::
#
# (curvature-ladder-section)=
# ### LR and NLL, precision, and fewer references (Appendix A.8)
#
# The code passes the variance where the Gaussian density expects the standard deviation; both scores share this slip. NLL makes a second change: it
# uses the IN spread for both Gaussians, so that the terms in $c^2$ cancel. LR makes another one: it adds the likelihoods of the two views, where
# independent views would be multiplied.
#
# The code computes losses in float32. Where a network is sure of an image all four are equal, and the curvature is exactly zero; the code adds
# $10^{-22}$ before it takes the logarithm, which is then $-50.66$. At low rates, the paper says, LR with 64 references is about where LiRA is with 256.
#
# :::{finding}
# :claims: C7 reproduced
# By heart float32 rounds {ours}`zero` of the curvatures to zero. This lowers what NLL finds at one false alarm in a hundred from
# {ours}`nll-float64:value` to {ours}`nll-float32:value` of the members. LR goes the other way, from {ours}`lr-float64:value` to {ours}`lr-float32:value`.
#
# With {param}`few` references and two views LR finds {ours}`lr-few:value` of the members at one false alarm in a thousand, where LiRA as released finds {ours}`released-few:value` with {param}`references`. The economy is not one of curvature:
# with {param}`few` MAST finds {ours}`mast-few:value`, and LiRA as in its own paper {ours}`lira-few:value`. It stands for {ours}`known-set`, too, with {param}`few` of {ours}`known-references`. Where networks generalise nothing is decided.
# :::
#
# (curvature-what)=
# ### What does the number measure?
#
# By {prf:ref}`curvature-label` exact curvature cannot see the label, and differences see it through kinks. So we run one likelihood ratio on several
# signals of the same images.

# %% tags=["hide-input"]
results.name({f"signal-{word}": metrics.estimate(frame, name, "auc", study="signals", data=first).interval() for word, name in zip(
    ("released", "own-label", "exact", "top", "true"), study.SIGNALS, strict=True)}, ".3f")
results.name({"exact-images": curved[first].exact.shape[1]})
results.show_table(exhibits.signals_table(frame), name="curvature-signals")

# %% [markdown]
# :::{caption} curvature-signals
# AUC of the log-likelihood ratio on several signals, in percent with 95 % intervals over networks and the first
# {ours}`exact-images` images, the image alone. The last two rows are no curvature.
# :::

# %% [markdown]
# :::{finding}
# :claims: A2 reproduced
# By heart the released estimate has an AUC of {ours}`signal-released:value`. With each network's own label in the place of the true one it has
# {ours}`signal-own-label:value`, and the exact norm, which cannot see the label, {ours}`signal-exact:value`. So what four losses find beyond the exact
# curvature is due to the label. The true class's probability, one query, has {ours}`signal-true:value`.
# :::
#
# ### Figures 6 and 7: size and epochs
#
# Targets are trained on random sets of other sizes and on {term}`coresets <coreset>`, the records of lowest curvature. Members of a coreset are easy records
# and its non-members hard ones, so an order of records by ease alone tells them apart without any target. References are always trained on half of the
# records, as in the released code.
#
# The paper trains 300 epochs at every size. The networks of {numref}`curvature-figure-6` are right on at least {ours}`figure-6-known` of their members, all after the same epochs,
# which stand below each size. Small ones, of which C9 and C10 are asked, too, were trained for at least a thousand steps: of these only the two largest sizes have equal
# epochs. So both claims compare these two. The references match targets of their own size alone, half of the records.

# %%
of_half, half, of_sizes = study.of_other_sizes(sizes, coreset_sizes, models)
of_networks = {study.SMALL: (of_half, of_sizes)}
if study.WIDE in curved:
    of_networks[study.WIDE] = curved[study.WIDE], study.of_sizes_by_heart()
of_size = [study.sizes(name, references_of, half, targets_of, draws)
           for name, (references_of, targets_of) in of_networks.items()]
frame = pd.concat([frame, *of_size])

# %% tags=["hide-input"]
networks_shown, (its_references, its_targets) = list(of_networks.items())[-1]
by_size = {name: sorted(size for kind, size in those if kind == "coreset") for name, (_, those) in of_networks.items()}
core_networks = networks_shown if {half, study.SIZES_BY_HEART[-1]} <= {*by_size[networks_shown]} else study.SMALL
core_sizes = by_size[core_networks]
epochs_of = {name: study.epochs_by_size(half, *known) for name, known in of_networks.items()}
figures.show(exhibits.figure_6(frame, networks_shown, epochs_of[networks_shown]), name="curvature-figure-6")
figures.show(exhibits.figure_7(frame, core_networks, epochs_of[core_networks]), name="curvature-figure-7")


def at_size(name, size, networks=networks_shown, kind="random"):
    return metrics.estimate(frame, name, "auc", study="sizes", networks=networks, kind=kind, size=size).interval()


results.name({"figure-7-networks": core_networks, "figure-7-references": len(of_networks[core_networks][0])})
its_sizes = sorted({half, *(size for kind, size in its_targets if kind == "random")})
best = max(its_sizes, key=lambda size: at_size(study.NLL, size).value)
fit = min(bank.accuracy.mean() for (kind, _), bank in its_targets.items() if kind == "random")
results.name({"figure-6-sizes": ", ".join(map("{:,}".format, its_sizes)), "figure-6-networks": networks_shown, "figure-6-references": len(its_references), "figure-6-known": fit}, ".2%")
before = max((size for size in its_sizes if size < study.CROSSINGS[study.LR]), default=its_sizes[0])
for place, size in (("few", its_sizes[0]), ("best", best), ("before", before), ("half", half), ("most", its_sizes[-1])):
    results.name({f"size-{place}": f"{size:,}", **{f"{word}-at-{place}": at_size(name, size) for word, name in (
        ("lr", study.LR), ("nll", study.NLL), ("plain", "Yeom"), ("watson", "Watson"), ("top", study.RELEASED))}}, ".3f")
results.name({f"{short}-{word}": at_size(name, core_sizes[k], core_networks, "coreset") for word, k in (("large", -2), ("largest", -1))
              for short, name in (("core", study.NLL), ("ease", "no target"))}, ".3f")

# %% [markdown]
# :::{caption} curvature-figure-6
# :alt: Two panels, this run and the authors' notebooks, AUC of four attacks against the number of training records.
#
# **Figure 6 of the paper**: AUC against the size of random training sets, on CIFAR-100, with the epochs of each; the
# image alone. Left: eight networks of each size and {ours}`figure-6-references` references ({ours}`figure-6-networks`), two
# fewer where these are attacked themselves, with 95 % intervals. Right: what the authors' notebooks hold, for ResNet-18;
# the paper prints no numbers. Upright lines: sizes beyond which its text has NLL, and LR, ahead of LiRA and the loss.
# Dashed: guessing.
# :::
#
# :::{caption} curvature-figure-7
# :alt: Two panels, AUC and balanced accuracy of NLL against the number of training records, for random sets and
#   coresets.
#
# **Figure 7 of the paper**, size and epochs: NLL on random sets and on coresets of low curvature, AUC and peak balanced
# accuracy; eight networks of each size and {ours}`figure-7-references` references ({ours}`figure-7-networks`), two fewer
# where these are attacked themselves. Bars are 95 % intervals; dashed: guessing.
# :::

# %% [markdown]
# :::{finding}
# :claims: C9 reproduced, C9n contradicted, C9l contradicted, C10 inconclusive
# **NLL gets weaker with more records where members are known.** At the same epochs its AUC falls from {ours}`nll-at-half:value` with {ours}`size-half` records to {ours}`nll-at-most:value` with
# {ours}`size-most`; the authors' notebooks have {printed}`fig6_authors_code | random subset | m = 25000 | Curv ZO NLL | auroc` and
# {printed}`fig6_authors_code | random subset | m = 45000 | Curv ZO NLL | auroc` %. It is highest with {ours}`size-best` or a little fewer, theirs between 3,000 and 7,000. With small networks
# {ours}`size-half` and {ours}`size-most` are not told apart.
#
# **LR passes LiRA, as released, where sets get large.** Near {ours}`size-before` records, where LR has {ours}`lr-at-before` and LiRA {ours}`top-at-before`; with {ours}`size-half` they have {ours}`lr-at-half:value` and
# {ours}`top-at-half:value`. The authors' LR passes it near 12,000 records, and falls behind again from 35,000 on. But the plain loss is ahead of LR and LiRA at every size, level with NLL with {ours}`size-half` records, from
# the image alone, and ahead with {ours}`size-most`, by {ours}`plain-at-most:value` to {ours}`nll-at-most:value`. The authors' has
# {printed}`fig6_authors_code | random subset | m = 25000 | Yeom et al. (2018) | auroc` % at the first of these sizes; their networks are probably right more often on other images.
#
# **LR fails on much smaller sets.** A network that was trained on {ours}`size-few` images knows them by heart: its plain loss has an AUC of
# {ours}`plain-at-few:value`. From references with {ours}`size-half` images LR has {ours}`lr-at-few:value`, NLL {ours}`nll-at-few:value`, LiRA as released {ours}`top-at-few:value`, and the loss less its mean (Watson), which fits no Gaussian, {ours}`watson-at-few:value`.
#
# **Coresets are told apart without a target.** Ranking records by their curvature under the references has {ours}`ease-large:value` on the coreset of half of the records, and {ours}`ease-largest:value` on the largest. NLL on these goes
# from {ours}`core-large:value` to {ours}`core-largest:value`, which eight networks do not tell apart.
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
# expected loss, and a Taylor expansion makes of that a bound on mean curvature. It grows with $m$. The paper concludes (Theorem 4.3) that curvature reveals more
# than the output when
#
# $$
# m > \frac{\sqrt{2 \sigma^2 \epsilon} - c}{L (1 - e^{-\epsilon})},
# $$ (curvature-size)
#
# *if both bounds are tight* (its Equation 10; $c$ has $m$ in it, too). They cannot be: curvature, too, is computed from the model, so by
# {term}`post-processing` it obeys the first bound, and the sharper $\epsilon\tanh(\epsilon/2)$, whatever $m$. Where the second bound exceeds $\epsilon$ it is not tight.
#
# *Two slips.* Eq. 29 has $(\mu_{\mathrm{out}}^2 - \mu_{\mathrm{in}}^2)/2\sigma^2$ for the divergence of two Gaussians, in the place of
# $(\mu_{\mathrm{out}} - \mu_{\mathrm{in}})^2/2\sigma^2$. And the expansion lacks the one half before its second-order term. Let every model have the loss
# $x^2(1 - |x|)$ on $[-1, 1]$, with records $-1$, $0$ and $1$. Nothing depends on training, so $\epsilon = 0$ and all gaps are zero; $L = 4/27$,
# $\rho = 6$, and neighbours lie at distance one. Lemma A.1 bounds the curvature at $0$ by $4/27 + 6/6 = 1.15$; it is $2$.
#
# ### Every claim, with its verdict

# %%
frame = pd.concat([frame, study.theorems(seed)])
own = {"dataset": datasets[-1], "architecture": architecture, "epochs": epochs}
ran = own if not memorised else {name: by_heart[name] for name in own} | {
    "members": by_heart["records"] // 2}
by_exhibit = {claim["exhibit"]: ran for claim in claims.claims("curvature").values()}
by_exhibit |= dict.fromkeys(("Figure 6", "Figure 7"), own | {"dataset": "cifar100"})
claims.show("curvature", rules.judge_all("curvature", frame, by_exhibit))

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
# | data and networks | CIFAR-10, CIFAR-100, ImageNet; ResNet-18 and ResNet-50, 300 epochs, crops and mirroring | 4,000 images of CIFAR-100: `strided_cnn:8,16,64`, {ours}`heart-epochs` epochs, mirroring; other sets: {param}`architecture`, {param}`epochs` epochs, no augmentation | half an hour of a graphics card for 18 ResNets of 30 epochs, or two hours of two cores for 20 more small networks that know 25,000 images; ImageNet weeks |
# | references, targets | 64 and 3 of other halves | {param}`references` against each of {param}`targets` | `-p models 64 -p references 62` |
# | Figure 5 | {term}`DP-SGD` at 14 epsilons, 20 epochs of CIFAR-100; the fitted curve is flat where ten of the fourteen points lie, and the released notebook plots the *negated* LR and adds $0.015$ to the curve | not run | six hours of two cores |
# | Figures 6 and 7 | 14 sizes, 2 and 6 networks a size, 300 epochs | eight networks a size: random sets of {ours}`figure-6-sizes` records, coresets of {param}`coreset_sizes` with small networks, a thousand steps or more | coresets by heart, two hours of two cores |
#
# All targets come from one bank: they share records and references, and the two of a pair count as one. Intervals cover the choice of target and of records, not that of the bank.
#
# On Colab, add a cell before the first one, and in it: `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`
