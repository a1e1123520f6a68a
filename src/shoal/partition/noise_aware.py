"""Groups without a minimum size, for noise that shrinks as groups grow."""

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import Partition, Progress, silent
from shoal.core._arrays import Floats
from shoal.errors import InputError
from shoal.partition._input import matrix

REACH = 4096
"""Nearest records that are looked at when a group grows."""


def noise_aware(X: ArrayLike, noise: float, *, progress: Progress = silent) -> Partition:
    """Let groups grow while aggregation error plus expected noise falls.

    Every record of a group C will carry the group's mean, with noise whose expected square
    is noise / |C|^2. The cost of a group is

        cost(C) = SSE(C) + |C| noise / |C|^2,    SSE(C) = sum |x - mean C|^2

    While records are free: e is the free record farthest from the mean of the free ones; its
    group is e with the s - 1 free records nearest to it, for the s that makes the cost for
    each record, cost(C) / s, least. Only the nearest 4,096 are looked at.

    With noise = 0 every record is alone; the more noise, the larger the groups. Ties go to
    the lowest index, or the smaller group. Cost: O(n^2 / s d) for groups of size s.

    Not promised: any group size, and a total cost below that of groups of one size k.

    Args:
        X: records by columns, any finite numbers; not changed.
        noise: expected squared length of the noise on a group of one record.
        progress: called now and then with the number of grouped records.

    References:
        Soria-Comas and Domingo-Ferrer, "Differentially private data sets based on
        microaggregation and record perturbation", MDAI 2017, future work.

    >>> noise_aware([[0.0], [0.1], [5.0], [5.1]], 0.5).labels
    array([0, 0, 1, 1])
    """
    X = matrix(X)
    if not (np.isfinite(noise) and noise >= 0):
        raise InputError(f"noise must be a number from 0; found {noise}.")
    if not len(X):
        raise InputError("Cannot group a table without records.")
    labels = np.empty(len(X), np.int64)
    free = np.arange(len(X))
    groups = 0
    while free.size:
        away = _squared(X[free] - X[free].mean(axis=0))
        seed = int(np.argmax(away))
        near = _nearest(_squared(X[free] - X[free[seed]]))
        size = _best_size(X[free[near]], noise)
        labels[free[near[:size]]] = groups
        free = np.delete(free, near[:size])
        groups += 1
        if groups % 64 == 0:
            progress("grouping records", len(X) - free.size, len(X))
    return Partition(labels)


def _squared(difference: Floats) -> Floats:
    result: Floats = np.einsum("ij,ij->i", difference, difference)
    return result


def _nearest(distance: Floats) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Positions of the nearest records, nearest first, ties to the lowest index."""
    if distance.size > REACH:
        limit = np.partition(distance, REACH - 1)[REACH - 1]
        inside = np.flatnonzero(distance <= limit)
        return inside[np.argsort(distance[inside], kind="stable")][:REACH]
    return np.argsort(distance, kind="stable")


def _best_size(near: Floats, noise: float) -> int:
    """Size of the prefix with the least cost for each record."""
    # Relative to the first record, so that nothing is lost where values are large.
    shifted = near - near[0]
    size = np.arange(1, len(near) + 1)
    sums = np.cumsum(shifted, axis=0)
    sse = np.cumsum(_squared(shifted)) - _squared(sums) / size
    cost = (np.maximum(sse, 0.0) + noise / size) / size
    return int(np.argmin(cost)) + 1
