"""Kernels of the attacks: nearest boxes, and people who satisfy predicates.

Private; their twins are in the tests.
"""

from typing import Any

import numpy as np

from shoal.core.jit import kernel

LEAF = 16
"""Boxes in a leaf of the tree, at most."""


@kernel
def box_tree(lower: Any, upper: Any, discrete: Any, scale: Any) -> Any:
    """Build a tree of boxes: their order, and for each node its range, right child and bounds.

    Node 0 is the root, a left child follows its node, and a leaf has right child 0. The bounds are
    those of the boxes' middles for numbers, and of the boxes for categories. A node is cut at the
    middle of its widest axis, or where the category changes near it. Cost O(n d log^2 n).
    """
    boxes, axes = lower.shape
    most = boxes // 2 + 1  # a leaf has a quarter of a node that was too large
    runs = np.zeros((most, 3), dtype=np.int64)
    low, high = np.empty((most, axes)), np.empty((most, axes))
    order = np.arange(boxes)
    middles = (lower + upper) / 2.0
    waiting = [(0, boxes, -1)]
    nodes = 0
    while waiting:
        start, end, parent = waiting.pop()
        node, nodes = nodes, nodes + 1
        if parent >= 0:
            runs[parent, 2] = node
        widest, width = -1, 0.0
        for j in range(axes):
            first = last = lower[order[start], j] if discrete[j] else middles[order[start], j]
            top = upper[order[start], j]
            for i in order[start:end]:
                x = lower[i, j] if discrete[j] else middles[i, j]
                first, last, top = min(first, x), max(last, x), max(top, upper[i, j])
            low[node, j], high[node, j] = first, top if discrete[j] else last
            extent = (1.0 if last > first else 0.0) if discrete[j] else (last - first) * scale[j]
            if extent > width:
                widest, width = j, extent
        runs[node, 0], runs[node, 1] = start, end
        if end - start <= LEAF or widest < 0:
            continue
        inside = order[start:end].copy()
        keys = lower[inside, widest] if discrete[widest] else middles[inside, widest]
        ranks = np.argsort(keys, kind="mergesort")
        order[start:end] = inside[ranks]
        keys = keys[ranks]
        half = (end - start) // 2
        if discrete[widest]:
            for cut in (np.searchsorted(keys, keys[half]),
                        np.searchsorted(keys, keys[half], side="right")):  # fmt: skip
                if len(keys) <= 4 * cut <= 3 * len(keys):
                    half = cut
        waiting.append((start + half, end, node))
        waiting.append((start, start + half, -1))
    return order, runs[:nodes], low[:nodes], high[:nodes]


@kernel
def _node_distance(
    node: Any, target: Any, discrete: Any, scale: Any, squared: Any, low: Any, high: Any
) -> Any:
    """Return a lower bound on the distance of a node's boxes from the target."""
    distance = 0.0
    for j, x in enumerate(target):
        if discrete[j]:
            if x < low[node, j] or x >= high[node, j]:
                half = squared and (x < 0 or low[node, j] < 0)
                distance += 0.5 if half else 1.0
            continue
        gap = max(low[node, j] - x, x - high[node, j]) * scale[j]
        if gap > 0:
            distance += gap * gap if squared else gap
    # Sums are rounded, and a tie must not be passed over.
    return distance * (1.0 - 1e-12)


@kernel
def nearest_boxes(  # numba calls by position; one search, one loop
    lower: Any, upper: Any, discrete: Any, scale: Any, targets: Any, starts: Any, k: Any,
    squared: Any, order: Any, runs: Any, low: Any, high: Any,
) -> Any:  # fmt: skip
    """Find the k boxes nearest to each target, nearest first, and their distances.

    The distance on an axis is that to a place drawn uniformly from the box, in expectation: for
    numbers E|x - U| over the axis' range, for categories the chance that U is another one; or,
    squared, that of middles, and a half to and from a category below 0. A target's NaN adds
    nothing. Boxes stand in a circle from `starts`, one per target, and of equal distances the first
    wins, so a drawn start picks among ties by chance. `order` and the rest are a `box_tree`: no
    middle is farther than its box, so a node is passed over by the distance to its middles.
    """
    boxes, axes = lower.shape
    nearest = np.empty((len(targets), k), dtype=np.int64)
    distances = np.empty((len(targets), k))
    turns = np.empty(k, dtype=np.int64)
    stack = np.empty(2 * len(runs) + 1, dtype=np.int64)
    bounds = np.empty(2 * len(runs) + 1)
    for t in range(len(targets)):
        best = distances[t]
        best[:] = np.inf
        nearest[t, :] = -1
        turns[:] = boxes
        stack[0], bounds[0], waiting = 0, 0.0, 1
        while waiting:
            waiting -= 1
            node = stack[waiting]
            if bounds[waiting] > best[k - 1]:
                continue
            if runs[node, 2]:
                ahead = (node + 1, runs[node, 2])
                far = (
                    _node_distance(ahead[0], targets[t], discrete, scale, squared, low, high),
                    _node_distance(ahead[1], targets[t], discrete, scale, squared, low, high),
                )
                nearer = 0 if far[0] <= far[1] else 1
                for side in (1 - nearer, nearer):
                    if far[side] <= best[k - 1]:
                        stack[waiting], bounds[waiting] = ahead[side], far[side]
                        waiting += 1
                continue
            for box in order[runs[node, 0] : runs[node, 1]]:
                distance = 0.0
                for j in range(axes):
                    x = targets[t, j]
                    if np.isnan(x):
                        continue
                    a, b = lower[box, j], upper[box, j]
                    if discrete[j]:
                        if squared and (a < 0) != (x < 0):
                            distance += 0.5
                        else:
                            distance += 1.0 - 1.0 / (b - a) if a <= x < b else 1.0
                    elif squared:
                        distance += ((x - (a + b) / 2.0) * scale[j]) ** 2
                    elif a < x < b:
                        distance += ((x - a) ** 2 + (b - x) ** 2) / (2.0 * (b - a)) * scale[j]
                    else:
                        distance += abs(x - (a + b) / 2.0) * scale[j]
                    if distance > best[k - 1]:
                        break
                turn = (box - starts[t]) % boxes
                place = k - 1
                if distance > best[place] or (distance == best[place] and turn > turns[place]):
                    continue
                while place > 0 and (
                    best[place - 1] > distance
                    or (best[place - 1] == distance and turns[place - 1] > turn)
                ):
                    best[place], turns[place] = best[place - 1], turns[place - 1]
                    nearest[t, place] = nearest[t, place - 1]
                    place -= 1
                best[place], turns[place], nearest[t, place] = distance, turn, box
    return nearest, distances


@kernel
def share_hits(  # numba calls by position
    points: Any, discrete: Any, sizes: Any, targets: Any, own: Any, tie: float,
    order: Any, runs: Any, low: Any, high: Any,
) -> Any:  # fmt: skip
    """Score each target: 1 / (nearest records) if its own point is among them, else 0.

    Distances are those of `nearest_boxes`, squared; two are equal up to `tie` of themselves. Point
    `own` of a target is its own, and point i stands for `sizes[i]` records. A search ends at the
    first point that is nearer than the target's own, and passes over nodes that are farther.
    """
    ones = np.ones(points.shape[1])
    scores = np.zeros(len(targets))
    stack = np.empty(2 * len(runs) + 1, dtype=np.int64)
    for t in range(len(targets)):
        mine = _square_distance(points[own[t]], targets[t], discrete)
        ties = 0
        stack[0], waiting = 0, 1
        while waiting:
            waiting -= 1
            node = stack[waiting]
            if runs[node, 2]:
                ahead = (node + 1, runs[node, 2])
                far = (
                    _node_distance(ahead[0], targets[t], discrete, ones, True, low, high),
                    _node_distance(ahead[1], targets[t], discrete, ones, True, low, high),
                )
                nearer = 0 if far[0] <= far[1] else 1
                for side in (1 - nearer, nearer):
                    if far[side] <= mine * (1.0 + tie):
                        stack[waiting] = ahead[side]
                        waiting += 1
                continue
            for point in order[runs[node, 0] : runs[node, 1]]:
                distance = _square_distance(points[point], targets[t], discrete)
                if distance * (1.0 + tie) < mine:
                    ties, waiting = 0, -1
                    break
                if distance <= mine * (1.0 + tie):
                    ties += sizes[point]
            if waiting < 0:
                break
        if ties:
            scores[t] = 1.0 / ties
    return scores


@kernel
def _square_distance(point: Any, target: Any, discrete: Any) -> Any:
    """Return the squared distance of two points; a code below 0 is a half from every other."""
    distance = 0.0
    for j, x in enumerate(target):
        if not discrete[j]:
            distance += (x - point[j]) ** 2
        elif x != point[j]:
            distance += 0.5 if x < 0 or point[j] < 0 else 1.0
    return distance


@kernel
def count_people(  # numba calls by position
    people: Any, order: Any, begin: Any, end: Any, axes: Any, low: Any, high: Any, negated: Any,
    most: Any,
) -> Any:  # fmt: skip
    """Count the people of a run of `order` who satisfy each predicate; stop at `most`."""
    counts = np.zeros(len(axes), dtype=np.int64)
    for p in range(len(axes)):
        for person in order[begin[p] : end[p]]:
            holds = True
            for j in range(axes.shape[1]):
                x = people[person, axes[p, j]]
                if (low[p, j] <= x < high[p, j]) == negated[p, j]:
                    holds = False
                    break
            if holds:
                counts[p] += 1
                if counts[p] == most:
                    break
    return counts
