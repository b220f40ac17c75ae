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
# **Four losses around a record say how the loss bends there, without a gradient. Where a network is linear in pieces, the
# label of the record cancels from them within a piece, and comes back where they step over a kink.**
#
# Deepak Ravikumar, Efstathia Soufleri and Kaushik Roy, *Curvature Clues: Decoding Deep Learning Privacy with Input Loss
# Curvature* {cite}`ravikumar2024curvature`.
#
# ```{admonition} Run this chapter again
# :class: tip
# `mia run curvature` uses the data inside the repository and a laptop; [what it takes](../book/status.md). The second time,
# what did not change is read from the store. Change anything: `mia run curvature -p h 0.01 -p iterations 5`; text and verdicts
# follow the new numbers. All parameters: `mia params curvature`. [How to rerun](../book/rerun.md) has the rest.
#
# On Colab, add a cell before the first one, and in it: `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`
# ```
#
# The [chapter before](calibration.ipynb) compared a record with itself under other models. This one keeps that and changes the
# {term}`score`: not how large the loss is, but how it bends when the input moves. It is also a lesson in reading a result. The
# paper's two attacks should be one. Its rivals do not all get the same queries. The premise of its theorem cannot hold.
#
# *The main line* takes half an hour to read. *In depth*, after the exercises, are proofs, other exhibits, every
# claim with its verdict, where text and code differ, each folded. Numbers without a dot (Table 5) are the paper's, those
# with one (Table 3.5) this book's.

# %%
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from mia_lib import (attacks, claims, data, membership, metrics, plotting, results,
                     training)
from mia_lib.attacks import baselines, bayes, calibration
from mia_lib.attacks import curvature as attack
from mia_lib.papers.curvature import exhibits, study, theory
from mia_lib.signals import curvature
from mia_lib.training import private as dp

plotting.set_style()

# %% [markdown]
# ## What the attacker has
#
# The [membership game](../book/game.md) on one pool of records: every model is trained on a random half of it. The attacker
# owns models trained in the same way on other halves, half of them *with* the record under attack (IN) and half without (OUT).
# Of the target it sees losses (two rivals see the output vector), and it chooses the inputs.

# %% tags=["hide-input"]
results.show_table(
    attacks.threat_model({
        "Curv ZO NLL, LR": attack.nll, "LiRA": baselines.lira_online,
        "LiRA, as released": replace(baselines.lira_online.needs, access=baselines.modified_entropy.needs.access), "Yeom": bayes.malt, "MAST (Sablayrolles)": bayes.mast,
        "Watson": calibration.calibrate, "Attack R (Ye)": baselines.attack_r, "Song and Mittal": baselines.modified_entropy,
        "RMIA": baselines.rmia}),
    name="curvature-threat-model",
    caption="What the attacks need, as declared by the functions that run them. Queries are not in it: curvature asks for "
            "{ours}`queries` losses of each record and view, all others for one output. Song and Mittal run here with one threshold for all classes.")

# %% [markdown]
# *Yeom* takes minus the loss. *Watson* is last chapter's calibrated loss. {term}`MAST` is the same with the middle of the mean
# losses IN and OUT. *Attack R* asks how far the loss lies below the lowest OUT loss. *Song and Mittal* take an entropy that
# knows the label. {term}`LiRA` is a likelihood ratio of the log odds of a probability, of the true class or, as released here, of the
# largest. {term}`RMIA` compares what a record
# gains with what others gain.
#
# ## Parameters
#
# Everything that can be changed without touching code; square brackets say what is allowed. A *view* is the image or its
# mirror image.

# %% tags=["parameters"]
datasets: list[str] = ["fashion_mnist_20k"]  # image data of Table 1, the first also of everything else (see `mia data ls`) [data set; not empty]
pool: int = 2000  # records of the game; half of them trains each model [20..60000]
models: int = 14  # in complementary pairs; against each target all serve but itself and its complement [6..1000; even]
targets: int = 14  # models that are attacked in turn [2..models]
architecture: str = "strided_cnn:8,16,64"  # of all models [architecture]
epochs: int = 60  # of training [1..1000]
batch_size: int = 64  # of training [1..10000]
learning_rate: float = 0.05  # of the first epoch [1e-6..10.0]
augmentation: str = "flip"  # of training; with "flip" the mirror image is a view that training saw [augmentation]
iterations: int = 10  # probes of the curvature, each of four queries [1..1000]
h: float = 0.001  # step of a probe, every pixel running from -1 to 1 [1e-8..1.0]
reference_counts: list[int] = [4, 8]  # fewer references, besides all [4..models - 2; even; not empty]
estimator_records: int = 150  # records on which estimates of curvature are compared [20..60000]
steps: list[float] = [0.0001, 0.01, 0.1]  # other steps of that comparison [1e-12..]
probe_counts: list[int] = [1, 3]  # other numbers of probes [1..]
sizes: list[int] = [100, 300, 1500]  # training sets of Figures 6 and 7 [10..pool - 10; not empty]
size_seeds: int = 3  # targets of each size [2..50]
judged: int = 200  # members, and as many others, that these and private targets are judged on, at most [10..60000]
epsilons: list[float] = [1.0, 10.0, 100.0]  # of DP-SGD, in Figure 5 [1e-6..; not empty]
private_architecture: str = "strided_cnn:8,16,64"  # of private models, without batch normalisation [architecture]
private_epochs: int = 8  # of DP-SGD [1..500]
private_batch_size: int = 100  # of DP-SGD, in expectation [1..10000]
private_learning_rate: float = 0.5  # of DP-SGD [1e-6..10.0]
private_seeds: int = 3  # targets at each epsilon [2..50]
seed: int = 0  # of everything random [0..1000000]

# %% tags=["hide-input"]
config = training.TrainConfig(
    architecture, epochs=epochs, batch_size=batch_size, optimizer="sgd", learning_rate=learning_rate, momentum=0.9,
    weight_decay=1e-4, schedule="cosine", augmentation=augmentation, seed=seed)
private_config = training.TrainConfig(
    private_architecture, epochs=private_epochs, batch_size=private_batch_size, optimizer="sgd",
    learning_rate=private_learning_rate, seed=seed)

def bank_of(name):
    records = data.load(name)
    return study.bank(records.take(range(records.n_train)), pool, models, targets, config, iterations, h, seed)

banks = {one.name: one for one in map(bank_of, datasets)}
bank = next(iter(banks.values()))
plan = study.plan(banks, sizes, size_seeds, epsilons, private_seeds, private_config, steps, reference_counts)
results.name({"intervals": exhibits.intervals(targets), "private-intervals": exhibits.intervals(private_seeds),
              "size-intervals": exhibits.intervals(size_seeds)})
results.name({"queries": 4 * iterations, "half": pool // 2, "references": models - 2, "epsilon-count": len(epsilons)})
results.name({"set": bank.name, "sets": " and ".join(banks)})

# %% [markdown]
# ## One target by hand
#
# Before any theory, the whole attack once. Its two formulas take ten lines: a difference of four losses, and a comparison of
# two Gaussians, fitted to the values of a record under models that were trained on it and under models that were not.

# %%
def four_points(loss, x, u, v, h):
    near, far = h * (u + v), h * (u - v)
    return (loss(x + near) - loss(x + far)
            - loss(x - far) + loss(x - near)) / (4 * h * h)

def log_ratio(value, references, held):
    sides = [np.where(side, references, np.nan) for side in (held, ~held)]
    inside, outside = [stats.norm(np.nanmean(side, 0), np.nanstd(side, 0, ddof=1))
                       for side in sides]
    return inside.logpdf(value) - outside.logpdf(value)

# %% [markdown]
# Take {param}`pool` records of {ours}`set`. Train {param}`models` models on random halves. Ask each for its losses at the four
# points, {param}`iterations` times a record. Attack the first model with the help of the others.

# %%
images = data.load(datasets[0])
order = np.random.default_rng([17, seed]).permutation(images.n_train)
records = images.take(order[:pool])
members = membership.balanced_halves(pool, models, seed)
ensemble = training.train(records, members, config)

bent = curvature.of(ensemble, records, "released_code", iterations, h)
log_bent = attack.log_curvature(bent)  # [models, records]
others = membership.references_of(0, models)  # without its complement
score = attack.nll(log_bent[0], log_bent[others], members[others])
hand = metrics.auc(score, members[0])
hand

# %% tags=["hide-input"]
with np.errstate(all="ignore"):
    twin = np.abs(log_ratio(log_bent[0], log_bent[others], members[others]) - score) / np.maximum(1, np.abs(score))
results.name({"hand": float(hand), "twin": f"{np.max(twin, where=np.isfinite(twin), initial=0):.0e}"})

# %% [markdown]
# An {term}`AUC` of one half is guessing; this target's is {ours}`hand`, and {ours}`by-hand-row` with one view in the study below, in the row *Curv, log ratio*. The
# library's `curvature.of` asks for the same four losses as `four_points`, for many records at once, and averages $h|q|$ as the released code does; its `attack.nll` is
# `log_ratio` (the row *NLL* has the released form of it): the two differ by at most {ours}`twin` here, of scores beyond one relative to their size. The complement of the target, the model trained on the other half, is left out,
# for the number of references that hold a record would give the record away.
#
# ## The idea
#
# A probe draws two directions $u$ and $v$ of entries $\pm 1$. Its four points lie on two lines, at $x \pm h(u + v)$ and at $x
# \pm h(u - v)$. On each line the two points lie on opposite sides of the record, so that the slope of the loss cancels. What
# is left is how much the loss bends along one line, less how much it bends along the other. The picture has one record of this
# run, and two models: one that never saw it and gets it wrong, where there is such a record, and its complement, which was
# trained on it.

# %% tags=["hide-input"]
probe = study.one_probe(bank, seed)
results.name({"probe-step": f"{probe.h[exhibits.step_drawn(probe, h)]:.2g}"})
results.name({"probe-true": bank.records.classes[probe.labels[0, 0]], "probe-own": bank.records.classes[probe.labels[0, 1]]})
plotting.explore(
    exhibits.probe_chart(probe, h), exhibits.probe_figure(probe, h), name="curvature-idea",
    instructions="Move the step: the four points walk along the two lines, and ticks below are kinks of the network. Where "
                 "does the estimate leave the horizontal line, the Hessian's own number? Then change the label, and the model.",
    caption="One probe of one {ours}`set` image, labelled {ours}`probe-true`, which the model that never saw it calls "
            "{ours}`probe-own`. Left: the loss less its tangent along the two lines, four points at $h =$ {ours}`probe-step`, and "
            "ticks at kinks. Right: the size of the estimate $q$ against the step, and what it should be, $v^\\top H u$ with the Hessian $H$ by the input (thin horizontal "
            "lines). Look where a curve leaves its line: there, as a rule, a kink, a jump of the slope, lies between the points. For the model that never saw the image, with the image's label and with the model's own, and for the "
            "model that was trained on it.",
    alt="Left, two curves against the step from the record, with two points on each. Right, logarithmic axes: curves of the "
        "size of the estimate against the step h, with a thin horizontal line for each and a vertical line at h.")

# %% [markdown]
# Two things can be seen by moving the step. While no kink lies between the four points, the estimate is $v^\top H u$ for every
# label: the label does not matter. Once there is one, the label can matter.
#
# ## The method
#
# ```{admonition} The paper's score
# :class: paper
# The {term}`input loss curvature` of a record $(x, y)$ under a model $f$ is the trace of a Hessian,
# $\mathrm{Curv} = \operatorname{tr} H$ with $H = \nabla^2_x\, \ell(f(x), y)$. Four losses give
#
# $$
# \begin{aligned}
# q &= \tfrac{1}{4h^2} \bigl[\ell(x + hv + hu) - \ell(x - hv + hu) \\
# &\qquad - \ell(x + hv - hu) + \ell(x - hv - hu)\bigr] \\
# &= v^\top H u + O(h^2),
# \end{aligned}
# $$ (curvature-probe)
#
# and the mean of $n^2 q\,(u^\top v)$ over ten draws is the estimate ($n$ pixels). Members have less of it.
# ```
#
# *An example first.* Let $\ell(x) = \tfrac12 x_1^2 + \tfrac32 x_2^2$, so that $H$ has trace $4$. With $v = u$, $q = 4$ and
# $u^\top v = 2$; with $v = -u$ both change sign; with $v \perp u$, $u^\top v = 0$. So $q\,(u^\top v)$ is $8, 8, 0, 0$, and its
# mean is the trace. No factor $n^2$ is needed: it belongs to vectors on the unit sphere
# ({ref}`exercise on the factor <curvature-exercise-factor>`).
#
# **What is released** is the mean of $h\,|q|$. It is never negative, so it has a logarithm. It follows the *size* of the
# Hessian, not its trace. The curvature attacks below run on its logarithm, as the paper's do.
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
# *Why.* $y$ occurs in $-z_y$ alone, which is linear, and four points as in {eq}`curvature-probe` cancel whatever is linear. A
# ReLU network is linear between its {term}`kinks <kink>`. Across a kink the logits turn by some $\Delta z$, and the loss with
# them by about $(p - e_y)^\top \Delta z$, $e_y$ being the label as a unit vector. So a kink counts by how wrong the model is
# about *this* label.
#
# **The attack** (ZO, *zero-order*: without derivatives) compares a log curvature $c$ with its two Gaussians:
#
# ```{admonition} The paper's attack
# :class: paper
#
# $$
# \mathrm{LR} = \frac{\mathcal N(c;\, \mu_{\mathrm{in}}, \sigma^2_{\mathrm{in}})}{\mathcal N(c;\, \mu_{\mathrm{out}}, \sigma^2_{\mathrm{out}})}, \qquad
# \mathrm{NLL} = \log \mathrm{LR} .
# $$ (curvature-lr)
# ```
#
# (NLL is printed with the opposite sign, by which members would score low.) It is LiRA with another signal. And since the
# logarithm rises strictly, *LR and NLL must rank all records alike*. In the paper they do not: on CIFAR-100 their AUCs are
# {printed}`table1 | CIFAR100 | Curv ZO LR | auroc` and {printed}`table1 | CIFAR100 | Curv ZO NLL | auroc` %.
#
# ## What privacy allows
#
# *An example first.* Say the truth with odds $e^\epsilon$ and a lie otherwise. This is $\epsilon$-{term}`private <differential privacy>`: no fact changes the
# probability of an answer by a factor above $e^\epsilon$. Whoever hears
# the answer has an AUC of $e^\epsilon/(1 + e^\epsilon)$. No score of any $\epsilon$-private model has more, whatever it is
# computed from.
#
# ````{prf:theorem} Output and curvature under differential privacy (Theorems 4.1 and 4.2)
# :label: curvature-theorem
# Let training be $\epsilon$-differentially private. Then the output probability of a record, with and without the record in
# the training set of $m$ records, has divergence $D_{KL} \le \epsilon$. Let moreover losses lie in $[0, L]$, empirical and
# true risk differ by at most $\gamma$, the risk exceed that of the best predictor by at most $\Delta$, Hessians be
# $\rho$-Lipschitz, adjacent records differ by a random $\alpha$, and curvature be Gaussian with one standard deviation
# $\sigma$. Then with probability $1 - \delta$
#
# $$
# \begin{aligned}
# D_{KL}(\mathrm{Curv}) &\le \frac{[L m (1 - e^{-\epsilon}) + c]^2}{2\sigma^2}, \\
# c &= (4m - 1)\gamma + 2(m - 1)\Delta + \tfrac{\rho}{6}\,\mathbb E\lVert\alpha\rVert^3 + L .
# \end{aligned}
# $$ (curvature-bound)
# ````
#
# *Why.* Privacy keeps the ratio of two densities below $e^\epsilon$, and the divergence is the mean of its logarithm. For the
# second, privacy limits how much one record moves the expected loss (its error stability). A Taylor expansion makes of that a
# bound $B$ on mean curvature. Two Gaussians with means in $[0, B]$ have divergence at most $B^2/2\sigma^2$.
#
# The second bound grows with $m$. The paper concludes (Theorem 4.3) that beyond some size curvature reveals more than the
# output, *if both bounds are tight*. They cannot be: curvature, too, is computed from the model, so by {term}`post-processing`
# it obeys the first bound, whatever $m$. Nor can an upper bound be validated by attacks that stay below it.
# {ref}`The part on the theory <curvature-theory>` has more.
#
# ## All methods: the paper's Table 1
#
# The paper trains ResNets on CIFAR-10, CIFAR-100 and ImageNet, 64 references (52 on ImageNet) against three targets. This run:
# {param}`architecture` on half of {param}`pool` records of {ours}`sets`, {ours}`references` references against each of
# {param}`targets` targets.

# %%
plays = {name: study.play(one) for name, one in banks.items()}
played = plays[bank.name]

# %% tags=["hide-input"]
rivals = [m for m in study.PAPER if m not in ("nll", "lr")]
best = max(rivals, key=lambda m: metrics.auc(played.scores[m], played.members).mean())
def lead(one, other, metric="auc"):
    return 100 * exhibits.number(one, played.members, metric, other)

results.name({"by-hand-row": float(metrics.auc(played.one_view["log_ratio"][0], played.members[0]))})
results.name({"best-rival": exhibits.label(best), "asks": 4 * iterations})
results.name({"lead-released": lead(played.scores["nll"], played.scores[best]),
              "lead-one-view": lead(played.one_view["nll"], played.one_view.get(best, played.scores[best])),
              "lira-repaired": lead(played.scores["lira"], played.scores["lira_released"]),
              "lira-over-nll": lead(played.scores["lira"], played.scores["nll"]),
              "lira-over-ratio": lead(played.one_view["lira"], played.one_view["log_ratio"])}, ".1f")
results.show_table(
    exhibits.table_one(plays, exhibits.MAIN), name="curvature-table-1",
    caption="**Table 1 of the paper**, in percent: AUC {ours}`intervals`; the same with one view "
            "for every method; balanced accuracy at the best threshold, a {ref}`peak <peak-accuracy>`, which has no "
            "interval. The paper's as AUC / accuracy. The upper eight run as in the released code; those in italics are "
            "ours. LiRA's repairs one by one are in {numref}`curvature-lira`.")

# %% [markdown]
# **Count the queries.** As released, curvature and LiRA get two views, the image and its mirror image; others get one. In
# the columns *one view* everyone has one; curvature still asks {ours}`asks` times, others once. Of six rivals {ours}`best-rival` is the
# best on {ours}`set`. NLL less it, in points of AUC: {ours}`lead-released` as released, {ours}`lead-one-view` with one view.
# And against targets that {ref}`fit less <curvature-fit>`?
#
# **Look at the rival.** In the released code LiRA is given the *largest* softmax probability, where its own paper takes the
# true class's {cite}`carlini2022membership`, and it is run by the rule that the code calls LR. Both repaired, its AUC changes
# by {ours}`lira-repaired` points; less NLL's it is {ours}`lira-over-nll` points.
#
# ## Few false alarms: the paper's Figure 4

# %% tags=["hide-input"]
results.name({"finds": exhibits.finds(played, bank.name)})
plotting.show(
    exhibits.roc(plays), name="curvature-figure-4",
    caption="**Figure 4 of the paper** for five methods, on {ours}`sets`: {term}`ROC` on logarithmic axes, the mean over "
            "{param}`targets` targets; two views for curvature and LiRA, one for MAST. It begins where one non-member is one false "
            "alarm. TPR of all methods at low rates, {ours}`intervals`, is in {numref}`curvature-table-5`.",
    alt="A panel for each data set: true positive rate against false positive rate on logarithmic axes, for Curv ZO NLL and "
        "LR, MAST and two forms of LiRA, with a dashed chance line.")

# %% [markdown]
# {ours}`finds`
#
# (curvature-ladder-section)=
# ## Why do LR and NLL differ?
#
# They cannot, as written. So what *is* the released code's LR, and what its NLL? Both put the variance in the place of the
# standard deviation. NLL also takes the spread of the IN references for both hypotheses, so that its quadratic term is gone.
# LR adds likelihoods over views, not their logarithms. Here is one change after the other, from the log-likelihood ratio on (the
# step to the variance also divides by the number of references and not by one less, as the released code does):

# %% tags=["hide-input"]
based = study.by_base(bank, [2, float(np.e), 10, 1000])
counted = study.by_references(bank, reference_counts)
spread = study.record_curves(bank, [10, 50, 90]).spread
rungs = played.ladders["LR"]
proper, pooled = rungs["log-likelihood ratio"], played.controls[exhibits.POOLED]
squared = rungs["variance for standard deviation"]
fewest = min(counted)
results.name({"squared-few": lead(counted[fewest][study.SQUARED], counted[fewest]["log_ratio"])}, ".1f")
results.name({"squared-steps": f"with {fewest} references the step changes AUC by {{ours}}`squared-few` points, with all by "
              "{ours}`variance-step`" if fewest < models - 2 else "this run has one number of them"})
results.name({"variance-step": lead(squared, proper), "pooled-step": lead(pooled, proper)}, ".1f")
results.name({"spread-in": float(spread[0]), "spread-out": float(spread[1])}, ".1f")
results.show_table(
    exhibits.steps_table(plays), name="curvature-steps-lr",
    caption="From the log-likelihood ratio to the released LR: AUC in percent, two views; in brackets each change against the "
            "step before, paired, {ours}`intervals`. The last row is no step, and is compared with the first. The way to NLL, and "
            "low rates, are in {numref}`curvature-ladder`.")

# %% [markdown]
# Where two variances stand for two standard deviations, the score changes by {ours}`variance-step` points of AUC; where *one*
# pooled variance stands for both, by {ours}`pooled-step`. The formula says why that can be. The log ratio of two Gaussians has
# a term that depends on the target and one that does not,
#
# $$
# \underbrace{\tfrac12 (c - \mu_{\mathrm{out}})^2/\sigma_{\mathrm{out}}^2 - \tfrac12 (c - \mu_{\mathrm{in}})^2/\sigma_{\mathrm{in}}^2}_{\text{evidence}}
# \; + \; \underbrace{\log(\sigma_{\mathrm{out}}/\sigma_{\mathrm{in}})}_{\text{the record's own}} .
# $$
#
# Put $\sigma^2$ where $\sigma$ belongs. The record's own term doubles. The evidence is divided by $\sigma^2$ once more: it
# shrinks where spreads are above one, and here their medians are {ours}`spread-in` (IN) and {ours}`spread-out` (OUT). The
# balance of the two then depends on the unit of $c$, even on the base of the logarithm, which no likelihood ratio does
# ({numref}`curvature-base`). With one spread for both hypotheses the record's own term is zero, and these two cannot be out of
# balance; records are still weighted differently. More references estimate spreads better: where the step then changes less, a part of it was that
# error, and what is left belongs to the rule ({numref}`curvature-references`: {ours}`squared-steps`).
#
# (curvature-what)=
# ## What does the number measure?
#
# By {prf:ref}`curvature-label` exact curvature cannot see the label, and differences see it through kinks. So we run one
# likelihood ratio on several signals, of the same records.

# %%
found = study.estimators(bank, estimator_records, steps, probe_counts)

# %% tags=["hide-input"]
results.name({"signal-records": len(found.members[0])})
results.name({"wrong-in": float(found.wrong[0]), "wrong-out": float(found.wrong[1])}, ".0%")
results.name({"negative": found.named["printed"].negative}, ".0%")
results.name({f"signal-{name}": 100 * exhibits.number(one.ranks, found.members) for name, one in (
    ("exact", found.named["exact_norm"]), ("released", found.released), ("own-label", found.named["own_label"]))}, ".1f")
results.show_table(
    exhibits.signals_table(found, h, iterations), name="curvature-signals",
    caption="AUC of the log-likelihood ratio on several signals, in percent {ours}`intervals`, on {ours}`signal-records` "
            "records and one view. The last two rows are no curvature. More estimates are in {numref}`curvature-estimators`.")

# %% [markdown]
# Exact curvature needs the parameters; the likeliest class's confidence needs one query, and no label either. The true class's
# confidence needs one query and the label. On these records models miss the label of {ours}`wrong-in` of those that they were
# trained on and of {ours}`wrong-out` of the others (mean over all models).
#
# ## Training sets by design: the paper's Figure 7
#
# The paper trains on the records of lowest curvature and finds that the attack gets *stronger* with size, beyond its strength
# on random sets. Such a {term}`coreset` has a secret to give away before any model is trained: members are the easy records,
# non-members the hard ones. So we add two controls. *No target at all* chooses the coreset by the curvature under one half of
# the models and ranks records by that under the other half. A **matched** set is a random half of the $2m$ records of lowest
# curvature, judged against the other half.

# %%
swept = {kind: study.by_size(bank, kind, sizes, size_seeds, judged)
         for kind in study.KINDS}
drawn = {kind: study.judged_records(bank, kind, sizes, size_seeds, judged)
         for kind in study.KINDS}
told = study.told_without_a_target(bank, sizes)

# %% tags=["hide-input"]
def of_nll(kind, size):
    found_there = swept[kind][size]
    return study.over_targets(found_there.scores["nll"], found_there.members, records=drawn[kind][size])

def apart(one, other):
    return 100 * exhibits.difference(of_nll(*one), of_nll(*other))

smallest, largest = min(sizes), max(sizes)
results.name({"size-smallest": smallest, "size-largest": largest})
results.name({"coreset-rise": apart(("coreset", largest), ("coreset", smallest)),
              "coreset-lead": apart(("coreset", largest), ("random", largest)),
              "coreset-lead-small": apart(("coreset", smallest), ("random", smallest)),
              "told-smallest": 100 * told[smallest], "told-largest": 100 * told[largest]}, ".1f")
results.name({"told-at": "{ours}`told-largest` % at {ours}`size-largest` records" if len(sizes) == 1 else
                         "{ours}`told-smallest` % at {ours}`size-smallest` and {ours}`told-largest` % at {ours}`size-largest` records",
              "coreset-leads": "{ours}`coreset-lead` points at {ours}`size-largest` records" if len(sizes) == 1 else
                               "{ours}`coreset-lead-small` points at {ours}`size-smallest` records and {ours}`coreset-lead` at {ours}`size-largest`",
              "coreset-said": "This run has one size of coresets." if len(sizes) == 1 else
                              "NLL on coresets, the largest less the smallest: {ours}`coreset-rise` points of AUC."})
plotting.show(
    exhibits.coreset_figure(swept, pool, told), name="curvature-figure-7",
    caption="**Figure 7 of the paper**: NLL on random sets, coresets and matched sets, the mean of {param}`size_seeds` "
            "targets of each size, against the share of the pool that is trained on. Hollow: what the authors' notebooks "
            "hold, for CIFAR-100. Crosses: a coreset told by models that did not choose it, {ours}`told-at`. Right: at the best threshold, a "
            "{ref}`peak <peak-accuracy>`, which is above one half by chance alone. {numref}`curvature-coreset-table` has the AUCs, {ours}`size-intervals`.",
    alt="Two panels, AUC and balanced accuracy against the share of the pool: random sets, coresets and matched sets, the "
        "authors' values as hollow marks, and crosses for what tells a coreset without any target.")

# %% [markdown]
# {ours}`coreset-said` On the largest coreset less on random
# sets of that size: {ours}`coreset-lead` points. How much of a coreset is told without a target, {ours}`told-at`,
# is what records' ease alone tells. NLL compares a record with itself, so part of the ease
# cancels; on matched sets, where members and others are equally easy, nothing is left but membership. (A matched set
# needs over twice its size in the pool; larger ones have the other control only.)
#
# ## What held and what did not
#
# These sentences are chosen by the verdicts of this run; the numbers behind each are {ref}`below <curvature-claims>`.
# Where one ends with a number of parts, its claim was put as that many numbers, and so many of them hold.
#
# **Curvature.** {says}`C1` {says}`C2` {says}`C13` {says}`A2`
#
# **Attacks.** {says}`C3` {says}`C3v` {says}`C4` {says}`C4v` {says}`C5` {says}`C6` {says}`C7` {says}`A1` {says}`A3`
#
# **Privacy and training sets.** {says}`C8` {says}`C9` {says}`C10` {says}`A4` {says}`C11` {says}`C12` {says}`C12a`

# %% [markdown]
# ## Exercises
#
# ````{exercise} Which factor?
# :label: curvature-exercise-factor
# For a quadratic $\ell = \tfrac12 x^\top H x$ show that $q = v^\top H u$ exactly. Compute $\mathbb E[q\, v u^\top]$ for
# entries $\pm 1$ and for vectors on the unit sphere. Where does the paper's $n^2$ belong? How many times more probes do
# independent $u, v$ need than $u = v$ for $H = I$, and for $H = \mathbf 1\mathbf 1^\top / n$, with $n = 784$?
# ````
#
# ````{solution-start} curvature-exercise-factor
# :class: dropdown
# ````
#
# All first-order terms cancel and the second-order ones leave $4h^2\, v^\top H u$. With
# $\mathbb E[uu^\top] = \mathbb E[vv^\top] = C$, $\mathbb E[q\,vu^\top] = C H C$: it is $H$ for $\pm 1$ ($C = I$) and $H / n^2$
# on the sphere ($C = I/n$). For $H = I$ one vector in both places, $v^\top v = n$ (Hutchinson), has no variance at all, independent vectors have
# $2n^2 - 2n$: infinitely many times more. First the quadratic, with the four points of this page, then the second $H$:

# %%
rng, n = np.random.default_rng(seed), 784
x, u, v = rng.normal(size=n), *rng.choice([-1.0, 1.0], (2, n))
quadratic = np.ones((n, n)) / n
q = four_points(lambda x: x @ quadratic @ x / 2, x, u, v, h=0.1)
spread_of = theory.probe_variance(quadratic)
two, one = spread_of["zero_order"], spread_of["hutchinson"]
results.say(f"Four losses {q:.4f}, product {v @ quadratic @ u:.4f}. "
            f"Variance of one probe: {two:.0f} with independent vectors, {one:.2f} "
            f"with one, {two / one:.0f} times less.")

# %% [markdown]
# ````{solution-end}
# ````
#
# ````{exercise} Can LR and log LR disagree?
# :label: curvature-exercise-logs
# Show that the AUC does not change under strictly increasing maps. Then compute, for every target $t$ with references $R$, the
# AUC of `attack.likelihood_ratio(log[t], log[R], bank.game.members[R])` and of `attack.nll` of the same, where
# `log = bank.signals["curvature"]` and `R = bank.game.references(t)`. Where would they differ after all?
# ````
#
# ````{solution-start} curvature-exercise-logs
# :class: dropdown
# ````
#
# The AUC is $P(s_{\mathrm{in}} > s_{\mathrm{out}}) + \tfrac12 P(s_{\mathrm{in}} = s_{\mathrm{out}})$ for a random member and a
# random non-member, and a strictly increasing map changes neither event.

# %%
exact = exhibits.logs_and_ratios(bank)
results.say(results.markdown_table(exact.head(6)))

# %% [markdown]
# They differ only where the exponential over- or underflows and ties records: beyond a log ratio of $709$, or below $-745$.
# Many views or tiny spreads can get there; the last column says whether any did here. So a library returns logarithms.
#
# ````{solution-end}
# ````
#
# ````{exercise} Step and rounding (a change of parameters)
# :label: curvature-exercise-step
# At which $h$ does the rounding of the loss, eps times $\ell$ over $4h^2$, reach $|v^\top H u|$, what a probe would be without kinks? Half of the
# records of {numref}`curvature-steps` have a loss above {ours}`rounding-loss`, half have $|v^\top H u|$ above {ours}`rounding-q`, and the eps of
# float32 is $1.2 \cdot 10^{-7}$. Where does float32 leave float64 in that figure, and why is it not there? Then run
# `mia sweep curvature -p h 1e-5,1e-3,1e-2,1e-1`: which step gives NLL the highest AUC?
# ````
#
# ````{solution} curvature-exercise-step
# :class: dropdown
# $h = \sqrt{1.2 \cdot 10^{-7}\, \ell / 4|v^\top H u|}$, which is {ours}`rounding-h`. (Points are rounded as well, which adds eps
# times the slope over $h^2$.) Kinks make $|q|$ larger than $|v^\top H u|$, and so float32 good for smaller steps than that. The sweep runs in
# float64, where the smallest step reads the Hessian between kinks, of the median record at least: compare its
# AUC with that of the norm in {numref}`curvature-estimators` (other records, one view, the log ratio). Which step is best the sweep says for your run. A larger step crosses more kinks, through which the
# label comes in; what that is worth at which step, the same table says.
# ````
#
# ````{exercise} Privacy closes the door
# :label: curvature-exercise-private
# Show that no score of an $\epsilon$-private model has an AUC above $e^\epsilon/(1 + e^\epsilon)$. What does the Gaussian map
# $\mathrm{AUC} = \Phi(\sqrt{D_{KL}})$ allow for $D_{KL} \le \epsilon$? Which of the two is right at $\epsilon = 1$? And with
# DP-SGD's $\delta$?
# ````
#
# ````{solution-start} curvature-exercise-private
# :class: dropdown
# ````
#
# Privacy keeps the ROC curve below $\min(e^\epsilon\,\mathrm{FPR},\ 1 - e^{-\epsilon}(1 - \mathrm{FPR}))$, whose area is
# $e^\epsilon/(1 + e^\epsilon)$. The Gaussian map allows more, for two such Gaussians are not $\epsilon$-private. With
# $\delta$, $\mathrm{TPR} \le e^\epsilon\,\mathrm{FPR} + \delta$ adds a little.

# %%
results.say(results.markdown_table(pd.DataFrame([
    {"ε": epsilon,
     "largest AUC": float(theory.auc_cap(epsilon)),
     "with δ = 0.01": float(theory.auc_cap(epsilon, 0.01)),
     "Gaussian map": float(theory.gaussian_auc_of_kl(epsilon))}
    for epsilon in (0.1, 0.5, 1.0, 2.0)])))

# %% [markdown]
# ````{solution-end}
# ````
#
# ````{exercise} A defence by noise
# :label: curvature-exercise-noise
# A server adds Gaussian noise of standard deviation $s$ to every loss it returns. By how much does that move a probe $q$? How
# large must $s$ be to drown the median $|q|$ at the $h$ of this run (printed in the solution), and what does it do to an attack
# on the loss?
# ````
#
# ````{solution-start} curvature-exercise-noise
# :class: dropdown
# ````
#
# Four independent noises of variance $s^2$ over $4h^2$: $q$ moves by a standard deviation of $2s/4h^2 = s/2h^2$.

# %%
scale = study.step_sizes(bank, sorted({1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, h}))
typical, loss, q = scale.typical(h), np.median(scale.loss), np.median(scale.expected)
least = np.sqrt(np.finfo(np.float32).eps * loss / (4 * q))
results.name({"rounding-loss": loss, "rounding-q": q, "rounding-h": least}, ".2g")
inside, outside = np.mean(played.median_in), np.mean(played.median_out)
results.say(f"With h = {h:g} the noise equals the median $|q|$ of {typical:.2g} at "
            f"$s$ = {2 * h * h * typical:.1g} nats. Median losses of members are "
            f"{inside:.1e}, of others {outside:.1e}. "
            f"Noise is multiplied by {0.5 / h**2:,.0f}.")

# %% [markdown]
# Set beside the losses of members and others, noise that size says what an attack on the loss keeps: all of it, where it is far below
# both. A larger step multiplies the noise less (what steps are worth is in {numref}`curvature-estimators`), and averaging helps, too. A server that
# returns the same noise for the same input stops the latter; one that returns labels alone stops the attack.
#
# ````{solution-end}
# ````

# %% [markdown]
# ## Quiz
#
# Choose an option and open it: it says why it is right, or what it mistakes.
#
# :::{quiz} curvature
# :::

# %% [markdown]
# ## In depth
#
# Everything else: proofs and checks, the other exhibits of the paper in its order, claims with their verdicts, silences and
# slips. Each part opens on its own.
#
# (curvature-theory)=
# ### What privacy allows, and two slips on the way
#
# By post-processing every score of an $\epsilon$-private model obeys $D_{KL} \le \epsilon \tanh(\epsilon/2) \le \epsilon$ and
# an AUC of at most $e^\epsilon/(1 + e^\epsilon)$. Binary randomised response attains both.

# %%
mechanisms = exhibits.mechanisms(400, seed)
world = theory.CurvatureWorld(
    loss_bound=1.0, gamma=0.01, bias=0.0, hessian_lipschitz=0.1,
    alpha_cubed=1.0, sigma=10.0)

# %% tags=["hide-input"]
plotting.show(
    exhibits.theory_figure(mechanisms, world, np.geomspace(1, 1e5, 60)), name="curvature-theory-figure",
    caption="Left: divergence of random private mechanisms and of randomised response, which attains the sharp bound. Right: "
            "what Theorem 4.2 allows curvature (with $L = 1$, $\\sigma = 10$ and small other constants) and what any "
            "function of the model can have, against the number of training records.",
    alt="Left, a scatter of divergences against epsilon under two curves, with crosses for randomised response. Right, three "
        "curves of the theorem's bound against the number of training records, and three horizontal lines.")

# %% [markdown]
# Both bounds are upper bounds. An attack that stays below an upper bound does not validate it, nor does one bound above
# another say which score reveals more.
#
# *A cross term.* The paper's Eq. 29 has $(\mu_{\mathrm{out}}^2 - \mu_{\mathrm{in}}^2)/2\sigma^2$ for the divergence of two
# Gaussians. With means $0.4$ and $1.3$ and $\sigma = 0.7$ that is $1.56$; the divergence, $(\mu_{\mathrm{out}} -
# \mu_{\mathrm{in}})^2/2\sigma^2$, is $0.83$. This slip alone would not break the final bound, if both means lie in $[0, B]$.
#
# *A factor of one half.* Lemma A.1 bounds mean curvature by $L(m(1 - e^{-\epsilon}) + 1) + c_1$, $c_1 = c - L$. Let every
# model have the loss $x^2(1 - |x|)$ on $[-1, 1]$, and let the records be $-1$, $0$ and $1$. Nothing depends on training, so
# $\epsilon = 0$ and all gaps are zero; the loss is at most $L = 4/27$, the second derivative changes at a rate of at most
# $\rho = 6$, and the neighbours of the record $0$ lie at distance one: the bound is $4/27 + 6/6 = 1.15$. The curvature at $0$
# is $2$. The expansion lacks the one half before its second-order term.
#
# *The noise of a probe.* With independent $u$ and $v$ one probe has the variance $(n + 2)\lVert H\rVert_F^2 +
# \operatorname{tr}(H)^2 - 4\sum_i H_{ii}^2$. Hutchinson's $u = v$ has $2(\lVert H\rVert_F^2 - \sum_i H_{ii}^2)$, about $n/2$
# times less for an $H$ far from diagonal, for half the queries. And $\mathbb E|v^\top H u|$, what is released, is about
# $2/\pi$ (rank one) to $\sqrt{2/\pi}$ (many directions), where no few pixels dominate, times the Frobenius norm $\lVert H\rVert_F$, the root of the sum of
# squared entries.
#
# (curvature-fit)=
# ### The targets

# %% tags=["hide-input"]
results.show_table(
    exhibits.targets_table(plays), name="curvature-targets",
    caption="The targets: accuracy and median loss on members and non-members, and the gap between mean log curvatures, "
            "{ours}`intervals`.")

# %% [markdown]
# NLL compares how a record bends with how it bends for models that fit it. Train the targets for less,
# `mia run curvature -p epochs 10`, and see who leads then.
#
# :::{about} cifar100
# In the recorded run on half of {param}`pool` images of CIFAR-100, {param}`epochs` epochs, targets are right about a share of
# {ours}`curvature-targets | CIFAR-100 | accuracy, members` of their members, and NLL less {ours}`best-rival` is {ours}`lead-released` points of AUC.
# :::
#
# :::{about} pool
# In the recorded run on half of {param}`pool`, {param}`epochs` epochs, they are right about {ours}`curvature-targets | CIFAR-100 | accuracy, members`
# of them, and NLL less {ours}`best-rival` is {ours}`lead-released` points.
# :::
#
# ### Figure 1: which images curve

# %% tags=["hide-input"]
first = banks[bank.name]
plotting.show(
    exhibits.extremes(first.records, played.difficulty), name="curvature-figure-1",
    caption="**Figure 1 of the paper**, left part: the images of {ours}`set` with the lowest and the highest mean log "
            "curvature under models that were not trained on them, with their labels. The paper calls images of low "
            "curvature prototypical, of high curvature atypical.",
    alt="Two rows of eight small images with their labels: the lowest curvature above, the highest below.")

# %% [markdown]
# For the right part of the figure, a sketch of loss surfaces, {numref}`curvature-idea` has a measured one. Whether an image of
# high curvature is mislabelled no number here says.
#
# ### Figures 2 and 3: many records, one record

# %% tags=["hide-input"]
plotting.show(
    plotting.histograms({name: (found_by.log_curvature.ravel(), found_by.members.ravel()) for name, found_by in plays.items()},
                        xlabel="log curvature"),
    name="curvature-figure-2",
    caption="**Figure 2 of the paper**, on {ours}`sets`: log curvature of members and of non-members, all targets and "
            "records together.",
    alt="A panel for each data set with two histograms of log curvature, of members and of non-members.")

# %%
percentiles = [10, 50, 90]
singles = {name: study.record_curves(one, percentiles)
           for name, one in banks.items()}
single = singles[bank.name]

# %% tags=["hide-input"]
rejected = {kind: np.nan_to_num(np.nanmean(p < 0.05, 1)) for kind, p in single.p.items()}
results.name({f"rejected-{kind}-{side}": float(share) for kind, pair in rejected.items()
              for side, share in zip(("in", "out"), pair, strict=True)}, ".0%")
results.name({"models-a-side": single.values.shape[1] // 2})
plotting.show(
    exhibits.record_figure(singles, percentiles), name="curvature-figure-3",
    caption="**Figure 3 of the paper**, for three images of each data set: log curvature under models trained on the image "
            "and under the others, a tick a model, and the Gaussians that the attack fits. The images stand at three "
            "percentiles of how far the two means lie apart, in standard deviations.",
    alt="A row of three panels for each data set. In each, two rows of ticks and two Gaussian curves over log curvature.")

# %% [markdown]
# Are they Gaussian? The Shapiro-Wilk test at the level 5 % rejects the logarithm for {ours}`rejected-log-in` of the records IN
# and {ours}`rejected-log-out` OUT, from {ours}`models-a-side` models each. It rejects the curvature itself, which Algorithm 2
# as printed would fit, for {ours}`rejected-raw-in` and {ours}`rejected-raw-out`. The fewer models, the less the test can
# reject.
#
# ### Table 1, and LiRA repaired step by step

# %% tags=["hide-input"]
results.show_table(
    exhibits.table_one(plays, exhibits.LIRAS), name="curvature-lira",
    caption="LiRA on {ours}`sets`, in percent, as in {numref}`curvature-table-1`: as released, with one repair each (the "
            "true class; a proper ratio), with both, and with both and one variance for all records.")

# %% [markdown]
# In this run LiRA with both repairs less NLL is {ours}`lira-over-nll` points of AUC with two views; less the log ratio of
# curvature, with one view for both, {ours}`lira-over-ratio` points. {term}`RMIA` counts how many others a record beats by a
# factor, here two, and ties all that beat none.
#
# ### Tables 2 to 4: a second view

# %% tags=["hide-input"]
results.show_table(
    exhibits.views_table(plays), name="curvature-table-2",
    caption="**Tables 2 to 4 of the paper**, in percent: AUC from the image alone and with its mirror image, and the paired "
            "gain, {ours}`intervals`; the paper's for one and two views.")

# %% [markdown]
# With flips in training the mirror image is a view that training saw, for half of the epochs; without them it would be a
# stranger.
#
# ### Table 5: few false alarms

# %% tags=["hide-input"]
results.show_table(
    exhibits.low_rates(plays), name="curvature-table-5",
    caption="**Table 5 of the paper**, in percent: TPR at low FPR, ours {ours}`intervals`, the paper's for CIFAR-100 (with one and with two views). "
            "Chance is above the rate where non-members are {ref}`few <chance-tpr>`. Each target here has {ours}`half` non-members; a rate that fewer than one of them would make is below resolution.")

# %% [markdown]
# ### Why LR and NLL differ: all steps, the base of the logarithm, and more references

# %% tags=["hide-input"]
results.show_table(
    exhibits.ladder_table(plays), name="curvature-ladder",
    caption="From the log-likelihood ratio to the released NLL and LR, in percent, two views; in brackets each change "
            "against the step before, paired, {ours}`intervals`. Controls are against the first step. Rates that no "
            "threshold can reach are left out.")

# %% [markdown]
# The log-likelihood ratio does not depend on the base of the logarithm in log curvature; the rule with variances in the place
# of standard deviations does. Nothing else differs between the rows:

# %% tags=["hide-input"]
results.show_table(
    exhibits.base_table(based, played.members), name="curvature-base",
    caption="AUC in percent on {ours}`set`, two views, with the curvature's logarithm to several bases. Both rules see the "
            "same models and records.")
results.show_table(
    exhibits.references_table(counted, played, models - 2), name="curvature-references",
    caption="AUC in percent on {ours}`set`, two views, with fewer references: the log-likelihood ratio, the two released "
            "scores; and less the first the step to variances alone and the two scores.")

# %% [markdown]
# A spread estimated from few references is off by much, and a reader may take that for the cause. The second table has the step
# that puts variances for standard deviations with few references and with many: does what it changes go away?
#
# ### What the number measures: all estimates, and the step

# %% tags=["hide-input"]
results.show_table(
    exhibits.estimators_table(found, h, iterations), name="curvature-estimators",
    formats={"rank correlation with the norm": ".2f"},
    caption="Estimates of curvature, on {ours}`signal-records` records and one view: what they need of the target, AUC of "
            "the log-likelihood ratio in percent {ours}`intervals`, the same among records that all models get right, rank "
            "correlation with the exact Frobenius norm (mean over models), and median size over that norm, where models give "
            "the record's label and where they do not. The last two rows are no curvature. The trace as printed is negative "
            "for {ours}`negative` of the values.")

# %% tags=["hide-input"]
plotting.show(
    exhibits.steps_figure(scale), name="curvature-steps",
    caption="The released estimate (without its factor $h$) over what the Hessian between kinks gives for the very same "
            "probes, against the step, in both precisions, for up to a hundred records under one model.",
    alt="Logarithmic axes: the ratio of the two sizes against the step, a line for the median record and a band for each "
        "precision, and a horizontal line at one.")

# %% [markdown]
# A step that crosses no kink reads the Hessian of the piece that the record lies on; in float64 the line shows from where on the median
# record's does. Larger ones meet kinks. In float32 rounding
# takes over below some step ({ref}`exercise on the step <curvature-exercise-step>`).
#
# ### What it costs (Appendix A.8)
#
# The paper concedes at least four times the queries of LiRA; with its own ten probes it is forty. In return, its Appendix A.8
# says, LR with $64$ shadow models is at low rates about where LiRA is with $256$. It prints no number for the latter. Here the
# number nearest to a quarter is taken; the claim is judged where that is no more than a quarter.

# %% tags=["hide-input"]
few = exhibits.quarter_of(counted, models - 2)
low = metrics.resolves(played.members, 0.001)
def with_few(other):
    if not low:
        return "below resolution"
    return f"{100 * exhibits.number(counted[few]['lr'], played.members, exhibits.LOWEST, played.scores[other]):.2f}"

results.name({"few": few, "c7-released": with_few("lira_released"), "c7-fixed": with_few("lira_fixed")})
results.name({"c7-said": "Non-members are too few for a TPR at 0.1 % FPR, by which the paper compares LR with few references." if not low else
              "LR with {ours}`few` references less another attack with all {ours}`references`, in points of TPR at 0.1 % FPR: less LiRA as "
              "released {ours}`c7-released`, less LiRA with the true class and one variance {ours}`c7-fixed`. The first is the paper's comparison."})
plotting.show(
    exhibits.costs_figure(found, counted, played, models - 2, iterations), name="curvature-costs",
    caption="Left: TPR at 1 % FPR against the number of references (two views, all targets). Right: AUC against the queries of "
            "a record, on {ours}`signal-records` records with one view. Both {ours}`intervals`.",
    alt="Left, true positive rates of six attacks against the number of references. Right, the AUC of the curvature's log "
        "ratio against the number of queries, and of two confidences at one query.")

# %% [markdown]
# {ours}`c7-said`
# With few references a record has few of each kind, and a variance of few numbers is estimated badly: one variance for all
# records is made for that.
#
# ### Figure 5: DP-SGD
#
# Targets trained with {term}`DP-SGD`, references without, as in the released code.

# %%
lacking = dp.lacking()
private = None if lacking else study.private_training(
    bank, epsilons, private_seeds, private_config, judged)
privately = study.privately_judged(bank, private_seeds, judged)

# %% tags=["hide-input"]
if private is None:
    results.say(f"*Not run: {lacking}.*")
else:
    results.show_table(
        exhibits.private_table(private, epsilons, privately), name="curvature-private-table",
        caption="Targets under DP-SGD: the ε asked for and the ε spent, the noise it takes, accuracy on members / others, "
                "and AUC in percent, {ours}`private-intervals`. *No privacy*: the same recipe and epochs without clipping or noise.")
    plotting.show(
        exhibits.private_figure(private, epsilons, privately), name="curvature-figure-5",
        caption="**Figure 5 of the paper**: AUC against ε, the mean over {param}`private_seeds` targets, and, of three epsilons or more, a fit of $[s(1 "
                "- e^{-\\epsilon}) + c]^2$ to Curv ZO LR. The paper's fit has three parameters, of which two can be told "
                "apart. Right of the line: the same recipe without privacy. The table has the numbers, {ours}`private-intervals`.",
        alt="AUC of four attacks at each epsilon and, to the right of a vertical line, without privacy; of three epsilons or more a fitted curve, and the "
            "chance line at one half.")

# %% [markdown]
# Compare the last row of the table first: the leak that the recipe has without any noise bounds what noise can take away. Where
# it is near one half, or its interval covers that, there may be nothing to lose, and a rise of C8 is not to be expected. And
# compare the row of the largest ε with it: the two differ by clipping, too. Nor is a fit of this form a test of the theorem.
# Beyond $\epsilon = 5$ the curve is flat whatever its parameters, and any curve that flattens fits as well. (The
# paper's figure shows the AUC of the *negated* LR, so that a printed $.56$ is $.44$ of the score itself, and its code adds
# $0.015$ to the fitted curve.)
#
# ### Figure 6: the size of the training set

# %% tags=["hide-input"]
plotting.show(
    exhibits.sizes_figure(swept["random"], pool), name="curvature-figure-6",
    caption="**Figure 6 of the paper**: AUC against the size of random training sets, as a share of the pool. Left: "
            "{ours}`set`, one view, the mean of {param}`size_seeds` targets each, references always of half of the pool. "
            "Right: what the authors' notebooks hold (the paper prints no numbers).",
    alt="Two panels, AUC against the share of the pool: six attacks of this run on the left, four of the authors' notebooks "
        "on the right.")

# %% [markdown]
# In the authors' own numbers LR passes LiRA and falls behind it again: at $m = 35{,}000$ they have
# {printed}`fig6_authors_code | random subset | m = 35000 | Curv ZO LR | auroc` and
# {printed}`fig6_authors_code | random subset | m = 35000 | Carlini et al. (2022) | auroc` %. References are trained on half of
# the pool whatever the target's size, as in the released code. So a small target is compared with models unlike it, and
# attacks that compare with nothing (Yeom's) have no such handicap. (Targets here and in the paper's Figures 5 and 7
# draw probes of their own, where those of its Table 1 share the references'.)
#
# ### Figure 7: the numbers, and a fair game on easy records

# %% tags=["hide-input"]
results.show_table(
    exhibits.coreset_table(swept, told, drawn), name="curvature-coreset-table",
    caption="AUC in percent on each kind of training set, {ours}`size-intervals`; *no target at all* chooses the coreset by one half "
            "of the models and ranks records by the other half.")

# %% [markdown]
# {ours}`coreset-said` Coreset less random set: {ours}`coreset-leads`. The authors' notebooks have
# {printed}`fig7_authors_code | m = 500 | Curv ZO NLL | auroc` against
# {printed}`fig6_authors_code | m = 500 | Curv ZO NLL | auroc` % at $m = 500$, and
# {printed}`fig7_authors_code | m = 45000 | Curv ZO NLL | auroc` against
# {printed}`fig6_authors_code | m = 45000 | Curv ZO NLL | auroc` % at $m = 45{,}000$; Yeom's plain loss has
# {printed}`fig7_authors_code | m = 45000 | Yeom et al. (2018) | auroc` % there.
#
# A fair game on easy records needs no further training. Take the bank's own targets, and judge each on the records that curve
# least under its references, members and non-members alike:

# %% tags=["hide-input"]
results.show_table(
    exhibits.easiest_table(played), name="curvature-easiest",
    caption="AUC among the records of lowest mean curvature under the references of each target, in percent, "
            "{ours}`intervals` (one view for Yeom's attack, two for the others).")

# %% [markdown]
# The paper's Appendices A.9 and A.10 ask whether a choice of training records can serve as a defence. That is not run here.
#
# (curvature-claims)=
# ### Every claim, with its verdict
#
# Each claim is put as one or more numbers, its parts, that the paper says are above zero. The verdict is computed from their
# intervals ([how](../book/statistics.md)); those in the table are not widened for their number.

# %%
verdicts = [
    *exhibits.judge_theory(mechanisms, world),
    *exhibits.judge_attacks(plays, counted, single, found, study.normality(bank)),
    *exhibits.judge_sweeps(swept, played, private, epsilons, lacking, drawn,
                           privately),
]

# %% tags=["hide-input"]
by_id = {verdict.claim: verdict for verdict in verdicts}
results.name({f"{claim.lower()}-{word}": text for claim in ("C3", "C3v", "C4", "C4v", "C9", "C10")
              for word, text in exhibits.held(by_id[claim]).items()})
claims.show("curvature", verdicts, {
    **dict.fromkeys(["Figure 2", "Table 1", "Table 5, Figure 4", "Tables 1 and 5", "Tables 2 to 5"], datasets),
    **dict.fromkeys(["Figure 3", "Appendix A.8", "Figure 5", "Figure 6", "Figure 7"], datasets[0])})

# %% [markdown]
# C11 and C12a are proofs: they fail only if code is wrong, and are counted apart. C2 is easier to pass with fewer models. C13
# is about a smooth network; those attacked have kinks, and {numref}`curvature-steps` is about them.
#
# ### Where text and released code differ
#
# | the text | the released code | what it does |
# | --- | --- | --- |
# | trace, $n^2 q\,(u^\top v)$ | mean of $\lvert q\rvert$, times $h$ | measures the size of the Hessian, and kinks: {numref}`curvature-estimators` |
# | Gaussian of the curvature | of $\log(\lvert\cdot\rvert + 10^{-22})$ | {numref}`curvature-figure-3` |
# | LR and its logarithm | two tests with different spreads | {numref}`curvature-ladder` |
# | standard deviation | variance in its place | the same |
# | LiRA | with the largest probability, and by the rule called LR | {ours}`lira-repaired` points of AUC together: {numref}`curvature-lira` |
# | all methods on a par | two views for curvature and LiRA, one for the others | {numref}`curvature-table-1` |
# | balanced accuracy | where FPR + TPR is closest to one | ours: the largest over thresholds |
# | TPR at low FPR | interpolated between thresholds | ours: at most that FPR |
# | DP-SGD | RMSprop | ours: SGD |
# | ImageNet (not run) | LR with all standard deviations one, LiRA by the rule called NLL | not measured |
# | Figure 5 | AUC of the negated score, $0.015$ added to the fit | ours: neither |
# | a threshold for each class (Song and Mittal) | one for all in ROC curves | ours: one for all |
#
# ### Where this run differs from the paper
#
# | exhibit | the paper | this run | to close the gap |
# | --- | --- | --- | --- |
# | data | CIFAR-10, CIFAR-100, ImageNet | {param}`pool` records of {ours}`sets` | `--preset cpu` for CIFAR-10 and CIFAR-100; `--preset paper`, a graphics card |
# | network | ResNet-18, ResNet-50 | {param}`architecture` | `--preset paper` |
# | references, targets | 64 and 3 of other halves | {ours}`references` of {param}`models` models against each of {param}`targets` | `-p models 66` |
# | training | 300 epochs, batches of 512 (CIFAR-100) and 256, a rate of 0.1 that falls at epochs 180 and 240, crops and mirroring | {param}`epochs` epochs, batches of {param}`batch_size`, a rate of {param}`learning_rate` that falls along a cosine, {param}`augmentation` | `--preset paper` |
# | Table 5 | 0.01 % of 25,000 non-members | {ours}`half` non-members | `--preset pool` for 0.01 % |
# | probes | 10, $h = 0.001$ | {param}`iterations`, $h =$ {param}`h` | `-p iterations 10 -p h 0.001` |
# | Figure 5 | 14 epsilons, 20 epochs of CIFAR-100, batches of 128 and a rate of 0.001 (RMSprop) | {ours}`epsilon-count` epsilons, {param}`private_epochs` epochs, batches of {param}`private_batch_size` and a rate of {param}`private_learning_rate` | `--preset cifar100` |
# | Figures 6 and 7 | up to 45,000 records, 2 and 6 models a size | {param}`sizes` records, {param}`size_seeds` models a size | `--preset cifar100` for more models, `--preset paper` for the sizes |
#
# All targets come from one bank: they share records and references. Where there are intervals they cover the choice of target
# and of records, not that of the bank.
#
# ### What this run trains

# %% tags=["hide-input"]
results.show_table(plan, name="curvature-plan", caption="What this run trains and asks; models found in the store, or "
                                                        "recorded in the repository, are not trained again.")
