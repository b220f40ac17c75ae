# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mia:
#     chapter: compare
#     minutes: 30
#     functions: [lira]
# ---

# %% [markdown]
# # LiRA from a table of scores
#
# The best known attack of all fits on one page. For *this record*, how does the score fall under models that were trained on it, and how under
# models that were not? Two bell curves. Under which of them is the target's score more likely?

# %% tags=["parameters"]
target = 0  # the model that is attacked, an even number below 32

# %%
import checks
import numpy as np

# %% [markdown]
# ## The attack
#
# Models come in pairs (0 and 1, 2 and 3, ...); of a pair each was trained on exactly what the other was not. The target's row of `members` is
# what you want to find out: a fair attack gives the same answer whatever stands there. For each record take mean and standard deviation on
# either side, and return the *logarithm* of the ratio of the two normal densities.

# %%
def lira(score, members, target):
    """Log likelihood ratio of each record, higher = more likely a member.

    score: [M, N], under each model. members: bool [M, N]. target: number of the model that is attacked. Returns [N].
    """
    ### BEGIN SOLUTION
    references = [m for m in range(len(score)) if m // 2 != target // 2]
    found = 0.0
    for side, sign in ((members[references], 1), (~members[references], -1)):
        count = side.sum(0)
        mean = (score[references] * side).sum(0) / count
        variance = ((score[references] - mean) ** 2 * side).sum(0) / count
        found = found + sign * (-0.5 * np.log(variance) - (score[target] - mean) ** 2 / (2 * variance))
    return found
    ### END SOLUTION


# %%
checks.run("lira", globals())

# %% [markdown]
# ## On real signals
#
# The margin (log odds of the true class) is nearly normal; the loss is not at all. What does LiRA make of either?

# %% tags=["signals"]
bank = np.load("signals.npz")
members = bank["members"]
checks.tell("the margin alone", bank["margin"][target], members[target])
checks.tell("LiRA on the margin", lira(bank["margin"].astype(float), members, target), members[target])
checks.tell("LiRA on the loss", lira(-bank["loss"].astype(float), members, target), members[target])

# %% tags=["right"]
# record by record, with the unbiased deviation
def lira(score, members, target):
    def log_density(value, sample):
        mean, deviation = np.mean(sample), np.std(sample, ddof=1)
        return -np.log(deviation) - 0.5 * ((value - mean) / deviation) ** 2

    found = []
    for i in range(score.shape[1]):
        rest = [m for m in range(len(score)) if m not in (target, target ^ 1)]
        inside = [score[m, i] for m in rest if members[m, i]]
        outside = [score[m, i] for m in rest if not members[m, i]]
        found.append(log_density(score[target, i], inside) - log_density(score[target, i], outside))
    return found

# %% tags=["right"]
# SciPy, where it is there, else densities by hand; NaN for who may not speak
def lira(score, members, target):
    try:
        from scipy.stats import norm
        log_density = norm.logpdf
    except ImportError:
        def log_density(x, mean, deviation):
            return np.log(1 / deviation) - (x - mean) ** 2 / (2 * deviation**2) - np.log(2 * np.pi) / 2
    rest = np.arange(len(score)) // 2 != target // 2
    inside = np.where(members[rest], score[rest], np.nan)
    outside = np.where(members[rest], np.nan, score[rest])
    return (log_density(score[target], np.nanmean(inside, 0), np.nanstd(inside, 0))
            - log_density(score[target], np.nanmean(outside, 0), np.nanstd(outside, 0)))

# %% tags=["right"]
# float32
def lira(score, members, target):
    score = score.astype(np.float32)
    rest = np.delete(np.arange(len(score)), [target, target ^ 1])
    sides = [np.ma.array(score[rest], mask=mask) for mask in (~members[rest], members[rest])]
    z = [-np.log(s.std(0)) - (score[target] - s.mean(0)) ** 2 / (2 * s.var(0)) for s in sides]
    return np.asarray(z[0] - z[1])

# %% tags=["wrong"]
# wrong sign
def lira(score, members, target):
    rest = np.arange(len(score)) // 2 != target // 2
    a, b = np.where(members[rest], score[rest], np.nan), np.where(members[rest], np.nan, score[rest])
    log = [-np.log(np.nanstd(s, 0)) - (score[target] - np.nanmean(s, 0)) ** 2 / (2 * np.nanvar(s, 0)) for s in (a, b)]
    return log[1] - log[0]

# %% tags=["wrong"]
# the target among its references
def lira(score, members, target):
    a, b = np.where(members, score, np.nan), np.where(members, np.nan, score)
    log = [-np.log(np.nanstd(s, 0)) - (score[target] - np.nanmean(s, 0)) ** 2 / (2 * np.nanvar(s, 0)) for s in (a, b)]
    return log[0] - log[1]

# %% tags=["wrong"]
# the other model of the pair among the references
def lira(score, members, target):
    rest = np.arange(len(score)) != target
    a, b = np.where(members[rest], score[rest], np.nan), np.where(members[rest], np.nan, score[rest])
    log = [-np.log(np.nanstd(s, 0)) - (score[target] - np.nanmean(s, 0)) ** 2 / (2 * np.nanvar(s, 0)) for s in (a, b)]
    return log[0] - log[1]

# %% tags=["wrong"]
# variance for deviation
def lira(score, members, target):
    rest = np.arange(len(score)) // 2 != target // 2
    a, b = np.where(members[rest], score[rest], np.nan), np.where(members[rest], np.nan, score[rest])
    log = [-np.log(np.nanvar(s, 0)) - ((score[target] - np.nanmean(s, 0)) / np.nanvar(s, 0)) ** 2 / 2 for s in (a, b)]
    return log[0] - log[1]

# %% tags=["wrong"]
# distances without the height of the bell
def lira(score, members, target):
    rest = np.arange(len(score)) // 2 != target // 2
    a, b = np.where(members[rest], score[rest], np.nan), np.where(members[rest], np.nan, score[rest])
    log = [-(score[target] - np.nanmean(s, 0)) ** 2 / (2 * np.nanvar(s, 0)) for s in (a, b)]
    return log[0] - log[1]

# %% tags=["wrong"]
# one pair of bells for all records
def lira(score, members, target):
    rest = np.arange(len(score)) // 2 != target // 2
    a, b = score[rest][members[rest]], score[rest][~members[rest]]
    log = [-np.log(s.std()) - (score[target] - s.mean()) ** 2 / (2 * s.var()) for s in (a, b)]
    return log[0] - log[1]

# %% tags=["wrong"]
# AUC for a score: one number for all
def lira(score, members, target):
    return checks.auc(score[target], members[target])
