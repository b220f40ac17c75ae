"""Architectures by name, and the user's own.

An architecture is written `name` or `name:widths`, for example "mlp:64,32". Every such classifier is a `Network`: a
body that ends in features, and a linear head; `gpt` is a `LanguageModel`. One of the user's own, see `mia_lib.custom`,
is written "my_models:Net(hidden=32)" and gives whatever network its class or function makes.
"""

from __future__ import annotations

from mia_lib import _torch  # noqa: F401  before PyTorch, to say what to do without it

# isort: split

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import prod
from threading import RLock
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from mia_lib import custom
from mia_lib.checks import are_probabilities, take_logits
from mia_lib.errors import MiaError, check_choice, check_range, first_line

_SEEDED = RLock()  # layers draw their weights from the one global generator, which threads share


class Network(nn.Module):
    """Logits = head(body(input)).

    Attributes:
        body: input [B, ...] -> features [B, F].
        head: linear, features -> logits [B, K].
    """

    def __init__(self, body: nn.Module, head: nn.Module):
        super().__init__()
        self.body, self.head = body, head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


def features(model: Network, x: torch.Tensor) -> torch.Tensor:
    """Penultimate activations [B, F] of the inputs `x` (as `to_input` gives them)."""
    return model.body(x)


def parameter_count(model: nn.Module) -> int:
    """Number P of trainable parameters."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


TOKENS = "tokens"  # token ids, which are fed as they are
# divide by, subtract
SCALINGS = {"-1 to 1": (127.5, 1.0), "0 to 1": (255.0, 0.0), "0 to 255": (1.0, 0.0)}


def to_input(x, scaling: str | tuple = "-1 to 1") -> torch.Tensor:
    """Records as networks take them.

    uint8 images [B, H, W, C] become float32 [B, C, H, W]; by default they are mapped to [-1, 1] by x / 127.5 - 1, which all
    networks of this library are trained on. The constants are fixed: statistics of the training images would put something of
    every member into every score. A network from elsewhere wants what it was trained on, see `scaling`.

    Images of a floating type are passed as they are, whatever their layout: prepare them as the network wants them.

    Args:
        x: uint8 images [B, H, W, C]; images of a floating type, 4 axes of any order; token ids int64 [B, L]; or tables [B, D]
            of any number type. NumPy or torch.
        scaling: of uint8 images: a name of `SCALINGS`, or (mean, spread) of pixels in [0, 1], each a number or one a channel,
            as torchvision's `ToTensor` and `Normalize` have them. Or "tokens": whole numbers int64 [B, L] stay such, see
            `feeding`.

    Returns:
        float32 [B, C, H, W] or [B, D], int64 [B, L] of token ids; images of a floating type unchanged.

    Raises:
        MiaError: another form; uint8 images whose channels come first; an unknown scaling, or one of images that are floats.
    """
    x = torch.as_tensor(np.array(x) if isinstance(x, np.ndarray) and not x.flags.writeable else x)
    mean_spread = _scaling(scaling)
    if x.ndim == 4 and x.dtype == torch.uint8:
        if x.shape[1] <= 4 < x.shape[3]:
            raise MiaError(
                f"x has shape {tuple(x.shape)}: its channels seem to come first, where uint8 images are "
                "[B, H, W, C]. Give x.transpose(0, 2, 3, 1), or floats as the network takes them."
            )
        x = x.permute(0, 3, 1, 2).to(torch.float32)
        if mean_spread is None:
            divisor, offset = SCALINGS[scaling]
            return x.div_(divisor).sub_(offset)
        mean, spread = (constants.to(x.device).view(-1, 1, 1) for constants in mean_spread)
        if len(mean) not in (1, x.shape[1]) or len(spread) not in (1, x.shape[1]):
            raise MiaError(
                f"scaling = {scaling!r}: {x.shape[1]} channels need one mean and one spread each, or one for all."
            )
        return x.div_(255).sub_(mean).div_(spread)
    if x.ndim == 4 and x.is_floating_point():
        if scaling != "-1 to 1":
            raise MiaError(
                f"scaling = {scaling!r} is for uint8 images; these are {x.dtype} and are passed as they are. Leave "
                "it out, and scale them yourself."
            )
        return x
    if x.ndim == 2:
        whole = isinstance(scaling, str) and scaling == TOKENS and x.dtype == torch.int64
        return x if whole else x.to(torch.float32)
    raise MiaError(
        f"x has shape {tuple(x.shape)} and type {x.dtype}: give uint8 images [B, H, W, C], images of a floating "
        "type as the network takes them, or tables [B, D]."
    )


def _scaling(scaling) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Mean and spread [1] or [C] where they are given, None for a name."""
    if isinstance(scaling, str):
        check_choice("scaling", scaling, (*SCALINGS, TOKENS))
        return None
    try:
        mean, spread = (
            torch.as_tensor(constants, dtype=torch.float32).reshape(-1) for constants in scaling
        )
    except (TypeError, ValueError, RuntimeError):
        mean = spread = torch.zeros(1)
    if not (torch.isfinite(mean).all() and (spread > 0).all()):
        raise MiaError(
            f"scaling = {scaling!r}: a name is needed ({', '.join(SCALINGS)}), or (mean, spread) of pixels in "
            "[0, 1] with spreads above 0."
        )
    return mean, spread


def feeding(model: nn.Module, x, scaling: str | tuple = "-1 to 1") -> str | tuple:
    """The scaling with which a network takes records `x`: "tokens" where they are whole numbers int64 [N, L] and the network
    has an embedding, so that it takes them as they are; else `scaling`."""
    whole = len(np.shape(x)) == 2 and "int64" in str(getattr(x, "dtype", ""))
    embeds = any(isinstance(part, nn.Embedding | nn.EmbeddingBag) for part in model.modules())
    return TOKENS if whole and embeds else scaling


def check_scaling(scaling) -> str | tuple:
    """A scaling as it is kept: a name, or (mean, spread) as numbers or tuples of numbers, see `to_input`."""
    constants = _scaling(scaling)
    if constants is None:
        return scaling
    return tuple(
        float(number) if np.ndim(number) == 0 else tuple(map(float, number)) for number in scaling
    )


class Dropout(nn.Module):
    """Dropout whose masks follow from a key and a count of calls by integer arithmetic.

    So they are the same on every device, for one network or many stacked ones, and in every thread, which those of
    `torch.nn.Dropout` are not.

    Args:
        p: share of activations set to zero while training.
    """

    def __init__(self, p: float):
        super().__init__()
        self.p = p
        self.register_buffer("key", torch.randint(2**31, ()))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        self.calls += 1
        number = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
        mixed = scramble(
            number * -1640531535 + scramble((self.key + self.calls * 668265263).to(torch.int32))
        )
        kept = mixed >= round(self.p * 2**32) - 2**31  # 32 bits taken as a number from -2^31
        return x * kept / (1 - self.p)


def scramble(bits: torch.Tensor) -> torch.Tensor:
    """The finaliser of MurmurHash3: int32 -> int32, each input bit changes about half of the output bits."""
    for shift, factor in ((16, -2048144789), (13, -1028477387)):
        bits = (bits ^ (bits >> shift & (1 << 32 - shift) - 1)) * factor
    return bits ^ (bits >> 16 & 0xFFFF)


# ---------------------------------------------------------------------------------------- architectures


def _mlp(shape: tuple, classes: int, widths: list[int]) -> Network:
    """Fully connected ReLU layers of these widths; logistic regression is the case without any."""
    sizes = [prod(shape), *widths]
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return Network(nn.Sequential(*layers), nn.Linear(sizes[-1], classes))


class FromZero(nn.Module):
    """One number s a record -> logits (0, s): the softmax of both is the sigmoid of s."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.zeros_like(x), x], 1)


def _sigmoid_regression(shape: tuple, classes: int, widths: list[int]) -> Network:
    """Logistic regression of two classes with one output, as its textbook form has it: D + 1 parameters."""
    if classes != 2:
        raise MiaError(
            f"sigmoid_regression tells two classes apart; these records have {classes}. Use logistic_regression."
        )
    return Network(nn.Flatten(), nn.Sequential(nn.Linear(prod(shape), 1), FromZero()))


def _tanh_cnn(shape: tuple, classes: int, widths: list[int]) -> Network:
    """The CNN of Shokri et al. (2017): two convolutions, max-pooling, tanh, one hidden layer."""
    height, width, channels = shape
    first, second, hidden = widths
    body = nn.Sequential(
        # tanh is monotone, so pooling before it gives the same values from a quarter of the evaluations
        nn.Conv2d(channels, first, 5, padding=2),
        nn.MaxPool2d(2),
        nn.Tanh(),
        nn.Conv2d(first, second, 5, padding=2),
        nn.MaxPool2d(2),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(second * (height // 4) * (width // 4), hidden),
        nn.Tanh(),
    )
    return Network(body, nn.Linear(hidden, classes))


def _watson_cnn(shape: tuple, classes: int, widths: list[int]) -> Network:
    """The CIFAR CNN of Watson et al. (2022), as in their code: four convolutions, average pooling, linear."""
    layers: list[nn.Module] = []
    inputs = shape[2]
    for block, outputs in enumerate(widths):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
        layers += [nn.AvgPool2d(2) if block < 3 else nn.AdaptiveAvgPool2d(1)]
        inputs = outputs
    return Network(nn.Sequential(*layers, nn.Flatten()), nn.Linear(inputs, classes))


def _leino_cnn(shape: tuple, classes: int, widths: list[int]) -> Network:
    """The LeNet of Leino and Fredrikson (2020), also the MNIST model of Watson et al. (2022).

    Convolutions are padded, so that images of 28 and 32 pixels work alike, and followed by ReLU, which the
    text leaves open.
    """
    height, width, channels = shape
    first, second, hidden = widths
    body = nn.Sequential(
        nn.Conv2d(channels, first, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),  # pooled first, as above
        nn.Conv2d(first, second, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        Dropout(0.25),
        nn.Flatten(),
        nn.Linear(second * (height // 4) * (width // 4), hidden),
        nn.ReLU(),
        Dropout(0.5),
    )
    return Network(body, nn.Linear(hidden, classes))


def _strided_cnn(shape: tuple, classes: int, widths: list[int]) -> Network:
    """Two 4x4 convolutions of stride 2, ReLU, one hidden layer.

    Without pooling it is linear between the kinks of ReLU, and cheap in float64.
    """
    height, width, channels = shape
    first, second, hidden = widths
    body = nn.Sequential(
        nn.Conv2d(channels, first, 4, 2, padding=1),
        nn.ReLU(),
        nn.Conv2d(first, second, 4, 2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(second * (height // 4) * (width // 4), hidden),
        nn.ReLU(),
    )
    return Network(body, nn.Linear(hidden, classes))


class _Long(nn.Module):
    """Turn bfloat16 into float32 before batch normalisation; but not on a card, which takes short
    numbers beside statistics in long ones, and where a larger type would cost most of what a short
    one gains. `Stacked` sees to its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.float() if x.dtype == torch.bfloat16 and x.device.type != "cuda" else x


def _normalisation(filters: int) -> nn.Sequential:
    return nn.Sequential(_Long(), nn.BatchNorm2d(filters))


def _small_resnet(
    block: str, blocks: list[int], shape: tuple, classes: int, widths: list[int]
) -> Network:
    """A ResNet for small images: first convolution 3x3 with stride 1, no max-pooling."""
    from mia_lib.data.readers import import_torchvision

    resnet = import_torchvision().models.resnet
    net = resnet.ResNet(
        getattr(resnet, block), blocks, num_classes=classes, norm_layer=_normalisation
    )
    net.conv1 = nn.Conv2d(shape[2], 64, 3, padding=1, bias=False)
    # as torchvision does
    nn.init.kaiming_normal_(net.conv1.weight, mode="fan_out", nonlinearity="relu")
    stages = (net.layer1, net.layer2, net.layer3, net.layer4)
    stem = nn.Sequential(net.conv1, net.bn1, net.relu, nn.Identity())
    return Network(nn.Sequential(stem, *stages, net.avgpool, nn.Flatten()), net.fc)


def _batchnorm_cnn(shape: tuple, classes: int, widths: list[int]) -> Network:
    """Three strided convolutions, each with batch normalisation and ReLU, the mean over the image, linear.

    54,298 parameters with the default widths on CIFAR-10: small enough that a laptop trains dozens, and good enough to be
    worth attacking. The banks of small models are made of it.
    """
    layers: list[nn.Module] = []
    for inputs, outputs, kernel in zip((shape[2], *widths), widths, (4, 3, 3), strict=False):
        layers += [
            nn.Conv2d(inputs, outputs, kernel, 2, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        ]
    return Network(
        nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Linear(widths[-1], classes),
    )


class _Added(nn.Module):
    """The input and what layers make of it."""

    def __init__(self, *layers: nn.Module):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


class _Peak(nn.Module):
    """The largest value of each filter over the image, an eighth of it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.amax((2, 3)) / 8


def _resnet9(shape: tuple, classes: int, widths: list[int]) -> Network:
    """The ResNet-9 of Page (2018, "How to train your ResNet"), made to be trained in seconds on a graphics card.

    Eight 3x3 convolutions, each with batch normalisation and ReLU; pooling, where there is some, comes before the
    normalisation, which then has a quarter of the values to read. His widths are 64, 128, 256 and 512. Features are divided by
    8, as he divides the logits: short trainings with a high rate need them small at first.
    """

    def block(inputs: int, outputs: int, *pool: nn.Module) -> nn.Sequential:
        convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        return nn.Sequential(convolution, *pool, nn.BatchNorm2d(outputs), nn.ReLU())

    stem, first, second, third = widths
    body = nn.Sequential(
        block(shape[2], stem),
        block(stem, first, nn.MaxPool2d(2)),
        _Added(block(first, first), block(first, first)),
        block(first, second, nn.MaxPool2d(2)),
        block(second, third, nn.MaxPool2d(2)),
        _Added(block(third, third), block(third, third)),
        _Peak(),
    )
    return Network(body, nn.Linear(third, classes, bias=False))


class _Block(nn.Module):
    """A layer of a transformer, normalised before attention and before the perceptron (Radford et al. 2019)."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.between(x))))


class LanguageModel(nn.Module):
    """A transformer that predicts the next token, as GPT-2 does.

    Of token ids [B, T] it gives logits [B, T, V], at each place of the token that follows. What comes later changes nothing
    before it, so records may be padded behind their end.

    Attributes:
        tokens: embedding of the V tokens, which the logits are read off with, too.
        places: embedding of the places, as many as the longest record has.
    """

    def __init__(self, vocabulary: int, longest: int, width: int, layers: int, heads: int):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for weight in self.parameters():
            if weight.ndim > 1:
                nn.init.normal_(weight, 0, 0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.places.weight[: ids.shape[-1]]
        for block in self.blocks:
            x = block(x)
        return nn.functional.linear(self.norm(x), self.tokens.weight)


def _gpt(shape: tuple, classes: int, widths: list[int]) -> LanguageModel:
    width, layers, heads = widths
    if len(shape) != 1 or width % heads:
        raise MiaError(
            f"gpt:{width},{layers},{heads} takes token ids [L], and a width that is a multiple of its heads; the shape of "
            f"the records is {shape}."
        )
    return LanguageModel(classes, shape[0], width, layers, heads)


class _Known(NamedTuple):
    make: Callable[[tuple, int, list[int]], Network]
    smallest: int = 0  # least height and width of an image; 0: tables too


_KNOWN = {  # of each name in `custom.WIDTHS`
    "logistic_regression": _Known(_mlp),
    "sigmoid_regression": _Known(_sigmoid_regression),
    "mlp": _Known(_mlp),
    "tanh_cnn": _Known(_tanh_cnn, 4),
    "watson_cnn": _Known(_watson_cnn, 8),
    "leino_cnn": _Known(_leino_cnn, 4),
    "strided_cnn": _Known(_strided_cnn, 4),
    "batchnorm_cnn": _Known(_batchnorm_cnn, 8),
    "resnet9": _Known(_resnet9, 8),
    # one block a stage, where ResNet-18 has two
    "resnet10": _Known(partial(_small_resnet, "BasicBlock", [1, 1, 1, 1]), 8),
    "resnet18": _Known(partial(_small_resnet, "BasicBlock", [2, 2, 2, 2]), 8),
    "resnet50": _Known(partial(_small_resnet, "Bottleneck", [3, 4, 6, 3]), 8),
    "gpt": _Known(_gpt),
}


def names() -> list[str]:
    """The architectures that `build` knows."""
    return list(custom.WIDTHS)


def canonical_architecture(architecture) -> str:
    """An architecture as text, which configurations and the store hold: of a name with or without widths; of a subclass of
    `nn.Module`, a function that makes a network, or a `functools.partial` of one with plain arguments, which lie in a module
    that other processes can import; or of their text. Anything else is refused, see `custom.to_text`."""
    if callable(architecture):
        return custom.to_text(architecture)
    if custom.is_own(architecture):
        return custom.to_text(custom.from_text(architecture))
    check_choice("architecture", str(architecture).partition(":")[0], names())
    return architecture


def build(architecture: str, shape: tuple, classes: int, seed: int | None = None) -> Network:
    """A new model with random weights.

    Args:
        architecture: a name, or `name:widths`:
            `logistic_regression`; `sigmoid_regression` (the same for two classes with one output); `mlp:64` (hidden ReLU
            layers, any number); `tanh_cnn:32,64,128` (two 5x5 convolutions, hidden layer); `watson_cnn:32,64,64,128` (four 3x3
            convolutions); `leino_cnn:20,50,500` (two 5x5 convolutions, hidden layer, with dropout); `strided_cnn:16,32,64`
            (two 4x4 convolutions of stride 2, hidden layer); `batchnorm_cnn:24,48,96` (three strided convolutions with batch
            normalisation); `resnet9:32,64,256,256` (trained in seconds on a graphics card), `resnet10`, `resnet18` and
            `resnet50`, for small images; `gpt:128,4,4` (a language model: width, layers, heads). The numbers shown are the
            defaults.
        shape: shape of one record, (H, W, C), (D,) or, of token ids, (L,).
        classes: number K of classes; of a language model the number of tokens.
        seed: gives bit-identical weights whatever was drawn before, and leaves the global generator as it
            was; without it weights come from the global generator.

    Returns:
        the model, on the CPU, in training mode.

    Raises:
        MiaError: unknown architecture, malformed widths, fewer than two classes, records that do not fit, a network that does
            not fit into memory.
    """
    shape = tuple(shape)
    if custom.is_own(architecture) or callable(architecture):
        with seeded(seed):
            return _build_own(canonical_architecture(architecture), shape, classes)
    name, widths = custom.parse(architecture)
    known = _KNOWN[name]
    check_range("classes", classes, 2)
    if len(shape) not in (1, 3) or min(shape) < 1:
        raise MiaError(
            f"shape = {shape} is not that of a record: (H, W, C) for images, (D,) for tables."
        )
    if known.smallest and len(shape) == 1:
        raise MiaError(
            f"{name} needs images [H, W, C]; the records are a table with {shape[0]} columns. "
            "Use logistic_regression or mlp."
        )
    if known.smallest and min(shape[:2]) < known.smallest:
        raise MiaError(
            f"{name} needs images of at least {known.smallest} x {known.smallest} pixels; these "
            f"are {shape[0]} x {shape[1]}."
        )
    try:
        with seeded(seed):
            return known.make(shape, classes, widths)
    except (RuntimeError, MemoryError, TypeError, OverflowError) as error:
        raise MiaError(
            f"architecture = {architecture!r} cannot be made for records of shape {shape} and {classes} classes "
            f"({first_line(error)}). Give smaller widths."
        ) from error


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Within the block, weights that are drawn are the same for a seed, and the global generator is
    left as it was; None changes nothing."""
    if seed is None:
        yield
        return
    with _SEEDED, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would reseed GPUs, too
        yield


# ---------------------------------------------------------------------------------------- the user's own


def _build_own(architecture: str, shape: tuple, classes: int) -> nn.Module:
    factory = custom.from_text(architecture)
    try:
        network = factory.func(*factory.args, **custom.arguments_of(factory, shape, classes))
    except Exception as error:
        raise MiaError(
            f"architecture = {architecture!r} cannot be made for records of {_shape_in_words(shape)} and {classes} "
            f"classes: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(network, nn.Module):
        raise MiaError(
            f"architecture = {architecture!r} gives an object of {type(network).__name__}: a network, "
            "torch.nn.Module, is needed."
        )
    weights = dict(network.named_parameters())
    lazy = (nn.UninitializedParameter, nn.UninitializedBuffer)
    if any(isinstance(weight, lazy) for weight in [*weights.values(), *network.buffers()]):
        raise MiaError(
            f"architecture = {architecture!r} has lazy layers, whose weights are not there before the first batch: "
            "give their sizes, from shape and classes if it takes them."
        )
    if not any(weight.requires_grad for weight in weights.values()):
        raise MiaError(
            f"architecture = {architecture!r} has no parameters to train: layers become a network's own as its "
            "attributes, many of them in an nn.ModuleList."
        )
    if other := [name for name, weight in weights.items() if weight.dtype != torch.float32]:
        raise MiaError(
            f"architecture = {architecture!r} has {other[0]} of type {weights[other[0]].dtype}: float32 is needed; "
            "leave .double() and .half() out. For bfloat16 there is precision."
        )
    if empty := [name for name, weight in weights.items() if not weight.numel()]:
        raise MiaError(
            f"architecture = {architecture!r} has {empty[0]} without any entry, of shape "
            f"{tuple(weights[empty[0]].shape)}: it was made for records of {_shape_in_words(shape)}."
        )
    network.register_forward_pre_hook(_in_order)
    return give_logits(network).train()


def _shape_in_words(shape: tuple) -> str:
    """The shape of a record, and of images in which order it has channels, which `forward` gets in another."""
    return f"shape {shape}" + " (H, W, C; `forward` gets [B, C, H, W])" * (len(shape) == 3)


def give_logits(network: nn.Module) -> nn.Module:
    """See to it that a network which returns a dictionary or an object with `logits` returns these, [B, K]; others are left as
    they are."""
    network.register_forward_hook(_logits)
    return network


def _logits(network: nn.Module, inputs: tuple, outputs):
    return take_logits(outputs)


def logits_of(network: nn.Module, outputs) -> torch.Tensor:
    """The tensor of logits in what a network returned; anything else is refused."""
    logits = take_logits(outputs)
    if not isinstance(logits, torch.Tensor):
        raise MiaError(
            f"model = {type(network).__name__} returns a {type(outputs).__name__}: a tensor [B, K] is needed, or a "
            "dictionary or an object with `logits`. Wrap it in a torch.nn.Module whose forward returns the tensor, "
            "such as self.model(x)[0] of a tuple."
        )
    return logits


def _in_order(network: nn.Module, inputs: tuple) -> tuple:
    """Images come with their channels last in memory, where `view` fails."""
    return tuple(images.contiguous() for images in inputs)


def set_input_scaling(network: nn.Module, scaling: str | tuple) -> nn.Module:
    """Note on a network how uint8 images are scaled for it, for those who ask it later; see
    `input_scaling`."""
    network._mia_scaling = scaling
    return network


def input_scaling(network: nn.Module) -> str | tuple | None:
    """Scaling of the uint8 images that a network takes, as `set_input_scaling` noted it; None if
    it did not."""
    return getattr(network, "_mia_scaling", None)


def try_out(
    architecture: str,
    x: np.ndarray,
    classes: int,
    scaling: str | tuple = "-1 to 1",
    loss: str = "cross_entropy",
) -> None:
    """Refuse a network of the user's own that could not be trained here, or not to the same model again.

    Args:
        architecture: as text; others are taken as they are.
        x: records in the form of `Dataset.x`; the first two are looked at.
        classes: K. scaling: as for `to_input`. loss: it is to be trained with.

    Raises:
        MiaError: it cannot take the records; its outputs are not logits [B, K]; it draws random numbers while it is trained;
            its outputs for a record depend on others of the batch when it is not; its `state_dict` does not hold all of it.
    """
    if not custom.is_own(architecture):
        return
    subject = f"architecture = {architecture!r}"
    first, second = (build(architecture, x.shape[1:], classes, seed=seed) for seed in (0, 1))
    if {weight.data_ptr() for weight in first.parameters()} & {
        weight.data_ptr() for weight in second.parameters()
    }:
        raise MiaError(
            f"{subject} gives networks that share weights: make all layers anew in each call."
        )
    try:
        second.load_state_dict(first.state_dict())
    except RuntimeError as error:
        raise MiaError(
            f"{subject} makes networks of different weights for the same arguments: {error}"
        ) from error
    inputs = to_input(np.resize(x[:2], (2, *x.shape[1:])), feeding(first, x, scaling))
    if loss == "next_token":
        inputs = inputs.clamp_min(0)
    places = inputs.shape[1:] if loss == "next_token" else ()
    with torch.random.fork_rng(devices=[]):
        before = torch.get_rng_state()
        outputs = _tried(subject, first, inputs)
        drawn = not torch.equal(before, torch.get_rng_state())
    if (
        not isinstance(outputs, torch.Tensor)
        or outputs.shape != (2, *places, classes)
        or not outputs.is_floating_point()
    ):
        form = type(outputs).__name__
        if isinstance(outputs, torch.Tensor):
            form = f"shape {tuple(outputs.shape)} and type {outputs.dtype}"
        raise MiaError(
            f"{subject} gives outputs of {form} for 2 records: logits {[2, *places, classes]} are needed, a number a class. "
            "Of one sigmoid output s [B, 1] make two, torch.cat([0 * s, s], 1)."
        )
    if loss != "squared_error" and are_probabilities(outputs.detach().numpy()):
        raise MiaError(
            f"{subject} gives probabilities: logits are needed, for the loss has a softmax of its own. Leave the "
            "last softmax or sigmoid out."
        )
    if not outputs.requires_grad:
        raise MiaError(
            f"{subject} gives outputs that no gradient leads back from: leave torch.no_grad(), detach() and data "
            "out of its forward."
        )
    if drawn:
        kinds = [(name, type(layer).__name__) for name, layer in first.named_modules()]
        layers = [f"{name} ({kind})" for name, kind in kinds if "Dropout" in kind]
        raise MiaError(
            f"{subject} draws random numbers while it is trained{', in ' + ', '.join(layers) if layers else ''}, "
            "which would be others in each process and on each device, and its models not the same again. In the "
            "place of torch.nn.Dropout take mia_lib.models.Dropout, whose masks follow from the seed."
        )
    with torch.no_grad():
        first.load_state_dict(second.state_dict())  # statistics of batch normalisation moved
        together = _tried(subject, first.eval(), inputs)
        again = _tried(subject, second.eval(), inputs)
        one_by_one = torch.cat([_tried(subject, first, inputs[k : k + 1]) for k in (0, 1)])
    if not torch.allclose(together, one_by_one, rtol=1e-3, atol=1e-4, equal_nan=True):
        raise MiaError(
            f"{subject}: its outputs for a record depend on the others of the batch, in evaluation mode, too. A "
            "model's answer must be about the record; batch normalisation needs track_running_stats=True."
        )
    if not torch.allclose(together, again, rtol=1e-3, atol=1e-4, equal_nan=True):
        raise MiaError(
            f"{subject}: its state_dict does not hold all of it, for a copy with the same weights gives other "
            "outputs. Make tensors that are drawn or learnt nn.Parameter, or keep them by register_buffer."
        )


def _tried(subject: str, network: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    try:
        return network(inputs)
    except Exception as error:
        kind = "images [B, C, H, W] of `shape` (H, W, C)" if inputs.ndim == 4 else "tables [B, D]"
        kind = kind if inputs.is_floating_point() else "token ids [B, L]"
        raise MiaError(
            f"{subject} cannot take a batch of shape {tuple(inputs.shape)} of type {str(inputs.dtype)[6:]}, {kind}: "
            f"{type(error).__name__}: {error}"
        ) from error
