"""Checks of `threshold`."""

import numpy as np

from checks import need, numbers, same


def _case(rng, records=4000, gain=1.0):
    members = rng.random(records) < 0.5
    score = rng.normal(size=records) + gain * members
    aside = rng.random(records) < 0.5
    return score, members, aside


def level(work, rng):
    """The threshold leaves the promised share of strangers above it."""
    score = rng.normal(size=2000) ** 3
    for fpr in (0.01, 0.05, 0.2):
        bar = numbers(work, "threshold", score, fpr, what="one number")
        above = float((score > bar).mean())
        need(not abs(above - (1 - fpr)) < 0.003, f"`threshold`: with a rate of {fpr:.0%} it leaves {above:.1%} of the "
                                                 "strangers *above*. Accused are those with the highest scores, and "
                                                 "they are to be few.")
        need(abs(above - fpr) < 0.003, f"`threshold`: asked for a false positive rate of {fpr:.0%}, {above:.1%} of the "
                                       "strangers are above it.")


def scale(work, rng):
    """Stretching all scores stretches the threshold."""
    score = rng.normal(size=1000)
    bar, stretched = (numbers(work, "threshold", one, 0.1) for one in (score, 3 * score + 10))
    need(same(stretched, 3 * bar + 10), "`threshold`: with all scores tripled and raised by ten it is not tripled and "
                                        "raised by ten. It has to lie among the scores, and no formula for a bell "
                                        "curve does that for any scores.")


def aside_alone(work, rng):
    """The threshold comes from strangers set aside, and from nothing else."""
    score, members, aside = _case(rng)
    wild = score.copy()
    wild[~aside & ~members] += 100
    fpr = numbers(work, "rates", wild, members, aside, 0.05, shape=(2,), what="(TPR, FPR)")[1]
    need(fpr > 0.99, "`rates`: every stranger of the test was given a score far above all that were set aside, so all "
                     f"are accused, and you report a false positive rate of {fpr:.1%}. Were the records that are judged "
                     "used to choose the threshold?")
    wild = score.copy()
    wild[aside & members] += 100
    need(same(numbers(work, "rates", wild, members, aside, 0.05, shape=(2,)),
              numbers(work, "rates", score, members, aside, 0.05, shape=(2,))),
         "`rates` changes with the scores of *members* that were set aside. A false positive rate is about strangers only.")


def judged_alone(work, rng):
    """Rates are counted on the records that were not set aside."""
    score, members, aside = _case(rng, gain=0.0)
    score[~aside & members] += 100
    tpr, fpr = numbers(work, "rates", score, members, aside, 0.05, shape=(2,))
    need(tpr > 0.99, f"`rates`: every member that is judged lies far above the threshold, and you report that {tpr:.1%} "
                     "of them are found. Are records that were set aside counted as well, or all records in the place "
                     "of members?")
    need(fpr < 0.12, f"`rates`: few strangers are above the threshold, and you report that {fpr:.1%} of them are "
                     "accused. Of whom is it a share?")


def coin(work, rng):
    """An attack that knows nothing finds as many members as it accuses strangers."""
    score, members, aside = _case(rng, 20000, gain=0.0)
    for rate in (0.02, 0.1):
        tpr, fpr = numbers(work, "rates", score, members, aside, rate, shape=(2,))
        need(not 0.4 < tpr < 0.6, f"`rates`: scores that know nothing find {tpr:.0%} of the members at a false positive "
                                  f"rate of {rate:.0%}? Guessing has an *area* of one half, and a precision of one "
                                  "half. Neither is the TPR.")
        need(abs(tpr - rate) < 0.03 and abs(fpr - rate) < 0.03,
             f"`rates`: for scores that know nothing, at a false positive rate of {rate:.0%}, you report a TPR of "
             f"{tpr:.1%} and an FPR of {fpr:.1%}. Both should be near {rate:.0%}.")


def honest(work, rng):
    """The rate that is reported is the one that was found, not the one that was promised."""
    score, members, aside = _case(rng)
    rates = [numbers(work, "rates", score, members, rng.permutation(aside), 0.05, shape=(2,)) for _ in range(12)]
    need(np.ptp([fpr for _, fpr in rates]) > 0, "`rates` reports the same false positive rate whichever records are "
                                                "set aside. Count it on the records that are judged; it is near the "
                                                "promise, not equal to it.")


CHECKS = [level, scale, aside_alone, judged_alone, coin, honest]
