"""Fill classes nearest-first from buckets, while keeping the remaining problem feasible.

There are two sizes of classes. The classes that are still to come count, size by size, as one
row each of a transportation problem, beside the class at hand: three rows, one column per bucket.
Counts between whole bounds with whole margins can be divided evenly over equal classes without
leaving the bounds, so nothing is lost by this. That such a table exists is decided by its
minimum cut, which is found by trying all eight subsets of the rows.
"""

from typing import NamedTuple

import numpy as np

from shoal.core._arrays import Bools, Floats, Ints
from shoal.core.jit import kernel
from shoal.partition.kernels.mdav_tree import KdTree, farthest, least, leave, nearest, shrink
from shoal.partition.kernels.shared import (
    NOBODY,
    MixedSpace,
    QueryPoint,
    centroid,
    count,
    distance,
    no_centroid,
    no_sums,
    record_point,
    total_live,
)


class Forest(NamedTuple):
    """One kd-tree per bucket, concatenated; records by their index in the table."""

    points: Floats
    who: Ints
    size: Ints
    where: Ints  # record: leaf * capacity + place, the leaf counted within its tree
    nodes: Floats
    origin: Floats
    leaves: Ints  # bucket: its first leaf; one more at the end
    first: Ints  # bucket: its first node; one more at the end


class Classes(NamedTuple):
    """The classes still to be formed; `left` and `rest` are decremented.

    The two sorts of classes are rows 0 and 1.
    """

    size: Ints  # sort: records in a class
    left: Ints  # sort: classes to come
    low: Ints  # sort, bucket: least count in a class
    high: Ints  # sort, bucket: largest count
    rest: Ints  # bucket: records left


@kernel
def extendable(supply: Ints, low: Ints, high: Ints, rest: Ints) -> bool:
    """Whether whole counts exist with row sums `supply`, column sums `rest`, and these bounds.

    By the minimum cut: for every subset S of the rows,

        sum_(s in S) supply_s <= sum_j min(rest_j - sum_(s not in S) low_sj, sum_(s in S) high_sj).
    """
    rows, columns = low.shape
    for s in range(rows):
        for j in range(columns):
            if low[s, j] > high[s, j]:
                return False
    for subset in range(1 << rows):
        room = 0
        for j in range(columns):
            least_outside = 0
            most_inside = 0
            for s in range(rows):
                if subset >> s & 1:
                    most_inside += high[s, j]
                else:
                    least_outside += low[s, j]
            room += min(rest[j] - least_outside, most_inside)
        for s in range(rows):
            if subset >> s & 1:
                room -= supply[s]
        if room < 0:
            return False
    return True


@kernel
def tree_of(forest: Forest, j: int) -> KdTree:
    """Return the tree of a bucket, as views."""
    a = forest.leaves[j]
    b = forest.leaves[j + 1]
    return KdTree(
        forest.points[a:b],
        forest.who[a:b],
        forest.size[a:b],
        forest.where,
        forest.nodes[forest.first[j] : forest.first[j + 1]],
        forest.origin,
    )


@kernel
def descend(tree: KdTree, q: QueryPoint, space: MixedSpace) -> int:
    """Find a leaf near q from which to start a search."""
    leaves = tree.size.size
    node = 1
    while node < leaves:
        node *= 2
        if least(tree.nodes[node + 1], q, space) < least(tree.nodes[node], q, space):
            node += 1
    return node - leaves


@kernel
def nearest_first(near: Floats, group: Ints, size: int) -> None:
    """Sort a max-heap of (distance, index) pairs in ascending order."""
    for end in range(size - 1, 0, -1):
        far = near[end]
        i = group[end]
        near[end] = near[0]
        group[end] = group[0]
        at = 0
        while True:
            child = 2 * at + 1
            if child >= end:
                break
            other = child + 1
            if other < end and (
                near[other] > near[child]
                or (near[other] == near[child] and group[other] > group[child])
            ):
                child = other
            if far > near[child] or (far == near[child] and i > group[child]):
                break
            near[at] = near[child]
            group[at] = group[child]
            at = child
        near[at] = far
        group[at] = i


@kernel
def choose(
    classes: Classes,
    s: int,
    want: Ints,
    near: Floats,
    group: Ints,
    taken: Ints,
    open_: Bools,
) -> None:
    """Choose how many of each bucket's nearest records the class gets, into `taken`.

    Next comes the nearest record whose bucket can give one more while the rest stays feasible. Such
    counts form an M-convex set, for which this greedy choice has the least sum of squared distances
    (Murota, Discrete Convex Analysis, SIAM, 2003); the tests compare it with all choices.
    """
    columns = classes.rest.size
    other = 1 - s
    supply = np.empty(3, np.int64)
    low = np.empty((3, columns), np.int64)
    high = np.empty((3, columns), np.int64)
    supply[0] = classes.size[s]
    supply[1] = classes.size[s] * (classes.left[s] - 1)
    supply[2] = classes.size[other] * classes.left[other]
    for j in range(columns):
        low[0, j] = classes.low[s, j]
        high[0, j] = classes.high[s, j]
        low[1, j] = classes.low[s, j] * (classes.left[s] - 1)
        high[1, j] = classes.high[s, j] * (classes.left[s] - 1)
        low[2, j] = classes.low[other, j] * classes.left[other]
        high[2, j] = classes.high[other, j] * classes.left[other]
        taken[j] = 0
        open_[j] = True
    for _ in range(classes.size[s]):
        while True:
            best = -1
            for j in range(columns):
                if not open_[j]:
                    continue
                if taken[j] == want[j]:
                    open_[j] = False
                    continue
                at = taken[j]
                if best < 0 or (
                    near[j, at] < near[best, taken[best]]
                    or (
                        near[j, at] == near[best, taken[best]]
                        and group[j, at] < group[best, taken[best]]
                    )
                ):
                    best = j
            if taken[best] < classes.low[s, best]:
                break
            low[0, best] = taken[best] + 1
            if extendable(supply, low, high, classes.rest):
                break
            # What cannot be extended now cannot be later: the bucket is closed for this class.
            low[0, best] = taken[best]
            open_[best] = False
        taken[best] += 1


@kernel
def fill(
    Z: Floats,
    space: MixedSpace,
    bucket: Ints,
    forest: Forest,
    classes: Classes,
    labels: Ints,
    g: int,
    rounds: int,
) -> int:
    """Form up to `rounds` classes around the remaining records farthest from their centre.

    The caller forms the last class. Returns the number of the next class.
    """
    columns = classes.rest.size
    capacity = forest.who.shape[1]
    sums = no_sums(space)
    m = total_live(Z, labels, sums, space)
    widest = min(np.max(classes.high), np.max(classes.size))
    near = np.empty((columns, widest))
    group = np.empty((columns, widest), np.int64)
    want = np.empty(columns, np.int64)
    taken = np.empty(columns, np.int64)
    open_ = np.empty(columns, np.bool_)
    noted = np.zeros(forest.size.size, np.bool_)
    changed = np.empty(widest, np.int64)
    c = no_centroid(space)
    nothing = np.empty(0)
    shift = np.empty(Z.shape[1])
    block = np.empty(capacity)
    bounds = np.empty(128)
    nodes = np.empty(128, np.int64)
    for _ in range(rounds):
        if classes.left[0] + classes.left[1] < 2:
            break
        s = 0 if classes.left[0] > 0 else 1
        centroid(sums, m, c, space)
        r = NOBODY
        best = -1.0
        for j in range(columns):
            record, _ = farthest(tree_of(forest, j), c, space, shift, block, bounds, nodes)
            if record == NOBODY:
                continue
            far = distance(Z, record, c, space)
            if far > best or (far == best and record < r):
                best = far
                r = record
        q = record_point(Z, r, nothing)
        spare = classes.size[s]
        for j in range(columns):
            spare -= classes.low[s, j]
        for j in range(columns):
            tree = tree_of(forest, j)
            want[j] = min(classes.high[s, j], classes.rest[j], classes.low[s, j] + spare)
            home = forest.where[r] // capacity if bucket[r] == j else descend(tree, q, space)
            nearest(tree, q, space, home, want[j], near[j], group[j], block, bounds, nodes)
            nearest_first(near[j], group[j], want[j])
        choose(classes, s, want, near, group, taken, open_)
        for j in range(columns):
            tree = tree_of(forest, j)
            changes = 0
            for e in range(taken[j]):
                i = group[j, e]
                changes = leave(tree, i, noted, changed, changes)
                labels[i] = g
                count(Z, i, -1, sums, space)
            shrink(tree, space, noted, changed, changes)
            classes.rest[j] -= taken[j]
        m -= classes.size[s]
        classes.left[s] -= 1
        g += 1
    return g
