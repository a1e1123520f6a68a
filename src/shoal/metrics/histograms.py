"""Bins for human readers: round ends, equal widths, the same for two tables."""

from math import floor, log10

import numpy as np
from numpy.typing import ArrayLike

from shoal.core._arrays import Floats, Ints

BINS = 24
"""About as many bins a histogram has."""
_BULK = (0.01, 0.99)
_LONG_TAIL = 1.5
"""Bins span the bulk of the values alone where the whole range is this many times as wide."""
_LARGEST = 1e15
"""Whole numbers up to here are exact; larger ones have no round steps."""


def round_edges(*columns: ArrayLike, bins: int = BINS) -> Floats:
    """Choose the edges of equally wide bins with round ends, common to several columns of numbers.

    The first and the last bin also take what lies beyond them, so every number has a bin. Missing
    numbers are left out. A width is 1, 2 or 5 times a power of ten, of whole numbers at least 1.
    The edges are computed from the values: those of an original are as confidential as it.

    Args:
        columns: numbers of each table.
        bins: about how many bins; there are at most twice as many.

    >>> round_edges([18, 25, 31, 64], bins=5)
    array([10., 20., 30., 40., 50., 60., 70.])
    """
    values = np.concatenate([np.asarray(column, dtype=np.float64).ravel() for column in columns])
    return edges_of(*np.unique(values + 0.0, return_counts=True), bins=bins)


def edges_of(values: Floats, counts: Ints, *, bins: int = BINS) -> Floats:
    """Choose the edges of `round_edges` from sorted distinct values and their counts."""
    usual = np.abs(values) < _LARGEST  # neither missing nor infinite
    values, counts = values[usual], counts[usual]
    if not values.size:
        return np.array([0.0, 1.0])
    low, high = float(values[0]), float(values[-1])
    last = np.cumsum(counts) - 1
    bulk = values[np.searchsorted(last, np.rint(np.multiply(_BULK, last[-1])))]
    if bulk[1] > bulk[0] and high - low > _LONG_TAIL * (bulk[1] - bulk[0]):
        low, high = float(bulk[0]), float(bulk[1])
    integral = bool((values == np.rint(values)).all())
    least = 1.0 if integral else max(abs(low), abs(high), 1e-12) * 1e-9
    step = _round_step(max((high - low) / bins, least))
    first, last_step = floor(low / step), floor(high / step) + 1
    return np.asarray(np.arange(first, last_step + 1) * step, dtype=np.float64)


def bin_counts(values: Floats, counts: Ints, edges: ArrayLike) -> Ints:
    """Count the records in each bin, from distinct values and their counts.

    A bin holds its lower edge, and not its upper one; the first and the last take what lies beyond
    them too.

    >>> bin_counts(np.array([-5.0, 1.0, 1.5, 2.0]), np.array([1, 1, 2, 1]), [0, 1, 2])
    array([1, 4])
    """
    ends = np.asarray(edges, dtype=np.float64)
    bins = np.searchsorted(ends[1:-1], values, side="right")
    return np.bincount(bins, counts, ends.size - 1).astype(np.int64)


def _round_step(width: float) -> float:
    """Return the least of 1, 2 and 5 times a power of ten that is at least a given width."""
    power: float = 10.0 ** floor(log10(width))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= width * (1 - 1e-9))
