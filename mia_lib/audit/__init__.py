"""Audit a model of one's own: which attacks what is at hand permits, what each costs, and what they find.

`audit` runs them within a budget and returns a `Report`, which writes one HTML page that opens offline, and JSON of the
same; `plan` says what would run without running it; `audit_scores` judges scores that were made elsewhere, and `audit_tokens`
what a language model says of each token; `rehearse` tests the audit itself; `canaries` bounds epsilon by the canaries of one
training run. Modules are imported when first used, so that `mia audit` checks its options before PyTorch is there.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mia_lib.audit.execution import audit, audit_scores, plan
    from mia_lib.audit.one_run import CanaryAudit, canaries
    from mia_lib.audit.rehearsal import rehearse
    from mia_lib.audit.report import Report
    from mia_lib.audit.tokens import audit_tokens

__all__ = [
    "CanaryAudit",
    "Report",
    "audit",
    "audit_scores",
    "audit_tokens",
    "canaries",
    "plan",
    "rehearse",
]
_MODULES = {
    "CanaryAudit": "one_run",
    "audit_tokens": "tokens",
    "canaries": "one_run",
    "rehearse": "rehearsal",
}


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'execution')}"), name)
