# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mia:
#     chapter: compare
#     minutes: 25
#     functions: [leaks, repaired]
# ---

# %% [markdown]
# # Break this attack
#
# "Our attack finds nearly everybody." It has been published, it is fast, and the numbers can be had again by whoever runs the code. And yet
# something is wrong with it: on a target that *you* bring, whose members nobody has told it, it would be worth nothing special. The code is
# below, thirty lines. Find out what it knows that it must not know; write a test that proves it, and repair it.

# %% tags=["parameters"]
target = 0  # the model that is attacked, an even number below 32

# %%
import checks
import numpy as np

# %%
def published(score, members, target):
    """The published attack: score of each record, higher = more likely a member.

    score: [M, N], under each model. members: bool [M, N], models in pairs (0 and 1, 2 and 3, ...) that share no record. target: number
    of the model that is attacked. Returns [N].
    """
    complement = target + 1 if target % 2 == 0 else target - 1
    references = np.delete(np.arange(len(score)), complement)  # it was trained on what the target was not
    reference_members = members[references]

    def moments(side):
        count = np.maximum(side.sum(0), 1)
        mean = (score[references] * side).sum(0) / count
        spread = np.sqrt(((score[references] - mean) ** 2 * side).sum(0) / count)
        return mean, np.maximum(spread, 1e-12)

    mean_in, spread_in = moments(reference_members)
    mean_out, spread_out = moments(~reference_members)

    def log_density(mean, spread):
        return -np.log(spread) - (score[target] - mean) ** 2 / (2 * spread**2)

    return log_density(mean_in, spread_in) - log_density(mean_out, spread_out)


# %% [markdown]
# ## A test that proves it
#
# Write a test that looks at nothing but what goes in and what comes out, so that it can be used on any attack with these arguments. Make up
# a bank of models of your own: random numbers will do. What may an attack not look at?

# %%
def leaks(attack):
    """Whether an attack knows what it must not know.

    attack: a function of (score [M, N], members [M, N], target) as above. Returns True or False.
    """
    ### BEGIN SOLUTION
    rng = np.random.default_rng(0)
    members = np.repeat(rng.random((8, 50)) < 0.5, 2, axis=0)
    members[1::2] = ~members[1::2]
    score = rng.normal(size=members.shape) + members
    turned = members.copy()
    turned[2] = ~turned[2]
    with np.errstate(all="ignore"):
        return not np.allclose(attack(score, members, 2), attack(score, turned, 2), equal_nan=True)
    ### END SOLUTION


# %% [markdown]
# ## Repaired

# %%
def repaired(score, members, target):
    """The published attack without its fault. Arguments as above. Returns [N]."""
    ### BEGIN SOLUTION
    rest = [m for m in range(len(score)) if m // 2 != target // 2]
    found = 0.0
    for side, sign in ((members[rest], 1), (~members[rest], -1)):
        count = np.maximum(side.sum(0), 1)
        mean = (score[rest] * side).sum(0) / count
        spread = np.maximum(np.sqrt(((score[rest] - mean) ** 2 * side).sum(0) / count), 1e-12)
        found = found + sign * (-np.log(spread) - (score[target] - mean) ** 2 / (2 * spread**2))
    return found
    ### END SOLUTION


# %%
checks.run("broken", globals())

# %% [markdown]
# ## On real signals
#
# What was published, and what is left of it.

# %% tags=["signals"]
bank = np.load("signals.npz")
score, members = bank["margin"].astype(float), bank["members"]
for name, attack in (("published", published), ("repaired", repaired)):
    checks.tell(name, attack(score, members, target), members[target])

# %% tags=["right"]
# several draws and a shuffled row
def leaks(attack):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        half = rng.random((10, 30)) < 0.5
        members = np.empty((20, 30), bool)
        members[::2], members[1::2] = half, ~half
        score = rng.normal(size=(20, 30))
        other = members.copy()
        other[0] = rng.random(30) < 0.5
        if np.abs(np.nan_to_num(attack(score, members, 0)) - np.nan_to_num(attack(score, other, 0))).max() > 1e-6:
            return True
    return False

# %% tags=["right"]
# the target's row written over before the published attack looks, and the target left out
def repaired(score, members, target):
    kept = [m for m in range(len(score)) if m not in (target, target ^ 1)]
    inside = np.where(members[kept], score[kept], np.nan).astype(np.float32)
    outside = np.where(members[kept], np.nan, score[kept]).astype(np.float32)
    value = score[target].astype(np.float32)
    log = [-np.log(np.nanstd(s, axis=0)) - ((value - np.nanmean(s, axis=0)) / np.nanstd(s, axis=0)) ** 2 / 2 for s in (inside, outside)]
    return log[0] - log[1]

# %% tags=["wrong"]
# an AUC that is too good is a proof
def leaks(attack):
    rng = np.random.default_rng(0)
    members = np.repeat(rng.random((8, 200)) < 0.5, 2, axis=0)
    members[1::2] = ~members[1::2]
    score = rng.normal(size=members.shape) + 2.5 * members
    return bool(checks.auc(attack(score, members, 2), members[2]) > 0.9)

# %% tags=["wrong"]
# everybody is guilty
def leaks(attack):
    return True

# %% tags=["wrong"]
# any change of the scores is taken for a leak, that of the target's own score too
def leaks(attack):
    rng = np.random.default_rng(0)
    members = np.repeat(rng.random((8, 50)) < 0.5, 2, axis=0)
    members[1::2] = ~members[1::2]
    score = rng.normal(size=members.shape)
    return not np.allclose(attack(score, members, 2), attack(score + rng.normal(size=score.shape), members, 2))

# %% tags=["wrong"]
# the target left out, its complement let in
def repaired(score, members, target):
    rest = [m for m in range(len(score)) if m != target]
    a, b = np.where(members[rest], score[rest], np.nan), np.where(members[rest], np.nan, score[rest])
    log = [-np.log(np.nanstd(s, 0)) - (score[target] - np.nanmean(s, 0)) ** 2 / (2 * np.nanvar(s, 0)) for s in (a, b)]
    return log[0] - log[1]

# %% tags=["wrong"]
# the published attack again
def repaired(score, members, target):
    return published(score, members, target)

# %% tags=["wrong"]
# wrong sign
def repaired(score, members, target):
    rest = [m for m in range(len(score)) if m // 2 != target // 2]
    a, b = np.where(members[rest], score[rest], np.nan), np.where(members[rest], np.nan, score[rest])
    log = [-np.log(np.nanstd(s, 0)) - (score[target] - np.nanmean(s, 0)) ** 2 / (2 * np.nanvar(s, 0)) for s in (a, b)]
    return log[1] - log[0]

# %% tags=["wrong"]
# the references thrown out with the fault
def repaired(score, members, target):
    return score[target]

# %% tags=["wrong"]
# variance for deviation
def repaired(score, members, target):
    rest = [m for m in range(len(score)) if m // 2 != target // 2]
    a, b = np.where(members[rest], score[rest], np.nan), np.where(members[rest], np.nan, score[rest])
    log = [-np.log(np.nanvar(s, 0)) - ((score[target] - np.nanmean(s, 0)) / np.nanvar(s, 0)) ** 2 / 2 for s in (a, b)]
    return log[0] - log[1]
