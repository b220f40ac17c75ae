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
# **Around a record that a network was trained on its loss is flatter. Four losses at a time tell how flat, without a gradient. As released, the
# attack that reads it has the best AUC of its paper. What it sees beyond plain confidence, though, is the label, and a rival that is given the label is
# as good with one query.**
#
# Deepak Ravikumar, Efstathia Soufleri and Kaushik Roy, *Curvature Clues: Decoding Deep Learning Privacy with Input Loss Curvature*
# {cite}`ravikumar2024curvature`.
#
# ```{admonition} Run this chapter again
# :class: tip
# `mia run curvature` takes about four minutes on two CPU cores and less than 2 GB of memory; the second time, seconds.
# Change anything: `mia run curvature -p h 0.01 -p iterations 5`. All parameters: `mia params curvature`.
# [How to rerun](../book/rerun.md) has the rest.
# ```
#
# The [chapter before](calibration.ipynb) compared a record with itself under other models. This one keeps that and changes the
# {term}`score`: not how large the loss is, but how it bends when the input moves. It is also a lesson in reading a result: the paper's two
# attacks should be one, its best-known rival runs with a handicap, and its theorem's premise cannot hold. The effect is real all the same.
#
# Numbers of tables and figures are this book's; *Table 1 of the paper* is always called that.

# %%
import numpy as np
import pandas as pd

from mia_lib import attacks, claims, data, plotting, results, training
from mia_lib.attacks import baselines
from mia_lib.attacks import curvature as attack
from mia_lib.papers.curvature import exhibits, study, theory
from mia_lib.training import private as dp

plotting.set_style()

# %% [markdown]
# ## What the attacker has
#
# The [membership game](../book/game.md) on one pool of records: every model is trained on a random half of it. The attacker owns models
# trained in the same way on other halves, half of them *with* the record under attack (IN) and half without (OUT). Of the target it sees only outputs, but it
# chooses the inputs: 40 queries for each record and view.

# %% tags=["hide-input"]
results.show_table(
    attacks.threat_model({
        "Curv ZO NLL, LR": attack.nll, "LiRA": baselines.lira_online, "Attack R (Ye et al.)": baselines.attack_r,
        "RMIA": baselines.rmia, "Modified entropy (Song and Mittal)": baselines.modified_entropy}),
    name="curvature-threat-model",
    caption="What the attacks need, as declared by the functions that run them. Curvature needs the loss at 40 perturbed copies of each "
            "view, LiRA at the view itself. Yeom et al. threshold the loss of the record; Sablayrolles et al. and Watson et al. subtract from it "
            "what references give, the middle between IN and OUT or the mean OUT.")

# %% [markdown]
# ## Parameters
#
# Square brackets say what is allowed. The `quick` values below train 18 small CNNs on halves of 2,000 images of FashionMNIST; the paper's 67
# ResNets on halves of CIFAR are the preset `paper`.

# %% tags=["parameters"]
datasets: list[str] = ["fashion_mnist_20k"]  # image data of Table 1, the first also of everything else (see `mia data ls`) [data set; not empty]
pool: int = 2000  # records of the game; half of them trains each model [20..60000]
models: int = 18  # in complementary pairs; against each target all serve but itself and its complement [6..1000; even]
targets: int = 18  # models that are attacked in turn [2..models]
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

# %%
config = training.TrainConfig(
    architecture, epochs=epochs, batch_size=batch_size, optimizer="sgd",
    learning_rate=learning_rate, momentum=0.9, weight_decay=1e-4,
    schedule="cosine", augmentation=augmentation, seed=seed)
private_config = training.TrainConfig(
    private_architecture, epochs=private_epochs, batch_size=private_batch_size,
    optimizer="sgd", learning_rate=private_learning_rate, seed=seed)

def bank_of(name):
    records = data.load(name)
    return study.bank(records.take(range(records.n_train)), pool, models, targets,
                      config, iterations, h, seed)

banks = {one.name: one for one in map(bank_of, datasets)}
bank = next(iter(banks.values()))
plan = study.plan(banks, sizes, size_seeds, epsilons, private_seeds,
                  private_config, steps, reference_counts)

# %% tags=["hide-input"]
results.show_table(plan, name="curvature-plan", caption="What this run trains and asks; models found in the store, or recorded in the repository, are not "
                                                        "trained again.")

# %% [markdown]
# ## The idea
#
# Take one image, walk away from it along a line, and look at the loss on the way: under models that were trained on the image, and under models
# that never saw it.

# %%
lines = study.slices(bank, 90)

# %% tags=["hide-input"]
plotting.show(
    exhibits.slices_figure(lines), name="curvature-idea",
    caption=f"The loss of one {bank.name} image along one random direction, a curve a model, on a logarithmic axis. The image is the one at the 90th percentile of how well "
            "curvature tells its models apart: a good case, not the best. A curve of the same shape on this axis bends in proportion to its height.",
    alt="Curves of the loss against the step. Curves of models that were trained on the image lie lower than most of the others; all change "
        "smoothly, with small kinks, and keep their order.")

# %% [markdown]
# Models that were trained on it have a small loss here *and nearby*. On a plain axis a curve a hundred times lower is a hundred times flatter, so curvature
# and loss go together. The question of this chapter is what curvature knows that the loss does not.
#
# ## The method
#
# ```{admonition} The paper's score
# :class: paper
# The {term}`input loss curvature` of a record $z = (x, y)$ under a model $f$ is the trace of a Hessian,
#
# $$
# \mathrm{Curv}(z) = \operatorname{tr} H, \qquad H = \nabla^2_x\, \ell(x), \qquad \ell(x) \text{ short for } \ell(f(x), y) .
# $$ (curvature-definition)
#
# With $u, v$ of independent entries $\pm 1$ and a step $h$, four losses give
#
# $$
# \begin{aligned}
# q &= \frac{\ell(x + hv + hu) - \ell(x - hv + hu) - \ell(x + hv - hu) + \ell(x - hv - hu)}{4h^2} \\
# &= v^\top H u + O(h^2),
# \end{aligned}
# $$ (curvature-probe)
#
# and the mean of $n^2 q\,(u^\top v)$ over ten draws is the estimate ($n$ pixels). Members have less of it.
# ```
#
# Three things about it are worth knowing before any number.
#
# **The factor.** With entries $\pm 1$, $\mathbb E[u u^\top] = I$ and the mean of $q\,(u^\top v)$ is $\operatorname{tr} H$ already; $n^2$ belongs to vectors on the unit sphere
# ({ref}`exercise <curvature-exercise-factor>`). A constant changes no ranking.
#
# **The noise.** Independent $u$ and $v$ make one probe's variance
# $(n + 2)\lVert H\rVert_F^2 + \operatorname{tr}(H)^2 - 4\sum_i H_{ii}^2$. Hutchinson's $u = v$ would have $2(\lVert H\rVert_F^2 - \sum_i H_{ii}^2)$, about $n/2$ times less, for
# half the queries.
#
# **What is released** is neither: it is the mean of $h\,|q|$. That never gets negative, so it has a logarithm, and it follows the *size* of the Hessian, not its trace: $\mathbb E|v^\top H u|$ is between
# $2/\pi$ (rank one) and $\sqrt{2/\pi}$ (many directions) times the Frobenius norm $\lVert H\rVert_F$, the root of the sum of squared entries. All attacks below run on its logarithm, as the paper's do.
#
# The attack fits two Gaussians to a record's log curvature, one over references trained on it and one over the others, and asks which of them the target's value
# comes from:
#
# ```{admonition} The paper's attack
# :class: paper
#
# $$
# \mathrm{LR} = \frac{\mathcal N(c;\, \mu_{\mathrm{in}}, \sigma^2_{\mathrm{in}})}{\mathcal N(c;\, \mu_{\mathrm{out}}, \sigma^2_{\mathrm{out}})}, \qquad
# \mathrm{NLL} = \log \mathcal N(c;\, \mu_{\mathrm{in}}, \sigma^2_{\mathrm{in}}) - \log \mathcal N(c;\, \mu_{\mathrm{out}}, \sigma^2_{\mathrm{out}}) .
# $$ (curvature-lr)
# ```
#
# (The paper prints the second with the opposite sign, by which members would score low.) It is {term}`LiRA` with another signal. And since the logarithm rises
# strictly, *LR and NLL must rank all records alike*. In the paper they do not, by up to ten points of AUC. {ref}`Below <curvature-ladder-section>` we find out why.

# %% tags=["hide-input"]
results.show_source(attack.log_curvature, attack.likelihood_ratio, attack.nll)

# %% [markdown]
# ### What privacy says
#
# ````{prf:theorem} Output and curvature under differential privacy (Theorems 4.1 and 4.2)
# :label: curvature-theorem
# Let training be $\epsilon$-differentially private. Then the output probability of a record, with and without the record in the training set, has
# divergence $D_{KL} \le \epsilon$. If moreover losses are at most $L$ and the curvature is Gaussian with standard deviation $\sigma$,
#
# $$
# D_{KL}(\mathrm{Curv}) \le \frac{[L m (1 - e^{-\epsilon}) + c]^2}{2\sigma^2}
# $$ (curvature-bound)
#
# for $m$ training records and a $c$ that grows with $m$, too (with probability $1 - \delta$, if Hessians are Lipschitz).
# ````
#
# *Why.* Privacy keeps the ratio of the two densities below $e^\epsilon$, and the divergence is the mean of its logarithm. For the second, privacy limits how much one record moves the expected loss, a Taylor expansion turns that into
# a bound $B$ on mean curvature, and two Gaussians whose means lie in $[0, B]$ have divergence at most $B^2 / 2\sigma^2$.
#
# Since {eq}`curvature-bound` grows with $m$, the paper concludes (Theorem 4.3) that beyond some training-set size curvature reveals more than the output, *if both bounds are
# tight*. They cannot be. Curvature, too, is computed from the model, so by {term}`post-processing` it obeys the first bound, whatever $m$, and even the sharp one:
# $D_{KL} \le \epsilon \tanh(\epsilon/2)$, and an AUC of at most $e^\epsilon / (1 + e^\epsilon)$.

# %%
mechanisms = exhibits.mechanisms(400, seed)
world = theory.CurvatureWorld(
    loss_bound=1.0, gamma=0.01, bias=0.0, hessian_lipschitz=0.1,
    alpha_cubed=1.0, sigma=10.0)

# %% tags=["hide-input"]
plotting.show(
    exhibits.theory_figure(mechanisms, world, np.geomspace(1, 1e5, 60)), name="curvature-theory-figure",
    caption="Left: divergence of random private mechanisms and of randomised response, which attains the sharp bound. Right: what Theorem 4.2 allows the curvature (red-violet, "
            "with $L = 1$, $\\sigma = 10$ and small other constants) passes what any function of the model can have (black) and goes on.",
    alt="Left, a scatter of divergences against epsilon, all below two curves, crosses on the lower one. Right, three rising curves of the theorem's bound against the "
        "number of training records cross three horizontal lines.")

# %% [markdown]
# So the theorem gives no reason to expect curvature to reveal more than the output.
#
# ```{admonition} Two slips on the way
# :class: dropdown
# *A cross term.* The paper's Eq. 29 has $(\mu_{\mathrm{out}}^2 - \mu_{\mathrm{in}}^2)/2\sigma^2$ for the divergence of two Gaussians. With means 0.4 and 1.3 and $\sigma = 0.7$ that is 1.56; the divergence, $(\mu_{\mathrm{out}} - \mu_{\mathrm{in}})^2/2\sigma^2$, is 0.83. This
# slip alone would not break the final bound, if both means lie in $[0, B]$.
#
# *A factor of one half.* Lemma A.1 bounds mean curvature by $L(m(1 - e^{-\epsilon}) + 1) + c_1$. Let every model have the loss $x^2(1 - |x|)$ on $[-1, 1]$, and let the records be $-1$, $0$ and $1$. Nothing depends on training, so $\epsilon = 0$ and all gaps are zero; the loss is at most
# $L = 4/27$, the second derivative changes at a rate of at most $\rho = 6$, and the neighbours of the record $0$ lie at distance one: the bound is $4/27 + 6/6 = 1.15$. The curvature at $0$ is 2. The expansion lacks the one half before its second-order term.
# ```
#
# ## The targets

# %%
plays = {name: study.play(one) for name, one in banks.items()}
played = plays[bank.name]

# %% tags=["hide-input"]
results.show_table(
    exhibits.targets_table(plays), name="curvature-targets",
    caption="The targets: accuracy and median loss on members and non-members, and the gap between mean log curvatures with its 95 % interval.")

# %% [markdown]
# They know every member's label, and miss that of about one non-member in five.

# %% [markdown]
# ## The paper's Figure 1: which images curve

# %% tags=["hide-input"]
plotting.show(
    exhibits.extremes(bank.records, played.difficulty), name="curvature-figure-1",
    caption="**Figure 1 of the paper**, left part: the images with the lowest and the highest mean log curvature under models that were not trained on them, with their labels.",
    alt="Two rows of eight small images. The upper row shows trousers only. The lower row shows unusual bags, shirts and shoes, some of which could be of several kinds.")

# %% [markdown]
# Low curvature is prototypical, high curvature atypical or mislabelled. For its right part, a sketch of loss surfaces, {numref}`curvature-idea` has measured ones.
#
# ## The paper's Figures 2 and 3: many records, one record

# %% tags=["hide-input"]
plotting.show(
    plotting.histograms({"all targets, all records": (played.log_curvature.ravel(), played.members.ravel())}, xlabel="log curvature"),
    name="curvature-figure-2",
    caption=f"**Figure 2 of the paper**, on {bank.name}: log curvature of members and of non-members, all targets together.",
    alt="Two broad histograms whose left parts coincide. Members peak around minus eight; non-members have a second, sharp peak around minus three, which hardly any member reaches.")

# %%
percentiles = [10, 50, 90]
single = study.record_curves(bank, percentiles)

# %% tags=["hide-input"]
plotting.show(
    exhibits.record_figure(single, percentiles), name="curvature-figure-3",
    caption="**Figure 3 of the paper**, for three images: log curvature under models trained on the image and under the others, with a Gaussian and a kernel estimate. The images stand at the "
            "10th, 50th and 90th percentile of how far the two means lie apart, in standard deviations.",
    alt="Three panels of two histograms each, with smooth curves. At the tenth percentile the two overlap wholly, at the ninetieth they are apart.")

# %% tags=["hide-input"]
rejected = {kind: np.nanmean(p < 0.05, 1) for kind, p in single.p.items()}
results.say(f"Are they Gaussian? The Shapiro-Wilk test at 5 % rejects the logarithm for {100 * rejected['log'][0]:.0f} % of the records IN and {100 * rejected['log'][1]:.0f} % OUT, "
            f"from {single.values.shape[1] // 2} models each; the curvature itself, which Algorithm 2 as printed would fit, for {100 * rejected['raw'][0]:.0f} % and "
            f"{100 * rejected['raw'][1]:.0f} %.")

# %% [markdown]
# Over all records the two kinds overlap so much that a threshold for all is weak. Their right ends differ: hardly a member has a high curvature, so a high one rules a record out, and a low one says nothing. For one record the two often lie apart: to compare it
# with itself is what makes the attack, as with every attack since [calibration](calibration.ipynb).
#
# ## The paper's Table 1 and Figure 4: all methods
#
# The rivals, all higher for members: *Yeom*, minus the loss. *Watson*, last chapter's calibrated loss. *Sablayrolles* ({term}`MAST`), the same with the middle of the mean losses IN and OUT. *Ye* (attack R), how far the loss lies below the lowest OUT loss. *Song and Mittal*, an
# entropy that knows the label. {term}`LiRA`, the likelihood ratio of {eq}`curvature-lr` on the log odds of a probability. {term}`RMIA`, what a record gains over other records.

# %% tags=["hide-input"]
results.show_table(
    exhibits.table_one(plays), name="curvature-table-1",
    caption="**Table 1 of the paper**, in percent: AUC, ours with 95 % intervals over targets and records, and balanced accuracy at the best threshold, a {ref}`peak <peak-accuracy>`, which has none; the paper's as AUC / accuracy. "
            "The upper eight methods run as in the released code; those in italics are ours. FashionMNIST stands in for the paper's data, a small CNN for its ResNets.")

# %% tags=["hide-input"]
plotting.show(
    exhibits.roc(played), name="curvature-figure-4",
    caption=f"**Figure 4 of the paper**, on {bank.name}: ROC on logarithmic axes. Bands reach from the lowest to the highest target. RMIA leads at the left; at the right it is cut off, for it ties the records that dominate nobody.",
    alt="ROC curves on logarithmic axes. Those of curvature, Ye et al. and LiRA with the true class run together, RMIA above them at the left edge; LiRA as released lies clearly below and the "
        "plain loss lowest, near chance at the left.")

# %% [markdown]
# (CIFAR-10 itself, with the same small CNN and twice the references, is in the recorded run folded in above: there the numbers of NLL and LR come close to those of the paper's CIFAR-100.)
#
# The winner of the paper's eight is the paper's, NLL, and attack R comes next, as on CIFAR-10 and CIFAR-100. But look at LiRA, the paper's best known rival and sixth here. Two things are wrong with it in the released code. It is given the *largest* softmax
# probability instead of the true class's, which the attack's own paper takes {cite}`carlini2022membership`, and it is run by the rule that the code calls LR. Two rows of ours repair one of the two, *largest confidence, log ratio* and *true class, released rule*: each is worth five or six points, and
# NLL stays ahead. With both repaired LiRA is ahead of NLL. {ref}`What is measured <curvature-what>` says why the label matters so much. (RMIA ties all records that beat no other by its factor of two, which costs it AUC.)
#
# ## The paper's Tables 2 to 4: a second view

# %% tags=["hide-input"]
results.show_table(
    exhibits.views_table(plays), name="curvature-table-2",
    caption="**Tables 2 to 4 of the paper**, in percent: AUC from the image alone and with its mirror image, and the paired gain, 95 % intervals; the paper's for one and two views.")

# %% [markdown]
# The mirror image helps every method by one to two points. It is a view that training saw, for half of the epochs; without mirroring in training it would be a stranger.
#
# ## The paper's Table 5: few false alarms

# %% tags=["hide-input"]
results.show_table(
    exhibits.low_rates(plays), name="curvature-table-5",
    caption="**Table 5 of the paper**, in percent: TPR at low FPR, ours with 95 % intervals, the paper's for CIFAR-100. Our targets have 1,000 non-members at the quick setting, so 0.1 % is one false alarm, "
            "and 0.01 % cannot be resolved.")

# %% [markdown]
# LR leads the paper's eight at 0.1 %, with Sablayrolles' MAST within error of it; LiRA as released finds almost nobody. Of ours, RMIA finds most, with one query and one view.
#
# (curvature-ladder-section)=
# ## Why do LR and NLL differ?
#
# They cannot, as written. So what *is* the released code's LR, and what its NLL? On CIFAR both replace the standard deviation by the variance. NLL also takes the spread of IN references for both hypotheses and so loses its quadratic term; LR adds likelihoods over views, not their
# logarithms. Starting from the log-likelihood ratio, one change at a time, and two controls:

# %% tags=["hide-input"]
results.say(f"The median standard deviation of a record's log curvature over models is {single.spread[0]:.1f} IN and {single.spread[1]:.1f} OUT.")
results.show_table(
    exhibits.ladder_table(played), name="curvature-ladder",
    caption=f"From the log-likelihood ratio to the released NLL and LR, in percent, {bank.name}, two views. Each change with its paired 95 % interval against the step before.")

# %% [markdown]
# The AUC half, which the paper leaves open: **it is LR that loses it**, in one step, when variances take the place of standard deviations. Each of its two spreads comes from a handful of references; squaring doubles their relative error, and the distances from the two means are weighed unequally by noise. Where *one* squared
# spread serves both hypotheses, as in NLL or in the second control, hardly any AUC is lost: an error in it weighs records differently, but cannot favour a hypothesis.
#
# The low-FPR half has two parts. **NLL loses some** when the IN spread stands for both hypotheses; with the OUT spread in its place (first control) it does not. To lie far outside what models that never saw the record say is the evidence, and the OUT spread is its yardstick. And **LR gains some** when likelihoods are added over views.
#
# The score that was meant, the log-likelihood ratio, has at least NLL's AUC. Whether it has all of LR's TPR at 0.1 % is left open by A3 below.
#
# (curvature-what)=
# ## What does the number measure?
#
# A ReLU network is linear between its {term}`kinks <kink>`. The loss is $\log\sum_k e^{z_k} - z_y$ of logits $z$. Between kinks $z_y$ is linear in the input, and four losses as in {eq}`curvature-probe` cancel it exactly, at any step. What is left is the Hessian
# $J^\top(\operatorname{diag} p - p p^\top)J$, with $J$ the Jacobian of the logits: **the label does not occur in it**. Across a kink the four points do not cancel, and what that adds is weighted by $p - e_y$, how wrong the model is about *this* label: nothing for a member it has learned, much for a non-member it
# gets wrong.
#
# The table runs one likelihood ratio on several signals, from the same records.
#
# %%
found = study.estimators(bank, estimator_records, steps, probe_counts)

# %% tags=["hide-input"]
results.show_table(
    exhibits.estimators_table(found, h, iterations), name="curvature-estimators",
    formats={"rank correlation with the norm": ".2f"},
    caption=f"Estimates of curvature, on {len(found.members[0])} records and one view: what they need of the target, AUC of the log-likelihood ratio in percent with 95 % intervals, rank correlation with the exact "
            "Frobenius norm (mean over models), and median size over that norm, where models give the record's label and where they do not. The last two rows are no curvature at all.")

# %% tags=["hide-input"]
results.say(f"Models get {100 * found.wrong[0]:.0f} % of their members and {100 * found.wrong[1]:.0f} % of the others wrong. The trace as printed is negative for {100 * found.named['printed'].negative:.0f} % of the values.")

# %% [markdown]
# The *exact* trace and norm, which need the parameters, do no better than the largest confidence, and rank records almost as it does: between kinks curvature is a detour to a number that one query gives. The released estimate is ahead of both. Where the model gives another label than the record's, it reads
# more than the norm, for there kinks count in full; those records are non-members, and stand out by it. When only the label is changed, from the true one to the model's own, the lead is gone. A step ten times smaller, which crosses fewer kinks, loses it too; one ten times larger does at least as well.
# One query for the true class's probability does as well as any. And among the records that all models get right no signal here, curvature or not, is far from chance: these attacks live on records that a model which has not seen them gets wrong.

# %%
scale = study.step_sizes(bank, [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1])

# %% tags=["hide-input"]
plotting.show(
    exhibits.steps_figure(scale), name="curvature-steps",
    caption="The released estimate (without its factor $h$) over what the Hessian between kinks gives for the very same probes, against the step, in both precisions, for 100 records under one model.",
    alt="Logarithmic axes. From a thousandth upwards both precisions agree, the median between one and three, the upper edge of the band higher. Below, the band of float64 narrows to one; float32 climbs steeply.")

# %% [markdown]
# In float64 the smallest steps read the Hessian. At the paper's step most records still read it within a factor of a few; some read a thousand times more, and these are records that the model gets confidently wrong. In float32 rounding shows at a tenth of the paper's step, and is all there is at a hundredth.
#
# ## What it costs
#
# Forty queries a view where LiRA asks one, and the same number of references. (The paper says that it needs fewer; there is no table or figure of it.)

# %%
counted = study.by_references(bank, reference_counts)

# %% tags=["hide-input"]
plotting.show(
    exhibits.costs_figure(found, counted, played, models - 2, iterations), name="curvature-costs",
    caption="TPR at 1 % FPR against the number of references (left, two views, all targets) and against the queries of a record (right, one view, fewer records). 95 % intervals.",
    alt="Left, curves rise with the number of references; LiRA with one variance for all records is highest at each; LiRA as released hardly rises. Right, the curvature's curve rises with the "
        "number of queries to about the level of one query for the true class's probability.")

# %% [markdown]
# With four references a record has two of each kind, and a variance from two numbers is noise: LiRA with one variance for all records is ahead there, and at least as good as any at every number. NLL with half of the references has a higher AUC than LiRA *as released* with all of them. It does not need
# fewer than LiRA with the true class and one variance.
#
# ## The paper's Figure 5: DP-SGD
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
        caption="Targets under DP-SGD: the ε asked for and the ε spent, the noise it takes, accuracy on members / others, and AUC in percent with 95 % intervals. "
                "*No privacy*: the same recipe and epochs without clipping or noise.")
    plotting.show(
        exhibits.private_figure(private, epsilons, privately), name="curvature-figure-5",
        caption="**Figure 5 of the paper**: AUC against ε, with 95 % intervals, and a fit of $[s(1 - e^{-\\epsilon}) + c]^2$, two parameters, to Curv ZO LR (thin line). The paper's fit has three, of which only two can be told apart.",
        alt="AUC of four attacks at each epsilon, all close to one half, with wide intervals, and a thin fitted line.")

# %% [markdown]
# Compare the last row of the table first: the leak that the recipe has without any noise bounds what noise can take away. In a few epochs it is small, so this run can hardly test the figure; the recorded run, with more epochs, does better. Nor is a fit of this form a test of the theorem: beyond
# $\epsilon = 5$ the curve is flat whatever its parameters, and any curve that rises and saturates fits as well. (The paper's figure shows the AUC of the *negated* LR, so that a printed .56 is .44 of the score itself, and its code adds 0.015 to the fitted curve.)
#
# ## The paper's Figure 6: the size of the training set

# %%
swept = {kind: study.by_size(bank, kind, sizes, size_seeds, judged)
         for kind in study.KINDS}
drawn = {kind: study.judged_records(bank, kind, sizes, size_seeds, judged)
         for kind in study.KINDS}

# %% tags=["hide-input"]
plotting.show(
    exhibits.sizes_figure(swept["random"], drawn["random"]), name="curvature-figure-6",
    caption=f"**Figure 6 of the paper**, on {bank.name}: AUC against the size of random training sets, one view, {size_seeds} targets each, references always of half of the pool. 95 % intervals.",
    alt="AUC of six attacks at each size. On the smallest sets the plain loss is among the best; on larger ones curvature's NLL and LiRA with the true class lead, and the loss falls.")

# %% [markdown]
# (Targets here and in the two figures around it draw probes of their own, where those of Table 1 share the references': that costs the curvature attacks a fraction of a point.) References are trained on half of the pool whatever the target's size, as in the released code. So a small target is compared with models unlike it, and attacks that compare with nothing
# (Yeom's) look good on small sets: part of the crossing may be a mismatch.
#
# ## The paper's Figure 7: training sets of low curvature
#
# The paper trains on the records of lowest curvature and finds that the attack gets *stronger* with size, beyond its strength on random sets. Such a {term}`coreset` has a secret to give away before any model is
# trained: members are the easy records, non-members the hard ones. So we add two controls: ranking records by a curvature *in which the target has no part*, and a **matched** set, a random half of the $2m$ records of
# lowest curvature, judged against the other half (for sizes below half of the pool).

# %% tags=["hide-input"]
plotting.show(
    exhibits.coreset_figure(swept, drawn), name="curvature-figure-7",
    caption="**Figure 7 of the paper**: AUC and balanced accuracy of NLL on random sets, coresets and matched sets. Black crosses: coresets, ranking by mean curvature under the references, which needs no target.",
    alt="Two panels. The crosses lie at one. The coreset curve rises at the largest size, above the random one; the matched curve lies at chance.")
results.show_table(
    exhibits.coreset_table(swept, drawn), name="curvature-coreset-table",
    caption="AUC in percent on each kind of training set, 95 % intervals; *no target at all* ranks by a curvature that the target has no part in.")

# %% [markdown]
# The rise with size is there; the lead over random sets shows at the largest size alone, three quarters of the pool (in the recorded run, AUCs on coresets of up to 30 % of the pool do not rise with size). But ranking without any target is perfect, by the very construction of the coreset, and the plain loss is nearly so; NLL *loses* information by comparing each record with itself.
#
# A fair game on easy records needs no further training. Take the bank's own targets, and judge each on the records that curve least under its references, members and non-members alike:

# %% tags=["hide-input"]
results.show_table(
    exhibits.easiest_table(played), name="curvature-easiest",
    caption="AUC among the records of lowest mean curvature under the references of each target, in percent, with 95 % intervals over targets and records (one view for Yeom's attack, two for the others).")

# %% [markdown]
# What a model finds easy without having seen it gives next to nothing away when it is a member.
#
# ## The paper's claims

# %%
verdicts = [
    *exhibits.judge_theory(mechanisms, world),
    *exhibits.judge_attacks(plays, counted, single, found, study.normality(bank)),
    *exhibits.judge_sweeps(swept, played, private, epsilons, lacking, drawn, privately),
]

# %% tags=["hide-input"]
claims.show("curvature", verdicts, {
    **dict.fromkeys(["Figure 2", "Table 1", "Table 5, Figure 4", "Tables 1 and 5", "Tables 2 to 5"], datasets),
    **dict.fromkeys(["Figure 3", "Appendix A.8", "Figure 5", "Figure 6", "Figure 7"], datasets[0])})

# %% [markdown]
# ### Reading the verdicts
#
# These sentences are chosen by the verdicts of this run.
#
# - **C1.** {says}`C1`
# - **C2.** {says}`C2`
# - **C3.** {says}`C3`
# - **C3v.** {says}`C3v`
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
# - **A1.** {says}`A1`
# - **A2.** {says}`A2`
# - **A3.** {says}`A3`
# - **A4.** {says}`A4`
#
# :::{about} quick
# *Why, at the quick setting:*
#
# - **C4.** LR is ahead of NLL, LiRA as released and all that do not compare a record with itself; against MAST (Sablayrolles) and attack R one false alarm in a thousand non-members cannot decide.
# - **C5.** Reproduced, and explained by the {ref}`ladder <curvature-ladder-section>`: it comes from slips in the code, not from taking logarithms.
# - **C8.** This run can hardly test it: in so few epochs the recipe leaks little even without privacy.
# - **A1.** With the true class's probability LiRA is ahead of NLL, by a point.
# - **A2.** What the released estimate has over exact curvature goes with the label.
# - **A3.** In AUC yes; at 0.1 % FPR the run is too small.
# - **A4.** On matched sets and among the bank's easiest records hardly anything leaks ({numref}`curvature-easiest`).
# :::
#
# ## Where text and released code differ
#
# | the text | the released code | what it does |
# | --- | --- | --- |
# | trace, $n^2 q\,(u^\top v)$ | mean of $\lvert q\rvert$, times $h$ | measures the size of the Hessian, and kinks: {numref}`curvature-estimators` |
# | Gaussian of the curvature | of $\log(\lvert\cdot\rvert + 10^{-22})$ | {numref}`curvature-figure-3` |
# | LR and its logarithm | two tests with different spreads | {numref}`curvature-ladder` |
# | standard deviation | variance in its place | the same |
# | LiRA | with the largest probability, and by the rule called LR | some eleven points of AUC together: {numref}`curvature-table-1` |
# | balanced accuracy | where FPR + TPR is closest to one | ours: the largest over thresholds |
# | TPR at low FPR | interpolated between thresholds | ours: at most that FPR |
# | DP-SGD | RMSprop | ours: SGD |
# | ImageNet (not run) | LR with all standard deviations 1, LiRA by the rule called NLL | not measured |
# | Figure 5 | AUC of the negated score, 0.015 added to the fit | ours: neither |
# | a threshold for each class (Song and Mittal) | one for all in ROC curves | ours: one for all |
#
# ## Where this run differs from the paper
#
# | exhibit | the paper | this run | to close the gap |
# | --- | --- | --- | --- |
# | data | CIFAR-10, CIFAR-100, ImageNet | 2,000 records of FashionMNIST | `--preset paper` for CIFAR, a GPU |
# | network | ResNet-18, ResNet-50 | a CNN with two convolutions | the same |
# | references, targets | 64 and 3 of other halves | 16 of 18 models against each of 18 | `-p models 66` |
# | training | 300 epochs, crops and mirroring | 60 epochs, mirroring | the same |
# | Figure 5 | 14 epsilons, 20 epochs of CIFAR-100 | 3 epsilons, 8 epochs | `-p epsilons ...` |
# | Figures 6 and 7 | up to 45,000 records | up to 1,500 | `--preset paper` |
#
# All targets come from one bank: they share records, and each serves as a reference against others. Intervals cover the choice of target and of records, not that of the bank.
#
# ## Exercises
#
# ````{exercise} Which factor?
# :label: curvature-exercise-factor
# For a quadratic $\ell = \tfrac12 x^\top H x$ show that $q = v^\top H u$ exactly. Compute $\mathbb E[q\, v u^\top]$ for entries $\pm 1$ and for vectors on the unit sphere. Where does the paper's $n^2$ belong? How
# many times more probes does independent $u, v$ need than $u = v$ for $H = I$, and for $H = \mathbf 1\mathbf 1^\top / n$, with $n = 784$?
# ````
#
# ````{solution-start} curvature-exercise-factor
# :class: dropdown
# All first-order terms cancel and the second-order ones leave $4h^2\, v^\top H u$. With $\mathbb E[uu^\top] = \mathbb E[vv^\top] = C$, $\mathbb E[q\,vu^\top] = C H C$: it is $H$ for $\pm 1$ ($C = I$) and $H / n^2$ on the
# sphere ($C = I/n$). For $H = I$ Hutchinson's $v^\top v = n$ has no variance at all, independent vectors have $2n^2 - 2n$: infinitely many times more. For the second:
# ````

# %%
n = 784
spread = theory.probe_variance(np.ones((n, n)) / n)
results.say(f"Variance of one probe for $H = \\mathbf 1\\mathbf 1^\\top / n$, whose trace is 1: {spread['zero_order']:.0f} with independent vectors, "
            f"{spread['hutchinson']:.2f} with one, {spread['zero_order'] / spread['hutchinson']:.0f} times less.")

# %% [markdown]
# ````{solution-end}
# ````
#
# ````{exercise} Can LR and log LR disagree?
# :label: curvature-exercise-logs
# Show that the AUC does not change under strictly increasing maps. Then compute, for every target $t$ with references $R$, the AUC of `attack.likelihood_ratio(log[t], log[R], bank.game.members[R])` and of `attack.nll` of the same, where `log = bank.signals["curvature"]` and `R = bank.game.references(t)`. Where would they differ after all?
# ````
#
# ````{solution-start} curvature-exercise-logs
# :class: dropdown
# The AUC is $P(s_{\mathrm{in}} > s_{\mathrm{out}}) + \tfrac12 P(s_{\mathrm{in}} = s_{\mathrm{out}})$ for a random member and a random non-member, and a strictly increasing map changes neither event.
# ````

# %%
exact = exhibits.logs_and_ratios(bank)
results.say(results.markdown_table(exact.head(6)))

# %% [markdown]
# They differ only where the exponential over- or underflows and ties records: beyond a log ratio of 709, or below $-745$. Two views or tiny spreads get there. So a library returns logarithms.
#
# ````{solution-end}
# ````
#
# ````{exercise} Step and rounding (a change of parameters)
# :label: curvature-exercise-step
# At which $h$ does the rounding of the loss, eps times $\ell$ over $4h^2$, reach a typical $|q|$, for $\ell = 10^{-4}$, $|q| = 0.01$ and the eps of float32, $1.2 \cdot 10^{-7}$? Check with {numref}`curvature-steps`. Then run `mia sweep curvature -p h 1e-5,1e-3,1e-2,1e-1`: which step gives NLL the highest AUC?
# ````
#
# ````{solution} curvature-exercise-step
# :class: dropdown
# $h = \sqrt{1.2 \cdot 10^{-7} \cdot 10^{-4} / 0.04} \approx 2 \cdot 10^{-5}$, between the figure's $10^{-5}$, where float32 reads rounding, and $10^{-4}$, where it does not. (Points are rounded as well, which adds eps times the slope over $h^2$.) The sweep runs in float64, where the smallest step reads the Hessian: it is the weakest attack.
# A step of $0.01$ is as good as the paper's or better, for it crosses more kinks.
# ````
#
# ````{exercise} Privacy closes the door
# :label: curvature-exercise-private
# Show that no score of an $\epsilon$-private model has an AUC above $e^\epsilon/(1 + e^\epsilon)$. What does the Gaussian map $\mathrm{AUC} = \Phi(\sqrt{D_{KL}})$ allow for $D_{KL} \le \epsilon$? Which of the two is right at $\epsilon = 1$? And with DP-SGD's $\delta$?
# ````
#
# ````{solution-start} curvature-exercise-private
# :class: dropdown
# Privacy keeps the ROC curve below $\min(e^\epsilon\,\mathrm{FPR},\ 1 - e^{-\epsilon}(1 - \mathrm{FPR}))$, whose area is $e^\epsilon/(1 + e^\epsilon)$. The Gaussian map allows more, for two such Gaussians are not $\epsilon$-private. With $\delta$, $\mathrm{TPR} \le e^\epsilon\,\mathrm{FPR} + \delta$ adds a little.
# ````

# %%
results.say(results.markdown_table(pd.DataFrame([
    {"ε": epsilon, "largest AUC": float(theory.auc_cap(epsilon)), "with δ = 0.01": float(theory.auc_cap(epsilon, 0.01)),
     "Gaussian map": float(theory.gaussian_auc_of_kl(epsilon))} for epsilon in (0.1, 0.5, 1.0, 2.0)])))

# %% [markdown]
# ````{solution-end}
# ````
#
# ````{exercise} A defence by noise
# :label: curvature-exercise-noise
# A server adds Gaussian noise of standard deviation $s$ to every loss it returns. By how much does that move a probe $q$? How large must $s$ be to drown the median $|q|$ of {numref}`curvature-steps` (printed in the solution), and what does it do to an attack on the loss itself?
# ````
#
# ````{solution-start} curvature-exercise-noise
# :class: dropdown
# Four independent noises of variance $s^2$ over $4h^2$: $q$ moves by a standard deviation of $2s/4h^2 = s/2h^2$.
# ````

# %%
typical = float(np.median(scale.expected))
results.say(f"With h = {h:g} the noise equals the median $|q|$ of {typical:.2g} at $s$ = {2 * h * h * typical:.1g} nats; median losses of members are "
            f"{np.median(played.median_in):.1g}. An attack on the loss would hardly notice.")

# %% [markdown]
# A second difference multiplies noise by $1/2h^2$, here half a million. The attacker answers with a larger step, which {numref}`curvature-estimators` says is no loss, and with averaging. A server that returns the same noise for the same input
# stops the latter; one that returns labels alone stops the attack.
#
# ````{solution-end}
# ````
