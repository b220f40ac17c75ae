# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mia:
#     chapter: text
#     minutes: 40
#     functions: [mean_loss, min_k, compared, blind]
# ---

# %% [markdown]
# # What a verse gives away
#
# A language model publishes the log probability of every token that it reads. Did it read this verse when it was trained? You attack it with
# two scores that need nothing else, and with one that needs other models. Then you show that a benchmark of such attacks is worthless: it
# can be won without asking any model.

# %% tags=["parameters"]
target = 0  # the model that is attacked, an even number below `models`
models = 8  # language models, in pairs
smoothing = 30_000  # how much a model trusts the commonness of a token against the pairs that it has read: less knows verses by heart
share = 0.2  # of a verse's tokens, for Min-K%
seed = 0  # of who read what

# %%
import checks
import numpy as np

# %% [markdown]
# ## From tokens to records
#
# Records are *ragged*: one has five tokens, another fifty. So the log probabilities of all tokens stand one after the other, and record `i` has
# those from `offsets[i]` up to, but without, `offsets[i + 1]`. Min-K% looks at the tokens that surprised the model most: in a text that it
# has read, even they are no longer so improbable.

# %%
def mean_loss(log_prob, offsets):
    """Loss of each record in nats a token: minus the mean log probability of its tokens.

    log_prob: [S], of all tokens. offsets: int [N + 1], where each record begins, and the last one ends. Returns [N].
    """
    ### BEGIN SOLUTION
    return -np.add.reduceat(log_prob, offsets[:-1]) / np.diff(offsets)
    ### END SOLUTION


def min_k(log_prob, offsets, share):
    """Min-K% of each record: the mean of its least log probabilities, higher = more likely a member.

    log_prob, offsets: as above. share: of a record's tokens, between 0 and 1, rounded down, but at least one token.
    Returns [N].
    """
    ### BEGIN SOLUTION
    scores = []
    for first, last in zip(offsets[:-1], offsets[1:]):
        least = max(1, int(share * (last - first)))
        scores.append(np.sort(log_prob[first:last])[:least].mean())
    return np.array(scores)
    ### END SOLUTION


# %% [markdown]
# ## Less what is usual
#
# Some verses are easy for every model. Models come in pairs (0 and 1, 2 and 3, ...); of a pair each read exactly what the other did not. The
# target's row of `members` is what you want to find out: a fair attack gives the same answer whatever stands there.

# %%
def compared(loss, members, target):
    """The usual loss less the target's, higher = more likely a member.

    loss: [M, N], of each record under each model. members: bool [M, N], who read what. target: number of the model that is
    attacked. Returns [N]: the mean loss over references that did not read the record, less the loss under the target.
    """
    ### BEGIN SOLUTION
    references = [m for m in range(len(loss)) if m // 2 != target // 2]
    strangers = ~members[references]
    usual = (loss[references] * strangers).sum(0) / strangers.sum(0)
    return usual - loss[target]
    ### END SOLUTION


# %% [markdown]
# ## Without the model
#
# A benchmark is a list of members and of others. Somebody tells you for a part of it who is who. From how often each word occurs in each record
# of that part, and from nothing else, score the others. On a fair benchmark that is guessing.

# %%
def blind(counts, members, known):
    """A score of each record by its words alone, higher = more likely a member.

    counts: [N, W], how often each of W words occurs in each record. members: bool [N]; what it says of records that are not
    known may not be used. known: bool [N], True for records of which the attacker is told. Returns [N]; the records that are
    not known are judged. Any rule that learns from words will do.
    """
    ### BEGIN SOLUTION
    inside = counts[known & members].sum(0) + 1
    outside = counts[known & ~members].sum(0) + 1
    weight = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
    return counts @ weight
    ### END SOLUTION


# %%
checks.run("verses", globals())

# %% [markdown]
# ## On real verses
#
# The models here are the smallest language models there are: each counts in the verses that it has read how often a token follows another. In
# the first benchmark members and others are random verses of the Bible. In the second members are of the Old Testament, and others of the New, as
# other benchmarks take members from before a date and others from after it. Before you run it: in which of the two will the loss do better? Does the
# model remember more there?

# %% tags=["signals"]
bank = np.load("signals.npz")
tokens, begin = bank["verse_tokens"].astype(int), bank["verse_offsets"]
verses, rng = len(begin) - 1, np.random.default_rng(seed)
half = rng.permuted(np.tile(np.arange(verses) < verses // 2, (models // 2, 1)), axis=1)
members = np.stack([half, ~half], 1).reshape(models, verses)
place = np.setdiff1d(np.arange(len(tokens)), begin)  # the first token of a verse is its beginning, which nobody predicts
before, token, verse = tokens[place - 1], tokens[place], np.searchsorted(begin, place, "right") - 1
offsets = begin - np.arange(verses + 1)


def language_model(read, W=2048):
    """Log probability of each token after the one before it, by a model that counted in the verses that it read."""
    read = read[verse]
    common = np.bincount(token[read], minlength=W) + 1
    pairs = np.bincount((before * W + token)[read], minlength=W * W)[before * W + token]
    return np.log((pairs + smoothing * (common / common.sum())[token])
                  / (np.bincount(before[read], minlength=W)[before] + smoothing))


log_prob = np.stack([language_model(read) for read in members])
loss = np.stack([mean_loss(one, offsets) for one in log_prob])
counts = np.bincount(verse * 2048 + token, minlength=verses * 2048).reshape(verses, 2048)
is_member, known = members[target], rng.random(verses) < 0.5
scores = {"the loss": -loss[target], "Min-K%": min_k(log_prob[target], offsets, share),
          "less the usual": compared(loss, members, target)}
for name, rows in {"random verses": is_member | ~is_member, "Old Testament and New": is_member != bank["verse_new"]}.items():
    scores["words without a model"] = np.zeros(verses)
    scores["words without a model"][rows] = blind(counts[rows], is_member[rows], known[rows])
    for attack, score in scores.items():
        checks.tell(f"{name}, {attack}", score[rows & ~known], is_member[rows & ~known])

# %% [markdown]
# The model is the same in both halves of the output. Where the loss seems to do better in the second, it tells the testaments apart, and the words
# alone do that better. An AUC on a benchmark means something only beside what needs no model.

# %% tags=["right"]
# loops over records and models
def mean_loss(log_prob, offsets):
    return [-sum(log_prob[first:last]) / (last - first) for first, last in zip(offsets, offsets[1:])]

def min_k(log_prob, offsets, share):
    scores = []
    for k in range(len(offsets) - 1):
        own = sorted(log_prob[offsets[k]:offsets[k + 1]])
        kept = own[:int(len(own) * share)] or own[:1]
        scores.append(sum(kept) / len(kept))
    return scores

def compared(loss, members, target):
    scores = []
    for i in range(loss.shape[1]):
        others = [loss[m, i] for m in range(len(loss)) if m not in (target, target ^ 1) and not members[m, i]]
        scores.append(np.mean(others) - loss[target, i])
    return scores

def blind(counts, members, known):
    return counts @ (counts[known & members].mean(0) - counts[known & ~members].mean(0))

# %% tags=["right"]
# arrays split and masked, float32; the words by least squares
def mean_loss(log_prob, offsets):
    return np.array([-one.mean() for one in np.split(log_prob.astype(np.float32), offsets[1:-1])])

def min_k(log_prob, offsets, share):
    parts = np.split(log_prob.astype(np.float32), offsets[1:-1])
    return np.array([np.partition(one, range(least))[:least].mean()
                     for one in parts for least in [max(1, int(share * len(one)))]])

def compared(loss, members, target):
    loss = loss.astype(np.float32)
    hidden = members.copy()
    hidden[[target, target ^ 1]] = True
    return np.asarray(np.ma.array(loss, mask=hidden).mean(0)) - loss[target]

def blind(counts, members, known):
    often = np.column_stack([np.ones(len(counts)), counts / np.maximum(1, counts.sum(1, keepdims=True))])
    left = often[known].T @ often[known] + 1e-3 * np.eye(often.shape[1])
    return often @ np.linalg.solve(left, often[known].T @ members[known].astype(float))

# %% tags=["right"]
# one word: the one whose share differs most
def blind(counts, members, known):
    often = counts / np.maximum(1, counts.sum(1, keepdims=True))
    lead = often[known & members].mean(0) - often[known & ~members].mean(0)
    best = np.argmax(np.abs(lead))
    return np.sign(lead[best]) * often[:, best]

# %% tags=["wrong"]
# the sum in the place of the mean
def mean_loss(log_prob, offsets):
    return -np.add.reduceat(log_prob, offsets[:-1])

# %% tags=["wrong"]
# wrong sign: the log probability for the loss
def mean_loss(log_prob, offsets):
    return np.add.reduceat(log_prob, offsets[:-1]) / np.diff(offsets)

# %% tags=["wrong"]
# perplexity for the loss
def mean_loss(log_prob, offsets):
    return np.exp(-np.add.reduceat(log_prob, offsets[:-1]) / np.diff(offsets))

# %% tags=["wrong"]
# the first token of each record forgotten
def mean_loss(log_prob, offsets):
    return np.array([-log_prob[first + (last > first + 1):last].mean() for first, last in zip(offsets, offsets[1:])])

# %% tags=["wrong"]
# the most probable tokens
def min_k(log_prob, offsets, share):
    return np.array([np.sort(log_prob[a:b])[-max(1, int(share * (b - a))):].mean() for a, b in zip(offsets, offsets[1:])])

# %% tags=["wrong"]
# higher for others
def min_k(log_prob, offsets, share):
    return np.array([-np.sort(log_prob[a:b])[:max(1, int(share * (b - a)))].mean() for a, b in zip(offsets, offsets[1:])])

# %% tags=["wrong"]
# a quantile in the place of a mean
def min_k(log_prob, offsets, share):
    return np.array([np.quantile(log_prob[a:b], share) for a, b in zip(offsets, offsets[1:])])

# %% tags=["wrong"]
# the least of all tokens, not of a record's own
def min_k(log_prob, offsets, share):
    low = log_prob <= np.quantile(log_prob, share)
    return np.array([log_prob[a:b][low[a:b]].mean() if low[a:b].any() else log_prob[a:b].min()
                     for a, b in zip(offsets, offsets[1:])])

# %% tags=["wrong"]
# no token of a short record
def min_k(log_prob, offsets, share):
    return np.array([np.sort(log_prob[a:b])[:int(share * (b - a))].mean() for a, b in zip(offsets, offsets[1:])])

# %% tags=["wrong"]
# wrong sign: the target's loss less the usual
def compared(loss, members, target):
    rest = np.arange(len(loss)) // 2 != target // 2
    return loss[target] - np.average(loss[rest], 0, ~members[rest])

# %% tags=["wrong"]
# the target among its references
def compared(loss, members, target):
    return np.average(loss, 0, ~members) - loss[target]

# %% tags=["wrong"]
# the other model of the pair among the references
def compared(loss, members, target):
    rest = np.arange(len(loss)) != target
    return np.average(loss[rest], 0, ~members[rest]) - loss[target]

# %% tags=["wrong"]
# references that read the record
def compared(loss, members, target):
    rest = np.arange(len(loss)) // 2 != target // 2
    return loss[rest].mean(0) - loss[target]

# %% tags=["wrong"]
# the target alone
def compared(loss, members, target):
    return -loss[target]

# %% tags=["wrong"]
# wrong sign: the words of others
def blind(counts, members, known):
    return counts @ (counts[known & ~members].mean(0) - counts[known & members].mean(0))

# %% tags=["wrong"]
# learned from the records that are judged
def blind(counts, members, known):
    return counts @ (counts[members].mean(0) - counts[~members].mean(0))

# %% tags=["wrong"]
# the length alone
def blind(counts, members, known):
    return counts.sum(1)

# %% tags=["wrong"]
# the words of members, and no look at others
def blind(counts, members, known):
    inside = counts[known & members].sum(0) + 1
    return counts @ np.log(inside / inside.sum())
