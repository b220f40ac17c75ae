"""Images seen several times: mirrored, shifted, or augmented at random. A signal of a view is that of its records."""

from __future__ import annotations

from mia_lib import _torch  # noqa: F401  before PyTorch, to say what to do without it

# isort: split

from dataclasses import replace

import torch

from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_count, check_whole
from mia_lib.models import to_input
from mia_lib.training import recipe


def one_view_each(records: Dataset, augmentation: str, views: torch.Tensor) -> Dataset:
    """N images, each as one view of it, rounded to whole numbers: the one that an augmentation of `TrainConfig` makes with the
    image's row of `views` [N, 5], as `training.recipe.draw_views` draws them. Tables are refused."""
    if not records.is_image:
        raise MiaError(f"{records.name} is a table: views are of images.")
    x = recipe.augment(to_input(records.x), augmentation, views)
    pixels = ((x + 1) * 127.5).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)
    return replace(records, x=pixels.contiguous().numpy())


def augmented(
    records: Dataset, augmentation: str, count: int, seed: int = 0
) -> tuple[Dataset, ...]:
    """The records `count` times, each time augmented at random as in training; with "none", as they are."""
    check_count("count", count, 0, records.x.nbytes)
    generator = torch.Generator().manual_seed(seed)
    return tuple(
        one_view_each(
            records, augmentation, recipe.draw_views(augmentation, len(records), generator)
        )
        for _ in range(count)
    )


def shifted(records: Dataset, reach: int = 4) -> tuple[Dataset, ...]:
    """18 views of each image: as it is and mirrored, each shifted by `reach` pixels to none or one of eight sides.

    The queries of the strongest form of LiRA (Carlini et al. 2022, section VI-C). The first is the image itself, the
    second its mirror image; edges are repeated.
    """
    check_whole("reach", reach, 1, 64)
    steps = [
        (0, 0),
        *(
            (down, right)
            for down in (-reach, 0, reach)
            for right in (-reach, 0, reach)
            if down or right
        ),
    ]
    views = []
    for down, right in steps:
        for mirrored in (0, 1):
            view = torch.tensor([[mirrored, down, right, 0, 0]], dtype=torch.float32).expand(
                len(records), 5
            )
            views.append(one_view_each(records, f"flip_crop:{reach}", view))
    return tuple(views)
