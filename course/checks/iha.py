"""Checks of `iha`."""

import numpy as np

from checks import need, numbers, same


def _case(rng, records=40, parameters=5):
    gradients = rng.normal(size=(records, parameters))
    a = rng.normal(size=(parameters, parameters))
    members = np.zeros(records, bool)
    members[:records // 2] = True
    return rng.exponential(size=records), gradients, a @ a.T / parameters, rng.permutation(members)


def _score(work, loss, gradients, H, members, rate=0.1, damping=0.2):
    return numbers(work, "iha", loss, gradients, H, members, rate, damping, shape=loss.shape, what="one score for each "
    "record")


def others_of_a_stranger(work, rng):
    """Of a non-member the others are the whole training set."""
    _, g, _, members = _case(rng)
    found = numbers(work, "others", g, members, shape=g.shape, what="one mean gradient for each record")
    outside = found[~members]
    need(same(outside, np.broadcast_to(outside[0], outside.shape)), "`others`: non-members have different others. "
                                                                    "Their gradients were never part of the training "
                                                                    "set's, so nothing has to be taken out.")
    moved = g.copy()
    moved[~members] += 1
    need(same(numbers(work, "others", moved, members, shape=g.shape)[~members], outside),
         "`others`: gradients of non-members count in the mean. The model was trained on members only.")
    need(same(outside[0] * members.sum(), g[members].sum(0), 1e-3), "`others`: of a non-member it is not the mean "
                                                                    "gradient of the members. By how many is the sum "
                                                                    "divided?")


def others_of_a_member(work, rng):
    """Of a member the others are the training set without it."""
    _, g, _, members = _case(rng)
    found = numbers(work, "others", g, members, shape=g.shape)
    k = int(np.flatnonzero(members)[3])
    moved = g.copy()
    moved[k] += 5
    again = numbers(work, "others", moved, members, shape=g.shape)
    need(same(found[k] * members.sum(), g[members].sum(0) - g[k], 1e-3) or not same(again[k], found[k]),
         "`others`: of a member the sum over the other members is still divided by the size of the training set.")
    need(same(again[k], found[k]), "`others`: a member's own gradient is among its others. What is left of the "
                                   "training set's mean when one record is taken out?")
    other = int(np.flatnonzero(members)[0])
    need(not same(again[other], found[other]), "`others`: members do not count among the others of other members.")


def products(work, rng):
    """The loss enters as it is, and gradients only in products of two."""
    loss, g, H, members = _case(rng)
    found = _score(work, loss, g, H, members)
    k = int(np.flatnonzero(~members)[0])
    inert = g.copy()
    inert[k] = 0.0
    need(same(_score(work, loss, inert, H, members)[k], loss[k]), "`iha`: a record without any gradient moved nothing, "
                                                                  "so its loss is all that is left of its score. Yours "
                                                                  "is something else.")
    need(same(_score(work, loss + 1, g, H, members), found + 1), "`iha`: with one more nat of loss for everybody, "
                                                                 "scores do not rise by one.")
    need(same(found, _score(work, loss, -g, H, members)), "`iha` changes when all gradients are turned round. Only "
                                                          "products of two gradients may be left.")


def rotation(work, rng):
    """Turning the axes of the parameters changes nothing."""
    loss, g, H, members = _case(rng)
    Q = np.linalg.qr(rng.normal(size=H.shape))[0]
    need(same(_score(work, loss, g @ Q, Q.T @ H @ Q, members), _score(work, loss, g, H, members), 2e-3),
         "`iha` changes when parameters are named along other axes. Are the products those of matrices and vectors, "
         "and is the inverse that of the matrix rather than of its entries?")


def newton(work, rng):
    """In one parameter the score is what a pencil gives."""
    loss, members = np.array([0.5, 0.25, 1.0]), np.array([True, True, False])
    g, H = np.array([[2.0], [-1.0], [3.0]]), np.array([[0.8]])
    found = _score(work, loss, g, H, members, 0.5, 0.2)  # curvature and damping make one
    # others: -1/2, 1, 1/2. I1 = g^2 / 2; I2 = 2 g others
    expected = loss - (np.array([2.0, 0.5, 4.5]) + np.array([-2.0, -2.0, 3.0])) / 0.5
    need(not same(found, 2 * loss - expected), "`iha` has the wrong sign: what stands in brackets is taken off the loss, "
                                               "not added.")
    whole = loss - (np.array([2.0, 0.5, 4.5]) + np.array([2.0, -1.0, 3.0])) / 0.5
    need(not same(found, whole), "`iha`: the record's own gradient is among those of the others. Is `others` used?")
    need(not same(found, loss - (np.array([1.0, .5, 1.5]) + np.array([-2.0, -2.0, 3.0])) / 0.5),
         "`iha`: the *length* of the Newton step stands where its square belongs.")
    undamped = loss - (np.array([2.0, 0.5, 4.5]) + np.array([-2.0, -2.0, 3.0])) / 0.64 / 0.5
    need(not same(found, undamped), "`iha` does not use the damping.")
    need(same(found, expected), "`iha`: with one parameter, a curvature of 0.8, damping 0.2 and a learning rate of "
                                f"0.5, three records get {np.round(found, 3)}. Do these three with a pencil: curvature "
                                "and damping add up to one.")


def damping(work, rng):
    """An infinite damping leaves the loss alone."""
    loss, g, H, members = _case(rng)
    found = _score(work, loss, g, H, members, 0.1, 1e9)
    need(same(found, loss, 1e-3), "`iha`: with a huge damping the Newton steps vanish, and only the loss is left. Yours "
                                  "is not the loss.")


CHECKS = [others_of_a_stranger, others_of_a_member, newton, products, rotation, damping]
