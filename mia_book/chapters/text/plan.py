"""What the chapter on language models is going to measure, see `mia_book.publishing.plans`."""

from __future__ import annotations

from mia_book.chapters.text import measure
from mia_lib.errors import check_range


def planned(p):
    """Yield measurement, models and parameters at the chapter's parameters `p`."""
    for name, value in (("references", p.references), ("counts", max(p.counts))):
        check_range(name, value, 2, p.models - 2)
    check_range("targets", p.targets, 1, p.models // 2)
    check_range("further_models", p.further_models, 2, p.models)
    check_range("repeated", p.repeated, 2, p.verses // 4)
    recipe = {
        "architecture": p.architecture,
        "seed": p.seed,
        "passes": p.passes,
        "epochs": p.passes[-1],
        "verses": p.verses,
        "twice": p.repeated,
        "fourfold": p.repeated,
    }
    yield measure.verses, p.models, recipe
    yield measure.variants, p.further_models, recipe
    of_tuned = {"tuned_verses": p.tuned_verses, "base_verses": p.base_verses}
    yield measure.tuned, p.further_models, recipe | of_tuned
