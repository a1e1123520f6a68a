"""Compiled radix sort of rows by 64-bit words."""

import numpy as np

from shoal.core._arrays import Ints, Unsigned32, Unsigned64
from shoal.core.jit import kernel

PASSES = 3


@kernel
def radix_order(
    keys: Unsigned64,
    before: Unsigned32,
    words: Unsigned64,
    spare: Unsigned64,
    index_bits: int,
    order: Unsigned32,
) -> bool:
    """Sort rows, already in some order, stably by their keys.

    An empty order is that of the index.

    A word holds the leading bits in which the keys differ, up to 36 of them, and the row in
    `index_bits`. Words are sorted by three passes of a radix sort, which keeps ties in order; then
    the few rows whose keys agree in the leading bits are put in order by insertion. Returns False,
    without an order, if too many agree.
    """
    n = keys.size
    low = np.uint64(2**64 - 1)
    high = np.uint64(0)
    for i in range(n):
        low = min(low, keys[i])
        high = max(high, keys[i])
    digit = (min(36, 64 - index_bits) + PASSES - 1) // PASSES
    digit = min(digit, (64 - index_bits) // PASSES)
    drop = np.uint64(max(0, bit_length(high - low) - PASSES * digit))
    by = np.uint64(index_bits)
    mask = np.uint64(2**digit - 1)
    starts = np.zeros((PASSES, 2**digit), np.int64)
    ordered = before.size > 0
    for i in range(n):
        row = before[i] if ordered else i
        key = (keys[row] - low) >> drop
        words[i] = (key << by) | np.uint64(row)
        for a in range(PASSES):
            starts[a, (key >> np.uint64(a * digit)) & mask] += 1
    for a in range(PASSES):
        words, spare = scatter(words, spare, starts[a], np.uint64(index_bits + a * digit), mask)
    index = (np.uint64(1) << by) - np.uint64(1)
    for i in range(n):
        order[i] = words[i] & index
    if drop == np.uint64(0):
        return True
    moves = 0
    for i in range(1, n):
        if words[i] >> by == words[i - 1] >> by:
            who = order[i]
            key = keys[who]
            at = i
            while at > 0 and words[at - 1] >> by == words[i] >> by and keys[order[at - 1]] > key:
                order[at] = order[at - 1]
                at -= 1
            order[at] = who
            moves += i - at
            if moves > 4 * n:
                return False
    return True


@kernel
def bit_length(number: np.uint64) -> int:
    """Count the bits of a number up to its leading one."""
    length = 0
    while number > np.uint64(0):
        number >>= np.uint64(1)
        length += 1
    return length


@kernel
def scatter(
    words: Unsigned64, spare: Unsigned64, sizes: Ints, shift: np.uint64, mask: np.uint64
) -> tuple[Unsigned64, Unsigned64]:
    """Sort words stably by one digit into `spare`; return both buffers, the sorted one first."""
    total = 0
    for digit in range(sizes.size):
        size = sizes[digit]
        sizes[digit] = total
        total += size
    for i in range(words.size):
        word = words[i]
        value = np.int64((word >> shift) & mask)
        at = sizes[value]
        sizes[value] = at + 1
        spare[at] = word
    return spare, words
