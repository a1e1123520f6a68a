"""MDAV's rounds over a kd-tree whose boxes shrink as records leave.

The tree is a complete binary one in heap order (root 1, children 2v and 2v + 1). Bounds
are computed with the operations of the distances themselves, so rounding keeps
their order, and every node stores its lowest live index, so ties are decided exactly
as if all records had been visited.

A column of codes is cut like one of numbers, between codes or through one; its side of a box is the
codes from the lowest to the highest, and two boxes whose codes differ are an edge or two apart.
"""

from typing import NamedTuple

import numpy as np

from shoal.core._arrays import Bools, Floats, Ints
from shoal.core.jit import kernel, vector_kernel
from shoal.partition.kernels.shared import (
    NOBODY,
    MixedSpace,
    QueryPoint,
    centroid,
    code_gap,
    count,
    farthest_out,
    no_centroid,
    no_shell,
    no_sums,
    number,
    push,
    record_point,
    total_live,
)

EMPTY = 2.0**62


class KdTree(NamedTuple):
    """A kd-tree over the live records.

    A node's row in `nodes` holds its box and what else a search needs, side by side, so reading
    it costs one or two cache lines: the d lower sides, the d upper sides,
    the largest squared distance of numbers to the origin below it, the lowest live index below it
    (EMPTY if there is none).
    """

    points: Floats  # leaf, column, place
    who: Ints  # leaf, place: which record
    size: Ints  # leaf: places in use
    where: Ints  # record: leaf * capacity + place
    nodes: Floats  # node: 2d + 2 numbers
    origin: Floats


@kernel
def plant(Z: Floats, space: MixedSpace, capacity: int, origin: Floats) -> KdTree:
    """Build the tree over all records by median cuts of the widest side."""
    n, d = Z.shape
    leaves = 1
    while leaves * capacity < n:
        leaves *= 2
    tree = KdTree(
        np.zeros((leaves, d, capacity)),
        np.zeros((leaves, capacity), np.int64),
        np.zeros(leaves, np.int64),
        np.empty(n, np.int64),
        np.empty((2 * leaves, 2 * d + 2)),
        origin.copy(),
    )
    rows = Z.copy()
    who = np.arange(n)
    low = np.empty(d)
    high = np.empty(d)
    starts = np.zeros(2 * leaves + 1, np.int64)
    ends = np.zeros(2 * leaves + 1, np.int64)
    ends[1] = n
    for node in range(1, leaves):
        start = starts[node]
        end = ends[node]
        middle = start + (end - start + 1) // 2
        if end - start > 1:
            low[:] = np.inf
            high[:] = -np.inf
            for a in range(start, end):
                for j in range(d):
                    low[j] = min(low[j], rows[a, j])
                    high[j] = max(high[j], rows[a, j])
            select(rows, who, widest_side(low, high, space), start, end, middle)
        starts[2 * node] = start
        ends[2 * node] = middle
        starts[2 * node + 1] = middle
        ends[2 * node + 1] = end
    for leaf in range(leaves):
        start = starts[leaves + leaf]
        size = ends[leaves + leaf] - start
        tree.size[leaf] = size
        for place in range(size):
            i = who[start + place]
            tree.who[leaf, place] = i
            tree.where[i] = leaf * capacity + place
            for j in range(d):
                tree.points[leaf, j, place] = rows[start + place, j]
        fit_leaf(tree, leaf, space)
    for node in range(leaves - 1, 0, -1):
        fit_node(tree, node)
    return tree


@kernel
def widest_side(low: Floats, high: Floats, space: MixedSpace) -> int:
    """Return the column in which a box is widest; two codes are two edges apart."""
    widest = 0
    width = -1.0
    for j in range(low.size):
        side = high[j] - low[j]
        if j >= space.numbers and side > 0.0:
            side = np.sqrt(2.0 * space.weight[j - space.numbers])
        if side > width:
            width = side
            widest = j
    return widest


@kernel
def select(rows: Floats, who: Ints, j: int, start: int, end: int, middle: int) -> None:
    """Partially sort rows start..end by column j, so those before `middle` are not above it."""
    left = start
    right = end - 1
    while left < right:
        pivot = rows[(left + right) >> 1, j]
        a = left
        b = right
        while a <= b:
            while rows[a, j] < pivot:
                a += 1
            while pivot < rows[b, j]:
                b -= 1
            if a <= b:
                for c in range(rows.shape[1]):
                    rows[a, c], rows[b, c] = rows[b, c], rows[a, c]
                who[a], who[b] = who[b], who[a]
                a += 1
                b -= 1
        if middle <= b:
            right = b
        elif middle >= a:
            left = a
        else:
            break


@vector_kernel
def fit_leaf(tree: KdTree, leaf: int, space: MixedSpace) -> None:
    """Compute a leaf's box, lowest index and reach from its live records."""
    d = tree.origin.size
    row = tree.nodes[tree.size.size + leaf]
    points = tree.points[leaf]
    size = tree.size[leaf]
    for j in range(d):
        low = np.inf
        high = -np.inf
        for place in range(size):
            low = min(low, points[j, place])
            high = max(high, points[j, place])
        row[j] = low
        row[d + j] = high
    reach = -1.0
    for place in range(size):
        total = 0.0
        for j in range(space.numbers):
            t = points[j, place] - tree.origin[j]
            total += t * t
        reach = max(reach, total)
    row[2 * d] = reach
    first = EMPTY
    for place in range(size):
        first = min(first, float(tree.who[leaf, place]))
    row[2 * d + 1] = first


@kernel
def fit_node(tree: KdTree, node: int) -> bool:
    """Compute a node's bounds from its children; return whether any changed."""
    d = tree.origin.size
    a = 2 * node
    b = a + 1
    changed = False
    for j in range(2 * d + 2):
        left = tree.nodes[a, j]
        right = tree.nodes[b, j]
        largest = d <= j <= 2 * d
        value = max(left, right) if largest else min(left, right)
        if value != tree.nodes[node, j]:
            tree.nodes[node, j] = value
            changed = True
    return changed


@vector_kernel
def leaf_distances(
    points: Floats, size: int, q: QueryPoint, space: MixedSpace, out: Floats
) -> None:
    """Compute squared distances of a leaf's records to q, in whole vectors beyond its end."""
    size = min(points.shape[1], (size + 7) & ~7)
    for place in range(size):
        out[place] = 0.0
    for j in range(space.numbers):
        qj = q.at[j]
        for place in range(size):
            t = points[j, place] - qj
            out[place] = out[place] + t * t
    for c in range(space.weight.size):
        j = space.numbers + c
        if q.table.size:
            table = q.table[space.start[c] : space.start[c + 1]]
            for place in range(size):
                out[place] = out[place] + table[np.int32(points[j, place])]
            continue
        qj = q.at[j]
        alone = space.weight[c] if qj > 0.0 else 0.0
        both = alone + space.weight[c]
        for place in range(size):
            x = points[j, place]
            step = both if x > 0.0 else alone
            out[place] = out[place] + (0.0 if x == qj else step)


@vector_kernel
def smallest(values: Floats, size: int) -> float:
    """Return the smallest of the first `size` values."""
    low = np.inf
    for i in range(size):
        low = min(low, values[i])
    return low


@vector_kernel
def largest(values: Floats, size: int) -> float:
    """Return the largest of the first `size` values."""
    high = -np.inf
    for i in range(size):
        high = max(high, values[i])
    return high


@vector_kernel
def least(row: Floats, q: QueryPoint, space: MixedSpace) -> float:
    """Bound the squared distance of a record q to the records below a node from below."""
    d = q.at.size
    total = 0.0
    for j in range(space.numbers):
        t = max(row[j] - q.at[j], q.at[j] - row[d + j], 0.0)
        total += t * t
    for c in range(space.weight.size):
        j = space.numbers + c
        if q.at[j] < row[j] or q.at[j] > row[d + j]:
            total += code_gap(space.weight[c], row[j], q.at[j])
    return total


@vector_kernel
def most(
    row: Floats, at: Floats, numbers: int, origin: Floats, shift: Floats, norm: float
) -> float:
    """Bound the squared distance of q to the records below a node from above, in its numbers.

    The smaller of two bounds: the far corner of the box, and, with o the origin and
    shift = q - o, |x - o|^2 + |q - o|^2 - 2 (x - o) shift, largest over the box. The second
    is not computed as distances are, hence its margin for rounding. -1 if there are no records.
    """
    d = at.size
    if row[2 * d + 1] == EMPTY:
        return -1.0
    corner = 0.0
    along = 0.0
    for j in range(numbers):
        low = row[j]
        high = row[d + j]
        t = max(abs(at[j] - low), abs(high - at[j]))
        corner += t * t
        along += min((low - origin[j]) * shift[j], (high - origin[j]) * shift[j])
    reach = row[2 * d] + norm
    ball: float = reach - 2.0 * along + reach * (d * d + 16) * 2.0**-50 + 1e-300
    return min(corner, ball)


@kernel
def most_with_codes(total: float, row: Floats, q: QueryPoint, space: MixedSpace) -> float:
    """Add what each column of codes can add at most; -1 stays, where there are no records."""
    d = q.at.size
    if total < 0.0:
        return total
    for c in range(space.weight.size):
        j = space.numbers + c
        low = row[j]
        high = row[d + j]
        if q.table.size:
            total += q.table[space.start[c] + np.int64(low)] if low == high else q.top[c]
        elif low == high:
            total += code_gap(space.weight[c], low, q.at[j])
        else:
            total += space.weight[c] * (np.float64(q.at[j] > 0.0) + 1.0)
    return total


@kernel
def look_into(
    tree: KdTree,
    leaf: int,
    q: QueryPoint,
    space: MixedSpace,
    want: int,
    near: Floats,
    group: Ints,
    size: int,
    block: Floats,
) -> int:
    """Offer a leaf's records to the heap of the nearest; return the heap's size."""
    live = tree.size[leaf]
    leaf_distances(tree.points[leaf], live, q, space, block)
    if size == want and smallest(block, live) > near[0]:
        return size
    for place in range(live):
        if size < want or block[place] <= near[0]:
            size = push(near, group, size, want, block[place], tree.who[leaf, place])
    return size


@kernel
def nearest(
    tree: KdTree,
    q: QueryPoint,
    space: MixedSpace,
    home: int,
    want: int,
    near: Floats,
    group: Ints,
    block: Floats,
    bounds: Floats,
    nodes: Ints,
) -> int:
    """Write the `want` records nearest to a record q to `group`, from the home leaf outwards.

    Returns the work done, in records visited; a node counts as four.
    """
    leaves = tree.size.size
    size = look_into(tree, home, q, space, want, near, group, number(0), block)
    work: int = tree.size[home]
    at = leaves + home
    while at > 1:
        nodes[0] = at ^ 1
        bounds[0] = least(tree.nodes[at ^ 1], q, space)
        work += 4
        depth = 1
        at >>= 1
        while depth:
            depth -= 1
            node = nodes[depth]
            bound = bounds[depth]
            while not beyond(tree, node, bound, want, near, group, size):
                if node >= leaves:
                    size = look_into(tree, node - leaves, q, space, want, near, group, size, block)
                    work += tree.size[node - leaves]
                    break
                node *= 2
                other = node + 1
                bound = least(tree.nodes[node], q, space)
                aside = least(tree.nodes[other], q, space)
                work += 8
                if aside < bound:
                    node, other = other, node
                    bound, aside = aside, bound
                nodes[depth] = other
                bounds[depth] = aside
                depth += 1
    return work


@kernel
def beyond(
    tree: KdTree, node: int, bound: float, want: int, near: Floats, group: Ints, size: int
) -> bool:
    """Whether no record below a node can enter the heap."""
    first: float = tree.nodes[node, -1]
    if first == EMPTY:
        return True
    if size < want:
        return False
    worst: float = near[0]
    return bound > worst or (bound == worst and first > float(group[0]))


@kernel
def farthest(
    tree: KdTree,
    q: QueryPoint,
    space: MixedSpace,
    shift: Floats,
    block: Floats,
    bounds: Floats,
    nodes: Ints,
) -> tuple[int, int]:
    """Find the record farthest from q; return it and the cost."""
    leaves = tree.size.size
    at, numbers, coded = q.at, space.numbers, space.weight.size > 0
    norm = 0.0
    for j in range(numbers):
        shift[j] = at[j] - tree.origin[j]
        norm += shift[j] * shift[j]
    best = -1.0
    chosen = NOBODY
    work = 0
    nodes[0] = 1
    bounds[0] = np.inf
    depth = 1
    while depth:
        depth -= 1
        node = nodes[depth]
        bound = bounds[depth]
        while True:
            first = tree.nodes[node, -1]
            if first == EMPTY or bound < best or (bound == best and first > chosen):
                break
            if node >= leaves:
                leaf = node - leaves
                leaf_distances(tree.points[leaf], tree.size[leaf], q, space, block)
                work += tree.size[leaf]
                top = largest(block, tree.size[leaf])
                if top >= best:
                    for place in range(tree.size[leaf]):
                        i = tree.who[leaf, place]
                        if block[place] == top and (top > best or i < chosen):
                            best = top
                            chosen = i
                break
            node *= 2
            other = node + 1
            bound = most(tree.nodes[node], at, numbers, tree.origin, shift, norm)
            aside = most(tree.nodes[other], at, numbers, tree.origin, shift, norm)
            if coded:
                bound = most_with_codes(bound, tree.nodes[node], q, space)
                aside = most_with_codes(aside, tree.nodes[other], q, space)
            work += 8
            if aside > bound:
                node, other = other, node
                bound, aside = aside, bound
            nodes[depth] = other
            bounds[depth] = aside
            depth += 1
    return chosen, work


@kernel
def leave(tree: KdTree, i: int, noted: Bools, changed: Ints, changes: int) -> int:
    """Remove record i from its leaf and list the leaf once; return the length of the list."""
    capacity = tree.who.shape[1]
    leaf = tree.where[i] // capacity
    place = tree.where[i] % capacity
    last = tree.size[leaf] - 1
    tree.size[leaf] = last
    if place != last:
        moved = tree.who[leaf, last]
        tree.who[leaf, place] = moved
        tree.where[moved] = tree.where[i]
        for j in range(tree.origin.size):
            tree.points[leaf, j, place] = tree.points[leaf, j, last]
    if noted[leaf]:
        return changes
    noted[leaf] = True
    changed[changes] = leaf
    return changes + 1


@kernel
def shrink(tree: KdTree, space: MixedSpace, noted: Bools, changed: Ints, changes: int) -> None:
    """Refit the boxes of the listed leaves, and of their ancestors as far as they change."""
    leaves = tree.size.size
    for e in range(changes):
        noted[changed[e]] = False
        fit_leaf(tree, changed[e], space)
        node = (leaves + changed[e]) >> 1
        while node and fit_node(tree, node):
            node >>= 1


@kernel
def tree_rounds(
    Z: Floats, space: MixedSpace, k: int, labels: Ints, g: int, rounds: int, tree: KdTree
) -> tuple[int, int]:
    """Do up to `rounds` rounds of MDAV; return the next g and the cost of the searches.

    A round ends two groups while 3k records remain, or one while 2k remain.
    """
    sums = no_sums(space)
    m = total_live(Z, labels, sums, space)
    c = no_centroid(space)
    nothing = np.empty(0)
    near = np.empty(k)
    group = np.empty(k, np.int64)
    noted = np.zeros(tree.size.size, np.bool_)
    changed = np.empty(k, np.int64)
    shift = np.empty(Z.shape[1])
    capacity = tree.who.shape[1]
    block = np.empty(capacity)
    bounds = np.empty(128)
    nodes = np.empty(128, np.int64)
    shell = no_shell(m, space)
    work = 0
    for _ in range(rounds):
        if m < 2 * k:
            break
        two = m >= 3 * k
        centroid(sums, m, c, space)
        r, shell = farthest_out(Z, labels, m, c, shell, space)
        if r == NOBODY:
            r, steps = farthest(tree, c, space, shift, block, bounds, nodes)
            work += steps
        for half in range(2 if two else 1):
            home = tree.where[r] // capacity
            changes = leave(tree, r, noted, changed, number(0))
            q = record_point(Z, r, nothing)
            work += nearest(tree, q, space, home, k - 1, near, group, block, bounds, nodes)
            labels[r] = g
            count(Z, r, -1, sums, space)
            for e in range(k - 1):
                changes = leave(tree, group[e], noted, changed, changes)
                labels[group[e]] = g
                count(Z, group[e], -1, sums, space)
            shrink(tree, space, noted, changed, changes)
            m -= k
            g += 1
            if half == 0 and two:
                r, steps = farthest(tree, q, space, shift, block, bounds, nodes)
                work += steps
    return g, work
