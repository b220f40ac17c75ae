"""Records: data sets by name, and data sets of one's own."""

from mia_lib.data.sets import Dataset, data_dir, describe, gaussian, get, load, names
from mia_lib.data.user import from_arrays, from_csv, from_folder, from_npz

__all__ = ["Dataset", "data_dir", "describe", "from_arrays", "from_csv", "from_folder", "from_npz", "gaussian", "get", "load",
           "names"]
