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
# # Language models
#
# **A small language model that has read its training verses {ours}`last-passes` times gives away {ours}`loss-tpr:value` of them to a threshold on the loss, if one in a
# hundred other verses may be taken for one by mistake, and {ours}`plus-tpr:value` to Min-K%++, neither of which needs a second model; guessing finds 1 %. Subtract the loss
# under one other model that did not read the verse, and it is {ours}`one-tpr:value`; under one that may have read it, {ours}`any-tpr:value`. After a single reading the loss knows next to nothing.**

# %% tags=["parameters", "hide-input"]
models: int = 32  # language models of the bank [16..64; even]
targets: int = 16  # of them that are attacked, one of each pair [8..32]
references: int = 30  # other models that an attack may use [2..62; even]
counts: list[int] = [2, 4, 8, 14, 30]  # references against which attacks are drawn [2..62; even; ascending; not empty]
architecture: str = "gpt:128,4,4"  # of the language models: width, layers, heads [architecture]
verses: int = 6000  # that are judged; half of them train each model [200..8000; even]
repeated: int = 100  # of these so many lie in a training set twice, and as many four times [10..1000; even]
passes: list[int] = [1, 2, 4, 10]  # over the training set, after which models are asked [1..100; ascending; not empty]
further_models: int = 16  # of the bank that are asked more, and fine-tuned ones; half of them are attacked [16..64; even]
tuned_verses: int = 2000  # on halves of which a base model is fine-tuned [40..8000; even]
base_verses: int = 23093  # of the other translation, which the base model read [100..23093]
image_banks: list[str] = ["bank/cifar10-small", "bank/cifar100-small", "bank/fashion-mlp"]  # networks on images, for the questions about many records [bank/cifar10-small | bank/cifar100-small | bank/fashion-mlp; not empty; distinct]
seed: int = 0  # of halves and training [0..1000000]
draws: int = 20  # resamples of records behind each interval [10..10000]

# %% tags=["hide-input"]
import numpy as np
import pandas as pd

from mia_book.chapters.text import exhibits, measure, study
from mia_book.evidence import claims, explore, figures, results, rules
from mia_lib import data, drawing, metrics, published
from mia_lib.game import Game

drawing.set_style()

# %%
recipe = {"architecture": architecture, "passes": passes, "epochs": passes[-1],
          "verses": verses, "twice": repeated, "fourfold": repeated, "seed": seed}
bank = measure.verses(models, **recipe)
about = study.describe_verses(verses, {2: repeated, 4: repeated})
frame = study.attack(bank, about, targets, references, draws)

# %% tags=["hide-input"]
first, shown, last = passes[0], passes[-2:][0], passes[-1]


def number(attack, metric, passes=last, **where):
    return metrics.estimate(frame, attack, metric, passes=passes, **{"study": "attacks", **where}).interval((0.0, 1.0))


results.name({"last-passes": last, "shown-passes": shown, "first-passes": first, "members": int(bank.members[0].sum())})
words = {"loss": "Loss", "min": "Min-K%", "plus": "Min-K%++", "zlib": "zlib", "one": "one other model", "any": "one other model, read or not", "lira": "LiRA", "mast": "MAST (best split)", "mid": "MAST (midpoint)", "base": "BASE"}
results.name({f"{word}-tpr": number(attack, "tpr_at_fpr=0.01") for word, attack in words.items()}
             | {f"{word}-tpr-shown": number(attack, "tpr_at_fpr=0.01", shown) for word, attack in words.items()}, ".1%")
results.name({f"{word}-auc": number(attack, "auc") for word, attack in words.items()}
             | {f"{word}-auc-{when}": number(attack, "auc", each) for word, attack in words.items() for when, each in (("first", first), ("shown", shown))}, ".3f")
figures.show(exhibits.passes_figure(frame), name="text-passes")

# %% [markdown]
# :::{caption} text-passes
# :alt: Two panels of curves against passes on a logarithmic axis. All rise; LiRA and one other model lie far above
#   Min-K%++, Min-K%, the loss and zlib.
#
# AUC, and the share of the members found at 1 % false alarms, against the passes over the training set. LiRA has
# {param}`references` reference models, *one other model* one of them. Means over {param}`targets` models, with 95 %
# intervals over models and verses. Hollow: LiRA's AUC as Hayes et al. {cite}`hayes2025exploring` print it, with 128
# references, for 140 million parameters on 7 million records.
# :::

# %% [markdown]
# Run it again: `mia run text`, or with other settings, `mia run text -p counts 2,14`
# ([how to rerun](../book/rerun.md)).
#
# ## What the attacker has
#
# The [game](../book/game.md) is the same: half of {param}`verses` verses of the King James Version trained the target, and the attacker gives every verse a score. The target is a
# transformer of a million parameters that predicts the next of a verse's tokens, pieces of words. It answers with the log probability of each. The *loss* of a verse is minus their
# mean. Three things are new:
#
# - **Tokens.** A record has many losses, one a token, and the model's whole distribution at each place.
# - **Passes.** Language models read most of their training data once or a few times, and classifiers theirs dozens of times. Ours are asked on the way through
#   one training of {ours}`last-passes` passes; one that ends after the first may differ.
# - **Wording.** The same sentence can be said in other words. The World English Bible has every verse again, in the English of today.
#
# No other verse has the words of one that is judged. The byte-pair encoding was learned on further verses, which no attack judges.
#
# ## The idea: some verses are easy for everybody
#
# No threshold on the loss tells members from others: verses differ more than models do. Yet in most rows the members lie to the left.

# %% tags=["hide-input"]
figures.show(exhibits.idea(bank, about), name="text-idea")

# %% [markdown]
# :::{caption} text-idea
# :alt: Eight rows, one a verse, with a dot for each model along the loss. Rows lie far apart; within a row the models
#   that were trained on the verse lie left of the others.
#
# Loss of eight verses, from easy to hard, after {ours}`last-passes` passes, a dot for each of {param}`models` models:
# under those that were trained on the verse, members, and under the others. Rings: the target.
# :::

# %% [markdown]
# ## One target by hand
#
# The first model of the bank is the target, and the second, its partner, is left out.

# %%
loss = bank.loss[:, -1].astype(float)  # [models, verses], after the last pass
inside = bank.members
usual = np.average(loss[2:], 0, ~inside[2:])  # of those that did not read the verse
by_hand = {"loss": -loss[0], "less the usual": usual - loss[0]}
{name: round(metrics.auc(score, inside[0]), 3) for name, score in by_hand.items()}

# %% [markdown]
# An {term}`AUC` of one half is guessing.
#
# ## The scores, one line each
#
# A verse has $n$ tokens with log probabilities $l_t$; at each place the model's log probabilities have mean $\mu_t$ and standard deviation $\sigma_t$.
#
# | attack | score, higher for members |
# | --- | --- |
# | loss | $\bar l = \frac1n \sum_t l_t$ |
# | zlib {cite}`carlini2021extracting` | $\sum_t l_t$ over the bytes of the compressed text |
# | Min-K% {cite}`shi2024detecting` | mean of the fifth of the $l_t$ that are least |
# | Min-K%++ {cite}`zhang2024min` | the same of $(l_t - \mu_t) / \sigma_t$ |
# | one other model | $\bar l - \bar l'$, with $\bar l'$ of that model of a pair which did not read the verse |
# | MAST (midpoint) | $\bar l$ less the midpoint of its means with the verse and without it |
# | LiRA, BASE, MAST | as [for classifiers](compare.ipynb), with $\bar l$ in the place of log odds |
#
# ## Attacks without references

# %% tags=["hide-input"]
results.name(dict(zip(("tokens-vary", "losses-vary"), study.variation(bank, about), strict=True)), ".0%")
results.show_table(exhibits.attacks_table(frame, last), name="text-attacks")
figures.explore(
    explore.two_attacks({exhibits.in_words(each): study.curves(bank, about, place, references)
                         for place, each in enumerate(passes) if each in (first, last)}, ("Min-K%++", "one other model")),
    drawing.roc(*study.curves(bank, about, len(passes) - 1, references)), name="text-explore")

# %% [markdown]
# :::{caption} text-attacks
# Attacks after {ours}`last-passes` passes, in percent, on verses that lie in a training set once: means over
# {param}`targets` models with 95 % intervals over models and verses. The last five have {param}`references` references.
# :::
#
# :::{caption} text-explore
# :alt: True against false positive rate on logarithmic axes, a curve for each attack on one model after the last pass.
# :instructions: Choose two attacks and the number of passes. How many of a thousand verses does each accuse wrongly,
#   and how many rightly?
#
# ROC of attacks on one model, and who is accused.
# :::

# %% [markdown]
# :::{finding}
# :claims: L1 reproduced, L3 reproduced, L4 reproduced, L5 contradicted, L6 contradicted, L7 depends
# **One pass tells next to nothing, ten tell much.** The loss has an AUC of {ours}`loss-auc-first:value` after one pass and of {ours}`loss-auc:value` after {ours}`last-passes`, more with each.
#
# **Min-K% is ahead of the loss, and Min-K%++ hangs on its share.** Tokens that a model finds unlikely tell more than all of them, after any number of passes. To standardise the least fifth of them, which its
# authors have ahead on models of billions of parameters, costs about a point at most here; over *all* tokens it is ahead after {ours}`last-passes` passes ({numref}`text-variants`). The loss over
# the bytes of zlib is behind the loss: tokens a byte differ between verses by {ours}`tokens-vary`, the loss by {ours}`losses-vary`, and membership does not change the first.
#
# **Ranking is not finding.** After {ours}`shown-passes` passes Min-K% has an AUC of {ours}`min-auc-shown:value`, and finds {ours}`min-tpr-shown:value` of the members at 1 % false alarms.
# :::
#
# ## What references buy

# %%
by_count = study.by_references(bank, about, targets, counts, draws)
frame = pd.concat([frame, by_count])

# %% tags=["hide-input"]
few, most = counts[0], counts[-1]
results.name({"fewest": few} | {f"{word}-few": number(words[word], "auc", first, study="references", references=few) for word in ("lira", "base", "mid")}, ".3f")
results.name({"base-few-tpr": number("BASE", "tpr_at_fpr=0.01", study="references", references=few)}, ".1%")
figures.show(exhibits.references_figure(frame), name="text-references")

# %% [markdown]
# :::{caption} text-references
# :alt: Two panels of four curves against the number of references on a logarithmic axis, with bars.
#
# AUC against the number of reference models, half of which were trained on the verse, after {ours}`first-passes` pass
# and after {ours}`last-passes`. BASE ranks as RMIA does, and MAST (midpoint) as BASE. Means over {param}`targets`
# targets; 95 % intervals over targets and verses.
# :::

# %% [markdown]
# :::{finding}
# :claims: L2 reproduced, L8 reproduced, L9 reproduced, L10 reproduced, L11 contradicted, L12 depends, L31 reproduced, L33 depends
# **One model that did not read the verse is worth more than any formula.** After {ours}`shown-passes` passes the difference from its loss has an AUC of {ours}`one-auc-shown:value`, Min-K%
# {ours}`min-auc-shown:value`, and it finds {ours}`one-tpr-shown:value` of the members in place of {ours}`min-tpr-shown:value`. Even after one pass it is ahead. It takes a pair of models, one for each half of the
# verses. One alone, whatever it read, is ahead after up to four passes, and behind the loss after {ours}`last-passes`, with {ours}`any-auc:value` against {ours}`loss-auc:value`. BASE finds {ours}`base-few-tpr:value` with the pair.
#
# **A midpoint needs fewer references than two Gaussians.** With {ours}`fewest` references after one pass LiRA has {ours}`lira-few:value`, BASE {ours}`base-few:value`, the midpoint {ours}`mid-few:value`; it ranks like BASE
# with any number of references, and both lead LiRA with two after any number of passes. Hayes et al. have LiRA ahead of RMIA from 32 on; with our {param}`references` it is behind after up to four passes, and level
# after {ours}`last-passes`, where both find nearly all. MAST (best split) finds more members than LiRA with two references, and fewer with {param}`references` after {ours}`last-passes` passes.
# :::
#
# ## Benchmarks that need no model
#
# Many published benchmarks take members from one source and others from another: articles before and after a model's date. Here members are verses of the
# Old Testament, others verses of the New. *Bag of words* is a logistic regression on the words of each verse. It never asks the model.

# %%
frame = pd.concat([frame, study.blind(bank, about, targets, references, draws)])

# %% tags=["hide-input"]
results.name({name: number(attack, "auc", first, study="blind", split=split) for name, attack, split in (
    ("words", "bag of words", "by testament"), ("words-random", "bag of words", "random"), ("loss-random", "Loss", "random"), ("loss-testament", "Loss", "by testament"))}, ".2f")
results.show_table(
    exhibits.by_columns(frame, "blind", ["split", "attack"], "passes"), name="text-blind")

# %% [markdown]
# :::{caption} text-blind
# AUC in percent by the passes over the training set, on two benchmarks of the same models: random verses, and members
# from the Old Testament against others from the New. Means over {param}`targets` models, 95 % intervals.
# :::

# %% [markdown]
# :::{finding}
# :claims: L13 reproduced, L14 depends, L26 reproduced
# **The words give the benchmark away.** Between random verses a bag of words has an AUC of {ours}`words-random:value`, within a point of guessing. Between testaments it has {ours}`words:value`, more than every attack after one pass and after two.
#
# **An attack that knows nothing seems to know something.** After one pass the loss has {ours}`loss-random:value` between random verses. Between testaments, of the same models, it has {ours}`loss-testament:value`. That is no
# membership: verses of the Old Testament are easier. After {ours}`last-passes` passes the models give away more than the words do.
# :::
#
# ## Is a paraphrase a member?

# %%
by_wording = study.paraphrased(bank, about, targets, references, draws)
frame = pd.concat([frame, by_wording])

# %% tags=["hide-input"]
results.name({f"other-{name}": number(attack, "auc", study="paraphrase", asked="the other translation", wording=wording) for name, attack, wording in (
    ("lira", "LiRA", "all"), ("offline", "LiRA, offline", "all"), ("one", "one other model", "all"), ("loss", "Loss", "all"),
    ("half", "LiRA", "half or more"), ("none", "LiRA", "no wording"))}, ".2f")
results.show_table(
    exhibits.by_columns(frame, "paraphrase", ["asked", "attack"], "wording"), name="text-paraphrase")

# %% [markdown]
# :::{caption} text-paraphrase
# AUC in percent after {ours}`last-passes` passes when models are asked about the verse that they read or did not read,
# and about its other translation, which none of them read; by the share of the verse's sequences of five words that the
# other translation keeps. Of LiRA's {param}`references` references half read the verse; *LiRA, offline* has the other
# half. Means over {param}`targets` models, 95 % intervals.
# :::

# %% [markdown]
# :::{finding}
# :claims: L15 reproduced, L16 reproduced, L17 reproduced, L30 reproduced
# **Yes, in part.** No model ever read the other translation, and yet after {ours}`last-passes` passes its loss tells whether the verse was trained on. LiRA has an AUC of {ours}`other-lira:value`, and more the more of
# the wording is kept: {ours}`other-half:value` where half is, and {ours}`other-none:value` where no five words in a row are. Whoever takes exact copies out of the non-members has not taken out what the model knows.
# Half of LiRA's references read the verse, which takes more than another edition. Those that did not give {ours}`other-offline:value`, one of them
# {ours}`other-one:value`, none {ours}`other-loss:value`.
# :::
#
# ## Who is exposed?

# %%
frame = pd.concat([frame, study.exposed(bank, about, targets, references, draws)])

# %% tags=["hide-input"]
results.name({name: number("LiRA", "auc", each, study="exposed", of=of, part=part) for name, each, of, part in (
    ("short", shown, "length", "first"), ("long", shown, "length", "last"), ("four", shown, "copies", "4"),
    ("four-first", first, "copies", "4"), ("once-first", first, "copies", "1"))}, ".2f")
figures.show(exhibits.exposed_figure(frame, shown), name="text-exposed")

# %% [markdown]
# :::{caption} text-exposed
# :alt: Three panels with two curves each, LiRA above the loss.
#
# AUC after {ours}`shown-passes` passes by the length of a verse, by how rare its words are, and by how often it lies in
# the training set, if at all. Means over {param}`targets` models, 95 % intervals.
# :::

# %% [markdown]
# :::{finding}
# :claims: L18 contradicted, L19 reproduced, L20 reproduced
# **The short, the rare and the repeated.** Hayes et al. draw longer records as more exposed. Here the shortest fifth is, with LiRA's AUC of {ours}`short:value` against {ours}`long:value` of the
# longest. Verses of rare words are more exposed than those of common ones. What repeats is exposed most: LiRA
# has {ours}`four:value` on verses that lie in the training set four times, and even after one pass {ours}`four-first:value`, where on others it has {ours}`once-first:value`.
# :::
#
# ## Many records at once
#
# A court asks of a book, and a publisher of a collection. How many random records tell a collection from others four times in five, when one in a hundred others may be
# accused? And *how much* of a collection was used? The share that is called at a threshold is corrected by the true and false positive rates of a model of
# the attacker's own {cite}`tong2025how`.

# %%
books = about["book"].to_numpy()
played = {f"verses, {exhibits.in_words(each)}": (game, books)
          for each, game in study.games(bank, about, targets, references)}
for name in image_banks:
    images = published.load(name)
    title = data.title(images.parameters["dataset"])
    played[title] = Game.of(images, targets, references, 10_000), None
of_collections = [study.collections(game, of_books, data=of)
                  for of, (game, of_books) in played.items()]
frame = pd.concat([frame, *of_collections])

# %% tags=["hide-input"]
of_collections = exhibits.collections_table(frame)
needed, accused = of_collections["records that decide"], of_collections["one book accused, %"].map("{}".format).str.replace(" ", " % ", n=1)
of_shown, of_first = (f"verses, {exhibits.in_words(each)}" for each in (shown, first))
results.name({"needed-shown": needed[of_shown, "Loss"], "needed-one": needed[of_shown, "one other model"], "needed-first": needed[of_first, "Loss"],
              "book-loss": accused[of_shown, "Loss"], "book-one": accused[of_shown, "one other model"]})
results.show_table(of_collections, name="text-collections")

# %% [markdown]
# :::{caption} text-collections
# Records, drawn at random, that decide whether their collection was trained on, by the mean of their scores (see the
# formula below), in brackets the least and the most of a target; mean errors of the share that was used, estimated and
# by counting calls, on collections of 500 records of which none, a fifth, two fifths and so on were used; and false
# alarms on as many other verses of one book, by a threshold that 1 % of random collections reach, over the books that
# have as many (a dash where none has). Means over {param}`targets` models, 95 % intervals over models.
# :::

# %% [markdown]
# :::{finding}
# :claims: L21 depends, L22 depends, L23 depends, L32 reproduced
# **Many weak signs make a strong one.** After {ours}`shown-passes` passes {ours}`needed-shown` random verses decide by the loss (in brackets, by target), with one other model {ours}`needed-one`. After one pass it
# takes {ours}`needed-first` by the loss. On images it takes some dozens.
#
# **A book is no random collection.** Its verses are easy or hard together. A threshold that 1 % of random collections reach after {ours}`shown-passes` passes accuses, by the loss, {ours}`book-loss` of those of one book
# that the target did not read; with one other model, {ours}`book-one`, but after one pass that fails, too ({numref}`text-collections`). A court needs references, and other books like it.
#
# **How much was used is harder to say.** One model of one's own gives the share to within .1 after {ours}`last-passes` passes, and on two of three sets of images; after {ours}`shown-passes` passes this is open. After one it errs
# more than who counts calls, and more than who says *half of it* of every collection: what the corrected share is divided by, the difference of the two rates, is nearly zero.
# :::
#
# ## Fine-tuning
#
# Whoever fine-tunes a model has a reference for free: the base. Ours read {param}`base_verses` other verses in the other translation, and was then trained further on halves of
# {param}`tuned_verses`.

# %%
of_tuned = measure.tuned(further_models, tuned_verses=tuned_verses,
                         base_verses=base_verses, **recipe)
frame = pd.concat([frame, study.tuned(of_tuned, draws)])

# %% tags=["hide-input"]
of_passes = sorted(frame.loc[frame["study"] == "tuned", "passes"].unique())
results.name({"tuned-last": int(of_passes[-1]), "further-targets": further_models // 2, "further-references": further_models - 2})
results.name({name: number(attack, "auc", of_passes[0], study="tuned") for name, attack in (
    ("tuned-base", "base model"), ("tuned-loss", "Loss"), ("tuned-one", "one other model"), ("tuned-lira", "LiRA"))}, ".2f")
results.show_table(exhibits.by_columns(frame, "tuned", "attack", "passes"), name="text-tuned")

# %% [markdown]
# :::{caption} text-tuned
# AUC in percent on fine-tuned models, by the passes over their training set. Means over {ours}`further-targets` models,
# 95 % intervals; LiRA has {ours}`further-references` references.
# :::

# %% [markdown]
# :::{finding}
# :claims: L24 reproduced, L25 reproduced
# **The base is a poor reference, another fine-tuned model a good one.** Less the loss of the base, the loss has an AUC of {ours}`tuned-base:value` after one pass in place of {ours}`tuned-loss:value`, and after
# {ours}`tuned-last` no higher one. Another fine-tuned model, which did not read the verse, takes it to {ours}`tuned-one:value` after one pass, and LiRA to {ours}`tuned-lira:value`.
# :::
#
# ## Exercises
#
# ```{exercise}
# :label: text-exercise-sum
# The *sum* of a verse's log probabilities in the place of the mean gives another attack. What does it rank by? Does LiRA change, too?
# ```
#
# ````{solution} text-exercise-sum
# :class: dropdown
# By length: a longer verse has a larger sum, member or not. LiRA's ratio does not change if each verse has a spread of its own: its length is a factor on all losses of the verse,
# and a likelihood ratio does not depend on units. With one spread for all verses it does change.
# ````
#
# ## In more depth
#
# ### Printed elsewhere

# %% tags=["hide-input"]
results.show_table(exhibits.reported_table(frame), name="text-reported")

# %% [markdown]
# :::{caption} text-reported
# AUCs in percent as they are printed elsewhere {cite}`zhang2024min,hayes2025exploring,duan2024membership`, and ours
# after as many passes, where there are some. Their models are hundreds to ten thousand times larger, and so are their
# training sets.
# :::

# %% [markdown]
# ### The share of tokens, and lower case
#
# Min-K% and Min-K%++ look at a fifth of the tokens, as their code does; the share was not chosen on these verses. *Lower case* asks the model a second time, about the verse without capitals
# {cite}`carlini2021extracting`.

# %%
further = measure.variants(further_models, **recipe)
frame = pd.concat([frame, study.variants(bank, further, draws)])

# %% tags=["hide-input"]
results.show_table(exhibits.by_columns(frame, "variants", "attack", "share"), name="text-variants")

# %% [markdown]
# :::{caption} text-variants
# AUC in percent after {ours}`last-passes` passes, on all verses, by the share of a verse's tokens that an attack looks
# at. Means over {ours}`further-targets` models, 95 % intervals.
# :::

# %% [markdown]
# :::{finding}
# :claims: L27 contradicted, L28 reproduced
# The less of the tokens Min-K%++ looks at, the further it is behind Min-K%; over all of them it is ahead of Min-K% by any share. Who takes the best share on the records that are judged, as its paper does, finds the
# paper's order; who keeps to its code's fifth finds the other. Lower case is far behind the loss: our models saw few words in capitals, and the ratio looks at these.
# :::
#
# ### What loss to expect of a verse
#
# {cite:t}`bertran2023scalable` learn from records that were not trained on what a model says of such a record, and score how far it lies beyond, in [standard deviations](quantile.ipynb). Verses differ in
# length and in how rare their words are. So let the attacker know of a random half of the verses which were not trained on, fit mean $\mu$ and spread $\sigma$ of their losses by a verse's length and
# rarity (how rare its tokens are in verses that are not judged), and score $(\mu - \ell) / \sigma$. All attacks are judged on the other half.

# %%
frame = pd.concat([frame, study.expected(bank, about, targets, draws, seed)])

# %% tags=["hide-input"]
results.name({name: number(attack, "auc", first, study="expected") for name, attack in (
    ("regression", "quantile regression"), ("regression-length", "quantile regression on length alone"), ("regression-min", "Min-K%"), ("regression-one", "one other model"))}, ".3f")
results.name({name: number(attack, "tpr_at_fpr=0.01", study="expected") for name, attack in (
    ("regression-tpr", "quantile regression"), ("regression-plus-tpr", "Min-K%++"))}, ".1%")
ahead, behind = (metrics.estimate(frame, each, "tpr_at_fpr=0.01", study="expected", passes=last) for each in ("quantile regression", "Min-K%++"))
results.name({"regression-lead": 100 * (ahead - behind).interval()}, ".1f")
results.show_table(exhibits.by_columns(frame, "expected", "attack", "passes"), name="text-expected")

# %% [markdown]
# :::{caption} text-expected
# AUC in percent by the passes over the training set, on half of the verses; quantile regression has learned from those
# of the other half that were not trained on. Means over {param}`targets` models, 95 % intervals.
# :::

# %% [markdown]
# :::{finding}
# :claims: L29 reproduced
# **Quantile regression carries over, and has the highest AUC of what needs no other model.** It knows more than the others here: verses that were not trained on. After one pass it has an AUC of {ours}`regression:value`, Min-K% {ours}`regression-min:value`, and the difference from one other
# model's loss, which must be trained first, {ours}`regression-one:value`. Rarity does it: with the length alone it is {ours}`regression-length:value`. This was stated when half of the targets had been attacked. On the others alone the lead is smaller, and after one
# to four passes too small to tell from none. At 1 % false alarms it finds {ours}`regression-tpr:value` of the members after {ours}`last-passes` passes, Min-K%++ {ours}`regression-plus-tpr:value`; the
# difference is {ours}`regression-lead` points.
# :::
#
# ### How many records decide
#
# Let scores of members have mean $\mu_1$ and standard deviation $\sigma_1$, those of others $\mu_0$ and $\sigma_0$. The mean of $n$ scores is nearly normal, and exceeds with
# probability .8 what 1 % of collections of others reach if
#
# $$
# n \ge \Big(\frac{z_{.99}\, \sigma_0 + z_{.8}\, \sigma_1}{\mu_1 - \mu_0}\Big)^2.
# $$ (text-needed)
#
# It takes records of the collection for independent, which verses of one book are not, and others that it can be compared with, of the same kind, which is what a
# [benchmark that needs no model](#text-blind) lacks.
#
# ### Every claim, with its verdict

# %%
claims.show("text", rules.judge_all("text", frame, {}))

# %% [markdown]
# ### What is different from the models that people use
#
# | | here | elsewhere |
# | --- | --- | --- |
# | parameters | a million | millions to hundreds of billions |
# | training set | {ours}`members` verses of one book | millions of records of many kinds |
# | passes | up to {ours}`last-passes` | mostly one; three or four when fine-tuning |
# | other verses | of the same book, drawn at random | of the same source in the best benchmarks |
#
# On Colab, add a cell before the first one, and in it: `!git init -q && git pull -q --depth 1 https://github.com/membership-inference-book/membership-inference-book && pip install -q -e ".[train,tabular,dp]" "altair<6"`
