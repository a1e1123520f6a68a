"""Buckets of confidential values: nearly equal in mass, with adjacent values together."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.partition._input import column


def rank_buckets(places: ArrayLike, b: int, *, heights: ArrayLike | None = None) -> Ints:
    """Put ordered values into at most b buckets of nearly equal mass.

    Border j of b - 1 belongs after floor(j N / b + 1/2) of the N sorted records. Equal values
    are never separated: a value belongs to one bucket. So each border moves to the nearest place
    between two values, ties to the lower one, and vanishes where the table's end is nearer.
    Without ties these are the paper's buckets; with ties their sizes differ, and there may
    be fewer than b, but never one bucket alone if b and the number of values are 2 or more.

    With `heights`, places are leaves of a hierarchy in the order of `hierarchy_order`. Of the
    places within N / (4 b) records of the wanted one, the border is then the one where the
    tallest branches part, the nearest of several, so branches stay together where masses
    allow it.

    Cost: one sort.

    Args:
        places: number of each record to sort by; equal numbers are one value.
        b: largest number of buckets, at least 1.
        heights: height of the lowest node above places v and v + 1, for v = 0, 1, ...; places
            are then whole numbers.

    Returns:
        Bucket of each record, from 0, in the order of the places, none empty.

    References:
        Domingo-Ferrer and Soria-Comas, "From t-closeness to differential privacy and vice
        versa in data anonymization", Knowledge-Based Systems 74 (2015), section 6.2.

    >>> rank_buckets([5, 1, 1, 1, 9, 7], 3)
    array([1, 0, 0, 0, 2, 2])
    """
    place = column(places, "places")
    _at_least_one(b)
    values, code, counts = np.unique(place, return_inverse=True, return_counts=True)
    tall = None if heights is None else _between(values, np.asarray(heights, np.int64))
    borders = _borders(counts, b, tall)
    buckets: Ints = np.searchsorted(borders, code.ravel(), side="right").astype(np.int64)
    return buckets


def joint_buckets(
    columns: Sequence[ArrayLike], b: int, *, heights: Mapping[int, ArrayLike] | None = None
) -> Ints:
    """Put combinations of values into at most b buckets, column by column.

    The first column is cut into f buckets by `rank_buckets`, then each of them by the second
    column, and so on. Of m columns and b buckets left, f is the largest number with f^m <= b,
    but at least 2 while b is. So a bucket is a box, and masses are as nearly equal as ties
    allow. A later column is cut at other values in other boxes. With fewer than 2^m buckets
    the last columns are not cut at all: they take one value in the whole bucket.

    Any function of the bucket, such as one column's part in it, is as close as the bucket is:
    the ratio of two sums lies between the ratios of their terms.

    Args:
        columns: `places` of each column.
        b: largest number of buckets, at least 1.
        heights: by number of the column, see `rank_buckets`.

    Returns:
        One row per record, one column per column: the bucket after that many cuts, from 0, none
        empty. The last column is the bucket; those before it are unions of buckets.

    >>> joint_buckets([[1, 2, 3, 4], [9, 8, 7, 6]], 4).T
    array([[0, 0, 1, 1],
           [1, 0, 3, 2]])
    """
    _at_least_one(b)
    if not columns:
        raise InputError("Cutting values into buckets needs at least one column; found none.")
    tall = heights or {}
    buckets = np.zeros(len(column(columns[0], "columns")), np.int64)
    left = b
    steps = []
    for number, places in enumerate(columns):
        place = column(places, "columns")
        if len(place) != len(buckets):
            raise InputError("The columns whose values are cut into buckets must be equally long.")
        parts = _parts(left, len(columns) - number)
        left //= parts
        buckets = _cut(buckets, place, parts, tall.get(number))
        steps.append(buckets)
    return np.column_stack(steps)


def _cut(buckets: Ints, place: Floats, parts: int, heights: ArrayLike | None) -> Ints:
    """Cut every bucket by a further column, and renumber the parts."""
    inner = np.zeros_like(buckets)
    order = np.argsort(buckets, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(buckets[order])) + 1):
        inner[members] = rank_buckets(place[members], parts, heights=heights)
    joint: Ints = np.unique(buckets * parts + inner, return_inverse=True)[1].ravel()
    return joint


def _parts(b: int, columns: int) -> int:
    """Return the largest f with f^columns <= b, but at least 2 if b is."""
    f = 1
    while (f + 1) ** columns <= b:
        f += 1
    return min(max(f, 2), b)


def _at_least_one(b: int) -> None:
    if b < 1:
        raise InputError(
            f"The number of buckets b must be a whole number of at least 1; found {b}."
        )


def _between(values: Floats, heights: Ints) -> Ints:
    """Return the height of the lowest node above each occurring value and the next one."""
    starts = values.astype(np.int64)
    if len(values) and ((starts != values).any() or starts[0] < 0 or starts[-1] > len(heights)):
        raise InputError(
            f"The places of the values must be whole numbers from 0 to {len(heights)}, the "
            f"number of heights."
        )
    if len(values) < 2:
        return np.empty(0, np.int64)
    tallest: Ints = np.maximum.reduceat(heights[: starts[-1]], starts[:-1])
    return tallest


def _borders(counts: Ints, b: int, heights: Ints | None) -> Ints:
    """Return the indices of the values at which a new bucket begins, ascending."""
    n = int(counts.sum())
    below = np.cumsum(counts)[:-1]
    chosen = set()
    for j in range(1, b):
        wanted = (2 * j * n + b) // (2 * b)
        off = np.abs(below - wanted)
        if not off.size or off.min() > min(wanted, n - wanted):
            continue
        best = int(off.argmin())
        if heights is not None:
            inside = np.flatnonzero(4 * b * off <= n)
            if inside.size:
                best = int(inside[np.lexsort((inside, off[inside], -heights[inside]))[0]])
        chosen.add(best + 1)
    return np.array(sorted(chosen), np.int64)
