"""Records and a network that all tests of the audit share: trained on the first set until it knows it by heart."""

from __future__ import annotations

import numpy as np
import pytest
from audits import RECIPE, check

from mia_lib import training
from mia_lib.audit import statistics
from mia_lib.audit.rehearsal import clusters


@pytest.fixture(scope="module", autouse=True)
def _fewer_draws():
    """Most of an audit's seconds are bootstraps and points of curves; fewer change no conclusion."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "DRAWS", 60)
        patch.setattr(statistics, "POINTS", 4)
        yield


@pytest.fixture(scope="session")
def sets():
    drawn = clusters(900, 3)
    return [drawn.take(np.arange(k, k + 300)) for k in (0, 300, 600)]


@pytest.fixture(scope="session")
def memorised(sets):
    return training.fit(sets[0].x, sets[0].y, len(sets[0].classes), RECIPE)[0]


@pytest.fixture(scope="session")
def had(sets, memorised):
    members, others, public = sets
    return check(memorised, members, others, public=public, recipe=RECIPE)
