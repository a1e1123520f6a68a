"""Compiled grouping of one column: by ranks, or with the least sum of squares."""

import numpy as np

from shoal.core._arrays import Floats, Ints
from shoal.core.jit import kernel
from shoal.partition.kernels.shared import number


@kernel
def optimal_ends(v: Floats, k: int, begin: Ints) -> None:
    """Find the groups of least sum of squares of a sorted list.

    begin[i] is set to where the last group starts in the best grouping of v[:i], from the
    least costs

        f(i) = min over j in i - 2k + 1 .. i - k of f(j) + SSE(v[j:i]).

    Ends are taken k at a time: all candidates of a batch are known before it. Sums and
    costs are kept relative to the batch, so they stay as small as the spread of 3k
    neighbours, however long the list.
    """
    n = v.size
    cost = np.full(3 * k, np.inf)  # cost[a] is f(base + a), up to a constant
    sums = np.zeros(3 * k + 1)
    squares = np.zeros(3 * k + 1)
    columns = np.empty((64, 2 * k), np.int64)
    best = np.empty(k, np.int64)
    cost[2 * k] = 0.0
    for first in range(k, n + 1, k):
        base = first - 2 * k
        least = np.inf
        for a in range(k, 3 * k):
            least = min(least, cost[a])
        for a in range(2 * k):
            cost[a] = cost[a + k] - least
        rows = min(k, n + 1 - first)
        origin = v[first - 1]
        for a in range(2 * k + rows - 1):
            at = base + a
            t = v[at] - origin if at >= 0 else 0.0
            sums[a + 1] = sums[a] + t
            squares[a + 1] = squares[a] + t * t
        if k <= 32:
            for r in range(rows):
                scan_row(r, k, cost, sums, squares, best)
        else:
            width = number(0)
            for j in range(1, 2 * k):
                if cost[j] < np.inf:
                    columns[0, width] = j
                    width += 1
            smawk(rows, width, k, columns, cost, sums, squares, best)
        for r in range(rows):
            begin[first + r] = base + best[r]
            cost[2 * k + r] = group_cost(r, best[r], k, cost, sums, squares)


@kernel
def label_runs(begin: Ints, order: Ints, labels: Ints) -> None:
    """Follow the beginnings back from the end, and number the groups by rank."""
    g = 0
    end = order.size
    while end > 0:
        end = begin[end]
        g += 1
    end = order.size
    while end > 0:
        g -= 1
        for i in range(begin[end], end):
            labels[order[i]] = g
        end = begin[end]


@kernel
def group_cost(r: int, j: int, k: int, cost: Floats, sums: Floats, squares: Floats) -> float:
    """Compute the cost of row r's grouping whose last group begins at column j."""
    end = 2 * k + r
    total = sums[end] - sums[j]
    spread: float = squares[end] - squares[j] - total * total / (end - j)
    return float(cost[j]) + max(spread, 0.0)


@kernel
def scan_row(r: int, k: int, cost: Floats, sums: Floats, squares: Floats, best: Ints) -> None:
    """Find the best column of row r by trying all of them."""
    least = np.inf
    for j in range(r + 1, r + k + 1):
        if cost[j] < np.inf:
            value = group_cost(r, j, k, cost, sums, squares)
            if value < least:
                least = value
                best[r] = j


@kernel
def better(
    r: int, left: int, right: int, k: int, cost: Floats, sums: Floats, squares: Floats
) -> bool:
    """Whether row r prefers the right of two columns.

    Row r may begin a group at columns r + 1 .. r + k. Too far left loses against anything
    to the right, too far right against anything to the left: that keeps the matrix
    totally monotone.
    """
    if left < r + 1:
        return True
    if right > r + k:
        return False
    return group_cost(r, right, k, cost, sums, squares) < group_cost(
        r, left, k, cost, sums, squares
    )


@kernel
def smawk(
    rows: int,
    width: int,
    k: int,
    columns: Ints,
    cost: Floats,
    sums: Floats,
    squares: Floats,
    best: Ints,
) -> None:
    """Find the best column of every row of a totally monotone matrix in linear time.

    Level h handles the rows 2^h - 1, 2 2^h - 1, ...: on the way down columns that can
    serve no row are dropped, on the way up the rows between two known ones are searched
    between the columns of these.
    """
    widths = np.zeros(64, np.int64)
    widths[0] = width
    level = 0
    while True:
        stride = 1 << level
        count = rows // stride
        kept = 0
        for a in range(widths[level]):
            j = columns[level, a]
            while kept and better(
                kept * stride - 1, columns[level, kept - 1], j, k, cost, sums, squares
            ):
                kept -= 1
            if kept < count:
                columns[level, kept] = j
                kept += 1
        widths[level] = kept
        if count <= 1:
            break
        for a in range(kept):
            columns[level + 1, a] = columns[level, a]
        widths[level + 1] = kept
        level += 1
    while level >= 0:
        stride = 1 << level
        a = 0
        for row in range(stride - 1, rows, 2 * stride):
            below = row + stride
            stop = best[below] if below < rows else columns[level, widths[level] - 1]
            best[row] = columns[level, a]
            while columns[level, a] < stop:
                a += 1
                if better(row, best[row], columns[level, a], k, cost, sums, squares):
                    best[row] = columns[level, a]
        level -= 1


@kernel
def central_codes(codes: Ints, labels: Ints, sizes: Ints, edges: Ints, below: Ints) -> Ints:
    """Find the code of each group with the least total path length to its members.

    `below` counts the members below each edge, and has zeros before and after. Of equal codes the
    lowest is found; -1 if half of the group or more are below 0.
    """
    ends = np.cumsum(sizes)
    place = ends - sizes
    held = np.empty(codes.size, np.int64)
    for i in range(codes.size):
        held[place[labels[i]]] = codes[i]
        place[labels[i]] += 1
    central = np.full(sizes.size, -1, np.int64)
    for g in range(sizes.size):
        members = held[ends[g] - sizes[g] : ends[g]]
        present = 0
        for code in members:
            if code >= 0:
                present += 1
                for edge in edges[code]:
                    if edge >= 0:
                        below[edge] += 1
        least = 0
        for code in members:
            if code < 0 or 2 * present <= sizes[g]:
                continue
            score = 0
            for edge in edges[code]:
                if edge >= 0:
                    score += present - 2 * below[edge]
            if central[g] < 0 or score < least or (score == least and code < central[g]):
                central[g], least = code, score
        for code in members:
            if code >= 0:
                for edge in edges[code]:
                    if edge >= 0:
                        below[edge] = 0
    return central
