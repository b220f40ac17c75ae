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
#
# **Take RMIA, and as many references as you can train. With {param}`compared` references it finds {ours}`rmia-first:value` of the members on
# {ours}`first` and {ours}`rmia-second:value` on {ours}`second`, if one in a hundred of the others may be accused. Without references no attack
# finds more than guessing would, about 1 %. LiRA needs more references to come near, and passes RMIA only where networks know their members by
# heart.**

# %% tags=["parameters", "hide-input"]
banks: list[str] = ["cifar10", "cifar100"]  # published banks of small networks [cifar10 | cifar100; not empty; distinct]
targets: int = 16  # networks of each that are attacked, one of each complementary pair [2..16]
records: int = 4000  # of the training records the first so many are judged [200..4000]
counts: list[int] = [1, 2, 4, 8, 16, 30]  # references, as far as a bank has them [1..62; ascending; not empty]
compared: int = 8  # of these, in the table and the ranking [1..30]
tables: list[str] = ["german_credit", "adult"]  # tables of records [german_credit | adult; not empty; distinct]
plays: int = 40  # plays on each table, at most [2..40]
hand_models: int = 10  # networks of the target by hand [6..100; even]
hand_records: int = 1000  # records there, half of which train each network [100..20000]
hand_epochs: int = 20  # of their training [1..200]
seed: int = 0  # of what is trained here [0..1000000]
draws: int = 100  # resamples of records behind each interval [10..10000]

# %% tags=["hide-input"]
import numpy as np
import pandas as pd

from mia_lib import claims, data, membership, metrics, plotting, results, signals, training
from mia_lib.attacks import baselines, bayes
from mia_lib.evidence import explore, game_cards, rules
from mia_lib.papers.compare import exhibits, study
from mia_lib.signals import log_odds

plotting.set_style()
RATE = "tpr_at_fpr=0.01"


def number(frame, attack, metric=RATE, **where):
    interval = metrics.estimate(frame, attack, metric, **where).interval((0.0, 1.0) if metric == RATE else (-1.0, 1.0))
    return "too few" if np.isnan(interval.value) else interval

# %%
cases = [study.of_bank(name, records) for name in banks] + [study.by_heart(records)]
played = [study.attack_case(case, targets, counts, draws) for case in cases]
frame = pd.concat([rows for rows, _ in played], ignore_index=True)

# %% tags=["hide-input"]
first, second, heart = cases[0].name, cases[len(banks) - 1].name, cases[-1].name
shown = {"first": first, "second": second, "heart": heart}
results.name({"first": first, "second": second})
for word, data_name in shown.items():
    results.name({f"{short}-{word}": number(frame, name, data=data_name, references=count) for short, name, count in (
        ("malt", "MALT", 0), ("rmia", "RMIA", compared), ("lira", "LiRA", compared), ("rmia-off", "RMIA, offline", compared),
        ("softmin", "MAST (softmin)", compared), ("curvature", "Curv, log ratio", compared), ("cal", "calibrated loss", compared))}, ".1%")
plotting.show(
    exhibits.references_figure(frame), name="compare-references",
    caption="Share of the members found at 1 % false alarms, against the number of reference models that a record is compared with. Of "
            "offline attacks, "
            "the soft minimum and the calibrated loss these were all trained without the record, of the other attacks half of them. Small "
            "networks on "
            "{ours}`first` and {ours}`second`, and networks that know 2,000 images by heart, {param}`targets` targets of each, the same "
            "{param}`records` images for all "
            "attacks; 95 % intervals over targets and images.",
    alt="Three panels of curves against the number of references, one for each of eight attacks. On the first two sets RMIA, RMIA offline "
        "and the soft minimum "
        "lead, and MALT lies at one percent. On networks that know their members by heart LiRA leads from four references on.")

# %% [markdown]
# The chapters before follow one paper each, and each paper compares its own attack with a few others. It chooses data, references and queries. Here
# networks, records and references are the same for all. Run it again: `mia run compare`, or with other settings, `mia run compare -p compared 2`
# ([how to rerun](../book/rerun.md)). The short answer is the [guide](../book/guide.md).
#
# ## What each attacker has
#
# The [game](../book/game.md) is the same for all. Half of the records trained the target, and the attacker gives every record a score. Attacks
# differ in three things:
#
# - **Access**: the predicted label, the loss, all outputs, the parameters ({numref}`compare-access`).
# - **References**: none; models that were trained without the record, as an attacker has who meets it later; or models of which half were trained
#   on it.
# - **Queries**: how often the target is asked about one record. Curvature asks forty times, most others once.
#
# The target's partner, which was trained on the other half of the records, is no reference, for it would give the answer away.
#
# ## The idea
#
# Three networks are asked about two images. The target gives the first image's label the probability .9, and networks without it give it .88. The
# second image has .3 under the target and .02 under the others. A threshold on the loss calls the first one, which is easy for everybody. A
# comparison calls the second. All attacks with references make such a comparison, and differ in how: by a difference of losses, by a ratio of
# probabilities, by two Gaussians, by curvature.
#
# ## One target by hand

# %%
pool = data.load("fashion_mnist_20k").take(np.arange(hand_records))
inside = membership.balanced_halves(hand_records, hand_models, seed)
config = training.TrainConfig("strided_cnn:8,16,32", epochs=hand_epochs,
                              batch_size=32, learning_rate=0.002, seed=seed)
loss = signals.loss(training.train(pool, inside, config), pool).astype(float)

others = membership.references_of(0, hand_models)  # but the target and its partner
p, knows = np.exp(-loss), inside[others]
usual = (np.average(p[others], 0, knows) + np.average(p[others], 0, ~knows)) / 2
by_hand = {"loss": bayes.malt(loss[0]), "ratio": p[0] / usual}
{name: round(metrics.auc(score, inside[0]), 3) for name, score in by_hand.items()}

# %% [markdown]
# An {term}`AUC` of one half is guessing. The ratio of the target's probability to the usual one is RMIA's: its score counts how many public records
# have less than half of this ratio, which gives a threshold a meaning and leaves the order as it is.
#
# ## The method
#
# If the attacker has only references without the record, RMIA guesses what the others would say from a constant $a$:
#
# $$
# \mathrm{ratio}(x) = \frac{p(x \mid \theta)}{\tfrac12\big[(1 + a)\, \bar p_{\mathrm{out}}(x) + 1 - a\big]} .
# $$ (compare-rmia)
#
# :::{finding}
# :claims: K14 checked
# With $a = 1$ this is $p(x \mid \theta)/\bar p_{\mathrm{out}}(x)$. Its logarithm is the score of [MAST with the soft minimum](bayes.ipynb), which
# was published five years before. With $a = 0$ the usual probability is at least one half, so that an image that is hard for everybody must be
# learned well to be called. No constant is right everywhere. We let the attacker choose it by attacking one of its references.
# :::
#
# ## All attacks, with the same references

# %% tags=["hide-input"]
results.show_table(
    exhibits.main_table(frame, compared), name="compare-table",
    caption="Share of the members found at 1 % false alarms, in percent, by every attack with {param}`compared` references or with none; "
            "guessing finds "
            "1 %. *Trained*: references were trained *without* the record, or half of them with it, *both*. References and queries are those of one "
            "record; RMIA asks the target about 2,000 further images once. *By heart*: networks that know 2,000 images of CIFAR-100 by heart. 95 % "
            "intervals over {param}`targets` targets and {param}`records` images. Attacks whose scores are few numbers, such as *0-1*, have no "
            "threshold for so few alarms. LiRA's released code scores offline by the density of its Gaussian, so that too low a confidence counts for "
            "membership, too.")

# %% tags=["hide-input"]
plotting.show(
    exhibits.ranking_figure(frame, compared), name="compare-ranking",
    caption="The ranking: how many points of TPR at 1 % FPR each attack is away from RMIA on the same images, with {param}`compared` "
            "references or with none. Paired differences with 95 % intervals; one that covers "
            "zero leaves the order open. They are not corrected for their number.",
    alt="A row for each attack and a panel for each set: a mark at the difference from RMIA with a bar. Nearly all lie to the left of zero; "
        "offline RMIA lies on it, and LiRA to "
        "its right on networks that know their members by heart.")
results.name({f"points-{word}": rules.number_of("compare", claim, frame) for word, claim in (
    ("two", "K1"), ("most", "K2"), ("heart", "K3"), ("both", "K4"), ("one", "K7"))}, ".1f")
results.name({f"points-{word}": -rules.number_of("compare", claim, frame) for word, claim in (
    ("spreads", "K5"), ("curvature", "K6"), ("one-heart", "K7h"))}, ".1f")

# %% [markdown]
# :::{finding}
# :claims: K1 reproduced, K2 reproduced, K3 reproduced, K4 inconclusive, K5 contradicted, K6 contradicted
# **RMIA is never far from the first.** With two references it finds {ours}`points-two` points more of the members than LiRA, on average over
# {ours}`first` and {ours}`second`; with the most references, {ours}`points-most`. Where networks know their members by heart LiRA finds
# {ours}`points-heart` points more with the most references.
#
# **The record need not be among the references' training data.** With eight references of either kind RMIA does as well, as far as we can tell: the
# difference is {ours}`points-both` points.
#
# **More machinery does not help.** LiRA with a spread for each record, as its paper has it, finds {ours}`points-spreads` points fewer than with one
# spread for all, even with the most references. Curvature, for forty times as many queries, finds {ours}`points-curvature` points fewer than LiRA.
# :::
#
# :::{finding}
# :claims: K7 reproduced, K7h contradicted
# **A simple comparison can be worse than none.** On the banks one reference lets the calibrated loss find {ours}`points-one` points more than the
# loss. Against networks that know their members by heart it loses {ours}`points-one-heart` points. There members have a loss of zero, so that
# the loss alone tells nearly everything, and a difference of losses adds the noise of the reference. The soft minimum fails in the same way, and
# RMIA with a small constant does not.
# :::
#
# ## Where references come from
#
# These references have something that an attacker may lack: they were trained on halves of the very pool that the target's training data come from.
# Even if a reference does not know the record that is judged, it shares about half of the target's other records. What is that worth? The target's
# partner shares none of them. Here are both, each as the only reference, on records that neither knows.

# %%
shared = study.sharing(banks[0], targets, draws)

# %% tags=["hide-input"]
results.name({f"share-{overlap}": number(shared, "RMIA, offline", overlap=overlap) for overlap in ("half", "nothing")}, ".1%")
results.name({"points-shared": rules.number_of("compare", "K10", shared)}, ".1f")
results.show_table(
    exhibits.sharing_table(shared), name="compare-sharing",
    caption="One reference that shares half of the target's training records, and one that shares none, in percent with 95 % intervals over "
            "{param}`targets` targets and their records. Judged are the members that neither reference "
            "knows, and 10,000 test images. With one reference the calibrated loss and the soft minimum are the same score.")

# %% [markdown]
# :::{finding}
# :claims: K10 reproduced
# The reference that shares half finds {ours}`share-half` of the members, the other one {ours}`share-nothing`. So whoever trains
# references on records of their own finds fewer than our tables say, by {ours}`points-shared` points here.
# :::
#
# ## Public records instead of a pool
#
# An attacker may own records like the target's, and none of those that are judged. They can train a model on them, or a
# [regression](quantile.ipynb) of the target's scores. This comparison gives both the same records: the half of the pool that did not train the
# target.

# %%
regression = study.find(f"quantile/{banks[0]}-small", label=True, public=None)
further = (study.find("quantile/public-references")
           if banks[0] == "cifar10" else None)
public = study.public_records(banks[0], targets, regression, further,
                              draws=draws)

# %% tags=["hide-input"]
results.show_table(
    exhibits.by_references_table(public, "public"), name="compare-public",
    caption="Attackers with 25,000 public images, none of which is judged, in percent with 95 % intervals over targets and records. Judged "
            "are 10,000 members of each target and 10,000 test images. References are trained by the target's "
            "recipe; with none, the public records train nothing or a regression. RMIA has its authors' constant.")
results.name({"public": number(public, "calibrated loss", references=1), "guide-regression": (
    "not measured yet" if regression is None else number(public, "quantile regression", references=0))}, ".1%")

# %% [markdown]
# One model on public records lets the calibrated loss find {ours}`public` of the members; a regression on the same records: {ours}`guide-regression`.
#
# ## Two attacks at your own price

# %% tags=["hide-input"]
pairs = exhibits.beside(cases, [scores for _, scores in played], compared)
scores, members = pairs[first]
plotting.explore(
    explore.two_attacks(pairs, ("MALT", "RMIA")), plotting.roc({name: scores[name] for name in ("MALT", "RMIA")}, members),
    name="compare-versus",
    instructions="Choose a set and two attacks. Then move the false positive rate that is allowed, the share of members among the records "
                 "looked at, and what a wrong accusation costs in right "
                 "ones. When does accusing nobody pay best?",
    caption="Two attacks on the same records, with {param}`compared` references where they need some, means over {param}`targets` targets: "
            "both ROCs, and of a thousand records who is accused, rightly and wrongly. The net gain is right "
            "accusations less wrong ones times their cost.",
    alt="Two ROC curves on logarithmic axes. In the chart that can be moved a line stands at the rate allowed, and beside the curves is a square of "
        "a thousand small squares for each attack, coloured by members missed, right and wrong accusations, and others left alone.")

# %% [markdown]
# ## What held and what did not
#
# :::{finding}
# :claims: K1 reproduced, K2 reproduced, K3 reproduced, K7 reproduced, K5 contradicted, K6 contradicted, K7h contradicted, K4 inconclusive
# **What held.** References are what matters: one of them finds more than any attack without, on networks that generalise. RMIA does most with few
# of them. LiRA is first where networks know their members by heart.
#
# **What did not.** Own spreads and curvature do not pay for what they ask. A calibrated loss is no safe choice: by heart it is worse than the loss.
#
# **What stays open.** Whether references that were trained on the record help RMIA at all. All networks here are small and trained without
# augmentation, or by heart; larger ones are in [the banks](banks.ipynb). Shadow models are in [the first chapter](bayes.ipynb), attacks that are
# told the other members in [that on the inverse Hessian](iha.ipynb).
# :::
#
# To take away: say what the attacker has before you say how well the attack does.
#
# ## Exercises
#
# ````{exercise} A frontier of your own
# :label: compare-exercise-frontier
# You may ask for losses and train no model. Which attacks of {numref}`compare-table` are left? What is the least that you must add to find more
# than guessing?
# ````
# ````{solution} compare-exercise-frontier
# :class: dropdown
# The 0-1 attack and MALT: whoever has the loss of the true label has no other outputs. Add one model that was trained without the record. With it
# the calibrated loss, the soft minimum and RMIA find several times what guessing finds, if the target generalises. If it knows its members by
# heart, MALT alone finds many.
# ````
#
# ````{exercise} Double the references, halve the targets
# :label: compare-exercise-budget
# With a budget for $M$ models in all you can have $M - 2$ references, and every model of the bank can be a target as well. Why are intervals over
# targets then not independent? Run `mia run compare -p targets 8` and say what becomes of the intervals.
# ````
#
# ````{solution} compare-exercise-budget
# :class: dropdown
# Targets of one bank share all other models as references and all records. The interval adds the variance of drawing targets and of drawing
# records, not that of drawing another bank. With half of the targets the first part doubles.
# ````
#
# ````{exercise} Is the best of many really best?
# :label: compare-exercise-holm
# {numref}`compare-ranking` has a difference for each attack, at 95 % each. How many of eighteen would lie on the wrong side of zero if all attacks
# were alike? Why is the best of a table, chosen on the targets that it is reported on, flattered, and how does the [guide](../book/guide.md) avoid
# it?
# ````
#
# ````{solution} compare-exercise-holm
# :class: dropdown
# About one in twenty. The largest of many noisy numbers is larger than its mean, more so with more of them. In the guide an attack is chosen on
# every second target and reported on the others. Those share references and records, so it is not all of the flattery that goes.
# ````

# %% [markdown]
# ## Quiz
#
# Choose an option and open it: it says why it is right, or what it mistakes.
#
# :::{quiz} compare
# :::

# %% [markdown]
# ## In more depth
#
# ### AUC, targets and threat models

# %% tags=["hide-input"]
results.show_table(
    exhibits.main_table(frame, compared, "auc"), name="compare-auc",
    caption="{numref}`compare-table` with AUC in the place of the rate, in percent; guessing has 50.")
results.show_table(
    exhibits.regimes_table(cases), name="compare-regimes",
    caption="The networks that are attacked: each was trained on half of the training records. *Others* are test images, by heart the other half.")
results.show_table(
    exhibits.access_table(), name="compare-access",
    caption="What each attack needs, as declared by the function that computes it. Thresholds that are named there are for whoever must say "
            "yes or no; rankings do without.")

# %% [markdown]
# ### Tables
#
# The plays of [the calibration chapter](calibration.ipynb): targets are trained on 200 records of German credit or a quarter of Adult, and
# references on public halves, as long as the targets.

# %%
of_tables = pd.concat([study.tables(name, plays) for name in tables])

# %% tags=["hide-input"]
results.name({"tables-gain": rules.number_of("compare", "K13", of_tables)}, ".1f")
results.show_table(
    exhibits.by_references_table(of_tables, "tables"), name="compare-tables",
    caption="Tables of records, in percent with 95 % intervals over plays. No reference knows a judged record. German credit with "
            "cross-entropy, Adult with the second softmax of the released code.")

# %% [markdown]
# :::{finding}
# :claims: K13 reproduced
# With the most references RMIA's AUC is {ours}`tables-gain` points above that of the calibrated loss.
# :::
#
# ### The norm of the gradient
#
# Whoever has the parameters can take the gradient of a record's loss. Its norm is known for 2,000 images.

# %%
of_gradients = pd.concat([study.parameters(name, targets, draws)
                          for name in banks])

# %% tags=["hide-input"]
results.name({"gradient": rules.number_of("compare", "K11", of_gradients)}, ".1f")
results.show_table(
    exhibits.parameters_table(of_gradients), name="compare-parameters",
    caption="The norm of the gradient and the loss as scores, without references, on 2,000 images, in percent with 95 % intervals.")

# %% [markdown]
# :::{finding}
# :claims: K11 contradicted
# The norm has no more to say than the loss: the difference of AUC is {ours}`gradient` points on average.
# :::
#
# ### Called again
#
# Call, under each target, the records above the threshold of 1 % false alarms. Other targets were trained on other halves. What is called under one
# of them and again under others is a property of the record.

# %%
some = max(count for count in counts if count % 2 == 0 and count <= targets - 2)
repeated = pd.concat([
    study.called_again(case, {name: scores[count][name]}, count)
    for case, (_, scores) in zip(cases, played, strict=True)
    for name, count in (("RMIA", some), ("LiRA", some), ("MALT", 0))])

# %% tags=["hide-input"]
results.name({"some": some} | {f"{short}-{side}": number(repeated, name, "again", data=first, side=side)
              for short, name in (("again", "RMIA"), ("again-malt", "MALT")) for side in ("members", "others")}, ".0%")
results.show_table(
    exhibits.again_table(repeated), name="compare-again",
    caption="Of the records that an attack calls under one target, the share that it calls again under others with the same membership, less "
            "the share of all such records that it calls there; in points, with 95 % intervals over targets. RMIA and LiRA "
            "have {ours}`some` references; neither of two targets is one of the other.")

# %% [markdown]
# :::{finding}
# :claims: K12 reproduced
# On {ours}`first` other targets call a member that RMIA called under one of them more often than members at large, by {ours}`again-members:value` of
# the cases. For its false alarms this is {ours}`again-others:value`, so these are mostly chance of the one target. MALT's false alarms come again
# ({ours}`again-malt-others:value`) as its hits do ({ours}`again-malt-members:value`): it calls the easy records, whoever was trained on them.
# :::
#
# ### Records to guess
#
# Some records of the target by hand, as an attacker sees them; on [their own page](../book/play.md) they are dealt to you.

# %% tags=["hide-input"]
odds = log_odds(loss)
lira = baselines.lira_offline(odds[0], odds[others], knows, fixed_variance=True)
dealt = game_cards.deal(pool.x, pool.y, pool.classes, loss[0], loss[others], knows, inside[0],
                        {"MALT": by_hand["loss"], "LiRA": lira}, seed=seed)
game_cards.show(
    dealt, name="compare-game",
    caption="Half of these records were used to train the target. Losses in nats; references are those that were not trained on the record.")

# %% [markdown]
# ### The guide's numbers
#
# An attack of the [guide](../book/guide.md) is the one that finds most members at 1 % false alarms on average over {ours}`first` and
# {ours}`second`, by every second target; what it finds is then reported on the other targets.

# %% tags=["hide-input"]
means, chosen = study.means_of(frame, compared), study.guide(frame, compared)
results.name({f"guide-{what}": name for what, name in chosen.items()} | {f"guide-{what}-models": means[what][2] for what in chosen})
for word, data_name in shown.items():
    results.name({f"guide-{what}-{word}": study.reported(frame, name, means[what][2], data_name) for what, name in chosen.items()}, ".1%")

# %% [markdown]
# (compare-claims)=
# ### Every claim, with its verdict
#
# None of these claims is a paper's.

# %%
identity = pd.concat([study.softmin_is_rmia(case, compared) for case in cases])
everything = pd.concat([frame, shared, public, of_tables, of_gradients, repeated,
                        identity], ignore_index=True)
verdicts = rules.judge_all("compare", everything, {})

# %% tags=["hide-input"]
claims.show("compare", verdicts)

# %% [markdown]
# ### Where this comparison stops short
#
# Networks are small. Intervals cover targets and records, not the choice of the bank. Of 4,000 images half are members of a target, so a rate of
# one in a thousand rests on two images: such rates, on all images, are on the page of [the banks](banks.ipynb). Quantile regression is not in the
# main table, since it is fitted to records that are judged there.
#
# On Colab, add a cell before the first one, and in it: `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`
