# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mia:
#     chapter: calibration
#     minutes: 15
#     functions: [calibrated]
# ---

# %% [markdown]
# # Hard for everyone?
#
# A high loss may mean a stranger, or a blurred picture that no model gets right. Ask other models, that have not seen it either: what they
# all say is the *difficulty* of the record, and it is none of the target's business. Take it off.

# %% tags=["parameters"]
target = 0  # the model that is attacked, an even number below 32

# %%
import checks
import numpy as np

# %% [markdown]
# ## From a bank of models
#
# You get a table of scores, a row a model, and who was trained on what. Models come in pairs (0 and 1, 2 and 3, ...); of a pair each
# was trained on exactly what the other was not. One of the models is the target, and its row of `members` is what you want to find out:
# a fair attack gives the same answer whatever stands there. Who may be a reference?

# %%
def calibrated(score, members, target):
    """Difficulty-calibrated score of each record, higher = more likely a member.

    score: [M, N], of each record under each model, higher = more likely a member. members: bool [M, N]. target: number of
    the model that is attacked. Returns [N]: the target's score less the mean over references that did not see the record.
    """
    ### BEGIN SOLUTION
    references = [m for m in range(len(score)) if m // 2 != target // 2]
    outside = ~members[references]
    difficulty = (score[references] * outside).sum(0) / outside.sum(0)
    return score[target] - difficulty
    ### END SOLUTION


# %%
checks.run("calibrated", globals())

# %% [markdown]
# ## On real signals
#
# How many references does it take? Two are one pair, and of a pair only one model has not seen the record. Before you run this: what do
# you expect of two, and of sixteen? The score is the log odds of the true class.

# %% tags=["signals"]
bank = np.load("signals.npz")
score, members = bank["margin"].astype(float), bank["members"]
others = [m for m in range(len(score)) if m // 2 != target // 2]
checks.tell("the score alone", score[target], members[target])
for count in (2, 4, 8, 16):
    some = [target, target ^ 1, *others[:count]]  # a smaller bank, with the target in front
    checks.tell(f"calibrated by {count} references", calibrated(score[some], members[some], 0), members[target])

# %% [markdown]
# One pair already finds several times as many members at the same false positive rate. Each further pair adds less than the one before: the
# mean over references becomes more exact, but it remains a mean, and how much models differ about the record is not asked. *LiRA* asks that.

# %% tags=["right"]
# two loops
def calibrated(score, members, target):
    found = np.empty(score.shape[1], np.float32)
    for i in range(score.shape[1]):
        hard = [score[m, i] for m in range(len(score)) if m not in (target, target ^ 1) and not members[m, i]]
        found[i] = score[target, i] - sum(hard) / len(hard)
    return found

# %% tags=["right"]
# NaN for who may not speak
def calibrated(score, members, target):
    speaks = ~members.astype(bool)
    pair = target + 1 if target % 2 == 0 else target - 1
    speaks[[target, pair]] = False
    return score[target] - np.nanmean(np.where(speaks, score, np.nan), axis=0)

# %% tags=["wrong"]
# wrong sign
def calibrated(score, members, target):
    rest = np.arange(len(score)) // 2 != target // 2
    out = ~members[rest]
    return (score[rest] * out).sum(0) / out.sum(0) - score[target]

# %% tags=["wrong"]
# the target among its references
def calibrated(score, members, target):
    out = ~members
    return score[target] - (score * out).sum(0) / out.sum(0)

# %% tags=["wrong"]
# the other model of the pair among the references
def calibrated(score, members, target):
    rest = np.arange(len(score)) != target
    out = ~members[rest]
    return score[target] - (score[rest] * out).sum(0) / out.sum(0)

# %% tags=["wrong"]
# references that were trained on the record
def calibrated(score, members, target):
    rest = np.arange(len(score)) // 2 != target // 2
    return score[target] - score[rest].mean(0)

# %% tags=["wrong"]
# deviation: a difference in units of the references' spread
def calibrated(score, members, target):
    rest = np.arange(len(score)) // 2 != target // 2
    out = np.where(members[rest], np.nan, score[rest])
    return (score[target] - np.nanmean(out, 0)) / np.nanstd(out, 0)

# %% tags=["wrong"]
# the difficulty added
def calibrated(score, members, target):
    rest = np.arange(len(score)) // 2 != target // 2
    out = ~members[rest]
    return score[target] + (score[rest] * out).sum(0) / out.sum(0)
