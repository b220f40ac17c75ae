# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mia:
#     chapter: bayes
#     minutes: 20
#     functions: [malt, mast]
# ---

# %% [markdown]
# # Two thresholds
#
# A model knows what it was trained on a little too well. *MALT* asks: is the loss of this record low? It has one threshold for
# everybody, and so it mistakes *easy* for *member*. *MAST* asks: is it low **for this record**? Twenty lines from now you have both.

# %% tags=["parameters"]
target = 2  # the model that is attacked, an even number below 32

# %%
import checks
import numpy as np

# %% [markdown]
# ## One threshold for all
#
# A score is high where you believe in a member. Whoever uses it chooses the threshold; you only bring the records in an order.

# %%
def malt(loss):
    """Score of each record, higher = more likely a member.

    loss: [N], of each record under the target. Returns [N].
    """
    ### BEGIN SOLUTION
    return -loss
    ### END SOLUTION


# %% [markdown]
# ## One threshold a record
#
# References are models that you trained yourself, so you know who was in their training sets. What is a typical loss for this record
# under a model that has *never seen it*? Mean, median, soft minimum: choose one and say why.

# %%
def mast(loss, reference_loss, reference_members):
    """Score of each record, higher = more likely a member.

    loss: [N], under the target. reference_loss: [R, N], under each reference. reference_members: bool [R, N], True where
    reference r was trained on record i; every record was left out by at least one. Returns [N].
    """
    ### BEGIN SOLUTION
    outside = ~reference_members
    typical = -np.log((np.exp(-reference_loss) * outside).sum(0) / outside.sum(0))  # the soft minimum
    return typical - loss
    ### END SOLUTION


# %%
checks.run("malt_mast", globals())

# %% [markdown]
# ## On real signals
#
# Before you run this: which of the two finds more members, and by how much?

# %% tags=["signals"]
bank = np.load("signals.npz")
loss, members = bank["loss"], bank["members"]
references = [m for m in range(len(loss)) if m // 2 != target // 2]  # neither the target nor the other model of its pair
checks.tell("MALT", malt(loss[target]), members[target])
checks.tell("MAST", mast(loss[target], loss[references], members[references]), members[target])
checks.tell("mean of the others", checks.less_the_others(-loss, members, target), members[target])
checks.tell("mean of all", loss[references].mean(0) - loss[target], members[target])

# %% [markdown]
# *The others* are the references that were not trained on the record. Their mean sets the threshold too high for most records: a few of
# them find the record hard, and a mean follows those few. The soft minimum, $-\log$ of the mean of $e^{-\ell}$, sets it lower and finds
# more. The last line is what the checks refuse: half of *all* references have seen the record, so their mean lies midway between the
# losses with and without it, close to where the best threshold is. But only an attacker who has the record before training the
# references can have such a half. The soft minimum finds as many without it.

# %% tags=["right"]
# a loop and a median
def mast(loss, reference_loss, reference_members):
    found = []
    for i in range(len(loss)):
        found.append(np.median(reference_loss[~reference_members[:, i], i]) - loss[i])
    return found

# %% tags=["right"]
# odds in the place of the loss; masked arrays; float32
def malt(loss):
    return np.exp(-loss).astype(np.float32)

def mast(loss, reference_loss, reference_members):
    masked = np.ma.array(reference_loss.astype(np.float32), mask=reference_members)
    return masked.mean(axis=0).filled(0) - loss.astype(np.float32)

# %% tags=["right"]
# the mean
def mast(loss, reference_loss, reference_members):
    outside = ~reference_members
    return (reference_loss * outside).sum(0) / outside.sum(0) - loss

# %% tags=["wrong"]
# wrong sign: the loss itself is the score
def malt(loss):
    return loss

# %% tags=["wrong"]
# wrong sign: the loss less what is typical
def mast(loss, reference_loss, reference_members):
    return loss - np.where(reference_members, 0, reference_loss).sum(0) / (~reference_members).sum(0)

# %% tags=["wrong"]
# references that were trained on the record count as well
def mast(loss, reference_loss, reference_members):
    return reference_loss.mean(0) - loss

# %% tags=["wrong"]
# the wrong axis: one threshold a reference
def mast(loss, reference_loss, reference_members):
    return reference_loss.mean() - loss

# %% tags=["wrong"]
# deviations: how many of them the loss is away, which no shift leaves alone
def mast(loss, reference_loss, reference_members):
    typical = np.where(reference_members, 0, reference_loss).sum(0) / (~reference_members).sum(0)
    return (typical - loss) / typical

# %% tags=["wrong"]
# the members among the references and not the strangers
def mast(loss, reference_loss, reference_members):
    return np.where(reference_members, reference_loss, 0).sum(0) / reference_members.sum(0) - loss

# %% tags=["wrong"]
# a threshold made of the records that are judged
def malt(loss):
    return (loss < np.median(loss)).astype(float)
