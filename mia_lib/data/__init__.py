"""Records: data sets by name, and data sets of one's own."""

from mia_lib.data.sets import Dataset, data_dir, describe, gaussian, get, load, names

__all__ = ["Dataset", "data_dir", "describe", "gaussian", "get", "load", "names"]
