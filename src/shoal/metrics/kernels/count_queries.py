"""Compiled COUNT queries over boxes, 64 boxes per machine word."""

import numpy as np

from shoal.core._arrays import Floats, Ints, Unsigned64
from shoal.core.jit import kernel

WORDS = 32
"""Words in a block; the bitmaps of a block stay in the processor's cache."""

ONE = np.uint64(1)
ZERO = np.uint64(0)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
PLACE = np.zeros(64, dtype=np.int64)
for _bit in range(64):
    PLACE[(int(DE_BRUIJN) << _bit & int(ALL)) >> 58] = _bit
PLACE.flags.writeable = False


@kernel
def count(
    lower: Floats,
    upper: Floats,
    weights: Floats,
    low: Floats,
    high: Floats,
    axis: Ints,
    asked: Ints,
) -> Floats:
    """Sum the weight of the boxes inside each query, by the share of each box inside.

    Boxes are read in blocks. For each range of a block two bitmaps are made, of the boxes that it
    touches and of those that it holds whole; a query joins the bitmaps of its ranges, counts
    what it holds whole, and computes shares for the boxes on its surface alone.

    Args:
        lower: one row per axis, one column per box; lower < upper.
        upper: the same.
        weights: one per box.
        low: lower end of each distinct range.
        high: upper end of it.
        axis: axis of it.
        asked: one row per query: numbers of its ranges, padded with -1.
    """
    n, queries, ranges = len(weights), len(asked), len(low)
    answers = np.zeros(queries)
    touched = np.empty((ranges, WORDS), dtype=np.uint64)
    held = np.empty((ranges, WORDS), dtype=np.uint64)
    some, certain = np.empty(WORDS, dtype=np.uint64), np.empty(WORDS, dtype=np.uint64)
    for start in range(0, n, 64 * WORDS):
        end = min(n, start + 64 * WORDS)
        words = (end - start + 63) // 64
        even = True
        for i in range(start, end):
            even = even and weights[i] == weights[start]
        for r in range(ranges):
            _mark(lower[axis[r]], upper[axis[r]], start, end, low[r], high[r], touched[r], held[r])
        for q in range(queries):
            for w in range(words):
                some[w] = certain[w] = ALL
            # The last word may hold fewer than 64 boxes.
            tail = end - start - 64 * (words - 1)
            if tail < 64:
                some[words - 1] = certain[words - 1] = (ONE << np.uint64(tail)) - ONE
            for r in asked[q]:
                if r < 0:
                    break
                for w in range(words):
                    some[w] &= touched[r, w]
                    certain[w] &= held[r, w]
            total = 0.0
            for w in range(words):
                if even:
                    total += weights[start] * _ones(certain[w])
                else:
                    total += _sum(weights, start + 64 * w, certain[w])
                surface = some[w] & ~certain[w]
                while surface != ZERO:
                    i = start + 64 * w + _lowest(surface)
                    surface &= surface - ONE
                    share = weights[i]
                    for r in asked[q]:
                        if r < 0:
                            break
                        a, b = lower[axis[r], i], upper[axis[r], i]
                        common = min(b, high[r]) - max(a, low[r])
                        if common < b - a:
                            share *= common / (b - a)
                    total += share
            answers[q] += total
    return answers


@kernel
def _mark(
    lower: Floats, upper: Floats, start: int, end: int, low: float, high: float,
    touched: Unsigned64, held: Unsigned64,
) -> None:  # fmt: skip
    """Mark the boxes of a block that a range touches, and those that it contains, one bit each."""
    for w in range((end - start + 63) // 64):
        begin = start + 64 * w
        some = certain = ZERO
        for i in range(begin, min(end, begin + 64)):
            bit = np.uint64(i - begin)
            a, b = lower[i], upper[i]
            some |= np.uint64((a < high) & (b > low)) << bit
            certain |= np.uint64((a >= low) & (b <= high)) << bit
        touched[w], held[w] = some, certain


@kernel
def _ones(word: np.uint64) -> np.int64:
    """Count the bits that are set."""
    word -= (word >> ONE) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def _lowest(word: np.uint64) -> int:
    """Return the position of the lowest set bit; there must be one."""
    place: int = PLACE[((word & (~word + ONE)) * DE_BRUIJN) >> np.uint64(58)]
    return place


@kernel
def _sum(weights: Floats, begin: int, word: np.uint64) -> float:
    """Sum the weights whose bits are set."""
    total = 0.0
    while word != ZERO:
        total += weights[begin + _lowest(word)]
        word &= word - ONE
    return total
