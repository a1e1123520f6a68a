"""Compiled hash table that counts words, and a filter of words that occur once."""

import numpy as np

from shoal.core._arrays import Ints, Unsigned32, Unsigned64
from shoal.core.jit import kernel


@kernel
def count_words(
    words: Unsigned64,
    slots: Unsigned32,
    shift: int,
    found: Unsigned64,
    counts: Ints,
    numbers: Unsigned32,
) -> int:
    """Number the distinct words in order of first occurrence, and count each.

    A word is sought from the slot that the leading bits of its product with 2^64 over the golden
    ratio say; a slot holds the number of its word, from 1, or 0. `numbers` says which word each one
    is, unless it is empty.

    Args:
        words: what is counted.
        slots: zeros, 2^(64 - shift) of them, and more than there is room in `found`.
        shift: bits of the product that are left out.
        found: takes the distinct words.
        counts: zeros; takes how often each occurs.
        numbers: takes the number of each word, from 0; or empty.

    Returns:
        How many distinct words there are; or -1 - i if there is no room for word i.
    """
    many = 0
    room = found.size
    numbered = numbers.size > 0
    mask = np.uint64(slots.size - 1)
    by = np.uint64(shift)
    for i in range(words.size):
        word = words[i]
        at = ((word ^ (word >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)) >> by
        number = np.int64(slots[at])
        while number and found[number - 1] != word:
            at = (at + np.uint64(1)) & mask
            number = np.int64(slots[at])
        if number == 0:
            if many == room:
                return -1 - i
            found[many] = word
            many += 1
            number = np.int64(many)
            slots[at] = number
        counts[number - 1] += 1
        if numbered:
            numbers[i] = number - 1
    return many


@kernel
def perhaps_repeated(words: Unsigned64, shift: int, seen: Unsigned64, rest: Unsigned64) -> int:
    """Keep the words whose leading bits another word shares; return how many there are.

    `seen` has two bits for each pattern of leading bits, zeros at first: whether it occurs, and
    whether it does so again.
    """
    by = np.uint64(shift)
    one, two, five = np.uint64(1), np.uint64(2), np.uint64(5)
    for i in range(words.size):
        at = words[i] >> by
        place = (at & np.uint64(31)) << one
        known = seen[at >> five]
        again = (known >> place) & one
        seen[at >> five] = known | ((one | (again << one)) << place)
    kept = 0
    for i in range(words.size):
        at = words[i] >> by
        if (seen[at >> five] >> ((at & np.uint64(31)) << one)) & two:
            rest[kept] = words[i]
            kept += 1
    return kept
