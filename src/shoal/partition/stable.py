"""Stable microaggregation of a pair of tables, and a measure of partition change."""

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from shoal.core import Partition
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.partition._exact_scale import unit_scaled
from shoal.partition._input import group_size, matrix
from shoal.partition.mdav import mdav


class PartitionChange(NamedTuple):
    """The effect of changing one record on a partition."""

    groups: int
    """How many pairs of corresponding groups differ."""
    records: int
    """By how many records a pair differs at most."""


def stable(X: ArrayLike, Y: ArrayLike, k: int) -> tuple[Partition, Partition]:
    """Group two tables that differ in one record so that at most two groups differ.

    Algorithm 1 of the paper, with MDAV as the partition function and means as
    representatives. X is grouped by MDAV. Y takes over the groups of X, with the new
    record r' in the place of the old one. If r' lies nearest to the mean of another
    group, the group c_min with the least

        dist(r', mean of c) + dist(mean of r's group, mean of c)

    is sought, and r' changes places with that record of c_min for which the information
    loss of Y is least, even if all exchanges are worse than none. Means are those of X.
    The loss is the paper's IL1s, the sum of |y_ij - mean_ij| / (sqrt(2) S_j) over all cells
    (divided by their number), with S_j the standard deviation of column j of Y; a
    constant column adds nothing. Ties go to the first group and the lowest index.

    This needs both tables. It is not a mechanism, which sees one: as a function of X alone
    it is MDAV. It serves experiments and audits; nothing about privacy follows from it.

    References:
        Iftikhar, Wang, Lin, "Publishing differentially private datasets via stable
        microaggregation", EDBT 2019, Algorithm 1. ISBN 978-3-89318-081-3

    >>> [p.labels.tolist() for p in stable([[0], [1], [8], [9]], [[0], [9], [8], [9]], 2)]
    [[0, 0, 1, 1], [0, 1, 0, 1]]
    """
    X, Y = matrix(X), matrix(Y, "Y")
    k = group_size(k, len(X))
    if X.shape != Y.shape:
        raise InputError(
            f"The two tables X and Y must have the same shape; found {X.shape} and {Y.shape}."
        )
    rows = np.flatnonzero((X != Y).any(axis=1))
    if len(rows) > 1:
        raise InputError(
            f"The two tables X and Y must differ in exactly one record; they differ in {len(rows)}."
        )
    # One scale for both, so squares of any finite numbers are finite.
    X, Y = np.split(unit_scaled(np.vstack([X, Y])), 2)
    before = mdav(X, k)
    if not len(rows):
        return before, before
    row = int(rows[0])
    labels = before.labels
    means = _means(X, labels)
    far = np.sqrt(((means - Y[row]) ** 2).sum(axis=1))
    group = int(labels[row])
    if np.argmin(far) == group:
        return before, before
    both = far + np.sqrt(((means - means[group]) ** 2).sum(axis=1))
    both[group] = np.inf
    other = int(np.argmin(both))
    members = np.flatnonzero(labels == other)
    concerned = np.flatnonzero((labels == other) | (labels == group))
    spread = Y.std(axis=0, ddof=1)
    losses = np.empty(len(members))
    for a, member in enumerate(members):
        swapped = labels.copy()
        swapped[row] = other
        swapped[member] = group
        losses[a] = _loss(Y[concerned], swapped[concerned] == group, spread)
    after = labels.copy()
    after[row] = other
    # Sums of absolute deviations often tie; their rounding must not decide.
    after[members[np.argmax(losses <= losses.min() * (1 + 1e-12))]] = group
    return before, Partition(after)


def insensitivity(before: Partition, after: Partition, record: int) -> int:
    """Return by how many records corresponding groups differ at most after one record changed.

    The least over all bijections between the groups: 1 or less for every pair of tables
    is what makes a method insensitive. See `stability` for the details.

    >>> insensitivity(Partition([0, 0, 1, 1]), Partition([1, 0, 1, 0]), 0)
    1
    """
    return stability(before, after, record).records


def stability(before: Partition, after: Partition, record: int) -> PartitionChange:
    """Count how many groups changed, and by how many records, after one record changed.

    Groups correspond by a bijection; two groups A and B differ by max(|A - B|, |B - A|)
    records, where the changed record counts as two different ones, before and after.
    Among all bijections those with the most equal pairs are taken, and of these one whose
    largest difference is least (matching equal groups never makes that larger). Where the
    numbers of groups differ, the smaller side is filled up with empty groups.

    A method is stable if for every pair of tables at most two pairs differ, by one record;
    insensitive if all pairs differ by at most one. A measurement on some pairs can refute
    either and prove neither. Memory is quadratic in the number of groups that changed.

    Args:
        before: groups of the first table.
        after: groups of the second table, same rows.
        record: row in which the tables differ.

    References:
        Iftikhar, Wang, Lin, "Publishing differentially private datasets via stable
        microaggregation", EDBT 2019, Definition 3.1. ISBN 978-3-89318-081-3

    >>> stability(Partition([0, 0, 1, 1]), Partition([1, 0, 1, 0]), 0)
    PartitionChange(groups=2, records=1)
    """
    n = len(before.labels)
    if len(after.labels) != n or not 0 <= record < n:
        raise InputError(
            "Both partitions must have the same rows, and the record that differs "
            "must be one of them."
        )
    rest = np.delete(np.arange(n), record)
    common = scipy.sparse.csr_array(
        (np.ones(n - 1, np.int64), (before.labels[rest], after.labels[rest])),
        shape=(len(before), len(after)),
    ).tocoo()
    equal = (common.data == before.sizes[common.row]) & (common.data == after.sizes[common.col])
    left = np.setdiff1d(np.arange(len(before)), common.row[equal])
    right = np.setdiff1d(np.arange(len(after)), common.col[equal])
    side = max(len(left), len(right))
    if not side:
        return PartitionChange(0, 0)
    overlap = np.zeros((side, side), np.int64)
    kept = np.isin(common.row, left) & np.isin(common.col, right)
    rows = np.searchsorted(left, common.row[kept])
    overlap[rows, np.searchsorted(right, common.col[kept])] = common.data[kept]
    sizes = np.zeros((2, side), np.int64)
    sizes[0, : len(left)] = before.sizes[left]
    sizes[1, : len(right)] = after.sizes[right]
    return PartitionChange(side, _bottleneck(np.maximum(sizes[0][:, None], sizes[1]) - overlap))


def _bottleneck(difference: Ints) -> int:
    """Find the perfect matching whose largest entry is least, by bisection."""
    values = np.unique(difference)
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        allowed = scipy.sparse.csr_array((difference <= values[middle]).astype(np.int8))
        if (scipy.sparse.csgraph.maximum_bipartite_matching(allowed) >= 0).all():
            high = middle
        else:
            low = middle + 1
    return int(values[low])


def _means(X: Floats, labels: Ints) -> Floats:
    total = np.zeros((int(labels.max()) + 1, X.shape[1]))
    np.add.at(total, labels, X)
    means: Floats = total / np.bincount(labels)[:, None]
    return means


def _loss(Y: Floats, inside: NDArray[np.bool_], spread: Floats) -> float:
    """Compute the IL1s of two groups, up to a constant factor."""
    off = np.empty_like(Y)
    for part in (inside, ~inside):
        off[part] = np.abs(Y[part] - Y[part].mean(axis=0))
    varying = spread > 0
    return float((off[:, varying] / spread[varying]).sum())
