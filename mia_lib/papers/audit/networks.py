"""A network of the reader's own: what would stand in `my_models.py` beside a notebook."""

from __future__ import annotations

from torch import nn

from mia_lib.data._torchvision import import_torchvision


def resnet18(shape: tuple, classes: int, stages: int = 4) -> nn.Module:
    """torchvision's ResNet-18 for images of any number of channels, after `stages` of its four stages.

    Args:
        shape: of an image, (H, W, C). classes: K.
        stages: 4 is the whole network; fewer leave the last ones out, which hold most of the parameters.
    """
    network = import_torchvision().models.resnet18(num_classes=classes)
    network.conv1 = nn.Conv2d(shape[-1], 64, kernel_size=7, stride=2, padding=3, bias=False)
    for stage in range(stages + 1, 5):
        setattr(network, f"layer{stage}", nn.Identity())
    network.fc = nn.Linear(64 * 2 ** (stages - 1), classes)
    return network
