"""The same numbers on processors that can do different things."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mia_lib

PROGRAM = """
import sys

import mia_lib
import numpy as np
import torch

from mia_lib.attacks.quantile import networks
from mia_lib.training import loop
from mia_lib.training.recipe import TrainConfig

torch.set_num_threads(1)
rng = np.random.default_rng(0)
x, y = rng.integers(0, 256, (240, 28, 28, 1)).astype(np.uint8), rng.integers(0, 10, 240)
out = {}
config = networks.NetworkConfig(epochs=2, batch_size=64)
target, held = y / 4, slice(180, 240)
fitted = networks.fit(x[:180], target[:180], config, 2, networks.gaussian_loss, y[:180], 10,
                        (x[held], target[held], y[held]))
out["regression"] = networks.predict(fitted, x, y)
for name, sets in (("tanh_cnn:4,8,16", 1), ("mlp:16", 2)):
    rows, recipe = [np.arange(120) + k for k in range(sets)], TrainConfig(name, epochs=2, batch_size=40)
    for k, one in enumerate(loop.fit_group(loop.Task(x, y, 10, recipe, rows, list(range(sets))))):
        out |= {f"{name} {k} {part}": value for part, value in one.arrays.items()}
out["exponential"] = np.exp(rng.normal(size=(300, 300)))
np.savez(sys.argv[1], **out)
"""
AVX512 = {
    "MKL_CBWR": "AVX512,STRICT",
    "ATEN_CPU_CAPABILITY": "avx512",
    "ONEDNN_MAX_CPU_ISA": "ALL",
    "NPY_DISABLE_CPU_FEATURES": "",
}
AVX2 = {
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "MKL_CBWR": "AVX2,STRICT",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    """Arrays of a regression, of targets and of NumPy's exponential, by what the libraries were told of the processor."""
    if "avx512f" not in mia_lib._processor():
        pytest.skip("the processor has no AVX-512, so there is no other arithmetic to compare with")
    folder, found = tmp_path_factory.mktemp("arithmetic"), {}
    bare = {name: value for name, value in os.environ.items() if name not in AVX2}
    bare |= {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(mia_lib.__file__).parents[1]),
    }
    for name, told in (("the book's", {}), ("AVX2", AVX2), ("AVX-512", AVX512)):
        path = folder / f"{name}.npz"
        subprocess.run([sys.executable, "-c", PROGRAM, path], env=bare | told, check=True)
        with np.load(path) as arrays:
            found[name] = dict(arrays)
    return found


def test_numbers_are_those_of_a_processor_with_avx2_to_the_last_bit(computed):
    ours, theirs = computed["the book's"], computed["AVX2"]
    assert ours.keys() == theirs.keys() and len(ours) > 10
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def test_left_to_themselves_libraries_round_otherwise_and_no_more(computed):
    ours, theirs = computed["the book's"], computed["AVX-512"]
    for name in ("regression", "tanh_cnn:4,8,16 0 head.weight", "exponential"):
        assert (ours[name] != theirs[name]).any(), name  # else the test above could not fail
    assert np.abs(ours["regression"] - theirs["regression"]).max() < 1e-4 * ours["regression"].std()
