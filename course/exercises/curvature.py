# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mia:
#     chapter: curvature
#     minutes: 30
#     functions: [four_points, trace]
# ---

# %% [markdown]
# # Bending, seen from outside
#
# You may ask a model for losses and for nothing else: no gradient, no weights. And yet you can measure how strongly the loss *bends* around a
# record. Four questions are enough for one direction. A training set lies in places that have been bent in a way of their own.

# %% tags=["parameters"]
probes = 20  # random directions a record
h = 0.1  # step, in units of a pixel's whole range
records = 150  # of each kind, in the attack at the end

# %%
import checks
import numpy as np

# %% [markdown]
# ## Four losses
#
# Ask for the loss at $x + h(u + v)$, $x + h(u - v)$, $x - h(u - v)$ and $x - h(u + v)$. On a quadratic $\ell = \tfrac12 x^\top H x + b^\top x + c$
# you can have $u^\top H v$ exactly: find out which losses to add, which to take off, and by what to divide.

# %%
def four_points(loss, x, u, v, h):
    """Estimate of u^T H v, with H the Hessian of the loss at x, from four losses.

    loss: function from an input [D] to a number. x, u, v: [D]. h: the step. Returns a number.
    """
    ### BEGIN SOLUTION
    along = loss(x + h * (u + v)) + loss(x - h * (u + v))
    across = loss(x + h * (u - v)) + loss(x - h * (u - v))
    return (along - across) / (4 * h**2)
    ### END SOLUTION


# %% [markdown]
# ## The trace
#
# With random $u = v$ of entries $\pm 1$, what is left of $u^\top H u$ in the mean? (Other directions will do as well. Then another factor
# is needed.)

# %%
def trace(loss, x, probes, h, rng):
    """Estimate of the trace of the Hessian of the loss at x: the mean over random probes.

    loss: function from an input [D] to a number. x: [D]. rng: a NumPy generator to draw from. Returns a number.
    """
    ### BEGIN SOLUTION
    found = []
    for _ in range(probes):
        u = rng.choice([-1.0, 1.0], len(x))
        found.append(four_points(loss, x, u, u, h))
    return np.mean(found)
    ### END SOLUTION


# %%
checks.run("curvature", globals())

# %% [markdown]
# ## On a real model
#
# A small network, written out. Members and strangers: where does the loss bend more?

# %% tags=["signals"]
bank = np.load("signals.npz")
x, labels, is_member = bank["x"] / 255, bank["y"], bank["members"][0]
w1, w2 = bank["w1"].astype(float), bank["w2"].astype(float)
b1, b2 = bank["b1"], bank["b2"]

def loss_of(label):
    def loss(image):
        logits = np.maximum(image @ w1 + b1, 0) @ w2 + b2
        return np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[label]
    return loss

rng = np.random.default_rng(0)
some = np.concatenate([np.flatnonzero(is_member)[:records], np.flatnonzero(~is_member)[:records]])
bend = np.array([trace(loss_of(labels[i]), x[i], probes, h, rng) for i in some])
checks.tell("little bending means a member", -bend, is_member[some])
checks.tell("a low loss, of the same records", -bank["loss"][0, some], is_member[some])

# %% [markdown]
# Where the loss is low it hardly bends: the two put records in almost the same order. Count what either costs: the loss one query for a
# record, the bending four for every direction.

# %% tags=["right"]
# independent directions, so that the product with u . v has the trace for its mean
def trace(loss, x, probes, h, rng):
    total = 0.0
    for _ in range(probes):
        u, v = rng.choice([-1.0, 1.0], (2, len(x)))
        total += four_points(loss, x, u, v, h) * (u @ v)
    return total / probes

# %% tags=["right"]
# a list of signs; Gaussian directions
def four_points(loss, x, u, v, h):
    return sum(s * t * loss(x + h * (s * u + t * v)) for s in (1, -1) for t in (1, -1)) / (2 * h) ** 2

def trace(loss, x, probes, h, rng):
    draws = rng.normal(size=(probes, x.size))
    return np.array([four_points(loss, x, u, u, h) for u in draws]).mean()

# %% tags=["right"]
# directions on the unit sphere, with the factor that belongs to them
def trace(loss, x, probes, h, rng):
    found = []
    for _ in range(probes):
        u = rng.normal(size=len(x))
        u /= np.linalg.norm(u)
        found.append(len(x) * four_points(loss, x, u, u, h * len(x) ** 0.5))
    return np.float32(np.mean(found))

# %% tags=["wrong"]
# wrong sign
def four_points(loss, x, u, v, h):
    return (loss(x + h * (u - v)) + loss(x - h * (u - v)) - loss(x + h * (u + v)) - loss(x - h * (u + v))) / (4 * h * h)

# %% tags=["wrong"]
# the step itself for its square
def four_points(loss, x, u, v, h):
    return (loss(x + h * (u + v)) + loss(x - h * (u + v)) - loss(x + h * (u - v)) - loss(x - h * (u - v))) / (4 * h)

# %% tags=["wrong"]
# without the four
def four_points(loss, x, u, v, h):
    return (loss(x + h * (u + v)) + loss(x - h * (u + v)) - loss(x + h * (u - v)) - loss(x - h * (u - v))) / h**2

# %% tags=["wrong"]
# slope and height left in: the points are on one side
def four_points(loss, x, u, v, h):
    return (loss(x + h * (u + v)) - loss(x + h * u) - loss(x + h * v)) / h**2

# %% tags=["wrong"]
# the factor of the unit sphere for directions that are not on it
def trace(loss, x, probes, h, rng):
    u = rng.choice([-1.0, 1.0], (probes, len(x)))
    return len(x) ** 2 * np.mean([four_points(loss, x, one, one, h) for one in u])

# %% tags=["wrong"]
# a sum for a mean
def trace(loss, x, probes, h, rng):
    u = rng.choice([-1.0, 1.0], (probes, len(x)))
    return np.sum([four_points(loss, x, one, one, h) for one in u])

# %% tags=["wrong"]
# a deviation for a mean
def trace(loss, x, probes, h, rng):
    u = rng.choice([-1.0, 1.0], (probes, len(x)))
    return np.std([four_points(loss, x, one, one, h) for one in u])

# %% tags=["wrong"]
# generator of its own
def trace(loss, x, probes, h, rng):
    u = np.random.default_rng().choice([-1.0, 1.0], (probes, len(x)))
    return np.mean([four_points(loss, x, one, one, h) for one in u])
