"""Sort rows by whole numbers of 64 bits, in which their columns are packed."""

from collections.abc import Sequence

import numpy as np

from shoal.core._arrays import Ints, Unsigned64

_HALF = np.uint64(1 << 63)
_LONG = 1 << 16
"""From this length on, loading a radix sort pays."""


def word_order(words: Unsigned64) -> Ints:
    """Sort words, ties by index.

    >>> word_order(np.array([3, 1, 3, 2], dtype=np.uint64))
    array([1, 3, 0, 2])
    """
    n = words.size
    if n >= _LONG:
        from shoal.partition.kernels.univariate import rank_order  # noqa: PLC0415

        # The kernel sorts the bits of floats: below 2^63 these are negative, and mirrored.
        bits = ~words
        if words.max() >= _HALF:
            bits = np.where(words >= _HALF, words ^ _HALF, bits)
        spare, order = np.empty((2, n), np.uint64), np.empty(n, np.uint32)
        if rank_order(bits.view(np.int64), spare[0], spare[1], (n - 1).bit_length(), order):
            return order.astype(np.int64)
    return np.argsort(words, kind="stable")


def words_order(words: Sequence[Unsigned64]) -> Ints:
    """Sort rows by several words, the first one first; ties by index.

    The last word comes first, because each sort keeps the order of ties.
    """
    order = word_order(words[-1])
    for word in words[-2::-1]:
        order = order[word_order(word[order])]
    return order
