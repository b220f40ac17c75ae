"""The book on `mia_lib`: chapters, measuring and publishing, claims and tables, pages and runs, a course, the command `mia`.

It works in a clone of the repository. The library never imports it.
"""

from pathlib import Path

from mia_lib import add_package

add_package(Path(__file__).resolve().parent)
