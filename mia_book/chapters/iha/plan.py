"""What the chapter on the inverse Hessian attack is going to measure, see `mia_book.publishing.plans`."""

from __future__ import annotations

from mia_book.chapters.iha import study
from mia_book.publishing import catalogue
from mia_book.publishing.plans import check_records


def planned(p):
    """Yield measurement, models and parameters of its data sets at the chapter's parameters `p`."""
    columns = p.datasets, p.architectures, p.records, p.judged, p.epochs, p.batch_sizes
    for dataset, architecture, records, judged, epochs, batch_size in zip(*columns, strict=True):
        check_records("records", records, dataset)
        recipe = {
            "dataset": dataset,
            "architecture": architecture,
            "records": records,
            "judged": judged,
            "epochs": epochs,
            "batch_size": batch_size,
            "weight_decay": p.weight_decay,
            "seed": p.seed,
        }
        kind = study.kind_of(dataset, architecture)
        yield catalogue()[f"iha/{kind}-bank"], p.models, recipe
        yield catalogue()[f"iha/{kind}"], p.targets, recipe | {"damping": p.damping}
