"""Compiled loops of V-MDAV and mu-Approx, whose groups vary in size, and of merging groups."""

import numpy as np

from shoal.core._arrays import Floats, Ints
from shoal.core.jit import kernel
from shoal.partition.kernels.mdav_tree import KdTree, leave, nearest, shrink
from shoal.partition.kernels.shared import NOBODY, MixedSpace, number, record_point


@kernel
def variable_groups(
    Z: Floats, space: MixedSpace, k: int, square: float, order: Ints, tree: KdTree, labels: Ints
) -> tuple[int, int]:
    """Form V-MDAV's groups around the records in `order`; `square` is gamma squared.

    Returns the number of groups and of records left over, fewer than k.
    """
    capacity = tree.who.shape[1]
    nothing = np.empty(0)
    near = np.empty(max(k, 2))
    nearby = np.empty(max(k, 2), np.int64)
    block = np.empty(capacity)
    bounds = np.empty(128)
    nodes = np.empty(128, np.int64)
    noted = np.zeros(tree.size.size, np.bool_)
    changed = np.empty(k, np.int64)
    members = np.empty(2 * k, np.int64)
    closest = np.empty(2 * k)
    neighbour = np.empty(2 * k, np.int64)
    live = Z.shape[0]
    g = 0
    for e in order:
        if labels[e] >= 0:
            continue
        if live < k:
            break
        changes = leave(tree, e, noted, changed, number(0))
        home = tree.where[e] // capacity
        q = record_point(Z, e, nothing)
        nearest(tree, q, space, home, k - 1, near, nearby, block, bounds, nodes)
        members[0] = e
        labels[e] = g
        for a in range(k - 1):
            members[a + 1] = nearby[a]
            labels[nearby[a]] = g
            changes = leave(tree, nearby[a], noted, changed, changes)
        shrink(tree, space, noted, changed, changes)
        size = k
        live -= k
        neighbour[:k] = NOBODY
        # A group may grow while the others keep enough to form one more, or once what
        # is left cannot form one; that rest finds room in this group at least.
        while square > 0.0 and size < 2 * k - 1 and live >= 2 and live != k:
            best = 0
            for a in range(size):
                if neighbour[a] == NOBODY:
                    i = members[a]
                    home = tree.where[i] // capacity
                    q = record_point(Z, i, nothing)
                    nearest(tree, q, space, home, number(1), near, nearby, block, bounds, nodes)
                    closest[a] = near[0]
                    neighbour[a] = nearby[0]
                if closest[a] < closest[best] or (
                    closest[a] == closest[best] and neighbour[a] < neighbour[best]
                ):
                    best = a
            candidate = neighbour[best]
            # The candidate is one of its own two nearest, so the farther one is not it.
            home = tree.where[candidate] // capacity
            q = record_point(Z, candidate, nothing)
            nearest(tree, q, space, home, number(2), near, nearby, block, bounds, nodes)
            if closest[best] >= square * near[0]:
                break
            labels[candidate] = g
            shrink(tree, space, noted, changed, leave(tree, candidate, noted, changed, number(0)))
            members[size] = candidate
            neighbour[size] = NOBODY
            for a in range(size):
                if neighbour[a] == candidate:
                    neighbour[a] = NOBODY
            size += 1
            live -= 1
        g += 1
    return g, live


@kernel
def grow_forest(
    Z: Floats, space: MixedSpace, k: int, tree: KdTree, onto: Ints, length: Floats
) -> None:
    """Link records to near ones until every component has at least k records.

    A component's root is its one record without an outgoing edge. While a component is
    smaller than k, its root is linked to the nearest record outside it, which is one of
    the root's k - 1 nearest. Writes each record's target (NOBODY for roots) and the
    squared length of the edge.
    """
    n = Z.shape[0]
    capacity = tree.who.shape[1]
    nothing = np.empty(0)
    near = np.empty(k)
    nearby = np.empty(k, np.int64)
    block = np.empty(capacity)
    bounds = np.empty(128)
    nodes = np.empty(128, np.int64)
    size = np.ones(n, np.int64)
    above = np.arange(n)
    onto[:] = NOBODY
    for i in range(n):
        root = root_of(above, i)
        while size[root] < k:
            home = tree.where[root] // capacity
            q = record_point(Z, root, nothing)
            nearest(tree, q, space, home, k, near, nearby, block, bounds, nodes)
            target = NOBODY
            best = np.inf
            for a in range(k):
                j = nearby[a]
                closer = near[a] < best or (near[a] == best and j < target)
                if closer and root_of(above, j) != root:
                    best = near[a]
                    target = j
            onto[root] = target
            length[root] = best
            other = root_of(above, target)
            above[root] = other
            size[other] += size[root]
            root = other


@kernel
def nearest_others(Z: Floats, space: MixedSpace, tree: KdTree, chosen: Ints, others: Ints) -> None:
    """Write for each chosen record the nearest other one, the lowest among ties."""
    near = np.empty(2)
    nearby = np.empty(2, np.int64)
    nothing = np.empty(0)
    capacity = tree.who.shape[1]
    block = np.empty(capacity)
    bounds = np.empty(128)
    nodes = np.empty(128, np.int64)
    for a in range(chosen.size):
        i = chosen[a]
        q = record_point(Z, i, nothing)
        home = tree.where[i] // capacity
        nearest(tree, q, space, home, number(2), near, nearby, block, bounds, nodes)
        others[a] = nearby[0] if nearby[1] == i else nearby[1]  # the heap has the farther one first


@kernel
def root_of(above: Ints, i: int) -> int:
    """Follow the links to the root, with path halving."""
    while above[i] != i:
        above[i] = above[above[i]]
        i = above[i]
    return i


@kernel
def cut_forest(k: int, onto: Ints, children: Ints, start: Ints, deepest: Ints, labels: Ints) -> int:
    """Cut every tree into pieces of k to 2k - 2 records; return the number of pieces.

    Records are taken from the leaves of the trees upwards. Each gathers what its children
    left, in the given order, and cuts a piece off whenever k records are together. What a
    root is left with, fewer than k, keeps the label NOBODY.
    """
    n = onto.size
    following = np.full(n, NOBODY, np.int64)
    first = np.full(n, NOBODY, np.int64)
    last = np.full(n, NOBODY, np.int64)
    size = np.zeros(n, np.int64)
    labels[:] = NOBODY
    g = 0
    for v in deepest:
        head = NOBODY
        tail = NOBODY
        held = 0
        for a in range(start[v], start[v + 1] + 1):
            # The record itself comes last, after its children.
            itself = a == start[v + 1]
            c = v if itself else children[a]
            if itself:
                first[c] = last[c] = c
                size[c] = 1
            if size[c] == 0:
                continue
            if held == 0:
                head = first[c]
            else:
                following[tail] = first[c]
            tail = last[c]
            held += size[c]
            if held >= k:
                at = head
                while at != tail:
                    labels[at] = g
                    at = following[at]
                labels[tail] = g
                g += 1
                held = 0
        first[v] = head
        last[v] = tail
        size[v] = held
    return g
