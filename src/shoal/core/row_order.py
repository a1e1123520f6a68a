"""Sort rows by words of 64 bits, in which their columns are packed; ties by index."""

from collections.abc import Sequence

import numpy as np

from shoal.core._arrays import Floats, Ints, Unsigned32, Unsigned64
from shoal.core.distinct import LONG, distinct
from shoal.core.kernels.row_order import order_by_number, radix_order

_OFTEN = 4
"""Values that occur so often in the mean are sorted by counting."""

_BY_INDEX = np.empty(0, np.uint32)


def float_words(values: Floats) -> Unsigned64:
    """Words in the order of numbers; 0 and -0 are one.

    The bits of a float sort as a signed number does, once negative ones are mirrored.

    >>> np.argsort(float_words(np.array([1.5, -2.0, -1.0, 0.0]))).tolist()
    [1, 2, 3, 0]
    """
    signed = (values + 0.0).view(np.int64)
    flipped = signed >> 63
    flipped |= np.int64(-(2**63))
    flipped ^= signed
    return flipped.view(np.uint64)


def word_order(words: Unsigned64) -> Ints:
    """Sort rows by a word each.

    >>> word_order(np.array([3, 1, 3, 2], dtype=np.uint64))
    array([1, 3, 0, 2])
    """
    return words_order([words])


def words_order(words: Sequence[Unsigned64]) -> Ints:
    """Sort rows by several words, the first one first.

    The last word comes first, because each sort keeps the order of ties.
    """
    order = _BY_INDEX
    for word in words[::-1]:
        order = _sorted_by(word, order)
    return order.astype(np.int64)


def value_order(words: Unsigned64) -> Unsigned32:
    """Sort the rows of a column: by counting where values occur often.

    >>> value_order(np.array([3, 1, 3, 2], dtype=np.uint64)).tolist()
    [1, 3, 0, 2]
    """
    few = distinct(words, most=words.size // _OFTEN) if words.size >= LONG else None
    if few is None:
        return _sorted_by(words, _BY_INDEX)
    order = np.empty(words.size, np.uint32)
    rising = np.argsort(few.words)
    starts = np.empty_like(few.counts)
    starts[rising] = np.cumsum(few.counts[rising]) - few.counts[rising]
    order_by_number(few.numbers, starts, order)
    return order


def _sorted_by(words: Unsigned64, before: Unsigned32) -> Unsigned32:
    n = words.size
    if n >= LONG:
        # The buffers come from numpy, which asks the system for large pages.
        spare, order = np.empty((2, n), np.uint64), np.empty(n, np.uint32)
        if radix_order(words, before, spare[0], spare[1], (n - 1).bit_length(), order):
            return order
    if not before.size:
        return np.argsort(words, kind="stable").astype(np.uint32)
    return before[np.argsort(words[before], kind="stable")]
