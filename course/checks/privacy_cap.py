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
    for epsilon in (0.0, 0.5, float(rng.uniform(1, 3))):
        found = float(numbers(work, "auc_cap", epsilon, what="one number"))
        fine = np.linspace(0, 1, 20001)
        cap = _cap(work, fine, epsilon)
        under = float(((cap[1:] + cap[:-1]) / 2).mean())
        need(abs(found - under) < 2e-3, f"`auc_cap`: at ε = {epsilon:.2f} it is {found:.3f}, and the area under your own "
                                        f"`tpr_cap` is {under:.3f}. "
             f"{'The TPR at one point is no area.' if found < 1 else 'No area in the unit square is larger than one.'}")


def inverse(work, rng):
    """What an attack proves about epsilon turns the cap round."""
    for epsilon, delta in ((0.7, 0.0), (float(rng.uniform(1, 3)), 0.02)):
        fpr = np.array([0.03, 0.1, 0.6])
        for f, t in zip(fpr, _cap(work, fpr, epsilon, delta), strict=True):
            found = float(numbers(work, "epsilon_at_least", float(t), float(f), delta, what="one number"))
            need(abs(found - epsilon) < 5e-3, f"`epsilon_at_least`: an attack with a TPR of {t:.3f} at an FPR of {f} "
                                              f"lies on your cap for ε = {epsilon:.3f}, δ = {delta}, so that is what it "
                                              "proves. Yours is "
                                              f"{found:.3f}.{' Look at those who are missed, too.' if f > 0.5 else ''}")
    found = float(numbers(work, "epsilon_at_least", 0.1, 0.1, 0.0))
    need(same(found, 0), "`epsilon_at_least`: a coin proves nothing, so ε ≥ 0 is all that it shows.")
    found = float(numbers(work, "epsilon_at_least", 0.05, 0.2, 0.1))
    need(found >= 0, "`epsilon_at_least` is negative for a bad attack. It proves nothing, and ε ≥ 0 was known.")


CHECKS = [no_leak, rate, response, misses, with_delta, area, inverse]
