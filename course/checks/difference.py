"""Checks of `difference`."""

import numpy as np

from checks import auc as twin
from checks import need, numbers, same

DRAWS = 1


def _case(rng, n=200, gain=1.0, shared=0.9):
    members = rng.permutation(np.arange(n) < n // 2)
    common = rng.normal(size=n)
    a, b = (shared * common + np.sqrt(1 - shared**2) * rng.normal(size=n) + gain * members for _ in range(2))
    return a, b, members


def _ends(work, a, b, members, draws=100, seed=0):
    low, high = numbers(work, "difference", a, b, members, draws, np.random.default_rng(seed), shape=(2,), what="(low, "
    "high)")
    need(low <= high, "`difference` returns (low, high), the lower end first.")
    return float(low), float(high)


def area(work, rng):
    """The AUC is the share of pairs in the right order."""
    members = np.array([1, 1, 0, 0], bool)
    for scores, right in (([4.0, 3, 2, 1], 1.0), ([1.0, 2, 3, 4], 0.0), ([4.0, 2, 3, 1], 0.75)):
        found = float(numbers(work, "auc", np.array(scores), members, what="one number"))
        need(not (right != 0.5 and same(found, 1 - right) and not same(found, right)),
             f"`auc` counts the wrong way: members have {scores[:2]}, others {scores[2:]}, and you say {found}.")
        need(same(found, right), f"`auc`: members have {scores[:2]}, others {scores[2:]}. Of the four pairs of one of "
                                 f"each, {right:.0%} are in the right order; you say {found:.3g}.")
    a, _, members = _case(rng)
    need(same(numbers(work, "auc", a, members), twin(a, members), 1e-3), "`auc` is wrong for many records, though right "
         "for four.")
    need(same(numbers(work, "auc", np.exp(a), members), numbers(work, "auc", a, members)), "`auc` changes under a map "
         "that keeps the order.")


def ties(work, rng):
    """Where all scores are equal the AUC is one half."""
    found = float(numbers(work, "auc", np.zeros(8), np.arange(8) < 3))
    need(same(found, 0.5), f"`auc` of eight equal scores is {found}. A tie is neither right nor wrong: it counts half.")


def identical(work, rng):
    """An attack does not differ from itself, in no sample of records."""
    a, _, members = _case(rng)
    low, high = _ends(work, a, a, members)
    need(low == high == 0, f"`difference` of an attack and itself is ({low:.3f}, {high:.3f}). Both attacks are judged "
                           "on the same records: do they get the *same* draw, each time?")


def sides(work, rng):
    """The difference of the better less the worse attack is positive."""
    a, b, members = _case(rng, 200, 0.3)
    low, high = _ends(work, a + 3 * members, b, members)
    need(not high < 0, "`difference` has the wrong sign: the first attack is the better one.")
    need(low > 0, f"`difference`: the first attack is far better, and its interval ({low:.3f}, {high:.3f}) does not say "
                  f"so.")


def around(work, rng):
    """The interval lies around the difference that was measured."""
    a, b, members = _case(rng)
    a = a + members
    measured = float(np.subtract(*(numbers(work, "auc", one, members) for one in (a, b))))
    low, high = _ends(work, a, b, members, 200)
    need(low - 0.01 < measured < high + 0.01,
         f"`difference`: {measured:.4f} was measured, and your interval is ({low:.4f}, {high:.4f}).")


def width(work, rng):
    """The interval is as wide as differences scatter."""
    def once():
        a, b, members = _case(rng)
        return twin(a, members) - twin(b, members)

    spread = 2 * 1.96 * np.std([once() for _ in range(300)])
    made = np.median([high - low for low, high in (_ends(work, *_case(rng), 200, k) for k in range(7))])
    need(made > 0.78 * spread, f"`difference`: an interval of 95 % should be about {spread:.4f} wide for these records, "
                               f"and yours is {made:.4f}. Was a variance taken for a deviation, or something divided by "
                               "the root of the number of draws? Draws are not records. And is it the middle 95 %?")
    need(made < 1.5 * spread, f"`difference`: an interval of 95 % should be about {spread:.4f} wide for these records, "
                              f"and yours is {made:.4f}. Do both attacks see the same draw? Is it the middle 95 %?")


CHECKS = [area, ties, identical, sides, around, width]
