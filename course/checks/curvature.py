"""Checks of `curvature`."""

import numpy as np

from checks import Wrong, need, numbers, same

DRAWS = 1


def _bowl(rng, n=6):
    a = rng.normal(size=(n, n))
    return a @ a.T / n, rng.normal(size=n), rng.normal()


class _Counted:
    def __init__(self, loss):
        self.loss, self.calls = loss, 0

    def __call__(self, x):
        if np.shape(x) != self.shape:
            raise ValueError(f"the loss was asked about an input of shape {np.shape(x)}")
        self.calls += 1
        return self.loss(np.asarray(x, float))

    shape = (6,)


def _quadratic(H, b=0.0, c=0.0):
    return _Counted(lambda x: float(x @ H @ x / 2 + np.sum(b * x) + c))


def sign(work, rng):
    """A bowl has a positive curvature, a hill a negative one."""
    x, v = rng.normal(size=6), rng.choice([-1.0, 1.0], 6)
    up = numbers(work, "four_points", _quadratic(np.eye(6)), x, v, v, 0.1, what="one number")
    down = numbers(work, "four_points", _quadratic(-np.eye(6)), x, v, v, 0.1)
    need(not (up < 0 < down), "`four_points` has the wrong sign: at the bottom of a bowl the loss rises on all sides, "
                              "and that counts as positive.")
    need(up > 0 > down, "`four_points` does not tell a bowl from a hill. Which of the four losses are added, which taken "
                        "off?")


def slope(work, rng):
    """Height and slope of the loss are no curvature."""
    H, b, c = _bowl(rng)
    x, u, v = rng.normal(size=6), *rng.choice([-1.0, 1.0], (2, 6))
    found = numbers(work, "four_points", _quadratic(H), x, u, v, 0.1)
    need(same(numbers(work, "four_points", _quadratic(H, 0, c), x, u, v, 0.1), found, 1e-3),
         "`four_points` changes when a constant is added to the loss. Do the signs of the four losses add up to zero?")
    need(same(numbers(work, "four_points", _quadratic(H, b), x, u, v, 0.1), found, 1e-3),
         "`four_points` changes when a plane is added to the loss. The four points have to lie around x so that all "
         "slopes cancel.")


def step(work, rng):
    """On a quadratic the step does not matter."""
    H, b, c = _bowl(rng)
    x, u, v = rng.normal(size=6), *rng.choice([-1.0, 1.0], (2, 6))
    values = [float(numbers(work, "four_points", _quadratic(H, b, c), x, u, v, h)) for h in (0.05, 0.1, 0.4)]
    need(np.ptp(values) <= 1e-3 * max(1, abs(values[0])), "`four_points`: on a quadratic loss the steps 0.05, 0.1 and "
                                                          f"0.4 give {values[0]:.3g}, {values[1]:.3g} and "
                                                          f"{values[2]:.3g}. A second difference grows with which power "
                                                          "of the step?")


def value(work, rng):
    """On a quadratic the four losses give the product with the Hessian exactly."""
    H, b, c = _bowl(rng)
    x, u, v = rng.normal(size=6), *rng.choice([-1.0, 1.0], (2, 6))
    found = float(numbers(work, "four_points", _quadratic(np.eye(6)), x, v, v, 0.1))
    need(same(found, 6), "`four_points`: the loss |x|²/2 has a Hessian of ones on the diagonal, so along u = v of six "
                         f"entries ±1 the product is 6. Yours is {found:.4g}, which is {found / 6:.4g} times as much: "
                         "look at the number before h².")
    found = numbers(work, "four_points", _quadratic(H, b, c), x, u, v, 0.1)
    need(same(found, u @ H @ v, 1e-3), "`four_points`: with different u and v it is not the product of both with the "
                                       "Hessian. Draw the four points: which of them lie along u + v, which along u − "
                                       "v?")


def queries(work, rng):
    """Four losses are asked for, no more."""
    loss = _quadratic(_bowl(rng)[0])
    numbers(work, "four_points", loss, rng.normal(size=6), *rng.choice([-1.0, 1.0], (2, 6)), 0.1)
    need(loss.calls <= 4, f"`four_points` asks for {loss.calls} losses. An attacker pays for each; four are enough.")


def trace(work, rng):
    """Many probes come close to the trace."""
    H, b, c = _bowl(rng)
    H = H + 2 * np.eye(6)
    made = np.mean([float(numbers(work, "trace", _quadratic(H, b, c), rng.normal(size=6), 800, 0.1,
                                  np.random.default_rng(rng.integers(2**32)), what="one number")) for _ in range(2)])
    true = float(np.trace(H))
    for factor, hint in ((36, "Who draws ±1 needs no factor of n²: that one belongs to vectors on the unit sphere."),
                         (6, "Is there a factor n too many?"), (1 / 6, "Is there a factor n too few?"),
                         (1 / 36, "Vectors on the unit sphere are short: for them a factor n² is missing."),
                         (800, "Is that the sum over the probes?"), (-1, "The sign is wrong.")):
        need(not abs(made / true / factor - 1) < 0.15, f"`trace` is about {factor:.3g} times the trace. {hint}")
    need(abs(made / true - 1) < 0.2, f"`trace`: with 800 probes it is {made / true:.2f} times the trace. In the mean "
                                     "over random probes only the diagonal of the Hessian must be left.")


def fresh(work, rng):
    """Every probe is drawn anew, from the generator that was given."""
    H = _bowl(rng)[0]
    H[0, 1] = H[1, 0] = 3.0
    x = rng.normal(size=6)
    values = [float(numbers(work, "trace", _quadratic(H), x, 3, 0.1, np.random.default_rng(seed))) for seed in (1, 1, 2, 3)]
    if values[0] != values[1]:
        raise Wrong("`trace` gives another answer with the same generator. Draw from `rng`, so that a result can be had "
                    "again.")
    need(len(set(np.round(values[1:], 9))) > 1, "`trace` gives the same answer whatever `rng` is. Are the probes random?")


CHECKS = [sign, slope, step, value, queries, trace, fresh]
