# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mia:
#     chapter: calibration
#     minutes: 20
#     functions: [threshold, rates]
# ---

# %% [markdown]
# # A threshold that you could defend
#
# "At most one stranger in twenty is accused." Said before anybody is judged, that is a promise. Said afterwards, with a threshold chosen on
# the very records that it is reported for, it is a decoration. Here you make the promise, and then count how well it was kept.

# %% tags=["parameters"]
promise = 0.05  # the false positive rate that is promised
seed = 0  # of who is set aside

# %%
import checks
import numpy as np

# %% [markdown]
# ## The threshold
#
# Accused is whose score is *above* it.

# %%
def threshold(scores, fpr):
    """A threshold that the share `fpr` of these scores lies above.

    scores: [N], of records known to be strangers. fpr: between 0 and 1. Returns a number.
    """
    ### BEGIN SOLUTION
    return np.quantile(scores, 1 - fpr)
    ### END SOLUTION


# %% [markdown]
# ## The rates
#
# Some records are set aside. You may use them to choose the threshold, with all that you know about them. The others are judged.

# %%
def rates(scores, members, aside, fpr):
    """What a threshold for `fpr`, chosen on records set aside, does to the others.

    scores: [N]. members: bool [N]. aside: bool [N], True for records that are set aside. Returns (TPR, FPR), as counted on
    the records that are judged.
    """
    ### BEGIN SOLUTION
    bar = threshold(scores[aside & ~members], fpr)
    accused = scores > bar
    return accused[~aside & members].mean(), accused[~aside & ~members].mean()
    ### END SOLUTION


# %%
checks.run("threshold", globals())

# %% [markdown]
# ## On real signals
#
# Half of the records are set aside. The score is calibrated: how much likelier the target finds the true class than models do that were not
# trained on the record. Run it with other seeds: how far from the promise does the FPR go?

# %% tags=["signals"]
bank = np.load("signals.npz")
members, scores = bank["members"][0], checks.less_the_others(bank["margin"], bank["members"])
aside = np.random.default_rng(seed).random(len(members)) < 0.5
tpr, fpr = rates(scores, members, aside, promise)
print(f"promised {promise:.1%}, counted {fpr:.1%}; members found {tpr:.1%}")

# %% tags=["right"]
# sorted, and the place counted; loops
def threshold(scores, fpr):
    ordered = sorted(scores, reverse=True)
    return ordered[int(fpr * len(ordered))]

def rates(scores, members, aside, fpr):
    bar = threshold([s for s, m, a in zip(scores, members, aside) if a and not m], fpr)
    hit = strangers = found = inside = 0
    for s, m, a in zip(scores, members, aside):
        if not a and m:
            inside += 1
            found += s > bar
        elif not a:
            strangers += 1
            hit += s > bar
    return found / inside, hit / strangers

# %% tags=["right"]
# a conformal threshold, a little on the safe side; float32
def threshold(scores, fpr):
    place = int(np.ceil((1 - fpr) * (len(scores) + 1))) - 1
    return np.sort(scores.astype(np.float32))[min(place, len(scores) - 1)]

def rates(scores, members, aside, fpr):
    bar = threshold(scores[np.logical_and(aside, ~members)], fpr)
    judged = scores[~aside].astype(np.float32) > bar
    return np.array([np.mean(judged[members[~aside]]), np.mean(judged[~members[~aside]])], np.float32)

# %% tags=["wrong"]
# wrong side: nearly all are accused
def threshold(scores, fpr):
    return np.quantile(scores, fpr)

# %% tags=["wrong"]
# the test set used for the threshold
def rates(scores, members, aside, fpr):
    bar = threshold(scores[~aside & ~members], fpr)
    return (scores > bar)[~aside & members].mean(), (scores > bar)[~aside & ~members].mean()

# %% tags=["wrong"]
# members among those who make the threshold
def rates(scores, members, aside, fpr):
    bar = threshold(scores[aside], fpr)
    return (scores > bar)[~aside & members].mean(), (scores > bar)[~aside & ~members].mean()

# %% tags=["wrong"]
# AUC for TPR
def rates(scores, members, aside, fpr):
    bar = threshold(scores[aside & ~members], fpr)
    return checks.auc(scores[~aside], members[~aside]), (scores > bar)[~aside & ~members].mean()

# %% tags=["wrong"]
# deviation: a bell curve's threshold for scores that are none
def threshold(scores, fpr):
    from statistics import NormalDist
    return scores.mean() + NormalDist().inv_cdf(1 - fpr) * scores.var()

# %% tags=["wrong"]
# precision for TPR
def rates(scores, members, aside, fpr):
    accused = (scores > threshold(scores[aside & ~members], fpr)) & ~aside
    return (accused & members).sum() / accused.sum(), accused[~aside & ~members].mean()

# %% tags=["wrong"]
# the promise in the place of the count
def rates(scores, members, aside, fpr):
    return (scores > threshold(scores[aside & ~members], fpr))[~aside & members].mean(), fpr
