# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mia:
#     chapter: audit
#     minutes: 25
#     functions: [headline, chance]
# ---

# %% [markdown]
# # The best of thirty attacks that know nothing
#
# Try thirty attacks on a model, and report the one with the highest AUC. Even if none of them knows anything, that number is above one half:
# the luckiest of thirty was chosen *because* it was lucky. An audit that does so finds a leak in every model. Here are two ways out.
#
# `checks.auc(scores, members)` is there already: the area under the ROC curve.

# %% tags=["parameters"]
attacks = 30  # that know nothing
draws = 200
records = 600  # that the audit has
seed = 0  # of who is in which half

# %%
import checks
import numpy as np

# %% [markdown]
# ## Choose on one half, judge on the other
#
# What a record says for an attack it may say once: when the attack is chosen, or when it is judged.

# %%
def headline(scores, members, half):
    """The attack that is best on one half of the records, and its AUC on the other half.

    scores: [A, N], of A attacks. members: bool [N]. half: bool [N], True for records that the choice is made on.
    Returns (number of the attack, its AUC on the other records).
    """
    ### BEGIN SOLUTION
    best = np.argmax([checks.auc(one[half], members[half]) for one in scores])
    return best, checks.auc(scores[best][~half], members[~half])
    ### END SOLUTION


# %% [markdown]
# ## How good is the best of many by chance?
#
# Shuffle who is a member. Now no attack knows anything, and the best of them is as good as luck makes it. How often is that at least as good
# as what you really found?

# %%
def chance(scores, members, draws, rng):
    """How often the best attack is as good as the best one really is when membership is shuffled: a p-value.

    scores: [A, N]. members: bool [N]. draws: how often to shuffle. rng: a NumPy generator to draw from. Returns a number from
    0 to 1.
    """
    ### BEGIN SOLUTION
    def best(flags):
        return max(checks.auc(one, flags) for one in scores)

    real = best(members)
    reached = sum(best(rng.permutation(members)) >= real for _ in range(draws))
    return (reached + 1) / (draws + 1)
    ### END SOLUTION


# %%
checks.run("winner", globals())

# %% [markdown]
# ## On real signals
#
# Thirty attacks that know nothing, first alone and then with one that knows something. Before you run it: what will be the highest AUC
# of the thirty? Afterwards take 200 records.

# %% tags=["signals"]
bank = np.load("signals.npz")
rng = np.random.default_rng(seed)
few = rng.permutation(len(bank["members"][0]))[:records]
members, half = bank["members"][0][few], rng.random(len(few)) < 0.5
calibrated = checks.less_the_others(-bank["loss"][:, few], bank["members"][:, few])
blind = rng.normal(size=(attacks, len(few)))
for name, scores in (("nothing", blind), ("something", np.vstack([blind, calibrated]))):
    highest = max(checks.auc(one, members) for one in scores)
    chosen, honest = headline(scores, members, half)
    p = chance(scores, members, draws, np.random.default_rng(seed))
    print(f"{len(scores)} attacks, of which one knows {name}: highest AUC {highest:.3f}, p {p:.3f}; chosen on one half: "
          f"number {chosen + 1}, {honest:.3f} on the other")

# %% tags=["right"]
# loops and ranks; p without the observed draw
def headline(scores, members, half):
    areas = []
    for one in scores:
        pairs = one[half & members][:, None] - one[half & ~members]
        areas.append(np.mean(np.sign(pairs)))
    best = areas.index(max(areas))
    pairs = scores[best][~half & members][:, None] - scores[best][~half & ~members]
    return best, (np.mean(np.sign(pairs)) + 1) / 2

def chance(scores, members, draws, rng):
    found = []
    for _ in range(draws):
        drawn = rng.choice(members, len(members), replace=False)
        found.append(max([checks.auc(one, drawn) for one in scores]))
    return np.mean(np.array(found) >= max([checks.auc(one, members) for one in scores]))

# %% tags=["right"]
# scores shuffled, all attacks alike, in the place of members; float32
def chance(scores, members, draws, rng):
    real, places = np.max([checks.auc(one, members) for one in scores]), np.arange(len(members))
    reached = 0
    for _ in range(draws):
        rng.shuffle(places)
        reached += np.max([checks.auc(one, members) for one in scores.astype(np.float32)[:, places]]) >= real
    return np.float32((1 + reached) / (1 + draws))

# %% tags=["wrong"]
# the test set used for the choice
def headline(scores, members, half):
    best = np.argmax([checks.auc(one, members) for one in scores])
    return best, checks.auc(scores[best][~half], members[~half])

# %% tags=["wrong"]
# judged where it was chosen
def headline(scores, members, half):
    areas = [checks.auc(one[half], members[half]) for one in scores]
    return np.argmax(areas), max(areas)

# %% tags=["wrong"]
# the best of the other half
def headline(scores, members, half):
    best = np.argmax([checks.auc(one[half], members[half]) for one in scores])
    return best, max(checks.auc(one[~half], members[~half]) for one in scores)

# %% tags=["wrong"]
# judged on all records
def headline(scores, members, half):
    best = np.argmax([checks.auc(one[half], members[half]) for one in scores])
    return best, checks.auc(scores[best], members)

# %% tags=["wrong"]
# wrong sign: the worst is chosen
def headline(scores, members, half):
    best = np.argmin([checks.auc(one[half], members[half]) for one in scores])
    return best, checks.auc(scores[best][~half], members[~half])

# %% tags=["wrong"]
# AUC for TPR: the share of members above the median
def headline(scores, members, half):
    best = np.argmax([checks.auc(one[half], members[half]) for one in scores])
    judged = scores[best][~half]
    return best, np.mean(judged[members[~half]] > np.median(judged))

# %% tags=["wrong"]
# one attack shuffled, the best of many compared with it
def chance(scores, members, draws, rng):
    areas = [checks.auc(one, members) for one in scores]
    best = scores[np.argmax(areas)]
    return (sum(checks.auc(best, rng.permutation(members)) >= max(areas) for _ in range(draws)) + 1) / (draws + 1)

# %% tags=["wrong"]
# another shuffle for each attack
def chance(scores, members, draws, rng):
    real = max(checks.auc(one, members) for one in scores)
    reached = sum(max(checks.auc(one, rng.permutation(members)) for one in scores) >= real for _ in range(draws))
    return (reached + 1) / (draws + 1)

# %% tags=["wrong"]
# how often it is worse
def chance(scores, members, draws, rng):
    def best(flags):
        return max(checks.auc(one, flags) for one in scores)

    real = best(members)
    return np.mean([best(rng.permutation(members)) < real for _ in range(draws)])

# %% tags=["wrong"]
# ties count for the attack
def chance(scores, members, draws, rng):
    def best(flags):
        return max(checks.auc(one, flags) for one in scores)

    real = best(members)
    return np.mean([best(rng.permutation(members)) > real for _ in range(draws)])

# %% tags=["wrong"]
# drawn with replacement, which leaves the pairs together
def chance(scores, members, draws, rng):
    real = max(checks.auc(one, members) for one in scores)
    reached = 0
    for _ in range(draws):
        drawn = rng.integers(len(members), size=len(members))
        reached += max(checks.auc(one[drawn], members[drawn]) for one in scores) >= real
    return (reached + 1) / (draws + 1)
