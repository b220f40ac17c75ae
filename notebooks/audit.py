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
# # Audit your own model
#
# **An audit attacks a model with all that is at hand. A random forest of ours gives away its *members*, the records that trained it: of 100 pairs of
# a member and a stranger, an attack on its probabilities tells {ours}`forest-pairs` apart. But without *references*, models trained by the
# same recipe, an audit misses much. Of {param}`networks` networks trained with differential privacy one like ours notices {ours}`private-alarms` by
# the loss; with references {ours}`calibrated-alarms` by the calibrated loss, {ours}`offline-alarms` by offline LiRA. A planted leak is found in
# {ours}`found-forests:value` of the audits of forests, and in {ours}`found-networks:value` of those of small networks.**

# %% tags=["parameters", "hide-input"]
network_data: str = "fashion_mnist_20k"  # of the networks; images (see `mia data ls`) [data set]
network_members: int = 1000  # records that train the audited network, and as many non-members [50..1000000]
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
epsilons: list[float] = [2.0, 8.0]  # that private models may spend; the last one's is audited [0.1..1000.0; ascending; not empty]
stopped: list[int] = [2, 4]  # epochs of twins about as accurate as the private models of each epsilon [1..10000; as many as epsilons]
networks: int = 16  # of each recipe, in complementary pairs [4..100; even; verdicts from 8]
models: int = 8  # of each kind in the test of the audit, in complementary pairs [2..100; even; verdicts from 8]
share: float = 0.2  # of the members that a planted leak gives away [0.01..1.0]
games: int = 100  # audits without a leak, and as many with one, of each model [1..100000]
minutes: float = 60.0  # budget of an audit, wide enough that nothing hangs on the clock [1.0..10000.0]
seed: int = 0  # of everything random [0..1000000]

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

from mia_book.evidence import claims, figures, results, rules
from mia_lib import audit, data, drawing, metrics, signals, training
from mia_lib.attacks import bayes
from mia_book.chapters.audit import exhibits, measure, study
from mia_lib.training import private

drawing.set_style()
missing = private.missing_dependency()


def audited(model, dealt, name, **options):
    return audit.audit(model, *dealt.sides(), name=name, minutes=minutes, seed=seed, **options)

# %%
credit = measure.records(forest_data, forest_members, forest_members, models, seed)
forest = measure.forest(credit.sides()[0], trees, leaf, seed)
reports = {"forest": audited(
    forest.predict_proba, credit, "a random forest",
    outputs="probabilities", public=credit.holdout)}

# %% tags=["hide-input"]
first = reports["forest"].result
results.name({"forest-pairs": 100 * first.best.auc.value}, ".0f")
results.name({"forest-answer": reports["forest"].answer,
              "forest-low": str(reports["forest"]).splitlines()[-1]})
figures.show(exhibits.roc_figure(reports["forest"]), name="audit-forest-roc")

# %% [markdown]
# :::{caption} audit-forest-roc
# :alt: Curves of up to five attacks and a dashed line of chance, that of the attack that speaks thicker and with a
#   band.
#
# The forest: {term}`ROC` on logarithmic axes; less than one record is shaded. The band is the pointwise 95 % interval
# of the attack that the report quotes.
# :::

# %% [markdown]
# Run it again: `mia run audit -p leaf 10` ([how to rerun](../book/rerun.md)). Of your own model: `mia audit --help`.
#
# ## What an audit asks
#
# *Here is a model, here are records that trained it, here are others like them: who can tell which are which?* What the owner of the model gives
# permits attacks:
#
# - **outputs** for members and for non-members: attacks with one threshold;
# - **public records** of the same kind: a regression that says how high a score is for such a record;
# - **a recipe** for the training: reference models, and what a change of the recipe would bring;
# - **weights**: gradients, and of a small network the Hessian.
#
# A classifier could tell last year's patients from this year's without any model. So every audit first lets one try, as a control.
#
# ## By hand
#
# The score is the logarithm of the probability of the true class, which is minus its *loss*.

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
# The report begins with its answer. *AUC* is the share of pairs that an attack gets right, one half by guessing:
#
# > {ours}`forest-answer` {ours}`forest-low`

# %% tags=["hide-input"]
row = next(one for one in first.attacks if one.name == "MALT")
results.name({"hand": float(hand), "row": float(row.auc.value)}, ".4f")
results.show_table(
    exhibits.rates_table({"the forest": reports["forest"]}), name="audit-forest-rates")
exhibits.show_report(reports["forest"], "audit-forest")

# %% [markdown]
# :::{caption} audit-forest-rates
# The forest, with 95 % intervals over the records: first the attack that speaks, then the others by AUC. *p*: how
# likely chance alone gives so much, corrected for all attacks and both tests of each, of AUC and of the rate at 1 %.
# Last comes the control that sees no model.
# :::

# %% [markdown]
# How to read it:
#
# - **One attack speaks.** The highest of many noisy numbers is too high. So the attack is chosen on one random half of the records,
#   and judged on the other; the answer quotes that number, and the table has all records.
# - **Low false positive rates matter.** With $n$ non-members no rate between $0$ and $1/n$ exists.
#   What is not resolved is not printed.
#
# MALT is one threshold on the loss, so by hand the AUC is {ours}`hand`, and in its row {ours}`row`.
#
# ## How much is too much?
#
# No law and no standard that we know of names an AUC. The data protection authorities of the European Union call a model anonymous if the likelihood
# of getting personal data out of it is *insignificant*, by all means reasonably likely to be used {cite:p}`edpb2024opinion`; they give no number. The
# scale of our reports is this book's own: it names a leak, and permits none.

# %% tags=["hide-input"]
results.show_table(exhibits.severity_table(), name="audit-severities")

# %% [markdown]
# :::{caption} audit-severities
# The scale by which a report names a leak that its tests have found, by the attack that speaks: the lowest row of which
# it reaches either number.
# :::

# %% [markdown]
# So whoever answers for the records sets the limit before the audit, by what it would do to a patient to be found:
# to be in the register of a rare disease *is* the diagnosis. Such a limit is a rate: *where one stranger in a hundred is accused, at most 20 of 1,000
# patients may be found*. `mia audit --fail-on tpr=0.02` holds a model to it. And the audit must be able to see it: a leak
# smaller than {numref}`audit-detectable` says is missed by more than one audit in five.

# %% tags=["hide-input"]
results.show_table(exhibits.detectable_table(reports["forest"]), name="audit-detectable")

# %% [markdown]
# :::{caption} audit-detectable
# The smallest AUC, and the smallest true positive rate (TPR) at 1 % false alarms (FPR), that four audits of five find,
# by the number of records. As many attacks as on the forest, corrected for their number; scores are taken as Gaussian
# for the rate. Every report has this table.
# :::

# %% [markdown]
# What to do next:
#
# - *Nothing was found.* Say what could not have been found, by the table above. If the limit is below that, ask for more records, and for the recipe.
# - *Less than the limit was found.* The owner decides, and audits each new version again.
# - *More was found.* Hand out neither model nor probabilities, change the training ([below](#audit-what-to-change)), and audit again.
#
# ## Patients
#
# These records are about patients: cells of 569 breast tumours, which a forest is to call malignant or benign. They come with scikit-learn (Wisconsin diagnostic set of Wolberg, Street and Mangasarian; UCI repository, CC BY).

# %%
x, y = load_breast_cancer(return_X_y=True)
tumours = data.from_arrays(x, y, "breast tumours", ["malignant", "benign"])
patients = measure.records(tumours, 200, 160, 2, seed)
by_cells = measure.forest(patients.sides()[0], trees, leaf, seed)
reports["patients"] = audited(
    by_cells.predict_proba, patients, "a forest on patients",
    outputs="probabilities", public=patients.holdout)

# %% tags=["hide-input"]
results.name({"patients-answer": reports["patients"].answer, "patients-low": str(reports["patients"]).splitlines()[-1]})
results.name({f"{name}-right": reports[name].accuracy[1] for name in ("patients", "forest")}, ".0%")
exhibits.show_report(reports["patients"], "audit-patients")

# %% [markdown]
# > {ours}`patients-answer` {ours}`patients-low`
#
# This forest is right on {ours}`patients-right` of the patients that it never saw, the one on credit on
# {ours}`forest-right` of its strangers. Labels that follow from the record leave little to learn by heart, which may be why.
#
# ## A network, with a recipe
#
# Who has the recipe can train references, and compare.

# %%
images = measure.records(network_data, network_members, 0, 2, seed)
how = measure.NETWORK | {"architecture": network_architecture,
                         "epochs": network_epochs, "seed": seed}
recipe = measure.config_of(how)
trained = training.train(images.pool, images.members[:1], recipe).model(0)
reports["network"] = audited(
    trained, images, "a convolutional network", recipe=recipe, references=references)
changed = measure.changed_networks(networks, dataset=network_data,
                                   members=network_members, **how)
frame = study.networks(changed, measure.CHANGES)

# %% tags=["hide-input"]
answer = str(reports["network"]).splitlines()
results.name({"network-answer": answer[0], "network-low": answer[-1]})
exhibits.show_report(reports["network"], "audit-network")

# %% [markdown]
# > {ours}`network-answer` {ours}`network-low`
#
# References are trained on random halves of all records that are judged. That is more than an outsider has, whose own [find less](compare.ipynb).
#
# (audit-what-to-change)=
# ## What to change, and what it costs
#
# A report retrains once with each change, and judges by the loss, which flatters it. So we trained {param}`networks` networks by
# each recipe, and attacked each with the others as references.

# %%
dealt = measure.records(network_data, private_members, 0, 2, seed)
how = measure.TWINS | {"architecture": private_architecture,
                       "epochs": private_epochs, "seed": seed}
pair = {} if missing else {
    "twin": measure.train_twin(dealt, how),
    "private": measure.train_twin(dealt, how, measure.PRIVATE_RATE, epsilons[-1])}
for kind, ensemble in pair.items():
    reports[kind] = audited(ensemble.model(0), dealt, f"the {kind} model",
                            delta=1 / private_members)  # what was promised
many = measure.private_models(networks, dataset=network_data, members=private_members,
                              epsilons=epsilons, **how)
frame = pd.concat([frame, study.networks(many, study.twin_names(many))])
early = {f"twin, {epochs} epochs": measure.private_models(
             networks, dataset=network_data, members=private_members,
             epsilons=[], **how | {"epochs": epochs})
         for epochs in stopped}
for name, one in early.items():
    frame = pd.concat([frame, study.networks(one, [name])])
frame = pd.concat([frame, study.privacy(frame, list(early)),
                   study.with_references(frame)], ignore_index=True)

# %% tags=["hide-input"]
def of_network(recipe, attack="model", metric="accuracy"):
    return metrics.estimate(frame, attack, metric, study="networks", recipe=recipe).value


AS_IT_IS, _, FEWER, CROPS = measure.CHANGES
TWIN, STRICT, *_, PRIVATE = [*study.twin_names(many)[:2], *study.twin_names(many)]
STOPPED = list(early)[-1]
results.name({f"{word}-{short}": of_network(recipe, attack, "auc") for word, recipe in (
    ("plain", AS_IT_IS), ("fewer", FEWER), ("crops", CROPS), ("twin", TWIN), ("private", PRIVATE), ("stopped", STOPPED), ("strict", STRICT))
    for short, attack in (("loss", "MALT"), ("calibrated", "calibrated loss"), ("base", "BASE"), ("lira", "LiRA"))})
results.name({f"{word}-tpr": metrics.estimate(frame, "calibrated loss", "tpr_at_fpr=0.01", study="networks", recipe=recipe).interval((0.0, 1.0))
              for word, recipe in (("crops", CROPS), ("plain", AS_IT_IS), ("stopped", STOPPED), ("private", PRIVATE))}, ".1%")
results.name({"crops-price": 100 * (of_network(AS_IT_IS) - of_network(CROPS)), "dp-price": 100 * (of_network(TWIN) - of_network(PRIVATE)),
              "strict-price": 100 * (of_network(TWIN) - of_network(STRICT)),
              "fewer-price": 100 * (of_network(AS_IT_IS) - of_network(FEWER))}, ".1f")
results.name({f"{word}-right": metrics.estimate(frame, "model", "accuracy", study="networks", recipe=recipe).interval() for word, recipe in (
    ("stopped", STOPPED), ("private", PRIVATE))}, ".1%")
kept = [metrics.estimate(frame, "calibrated loss", "tpr_at_fpr=0.01", study="networks", recipe=recipe) for recipe in (STOPPED, PRIVATE)]
results.name({"stopped-more": (100 * (kept[0] - kept[1])).interval()}, ".1f")
above = metrics.estimate(frame, "MALT", "auc", study="networks", recipe=PRIVATE).values > 0.5
asked, of_references = (2 * sum(attack.p is not None for attack in reports[kind].result.attacks) if kind in reports else 1
                        for kind in ("private", "network"))
results.name({"stopped-epochs": stopped[-1], "private-above": int(above.sum()), "asked": asked, "asked-references": of_references, "peers": len(many) - 2})
results.name({name: study.alarms(many, len(epsilons), attack, tests) for name, attack, tests in (
    ("private-alone", "MALT", 1), ("private-alarms", "MALT", asked), ("calibrated-alarms", "calibrated loss", of_references),
    ("offline-alarms", "LiRA, offline", of_references))})
results.show_table(exhibits.networks_table(frame), name="audit-changes")

# %% [markdown]
# :::{caption} audit-changes
# Networks by recipe, in percent with 95 % intervals over {param}`networks` networks and their records; references are
# all others of the recipe but a network's partner, half of them trained on each record. Above: the convolutional
# network. *twin* and below: the perceptrons of the next section.
# :::

# %% [markdown]
# :::{finding}
# :claims: A6 depends, A12 reproduced
# Judged by the loss, networks trained with flips and crops give next to nothing away (AUC {ours}`crops-loss`). References tell their members:
# the *calibrated loss*, the loss less that of references, has {ours}`crops-calibrated` and finds {ours}`crops-tpr:value` of them at 1 % false
# alarms, in place of {ours}`plain-tpr:value`. The change costs {ours}`crops-price` points of accuracy; a third of the epochs costs {ours}`fewer-price`
# and leaves {ours}`fewer-calibrated`. More weight decay helps by the loss alone.
#
# **None of these attacks has a higher AUC than BASE**, which ranks as [RMIA](compare.ipynb). It is ahead of the loss with every recipe
# ({numref}`audit-references`). With the strictest privacy the calibrated loss cannot be told from the loss, and online LiRA alone would miss
# what there is: its AUC is {ours}`strict-lira`, the loss has {ours}`strict-loss`, BASE {ours}`strict-base`.
# :::
#
# ## A private model beside its twin
#
# Differential privacy is the one remedy with a guarantee: a number $\epsilon$ that is promised bounds what *any* attack can find, the smaller the
# tighter. Here small networks are trained by DP-SGD {cite:p}`abadi2016deep`, which adds noise to each step, and their twins without it, each at the
# learning rate that was best on another draw of records. The first of each is audited. The twin:
#
# > {ours}`twin-answer`
#
# The private model, promised an $\epsilon$ of {ours}`audited-epsilon`:
#
# > {ours}`private-answer`

# %% tags=["hide-input"]
results.name({f"{kind}-answer": reports[kind].answer if kind in reports else f"Not run. {missing}." for kind in ("twin", "private")})
results.name({"audited-epsilon": f"{epsilons[-1]:g}"})
figures.show(exhibits.one_by_one(frame, study.twin_names(many)), name="audit-models")
for kind in pair:
    exhibits.show_report(reports[kind], f"audit-{kind}")

# %% [markdown]
# :::{caption} audit-models
# :alt: Two panels, the loss and the calibrated loss, with a column of dots for the twins and one for each epsilon. Of
#   the networks with the largest epsilon {ours}`private-above` lie above one half by the loss; the mean of the twins is
#   {ours}`twin-loss`, that of the private ones {ours}`private-loss`.
#
# AUC of the loss, and of the loss calibrated by the other networks of the kind, on each of {param}`networks` networks:
# without privacy, and by the epsilon that was promised. Dashed: guessing.
# :::

# %% [markdown]
# :::{finding}
# :claims: A4 reproduced, A5 reproduced, A13 inconclusive
# **What an audit without references misses.** Of {param}`networks` networks with the largest $\epsilon$ the loss alone finds {ours}`private-alone`, and
# {ours}`private-alarms` as one of {ours}`asked` tests, as in our report. The audited one is the luckiest. With {ours}`peers` of the others as
# references the calibrated loss finds {ours}`calibrated-alarms` and offline LiRA {ours}`offline-alarms`, each as one of {ours}`asked-references` tests, as
# with the recipe above. So {ours}`offline-alarms` leak at least.
#
# **The price of privacy.** Against twins trained to the end, privacy lowers the AUC of the loss from {ours}`twin-loss` to {ours}`private-loss` and that of
# the calibrated loss from {ours}`twin-calibrated` to {ours}`private-calibrated`. It costs {ours}`dp-price` points of accuracy, and {ours}`strict-price` with
# the smallest $\epsilon$.
#
# **Stopping early may do as much, and proves nothing.** Twins stopped after {ours}`stopped-epochs` epochs are right on {ours}`stopped-right:value`, private
# networks on {ours}`private-right:value`. By none of the four attacks are the trainings told apart, by AUC or at 1 %
# false alarms ({numref}`audit-settings`). The largest difference is that at 1 % by the calibrated loss: {ours}`stopped-tpr:value` of the stopped networks' members
# against {ours}`private-tpr:value`, {ours}`stopped-more` points if asked alone. DP-SGD adds the bound.
# :::
#
# ## A test of the audit itself
#
# With a sign turned round a report would look well. So an audit is first tried where the truth is known.
# Models that never saw the "members" must keep it quiet. Then a leak is planted: for a share of {param}`share` of the members the same model is made
# surer of the true class, by nine tenths of what is missing to certainty. `mia audit --test` does both.

# %%
played = {"share": share, "games": games, "seed": seed}
tests = {
    "forests": measure.audits(models, dataset=forest_data, members=forest_members,
                              apart=forest_members, **played),
    "small networks": measure.audits(models, kind="network", dataset=network_data,
                                     members=private_members, apart=private_members,
                                     **played)}
tested = pd.concat([study.tested(one, kind) for kind, one in tests.items()])

# %% tags=["hide-input"]
results.name({f"{short}-{kind.split()[-1]}": metrics.estimate(tested, "audit", "alarms", data=kind, leak=leak).interval((0.0, 1.0))
              for kind in tests for short, leak in (("false", "none"), ("found", "planted"))}, ".0%")
results.show_table(exhibits.tested_table(tested), name="audit-tested")

# %% [markdown]
# :::{caption} audit-tested
# Of {param}`games` audits of each of {param}`models` models that never saw the "members", by the four attacks on
# outputs, the share that raises an alarm, in percent with 95 % intervals over models. An alarm: some attack below 5 %
# after correction for all attacks and both tests; "members" are drawn anew for each audit, the model stays.
# :::

# %% [markdown]
# Without a leak {ours}`false-forests` of the audits of forests and {ours}`false-networks` of those of small networks raise an alarm; 5 % were
# allowed. With one, {ours}`found-forests` and {ours}`found-networks` do. The leak makes answers sure, and these networks are sure about many strangers, too.
#
# ## What an audit does not show
#
# - **Nothing found is not nothing there.** Every attack is a lower limit. Only a proof, such as that of DP-SGD, bounds from above.
# - **One model was attacked.** A report's intervals cover which records were drawn, not which model the same recipe would give tomorrow.
# - **Members are taken at their word.** If some non-members were trained on after all, every number is too low.
#
# To take away: before you believe an audit that found nothing, ask what it could have found, with which references, and for the planted leak.
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
# loss of members rises towards that of others. It costs little accuracy as long as what is given up is what was learned by heart, more where leaves
# mix records that differ. AUCs of attacks on outputs tend to fall together, for they see the same numbers. A TPR at few alarms need not: where leaves
# are pure many losses tie, and a threshold that calls one of them calls them all.
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
results.show_table(exhibits.plan_table(reports), name="audit-plan")
results.show_table(
    exhibits.rates_table({kind: report for kind, report in reports.items() if kind != "forest"}), name="audit-rates")

# %% [markdown]
# :::{caption} audit-plan
# Whether an audit of this chapter ran an attack, or why not. `mia audit --plan` prints such a table of your model
# before anything is run.
# :::
#
# :::{caption} audit-rates
# The other models in numbers, as in {numref}`audit-forest-rates`.
# :::

# %% [markdown]
# A report has a lower bound on $\epsilon$ of each attack, too. An $(\epsilon, \delta)$-private training allows no attack with
# $\mathrm{TPR} > e^\epsilon\,\mathrm{FPR} + \delta$, and none with $1 - \mathrm{FPR} > e^\epsilon (1 - \mathrm{TPR}) + \delta$. So the bound is about the
# surest calls of an attack, and not about its ranking: one that is wrong about half of the non-members and misses hardly any member shows more than
# one with a higher AUC. It is mostly far below the $\epsilon$ that was promised.
#
# ### Privacy and references in every setting

# %% tags=["hide-input"]
rules.show_settings(
    "audit", {"A4": "A4: a twin to the end less private", "A13": "A13: a twin stopped early less private"}, frame, name="audit-settings")
rules.show_settings(
    "audit", {"A6": "A6: references less the loss", "A12": "A12: BASE less the best of three"}, frame, name="audit-references")

# %% [markdown]
# :::{caption} audit-settings
# What privacy takes from an attack in every setting, over {param}`networks` networks of each recipe.
# :::
#
# :::{caption} audit-references
# What references add in every setting, in AUC, over {param}`networks` networks of each recipe.
# :::

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
#
# For each promise we also trained a thousand such networks on as many images, with eight canaries of a kind, the same in all, whose coins are thrown
# anew. Of one canary, the thousand runs are a thousand coins, each private by itself, so the same bound holds.

# %%
one = [measure.one_run(8, epsilon=promised) for promised in study.EPSILONS]
thousand = [measure.many_runs(1000, epsilon=promised) for promised in study.EPSILONS]
canaries = pd.concat([*map(study.canary_bounds, one),
                      *(study.canary_bounds(runs, many=True) for runs in thousand),
                      study.simulate_gaussian(delta=1e-5, seed=seed)])
frame = pd.concat([frame, canaries], ignore_index=True)

# %% tags=["hide-input"]
results.name({f"shown-{kind.replace(',', '').replace(' ', '-')}{'-gaussian' * (bound == 'Gaussian')}":
              metrics.estimate(canaries, kind, "epsilon", promised=8.0, bound=bound).value for bound in ("right guesses", "Gaussian") for kind in (
                  "gradients", "gradients, many runs", "mislabelled", "mislabelled, many runs", "natural", "in theory")}, ".2f")
for bound, name in (("right guesses", "audit-one-run-bounds"), ("Gaussian", "audit-gaussian-bounds")):
    results.show_table(exhibits.one_run_table(canaries, bound), name=name)

# %% [markdown]
# :::{caption} audit-one-run-bounds
# By the epsilon that was promised ($\delta = 10^{-5}$): what the accountant says was spent, and lower bounds at a
# confidence of 95 %, by the right guesses, for any mechanism. *One run*: means over eight runs. *1,000 runs*: means
# over eight canaries. With 95 % intervals. *In theory*: nothing but the noise of that epsilon hides 1,000 coins.
# :::
#
# :::{caption} audit-gaussian-bounds
# As {numref}`audit-one-run-bounds`, if Gaussian noise hides each coin.
# :::

# %% [markdown]
# Guesses throw much away. DP-SGD adds Gaussian noise, and who believes that nothing else hides a coin can ask how far apart the Gaussians of both coins
# are at least: at the median of the scores both rates have bounds, and a distance is an $\epsilon$ {cite:p}`nasr2023tight`. That is no
# proof for every mechanism. It shows more where there is much to show.
#
# :::{finding}
# :claims: A11 inconclusive
# **One run beside a thousand.** Where an epsilon of 8 was promised, a thousand Dirac canaries in one run show {ours}`shown-gradients:value`, and one in each of
# a thousand runs {ours}`shown-gradients-many-runs:value`; by the Gaussian bound {ours}`shown-gradients-gaussian:value` and
# {ours}`shown-gradients-many-runs-gaussian:value`. In no setting can the two be told apart. Eight runs and eight canaries are too few to call them equal:
# the Gaussian bound is lower for one run at every promise.
#
# **What hides the rest.** Were that noise all that hides a coin, guesses would show {ours}`shown-in-theory:value` and the Gaussian bound
# {ours}`shown-in-theory-gaussian:value`. So by the Gaussian bound more of what is missing is the attack's than the bound's. Without sight of the updates hardly anything is shown:
# {ours}`shown-mislabelled:value` by mislabelled canaries in one run, {ours}`shown-natural:value` by images as they come.
# :::
#
# By guesses all bounds are far below what the accountant says, also in theory, where nothing but the noise is in the way: the accountant bounds the worst
# canary under the worst attack, and one run shows what many canaries have in common. The Gaussian bound is far below it in our runs, and near it in theory.
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
# for one training, not for the choice of the recipe. All models of a kind share one pool, which intervals do not cover. Of the private
# recipe only the learning rate was fitted: larger batches or other epochs might cost less accuracy.
#
# On Colab, add a cell before the first one, and in it: `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`
