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
# # Attack these models yourself
# **This book comes with networks that were trained to be attacked, among them 64 small ones on halves of CIFAR-10. Here are their
# answers, and twenty lines that attack them. At one false alarm in a hundred, where guessing finds 1 % of a model's members, one
# threshold on the loss finds {ours}`malt`. With {ours}`most` other models to compare with, {ours}`best` finds {ours}`best-most`.**
#
# You need neither a graphics card nor PyTorch nor the images, and nothing is trained. Every number on this page is computed from the
# published answers when the page is built. Run it again with other settings: `mia run banks -p bank bank/fashion-small`
# ([how to rerun](../book/rerun.md)). On Colab, add a cell before the first one, and in it:
# `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`

# %%
import numpy as np
import seaborn as sns
from matplotlib import pyplot as plt

from mia_lib import membership, metrics, plotting, published, results, signals
from mia_lib.attacks import baselines, bayes
from mia_lib.papers.bank import study

plotting.set_style()

# %% tags=["parameters", "hide-input"]
bank: str = "bank/cifar10-small"  # whose models are attacked [bank/cifar10-small | bank/cifar10 | bank/cifar100-small | bank/fashion-small]
targets: int = 8  # models that are attacked [4..32; even]
references: list[int] = [1, 2, 4, 8, 16, 32, 62]  # other models that an attack may use, as far as the bank has them [1..1000; ascending; not empty]
draws: int = 20  # resamples behind each interval [10..10000]

# %%
held = published.load(bank)
counts = [count for count in references if count <= len(held) - 2]
frame = study.by_references(held, targets, counts, draws)

# %% tags=["hide-input"]
names = list(frame["attack"].unique())
look = {"hue": "attack", "style": "attack", "hue_order": names, "style_order": names,
        "palette": {name: plotting.style_of(name)["color"] for name in names},
        "markers": {name: plotting.style_of(name)["marker"] for name in names},
        "dashes": {name: (3, 2) if "offline" in name else "" for name in names}}
fig, axes = plt.subplots(1, 3, figsize=(9.6, 3.4))
for ax, (metric, title) in zip(axes, study.METRICS.items(), strict=True):
    rows = frame[frame["metric"] == metric]
    sns.lineplot(rows, x="references", y="value", ax=ax, legend=ax is axes[-1], **look)
    for name, each in rows.groupby("attack"):
        ax.fill_between(each["references"], each["low"], each["high"], color=look["palette"][name], alpha=0.15, lw=0)
    ax.set(title=title, xlabel="References", ylabel="", xscale="log")
    ax.set_xticks(counts, [str(count) for count in counts])
    ax.minorticks_off()
sns.move_legend(axes[-1], "center left", bbox_to_anchor=(1, 0.5), title=None, frameon=False)
plotting.show(
    fig, name="banks-references",
    caption=f"What more references buy, on {bank}: means over {targets} targets; bands are 95 % intervals over targets and "
    "records. MALT uses no references. With a single one, attacks are judged on the half of the records that it was not trained "
    "on; the attacks drawn through need a model with the record and one without it, so two.",
    alt="Three panels, AUC and the true positive rate at one percent and at one in a thousand false positives, against the "
    "number of references from one to all on a logarithmic axis; a curve with a band for each of six attacks.")

# %% [markdown]
# ## What is in a bank
#
# A bank is a set of models of one kind. Models come in pairs: a coin decides for each record which model of a pair is trained on
# it. So each record is in half of the models. Whoever attacks one model has many others that were trained with the record, and as
# many that were trained without it. These are the *references*.

# %%
held

# %% [markdown]
# `margin` is what each model says of each record: the log odds of the true class, $\log\frac{p}{1-p}$. `members` says which
# records each model was trained on, and `correct` whether its most likely class was the right one. The last records of each row
# are the test records of the data set. No model was trained on them.

# %% tags=["hide-input"]
listed = [name for name in published.ls()["name"] if name.startswith("bank/") and not name.endswith("-weights")]
results.show_table(
    study.describe([published.load(name) for name in listed]), name="banks-there",
    caption="The published banks: how many models, on what, how often they are right on their own members and on test records, "
    "how long all of them together took to train and ask, and where.",
    formats={"right on members": ".3f", "right on test records": ".3f", "minutes": ".0f"})

# %% [markdown]
# The small models have three convolutions with batch normalisation and some 55,000 parameters, and were trained for 20 epochs.
# `bank/cifar10` has networks as people use them, ResNet-9 with crops and flips. The gap between a model's members and test
# records is what attacks live on.
#
# The weights of the small models are published, too, in half precision: `published.load("bank/cifar10-small-weights")`. Arrays
# and weights are this book's, under its licence (MIT), and the images are not among them. CIFAR-10 and CIFAR-100 state no licence,
# FashionMNIST is MIT.

# %% [markdown]
# ## Twenty lines
#
# The first model of the bank is the target. Its partner, which was trained on exactly the other half, stays out: with it, the
# number of references that hold a record would give the answer away.

# %%
models, target = len(held), 0
train = held.members.any(0)  # the training records, of which each model has half
margin, members = held.margin[:, train], held.members[:, train]
loss = signals.loss_of(margin)  # cross-entropy in nats
others = membership.references_of(target, models)  # all but it and its partner

probability = np.exp(-loss)
population = np.exp(-signals.loss_of(held.margin[:, ~train]))  # of test records

# %%
spread, inside = {"fixed_variance": True}, members[others]
scores = {
    "MALT": bayes.malt(loss[target]),
    "MAST": bayes.mast(loss[target], loss[others], inside),
    "LiRA": baselines.lira_online(margin[target], margin[others], inside, **spread),
    "LiRA, offline": baselines.lira_offline(margin[target], margin[others], inside,
                                            **spread),
    "RMIA": baselines.rmia(probability[target], probability[others], inside,
                           population[target], population[others]),
}
table = metrics.evaluate(scores, members[target], draws=draws)
table.pivot(index="attack", columns="metric", values="value").round(4)

# %% tags=["hide-input"]
plotting.show(
    plotting.roc(scores, members[target]), name="banks-roc",
    caption=f"Five attacks on model {target} of {bank}, with {len(others)} references. Both axes are logarithmic, so the left "
    "half of the picture is false positive rates below one percent. Grey: rates that so few records cannot show. Dashed: chance.",
    alt="True against false positive rate on logarithmic axes, a curve for each of five attacks, the diagonal of chance dashed.")

# %% [markdown]
# - **MALT** takes the loss as it is: a low loss means member ([Bayes-optimal attacks](bayes.ipynb)).
# - **MAST** sets a threshold for each record, the one that best separates the references that saw it from those that did not.
# - **LiRA** fits two Gaussians to each record's log odds, with and without training on it, and takes their likelihood ratio
#   {cite}`carlini2022membership`. *Offline*, it does without models that saw the record, so that the attacker need not know the
#   record beforehand.
# - **RMIA** asks how far the record's probability is above its usual one, compared with records that no model has seen
#   {cite}`zarifzadeh2024low`.
#
# ## How many references are enough?
#
# References are what an attack costs, since somebody has to train them. So how much does one more buy? We attack
# {ours}`targets` models, each with few and with many references, and no two models with the same few. {numref}`banks-references` at
# the top of this page shows what that gives. It is drawn from a table with a row for each number of references, attack and metric:

# %%
columns = ["attack", "references", "metric", "value", "low", "high"]
frame[frame["references"] == counts[-1]].tail(3)[columns]

# %% [markdown]
# The authors of RMIA claim that it needs few references. Here it has an AUC of {ours}`rmia-few` with {ours}`few` references, where
# LiRA has {ours}`lira-few`. With {ours}`most` they have {ours}`rmia-auc` and {ours}`lira-auc`. A high AUC does not mean many members
# found at few false alarms: {numref}`banks-most` has both.

# %% tags=["hide-input"]
most = frame[frame["references"] == counts[-1]]
results.show_table(
    results.wide(most.assign(metric=most["metric"].map(study.METRICS)), digits=4), name="banks-most",
    caption=f"With {counts[-1]} references: means over {targets} targets, 95 % intervals over targets and records.")

value = frame.set_index(["metric", "attack", "references"])["value"].sort_index()
at_one, few = value["tpr_at_fpr=0.01"].xs(counts[-1], level="references"), min(c for c in counts if c > 1)
results.name({"targets": targets, "few": few, "most": counts[-1], "best": at_one.idxmax()})
results.name({"malt": at_one["MALT"], "best-most": at_one.max()}, ".1%")
results.name({"rmia-few": value["auc", "RMIA", few], "lira-few": value["auc", "LiRA", few],
              "rmia-auc": value["auc", "RMIA", counts[-1]], "lira-auc": value["auc", "LiRA", counts[-1]]})

# %% [markdown]
# ## Exercises
#
# ````{exercise} Other models
# :label: banks-exercise-fashion
# Before running: FashionMNIST is easier than CIFAR-10, and its models are right more often. Will attacks find more members, or
# fewer? Then run `mia run banks -p bank bank/fashion-small`, and compare the gap between members and test records in
# {numref}`banks-there` with what the attacks find.
# ````
#
# ````{exercise} Your own attack
# :label: banks-exercise-own
# Write a function that takes the target's margins [N], the references' margins [R, N] and their members, and gives a score [N].
# A first one to try: the target's margin minus the mean margin of the references that left the record out. Where does it stand
# in {numref}`banks-most`?
# ````
#
# ````{exercise} The partner
# :label: banks-exercise-partner
# Take the target's partner into the references, `others = [m for m in range(models) if m != target]`, and run the attacks again.
# The library refuses. Why must it?
# ````
#
# ````{exercise} A signal that is not published
# :label: banks-exercise-weights
# This one needs PyTorch and the images. `measure.networks("bank/cifar10-small", 16)` of `mia_lib.papers.bank` gives sixteen of the
# networks from their published weights. Ask them for the log odds of the mirrored images, and give LiRA both views. What does
# the second query buy, compared with sixteen more references?
# ````
#
# ````{solution} banks-exercise-partner
# :class: dropdown
# A record that the target was trained on is missing from its partner, and the other way round. So among all other models a member
# has one model fewer that was trained on it than a non-member has. The count alone tells who is a member, without any model's answer.
# ````
