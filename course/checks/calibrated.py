"""Checks of `calibrated`."""

import numpy as np

from checks import bank, blind, need, numbers, same


def blindness(work, rng):
    """The attack sees neither the target's membership nor the other model of its pair."""
    score, members = bank(rng)
    for target in (0, 5):
        blind(work, "calibrated", score, members, target)


def direction(work, rng):
    """A higher score under the target makes a member more likely."""
    score, members = bank(rng)
    found = numbers(work, "calibrated", score, members, 2, shape=(score.shape[1],), what="one score for each record")
    for k in np.argmax(members[2]), np.argmin(members[2]):
        more = score.copy()
        more[2, k] += 1
        moved = numbers(work, "calibrated", more, members, 2, shape=found.shape)
        need(moved[k] >= found[k], "`calibrated` has the wrong sign: a record's score falls when its score under the target "
                                   "rises.")
        need(moved[k] > found[k], "`calibrated` does not look at the target's own scores.")
        need(same(np.delete(moved, k), np.delete(found, k)), "`calibrated`: the score of one record changes those of "
                                                             "others. Is the mean taken along the right axis?")
        need(same(moved[k] - found[k], 1), "`calibrated`: the record's score under the target rose by 1 and the calibrated "
                                           f"one by {moved[k] - found[k]:.3f}. Is the target among its own references, or "
                                           "is the difference divided by something?")


def strangers(work, rng):
    """A reference that was trained on a record has no say in how hard it is."""
    score, members = bank(rng)
    found = numbers(work, "calibrated", score, members, 0, shape=(score.shape[1],))
    other = np.where(members, score + rng.normal(size=score.shape), score)
    other[0] = score[0]
    need(same(numbers(work, "calibrated", other, members, 0, shape=found.shape), found),
         "`calibrated`: references that were trained on the record count. What they say is how a *member* looks; the "
         "difficulty is what models say that never saw the record.")


def difficulty(work, rng):
    """What all references agree on is taken off."""
    score, members = bank(rng)
    hard = rng.normal(size=score.shape[1])
    score[np.arange(len(score)) != 4] = hard
    found = numbers(work, "calibrated", score, members, 4, shape=hard.shape)
    need(not same(found, score[4] + hard), "`calibrated` adds the difficulty where it should take it away.")
    need(same(found, score[4] - hard), "`calibrated`: all references give a record the same score, so that is how hard "
                                       "it is. What is left when it is taken off is not what you return.")


def average(work, rng):
    """Where references differ, the difficulty is their mean."""
    score, members = bank(rng)
    found = numbers(work, "calibrated", score, members, 0, shape=(score.shape[1],))
    k, step = np.argmin(members[0]), 0.6  # the other of the pair was trained on it, so that it has no say in any case
    useful = np.flatnonzero(~members[2:, k]) + 2
    moved = score.copy()
    moved[useful[0], k] += step
    change = found[k] - numbers(work, "calibrated", moved, members, 0, shape=found.shape)[k]
    need(same(change, step / len(useful)), f"`calibrated`: {len(useful)} references may speak about the record; one of "
                                           f"them rose by {step}, and the score fell by {change:.3f}. That is not what "
                                           "a mean over them does.")


CHECKS = [blindness, direction, strangers, difficulty, average]
