"""Find cuts of a node from counts alone: at the median, or at the borders nearest it."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shoal.core._arrays import Floats, Ints


class Cut(NamedTuple):
    """A cut: x < value goes low, with `fewer` records; 0 if there is no such cut."""

    value: float
    fewer: int


def merge_equal(slot: Ints, values: Floats, counts: Ints) -> tuple[Ints, Floats, Ints]:
    """Sort by node and value, and add up the counts of equal ones."""
    order = np.lexsort((values, slot))
    slot, values, counts = slot[order], values[order], counts[order]
    new = np.ones(len(slot), dtype=bool)
    new[1:] = (slot[1:] != slot[:-1]) | (values[1:] != values[:-1])
    starts = np.flatnonzero(new)
    sums = np.add.reduceat(counts, starts) if len(starts) else counts
    return slot[starts], values[starts], sums


def middle_place(held: Ints, rank: int) -> tuple[int, int, int]:
    """Find the grid point that holds the record of a rank, and the records before and up to it.

    >>> middle_place(np.array([2, 1, 0, 3]), 3)
    (3, 3, 6)
    """
    upto = np.cumsum(held)
    place = int(np.searchsorted(upto, rank, side="right"))
    return place, int(upto[place] - held[place]), int(upto[place])


def around(middle: float, fewer: int, upto: int, size: int, top: float) -> list[Cut]:
    """The two cuts nearest the median, the more balanced first, as `mondrian_tree` has them."""
    above = float(np.nextafter(middle, np.inf))
    return _order_cuts([Cut(middle, fewer), Cut(above, upto if middle < top else 0)], size)


def border_cuts(held: Ints, borders: Ints) -> list[Cut]:
    """Cuts nearest the median, among the highest of the borders after each code held.

    >>> border_cuts(np.array([2, 3, 0, 4]), np.array([1, 2, 2]))
    [Cut(value=2.0, fewer=5), Cut(value=0.0, fewer=0)]
    """
    codes = np.flatnonzero(held)
    size = int(held.sum())
    cuts = [Cut(0.0, 0), Cut(0.0, 0)]
    tallest = [int(borders[a:b].max()) for a, b in pairwise(codes.tolist())]
    passed = 0
    for code, tall in zip(codes, tallest, strict=False):
        passed += int(held[code])
        if tall != max(tallest):
            continue
        if passed <= size // 2:
            cuts[0] = Cut(float(code + 1), passed)
        elif not cuts[1].fewer:
            cuts[1] = Cut(float(code + 1), passed)
    return _order_cuts(cuts, size)


def _order_cuts(cuts: list[Cut], size: int) -> list[Cut]:
    balance = [min(cut.fewer, size - cut.fewer) for cut in cuts]
    return cuts[::-1] if balance[1] > balance[0] else cuts
