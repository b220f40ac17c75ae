# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mia:
#     chapter: iha
#     minutes: 30
#     functions: [others, iha]
# ---

# %% [markdown]
# # What is left when you are taken out
#
# At a minimum the gradients of all members add up to nothing. Take one record out of the sum: if it was a member, what is left is no
# longer nothing, but exactly the opposite of what it pulled. The *inverse Hessian attack* asks how far that would have moved the model. It is an
# audit: whoever does it knows all other records.

# %% tags=["parameters"]
records = 80  # members, and as many strangers, in the training at the end
steps = 2000  # of gradient descent
learning_rate = 0.5
damping = 0.05

# %%
import checks
import numpy as np

# %% [markdown]
# ## The others
#
# The auditor computes the same thing for each record: the mean gradient of all *others* in the training set of $n$ records. Who is taken out
# leaves a gap in the sum, and the sum is still divided by $n$. Who are the others of a member, and who are those of a stranger?

# %%
def others(gradients, members):
    """Mean gradient of the training set's other records, for each record.

    gradients: [N, P], of each record's loss. members: bool [N]; n of them are True. Returns [N, P].
    """
    ### BEGIN SOLUTION
    n = members.sum()
    whole = gradients[members].sum(0) / n
    return whole - members[:, None] * gradients / n
    ### END SOLUTION


# %% [markdown]
# ## The score
#
# A Newton step is $A^{-1}$ times a mean gradient, with $A = H + \text{damping} \cdot I$. The auditor asks of two: the step $s$ of the others
# alone, and the step $s'$ when the record is put in with them, as one of $n$. The attack of the paper (without momentum and weight decay) takes
# off the loss by how much the square of the length grows,
#
# $$ \ell - \frac{n}{\lambda} \big( \lVert s' \rVert^2 - \lVert s \rVert^2 \big) . $$
#
# What is $s'$, written with $s$ and the gradient $g$ of the record? With a pencil first: two products of gradients are left.

# %%
def iha(loss, gradients, hessian, members, learning_rate, damping):
    """Inverse Hessian attack: score of each record, higher = more likely a member.

    loss: [N]. gradients: [N, P]. hessian: [P, P], of the training set's mean loss. members: bool [N]. Returns [N].
    """
    ### BEGIN SOLUTION
    A = hessian + damping * np.eye(len(hessian))
    x = np.linalg.solve(A, gradients.T).T
    x0 = np.linalg.solve(A, others(gradients, members).T).T
    return loss - ((x**2).sum(1) / members.sum() + 2 * (x0 * x).sum(1)) / learning_rate
    ### END SOLUTION


# %%
checks.run("iha", globals())

# %% [markdown]
# ## On a logistic regression
#
# Trained here, on ten numbers a record. Then the control that every audit needs: *told random flags* in the place of membership, what
# does it find? Whoever is flagged is taken out of the gradient of all, and nobody else.

# %% tags=["signals"]
bank = np.load("signals.npz")
is_member = bank["members"][0]
some = np.concatenate([np.flatnonzero(is_member)[:records], np.flatnonzero(~is_member)[:records]])
z = np.column_stack([bank["features"][some], np.ones(len(some))]).astype(float)
label, is_member = (bank["y"][some] >= 5).astype(float), is_member[some]
w = np.zeros(z.shape[1])
for _ in range(steps):
    p = 1 / (1 + np.exp(-z @ w))
    w -= learning_rate * z[is_member].T @ (p - label)[is_member] / is_member.sum()
p = np.clip(1 / (1 + np.exp(-z @ w)), 1e-12, 1 - 1e-12)
loss = -np.log(np.where(label == 1, p, 1 - p))
gradients = (p - label)[:, None] * z
hessian = (z[is_member] * (p * (1 - p))[is_member, None]).T @ z[is_member] / is_member.sum()
flags = np.random.default_rng(0).permutation(is_member)
checks.tell("loss alone", -loss, is_member)
checks.tell("IHA", iha(loss, gradients, hessian, is_member, learning_rate, damping), is_member)
told = checks.told(flags, loss, gradients, hessian, is_member, learning_rate, damping)
checks.tell("IHA told random flags, finds the flags", told, flags)

# %% tags=["right"]
# record by record
def others(gradients, members):
    n, found = members.sum(), []
    for i in range(len(gradients)):
        keep = members.copy()
        keep[i] = False
        found.append(gradients[keep].sum(0) / n)
    return np.array(found)

def iha(loss, gradients, hessian, members, learning_rate, damping):
    inverse, n = np.linalg.inv(hessian + damping * np.eye(len(hessian))), members.sum()
    rest, found = others(gradients, members), []
    for i, g in enumerate(gradients):
        x, x0 = inverse @ g, inverse @ rest[i]
        found.append(loss[i] - (x @ x / n + 2 * x0 @ x) / learning_rate)
    return found

# %% tags=["right"]
# by eigenvectors, in float32
def iha(loss, gradients, hessian, members, learning_rate, damping):
    values, vectors = np.linalg.eigh(hessian)
    x, x0 = ((one @ vectors / (values + damping)).astype(np.float32) for one in (gradients, others(gradients, members)))
    return loss - (np.einsum("np,np->n", x, x) / members.sum() + 2 * np.einsum("np,np->n", x0, x)) / learning_rate

# %% tags=["wrong"]
# wrong sign
def iha(loss, gradients, hessian, members, learning_rate, damping):
    A = np.linalg.inv(hessian + damping * np.eye(len(hessian)))
    x, x0 = gradients @ A, others(gradients, members) @ A
    return loss + ((x**2).sum(1) / members.sum() + 2 * (x0 * x).sum(1)) / learning_rate

# %% tags=["wrong"]
# the record among its own others
def others(gradients, members):
    return np.repeat(gradients[members].mean(0)[None], len(gradients), 0)

# %% tags=["wrong"]
# strangers among the others
def others(gradients, members):
    return gradients.mean(0) - members[:, None] * gradients / members.sum()

# %% tags=["wrong"]
# everybody taken out, strangers too
def others(gradients, members):
    return gradients[members].sum(0) / members.sum() - gradients / members.sum()

# %% tags=["wrong"]
# length for square: a deviation where a variance belongs
def iha(loss, gradients, hessian, members, learning_rate, damping):
    A = np.linalg.inv(hessian + damping * np.eye(len(hessian)))
    x, x0 = gradients @ A, others(gradients, members) @ A
    return loss - (np.linalg.norm(x, axis=1) / members.sum() + 2 * (x0 * x).sum(1)) / learning_rate

# %% tags=["wrong"]
# no damping
def iha(loss, gradients, hessian, members, learning_rate, damping):
    A = np.linalg.inv(hessian)
    x, x0 = gradients @ A, others(gradients, members) @ A
    return loss - ((x**2).sum(1) / members.sum() + 2 * (x0 * x).sum(1)) / learning_rate

# %% tags=["wrong"]
# the inverse of the entries
def iha(loss, gradients, hessian, members, learning_rate, damping):
    A = 1 / (hessian + damping)
    x, x0 = gradients @ A, others(gradients, members) @ A
    return loss - ((x**2).sum(1) / members.sum() + 2 * (x0 * x).sum(1)) / learning_rate
