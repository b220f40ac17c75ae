# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mia:
#     chapter: quantile
#     minutes: 30
#     functions: [pinball, fit, rates]
# ---

# %% [markdown]
# # Strangers like you
#
# No reference model, not one. Take records that the model has certainly not seen, look at their scores, and learn from a record's features how
# high a *stranger like this one* scores at most, nineteen times out of twenty. Who is above is accused. A regression, but not of the mean.

# %% tags=["parameters"]
promise = 0.05  # false positive rate

# %%
import checks
import numpy as np

# %% [markdown]
# ## The loss that has a quantile for its minimum
#
# Where the observed score is above the prediction by $d$, it costs $\text{level} \cdot d$; where it is below by $d$, it costs
# $(1 - \text{level}) \cdot d$.

# %%
def pinball(predicted, observed, level):
    """Mean pinball loss of predictions of a quantile.

    predicted, observed: [N]. level: of the quantile, between 0 and 1. Returns a number.
    """
    ### BEGIN SOLUTION
    d = observed - predicted
    return np.mean(np.where(d > 0, level * d, (level - 1) * d))
    ### END SOLUTION


# %% [markdown]
# ## The regression
#
# A straight line in the features: `x @ w + b`. The derivative of the pinball loss is easy, so walk downhill in small steps, with steps that
# become smaller; or find another way.

# %%
def fit(x, score, level):
    """A linear regression of the quantile of a stranger's score.

    x: [N, D] features. score: [N] of strangers. level: of the quantile. Returns a function from new features [n, D] to thresholds [n].
    """
    ### BEGIN SOLUTION
    centre, width, spread = x.mean(0), x.std(0) + 1e-9, score.std() + 1e-9
    z = np.column_stack([(x - centre) / width, np.ones(len(x))])
    w, kept = np.zeros(z.shape[1]), 0.0
    w[-1] = np.quantile(score, level) / spread
    for step in range(1500):
        below = z @ w < score / spread
        w += 0.5 / np.sqrt(1 + step) * z.T @ (below - (1 - level)) / len(z)
        kept = kept + w / 500 if step >= 1000 else kept
    return lambda new: spread * (np.column_stack([(new - centre) / width, np.ones(len(new))]) @ kept)
    ### END SOLUTION


# %% [markdown]
# ## Count

# %%
def rates(score, thresholds, members):
    """(TPR, FPR) of accusing everyone whose score is above their own threshold. All [N]; members bool."""
    ### BEGIN SOLUTION
    accused = score > thresholds
    return accused[members].mean(), accused[~members].mean()
    ### END SOLUTION


# %%
checks.run("quantile", globals())

# %% [markdown]
# ## On real signals
#
# The public records were in nobody's training set. Is the promise kept? And is a threshold of one's own worth more than one for all?

# %% tags=["signals"]
bank = np.load("signals.npz")
members, margin, public = bank["members"][0], bank["margin"][0], bank["public_margin"][0]
own = fit(bank["public_features"].astype(float), public, 1 - promise)(bank["features"].astype(float))
for name, bars in (("one for all", np.full(len(margin), np.quantile(public, 1 - promise))), ("own", own)):
    tpr, fpr = rates(margin, bars, members)
    print(f"{name}: promised {promise:.1%}, strangers accused {fpr:.1%}, members found {tpr:.1%}")

# %% tags=["right"]
# iterated weighted least squares, and maxima
def pinball(predicted, observed, level):
    total = 0.0
    for q, s in zip(predicted, observed):
        total += max(level * (s - q), (level - 1) * (s - q))
    return total / len(observed)

def fit(x, score, level):
    z = np.hstack([np.ones((len(x), 1)), x])
    w = np.linalg.lstsq(z, score, rcond=None)[0]
    for _ in range(60):
        d = score - z @ w
        weight = np.where(d > 0, level, 1 - level) / np.maximum(np.abs(d), 1e-4)
        w = np.linalg.solve(z.T @ (weight[:, None] * z), z.T @ (weight * score))
    return lambda new: np.hstack([np.ones((len(new), 1)), new]) @ w

# %% tags=["right"]
# one record at a time, in random order, and the mean of the way; float32
def pinball(predicted, observed, level):
    d = (np.asarray(observed) - predicted).astype(np.float32)
    return np.mean(d * (level - (d < 0)))

def fit(x, score, level):
    rng = np.random.default_rng(0)
    z = np.column_stack([x, np.ones(len(x))]).astype(np.float32)
    w, kept, count = np.zeros(z.shape[1], np.float32), 0.0, 0
    for epoch in range(5):
        for i in rng.permutation(len(z)):
            w += 0.1 / np.sqrt(1 + epoch) * (level - (score[i] < z[i] @ w)) * z[i]
            if epoch >= 2:
                kept, count = kept + w, count + 1
    return lambda new: np.column_stack([new, np.ones(len(new))]).astype(np.float32) @ (kept / count)

# %% tags=["wrong"]
# wrong sign: the sides exchanged
def pinball(predicted, observed, level):
    d = predicted - observed
    return np.mean(np.where(d > 0, level * d, (level - 1) * d))

# %% tags=["wrong"]
# squares, whose minimum is a mean
def pinball(predicted, observed, level):
    d = observed - predicted
    return np.mean(np.where(d > 0, level, 1 - level) * d**2)

# %% tags=["wrong"]
# the level of the other end
def fit(x, score, level):
    z = np.column_stack([x, np.ones(len(x))])
    w = np.linalg.lstsq(z, score, rcond=None)[0]
    gap = np.quantile(score - z @ w, 1 - level)
    return lambda new: np.column_stack([new, np.ones(len(new))]) @ w + gap

# %% tags=["wrong"]
# a mean
def fit(x, score, level):
    z = np.column_stack([x, np.ones(len(x))])
    w = np.linalg.lstsq(z, score, rcond=None)[0]
    return lambda new: np.column_stack([new, np.ones(len(new))]) @ w

# %% tags=["wrong"]
# one threshold for all
def fit(x, score, level):
    return lambda new: np.full(len(new), np.quantile(score, level))

# %% tags=["wrong"]
# deviation: the same distance from the mean for all
def fit(x, score, level):
    z = np.column_stack([x, np.ones(len(x))])
    w = np.linalg.lstsq(z, score, rcond=None)[0]
    gap = np.quantile(score - z @ w, level)
    return lambda new: np.column_stack([new, np.ones(len(new))]) @ w + gap

# %% tags=["wrong"]
# a threshold made of the records that are judged
def fit(x, score, level):
    return lambda new: new[:, 0] * 0 + np.sort(new[:, 0])[int(level * len(new))]

# %% tags=["wrong"]
# the share of strangers among the accused
def rates(score, thresholds, members):
    accused = score > thresholds
    return accused[members].mean(), (~members)[accused].mean()
