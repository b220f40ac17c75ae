"""Your attack. Name this file after your team and hand it in; `python team_name.py` tries it."""

import numpy as np


def attack(margin, reference_margin, reference_members, public_margin, reference_public_margin):
    """Score of each record, higher = more likely a member of the target's training set.

    margin: [N], log(p / (1 - p)) of the record's class under the target. reference_margin: [R, N], under the references.
    reference_members: bool [R, N], whether reference r was trained on record i; half of them were. public_margin: [Q], of
    records that no model was trained on, under the target. reference_public_margin: [R, Q]. Returns [N].
    """
    return margin


if __name__ == "__main__":  # on published targets, whose members are told
    practice = np.load("practice.npz")
    found = []
    for margin, public, members in zip(practice["margin"], practice["public_margin"], practice["members"], strict=True):
        score = attack(margin, practice["reference_margin"], practice["reference_members"], public,
                       practice["reference_public_margin"])
        bar = np.sort(score[~members])[::-1][int(0.01 * (~members).sum())]
        found.append(np.mean(score[members] > bar))
    print(f"Members found where one non-member in a hundred is accused: {np.mean(found):.1%}, over {len(found)} targets")
