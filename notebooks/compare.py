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
# {ours}`first`, if one in a hundred of the others may be accused; guessing finds 1 %. With {ours}`most-third` on {ours}`third` it finds
# {ours}`rmia-third-most:value`, and LiRA {ours}`lira-third-most:value`. Where networks know their members by heart, LiRA finds
# {ours}`lira-heart:value` with {param}`compared`, and BaVarIA {ours}`bavaria-heart:value`.**

# %% tags=["parameters", "hide-input"]
banks: list[str] = ["cifar10", "cifar100"]  # published banks of small networks [cifar10 | cifar100; not empty; distinct]
targets: int = 16  # networks of each that are attacked, one of each complementary pair [2..16]
records: int = 4000  # of the training records the first so many are judged [400..4000]
counts: list[int] = [1, 2, 4, 8, 16, 30, 126]  # references, as far as a bank has them [1..126; ascending; not empty]
compared: int = 8  # references in the table and the ranking [2..14; even]
hand_models: int = 6  # networks of the target by hand [6..100; even]
hand_records: int = 1000  # records there, half of which train each network [100..20000]
hand_epochs: int = 20  # of their training [1..200]
seed: int = 0  # of what is trained here [0..1000000]
draws: int = 50  # resamples of records behind each interval [10..10000]

# %% tags=["hide-input"]
import numpy as np
import pandas as pd

from mia_book.evidence import claims, figures, results
from mia_lib import data, drawing, membership, metrics, signals, training
from mia_lib.attacks import baselines, bayes
from mia_book.evidence import explore, game_cards, rules
from mia_book.chapters.compare import exhibits, study
from mia_lib.signals import log_odds

drawing.set_style()
RATE = "tpr_at_fpr=0.01"


def number(frame, attack, metric=RATE, **where):
    return metrics.estimate(frame, attack, metric, **where).interval((0.0, 1.0) if metric == RATE else (-1.0, 1.0))


def points(frame, sign=1, **claims_of):
    results.name({f"points-{word}": rules.number_of("compare", claim, frame, sign) for word, claim in claims_of.items()}, ".1f")

# %%
cases = [study.of_bank(name, records) for name in (*banks, "resnet9")]
cases.append(study.by_heart(records))
every = study.all_with(cases, counts, compared)  # with so many, all attacks
played = [study.attack_case(case, targets, counts, draws, whole=every)
          for case in cases]
frame = pd.concat([rows for rows, _ in played], ignore_index=True)

# %% tags=["hide-input"]
first, second, third, heart = cases[0].name, cases[len(banks) - 1].name, cases[-2].name, cases[-1].name
shown = {"first": first, "second": second, "third": third, "heart": heart}
most = int(frame.loc[frame["data"] == third, "references"].max())
results.name({word: number(frame, name, data=where, references=count) for word, (name, where, count) in {
    "rmia-first": ("RMIA", first, compared), "rmia-third": ("RMIA", third, compared), "lira-heart": ("LiRA", heart, compared),
    "bavaria-heart": ("BaVarIA", heart, compared), "rmia-third-most": ("RMIA", third, most), "lira-third-most": ("LiRA", third, most),
    "rmia-off-heart": ("RMIA, offline", heart, compared), "two-heart": ("LiRA, 2 queries", heart, compared),
    "asked-heart": ("LiRA, 18 queries", heart, compared), "bavaria-off-heart": ("BaVarIA, offline", heart, compared),
    "one-calibrated": ("calibrated loss", second, 1), "one-rmia": ("RMIA, offline", second, 1)}.items()}, ".1%")
results.name({"first": first, "second": second, "third": third, "most-third": most, "small": " and ".join(one.name for one in cases[:len(banks)])})
figures.show(
    exhibits.references_figure(frame), name="compare-references",
    caption="What one more reference buys: the share of the members found at 1 % false alarms, against the number of reference models that a record "
            "is compared with. Those of offline attacks and of the calibrated loss were all trained without the record, of the others half. Small "
            "networks on {ours}`small`, ResNet-9 trained with flips and crops, and networks that know 2,000 images by heart; "
            "{param}`targets` targets of each, the same {param}`records` images for all attacks; 95 % intervals over targets and images.",
    alt=f"{len(cases)} panels, one a set, of curves against the number of references on a logarithmic axis, one for each of eight attacks with bars; MALT, "
        "which has no references, is a level line.")

# %% [markdown]
# The chapters before follow one paper each, and each paper compares its own attack with a few others. It chooses data, references and queries. Here
# networks, records and references are the same for all. Run it again: `mia run compare`, or with other settings, `mia run compare -p compared 2`
# ([how to rerun](../book/rerun.md)). The short answer is the [guide](../book/guide.md).
#
# ## What each attacker has
#
# The [game](../book/game.md) is the same for all. Half of the records trained the target, and the attacker gives every record a score. Attacks differ
# in three things:
#
# - **Access**: the predicted label, the loss, or all outputs ({numref}`compare-access`).
# - **References**: none; models that were trained without the record, as an attacker has who meets it later; or models half of them with it.
# - **Queries**: how often the target is asked about one record. Curvature asks forty times, most others once, or as often as one likes.
#
# The target's partner, which was trained on the other half, is no reference, for counting those that know a record would then give the answer away.
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
# have less than half of this ratio, which gives a threshold a meaning. It never swaps two records, but it ties those between which no public record lies.
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
# :claims: K14 checked, K19 checked
# With $a = 1$ this is $p(x \mid \theta)/\bar p_{\mathrm{out}}(x)$. Its logarithm is the score of [MAST with the soft minimum](bayes.ipynb), which was
# published five years before. With $a = 0$ the usual probability is at least one half, so that an image that is hard for everybody must be learned
# well to be called. No constant is right everywhere. We let the attacker choose it by attacking one of its references; with a single one it is its authors' own. BASE, of 2025, is the
# logarithm of the ratio and, with references of both kinds, ranks records as RMIA does but for ties {cite}`lassila2025practical`; offline it subtracts a factor, chosen likewise, times the logarithm of the usual probability.
# :::
#
# ## What to use with what you have

# %% tags=["hide-input"]
results.show_table(
    exhibits.guide_table(frame, compared), name="compare-guide",
    caption="Read down as long as the lines are true of you. The attack of a row finds, of all that it permits and that all three banks have, most "
            "members at 1 % false alarms on average over them, by every second target; its rates, in percent with 95 % intervals, are those of the other targets. "
            "Every attack with the same means is in {numref}`compare-table`.")
means, chosen = study.means_of(frame, compared), study.guide(frame, compared)
results.name({f"guide-{what}": name for what, name in chosen.items()} | {f"guide-{what}-models": means[what][2] for what in chosen})
for word, data_name in shown.items():
    results.name({f"guide-{what}-{word}": study.reported(frame, name, means[what][2], data_name) for what, name in chosen.items()}, ".1%")
points(frame, two="K1", most="K2", heart="K3", both="K4", spreads="K5", one="K7", bavaria="K15", within="K18", double="K24", overfit="K17h", ties="K29")
points(frame, beyond="K26")
points(frame, -1, curvature="K6", lost="K7h", offline="K16", rival="K17")

# %% [markdown]
# :::{finding}
# :claims: K1 reproduced, K3 reproduced, K29 inconclusive, K6 contradicted, K7 reproduced, K7h contradicted
# **Two references: RMIA.** With two it finds {ours}`points-two` points more of the members than LiRA, on average over the banks. With one its constant cannot be chosen, and on {ours}`second` it finds {ours}`one-rmia`, the calibrated loss {ours}`one-calibrated`. With the most the order turns on {ours}`third`: LiRA {ours}`lira-third-most`, RMIA {ours}`rmia-third-most`.
# Where networks know their members by heart LiRA is ahead of RMIA by {ours}`points-heart` points, and of the ratio itself (BASE) by {ours}`points-ties`, which may be chance: the rest is ties, for there no image is left over, and RMIA compares with judged images, members among them.
#
# **A simple comparison can be worse than none.** On the banks one reference lets the calibrated loss find {ours}`points-one` points more than the
# loss. Against networks that know their members by heart it loses {ours}`points-lost` points: there members have a loss of zero, and a difference of
# losses adds the noise of the reference. RMIA with a small constant does not fail so. Curvature, for forty times as many queries, finds
# {ours}`points-curvature` points fewer than LiRA.
# :::
#
# BaVarIA keeps LiRA's Gaussians, and draws each variance to that of all records, more so where there are few references
# {cite}`brannvall2026exponential`. Offline it compares with the references' own members at large.
#
# :::{finding}
# :claims: K15 no difference, K16 contradicted, K17 contradicted, K17h reproduced, K18 no difference, K26 reproduced
# **BaVarIA is for networks that overfit.** Its paper claims most with few references and offline. On our banks it finds as much as LiRA with four
# references ({ours}`points-bavaria` points), whether its prior counts the difficulty of records as noise or not ({ours}`points-within`). Offline it
# finds {ours}`points-offline` points fewer than LiRA and {ours}`points-rival` fewer than RMIA. Against networks that know their members by heart, one
# reference is enough to find {ours}`points-overfit` points more than RMIA does, and with the most it is {ours}`points-beyond` points ahead of LiRA.
# :::
#
# ## One more query
#
# A record can be asked as it is, mirrored and shifted: LiRA's paper asks 18 times. Networks that were trained on such views may say more by them. We
# join the answers by the mean of their log odds, for all attacks alike. LiRA's paper has a Gaussian for each view; so has *a Gaussian each*, where
# answers to each view are kept: for three recipes of one small network on 1,000 images, which stand beside the banks.

# %%
of_recipes, recipes = study.recipes(draws)

# %% tags=["hide-input"]
points(of_recipes, asked="K20", longer="K22", plain="K23", apart="K27", spared="K28")
figures.show(
    exhibits.queries_figure(pd.concat([frame, of_recipes]), compared), name="compare-queries",
    caption="What one more query buys: members found at 1 % false alarms, against the queries about a record, with {param}`compared` references, the "
            "recipes with all others. Answers are joined by the mean of their log odds, but for *a Gaussian each*; curvature takes differences of forty. Small "
            "networks on a whole set were trained without augmentation, those that know their members by heart with flips. 95 % intervals over targets and "
            "images.",
    alt="A panel for each set of which more than one answer is known: curves against the number of queries, one for each attack that was asked so often.")

# %% [markdown]
# :::{finding}
# :claims: K20 inconclusive, K24 reproduced, K27 no difference, K28 reproduced
# **Ask what training showed.** The networks that know their members by heart were trained with flips. With the mirror image as a second query LiRA
# finds {ours}`two-heart` of their members instead of {ours}`lira-heart`; with 18 views that are shifted, which these networks never saw,
# {ours}`asked-heart`. In the recipe with flips and crops 18 queries change what LiRA finds by {ours}`points-asked` points, which may be chance; where
# training had none they ruin it ({numref}`compare-recipe`). How they are joined matters there alone: a Gaussian for each view finds
# {ours}`points-spared` points more than one for their mean, since a view that says little weighs little; with views that training had it is
# {ours}`points-apart` points. Twice as many references buy {ours}`points-double` points on {ours}`first`.
# :::
#
# ## The same attack on another recipe
#
# RMIA's paper has an AUC of .72 for both attacks on CIFAR-10. Readers who run its code get .61, with the same accuracies. What makes the difference?

# %% tags=["hide-input"]
results.show_table(
    exhibits.reported_table(pd.concat([frame, of_recipes]), [cases[0], cases[-2], *recipes] if banks[0] == "cifar10" else recipes),
    name="compare-recipe",
    caption="LiRA and RMIA on CIFAR-10, in percent: as papers {cite}`carlini2022membership,zarifzadeh2024low,brannvall2026exponential` and users of "
            "Privacy Meter report them, and ours with 95 % intervals. What is not stated, or not resolved, has a dash. Both of Brännvall's are by the same code.")

# %% [markdown]
# :::{finding}
# :claims: K22 reproduced, K23 reproduced
# **Not the queries**: 18 of them instead of two change the AUC of those readers by a fifth of a point. **The network and its training**: by the same
# code LiRA's AUC is ten points lower on a ResNet-18 than on a wide ResNet; ours on ResNet-9 lies between. In our recipes four times the training
# raises it by {ours}`points-longer` points, and augmentation lowers it by {ours}`points-plain`. So a recipe that leaves members less sure could
# explain it; that is not tested here.
# :::
#
# ## Where references come from
#
# These references have something that an attacker may lack: they were trained on halves of the very pool that the target's training data come from.
# Even if a reference does not know the record that is judged, it shares about half of the target's other records. What is that worth? The target's
# partner shares none of them. Here are both, each as the only reference.

# %%
shared = study.sharing(banks[0], targets, draws)

# %% tags=["hide-input"]
results.name({f"share-{overlap}": number(shared, "RMIA, offline", overlap=overlap) for overlap in ("half", "nothing")}, ".1%")
points(shared, shared="K10")
results.show_table(
    exhibits.sharing_table(shared), name="compare-sharing",
    caption="One reference that shares half of the target's training records, and one that shares none, in percent with 95 % intervals over "
            "{param}`targets` targets and their records. Judged are the members that neither reference knows, and 10,000 test images. With one "
            "reference the calibrated loss and the soft minimum are the same score.")

# %% [markdown]
# :::{finding}
# :claims: K10 reproduced
# The reference that shares half finds {ours}`share-half` of the members, the other one {ours}`share-nothing`. So whoever trains references on records
# of their own finds fewer than our tables say, by {ours}`points-shared` points here.
# :::
#
# ## Two attacks at your own price

# %% tags=["hide-input"]
pairs = exhibits.beside(cases, [scores for _, scores in played], compared)
scores, members = pairs[first]
figures.explore(
    explore.two_attacks(pairs, ("MALT", "RMIA")), drawing.roc({name: scores[name] for name in ("MALT", "RMIA")}, members),
    name="compare-versus",
    instructions="Choose a set and two attacks. Then move the false positive rate that is allowed, the share of members among the records looked at, "
                 "and what a wrong accusation costs in right ones. When does accusing nobody pay best?",
    caption="Two attacks on the same records, with {param}`compared` references where they need some, means over {param}`targets` targets: both ROCs, "
            "and of a thousand records who is accused, rightly and wrongly. The net gain is right accusations less wrong ones times their cost.",
    alt="Two ROC curves on logarithmic axes. In the chart that can be moved a line stands at the rate allowed, and beside the curves is a square of a "
        "thousand small squares for each attack, coloured by members missed, right and wrong accusations, and others left alone.")

# %% [markdown]
# ## What held and what did not
#
# :::{finding}
# :claims: K1 reproduced, K3 reproduced, K7 reproduced, K24 reproduced, K26 reproduced
# **What held.** References are what matters: one of them finds more than any attack without, on networks that generalise, and eight more buy more
# than seventeen more queries about views that training never showed. With two references RMIA finds more than LiRA. Where networks know their members by heart
# BaVarIA is ahead of LiRA, and LiRA of RMIA's score, in part by its ties.
# :::
#
# :::{finding}
# :claims: K4 no difference, K5 contradicted, K6 contradicted, K7h contradicted, K16 contradicted, K17 contradicted
# **What did not.** Curvature does not pay for what it asks, nor BaVarIA for its priors on networks that generalise. A calibrated loss is no safe
# choice: by heart it is worse than the loss. A spread for each record does not help LiRA even with the most references ({ours}`points-spreads` points),
# and whether RMIA's eight references were trained on the record makes no difference ({ours}`points-both` points).
# :::
#
# Shadow models are in [the first chapter](bayes.ipynb), attacks that are told the other members in [that on the inverse Hessian](iha.ipynb).
#
# To take away: say what the attacker has before you say how well the attack does.
#
# ## Exercises
#
# ````{exercise} A frontier of your own
# :label: compare-exercise-frontier
# You may ask for losses and train no model. Which attacks of {numref}`compare-table` are left? What is the least that you must add to find more than
# guessing?
# ````
# ````{solution} compare-exercise-frontier
# :class: dropdown
# The 0-1 attack and MALT: whoever has the loss of the true label has no other outputs. Add one model that was trained without the record. With it the
# calibrated loss, the soft minimum and RMIA find several times what guessing finds, if the target generalises. If it knows its members by heart, MALT
# alone finds many.
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
# Targets of one bank share all other models as references and all records. The interval adds the variance of drawing targets and of drawing records,
# not that of drawing another bank. With half of the targets the first part doubles.
# ````
#
# ````{exercise} Is the best of many really best?
# :label: compare-exercise-holm
# {numref}`compare-ranking` has a difference for each attack, at 95 % each. How many of them would lie on the wrong side of zero if all attacks were
# alike? Why is the best of a table, chosen on the targets that it is reported on, flattered, and how does the [guide](../book/guide.md) avoid it?
# ````
#
# ````{solution} compare-exercise-holm
# :class: dropdown
# About one in twenty would leave out zero, half of them on either side. The largest of many noisy numbers is larger than its mean, more so with more of them. In the guide an attack is chosen on every
# second target and reported on the others. Those share references and records, so it is not all of the flattery that goes.
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
# ### All attacks, with the same references

# %% tags=["hide-input"]
results.show_table(
    exhibits.main_table(frame, compared), name="compare-table",
    caption="Share of the members found at 1 % false alarms, in percent, by every attack with {param}`compared` references or with none; guessing "
            "finds 1 %. *Trained*: references were trained *without* the record, or half of them with it, *both*. References and queries are those of "
            "one record; RMIA asks the target about 2,000 further images once, by heart about judged ones. *By heart*: networks that know 2,000 images of CIFAR-100 by heart. 95 "
            "% intervals over {param}`targets` targets and {param}`records` images. Attacks whose scores are few numbers, such as *0-1*, have no "
            "threshold for so few alarms. LiRA's released code scores offline by the density of its Gaussian, so that too low a confidence counts for "
            "membership, too.")

# %% tags=["hide-input"]
figures.show(
    exhibits.ranking_figure(frame, compared), name="compare-ranking",
    caption="The ranking: how many points of TPR at 1 % FPR each attack is away from RMIA on the same images, with {param}`compared` references or "
            "with none. Paired differences with 95 % intervals; one that covers zero leaves the order open. They are not corrected for their number.",
    alt="A row for each attack and a panel for each set: a mark at the difference from RMIA with a bar, to the left of zero where "
        "RMIA finds more.")

# %% tags=["hide-input"]
results.show_table(
    exhibits.main_table(frame, compared, "auc"), name="compare-auc",
    caption="{numref}`compare-table` with AUC in the place of the rate, in percent; guessing has 50.")
results.show_table(
    exhibits.regimes_table(cases), name="compare-regimes",
    caption="The networks that are attacked: each was trained on half of the training records. *Others* are test images, by heart the other half.")
results.show_table(
    exhibits.access_table(), name="compare-access",
    caption="What each attack needs, as declared by the function that computes it. Thresholds that are named there are for whoever must say yes or "
            "no; rankings do without.")

# %% [markdown]
# ### Public records instead of a pool
#
# An attacker may own records like the target's, and none of those that are judged. They can train a model on them, or a [regression](quantile.ipynb)
# of the target's scores. This comparison gives both the same records: the half of the pool that did not train the target.

# %%
regression = study.find(f"quantile/{banks[0]}-small", label=True, public=None)
further = (study.find("quantile/public-references", count=1)
           if banks[0] == "cifar10" else None)
public = study.public_records(banks[0], targets, regression, further,
                              draws=draws)

# %% tags=["hide-input"]
results.show_table(
    exhibits.by_references_table(public, "public"), name="compare-public",
    caption="Attackers with 25,000 public images, none of which is judged, in percent with 95 % intervals over targets and records. Judged are 10,000 "
            "members of each target and 10,000 test images. References are trained by the target's recipe; with none, the public records train "
            "nothing or a regression. RMIA has its authors' constant.")
results.name({"public": number(public, "calibrated loss", references=1), "public-two": (
    "not measured yet" if further is None else number(public, "calibrated loss", references=2)), "guide-regression": (
    "not measured yet" if regression is None else number(public, "quantile regression", references=0))}, ".1%")

# %% [markdown]
# One model on public records lets the calibrated loss find {ours}`public` of the members, two {ours}`public-two`; a regression on the same records: {ours}`guide-regression`.
#
# ### Without a strong attack
#
# What would LiRA find, if nobody can train references? {cite:t}`dodd2025tail` look at the other end of the losses: few members are left among the
# highest losses when those at risk have been learned. Their estimate is the share of the others that one threshold on the loss tells, at as few
# mistakes.

# %%
tails = pd.concat([study.tail(case, targets, draws) for case in cases])

# %% tags=["hide-input"]
points(pd.concat([tails, frame]), tail="K25")
results.show_table(
    exhibits.tail_table(pd.concat([tails, frame])), name="compare-tail",
    caption="What LiRA finds with the most references; the estimate of it by the tail of the loss, which needs none; and what RMIA finds with one "
            "reference. In percent, at 1 % and 0.1 % false alarms. *Loss tail*: non-members whose loss is above that of all but 1 %, or 0.1 %, of the members.")

# %% [markdown]
# :::{finding}
# :claims: K25 reproduced
# The tail of the loss is nearer to what LiRA finds than RMIA with one reference is, by {ours}`points-tail` points on average over the banks. Where
# networks know their members by heart it says too much. So it is a first line of an audit without references, and no verdict.
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
# (compare-claims)=
# ### Every claim, with its verdict

# %%
identity = pd.concat([study.ranks_as_rmia(case, compared) for case in cases])
everything = pd.concat([tails, frame, of_recipes, shared, public, identity],
                       ignore_index=True)
verdicts = rules.judge_all("compare", everything, {})

# %% tags=["hide-input"]
claims.show("compare", verdicts)

# %% [markdown]
# ### Where this comparison stops short
#
# Networks are small but for ResNet-9. Intervals cover targets and records, not the choice of the bank. Of {param}`records` images half are members of
# a target, so a rate of one in a thousand rests on two images at most: for such, on all images, see [the banks](banks.ipynb). Quantile regression is not in the main table, since it is fitted to records that are judged there.
#
# On Colab, add a cell before the first one, and in it: `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`
