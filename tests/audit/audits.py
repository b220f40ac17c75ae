"""What tests of the audit have in common."""

from __future__ import annotations

from mia_lib.audit import inputs
from mia_lib.audit.attacks import MeasuredCosts
from mia_lib.audit.options import AuditOptions
from mia_lib.training import TrainConfig

RECIPE = TrainConfig(
    "mlp:16", epochs=30, batch_size=50, optimizer="sgd", learning_rate=0.2, momentum=0.9
)
COSTS = MeasuredCosts(answer=1e-5, gradient=1e-4, epoch=1e-3, curve=1e-4, regression=1e-5)


def check(model, members, others, **options) -> inputs.AuditInputs:
    return inputs.check_inputs(model, members, others, AuditOptions(**options))
