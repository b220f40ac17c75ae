"""Architectures: shapes, parameter counts by hand, seeds, and the import of torchvision."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

from mia_lib import models
from mia_lib.data import readers
from mia_lib.errors import MiaError
from mia_lib.training.stacking import Stacked

GREY, COLOUR, TABLE = (28, 28, 1), (32, 32, 3), (20,)


def conv(inputs, outputs, kernel):
    return outputs * (inputs * kernel**2 + 1)


def linear(inputs, outputs):
    return outputs * (inputs + 1)


COUNTS = [
    ("logistic_regression", TABLE, 2, 42),
    ("logistic_regression", GREY, 10, 7850),
    ("sigmoid_regression", TABLE, 2, 21),
    ("mlp", TABLE, 2, linear(20, 64) + linear(64, 2)),
    ("mlp:6", GREY, 10, 4780),  # 784-6-10, Suri et al. 2024
    ("mlp:512,256,128,64", (600,), 100, 486_692),  # and their deep Purchase-100 model
    (
        "tanh_cnn",
        COLOUR,
        10,
        conv(3, 32, 5) + conv(32, 64, 5) + linear(64 * 8 * 8, 128) + linear(128, 10),
    ),
    (
        "watson_cnn",
        COLOUR,
        10,
        conv(3, 32, 3) + conv(32, 64, 3) + conv(64, 64, 3) + conv(64, 128, 3) + linear(128, 10),
    ),
    (
        "watson_cnn:4,5,6,7",
        GREY,
        2,
        conv(1, 4, 3) + conv(4, 5, 3) + conv(5, 6, 3) + conv(6, 7, 3) + linear(7, 2),
    ),
    (
        "leino_cnn",
        GREY,
        10,
        conv(1, 20, 5) + conv(20, 50, 5) + linear(50 * 7 * 7, 500) + linear(500, 10),
    ),
    (
        "strided_cnn",
        GREY,
        10,
        conv(1, 16, 4) + conv(16, 32, 4) + linear(32 * 7 * 7, 64) + linear(64, 10),
    ),
    (
        "strided_cnn:2,3,8",
        (4, 11, 1),
        2,
        conv(1, 2, 4) + conv(2, 3, 4) + linear(3 * 1 * 2, 8) + linear(8, 2),
    ),
    ("resnet9:64,128,256,512", COLOUR, 10, 6_573_120),  # Page's, to the weight
    ("resnet18", GREY, 10, 11_173_962 - 2 * 9 * 64),  # as usual
]


@pytest.mark.parametrize(("architecture", "shape", "classes", "count"), COUNTS)
def test_parameters_and_outputs(architecture, shape, classes, count):
    model = models.build(architecture, shape, classes, seed=1).eval()
    assert models.parameter_count(model) == count
    x = (
        np.random.default_rng(0)
        .integers(0, 256, (3, *shape))
        .astype(np.uint8 if len(shape) == 3 else np.float32)
    )
    with torch.no_grad():
        logits, inner = model(models.to_input(x)), models.features(model, models.to_input(x))
        assert logits.shape == (3, classes)
        torch.testing.assert_close(model.head(inner), logits)


@pytest.mark.parametrize(
    ("architecture", "count"), [("resnet10", 4_903_242), ("resnet50", 23_520_842)]
)
def test_small_images_are_halved_three_times_and_not_at_the_first_layer(architecture, count):
    sides = []
    with torch.device("meta"):  # shapes without memory
        model = models.build(architecture, COLOUR, 10).eval()
        for layer in model.body:
            layer.register_forward_hook(lambda layer, x, out: sides.append(out.shape[-1]))
        assert model(torch.empty(2, 3, 32, 32)).shape == (2, 10)
        assert models.parameter_count(model) == count
    assert sides[0] == 32 and sides[-3] == 4


@pytest.mark.parametrize(
    "architecture",
    [
        "mlp:5",
        "tanh_cnn:2,3,4",
        "watson_cnn:2,2,2,2",
        "leino_cnn:2,3,4",
        "strided_cnn:2,3,4",
        "resnet9:2,3,4,5",
        "resnet10",
    ],
)
def test_a_seed_fixes_the_weights_and_leaves_the_global_generator_which_decides_without_one(
    architecture,
):
    def weights(seed):
        return parameters_to_vector(
            models.build(architecture, (8, 8, 1), 2, seed=seed).parameters()
        )

    torch.manual_seed(0)
    first, after_first, second, free = weights(7), torch.rand(3), weights(7), weights(None)
    torch.manual_seed(0)
    assert torch.equal(first, second)
    assert torch.equal(after_first, torch.rand(3))
    assert not torch.equal(first, weights(8))
    assert torch.equal(free, weights(None)) and not torch.equal(free, weights(None))


def test_pixels_go_to_the_interval_from_minus_one_to_one_and_tables_stay():
    x = np.zeros((1, 2, 2, 3), np.uint8)
    x[0, 0, 1] = [0, 51, 255]  # row 0, column 1
    inputs = models.to_input(x)
    assert inputs.shape == (1, 3, 2, 2) and inputs.dtype == torch.float32
    torch.testing.assert_close(inputs[0, :, 0, 1], torch.tensor([-1.0, -0.6, 1.0]))
    assert torch.equal(models.to_input(torch.from_numpy(x)), inputs)
    table = np.arange(6.0).reshape(2, 3)
    table.flags.writeable = False
    assert models.to_input(table).dtype == torch.float32
    assert models.to_input(table).tolist() == table.tolist()
    with pytest.raises(MiaError, match="give uint8 images"):
        models.to_input(np.zeros((2, 4, 4, 3), np.int16))


@pytest.mark.parametrize(
    ("architecture", "shape", "classes", "message"),
    [
        ("tanhcnn", GREY, 10, "Did you mean 'tanh_cnn'"),
        ("mlp:", TABLE, 2, "whole numbers above 0, as in mlp:64,32"),
        ("mlp:8,0", TABLE, 2, "whole numbers above 0"),
        ("resnet18:64", GREY, 10, "has no widths"),
        (
            "mlp:999999999999999",
            TABLE,
            2,
            "cannot be made for records of shape .* Give smaller widths",
        ),
        ("tanh_cnn:8,8", GREY, 10, "gives 2 widths, not 3 as in tanh_cnn:32,64,128"),
        ("strided_cnn", TABLE, 2, r"needs images \[H, W, C\]"),
        ("sigmoid_regression", TABLE, 3, "two classes"),
        ("watson_cnn", (7, 9, 1), 2, "at least 8 x 8 pixels; these are 7 x 9"),
        ("mlp", (0,), 2, "not that of a record"),
        ("strided_cnn", (3, 9, 1), 2, "at least 4 x 4 pixels; these are 3 x 9"),
        ("mlp", GREY, 1, "classes = 1 is out of range"),
    ],
)
def test_what_cannot_be_built_is_refused(architecture, shape, classes, message):
    with pytest.raises(MiaError, match=message):
        models.build(architecture, shape, classes)


def test_torchvision_is_imported_when_it_is_needed_and_with_an_extension_that_cannot_be_loaded(
    tmp_path, monkeypatch
):
    code = """
import sys
from mia_lib import data, membership, metrics, models, signals, training
from mia_lib.attacks import baselines
models.build('tanh_cnn', (28, 28, 1), 10)
print({'pandas', 'scipy.stats', 'matplotlib', 'sklearn', 'torchvision'} & set(sys.modules))
import torch
from mia_lib.data import readers
readers._extension_loads = lambda folder: False
torch.ops.load_library = lambda path: (_ for _ in ()).throw(OSError('does not fit'))
print(readers.import_torchvision().models.resnet18.__name__, readers.operators is not None)
"""
    env = os.environ | {"MIA_CLUSTER": "none"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout.splitlines() == ["set()", "resnet18 True"], done.stderr
    module = readers.import_torchvision()
    assert module is readers.import_torchvision() and module.datasets.CIFAR10
    (tmp_path / "_C.so").write_bytes(b"no library")
    assert not readers._extension_loads(tmp_path / "none")
    assert not readers._extension_loads(tmp_path)
    monkeypatch.setattr(torch.ops, "load_library", lambda path: None)
    assert readers._extension_loads(tmp_path)


def test_without_torchvision_the_error_says_who_needs_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.setattr(readers, "find_spec", lambda name: None)
    with pytest.raises(MiaError, match="models of ResNet and ConvNeXt need it"):
        models.build("resnet18", COLOUR, 10)


def test_batch_normalisation_is_in_float32_where_the_rest_is_in_bfloat16_and_what_is_longer_stays_so():
    network, seen, x = models.build("resnet10", (8, 8, 1), 3, seed=0), set(), torch.rand(4, 1, 8, 8)
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.register_forward_hook(
                lambda layer, given, out: seen.add((given[0].dtype, out.dtype))
            )
    with torch.autocast("cpu", torch.bfloat16):
        assert network(x).dtype == torch.bfloat16 and seen == {(torch.float32, torch.float32)}
    seen.clear()
    network.double()(x.double())
    assert seen == {(torch.float64, torch.float64)}


@pytest.mark.parametrize("architecture", ["batchnorm_cnn:2,3,4", "resnet9:2,3,4,5"])
def test_stacked_networks_are_normalised_in_float32(architecture, monkeypatch):
    seen, real, x = set(), nn.functional.batch_norm, torch.rand(2, 4, 1, 8, 8)
    monkeypatch.setattr(
        nn.functional, "batch_norm", lambda x, *rest: seen.add(x.dtype) or real(x, *rest)
    )
    networks = [models.build(architecture, (8, 8, 1), 3, seed=seed) for seed in (0, 1)]
    with torch.autocast("cpu", torch.bfloat16):
        outputs = Stacked(networks).train()(x)
        outputs.float().sum().backward()
        assert seen == {torch.float32}
        alone = torch.stack([network(one) for network, one in zip(networks, x, strict=True)])
    assert seen == {torch.float32, torch.bfloat16}
    torch.testing.assert_close(outputs.float(), alone.float(), rtol=0.1, atol=0.05)
