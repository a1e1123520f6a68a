"""Random draws that come out the same on every machine.

A shipped table should be reproducible by everybody. So uniform numbers come straight from PCG64,
whose stream NumPy keeps as it is, and all that follows is addition, multiplication, comparison and
looking up in the tables that come with the package; logarithms and exponentials, which differ in
the last bit between processors, occur only there. tests/sample/shipped_files.py makes the tables
and says what each figure is.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shoal.core._arrays import Floats, Ints

OLDEST: Final = 105
BINS: Final = 4096
REACH: Final = 6  # the exponential is tabulated on [-6, 6]
STEPS: Final = 128  # steps per unit

with np.load(Path(__file__).parent / "files" / "tables.npz") as _tables:
    TABLES: Final[dict[str, NDArray[Any]]] = dict(_tables)


def pick(table: NDArray[np.uint16], row: Ints | int, u: Floats) -> Ints:
    """Look up the categories that uniform numbers u choose in the given rows of a table."""
    cell = (u * BINS).astype(np.int64)
    return table.reshape(-1)[row * BINS + cell].astype(np.int64)


def normal(u: Floats) -> Floats:
    """Turn uniform numbers into standard normal ones, by a table of 4097 quantiles.

    Values end at about 3.7, which is all that a table of people needs.
    """
    place = u * BINS
    return _between(TABLES["quantiles"], place)


def exponential(x: Floats) -> Floats:
    """Return e^x for x clipped to [-6, 6), by a table, to five figures."""
    place = np.clip((x + REACH) * STEPS, 0.0, 2 * REACH * STEPS - 1.0)
    return _between(TABLES["powers"], place)


def _between(table: Floats, place: Floats) -> Floats:
    low = place.astype(np.int64)
    return table[low] + (place - low) * (table[low + 1] - table[low])


def whole(x: Floats) -> Ints:
    """Round numbers that are not negative to the nearest whole number, halves up."""
    return (x + 0.5).astype(np.int64)
