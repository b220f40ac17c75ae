"""What the chapter on difficulty calibration is going to measure, see `mia_book.publishing.plans`."""

from __future__ import annotations

from mia_book.chapters.calibration import measure
from mia_book.publishing.plans import check_records


def planned(p):
    """Yield measurement, models and parameters at the chapter's parameters `p`."""
    check_records("image_records", p.image_records, p.image_dataset)
    recipe = {
        "dataset": p.image_dataset,
        "architecture": p.image_architecture,
        "epochs": p.image_epochs,
        "batch_size": p.image_batch_size,
        "learning_rate": p.image_learning_rate,
        "seed": p.seed,
        "records": p.image_records or None,
    }
    yield measure.cifar10, p.image_plays, recipe | {"forgetting_epochs": p.forgetting_epochs}
    for name in p.tables:
        of_table = {"dataset": name, "forgetting_epochs": p.forgetting_epochs, "seed": p.seed}
        plays = min(p.table_plays, measure.PLAYS[name])
        yield measure.tables, plays, of_table | measure.RECIPES[name]
    yield measure.stops, p.image_plays, recipe | {"stops": p.stops}
    for n in p.sizes:
        epochs = -(-1000 // -(-n // 128))
        of_size = {"records": 4 * n, "epochs": epochs, "forgetting_epochs": max(1, 2 * epochs // 5)}
        yield measure.sizes, 8, of_size | {"seed": p.seed}
