"""Measurements: what is expensive, found by name and parameters; published in git, kept in the working cache, or made now.

A measurement is a function `measure(index, **parameters)` that trains or asks the models with the numbers `index` and returns
named arrays with a row a model. How many models there are is no part of what it is: model 7 is the same in a bank of 16 and of
256. So blocks, going on after a kill, `mia verify` and "more time adds models" are one mechanism.

A block of models is found by name, edition and parameters, never by code: whoever changes what a measurement means raises its
edition (or `training.EDITION`, for all), and its probe, the same function at tiny parameters, fails until then. What is not
published lies in the working cache, where the code of the rooms that measure counts, too. What follows from measurements is
kept nowhere. `mia_lib.published` reads what is published.
"""

from mia_book.publishing.measurements import (
    Measurement,
    catalogue,
    differences,
    groups,
    measurement,
)

__all__ = ["Measurement", "catalogue", "differences", "groups", "measurement"]
