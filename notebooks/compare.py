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
# # Which attack should I use?
# **Attacks of all chapters on the same models, records and views, with references from the same models. A comparison between papers
# compares what each attack was given; this one holds that fixed, or says what more one has.**
#
# ```{admonition} Run this chapter again
# :class: tip
# `mia run compare` uses the data inside the repository and a laptop; [what it takes](../book/status.md). Change anything:
# `mia run compare -p targets 4 -p few 4`; text and verdicts follow the new numbers. All parameters: `mia params compare`.
# [How to rerun](../book/rerun.md) has the rest.
#
# On Colab, add a cell before the first one, and in it: `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`
# ```
#
# The five chapters before follow one paper each. An auditor comes with another question: *I have this model and these means.
# Which attack do I run, what does it cost me, and how sure can I be?* No paper answers it, since each compares its own attack
# with a few others, on data, references and views of its own choosing. Here models, records and views are the same for all, and so
# are references, but that shadow models and the attacks that cost many times as much have fewer; {numref}`compare-costs` counts what each had.
#
# In this run what was chosen, by the mean AUC on half of the targets, is with up to {ours}`most` references "{ours}`guide-many`", with
# {ours}`least` "{ours}`guide-few`", and from outputs and public records, without any, "{ours}`guide-public`". Which attacks are told
# apart, case by case, is in {numref}`compare-ranking`.
#
# *The main line* takes about half an hour to read. *In depth*, after the exercises, are all rates, sweeps, pairs and claims,
# each folded. The [guide](../book/guide.md) has the short answer.

# %%
import numpy as np

from mia_lib import (claims, data, membership, metrics, plotting, results, signals,
                     training)
from mia_lib.attacks import baselines
from mia_lib.attacks.quantile.networks import NetworkConfig
from mia_lib.evidence import play, versus
from mia_lib.papers.compare import case, exhibits, study
from mia_lib.papers.compare.attacks import ATTACKS

plotting.set_style()

# %% [markdown]
# ## Parameters
#
# A case is a data set, a network and its training; there is one entry of each list for every case. Square brackets say what
# is allowed.

# %% tags=["parameters"]
datasets: list[str] = ["fashion_mnist_20k", "fashion_mnist_20k", "german_credit", "german_credit"]  # one a case (see `mia data ls`) [data set; not empty]
architectures: list[str] = ["strided_cnn:8,16,32", "mlp:32", "mlp:16", "logistic_regression"]  # of targets and references [architecture; as many as datasets]
pools: list[int] = [4000, 4000, 600, 600]  # records of the game, half of which trains each model [40..10000000; as many as datasets]
public: list[int] = [9000, 9000, 400, 400]  # records outside the game [60..10000000; as many as datasets]
models: list[int] = [18, 66, 66, 66]  # in complementary pairs [6..1000; even; as many as datasets]
targets: int = 8  # models of each case that are attacked [4..1000; even]
references: list[int] = [4, 8, 16, 32, 64]  # of an attack, as far as a case has them [4..998; even; ascending; not empty]
epochs: list[int] = [20, 20, 100, 100]  # of training, targets and references alike [1..10000; as many as datasets]
batch_sizes: list[int] = [64, 64, 16, 16]  # likewise [1..100000; as many as datasets]
optimizers: list[str] = ["adam", "adam", "sgd", "sgd"]  # likewise [adam | sgd; as many as datasets]
learning_rates: list[float] = [0.002, 0.002, 0.05, 0.05]  # likewise [1e-6..10.0; as many as datasets]
momenta: list[float] = [0.0, 0.0, 0.9, 0.9]  # of SGD [0.0..0.999; as many as datasets]
weight_decays: list[float] = [0.0, 0.0, 0.0001, 0.0001]  # likewise [0.0..1.0; as many as datasets]
few: int = 8  # references of gradient norms and curvatures, which cost many times a loss [4..998; even]
probes: int = 2  # of the curvature, four losses each [1..100]
damping: float = 0.2  # of the Hessian [1e-6..10.0]
largest_hessian: int = 3000  # parameters of the largest network whose Hessian is computed [0..20000]
forget_epochs: int = 2  # of training a target further, on public records [1..1000]
image_backbone: str = "strided_cnn:8,16,32"  # of quantile regressions on images [architecture]
table_backbone: str = "mlp:32"  # of those on tables [architecture]
regression_epochs: int = 5  # of those on images; ten times as many on tables [1..1000]
public_sizes: list[int] = [100, 1000]  # public records that a regression learns from, beside all [20..]
grown: int = 1  # number of the case whose members and epochs are varied, from 0 [0..100]
members: list[int] = [250, 1000, 8000]  # of a model there, as far as there are records [20..; ascending]
more_epochs: list[int] = [5, 20, 80]  # there [1..10000; ascending]
grown_models: int = 10  # for each of these, all attacked by the others [10..1000; even]
seed: int = 0  # of everything random [0..1000000]

# %% tags=["hide-input"]
limits = case.Limits(few, probes, damping, largest_hessian, forget_epochs)

def recipe(k, of_epochs=None):
    return training.TrainConfig(architectures[k], of_epochs or epochs[k], batch_sizes[k], optimizers[k], learning_rates[k],
                                momenta[k], weight_decay=weight_decays[k], seed=seed)

def regression(k):
    if data.load(datasets[k]).is_image:
        return NetworkConfig(image_backbone, (64,), regression_epochs, seed=seed)
    return NetworkConfig(table_backbone, (), 10 * regression_epochs, seed=seed)

def made(k, size=None, of_epochs=None):
    if size is None and of_epochs is None:
        counts = [n for n in references if n <= models[k] - 2]
        return case.case(datasets[k], recipe(k), pools[k], public[k], models[k], targets, counts, limits, regression(k), seed)
    records = 2 * (size or pools[k] // 2)
    return case.case(datasets[k], recipe(k, of_epochs), records, case.left(datasets[k], records, public[k]), grown_models,
                     grown_models - grown_models % 2, [grown_models - 2], limits, regression(k), seed)

built = [made(k) for k in range(len(datasets))]
cases = case.named(built)
k = min(grown, len(built) - 1)
sizes = {n: made(k, n) for n in members if 2 * n + 60 <= len(data.load(datasets[k]))}
lengths = {n: made(k, None, n) for n in more_epochs}
first = built[0]
results.name({"cases": len(cases), "attacks": len(ATTACKS), "most": max(one.counts[-1] for one in built),
              "least": min(references), "least-half": min(references) // 2, "first": first.name, "grown-case": built[k].name})

# %% [markdown]
# ## What each attacker has
#
# The [game](../book/game.md) is the same for all: half of a pool of records trained the target, in {ours}`cases` cases with
# {param}`targets` targets each, and the attacker gives every record a score. References are the other models of the same bank,
# with the target's complement left out ([why](../book/game.md)). All attacks see one view of each record.

# %% tags=["hide-input"]
results.show_table(
    exhibits.access_table(cases), name="compare-access",
    caption="What attacks have, as declared by the functions that run them. Thresholds that are named there are for who must say "
            "yes or no; the rankings of this chapter do without. And the cases that attacks are for: MATT needs a loss with one "
            "minimum, others a Hessian. What each does is in {numref}`compare-sources`.")

# %% [markdown]
# ## The idea
#
# Two axes order the attacks. One is *access*: the predicted label, the loss of the true label, all outputs, the parameters. The
# other is what the attacker knows of *other models*: nothing; models that were not trained on the record; models of which half
# were trained on it. An attack is worth its knowledge if none with no more does better. Such attacks are the {term}`frontier`: whoever stands
# below it pays for what they do not use.

# %%
plays = {name: study.play(one) for name, one in cases.items()}

# %% tags=["hide-input"]
few_lira = {name: study.play(one, ["lira", "lira_own"], min(few, one.counts[-1])) for name, one in cases.items()}
known = {name: study.records(one) for name, one in cases.items()}
plotting.show(
    exhibits.knowledge_figure(plays), name="compare-knowledge",
    caption="AUC against access to the target, from left to right; colours and fills are references. Full colour and a name: no attack "
            "with as little access and as few references has a higher mean. Public records are not counted, nor are intervals; "
            "attacks that are told who is a member are never named. Bars: 95 % intervals over targets and records.",
    alt="A panel for each case: AUC of every attack in four columns by access, label, loss, output vector and parameters; attacks "
        "on the frontier are named.")

# %% [markdown]
# ## One target by hand
#
# The first target of {ours}`first`, attacked with LiRA and all references of that case. Take the records, train the models,
# ask them for their log odds, and compare the target with the others.

# %%
source = data.load(datasets[0])
order = np.random.default_rng([23, seed]).permutation(len(source))
pool = source.take(order[:pools[0]])
inside = membership.balanced_halves(pools[0], models[0], seed)
bank = training.train(pool, inside, recipe(0))
signal = signals.logit_scaled_confidence(bank, pool).astype(float)
others = membership.references_of(0, models[0])[:first.counts[-1]]
score = baselines.lira_online(signal[0], signal[others], inside[others],
                              fixed_variance=True)
hand = metrics.auc(score, inside[0])
hand

# %% tags=["hide-input"]
results.name({"hand": float(hand), "row": float(metrics.auc(plays[first.name].ranks["lira"][0], inside[0]))}, ".4f")

# %% [markdown]
# Its AUC is {ours}`hand`; the study below, whose tables have means over targets, has {ours}`row` for this one.
#
# ## All attacks, all cases

# %% tags=["hide-input"]
results.show_table(
    exhibits.auc_table(plays), name="compare-auc",
    caption="AUC of every attack, mean over {param}`targets` targets, with half the width of its 95 % interval; bold: of those "
            "without †, the highest of a case. †: told who is a member, see below. Each has the references of "
            "{numref}`compare-costs`. Rates at low FPR: {numref}`compare-rates`.")
results.name({f"{word}-{place}": exhibits.of(played, which) for place, played in enumerate(plays.values())
              for word, which in (("malt", "malt"), ("lira", "lira"), ("quantile", "quantile"))})

# %% [markdown]
# {says}`K1` {says}`K2` {says}`K3` {says}`K4` {says}`K7`
#
# In {ours}`first` one threshold for all has an AUC of {ours}`malt-0`, the regression {ours}`quantile-0`, LiRA {ours}`lira-0`.
# AUC is about the whole ranking. An attack that can only say yes or no, such as 0-1, may be level with others there and still
# have no threshold that accuses few: whom it accuses is then drawn by lot. The [guide](../book/guide.md) keeps the two apart.
#
# **What costlier signals add.** {says}`K5` {says}`K6` Curvature and gradient norms have {param}`few` references, since each
# costs as much as several losses (probes of the curvature, which is estimated as in its released code: {param}`probes`); LiRA is given as few where they are compared.
#
# IHA and the gradient alone (†) subtract a record's own gradient from the sum over the members if it is one, so they are *told* who is a member. What
# they find when they are told random flags instead is in [the chapter on IHA](iha.ipynb). Self-influence (†) is told, too, if less: a member's
# own part is in the Hessian by which it weighs gradients. The AUC of the first two says how near the training came to
# a minimum, not what the model kept of each record: it hangs on epochs and on the schedule of the rate. So they stand in the tables,
# on no frontier and in no ranking, and nothing is claimed of them.

# %% [markdown]
# ## How many references?

# %%
swept = {name: study.by_references(one) for name, one in cases.items()}

# %% tags=["hide-input"]
plotting.show(
    exhibits.references_figure(swept), name="compare-references",
    caption="AUC beyond MALT's against the number of references, half of which were trained on each record. Bars: 95 % "
            "intervals over targets and records.",
    alt="A panel for each case with a curve for each of eight attacks that use references, against the number of references; a "
        "dashed line at zero.")

# %% [markdown]
# An attack needs references for two things: to know what is typical for a record, and to know how much that varies. Own
# spreads need a variance for each record from the models of each kind, of which the left end has {ours}`least-half`. Compare there the
# attacks that fit spreads with those that do not, and then how much each gains on its way to the right. From which number on an attack is
# measurably ahead of MALT is in {numref}`compare-least`.
#
# ## What it costs
#
# References are trained once and serve every record and every target; a regression is trained for each target. Here the bill
# for one target is drawn, counted in operations and not in seconds, so that it is the same on every machine. A bill names all models that
# were trained. Attacks that leave those aside that were trained on the record use half of them. (Here all references are trained on halves of the pool
# that holds the target's members, so they share about half of them with it. Whoever trains references on records of their own needs no more than the half
# that is used; what such references are worth was not run.)

# %% tags=["hide-input"]
plotting.show(
    exhibits.cost_figure(plays, swept), name="compare-cost",
    caption="AUC against the operations that an attack spends before it judges the first record: training references and "
            "regressions, training the target further, decomposing a Hessian (not counted: the classifiers of the shadow models). "
            "Small marks are attacks with fewer references, their number behind the name. The line is the frontier of the attacks "
            "that are not told who is a member. Bars: 95 %, over targets and records, with fewer references over pairs of targets. "
            "Queries, seconds and memory: {numref}`compare-costs`.",
    alt="A panel for each case: AUC against operations on a logarithmic axis, with a rising staircase through the attacks that, of those not "
        "told who is a member, none beats at the same cost or less; attacks with fewer references are small marks.")

# %% [markdown]
# ## Two attacks at your own price
#
# AUC weighs all thresholds alike. An auditor has one: so many false alarms are allowed, so many of the records looked at are
# members, and a wrong accusation costs so much. Set these, and two attacks beside each other.

# %% tags=["hide-input"]
beside = {name: ({exhibits.title(n): one.ranks[n].astype(float) for n in exhibits.BESIDE if n in one.ranks}, one.members)
          for name, one in plays.items()}
pair = exhibits.title("malt"), exhibits.title("rmia")
plotting.explore(
    versus.chart(beside, pair), versus.picture(beside, pair), name="compare-versus",
    instructions="Choose a case and two attacks. Then move the false positive rate that is allowed, the share of members among the "
                 "records looked at, and what a wrong accusation costs in right ones. When does accusing nobody pay best?",
    caption="Two attacks on the same records, means over {param}`targets` targets: both ROCs, and of a thousand records who is "
            "accused, rightly and wrongly. The net gain is right accusations less wrong ones times their cost. It begins at 1 % FPR, "
            "with as many members as others and a cost of ten. Shaded: fewer than one record would make such a rate. How sure the "
            "rates behind it are: {numref}`compare-rates`.",
    alt="Two ROC curves on logarithmic axes with a line at the rate allowed, and beside them a square of a thousand small squares "
        "for each attack, coloured by members missed, right and wrong accusations, and others left alone.")

# %% [markdown]
# ## Who is exposed?
# Call, in each target, the records that pass the threshold of 1 % false alarms. The targets were trained on other halves of the
# pool: what is called under one and again under others is of the record, or of the references, which targets share; what is not is
# chance of the one model.

# %%
shown = [name for name in exhibits.SHORT if name in plays[first.name].ranks]
results.name({"shown": "; ".join(exhibits.title(name) for name in shown)})
among = ["malt", "quantile", "lira"]
repeated = {name: study.again(one, [n for n in among if n in one.ranks])
            for name, one in plays.items()}

# %% tags=["hide-input"]
if first.pool.is_image:
    plotting.show(
        exhibits.exposed_figure(plays[first.name], shown), name="compare-exposed",
        caption="{ours}`first`: the most exposed records under the attacks {ours}`shown`. Above each its label; the share of targets "
                "trained on it that call it less that of the other targets, a mean over attacks; and for how many of the attacks that is a half "
                "or more. They are chosen for this share, so it is higher than under new targets, and would be above zero by "
                "chance alone.",
        alt="Two rows of pictures, each with its label, the share of calls, and the number of attacks.")

# %% [markdown]
# {says}`K9` Other attacks and their false alarms are in {numref}`compare-again`. {says}`K10` Look at the pictures: which would you have labelled otherwise, and which are like nothing else in their
# class? What no other record helps to get right, a model can only remember {cite}`feldman2020what`. {numref}`compare-quarters` has the same for all
# records: which attacks find the easy members, and which the hard ones?
#
# ## Together?
# If attacks know different things, a combination should beat each. Ranks are turned into quantiles of a normal law. Their mean
# needs nothing more; a logistic regression learns weights on *other* targets, whose members this attacker knows. It has all the access
# of {numref}`compare-access`, but for attacks that are told who is a member.

# %%
together = {name: study.combined(one, [n for n in one.ranks if not ATTACKS[n].audits])
            for name, one in plays.items()}

# %% tags=["hide-input"]
results.show_table(
    exhibits.combined_table(together), name="compare-combined",
    caption="The best attack by the metric of the row, chosen on other targets, and what the mean of all attacks and a regression on "
            "all have over it.")

# %% [markdown]
# {says}`K8`
#
# ## What held and what did not
#
# These sentences are chosen by the verdicts of this run; the numbers behind each are {ref}`below <compare-claims>`.
# Where one ends with a number of parts, its claim was put as that many numbers, and so many of them hold.
#
# **Knowledge.** {says}`K1` {says}`K3` {says}`K4` {says}`K7`
#
# **Without references, or with signals that cost more.** {says}`K2` {says}`K5` {says}`K6`
#
# **Who is exposed, and when.** {says}`K9` {says}`K10` {says}`K11` {says}`K12`
#
# To take away: say what the attacker has before you say how well the attack does. A comparison in which one attack has
# references, several views or the other records, and another does not, compares means and not methods.

# %% [markdown]
# ## Exercises
#
# ````{exercise} A frontier of your own
# :label: compare-exercise-frontier
# You may ask for losses and train no model. Which attacks of {numref}`compare-access` are left? Which of them are on the frontier of
# {numref}`compare-knowledge`? What is the least you must add to do better?
# ````
#
# ````{solution} compare-exercise-frontier
# :class: dropdown
# The 0-1 attack and MALT; access is taken as nested here, so that who has the loss has the label. 0-1 is on the frontier
# wherever it is in the picture, since nothing needs less; MALT where its name stands beside it. To do better than both, add models
# trained without the record: a calibrated loss sees no more of the target; whether it does better, {numref}`compare-knowledge` says. Here the regression takes the margin of the outputs; one
# on the log odds, which are a function of the loss, was not run.
# ````
#
# ````{exercise} Double the references, halve the targets
# :label: compare-exercise-budget
# With a budget for $M$ models in all you can have $M - 2$ references, and then every model of the bank can be a target as
# well. Why are intervals over targets then not independent, and why does leaving out the complement matter? Run
# `mia run compare -p targets 4` (where it had more) and say what becomes of the intervals.
# ````
#
# ````{solution} compare-exercise-budget
# :class: dropdown
# Targets of one bank share all other models as references and all records. The interval takes complementary pairs as units, where
# there are four, and adds the variance of drawing records, but not that of drawing another bank. With the complement among the references a
# member would have one reference fewer that holds it than a stranger has: the count alone would give it away. With four
# targets there are too few pairs, and single targets become the unit ([statistics](../book/statistics.md)). That the errors of
# complementary targets cancel in part is then not seen; with the smaller number the interval may grow by more than $\sqrt 2$, or by less.
# ````
#
# ````{exercise} Is the best of many really best?
# :label: compare-exercise-holm
# In {numref}`compare-matrix` grey cells are pairs that Holm's correction leaves undecided. With $A$ attacks there are $A(A-1)/2$ pairs.
# How many would a 5 % test without correction call different if all were alike? Why is the best of a table, chosen on the
# targets that it is reported on, flattered, and how does {numref}`compare-combined` avoid it?
# ````
#
# ````{solution} compare-exercise-holm
# :class: dropdown
# One in twenty of the pairs, $A(A-1)/40$. The largest of many noisy numbers is larger than its mean, more so with more of
# them. In the table the best is chosen on the targets of the other pairs, and judged on a model that is none of them. It was one of
# their references, though, and the records are the same.
# ````

# %% [markdown]
# ## Quiz
#
# Choose an option and open it: it says why it is right, or what it mistakes.
#
# :::{quiz} compare
# :::

# %% [markdown]
# ## In depth
#
# Each part is folded; its title says what is in it.
#
# ### Whose attacks

# %% tags=["hide-input"]
results.show_table(exhibits.sources_table(), name="compare-sources", caption="The attacks, in the order of what they need.")

# %% [markdown]
# ### All rates
#
# TPR at 1 % and 0.1 % FPR and precision at equal odds, case by case. A rate that the strangers cannot resolve is not printed. The
# precision is that of a threshold drawn between two false alarms, and by lot among ties, so that its FPR is 1 % on average; it does
# not follow from the TPR beside it, which is of a threshold that exists. Scores that are shares of few models, as Attack R's are, tie at
# the top: then no threshold has so low a rate.

# %% tags=["hide-input"]
for place, (name, played) in enumerate(plays.items()):
    results.show_table(
        exhibits.rates_table(played), name="compare-rates" + (f"-{place}" if place else ""),
        caption=f"{name}: rates in percent, with 95 % intervals.")

# %% [markdown]
# ### What each costs

# %% tags=["hide-input"]
results.show_table(
    exhibits.cost_table(plays), name="compare-costs",
    caption="Against one target: models trained, queries to the target for each record judged and for public ones, operations, "
            "seconds of one core as the clock had it, and the networks and matrices that are held at once. Counted from what each "
            "attack asked for; the classifiers of the shadow models are not.")

# %% [markdown]
# ### From how many references on?

# %% tags=["hide-input"]
results.show_table(
    exhibits.least_table(swept), name="compare-least",
    caption="The least number of references from which on an attack is ahead of MALT, its interval above zero there and at all "
            "larger numbers. These are many comparisons, each at 95 % and not corrected for the others.")
for place, (name, one) in enumerate(swept.items()):
    results.show_table(
        exhibits.swept_table(one), name="compare-swept" + (f"-{place}" if place else ""),
        caption=f"{name}: AUC, and TPR in percent at 1 % FPR with a threshold drawn between two false alarms, with as many "
                "references; each with half the width of its 95 % interval over pairs of targets.")

# %% [markdown]
# ### Every attack against every other

# %% tags=["hide-input"]
plotting.show(
    exhibits.matrix_figure(plays[first.name]), name="compare-matrix",
    caption="{ours}`first`: paired differences of AUC, the attack of the row less that of the column, sorted by AUC. Grey: not "
            "told apart after {term}`Holm's correction` over all pairs; attacks with like errors are told apart sooner. Each has "
            "the references of {numref}`compare-costs`.",
    alt="A square of cells, blue above the diagonal and red below it, where two attacks are told apart, and grey where they are not.")
plotting.show(
    exhibits.ranking_figure(plays), name="compare-ranking",
    caption="Rank by AUC in each case (mark), and the ranks that the corrected differences leave open (bar), each with the "
            "references of {numref}`compare-costs`.",
    alt="A row for each attack and a panel for each case: a mark at its rank and a bar from the best to the worst rank it may have.")

# %% [markdown]
# ### Public records: how many

# %%
by_public = {name: study.by_public(one, public_sizes)
             for name, one in cases.items()}

# %% tags=["hide-input"]
plotting.show(
    exhibits.public_figure(by_public), name="compare-public",
    caption="AUC of the Gaussian regression beyond MALT's, against the public records that it is fitted to. A fifth of all public "
            "records besides always chooses the epoch. All are fitted for as many epochs, so fewer records are fewer steps, too. Bars: "
            "95 % over targets and records.",
    alt="A panel for each case: a curve against the number of public records on a logarithmic axis, and a dashed line at zero.")

# %% [markdown]
# ### More members, more epochs

# %%
growing = {"members": study.over_cases("members", sizes),
           "epochs": study.over_cases("epochs", lengths)}

# %% tags=["hide-input"]
plotting.show(
    exhibits.grown_figure(growing), name="compare-grown",
    caption="{ours}`grown-case`: AUC against the members of a model, and against its epochs, with {param}`grown_models` models "
            "each, all of them attacked by the others but their complement. Dashed: chance. Bars: 95 % over targets and records.",
    alt="Two panels of curves of AUC, against the number of members and of epochs, both on logarithmic axes.")

# %% [markdown]
# {says}`K11` {says}`K12`

# %% [markdown]
# ### One view and two
# The papers of LiRA and of curvature ask about a picture and its mirror image. Here the same attacks have one view or two. The
# models of this run saw no mirror images in training; what the second view is worth to models that did is in the chapter on
# [curvature](curvature.ipynb).

# %%
two = {name: study.views(one) for name, one in cases.items() if one.pool.is_image}

# %% tags=["hide-input"]
for place, (name, one) in enumerate(two.items()):
    results.show_table(
        exhibits.views_table(one), name="compare-views" + (f"-{place}" if place else ""),
        caption=f"{name}: with one view of each image, and with its mirror image beside it.")
if not two:
    results.say("*Not run: tables have no views.*")

# %% [markdown]
# ### Which records does each find?

# %% tags=["hide-input"]
plotting.show(
    exhibits.agreement_figure(plays), name="compare-agreement",
    caption="Of the members that either of two attacks calls at 1 % FPR, the share that both call, in percent. Of two that know "
            "nothing of each other it would be about half of their rate.",
    alt="A square of green cells for each case, darker where two attacks call the same members.")
plotting.show(
    exhibits.groups_figure(plays, {name: one.hardness for name, one in known.items()}), name="compare-quarters",
    caption="Members found less strangers called, in points, at one threshold with 1 % FPR overall, in four equal parts of the "
            "records, by their mean loss under the models of the bank that were not trained on them. Dashed: chance. Bars: 95 % over "
            "targets and records.",
    alt="A panel for each case: TPR less FPR from the easiest to the hardest quarter, a curve for each attack.")
results.show_table(
    exhibits.again_table(repeated), name="compare-again",
    caption="Of the records called under one target, the share called again under other targets of which they are members (or "
            "strangers) as well, less the share of all such records that are called there, in points. Records that vary much from "
            "model to model are called again where nothing leaks, too: members found show in what the first column has over the second. Neither of two targets that are compared is a "
            "reference of the other. Intervals: 95 % over targets, each of them on either side of a comparison, and records; they err on the wide side.")
if first.pool.is_image:
    plotting.show(
        exhibits.classes_figure(plays[first.name], ["malt", "quantile", "lira"]), name="compare-classes",
        caption="{ours}`first`: members found less strangers called, at one threshold with 1 % FPR overall, class by class. Dashed: "
                "chance. Bars: 95 % over targets and records.",
        alt="One column a class with three marks: one threshold, the regression, and LiRA.")

# %% [markdown]
# ### Records to guess
#
# A few records of the first target, as an attacker sees them; on their own page they are dealt to [you](../book/play.md).

# %% tags=["hide-input"]
seen = case.Seen(first, 0)
dealt = play.deal(
    first.pool.x if first.pool.is_image else None, first.pool.y, first.pool.classes, seen.own("loss"), *seen.references("loss"),
    first.members[0], {"MALT": plays[first.name].ranks["malt"][0].astype(float),
                       "LiRA": plays[first.name].ranks["lira_offline"][0].astype(float)}, seed=seed)
play.show(
    dealt, name="compare-game",
    caption="Half of these records were used to train the target. Losses in nats; references are those that were not trained on "
            "the record.")

# %% [markdown]
# (compare-claims)=
# ### Every claim, with its verdict
#
# Each claim is put as one or more numbers, its parts, that are to be above zero. None is a paper's; the verdict is computed
# from their intervals ([how](../book/statistics.md)).

# %%
verdicts = exhibits.judge(plays, few_lira, together, repeated, growing,
                          {name: one.hardness for name, one in known.items()})

# %% tags=["hide-input"]
claims.show("compare", verdicts)

# %% [markdown]
# ### The guide's numbers

# %% tags=["hide-input"]
chosen, sharp = (exhibits.choices(plays, swept, metric) for metric in ("auc", exhibits.SHARP))
results.name({f"guide-{what}": exhibits.title(one.name) for what, one in chosen.items()})
results.name({f"guide-{what}-auc": one.mean for what, one in chosen.items()})
results.name({f"guide-{what}-sharp": sharp[what].said if sharp else "too few strangers" for what in chosen})
results.name({f"guide-{what}-tpr": sharp[what].mean if sharp else "–" for what in chosen}, ".1%")
results.name({f"guide-{what}-models": used for what, (_, used) in exhibits.counts_of(swept).items()})
plotting.show(
    exhibits.guide_figure(chosen, swept), name="compare-guide",
    caption="What to use with what one has: in each box the attack with the highest mean AUC over the cases among those that it "
            "permits, chosen on one half of the targets and judged on the other; on each arrow what more means add, with half the "
            "width of its 95 % interval over targets and records. Intervals of cases are averaged end by end.",
    alt="Boxes joined by arrows, from predicted labels to losses, outputs, public records, and on to reference models and to "
        "parameters; each names an attack and its AUC.")

# %% [markdown]
# ### What this run trains, and where it stops short
#
# All cases are small. The label-only attack, and those on losses that leave one record out, have no place here. Attacks that need a Hessian are judged on small networks alone. Probes of the curvature number {param}`probes`,
# in its paper ten; LiRA's paper trains up to a few hundred references; RMIA's offline form has the constant that its authors give for
# CIFAR-10; regressions are not tuned. Intervals cover targets and judged records, those of the tables of sweeps and of accuracies, and of attacks with
# fewer references in the picture of costs, targets alone, and none covers the choice of the bank or of the public records.

# %% tags=["hide-input"]
results.show_table(
    study.plan(cases, {"members": sizes, "epochs": lengths}), name="compare-plan",
    caption="What this run trains. Cases with the same data, network and recipe share their models, which are trained once.")
results.show_table(
    exhibits.accuracy_table(known), name="compare-accuracy",
    caption="Accuracy of the targets, in percent: how far each case overfits. A target that did not come as far as the others widens "
            "every interval of its case, and moves its means.")
