# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mia:
#     chapter: bayes
#     minutes: 25
#     functions: [tpr_cap, auc_cap, epsilon_at_least]
# ---

# %% [markdown]
# # The ceiling
#
# Differential privacy is a promise about every attack, those included that nobody has thought of yet. Let $E$ be "the attack accuses".
# A training that is $(\epsilon, \delta)$-private says, for a record inside and outside the training set,
#
# $$ P(E \mid \text{in}) \le e^\epsilon P(E \mid \text{out}) + \delta , $$
#
# and the same with *in* and *out* exchanged, and the same for "the attack does *not* accuse". Here you turn the promise into a ceiling
# on ROC curves, and turn it round: an attack that touches the ceiling has measured $\epsilon$.

# %% tags=["parameters"]
epsilon = 1.0  # of the curve that is printed at the end

# %%
import checks
import numpy as np

# %% [markdown]
# ## The highest TPR at an FPR

# %%
def tpr_cap(fpr, epsilon, delta=0.0):
    """The highest TPR that an (epsilon, delta)-private training allows at each false positive rate.

    fpr: [N], from 0 to 1. Returns [N].
    """
    ### BEGIN SOLUTION
    left = np.exp(epsilon) * fpr + delta
    right = 1 - np.exp(-epsilon) * (1 - fpr - delta)
    return np.minimum(np.minimum(left, right), 1.0)
    ### END SOLUTION


# %% [markdown]
# ## The largest AUC, without a delta
#
# The ceiling is made of two straight lines. Where do they meet?

# %%
def auc_cap(epsilon):
    """The largest area under a ROC curve that an (epsilon, 0)-private training allows. Returns a number."""
    ### BEGIN SOLUTION
    return 1 / (1 + np.exp(-epsilon))
    ### END SOLUTION


# %% [markdown]
# ## What an attack proves
#
# One point of a ROC curve, known exactly. What is the smallest $\epsilon$ that allows it?

# %%
def epsilon_at_least(tpr, fpr, delta=0.0):
    """The smallest epsilon, at least 0, under whose cap an attack with this TPR at this FPR lies.

    tpr, fpr: numbers strictly between 0 and 1. Returns a number.
    """
    ### BEGIN SOLUTION
    found = 0.0
    for above, below in ((tpr, fpr), (1 - fpr, 1 - tpr)):
        if above > delta:
            found = max(found, np.log((above - delta) / below))
    return found
    ### END SOLUTION


# %%
checks.run("privacy_cap", globals())

# %% [markdown]
# ## On real signals
#
# No bound is proved here: the models were trained without privacy, and a rate counted on few records is no certain one. But if this were
# the truth, how private could the training have been? A rate above its cap would refute the epsilon at the top.

# %% tags=["signals"]
bank = np.load("signals.npz")
members = bank["members"][0]
score = checks.less_the_others(bank["margin"], bank["members"])  # calibrated by models without the record
for rate in (0.01, 0.05, 0.2):
    bar = np.quantile(score[~members], 1 - rate)
    tpr, fpr = np.mean(score[members] > bar), np.mean(score[~members] > bar)
    print(f"FPR {fpr:.3f}  TPR {tpr:.3f}  cap {tpr_cap(np.array([fpr]), epsilon)[0]:.3f}  epsilon >= "
          f"{epsilon_at_least(max(tpr, 1e-9), fpr):.2f}")

# %% tags=["right"]
# loops over records and over the two sides
def tpr_cap(fpr, epsilon, delta=0.0):
    found = np.zeros(len(fpr), np.float32)
    for i, f in enumerate(fpr):
        first = np.e**epsilon * f + delta
        second = 1 - (1 - f - delta) / np.e**epsilon
        found[i] = min(1, first, second)
    return found

def auc_cap(epsilon):
    return np.exp(epsilon) / (np.exp(epsilon) + 1)

# %% tags=["right"]
# by bisection and by a sum
def auc_cap(epsilon):
    grid = np.linspace(0, 1, 50001)
    return np.mean(tpr_cap((grid[1:] + grid[:-1]) / 2, epsilon))

def epsilon_at_least(tpr, fpr, delta=0.0):
    low, high = 0.0, 60.0
    if tpr <= tpr_cap(np.array([fpr]), 0.0, delta)[0]:
        return 0.0
    for _ in range(80):
        middle = (low + high) / 2
        if tpr_cap(np.array([fpr]), middle, delta)[0] < tpr:
            low = middle
        else:
            high = middle
    return high

# %% tags=["wrong"]
# one side of the definition
def tpr_cap(fpr, epsilon, delta=0.0):
    return np.minimum(1, np.exp(epsilon) * fpr + delta)

# %% tags=["wrong"]
# wrong sign of epsilon
def tpr_cap(fpr, epsilon, delta=0.0):
    return np.exp(-epsilon) * fpr + delta

# %% tags=["wrong"]
# 1 + epsilon for its exponential
def tpr_cap(fpr, epsilon, delta=0.0):
    return np.minimum(1, np.minimum((1 + epsilon) * fpr + delta, 1 - (1 - fpr - delta) / (1 + epsilon)))

# %% tags=["wrong"]
# a rate above one
def tpr_cap(fpr, epsilon, delta=0.0):
    return np.exp(epsilon) * fpr + delta

# %% tags=["wrong"]
# no delta
def tpr_cap(fpr, epsilon, delta=0.0):
    return np.minimum(np.exp(epsilon) * fpr, 1 - np.exp(-epsilon) * (1 - fpr))

# %% tags=["wrong"]
# powers of ten in the place of powers of e
def auc_cap(epsilon):
    return 10**epsilon / (1 + 10**epsilon)

# %% tags=["wrong"]
# accused alone: what is missed proves nothing
def epsilon_at_least(tpr, fpr, delta=0.0):
    return max(0.0, np.log(max(tpr - delta, 1e-12) / fpr))
