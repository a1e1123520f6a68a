"""Median cuts of a table into blocks, and partitioning within blocks."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.core import Partition, Progress, silent
from shoal.errors import InputError
from shoal.partition._input import Floats, Ints, group_size, matrix
from shoal.partition.mdav import mdav

LEAST = 10_000
"""Records that a block has at least."""


def blocks(
    X: ArrayLike,
    k: int,
    *,
    method: Callable[[Floats, int], Partition] = mdav,
    by: ArrayLike | None = None,
    least: int = LEAST,
    progress: Progress = silent,
) -> Partition:
    """Cut the table into blocks and partition each block by itself.

    Every group lies within one block and is made by `method`, so that each has at least k
    records: k-anonymity is exact. The cost becomes linear in n where blocks do not grow
    with it. Groups at the seams lose some homogeneity: with blocks of 10,000 records or
    more a few per cent of the sum of squares.

    Groups are numbered block by block. Fewer than 2 `least` records form one block, and
    the result is then that of `method` on the whole table.

    Not promised: anything that depends on the groups being a function of public
    quantities. Blocks cut by the data carry no differential privacy.

    Args:
        X: records by columns, any finite numbers; not changed.
        k: least group size, at least 2.
        method: partitions one block.
        by: category of each record, as whole numbers from 0; blocks are then whole
            categories, in the order of their codes, neighbours taken together until they
            have `least` records. None cuts by `median_cut`.
        least: least size of a block, at least k.
        progress: called after each block with the number of records done.

    >>> blocks([[0.0], [0.1], [5.0], [5.1]], 2, least=2).labels
    array([0, 0, 1, 1])
    """
    X = matrix(X)
    k = group_size(k, len(X))
    if least < k:
        raise InputError(f"Blocks of {least} records cannot hold a group of k={k}.")
    cut = median_cut(X, least) if by is None else _by_category(by, len(X), least)
    labels = np.empty(len(X), np.int64)
    rows = np.argsort(cut.labels, kind="stable")
    end = 0
    groups = 0
    for size in cut.sizes:
        inside = rows[end : end + size]
        part = method(X[inside], k)
        labels[inside] = part.labels + groups
        groups += len(part)
        end += int(size)
        progress("blocks", end, len(X))
    return Partition(labels)


def median_cut(X: ArrayLike, least: int = LEAST) -> Partition:
    """Cut a table at medians of its widest column until a cut would leave fewer than `least`.

    A part of 2 `least` records or more is cut in two halves by its column of the largest
    variance: the lower half has floor(m / 2) records, equal values go to it by the lowest
    index. Parts are numbered from low to high along the cuts. Cost: O(n d log(n / least)).

    We depart from Mondrian, which cuts between values, so that blocks have equal sizes
    even where many records are equal; groups within blocks do not need the difference.

    References:
        LeFevre, DeWitt, Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006.
        doi:10.1109/ICDE.2006.101

    >>> median_cut([[1.0], [4.0], [2.0], [3.0]], 2).labels
    array([0, 1, 0, 1])
    """
    X = matrix(X)
    if least < 1:
        raise InputError(f"least must be at least 1; found {least}.")
    if not len(X):
        raise InputError("Cannot cut a table without records.")
    labels = np.zeros(len(X), np.int64)
    parts = [np.arange(len(X))]
    done = 0
    while parts:
        rows = parts.pop()
        if len(rows) < 2 * least:
            labels[rows] = done
            done += 1
            continue
        widest = int(np.argmax(_spread(X[rows])))
        lower = _lower_half(X[rows, widest])
        parts += [rows[~lower], rows[lower]]
    return Partition(labels)


def _spread(X: Floats) -> Floats:
    """Variances of the columns, up to one common factor, for numbers of any magnitude."""
    top = np.abs(X).max()
    spread: Floats = np.var(X / top if top > 0 else X, axis=0)
    return spread


def _lower_half(x: Floats) -> NDArray[np.bool_]:
    """Mark the lower half of a column, ties by the lowest index."""
    half = len(x) // 2
    edge = np.partition(x, half - 1)[half - 1]
    lower: NDArray[np.bool_] = x < edge
    ties = np.flatnonzero(x == edge)
    lower[ties[: half - int(np.count_nonzero(lower))]] = True
    return lower


def _by_category(by: ArrayLike, n: int, least: int) -> Partition:
    """Take neighbouring categories together until each block has `least` records."""
    codes = np.asarray(by)
    if codes.shape != (n,) or codes.dtype.kind not in "iu" or (n and codes.min() < 0):
        raise InputError(f"by must give one whole number from 0 for each of the {n} records.")
    names, codes = np.unique(codes, return_inverse=True)
    block: Ints = np.zeros(len(names), np.int64)
    held = 0
    for a, size in enumerate(np.bincount(codes)):
        if held >= least:
            block[a:] += 1
            held = 0
        held += int(size)
    if held < least and block[-1] > 0:
        block[block == block[-1]] -= 1
    return Partition(block[codes])
