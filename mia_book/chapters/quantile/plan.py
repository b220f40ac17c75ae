"""What the chapter on quantile regression is going to measure, see `mia_book.publishing.plans`."""

from __future__ import annotations

from mia_book.chapters.quantile import measure
from mia_book.publishing import catalogue
from mia_book.publishing.banks import BANKS
from mia_book.publishing.plans import check_records


def planned(p):
    """Yield measurement, models and parameters of its banks at the chapter's parameters `p`."""
    recipe = {
        "records": p.records or None,
        "unused": p.unused,
        "architecture": p.architecture,
        "epochs": p.epochs,
        "batch_size": p.batch_size,
        "learning_rate": p.learning_rate,
        "seed": p.seed,
    }
    for name, models in zip(p.images, p.models, strict=True):
        check_records("records", p.records, name)
        piece, _, _ = BANKS.get(name, ("cifar10-small", name, ""))
        yield catalogue()[f"bank/{piece}"], models, {"dataset": name, **recipe}
    trees = {
        "records": p.table_records or None,
        "unused": p.table_unused or None,
        "iterations": p.iterations,
        "depth": p.depth,
        "seed": p.seed,
    }
    for name in p.tables:
        yield measure.trees_bank, p.table_models, {"dataset": name, **trees}
