"""Architectures: shapes, parameter counts by hand, seeds, and the import of torchvision."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from mia_lib import custom, models
from mia_lib.data import readers
from mia_lib.errors import MiaError
from mia_lib.training.stacking import Stacked

ROOT = Path(__file__).resolve().parents[1]
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
    ("mlp:32", (600,), 100, 22_532),  # their Purchase-100 model
    ("mlp:512,256,128,64", (600,), 100, 486_692),  # and the deep one
    ("tanh_cnn", COLOUR, 10, conv(3, 32, 5) + conv(32, 64, 5) + linear(64 * 8 * 8, 128) + linear(128, 10)),
    (
        "tanh_cnn:16,32,64",
        GREY,
        10,
        conv(1, 16, 5) + conv(16, 32, 5) + linear(32 * 7 * 7, 64) + linear(64, 10),
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
    ("leino_cnn", GREY, 10, conv(1, 20, 5) + conv(20, 50, 5) + linear(50 * 7 * 7, 500) + linear(500, 10)),
    (
        "leino_cnn:10,25,250",
        COLOUR,
        100,
        conv(3, 10, 5) + conv(10, 25, 5) + linear(25 * 64, 250) + linear(250, 100),
    ),
    ("strided_cnn", GREY, 10, conv(1, 16, 4) + conv(16, 32, 4) + linear(32 * 7 * 7, 64) + linear(64, 10)),
    ("strided_cnn:2,3,8", COLOUR, 100, conv(3, 2, 4) + conv(2, 3, 4) + linear(3 * 8 * 8, 8) + linear(8, 100)),
    ("strided_cnn:2,3,8", (4, 11, 1), 2, conv(1, 2, 4) + conv(2, 3, 4) + linear(3 * 1 * 2, 8) + linear(8, 2)),
    ("resnet9:64,128,256,512", COLOUR, 10, 6_573_120),  # Page's, to the weight
    ("resnet9", COLOUR, 10, 9 * (3 * 32 + 32 * 64 + 2 * 64**2 + 64 * 256 + 3 * 256**2) + 2 * 1248 + 2560),
    ("resnet10", COLOUR, 10, 4_903_242),
    ("resnet18", COLOUR, 10, 11_173_962),  # the usual counts of the CIFAR forms, here and below
    ("resnet18", GREY, 10, 11_173_962 - 2 * 9 * 64),
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


def test_a_large_one_of_small_images_has_the_published_size():
    with torch.device("meta"):  # shapes without memory
        model = models.build("resnet50", COLOUR, 10)
        assert model.eval()(torch.empty(2, 3, 32, 32)).shape == (2, 10)
    assert models.parameter_count(model) == 23_520_842


@pytest.mark.parametrize("architecture", ["resnet10", "resnet50"])
def test_small_images_are_not_shrunk_at_the_first_layer(architecture):
    """They are halved three times, and what is left is averaged."""
    model, sides = models.build(architecture, COLOUR, 10, seed=0).eval(), []
    for layer in model.body:
        layer.register_forward_hook(lambda layer, x, out: sides.append(out.shape[-1]))
    with torch.no_grad():
        model(torch.zeros(1, 3, 32, 32))
    assert sides[0] == 32 and sides[-3] == 4


def test_names_have_a_default_form():
    assert [custom.parse(name)[0] for name in models.names()] == models.names()
    assert custom.parse("leino_cnn") == ("leino_cnn", [20, 50, 500])


def test_logistic_regression_is_linear_in_the_records():
    model = models.build("logistic_regression", TABLE, 3, seed=0)
    x = torch.rand(4, 20)
    torch.testing.assert_close(model(x), x @ model.head.weight.T + model.head.bias)
    assert torch.equal(models.features(model, x), x)


@pytest.mark.parametrize(
    ("architecture", "linear"), [("strided_cnn:3,4,20", True), ("mlp:9", True), ("tanh_cnn:3,4,20", False)]
)
def test_logits_are_linear_between_the_kinks_of_relu(architecture, linear):
    model = models.build(architecture, (8, 8, 1), 3, seed=0).double().eval()
    x, step = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 40, 1, 8, 8)))

    def bend(size):  # of the logits along a line, relative to how they change on it
        low, middle, high = (model(x + size * k * step) for k in (-1, 0, 1))
        return ((low + high - 2 * middle).abs().amax(1) / (size * (high - low).abs().amax(1))).median().item()

    assert bend(1e-4) < 1e-5 if linear else bend(1e-4) > 1e-2
    assert bend(1.0) > 1e-2  # far apart there are kinks


# ---------------------------------------------------------------------------------------- seeds


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize(
    "architecture", ["mlp:5", "tanh_cnn:2,3,4", "watson_cnn:2,2,2,2", "leino_cnn:2,3,4", "strided_cnn:2,3,4", "resnet18",
                     "resnet9:2,3,4,5", "resnet10"]
)
def test_a_seed_fixes_the_weights_and_leaves_the_global_generator(architecture):
    torch.manual_seed(0)
    first = weights(models.build(architecture, (8, 8, 1), 2, seed=7))
    after_first = torch.rand(3)
    second = weights(models.build(architecture, (8, 8, 1), 2, seed=7))
    torch.manual_seed(0)
    assert torch.equal(first, second) and torch.equal(after_first, torch.rand(3))
    assert not torch.equal(first, weights(models.build(architecture, (8, 8, 1), 2, seed=8)))


def test_without_a_seed_weights_follow_the_global_generator():
    torch.manual_seed(3)
    first, second = (weights(models.build("mlp:5", TABLE, 2)) for _ in range(2))
    torch.manual_seed(3)
    assert torch.equal(first, weights(models.build("mlp:5", TABLE, 2))) and not torch.equal(first, second)


# ---------------------------------------------------------------------------------------- inputs


def test_pixels_go_to_the_interval_from_minus_one_to_one():
    x = np.zeros((1, 2, 2, 3), np.uint8)
    x[0, 0, 1] = [0, 51, 255]  # row 0, column 1
    inputs = models.to_input(x)
    assert inputs.shape == (1, 3, 2, 2) and inputs.dtype == torch.float32
    torch.testing.assert_close(inputs[0, :, 0, 1], torch.tensor([-1.0, -0.6, 1.0]))
    assert inputs[0, :, 1, 1].tolist() == [-1.0] * 3
    assert torch.equal(models.to_input(torch.from_numpy(x)), inputs)
    assert x[0, 0, 1].tolist() == [0, 51, 255]  # as it was


def test_read_only_records_and_tables_of_any_type_are_taken():
    table = np.arange(6.0).reshape(2, 3)
    table.flags.writeable = False
    assert models.to_input(table).dtype == torch.float32 and models.to_input(table).tolist() == table.tolist()
    assert models.to_input(np.ones((2, 3), np.uint8)).tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize(
    "x", [np.zeros((2, 4, 4, 3), np.int16), np.zeros(4), np.zeros((2, 4, 4), np.uint8)]
)
def test_other_inputs_are_refused(x):
    with pytest.raises(MiaError, match="give uint8 images"):
        models.to_input(x)


@pytest.mark.parametrize(
    ("architecture", "shape", "classes", "message"),
    [
        ("tanhcnn", GREY, 10, "Did you mean 'tanh_cnn'"),
        ("mlp:", TABLE, 2, "whole numbers above 0, as in mlp:64,32"),
        ("mlp:8,-1", TABLE, 2, "whole numbers above 0"),
        ("mlp:8,0", TABLE, 2, "whole numbers above 0"),
        ("mlp:8.5", TABLE, 2, "whole numbers above 0"),
        ("tanh_cnn:8,8", GREY, 10, "gives 2 widths, not 3 as in tanh_cnn:32,64,128"),
        ("resnet18:64", GREY, 10, "has no widths"),
        ("watson_cnn", TABLE, 2, r"needs images \[H, W, C\]"),
        ("watson_cnn", (7, 9, 1), 2, "at least 8 x 8 pixels; these are 7 x 9"),
        ("strided_cnn", TABLE, 2, r"needs images \[H, W, C\]"),
        ("strided_cnn", (3, 9, 1), 2, "at least 4 x 4 pixels; these are 3 x 9"),
        ("strided_cnn:8", GREY, 10, "gives 1 widths, not 3 as in strided_cnn:16,32,64"),
        ("sigmoid_regression", TABLE, 3, "two classes"),
        ("mlp", GREY, 1, "classes = 1 is out of range"),
        ("mlp", (28, 28), 2, "not that of a record"),
        ("mlp", (0,), 2, "not that of a record"),
    ],
)
def test_what_cannot_be_built_is_refused(architecture, shape, classes, message):
    with pytest.raises(MiaError, match=message):
        models.build(architecture, shape, classes)


# ---------------------------------------------------------------------------------------- torchvision


def run(code):
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_torchvision_imports_here_and_with_an_extension_that_cannot_be_loaded():
    done = run(
        "from mia_lib.data import readers as t\nt._extension_loads = lambda folder: False\n"
        "import torch\ntorch.ops.load_library = lambda path: (_ for _ in ()).throw(OSError('does not fit'))\n"
        "print(t.import_torchvision().models.resnet18.__name__, t._library is not None)"
    )
    assert done.stdout.split() == ["resnet18", "True"], done.stderr
    module = readers.import_torchvision()
    assert module is readers.import_torchvision() and module.datasets.CIFAR10


def test_an_extension_is_tried_before_it_is_replaced(tmp_path, monkeypatch):
    assert not readers._extension_loads(tmp_path)
    (tmp_path / "_C.so").write_bytes(b"no library")
    assert not readers._extension_loads(tmp_path)
    monkeypatch.setattr(torch.ops, "load_library", lambda path: None)
    assert readers._extension_loads(tmp_path)


def test_without_torchvision_the_error_says_who_needs_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.setattr(readers, "find_spec", lambda name: None)
    with pytest.raises(MiaError, match="models of ResNet and ConvNeXt need it"):
        models.build("resnet18", COLOUR, 10)


def test_batch_normalisation_is_in_float32_where_the_rest_is_in_bfloat16():
    network, seen = models.build("resnet10", (8, 8, 1), 3, seed=0), set()
    for layer in network.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.register_forward_hook(lambda layer, given, out: seen.add((given[0].dtype, out.dtype)))
    x = torch.rand(4, 1, 8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert network(x).dtype == torch.bfloat16
    assert seen == {(torch.float32, torch.float32)}
    seen.clear()
    network.double()(x.double())
    assert seen == {(torch.float64, torch.float64)}, "what is longer stays so"


@pytest.mark.parametrize("architecture", ["batchnorm_cnn:2,3,4", "resnet9:2,3,4,5"])
def test_stacked_networks_are_normalised_in_float32(architecture, monkeypatch):
    seen, real = set(), nn.functional.batch_norm
    monkeypatch.setattr(nn.functional, "batch_norm", lambda x, *rest: seen.add(x.dtype) or real(x, *rest))
    networks = [models.build(architecture, (8, 8, 1), 3, seed=seed) for seed in (0, 1)]
    x = torch.rand(2, 4, 1, 8, 8)
    together = Stacked(networks).train()
    with torch.autocast("cpu", torch.bfloat16):
        outputs = together(x)
        outputs.float().sum().backward()
        assert seen == {torch.float32}
        alone = torch.stack([network(one) for network, one in zip(networks, x, strict=True)])
    assert seen == {torch.float32, torch.bfloat16}
    torch.testing.assert_close(outputs.float(), alone.float(), rtol=0.1, atol=0.05)
