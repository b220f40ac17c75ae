"""Score functions, one module a paper. Higher = more likely a member.

A scorer never sees the target's membership. What it needs besides is declared with `needs` and printed in the book's
threat-model tables.
"""

from mia_lib.attacks._common import (
    ACCESS,
    REFERENCES,
    Needs,
    check_direction,
    check_loss,
    check_own,
    check_present,
    check_references,
    check_signals,
    in_blocks,
    needs,
    threat_model,
)

__all__ = [
    "ACCESS",
    "REFERENCES",
    "Needs",
    "check_direction",
    "check_loss",
    "check_own",
    "check_present",
    "check_references",
    "check_signals",
    "in_blocks",
    "needs",
    "threat_model",
]
