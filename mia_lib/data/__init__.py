"""Records: data sets by name, and data sets of one's own."""

from mia_lib.data.sets import Dataset, data_dir, describe, gaussian, get, names, title
from mia_lib.data.user import (
    from_arrays,
    from_csv,
    from_folder,
    from_frame,
    from_npz,
    from_tokens,
    load,
)
from mia_lib.data.verses import JUDGED, places, texts

__all__ = [
    "Dataset",
    "JUDGED",
    "data_dir",
    "describe",
    "from_arrays",
    "from_csv",
    "from_folder",
    "from_frame",
    "from_npz",
    "from_tokens",
    "gaussian",
    "get",
    "load",
    "names",
    "places",
    "texts",
    "title",
]
