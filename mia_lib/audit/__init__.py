"""Audit a model of one's own: which attacks what is at hand permits, what each costs, and what they find.

`audit` runs them within a budget and returns a `Report`, which writes one HTML page that opens offline, and JSON of the
same; `plan` says what would run without running it; `rehearse` tests the audit itself.
"""

from mia_lib.audit.rehearsal import rehearse
from mia_lib.audit.report import Report
from mia_lib.audit.running import audit, commanded, plan

__all__ = ["Report", "audit", "commanded", "plan", "rehearse"]
