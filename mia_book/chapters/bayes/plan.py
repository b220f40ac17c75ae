"""What the chapter on Bayes-optimal attacks is going to measure, see `mia_book.publishing.plans`."""

from __future__ import annotations

from mia_book.chapters.bayes import measure
from mia_book.publishing.plans import check_records, records_here
from mia_lib.errors import MiaError


def planned(p):
    """Yield measurement, models and parameters of Tables 1 to 3 at the chapter's parameters `p`."""
    check_records("records", p.records, p.dataset)
    check_records("shadow_records", p.shadow_records, p.dataset)
    recipe = {
        "dataset": p.dataset,
        "records": p.records,
        "architecture": p.architecture,
        "epochs": p.epochs,
        "learning_rate": p.learning_rate,
        "outputs": p.shadow_records,
        "seed": p.seed,
    }
    yield measure.table2, max(p.references + 2, 2 * p.targets), recipe
    extractor = {
        "dataset": p.dataset,
        "classes": p.classes,
        "source": p.source,
        "architecture": p.feature_architecture,
        "epochs": p.feature_epochs,
        "learning_rate": p.learning_rate,
        "seed": p.seed,
    }
    _check_classes(p)
    yield measure.table1_features, 1, extractor
    for network in p.sweep_architectures:
        for augmentation in p.augmentations:
            of_cell = {"dataset": p.sweep_dataset, "architecture": network}
            of_cell |= {"epochs": p.sweep_epochs, "augmentation": augmentation, "seed": p.seed}
            yield measure.table3, p.sweep_models, of_cell


def _check_classes(p) -> None:
    """Refuse classes that are not there, and sizes of Table 1 of which none fits them, where the records are here."""
    if (pool := records_here(p.dataset)) is None:
        return
    if max(p.classes) >= len(pool.classes):
        raise MiaError(
            f"classes = {p.classes}: {p.dataset} has {len(pool.classes)}, by number 0 to {len(pool.classes) - 1}. Give two "
            "of them, such as `-p classes 0,1`."
        )
    room = len(pool.of_classes(p.classes))
    largest = (2 * room - 1) // 3 // 2 * 2
    if min(p.sizes) > largest:
        raise MiaError(
            f"sizes = {p.sizes}: {p.dataset} has {room} records of the classes {p.classes}, and n needs more than 3/2 n. "
            + (
                f"Give an even n from 40 to {largest}, such as `-p sizes {max(40, largest // 4 * 2)},{largest}`."
                if largest >= 40
                else "Give other classes; n is at least 40."
            )
        )
