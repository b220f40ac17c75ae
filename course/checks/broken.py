"""Checks of `broken`."""

import numpy as np

from checks import auc, bank, blind, call, need, numbers


def _rest(score, target, without):
    return [m for m in range(len(score)) if m not in without]


def _make(leave_out, average, kind=np.float64):
    """An attack: its score less what references trained on the record, and others, score on average."""
    def attack(score, members, target):
        score = np.asarray(score, kind)
        rows = _rest(score, target, leave_out(target))
        reference_members = members[rows]
        mean_in, mean_out = (average(score[rows], side) for side in (reference_members, ~reference_members))
        return score[target] - (mean_in + mean_out) / 2

    return attack


def _mean(values, mask):
    return (values * mask).sum(0) / np.maximum(mask.sum(0), 1)


def _median(values, mask):
    return np.nan_to_num(np.nanmedian(np.where(mask, values, np.nan), 0))


def _pair(target):
    return {target, target ^ 1}


def _honest():
    yield "a mean over both kinds of references", _make(_pair, _mean)
    yield "the same with medians", _make(_pair, _median)
    yield "the same in float32", _make(_pair, _mean, np.float32)
    yield "the score alone", lambda score, members, target: score[target].copy()
    yield "an attack with the wrong sign, which is bad and honest", lambda score, members, target: -score[target]


def _leaking():
    yield "the published attack's fault in an attack with means", _make(lambda t: {t ^ 1}, _mean)
    yield "the same with medians", _make(lambda t: {t ^ 1}, _median)
    yield "nothing at all left out", _make(lambda t: set(), _mean)


def finds_the_bug(work, rng):
    """Your test finds the published attack guilty."""
    need(callable(work.get("published")), "There is no function `published` here. Run the first cells.")
    found = call(work, "leaks", work["published"])
    need(isinstance(found, bool | np.bool_), f"`leaks` is to return True or False, not {type(found).__name__}.")
    need(found, "`leaks` lets the published attack pass. What may no attack look at? Change just that, and see whether "
                "the scores change.")


def spares_the_honest(work, rng):
    """Your test does not accuse honest attacks."""
    for name, attack in _honest():
        need(not call(work, "leaks", attack), f"`leaks` accuses an honest attack ({name}). A high AUC, or none, proves "
                                              "nothing; a score that depends on what it may not know does.")


def finds_others(work, rng):
    """Your test finds the same fault in other attacks."""
    for name, attack in _leaking():
        need(call(work, "leaks", attack), f"`leaks` does not notice {name}.")


def repaired_is_blind(work, rng):
    """The repaired attack does not know the solution."""
    score, members = bank(rng, models=16)
    for target in (0, 9):
        blind(work, "repaired", score, members, target)


def repaired_works(work, rng):
    """The repaired attack still attacks."""
    aucs, honest = [], []
    for _ in range(6):
        score, members = bank(rng, models=16, records=300)
        score = score + members
        found = numbers(work, "repaired", score, members, 3, shape=(300,), what="one score for each record")
        aucs.append(auc(found, members[3]))
        honest.append(auc(score[3], members[3]))
    need(np.mean(aucs) > 0.5, f"`repaired` has an AUC of {np.mean(aucs):.2f}, below one half: look at its sign.")
    need(np.mean(aucs) > np.mean(honest) + 0.05, f"`repaired` has an AUC of {np.mean(aucs):.2f}, hardly more than the "
                                                 f"score by itself with {np.mean(honest):.2f}. Only the fault is to go; "
                                                 "the references stay.")


def repaired_is_lira(work, rng):
    """The repaired attack is as published in all else."""
    score, members = bank(rng, models=16)
    need(callable(work.get("published")), "There is no function `published` here. Run the first cells.")
    keep = np.array([m for m in range(16) if m not in (4, 5)] + [4, 5])
    far = score.copy()
    far[4] += 0.3
    found = [numbers(work, "repaired", one, members, 4, shape=(60,)) for one in (score, far)]
    again = numbers(work, "repaired", score[keep], members[keep], 14, shape=(60,))
    need(np.abs(again - found[0]).max() < 1e-3 * max(1, np.abs(found[0]).max()), "`repaired` changes when the models are "
         "only renumbered.")
    stretched = numbers(work, "repaired", score * 5, members, 4, shape=(60,))
    need(np.abs(stretched - found[0]).max() < 2e-3 * max(1, np.abs(found[0]).max()),
         "`repaired` changes when all scores are multiplied by the same number, which the published attack does not. Was "
         "more changed than the fault?")


CHECKS = [finds_the_bug, spares_the_honest, finds_others, repaired_is_blind, repaired_works, repaired_is_lira]
