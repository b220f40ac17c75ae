"""Checks of `verses`."""

import numpy as np

from checks import auc, bank, need, numbers, same
from checks import blind as unseen


def _tokens(rng, records=12):
    """Log probabilities of ragged records, and where these begin; one has a single token, and a fifth of the others' is a
    whole number of tokens."""
    lengths = rng.permutation(np.r_[1, 5 * np.arange(1, records)])
    offsets = np.r_[0, lengths.cumsum()]
    return -rng.exponential(2, offsets[-1]) - np.repeat(rng.uniform(0, 2, records), lengths), offsets


def loss(work, rng):
    """The loss of a record is minus the mean log probability of its tokens."""
    log_prob, offsets = _tokens(rng)
    sums = np.array([log_prob[a:b].sum() for a, b in zip(offsets[:-1], offsets[1:], strict=True)])
    found = numbers(work, "mean_loss", log_prob, offsets, shape=sums.shape, what="one loss for each record")
    right = -sums / np.diff(offsets)
    need(not same(found, -right), "`mean_loss` returns the mean log probability. Log probabilities are negative; a loss is "
                                  "high where the model is surprised.")
    need(not same(found, -sums), "`mean_loss` adds up: of two records that surprise the model equally at each token, the "
                                 "longer one gets the larger loss.")
    need(not same(np.log(np.maximum(found, 1e-9)), right), "`mean_loss` returns the perplexity. The loss is its logarithm.")
    need(same(found, right), "`mean_loss` is not minus the mean over all tokens of a record, from `offsets[i]` up to "
                             "`offsets[i + 1]`. Try one record by hand; one of them has a single token.")


def least(work, rng):
    """Min-K% is the mean of a record's least log probabilities."""
    log_prob, offsets = _tokens(rng)
    for share in (0.2, 0.4):
        parts = [np.sort(log_prob[a:b]) for a, b in zip(offsets[:-1], offsets[1:], strict=True) if b - a > 1]
        right = [one[:round(share * len(one))].mean() for one in parts]
        most = [one[-round(share * len(one)):].mean() for one in parts]
        found = _min_k_of_many(work, log_prob, offsets, share)
        need(not same(found, most), "`min_k` takes the *most* probable tokens of a record. Those are easy for every model.")
        need(not same(found, np.negative(right)), "`min_k` has the wrong sign: where the model is less surprised, the record "
                                                  "is rather a member, and the score has to be higher.")
        need(same(found, right), f"`min_k` with the share {share} is not the mean of that share of each record's least log "
                                 "probabilities. Sort the tokens of one record, and take the first of them.")


def _min_k_of_many(work, log_prob, offsets, share):
    """`min_k` of the records with more than one token, asked without the others."""
    many = np.diff(offsets) > 1
    kept = np.concatenate([[0], np.diff(offsets)[many].cumsum()])
    return numbers(work, "min_k", log_prob[np.repeat(many, np.diff(offsets))], kept, share, shape=(many.sum(),),
                   what="one score for each record")


def single(work, rng):
    """A record of one token has its log probability for Min-K%."""
    log_prob = -rng.exponential(2, 6)
    found = numbers(work, "min_k", log_prob, np.arange(7), 0.2, shape=(6,), what="one score for each record")
    need(same(np.abs(found), -log_prob), "`min_k` of a record with a single token is not its log probability: at least one "
                                         "token is taken.")


def independence(work, rng):
    """What another record's tokens say does not matter."""
    log_prob, offsets = _tokens(rng)
    many = int(np.argmax(np.diff(offsets)))
    moved = log_prob.copy()
    moved[offsets[many]:offsets[many + 1]] -= 9
    for name, more in (("mean_loss", ()), ("min_k", (0.4,))):
        if name == "min_k":  # records of one token are the check above
            before, after = (_min_k_of_many(work, one, offsets, *more) for one in (log_prob, moved))
            rest = np.arange(len(offsets) - 1)[np.diff(offsets) > 1] != many
        else:
            before, after = (numbers(work, name, one, offsets, *more, shape=(len(offsets) - 1,))
                             for one in (log_prob, moved))
            rest = np.arange(len(before)) != many
        need(same(before[rest], after[rest]), f"`{name}` gives other records another number when the tokens of record {many} "
                                              "become less probable. Each record has only its own tokens.")


def blindness(work, rng):
    """The comparison sees neither the target's membership nor the other model of its pair."""
    loss, members = bank(rng)
    for target in (0, 5):
        unseen(work, "compared", loss, members, target)


def direction(work, rng):
    """A lower loss under the target makes a member more likely."""
    loss, members = bank(rng)
    found = numbers(work, "compared", loss, members, 2, shape=(loss.shape[1],), what="one score for each record")
    lower = loss.copy()
    lower[2] -= 1
    moved = numbers(work, "compared", lower, members, 2, shape=found.shape)
    need(not (moved < found).all(), "`compared` has the wrong sign: a record's score falls when its loss under the "
                                    "target falls.")
    need((moved > found).all(), "`compared` does not rise when the loss under the target falls.")


def usual(work, rng):
    """A record that is hard for every model is not taken for a stranger."""
    loss, members = bank(rng)
    found = numbers(work, "compared", loss, members, 4, shape=(loss.shape[1],), what="one score for each record")
    harder = loss + rng.uniform(0, 9, loss.shape[1])
    need(same(numbers(work, "compared", harder, members, 4, shape=found.shape), found, 2e-3),
         "`compared` changes when a record becomes harder for all models alike. What all models say of it is not about the "
         "target.")


def strangers(work, rng):
    """References say what is usual of records that they did not read."""
    loss, members = bank(rng)
    others = np.arange(len(loss)) // 2 != 1
    found = numbers(work, "compared", loss, members, 2, shape=(loss.shape[1],), what="one score for each record")
    known = np.where(members & others[:, None], loss - 5, loss)
    need(same(numbers(work, "compared", known, members, 2, shape=found.shape), found),
         "`compared` changes with what references say of records that they have read. Those know the record as a member does.")


def _benchmark(rng, different, records=200, words=40):
    """Counts of words in records of 5 to 60; members' words are from another distribution if `different`."""
    members, known = (rng.permutation(np.arange(records) < records // 2) for _ in range(2))
    laws = rng.dirichlet(np.ones(words), 2)
    counts = np.stack([rng.multinomial(rng.integers(5, 61), laws[int(one and different)]) for one in members])
    return counts, members, known


def _told(work, counts, members, known):
    scores = numbers(work, "blind", counts, members, known, shape=members.shape, what="one score for each record")
    return scores[~known]


def secret(work, rng):
    """Who is a member among the records that are judged is not looked at."""
    counts, members, known = _benchmark(rng, True)
    hidden = members.copy()
    hidden[~known] = rng.permutation(members[~known])
    need(same(_told(work, counts, hidden, known), _told(work, counts, members, known)),
         "`blind` gives other scores when membership of the records that are judged is shuffled. That is what it has to find "
         "out: learn from `known` records alone.")


def words(work, rng):
    """Where members have other words than others, the words tell."""
    counts, members, known = _benchmark(rng, True)
    area = auc(_told(work, counts, members, known), members[~known])
    need(not area < 0.25, f"`blind` has the wrong sign: members have other words than others, and its AUC is {area:.2f}.")
    need(area > 0.75, f"`blind`: members have other words than others, and its AUC is {area:.2f}. Which words are more common "
                      "among members *than* among others? Is it the length that it looks at?")


def chance(work, rng):
    """Where members are drawn at random, it is guessing."""
    found = []
    for _ in range(20):
        counts, members, known = _benchmark(rng, False)
        found.append(auc(_told(work, counts, members, known), members[~known]))
    area = np.mean(found)
    need(abs(area - 0.5) < 0.06, f"`blind`: members and others are drawn at random, and its AUC is {area:.2f} on average. "
                                 "Words tell nothing there. From which records did it learn?")


CHECKS = [loss, least, single, independence, blindness, direction, usual, strangers, secret, words, chance]
