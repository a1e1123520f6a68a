"""Count and number the distinct values of a column."""

from typing import NamedTuple

import numpy as np

from shoal.core._arrays import Array, Floats, Ints, Unsigned32, Unsigned64
from shoal.core.kernels.distinct import count_words, perhaps_repeated

LONG = 1 << 16
"""From so many values on, loading a kernel pays."""
_FEW = 1 << 10
"""From so many values on, numbering them by a hash table is quicker than sorting them."""
_SLOTS = 15
"""Slots of the first hash table, as a power of two; each next one has eight times as many."""


class Distinct(NamedTuple):
    """The distinct 64-bit words of a column, in the order of their first occurrence.

    Attributes:
        words: the distinct words.
        counts: how often each occurs.
        numbers: the index of each row's word, if requested.
    """

    words: Unsigned64
    counts: Ints
    numbers: Unsigned32


def distinct(words: Unsigned64, *, most: int, numbered: bool = True) -> Distinct | None:
    """Count distinct 64-bit words in one pass; None if there seem to be more than `most`.

    Of N values that occur equally often, r are different after about r + r^2 / 2N words.

    >>> distinct(np.array([7, 5, 7], dtype=np.uint64), most=3)
    Distinct(words=array([7, 5], dtype=uint64), counts=array([2, 1]), numbers=array([0, 1, 0], dtype=uint32))
    """  # noqa: E501
    numbers = np.empty(words.size if numbered else 0, np.uint32)
    bits = _SLOTS
    while True:
        room = min(most, 1 << (bits - 1))
        unique, counts = np.empty(room, np.uint64), np.zeros(room, np.int64)
        slots = np.zeros(1 << bits, np.uint32)
        many = count_words(words, slots, 64 - bits, unique, counts, numbers)
        if many >= 0:
            return Distinct(unique[:many], counts[:many], numbers)
        again = -many - 1 - room
        if room == most or (most < words.size and room * room > 2 * most * again):
            return None
        bits += 3


def value_counts(values: Floats) -> tuple[Floats, Ints]:
    """Return the sorted distinct values and their counts; 0 equals -0, and NaN equals NaN.

    >>> value_counts(np.array([2.0, -0.0, 2.0, 0.0]))
    (array([0., 2.]), array([2, 2]))
    """
    values = values + 0.0
    if values.size >= LONG:
        counted = distinct(values.view(np.uint64), most=values.size // 2, numbered=False)
        if counted is not None and not np.isnan(numbers := counted.words.view(np.float64)).any():
            order = np.argsort(numbers)
            return numbers[order], counted.counts[order]
    return np.unique(values, return_counts=True)


def value_ranks(values: Array) -> Ints:
    """Number the distinct values of a column in order, from 0; NaN is the last.

    >>> value_ranks(np.array([2.5, -1.0, 2.5, np.nan]))
    array([1, 0, 1, 2])
    """
    if values.size >= _FEW and values.dtype in (np.float64, np.int64):
        plain = values + 0  # in one piece, and without -0
        counted = distinct(plain.view(np.uint64), most=values.size // 2)
        if counted is not None and np.isnan(once := counted.words.view(plain.dtype)).sum() < 2:
            ranks = np.empty(once.size, np.int64)
            ranks[np.argsort(once)] = np.arange(once.size)
            return ranks[counted.numbers]
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def occurring_once(words: Unsigned64) -> int:
    """Count the words that occur exactly once.

    A word whose leading bits are unique occurs once; only the others are sorted.

    >>> occurring_once(np.array([7, 5, 7], dtype=np.uint64))
    1
    """
    rest = words
    if words.size >= LONG:
        bits = words.size.bit_length() + 4
        rest = np.empty_like(words)
        seen = np.zeros(1 << (bits - 5), np.uint64)
        rest = rest[: perhaps_repeated(words, 64 - bits, seen, rest)]
    rest = np.sort(rest)
    new = np.concatenate(([True], rest[1:] != rest[:-1], [True]))[: rest.size + 1]
    return words.size - rest.size + int((new[1:] & new[:-1]).sum())
