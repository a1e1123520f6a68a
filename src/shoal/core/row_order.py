"""Sort rows by 64-bit words, into which their columns are packed; number distinct rows."""

from collections.abc import Iterable, Sequence

import numpy as np

from shoal.core._arrays import Floats, Ints, Unsigned32, Unsigned64
from shoal.core.kernels.row_order import radix_order

LONG = 1 << 16
"""From so many rows on, loading a kernel pays."""
_MOST = 2**62


def float_words(values: Floats) -> Unsigned64:
    """Convert floats to words of the same order; 0 equals -0.

    The bits of a float sort as a signed number does, once negative ones are mirrored.

    >>> np.argsort(float_words(np.array([1.5, -2.0, -1.0, 0.0]))).tolist()
    [1, 2, 3, 0]
    """
    signed = (values + 0.0).view(np.int64)
    flipped = signed >> 63
    flipped |= np.int64(-(2**63))
    flipped ^= signed
    return flipped.view(np.uint64)


def value_order(values: Floats) -> Ints:
    """Sort a column without missing numbers.

    >>> value_order(np.array([3.0, 1.0, 3.0, 2.0])).tolist()
    [1, 3, 0, 2]
    """
    return words_order([float_words(values)])


def row_keys(codes: Iterable[Ints], rows: int) -> Ints:
    """Number the distinct rows from 0 without gaps, in the order of the columns.

    The codes are written as digits of one number, which is renumbered before it overflows.
    Without columns all rows are equal.

    >>> row_keys([np.array([1, 0, 1]), np.array([0, 0, 0])], 3)
    array([1, 0, 1])
    """
    keys, room = np.zeros(rows, dtype=np.int64), 1
    for digit in codes:
        width = int(digit.max(initial=0)) + 1
        if room > _MOST // width:
            keys = np.unique(keys, return_inverse=True)[1]
            room = int(keys.max(initial=0)) + 1
        keys = keys * width + digit
        room *= width
    return np.unique(keys, return_inverse=True)[1]


def words_order(words: Sequence[Unsigned64]) -> Ints:
    """Sort rows by several words, the leading word first."""
    order = np.empty(0, np.uint32)  # by index
    for word in words[::-1]:  # the last word first, because each sort is stable
        order = _sort_by(word, order)
    return order.astype(np.int64)


def _sort_by(words: Unsigned64, before: Unsigned32) -> Unsigned32:
    n = words.size
    if n >= LONG:
        # The buffers come from numpy, which asks the system for large pages.
        spare, order = np.empty((2, n), np.uint64), np.empty(n, np.uint32)
        if radix_order(words, before, spare[0], spare[1], (n - 1).bit_length(), order):
            return order
    if not before.size:
        return np.argsort(words, kind="stable").astype(np.uint32)
    return before[np.argsort(words[before], kind="stable")]
