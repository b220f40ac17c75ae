"""PyTorch is there: imported first by what needs it, so that its absence is said with the remedy."""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("Models, their training and their signals need PyTorch, which is not installed: "
                              "pip install 'mia_lib[train]' (in a clone: pip install -e '.[train]'). "
                              "Attacks, metrics and figures work without it.", name="torch") from error
