"""Checks of `winner`."""

import numpy as np

from checks import auc, need, numbers

DRAWS = 1


def _case(rng, attacks=6, n=120, gain=0.0):
    members = rng.permutation(np.arange(n) < n // 2)
    scores = rng.normal(size=(attacks, n))
    scores[rng.integers(attacks)] += gain * members
    half = rng.permutation(np.arange(n) % 2 == 0)
    return scores, members, half


def _two(work, scores, members, half):
    place, area = numbers(work, "headline", scores, members, half, shape=(2,), what="(number of the attack, AUC)")
    need(place == int(place) and 0 <= place < len(scores),
         f"`headline` of {len(scores)} attacks chooses number {place:g}. Attacks are numbered from 0.")
    return int(place), float(area)


def _p(work, scores, members, draws=99, seed=0):
    p = float(numbers(work, "chance", scores, members, draws, np.random.default_rng(seed), what="one number"))
    need(0 <= p <= 1, f"`chance` says {p:g}. How often something happens lies between 0 and 1.")
    return p


def chosen(work, rng):
    """The attack that is best on the given half is chosen."""
    scores, members, half = _case(rng)
    scores[1][half] += 9 * members[half]
    scores[4][~half] += 99 * members[~half]
    scores[5] += 3 * members
    scores[2][half] -= 9 * members[half]
    place, _ = _two(work, scores, members, half)
    need(place != 2, "`headline` chooses the attack whose AUC is 0 on the half that the choice is made on: the worst one.")
    need(place != 4, "`headline` chooses an attack that is excellent on the records it is judged on, and no good on the half "
                     "that the choice is to be made on. Who may not look at the other half?")
    need(place == 1, f"`headline` chooses number {place}; on the half that the choice is made on number 1 is perfect.")


def judged(work, rng):
    """Its AUC is counted on the other half."""
    scores, members, half = _case(rng, n=400)
    scores[3][half] += 9 * members[half]
    for shift in (0, 9):
        scores[3][~half] += shift * members[~half]
        right = auc(scores[3][~half], members[~half])
        place, area = _two(work, scores, members, half)
        need(place == 3, f"`headline` chooses number {place}; on the half that the choice is made on number 3 is perfect.")
        need(abs(area - right) < 2e-3, f"`headline` reports {area:.3f}. The chosen attack has an AUC of {right:.3f} on the "
                                       "records that it was not chosen on. Which records, which attack and which measure "
                                       "is yours of?")


def luck(work, rng):
    """For attacks that know nothing it is one half on average."""
    found = np.mean([_two(work, *_case(rng, 20, 60))[1] for _ in range(60)])
    need(abs(found - 0.5) < 0.06, "`headline`: the best of twenty attacks that know nothing should have an AUC of about one "
                                  f"half on records that it was not chosen on. Yours has {found:.2f} on average.")


def fair(work, rng):
    """Where no attack knows anything every p is as likely as any other."""
    found = np.mean([_p(work, *_case(rng, 8, 40)[:2], 19, k) for k in range(50)])
    need(found > 0.3, "`chance`: for the best of eight attacks that know nothing p should be one half on average, and yours "
                      f"is {found:.2f}. When membership is shuffled, is it the best of eight as well?")
    need(found < 0.7, "`chance`: for the best of eight attacks that know nothing p should be one half on average, and yours "
                      f"is {found:.2f}.")


def leak(work, rng):
    """Where one attack knows something p is small."""
    scores, members, _ = _case(rng, gain=4.0)
    p = _p(work, scores, members)
    need(not p > 0.9, f"`chance`: one attack is nearly perfect, and p is {p:.2f}. It says how often chance does *as well*, "
                      "not how often it does worse.")
    need(p < 0.03, f"`chance`: one attack is nearly perfect, no shuffled membership comes near it, and p is {p:.2f}. Does "
                   "shuffling really take apart who is a member and what the scores are?")


def copies(work, rng):
    """Eight copies of an attack have no more luck than one."""
    gaps = []
    for k in range(25):
        scores, members, _ = _case(rng, 1, 60, 0.35)
        gaps.append(_p(work, np.repeat(scores, 8, 0), members, 39, k) - _p(work, scores, members, 39, k))
    need(abs(np.mean(gaps)) < 0.08, f"`chance`: eight copies of one attack get a p that differs by {abs(np.mean(gaps)):.2f} "
                                    "from that of the attack alone. In a shuffled world, is the same record a member for "
                                    "all attacks?")


def constant(work, rng):
    """An attack that says the same of everybody is never better than chance."""
    _, members, _ = _case(rng)
    p = _p(work, np.zeros((3, len(members))), members)
    need(p > 0.99, "`chance`: where all scores are equal every shuffled world is *as good as* the real one, so p is 1; yours "
                   f"is {p:.2f}.")


CHECKS = [chosen, judged, luck, fair, leak, copies, constant]
