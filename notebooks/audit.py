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
# **An audit attacks a model with all that is at hand, says what that finds beyond chance, and what it cannot see. It is worth as much
# as its own test: a planted leak must be found, and where there is none it must stay quiet.**
#
# ```{admonition} Run this chapter again
# :class: tip
# `mia run audit` uses the data inside the repository and a laptop; [what it takes](../book/status.md). Change anything:
# `mia run audit -p leaf 10 -p epsilon 2`; text and verdicts follow the new numbers. All parameters: `mia params audit`.
# [How to rerun](../book/rerun.md) has the rest. Of a model of your own: `mia audit --help`.
#
# On Colab, add a cell before the first one, and in it: `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`
# ```
#
# The chapters before attack models that this book has trained to be attacked. Here three models stand for yours: a residual network
# of torchvision with a training recipe, a random forest of scikit-learn of which only the probabilities are asked, and a network
# trained with differential privacy beside its twin. Each gets the whole report that your model would get.
#
# {says}`A1` {says}`A2` {says}`A3` {says}`A4` {says}`A5`
#
# *The main line* takes about half an hour to read. *In depth*, after the exercises, are several models behind every claim, what to
# try, and every claim, each folded.

# %%
from functools import partial

import numpy as np

from mia_lib import audit, claims, metrics, plotting, results, signals, training
from mia_lib.attacks import bayes
from mia_lib.papers.audit import exhibits, networks, study
from mia_lib.training import private

plotting.set_style()

# %% [markdown]
# ## Parameters
#
# Three models. Square brackets say what is allowed.

# %% tags=["parameters"]
network_data: str = "fashion_mnist_20k"  # of the residual network; images (see `mia data ls`) [data set]
network_members: int = 300  # records that train it, and as many non-members [50..1000000]
stages: int = 2  # of ResNet-18's four; fewer leave the last ones out [1..4]
network_epochs: int = 6  # of its training [1..1000]
network_batch: int = 32  # records a step [1..100000]
network_rate: float = 0.05  # learning rate of SGD with momentum [1e-6..10.0]
references: int = 8  # models that its audit trains for comparison [4..256; even]
forest_data: str = "german_credit"  # of the forest; a table [data set]
forest_members: int = 300  # records that fit it, and as many non-members [50..1000000]
forest_public: int = 300  # further records, for attacks that learn from them [60..1000000]
trees: int = 100  # of a forest [1..10000]
leaf: int = 1  # least records of a leaf, in the forest that is audited [1..10000]
leaves: list[int] = [1, 5, 20]  # the same, in forests that are compared [1..10000; ascending; not empty]
private_data: str = "fashion_mnist_20k"  # of the private model and its twin [data set]
private_members: int = 800  # records that train each, and as many non-members [50..1000000]
private_architecture: str = "mlp:32"  # of both; without batch normalisation [architecture]
private_epochs: int = 20  # of both [1..10000]
private_batch: int = 64  # of both; of the private one on average [1..100000]
private_rate: float = 0.1  # learning rate of SGD with momentum, of both [1e-6..10.0]
epsilon: float = 8.0  # that the private model may spend [0.1..1000.0]
models: int = 8  # of each kind behind a claim, in complementary pairs [4..100; even]
share: float = 0.2  # of the members that a planted leak gives away [0.01..1.0]
games: int = 100  # audits without a leak, and as many with one, of each model [1..100000]
minutes: float = 60.0  # budget of an audit, wide enough that nothing hangs on the clock [1.0..10000.0]
seed: int = 0  # of everything random [0..1000000]

# %% [markdown]
# ## What an audit asks
#
# *Here is a model, here are records that trained it, here are others like them: who can tell which are which?* That is the
# [game](../book/game.md) of all chapters, with one difference. An attacker has what they have; an auditor has what the owner of the
# model is willing to give, and every further thing permits further attacks:
#
# - **outputs** for members and for non-members: attacks with one threshold, and, where the outputs are smooth, the curvature;
# - **public records** of the same kind, besides: a regression that says how high a score is for such a record;
# - **a recipe** for the training: reference models, and what a change of the recipe would bring;
# - **weights**: gradients, and of a small network the Hessian.
#
# Members and non-members must come from one distribution. If members are last year's patients and non-members this year's, a
# classifier can tell them apart without any model. So every audit first lets one try, as a control.

# %% tags=["hide-input"]
dealt = {"network": study.records(network_data, network_members, 0, 2, seed),
         "forest": study.records(forest_data, forest_members, forest_public, models, seed),
         "private": study.records(private_data, private_members, private_members, models, seed)}

def audited(model, subject, name, **options):
    return audit.audit(model, *dealt[subject].sides(), name=name, minutes=minutes, seed=seed, **options)

# %% [markdown]
# ## By hand
#
# The forest first, for it needs the least: fit it, ask it for probabilities, take the loss of the true class as the score. No
# attack knows that there is a forest.

# %%
members, others = dealt["forest"].sides()
forest = study.forest(members, trees, leaf, seed)
x, y = (np.concatenate([getattr(one, part) for one in (members, others)])
        for part in ("x", "y"))
inside = np.arange(len(x)) < len(members)
p = signals.from_function(forest.predict_proba, x, "probabilities")
found = signals.scalars(np.log(np.maximum(p, np.finfo(float).tiny)), y)
score = bayes.malt(found["loss"])
hand = metrics.auc(score, inside)
hand

# %% [markdown]
# An audit does the same, with what is easily forgotten: intervals, a control, corrections for the number of attacks, and refusals of
# what cannot be right, such as members that are also non-members.

# %%
reports = {"forest": audited(
    forest.predict_proba, "forest", f"a random forest on {dealt['forest'].title}",
    outputs="probabilities", public=dealt["forest"].apart)}

# %% tags=["hide-input"]
row = next(one for one in reports["forest"].judged.attacks if one.name == "MALT")
results.name({"hand": float(hand), "row": float(row.auc.value)}, ".4f")
results.name({"forest-answer": reports["forest"].answer, "forest-low": str(reports["forest"]).splitlines()[-1],
              "forest-title": dealt["forest"].title, "network-title": dealt["network"].title,
              "private-title": dealt["private"].title, "forest-speaks": reports["forest"].judged.headline.name})

# %% [markdown]
# By hand the AUC is {ours}`hand`; the row MALT of the report below has {ours}`row`.
#
# ## A forest, through its probabilities
#
# The report begins with its answer, in words that its numbers chose:
#
# > {ours}`forest-answer` {ours}`forest-low`

# %% tags=["hide-input"]
plotting.show(
    exhibits.roc_figure({"": reports["forest"]}), name="audit-forest-roc",
    caption="The forest on {ours}`forest-title`: {term}`ROC` on logarithmic axes, from one record on; what is below one is shaded. The band is the "
            "pointwise 95 % interval of the attack that speaks for the audit.",
    alt="The forest: curves of up to four attacks and a dashed line of chance, that of the attack that speaks thicker and with a band; a grey margin at the left and "
        "below.")
results.show_table(
    exhibits.rates_table({"the forest": reports["forest"]}), name="audit-forest-rates",
    caption="The same in numbers, with 95 % intervals over the records: first the attack that speaks, then the others by AUC. p is "
            "corrected for all attacks and both tests of each. Last come chance and the control that sees no model.")
exhibits.show_report(reports["forest"], "audit-forest")

# %% [markdown]
# How to read it:
#
# - **One attack speaks.** The highest of many noisy numbers is too high. So the attack is chosen on one random half of the records,
#   and judged on the other; the answer quotes that number, and the table has all records.
# - **Low false positive rates matter.** An AUC is about the whole ranking. Who accuses has to look at the left end of the curve, and
#   there the number of non-members sets the limit: with $n$ of them no rate between $0$ and $1/n$ exists. What is not resolved is not printed.
# - **Epsilon is a lower bound.** It says which promises of differential privacy the finding refutes, on the conditions that the report
#   names. A bound of zero refutes none.
#
# A leaf of this forest holds {param}`leaf` or more records. One that holds a single record answers with that record's own label. So full-grown trees know their members by heart, which accuracy on
# a test set does not show. {says}`A3` {says}`A7`
#
# ## A network, with a recipe
#
# The network is torchvision's ResNet-18, in this run with {param}`stages` of its four stages. It is a function of one's own, written
# where the processes that train models can import it:

# %% tags=["hide-input"]
results.show_source(networks.resnet18)

# %%
recipe = study.recipe(stages, network_epochs, network_batch, network_rate, seed)
network = study.network(dealt["network"], recipe)
reports["network"] = audited(
    network, "network", f"a ResNet-18 on {dealt['network'].title}",
    recipe=recipe, references=references)

# %% [markdown]
# > {ours}`network-answer` {ours}`network-low`

# %% tags=["hide-input"]
answer = str(reports["network"]).splitlines()
results.name({"network-answer": answer[0], "network-low": answer[-1]})
plotting.show(
    exhibits.roc_figure({"": reports["network"]}), name="audit-network-roc",
    caption="The network on {ours}`network-title`, as {numref}`audit-forest-roc` has the forest. Among the attacks are now those that compare "
            "with references.",
    alt="The network: curves of up to four attacks and a dashed line of chance, that of the attack that speaks thicker and with a band; a grey margin at the left and "
        "below.")
results.show_table(
    exhibits.rates_table({"the network": reports["network"]}), name="audit-network-rates",
    caption="The same in numbers, as in {numref}`audit-forest-rates`.")
exhibits.show_report(reports["network"], "audit-network")

# %% [markdown]
# The recipe buys two things. Reference models, {param}`references` at most, are trained on random halves of all records that are judged:
# each record has some that know it and some that do not. {says}`A6` And the report retrains the model with one thing changed at a time,
# so that advice has a price ({numref}`audit-prices`).
#
# ## A private model beside its twin
#
# Differential privacy is the one remedy with a guarantee. It bounds what *any* attack can find, those included that nobody has thought
# of. Here a small network is trained by DP-SGD {cite:p}`abadi2016deep` with $\epsilon$ of at most {param}`epsilon`, and its twin by the same recipe without clipping
# or noise. The audit is given both with their weights, so gradients and curvature are tried, too.

# %%
lacking = private.lacking()
recipe = training.TrainConfig(private_architecture, private_epochs, private_batch,
                              "sgd", private_rate, 0.9, seed=seed)
twins = None if lacking else study.twins(dealt["private"], recipe, epsilon)
for kind in () if lacking else ("twin", "private"):
    model = getattr(twins, kind).model(0)
    title = "a private model" if kind == "private" else "a model without noise"
    reports[kind] = audited(model, "private", title,
                            delta=1 / private_members)  # what was promised

# %% tags=["hide-input"]
pair = {title: reports[kind] for title, kind in (("the twin", "twin"), ("the private model", "private")) if kind in reports}
results.name({f"{kind}-answer": reports[kind].answer if kind in reports else f"Not run. {lacking}." for kind in ("twin", "private")})
if pair:
    plotting.show(
        exhibits.roc_figure(pair), name="audit-private-roc",
        caption="The twin and the private model on {ours}`private-title`, trained on the same records.",
        alt="Two panels of ROC curves on logarithmic axes, each with a dashed line of chance and one band.")
results.show_table(
    exhibits.rates_table(pair) if pair else exhibits.not_run(lacking), name="audit-private-rates",
    caption="The twin and the private model on {ours}`private-title` in numbers, as in {numref}`audit-forest-rates`.")
for kind in ("twin", "private") if pair else ():
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
# {says}`A4` {says}`A5` The means over {param}`models` such models are in {numref}`audit-many`: one audit may miss what several show. In
# {numref}`audit-private-rates` intervals are of one attack alone; p counts that many were tried.
#
# The lower bound on $\epsilon$ is for the $\delta$ that was promised. Were records trials of their own, it would exceed the $\epsilon$ promised only
# by the chance that its confidence leaves; records of one run are not quite that. It is mostly far below: one run with records as they
# come shows little of what the worst record under the worst attack could.
#
# ## What each audit could run
#
# Nothing in these reports was chosen by us. What was given decided which attacks are possible, and the budget which of them run.

# %% tags=["hide-input"]
titles = {"forest": "forest", "network": "network", "twin": "twin and private"}
results.show_table(
    exhibits.plan_table({title: reports[kind] for kind, title in titles.items() if kind in reports}), name="audit-plan",
    caption="The threat models: what each attack needs, as declared where it is computed, and whether an audit of this chapter ran it, or "
            "why not. `mia audit --plan` prints such a table of your model before anything is run.")

# %% [markdown]
# ## A test of the audit itself
#
# Would you notice if an audit had an error? A sign turned round, a score that is a constant, labels in another order: the report
# would still look well, and say that nothing was found. So an audit is first tried where the truth is known.
#
# Models are trained on records *apart*, so they never saw the "members". Their audits must give chance. Then a leak is planted: for
# some of the members, a share of {param}`share`, the same model is made surer of the true class, by nine tenths of what is missing to certainty. Now
# audits should find something, if the share is not too small for so few records. `mia audit --test` does both for the audit as it is installed at your place.

# %%
apart = {kind: dealt[kind].apart for kind in ("forest", "private")}
forests = [study.forest(apart["forest"], trees, leaf, seed + 100 + k).predict_proba
           for k in range(models)]
everyone = np.ones((models, len(apart["private"])), bool)
strangers = training.train(apart["private"], everyone, recipe, label="strangers")
small = [partial(study.probabilities, strangers.model(k)) for k in range(models)]
tests = {"forests": study.tested(dealt["forest"], forests, share, games, seed),
         "small networks":
             study.tested(dealt["private"], small, share, games, seed)}

# %% tags=["hide-input"]
plotting.show(
    exhibits.tested_figure(tests), name="audit-tested",
    caption="Audits of {param}`models` models of each kind that never saw the \"members\", and of the same models with a planted leak. Dashed: "
            "chance.",
    alt="For each kind of model two rows of marks along an axis of AUC: circles for audits without a leak, squares for those with one.")

# %% [markdown]
# {says}`A1` {says}`A2` How many alarms there were is in {numref}`audit-alarms`.
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
# ## What held and what did not
#
# These sentences are chosen by the verdicts of this run; the numbers behind each are {ref}`below <audit-claims>`.
# Where one ends with a number of parts, its claim was put as that many numbers, and so many of them hold.
#
# **The audit.** {says}`A1` {says}`A2`
#
# **The models.** {says}`A3` {says}`A6` {says}`A4` {says}`A5`
#
# **A remedy.** {says}`A7`
#
# To take away: before you believe an audit that found nothing, ask to see the one with the planted leak.

# %% [markdown]
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
# here. Weights open gradients; what these add, and cost, the [chapter that compares](compare.ipynb) measures. More members only narrow intervals.
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
# A leaf of one record answers with that record's own label; a leaf of twenty with a mean of twenty labels, of which the member's is one.
# So the loss of members rises towards that of others. What it costs is in {numref}`audit-leaves`: little as long as what is
# given up is what was learned by heart, more where leaves mix records that differ. AUCs of attacks on outputs tend to fall together, for they see the same
# numbers. A TPR at few alarms need not: where leaves are pure many losses tie, and a threshold that calls one of them calls them all.
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

# %% [markdown]
# ## Quiz
#
# Choose an option and open it: it says why it is right, or what it mistakes.
#
# :::{quiz} audit
# :::

# %% [markdown]
# ## In depth
#
# Each part is folded; its title says what is in it.
#
# ### More than one model
#
# A report is about one model. Behind the claims of this chapter are several, each with its own members: halves of one pool, so that
# every record is a member of half of them.

# %%
many = {"forests": study.forests(dealt["forest"], trees, leaves, seed)}
if twins:
    many["twins"] = study.of_twins(twins)
if reports["network"].plan.references:
    many["references"] = study.of_references(reports["network"])

# %% tags=["hide-input"]
results.show_table(
    exhibits.many_table(many, {**{f"leaf {n}": f"loss, leaves of {n}" for n in leaves}, "blind": "no model",
                               "twin": "loss, without noise", "private": "loss, private", "MALT": "loss"}),
    name="audit-many",
    caption="Mean over several models with 95 % intervals, which cover models and records, of accuracies models alone. The references of the "
            "network's audit are attacked by each other, the complement left out.")

# %% [markdown]
# ### What to try on a forest
#
# There is no recipe for a forest here, so its report retrains nothing. But one can: the same forests with larger leaves.

# %% tags=["hide-input"]
plotting.show(
    exhibits.leaves_figure(many["forests"], leaves), name="audit-leaves",
    caption="Forests on {ours}`forest-title` against the least number of records in a leaf: AUC of the loss (dashed: chance) and accuracy on "
            "non-members. Bars: 95 % intervals over {param}`models` forests.",
    alt="Two panels against the least records of a leaf: AUC of the loss, and accuracy on non-members, each with bars.")

# %% [markdown]
# ### What to try on the network, with its price
#
# From the network's report: the recipe as it is and with one thing changed at a time, each trained once, so the chance of one training
# is in every row.

# %% tags=["hide-input"]
results.show_table(
    exhibits.prices_table(reports["network"]) if reports["network"].prices else exhibits.not_run("the budget was too small"),
    name="audit-prices", caption="Changes of the recipe, judged by the loss alone. Intervals cover the records.")

# %% [markdown]
# ### What the audits had
#
# Of the network the audit is given a function, as of a model behind an interface, and its recipe; of the twins their weights.

# %% tags=["hide-input"]
results.show_table(
    exhibits.given_table(reports), name="audit-given",
    caption="What each audit was given. As \"network\" an audit has weights, as \"function\" answers alone.")

# %% [markdown]
# ### What the network's report says that it shows, and what not

# %% tags=["hide-input"]
results.say(exhibits.shows_list(reports["network"]))

# %% [markdown]
# ### The test of the audit, in numbers

# %% tags=["hide-input"]
results.show_table(
    exhibits.tested_table(tests), name="audit-alarms",
    caption="Audits of models that never saw the \"members\", by the four attacks on outputs, without a leak and with one. An alarm: some "
            "attack below 5 % after correction for all attacks and both tests; \"members\" are drawn anew for each, the model stays.")

# %% [markdown]
# (audit-claims)=
# ### Every claim, with its verdict
#
# Each claim is put as one or more numbers, its parts, that are to be above zero. None is a paper's; the verdict is computed
# from their intervals ([how](../book/statistics.md)).

# %%
verdicts = exhibits.judge(tests, many["forests"], leaves, many.get("twins"), lacking,
                          many.get("references"))

# %% tags=["hide-input"]
claims.show("audit", verdicts)

# %% [markdown]
# ### Where this chapter stops short
#
# Models are small, so that the page can be run anywhere; the preset `cpu` has the whole ResNet-18 on CIFAR-10 and Adult for the forest.
# DP-SGD draws batches by chance and its twin in turns. The accountant's $\epsilon$ holds for one training, not for the choice of the recipe. All
# models of a kind share one pool, which intervals do not cover. Claims on forests and twins are about the loss alone; the reports try all
# attacks.
