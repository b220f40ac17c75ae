"""Checks of `quantile`."""

import numpy as np

from checks import call, need, numbers, same

DRAWS = 1


def _case(rng, n=3000):
    x = rng.uniform(-1, 1, (n, 2))
    return x, 1 + 2 * x[:, 0] - x[:, 1] + (0.6 + 0.4 * x[:, 0]) * rng.normal(size=n)


def _fitted(work, x, score, level):
    predict = call(work, "fit", x, score, level)
    need(callable(predict), "`fit` is to return a *function* that gives the thresholds of new records.")
    return lambda new: numbers({"what `fit` returns": predict}, "what `fit` returns", new, shape=(len(new),),
                               what="one threshold for each record")


def pinball_zero(work, rng):
    """The pinball loss is zero for a perfect prediction and above zero for any other."""
    score = rng.normal(size=50)
    need(same(numbers(work, "pinball", score, score, 0.9, what="one number"), 0), "`pinball`: a perfect prediction costs "
         "something.")
    once, twice = (numbers(work, "pinball", np.tile(score + 1, times), np.tile(score, times), 0.9) for times in (1, 2))
    need(same(once, twice), "`pinball`: of the records given twice it is not that of them given once, as a mean is.")
    for shift in (-0.5, 0.5):
        found = numbers(work, "pinball", score + shift, score, 0.9)
        need(found > 0, f"`pinball`: predictions that are {abs(shift)} too {'low' if shift < 0 else 'high'} cost "
                        f"{found:.3g}. An error must not be rewarded.")


def pinball_sides(work, rng):
    """With a high level, too low costs more than too high."""
    score = rng.normal(size=50)
    low, high = (float(numbers(work, "pinball", score + shift, score, 0.9)) for shift in (-1, 1))
    need(not same([low, high], [0.1, 0.9]), "`pinball` has its two sides exchanged: for a high quantile a prediction "
                                            "that is too *low* has to cost most.")
    need(same(low, 9 * high), f"`pinball` at the level 0.9: one too low costs {low:.3g}, one too high {high:.3g}. Nine "
                              f"times as much, it should be.")
    double = float(numbers(work, "pinball", score - 2, score, 0.9))
    need(same(double, 2 * low), "`pinball`: twice the error has to cost twice as much, not four times. It is a "
                                "quantile that is looked for, and squares give the mean.")


def pinball_quantile(work, rng):
    """The constant that costs least is the quantile."""
    score, grid = rng.exponential(size=400), np.linspace(0, 6, 601)
    for level in (0.5, 0.9):
        best = grid[np.argmin([numbers(work, "pinball", np.full(400, q), score, level) for q in grid])]
        need(abs(np.mean(score > best) - (1 - level)) < 0.02, f"`pinball` at the level {level}: the cheapest constant "
                                                              f"has {np.mean(score > best):.0%} of the scores above it, "
                                                              f"and {1 - level:.0%} it should be.")


def promise(work, rng):
    """On new strangers the thresholds keep their promise."""
    for level in (0.8, 0.95):
        x, score = _case(rng)
        new, of_new = _case(rng, 6000)
        above = float(np.mean(of_new > _fitted(work, x, score, level)(new)))
        need(not abs(above - level) < 0.03, f"`fit` at the level {level}: {above:.0%} of new strangers lie *above* the "
                                            "thresholds. Are the sides exchanged?")
        need(abs(above - (1 - level)) < 0.04, f"`fit` at the level {level}: of new strangers {above:.1%} lie above "
                                              f"their thresholds, where {1 - level:.0%} were promised. "
                                              f"{'A half above is what a mean has.' if abs(above - .5) < .05 else ''}")


def own_threshold(work, rng):
    """The promise is kept for all kinds of strangers, not only on average."""
    x, score = _case(rng)
    new, of_new = _case(rng, 8000)
    bars = _fitted(work, x, score, 0.9)(new)
    need(np.ptp(bars) > 0.1, "`fit` gives every record the same threshold: what is it given x for?")
    for name, part in (("small", new[:, 0] < -0.5), ("large", new[:, 0] > 0.5)):
        above = float(np.mean(of_new[part] > bars[part]))
        need(abs(above - 0.1) < 0.06, f"`fit`: of new strangers whose first feature is {name}, {above:.0%} lie above "
                                      "thresholds for 10 %. The spread of the scores changes with x as their mean "
                                      "does. Would one distance from the mean do for all?")


def counted(work, rng):
    """A false positive rate is a share of the strangers."""
    score, bars = np.array([3.0, 1, 3, 1, 3, 1, 1, 1, 1, 1]), np.full(10, 2.0)
    members = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 0], bool)
    tpr, fpr = numbers(work, "rates", score, bars, members, shape=(2,), what="(TPR, FPR)")
    need(not same(fpr, 1 / 3), "`rates`: that is the share of strangers *among the accused*. How many of the strangers "
                               "are accused?")
    need(not same(fpr, 0.1), "`rates`: the FPR is a share of the strangers, not of all records.")
    need(not same([tpr, fpr], [1 / 7, 2 / 3]), "`rates`: TPR and FPR are exchanged.")
    need(not same(tpr, 1 / 3), "`rates`: members *above* their threshold are found.")
    need(same(fpr, 1 / 7), f"`rates`: one of seven strangers is above its threshold, and you report {fpr:.3f}.")
    need(same(tpr, 2 / 3), f"`rates`: two of three members are above their thresholds, and you report {tpr:.3f}.")


CHECKS = [pinball_zero, pinball_sides, pinball_quantile, promise, own_threshold, counted]
