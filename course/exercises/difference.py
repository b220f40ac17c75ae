# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mia:
#     chapter: compare
#     minutes: 25
#     functions: [auc, difference]
# ---

# %% [markdown]
# # Is it really better?
#
# Attack A has an AUC of .71, attack B of .70. Is that a result or a draw of the records? Both are judged on the *same* records, and that helps:
# what is hard for one is mostly hard for the other, and cancels in the difference. Draw the records again, with replacement, many times.

# %% tags=["parameters"]
draws = 500

# %%
import checks
import numpy as np

# %% [markdown]
# ## The area
#
# Of all pairs of a member and a stranger, the share in which the member has the higher score. Ties count half.

# %%
def auc(scores, members):
    """Area under the ROC curve. scores: [N]. members: bool [N]. Returns a number."""
    ### BEGIN SOLUTION
    inside, outside = scores[members][:, None], scores[~members][None]
    return (inside > outside).mean() + 0.5 * (inside == outside).mean()
    ### END SOLUTION


# %% [markdown]
# ## The interval

# %%
def difference(a, b, members, draws, rng):
    """Interval of 95 % for AUC(a) - AUC(b) by drawing records again.

    a, b: [N], scores of two attacks for the same records. members: bool [N]. draws: how often. rng: a NumPy generator to draw from.
    Returns (low, high).
    """
    ### BEGIN SOLUTION
    found = []
    for _ in range(draws):
        drawn = rng.integers(len(a), size=len(a))
        found.append(auc(a[drawn], members[drawn]) - auc(b[drawn], members[drawn]))
    return np.quantile(found, [0.025, 0.975])
    ### END SOLUTION


# %%
checks.run("difference", globals())

# %% [markdown]
# ## On real signals
#
# Log odds calibrated by two references, by sixteen, by thirty. Before you run it: which of the two intervals will contain zero?

# %% tags=["signals"]
bank = np.load("signals.npz")
score, members = bank["margin"].astype(float), bank["members"]
most = checks.less_the_others(score, members)
for count in (2, 16):
    few = checks.less_the_others(score, members, count=count)
    low, high = difference(most, few, members[0], draws, np.random.default_rng(0))
    print(f"AUC {auc(few, members[0]):.3f} with {count}, {auc(most, members[0]):.3f} with 30: the difference is from "
          f"{low:.3f} to {high:.3f}")

# %% tags=["right"]
# by ranks; members and strangers drawn apart
def auc(scores, members):
    outside = np.sort(scores[~members])
    both = np.searchsorted(outside, scores[members], "left") + np.searchsorted(outside, scores[members], "right")
    return both.sum() / 2 / members.sum() / (~members).sum()

def difference(a, b, members, draws, rng):
    inside, outside = np.flatnonzero(members), np.flatnonzero(~members)
    found = []
    for _ in range(draws):
        drawn = np.concatenate([rng.choice(inside, len(inside)), rng.choice(outside, len(outside))])
        found.append(auc(a[drawn], members[drawn]) - auc(b[drawn], members[drawn]))
    return np.percentile(found, 2.5), np.percentile(found, 97.5)

# %% tags=["right"]
# a normal interval of the drawn deviation; float32
def difference(a, b, members, draws, rng):
    def gap(one, other, who):
        return auc(one[who].astype(np.float32), members[who]) - auc(other[who].astype(np.float32), members[who])

    everybody = np.arange(len(a))
    spread = np.std([gap(a, b, rng.choice(everybody, len(a))) for _ in range(draws)])
    middle = gap(a, b, everybody)
    return middle - 1.96 * spread, middle + 1.96 * spread

# %% tags=["wrong"]
# wrong sign: strangers above members
def auc(scores, members):
    return (scores[members][:, None] < scores[~members]).mean() + 0.5 * (scores[members][:, None] == scores[~members]).mean()

# %% tags=["wrong"]
# ties for nobody
def auc(scores, members):
    return (scores[members][:, None] > scores[~members]).mean()

# %% tags=["wrong"]
# TPR for AUC
def auc(scores, members):
    return np.mean(scores[members] > np.quantile(scores[~members], 0.95))

# %% tags=["wrong"]
# another draw for each attack
def difference(a, b, members, draws, rng):
    found = []
    for _ in range(draws):
        one, other = rng.integers(len(a), size=(2, len(a)))
        found.append(auc(a[one], members[one]) - auc(b[other], members[other]))
    return np.quantile(found, [0.025, 0.975])

# %% tags=["wrong"]
# variance for deviation
def difference(a, b, members, draws, rng):
    found = []
    for _ in range(draws):
        drawn = rng.integers(len(a), size=len(a))
        found.append(auc(a[drawn], members[drawn]) - auc(b[drawn], members[drawn]))
    return np.mean(found) - 1.96 * np.var(found), np.mean(found) + 1.96 * np.var(found)

# %% tags=["wrong"]
# divided by the root of the number of draws
def difference(a, b, members, draws, rng):
    found = []
    for _ in range(draws):
        drawn = rng.integers(len(a), size=len(a))
        found.append(auc(a[drawn], members[drawn]) - auc(b[drawn], members[drawn]))
    error = 1.96 * np.std(found) / np.sqrt(draws)
    return np.mean(found) - error, np.mean(found) + error

# %% tags=["wrong"]
# the worse less the better
def difference(a, b, members, draws, rng):
    found = []
    for _ in range(draws):
        drawn = rng.integers(len(a), size=len(a))
        found.append(auc(b[drawn], members[drawn]) - auc(a[drawn], members[drawn]))
    return np.quantile(found, [0.025, 0.975])
