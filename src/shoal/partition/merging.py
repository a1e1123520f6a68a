"""Merging groups that fail what is required of them with near ones."""

import numpy as np
import scipy
from numpy.typing import ArrayLike

from shoal.core import MixedRecords, Partition
from shoal.core._arrays import Bools, Ints
from shoal.partition.kernels import variable_size
from shoal.partition.kernels.mdav_tree import plant
from shoal.partition.mixed_records import distances_to_centroid, mixed_records, scale

_LEAF = 32


def merge_groups(X: ArrayLike | MixedRecords, partition: Partition, failing: Bools) -> Partition:
    """Merge each failing group with the group whose medoid is nearest to its own.

    Groups are numbered as before, merged ones by the lowest number, without gaps.

    Args:
        X: records by columns, or `MixedRecords`; not changed.
        partition: at least two groups.
        failing: of each group, whether it is to be merged.

    >>> three = Partition(np.array([0, 0, 1, 2]))
    >>> merge_groups([[0.0], [1.0], [5.0], [8.0]], three, np.array([False, True, False])).labels
    array([0, 0, 1, 1])
    """
    records = mixed_records(X)
    chosen = np.flatnonzero(failing)
    links = (chosen, nearest_others(records.take(medoids(records, partition)), chosen))
    joined = scipy.sparse.coo_array((np.ones(len(chosen)), links), shape=(len(partition),) * 2)
    together = scipy.sparse.csgraph.connected_components(joined.tocsr(), directed=False)[1]
    return Partition(together[partition.labels].astype(np.int64))


def medoids(X: ArrayLike | MixedRecords, partition: Partition) -> Ints:
    """Find the record of each group nearest to its centroid; ties to the first.

    It is the member of least total squared distance to the others.

    >>> medoids([[0.0], [1.0], [5.0], [8.0]], Partition(np.array([0, 0, 0, 1])))
    array([1, 3])
    """
    distance = distances_to_centroid(scale(mixed_records(X)), partition.labels, len(partition))
    order = np.lexsort((distance, partition.labels))
    nearest: Ints = order[np.cumsum(partition.sizes) - partition.sizes]
    return nearest


def nearest_others(X: ArrayLike | MixedRecords, chosen: Ints) -> Ints:
    """Find for each chosen record the nearest other one; ties to the lowest index.

    >>> nearest_others([[0.0], [5.0], [1.0], [9.0]], np.array([1, 3]))
    array([2, 1])
    """
    Z, space = scale(mixed_records(X))
    others = np.empty(len(chosen), np.int64)
    tree = plant(Z, space, _LEAF, Z.mean(axis=0))
    variable_size.nearest_others(Z, space, tree, chosen, others)
    return others
