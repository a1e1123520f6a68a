"""V-MDAV: microaggregation with groups of variable size."""

import math

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import MixedRecords, Partition, Progress, silent
from shoal.core._arrays import Ints
from shoal.errors import InputError
from shoal.partition._input import group_size
from shoal.partition.kernels.mdav_tree import plant
from shoal.partition.kernels.variable_size import variable_groups
from shoal.partition.mixed_records import (
    Scaled,
    distances_of_record,
    distances_to_centroid,
    mixed_records,
    scale,
    within_groups,
)

GAMMAS = (0.0, 0.2, 0.5, 0.8, 1.0, 1.1, 1.5, 2.0, 3.0)
_LEAF = 32


def vmdav(
    X: ArrayLike | MixedRecords, k: int, *, gamma: float | None = None, progress: Progress = silent
) -> Partition:
    """Put the records of X in groups of k or more, which may take in records close to them.

    With c the mean of all records, while at least k records are free:

        e = the free record farthest from c; its group is e and its k - 1 nearest free ones
        while the group has fewer than 2k - 1 records:
            u = the free record nearest to any member, at distance d_in
            d_out = distance of u to its nearest free record
            if d_in < gamma d_out, u joins the group; otherwise the group is closed

    Free records left over, fewer than k, go one by one to the group with the nearest mean.

    We depart from the paper in two ways, so every group has k to 2k - 1 records. A
    group stops growing when exactly k records are free, and the leftovers go to the
    nearest group that has room (the means are those before any leftover).

    Ties go to the lowest index, or the group that formed first. The arithmetic is that of
    `mdav`. Cost: about k times that of MDAV over a kd-tree, for each gamma.

    Not promised: a loss below MDAV's. On data without clusters gamma = 0 is often best.

    Args:
        X: records by columns, any finite numbers, or `MixedRecords`; not changed.
        k: least group size, at least 2.
        gamma: 0 never grows a group; the paper uses 0.2 for scattered and 1.1 for
            clustered data. None takes the gamma of `GAMMAS` with the least sum of squares,
            the lowest of equals; do not do that where a privacy claim needs groups that
            do not depend on the data.
        progress: called after each gamma.

    References:
        Solanas and Martínez-Ballesté, "V-MDAV: a multivariate microaggregation with
        variable group size", COMPSTAT 2006.

    >>> vmdav([[0.0], [0.1], [0.2], [5.0], [5.1]], 2, gamma=1.0).labels
    array([1, 1, 1, 0, 0])
    """
    given = mixed_records(X)
    k = group_size(k, len(given))
    if gamma is not None and not (math.isfinite(gamma) and gamma >= 0):
        raise InputError(
            "The argument gamma, how willingly a group grows, must be a finite "
            "number of at least 0, or None."
        )
    records = scale(given)
    best = np.zeros(len(given), np.int64)
    least = math.inf
    grid = GAMMAS if gamma is None else (float(gamma),)
    for tried, candidate in enumerate(grid, start=1):
        labels = _groups(records, k, candidate)
        loss = within_groups(records, labels) if gamma is None else 0.0
        if loss < least:
            best, least = labels, loss
        progress("trying gamma", tried, len(grid))
    return Partition(best)


def _groups(records: Scaled, k: int, gamma: float) -> Ints:
    """Form V-MDAV's groups for one gamma."""
    Z, space = records
    labels = np.full(len(Z), -1, np.int64)
    far = distances_to_centroid(records, np.zeros(len(Z), np.int64), 1)
    order = np.argsort(-far, kind="stable")
    tree = plant(Z, space, _LEAF, Z.mean(axis=0))
    g, left = variable_groups(Z, space, k, gamma * gamma, order, tree, labels)
    if left:
        formed = labels.copy()
        room = 2 * k - 1 - np.bincount(labels[labels >= 0], minlength=g)
        for i in np.flatnonzero(labels < 0).tolist():
            far = distances_of_record(records, i, formed, g)
            far[room == 0] = np.inf
            labels[i] = np.argmin(far)
            room[labels[i]] -= 1
    return labels
