"""Recipe of a training: the configuration, and all of a training that back ends share.

Everything random in a training (initial weights, order of the batches, augmentation, dropout) is drawn from seeds of the
model, on the CPU or by integer arithmetic. So one model or many at once, on a processor or a graphics card, see the same
batches, views and masks; what is left between back ends is the rounding of sums.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import nn

from mia_lib import custom
from mia_lib import models as architectures
from mia_lib.checks import check_flag
from mia_lib.errors import MiaError, check_choice, check_count, check_range, check_whole
from mia_lib.training.losses import LOSSES, NEXT_TOKEN

PRECISIONS = ("float32", "tf32", "bfloat16")
SCHEDULES = ("constant", "step", "cosine", "one_cycle")
WARM_UP = 0.3  # share of a cycle in which the rate rises


@dataclass(frozen=True)
class TrainConfig:
    """Recipe by which a model is trained.

    Numbers are numbers: text, True and values that are not finite are refused.

    Attributes:
        architecture: a name of `models.names()`, with optional widths: "tanh_cnn:16,32,64". Or the user's own: a subclass
            of `nn.Module`, a function that makes a network, or a `functools.partial` of one with plain arguments, which lie in
            a module that can be imported. It is called with `shape` (of a record, as `Dataset.shape`) and `classes` by name
            where it takes them, and is held as text, "my_models:Net(hidden=32)". What its code reads from files, or takes from
            elsewhere than modules beside it, is not followed: an edit there needs another argument.
        epochs: passes over the training set.
        stop_epoch: passes after which training ends, at the rates of a training of all `epochs`; None for `epochs`.
        batch_size: records a step; a last batch of a single record is left out (batch normalisation needs two).
        optimizer: "sgd" or "adam".
        learning_rate: of the first epoch.
        momentum, nesterov: of SGD; Adam has none and refuses them.
        weight_decay: L2 penalty added to the gradient.
        schedule: "constant", "step" (times `step_factor` every `step_epochs`), "cosine" (to zero, epoch by epoch) or
            "one_cycle" (step by step: up from a 25th in the first three tenths of training, then along a cosine to zero).
        loss: as in `record_loss`; or "next_token", of a language model: the mean over a record's tokens of -log p(token |
            those before).
        augmentation: "none", "flip", "crop:P" and "flip_crop:P" (shift by up to P pixels, edges repeated), or
            "flip_resized_crop:S" (random crop of S to 1 of the area and 3/4 to 4/3 in aspect, resized).
        precision: of products of matrices and convolutions, while weights stay float32: "float32"; "tf32", which cuts their
            factors to ten bits on cards that can, and is float32 elsewhere; or "bfloat16", which large networks on a graphics
            card need to be fast. It changes a model, so it is part of what determines one.
        seed: of initial weights, batch order, augmentation and dropout.
        scaling: how uint8 images are fed, in training and to all that asks the model later: a name of `models.SCALINGS`, or
            (mean, spread) of pixels in [0, 1], each a number or one a channel.
    """

    architecture: str
    epochs: int = 20
    batch_size: int = 64
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    schedule: str = "constant"
    step_epochs: int = 30
    step_factor: float = 0.1
    loss: str = "cross_entropy"
    augmentation: str = "none"
    precision: str = "float32"
    seed: int = 0
    scaling: str | tuple = "-1 to 1"
    stop_epoch: int | None = None

    def __post_init__(self):
        object.__setattr__(
            self, "architecture", architectures.canonical_architecture(self.architecture)
        )
        object.__setattr__(self, "scaling", architectures.check_scaling(self.scaling))
        check_choice("optimizer", self.optimizer, ("sgd", "adam"))
        check_choice("schedule", self.schedule, SCHEDULES)
        check_choice("loss", self.loss, (*LOSSES, NEXT_TOKEN))
        check_choice("precision", self.precision, PRECISIONS)
        check_count("epochs", self.epochs, 0)
        for name, least in (("epochs", 0), ("batch_size", 1), ("step_epochs", 1), ("seed", 0)):
            object.__setattr__(self, name, check_whole(name, getattr(self, name), least))
        if self.stop_epoch is not None:
            object.__setattr__(
                self, "stop_epoch", check_whole("stop_epoch", self.stop_epoch, 0, self.epochs)
            )
        for name, most in (
            ("learning_rate", 1e3),
            ("momentum", 1.0),
            ("weight_decay", 1e3),
            ("step_factor", 1e3),
        ):
            # 1 and 1.0: one key
            object.__setattr__(self, name, float(check_range(name, getattr(self, name), 0.0, most)))
        object.__setattr__(self, "nesterov", check_flag("nesterov", self.nesterov))
        custom.parse_augmentation(self.augmentation)
        if self.momentum and self.optimizer == "adam":
            raise MiaError(
                f"momentum = {self.momentum!r} is SGD's, and optimizer = 'adam' would not use it: give "
                "optimizer = 'sgd', or leave momentum out."
            )
        if self.nesterov and not self.momentum:
            raise MiaError("nesterov = True needs momentum > 0; momentum = 0.0 was given.")

    @property
    def epochs_trained(self) -> int:
        """Passes over the training set that are made."""
        return self.epochs if self.stop_epoch is None else self.stop_epoch

    def spec(self) -> dict:
        """The recipe as plain data, as the spec of a model holds it."""
        package = custom.package(self.architecture) if custom.is_own(self.architecture) else ""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return given | ({"package": package} if package else {})


def seed_of(config: TrainConfig, index: int) -> int:
    """Seed of everything random in model `index` of an ensemble."""
    return int(np.random.SeedSequence([config.seed, index]).generate_state(1, np.uint64)[0] >> 1)


def learning_rate(config: TrainConfig, epoch: float) -> float:
    """The learning rate under the configuration's schedule in an epoch, counted from 0, with the share of it that is done; all
    schedules but "one_cycle" take the whole part."""
    if config.schedule == "one_cycle":
        done = epoch / config.epochs
        if done < WARM_UP:
            return config.learning_rate * (
                1 / 25 + (1 - 1 / 25) * 0.5 * (1 - math.cos(math.pi * done / WARM_UP))
            )
        return (
            config.learning_rate * 0.5 * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))
        )
    epoch = int(epoch)
    if config.schedule == "step":
        return config.learning_rate * config.step_factor ** (epoch // config.step_epochs)
    if config.schedule == "cosine":
        return config.learning_rate * 0.5 * (1 + math.cos(math.pi * epoch / config.epochs))
    return config.learning_rate


def draw_views(
    augmentation: str, count: int, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Random numbers that fix a view of each of `count` images, from a generator of the CPU or else the global one.

    Returns:
        float32 [count, 5]: mirrored (0 or 1), then rows and columns of a shift and zeros, or height, width and centre of a
        crop in units of half the image; [count, 0] for "none".
    """
    name, strength = custom.parse_augmentation(augmentation)
    if name == "none":
        return torch.zeros(count, 0)
    views = torch.zeros(count, 5)
    if "flip" in name:
        views[:, 0] = torch.rand(count, generator=generator) < 0.5
    if name == "flip_resized_crop":
        area, aspect, down, right = torch.rand(4, count, generator=generator)
        area = strength + (1 - strength) * area
        aspect = torch.exp(math.log(3 / 4) + (math.log(4 / 3) - math.log(3 / 4)) * aspect)
        views[:, 1], views[:, 2] = (
            (area / aspect).sqrt().clamp(max=1.0),
            (area * aspect).sqrt().clamp(max=1.0),
        )
        views[:, 3], views[:, 4] = (
            (2 * down - 1) * (1 - views[:, 1]),
            (2 * right - 1) * (1 - views[:, 2]),
        )
    elif "crop" in name:
        reach = int(strength)
        views[:, 1:3] = torch.randint(-reach, reach + 1, (count, 2), generator=generator).float()
    return views


def augment(x: torch.Tensor, augmentation: str, views: torch.Tensor | None = None) -> torch.Tensor:
    """A view of each image of x [B, C, H, W], of the same shape, by numbers [B, 5] of `draw_views` on the device of `x`; fresh
    ones when None."""
    name, _ = custom.parse_augmentation(augmentation)
    if name == "none":
        return x
    views = draw_views(augmentation, len(x)).to(x.device) if views is None else views
    mirrored = views[:, 0] > 0.5
    batch, _, height, width = x.shape
    if name == "flip_resized_crop":
        theta = torch.zeros(batch, 2, 3, device=x.device)
        theta[:, 0, 0] = torch.where(mirrored, -views[:, 2], views[:, 2])
        theta[:, 1, 1], theta[:, 1, 2], theta[:, 0, 2] = views[:, 1], views[:, 3], views[:, 4]
        grid = nn.functional.affine_grid(theta, list(x.shape), align_corners=False)
        return nn.functional.grid_sample(
            x, grid, mode="bilinear", padding_mode="border", align_corners=False
        )
    columns = torch.arange(width, device=x.device).expand(batch, width)
    columns = torch.where(mirrored[:, None], columns.flip(1), columns) + views[:, 2:3].long()
    rows = torch.arange(height, device=x.device).expand(batch, height) + views[:, 1:2].long()
    rows, columns = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
    which = torch.arange(batch, device=x.device)[:, None, None]
    return x.permute(0, 2, 3, 1)[which, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
