"""Checks of `malt_mast`."""

import numpy as np

from checks import need, numbers, same


def _case(rng, records=40, references=8):
    reference_members = np.zeros((references, records), bool)
    reference_members[:references // 2] = True
    reference_members = rng.permuted(reference_members, axis=0)
    hard = rng.exponential(size=records) + 0.2
    reference_loss = hard * rng.uniform(0.5, 1.5, (references, records)) * np.where(reference_members, 0.4, 1)
    return hard * rng.uniform(0.2, 1.5, records), reference_loss, reference_members


def malt_sign(work, rng):
    """MALT: a lower loss makes a member more likely."""
    loss = rng.permutation(np.cumsum(10 ** rng.uniform(-4, -0.7, 50)))  # some close together, and none the same in float32
    found = numbers(work, "malt", loss, shape=(50,), what="one score for each record")
    steps = np.diff(found[np.argsort(loss)])
    need(not (steps > 0).all(), "`malt` gives the highest score to the highest loss. Which records does a model know best, "
                                "those that it was trained on or others? Higher scores are to mean *member*.")
    need((steps <= 0).all(), "`malt` does not put the records in the order of their losses. One threshold for all needs "
                             "nothing but the loss.")
    need((steps < 0).all(), "`malt` gives records of different losses the same score. It is not to choose a threshold: who "
                            "uses the scores does.")


def malt_alone(work, rng):
    """MALT: the score of a record does not depend on the others."""
    loss = rng.exponential(size=30) + 0.1
    found = numbers(work, "malt", loss, shape=(30,))
    lowest = np.argsort(loss)[:10]
    need(same(numbers(work, "malt", loss[lowest], shape=(10,)), found[lowest]),
         "`malt` gives a record another score when fewer records are looked at. Its own loss is all that counts.")


def mast_sign(work, rng):
    """MAST: a lower loss under the target makes a member more likely."""
    loss, reference_loss, reference_members = _case(rng)
    found = numbers(work, "mast", loss, reference_loss, reference_members, shape=loss.shape, what="one score for each record")
    lower = numbers(work, "mast", loss - 0.1, reference_loss, reference_members, shape=loss.shape)
    need(not (lower < found).all(), "`mast` has the wrong sign: a record's score falls when its loss falls.")
    need((lower > found).all(), "`mast` does not raise every score when all losses under the target fall.")


def mast_own_threshold(work, rng):
    """MAST: every record has a threshold of its own."""
    loss, reference_loss, reference_members = _case(rng)
    found = numbers(work, "mast", loss, reference_loss, reference_members, shape=loss.shape)
    harder = reference_loss.copy()
    harder[:, 0] += 1
    moved = numbers(work, "mast", loss, harder, reference_members, shape=loss.shape)
    need(same(moved[1:], found[1:]), "`mast`: when *one* record is made harder for the references, scores of other "
                                     "records change. Is the mean taken along the right axis?")
    need(moved[0] != found[0], "`mast`: a record's score does not depend on how hard it is for the references.")
    need(moved[0] > found[0], "`mast` has the sign of the threshold wrong: the same loss is more surprising where "
                              "references find the record harder, and the score has to say so.")


def mast_shift(work, rng):
    """MAST: what makes a record harder for every model alike says nothing about membership."""
    loss, reference_loss, reference_members = _case(rng)
    found = numbers(work, "mast", loss, reference_loss, reference_members, shape=loss.shape)
    extra = rng.exponential(size=loss.size)
    moved = numbers(work, "mast", loss + extra, reference_loss + extra, reference_members, shape=loss.shape)
    need(same(moved, found), "`mast`: the same amount was added to a record's loss under the target and under every "
                             "reference, and its score changed. How far is the loss *from* what is typical? That does "
                             "not change.")


def mast_strangers(work, rng):
    """MAST: typical is the loss under references that were not trained on the record."""
    loss, reference_loss, reference_members = _case(rng)
    found = numbers(work, "mast", loss, reference_loss, reference_members, shape=loss.shape)
    other = np.where(reference_members, reference_loss + rng.exponential(size=reference_members.shape), reference_loss)
    need(same(numbers(work, "mast", loss, other, reference_members, shape=loss.shape), found),
         "`mast`: references that *were* trained on a record have a say in what is typical of it. Their loss is that of a "
         "member; the threshold is to say what it would be for a stranger. Look at `reference_members`.")
    constant = np.where(reference_members, 9.0, 0.7)
    made = numbers(work, "mast", loss, constant, reference_members, shape=loss.shape)
    need(same(made - made[0], loss[0] - loss), "`mast`: every reference that was not trained on a record has the same "
                                               "loss for it, so that is what is typical. The score is not how far the "
                                               "target's loss is from it.")


CHECKS = [malt_sign, malt_alone, mast_sign, mast_own_threshold, mast_shift, mast_strangers]
