"""What the chapter on input loss curvature is going to measure, see `mia_book.publishing.plans`."""

from __future__ import annotations

from mia_book.chapters.curvature import measure
from mia_book.publishing.plans import check_records


def planned(p):
    """Yield measurement, models and parameters of its banks at the chapter's parameters `p`."""
    recipe = {
        "records": p.records or None,
        "architecture": p.architecture,
        "epochs": p.epochs,
        "batch_size": p.batch_size,
        "learning_rate": p.learning_rate,
        "seed": p.seed,
    }
    signals = {
        "asked": p.asked,
        "precisely": p.asked // 2,
        "exactly": p.asked // 4,
        "views": 2,
        "shifted": True,
    }
    if p.memorised:
        yield measure.memorised, p.models, {}
    for name in p.datasets:
        check_records("records", p.records, name)
        bank = measure.cifar10_small if name == "cifar10" else measure.cifar100_small
        yield bank, p.models, {"dataset": name, **signals, **recipe}
