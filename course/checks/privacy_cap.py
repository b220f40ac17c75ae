"""Checks of `privacy_cap`."""

import numpy as np

from checks import need, numbers, same

GRID = np.linspace(0, 1, 201)


def _cap(work, fpr, epsilon, delta=0.0):
    fpr = np.asarray(fpr, float)
    return numbers(work, "tpr_cap", fpr, epsilon, delta, shape=fpr.shape, what="one TPR for each FPR")


def no_leak(work, rng):
    """With epsilon = 0 and delta = 0 nothing is better than a coin."""
    need(same(_cap(work, GRID, 0.0), GRID), "`tpr_cap`: with ε = 0 the model says nothing about a record, and a coin "
                                            "finds as many members as it accuses strangers. Your cap is something "
                                            "else.")


def rate(work, rng):
    """The cap is a rate, and no lower than a coin's."""
    epsilon = rng.uniform(0.5, 3)
    found = _cap(work, GRID, epsilon)
    need((found <= 1 + 1e-6).all(), f"`tpr_cap`: with ε = {epsilon:.2f} it goes up to {found.max():.3g}. No rate is "
                                    f"above one.")
    need((found >= GRID - 1e-6).all(), "`tpr_cap` falls below the coin, which anybody can throw. Has ε the right sign?")
    need((np.diff(found) >= -1e-6).all(), "`tpr_cap` falls where the FPR rises. Who may accuse more finds no fewer.")


def response(work, rng):
    """Randomised response attains the cap, so it cannot be lower there."""
    p = rng.uniform(0.6, 0.95)
    epsilon = float(np.log(p / (1 - p)))
    corner = float(_cap(work, np.array([1 - p]), epsilon)[0])
    need(same(corner, p, 1e-3), f"`tpr_cap`: who answers the truth with probability {p:.3f}, and lies otherwise, is "
                                f"ε-private with ε = log({p:.3f}/{1 - p:.3f}) = {epsilon:.3f}, and has a TPR of {p:.3f} "
                                f"at an FPR of {1 - p:.3f}. Your cap there is {corner:.3f}. Base of the logarithm, or 1 "
                                "+ ε for its exponential?")


def misses(work, rng):
    """Strangers are protected as members are."""
    p = rng.uniform(0.6, 0.9)
    epsilon = float(np.log(p / (1 - p)))
    fpr = np.linspace(1 - p, 1, 9)[1:-1]
    found = _cap(work, fpr, epsilon)
    need(not same(found, np.ones(7), 1e-3), "`tpr_cap`: beyond a modest FPR you allow everyone to be found. Membership "
                                            "and non-membership can be exchanged in the definition of privacy; what "
                                            "does that say about those who are *missed*?")
    need(same(found, np.interp(fpr, [1 - p, 1], [p, 1]), 1e-3), "`tpr_cap`: on the right of randomised response only "
                                                                "the straight line to (1, 1) is allowed, by exchanging "
                                                                "members and strangers in the definition. Yours is "
                                                                "another curve.")


def with_delta(work, rng):
    """A delta adds what it may, and no more."""
    found = _cap(work, np.array([0.0, 0.1]), 1.0, 0.05)
    need(not same(found, _cap(work, np.array([0.0, 0.1]), 1.0, 0.0), 1e-6), "`tpr_cap` does not use δ.")
    need(same(found[0], 0.05, 1e-3), f"`tpr_cap`: at an FPR of zero δ = 0.05 still lets 5 % be found. Yours is "
                                     f"{found[0]:.3g}.")
    need(same(_cap(work, np.array([1.0, 0.99]), 1.0, 0.05), [1, 1], 1e-3) and (_cap(work, GRID, 2.0, 0.3) <= 1 + 1e-6).all(),
         "`tpr_cap` with a δ leaves the rates near the right end.")


def area(work, rng):
    """The largest AUC is the area under the cap."""
    for epsilon, under in ((0.0, 0.5), (0.5, 0.62246), (1.2, 0.76852), (2.5, 0.92414)):
        found = float(numbers(work, "auc_cap", epsilon, what="one number"))
        need(abs(found - under) < 2e-3, f"`auc_cap`: at ε = {epsilon} it is {found:.3f}, and the area under the curve that is "
             f"allowed is {under:.3f}.{' No area in the unit square is larger than one.' if found > 1 else ''}")


# TPR, FPR, δ of attacks that lie on the cap, and its ε
ON_THE_CAP = ((0.060413, 0.03, 0.0, 0.7), (0.201375, 0.1, 0.0, 0.7), (0.801366, 0.6, 0.0, 0.7),
              (0.241672, 0.03, 0.02, 2.0), (0.758906, 0.1, 0.02, 2.0), (0.948573, 0.6, 0.02, 2.0))


def inverse(work, rng):
    """What an attack proves about epsilon turns the cap round."""
    for tpr, fpr, delta, epsilon in ON_THE_CAP:
        found = float(numbers(work, "epsilon_at_least", tpr, fpr, delta, what="one number"))
        need(abs(found - epsilon) < 5e-3, f"`epsilon_at_least`: an attack with a TPR of {tpr:.3f} at an FPR of {fpr} lies on "
             f"the cap for ε = {epsilon}, δ = {delta}, so that is what it proves. Yours is {found:.3f}."
             f"{' Look at those who are missed, too.' if fpr > 0.5 else ''}")
    found = float(numbers(work, "epsilon_at_least", 0.1, 0.1, 0.0))
    need(same(found, 0), "`epsilon_at_least`: a coin proves nothing, so ε ≥ 0 is all that it shows.")
    found = float(numbers(work, "epsilon_at_least", 0.05, 0.2, 0.1))
    need(found >= 0, "`epsilon_at_least` is negative for a bad attack. It proves nothing, and ε ≥ 0 was known.")


CHECKS = [no_leak, rate, response, misses, with_delta, area, inverse]
