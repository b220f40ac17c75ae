"""Measurements that are published: what was expensive, as named arrays with a row a model, kept in git for every reader.

A block of models is a file of arrays with a manifest beside it, which says what was measured, when, on what and for how long.
`ls` lists what there is and `load` reads it; neither needs PyTorch.
"""

from mia_lib.published.pieces import Bank, folder
from mia_lib.published.reading import load, ls

__all__ = ["Bank", "folder", "load", "ls"]
