"""Mu-Approx: groups cut from a forest of nearest neighbours."""

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import MixedRecords, Partition
from shoal.core._arrays import Floats, Ints
from shoal.partition._input import group_size
from shoal.partition.kernels.mdav_tree import plant
from shoal.partition.kernels.variable_size import cut_forest, grow_forest
from shoal.partition.mdav import mdav
from shoal.partition.mixed_records import (
    Scaled,
    distances_of_group,
    mixed_records,
    scale,
)

_LEAF = 32


def mu_approx(X: ArrayLike | MixedRecords, k: int) -> Partition:
    """Form groups of k to 2k - 1 records along a forest of short edges.

    Forest: while a component has fewer than k records, its root (its one record without
    an outgoing edge) is linked to the nearest record outside the component, which is
    always one of the root's k - 1 nearest. Components are taken by their lowest index.

    Decomposition: a component of 2k or more is cut. From its leaves upwards, each record
    gathers what its children left, the farthest child first, and k records together are
    a group. What is left at the root, fewer than k, joins the group of its component with
    the nearest mean; if that makes 2k or more, MDAV cuts the group in two.

    Ties go to the lowest index. Groups are numbered by their lowest index. Cost: n queries
    of a kd-tree.

    The two procedures are those of the references; the order in which components, children and
    ties are taken is ours, as is the last cut by MDAV, in place of the paper's groups of up to
    max(2k - 1, 3k - 5). So no approximation factor is claimed here.

    References:
        Domingo-Ferrer, Sebé, Solanas, "A polynomial-time approximation to optimal
        multivariate microaggregation", Computers and Mathematics with Applications 55
        (2008). doi:10.1016/j.camwa.2007.04.034
        Aggarwal et al., "Approximation algorithms for k-anonymity", Journal of Privacy
        Technology (2005).

    >>> mu_approx([[0.0], [0.1], [5.0], [5.1], [5.2]], 2).labels
    array([0, 0, 1, 1, 1])
    """
    records = mixed_records(X)
    k = group_size(k, len(records))
    scaled = scale(records)
    Z, space = scaled
    onto = np.empty(len(Z), np.int64)
    length = np.zeros(len(Z))
    grow_forest(Z, space, k, plant(Z, space, _LEAF, Z.mean(axis=0)), onto, length)
    component = _components(onto)
    labels = _pieces(k, onto, length, component)
    _join_leftovers(records, scaled, k, labels, component)
    _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    return Partition(np.argsort(np.argsort(first))[labels])


def _components(onto: Ints) -> Ints:
    """Label each record's component by its root."""
    root = np.where(onto < 0, np.arange(len(onto)), onto)
    while not np.array_equal(above := root[root], root):
        root = above
    return root


def _pieces(k: int, onto: Ints, length: Floats, component: Ints) -> Ints:
    """Cut the components of 2k or more; smaller ones stay whole. Leftovers get -1."""
    n = len(onto)
    linked = np.flatnonzero(onto >= 0)
    children = linked[np.lexsort((linked, -length[linked], onto[linked]))]
    start = np.concatenate([[0], np.cumsum(np.bincount(onto[linked], minlength=n))])
    labels = np.empty(n, np.int64)
    g = cut_forest(k, onto, children, start, np.argsort(-_depth(onto), kind="stable"), labels)
    small = np.bincount(component, minlength=n)[component] < 2 * k
    labels[small] = g + component[small]
    return labels


def _depth(onto: Ints) -> Ints:
    """Count the edges from each record to its root, doubling the stride each time."""
    depth = (onto >= 0).astype(np.int64)
    above = np.where(onto < 0, np.arange(len(onto)), onto)
    while (depth[above] > 0).any():
        depth = depth + depth[above]
        above = above[above]
    return depth


def _join_leftovers(
    records: MixedRecords, scaled: Scaled, k: int, labels: Ints, component: Ints
) -> None:
    """Assign the records left at each root to the nearest group of its component."""
    top = int(labels.max()) + 1
    by_component = np.argsort(component, kind="stable")
    ordered = component[by_component]
    for root in np.unique(component[labels < 0]):
        begin, end = np.searchsorted(ordered, [root, root + 1])
        inside = by_component[begin:end]
        left = inside[labels[inside] < 0]
        names, groups = np.unique(labels[inside], return_inverse=True)  # the leftovers are first
        here = Scaled(scaled.Z[inside], scaled.space)
        name = names[1:][np.argmin(distances_of_group(here, groups)[1:])]
        labels[left] = name
        members = inside[labels[inside] == name]
        if len(members) >= 2 * k:
            labels[members[mdav(records.take(members), k).labels == 1]] = top
            top += 1
