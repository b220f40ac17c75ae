"""Checks of `lira`."""

from itertools import product
from statistics import NormalDist

import numpy as np

from checks import Wrong, bank, blind, need, numbers, same


def _sides(score, members, record, without):
    rest = [m for m in range(len(score)) if m not in without]
    values, is_member = score[rest, record], members[rest, record]
    return values[is_member], values[~is_member]


def blindness(work, rng):
    """The attack sees neither the target's membership nor the other model of its pair."""
    score, members = bank(rng, models=16)
    for target in (0, 7):
        blind(work, "lira", score, members, target)


def direction(work, rng):
    """Where references trained on the record score higher, a high score speaks for a member."""
    records = 40
    members = bank(rng, 16, records)[1]
    score = rng.normal(size=(16, records)) * 0.5 + np.where(members, 3.0, 0.0)
    low, high = score.copy(), score.copy()
    low[1], high[1] = 0.0, 3.0
    low, high = (numbers(work, "lira", one, members, 1, shape=(records,), what="one score for each record")
                 for one in (low, high))
    need(not (high < low).mean() > 0.9, "`lira` has the wrong sign: a record that looks as under references trained on "
                                        "it gets the lower score. Which of the two densities belongs on top?")
    need((high > low).mean() > 0.9, "`lira` does not tell a record that looks like a member from one that looks like a "
                                    "stranger.")


def units(work, rng):
    """The unit in which scores are measured does not matter."""
    score, members = bank(rng, models=16)
    found = numbers(work, "lira", score, members, 3, shape=(score.shape[1],))
    stretched = numbers(work, "lira", score * 7.5, members, 3, shape=found.shape)
    need(same(stretched, found, 2e-3), "`lira` changes when all scores are multiplied by the same number. A ratio of "
                                       "two densities does not. Does every deviation stand where a deviation belongs, "
                                       "and every variance where a variance does?")
    need(same(numbers(work, "lira", score + 3.0, members, 3, shape=found.shape), found, 2e-3),
         "`lira` changes when the same number is added to all scores. Is the mean taken off on both sides?")


def own_normals(work, rng):
    """Every record has two normal distributions of its own."""
    score, members = bank(rng, models=16)
    found = numbers(work, "lira", score, members, 2, shape=(score.shape[1],))
    moved = score.copy()
    moved[np.arange(16) != 2, 5] += rng.normal(size=15) * 2
    other = numbers(work, "lira", moved, members, 2, shape=found.shape)
    need(same(np.delete(other, 5), np.delete(found, 5)),
         "`lira`: references' scores of one record change the answer for other records. Along which axis are mean and "
         "deviation taken?")
    need(not same(other[5], found[5]), "`lira` does not look at the references' scores of a record.")


def ratio(work, rng):
    """The score is the logarithm of the ratio of the two densities, whichever models are the references."""
    score, members = bank(rng, models=16)
    found = numbers(work, "lira", score, members, 6, shape=(score.shape[1],))
    expected, spread = [], []
    for ddof, without in product((0, 1), ({6, 7}, {6}, set())):
        made = []
        for record in range(score.shape[1]):
            sides = _sides(score, members, record, without)
            densities = [NormalDist(float(side.mean()), float(side.std(ddof=ddof))).pdf(float(score[6, record]))
                         for side in sides]
            made.append([np.log(max(one, 1e-300)) for one in densities])
            spread.append(np.log(sides[0].std() / sides[1].std()))
        expected.append(np.subtract(*np.transpose(made)))
    spread = np.reshape(spread, (len(expected), -1))
    keep = np.abs(expected[0]) < 40  # farther out, who keeps a density from being zero may differ
    if any(same(found[keep], one[keep], 5e-3) for one in expected):
        return
    need(not any(same(np.log(np.abs(found[keep]) + 1e-300), one[keep], 5e-3) for one in expected),
         "`lira` returns the ratio itself. Its logarithm orders the records in the same way, and does not overflow.")
    need(not any(same(found[keep], one[keep], 5e-3) for one in expected + spread),
         "`lira` compares how far the score is from two means, but a wide density is also a low one: the factor in "
         "front of the exponential is missing.")
    raise Wrong("`lira` is not the log ratio of two normal densities with mean and standard deviation of the "
                "references that were trained on the record, and of those that were not. Try one record by hand.")


CHECKS = [blindness, direction, units, own_normals, ratio]
