"""What tests of the audit have in common."""

from __future__ import annotations

from mia_lib.audit import inputs
from mia_lib.audit.options import AuditOptions
from mia_lib.training import TrainConfig

RECIPE = TrainConfig("mlp:16", epochs=30, batch_size=50, optimizer="sgd", learning_rate=0.2, momentum=0.9)


def check(model, members, others, **options) -> inputs.AuditInputs:
    return inputs.check_inputs(model, members, others, AuditOptions(**options))
