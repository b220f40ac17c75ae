"""Functions mapped over models: what each is given, what is kept, and what is not asked for again."""

import importlib
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mia_lib import data, membership, signals, store, training
from mia_lib.errors import MiaError
from mia_lib.signals import mapping
from mia_lib.training import TrainConfig

RNG = np.random.default_rng(0)
TABLE = data.Dataset("toy table", RNG.normal(size=(40, 5)).astype(np.float32), RNG.integers(0, 2, 40), 40, ("no", "yes"))
ASKED = """
from mia_lib import signals
def asked(networks, x, labels, loss, scale, shift=0.0):
    return [{"top": scale * signals.model_outputs(network, x).max(1) + shift, "labels": labels} for network in networks]
"""


@pytest.fixture
def own(isolated_cache, tmp_path, monkeypatch):
    """A module of the user's own."""
    (tmp_path / "own_signal.py").write_text(ASKED)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("own_signal")
    del sys.modules["own_signal"]


@pytest.fixture(params=["_in_pool", "_in_process"])
def models(request, monkeypatch):
    monkeypatch.setattr(mapping, "_in_pool", getattr(mapping, request.param))
    with ThreadPoolExecutor(1) as executor:
        yield training.train(TABLE, membership.balanced_halves(40, 4), TrainConfig("mlp:3", epochs=1), executor=executor)


def test_a_function_of_the_users_own_is_given_each_model_its_records_and_its_arguments(own, models):
    top, shifts = signals.logits(models, TABLE).max(-1), (1.0, 2.0, 3.0)
    judged = np.arange(40) % 3 < [[1], [2], [1]]
    specs = [{"kind": "top", "shift": shift} for shift in shifts]
    results = signals.map_models(own.asked, models, specs, "tops", index=[2, 0, 2], judged=judged, at_once=2, scale=2.0,
                                 each=lambda k: {"shift": shifts[k]})
    for arrays, m, shift, rows in zip(results, (2, 0, 2), shifts, judged, strict=True):
        np.testing.assert_allclose(arrays["top"], 2 * top[m, rows] + shift, rtol=1e-5)
        np.testing.assert_array_equal(arrays["labels"], TABLE.y[rows])
    together = mapping.spread(results, "top", judged)
    np.testing.assert_array_equal(np.isnan(together), ~judged)
    np.testing.assert_array_equal(together[judged], np.concatenate([arrays["top"] for arrays in results]))


def test_results_are_kept_one_by_one_under_the_code_of_the_functions_file(own, models, tmp_path):
    asked = []
    for index, edited in (((0, 1), False), ((1, 2), False), ((0,), True)):
        if edited:
            (tmp_path / "own_signal.py").write_text(ASKED + "EDITED = True\n")
            store._taken.clear()  # as in a new process
        signals.map_models(own.asked, models, {"kind": "top"}, "tops", index=list(index), scale=1.0,
                           each=lambda k, index=index: asked.append(index[k]) or {})
    assert asked == [0, 1, 2, 0]


@pytest.mark.parametrize(("wrong", "words"), [
    ({"records": TABLE.take(np.arange(9))}, r"judged has shape \(4, 40\): \(4, 9\) is needed"),
    ({"index": [0]}, r"judged has shape \(4, 40\): \(1, 40\) is needed")])
def test_who_is_asked_fits_the_models_and_records(own, models, wrong, words):
    with pytest.raises(MiaError, match=words):
        signals.map_models(own.asked, models, {"kind": "top"}, "tops", judged=np.ones((4, 40), bool), scale=1.0, **wrong)
