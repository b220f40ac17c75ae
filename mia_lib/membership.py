"""Designs of the membership game: who is a member.

A design is a boolean matrix `members` [M, N]; row m is the training set of model m. Every design is a pure function of
its arguments and a seed.
"""

from __future__ import annotations

import numpy as np

from mia_lib.checks import check_mask, check_numbers
from mia_lib.errors import MiaError, check_count, check_whole


def _generator(seed: int) -> np.random.Generator:
    # a stream of its own, apart from training's
    return np.random.default_rng([0x6D69615F, check_whole("seed", seed, 0)])


def _check(n: int, models: int) -> None:
    check_count("models", models, each=check_count("n", n, 2, each=1))


def random_subsets(n: int, size: int, models: int, seed: int = 0) -> np.ndarray:
    """Independent random training sets of exactly `size` of the n records, bool [models, n]."""
    _check(n, models)
    check_whole("size", size, 1, n)
    rng = _generator(seed)
    members = np.zeros((models, n), bool)
    for row in members:
        row[rng.permutation(n)[:size]] = True
    return members


def random_halves(n: int, models: int, seed: int = 0) -> np.ndarray:
    """Independent random halves: each model is trained on `n // 2` of the n records.

    With few models some records are in all or in none of the training sets; `balanced_halves` avoids that.
    """
    _check(n, models)
    return random_subsets(n, n // 2, models, seed)


def balanced_halves(n: int, models: int, seed: int = 0) -> np.ndarray:
    """Random halves in complementary pairs, so that every record is in exactly half of the models.

    Models 2k and 2k + 1 share no record and together hold all n (for odd n the sizes differ by one).

    Raises:
        MiaError: an odd number of models.
    """
    _check(n, models)
    if models % 2:
        raise MiaError(
            f"models = {models} cannot be balanced: each record is to be in half of them. Give an even number."
        )
    first = random_halves(n, models // 2, seed)
    members = np.empty((models, n), bool)
    members[0::2], members[1::2] = first, ~first
    return members


def references_of(target: int, models: int) -> np.ndarray:
    """Models that serve as references when model `target` of a `balanced_halves` bank is attacked.

    All but the target *and its complement*: what is left is again balanced. Were the complement kept, a member of the
    target would have one reference fewer that holds it than a non-member has, and that count would give membership away.

    Returns:
        int [models - 2], indices into the bank.
    """
    if check_count("models", models, 0) % 2 or models < 4:
        raise MiaError(
            f"models = {models}: a bank of complementary pairs needs an even number, at least 4."
        )
    check_whole("target", target, 0, models - 1)
    pair = target - target % 2
    return np.array([m for m in range(models) if m not in (pair, pair + 1)])


def calibration_splits(
    n: int, repeats: int, references: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Targets with references from public records, repeated over splits (Watson et al. 2022, section 4.1).

    In each repeat the records fall at random into a private and a public half. The target is trained on half of the private
    ones and attacked on all of them; each reference is trained on equally many public ones.

    Args:
        n: records, at least 4. repeats: T. references: R for each target.

    Returns:
        members bool [T * (1 + R), n], row t * (1 + R) a target and its references after it; private bool [T, n].
    """
    check_count(
        "references",
        references,
        0,
        check_count("repeats", repeats, 1, check_count("n", n, 4, each=1)) * n,
    )
    check_whole("seed", seed, 0)
    members, private = np.zeros((repeats, 1 + references, n), bool), np.zeros((repeats, n), bool)
    for t in range(repeats):
        rng = np.random.default_rng([0x6D69615F, seed, t])
        private_rows, public = np.split(rng.permutation(n), [n // 2])
        size = len(private_rows) // 2
        private[t, private_rows] = members[t, 0, private_rows[:size]] = True
        for row in members[t, 1:]:
            row[rng.permutation(public)[:size]] = True
    return members.reshape(-1, n), private


def leave_one_out(members: np.ndarray, records) -> np.ndarray:
    """The training set `members` with one record's membership turned over at a time.

    Args:
        members: bool [N], one training set.
        records: int [R], whose membership is turned.

    Returns:
        bool [R, N]; row r differs from `members` in record `records[r]` alone.
    """
    members, records = check_mask("members", members), check_numbers("records", records)
    if records.size and (
        records.dtype.kind not in "iu" or records.min() < 0 or records.max() >= members.size
    ):
        raise MiaError(
            f"records reach from {records.min()} to {records.max()}: allowed are whole numbers from 0 to "
            f"{members.size - 1}."
        )
    turned = np.repeat(members[None], len(records), 0)
    turned[np.arange(len(records)), records.astype(int)] ^= True
    return turned


def at_most(judged: np.ndarray, members: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Choose from the records `judged` by each model at most so many members and so many
    non-members, drawn at random.

    Args:
        judged, members: bool [M, N]. most: of each kind, in each row.

    Returns:
        bool [M, N].
    """
    kept = np.zeros_like(judged)
    for m, (row, is_member) in enumerate(zip(judged, members, strict=True)):
        rng = np.random.default_rng([seed, m])
        for side in (row & is_member, row & ~is_member):
            kept[m, rng.permutation(np.flatnonzero(side))[:most]] = True
    return kept
