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
# # Audit your own model
#
# **An audit attacks a model with all that is at hand. A random forest of ours gives its members away to anyone who may ask it for probabilities,
# with an AUC of {ours}`forest-auc:value`; of a network whose recipe is known {ours}`network-speaks` finds most. With a planted leak
# {ours}`found-forests:value` of the audits of forests raise an alarm, without one {ours}`false-forests:value`.**

# %% tags=["parameters", "hide-input"]
network_data: str = "fashion_mnist_20k"  # of the network; images (see `mia data ls`) [data set]
network_members: int = 1000  # records that train it, and as many non-members [50..1000000]
network_architecture: str = "batchnorm_cnn:8,16,32"  # a third as wide as in the published banks, whose recipe it has [architecture]
network_epochs: int = 20  # of its training [1..1000]
references: int = 8  # models that its audit trains for comparison [4..256; even]
forest_data: str = "german_credit"  # of the forest; a table [data set]
forest_members: int = 300  # records that fit it, and as many non-members [50..1000000]
trees: int = 100  # of a forest [1..10000]
leaf: int = 1  # least records of a leaf, in the forest that is audited [1..10000]
private_members: int = 800  # records that train the private model and its twin, and as many non-members [50..1000000]
private_architecture: str = "mlp:32"  # of both; without batch normalisation [architecture]
private_epochs: int = 20  # of both [1..10000]
epsilon: float = 8.0  # that the private model may spend [0.1..1000.0]
models: int = 8  # of each kind behind a claim, in complementary pairs [2..100; even]
share: float = 0.2  # of the members that a planted leak gives away [0.01..1.0]
games: int = 100  # audits without a leak, and as many with one, of each model [1..100000]
minutes: float = 60.0  # budget of an audit, wide enough that nothing hangs on the clock [1.0..10000.0]
seed: int = 0  # of everything random [0..1000000]

# %% tags=["hide-input"]
import numpy as np
import pandas as pd

from mia_book.evidence import claims, figures, results
from mia_lib import audit, drawing, metrics, signals, training
from mia_lib.attacks import bayes
from mia_book.evidence import rules
from mia_book.chapters.audit import exhibits, measure, study
from mia_lib.training import private

drawing.set_style()
lacking = private.lacking()


def audited(model, dealt, name, **options):
    return audit.audit(model, *dealt.sides(), name=name, minutes=minutes, seed=seed, **options)

# %%
credit = measure.records(forest_data, forest_members, forest_members, models, seed)
forest = measure.forest(credit.sides()[0], trees, leaf, seed)
reports = {"forest": audited(
    forest.predict_proba, credit, "a random forest",
    outputs="probabilities", public=credit.apart)}

# %%
held = measure.forest_models(models, dataset=forest_data, members=forest_members,
                             trees=trees, seed=seed)
played = {"share": share, "games": games, "seed": seed}
tests = {
    "forests": measure.audits(models, dataset=forest_data, members=forest_members,
                              apart=forest_members, **played),
    "small networks": measure.audits(models, kind="network", dataset=network_data,
                                     members=private_members, apart=private_members,
                                     **played)}
frame = pd.concat([study.forests(held), *(study.tested(one, kind)
                                          for kind, one in tests.items())])

# %% tags=["hide-input"]
first = reports["forest"].result
results.name({"forest-auc": first.best.auc, "forest-answer": reports["forest"].answer, "forest-speaks": first.best.attack,
              "forest-low": str(reports["forest"]).splitlines()[-1]})
results.name({f"{short}-{kind.split()[-1]}": metrics.estimate(frame, "audit", "alarms", data=kind, leak=leak).interval((0.0, 1.0))
              for kind in tests for short, leak in (("false", "none"), ("found", "planted"))}, ".0%")
figures.show(
    exhibits.roc_figure(reports["forest"]), name="audit-forest-roc",
    caption="The forest: {term}`ROC` on logarithmic axes, from one record on; what is below one is shaded. The band is the pointwise 95 % "
            "interval of the attack that speaks for the audit.",
    alt="Curves of up to five attacks and a dashed line of chance, that of the attack that speaks thicker and with a band.")

# %% [markdown]
# The chapters before attack models that this book has trained to be attacked. Here three models stand for yours: a random forest of scikit-learn
# that is only asked for probabilities, a network with its training recipe, and a network trained with differential privacy beside its twin. Run it
# again: `mia run audit`, or with other settings, `mia run audit -p leaf 10` ([how to rerun](../book/rerun.md)). Of a model of your own: `mia audit --help`.
#
# ## What an audit asks
#
# *Here is a model, here are records that trained it, here are others like them: who can tell which are which?* That is the
# [game](../book/game.md) of all chapters, with one difference. An attacker has what they have; an auditor has what the owner of the
# model is willing to give, and every further thing permits further attacks:
#
# - **outputs** for members and for non-members: attacks with one threshold;
# - **public records** of the same kind: a regression that says how high a score is for such a record;
# - **a recipe** for the training: reference models, and what a change of the recipe would bring;
# - **weights**: gradients, and of a small network the Hessian.
#
# Members and non-members must come from one distribution. If members are last year's patients and non-members this year's, a classifier can tell them
# apart without any model. So every audit first lets one try, as a control.
#
# ## By hand
#
# No attack knows that there is a forest: the score is minus the loss of the true class.

# %%
members, others = credit.sides()
x, y = (np.concatenate([getattr(one, part) for one in (members, others)])
        for part in ("x", "y"))
inside = np.arange(len(x)) < len(members)
found = signals.from_probabilities(forest.predict_proba(x), y, floor=1e-300)
hand = metrics.auc(bayes.malt(found["loss"]), inside)
hand

# %% [markdown]
# ## A forest, through its probabilities
#
# The report begins with its answer, in words that its numbers chose:
#
# > {ours}`forest-answer` {ours}`forest-low`

# %% tags=["hide-input"]
row = next(one for one in first.attacks if one.name == "MALT")
results.name({"hand": float(hand), "row": float(row.auc.value)}, ".4f")
results.show_table(
    exhibits.rates_table({"the forest": reports["forest"]}), name="audit-forest-rates",
    caption="The forest, with 95 % intervals over the records: first the attack that speaks, then the others by AUC. p is corrected for all "
            "attacks and both tests of each, of AUC and of the rate at 1 %. Last comes the control that sees no model.")
exhibits.show_report(reports["forest"], "audit-forest")

# %% [markdown]
# How to read it:
#
# - **One attack speaks.** The highest of many noisy numbers is too high. So the attack is chosen on one random half of the records,
#   and judged on the other; the answer quotes that number, and the table has all records.
# - **Low false positive rates matter.** An AUC is about the whole ranking. Who accuses has to look at the left end of the curve, and
#   there the number of non-members sets the limit: with $n$ of them no rate between $0$ and $1/n$ exists. What is not resolved is not printed.
# - **Epsilon is a lower bound.** An $(\epsilon, \delta)$-private training allows no attack with $\mathrm{TPR} > e^\epsilon\,\mathrm{FPR} + \delta$,
#   and none with $1 - \mathrm{FPR} > e^\epsilon (1 - \mathrm{TPR}) + \delta$. The second condition is about calling non-members, and often gives the
#   larger bound: an attack that is wrong about half of the non-members may hardly ever miss a member.
#
# By hand the AUC is {ours}`hand`; the row MALT has {ours}`row`. What is easily forgotten by hand: intervals, the control, the corrections.
#
# ## A network, with a recipe
#
# The network has a third of the width of those of the [published banks](banks.ipynb), and their recipe.

# %%
images = measure.records(network_data, network_members, 0, 2, seed)
recipe = training.TrainConfig(network_architecture, seed=seed,
                              **measure.BANK | {"epochs": network_epochs})
trained = training.train(images.pool, images.members[:1], recipe).model(0)
reports["network"] = audited(
    trained, images, "a convolutional network", recipe=recipe, references=references)
frame = pd.concat([frame, study.references(reports["network"])])

# %% [markdown]
# > {ours}`network-answer` {ours}`network-low`

# %% tags=["hide-input"]
answer = str(reports["network"]).splitlines()
results.name({"network-answer": answer[0], "network-low": answer[-1], "network-speaks": reports["network"].result.best.attack})
results.name({"network-right": reports["network"].accuracy[1], "network-own": reports["network"].accuracy[0]}, ".0%")
results.name({"references-gain": rules.number_of("audit", "A6", frame)}, ".1f")
results.show_table(
    exhibits.rates_table({"the network": reports["network"]}), name="audit-network-rates",
    caption="The network, as {numref}`audit-forest-rates` has the forest. Among the attacks are now those that compare with references.")
exhibits.show_report(reports["network"], "audit-network")

# %% [markdown]
# The network is right on {ours}`network-own:value` of its own images and on {ours}`network-right:value` of others. The recipe buys two things.
# Reference models, {param}`references` at most, are trained on random halves of all records that are judged: each record has some that know it and
# some that do not. That is more than an outsider has, whose own references [find less](compare.ipynb). And the report retrains the model with one
# thing changed at a time, so that advice has a price ({numref}`audit-prices`).
#
# :::{finding}
# :claims: A6 reproduced
# Each reference can be attacked by the others, for its members are known as well. On average the calibrated loss and LiRA have an AUC
# {ours}`references-gain` points above that of the loss alone.
# :::
#
# ## A private model beside its twin
#
# Differential privacy is the one remedy with a guarantee. It bounds what *any* attack can find, those included that nobody has thought of. Here a
# small network is trained by DP-SGD {cite:p}`abadi2016deep` with $\epsilon$ of at most {param}`epsilon`, and its twin by the same recipe without
# clipping or noise. The audit is given both with their weights, so gradients are tried, too.

# %%
dealt = measure.records(network_data, private_members, 0, 2, seed)
how = measure.TWINS | {"architecture": private_architecture,
                       "epochs": private_epochs, "seed": seed}
pair = {} if lacking else dict(zip(("twin", "private"),
                                   measure.pair(dealt, how, epsilon), strict=True))
for kind, ensemble in pair.items():
    reports[kind] = audited(ensemble.model(0), dealt, f"the {kind} model",
                            delta=1 / private_members)  # what was promised
many = measure.private_models(models, dataset=network_data,
                              members=private_members, epsilon=epsilon, **how)
frame = pd.concat([frame, study.twins(many)], ignore_index=True)

# %% tags=["hide-input"]
results.name({f"{kind}-answer": reports[kind].answer if kind in reports else f"Not run. {lacking}." for kind in ("twin", "private")})
results.name({f"points-{word}": rules.number_of("audit", claim, frame) for word, claim in (("dp", "A4"), ("price", "A5"), ("forest", "A3"), ("leaf", "A7"))}, ".1f")
results.show_table(
    exhibits.rates_table({kind: reports[kind] for kind in pair}) if pair else pd.DataFrame([{results.NOT_RUN: lacking}]),
    name="audit-private-rates", caption="The twin and the private model in numbers, as in {numref}`audit-forest-rates`.")
for kind in pair:
    exhibits.show_report(reports[kind], f"audit-{kind}")

# %% [markdown]
# The twin:
#
# > {ours}`twin-answer`
#
# The private model:
#
# > {ours}`private-answer`
#
# :::{finding}
# :claims: A3 reproduced, A4 reproduced, A5 inconclusive
# Over {param}`models` pairs of models privacy lowers the AUC of the loss by {ours}`points-dp:value` points. Whether it costs accuracy cannot be
# told here: the twins' accuracy less that of the private models is {ours}`points-price` points on average, and the interval covers zero. The forests of the
# first audit are more talkative than either: the AUC of their loss is {ours}`points-forest` points above what the records say by themselves.
# :::
#
# The lower bound on $\epsilon$ is for the $\delta$ that was promised. It is mostly far below the $\epsilon$ promised: one run with records as they
# come shows little of what the worst record under the worst attack could.
#
# ## A test of the audit itself
#
# Would you notice if an audit had an error? A sign turned round, a score that is a constant, labels in another order: the report would still look
# well, and say that nothing was found. So an audit is first tried where the truth is known.
#
# Models are trained on records *apart*, so they never saw the "members". Their audits must stay quiet. Then a leak is planted: for some of the
# members, a share of {param}`share`, the same model is made surer of the true class, by nine tenths of what is missing to certainty. `mia audit
# --test` does both for the audit as it is installed at your place.

# %% tags=["hide-input"]
results.show_table(
    exhibits.tested_table(frame), name="audit-tested",
    caption="Of {param}`games` audits of each of {param}`models` models that never saw the \"members\", by the four attacks on outputs, the "
            "share that raises an alarm, in percent with 95 % intervals over models. An alarm: some attack below 5 % after correction for "
            "all attacks and both tests; \"members\" are drawn anew for each audit, the model stays.")

# %% [markdown]
# :::{finding}
# :claims: A1 reproduced, A2 reproduced
# Without a leak {ours}`false-forests` of the audits of forests and {ours}`false-networks` of those of small networks raise an alarm, where their
# level allows 5 %. With one, {ours}`found-forests` and {ours}`found-networks` do. A leak among a fifth of the members is
# near the limit of what so few records of the networks can show.
# :::
#
# ## What an audit does not show
#
# - **Nothing found is not nothing there.** Every attack is a lower limit. More references, more records, or an attack of next year may
#   find what these did not. Only a proof, such as that of DP-SGD, bounds from above.
# - **One model was attacked.** A report's intervals cover which records were drawn, not which model the same recipe would give
#   tomorrow. {numref}`audit-many` has several.
# - **The average is not the worst.** A rate is about all members. Those who stand out may be few, and the report names them; of each
#   single one it is a suspicion and no proof.
# - **Members are taken at their word.** If some non-members were trained on after all, every number is too low. If members and
#   non-members differ by themselves, numbers are too high, and the control says so, as far as a simple classifier sees.
#
# To take away: before you believe an audit that found nothing, ask to see the one with the planted leak.
#
# ## Exercises
#
# ````{exercise} What would you ask for?
# :label: audit-exercise-ask
# A hospital lets you audit a model. You may ask for one of: its weights, a thousand more non-members, the training script, or a hundred
# more members. Its own limit is one false accusation in a thousand. Which do you take?
# ````
#
# ````{solution} audit-exercise-ask
# :class: dropdown
# Non-members, if there are fewer than some thousand: below $1/n$ no rate exists, so nothing can be said at the limit that the hospital
# has set. Once that rate is resolved, the script: it permits references, which open as many rows of {numref}`audit-plan` as anything
# here. Weights open gradients: the tables of this page have what their norm finds beside the loss. More members only narrow intervals.
# ````
#
# ````{exercise} A forest that forgets
# :label: audit-exercise-leaf
# Before running: what will larger leaves do to the AUC of the loss, and to the accuracy on non-members? Then run
# `mia run audit -p leaf 1` and `mia run audit -p leaf 20` and read the forest's report in both.
# ````
#
# ````{solution} audit-exercise-leaf
# :class: dropdown
# A leaf of one record answers with that record's own label; a leaf of twenty with a mean of twenty labels, of which the member's is one. So the
# loss of members rises towards that of others. What it costs is in {numref}`audit-leaves`: little as long as what is given up is what was learned
# by heart, more where leaves mix records that differ. AUCs of attacks on outputs tend to fall together, for they see the same numbers. A TPR at few
# alarms need not: where leaves are pure many losses tie, and a threshold that calls one of them calls them all.
# ````
#
# ````{exercise} An alarm that means nothing
# :label: audit-exercise-blind
# Take as "members" the records of one class, and as "non-members" those of the others, of a model that was trained on neither. What
# will MALT find, what the control? What would an audit without a control have said?
# ````
#
# ````{solution} audit-exercise-blind
# :class: dropdown
# The model is better at some classes than at others, so losses differ, and MALT finds that. The control sees the label and tells all
# of them apart, so the answer of the report becomes a warning: *members and non-members can be told apart without the model*. Without a
# control a model that never saw the records would have been found guilty.
# ````
#
# ## Quiz
#
# Choose an option and open it: it says why it is right, or what it mistakes.
#
# :::{quiz} audit
# :::
#
# ## In more depth
#
# ### What each audit could run
#
# Nothing in these reports was chosen by us. What was given decided which attacks are possible, and the budget which of them run.

# %% tags=["hide-input"]
results.show_table(
    exhibits.plan_table(reports), name="audit-plan",
    caption="Whether an audit of this chapter ran an attack, or why not. `mia audit --plan` prints such a table of your model before "
            "anything is run.")

# %% [markdown]
# ### More than one model
#
# A report is about one model. Behind the claims of this chapter are several, each with its own members: halves of one pool, so that every record is a
# member of half of them.

# %% tags=["hide-input"]
results.show_table(
    exhibits.many_table(frame), name="audit-many",
    caption="Mean over several models, in percent, with 95 % intervals over models and records, of accuracies over models. The references of "
            "the network's audit are attacked by each other, the complement left out.")

# %% [markdown]
# ### What to try on a forest
#
# There is no recipe for a forest here, so its report retrains nothing. But one can: the same forests with larger leaves.

# %% tags=["hide-input"]
figures.show(
    exhibits.leaves_figure(frame), name="audit-leaves",
    caption="Forests against the least number of records in a leaf: AUC of the loss, and accuracy on non-members. Bars: 95 % intervals over "
            "{param}`models` forests.",
    alt="Two panels against the least records of a leaf, each with bars: the AUC of the loss, and the accuracy on non-members.")

# %% [markdown]
# :::{finding}
# :claims: A7 reproduced
# A leaf of one record answers with that record's own label. With leaves of twenty records or more the AUC of the loss is {ours}`points-leaf` points
# lower.
# :::
#
# ### What to try on the network, with its price
#
# From the network's report: the recipe as it is and with one thing changed at a time, each trained once, so the chance of one training is in every
# row.

# %% tags=["hide-input"]
results.show_table(
    exhibits.prices_table(reports["network"]), name="audit-prices", caption="Changes of the recipe, judged by the loss alone. Intervals cover the records.")

# %% [markdown]
# (audit-one-run)=
# ### Epsilon from one training run
#
# The bounds on $\epsilon$ above judge records of one training as if each came from a training of its own. Steinke, Nasr and Jagielski
# {cite:p}`steinke2023privacy` have a bound that needs one training and is exact about it. It needs *canaries*: a fair coin of its own decides of each
# whether it is trained on. The auditor then says "in" of those with the highest scores, "out" of those with the lowest, and nothing of the rest. If
# training is $(\epsilon, 0)$-private, a guess is right with a chance of at most $e^\epsilon / (1 + e^\epsilon)$, whatever came of the others, so the
# right guesses are at most binomial. Too many of them refute that $\epsilon$:

# %%
coins = np.random.default_rng(seed).random(1000) < 0.5  # before the training
told = coins + np.random.default_rng(seed + 1).normal(size=1000)
metrics.epsilon_one_run(told, coins, guesses=(100, 100), delta=1e-5)

# %% [markdown]
# Small networks were trained by DP-SGD on 1,000 images and 2,000 canaries of three kinds: images as they come, images with a wrong class, and Dirac
# canaries, which are gradients that are zero but at one parameter {cite:p}`nasr2021adversary`. The score of an image is by how much training has
# lowered its loss, which is black-box; that of a Dirac canary is its dot product with all updates, which is white-box.

# %%
trained_with = {one: measure.one_run(8, epsilon=one) for one in study.EPSILONS}
thousand = [measure.many_runs(1000, epsilon=one) for one in study.EPSILONS]
canaries = pd.concat([*map(study.one_run, trained_with.values()),
                      *map(study.many_runs, thousand),
                      study.simulate_gaussian(delta=1e-5, seed=seed)])
frame = pd.concat([frame, canaries], ignore_index=True)

# %% tags=["hide-input"]
results.name({f"thousand-{kind.replace(' ', '-')}": value for kind, value in study.bounds_without_errors(1000).items()}, ".1f")
results.name({f"points-{word}": rules.number_of("audit", claim, frame) for word, claim in (
    ("white", "A8"), ("wrong", "A9"), ("more", "A10"), ("once", "A11"))}, ".2f")
results.name({f"shown-{kind.replace(',', '').replace(' ', '-')}": metrics.estimate(canaries, kind, "epsilon", promised=8.0).value for kind in (
    "gradients", "one run", "many runs", "gradients, many runs", "mislabelled, many runs")}, ".2f")
results.show_table(
    exhibits.one_run_table(canaries), name="audit-one-run-bounds",
    caption="By the epsilon that was promised ($\\delta = 10^{-5}$): what the accountant says was spent, and lower bounds on it at a confidence of 95 %. "
            "*One run*: means over eight runs, each with a bound of its own. *1,000 runs*: the classic bound from 1,000 runs, means over eight canaries. "
            "With 95 % intervals. *In theory*: nothing but the Gaussian noise of that epsilon hides a coin; 1,000 canaries in one run, or one in each of 1,000.")

# %% [markdown]
# The classic bound needs many trainings, of which about half have a canary. From eight runs it shows nothing, even without a single error, and from a
# thousand an epsilon of {ours}`thousand-many-runs:value` at most; one run with a thousand canaries shows up to {ours}`thousand-one-run:value`. So for
# each promise we trained a thousand such networks on as many images, with eight canaries of a kind, the same in all, whose coins are thrown anew.
#
# :::{finding}
# :claims: A8 reproduced, A9 inconclusive, A10 reproduced, A11 reproduced
# Where an epsilon of 8 was promised, Dirac canaries show {ours}`shown-gradients:value` in one run, and one of them {ours}`shown-gradients-many-runs:value`
# in a thousand; on average over the promises one run shows {ours}`points-once:value` more. From the loss of one mislabelled canary a thousand runs show
# {ours}`shown-mislabelled-many-runs:value`. In theory it is {ours}`shown-one-run:value` in one run and {ours}`shown-many-runs:value` in a thousand.
# On average over the promises gradients show {ours}`points-white:value` more than the losses of mislabelled canaries. Whether these show more than images as they come cannot be told
# here: the difference is {ours}`points-wrong:value`, and its interval covers zero. From a promise of 1 to one of 8 the white-box bound grows by
# {ours}`points-more:value`.
# :::
#
# All bounds are far below what the accountant says, also in theory, where nothing but the noise is in the way: the accountant bounds the worst canary
# under the worst attack, and one run shows what many canaries have in common.
#
# What is easily got wrong, and makes the number too large:
#
# - **Canaries chosen after looking.** Members that an attack has found are no canaries. `epsilon_one_run` refuses numbers of members that fair coins
#   do not give; that exactly half were drawn, it cannot see.
# - **The number of guesses chosen on the same canaries.** Of many numbers the one with the largest bound is luck. Here four were settled
#   beforehand, a twentieth, a tenth, a quarter and half of the canaries to either side, and each is judged at a quarter of the error.
# - **Equal scores in the order of the table.** If members come first, a constant is a perfect attack. Equal scores are put into a random order.
# - **What else depends on the coins.** If records are drawn with probability $B/n$, and $n$ counts who is in, the rate tells. Here $n$ is fixed.
#
# A small bound does not say that the accountant is generous: it may be the attack that is weak.
#
# (audit-claims)=
# ### Every claim, with its verdict
#
# None of these claims is a paper's.

# %%
verdicts = rules.judge_all("audit", frame, {})

# %% tags=["hide-input"]
claims.show("audit", verdicts)

# %% [markdown]
# ### Where this chapter stops short
#
# Models are small, so that the page can be run anywhere. DP-SGD draws batches by chance and its twin in turns. The accountant's $\epsilon$ holds
# for one training, not for the choice of the recipe. All models of a kind share one pool, which intervals do not cover. Claims on forests and twins
# are about the loss alone; the reports try all attacks.
#
# On Colab, add a cell before the first one, and in it: `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`
