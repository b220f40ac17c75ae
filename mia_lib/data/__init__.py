"""Records: data sets by name, and data sets of one's own."""

from mia_lib.data.sets import Dataset, data_dir, describe, gaussian, get, names, title
from mia_lib.data.user import from_arrays, from_csv, from_folder, from_frame, from_npz, load

__all__ = [
    "Dataset",
    "data_dir",
    "describe",
    "from_arrays",
    "from_csv",
    "from_folder",
    "from_frame",
    "from_npz",
    "gaussian",
    "get",
    "load",
    "names",
    "title",
]
