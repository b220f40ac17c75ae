"""PyTorch is there: imported first by what needs it, so that its absence is said with the remedy."""

import warnings

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "Models, their training and their signals need PyTorch, which is not installed: "
        "pip install 'mia_lib[train]' (in a clone: pip install -e '.[train]'). "
        "Attacks, metrics and figures work without it.",
        name="torch",
    ) from error

# Of vmap over a layer that it takes one by one: only speed is lost, and the sentence would stand on pages.
warnings.filterwarnings(
    "ignore", "There is a performance drop because we have not yet implemented the batching rule"
)
