"""Random draws that come out the same on every machine.

A shipped table should be reproducible by everybody. So uniform numbers come straight from PCG64,
whose stream NumPy keeps as it is, and all that follows is addition, multiplication, comparison and
looking up in tables; logarithms and exponentials, which differ in the last bit between processors,
occur only in tables that are rounded before use.
"""

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.core._arrays import Floats, Ints

OLDEST: Final = 105
_BINS: Final = 4096
_REACH: Final = 6  # the exponential is tabulated on [-6, 6]
_STEPS: Final = 128  # steps per unit


def chooser(weights: ArrayLike) -> NDArray[np.uint16]:
    """Prepare a table for `pick`: for each row of whole weights, the category of each of 4096 bins.

    Bin b of a row has the category whose interval of the cumulative weights contains the bin's
    middle, so frequencies are right to one part in 4096. Whole numbers keep this exact.

    >>> np.bincount(chooser([[1, 0, 3]])[0]).tolist()
    [1024, 0, 3072]
    """
    cumulated = np.cumsum(np.asarray(weights, dtype=np.int64), axis=1) * (2 * _BINS)
    middles = 2 * np.arange(_BINS) + 1
    return np.array(
        [
            np.searchsorted(row, middles * (row[-1] // (2 * _BINS)), side="right")
            for row in cumulated
        ],
        dtype=np.uint16,
    )


def ages(curve: Mapping[int, float]) -> NDArray[np.uint16]:
    """Prepare a table for `pick` with one row of ages, from the percent of people below each age.

    >>> ages({18: 0, 20: 50, 30: 100})[[0, 2047, 2048, 4095]].tolist()
    [18, 19, 20, 29]
    """
    middles = (np.arange(_BINS) + 0.5) * (100 / _BINS)
    table: NDArray[np.uint16] = np.interp(middles, list(curve.values()), list(curve)).astype("u2")
    return table


def pick(table: NDArray[np.uint16], row: Ints | int, u: Floats) -> Ints:
    """Look up the categories that uniform numbers u choose in the given rows of a table."""
    cell = (u * _BINS).astype(np.int64)
    return table.reshape(-1)[row * _BINS + cell].astype(np.int64)


def by_age(curve: Mapping[int, float]) -> Floats:
    """Tabulate a piecewise linear function of the ages 0..105, constant beyond its ends.

    >>> by_age({10: 0.0, 20: 1.0})[[0, 15, 99]].tolist()
    [0.0, 0.5, 1.0]
    """
    return np.interp(np.arange(OLDEST + 1), list(curve), list(curve.values()))


def normal(u: Floats) -> Floats:
    """Turn uniform numbers into standard normal ones, by a table of 4097 quantiles.

    Values end at about 3.7, which is all that a table of people needs.
    """
    place = u * _BINS
    low = place.astype(np.int64)
    return _QUANTILES[low] + (place - low) * (_QUANTILES[low + 1] - _QUANTILES[low])


def exponential(x: Floats) -> Floats:
    """Return e^x for x clipped to [-6, 6), by a table, to five figures."""
    place = np.clip((x + _REACH) * _STEPS, 0.0, 2 * _REACH * _STEPS - 1.0)
    low = place.astype(np.int64)
    return _POWERS[low] + (place - low) * (_POWERS[low + 1] - _POWERS[low])


def whole(x: Floats) -> Ints:
    """Round numbers that are not negative to the nearest whole number, halves up."""
    return (x + 0.5).astype(np.int64)


def _round(values: Any) -> Floats:
    return np.array([round(value, 9) for value in values])


_QUANTILES: Final = _round(NormalDist().inv_cdf((i + 0.5) / (_BINS + 1)) for i in range(_BINS + 1))
_POWERS: Final = _round(math.exp(i / _STEPS - _REACH) for i in range(2 * _REACH * _STEPS + 1))
